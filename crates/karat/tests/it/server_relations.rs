//! Relations between answers: each holds on a server that is right, and fails on one that is wrong.

use crate::common::served::Served;
use crate::common::{Ran, Scratch};

/// Finds in a list of six, right in every way.
const RIGHT: &str = "
tools:
  - name: find
    do:
      - when:
          request: {properties: {arguments: {properties: {limit: {const: 2}}, required: [limit]}}}
          then: [{result: {content: [], structuredContent: {items: [1, 2]}}}]
          otherwise:
            - when:
                argument: tag
                then: [{result: {content: [], structuredContent: {items: [2, 4]}}}]
                otherwise: [{result: {content: [], structuredContent: {items: [1, 2, 3, 4, 5, 6]}}}]
  - name: page
    do:
      - when:
          request: {properties: {arguments: {properties: {cursor: {const: b}}, required: [cursor]}}}
          then: [{result: {content: [], structuredContent: {items: [4, 5, 6]}}}]
          otherwise:
            - when:
                argument: size
                then: [{result: {content: [], structuredContent: {items: [1, 2, 3], next: b}}}]
                otherwise: [{result: {content: [], structuredContent: {items: [1, 2, 3, 4, 5, 6]}}}]
  - {name: order, do: [{text: same}]}
  - {name: count, do: [{text: 'call ${count}'}]}
";

/// The same tools with a mistake in each.
const WRONG: &str = "
tools:
  - name: find
    do:
      - when:
          request: {properties: {arguments: {properties: {limit: {const: 2}}, required: [limit]}}}
          then: [{result: {content: [], structuredContent: {items: [1, 9]}}}]
          otherwise:
            - when:
                argument: tag
                then: [{result: {content: [], structuredContent: {items: [2, 8]}}}]
                otherwise: [{result: {content: [], structuredContent: {items: [1, 2, 3, 4, 5, 6]}}}]
  - name: page
    do:
      - when:
          request: {properties: {arguments: {properties: {cursor: {const: b}}, required: [cursor]}}}
          then: [{result: {content: [], structuredContent: {items: [5, 6]}}}]
          otherwise:
            - when:
                argument: size
                then: [{result: {content: [], structuredContent: {items: [1, 2, 3], next: b}}}]
                otherwise: [{result: {content: [], structuredContent: {items: [1, 2, 3, 4, 5, 6]}}}]
  - {name: order, do: [{text: '${arguments}'}]}
  - {name: count, do: [{text: 'call ${count}'}]}
";

fn run(script: &str, case: &str) -> Ran {
    let scratch = Scratch::new();
    let server = scratch.server(script);
    scratch.write("suite.yaml", format!("cases:\n  - {case}\n"));
    scratch.karat(&[&["server", "test", "suite.yaml", "--"], &server[..]].concat())
}

#[test]
fn each_relation_holds_on_a_right_server_and_not_on_a_wrong_one() {
    for (case, reason) in [
        (
            "{tool: order, input: {a: 1, b: 2}, relations: {reordered: true}}",
            "reordered: the answer was",
        ),
        (
            "{tool: order, input: {a: 1}, relations: {same_with: {filter: all}}}",
            "same_with: the answer was",
        ),
        (
            "{tool: find, input: {q: x}, relations: {subset_with: {tag: even}, at: $.items}}",
            "subset_with: 8 is in one list of 2 entries and not in the other of 6",
        ),
        (
            "{tool: find, input: {q: x}, relations: {growing: {parameter: limit, values: [2, 10]}, at: $.items}}",
            "growing: 9 is in one list",
        ),
        (
            "{tool: page, input: {q: x}, relations: {pages: {parameter: cursor, next: $.next, with: {size: 3}}, at: $.items}}",
            "pages: 4 is in one list of 6 entries",
        ),
    ] {
        run(RIGHT, case).expect(0);
        let ran = run(WRONG, case).expect(1);
        assert!(ran.stdout.contains(reason), "{case}: {}", ran.stdout);
        assert!(ran.stdout.contains("broken_relation"), "{case}: {}", ran.stdout);
    }
    run(RIGHT, "{tool: order, input: {a: 1}, relations: {repeated: 3}}").expect(0);
    let counting = "{tool: count, relations: [{repeated: 1}]}";
    assert!(run(RIGHT, counting).expect(1).stdout.contains("repeated: the answer was"));
    run(
        RIGHT,
        "{tool: find, input: {q: x}, relations: [{repeated: 2}, {same_with: {note: x}, at: $.items, ignore: ['$[0]']}]}",
    )
    .expect(0);
}

#[test]
fn sessions_must_not_see_what_others_write() {
    let case = "{tool: keep, input: {text: x}, relations: {isolated: {parameter: text, sessions: 3, read: show}}}";
    let shared = "concurrent: true\ntools:\n  \
                  - {name: keep, do: [{set: {kept: '${arguments.text}'}}, {text: kept}]}\n  \
                  - {name: show, do: [{text: '${kept}'}]}\n";
    // Over stdio every session has a process of its own.
    run(shared, case).expect(0);
    let scratch = Scratch::new();
    scratch.write("suite.yaml", format!("cases:\n  - {case}\n"));
    let server = Served::start(shared);
    let ran = scratch.karat(&["server", "test", "suite.yaml", "--url", &server.url]).expect(1);
    assert!(ran.stdout.contains("sees what session"), "{}", ran.stdout);
    let mute =
        "tools:\n  - {name: keep, do: [{text: kept}]}\n  - {name: show, do: [{text: nothing}]}\n";
    let ran = run(mute, case).expect(1);
    assert!(ran.stdout.contains("does not see its own write"), "{}", ran.stdout);
}

#[test]
fn a_relation_that_says_nothing_is_refused() {
    for (case, message) in [
        ("{tool: t, relations: {reordered: true}}", "two or more arguments"),
        ("{tool: t, relations: {repeated: 0}}", "between 1 and"),
        ("{tool: t, input: {a: 1}, relations: {same_with: {a: 1}}}", "changes no argument"),
        ("{tool: t, relations: {subset_with: {a: 1}}}", "`at` must be the path"),
        ("{tool: t, relations: {growing: {parameter: n, values: [2, 1]}, at: $.x}}", "larger than"),
        ("{tool: t, relations: {repeated: 1, reordered: true}}", "exactly one of"),
        ("{tool: t, error: any, relations: {repeated: 1}}", "must succeed"),
        ("{resource: 'a:b', relations: {repeated: 1}}", "the call of a tool"),
        ("{tool: t, relations: {isolated: {parameter: a, sessions: 1, read: r}}}", "between 2 and"),
    ] {
        run(RIGHT, case).expect(2).says(&[message]);
    }
}

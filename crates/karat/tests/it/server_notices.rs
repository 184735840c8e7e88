//! Notifications as expectations of suites: progress, log messages, changed lists, updated resources; and
//! sessions that a server ends.

use crate::common::served::Served;
use crate::common::{Ran, Scratch};

/// Sends notifications of every kind, some of them after its answer.
const TALKATIVE: &str = "
capabilities: {tools: {listChanged: true}, logging: {}, resources: {subscribe: true, listChanged: true}, prompts: {}}
methods:
  logging/setLevel: [{set: {level: '${arguments.level}'}}, {result: {}}]
  resources/subscribe: [{set: {watched: '${arguments.uri}'}}, {result: {}}]
  resources/list: [{result: {resources: [{uri: 'note://1', name: one}]}}]
  resources/read: [{result: {contents: [{uri: 'note://1', text: first}]}}]
tools:
  - {name: slow, do: [{progress: {progress: 1, total: 3}}, {progress: {progress: 2, total: 3}}, {progress: {progress: 3, total: 3}}, {text: done}]}
  - {name: falling, do: [{progress: {progress: 2}}, {progress: {progress: 1}}, {text: done}]}
  - {name: log, do: [{notify: {method: notifications/message, params: {level: warning, data: disk is full}}}, {text: logged}]}
  - {name: grow, do: [{text: grown}, {wait_ms: 100}, {notify: {method: notifications/tools/list_changed}}]}
  - {name: touch_note, do: [{when: {variable: watched, then: [{notify: {method: notifications/resources/updated, params: {uri: '${watched}'}}}]}}, {text: touched}]}
  - {name: quiet, do: [{text: ok}]}
";

fn run(scratch: &Scratch, cases: &str) -> Ran {
    let server = scratch.server(TALKATIVE);
    scratch.write("suite.yaml", format!("cases:\n{cases}"));
    scratch.karat(&[&["server", "test", "suite.yaml", "--"], &server[..]].concat())
}

#[test]
fn notifications_that_came_are_expected_by_method_number_and_content() {
    let scratch = Scratch::new();
    run(
        &scratch,
        "  - {id: p, tool: slow, notifications: {method: progress, count: 3, within_ms: 100}}
  - {id: last, tool: slow, notifications: {method: progress, expect: {json: $.progress, equals: 3}}}
  - {id: l, method: logging/setLevel, input: {level: warning}}
  - {id: m, tool: log, notifications: [{method: message, expect: [{json: $.level, equals: warning}, {json: $.data, contains: disk}]}]}
  - {id: c, tool: grow, notifications: {method: tools/list_changed, within_ms: 3000}}
  - id: u
    tool: touch_note
    setup: [{method: resources/subscribe, input: {uri: 'note://1'}}]
    notifications: {method: resources/updated, expect: {json: $.uri, equals: 'note://1'}}
    then: [{resource: 'note://1', expect: {contains: first}}]
  - {id: q, tool: quiet, notifications: {method: progress, at_most: 0, within_ms: 50}}
",
    )
    .expect(0);
}

#[test]
fn a_notification_that_is_missing_fails_the_case() {
    for (case, reason) in [
        (
            "{tool: quiet, notifications: {method: progress, within_ms: 50}}",
            "notifications/progress: 0 came, expected at least 1",
        ),
        (
            "{tool: slow, notifications: {method: progress, count: 2, within_ms: 50}}",
            "notifications/progress: 3 came, expected 2",
        ),
        (
            "{tool: log, notifications: {method: message, expect: {json: $.level, equals: error}, within_ms: 50}}",
            "0 came that match, of 1",
        ),
        (
            "{tool: touch_note, notifications: {method: resources/updated, within_ms: 50}}",
            "notifications/resources/updated: 0 came",
        ),
    ] {
        let scratch = Scratch::new();
        let ran = run(&scratch, &format!("  - {case}\n")).expect(1);
        assert!(ran.stdout.contains(reason), "{case}: {}", ran.stdout);
        assert!(ran.stdout.contains("wrong_notifications"), "{case}: {}", ran.stdout);
    }
}

#[test]
fn progress_is_asked_for_only_where_it_is_expected_and_must_grow() {
    let scratch = Scratch::new();
    // Without the expectation the server is not asked for progress, and sends none.
    let ran = run(&scratch, "  - {tool: slow}\n  - {tool: falling}\n").expect(0);
    assert!(!ran.stdout.contains("progress"), "{}", ran.stdout);
    let ran = run(&scratch, "  - {tool: falling, notifications: {method: progress}}\n").expect(0);
    assert!(ran.stdout.contains("misused progress notifications"), "{}", ran.stdout);
}

#[test]
fn notifications_with_concurrent_calls_are_refused() {
    let scratch = Scratch::new();
    let case = "  - {tool: slow, repeat: 4, concurrency: 2, notifications: {method: progress}}\n";
    run(&scratch, case).expect(2).says(&["`notifications` and `concurrency` cannot be combined"]);
}

#[test]
fn a_session_that_the_server_ended_is_opened_again_and_the_call_made_again() {
    let scratch = Scratch::new();
    let opened = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}}"#;
    let head = format!(
        "HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\nmcp-session-id: s${{count}}\\r\\ncontent-length: {}\\r\\n\\r\\n",
        opened.len()
    );
    let opened = opened.replace('"', "\\\"");
    let script = format!(
        "methods:\n  initialize: [{{http: \"{head}{opened}\"}}]\ntools:\n  \
         - {{name: fine, do: [{{when: {{count: 2, then: [{{status: 404 Not Found}}], otherwise: [{{text: 'call ${{count}}'}}]}}}}]}}\n  \
         - {{name: gone, do: [{{status: 404 Not Found}}]}}\n"
    );
    let server = Served::start(&script);
    let cases = "cases:\n  - {id: first, tool: fine, expect: {equals: call 1}}\n  \
                 - {id: second, tool: fine, expect: {equals: call 3}}\n";
    scratch.write("suite.yaml", cases);
    let target = ["server", "test", "suite.yaml", "--url", &server.url];
    scratch.karat(&target).expect(0);
    // One that ends every session is not a crash.
    scratch.write("suite.yaml", "cases:\n  - {tool: fine}\n  - {tool: gone}\n");
    let ran = scratch.karat(&target).expect(1);
    assert!(ran.stdout.contains("ended the session (HTTP 404)"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("crash"), "{}", ran.stdout);
}

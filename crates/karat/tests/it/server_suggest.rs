//! `karat server suggest`, `propose` and `drift`: suites that pass at once and fail on a server that is broken.

use crate::common::{Ran, Scratch, test_server};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

/// Tools by name, with more of their definitions, and what they do.
const TOOLS: &[(&str, &str, &str)] = &[
    ("version", "annotations: {readOnlyHint: true}, ", r#"{text: "version 3 of notes"}"#),
    (
        "list_notes",
        "",
        r#"{result: {content: [], structuredContent: {notes: [milk, bread], process: "${pid}", owner: "ada@example.org"}}}"#,
    ),
    (
        "greet",
        "inputSchema: {type: object, properties: {name: {type: string}}, required: [name]}, ",
        r#"{check: {required: [name]}}, {text: "hello ${arguments.name}"}"#,
    ),
    ("status", "", r#"{text: "process ${pid} is ready"}"#),
    ("query", "", r#"{text: "Error: the database is down"}"#),
    ("read_inbox", "", r#"{fail: "no inbox"}"#),
    ("empty", "", "{result: {content: []}}"),
    ("delete_all", "", "{write: {file: deleted, text: x}}, {text: gone}"),
    ("create_note", "", "{write: {file: deleted, text: x}}, {text: made}"),
];

/// Resources and prompts: what they list, and what they answer.
const LISTS: &str = r#"  resources/list: [{result: {resources: [{uri: "note://1", name: one}, {uri: "note://now", name: now}]}}]
  resources/templates/list: [{result: {resourceTemplates: [{uriTemplate: "note://{id}", name: any}]}}]
  prompts/list: [{result: {prompts: [{name: summary, arguments: [{name: title, required: true}]}]}}]
"#;
const READ: &str = r#"{result: {contents: [{uri: "${arguments.uri}", text: "note ${arguments.uri} of process ${pid}"}]}}"#;
const GET: &str = r#"{result: {messages: [{role: user, content: {type: text, text: "Sum up ${arguments.arguments.title}"}}]}}"#;

/// The server, with what it does replaced: for each tool, for resources and for prompts.
fn script(tool: impl Fn(usize) -> &'static str, read: &str, get: &str) -> String {
    let tools = TOOLS.iter().enumerate().map(|(number, (name, more, _))| {
        let does = tool(number);
        format!("  - {{name: {name}, {more}do: [{does}]}}\n")
    });
    format!(
        "name: notes\ncapabilities: {{tools: {{}}, resources: {{}}, prompts: {{}}}}\nmethods:\n{LISTS}\
         \x20 resources/read: [{read}]\n  prompts/get: [{get}]\ntools:\n{}",
        tools.collect::<Vec<_>>().concat()
    )
}

fn sound() -> String {
    script(|number| TOOLS[number].2, READ, GET)
}

fn suggest(scratch: &Scratch, script: &str) -> Ran {
    let [program, file] = scratch.server(script);
    scratch.karat(&["server", "suggest", "-o", "suggested.yaml", "--", program, file])
}

fn test(scratch: &Scratch, more: &[&str]) -> Ran {
    let mut arguments = vec!["server", "test", "suggested.yaml"];
    arguments.extend(more);
    scratch.karat(&arguments)
}

#[test]
fn the_suite_passes_at_once_and_fails_on_a_broken_server() {
    let scratch = Scratch::new();
    let ran = suggest(&scratch, &sound()).expect(0);
    let counts = "4 of 7 read-only tools are called (9 tools in all), 2 resources, 1 prompt";
    assert!(ran.stderr.contains(counts), "{}", ran.stderr);
    test(&scratch, &[]).expect(0);

    let protocol = r#"{error: {code: -32603, message: "the database is down"}}"#;
    let fail = r#"{fail: "the database is down"}"#;
    let hello = r#"{text: "hello there"}"#;
    let (nothing, no_contents, no_messages) =
        ("{result: {content: []}}", "{result: {contents: []}}", "{result: {messages: []}}");
    let other = r#"{result: {contents: [{uri: "x:y", text: other}]}}"#;
    let said = r#"{result: {messages: [{role: user, content: {type: text, text: other}}]}}"#;
    let next = |number: usize| TOOLS[(number + 1) % TOOLS.len()].2;
    for (what, broken) in [
        ("errors", script(|_| fail, protocol, protocol)),
        ("protocol errors", script(|_| protocol, protocol, protocol)),
        ("nothing", script(|_| nothing, no_contents, no_messages)),
        ("one answer", script(|_| hello, other, said)),
        ("the next tool", script(next, other, said)),
    ] {
        scratch.write("broken.yaml", broken);
        let ran = test(&scratch, &["--json", "--", test_server(), "broken.yaml"]).expect(1);
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let items = report["reports"][0]["items"].as_array().unwrap();
        let passed: Vec<&str> = items
            .iter()
            .filter(|item| item["metrics"]["pass_rate"] == 1.0)
            .filter_map(|item| item["id"].as_str())
            .collect();
        // Only cases that expect an error may pass.
        let expects_error = |id: &&str| id.contains("does not exist") || id.contains("without");
        assert!(passed.iter().all(expects_error), "{what}: {passed:?}");
    }
}

#[test]
fn nothing_is_changed_and_what_changes_or_is_private_is_not_expected() {
    let scratch = Scratch::new();
    suggest(&scratch, &sound()).expect(0);
    assert!(!scratch.path("deleted").exists());
    let suite = scratch.read("suggested.yaml");
    for words in [
        "# delete_all: it has no readOnlyHint, and its name contains \"delete\"",
        "# create_note: it has no readOnlyHint, and its name contains \"create\"",
        "# query: called, and it ended with an answer that reads as an error: Error: the database",
        "# read_inbox: called, and it ended with a tool error: no inbox",
        "# empty: nothing in its answer can be expected again",
        "# resource note://{id}: a template",
        r#"- {equals: "version 3 of notes"}"#,
        r#"- {json: "$.notes[0]", equals: "milk"}"#,
        r#"- {json: "$.process", "#,
        r"process\\s+[\\d:.,+TZ/()-]+\\s+is\\s+ready",
        r"note\\s+note://1\\s+of\\s+process",
        r#"- id: "greet without name""#,
        r#"- id: "a tool that does not exist""#,
        r#"prompt: "summary""#,
    ] {
        assert!(suite.contains(words), "{words}: {suite}");
    }
    assert!(!suite.contains("ada@"), "{suite}");
}

#[test]
fn a_server_that_answers_nothing_gets_no_suite() {
    let scratch = Scratch::new();
    let tools = "tools: [{name: a, do: [{fail: no}]}, {name: delete_b}]";
    let ran = suggest(&scratch, tools).expect(3);
    assert!(ran.stderr.contains("no answer that a case could expect"), "{}", ran.stderr);
    assert!(!scratch.path("suggested.yaml").exists());
}

#[test]
fn a_server_without_tools_is_measured_by_its_resources() {
    let scratch = Scratch::new();
    let script = format!(
        "capabilities: {{resources: {{}}, prompts: {{}}}}\nmethods:\n{LISTS}  resources/read: [{READ}]\n  \
         prompts/get: [{GET}]\n"
    );
    suggest(&scratch, &script).expect(0);
    test(&scratch, &[]).expect(0);
}

#[test]
fn a_file_is_replaced_only_when_asked_and_secrets_of_the_server_stay_out() {
    let scratch = Scratch::new();
    scratch.write("suggested.yaml", "mine");
    suggest(&scratch, "tools: [{name: a, do: [{text: fine}]}]").expect(2);
    assert_eq!(scratch.read("suggested.yaml"), "mine");
    let script = "tools: [{name: a, do: [{text: \"fine ${env.API_TOKEN}\"}]}]";
    let [program, file] = scratch.server(script);
    let secret = "API_TOKEN=correct-horse-battery";
    let arguments = ["server", "suggest", "-o", "suggested.yaml", "--force", "-e", secret];
    scratch.karat(&[&arguments[..], &["--", program, file]].concat()).expect(0);
    let suite = scratch.read("suggested.yaml");
    assert!(!suite.contains("horse") && !suite.contains("server:"), "{suite}");
    test(&scratch, &["-e", secret, "--", program, file]).expect(0);
}

#[test]
fn one_call_is_proposed_as_a_case() {
    let scratch = Scratch::new();
    let [program, file] = scratch.server(sound());
    let propose = |more: &[&str]| {
        scratch.karat(&[&["server", "propose"], more, &["--", program, file]].concat())
    };
    let ran = propose(&["--tool", "greet", "--input", r#"{"name": "${Ada}"}"#]).expect(0);
    assert!(ran.stdout.contains(r#"input: {name: "$${Ada}"}"#), "{}", ran.stdout);
    scratch.write("suggested.yaml", format!("cases:\n{}", ran.stdout));
    test(&scratch, &["--", program, file]).expect(0);

    let ran = propose(&["--tool", "greet"]).expect(0);
    assert!(ran.stdout.contains("error: tool"), "{}", ran.stdout);
    let ran = propose(&["--resource", "note://7"]).expect(0);
    assert!(ran.stdout.contains(r#"resource: "note://7""#), "{}", ran.stdout);
    let ran = propose(&["--tool", "create_note"]).expect(2);
    assert!(ran.stderr.contains("--allow-destructive"), "{}", ran.stderr);
    assert!(!scratch.path("deleted").exists());
    propose(&["--tool", "create_note", "--allow-destructive"]).expect(0);
    assert!(scratch.path("deleted").exists());
    propose(&["--tool", "empty"]).expect(3);
    propose(&["--tool", "gret"]).expect(2);
}

#[test]
fn suites_ask_for_more_than_tools() {
    let scratch = Scratch::new();
    let [program, file] = scratch.server(sound());
    let run = |cases: &str, code: i32| {
        scratch.write("suggested.yaml", format!("cases:\n{cases}"));
        test(&scratch, &["--", program, file]).expect(code)
    };
    let good = "  - {resource: \"note://1\", expect: {contains: note}}\n  \
         - {prompt: summary, input: {title: x}, expect: [{equals: Sum up x}, {result: \"$.messages[0].role\", equals: user}]}\n  \
         - {method: resources/list, expect: {json: \"$.resources[*].uri\", count: 2}}\n  \
         - {method: initialize, expect: {json: $.serverInfo.name, equals: notes}}\n  \
         - {method: completion/complete, error: protocol}\n  \
         - {tool: version, expect: {not: {contains: Error}}}\n";
    run(good, 0);
    run("  - {resource: \"note://1\", expect: {contains: milk}}\n", 1);
    run("  - {prompt: summary, input: {title: x}, expect: {lacks: Sum}}\n", 1);
    for (case, why) in [
        ("{resource: a, tool: b}", "keep either `tool` or `resource`"),
        ("{resource: a, input: {b: 1}}", "takes no `input`"),
        ("{method: tools/call}", "for tools/call use `tool`"),
        ("{prompt: a, error: tool}", "use `error: protocol`"),
        ("{method: notifications/x}", "no answer"),
        ("{id: x}", "has no `tool`, `resource`, `prompt` or `method`"),
    ] {
        let ran = run(&format!("  - {case}\n"), 2);
        assert!(ran.stderr.contains(why), "{case}: {}", ran.stderr);
    }
}

#[test]
fn a_suite_comes_from_standard_input_and_failed_cases_are_run_again() {
    let scratch = Scratch::new();
    let [program, file] = scratch.server("tools: [{name: a, do: [{text: fine}]}]");
    let server = ["--", program, file];
    let suite = "cases: [{id: good, tool: a, expect: {equals: fine}}, {id: bad, tool: a, expect: {equals: x}}]\n";
    let arguments = [&["server", "test", "-"], &server[..]].concat();
    let ran = Ran::from(scratch.command(&arguments).write_stdin(suite).output().unwrap());
    ran.expect(1);
    scratch.write("suite.yaml", suite);
    let again = |code: i32| {
        let arguments = ["server", "test", "suite.yaml", "--last-failed", "--json"];
        scratch.karat(&[&arguments, &server[..]].concat()).expect(code)
    };
    // The last report is about another suite.
    again(2);
    scratch.karat(&[&["server", "test", "suite.yaml"], &server[..]].concat()).expect(1);
    let ids = |ran: &Ran| {
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let items = report["reports"][0]["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&again(1)), ["bad"]);
    scratch.write("suite.yaml", suite.replace("equals: x", "equals: fine"));
    assert_eq!(ids(&again(0)), ["bad"]);
    assert_eq!(ids(&again(0)), ["bad", "good"]);
    // Of a report that cannot be read the reason is given.
    let later = r#"{"schema":"karat.check/9","reports":[]}"#;
    scratch.write("karat-report/report.json", later);
    again(2).says(&["report.json", "karat.check/9"]);
}

#[test]
fn drift_names_what_changed_since_the_definitions_were_accepted() {
    let scratch = Scratch::new();
    let drift = |script: &str, more: &[&str]| {
        let [program, file] = scratch.server(script);
        let mut arguments = vec!["server", "drift", "accepted.json"];
        arguments.extend(more);
        arguments.extend(["--", program, file]);
        scratch.karat(&arguments)
    };
    let before = "tools: [{name: look, description: Looks., do: [{text: fine}]}]";
    drift(before, &[]).expect(2);
    drift(before, &["--update"]).expect(0);
    let ran = drift(before, &[]).expect(0);
    assert!(ran.stdout.contains("1 tool, no change"), "{}", ran.stdout);

    let reworded = "tools: [{name: look, description: Looks twice., do: [{text: fine}]}]";
    let ran = drift(reworded, &[]).expect(1);
    assert!(ran.stdout.contains("look: /description: was \"Looks.\""), "{}", ran.stdout);
    drift(reworded, &["--fail-on", "error"]).expect(0);
    let ran = drift("tools: [{name: delete_all}]", &["--fail-on", "error"]).expect(1);
    assert!(ran.stdout.contains("[new-destructive-tool]"), "{}", ran.stdout);
    assert!(ran.stdout.contains("[removed-tool]"), "{}", ran.stdout);
    let more = "tools: [{name: look, description: Looks., do: [{text: fine}], inputSchema: \
        {type: object, properties: {path: {type: string}}}}]";
    let ran = drift(more, &[]).expect(1);
    assert!(ran.stdout.contains("a new parameter  [wider-schema]"), "{}", ran.stdout);

    scratch
        .write("canaries.yaml", "cases: [{id: still-fine, tool: look, expect: {equals: fine}}]\n");
    let canaries = ["--canaries", "canaries.yaml"];
    let ran = drift(before, &canaries).expect(0);
    assert!(ran.stdout.contains("1 canary call, no change"), "{}", ran.stdout);
    let other = before.replace("fine", "other");
    let ran = drift(&other, &canaries).expect(1);
    assert!(ran.stdout.contains("still-fine: the text is \"other\""), "{}", ran.stdout);
    assert!(ran.stdout.contains("[canary]"), "{}", ran.stdout);
}

#[test]
fn new_instructions_are_drift() {
    let scratch = Scratch::new();
    let script = |text: &str| {
        format!(
            "methods: {{initialize: [{{result: {{protocolVersion: \"2025-06-18\", capabilities: {{tools: {{}}}}, \
             serverInfo: {{name: a, version: b}}, instructions: {text}}}}}]}}\ntools: [{{name: look}}]\n"
        )
    };
    let drift = |text: &str, more: &[&str]| {
        let [program, file] = scratch.server(script(text));
        let arguments = [&["server", "drift", "accepted.json"], more, &["--", program, file]];
        scratch.karat(&arguments.concat())
    };
    drift("Be quiet.", &["--update"]).expect(0);
    drift("Be quiet.", &[]).expect(0);
    let ran = drift("Be loud.", &[]).expect(1);
    assert!(ran.stdout.contains("[reworded-instructions]"), "{}", ran.stdout);
    scratch.write("suite.yaml", "cases: [{method: initialize, expect: {json: $.instructions, contains: quiet}}, {tool: look}]\n");
    let [program, file] = scratch.server(script("Be quiet."));
    scratch.karat(&["server", "test", "suite.yaml", "--", program, file]).expect(0);
}

#[test]
fn the_demo_server_gets_a_suite() {
    let scratch = Scratch::new();
    let server = ["--", KARAT, "demo-server"];
    let arguments = ["server", "suggest", "-o", "suggested.yaml"];
    scratch.karat(&[&arguments[..], &server[..]].concat()).expect(0);
    test(&scratch, &[]).expect(0);
}

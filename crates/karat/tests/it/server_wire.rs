//! Servers that answer well and break the protocol elsewhere: no call fails for it, and the report says so.

use serde_json::Value;

use crate::common::{Ran, Scratch};

/// A server that answers every call with "ok", and breaks the protocol in a certain way.
fn script(how: &str) -> String {
    let (server, before, after) = match how {
        "json-log" => (
            r#"start: [{line: '{"level": 30, "msg": "starting"}'}]"#,
            r#"{line: '{"level": 30, "msg": "handling"}'},"#,
            "",
        ),
        "text-log" => ("", "{line: INFO handling},", ""),
        "twice" => ("", "", ", {text: ok}"),
        "text-id" => ("", "{answer_as: text},", ""),
        "text-id-at-start" => ("methods: {initialize: [{answer_as: text}, default]}", "", ""),
        "progress" => {
            ("", "{notify: {method: notifications/progress, params: {progress: 1}}},", "")
        }
        "answers-all" => (ANSWERS_ALL, "", ""),
        "slow-a" => (ANSWERS_ALL, "{wait_ms: 1500},", ""),
        "grows" => {
            ("", "{set: {grown: true}}, {notify: {method: notifications/tools/list_changed}},", "")
        }
        other => panic!("unknown server {other}"),
    };
    // `slow-a` and `grows` are about the tool `a` alone.
    let before_b = if matches!(how, "slow-a" | "grows") { "" } else { before };
    format!(
        "name: untidy
revision: 2025-06-18
{server}
tools:
  - {{name: a, description: answers, do: [{before} {{text: ok}} {after}]}}
  - {{name: b, description: answers, do: [{before_b} {{text: ok}} {after}]}}
  - name: late
    description: answers
    listed_when: grown
    outputSchema: {{type: object, properties: {{n: {{type: number}}}}, required: [n]}}
    do: [{{result: {{content: [{{type: text, text: ok}}], structuredContent: {{n: not a number}}}}}}]
"
    )
}

const ANSWERS_ALL: &str =
    "methods: {other: [{error: {code: -32601, message: 'no such method: ${method}'}}]}";

const SUITE: &str = "cases:
  - {id: one, tool: a, input: {}, expect: {contains: ok}}
  - {id: two, tool: b, input: {}, expect: {contains: ok}}
";

/// A run of the suite against the server that behaves so, with what it reports where it does.
fn run(how: &str, suite: &str, more: &[&str]) -> (Ran, Value) {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", suite);
    let server = scratch.server(script(how));
    let test = ["server", "test", "suite.yaml"];
    let ran = scratch.karat(&[&test, more, &["--"], &server].concat());
    let report = std::fs::read_to_string(scratch.path("karat-report/report.json"));
    let report = report.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
    (ran, report["reports"][0].clone())
}

/// The suite passes, and the report and the terminal have this remark.
fn passes_with(how: &str, suite: &str, remark: &str) {
    let (ran, report) = run(how, suite, &[]);
    assert_eq!(ran.code, 0, "{how}: {}{}", ran.stdout, ran.stderr);
    let warnings = report["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning == remark), "{how}: {warnings:#?}");
    let unwrapped = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains(remark), "{how}: {}", ran.stdout);
}

#[test]
fn output_that_is_not_a_message_fails_no_call_and_is_reported() {
    passes_with(
        "json-log",
        SUITE,
        "the server sent JSON that is not a JSON-RPC message (3 times; first: {\"level\": 30, \"msg\": \"starting\"})",
    );
    passes_with(
        "text-log",
        SUITE,
        "the server sent output that is not JSON (2 times; first: INFO handling)",
    );
    passes_with(
        "twice",
        SUITE,
        "the server answered the same request twice (2 times; first: id 3)",
    );
}

#[test]
fn unsolicited_progress_is_reported_and_harmless() {
    passes_with(
        "progress",
        SUITE,
        "the server misused progress notifications (2 times; first: {\"progress\":1})",
    );
}

#[test]
fn errors_without_an_id_fail_no_call_and_are_reported() {
    passes_with(
        "answers-all",
        SUITE,
        "the server sent an error without an id (protocol error -32601: no such method: \
         notifications/initialized)",
    );
    let scratch = Scratch::new();
    let server = scratch.server(script("answers-all"));
    let ran = scratch.karat(&[&["server", "lint", "--"], &server[..]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("note: the server sent an error without an id"), "{}", ran.stderr);
}

#[test]
fn the_case_after_a_time_out_passes() {
    let (ran, report) = run("slow-a", SUITE, &["--timeout", "1s"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let rate = |at: usize| report["items"][at]["metrics"]["pass_rate"].clone();
    assert_eq!((rate(0), rate(1)), (0.0.into(), 1.0.into()), "{:#}", report["items"]);
}

#[test]
fn a_talkative_server_is_not_lost() {
    let suite = "cases: [{id: many, tool: a, repeat: 1500, input: {}, expect: {contains: ok}}]\n";
    passes_with(
        "text-log",
        suite,
        "the server sent output that is not JSON (1500 times; first: INFO handling)",
    );
}

#[test]
fn a_time_out_reports_violations() {
    let (ran, _) = run("text-id", SUITE, &["--timeout", "500ms"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, 3, "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("answered a request that was never sent (2 times"), "{said}");
    assert!(said.contains(r#"id "3""#), "{said}");

    let (ran, _) = run("text-id-at-start", SUITE, &["--start-timeout", "1s"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, 3, "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(r#"answered a request that was never sent (id "1")"#), "{said}");
}

#[test]
fn a_tool_that_is_added_later_is_checked() {
    let suite = "cases:
  - {id: grow, tool: a, input: {}, expect: {contains: ok}}
  - {id: late, tool: late, input: {}, expect: {contains: ok}}
";
    let (ran, report) = run("grows", suite, &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let late = &report["items"][1];
    assert_eq!((&late["id"], &late["metrics"]["schema.output"]), (&"late".into(), &0.0.into()));
    assert!(report["warnings"].to_string().contains("changed its tools during the run"));
}

//! `karat server` end to end: the real binary against its own demo server and against programs that
//! are not servers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{Ran, Scratch, item, metric};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

/// Runs a suite against the demo server over stdio.
fn demo(scratch: &Scratch, suite: &str, more: &[&str]) -> Ran {
    scratch.write("suite.yaml", suite);
    let mut arguments = vec!["server", "test", "suite.yaml"];
    arguments.extend(more);
    arguments.extend(["--", KARAT, "demo-server"]);
    scratch.karat(&arguments)
}

const GOOD: &str = r#"
name: demo
test_cases:
  - {id: sum, tool: add, input: {a: 2, b: 3}, expect: {json: $.sum, equals: 5}, tags: [fast]}
  - {id: plain, tool: echo, input: {text: hello}, expected_output_contains: hello, max_latency_ms: 20000, tags: [fast]}
  - {id: unknown, tool: no_such_tool, input: {}, expected_error: true}
  - {id: code, tool: no_such_tool, error: -32602}
  - {id: bad-arguments, tool: add, input: {a: two, b: 3}, error: tool, expect: {contains: number}}
  - id: note
    tool: keep_note
    input: {text: remember me}
    save: {note: $.id}
    then: [{tool: read_note, input: {id: "${note}"}, expect: {contains: remember me}}]
    teardown: [{tool: forget_note, input: {id: "${note}"}}]
  - {id: forgotten, tool: read_note, input: {id: 1}, expected_behavior: reject}
"#;

#[test]
fn a_recorded_server_answers_again_without_the_server() {
    let scratch = Scratch::new();
    demo(&scratch, GOOD, &["--record", "session.jsonl", "--out", "live"]).expect(0);
    let lines = scratch.read("session.jsonl");
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["schema"], "karat.recording/1");
    let times: Vec<u64> = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["at_ns"].as_u64())
        .collect();
    assert!(times.len() > 20 && times.is_sorted(), "{times:?}");

    let replayed = ["--", KARAT, "demo-server", "--replay", "session.jsonl", "--paced"];
    scratch.karat(&[&["server", "test", "suite.yaml"], &replayed[..]].concat()).expect(0);
    let live: Value = serde_json::from_str(&scratch.read("live/report.json")).unwrap();
    assert_eq!(live["reports"][0]["metrics"], scratch.report()["metrics"]);
    // What was not asked then has no answer now.
    let call = ["server", "call", "--tool", "add", "--input"];
    let known = scratch.karat(&[&call, &[r#"{"b": 3, "a": 2}"#][..], &replayed].concat()).expect(0);
    assert_eq!(known.json()["structuredContent"]["sum"], 5.0);
    let other = scratch.karat(&[&call, &[r#"{"a": 2, "b": 4}"#][..], &replayed].concat()).expect(0);
    assert!(other.stdout.contains("not in the recording"), "{}", other.stdout);
}

#[test]
fn every_command_that_talks_to_a_server_can_be_recorded() {
    let scratch = Scratch::new();
    for words in [
        vec!["lint", "--fail-on", "never"],
        vec!["call", "--tool", "echo", "--input", r#"{"text": "hello"}"#],
        vec!["fuzz", "--tool", "add", "--inputs", "3", "--fail-on", "never"],
        vec!["attack", "--tool", "echo", "--case", "command-injection"],
    ] {
        let command = ["--record", "session.jsonl", "--", KARAT, "demo-server"];
        scratch.karat(&[&["server"], &words[..], &command].concat()).expect(0);
        let lines = scratch.read("session.jsonl");
        assert!(lines.contains("\"method\":\"tools/"), "{words:?}: {lines}");
        std::fs::remove_file(scratch.path("session.jsonl")).unwrap();
    }
    let nowhere = ["server", "lint", "--record", "no/such/x.jsonl", "--", KARAT, "demo-server"];
    scratch.karat(&nowhere).expect(2).says(&["--record", "no/such/x.jsonl"]);
    scratch.write("report.jsonl", "{\"schema\": \"karat.report/1\"}\n");
    scratch.karat(&["demo-server", "--replay", "report.jsonl"]).expect(2).says(&["report.jsonl"]);
}

#[test]
fn a_good_suite_passes_and_says_how_it_was_measured() {
    let scratch = Scratch::new();
    let ran = demo(&scratch, GOOD, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report = scratch.report();
    assert_eq!(metric(&report, "pass_rate")["value"], 1.0);
    assert_eq!(metric(&report, "reliability")["count"], serde_json::json!({"hits": 7, "of": 7}));
    assert_eq!(metric(&report, "schema.output")["value"], 1.0);
    assert_eq!(report["system"]["name"], "karat-demo");
    assert!(report["controls"].as_array().unwrap().iter().all(|control| control["ok"] == true));
}

#[test]
fn the_same_suite_gives_the_same_report_but_for_the_environment() {
    let scratch = Scratch::new();
    let mut reports = Vec::new();
    for _ in 0..2 {
        assert_eq!(demo(&scratch, GOOD, &[]).code, 0);
        let mut report = scratch.report();
        report.as_object_mut().unwrap().remove("environment");
        reports.push(report.to_string());
    }
    assert_eq!(reports[0], reports[1]);
}

#[test]
fn the_same_suite_passes_over_http() {
    let scratch = Scratch::new();
    let mut server = Server::start();
    scratch.write("suite.yaml", GOOD);
    let ran = scratch.karat(&["server", "test", "suite.yaml", "--url", &server.url]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    server.child.kill().unwrap();
}

#[test]
fn a_request_that_hangs_over_http_does_not_end_the_session() {
    let scratch = Scratch::new();
    let server = Server::start();
    scratch.write("suite.yaml", "cases:\n  - {id: slow, tool: wait, input: {ms: 9000}}\n  - {id: after, tool: echo, input: {text: x}}\n");
    let limits = ["--timeout", "1s", "--url", &server.url];
    scratch.karat(&[&["server", "test", "suite.yaml"], &limits[..]].concat()).expect(1);
    let report = scratch.report();
    assert_eq!(item(&report, "slow")["observed"]["ended"], "timeout");
    assert_eq!(item(&report, "after")["metrics"]["pass_rate"], 1.0);
    assert!(!report["warnings"].to_string().contains("started again"), "{report}");
}

/// The demo server over HTTP.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Server {
        let mut child = Command::new(KARAT)
            .args(["demo-server", "--http", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Server { child, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_must_not_pass_fails_with_its_reason() {
    for (case, reason) in [
        (
            "{tool: add, input: {a: 2, b: 3}, expect: {json: $.sum, equals: 6}}",
            "is 5.0, expected 6",
        ),
        ("{tool: add, input: {a: x, b: 3}, expected_output_contains: number}", "tool error"),
        ("{tool: vanished, input: {}, expected_output_contains: x}", "the server has no such tool"),
        ("{tool: vanished, input: {}}", "the server has no such tool"),
        ("{tool: echo, input: {text: x}, expected_error: true}", "expected an error"),
        ("{tool: misshapen}", "breaks its schema at /count"),
        ("{tool: wait, input: {ms: 60}, max_latency_ms: 10}", "more than 10 ms"),
        ("{tool: read_note, input: {id: 99}}", "there is no note 99"),
        ("{tool: no_such_tool, error: tool}", "protocol error -32602"),
    ] {
        let scratch = Scratch::new();
        // With a case that passes, so that something is executed.
        let suite = format!(
            "cases:\n  - {{id: fine, tool: echo, input: {{text: x}}}}\n  - {{id: wrong, {}\n",
            &case[1..]
        );
        let ran = demo(&scratch, &suite, &[]);
        assert_eq!(ran.code, 1, "{case}: {}{}", ran.stdout, ran.stderr);
        let report = scratch.report();
        let reasons = item(&report, "wrong")["observed"]["reasons"].to_string();
        assert!(reasons.contains(reason), "{case}: {reasons}");
        assert_eq!(item(&report, "fine")["metrics"]["pass_rate"], 1.0);
    }
}

#[test]
fn an_unreliable_tool_is_measured_and_held_to_the_target() {
    let scratch = Scratch::new();
    let suite = "cases:\n  - {id: often, tool: flaky, repeat: 20}\n";
    let ran = demo(&scratch, suite, &[]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let report_ = scratch.report();
    assert_eq!(metric(&report_, "reliability")["value"], 0.75);
    assert_eq!(metric(&report_, "pass^20")["value"], 0.0);
    assert!(metric(&report_, "reliability")["interval"]["low"].as_f64().unwrap() < 0.75);

    let ran = demo(&scratch, &format!("target: 0.7\n{suite}"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
}

#[test]
fn a_call_that_takes_too_long_is_a_time_out_and_the_rest_still_runs() {
    let scratch = Scratch::new();
    let suite = "cases:\n  - {id: slow, tool: wait, input: {ms: 9000}}\n  - {id: after, tool: echo, input: {text: x}}\n";
    let ran = demo(&scratch, suite, &["--timeout", "500ms"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let report = scratch.report();
    assert_eq!(item(&report, "slow")["observed"]["ended"], "timeout");
    assert_eq!(item(&report, "after")["metrics"]["pass_rate"], 1.0);
}

#[test]
fn nothing_executed_is_never_a_pass() {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", GOOD);
    scratch.write("empty.yaml", "cases: []\n");
    let demo: &[&str] = &["--", KARAT, "demo-server"];
    let refuses = Refusing::start();
    for (arguments, message) in [
        ([&["suite.yaml"], &["--", "/bin/false"][..]].concat(), "did not"),
        ([&["suite.yaml"], &["--", "/no/such/program"][..]].concat(), "did not start"),
        ([&["empty.yaml"], demo].concat(), "no case matches"),
        ([&["suite.yaml", "--tag", "nothing"], demo].concat(), "no case matches"),
        ([&["suite.yaml", "--case", "nothing"], demo].concat(), "no case matches"),
        ([&["suite.yaml"], &["--url", refuses.url.as_str()][..]].concat(), "406"),
    ] {
        let ran = scratch.karat(&[&["server", "test"], arguments.as_slice()].concat());
        assert_eq!(ran.code, 3, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
}

/// A server that answers every request with 406.
struct Refusing {
    url: String,
}

impl Refusing {
    fn start() -> Refusing {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let mut block = [0; 4096];
                let _ = stream.read(&mut block);
                let _ = stream.write_all(
                    b"HTTP/1.1 406 Not Acceptable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
            }
        });
        Refusing { url }
    }
}

#[test]
fn a_wrong_suite_or_server_is_bad_input() {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", "cases:\n  - {tool: a, expect: {contains: ''}}\n");
    scratch.write("silent.yaml", "cases:\n  - {tool: a}\n");
    for (arguments, message) in [
        (vec!["suite.yaml", "--", KARAT, "demo-server"], "a-1: expectation 1"),
        (vec!["silent.yaml"], "names no server"),
        (vec!["missing.yaml"], "missing.yaml"),
        (vec!["silent.yaml", "-e", "NOVALUE", "--", KARAT], "-e: expected KEY=VALUE"),
        (vec!["silent.yaml", "--protocol", "2020-01-01", "--", KARAT], "unknown MCP revision"),
    ] {
        let ran = scratch.karat(&[&["server", "test"], arguments.as_slice()].concat());
        assert_eq!(ran.code, 2, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_server_entry_of_a_project_is_checked_with_the_others() {
    let scratch = Scratch::new();
    scratch.write("suites/demo.yaml", GOOD);
    let project = format!(
        "[[server]]\nname = \"demo\"\nsuite = \"suites/demo.yaml\"\nserver = {{ command = [{KARAT:?}, \"demo-server\"] }}\n"
    );
    scratch.write("karat.toml", project);
    let ran = scratch.karat(&["check", "-v"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("server · demo"), "{}", ran.stdout);
}

#[test]
fn lint_finds_what_is_wrong_with_definitions_and_nothing_in_the_demo() {
    let scratch = Scratch::new();
    let ran = scratch.karat(&["server", "lint", "--", KARAT, "demo-server"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("8 tools"), "{}", ran.stdout);

    scratch.write(
        "tools.json",
        r#"{"tools": [{"name": "bad name", "inputSchema": {"type": "objekt"}}]}"#,
    );
    let ran = scratch.karat(&["server", "lint", "--tools", "tools.json", "--sarif", "lint.sarif"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    for rule in ["name-invalid", "description-missing", "input-schema-invalid"] {
        assert!(ran.stdout.contains(rule), "{rule}: {}", ran.stdout);
    }
    let sarif: Value = serde_json::from_str(&scratch.read("lint.sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert!(sarif["runs"][0]["results"].as_array().unwrap().len() >= 3);

    let ran = scratch.karat(&["server", "lint", "--tools", "tools.json", "--fail-on", "never"]);
    assert_eq!(ran.code, 0);
    scratch.write("none.json", "[]");
    assert_eq!(scratch.karat(&["server", "lint", "--tools", "none.json"]).code, 3);
}

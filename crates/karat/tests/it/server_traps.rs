//! Runs that must never count as passed, whatever the suite asks for.
//!
//! Each trap is tried with a suite that wants results and with one that only expects errors: a server
//! that does nothing at all gives many of those.

use serde_json::Value;

use crate::common::served::Served;
use crate::common::{Ran, Scratch};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

const WANTS_RESULTS: &str =
    "cases:\n  - {id: one, tool: echo, input: {text: x}, expect: {contains: x}}\n";
const WANTS_ERRORS: &str = "cases:\n  - {id: one, tool: echo, input: {}, expected_error: true}\n  - {id: two, tool: echo, input: {}, expected_behavior: deny}\n";

/// Runs both suites; each must end with the code and say the words.
fn both(arguments: &[&str], code: i32, words: &str) {
    for suite in [WANTS_RESULTS, WANTS_ERRORS] {
        let scratch = Scratch::new();
        scratch.write("suite.yaml", suite);
        let ran = scratch.karat(&[&["server", "test", "suite.yaml"], arguments].concat());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, code, "{suite}: {said}");
        assert!(said.contains(words), "{suite}: {said}");
        assert!(!said.contains("pass_rate"), "nothing was measured: {said}");
    }
}

fn demo(suite: &str) -> (Scratch, Ran) {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", suite);
    let ran = scratch.karat(&["server", "test", "suite.yaml", "--", KARAT, "demo-server"]);
    (scratch, ran)
}

fn reasons(scratch: &Scratch, id: &str) -> String {
    let document: Value = serde_json::from_str(&scratch.read("karat-report/report.json")).unwrap();
    let items = document["reports"][0]["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["id"] == id).unwrap_or_else(|| panic!("no {id}"));
    item["observed"]["reasons"].to_string()
}

#[test]
fn a_program_that_is_not_a_server_is_not_measured() {
    both(&["--", "/bin/false"], 3, "exit status: 1");
    both(&["--", "/bin/true"], 3, "exit status: 0");
    let scratch = Scratch::new();
    let ran = scratch.karat(&["server", "lint", "--", "/bin/false"]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_server_without_tools_is_not_measured() {
    let server = Served::start("methods: {other: [{error: {code: -32602, message: 'no'}}]}");
    both(&["--url", &server.url], 3, "the server offers no tools");
    let scratch = Scratch::new();
    let ran = scratch.karat(&["server", "lint", "--url", &server.url]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("offers no tools"), "{}", ran.stderr);
}

#[test]
fn a_server_that_knows_no_list_of_tools_is_not_measured() {
    let script = "methods: {tools/list: [{error: {code: -32601, message: 'no'}}]}";
    let server = Served::start(script);
    both(&["--url", &server.url], 3, "-32601");
}

#[test]
fn calls_that_are_all_answered_with_a_status_are_not_measured() {
    let server = Served::start("tools: [{name: echo, do: [{status: 406 Not Acceptable}]}]");
    both(&["--url", &server.url], 3, "406");
}

#[test]
fn a_suite_without_cases_is_not_measured() {
    for suite in ["cases: []\n", "test_cases: []\n"] {
        let (_, ran) = demo(suite);
        assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("no case matches"), "{}{}", ran.stdout, ran.stderr);
    }
    // A file without the list at all is not a suite.
    let (_, ran) = demo("name: nothing\n");
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_filter_that_matches_nothing_is_not_measured() {
    both(&["--tag", "nothing", "--", KARAT, "demo-server"], 3, "no case matches");
    both(&["--case", "nothing", "--", KARAT, "demo-server"], 3, "no case matches");
}

#[test]
fn a_tool_error_does_not_satisfy_contains() {
    let (scratch, ran) = demo(
        "cases:\n  - {id: word, tool: read_note, input: {id: 7}, expected_output_contains: note}\n",
    );
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let reasons = reasons(&scratch, "word");
    assert!(reasons.contains("a tool error: there is no note 7, expected a result"), "{reasons}");
}

#[test]
fn a_tool_that_is_not_there_neither_answers_nor_refuses() {
    let suite = "cases:\n  - {id: fine, tool: echo, input: {text: x}, expect: {contains: x}}\n";
    for case in [
        "tool: ecko, input: {text: x}",
        "tool: ecko, input: {text: x}, expect: {contains: ecko}",
        "tool: ecko, input: {text: x}, expected_behavior: reject",
        "tool: ecko, input: {text: x}, expected_behavior: deny, class: injection",
        "tool: ecko, input: {text: x}, error: tool",
    ] {
        let (scratch, ran) = demo(&format!("{suite}  - {{id: gone, {case}}}\n"));
        assert_eq!(ran.code, 1, "{case}: {}{}", ran.stdout, ran.stderr);
        let reasons = reasons(&scratch, "gone");
        assert!(reasons.contains("the server has no such tool"), "{case}: {reasons}");
    }
    // The plain form asks for this very error, and says so: it passes, with a warning.
    let (_, ran) = demo(&format!("{suite}  - {{id: gone, tool: ecko, expected_error: true}}\n"));
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 case calls a tool that the server lacks"), "{}", ran.stdout);
}

//! Servers that answer well and are untidy beside it: no call pays for it, and the report says it.

use serde_json::Value;

use crate::common::{Ran, Scratch};

/// Answers every call with "ok"; what it does beside it is its first argument.
const SERVER: &str = r#"
import json, sys, time
how = sys.argv[1]
grown = False
def say(message):
    sys.stdout.write(message if isinstance(message, str) else json.dumps(message))
    sys.stdout.write("\n")
    sys.stdout.flush()
def answer(number, result):
    say({"jsonrpc": "2.0", "id": number, "result": result})
def tool(name, **more):
    return {"name": name, "description": "answers", "inputSchema": {"type": "object"}, **more}
PROMISE = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
if how == "json-log":
    say({"level": 30, "msg": "starting"})
for line in sys.stdin:
    message = json.loads(line)
    number, method = message.get("id"), message.get("method")
    if method == "initialize":
        if how == "text-id-at-start":
            number = str(number)
        answer(number, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "untidy", "version": "1"}})
    elif method == "tools/list":
        answer(number, {"tools": [tool("a"), tool("b")]
                        + ([tool("late", outputSchema=PROMISE)] if grown else [])})
    elif method == "tools/call":
        name = message["params"]["name"]
        if how == "slow-a" and name == "a":
            time.sleep(1.5)
        if how == "json-log":
            say({"level": 30, "msg": "handling"})
        if how == "text-log":
            say("INFO handling")
        if how == "text-id":
            number = str(number)
        if how == "grows" and name == "a":
            grown = True
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        result = {"content": [{"type": "text", "text": "ok"}]}
        if name == "late":
            result["structuredContent"] = {"n": "not a number"}
        answer(number, result)
        if how == "twice":
            answer(number, result)
    elif how in ("slow-a", "answers-all"):
        say({"jsonrpc": "2.0", "id": number,
             "error": {"code": -32601, "message": "no such method: " + method}})
"#;

const SUITE: &str = "cases:
  - {id: one, tool: a, input: {}, expect: {contains: ok}}
  - {id: two, tool: b, input: {}, expect: {contains: ok}}
";

/// A run of the suite against the server that behaves so, with what it reports where it does.
fn run(how: &str, suite: &str, more: &[&str]) -> (Ran, Value) {
    let scratch = Scratch::new();
    scratch.write("server.py", SERVER);
    scratch.write("suite.yaml", suite);
    let target = ["--", "python3", "server.py", how];
    let ran = scratch.karat(&[&["server", "test", "suite.yaml"], more, &target].concat());
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
fn output_that_is_no_message_costs_no_call_and_is_told() {
    passes_with(
        "json-log",
        SUITE,
        "the server sent JSON that is no message 3 times; the first: {\"level\": 30, \"msg\": \"starting\"}",
    );
    passes_with(
        "text-log",
        SUITE,
        "the server sent output that is no message 2 times; the first: INFO handling",
    );
    passes_with(
        "twice",
        SUITE,
        "the server sent a second answer to the same request 2 times; the first: id 3",
    );
}

#[test]
fn errors_without_an_id_cost_no_call_and_are_told() {
    passes_with(
        "answers-all",
        SUITE,
        "the server sent an error without an id once: protocol error -32601: no such method: \
         notifications/initialized",
    );
    let scratch = Scratch::new();
    scratch.write("server.py", SERVER);
    let ran = scratch.karat(&["server", "lint", "--", "python3", "server.py", "answers-all"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("note: the server sent an error without an id"), "{}", ran.stderr);
}

#[test]
fn the_case_after_a_time_out_does_not_pay_for_it() {
    let (ran, report) = run("slow-a", SUITE, &["--timeout-ms", "1000"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let rate = |at: usize| report["items"][at]["metrics"]["pass_rate"].clone();
    assert_eq!((rate(0), rate(1)), (0.0.into(), 1.0.into()), "{:#}", report["items"]);
}

#[test]
fn a_talkative_server_is_not_taken_for_a_crashed_one() {
    let suite = "cases: [{id: many, tool: a, repeat: 1500, input: {}, expect: {contains: ok}}]\n";
    passes_with(
        "text-log",
        suite,
        "the server sent output that is no message 1500 times; the first: INFO handling",
    );
}

#[test]
fn no_answer_in_time_tells_what_came_instead() {
    let (ran, _) = run("text-id", SUITE, &["--timeout-ms", "500"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, 3, "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("an answer to a request that was never sent 2 times"), "{said}");
    assert!(said.contains(r#"id "3""#), "{said}");

    let (ran, _) = run("text-id-at-start", SUITE, &["--start-timeout-ms", "1000"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, 3, "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(r#"an answer to a request that was never sent (id "1")"#), "{said}");
}

#[test]
fn a_tool_that_comes_later_is_held_to_its_word() {
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

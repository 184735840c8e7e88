//! The depth of `karat server fuzz`: lists, maps and alternatives, arguments that keep to the schema, the data of
//! errors, and a server that does not restart. The servers are small programs with known faults.

use serde_json::{Value, json};

use crate::common::served::Served;
use crate::common::{Ran, Scratch};

/// A server with one tool: the schema that it states, the one that it checks inputs against, and its answer
/// to an input that passes.
fn script(stated: &Value, checked: &Value, how: &str) -> String {
    let answer = match how {
        "answers" => "{text: done}",
        "ends on a negative number" => "{when: {negative: true, then: [{exit: 2}]}}, {text: done}",
        "fails" => {
            r#"{error: {code: -32000, message: 'no', data: {more: ["Traceback (most recent call last):\n  File \"server.py\", line 56, in done\n    [][0]\nIndexError: list index out of range\n"]}}}"#
        }
        "leaks" => "{error: {code: -32000, message: 'no', data: '${environment_by_value}'}}",
        other => panic!("unknown server {other}"),
    };
    format!(
        "tools: [{{name: look, description: Looks., inputSchema: {stated}, \
         do: [{{check: {checked}}}, {answer}]}}]"
    )
}

/// Fuzzes a tool that states one schema and checks its inputs against another.
fn fuzz(stated: &Value, checked: &Value, how: &str) -> (Ran, Value) {
    let scratch = Scratch::new();
    let server = scratch.server(script(stated, checked, how));
    let fuzz = ["server", "fuzz", "--json", "--timeout", "5s", "--"];
    let ran = scratch.karat(&[&fuzz[..], &server].concat());
    let report = ran.report();
    (ran, report)
}

/// The findings of the first tool that are of a rule.
fn findings(report: &Value, rule: &str) -> Vec<Value> {
    let all = report["items"][0]["observed"]["findings"].as_array().unwrap();
    all.iter().filter(|finding| finding["rule"] == rule).cloned().collect()
}

/// An object with these properties, all of them demanded.
fn object(properties: &Value) -> Value {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// A schema without its bounds above.
fn unbounded(schema: &Value) -> Value {
    let text = schema.to_string().replace(r#""maximum":5"#, r#""title":"free""#);
    serde_json::from_str(&text).unwrap()
}

/// Schemas with a number of at most 5 somewhere inside.
fn nested() -> Vec<(&'static str, Value)> {
    let number = json!({"type": "integer", "maximum": 5});
    let entry = object(&json!({"k": number, "s": {"type": "string"}}));
    let unique = json!({"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "uniqueItems": true});
    let map =
        json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1});
    vec![
        ("a list", object(&json!({"l": {"type": "array", "items": entry}}))),
        (
            "a list inside",
            object(&json!({"o": object(&json!({"l": {"type": "array", "items": entry}}))})),
        ),
        ("a map", object(&json!({"m": {"type": "object", "additionalProperties": number}}))),
        ("another alternative", object(&json!({"x": {"anyOf": [{"type": "null"}, entry]}}))),
        (
            "the last alternative",
            object(&json!({"x": {"oneOf": [{"type": "string"}, {"type": "boolean"}, entry]}})),
        ),
        ("with a list of different values", object(&json!({"n": number, "tags": unique}))),
        ("with a map that must not be empty", object(&json!({"n": number, "labels": map}))),
        (
            "with a text that must be another",
            object(&json!({"n": number, "w": {"type": "string", "not": {"const": "text"}}})),
        ),
    ]
}

#[test]
fn a_bound_that_is_not_checked_is_found_however_deep_it_lies() {
    for (place, schema) in nested() {
        let (ran, report) = fuzz(&schema, &unbounded(&schema), "answers");
        assert_eq!(ran.code, 1, "{place}: {}", ran.stderr);
        let taken = findings(&report, "fuzz-accepted-invalid");
        let small = |finding: &Value| finding["input"].as_str().unwrap().contains(":6");
        assert!(taken.len() == 1 && small(&taken[0]), "{place}: {taken:?}");
        let (_, report) = fuzz(&schema, &schema, "ends on a negative number");
        let crash = findings(&report, "fuzz-crash");
        assert!(crash.len() == 1 && crash[0]["reproduced"] == true, "{place}: {crash:?}");
    }
}

#[test]
fn a_server_that_checks_everything_has_no_finding_however_deep_its_schema_is() {
    for (place, schema) in nested() {
        let (ran, report) = fuzz(&schema, &schema, "answers");
        assert_eq!(ran.code, 0, "{place}: {}", ran.stderr);
        let all = &report["items"][0]["observed"]["findings"];
        assert_eq!(all, &json!([]), "{place}");
        let counts = &report["items"][0]["observed"]["counts"];
        assert!(counts["valid"].as_u64() > Some(10), "{place}: {counts}");
        assert!(counts["calls"].as_u64() <= Some(200), "{place}: {counts}");
    }
}

#[test]
fn a_schema_that_no_input_keeps_is_named_and_noted() {
    let never = object(&json!({"n": {"type": "integer", "minimum": 9, "maximum": 5}}));
    let (ran, report) = fuzz(&never, &never, "answers");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let noted = findings(&report, "fuzz-never-succeeded");
    assert!(noted.len() == 1 && noted[0]["seen"] == 0, "{noted:?}");
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("look: no input that matches its schema could be generated"),
        "{warnings}"
    );
}

#[test]
fn the_data_of_an_error_is_looked_into() {
    let schema = object(&json!({"s": {"type": "string"}}));
    let (ran, report) = fuzz(&schema, &schema, "fails");
    let trace = findings(&report, "fuzz-stack-trace");
    assert!(ran.code == 1 && trace.len() == 1, "{report}");
    assert!(trace[0]["answer"].as_str().unwrap().contains("IndexError"), "{trace:?}");
    let (ran, report) = fuzz(&schema, &schema, "leaks");
    let secret = findings(&report, "fuzz-leaked-secret");
    assert!(ran.code == 1 && secret.len() == 1, "{report}");
    assert!(secret[0]["answer"].as_str().unwrap().starts_with("(not shown"), "{secret:?}");
}

#[test]
fn a_server_at_an_address_that_ends_is_blamed_for_the_call_that_ended_it() {
    let scratch = Scratch::new();
    let server = Served::fragile(&["look", "see"]);
    let fuzz = ["server", "fuzz", "--json", "--timeout", "5s", "--url"];
    let ran = scratch.karat(&[&fuzz[..], &[&server.url]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let report = ran.report();
    let crash = findings(&report, "fuzz-crash");
    assert_eq!((crash.len(), &crash[0]["seen"]), (1, &json!(1)), "{crash:?}");
    let message = crash[0]["message"].as_str().unwrap();
    for said in ["did not come back", "a huge text", "not sent again because the server is gone"] {
        assert!(message.contains(said), "{said}: {message}");
    }
    assert!(crash[0]["input"].as_str().unwrap().starts_with(r#"{"text":"aaaa"#), "{crash:?}");
    for taken in findings(&report, "fuzz-accepted-invalid") {
        let message = taken["message"].as_str().unwrap();
        assert!(message.contains("not sent again") && !message.contains("not when"), "{message}");
    }
    assert_eq!(report["items"].as_array().unwrap().len(), 1);
    let warnings = report["warnings"].to_string();
    for said in ["the server did not come back after this call", "1 tool was not reached: see"] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
    assert!(!warnings.contains("again"), "{warnings}");
}

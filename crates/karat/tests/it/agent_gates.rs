//! A gate over traces is not fooled by runs that failed, by flags without effect, or by expectations without
//! observations.

use crate::common;

use common::{Ran, Scratch, metric, value};
use serde_json::Value;

const RIGHT: &str = r#"{"id":"right","calls":[],"output":"5","expect":{"answer":{"number":5}}}"#;

/// The right trace, and nine runs that could not be made.
fn mostly_failed() -> String {
    let failed = |n: usize| {
        format!(
            r#"{{"id":"f{n}","calls":[],"failed":{{"class":"endpoint","message":"dead"}},"expect":{{"answer":{{"number":5}}}}}}"#
        )
    };
    let mut lines = vec![RIGHT.to_owned()];
    lines.extend((0..9).map(failed));
    lines.join("\n")
}

/// The result of `karat agent score` on these lines, with further arguments.
fn score(lines: &str, more: &[&str]) -> Ran {
    let scratch = Scratch::new();
    scratch.write("t.jsonl", lines);
    let mut arguments = vec!["agent", "score", "t.jsonl"];
    arguments.extend(more);
    scratch.karat(&arguments)
}

/// The only report of these lines.
fn scored(lines: &str, more: &[&str]) -> Value {
    let mut arguments = vec!["--json"];
    arguments.extend(more);
    score(lines, &arguments).expect(0).report()
}

#[test]
fn means_are_held_to_floors_and_ceilings() {
    let wrong = RIGHT.replace("\"id\":\"right\"", "\"id\":\"wrong\"").replace("\"5\"", "\"6\"");
    let lines = format!("{RIGHT}\n{wrong}\n");
    for one_pass in ["--means", "--per-item"] {
        let gated = |gate: [&str; 2]| score(&lines, &[one_pass, gate[0], gate[1]]);
        gated(["--min", "task.success=0.5"]).expect(0);
        let failed = gated(["--min", "task.success=0.6"]).expect(1);
        assert!(failed.stdout.contains("task.success = 0.5000 is below the minimum 0.6"));
        gated(["--max", "answer.correct=0.4"]).expect(1);
        // Undefined keeps no limit; what is not known, or not computed in one pass, is an error.
        gated(["--min", "gauge.compliance=0.1"]).expect(1);
        gated(["--min", "no.such=1"]).expect(2).says(&["no.such"]);
        gated(["--min", "gauge.effectiveness=0"]).expect(2).says(&["gauge.effectiveness"]);
    }
    let json = score(&lines, &["--means", "--json", "--min", "task.success=0.6"]).expect(1).json();
    assert_eq!(json["gate"]["verdict"], "fail");
    assert_eq!(json["gate"]["checks"][0]["value"], 0.5);
}

#[test]
fn means_have_the_shape_of_their_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/traces.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let fits = |document: &Value| {
        let errors: Vec<String> = validator.iter_errors(document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {document:#}");
    };
    let document = score(RIGHT, &["--per-item", "--json"]).expect(0).json();
    fits(&document);
    assert_eq!(document["schema"], "karat.traces/1");
    assert_eq!(document["items"][0]["scores"]["answer.correct"], 1.0);
    let gated = score(RIGHT, &["--means", "--json", "--min", "task.success=0.5"]).expect(0).json();
    fits(&gated);
    assert_eq!(gated["gate"]["verdict"], "pass");
    assert!(gated.get("items").is_none());
}

#[test]
fn what_only_a_report_can_do_is_refused_in_one_pass() {
    for flags in [
        &["--baseline", "none.json"][..],
        &["--baseline", "none.json", "--max-drop", "task.success=0"],
        &["-o", "r.html"],
        &["--out", "elsewhere"],
        &["--name", "x"],
        &["--verdicts", "v.jsonl"],
        &["--before", "t.jsonl"],
    ] {
        for one_pass in ["--means", "--per-item"] {
            let mut arguments = vec![one_pass];
            arguments.extend(flags);
            let refused = score(RIGHT, &arguments).expect(2);
            assert!(refused.stderr.contains("cannot be used with"), "{}", refused.stderr);
        }
    }
}

#[test]
fn means_of_samples_honour_every_flag() {
    let sample = r#"{"id":"a","user_input":[{"type":"ai","content":"","tool_calls":[{"name":"add","args":{"a":1}}]}],"reference_tool_calls":[{"name":"add","args":{"a":2}}]}"#;
    let ragas = |lines: &str, more: &[&str]| {
        let mut arguments = vec!["--format", "ragas", "--means"];
        arguments.extend(more);
        score(lines, &arguments)
    };
    ragas(sample, &["--min", "calls.exact=0"]).expect(0);
    ragas(sample, &["--min", "calls.exact=1"]).expect(1);
    ragas(sample, &["--max-malformed", "2"]).expect(2).says(&["--max-malformed"]);
    ragas(sample, &["--tasks", "none.jsonl"]).expect(2).says(&["none.jsonl"]);
    ragas(sample, &["--tools", "none.json"]).expect(2).says(&["none.json"]);
    let half = format!("{sample}\n{{}}\n");
    ragas(&half, &[]).expect(2);
    ragas(&half, &["--max-malformed", "0.4"]).expect(2);
    let read = ragas(&half, &["--max-malformed", "0.5"]).expect(0);
    assert!(read.stdout.contains("1 record could not be read"), "{}", read.stdout);
    // The metric of the peer by the id that a report has.
    let deepeval = r#"{"tools_called":[{"name":"a"}],"expected_tools":[{"name":"b"}]}"#;
    let least = "deepeval.tool_correctness=0.5";
    score(deepeval, &["--format", "deepeval", "--means", "--min", least]).expect(1);
}

#[test]
fn runs_that_could_not_be_made_do_not_pass_a_gate() {
    let lines = mostly_failed();
    for more in [&["--min", "task.success=0.9"][..], &[], &["--means"], &["--max-errors", "0.8"]] {
        score(&lines, more).not_measured(&["9 of 10 runs have no usable answer", "f0", "dead"]);
    }
    for one_pass in [&["--max-errors", "0.9"][..], &["--max-errors", "0.9", "--means"]] {
        score(&lines, one_pass).expect(0);
    }
    // Those that were allowed are left out, not scored as 0.
    let means = score(&lines, &["--means", "--json", "--max-errors", "0.9"]).expect(0).json();
    assert_eq!(value(&means, "task.success"), Some(1.0));
    assert_eq!(value(&scored(&lines, &["--max-errors", "0.9"]), "task.success"), Some(1.0));
    // Nothing at all is not a measurement, whatever is allowed.
    let none: Vec<&str> = lines.lines().skip(1).collect();
    for more in [&["--max-errors", "1"][..], &["--max-errors", "1", "--means"]] {
        score(&none.join("\n"), more).not_measured(&["none of 9 runs"]);
    }
    score(RIGHT, &["--max-errors", "1.5"]).expect(2).says(&["max_errors"]);
}

#[test]
fn a_project_does_not_pass_on_runs_that_could_not_be_made() {
    let scratch = Scratch::new();
    let lines = mostly_failed();
    let good: Vec<String> = lines
        .lines()
        .map(|line| {
            line.replace(r#""failed":{"class":"endpoint","message":"dead"}"#, r#""output":"5""#)
        })
        .collect();
    let project = "[[agent]]\nname = \"calls\"\ntraces = [\"t.jsonl\"]\nbaseline = \"b.json\"\n\n\
                   [agent.gate]\nALLOW\n[agent.gate.metrics]\n\"task.success\" = { max_drop = 0.0 }\n";
    scratch.write("karat.toml", project.replace("ALLOW", ""));
    scratch.write("t.jsonl", good.join("\n"));
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["agent", "check"]).expect(0);
    scratch.write("t.jsonl", &lines);
    for command in [&["agent", "check"][..], &["check"], &["baseline", "update"]] {
        scratch.karat(command).not_measured(&["9 of 10 runs have no usable answer"]);
    }
    scratch.write("karat.toml", project.replace("ALLOW", "max_errors = 0.9"));
    scratch.karat(&["agent", "check"]).expect(0);
}

#[test]
fn traces_without_a_single_score_are_not_measured() {
    let bare = r#"{"id":"a","calls":[]}"#;
    for more in [&[][..], &["--means"]] {
        score(bare, more).not_measured(&["no score is defined", "nothing is expected"]);
        let unseen = r#"{"id":"a","calls":[],"expect":{"state":[{"path":"x","exists":false}]}}"#;
        score(unseen, more).not_measured(&["the state was not recorded"]);
    }
}

#[test]
fn a_state_that_was_not_recorded_keeps_no_floor() {
    let lines = r#"{"id":"a","calls":[],"expect":{"state":[{"path":"$.note","exists":false}]}}
{"id":"b","calls":[],"output":"5","expect":{"answer":{"number":5}}}"#;
    let report = scored(lines, &[]);
    assert_eq!(value(&report, "state.reached"), None);
    assert_eq!(value(&report, "task.success"), Some(1.0));
    let undefined = &report["items"][0]["observed"]["undefined"];
    assert_eq!(undefined["task.success"], "the state was not recorded");
    score(lines, &["--min", "state.reached=0.5"]).expect(1);
    let null = r#"{"id":"n","calls":[],"state":{"x":null},"expect":{"state":[{"path":"$.x","equals":null}]}}"#;
    score(null, &["--min", "state.reached=1"]).expect(0);
}

#[test]
fn a_call_that_may_be_the_forbidden_one_keeps_no_ceiling() {
    let lines = r#"{"id":"a","calls":[{"name":"transfer"}],"output":"done","expect":{"forbidden":[{"name":"transfer","arguments":{"to":"mallory"}}],"answer":{"contains":"done"}}}"#;
    for one_pass in [&[][..], &["--means"]] {
        for gate in [["--max", "calls.forbidden=0"], ["--min", "task.success=1"]] {
            let mut arguments = gate.to_vec();
            arguments.extend(one_pass);
            let failed = score(lines, &arguments).expect(1);
            assert!(failed.stdout.contains("arguments were not recorded"), "{}", failed.stdout);
        }
    }
}

#[test]
fn tasks_without_a_trace_are_reported() {
    let scratch = Scratch::new();
    let task = |n: usize| format!(r#"{{"id":"t{n}","expect":{{"answer":{{"number":5}}}}}}"#);
    let trace = |n: usize| format!(r#"{{"id":"t{n}","calls":[],"output":"5"}}"#);
    let lines =
        |of: &dyn Fn(usize) -> String, n: usize| (0..n).map(of).collect::<Vec<_>>().join("\n");
    scratch.write("tasks.jsonl", lines(&task, 10));
    scratch.write("t.jsonl", lines(&trace, 3));
    let told = "7 of 10 tasks have no trace and no score (first: \"t3\")";
    let score = ["agent", "score", "t.jsonl", "--tasks", "tasks.jsonl"];
    for more in [&[][..], &["--means"]] {
        let ran = scratch.karat(&[&score[..], more].concat()).expect(0);
        let words: Vec<&str> = ran.stdout.split_whitespace().collect();
        assert!(words.join(" ").contains(told), "{}", ran.stdout);
    }
    scratch.write("t.jsonl", lines(&trace, 10));
    for more in [&[][..], &["--means"]] {
        let ran = scratch.karat(&[&score[..], more].concat()).expect(0);
        assert!(!ran.stdout.contains("have no trace"), "{}", ran.stdout);
    }
}

#[test]
fn a_report_says_how_often_tasks_were_run() {
    let trace = |id: &str, run: usize, output: &str| {
        RIGHT
            .replace("\"right\"", &format!("\"{id}\",\"run\":{run}"))
            .replace("\"output\":\"5\"", &format!("\"output\":\"{output}\""))
    };
    let even = [("a", 1, "5"), ("a", 2, "5"), ("b", 1, "6"), ("b", 2, "5")];
    let lines = |of: &[(&str, usize, &str)]| {
        of.iter().map(|(id, run, output)| trace(id, *run, output)).collect::<Vec<_>>().join("\n")
    };
    let repeated = scored(&lines(&even), &[]);
    assert_eq!(repeated["runs"], 2);
    assert_eq!(metric(&repeated, "task.success")["per_run"], serde_json::json!([0.5, 1.0]));
    assert_eq!(metric(&repeated, "pass^2")["per_run"], serde_json::json!([]));
    // Where some tasks were run more often, what every task was run counts.
    let uneven = scored(&lines(&even[..3]), &[]);
    assert_eq!(uneven["runs"], 1);
    let success = metric(&uneven, "task.success");
    assert_eq!(success["per_run"], serde_json::json!([success["value"]]));
    let once = scored(&lines(&[even[0], even[2]]), &[]);
    assert_eq!(once["runs"], 1);
    assert_eq!(metric(&once, "task.success")["per_run"], serde_json::json!([0.5]));
}

#[test]
fn controls_do_not_doubt_an_agent_that_is_right() {
    for lines in [
        // Two tasks that accept each other's calls.
        r#"{"id":"a","calls":[{"name":"f","arguments":{"unit":"C"}}],"expect":{"calls":[{"name":"f","accept":{"unit":["C","K"]}}]}}
{"id":"b","calls":[{"name":"f","arguments":{"unit":"K"}}],"expect":{"calls":[{"name":"f","accept":{"unit":["K","C"]}}]}}"#,
        // A choice of which one is forbidden, and a tool of which one server's is.
        r#"{"id":"a","calls":[{"name":"f","arguments":{"unit":"K"}}],"expect":{"calls":[{"name":"f","accept":{"unit":["C","K"]}}],"forbidden":[{"name":"f","arguments":{"unit":"C"}}]}}"#,
        r#"{"id":"a","calls":[{"name":"f","server":"near","arguments":{}}],"expect":{"calls":["f"],"forbidden":["far:f"]}}"#,
    ] {
        let report = scored(lines, &["--min", "task.success=1"]);
        let controls = report["controls"].as_array().unwrap();
        assert!(controls.iter().all(|control| control["ok"] == true), "{controls:?}");
    }
}

#[test]
fn an_unsatisfiable_expectation_is_refused() {
    let expect = r#""expect":{"calls":[{"name":"f"}],"forbidden":["f"]}"#;
    let trace = format!(r#"{{"id":"both-ways","calls":[],{expect}}}"#);
    let words = ["t.jsonl:2", "expect.forbidden[0]", "both-ways"];
    score(&format!("{RIGHT}\n{trace}"), &[]).expect(2).says(&words);
    score(&format!("{RIGHT}\n{trace}"), &["--means"]).expect(2).says(&words);
    let scratch = Scratch::new();
    scratch.write("t.jsonl", RIGHT);
    scratch.write("tasks.jsonl", format!(r#"{{"id":"both-ways",{expect}}}"#));
    let refused = scratch.karat(&["agent", "score", "t.jsonl", "--tasks", "tasks.jsonl"]).expect(2);
    refused.says(&["tasks.jsonl:1", "expect.forbidden[0]", "both-ways"]);
}

#[test]
fn a_gate_without_a_meaning_hides_no_other_entry() {
    let scratch = Scratch::new();
    scratch.write("t.jsonl", RIGHT);
    let entry = |name: &str, gate: &str| {
        format!(
            "[[agent]]\nname = \"{name}\"\ntraces = [\"t.jsonl\"]\n[agent.gate.metrics]\n{gate}\n"
        )
    };
    let wrong = entry("wrong", "\"task.success on case=nothing\" = { min = 0.5 }");
    let right = entry("right", "\"task.success\" = { min = 0.5 }");
    scratch.write("karat.toml", wrong + &right);
    let ran = scratch.karat(&["check"]).expect(2);
    for message in ["wrong: gate: no slice \"case=nothing\"", "ended with exit code 1"] {
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    let document: Value = serde_json::from_str(&scratch.read("karat-report/report.json")).unwrap();
    assert_eq!(document["verdict"], "fail");
    let reports = document["reports"].as_array().unwrap();
    let verdicts: Vec<_> = reports.iter().map(|report| &report["gate"]["verdict"]).collect();
    assert_eq!(verdicts, ["fail", "pass"]);
    assert_eq!(reports[0]["gate"]["checks"][0]["rule"], "policy");
}

//! `karat server load` end to end, against the demo server and against servers that fail.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Ran, Scratch, metric};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

fn load(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let mut all = vec!["server", "load"];
    all.extend(arguments);
    all.extend(["--", KARAT, "demo-server"]);
    scratch.karat(&all)
}

const ECHO: [&str; 4] = ["--tool", "echo", "--input", r#"{"text": "hello"}"#];

#[test]
#[cfg_attr(karat_portable, ignore = "the processor time is not known")]
fn a_closed_loop_makes_as_many_calls_as_were_asked_for() {
    let scratch = Scratch::new();
    let arguments = [
        &ECHO[..],
        &["--count", "300", "--concurrency", "4", "--connections", "2", "--warm-up", "20"],
    ];
    load(&scratch, &arguments.concat()).expect(0);
    let report = scratch.report();
    assert_eq!((&report["evaluation"], &report["name"]), (&"server".into(), &"load".into()));
    assert_eq!(metric(&report, "error_rate")["count"], serde_json::json!({"hits": 0, "of": 300}));
    assert_eq!(metric(&report, "latency.p50")["n"], 300);
    let value = |id: &str| metric(&report, id)["value"].as_f64().unwrap();
    assert!(value("throughput") > 0.0 && value("harness_cpu_us") > 0.0);
    let quantiles = ["latency.p50", "latency.p90", "latency.p99", "latency.max"];
    assert!(quantiles.is_sorted_by(|less, more| value(less) <= value(more)));
    let p50 = metric(&report, "latency.p50");
    let interval = |end: &str| p50["interval"][end].as_f64().unwrap();
    assert_eq!(p50["interval"]["method"], "order statistics");
    assert!(interval("low") <= value("latency.p50") && value("latency.p50") <= interval("high"));
    // 300 calls do not reach a p99.9, and say nothing about how high their p99 may be.
    let beyond = metric(&report, "latency.p99.9");
    assert_eq!(beyond["value"], Value::Null);
    assert_eq!(beyond["undefined"], "it needs at least 1000 timed calls, and there are 300");
    assert_eq!(metric(&report, "latency.p99")["interval"], Value::Null);
    let items = report["items"].as_array().unwrap();
    let counted: u64 = items.iter().map(|item| item["observed"]["ok"].as_u64().unwrap()).sum();
    assert_eq!(counted, 300);
}

#[test]
fn an_open_loop_counts_the_time_that_calls_waited_for_their_turn() {
    let scratch = Scratch::new();
    // One at a time in the server: with 50 ms each, 40 in a second cannot be kept up with.
    let [program, script] = scratch.server(SLOW);
    let ran = scratch.karat(&[
        "server",
        "load",
        "--tool",
        "t",
        "--rate",
        "40",
        "--duration",
        "1s",
        "--warm-up",
        "0",
        "--",
        program,
        script,
    ]);
    ran.expect(0);
    let report = scratch.report();
    let max = metric(&report, "latency.max")["value"].as_f64().unwrap();
    // The last of 40 calls is answered after 2 s and was due at 1 s.
    assert!(max > 900.0, "{max}");
    assert_eq!(metric(&report, "error_rate")["count"]["of"], 40);
}

/// A server that takes one call after the other, 50 ms each.
const SLOW: &str = "tools: [{name: t, do: [{wait_ms: 50}, {result: {content: []}}]}]";

#[test]
fn a_suite_is_the_mix_and_its_endings_are_judged() {
    let scratch = Scratch::new();
    scratch.write(
        "suite.yaml",
        "setup: [{tool: keep_note, input: {text: kept}, save: {note: $.id}}]\n\
         cases:\n\
         - {id: sum, tool: add, input: {a: 1, b: 2}, weight: 3}\n\
         - {id: note, tool: read_note, input: {id: '${note}'}}\n\
         - {id: unknown, tool: no_such_tool, error: -32602}\n\
         - {id: flaky, tool: flaky}\n",
    );
    let ran = load(
        &scratch,
        &["suite.yaml", "--count", "400", "--warm-up", "0", "--max-error-rate", "0.01"],
    );
    ran.expect(1);
    let report = scratch.report();
    let slices = report["slices"].as_array().unwrap();
    let slice = |by: &str, value: &str| {
        let found = slices.iter().find(|slice| slice["by"] == by && slice["value"] == value);
        found.unwrap_or_else(|| panic!("no {value}"))["metrics"].clone()
    };
    assert!(slice("class", "tool_error")[0]["count"]["hits"].as_u64().unwrap() > 0);
    let errors =
        |call: &str| slice("call", call).as_array().unwrap().last().unwrap()["count"].clone();
    for call in ["sum", "note", "unknown"] {
        assert_eq!(errors(call)["hits"], 0, "{call}");
    }
    assert!(errors("sum")["of"].as_u64() > errors("note")["of"].as_u64());
    assert!(errors("flaky")["hits"].as_u64().unwrap() > 0);
    // The same seed, the same calls.
    load(&scratch, &["suite.yaml", "--count", "400", "--warm-up", "0"]).expect(0);
    let again = scratch.report();
    let counts = |report: &Value| {
        let of_calls =
            report["slices"].as_array().unwrap().iter().filter(|slice| slice["by"] == "call");
        of_calls.map(|slice| slice["metrics"][5]["n"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(counts(&report), counts(&again));
}

#[test]
fn a_gate_on_the_median_is_kept() {
    let scratch = Scratch::new();
    let wait = ["--tool", "wait", "--input", r#"{"ms": 20}"#, "--count", "8", "--warm-up", "0"];
    load(&scratch, &[&wait[..], &["--max-p50", "5ms"]].concat()).expect(1);
    load(&scratch, &[&wait[..], &["--max-p50", "20s"]].concat()).expect(0);
}

#[test]
fn the_highest_load_is_found_and_every_step_is_reported() {
    let scratch = Scratch::new();
    // 20 ms each, all at once: any concurrency that is tried holds or not by the condition alone.
    let wait = ["--tool", "wait", "--input", r#"{"ms": 20}"#, "--warm-up", "0"];
    let search = ["--find-max", "p50<5ms", "--concurrency", "2", "--duration", "100ms"];
    load(&scratch, &[&wait[..], &search].concat()).expect(0);
    let found = scratch.report();
    let most = metric(&found, "max_concurrency");
    assert!(most["value"].is_null() && most["undefined"].is_string(), "{most}");

    let [program, script] = scratch.server(SLOW);
    let ran = scratch.karat(&[
        "server",
        "load",
        "--tool",
        "t",
        "--warm-up",
        "0",
        "--find-max",
        "p99<10s",
        "--rate",
        "2",
        "--duration",
        "1s",
        "--",
        program,
        script,
    ]);
    ran.expect(0);
    let found = scratch.report();
    // 20 in a second is what it can do.
    let most = metric(&found, "max_rate")["value"].as_f64().unwrap();
    assert!((2.0..=22.0).contains(&most), "{most}");
    let steps =
        found["items"].as_array().unwrap().iter().filter(|item| item["tags"]["kind"] == "step");
    assert!(steps.count() >= 3);
}

#[test]
fn a_server_that_falls_over_is_started_again_and_the_calls_are_counted() {
    let scratch = Scratch::new();
    let falls = SLOW.replace("{wait_ms: 50}", "{when: {count: 5, then: [{exit: 1}]}}");
    let [program, script] = scratch.server(falls);
    let ran = scratch.karat(&[
        "server",
        "load",
        "--tool",
        "t",
        "--count",
        "20",
        "--concurrency",
        "1",
        "--warm-up",
        "0",
        "--max-error-rate",
        "0.5",
        "--",
        program,
        script,
    ]);
    // It does not pass, however many errors are allowed.
    let ran = ran.expect(1);
    assert!(ran.stdout.contains("the server ended during 4 of 20 calls"), "{}", ran.stdout);
    assert!(ran.stdout.contains("started again"), "{}", ran.stdout);
    let crashes = &scratch.report()["slices"][0];
    assert_eq!(
        (&crashes["value"], &crashes["metrics"][0]["count"]["hits"]),
        (&"crash".into(), &4.into())
    );
}

#[test]
fn nothing_answered_is_not_measured() {
    let scratch = Scratch::new();
    let count = ["--count", "3", "--warm-up", "0", "--timeout", "50ms"];
    let hang = ["--tool", "wait", "--input", r#"{"ms": 5000}"#];
    let ran = load(&scratch, &[&hang[..], &count].concat()).expect(3);
    assert!(ran.stderr.contains("nothing was executed"), "{}", ran.stderr);
    scratch.karat(&["server", "load", "--tool", "t", "--", "/bin/false"]).expect(3);
    scratch.write("empty.yaml", "cases: []\n");
    load(&scratch, &["empty.yaml"]).expect(3);
    assert!(!scratch.path("karat-report/report.json").exists());
}

#[test]
fn calls_that_all_end_wrongly_are_not_measured() {
    let scratch = Scratch::new();
    let count = ["--count", "20", "--warm-up", "0"];
    load(&scratch, &[&["--tool", "ech"], &count[..]].concat()).expect(2).says(&["\"ech\"", "echo"]);
    let without_text = [&["--tool", "echo"], &count[..]].concat();
    load(&scratch, &without_text).expect(3).says(&["none of 20 calls succeeded"]);
    assert!(!scratch.path("karat-report/report.json").exists());
}

#[test]
fn a_server_at_an_address_that_ends_under_load_is_not_measured() {
    let scratch = Scratch::new();
    let mut server = Command::new(KARAT)
        .args(["demo-server", "--http", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let url = BufReader::new(server.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let arguments = [&["server", "load"], &ECHO[..], &["--warm-up", "0", "--duration", "8s"]];
    let arguments = [&arguments.concat()[..], &["--url", &url]].concat();
    let karat = Command::new(KARAT)
        .args(&arguments)
        .current_dir(scratch.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Long enough to be under load on a busy machine too.
    std::thread::sleep(std::time::Duration::from_secs(4));
    server.kill().unwrap();
    server.wait().unwrap();
    let ended = karat.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{words}");
    assert!(words.contains("lost under load"), "{words}");
}

#[test]
fn a_server_that_does_not_come_back_is_not_started_for_every_call_that_waits() {
    let scratch = Scratch::new();
    // It starts once, and exits at the first call.
    let once = "{log: starts, start: [{when: {min_start: 2, then: [{exit: 1}]}}], \
                tools: [{name: t, do: [{exit: 1}]}]}";
    let server = scratch.server(once);
    let load = ["server", "load", "--tool", "t", "--rate", "200", "--duration", "1s"];
    scratch.karat(&[&load[..], &["--warm-up", "0", "--"], &server].concat()).expect(3);
    let starts = scratch.read("starts").lines().filter(|line| *line == "start").count();
    assert_eq!(starts, 4, "once, and three times again");
}

#[test]
fn wrong_arguments_are_bad_input() {
    let scratch = Scratch::new();
    for wrong in [
        vec!["--tool", "echo", "--input", "[]"],
        vec!["--tool", "echo", "--duration", "ten"],
        vec!["--tool", "echo", "--rate", "0"],
        vec!["--tool", "echo", "--rate", "5", "--concurrency", "5"],
        vec!["--tool", "echo", "--concurrency", "0"],
        vec!["--tool", "echo", "--connections", "0"],
        vec!["--tool", "echo", "--count", "0"],
        vec!["--tool", "echo", "--find-max", "fast"],
        vec!["--tool", "echo", "--max-p50=-1ms"],
        vec![],
    ] {
        let ran = load(&scratch, &wrong);
        assert_eq!(ran.code, 2, "{wrong:?}: {}{}", ran.stdout, ran.stderr);
    }
}

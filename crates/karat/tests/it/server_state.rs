//! State between calls: saved values, a server that hangs, calls that set up and clean up, and secrets that
//! must not be passed on.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Ran, Scratch, item};

/// A server that keeps things, logs its calls, and answers one call after the other.
const SERVER: &str = r#"
name: keeper
log: asked.log
tools:
  - {name: create, description: Does create to things., do: [{store: create}]}
  - {name: get, description: Does get to things., do: [{store: get}]}
  - {name: delete, description: Does delete to things., do: [{store: delete}]}
  - {name: count, description: Does count to things., do: [{store: count}]}
  - {name: environment, description: Does environment to things., do: [{text: "${environment}"}]}
  - {name: hang, description: Does hang to things., do: [hang]}
  - {name: crash, description: Does crash to things., do: [{exit: 3}]}
  - {name: reject, description: Does reject to things., do: [{error: {code: -32602, message: rejected}}]}
  - {name: fail, description: Does fail to things., do: [{fail: it failed}]}
  - {name: echo, description: Does echo to things., do: [{wait_ms: "${arguments.ms}"}, {text: hello}]}
"#;

/// The server with concurrent calls. Of those that create things, a later one may be answered first.
fn concurrent() -> String {
    let create = "[{wait_ms: [60, 40, 20, 80]}, {store: create}]";
    format!("concurrent: true\n{}", SERVER.replace("[{store: create}]", create))
}

/// The server that ends at every call of `echo` in its second start.
fn crashing_next() -> String {
    let crash = "do: [{when: {min_start: 2, max_start: 2, then: [{exit: 4}]}}, {wait_ms";
    SERVER.replace("do: [{wait_ms", crash)
}

/// Runs a suite against a server.
fn run_on(scratch: &Scratch, server: &str, suite: &str, options: &[&str]) -> Ran {
    scratch.write("suite.yaml", suite);
    let server = scratch.server(server);
    let test = ["server", "test", "suite.yaml"];
    scratch.karat(&[&test[..], options, &["--"], &server].concat())
}

/// Runs a suite against the server that answers one call after the other.
fn run(scratch: &Scratch, suite: &str, options: &[&str]) -> Ran {
    run_on(scratch, SERVER, suite, options)
}

fn asked(scratch: &Scratch) -> Vec<String> {
    scratch.read("asked.log").lines().map(str::to_owned).collect()
}

#[test]
fn secrets_of_the_server_are_in_no_file_and_no_output() {
    const SECRET: &str = "abcd1234secretXYZ9";
    const OTHER: &str = "hidden-in-my-shell";
    let suite = "cases:\n  - {id: fine, tool: environment, expect: {contains: PATH}}\n  - {id: shown, tool: environment, expect: {json: $.API_TOKEN, snapshot: true}}\n  - {id: wanted, tool: environment, expect: {contains: abcd1234secretXYZ9}}\n  - {id: passed-on, tool: environment, save: {token: $.API_TOKEN}, then: [{tool: get, input: {id: '${token}'}}]}\n  - {id: loud, tool: nothing, input: {id: abcd1234secretXYZ9}}\n";
    let scratch = Scratch::new();
    scratch.write("suite.yaml", suite);
    let [program, script] = scratch.server(SERVER);
    let secrets = ["-e", "API_TOKEN=abcd1234secretXYZ9", "-e", "OTHER_KEY=${MY_SECRET}"];
    let server = ["--", program, script];
    for words in [
        vec!["server", "call", "--tool", "environment"],
        vec!["server", "load", "--tool", "environment", "--count", "3", "-o", "load.json"],
        vec!["server", "lint", "--json", "--fail-on", "never"],
        vec!["server", "fuzz", "--tool", "environment", "--inputs", "3", "-o", "fuzz.json"],
        vec!["server", "attack", "--tool", "environment", "-o", "attack.json"],
        vec!["server", "test", "suite.yaml", "--update", "-o", "x.html", "-o", "x.json"],
        vec!["server", "test", "suite.yaml", "-o", "x.xml", "-o", "x.md", "-o", "x.sarif"],
    ] {
        let ran: Ran = scratch
            .command(&[&words[..], &secrets, &server].concat())
            .env("MY_SECRET", OTHER)
            .output()
            .unwrap()
            .into();
        assert!(ran.code < 2, "{words:?}: {} {}", ran.code, ran.stderr);
        for secret in [SECRET, OTHER] {
            assert!(!ran.stdout.contains(secret), "{words:?}: {}", ran.stdout);
            assert!(!ran.stderr.contains(secret), "{words:?}: {}", ran.stderr);
        }
    }
    // It was really there, and was passed on to the server as it is.
    assert!(asked(&scratch).contains(&format!("get {SECRET}")), "{:?}", asked(&scratch));
    let report = scratch.report();
    assert!(report.to_string().contains("[redacted]"));
    assert!(report["warnings"].to_string().contains("secrets of the server"), "{report:#}");
    assert!(scratch.read("suite.snapshots/shown.json").contains("[redacted]"));
    let ours = ["server.yaml", "suite.yaml", "asked.log"];
    for file in scratch.files().iter().filter(|file| !ours.contains(&file.as_str())) {
        let text =
            String::from_utf8_lossy(&std::fs::read(scratch.path(file)).unwrap()).into_owned();
        assert!(!text.contains(SECRET) && !text.contains(OTHER), "{file} has a secret in it");
    }
}

#[test]
fn attempts_that_are_under_way_at_once_keep_their_values_apart() {
    let scratch = Scratch::new();
    let suite = r#"
cases:
  - id: many
    tool: get
    input: {id: "${id}"}
    repeat: 12
    concurrency: 4
    setup: [{tool: create, save: {id: $.id}}]
    expect: {json: $.id, matches: ^id}
    teardown: [{tool: delete, input: {id: "${id}"}}]
  - {id: last, tool: get, input: {id: "${id}"}, error: tool}
  - {id: clean, tool: count, expect: {json: $.count, equals: 0}}
"#;
    run_on(&scratch, &concurrent(), suite, &[]).expect(0);
    let mut deleted: Vec<String> =
        asked(&scratch).into_iter().filter(|line| line.starts_with("delete")).collect();
    deleted.sort();
    deleted.dedup();
    assert_eq!(deleted.len(), 12, "{deleted:?}");
    // What lives on is what the last repetition saved, whichever ended last.
    let journal = scratch.read("karat-report/journal/server-suite.jsonl");
    let entries: Vec<Value> =
        journal.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let id = |entry: &Value, attempt: usize| {
        let calls = entry["outcome"]["answer"]["attempts"][attempt]["calls"].clone();
        let call = calls.as_array().unwrap().iter().find(|call| call["role"] == "call").unwrap();
        call["arguments"]["id"].clone()
    };
    assert_eq!(id(&entries[1], 0), id(&entries[0], 11));
}

#[test]
fn a_server_that_hangs_is_started_again_and_one_that_answers_a_ping_is_not() {
    let suite = "cases:\n  - {id: before, tool: echo}\n  - {id: hangs, tool: hang, then: [{tool: echo}]}\n  - {id: after, tool: echo}\n  - {id: last, tool: echo}\n";
    for (server, starts) in [(SERVER.to_owned(), 2), (concurrent(), 1)] {
        let scratch = Scratch::new();
        run_on(&scratch, &server, suite, &["--timeout", "2s"]).expect(1);
        let report = scratch.report();
        assert_eq!(item(&report, "hangs")["observed"]["ended"], "timeout");
        for id in ["before", "after", "last"] {
            assert_eq!(item(&report, id)["metrics"]["pass_rate"], 1.0, "{starts} {id}");
        }
        let started = asked(&scratch).iter().filter(|line| *line == "start").count();
        assert_eq!(started, starts);
        let told = report["warnings"].to_string().contains("started again once");
        assert_eq!(told, starts == 2, "{}", report["warnings"]);
    }
}

#[test]
fn the_set_up_of_a_suite_is_held_to_what_it_says() {
    let cases = "cases: [{id: a, tool: echo}]\n";
    for (setup, code, reason) in [
        ("{tool: fail}", 3, "setup 1 (fail): ended with a tool error: it failed"),
        ("{tool: echo, expect: {equals: never}}", 3, "setup 1 (echo): "),
        ("{tool: reject}", 3, "setup 1 (reject): ended with protocol error -32602"),
        ("{tool: echo, error: tool}", 3, "expected a tool error"),
        ("{tool: reject, error: allowed}", 0, ""),
        ("{tool: fail, error: tool, expect: {contains: failed}}", 0, ""),
    ] {
        let scratch = Scratch::new();
        let ran = run(&scratch, &format!("setup: [{setup}]\n{cases}"), &[]).expect(code);
        let said: Vec<&str> = ran.stdout.split_whitespace().collect();
        assert!(said.join(" ").contains(reason), "{setup}: {}", ran.stdout);
    }
}

#[test]
fn a_server_that_ends_in_its_set_up_calls_when_it_comes_back_is_started_once_more() {
    let scratch = Scratch::new();
    let suite =
        "setup: [{tool: echo}]\ncases:\n  - {id: ends, tool: crash}\n  - {id: after, tool: echo}\n";
    run_on(&scratch, &crashing_next(), suite, &[]).expect(1);
    let report = scratch.report();
    assert_eq!(item(&report, "after")["metrics"]["pass_rate"], 1.0);
    // At first, after the crash, and after the end in the set-up call.
    assert_eq!(asked(&scratch).iter().filter(|line| *line == "start").count(), 3);
}

#[test]
fn what_was_made_is_cleaned_up_although_something_went_wrong() {
    for wrong in [
        "tool: echo, save: {x: $.nothing}, then: [{tool: get, input: {id: '${x}'}}], teardown: [{tool: get, input: {id: '${x}'}, error: allowed}, {tool: delete, input: {id: '${id}'}}]",
        "tool: get, input: {id: nothing}, teardown: [{tool: delete, input: {id: '${id}'}}]",
        "tool: hang, teardown: [{tool: delete, input: {id: '${id}'}}]",
    ] {
        let scratch = Scratch::new();
        let suite = format!(
            "cases:\n  - {{id: wrong, setup: [{{tool: create, save: {{id: $.id}}}}], {wrong}}}\n  - {{id: clean, tool: count, expect: {{json: $.count, equals: 0}}}}\n"
        );
        run_on(&scratch, &concurrent(), &suite, &["--timeout", "2s"]).expect(1);
        assert_eq!(item(&scratch.report(), "clean")["metrics"]["pass_rate"], 1.0, "{wrong}");
    }
}

#[test]
fn a_teardown_that_does_not_clean_up_is_named_and_costs_nothing() {
    let create = "setup: [{tool: create, save: {id: $.id, other: $.other}}]";
    for (teardown, told) in [
        (
            "{tool: delete, input: {id: none}}",
            Some("a: teardown 1 (delete): ended with a tool error"),
        ),
        ("{tool: echo, expect: {equals: gone}}", Some("a: teardown 1 (echo): ")),
        ("{tool: delete, input: {id: '${other}'}}", Some("${other} was not in the answer")),
        ("{tool: crash}", Some("a: teardown 1 (crash): ended with the end of the server")),
        ("{tool: delete, input: {id: none}, error: tool}", None),
        ("{tool: delete, input: {id: '${id}'}, expect: {equals: deleted}}", None),
    ] {
        let scratch = Scratch::new();
        let suite =
            format!("cases:\n  - {{id: a, tool: echo, {create}, teardown: [{teardown}]}}\n");
        run(&scratch, &suite, &[]).expect(0);
        let warnings = scratch.report()["warnings"].to_string();
        assert_eq!(warnings.contains("did not clean up"), told.is_some(), "{teardown}: {warnings}");
        assert!(warnings.contains(told.unwrap_or_default()), "{teardown}: {warnings}");
    }
    let scratch = Scratch::new();
    let suite = "teardown: [{tool: fail}]\ncases: [{id: a, tool: echo}]\n";
    run(&scratch, suite, &[]).expect(0);
    let warnings = scratch.report()["warnings"].to_string();
    assert!(
        warnings.contains("the suite: teardown 1 (fail): ended with a tool error"),
        "{warnings}"
    );
}

#[test]
fn a_server_that_ends_in_the_last_case_is_not_started_again_for_nothing() {
    let scratch = Scratch::new();
    let suite = "cases:\n  - {id: a, tool: echo}\n  - {id: b, tool: crash}\n";
    run(&scratch, suite, &[]).expect(1);
    assert_eq!(asked(&scratch).iter().filter(|line| *line == "start").count(), 1);
    assert!(!scratch.report()["warnings"].to_string().contains("started again"));
}

#[test]
fn what_a_failed_call_was_to_save_is_unknown() {
    for call in ["tool: reject, error: allowed", "tool: fail, error: allowed"] {
        let scratch = Scratch::new();
        let suite = format!(
            "cases:\n  - {{id: one, tool: create, save: {{id: $.id}}}}\n  - {{id: stale, {call}, save: {{id: $.id}}, then: [{{tool: get, input: {{id: '${{id}}'}}}}]}}\n  - {{id: later, tool: get, input: {{id: '${{id}}'}}}}\n"
        );
        run(&scratch, &suite, &[]).expect(1);
        let report = scratch.report();
        for id in ["stale", "later"] {
            let reasons = item(&report, id)["observed"]["reasons"].to_string();
            assert!(reasons.contains("${id} is unknown"), "{call}: {id}: {reasons}");
        }
    }
}

#[test]
fn too_many_repetitions_are_refused_when_the_suite_is_read() {
    let scratch = Scratch::new();
    let suite = "cases: [{id: x, tool: echo, repeat: 4294967295}]\n";
    run(&scratch, suite, &[]).expect(2).says(&["x: `repeat` must be at most"]);
}

const CHAIN: &str = r#"
teardown: [{tool: delete, input: {id: "${id}"}}]
cases:
  - {id: one, tool: create, save: {id: $.id}}
  - {id: two, tool: echo, input: {ms: 3000}}
  - {id: three, tool: get, input: {id: "${id}"}, expect: {json: $.id, matches: id}}
"#;

#[test]
fn a_chosen_case_gets_the_values_of_those_that_were_not() {
    let scratch = Scratch::new();
    run(&scratch, CHAIN, &["--case", "three"]).expect(0);
    let found = scratch.report();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("and not scored: one"), "{warnings}");
    assert_eq!(asked(&scratch), ["start", "create ", "get id1", "delete id1"]);
    // What no one made needs no cleaning up.
    let scratch = Scratch::new();
    run(&scratch, CHAIN, &["--case", "two"]).expect(0);
    assert_eq!(asked(&scratch), ["start", "echo "]);
    assert!(!scratch.report()["warnings"].to_string().contains("clean up"));
}

#[test]
fn a_resumed_run_makes_the_calls_again_that_the_rest_builds_on() {
    let scratch = Scratch::new();
    let [program, script] = scratch.server(SERVER);
    scratch.write("suite.yaml", CHAIN);
    scratch.write(
        "karat.toml",
        format!(
            "[[server]]\nname = \"s\"\nsuite = \"suite.yaml\"\n\
             server = {{ command = [{program:?}, {script:?}] }}\n"
        ),
    );
    let mut interrupted = Command::new(env!("CARGO_BIN_EXE_karat"))
        .arg("check")
        .current_dir(scratch.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journal = scratch.path("karat-report/journal/server-s.jsonl");
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 2 {
        assert!(Instant::now() < deadline, "the run does not get on");
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupted.kill().unwrap();
    interrupted.wait().unwrap();
    assert!(!scratch.path("karat-report/report.json").exists());

    scratch.write("asked.log", "");
    scratch.karat(&["check", "--resume"]).expect(0);
    let report = scratch.report();
    assert_eq!(item(&report, "three")["metrics"]["pass_rate"], 1.0);
    assert!(report["warnings"].to_string().contains("run again"), "{}", report["warnings"]);
    let made = asked(&scratch);
    assert!(made.contains(&"create ".to_owned()) && made.contains(&"get id1".to_owned()));

    // With every answer there, nothing is made again.
    scratch.write("asked.log", "");
    scratch.karat(&["check", "--resume"]).expect(0);
    assert_eq!(asked(&scratch), ["start"]);
}

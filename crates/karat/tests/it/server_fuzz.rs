//! `karat server fuzz` and `call` end to end: the real binary against tools with known faults.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Ran, Scratch};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

/// Fuzzes the demo server with its holes, its temporary files in the scratch folder.
fn fuzz(scratch: &Scratch, arguments: &[&str]) -> Ran {
    std::fs::create_dir_all(scratch.path("tmp")).unwrap();
    let mut all = vec!["server", "fuzz", "--timeout", "2s"];
    all.extend(arguments);
    all.extend(["--", KARAT, "demo-server", "--vulnerable"]);
    let mut command = scratch.command(&all);
    Ran::from(command.env("TMPDIR", scratch.path("tmp")).output().unwrap())
}

/// The findings of a tool: rule and finding.
fn findings<'a>(report: &'a Value, tool: &str) -> Vec<(&'a str, &'a Value)> {
    let items = report["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["id"] == tool).unwrap_or_else(|| panic!("no {tool}"));
    let found = item["observed"]["findings"].as_array().unwrap();
    found.iter().map(|finding| (finding["rule"].as_str().unwrap(), finding)).collect()
}

fn finding<'a>(report: &'a Value, tool: &str, rule: &str) -> &'a Value {
    let found = findings(report, tool);
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    found.iter().find(|(name, _)| *name == rule).unwrap_or_else(|| panic!("{tool}: {names:?}")).1
}

fn input(finding: &Value) -> Value {
    serde_json::from_str(finding["input"].as_str().unwrap()).unwrap()
}

/// Runs a replay line as a user would: pasted into a shell.
fn pasted(finding: &Value) -> (i32, String) {
    let folder = Path::new(KARAT).parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let line = finding["replay"].as_str().unwrap();
    let ran = Command::new("sh").arg("-c").arg(line).env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    (ran.status.code().unwrap(), said)
}

#[test]
fn every_planted_fault_is_found_made_small_and_can_be_played_again() {
    let scratch = Scratch::new();
    let tools = [
        "emoji_unsafe",
        "negative_unsafe",
        "trace_unsafe",
        "lenient_unsafe",
        "settings_unsafe",
        "misshapen",
    ];
    let mut arguments = vec!["--json", "--inputs", "80"];
    for tool in tools {
        arguments.extend(["--tool", tool]);
    }
    let ran = fuzz(&scratch, &arguments);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let report = ran.report();

    let crash = finding(&report, "emoji_unsafe", "fuzz-crash");
    let text = input(crash)["text"].as_str().unwrap().to_owned();
    assert_eq!(text.chars().count(), 1, "{text:?}");
    let (code, said) = pasted(crash);
    assert!(code == 3 && said.contains("exit status: 101"), "{code}: {said}");

    let hang = finding(&report, "negative_unsafe", "fuzz-slow");
    assert_eq!(input(hang), json!({"number": -1}));

    let trace = finding(&report, "trace_unsafe", "fuzz-stack-trace");
    assert_eq!(input(trace), json!({"item": ""}));
    let (code, said) = pasted(trace);
    assert!(code == 0 && said.contains("Traceback"), "{code}: {said}");

    let secret = finding(&report, "settings_unsafe", "fuzz-leaked-secret");
    assert_eq!(input(secret), json!({}));
    finding(&report, "misshapen", "fuzz-invalid-result");

    let taken: Vec<Value> = findings(&report, "lenient_unsafe")
        .iter()
        .filter(|(rule, _)| *rule == "fuzz-accepted-invalid")
        .map(|(_, finding)| input(finding))
        .collect();
    for small in [json!({}), json!({"amount": 0}), json!({"amount": 11})] {
        assert!(taken.contains(&small), "{small}: {taken:?}");
    }
    assert!(report["controls"].as_array().unwrap().iter().all(|control| control["ok"] == true));
    assert!(report["warnings"].to_string().contains("started again"), "{}", report["warnings"]);
    let left: Vec<_> = std::fs::read_dir(scratch.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn tools_that_keep_their_word_have_no_findings() {
    let scratch = Scratch::new();
    let tools = ["add", "echo", "read_file_safe", "find_user_safe", "count_safe", "settings_safe"];
    let mut arguments = vec!["--json", "--inputs", "60"];
    for tool in tools {
        arguments.extend(["--tool", tool]);
    }
    let ran = fuzz(&scratch, &arguments);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report = ran.report();
    for tool in tools {
        let bad: Vec<_> = findings(&report, tool)
            .into_iter()
            .filter(|(_, finding)| finding["severity"] != "note")
            .collect();
        assert!(bad.is_empty(), "{tool}: {bad:?}");
    }
    let value = |id: &str| {
        let metrics = report["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["id"] == id).unwrap()["value"].clone()
    };
    assert_eq!(value("schema.rejects_invalid"), 1.0);
    assert_eq!(value("schema.accepts_valid"), 1.0);
    assert_eq!(value("crash_rate"), 0.0);
    assert_eq!(value("fuzz.tools"), 6.0);
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_other_inputs() {
    let scratch = Scratch::new();
    let run = |seed: &str| {
        let ran = fuzz(
            &scratch,
            &[
                "--json",
                "--inputs",
                "150",
                "--seed",
                seed,
                "--tool",
                "lenient_unsafe",
                "--tool",
                "add",
            ],
        );
        let mut report = ran.report();
        report.as_object_mut().unwrap().remove("environment");
        report
    };
    let first = run("5");
    assert_eq!(first.to_string(), run("5").to_string());
    assert_ne!(first["dataset"]["digest"], run("6")["dataset"]["digest"]);
}

#[test]
fn tools_that_destroy_are_left_alone_and_named() {
    let scratch = Scratch::new();
    let alone = fuzz(&scratch, &["--tool", "forget_note"]);
    assert_eq!(alone.code, 3, "{}", alone.stdout);
    assert!(alone.stderr.contains("destructiveHint"), "{}", alone.stderr);
    let beside = fuzz(&scratch, &["--inputs", "5", "--tool", "forget_note", "--tool", "echo"]);
    assert_eq!(beside.code, 0, "{}", beside.stderr);
    assert!(beside.stdout.contains("forget_note"), "{}", beside.stdout);
    let allowed = fuzz(
        &scratch,
        &["--json", "--inputs", "5", "--allow-destructive", "--tool", "forget_note"],
    );
    assert_eq!(allowed.report()["items"][0]["id"], "forget_note");
}

#[test]
fn a_value_that_is_known_to_work_opens_the_way_to_success() {
    let scratch = Scratch::new();
    let noted = |arguments: &[&str]| {
        let mut all = vec!["--json", "--inputs", "30", "--tool", "read_file_safe"];
        all.extend(arguments);
        let report = fuzz(&scratch, &all).report();
        findings(&report, "read_file_safe").iter().any(|(rule, _)| *rule == "fuzz-never-succeeded")
    };
    assert!(noted(&[]));
    assert!(!noted(&["--set", "path=welcome.txt"]));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_started() {
    let scratch = Scratch::new();
    for (arguments, said) in [
        (&["--tool", "ad"] as &[&str], "did you mean \"add\""),
        (&["--inputs", "0"], "`inputs` must be at least 1"),
        (&["--set", "path"], "NAME=VALUE"),
        (&["--allow", "fuzz-crsh"], "fuzz-crash"),
        (&["-o", "report.doc"], ".json"),
    ] {
        let ran = fuzz(&scratch, arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    }
    let none = scratch.karat(&["server", "fuzz"]);
    assert_eq!(none.code, 2, "{}", none.stderr);
}

#[test]
fn a_program_that_is_not_a_server_does_not_pass() {
    let scratch = Scratch::new();
    for command in ["/bin/false", "/bin/true", "/no/such/program"] {
        let ran = scratch.karat(&["server", "fuzz", "--", command]);
        assert_eq!(ran.code, 3, "{command}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn findings_are_written_in_every_format_and_can_be_allowed() {
    let scratch = Scratch::new();
    let ran = fuzz(
        &scratch,
        &[
            "--tool",
            "misshapen",
            "-o",
            "r.json",
            "-o",
            "r.html",
            "-o",
            "r.md",
            "-o",
            "r.xml",
            "--sarif",
            "r.sarif",
        ],
    );
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("fuzz-invalid-result")
            && ran.stdout.contains("again: karat server call")
    );
    let sarif: Value = serde_json::from_str(&scratch.read("r.sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&json!("fuzz-invalid-result"), &json!("error"))
    );
    assert!(
        result["message"]["text"].as_str().unwrap().contains("karat server call --tool misshapen")
    );
    let written: Value = serde_json::from_str(&scratch.read("r.json")).unwrap();
    assert_eq!(written["reports"][0]["schema"], "karat.report/2");
    assert_eq!(written["reports"][0]["name"], "fuzz");
    for file in ["r.html", "r.md", "r.xml"] {
        assert!(scratch.read(file).contains("fuzz"), "{file}");
    }
    let allowed = fuzz(&scratch, &["--tool", "misshapen", "--allow", "fuzz-invalid-result"]);
    assert_eq!(allowed.code, 0, "{}", allowed.stdout);
    let never = fuzz(&scratch, &["--tool", "misshapen", "--fail-on", "never"]);
    assert_eq!(never.code, 0, "{}", never.stdout);
}

#[test]
fn a_server_over_http_is_fuzzed_too_and_the_holes_are_served_on_loopback_alone() {
    let scratch = Scratch::new();
    let open = scratch.karat(&["demo-server", "--vulnerable", "--http", "0.0.0.0:0"]);
    assert_eq!(open.code, 2, "{}", open.stderr);
    let mut server = Command::new(KARAT)
        .args(["demo-server", "--vulnerable", "--http", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let ran = scratch.karat(&[
        "server",
        "fuzz",
        "--json",
        "--inputs",
        "40",
        "--tool",
        "lenient_unsafe",
        "--url",
        url.trim(),
    ]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let report = ran.report();
    let taken = finding(&report, "lenient_unsafe", "fuzz-accepted-invalid");
    assert!(taken["replay"].as_str().unwrap().contains("--url http://127.0.0.1:"), "{taken}");
}

#[test]
fn a_call_prints_what_was_on_the_wire() {
    let scratch = Scratch::new();
    let call = |tool: &str, input: &str| {
        scratch.karat(&[
            "server",
            "call",
            "--tool",
            tool,
            "--input",
            input,
            "--",
            KARAT,
            "demo-server",
        ])
    };
    let sum = call("add", r#"{"a": 2, "b": 3}"#);
    let result: Value = serde_json::from_str(&sum.stdout).unwrap();
    assert_eq!((sum.code, &result["structuredContent"]["sum"]), (0, &json!(5.0)));
    let unknown = call("nothing", "{}");
    assert!(unknown.code == 0 && unknown.stdout.contains("-32602"), "{}", unknown.stdout);
    scratch.write("input.json", r#"{"text": "from a file"}"#);
    assert!(call("echo", "@input.json").stdout.contains("from a file"));
    for wrong in ["[]", "{", "7"] {
        assert_eq!(call("echo", wrong).code, 2, "{wrong}");
    }
}

#[test]
fn a_value_that_no_tool_takes_is_named_with_the_nearest_parameter() {
    let scratch = Scratch::new();
    let greet = "tools: [{name: greet, inputSchema: {type: object, properties: {name: {type: string}}}, \
                 do: [{text: hello}]}]";
    let server = scratch.server(greet);
    let warning = "--set \"nmae\": no tool has a parameter of that name (did you mean \"name\"?)";
    for (command, more) in
        [("fuzz", &["--inputs", "3"][..]), ("attack", &["--time-limit", "5"]), ("suggest", &[])]
    {
        let said = |set: &str| {
            let words = [&["server", command, "--set", set][..], more, &["--"], &server].concat();
            let ran = scratch.karat(&words);
            let said = format!("{} {}", ran.stdout, ran.stderr);
            said.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let (wrong, right) = (said("nmae=ada"), said("name=ada"));
        assert!(wrong.contains(warning), "{command}: {wrong}");
        assert!(!right.contains("no tool has a parameter"), "{command}: {right}");
    }
    // Its tools are listed in the new revision only.
    let demo = ["--", env!("CARGO_BIN_EXE_karat"), "demo-server"];
    let migration = |set| [&["server", "migration", "--set", set][..], &demo].concat();
    let ran = scratch.karat(&migration("nmae=ada"));
    assert!(ran.stderr.contains("--set \"nmae\": no tool has a parameter"), "{}", ran.stderr);
    let ran = scratch.karat(&migration("text=ada"));
    assert!(!ran.stderr.contains("no tool has a parameter"), "{}", ran.stderr);
}

/// Fuzzes a tool that accepts everything and fails after some calls: the value of `schema.rejects_invalid`, and more.
fn fuzz_failing(calls: &str, failure: &str) -> (Ran, Value, Value) {
    let scratch = Scratch::new();
    let server = scratch.write("reader.py", include_str!("../fixtures/reader.py"));
    let fuzz = ["server", "fuzz", "--json", "--inputs", "60", "--", "python3"];
    let ran =
        scratch.karat(&[&fuzz[..], &[server.to_str().unwrap(), "take", calls, failure]].concat());
    let report = ran.report();
    let metrics = report["metrics"].as_array().unwrap();
    let rejects = metrics.iter().find(|metric| metric["id"] == "schema.rejects_invalid").unwrap();
    let value = rejects["value"].clone();
    (ran, report, value)
}

#[test]
fn a_tool_that_fails_with_everything_has_refused_nothing() {
    for failure in ["internal", "rate", "key"] {
        let (ran, report, rejects) = fuzz_failing("0", failure);
        assert_eq!((ran.code, rejects), (0, Value::Null), "{failure}: {}", report["metrics"]);
        assert_eq!(report["gate"]["verdict"], "inconclusive", "{failure}");
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("for a reason that is not the input"), "{failure}: {warnings}");
        finding(&report, "take", "fuzz-never-succeeded");
    }
}

#[test]
fn a_tool_that_stops_working_is_still_reported_for_accepted_inputs() {
    for (calls, failure) in [("100000", "rate"), ("5", "rate"), ("5", "internal"), ("5", "key")] {
        let (ran, report, rejects) = fuzz_failing(calls, failure);
        assert_eq!(
            (ran.code, rejects),
            (1, json!(0.0)),
            "{calls} {failure}: {}",
            report["metrics"]
        );
        let accepted = finding(&report, "take", "fuzz-accepted-invalid");
        assert_eq!(accepted["severity"], "error", "{calls} {failure}: {accepted}");
    }
}

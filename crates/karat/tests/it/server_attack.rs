//! `karat server attack` end to end: each attack breaks the tool that has the hole, and not the one
//! next to it that has none.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Ran, Scratch, item};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

/// Attacks the demo server with its holes, its temporary files in the scratch folder.
fn attack(scratch: &Scratch, tools: &[&str], arguments: &[&str]) -> Ran {
    std::fs::create_dir_all(scratch.path("tmp")).unwrap();
    let mut all = vec!["server", "attack", "--timeout", "10s"];
    for tool in tools {
        all.extend(["--tool", tool]);
    }
    all.extend(arguments);
    all.extend(["--", KARAT, "demo-server", "--vulnerable"]);
    let mut command = scratch.command(&all);
    Ran::from(command.env("TMPDIR", scratch.path("tmp")).output().unwrap())
}

fn status<'a>(report: &'a Value, id: &str) -> &'a str {
    item(report, id)["observed"]["status"].as_str().unwrap()
}

/// Files that the attack has left. The folder of a demo server is not one of them: on a busy machine, the server
/// is killed before it has removed its folder.
fn left_in(scratch: &Scratch, folder: &str) -> Vec<PathBuf> {
    std::fs::read_dir(scratch.path(folder))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with("karat-demo-"))
        .map(|entry| entry.path())
        .collect()
}

#[test]
fn each_class_breaks_the_tool_with_the_hole_and_holds_on_the_safe_one() {
    let scratch = Scratch::new();
    let tools = [
        "read_file_unsafe",
        "read_file_safe",
        "reach_host_unsafe",
        "reach_host_safe",
        "sort_list_unsafe",
        "sort_list_safe",
        "find_user_unsafe",
        "find_user_safe",
        "fetch_unsafe",
        "fetch_safe",
        "settings_unsafe",
        "settings_hidden_unsafe",
        "settings_safe",
        "count_unsafe",
        "crowd_unsafe",
        "echo",
    ];
    let ran = attack(&scratch, &tools, &["--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let report = ran.report();
    let pairs = [
        ("command-injection", "reach_host_unsafe/host", "reach_host_safe/host"),
        ("argument-injection", "sort_list_unsafe/list", "sort_list_safe/list"),
        ("sql-injection", "find_user_unsafe/user", "find_user_safe/user"),
        ("env-secret", "settings_unsafe", "settings_safe"),
        ("env-secret", "settings_hidden_unsafe", "settings_safe"),
        ("env-by-name", "reach_host_unsafe/host", "reach_host_safe/host"),
        ("secret-file", "read_file_unsafe/path", "read_file_safe/path"),
        ("path-traversal", "read_file_unsafe/path", "read_file_safe/path"),
        ("absolute-path", "read_file_unsafe/path", "read_file_safe/path"),
        ("ssrf-loopback", "fetch_unsafe/url", "fetch_safe/url"),
        ("request-flood", "crowd_unsafe", "echo"),
    ];
    for (attack, broken, held) in pairs {
        assert_eq!(status(&report, &format!("{attack}/{broken}")), "broken", "{attack}/{broken}");
        assert_eq!(status(&report, &format!("{attack}/{held}")), "held", "{attack}/{held}");
    }
    // A tool that calls no address of this machine shows nothing of its behaviour behind one.
    for attack in ["ssrf-metadata", "ssrf-redirect"] {
        assert_eq!(status(&report, &format!("{attack}/fetch_unsafe/url")), "broken", "{attack}");
        assert_eq!(
            status(&report, &format!("{attack}/fetch_safe/url")),
            "not_executed",
            "{attack}"
        );
    }
    assert_eq!(status(&report, "oversized-answer/count_unsafe/count"), "broken");
    assert_eq!(status(&report, "huge-input/echo/text"), "held");
    assert_eq!(status(&report, "deep-input/echo/text"), "held");
    // Passing a text on is not obeying it, so it is reported and not counted.
    let relay = item(&report, "prompt-relay/fetch_unsafe/url");
    assert_eq!(relay["observed"]["status"], "not_judged");
    assert_eq!(relay["metrics"]["attacks_held"], Value::Null);
    // A tool that repeats every attack word for word has done nothing.
    for item in report["items"].as_array().unwrap() {
        assert!(item["tags"]["tool"] != "echo" || item["observed"]["status"] == "held", "{item}");
    }
    let evidence =
        &item(&report, "command-injection/reach_host_unsafe/host")["observed"]["evidence"];
    assert!(evidence["sent"].as_str().unwrap().contains("{outside}/marks/"), "{evidence}");
    assert_eq!(evidence["canary"], "the command made its file");
    let classes: Vec<&Value> = report["slices"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|slice| slice["by"] == "class")
        .map(|slice| &slice["value"])
        .collect();
    assert_eq!(classes.len(), 4, "{classes:?}");
    assert!(report["controls"].as_array().unwrap().iter().all(|control| control["ok"] == true));
    assert_eq!(left_in(&scratch, "tmp"), Vec::<PathBuf>::new());
}

#[test]
fn two_runs_show_the_same_although_every_token_is_new() {
    let scratch = Scratch::new();
    let run = || {
        let tools =
            ["read_file_unsafe", "reach_host_unsafe", "settings_hidden_unsafe", "fetch_unsafe"];
        let arguments = ["--json", "--flood", "20"];
        let mut report = attack(&scratch, &tools, &arguments).report();
        report.as_object_mut().unwrap().remove("environment");
        report.to_string()
    };
    assert_eq!(run(), run());
}

#[test]
#[cfg_attr(karat_portable, ignore = "no links are made")]
fn a_root_that_is_named_is_attacked_from_within_and_left_as_it_was() {
    let scratch = Scratch::new();
    scratch.write("root/own.txt", "mine");
    let ran = attack(
        &scratch,
        &["read_file_unsafe", "read_file_safe"],
        &["--json", "--root", "root", "--class", "privilege-escalation", "--class", "injection"],
    );
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let report = ran.report();
    for attack in ["symbolic-link", "sibling-folder"] {
        assert_eq!(
            status(&report, &format!("{attack}/read_file_unsafe/path")),
            "broken",
            "{attack}"
        );
        assert_eq!(status(&report, &format!("{attack}/read_file_safe/path")), "held", "{attack}");
    }
    assert_eq!(status(&report, "prompt-relay/read_file_unsafe/path"), "not_judged");
    assert_eq!(scratch.files(), ["root/own.txt"]);
}

#[test]
#[cfg_attr(karat_portable, ignore = "no links are made")]
fn the_line_of_a_finding_shows_it_again_with_the_root_that_it_needs() {
    let scratch = Scratch::new();
    scratch.write("root/own.txt", "mine");
    let arguments = ["--root", "root", "--case", "symbolic-link"];
    let ran = attack(&scratch, &["read_file_unsafe"], &arguments).expect(1);
    let line = |line: &str| line.trim().strip_prefix("again: karat ").map(str::to_owned);
    let line = ran.stdout.lines().find_map(line).unwrap();
    assert!(line.contains(" --root root "), "{line}");
    let words: Vec<&str> = line.split(' ').collect();
    let again = scratch.command(&words).env("TMPDIR", scratch.path("tmp")).output().unwrap();
    let again = Ran::from(again).expect(1);
    assert!(again.stdout.contains("[attack-symbolic-link]"), "{}", again.stdout);
}

#[test]
fn a_time_limit_without_an_attack_is_named_as_the_reason() {
    let scratch = Scratch::new();
    let entry =
        "name = \"x\"\n[[attack]]\nname = \"a\"\nbuiltin = \"demo\"\ntime_limit = \"1us\"\n";
    scratch.write("karat.toml", entry);
    let ran = scratch.karat(&["check"]).expect(3);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("the time limit was reached before any attack"), "{said}");
    assert!(!said.contains("applies to any tool"), "{said}");
}

#[test]
fn attacks_that_apply_to_nothing_are_not_a_pass() {
    let scratch = Scratch::new();
    let ran = attack(&scratch, &["add"], &["--class", "privilege-escalation"]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("nothing was executed"), "{}", ran.stderr);
    let destructive = attack(&scratch, &["forget_note"], &[]);
    assert_eq!(destructive.code, 3, "{}", destructive.stderr);
    for command in ["/bin/false", "/no/such/program"] {
        let ran = scratch.karat(&["server", "attack", "--", command]);
        assert_eq!(ran.code, 3, "{command}: {}", ran.stderr);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let scratch = Scratch::new();
    for (arguments, said) in [
        (&["--case", "path-travesal"] as &[&str], "path-traversal"),
        (&["--root", "nowhere"], "nowhere"),
        (&["--allow", "attack-nothing"], "attack-nothing"),
    ] {
        let ran = attack(&scratch, &[], arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_server_that_holds_passes_and_the_table_says_so() {
    let scratch = Scratch::new();
    let ran = attack(
        &scratch,
        &["read_file_safe", "echo"],
        &["--flood", "20", "--sarif", "r.sarif", "-o", "r.html"],
    );
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("privilege escalation"), "{}", ran.stdout);
    let sarif: Value = serde_json::from_str(&scratch.read("r.sarif")).unwrap();
    assert_eq!(sarif["runs"][0]["results"], serde_json::json!([]));
    assert!(sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().len() > 15);
    assert!(scratch.read("r.html").contains("attack"));
}

#[test]
#[cfg_attr(karat_portable, ignore = "needs isolation")]
fn a_sandbox_does_not_hide_the_holes_of_a_server() {
    let scratch = Scratch::new();
    let tools = ["read_file_unsafe", "read_file_safe", "reach_host_unsafe", "fetch_unsafe"];
    let ran = attack(&scratch, &tools, &["--json", "--isolate", "bwrap"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let report = ran.report();
    assert_eq!(status(&report, "secret-file/read_file_unsafe/path"), "broken");
    assert_eq!(status(&report, "secret-file/read_file_safe/path"), "held");
    assert_eq!(status(&report, "command-injection/reach_host_unsafe/host"), "broken");
    // Nothing in there reaches the listener, so nothing is said about it.
    let items = report["items"].as_array().unwrap();
    let called = items.iter().filter(|item| item["id"].as_str().unwrap().contains("ssrf"));
    for item in called {
        assert_eq!(item["observed"]["status"], "not_applicable", "{item}");
    }
}

#[test]
fn a_tool_whose_program_is_missing_holds_nothing_even_if_it_refuses_a_zero_byte() {
    let scratch = Scratch::new();
    let zero = r#"{properties: {arguments: {properties: {path: {pattern: "\u0000"}}}}}"#;
    let server = scratch.server(format!(
        "tools:
  - name: search
    description: Searches files for a pattern
    inputSchema: {{type: object, properties: {{pattern: {{type: string}}, path: {{type: string}}}}, required: [pattern, path]}}
    do: [{{when: {{request: {zero}, then: [{{fail: 'a zero byte'}}], otherwise: [{{fail: 'sh: 1: rg: not found'}}]}}}}]
"
    ));
    let case = ["server", "attack", "--json", "--case", "path-traversal", "--"];
    let ran = scratch.karat(&[&case, &server[..]].concat()).expect(3);
    assert!(ran.stderr.contains("in the same words"), "{}", ran.stderr);
}

#[test]
fn a_text_that_other_arguments_keep_from_being_used_holds_nothing() {
    let scratch = Scratch::new();
    let server = scratch.server(
        "tools:
  - name: request
    description: Sends a request
    inputSchema: {type: object, properties: {name: {type: string}, body: {type: string, description: The command to run}}, required: [name]}
    do: [{when: {argument: body, then: [{fail: a GET request cannot have a body}], otherwise: [{text: sent}]}}]
",
    );
    let case =
        ["server", "attack", "--json", "--allow-destructive", "--case", "command-injection", "--"];
    let ran = scratch.karat(&[&case, &server[..]].concat());
    let report = ran.report();
    let body = item(&report, "command-injection/request/body");
    assert_eq!(body["observed"]["status"], "not_executed", "{body}");
    assert!(body["observed"]["why"].as_str().unwrap().contains("with any text"), "{body}");
}

#[test]
fn a_tool_that_accepts_a_sibling_folder_and_shows_nothing_of_it_holds_nothing() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path("root")).unwrap();
    let server = scratch.server(
        "tools:
  - name: stat
    description: Describes a file
    inputSchema: {type: object, properties: {path: {type: string, description: The path of a file}}, required: [path]}
    do: [{text: 'size 26'}]
",
    );
    let case = ["server", "attack", "--case", "sibling-folder", "--root", "root", "--"];
    let ran = scratch.karat(&[&case, &server[..]].concat());
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("accepts the path of a file outside"), "{}", ran.stderr);
}

#[test]
fn a_server_that_is_silent_under_a_flood_and_answers_everything_later_holds() {
    let scratch = Scratch::new();
    let slow =
        "{when: {count: 8, then: [{wait_ms: 2500}, {text: done}], otherwise: [{text: done}]}}";
    let server =
        scratch.server(format!("tools: [{{name: slow, description: Is slow, do: [{slow}]}}]"));
    let case = ["server", "attack", "--case", "request-flood", "--timeout", "500ms", "--"];
    scratch.karat(&[&case, &server[..]].concat()).expect(0);
}

#[test]
fn a_server_that_ends_when_calls_are_cancelled_is_reported_with_that_cause() {
    let scratch = Scratch::new();
    // It ends a while after the cancellation, so nothing but the ping of the same session can show it.
    let server = scratch.server(
        "methods: {notifications/cancelled: [{wait_ms: 300}, {exit: 1}]}
tools: [{name: slow, description: Is slow, do: [{wait_ms: 30}, {text: done}]}]",
    );
    let case =
        ["server", "attack", "--json", "--case", "request-flood", "--timeout", "500ms", "--"];
    let ran = scratch.karat(&[&case, &server[..]].concat()).expect(1);
    let report = ran.report();
    let flood = item(&report, "request-flood/slow");
    let canary = flood["observed"]["evidence"]["canary"].as_str().unwrap();
    assert!(
        canary.contains("ended after calls without an answer within 0.5 s were cancelled")
            && canary.contains("exit status: 1"),
        "{canary}"
    );
}

#[test]
fn a_server_that_works_through_a_flood_holds_although_a_ping_has_to_wait() {
    let scratch = Scratch::new();
    let server = scratch
        .server("tools: [{name: slow, description: Is slow, do: [{wait_ms: 10}, {text: done}]}]");
    let case = ["server", "attack", "--case", "request-flood", "--timeout", "500ms", "--"];
    scratch.karat(&[&case, &server[..]].concat()).expect(0);
}

//! `karat mcp`: Karat as an MCP server, called by Karat's own client and judged by its own tests.

use crate::common;

use common::{BM25, GOLDEN, Scratch};
use serde_json::{Value, json};

fn karat() -> String {
    assert_cmd::cargo::cargo_bin("karat").to_string_lossy().into_owned()
}

/// A project whose search got worse since its baseline, with the report of that.
fn worse() -> Scratch {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["check", "-o", "before.json"]).expect(0);
    // The words of one query are no longer in any description.
    let tools = scratch.read("tools.json").replace("Open a ticket.", "Nothing of note.");
    scratch.write("tools.json", tools);
    scratch
}

/// The result of a call, and whether it is an error.
fn call(scratch: &Scratch, flags: &[&str], tool: &str, input: &Value) -> (Value, bool) {
    let (karat, input) = (karat(), input.to_string());
    let mut words = vec!["server", "call", "--json", "--timeout", "120s", "--tool", tool];
    words.extend(["--input", &input, "--", &karat, "mcp"]);
    words.extend(flags);
    let ran = scratch.karat(&words);
    let result: Value = serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|_| panic!("{tool}: {} {}", ran.stdout, ran.stderr));
    let result = result.get("result").cloned().unwrap_or(result);
    let failed = result["isError"] == true;
    (result, failed)
}

fn structured(scratch: &Scratch, flags: &[&str], tool: &str, input: &Value) -> Value {
    let (result, failed) = call(scratch, flags, tool, input);
    assert!(!failed, "{result}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "the text is the same as JSON");
    text
}

fn refused(scratch: &Scratch, flags: &[&str], tool: &str, input: &Value) -> String {
    let (result, failed) = call(scratch, flags, tool, input);
    assert!(failed, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_failed_check_is_read_and_explained() {
    let scratch = worse();
    let none = refused(
        &Scratch::new(),
        &[&project_of(&scratch)],
        "karat_last_report",
        &json!({
            "report": "karat-report/none.json"
        }),
    );
    assert!(none.contains("no such file"), "{none}");
    scratch.karat(&["check", "-q"]).expect(1);
    let last = structured(&scratch, &[], "karat_last_report", &json!({}));
    assert_eq!(last["verdict"], "fail");
    let text = last["text"].as_str().unwrap();
    assert!(text.contains("FAIL retrieval/r") && text.contains("rule mrr max_drop"), "{text}");

    let entry = structured(&scratch, &[], "karat_explain", &json!({"entry": "retrieval/r"}));
    assert!(entry["text"].as_str().unwrap().contains("q1"), "{entry}");
    let input = json!({"entry": "r", "item": "q1"});
    let item = structured(&scratch, &[], "karat_explain", &input);
    assert!(item["text"].as_str().unwrap().contains("open a ticket"), "{item}");
    let wrong = refused(&scratch, &[], "karat_explain", &json!({"item": "q9"}));
    assert!(wrong.contains("did you mean"), "{wrong}");

    let input = json!({"before": "before.json", "after": "karat-report/report.json", "limit": 3});
    let compared = structured(&scratch, &[], "karat_compare", &input);
    let metrics = compared["entries"][0]["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 3, "{compared}");
    assert_eq!(compared["entries"][0]["before"], Value::Null);

    // The only entry of each report is compared whatever its name, which is not hidden.
    let renamed = scratch.read("before.json").replace("\"name\": \"r\"", "\"name\": \"old\"");
    scratch.write("renamed.json", renamed);
    let input = json!({"before": "renamed.json", "after": "karat-report/report.json"});
    let compared = structured(&scratch, &[], "karat_compare", &input);
    let entry = &compared["entries"][0];
    assert_eq!(entry["entry"], "retrieval/r");
    assert_eq!(entry["before"], "retrieval/old", "{compared}");
}

/// The project file, for a server that is started elsewhere.
fn project_of(scratch: &Scratch) -> String {
    scratch.path("karat.toml").to_string_lossy().into_owned()
}

#[test]
fn nothing_runs_unless_it_is_allowed() {
    let scratch = worse();
    for tool in ["karat_check", "karat_scan_server", "karat_suggest_suite"] {
        let karat = karat();
        let words = ["server", "call", "--tool", tool, "--", &karat, "mcp"];
        let ran = scratch.karat(&words);
        assert!(ran.stdout.contains("Unknown tool"), "{tool}: {}{}", ran.stdout, ran.stderr);
    }
    let last = structured(&scratch, &["--allow-run"], "karat_check", &json!({"entry": "r"}));
    assert_eq!(last["verdict"], "fail");
    let by_path = json!({"entry": "retrieval/r"});
    let same = structured(&scratch, &["--allow-run"], "karat_check", &by_path);
    assert_eq!(same["verdict"], last["verdict"]);
    let wrong = refused(&scratch, &["--allow-run"], "karat_check", &json!({"entry": "absent"}));
    assert!(wrong.contains("no entry named"), "{wrong}");
    let flag = refused(&scratch, &["--allow-run"], "karat_check", &json!({"entry": "--out=/tmp"}));
    assert!(flag.contains("invalid arguments"), "{flag}");
}

#[test]
fn a_check_that_measures_nothing_does_not_answer_with_the_report_of_an_earlier_one() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.1 }\n", BM25);
    let run = ["--allow-run"];
    assert_eq!(structured(&scratch, &run, "karat_check", &json!({}))["verdict"], "pass");
    scratch.write("traces.jsonl", "");
    scratch.write("karat.toml", "[[agent]]\nname = \"a\"\ntraces = [\"traces.jsonl\"]\n");
    let empty = structured(&scratch, &run, "karat_check", &json!({}));
    assert!(empty.to_string().contains("nothing to score"), "{empty}");
    assert_ne!(empty["verdict"], "pass");
    scratch.write("traces.jsonl", "no trace");
    let said = refused(&scratch, &run, "karat_check", &json!({}));
    assert!(said.contains("traces.jsonl"), "{said}");
}

#[test]
fn servers_are_those_of_the_files_of_the_project() {
    let scratch = worse();
    let servers = json!({"mcpServers": {"demo": {"command": karat(), "args": ["demo-server"]}}});
    scratch.write(".mcp.json", servers.to_string());
    let input = json!({"server": "demo", "seconds": 60, "limit": 2});
    let scan = structured(&scratch, &["--allow-run"], "karat_scan_server", &input);
    assert!(scan["findings"].as_array().unwrap().len() <= 2, "{scan}");
    let suite =
        structured(&scratch, &["--allow-run"], "karat_suggest_suite", &json!({"server": "demo"}));
    assert!(suite["suite"].as_str().unwrap().contains("tool: \"add\""), "{suite}");
    let unknown = json!({"server": "other"});
    let none = refused(&scratch, &["--allow-run"], "karat_scan_server", &unknown);
    assert!(none.contains(".mcp.json"), "{none}");
}

#[test]
fn paths_stay_in_the_project() {
    let scratch = Scratch::new();
    scratch.write("secret.json", r#"{"tools": []}"#);
    scratch.write("p/karat.toml", "");
    scratch
        .write("p/tools.json", r#"{"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}"#);
    for (target, name) in [
        ("../secret.json", "p/link.json"),
        ("..", "p/up"),
        ("/nowhere/at/all", "p/dangling"),
        ("tools.json", "p/inner.json"),
    ] {
        std::os::unix::fs::symlink(target, scratch.path(name)).unwrap();
    }
    let inner = json!({"tools_file": "inner.json"});
    structured(&scratch, &["p"], "karat_lint_definitions", &inner);
    let absolute = scratch.path("secret.json").to_string_lossy().into_owned();
    let found = structured(
        &scratch,
        &["p"],
        "karat_lint_definitions",
        &json!({"tools_file": "tools.json"}),
    );
    assert!(found["errors"].as_u64().unwrap() > 0, "{found}");
    // The answer does not depend on what is there.
    let links = ["link.json", "up/secret.json", "up/absent.json", "dangling"];
    let paths = ["../secret.json", "./../secret.json", &absolute, "/etc/passwd"];
    for way in links.into_iter().chain(paths) {
        let input = json!({"tools_file": way});
        let said = refused(&scratch, &["p"], "karat_lint_definitions", &input);
        assert!(said.contains("not a file of the project"), "{way}: {said}");
        assert!(!said.contains("root:"), "{said}");
    }
    let broken = scratch.write("p/broken.json", "{\"tools\": ");
    let input = json!({"tools_file": "broken.json"});
    let said = refused(&scratch, &["p"], "karat_lint_definitions", &input);
    let folder = broken.parent().unwrap().to_string_lossy().into_owned();
    assert!(said.contains("broken.json") && !said.contains(&folder), "{said}");
}

#[test]
fn bad_arguments_are_an_error_of_the_tool_that_names_them() {
    let scratch = worse();
    for (input, word) in [
        (json!({"report": 7}), "/report"),
        (json!({"reprot": "x"}), "reprot"),
        (json!({"report": ""}), "/report"),
    ] {
        let said = refused(&scratch, &[], "karat_last_report", &input);
        assert!(said.contains("invalid arguments") && said.contains(word), "{input}: {said}");
    }
}

#[test]
fn without_a_project_it_does_not_start() {
    let ran = Scratch::new().karat(&["mcp"]).expect(2);
    assert!(ran.stderr.contains("karat init"), "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
}

#[test]
fn it_passes_the_tests_of_karat() {
    let scratch = worse();
    scratch.karat(&["check", "-q"]).expect(1);
    let karat = karat();
    let own = ["--", karat.as_str(), "mcp", "--allow-run"];
    let with = |words: &[&'static str]| -> Vec<&str> { words.iter().copied().chain(own).collect() };
    let lint = scratch.karat(&with(&["server", "lint", "--fail-on", "note"]));
    assert_eq!(lint.code, 0, "{}", lint.stdout);
    // Tools that measure run Karat for every input, so the reading ones take the inputs here.
    let reading = ["--", karat.as_str(), "mcp"];
    let with =
        |words: &[&'static str]| -> Vec<&str> { words.iter().copied().chain(reading).collect() };
    let scan = ["server", "scan", "--inputs", "12", "--fail-on", "warning"];
    let fuzz = ["server", "fuzz", "--inputs", "25", "--fail-on", "warning"];
    let attack = ["server", "attack", "--fail-on", "warning"];
    for words in [&scan[..], &fuzz[..], &attack[..]] {
        let ran = scratch.karat(&with(words));
        assert_eq!(ran.code, 0, "{words:?}: {}{}", ran.stdout, ran.stderr);
    }
}

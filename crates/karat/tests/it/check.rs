//! `karat check`, end to end.

use crate::common;

use common::{BM25, GOLDEN, Scratch};

#[test]
fn the_bundled_project_passes_reproduces_its_baseline_and_is_the_same_twice() {
    let scratch = Scratch::new();
    let first = scratch.karat(&["check"]).expect(0);
    let report = scratch.read("karat-report/report.json");
    let page = scratch.read("karat-report/report.html");
    let second = scratch.karat(&["check"]).expect(0);
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(report, scratch.read("karat-report/report.json"));
    assert_eq!(page, scratch.read("karat-report/report.html"));

    let document: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(document["verdict"], "pass");
    for report in document["reports"].as_array().unwrap() {
        for delta in report["comparison"]["deltas"].as_array().unwrap() {
            assert_eq!(delta["before"], delta["after"], "{delta}");
            assert_eq!(delta["worsened"].as_array().unwrap().len(), 0);
        }
        assert!(report["controls"].as_array().unwrap().len() >= 3);
        assert!(report["controls"].as_array().unwrap().iter().all(|c| c["ok"] == true));
    }
    // On this data the loss of descriptions shows in every headline metric.
    let report = &document["reports"][0];
    let removed = report["controls"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["name"] == "descriptions-removed")
        .unwrap();
    for lost in removed["metrics"].as_array().unwrap() {
        let full =
            report["metrics"].as_array().unwrap().iter().find(|m| m["id"] == lost["id"]).unwrap();
        assert!(lost["value"].as_f64() < full["value"].as_f64(), "{lost}");
    }
    let evaluations: Vec<&str> = document["reports"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|report| report["evaluation"].as_str())
        .collect();
    for evaluation in ["server", "agent", "retrieval", "detection", "resilience"] {
        assert!(evaluations.contains(&evaluation), "{evaluations:?}");
    }
}

#[test]
fn the_readme_shows_a_failure_as_it_is() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let block = |start: &str| readme.split(start).nth(1).unwrap().split("```").next().unwrap();
    let (command, shown) = block("```text\n").split_once('\n').unwrap();
    assert_eq!(command, "$ karat server test -q suite.yaml -- karat demo-server");
    let scratch = Scratch::new();
    scratch.write("suite.yaml", block("```yaml\n"));
    let karat = env!("CARGO_BIN_EXE_karat");
    let arguments = ["server", "test", "-q", "suite.yaml", "--", karat, "demo-server"];
    assert_eq!(scratch.karat(&arguments).expect(1).stdout, shown);
}

#[test]
fn json_is_alone_on_stdout_and_fits_its_schema() {
    let scratch = Scratch::new();
    let ran = scratch.karat(&["check", "--json"]).expect(0);
    let document = ran.json();
    let schema = scratch.karat(&["schema", "check"]).expect(0).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|e| e.to_string()).take(3).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(serde_json::to_value(&document["schema"]).unwrap(), "karat.check/1");
}

#[test]
fn quiet_says_nothing_on_the_side() {
    let scratch = Scratch::new();
    assert_eq!(scratch.karat(&["--quiet", "check"]).expect(0).stderr, "");
    assert_ne!(scratch.karat(&["check"]).expect(0).stderr, "");
}

#[test]
fn quiet_shows_what_failed_and_nothing_that_passed() {
    let scratch = Scratch::new();
    let gate = "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.1 }\n\"map\" = { max = 0.5 }\n";
    scratch.project(GOLDEN, gate, BM25);
    let ran = scratch.karat(&["check", "--quiet"]).expect(1);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("fail: retrieval · r: map "), "{lines:?}");
    assert!(scratch.path("karat-report/report.html").exists());
    // What was asked for is printed all the same.
    let ran = scratch.karat(&["check", "--quiet", "--json"]).expect(1);
    assert_eq!(ran.json()["verdict"], "fail");

    scratch.project(GOLDEN, "", BM25);
    let ran = scratch.karat(&["check", "-q"]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    scratch.project(GOLDEN, "", "{ command = [\"/bin/false\"] }");
    let ran = scratch.karat(&["check", "-q"]).expect(3);
    assert!(ran.stdout.starts_with("not measured: retrieval · r: "), "{}", ran.stdout);
}

#[test]
fn every_line_fits_80_columns_and_colours_are_optional() {
    let scratch = Scratch::new();
    let plain = scratch.karat(&["check"]).expect(0).stdout;
    for line in plain.lines().filter(|line| !line.starts_with("report: ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(!plain.contains('\u{1b}'));
    let coloured = scratch.karat(&["check", "--color", "always"]).expect(0).stdout;
    assert!(coloured.contains('\u{1b}'));
}

#[test]
fn a_lost_item_fails_the_gate_and_is_named_everywhere() {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["check"]).expect(0);

    // The recorded scores are others, as if the index had once been better.
    let baseline = scratch.read("b.json");
    let better = baseline
        .replace("\"id\":\"mrr\",\"value\":1.0", "\"id\":\"mrr\",\"value\":1.5")
        .replace("\"mrr\":1.0", "\"mrr\":1.5");
    assert_ne!(baseline, better);
    scratch.write("b.json", better);
    let ran =
        scratch.karat(&["check", "-o", "out.md", "-o", "out.xml", "-o", "out.html"]).expect(1);
    assert!(ran.stdout.contains("mrr"), "{}", ran.stdout);
    assert!(ran.stdout.trim_end().contains("fail"), "{}", ran.stdout);
    for file in ["out.md", "out.xml", "out.html"] {
        assert!(scratch.read(file).contains("mrr"), "{file}");
    }
}

#[test]
fn an_output_of_unknown_type_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    scratch.karat(&["check", "-o", "report.docx"]).expect(2).says(&["report.docx", ".html"]);
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
}

#[test]
fn a_gate_that_no_report_can_meet_is_refused_before_anything_runs() {
    let system = "{ command = [\"python3\", \"-c\", \"open('started', 'w')\"] }";
    for (gate, words) in [
        ("[retrieval.gate.metrics]\n\"fpr_hard\" = { max = 0.1 }\n", ["fpr_hard", "recall@5"]),
        ("[retrieval.gate.metrics]\n\"recall@7\" = { min = 0.1 }\n", ["recall@7", "recall@5"]),
        ("[retrieval.gate]\nslice = \"kind=nope\"\n", ["kind=nope", "kind=direct"]),
        ("[retrieval.gate]\nslice = \"nope=direct\"\n", ["nope=direct", "kind=direct"]),
    ] {
        let scratch = Scratch::new();
        scratch.project(GOLDEN, gate, system);
        scratch.karat(&["check"]).expect(2).says(&words);
        assert!(!scratch.path("started").exists() && !scratch.path("karat-report").exists());
    }
    let scratch = Scratch::new();
    let gate = "[retrieval.gate]\nslice = \"kind=direct\"\n[retrieval.gate.metrics]\n\
                \"mrr\" = { min = 0.1 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["check"]).expect(0);
}

#[test]
fn a_gate_of_a_detection_knows_the_slices_of_its_dataset() {
    for (slice, code) in [("category=nope", 2), ("split=test", 0), ("detector=nope", 2)] {
        let scratch = Scratch::new();
        let project = format!(
            "[[detection]]\nname = \"d\"\ndataset = \"bundled:threats/v2\"\n\
             system = {{ builtin = \"builtin\" }}\n[detection.gate]\nslice = \"{slice}\"\n"
        );
        scratch.write("karat.toml", project);
        let ran = scratch.karat(&["check"]).expect(code);
        // What a scanner calls itself is known only once it has answered.
        let early = !scratch.path("karat-report").exists();
        assert_eq!(early, slice == "category=nope", "{slice}: {}", ran.stderr);
    }
}

#[test]
fn an_unknown_bundled_dataset_is_told_with_those_that_there_are() {
    let scratch = Scratch::new();
    for name in ["../../etc", "tools/v0"] {
        let project =
            format!("[[retrieval]]\nname = \"r\"\ndataset = \"bundled:{name}\"\nsystem = {BM25}\n");
        scratch.write("karat.toml", project);
        let ran = scratch.karat(&["check"]).expect(2);
        ran.says(&[name, "bundled:tools/v1", "bundled:threats/v2"]);
    }
}

#[test]
fn a_system_that_does_not_start_is_not_measured_and_never_a_pass() {
    for (system, word) in [
        ("{ command = [\"no-such-program-karat\"] }", "no-such-program-karat"),
        ("{ command = [\"/bin/false\"] }", "exit status: 1"),
        ("{ command = [\"/bin/true\"] }", "exit status: 0"),
    ] {
        let scratch = Scratch::new();
        scratch.project(GOLDEN, "", system);
        let ran = scratch.karat(&["check"]).expect(3);
        assert!(ran.stdout.contains(word), "{system}: {}", ran.stdout);
        let document: serde_json::Value =
            serde_json::from_str(&scratch.read("karat-report/report.json")).unwrap();
        assert_eq!(document["verdict"], serde_json::Value::Null);
    }
}

#[test]
fn a_system_that_refuses_garbles_or_hangs_is_not_measured() {
    let answer = |line: &str| {
        format!(
            "{{ command = [\"python3\", \"-c\", '''\nimport sys, json, time\nfor line in sys.stdin:\n    q = json.loads(line)\n    {line}\n'''] }}"
        )
    };
    for (line, word) in [
        (
            "print(json.dumps({\"id\": q[\"id\"], \"error\": \"index lost\"}), flush=True)",
            "index lost",
        ),
        ("print(\"<html>502 Bad Gateway</html>\", flush=True)", "502"),
        (
            "print(json.dumps({\"id\": q[\"id\"], \"ranked\": [{\"tool_id\": \"s:a\"}] * 2}), flush=True)",
            "twice",
        ),
        ("time.sleep(60)", "no answer within"),
    ] {
        let scratch = Scratch::new();
        scratch.project(GOLDEN, "timeout_ms = 2000\n", &answer(line));
        let ran = scratch.karat(&["check"]).expect(3);
        assert!(ran.stdout.contains(word), "{line}: {}", ran.stdout);
    }
}

#[test]
fn failures_within_the_allowance_are_counted_and_have_no_score() {
    let scratch = Scratch::new();
    let system = "{ command = [\"python3\", \"-c\", '''\nimport sys, json\nfor line in sys.stdin:\n    q = json.loads(line)\n    a = {\"error\": \"no\"} if q[\"id\"] == \"q1\" else {\"ranked\": [{\"tool_id\": \"s:list_files\"}, {\"tool_id\": \"x:unknown\"}]}\n    print(json.dumps({\"id\": q[\"id\"], **a}), flush=True)\n'''] }";
    scratch.project(GOLDEN, "[retrieval.gate]\nmax_errors = 0.5\n", system);
    let document = scratch.karat(&["check", "--json"]).expect(0).json();
    let report = &document["reports"][0];
    let mrr = report["metrics"].as_array().unwrap().iter().find(|m| m["id"] == "mrr").unwrap();
    assert_eq!((&mrr["value"], &mrr["n"], &mrr["left_out"]), (&1.0.into(), &1.into(), &1.into()));
    assert_eq!(report["items"][0]["error"]["class"], "refused");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("x:unknown"), "{warnings}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    use std::process::Stdio;
    let scratch = Scratch::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_karat"))
        .args(["metrics", "--markdown"])
        .current_dir(scratch.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

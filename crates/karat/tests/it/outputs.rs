//! The places and formats of reports.

use crate::common;

use common::{BM25, GOLDEN, Ran, Scratch};

#[test]
fn a_report_is_not_written_over_a_tracked_file() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.write("docs/report.html", "kept");
    scratch.write("docs/karat/report.json", "kept");
    scratch.git(&["init", "--quiet"]);
    scratch.git(&["add", "."]);
    for arguments in [["check", "-o", "docs/report.html"], ["check", "--out", "docs/karat"]] {
        let ran = scratch.karat(&arguments).expect(2);
        assert!(ran.stderr.contains("tracked by git"), "{}", ran.stderr);
        assert!(ran.stderr.contains("git rm --cached"), "{}", ran.stderr);
        assert!(ran.stdout.is_empty());
    }
    assert_eq!(scratch.read("docs/report.html"), "kept");
    assert_eq!(scratch.read("docs/karat/report.json"), "kept");
    scratch.karat(&["check", "-o", "docs/new.html"]).expect(0);
}

/// A project with a recorded baseline.
fn with_baseline() -> Scratch {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch
}

#[test]
fn a_tracked_file_is_not_written_by_any_way() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.write("kept/old.json", "kept");
    scratch.git(&["init", "--quiet"]);
    scratch.git(&["add", "."]);
    std::os::unix::fs::symlink("kept/old.json", scratch.path("out.json")).unwrap();
    std::os::unix::fs::symlink("kept", scratch.path("other")).unwrap();
    // A file deleted in the work tree is still tracked, and a folder that is made on the way does not help.
    scratch.write("gone/report.json", "kept");
    scratch.git(&["add", "."]);
    std::fs::remove_dir_all(scratch.path("gone")).unwrap();
    for place in ["out.json", "other/old.json"] {
        let ran = scratch.karat(&["check", "-o", place]).expect(2);
        ran.says(&["symbolic link", place.split('/').next().unwrap()]);
    }
    for place in ["new/../kept/old.json", "gone/report.json"] {
        let ran = scratch.karat(&["check", "-o", place]).expect(2);
        ran.says(&["tracked by git", place]);
    }
    assert_eq!(scratch.read("kept/old.json"), "kept");
    // A name is not a pattern: this one would match a tracked file.
    scratch.karat(&["check", "-o", "kept/*.json"]).expect(0);
    assert_eq!(scratch.read("kept/old.json"), "kept");
}

#[test]
fn a_link_in_the_place_of_an_output_is_refused() {
    let outside = Scratch::new();
    outside.write("precious", "precious");
    let outputs = [
        "karat-report/journal/retrieval-r.jsonl",
        "karat-report/report.html",
        "karat-report/report.json",
        "karat-report/journal",
        "karat-report",
        "h.sqlite",
        "h.sqlite-wal",
    ];
    for (number, output) in outputs.iter().enumerate() {
        let scratch = Scratch::new();
        scratch.project(GOLDEN, "", BM25);
        let link = scratch.path(output);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let is_folder = link.extension().is_none();
        let target = outside.path(&format!("new-{number}"));
        if is_folder {
            std::fs::create_dir(&target).unwrap();
        }
        let target = if is_folder { target } else { outside.path("precious") };
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let ran = scratch.karat(&["check", "--history=h.sqlite"]).expect(2);
        for word in [*output, "symbolic link"] {
            assert!(ran.stderr.contains(word), "{output}: {}", ran.stderr);
        }
        assert_eq!(outside.read("precious"), "precious", "{output}");
        if is_folder {
            assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "{output}");
        }
    }
    // A baseline, and a recording.
    let scratch = with_baseline();
    std::fs::remove_file(scratch.path("b.json")).unwrap();
    std::os::unix::fs::symlink(outside.path("precious"), scratch.path("b.json")).unwrap();
    scratch.karat(&["baseline", "update"]).expect(2);
    std::os::unix::fs::symlink(outside.path("precious"), scratch.path("r.jsonl")).unwrap();
    let words = ["server", "call", "--record", "r.jsonl", "--tool", "t", "--", "true"];
    scratch.karat(&words).expect(2).says(&["r.jsonl", "symbolic link"]);
    assert_eq!(outside.read("precious"), "precious");
}

#[test]
fn a_tracked_history_is_not_added_to() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.karat(&["check", "--history=h.sqlite"]).expect(0);
    scratch.git(&["init", "--quiet"]);
    scratch.git(&["add", "--force", "h.sqlite"]);
    let before = std::fs::read(scratch.path("h.sqlite")).unwrap();
    let ran = scratch.karat(&["check", "--history=h.sqlite"]).expect(2);
    ran.says(&["h.sqlite", "tracked by git"]);
    assert_eq!(std::fs::read(scratch.path("h.sqlite")).unwrap(), before);
}

#[test]
fn nothing_that_the_project_reads_is_written_over() {
    let scratch = with_baseline();
    std::os::unix::fs::symlink("b.json", scratch.path("link.json")).unwrap();
    std::os::unix::fs::symlink("karat.toml", scratch.path("link.html")).unwrap();
    let before = scratch.read("b.json");
    for place in ["link.json", "link.html"] {
        scratch.karat(&["check", "-o", place]).expect(2).says(&[place, "symbolic link"]);
    }
    for place in ["b.json", "./b.json", "new/../b.json", "tools.json"] {
        let ran = scratch.karat(&["check", "-o", place]).expect(2);
        ran.says(&[place, "an input of the project"]);
    }
    assert_eq!(scratch.read("b.json"), before);
    scratch.karat(&["check", ".", "-o", "b.md"]).expect(0);
    scratch.karat(&["check", "karat.toml", "-o", "c.json"]).expect(0);
}

#[test]
fn nothing_in_a_dataset_folder_is_written() {
    let scratch = Scratch::new();
    scratch.karat(&["init", "--for", "proxy", "--ci", "none"]).expect(0);
    let ran = scratch.karat(&["check", "-o", "datasets/starter/v1/tools/more.json"]).expect(2);
    ran.says(&["an input of the project", "datasets/starter/v1"]);
    assert!(!scratch.path("datasets/starter/v1/tools/more.json").exists());
}

#[test]
fn where_git_fails_a_file_that_is_there_is_kept() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.write("old.json", "kept");
    scratch.write(".git", "gitdir: /no/such/repository\n");
    let ran = scratch.karat(&["check", "-o", "old.json"]).expect(2);
    ran.says(&["old.json already exists", "/no/such/repository", "-o"]);
    assert_eq!(scratch.read("old.json"), "kept");
    // New files, and those of an earlier run, have nothing to lose.
    for _ in 0..2 {
        scratch.karat(&["check"]).expect(0);
    }
    scratch.karat(&["check", "-o", "new.json"]).expect(0);
}

#[test]
fn only_a_folder_of_its_own_is_kept_out_of_version_control() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.write("site/index.html", "kept");
    std::fs::create_dir(scratch.path("empty")).unwrap();
    for out in [".", "site", "empty", "made"] {
        scratch.karat(&["check", "--out", out]).expect(0);
        assert!(scratch.path(out).join("report.html").exists(), "{out}");
        let ours = matches!(out, "empty" | "made");
        assert_eq!(scratch.path(out).join(".gitignore").exists(), ours, "{out}");
    }
}

#[test]
fn an_output_that_fails_does_not_hide_the_verdict() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "[retrieval.gate.metrics]\n\"map\" = { max = 0.5 }\n", BM25);
    let run = |arguments: &[&str], summary: &str| {
        let mut command = scratch.command(arguments);
        Ran::from(command.env("GITHUB_STEP_SUMMARY", scratch.path(summary)).output().unwrap())
    };
    let ran = run(&["check"], "no/such/folder/summary.md").expect(2);
    assert!(ran.stdout.contains("retrieval r (map 1.000, max 0.5)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("report: karat-report/report.json"), "{}", ran.stdout);
    for words in ["GITHUB_STEP_SUMMARY", "exit code 1"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let ran = run(&["check", "--json"], "no/such/folder/summary.md").expect(2);
    assert_eq!(ran.json()["verdict"], "fail");

    // One that cannot be written does not keep the others from being written.
    std::fs::create_dir_all(scratch.path("taken.md")).unwrap();
    let ran = run(&["check", "-q", "-o", "taken.md", "-o", "r.xml"], "summary.md").expect(2);
    assert!(ran.stdout.starts_with("fail: retrieval · r: map "), "{}", ran.stdout);
    assert!(ran.stderr.contains("taken.md"), "{}", ran.stderr);
    assert!(scratch.read("r.xml").contains("map"));
    assert!(scratch.read("summary.md").contains("map"));
}

#[test]
fn the_summary_is_added_to_the_page_of_a_github_job() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let page = scratch.write("summary.md", "what an earlier step wrote\n");
    let run = |page: &std::path::Path| {
        let output = scratch.command(&["check"]).env("GITHUB_STEP_SUMMARY", page).output();
        Ran::from(output.unwrap())
    };
    run(&page).expect(0);
    let text = scratch.read("summary.md");
    assert!(text.starts_with("what an earlier step wrote\n## ✓ Karat: pass"), "{text}");
    let ran = run(&scratch.path("no/such/folder/summary.md")).expect(2);
    assert!(ran.stderr.contains("GITHUB_STEP_SUMMARY"), "{}", ran.stderr);
}

#[test]
fn one_run_writes_every_shape() {
    let scratch = Scratch::new();
    let outputs = ["r.json", "r.html", "r.md", "r.xml", "r.sarif", "r.badge.json"];
    let mut arguments = vec!["check", "--bundled", "-o", "r.score-report.json"];
    arguments.extend(outputs.iter().flat_map(|name| ["-o", name]));
    scratch.karat(&arguments).expect(0);
    for name in outputs {
        assert!(!scratch.read(name).is_empty(), "{name}");
    }
    let scores: serde_json::Value =
        serde_json::from_str(&scratch.read("r.score-report.json")).unwrap();
    assert_eq!(scores["retrieval"]["gate"]["passed"], true);
    let detectors = scores["security"]["per_detector"].as_array().unwrap();
    let combined = detectors.iter().find(|row| row["detector"] == "builtin").unwrap();
    assert_eq!(combined["gate"]["passed"], true);
    let (tp, missed) = (combined["tp"].as_u64().unwrap(), combined["fn"].as_u64().unwrap());
    let recall = combined["recall"].as_f64().unwrap();
    assert!((tp as f64 / (tp + missed) as f64 - recall).abs() < 1e-12, "{combined}");
    // Every attack that the detectors let pass is a finding.
    let findings: serde_json::Value = serde_json::from_str(&scratch.read("r.sarif")).unwrap();
    let findings = findings["runs"][0]["results"].as_array().unwrap();
    let passed = findings.iter().filter(|finding| finding["ruleId"] == "false-negative").count();
    assert_eq!(passed as u64, missed);
}

#[test]
fn the_form_for_agents_names_what_failed_and_where_to_look() {
    let scratch = with_baseline();
    let tools = scratch.read("tools.json").replace("Open a ticket.", "Nothing of note.");
    scratch.write("tools.json", tools);
    let ran = scratch.karat(&["check", "--output-format", "agent", "-o", "r.agent.md"]).expect(1);
    let words = ["karat: fail:", "FAIL retrieval/r", "rule mrr max_drop 0", "--item=q1"];
    words.iter().for_each(|word| assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout));
    assert!(ran.stdout.contains("karat-report/report.json"), "{}", ran.stdout);
    let file = scratch.read("r.agent.md");
    assert!(ran.stdout.starts_with(file.trim_end()), "the file has no list of files: {file}");
    let shown = scratch.karat(&["show", "--output-format", "agent"]).expect(0);
    assert!(shown.stdout.starts_with(file.trim_end()), "{}", shown.stdout);
    scratch.karat(&["check", "--output-format", "agent", "--json"]).expect(2);
}

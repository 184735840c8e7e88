//! Where reports may go, and in which shapes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

mod common;

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
    let mut arguments = vec!["check", "-o", "r.score-report.json"];
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

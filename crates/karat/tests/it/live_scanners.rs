//! Real scanners, each through its adapter file, on the bundled corpus. They are installed by
//! benches/scanners/install at pinned versions; without them the tests fail and say so.
//!
//! What is asserted holds whatever a scanner's rules are: it ran, it judged every entry that it can see
//! and abstained on the others, its verdicts are those of its own output. How well it does is printed,
//! not judged.

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::{Scratch, metric};
use serde_json::Value;

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The folder of the scanners, installed once.
fn scanners() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let install = Path::new(ROOT).join("benches/scanners/install");
        let done = Command::new(&install).output().unwrap_or_else(|error| {
            panic!("{} cannot be run: {error}", install.display());
        });
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "the scanners cannot be installed: {said}");
        Path::new(ROOT).join("target/live/scanners").canonicalize().unwrap()
    })
}

fn measure(scratch: &Scratch, adapter: &str) -> Value {
    let folder = scanners();
    let programs = ["cisco/bin", "safeguard/bin", "others/bin", "npm/node_modules/.bin"];
    measure_with(scratch, adapter, programs.map(|name| folder.join(name)).to_vec())
}

/// The report of an adapter file, with the folders of programs where a shell would find them.
pub(crate) fn measure_with(scratch: &Scratch, adapter: &str, mut path: Vec<PathBuf>) -> Value {
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut command = scratch.command(&["detection", "run", adapter, "--json"]);
    command
        .env("PATH", std::env::join_paths(path).unwrap())
        // mcp-scan keeps a history there.
        .env("HOME", scratch.path("home"))
        // With a fixed clock no times are reported.
        .env_remove("SOURCE_DATE_EPOCH")
        .timeout(std::time::Duration::from_secs(1800));
    std::fs::create_dir_all(scratch.path("home")).unwrap();
    let document = common::Ran::from(command.output().unwrap()).expect(0).json();
    let report = document["reports"][0].clone();
    print(&report);
    report
}

pub(crate) fn adapter(scratch: &Scratch, name: &str) -> String {
    let text = std::fs::read_to_string(Path::new(ROOT).join("adapters").join(name)).unwrap();
    scratch.write(name, text);
    name.to_owned()
}

/// The tables, for anyone who runs the test with --nocapture.
fn print(report: &Value) {
    let cell = |metrics: &Value, id: &str| {
        let found = metrics.as_array().unwrap().iter().find(|metric| metric["id"] == id);
        let value = found.and_then(|metric| metric["value"].as_f64());
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
    };
    println!("\n{} {}", report["name"], report["system"]["version"]);
    for id in ["recall", "fpr_hard", "fpr", "precision", "coverage"] {
        println!("  {id:<10} {}", cell(&report["metrics"], id));
    }
    for slice in report["slices"].as_array().unwrap() {
        let (by, value, metrics) =
            (&slice["by"], slice["value"].as_str().unwrap(), &slice["metrics"]);
        if ["category", "tier", "split"].contains(&by.as_str().unwrap()) {
            let cells: Vec<String> = ["recall", "fpr_hard", "fpr", "coverage"]
                .iter()
                .map(|id| cell(metrics, id))
                .collect();
            println!("  {:<9} {value:<24} {}", by.as_str().unwrap(), cells.join("  "));
        }
    }
    println!("  ms {}", report["environment"]["latency_ms"]);
    println!("  notes {}", report["warnings"]);
}

fn surface(item: &Value) -> &str {
    item["tags"]["surface"].as_str().unwrap_or("plain")
}

fn outcomes(report: &Value) -> BTreeMap<String, (String, String)> {
    let items = report["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| {
            let outcome = item["observed"]["outcome"].as_str().unwrap().to_owned();
            (item["id"].as_str().unwrap().to_owned(), (surface(item).to_owned(), outcome))
        })
        .collect()
}

/// Everything is judged but what the scanner cannot be shown.
#[track_caller]
pub(crate) fn judged_all_but(report: &Value, hidden: &[&str]) {
    assert_eq!(report["items"].as_array().unwrap().len(), 2181);
    for (id, (surface, outcome)) in outcomes(report) {
        let abstained = outcome == "unsupported";
        assert!(outcome != "error", "{id}");
        // Entries of other surfaces may carry a result as well; then they are hidden too.
        assert!(abstained || !hidden.contains(&surface.as_str()), "{id}: {surface} {outcome}");
    }
    let recall = metric(report, "recall")["value"].as_f64().unwrap();
    assert!(recall > 0.0, "a scanner that finds nothing at all was not reached");
    assert!(report["environment"]["latency_ms"]["p50"].as_f64().unwrap() > 0.0);
    assert!(report["controls"].as_array().unwrap().iter().all(|control| control["ok"] == true));
}

#[test]
#[ignore = "installs real scanners; ./test scanners runs it"]
fn cisco_mcp_scanner_and_its_yara_rules_give_the_same_verdicts() {
    let scratch = Scratch::new();
    let file = adapter(&scratch, "cisco-mcp-scanner.toml");
    let scanner = measure(&scratch, &file);
    judged_all_but(&scanner, &["tool_result", "server_instructions"]);
    let canonical = outcomes(&scanner);

    let rules = scanners().join("cisco/lib");
    let python = std::fs::read_dir(&rules).unwrap().next().unwrap().unwrap().path();
    let rules = python.join("site-packages/mcpscanner/data/yara_rules");
    let text = scratch.read(&adapter(&scratch, "cisco-yara-rules.toml"));
    let pointed = text.replace("mcpscanner/data/yara_rules\"", &format!("{}\"", rules.display()));
    assert_ne!(text, pointed, "the adapter no longer names the folder of the rules");
    scratch.write("cisco-yara-rules.toml", pointed);
    let own = measure(&scratch, "cisco-yara-rules.toml");
    let own = outcomes(&own);

    let mut compared = 0;
    for (id, (_, outcome)) in &canonical {
        if outcome != "unsupported" {
            assert_eq!(&own[id].1, outcome, "{id}");
            compared += 1;
        }
    }
    assert!(compared > 1_500, "{compared}");
    let flags = canonical.values().filter(|(_, outcome)| outcome.ends_with("positive")).count();
    assert!(flags > 10, "{flags} flags prove little");
}

#[test]
#[ignore = "installs real scanners; ./test scanners runs it"]
fn mcp_safeguard_is_measured_through_its_adapter() {
    let scratch = Scratch::new();
    let file = adapter(&scratch, "mcp-safeguard.toml");
    let report = measure(&scratch, &file);
    judged_all_but(&report, &["tool_result", "server_instructions"]);
    // Its credential rules name no tool; they are said, not lost.
    let said = report["warnings"].to_string();
    assert!(said.contains("about the file as a whole"), "{said}");
}

#[test]
#[ignore = "installs real scanners; ./test scanners runs it"]
fn npm_mcp_scan_is_measured_through_its_adapter() {
    let scratch = Scratch::new();
    let file = adapter(&scratch, "mcp-scan.toml");
    let report = measure(&scratch, &file);
    judged_all_but(&report, &["tool_result"]);
    let shown = outcomes(&report);
    let instructions = shown.values().filter(|(surface, _)| surface == "server_instructions");
    assert!(instructions.filter(|(_, outcome)| outcome != "unsupported").count() > 10);
}

#[test]
#[ignore = "installs real scanners; ./test scanners runs it"]
fn bawbel_and_mcpguard_are_measured_through_their_adapters() {
    let scratch = Scratch::new();
    for (file, hidden) in [
        ("bawbel-scanner.toml", &["tool_result", "server_instructions"][..]),
        ("mcpguard.toml", &["tool_result"]),
    ] {
        let report = measure(&scratch, &adapter(&scratch, file));
        judged_all_but(&report, hidden);
        let said = report["warnings"].to_string();
        assert!(!said.contains("canary"), "{file}: {said}");
    }
}

/// The adapter for verdicts made elsewhere needs no scanner, so it is always tested.
#[test]
fn the_adapter_for_mcpproxy_verdicts_scores_a_file() {
    let scratch = Scratch::new();
    let file = adapter(&scratch, "mcpproxy-verdicts.toml");
    let entry = |id: &str, label: &str, category: &str| {
        format!(
            r#"{{"id": "{id}", "label": "{label}", "category": "{category}", "server": "s", "tool": {{"name": "t", "description": "d"}}, "provenance": {{"source": "x", "license": "MIT"}}}}"#
        )
    };
    scratch.write(
        "detect_corpus.json",
        format!(
            r#"{{"version": "v1", "entries": [{}, {}]}}"#,
            entry("a", "malicious", "tpa"),
            entry("b", "benign", "hard_negative")
        ),
    );
    let verdict = |id: &str, label: &str, category: &str, hard: bool| {
        format!(
            r#"{{"id": "{id}", "label": "{label}", "category": "{category}", "verdicts": [{{"detector": "baseline.hard", "flagged": {hard}, "detections": []}}, {{"detector": "baseline.any", "flagged": true, "detections": []}}]}}"#
        )
    };
    scratch.write(
        "verdicts_detect.json",
        format!(
            r#"{{"detectors": ["baseline.hard", "baseline.any"], "entries": [{}, {}]}}"#,
            verdict("a", "malicious", "tpa", true),
            verdict("b", "benign", "hard_negative", false)
        ),
    );
    let report = scratch.karat(&["detection", "run", &file, "--json"]).expect(0).json()["reports"]
        [0]
    .clone();
    assert_eq!(metric(&report, "recall")["value"], 1.0);
    assert_eq!(metric(&report, "fpr_hard")["value"], 0.0);
}

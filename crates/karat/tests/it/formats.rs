//! Files of every format that a Karat ever wrote are still read: docs/installation.md promises it. A format
//! with a new number gets a folder next to the others, and the folders there stay as they are.

use std::path::{Path, PathBuf};

use crate::common::Scratch;

fn folders() -> Vec<PathBuf> {
    let all = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/formats")).unwrap();
    let mut all: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

fn schema(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["schema"].as_str().unwrap().to_owned()
}

#[test]
fn reports_and_checks_of_every_format_are_read() {
    let scratch = Scratch::new();
    let folders = folders();
    let newest = folders.last().unwrap();
    assert_eq!(schema(&newest.join("report.json")), karat_core::report::SCHEMA);
    for folder in &folders {
        for file in ["report.json", "check.json"].map(|name| folder.join(name)) {
            let (old, new) = (file.to_str().unwrap(), newest.join("report.json"));
            let ran = scratch.karat(&["compare", old, new.to_str().unwrap()]).expect(0);
            assert!(ran.stdout.contains("mrr"), "{old}: {}", ran.stdout);
            let ran = scratch.karat(&["comment", old]).expect(0);
            assert!(ran.stdout.contains("<code>mrr</code>"), "{old}: {}", ran.stdout);
            let history = format!("{}.sqlite", folder.file_name().unwrap().display());
            scratch.karat(&["history", "--db", &history, "add", old]).expect(0);
        }
    }
}

#[test]
fn projects_and_baselines_of_every_format_are_read() {
    let newest = folders().last().unwrap().join("baseline.json");
    assert_eq!(schema(&newest), karat_core::baseline::SCHEMA);
    for folder in folders() {
        let scratch = Scratch::new();
        for name in ["karat.toml", "tools.json", "golden.jsonl", "baseline.json"] {
            scratch.write(name, std::fs::read(folder.join(name)).unwrap());
        }
        let ran = scratch.karat(&["check", "--json"]).expect(0);
        let check: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let gate = check["reports"][0]["gate"]["checks"].as_array().unwrap();
        assert!(
            gate.iter().any(|one| one["rule"] == "max_drop" && one["baseline"].is_number()),
            "{gate:?}"
        );
    }
}

#[test]
fn a_format_of_the_future_is_refused() {
    let scratch = Scratch::new();
    let newest = folders().pop().unwrap();
    for name in ["report.json", "check.json"] {
        let text = std::fs::read_to_string(newest.join(name)).unwrap();
        let (head, rest) = text.split_once("\",").unwrap();
        let (kind, _) = head.split_once('/').unwrap();
        let future = scratch.write("future.json", format!("{kind}/99\",{rest}"));
        let ran = scratch.karat(&["comment", future.to_str().unwrap()]).expect(2);
        assert!(ran.stderr.contains("/99"), "{}", ran.stderr);
    }
    let text = std::fs::read_to_string(newest.join("baseline.json")).unwrap();
    for name in ["karat.toml", "tools.json", "golden.jsonl"] {
        scratch.write(name, std::fs::read(newest.join(name)).unwrap());
    }
    scratch.write("baseline.json", text.replace(karat_core::baseline::SCHEMA, "karat.baseline/99"));
    assert!(scratch.karat(&["check"]).expect(2).stderr.contains("karat.baseline/99"));
}

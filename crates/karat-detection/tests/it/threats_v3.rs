//! `datasets/threats/v3` keeps its promises: twins, splits, languages, and schemas as large as real ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use karat_core::dataset::DatasetFiles;
use karat_detection::audit::audit;
use karat_detection::dataset::Dataset;
use serde_json::Value;

/// The part of an entry that a scanner sees.
const SEEN: [&str; 6] = ["server", "tool", "peers", "before", "result", "instructions"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/threats/v3")
}

fn entries() -> Vec<Value> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder().join("entries"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let lines = |path: &PathBuf| -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    paths.iter().flat_map(lines).collect()
}

fn text<'a>(entry: &'a Value, path: &str) -> &'a str {
    entry.pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("no {path}: {entry}"))
}

/// Attack and twin by the id without its last letter.
fn pairs(entries: &[Value]) -> Vec<(&Value, &Value)> {
    let mut found: BTreeMap<&str, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry["category"] != "benign") {
        let id = text(entry, "/id");
        let pair = found.entry(&id[..id.len() - 1]).or_default();
        if entry["label"] == "malicious" { pair.0.push(entry) } else { pair.1.push(entry) }
    }
    let pair = |(id, (attacks, twins)): (&str, (Vec<_>, Vec<_>))| {
        assert!(attacks.len() == 1 && twins.len() == 1, "{id} is not a pair");
        (attacks[0], twins[0])
    };
    found.into_iter().map(pair).collect()
}

fn seen(entry: &Value) -> Value {
    SEEN.iter()
        .map(|key| ((*key).to_owned(), entry[*key].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The paths of the values that differ.
fn differences(a: &Value, b: &Value, path: &str, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, inner) in a {
                differences(inner, &b[key], &format!("{path}/{key}"), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                differences(a, b, &format!("{path}[]"), found);
            }
        }
        _ if a != b => found.push(path.to_owned()),
        _ => {}
    }
}

#[test]
fn it_is_frozen_and_passes_the_audit() {
    let dataset = Dataset::open(DatasetFiles::Folder(folder())).unwrap();
    assert_eq!(audit(&dataset), []);
    let bytes = |path: PathBuf| std::fs::metadata(path).unwrap().len();
    let entries = std::fs::read_dir(folder().join("entries")).unwrap();
    let size: u64 = entries.map(|entry| bytes(entry.unwrap().path())).sum();
    assert!(size < 6_000_000, "{size} bytes");
}

#[test]
fn an_attack_and_its_twin_differ_in_one_text_and_hardly_in_length() {
    let entries = entries();
    let pairs = pairs(&entries);
    assert!(pairs.len() >= 600, "{}", pairs.len());
    let mut categories: BTreeMap<&str, usize> = BTreeMap::new();
    let mut longer = 0;
    for (attack, twin) in &pairs {
        *categories.entry(text(attack, "/category")).or_default() += 1;
        for key in ["split", "language", "surface", "provenance"] {
            assert_eq!(attack[key], twin[key], "{key} of {}", attack["id"]);
        }
        assert_eq!(attack["category"], twin["resembles"], "{}", attack["id"]);
        let (attack_seen, twin_seen) = (seen(attack), seen(twin));
        let mut found = Vec::new();
        differences(&attack_seen, &twin_seen, "", &mut found);
        assert_eq!(found.len(), 1, "{}: {found:?}", attack["id"]);
        let length = |value: &Value| value.to_string().chars().count();
        let (a, b) = (length(&attack_seen), length(&twin_seen));
        assert!(a.abs_diff(b) * 10 <= a.min(b), "{}: {a} and {b} characters", attack["id"]);
        longer += usize::from(a > b);
    }
    assert_eq!(categories.len(), 12, "{categories:?}");
    assert!(categories.values().all(|count| *count >= 50), "{categories:?}");
    let half = pairs.len() * 4..=pairs.len() * 6;
    assert!(half.contains(&(longer * 10)), "{longer} attacks are longer");
    let surfaces: BTreeSet<&str> =
        pairs.iter().map(|(attack, _)| text(attack, "/surface")).collect();
    for surface in
        ["tool_result", "server_instructions", "parameter_description", "definition_change"]
    {
        assert!(surfaces.contains(surface), "no attack in {surface}");
    }
}

#[test]
fn an_author_and_a_theme_are_in_one_split() {
    let entries = entries();
    for key in ["/provenance/author", "/provenance/theme", "/server"] {
        let mut splits: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for entry in &entries {
            splits.entry(text(entry, key)).or_default().insert(text(entry, "/split"));
        }
        let mixed: Vec<_> = splits.iter().filter(|(_, splits)| splits.len() > 1).collect();
        assert!(splits.len() > 20 && mixed.is_empty(), "{key}: {mixed:?}");
    }
    let languages: BTreeSet<&str> = entries.iter().map(|entry| text(entry, "/language")).collect();
    assert!(languages.len() >= 20, "{languages:?}");
}

#[test]
fn definitions_are_as_rough_as_real_ones() {
    let entries = entries();
    let schemas: Vec<&Value> = entries.iter().map(|entry| &entry["tool"]["input_schema"]).collect();
    let mut sizes: Vec<usize> = schemas.iter().map(|schema| schema.to_string().len()).collect();
    sizes.sort_unstable();
    let at = |percent: usize| sizes[(sizes.len() - 1) * percent / 100];
    assert!((330..=500).contains(&at(50)), "median {}", at(50));
    assert!((2_300..=3_600).contains(&at(95)), "p95 {}", at(95));
    assert!(at(100) > 75_000, "max {}", at(100));
    let parameters =
        schemas.iter().filter_map(|schema| schema["properties"].as_object()).map(|p| p.len()).max();
    assert_eq!(parameters, Some(205));
    let annotated =
        entries.iter().filter(|entry| entry["tool"].get("annotations").is_some()).count();
    let half = entries.len() * 45..=entries.len() * 55;
    assert!(half.contains(&(annotated * 100)), "{annotated} with annotations");
    let plain: Vec<String> = entries
        .iter()
        .filter(|entry| entry["category"] == "benign")
        .map(|entry| seen(entry).to_string())
        .collect();
    assert!(plain.len() >= 400, "{}", plain.len());
    for word in [
        "token",
        "secret",
        "upload",
        "conversation",
        "password",
        "Args:",
        "## ",
        "oauth2",
        "instructions",
    ] {
        let with = plain.iter().filter(|text| text.contains(word)).count();
        assert!(with >= 3, "{with} plain entries with {word:?}");
    }
}

#[test]
fn attacks_name_reserved_hosts_only() {
    let mut hosts = 0;
    for entry in entries() {
        let shown = seen(&entry).to_string().replace("http://json-schema.org/draft-07/schema#", "");
        for (at, _) in shown.match_indices("://").chain(shown.match_indices('@')) {
            let host: String = shown[at..]
                .trim_start_matches([':', '/', '@'])
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
                .collect();
            let reserved =
                ["192.0.2.", "198.51.100.", "203.0.113."].iter().any(|net| host.starts_with(net));
            let name = host.trim_end_matches('.');
            let words = name.is_empty() || !name.contains('.');
            assert!(reserved || words || name.ends_with(".example"), "{}: {host}", entry["id"]);
            hosts += usize::from(!words);
        }
    }
    assert!(hosts > 50, "{hosts}");
}

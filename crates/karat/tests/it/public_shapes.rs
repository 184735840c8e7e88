//! Files for other programs have the format that these expect. `tests/outputs/run` passes the same files to the
//! programs; these tests run without them.

use crate::common;

use common::Scratch;
use serde_json::Value;

/// A search and a scanner, each on its starter set.
fn project(entries: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    for user in ["proxy", "scanner"] {
        scratch.karat(&["init", user, "--for", user, "--ci", "none"]).expect(0);
    }
    scratch.write("karat.toml", entries.concat());
    scratch
}

const SEARCH: &str = r#"
[[retrieval]]
name = "search"
dataset = "proxy/datasets/starter/v1"
system = { builtin = "bm25" }
baseline = "proxy/baselines/retrieval-search.json"
[retrieval.gate.metrics]
"recall@5" = { max_drop = 0.02 }
"#;

const SCANNER: &str = r#"
[[detection]]
name = "scanner"
dataset = "scanner/datasets/starter/v1"
system = { builtin = "builtin" }
[detection.gate.metrics]
"recall" = { min = 0.3 }
"fpr_hard" = { max = 0.2 }
"#;

fn json(scratch: &Scratch, file: &str) -> Value {
    serde_json::from_str(&scratch.read(file)).unwrap()
}

fn fits(document: &Value) {
    let schema: Value =
        serde_json::from_str(include_str!("../shapes/score-report.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}: {document:#}");
}

#[test]
fn a_score_report_has_the_public_shape_and_the_numbers_of_the_report() {
    let scratch = project(&[SEARCH, SCANNER]);
    let outputs = ["check", "-o", "s.score-report.json", "-o", "r.json"];
    scratch.karat(&outputs).expect(0);
    let (scores, document) = (json(&scratch, "s.score-report.json"), json(&scratch, "r.json"));
    fits(&scores);
    let report = |evaluation: &str| -> &Value {
        let reports = document["reports"].as_array().unwrap();
        reports.iter().find(|report| report["evaluation"] == evaluation).unwrap()
    };
    let metric = |of: &Value, id: &str| -> Value {
        let metrics = of["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["id"] == id).unwrap()["value"].clone()
    };
    let search = &scores["retrieval"]["metrics"];
    for k in ["1", "3", "5", "10"] {
        assert_eq!(search["recall_at"][k], metric(report("retrieval"), &format!("recall@{k}")));
    }
    assert_eq!(search["mrr"], metric(report("retrieval"), "mrr@10"));
    assert_eq!(search["map"], metric(report("retrieval"), "map@10"));
    assert_eq!(scores["retrieval"]["gate"]["tolerance"], 0.02);
    let rows = scores["security"]["per_detector"].as_array().unwrap();
    let combined = rows.iter().find(|row| row["detector"] == "builtin").unwrap();
    assert_eq!(combined["recall"], metric(report("detection"), "recall"));
    assert_eq!(combined["tp"].as_u64().unwrap() + combined["fn"].as_u64().unwrap(), 16);
    assert_eq!(combined["gate"]["fpr_ceiling"], 0.2);
    // A detector without a defined rate is named, not given a made-up one.
    let left_out = scores["left_out"].to_string();
    let named = rows.iter().filter_map(|row| row["detector"].as_str());
    assert!(left_out.contains("undefined"), "{left_out}");
    assert!(named.into_iter().all(|name| !left_out.contains(&format!("detector {name}:"))));
}

#[test]
fn a_score_report_says_that_a_gate_failed_and_holds_what_there_is() {
    let short = SEARCH.replace("\"bm25\"", "\"bm25-names\"");
    let scratch = project(&[&short]);
    scratch.karat(&["check", "-o", "s.score-report.json"]).expect(1);
    let scores = json(&scratch, "s.score-report.json");
    fits(&scores);
    assert_eq!(scores["retrieval"]["gate"]["passed"], false);
    assert!(scores.get("security").is_none());

    scratch.write("karat.toml", SCANNER.replace("0.3", "0.99"));
    scratch.karat(&["check", "-o", "s.score-report.json"]).expect(1);
    let scores = json(&scratch, "s.score-report.json");
    fits(&scores);
    assert!(scores.get("retrieval").is_none());
}

/// The reasons why GitHub's code scanning refuses a log, beyond the schema.
fn is_taken_by_forges(document: &Value) -> usize {
    assert_eq!(document["version"], "2.1.0");
    let run = &document["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for rule in rules {
        for key in ["shortDescription", "fullDescription", "help"] {
            assert!(rule[key]["text"].as_str().is_some_and(|text| !text.is_empty()), "{rule}");
        }
    }
    let results = run["results"].as_array().unwrap();
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"], "{result}");
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        let place = &result["locations"][0];
        assert!(place["physicalLocation"]["artifactLocation"]["uri"].is_string(), "{result}");
        assert!(place["logicalLocations"][0]["fullyQualifiedName"].is_string(), "{result}");
    }
    results.len()
}

#[test]
fn findings_can_be_handed_to_a_forge() {
    let scratch = project(&[SCANNER]);
    scratch.karat(&["check", "-o", "check.sarif"]).expect(0);
    // Attacks that were missed; there is no false alarm.
    assert_eq!(is_taken_by_forges(&json(&scratch, "check.sarif")), 3);

    let tools =
        r#"{"tools": [{"name": "a b", "description": "", "inputSchema": {"type": "array"}}]}"#;
    scratch.write("tools.json", tools);
    scratch.karat(&["server", "lint", "--tools", "tools.json", "--sarif", "lint.sarif"]).expect(1);
    assert!(is_taken_by_forges(&json(&scratch, "lint.sarif")) >= 3);

    let karat = env!("CARGO_BIN_EXE_karat");
    let server = ["--", karat, "demo-server", "--vulnerable"];
    let fuzz = ["server", "fuzz", "--tool", "misshapen", "--inputs", "20", "--sarif", "fuzz.sarif"];
    scratch.karat(&[&fuzz[..], &server].concat()).expect(1);
    assert!(is_taken_by_forges(&json(&scratch, "fuzz.sarif")) >= 1);
    let attack = ["server", "attack", "--tool", "settings_unsafe", "--sarif", "attack.sarif"];
    scratch.karat(&[&attack[..], &server].concat()).expect(1);
    assert!(is_taken_by_forges(&json(&scratch, "attack.sarif")) >= 1);
}

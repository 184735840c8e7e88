//! The ways to reach a scanner: built in, YARA, command, verdict file.

use crate::common::{corpus, entry, observed, run, small_corpus, system, value, write};
use karat_core::error::EvalError;
use karat_core::gate;
use karat_core::report::Verdict;

#[tokio::test]
async fn the_builtin_system_reports_each_detector_and_proves_that_it_is_deterministic() {
    let (folder, dataset) = corpus(&small_corpus());
    let entry = entry("name = \"b\"\nsystem = { builtin = \"builtin\" }");
    let report = run(folder.path(), &entry, &dataset).await.unwrap();
    assert_eq!((value(&report, "recall"), value(&report, "fpr")), (Some(1.0), Some(0.0)));
    assert_eq!(value(&report, "roc_auc"), Some(1.0));
    for detector in ["builtin", "hidden-unicode", "instruction-phrases", "response-injection"] {
        assert!(report.slice_metric("detector", detector, "recall").is_some(), "{detector}");
    }
    assert_eq!(report.slice_metric("tier", "block", "recall").unwrap().value, Some(1.0));
    let names: Vec<&str> = report.controls.iter().map(|control| control.name.as_str()).collect();
    assert_eq!(names, ["oracle", "flags-all", "silent", "word-list", "second-pass"]);
    assert!(report.controls.iter().all(|control| control.ok), "{:?}", report.controls);
    let item = report.items.iter().find(|item| item.id == "m-1").unwrap();
    let findings = &observed(item)["findings"];
    let file =
        findings.as_array().unwrap().iter().find(|f| f["rule"] == "takes-secret-file").unwrap();
    assert_eq!(file["detector"], "instruction-phrases");
    assert!(file["excerpt"].as_str().unwrap().contains("id_rsa"));
    assert!(report.system.settings["rule"].contains("block"));
}

#[tokio::test]
async fn one_builtin_detector_alone_is_a_system_too() {
    let (folder, dataset) = corpus(&small_corpus());
    let alone = entry("name = \"u\"\nsystem = { builtin = \"hidden-unicode\" }");
    let report = run(folder.path(), &alone, &dataset).await.unwrap();
    assert_eq!(value(&report, "recall"), Some(0.0));
    assert_eq!(value(&report, "precision"), None);
    assert_eq!(
        report.metric("precision").unwrap().undefined.as_deref(),
        Some("nothing was flagged")
    );
    let unknown = system("builtin = \"hidden\"").reference().unwrap_err();
    assert!(unknown.to_string().contains("hidden-unicode"), "{unknown}");
}

#[cfg(feature = "yara")]
#[tokio::test]
async fn yara_rules_of_the_user_are_run_over_text_and_schema() {
    let (folder, dataset) = corpus(
        r#"{"id":"a","label":"malicious","category":"x","tool":{"name":"t","description":"Sends the vault key away."}}
{"id":"b","label":"malicious","category":"x","tool":{"name":"t","description":"d","input_schema":{"properties":{"n":{"description":"the vault key é"}}}}}
{"id":"c","label":"benign","category":"benign","tool":{"name":"t","description":"Opens a vault."}}"#,
    );
    let rule = "rule vault { meta: description = \"vault\" severity = \"high\" strings: $a = \"vault key\" condition: $a }";
    write(folder.path(), "rules/one.yar", rule);
    write(
        folder.path(),
        "rules/two.yara",
        "rule escaped { strings: $a = \"\\\\u00e9\" condition: $a }",
    );
    write(folder.path(), "rules/notes.txt", "not a rule");
    let measured = entry("name = \"y\"\nsystem = { yara = \"rules\" }");
    let report = run(folder.path(), &measured, &dataset).await.unwrap();
    assert_eq!((value(&report, "recall"), value(&report, "fpr")), (Some(1.0), Some(0.0)));
    let rules = |id: &str| -> Vec<String> {
        let item = report.items.iter().find(|item| item.id == id).unwrap();
        let findings = observed(item)["findings"].as_array().unwrap().clone();
        findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (rules("a"), rules("b")),
        (vec!["vault".to_owned()], vec!["vault".to_owned(), "escaped".to_owned()])
    );

    write(folder.path(), "broken/one.yar", "rule broken { condition: nonsense }");
    let broken = entry("name = \"y\"\nsystem = { yara = \"broken\" }");
    let error = run(folder.path(), &broken, &dataset).await.unwrap_err();
    assert!(matches!(&error, EvalError::Config(message) if message.contains("one.yar")), "{error}");
}

#[cfg(feature = "yara")]
#[tokio::test]
async fn a_yara_rule_that_never_ends_is_given_up() {
    let (folder, dataset) = corpus(
        r#"{"id":"a","label":"malicious","category":"x","tool":{"name":"t","description":"d"}}
{"id":"b","label":"benign","category":"benign","tool":{"name":"t","description":"e"}}"#,
    );
    let endless = "rule endless { condition: for all i in (1..1000000000) : \
                   (for all j in (1..1000000000) : (i+j>0)) }";
    write(folder.path(), "rules/one.yar", endless);
    let measured = entry("name = \"y\"\ntimeout_ms = 200\nsystem = { yara = \"rules\" }");
    let error = run(folder.path(), &measured, &dataset).await.unwrap_err();
    // The engine gives up by itself, or is left alone where it does not.
    let error = error.to_string();
    assert!(["timeout", "did not end within"].iter().any(|why| error.contains(why)), "{error}");
}

const COMMAND: &str = r#"
import sys, json, random
for line in sys.stdin:
    q = json.loads(line)
    assert "label" not in q and "category" not in q
    flag = MODE(q)
    print(json.dumps({"id": q["id"], "verdict": "flag" if flag else "pass", "findings": []}), flush=True)
"#;

fn command(mode: &str) -> String {
    COMMAND.replace("MODE(q)", mode)
}

#[tokio::test]
async fn a_command_is_asked_without_the_truth_and_its_verdicts_are_scored() {
    let (folder, dataset) = corpus(&small_corpus());
    write(folder.path(), "scan.py", &command("'id_rsa' in q['tool']['description']"));
    let entry = entry("name = \"c\"\nsystem = { command = [\"python3\", \"scan.py\"] }");
    let report = run(folder.path(), &entry, &dataset).await.unwrap();
    assert_eq!((value(&report, "recall"), value(&report, "fpr_hard")), (Some(1.0), Some(1.0)));
    assert_eq!(report.system.kind, "command");
    assert!(report.warnings.iter().any(|warning| warning.contains("one run")));
}

#[tokio::test]
async fn a_scanner_that_flips_a_coin_gets_a_mean_an_interval_and_no_verdict_that_data_cannot_carry()
{
    let (folder, dataset) = corpus(&small_corpus());
    write(
        folder.path(),
        "coin.py",
        &command("random.Random(q['id'] + str(q['run'])).random() < 0.5"),
    );
    let toml = "name = \"coin\"\nruns = 5\nsystem = { command = [\"python3\", \"coin.py\"] }\n[gate.metrics]\n\
                recall = { max_drop = 0.1 }\n";
    let entry = entry(toml);
    let mut first = run(folder.path(), &entry, &dataset).await.unwrap();
    let recall = first.metric("recall").unwrap();
    assert_eq!((recall.per_run.len(), recall.n), (5, 4));
    let mean = recall.per_run.iter().flatten().sum::<f64>() / 5.0;
    assert!((recall.value.unwrap() - mean).abs() < 1e-12);
    assert!(recall.per_run.windows(2).any(|pair| pair[0] != pair[1]), "{recall:?}");
    let interval = recall.interval.as_ref().unwrap();
    assert!(interval.low < interval.high);
    let precision = first.metric("precision").unwrap();
    assert_eq!(precision.per_run.len(), 5);
    assert!(precision.interval.is_some());

    // Another coin against this one: four attacks cannot decide about a tenth.
    let baseline = karat_core::baseline::Baseline::from_report(&first);
    write(
        folder.path(),
        "coin.py",
        &command("random.Random(q['id'] + str(q['run'] + 5)).random() < 0.4"),
    );
    let mut second = run(folder.path(), &entry, &dataset).await.unwrap();
    let verdict = gate::judge(&mut second, &entry.0.gate, Some(&baseline)).unwrap();
    assert_eq!(verdict, Verdict::Inconclusive, "{:?}", second.gate);
    let same = gate::judge(&mut first, &entry.0.gate, Some(&baseline)).unwrap();
    assert_eq!(same, Verdict::Pass);
}

#[tokio::test]
async fn a_scanner_that_does_not_work_is_not_measured() {
    let (folder, dataset) = corpus(&small_corpus());
    for command in ["[\"/bin/false\"]", "[\"no-such-scanner-karat\"]"] {
        let entry = entry(&format!("name = \"c\"\nsystem = {{ command = {command} }}"));
        let error = run(folder.path(), &entry, &dataset).await.unwrap_err();
        assert!(error.is_not_measured(), "{error}");
    }
    write(
        folder.path(),
        "errors.py",
        r#"
import sys, json
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "verdict": "error", "findings": ["no model"]}), flush=True)
"#,
    );
    let entry = entry("name = \"c\"\nsystem = { command = [\"python3\", \"errors.py\"] }");
    let error = run(folder.path(), &entry, &dataset).await.unwrap_err();
    assert!(
        matches!(&error, EvalError::TooManyFailures { failed: 10, message, .. } if message.contains("no model")),
        "{error}"
    );
}

#[tokio::test]
async fn a_line_that_flags_without_a_severity_does_not_pass_a_rule_about_severities() {
    let (folder, dataset) = corpus(&small_corpus());
    write(folder.path(), "scan.py", &command("'<IMPORTANT>' in q['tool']['description']"));
    let judged = entry(
        "name = \"c\"\nsystem = { command = [\"python3\", \"scan.py\"], decision = { severities = [\"high\"] } }",
    );
    let error = run(folder.path(), &judged, &dataset).await.unwrap_err();
    let expected = "no severity to decide by";
    assert!(
        matches!(&error, EvalError::TooManyFailures { failed: 4, message, .. } if message.contains(expected)),
        "{error}"
    );
}

#[tokio::test]
async fn verdicts_on_entries_that_the_corpus_lacks_are_reported() {
    let (folder, dataset) = corpus(&small_corpus());
    let ids = dataset.samples.iter().map(|sample| sample.id.as_str()).chain(["gone-1", "gone-2"]);
    let lines: Vec<String> = ids.map(|id| format!(r#"{{"id":"{id}","verdict":"pass"}}"#)).collect();
    let file = write(folder.path(), "v.jsonl", &lines.join("\n"));
    let note = "left out: verdicts on 2 entries that the corpus does not have (first: gone-1)";
    let entry = entry("name = \"v\"\nsystem = { verdicts = \"v.jsonl\" }");
    let measured = run(folder.path(), &entry, &dataset).await.unwrap();
    let scored =
        karat_detection::score_verdicts(dataset, &file, &karat_detection::ScoreOptions::default())
            .unwrap();
    for report in [measured, scored] {
        let notes = report.warnings.iter().filter(|warning| *warning == note).count();
        assert_eq!(notes, 1, "{:?}", report.warnings);
    }
}

#[test]
fn verdicts_are_lines_or_a_list() {
    let (folder, dataset) = corpus(&small_corpus());
    let verdict = |id: &str| {
        format!(
            r#"{{"id": "{id}", "verdict": "{}"}}"#,
            if id.starts_with('m') { "flag" } else { "pass" }
        )
    };
    let lines: Vec<String> = dataset.samples.iter().map(|sample| verdict(&sample.id)).collect();
    for (name, text) in [
        ("v.jsonl", lines.join("\n")),
        ("v.json", format!("[{}]", lines.join(", "))),
        ("v.yaml", format!("# Verdicts.\n- {}", lines.join("\n- "))),
    ] {
        let file = write(folder.path(), name, &text);
        let options = karat_detection::ScoreOptions::default();
        let report = karat_detection::score_verdicts(dataset.clone(), &file, &options).unwrap();
        let found = (value(&report, "recall"), value(&report, "fpr"));
        assert_eq!(found, (Some(1.0), Some(0.0)), "{name}");
    }
}

#[test]
fn a_system_that_contradicts_itself_is_refused_before_anything_runs() {
    for (toml, expected) in [
        ("", "exactly one"),
        ("builtin = \"builtin\"\ncommand = [\"x\"]", "exactly one"),
        ("command = []", "empty"),
        ("builtin = \"builtin\"\nenv = { A = \"1\" }", "env"),
        ("[batch]\ncommand = [\"scan\"]", "{tools}"),
        ("[batch]\ncommand = [\"scan\", \"{tools}\"]", "results"),
        (
            "[batch]\ncommand = [\"scan\", \"{tools}\"]\nformat = \"sarif\"\nabsent = \"missing\"",
            "is for JSON",
        ),
        (
            "[batch]\ncommand = [\"scan\", \"{tools}\"]\nresults = \"a..b\"\nentry = \"c\"",
            "not a path",
        ),
        ("builtin = \"builtin\"\n[decision]\nseverities = [\"high\"]\nmin_score = 1.0", "not both"),
    ] {
        let error = system(toml).reference().unwrap_err().to_string();
        assert!(error.contains(expected), "{toml}: {error}");
    }
}

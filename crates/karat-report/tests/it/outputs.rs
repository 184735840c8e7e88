//! The smaller outputs: badge, score report, findings; and every output of an unknown kind.

use crate::sample;

use std::path::Path;

use karat_core::report::{CheckReport, Kind, Verdict};
use karat_report::Output;
use serde_json::Value;

/// The metrics that a score report must have.
const SHOWN: [&str; 7] =
    ["recall@1", "recall@3", "recall@5", "recall@10", "mrr@10", "ndcg@10", "map@10"];

fn rendered(output: Output, check: &CheckReport) -> Value {
    serde_json::from_str(&output.render(check).unwrap()).unwrap()
}

fn with_verdict(verdict: Option<Verdict>) -> CheckReport {
    CheckReport { verdict, ..sample::failed() }
}

#[test]
fn the_file_extension_chooses_the_format() {
    for (name, output) in [
        ("r.json", Output::Json),
        ("R.HTML", Output::Html),
        ("r.badge.json", Output::Badge),
        ("r.score-report.json", Output::ScoreReport),
        ("r.sarif", Output::Sarif),
        ("r.sarif.json", Output::Sarif),
        ("r.xml", Output::Junit),
        ("r.md", Output::Markdown),
        ("r.agent.md", Output::Agent),
        ("r.agent.txt", Output::Agent),
    ] {
        assert_eq!(Output::of(Path::new(name)), Ok(output), "{name}");
    }
    assert!(Output::of(Path::new("report.pdf")).unwrap_err().contains(".sarif"));
}

#[test]
fn a_badge_is_green_only_for_a_pass() {
    let color = |verdict| rendered(Output::Badge, &with_verdict(verdict))["color"].clone();
    assert_eq!(color(Some(Verdict::Pass)), "brightgreen");
    assert_eq!(color(Some(Verdict::Inconclusive)), "yellow");
    assert_eq!(color(Some(Verdict::Fail)), "red");
    assert_eq!(color(None), "lightgrey");
}

#[test]
fn a_failed_check_is_on_the_badge_and_among_the_findings() {
    let check = sample::failed();
    let failed = check.reports.iter().filter_map(|report| report.gate.as_ref());
    let failed = failed.flat_map(|gate| &gate.checks).find(|check| check.verdict == Verdict::Fail);
    let metric = &failed.expect("the sample has a failed check").metric;
    let badge = rendered(Output::Badge, &with_verdict(Some(Verdict::Fail)));
    assert!(badge["message"].as_str().unwrap().contains(metric.as_str()), "{badge}");
    let log = rendered(Output::Sarif, &check);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let gate = results.iter().find(|result| result["ruleId"] == "gate").unwrap();
    assert_eq!(gate["level"], "error");
    assert!(gate["message"]["text"].as_str().unwrap().contains(metric.as_str()), "{gate}");
}

#[test]
fn a_score_report_has_the_numbers_of_the_report() {
    let mut check = sample::failed();
    let retrieval = check.reports.iter_mut().find(|report| report.kind == Kind::Ranking);
    let metrics = &mut retrieval.unwrap().metrics;
    for (at, id) in SHOWN.into_iter().enumerate() {
        metrics.retain(|metric| metric.id != id);
        metrics.push(sample::measured(id, 0.5 + at as f64 / 100.0, 12, None));
    }
    let shown = rendered(Output::ScoreReport, &check);
    let report = check.reports.iter().find(|report| report.kind == Kind::Ranking).unwrap();
    let mrr = report.metrics.iter().find(|metric| metric.id == "mrr@10").unwrap();
    assert_eq!(shown["retrieval"]["metrics"]["mrr"].as_f64(), mrr.value);
    assert_eq!(shown["retrieval"]["metrics"]["recall_at"]["10"], 0.53);
    assert_eq!(shown["retrieval"]["gate"]["passed"], false);

    let retrieval = check.reports.iter_mut().find(|report| report.kind == Kind::Ranking);
    retrieval.unwrap().metrics.retain(|metric| metric.id != "ndcg@10");
    let error = Output::ScoreReport.render(&check).unwrap_err();
    assert!(error.contains("ndcg@10 is undefined"), "{error}");
}

#[test]
fn a_score_report_without_a_retrieval_or_detection_report_is_refused() {
    let mut check = sample::failed();
    check.reports.retain(|report| report.kind == Kind::Suite);
    assert!(Output::ScoreReport.render(&check).unwrap_err().contains("neither"));
}

#[test]
fn findings_are_the_items_that_a_reader_should_look_at() {
    let log = rendered(Output::Sarif, &sample::kinds::all());
    let results = log["runs"][0]["results"].as_array().unwrap();
    let found: Vec<String> = results
        .iter()
        .filter(|result| result["ruleId"] != "gate")
        .map(|result| {
            let text = result["message"]["text"].as_str().unwrap();
            format!("{} {}: {text}", result["level"], result["ruleId"])
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn an_entry_that_was_missed_in_one_of_several_runs_is_a_finding() {
    let mut report = sample::undecided();
    report.runs = 5;
    // The first run flagged both.
    report.items[0].metrics.insert("recall".into(), Some(0.8));
    let log = rendered(Output::Sarif, &sample::single(report));
    let results = log["runs"][0]["results"].as_array().unwrap();
    let found: Vec<&Value> =
        results.iter().filter(|result| result["ruleId"] == "false-negative").collect();
    assert_eq!(found.len(), 1, "{results:?}");
    let message = found[0]["message"]["text"].as_str().unwrap();
    assert!(message.contains("not flagged in some runs: read"), "{message}");
}

#[test]
fn a_kind_that_this_build_does_not_know_is_in_every_output() {
    let mut check = sample::single(sample::kinds::toy());
    let gate = karat_core::report::Gate {
        verdict: Verdict::Fail,
        checks: vec![sample::check("luck", "min", 0.6, Verdict::Fail, "luck 0.5000 < 0.6 (min)")],
    };
    check.reports[0].gate = Some(gate);
    check.verdict = Some(Verdict::Fail);
    let outputs =
        [Output::Html, Output::Markdown, Output::Junit, Output::Sarif, Output::Json, Output::Agent];
    for output in outputs {
        let text = output.render(&check).unwrap();
        assert!(text.contains("dice") && text.contains("luck"), "{output:?}: {text}");
    }
    assert!(rendered(Output::Badge, &check)["message"] == "fail: luck");
    assert_eq!(rendered(Output::Json, &check)["reports"][0]["items"][0]["observed"]["roll"], 4);
    let shown = karat_report::terminal::check(&check, karat_report::terminal::Style::default());
    assert!(shown.contains("toy · dice") && shown.contains("luck"), "{shown}");
}

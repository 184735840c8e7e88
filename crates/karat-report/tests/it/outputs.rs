//! The smaller outputs: badge, score report, findings. What they say is what the check says.

use crate::sample;

use std::path::Path;

use karat_core::report::{CheckReport, Evaluation, Verdict};
use karat_report::Output;
use serde_json::Value;

/// What a score report must have of a retrieval.
const SHOWN: [&str; 7] = ["recall@1", "recall@3", "recall@5", "recall@10", "mrr", "ndcg@10", "map"];

fn rendered(output: Output, check: &CheckReport) -> Value {
    serde_json::from_str(&output.render(check).unwrap()).unwrap()
}

fn with_verdict(verdict: Option<Verdict>) -> CheckReport {
    CheckReport { verdict, ..sample::failed() }
}

#[test]
fn the_ending_of_a_name_chooses_the_format() {
    for (name, output) in [
        ("r.json", Output::Json),
        ("R.HTML", Output::Html),
        ("r.badge.json", Output::Badge),
        ("r.score-report.json", Output::ScoreReport),
        ("r.sarif", Output::Sarif),
        ("r.sarif.json", Output::Sarif),
        ("r.xml", Output::Junit),
        ("r.md", Output::Markdown),
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
fn a_failed_gate_is_named_on_the_badge_and_among_the_findings() {
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
    let retrieval = check.reports.iter_mut().find(|r| r.evaluation == Evaluation::Retrieval);
    let metrics = &mut retrieval.unwrap().metrics;
    for (at, id) in SHOWN.into_iter().enumerate() {
        metrics.retain(|metric| metric.id != id);
        metrics.push(sample::measured(id, 0.5 + at as f64 / 100.0, 12, None));
    }
    let shown = rendered(Output::ScoreReport, &check);
    let report = check.reports.iter().find(|r| r.evaluation == Evaluation::Retrieval).unwrap();
    let mrr = report.metrics.iter().find(|metric| metric.id == "mrr").unwrap();
    assert_eq!(shown["retrieval"]["metrics"]["mrr"].as_f64(), mrr.value);
    assert_eq!(shown["retrieval"]["metrics"]["recall_at"]["10"], 0.53);
    assert_eq!(shown["retrieval"]["gate"]["passed"], false);

    let missing = check.reports.iter_mut().find(|r| r.evaluation == Evaluation::Retrieval).unwrap();
    missing.metrics.retain(|metric| metric.id != "ndcg@10");
    let error = Output::ScoreReport.render(&check).unwrap_err();
    assert!(error.contains("ndcg@10 is undefined"), "{error}");
}

#[test]
fn a_score_report_of_nothing_it_can_hold_is_refused() {
    let mut check = sample::failed();
    check.reports.retain(|report| report.evaluation == Evaluation::Server);
    assert!(Output::ScoreReport.render(&check).unwrap_err().contains("neither"));
}

//! The gate's three verdicts and its errors, on reports small enough to check by hand.

#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::collections::BTreeMap;

use karat_core::aggregate::{Kind, Spec, measure, slices};
use karat_core::baseline::Baseline;
use karat_core::compare::compare;
use karat_core::gate::{GateError, Policy, Protected, Rule, evaluate, judge};
use karat_core::report::{
    Control, DatasetRef, Environment, Evaluation, Item, Report, SCHEMA, SystemRef, Verdict,
};

const SPECS: [Spec; 3] = [
    Spec { id: "mrr", kind: Kind::Mean },
    Spec { id: "success@5", kind: Kind::Rate },
    Spec { id: "fpr", kind: Kind::Rate },
];

/// A report whose items have these scores in each run; the first letter of an id is its kind.
fn report(runs: &[Vec<(&str, f64)>]) -> Report {
    let ids: Vec<&str> = runs[0].iter().map(|(id, _)| *id).collect();
    let items: Vec<Item> = ids
        .iter()
        .enumerate()
        .map(|(index, id)| {
            let scores: Vec<f64> = runs.iter().map(|run| run[index].1).collect();
            let mean = scores.iter().sum::<f64>() / scores.len() as f64;
            let metrics = |value: f64| {
                BTreeMap::from([
                    ("mrr".to_owned(), Some(value)),
                    ("success@5".to_owned(), Some(f64::from(value > 0.0))),
                    ("fpr".to_owned(), Some(f64::from(value == 0.0))),
                ])
            };
            Item {
                id: (*id).to_owned(),
                group: None,
                tags: BTreeMap::from([("kind".to_owned(), id[..1].to_owned())]),
                metrics: metrics(mean),
                per_run: if runs.len() > 1 {
                    scores.into_iter().map(metrics).collect()
                } else {
                    vec![]
                },
                observed: serde_json::Value::Null,
                error: None,
            }
        })
        .collect();
    let count = u32::try_from(runs.len()).unwrap();
    let all: Vec<&Item> = items.iter().collect();
    Report {
        schema: SCHEMA.to_owned(),
        evaluation: Evaluation::Retrieval,
        name: "r".to_owned(),
        dataset: DatasetRef { id: "d".into(), version: "v1".into(), digest: "sha256:1".into() },
        system: SystemRef {
            kind: "builtin".into(),
            name: "s".into(),
            version: None,
            settings: BTreeMap::new(),
        },
        runs: count,
        seed: 0,
        conventions: BTreeMap::new(),
        metrics: SPECS.iter().map(|spec| measure(*spec, &all, count, 0)).collect(),
        slices: slices("kind", &SPECS, &items, count, 0),
        items,
        controls: vec![],
        comparison: None,
        gate: None,
        warnings: vec![],
        environment: Environment {
            karat: "0".into(),
            os: "x".into(),
            started: "x".into(),
            duration_ms: 0,
            latency_ms: None,
            latency_bins: vec![],
            commit: None,
            isolation: vec![],
        },
    }
}

fn policy(rules: &[(&str, Rule)]) -> Policy {
    Policy {
        metrics: rules.iter().map(|(id, rule)| ((*id).to_owned(), *rule)).collect(),
        ..Policy::default()
    }
}

fn max_drop(limit: f64) -> Rule {
    Rule { max_drop: Some(limit), ..Rule::default() }
}

fn verdict(policy: &Policy, now: &Report, before: &Report) -> (Verdict, String) {
    let gate = evaluate(policy, now, Some(&Baseline::from_report(before))).unwrap();
    let check = gate.checks.last().unwrap();
    (gate.verdict, check.reason.clone())
}

#[test]
fn the_same_scores_pass_with_no_tolerance() {
    let one = report(&[vec![("a1", 1.0), ("a2", 0.5)]]);
    assert_eq!(verdict(&policy(&[("mrr", max_drop(0.0))]), &one, &one).0, Verdict::Pass);
}

#[test]
fn a_drop_beyond_the_tolerance_fails_and_names_metric_and_item() {
    let before = report(&[vec![("a1", 1.0), ("a2", 1.0), ("a3", 1.0), ("a4", 1.0)]]);
    let after = report(&[vec![("a1", 1.0), ("a2", 0.5), ("a3", 1.0), ("a4", 1.0)]]);
    let (found, reason) = verdict(&policy(&[("mrr", max_drop(0.1))]), &after, &before);
    assert_eq!(found, Verdict::Fail);
    assert!(reason.contains("mrr") && reason.contains("a2"), "{reason}");
    // The same loss within the tolerance passes, and is still told.
    let (found, reason) = verdict(&policy(&[("mrr", max_drop(0.125))]), &after, &before);
    assert_eq!(found, Verdict::Pass);
    assert!(reason.contains("worse on 1"), "{reason}");
}

#[test]
fn where_lower_is_better_a_rise_fails() {
    let before = report(&[vec![("a1", 1.0), ("a2", 1.0)]]);
    let after = report(&[vec![("a1", 1.0), ("a2", 0.0)]]);
    let rule = Rule { max_rise: Some(0.1), ..Rule::default() };
    assert_eq!(verdict(&policy(&[("fpr", rule)]), &after, &before).0, Verdict::Fail);
    assert_eq!(verdict(&policy(&[("fpr", rule)]), &before, &after).0, Verdict::Pass);
}

#[test]
fn a_gain_elsewhere_does_not_hide_a_loss_in_the_protected_slice() {
    let before = report(&[vec![("a1", 1.0), ("b1", 0.0), ("b2", 0.0)]]);
    let after = report(&[vec![("a1", 0.0), ("b1", 1.0), ("b2", 1.0)]]);
    let mut policy = policy(&[("mrr", max_drop(0.0))]);
    policy.protected = Some(Protected { slice: "kind=a".into(), metric: "success@5".into() });
    let gate = evaluate(&policy, &after, Some(&Baseline::from_report(&before))).unwrap();
    assert_eq!(gate.verdict, Verdict::Fail);
    let failed: Vec<_> = gate.checks.iter().filter(|c| c.verdict == Verdict::Fail).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(
        (failed[0].rule.as_str(), failed[0].items.as_slice()),
        ("protected", ["a1".to_owned()].as_slice())
    );
}

#[test]
fn a_slice_is_gated_by_its_own_values() {
    let before = report(&[vec![("a1", 1.0), ("b1", 1.0)]]);
    let after = report(&[vec![("a1", 1.0), ("b1", 0.0)]]);
    let mut policy = policy(&[("mrr", max_drop(0.0))]);
    policy.slice = Some("kind=a".into());
    assert_eq!(verdict(&policy, &after, &before).0, Verdict::Pass);
    policy.slice = Some("kind=b".into());
    assert_eq!(verdict(&policy, &after, &before).0, Verdict::Fail);
}

#[test]
fn floors_and_ceilings_hold_the_value() {
    let report = report(&[vec![("a1", 1.0), ("a2", 0.0)]]);
    let floor = |min| Rule { min: Some(min), ..Rule::default() };
    let ceiling = |max| Rule { max: Some(max), ..Rule::default() };
    for (id, rule, expected) in [
        ("success@5", floor(0.5), Verdict::Pass),
        ("success@5", floor(0.51), Verdict::Fail),
        ("fpr", ceiling(0.5), Verdict::Pass),
        ("fpr", ceiling(0.49), Verdict::Fail),
    ] {
        let gate = evaluate(&policy(&[(id, rule)]), &report, None).unwrap();
        assert_eq!(gate.verdict, expected, "{id} {rule:?}");
    }
}

#[test]
fn a_ceiling_that_the_items_cannot_certify_is_inconclusive_and_says_how_many_could() {
    let scores: Vec<(String, f64)> = (0..40).map(|n| (format!("a{n:02}"), 1.0)).collect();
    let items: Vec<(&str, f64)> = scores.iter().map(|(id, score)| (id.as_str(), *score)).collect();
    let rule = Rule { max: Some(0.01), certify: true, ..Rule::default() };
    let gate =
        evaluate(&policy(&[("fpr", rule)]), &report(std::slice::from_ref(&items)), None).unwrap();
    assert_eq!(gate.verdict, Verdict::Inconclusive);
    assert!(gate.checks[0].reason.contains("299 items"), "{}", gate.checks[0].reason);
    let loose = Rule { max: Some(0.1), certify: true, ..Rule::default() };
    let gate = evaluate(&policy(&[("fpr", loose)]), &report(&[items]), None).unwrap();
    assert_eq!(gate.verdict, Verdict::Pass);
}

#[test]
fn a_limit_on_an_undefined_metric_fails() {
    let mut report = report(&[vec![("a1", 1.0)]]);
    report.items[0].metrics.insert("fpr".into(), None);
    let items: Vec<&Item> = report.items.iter().collect();
    report.metrics = vec![measure(SPECS[2], &items, 1, 0)];
    let rule = Rule { max: Some(1.0), ..Rule::default() };
    let gate = evaluate(&policy(&[("fpr", rule)]), &report, None).unwrap();
    assert_eq!(gate.verdict, Verdict::Fail);
    assert!(gate.checks[0].reason.contains("undefined"), "{}", gate.checks[0].reason);
}

#[test]
fn a_control_that_does_not_land_fails_the_gate() {
    let mut report = report(&[vec![("a1", 1.0)]]);
    report.controls = vec![Control {
        name: "oracle".into(),
        expected: "mrr is 1".into(),
        metrics: vec![],
        ok: false,
    }];
    let gate = evaluate(&Policy::default(), &report, None).unwrap();
    assert_eq!(gate.verdict, Verdict::Fail);
    assert_eq!(gate.checks[0].rule, "control");
}

/// Noise that is fixed: item n of run r scores a little above or below.
fn noisy(level: f64, items: usize, runs: usize, swing: f64, seed: usize) -> Report {
    let names: Vec<String> = (0..items).map(|n| format!("a{n:03}")).collect();
    let runs: Vec<Vec<(&str, f64)>> = (0..runs)
        .map(|run| {
            names
                .iter()
                .enumerate()
                .map(|(n, name)| {
                    let wave = ((n * 7919 + run * 104_729 + seed * 15_485_863) % 1000) as f64
                        / 500.0
                        - 1.0;
                    (name.as_str(), (level + swing * wave).clamp(0.0, 1.0))
                })
                .collect()
        })
        .collect();
    report(&runs)
}

#[test]
fn a_varying_system_gets_all_three_verdicts() {
    let before = noisy(0.7, 200, 5, 0.2, 1);
    let policy = policy(&[("mrr", max_drop(0.05))]);
    let (found, reason) = verdict(&policy, &noisy(0.7, 200, 5, 0.2, 2), &before);
    assert_eq!(found, Verdict::Pass, "{reason}");
    let (found, reason) = verdict(&policy, &noisy(0.55, 200, 5, 0.2, 3), &before);
    assert_eq!(found, Verdict::Fail, "{reason}");
    assert!(reason.contains("after Holm"), "{reason}");
    let few = noisy(0.7, 12, 5, 0.3, 1);
    let (found, reason) = verdict(&policy, &noisy(0.66, 12, 5, 0.3, 2), &few);
    assert_eq!(found, Verdict::Inconclusive, "{reason}");
    assert!(reason.contains("would"), "{reason}");
}

#[test]
fn what_cannot_be_evaluated_is_an_error_and_never_a_pass() {
    let one = report(&[vec![("a1", 1.0)]]);
    let baseline = Baseline::from_report(&one);
    let error = |policy: &Policy, baseline: Option<&Baseline>| {
        evaluate(policy, &one, baseline).unwrap_err()
    };
    let unknown = error(&policy(&[("mmr", max_drop(0.0))]), Some(&baseline));
    assert_eq!(unknown, GateError::UnknownMetric { id: "mmr".into(), nearest: Some("mrr".into()) });
    assert!(matches!(
        error(&policy(&[("ndcg@10", max_drop(0.0))]), Some(&baseline)),
        GateError::NotComputed { .. }
    ));
    assert!(matches!(
        error(&policy(&[("mrr", max_drop(0.0))]), None),
        GateError::NoBaseline { .. }
    ));
    let mut thin = baseline.clone();
    thin.metrics.retain(|metric| metric.id != "mrr");
    assert!(matches!(
        error(&policy(&[("mrr", max_drop(0.0))]), Some(&thin)),
        GateError::MissingInBaseline { .. }
    ));
    let mut other = baseline.clone();
    other.dataset.digest = "sha256:2".into();
    assert!(matches!(
        error(&policy(&[("mrr", max_drop(0.0))]), Some(&other)),
        GateError::Compare(_)
    ));
    for wrong in [
        ("mrr", Rule::default()),
        ("fpr", max_drop(0.1)),
        ("mrr", Rule { max_rise: Some(0.1), ..Rule::default() }),
        ("mrr", max_drop(-0.1)),
        ("mrr", max_drop(f64::NAN)),
        ("mrr", Rule { certify: true, max_drop: Some(0.1), ..Rule::default() }),
    ] {
        assert!(
            matches!(error(&policy(&[wrong]), Some(&baseline)), GateError::Rule { .. }),
            "{wrong:?}"
        );
    }
    let mut sliced = policy(&[("mrr", max_drop(0.0))]);
    sliced.slice = Some("kind=z".into());
    assert!(matches!(error(&sliced, Some(&baseline)), GateError::NoSlice { .. }));
    sliced.slice = Some("kind".into());
    assert!(matches!(error(&sliced, Some(&baseline)), GateError::Rule { .. }));
}

#[test]
fn a_comparison_is_paired_and_lists_what_flipped() {
    let before = report(&[vec![("a1", 1.0), ("a2", 0.0), ("a3", 0.5), ("a4", 1.0)]]);
    let after = report(&[vec![("a1", 1.0), ("a2", 1.0), ("a3", 0.25), ("a4", 1.0)]]);
    let found = compare(&Baseline::from_report(&before), &after, &[]).unwrap();
    let mrr = &found.deltas[0];
    assert_eq!((mrr.metric.as_str(), mrr.pairs), ("mrr", 4));
    assert!((mrr.delta.unwrap() - 0.1875).abs() < 1e-12);
    assert_eq!(
        (mrr.improved.as_slice(), mrr.worsened.as_slice()),
        (["a2".to_owned()].as_slice(), ["a3".to_owned()].as_slice())
    );
    assert_eq!(mrr.test.as_deref(), Some("sign_flip_exact"));
    let fpr = &found.deltas[2];
    assert_eq!(fpr.test.as_deref(), Some("mcnemar_exact"));
    // Lower is better here, so the item that stopped being a false positive improved.
    assert_eq!(fpr.improved, ["a2"]);
    assert!(mrr.p_holm.unwrap() >= mrr.p_value.unwrap());
}

#[test]
fn other_items_or_other_data_are_not_compared() {
    let before = report(&[vec![("a1", 1.0), ("a2", 1.0)]]);
    let fewer = report(&[vec![("a1", 1.0)]]);
    let error = compare(&Baseline::from_report(&before), &fewer, &[]).unwrap_err().to_string();
    assert!(error.contains("a2"), "{error}");
}

#[test]
fn a_baseline_survives_its_file_to_the_last_bit() {
    let original = Baseline::from_report(&report(&[vec![("a1", 1.0 / 3.0), ("a2", 0.1 + 0.2)]]));
    let text = original.to_text();
    let path = std::path::Path::new("baseline.json");
    assert_eq!(Baseline::parse(path, &text).unwrap(), original);
    assert_eq!(Baseline::parse(path, &text).unwrap().to_text(), text);
}

#[test]
fn judging_puts_comparison_and_gate_into_the_report() {
    let before = Baseline::from_report(&report(&[vec![("a1", 1.0)]]));
    let mut now = report(&[vec![("a1", 0.5)]]);
    let found = judge(&mut now, &policy(&[("mrr", max_drop(0.0))]), Some(&before)).unwrap();
    assert_eq!(found, Verdict::Fail);
    assert_eq!(now.gate.unwrap().verdict, Verdict::Fail);
    assert_eq!(now.comparison.unwrap().deltas[0].delta, Some(-0.5));
}

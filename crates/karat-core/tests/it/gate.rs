//! The gate's three verdicts and its errors, on reports small enough to check by hand.

use std::collections::BTreeMap;

use karat_core::aggregate::{measure, slices};
use karat_core::baseline::Baseline;
use karat_core::compare::compare;
use karat_core::gate::{GateError, Policy, Protected, Rule, evaluate, judge};
use karat_core::report::{
    Better, Control, DatasetRef, Environment, Evaluation, Item, ItemError, Kind, Measured, Report,
    SCHEMA, SystemRef, Verdict,
};
use karat_metrics::MetricId;

const METRICS: [MetricId; 3] =
    [MetricId::known("mrr"), MetricId::known("success@5"), MetricId::known("fpr")];

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
                    ("mrr".into(), Some(value)),
                    ("success@5".into(), Some(f64::from(value > 0.0))),
                    ("fpr".into(), Some(f64::from(value == 0.0))),
                ])
            };
            Item {
                id: (*id).to_owned(),
                tags: BTreeMap::from([("kind".to_owned(), id[..1].to_owned())]),
                metrics: metrics(mean),
                per_run: if runs.len() > 1 {
                    scores.into_iter().map(metrics).collect()
                } else {
                    vec![]
                },
                ..Item::default()
            }
        })
        .collect();
    let count = u32::try_from(runs.len()).unwrap();
    averaged(Report {
        kind: karat_core::kind::Kind::Ranking,
        schema: SCHEMA.to_owned(),
        evaluation: Evaluation::Retrieval,
        name: "r".to_owned(),
        dataset: DatasetRef { id: "d".into(), version: "v1".into(), digest: "sha256:1".into() },
        contents: None,
        system: SystemRef {
            kind: "builtin".into(),
            name: "s".into(),
            version: None,
            settings: BTreeMap::new(),
        },
        runs: count,
        seed: 0,
        conventions: BTreeMap::new(),
        metrics: vec![],
        slices: vec![],
        items,
        controls: vec![],
        comparison: None,
        gate: None,
        warnings: vec![],
        environment: Environment {
            karat: "0".into(),
            os: "x".into(),
            started: "x".into(),
            latency_bins: vec![],
            isolation: vec![],
            ..Environment::default()
        },
    })
}

/// The report with the metrics of its items as they are now.
fn averaged(mut report: Report) -> Report {
    let all: Vec<&Item> = report.items.iter().collect();
    report.metrics = METRICS.iter().map(|id| measure(id, &all, report.runs, 0)).collect();
    report.slices =
        slices(karat_core::report::Property::Kind, &METRICS, &report.items, report.runs, 0);
    report
}

/// The report of a system that did not answer these items.
fn unanswered(mut report: Report, ids: &[&str]) -> Report {
    for item in report.items.iter_mut().filter(|item| ids.contains(&item.id.as_str())) {
        item.metrics.values_mut().for_each(|score| *score = None);
        item.error = Some(ItemError { class: "timeout".into(), message: "no answer".into() });
    }
    averaged(report)
}

/// The report with its items in groups by the first letter of their ids.
fn grouped(mut report: Report) -> Report {
    for item in &mut report.items {
        item.group = Some(item.id[..1].to_owned());
    }
    averaged(report)
}

/// Items of these letters, `each` of each, in `runs` runs; those of `lost` score 0, the others 1.
fn groups(letters: &str, each: usize, runs: usize, lost: &str) -> Report {
    let ids: Vec<String> =
        letters.chars().flat_map(|c| (0..each).map(move |n| format!("{c}{n:02}"))).collect();
    let run: Vec<(&str, f64)> =
        ids.iter().map(|id| (id.as_str(), f64::from(!lost.contains(&id[..1])))).collect();
    grouped(report(&vec![run; runs]))
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
    // The same loss within the tolerance passes, and is still notes.
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
    policy.protected = Some(Protected {
        slice: Some("kind=a".into()),
        metric: "success@5".into(),
        ..Protected::default()
    });
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
    report.metrics = vec![measure(&METRICS[2], &items, 1, 0)];
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
    let before = report(&[vec![("a1", 1.0), ("a2", 0.0), ("a3", 0.5), ("a4", 0.25)]]);
    let after = report(&[vec![("a1", 1.0), ("a2", 1.0), ("a3", 0.25), ("a4", 0.5)]]);
    let found = compare(&Baseline::from_report(&before), &after, &[]).unwrap();
    let mrr = &found.deltas[0];
    assert_eq!((mrr.metric.as_str(), mrr.pairs), ("mrr", 4));
    assert!((mrr.delta.unwrap() - 0.25).abs() < 1e-12);
    assert_eq!(mrr.improved, ["a2", "a4"]);
    assert_eq!(mrr.worsened, ["a3"]);
    assert_eq!(mrr.test.as_deref(), Some("sign_flip_exact"));
    let fpr = &found.deltas[2];
    assert_eq!(fpr.test.as_deref(), Some("mcnemar_exact"));
    // Lower is better here, so the item that stopped being a false positive improved.
    assert_eq!(fpr.improved, ["a2"]);
    assert!(mrr.p_holm.unwrap() >= mrr.p_value.unwrap());
}

#[test]
fn another_number_of_runs_is_in_the_comparison() {
    let scores = || vec![("a", 1.0), ("b", 0.0)];
    let before = Baseline::from_report(&report(&[scores(), scores()]));
    let runs_before = |after: &Report| compare(&before, after, &[]).unwrap().runs_before;
    assert_eq!(runs_before(&report(&[scores()])), Some(2));
    assert_eq!(runs_before(&report(&[scores(), scores()])), None);
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

/// Twenty items, of which the first two score 0; then those get no answer and a third is lost.
fn errors_that_hide_a_loss() -> (Report, Report) {
    let ids: Vec<String> = (0..20).map(|n| format!("a{n:02}")).collect();
    let scored = |lost: &[usize]| {
        let score = |n: usize| f64::from(!lost.contains(&n));
        report(&[ids.iter().enumerate().map(|(n, id)| (id.as_str(), score(n))).collect()])
    };
    (scored(&[0, 1]), unanswered(scored(&[0, 1, 7]), &["a00", "a01"]))
}

#[test]
fn items_that_lose_their_score_do_not_hide_a_loss() {
    let (before, after) = errors_that_hide_a_loss();
    assert!(after.metrics[0].value > before.metrics[0].value);
    let (found, reason) = verdict(&policy(&[("mrr", max_drop(0.0))]), &after, &before);
    assert_eq!(found, Verdict::Fail, "{reason}");
    assert_eq!(
        reason,
        "mrr 0.9000 → 0.9444; over the 18 items scored both times 1.0000 → 0.9444: worse by \
         0.0556, more than the allowed 0: a07; 2 items no longer have a score: a00, a01"
    );
    let found = compare(&Baseline::from_report(&before), &after, &[]).unwrap();
    for delta in &found.deltas {
        let (change, range) = (delta.delta.unwrap(), delta.interval.as_ref().unwrap());
        assert!((change.abs() - 1.0 / 18.0).abs() < 1e-12, "{delta:?}");
        assert!(range.low <= change && change <= range.high, "{delta:?}");
        assert_eq!(
            (delta.pairs, delta.lost.as_slice()),
            (18, ["a00".into(), "a01".into()].as_slice())
        );
    }
    // The other way round: what has a score only now is not a gain.
    let back = compare(&Baseline::from_report(&after), &before, &[]).unwrap();
    assert_eq!(back.deltas[0].gained, ["a00", "a01"]);
    assert!(back.deltas[0].delta.unwrap() > 0.0);
}

#[test]
fn an_allowed_error_does_not_affect_other_items() {
    let before = report(&[vec![("a1", 1.0), ("a2", 0.5), ("a3", 0.5)]]);
    let after = unanswered(before.clone(), &["a1"]);
    let (found, reason) = verdict(&policy(&[("mrr", max_drop(0.0))]), &after, &before);
    assert_eq!(found, Verdict::Pass, "{reason}");
    assert!(reason.contains("no item got worse; 1 item no longer has a score: a1"), "{reason}");
    let found = compare(&Baseline::from_report(&before), &after, &[]).unwrap();
    assert_eq!(found.deltas[0].delta, Some(0.0));
}

#[test]
fn without_an_item_that_is_scored_both_times_a_loss_cannot_be_seen() {
    let one = report(&[vec![("a1", 1.0), ("a2", 1.0)]]);
    let (before, after) = (unanswered(one.clone(), &["a1"]), unanswered(one, &["a2"]));
    let (found, reason) = verdict(&policy(&[("mrr", max_drop(0.0))]), &after, &before);
    assert_eq!(found, Verdict::Fail);
    assert!(reason.contains("no item was scored both times"), "{reason}");
}

#[test]
fn non_mean_metrics_get_no_item_interval() {
    let before = report(&[vec![("a1", 1.0), ("a2", 0.5), ("a3", 0.5)]]);
    let mut after = report(&[vec![("a1", 1.0), ("a2", 0.0), ("a3", 0.0)]]);
    after.metrics[0].value = Some(0.66);
    let found = compare(&Baseline::from_report(&before), &after, &[]).unwrap();
    let mrr = &found.deltas[0];
    assert!((mrr.delta.unwrap() - (0.66 - 2.0 / 3.0)).abs() < 1e-12);
    assert_eq!((&mrr.interval, mrr.p_value, mrr.p_holm, &mrr.test), (&None, None, None, &None));
    assert_eq!(mrr.worsened, ["a2", "a3"]);
    let (found, reason) = verdict(&policy(&[("mrr", max_drop(0.1))]), &after, &before);
    assert_eq!(found, Verdict::Pass);
    assert!(reason.contains("within the allowed 0.1, but worse on 2"), "{reason}");
}

/// Every interval of a comparison, or the reason for none.
fn ranges(before: &Report, after: &Report) -> Vec<String> {
    let found = compare(&Baseline::from_report(before), after, &[]).unwrap();
    let range = |delta: karat_core::report::Delta| match (delta.interval, delta.no_interval) {
        (Some(interval), None) => {
            assert!(interval.has_width() || interval.method == "no_change", "{interval:?}");
            interval.method
        }
        (None, Some(reason)) => reason,
        other => panic!("{other:?}"),
    };
    found.deltas.into_iter().map(range).collect()
}

#[test]
fn a_change_that_is_the_same_everywhere_has_no_interval() {
    let ids = ["a1", "b1", "c1", "d1", "e1", "f1", "a2", "b2", "c2", "d2", "e2", "f2"];
    let scored = |score: &dyn Fn(&str) -> f64| {
        report(&[ids.iter().map(|id| (*id, score(id))).collect::<Vec<_>>()])
    };
    let (one, half) = (scored(&|_| 1.0), scored(&|_| 0.5));
    let reason = "all 12 items changed by the same amount: the spread of others is unknown";
    assert_eq!(ranges(&one, &half)[0], reason);
    let reason = "all 6 groups of items that succeed or fail together changed by the same amount: \
                  the spread of others is unknown";
    assert_eq!(ranges(&grouped(one), &grouped(half))[0], reason);
    // One query got worse and one of the same group better.
    let mixed = |better: &'static str| grouped(scored(&move |id| f64::from(id == better)));
    assert_eq!(ranges(&mixed("a1"), &mixed("a2"))[0], reason);
    // A single item says nothing of others, and one that differs from the rest says something.
    let single = |score| report(&[vec![("a1", score)]]);
    assert_eq!(ranges(&single(1.0), &single(0.5))[0], "one item is too few for an interval");
    let (none, some) = (scored(&|_| 0.0), scored(&|id| f64::from(id == "a1")));
    assert_eq!(ranges(&none, &some)[0], "bootstrap");
}

#[test]
fn a_mean_over_groups_is_compared_over_groups() {
    let over_groups = |mut report: Report, value: f64| {
        report.metrics[0].value = Some(value);
        report
    };
    let before = grouped(report(&[vec![("a1", 1.0), ("a2", 1.0), ("a3", 1.0), ("b1", 0.0)]]));
    let after = grouped(report(&[vec![("a1", 1.0), ("a2", 1.0), ("a3", 0.0), ("b1", 0.0)]]));
    let (before, after) = (over_groups(before, 0.5), over_groups(after, 1.0 / 3.0));
    let found = compare(&Baseline::from_report(&before), &after, &[]).unwrap();
    assert!((found.deltas[0].delta.unwrap() + 1.0 / 6.0).abs() < 1e-12);
    // Two groups say next to nothing about others.
    let interval = found.deltas[0].interval.as_ref().unwrap();
    assert_eq!(
        (interval.low, interval.high, interval.method.as_str()),
        (-1.0, 1.0, "student_clustered")
    );
    // A run that gets no answer changes nothing in what the others show.
    let after = over_groups(unanswered(after, &["a2"]), 0.25);
    let found = compare(&Baseline::from_report(&before), &after, &[]).unwrap();
    assert!((found.deltas[0].delta.unwrap() + 0.25).abs() < 1e-12, "{:?}", found.deltas[0]);
}

#[test]
fn a_protected_item_without_a_score_is_lost() {
    let before = report(&[vec![("a1", 1.0), ("a2", 1.0), ("b1", 1.0)]]);
    let mut policy = policy(&[]);
    policy.protected = Some(Protected {
        slice: Some("kind=a".into()),
        metric: "success@5".into(),
        ..Protected::default()
    });
    for (silent, expected) in [
        (&["a1"][..], "1 of 2 protected items no longer have a score: a1"),
        (&["a1", "a2"][..], "2 of 2 protected items no longer have a score: a1, a2"),
    ] {
        let after = unanswered(before.clone(), silent);
        let gate = evaluate(&policy, &after, Some(&Baseline::from_report(&before))).unwrap();
        let check = gate.checks.last().unwrap();
        assert_eq!((gate.verdict, check.reason.as_str()), (Verdict::Fail, expected));
        assert_eq!(check.items, silent);
        // What never had a score cannot lose it.
        let gate = evaluate(&policy, &before, Some(&Baseline::from_report(&after)));
        match silent.len() {
            1 => assert_eq!(gate.unwrap().verdict, Verdict::Pass),
            _ => assert!(matches!(gate, Err(GateError::MissingInBaseline { .. })), "{gate:?}"),
        }
    }
}

#[test]
fn items_of_one_group_are_one_observation_in_the_test_of_a_comparison() {
    let tasks = "abcdefghijklmn";
    let (before, after) = (groups(tasks, 10, 1, ""), groups(tasks, 10, 1, "a"));
    let found = compare(&Baseline::from_report(&before), &after, &[]).unwrap();
    for delta in &found.deltas {
        assert_eq!(delta.worsened.len(), 10);
        assert_eq!(delta.test.as_deref(), Some("sign_flip_exact"));
        assert!(delta.p_value.unwrap() > 0.999, "{delta:?}");
    }
    // Alone in its group each is an observation of its own.
    let alone = |mut report: Report| {
        report.items.iter_mut().for_each(|item| item.group = None);
        report
    };
    let found = compare(&Baseline::from_report(&alone(before)), &alone(after), &[]).unwrap();
    assert_eq!(found.deltas[1].test.as_deref(), Some("mcnemar_exact"));
    assert!(found.deltas[1].p_value.unwrap() < 0.01);
}

#[test]
fn one_lost_group_of_four_does_not_fail_a_varying_system() {
    let (before, after) = (groups("abcd", 10, 2, ""), groups("abcd", 10, 2, "a"));
    let (found, reason) = verdict(&policy(&[("mrr", max_drop(0.1))]), &after, &before);
    assert_eq!(found, Verdict::Inconclusive, "{reason}");
    assert!(reason.contains("over 4 groups") && reason.contains("groups would"), "{reason}");
    // Lost in every one of six, it does.
    let (before, after) = (groups("abcdef", 10, 2, ""), groups("abcdef", 10, 2, "abcdef"));
    let (found, reason) = verdict(&policy(&[("mrr", max_drop(0.1))]), &after, &before);
    assert_eq!(found, Verdict::Fail, "{reason}");
}

#[test]
fn tasks_that_were_run_several_times_are_judged_as_varying() {
    // As in the report of an agent: an item for each run of a task, and the task is the group.
    let agent = |lost: &str| {
        let mut report = groups("abcdefgh", 5, 1, lost);
        report.evaluation = Evaluation::Agent;
        report.runs = 5;
        report
    };
    let policy = policy(&[("mrr", max_drop(0.05))]);
    let (found, reason) = verdict(&policy, &agent("a"), &agent(""));
    assert_eq!(found, Verdict::Inconclusive, "{reason}");
    let (found, reason) = verdict(&policy, &agent("abcdefgh"), &agent(""));
    assert_eq!(found, Verdict::Fail, "{reason}");
    // One run now, but a baseline that varies.
    let mut once = agent("a");
    once.runs = 1;
    assert_eq!(verdict(&policy, &once, &agent("")).0, Verdict::Inconclusive);
}

/// A report with an F1 that no item carries, by its value in each run.
fn with_f1(runs: &[f64]) -> Report {
    let mut report = report(&vec![vec![("a1", 1.0)]; runs.len()]);
    report.metrics.push(Measured {
        id: "f1".into(),
        value: Some(runs.iter().sum::<f64>() / runs.len() as f64),
        n: 1,
        better: Better::Higher,
        per_run: runs.iter().copied().map(Some).collect(),
        interval: None,
        count: None,
        undefined: None,
        left_out: 0,
    });
    report
}

#[test]
fn a_metric_without_item_scores_is_never_said_to_have_lost_on_no_item() {
    let judged = |limit, after, before| {
        verdict(&policy(&[("f1", max_drop(limit))]), &with_f1(&[after]), &with_f1(&[before]))
    };
    let (found, reason) = judged(0.2, 0.6087, 0.7692);
    assert_eq!(
        (found, reason.as_str()),
        (Verdict::Pass, "f1 0.7692 → 0.6087: within the allowed 0.2")
    );
    assert_eq!(judged(0.1, 0.6087, 0.7692).0, Verdict::Fail);
}

#[test]
fn a_metric_without_item_scores_is_judged_by_its_runs_where_they_vary() {
    let policy = policy(&[("f1", max_drop(0.1))]);
    let before = [0.80, 0.82, 0.78, 0.81, 0.79];
    for (after, expected) in [
        (&[0.75, 0.80, 0.78, 0.77, 0.76][..], Verdict::Pass),
        (&[0.75, 0.60, 0.65, 0.70, 0.62][..], Verdict::Inconclusive),
        (&[0.55, 0.50, 0.52, 0.57, 0.60][..], Verdict::Fail),
        // Two runs that are both worse than five may be so by chance, one in twenty-one times.
        (&[0.55, 0.50][..], Verdict::Fail),
        (&[0.55][..], Verdict::Inconclusive),
    ] {
        let (found, reason) = verdict(&policy, &with_f1(after), &with_f1(&before));
        assert_eq!(found, expected, "{after:?}: {reason}");
    }
    let three = [0.80, 0.82, 0.78];
    assert_eq!(verdict(&policy, &with_f1(&[0.5, 0.6, 0.4]), &with_f1(&three)).0, Verdict::Fail);
    // What does not vary over the runs is compared exactly, however few they are.
    let (found, reason) = verdict(&policy, &with_f1(&[0.5, 0.5]), &with_f1(&[0.8, 0.8]));
    assert_eq!(found, Verdict::Fail, "{reason}");
    let mut untold = with_f1(&[0.5, 0.5]);
    untold.metrics[3].per_run.clear();
    let (found, reason) = verdict(&policy, &untold, &with_f1(&before));
    assert_eq!(found, Verdict::Inconclusive);
    assert!(reason.contains("not a mean over items"), "{reason}");
}

#[test]
fn what_a_stranger_wrote_stays_on_its_line() {
    let hostile = "a\n::error::\u{1b}[31mx";
    let before = report(&[vec![(hostile, 1.0)]]);
    let after = report(&[vec![(hostile, 0.0)]]);
    let (_, reason) = verdict(&policy(&[("mrr", max_drop(0.0))]), &after, &before);
    assert!(reason.contains(r"a\n::error::\u{1b}[31mx"), "{reason}");
    let mut other = before.clone();
    other.dataset.id = hostile.to_owned();
    other.dataset.digest = hostile.to_owned();
    let missing = |id: &str| GateError::MissingInBaseline { id: id.into(), place: id.into() };
    for message in [
        compare(&Baseline::from_report(&before), &other, &[]).unwrap_err().to_string(),
        compare(&Baseline::from_report(&before), &report(&[vec![("b", 1.0)]]), &[])
            .unwrap_err()
            .to_string(),
        missing(hostile).to_string(),
        GateError::NoBaseline { id: hostile.into(), rule: "max_drop" }.to_string(),
        GateError::Rule { id: hostile.into(), message: hostile.into() }.to_string(),
        GateError::NoSlice { slice: hostile.into(), known: hostile.into() }.to_string(),
    ] {
        assert!(!message.contains(['\n', '\u{1b}']), "{message:?}");
    }
}

#[test]
fn duplicates_are_refused() {
    let original = Baseline::from_report(&report(&[vec![("a1", 1.0), ("b1", 1.0)]]));
    let refused = |change: fn(&mut Baseline)| {
        let mut baseline = original.clone();
        change(&mut baseline);
        let error = Baseline::parse(std::path::Path::new("b.json"), &baseline.to_text());
        error.unwrap_err().to_string()
    };
    for (change, words) in [
        (
            (|b| b.items.push(b.items[0].clone())) as fn(&mut Baseline),
            "a1: is listed twice in `items`",
        ),
        (|b| b.metrics.push(b.metrics[0].clone()), "mrr: is listed twice in `metrics`"),
        (|b| b.slices.push(b.slices[0].clone()), "kind=a: is listed twice in `slices`"),
        (
            |b| {
                let again = b.slices[1].metrics[0].clone();
                b.slices[1].metrics.push(again);
            },
            "mrr: is listed twice in the metrics of slice kind=b",
        ),
    ] {
        let message = refused(change);
        assert!(message.contains(words), "{message}");
    }
    let mut twice = report(&[vec![("a1", 1.0), ("b1", 1.0)]]);
    twice.items.push(twice.items[0].clone());
    let error = compare(&original, &twice, &[]).unwrap_err().to_string();
    assert!(error.contains("\"a1\" is listed twice now"), "{error}");
    let error = compare(&Baseline::from_report(&twice), &twice, &[]).unwrap_err().to_string();
    assert!(error.contains("\"a1\" is listed twice before"), "{error}");
}

#[test]
fn a_limit_that_a_share_can_never_break_or_keep_is_refused() {
    let wrong = |id: &str, rule: Rule| policy(&[(id, rule)]).validate().unwrap_err().to_string();
    let none = Rule::default();
    for (rule, words) in [
        (max_drop(5.0), "max_drop = 5 can never fail"),
        (Rule { max: Some(5.0), ..none }, "max = 5 can never fail"),
        (Rule { min: Some(-1.0), ..none }, "min = -1 can never fail"),
        (Rule { min: Some(90.0), ..none }, "min = 90 can never hold"),
        (Rule { max: Some(-0.1), ..none }, "max = -0.1 can never hold"),
    ] {
        let message = wrong("recall@5", rule);
        assert!(message.contains(words), "{message}");
    }
    assert!(wrong("fpr", Rule { max_rise: Some(2.0), ..none }).contains("max_rise = 2"));
    for (id, rule) in [
        ("recall@5", Rule { min: Some(0.0), max: Some(1.0), max_drop: Some(1.0), ..none }),
        ("latency.p50", Rule { max: Some(50.0), max_rise: Some(5.0), ..none }),
        ("mcc", Rule { min: Some(-0.5), ..none }),
        ("run.tokens", Rule { max: Some(4000.0), ..none }),
    ] {
        policy(&[(id, rule)]).validate().unwrap();
    }
    let unknown = wrong("recall@0", max_drop(0.0));
    assert!(unknown.contains("did you mean \"recall@k\"?"), "{unknown}");
}

#[test]
fn runs_that_found_other_items_are_compared_by_their_values() {
    let found = |kind: &Kind, run: Vec<(&str, f64)>| {
        let mut report = report(&[run]);
        (report.evaluation, report.kind) = (kind.evaluation(), kind.clone());
        report
    };
    let moved = ["1 item added (c)", "1 item gone (b)"];
    for (kind, changed, change, verdict) in [
        // The seconds of two loads are not pairs.
        (Kind::Load, &[][..], -0.5, Verdict::Fail),
        (Kind::Attack, &moved[..], 0.0, Verdict::Pass),
        (Kind::Fuzz, &moved[..], 0.0, Verdict::Pass),
    ] {
        let before = Baseline::from_report(&found(&kind, vec![("a", 1.0), ("b", 1.0)]));
        let mut after = found(&kind, vec![("a", 1.0), ("c", 0.0)]);
        let compared = compare(&before, &after, &[]).unwrap();
        assert_eq!(compared.changed, changed, "{kind}");
        let mrr = compared.deltas.iter().find(|delta| delta.metric == "mrr").unwrap();
        assert_eq!((mrr.before, mrr.after, mrr.delta), (Some(1.0), Some(0.5), Some(change)));
        let drop = Rule { max_drop: Some(0.1), ..Rule::default() };
        judge(&mut after, &policy(&[("mrr", drop)]), Some(&before)).unwrap();
        assert_eq!(after.gate.unwrap().verdict, verdict, "{kind}");
    }
    // The items of a suite are those of its file.
    let before = Baseline::from_report(&found(&Kind::Suite, vec![("a", 1.0)]));
    let after = found(&Kind::Suite, vec![("b", 1.0)]);
    assert!(compare(&before, &after, &[]).is_err());
}

//! Properties of the classification metrics on generated verdicts and scores.

use karat_metrics::classification::*;
use proptest::prelude::*;

fn counts() -> impl Strategy<Value = Confusion> {
    let count = || prop_oneof![Just(0u64), 0u64..20, 0u64..1_000_000];
    (count(), count(), count(), count()).prop_map(
        |(true_positives, false_positives, false_negatives, true_negatives)| Confusion {
            true_positives,
            false_positives,
            false_negatives,
            true_negatives,
        },
    )
}

/// Truth and score of each entry; few distinct scores, so that ties are common.
fn entries() -> impl Strategy<Value = Vec<(bool, f64)>> {
    let score = prop_oneof![(0u32..8).prop_map(|k| f64::from(k) / 7.0), 0.0..=1.0f64];
    prop::collection::vec((any::<bool>(), score), 0..60)
}

fn scores(entries: &[(bool, f64)]) -> Scores {
    let (truth, scores): (Vec<bool>, Vec<f64>) = entries.iter().copied().unzip();
    Scores::new(&truth, &scores).unwrap()
}

/// The definition: over all pairs of an attack and a benign entry, the share in which the attack wins.
fn auc_by_pairs(entries: &[(bool, f64)]) -> Option<f64> {
    let side = |wanted| entries.iter().filter(move |(positive, _)| *positive == wanted);
    let mut wins = 0.0;
    let mut pairs = 0.0;
    for (_, attack) in side(true) {
        for (_, benign) in side(false) {
            pairs += 1.0;
            wins += if attack > benign {
                1.0
            } else if attack == benign {
                0.5
            } else {
                0.0
            };
        }
    }
    (pairs > 0.0).then(|| wins / pairs)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

proptest! {
    #[test]
    fn every_metric_is_within_its_bounds_or_undefined_with_a_reason(counts in counts()) {
        for metric in METRICS {
            match counts.metric(metric.id) {
                Some(Ok(value)) => {
                    let lowest = if ["mcc", "kappa"].contains(&metric.id) { -1.0 } else { 0.0 };
                    prop_assert!(value >= lowest - 1e-12 && value <= 1.0 + 1e-12, "{} {value}", metric.id);
                }
                Some(Err(reason)) => prop_assert!(!reason.0.is_empty()),
                None => {}
            }
        }
    }

    #[test]
    fn complements_add_up_to_one(counts in counts()) {
        for (one, other) in [(counts.recall(), counts.fnr()), (counts.fpr(), counts.specificity())] {
            match (one, other) {
                (Ok(one), Ok(other)) => prop_assert!(near(one + other, 1.0)),
                (one, other) => prop_assert_eq!(one, other),
            }
        }
    }

    #[test]
    fn f1_is_the_harmonic_mean_where_both_parts_are_defined(counts in counts()) {
        if let (Ok(precision), Ok(recall)) = (counts.precision(), counts.recall())
            && precision + recall > 0.0
        {
            let harmonic = 2.0 * precision * recall / (precision + recall);
            prop_assert!(near(counts.f1().unwrap(), harmonic));
            let jaccard = counts.jaccard().unwrap();
            prop_assert!(near(counts.f1().unwrap(), 2.0 * jaccard / (1.0 + jaccard)));
        }
    }

    #[test]
    fn exchanging_the_classes_mirrors_the_metrics(counts in counts()) {
        let mirrored = Confusion {
            true_positives: counts.true_negatives,
            false_positives: counts.false_negatives,
            false_negatives: counts.false_positives,
            true_negatives: counts.true_positives,
        };
        prop_assert_eq!(counts.recall().ok(), mirrored.specificity().ok());
        prop_assert_eq!(counts.precision().ok(), mirrored.npv().ok());
        prop_assert_eq!(counts.fpr().ok(), mirrored.fnr().ok());
        for (one, other) in [
            (counts.mcc(), mirrored.mcc()),
            (counts.kappa(), mirrored.kappa()),
            (counts.accuracy(), mirrored.accuracy()),
            (counts.balanced_accuracy(), mirrored.balanced_accuracy()),
        ] {
            prop_assert!(one.is_err() && other.is_err() || near(one.unwrap(), other.unwrap()));
        }
    }

    #[test]
    fn inverting_a_detector_negates_its_correlation(counts in counts()) {
        let inverted = Confusion {
            true_positives: counts.false_negatives,
            false_positives: counts.true_negatives,
            false_negatives: counts.true_positives,
            true_negatives: counts.false_positives,
        };
        match (counts.mcc(), inverted.mcc()) {
            (Ok(mcc), Ok(negated)) => prop_assert!(near(mcc, -negated)),
            (one, other) => prop_assert!(one.is_err() && other.is_err()),
        }
    }

    #[test]
    fn precision_at_the_prevalence_of_the_corpus_is_precision(counts in counts()) {
        if let (Ok(recall), Ok(fpr)) = (counts.recall(), counts.fpr()) {
            let prevalence = counts.positives() as f64 / counts.total() as f64;
            match (precision_at_prevalence(recall, fpr, prevalence), counts.precision()) {
                (Ok(ours), Ok(precision)) => prop_assert!((ours - precision).abs() < 1e-9),
                (one, other) => prop_assert!(one.is_err() && other.is_err()),
            }
        }
    }

    #[test]
    fn the_order_of_the_entries_does_not_matter(
        (entries, shuffled) in entries().prop_flat_map(|e| (Just(e.clone()), Just(e).prop_shuffle())),
    ) {
        let (ours, other) = (scores(&entries), scores(&shuffled));
        prop_assert_eq!(&ours, &other);
        prop_assert_eq!(ours.roc_auc(), other.roc_auc());
        let flags = |entries: &[(bool, f64)]| {
            let (truth, flagged): (Vec<bool>, Vec<bool>) = entries.iter().map(|(t, s)| (*t, *s > 0.5)).unzip();
            Confusion::from_verdicts(&truth, &flagged)
        };
        prop_assert_eq!(flags(&entries), flags(&shuffled));
    }

    #[test]
    fn the_area_equals_the_share_of_pairs_ranked_right(entries in entries()) {
        match (scores(&entries).roc_auc(), auc_by_pairs(&entries)) {
            (Ok(area), Some(pairs)) => prop_assert!(near(area, pairs), "{area} {pairs}"),
            (area, pairs) => prop_assert!(area.is_err() && pairs.is_none()),
        }
    }

    #[test]
    fn reversing_the_scores_mirrors_the_area(entries in entries()) {
        let reversed: Vec<(bool, f64)> = entries.iter().map(|(t, s)| (*t, -s)).collect();
        if let Ok(area) = scores(&entries).roc_auc() {
            prop_assert!(near(area + scores(&reversed).roc_auc().unwrap(), 1.0));
        }
    }

    #[test]
    fn the_partial_area_up_to_one_is_the_whole_area(entries in entries(), ceiling in 0.001..=1.0f64) {
        let scores = scores(&entries);
        if let Ok(area) = scores.roc_auc() {
            prop_assert!(near(scores.partial_auc(1.0).unwrap(), area));
            prop_assert!(scores.partial_auc(ceiling).unwrap() <= 1.0 + 1e-12);
        }
    }

    #[test]
    fn leaving_out_points_on_a_line_keeps_the_curve(entries in entries()) {
        let scores = scores(&entries);
        if let (Ok(all), Ok(corners)) = (scores.roc_curve(), scores.roc_curve_of_corners()) {
            let area = |curve: &RocCurve| -> f64 {
                let points: Vec<_> = curve.fpr.iter().zip(&curve.tpr).collect();
                points.windows(2).map(|p| (p[1].0 - p[0].0) * (p[1].1 + p[0].1) / 2.0).sum()
            };
            prop_assert!(corners.fpr.len() <= all.fpr.len());
            prop_assert!(near(area(&all), area(&corners)));
            prop_assert!(near(area(&all), scores.roc_auc().unwrap()));
            prop_assert!(all.fpr.is_sorted() && all.tpr.is_sorted());
            prop_assert_eq!((all.fpr.last(), all.tpr.last()), (Some(&1.0), Some(&1.0)));
        }
    }

    #[test]
    fn recall_under_a_ceiling_is_the_best_of_all_thresholds(entries in entries(), ceiling in 0.0..=1.0f64) {
        let scores = scores(&entries);
        let point = scores.best_under_fpr(ceiling);
        prop_assume!(point.is_ok());
        let point = point.unwrap();
        let best = entries.iter().map(|(_, threshold)| scores.at_threshold(*threshold))
            .filter(|counts| counts.fpr().unwrap() <= ceiling)
            .map(|counts| counts.recall().unwrap())
            .fold(0.0, f64::max);
        prop_assert_eq!(point.recall, best);
        let there = scores.at_threshold(point.threshold);
        prop_assert_eq!((there.recall(), there.fpr()), (Ok(point.recall), Ok(point.fpr)));
    }

    #[test]
    fn average_precision_is_the_area_below_the_steps_of_the_curve(entries in entries()) {
        let scores = scores(&entries);
        let average = scores.average_precision();
        prop_assume!(average.is_ok());
        let average = average.unwrap();
        let curve = scores.precision_recall_curve().unwrap();
        let steps: f64 = (0..curve.thresholds.len())
            .map(|i| (curve.recall[i] - curve.recall[i + 1]) * curve.precision[i])
            .sum();
        prop_assert!(near(average, steps));
        prop_assert!(average > 0.0 && average <= 1.0 + 1e-12);
    }

    #[test]
    fn a_threshold_counts_the_entries_at_or_above_it(entries in entries(), threshold in 0.0..=1.0f64) {
        let (truth, flagged): (Vec<bool>, Vec<bool>) =
            entries.iter().map(|(t, s)| (*t, *s >= threshold)).unzip();
        prop_assert_eq!(scores(&entries).at_threshold(threshold), Confusion::from_verdicts(&truth, &flagged).unwrap());
    }

    #[test]
    fn perfect_probabilities_have_the_least_loss(entries in entries()) {
        let perfect: Vec<(bool, f64)> =
            entries.iter().map(|(t, _)| (*t, f64::from(u8::from(*t)))).collect();
        if let (Ok(brier), Ok(loss)) = (scores(&entries).brier(), scores(&entries).log_loss()) {
            prop_assert_eq!(scores(&perfect).brier(), Ok(0.0));
            prop_assert!((0.0..=1.0).contains(&brier));
            prop_assert!(scores(&perfect).log_loss().unwrap() <= loss);
        }
    }

    #[test]
    fn any_scores_are_measured_or_rejected(
        entries in prop::collection::vec((any::<bool>(), any::<f64>()), 0..20),
    ) {
        let (truth, values): (Vec<bool>, Vec<f64>) = entries.iter().copied().unzip();
        match Scores::new(&truth, &values) {
            Err(InputError::NotFinite { index }) => prop_assert!(!values[index].is_finite()),
            Err(other) => prop_assert!(false, "{other}"),
            Ok(scores) => {
                for score in [scores.roc_auc(), scores.average_precision(), scores.partial_auc(0.1)] {
                    prop_assert!(score.is_err() || (0.0..=1.0 + 1e-12).contains(&score.unwrap()));
                }
            }
        }
    }

    #[test]
    fn averages_over_categories_lie_between_the_worst_and_the_best(
        entries in prop::collection::vec((0usize..4, 0usize..4), 1..60),
    ) {
        let (truth, predicted): (Vec<usize>, Vec<usize>) = entries.iter().copied().unzip();
        let table = Multiclass::from_labels(&[0, 1, 2, 3], &truth, &predicted).unwrap();
        for rule in [ZeroDivision::Undefined, ZeroDivision::Zero, ZeroDivision::One] {
            let each: Vec<f64> =
                (0..4).filter_map(|c| rule.apply(table.class(c).unwrap().f1()).ok()).collect();
            let low = each.iter().copied().fold(f64::INFINITY, f64::min);
            let high = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for averaging in [Averaging::Macro, Averaging::Weighted] {
                let average = table.average(Confusion::f1, averaging, rule).unwrap();
                prop_assert!(low - 1e-12 <= average && average <= high + 1e-12);
            }
            // Every wrong label is one false positive and one false negative.
            prop_assert!(near(
                table.average(Confusion::f1, Averaging::Micro, rule).unwrap(),
                table.accuracy().unwrap()
            ));
        }
    }

    #[test]
    fn agreement_of_two_detectors_is_symmetric(pairs in prop::collection::vec(any::<(bool, bool)>(), 0..40)) {
        let (first, second): (Vec<bool>, Vec<bool>) = pairs.iter().copied().unzip();
        let there = Agreement::from_verdicts(&first, &second).unwrap();
        let back = Agreement::from_verdicts(&second, &first).unwrap();
        prop_assert_eq!(there.kappa(), back.kappa());
        prop_assert_eq!(there.jaccard(), back.jaccard());
        prop_assert_eq!(there.observed(), back.observed());
        prop_assert_eq!(there.mcnemar(), back.mcnemar());
    }
}

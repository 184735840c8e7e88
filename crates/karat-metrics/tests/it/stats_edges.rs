//! The statistics on any numbers at all: none of them panics, and none has NaN for an answer.

use karat_metrics::classification::Scores;
use karat_metrics::ranking::{JudgedRanking, Mean, Measure, Rules};
use karat_metrics::stats::*;
use karat_metrics::{Score, Undefined};
use proptest::prelude::*;

/// Any number, with a preference for the edges.
fn number() -> impl Strategy<Value = f64> {
    let edges = [
        0.0,
        -0.0,
        1.0,
        0.1,
        5e-324,
        -5e-324,
        f64::MIN_POSITIVE,
        1e-308,
        1.7e308,
        f64::MAX,
        f64::MIN,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    prop_oneof![prop::num::f64::ANY, prop::sample::select(edges.to_vec())]
}

/// A number that is neither NaN nor infinite: a list with one of those is refused, and shows little else.
fn finite() -> impl Strategy<Value = f64> {
    number().prop_map(|x| if x.is_nan() { 0.5 } else { x.clamp(f64::MIN, f64::MAX) })
}

fn numbers() -> impl Strategy<Value = Vec<f64>> {
    let of_like_size =
        |scale: f64| prop::collection::vec((-1.0..1.0f64).prop_map(move |x| x * scale), 0..20);
    prop_oneof![
        2 => prop::collection::vec(number(), 0..20),
        4 => prop::collection::vec(finite(), 0..20),
        1 => (finite(), 0..20usize).prop_map(|(x, n)| vec![x; n]),
        1 => of_like_size(1e-322),
        1 => of_like_size(f64::MAX),
        1 => of_like_size(1.0),
    ]
}

/// A confidence or a share; most are possible.
fn level() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.01..0.999f64, 1 => Just(0.95), 1 => Just(1.0 - f64::EPSILON / 2.0), 1 => number()]
}

fn is_number(score: Score) -> bool {
    score.is_err() || score.is_ok_and(|value| !value.is_nan())
}

fn is_probability(score: Score) -> bool {
    score.is_err() || score.is_ok_and(|p| (0.0..=1.0).contains(&p))
}

fn is_ordered(interval: Result<Interval, Undefined>) -> bool {
    interval.is_err() || interval.is_ok_and(|interval| interval.low <= interval.high)
}

proptest! {
    #[test]
    fn location_and_spread(xs in numbers(), level in level(), q in level()) {
        for of in [mean, median, geometric_mean] {
            let score = of(&xs);
            prop_assert!(score.is_err() || score.is_ok_and(f64::is_finite), "{xs:?}: {score:?}");
        }
        for of in [sample_std, population_std, sem] {
            let score = of(&xs);
            prop_assert!(score.is_err() || score.is_ok_and(|s| s >= 0.0), "{xs:?}: {score:?}");
        }
        prop_assert!(is_ordered(t_interval(&xs, level)), "{xs:?} {level}");
        let mut sorted = xs.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        for (name, method) in QuantileMethod::ALL {
            prop_assert!(is_number(quantile(&xs, q, *method)), "{xs:?} {q} {name}");
            prop_assert!(is_number(quantile_of_sorted(&sorted, q, *method)), "{xs:?} {q} {name}");
            prop_assert!(is_number(quantile_of_sorted(&xs, q, *method)), "{xs:?} {q} {name}");
        }
        let mut sum = ExactSum::default();
        xs.iter().for_each(|x| sum.add(*x));
        prop_assert_eq!(sum.value().is_nan(), xs.iter().any(|x| !x.is_finite()));
    }

    #[test]
    fn bootstraps(
        xs in numbers(), others in numbers(), clusters in prop::collection::vec(0usize..4, 20),
        level in level(), seed in any::<u64>(),
    ) {
        let groups: Vec<(f64, f64)> = xs.iter().copied().zip(others.iter().copied()).collect();
        let counted: Vec<(f64, f64)> =
            groups.iter().map(|(sum, count)| (*sum, 1.0 + count.abs())).collect();
        let indices: Vec<Vec<usize>> = (0..5).map(|shift| {
            (0..xs.len()).map(|i| (i * 7 + shift) % xs.len()).collect()
        }).collect();
        let means = resampled_means(&xs, &indices);
        if let Ok(means) = &means {
            prop_assert!(means.iter().all(|mean| mean.is_finite()), "{xs:?}: {means:?}");
        }
        for method in [BootstrapMethod::Percentile, BootstrapMethod::Basic, BootstrapMethod::Bca] {
            let bootstrap = Bootstrap { resamples: 30, seed, confidence: level, method };
            let mut found = vec![
                bootstrap.mean(&xs),
                bootstrap.clustered_mean(&xs, &clusters[..xs.len()]),
                bootstrap.pooled_mean(&groups),
                bootstrap.pooled_mean(&counted),
                bootstrap.from_means(&xs, &others),
                bootstrap.statistic(xs.len(), |drawn| Ok(drawn.iter().map(|i| xs[*i]).sum())),
            ];
            if let Ok(means) = &means {
                found.push(bootstrap.from_means(&xs, means));
            }
            found.extend(bootstrap.statistics(xs.len(), |drawn| [Ok(xs[drawn[0]])]));
            for (number, interval) in found.into_iter().enumerate() {
                prop_assert!(is_ordered(interval), "{method:?} {number} {xs:?} {others:?}: {interval:?}");
            }
            if let Ok(interval) = bootstrap.mean(&xs) && xs.iter().all(|x| *x == xs[0]) {
                prop_assert_eq!(interval, Interval { low: xs[0], high: xs[0] });
            }
        }
    }

    #[test]
    fn paired_tests(a in numbers(), b in numbers(), level in level(), seed in any::<u64>()) {
        let n = a.len().min(b.len());
        let (a, b) = (&a[..n], &b[..n]);
        if let Ok(test) = paired_t_test(a, b) {
            prop_assert!(!test.t.is_nan() && test.mean_difference.is_finite(), "{a:?} {b:?}: {test:?}");
            for p in [test.p_two_sided, test.p_greater, test.p_less] {
                prop_assert!((0.0..=1.0).contains(&p), "{a:?} {b:?}: {test:?}");
            }
            prop_assert!(test.interval.low <= test.interval.high, "{a:?} {b:?}: {test:?}");
        }
        prop_assert!(is_ordered(paired_t_interval(a, b, level)), "{a:?} {b:?} {level}");
        prop_assert!(is_probability(sign_test(a, b)), "{a:?} {b:?}");
        for test in [wilcoxon(a, b), wilcoxon_exact(a, b)].into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&test.p) && test.statistic >= 0.0, "{a:?} {b:?}: {test:?}");
        }
        for alternative in [Alternative::TwoSided, Alternative::Greater, Alternative::Less] {
            for max_exact in [0, 12] {
                let test = sign_flip(a, alternative, max_exact, 20, seed);
                prop_assert!(is_probability(test.map(|test| test.p)), "{a:?}: {test:?}");
                // One of 2^n patterns is the least that can be claimed, up to rounding.
                let least = 0.5f64.powi(i32::try_from(n).unwrap()) * (1.0 - 1e-9);
                let claims_too_much = |test: PermutationTest| test.exact && test.p < least;
                prop_assert!(!test.is_ok_and(claims_too_much), "{a:?}: {test:?}");
            }
        }
    }

    #[test]
    fn corrections(p in numbers()) {
        for correct in [bonferroni, holm, benjamini_hochberg] {
            let corrected = correct(&p);
            prop_assert_eq!(corrected.len(), p.len());
            prop_assert!(corrected.iter().all(|p| (0.0..=1.0).contains(p)), "{p:?}: {corrected:?}");
        }
    }

    #[test]
    fn plans_and_quantiles(
        a in number(), b in number(), c in level(), d in level(), n in any::<u64>(),
    ) {
        let t = student_two_sided_quantile(c, a);
        let defined = (0.0..=1.0).contains(&c) && a > 0.0;
        prop_assert_eq!(t.is_nan(), !defined, "{} {}", c, a);
        prop_assert!(t.is_nan() || t >= 0.0, "{c} {a}: {t}");
        for effect in [minimum_detectable_effect(a, n, c, d), minimum_detectable_effect(a, 2, c, d)] {
            prop_assert!(effect >= 0.0, "{a} {n} {c} {d}: {effect}");
        }
        prop_assert!(sample_size_for_effect(a, b, c, d) >= 2);
        for share in [a, c] {
            prop_assert!(sample_size_for_ceiling(share, 0, d) >= 1);
            prop_assert!(sample_size_for_floor(share, 0, d) >= 1);
        }
        if let Ok((low, high)) = quantile_ranks(n, c, d) {
            prop_assert!(low >= 1 && low <= high && high <= n);
        }
    }

    #[test]
    fn clustered_rates(
        clusters in prop::collection::vec((any::<u64>(), any::<u64>(), 0u64..5, 0u32..64), 0..6),
        level in level(),
    ) {
        let clusters = clusters.iter().map(|(hits, size, times, shift)| (hits >> shift, size >> shift, *times));
        if let Ok(rate) = ClusteredRate::of_counts(clusters) {
            prop_assert!(rate.hits <= rate.of && rate.clusters <= rate.of, "{rate:?}");
            prop_assert!(is_ordered(rate.wilson(level)), "{rate:?} {level}");
            prop_assert!(is_probability(rate.clopper_pearson_upper(level)), "{rate:?} {level}");
            prop_assert!(is_probability(rate.clopper_pearson_lower(level)), "{rate:?} {level}");
        }
    }

    #[test]
    fn scores_that_were_counted_and_means_of_measures(
        ties in prop::collection::vec((number(), any::<u64>(), any::<u64>(), 0u32..64), 0..8),
        xs in numbers(),
    ) {
        let ties = ties.iter().map(|(score, hits, alarms, shift)| (*score, hits >> shift, alarms >> shift));
        let scores = Scores::from_ties(ties);
        for score in [
            scores.roc_auc(),
            scores.partial_auc(0.1),
            scores.average_precision(),
            scores.recall_at_fpr(0.1),
            scores.brier(),
        ] {
            prop_assert!(score.is_err() || score.is_ok_and(|s| (0.0..=1.0 + 1e-12).contains(&s)), "{score:?}");
        }
        prop_assert!(is_number(scores.log_loss()));
        let mut mean = Mean::default();
        xs.iter().for_each(|x| mean.add(Ok(*x)));
        prop_assert!(mean.value().is_err() || mean.value().is_ok_and(f64::is_finite), "{mean:?}");
    }

    #[test]
    fn placed_results(
        judged in prop::collection::vec(-2i64..4, 0..6), retrieved in 0usize..9,
        placed in prop::collection::vec((prop_oneof![0usize..9, any::<usize>()], -2i64..4), 0..6),
        relevance_level in 0u8..3,
    ) {
        let rules = Rules { relevance_level: relevance_level.into(), ..Rules::default() };
        let mut ranking = JudgedRanking::default();
        ranking.refill_placed(judged, retrieved, placed, &rules);
        for metric in karat_metrics::ranking::METRICS {
            let measure: Measure = metric.id.replace("@k", "@3").parse().unwrap();
            let score = ranking.score(measure);
            prop_assert!(score.is_err() || score.is_ok_and(f64::is_finite), "{}: {score:?}", metric.id);
        }
    }
}

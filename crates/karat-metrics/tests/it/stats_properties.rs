//! Properties of the statistics on generated input.

use karat_metrics::stats::*;
use proptest::prelude::*;

fn counts() -> impl Strategy<Value = (u64, u64)> {
    (1u64..5_000).prop_flat_map(|n| (0..=n, Just(n)))
}

/// Any count at all, with a preference for the edges.
fn hostile() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..5,
        any::<u64>(),
        (0u64..5).prop_map(|k| u64::MAX - k),
        (0u32..64).prop_map(|k| 1 << k)
    ]
}

fn scores(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.0..=1.0f64, n)
}

/// Differences as they occur: of outcomes, of recalls with small denominators, of anything.
fn differences() -> impl Strategy<Value = Vec<f64>> {
    let outcome = (-1i32..=1).prop_map(f64::from);
    let recall = (-4i32..=4, 1i32..=4).prop_map(|(top, bottom)| f64::from(top) / f64::from(bottom));
    prop_oneof![
        prop::collection::vec(outcome, 1..12),
        prop::collection::vec(recall, 1..12),
        prop::collection::vec(-1.0..1.0f64, 1..12),
    ]
}

/// P(sum >= observed) and P(sum <= observed) over all sign patterns, one by one.
fn sign_flip_by_brute_force(differences: &[f64]) -> (f64, f64) {
    let observed: f64 = differences.iter().sum();
    let patterns = 1u32 << differences.len();
    let (mut at_least, mut at_most) = (0.0, 0.0);
    for pattern in 0..patterns {
        let signed = differences.iter().enumerate();
        let sum: f64 = signed.map(|(i, d)| if pattern >> i & 1 == 0 { *d } else { -d }).sum();
        at_least += f64::from(u8::from(sum >= observed - 1e-9));
        at_most += f64::from(u8::from(sum <= observed + 1e-9));
    }
    (at_least / f64::from(patterns), at_most / f64::from(patterns))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

proptest! {
    #[test]
    fn intervals_of_a_rate_contain_it_and_stay_between_zero_and_one(
        (x, n) in counts(), confidence in 0.01..0.9999f64,
    ) {
        let p = x as f64 / n as f64;
        for method in [wilson, wilson_corrected, clopper_pearson] {
            let interval = method(x, n, confidence).unwrap();
            prop_assert!(interval.contains(p), "{interval:?} {p}");
            prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
        }
    }

    #[test]
    fn intervals_of_a_rate_shrink_with_more_trials((x, n) in counts(), times in 2u64..20) {
        for method in [wilson, clopper_pearson] {
            let few = method(x, n, 0.95).unwrap();
            let many = method(x * times, n * times, 0.95).unwrap();
            prop_assert!(many.width() < few.width(), "{few:?} {many:?}");
        }
    }

    #[test]
    fn more_confidence_is_a_wider_interval((x, n) in counts(), confidence in 0.05..0.9f64) {
        for method in [wilson, clopper_pearson, jeffreys] {
            let (less, more) = (method(x, n, confidence).unwrap(), method(x, n, confidence + 0.05).unwrap());
            prop_assert!(more.low <= less.low && more.high >= less.high, "{less:?} {more:?}");
        }
    }

    #[test]
    fn failures_have_the_mirrored_interval((x, n) in counts()) {
        for method in [wilson, wilson_corrected, clopper_pearson, jeffreys, agresti_coull] {
            let (hits, misses) = (method(x, n, 0.95).unwrap(), method(n - x, n, 0.95).unwrap());
            prop_assert!(near(hits.low, 1.0 - misses.high) && near(hits.high, 1.0 - misses.low));
        }
    }

    #[test]
    fn a_one_sided_bound_is_an_end_of_the_two_sided_interval((x, n) in counts(), alpha in 0.001..0.4f64) {
        let both = clopper_pearson(x, n, 1.0 - 2.0 * alpha).unwrap();
        prop_assert!(near(clopper_pearson_upper(x, n, 1.0 - alpha).unwrap(), both.high));
        prop_assert!(near(clopper_pearson_lower(x, n, 1.0 - alpha).unwrap(), both.low));
    }

    #[test]
    fn a_difference_of_rates_lies_in_its_interval_and_changes_sign_with_the_order(
        (x1, n1) in counts(), (x2, n2) in counts(),
    ) {
        let there = newcombe(x1, n1, x2, n2, 0.95).unwrap();
        let back = newcombe(x2, n2, x1, n1, 0.95).unwrap();
        prop_assert!(there.contains(x1 as f64 / n1 as f64 - x2 as f64 / n2 as f64));
        prop_assert!(near(there.low, -back.high) && near(there.high, -back.low));
        let p = fisher_exact(x1, n1, x2, n2).unwrap();
        prop_assert!(near(p, fisher_exact(x2, n2, x1, n1).unwrap()));
        prop_assert!(near(p, fisher_exact(n1 - x1, n1, n2 - x2, n2).unwrap()));
    }

    #[test]
    fn the_sample_size_is_the_smallest_that_certifies(
        ceiling in 0.001..0.9f64, failures in 0u64..30, confidence in 0.5..0.999f64,
    ) {
        let n = sample_size_for_ceiling(ceiling, failures, confidence);
        prop_assert!(clopper_pearson_upper(failures, n, confidence).unwrap() <= ceiling);
        if n > failures.max(1) {
            prop_assert!(clopper_pearson_upper(failures, n - 1, confidence).unwrap() > ceiling);
        }
        let n = sample_size_for_floor(1.0 - ceiling, failures, confidence);
        prop_assert!(clopper_pearson_lower(n - failures, n, confidence).unwrap() >= 1.0 - ceiling);
    }

    #[test]
    fn the_smallest_effect_found_and_the_sample_size_belong_together(
        std in 0.01..10.0f64, effect in 0.01..5.0f64, alpha in 0.001..0.2f64, power in 0.5..0.99f64,
    ) {
        let n = sample_size_for_effect(std, effect, alpha, power);
        prop_assert!(minimum_detectable_effect(std, n, alpha, power) <= effect);
        if n > 2 {
            prop_assert!(minimum_detectable_effect(std, n - 1, alpha, power) > effect);
        }
    }

    #[test]
    fn repeated_runs_order_as_all_then_one_then_any(n in 1u64..200, share in 0.0..=1.0f64, k in 1u64..200) {
        let successes = (share * n as f64) as u64;
        let rate = reliability(successes, n).unwrap();
        if k > n {
            prop_assert!(pass_hat_k(n, successes, k).is_err() && pass_at_k(n, successes, k).is_err());
            return Ok(());
        }
        let (all, any) = (pass_hat_k(n, successes, k).unwrap(), pass_at_k(n, successes, k).unwrap());
        prop_assert!(all <= rate + 1e-12 && rate <= any + 1e-12, "{all} {rate} {any}");
        prop_assert!(near(1.0 - any, pass_hat_k(n, n - successes, k).unwrap()));
        if k > 1 {
            prop_assert!(all <= pass_hat_k(n, successes, k - 1).unwrap() + 1e-12);
            prop_assert!(any >= pass_at_k(n, successes, k - 1).unwrap() - 1e-12);
        }
    }

    #[test]
    fn the_exact_sign_flip_test_equals_brute_force(differences in differences()) {
        let (at_least, at_most) = sign_flip_by_brute_force(&differences);
        let p = |alternative| sign_flip(&differences, alternative, MAX_ENUMERATED, 0, 0).unwrap().p;
        prop_assert!(near(p(Alternative::Greater), at_least));
        prop_assert!(near(p(Alternative::Less), at_most));
        prop_assert!(near(p(Alternative::TwoSided), (2.0 * at_least.min(at_most)).min(1.0)));
    }

    #[test]
    fn the_sign_flip_test_on_outcomes_is_mcnemars(only_a in 0usize..300, only_b in 0usize..300, same in 1usize..50) {
        let mut differences = vec![1.0; only_a];
        differences.extend(vec![-1.0; only_b]);
        differences.extend(vec![0.0; same]);
        let test = sign_flip(&differences, Alternative::TwoSided, 0, 0, 0).unwrap();
        prop_assert!(test.exact);
        prop_assert!((test.p - mcnemar_exact(only_a as u64, only_b as u64)).abs() < 1e-12);
    }

    #[test]
    fn exact_signed_ranks_equal_brute_force(differences in differences()) {
        let zeros = vec![0.0; differences.len()];
        let test = wilcoxon_exact(&differences, &zeros).unwrap();
        let present: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
        // Ranks by counting: each difference ranks after the smaller ones, half-way among its equals.
        let ranks: Vec<f64> = present.iter().map(|d| {
            let smaller = present.iter().filter(|other| other.abs() < d.abs()).count() as f64;
            let equal = present.iter().filter(|other| other.abs() == d.abs()).count() as f64;
            (smaller + (equal + 1.0) / 2.0).copysign(*d)
        }).collect();
        let (at_least, at_most) = sign_flip_by_brute_force(&ranks);
        prop_assert!(near(test.p, (2.0 * at_least.min(at_most)).min(1.0)));
    }

    #[test]
    fn exchanging_the_systems_mirrors_the_paired_tests(a in scores(3..30), seed in any::<u64>()) {
        let mut draws = random::Draws::from_seed(seed);
        let b: Vec<f64> = a.iter().map(|_| draws.below(1000) as f64 / 1000.0).collect();
        let (there, back) = (paired_t_test(&a, &b).unwrap(), paired_t_test(&b, &a).unwrap());
        prop_assert!(near(there.t, -back.t) && near(there.p_greater, back.p_less));
        prop_assert!(near(there.p_two_sided, 2.0 * there.p_greater.min(there.p_less)));
        prop_assert!(there.interval.contains(there.mean_difference));
        prop_assert_eq!(wilcoxon(&a, &b).unwrap(), wilcoxon(&b, &a).unwrap());
        prop_assert_eq!(sign_test(&a, &b), sign_test(&b, &a));
    }

    #[test]
    fn the_order_of_the_items_does_not_matter(xs in scores(2..40), q in 0.0..=1.0f64) {
        let mut reversed = xs.clone();
        reversed.reverse();
        prop_assert!(near(mean(&xs).unwrap(), mean(&reversed).unwrap()));
        prop_assert!(near(sample_std(&xs).unwrap(), sample_std(&reversed).unwrap()));
        for (_, method) in QuantileMethod::ALL {
            prop_assert_eq!(quantile(&xs, q, *method), quantile(&reversed, q, *method));
        }
    }

    #[test]
    fn quantiles_rise_and_stay_within_the_data(xs in scores(1..40), q in 0.0..=0.9f64, more in 0.0..=0.1f64) {
        let low = xs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = xs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for (name, method) in QuantileMethod::ALL {
            let (first, second) = (quantile(&xs, q, *method).unwrap(), quantile(&xs, q + more, *method).unwrap());
            prop_assert!(low <= first && first <= second + 1e-15 && second <= high, "{name}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_bits_every_time(xs in scores(2..50), seed in any::<u64>()) {
        for method in [BootstrapMethod::Percentile, BootstrapMethod::Basic, BootstrapMethod::Bca] {
            let bootstrap = Bootstrap { resamples: 200, seed, method, ..Bootstrap::default() };
            let bits = |interval: Interval| (interval.low.to_bits(), interval.high.to_bits());
            prop_assert_eq!(bootstrap.mean(&xs).map(bits), bootstrap.mean(&xs).map(bits));
        }
    }

    #[test]
    fn percentile_intervals_stay_within_the_data(xs in scores(2..50), clusters in prop::collection::vec(0usize..5, 50)) {
        let low = xs.iter().copied().fold(f64::INFINITY, f64::min) - 1e-12;
        let high = xs.iter().copied().fold(f64::NEG_INFINITY, f64::max) + 1e-12;
        let bootstrap = Bootstrap { resamples: 200, ..Bootstrap::default() };
        let plain = bootstrap.mean(&xs);
        let clustered = bootstrap.clustered_mean(&xs, &clusters[..xs.len()]);
        for interval in [plain, clustered].into_iter().flatten() {
            prop_assert!(low <= interval.low && interval.low <= interval.high && interval.high <= high);
        }
    }

    #[test]
    fn corrections_only_raise_p_values_and_holm_keeps_their_order(p in scores(1..20)) {
        let (bonferroni, holm, hochberg) = (bonferroni(&p), holm(&p), benjamini_hochberg(&p));
        for i in 0..p.len() {
            prop_assert!(p[i] <= hochberg[i] + 1e-15 && hochberg[i] <= holm[i] + 1e-15);
            prop_assert!(holm[i] <= bonferroni[i] + 1e-15 && bonferroni[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || (holm[i] <= holm[j] && hochberg[i] <= hochberg[j]));
            }
        }
    }
}

proptest! {
    // The search for a sample size among huge counts is the slowest of all.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_count_is_too_large(
        a in hostile(), b in hostile(), c in hostile(), d in hostile(), confidence in 0.01..0.999f64,
    ) {
        for method in [wilson, wilson_corrected, clopper_pearson, jeffreys, agresti_coull, normal_approximation] {
            if let Ok(interval) = method(a, b, confidence) {
                prop_assert!(interval.low >= 0.0 && interval.low <= interval.high && interval.high <= 1.0, "{interval:?}");
            }
        }
        if let Ok(interval) = newcombe(a, b, c, d, confidence) {
            prop_assert!(interval.low >= -1.0 && interval.low <= interval.high && interval.high <= 1.0);
        }
        for score in [pass_at_k(a, b, c), pass_hat_k(a, b, c), fisher_exact(a, b, c, d), Ok(mcnemar_exact(a, b))] {
            prop_assert!(score.is_err() || (0.0..=1.0).contains(&score.unwrap()), "{score:?}");
        }
        if let Ok(test) = mcnemar_chi_squared(a, b) {
            prop_assert!((0.0..=1.0).contains(&test.p));
        }
        prop_assert!(sample_size_for_ceiling(confidence, a, 0.95) >= a);
        prop_assert!(minimum_detectable_effect(1.0, a, 0.05, confidence) >= 0.0);
    }
}

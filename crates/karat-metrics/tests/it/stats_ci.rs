//! Every value of vectors/stats_ci.json, obtained from scipy, numpy and statsmodels, is reproduced.
//!
//! A NaN of the peers is our `Undefined`. Every case and every key must be known here: one that is
//! not fails the test, so nothing in the file can go unchecked.

use karat_metrics::stats::*;
use karat_metrics::{Score, Undefined};
use serde_json::Value;

use crate::peers::{Vectors, vectors};

/// Runs `check` on every case of a kind, for each of its expected values.
fn for_each(kind: &str, check: impl Fn(&Case, &str, &Value)) {
    let vectors: Vectors<Value> = vectors("stats_ci");
    assert_eq!(vectors.cases.len(), vectors.meta.cases);
    let mut seen = 0;
    for case in vectors.cases.iter().filter(|case| case["kind"] == kind) {
        let case = Case { json: case, tolerance: vectors.meta.tolerance };
        for (key, expected) in case.json["expected"].as_object().unwrap() {
            check(&case, key, expected);
            seen += 1;
        }
    }
    assert!(seen > 0, "no case of kind {kind}");
}

struct Case<'a> {
    json: &'a Value,
    tolerance: f64,
}

impl Case<'_> {
    fn count(&self, field: &str) -> u64 {
        self.json[field].as_u64().unwrap()
    }

    fn numbers(&self, field: &str) -> Vec<f64> {
        numbers(&self.json[field])
    }

    fn number(&self, key: &str, ours: Score, expected: &Value) {
        let agrees = match (ours, expected.as_f64()) {
            (Ok(ours), Some(expected)) => {
                (ours - expected).abs() <= self.tolerance * expected.abs().max(1.0)
            }
            (Err(_), None) => expected == "NaN",
            _ => false,
        };
        assert!(agrees, "{} {key}: ours {ours:?}, peer {expected}", self.json["id"]);
    }

    fn interval(&self, key: &str, ours: Result<Interval, Undefined>, expected: &Value) {
        assert_eq!(expected.as_array().map(Vec::len), Some(2));
        self.number(key, ours.map(|interval| interval.low), &expected[0]);
        self.number(key, ours.map(|interval| interval.high), &expected[1]);
    }

    fn list(&self, key: &str, ours: &[f64], expected: &Value) {
        let expected = expected.as_array().unwrap();
        assert_eq!(ours.len(), expected.len(), "{} {key}", self.json["id"]);
        for (ours, expected) in ours.iter().zip(expected) {
            self.number(key, Ok(*ours), expected);
        }
    }
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// The number at the end of a key such as `t_interval_0.95`.
fn level(key: &str, prefix: &str) -> Option<f64> {
    key.strip_prefix(prefix)?.parse().ok()
}

#[test]
fn intervals_for_rates_equal_those_of_scipy_and_statsmodels() {
    for_each("binomial_ci", |case, key, expected| {
        let method = match key {
            "wilson" => wilson,
            "wilsoncc" => wilson_corrected,
            "clopper_pearson" => clopper_pearson,
            "jeffreys" => jeffreys,
            "agresti_coull" => agresti_coull,
            "normal" => normal_approximation,
            _ => panic!("unknown key {key}"),
        };
        let confidence = case.json["confidence"].as_f64().unwrap();
        case.interval(key, method(case.count("successes"), case.count("n"), confidence), expected);
    });
}

#[test]
fn two_proportions_equal_those_of_scipy_and_statsmodels() {
    for_each("two_proportions", |case, key, expected| {
        let [x1, n1, x2, n2] = ["x1", "n1", "x2", "n2"].map(|field| case.count(field));
        match key {
            "fisher_exact_pvalue" => case.number(key, fisher_exact(x1, n1, x2, n2), expected),
            "newcombe_diff_ci95" => case.interval(key, newcombe(x1, n1, x2, n2, 0.95), expected),
            _ => panic!("unknown key {key}"),
        }
    });
}

#[test]
fn mcnemar_equals_statsmodels() {
    for_each("mcnemar", |case, key, expected| {
        let (only_a, only_b) = (case.count("only_a"), case.count("only_b"));
        let chi_squared = mcnemar_chi_squared(only_a, only_b);
        match key {
            "exact_pvalue" => case.number(key, Ok(mcnemar_exact(only_a, only_b)), expected),
            "chi2_corrected" => case.number(key, chi_squared.map(|test| test.statistic), expected),
            "chi2_corrected_pvalue" => case.number(key, chi_squared.map(|test| test.p), expected),
            _ => panic!("unknown key {key}"),
        }
    });
}

#[test]
fn means_and_their_intervals_equal_those_of_numpy_and_scipy() {
    for_each("mean_ci", |case, key, expected| {
        let xs = case.numbers("x");
        let at = |q| quantile(&xs, q, QuantileMethod::Linear);
        match key {
            "mean" => case.number(key, mean(&xs), expected),
            "std_sample" => case.number(key, sample_std(&xs), expected),
            "std_population" => case.number(key, population_std(&xs), expected),
            "sem" => case.number(key, sem(&xs), expected),
            "min" => case.number(key, at(0.0), expected),
            "max" => case.number(key, at(1.0), expected),
            "median" => case.number(key, median(&xs), expected),
            "geometric_mean" => case.number(key, geometric_mean(&xs), expected),
            _ => match level(key, "t_interval_") {
                Some(confidence) => case.interval(key, t_interval(&xs, confidence), expected),
                None => panic!("unknown key {key}"),
            },
        }
    });
}

#[test]
fn quantiles_equal_those_of_numpy() {
    for_each("quantile", |case, key, expected| {
        let xs = case.numbers("x");
        let Some((_, method)) = QuantileMethod::ALL.iter().find(|(name, _)| *name == key) else {
            panic!("unknown method {key}");
        };
        for (q, expected) in expected.as_object().unwrap() {
            let ours = quantile(&xs, q.parse().unwrap(), *method);
            case.number(&format!("{key} {q}"), ours, expected);
        }
    });
}

#[test]
fn paired_tests_equal_those_of_scipy() {
    for_each("paired_tests", |case, key, expected| {
        let (a, b) = (case.numbers("a"), case.numbers("b"));
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let t_test = paired_t_test(&a, &b);
        let flipped = |alternative| {
            let test = sign_flip(&differences, alternative, MAX_ENUMERATED, 0, 0).unwrap();
            assert!(test.exact);
            Ok(test.p)
        };
        match key {
            "mean_diff" => case.number(key, mean(&differences), expected),
            "t" => case.number(key, t_test.map(|test| test.t), expected),
            "t_pvalue" => case.number(key, t_test.map(|test| test.p_two_sided), expected),
            "t_pvalue_greater" => case.number(key, t_test.map(|test| test.p_greater), expected),
            "t_pvalue_less" => case.number(key, t_test.map(|test| test.p_less), expected),
            "t_ci95" => {
                case.interval(key, paired_t_interval(&a, &b, 0.95), expected);
                if let Ok(test) = t_test {
                    case.interval(key, Ok(test.interval), expected);
                }
            }
            "sign_test_pvalue" => case.number(key, sign_test(&a, &b), expected),
            "wilcoxon" => case.number(key, wilcoxon(&a, &b).map(|test| test.statistic), expected),
            "wilcoxon_pvalue" => case.number(key, wilcoxon(&a, &b).map(|test| test.p), expected),
            "exact_sign_flip_permutation_pvalue_two-sided" => {
                case.number(key, flipped(Alternative::TwoSided), expected);
            }
            "exact_sign_flip_permutation_pvalue_greater" => {
                case.number(key, flipped(Alternative::Greater), expected);
            }
            "exact_sign_flip_permutation_pvalue_less" => {
                case.number(key, flipped(Alternative::Less), expected);
            }
            _ => panic!("unknown key {key}"),
        }
    });
}

#[test]
fn bootstrap_intervals_on_given_draws_equal_those_of_scipy() {
    for_each("bootstrap_given_indices", |case, key, expected| {
        let xs = case.numbers("x");
        let indices: Vec<Vec<usize>> =
            serde_json::from_value(case.json["indices"].clone()).unwrap();
        let means = resampled_means(&xs, &indices).unwrap();
        if key == "standard_error" {
            return case.number(key, sample_std(&means), expected);
        }
        let methods = [
            ("percentile_", BootstrapMethod::Percentile),
            ("basic_", BootstrapMethod::Basic),
            ("BCa_", BootstrapMethod::Bca),
        ];
        let known = methods.iter().find_map(|(prefix, method)| Some((method, level(key, prefix)?)));
        let Some((method, confidence)) = known else { panic!("unknown key {key}") };
        let bootstrap = Bootstrap { method: *method, confidence, ..Bootstrap::default() };
        case.interval(key, bootstrap.from_means(&xs, &means), expected);
    });
}

#[test]
fn corrected_p_values_equal_those_of_statsmodels() {
    for_each("multiple_testing", |case, key, expected| {
        let correct = match key {
            "bonferroni" => bonferroni,
            "holm" => holm,
            "benjamini_hochberg" => benjamini_hochberg,
            _ => panic!("unknown key {key}"),
        };
        case.list(key, &correct(&case.numbers("p")), expected);
    });
}

#[test]
fn no_kind_of_case_goes_unchecked() {
    let checked = [
        "binomial_ci",
        "two_proportions",
        "mcnemar",
        "mean_ci",
        "quantile",
        "paired_tests",
        "bootstrap_given_indices",
        "multiple_testing",
    ];
    for case in vectors::<Vectors<Value>>("stats_ci").cases {
        assert!(checked.contains(&case["kind"].as_str().unwrap()), "{}", case["id"]);
    }
}

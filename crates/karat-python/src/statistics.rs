//! Intervals, paired tests, bootstrap and corrections.

use std::collections::HashMap;

use karat_metrics::Undefined;
use karat_metrics::stats::{self, Alternative, Bootstrap, BootstrapMethod, Interval};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::error;

/// Runs without the interpreter's lock, and turns a missing value into an exception.
fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Undefined> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|reason| error::undefined(py, reason))
}

fn ends(interval: Interval) -> (f64, f64) {
    (interval.low, interval.high)
}

/// An interval of a rate by the name of its method.
#[pyfunction]
pub(crate) fn rate_interval(
    py: Python<'_>,
    method: &str,
    successes: u64,
    n: u64,
    confidence: f64,
) -> PyResult<(f64, f64)> {
    let interval = match method {
        "wilson" => stats::wilson,
        "wilson_corrected" => stats::wilson_corrected,
        "clopper_pearson" => stats::clopper_pearson,
        "jeffreys" => stats::jeffreys,
        "agresti_coull" => stats::agresti_coull,
        _ => return Err(error::plain(py, format!("{method:?} is not an interval of a rate"))),
    };
    detached(py, || interval(successes, n, confidence)).map(ends)
}

/// A one-sided bound of a rate by Clopper and Pearson.
#[pyfunction]
pub(crate) fn rate_bound(
    py: Python<'_>,
    side: &str,
    successes: u64,
    n: u64,
    confidence: f64,
) -> PyResult<f64> {
    let bound = match side {
        "upper" => stats::clopper_pearson_upper,
        "lower" => stats::clopper_pearson_lower,
        _ => return Err(error::plain(py, "a bound is `upper` or `lower`")),
    };
    detached(py, || bound(successes, n, confidence))
}

/// Mean difference, t, degrees of freedom, p, and the interval of the difference.
type PairedT = (f64, f64, f64, f64, (f64, f64));

/// Student's paired t-test.
#[pyfunction]
pub(crate) fn paired_t(
    py: Python<'_>,
    a: Vec<f64>,
    b: Vec<f64>,
    alternative: &str,
    confidence: f64,
) -> PyResult<PairedT> {
    let alternative = alternative_of(py, alternative)?;
    detached(py, || {
        let test = stats::paired_t_test(&a, &b)?;
        let p = match alternative {
            Alternative::TwoSided => test.p_two_sided,
            Alternative::Greater => test.p_greater,
            Alternative::Less => test.p_less,
        };
        let interval = stats::paired_t_interval(&a, &b, confidence)?;
        Ok((test.mean_difference, test.t, test.degrees, p, ends(interval)))
    })
}

/// Wilcoxon's signed-rank test: statistic, p, and whether p is exact.
#[pyfunction]
pub(crate) fn wilcoxon(
    py: Python<'_>,
    a: Vec<f64>,
    b: Vec<f64>,
    exact: bool,
) -> PyResult<(f64, f64, bool)> {
    let test = if exact { stats::wilcoxon_exact } else { stats::wilcoxon };
    let found = detached(py, || test(&a, &b))?;
    Ok((found.statistic, found.p, found.method == stats::WilcoxonMethod::Exact))
}

/// The exact p-value of McNemar's test, from the items that only one side has right.
#[pyfunction]
pub(crate) fn mcnemar(only_a: u64, only_b: u64) -> f64 {
    stats::mcnemar_exact(only_a, only_b)
}

/// The sign test.
#[pyfunction]
pub(crate) fn sign_test(py: Python<'_>, a: Vec<f64>, b: Vec<f64>) -> PyResult<f64> {
    detached(py, || stats::sign_test(&a, &b))
}

/// The sign-flip permutation test on a − b: p, whether it is exact, and the number of resamples.
#[pyfunction]
pub(crate) fn permutation(
    py: Python<'_>,
    a: Vec<f64>,
    b: Vec<f64>,
    alternative: &str,
    max_exact: u32,
    resamples: u64,
    seed: u64,
) -> PyResult<(f64, bool, u64)> {
    let alternative = alternative_of(py, alternative)?;
    let test = detached(py, || {
        if a.len() != b.len() {
            return Err(Undefined("the two lists differ in length"));
        }
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        stats::sign_flip(&differences, alternative, max_exact, resamples, seed)
    })?;
    Ok((test.p, test.exact, test.resamples))
}

/// A bootstrap interval of the mean; `clusters` names the cluster of each value.
#[pyfunction]
pub(crate) fn bootstrap(
    py: Python<'_>,
    values: Vec<f64>,
    clusters: Option<Vec<PyBackedStr>>,
    confidence: f64,
    resamples: usize,
    seed: u64,
    method: &str,
) -> PyResult<(f64, f64)> {
    let method = match method {
        "percentile" => BootstrapMethod::Percentile,
        "basic" => BootstrapMethod::Basic,
        "bca" => BootstrapMethod::Bca,
        _ => return Err(error::plain(py, "a bootstrap is `percentile`, `basic` or `bca`")),
    };
    let settings = Bootstrap { resamples, seed, confidence, method };
    detached(py, || match &clusters {
        None => settings.mean(&values),
        Some(names) => {
            // Numbered by name, so that the order of the values does not matter.
            let mut sorted: Vec<&str> = names.iter().map(|name| &**name).collect();
            sorted.sort_unstable();
            sorted.dedup();
            let number: HashMap<&str, usize> =
                sorted.into_iter().enumerate().map(|(number, name)| (name, number)).collect();
            let numbers: Vec<usize> = names.iter().map(|name| number[&**name]).collect();
            settings.clustered_mean(&values, &numbers)
        }
    })
    .map(ends)
}

/// A correction of p-values for their number.
#[pyfunction]
pub(crate) fn correct(py: Python<'_>, method: &str, p: Vec<f64>) -> PyResult<Vec<f64>> {
    Ok(match method {
        "holm" => stats::holm(&p),
        "bonferroni" => stats::bonferroni(&p),
        "benjamini_hochberg" => stats::benjamini_hochberg(&p),
        _ => return Err(error::plain(py, format!("{method:?} is not a correction"))),
    })
}

/// The chance that at least one of k attempts succeeds.
#[pyfunction]
pub(crate) fn pass_at_k(py: Python<'_>, n: u64, successes: u64, k: u64) -> PyResult<f64> {
    error::value(py, stats::pass_at_k(n, successes, k))
}

/// The chance that all of k attempts succeed.
#[pyfunction]
pub(crate) fn pass_hat_k(py: Python<'_>, n: u64, successes: u64, k: u64) -> PyResult<f64> {
    error::value(py, stats::pass_hat_k(n, successes, k))
}

fn alternative_of(py: Python<'_>, name: &str) -> PyResult<Alternative> {
    match name {
        "two-sided" => Ok(Alternative::TwoSided),
        "greater" => Ok(Alternative::Greater),
        "less" => Ok(Alternative::Less),
        _ => Err(error::plain(py, "an alternative is `two-sided`, `greater` or `less`")),
    }
}

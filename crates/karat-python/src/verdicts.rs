//! Metrics of classification, over verdicts and over scores.

use karat_metrics::Score;
use karat_metrics::classification::{Confusion, InputError, Scores};
use pyo3::prelude::*;

use crate::error;

/// True positives, false positives, false negatives and true negatives.
type Counts = (u64, u64, u64, u64);

/// Counts verdicts.
#[pyfunction]
pub(crate) fn confusion(py: Python<'_>, truth: Vec<bool>, flagged: Vec<bool>) -> PyResult<Counts> {
    let counts = read(py, Confusion::from_verdicts(&truth, &flagged))?;
    Ok((
        counts.true_positives,
        counts.false_positives,
        counts.false_negatives,
        counts.true_negatives,
    ))
}

/// A metric of counts by its id, such as `fpr`.
#[pyfunction]
pub(crate) fn count_metric(py: Python<'_>, counts: Counts, id: &str) -> PyResult<f64> {
    let (true_positives, false_positives, false_negatives, true_negatives) = counts;
    let counts = Confusion { true_positives, false_positives, false_negatives, true_negatives };
    match counts.metric(id) {
        Some(score) => error::value(py, score),
        None => Err(error::plain(py, format!("{id:?} is not a metric of counts"))),
    }
}

/// A metric of scores by its name.
#[pyfunction]
pub(crate) fn score_metric(
    py: Python<'_>,
    truth: Vec<bool>,
    scores: Vec<f64>,
    id: &str,
    limit: Option<f64>,
) -> PyResult<f64> {
    let scores = read(py, Scores::new(&truth, &scores))?;
    let measure = |scores: &Scores| -> Option<Score> {
        Some(match (id, limit) {
            ("roc_auc", None) => scores.roc_auc(),
            ("roc_auc", Some(max_fpr)) => scores.partial_auc(max_fpr),
            ("average_precision", _) => scores.average_precision(),
            ("brier", _) => scores.brier(),
            ("log_loss", _) => scores.log_loss(),
            ("recall_at_fpr", Some(ceiling)) => scores.recall_at_fpr(ceiling),
            _ => return None,
        })
    };
    match py.detach(|| measure(&scores)) {
        Some(score) => error::value(py, score),
        None => Err(error::plain(py, format!("{id:?} is not a metric of scores"))),
    }
}

fn read<T>(py: Python<'_>, read: Result<T, InputError>) -> PyResult<T> {
    read.map_err(|error| error::plain(py, error))
}

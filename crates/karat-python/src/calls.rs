//! Metrics of tool calls.

use std::collections::HashSet;

use karat_agent::CallMetric;
use karat_metrics::calls::deepeval::{Threshold, ToolPermission};
use pyo3::prelude::*;

use crate::{error, values};

/// Scores the calls of one sample by the metric with this id.
#[pyfunction]
pub(crate) fn call_score(
    py: Python<'_>,
    metric: &str,
    called: &Bound<'_, PyAny>,
    expected: &Bound<'_, PyAny>,
) -> PyResult<(f64, Option<bool>, Option<&'static str>)> {
    let metric: CallMetric = metric.parse().map_err(|error| error::plain(py, error))?;
    let called = values::calls(called, "called")?;
    let expected = values::calls(expected, "expected")?;
    let found = metric.measure(&called, &expected);
    Ok((found.score, found.success, found.warning.map(|warning| warning.id())))
}

/// The share of calls that a policy permits.
#[pyfunction]
pub(crate) fn permission_score(
    py: Python<'_>,
    called: &Bound<'_, PyAny>,
    allowed: Option<HashSet<String>>,
    denied: Option<HashSet<String>>,
) -> PyResult<f64> {
    let policy = ToolPermission::new(allowed, denied, Threshold::None);
    let policy = policy.map_err(|error| error::plain(py, error))?;
    Ok(policy.measure(&values::calls(called, "called")?).score)
}

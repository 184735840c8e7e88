//! The Python module `karat._karat`: the compiled half of the package in packages/python.
//!
//! Functions here take and return plain values and JSON text; names, defaults, types and documentation
//! for users are in the Python half. Work on data runs without the interpreter's lock. A panic becomes an
//! exception, so the crate is built with the profile `python`, which unwinds.

// Functions that Python calls own their arguments: there is nothing to borrow from.
#![allow(clippy::needless_pass_by_value)]

mod calls;
mod error;
mod rankings;
mod reports;
mod rows;
mod scoring;
mod statistics;
mod tables;
mod values;
mod verdicts;

use pyo3::prelude::*;

#[pymodule]
fn _karat(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<tables::Batch>()?;
    module.add_class::<tables::Table>()?;
    module.add_class::<tables::BatchSchema>()?;
    module.add_class::<scoring::Scorer>()?;
    module.add_class::<scoring::Partial>()?;
    module.add_function(wrap_pyfunction!(scoring::input_schema, module)?)?;
    module.add_function(wrap_pyfunction!(rows::trace_rows, module)?)?;
    module.add_function(wrap_pyfunction!(rows::ranking_rows, module)?)?;
    module.add_function(wrap_pyfunction!(rows::verdict_rows, module)?)?;
    module.add_function(wrap_pyfunction!(rows::with_items, module)?)?;
    module.add_function(wrap_pyfunction!(rankings::ranking_scores, module)?)?;
    module.add_function(wrap_pyfunction!(calls::call_score, module)?)?;
    module.add_function(wrap_pyfunction!(calls::permission_score, module)?)?;
    module.add_function(wrap_pyfunction!(verdicts::confusion, module)?)?;
    module.add_function(wrap_pyfunction!(verdicts::count_metric, module)?)?;
    module.add_function(wrap_pyfunction!(verdicts::score_metric, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::rate_interval, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::rate_bound, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::paired_t, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::wilcoxon, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::mcnemar, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::sign_test, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::permutation, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::bootstrap, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::correct, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::pass_at_k, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::pass_hat_k, module)?)?;
    module.add_function(wrap_pyfunction!(reports::read_reports, module)?)?;
    module.add_function(wrap_pyfunction!(reports::compare_reports, module)?)?;
    module.add_function(wrap_pyfunction!(reports::judge_report, module)?)?;
    module.add_function(wrap_pyfunction!(reports::metrics_table, module)?)?;
    module.add_function(wrap_pyfunction!(reports::items_table, module)?)?;
    module.add_function(wrap_pyfunction!(reports::metric_definitions, module)?)?;
    Ok(())
}

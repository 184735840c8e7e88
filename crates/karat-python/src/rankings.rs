//! Measures of one ranking. Many rankings are scored from Arrow batches.

use karat_metrics::ranking::{JudgedRanking, Measure, Rules, ScorePrecision, TieRule};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyMapping, PyString};

use crate::error;

/// Scores one ranking by several measures: each value, or the reason why there is none.
///
/// `results` is a list of ids, best first, or a mapping from id to score, which is sorted as trec_eval
/// does. `relevant` maps ids to grades, or lists the relevant ids.
#[pyfunction]
pub(crate) fn ranking_scores(
    py: Python<'_>,
    results: &Bound<'_, PyAny>,
    relevant: &Bound<'_, PyAny>,
    measures: Vec<String>,
    relevance_level: u32,
    judged_only: bool,
    float32: bool,
) -> PyResult<Vec<(Option<f64>, Option<&'static str>)>> {
    let rules = Rules {
        ties: TieRule::IdDescending,
        precision: if float32 { ScorePrecision::F32 } else { ScorePrecision::F64 },
        relevance_level,
        judged_only,
    };
    let measures: Vec<Measure> = measures
        .iter()
        .map(|id| id.parse::<Measure>().map_err(|error| error::plain(py, error)))
        .collect::<PyResult<_>>()?;
    let judged = judgements(relevant)?;
    let judged = judged.iter().map(|(id, grade)| (&**id, *grade));
    let ranking = if let Ok(mapping) = results.cast::<PyMapping>() {
        let scored: Vec<(PyBackedStr, f64)> = mapping.items()?.extract()?;
        let scored = scored.iter().map(|(id, score)| (&**id, *score));
        JudgedRanking::from_scored(judged, scored, &rules)
    } else {
        let ordered: Vec<PyBackedStr> = listed(results)?;
        JudgedRanking::from_ordered(judged, ordered.iter().map(|id| &**id), &rules)
    };
    let ranking = ranking.map_err(|error| error::plain(py, error))?;
    let score = |measure: &Measure| match ranking.score(*measure) {
        Ok(value) => (Some(value), None),
        Err(reason) => (None, Some(reason.0)),
    };
    Ok(measures.iter().map(score).collect())
}

fn judgements(relevant: &Bound<'_, PyAny>) -> PyResult<Vec<(PyBackedStr, i64)>> {
    if let Ok(graded) = relevant.cast::<PyMapping>() {
        return graded.items()?.extract();
    }
    Ok(listed(relevant)?.into_iter().map(|id| (id, 1)).collect())
}

/// The ids of a list or any other iterable. A single text is an iterable of letters, which is never meant.
fn listed(ids: &Bound<'_, PyAny>) -> PyResult<Vec<PyBackedStr>> {
    if ids.is_instance_of::<PyString>() {
        return Err(error::plain(ids.py(), "a list of ids is needed, and this is one text"));
    }
    ids.try_iter()?.map(|id| id?.extract::<PyBackedStr>()).collect()
}

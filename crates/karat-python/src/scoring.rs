//! Batches in, batches out, and partial results that are merged exactly.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use karat_arrow::{Error, Kind, Options};
use karat_core::error::EvalError;
use karat_core::partition::Partition;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{self, Place};
use crate::tables::{self, Batch, BatchSchema, Table};

/// The kind with this name.
fn kind_of(py: Python<'_>, name: &str) -> PyResult<Kind> {
    name.parse::<Kind>().map_err(|error| error::plain(py, error))
}

/// Options, from the JSON that Python makes of keyword arguments.
fn options_of(py: Python<'_>, text: &str) -> PyResult<Options> {
    serde_json::from_str(text).map_err(|error| error::plain(py, format!("the options: {error}")))
}

fn raised(py: Python<'_>, error: &Error) -> PyErr {
    raised_in(py, error, None)
}

fn raised_in(py: Python<'_>, error: &Error, file: Option<&Path>) -> PyErr {
    let id = match error {
        Error::Row { id, .. }
        | Error::ForeignRow { id, .. }
        | Error::TooManyFailures(EvalError::TooManyFailures { id, .. }) => Some(id.clone()),
        _ => None,
    };
    let file = file.map(|file| file.to_string_lossy().into_owned());
    error::located(py, &error.to_string(), Place { file, line: None, id })
}

/// The columns that a kind is scored from.
#[pyfunction]
pub(crate) fn input_schema(py: Python<'_>, kind: &str) -> PyResult<BatchSchema> {
    Ok(BatchSchema(karat_arrow::input_schema(kind_of(py, kind)?)))
}

/// Scores batches; keeps nothing of them.
#[pyclass(frozen, module = "karat._karat")]
pub(crate) struct Scorer {
    scorer: karat_arrow::Scorer,
}

#[pymethods]
impl Scorer {
    #[new]
    fn new(py: Python<'_>, kind: &str, options: &str) -> PyResult<Scorer> {
        Scorer::of(py, kind_of(py, kind)?, options_of(py, options)?)
    }

    /// The columns of the scores.
    #[getter]
    fn schema(&self) -> BatchSchema {
        BatchSchema(self.scorer.schema())
    }

    /// Scores one batch.
    fn score_batch(&self, py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Batch> {
        let mut batches = tables::read(source)?;
        let (Some(batch), None) = (batches.next(), batches.next()) else {
            return Err(error::plain(py, "one batch is needed"));
        };
        let scored = py.detach(|| self.scored(batch));
        scored.map(Batch).map_err(|error| raised(py, &error))
    }

    /// Scores every batch of a source.
    fn score(&self, py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Table> {
        let batches = tables::read(source)?;
        let scored = py.detach(|| self.scorer.score_all(batches));
        let batches = scored.map_err(|error| raised(py, &error))?;
        Ok(Table { schema: self.scorer.schema(), batches })
    }
}

impl Scorer {
    fn of(py: Python<'_>, kind: Kind, options: Options) -> PyResult<Scorer> {
        let scorer = karat_arrow::Scorer::new(kind, options);
        Ok(Scorer { scorer: scorer.map_err(|error| raised(py, &error))? })
    }

    fn scored(&self, batch: Result<RecordBatch, ArrowError>) -> Result<RecordBatch, Error> {
        self.scorer.score(&batch?)
    }
}

/// A partial result: what the report needs of the items, in any order and in any number of parts.
#[pyclass(frozen, module = "karat._karat")]
pub(crate) struct Partial {
    scorer: Scorer,
    /// None after an error: it may hold some rows of the batch that was refused.
    partial: Mutex<Option<karat_arrow::Partial>>,
}

impl Partial {
    fn holding(py: Python<'_>, partial: karat_arrow::Partial) -> PyResult<Partial> {
        let scorer = Scorer::of(py, partial.kind(), partial.options().clone())?;
        Ok(Partial { scorer, partial: Mutex::new(Some(partial)) })
    }

    fn change(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut karat_arrow::Partial) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        self.change_in(py, None, work)
    }

    /// Changes the partial result; an error, which may be in a file, leaves none.
    fn change_in(
        &self,
        py: Python<'_>,
        file: Option<&Path>,
        work: impl FnOnce(&mut karat_arrow::Partial) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let changed = py.detach(|| {
            let mut guard = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
            let mut partial = guard.take()?;
            let ended = work(&mut partial);
            if ended.is_ok() {
                *guard = Some(partial);
            }
            Some(ended)
        });
        changed.ok_or_else(|| unusable(py))?.map_err(|error| raised_in(py, &error, file))
    }

    /// A copy of the partial result.
    fn copy(&self, py: Python<'_>) -> PyResult<karat_arrow::Partial> {
        let copied =
            py.detach(|| self.partial.lock().unwrap_or_else(PoisonError::into_inner).clone());
        copied.ok_or_else(|| unusable(py))
    }
}

fn unusable(py: Python<'_>) -> PyErr {
    error::plain(
        py,
        "the partial result has met an error before and is not complete; make it again",
    )
}

#[pymethods]
impl Partial {
    #[new]
    #[pyo3(signature = (kind, options, part=None))]
    fn new(py: Python<'_>, kind: &str, options: &str, part: Option<&str>) -> PyResult<Partial> {
        let (kind, options) = (kind_of(py, kind)?, options_of(py, options)?);
        let partial = match part {
            None => karat_arrow::Partial::new(kind, &options),
            Some(part) => {
                let part = part.parse::<Partition>().map_err(|error| error::plain(py, error))?;
                karat_arrow::Partial::of_part(kind, &options, part)
            }
        };
        Partial::holding(py, partial.map_err(|error| raised(py, &error))?)
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Partial> {
        let partial = karat_arrow::Partial::from_bytes(data);
        Partial::holding(py, partial.map_err(|error| raised(py, &error))?)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let partial = self.copy(py)?;
        let bytes = py.detach(|| partial.to_bytes());
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.scorer.scorer.kind().name()
    }

    #[getter]
    fn rows(&self, py: Python<'_>) -> PyResult<u64> {
        let guard = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_ref().map(karat_arrow::Partial::rows).ok_or_else(|| unusable(py))
    }

    /// Scores every batch of a source and adds it.
    fn add(&self, py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut batches = tables::read(source)?;
        self.change(py, |partial| {
            batches.try_for_each(|batch| partial.add(&self.scorer.scored(batch)?))
        })
    }

    /// Adds batches that are scored already.
    fn add_scored(&self, py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut batches = tables::read(source)?;
        self.change(py, |partial| batches.try_for_each(|batch| partial.add(&batch?)))
    }

    /// Scores the rows of a Parquet file and adds them. Returns the scores unless there are more rows
    /// than `keep`.
    fn add_parquet(&self, py: Python<'_>, path: PathBuf, keep: usize) -> PyResult<Option<Table>> {
        let (mut kept, mut rows) = (Vec::new(), 0);
        self.change_in(py, Some(&path), |partial| {
            let files = std::slice::from_ref(&path);
            karat_arrow::files::score(files, &self.scorer.scorer, partial, &mut |scored| {
                rows += scored.num_rows();
                match rows <= keep {
                    true => kept.push(scored.clone()),
                    false => kept.clear(),
                }
                Ok(())
            })
        })?;
        let table = || Table { schema: self.scorer.scorer.schema(), batches: kept };
        Ok((rows <= keep).then(table))
    }

    /// Adds another partial result.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Partial>) -> PyResult<()> {
        // A copy, so that merging with itself does not wait for itself.
        let other = other.get().copy(py)?;
        self.change(py, |partial| partial.merge(other))
    }

    /// The report, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let partial = self.copy(py)?;
        let report = py.detach(|| partial.report()).map_err(|error| raised(py, &error))?;
        serde_json::to_string(&report).map_err(|error| error::plain(py, error))
    }
}

//! Errors as exceptions: `karat.KaratError` with the file, line and id at fault, and `karat.Undefined`.
//!
//! The classes are Python's (`karat/_errors.py`), so that they have typed attributes.

use karat_io::input::InputError;
use karat_metrics::{Score, Undefined};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

static KARAT_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UNDEFINED: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The place of a mistake, as far as it is known.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u64>,
    pub(crate) id: Option<String>,
}

/// A `KaratError` at a place.
pub(crate) fn located(py: Python<'_>, message: &str, place: Place) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = KARAT_ERROR.import(py, "karat._errors", "KaratError")?;
        let place_of = PyDict::new(py);
        place_of.set_item("file", place.file)?;
        place_of.set_item("line", place.line)?;
        place_of.set_item("id", place.id)?;
        Ok(PyErr::from_value(class.call((message,), Some(&place_of))?))
    };
    made().unwrap_or_else(|error| error)
}

/// A `KaratError` without a place.
pub(crate) fn plain(py: Python<'_>, message: impl std::fmt::Display) -> PyErr {
    located(py, &message.to_string(), Place::default())
}

/// The error of a file.
pub(crate) fn input(py: Python<'_>, error: &InputError) -> PyErr {
    let place = Place {
        file: Some(error.path().to_string_lossy().into_owned()),
        line: error.line(),
        id: None,
    };
    located(py, &error.to_string(), place)
}

/// A metric that has no value.
pub(crate) fn undefined(py: Python<'_>, reason: Undefined) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = UNDEFINED.import(py, "karat._errors", "Undefined")?;
        Ok(PyErr::from_value(class.call1((reason.0,))?))
    };
    made().unwrap_or_else(|error| error)
}

/// The value of a metric, or the exception that says why it has none.
pub(crate) fn value(py: Python<'_>, score: Score) -> PyResult<f64> {
    score.map_err(|reason| undefined(py, reason))
}

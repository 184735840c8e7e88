//! Arrow data from and to other libraries, through the Arrow C data interface: no copies, and no library
//! of Arrow for Python is needed.
//!
//! The interface moves structs of pointers through capsules whose name is their type; this is the only
//! file with unsafe code.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array as _, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{DataType, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Batches as they come.
pub(crate) type Batches = Box<dyn RecordBatchReader + Send>;

/// Takes the batches of anything that has them: a batch or a table of pyarrow or polars, a data frame,
/// a reader.
pub(crate) fn read(source: &Bound<'_, PyAny>) -> PyResult<Batches> {
    let py = source.py();
    // A batch has both; as an array it needs no stream around it.
    if source.hasattr("__arrow_c_array__")? {
        let pair = source.call_method0("__arrow_c_array__")?;
        let batch = batch_of(pair.cast::<PyTuple>()?)?;
        let schema = batch.schema();
        return Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    }
    if source.hasattr("__arrow_c_stream__")? {
        let capsule = source.call_method0("__arrow_c_stream__")?;
        let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name holds a valid FFI_ArrowArrayStream by the definition of the
        // interface. `from_raw` moves it out and leaves a released one, which the capsule accepts.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
        let reader = RecordBatchStreamReader::try_new(stream);
        return Ok(Box::new(reader.map_err(|error| error::plain(py, error))?));
    }
    let kind = source.get_type().name()?;
    Err(error::plain(
        py,
        format!(
            "a {kind} is not Arrow data: it has neither `__arrow_c_array__` nor `__arrow_c_stream__`; \
             give a table of pyarrow, pandas or polars"
        ),
    ))
}

fn batch_of(pair: &Bound<'_, PyTuple>) -> PyResult<RecordBatch> {
    let py = pair.py();
    let wrong = |error: &dyn std::fmt::Display| error::plain(py, error);
    let capsules: (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = pair.extract()?;
    let schema = capsules.0.pointer_checked(Some(SCHEMA))?;
    let array = capsules.1.pointer_checked(Some(ARRAY))?;
    // SAFETY: as in `read`: the names of the capsules say which structs they hold, and both are moved out.
    let (schema, array) = unsafe {
        (
            FFI_ArrowSchema::from_raw(schema.cast().as_ptr()),
            FFI_ArrowArray::from_raw(array.cast().as_ptr()),
        )
    };
    let metadata = schema.metadata().map_err(|error| wrong(&error))?;
    // SAFETY: both come from one call of `__arrow_c_array__`, so the schema is that of the array.
    let data = unsafe { from_ffi(array, &schema) }.map_err(|error| wrong(&error))?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        let kind = data.data_type();
        return Err(error::plain(
            py,
            format!("a batch of columns is needed, and this is one {kind}"),
        ));
    }
    if data.null_count() > 0 {
        return Err(error::plain(py, "the batch has rows that are null as a whole"));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    let schema = Schema::clone(&batch.schema()).with_metadata(metadata);
    batch.with_schema(Arc::new(schema)).map_err(|error| wrong(&error))
}

/// A batch of columns. Any library that reads the Arrow C interface takes it: `pyarrow.record_batch(batch)`,
/// `polars.DataFrame(batch)`.
#[pyclass(frozen, module = "karat._karat")]
pub(crate) struct Batch(pub(crate) RecordBatch);

#[pymethods]
impl Batch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Batch({} rows: {})", self.0.num_rows(), self.column_names().join(", "))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A request is a wish, which the interface allows to be ignored.
        let _ = requested_schema;
        let array = FFI_ArrowArray::new(&StructArray::from(self.0.clone()).to_data());
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        Ok((schema_capsule(py, &self.0.schema())?, array))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream_capsule(py, vec![self.0.clone()], &self.0.schema())
    }
}

/// Batches of one schema. Any library that reads the Arrow C interface takes them: `pyarrow.table(table)`,
/// `polars.DataFrame(table)`.
#[pyclass(frozen, module = "karat._karat")]
pub(crate) struct Table {
    pub(crate) schema: Arc<Schema>,
    pub(crate) batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.num_rows(), self.column_names().join(", "))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream_capsule(py, self.batches.clone(), &self.schema)
    }
}

/// A schema by itself, for libraries that want to know the columns before there is a batch.
#[pyclass(frozen, module = "karat._karat")]
pub(crate) struct BatchSchema(pub(crate) Arc<Schema>);

#[pymethods]
impl BatchSchema {
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Name and type of each column, as text.
    #[getter]
    fn columns(&self) -> Vec<(String, String, bool)> {
        let column = |field: &Arc<arrow_schema::Field>| {
            (field.name().clone(), field.data_type().to_string(), field.is_nullable())
        };
        self.0.fields().iter().map(column).collect()
    }

    #[getter]
    fn metadata(&self) -> std::collections::HashMap<String, String> {
        let pairs = self.0.metadata().iter();
        pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn __repr__(&self) -> String {
        let column = |(name, kind, nullable): (String, String, bool)| {
            format!("{name}: {kind}{}", if nullable { " or null" } else { "" })
        };
        self.columns().into_iter().map(column).collect::<Vec<_>>().join("\n")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }
}

fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| error::plain(py, error))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

fn stream_capsule<'py>(
    py: Python<'py>,
    batches: Vec<RecordBatch>,
    schema: &Arc<Schema>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = batches.into_iter().map(Ok);
    let reader = RecordBatchIterator::new(batches, Arc::clone(schema));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

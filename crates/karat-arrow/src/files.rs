//! Parquet: rows are read batch by batch in flat memory, and what a report says is written as tables.
//!
//! Three tables: `items` has a row for each item with its scores, `observations` what was observed on it
//! as JSON, `metrics` a row for each metric and slice. docs/arrow.md lists their columns.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use karat_core::report::{Item, Measured, Report};
use karat_metrics::MetricId;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tempfile::NamedTempFile;

use crate::schema::input_schema;
use crate::{Error, Kind, Partial, SCHEMA_KEY, Scorer};

/// The rows of a batch that is read or written.
const BATCH_ROWS: usize = 8_192;
/// The rows after which a group of rows is written out, which bounds the memory of writing.
const ROW_GROUP: usize = 1 << 17;

fn failed<'p>(path: &'p Path, what: &'p str) -> impl Fn(&dyn std::fmt::Display) -> Error + 'p {
    move |error| Error::File(format!("{}: cannot {what}: {error}", path.display()))
}

/// The rows of a file, batch by batch, with the columns that a kind of rows can have.
pub struct Rows {
    path: PathBuf,
    batches: ParquetRecordBatchReader,
    /// The name of the schema, which the reader does not pass on.
    schema_name: Option<String>,
}

/// Every row and column of a file, batch by batch.
///
/// # Errors
/// If it is not a Parquet file.
pub fn read(path: &Path) -> Result<Rows, Error> {
    Rows::with(path, |_| true)
}

impl Rows {
    /// Opens a file; `group` is the column that has the groups.
    ///
    /// # Errors
    /// If it is not a Parquet file.
    pub(crate) fn open(path: &Path, kind: Kind, group: &str) -> Result<Rows, Error> {
        let known = input_schema(kind);
        Rows::with(path, |field| {
            field.name() == group || known.field_with_name(field.name()).is_ok()
        })
    }

    fn with(path: &Path, is_wanted: impl Fn(&Field) -> bool) -> Result<Rows, Error> {
        let wrong = failed(path, "be read as Parquet");
        let file = File::open(path).map_err(|error| failed(path, "be opened")(&error))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| wrong(&e))?;
        let wanted: Vec<usize> = builder
            .schema()
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| is_wanted(field))
            .map(|(place, _)| place)
            .collect();
        let schema_name = builder.schema().metadata().get(SCHEMA_KEY).cloned();
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
        let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
        Ok(Rows { path: path.to_owned(), batches: reader.map_err(|e| wrong(&e))?, schema_name })
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = self.batches.next()?;
        if let (Ok(batch), Some(name)) = (&mut batch, &self.schema_name) {
            batch.schema_metadata_mut().insert(SCHEMA_KEY, name);
        }
        Some(batch.map_err(|error| failed(&self.path, "be read on")(&error)))
    }
}

/// Scores the rows of files into a partial result, and passes every scored batch on.
///
/// # Errors
/// If a file cannot be read, a row cannot be scored, or `on_scored` fails.
pub fn score(
    files: &[PathBuf],
    scorer: &Scorer,
    partial: &mut Partial,
    on_scored: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<(), Error> {
    for path in files {
        let mut first = 0;
        for batch in Rows::open(path, scorer.kind(), &scorer.options().group)? {
            let batch = batch?;
            let in_file = |error: Error| in_file(path, first, error);
            let scored = scorer.score(&batch).map_err(in_file)?;
            partial.add(&scored).map_err(in_file)?;
            on_scored(&scored)?;
            first += batch.num_rows();
        }
    }
    Ok(())
}

/// The same mistake with its file, and with the row in it instead of that in the batch.
fn in_file(path: &Path, first: usize, error: Error) -> Error {
    let shown = path.display();
    match error {
        Error::Null { column, row } => Error::File(format!(
            "{shown}: column `{column}` is null in row {}; every row needs a value",
            first + row
        )),
        Error::Row { row, id, message } => Error::File(format!(
            "{shown}: row {} (id {id:?}): {message}; --max-errors lets a share of rows fail",
            first + row
        )),
        other => Error::File(format!("{shown}: {other}")),
    }
}

/// Writes a Parquet file, which appears when it is complete.
pub struct Writer {
    path: PathBuf,
    writer: ArrowWriter<NamedTempFile>,
}

impl Writer {
    /// Begins a file; missing folders are created.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn create(path: &Path, schema: SchemaRef) -> Result<Writer, Error> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let wrong = failed(path, "be written");
        std::fs::create_dir_all(folder).map_err(|error| wrong(&error))?;
        let file = NamedTempFile::new_in(folder).map_err(|error| wrong(&error))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .build();
        let writer = ArrowWriter::try_new(file, schema, Some(properties));
        Ok(Writer { path: path.to_owned(), writer: writer.map_err(|error| wrong(&error))? })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.writer.write(batch).map_err(|error| failed(&self.path, "be written")(&error))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        let wrong = failed(&self.path, "be written");
        let file = self.writer.into_inner().map_err(|error| wrong(&error))?;
        let kept = file.persist(&self.path);
        kept.map(drop).map_err(|error| wrong(&error))
    }
}

/// Writes the items of a report with their scores, and what was observed on each.
///
/// # Errors
/// If a file cannot be written.
pub fn write_items(folder: &Path, report: &Report) -> Result<(), Error> {
    let ids: BTreeSet<&str> =
        report.items.iter().flat_map(|item| item.metrics.keys().map(MetricId::as_str)).collect();
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    let mut fields =
        vec![text("id", false), text("group", true), text("error", true), text("tags", true)];
    fields.extend(ids.iter().map(|id| Field::new(*id, DataType::Float64, true)));
    let name = [(SCHEMA_KEY, "karat.items/1")];
    let schema = Arc::new(Schema::new_with_metadata(fields, name));
    let mut writer = Writer::create(&folder.join("items.parquet"), Arc::clone(&schema))?;
    for items in report.items.chunks(BATCH_ROWS) {
        writer.write(&items_batch(&schema, &ids, items)?)?;
    }
    writer.finish()?;
    let fields = vec![text("id", false), text("observed", true)];
    let name = [(SCHEMA_KEY, "karat.observations/1")];
    let schema = Arc::new(Schema::new_with_metadata(fields, name));
    let mut writer = Writer::create(&folder.join("observations.parquet"), Arc::clone(&schema))?;
    for items in report.items.chunks(BATCH_ROWS) {
        let (mut id, mut observed) = (StringBuilder::new(), StringBuilder::new());
        for item in items {
            id.append_value(&item.id);
            let json = item.observed.as_ref().and_then(|one| serde_json::to_string(one).ok());
            observed.append_option(json);
        }
        let columns: Vec<ArrayRef> = vec![Arc::new(id.finish()), Arc::new(observed.finish())];
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    writer.finish()
}

fn items_batch(
    schema: &SchemaRef,
    ids: &BTreeSet<&str>,
    items: &[Item],
) -> Result<RecordBatch, Error> {
    let [mut id, mut group, mut error, mut tags] = [(); 4].map(|()| StringBuilder::new());
    for item in items {
        id.append_value(&item.id);
        group.append_option(item.group.as_deref());
        let failure = item.error.as_ref();
        error.append_option(failure.map(|error| format!("{}: {}", error.class, error.message)));
        let json = serde_json::to_string(&item.tags).ok().filter(|_| !item.tags.is_empty());
        tags.append_option(json);
    }
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(id.finish()),
        Arc::new(group.finish()),
        Arc::new(error.finish()),
        Arc::new(tags.finish()),
    ];
    for id in ids {
        let mut scores = Float64Builder::with_capacity(items.len());
        for item in items {
            scores.append_option(item.metrics.get(*id).copied().flatten());
        }
        columns.push(Arc::new(scores.finish()));
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// A run of a history, for the rows of its metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunColumns<'r> {
    /// Its number.
    pub run: Option<i64>,
    /// Its start, in UTC.
    pub started: Option<&'r str>,
    /// The branch.
    pub branch: Option<&'r str>,
    /// The commit.
    pub commit: Option<&'r str>,
}

/// Writes metrics, one row for each metric and slice.
pub struct MetricsWriter {
    writer: Writer,
    schema: SchemaRef,
}

impl MetricsWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path) -> Result<MetricsWriter, Error> {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        let number = |name: &str| Field::new(name, DataType::Float64, true);
        let count = |name: &str, nullable| Field::new(name, DataType::Int64, nullable);
        let fields = vec![
            count("run", true),
            text("started", true),
            text("branch", true),
            text("commit", true),
            text("evaluation", false),
            text("name", false),
            text("slice_by", true),
            text("slice_value", true),
            text("metric", false),
            number("value"),
            count("n", false),
            text("better", false),
            number("low"),
            number("high"),
            text("interval", true),
            count("hits", true),
            count("of", true),
            number("effective"),
            count("left_out", false),
            text("undefined", true),
        ];
        let name = [(SCHEMA_KEY, "karat.metrics/1")];
        let schema = Arc::new(Schema::new_with_metadata(fields, name));
        let writer = Writer::create(path, Arc::clone(&schema))?;
        Ok(MetricsWriter { writer, schema })
    }

    /// Adds the metrics of a report and of its slices.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, run: RunColumns<'_>, report: &Report) -> Result<(), Error> {
        let whole = report.metrics.iter().map(|metric| (None, metric));
        let slices = report.slices.iter().flat_map(|slice| {
            let name = (slice.by.as_str(), slice.value.as_str());
            slice.metrics.iter().map(move |metric| (Some(name), metric))
        });
        let rows: Vec<(Option<(&str, &str)>, &Measured)> = whole.chain(slices).collect();
        for rows in rows.chunks(BATCH_ROWS) {
            let batch = self.batch(run, report, rows)?;
            self.writer.write(&batch)?;
        }
        Ok(())
    }

    fn batch(
        &self,
        run: RunColumns<'_>,
        report: &Report,
        rows: &[(Option<(&str, &str)>, &Measured)],
    ) -> Result<RecordBatch, Error> {
        let text = |value: &dyn Fn(usize) -> Option<String>| -> ArrayRef {
            let mut column = StringBuilder::new();
            (0..rows.len()).for_each(|row| column.append_option(value(row)));
            Arc::new(column.finish())
        };
        let number = |value: &dyn Fn(&Measured) -> Option<f64>| -> ArrayRef {
            let mut column = Float64Builder::new();
            rows.iter().for_each(|(_, metric)| column.append_option(value(metric)));
            Arc::new(column.finish())
        };
        let count = |value: &dyn Fn(&Measured) -> Option<u64>| -> ArrayRef {
            let mut column = Int64Builder::new();
            let whole = |metric| value(metric).and_then(|count| i64::try_from(count).ok());
            rows.iter().for_each(|(_, metric)| column.append_option(whole(metric)));
            Arc::new(column.finish())
        };
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let better = |metric: &Measured| {
            serde_json::to_value(metric.better).ok()?.as_str().map(str::to_owned)
        };
        let mut runs = Int64Builder::new();
        rows.iter().for_each(|_| runs.append_option(run.run));
        let columns = vec![
            Arc::new(runs.finish()) as ArrayRef,
            text(&|_| owned(run.started)),
            text(&|_| owned(run.branch)),
            text(&|_| owned(run.commit)),
            text(&|_| Some(report.evaluation.to_string())),
            text(&|_| Some(report.name.clone())),
            text(&|row| owned(rows[row].0.map(|(by, _)| by))),
            text(&|row| owned(rows[row].0.map(|(_, value)| value))),
            text(&|row| Some(rows[row].1.id.to_string())),
            number(&|metric| metric.value),
            count(&|metric| Some(metric.n)),
            text(&|row| better(rows[row].1)),
            number(&|metric| metric.interval.as_ref().map(|interval| interval.low)),
            number(&|metric| metric.interval.as_ref().map(|interval| interval.high)),
            text(&|row| rows[row].1.interval.as_ref().map(|interval| interval.method.clone())),
            count(&|metric| metric.count.map(|count| count.hits)),
            count(&|metric| metric.count.map(|count| count.of)),
            number(&|metric| Some(metric.count?.groups?.effective)),
            count(&|metric| Some(metric.left_out)),
            text(&|row| rows[row].1.undefined.clone()),
        ];
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        self.writer.finish()
    }
}

/// Writes the metrics of one report.
///
/// # Errors
/// If the file cannot be written.
pub fn write_metrics(folder: &Path, report: &Report) -> Result<(), Error> {
    let mut writer = MetricsWriter::create(&folder.join("metrics.parquet"))?;
    writer.add(RunColumns::default(), report)?;
    writer.finish()
}

//! Scores of Arrow batches, and partial results that merge exactly.
//!
//! For data that is in tables already, and for engines (Spark, Ray, DuckDB) that divide it between
//! workers: a [`Scorer`] takes a batch of traces, rankings or verdicts and returns a batch with their
//! scores, by the same code as `karat agent score`, `karat retrieval score` and `karat detection score`.
//! A [`Partial`] adds scored batches up in memory that does not grow with the number of rows. Partials of
//! any division of the rows, merged in any order, give the same report to the last byte, apart from its
//! `environment`.
//!
//! The schemas are [versioned](input_schema); docs/arrow.md describes them for users. Nothing here starts
//! threads, reads a clock before the report, or talks to an engine. With the feature `parquet`,
//! [`files`] reads and writes Parquet.
//!
//! ```
//! use std::sync::Arc;
//!
//! use karat_arrow::arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
//! use karat_arrow::{Kind, Options, Partial, Scorer};
//!
//! let options = Options::default();
//! let text = |values: [&str; 3]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
//! let batch = RecordBatch::try_from_iter([
//!     ("id", text(["a", "b", "c"])),
//!     ("label", text(["malicious", "malicious", "benign"])),
//!     ("verdict", Arc::new(BooleanArray::from(vec![true, false, false])) as ArrayRef),
//! ])?;
//! let scorer = Scorer::new(Kind::Verdicts, options.clone())?;
//! let mut partial = Partial::new(Kind::Verdicts, &options)?;
//! partial.add(&scorer.score(&batch)?)?;
//! let report = Partial::from_bytes(&partial.to_bytes())?.report()?;
//! assert_eq!(report.metric("recall").and_then(|metric| metric.value), Some(0.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod columns;
mod error;
#[cfg(feature = "parquet")]
pub mod files;
mod options;
mod partial;
mod rankings;
mod report;
mod rows;
mod schema;
mod scorer;
mod totals;
mod traces;
mod verdicts;

pub use arrow_array;
pub use arrow_schema;

pub use error::Error;
pub use options::{Kind, Options};
pub use partial::Partial;
pub use schema::{SCHEMA_KEY, input_schema};
pub use scorer::Scorer;

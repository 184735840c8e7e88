//! Metrics of tool calls: the calls that an agent made against those that were expected.
//!
//! None of them looks at prose, runs a tool or asks a model. [`ragas`], [`deepeval`] and [`bfcl`]
//! reproduce the metrics of those projects with all their conventions, under their names;
//! [`alignment`] and [`f1`] are our own, [`expected`] extends them to expectations that leave the
//! agent a choice, and [`traces`] finds the first wrong call and loops. [`json`] reads the values,
//! which keep everything that any of the metrics depends on, and [`samples`] reads the files of RAGAS and
//! DeepEval.
//!
//! ```
//! use karat_metrics::calls::json::Reader;
//! use karat_metrics::calls::{Call, alignment, f1, ragas};
//!
//! let call = |name, arguments| Reader::new(arguments).read_object().map(|a| Call::new(name, a));
//! let expected = [call("search", r#"{"query": "weather"}"#)?, call("open", r#"{"id": 1}"#)?];
//! let called = [call("search", r#"{"query": "weather"}"#)?, call("open", r#"{"id": 2}"#)?];
//!
//! assert!(!alignment::exact(&called, &expected));
//! assert_eq!(alignment::alignment(&called, &expected), 0.75);
//! assert_eq!(f1::f1(&called, &expected), 0.5);
//! assert_eq!(ragas::tool_call_accuracy(&called, &expected).score, 0.5);
//! # Ok::<(), karat_metrics::calls::json::JsonError>(())
//! ```

use crate::definitions;
use crate::metric::{self, Metric};

pub mod alignment;
mod assignment;
pub mod bfcl;
mod call;
mod classes;
pub mod deepeval;
mod equality;
pub mod expected;
pub mod f1;
pub mod json;
mod near;
mod printable;
pub mod python;
pub mod ragas;
pub mod samples;
pub mod traces;
mod value;

pub use call::{Arguments, Call, CallKind};
pub use equality::Equality;
pub use expected::Expected;
pub use near::near;
pub use value::{BigInt, Kind, Object, Value};

const PARTS: &[&[Metric]] = &[
    alignment::METRICS,
    f1::METRICS,
    ragas::METRICS,
    deepeval::METRICS,
    bfcl::METRICS,
    traces::METRICS,
    definitions::agent::METRICS,
];

/// The metrics of this family, in the order in which they are shown.
pub const METRICS: &[Metric] = &metric::join::<_, { metric::total(PARTS) }>(PARTS);

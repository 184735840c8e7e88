//! Did an agent call the right tools with the right arguments?
//!
//! Every metric here compares the calls that were made with those that were expected; none looks at
//! prose, runs a tool or asks a model. [`ragas`], [`deepeval`] and [`bfcl`] reproduce the metrics of
//! those projects with all their conventions, under their names; [`alignment`] and [`f1`] are ours,
//! [`expected`] extends ours to expectations that leave the agent a choice, and
//! [`traces`] has what else a trace is scored by. [`json`] reads the
//! values, which keep everything that any of the metrics looks at.

use crate::definitions;
use crate::registry::{self, Metric};

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
pub const METRICS: &[Metric] = &registry::join::<_, { registry::total(PARTS) }>(PARTS);

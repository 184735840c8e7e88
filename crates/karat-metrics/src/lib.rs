//! The formulas of Karat and nothing else: no input or output, no clock, no threads.
//!
//! The families: [`ranking`] (did search find the right tools), [`classification`] (did a detector
//! flag the right entries), [`calls`] (did an agent make the right calls), [`suites`] (did a server
//! keep its word), [`probes`] (does it bear what no suite sends), [`stats`] (how sure can we be),
//! [`cost`] and [`load`]. Metrics of other tools are reproduced bit for bit under those tools' names;
//! variants that we find better defined have names of their own. [`registry`] lists every metric with
//! its formula, so that help, documentation and report legend come from one place.
//!
//! A metric that is undefined is an [`Undefined`] with its reason, never 0 and never NaN.

pub mod calls;
pub mod classification;
mod definitions;
mod id;
pub mod ranking;
pub mod registry;
pub mod stats;

pub use id::{MetricId, UnknownMetric};

/// Why a metric has no value on the data at hand, in words a user can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Undefined(pub &'static str);

impl std::fmt::Display for Undefined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Undefined {}

/// A metric's value, or why there is none.
pub type Score = Result<f64, Undefined>;

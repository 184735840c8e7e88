//! Agent evaluation: did the model call the right tools, at what cost?
//!
//! Stations: [`shapes`] (traces as others write them) and [`tasks`] (what should have happened) end in
//! one [`trace`] model; [`tools`] knows what was on offer; [`marks`] scores one trace, [`evaluate`]
//! makes the report of many, [`controls`] proves that it can fail, [`diff`] compares two runs call by
//! call, [`drive`] makes runs and records them, [`judge`] has opinions, [`audit`] holds a frozen dataset
//! to its rules. [`score_file`] is the fast way for samples of RAGAS and DeepEval: one pass, flat memory,
//! means alone.

pub mod audit;
pub mod controls;
pub mod diff;
pub mod drive;
mod entry;
mod error;
pub mod evaluate;
mod ids;
pub mod importers;
pub mod judge;
pub mod made;
pub mod marks;
pub mod means;
mod metric;
mod pipeline;
pub mod recorded;
pub mod sample;
pub mod score;
pub mod shapes;
pub mod tasks;
pub mod tools;
pub mod trace;

pub use entry::{Entry, Loaded, run, usual_metrics};
pub use error::AgentError;
pub use importers::Format;
pub use made::Made;
pub use metric::{CallMetric, UnknownMetric};
pub use recorded::{Recorded, Source};
pub use sample::Sample;
pub use score::{ItemScore, ItemScores, MetricSummary, Options, Summary, score_file};
pub use shapes::Shape;
pub use tasks::Tasks;
pub use tools::Tools;
pub use trace::Trace;

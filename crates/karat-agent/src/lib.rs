//! The agent evaluation: did the model call the right tools?
//!
//! So far its first room: scoring recorded traces. [`score_file`] reads a JSONL file of samples as
//! RAGAS or DeepEval write them, compares the calls in each with those expected, and hands out the
//! scores one sample after the other. Memory stays the same however many samples there are, and the
//! scores stay the same however many threads there are. Nothing here runs an agent or a tool.

mod error;
mod ids;
pub mod importers;
mod input;
mod metric;
mod pipeline;
pub mod sample;
pub mod score;
pub mod shapes;
pub mod trace;

pub use error::{AgentError, Compression};
pub use importers::Format;
pub use metric::{CallMetric, UnknownMetric};
pub use sample::Sample;
pub use score::{ItemScore, ItemScores, MetricSummary, Options, Summary, score_file};

//! Agent evaluation: did the model call the right tools, and at what cost?
//!
//! [`Traces`] scores recorded traces, [`AgentRun`] runs an agent and scores it, [`Trajectories`]
//! compares two runs call by call. Traces in each [`TraceFormat`] are read into one [`trace`] model,
//! completed by [`tasks`]; a [`scores::TraceScorer`] scores each of them in one pass; a
//! [`ScoredSet`] keeps what a report needs of every trace, and [`streaming`] sums alone, in flat memory.
//! [`judge`] asks a model for its opinion, controls prove that the scores can fail, [`audit`] checks a
//! frozen dataset.

mod alignment;
pub mod audit;
mod controls;
mod error;
mod formats;
mod intake;
pub mod judge;
pub mod listen;
mod metric;
mod pairs;
mod pass;
pub mod pipeline;
mod prices;
mod read;
mod read_stats;
mod report;
pub mod run;
mod scored;
pub mod scores;
mod shown;
pub mod streaming;
pub mod suggest;
mod task_digest;
pub mod tasks;
mod tools;
mod totals;
pub mod trace;
mod trace_set;
pub mod traces;
pub mod trajectories;
pub mod upgrade;

pub use formats::TraceFormat;
pub use formats::spans::protobuf;
pub use intake::{Counts, Failures, ReadStats, TraceSource};
pub use metric::{CallMetric, CallScore, UnknownMetric};
pub use read::{Bad, Record, TraceFiles, recognize};
pub use report::{metrics, optional};
pub use run::AgentRun;
pub use scored::{Keep, ScoredSet, ScoredTrace};
pub use scores::{TraceScore, TraceScorer};
pub use tasks::Tasks;
pub use tools::Tools;
pub use trace::Trace;
pub use trace_set::TraceSet;
pub use traces::Traces;
pub use trajectories::Trajectories;

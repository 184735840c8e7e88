//! The result of fuzzing one tool.

use karat_core::observed;
use serde::{Deserialize, Serialize};

use super::controls::ControlTally;
use super::heard::Heard;

/// The result of fuzzing one tool.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ToolResult {
    pub(super) observed: observed::Fuzz,
    /// The number of inputs.
    pub(super) planned: usize,
    /// True if the tool was fuzzed to its end: neither the time limit nor a lost server stopped it.
    pub(super) is_complete: bool,
    /// The number of findings that are not listed.
    pub(super) unreported: usize,
    pub(super) warnings: Vec<String>,
    /// Calls without an answer in time while the server answered a ping.
    #[serde(default)]
    pub(super) slow: u64,
    /// Answers that say nothing about the input: it failed for another reason, or a valid one failed in the same words.
    #[serde(default)]
    pub(super) unrelated: u64,
    /// The answers, until they are counted.
    #[serde(skip)]
    pub(super) heard: Vec<Heard>,
    /// The time of each answer, in nanoseconds.
    pub(super) latencies: Vec<u64>,
    pub(super) controls: ControlTally,
    /// The cause of each finding that other tools may share.
    #[serde(default)]
    pub(super) causes: Vec<Option<String>>,
}

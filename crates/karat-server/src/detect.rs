//! Detectors of hostile text, which the binary passes in: this crate knows none.

use std::sync::OnceLock;

use karat_core::finding::Severity;
use serde_json::Value;

/// Text of a server that a model reads.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// The definition of a tool.
    Tool(&'a Value),
    /// The instructions of the server.
    Instructions(&'a str),
    /// The text of a result.
    Result(&'a str),
}

/// Something that a detector found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The id of the detector, which is a rule of lint.
    pub rule: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The place in the definition.
    pub at: String,
    /// The problem.
    pub message: String,
}

/// Inspects a text.
pub type Detector = fn(Subject<'_>) -> Vec<Suspicion>;

static INSTALLED: OnceLock<Detector> = OnceLock::new();

/// Sets the detector for the results of calls. Only the first one counts.
pub fn install(detector: Detector) {
    let _ = INSTALLED.set(detector);
}

/// The detector for the results of calls, if there is one.
pub(crate) fn installed() -> Option<Detector> {
    INSTALLED.get().copied()
}

//! The formats of traces, each read into [`Trace`]s.
//!
//! Each format has one file and one importer, which takes documents (mostly lines) one after the other
//! and returns traces as soon as they are complete, so that memory does not grow with the file.
//! Importers take what they know, count what they do not know, and repair nothing.

mod chat;
mod mcp_recording;
mod otlp;
pub(crate) mod samples;

use std::collections::BTreeMap;
use std::path::Path;

use crate::metric::CallMetric;
use crate::trace::{Invalid, Trace};

/// The format of a file of traces.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Karat's own format.
    #[default]
    Native,
    /// RAGAS multi-turn samples.
    Ragas,
    /// DeepEval test cases.
    Deepeval,
    /// OpenAI chat logs.
    Openai,
    /// Anthropic message logs.
    Anthropic,
    /// OpenTelemetry spans as OTLP JSON.
    Otlp,
    /// Recordings of MCP sessions by Karat.
    McpRecording,
}

impl TraceFormat {
    /// All formats.
    pub const ALL: [TraceFormat; 7] = [
        TraceFormat::Native,
        TraceFormat::Ragas,
        TraceFormat::Deepeval,
        TraceFormat::Openai,
        TraceFormat::Anthropic,
        TraceFormat::Otlp,
        TraceFormat::McpRecording,
    ];

    /// The name on the command line and in karat.toml.
    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::Native => "native",
            TraceFormat::Ragas => "ragas",
            TraceFormat::Deepeval => "deepeval",
            TraceFormat::Openai => "openai",
            TraceFormat::Anthropic => "anthropic",
            TraceFormat::Otlp => "otlp",
            TraceFormat::McpRecording => "mcp-recording",
        }
    }

    /// A short description for the command line.
    pub fn about(self) -> &'static str {
        match self {
            TraceFormat::Native => "Karat's own format, see docs/agent.md",
            TraceFormat::Ragas => "RAGAS multi-turn samples",
            TraceFormat::Deepeval => "DeepEval test cases",
            TraceFormat::Openai => "OpenAI chat logs",
            TraceFormat::Anthropic => "Anthropic message logs",
            TraceFormat::Otlp => "OpenTelemetry spans as OTLP JSON",
            TraceFormat::McpRecording => "Recordings of MCP sessions",
        }
    }

    /// Returns whether a trace is one document, which can be read without those before it.
    pub(crate) fn is_record_per_document(self) -> bool {
        self == TraceFormat::Native || self.has_samples()
    }

    /// Returns whether records are samples of a peer, with the expected calls in them.
    pub fn has_samples(self) -> bool {
        matches!(self, TraceFormat::Ragas | TraceFormat::Deepeval)
    }

    /// Returns whether a file may also be one document over many lines, or a list of documents.
    pub(crate) fn may_be_one_document(self) -> bool {
        !matches!(self, TraceFormat::Native | TraceFormat::McpRecording)
    }

    /// A reader of documents. `metrics` are computed from samples themselves.
    pub(crate) fn importer<'m>(
        self,
        path: &Path,
        metrics: &'m [CallMetric],
    ) -> Box<dyn Importer + Send + 'm> {
        match self {
            TraceFormat::Native => Box::new(Native),
            TraceFormat::Ragas | TraceFormat::Deepeval => {
                Box::new(samples::Samples { format: self, metrics })
            }
            TraceFormat::Openai | TraceFormat::Anthropic => {
                Box::new(chat::Conversations::default())
            }
            TraceFormat::Otlp => Box::new(otlp::Spans::default()),
            TraceFormat::McpRecording => Box::new(mcp_recording::Recording::new(path)),
        }
    }
}

/// The place of a document in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line, from 1.
    pub(crate) line: u64,
    /// The number of the entry in the list that is on this line, from 0.
    pub(crate) entry: usize,
}

impl Position {
    /// The name of a record that has no id.
    pub(crate) fn name(self) -> String {
        match self.entry {
            0 => format!("line-{}", self.line),
            entry => format!("line-{}-{}", self.line, entry + 1),
        }
    }
}

/// Makes traces of documents.
pub(crate) trait Importer {
    /// Takes one document; adds the traces that are complete.
    fn take(&mut self, text: &str, at: Position, out: &mut Vec<Trace>) -> Result<(), Invalid>;

    /// Adds the remaining traces.
    fn finish(&mut self, _out: &mut Vec<Trace>) {}

    /// Remarks for the reader of the report, with their counts.
    fn notes(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// Karat's own format: one record per line.
struct Native;

impl Importer for Native {
    fn take(&mut self, text: &str, _: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        out.push(Trace::parse(text)?);
        Ok(())
    }
}

//! Traces as others write them, turned into ours.
//!
//! Each shape has one file and one importer, which is given documents (mostly lines) one after the
//! other and hands out traces as soon as they are whole, so that memory does not grow with the file.
//! Importers take what they know, count what they do not, and repair nothing.

mod anthropic;
mod chat;
mod native;
mod openai;
mod otlp;
mod peers;
mod recording;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

pub use self::source::{Bad, Documents, Read, Traces};
use crate::importers::Format;
use crate::metric::CallMetric;
use crate::trace::{Invalid, Trace};

/// How traces are written down.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
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
    /// OpenTelemetry spans, OTLP JSON.
    Otlp,
    /// Recordings of MCP sessions, as Karat makes them.
    McpRecording,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 7] = [
        Shape::Native,
        Shape::Ragas,
        Shape::Deepeval,
        Shape::Openai,
        Shape::Anthropic,
        Shape::Otlp,
        Shape::McpRecording,
    ];

    /// The name on the command line and in karat.toml.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Native => "native",
            Shape::Ragas => "ragas",
            Shape::Deepeval => "deepeval",
            Shape::Openai => "openai",
            Shape::Anthropic => "anthropic",
            Shape::Otlp => "otlp",
            Shape::McpRecording => "mcp-recording",
        }
    }

    /// Whether a file may also be one document over many lines.
    fn may_be_whole(self) -> bool {
        !matches!(self, Shape::Native | Shape::McpRecording)
    }

    fn importer(self, path: &Path, metrics: &[CallMetric]) -> Box<dyn Importer + Send> {
        let peer = |format| peers::Peer {
            format,
            metrics: metrics.to_vec(),
            unnamed: chat::Unnamed::default(),
        };
        match self {
            Shape::Native => Box::new(native::Native),
            Shape::Ragas => Box::new(peer(Format::Ragas)),
            Shape::Deepeval => Box::new(peer(Format::DeepEval)),
            Shape::Openai => Box::new(chat::Conversations::new(openai::read)),
            Shape::Anthropic => Box::new(chat::Conversations::new(anthropic::read)),
            Shape::Otlp => Box::new(otlp::Spans::default()),
            Shape::McpRecording => Box::new(recording::Recording::new(path)),
        }
    }
}

/// Turns documents into traces.
trait Importer {
    /// Takes one document, which starts at a line; hands out what is whole.
    fn take(&mut self, text: &str, line: u64, out: &mut Vec<Trace>) -> Result<(), Invalid>;

    /// Hands out the rest.
    fn finish(&mut self, _out: &mut Vec<Trace>) {}

    /// What a reader should know, with how often it happened.
    fn notes(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

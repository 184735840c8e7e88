//! The formats of traces, each read into [`Trace`]s.
//!
//! Each format has one file and one importer, which takes documents (mostly lines) one after the other
//! and returns traces as soon as they are complete, so that memory does not grow with the file.
//! Importers take what they know, count what they do not know, and repair nothing.

mod chat;
mod detect;
mod dialog;
mod exact;
mod format;
mod gemini_cli;
mod importer;
pub(crate) mod inspect;
mod mcp_recording;
mod opencode;
mod samples;
mod sessions;
pub(crate) mod spans;

use std::path::Path;

use karat_metrics::calls::samples::SampleFormat;

pub(crate) use self::detect::{describe, detect, is_conversation};
pub use self::format::TraceFormat;
pub(crate) use self::importer::{Importer, Position, file_stem};
use crate::metric::CallMetric;
use crate::trace::{Invalid, Trace};

impl TraceFormat {
    /// A reader of documents. `metrics` are computed from samples themselves.
    pub(crate) fn importer<'m>(
        self,
        path: &Path,
        metrics: &'m [CallMetric],
    ) -> Box<dyn Importer + Send + 'm> {
        match self {
            TraceFormat::Auto | TraceFormat::Native => Box::new(Native),
            TraceFormat::Ragas => {
                Box::new(samples::Samples { format: SampleFormat::Ragas, metrics })
            }
            TraceFormat::Deepeval => {
                Box::new(samples::Samples { format: SampleFormat::Deepeval, metrics })
            }
            TraceFormat::Openai | TraceFormat::Anthropic | TraceFormat::Messages => {
                Box::new(chat::Conversations::default())
            }
            TraceFormat::Otlp => Box::new(spans::Spans::new(spans::otlp::read)),
            TraceFormat::OpenaiAgents => Box::new(spans::Spans::new(spans::exports::openai_agents)),
            TraceFormat::Langsmith => Box::new(spans::Spans::new(spans::exports::langsmith)),
            TraceFormat::Langfuse => Box::new(spans::Spans::new(spans::exports::langfuse)),
            TraceFormat::Braintrust => Box::new(spans::Spans::new(spans::records::braintrust)),
            TraceFormat::Opik => Box::new(spans::Spans::new(spans::records::opik)),
            TraceFormat::Weave => Box::new(spans::Spans::new(spans::records::weave)),
            TraceFormat::Inspect => Box::new(inspect::Inspect),
            TraceFormat::ClaudeCode => Box::new(sessions::Sessions::claude_code(path)),
            TraceFormat::Codex => Box::new(sessions::Sessions::codex(path)),
            TraceFormat::Opencode => {
                Box::new(sessions::Sessions::read_by(opencode::opencode, path))
            }
            TraceFormat::GeminiCli => Box::new(gemini_cli::GeminiCli::new(path)),
            TraceFormat::McpRecording => Box::new(mcp_recording::Recording::new(path)),
        }
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

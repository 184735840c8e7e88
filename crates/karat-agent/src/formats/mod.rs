//! The formats of traces, each read into [`Trace`]s.
//!
//! Each format has one file and one importer, which takes documents (mostly lines) one after the other
//! and returns traces as soon as they are complete, so that memory does not grow with the file.
//! Importers take what they know, count what they do not know, and repair nothing.

mod chat;
mod detect;
mod dialog;
mod gemini_cli;
pub(crate) mod inspect;
mod mcp_recording;
mod opencode;
pub(crate) mod samples;
mod sessions;
pub(crate) mod spans;

use std::collections::BTreeMap;
use std::path::Path;

pub(crate) use self::detect::{describe, detect, is_conversation};
use crate::metric::CallMetric;
use crate::trace::{Invalid, Trace};

macro_rules! formats {
    ($($(#[$mark:meta])* $variant:ident = $name:literal, $about:literal;)*) => {
        /// The format of a file of traces.
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum TraceFormat {
            $(#[doc = $about] $(#[$mark])* $variant,)*
        }

        impl TraceFormat {
            /// All formats.
            pub const ALL: &[TraceFormat] = &[$(TraceFormat::$variant),*];

            /// The name on the command line and in karat.toml.
            pub fn name(self) -> &'static str {
                match self { $(TraceFormat::$variant => $name),* }
            }

            /// A short description for the command line.
            pub fn about(self) -> &'static str {
                match self { $(TraceFormat::$variant => $about),* }
            }
        }
    };
}

formats! {
    #[default] Auto = "auto", "Recognized by each file's content";
    Native = "native", "Karat's own format, see docs/agent.md";
    Ragas = "ragas", "RAGAS multi-turn samples";
    Deepeval = "deepeval", "DeepEval test cases";
    Openai = "openai", "OpenAI chat or Responses logs";
    Anthropic = "anthropic", "Anthropic message logs";
    Messages = "messages", "Messages of LangChain, Pydantic AI and others";
    Otlp = "otlp", "OpenTelemetry spans and logs, JSON or protobuf";
    OpenaiAgents = "openai-agents", "Traces that the openai-agents SDK exports";
    Langsmith = "langsmith", "LangSmith runs";
    Langfuse = "langfuse", "Langfuse observations";
    Braintrust = "braintrust", "Braintrust rows";
    Opik = "opik", "Opik traces and spans";
    Weave = "weave", "Weave calls";
    Inspect = "inspect", "Inspect logs, .json or .eval";
    ClaudeCode = "claude-code", "Claude Code session files";
    Codex = "codex", "Codex session files";
    GeminiCli = "gemini-cli", "Gemini CLI session files";
    Opencode = "opencode", "Sessions of opencode";
    McpRecording = "mcp-recording", "Recordings of MCP sessions";
}

impl TraceFormat {
    /// Returns whether a trace is one document, which can be read without those before it.
    pub(crate) fn is_record_per_document(self) -> bool {
        matches!(self, TraceFormat::Native | TraceFormat::Inspect) || self.has_samples()
    }

    /// Returns whether records are samples of a peer, with the expected calls in them.
    pub(crate) fn has_samples(self) -> bool {
        matches!(self, TraceFormat::Ragas | TraceFormat::Deepeval)
    }

    /// Returns whether a file may also be one document over many lines, or a list of documents.
    pub(crate) fn may_be_one_document(self) -> bool {
        self != TraceFormat::McpRecording
    }

    /// Returns whether a list can be one document: a conversation is a list of messages.
    pub(crate) fn has_conversations(self) -> bool {
        matches!(self, TraceFormat::Openai | TraceFormat::Anthropic | TraceFormat::Messages)
    }

    /// Returns whether one trace may be spread over several files.
    pub(crate) fn spans_files(self) -> bool {
        use TraceFormat::{Braintrust, Langfuse, Langsmith, OpenaiAgents, Opik, Otlp, Weave};
        matches!(self, Otlp | OpenaiAgents | Langsmith | Langfuse | Braintrust | Opik | Weave)
    }

    /// A reader of documents. `metrics` are computed from samples themselves.
    pub(crate) fn importer<'m>(
        self,
        path: &Path,
        metrics: &'m [CallMetric],
    ) -> Box<dyn Importer + Send + 'm> {
        match self {
            TraceFormat::Auto | TraceFormat::Native => Box::new(Native),
            TraceFormat::Ragas | TraceFormat::Deepeval => {
                Box::new(samples::Samples { format: self, metrics })
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

//! The formats of traces by name.

use karat_metrics::calls::samples::SampleFormat;

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
        matches!(self, TraceFormat::Native | TraceFormat::Inspect) || self.samples().is_some()
    }

    /// The format of the samples, if records are samples of a peer, with the expected calls in them.
    pub(crate) fn samples(self) -> Option<SampleFormat> {
        match self {
            TraceFormat::Ragas => Some(SampleFormat::Ragas),
            TraceFormat::Deepeval => Some(SampleFormat::Deepeval),
            _ => None,
        }
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
}

impl From<SampleFormat> for TraceFormat {
    fn from(format: SampleFormat) -> Self {
        match format {
            SampleFormat::Ragas => TraceFormat::Ragas,
            SampleFormat::Deepeval => TraceFormat::Deepeval,
        }
    }
}

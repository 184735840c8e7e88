//! A scanner that is itself an MCP server: one call of one of its tools for each entry.
//!
//! The paths start in the structured content of the result, or else the JSON in its
//! text; `from` picks another part.

use std::path::Path;

use karat_core::adapter::mcp::{self, McpTool, Part, Picked};
use karat_core::error::EvalError;
use karat_core::evaluation::Common;
use karat_detectors::ScanInput;
use karat_io::input;
use karat_io::{Failure, FailureClass};
use karat_mcp::Reply;
use serde_json::Value;

use super::answer::{AnswerConfig, AnswerReader, Question};
use crate::answer::Answer;

/// The name of the one detector of a server.
pub(crate) const DETECTOR: &str = "mcp";

/// `mcp = { … }` of a system.
pub(crate) type McpConfig = mcp::McpConfig<AnswerConfig>;

fn question(config: &McpConfig) -> Result<Question, EvalError> {
    let Some(arguments) = &config.arguments else {
        return Err(EvalError::config("system: mcp: give the arguments of the tool"));
    };
    Question::new(&Value::Object(arguments.clone()))
        .map_err(|error| EvalError::config(format!("system: mcp: arguments: {error}")))
}

/// Finds mistakes before anything is started.
pub(crate) fn check(config: &McpConfig) -> Result<(), EvalError> {
    config.check().map_err(|error| EvalError::config(format!("system: mcp: {error}")))?;
    question(config)?;
    AnswerReader::new(&config.answer, DETECTOR).map(drop)
}

/// A server that can be asked.
pub struct McpScanner {
    tool: McpTool<AnswerConfig>,
    question: Question,
    answer: AnswerReader,
}

impl McpScanner {
    /// Starts the server and checks that it has the tool.
    ///
    /// # Errors
    /// If it does not start, or has no such tool.
    pub(crate) async fn start(
        config: &McpConfig,
        folder: &Path,
        limits: &Common,
    ) -> Result<McpScanner, EvalError> {
        let (question, answer) = (question(config)?, AnswerReader::new(&config.answer, DETECTOR)?);
        let tool = McpTool::start(config, folder, limits).await?;
        Ok(McpScanner { tool, question, answer })
    }

    /// Asks about one entry.
    ///
    /// # Errors
    /// If there is no answer, or none that can be read.
    pub(crate) async fn ask(&self, run: u32, input: &ScanInput) -> Result<Answer, Failure> {
        let values = match self.question.values(input, run) {
            Ok(values) => values,
            Err(unshown) => return Ok(unshown.answer(DETECTOR)),
        };
        let reply = self.tool.ask(&values).await?;
        let invalid = |message: String| Failure::new(FailureClass::InvalidAnswer, message);
        let value = content(&reply, self.tool.part())?;
        self.answer.read(&value).map_err(invalid)
    }

    /// Remarks on the server's conduct apart from its answers.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.tool.notes()
    }
}

/// The content of a result, as JSON. Several texts are one document.
fn content(reply: &Reply, part: Part) -> Result<Value, Failure> {
    let joined;
    let text = match part.of(reply) {
        Ok(Picked::Value(value)) => return Ok(value.clone()),
        Ok(Picked::Text(text)) => text,
        Err(_) if part == Part::Auto => {
            joined = reply.texts().join("\n");
            &joined
        }
        Err(failure) => return Err(failure),
    };
    input::parse_json_text(Path::new("result"), text).map_err(|error| {
        let message = format!("the result is neither structured nor JSON: {error}");
        Failure::new(FailureClass::InvalidAnswer, message)
    })
}

//! A scanner that is itself an MCP server: one call of one of its tools for each entry.
//!
//! The arguments are a template with places for the parts of an entry. What is read through the paths is
//! the structured content of the result, or else the JSON in its text. A result with `isError` is a
//! failure of that question, never a verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use karat_io::input::{self, Format};
use karat_io::{Failure, FailureClass};
use karat_mcp::{Options, Reply, ServerSpec, Session};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{AnswerConfig, AnswerReader, Question};
use crate::DetectionError;
use crate::system::{Answer, Exhibit};

/// What the one detector of a server is called.
pub const DETECTOR: &str = "mcp";

/// `mcp = { … }` of a system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// The server: `{ command = […] }` or `{ url = … }`.
    pub server: ServerSpec,
    /// The tool that scans.
    pub tool: String,
    /// Its arguments, with places such as `{description}`.
    pub arguments: Map<String, Value>,
    /// Where the answer says what.
    pub answer: AnswerConfig,
}

impl McpConfig {
    fn question(&self) -> Result<Question, DetectionError> {
        Question::new(Value::Object(self.arguments.clone()))
            .map_err(|error| DetectionError::System(format!("mcp: arguments: {error}")))
    }

    pub(crate) fn check(&self) -> Result<(), DetectionError> {
        self.server.transport().map_err(|error| DetectionError::System(format!("mcp: {error}")))?;
        self.question()?;
        AnswerReader::new(&self.answer, DETECTOR).map(|_| ())
    }

    /// What the report says of it.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let tool = ("tool".to_owned(), self.tool.clone());
        self.answer.settings().chain([tool]).collect()
    }
}

/// A server that can be asked.
pub struct McpScanner {
    session: Session,
    tool: String,
    question: Question,
    answer: AnswerReader,
}

impl McpScanner {
    /// Starts the server and makes sure that it has the tool.
    ///
    /// # Errors
    /// When it does not start, or has no such tool.
    pub async fn start(
        config: &McpConfig,
        folder: &Path,
        timeout: Duration,
    ) -> Result<McpScanner, DetectionError> {
        let (question, answer) = (config.question()?, AnswerReader::new(&config.answer, DETECTOR)?);
        let failed = |error: String| DetectionError::NotStarted(error);
        let options = Options {
            call_timeout: timeout,
            folder: Some(folder.to_owned()),
            ..Options::default()
        };
        let session = Session::start(&config.server, &options)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let tools = session.tools().await.map_err(|error| failed(error.to_string()))?;
        if !tools.iter().any(|tool| tool.name() == config.tool) {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name()).take(20).collect();
            return Err(failed(format!(
                "the server has no tool {:?}; it has: {}",
                config.tool,
                super::text(&names.join(", "))
            )));
        }
        Ok(McpScanner { session, tool: config.tool.clone(), question, answer })
    }

    /// Asks about one entry.
    ///
    /// # Errors
    /// When there is no answer, or none that can be read.
    pub async fn ask(&self, run: u32, exhibit: &Exhibit) -> Result<Answer, Failure> {
        let arguments = match self.question.fill(exhibit, run) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(_) => Map::new(),
            Err(unshown) => return Ok(unshown.answer(DETECTOR)),
        };
        let mut reply =
            self.session.call(&self.tool, &arguments).await.map_err(|error| error.failure())?;
        self.session.redactor().hide_in(&mut reply.raw);
        if reply.is_error {
            let said = super::text(&reply.texts().join(" "));
            return Err(Failure::new(FailureClass::Refused, said));
        }
        let invalid = |message: String| Failure::new(FailureClass::InvalidAnswer, message);
        let value = content(&reply).map_err(invalid)?;
        self.answer.read(&value).map_err(invalid)
    }

    /// What the server did beside answering, in words.
    pub fn notes(&self) -> Vec<String> {
        self.session.protocol_log().warnings()
    }
}

/// What a result says, as JSON.
fn content(reply: &Reply) -> Result<Value, String> {
    if let Some(structured) = reply.structured() {
        return Ok(structured.clone());
    }
    let text = reply.texts().join("\n");
    input::parse(Path::new("result"), &text, Format::Json)
        .map_err(|error| format!("the result is neither structured nor JSON: {error}"))
}

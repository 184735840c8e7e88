//! A system that is a tool of a live MCP server: one call for each question.
//!
//! `mcp = { server = { url = "http://127.0.0.1:8080/mcp" }, tool = "retrieve_tools", arguments = {
//! query = "{query}" }, answer = { … } }`. A place that is a whole argument keeps its type, so a limit
//! is a number. A result with `isError` is a failure of that question, never an answer.

use std::collections::BTreeMap;
use std::path::Path;

use karat_io::template::fill_json;
use karat_io::text::{clip, first_few, printable};
use karat_io::{Failure, FailureClass};
use karat_mcp::{Options, Reply, ServerSpec, Session, StartError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Values;
use crate::error::EvalError;
use crate::evaluation::{Common, RenamedKey};

/// The length of a refusal that is kept.
const MAX_REFUSAL: usize = 500;

/// `mcp = { … }` of a system; `A` reads the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig<A> {
    /// The server: `{ command = […] }` or `{ url = "…" }`, with `env`, `headers`, `cwd`.
    pub server: ServerSpec,
    /// The tool that is called.
    pub tool: String,
    /// Its arguments, with places such as `{query}`.
    pub arguments: Option<Map<String, Value>>,
    /// The part of the result that holds the answer.
    #[serde(default)]
    pub from: Part,
    /// The rules for reading the answer.
    #[serde(default)]
    pub answer: A,
}

/// The time limit for the server of an entry to get ready unless it says otherwise, in milliseconds: a proxy
/// has to start others first.
pub const START_TIMEOUT_MS: u64 = 60_000;

/// The earlier place of an entry's `start_timeout_ms`.
pub const EARLIER_START_TIMEOUT: RenamedKey =
    RenamedKey::new(&["system", "mcp", "start_timeout_ms"], &["start_timeout_ms"]);

/// A part of the result of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// `structuredContent` if the result has it, otherwise the text.
    #[default]
    Auto,
    /// `structuredContent`.
    Structured,
    /// The one text block, which holds JSON.
    Text,
    /// The whole result, with `content`, `structuredContent` and the rest.
    Result,
}

/// The part of a result that was asked for.
#[derive(Debug)]
pub enum Picked<'a> {
    /// JSON.
    Value(&'a Value),
    /// Text that holds JSON.
    Text(&'a str),
}

impl Part {
    /// Picks the part out of a result.
    ///
    /// # Errors
    /// If the result does not have it.
    pub fn of<'a>(self, reply: &'a Reply) -> Result<Picked<'a>, Failure> {
        let invalid = |message: String| Err(Failure::new(FailureClass::InvalidAnswer, message));
        match (self, reply.structured()) {
            (Part::Result, _) => Ok(Picked::Value(&reply.raw)),
            (Part::Auto | Part::Structured, Some(structured)) => Ok(Picked::Value(structured)),
            (Part::Structured, None) => invalid("the result has no structuredContent".to_owned()),
            (Part::Auto | Part::Text, _) => match reply.texts().as_slice() {
                [text] => Ok(Picked::Text(text)),
                [] => invalid("the result has no text".to_owned()),
                several => invalid(format!(
                    "the result has {} texts instead of one; `from = \"result\"` with `json_at = \
                     \"content[*].text\"` reads them as one list",
                    several.len()
                )),
            },
        }
    }
}

impl<A> McpConfig<A> {
    /// Fills the arguments with these values: for finding mistakes before anything is started too.
    ///
    /// # Errors
    /// If a place is unknown.
    pub fn fill(&self, values: &Values) -> Result<Map<String, Value>, String> {
        let arguments = self.arguments.clone().unwrap_or_default();
        match fill_json(&Value::Object(arguments), values)? {
            Value::Object(mut arguments) => {
                // What a question has no value for, such as the cursor of a first page, is not sent.
                arguments.retain(|_, value| !value.is_null());
                Ok(arguments)
            }
            _ => Ok(Map::new()),
        }
    }

    /// Finds mistakes before anything is started; the environment is not looked at.
    ///
    /// # Errors
    /// If there is one.
    pub fn check(&self) -> Result<(), String> {
        self.server.transport().map_err(|error| format!("server: {error}"))?;
        if self.tool.trim().is_empty() {
            return Err("tool is empty".to_owned());
        }
        Ok(())
    }

    /// The settings as the report shows them, without secrets.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::from([("tool".to_owned(), self.tool.clone())]);
        if let Some(arguments) = &self.arguments {
            settings.insert("arguments".to_owned(), json!(arguments).to_string());
        }
        if self.from != Part::Auto {
            let from = json!(self.from);
            settings.insert("from".to_owned(), from.as_str().unwrap_or_default().to_owned());
        }
        settings
    }
}

/// A tool that can be called.
pub struct McpTool<A> {
    config: McpConfig<A>,
    session: Session,
}

impl<A: Clone> McpTool<A> {
    /// Starts or reaches the server within the time limits of an entry, and checks that it has the tool.
    ///
    /// # Errors
    /// If the settings are wrong, such as a variable that is not set; if there is no session, or no such
    /// tool.
    pub async fn start(
        config: &McpConfig<A>,
        folder: &Path,
        limits: &Common,
    ) -> Result<McpTool<A>, EvalError> {
        let not_started =
            |reason: String| EvalError::NotStarted(format!("the system did not start: {reason}"));
        let options = Options {
            start_timeout: limits.start_timeout(),
            call_timeout: limits.timeout(),
            folder: Some(folder.to_owned()),
            ..Options::default()
        };
        let session =
            Session::start(&config.server, &options).await.map_err(|error| match error {
                StartError::Spec { why } => {
                    EvalError::Config(format!("system: mcp: server: {why}"))
                }
                error => not_started(error.to_string()),
            })?;
        let tools =
            session.tools().await.map_err(|error| not_started(format!("its tools: {error}")))?;
        if !tools.iter().any(|tool| tool.name() == config.tool) {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
            let named = clip(&printable(&first_few(&names, 20)), MAX_REFUSAL).into_owned();
            let lacks = format!("the server has no tool {:?}; it has: {named}", config.tool);
            return Err(not_started(lacks));
        }
        Ok(McpTool { config: config.clone(), session })
    }

    /// Calls the tool once. Secrets of the server are already removed from the result.
    ///
    /// # Errors
    /// If there is no result, or the tool reports an error.
    pub async fn ask(&self, values: &Values) -> Result<Reply, Failure> {
        let arguments = self.config.fill(values).map_err(Failure::lost)?;
        let called = self.session.call(&self.config.tool, &arguments).await;
        let mut reply = called.map_err(|error| error.failure())?;
        self.session.redactor().hide_in(&mut reply.raw);
        match reply.is_error {
            true => Err(refused(&reply)),
            false => Ok(reply),
        }
    }

    /// The part of the result that holds the answer.
    pub fn part(&self) -> Part {
        self.config.from
    }

    /// Remarks on the server's conduct apart from its answers.
    pub fn notes(&self) -> Vec<String> {
        self.session.protocol_log().warnings()
    }
}

fn refused(reply: &Reply) -> Failure {
    let text = printable(&reply.texts().join(" ")).into_owned();
    Failure::new(FailureClass::Refused, clip(&text, MAX_REFUSAL))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn reply(raw: Value) -> Reply {
        let is_error = raw["isError"] == true;
        Reply { raw, is_error, latency: Duration::ZERO, progress: Vec::new() }
    }

    fn picked(raw: Value, part: Part) -> Result<String, FailureClass> {
        let reply = reply(raw);
        match part.of(&reply) {
            Ok(Picked::Value(value)) => Ok(value.to_string()),
            Ok(Picked::Text(text)) => Ok(text.to_owned()),
            Err(failure) => Err(failure.class),
        }
    }

    #[test]
    fn each_part_of_a_result_can_hold_the_answer() {
        let text = json!({"content": [{"type": "text", "text": "[1]"}]});
        let both =
            json!({"content": [{"type": "text", "text": "see"}], "structuredContent": {"a": 1}});
        assert_eq!(picked(text.clone(), Part::Auto).unwrap(), "[1]");
        assert_eq!(picked(both.clone(), Part::Auto).unwrap(), r#"{"a":1}"#);
        assert_eq!(picked(both.clone(), Part::Text).unwrap(), "see");
        assert!(picked(both, Part::Result).unwrap().contains("structuredContent"));
        assert_eq!(picked(text, Part::Structured), Err(FailureClass::InvalidAnswer));
        assert_eq!(picked(json!({"content": []}), Part::Auto), Err(FailureClass::InvalidAnswer));
        let two =
            json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        assert_eq!(picked(two, Part::Text), Err(FailureClass::InvalidAnswer));
    }

    #[test]
    fn a_refusal_is_printable() {
        let raw =
            json!({"content": [{"type": "text", "text": "index \u{1b}gone"}], "isError": true});
        let failure = refused(&reply(raw));
        assert_eq!(failure.class, FailureClass::Refused);
        assert_eq!(failure.message, "index \\u{1b}gone");
    }

    #[test]
    fn arguments_keep_their_types_and_mistakes_are_found_first() {
        let config = |more: Value| -> McpConfig<()> {
            let mut config = json!({"server": {"url": "http://127.0.0.1:1/mcp"}, "tool": "find", "answer": null});
            config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(config).unwrap()
        };
        let values = json!({"query": "mail", "limit": 7}).as_object().unwrap().clone();
        let filled = config(json!({"arguments": {"q": "find {query}", "limit": "{limit}"}}));
        assert_eq!(
            Value::Object(filled.fill(&values).unwrap()),
            json!({"q": "find mail", "limit": 7})
        );
        assert!(config(json!({"arguments": {"q": "{nothing}"}})).fill(&values).is_err());
        for (more, text) in [
            (json!({"tool": " "}), "tool is empty"),
            (json!({"server": {}}), "server"),
            (json!({"server": {"url": "http://x", "command": ["y"]}}), "server"),
        ] {
            let error = config(more).check().unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}

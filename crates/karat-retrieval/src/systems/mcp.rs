//! A search that is a tool of a live MCP server, as tool-search proxies have it.
//!
//! `mcp = { server = { url = "http://127.0.0.1:8080/mcp" }, tool = "retrieve_tools",
//! arguments = { query = "{query}", limit = "{limit}" }, answer = { … } }`. A place that is a whole
//! argument keeps its type, so a limit is a number. Where the ranked ids are in the result says
//! `answer` ([`super::answer`]), and which part of the result that is about says `from`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use karat_io::template::fill_json;
use karat_io::text::{clip, printable};
use karat_io::{Failure, FailureClass};
use karat_mcp::{Options, Reply, ServerSpec, Session};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{AnswerConfig, AnswerReader};
use crate::system::{Question, Ranking};

/// How much of what a tool says of its failure is kept.
const LONGEST_REFUSAL: usize = 500;

/// `mcp = { … }` of a project entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// How the server is reached: `{ command = […] }` or `{ url = "…" }`, with `env`, `headers`, `cwd`.
    pub server: ServerSpec,
    /// The tool that searches.
    pub tool: String,
    /// Its arguments; `{query}`, `{limit}`, `{id}` and `{run}` are filled in.
    #[serde(default = "default_arguments")]
    pub arguments: Map<String, Value>,
    /// Which part of the result holds the answer.
    #[serde(default)]
    pub from: Part,
    /// Where in that part the ranked ids are.
    #[serde(default)]
    pub answer: AnswerConfig,
    /// How long the server may take until it is ready for calls, in milliseconds.
    #[serde(default = "default_start_ms")]
    pub start_timeout_ms: u64,
}

/// A part of the result of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// `structuredContent` where the result has it, else the text.
    #[default]
    Auto,
    /// `structuredContent`.
    Structured,
    /// The one text block, which holds JSON.
    Text,
    /// The whole result, with `content`, `structuredContent` and the rest.
    Result,
}

fn default_arguments() -> Map<String, Value> {
    Map::from_iter([("query".to_owned(), json!("{query}"))])
}

fn default_start_ms() -> u64 {
    60_000
}

impl McpConfig {
    /// Finds what is wrong before anything is started; the environment is not looked at.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        self.server.transport().map_err(|error| format!("server: {error}"))?;
        if self.tool.trim().is_empty() {
            return Err("tool is empty".to_owned());
        }
        let question = Question { id: "q".to_owned(), query: "QUERY".to_owned(), limit: 1 };
        let arguments = self.filled(0, &question)?;
        if !Value::Object(arguments).to_string().contains("QUERY") {
            return Err("no argument has {query} in it".to_owned());
        }
        if self.start_timeout_ms == 0 {
            return Err("start_timeout_ms must be at least 1".to_owned());
        }
        self.answer.check()
    }

    /// What the report says of it, without secrets.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings: BTreeMap<String, String> = self.answer.settings().collect();
        settings.insert("tool".to_owned(), self.tool.clone());
        settings.insert("arguments".to_owned(), json!(self.arguments).to_string());
        if self.from != Part::Auto {
            let from = json!(self.from);
            settings.insert("from".to_owned(), from.as_str().unwrap_or_default().to_owned());
        }
        settings
    }

    fn filled(&self, run: u32, question: &Question) -> Result<Map<String, Value>, String> {
        let values = json!({
            "query": question.query, "limit": question.limit, "id": question.id, "run": run,
        });
        let values = values.as_object().cloned().unwrap_or_default();
        match fill_json(&Value::Object(self.arguments.clone()), &values)? {
            Value::Object(arguments) => Ok(arguments),
            _ => Ok(Map::new()),
        }
    }
}

/// A session with the server, ready to be asked.
pub struct McpSearch {
    config: McpConfig,
    session: Session,
    reader: AnswerReader,
}

impl McpSearch {
    /// Starts or reaches the server, and looks whether it has the tool.
    ///
    /// # Errors
    /// Why there is no session, or which tools there are instead.
    pub async fn start(
        config: &McpConfig,
        reader: AnswerReader,
        folder: &Path,
        timeout: Duration,
    ) -> Result<McpSearch, String> {
        let options = Options {
            start_timeout: Duration::from_millis(config.start_timeout_ms),
            call_timeout: timeout,
            folder: Some(folder.to_owned()),
            ..Options::default()
        };
        let session =
            Session::start(&config.server, &options).await.map_err(|error| error.to_string())?;
        let tools = session.tools().await.map_err(|error| format!("its tools: {error}"))?;
        if !tools.iter().any(|tool| tool.name() == config.tool) {
            let names: Vec<&str> = tools.iter().take(20).map(|tool| tool.name()).collect();
            let named = clip(&printable(&names.join(", ")), LONGEST_REFUSAL).into_owned();
            return Err(format!("the server has no tool {:?}; it has: {named}", config.tool));
        }
        Ok(McpSearch { config: config.clone(), session, reader })
    }

    /// Asks one question.
    pub async fn ask(&self, run: u32, question: &Question) -> Result<Ranking, Failure> {
        let arguments = self.config.filled(run, question).map_err(Failure::lost)?;
        let mut reply = self
            .session
            .call(&self.config.tool, &arguments)
            .await
            .map_err(|error| error.failure())?;
        self.session.redactor().hide_in(&mut reply.raw);
        read(&reply, self.config.from, &self.reader)
    }

    /// What the server did beside answering, in words.
    pub fn notes(&self) -> Vec<String> {
        self.session.protocol_log().warnings()
    }
}

/// The ranking in the result of a call. A tool that says that it failed has not answered.
fn read(reply: &Reply, from: Part, reader: &AnswerReader) -> Result<Ranking, Failure> {
    let texts = reply.texts();
    if reply.is_error {
        let said = printable(&texts.join(" ")).into_owned();
        return Err(Failure::new(FailureClass::Refused, clip(&said, LONGEST_REFUSAL)));
    }
    let ranking = match (from, reply.structured()) {
        (Part::Result, _) => reader.read_value(&reply.raw)?,
        (Part::Auto | Part::Structured, Some(structured)) => reader.read_value(structured)?,
        (Part::Structured, None) => return Err(invalid("the result has no structuredContent")),
        (Part::Auto | Part::Text, _) => match texts.as_slice() {
            [text] => reader.read(text.as_bytes())?,
            [] => return Err(invalid("the result has no text")),
            several => {
                let message = format!("the result has {} texts instead of one", several.len());
                return Err(invalid(&message));
            }
        },
    };
    // What a model sees are the texts, whichever part the ids were taken from.
    let answer_tokens = match texts.is_empty() {
        true => reader.tokens(&reply.raw.to_string()),
        false => reader.tokens(&texts.join("\n")),
    };
    Ok(Ranking { answer_tokens, ..ranking })
}

fn invalid(message: &str) -> Failure {
    Failure::new(FailureClass::InvalidAnswer, message)
}

#[cfg(test)]
mod tests {
    use karat_core::report::DatasetRef;

    use super::*;
    use crate::dataset::Dataset;

    fn config(more: &Value) -> McpConfig {
        let mut config = json!({"server": {"url": "http://127.0.0.1:1/mcp"}, "tool": "find"});
        let more = more.as_object().unwrap().clone();
        config.as_object_mut().unwrap().extend(more);
        serde_json::from_value(config).unwrap()
    }

    fn reader(config: &Value) -> AnswerReader {
        let dataset = Dataset {
            reference: DatasetRef { id: "d".into(), version: "v1".into(), digest: "x".into() },
            tools: Vec::new(),
            queries: Vec::new(),
            groups: Vec::new(),
            dangling: Vec::new(),
        };
        let config: AnswerConfig = serde_json::from_value(config.clone()).unwrap();
        AnswerReader::new(&config, &dataset, true).unwrap()
    }

    fn reply(raw: Value) -> Reply {
        let is_error = raw["isError"] == true;
        Reply { raw, is_error, latency: Duration::ZERO, progress: Vec::new() }
    }

    fn ids(raw: Value, from: Part, answer: &Value) -> Result<Vec<String>, Failure> {
        let ranking = read(&reply(raw), from, &reader(answer))?;
        assert!(ranking.answer_tokens.is_some());
        Ok(ranking.ranked.into_iter().map(|ranked| ranked.tool_id).collect())
    }

    #[test]
    fn arguments_keep_their_types() {
        let config = config(&json!({"arguments":
            {"q": "find {query}", "limit": "{limit}", "deep": {"ids": ["{id}"]}, "fixed": true}}));
        config.check().unwrap();
        let question = Question { id: "q-1".into(), query: "mail".into(), limit: 7 };
        let filled = Value::Object(config.filled(2, &question).unwrap());
        assert_eq!(
            filled,
            json!({"q": "find mail", "limit": 7, "deep": {"ids": ["q-1"]}, "fixed": true})
        );
    }

    #[test]
    fn what_cannot_work_is_found_before_anything_starts() {
        for (more, word) in [
            (json!({"arguments": {"q": "x"}}), "{query}"),
            (json!({"arguments": {"q": "{query} {nothing}"}}), "nothing"),
            (json!({"tool": " "}), "tool is empty"),
            (json!({"server": {}}), "server"),
            (json!({"server": {"url": "http://x", "command": ["y"]}}), "server"),
            (json!({"answer": {"ids": "a..b"}}), "a..b"),
            (json!({"start_timeout_ms": 0}), "start_timeout_ms"),
        ] {
            let message = config(&more).check().unwrap_err();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn ids_are_found_in_text_structured_content_or_the_whole_result() {
        let list = json!({"tools": [{"server": "a", "name": "b"}]});
        let answer = json!({"ids": "tools[*]", "id": "{server}:{name}"});
        let text = json!({"content": [{"type": "text", "text": list.to_string()}]});
        let both =
            json!({"content": [{"type": "text", "text": "see there"}], "structuredContent": list});
        assert_eq!(ids(text.clone(), Part::Auto, &answer).unwrap(), ["a:b"]);
        assert_eq!(ids(text.clone(), Part::Text, &answer).unwrap(), ["a:b"]);
        assert_eq!(ids(both.clone(), Part::Auto, &answer).unwrap(), ["a:b"]);
        assert_eq!(ids(both.clone(), Part::Structured, &answer).unwrap(), ["a:b"]);
        let inside =
            json!({"json_at": "content[0].text", "ids": "tools[*]", "id": "{server}:{name}"});
        assert_eq!(ids(text.clone(), Part::Result, &inside).unwrap(), ["a:b"]);
        assert_eq!(
            ids(text, Part::Structured, &answer).unwrap_err().class.name(),
            "invalid_answer"
        );
        assert_eq!(ids(both, Part::Text, &answer).unwrap_err().class.name(), "invalid_answer");
    }

    #[test]
    fn a_tool_that_fails_refuses_and_is_not_an_empty_ranking() {
        let raw =
            json!({"content": [{"type": "text", "text": "index \u{1b}gone"}], "isError": true});
        let failure = ids(raw, Part::Auto, &json!({})).unwrap_err();
        assert_eq!(failure.class, FailureClass::Refused);
        assert_eq!(failure.message, "index \\u{1b}gone");
        let none = ids(json!({"content": []}), Part::Auto, &json!({})).unwrap_err();
        assert_eq!(none.class, FailureClass::InvalidAnswer);
    }
}

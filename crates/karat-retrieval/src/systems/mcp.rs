//! A search that is a tool of a live MCP server, as tool-search proxies have it.

use std::path::Path;

use karat_core::adapter::mcp::{self, McpTool, Picked};
use karat_core::error::EvalError;
use karat_core::evaluation::Common;
use karat_io::Failure;
use karat_mcp::Reply;
use serde_json::{Map, Value, json};

use super::answer::{AnswerConfig, AnswerReader};
use super::pages::{OFFSET, Pages};
use crate::ranking::{Question, Ranking};

/// `mcp = { … }` of a project entry.
pub(crate) type McpConfig = mcp::McpConfig<AnswerConfig>;

/// The configuration with the query as its only argument where none are given.
pub(crate) fn complete(config: &McpConfig) -> McpConfig {
    let default = || Map::from_iter([("query".to_owned(), json!("{query}"))]);
    McpConfig {
        arguments: Some(config.arguments.clone().unwrap_or_else(default)),
        ..config.clone()
    }
}

/// Finds mistakes before anything is started; the environment is not looked at.
pub(crate) fn check(config: &McpConfig) -> Result<(), String> {
    config.check()?;
    let arguments = complete(config).fill(&Question::sample().values(0))?;
    if !Value::Object(arguments).to_string().contains(Question::SAMPLE) {
        return Err("no argument has {query} in it".to_owned());
    }
    config.answer.check()
}

/// A session with the server, ready to be asked.
pub struct McpSearch {
    tool: McpTool<AnswerConfig>,
    reader: AnswerReader,
}

impl McpSearch {
    /// Starts or reaches the server, and checks that it has the tool.
    ///
    /// # Errors
    /// If there is no session, or no such tool.
    pub(crate) async fn start(
        config: &McpConfig,
        mut reader: AnswerReader,
        folder: &Path,
        limits: &Common,
    ) -> Result<McpSearch, EvalError> {
        let config = complete(config);
        reader.by_offset = json!(config.arguments).to_string().contains(OFFSET);
        let tool = McpTool::start(&config, folder, limits).await?;
        Ok(McpSearch { tool, reader })
    }

    /// Asks one question.
    pub(crate) async fn ask(&self, run: u32, question: &Question) -> Result<Ranking, Failure> {
        // An argument that is null is not sent: the first page has no cursor.
        let mut pages = Pages::new(&self.reader, question, run, Value::Null);
        while let Some(values) = pages.next() {
            let reply = self.tool.ask(&values).await?;
            let mut page = match self.tool.part().of(&reply)? {
                Picked::Value(value) => self.reader.read_value(value)?,
                Picked::Text(text) => self.reader.read(text.as_bytes())?,
            };
            page.ranking.answer_tokens = self.tokens(&reply);
            pages.add(page);
        }
        Ok(pages.into_ranking())
    }

    /// The tokens of what a model sees: the texts, whichever part the ids were taken from.
    fn tokens(&self, reply: &Reply) -> Option<u64> {
        let texts = reply.texts();
        match texts.is_empty() {
            true => self.reader.tokens(&reply.raw.to_string()),
            false => self.reader.tokens(&texts.join("\n")),
        }
    }

    /// Remarks on the server's conduct apart from its answers.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.tool.notes()
    }
}

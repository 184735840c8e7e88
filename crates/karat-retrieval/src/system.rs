//! The systems that can be measured, and how a project names one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::adapter::{describe_command, program};
use karat_core::evaluation::Common;
use karat_core::report::SystemRef;
use karat_core::run::System;
use karat_io::exchange::quoted;
use karat_io::{Failure, FailureClass};
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::engines::{self, Builtin, Engine};
pub use crate::ranking::{Question, Ranked, Ranking};
use crate::systems::answer::AnswerReader;
use crate::systems::command::CommandSearch;
use crate::systems::http::{self, HttpConfig, HttpSearch};
use crate::systems::mcp::{self, McpConfig, McpSearch};
use crate::tokens::Definitions;
use karat_core::error::EvalError;

/// The longest id that an answer may hold.
const MAX_ID_BYTES: usize = 4 << 10;

/// `system = { … }` of a project entry: exactly one of `builtin`, `command`, `http` and
/// `mcp`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SystemConfig {
    /// The name of a built-in engine.
    pub builtin: Option<String>,
    /// The folder of the embeddings that a built-in engine may need.
    pub weights: Option<PathBuf>,
    /// A program that answers one JSON line for each JSON line it reads.
    pub command: Option<Vec<String>>,
    /// Variables set for the command.
    pub env: BTreeMap<String, String>,
    /// An endpoint that answers over HTTP.
    pub http: Option<HttpConfig>,
    /// A tool of a live MCP server.
    pub mcp: Option<McpConfig>,
    /// The version to show in the report.
    pub version: Option<String>,
}

/// The surroundings that starting a system needs.
pub struct Setting<'a> {
    /// The tools that are searched.
    pub dataset: &'a Dataset,
    /// The folder of the project: commands run and relative paths start here.
    pub folder: &'a Path,
    /// The settings of the entry, with its time limits.
    pub common: &'a Common,
    /// Set to count the tokens of answers.
    pub count_tokens: bool,
}

/// The one way in which a system is reached.
enum Reach<'a> {
    Builtin(&'static Builtin),
    Command(&'a [String]),
    Http(&'a HttpConfig),
    Mcp(&'a McpConfig),
}

impl SystemConfig {
    fn reach(&self) -> Result<Reach<'_>, EvalError> {
        let wrong = |message: &str| Err(EvalError::config(format!("system: {message}")));
        let reach = match (&self.builtin, &self.command, &self.http, &self.mcp) {
            (Some(name), None, None, None) => match engines::find(name) {
                Some(engine) => Reach::Builtin(engine),
                None => return Err(engines::unknown(name)),
            },
            (None, Some(command), None, None) if command.is_empty() => {
                return wrong("command is empty");
            }
            (None, Some(command), None, None) => Reach::Command(command),
            (None, None, Some(http), None) => {
                http::check(http)
                    .map_err(|error| EvalError::Config(format!("system: http: {error}")))?;
                Reach::Http(http)
            }
            (None, None, None, Some(mcp)) => {
                mcp::check(mcp)
                    .map_err(|error| EvalError::Config(format!("system: mcp: {error}")))?;
                Reach::Mcp(mcp)
            }
            _ => return wrong("give exactly one of builtin, command, http and mcp"),
        };
        if !self.env.is_empty() && !matches!(reach, Reach::Command(_)) {
            return wrong("env is for a command; a built-in engine or an endpoint has none");
        }
        match (&reach, &self.weights) {
            (Reach::Builtin(engine), Some(_)) if !engine.needs_weights => {
                wrong(&format!("{} uses no weights", engine.name))
            }
            (Reach::Builtin(engine), None) if engine.needs_weights => wrong(&format!(
                "{} needs the embeddings of words: give weights = \"FOLDER\" \
                 (scripts/distil-static makes one)",
                engine.name
            )),
            (Reach::Command(_) | Reach::Http(_) | Reach::Mcp(_), Some(_)) => {
                wrong("weights are for a built-in engine")
            }
            _ => Ok(reach),
        }
    }

    /// The reference in the report. Values of `env` and headers may be secrets and are left out.
    pub fn reference(&self) -> Result<SystemRef, EvalError> {
        let (kind, name, settings) = match self.reach()? {
            Reach::Builtin(engine) => ("builtin", engine.name.to_owned(), BTreeMap::new()),
            Reach::Command(command) => ("command", describe_command(command), BTreeMap::new()),
            Reach::Http(http) => {
                let mut settings = http.settings();
                settings.extend(http.answer.settings());
                ("http", http.describe(), settings)
            }
            Reach::Mcp(mcp) => {
                let mut settings = mcp::complete(mcp).settings();
                settings.extend(mcp.answer.settings());
                ("mcp", mcp.server.describe(), settings)
            }
        };
        let version = match (&self.version, kind) {
            (None, "builtin") => Some(env!("CARGO_PKG_VERSION").to_owned()),
            (version, _) => version.clone(),
        };
        Ok(SystemRef { kind: kind.to_owned(), name, version, settings })
    }

    /// Builds or starts it.
    pub(crate) async fn start(&self, setting: &Setting<'_>) -> Result<Search, EvalError> {
        if setting.count_tokens {
            karat_core::tokens::load();
        }
        match self.reach()? {
            Reach::Builtin(builtin) => {
                let weights = self.weights.as_ref().map(|path| setting.folder.join(path));
                let engine = (builtin.build)(&setting.dataset.tools, weights.as_deref())?;
                let costs =
                    setting.count_tokens.then(|| Definitions::count(&setting.dataset.tools));
                Ok(Search::Builtin { engine, costs })
            }
            Reach::Command(command) => {
                let (program, redactor) = program(command, &self.env, setting.folder)
                    .map_err(|error| EvalError::config(format!("system: {error}")))?;
                CommandSearch::start(&program, redactor, setting.count_tokens)
                    .map(Search::Command)
                    .map_err(not_started)
            }
            Reach::Http(http) => {
                let wrong = |error| EvalError::Config(format!("system: http: {error}"));
                let reader = AnswerReader::new(
                    &http.answer,
                    setting.dataset,
                    setting.folder,
                    setting.count_tokens,
                )
                .map_err(wrong)?;
                let search =
                    HttpSearch::new(http, reader, setting.folder, setting.common.timeout())
                        .map_err(wrong)?;
                Ok(Search::Http(Box::new(search)))
            }
            Reach::Mcp(mcp) => {
                let reader = AnswerReader::new(
                    &mcp.answer,
                    setting.dataset,
                    setting.folder,
                    setting.count_tokens,
                )
                .map_err(|error| EvalError::Config(format!("system: mcp: {error}")))?;
                McpSearch::start(mcp, reader, setting.folder, setting.common)
                    .await
                    .map(|search| Search::Mcp(Box::new(search)))
            }
        }
    }

    /// Returns whether it answers the same every time, so that a second pass can prove it cheaply.
    pub(crate) fn is_builtin(&self) -> bool {
        self.builtin.is_some()
    }

    /// Returns whether others keep it running: it may not have indexed everything yet.
    pub(crate) fn is_live(&self) -> bool {
        self.http.is_some() || self.mcp.is_some()
    }
}

/// The error of a search that did not start.
pub(crate) fn not_started(reason: impl std::fmt::Display) -> EvalError {
    EvalError::NotStarted(format!("the system did not start: {reason}"))
}

/// A system that is ready to be asked.
pub enum Search {
    /// In this process.
    Builtin {
        /// The engine.
        engine: Box<dyn Engine>,
        /// The tokens of each definition, if they are counted.
        costs: Option<Definitions>,
    },
    /// A program that is kept running.
    Command(CommandSearch),
    /// An endpoint.
    Http(Box<HttpSearch>),
    /// A tool of an MCP server.
    Mcp(Box<McpSearch>),
}

impl Search {
    /// The settings for the report that are known only once it is built, such as a digest of weights.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        match self {
            Search::Builtin { engine, .. } => engine.settings(),
            Search::Command(_) | Search::Http(_) | Search::Mcp(_) => BTreeMap::new(),
        }
    }

    /// Remarks for the reader of the report, once it has been asked.
    pub(crate) fn notes(&self) -> Vec<String> {
        match self {
            Search::Mcp(mcp) => mcp.notes(),
            Search::Builtin { .. } | Search::Command(_) | Search::Http(_) => Vec::new(),
        }
    }
}

/// A system that was probed, and the tools that it did not list.
pub struct Probed {
    /// The system.
    pub search: Arc<Search>,
    /// The tools that are to fail the gate.
    pub missing: Vec<String>,
}

impl System for Probed {
    type Question = Question;
    type Answer = Ranking;

    async fn ask(&self, run: u32, question: &Question) -> Result<Ranking, Failure> {
        self.search.ask(run, question).await
    }
}

impl System for Search {
    type Question = Question;
    type Answer = Ranking;

    async fn ask(&self, run: u32, question: &Question) -> Result<Ranking, Failure> {
        let ranking = match self {
            Search::Builtin { engine, costs } => {
                let ranked = engine.search(&question.query, question.limit);
                let answer_tokens = costs.as_ref().map(|costs| costs.of(&ranked));
                Ok(Ranking { ranked, answer_tokens })
            }
            Search::Command(command) => command.ask(run, question).await,
            Search::Http(http) => http.ask(run, question).await,
            Search::Mcp(mcp) => mcp.ask(run, question).await,
        }?;
        // Ids are kept in journals and reports for every query.
        match ranking.ranked.iter().find(|ranked| ranked.tool_id.len() > MAX_ID_BYTES) {
            None => Ok(ranking),
            Some(Ranked { tool_id, .. }) => {
                let message = format!("an id has {} bytes: {}", tool_id.len(), quoted(tool_id));
                Err(Failure::new(FailureClass::InvalidAnswer, message))
            }
        }
    }
}

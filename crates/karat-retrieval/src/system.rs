//! The systems that can be measured, and how a project names one.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::process::Program;
use karat_core::report::SystemRef;
use karat_core::run::{Failure, System};
use serde::{Deserialize, Serialize};

use crate::RetrievalError;
use crate::dataset::Dataset;
use crate::engines::{self, Engine};
use crate::systems::command::CommandSearch;

/// One result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Which tool.
    pub tool_id: String,
    /// Its score, where the system gives one. The order of the list is what counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// What a system answered to one query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The tools, best first.
    pub ranked: Vec<Ranked>,
}

/// What a system is asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// The query's id.
    pub id: String,
    /// Its text.
    pub query: String,
    /// How many results are wanted.
    pub limit: usize,
}

/// `system = { … }` of a project entry: exactly one of `builtin` and `command`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemConfig {
    /// The name of a built-in engine.
    #[serde(default)]
    pub builtin: Option<String>,
    /// A program that answers one JSON line for each JSON line it reads.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Variables set for the command.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The version to show in the report.
    #[serde(default)]
    pub version: Option<String>,
}

impl SystemConfig {
    /// What the report says of it. Values of `env` may be secrets and are left out.
    pub fn reference(&self) -> Result<SystemRef, RetrievalError> {
        let (kind, name) = match (&self.builtin, &self.command) {
            (Some(engine), None) => {
                if engines::find(engine).is_none() {
                    return Err(RetrievalError::UnknownEngine { name: engine.clone() });
                }
                if !self.env.is_empty() {
                    return Err(RetrievalError::System(
                        "env is for a command; a built-in engine has no environment".to_owned(),
                    ));
                }
                ("builtin", engine.clone())
            }
            (None, Some(command)) => match command.first() {
                Some(_) => ("command", command.join(" ")),
                None => return Err(RetrievalError::System("command is empty".to_owned())),
            },
            _ => {
                return Err(RetrievalError::System(
                    "give exactly one of builtin and command".to_owned(),
                ));
            }
        };
        let version = match (&self.version, kind) {
            (None, "builtin") => Some(env!("CARGO_PKG_VERSION").to_owned()),
            (version, _) => version.clone(),
        };
        Ok(SystemRef { kind: kind.to_owned(), name, version, settings: BTreeMap::new() })
    }

    /// Builds or starts it. `folder` is where a command runs.
    pub fn start(&self, dataset: &Dataset, folder: &Path) -> Result<Search, RetrievalError> {
        if let Some(name) = &self.builtin {
            let builtin = engines::find(name)
                .ok_or_else(|| RetrievalError::UnknownEngine { name: name.clone() })?;
            let engine = (builtin.build)(&dataset.tools).map_err(RetrievalError::NotStarted)?;
            return Ok(Search::Builtin(engine));
        }
        let program = Program {
            command: self.command.clone().unwrap_or_default(),
            env: self.env.clone(),
            folder: Some(folder.to_owned()),
        };
        CommandSearch::start(&program).map(Search::Command).map_err(RetrievalError::NotStarted)
    }

    /// Whether it answers the same every time, so that a second pass can prove it cheaply.
    pub fn is_builtin(&self) -> bool {
        self.builtin.is_some()
    }
}

/// A system that is ready to be asked.
pub enum Search {
    /// In this process.
    Builtin(Box<dyn Engine>),
    /// A program that is kept running.
    Command(CommandSearch),
}

impl System for Search {
    type Question = Question;
    type Answer = Ranking;

    async fn ask(&self, run: u32, question: &Question) -> Result<Ranking, Failure> {
        match self {
            Search::Builtin(engine) => {
                Ok(Ranking { ranked: engine.search(&question.query, question.limit) })
            }
            Search::Command(command) => command.ask(run, question).await,
        }
    }
}

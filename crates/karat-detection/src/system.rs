//! The systems that can be measured, what they are shown, and how a project names one.
//!
//! A system is shown an [`ScanInput`]: the definition without its label. It answers with what its
//! detectors reported ([`Answer`]): raw facts, kept in the journal. What counts as flagged is decided
//! afterwards, by the [`Decision`] that belongs to the system's definition.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_core::adapter::{describe_command, program};
use karat_core::evaluation::Common;
use karat_core::report::SystemRef;
use karat_core::run::System;
use karat_detectors as detectors;
pub use karat_detectors::ScanInput;
use karat_io::Failure;
use serde::{Deserialize, Serialize};

pub use crate::answer::{Answer, DetectorReport, Verdict};
use crate::dataset::{Dataset, Sample};
use crate::decision::Decision;
use crate::systems;
use crate::systems::batch::{Batch, BatchConfig, BatchContext};
use crate::systems::builtin::Builtin;
use crate::systems::command::CommandScanner;
use crate::systems::http::{self, HttpConfig, HttpScanner};
use crate::systems::mcp::{self, McpConfig, McpScanner};
use crate::systems::verdicts::Verdicts;
use karat_core::error::EvalError;

impl From<&Sample> for ScanInput {
    fn from(sample: &Sample) -> ScanInput {
        ScanInput {
            id: sample.id.clone(),
            tool: sample.tool.clone(),
            server: sample.server.clone(),
            peers: sample.peers.clone(),
            before: sample.before.clone(),
            result: sample.result.clone(),
            instructions: sample.instructions.clone(),
        }
    }
}

/// `system = { … }` of a project entry: exactly one of `builtin`, `yara`, `command`, `batch`, `http`,
/// `mcp` and `verdicts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SystemConfig {
    /// `builtin` for all built-in detectors together, or the name of one.
    pub builtin: Option<String>,
    /// A YARA rule file, or a folder of them.
    pub yara: Option<PathBuf>,
    /// A program that answers one JSON line for each JSON line it reads.
    pub command: Option<Vec<String>>,
    /// A program that reads a file of tools and writes its findings.
    pub batch: Option<BatchConfig>,
    /// An HTTP endpoint that is asked about each entry.
    pub http: Option<HttpConfig>,
    /// A tool of an MCP server that is called for each entry.
    pub mcp: Option<McpConfig>,
    /// A file of verdicts that were made elsewhere.
    pub verdicts: Option<PathBuf>,
    /// Variables set for a command or batch command.
    pub env: BTreeMap<String, String>,
    /// The version to show in the report.
    pub version: Option<String>,
    /// The rule for what counts as flagged.
    pub decision: Decision,
}

impl SystemConfig {
    /// The reference in the report. Values of `env` may be secrets and are left out.
    ///
    /// # Errors
    /// If the configuration contradicts itself.
    pub fn reference(&self) -> Result<SystemRef, EvalError> {
        let wrong = |message: &str| Err(EvalError::config(format!("system: {message}")));
        let given = [
            self.builtin.is_some(),
            self.yara.is_some(),
            self.command.is_some(),
            self.batch.is_some(),
            self.http.is_some(),
            self.mcp.is_some(),
            self.verdicts.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            return wrong(
                "give exactly one of builtin, yara, command, batch, http, mcp and verdicts",
            );
        }
        if !self.env.is_empty() && self.command.is_none() && self.batch.is_none() {
            return wrong("env is for a command; this system has no environment");
        }
        let mut version = self.version.clone();
        let mut settings = BTreeMap::new();
        let (kind, name) = if let Some(name) = &self.builtin {
            if name != detectors::COMBINED && detectors::find(name).is_none() {
                let known = detectors::DETECTORS.iter().map(|detector| detector.name);
                let known: Vec<&str> = std::iter::once(detectors::COMBINED).chain(known).collect();
                return wrong(&format!(
                    "no built-in detector {name:?}; expected one of {}",
                    known.join(", ")
                ));
            }
            version.get_or_insert_with(|| env!("CARGO_PKG_VERSION").to_owned());
            settings.insert("tiers".to_owned(), "block, warn".to_owned());
            settings.insert("rule".to_owned(), detectors::RULE.to_owned());
            ("builtin", name.clone())
        } else if let Some(rules) = &self.yara {
            if !cfg!(feature = "yara") {
                return wrong(
                    "this build of karat has no YARA; releases have it, and so has a build with \
                     `--features full`",
                );
            }
            settings.insert("rules".to_owned(), shown(rules));
            ("builtin", "yara".to_owned())
        } else if let Some(command) = &self.command {
            if command.is_empty() {
                return wrong("command is empty");
            }
            ("command", describe_command(command))
        } else if let Some(batch) = &self.batch {
            batch.check()?;
            settings.extend(batch.settings());
            ("command", describe_command(&batch.command))
        } else if let Some(http) = &self.http {
            http::check(http)?;
            settings.extend(http.answer.settings());
            ("http", http.describe())
        } else if let Some(mcp) = &self.mcp {
            mcp::check(mcp)?;
            settings.extend(mcp.answer.settings());
            settings.insert("tool".to_owned(), mcp.tool.clone());
            ("mcp", mcp.server.describe())
        } else {
            ("file", self.verdicts.as_deref().map(shown).unwrap_or_default())
        };
        self.decision.check()?;
        settings.extend(self.decision.settings(self.is_builtin()));
        Ok(SystemRef { kind: kind.to_owned(), name, version, settings })
    }

    /// The decision with what the kind of system implies.
    pub(crate) fn decision(&self) -> Decision {
        let mut decision = self.decision.clone();
        if let (Some(name), true) = (&self.builtin, decision.detectors.is_empty()) {
            decision.detectors = vec![name.clone()];
        }
        decision
    }

    /// Returns whether it answers the same every time, so that a second pass can prove it cheaply.
    pub(crate) fn is_builtin(&self) -> bool {
        self.builtin.is_some() || self.yara.is_some()
    }

    /// Returns whether it is asked anew in every run, so that its answers may differ.
    pub(crate) fn may_vary(&self) -> bool {
        self.command.is_some() || self.http.is_some() || self.mcp.is_some()
    }

    /// Builds or starts it. `folder` is where paths start and commands run, `common` has the time limits; a
    /// batch command is run to its end, in its `surroundings`.
    ///
    /// # Errors
    /// If a file cannot be read or a program does not do its work.
    pub(crate) async fn start(
        &self,
        dataset: &Dataset,
        folder: &Path,
        common: &Common,
        surroundings: &BatchContext<'_>,
    ) -> Result<Scanner, EvalError> {
        if let Some(name) = &self.builtin {
            return Ok(Scanner::Builtin(Builtin::new(name)));
        }
        if let Some(rules) = &self.yara {
            return start_yara(&folder.join(rules), common.timeout());
        }
        if let Some(path) = &self.verdicts {
            return Ok(Scanner::Verdicts(Verdicts::load(&folder.join(path), dataset)?));
        }
        if let Some(http) = &self.http {
            let made = HttpScanner::new(http, folder, common.timeout())?;
            return Ok(Scanner::Http(Box::new(made)));
        }
        if let Some(mcp) = &self.mcp {
            let started = McpScanner::start(mcp, folder, common).await?;
            return Ok(Scanner::Mcp(Box::new(started)));
        }
        let program = |command: &[String]| {
            program(command, &self.env, folder)
                .map_err(|error| EvalError::config(format!("system: {error}")))
        };
        if let Some(batch) = &self.batch {
            let (started, decide) = (program(&batch.command)?, &self.decision.detectors);
            let done =
                Batch::run(batch, &started, dataset, decide, common.runs, surroundings).await?;
            return Ok(Scanner::Batch(done));
        }
        let (program, redactor) = program(self.command.as_deref().unwrap_or_default())?;
        CommandScanner::start(&program, redactor)
            .map(Scanner::Command)
            .map_err(systems::not_started)
    }
}

#[cfg(feature = "yara")]
fn start_yara(rules: &Path, timeout: Duration) -> Result<Scanner, EvalError> {
    Ok(Scanner::Yara(Box::new(crate::systems::yara::Yara::load(rules, timeout)?)))
}

#[cfg(not(feature = "yara"))]
fn start_yara(_: &Path, _: Duration) -> Result<Scanner, EvalError> {
    Err(EvalError::Config("system: this build has no YARA; build with the feature yara".to_owned()))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A system that is ready to be asked.
pub enum Scanner {
    /// The built-in detectors.
    Builtin(Builtin),
    /// YARA rules.
    #[cfg(feature = "yara")]
    Yara(Box<crate::systems::yara::Yara>),
    /// A program that is kept running.
    Command(CommandScanner),
    /// A program that has read all entries at once.
    Batch(Batch),
    /// An HTTP endpoint.
    Http(Box<HttpScanner>),
    /// A tool of an MCP server.
    Mcp(Box<McpScanner>),
    /// Verdicts made elsewhere.
    Verdicts(Verdicts),
}

impl Scanner {
    /// Asks again, where that costs nothing: for the proof that the answers do not vary.
    pub(crate) fn repeat(&self, input: &ScanInput) -> Option<Answer> {
        match self {
            Scanner::Builtin(builtin) => Some(builtin.inspect(input)),
            #[cfg(feature = "yara")]
            Scanner::Yara(yara) => yara.inspect(input).ok(),
            _ => None,
        }
    }

    /// The time the answers really took, where they were there before the questions; nothing is known of
    /// verdicts from a file.
    pub(crate) fn times(&self) -> Option<&[Duration]> {
        match self {
            Scanner::Batch(batch) => Some(batch.times()),
            Scanner::Verdicts(_) => Some(&[]),
            _ => None,
        }
    }

    /// Remarks for the reader of the report.
    pub(crate) fn notes(&self) -> Vec<String> {
        match self {
            Scanner::Batch(batch) => batch.notes(),
            Scanner::Mcp(mcp) => mcp.notes(),
            Scanner::Verdicts(verdicts) => verdicts.notes(),
            _ => Vec::new(),
        }
    }
}

impl System for Scanner {
    type Question = ScanInput;
    type Answer = Answer;

    async fn ask(&self, run: u32, input: &ScanInput) -> Result<Answer, Failure> {
        match self {
            Scanner::Builtin(builtin) => Ok(builtin.inspect(input)),
            #[cfg(feature = "yara")]
            Scanner::Yara(yara) => yara.inspect(input),
            Scanner::Command(command) => command.ask(run, input).await,
            Scanner::Batch(batch) => batch.answer(run, &input.id),
            Scanner::Http(http) => http.ask(run, input).await,
            Scanner::Mcp(mcp) => mcp.ask(run, input).await,
            Scanner::Verdicts(verdicts) => verdicts.answer(&input.id),
        }
    }
}

/// The questions of a dataset.
pub(crate) fn questions(dataset: &Dataset) -> Vec<(String, Arc<ScanInput>)> {
    dataset
        .samples
        .iter()
        .map(|sample| (sample.id.clone(), Arc::new(ScanInput::from(sample))))
        .collect()
}

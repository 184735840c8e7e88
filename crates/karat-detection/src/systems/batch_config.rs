//! The settings of a batch scanner: the file that it reads, and the paths into what it writes.

use std::collections::BTreeMap;

use karat_core::error::EvalError;
use karat_io::json_path::JsonPath;
use serde::{Deserialize, Serialize};

use super::answer::Flagged;
use crate::answer::Verdict;

/// `batch = { … }` of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchConfig {
    /// Program and arguments; `{tools}` is for the file or folder of tools, `{output}` for the file
    /// that the program writes, if it does not print.
    pub command: Vec<String>,
    /// The form of the tools file.
    #[serde(default)]
    pub tools: ToolsShape,
    /// In a file of servers: the path of the list of tools within a server, such as `tools`.
    #[serde(default = "default_tools_at")]
    pub tools_at: String,
    /// The names of tools in the file.
    #[serde(default)]
    pub names: Names,
    /// In a file of servers: whether entries whose tools have equal names share a file.
    #[serde(default)]
    pub repeats: Repeats,
    /// The format of the output.
    #[serde(default)]
    pub format: OutputFormat,
    /// The path of the results, such as `$.results[*]`.
    pub results: Option<String>,
    /// Within a result: the name of the tool, or the id.
    pub entry: Option<String>,
    /// The text before the name if `entry` finds a longer text: `tool:` for `tool:add.description`.
    /// The longest name of the file that follows it is meant.
    pub entry_prefix: Option<String>,
    /// The treatment of a result that names no tool of the file.
    #[serde(default)]
    pub unplaced: Unplaced,
    /// Within a result: whether it is a flag; a leading `!` negates it (`!is_safe`).
    pub flagged: Option<String>,
    /// Within a result: its severity, or those of its findings.
    pub severity: Option<String>,
    /// Within a result: a score.
    pub score: Option<String>,
    /// Within a result: the detector's name.
    pub detector: Option<String>,
    /// Within a result: what is shown as evidence.
    pub findings: Option<FindingPaths>,
    /// Rules whose findings do not count; a result with no others passes.
    #[serde(default)]
    pub ignore_rules: Vec<String>,
    /// The verdicts that words at `flagged` mean.
    #[serde(default)]
    pub words: BTreeMap<String, Verdict>,
    /// The verdict on an entry that the output does not mention.
    pub absent: Option<Absent>,
    /// The time one run of the program may take, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
}

fn default_timeout_ms() -> u64 {
    600_000
}

fn default_tools_at() -> String {
    "schema.tools".to_owned()
}

/// The place of findings in a result: a path, or a path with those of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum FindingPaths {
    /// The findings; their parts are known by their usual names.
    At(String),
    /// The findings, and within each the rule, the message and the excerpt.
    Parts {
        /// The findings.
        at: String,
        /// The rule that fired.
        #[serde(default)]
        rule: Option<String>,
        /// The explanation.
        #[serde(default)]
        message: Option<String>,
        /// The text that caused it.
        #[serde(default)]
        excerpt: Option<String>,
    },
}

/// The form of the tools file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolsShape {
    /// `{"tools": […]}`.
    #[default]
    Object,
    /// `[…]`.
    List,
    /// `{"mcpServers": {"ID": {"command": "ID", "args": [], "description": …, "schema": {"tools": […]}}}}`:
    /// a client configuration with one server for each entry. The command differs from server to server,
    /// since scanners take equal ones for one server; nothing is ever started. Instructions of a server
    /// are its description.
    Servers,
    /// A folder with one file for each entry, `0001.json` and so on; `entry` leads to a path or a
    /// file name.
    Files,
}

/// The treatment of a result that names no tool of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unplaced {
    /// The measurement ends: it would be wrong by an unknown amount.
    #[default]
    Refuse,
    /// It is about the file as a whole: counted in a note, and for no entry.
    Count,
}

/// The names of tools in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// By their own names, in as many files as keep them apart.
    #[default]
    Kept,
    /// By the ids of the entries, in one file; the scanner does not see the names then.
    Id,
}

/// The place of entries whose tools have equal names, in a file of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeats {
    /// In different files: some scanners take equal names on two servers for an attack.
    #[default]
    Apart,
    /// In one file, so that the program starts once.
    Together,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// JSON, with paths.
    #[default]
    Json,
    /// SARIF 2.1.0.
    Sarif,
}

/// The verdict on an entry that the output does not mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Absent {
    /// Not judged: the scanner lists every tool it looked at.
    Missing,
    /// Passed: the scanner lists findings only.
    Pass,
}

/// The paths, parsed.
pub(super) struct Paths {
    pub(super) results: JsonPath,
    pub(super) entry: JsonPath,
    pub(super) flagged: Option<Flagged>,
    pub(super) severity: Option<JsonPath>,
    pub(super) score: Option<JsonPath>,
    pub(super) detector: Option<JsonPath>,
    pub(super) findings: Option<JsonPath>,
    /// Within a finding: rule, message and excerpt.
    pub(super) parts: [Option<JsonPath>; 3],
}

impl BatchConfig {
    pub(crate) fn check(&self) -> Result<(), EvalError> {
        let wrong = |message: &str| Err(EvalError::Config(format!("system: batch: {message}")));
        if self.command.is_empty() {
            return wrong("command is empty");
        }
        if !self.command.iter().any(|word| word.contains("{tools}")) {
            return wrong("the command does not mention {tools}, the file that it should read");
        }
        if self.repeats == Repeats::Together && self.tools != ToolsShape::Servers {
            return wrong(
                "repeats = \"together\" is for tools = \"servers\": in one list of tools a name \
                 occurs once",
            );
        }
        match self.format {
            OutputFormat::Sarif if self.absent == Some(Absent::Missing) => wrong(
                "absent = \"missing\" is for JSON: SARIF lists what was found, and the rest passed",
            ),
            OutputFormat::Sarif => Ok(()),
            OutputFormat::Json => self.paths().map(|_| ()),
        }
    }

    pub(super) fn absent(&self) -> Absent {
        self.absent.unwrap_or(match self.format {
            OutputFormat::Json => Absent::Missing,
            OutputFormat::Sarif => Absent::Pass,
        })
    }

    /// The path of the results, as written.
    pub(super) fn results_path(&self) -> &str {
        self.results.as_deref().unwrap_or("$")
    }

    pub(super) fn paths(&self) -> Result<Paths, EvalError> {
        let parse = |key: &str, text: &str| {
            JsonPath::parse(text)
                .map_err(|error| EvalError::Config(format!("system: batch: {key}: {error}")))
        };
        let optional = |key: &str, text: &Option<String>| {
            text.as_deref().map(|text| parse(key, text)).transpose()
        };
        let needed = |key: &str, text: &Option<String>| {
            optional(key, text)?.ok_or_else(|| {
                EvalError::Config(format!("system: batch: {key} is needed to read JSON"))
            })
        };
        let flagged = self.flagged.as_deref().map(Flagged::parse).transpose();
        let mut flagged = flagged
            .map_err(|error| EvalError::Config(format!("system: batch: flagged: {error}")))?;
        if let Some(flagged) = &mut flagged {
            flagged.words = self.words.clone();
        }
        let (findings, parts) = match &self.findings {
            None => (None, [None, None, None]),
            Some(FindingPaths::At(at)) => (Some(at.clone()), [None, None, None]),
            Some(FindingPaths::Parts { at, rule, message, excerpt }) => {
                (Some(at.clone()), [rule.clone(), message.clone(), excerpt.clone()])
            }
        };
        let [rule, message, excerpt] = &parts;
        Ok(Paths {
            results: needed("results", &self.results)?,
            entry: needed("entry", &self.entry)?,
            flagged,
            severity: optional("severity", &self.severity)?,
            score: optional("score", &self.score)?,
            detector: optional("detector", &self.detector)?,
            findings: optional("findings", &findings)?,
            parts: [
                optional("findings.rule", rule)?,
                optional("findings.message", message)?,
                optional("findings.excerpt", excerpt)?,
            ],
        })
    }

    /// The reference in the report.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        let mut add = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                settings.insert(key.to_owned(), value.to_owned());
            }
        };
        add("results", self.results.as_deref());
        add("entry", self.entry.as_deref());
        add("entry prefix", self.entry_prefix.as_deref());
        add("flagged path", self.flagged.as_deref());
        add("severity path", self.severity.as_deref());
        add("score path", self.score.as_deref());
        add("names", Some(if self.names == Names::Kept { "kept" } else { "id" }));
        let ignored = self.ignore_rules.join(", ");
        add("ignored rules", Some(ignored.as_str()).filter(|rules| !rules.is_empty()));
        add("absent", Some(if self.absent() == Absent::Pass { "pass" } else { "missing" }));
        settings
    }
}

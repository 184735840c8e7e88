//! A suite: the calls to make, and the answers that are expected.
//!
//! The plain form that many people already have is read as it is:
//! `{"mcp_server": …, "test_cases": [{"tool", "input", "expected_output_contains", "max_latency_ms"}]}`.
//! So is a list of `{"input": TEXT, "expected" | "expected_behavior"}`, whose texts go to every tool that
//! takes one. Beyond it there are resources, prompts and other requests, matchers ([`karat_core::expect`]),
//! kinds of errors, setup and teardown calls,
//! values passed from one call to a later one, and repetition. Mistakes in a suite are found when it is
//! read, before a server is started: a case that cannot fail is refused.

mod file;
pub(crate) mod headers;
pub(crate) mod notices;
pub(crate) mod relations;
pub mod server;
pub(crate) mod snapshot;
pub(crate) mod tasks;
pub(crate) mod texts;
pub(crate) mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::dataset::Digest;
use karat_core::expect::Matcher;
use karat_core::report::DatasetRef;
use karat_io::input::{self, InputError, Limits};
use karat_io::json_path::JsonPath;
use karat_mcp::Definition;
use serde_json::{Map, Value};

use self::headers::Header;
use self::notices::Notice;
use self::relations::Relation;
use self::snapshot::{Snapshots, Store};
use self::tasks::TaskPlan;
use self::texts::TextCase;
pub use crate::observation::{Feature, Role};

/// The success rate that a case must reach if the suite does not set one.
pub(crate) const TARGET: f64 = 0.95;

/// A valid suite.
#[derive(Debug)]
pub struct Suite {
    /// The name; that of the file if the suite has none.
    pub name: String,
    /// The digest of the file and of the snapshots that it expects.
    pub digest: Digest,
    /// The file.
    pub path: PathBuf,
    /// The server as written; a command line can name another.
    pub server: Option<Value>,
    /// The success rate that a case must reach.
    pub target: f64,
    /// True if everything that reads as private is removed from answers before they are judged and kept.
    pub hides_private: bool,
    /// Calls before the first case.
    pub setup: Vec<Arc<Step>>,
    /// Calls after the last case.
    pub teardown: Vec<Step>,
    /// The cases, in the order of the file.
    pub cases: Vec<Arc<Case>>,
    /// Texts that go to every tool that takes one.
    texts: Vec<TextCase>,
    /// The content of the file.
    bytes: Vec<u8>,
}

impl Suite {
    /// Reads a suite, JSON or YAML, with its snapshots.
    ///
    /// # Errors
    /// If a file cannot be read or is not valid.
    pub fn load(path: &Path) -> Result<Suite, InputError> {
        let bytes = input::read_bytes(path, &Limits::default())?;
        file::read(path, bytes, Some(&Store::of(path)))
    }

    /// Reads a suite without snapshots from the bytes of a file; its extension decides between JSON
    /// and YAML.
    ///
    /// # Errors
    /// If it is not valid.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Suite, InputError> {
        file::read(path, bytes.to_vec(), None)
    }

    /// The same suite with the snapshots that are stored now. The suite itself is not read again.
    ///
    /// # Errors
    /// If a snapshot cannot be read or is not valid.
    pub(crate) fn with_stored_snapshots(&self) -> Result<Suite, InputError> {
        file::read(&self.path, self.bytes.clone(), Some(&Store::of(&self.path)))
    }

    /// Snapshot files that belong to no case.
    pub(crate) fn orphaned_snapshots(&self) -> Vec<PathBuf> {
        let expecting = self.cases.iter().filter(|case| case.expects_snapshot());
        Store::of(&self.path).orphans(expecting.map(|case| case.id.as_str()))
    }

    /// The cases for the tools of a server: those of the file, and those that its texts become.
    pub(crate) fn cases_for(&self, tools: &[Definition]) -> Vec<Arc<Case>> {
        let of_texts = self.texts.iter().flat_map(|text| text.cases(tools)).map(Arc::new);
        self.cases.iter().cloned().chain(of_texts).collect()
    }

    /// Returns whether notifications are expected somewhere.
    pub(crate) fn expects_notifications(&self) -> bool {
        let steps = self.setup.iter().map(AsRef::as_ref);
        let steps = steps.chain(self.cases.iter().flat_map(|case| case.steps()));
        steps.chain(&self.teardown).any(|step| !step.notices.is_empty())
    }

    /// Returns whether it has neither cases nor texts.
    pub(crate) fn is_empty(&self) -> bool {
        self.cases.is_empty() && self.texts.is_empty()
    }

    /// The suite as reports and baselines name it.
    pub(crate) fn reference(&self) -> DatasetRef {
        DatasetRef {
            id: self.name.clone(),
            version: "suite".to_owned(),
            digest: self.digest.to_string(),
        }
    }
}

/// One case: a call and its expectations.
#[derive(Debug)]
pub struct Case {
    /// The id, unique in the suite.
    pub id: String,
    /// A description.
    pub about: Option<String>,
    /// Tags by which a command line selects cases.
    pub tags: BTreeSet<String>,
    /// The call.
    pub step: Step,
    /// Calls before it.
    pub setup: Vec<Step>,
    /// Calls after it whose expectations count too: they check its effects.
    pub then: Vec<Step>,
    /// Calls after it that only clean up.
    pub teardown: Vec<Step>,
    /// The time limit for the answer, in milliseconds.
    pub max_latency_ms: Option<u64>,
    /// The number of attempts.
    pub repeat: u32,
    /// The number of attempts under way at once.
    pub concurrency: usize,
    /// The class of attack, for a security case.
    pub class: Option<String>,
    /// True if the expected error counts only if the server has the tool: a tool that does not exist
    /// rejects nothing.
    pub needs_tool: bool,
    /// True if one of the calls is enough: the call itself or one of `then`.
    pub any_of: bool,
    /// The frequency under load, relative to the other cases.
    pub weight: u32,
}

impl Case {
    /// Every call of the case, in the order in which they are made.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.judged_steps().map(|(_, _, step)| step).chain(&self.teardown)
    }

    /// The calls that decide whether the case passes, in order, each with its role and its number
    /// within the role.
    pub(crate) fn judged_steps(&self) -> impl Iterator<Item = (Role, usize, &Step)> {
        let parts: [(Role, &[Step]); 3] = [
            (Role::Setup, &self.setup),
            (Role::Call, std::slice::from_ref(&self.step)),
            (Role::Then, &self.then),
        ];
        parts.into_iter().flat_map(|(role, steps)| {
            steps.iter().enumerate().map(move |(number, step)| (role, number, step))
        })
    }

    /// The call with this role and number.
    pub(crate) fn step(&self, role: Role, number: usize) -> Option<&Step> {
        match role {
            Role::Setup => self.setup.get(number),
            Role::Call => Some(&self.step),
            Role::Then => self.then.get(number),
            Role::Teardown => self.teardown.get(number),
        }
    }

    /// Returns whether an answer to one of its calls is compared with a snapshot.
    pub(crate) fn expects_snapshot(&self) -> bool {
        self.steps().any(Step::expects_snapshot)
    }

    /// Puts in the stored snapshots.
    fn fill(&mut self, file: &Path, stored: &Snapshots) {
        let parts: [(Role, &mut [Step]); 3] = [
            (Role::Setup, &mut self.setup),
            (Role::Call, std::slice::from_mut(&mut self.step)),
            (Role::Then, &mut self.then),
        ];
        for (role, steps) in parts {
            for (number, step) in steps.iter_mut().enumerate() {
                let snapshots = step.matchers.iter_mut().filter_map(Matcher::snapshot_mut);
                for (at, snapshot) in snapshots.enumerate() {
                    let value = stored.get(&snapshot_name(role, number, at)).cloned();
                    snapshot.fill(file.to_owned(), value);
                }
            }
        }
    }
}

/// The name of a snapshot in its file: the call, and the number among its snapshots.
pub(crate) fn snapshot_name(role: Role, number: usize, at: usize) -> String {
    match role {
        Role::Call => format!("call.{}", at + 1),
        role => format!("{} {}.{}", role.name(), number + 1, at + 1),
    }
}

/// One call, what is expected of its answer, and what is saved of it.
#[derive(Debug)]
pub struct Step {
    /// The part of the server.
    pub feature: Feature,
    /// The name of the tool or prompt, the URI of the resource, or the method.
    pub tool: String,
    /// The arguments, with `${name}` where saved values are put in. Those of a resource are its URI.
    pub input: Map<String, Value>,
    /// The expected kind of outcome.
    pub ending: Ending,
    /// The expectations of the answer.
    pub matchers: Vec<Matcher>,
    /// Paths of the values that are saved, by name.
    pub save: BTreeMap<String, JsonPath>,
    /// The text whose request must be denied.
    pub asked: Option<String>,
    /// The notifications that it must lead to.
    pub notices: Vec<Notice>,
    /// The headers that the response must have.
    pub headers: Vec<Header>,
    /// Set if it is called as a task.
    pub task: Option<TaskPlan>,
    /// The relation of its answer to that of the case.
    pub relation: Option<Relation>,
}

impl Step {
    /// A call of a tool of which nothing more is expected.
    pub(crate) fn plain(tool: &str, input: Map<String, Value>) -> Step {
        Step {
            feature: Feature::Tool,
            tool: tool.to_owned(),
            input,
            ending: Ending::Success,
            matchers: Vec::new(),
            save: BTreeMap::new(),
            asked: None,
            notices: Vec::new(),
            headers: Vec::new(),
            task: None,
            relation: None,
        }
    }

    /// The names of the saved values that its arguments need.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let mut names = Vec::new();
        self.input.values().for_each(|value| variables::names(value, &mut names));
        names.into_iter().collect()
    }

    /// The tool, if it calls one.
    pub(crate) fn called_tool(&self) -> Option<&str> {
        self.feature.is_tool().then_some(self.tool.as_str())
    }

    /// The name for reports: that of a tool, or the feature with its name.
    pub(crate) fn label(&self) -> String {
        match self.feature {
            Feature::Tool => self.tool.clone(),
            other => format!("{} {}", other.name(), self.tool),
        }
    }

    /// Returns whether its answer is compared with a snapshot.
    pub(crate) fn expects_snapshot(&self) -> bool {
        self.matchers.iter().any(Matcher::is_snapshot)
    }
}

/// The expected kind of outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A result that is not an error.
    Success,
    /// A result that neither is an error nor reads as a refusal.
    Answered,
    /// An error, a refusal as text, or an answer without anything that was asked for.
    Denied,
    /// Any error: of the tool or of the protocol.
    AnyError,
    /// A result with `isError`.
    ToolError,
    /// A protocol error, with this code if there is one.
    ProtocolError(Option<i64>),
    /// Any answer.
    Whatever,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_snapshot_changes_the_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.yaml");
        std::fs::write(&path, "cases:\n  - {id: a, tool: t, expect: {snapshot: true}}\n").unwrap();
        let suite = Suite::load(&path).unwrap();
        let snapshots = Snapshots::from([("call.1".to_owned(), "x".into())]);
        Store::of(&path).write("a", &snapshots).unwrap();
        let loaded = Suite::load(&path).unwrap();
        assert_ne!(loaded.digest, suite.digest);
        std::fs::write(&path, "cases: []\n").unwrap();
        let updated = suite.with_stored_snapshots().unwrap();
        assert_eq!((&updated.digest, updated.cases.len()), (&loaded.digest, 1));
        std::fs::write(Store::of(&path).file("a"), "{}").unwrap();
        assert!(suite.with_stored_snapshots().is_err());
    }
}

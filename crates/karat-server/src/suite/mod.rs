//! A suite: the calls to make, and the answers that are expected.
//!
//! The plain form that many people already have is read as it is:
//! `{"mcp_server": …, "test_cases": [{"tool", "input", "expected_output_contains", "max_latency_ms"}]}`.
//! So is a list of `{"input": TEXT, "expected" | "expected_behavior"}`, whose texts go to every tool that
//! takes one. Beyond it there are resources, prompts and other requests, matchers ([`karat_core::expect`]),
//! kinds of errors, setup and teardown calls,
//! values passed from one call to a later one, and repetition. Mistakes in a suite are found when it is
//! read, before a server is started: a case that cannot fail is refused.

mod case;
mod file;
pub(crate) mod headers;
pub(crate) mod notices;
pub(crate) mod relations;
pub mod server;
pub(crate) mod snapshot;
pub(crate) mod tasks;
pub(crate) mod texts;
pub(crate) mod variables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::dataset::Digest;
use karat_core::journal::Entry;
use karat_core::report::DatasetRef;
use karat_io::input::{self, InputError, Limits};
use karat_mcp::Definition;
use serde_json::Value;

pub(crate) use self::case::snapshot_name;
pub use self::case::{Case, Ending, Step};
use self::snapshot::Store;
use self::texts::TextCase;
use crate::observation::CaseRun;
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

    /// The cases for the tools of an earlier run, by the tools that its cases went to then.
    pub(crate) fn cases_as_recorded(&self, answers: &[Entry<CaseRun>]) -> Vec<Arc<Case>> {
        let of_texts = self.texts.iter().flat_map(|text| text.cases_as_recorded(answers));
        self.cases.iter().cloned().chain(of_texts.map(Arc::new)).collect()
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

#[cfg(test)]
mod tests {
    use super::snapshot::Snapshots;
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

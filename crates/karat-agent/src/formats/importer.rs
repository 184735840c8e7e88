//! The interface of an importer.

use std::collections::BTreeMap;
use std::path::Path;

use crate::trace::{Invalid, Trace};

/// The place of a document in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line, from 1.
    pub(crate) line: u64,
    /// The number of the entry in the list that is on this line, from 0.
    pub(crate) entry: usize,
}

impl Position {
    /// The name of a record that has no id.
    pub(crate) fn name(self) -> String {
        match self.entry {
            0 => format!("line-{}", self.line),
            entry => format!("line-{}-{}", self.line, entry + 1),
        }
    }
}

/// Makes traces of documents.
pub(crate) trait Importer {
    /// Takes one document; adds the traces that are complete.
    fn take(&mut self, text: &str, at: Position, out: &mut Vec<Trace>) -> Result<(), Invalid>;

    /// Adds the remaining traces.
    fn finish(&mut self, _out: &mut Vec<Trace>) {}

    /// Remarks for the reader of the report, with their counts.
    fn notes(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// A file's name without the extensions of traces.
pub(crate) fn file_stem(path: &Path) -> String {
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for end in [".gz", ".zst", ".xz", ".jsonl", ".json", ".eval", ".binpb"] {
        name = name.strip_suffix(end).unwrap_or(&name).to_owned();
    }
    name
}

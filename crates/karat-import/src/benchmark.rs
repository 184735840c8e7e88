//! The facts about a benchmark, and its importer.

use crate::ImportError;
use crate::source::Source;
use crate::writer::Writer;

/// A benchmark that can be imported.
pub struct Benchmark {
    /// The name in commands.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The files that are needed.
    pub needs: &'static str,
    /// The licence of its data.
    pub licence: &'static str,
    /// True if the licence forbids publishing, or none is stated.
    pub restricted: bool,
    /// The evaluation that measures it.
    pub becomes: &'static str,
    /// The figures or counts that prove the import.
    pub checked_by: &'static str,
    pub(crate) import: fn(&Source, &mut Writer) -> Result<(), ImportError>,
}

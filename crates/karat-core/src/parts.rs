//! The files of parts, and the checks before they are merged.
//!
//! A part leaves its journal behind; `outcomes` reads the journals of all parts back into the outcomes
//! of one run, which is then finished and scored like any other. Parts that are missing, there twice
//! or of another run are refused.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use karat_io::input::{self, Format, Limits};
use karat_io::text::first_few;

use crate::dataset::Digest;
use crate::error::EvalError;
use crate::journal::{self, Entry, Identity};
use crate::partition::{Part, Partition, VERSION};
use crate::report::Report;

/// The name of the format of [`WholeEntry`].
pub(crate) const WHOLE_SCHEMA: &str = "karat.whole/1";

/// The result of one part of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartDone {
    /// The number of items in this part.
    pub items: usize,
    /// The number of questions that were not answered.
    pub failed: usize,
}

/// The report of an entry that is measured as a whole, by the part that its name belongs to.
#[derive(Serialize, Deserialize)]
pub struct WholeEntry {
    /// Always `WHOLE_SCHEMA`.
    pub schema: String,
    /// The part that measured it.
    pub part: Part,
    /// The digest of its settings in karat.toml, without gate and baseline.
    pub settings: Digest,
    /// The report, before the gate.
    pub report: Report,
}

/// The files that a part has left behind for one entry.
pub struct PartFile {
    /// The file.
    pub path: PathBuf,
    kind: PartKind,
}

enum PartKind {
    Journal { part: Part, identity: Box<Identity> },
    Whole(Box<WholeEntry>),
}

impl PartFile {
    /// Reads a journal of a part as far as its first line, or the report of an entry that is measured
    /// as a whole.
    ///
    /// # Errors
    /// If the file is neither, or was made by another version of Karat.
    pub fn open(path: &Path) -> Result<PartFile, EvalError> {
        let shown = path.display();
        let kind = if Format::of(path) == Some(Format::Json) {
            let text = input::read_text(path, &Limits::default())?;
            let whole: WholeEntry = input::parse_json_text(path, &text)?;
            input::check_schema(path, Some(&whole.schema), WHOLE_SCHEMA)?;
            PartKind::Whole(Box::new(whole))
        } else {
            let Some(identity) = journal::read_identity(path)? else {
                return Err(EvalError::config(format!(
                    "{shown}: the part was stopped before it began; run it again"
                )));
            };
            let Some(part) = identity.part.clone() else {
                return Err(EvalError::config(format!(
                    "{shown}: the journal of a whole run, not of a part; nothing to merge"
                )));
            };
            PartKind::Journal { part, identity: Box::new(identity) }
        };
        let file = PartFile { path: path.to_owned(), kind };
        let made_by = &file.part().karat;
        if made_by != VERSION {
            return Err(EvalError::config(format!(
                "{shown}: made by karat {made_by}, and this is karat {VERSION}; merge with the version \
                 that made the parts"
            )));
        }
        Ok(file)
    }

    fn part(&self) -> &Part {
        match &self.kind {
            PartKind::Journal { part, .. } => part,
            PartKind::Whole(whole) => &whole.part,
        }
    }

    /// The part that it is of.
    #[must_use]
    pub fn partition(&self) -> Partition {
        self.part().partition
    }

    /// The entry that it is of, as [`crate::project::AnyEntry::label`] names it.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.kind {
            PartKind::Journal { identity, .. } => {
                format!("{} {}", identity.kind.evaluation(), identity.name)
            }
            PartKind::Whole(whole) => {
                format!("{} {}", whole.report.kind.evaluation(), whole.report.name)
            }
        }
    }

    fn identity(&self) -> Result<&Identity, EvalError> {
        match &self.kind {
            PartKind::Journal { identity, .. } => Ok(identity),
            PartKind::Whole(_) => Err(EvalError::config(format!(
                "{}: the entry was measured as a whole there, and is measured in parts here",
                self.path.display()
            ))),
        }
    }
}

/// Finds parts of a run that was divided otherwise, and parts that are there twice.
///
/// # Errors
/// Names the first such part.
pub fn check_division(files: &[PartFile]) -> Result<(), EvalError> {
    let mut seen: BTreeMap<(String, Partition), &Path> = BTreeMap::new();
    for file in files {
        let (partition, path) = (file.partition(), file.path.display());
        if let Some(first) = files.first().filter(|one| one.partition().of != partition.of) {
            return Err(EvalError::config(format!(
                "{path} is one of {} parts, and {} one of {}; merge the parts of one run",
                partition.of,
                first.path.display(),
                first.partition().of
            )));
        }
        if let Some(first) = seen.insert((file.label(), partition), &file.path) {
            return Err(EvalError::config(format!(
                "duplicate part {} of {}: {} and {path}; pass each part once",
                partition.part,
                partition.of,
                first.display()
            )));
        }
    }
    Ok(())
}

/// Finds parts that are missing, and parts of other data, another seed or other settings than the
/// first. `expected` is the run as far as it is known before the system has started: its system and
/// number of runs are not looked at.
///
/// # Errors
/// If there is one.
pub(crate) fn check_parts(files: &[PartFile], expected: &Identity) -> Result<(), EvalError> {
    let Some(first) = files.first() else {
        return Err(EvalError::config("no part has this entry; run every part of the project"));
    };
    check_division(files)?;
    let system = &first.identity()?.system;
    for file in files {
        let found = file.identity()?;
        let expected =
            Identity { system: system.clone(), runs: first.identity()?.runs, ..expected.clone() };
        same_run(file, found, &expected)?;
    }
    let of = first.partition().of;
    let there: HashSet<u32> = files.iter().map(|file| file.partition().part).collect();
    let missing: Vec<String> =
        (1..=of).filter(|part| !there.contains(part)).map(|part| part.to_string()).collect();
    match missing.as_slice() {
        [] => Ok(()),
        [one] => Err(EvalError::config(format!(
            "part {one} of {of} is missing; run it with --partition hash:{one}/{of}"
        ))),
        [one, ..] => Err(EvalError::config(format!(
            "{} of {of} parts are missing ({}); run each, the first with --partition hash:{one}/{of}",
            missing.len(),
            first_few(&missing, 10)
        ))),
    }
}

fn same_run(file: &PartFile, found: &Identity, expected: &Identity) -> Result<(), EvalError> {
    let expected = Identity { part: found.part.clone(), ..expected.clone() };
    match journal::difference(found, &expected) {
        None => Ok(()),
        Some(difference) => Err(EvalError::config(format!(
            "{}: this part belongs to another run ({difference})",
            file.path.display()
        ))),
    }
}

/// Reads the outcomes of all parts. `identity` is the run that they are merged into.
///
/// # Errors
/// If a part is of another system, cannot be read, or holds an item of another part.
pub(crate) fn outcomes<A: DeserializeOwned>(
    files: &[PartFile],
    identity: &Identity,
) -> Result<Vec<Entry<A>>, EvalError> {
    let mut all = Vec::new();
    for file in files {
        let found = file.identity()?;
        same_run(file, found, identity)?;
        let path = &file.path;
        let (_, entries) = journal::read_entries(path, &mut journal::open(path)?, found)?;
        if let Some(other) = entries.iter().find(|entry| !file.partition().holds(&entry.id)) {
            return Err(EvalError::config(format!(
                "{}: item {} belongs to part {}, not to {}",
                path.display(),
                other.id,
                Partition::of_item(&other.id, file.partition().of),
                file.partition()
            )));
        }
        all.extend(entries);
    }
    Ok(all)
}

/// Finds items that no part has asked, and items that the data does not have.
///
/// # Errors
/// Names the first, and the part that it belongs to.
pub(crate) fn check_complete<A>(
    files: &[PartFile],
    known: &[Entry<A>],
    ids: &[&str],
    runs: u32,
    items: &str,
) -> Result<(), EvalError> {
    let path_of = |id: &str| {
        let file = files.iter().find(|file| file.partition().holds(id));
        file.map(|file| file.path.display().to_string()).unwrap_or_default()
    };
    let expected: HashSet<&str> = ids.iter().copied().collect();
    if let Some(other) = known.iter().find(|entry| !expected.contains(entry.id.as_str())) {
        return Err(EvalError::config(format!(
            "{}: item {} is not one of the {items} of this entry",
            path_of(&other.id),
            other.id
        )));
    }
    let asked: HashSet<(u32, &str)> =
        known.iter().map(|entry| (entry.run, entry.id.as_str())).collect();
    let open = |id: &&&str| (0..runs).any(|run| !asked.contains(&(run, **id)));
    let Some(first) = ids.iter().find(open) else { return Ok(()) };
    let Some(file) = files.iter().find(|file| file.partition().holds(first)) else {
        return Err(EvalError::config(format!("no part holds item {first}")));
    };
    let partition = file.partition();
    let own: Vec<&&str> = ids.iter().filter(|id| partition.holds(id)).collect();
    let missing = own.iter().filter(|id| open(id)).count();
    Err(EvalError::config(format!(
        "{}: the part is not finished: {missing} of its {} {items} were not asked (first: {first}); run it \
         again with --partition {partition} --resume",
        file.path.display(),
        own.len()
    )))
}

/// Returns whether a part measures an entry that is not divided.
#[must_use]
pub fn measures_whole(partition: Partition, label: &str) -> bool {
    partition.holds(label)
}

/// The report of an entry that was measured as a whole by one of the parts. `of` is the number of parts,
/// where that is known.
///
/// # Errors
/// If it is missing, of another entry, or of other data, another seed or other settings.
pub fn whole_report(
    files: Vec<PartFile>,
    expected: &Whole<'_>,
    of: Option<u32>,
) -> Result<Report, EvalError> {
    let mut files = files.into_iter();
    let Some(PartFile { path, kind }) = files.next() else {
        let part = match of {
            Some(of) => {
                let owner = Partition::of_item(expected.label, of);
                format!("part {} of {of}; run it with --partition {owner}", owner.part)
            }
            None => "one of the parts; run them".to_owned(),
        };
        return Err(EvalError::config(format!("the entry is measured as a whole by {part}")));
    };
    let shown = path.display();
    if let Some(other) = files.next() {
        return Err(EvalError::config(format!(
            "the entry is measured as a whole by one part, and two have it: {shown} and {}",
            other.path.display()
        )));
    }
    let PartKind::Whole(whole) = kind else {
        return Err(EvalError::config(format!(
            "{shown}: the entry was measured in parts there, and is measured as a whole here"
        )));
    };
    let WholeEntry { part, settings, report, .. } = *whole;
    let differs = |what: &str, found: &dyn fmt::Display, here: &dyn fmt::Display| {
        Err(EvalError::config(format!(
            "{shown}: this part belongs to another run ({what} {found} there, {here} here)"
        )))
    };
    if !measures_whole(part.partition, expected.label) {
        let owner = Partition::of_item(expected.label, part.partition.of);
        return differs("partition", &part.partition, &owner);
    }
    if report.dataset != *expected.dataset {
        return differs("dataset", &report.dataset.digest, &expected.dataset.digest);
    }
    if report.seed != expected.seed {
        return differs("seed", &report.seed, &expected.seed);
    }
    if settings != expected.settings {
        return differs("settings", &settings, &expected.settings);
    }
    Ok(report)
}

/// An entry that is measured as a whole, as the project has it.
pub struct Whole<'a> {
    /// The label of the entry.
    pub label: &'a str,
    /// The data.
    pub dataset: &'a crate::report::DatasetRef,
    /// The seed.
    pub seed: u64,
    /// The digest of the settings.
    pub settings: Digest,
}

impl WholeEntry {
    /// The report of an entry that this part has measured.
    #[must_use]
    pub fn new(partition: Partition, settings: Digest, report: Report) -> WholeEntry {
        WholeEntry { schema: WHOLE_SCHEMA.to_owned(), part: Part::new(partition), settings, report }
    }
}

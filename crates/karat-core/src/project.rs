//! From karat.toml to entries that are ready to run: everything that can be wrong with a project is
//! found here, before anything runs.
//!
//! The project knows no evaluation by name. A [`Registry`] lists them, one line each; an entry of any
//! of them is an [`AnyEntry`], with one shape for its settings, its gate and its run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use karat_io::input::{self, InputError, TomlTable, destination};
use karat_io::text::printable;
use serde::Deserialize;

use crate::align::comparable_data;
use crate::baseline::Baseline;
use crate::compare::SliceKey;
use crate::dataset::{Contents, Digest, canonical};
use crate::error::EvalError;
use crate::evaluation::{
    Common, Computes, Entry, Evaluation, KEYS, OPTIONAL_KEYS, RenamedKey, RunContext,
};
use crate::gate::{GateError, Policy};
use crate::kind::{self, Kind};
use crate::partition::Partition;
use crate::parts::{PartDone, PartFile};
use crate::report::{DatasetRef, Report};
pub use crate::root::{BUNDLED, Bundle, NoBundle, Root, own_datasets};

/// The name of a project file.
pub const FILE: &str = "karat.toml";

/// A future that can be stored: the run of an entry.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Report, EvalError>> + Send + 'a>>;

/// The run of one part of an entry.
pub(crate) type RunningPart<'a> =
    Pin<Box<dyn Future<Output = Result<PartDone, EvalError>> + Send + 'a>>;

/// An entry of any evaluation.
pub trait AnyEntry: Send + Sync {
    /// The kind of its report.
    fn kind(&self) -> Kind;
    /// The settings that all evaluations share.
    fn common(&self) -> &Common;
    /// The data as reports and baselines name it.
    fn dataset(&self) -> DatasetRef;
    /// The content of the data, if scores on other versions of it can be compared.
    fn contents(&self) -> Option<Contents> {
        None
    }
    /// The files and folders that it names, relative to the project; the baseline too.
    fn reads(&self) -> Vec<PathBuf>;
    /// The files that its run writes, relative to the project; the report and its journal apart.
    fn writes(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// The items whose labels name parts of the corpus that are not there, each with that part.
    fn dangling(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// The metrics and slices that its report can have, if that is known.
    fn computes(&self) -> Option<Computes>;
    /// Measures it.
    fn run<'a>(&'a self, context: &'a RunContext<'a>) -> Running<'a>;

    /// The reason why it is measured as a whole: by one part, without a merge.
    fn whole(&self) -> Option<&'static str> {
        Some("its run writes files")
    }

    /// Measures one part of it; only where it is not measured as a whole.
    fn run_part<'a>(&'a self, _: &'a RunContext<'a>, _: Partition) -> RunningPart<'a> {
        Box::pin(async { Err(not_divided()) })
    }

    /// Makes its report from its parts; only where it is not measured as a whole.
    fn merge<'a>(&'a self, _: &'a RunContext<'a>, _: &'a [PartFile]) -> Running<'a> {
        Box::pin(async { Err(not_divided()) })
    }

    /// The evaluation.
    fn evaluation(&self) -> kind::Evaluation {
        self.kind().evaluation()
    }

    /// The name in messages and files.
    fn label(&self) -> String {
        format!("{} {}", self.evaluation(), self.common().name)
    }
}

impl<E: Evaluation> AnyEntry for Entry<E> {
    fn kind(&self) -> Kind {
        E::KIND
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn dataset(&self) -> DatasetRef {
        E::reference(&self.data)
    }

    fn contents(&self) -> Option<Contents> {
        E::contents(&self.data)
    }

    fn reads(&self) -> Vec<PathBuf> {
        reads::<E>(&self.common, &self.config)
    }

    fn writes(&self) -> Vec<PathBuf> {
        E::writes(&self.config)
    }

    fn dangling(&self) -> Vec<(String, String)> {
        E::dangling(&self.data)
    }

    fn computes(&self) -> Option<Computes> {
        E::computes(&self.config, &self.data)
    }

    fn run<'a>(&'a self, context: &'a RunContext<'a>) -> Running<'a> {
        Box::pin(crate::evaluation::evaluate(self, context))
    }

    fn whole(&self) -> Option<&'static str> {
        E::whole(self)
    }

    fn run_part<'a>(&'a self, context: &'a RunContext<'a>, part: Partition) -> RunningPart<'a> {
        Box::pin(crate::evaluation::evaluate_part(self, context, part))
    }

    fn merge<'a>(&'a self, context: &'a RunContext<'a>, parts: &'a [PartFile]) -> Running<'a> {
        Box::pin(crate::evaluation::merge(self, context, parts))
    }
}

/// An entry whose data has nothing to measure, such as a file of traces without a trace. It fails as one whose
/// system does not start: the others of the project are measured.
struct Unmeasurable<E: Evaluation> {
    common: Common,
    config: E::Config,
    why: String,
}

impl<E: Evaluation> Unmeasurable<E> {
    fn error(&self) -> EvalError {
        EvalError::NothingMeasured(self.why.clone())
    }
}

impl<E: Evaluation> AnyEntry for Unmeasurable<E> {
    fn kind(&self) -> Kind {
        E::KIND
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn dataset(&self) -> DatasetRef {
        DatasetRef::default()
    }

    fn reads(&self) -> Vec<PathBuf> {
        reads::<E>(&self.common, &self.config)
    }

    fn computes(&self) -> Option<Computes> {
        None
    }

    fn run<'a>(&'a self, _: &'a RunContext<'a>) -> Running<'a> {
        Box::pin(async { Err(self.error()) })
    }

    fn whole(&self) -> Option<&'static str> {
        None
    }

    fn run_part<'a>(&'a self, _: &'a RunContext<'a>, _: Partition) -> RunningPart<'a> {
        Box::pin(async { Err(self.error()) })
    }

    fn merge<'a>(&'a self, _: &'a RunContext<'a>, _: &'a [PartFile]) -> Running<'a> {
        Box::pin(async { Err(self.error()) })
    }
}

/// The files and folders that an entry names.
fn reads<E: Evaluation>(common: &Common, config: &E::Config) -> Vec<PathBuf> {
    let mut reads = E::reads(config);
    reads.extend(common.baseline.clone());
    reads
}

fn not_divided() -> EvalError {
    EvalError::config("this entry is measured as a whole")
}

/// Makes an entry from its table.
type Make = for<'t> fn(TomlTable<'t>, &Root<'_>) -> Result<Located, EntryError>;

/// An entry, and where its gate is written.
struct Located {
    entry: Box<dyn AnyEntry>,
    /// True if its data has nothing to measure, and so nothing to compare with its gate and baseline.
    unmeasurable: bool,
    lines: GateLines,
}

/// The lines of the rules of a gate, by key.
struct GateLines(Vec<(String, u64)>);

impl GateLines {
    fn of(table: &TomlTable<'_>) -> GateLines {
        let mut lines = table.lines_under(&["gate", "metrics"]);
        lines.extend(table.lines_under(&["gate"]));
        lines.extend(table.lines_under(&[]).into_iter().filter(|(key, _)| key == "gate"));
        GateLines(lines)
    }

    /// The line of what an error is about, or of the gate.
    fn of_error(&self, error: &GateError) -> Option<u64> {
        let find = |wanted: &dyn Fn(&str) -> bool| {
            self.0.iter().find(|(key, _)| wanted(key)).map(|(_, line)| *line)
        };
        let subject = error.subject()?;
        let of_rule =
            |key: &str| key.split_once(" on ").is_some_and(|(id, _)| id.trim() == subject);
        let of_slice =
            |key: &str| key.split_once(" on ").is_some_and(|(_, at)| at.trim() == subject);
        let slice = matches!(error, GateError::NoSlice { .. });
        find(&|key| key == subject)
            .or_else(|| find(&of_rule))
            .or_else(|| find(&of_slice))
            .or_else(|| find(&|key| slice && key == "slice"))
            .or_else(|| find(&|key| key == "protected"))
            .or_else(|| find(&|key| key == "gate"))
    }
}

/// The evaluations that a project can have entries of.
#[derive(Default)]
pub struct Registry {
    tables: Vec<Registered>,
}

/// An evaluation in the registry.
struct Registered {
    table: &'static str,
    make: Make,
    renamed: &'static [RenamedKey],
}

impl Registered {
    /// Takes its entries out of a project file, with the present names of their keys. Adds the earlier names
    /// that were used to `hints`.
    fn entries<'a>(
        &self,
        document: &mut TomlTable<'a>,
        hints: &mut Vec<EarlierKey>,
    ) -> Result<Vec<TomlTable<'a>>, InputError> {
        let mut entries = document.tables(self.table)?;
        for entry in &mut entries {
            for RenamedKey { earlier, present, unit } in self.renamed {
                let Some((line, text)) = entry.rename(earlier, present, unit) else { continue };
                let value = text.map(|text| format!(" = {text:?}")).unwrap_or_default();
                let (earlier, present) = (earlier.join("."), present.join(".") + &value);
                hints.push(EarlierKey { line, earlier, present });
            }
        }
        Ok(entries)
    }
}

/// An earlier name of a key in a project file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierKey {
    /// The line.
    pub line: u64,
    /// The key with those that lead to it.
    pub earlier: String,
    /// The same today, with its value if that changes too.
    pub present: String,
}

impl Registry {
    /// Adds an evaluation. This is the line that a new one needs.
    #[must_use]
    pub fn with<E: Evaluation>(mut self) -> Registry {
        self.tables.push(Registered { table: E::TABLE, make: make::<E>, renamed: E::RENAMED });
        self
    }

    /// The names of the tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &'static str> {
        self.tables.iter().map(|registered| registered.table)
    }
}

/// A mistake in an entry: in the text of its table, or in what it says.
#[derive(Debug)]
enum EntryError {
    Input(InputError),
    Entry { name: String, line: Option<u64>, error: Box<EvalError> },
}

impl From<InputError> for EntryError {
    fn from(error: InputError) -> EntryError {
        EntryError::Input(error)
    }
}

/// Reads the table of one entry: the settings that all entries share, and its own.
///
/// # Errors
/// If a key is unknown or does not fit.
pub fn read_entry<E: Evaluation>(
    mut table: TomlTable<'_>,
) -> Result<(Common, E::Config), InputError> {
    let taken = |key: &str| KEYS.contains(&key) || E::TAKES.contains(&key);
    let known = |key: &str| taken(key) || E::OWNS.contains(&key);
    let refused = table.keys().find(|key| OPTIONAL_KEYS.contains(key) && !known(key));
    if let Some(key) = refused {
        let known: Vec<&str> = KEYS.iter().chain(E::TAKES).copied().collect();
        return Err(table.unknown_key(key, &known));
    }
    let own_start = table.keys().any(|key| key == "start_timeout_ms");
    let mut common: Common = table.split(taken).into_type()?;
    if !own_start {
        common.start_timeout_ms = E::START_TIMEOUT_MS;
    }
    let own: Vec<String> = table.keys().map(str::to_owned).collect();
    match table.into_type() {
        Ok(config) => Ok((common, config)),
        // Its own keys are half of those that an entry takes; a mistyped one may be of the other half.
        Err(InputError::UnknownKey { path, line, key, mut known, .. }) if own.contains(&key) => {
            known.extend(KEYS.iter().chain(E::TAKES).map(|&key| key.to_owned()));
            let nearest = input::nearest(&key, known.iter().map(String::as_str));
            Err(InputError::UnknownKey { path, line, key, nearest, known })
        }
        Err(error) => Err(error),
    }
}

fn make<E: Evaluation>(table: TomlTable<'_>, root: &Root<'_>) -> Result<Located, EntryError> {
    let lines = GateLines::of(&table);
    let (mut common, config) = read_entry::<E>(table)?;
    let name = common.name.clone();
    let wrong = |error: EvalError| EntryError::Entry {
        name: name.clone(),
        line: None,
        error: Box::new(error),
    };
    let ruled = |error: GateError| EntryError::Entry {
        name: name.clone(),
        line: lines.of_error(&error),
        error: Box::new(EvalError::config(error)),
    };
    common.gate.validate().map_err(ruled)?;
    common.validate().map_err(wrong)?;
    E::check(&config, &mut common).map_err(wrong)?;
    common.gate.validate().map_err(ruled)?;
    match E::load(&config, &common, root) {
        Ok(data) => {
            let entry = Box::new(Entry::<E> { common, config, data });
            Ok(Located { entry, unmeasurable: false, lines })
        }
        Err(error) if error.is_not_measured() => {
            let entry = Box::new(Unmeasurable::<E> { common, config, why: error.to_string() });
            Ok(Located { entry, unmeasurable: true, lines })
        }
        Err(error) => Err(wrong(error)),
    }
}

/// An entry with its baseline.
pub struct Planned {
    /// The entry.
    pub entry: Box<dyn AnyEntry>,
    /// The committed reference scores, if the entry names any.
    pub baseline: Option<Baseline>,
    /// The digest of its settings in karat.toml, without gate and baseline; none of an entry that a
    /// command line describes.
    pub settings: Option<Digest>,
}

/// A project that is ready to run.
pub struct Project<'a> {
    /// The name that it gives itself.
    pub name: Option<String>,
    /// The place of its files.
    pub root: Root<'a>,
    /// Its entries, in the order of the evaluations, then of the file.
    pub entries: Vec<Planned>,
    /// The earlier names of keys in it.
    pub hints: Vec<EarlierKey>,
}

/// The treatment of baselines that do not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Baselines {
    /// A baseline that an entry names must exist and fit.
    Needed,
    /// It is about to be written, so it may be missing or of other data.
    Optional,
}

/// A mistake in a project: a file that cannot be read, or an entry that contradicts itself.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A file is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An entry is not valid.
    #[error("{}{}: {entry}: {message}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Entry {
        /// The project file.
        path: PathBuf,
        /// The line, where the mistake is in one rule.
        line: Option<u64>,
        /// The name of the entry.
        entry: String,
        /// The mistake.
        message: String,
    },
    /// The project has no entries.
    #[error("{}: the project has no entries; create a starter project with `karat init`", path.display())]
    Empty {
        /// The project file.
        path: PathBuf,
    },
}

/// The settings of karat.toml that belong to no evaluation.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The project's name; shown, never interpreted.
    pub name: Option<String>,
    /// The history.
    pub history: HistorySettings,
}

/// The table `[history]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistorySettings {
    /// The file, inside the project; every check adds its report to it.
    pub file: Option<PathBuf>,
}

/// Reads the settings that belong to no evaluation.
///
/// # Errors
/// If the file is not valid.
pub fn settings(path: &Path, text: &str, registry: &Registry) -> Result<Settings, InputError> {
    let mut document = TomlTable::parse(path, text)?;
    let tables: Vec<&str> = registry.tables().collect();
    document.split(|key| tables.contains(&key));
    rest(document, &tables)
}

/// Reads what is left of a project file once its entries have been taken out.
fn rest(document: TomlTable<'_>, tables: &[&str]) -> Result<Settings, InputError> {
    let own = ["name", "history"];
    let unknown = document.keys().find(|key| !own.contains(key)).map(str::to_owned);
    match unknown {
        Some(key) => {
            let known: Vec<&str> = own.into_iter().chain(tables.iter().copied()).collect();
            Err(document.unknown_key(&key, &known))
        }
        None => document.into_type(),
    }
}

impl<'a> Project<'a> {
    /// Reads a project: its entries, the data they name, and their baselines.
    ///
    /// # Errors
    /// If anything is wrong with it.
    pub fn load(
        root: Root<'a>,
        path: &Path,
        text: &str,
        registry: &Registry,
        baselines: Baselines,
    ) -> Result<Project<'a>, ProjectError> {
        let mut document = TomlTable::parse(path, text)?;
        let (mut lists, mut hints) = (Vec::new(), Vec::new());
        for registered in &registry.tables {
            lists.push((registered.entries(&mut document, &mut hints)?, registered.make));
        }
        let Settings { name, .. } = rest(document, &registry.tables().collect::<Vec<_>>())?;
        let mut entries: Vec<Located> = Vec::new();
        for (tables, make) in lists {
            for table in tables {
                entries.push(make(table, &root).map_err(|error| in_file(path, error))?);
            }
        }
        if entries.is_empty() {
            return Err(ProjectError::Empty { path: path.to_owned() });
        }
        let mut labels = BTreeSet::new();
        let each = entries.iter().map(|located| &located.entry);
        if let Some(twice) = each.into_iter().find(|entry| !labels.insert(entry.label())) {
            let message = format!("another {} entry has this name", twice.evaluation());
            return Err(wrong(path, &twice.common().name, message));
        }
        let entries = entries
            .into_iter()
            .zip(digests(path, text, registry)?)
            .map(|(located, settings)| planned(&root, path, located, Some(settings), baselines))
            .collect::<Result<_, _>>()?;
        Ok(Project { name, root, entries, hints })
    }

    /// The files and folders that the project is measured with.
    pub fn reads(&self) -> Vec<PathBuf> {
        if self.root.is_bundled() {
            return Vec::new();
        }
        let all = destination(self.root.folder());
        let named = self.entries.iter().flat_map(|planned| planned.entry.reads());
        std::iter::once(PathBuf::from(FILE))
            .chain(named)
            .map(|name| self.root.path(&name))
            // A project that is a dataset folder itself does not make every file in it an input.
            .filter(|path| !all.starts_with(destination(path)))
            .collect()
    }

    /// The files that the runs of its entries write; reports and journals apart.
    pub fn writes(&self) -> Vec<PathBuf> {
        let named = self.entries.iter().flat_map(|planned| planned.entry.writes());
        named.map(|name| self.root.path(&name)).collect()
    }
}

/// The digests of the settings of all entries, in the order of the entries.
fn digests(path: &Path, text: &str, registry: &Registry) -> Result<Vec<Digest>, InputError> {
    let mut document = TomlTable::parse(path, text)?;
    let mut digests = Vec::new();
    for registered in &registry.tables {
        for mut entry in registered.entries(&mut document, &mut Vec::new())? {
            entry.split(|key| ["gate", "baseline"].contains(&key));
            let settings: serde_json::Value = entry.into_type()?;
            digests.push(canonical::digest(&settings));
        }
    }
    Ok(digests)
}

fn in_file(path: &Path, error: EntryError) -> ProjectError {
    match error {
        EntryError::Input(error) => ProjectError::Input(error),
        EntryError::Entry { name, line, error } => ProjectError::Entry {
            path: path.to_owned(),
            line,
            entry: name,
            message: error.to_string(),
        },
    }
}

fn wrong(path: &Path, entry: &str, message: impl std::fmt::Display) -> ProjectError {
    let (path, entry) = (path.to_owned(), entry.to_owned());
    ProjectError::Entry { path, line: None, entry, message: message.to_string() }
}

fn planned(
    root: &Root<'_>,
    path: &Path,
    Located { entry, unmeasurable, lines }: Located,
    settings: Option<Digest>,
    baselines: Baselines,
) -> Result<Planned, ProjectError> {
    if unmeasurable {
        return Ok(Planned { entry, baseline: None, settings });
    }
    let common = entry.common();
    let bad = |error: &dyn std::fmt::Display| wrong(path, &common.name, error);
    let ruled = |error: GateError| ProjectError::Entry {
        path: path.to_owned(),
        line: lines.of_error(&error),
        entry: common.name.clone(),
        message: error.to_string(),
    };
    if let Some(computes) = entry.computes() {
        check_gate(&common.gate, &computes).map_err(ruled)?;
    }
    let baseline = match &common.baseline {
        Some(file) => read_baseline(root, file, &common.name, baselines).map_err(|e| bad(&e))?,
        None => None,
    };
    let dangling = entry.dangling();
    if !dangling.is_empty() {
        // A part that the baseline still had was removed, which fails the gate; any other was never there.
        if let Some(message) = never_there(&dangling, entry.as_ref(), baseline.as_ref()) {
            return Err(bad(&message));
        }
        // What is broken is more useful to know than that the data is not the baseline's.
        return Ok(Planned { entry, baseline: None, settings });
    }
    if baselines == Baselines::Needed {
        match &baseline {
            Some(baseline) => {
                comparable_data(baseline, &entry.dataset(), entry.contents().as_ref())
                    .map_err(|error| bad(&error))?;
                common.gate.covered_by(baseline).map_err(ruled)?;
            }
            None if common.gate.needs_baseline() => {
                return Err(bad(
                    &"the gate compares with a baseline; add `baseline = \"baselines/….json\"` and \
                      record it with `karat baseline update`",
                ));
            }
            None => {}
        }
    }
    Ok(Planned { entry, baseline, settings })
}

/// The first label that names what neither the corpus nor the baseline's corpus has.
fn never_there(
    dangling: &[(String, String)],
    entry: &dyn AnyEntry,
    baseline: Option<&Baseline>,
) -> Option<String> {
    let earlier = baseline.and_then(|baseline| baseline.contents.as_ref());
    let removed = |part: &String| earlier.is_some_and(|one| one.corpus.contains_key(part));
    let unknown: Vec<_> = dangling.iter().filter(|(_, part)| !removed(part)).collect();
    let (item, part) = unknown.first()?;
    let contents = entry.contents();
    let known = contents.iter().flat_map(|contents| contents.corpus.keys());
    let nearest = input::nearest(part, known.map(String::as_str));
    let hint = nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let more = match unknown.len() - 1 {
        0 => String::new(),
        n => format!(" ({n} more like it)"),
    };
    let (item, part) = (printable(item), printable(part));
    Some(format!("{item} labels `{part}`, which is not in the corpus{hint}{more}"))
}

/// Finds rules about metrics and slices that no report of the entry can have.
fn check_gate(gate: &Policy, computes: &Computes) -> Result<(), GateError> {
    let protected = gate.protected.as_ref().and_then(|protected| protected.slice.as_deref());
    let targets = gate.metrics.keys().map(|name| gate.target(name));
    let targets: Vec<(&str, Option<SliceKey>)> = targets.collect::<Result<_, _>>()?;
    let gated: Vec<String> =
        targets.iter().filter_map(|(_, key)| key.as_ref()).map(ToString::to_string).collect();
    for slice in gated.iter().map(String::as_str).chain(gate.slice.as_deref()).chain(protected) {
        let by = slice.split('=').next().unwrap_or_default();
        if computes.open && !computes.slices.iter().any(|(known, _)| known == by) {
            continue;
        }
        let known = computes.slices.iter().map(|(by, value)| format!("{by}={value}"));
        let known: Vec<String> = known.collect();
        if !known.iter().any(|known| known == slice) {
            let known = known.into_iter().take(20).collect::<Vec<_>>().join(", ");
            return Err(GateError::NoSlice { slice: slice.to_owned(), known });
        }
    }
    let protected = gate.protected.iter().map(|one| one.metric.as_str());
    let mut named = targets.iter().map(|(id, _)| *id).chain(protected);
    match named.find(|id| !computes.metrics.iter().any(|known| known == id)) {
        _ if computes.open && gate.slice.is_some() => Ok(()),
        None => Ok(()),
        Some(id) => Err(GateError::NotComputed {
            id: id.to_owned(),
            place: String::new(),
            known: computes.metrics.join(", "),
        }),
    }
}

fn read_baseline(
    root: &Root<'_>,
    file: &Path,
    name: &str,
    baselines: Baselines,
) -> Result<Option<Baseline>, EvalError> {
    let shown = root.path(file);
    if !root.has(file) {
        return match baselines {
            Baselines::Optional => Ok(None),
            Baselines::Needed => Err(missing_baseline(&shown)),
        };
    }
    let baseline = Baseline::parse(&shown, &root.text(file)?)?;
    baseline.belongs_to(&shown, name)?;
    Ok(Some(baseline))
}

/// The error for a baseline that does not exist, with what to do.
pub(crate) fn missing_baseline(path: &Path) -> EvalError {
    EvalError::config(format!(
        "{}: no baseline; record one with `karat baseline update` ({} format)",
        path.display(),
        crate::baseline::SCHEMA
    ))
}

//! The folder that an import writes: a frozen dataset and a karat.toml that measures it.
//!
//! Everything goes into a folder next to the target first and is moved when it is complete, so a
//! failed import leaves nothing behind. Rows are written as they come: memory holds the tasks, not
//! the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use karat_core::dataset::{IfFrozen, Manifest, Meta, Version};
use karat_core::label::{entry_name, numbered_entry_name};
use karat_core::project::FILE;
use karat_io::input;
use karat_io::text::{count, first_few};

use crate::outcomes::{Accounting, Published, Row, Tags, Task};
use crate::{Benchmark, ImportError};

/// The bytes of a file that are kept before they are written.
const BUFFER: usize = 64 << 10;

/// The result of an import.
#[derive(Debug, serde::Serialize)]
pub struct Imported {
    /// The benchmark.
    pub benchmark: &'static str,
    /// The folder.
    pub folder: PathBuf,
    /// The entries of its karat.toml.
    pub entries: Vec<String>,
    /// The files that were read.
    pub files: u64,
    /// The digest over them.
    pub digest: String,
    /// The number of rows, tools, queries and so on that were taken over.
    pub counts: BTreeMap<String, u64>,
    /// The number of rows that were skipped, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Remarks for a careful reader.
    pub notes: Vec<String>,
}

/// A system whose outcomes are imported.
#[derive(Default)]
struct System {
    /// The name in the source.
    source: String,
    /// The list of tasks that it belongs to.
    suite: String,
    rows: u64,
    /// The number of runs of each task.
    tasks: BTreeMap<u32, u32>,
    /// The file of each run, by its task and number; those without a number are of one file.
    files: BTreeMap<(u32, Option<u32>), u32>,
}

impl System {
    /// The tasks that were run less often than the others, and how often those were.
    fn short_of_runs(&self) -> Option<(usize, u32)> {
        let most = self.tasks.values().copied().max()?;
        let fewer = self.tasks.values().filter(|runs| **runs < most).count();
        (fewer > 0).then_some((fewer, most))
    }
}

/// Writes an import.
pub(crate) struct Writer {
    folder: tempfile::TempDir,
    target: PathBuf,
    data: PathBuf,
    benchmark: &'static str,
    buffers: BTreeMap<String, Vec<u8>>,
    suites: BTreeMap<String, BTreeMap<String, (u32, Tags)>>,
    systems: BTreeMap<String, System>,
    /// The names of entries, by those of the source.
    names: BTreeMap<String, String>,
    /// The names of entries in lower case: some file systems do not tell letters by their case.
    taken: BTreeSet<String>,
    /// The files whose runs are distinguished, in the order in which they are read.
    read: Vec<PathBuf>,
    published: Vec<Published>,
    accounting: Option<Accounting>,
    /// The accounting of lists of tasks that have another one.
    suite_accounting: BTreeMap<String, Accounting>,
    by: Option<Vec<&'static str>>,
    entries: Vec<(String, String)>,
    counts: BTreeMap<String, u64>,
    skipped: BTreeMap<String, u64>,
    notes: Vec<String>,
    /// The licence, where the source says so itself.
    pub(crate) licence: Option<String>,
    /// True if the user accepts systems that lack outcomes.
    pub(crate) partial: bool,
    /// True if systems need not have been run on every task.
    some_tasks: bool,
    /// True if a system is run equally often on all of its tasks.
    equal_runs: bool,
}

impl Writer {
    /// Prepares to write into a folder that is empty or does not exist.
    pub(crate) fn new(target: &Path, benchmark: &Benchmark) -> Result<Writer, ImportError> {
        if fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some()) {
            let name = input::name(target);
            return Err(ImportError::Other(format!(
                "{name}: not empty; name a new folder with -o"
            )));
        }
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        input::refuse_links(target).map_err(|error| ImportError::Other(error.to_string()))?;
        input::create_folder(parent).map_err(|error| ImportError::Other(error.to_string()))?;
        let folder = tempfile::Builder::new()
            .prefix(".karat-import-")
            .tempdir_in(parent)
            .map_err(ImportError::io(parent))?;
        let data = folder.path().join("datasets").join(benchmark.name).join("v1");
        fs::create_dir_all(&data).map_err(ImportError::io(&data))?;
        Ok(Writer {
            folder,
            target: target.to_owned(),
            data,
            benchmark: benchmark.name,
            buffers: BTreeMap::new(),
            suites: BTreeMap::new(),
            systems: BTreeMap::new(),
            names: BTreeMap::new(),
            taken: BTreeSet::new(),
            read: Vec::new(),
            published: Vec::new(),
            accounting: None,
            suite_accounting: BTreeMap::new(),
            by: None,
            entries: Vec::new(),
            counts: BTreeMap::new(),
            skipped: BTreeMap::new(),
            notes: Vec::new(),
            licence: None,
            partial: false,
            some_tasks: false,
            equal_runs: false,
        })
    }

    /// Sets the accounting of the outcomes, and the properties by which slices are made.
    pub(crate) fn account(&mut self, accounting: Option<Accounting>, by: &[&'static str]) {
        self.accounting = accounting;
        self.by = Some(by.to_vec());
    }

    /// Sets the accounting of one list of tasks.
    pub(crate) fn account_suite(&mut self, suite: &str, accounting: Accounting) {
        self.suite_accounting.insert(suite.to_owned(), accounting);
    }

    /// Accepts systems that were not run on every task; the importer checks what is complete.
    pub(crate) fn allow_missing_tasks(&mut self) {
        self.some_tasks = true;
    }

    /// Refuses systems that were run more often on some of their tasks than on others.
    pub(crate) fn expect_equal_runs(&mut self) {
        self.equal_runs = true;
    }

    /// Names the file that the next runs are of, so that a run which comes twice is refused.
    pub(crate) fn reading(&mut self, file: &Path) {
        self.read.push(file.to_owned());
    }

    /// The number of the file that is read, from 1; 0 where runs are not distinguished.
    pub(crate) fn file_number(&self) -> u32 {
        u32::try_from(self.read.len()).unwrap_or(u32::MAX)
    }

    /// The error for a run that was read before.
    pub(crate) fn twice(&self, run: &str, first: u32) -> ImportError {
        let path = |number: u32| (number as usize).checked_sub(1).and_then(|at| self.read.get(at));
        let here = self.read.last().map_or(Path::new("."), PathBuf::as_path);
        let found = match path(first).filter(|first| *first != here) {
            Some(first) => format!("{run}, which {} has too", input::name(first)),
            None => format!("{run} twice"),
        };
        ImportError::unexpected(here, "every run once", found)
    }

    /// The name of a report on a system: that of the source as far as an entry of karat.toml can have
    /// it. Where letters are lost that are not ASCII, or another system has the name already, a part of
    /// the digest of the source's name distinguishes them.
    pub(crate) fn name(&mut self, source: &str) -> String {
        if let Some(name) = self.names.get(source) {
            return name.clone();
        }
        let mut name = Writer::entry_name(source);
        if !source.is_ascii() || self.taken.contains(&name.to_ascii_lowercase()) {
            name = numbered_entry_name(source);
        }
        self.taken.insert(name.to_ascii_lowercase());
        self.names.insert(source.to_owned(), name.clone());
        name
    }

    /// The name of a system as an entry of karat.toml can have it.
    pub(crate) fn entry_name(source: &str) -> String {
        entry_name(source)
    }

    /// Adds a task to a list of tasks.
    pub(crate) fn task(&mut self, suite: &str, id: &str, tags: impl FnOnce() -> Tags) -> u32 {
        let tasks = self.suites.entry(suite.to_owned()).or_default();
        let next = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        tasks.entry(id.to_owned()).or_insert_with(|| (next, tags())).0
    }

    /// Adds a run of a task that [`Writer::task`] knows.
    pub(crate) fn row(&mut self, system: &str, suite: &str, row: &Row) -> Result<(), ImportError> {
        let name = self.name(system);
        let task = self.task(suite, &row.task, Tags::new);
        let file = self.file_number();
        let known = self.systems.entry(name.clone()).or_insert_with(|| System {
            source: system.to_owned(),
            suite: suite.to_owned(),
            ..System::default()
        });
        if known.suite != suite {
            return Err(ImportError::Other(format!(
                "{system}: expected outcomes of one version; found {} and {suite}: import them apart",
                known.suite
            )));
        }
        if file > 0 {
            let before = known.files.insert((task, row.trial), file);
            // Runs without a number are distinguished by their order in one file.
            if let Some(first) = before.filter(|first| row.trial.is_some() || *first != file) {
                let run = match row.trial {
                    Some(trial) => format!("trial {trial} of task {:?} of {system}", row.task),
                    None => format!("task {:?} of {system}", row.task),
                };
                return Err(self.twice(&run, first));
            }
        }
        known.rows += 1;
        *known.tasks.entry(task).or_default() += 1;
        self.line(&format!("outcomes/{name}.jsonl"), row)
    }

    /// Adds a published figure.
    pub(crate) fn publish(&mut self, figure: Published) {
        self.published.push(figure);
    }

    /// Counts a row that is not taken over.
    pub(crate) fn skip(&mut self, reason: &str) {
        self.skip_many(reason, 1);
    }

    /// Counts rows that are not taken over.
    pub(crate) fn skip_many(&mut self, reason: &str, number: u64) {
        if number > 0 {
            *self.skipped.entry(reason.to_owned()).or_default() += number;
        }
    }

    /// Notes that less was found than the benchmark is known to have.
    pub(crate) fn found_of(&mut self, found: u64, published: u64, what: &str) {
        if found < published {
            self.note(format!("found {found} of {published} {what}"));
        }
    }

    /// Counts things that are taken over.
    pub(crate) fn count(&mut self, what: &str, number: u64) {
        *self.counts.entry(what.to_owned()).or_default() += number;
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Refuses a source that lacks something, or notes it if the user accepts that.
    pub(crate) fn incomplete(&mut self, message: String) -> Result<(), ImportError> {
        if self.partial {
            self.note(message);
            return Ok(());
        }
        let advice = "half a download? `--partial` imports what is there";
        Err(ImportError::Other(format!("{message}: {advice}")))
    }

    /// Adds an entry to karat.toml: the evaluation, the name of the report, and the other keys with
    /// their values as TOML.
    pub(crate) fn entry(&mut self, evaluation: &str, name: &str, keys: &[(&str, String)]) {
        let mut table = format!("[[{evaluation}]]\nname = {}\n", quoted(name));
        for (key, value) in keys {
            table.push_str(&format!("{key} = {value}\n"));
        }
        self.entries.push((name.to_owned(), table));
    }

    /// The folder of the dataset, as a value of karat.toml.
    pub(crate) fn dataset(&self) -> String {
        quoted(&format!("datasets/{}/v1", self.benchmark))
    }

    /// Adds a line to a file of the dataset.
    pub(crate) fn line(
        &mut self,
        file: &str,
        value: &impl serde::Serialize,
    ) -> Result<(), ImportError> {
        let buffer = self.buffers.entry(file.to_owned()).or_default();
        serde_json::to_writer(&mut *buffer, value)
            .map_err(|error| ImportError::Other(format!("{file}: {error}")))?;
        buffer.push(b'\n');
        if buffer.len() >= BUFFER {
            let bytes = std::mem::take(buffer);
            self.append(file, &bytes)?;
        }
        Ok(())
    }

    /// Writes a whole file of the dataset.
    pub(crate) fn file(&mut self, file: &str, bytes: &[u8]) -> Result<(), ImportError> {
        self.append(file, bytes)
    }

    fn append(&self, file: &str, bytes: &[u8]) -> Result<(), ImportError> {
        let path = self.data.join(file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(ImportError::io(folder))?;
        }
        let open = OpenOptions::new().create(true).append(true).open(&path);
        let mut out = open.map_err(ImportError::io(&path))?;
        out.write_all(bytes).map_err(ImportError::io(&path))
    }

    /// Freezes the dataset, writes karat.toml and moves the folder to its place.
    pub(crate) fn finish(
        mut self,
        benchmark: &Benchmark,
        (digest, files): (karat_core::dataset::Digest, u64),
    ) -> Result<Imported, ImportError> {
        self.outcomes()?;
        if self.entries.is_empty() {
            let needs = benchmark.needs;
            let found = "files of which nothing can be measured";
            return Err(ImportError::Other(format!("expected {needs}; found {found}")));
        }
        for (file, bytes) in std::mem::take(&mut self.buffers) {
            self.append(&file, &bytes)?;
        }
        let stated = self.licence.as_deref().unwrap_or(benchmark.licence);
        let licence = match benchmark.restricted {
            true => format!("restricted: {stated}"),
            false => stated.to_owned(),
        };
        let made = format!(
            "imported by `karat import {}` from {} of the user's own copy, {digest}",
            benchmark.name,
            count(files, "file")
        );
        let name = benchmark.name.to_owned();
        let meta = Meta { name, version: Version::new(1), licence, made };
        Manifest::freeze(&self.data, meta, IfFrozen::Refuse)?;
        let mut text = format!(
            "# {}, imported by `karat import {}`. `karat check` measures it.\n",
            benchmark.title, benchmark.name
        );
        for (_, table) in &self.entries {
            text.push('\n');
            text.push_str(table);
        }
        let project = self.folder.path().join(FILE);
        fs::write(&project, text).map_err(ImportError::io(&project))?;
        let target = self.target.clone();
        if target.exists() {
            fs::remove_dir(&target).map_err(ImportError::io(&target))?;
        }
        let written = self.folder.keep();
        fs::rename(&written, &target).map_err(ImportError::io(&target))?;
        readable(&target)?;
        Ok(Imported {
            benchmark: benchmark.name,
            folder: target,
            entries: self.entries.into_iter().map(|(name, _)| name).collect(),
            files,
            digest: digest.to_string(),
            counts: self.counts,
            skipped: self.skipped,
            notes: self.notes,
        })
    }

    /// Writes the tasks, the published figures and the entries of the systems.
    fn outcomes(&mut self) -> Result<(), ImportError> {
        let suites = std::mem::take(&mut self.suites);
        for (suite, tasks) in &suites {
            let file = format!("tasks/{suite}.jsonl");
            for (id, (_, tags)) in tasks {
                self.line(&file, &Task { id: id.clone(), tags: tags.clone() })?;
            }
            self.count("tasks", tasks.len() as u64);
        }
        let systems = std::mem::take(&mut self.systems);
        let mut without: BTreeMap<String, u64> = BTreeMap::new();
        for mut figure in std::mem::take(&mut self.published) {
            let name = self.names.get(&figure.report);
            let Some(name) = name.filter(|name| systems.contains_key(*name)) else {
                *without.entry(figure.report).or_default() += 1;
                continue;
            };
            figure.report.clone_from(name);
            self.line("published.jsonl", &figure)?;
            self.count("published figures", 1);
        }
        if !without.is_empty() {
            let figures = without.values().sum::<u64>();
            let names: Vec<_> = without.keys().map(|name| input::shown(name)).collect();
            let first = first_few(&names, 3);
            self.note(format!(
                "{figures} published figures were not compared: no outcomes for {first}"
            ));
        }
        let figures = self.counts.contains_key("published figures");
        for (name, system) in &systems {
            let all = suites.get(&system.suite).map_or(0, BTreeMap::len);
            if system.tasks.len() < all && !self.some_tasks {
                let (source, found) = (&system.source, system.tasks.len());
                self.incomplete(format!("{source} has outcomes for {found} of {all} tasks"))?;
            }
            if let Some((fewer, most)) = system.short_of_runs().filter(|_| self.equal_runs) {
                let (source, all) = (&system.source, system.tasks.len());
                let message =
                    format!("{source} has fewer than {most} runs of {fewer} of {all} tasks");
                self.incomplete(message)?;
            }
            let mut keys = vec![
                ("dataset", self.dataset()),
                ("outcomes", quoted(&format!("outcomes/{name}.jsonl"))),
                ("tasks", quoted(&format!("tasks/{}.jsonl", system.suite))),
                ("gate", "{ max_errors = 1 }".to_owned()),
            ];
            if system.source != *name {
                keys.push(("system", quoted(&system.source)));
            }
            if figures {
                keys.push(("published", quoted("published.jsonl")));
            }
            let own = self.suite_accounting.get(&system.suite).copied();
            if let Some(accounting) = own.or(self.accounting) {
                keys.push(("accounting", quoted(accounting.name())));
            }
            if let Some(by) = &self.by {
                keys.push(("by", format!("{by:?}")));
            }
            self.entry("outcomes", name, &keys);
            self.count("systems", 1);
            self.count("runs", system.rows);
        }
        Ok(())
    }
}

/// A TOML string.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A temporary folder is private; what the user asked for is as readable as any other folder.
fn readable(folder: &Path) -> Result<(), ImportError> {
    karat_io::platform::make_readable(folder).map_err(ImportError::io(folder))
}

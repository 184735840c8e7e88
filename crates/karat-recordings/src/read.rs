//! Recorded runs, read in one pass over a folder or an archive.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use karat_core::error::EvalError;
use karat_io::input::{self, InputError, Limits, Lines, Member, members};
use karat_io::text::first_few;
use serde::{Deserialize, Serialize};

use crate::delivery::Injected;
use crate::run::Run;
use crate::store::Runs;
use crate::{agentdojo, asb};

/// The transcripts that are kept of one pipeline and attack, and of all: with many pipelines there are
/// fewer of each, so that memory does not grow with the number of runs.
const TRANSCRIPTS: usize = 20;
const ALL_TRANSCRIPTS: usize = 240;
/// The name under which runs without an attack can be asked for.
const NO_ATTACK: &str = "none";
/// The bytes of transcripts that are kept of a recording in the native format; of a larger one, the first
/// [`TRANSCRIPTS`] of each pipeline and attack are.
const TRANSCRIPT_BYTES: usize = 64 << 20;
/// The deepest folder that is looked into.
const MAX_DEPTH: usize = 24;
/// The size of one recorded run.
const LIMITS: Limits = Limits { bytes: 64 << 20, line_bytes: 16 << 20, depth: 128 };

/// The format of recorded runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// AgentDojo: a JSON file for each run.
    AgentDojo,
    /// ASB: CSV files, a row for each run.
    Asb,
    /// Karat: JSON Lines, a line for each run.
    Native,
}

impl Format {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Format::AgentDojo => "agentdojo",
            Format::Asb => "asb",
            Format::Native => "native",
        }
    }

    /// The files that hold runs, for messages.
    fn expects(self) -> &'static str {
        match self {
            Format::AgentDojo => "PIPELINE/SUITE/TASK/ATTACK/GOAL.json",
            Format::Asb => "ATTACK/MODEL/MEMORY/TEMPLATE.csv",
            Format::Native => "JSON Lines as `karat resilience run --record` writes them (.jsonl)",
        }
    }

    /// Returns whether a file of this name can hold runs.
    pub fn reads(self, name: &str) -> bool {
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        let hidden = name.rsplit('/').next().is_some_and(|file| file.starts_with('.'));
        !hidden
            && match self {
                Format::AgentDojo => ends(&[".json", ".json.gz", ".json.zst", ".json.xz"]),
                Format::Asb => ends(&[".csv", ".csv.gz", ".csv.zst", ".csv.xz"]),
                Format::Native => ends(&[".jsonl", ".jsonl.gz", ".jsonl.zst", ".jsonl.xz"]),
            }
    }
}

/// The runs that are of interest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Only these attacks, and the runs without one; all if empty.
    pub attacks: Vec<String>,
    /// Only these suites; all if empty.
    pub suites: Vec<String>,
    /// Only these pipelines; all if empty.
    pub pipelines: Vec<String>,
    /// Only the goals of this version of AgentDojo's benchmark.
    pub benchmark: Option<String>,
}

impl Filter {
    fn keeps(&self, run: &Run) -> bool {
        let among =
            |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        let attack = run.attack.as_deref();
        among(&self.suites, &run.suite)
            && among(&self.pipelines, &run.pipeline)
            && attack.is_none_or(|attack| among(&self.attacks, attack))
            && self.benchmark.as_deref().is_none_or(|version| in_benchmark(version, run))
    }

    /// # Errors
    /// If the version of the benchmark is not known.
    fn validate(&self) -> Result<(), EvalError> {
        match self.benchmark.as_deref() {
            None | Some("v1" | "v1.1" | "v1.1.1" | "v1.1.2" | "v1.2" | "v1.2.1" | "v1.2.2") => {
                Ok(())
            }
            Some(other) => Err(EvalError::config(format!(
                "benchmark {other:?} is not known; there are v1, v1.1, v1.1.1, v1.1.2, v1.2, v1.2.1, v1.2.2"
            ))),
        }
    }
}

fn in_benchmark(version: &str, run: &Run) -> bool {
    !is_added_in_1_2(&run.suite, run.goal.as_deref()) || version.starts_with("v1.2")
}

/// Returns whether a goal came with version 1.2 of AgentDojo: `workspace` had six before, and has
/// eight more since.
pub fn is_added_in_1_2(suite: &str, goal: Option<&str>) -> bool {
    suite == "workspace" && goal.and_then(number).is_some_and(|number| number >= 6)
}

fn number(goal: &str) -> Option<u32> {
    goal.strip_prefix("injection_task_")?.parse().ok()
}

/// The runs that were read, and remarks about them.
#[derive(Debug, Default)]
pub struct Recordings {
    /// The runs, in the order of pipeline, attack and id.
    pub runs: Runs,
    /// Versions of the benchmark, as the files state them.
    pub benchmarks: BTreeSet<String>,
    /// Remarks for a careful reader.
    pub warnings: Vec<String>,
}

/// Reads recorded runs from a folder, an archive (tar, tar.gz, tar.xz, tar.zst, zip) or a file.
///
/// # Errors
/// If a file is not a run in this format, or there is none.
pub fn read(path: &Path, format: Format, filter: &Filter) -> Result<Recordings, EvalError> {
    read_with(Reader::new(path, format, filter)?, [path])
}

/// The same of several places.
///
/// # Errors
/// If a file is not a run in this format, or a place has none.
pub fn read_all(
    paths: &[PathBuf],
    format: Format,
    filter: &Filter,
) -> Result<Recordings, EvalError> {
    let Some(first) = paths.first() else { return Ok(Recordings::default()) };
    read_with(Reader::new(first, format, filter)?, paths.iter().map(PathBuf::as_path))
}

/// The same with every transcript, whatever the size: the calls of runs are made again.
///
/// # Errors
/// If a file is not a run in this format, or there is none.
pub fn read_whole(path: &Path, format: Format) -> Result<Recordings, EvalError> {
    let filter = Filter::default();
    let reader = Reader { most_bytes: usize::MAX, ..Reader::new(path, format, &filter)? };
    read_with(reader, [path])
}

fn read_with<'a>(
    mut reader: Reader<'a>,
    places: impl IntoIterator<Item = &'a Path>,
) -> Result<Recordings, EvalError> {
    places.into_iter().try_for_each(|place| reader.place(place))?;
    reader.finish()
}

/// Refuses a name that no run has: what is not there must not look like what was not attacked.
fn check_known(
    place: &str,
    what: &str,
    asked: &[String],
    known: &BTreeSet<String>,
) -> Result<(), EvalError> {
    let Some(unknown) = asked.iter().find(|name| !known.contains(*name)) else { return Ok(()) };
    let known = first_few(&known.iter().collect::<Vec<_>>(), 20);
    Err(EvalError::config(format!(
        "{place}: no run has the {what} {unknown:?}; expected one of {known}"
    )))
}

/// Reads recorded runs from members that the caller finds.
pub struct Reader<'a> {
    /// The place that is read now.
    path: &'a Path,
    /// All places.
    places: Vec<&'a Path>,
    format: Format,
    filter: &'a Filter,
    recordings: Recordings,
    /// The number of runs that were read, wanted or not.
    seen: usize,
    /// The number of them whose task is a goal of the attacker.
    side: usize,
    /// The number of runs that were wanted.
    kept: usize,
    /// The number of them whose goal came with version 1.2 of AgentDojo.
    added: usize,
    attacks: BTreeSet<String>,
    suites: BTreeSet<String>,
    pipelines: BTreeSet<String>,
    /// A file that is not a run.
    other: Option<String>,
    /// Transcripts that were kept, by pipeline and attack.
    transcripts: BTreeMap<(String, Option<String>), usize>,
    /// The transcripts that may be kept of each pipeline and attack.
    each: usize,
    /// The transcripts that are kept of all.
    all: usize,
    /// The bytes of transcripts in the native format so far, and the most that are kept whole.
    bytes: usize,
    most_bytes: usize,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    /// A reader of the members of `path`.
    ///
    /// # Errors
    /// If the filter names a benchmark that is not known.
    pub fn new(
        path: &'a Path,
        format: Format,
        filter: &'a Filter,
    ) -> Result<Reader<'a>, EvalError> {
        filter.validate()?;
        Ok(Reader {
            path,
            places: vec![path],
            format,
            filter,
            recordings: Recordings::default(),
            seen: 0,
            side: 0,
            kept: 0,
            added: 0,
            attacks: BTreeSet::new(),
            suites: BTreeSet::new(),
            pipelines: BTreeSet::new(),
            other: None,
            transcripts: BTreeMap::new(),
            each: TRANSCRIPTS,
            all: 0,
            bytes: 0,
            most_bytes: TRANSCRIPT_BYTES,
            buffer: Vec::new(),
        })
    }

    /// Reads a folder, an archive or a file.
    fn place(&mut self, path: &'a Path) -> Result<(), EvalError> {
        self.path = path;
        if !self.places.contains(&path) {
            self.places.push(path);
        }
        let (format, seen, other) = (self.format, self.seen, self.other.take());
        let unread = RefCell::new(None);
        let wanted = |name: &str| {
            let reads = format.reads(name);
            if !reads {
                unread.borrow_mut().get_or_insert_with(|| name.to_owned());
            }
            reads
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Lines are read one at a time, so files of them can have any size.
        match format == Format::Native && (path.is_dir() || format.reads(&name)) {
            true => self.native_place(path, &wanted, 0)?,
            false => members(path, &LIMITS, wanted, |member| self.member(&member))?,
        }
        if self.seen == seen {
            return Err(self.nothing(unread.into_inner()));
        }
        self.other = other.or(self.other.take());
        Ok(())
    }

    /// The error for a place without runs.
    fn nothing(&self, unread: Option<String>) -> EvalError {
        EvalError::config(format!(
            "{}: no run in the format {}: expected {}, found {}",
            self.path.display(),
            self.format.name(),
            self.format.expects(),
            self.other.clone().or(unread).unwrap_or_else(|| "nothing".to_owned()),
        ))
    }

    /// Reads one member.
    ///
    /// # Errors
    /// If it is damaged, or not what the format demands.
    pub fn member(&mut self, member: &Member<'_>) -> Result<(), EvalError> {
        match self.format {
            Format::AgentDojo => self.agentdojo(member),
            Format::Asb => self.asb(member),
            Format::Native => self.native(member),
        }
    }

    /// The runs since the last call, for callers that do not want to keep all of them.
    pub fn take(&mut self) -> Vec<Run> {
        self.recordings.runs.take()
    }

    /// The runs that were not taken, in the order of pipeline, attack and id.
    ///
    /// # Errors
    /// If there was no run, or none that is wanted.
    pub fn finish(self) -> Result<Recordings, EvalError> {
        if self.seen == 0 {
            return Err(self.nothing(None));
        }
        let Reader { places, format, filter, mut recordings, seen, kept, added, other, .. } = self;
        if let Some(name) = other {
            recordings
                .warnings
                .push(format!("skipped JSON files that are not runs, such as {name}"));
        }
        let places: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
        let place = first_few(&places, 3);
        let mut attacks = self.attacks;
        attacks.insert(NO_ATTACK.to_owned());
        check_known(&place, "attack", &filter.attacks, &attacks)?;
        check_known(&place, "suite", &filter.suites, &self.suites)?;
        check_known(&place, "pipeline", &filter.pipelines, &self.pipelines)?;
        if kept == 0 && seen == self.side {
            return Err(EvalError::config(format!(
                "{place}: all of {seen} runs are of attackers' goals as users' tasks, which measure neither \
                 utility nor attacks"
            )));
        }
        if kept == 0 {
            return Err(EvalError::config(format!(
                "{place}: none of {seen} runs matches the requested attacks, suites and pipelines"
            )));
        }
        if self.bytes > self.most_bytes {
            recordings.warnings.push(format!(
                "the recording is large: the transcripts of the first {TRANSCRIPTS} runs of each pipeline \
                 and attack are kept"
            ));
        }
        if format == Format::AgentDojo && added > 0 && filter.benchmark.is_none() {
            recordings.warnings.push(format!(
                "{added} runs are of goals that benchmark v1.2 added; published tables of v1.1.2 leave \
                 them out, as --benchmark v1.1.2 does"
            ));
        }
        recordings.runs.sort();
        Ok(recordings)
    }

    fn add(&mut self, run: Run) {
        self.seen += 1;
        let seen = [
            (&mut self.attacks, run.attack.as_ref()),
            (&mut self.suites, Some(&run.suite)),
            (&mut self.pipelines, Some(&run.pipeline)),
        ];
        for (names, name) in seen {
            if let Some(name) = name.filter(|name| !names.contains(*name)) {
                names.insert(name.clone());
            }
        }
        if self.filter.keeps(&run) {
            self.kept += 1;
            self.added += usize::from(!in_benchmark("v1.1.2", &run));
            self.recordings.runs.push(run);
        }
    }

    fn agentdojo(&mut self, member: &Member<'_>) -> Result<(), EvalError> {
        let Reader { transcripts, each, all, buffer, filter, .. } = self;
        let transcript = |run: &Run| {
            if run.error.is_some() || run.success != Some(true) || !filter.keeps(run) {
                return false;
            }
            let count = transcripts.entry((run.pipeline.clone(), run.attack.clone())).or_default();
            *count += 1;
            *all += usize::from(*count <= *each);
            *count <= *each
        };
        let bytes = member.bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(member.bytes);
        let mut read = agentdojo::read(member.name, bytes, buffer, transcript);
        if let Err(error) = &read
            && error.is_syntax()
            && let Some(plain) = agentdojo::without_nan(bytes)
        {
            read = agentdojo::read(member.name, &plain, buffer, |_| false);
        }
        match read {
            Ok(read) => {
                // Runs of an attacker's goal as a user's task do not measure utility.
                let side = read.run.task.starts_with("injection_task_");
                if let Some(version) = read.benchmark
                    && !self.recordings.benchmarks.contains(&version)
                {
                    self.recordings.benchmarks.insert(version);
                }
                if side {
                    (self.seen, self.side) = (self.seen + 1, self.side + 1);
                } else {
                    self.add(read.run);
                    self.trim_transcripts();
                }
                Ok(())
            }
            // A file of another kind, such as settings, is passed over; a broken one is not.
            Err(error)
                if error.is_data()
                    && !agentdojo::is_run(bytes)
                    && !agentdojo::is_named_as_run(member.name) =>
            {
                self.other.get_or_insert_with(|| member.name.to_owned());
                Ok(())
            }
            Err(error) => {
                let place = format!("{}:{}", member.name, error.line());
                let why = match bytes {
                    [] => "the file is empty".to_owned(),
                    _ if bytes.starts_with(b"version https://git-lfs") => {
                        "this is a pointer of Git LFS; fetch the file itself".to_owned()
                    }
                    _ => format!(
                        "expected a run of AgentDojo, {{\"suite_name\", \"user_task_id\", \"messages\", …}}; \
                         found something else: {error}"
                    ),
                };
                Err(InputError::invalid(self.path, place, why).into())
            }
        }
    }

    /// Keeps fewer transcripts of each pipeline and attack once there are too many of all.
    fn trim_transcripts(&mut self) {
        while self.all > ALL_TRANSCRIPTS && self.each > 1 {
            self.each /= 2;
            self.recordings.runs.trim_transcripts(self.each);
            self.all = self.transcripts.values().map(|count| (*count).min(self.each)).sum();
        }
    }

    fn text(&self, member: &Member<'_>) -> Result<String, InputError> {
        input::decode(&self.path.join(member.name).to_string_lossy(), member.bytes, &LIMITS)
    }

    fn asb(&mut self, member: &Member<'_>) -> Result<(), EvalError> {
        let text = self.text(member)?;
        // The folders above the file say what was run.
        let above = self.path.to_string_lossy();
        let name = match self.path.is_dir() || member.name.contains('/') {
            true => format!("{above}/{}", member.name),
            false => above.into_owned(),
        };
        let runs = asb::read(&name, &text).map_err(|(line, message)| {
            InputError::invalid(self.path, format!("{}:{line}", member.name), message)
        })?;
        runs.into_iter().for_each(|run| self.add(run));
        Ok(())
    }

    fn native(&mut self, member: &Member<'_>) -> Result<(), EvalError> {
        let name = self.path.join(member.name);
        let limits = Limits { bytes: u64::MAX, ..LIMITS };
        self.native_runs(Lines::of(&name.to_string_lossy(), member.bytes, &limits)?)
    }

    /// Reads the files of a folder in the order of their names, or one file.
    fn native_place(
        &mut self,
        path: &Path,
        wanted: &impl Fn(&str) -> bool,
        depth: usize,
    ) -> Result<(), EvalError> {
        if !path.is_dir() {
            let limits = Limits { bytes: u64::MAX, ..LIMITS };
            return self.native_runs(input::lines(path, &limits)?);
        }
        let failed = |error: std::io::Error| InputError::invalid(path, "folder", error.to_string());
        if depth > MAX_DEPTH {
            return Err(InputError::invalid(path, "folder", "folders are nested too deeply").into());
        }
        let listed = std::fs::read_dir(path).map_err(failed)?;
        let mut entries = listed.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            if is_folder || wanted(&entry.file_name().to_string_lossy()) {
                self.native_place(&entry.path(), wanted, depth + 1)?;
            }
        }
        Ok(())
    }

    fn native_runs(&mut self, lines: Lines<'_>) -> Result<(), EvalError> {
        for record in lines.records::<Run>() {
            let (_, mut run) = record?;
            if run.is_attacked() && run.delivered.is_none() && !run.steps.is_empty() {
                let injected = Injected::new(run.injected.iter().map(String::as_str));
                let mut tools = run.steps.iter().filter(|step| step.role == "tool");
                let found = tools.any(|step| injected.is_in(&step.text, &mut self.buffer));
                run.delivered = (!injected.is_empty()).then_some(found);
            }
            self.bound_transcripts(&mut run);
            self.add(run);
        }
        Ok(())
    }

    /// Keeps the first transcripts alone once there are too many bytes of them.
    fn bound_transcripts(&mut self, run: &mut Run) {
        let texts = run.steps.iter().map(|step| step.text.len());
        let size: usize = texts.chain(run.injected.iter().map(String::len)).sum();
        let count = self.transcripts.entry((run.pipeline.clone(), run.attack.clone())).or_default();
        *count += 1;
        let is_late = *count > TRANSCRIPTS;
        let was_small = self.bytes <= self.most_bytes;
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes <= self.most_bytes {
            return;
        }
        if was_small {
            self.recordings.runs.trim_transcripts(TRANSCRIPTS);
        }
        if is_late {
            (run.injected, run.steps, run.changes) = (Vec::new(), Vec::new(), Vec::new());
        }
    }
}

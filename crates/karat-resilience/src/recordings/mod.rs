//! Recorded runs, read in one pass over a folder or an archive.

mod agentdojo;
mod asb;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::error::EvalError;
use karat_io::input::{self, InputError, Limits, Member, members};
use serde::{Deserialize, Serialize};

use crate::delivery::Injected;
use crate::run::Run;

/// The transcripts that are kept of one pipeline and attack.
const TRANSCRIPTS: usize = 20;
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

    fn reads(self, name: &str) -> bool {
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        let hidden = name.rsplit('/').next().is_some_and(|file| file.starts_with('.'));
        !hidden
            && match self {
                Format::AgentDojo => ends(&[".json", ".json.gz", ".json.zst", ".json.xz"]),
                Format::Asb => ends(&[".csv"]),
                Format::Native => ends(&[".jsonl", ".jsonl.gz", ".jsonl.zst", ".jsonl.xz"]),
            }
    }
}

/// The runs that are of interest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Only these attacks, and the runs without one; all if empty.
    #[serde(default)]
    pub attacks: Vec<String>,
    /// Only these suites; all if empty.
    #[serde(default)]
    pub suites: Vec<String>,
    /// Only these pipelines; all if empty.
    #[serde(default)]
    pub pipelines: Vec<String>,
    /// Only the goals of this version of AgentDojo's benchmark.
    #[serde(default)]
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

/// Versions before 1.2 have six goals in `workspace`; later ones add eight.
fn in_benchmark(version: &str, run: &Run) -> bool {
    let added = run.suite == "workspace"
        && run.goal.as_deref().and_then(number).is_some_and(|number| number >= 6);
    !added || version.starts_with("v1.2")
}

fn number(goal: &str) -> Option<u32> {
    goal.strip_prefix("injection_task_")?.parse().ok()
}

/// The runs that were read, and remarks about them.
#[derive(Debug, Default)]
pub struct Recordings {
    /// The runs, in the order of pipeline, attack and id.
    pub runs: Vec<Run>,
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
    filter.validate()?;
    let mut reading = Reading::new(path, format, filter);
    members(path, &LIMITS, |name| format.reads(name), |member| reading.member(&member))?;
    let Reading { mut recordings, seen, other, attacks, suites, pipelines, .. } = reading;
    if seen == 0 {
        return Err(EvalError::config(format!(
            "{}: there is no run in the format {}{}",
            path.display(),
            format.name(),
            other.map(|name| format!("; {name} is none")).unwrap_or_default(),
        )));
    }
    if let Some(name) = other {
        recordings
            .warnings
            .push(format!("JSON files that are no runs were skipped, such as {name}"));
    }
    let place = path.display().to_string();
    check_known(&place, "attack", &filter.attacks, &attacks)?;
    check_known(&place, "suite", &filter.suites, &suites)?;
    check_known(&place, "pipeline", &filter.pipelines, &pipelines)?;
    if recordings.runs.is_empty() {
        return Err(EvalError::config(format!(
            "{place}: none of {seen} runs is of the attacks, suites and pipelines that were asked for"
        )));
    }
    let added = recordings.runs.iter().filter(|run| !in_benchmark("v1.1.2", run)).count();
    if format == Format::AgentDojo && added > 0 && filter.benchmark.is_none() {
        recordings.warnings.push(format!(
            "{added} runs are of goals that benchmark v1.2 added; published tables of v1.1.2 leave them \
             out, as --benchmark v1.1.2 does"
        ));
    }
    recordings.runs.sort_by_cached_key(|run| (run.pipeline.clone(), run.attack.clone(), run.id()));
    Ok(recordings)
}

/// Refuses a name that no run has: what is not there must not look like what was not attacked.
fn check_known(
    place: &str,
    what: &str,
    asked: &[String],
    known: &BTreeSet<String>,
) -> Result<(), EvalError> {
    let Some(unknown) = asked.iter().find(|name| !known.contains(*name)) else { return Ok(()) };
    let known = known.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
    Err(EvalError::config(format!(
        "{place}: no run has the {what} {unknown:?}; there are: {known}"
    )))
}

struct Reading<'a> {
    path: &'a Path,
    format: Format,
    filter: &'a Filter,
    recordings: Recordings,
    /// The runs that were read, wanted or not.
    seen: usize,
    attacks: BTreeSet<String>,
    suites: BTreeSet<String>,
    pipelines: BTreeSet<String>,
    /// A file that is no run.
    other: Option<String>,
    /// Transcripts that were kept, by pipeline and attack.
    kept: BTreeMap<(String, Option<String>), usize>,
    buffer: Vec<u8>,
}

impl<'a> Reading<'a> {
    fn new(path: &'a Path, format: Format, filter: &'a Filter) -> Reading<'a> {
        Reading {
            path,
            format,
            filter,
            recordings: Recordings::default(),
            seen: 0,
            attacks: BTreeSet::new(),
            suites: BTreeSet::new(),
            pipelines: BTreeSet::new(),
            other: None,
            kept: BTreeMap::new(),
            buffer: Vec::new(),
        }
    }

    fn member(&mut self, member: &Member<'_>) -> Result<(), EvalError> {
        match self.format {
            Format::AgentDojo => self.agentdojo(member),
            Format::Asb => self.asb(member),
            Format::Native => self.native(member),
        }
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
            self.recordings.runs.push(run);
        }
    }

    fn agentdojo(&mut self, member: &Member<'_>) -> Result<(), EvalError> {
        let Reading { kept, buffer, filter, .. } = self;
        let transcript = |run: &Run| {
            if run.error.is_some() || run.success != Some(true) || !filter.keeps(run) {
                return false;
            }
            let count = kept.entry((run.pipeline.clone(), run.attack.clone())).or_default();
            *count += 1;
            *count <= TRANSCRIPTS
        };
        match agentdojo::read(member.name, member.bytes, buffer, transcript) {
            Ok(read) => {
                // Runs of an attacker's goal as a user's task are no measure of utility.
                let side = read.run.task.starts_with("injection_task_");
                if let Some(version) = read.benchmark
                    && !self.recordings.benchmarks.contains(&version)
                {
                    self.recordings.benchmarks.insert(version);
                }
                if side {
                    self.seen += 1;
                } else {
                    self.add(read.run);
                }
                Ok(())
            }
            // A file of another kind, such as settings, is passed over; a broken one is not.
            Err(error) if error.is_data() => {
                self.other.get_or_insert_with(|| member.name.to_owned());
                Ok(())
            }
            Err(error) => {
                let place = format!("{}:{}", member.name, error.line());
                Err(InputError::invalid(self.path, place, error.to_string()).into())
            }
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
        let text = self.text(member)?;
        let path = self.path.join(member.name);
        let mut runs: Vec<Run> =
            input::parse_with(&path, &text, input::Format::JsonLines, &LIMITS)?;
        for run in &mut runs {
            if run.is_attacked() && run.delivered.is_none() && !run.steps.is_empty() {
                let injected = Injected::new(run.injected.iter().map(String::as_str));
                let mut tools = run.steps.iter().filter(|step| step.role == "tool");
                let found = tools.any(|step| injected.is_in(&step.text, &mut self.buffer));
                run.delivered = (!injected.is_empty()).then_some(found);
            }
        }
        runs.into_iter().for_each(|run| self.add(run));
        Ok(())
    }
}

//! From karat.toml to a plan: everything that can be wrong with a project is found here, before
//! anything runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::baseline::Baseline;
use karat_core::compare::same_data;
use karat_core::dataset::DatasetFiles;
use karat_core::gate::{GateError, Policy};
use karat_core::report::{DatasetRef, Evaluation};
use karat_detection::dataset::{Dataset as Threats, Sample};
use karat_io::input::{self, Format, Limits, destination};
use karat_retrieval::dataset::{Dataset as Tools, Labels};
use karat_server::suite::Suite;
use serde::Deserialize;

use crate::bundled;
use crate::exit::{Stop, check_owner, missing_baseline};

/// The name of a project file.
pub(crate) const FILE: &str = "karat.toml";

/// How the name of a dataset inside the binary begins.
const BUNDLED: &str = "bundled:";

/// karat.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectFile {
    /// The project's name; shown, never interpreted.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that a project can name itself")]
    name: Option<String>,
    /// Where reports are kept over time.
    #[serde(default)]
    history: HistoryFile,
    /// The retrieval entries.
    #[serde(default)]
    retrieval: Vec<karat_retrieval::Entry>,
    /// The detection entries.
    #[serde(default)]
    detection: Vec<karat_detection::Entry>,
    /// The server entries.
    #[serde(default)]
    server: Vec<karat_server::Entry>,
    /// The agent entries.
    #[serde(default)]
    agent: Vec<karat_agent::Entry>,
}

/// The part of karat.toml about the history.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryFile {
    /// The file, inside the project; every check adds its report to it.
    file: Option<PathBuf>,
}

/// What a project says of its history.
pub(crate) struct History {
    pub(crate) folder: PathBuf,
    /// The file that the project names.
    pub(crate) file: Option<PathBuf>,
}

/// What the project that was named, or the one in this folder, says of its history.
pub(crate) fn history(named: Option<&Path>) -> Result<History, Stop> {
    let (root, path, text) = find(named)?;
    let file: ProjectFile = input::parse(&path, &text, Format::Toml)?;
    let folder = root.folder().to_owned();
    Ok(History { file: file.history.file.map(|file| folder.join(file)), folder })
}

/// Where a project's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A folder.
    Folder(PathBuf),
    /// Inside the binary.
    Bundled,
}

/// A project that is ready to run.
pub(crate) struct Plan {
    pub(crate) root: Root,
    pub(crate) entries: Vec<Planned>,
}

/// One entry with what it needs.
pub(crate) struct Planned {
    pub(crate) task: Task,
    pub(crate) baseline: Option<Baseline>,
}

/// What is to be measured, on what.
pub(crate) enum Task {
    Retrieval { entry: Box<karat_retrieval::Entry>, dataset: Tools },
    Detection { entry: Box<karat_detection::Entry>, dataset: Threats },
    Server { entry: Box<karat_server::Entry>, suite: Suite, dataset: DatasetRef },
    Agent { entry: Box<karat_agent::Entry>, loaded: Box<karat_agent::Loaded>, dataset: DatasetRef },
}

impl Task {
    /// A server entry with its suite.
    pub(crate) fn server(entry: karat_server::Entry, suite: Suite) -> Task {
        let dataset = karat_server::reference(&suite);
        Task::Server { entry: Box::new(entry), suite, dataset }
    }

    /// An agent entry with what it names.
    pub(crate) fn agent(entry: karat_agent::Entry, loaded: karat_agent::Loaded) -> Task {
        let dataset = loaded.reference();
        Task::Agent { entry: Box::new(entry), loaded: Box::new(loaded), dataset }
    }

    pub(crate) fn evaluation(&self) -> Evaluation {
        match self {
            Task::Agent { .. } => Evaluation::Agent,
            Task::Retrieval { .. } => Evaluation::Retrieval,
            Task::Detection { .. } => Evaluation::Detection,
            Task::Server { .. } => Evaluation::Server,
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Task::Retrieval { entry, .. } => &entry.name,
            Task::Detection { entry, .. } => &entry.name,
            Task::Server { entry, .. } => &entry.name,
            Task::Agent { entry, .. } => &entry.name,
        }
    }

    /// How messages and files call it.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.evaluation(), self.name())
    }

    pub(crate) fn gate(&self) -> &Policy {
        match self {
            Task::Retrieval { entry, .. } => &entry.gate,
            Task::Detection { entry, .. } => &entry.gate,
            Task::Server { entry, .. } => &entry.gate,
            Task::Agent { entry, .. } => &entry.gate,
        }
    }

    /// The baseline file as the project names it.
    pub(crate) fn baseline_path(&self) -> Option<&Path> {
        match self {
            Task::Retrieval { entry, .. } => entry.baseline.as_deref(),
            Task::Detection { entry, .. } => entry.baseline.as_deref(),
            Task::Server { entry, .. } => entry.baseline.as_deref(),
            Task::Agent { entry, .. } => entry.baseline.as_deref(),
        }
    }

    /// The files and folders that the entry is measured with, as the project names them.
    fn reads(&self) -> Vec<&Path> {
        let own = |name: &&String| !name.starts_with(BUNDLED);
        let mut reads: Vec<&Path> = self.baseline_path().into_iter().collect();
        match self {
            Task::Retrieval { entry, .. } => {
                reads.extend(entry.dataset.iter().filter(own).map(Path::new));
                reads.extend(entry.corpus.iter().chain(&entry.golden).map(PathBuf::as_path));
            }
            Task::Detection { entry, .. } => {
                let datasets = entry.dataset.iter().chain(&entry.benign_from);
                reads.extend(datasets.filter(own).map(Path::new));
                reads.extend(entry.corpus.as_deref());
            }
            Task::Server { entry, .. } => reads.push(&entry.suite),
            Task::Agent { entry, .. } => {
                let datasets = entry.dataset.iter().chain(&entry.tools);
                reads.extend(datasets.filter(own).map(Path::new));
                let files = entry.traces.iter().chain(&entry.tasks).chain(&entry.verdicts);
                reads.extend(files.map(PathBuf::as_path));
            }
        }
        reads
    }

    /// Finds what the gate asks for and no report of this entry can have, as far as that is known
    /// before it is measured: a server's and an agent's metrics depend on what they do.
    fn check_gate(&self) -> Result<(), GateError> {
        let (metrics, slices) = match self {
            Task::Retrieval { entry, dataset } => {
                let counted = entry.answer_tokens.unwrap_or(!entry.system.is_builtin());
                let specs = karat_retrieval::score::SPECS.iter();
                let specs = specs.chain(counted.then_some(&karat_retrieval::score::ANSWER_TOKENS));
                let metrics: Vec<&str> = specs.map(|spec| spec.id).collect();
                (metrics, karat_retrieval::score::slices(dataset))
            }
            Task::Detection { dataset, .. } => {
                (karat_detection::score::metric_ids(), karat_detection::score::slices(dataset))
            }
            Task::Server { .. } | Task::Agent { .. } => return Ok(()),
        };
        let gate = self.gate();
        let protected = gate.protected.as_ref().map(|protected| protected.slice.as_str());
        for slice in gate.slice.as_deref().into_iter().chain(protected) {
            // What a scanner says of itself makes slices that no dataset knows.
            let open = self.evaluation() == Evaluation::Detection
                && !slices.iter().any(|(by, _)| slice.split('=').next() == Some(by));
            if open {
                return Ok(());
            }
            let known: Vec<String> =
                slices.iter().map(|(by, value)| format!("{by}={value}")).collect();
            if !known.iter().any(|known| known == slice) {
                let known = known.into_iter().take(20).collect::<Vec<_>>().join(", ");
                return Err(GateError::NoSlice { slice: slice.to_owned(), known });
            }
        }
        let named = gate.metrics.keys().chain(gate.protected.iter().map(|one| &one.metric));
        match named.into_iter().find(|id| !metrics.contains(&id.as_str())) {
            None => Ok(()),
            Some(id) => Err(GateError::NotComputed {
                id: id.clone(),
                place: String::new(),
                known: metrics.join(", "),
            }),
        }
    }

    /// Labels whose tool the corpus does not have any more, as query and tool.
    pub(crate) fn dangling(&self) -> Vec<(&str, &str)> {
        match self {
            Task::Retrieval { dataset, .. } => dataset
                .dangling
                .iter()
                .map(|label| (label.query.as_str(), label.tool_id.as_str()))
                .collect(),
            Task::Detection { .. } | Task::Server { .. } | Task::Agent { .. } => Vec::new(),
        }
    }

    fn dataset(&self) -> &DatasetRef {
        match self {
            Task::Retrieval { dataset, .. } => &dataset.reference,
            Task::Detection { dataset, .. } => &dataset.reference,
            Task::Server { dataset, .. } | Task::Agent { dataset, .. } => dataset,
        }
    }
}

/// What to do about baselines that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baselines {
    /// A baseline that the entry names must exist.
    Needed,
    /// It is about to be written, so it may be missing or of other data.
    Optional,
}

impl Plan {
    /// Reads the project that was named, or the one in this folder, or the bundled one.
    pub(crate) fn load(named: Option<&Path>, baselines: Baselines) -> Result<Plan, Stop> {
        let (root, path, text) = find(named)?;
        let file: ProjectFile = input::parse(&path, &text, Format::Toml)?;
        let mut tasks = Vec::new();
        for entry in file.retrieval {
            check_numbers(&path, &entry.name, entry.runs, entry.concurrency, entry.timeout_ms)?;
            if !(1..=10_000).contains(&entry.limit) {
                return Err(bad(&path, &entry.name, "limit goes from 1 to 10000"));
            }
            entry.system.reference().map_err(|error| bad(&path, &entry.name, error))?;
            entry.gate.validate().map_err(|error| bad(&path, &entry.name, error))?;
            let dataset = root.tools(&path, &entry)?;
            tasks.push(Task::Retrieval { entry: Box::new(entry), dataset });
        }
        for entry in file.detection {
            check_numbers(&path, &entry.name, entry.runs, entry.concurrency, entry.timeout_ms)?;
            entry.system.reference().map_err(|error| bad(&path, &entry.name, error))?;
            entry.gate.validate().map_err(|error| bad(&path, &entry.name, error))?;
            let dataset = root.threats(&path, &entry)?;
            tasks.push(Task::Detection { entry: Box::new(entry), dataset });
        }
        for mut entry in file.server {
            check_numbers(&path, &entry.name, 1, 1, entry.timeout_ms.min(entry.start_timeout_ms))?;
            entry.gate = entry.policy();
            entry.gate.validate().map_err(|error| bad(&path, &entry.name, error))?;
            let suite = root.suite(&entry.suite)?;
            tasks.push(Task::server(entry, suite));
        }
        for entry in file.agent {
            check_numbers(&path, &entry.name, 1, 1, 1)?;
            entry.gate.validate().map_err(|error| bad(&path, &entry.name, error))?;
            let loaded = root.agent(&path, &entry)?;
            tasks.push(Task::agent(entry, loaded));
        }
        if tasks.is_empty() {
            return Err(Stop::bad_input(format!(
                "{}: the project has no entry; `karat init` writes one to start from",
                path.display()
            )));
        }
        let mut labels = BTreeSet::new();
        if let Some(twice) = tasks.iter().find(|task| !labels.insert(task.label())) {
            let message = format!("two {} entries have this name", twice.evaluation());
            return Err(bad(&path, twice.name(), message));
        }
        let entries = tasks
            .into_iter()
            .map(|task| root.planned(&path, task, baselines))
            .collect::<Result<_, _>>()?;
        Ok(Plan { root, entries })
    }
}

impl Plan {
    /// The files and folders that the project is measured with.
    pub(crate) fn reads(&self) -> Vec<PathBuf> {
        let Root::Folder(folder) = &self.root else { return Vec::new() };
        let all = destination(folder);
        let named = self.entries.iter().flat_map(|planned| planned.task.reads());
        std::iter::once(Path::new(FILE))
            .chain(named)
            .map(|name| folder.join(name))
            // That the whole project lies in a folder does not make every file of it one that is read.
            .filter(|path| !all.starts_with(destination(path)))
            .collect()
    }
}

fn find(named: Option<&Path>) -> Result<(Root, PathBuf, String), Stop> {
    let here = Path::new(FILE);
    let path = match named {
        Some(folder) if folder.is_dir() => Some(folder.join(FILE)),
        Some(file) => Some(file.to_owned()),
        None => here.exists().then(|| here.to_owned()),
    };
    if let Some(path) = path {
        let text = input::read_text(&path, &Limits::default())?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        return Ok((Root::Folder(folder), path, text));
    }
    let text = bundled::file(FILE)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .ok_or_else(|| Stop::bad_input("the bundled project is missing from this build"))?;
    Ok((Root::Bundled, PathBuf::from("(bundled) karat.toml"), text.to_owned()))
}

fn bad(path: &Path, entry: &str, message: impl std::fmt::Display) -> Stop {
    Stop::bad_input(format!("{}: {entry}: {message}", path.display()))
}

/// What serde cannot see: a name that is no file name, numbers that make no sense.
fn check_numbers(
    path: &Path,
    name: &str,
    runs: u32,
    concurrency: usize,
    timeout_ms: u64,
) -> Result<(), Stop> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(plain) || name.starts_with('.') {
        return Err(bad(path, name, "a name is made of letters, digits, '-', '_' and '.'"));
    }
    if !(1..=10_000).contains(&runs) || !(1..=10_000).contains(&concurrency) {
        return Err(bad(path, name, "runs and concurrency go from 1 to 10000"));
    }
    if timeout_ms == 0 {
        return Err(bad(path, name, "timeout_ms must be at least 1"));
    }
    Ok(())
}

impl Root {
    /// The folder that relative paths, commands and reports belong to.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Root::Folder(folder) => folder,
            Root::Bundled => Path::new("."),
        }
    }

    fn tools(&self, path: &Path, entry: &karat_retrieval::Entry) -> Result<Tools, Stop> {
        match (&entry.dataset, &entry.corpus, &entry.golden) {
            (Some(folder), None, None) => Ok(Tools::open(self.dataset(folder)?)?),
            (None, Some(corpus), Some(golden)) => {
                let folder = self.folder();
                let (corpus, golden) = (folder.join(corpus), folder.join(golden));
                Ok(Tools::from_files(&corpus, &golden, Labels::MayDangle)?)
            }
            _ => Err(bad(path, &entry.name, "give either dataset, or corpus and golden")),
        }
    }

    fn threats(&self, path: &Path, entry: &karat_detection::Entry) -> Result<Threats, Stop> {
        let threats = match (&entry.dataset, &entry.corpus) {
            (Some(folder), None) => Threats::open(self.dataset(folder)?)?,
            (None, Some(corpus)) => Threats::from_file(&self.folder().join(corpus))?,
            _ => return Err(bad(path, &entry.name, "give either dataset or corpus")),
        };
        let Some(folder) = &entry.benign_from else { return Ok(threats) };
        let tools = Tools::open(self.dataset(folder)?)?;
        let plain = tools.tools.iter().map(plain_benign).collect();
        Ok(threats.with_plain_benign(plain, &tools.reference)?)
    }

    fn suite(&self, file: &Path) -> Result<Suite, Stop> {
        let suite = match self {
            Root::Folder(folder) => Suite::load(&folder.join(file)),
            Root::Bundled => {
                let bytes = bundled::file(&file.to_string_lossy()).unwrap_or_default();
                Suite::parse(file, bytes)
            }
        };
        suite.map_err(|error| karat_server::ServerError::from(error).into())
    }

    fn agent(&self, path: &Path, entry: &karat_agent::Entry) -> Result<karat_agent::Loaded, Stop> {
        let metrics = karat_agent::usual_metrics();
        let mut tools = match self {
            Root::Folder(folder) => crate::commands::agent::tools(&entry.tools, folder)?,
            Root::Bundled => {
                let mut tools = karat_agent::Tools::default();
                for folder in &entry.tools {
                    tools.load_dataset(self.dataset(folder)?)?;
                }
                tools
            }
        };
        let wrong = |message: &str| Err(bad(path, &entry.name, message));
        let recorded = match (&entry.dataset, &entry.traces[..]) {
            (Some(folder), []) => karat_agent::Recorded::open(self.dataset(folder)?, &mut tools)?,
            (None, []) | (Some(_), _) => return wrong("give either dataset or traces"),
            (None, files) => {
                if !(0.0..=1.0).contains(&entry.max_bad) {
                    return wrong("max_bad goes from 0 to 1");
                }
                let inside = |files: &[PathBuf]| -> Vec<PathBuf> {
                    files.iter().map(|file| self.folder().join(file)).collect()
                };
                let tasks = inside(&entry.tasks);
                let paths: Vec<&Path> = tasks.iter().map(PathBuf::as_path).collect();
                let tasks = match paths.is_empty() {
                    true => None,
                    false => Some(karat_agent::Tasks::load(&paths)?),
                };
                karat_agent::Recorded::read(&karat_agent::Source {
                    files: &inside(files),
                    shape: entry.format,
                    tasks: tasks.as_ref(),
                    max_bad: entry.max_bad,
                    metrics: &metrics,
                })?
            }
        };
        let verdicts = entry.verdicts.as_ref().map(|file| self.folder().join(file));
        let verdicts = verdicts.as_deref().map(karat_agent::judge::Verdicts::load).transpose()?;
        Ok(karat_agent::Loaded { recorded, tools, metrics, verdicts, before: None })
    }

    fn planned(&self, path: &Path, task: Task, baselines: Baselines) -> Result<Planned, Stop> {
        task.check_gate().map_err(|error| bad(path, task.name(), error))?;
        let baseline = match task.baseline_path() {
            Some(file) => self.baseline(file, task.name(), baselines)?,
            None => None,
        };
        // With dangling labels the corpus is another one than the baseline's, the gate fails in any
        // case, and which labels they are is more useful to know than that the digests differ.
        if !task.dangling().is_empty() {
            return Ok(Planned { task, baseline: None });
        }
        if baselines == Baselines::Needed {
            let wrong = |error: &dyn std::fmt::Display| bad(path, task.name(), error);
            match &baseline {
                Some(baseline) => {
                    same_data(&baseline.dataset, task.dataset()).map_err(|error| wrong(&error))?;
                    task.gate().covered_by(baseline).map_err(|error| wrong(&error))?;
                }
                None if task.gate().needs_baseline() => {
                    return Err(wrong(
                        &"the gate compares with a baseline; add `baseline = \"baselines/….json\"` \
                          and record it with `karat baseline update`",
                    ));
                }
                None => {}
            }
        }
        Ok(Planned { task, baseline })
    }

    fn dataset(&self, folder: &str) -> Result<DatasetFiles, Stop> {
        match (folder.strip_prefix(BUNDLED), self) {
            (Some(name), _) => bundled::named_dataset(name),
            (None, Root::Bundled) => bundled::dataset(folder),
            (None, Root::Folder(root)) => Ok(DatasetFiles::Folder(root.join(folder))),
        }
    }

    fn baseline(
        &self,
        file: &Path,
        name: &str,
        baselines: Baselines,
    ) -> Result<Option<Baseline>, Stop> {
        let shown = match self {
            Root::Folder(folder) => folder.join(file),
            Root::Bundled => file.to_owned(),
        };
        let text = match self {
            Root::Folder(_) if !shown.exists() => None,
            Root::Folder(_) => Some(input::read_text(&shown, &Limits::default())?),
            Root::Bundled => bundled::file(&file.to_string_lossy())
                .and_then(|bytes| std::str::from_utf8(bytes).ok())
                .map(str::to_owned),
        };
        match (text, baselines) {
            (Some(text), _) => {
                let baseline = Baseline::parse(&shown, &text)?;
                check_owner(&baseline, &shown.display().to_string(), name)?;
                Ok(Some(baseline))
            }
            (None, Baselines::Optional) => Ok(None),
            (None, Baselines::Needed) => Err(missing_baseline(&shown.display().to_string())),
        }
    }
}

/// A tool of the tools corpus as an entry that no scanner should flag.
fn plain_benign(tool: &karat_retrieval::dataset::Tool) -> Sample {
    let definition = karat_detection::dataset::Tool {
        name: tool.tool.clone(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        input_schema: Some(tool.input_schema.clone()),
        output_schema: tool.output_schema.clone(),
        annotations: tool.annotations.clone(),
    };
    Sample::plain(format!("plain-{}", tool.tool_id), tool.server.clone(), definition)
}

//! The evaluation of outcomes that were judged elsewhere: an `[[outcomes]]` entry.
//!
//! A benchmark publishes whether each run of each task succeeded. Karat counts them twice: as the
//! benchmark does, under the benchmark's name, and by its own rules, by which a run that failed for a
//! reason outside the agent is not measured. Items are tasks, so every interval is drawn by tasks.

mod accounting;
mod rows;
mod score;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_core::dataset::{Dataset, Digest, FilePath};
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Entry, Evaluation, NeverAsked, Observations, Questions, RunContext, Scored, Start,
    nothing_to_ask,
};
use karat_core::journal::Entry as Asked;
use karat_core::kind::Kind;
use karat_core::project::{Root, own_datasets};
use karat_core::report::{DatasetRef, SystemRef};
use karat_core::run::Failures;
use karat_io::input::{self, Format, Limits};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use self::accounting::Accounting;
pub(crate) use self::rows::Tags;
pub(crate) use self::rows::clipped;
pub use self::rows::{Published, Row, Task};

/// The evaluation of recorded outcomes.
pub struct Outcomes;

/// An `[[outcomes]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A frozen dataset that holds the files below; without it they are files of the project.
    pub dataset: Option<String>,
    /// The file of outcomes, one JSON line for each run.
    pub outcomes: PathBuf,
    /// The file of tasks, one JSON line for each; without it, the tasks are those with outcomes.
    pub tasks: Option<PathBuf>,
    /// The file of published figures to compare with.
    pub published: Option<PathBuf>,
    /// The benchmark whose own accounting is shown with Karat's.
    pub accounting: Option<Accounting>,
    /// The properties by which slices are made; all by default.
    pub by: Option<Vec<String>>,
    /// The system that made the outcomes, if that is not the name of the entry.
    pub system: Option<String>,
}

/// Everything that an entry names, read.
pub struct Data {
    reference: DatasetRef,
    tasks: Vec<(Task, Vec<Row>)>,
    published: Vec<Published>,
}

impl Data {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.tasks.iter().flat_map(|(_, rows)| rows)
    }

    /// The number of runs of the task that was run most often.
    fn runs(&self) -> usize {
        self.tasks.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0)
    }
}

/// The place of an entry's files.
enum Place<'a> {
    Dataset(Box<Dataset>),
    Project(&'a Root<'a>),
}

impl Place<'_> {
    fn bytes(&self, file: &Path) -> Result<Vec<u8>, EvalError> {
        match self {
            Place::Project(root) => Ok(root.bytes(file)?),
            Place::Dataset(dataset) => {
                let path: FilePath = file.to_string_lossy().parse().map_err(|error| {
                    EvalError::config(format!("{}: {error}", input::name(file)))
                })?;
                Ok(dataset.bytes(&path, &Limits::default())?)
            }
        }
    }

    fn list<T: DeserializeOwned + Send>(&self, file: &Path) -> Result<Vec<T>, EvalError> {
        let bytes = self.bytes(file)?;
        let name = file.to_string_lossy();
        Ok(input::parse_bytes(&name, &bytes, Format::JsonLines, &Limits::default())?)
    }
}

impl Evaluation for Outcomes {
    const KIND: Kind = Kind::Outcomes;
    const TABLE: &'static str = "outcomes";
    const TAKES: &'static [&'static str] = &[];
    const ITEMS: &'static str = "runs";

    type Config = Config;
    type Dataset = Data;
    type System = NeverAsked<()>;
    type Facts = ();

    fn load(config: &Config, common: &Common, root: &Root<'_>) -> Result<Data, EvalError> {
        let place = match &config.dataset {
            Some(name) => Place::Dataset(Box::new(root.frozen(name)?)),
            None => Place::Project(root),
        };
        let shown = root.path(&config.outcomes);
        let mut rows = rows::read(&shown, &place.bytes(&config.outcomes)?)?;
        let tasks: Vec<Task> = match &config.tasks {
            Some(file) => place.list(file)?,
            None => {
                let tags = |rows: &[Row]| rows.first().map(|row| row.tags.clone());
                let task = |(id, rows): (&String, &Vec<Row>)| Task {
                    id: id.clone(),
                    tags: tags(rows).unwrap_or_default(),
                };
                rows.iter().map(task).collect()
            }
        };
        let digest = digest(&tasks)?;
        let mut known = Vec::with_capacity(tasks.len());
        for task in tasks {
            let rows = rows.remove(&task.id).unwrap_or_default();
            known.push((task, rows));
        }
        if let Some(id) = rows.keys().next() {
            let message = format!("{}: task {id:?} is not in the file of tasks", shown.display());
            return Err(EvalError::config(message));
        }
        let mut published: Vec<Published> = match &config.published {
            Some(file) => place.list(file)?,
            None => Vec::new(),
        };
        published.retain(|figure| figure.report == common.name);
        let (id, version) = match &place {
            Place::Dataset(dataset) => (dataset.id().to_owned(), dataset.version().to_string()),
            Place::Project(_) => (common.name.clone(), "v1".to_owned()),
        };
        Ok(Data { reference: DatasetRef { id, version, digest }, tasks: known, published })
    }

    fn reference(data: &Data) -> DatasetRef {
        data.reference.clone()
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        match &config.dataset {
            Some(_) => own_datasets(&config.dataset),
            None => {
                let files = [Some(&config.outcomes), config.tasks.as_ref()];
                files.into_iter().flatten().chain(&config.published).cloned().collect()
            }
        }
    }

    async fn start(
        entry: &Entry<Outcomes>,
        _: &RunContext<'_>,
    ) -> Result<Start<Outcomes>, EvalError> {
        let name = entry.config.system.clone().unwrap_or_else(|| entry.common.name.clone());
        let accounting = entry.config.accounting.map(Accounting::name);
        Ok(Start::Recorded {
            outcomes: Vec::new(),
            reference: SystemRef {
                kind: "file".to_owned(),
                name,
                version: None,
                settings: accounting
                    .map(|name| ("accounting".to_owned(), name.to_owned()))
                    .into_iter()
                    .collect(),
            },
            runs: u32::try_from(entry.data.runs()).unwrap_or(u32::MAX),
        })
    }

    fn questions(
        _: &Entry<Outcomes>,
        _: &NeverAsked<()>,
        _: &mut Vec<Asked<()>>,
    ) -> Result<Questions<Outcomes>, EvalError> {
        Ok(Vec::new())
    }

    fn allow(observed: &Observations<'_, Outcomes>) -> Result<(), EvalError> {
        let Entry { common, data, .. } = observed.entry;
        let asked = data.rows().count();
        if asked == 0 {
            return Err(nothing_to_ask());
        }
        let failed = data.rows().filter(|row| row.measured().is_none()).map(|row| {
            let message = row.error.clone().unwrap_or_else(|| "no outcome".to_owned());
            (row.task.clone(), message)
        });
        Failures::among(asked, failed)
            .map_or(Ok(()), |failures| failures.allow(common.gate.allowed_errors(), Self::ITEMS))
    }

    fn score(observed: &Observations<'_, Outcomes>) -> Result<Scored, EvalError> {
        Ok(score::scored(observed.entry))
    }
}

/// The digest of the tasks: systems with the same one can be compared, whatever else was imported.
fn digest(tasks: &[Task]) -> Result<String, EvalError> {
    let mut by_id = BTreeMap::new();
    for task in tasks {
        if by_id.insert(&task.id, &task.tags).is_some() {
            return Err(EvalError::config(format!("task {:?} is listed twice", task.id)));
        }
    }
    let text = serde_json::to_string(&by_id).map_err(EvalError::config)?;
    Ok(Digest::of(text.as_bytes()).to_string())
}

//! A new evaluation is one implementation and one registration line: this one measures a system that
//! is asked for the length of words, and gets projects, journals, gates, baselines and comparison.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::aggregate;
use karat_core::baseline::Baseline;
use karat_core::compare;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Entry, Evaluation, Observations, Questions, RunContext, Scored, Start, latencies,
};
use karat_core::gate;
use karat_core::journal::{Entry as Asked, Outcome};
use karat_core::kind::Kind;
use karat_core::observed::Observed;
use karat_core::project::{Baselines, NoBundle, Project, Registry, Root};
use karat_core::report::{self, Item, Report, SystemRef, Verdict};
use karat_core::run::{Silent, System};
use karat_io::{Failure, FailureClass};
use karat_metrics::MetricId;
use serde::{Deserialize, Serialize};

pub(crate) struct Toy;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    words: PathBuf,
    /// The longest word that the system counts right.
    #[serde(default)]
    limit: Option<usize>,
}

pub(crate) struct Counter {
    limit: usize,
}

impl System for Counter {
    type Question = String;
    type Answer = usize;

    async fn ask(&self, _: u32, word: &String) -> Result<usize, Failure> {
        match word.as_str() {
            "unanswerable" => Err(Failure::new(FailureClass::Refused, "no")),
            word => Ok(word.len().min(self.limit)),
        }
    }
}

#[derive(Serialize)]
struct Seen {
    word: String,
    counted: usize,
}

const CORRECT: MetricId = MetricId::known("accuracy");

impl Evaluation for Toy {
    const KIND: Kind = Kind::Other(std::borrow::Cow::Borrowed("toy"));
    const TABLE: &'static str = "toy";
    const TAKES: &'static [&'static str] = &["concurrency"];
    const ITEMS: &'static str = "words";

    type Config = Config;
    type Dataset = Vec<String>;
    type System = Counter;
    type Facts = ();

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Vec<String>, EvalError> {
        Ok(root.text(&config.words)?.split_whitespace().map(str::to_owned).collect())
    }

    fn reference(words: &Vec<String>) -> report::DatasetRef {
        report::DatasetRef {
            id: "words".to_owned(),
            version: "v1".to_owned(),
            digest: karat_core::dataset::Digest::of(words.join(" ").as_bytes()).to_string(),
        }
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        vec![config.words.clone()]
    }

    async fn start(entry: &Entry<Toy>, _: &RunContext<'_>) -> Result<Start<Toy>, EvalError> {
        let limit = entry.config.limit.unwrap_or(usize::MAX);
        let reference = SystemRef {
            kind: "builtin".to_owned(),
            name: "counter".to_owned(),
            version: None,
            settings: Default::default(),
        };
        Ok(Start::Live { system: Arc::new(Counter { limit }), reference })
    }

    fn questions(
        entry: &Entry<Toy>,
        _: &Counter,
        _: &mut Vec<Asked<usize>>,
    ) -> Result<Questions<Toy>, EvalError> {
        Ok(entry.data.iter().map(|word| (word.clone(), Arc::new(word.clone()))).collect())
    }

    fn score(observed: &Observations<'_, Toy>) -> Result<Scored, EvalError> {
        let mut items = Vec::new();
        for asked in observed.outcomes {
            let Outcome::Answer(counted) = asked.outcome else { continue };
            let seen = Seen { word: asked.id.clone(), counted };
            let right = f64::from(u8::from(counted == asked.id.len()));
            items.push(Item {
                id: asked.id.clone(),
                metrics: [(CORRECT, Some(right))].into(),
                observed: Observed::other(Toy::KIND, &seen).ok(),
                ..Item::default()
            });
        }
        let refs: Vec<&Item> = items.iter().collect();
        let metrics = vec![aggregate::measure(&CORRECT, &refs, 1, 0)];
        let latencies = latencies(observed.outcomes);
        Ok(Scored { metrics, items, latencies, ..Scored::default() })
    }
}

/// Measures the one entry of a project, with this line of settings.
fn check(folder: &Path, settings: &str) -> Result<(Report, Baseline), String> {
    let text = format!("[[toy]]\nname = \"words\"\nwords = \"words.txt\"\n{settings}\n");
    let registry = Registry::default().with::<Toy>();
    let root = Root::in_folder(folder, &NoBundle);
    let path = Path::new("karat.toml");
    let project = Project::load(root, path, &text, &registry, Baselines::Needed)
        .map_err(|error| error.to_string())?;
    let journal = folder.join("journal.jsonl");
    let context =
        RunContext { folder, journal: Some(&journal), resume: false, progress: Arc::new(Silent) };
    let planned = &project.entries[0];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut report = runtime
        .block_on(planned.entry.run(&context))
        .map_err(|error| format!("{} {error}", error.is_not_measured()))?;
    gate::judge(&mut report, &planned.entry.common().gate, planned.baseline.as_ref())
        .map_err(|error| error.to_string())?;
    let baseline = Baseline::from_report(&report);
    Ok((report, baseline))
}

pub(crate) fn folder(words: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("words.txt"), words).unwrap();
    folder
}

#[test]
fn a_toy_evaluation_is_gated_compared_and_read_back() {
    let folder = folder("a bb ccc dddd");
    let (report, baseline) = check(folder.path(), "").unwrap();
    assert_eq!(report.metric("accuracy").unwrap().value, Some(1.0));
    assert_eq!((report.kind.name(), report.evaluation.name()), ("toy", "toy"));
    baseline.save(&folder.path().join("baseline.json")).unwrap();

    let gated = "limit = 2\nbaseline = \"baseline.json\"\ngate.metrics.accuracy.max_drop = 0.1";
    let (worse, _) = check(folder.path(), gated).unwrap();
    assert_eq!(worse.gate.as_ref().unwrap().verdict, Verdict::Fail);
    let moved = compare::compare(&baseline, &worse, &[]).unwrap();
    assert_eq!(moved.deltas[0].worsened, ["ccc", "dddd"]);

    let text = serde_json::to_string(&worse).unwrap();
    let read = report::parse_reports(Path::new("report.json"), &text).unwrap();
    assert_eq!(read, [worse]);
}

#[test]
fn keys_that_an_entry_does_not_take_are_refused_with_their_line() {
    let folder = folder("a");
    let error = check(folder.path(), "runs = 3").unwrap_err();
    assert!(error.contains("karat.toml:4") && error.contains("runs"), "{error}");
    let error = check(folder.path(), "limits = 3").unwrap_err();
    assert!(error.contains("limits") && error.contains("limit"), "{error}");
}

#[test]
fn unanswered_items_beyond_the_allowance_are_not_measured() {
    let folder = folder("a unanswerable");
    let error = check(folder.path(), "").unwrap_err();
    assert!(error.starts_with("true 1 of 2 words have no usable answer"), "{error}");
    let (report, _) = check(folder.path(), "gate.max_errors = 0.5").unwrap();
    assert_eq!(report.metric("accuracy").unwrap().n, 1);
}

//! `AgentRun` through core's one run: journal, resume, recording, replay. The scripted agent needs no
//! model, and tasks without servers need none.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use karat_agent::run::{Config, RunData};
use karat_agent::trace::Setting;
use karat_agent::{AgentRun, Trace};
use karat_core::error::EvalError;
use karat_core::evaluation::{Common, Entry, Evaluation, RunContext, evaluate};
use karat_core::journal::{check_sum, with_sum};
use karat_core::project::{NoBundle, Root};
use karat_core::report::Report;
use karat_core::run::Progress;

const TASKS: &str = r#"{"id":"five","input":"What is 2 + 3?","expect":{"answer":{"number":5}},"plan":{"turns":[{"say":"It is 5."}],"without_tools":"5"}}
{"id":"six","input":"What is 3 + 3?","expect":{"answer":{"number":6}},"plan":{"turns":[{"say":"It is 7."}],"without_tools":"6"}}
"#;

struct Project {
    folder: tempfile::TempDir,
    runs: u32,
    replay: bool,
}

/// The number of runs that were asked for, and of those that were resumed.
#[derive(Default)]
struct Started(Mutex<(usize, usize)>);

impl Progress for Started {
    fn started(&self, total: usize, resumed: usize) {
        *self.0.lock().unwrap() = (total, resumed);
    }
    fn answered(&self, _: &str, _: bool) {}
    fn finished(&self) {}
}

impl Project {
    fn new(tasks: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tasks.jsonl"), tasks).unwrap();
        Project { folder, runs: 2, replay: false }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn entry(&self) -> Entry<AgentRun> {
        let config = Config {
            tasks: vec![PathBuf::from("tasks.jsonl")],
            settings: vec![Setting::WithTools, Setting::WithoutTools],
            record: self.path("recording.jsonl"),
            replay: self.replay.then(|| self.path("recording.jsonl")),
            traces: self.path("traces.jsonl"),
            ..Config::default()
        };
        let common = Common { runs: self.runs, ..Common::named("run") };
        let data: RunData = AgentRun::load(&config, &common, &self.root()).unwrap();
        Entry { common, config, data }
    }

    fn root(&self) -> Root<'_> {
        Root::in_folder(self.folder.path(), &NoBundle)
    }

    async fn run(&self, resume: bool) -> (Result<Report, EvalError>, (usize, usize)) {
        let started = Arc::new(Started::default());
        let journal = self.path("journal.jsonl");
        let context = RunContext {
            folder: Path::new("."),
            journal: Some(&journal),
            resume,
            progress: Arc::<Started>::clone(&started),
        };
        let report = evaluate(&self.entry(), &context).await;
        let counts = *started.0.lock().unwrap();
        (report, counts)
    }
}

/// Everything but the times.
fn content(report: Report) -> serde_json::Value {
    let mut report = serde_json::to_value(report).unwrap();
    report.as_object_mut().unwrap().remove("environment");
    report
}

#[tokio::test]
async fn every_task_is_run_in_every_setting_and_the_traces_are_written() {
    let project = Project::new(TASKS);
    let (report, counts) = project.run(false).await;
    let report = report.unwrap();
    assert_eq!((counts, report.runs, report.items.len()), ((8, 0), 2, 8));
    assert_eq!(report.metric("task.success").unwrap().value, Some(0.5));
    assert_eq!(report.metric("gauge.success_without_tools").unwrap().value, Some(1.0));
    assert_eq!(report.metric("pass^2").unwrap().value, Some(0.5));
    let traces = project.lines("traces.jsonl");
    let keys: Vec<(String, u32)> = traces
        .iter()
        .map(|line| Trace::parse(line).unwrap())
        .map(|trace| (trace.id, trace.run))
        .collect();
    assert_eq!(keys.len(), 8);
    assert_eq!(keys[..2], [("five".to_owned(), 1), ("five".to_owned(), 2)]);
}

#[tokio::test]
async fn an_interrupted_run_resumes_and_makes_only_the_missing_runs() {
    let project = Project::new(TASKS);
    let (whole, _) = project.run(false).await;
    let whole = content(whole.unwrap());
    let recorded = project.lines("recording.jsonl");
    // As after a kill: three runs in the journal, the fourth in the recording alone, a torn line.
    let journal = project.lines("journal.jsonl");
    let kept = format!("{}\n{{\"run\":1,\"id\":\"fi", journal[..4].join("\n"));
    std::fs::write(project.path("journal.jsonl"), kept).unwrap();
    std::fs::write(project.path("recording.jsonl"), recorded[..5].join("\n") + "\n").unwrap();
    std::fs::remove_file(project.path("traces.jsonl")).unwrap();
    let (resumed, counts) = project.run(true).await;
    assert_eq!(counts, (8, 3));
    assert_eq!(content(resumed.unwrap()), whole);
    assert_eq!(project.lines("traces.jsonl").len(), 8);
    let mut again = project.lines("recording.jsonl");
    let mut recorded = recorded;
    again.sort();
    recorded.sort();
    assert_eq!(again, recorded);
}

#[tokio::test]
async fn a_recording_gives_the_same_report_and_leaves_the_journal_alone() {
    let mut project = Project::new(TASKS);
    let (live, _) = project.run(false).await;
    let traces = project.lines("traces.jsonl");
    std::fs::write(project.path("journal.jsonl"), "of another run").unwrap();
    project.replay = true;
    let (replayed, _) = project.run(false).await;
    assert_eq!(content(replayed.unwrap()), content(live.unwrap()));
    assert_eq!(project.lines("traces.jsonl"), traces);
    assert_eq!(project.lines("journal.jsonl"), ["of another run"]);
}

#[tokio::test]
async fn runs_that_failed_are_made_again_when_the_run_is_resumed() {
    // A plan without turns fails; with the plan repaired the digest of the tasks would change, so the
    // journal is edited instead.
    let project = Project::new(TASKS);
    project.run(false).await.0.unwrap();
    let journal = project.lines("journal.jsonl");
    let broken: Vec<String> = journal
        .iter()
        .map(|line| match line.contains("\"six\"") && line.contains("\"run\":0") {
            true => {
                let object = String::from_utf8(check_sum(line.as_bytes()).unwrap()).unwrap();
                let failed = object.replacen(
                    "\"calls\":",
                    "\"failed\":{\"class\":\"endpoint\",\"message\":\"dead\"},\"calls\":",
                    1,
                );
                let line = String::from_utf8(with_sum(failed.into_bytes())).unwrap();
                line.trim_end().to_owned()
            }
            false => line.clone(),
        })
        .collect();
    std::fs::write(project.path("journal.jsonl"), broken.join("\n") + "\n").unwrap();
    let (report, counts) = project.run(true).await;
    assert_eq!(counts, (8, 6));
    assert!(report.unwrap().items.iter().all(|item| item.error.is_none()));
}

#[tokio::test]
async fn more_failed_runs_than_allowed_are_not_measured_but_their_traces_are_written() {
    let broken = TASKS.replacen("\"turns\":[{\"say\":\"It is 5.\"}]", "\"turns\":7", 1);
    let project = Project::new(&broken);
    let error = project.run(false).await.0.unwrap_err();
    assert!(error.is_not_measured());
    let text = error.to_string();
    assert!(text.contains("2 of 8 runs have no usable answer"), "{text}");
    assert!(text.contains("five: invalid_plan"), "{text}");
    let traces = project.lines("traces.jsonl");
    assert_eq!(traces.iter().filter(|line| line.contains("invalid_plan")).count(), 2);
}

#[tokio::test]
async fn what_cannot_run_is_refused_before_anything_runs() {
    let unplanned = r#"{"id":"a","input":"x","expect":{"answer":{"number":5}}}"#;
    let elsewhere = TASKS.replacen("\"plan\"", "\"servers\":[\"elsewhere\"],\"plan\"", 1);
    for (tasks, message) in [(unplanned, "no plan"), (elsewhere.as_str(), "elsewhere")] {
        let project = Project::new(tasks);
        let error = project.run(false).await.0.unwrap_err();
        assert!(!error.is_not_measured() && error.to_string().contains(message), "{error}");
        assert!(!project.path("journal.jsonl").exists());
    }
}

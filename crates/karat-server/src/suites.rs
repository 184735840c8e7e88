//! The evaluation of a server by a suite: a live server is asked case by case.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_core::error::EvalError;
use karat_core::evaluation::{
    self, Common, Computes, Entry, Evaluation, Observations, Questions, RunContext, Scored, Start,
};
use karat_core::gate::Rule;
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::observed::{self, Observed};
use karat_core::project::{AnyEntry, Root, Running};
use karat_core::report::{Check, DatasetRef, Item, ItemError, Report, Verdict};
use karat_core::run::{self, Failures};
use karat_io::input::nearest;
use karat_io::private;
use karat_io::text::{count, first_few};
use karat_mcp::{Definition, Options, Recorder, Redactor, ServerSpec};
use serde::Deserialize;

use crate::compliance::Contract;
use crate::live_suite::LiveSuite;
use crate::observation::{Attempt, CaseRun, Outcome as Ended};
use crate::plan::Plan;
use crate::probe::live;
use crate::secrets;
use crate::suite::snapshot::Store;
use crate::suite::{Case, Suite, server};
use crate::system::{PATIENCE, Target};
use crate::{accept, cleanup, controls, coverage, score, warnings};

/// The time limit for a case: each call has a limit of its own, and a case may have many.
const CASE_TIMEOUT: Duration = Duration::from_secs(86_400);

/// The evaluation of a server by a suite.
pub struct Suites;

/// A `[[server]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The suite, JSON or YAML.
    pub suite: PathBuf,
    /// The server, instead of the one that the suite names.
    pub server: Option<ServerSpec>,
    /// A built-in server instead: `demo`.
    pub builtin: Option<String>,
    /// Selects cases with one of these tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Selects the case with this id.
    pub case: Option<String>,
    /// Selects the cases with these ids, if any are named. Set by commands, never by a project.
    #[serde(skip)]
    pub only: BTreeSet<String>,
    /// Records every message. Set by commands, never by a project.
    #[serde(skip)]
    pub recorder: Option<Recorder>,
}

impl Config {
    /// The selected cases.
    ///
    /// # Errors
    /// If there are none; secrets are hidden in the tags that it lists.
    pub(crate) fn select(
        &self,
        cases: &[Arc<Case>],
        redactor: &Redactor,
    ) -> Result<Vec<Arc<Case>>, EvalError> {
        // A text has a case for each tool: its id selects all of them.
        let is_named = |id: &String, case: &Case| {
            [&case.id, &case.own_id].iter().any(|own| {
                own.strip_prefix(id.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let wanted = |case: &&Arc<Case>| {
            self.case.as_ref().is_none_or(|id| is_named(id, case))
                && (self.only.is_empty() || self.only.contains(&case.id))
                && (self.tags.is_empty() || self.tags.iter().any(|tag| case.tags.contains(tag)))
        };
        let selected: Vec<Arc<Case>> = cases.iter().filter(wanted).cloned().collect();
        if !selected.is_empty() {
            return Ok(selected);
        }
        let mut tags: Vec<&str> =
            cases.iter().flat_map(|case| &case.tags).map(String::as_str).collect();
        tags.sort_unstable();
        tags.dedup();
        let tags = match tags.is_empty() {
            true => String::new(),
            false => redactor.hidden(format!(" and these tags: {}", tags.join(", "))),
        };
        let wanted = match &self.case {
            None => String::new(),
            Some(id) => {
                let near = nearest(id, cases.iter().map(|case| case.id.as_str()));
                let hint = near.map(|near| format!(" (did you mean {near:?}?)"));
                format!(" {id:?}{}", hint.unwrap_or_default())
            }
        };
        let count = count(cases.len(), "case");
        Err(EvalError::NothingMeasured(format!(
            "no case matches{wanted}; the suite has {count}{tags}"
        )))
    }
}

/// A suite with the server that it is for.
pub struct Dataset {
    suite: Suite,
    /// None where recorded answers are judged: nothing is started then.
    target: Option<Target>,
    /// Snapshot files that belong to no case.
    orphans: Vec<PathBuf>,
}

impl Dataset {
    /// The data of an entry whose suite has been read.
    ///
    /// # Errors
    /// If no server is named, or the one that is named is not valid.
    pub fn new(suite: Suite, config: &Config, folder: &Path) -> Result<Dataset, EvalError> {
        let target = match (&config.builtin, &config.server, &suite.server) {
            (Some(_), _, _) => Target::Demo,
            (None, Some(spec), _) => Target::Spec(Box::new(spec.clone())),
            (None, None, Some(written)) => {
                let found = server::find(written, folder).map_err(EvalError::Config)?;
                Target::Spec(Box::new(found.spec))
            }
            (None, None, None) => {
                return Err(EvalError::config(format!(
                    "the suite {:?} names no server; add `mcp_server` to it, or give the server \
                     after `--`",
                    suite.name
                )));
            }
        };
        let orphans = suite.orphaned_snapshots();
        Ok(Dataset { suite, target: Some(target), orphans })
    }

    /// The data of an entry whose answers are recorded.
    pub(crate) fn recorded(suite: Suite) -> Dataset {
        let orphans = suite.orphaned_snapshots();
        Dataset { suite, target: None, orphans }
    }

    pub(crate) fn suite(&self) -> &Suite {
        &self.suite
    }

    /// The same suite with the snapshots that are stored now.
    fn with_stored_snapshots(&self) -> Result<Dataset, EvalError> {
        let suite = self.suite.with_stored_snapshots()?;
        let orphans = suite.orphaned_snapshots();
        Ok(Dataset { suite, target: self.target.clone(), orphans })
    }
}

/// Facts about the server and the run that scoring needs besides the answers.
#[derive(Default)]
pub struct Facts {
    contract: Contract,
    /// True if the server changed its tools during the run.
    tools_changed: bool,
    restarts: u64,
    conduct: Vec<String>,
    isolation: Vec<String>,
    redactor: Redactor,
    /// Notes about the cases that were run and about their teardown.
    notes: Vec<String>,
    /// The selected cases, with those that texts became.
    cases: Vec<Arc<Case>>,
    /// The tools of the server.
    tools: Vec<Definition>,
    /// Notes about accepted snapshots.
    accepted: Vec<String>,
    /// Cases that quote secrets which are no longer known.
    withheld: BTreeSet<String>,
}

impl Facts {
    /// The facts of an earlier run, as far as they are known.
    pub(crate) fn recorded(
        contract: Contract,
        tools: Vec<Definition>,
        redactor: Redactor,
        notes: Vec<String>,
        cases: Vec<Arc<Case>>,
        withheld: BTreeSet<String>,
    ) -> Facts {
        Facts { contract, tools, redactor, notes, cases, withheld, ..Facts::default() }
    }
}

impl Evaluation for Suites {
    const KIND: Kind = Kind::Suite;
    const TABLE: &'static str = "server";
    const TAKES: &'static [&'static str] = &["timeout_ms", "start_timeout_ms"];
    const ITEMS: &'static str = "cases";

    type Config = Config;
    type Dataset = Dataset;
    type System = LiveSuite;
    type Facts = Facts;

    /// Without rules of its own, an entry demands that every case passes.
    fn check(config: &Config, common: &mut Common) -> Result<(), EvalError> {
        if common.gate.metrics.is_empty() && common.gate.protected.is_none() {
            let all = Rule { min: Some(1.0), ..Rule::default() };
            common.gate.metrics.insert(score::PASS_RATE.to_string(), all);
        }
        match (&config.builtin, &config.server) {
            (Some(_), Some(_)) => Err(EvalError::config("give `server` or `builtin`, not both")),
            (Some(name), None) if name != "demo" => {
                Err(EvalError::config(format!("no built-in server {name:?}; expected demo")))
            }
            _ => Ok(()),
        }
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Dataset, EvalError> {
        let suite = match root.is_bundled() {
            true => Suite::parse(&config.suite, &root.bytes(&config.suite)?)?,
            false => Suite::load(&root.path(&config.suite))?,
        };
        Dataset::new(suite, config, root.folder())
    }

    fn reference(data: &Dataset) -> DatasetRef {
        data.suite.reference()
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        vec![config.suite.clone()]
    }

    fn whole(_: &Entry<Suites>) -> Option<&'static str> {
        Some("its cases share one server and its state")
    }

    async fn start(
        entry: &Entry<Suites>,
        context: &RunContext<'_>,
    ) -> Result<Start<Suites>, EvalError> {
        let Entry { common, config, data: Dataset { suite, target, .. } } = entry;
        if suite.is_empty() {
            config.select(&suite.cases, &Redactor::default())?;
        }
        let Some(target) = target else {
            return Err(EvalError::config("the entry has recorded answers, and no server"));
        };
        let options = Options {
            call_timeout: common.timeout(),
            start_timeout: common.start_timeout(),
            patience: PATIENCE,
            folder: Some(context.folder.to_owned()),
            recorder: match suite.hides_private {
                true => config.recorder.clone().map(Recorder::without_private),
                false => config.recorder.clone(),
            },
            keep_notifications: suite.expects_notifications(),
            ..Options::default()
        };
        let system = LiveSuite::start(target.clone(), options, suite).await?;
        config.select(&system.cases, system.server.redactor())?;
        let mut reference = live::system_ref(target.describe(), &system.info);
        reference.settings.insert("target".to_owned(), suite.target.to_string());
        Ok(Start::Live { system: Arc::new(system), reference })
    }

    fn questions(
        entry: &Entry<Suites>,
        live: &LiveSuite,
        known: &mut Vec<Outcome<CaseRun>>,
    ) -> Result<Questions<Suites>, EvalError> {
        let selected = entry.config.select(&live.cases, live.server.redactor())?;
        let plan = live.plan.get_or_init(|| Plan::new(&live.cases, &selected, known));
        let question = |at: &usize| (live.cases[*at].id.clone(), Arc::new(*at));
        Ok(plan.cases.iter().map(question).collect())
    }

    fn options(_: &Entry<Suites>) -> run::Options {
        run::Options { timeout: CASE_TIMEOUT, ..run::Options::default() }
    }

    async fn finish(
        entry: &Entry<Suites>,
        live: &LiveSuite,
        questions: &Questions<Suites>,
        outcomes: &mut Vec<Outcome<CaseRun>>,
    ) -> Result<Facts, EvalError> {
        let suite = &entry.data.suite;
        let (server, plan) = (&live.server, live.plan.get());
        let case = |at: &usize| Arc::clone(&live.cases[*at]);
        let asked: Vec<Arc<Case>> =
            plan.map(|plan| plan.asked.iter().map(case).collect()).unwrap_or_default();
        let left = server.tear_down(&suite.teardown, &asked).await;
        // Ended in good order: some servers send their last messages when their input ends.
        server.renew().await;
        let mut notes = plan.map(Plan::notes).unwrap_or_default();
        let cases: Vec<Arc<Case>> = questions.iter().map(|(_, at)| case(at)).collect();
        notes.extend(cleanup::warning(&cases, outcomes, &left));
        let chosen = entry.config.select(&live.cases, live.server.redactor())?;
        let selected: BTreeSet<&str> = chosen.iter().map(|case| case.id.as_str()).collect();
        outcomes.retain(|outcome| selected.contains(outcome.id.as_str()));
        let tools = server.tools().await;
        Ok(Facts {
            contract: Contract::new(&tools, live.info.revision),
            tools_changed: tools != live.tools,
            restarts: server.restarts(),
            conduct: server.protocol_log().warnings(),
            isolation: live.isolation.clone(),
            redactor: server.redactor().clone(),
            notes,
            cases: chosen,
            tools,
            accepted: Vec::new(),
            withheld: BTreeSet::new(),
        })
    }

    /// Without a single answered call nothing was measured; failed calls are failed cases.
    fn allow(observed: &Observations<'_, Suites>) -> Result<(), EvalError> {
        if observed.recorded {
            allow_recorded(observed)?;
        }
        let attempts = runs(observed.outcomes).flat_map(|run| &run.attempts);
        let mut calls = attempts.flat_map(|attempt| &attempt.calls);
        // A server that ends or breaks the protocol at every call was measured, and failed.
        let is_measured = |outcome: &Ended| {
            outcome.is_answer() || matches!(outcome, Ended::Crash { .. } | Ended::Invalid { .. })
        };
        if calls.clone().any(|call| is_measured(&call.outcome)) {
            return Ok(());
        }
        let count = calls.clone().count();
        let first = calls.next().map(|call| call.outcome.to_string());
        let first = first.unwrap_or("no call was made".to_owned());
        let all = std::iter::once(first).chain(observed.facts.conduct.iter().cloned());
        Err(EvalError::NothingMeasured(observed.facts.redactor.hidden(format!(
            "nothing was executed: none of {count} calls was answered (first: {})",
            all.collect::<Vec<_>>().join("; ")
        ))))
    }

    fn score(observed: &Observations<'_, Suites>) -> Result<Scored, EvalError> {
        let Observations { entry, outcomes, facts, .. } = *observed;
        let (suite, seed) = (&entry.data.suite, entry.common.seed);
        let cases = &facts.cases;
        // Of a case that is not recorded nothing is known, not even whether its tool exists.
        let judged: Vec<Arc<Case>> = (cases.iter().zip(outcomes))
            .filter(|(_, outcome)| !observed.recorded || matches!(outcome.outcome, Kept::Answer(_)))
            .map(|(case, _)| Arc::clone(case))
            .collect();
        let undefined = facts.contract.is_partial().then_some(score::NO_DEFINITIONS);
        let mut items = Vec::new();
        let mut scored = Vec::new();
        let hidden = |text: String| match suite.hides_private {
            true => private::hide("", &facts.redactor.hidden(text)).into_owned(),
            false => facts.redactor.hidden(text),
        };
        for (case, outcome) in cases.iter().zip(outcomes) {
            match &outcome.outcome {
                Kept::Answer(run) => {
                    scored.push(score::score(case, run, &facts.contract, suite.target, &hidden));
                }
                Kept::Failure { class, message } => items.push(failed(case, class, message)),
            }
        }
        items.extend(scored.iter().map(|case| case.item.clone()));
        items.iter_mut().for_each(|item| redact(item, hidden));
        let unshown = items.iter_mut().filter(|item| facts.withheld.contains(&item.id));
        unshown.for_each(withhold);
        // Where everything private is removed, nothing is said about it.
        let leaked = (!suite.hides_private)
            .then(|| warnings::leaked_secrets(outcomes, &facts.redactor))
            .flatten();
        let warnings = [
            warnings::failures(&scored),
            warnings::restarts(facts.restarts),
            warnings::untested_tools(&judged, &facts.contract),
            warnings::missing_tools(&judged, &facts.contract),
            warnings::formats(&scored),
        ];
        let changed = "the server changed its tools during the run; every call is judged by the \
                       latest definition of its tool";
        let warnings = (warnings.into_iter().flatten())
            .chain(facts.notes.iter().cloned())
            .chain(facts.conduct.iter().cloned())
            .chain(leaked)
            .chain(warnings::suspicious_results(outcomes))
            .chain(facts.tools_changed.then(|| changed.to_owned()))
            .chain(facts.accepted.iter().cloned())
            .chain(orphans(&entry.data.orphans));
        Ok(Scored {
            metrics: score::metrics(&scored, seed, undefined)
                .into_iter()
                .chain(match undefined {
                    None => coverage::metrics(&facts.tools, outcomes),
                    Some(why) => coverage::undefined(why),
                })
                .collect(),
            slices: score::slices(&scored, seed, undefined),
            items,
            controls: controls::run(&judged, &facts.contract, suite.target, seed),
            conventions: score::conventions(suite.target),
            warnings: warnings.map(hidden).collect(),
            latencies: runs(outcomes)
                .flat_map(|run| run.attempts.iter().filter_map(Attempt::latency))
                .collect(),
            isolation: facts.isolation.clone(),
            checks: untested(&judged, &facts.contract).into_iter().collect(),
            ..Scored::default()
        })
    }
}

/// The cases without recorded answers to their requests, each with the reason.
pub(crate) fn not_recorded(outcomes: &[Outcome<CaseRun>]) -> Vec<(&str, &str)> {
    let open = outcomes.iter().filter_map(|outcome| match &outcome.outcome {
        Kept::Failure { message, .. } => Some((outcome.id.as_str(), message.as_str())),
        Kept::Answer(_) => None,
    });
    open.collect()
}

/// Holds recorded answers to the allowance for cases that are not recorded.
fn allow_recorded(observed: &Observations<'_, Suites>) -> Result<(), EvalError> {
    let (open, all) = (not_recorded(observed.outcomes), observed.outcomes.len());
    let allowed = observed.entry.common.gate.allowed_errors();
    let failed = open.iter().map(|(id, why)| ((*id).to_owned(), (*why).to_owned()));
    if !Failures::among(all, failed).is_some_and(|failures| failures.exceed(allowed)) {
        return Ok(());
    }
    let named: Vec<String> = open.iter().map(|(id, why)| format!("{id}: {why}")).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let (open, named) = (open.len(), first_few(&named, warnings::NAMED));
    Err(EvalError::NothingMeasured(match open == all {
        true => format!("not recorded: none of {all} cases ({named})"),
        false => format!(
            "not recorded: {open} of {all} cases, more than the allowed share {allowed} ({named}); run the \
             suite against the server, or allow a share with --max-errors"
        ),
    }))
}

/// The check of a suite that calls no tool of its server: whatever passes, nothing is known of the tools.
fn untested(cases: &[Arc<Case>], contract: &Contract) -> Option<Check> {
    let count = contract.names().count();
    let called = |name: &str| {
        cases.iter().flat_map(|case| case.steps()).any(|step| step.called_tool() == Some(name))
    };
    let reason = format!(
        "no case calls a tool of the server, which has {count}; `karat server suggest` writes a case \
         for each"
    );
    let check = Check::of("tools", "coverage", Verdict::Inconclusive, reason);
    (count > 0 && !contract.names().any(called)).then_some(Check { value: Some(0.0), ..check })
}

/// Measures an entry, accepts the answers as snapshots where nothing else fails, and reports against
/// the accepted ones.
///
/// # Errors
/// If nothing could be measured, or a snapshot cannot be written.
pub(crate) async fn run_and_accept(
    entry: &Entry<Suites>,
    context: &RunContext<'_>,
) -> Result<Report, EvalError> {
    let mut collected = evaluation::collect(entry, context).await?;
    let Entry { common, config, data } = entry;
    let store = Store::of(&data.suite.path);
    let facts = &mut collected.facts;
    let cases = facts.cases.clone();
    facts.accepted = accept::accept(&store, &cases, &collected.outcomes, &facts.contract)?;
    let data = data.with_stored_snapshots()?;
    let all = secrets::without_secrets(data.suite.cases_for(&facts.tools), &facts.redactor);
    facts.cases = config.select(&all, &facts.redactor)?;
    let accepted = Entry { common: common.clone(), config: config.clone(), data };
    evaluation::report(&accepted, &collected, Some(context.folder))
}

/// An entry whose run accepts snapshots, for `--update`.
pub struct AcceptSnapshots(pub Entry<Suites>);

impl AnyEntry for AcceptSnapshots {
    fn kind(&self) -> Kind {
        self.0.kind()
    }

    fn common(&self) -> &Common {
        &self.0.common
    }

    fn dataset(&self) -> DatasetRef {
        self.0.dataset()
    }

    fn reads(&self) -> Vec<PathBuf> {
        self.0.reads()
    }

    fn computes(&self) -> Option<Computes> {
        self.0.computes()
    }

    fn run<'a>(&'a self, context: &'a RunContext<'a>) -> Running<'a> {
        Box::pin(run_and_accept(&self.0, context))
    }
}

/// The observations of the cases that were run.
fn runs(outcomes: &[Outcome<CaseRun>]) -> impl Iterator<Item = &CaseRun> + Clone {
    outcomes.iter().filter_map(|outcome| match &outcome.outcome {
        Kept::Answer(run) => Some(run),
        Kept::Failure { .. } => None,
    })
}

/// The item of a case that could not be run.
fn failed(case: &Case, class: &str, message: &str) -> Item {
    Item {
        id: case.id.clone(),
        tags: score::tags(case, &case.name),
        error: Some(ItemError { class: class.to_owned(), message: message.to_owned() }),
        ..Item::default()
    }
}

/// Removes secrets from an item. Observations have none, but the texts of the suite may. Every
/// field is listed, so that a new one is not forgotten.
fn redact(item: &mut Item, hidden: impl Fn(String) -> String) {
    let hide = |text: &mut String| *text = hidden(std::mem::take(text));
    if let Some(error) = &mut item.error {
        hide(&mut error.message);
    }
    item.tags.values_mut().for_each(hide);
    let Some(Observed::Suite(observed)) = &mut item.observed else { return };
    let observed::Suite {
        about,
        tool,
        arguments,
        ended: _,
        answer,
        attempts: _,
        passed: _,
        failures: _,
        reasons,
        more_reasons: _,
        input_problems,
    } = observed;
    let single = about.iter_mut().chain(arguments).chain(answer);
    single.chain(reasons).chain(input_problems).for_each(hide);
    hide(tool);
}

/// Removes the parts of a case that quote a suite with unknown secrets.
fn withhold(item: &mut Item) {
    const WHY: &str =
        "not shown: the case holds secrets of the server, and some may be unknown here";
    if let Some(Observed::Suite(observed)) = &mut item.observed {
        observed.input_problems.clear();
        observed.more_reasons = 0;
        if !observed.reasons.is_empty() {
            observed.reasons = vec![WHY.to_owned()];
        }
    }
}

fn orphans(files: &[PathBuf]) -> Option<String> {
    let first = files.first()?.display();
    Some(match files.len() {
        1 => format!("1 snapshot belongs to no case and can be removed: {first}"),
        n => format!("{n} snapshots belong to no case and can be removed: {first}"),
    })
}

#[cfg(test)]
mod tests {
    use karat_core::project::NoBundle;
    use karat_core::run::Silent;

    use super::*;

    fn entry(folder: &Path, suite: &str) -> Result<Entry<Suites>, EvalError> {
        std::fs::write(folder.join("s.yaml"), suite).unwrap();
        let config = Config {
            suite: PathBuf::from("s.yaml"),
            builtin: Some("demo".to_owned()),
            ..Config::default()
        };
        entry_of(folder, config)
    }

    fn entry_of(folder: &Path, config: Config) -> Result<Entry<Suites>, EvalError> {
        let mut common = Common::named("demo");
        Suites::check(&config, &mut common)?;
        let data = Suites::load(&config, &common, &Root::in_folder(folder, &NoBundle))?;
        Ok(Entry { common, config, data })
    }

    fn context(folder: &Path) -> RunContext<'_> {
        RunContext { folder, journal: None, resume: false, progress: Arc::new(Silent) }
    }

    #[test]
    fn every_case_must_pass_unless_the_entry_has_rules() {
        let mut common = Common::named("x");
        Suites::check(&Config::default(), &mut common).unwrap();
        assert_eq!(common.gate.metrics["pass_rate"].min, Some(1.0));
        let mut common = Common::named("x");
        common.gate.metrics.insert("reliability".to_owned(), Rule::default());
        Suites::check(&Config::default(), &mut common).unwrap();
        assert_eq!(common.gate.metrics.keys().collect::<Vec<_>>(), ["reliability"]);
    }

    #[test]
    fn a_wrong_server_is_bad_input_before_anything_starts() {
        let folder = tempfile::tempdir().unwrap();
        let load = |change: fn(&mut Config), suite: &str| {
            std::fs::write(folder.path().join("s.yaml"), suite).unwrap();
            let mut config = Config { suite: PathBuf::from("s.yaml"), ..Config::default() };
            change(&mut config);
            entry_of(folder.path(), config).map(|_| ()).unwrap_err()
        };
        let suite = "cases:\n  - {tool: echo}\n";
        let both = |config: &mut Config| {
            config.builtin = Some("demo".to_owned());
            config.server = Some(ServerSpec::from_url("http://127.0.0.1:1"));
        };
        for (error, expected) in [
            (load(|_| (), suite), "names no server"),
            (load(|config| config.builtin = Some("x".to_owned()), suite), "expected demo"),
            (load(both, suite), "not both"),
            (load(|_| (), "mcp_server: ''\ncases: []\n"), "mcp_server is empty"),
        ] {
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!error.is_not_measured(), "{error}");
        }
    }

    #[tokio::test]
    async fn a_suite_is_run_scored_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        let entry = entry(
            folder.path(),
            "cases:\n  - {id: good, tool: echo, input: {text: hello}, expect: {contains: hello}}\n  \
             - {id: bad, tool: echo, input: {text: hello}, expect: {contains: bye}}\n",
        );
        let entry = entry.unwrap();
        let report = evaluation::evaluate(&entry, &context(folder.path())).await.unwrap();
        assert_eq!(report.kind, Kind::Suite);
        assert_eq!(report.metric("pass_rate").unwrap().value, Some(0.5));
        assert_eq!(report.items[0].id, "bad");
        let Some(Observed::Suite(observed)) = &report.items[0].observed else {
            panic!("{report:?}")
        };
        assert_eq!(observed.reasons, [r#"the text is "hello", expected text containing "bye""#]);
        assert!(report.controls.iter().all(|control| control.ok), "{:?}", report.controls);
        assert_eq!(report.warnings[0], "failed attempts by class: wrong_output 1");
    }

    #[tokio::test]
    async fn accepted_snapshots_are_those_that_the_report_is_about() {
        let folder = tempfile::tempdir().unwrap();
        let text =
            "cases:\n  - {id: a, tool: echo, input: {text: hello}, expect: {snapshot: true}}\n";
        let entry = entry(folder.path(), text).unwrap();
        let digest = entry.data.suite.digest.to_string();
        let context = context(folder.path());
        let missing = evaluation::evaluate(&entry, &context).await.unwrap();
        assert_eq!(missing.metric("pass_rate").unwrap().value, Some(0.0));
        // The run keeps to the suite that it started with.
        std::fs::write(folder.path().join("s.yaml"), "not: [a suite").unwrap();
        let accepted = run_and_accept(&entry, &context).await.unwrap();
        assert_eq!(accepted.metric("pass_rate").unwrap().value, Some(1.0));
        assert_ne!(accepted.dataset.digest, digest);
        let note = "snapshots of 1 case written (a), of 0 unchanged";
        assert!(accepted.warnings.iter().any(|text| text == note), "{:?}", accepted.warnings);
        let again = run_and_accept(&entry, &context).await.unwrap();
        assert_eq!(again.dataset.digest, accepted.dataset.digest);
    }

    #[tokio::test]
    async fn a_selection_without_cases_is_not_measured() {
        let folder = tempfile::tempdir().unwrap();
        let mut entry = entry(folder.path(), "cases:\n  - {tool: echo, tags: [b, a]}\n").unwrap();
        entry.config.tags = vec!["c".to_owned()];
        let error = evaluation::evaluate(&entry, &context(folder.path())).await.unwrap_err();
        assert_eq!(error.to_string(), "no case matches; the suite has 1 case and these tags: a, b");
        entry.config.case = Some("ecko-1".to_owned());
        let error = evaluation::evaluate(&entry, &context(folder.path())).await.unwrap_err();
        let named = "no case matches \"ecko-1\" (did you mean \"echo-1\"?); the suite has 1 case";
        assert!(error.to_string().starts_with(named), "{error}");
        assert!(error.is_not_measured());
    }

    #[test]
    fn no_text_of_an_item_keeps_a_secret() {
        let secret = || "a hush-hush b".to_owned();
        let mut item = Item {
            id: "x".to_owned(),
            observed: Some(Observed::Suite(observed::Suite {
                about: Some(secret()),
                tool: secret(),
                arguments: Some(secret()),
                answer: Some(secret()),
                reasons: vec![secret(), secret()],
                input_problems: vec![secret()],
                ..observed::Suite::default()
            })),
            error: Some(ItemError { class: "timeout".to_owned(), message: secret() }),
            tags: [("resource".to_owned(), secret())].into(),
            ..Item::default()
        };
        redact(&mut item, |text| text.replace("hush-hush", "[redacted]"));
        let shown = serde_json::to_string(&item).unwrap();
        assert_eq!((shown.matches("hush").count(), shown.matches("[redacted]").count()), (0, 9));
    }
}

//! Scores the recorded answers of an earlier run by the present suite, without starting anything.
//!
//! The journal of a run holds the requests of each case, as digests, and the answers. A case is judged by the
//! answers only if it still makes these requests; otherwise it is not recorded, which is neither right nor wrong, and counts against
//! the allowance for failures. Facts that only the server has, such as the definitions of its tools, are
//! undefined unless it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    self, Common, Computes, Entry, Evaluation as _, Recording, RunContext,
};
use karat_core::journal::{self, Entry as Outcome, Identity, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::project::{AnyEntry, Running};
use karat_core::report::{DatasetRef, Report};
use karat_io::text::{count, first_few};
use karat_mcp::{Definition, Redactor, Revision};

use crate::asked::Fingerprints;
use crate::cleanup;
use crate::compliance::Contract;
use crate::observation::{Asked, CaseRun};
use crate::secrets::{self, SuiteSecrets};
use crate::suite::{Case, Suite};
use crate::suites::{Config, Dataset, Facts, Suites, not_recorded};
use crate::warnings::NAMED;

/// Definitions of tools, with the file that has them.
pub struct Definitions {
    /// The file.
    pub path: PathBuf,
    /// The tools.
    pub tools: Vec<Definition>,
}

/// A suite with the answers of an earlier run. It is measured like any other entry.
pub struct Recorded {
    entry: Entry<Suites>,
    path: PathBuf,
    identity: Identity,
    answers: Vec<Outcome<CaseRun>>,
    definitions: Option<Definitions>,
}

impl Recorded {
    /// Reads the journal of an earlier run. The entry has the name and the seed of that run; `max_errors` is the
    /// share of its cases that may lack recorded answers.
    ///
    /// # Errors
    /// If the file is not the journal of a suite, or a setting is out of range.
    pub fn load(
        suite: Suite,
        config: Config,
        path: &Path,
        definitions: Option<Definitions>,
        max_errors: f64,
    ) -> Result<Recorded, EvalError> {
        let (identity, answers) = journal::recorded(path, &Kind::Suite)?;
        let mut common = Common { seed: identity.seed, ..Common::named(identity.name.as_str()) };
        common.gate.max_errors = (max_errors > 0.0).then_some(max_errors);
        Suites::check(&config, &mut common)?;
        common.validate()?;
        let entry = Entry { common, config, data: Dataset::recorded(suite) };
        Ok(Recorded { entry, path: path.to_owned(), identity, answers, definitions })
    }

    /// Judges the answers and makes the report.
    fn report(&self, folder: &Path) -> Result<Report, EvalError> {
        let Recorded { entry, answers, definitions, .. } = self;
        let suite = entry.data.suite();
        let all = match definitions {
            Some(definitions) => suite.cases_for(&definitions.tools),
            None => suite.cases_as_recorded(answers),
        };
        let secrets = SuiteSecrets::of(suite, folder);
        let prints = Fingerprints::of(suite, &all);
        let all = secrets::without_secrets(all, &secrets.redactor);
        let all = secrets::with_recorded_ids(all, &prints.cases, answers);
        let mut withheld = withheld(&all, answers, &secrets.redactor);
        let may_be_unknown = !(secrets.unknown.is_empty() && withheld.is_empty());
        let all = match may_be_unknown {
            true => secrets::without_addresses(all, &ids(answers)),
            false => all,
        };
        let cases = entry.config.select(&all, &secrets.redactor)?;
        let selected: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        withheld.retain(|id| selected.contains(id.as_str()));
        let outcomes = outcomes(&prints, &all, &cases, answers);
        let listed = listed(answers);
        let known = self.known(&listed);
        let revision = self.identity.system.settings.get("protocol");
        let revision = revision.and_then(|name| Revision::of(name)).unwrap_or_default();
        let contract = match known.tools.as_deref() {
            Some(tools) => Contract::new(tools, revision).with_recorded(&listed),
            None => Contract::recorded(&listed, revision),
        };
        let mut notes = self.notes(&all, &cases, &outcomes);
        notes.extend(known.notes);
        let new = match may_be_unknown {
            true => not_recorded(&outcomes).iter().map(|(id, _)| (*id).to_owned()).collect(),
            false => BTreeSet::new(),
        };
        notes.extend(notes_on_secrets(&secrets, &withheld, &new));
        let withheld: BTreeSet<String> = withheld.into_iter().chain(new).collect();
        let shown = |outcome: &Outcome<CaseRun>| !withheld.contains(&outcome.id);
        let (tidy, left): (Vec<Arc<Case>>, Vec<Outcome<CaseRun>>) = (cases.iter().zip(&outcomes))
            .filter(|(_, outcome)| shown(outcome))
            .map(|(case, outcome)| (Arc::clone(case), outcome.clone()))
            .unzip();
        notes.extend(cleanup::warning(&tidy, &left, &[]));
        let tools = known.tools.unwrap_or_default();
        let named = |case: Arc<Case>| match withheld.contains(&case.id) {
            true => Arc::new(secrets::withheld(&case)),
            false => case,
        };
        let cases = cases.into_iter().map(named).collect();
        let facts = Facts::recorded(contract, tools, secrets.redactor, notes, cases, withheld);
        let Identity { system, runs, .. } = self.identity.clone();
        evaluation::report_observed(
            entry,
            Recording { outcomes, facts, system, runs },
            Some(folder),
        )
    }

    /// The given definitions, as far as they can be those of the server that was recorded.
    fn known(&self, listed: &BTreeMap<String, bool>) -> Known {
        let Some(Definitions { path, tools }) = &self.definitions else { return Known::default() };
        let shown = path.display();
        let mut notes = Vec::new();
        let given: BTreeSet<&str> = tools.iter().map(Definition::name).collect();
        let lacking: Vec<&str> =
            listed.keys().map(String::as_str).filter(|name| !given.contains(name)).collect();
        if !lacking.is_empty() {
            notes.push(format!(
                "{shown} lacks tools that the recorded server had: {}",
                first_few(&lacking, NAMED)
            ));
        }
        // A tool that the server did not have then rejected nothing, whatever a later server has.
        let new = |tool: &&Definition| {
            !listed.contains_key(tool.name())
                && calls(&self.answers).any(|name| name == tool.name())
        };
        let newer: Vec<&str> = tools.iter().filter(new).map(Definition::name).collect();
        if !newer.is_empty() {
            notes.push(format!(
                "{shown} has tools that the recorded server lacked when they were called: {}",
                first_few(&newer, NAMED)
            ));
        }
        let tools = tools.iter().filter(|tool| !new(tool)).cloned().collect();
        Known { tools: Some(tools), notes }
    }

    /// The notes of the report about the recording.
    fn notes(
        &self,
        all: &[Arc<Case>],
        cases: &[Arc<Case>],
        outcomes: &[Outcome<CaseRun>],
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let (then, now) = (&self.identity.dataset, self.dataset());
        let path = self.path.display();
        if *then != now {
            notes.push(format!(
                "the suite changed after the run: {path} is of {} {}, and this is {} {}",
                then.id, then.digest, now.id, now.digest
            ));
        }
        let known: BTreeSet<&str> = all.iter().map(|case| case.id.as_str()).collect();
        let removed: Vec<&str> = (self.answers.iter())
            .map(|answer| answer.id.as_str())
            .filter(|id| !known.contains(id))
            .collect();
        if !removed.is_empty() {
            let cases = count(removed.len(), "case");
            let named = first_few(&removed, NAMED);
            notes.push(format!("{cases} of the run no longer in the suite: {named}"));
        }
        let open = not_recorded(outcomes);
        if !open.is_empty() {
            let ids: Vec<&str> = open.iter().map(|(id, _)| *id).collect();
            let (open, all) = (ids.len(), cases.len());
            notes.push(format!(
                "not recorded, and not judged: {open} of {all} cases: {}",
                first_few(&ids, NAMED)
            ));
        }
        notes.push(format!(
            "judged by the answers in {path}: restarts of the server, its conduct apart from answers, and the \
             teardown of the suite were not recorded"
        ));
        notes
    }
}

impl AnyEntry for Recorded {
    fn kind(&self) -> Kind {
        self.entry.kind()
    }

    fn common(&self) -> &Common {
        &self.entry.common
    }

    fn dataset(&self) -> DatasetRef {
        self.entry.dataset()
    }

    fn reads(&self) -> Vec<PathBuf> {
        let tools = self.definitions.iter().map(|definitions| definitions.path.clone());
        self.entry.reads().into_iter().chain([self.path.clone()]).chain(tools).collect()
    }

    fn computes(&self) -> Option<Computes> {
        self.entry.computes()
    }

    fn run<'a>(&'a self, context: &'a RunContext<'a>) -> Running<'a> {
        Box::pin(async { self.report(context.folder) })
    }
}

/// The tools of the recorded server as far as they are given, and remarks on them.
#[derive(Default)]
struct Known {
    tools: Option<Vec<Definition>>,
    notes: Vec<String>,
}

/// One outcome for each case: its recorded answers, or the reason for which there are none.
fn outcomes(
    prints: &Fingerprints,
    all: &[Arc<Case>],
    cases: &[Arc<Case>],
    answers: &[Outcome<CaseRun>],
) -> Vec<Outcome<CaseRun>> {
    let calls: BTreeMap<&str, _> =
        all.iter().zip(&prints.cases).map(|(case, digest)| (case.id.as_str(), digest)).collect();
    let found: BTreeMap<&str, &Outcome<CaseRun>> =
        answers.iter().map(|answer| (answer.id.as_str(), answer)).collect();
    let outcome = |case: &Arc<Case>| {
        let why = match found.get(case.id.as_str()) {
            None => "the journal has no answers to this case".to_owned(),
            Some(answer) => match &answer.outcome {
                Kept::Failure { .. } => return (*answer).clone(),
                Kept::Answer(run) => {
                    let calls = calls.get(case.id.as_str()).copied();
                    match difference(case, run, (&prints.session, calls)) {
                        None => return (*answer).clone(),
                        Some(why) => why,
                    }
                }
            },
        };
        let class = "not_recorded".to_owned();
        let outcome = Kept::Failure { class, message: why };
        Outcome { run: 0, id: case.id.clone(), nanos: 0, outcome }
    };
    cases.iter().map(outcome).collect()
}

/// The difference between the requests of a case and the recorded ones.
fn difference(
    case: &Case,
    run: &CaseRun,
    (session, calls): (&Digest, Option<&Digest>),
) -> Option<String> {
    let Some(asked) = &run.asked else {
        let why =
            "it was recorded by an earlier version of Karat, without fingerprints of its requests";
        return Some(why.to_owned());
    };
    if asked.session != *session {
        let why =
            "the session is another one: `setup`, `hide_private`, `policies` or `protocol` changed";
        return Some(why.to_owned());
    }
    let (then, now) = (run.attempts.len(), case.repeat as usize);
    if then != now {
        return Some(format!("it asks for {now} attempts, and {then} were recorded"));
    }
    (Some(&asked.calls) != calls).then(|| {
        "its requests are not the recorded ones: its calls changed, or the calls that save values for them"
            .to_owned()
    })
}

/// The ids of the cases of a run.
fn ids(answers: &[Outcome<CaseRun>]) -> BTreeSet<&str> {
    answers.iter().map(|answer| answer.id.as_str()).collect()
}

/// The tools that the server is known to have had, each with whether it declared an output schema.
fn listed(answers: &[Outcome<CaseRun>]) -> BTreeMap<String, bool> {
    let asked = runs(answers).filter_map(|run| run.asked.as_ref());
    asked.flat_map(|asked| asked.tools.clone()).collect()
}

/// The names of the tools that were called.
fn calls(answers: &[Outcome<CaseRun>]) -> impl Iterator<Item = &str> {
    // A run without fingerprints does not show which of its tools were listed.
    let runs = runs(answers).filter(|run| run.asked.is_some());
    let attempts = runs.flat_map(|run| &run.attempts);
    let calls = attempts.flat_map(|attempt| &attempt.calls);
    calls.filter(|called| called.feature.is_tool()).map(|called| called.tool.as_str())
}

fn runs(answers: &[Outcome<CaseRun>]) -> impl Iterator<Item = &CaseRun> {
    answers.iter().filter_map(|answer| match &answer.outcome {
        Kept::Answer(run) => Some(run),
        Kept::Failure { .. } => None,
    })
}

/// Notes on secrets that are unknown here, on the cases that are not shown for that, and on those that the suite has
/// since the run.
fn notes_on_secrets(
    secrets: &SuiteSecrets,
    withheld: &BTreeSet<String>,
    new: &BTreeSet<String>,
) -> Vec<String> {
    let why: Vec<&str> = secrets.unknown.iter().map(String::as_str).collect();
    let why = match why.is_empty() {
        true => String::new(),
        false => format!(" ({})", first_few(&why, NAMED)),
    };
    let named = |ids: &BTreeSet<String>| {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        format!("{}: {}", count(ids.len(), "case"), first_few(&ids, NAMED))
    };
    let mut notes = Vec::new();
    if !withheld.is_empty() {
        notes.push(format!(
            "secrets of the server may be unknown here{why}, so the texts are not shown of cases that quoted some in \
             the run: {}",
            named(withheld)
        ));
    }
    if !new.is_empty() {
        notes.push(format!(
            "secrets of the server may be unknown here{why}, so the texts are not shown of cases that were not \
             recorded; an id that the suite has since the run is not hidden: {}",
            named(new)
        ));
    }
    if notes.is_empty() && !why.is_empty() {
        notes.push(format!("secrets of the server are unknown here{why}: a text that the suite has since the run is not hidden"));
    }
    notes
}

/// The cases that quoted secrets of the server in the run, unless all of these are known now: nothing that may
/// quote them is shown, whether they are judged or not.
fn withheld(
    cases: &[Arc<Case>],
    answers: &[Outcome<CaseRun>],
    redactor: &Redactor,
) -> BTreeSet<String> {
    let asked = |answer: &'_ Outcome<CaseRun>| match &answer.outcome {
        Kept::Answer(run) => run.asked.clone().filter(|asked| asked.has_secrets),
        Kept::Failure { .. } => None,
    };
    let quoting: BTreeMap<&str, Asked> =
        (answers.iter()).filter_map(|answer| Some((answer.id.as_str(), asked(answer)?))).collect();
    let is_unknown = |case: &&Arc<Case>| {
        let asked = quoting.get(case.id.as_str());
        // A text that was changed since is not the same either, so it is not known which secrets it had.
        asked.is_some_and(|asked| {
            !secrets::are_known(&asked.quoted, &secrets::quoted(case, redactor))
        })
    };
    cases.iter().filter(is_unknown).map(|case| case.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked;

    fn redactor(secrets: &[&str]) -> Redactor {
        let mut redactor = Redactor::default();
        secrets.iter().for_each(|secret| redactor.add(secret));
        redactor
    }

    fn suite(cases: &str) -> Suite {
        let text = format!(
            "mcp_server: {{command: x, env: {{A: '${{KARAT_TEST_IS_NOT_SET}}'}}}}\n{cases}"
        );
        Suite::parse(Path::new("s.yaml"), text.as_bytes()).unwrap()
    }

    /// The answers of a run that knew these secrets.
    fn recorded(suite: &Suite, redactor: &Redactor) -> Vec<Outcome<CaseRun>> {
        let prints = Fingerprints::of(suite, &suite.cases);
        let outcome = |(case, calls): (&Arc<Case>, &Digest)| {
            let digests = (prints.session, *calls);
            let asked = Some(asked::asked(case, digests, &BTreeMap::new(), redactor));
            let outcome = Kept::Answer(CaseRun { attempts: Vec::new(), asked });
            Outcome { run: 0, id: case.id.clone(), nanos: 0, outcome }
        };
        suite.cases.iter().zip(&prints.cases).map(outcome).collect()
    }

    #[test]
    fn a_case_is_shown_only_if_every_secret_that_it_quoted_in_the_run_is_known() {
        let then = suite(
            "cases:\n  - {id: plain, tool: t}\n  \
             - {id: one, tool: t, about: first-secret-1}\n  \
             - {id: both, tool: t, about: first-secret-1, expect: {equals: other-secret-2}}\n",
        );
        let all = redactor(&["first-secret-1", "other-secret-2"]);
        let answers = recorded(&then, &all);
        let hidden = |now: &Suite, known: &Redactor| withheld(&now.cases, &answers, known);
        assert!(hidden(&then, &all).is_empty());
        assert_eq!(hidden(&then, &redactor(&["first-secret-1"])), ["both".to_owned()].into());
        let none = ["both".to_owned(), "one".to_owned()].into();
        assert_eq!(hidden(&then, &Redactor::default()), none);
        // A text that was changed since may still have the secret that is not known.
        let changed = suite(
            "cases:\n  - {id: plain, tool: t}\n  \
             - {id: one, tool: t, about: first-secret-1, max_latency_ms: 5}\n  \
             - {id: both, tool: t, about: first-secret-1 and first-secret-1, expect: {equals: other-secret-2 now}}\n",
        );
        assert_eq!(hidden(&changed, &redactor(&["first-secret-1"])), ["both".to_owned()].into());
    }

    #[test]
    fn the_answers_of_an_earlier_version_are_not_shown_where_they_had_secrets() {
        let then = suite("cases:\n  - {id: one, tool: t, about: first-secret-1}\n");
        let known = redactor(&["first-secret-1"]);
        let mut answers = recorded(&then, &known);
        let Kept::Answer(CaseRun { asked: Some(asked), .. }) = &mut answers[0].outcome else {
            panic!("not an answer")
        };
        asked.quoted.clear();
        assert!(asked.has_secrets);
        assert_eq!(withheld(&then.cases, &answers, &known).len(), 1);
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let then = suite("cases:\n  - {id: one, tool: t}\n");
        let secrets = SuiteSecrets::of(&then, Path::new("."));
        let [none, one, other] = [&[][..], &["one"], &["two"]]
            .map(|ids| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<String>>());
        let notes = notes_on_secrets(&secrets, &none, &none);
        assert!(notes.len() == 1 && notes[0].contains("KARAT_TEST_IS_NOT_SET is not set"));
        let notes = notes_on_secrets(&secrets, &one, &other);
        assert!(notes[0].contains("is not set") && notes[0].ends_with("in the run: 1 case: one"));
        assert!(notes.len() == 2 && notes[1].ends_with("not hidden: 1 case: two"), "{notes:?}");
        assert!(notes_on_secrets(&SuiteSecrets::default(), &none, &none).is_empty());
    }
}

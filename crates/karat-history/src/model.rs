//! The part of a run that the history knows without opening its report.

use karat_core::report::{Better, CheckReport, DatasetRef, Interval, Kind, Report, Verdict};
use karat_report::html::Tone;
use serde::Serialize;

/// The result of a run or of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// All checks passed.
    Pass,
    /// There is not enough data to decide.
    Inconclusive,
    /// It got worse, or a limit is broken.
    Fail,
    /// It could not be measured.
    NotMeasured,
    /// It was measured and has no gate.
    #[default]
    NoGate,
}

impl State {
    const ALL: [State; 5] =
        [State::Pass, State::Inconclusive, State::Fail, State::NotMeasured, State::NoGate];

    /// The name, in tables and in the database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Pass => "pass",
            State::Inconclusive => "inconclusive",
            State::Fail => "fail",
            State::NotMeasured => "not measured",
            State::NoGate => "no gate",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.name() == name)
    }

    fn of_verdict(verdict: Verdict) -> State {
        match verdict {
            Verdict::Pass => State::Pass,
            Verdict::Inconclusive => State::Inconclusive,
            Verdict::Fail => State::Fail,
        }
    }

    /// The result of a check.
    pub(crate) fn of_check(check: &CheckReport) -> State {
        match check.verdict {
            Some(verdict) => State::of_verdict(verdict),
            None if check.not_measured.is_empty() => State::NoGate,
            None => State::NotMeasured,
        }
    }

    /// The result of a report.
    pub(crate) fn of_report(report: &Report) -> State {
        report.gate.as_ref().map_or(State::NoGate, |gate| State::of_verdict(gate.verdict))
    }
}

impl From<State> for Tone {
    fn from(state: State) -> Tone {
        let class = match state {
            State::NotMeasured => "lost",
            State::NoGate => "open",
            judged => judged.name(),
        };
        Tone { class, word: state.name() }
    }
}

/// An entry of a project, which is measured again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Subject {
    /// Its id in this history.
    #[serde(skip)]
    pub id: i64,
    /// The evaluation, such as `retrieval`.
    pub evaluation: String,
    /// The entry's name in the project.
    pub name: String,
}

impl Subject {
    /// Returns whether `retrieval`, `search` or `retrieval/search` refers to this one.
    pub fn matches(&self, text: &str) -> bool {
        text == self.evaluation
            || text == self.name
            || text.split_once('/').is_some_and(|(evaluation, name)| {
                evaluation == self.evaluation && name == self.name
            })
    }
}

/// One report that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// Its id, which is never reused.
    pub id: i64,
    /// The start of its first measurement, in UTC.
    pub started: String,
    /// The version of Karat that measured.
    pub karat: String,
    /// The commit of the project, if the report has it.
    pub commit: Option<String>,
    /// The result.
    pub state: State,
    /// The digest of the document.
    pub digest: String,
    /// The branch, if the report has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The first line of the commit's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_subject: Option<String>,
    /// The entries, in the order of the report.
    pub entries: Vec<Subject>,
    /// The results of the entries, in the same order.
    #[serde(skip)]
    pub states: Vec<State>,
}

/// One entry of one run with its numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// The run it belongs to.
    pub run: i64,
    /// The start of the run.
    pub started: String,
    /// The commit of the project.
    pub commit: Option<String>,
    /// The branch of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The first line of the commit's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_subject: Option<String>,
    /// The entry of the project.
    #[serde(flatten)]
    pub subject: Subject,
    /// The kind of its report; none if it could not be measured, or is older than the record of kinds.
    pub kind: Option<Kind>,
    /// The result.
    pub state: State,
    /// The reason for which it could not be measured.
    pub reason: Option<String>,
    /// The dataset; none if it could not be measured.
    pub dataset: Option<DatasetRef>,
    /// The kind, name and version of the system.
    pub system: String,
    /// The number of items.
    pub items: i64,
    /// The metric that represents the entry.
    pub headline: Option<String>,
    /// The numbers, in the order of the report.
    pub values: Vec<Value>,
}

impl Entry {
    /// The value of a metric.
    pub fn value(&self, metric: &str) -> Option<&Value> {
        self.values.iter().find(|value| value.metric == metric)
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Value {
    /// The id of the metric in this history.
    #[serde(skip)]
    pub metric_id: i64,
    /// The metric.
    pub metric: String,
    /// The value; none if it is undefined.
    pub value: Option<f64>,
    /// The number of items behind it.
    pub n: i64,
    /// The direction of improvement.
    pub better: Better,
    /// The interval of the value.
    pub interval: Option<Interval>,
    /// The reason for which there is no value.
    pub undefined: Option<String>,
}

//! What the history knows of a run without opening its report.

use karat_core::report::{Better, CheckReport, DatasetRef, Interval, Report, Verdict};
use serde::Serialize;

/// How a run or an entry ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Every check holds.
    Pass,
    /// The data cannot decide.
    Inconclusive,
    /// It got worse, or a limit is broken.
    Fail,
    /// It could not be measured.
    NotMeasured,
    /// It was measured, and nothing judged it.
    #[default]
    NoGate,
}

impl State {
    const ALL: [State; 5] =
        [State::Pass, State::Inconclusive, State::Fail, State::NotMeasured, State::NoGate];

    /// The word for it, in tables and in the database.
    pub fn word(self) -> &'static str {
        match self {
            State::Pass => "pass",
            State::Inconclusive => "inconclusive",
            State::Fail => "fail",
            State::NotMeasured => "not measured",
            State::NoGate => "no gate",
        }
    }

    /// The name of its look in the style that the report has too.
    pub fn class(self) -> &'static str {
        match self {
            State::NotMeasured => "lost",
            State::NoGate => "open",
            judged => judged.word(),
        }
    }

    pub(crate) fn of_word(word: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.word() == word)
    }

    fn of_verdict(verdict: Verdict) -> State {
        match verdict {
            Verdict::Pass => State::Pass,
            Verdict::Inconclusive => State::Inconclusive,
            Verdict::Fail => State::Fail,
        }
    }

    /// How a whole check ended.
    pub(crate) fn of_check(check: &CheckReport) -> State {
        match check.verdict {
            Some(verdict) => State::of_verdict(verdict),
            None if check.not_measured.is_empty() => State::NoGate,
            None => State::NotMeasured,
        }
    }

    /// How one report ended.
    pub(crate) fn of_report(report: &Report) -> State {
        report.gate.as_ref().map_or(State::NoGate, |gate| State::of_verdict(gate.verdict))
    }
}

/// What is measured again and again: an entry of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Subject {
    /// Its number in this history.
    #[serde(skip)]
    pub id: i64,
    /// Which evaluation, such as `retrieval`.
    pub evaluation: String,
    /// The entry's name in the project.
    pub name: String,
}

impl Subject {
    /// Whether a person means this one by `retrieval`, `search` or `retrieval/search`.
    pub fn is_called(&self, text: &str) -> bool {
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
    /// Its number; never given twice.
    pub id: i64,
    /// When the first of its measurements started, in UTC.
    pub started: String,
    /// The version of Karat that measured.
    pub karat: String,
    /// Where the project stood, if the report says it.
    pub commit: Option<String>,
    /// How it ended.
    pub state: State,
    /// The digest of the document.
    pub digest: String,
    /// The entries, in the order of the report.
    pub entries: Vec<Subject>,
}

/// One entry of one run with its numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// The run it belongs to.
    pub run: i64,
    /// When the run started.
    pub started: String,
    /// Where the project stood.
    pub commit: Option<String>,
    /// What was measured.
    #[serde(flatten)]
    pub subject: Subject,
    /// How it ended.
    pub state: State,
    /// Why it could not be measured.
    pub reason: Option<String>,
    /// On which data; none where it could not be measured.
    pub dataset: Option<DatasetRef>,
    /// Kind, name and version of the system.
    pub system: String,
    /// Over how many items.
    pub items: i64,
    /// The metric that speaks for the entry.
    pub headline: Option<String>,
    /// The numbers, in the order of the report.
    pub values: Vec<Value>,
}

impl Entry {
    /// The number under this name.
    pub fn value(&self, metric: &str) -> Option<&Value> {
        self.values.iter().find(|value| value.metric == metric)
    }
}

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Value {
    /// The metric's number in this history.
    #[serde(skip)]
    pub metric_id: i64,
    /// The metric.
    pub metric: String,
    /// The value; null where it is undefined.
    pub value: Option<f64>,
    /// Over how many items.
    pub n: i64,
    /// Which direction is better.
    pub better: Better,
    /// The interval of the value.
    pub interval: Option<Interval>,
    /// Why there is no value.
    pub undefined: Option<String>,
}

//! A model's opinion on whether a task was completed.
//!
//! The procedure follows DeepEval's MCP task completion without its faults: a conversation is cut into
//! units (each begins with a user message), none is skipped, each gets a number of votes from 0 to 1, and
//! the score is the mean. Every verdict names prompt and judge, and verdicts are recorded: a report uses
//! recorded ones and asks no model. Opinions differ, so no gate uses them unless it names the metric.

pub(crate) mod labels;
mod units;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use karat_core::error::EvalError;
use karat_core::run::Options;
use karat_io::http::Client;
use karat_io::input::{self, Limits};
use karat_io::text::clip;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::labels::Labels;
use self::units::{SHOWN, Unit, units};
use crate::run::{Model, ask};
use crate::trace::{Setting, Trace, Turns};

/// The prompt, and its name in verdicts. A changed prompt is another file.
const PROMPT: &str = include_str!("task-completion-v1.txt");
/// The name of the prompt.
pub(crate) const PROMPT_NAME: &str = "task-completion-v1";
/// A vote of at least this means that the task was completed.
pub(crate) const THRESHOLD: f64 = 0.5;
/// The number of times that a busy endpoint is asked again, and the pause before the first.
const RETRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);
/// The start of the reason if a judge was not asked.
const NOT_ASKED: &str = "not asked: ";

/// One vote on one unit of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The task.
    pub id: String,
    /// The model that acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The setting.
    #[serde(default)]
    pub setting: Setting,
    /// Single or multi.
    #[serde(default)]
    pub turns: Turns,
    /// The run.
    pub run: u32,
    /// The unit of the conversation, from 1.
    pub unit: usize,
    /// The number of the vote, from 1.
    pub vote: u32,
    /// The vote, from 0 to 1; none if the judge gave none.
    pub score: Option<f64>,
    /// The judge's reason, or the error.
    #[serde(default)]
    pub reason: String,
    /// The judge.
    pub judge: String,
    /// The prompt.
    pub prompt: String,
}

impl Verdict {
    /// Returns whether the judge was asked at all.
    pub fn was_asked(&self) -> bool {
        self.score.is_some() || !self.reason.starts_with(NOT_ASKED)
    }
}

fn prompt(unit: &Unit, trace: &Trace) -> String {
    let criteria = trace.expect.as_ref().map(|expect| expect.criteria.join("\n"));
    let criteria = criteria.filter(|text| !text.is_empty()).unwrap_or("(nothing)".to_owned());
    // Each placeholder is filled once: one that is part of a text stays text.
    let mut text = String::new();
    let mut rest = PROMPT;
    for (place, value) in
        [("{task}", &unit.task), ("{criteria}", &criteria), ("{steps}", &unit.steps)]
    {
        if let Some((before, after)) = rest.split_once(place) {
            text.push_str(before);
            text.push_str(value);
            rest = after;
        }
    }
    text + rest
}

/// Asks the judge for its votes on a trace. A unit that cannot be judged has one verdict without a
/// score, with the reason.
pub async fn judge(trace: &Trace, judge: &Model, votes: u32, client: &Client) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (number, unit) in (1..).zip(units(trace)) {
        let verdict = |vote: u32, (score, reason): (Option<f64>, String)| Verdict {
            id: trace.id.clone(),
            model: trace.model.clone(),
            setting: trace.setting,
            turns: trace.turns,
            run: trace.run,
            unit: number,
            vote,
            score,
            reason,
            judge: judge.name.clone(),
            prompt: PROMPT_NAME.to_owned(),
        };
        let unit = match unit {
            Ok(unit) => unit,
            Err(why) => {
                verdicts.push(verdict(1, (None, format!("{NOT_ASKED}{why}"))));
                continue;
            }
        };
        let messages = [json!({"role": "user", "content": prompt(&unit, trace)})];
        let retries = Options { retries: RETRIES, backoff: PAUSE, ..Options::default() };
        for vote in 1..=votes {
            let request = judge.plain_request(&messages, u64::from(vote));
            let answer = ask(client, &retries, judge, &request).await;
            let said = match answer.and_then(|answer| judge.text_of(&answer)) {
                Ok(text) => opinion(&text),
                Err(error) => (None, format!("{}: {}", error.class, error.message)),
            };
            verdicts.push(verdict(vote, said));
        }
    }
    verdicts
}

/// The vote in an answer: the first JSON object with a score, limited to 0 and 1.
fn opinion(text: &str) -> (Option<f64>, String) {
    let mut from = 0;
    while let Some(start) = text[from..].find('{').map(|at| from + at) {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        if let Some(Ok(value)) = values.next()
            && let Some(score) = value.get("score").and_then(Value::as_f64)
        {
            let reason = value.get("reason").and_then(Value::as_str).unwrap_or_default();
            return (Some(score.clamp(0.0, 1.0)), clip(reason, SHOWN).into_owned());
        }
        from = start + 1;
    }
    (None, format!("no vote in the answer: {}", clip(text, 200)))
}

/// The verdicts on one trace, together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opinion {
    /// Mean over the units of the mean of their votes; none if a unit has no vote.
    pub score: Option<f64>,
    /// Mean over the units of the share of votes on the side of the majority.
    pub agreement: Option<f64>,
}

/// Recorded verdicts.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    by_trace: BTreeMap<String, BTreeMap<usize, Vec<Option<f64>>>>,
    /// Judges and prompts, for the report.
    pub by: std::collections::BTreeSet<String>,
    /// Votes that a judge did not give.
    pub missing: u64,
    /// Labels of people, to compare the judge with.
    pub labels: Option<Labels>,
}

fn key(id: &str, model: Option<&str>, setting: Setting, turns: Turns, run: u32) -> String {
    format!("{:?}", (id, model, setting, turns, run))
}

impl Verdicts {
    /// Reads verdicts, one per line.
    ///
    /// # Errors
    /// If a line is not a verdict.
    pub(crate) fn load(path: &Path) -> Result<Self, EvalError> {
        let limits = Limits::default();
        let mut all = Verdicts::default();
        for record in input::lines(path, &limits)?.records::<Verdict>() {
            let (_, verdict) = record?;
            all.add(&verdict);
        }
        Ok(all)
    }

    /// Adds a verdict.
    pub(crate) fn add(&mut self, verdict: &Verdict) {
        let model = verdict.model.as_deref();
        let key = key(&verdict.id, model, verdict.setting, verdict.turns, verdict.run);
        self.by.insert(format!("{} by {}", verdict.judge, verdict.prompt));
        self.missing += u64::from(verdict.score.is_none());
        let score = verdict.score.map(|score| score.clamp(0.0, 1.0));
        self.by_trace.entry(key).or_default().entry(verdict.unit).or_default().push(score);
    }

    /// The opinion on a trace.
    pub(crate) fn of(&self, trace: &Trace) -> Option<Opinion> {
        let (id, model, setting, turns, run) = trace.key();
        let units = self.by_trace.get(&key(id, model, setting, turns, run))?;
        let (mut scores, mut agreements) = (Vec::new(), Vec::new());
        for votes in units.values() {
            let given: Vec<f64> = votes.iter().copied().flatten().collect();
            let Ok(mean) = karat_metrics::stats::mean(&given) else {
                return Some(Opinion::default());
            };
            let passed = given.iter().filter(|vote| **vote >= THRESHOLD).count();
            scores.push(mean);
            agreements.push(passed.max(given.len() - passed) as f64 / given.len() as f64);
        }
        Some(Opinion {
            score: karat_metrics::stats::mean(&scores).ok(),
            agreement: karat_metrics::stats::mean(&agreements).ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_in_a_text_stays_text() {
        let unit = Unit { task: "{steps}".into(), steps: "x".into() };
        let text = prompt(&unit, &Trace::of("t"));
        assert!(text.contains("Task:\n{steps}\n") && text.contains("in order:\nx\n"), "{text}");
    }

    #[test]
    fn a_vote_is_found_in_prose_and_limited_to_its_range() {
        assert_eq!(
            opinion("Well {x} {\"score\": 0.5, \"reason\": \"r\"}!"),
            (Some(0.5), "r".into())
        );
        assert_eq!(opinion("{\"score\": 5}").0, Some(1.0));
        assert_eq!(opinion("I think it is fine").0, None);
    }

    #[test]
    fn votes_are_averaged_and_their_agreement_is_computed() {
        let mut verdicts = Verdicts::default();
        for (vote, score) in [(1, Some(1.0)), (2, Some(0.75)), (3, Some(0.25)), (4, None)] {
            verdicts.add(&Verdict {
                id: "t".into(),
                model: None,
                setting: Setting::WithTools,
                turns: Turns::Single,
                run: 1,
                unit: 1,
                vote,
                score,
                reason: String::new(),
                judge: "j".into(),
                prompt: PROMPT_NAME.into(),
            });
        }
        let opinion = verdicts.of(&Trace::of("t")).unwrap();
        assert_eq!(opinion.score, Some(2.0 / 3.0));
        assert_eq!(opinion.agreement, Some(2.0 / 3.0));
        assert_eq!(verdicts.missing, 1);
        assert_eq!(verdicts.of(&Trace::of("other")), None);
    }
}

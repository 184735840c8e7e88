//! Cases that are a text without a tool: each is sent to every tool that takes free text.
//!
//! `{"input": "read /etc/passwd", "expected_behavior": "deny"}` becomes a case for each such parameter, and
//! every tool must deny it. `{"input": "…", "expected": "…"}` becomes one case, which passes if one tool
//! answers as expected.

use std::collections::BTreeSet;
use std::sync::Arc;

use karat_core::expect::{Matcher, MatcherSpec};
use karat_core::journal::{Entry, Outcome};
use karat_mcp::Definition;
use serde_json::{Map, Value};

use super::{Case, Ending, Step};
use crate::attack::parameters::{self, Parameter};
use crate::fuzz::generate::plainest;
use crate::observation::{Called, CaseRun};

/// The number of parameters of one tool that a text is sent through.
const MAX_PARAMETERS: usize = 4;
/// Expected texts that describe an answer instead of quoting it.
const DESCRIPTIONS: [&str; 8] =
    ["allow", "allowed", "answer", "normal", "normal response", "response", "success", "ok"];

/// A case without arguments.
#[derive(Debug)]
pub(crate) struct TextCase {
    /// The id, unique in the suite.
    pub(super) id: String,
    pub(super) about: Option<String>,
    pub(super) tags: BTreeSet<String>,
    /// The text.
    pub(super) text: String,
    /// The tool; every one if there is none.
    pub(super) tool: Option<String>,
    pub(super) wanted: Wanted,
    pub(super) max_latency_ms: Option<u64>,
    pub(super) class: Option<String>,
    pub(super) repeat: u32,
}

/// The expected reaction to a text.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Every tool denies it.
    Denied,
    /// One tool answers it, with an answer that matches.
    Answered(Vec<MatcherSpec>),
}

/// Returns whether a text is somewhere in a value.
fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(fields) => fields.values().any(|field| holds(field, text)),
        _ => false,
    }
}

/// Returns whether an expected text only describes an answer, such as "normal response".
pub(super) fn is_description(text: &str) -> bool {
    DESCRIPTIONS.contains(&text.trim().to_lowercase().as_str())
}

impl TextCase {
    /// The cases for the tools of a server; none if no tool takes free text.
    pub(super) fn cases(&self, tools: &[Definition]) -> Vec<Case> {
        let mut places = Vec::new();
        for tool in tools {
            if self.tool.as_ref().is_some_and(|wanted| wanted != tool.name()) {
                continue;
            }
            let is_text = |one: &Parameter| one.is_free_text();
            let taking = parameters::of(tool).into_iter().filter(is_text).take(MAX_PARAMETERS);
            places.extend(taking.map(|parameter| {
                let mut arguments = plainest(tool.input_schema(), &Map::new());
                parameter.put(&mut arguments, Value::String(self.text.clone()));
                (format!("{}.{}", tool.name(), parameter.name), tool.name(), arguments)
            }));
        }
        match &self.wanted {
            Wanted::Denied => places
                .into_iter()
                .map(|(place, tool, arguments)| {
                    let step = self.step(tool, arguments, Ending::Denied, Vec::new());
                    self.case(format!("{}/{place}", self.id), step, Vec::new())
                })
                .collect(),
            Wanted::Answered(specs) => {
                let mut steps = places.into_iter().map(|(_, tool, arguments)| {
                    // They were compiled once when the suite was read.
                    let matchers = specs.iter().filter_map(|spec| spec.compile().ok()).collect();
                    self.step(tool, arguments, Ending::Answered, matchers)
                });
                let first = steps.next();
                let case = first.map(|step| self.case(self.id.clone(), step, steps.collect()));
                case.into_iter().collect()
            }
        }
    }

    /// The cases for the tools and parameters of an earlier run, by its calls. Without calls that sent this
    /// text it is one case, which nothing recorded answers.
    pub(super) fn cases_as_recorded(&self, answers: &[Entry<CaseRun>]) -> Vec<Case> {
        let attempt = |answer: &Entry<CaseRun>| match &answer.outcome {
            Outcome::Answer(run) => run.attempts.first().cloned(),
            Outcome::Failure { .. } => None,
        };
        let is_sent = |called: &&Called| {
            self.tool.as_ref().is_none_or(|tool| *tool == called.tool)
                && called.arguments.values().any(|value| holds(value, &self.text))
        };
        let mut cases = Vec::new();
        for answer in answers {
            let is_own = match (&self.wanted, answer.id.strip_prefix(self.id.as_str())) {
                (Wanted::Denied, Some(place)) => place.starts_with('/'),
                (Wanted::Answered(_), Some(place)) => place.is_empty(),
                (_, None) => false,
            };
            let Some(attempt) = attempt(answer).filter(|_| is_own) else { continue };
            let mut steps = attempt.calls.iter().filter(is_sent).map(|called| {
                let arguments = called.arguments.clone();
                match &self.wanted {
                    Wanted::Denied => {
                        self.step(&called.tool, arguments, Ending::Denied, Vec::new())
                    }
                    Wanted::Answered(specs) => {
                        let matchers = specs.iter().filter_map(|spec| spec.compile().ok());
                        self.step(&called.tool, arguments, Ending::Answered, matchers.collect())
                    }
                }
            });
            if let Some(first) = steps.next() {
                cases.push(self.case(answer.id.clone(), first, steps.collect()));
            }
        }
        if cases.is_empty() {
            let tool = self.tool.as_deref().unwrap_or("text");
            let step = self.step(tool, Map::new(), Ending::Whatever, Vec::new());
            cases.push(self.case(self.id.clone(), step, Vec::new()));
        }
        cases
    }

    fn step(
        &self,
        tool: &str,
        input: Map<String, Value>,
        ending: Ending,
        matchers: Vec<Matcher>,
    ) -> Step {
        let asked = (ending == Ending::Denied).then(|| self.text.clone());
        Step { ending, matchers, asked, ..Step::plain(tool, input) }
    }

    fn case(&self, id: String, step: Step, then: Vec<Step>) -> Case {
        Case {
            own_id: id.clone(),
            name: step.tool.clone(),
            id,
            about: Some(self.about.clone().unwrap_or_else(|| self.text.clone())),
            tags: self.tags.clone(),
            any_of: matches!(self.wanted, Wanted::Answered(_)),
            step: Arc::new(step),
            setup: Arc::default(),
            then: then.into(),
            teardown: Arc::default(),
            max_latency_ms: self.max_latency_ms,
            repeat: self.repeat,
            concurrency: 1,
            class: self.class.clone(),
            needs_tool: true,
            weight: 1,
        }
    }
}

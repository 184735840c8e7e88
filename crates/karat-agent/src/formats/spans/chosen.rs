//! One of the choices that a model gave to a request for several (`n` above 1).
//!
//! A conversation goes on with one of them, and the calls of the others were never made. As in exchanges
//! of messages, the choice counts that the conversation goes on with, and the first if nothing shows that.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Span;
use super::choices::{ANSWER, CHOICE, FINISH, LANGFUSE_PARAMETERS, ends_in_calls};
use super::messages::{after_answer, inputs, outputs};
use super::same::is_same;
use crate::formats::dialog::{Piece, pieces, structured};
use crate::trace::CallMade;

/// The number of later spans that are searched for the choice: a trace may have very many, each with a long request.
const MAX_LATER: usize = 256;

/// A model's answer in a span.
#[derive(Default)]
pub(super) struct Chosen {
    /// Its messages; where there are several choices, the messages of one.
    pub(super) messages: Vec<Value>,
    /// The calls of the choices before that one.
    pub(super) passed_over: Vec<CallMade>,
}

/// The answers that count. There is one, unless the events of several exchanges are on one span.
pub(super) fn chosen(spans: &[Span], at: usize) -> Chosen {
    let number = |message: &Value| message.get(ANSWER).and_then(Value::as_u64).unwrap_or(0);
    let mut answers: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for message in outputs(&spans[at]) {
        answers.entry(number(&message)).or_default().push(message);
    }
    let mut chosen = Chosen::default();
    for (number, messages) in answers {
        let choices = choices(&spans[at], messages);
        let said: Vec<Said> = match choices.len() {
            1 => Vec::new(),
            _ => choices.iter().map(|choice| Said::of(choice)).collect(),
        };
        match choice(spans, at, number, &choices, &said) {
            None => chosen.messages.extend(choices.into_iter().flatten()),
            Some(one) => {
                chosen.messages.extend(choices.into_iter().nth(one).unwrap_or_default());
                chosen.passed_over.extend(said.into_iter().take(one).flat_map(Said::into_calls));
            }
        }
    }
    chosen
}

/// The choice of an answer that counts; none if it has one only.
fn choice(
    spans: &[Span],
    at: usize,
    answer: u64,
    choices: &[Vec<Value>],
    said: &[Said],
) -> Option<usize> {
    let span = &spans[at];
    let is_asked_for = asked_for(span).is_some_and(|number| number > 1);
    let is_one = || is_of_claude(span) || choices.iter().zip(said).any(is_part);
    if choices.len() < 2 || (!is_asked_for && is_one()) {
        return None;
    }
    let given = inputs(span);
    let (mut first, mut by_id) = (None, BTreeSet::new());
    let mut take = |all: Vec<Shown>| {
        for shown in &all {
            first.get_or_insert(shown.number);
            by_id.extend(shown.by_id.then_some(shown.number));
        }
        !all.is_empty()
    };
    let next = usize::try_from(answer).map(|answer| after_answer(span, answer));
    let mut is_in_request = take(shown_by(said, next.unwrap_or_default()));
    if !is_in_request {
        // The exchange after the one that shows it has choices of its own.
        is_in_request = spans
            .iter()
            .skip(at + 1)
            .take(MAX_LATER)
            .any(|later| take(shown(said, later, &given)) && !later.is_tool());
    }
    let is_stated = is_asked_for
        || ends(span) == Some(choices.len())
        || choices.iter().flatten().all(|message| message.get(CHOICE).is_some());
    let is_one = match is_stated {
        true => !is_asked_for && by_id.len() > 1,
        // Only a request that goes on with one of them tells.
        false => !is_in_request || by_id.len() != 1,
    };
    (!is_one).then(|| first.unwrap_or(0))
}

/// Returns whether the model is one of Anthropic, which gives one answer: some instrumentations number its blocks.
fn is_of_claude(span: &Span) -> bool {
    let keys = ["gen_ai.system", "gen_ai.provider.name", "gen_ai.request.model"];
    let named = keys.iter().filter_map(|key| span.anywhere(&[key])?.as_str());
    named.chain(span.scope.as_deref()).chain([span.name.as_str()]).any(|name| {
        let name = name.to_lowercase();
        name.contains("anthropic") || name.contains("claude")
    })
}

/// Returns whether this is not a choice of its own: the model stopped to have tools called, and the calls are
/// elsewhere.
fn is_part((messages, said): (&Vec<Value>, &Said)) -> bool {
    said.calls.is_empty()
        && messages.iter().any(|message| message.get(FINISH).is_some_and(ends_in_calls))
}

/// Messages that may be choices. They are one answer unless they have numbers, the request says that several were
/// asked for, or each has its end: a model's answer may be recorded as several messages.
fn choices(span: &Span, messages: Vec<Value>) -> Vec<Vec<Value>> {
    let number = |message: &Value| message.get(CHOICE).and_then(Value::as_u64);
    let numbers: Option<Vec<u64>> = messages.iter().map(number).collect();
    let numbers = match numbers {
        Some(numbers) => numbers,
        None if (asked_for(span).is_some_and(|number| number > 1)
            || ends(span) == Some(messages.len())
            || messages.iter().all(|message| message.get(FINISH).is_some()))
            && messages.iter().all(is_said) =>
        {
            (0..).take(messages.len()).collect()
        }
        None => return vec![messages],
    };
    let mut choices: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for (number, message) in numbers.into_iter().zip(messages) {
        choices.entry(number).or_default().push(message);
    }
    choices.into_values().collect()
}

/// The number of choices that a request asked for, if it is recorded.
fn asked_for(span: &Span) -> Option<u64> {
    let stated = span.number(&["gen_ai.request.choice.count"]);
    let in_parameters = |key: &&str| {
        let parameters = structured(span.attributes.get(*key)?);
        let names = ["n", "candidate_count", "candidateCount"];
        names.iter().find_map(|name| parameters.get(*name)?.as_u64())
    };
    stated.or_else(|| {
        ["llm.invocation_parameters", LANGFUSE_PARAMETERS].iter().find_map(in_parameters)
    })
}

/// The number of ends of a response: by the conventions, one for each choice.
fn ends(span: &Span) -> Option<usize> {
    let ends = span.attributes.get("gen_ai.response.finish_reasons").filter(|_| span.is_exchange());
    Some(structured(ends?).as_array()?.len())
}

/// Returns whether nothing but the model is in a message.
fn is_said(message: &Value) -> bool {
    let pieces = pieces(message).unwrap_or_default();
    !pieces.iter().any(|piece| matches!(piece, Piece::Outcome { .. } | Piece::User(_)))
}

/// The content of messages.
#[derive(Default)]
struct Said {
    /// The calls, with their ids.
    calls: Vec<(Option<String>, CallMade)>,
    answer: Option<String>,
    /// The ids of the calls that have their results here.
    results: Vec<String>,
}

impl Said {
    fn of(messages: &[Value]) -> Said {
        let mut said = Said::default();
        for piece in messages.iter().filter_map(pieces).flatten() {
            match piece {
                Piece::Call { id, call } => said.calls.push((id, *call)),
                Piece::Answer(answer) => said.answer = Some(answer),
                Piece::Outcome { id: Some(id), .. } => said.results.push(id),
                _ => {}
            }
        }
        said
    }

    fn into_calls(self) -> impl Iterator<Item = CallMade> {
        self.calls.into_iter().map(|(_, call)| call)
    }

    /// Returns whether the calls of this choice are all in a message, by their ids.
    fn is_called_in(&self, message: &Said) -> bool {
        let is_in = |(id, call): &(Option<String>, CallMade)| {
            id.is_some()
                && message.calls.iter().any(|(other, made)| other == id && is_same(call, made))
        };
        !self.calls.is_empty() && self.calls.iter().all(is_in)
    }

    /// Returns whether one of the messages has the result of a call of this choice, by its id.
    fn has_result_in(&self, messages: &[Said]) -> bool {
        self.calls
            .iter()
            .filter_map(|(id, _)| id.as_ref())
            .any(|id| messages.iter().any(|message| message.results.contains(id)))
    }

    /// Returns whether a call of this choice can be the one that a span executes. Without the ids of both,
    /// the tool and the arguments tell.
    fn can_be(&self, id: Option<&str>, made: &CallMade) -> bool {
        self.calls.iter().any(|(own, call)| {
            let is_other = own.as_deref().zip(id).is_some_and(|(own, id)| own != id);
            !is_other && is_same(call, made)
        })
    }

    fn is(&self, other: &Said) -> bool {
        if self.calls.is_empty() && other.calls.is_empty() {
            return self.answer.is_some() && self.answer == other.answer;
        }
        self.calls.len() == other.calls.len()
            && self.calls.iter().zip(&other.calls).all(|((id, call), (other_id, other))| {
                (id.is_none() || other_id.is_none() || id == other_id) && is_same(call, other)
            })
    }
}

/// A choice that a later span shows.
struct Shown {
    number: usize,
    /// True if ids of calls show it, which a choice that was not taken has for itself.
    by_id: bool,
}

/// The choices of which a span executes a call, or that a request has after the messages that were `given` before.
fn shown(said: &[Said], span: &Span, given: &[Value]) -> Vec<Shown> {
    if span.is_tool() {
        let (id, Some(made)) = (span.call_id(), span.call(0)) else { return Vec::new() };
        let found = numbers(said, id.is_some(), |said| said.can_be(id.as_deref(), &made));
        // A call that fits several choices shows none.
        return if found.len() == 1 { found } else { Vec::new() };
    }
    shown_by(said, since(inputs(span), given))
}

/// The choices that messages after them show.
fn shown_by(said: &[Said], messages: Vec<Value>) -> Vec<Shown> {
    let later: Vec<Said> = messages.into_iter().map(|message| Said::of(&[message])).collect();
    let by_id = match later.iter().any(|message| !message.calls.is_empty()) {
        true => numbers(said, true, |said| later.iter().any(|message| said.is_called_in(message))),
        // Some requests are recorded without the model's earlier messages.
        false => numbers(said, true, |said| said.has_result_in(&later)),
    };
    if !by_id.is_empty() {
        return by_id;
    }
    numbers(said, false, |said| later.iter().any(|message| said.is(message)))
}

fn numbers(said: &[Said], by_id: bool, is_shown: impl Fn(&Said) -> bool) -> Vec<Shown> {
    let all = said.iter().enumerate().filter(|(_, said)| is_shown(said));
    all.map(|(number, _)| Shown { number, by_id }).collect()
}

/// The messages of a request that an earlier one did not have. Long conversations lose their beginning.
fn since(messages: Vec<Value>, given: &[Value]) -> Vec<Value> {
    if messages.len() > given.len() {
        return messages.into_iter().skip(given.len()).collect();
    }
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for message in given {
        *known.entry(message.to_string()).or_default() += 1;
    }
    let is_new = |message: &Value| match known.get_mut(&message.to_string()) {
        Some(number) if *number > 0 => {
            *number -= 1;
            false
        }
        _ => true,
    };
    messages.into_iter().filter(is_new).collect()
}

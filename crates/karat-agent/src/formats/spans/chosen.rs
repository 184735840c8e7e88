//! One of the choices that a model gave to a request for several (`n` above 1).
//!
//! A conversation goes on with one of them, and the calls of the others were never made. As in exchanges
//! of messages, the choice counts that the conversation goes on with, and the first if nothing shows that.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Span;
use super::choices::CHOICE;
use super::messages::{inputs, outputs};
use super::same::is_same;
use crate::formats::dialog::{Piece, pieces, structured};
use crate::trace::CallMade;

/// The number of later spans that are searched for the choice: a trace may have very many.
const MAX_LATER: usize = 1000;

/// The messages of a model's answer in a span; where there are several choices, of one choice.
pub(super) fn chosen(spans: &[Span], at: usize) -> Vec<Value> {
    let span = &spans[at];
    let mut choices = choices(span, outputs(span));
    if choices.len() < 2 {
        return choices.pop().unwrap_or_default();
    }
    let said: Vec<Said> = choices.iter().map(|choice| Said::of(choice)).collect();
    let given = inputs(span).len();
    let mut later = spans.iter().skip(at + 1).take(MAX_LATER);
    let shown = |later: &Span| said.iter().position(|said| said.is_in(later, given));
    let found = later.find_map(shown).unwrap_or(0);
    choices.swap_remove(found)
}

/// Messages by choice. They are one answer unless they have numbers, or the request says that several were
/// asked for: a model's answer may be recorded as several messages.
fn choices(span: &Span, messages: Vec<Value>) -> Vec<Vec<Value>> {
    let number = |message: &Value| message.get(CHOICE).and_then(Value::as_u64);
    let numbers: Option<Vec<u64>> = messages.iter().map(number).collect();
    let numbers = match numbers {
        Some(numbers) => numbers,
        None if asked_for(span) > 1 && messages.iter().all(is_said) => {
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

/// The number of choices that a request asked for.
fn asked_for(span: &Span) -> u64 {
    let stated = span.number(&["gen_ai.request.choice.count"]);
    let parameters = || span.attributes.get("llm.invocation_parameters").map(structured);
    stated.or_else(|| parameters()?.get("n")?.as_u64()).unwrap_or(1)
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

    /// Returns whether a span executes a call of this choice, or is a request with the choice after the messages
    /// that were `given` before.
    fn is_in(&self, span: &Span, given: usize) -> bool {
        if span.is_tool() {
            let (id, made) = (span.call_id(), span.call(0));
            return id.is_some()
                && made.is_some_and(|made| {
                    self.calls.iter().any(|(own, call)| *own == id && is_same(call, &made))
                });
        }
        let later: Vec<Said> =
            inputs(span).into_iter().skip(given).map(|message| Said::of(&[message])).collect();
        if later.iter().any(|message| !message.calls.is_empty()) {
            return later.iter().any(|message| self.is(message));
        }
        // Some requests are recorded without the model's earlier messages.
        let has_result = |(id, _): &(Option<String>, _)| {
            id.as_ref().is_some_and(|id| later.iter().any(|message| message.results.contains(id)))
        };
        self.calls.iter().any(has_result) || later.iter().any(|message| self.is(message))
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

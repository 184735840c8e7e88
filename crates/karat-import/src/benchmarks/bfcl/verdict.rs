//! The verdict on one answer.

use karat_metrics::calls::bfcl::{self, Language};
use karat_metrics::calls::{Call, Value, json};

use super::category::{Category, Content};
use super::questions::{Question, line};
use super::written;
use crate::ImportError;
use crate::source::File;

/// One line of a result file.
pub(super) struct Answered<'t> {
    id: Option<String>,
    result: Value<'t>,
    tokens: Option<f64>,
    seconds: Option<f64>,
}

/// The lines of a result file.
pub(super) fn answers<'t>(file: &File, text: &'t str) -> Result<Vec<Answered<'t>>, ImportError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, text)| {
            let wrong =
                |found: String| ImportError::unexpected(&file.path, "answers with `result`", found);
            let Value::Object(answer) = line(file, at, text)? else {
                return Err(wrong(format!("line {} is not an object", at + 1)));
            };
            let id = match answer.get("id").or_else(|| answer.get("idx")) {
                Some(Value::String(id)) => Some(id.clone().into_owned()),
                _ => None,
            };
            let number = |key: &str| answer.get(key).and_then(Value::as_number);
            let tokens = number("input_token_count").zip(number("output_token_count"));
            let seconds = number("latency");
            let Some(result) = answer.get("result").cloned() else {
                return Err(wrong(format!("line {} without `result`", at + 1)));
            };
            Ok(Answered { id, result, tokens: tokens.map(|(a, b)| a + b), seconds })
        })
        .collect()
}

impl Answered<'_> {
    /// The id of the item; the first generation only numbers the lines.
    pub(super) fn id(&self, category: &Category, at: usize) -> String {
        self.id.clone().unwrap_or_else(|| format!("{}_{at}", category.name))
    }

    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    pub(super) fn tokens(&self) -> Option<f64> {
        self.tokens
    }

    pub(super) fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self.result, Value::String(_))
    }

    /// Returns whether the answer is calls of an interface, however few.
    pub(super) fn is_native(&self) -> bool {
        matches!(self.result, Value::List(_))
    }

    /// Returns whether the answer is a text in which calls seem to be.
    pub(super) fn seems_calls(&self) -> bool {
        match &self.result {
            Value::String(text) => {
                text.trim_start().starts_with(['[', '{']) || text.contains("tool_call")
            }
            _ => false,
        }
    }

    /// The failure of the interface that took the place of an answer.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.result {
            Value::String(text) if text.starts_with("Error during inference") => Some(text),
            _ => None,
        }
    }

    /// The calls; an error if the answer is not calls. Those of a model that was asked to write them are
    /// in its text.
    pub(super) fn calls(
        &self,
        category: &Category,
        prompted: bool,
    ) -> Result<Vec<Call<'static>>, String> {
        let calls = match &self.result {
            Value::List(calls) => calls,
            Value::String(text) if prompted => {
                let language = match category.content() {
                    Content::Calls(language) => language,
                    _ => Language::Python,
                };
                return written::calls(text, language);
            }
            _ => return Err("the answer is text without a call".to_owned()),
        };
        let call = |call: &Value<'_>| {
            let Value::Object(call) = call else {
                return Err("a call is not an object".to_owned());
            };
            let Some((name, arguments)) = call.iter().next() else {
                return Err("a call is empty".to_owned());
            };
            let arguments = match arguments {
                Value::String(text) => {
                    json::parse(text).map_err(|error| error.to_string())?.into_owned()
                }
                other => other.clone().into_owned(),
            };
            match arguments {
                Value::Object(arguments) => Ok(Call::new(name.to_owned(), arguments)),
                _ => Err("the arguments of a call are not an object".to_owned()),
            }
        };
        calls.iter().map(call).collect()
    }
}

/// Judges an answer by its calls; the error is the reason for which it is wrong.
pub(super) fn answered(
    calls: &Result<Vec<Call<'static>>, String>,
    question: &Question,
    category: &Category,
    dotted: bool,
) -> Result<(), String> {
    let calls = calls.as_ref();
    match category.content() {
        Content::Calls(_) => {
            let functions = if dotted { &question.functions } else { &question.underscored };
            let calls = calls.map_err(String::clone)?;
            let with_tuples = |call: &Call<'static>| {
                let takes = |parameter: &str, (function, known): &(String, String)| {
                    known == parameter && *function == call.name
                };
                written::with_tuples(call, |parameter| {
                    question.tuples.iter().any(|tuple| takes(parameter, tuple))
                })
            };
            let calls: Vec<Call<'_>> = match question.tuples.is_empty() {
                true => calls.clone(),
                false => calls.iter().map(with_tuples).collect(),
            };
            bfcl::check(functions, &question.answers, &calls).map_err(|error| error.to_string())
        }
        Content::NoCall => match calls {
            Ok(calls) if !calls.is_empty() => {
                Err("something is called where nothing fits".to_owned())
            }
            _ => Ok(()),
        },
        Content::AnyCall => match calls.map_err(String::clone)?.is_empty() {
            true => Err("nothing is called".to_owned()),
            false => Ok(()),
        },
        Content::World => Ok(()),
    }
}

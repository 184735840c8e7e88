//! Logs of Inspect: a JSON document with `samples`, or a `.eval` archive with a file for each sample.
//!
//! A sample is a trace: its id is the task, its epoch the run, its first score the outcome that was
//! judged elsewhere.

use std::path::Path;

use karat_core::error::EvalError;
use karat_io::input::{self, InputError, Limits, members};
use serde_json::{Value, json};

use super::chat::{added, usage_of};
use super::dialog::Dialog;
use super::exact::restore;
use super::{Importer, Position};
use crate::trace::fields::{Fields, typed};
use crate::trace::{Failed, Invalid, Outcome, Trace, Usage};

/// The size in bytes of one sample of an archive, and of all.
const MAX_SAMPLE_BYTES: u64 = 256 << 20;
const MAX_ARCHIVE_BYTES: u64 = 2 << 30;

pub(super) struct Inspect;

impl Importer for Inspect {
    fn take(&mut self, text: &str, _: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut fields = Fields::parse(text)?;
        let eval = fields.raw("eval");
        if eval.is_none() && fields.raw("status").is_none() {
            out.push(sample(text, None)?);
            return Ok(());
        }
        let model = eval.and_then(model_of);
        for (number, text) in fields.list("samples")?.unwrap_or_default().into_iter().enumerate() {
            let read = sample(text, model.as_deref());
            out.push(read.map_err(|error| error.within(&format!("samples[{number}]")))?);
        }
        Ok(())
    }
}

/// The model that a log evaluates.
fn model_of(eval: &str) -> Option<String> {
    Fields::parse(eval).ok()?.get("model").ok().flatten()
}

/// Reads a sample; `evaluated` is the model of the log.
fn sample(text: &str, evaluated: Option<&str>) -> Result<Trace, Invalid> {
    let mut fields = Fields::parse(text)?;
    let mut trace = Trace::of(crate::trace::read_id(&mut fields)?);
    trace.run = fields.get("epoch")?.unwrap_or(1);
    let mut dialog = Dialog::default();
    for message in fields.get::<Vec<Value>>("messages")?.unwrap_or_default() {
        if dialog.message(&message) {
            trace.messages.push(message);
        }
    }
    restore(text, &mut dialog.calls);
    dialog.into_trace(&mut trace);
    trace.model = fields.get::<Value>("output")?.and_then(|output| {
        output.get("model").and_then(Value::as_str).filter(|m| !m.is_empty()).map(str::to_owned)
    });
    // Model roles and graders have further entries, in the order of their first request. The names have
    // the provider before them, which the output's does not.
    if let Some(Value::Object(usage)) = fields.get("model_usage")? {
        let named = |name: &str| {
            let of_provider =
                |one: &&String| one.rsplit_once('/').is_some_and(|(_, model)| model == name);
            usage.get_key_value(name).map(|(key, _)| key).or_else(|| usage.keys().find(of_provider))
        };
        let own = evaluated.and_then(named).or_else(|| trace.model.as_deref().and_then(named));
        let chosen = usage.iter().filter(|(name, _)| own.is_none_or(|own| own == *name));
        let mut all = chosen.map(|(_, usage)| Usage {
            cached_tokens: usage.get("input_tokens_cache_read").and_then(Value::as_u64),
            reasoning_tokens: usage.get("reasoning_tokens").and_then(Value::as_u64),
            ..usage_of(usage)
        });
        let first = all.next().unwrap_or_default();
        trace.usage = match trace.model.is_some() {
            true => first,
            false => all.fold(first, added),
        };
        // Inspect counts what comes from the cache apart.
        if let Some(cached) = trace.usage.cached_tokens {
            trace.usage.input_tokens = trace.usage.input_tokens.map(|n| n.saturating_add(cached));
        }
    }
    let seconds = fields.any(&["working_time", "total_time"]);
    trace.usage.duration_ms = seconds.and_then(|text| text.parse().ok()).map(|s: f64| s * 1000.0);
    if let Some(Value::Object(scores)) = fields.get("scores")? {
        trace.outcome = scores.values().find_map(|score| Outcome::of(score.get("value")?));
    }
    if let Some(error) = fields.get::<Value>("error")? {
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        trace.failed = Some(Failed { class: "sample_error".to_owned(), message });
    }
    if let Some(limit) = fields.get::<Value>("limit")? {
        trace.stopped = limit.get("type").and_then(Value::as_str).map(str::to_owned);
    }
    Ok(trace)
}

/// The samples in a `.eval` archive, which is a zip file.
pub(crate) fn samples(archive: &Path) -> Result<Vec<String>, EvalError> {
    let limits = Limits { bytes: MAX_SAMPLE_BYTES, ..Limits::default() };
    let mut model = None;
    // The evaluated model is next to the samples, or in the first part of a log that was not finished.
    let is_header = |name: &str| matches!(name, "header.json" | "_journal/start.json");
    members(archive, &limits, is_header, |header| {
        let text = input::decode(header.name, header.bytes, &limits)?;
        let eval = Fields::parse(&text).ok().and_then(|mut fields| model_of(fields.raw("eval")?));
        if header.name == "header.json" || model.is_none() {
            model = eval.or(model.take());
        }
        Ok::<(), EvalError>(())
    })?;
    let mut all = Vec::new();
    let mut total = 0;
    let is_sample = |name: &str| name.starts_with("samples/") && name.ends_with(".json");
    members(archive, &limits, is_sample, |sample| {
        let text = input::decode(sample.name, sample.bytes, &limits)?;
        total += text.len() as u64;
        let wrong = |message: String| InputError::invalid(archive, sample.name, message);
        if total > MAX_ARCHIVE_BYTES {
            let most = MAX_ARCHIVE_BYTES >> 20;
            return Err(wrong(format!("more than {most} MB of samples up to here")).into());
        }
        typed::<serde::de::IgnoredAny>(&text).map_err(|error| wrong(error.to_string()))?;
        // With the model around it a sample is a log.
        all.push(match &model {
            Some(model) => format!("{{\"eval\":{},\"samples\":[{text}]}}", json!({"model": model})),
            None => text,
        });
        Ok::<(), EvalError>(())
    })?;
    Ok(all)
}

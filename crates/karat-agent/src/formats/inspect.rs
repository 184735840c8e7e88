//! Logs of Inspect: a JSON document with `samples`, or a `.eval` archive with a file for each sample.
//!
//! A sample is a trace: its id is the task, its epoch the run, its first score the outcome that was
//! judged elsewhere.

use std::io::Read as _;

use serde_json::{Value, json};

use super::chat::{added, usage_of};
use super::dialog::Dialog;
use super::exact::restore;
use super::{Importer, Position};
use crate::trace::fields::{Fields, typed};
use crate::trace::{Failed, Invalid, Outcome, Trace, Usage};

/// The size in bytes of one sample of an archive, and of the whole.
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
pub(crate) fn samples(archive: &[u8]) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    let mut total = 0;
    let entries = entries(archive)?;
    // The evaluated model is next to the samples, or in the first part of a log that was not finished.
    let header = ["header.json", "_journal/start.json"].iter().find_map(|name| {
        let entry = entries.iter().find(|entry| entry.name == *name)?;
        let text = entry.text(archive).ok()?;
        model_of(Fields::parse(&text).ok()?.raw("eval")?)
    });
    for entry in entries {
        let is_sample = entry.name.starts_with("samples/") && entry.name.ends_with(".json");
        if !is_sample {
            continue;
        }
        let text = entry.text(archive)?;
        total += text.len() as u64;
        if total > MAX_ARCHIVE_BYTES {
            return Err(format!("has more than {} MB of samples", MAX_ARCHIVE_BYTES >> 20));
        }
        typed::<serde::de::IgnoredAny>(&text)
            .map_err(|error| format!("{}: {error}", entry.name))?;
        // With the model around it a sample is a log.
        all.push(match &header {
            Some(model) => format!("{{\"eval\":{},\"samples\":[{text}]}}", json!({"model": model})),
            None => text,
        });
    }
    Ok(all)
}

/// An entry of a zip file.
struct Entry {
    name: String,
    method: usize,
    compressed: usize,
    offset: usize,
}

const CUT_OFF: &str = "the archive is cut off";

/// The entries by the directory at the end of the file.
fn entries(archive: &[u8]) -> Result<Vec<Entry>, String> {
    let number = |at: usize, size: usize| -> Result<usize, String> {
        let bytes = archive.get(at..at + size).ok_or(CUT_OFF)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    // The end record is the last one, before a comment of at most 64 kB.
    let from = archive.len().saturating_sub((1 << 16) + 22);
    let end = (from..archive.len()).rev().find(|at| archive[*at..].starts_with(b"PK\x05\x06"));
    let end = end.ok_or(CUT_OFF)?;
    let (count, mut at) = (number(end + 10, 2)?, number(end + 16, 4)?);
    let mut all = Vec::new();
    for _ in 0..count {
        if !archive.get(at..).is_some_and(|rest| rest.starts_with(b"PK\x01\x02")) {
            return Err(CUT_OFF.to_owned());
        }
        let name = number(at + 28, 2)?;
        let bytes = archive.get(at + 46..at + 46 + name).ok_or(CUT_OFF)?;
        all.push(Entry {
            name: String::from_utf8_lossy(bytes).into_owned(),
            method: number(at + 10, 2)?,
            compressed: number(at + 20, 4)?,
            offset: number(at + 42, 4)?,
        });
        at += 46 + name + number(at + 30, 2)? + number(at + 32, 2)?;
    }
    Ok(all)
}

impl Entry {
    fn text(&self, archive: &[u8]) -> Result<String, String> {
        let header = archive.get(self.offset..).ok_or(CUT_OFF)?;
        let length = |at: usize| {
            let bytes = header.get(at..at + 2).ok_or(CUT_OFF)?;
            Ok::<_, String>(usize::from(bytes[0]) | usize::from(bytes[1]) << 8)
        };
        let start = 30 + length(26)? + length(28)?;
        let bytes = header.get(start..start + self.compressed).ok_or(CUT_OFF)?;
        let mut text = String::new();
        let read = match self.method {
            0 => bytes.take(MAX_SAMPLE_BYTES).read_to_string(&mut text),
            8 => {
                let inflated = flate2::read::DeflateDecoder::new(bytes);
                inflated.take(MAX_SAMPLE_BYTES).read_to_string(&mut text)
            }
            93 => zstd::Decoder::new(bytes)
                .and_then(|plain| plain.take(MAX_SAMPLE_BYTES).read_to_string(&mut text)),
            method => return Err(format!("{}: unknown compression {method}", self.name)),
        };
        read.map_err(|error| format!("{}: {error}", self.name))?;
        Ok(text)
    }
}

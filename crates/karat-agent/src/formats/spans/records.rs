//! Exports of platforms that keep what a model was given and answered as it was: Braintrust, Opik and
//! Weave. Each record becomes a [`Span`] under the names of the GenAI conventions.

use serde_json::{Map, Value};

use super::Span;
use super::exports::{
    arguments_at, entries, keep_answer, messages, record, set, set_tool, set_usage, text,
};
use super::time::nanoseconds;
use crate::formats::dialog::{plain_text, structured};
use crate::trace::Invalid;
use crate::trace::fields::{Fields, is_list, is_object, list};

/// The field of a record, as a value.
fn own(fields: &Map<String, Value>, key: &str) -> Value {
    fields.get(key).map(structured).unwrap_or_default()
}

fn needed<'v>(fields: &'v Map<String, Value>, keys: &[&str]) -> Result<&'v str, Invalid> {
    text(fields, keys).ok_or_else(|| Invalid::at(keys[0], "is missing"))
}

/// A time as text or as seconds since 1970.
fn time(value: Option<&Value>) -> u128 {
    match value {
        Some(Value::Number(seconds)) => {
            let nanoseconds = seconds.as_f64().unwrap_or_default() * 1e9;
            format!("{nanoseconds:.0}").parse().unwrap_or(0)
        }
        Some(Value::String(text)) => nanoseconds(text),
        _ => 0,
    }
}

/// The task that a record is of, by what was noted with it.
fn set_task(span: &mut Span, metadata: &Value) {
    let task = ["karat.task", "task", "task_id"].iter().find_map(|key| metadata.get(key));
    set(span, "karat.task", task.cloned().unwrap_or_default());
}

/// Makes the span one in which a model is asked.
fn set_model(span: &mut Span, model: Option<&str>, input: Option<&Value>, output: Option<&Value>) {
    set(span, "gen_ai.operation.name", "chat");
    set(span, "gen_ai.request.model", model);
    set(span, "gen_ai.input.messages", messages(input, "user"));
    set(span, "gen_ai.output.messages", messages(output, "assistant"));
}

/// A result without the object that is put around what is not one.
fn result(output: Value) -> Value {
    match output {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("output") => {
            fields["output"].clone()
        }
        other => other,
    }
}

/// A row of Braintrust's logs or experiments, or a page of them.
pub(in crate::formats) fn braintrust(line: &str, out: &mut Vec<Span>) -> Result<(), Invalid> {
    let fields = record(line)?;
    if let Some(all) = entries(line, &["events", "data", "rows"])? {
        return all.into_iter().try_for_each(|one| braintrust(one, out));
    }
    let (kind, metrics) = (own(&fields, "span_attributes"), own(&fields, "metrics"));
    let metadata = own(&fields, "metadata");
    let word = |key: &str| kind.get(key).and_then(Value::as_str).unwrap_or_default();
    let parents = own(&fields, "span_parents");
    let mut span = Span {
        trace: needed(&fields, &["root_span_id"])?.to_owned(),
        id: needed(&fields, &["span_id", "id"])?.to_owned(),
        name: word("name").to_owned(),
        parent: parents.get(0).and_then(Value::as_str).map(str::to_owned),
        start: time(metrics.get("start").or_else(|| fields.get("created"))),
        end: time(metrics.get("end")),
        ..Span::default()
    };
    set_task(&mut span, &metadata);
    let (input, output) = (fields.get("input"), fields.get("output"));
    match word("type") {
        "llm" => {
            let model = metadata.get("model").and_then(Value::as_str);
            set_model(&mut span, model, input, output);
            keep_answer(&mut span, line, &["output"]);
            set_usage(&mut span, Some(&metrics));
            for (key, name) in [
                ("gen_ai.usage.cache_read.input_tokens", "prompt_cached_tokens"),
                ("gen_ai.usage.reasoning_tokens", "completion_reasoning_tokens"),
                ("gen_ai.usage.cost", "estimated_cost"),
            ] {
                set(&mut span, key, metrics.get(name).cloned().unwrap_or_default());
            }
        }
        "tool" => {
            let name = span.name.clone();
            let arguments = arguments_at(line, &["input"], own(&fields, "input"));
            set_tool(&mut span, &name, arguments, output.cloned().unwrap_or_default());
        }
        _ => {}
    }
    if let Some(error) = fields.get("error").filter(|error| !error.is_null()) {
        span.failed = Some(plain_text(error));
    }
    out.push(span);
    Ok(())
}

/// A trace or a span of Opik, a page of them, or a trace with its spans.
pub(in crate::formats) fn opik(line: &str, out: &mut Vec<Span>) -> Result<(), Invalid> {
    let fields = record(line)?;
    let (mut parts, mut inside) = (Fields::parse(line)?, false);
    for key in ["trace", "spans", "traces", "content", "data"] {
        match parts.raw(key) {
            Some(all) if is_list(all) => {
                list(all)?.into_iter().try_for_each(|one| opik(one, out))?;
            }
            Some(one) if key == "trace" && is_object(one) => opik(one, out)?,
            _ => continue,
        }
        inside = true;
    }
    if inside {
        return Ok(());
    }
    let trace = needed(&fields, &["trace_id", "id"])?.to_owned();
    let is_trace = !fields.contains_key("trace_id");
    let id = needed(&fields, &["id"])?;
    let mut span = Span {
        id: if is_trace { format!("trace {id}") } else { id.to_owned() },
        trace,
        name: text(&fields, &["name"]).unwrap_or_default().to_owned(),
        parent: text(&fields, &["parent_span_id"]).map(str::to_owned),
        start: time(fields.get("start_time")),
        end: time(fields.get("end_time")),
        ..Span::default()
    };
    set_task(&mut span, &own(&fields, "metadata"));
    let (input, output) = (fields.get("input"), fields.get("output"));
    if is_trace {
        set(&mut span, "session.id", fields.get("thread_id").cloned().unwrap_or_default());
    }
    match text(&fields, &["type"]).unwrap_or_default() {
        "llm" => {
            set_model(&mut span, text(&fields, &["model"]), input, output);
            keep_answer(&mut span, line, &["output"]);
            let usage = own(&fields, "usage");
            set_usage(&mut span, Some(&usage));
            for (key, name) in [
                ("gen_ai.usage.cache_read.input_tokens", "prompt_tokens_details.cached_tokens"),
                ("gen_ai.usage.reasoning_tokens", "completion_tokens_details.reasoning_tokens"),
            ] {
                let found = usage.get(format!("original_usage.{name}"));
                set(&mut span, key, found.cloned().unwrap_or_default());
            }
            let cost = fields.get("total_estimated_cost").and_then(Value::as_f64);
            set(&mut span, "gen_ai.usage.cost", cost);
        }
        "tool" => {
            let name = span.name.clone();
            let arguments = arguments_at(line, &["input"], own(&fields, "input"));
            set_tool(&mut span, &name, arguments, result(own(&fields, "output")));
        }
        _ => {}
    }
    if let Some(error) = fields.get("error_info").filter(|error| !error.is_null()) {
        let message = error.get("message").or_else(|| error.get("exception_type"));
        span.failed = Some(plain_text(message.unwrap_or(error)));
    }
    out.push(span);
    Ok(())
}

/// The arguments of a method, without the object that it is called on; the others keep their notation.
fn without_self(inputs: String) -> String {
    let Ok(mut fields) = Fields::parse(&inputs) else { return inputs };
    if fields.present("self").is_none() {
        return inputs;
    }
    let all: Vec<String> =
        fields.each().map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
    format!("{{{}}}", all.join(","))
}

/// A call of Weave, or a page of them.
pub(in crate::formats) fn weave(line: &str, out: &mut Vec<Span>) -> Result<(), Invalid> {
    let fields = record(line)?;
    if let Some(all) = entries(line, &["calls", "data"])? {
        return all.into_iter().try_for_each(|one| weave(one, out));
    }
    // `weave:///entity/project/op/NAME:DIGEST`, or the name alone.
    let operation = needed(&fields, &["op_name"])?;
    let name = operation.rsplit_once("/op/").map_or(operation, |(_, name)| name);
    let name = name.split(':').next().unwrap_or_default();
    let mut span = Span {
        trace: needed(&fields, &["trace_id"])?.to_owned(),
        id: needed(&fields, &["id"])?.to_owned(),
        name: name.to_owned(),
        parent: text(&fields, &["parent_id"]).map(str::to_owned),
        start: time(fields.get("started_at")),
        end: time(fields.get("ended_at")),
        ..Span::default()
    };
    let attributes = own(&fields, "attributes");
    set_task(&mut span, &attributes);
    set(&mut span, "session.id", fields.get("thread_id").cloned().unwrap_or_default());
    let (inputs, output) = (own(&fields, "inputs"), own(&fields, "output"));
    // Every function can be an operation: one that was given messages and answered with one is a model.
    let has = |value: &Value, keys: &[&str]| keys.iter().any(|key| value.get(key).is_some());
    let kind = attributes.get("kind").or_else(|| attributes.pointer("/weave/kind"));
    if has(&inputs, &["messages", "input", "contents"])
        && has(&output, &["choices", "output", "content", "candidates"])
        && has(&output, &["usage", "model", "usage_metadata", "usageMetadata"])
    {
        let model = inputs.get("model").or_else(|| output.get("model")).and_then(Value::as_str);
        set_model(&mut span, model, Some(&inputs), Some(&output));
        keep_answer(&mut span, line, &["output"]);
        // Those around it have the sum of the calls inside, in their summary.
        set_usage(&mut span, output.get("usage"));
    } else if kind.and_then(Value::as_str) == Some("tool") {
        let arguments = match arguments_at(line, &["inputs"], inputs) {
            Value::String(text) => without_self(text).into(),
            mut arguments => {
                arguments.as_object_mut().and_then(|fields| fields.shift_remove("self"));
                arguments
            }
        };
        // As it is: a text that looks like a number stays one.
        set_tool(&mut span, name, arguments, fields.get("output").cloned().unwrap_or_default());
    }
    if let Some(error) = text(&fields, &["exception"]) {
        span.failed = Some(error.to_owned());
    }
    out.push(span);
    Ok(())
}

//! OpenTelemetry spans and log records as JSON: batches (`resourceSpans`, `resourceLogs`, `batches`) as
//! collectors' file exporters write them, single spans as SDKs print them (attributes as a plain object,
//! times as text), and lists of spans as Phoenix answers them (`data`).

use serde_json::{Map, Value};

use super::Span;
use super::dialects::translate;
use super::time::nanoseconds;
use crate::formats::dialog::structured;
use crate::trace::as_id;
use crate::trace::fields::{Fields, Invalid, is_list, is_object, list};

pub(crate) fn read(text: &str, out: &mut Vec<Span>) -> Result<(), Invalid> {
    let mut fields = Fields::parse(text)?;
    let mut any = false;
    let kinds: [(&[&str], &[&str], &[&str]); 2] = [
        (
            &["resourceSpans", "resource_spans", "batches"],
            &["scopeSpans", "scope_spans", "instrumentationLibrarySpans"],
            &["spans"],
        ),
        (
            &["resourceLogs", "resource_logs"],
            &["scopeLogs", "scope_logs"],
            &["logRecords", "log_records"],
        ),
    ];
    for (batches, scopes, records) in kinds {
        let Some(all) = fields.any(batches) else { continue };
        any = true;
        for (number, batch) in list(all)?.into_iter().enumerate() {
            let place = format!("{}[{number}]", batches[0]);
            resource(batch, scopes, records, out).map_err(|error| error.within(&place))?;
        }
    }
    let mut data = fields.any(&["data", "spans"]);
    // MLflow has the spans of a trace in its data.
    if let Some(inside) = data.filter(|data| is_object(data)) {
        data = Fields::parse(inside)?.raw("spans");
    }
    if !any && let Some(data) = data.filter(|data| is_list(data)) {
        any = true;
        for (number, one) in list(data)?.into_iter().enumerate() {
            out.push(span(one).map_err(|error| error.within(&format!("data[{number}]")))?);
        }
    }
    // Metrics say nothing about single runs.
    if !any && fields.any(&["resourceMetrics", "resource_metrics"]).is_none() {
        out.push(span(text)?);
    }
    Ok(())
}

fn resource(
    text: &str,
    scopes: &[&str],
    records: &[&str],
    out: &mut Vec<Span>,
) -> Result<(), Invalid> {
    let mut fields = Fields::parse(text)?;
    let resource = match fields.raw("resource") {
        Some(resource) => attributes(Fields::parse(resource)?.raw("attributes")),
        None => Map::new(),
    };
    for scope in list(fields.any(scopes).unwrap_or("[]"))? {
        let mut scope = Fields::parse(scope)?;
        let name = scope
            .any(&["scope", "instrumentationLibrary"])
            .and_then(|text| text_field(&mut Fields::parse(text).ok()?, &["name"]));
        let is_log = records[0] != "spans";
        for (number, record) in list(scope.any(records).unwrap_or("[]"))?.into_iter().enumerate() {
            let read = if is_log { log(record) } else { span(record).map(Some) };
            let read = read.map_err(|error| error.within(&format!("{}[{number}]", records[0])))?;
            let Some(mut span) = read else { continue };
            span.scope.clone_from(&name);
            for (key, value) in &resource {
                if !span.attributes.contains_key(key) {
                    span.attributes.insert(key.clone(), value.clone());
                }
            }
            out.push(span);
        }
    }
    Ok(())
}

fn span(text: &str) -> Result<Span, Invalid> {
    let mut fields = Fields::parse(text)?;
    let mut trace = id_field(&mut fields, &["traceId", "trace_id", "context.trace_id"]);
    let mut id = id_field(&mut fields, &["spanId", "span_id", "context.span_id"]);
    if let Some(context) = fields.any(&["context", "spanContext"]).filter(|text| is_object(text)) {
        let mut context = Fields::parse(context)?;
        trace = trace.or(id_field(&mut context, &["trace_id", "traceId"]));
        id = id.or(id_field(&mut context, &["span_id", "spanId"]));
    }
    let trace = trace.ok_or_else(|| Invalid::at("traceId", "is missing"))?;
    let parent = id_field(&mut fields, &["parentSpanId", "parent_span_id", "parent_id"]);
    let start = ["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"];
    let end = ["endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"];
    let mut span = Span {
        trace,
        id: id.unwrap_or_default(),
        name: text_field(&mut fields, &["name"]).unwrap_or_default(),
        parent: parent.filter(|parent| !parent.is_empty()),
        start: fields.any(&start).map_or(0, nanoseconds),
        end: fields.any(&end).map_or(0, nanoseconds),
        attributes: match fields.raw("attributes") {
            Some(all) => attributes(Some(all)),
            None => columns(&mut fields),
        },
        ..Span::default()
    };
    // Phoenix has the kind and the status next to the attributes.
    if let Some(kind) = text_field(&mut fields, &["span_kind"]) {
        span.attributes.entry("openinference.span.kind").or_insert(kind.into());
    }
    for event in fields.list("events")?.unwrap_or_default() {
        let mut event = Fields::parse(event)?;
        let name: String = event.get("name")?.unwrap_or_default();
        span.events.push((name, attributes(event.raw("attributes"))));
    }
    let message = text_field(&mut fields, &["status_message"]);
    let status = match fields.get::<Value>("status")? {
        Some(status) => Some(status),
        None => fields.get::<Value>("status_code")?,
    };
    if let Some(status) = status {
        read_status(&mut span, &status, message);
    }
    translate(&mut span);
    Ok(span)
}

fn read_status(span: &mut Span, status: &Value, message: Option<String>) {
    let code = status.get("code").or_else(|| status.get("status_code")).unwrap_or(status);
    let (good, bad) = match code {
        Value::Number(code) => (code.as_u64() == Some(1), code.as_u64() == Some(2)),
        Value::String(code) => (
            matches!(code.as_str(), "STATUS_CODE_OK" | "OK"),
            matches!(code.as_str(), "STATUS_CODE_ERROR" | "ERROR"),
        ),
        _ => (false, false),
    };
    span.succeeded = good;
    if bad {
        let stated = status.get("message").or_else(|| status.get("description"));
        let stated = stated.and_then(Value::as_str).map(str::to_owned).or(message);
        span.failed = Some(stated.unwrap_or_else(|| "the span ended in an error".to_owned()));
    }
}

/// A log record of a span; none if it belongs to no trace.
fn log(text: &str) -> Result<Option<Span>, Invalid> {
    let mut fields = Fields::parse(text)?;
    let trace = text_field(&mut fields, &["traceId", "trace_id"]).filter(|id| !id.is_empty());
    let Some(trace) = trace else { return Ok(None) };
    let mut said = attributes(fields.raw("attributes"));
    let name = text_field(&mut fields, &["eventName", "event_name"]).or_else(|| {
        let name = said.get("event.name").or_else(|| said.get("name"));
        name.and_then(Value::as_str).map(str::to_owned)
    });
    // Semantic Kernel logs the text of the message.
    let body = fields.get::<Value>("body")?.map(any_value).as_ref().map(structured);
    if let Some(Value::Object(body)) = body {
        said.extend(body);
    }
    let time = ["timeUnixNano", "time_unix_nano", "observedTimeUnixNano"];
    let time = fields.any(&time).map_or(0, nanoseconds);
    Ok(Some(Span {
        trace,
        id: text_field(&mut fields, &["spanId", "span_id"]).unwrap_or_default(),
        start: time,
        end: time,
        events: vec![(name.unwrap_or_default(), said)],
        is_log: true,
        ..Span::default()
    }))
}

/// An id: a text, or a number in the debug output of some SDKs.
fn id_field(fields: &mut Fields<'_>, names: &[&str]) -> Option<String> {
    fields.any(names).and_then(as_id)
}

fn text_field(fields: &mut Fields<'_>, names: &[&str]) -> Option<String> {
    fields.any(names).and_then(|raw| serde_json::from_str(raw).ok())
}

/// The attributes of a span that is a row of a table, as Phoenix's data frames are.
fn columns(fields: &mut Fields<'_>) -> Map<String, Value> {
    const PREFIX: &str = "attributes.";
    let names = fields.left().filter(|name| name.starts_with(PREFIX));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let cell = |name: String| {
        let value = serde_json::from_str(fields.raw(&name)?).ok()?;
        Some((name.strip_prefix(PREFIX)?.to_owned(), value))
    };
    unnested(names.into_iter().filter_map(cell).collect())
}

/// The first steps of names that some write as objects in objects.
const ROOTS: [&str; 9] =
    ["llm", "openinference", "input", "output", "tool", "session", "gen_ai", "mcp", "karat"];
const MAX_NESTED: usize = 16;

/// Attributes whose names are paths, where they were written as nested objects.
fn unnested(plain: Map<String, Value>) -> Map<String, Value> {
    let is_nested = |(key, value): (&String, &Value)| match value {
        Value::Object(_) => ROOTS.contains(&key.as_str()),
        Value::Array(all) => key.starts_with("llm.") && all.iter().all(Value::is_object),
        _ => false,
    };
    if !plain.iter().any(is_nested) {
        return plain;
    }
    let mut out = Map::new();
    for (key, value) in plain {
        match is_nested((&key, &value)) {
            true => flatten(&mut out, key, value, 0),
            false => _ = out.insert(key, value),
        }
    }
    out
}

/// Lists are flattened where OpenInference numbers their entries.
fn flatten(out: &mut Map<String, Value>, key: String, value: Value, depth: usize) {
    match value {
        Value::Object(fields) if depth < MAX_NESTED => {
            for (name, value) in fields {
                flatten(out, format!("{key}.{name}"), value, depth + 1);
            }
        }
        Value::Array(all)
            if depth < MAX_NESTED
                && key.starts_with("llm.")
                && all.iter().all(Value::is_object) =>
        {
            for (number, value) in all.into_iter().enumerate() {
                flatten(out, format!("{key}.{number}"), value, depth + 1);
            }
        }
        plain => _ = out.insert(key, plain),
    }
}

/// A list of `{key, value: {stringValue: …}}`, or a plain object.
fn attributes(raw: Option<&str>) -> Map<String, Value> {
    match raw.and_then(|raw| serde_json::from_str::<Value>(raw).ok()) {
        Some(Value::Object(plain)) => unnested(plain),
        Some(Value::Array(all)) => pairs(all),
        _ => Map::new(),
    }
}

fn pairs(all: Vec<Value>) -> Map<String, Value> {
    all.into_iter()
        .filter_map(|mut pair| {
            let key = pair.get("key")?.as_str()?.to_owned();
            let value = pair.get_mut("value").map(Value::take).unwrap_or_default();
            Some((key, any_value(value)))
        })
        .collect()
}

/// OTLP's tagged values, as plain ones.
fn any_value(value: Value) -> Value {
    let Value::Object(mut tagged) = value else { return value };
    // Phoenix writes the kinds that a value is not as null.
    tagged.retain(|_, value| !value.is_null());
    let mut take = |names: [&str; 2]| names.into_iter().find_map(|name| tagged.remove(name));
    if let Some(number) = take(["intValue", "int_value"]) {
        // Whole numbers of 64 bits are written as text.
        let parsed = number.as_str().and_then(|text| text.parse::<i64>().ok()).map(Value::from);
        return parsed.unwrap_or(number);
    }
    for plain in [
        ["stringValue", "string_value"],
        ["boolValue", "bool_value"],
        ["doubleValue", "double_value"],
    ] {
        if let Some(plain) = take(plain) {
            return plain;
        }
    }
    let inside = |mut value: Value| match value.get_mut("values").map(Value::take) {
        Some(Value::Array(values)) => values,
        _ => Vec::new(),
    };
    if let Some(all) = take(["arrayValue", "array_value"]) {
        return inside(all).into_iter().map(any_value).collect();
    }
    if let Some(all) = take(["kvlistValue", "kvlist_value"]) {
        return Value::Object(pairs(inside(all)));
    }
    Value::Object(tagged)
}

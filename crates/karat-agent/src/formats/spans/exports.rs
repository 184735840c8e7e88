//! Exports of tools that record their own spans: the openai-agents SDK, LangSmith and Langfuse. Each
//! record becomes a [`Span`] under the names of the GenAI conventions.

use serde_json::{Map, Value, json};

use super::Span;
use super::call::HANDOFF;
use super::choices::{LANGFUSE_PARAMETERS, messages_of_choices, numbered};
use super::time::nanoseconds;
use crate::formats::chat::usage_of;
use crate::formats::dialog::structured;
use crate::formats::exact::long_text;
use crate::trace::Invalid;
use crate::trace::fields::{Fields, is_list, list};

/// The JSON of a model's answer, where values lose digits of it.
const ANSWER: &str = "karat.answer";

pub(super) fn record(text: &str) -> Result<Map<String, Value>, Invalid> {
    match crate::trace::fields::typed::<Value>(text)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(Invalid::new("should be an object")),
    }
}

/// The entries of the first of these lists that a page has, not parsed.
pub(super) fn entries<'t>(page: &'t str, keys: &[&str]) -> Result<Option<Vec<&'t str>>, Invalid> {
    let mut fields = Fields::parse(page)?;
    let found = keys.iter().find_map(|key| fields.raw(key).filter(|text| is_list(text)));
    found.map(list).transpose()
}

pub(super) fn text<'v>(fields: &'v Map<String, Value>, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| fields.get(*key)?.as_str())
}

/// Id, parent, times and error of a record.
fn span(fields: &Map<String, Value>, trace: &str) -> Result<Span, Invalid> {
    let time = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| fields.get(*key));
        found.map_or(0, |time| nanoseconds(&time.to_string()))
    };
    let parent = text(fields, &["parent_id", "parent_run_id", "parentObservationId"]);
    Ok(Span {
        trace: trace.to_owned(),
        id: text(fields, &["id"]).ok_or_else(|| Invalid::at("id", "is missing"))?.to_owned(),
        name: text(fields, &["name"]).unwrap_or_default().to_owned(),
        parent: parent.map(str::to_owned),
        start: time(&["started_at", "start_time", "startTime", "timestamp"]),
        end: time(&["ended_at", "end_time", "endTime"]),
        ..Span::default()
    })
}

pub(super) fn set(span: &mut Span, key: &str, value: impl Into<Value>) {
    let value = value.into();
    if !value.is_null() {
        span.attributes.insert(key.to_owned(), value);
    }
}

pub(super) fn set_usage(span: &mut Span, usage: Option<&Value>) {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
    let usage = usage_of(usage);
    for (key, tokens) in [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
        ("gen_ai.usage.reasoning_tokens", usage.reasoning_tokens),
    ] {
        set(span, key, tokens);
    }
}

/// Langfuse's counts. Kinds of tokens are apart from `input` and `output`, unless the total says that they
/// are in them.
pub(super) fn set_split_usage(span: &mut Span, usage: Option<&Value>) {
    let Some(Value::Object(usage)) = usage else { return };
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let (Some(input), Some(output)) = (count("input"), count("output")) else {
        return set_usage(span, Some(&Value::Object(usage.clone())));
    };
    let kinds = |of: &str| -> u64 {
        let of_side = usage.iter().filter(|(key, _)| key.starts_with(of));
        of_side.filter_map(|(_, value)| value.as_u64()).fold(0, u64::saturating_add)
    };
    let counted_in = count("total") == Some(input.saturating_add(output));
    let whole = |plain: u64, of: &str| plain.saturating_add(if counted_in { 0 } else { kinds(of) });
    let first = |keys: [&str; 3]| keys.iter().find_map(|key| count(key));
    let cached = first(["input_cache_read", "input_cached_tokens", "cache_read_input_tokens"]);
    let reasoning = first(["output_reasoning", "output_reasoning_tokens", "reasoning_tokens"]);
    set(span, "gen_ai.usage.input_tokens", whole(input, "input_"));
    set(span, "gen_ai.usage.output_tokens", whole(output, "output_"));
    set(span, "gen_ai.usage.cache_read.input_tokens", cached);
    set(span, "gen_ai.usage.reasoning_tokens", reasoning);
}

pub(super) fn set_tool(span: &mut Span, name: &str, arguments: Value, result: Value) {
    set(span, "gen_ai.operation.name", "execute_tool");
    set(span, "gen_ai.tool.name", name);
    set(span, "gen_ai.tool.call.arguments", arguments);
    set(span, "gen_ai.tool.call.result", result);
}

/// The arguments that were read at a place of the record, or their JSON where the value lost digits.
pub(super) fn arguments_at(record: &str, path: &[&str], read: Value) -> Value {
    long_text(record, path).filter(|_| read.is_object()).map_or(read, Value::from)
}

/// Keeps the JSON of a model's answer, for the digits that values lose.
pub(super) fn keep_answer(span: &mut Span, record: &str, path: &[&str]) {
    set(span, ANSWER, long_text(record, path));
}

/// The messages in what a model was given or answered: a list, one message, `messages` in an object, or
/// a text.
pub(super) fn messages(value: Option<&Value>, role: &str) -> Value {
    let value = value.map(structured).unwrap_or_default();
    // What a model of LangChain generated, for each prompt.
    let generated = value.pointer("/generations/0");
    let generated = generated.map_or(&[][..], |one| match one {
        Value::Array(choices) => choices,
        one => std::slice::from_ref(one),
    });
    if generated.first().is_some_and(|one| one.get("message").is_some()) {
        return messages_of_choices(generated);
    }
    // The request as it was sent.
    let value = value.get("body").filter(|body| body.is_object()).unwrap_or(&value);
    let inside = ["messages", "input", "choices", "output", "replies", "message"];
    let inside = inside.iter().find_map(|key| Some((*key, value.get(key)?)));
    match inside.map_or(value, |(_, inside)| inside) {
        Value::Null => Value::Null,
        // LangChain puts a list of messages in a list for each prompt.
        Value::Array(all) => match all.first() {
            Some(Value::Array(first)) => json!(first),
            Some(choice) if choice.get("message").is_some() => messages_of_choices(all),
            // Haystack has a reply for each choice.
            Some(_) if inside.is_some_and(|(key, _)| key == "replies") => numbered(all.iter()),
            _ => json!(all),
        },
        Value::String(text) => json!([{"role": role, "content": text}]),
        one if one.get("text").is_some() && one.get("toolCalls").is_some() => {
            json!([{"role": role, "content": one["text"], "tool_calls": one["toolCalls"]}])
        }
        one if one.get("content").is_some() && one.get("role").is_none() => {
            let mut one = one.clone();
            if one.get("type").is_none() {
                one["role"] = role.into();
            }
            json!([one])
        }
        one => json!([one]),
    }
}

/// One line of an openai-agents exporter: a trace or a span of it.
pub(in crate::formats) fn openai_agents(line: &str, out: &mut Vec<Span>) -> Result<(), Invalid> {
    let fields = record(line)?;
    if let Some(all) = entries(line, &["data"])? {
        return all.into_iter().try_for_each(|one| openai_agents(one, out));
    }
    let is_trace = text(&fields, &["object"]) == Some("trace");
    let trace = text(&fields, if is_trace { &["id"] } else { &["trace_id"] });
    let trace = trace.ok_or_else(|| Invalid::at("trace_id", "is missing"))?.to_owned();
    let mut span = span(&fields, &trace)?;
    if is_trace {
        let task = fields.get("metadata").and_then(|data| data.get("task").or(data.get("task_id")));
        set(&mut span, "karat.task", task.cloned().unwrap_or_default());
        set(&mut span, "session.id", fields.get("group_id").cloned().unwrap_or_default());
        out.push(span);
        return Ok(());
    }
    let data = fields.get("span_data").and_then(Value::as_object).cloned().unwrap_or_default();
    let own = |key: &str| data.get(key).cloned().unwrap_or_default();
    match text(&data, &["type"]).unwrap_or_default() {
        "function" => {
            let name = text(&data, &["name"]).unwrap_or_default();
            let arguments = arguments_at(line, &["span_data", "input"], own("input"));
            set_tool(&mut span, name, arguments, own("output"));
        }
        "agent" => set(&mut span, "gen_ai.operation.name", "invoke_agent"),
        // Responses are not recorded, and with them the call by which the model hands over. Its name is made of
        // the agent's as the SDK does it.
        "handoff" => {
            if let Some(agent) = text(&data, &["to_agent"]) {
                let plain = |one: char| if one.is_ascii_alphanumeric() { one } else { '_' };
                let agent: String = agent.to_lowercase().chars().map(plain).collect();
                set_tool(&mut span, &format!("transfer_to_{agent}"), Value::Null, Value::Null);
                set(&mut span, HANDOFF, true);
            }
        }
        "generation" | "response" => {
            set(&mut span, "gen_ai.operation.name", "chat");
            set(&mut span, "gen_ai.request.model", own("model"));
            set(&mut span, "gen_ai.response.id", own("response_id"));
            set(&mut span, "gen_ai.input.messages", messages(data.get("input"), "user"));
            let key = if data.contains_key("output") { "output" } else { "response" };
            set(&mut span, "gen_ai.output.messages", messages(data.get(key), "assistant"));
            keep_answer(&mut span, line, &["span_data", key]);
            set_usage(&mut span, data.get("usage"));
        }
        _ => {}
    }
    if let Some(error) = fields.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let detail = error.get("data").and_then(|data| data.get("error")?.as_str());
        span.failed = Some(detail.unwrap_or(message).to_owned());
    }
    out.push(span);
    Ok(())
}

/// A LangSmith run.
pub(in crate::formats) fn langsmith(line: &str, out: &mut Vec<Span>) -> Result<(), Invalid> {
    langsmith_run(line, None, out)
}

/// A run, and the trace and the run that it is in.
fn langsmith_run(
    line: &str,
    around: Option<(&str, Option<&str>)>,
    out: &mut Vec<Span>,
) -> Result<(), Invalid> {
    let fields = record(line)?;
    let trace = text(&fields, &["trace_id"]).or(around.map(|(trace, _)| trace));
    let trace = trace.or(text(&fields, &["id"])).unwrap_or_default().to_owned();
    // A run can have those that it started inside.
    for child in entries(line, &["child_runs"])?.unwrap_or_default() {
        langsmith_run(child, Some((&trace, text(&fields, &["id"]))), out)?;
    }
    let mut span = span(&fields, &trace)?;
    span.parent = span.parent.or(around.and_then(|(_, run)| run).map(str::to_owned));
    let extra = fields.get("extra").cloned().unwrap_or_default();
    let metadata = extra.get("metadata").cloned().unwrap_or_default();
    for (key, names) in [
        ("karat.task", ["task", "task_id", "karat.task"]),
        ("session.id", ["session_id", "thread_id", "conversation_id"]),
    ] {
        let found = names.iter().find_map(|name| metadata.get(name));
        set(&mut span, key, found.cloned().unwrap_or_default());
    }
    let (inputs, outputs) = (fields.get("inputs"), fields.get("outputs"));
    match text(&fields, &["run_type"]).unwrap_or_default() {
        "tool" => {
            let output = outputs.map(|outputs| outputs.get("output").unwrap_or(outputs));
            let content = output.and_then(|output| output.get("content")).or(output);
            let inputs = inputs.map(structured).unwrap_or_default();
            let name = span.name.clone();
            // The text of a Python dict is not JSON; the model's call has the arguments.
            let (arguments, place): (_, &[&str]) = match inputs.get("input") {
                Some(Value::String(text)) if !text.starts_with('{') => {
                    (inputs.clone(), &["inputs"])
                }
                None => (inputs.clone(), &["inputs"]),
                Some(input) => (structured(input), &["inputs", "input"]),
            };
            let arguments = if arguments.is_object() { arguments } else { Value::Null };
            let arguments = arguments_at(line, place, arguments);
            set_tool(&mut span, &name, arguments, content.cloned().unwrap_or_default());
            let id = extra.get("tool_call_id");
            let id = id.or_else(|| output.and_then(|output| output.get("tool_call_id")));
            set(&mut span, "gen_ai.tool.call.id", id.cloned().unwrap_or_default());
            if output.and_then(|o| o.get("status")).and_then(Value::as_str) == Some("error") {
                span.failed =
                    Some(content.map(super::super::dialog::plain_text).unwrap_or_default());
            }
        }
        "llm" => {
            set(&mut span, "gen_ai.operation.name", "chat");
            let params = extra.get("invocation_params").cloned().unwrap_or_default();
            let model = metadata.get("ls_model_name").or_else(|| params.get("model"));
            set(&mut span, "gen_ai.request.model", model.cloned().unwrap_or_default());
            set(&mut span, "gen_ai.input.messages", messages(inputs, "user"));
            set(&mut span, "gen_ai.output.messages", messages(outputs, "assistant"));
            keep_answer(&mut span, line, &["outputs"]);
            let places = ["/generations/0/0/message", "/generations/0/message"];
            let message = places.iter().find_map(|place| outputs?.pointer(place));
            let kwargs = message.map(|message| message.get("kwargs").unwrap_or(message));
            let usage = kwargs
                .and_then(|kwargs| kwargs.get("usage_metadata"))
                .or_else(|| outputs?.get("usage_metadata"))
                .or_else(|| outputs?.pointer("/llm_output/token_usage"));
            set_usage(&mut span, usage);
            for (key, name) in [
                ("gen_ai.usage.input_tokens", "prompt_tokens"),
                ("gen_ai.usage.output_tokens", "completion_tokens"),
            ] {
                if !span.attributes.contains_key(key) {
                    set(&mut span, key, fields.get(name).cloned().unwrap_or_default());
                }
            }
            set(&mut span, "gen_ai.usage.cost", fields.get("total_cost").and_then(Value::as_f64));
        }
        _ => {
            // Chains state the user's message as they were given it.
            let given = inputs.filter(|inputs| inputs.get("messages").is_some());
            set(&mut span, "gen_ai.input.messages", messages(given, "user"));
        }
    }
    if let Some(error) = text(&fields, &["error"]) {
        span.failed = Some(error.to_owned());
    }
    out.push(span);
    Ok(())
}

/// A Langfuse observation, or a trace with its observations.
pub(in crate::formats) fn langfuse(line: &str, out: &mut Vec<Span>) -> Result<(), Invalid> {
    let fields = record(line)?;
    for key in ["data", "observations"] {
        if let Some(all) = entries(line, &[key])? {
            all.into_iter().try_for_each(|one| langfuse(one, out))?;
            if key == "data" {
                return Ok(());
            }
        }
    }
    let is_trace = !fields.contains_key("traceId");
    let trace = text(&fields, if is_trace { &["id"] } else { &["traceId"] });
    let trace = trace.ok_or_else(|| Invalid::at("traceId", "is missing"))?.to_owned();
    let mut span = span(&fields, &trace)?;
    let metadata = fields.get("metadata").map(structured).unwrap_or_default();
    let task = ["karat.task", "task", "task_id"].iter().find_map(|key| metadata.get(key));
    set(&mut span, "karat.task", task.cloned().unwrap_or_default());
    if is_trace {
        span.id = format!("trace {trace}");
        set(&mut span, "session.id", fields.get("sessionId").cloned().unwrap_or_default());
        set(&mut span, "gen_ai.input.messages", messages(fields.get("input"), "user"));
        out.push(span);
        return Ok(());
    }
    let (input, output) = (fields.get("input"), fields.get("output"));
    match text(&fields, &["type"]).unwrap_or_default() {
        "GENERATION" => {
            set(&mut span, "gen_ai.operation.name", "chat");
            let model = text(&fields, &["model", "providedModelName", "internalModelId"]);
            set(&mut span, "gen_ai.request.model", model);
            set(&mut span, "gen_ai.input.messages", messages(input, "user"));
            set(&mut span, "gen_ai.output.messages", messages(output, "assistant"));
            keep_answer(&mut span, line, &["output"]);
            let parameters = fields.get("modelParameters").cloned().unwrap_or_default();
            set(&mut span, LANGFUSE_PARAMETERS, parameters);
            let counted = fields.get("usageDetails").or_else(|| fields.get("usage"));
            let counted = counted.map(structured).unwrap_or_default();
            let count = |keys: &[&str]| keys.iter().find_map(|key| counted.get(key)?.as_u64());
            // The export of the page has them next to the rest.
            let stated = |key: &str| fields.get(key).and_then(Value::as_u64);
            let cached =
                count(&["input_cached_tokens", "cache_read_input_tokens", "input_cache_read"]);
            let reasoning = count(&["output_reasoning_tokens", "output_reasoning"]);
            // Langfuse splits tokens into disjoint kinds.
            let whole = |plain: Option<u64>, part: Option<u64>| {
                plain.map(|plain| plain.saturating_add(part.unwrap_or_default()))
            };
            let input = count(&["input", "promptTokens", "prompt_tokens", "input_tokens"])
                .or_else(|| stated("inputUsage"));
            let output =
                count(&["output", "completionTokens", "completion_tokens", "output_tokens"])
                    .or_else(|| stated("outputUsage"));
            let sum = input.unwrap_or_default().saturating_add(output.unwrap_or_default());
            let split = fields.contains_key("usageDetails") && count(&["total"]) != Some(sum);
            let part = |part: Option<u64>| part.filter(|_| split);
            set(&mut span, "gen_ai.usage.input_tokens", whole(input, part(cached)));
            set(&mut span, "gen_ai.usage.output_tokens", whole(output, part(reasoning)));
            set(&mut span, "gen_ai.usage.cache_read.input_tokens", cached);
            set(&mut span, "gen_ai.usage.reasoning_tokens", reasoning);
            let costs = ["calculatedTotalCost", "totalCost", "totalPrice"];
            let cost = costs.iter().find_map(|key| fields.get(*key));
            let cost = cost.or_else(|| fields.get("costDetails")?.get("total"));
            set(&mut span, "gen_ai.usage.cost", cost.and_then(Value::as_f64));
        }
        "TOOL" => {
            let arguments = input.map(structured).unwrap_or_default();
            let arguments = arguments_at(line, &["input"], arguments);
            let name = span.name.clone();
            set_tool(&mut span, &name, arguments, output.cloned().unwrap_or_default());
        }
        _ => {}
    }
    if text(&fields, &["level"]) == Some("ERROR") {
        span.failed = Some(text(&fields, &["statusMessage"]).unwrap_or("error").to_owned());
    }
    out.push(span);
    Ok(())
}

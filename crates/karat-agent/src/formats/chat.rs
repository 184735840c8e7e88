//! Conversations in files: `{"messages": […], "tools": […]}` (or `input` as the Responses API has it),
//! `{"request": …, "response": …}` for each exchange, the two halves of a batch file joined, or a bare
//! list of messages. The messages may be in any of the forms that [`super::dialog`] reads.
//!
//! Chat completions do not record whether a tool failed, unless its content is an MCP result with
//! `isError`; blocks have `is_error`, LangChain `status`.
//!
//! Exchanges of one conversation follow each other in the file and have the same id; the longest one
//! counts, and the tokens of all are added. Karat's own fields (`id`, `run`, `setting`, `expect`, …) are
//! read in each document.

use std::sync::Arc;

use serde_json::{Value, json};

use super::dialog::{Dialog, tool};
use super::{Importer, Position};
use crate::trace::fields::{Fields, is_list, is_object, is_string, typed};
use crate::trace::{Expectation, Invalid, Outcome, Trace, Usage, as_id};

/// The settings of a request, which say nothing about the agent.
const SETTINGS: [&str; 12] = [
    "temperature",
    "max_tokens",
    "seed",
    "tool_choice",
    "stream",
    "top_p",
    "system",
    "thinking",
    "instructions",
    "stream_options",
    "max_output_tokens",
    "parallel_tool_calls",
];

/// The names of a list of messages.
pub(super) const CONVERSATIONS: [&str; 6] =
    ["messages", "input", "traj", "trajectory", "conversation", "contents"];

/// The state of a graph that has the messages, as LangGraph stores it.
pub(super) fn state<'a>(fields: &mut Fields<'a>) -> Option<Fields<'a>> {
    let all = ["values", "outputs", "result"];
    let inside = all.iter().find(|name| fields.has(name))?;
    Fields::parse(fields.raw(inside)?).ok().filter(|state| state.has("messages"))
}

/// The content of one document.
#[derive(Default)]
struct Conversation {
    trace: Trace,
    dialog: Dialog,
}

impl Conversation {
    fn messages(&mut self, messages: &Value, place: &str) -> Result<(), Invalid> {
        let one = [messages.clone()];
        // An input of the Responses API may be the user's text alone.
        let all = match messages {
            Value::Array(all) => &all[..],
            Value::String(text) => &[json!({"role": "user", "content": text})],
            _ => &one,
        };
        for (number, message) in all.iter().enumerate() {
            if !self.dialog.message(message) {
                let at = format!("{place}[{number}]");
                return Err(match message.as_object() {
                    Some(_) => Invalid::at(format!("{at}.role"), "is missing"),
                    None => Invalid::at(at, "should be a message"),
                });
            }
            self.trace.messages.push(message.clone());
        }
        Ok(())
    }
}

/// Tokens as providers and frameworks state them.
pub(super) fn usage_of(usage: &Value) -> Usage {
    let number = |value: Option<&Value>| value.and_then(Value::as_u64);
    let get = |keys: &[&str]| keys.iter().find_map(|key| number(usage.get(key)));
    let detail =
        |keys: [&str; 2], name: &str| keys.iter().find_map(|key| number(usage.get(key)?.get(name)));
    // Anthropic and Bedrock count tokens of the cache apart; they are input too. Others count them in, and
    // then the total shows it.
    let counted_in = |input: u64, output: Option<u64>| {
        let total = get(&["total_tokens", "totalTokens"]);
        total.is_some() && total == Some(input.saturating_add(output.unwrap_or_default()))
    };
    let with_cache = |input: &str, output: &str, cache: [&str; 2]| {
        let input = get(&[input])?;
        let apart: u64 = cache.iter().filter_map(|key| number(usage.get(key))).sum();
        let apart = if counted_in(input, get(&[output])) { 0 } else { apart };
        Some(input.saturating_add(apart))
    };
    let input = with_cache(
        "input_tokens",
        "output_tokens",
        ["cache_creation_input_tokens", "cache_read_input_tokens"],
    );
    let bedrock = ["cacheWriteInputTokens", "cacheReadInputTokens"];
    // Gemini counts thoughts apart from the rest of the answer; some who use its names do not.
    let gemini = |prompt: &str, candidates: &str, thoughts: &str, total: &str| {
        let said = get(&[candidates])?;
        let whole = said.saturating_add(get(&[thoughts]).unwrap_or_default());
        let without = get(&[prompt]).map(|prompt| prompt.saturating_add(said));
        Some(if without.is_some() && without == get(&[total]) { said } else { whole })
    };
    let cached = detail(["prompt_tokens_details", "input_tokens_details"], "cached_tokens");
    let details = ["completion_tokens_details", "output_tokens_details"];
    Usage {
        input_tokens: get(&["prompt_tokens", "promptTokenCount", "prompt_token_count"])
            .or(input)
            .or(with_cache("inputTokens", "outputTokens", bedrock))
            .or(get(&["input"])),
        output_tokens: get(&["completion_tokens", "output_tokens", "outputTokens", "output"])
            .or_else(|| {
                let total = "totalTokenCount";
                gemini("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", total)
            })
            .or_else(|| {
                let total = "total_token_count";
                gemini(
                    "prompt_token_count",
                    "candidates_token_count",
                    "thoughts_token_count",
                    total,
                )
            }),
        cached_tokens: cached.or(detail(["input_token_details"; 2], "cache_read")).or(get(&[
            "cache_read_input_tokens",
            "cacheReadInputTokens",
            "cachedContentTokenCount",
            "cached_content_token_count",
        ])),
        reasoning_tokens: detail(details, "reasoning_tokens")
            .or(detail(["output_token_details"; 2], "reasoning"))
            .or(get(&["thoughtsTokenCount", "thoughts_token_count"])),
        cost: usage.get("cost").and_then(Value::as_f64),
        ..Usage::default()
    }
}

fn read(text: &str) -> Result<Conversation, Invalid> {
    let mut conversation = Conversation::default();
    if is_list(text) {
        conversation.messages(&typed(text)?, "")?;
        return Ok(conversation);
    }
    let mut fields = Fields::parse(text)?;
    overlay(&mut fields, &mut conversation.trace)?;
    let (request, response) = halves(&mut fields)?;
    let mut request = match request {
        Some(request) => request,
        None => std::mem::replace(&mut fields, Fields::parse("{}")?),
    };
    let found = CONVERSATIONS.iter().find_map(|name| Some((*name, request.raw(name)?)));
    let found = found.or_else(|| Some(("messages", state(&mut request)?.raw("messages")?)));
    let (name, messages) = found.ok_or_else(|| Invalid::at("messages", "is missing"))?;
    conversation.messages(&typed(messages).map_err(|error| error.within(name))?, name)?;
    conversation.trace.model = request.get("model").ok().flatten();
    let tools = request.get::<Vec<Value>>("tools")?;
    if let Some(tools) = tools.or(request.get::<Vec<Value>>("functions")?) {
        conversation.trace.tools = Some(tools.iter().filter_map(tool).collect());
    }
    if let Some(usage) = request.get::<Value>("usage")? {
        conversation.trace.usage = added(conversation.trace.usage, usage_of(&usage));
    }
    for known in SETTINGS {
        request.raw(known);
    }
    if let Some(mut response) = response {
        if let Some(model) = response.get("model")? {
            conversation.trace.model = Some(model);
        }
        if let Some(usage) = response.get::<Value>("usage")? {
            conversation.trace.usage = added(conversation.trace.usage, usage_of(&usage));
        }
        read_response(&mut response, &mut conversation)?;
    }
    conversation.trace.count_unknown("", &request);
    conversation.trace.count_unknown("", &fields);
    Ok(conversation)
}

/// The message of a response: in its first choice, its output items, or its content.
fn read_response(
    response: &mut Fields<'_>,
    conversation: &mut Conversation,
) -> Result<(), Invalid> {
    if let Some(choice) = response.list("choices")?.unwrap_or_default().first() {
        if let Some(message) = Fields::parse(choice)?.get::<Value>("message")? {
            conversation.messages(&message, "response.choices[0].message")?;
        }
    } else if let Some(output) = response.get::<Value>("output")? {
        // Bedrock has one message in it.
        conversation.messages(output.get("message").unwrap_or(&output), "response.output")?;
    } else if let Some(content) = response.get::<Value>("content")? {
        let message = json!({"role": "assistant", "content": content});
        conversation.messages(&message, "response")?;
    }
    Ok(())
}

/// Joins the exchanges of a conversation.
#[derive(Default)]
pub(super) struct Conversations {
    open: Option<Conversation>,
}

fn closed(mut conversation: Conversation) -> Trace {
    std::mem::take(&mut conversation.dialog).into_trace(&mut conversation.trace);
    conversation.trace
}

impl Importer for Conversations {
    fn take(&mut self, text: &str, at: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut next = read(text)?;
        let named = !next.trace.id.is_empty();
        if !named {
            next.trace.id = at.name();
        }
        match self.open.take() {
            Some(mut open) if named && continues(&open, &next) => {
                let usage = added(open.trace.usage, next.trace.usage);
                if next.trace.messages.len() >= open.trace.messages.len() {
                    next.trace.expect = next.trace.expect.or(open.trace.expect.take());
                    open = next;
                }
                open.trace.usage = usage;
                self.open = Some(open);
            }
            before => {
                out.extend(before.map(closed));
                self.open = Some(next);
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        out.extend(self.open.take().map(closed));
    }
}

/// Returns whether an exchange belongs to the conversation before it: the same trace, and not a new
/// start, which would be another run of the task.
fn continues(open: &Conversation, next: &Conversation) -> bool {
    let (open, next) = (&open.trace, &next.trace);
    let first = |trace: &Trace| trace.messages.first().cloned();
    let new_start = next.messages.len() <= open.messages.len() && first(open) == first(next);
    open.key() == next.key() && (next.run > 0 || !new_start)
}

pub(super) fn added(a: Usage, b: Usage) -> Usage {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default().saturating_add(b.unwrap_or_default())),
    };
    let amount = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
    };
    Usage {
        input_tokens: sum(a.input_tokens, b.input_tokens),
        output_tokens: sum(a.output_tokens, b.output_tokens),
        cached_tokens: sum(a.cached_tokens, b.cached_tokens),
        reasoning_tokens: sum(a.reasoning_tokens, b.reasoning_tokens),
        duration_ms: amount(a.duration_ms, b.duration_ms),
        cost: amount(a.cost, b.cost),
    }
}

/// Reads the fields of Karat's own records.
pub(super) fn overlay(fields: &mut Fields<'_>, trace: &mut Trace) -> Result<(), Invalid> {
    let metadata = fields.raw("metadata");
    let inside = metadata.filter(|text| is_object(text)).and_then(|text| {
        Fields::parse(text).ok().and_then(|mut fields| fields.any(&["task_id", "task", "id"]))
    });
    let id = fields.any(&["task_id", "task", "custom_id"]);
    let plain = fields.raw("id");
    if let Some(id) = id.or(inside).or(plain).and_then(as_id) {
        trace.id = id;
    }
    // Names that others use too: a value that does not fit is theirs.
    trace.run = fields.get::<u32>("run").ok().flatten().unwrap_or(0);
    // Benchmarks count trials from 0.
    if let Ok(Some(trial)) = fields.get::<u32>("trial") {
        trace.run = trial.saturating_add(1);
    }
    if let Ok(Some(setting)) = fields.get("setting") {
        trace.setting = setting;
    }
    if let Ok(Some(turns)) = fields.get("turns") {
        trace.turns = turns;
    }
    trace.case = fields.get("case").ok().flatten();
    trace.tags = fields.get("tags").ok().flatten().unwrap_or_default();
    trace.servers = fields.get("servers").ok().flatten().unwrap_or_default();
    trace.state = fields.get("state")?;
    trace.outcome = Outcome::read(fields).ok().flatten();
    trace.expected_scores = fields.get("expected_scores")?.unwrap_or_default();
    if let Some(text) = fields.raw("expect") {
        let read = Expectation::parse(text).map_err(|error| error.within("expect"))?;
        trace.expect = Some(Arc::new(read));
    }
    if let Ok(Some(duration)) = fields.get::<f64>("duration_ms") {
        trace.usage.duration_ms = Some(duration);
    }
    Ok(())
}

/// The request and the response of a document: as `request` and `response`, wrapped in `body` as in
/// batch files, or all in one.
fn halves<'a>(
    fields: &mut Fields<'a>,
) -> Result<(Option<Fields<'a>>, Option<Fields<'a>>), Invalid> {
    let unwrap = |text: &'a str| -> Result<Fields<'a>, Invalid> {
        let mut inside = Fields::parse(text)?;
        match inside.raw("body").filter(|body| is_object(body)) {
            Some(body) => Fields::parse(body),
            None => Fields::parse(text),
        }
    };
    let request = fields.any(&["request", "body"]);
    let response = fields.raw("response").filter(|text| !is_string(text));
    Ok((
        request.map(unwrap).transpose().map_err(|error| error.within("request"))?,
        response.map(unwrap).transpose().map_err(|error| error.within("response"))?,
    ))
}

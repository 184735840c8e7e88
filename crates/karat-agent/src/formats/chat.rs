//! Conversations in files: `{"messages": […], "tools": […]}` (or `input` as the Responses API has it),
//! `{"request": …, "response": …}` for each exchange, the two halves of a batch file joined, or a bare
//! list of messages. The messages may be in any of the forms that [`super::dialog`] reads.
//!
//! Chat completions do not record whether a tool failed, unless its content is an MCP result with
//! `isError`; blocks have `is_error`, LangChain `status`.
//!
//! Exchanges of one conversation follow each other in the file and have the same id; the longest one
//! counts, with the calls of those that it does not repeat, and the tokens of all are added. With
//! `previous_response_id` an exchange has only new messages, and goes on where the one before ended. Karat's
//! own fields (`id`, `run`, `setting`, `expect`, …) are read in each document.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::dialog::{Dialog, Piece, pieces, tool, unknown_kind};
use super::exact::restore;
use super::{Importer, Position};
use crate::trace::fields::{Fields, is_list, is_object, is_string, typed};
use crate::trace::{CallMade, Expectation, Failed, Invalid, Outcome, Trace, Usage, as_id};

const KEPT: &str = "calls of earlier exchanges, which the conversation no longer had later";
const HALF_A_BATCH: &str = "join each line of the input of a batch with that of the output by `custom_id`, as \
    {\"custom_id\", \"body\", \"response\"} (`params` and `result` of Anthropic)";

/// The settings of a request, which say nothing about the agent.
const SETTINGS: [&str; 13] = [
    "temperature",
    "n",
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
    /// The number of messages in the request, and in the request of the first exchange.
    request: usize,
    start: usize,
    /// The response after which this exchange goes on, if the provider keeps the conversation.
    follows: Option<String>,
    /// The ids of the responses so far.
    responses: Vec<String>,
    /// Calls of earlier exchanges, with their ids.
    kept: Vec<(Option<String>, CallMade)>,
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
                // Providers add kinds of items, most of which are not actions.
                if let Some(kind) = unknown_kind(message) {
                    self.dialog.unread(format!("items of the type {kind}"));
                    continue;
                }
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

    /// Returns whether a response was recorded apart from the request.
    fn is_exchange(&self) -> bool {
        self.request < self.trace.messages.len()
    }

    /// The request is complete.
    fn begun(&mut self) {
        self.request = self.trace.messages.len();
        self.start = self.request;
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
        conversation.begun();
        restore(text, &mut conversation.dialog.calls);
        return Ok(conversation);
    }
    let mut fields = Fields::parse(text)?;
    let of_batch = fields.has("custom_id");
    let has = |names: &[&str]| of_batch && names.iter().any(|name| fields.has(name));
    let (is_asked, is_answered) = (has(&["body", "params"]), has(&["response", "result", "error"]));
    overlay(&mut fields, &mut conversation.trace)?;
    let (request, response) = halves(&mut fields, of_batch)?;
    // A response can be the text of the answer alone.
    let said = response.filter(|response| is_string(response)).map(typed::<String>).transpose()?;
    conversation.trace.output = said.filter(|text| !text.is_empty());
    let response = response.filter(|response| !is_string(response)).map(body_of).transpose();
    let response = response.map_err(|error| error.within("response"))?;
    let mut request = match request {
        Some(request) => request,
        None => std::mem::replace(&mut fields, Fields::parse("{}")?),
    };
    let found = CONVERSATIONS.iter().find_map(|name| Some((*name, request.raw(name)?)));
    let found = found.or_else(|| Some(("messages", state(&mut request)?.raw("messages")?)));
    let missing = || match is_answered {
        true => Invalid::at("body", format!("is missing; {HALF_A_BATCH}")),
        false => Invalid::at("messages", "is missing"),
    };
    let (name, messages) = found.ok_or_else(missing)?;
    conversation.messages(&typed(messages).map_err(|error| error.within(name))?, name)?;
    conversation.begun();
    let has_steps = !conversation.dialog.calls.is_empty() || conversation.dialog.output.is_some();
    match (is_asked, is_answered) {
        (true, false) if !has_steps => {
            return Err(Invalid::at("response", format!("is missing; {HALF_A_BATCH}")));
        }
        (_, true) => {
            fields.raw("error");
            conversation.trace.failed = not_made(&typed(text)?);
        }
        _ => {}
    }
    conversation.follows = request.get("previous_response_id").ok().flatten();
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
        conversation.responses.extend(response.get::<String>("id").ok().flatten());
        read_response(&mut response, &mut conversation)?;
    }
    restore(text, &mut conversation.dialog.calls);
    conversation.trace.count_unknown("", &request);
    conversation.trace.count_unknown("", &fields);
    Ok(conversation)
}

/// The reason for which a request of a batch was not made.
fn not_made(line: &Value) -> Option<Failed> {
    let kind = line.pointer("/result/type").and_then(Value::as_str);
    let kind = kind.filter(|kind| *kind != "succeeded");
    let places = ["/error", "/response/body/error", "/result/error/error", "/result/error"];
    let error =
        places.iter().find_map(|place| line.pointer(place).filter(|error| error.is_object()));
    let status = line.pointer("/response/status_code").and_then(Value::as_u64);
    let status = status.filter(|status| *status >= 400).map(|status| format!("status {status}"));
    if kind.is_none() && error.is_none() && status.is_none() {
        return None;
    }
    let word = |key: &str| error?.get(key)?.as_str().map(str::to_owned);
    let class = word("code").or_else(|| word("type")).or(kind.map(str::to_owned)).or(status);
    let class = class.unwrap_or_else(|| "error".to_owned());
    Some(Failed { class, message: word("message").unwrap_or_default() })
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

/// The number of conversations that are remembered, to know exchanges that come too late.
const MAX_REMEMBERED: usize = 65_536;
const INTERRUPTED: &str = "goes on with a conversation that another one interrupted; sort the records by id, \
    those of one id in their order";

/// Joins the exchanges of a conversation.
#[derive(Default)]
pub(super) struct Conversations {
    open: Option<Conversation>,
    /// The number of messages in the first request of each conversation, by its id and run.
    starts: BTreeMap<(String, u32), usize>,
    /// Calls that were kept of exchanges that are not shown.
    kept: u64,
}

impl Conversations {
    /// Returns whether an exchange continues a conversation that was closed. Each of its parts would
    /// count as a run.
    fn is_interrupted(&self, next: &Conversation) -> bool {
        let key = |one: &Conversation| (one.trace.id.clone(), one.trace.run);
        if self.open.as_ref().is_none_or(|open| key(open) == key(next)) {
            return false;
        }
        let Some(start) = self.starts.get(&key(next)) else { return false };
        let goes_on =
            next.request > *start && next.trace.messages[..next.request].iter().any(is_step);
        next.follows.is_some() || next.is_exchange() && goes_on
    }

    fn close(&mut self, mut conversation: Conversation, out: &mut Vec<Trace>) {
        let mut dialog = std::mem::take(&mut conversation.dialog);
        let mut kept = missing(conversation.kept, &identified(&dialog));
        for (id, call) in &mut kept {
            dialog.orphans.iter().for_each(|orphan| orphan.answer(id.as_deref(), call));
        }
        self.kept += kept.len() as u64;
        dialog.calls.splice(0..0, kept.into_iter().map(|(_, call)| call));
        dialog.into_trace(&mut conversation.trace);
        out.push(conversation.trace);
    }
}

impl Importer for Conversations {
    fn take(&mut self, text: &str, at: Position, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        let mut next = read(text)?;
        let named = !next.trace.id.is_empty();
        if !named {
            next.trace.id = at.name();
        } else if self.is_interrupted(&next) {
            return Err(Invalid::new(INTERRUPTED));
        }
        match self.open.take() {
            Some(open) if named && (follows(&open, &next) || continues(&open, &next)) => {
                self.open = Some(joined(open, next));
            }
            before => {
                if let Some(before) = before {
                    self.close(before, out);
                }
                if named && self.starts.len() < MAX_REMEMBERED {
                    let key = (next.trace.id.clone(), next.trace.run);
                    self.starts.entry(key).or_insert(next.start);
                }
                self.open = Some(next);
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Trace>) {
        if let Some(open) = self.open.take() {
            self.close(open, out);
        }
    }

    fn notes(&self) -> BTreeMap<String, u64> {
        let kept = (self.kept > 0).then(|| (KEPT.to_owned(), self.kept));
        kept.into_iter().collect()
    }
}

/// Returns whether an exchange goes on after a response of the conversation that is open.
fn follows(open: &Conversation, next: &Conversation) -> bool {
    let after = next.follows.as_ref();
    open.trace.key() == next.trace.key()
        && after.is_some_and(|id| open.responses.is_empty() || open.responses.contains(id))
}

/// Returns whether an exchange belongs to the conversation before it: the same trace, and not a new
/// start, which would be another run of the task.
fn continues(open: &Conversation, next: &Conversation) -> bool {
    let (before, now) = (&open.trace.messages, &next.trace.messages);
    let is_shorter = now.len() <= before.len() && before.first() == now.first();
    let new_start = is_shorter && !goes_on(open, next) || is_another(open, next);
    open.trace.key() == next.trace.key() && (next.trace.run > 0 || !new_start)
}

/// Returns whether a request has a step of the open conversation in it, though others were left out: the
/// context was compacted.
fn goes_on(open: &Conversation, next: &Conversation) -> bool {
    let steps = open.trace.messages.get(open.start..).unwrap_or_default();
    next.is_exchange() && shares_a_step(steps, &next.trace.messages[..next.request])
}

/// Returns whether two records, each of all that was said, are of two runs: the second begins like the first
/// and goes another way.
fn is_another(open: &Conversation, next: &Conversation) -> bool {
    let (before, now) = (&open.trace.messages, &next.trace.messages);
    let begins_like = before.first() == now.first() || open.dialog.input == next.dialog.input;
    if open.is_exchange() || next.is_exchange() || !begins_like || now.starts_with(before) {
        return false;
    }
    let answer = before.last().filter(|_| open.dialog.output.is_some());
    let has_steps = !open.dialog.calls.is_empty();
    answer.is_some_and(|answer| !now.contains(answer)) || has_steps && !shares_a_step(before, now)
}

/// Returns whether a message has a call or a result.
fn is_step(message: &Value) -> bool {
    let pieces = pieces(message).unwrap_or_default();
    pieces.iter().any(|piece| matches!(piece, Piece::Call { .. } | Piece::Outcome { .. }))
}

fn shares_a_step(before: &[Value], now: &[Value]) -> bool {
    let steps = before.iter().filter(|message| is_step(message));
    let steps: BTreeSet<String> = steps.map(Value::to_string).collect();
    now.iter().any(|message| steps.contains(&message.to_string()))
}

/// The conversation with a further exchange.
fn joined(mut open: Conversation, mut next: Conversation) -> Conversation {
    let usage = added(open.trace.usage, next.trace.usage);
    let expect = next.trace.expect.take().or(open.trace.expect.take());
    let is_longer = next.trace.messages.len() >= open.trace.messages.len();
    let (start, input) = (open.start, open.dialog.input.clone());
    let is_rest = follows(&open, &next);
    let mut responses = std::mem::take(&mut open.responses);
    responses.append(&mut next.responses);
    let is_whole = next.trace.messages.starts_with(&open.trace.messages[..open.request]);
    let mut joined = if is_rest {
        appended(open, next)
    } else if is_whole {
        // An answer of the model is not a step if the next request goes on without it.
        let kept = std::mem::take(&mut open.kept);
        Conversation { kept, ..if is_longer { next } else { open } }
    } else {
        rewritten(open, next, is_longer)
    };
    joined.dialog.input = input.or(joined.dialog.input);
    joined.trace.usage = usage;
    joined.trace.expect = expect;
    joined.start = start;
    joined.responses = responses;
    joined
}

/// Adds an exchange that has only new messages.
fn appended(mut open: Conversation, mut next: Conversation) -> Conversation {
    let mut unread = std::mem::take(&mut open.dialog.unread);
    let known = open.dialog.calls.len();
    for message in &next.trace.messages {
        open.dialog.message(message);
    }
    // The same calls, with every digit.
    for (call, exact) in open.dialog.calls[known..].iter_mut().zip(next.dialog.calls) {
        call.arguments = exact.arguments;
    }
    for (place, count) in next.dialog.unread {
        *unread.entry(place).or_default() += count;
    }
    open.dialog.unread = unread;
    let earlier = std::mem::take(&mut open.trace);
    let mut messages = earlier.messages;
    messages.append(&mut next.trace.messages);
    open.request = messages.len();
    open.trace = Trace { messages, ..next.trace };
    open.trace.model = open.trace.model.or(earlier.model);
    open.trace.tools = open.trace.tools.or(earlier.tools);
    open.trace.outcome = open.trace.outcome.or(earlier.outcome);
    open.trace.state = open.trace.state.or(earlier.state);
    open
}

/// Joins an exchange whose request does not go on from the one before: the context was compacted, or another
/// request came in between. No call of either is lost.
fn rewritten(mut open: Conversation, next: Conversation, is_longer: bool) -> Conversation {
    let mut kept = std::mem::take(&mut open.kept);
    // A shorter one goes on if the agent had not answered yet.
    let is_later = is_longer || open.dialog.output.is_none();
    let (mut shown, other) = if is_later { (next, open) } else { (open, next) };
    kept.extend(missing(identified(&other.dialog), &kept));
    for (id, call) in &mut kept {
        let orphans = other.dialog.orphans.iter().chain(&shown.dialog.orphans);
        orphans.for_each(|orphan| orphan.answer(id.as_deref(), call));
    }
    shown.kept = kept;
    shown
}

fn identified(dialog: &Dialog) -> Vec<(Option<String>, CallMade)> {
    dialog.ids.iter().cloned().zip(dialog.calls.iter().cloned()).collect()
}

/// The `calls` that are not among the `others`, each of which is one of them at most.
fn missing(
    calls: Vec<(Option<String>, CallMade)>,
    others: &[(Option<String>, CallMade)],
) -> Vec<(Option<String>, CallMade)> {
    let mut taken = vec![false; others.len()];
    let mut left = Vec::new();
    for (id, call) in calls {
        let is_same = |(other_id, other): &(Option<String>, CallMade)| {
            let ids = id.is_none() || other_id.is_none() || id == *other_id;
            ids && call.name == other.name && call.arguments == other.arguments
        };
        let found = (0..others.len()).find(|at| !taken[*at] && is_same(&others[*at]));
        match found {
            Some(at) => taken[at] = true,
            None => left.push((id, call)),
        }
    }
    left
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
/// batch files, or all in one. The response is a text, or an object that may have a `body`.
fn halves<'a>(
    fields: &mut Fields<'a>,
    of_batch: bool,
) -> Result<(Option<Fields<'a>>, Option<&'a str>), Invalid> {
    // Anthropic's batches have other names, and the response inside.
    let params = if of_batch { fields.raw("params") } else { None };
    let result = if of_batch { fields.raw("result").filter(|text| is_object(text)) } else { None };
    let result = result.and_then(|result| Fields::parse(result).ok()?.raw("message"));
    let request = fields.any(&["request", "body"]).or(params);
    let request = request.map(body_of).transpose().map_err(|error| error.within("request"))?;
    Ok((request, fields.raw("response").or(result)))
}

fn body_of(text: &str) -> Result<Fields<'_>, Invalid> {
    match Fields::parse(text)?.raw("body").filter(|body| is_object(body)) {
        Some(body) => Fields::parse(body),
        None => Fields::parse(text),
    }
}

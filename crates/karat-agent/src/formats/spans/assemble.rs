//! One trace from its spans.
//!
//! Calls are those that the models ask for in their messages, and those of the spans that execute a
//! tool. Both tell of the same call where the id is the same, or the name and its count: then the
//! model's arguments count, since tool spans wrap, convert or leave out theirs, and the tool's span has
//! the result, the error and the times. A call that is seen at several heights (the agent's span, the
//! MCP client's inside it, the MCP server's inside that) is one call.
//!
//! Where model spans nest, the innermost ones count, for messages as for tokens: the outer ones repeat
//! or add up what is inside. Content that was not recorded stays so. A trace of which neither calls nor
//! their absence is known is left out and counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Span;
use super::messages::{definitions, inputs, outputs};
use crate::formats::dialog::{Dialog, Piece, answer_in, pieces, structured};
use crate::trace::{Arguments, CallMade, Expectation, Outcome, Trace, Turns};

const CALLS_NOT_RECORDED: &str = "traces left out: a model called tools, and the exporter did not \
    record which (message content may have to be switched on)";
const NOTHING_RECORDED: &str = "traces left out: neither messages nor tool calls were recorded \
    (message content may have to be switched on)";

/// The result of assembling the spans of a trace.
pub(super) enum Closed {
    Trace(Box<Trace>),
    LeftOut(&'static str),
    /// Other things are traced too.
    NotOfAgent,
}

/// Puts the spans of a trace together.
pub(super) fn trace(id: String, spans: Vec<Span>) -> Closed {
    let spans = with_logs(spans);
    let marks =
        ["gen_ai.", "mcp.", "karat.", "llm.", "openinference.", "traceloop.", "ai.", "gcp.vertex."];
    let marked = |key: &String| marks.iter().any(|mark| key.starts_with(mark));
    let of_agent = |span: &Span| {
        span.is_tool()
            || span.attributes.keys().any(marked)
            || span.events.iter().any(|(name, _)| name.starts_with("gen_ai."))
    };
    if !spans.iter().any(of_agent) {
        return Closed::NotOfAgent;
    }
    let tree = Tree::of(&spans);
    let mut trace = header(id, &spans);
    tree.usage(&mut trace);
    let said = Said::of(&tree);
    let executed = tree.executed(trace_start(&spans));
    if executed.is_empty() && said.dialog.calls.is_empty() {
        if spans.iter().any(Span::ended_in_calls) {
            return Closed::LeftOut(CALLS_NOT_RECORDED);
        }
        // An end that was not a call says that there was none.
        if !said.any_output && !spans.iter().any(Span::ended_without_calls) {
            return Closed::LeftOut(NOTHING_RECORDED);
        }
    }
    let Said { dialog, .. } = said;
    trace.input = dialog.input.clone();
    trace.output = dialog.output.clone();
    if dialog.spoken > 1 {
        trace.turns = Turns::Multi;
    }
    trace.calls = merged(dialog, executed);
    trace.tools = definitions(&spans);
    let top_failed = |span: &Span| span.failed.is_some() && tree.is_top(span) && !span.is_tool();
    if trace.output.is_none() && spans.iter().any(top_failed) {
        trace.stopped = Some("error".to_owned());
    }
    Closed::Trace(Box::new(trace))
}

/// Adds log records to their spans, and sorts the spans by their start.
fn with_logs(spans: Vec<Span>) -> Vec<Span> {
    let (mut logs, mut spans): (Vec<Span>, Vec<Span>) =
        spans.into_iter().partition(|span| span.is_log);
    logs.sort_by_key(|log| log.start);
    let mut by_id: BTreeMap<String, usize> =
        spans.iter().enumerate().map(|(at, span)| (span.id.clone(), at)).collect();
    for log in logs {
        match by_id.get(&log.id) {
            Some(at) => spans[*at].events.extend(log.events),
            // Without its span a log record still has the messages.
            None => {
                by_id.insert(log.id.clone(), spans.len());
                spans.push(log);
            }
        }
    }
    spans.sort_by(|a, b| (a.start, &a.id).cmp(&(b.start, &b.id)));
    let mut spans = with_streams(spans);
    // The same span can be exported twice, for instance after a timeout.
    spans.dedup_by(|b, a| !a.id.is_empty() && a.id == b.id && a.start == b.start);
    spans
}

/// Adds what Logfire records when a stream has ended to the span that asked for it: the one before it with
/// the same request.
fn with_streams(spans: Vec<Span>) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        let is_end = span.text(&["logfire.span_type"]) == Some("log")
            && ["duration", "request_data"].iter().all(|key| span.attributes.contains_key(*key));
        let asked = |other: &Span| {
            let same = |key: &str| other.attributes.get(key) == span.attributes.get(key);
            other.scope == span.scope
                && other.parent == span.parent
                && !other.has_usage()
                && ["request_data", "gen_ai.input.messages"].iter().all(|key| same(key))
        };
        let found = if is_end { out.iter().rposition(asked) } else { None };
        match found {
            Some(at) => {
                for (key, value) in span.attributes {
                    out[at].attributes.entry(key).or_insert(value);
                }
                out[at].end = out[at].end.max(span.end);
            }
            None => out.push(span),
        }
    }
    out
}

fn trace_start(spans: &[Span]) -> u128 {
    spans.iter().map(|span| span.start).filter(|start| *start > 0).min().unwrap_or(0)
}

/// Everything but the conversation.
fn header(id: String, spans: &[Span]) -> Trace {
    let find = |keys: &[&str]| spans.iter().find_map(|span| span.text(keys));
    let name = find(&["karat.task"]).or_else(|| find(&["gen_ai.conversation.id", "session.id"]));
    let mut trace = Trace::of(name.map_or(id, str::to_owned));
    let models = ["gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "ai.model.id"];
    trace.model = find(&models).map(str::to_owned);
    // Runs that are not numbered are numbered in the order in which they began.
    let run = spans.iter().find_map(|span| span.number(&["karat.run"]));
    trace.run = run.and_then(|run| u32::try_from(run).ok()).unwrap_or(0);
    let word = |key: &str| find(&[key]).and_then(|word| serde_json::from_value(word.into()).ok());
    trace.setting = word("karat.setting").unwrap_or_default();
    if let Some(text) = find(&["karat.expect"]) {
        match Expectation::parse(text) {
            Ok(expect) => trace.expect = Some(Arc::new(expect)),
            // Reported with the unknown fields: one bad attribute must not lose the trace.
            Err(error) => {
                trace.unknown.insert(format!("karat.expect ({error})"), 1);
            }
        }
    }
    let judged = spans.iter().find_map(|span| span.attributes.get("karat.outcome"));
    trace.outcome = judged.and_then(Outcome::of);
    let (first, last) = (trace_start(spans), spans.iter().map(|span| span.end).max().unwrap_or(0));
    if last > first && first > 0 {
        trace.usage.duration_ms = Some((last - first) as f64 / 1e6);
    }
    trace
}

/// Spans with their parents.
struct Tree<'s> {
    spans: &'s [Span],
    parents: Vec<Option<usize>>,
}

impl<'s> Tree<'s> {
    fn of(spans: &'s [Span]) -> Self {
        let by_id: BTreeMap<&str, usize> =
            spans.iter().enumerate().map(|(at, span)| (span.id.as_str(), at)).collect();
        let parent = |(at, span): (usize, &Span)| {
            let parent = span.parent.as_deref().and_then(|id| by_id.get(id).copied());
            parent.filter(|parent| *parent != at)
        };
        Tree { spans, parents: spans.iter().enumerate().map(parent).collect() }
    }

    /// The spans around this one, from the inside. Bounded: parents can be written in a circle.
    fn around(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parents[at], |at| self.parents[*at]).take(64)
    }

    fn is_top(&self, span: &Span) -> bool {
        let at = self.spans.iter().position(|other| std::ptr::eq(other, span));
        at.is_some_and(|at| self.parents[at].is_none())
    }

    /// Of the spans with a property, those that have no such span inside.
    fn innermost(&self, has: impl Fn(&Span) -> bool) -> Vec<usize> {
        let mut inner: Vec<bool> = self.spans.iter().map(&has).collect();
        for at in 0..self.spans.len() {
            if has(&self.spans[at]) {
                self.around(at).for_each(|outer| inner[outer] = false);
            }
        }
        (0..inner.len()).filter(|at| inner[*at]).collect()
    }

    fn usage(&self, trace: &mut Trace) {
        let mut exchanges = self.innermost(|span| !span.is_tool() && span.has_usage());
        // Two instrumentations of one exchange need not nest: of these the one that lasts through the
        // other is farther from the wire.
        let other = |a: &Span, b: &Span| match (a.response_id(), b.response_id()) {
            (Some(a), Some(b)) => a == b,
            _ => a.is_openinference() != b.is_openinference() || a.scope != b.scope,
        };
        let spans = self.spans;
        let repeated = |at: usize, inner: usize| {
            inner > at && spans[at].lasts_through(&spans[inner]) && other(&spans[at], &spans[inner])
        };
        let all = exchanges.clone();
        exchanges.retain(|at| !all.iter().any(|inner| repeated(*at, *inner)));
        for at in exchanges {
            spans[at].add_usage(trace);
        }
    }

    /// The calls by the outermost span of each, with its id; what it lacks is taken from the spans
    /// inside it.
    fn executed(&self, first: u128) -> Vec<(Option<String>, CallMade)> {
        let spans = self.spans;
        let outer = |at: usize| {
            let name = spans[at].tool_name();
            let same = |outer: &usize| spans[*outer].is_tool() && spans[*outer].tool_name() == name;
            self.around(at).filter(same).last()
        };
        let mut calls: BTreeMap<usize, (Option<String>, CallMade)> = BTreeMap::new();
        let mut inner = Vec::new();
        for (at, span) in spans.iter().enumerate().filter(|(_, span)| span.is_tool()) {
            let call = span.call(first).filter(|call| answer_in(call).is_none());
            match (outer(at), call) {
                (Some(outer), _) => inner.push((outer, at)),
                (None, Some(call)) => _ = calls.insert(at, (span.call_id(), call)),
                (None, None) => {}
            }
        }
        for (outer, at) in inner {
            let (Some((id, call)), Some(more)) = (calls.get_mut(&outer), spans[at].call(first))
            else {
                continue;
            };
            *id = id.take().or_else(|| spans[at].call_id());
            call.server = call.server.take().or(more.server);
            if call.arguments == Arguments::NotRecorded {
                call.arguments = more.arguments;
            }
            if matches!(call.result, None | Some(Value::Null)) && more.result.is_some() {
                call.result = more.result;
            }
            call.error = call.error.take().or(more.error);
        }
        calls.into_values().collect()
    }
}

/// The conversation in the spans' messages.
struct Said {
    dialog: Dialog,
    /// True if any answer of a model was recorded.
    any_output: bool,
}

impl Said {
    fn of(tree: &Tree<'_>) -> Said {
        let mut dialog = Dialog::default();
        let mut results = Vec::new();
        // Messages repeat everything before them, so calls are taken from outputs alone.
        for span in tree.spans.iter().filter(|span| !span.is_tool()) {
            let mut spoken = 0;
            for message in inputs(span) {
                for piece in pieces(&message).unwrap_or_default() {
                    match piece {
                        Piece::User(text) if !text.is_empty() => {
                            spoken += 1;
                            dialog.input.get_or_insert(text);
                        }
                        Piece::Outcome { id: Some(id), result, failed } => {
                            results.push((id, result, failed));
                        }
                        _ => {}
                    }
                }
            }
            dialog.spoken = dialog.spoken.max(spoken);
        }
        let speaking = tree.innermost(|span| !span.is_tool() && !outputs(span).is_empty());
        for at in &speaking {
            let before = dialog.calls.len();
            for message in outputs(&tree.spans[*at]) {
                Said::hear(&mut dialog, before, &message);
            }
        }
        let ids = dialog.ids.clone();
        for (id, result, failed) in results {
            if ids.iter().any(|known| known.as_deref() == Some(&id)) {
                dialog.outcome(Some(&id), result, failed);
            }
        }
        Said { dialog, any_output: !speaking.is_empty() }
    }

    /// `before` is the number of calls that were known before the span of the message.
    fn hear(dialog: &mut Dialog, before: usize, message: &Value) {
        let so_far = dialog.calls.len();
        let mut text = None;
        let mut calls = false;
        for piece in pieces(message).unwrap_or_default() {
            match piece {
                Piece::Answer(words) => text = Some(words),
                Piece::Call { id, call } => {
                    calls = true;
                    let known = id.as_ref().and_then(|id| {
                        dialog.ids.iter().rposition(|known| known.as_ref() == Some(id))
                    });
                    match known {
                        // Two instrumentations can record the same exchange.
                        Some(at) if at < before => {}
                        // A stream that records a call once for each part, the whole one last.
                        Some(at) if at < so_far && dialog.calls[at].name == call.name => {
                            if call.arguments != Arguments::NotRecorded {
                                dialog.calls[at] = *call;
                            }
                        }
                        _ => dialog.call(id, *call),
                    }
                }
                Piece::Outcome { id, result, failed } => {
                    dialog.outcome(id.as_deref(), result, failed);
                }
                Piece::User(_) => {}
            }
        }
        // A model that still calls has not answered yet.
        match (calls, text) {
            (true, _) => dialog.output = None,
            (false, Some(text)) => dialog.output = Some(text),
            (false, None) => {}
        }
    }
}

/// The models' calls, completed by the spans that execute them, and the spans that no model asked for.
fn merged(dialog: Dialog, executed: Vec<(Option<String>, CallMade)>) -> Vec<CallMade> {
    let Dialog { mut calls, ids, .. } = dialog;
    let mut taken = vec![false; calls.len()];
    let mut places: Vec<Option<usize>> = vec![None; executed.len()];
    // By id first, so that a name does not take the call of an id.
    for by_id in [true, false] {
        for (place, (id, call)) in places.iter_mut().zip(&executed).filter(|(p, _)| p.is_none()) {
            let fits = |at: &usize| match by_id {
                true => id.is_some() && ids[*at] == *id,
                false => same_tool(&calls[*at].name, &call.name),
            };
            *place = (0..calls.len()).find(|at| !taken[*at] && fits(at));
            if let Some(at) = *place {
                taken[at] = true;
            }
        }
    }
    let mut others = Vec::new();
    for (place, (_, run)) in places.into_iter().zip(executed) {
        let Some(at) = place else {
            others.push(run);
            continue;
        };
        let call = &mut calls[at];
        if call.arguments == Arguments::NotRecorded {
            call.arguments = run.arguments;
        }
        // The MCP span knows the tool's own name and server.
        if run.server.is_some() {
            (call.name, call.server) = (run.name, run.server);
        }
        if !matches!(run.result, None | Some(Value::Null)) || call.result.is_none() {
            call.result = run.result;
        }
        call.error = run.error.or(call.error.take());
        (call.start_ms, call.end_ms) = (run.start_ms, run.end_ms);
    }
    for other in others {
        let later = |call: &CallMade| call.start_ms.is_some() && call.start_ms > other.start_ms;
        let at = calls.iter().position(later).unwrap_or(calls.len());
        calls.insert(at, other);
    }
    calls
}

/// Returns whether a tool's span is about the tool that a model called: frameworks put the server's
/// name before the tool's.
fn same_tool(called: &str, executed: &str) -> bool {
    called == executed
        || called
            .strip_suffix(executed)
            .is_some_and(|rest| rest.ends_with(['_', '.', '-', '/', ':']))
}

impl Span {
    /// Returns whether a model ended its turn by calling tools; none if that is not recorded.
    fn ended(&self) -> Option<bool> {
        let keys = [
            "gen_ai.response.finish_reasons",
            "gen_ai.response.finish_reason",
            "llm.finish_reason",
            "ai.response.finishReason",
        ];
        let is = |value: &Value| {
            let word = value.as_str().unwrap_or_default().to_lowercase().replace('-', "_");
            // Some write the name of the enumeration before it.
            let word = word.rsplit('.').next().unwrap_or_default().to_owned();
            matches!(word.as_str(), "tool_call" | "tool_calls" | "tool_use" | "function_call")
        };
        let found = keys.iter().find_map(|key| self.attributes.get(*key)).map(structured)?;
        Some(match found {
            Value::Array(all) => all.iter().any(is),
            one => is(&one),
        })
    }

    fn ended_in_calls(&self) -> bool {
        self.ended() == Some(true)
    }

    fn ended_without_calls(&self) -> bool {
        self.ended() == Some(false)
    }

    fn response_id(&self) -> Option<&str> {
        self.text(&["gen_ai.response.id", "ai.response.id", "llm.response.id"])
    }

    fn is_openinference(&self) -> bool {
        self.attributes.contains_key("openinference.span.kind")
    }

    fn tokens(&self, kind: usize) -> Option<u64> {
        const KEYS: [&[&str]; 4] = [
            &[
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.prompt_tokens",
                "llm.token_count.prompt",
                "llm.usage.prompt_tokens",
                "ai.usage.inputTokens",
                "ai.usage.promptTokens",
            ],
            &[
                "gen_ai.usage.output_tokens",
                "gen_ai.usage.completion_tokens",
                "llm.token_count.completion",
                "llm.usage.completion_tokens",
                "ai.usage.outputTokens",
                "ai.usage.completionTokens",
            ],
            &[
                "gen_ai.usage.cache_read.input_tokens",
                "gen_ai.usage.cache_read_input_tokens",
                "gen_ai.usage.details.cache_read_tokens",
                "gen_ai.usage.details.cached_tokens",
                "llm.token_count.prompt_details.cache_read",
                "ai.usage.cachedInputTokens",
            ],
            &[
                "gen_ai.usage.reasoning.output_tokens",
                "gen_ai.usage.reasoning_tokens",
                "gen_ai.usage.details.reasoning_tokens",
                "llm.token_count.completion_details.reasoning",
                "ai.usage.reasoningTokens",
            ],
        ];
        self.number(KEYS[kind])
    }

    fn has_usage(&self) -> bool {
        self.tokens(0).is_some() || self.tokens(1).is_some()
    }

    fn add_usage(&self, trace: &mut Trace) {
        let usage = &mut trace.usage;
        let sums = [
            &mut usage.input_tokens,
            &mut usage.output_tokens,
            &mut usage.cached_tokens,
            &mut usage.reasoning_tokens,
        ];
        for (kind, sum) in sums.into_iter().enumerate() {
            if let Some(tokens) = self.tokens(kind) {
                *sum = Some(sum.unwrap_or_default().saturating_add(tokens));
            }
        }
        let cost = ["gen_ai.usage.cost", "gen_ai.cost", "llm.cost.total", "operation.cost"];
        let cost = cost.iter().find_map(|key| self.attributes.get(*key)?.as_f64());
        if let Some(cost) = cost.filter(|cost| cost.is_finite() && *cost >= 0.0) {
            usage.cost = Some(usage.cost.unwrap_or_default() + cost);
        }
    }
}

//! One trace from its spans.
//!
//! Calls are those that the models ask for in their messages, and those of the spans that execute a
//! tool. Both tell of the same call where the id is the same, or the name and its count: then the
//! model's arguments count, since tool spans wrap, convert or leave out theirs, and the tool's span has
//! the result, the error and the times. A call that is seen at several heights (the agent's span, the
//! MCP client's inside it, the MCP server's inside that) is one call.
//!
//! Where model spans nest, the innermost ones count, for messages as for tokens: the outer ones repeat
//! or add up what is inside. The steps of a tool or another agent inside a model's span are not a repetition.
//! Content that was not recorded stays so. A trace of which neither calls nor
//! their absence is known is left out and counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::Span;
use super::choices::{CHOICE_EVENT, FINISH, ends_in_calls};
use super::chosen::{Chosen, chosen};
use super::exports::messages;
use super::messages::{definitions, inputs, outputs};
use super::same::{agree, is_same, same_tool};
use crate::formats::dialog::{
    Dialog, Piece, answer, answer_in, is_empty_answer, is_open, pieces, structured,
};
use crate::formats::exact::restore;
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
    let mut spans = with_logs(spans);
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
    // A handoff is a call of the model; the span of one counts where the models' messages are not recorded.
    if spans.iter().any(Span::is_handoff)
        && spans.iter().any(|span| !span.is_tool() && !outputs(span).is_empty())
    {
        spans.retain(|span| !span.is_handoff());
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
    let Said { dialog, answered, .. } = said;
    trace.input = dialog.input.clone();
    trace.output = dialog.output.clone();
    if tree.failed_after(answered) {
        (trace.output, trace.stopped) = (None, Some("error".to_owned()));
    }
    for (place, count) in &dialog.unread {
        *trace.unknown.entry(place.clone()).or_default() += count;
    }
    if dialog.spoken > 1 {
        trace.turns = Turns::Multi;
    }
    trace.calls = merged(dialog, executed);
    trace.tools = definitions(&spans);
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

    /// Returns whether the run ended in an error and not in the answer that this span has: the outermost span
    /// failed, or the outermost agent inside it, which is all that some SDKs mark.
    fn failed_after(&self, answered: Option<usize>) -> bool {
        let is_agent = |at: usize| self.spans[at].is_agent();
        let failed = |at: &usize| self.spans[*at].failed.is_some() && !self.spans[*at].is_tool();
        (0..self.spans.len()).filter(failed).any(|at| {
            let outermost = is_agent(at) && !self.around(at).any(is_agent);
            match answered {
                None => outermost || self.parents[at].is_none(),
                // The answer of an earlier turn.
                Some(answered) => outermost && answered < at,
            }
        })
    }

    /// Of the spans with a property, those that have no such span inside. An exchange with a model stays if
    /// the one inside it belongs to a tool or another agent.
    fn innermost(&self, has: impl Fn(&Span) -> bool) -> Vec<usize> {
        let mut inner: Vec<bool> = self.spans.iter().map(&has).collect();
        for at in 0..self.spans.len() {
            if !has(&self.spans[at]) {
                continue;
            }
            let mut apart = false;
            for outer in self.around(at) {
                let span = &self.spans[outer];
                inner[outer] &= apart && span.is_exchange();
                apart |= span.is_tool() || span.is_agent();
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
            inner > at
                && spans[at].lasts_through(&spans[inner])
                && other(&spans[at], &spans[inner])
                && !self.around(inner).any(|outer| outer == at)
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
        // A tool can start an agent that calls the same tool, which is another call.
        let outer = |at: usize| {
            let (name, mut id, mut found) = (spans[at].tool_name(), spans[at].call_id(), None);
            for outer in self.around(at) {
                let span = &spans[outer];
                if span.is_agent() {
                    break;
                }
                if span.is_tool() && span.tool_name() == name {
                    let other = span.call_id();
                    if id.is_some() && other.is_some() && id != other {
                        break;
                    }
                    (id, found) = (id.or(other), Some(outer));
                }
            }
            found
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

/// The result of a call in the messages that a model was given.
struct Given {
    id: String,
    /// The call in these messages, which the id alone does not tell where servers use it again.
    call: Option<(String, Arguments)>,
    result: Value,
    failed: bool,
}

/// The conversation in the spans' messages.
#[derive(Default)]
struct Said {
    dialog: Dialog,
    /// The span of each call.
    origins: Vec<usize>,
    /// True if any answer of a model was recorded.
    any_output: bool,
    /// The span with the last answer.
    answered: Option<usize>,
}

impl Said {
    fn of(tree: &Tree<'_>) -> Said {
        let mut said = Said::default();
        // Messages repeat everything before them, so calls are taken from outputs alone.
        let given: Vec<Vec<Given>> = tree.spans.iter().map(|span| said.listen(span)).collect();
        let speaking = tree.innermost(|span| !span.is_tool() && !outputs(span).is_empty());
        said.any_output = !speaking.is_empty();
        for at in speaking {
            said.hear(tree, &given, at);
        }
        let mut by_id: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, id) in said.dialog.ids.iter().enumerate() {
            if let Some(id) = id {
                by_id.entry(id.clone()).or_default().push(number);
            }
        }
        for (at, results) in given.into_iter().enumerate() {
            said.results(&by_id, at, results);
        }
        said
    }

    /// Takes the messages that a model was given: the user's and the results of calls.
    fn listen(&mut self, span: &Span) -> Vec<Given> {
        let mut given = Vec::new();
        if span.is_tool() {
            return given;
        }
        let mut spoken = 0;
        let mut asked: BTreeMap<String, (String, Arguments)> = BTreeMap::new();
        for message in inputs(span) {
            let pieces = pieces(&message).unwrap_or_default();
            let replies = pieces.iter().any(|piece| matches!(piece, Piece::Outcome { .. }));
            for piece in pieces {
                match piece {
                    Piece::User(text) if !text.is_empty() => {
                        spoken += usize::from(!replies);
                        self.dialog.input.get_or_insert(text);
                    }
                    Piece::Call { id: Some(id), call } => {
                        asked.insert(id, (call.name, call.arguments));
                    }
                    Piece::Outcome { id: Some(id), result, failed, .. } => {
                        let call = asked.get(&id).cloned();
                        given.push(Given { id, call, result, failed });
                    }
                    _ => {}
                }
            }
        }
        self.dialog.spoken = self.dialog.spoken.max(spoken);
        given
    }

    fn hear(&mut self, tree: &Tree<'_>, given: &[Vec<Given>], at: usize) {
        let span = &tree.spans[at];
        let before = self.dialog.calls.len();
        // The calls of other spans that this one repeats, each with the message that does.
        let mut repeated: BTreeMap<usize, usize> = BTreeMap::new();
        let Chosen { messages, passed_over } = chosen(tree.spans, at);
        for (number, message) in messages.iter().enumerate() {
            let so_far = self.dialog.calls.len();
            let (mut text, mut calls) = (None, false);
            let found = pieces(message).unwrap_or_default();
            if found.is_empty() && is_empty_answer(message) && span.ended_without_calls() {
                text = Some(self.dialog.output.clone().unwrap_or_default());
            }
            for piece in found {
                match piece {
                    Piece::Answer(words) => text = Some(words),
                    Piece::Call { id, mut call } => {
                        // A model that still calls has not answered yet.
                        (calls, text) = (true, None);
                        complete(span, id.as_deref(), &mut call);
                        let ids = &self.dialog.ids;
                        let here =
                            (before..ids.len()).rev().find(|one| id.is_some() && ids[*one] == id);
                        if let Some(here) = here {
                            // A stream that records a call once for each part, the whole one last.
                            let known = &mut self.dialog.calls[here];
                            if here < so_far && known.name == call.name && is_open(known) {
                                if call.arguments != Arguments::NotRecorded {
                                    *known = *call;
                                }
                                continue;
                            }
                        } else if let Some(id) = &id {
                            let earlier = (0..before).find(|one| {
                                repeated.get(one).is_none_or(|by| *by != number)
                                    && self.dialog.ids[*one].as_ref() == Some(id)
                                    && is_same(&self.dialog.calls[*one], &call)
                                    && tree.repeats(given, self.origins[*one], at, (id, &call.name))
                            });
                            if let Some(earlier) = earlier {
                                repeated.insert(earlier, number);
                                let known = &mut self.dialog.calls[earlier].arguments;
                                if *known == Arguments::NotRecorded {
                                    *known = call.arguments;
                                }
                                continue;
                            }
                        }
                        self.dialog.call(id, *call);
                        self.origins.push(at);
                    }
                    Piece::Outcome { id, name, result, failed } => {
                        self.dialog.outcome(id.as_deref(), name.as_deref(), result, failed);
                    }
                    Piece::Unread(place) => self.dialog.unread(place),
                    Piece::User(_) => {}
                }
            }
            match (calls, text) {
                (_, Some(text)) => (self.dialog.output, self.answered) = (Some(text), Some(at)),
                (true, None) => (self.dialog.output, self.answered) = (None, None),
                (false, None) => {}
            }
        }
        // The requests have earlier calls, with other digits.
        let is_answer =
            |key: &str| !["input", "prompt", "request"].iter().any(|one| key.contains(one));
        let events = span.events.iter().flat_map(|(_, attributes)| attributes);
        let texts = span.attributes.iter().chain(events);
        let texts = texts.filter(|(key, _)| is_answer(key)).filter_map(|(_, text)| text.as_str());
        // The calls of choices that come first have their numbers first.
        let taken = passed_over.len();
        let mut calls = passed_over;
        calls.extend(self.dialog.calls.drain(before..));
        texts.for_each(|text| restore(text, &mut calls));
        self.dialog.calls.extend(calls.drain(taken..));
    }

    /// Joins the results that the model of a span was given with the calls. Where an id was used several times,
    /// the last result belongs to the last call before the span.
    fn results(&mut self, by_id: &BTreeMap<String, Vec<usize>>, at: usize, results: Vec<Given>) {
        let (calls, origins) = (&mut self.dialog.calls, &self.origins);
        let of = |given: &Given| by_id.get(&given.id).map(Vec::as_slice).unwrap_or_default();
        let (again, once): (Vec<Given>, Vec<Given>) =
            results.into_iter().partition(|given| of(given).len() > 1);
        for given in once {
            if let [call] = *of(&given)
                && is_open(&calls[call])
            {
                answer(&mut calls[call], given.result, given.failed);
            }
        }
        let mut taken = BTreeSet::new();
        // By id, the number of calls before the span, without those at the end that are taken.
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for given in again.into_iter().rev() {
            let all = of(&given);
            let before = || all.partition_point(|number| origins[*number] < at);
            let end = ends.entry(given.id.clone()).or_insert_with(before);
            while *end > 0 && taken.contains(&all[*end - 1]) {
                *end -= 1;
            }
            let fits = |number: &&usize| {
                let call = &calls[**number];
                !taken.contains(*number)
                    && given.call.as_ref().is_none_or(|(name, arguments)| {
                        *name == call.name && agree(arguments, &call.arguments)
                    })
            };
            let Some(number) = all[..*end].iter().rev().find(fits).copied() else { continue };
            taken.insert(number);
            if is_open(&calls[number]) {
                answer(&mut calls[number], given.result, given.failed);
            }
        }
    }
}

impl Tree<'_> {
    /// Returns whether the later span records the exchange of the earlier one once more, of which it has a call
    /// of the same id, name and arguments. Some servers use an id again in every turn, so that these alone may
    /// be another call.
    fn repeats(
        &self,
        given: &[Vec<Given>],
        earlier: usize,
        later: usize,
        (id, name): (&str, &str),
    ) -> bool {
        let (one, other) = (&self.spans[earlier], &self.spans[later]);
        if let (Some(one), Some(other)) = (one.response_id(), other.response_id()) {
            return one == other;
        }
        if one.overlaps(other) {
            return true;
        }
        // Of these the call had ended before the model was asked again.
        let results =
            |at: usize| given[at].iter().filter(|given| given.id == id).map(|one| &one.result);
        let is_answered = results(later).next().is_some() && !results(later).eq(results(earlier));
        let is_executed = |span: &Span| {
            span.is_tool()
                && (one.start..=other.start).contains(&span.start)
                && span.tool_name().is_some_and(|tool| same_tool(name, tool))
        };
        let is_timed = one.start > 0 && one.start < other.start;
        let is_over = is_answered || is_timed && self.spans.iter().any(is_executed);
        !is_over
    }
}

/// Adds the arguments that the response has as the provider wrote it: OpenInference for LangChain leaves out
/// those that are empty.
fn complete(span: &Span, id: Option<&str>, call: &mut CallMade) {
    let is_model = span.text(&["openinference.span.kind"]) == Some("LLM");
    if call.arguments != Arguments::NotRecorded || !is_model {
        return;
    }
    let response = messages(span.attributes.get("output.value"), "assistant");
    let pieces = response.as_array().into_iter().flatten().filter_map(pieces).flatten();
    for piece in pieces {
        if let Piece::Call { id: stated, call: whole } = piece
            && whole.name == call.name
            && (stated.as_deref() == id || id.is_none())
        {
            call.arguments = whole.arguments;
            return;
        }
    }
}

/// The models' calls, completed by the spans that execute them, and the spans that no model asked for.
fn merged(dialog: Dialog, executed: Vec<(Option<String>, CallMade)>) -> Vec<CallMade> {
    let Dialog { mut calls, ids, .. } = dialog;
    let mut taken = vec![false; calls.len()];
    let mut places: Vec<Option<usize>> = vec![None; executed.len()];
    // By id first, so that a name does not take the call of an id; and of calls with one id the one that is
    // most like the span.
    for pass in 0..4 {
        for (place, (id, call)) in places.iter_mut().zip(&executed).filter(|(p, _)| p.is_none()) {
            let fits = |at: &usize| {
                let is_id = || id.is_some() && ids[*at] == *id;
                let is_tool = || same_tool(&calls[*at].name, &call.name);
                match pass {
                    0 => is_id() && is_tool() && agree(&calls[*at].arguments, &call.arguments),
                    1 => is_id() && is_tool(),
                    2 => is_id(),
                    _ => is_tool(),
                }
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

impl Span {
    /// Returns whether a model ended its turn by calling tools; none if that is not recorded.
    fn ended(&self) -> Option<bool> {
        let keys = [
            "gen_ai.response.finish_reasons",
            "gen_ai.response.finish_reason",
            "llm.finish_reason",
            "ai.response.finishReason",
        ];
        if let Some(found) = keys.iter().find_map(|key| self.attributes.get(*key)).map(structured) {
            return Some(match found {
                Value::Array(all) => all.iter().any(ends_in_calls),
                one => ends_in_calls(&one),
            });
        }
        let of_choice = self.events.iter().filter(|(name, _)| name == CHOICE_EVENT);
        let mut found = of_choice.filter_map(|(_, fields)| fields.get(FINISH)).peekable();
        found.peek()?;
        Some(found.any(ends_in_calls))
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

    /// Returns whether this is a request to a model, not a step that adds up several.
    pub(super) fn is_exchange(&self) -> bool {
        let operations = ["chat", "text_completion", "generate_content", "call_llm"];
        let stated = self.text(&["gen_ai.operation.name"]);
        stated.is_some_and(|stated| operations.contains(&stated))
            || self.text(&["openinference.span.kind"]) == Some("LLM")
            || self.name == "call_llm"
    }

    /// Returns whether this is the run of an agent.
    fn is_agent(&self) -> bool {
        self.text(&["gen_ai.operation.name"]) == Some("invoke_agent")
            || self.text(&["openinference.span.kind", "mlflow.spanType"]) == Some("AGENT")
            || self.text(&["traceloop.span.kind"]) == Some("agent")
            // Google's ADK before it followed the conventions.
            || self.name.starts_with("agent_run [")
    }

    fn overlaps(&self, other: &Span) -> bool {
        let is_timed = |span: &Span| span.start > 0 && span.end > 0;
        is_timed(self) && is_timed(other) && self.start < other.end && other.start < self.end
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

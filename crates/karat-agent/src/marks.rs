//! What one trace is worth: every score that needs no other trace, with the reason where there is none.
//!
//! Pure: the same trace, tools and metrics give the same marks. A score that does not apply is `None`
//! and never 0.

use std::borrow::Cow;
use std::collections::BTreeMap;

use karat_metrics::calls::{Call, Equality, Expected, json, traces};
use serde_json::{Value, json};

use crate::diff;
use crate::metric::CallMetric;
use crate::sample::Sample;
use crate::tools::{Fit, Tools};
use crate::trace::expectation::{Expectation, ExpectedCall, Forbidden, object};
use crate::trace::{Arguments, CallMade, Ended, Trace};

/// The peers' metrics that every trace is scored by, where its expectation can express them.
pub const PEERS: [&str; 5] = [
    "ragas.tool_call_accuracy",
    "ragas.tool_call_accuracy_unordered",
    "ragas.tool_call_f1",
    "deepeval.tool_correctness",
    "deepeval.tool_correctness|ordered|name+input",
];

/// How much of a text stands in an item.
const SHOWN: usize = 400;
/// How many calls of a trace stand in an item.
const CALLS_SHOWN: usize = 40;

/// A score, or why there is none.
pub type Mark = Result<f64, &'static str>;

/// The marks of one trace.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Every score by its id.
    pub scores: BTreeMap<String, Mark>,
    /// Which tool was called instead of which.
    pub confusions: Vec<Confusion>,
    /// The tools that were required, once for each call.
    pub required: Vec<String>,
    /// What was seen, for the report.
    pub observed: Value,
    /// Calls whose arguments are not JSON.
    pub unreadable_arguments: u64,
    /// Calls whose arguments were not recorded.
    pub unrecorded_arguments: u64,
    /// Why arguments could not be checked.
    pub not_checked: Vec<String>,
}

/// One tool in place of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Confusion {
    /// What was called.
    pub called: String,
    /// What should have been.
    pub expected: String,
}

impl std::fmt::Display for Confusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} instead of {}", self.called, self.expected)
    }
}

/// Takes the marks of a trace.
pub fn mark(trace: &Trace, tools: &Tools, metrics: &[CallMetric]) -> Marks {
    let mut marks = Marks::default();
    let marker = Marker { trace, expect: trace.expect.as_ref() };
    if trace.setting.has_tools() {
        marker.calls(metrics, &mut marks);
        marker.bench(tools, &mut marks);
        marker.gauge(&mut marks);
        marks.set("run.tokens", recorded(trace.usage.tokens().map(|tokens| tokens as f64)));
        marks.set("run.ms", recorded(trace.usage.duration_ms));
    }
    marker.outcome(&mut marks);
    marks.observed = marker.observed(&marks);
    marks
}

fn recorded(value: Option<f64>) -> Mark {
    value.ok_or("not recorded")
}

fn yes(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

impl Marks {
    fn set(&mut self, id: &str, mark: Mark) {
        self.scores.insert(id.to_owned(), mark);
    }

    /// A score, if it is there and defined.
    pub fn score(&self, id: &str) -> Option<f64> {
        self.scores.get(id).and_then(|mark| mark.as_ref().ok().copied())
    }
}

struct Marker<'t> {
    trace: &'t Trace,
    expect: Option<&'t Expectation>,
}

const NO_EXPECTATION: &str = "no calls are expected or ruled out";
const NO_ARGUMENTS: &str = "arguments were not recorded";
const UNREADABLE: &str = "arguments are not a JSON object";
const NO_STATE: &str = "the state was not recorded";
const A_CHOICE: &str = "the expectation leaves a choice that this metric cannot express";

impl<'t> Marker<'t> {
    /// The calls as the metrics take them. What is no JSON becomes an argument that nobody expects, so
    /// that it is never taken for no arguments.
    fn made(&self) -> Vec<Call<'t>> {
        self.trace.calls.iter().map(|call| self.as_call(call)).collect()
    }

    fn as_call(&self, call: &'t CallMade) -> Call<'t> {
        as_call(self.expect, call)
    }

    fn has_arguments(&self) -> bool {
        self.trace.calls.iter().all(|call| call.arguments != Arguments::NotRecorded)
    }

    fn calls(&self, metrics: &[CallMetric], marks: &mut Marks) {
        let made = self.made();
        marks.unreadable_arguments =
            self.count(|arguments| matches!(arguments, Arguments::Text(_)));
        marks.unrecorded_arguments = self.count(|arguments| *arguments == Arguments::NotRecorded);
        let expected = self.expect.and_then(Expectation::expected);
        let scored = match &expected {
            None => Err(NO_EXPECTATION),
            Some(_) if !self.has_arguments() => Err(NO_ARGUMENTS),
            Some(expected) => Ok(expected),
        };
        let over = |score: &dyn Fn(&Expected<'_>) -> f64| scored.map(score);
        marks.set("calls.exact", over(&|expected| yes(expected.exact(&made))));
        marks.set("calls.alignment", over(&|expected| expected.alignment(&made)));
        marks.set("calls.f1", over(&|expected| expected.f1(&made)));
        let first = scored.and_then(|expected| {
            traces::first_error(expected, &made)
                .map(|position| position as f64)
                .ok_or("the calls are as expected")
        });
        marks.set("calls.first_error", first);
        marks.set("calls.forbidden", self.forbidden());
        let exact = marks.score("calls.exact") == Some(1.0);
        marks.set(
            "calls.loop",
            match made.is_empty() {
                true => Err("no call was made"),
                false if !self.has_arguments() => Err(NO_ARGUMENTS),
                false => Ok(yes(!exact && traces::has_loop(&made))),
            },
        );
        self.peers(&made, metrics, marks);
        if scored.is_ok() {
            self.confusions(&made, marks);
        }
    }

    fn count(&self, is: impl Fn(&Arguments) -> bool) -> u64 {
        self.trace.calls.iter().filter(|call| is(&call.arguments)).count() as u64
    }

    fn peers(&self, made: &[Call<'t>], metrics: &[CallMetric], marks: &mut Marks) {
        let plain = self.expect.filter(|expect| expect.calls.is_some()).map(Expectation::plain);
        let sample = match plain {
            None => Err(NO_EXPECTATION),
            Some(None) => Err(A_CHOICE),
            Some(Some(_)) if !self.has_arguments() => Err(NO_ARGUMENTS),
            Some(Some(expected)) => Ok(Sample { id: None, called: made.to_vec(), expected }),
        };
        for metric in metrics {
            let id = metric.short_id();
            if marks.scores.contains_key(&id) {
                continue;
            }
            let mark = match (self.trace.peer_scores.get(&id), &sample) {
                (Some(score), _) => Ok(*score),
                (None, Ok(sample)) => Ok(metric.measure(sample).0.score),
                (None, Err(why)) => Err(*why),
            };
            marks.scores.insert(id, mark);
        }
    }

    fn forbidden(&self) -> Mark {
        let forbidden = self.expect.map(|expect| &expect.forbidden[..]).unwrap_or_default();
        if forbidden.is_empty() {
            return Err("nothing is forbidden");
        }
        let calls = self.trace.calls.iter();
        let found: Vec<Hit> =
            calls.flat_map(|call| forbidden.iter().map(|rule| rule.hits(call))).collect();
        if found.contains(&Hit::Yes) {
            return Ok(1.0);
        }
        let unknown = found.iter().find_map(|hit| match hit {
            Hit::Unknown(why) => Some(*why),
            Hit::Yes | Hit::No => None,
        });
        unknown.map_or(Ok(0.0), Err)
    }

    fn bench(&self, tools: &Tools, marks: &mut Marks) {
        let calls = &self.trace.calls;
        let (mut offered, mut fitting, mut unrecorded, mut listed) = (0_u64, 0_u64, 0_u64, true);
        for call in calls {
            match tools.fit(self.trace, call) {
                Fit::NoList => listed = false,
                Fit::UnknownTool => {}
                Fit::Fits => {
                    offered += 1;
                    fitting += 1;
                }
                Fit::Breaks(_) => offered += 1,
                Fit::NotChecked(why) => {
                    offered += 1;
                    unrecorded += u64::from(call.arguments == Arguments::NotRecorded);
                    marks.not_checked.push(why);
                }
            }
        }
        let share = |hits: u64, of: u64| match of {
            _ if calls.is_empty() => Err("no call was made"),
            _ if !listed => Err("the tools are not known"),
            // MCP-Bench's rule: calls of tools that do not exist comply with nothing.
            0 => Ok(0.0),
            of => Ok(hits as f64 / of as f64),
        };
        marks.set("mcpbench.tool_name_validity", share(offered, calls.len() as u64));
        let compliance = match offered - unrecorded {
            0 if unrecorded > 0 => Err(NO_ARGUMENTS),
            // A schema that cannot be used is complied with by nothing, as MCP-Bench has it.
            recorded => share(fitting, recorded),
        };
        marks.set("mcpbench.schema_compliance", compliance);
        let ended = |how: Ended| calls.iter().filter(|call| call.ended() == how).count() as u64;
        let (well, badly) = (ended(Ended::Well), ended(Ended::Badly));
        marks.set(
            "mcpbench.execution_success",
            match well + badly {
                _ if calls.is_empty() => Err("no call was made"),
                0 => Err("how calls ended was not recorded"),
                of => Ok(well as f64 / of as f64),
            },
        );
    }

    fn gauge(&self, marks: &mut Marks) {
        let needs = self.expect.and_then(Expectation::requires_tool);
        marks.set("gauge.proactivity", self.proactivity(needs));
        marks.set("gauge.compliance", self.compliance());
        marks.set(
            "gauge.unneeded_call",
            match needs {
                Some(false) => Ok(yes(!self.trace.calls.is_empty())),
                Some(true) => Err("the task needs a tool"),
                None => Err("the task does not say whether it needs a tool"),
            },
        );
    }

    fn proactivity(&self, needs: Option<bool>) -> Mark {
        let Some(expect) = self.expect.filter(|_| needs == Some(true)) else {
            return Err("the task does not need a tool");
        };
        if expect.instructed_tool.is_some() {
            return Err("the task instructs a tool");
        }
        if expect.required().next().is_none() {
            return Err("the task names no call that it requires");
        }
        if !self.has_arguments() {
            return Err(NO_ARGUMENTS);
        }
        Ok(yes(self.all_required_made(expect)))
    }

    /// Whether each required call can be met by a call of its own, in whatever order.
    fn all_required_made(&self, expect: &Expectation) -> bool {
        let made = self.made();
        let required: Vec<_> = expect.required().map(|call| expect.expected_call(call)).collect();
        let accepts: Vec<Vec<bool>> = required
            .iter()
            .map(|wanted| made.iter().map(|call| wanted.accepts(call)).collect())
            .collect();
        let mut taken_by = vec![None; made.len()];
        (0..required.len()).all(|wanted| {
            let mut seen = vec![false; made.len()];
            assign(wanted, &accepts, &mut seen, &mut taken_by)
        })
    }

    fn compliance(&self) -> Mark {
        let Some((expect, tool)) =
            self.expect.and_then(|expect| Some((expect, expect.instructed_tool.as_ref()?)))
        else {
            return Err("no tool was instructed");
        };
        let of_tool = |call: &&ExpectedCall| {
            call.tool.name == tool.name
                && (tool.server.is_none()
                    || call.tool.server.is_none()
                    || call.tool.server == tool.server)
        };
        let wanted: Vec<_> =
            expect.all_calls().filter(of_tool).map(|call| expect.expected_call(call)).collect();
        let trace = self.trace;
        let called: Vec<&'t CallMade> =
            trace.calls.iter().filter(|call| tool.is(&call.name, call.server.as_deref())).collect();
        let unrecorded = |call: &&CallMade| call.arguments == Arguments::NotRecorded;
        if !wanted.is_empty() && called.iter().any(unrecorded) {
            return Err(NO_ARGUMENTS);
        }
        let right = |call: &&'t CallMade| {
            let as_call = self.as_call(call);
            call.ended() != Ended::Badly
                && !matches!(call.arguments, Arguments::Text(_))
                && (wanted.is_empty() || wanted.iter().any(|wanted| wanted.accepts(&as_call)))
        };
        Ok(yes(called.iter().any(right)))
    }

    fn outcome(&self, marks: &mut Marks) {
        let output = self.trace.output.as_deref();
        let answer = match self.expect {
            Some(expect) if !expect.answer.is_empty() => {
                Ok(yes(expect.answer.iter().all(|matcher| matcher.holds(output))))
            }
            _ => Err("no answer is expected"),
        };
        let state = match (self.expect, &self.trace.state) {
            (Some(expect), _) if expect.state.is_empty() => Err("no state is expected"),
            (None, _) => Err("no state is expected"),
            // What nobody looked at is neither there nor not there.
            (Some(_), None) => Err(NO_STATE),
            (Some(expect), Some(state)) => {
                Ok(yes(expect.state.iter().all(|assertion| assertion.holds(state))))
            }
        };
        marks.set("answer.correct", answer);
        marks.set("state.reached", state);
        let success = self.success(answer, state, marks.scores.get("calls.exact"));
        marks.set("task.success", success);
    }

    /// Whether the task was done: all that it states must hold. What is known to be wrong decides;
    /// otherwise what is not known leaves it open.
    fn success(&self, answer: Mark, state: Mark, exact: Option<&Mark>) -> Mark {
        let Some(expect) = self.expect else { return Err("nothing is expected") };
        let mut parts = Vec::new();
        if !expect.answer.is_empty() {
            parts.push(answer);
        }
        if !expect.state.is_empty() {
            parts.push(state);
        }
        if parts.is_empty() && expect.calls.is_some() {
            parts.push(*exact.unwrap_or(&Err("only calls are expected, and there were no tools")));
        }
        if !expect.forbidden.is_empty() {
            parts.push(self.forbidden().map(|made| 1.0 - made));
        }
        if parts.is_empty() {
            return Err("nothing is expected");
        }
        if parts.contains(&Ok(0.0)) {
            return Ok(0.0);
        }
        parts.into_iter().find(Mark::is_err).unwrap_or(Ok(1.0))
    }

    /// What is left when right calls and right tools are taken away: pairs of these are confusions.
    fn confusions(&self, made: &[Call<'t>], marks: &mut Marks) {
        let Some(expect) = self.expect else { return };
        let all: Vec<&ExpectedCall> = expect.all_calls().collect();
        let wanted: Vec<_> = all.iter().map(|call| expect.expected_call(call)).collect();
        let mut met = vec![false; all.len()];
        let mut used = vec![false; made.len()];
        // Right calls first, then right tools with wrong arguments.
        for full in [true, false] {
            for (number, call) in made.iter().enumerate() {
                if used[number] {
                    continue;
                }
                let fits = |position: &usize| {
                    !met[*position]
                        && match full {
                            true => wanted[*position].accepts(call),
                            false => wanted[*position].name == call.name,
                        }
                };
                if let Some(position) = (0..all.len()).find(fits) {
                    met[position] = true;
                    used[number] = true;
                }
            }
        }
        marks.required = expect.required().map(|call| call.tool.shown()).collect();
        let missing = (0..all.len()).filter(|position| !met[*position] && !all[*position].optional);
        let extra = (0..made.len()).filter(|number| !used[*number]);
        marks.confusions = extra
            .zip(missing)
            .map(|(number, position)| Confusion {
                called: self.trace.calls[number].shown(),
                expected: all[position].tool.shown(),
            })
            .collect();
    }

    fn observed(&self, marks: &Marks) -> Value {
        let calls = shown_calls(self.trace);
        let undefined: BTreeMap<&str, &str> = marks
            .scores
            .iter()
            .filter_map(|(id, mark)| Some((id.as_str(), *mark.as_ref().err()?)))
            .collect();
        let mut observed = json!({"calls": calls, "undefined": undefined});
        if let Some(input) = &self.trace.input {
            observed["input"] = json!(clipped(input));
        }
        if let Some(output) = &self.trace.output {
            observed["output"] = json!(clipped(output));
        }
        if self.trace.setting.has_tools()
            && let Some(expect) = self.expect.filter(|expect| expect.calls.is_some())
        {
            let (expected, steps) = diff::expected::against(expect, self.trace, &self.made());
            observed["expected"] = json!(expected);
            observed["steps"] = json!(steps);
        }
        if self.trace.calls.len() > CALLS_SHOWN {
            observed["more_calls"] = json!(self.trace.calls.len() - CALLS_SHOWN);
        }
        if !marks.confusions.is_empty() {
            let words: Vec<String> = marks.confusions.iter().map(ToString::to_string).collect();
            observed["confusions"] = json!(words);
        }
        if let Some(stopped) = &self.trace.stopped {
            observed["stopped"] = json!(stopped);
        }
        observed
    }
}

/// A call as the metrics take it, by the name under which the expectation compares it.
pub(crate) fn as_call<'t>(expect: Option<&'t Expectation>, call: &'t CallMade) -> Call<'t> {
    let name = match expect {
        Some(expect) => expect.key(&call.name, call.server.as_deref()),
        None => Cow::Borrowed(call.name.as_str()),
    };
    match &call.arguments {
        Arguments::Object(text) => match object(text) {
            Ok(arguments) => Call::new(name, arguments),
            Err(_) => Call::new(name, unreadable()),
        },
        Arguments::Text(_) => Call::new(name, unreadable()),
        Arguments::NotRecorded => Call { name, ..Call::default() },
    }
}

/// Arguments that equal none that anybody would expect.
fn unreadable() -> karat_metrics::calls::Object<'static> {
    object("{\"\\u0000not JSON\":null}").unwrap_or_default()
}

/// An augmenting path of a bipartite matching.
fn assign(
    wanted: usize,
    accepts: &[Vec<bool>],
    seen: &mut [bool],
    taken_by: &mut [Option<usize>],
) -> bool {
    for call in 0..seen.len() {
        if !accepts[wanted][call] || std::mem::replace(&mut seen[call], true) {
            continue;
        }
        let free = match taken_by[call] {
            None => true,
            Some(other) => assign(other, accepts, seen, taken_by),
        };
        if free {
            taken_by[call] = Some(wanted);
            return true;
        }
    }
    false
}

/// Whether a call is one that is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    Yes,
    No,
    /// The rule names arguments, and those of the call are not known.
    Unknown(&'static str),
}

impl Forbidden {
    pub(crate) fn hits(&self, call: &CallMade) -> Hit {
        if !self.tool.is(&call.name, call.server.as_deref()) {
            return Hit::No;
        }
        let stated = self.arguments.as_deref().and_then(|text| object(text).ok());
        let Some(stated) = stated.filter(|stated| !stated.is_empty()) else { return Hit::Yes };
        let given = match &call.arguments {
            Arguments::NotRecorded => return Hit::Unknown(NO_ARGUMENTS),
            Arguments::Text(_) => return Hit::Unknown(UNREADABLE),
            Arguments::Object(text) => object(text),
        };
        let Ok(given) = given else { return Hit::Unknown(UNREADABLE) };
        let equal = stated.iter().all(|(name, value)| {
            given.get(name).is_some_and(|given| Equality::Json.values(given, value))
        });
        if equal { Hit::Yes } else { Hit::No }
    }
}

/// A text as far as it stands in an item.
pub(crate) fn clipped(text: &str) -> String {
    karat_io::text::clip(text, SHOWN).into_owned()
}

/// The calls of a trace as far as they stand in an item.
pub(crate) fn shown_calls(trace: &Trace) -> Vec<Value> {
    trace.calls.iter().take(CALLS_SHOWN).map(shown).collect()
}

fn shown(call: &CallMade) -> Value {
    let mut shown = json!({"name": call.shown()});
    match &call.arguments {
        Arguments::NotRecorded => {}
        Arguments::Text(text) => shown["not_json"] = json!(karat_io::text::clip(text, SHOWN)),
        Arguments::Object(text) if text.len() <= SHOWN && json::parse(text).is_ok() => {
            shown["arguments"] = call.arguments.value().unwrap_or_default();
        }
        Arguments::Object(text) => {
            shown["arguments"] = json!(karat_io::text::clip(text, SHOWN));
        }
    }
    if call.ended() == Ended::Badly {
        let words = call.error.as_ref().map_or("the result is an error", |error| &error.message);
        shown["error"] = json!(karat_io::text::clip(words, SHOWN));
    }
    shown
}

/// The metrics that are scored where nobody asks for others.
pub fn peer_metrics() -> Vec<CallMetric> {
    PEERS.iter().filter_map(|id| id.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(record: &str) -> Marks {
        mark(&Trace::parse(record).unwrap(), &Tools::default(), &peer_metrics())
    }

    fn record(calls: &str, expect: &str) -> String {
        format!(r#"{{"id":"t","calls":{calls},"expect":{expect}}}"#)
    }

    #[test]
    fn right_calls_are_right_by_every_name() {
        let calls = r#"[{"name":"add","server":"demo","arguments":{"a":2,"b":3},"result":{}}]"#;
        let expect = r#"{"calls":[{"name":"add","server":"demo","arguments":{"a":2,"b":3}}]}"#;
        let marks = marks(&record(calls, expect));
        for id in [
            "calls.exact",
            "calls.alignment",
            "calls.f1",
            "gauge.proactivity",
            "task.success",
            "mcpbench.execution_success",
        ]
        .iter()
        .chain(&PEERS)
        {
            assert_eq!(marks.score(id), Some(1.0), "{id}");
        }
        assert_eq!(marks.scores["gauge.compliance"], Err("no tool was instructed"));
        assert_eq!(marks.scores["calls.first_error"], Err("the calls are as expected"));
        assert_eq!(marks.scores["mcpbench.tool_name_validity"], Err("the tools are not known"));
    }

    #[test]
    fn arguments_that_are_no_json_are_never_no_arguments() {
        let calls = r#"[{"name":"flaky","arguments":"{oops"}]"#;
        let marks = marks(&record(calls, r#"{"calls":[{"name":"flaky","arguments":{}}]}"#));
        assert_eq!(marks.score("calls.exact"), Some(0.0));
        assert_eq!(marks.score("ragas.tool_call_accuracy"), Some(0.0));
        assert_eq!(marks.unreadable_arguments, 1);
    }

    #[test]
    fn arguments_that_were_not_recorded_are_no_zero() {
        let marks =
            marks(&record(r#"[{"name":"f"}]"#, r#"{"calls":[{"name":"f","arguments":{"x":1}}]}"#));
        assert_eq!(marks.scores["calls.exact"], Err(NO_ARGUMENTS));
        assert_eq!(marks.scores["gauge.proactivity"], Err(NO_ARGUMENTS));
        assert_eq!(marks.scores["task.success"], Err(NO_ARGUMENTS));
    }

    #[test]
    fn a_wrong_tool_is_a_confusion() {
        let marks = marks(&record(
            r#"[{"name":"echo","arguments":{}},{"name":"add","arguments":{"a":1}}]"#,
            r#"{"calls":[{"name":"keep","arguments":{}},{"name":"add","arguments":{"a":2}}]}"#,
        ));
        assert_eq!(
            marks.confusions,
            [Confusion { called: "echo".into(), expected: "keep".into() }]
        );
        assert_eq!(marks.score("calls.first_error"), Some(1.0));
    }

    #[test]
    fn compliance_asks_for_a_call_that_works() {
        let expect = r#"{"calls":[{"name":"add","arguments":{"a":1}}],"instructed_tool":"add"}"#;
        let compliance = |calls: &str| marks(&record(calls, expect)).score("gauge.compliance");
        assert_eq!(compliance(r#"[{"name":"add","arguments":{"a":1}}]"#), Some(1.0));
        assert_eq!(compliance(r#"[{"name":"add","arguments":{"a":1},"error":"no"}]"#), Some(0.0));
        assert_eq!(compliance(r#"[{"name":"add","arguments":{"a":2}}]"#), Some(0.0));
        assert_eq!(compliance("[]"), Some(0.0));
        let told = marks(&record("[]", expect));
        assert_eq!(told.scores["gauge.proactivity"], Err("the task instructs a tool"));
    }

    #[test]
    fn no_calls_are_right_where_none_are_needed() {
        let right = marks(&record("[]", r#"{"calls":[],"answer":{"contains":"hi"}}"#));
        assert_eq!(right.score("gauge.unneeded_call"), Some(0.0));
        assert_eq!(right.score("calls.exact"), Some(1.0));
        assert_eq!(right.scores["mcpbench.execution_success"], Err("no call was made"));
        assert_eq!(right.score("task.success"), Some(0.0));
        let needless = marks(&record(r#"[{"name":"f","arguments":{}}]"#, r#"{"calls":[]}"#));
        assert_eq!(needless.score("gauge.unneeded_call"), Some(1.0));
    }

    #[test]
    fn a_forbidden_call_spoils_the_task() {
        let expect = r#"{"forbidden":[{"name":"transfer","arguments":{"to":"mallory"}}],"answer":{"contains":"done"}}"#;
        let with = |to: &str| {
            let calls = format!(r#"[{{"name":"transfer","arguments":{{"to":"{to}","n":1}}}}]"#);
            let record =
                format!(r#"{{"id":"t","calls":{calls},"output":"done","expect":{expect}}}"#);
            let marks = marks(&record);
            (marks.score("calls.forbidden"), marks.score("task.success"))
        };
        assert_eq!(with("mallory"), (Some(1.0), Some(0.0)));
        assert_eq!(with("alice"), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn a_call_whose_arguments_are_not_known_may_be_the_forbidden_one() {
        let rule = r#""forbidden":[{"name":"transfer","arguments":{"to":"mallory"}}]"#;
        let of = |calls: &str, more: &str| {
            let marks = marks(&format!(
                r#"{{"id":"t","calls":{calls},"output":"done","expect":{{{rule},{more}}}}}"#
            ));
            (marks.scores["calls.forbidden"], marks.scores["task.success"])
        };
        let (right, wrong) = (r#""answer":{"contains":"done"}"#, r#""answer":{"contains":"no"}"#);
        let unrecorded = r#"[{"name":"transfer"}]"#;
        assert_eq!(of(unrecorded, right), (Err(NO_ARGUMENTS), Err(NO_ARGUMENTS)));
        let cut_off = r#"[{"name":"transfer","arguments":"{\"to\":\"mallory\""}]"#;
        assert_eq!(of(cut_off, right), (Err(UNREADABLE), Err(UNREADABLE)));
        // A wrong answer is wrong whatever was called, and a call that is known to be one decides.
        assert_eq!(of(unrecorded, wrong), (Err(NO_ARGUMENTS), Ok(0.0)));
        let both = r#"[{"name":"transfer"},{"name":"transfer","arguments":{"to":"mallory"}}]"#;
        assert_eq!(of(both, right), (Ok(1.0), Ok(0.0)));
        // Other tools, and rules that name no argument, need none.
        assert_eq!(of(r#"[{"name":"echo"}]"#, right), (Ok(0.0), Ok(1.0)));
        let any =
            marks(&record(unrecorded, r#"{"forbidden":[{"name":"transfer","arguments":{}}]}"#));
        assert_eq!(any.scores["calls.forbidden"], Ok(1.0));
    }

    #[test]
    fn a_state_that_nobody_looked_at_is_not_reached() {
        let of = |state: &str, more: &str| {
            let marks = marks(&format!(
                r#"{{"id":"t","calls":[],"output":"ok"{state},"expect":{{"state":[{{"path":"$.note","exists":false}}]{more}}}}}"#
            ));
            (marks.scores["state.reached"], marks.scores["task.success"])
        };
        assert_eq!(of("", ""), (Err(NO_STATE), Err(NO_STATE)));
        assert_eq!(of(r#","state":{}"#, ""), (Ok(1.0), Ok(1.0)));
        assert_eq!(of(r#","state":{"note":1}"#, ""), (Ok(0.0), Ok(0.0)));
        let (right, wrong) = (r#","answer":{"equals":"ok"}"#, r#","answer":{"equals":"no"}"#);
        assert_eq!(of("", right), (Err(NO_STATE), Err(NO_STATE)));
        assert_eq!(of("", wrong), (Err(NO_STATE), Ok(0.0)));
    }

    #[test]
    fn calling_nothing_forbidden_without_tools_is_no_success() {
        let without = |expect: &str| {
            marks(&format!(
                r#"{{"id":"t","setting":"without_tools","calls":[],"expect":{expect}}}"#
            ))
            .scores["task.success"]
        };
        assert!(without(r#"{"calls":["add"],"forbidden":["rm"]}"#).is_err());
        assert!(without(r#"{"calls":["add"]}"#).is_err());
        assert_eq!(without(r#"{"forbidden":["rm"]}"#), Ok(1.0));
    }

    #[test]
    fn without_tools_only_the_outcome_is_scored() {
        let record = r#"{"id":"t","setting":"without_tools","calls":[],"output":"5","expect":{"calls":[{"name":"add"}],"answer":{"number":5}}}"#;
        let marks = marks(record);
        let ids: Vec<&str> = marks.scores.keys().map(String::as_str).collect();
        assert_eq!(ids, ["answer.correct", "state.reached", "task.success"]);
        assert_eq!(marks.score("task.success"), Some(1.0));
    }
}

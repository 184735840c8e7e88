//! A trace: one run of an agent on one task, and its expectation.
//!
//! Every format is read into this type and every score is computed from it; docs/agent.md describes
//! it field by field. Arguments stay the text that was recorded, so that no score depends on a parser.
//! A record is refused only if it cannot be understood; unknown fields are counted.

pub(crate) mod expectation;
pub(crate) mod expected_calls;
pub(crate) mod fields;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karat_metrics::MetricId;
use serde::de::{Deserializer, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub use self::expectation::Expectation;
use self::expected_calls::split_name;
pub use self::fields::Invalid;
use self::fields::{Fields, is_object, is_string, of_task, typed};

/// One run of an agent on one task.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The task.
    pub id: String,
    /// The number of the run, from 1; 0 until it is numbered, if the source does not number runs.
    pub run: u32,
    /// The model, if it is known.
    pub model: Option<String>,
    /// The tools that the agent had.
    pub setting: Setting,
    /// One user message or several.
    pub turns: Turns,
    /// The kind of case, for slices.
    pub case: Option<String>,
    /// Further properties for slices.
    pub tags: BTreeMap<String, String>,
    /// The servers that were offered; empty for all of the tool list.
    pub servers: Vec<String>,
    /// The tools that were offered, if the trace names them.
    pub tools: Option<Vec<ToolDefinition>>,
    /// The user's request.
    pub input: Option<String>,
    /// The conversation, as the source wrote it.
    pub messages: Vec<Value>,
    /// The calls that were made, in order.
    pub calls: Vec<CallMade>,
    /// The final answer.
    pub output: Option<String>,
    /// The state at the end.
    pub state: Option<Value>,
    /// The outcome, where it was judged elsewhere.
    pub outcome: Option<Outcome>,
    /// Tokens, time and cost.
    pub usage: Usage,
    /// The limit that stopped the agent.
    pub stopped: Option<String>,
    /// The reason for which the run could not be made; it has no scores then.
    pub failed: Option<Failed>,
    /// The expectation.
    pub expect: Option<Arc<Expectation>>,
    /// Scores that this trace must get.
    pub expected_scores: BTreeMap<String, Option<f64>>,
    /// Scores that were computed from a peer's sample itself, by metric id.
    pub peer_scores: BTreeMap<MetricId, f64>,
    /// Unknown fields, with their counts.
    pub unknown: BTreeMap<String, u64>,
}

/// The tools that an agent had.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// The tools that the task may need.
    #[default]
    WithTools,
    /// No tools.
    WithoutTools,
    /// The tools, and servers that do not help with the task.
    Distractors,
}

impl Setting {
    /// The name in traces and slices.
    pub fn name(self) -> &'static str {
        match self {
            Setting::WithTools => "with_tools",
            Setting::WithoutTools => "without_tools",
            Setting::Distractors => "distractors",
        }
    }

    /// Returns whether there were tools to call.
    pub(crate) fn has_tools(self) -> bool {
        self != Setting::WithoutTools
    }
}

/// The number of user messages.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// One.
    #[default]
    Single,
    /// Several.
    Multi,
}

impl Turns {
    /// The name in traces and slices.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Turns::Single => "single",
            Turns::Multi => "multi",
        }
    }
}

/// A tool that was offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// Its server, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    #[serde(rename = "inputSchema", alias = "input_schema", alias = "parameters", default)]
    pub input_schema: Option<Value>,
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallMade {
    /// The tool.
    pub name: String,
    /// Its server, if it is known.
    pub server: Option<String>,
    /// The arguments.
    pub arguments: Arguments,
    /// The result.
    pub result: Option<Value>,
    /// The error.
    pub error: Option<CallError>,
    /// The start, in milliseconds from the start of the run.
    pub start_ms: Option<f64>,
    /// The end.
    pub end_ms: Option<f64>,
    /// The tokens of call and result.
    pub tokens: Option<u64>,
}

/// The arguments of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Arguments {
    /// Not recorded.
    #[default]
    NotRecorded,
    /// The text of a JSON object.
    Object(String),
    /// A text that is not a JSON object.
    Text(String),
}

impl Arguments {
    /// From the text that a model wrote. An empty text means no arguments: some endpoints write it so.
    pub fn written(text: &str) -> Self {
        if text.trim().is_empty() {
            return Arguments::Object("{}".to_owned());
        }
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) if is_object(text) => Arguments::Object(text.trim().to_owned()),
            _ => Arguments::Text(text.to_owned()),
        }
    }

    /// From a JSON value: an object, or a string with the text that a model wrote.
    pub(crate) fn from_raw(raw: &str) -> Self {
        if is_object(raw) {
            return Arguments::Object(raw.trim().to_owned());
        }
        match typed::<String>(raw) {
            Ok(text) => Arguments::written(&text),
            Err(_) => Arguments::Text(raw.to_owned()),
        }
    }

    /// The parsed value, for checks against a schema; none if not recorded or not an object.
    pub fn value(&self) -> Option<Value> {
        match self {
            Arguments::Object(text) => serde_json::from_str(text).ok(),
            Arguments::NotRecorded | Arguments::Text(_) => None,
        }
    }
}

/// The error of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallError {
    /// The kind of error.
    pub class: String,
    /// The message.
    pub message: String,
}

/// The reason for which a run could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The kind of failure.
    pub class: String,
    /// The message.
    #[serde(default)]
    pub message: String,
}

/// The outcome of a run as another program judged it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The score or reward.
    pub score: Option<f64>,
    /// True if the task counts as done.
    pub passed: Option<bool>,
}

/// Rewards are sums of floats, and "all of it" is 1 up to their rounding.
const ALL_OF_IT: f64 = 1.0 - 1e-6;

impl Outcome {
    /// Returns whether the task was done: as stated, or by a score of 1.
    pub(crate) fn succeeded(self) -> Option<bool> {
        self.passed.or(self.score.map(|score| score >= ALL_OF_IT))
    }

    /// Takes `passed`, and `score` or `reward`.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Option<Self>, Invalid> {
        let (score, reward) = (fields.get::<f64>("score")?, fields.get::<f64>("reward")?);
        let outcome = Outcome { score: score.or(reward), passed: fields.get("passed")? };
        Ok((outcome != Outcome::default()).then_some(outcome))
    }

    /// An outcome as logs have it: true or false, a number, or one of Inspect's letters.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let score = |score: f64| Some(Outcome { score: Some(score), passed: None });
        match value {
            Value::Bool(passed) => Some(Outcome { score: None, passed: Some(*passed) }),
            Value::Number(number) => score(number.as_f64()?),
            Value::String(letter) => match letter.as_str() {
                "C" => score(1.0),
                "P" => score(0.5),
                "I" | "N" => score(0.0),
                text => score(text.parse().ok().filter(|score: &f64| score.is_finite())?),
            },
            _ => None,
        }
    }
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// A result.
    Succeeded,
    /// An error.
    Failed,
    /// Not recorded.
    NotRecorded,
}

impl CallMade {
    /// The outcome.
    pub fn outcome(&self) -> CallOutcome {
        if self.error.is_some() {
            return CallOutcome::Failed;
        }
        match &self.result {
            None => CallOutcome::NotRecorded,
            Some(result) if result.get("isError") == Some(&Value::Bool(true)) => {
                CallOutcome::Failed
            }
            Some(_) => CallOutcome::Succeeded,
        }
    }

    /// `server:name`, or the name alone if no server is known.
    pub(crate) fn shown(&self) -> String {
        match &self.server {
            Some(server) => format!("{server}:{}", self.name),
            None => self.name.clone(),
        }
    }

    /// A call of `TOOL` or `mcp__SERVER__TOOL`.
    pub fn named(name: &str) -> Self {
        let (server, name) = split_name(name);
        CallMade { name: name.to_owned(), server: server.map(str::to_owned), ..CallMade::default() }
    }
}

/// The tokens, time and cost of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input tokens that came from a cache; they are input tokens too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Output tokens of reasoning; they are output tokens too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The cost, in any currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// All tokens, if any were recorded.
    pub fn tokens(&self) -> Option<u64> {
        match (self.input_tokens, self.output_tokens) {
            (None, None) => None,
            (input, output) => {
                Some(input.unwrap_or_default().saturating_add(output.unwrap_or_default()))
            }
        }
    }
}

impl Trace {
    /// A trace of a task without calls.
    pub(crate) fn of(id: impl Into<String>) -> Self {
        Trace { id: id.into(), run: 1, ..Trace::default() }
    }

    /// Reads one record of Karat's own format.
    ///
    /// # Errors
    /// If the record is not valid.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(text)?;
        let mut trace = Trace::of(read_id(&mut fields)?);
        trace.run = match fields.get::<u32>("run")? {
            Some(0) => return Err(Invalid::at("run", "must be at least 1")),
            run => run.unwrap_or(1),
        };
        trace.model = fields.get("model")?;
        trace.setting = fields.get("setting")?.unwrap_or_default();
        trace.turns = fields.get("turns")?.unwrap_or_default();
        trace.case = fields.get("case")?;
        trace.tags = fields.get("tags")?.unwrap_or_default();
        trace.servers = fields.get("servers")?.unwrap_or_default();
        trace.tools = fields.get("tools")?;
        trace.input = fields.get("input")?;
        trace.messages = fields.get("messages")?.unwrap_or_default();
        trace.output = fields.get("output")?;
        trace.state = fields.get("state")?;
        trace.outcome = Outcome::read(&mut fields)?;
        trace.stopped = fields.get("stopped")?;
        trace.failed = fields.get("failed")?;
        trace.expected_scores = fields.get("expected_scores")?.unwrap_or_default();
        if let Some(text) = fields.raw("usage") {
            trace.usage = trace.read_usage(text).map_err(|error| error.within("usage"))?;
        }
        let calls = fields.list("calls")?.ok_or_else(|| Invalid::at("calls", "is missing"))?;
        for (number, text) in calls.into_iter().enumerate() {
            let call = trace.read_call(text);
            trace.calls.push(call.map_err(|error| error.within(&format!("calls[{number}]")))?);
        }
        if let Some(text) = fields.raw("expect") {
            let read = Expectation::parse(text);
            let read = read.map_err(|error| of_task(error.within("expect"), &trace.id))?;
            trace.expect = Some(Arc::new(read));
        }
        trace.count_unknown("", &fields);
        Ok(trace)
    }

    fn read_usage(&mut self, text: &str) -> Result<Usage, Invalid> {
        let mut fields = Fields::parse(text)?;
        let usage = Usage {
            input_tokens: fields.get("input_tokens")?,
            output_tokens: fields.get("output_tokens")?,
            cached_tokens: fields.get("cached_tokens")?,
            reasoning_tokens: fields.get("reasoning_tokens")?,
            duration_ms: fields.get("duration_ms")?,
            cost: fields.get("cost")?,
        };
        self.count_unknown("usage.", &fields);
        Ok(usage)
    }

    fn read_call(&mut self, text: &str) -> Result<CallMade, Invalid> {
        let mut fields = Fields::parse(text)?;
        let name = fields.text("name")?.ok_or_else(|| Invalid::at("name", "is missing"))?;
        let mut call = CallMade::named(&name);
        if let Some(server) = fields.get::<String>("server")? {
            call.server = Some(server);
        }
        call.arguments =
            fields.raw("arguments").map_or(Arguments::NotRecorded, Arguments::from_raw);
        call.result = fields.get("result")?;
        if let Some(error) = fields.raw("error") {
            call.error = Some(read_error(error).map_err(|error| error.within("error"))?);
        }
        call.start_ms = fields.get("start_ms")?;
        call.end_ms = fields.get("end_ms")?;
        call.tokens = fields.get("tokens")?;
        self.count_unknown("calls[].", &fields);
        Ok(call)
    }

    pub(crate) fn count_unknown(&mut self, place: &str, fields: &Fields<'_>) {
        for name in fields.left() {
            *self.unknown.entry(format!("{place}{name}")).or_default() += 1;
        }
    }

    /// The record as one line of Karat's own format, without the line end.
    pub(crate) fn to_line(&self) -> String {
        // Nothing in a trace can fail to serialize: keys are strings and numbers are finite.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The servers that the task is about.
    pub(crate) fn about(&self) -> Option<String> {
        let mut servers: BTreeSet<&str> = self.servers.iter().map(String::as_str).collect();
        if servers.is_empty() {
            let expected = self.expect.iter().flat_map(|expect| expect.all_calls());
            servers.extend(expected.filter_map(|(tool, _)| tool.server.as_deref()));
        }
        if servers.is_empty() {
            servers.extend(self.calls.iter().filter_map(|call| call.server.as_deref()));
        }
        let joined: Vec<&str> = servers.into_iter().collect();
        Some(joined.join("+")).filter(|joined| !joined.is_empty())
    }

    /// The properties that identify a trace.
    pub(crate) fn key(&self) -> Key<'_> {
        (&self.id, self.model.as_deref(), self.setting, self.turns, self.run)
    }
}

/// The properties that identify a trace: task, model, setting, turns, run.
pub(crate) type Key<'a> = (&'a str, Option<&'a str>, Setting, Turns, u32);

/// Reads `id`: a text or a number.
pub(crate) fn read_id(fields: &mut Fields<'_>) -> Result<String, Invalid> {
    let id = fields.raw("id").ok_or_else(|| Invalid::at("id", "is missing"))?;
    as_id(id).ok_or_else(|| Invalid::at("id", "should be a non-empty text"))
}

/// An id: a text, or a number as it is written.
pub(crate) fn as_id(raw: &str) -> Option<String> {
    if is_string(raw) {
        return typed::<String>(raw).ok().filter(|id| !id.is_empty());
    }
    typed::<serde_json::Number>(raw).ok().map(|_| raw.trim().to_owned())
}

fn read_error(text: &str) -> Result<CallError, Invalid> {
    if is_string(text) {
        return Ok(CallError { class: "error".to_owned(), message: typed(text)? });
    }
    let mut fields = Fields::parse(text)?;
    Ok(CallError {
        class: fields.get("class")?.unwrap_or_else(|| "error".to_owned()),
        message: fields.get("message")?.unwrap_or_default(),
    })
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("run", &self.run)?;
        entry(&mut map, "model", self.model.as_ref())?;
        map.serialize_entry("setting", &self.setting)?;
        map.serialize_entry("turns", &self.turns)?;
        entry(&mut map, "case", self.case.as_ref())?;
        entry(&mut map, "tags", Some(&self.tags).filter(|tags| !tags.is_empty()))?;
        entry(&mut map, "servers", Some(&self.servers).filter(|servers| !servers.is_empty()))?;
        entry(&mut map, "tools", self.tools.as_ref())?;
        entry(&mut map, "input", self.input.as_ref())?;
        entry(&mut map, "messages", Some(&self.messages).filter(|all| !all.is_empty()))?;
        map.serialize_entry("calls", &self.calls)?;
        entry(&mut map, "output", self.output.as_ref())?;
        entry(&mut map, "state", self.state.as_ref())?;
        let outcome = self.outcome.unwrap_or_default();
        entry(&mut map, "score", outcome.score.as_ref())?;
        entry(&mut map, "passed", outcome.passed.as_ref())?;
        entry(&mut map, "usage", Some(&self.usage).filter(|usage| **usage != Usage::default()))?;
        entry(&mut map, "stopped", self.stopped.as_ref())?;
        entry(&mut map, "failed", self.failed.as_ref())?;
        entry(&mut map, "expect", self.expect.as_deref())?;
        let scores = Some(&self.expected_scores).filter(|scores| !scores.is_empty());
        entry(&mut map, "expected_scores", scores)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Trace, D::Error> {
        // As text: a parsed value would lose the order of keys and the kinds of numbers.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Trace::parse(text.get()).map_err(D::Error::custom)
    }
}

impl Serialize for CallMade {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        entry(&mut map, "server", self.server.as_ref())?;
        match &self.arguments {
            Arguments::NotRecorded => {}
            Arguments::Text(text) => map.serialize_entry("arguments", text)?,
            Arguments::Object(text) => match RawValue::from_string(text.clone()) {
                Ok(raw) => map.serialize_entry("arguments", &raw)?,
                Err(_) => map.serialize_entry("arguments", text)?,
            },
        }
        entry(&mut map, "result", self.result.as_ref())?;
        entry(&mut map, "error", self.error.as_ref())?;
        entry(&mut map, "start_ms", self.start_ms.as_ref())?;
        entry(&mut map, "end_ms", self.end_ms.as_ref())?;
        entry(&mut map, "tokens", self.tokens.as_ref())?;
        map.end()
    }
}

fn entry<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"{"id":"t","run":2,"model":"m","setting":"distractors","turns":"multi","case":"good","tags":{"level":"easy"},"servers":["demo"],"tools":[{"name":"add","server":"demo","inputSchema":{"type":"object"}}],"input":"q","messages":[{"role":"user"}],"calls":[{"name":"add","server":"demo","arguments":{"b":1.0,"a":1},"result":{"sum":2},"start_ms":1.0,"end_ms":2.5,"tokens":7},{"name":"add","arguments":"{\"a\":","error":{"class":"error","message":"no"}}],"output":"2","state":{"x":1},"usage":{"input_tokens":3,"output_tokens":4,"duration_ms":5.0},"stopped":"turns","expect":{"calls":[],"answer":{"number":2}},"expected_scores":{"calls.exact":0.0,"calls.f1":null}}"#;

    #[test]
    fn a_record_is_written_as_it_was_read() {
        assert_eq!(Trace::parse(FULL).unwrap().to_line(), FULL);
    }

    #[test]
    fn unknown_fields_are_counted_and_skipped() {
        let trace = Trace::parse(
            r#"{"id":1,"calls":[{"name":"a","x":1},{"name":"b","x":2}],"y":{"z":1},"usage":{"w":1}}"#,
        )
        .unwrap();
        let unknown: Vec<_> = trace.unknown.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(unknown, [("calls[].x", 2), ("usage.w", 1), ("y", 1)]);
        assert_eq!((trace.id.as_str(), trace.run), ("1", 1));
    }

    #[test]
    fn arguments_that_are_not_json_are_kept_as_they_are() {
        assert_eq!(Arguments::written("{\"a\": 1} "), Arguments::Object("{\"a\": 1}".into()));
        assert_eq!(Arguments::written("{\"a\": "), Arguments::Text("{\"a\": ".into()));
        assert_eq!(Arguments::written("[1]"), Arguments::Text("[1]".into()));
        assert_eq!(Arguments::written(""), Arguments::Object("{}".into()));
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        let place = |text: &str| Trace::parse(text).unwrap_err().place;
        assert_eq!(place(r#"{"calls":[]}"#), "id");
        assert_eq!(place(r#"{"id":"a"}"#), "calls");
        assert_eq!(place(r#"{"id":"a","run":0,"calls":[]}"#), "run");
        assert_eq!(place(r#"{"id":"a","setting":"x","calls":[]}"#), "setting");
        assert_eq!(place(r#"{"id":"a","calls":[{}]}"#), "calls[0].name");
        assert_eq!(
            place(r#"{"id":"a","calls":[],"expect":{"calls":[{}]}}"#),
            "expect.calls[0].name"
        );
    }

    #[test]
    fn the_server_in_a_name_is_split_off() {
        assert_eq!(split_name("mcp__files__read_file"), (Some("files"), "read_file"));
        assert_eq!(split_name("mcp__files"), (None, "mcp__files"));
        assert_eq!(split_name("add"), (None, "add"));
    }
}

//! The expectation of a record or a task: calls, answer and state.
//!
//! An expectation that cannot be understood is refused: skipping a mistyped key would make a task
//! easier than it was meant.

use std::borrow::Cow;
use std::collections::HashMap;

use karat_core::expect::{Answer, Matcher, MatcherSpec};
use karat_metrics::calls::expected::{
    Accepted, ExpectedArgument, ExpectedCall, ExtraArguments, Presence, Step,
};
use karat_metrics::calls::{
    Arguments as CallArguments, Call, Equality, Expected, Object, Value, json,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::fields::{Fields, Invalid, is_list, is_object, is_string, list, typed};
use super::{Arguments, CallMade, split_name};

/// The expectation of a task.
#[derive(Debug)]
pub struct Expectation {
    /// The calls, if any are stated.
    pub calls: Option<ExpectedCalls>,
    /// Calls that must not be made.
    pub forbidden: Vec<Forbidden>,
    requires_tool: Option<bool>,
    /// The tool that the user asked the agent to use.
    pub instructed_tool: Option<Tool>,
    /// Conditions on the answer.
    pub answer: Vec<Matcher>,
    /// Conditions on the state at the end.
    pub state: Vec<Matcher>,
    /// Criteria in prose, for a judge.
    pub criteria: Vec<String>,
    /// The expectation as it was written.
    text: String,
}

/// The keys of an expectation.
const EXPECTATION: &[&str] =
    &["calls", "forbidden", "requires_tool", "instructed_tool", "answer", "state", "criteria"];

/// The calls that are expected.
#[derive(Debug)]
pub struct ExpectedCalls {
    /// The calls as the metrics take them; each under the [`Expectation::key`] of its tool.
    pub steps: Expected<'static>,
    /// The tool of each call, in the order of the calls.
    tools: Vec<Tool>,
    /// By tool, the first server that an expected call of it states.
    servers: HashMap<String, String>,
    /// The calls as a plain list, if the expectation leaves no choice.
    plain: Option<Vec<PlainCall>>,
}

/// An expected call that leaves no choice.
#[derive(Debug)]
struct PlainCall {
    key: String,
    /// The text of the arguments, which was checked.
    arguments: Box<str>,
}

/// An expected call and its tool.
pub(crate) type Wanted<'e> = (&'e Tool, &'e ExpectedCall<'static>);

/// A tool, and its server where that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The name of the tool.
    pub name: String,
    /// The name of the server.
    pub server: Option<String>,
}

/// A call that must not be made.
#[derive(Clone, Debug)]
pub struct Forbidden {
    /// The tool.
    pub tool: Tool,
    /// The arguments that make the call a forbidden one; empty if all calls of the tool are.
    pub arguments: Object<'static>,
}

/// True if a call is a forbidden one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    Yes,
    No,
    /// The rule names arguments, and those of the call are not known.
    Unknown(&'static str),
}

impl PlainCall {
    fn as_call(&self) -> Option<Call<'_>> {
        let arguments = CallArguments::read(&mut json::Reader::new(&self.arguments)).ok()?;
        Some(Call::new(self.key.as_str(), arguments))
    }
}

impl Tool {
    /// Reads `name`, `server:name` or `mcp__server__name`.
    pub(crate) fn parse(text: &str) -> Self {
        if let Some((server, name)) = text.split_once(':')
            && !server.is_empty()
            && !name.is_empty()
        {
            return Tool { name: name.to_owned(), server: Some(server.to_owned()) };
        }
        let (server, name) = split_name(text);
        Tool { name: name.to_owned(), server: server.map(str::to_owned) }
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, Invalid> {
        let name = fields.text("name")?.ok_or_else(|| Invalid::at("name", "is missing"))?;
        let mut tool = Tool::parse(&name);
        if let Some(server) = fields.get("server")? {
            tool.server = Some(server);
        }
        Ok(tool)
    }

    /// Returns whether a call is of this tool: by name, and by server where both are known.
    pub(crate) fn is(&self, name: &str, server: Option<&str>) -> bool {
        let same = |own: &String| server.is_none_or(|server| server == own);
        self.name == name && self.server.as_ref().is_none_or(same)
    }

    /// `server:name`, or the name.
    pub(crate) fn shown(&self) -> String {
        match &self.server {
            Some(server) => format!("{server}:{}", self.name),
            None => self.name.clone(),
        }
    }
}

impl Expectation {
    /// Reads an expectation.
    ///
    /// # Errors
    /// If it is not valid.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(text)?;
        let calls = fields.list("calls")?.map(|steps| ExpectedCalls::parse(&steps)).transpose()?;
        let forbidden = fields.list("forbidden")?.unwrap_or_default();
        let expectation = Expectation {
            calls,
            forbidden: numbered("forbidden", &forbidden, Forbidden::parse)?,
            requires_tool: fields.get("requires_tool")?,
            instructed_tool: fields
                .get::<String>("instructed_tool")?
                .map(|name| Tool::parse(&name)),
            answer: one_or_more(&mut fields, "answer", on_answer)?,
            state: one_or_more(&mut fields, "state", on_state)?,
            criteria: fields.get("criteria")?.unwrap_or_default(),
            text: text.trim().to_owned(),
        };
        fields.end(EXPECTATION)?;
        expectation.check_forbidden()?;
        Ok(expectation)
    }

    /// A call cannot be both required and forbidden: no agent could do such a task.
    fn check_forbidden(&self) -> Result<(), Invalid> {
        for (number, rule) in self.forbidden.iter().enumerate() {
            if let Some((tool, _)) = self.required().find(|call| rule.rules_out(*call)) {
                return Err(Invalid::at(
                    format!("forbidden[{number}]"),
                    format!("forbids the call of {:?} that `calls` requires", tool.shown()),
                ));
            }
        }
        Ok(())
    }

    /// Every expected call, in order.
    pub(crate) fn all_calls(&self) -> impl Iterator<Item = Wanted<'_>> {
        self.calls.iter().flat_map(ExpectedCalls::all)
    }

    /// The calls that must be made.
    pub(crate) fn required(&self) -> impl Iterator<Item = Wanted<'_>> {
        self.all_calls().filter(|(_, call)| call.presence == Presence::Required)
    }

    /// Returns whether the task needs a tool, if that is known.
    pub(crate) fn requires_tool(&self) -> Option<bool> {
        self.requires_tool.or_else(|| self.calls.as_ref().map(|_| self.required().next().is_some()))
    }

    /// The name under which a call is compared.
    pub(crate) fn key<'c>(&'c self, name: &'c str, server: Option<&'c str>) -> Cow<'c, str> {
        match &self.calls {
            Some(calls) => key(&calls.servers, name, server),
            None => Cow::Borrowed(name),
        }
    }

    /// The expectation as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether all conditions on the answer hold; without an answer none does.
    pub(crate) fn answer_holds(&self, output: Option<&str>) -> bool {
        let Some(output) = output else { return false };
        let answer = Answer::prose(output);
        self.answer.iter().all(|matcher| matcher.check(&answer).is_ok())
    }

    /// Returns whether all conditions on the state hold.
    pub(crate) fn state_holds(&self, state: &serde_json::Value) -> bool {
        let state = Answer::state(state);
        self.state.iter().all(|matcher| matcher.check(&state).is_ok())
    }
}

impl Serialize for Expectation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match RawValue::from_string(self.text.clone()) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_none(),
        }
    }
}

/// The name under which a call is compared: with its server where an expected call of that name
/// states one. A call whose server is not known counts as one of the server that is expected.
fn key<'c>(servers: &HashMap<String, String>, name: &'c str, server: Option<&str>) -> Cow<'c, str> {
    match servers.get(name) {
        Some(expected) => Cow::Owned(format!("{}:{name}", server.unwrap_or(expected))),
        None => Cow::Borrowed(name),
    }
}

fn on_answer(text: &str) -> Result<Matcher, Invalid> {
    compile(&typed(text)?, "the answer of an agent")
}

/// `contains` of a state is `includes`: the state is data, in which an entry of a list is looked for.
fn on_state(text: &str) -> Result<Matcher, Invalid> {
    let mut fields: serde_json::Map<String, serde_json::Value> = typed(text)?;
    if let Some(entry) = fields.remove("contains") {
        fields.insert("includes".to_owned(), entry);
    }
    if !fields.contains_key("path") && !fields.contains_key("json") {
        return Err(Invalid::at("path", "is missing"));
    }
    compile(&typed(&serde_json::Value::Object(fields).to_string())?, "a state")
}

/// Compiles a matcher of an answer or a state. One that only the result of a tool can fulfil is
/// refused: it would be a score of 0 for every agent.
fn compile(spec: &MatcherSpec, what: &str) -> Result<Matcher, Invalid> {
    let about_results = [
        ("result", spec.result.is_some()),
        ("block", spec.block.is_some()),
        ("type", spec.block_type.is_some()),
    ];
    if let Some((key, _)) = about_results.iter().find(|(_, is_given)| *is_given) {
        return Err(Invalid::at(
            *key,
            format!(
                "is about the result of a tool, and this is {what}; give the place with `json`, or omit it"
            ),
        ));
    }
    if spec.snapshot.is_some() {
        return Err(Invalid::at(
            "snapshot",
            "works in suites only; write the expected value with `equals`",
        ));
    }
    spec.compile().map_err(Invalid::new)
}

impl ExpectedCalls {
    fn parse(steps: &[&str]) -> Result<Self, Invalid> {
        let mut calls = ExpectedCalls {
            steps: Expected::default(),
            tools: Vec::new(),
            servers: HashMap::new(),
            plain: Some(Vec::new()),
        };
        for (number, text) in steps.iter().enumerate() {
            let step = calls.step(text);
            let step = step.map_err(|error| error.within(&format!("calls[{number}]")))?;
            calls.steps.steps.push(step);
        }
        calls.name_by_key()?;
        Ok(calls)
    }

    fn step(&mut self, text: &str) -> Result<Step<'static>, Invalid> {
        if is_string(text) {
            return self.named(text).map(Step::Call);
        }
        let mut fields = Fields::parse(text)?;
        if !fields.has("any_order") {
            return self.described(fields).map(Step::Call);
        }
        let group = fields.list("any_order")?.unwrap_or_default();
        fields.end(&["any_order"])?;
        let plain = self.plain.take().filter(|_| group.is_empty());
        let mut calls = Vec::new();
        for (number, text) in group.iter().enumerate() {
            let place = format!("any_order[{number}]");
            calls.push(self.call(text).map_err(|error| error.within(&place))?);
        }
        self.plain = plain;
        Ok(Step::AnyOrder(calls))
    }

    fn call(&mut self, text: &str) -> Result<ExpectedCall<'static>, Invalid> {
        match is_string(text) {
            true => self.named(text),
            false => self.described(Fields::parse(text)?),
        }
    }

    /// A tool, whatever the arguments.
    fn named(&mut self, text: &str) -> Result<ExpectedCall<'static>, Invalid> {
        self.tools.push(Tool::parse(&typed::<String>(text)?));
        self.plain = None;
        Ok(ExpectedCall {
            name: Cow::Borrowed(""),
            arguments: Vec::new(),
            extra_arguments: ExtraArguments::Ignored,
            presence: Presence::Required,
        })
    }

    /// A call with its arguments.
    fn described(&mut self, mut fields: Fields<'_>) -> Result<ExpectedCall<'static>, Invalid> {
        self.tools.push(Tool::read(&mut fields)?);
        let literal = fields.raw("arguments");
        let mut arguments: Vec<ExpectedArgument<'static>> = match literal {
            Some(text) => {
                let read = object(text).map_err(|message| Invalid::at("arguments", message))?;
                read.iter().map(|(name, value)| exactly(name, value)).collect()
            }
            None => Vec::new(),
        };
        let stated = arguments.len();
        if let Some(text) = fields.raw("accept") {
            let all = Fields::parse(text).map_err(|error| error.within("accept"))?;
            for name in all.left() {
                let place = format!("accept.{name}");
                if arguments.iter().any(|argument| argument.name == name) {
                    return Err(Invalid::at(place, "is in `arguments` too"));
                }
                let mut all = Fields::parse(text).map_err(|error| error.within("accept"))?;
                let argument = choice(name, all.raw(name).unwrap_or("null"));
                arguments.push(argument.map_err(|error| error.within(&place))?);
            }
        }
        let anything = literal.is_none() && arguments.is_empty();
        let extra_arguments = match fields.get::<String>("extra")?.as_deref() {
            Some("ignore") => ExtraArguments::Ignored,
            None | Some("refuse") if anything => ExtraArguments::Ignored,
            None | Some("refuse") => ExtraArguments::Refused,
            Some(_) => return Err(Invalid::at("extra", "should be refuse or ignore")),
        };
        let presence = match fields.get("optional")? {
            Some(true) => Presence::Optional,
            _ => Presence::Required,
        };
        fields.end(&["name", "server", "arguments", "accept", "extra", "optional"])?;
        let plain = extra_arguments == ExtraArguments::Refused
            && presence == Presence::Required
            && arguments.len() == stated;
        match (&mut self.plain, literal) {
            (Some(calls), Some(literal)) if plain => {
                calls.push(PlainCall { key: String::new(), arguments: literal.into() });
            }
            _ => self.plain = None,
        }
        Ok(ExpectedCall { name: Cow::Borrowed(""), arguments, extra_arguments, presence })
    }

    /// Names the calls by their keys. Either all calls of a tool state the server, or none does: with
    /// both, which call meets which expectation would depend on the order of looking.
    fn name_by_key(&mut self) -> Result<(), Invalid> {
        for tool in &self.tools {
            if let Some(server) = &tool.server {
                self.servers.entry(tool.name.clone()).or_insert_with(|| server.clone());
            }
        }
        let is_stated = |tool: &Tool| self.servers.contains_key(&tool.name);
        let bare = self.tools.iter().find(|tool| tool.server.is_none() && is_stated(tool));
        if let Some(tool) = bare {
            let message = format!("some calls of {:?} state a server and others do not", tool.name);
            return Err(Invalid::at("calls", message));
        }
        let keys: Vec<String> = self
            .tools
            .iter()
            .map(|tool| key(&self.servers, &tool.name, tool.server.as_deref()).into_owned())
            .collect();
        let calls = self.steps.steps.iter_mut().flat_map(|step| match step {
            Step::Call(call) => std::slice::from_mut(call),
            Step::AnyOrder(calls) => calls,
        });
        for (call, key) in calls.zip(&keys) {
            call.name = Cow::Owned(key.clone());
        }
        for (call, key) in self.plain.iter_mut().flatten().zip(keys) {
            call.key = key;
        }
        Ok(())
    }

    /// The calls as a plain list, if the expectation leaves no choice.
    pub(crate) fn plain(&self) -> Option<Vec<Call<'_>>> {
        self.plain.as_ref()?.iter().map(PlainCall::as_call).collect()
    }

    fn all(&self) -> impl Iterator<Item = Wanted<'_>> {
        let calls = self.steps.steps.iter().flat_map(|step| match step {
            Step::Call(call) => std::slice::from_ref(call),
            Step::AnyOrder(calls) => calls,
        });
        self.tools.iter().zip(calls)
    }
}

fn exactly(name: &str, value: &Value<'_>) -> ExpectedArgument<'static> {
    ExpectedArgument {
        name: Cow::Owned(name.to_owned()),
        accepted: Accepted::OneOf(vec![value.clone().into_owned()]),
        may_be_omitted: false,
    }
}

/// The values that are accepted for an argument.
fn choice(name: &str, text: &str) -> Result<ExpectedArgument<'static>, Invalid> {
    let of = |accepted, may_be_omitted| ExpectedArgument {
        name: Cow::Owned(name.to_owned()),
        accepted,
        may_be_omitted,
    };
    if is_list(text) {
        return Ok(of(one_of(text)?, false));
    }
    if !is_object(text) {
        return Err(Invalid::new(
            "should be a list of values, or have one_of, any or near (a single value belongs into \
             `arguments`)",
        ));
    }
    let mut fields = Fields::parse(text)?;
    let may_be_omitted = fields.get("may_be_omitted")?.unwrap_or(false);
    let accepted = if let Some(values) = fields.raw("one_of") {
        one_of(values).map_err(|error| error.within("one_of"))?
    } else if let Some(value) = fields.raw("near") {
        near(value, &mut fields)?
    } else if fields.get::<bool>("any")? == Some(true) || may_be_omitted {
        Accepted::Anything
    } else {
        return Err(Invalid::new("should have one_of, any or near"));
    };
    fields.end(&["one_of", "near", "within", "any", "may_be_omitted"])?;
    Ok(of(accepted, may_be_omitted))
}

fn one_of(text: &str) -> Result<Accepted<'static>, Invalid> {
    let values = list(text)?;
    if values.is_empty() {
        return Err(Invalid::new("has no value, so nothing would be accepted"));
    }
    let value = |text: &str| json::parse(text).map(Value::into_owned);
    let values: Result<Vec<_>, _> = values.into_iter().map(value).collect();
    Ok(Accepted::OneOf(values.map_err(|error| Invalid::new(error.to_string()))?))
}

fn near(text: &str, fields: &mut Fields<'_>) -> Result<Accepted<'static>, Invalid> {
    typed::<f64>(text).map_err(|error| error.within("near"))?;
    let value = json::parse(text).map_err(|error| Invalid::at("near", error.to_string()))?;
    let within = fields.get::<f64>("within")?.unwrap_or(0.0);
    if within.is_nan() || within < 0.0 {
        return Err(Invalid::at("within", "must not be negative"));
    }
    Ok(Accepted::Near { value: value.into_owned(), within })
}

/// The accepted values of each argument, as text: JSON where one value is accepted.
pub(crate) fn accepted_text(call: &ExpectedCall<'_>) -> Vec<(String, String)> {
    let text = |argument: &ExpectedArgument<'_>| {
        let mut text = match &argument.accepted {
            Accepted::Anything => "any value".to_owned(),
            Accepted::OneOf(values) => {
                values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
            }
            Accepted::Near { value, within } => format!("{value} ± {within}"),
        };
        if argument.may_be_omitted {
            text.push_str(", or nothing");
        }
        (argument.name.to_string(), text)
    };
    call.arguments.iter().map(text).collect()
}

/// Arguments that are accepted, as JSON objects: the first accepted value of each argument, null where
/// any is accepted; then those that differ from that in one argument.
pub(crate) fn examples(call: &ExpectedCall<'_>) -> Vec<String> {
    let options: Vec<(&str, Vec<String>)> = call
        .arguments
        .iter()
        .map(|argument| {
            let values = match &argument.accepted {
                Accepted::Anything => vec!["null".to_owned()],
                Accepted::OneOf(values) => values.iter().map(ToString::to_string).collect(),
                Accepted::Near { value, .. } => vec![value.to_string()],
            };
            (&*argument.name, values)
        })
        .collect();
    let written = |other: Option<(usize, usize)>| {
        let part = |(argument, (name, values)): (usize, &(&str, Vec<String>))| {
            let value = other.filter(|other| other.0 == argument).map_or(0, |other| other.1);
            format!("{}:{}", serde_json::Value::from(*name), values[value])
        };
        let parts: Vec<String> = options.iter().enumerate().map(part).collect();
        format!("{{{}}}", parts.join(","))
    };
    let mut examples = vec![written(None)];
    for (argument, (_, values)) in options.iter().enumerate() {
        examples.extend((1..values.len()).map(|value| written(Some((argument, value)))));
    }
    examples
}

impl Forbidden {
    fn parse(text: &str) -> Result<Self, Invalid> {
        if is_string(text) {
            let tool = Tool::parse(&typed::<String>(text)?);
            return Ok(Forbidden { tool, arguments: Object::new() });
        }
        let mut fields = Fields::parse(text)?;
        let tool = Tool::read(&mut fields)?;
        let arguments = object(fields.raw("arguments").unwrap_or("{}"));
        let arguments = arguments.map_err(|message| Invalid::at("arguments", message))?;
        fields.end(&["name", "server", "arguments"])?;
        Ok(Forbidden { tool, arguments: arguments.into_owned() })
    }

    /// Returns whether every call that meets the expectation is forbidden.
    fn rules_out(&self, (tool, call): Wanted<'_>) -> bool {
        let always = |(name, value): (&str, &Value<'_>)| {
            call.arguments.iter().any(|argument| {
                let same = |accepted: &Value<'_>| Equality::Json.values(accepted, value);
                argument.name == name
                    && !argument.may_be_omitted
                    && matches!(&argument.accepted, Accepted::OneOf(all) if all.iter().all(same))
            })
        };
        let same_server = self.tool.server.is_none() || self.tool.server == tool.server;
        self.tool.name == tool.name && same_server && self.arguments.iter().all(always)
    }

    /// Returns whether a call is forbidden by this rule.
    pub(crate) fn hits(&self, call: &CallMade) -> Hit {
        if !self.tool.is(&call.name, call.server.as_deref()) {
            return Hit::No;
        }
        if self.arguments.is_empty() {
            return Hit::Yes;
        }
        let given = match &call.arguments {
            Arguments::NotRecorded => return Hit::Unknown(NO_ARGUMENTS),
            Arguments::Text(_) => return Hit::Unknown(UNREADABLE),
            Arguments::Object(text) => object(text),
        };
        let Ok(given) = given else { return Hit::Unknown(UNREADABLE) };
        let equal = self.arguments.iter().all(|(name, value)| {
            given.get(name).is_some_and(|given| Equality::Json.values(given, value))
        });
        if equal { Hit::Yes } else { Hit::No }
    }
}

/// The reason for a score that needs arguments which were not recorded.
pub(crate) const NO_ARGUMENTS: &str = "arguments were not recorded";
/// The reason for a score that needs arguments which cannot be read.
pub(crate) const UNREADABLE: &str = "arguments are not a JSON object";

/// A JSON object with its order of keys and kinds of numbers.
pub(crate) fn object(text: &str) -> Result<Object<'_>, String> {
    let mut reader = json::Reader::new(text);
    let object = reader.read_object().map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(object)
}

fn numbered<T>(
    name: &str,
    texts: &[&str],
    parse: impl Fn(&str) -> Result<T, Invalid>,
) -> Result<Vec<T>, Invalid> {
    let one = |(number, text): (usize, &&str)| {
        parse(text).map_err(|error| error.within(&format!("{name}[{number}]")))
    };
    texts.iter().enumerate().map(one).collect()
}

/// One value, or a list of them.
fn one_or_more<T>(
    fields: &mut Fields<'_>,
    name: &str,
    parse: impl Fn(&str) -> Result<T, Invalid>,
) -> Result<Vec<T>, Invalid> {
    match fields.raw(name) {
        None => Ok(Vec::new()),
        Some(text) if is_list(text) => {
            let all = list(text).map_err(|error| error.within(name))?;
            numbered(name, &all, parse)
        }
        Some(text) => Ok(vec![parse(text).map_err(|error| error.within(name))?]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Expectation {
        Expectation::parse(text).unwrap()
    }

    fn call<'a>(name: &'a str, arguments: &'a str) -> Call<'a> {
        Call::new(name, object(arguments).unwrap())
    }

    #[test]
    fn everything_in_the_documentation_is_read() {
        let expectation = parse(
            r#"{"calls": [
                {"name": "find_city", "server": "geo", "arguments": {"name": "Bern"}},
                {"any_order": [
                    {"name": "forecast", "arguments": {"city": 17},
                     "accept": {"unit": ["C", "celsius"], "days": {"near": 3, "within": 1},
                                "lang": {"one_of": ["en", "de"], "may_be_omitted": true}, "trace_id": {"any": true}}},
                    {"name": "air_quality", "arguments": {"city": 17}, "extra": "ignore"}]},
                {"name": "log", "optional": true}],
              "forbidden": ["geo:delete_city", {"name": "transfer", "arguments": {"to": "mallory"}}],
              "requires_tool": true, "instructed_tool": "geo:find_city",
              "answer": [{"contains": "Bern"}, {"any_of": [{"number": 21.5, "within": 0.5}, {"regex": "(?i)mild"}]}],
              "state": [{"path": "$.notes[0].text", "equals": "umbrella"}],
              "criteria": ["The answer names the city"]}"#,
        );
        let expected = &expectation.calls.as_ref().unwrap().steps;
        let made = [
            call("geo:find_city", r#"{"name":"Bern"}"#),
            call("air_quality", r#"{"city":17,"more":1}"#),
            call("forecast", r#"{"city":17,"unit":"C","days":4,"trace_id":"x"}"#),
            call("log", "{}"),
        ];
        assert!(expected.exact(&made));
        let far = call("forecast", r#"{"city":17,"unit":"C","days":4.5,"trace_id":"x"}"#);
        assert!(!expected.exact(&[made[0].clone(), made[1].clone(), far]));
        assert!(expectation.calls.as_ref().unwrap().plain().is_none());
        assert_eq!(expectation.required().count(), 3);
    }

    #[test]
    fn a_server_matters_where_it_is_stated() {
        let stated = parse(r#"{"calls":[{"name":"add","server":"demo","arguments":{}}]}"#);
        assert_eq!(stated.key("add", Some("other")), "other:add");
        assert_eq!(stated.key("add", None), "demo:add");
        assert_eq!(stated.key("echo", Some("other")), "echo");
        let mixed = r#"{"calls":[{"name":"a","server":"x"},{"name":"a"}]}"#;
        assert!(Expectation::parse(mixed).is_err());
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        for wrong in [
            r#"{"call":[]}"#,
            r#"{"calls":[{"name":"a","argument":{}}]}"#,
            r#"{"calls":[{"name":"a","arguments":[1]}]}"#,
            r#"{"calls":[{"name":"a","arguments":{"x":1},"accept":{"x":[1]}}]}"#,
            r#"{"calls":[{"name":"a","accept":{"x":[]}}]}"#,
            r#"{"calls":[{"name":"a","accept":{"x":{"near":1,"within":-1}}}]}"#,
            r#"{"calls":[{"name":"a","extra":"maybe"}]}"#,
            r#"{"answer":{"has":"x"}}"#,
            r#"{"answer":{"regex":"("}}"#,
            r#"{"state":{"equals":1}}"#,
        ] {
            assert!(Expectation::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_condition_that_can_never_hold_is_refused() {
        for (wrong, place) in [
            (r#"{"answer":{"block":0,"contains":"x"}}"#, "answer.block"),
            (r#"{"answer":{"result":"$.content","count":1}}"#, "answer.result"),
            (r#"{"answer":[{"block":0,"type":"text"}]}"#, "answer[0].block"),
            (r#"{"answer":{"type":"text"}}"#, "answer.type"),
            (r#"{"answer":{"snapshot":{}}}"#, "answer.snapshot"),
            (r#"{"answer":{"json":"$.a","snapshot":{}}}"#, "answer.snapshot"),
            (r#"{"state":{"path":"$.a","snapshot":{}}}"#, "state.snapshot"),
            (r#"{"state":[{"path":"$.a","block":0,"equals":1}]}"#, "state[0].block"),
            (r#"{"state":{"path":"$.a","type":"text"}}"#, "state.type"),
        ] {
            let error = Expectation::parse(wrong).unwrap_err();
            assert_eq!(error.place, place, "{wrong}: {error}");
        }
    }

    #[test]
    fn a_mistake_in_a_matcher_is_named_as_in_a_suite() {
        let message = |text: &str| Expectation::parse(text).unwrap_err().to_string();
        assert_eq!(
            message(r#"{"answer":{"contians":"x"}}"#),
            "answer: unknown key `contians`; did you mean `contains`?"
        );
        let wrong = message(r#"{"answer":{"contains":3}}"#);
        assert!(wrong.starts_with("answer: found the number `3`, expected a "), "{wrong}");
        assert_eq!(message(r#"{"anwser":{}}"#), "unknown key `anwser`; did you mean `answer`?");
        assert_eq!(
            message(r#"{"calls":[{"name":"a","argument":{}}]}"#),
            "calls[0]: unknown key `argument`; did you mean `arguments`?"
        );
    }

    #[test]
    fn a_required_call_cannot_be_forbidden() {
        let with = |call: &str, rule: &str| {
            Expectation::parse(&format!(r#"{{"calls":[{call}],"forbidden":[{rule}]}}"#))
        };
        let pay = r#"{"name":"pay","arguments":{"to":"bob","sum":5}}"#;
        for rule in [r#""pay""#, r#"{"name":"pay","arguments":{"sum":5.0}}"#] {
            let error = with(pay, rule).unwrap_err();
            assert_eq!(error.place, "forbidden[0]");
            assert!(error.message.contains("\"pay\""), "{}", error.message);
        }
        let choice = r#"{"name":"pay","accept":{"to":["bob","eve"]}}"#;
        let only = r#"{"name":"pay","accept":{"to":["eve"]}}"#;
        let eve = r#"{"name":"pay","arguments":{"to":"eve"}}"#;
        assert!(with(only, eve).is_err());
        // An agent that has a choice can avoid the forbidden call.
        for (call, rule) in [
            (pay, eve),
            (choice, eve),
            (r#""pay""#, eve),
            (r#""pay""#, r#""bank:pay""#),
            (r#"{"name":"pay","optional":true}"#, r#""pay""#),
        ] {
            assert!(with(call, rule).is_ok(), "{call} {rule}");
        }
    }

    #[test]
    fn the_calls_decide_whether_a_tool_is_needed() {
        assert_eq!(parse("{}").requires_tool(), None);
        assert_eq!(parse(r#"{"calls":[]}"#).requires_tool(), Some(false));
        assert_eq!(parse(r#"{"calls":["a"]}"#).requires_tool(), Some(true));
        let optional = parse(r#"{"calls":[{"name":"a","optional":true}]}"#);
        assert_eq!(optional.requires_tool(), Some(false));
    }

    #[test]
    fn the_first_example_is_accepted() {
        let expectation = parse(
            r#"{"calls":[{"name":"f","arguments":{"a":1.0,"b":"x"},"accept":{"c":[2,3],"d":{"near":4,"within":1},"e":{"any":true}}}]}"#,
        );
        let example = examples(expectation.all_calls().next().unwrap().1).remove(0);
        assert_eq!(example, r#"{"a":1.0,"b":"x","c":2,"d":4,"e":null}"#);
        assert!(expectation.calls.unwrap().steps.exact(&[call("f", &example)]));
    }

    fn answer(matcher: &str, output: &str) -> bool {
        parse(&format!(r#"{{"answer":{matcher}}}"#)).answer_holds(Some(output))
    }

    #[test]
    fn conditions_on_an_answer_mean_what_they_always_meant() {
        assert!(answer(r#"{"contains":["a","b"]}"#, "b a"));
        assert!(!answer(r#"{"contains":"A"}"#, "a"));
        assert!(answer(r#"{"contains":"A","ignore_case":true}"#, "a"));
        assert!(answer(r#"{"equals":"x y"}"#, " x y\n"));
        assert!(!answer(r#"{"lacks":"sorry"}"#, "so sorry"));
        assert!(answer(r#"{"regex":"^\\d+$"}"#, "12"));
        assert!(!answer(r#"{"number":5}"#, "5.01"));
        assert!(answer(r#"{"number":5,"within":0.01}"#, "5.01"));
        assert!(answer(r#"{"any_of":[{"equals":"x"},{"number":7}]}"#, "it is 7"));
        assert!(!parse(r#"{"answer":{"lacks":"x"}}"#).answer_holds(None));
        assert!(Expectation::parse(r#"{"answer":{"contains":[]}}"#).is_err());
        assert!(Expectation::parse(r#"{"answer":{"lacks":[]}}"#).is_err());
    }

    #[test]
    fn a_number_in_an_answer_is_the_one_that_was_meant() {
        assert!(!answer(r#"{"number":5}"#, "I counted 1e999 things"));
        assert!(!answer(r#"{"number":5,"within":1}"#, "1e999"));
        assert!(!answer(r#"{"number":4111111111111111}"#, "Paid to 4111111111111114."));
        assert!(!answer(r#"{"number":9007199254740992}"#, "9007199254740993"));
        assert!(answer(r#"{"number":9007199254740993}"#, "9007199254740993"));
        assert!(!answer(r#"{"number":5}"#, "It is \u{2212}5 degrees"));
        assert!(answer(r#"{"number":-5}"#, "It is \u{2212}5 degrees"));
        assert!(answer(r#"{"number":-5}"#, "balance: -$5"));
        assert!(answer(r#"{"number":0.5}"#, "It is .5"));
        assert!(!answer(r#"{"number":5}"#, "It is .5"));
        assert!(answer(r#"{"number":0.3,"within":0.1}"#, "0.4"));
        assert!(Expectation::parse(r#"{"answer":{"number":1e999}}"#).is_err());
    }

    #[test]
    fn conditions_on_a_state_mean_what_they_always_meant() {
        let holds = |state: &serde_json::Value, condition: &str| {
            parse(&format!(r#"{{"state":{condition}}}"#)).state_holds(state)
        };
        let state = json!({"notes": [{"text": "umbrella", "n": 1}], "open": true, "text": "5",
            "acct": 4_111_111_111_111_114_i64, "note": null, "list": [null]});
        for condition in [
            r#"{"path":"$.notes[0].text","equals":"umbrella"}"#,
            r#"{"path":"$.notes[*].n","equals":1.0}"#,
            r#"{"path":"notes","count":1}"#,
            r#"{"path":"notes[0].text","contains":"umb"}"#,
            r#"{"path":"closed","exists":false}"#,
            r#"{"path":"acct","number":4111111111111111,"within":3}"#,
            r#"{"path":"note","equals":null}"#,
            r#"{"path":"list","contains":null}"#,
        ] {
            assert!(holds(&state, condition), "{condition}");
        }
        for condition in [
            r#"{"path":"open","equals":1}"#,
            r#"{"path":"open","equals":null}"#,
            r#"{"path":"closed","equals":null}"#,
            r#"{"path":"acct","number":4111111111111111}"#,
            r#"{"path":"text","number":5}"#,
        ] {
            assert!(!holds(&state, condition), "{condition}");
        }
    }
}

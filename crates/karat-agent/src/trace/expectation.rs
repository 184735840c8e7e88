//! What should have happened: calls, answer and state, as a record or a task states it.
//!
//! Values stay the text that was written until they are compared. An expectation that cannot be
//! understood is refused: reading past a mistyped key would make a task easier than it was meant.

use std::borrow::Cow;
use std::collections::BTreeSet;

use karat_metrics::calls::expected::{
    self, Accepted, ExpectedArgument, ExtraArguments, Presence, Step as MetricStep,
};
use karat_metrics::calls::{Call, Equality, Expected, Value, json};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::answer::{Assertion, Matcher};
use super::fields::{Fields, Invalid, is_list, is_object, is_string, list, typed};
use super::near::Near;
use super::split_name;

/// What should have happened.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The calls, if any are stated.
    pub calls: Option<Vec<Step>>,
    /// Calls that must not be made.
    pub forbidden: Vec<Forbidden>,
    requires_tool: Option<bool>,
    /// The tool that the user told the agent to use.
    pub instructed_tool: Option<Tool>,
    /// What must hold for the answer.
    pub answer: Vec<Matcher>,
    /// What must hold for the state.
    pub state: Vec<Assertion>,
    /// What must hold, in words.
    pub criteria: Vec<String>,
    /// The expectation as it was written.
    text: String,
}

/// A tool, and its server where that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// The server's.
    pub server: Option<String>,
}

/// One step of the expected calls.
#[derive(Clone, Debug)]
pub enum Step {
    /// A call at its place.
    Call(ExpectedCall),
    /// Calls in any order.
    AnyOrder(Vec<ExpectedCall>),
}

/// One expected call.
#[derive(Clone, Debug)]
pub struct ExpectedCall {
    /// Which tool.
    pub tool: Tool,
    /// The text of the arguments that have one value; none if any arguments will do.
    pub arguments: Option<String>,
    accept: Vec<(String, Choice)>,
    ignores_extra: bool,
    /// Whether it may be left out.
    pub optional: bool,
}

#[derive(Clone, Debug)]
struct Choice {
    values: Values,
    may_be_omitted: bool,
}

#[derive(Clone, Debug)]
enum Values {
    Any,
    OneOf(Vec<String>),
    Near(Near),
}

/// A call that must not be made.
#[derive(Clone, Debug)]
pub struct Forbidden {
    /// Which tool.
    pub tool: Tool,
    /// With which arguments, as a JSON object; whatever they are, if not stated.
    pub arguments: Option<String>,
}

impl Tool {
    /// Reads `name`, `server:name` or `mcp__server__name`.
    pub fn parse(text: &str) -> Self {
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
        let mut tool = Tool::parse(&fields.need::<String>("name")?);
        if let Some(server) = fields.get("server")? {
            tool.server = Some(server);
        }
        Ok(tool)
    }

    /// Whether a call is of this tool: by name, and by server where both are known.
    pub fn is(&self, name: &str, server: Option<&str>) -> bool {
        let same = |own: &String| server.is_none_or(|server| server == own);
        self.name == name && self.server.as_ref().is_none_or(same)
    }

    /// `server:name`, or the name.
    pub fn shown(&self) -> String {
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
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(text)?;
        let calls = match fields.list("calls")? {
            None => None,
            Some(steps) => Some(numbered("calls", &steps, Step::parse)?),
        };
        let forbidden = fields.list("forbidden")?.unwrap_or_default();
        let expectation = Expectation {
            calls,
            forbidden: numbered("forbidden", &forbidden, Forbidden::parse)?,
            requires_tool: fields.get("requires_tool")?,
            instructed_tool: fields
                .get::<String>("instructed_tool")?
                .map(|name| Tool::parse(&name)),
            answer: one_or_more(&mut fields, "answer", Matcher::parse)?,
            state: one_or_more(&mut fields, "state", Assertion::parse)?,
            criteria: fields.get("criteria")?.unwrap_or_default(),
            text: text.trim().to_owned(),
        };
        nothing_left(&fields)?;
        expectation.check_servers()?;
        expectation.check_forbidden()?;
        Ok(expectation)
    }

    /// Either all expected calls of a name state the server, or none does: with both, which call
    /// meets which expectation would depend on the order of looking.
    fn check_servers(&self) -> Result<(), Invalid> {
        let named: BTreeSet<&str> = self.named_servers();
        let bare = self
            .all_calls()
            .find(|call| call.tool.server.is_none() && named.contains(call.tool.name.as_str()));
        match bare {
            Some(call) => Err(Invalid::at(
                "calls",
                format!("some calls of {:?} state a server and others do not", call.tool.name),
            )),
            None => Ok(()),
        }
    }

    /// A call cannot be both required and forbidden: no agent could do such a task.
    fn check_forbidden(&self) -> Result<(), Invalid> {
        for (number, rule) in self.forbidden.iter().enumerate() {
            if let Some(call) = self.required().find(|call| rule.rules_out(call)) {
                return Err(Invalid::at(
                    format!("forbidden[{number}]"),
                    format!("rules out the call of {:?} that calls requires", call.tool.shown()),
                ));
            }
        }
        Ok(())
    }

    /// Every expected call, in order.
    pub fn all_calls(&self) -> impl Iterator<Item = &ExpectedCall> {
        self.calls.iter().flatten().flat_map(|step| match step {
            Step::Call(call) => std::slice::from_ref(call),
            Step::AnyOrder(calls) => calls,
        })
    }

    /// The calls that must be made.
    pub fn required(&self) -> impl Iterator<Item = &ExpectedCall> {
        self.all_calls().filter(|call| !call.optional)
    }

    /// Whether the task can be done without a tool, if that is known.
    pub fn requires_tool(&self) -> Option<bool> {
        self.requires_tool.or_else(|| self.calls.as_ref().map(|_| self.required().next().is_some()))
    }

    /// Whether there is anything that a run can pass or fail.
    pub fn states_anything(&self) -> bool {
        self.calls.is_some()
            || !self.answer.is_empty()
            || !self.state.is_empty()
            || !self.forbidden.is_empty()
    }

    /// Names of tools for which expected calls state the server.
    fn named_servers(&self) -> BTreeSet<&str> {
        let with_server = |call: &&ExpectedCall| call.tool.server.is_some();
        self.all_calls().filter(with_server).map(|call| call.tool.name.as_str()).collect()
    }

    /// The name under which a call is compared: with its server where the expectation states one. A
    /// call whose server is not known is taken to be of the server that is expected.
    pub fn key<'c>(&'c self, name: &'c str, server: Option<&'c str>) -> Cow<'c, str> {
        let stated = |call: &&ExpectedCall| call.tool.name == name && call.tool.server.is_some();
        let Some(expected) = self.all_calls().find(stated) else { return Cow::Borrowed(name) };
        match server.or(expected.tool.server.as_deref()) {
            Some(server) => Cow::Owned(format!("{server}:{name}")),
            None => Cow::Borrowed(name),
        }
    }

    /// The calls as the metrics take them; none if none are stated.
    pub fn expected(&self) -> Option<Expected<'_>> {
        let steps = self.calls.as_ref()?.iter().map(|step| match step {
            Step::Call(call) => MetricStep::Call(self.expected_call(call)),
            Step::AnyOrder(calls) => {
                MetricStep::AnyOrder(calls.iter().map(|call| self.expected_call(call)).collect())
            }
        });
        Some(Expected { steps: steps.collect() })
    }

    pub(crate) fn expected_call<'a>(
        &'a self,
        call: &'a ExpectedCall,
    ) -> expected::ExpectedCall<'a> {
        let mut wanted = expected::ExpectedCall {
            name: self.key(&call.tool.name, call.tool.server.as_deref()),
            arguments: Vec::new(),
            extra_arguments: match call.ignores_extra || call.takes_anything() {
                true => ExtraArguments::Ignored,
                false => ExtraArguments::Refused,
            },
            presence: if call.optional { Presence::Optional } else { Presence::Required },
        };
        let literal = call.arguments.as_deref().and_then(|text| object(text).ok());
        if let Some(literal) = literal {
            wanted.arguments.extend(literal.iter().map(|(name, value)| ExpectedArgument {
                name: Cow::Owned(name.to_owned()),
                accepted: Accepted::OneOf(vec![value.clone()]),
                may_be_omitted: false,
            }));
        }
        wanted.arguments.extend(call.accept.iter().map(|(name, choice)| ExpectedArgument {
            name: Cow::Borrowed(name),
            accepted: choice.values.accepted(),
            may_be_omitted: choice.may_be_omitted,
        }));
        wanted
    }

    /// The calls as a plain list, if the expectation leaves no choice.
    pub fn plain(&self) -> Option<Vec<Call<'_>>> {
        let plain = |step: &'_ Step| match step {
            Step::Call(call) if call.is_plain() => true,
            Step::Call(_) => false,
            Step::AnyOrder(calls) => calls.is_empty(),
        };
        if !self.calls.as_ref()?.iter().all(plain) {
            return None;
        }
        self.all_calls().map(|call| call.as_call(self)).collect()
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

impl Step {
    fn parse(text: &str) -> Result<Self, Invalid> {
        if is_string(text) {
            return ExpectedCall::parse(text).map(Step::Call);
        }
        let mut fields = Fields::parse(text)?;
        let Some(calls) = fields.list("any_order")? else {
            return ExpectedCall::parse(text).map(Step::Call);
        };
        nothing_left(&fields)?;
        numbered("any_order", &calls, ExpectedCall::parse).map(Step::AnyOrder)
    }
}

impl ExpectedCall {
    fn parse(text: &str) -> Result<Self, Invalid> {
        if is_string(text) {
            let tool = Tool::parse(&typed::<String>(text)?);
            return Ok(ExpectedCall {
                tool,
                arguments: None,
                accept: Vec::new(),
                ignores_extra: true,
                optional: false,
            });
        }
        let mut fields = Fields::parse(text)?;
        let tool = Tool::read(&mut fields)?;
        let arguments = fields.raw("arguments").map(str::to_owned);
        let mut names = BTreeSet::new();
        if let Some(text) = &arguments {
            let object = object(text).map_err(|message| Invalid::at("arguments", message))?;
            names.extend(object.iter().map(|(name, _)| name.to_owned()));
        }
        let mut accept = Vec::new();
        if let Some(text) = fields.raw("accept") {
            let inside = Fields::parse(text).map_err(|error| error.within("accept"))?;
            for name in inside.left().map(str::to_owned).collect::<Vec<_>>() {
                let place = format!("accept.{name}");
                if !names.insert(name.clone()) {
                    return Err(Invalid::at(place, "stands in arguments too"));
                }
                let mut inside = Fields::parse(text).map_err(|error| error.within("accept"))?;
                let choice = Choice::parse(inside.raw(&name).unwrap_or("null"));
                accept.push((name, choice.map_err(|error| error.within(&place))?));
            }
        }
        let ignores_extra = match fields.get::<String>("extra")?.as_deref() {
            None | Some("refuse") => false,
            Some("ignore") => true,
            Some(_) => return Err(Invalid::at("extra", "should be refuse or ignore")),
        };
        let optional = fields.get("optional")?.unwrap_or(false);
        nothing_left(&fields)?;
        Ok(ExpectedCall { tool, arguments, accept, ignores_extra, optional })
    }

    fn takes_anything(&self) -> bool {
        self.arguments.is_none() && self.accept.is_empty()
    }

    fn is_plain(&self) -> bool {
        self.arguments.is_some() && self.accept.is_empty() && !self.ignores_extra && !self.optional
    }

    /// The call with its plain arguments; none if they are no object, which parsing has refused.
    fn as_call<'a>(&'a self, whole: &'a Expectation) -> Option<Call<'a>> {
        let arguments = object(self.arguments.as_deref().unwrap_or("{}")).ok()?;
        Some(Call::new(whole.key(&self.tool.name, self.tool.server.as_deref()), arguments))
    }

    /// What is expected of each argument, in words: JSON where one value will do.
    pub fn words(&self) -> Vec<(String, String)> {
        let literal = self.arguments.as_deref().and_then(|text| object(text).ok());
        let stated = literal.iter().flat_map(|object| object.iter());
        let mut words: Vec<(String, String)> =
            stated.map(|(name, value)| (name.to_owned(), value.to_string())).collect();
        for (name, choice) in &self.accept {
            let mut text = match &choice.values {
                Values::Any => "any value".to_owned(),
                Values::OneOf(values) => values.join(" or "),
                Values::Near(near) => format!("{} ± {}", near.value, near.within),
            };
            if choice.may_be_omitted {
                text.push_str(", or nothing");
            }
            words.push((name.clone(), text));
        }
        words
    }

    /// Arguments that would do, as a JSON object: what an oracle calls with. The first acceptable
    /// value is taken, and null where any will do.
    pub fn example(&self) -> String {
        self.examples().swap_remove(0)
    }

    /// That example, and those that differ from it in one argument.
    pub(crate) fn examples(&self) -> Vec<String> {
        let mut options: Vec<(String, Vec<String>)> = Vec::new();
        if let Some(literal) = &self.arguments
            && let Ok(fields) = Fields::parse(literal)
        {
            let names: Vec<String> = fields.left().map(str::to_owned).collect();
            for name in names {
                let value = Fields::parse(literal).ok().and_then(|mut fields| fields.raw(&name));
                options.push((name, vec![value.unwrap_or("null").to_owned()]));
            }
        }
        for (name, choice) in &self.accept {
            let mut values = match &choice.values {
                Values::Any => Vec::new(),
                Values::OneOf(values) => values.clone(),
                Values::Near(near) => vec![near.value.clone()],
            };
            if values.is_empty() {
                values.push("null".to_owned());
            }
            options.push((name.clone(), values));
        }
        let mut examples = vec![written(&options, None)];
        for (argument, (_, values)) in options.iter().enumerate() {
            let others = (1..values.len()).map(|value| written(&options, Some((argument, value))));
            examples.extend(others);
        }
        examples
    }

    /// Whether every call that will do has this argument with this value.
    fn always_has(&self, name: &str, value: &Value<'_>) -> bool {
        let same = |text: &str| json::parse(text).is_ok_and(|v| Equality::Json.values(&v, value));
        let literal = self.arguments.as_deref().and_then(|text| object(text).ok());
        if let Some(stated) = literal.as_ref().and_then(|object| object.get(name)) {
            return Equality::Json.values(stated, value);
        }
        self.accept.iter().any(|(argument, choice)| {
            argument == name
                && !choice.may_be_omitted
                && matches!(&choice.values, Values::OneOf(all) if all.iter().all(|text| same(text)))
        })
    }
}

/// An object of the first value of each argument, or of another one of a single argument.
fn written(options: &[(String, Vec<String>)], other: Option<(usize, usize)>) -> String {
    let part = |(argument, (name, values)): (usize, &(String, Vec<String>))| {
        let value = other.filter(|other| other.0 == argument).map_or(0, |other| other.1);
        format!("{}:{}", serde_json::Value::from(name.as_str()), values[value])
    };
    let parts: Vec<String> = options.iter().enumerate().map(part).collect();
    format!("{{{}}}", parts.join(","))
}

impl Choice {
    fn parse(text: &str) -> Result<Self, Invalid> {
        if is_list(text) {
            return Ok(Choice { values: Values::one_of(text)?, may_be_omitted: false });
        }
        if !is_object(text) {
            return Err(Invalid::new(
                "should be a list of values, or one of one_of, any, near (a single value stands in \
                 arguments)",
            ));
        }
        let mut fields = Fields::parse(text)?;
        let may_be_omitted = fields.get("may_be_omitted")?.unwrap_or(false);
        let values = if let Some(values) = fields.raw("one_of") {
            Values::one_of(values).map_err(|error| error.within("one_of"))?
        } else if let Some(near) = Near::parse(&mut fields, "near")? {
            Values::Near(near)
        } else if fields.get::<bool>("any")? == Some(true) || may_be_omitted {
            Values::Any
        } else {
            return Err(Invalid::new("should have one_of, any or near"));
        };
        nothing_left(&fields)?;
        Ok(Choice { values, may_be_omitted })
    }
}

impl Values {
    fn one_of(text: &str) -> Result<Self, Invalid> {
        let values = list(text)?;
        if values.is_empty() {
            return Err(Invalid::new("names no value, so none would do"));
        }
        Ok(Values::OneOf(values.into_iter().map(str::to_owned).collect()))
    }

    fn accepted(&self) -> Accepted<'_> {
        match self {
            Values::Any => Accepted::Anything,
            Values::OneOf(values) => {
                Accepted::OneOf(values.iter().filter_map(|text| json::parse(text).ok()).collect())
            }
            Values::Near(near) => near.accepted(),
        }
    }
}

impl Forbidden {
    /// Whether no call that is expected so can keep the rule.
    fn rules_out(&self, call: &ExpectedCall) -> bool {
        let same_server = self.tool.server.is_none() || self.tool.server == call.tool.server;
        let stated = self.arguments.as_deref().and_then(|text| object(text).ok());
        self.tool.name == call.tool.name
            && same_server
            && stated.unwrap_or_default().iter().all(|(name, value)| call.always_has(name, value))
    }

    fn parse(text: &str) -> Result<Self, Invalid> {
        if is_string(text) {
            return Ok(Forbidden { tool: Tool::parse(&typed::<String>(text)?), arguments: None });
        }
        let mut fields = Fields::parse(text)?;
        let tool = Tool::read(&mut fields)?;
        let arguments = fields.raw("arguments").map(str::to_owned);
        if let Some(text) = &arguments {
            object(text).map_err(|message| Invalid::at("arguments", message))?;
        }
        nothing_left(&fields)?;
        Ok(Forbidden { tool, arguments })
    }
}

/// A JSON object with its order of keys and kinds of numbers.
pub(crate) fn object(text: &str) -> Result<karat_metrics::calls::Object<'_>, String> {
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
    texts
        .iter()
        .enumerate()
        .map(|(number, text)| {
            parse(text).map_err(|error| error.within(&format!("{name}[{number}]")))
        })
        .collect()
}

/// One thing, or a list of them.
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

pub(crate) fn nothing_left(fields: &Fields<'_>) -> Result<(), Invalid> {
    match fields.left().next() {
        None => Ok(()),
        Some(name) => Err(Invalid::at(name, "is not known here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Expectation {
        Expectation::parse(text).unwrap()
    }

    fn call<'a>(name: &'a str, arguments: &'a str) -> Call<'a> {
        Call::new(name, object(arguments).unwrap())
    }

    #[test]
    fn everything_of_the_page_is_read() {
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
        let expected = expectation.expected().unwrap();
        let made = [
            call("geo:find_city", r#"{"name":"Bern"}"#),
            call("air_quality", r#"{"city":17,"more":1}"#),
            call("forecast", r#"{"city":17,"unit":"C","days":4,"trace_id":"x"}"#),
            call("log", "{}"),
        ];
        assert!(expected.exact(&made));
        let far = call("forecast", r#"{"city":17,"unit":"C","days":4.5,"trace_id":"x"}"#);
        assert!(!expected.exact(&[made[0].clone(), made[1].clone(), far]));
        assert!(expectation.plain().is_none());
        assert_eq!(expectation.required().count(), 3);
    }

    #[test]
    fn a_server_counts_where_it_is_stated() {
        let stated = parse(r#"{"calls":[{"name":"add","server":"demo","arguments":{}}]}"#);
        assert_eq!(stated.key("add", Some("other")), "other:add");
        assert_eq!(stated.key("add", None), "demo:add");
        assert_eq!(stated.key("echo", Some("other")), "echo");
        let mixed = r#"{"calls":[{"name":"a","server":"x"},{"name":"a"}]}"#;
        assert!(Expectation::parse(mixed).is_err());
    }

    #[test]
    fn what_is_misspelt_is_refused() {
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
    fn what_is_required_cannot_be_forbidden() {
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
        // Where the agent has a choice, it can keep the rule.
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
    fn whether_a_tool_is_needed_follows_from_the_calls() {
        assert_eq!(parse("{}").requires_tool(), None);
        assert_eq!(parse(r#"{"calls":[]}"#).requires_tool(), Some(false));
        assert_eq!(parse(r#"{"calls":["a"]}"#).requires_tool(), Some(true));
        let optional = parse(r#"{"calls":[{"name":"a","optional":true}]}"#);
        assert_eq!(optional.requires_tool(), Some(false));
    }

    #[test]
    fn an_oracle_can_call_what_is_expected() {
        let expectation = parse(
            r#"{"calls":[{"name":"f","arguments":{"a":1.0,"b":"x"},"accept":{"c":[2,3],"d":{"near":4,"within":1},"e":{"any":true}}}]}"#,
        );
        let example = expectation.all_calls().next().unwrap().example();
        assert_eq!(example, r#"{"a":1.0,"b":"x","c":2,"d":4,"e":null}"#);
        assert!(expectation.expected().unwrap().exact(&[call("f", &example)]));
    }
}

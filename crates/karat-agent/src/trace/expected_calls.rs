//! The calls that a task expects, and the values that it accepts as their arguments.

use std::borrow::Cow;
use std::collections::HashMap;

use karat_metrics::calls::expected::{
    Accepted, ExpectedArgument, ExpectedCall, ExtraArguments, Presence, Step,
};
use karat_metrics::calls::{Arguments, Call, Expected, Object, Value, json};

use super::fields::{Fields, Invalid, is_list, is_object, is_string, list, typed};

/// The calls that are expected.
#[derive(Debug)]
pub struct ExpectedCalls {
    /// The calls as the metrics take them; each under the [`key`](ExpectedCalls::key) of its tool.
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

impl PlainCall {
    fn as_call(&self) -> Option<Call<'_>> {
        let arguments = Arguments::read(&mut json::Reader::new(&self.arguments)).ok()?;
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

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Invalid> {
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

/// The name under which a call is compared: with its server where an expected call of that name
/// states one. A call whose server is not known counts as one of the server that is expected.
fn key<'c>(servers: &HashMap<String, String>, name: &'c str, server: Option<&str>) -> Cow<'c, str> {
    match servers.get(name) {
        Some(expected) => Cow::Owned(format!("{}:{name}", server.unwrap_or(expected))),
        None => Cow::Borrowed(name),
    }
}

impl ExpectedCalls {
    pub(super) fn parse(steps: &[&str]) -> Result<Self, Invalid> {
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

    /// The name under which a call is compared.
    pub(super) fn key<'c>(&self, name: &'c str, server: Option<&str>) -> Cow<'c, str> {
        key(&self.servers, name, server)
    }

    /// The calls as a plain list, if the expectation leaves no choice.
    pub(crate) fn plain(&self) -> Option<Vec<Call<'_>>> {
        self.plain.as_ref()?.iter().map(PlainCall::as_call).collect()
    }

    /// Every call, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = Wanted<'_>> {
        let calls = self.steps.steps.iter().flat_map(|step| match step {
            Step::Call(call) => std::slice::from_ref(call),
            Step::AnyOrder(calls) => calls,
        });
        self.tools.iter().zip(calls)
    }
}

/// The server in a tool's name, if it has one, and the name without it.
pub(super) fn split_name(name: &str) -> (Option<&str>, &str) {
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (Some(server), tool),
        _ => (None, name),
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

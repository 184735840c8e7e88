//! The expectation of a record or a task: calls, answer and state.
//!
//! An expectation that cannot be understood is refused: skipping a mistyped key would make a task
//! easier than it was meant.

use std::borrow::Cow;

use karat_core::expect::{Answer, Matcher, MatcherSpec};
use karat_metrics::calls::expected::{Accepted, Presence};
use karat_metrics::calls::{Equality, Object, Value};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::expected_calls::{ExpectedCalls, NO_ARGUMENTS, Tool, UNREADABLE, Wanted, object};
use super::fields::{Fields, Invalid, is_list, is_string, list, typed};
use super::{Arguments, CallMade};

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
            Some(calls) => calls.key(name, server),
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
    use karat_metrics::calls::Call;
    use serde_json::json;

    use super::super::expected_calls::examples;
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

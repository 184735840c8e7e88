//! Matching as in the Berkeley Function Calling Leaderboard (bfcl-eval 2026.3.23, `ast_checker`, for
//! Python functions): all or nothing, with lists of acceptable values.
//!
//! Its conventions are kept, including the odd ones: strings are compared without case, spaces and
//! some punctuation; a whole number is accepted for a float; calls in any order are assigned
//! greedily. Where the original fails on a malformed answer, that answer matches nothing here. Names
//! are compared as they are (the original can turn dots into underscores for some models). Java and
//! JavaScript are not supported.
//! [`Expected`](super::Expected) offers acceptable values with JSON equality and the best assignment.

use std::borrow::Cow;
use std::fmt;

use super::{Call, Equality, Object, Value};
use crate::metric::{Better, Metric, MetricKind, Unit};

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[Metric {
    id: "bfcl.match",
    summary: "The share of traces in which every call is acceptable, in any order (BFCL)",
    formula: "1 if there are as many calls as answers and, taking the answers in order, the first unused call that fits each can be found; else 0",
    better: Better::Higher,
    unit: Unit::Share,
    kind: MetricKind::Rate,
    notes: "As `ast_checker` of bfcl-eval 2026.3.23 for Python, category `parallel`, which for a single answer is also `simple` and `multiple`. An answer lists acceptable values for each parameter; `\"\"` among them means that it may be omitted. Strings are compared after removing spaces and `,./-_*^`, in lower case. A whole number is accepted for a float, not the reverse; other values are compared by Python's `==` after a check of their type. Unexpected parameters are wrong. The assignment is **greedy**: calls [a], [b] fail the answers {a or b}, {a}.",
    ..Metric::DEFAULT
}];

/// The parts of a function's description that decide a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters' names and types.
    pub parameters: Vec<(String, ParameterType)>,
    /// The names of the parameters that must be given.
    pub required: Vec<String>,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterType {
    /// The type itself.
    pub kind: Type,
    /// The type of a list's items, if it is described.
    pub items: Option<Type>,
}

/// The types, by their Python names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `str`
    Str,
    /// `int`
    Int,
    /// `float`
    Float,
    /// `bool`
    Bool,
    /// `list`
    List,
    /// `dict`
    Dict,
    /// `NoneType`; no parameter has it, but a value may.
    None,
}

/// One acceptable call.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// The function's name.
    pub name: Cow<'a, str>,
    /// The acceptable values of each parameter; an empty string among them makes it optional.
    pub parameters: Vec<(Cow<'a, str>, Vec<Value<'a>>)>,
}

/// The reason why calls do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// More or fewer calls than answers.
    WrongCount,
    /// No description of the answer's function was given.
    UnknownFunction(String),
    /// No unused call fits the answer at this position.
    NoCallFits {
        /// The answer's position, from 0.
        answer: usize,
        /// The problem of the last call tried.
        reason: CallMismatch,
    },
}

/// The reason why one call does not fit one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallMismatch {
    /// Another function.
    Name,
    /// A required parameter is missing.
    MissingRequired(String),
    /// A parameter that the function or the answer does not have.
    Unexpected(String),
    /// A value of the wrong type.
    WrongType(String),
    /// A value that is not acceptable.
    WrongValue(String),
    /// A parameter is missing that the answer does not allow to be omitted.
    Missing(String),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::WrongCount => f.write_str("wrong number of calls"),
            Mismatch::UnknownFunction(name) => write!(f, "no description of function {name:?}"),
            Mismatch::NoCallFits { answer, reason } => {
                write!(f, "no call fits answer {}: {reason}", answer + 1)
            }
        }
    }
}

impl fmt::Display for CallMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallMismatch::Name => f.write_str("another function"),
            CallMismatch::MissingRequired(name) => {
                write!(f, "required parameter {name:?} is missing")
            }
            CallMismatch::Unexpected(name) => write!(f, "parameter {name:?} is unexpected"),
            CallMismatch::WrongType(name) => write!(f, "parameter {name:?} has the wrong type"),
            CallMismatch::WrongValue(name) => write!(f, "parameter {name:?} has the wrong value"),
            CallMismatch::Missing(name) => write!(f, "parameter {name:?} is missing"),
        }
    }
}

impl std::error::Error for Mismatch {}

/// Checks that the calls fit the answers, in any order (`bfcl.match`).
///
/// ```
/// use karat_metrics::calls::bfcl::{Answer, Function, check};
/// use karat_metrics::calls::json::{self, Reader};
/// use karat_metrics::calls::Call;
///
/// let function = Function::from_json(&json::parse(
///     r#"{"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}}"#,
/// )?)?;
/// let answer = Answer::from_json(&json::parse(r#"{"weather": {"city": ["Berlin"]}}"#)?)?;
/// let call = Call::new("weather", Reader::new(r#"{"city": "berlin"}"#).read_object()?);
/// assert_eq!(check(&[function], &[answer], &[call]), Ok(()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first mismatch, if they do not fit.
pub fn check(
    functions: &[Function],
    answers: &[Answer<'_>],
    called: &[Call<'_>],
) -> Result<(), Mismatch> {
    if called.len() != answers.len() {
        return Err(Mismatch::WrongCount);
    }
    let mut used = vec![false; called.len()];
    for (position, answer) in answers.iter().enumerate() {
        let Some(function) = functions.iter().find(|function| function.name == answer.name) else {
            return Err(Mismatch::UnknownFunction(answer.name.clone().into_owned()));
        };
        let mut reason = CallMismatch::Name;
        let mut fits = |candidate: &usize| match check_call(function, answer, &called[*candidate]) {
            Ok(()) => true,
            Err(mismatch) => {
                reason = mismatch;
                false
            }
        };
        match (0..called.len()).filter(|&candidate| !used[candidate]).find(|c| fits(c)) {
            Some(candidate) => used[candidate] = true,
            None => return Err(Mismatch::NoCallFits { answer: position, reason }),
        }
    }
    Ok(())
}

fn check_call(
    function: &Function,
    answer: &Answer<'_>,
    call: &Call<'_>,
) -> Result<(), CallMismatch> {
    if function.name != call.name {
        return Err(CallMismatch::Name);
    }
    let given = call.arguments();
    if let Some(missing) = function.required.iter().find(|name| given.get(name).is_none()) {
        return Err(CallMismatch::MissingRequired(missing.clone()));
    }
    for (name, value) in given.iter() {
        let described = function.parameters.iter().find(|(known, _)| known == name);
        let accepted = answer.parameters.iter().find(|(known, _)| known == name);
        let (Some((_, expected)), Some((_, accepted))) = (described, accepted) else {
            return Err(CallMismatch::Unexpected(name.to_owned()));
        };
        check_value(*expected, value, accepted).map_err(|wrong| match wrong {
            Wrong::Type => CallMismatch::WrongType(name.to_owned()),
            Wrong::Value => CallMismatch::WrongValue(name.to_owned()),
        })?;
    }
    let missing = |(name, accepted): &&(Cow<'_, str>, Vec<Value<'_>>)| {
        given.get(name).is_none() && !accepted.iter().any(is_empty_string)
    };
    match answer.parameters.iter().find(missing) {
        Some((name, _)) => Err(CallMismatch::Missing(name.clone().into_owned())),
        None => Ok(()),
    }
}

/// The problem of a value.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Type,
    Value,
}

fn check_value(
    expected: ParameterType,
    value: &Value<'_>,
    accepted: &[Value<'_>],
) -> Result<(), Wrong> {
    let as_float = match (expected.kind, value) {
        #[expect(clippy::cast_precision_loss, reason = "as Python's float()")]
        (Type::Float, Value::Int(int)) => Some(Value::Float(*int as f64)),
        (Type::Float, Value::BigInt(int)) => int.digits().parse().ok().map(Value::Float),
        _ => None,
    };
    let value = as_float.as_ref().unwrap_or(value);
    let is_variable = check_type(expected, value, accepted)?;
    let fits = match (expected.kind, value) {
        // A "variable": the answers are of another type than the parameter, so no normalising.
        _ if is_variable => contains(accepted, value),
        (Type::Dict, Value::Object(object)) => fits_dict(object, accepted),
        (Type::List, Value::List(items)) if expected.items == Some(Type::Dict) => {
            fits_list_of_dicts(items, accepted)
        }
        (Type::Str, Value::String(text)) => {
            let text = standardized(text);
            accepted
                .iter()
                .any(|value| matches!(value, Value::String(s) if standardized(s) == text))
        }
        (Type::List, Value::List(items)) => fits_list(items, accepted),
        _ => contains(accepted, value),
    };
    if fits { Ok(()) } else { Err(Wrong::Value) }
}

/// Checks the type; returns `true` if the answers are of another type than the parameter ("a
/// variable").
fn check_type(
    expected: ParameterType,
    value: &Value<'_>,
    accepted: &[Value<'_>],
) -> Result<bool, Wrong> {
    let answer_type = accepted.iter().find(|answer| !is_empty_string(answer)).map(type_of);
    let is_variable = answer_type.is_some_and(|answer| answer != expected.kind);
    if type_of(value) != expected.kind {
        return if answer_type == Some(type_of(value)) { Ok(true) } else { Err(Wrong::Type) };
    }
    let (Some(item_type), Value::List(items)) = (expected.items, value) else {
        return Ok(is_variable);
    };
    let item_type = ParameterType { kind: item_type, items: None };
    let fits = |answer: &Value<'_>| match answer {
        Value::List(answer) => items.iter().all(|item| check_type(item_type, item, answer).is_ok()),
        // An answer that is not a list accepts any, in particular the "" of an optional parameter.
        _ => true,
    };
    if accepted.iter().any(fits) { Ok(is_variable) } else { Err(Wrong::Type) }
}

fn fits_list(items: &[Value<'_>], accepted: &[Value<'_>]) -> bool {
    let items: Vec<Value<'_>> = items.iter().map(standardized_value).collect();
    accepted.iter().filter_map(elements).any(|answer| {
        answer.len() == items.len()
            && answer.iter().zip(&items).all(|(a, b)| Equality::Python.values(a, b))
    })
}

fn fits_list_of_dicts(items: &[Value<'_>], accepted: &[Value<'_>]) -> bool {
    accepted.iter().filter_map(elements).any(|answer| {
        answer.len() == items.len()
            && items.iter().zip(&answer).all(|(item, answer)| match item {
                Value::Object(item) => fits_dict(item, std::slice::from_ref(answer)),
                _ => false,
            })
    })
}

fn fits_dict(object: &Object<'_>, accepted: &[Value<'_>]) -> bool {
    accepted.iter().any(|answer| {
        let Value::Object(answer) = answer else { return false };
        let is_accepted = |(key, value): (&str, &Value<'_>)| {
            let values = answer.get(key).and_then(elements);
            values.is_some_and(|values| contains(&values, &standardized_value(value)))
        };
        let may_be_missing = |values: &Value<'_>| match values {
            Value::List(values) => values.iter().any(is_empty_string),
            Value::String(_) => true,
            _ => false,
        };
        object.iter().all(is_accepted)
            && answer
                .iter()
                .all(|(key, values)| object.get(key).is_some() || may_be_missing(values))
    })
}

/// The elements of a value that Python can iterate over, strings among them standardized. Those of a
/// string are its characters.
fn elements<'v>(value: &'v Value<'_>) -> Option<Vec<Value<'v>>> {
    match value {
        Value::List(items) => Some(items.iter().map(standardized_value).collect()),
        Value::Object(object) if object.is_empty() => Some(Vec::new()),
        Value::String(text) => {
            let character = |c: char| Value::from(standardized(c.encode_utf8(&mut [0; 4])));
            Some(text.chars().map(character).collect())
        }
        _ => None,
    }
}

fn contains(values: &[Value<'_>], value: &Value<'_>) -> bool {
    values.iter().any(|known| Equality::Python.values(known, value))
}

fn standardized_value<'v>(value: &'v Value<'_>) -> Value<'v> {
    match value {
        Value::String(text) => Value::from(standardized(text)),
        other => other.clone(),
    }
}

/// Removes spaces and `,./-_*^`, converts to lower case and single quotes to double ones.
fn standardized(text: &str) -> String {
    let kept: String = text
        .chars()
        .filter(|c| !matches!(c, ' ' | ',' | '.' | '/' | '-' | '_' | '*' | '^'))
        .collect();
    kept.to_lowercase().replace('\'', "\"")
}

fn is_empty_string(value: &Value<'_>) -> bool {
    matches!(value, Value::String(text) if text.is_empty())
}

fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::None,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) | Value::BigInt(_) => Type::Int,
        Value::Float(_) => Type::Float,
        Value::String(_) => Type::Str,
        Value::List(_) => Type::List,
        Value::Object(_) => Type::Dict,
    }
}

/// An error: a function description or an answer does not have the form of BFCL's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

impl Function {
    /// Reads `{"name", "parameters": {"properties": {NAME: {"type", "items"}}, "required": […]}}`.
    ///
    /// # Errors
    /// If the value does not have this form.
    pub fn from_json(value: &Value<'_>) -> Result<Self, Malformed> {
        let wrong = |what: &str| Malformed(format!("function description: {what}"));
        let Value::Object(function) = value else { return Err(wrong("not an object")) };
        let Some(Value::String(name)) = function.get("name") else { return Err(wrong("no name")) };
        let Some(Value::Object(parameters)) = function.get("parameters") else {
            return Err(wrong("no parameters"));
        };
        let Some(Value::Object(properties)) = parameters.get("properties") else {
            return Err(wrong("no properties"));
        };
        let required = match parameters.get("required") {
            None | Some(Value::Null) => &[][..],
            Some(Value::List(names)) => names,
            Some(_) => return Err(wrong("required is not a list")),
        };
        let name_of = |value: &Value<'_>| match value {
            Value::String(name) => Ok(name.clone().into_owned()),
            _ => Err(wrong("required holds something else than names")),
        };
        let parameter = |(name, property): (&str, &Value<'_>)| {
            Ok((name.to_owned(), ParameterType::from_json(property)?))
        };
        Ok(Function {
            name: name.clone().into_owned(),
            parameters: properties.iter().map(parameter).collect::<Result<_, _>>()?,
            required: required.iter().map(name_of).collect::<Result<_, _>>()?,
        })
    }
}

impl ParameterType {
    fn from_json(property: &Value<'_>) -> Result<Self, Malformed> {
        let named = |property: &Value<'_>| -> Result<(Type, bool), Malformed> {
            let kind = match property {
                Value::Object(property) => property.get("type"),
                _ => None,
            };
            let Some(Value::String(kind)) = kind else {
                return Err(Malformed("function description: a parameter without type".into()));
            };
            Ok(match &**kind {
                "string" | "any" => (Type::Str, false),
                "integer" => (Type::Int, false),
                // BFCL's own names and those of JSON Schema.
                "float" | "number" => (Type::Float, false),
                "boolean" => (Type::Bool, false),
                "array" | "tuple" => (Type::List, true),
                "dict" | "object" => (Type::Dict, false),
                other => return Err(Malformed(format!("function description: type {other:?}"))),
            })
        };
        let (kind, has_items) = named(property)?;
        let items = match property {
            Value::Object(property) if has_items => property.get("items"),
            _ => None,
        };
        Ok(ParameterType { kind, items: items.map(|items| Ok(named(items)?.0)).transpose()? })
    }
}

impl<'a> Answer<'a> {
    /// Reads `{FUNCTION: {PARAMETER: [acceptable values]}}`.
    ///
    /// # Errors
    /// If the value does not have this form.
    pub fn from_json(value: &Value<'a>) -> Result<Self, Malformed> {
        let wrong = |what: &str| Malformed(format!("answer: {what}"));
        let Value::Object(answer) = value else { return Err(wrong("not an object")) };
        let mut functions = answer.iter();
        let (Some((name, parameters)), None) = (functions.next(), functions.next()) else {
            return Err(wrong("not exactly one function"));
        };
        let Value::Object(parameters) = parameters else {
            return Err(wrong("the function's parameters are not an object"));
        };
        let parameter = |(name, accepted): (&str, &Value<'a>)| match accepted {
            Value::List(accepted) => Ok((Cow::Owned(name.to_owned()), accepted.clone())),
            _ => Err(wrong("acceptable values are not a list")),
        };
        Ok(Answer {
            name: Cow::Owned(name.to_owned()),
            parameters: parameters.iter().map(parameter).collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    /// Checks calls `{"f": {…}}` of one function whose parameter `p` has the given type.
    fn checked(property: &str, answers: &str, called: &str) -> Result<(), Mismatch> {
        let description = format!(
            r#"{{"name":"f","parameters":{{"properties":{{"p":{property},"q":{property}}},"required":["p"]}}}}"#
        );
        let function = Function::from_json(&json::parse(&description).unwrap()).unwrap();
        let list = |text| match json::parse(text).unwrap() {
            Value::List(items) => items,
            other => panic!("{other} is not a list"),
        };
        let answers: Vec<Answer<'_>> =
            list(answers).iter().map(|answer| Answer::from_json(answer).unwrap()).collect();
        let call = |value: Value<'static>| match value {
            Value::Object(call) => {
                let (name, arguments) = call.entry(0);
                let Value::Object(arguments) = arguments else { panic!("arguments") };
                Call::new(name.to_owned(), arguments.clone())
            }
            other => panic!("{other} is not a call"),
        };
        let called: Vec<Call<'_>> =
            list(called).into_iter().map(|value| call(value.into_owned())).collect();
        check(&[function], &answers, &called)
    }

    #[track_caller]
    fn accepts(property: &str, values: &str, given: &str, expected: bool) {
        let answers = format!(r#"[{{"f":{{"p":{values}}}}}]"#);
        let called = format!(r#"[{{"f":{{"p":{given}}}}}]"#);
        let result = checked(property, &answers, &called);
        assert_eq!(result.is_ok(), expected, "{given} for {values}: {result:?}");
    }

    #[test]
    fn strings_are_compared_without_case_spaces_and_punctuation() {
        let string = r#"{"type":"string"}"#;
        accepts(string, r#"["April 1, 2024"]"#, r#""april 1 2024""#, true);
        accepts(string, r#"["it's"]"#, r#""IT\"S""#, true);
        accepts(string, r#"["a"]"#, r#""b""#, false);
        accepts(string, r#"["1"]"#, "1", false);
    }

    #[test]
    fn a_whole_number_is_accepted_for_a_float_and_not_the_reverse() {
        accepts(r#"{"type":"float"}"#, "[5.0]", "5", true);
        accepts(r#"{"type":"integer"}"#, "[5]", "5.0", false);
        accepts(r#"{"type":"integer"}"#, "[1]", "true", false);
        accepts(r#"{"type":"boolean"}"#, "[true]", "true", true);
    }

    #[test]
    fn an_empty_string_among_the_values_makes_a_parameter_optional() {
        let integer = r#"{"type":"integer"}"#;
        let called = r#"[{"f":{"p":1}}]"#;
        assert!(checked(integer, r#"[{"f":{"p":[1],"q":[2,""]}}]"#, called).is_ok());
        assert_eq!(
            checked(integer, r#"[{"f":{"p":[1],"q":[2]}}]"#, called),
            Err(Mismatch::NoCallFits { answer: 0, reason: CallMismatch::Missing("q".into()) })
        );
    }

    #[test]
    fn lists_and_dicts_are_compared_element_by_element() {
        let strings = r#"{"type":"array","items":{"type":"string"}}"#;
        accepts(strings, r#"[["A b","c"]]"#, r#"["ab","C"]"#, true);
        accepts(strings, r#"[["a","b"]]"#, r#"["b","a"]"#, false);
        accepts(strings, r#"[["a"]]"#, "[1]", false);
        let dict = r#"{"type":"dict"}"#;
        accepts(dict, r#"[{"k":[1,2],"o":["x",""]}]"#, r#"{"k":2}"#, true);
        accepts(dict, r#"[{"k":[1,2],"o":["x",""]}]"#, r#"{"k":2,"o":"X"}"#, true);
        accepts(dict, r#"[{"k":[1,2]}]"#, r#"{"k":3}"#, false);
        accepts(dict, r#"[{"k":[1,2]}]"#, r#"{"k":1,"z":1}"#, false);
        let dicts = r#"{"type":"array","items":{"type":"dict"}}"#;
        accepts(dicts, r#"[[{"k":[1]},{"k":[2]}]]"#, r#"[{"k":1},{"k":2}]"#, true);
        accepts(dicts, r#"[[{"k":[1]},{"k":[2]}]]"#, r#"[{"k":2},{"k":1}]"#, false);
    }

    #[test]
    fn the_assignment_is_greedy() {
        let string = r#"{"type":"string"}"#;
        let answers = r#"[{"f":{"p":["a","b"]}},{"f":{"p":["a"]}}]"#;
        assert!(checked(string, answers, r#"[{"f":{"p":"b"}},{"f":{"p":"a"}}]"#).is_ok());
        assert!(checked(string, answers, r#"[{"f":{"p":"a"}},{"f":{"p":"b"}}]"#).is_err());
    }

    #[test]
    fn the_number_of_calls_must_be_right() {
        let string = r#"{"type":"string"}"#;
        let answers = r#"[{"f":{"p":["a"]}}]"#;
        assert_eq!(checked(string, answers, "[]"), Err(Mismatch::WrongCount));
        assert_eq!(checked(string, "[]", "[]"), Ok(()));
    }

    #[test]
    fn a_function_without_description_is_reported() {
        let answer = json::parse(r#"{"g":{}}"#).unwrap();
        let called = [Call::new("g", Object::new())];
        assert_eq!(
            check(&[], &[Answer::from_json(&answer).unwrap()], &called),
            Err(Mismatch::UnknownFunction("g".into()))
        );
    }
}

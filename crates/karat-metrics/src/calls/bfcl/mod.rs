//! Matching as in the Berkeley Function Calling Leaderboard (bfcl-eval 2026.3.23, `ast_checker`): all
//! or nothing, with lists of acceptable values.
//!
//! Its conventions are kept, including the odd ones: strings are compared without case, spaces and
//! some punctuation; a whole number is accepted for a float; calls in any order are assigned
//! greedily; the arguments of Java and JavaScript functions are source text. Where the original fails
//! on a malformed answer, that answer matches nothing here.
//! [`Expected`](super::Expected) offers acceptable values with JSON equality and the best assignment.

mod java;
mod javascript;
mod scalar;

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
    notes: "As `ast_checker` of bfcl-eval 2026.3.23, category `parallel`, which for a single answer is also `simple` and `multiple`. An answer lists acceptable values for each parameter; `\"\"` among them means that it may be omitted. Strings are compared after removing spaces and `,./-_*^`, in lower case. The arguments of Java and JavaScript functions are texts of their source, converted first. A whole number is accepted for a float, not the reverse; other values are compared by Python's `==` after a check of their type. Unexpected parameters are wrong. The assignment is **greedy**: calls [a], [b] fail the answers {a or b}, {a}.",
    ..Metric::DEFAULT
}];

/// The language of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// Arguments are JSON values.
    #[default]
    Python,
    /// Arguments are texts of Java source.
    Java,
    /// Arguments are texts of JavaScript source.
    JavaScript,
}

/// The parts of a function's description that decide a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its name in calls, where dots may be underscores.
    pub called: String,
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
    /// The type in another language than Python.
    foreign: Option<Foreign>,
}

/// The declared type of a parameter whose argument is source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Java(java::Type, Option<java::Type>),
    JavaScript(javascript::Type, Option<javascript::Type>),
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
    if function.called != call.name {
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
    let converted = match (expected.foreign, value) {
        (None, _) => None,
        (Some(Foreign::Java(kind, items)), Value::String(text)) => {
            Some(java::convert(text, kind, items).ok_or(Wrong::Type)?)
        }
        (Some(Foreign::JavaScript(kind, items)), Value::String(text)) => {
            Some(javascript::convert(text, kind, items).ok_or(Wrong::Type)?)
        }
        (Some(_), _) => return Err(Wrong::Type),
    };
    let value = converted.as_ref().unwrap_or(value);
    let as_float = match (expected.kind, value) {
        _ if expected.foreign.is_some() => None,
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
    let item_type = ParameterType { kind: item_type, items: None, foreign: None };
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
        Function::in_language(value, Language::Python)
    }

    /// As [`Function::from_json`], for a function of a language.
    ///
    /// # Errors
    /// If the value does not have this form, or a type is not one of the language.
    pub fn in_language(value: &Value<'_>, language: Language) -> Result<Self, Malformed> {
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
            Ok((name.to_owned(), ParameterType::from_json(property, language)?))
        };
        Ok(Function {
            name: name.clone().into_owned(),
            called: name.clone().into_owned(),
            parameters: properties.iter().map(parameter).collect::<Result<_, _>>()?,
            required: required.iter().map(name_of).collect::<Result<_, _>>()?,
        })
    }

    /// The function as models call it whose interface allows no dots in names.
    #[must_use]
    pub fn with_underscores(self) -> Self {
        Function { called: self.name.replace('.', "_"), ..self }
    }
}

impl ParameterType {
    fn from_json(property: &Value<'_>, language: Language) -> Result<Self, Malformed> {
        let name = |property: &Value<'_>| match property {
            Value::Object(property) => match property.get("type") {
                Some(Value::String(name)) => Ok(name.clone().into_owned()),
                _ => Err(Malformed("function description: a parameter without type".into())),
            },
            _ => Err(Malformed("function description: a parameter without type".into())),
        };
        let unknown = |name: &str| Malformed(format!("function description: type {name:?}"));
        let outer = name(property)?;
        let is_list = matches!(&*outer, "array" | "tuple" | "Array" | "ArrayList");
        let items = match property {
            Value::Object(property) if is_list => property.get("items").map(name).transpose()?,
            _ => None,
        };
        let (kind, inner, foreign) = match language {
            Language::Python => {
                let named = |name: &str| Type::of_python(name).ok_or_else(|| unknown(name));
                (named(&outer)?, items.as_deref().map(named).transpose()?, None)
            }
            Language::Java => {
                let named = |name: &str| java::Type::named(name).ok_or_else(|| unknown(name));
                let (outer, items) = (named(&outer)?, items.as_deref().map(named).transpose()?);
                let inner = items.map(java::Type::python);
                (outer.python(), inner, Some(Foreign::Java(outer, items)))
            }
            Language::JavaScript => {
                let named = |name: &str| javascript::Type::named(name).ok_or_else(|| unknown(name));
                let (outer, items) = (named(&outer)?, items.as_deref().map(named).transpose()?);
                let inner = items.map(javascript::Type::python);
                (outer.python(), inner, Some(Foreign::JavaScript(outer, items)))
            }
        };
        Ok(ParameterType { kind, items: inner, foreign })
    }
}

impl Type {
    /// The type of a name in a description of a Python function: BFCL's own, and those of JSON Schema.
    fn of_python(name: &str) -> Option<Type> {
        Some(match name {
            "string" | "any" => Type::Str,
            "integer" => Type::Int,
            "float" | "number" => Type::Float,
            "boolean" => Type::Bool,
            "array" | "tuple" => Type::List,
            "dict" | "object" => Type::Dict,
            _ => return None,
        })
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
mod tests;

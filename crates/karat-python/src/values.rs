//! Calls of tools as Python writes them, as values that the metrics compare.
//!
//! A call is a mapping (`name`, `arguments`), a pair, a name, or an object with these attributes, such as
//! the `ToolCall` of RAGAS and of DeepEval.

use std::borrow::Cow;

use karat_metrics::calls::json::{self, Reader};
use karat_metrics::calls::{Arguments, Call, CallKind, Object, Value};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::error::{self, Place};

/// The names under which libraries keep the arguments of a call.
const ARGUMENTS: [&str; 4] = ["arguments", "args", "input_parameters", "input"];
/// Lists and objects are not nested deeper than this; a list may contain itself.
const MAX_DEPTH: usize = 128;

/// Reads a list of calls; `side` names it in messages.
pub(crate) fn calls(list: &Bound<'_, PyAny>, side: &str) -> PyResult<Vec<Call<'static>>> {
    let mut calls = Vec::new();
    for (position, one) in list.try_iter()?.enumerate() {
        let at = || format!("{side}[{position}]");
        calls.push(call(&one?, &at)?);
    }
    Ok(calls)
}

fn call(one: &Bound<'_, PyAny>, at: &dyn Fn() -> String) -> PyResult<Call<'static>> {
    let (name, arguments, output, kind) = if let Ok(name) = one.cast::<PyString>() {
        (name.clone().into_any(), None, None, None)
    } else if let Ok(pair) = one.cast::<PyTuple>() {
        let (name, arguments): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        (name, Some(arguments), None, None)
    } else if let Ok(mapping) = one.cast::<PyMapping>() {
        let get = |key: &str| mapping.get_item(key).ok();
        let name = get("name");
        let name = name.ok_or_else(|| wrong(one, &format!("{} has no `name`", at())))?;
        (name, ARGUMENTS.iter().find_map(|key| get(key)), get("output"), get("type"))
    } else {
        let get = |key: &str| one.getattr_opt(key).ok().flatten();
        let name = get("name");
        let name = name.ok_or_else(|| {
            let kind = kind_of(one);
            wrong(one, &format!("{} is a {kind}, which is not a call: it has no name", at()))
        })?;
        (name, ARGUMENTS.iter().find_map(|key| get(key)), get("output"), get("type"))
    };
    let Ok(name) = name.cast::<PyString>() else {
        return Err(wrong(one, &format!("the name of {} is not a string", at())));
    };
    Ok(Call {
        name: Cow::Owned(name.to_str()?.to_owned()),
        arguments: match arguments {
            Some(given) if !given.is_none() => Some(object(&given, at)?),
            _ => None,
        },
        output: match output {
            Some(given) => value(&given, at, 0)?,
            None => Value::Null,
        },
        kind: kind.map_or(CallKind::Function, |kind| kind_of_call(&kind)),
    })
}

/// DeepEval has a kind for tools of MCP servers, by an enumeration or its text; other words are functions.
fn kind_of_call(given: &Bound<'_, PyAny>) -> CallKind {
    let value = given.getattr_opt("value").ok().flatten();
    let text = value.as_ref().unwrap_or(given).extract::<PyBackedStr>();
    match text.is_ok_and(|text| text.eq_ignore_ascii_case("mcp")) {
        true => CallKind::Mcp,
        false => CallKind::Function,
    }
}

/// Arguments: a mapping, or the JSON text of one, as chat completions have it.
fn object(given: &Bound<'_, PyAny>, at: &dyn Fn() -> String) -> PyResult<Arguments<'static>> {
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_str()?;
        let object = Reader::new(text).read_object();
        return match (object, json::parse(text)) {
            (Ok(object), Ok(_)) => Ok(object.into_owned().into()),
            (Err(error), _) | (_, Err(error)) => {
                Err(wrong(given, &format!("the arguments of {}: {error}", at())))
            }
        };
    }
    match value(given, at, 0)? {
        Value::Object(object) => Ok(object.into()),
        _ => {
            let kind = kind_of(given);
            Err(wrong(given, &format!("the arguments of {} are a {kind}, not a mapping", at())))
        }
    }
}

fn value(
    given: &Bound<'_, PyAny>,
    at: &dyn Fn() -> String,
    depth: usize,
) -> PyResult<Value<'static>> {
    if depth > MAX_DEPTH {
        return Err(wrong(given, &format!("{} is nested deeper than {MAX_DEPTH} levels", at())));
    }
    if given.is_none() {
        Ok(Value::Null)
    } else if let Ok(text) = given.cast::<PyString>() {
        Ok(Value::String(Cow::Owned(text.to_str()?.to_owned())))
    } else if let Ok(flag) = given.cast::<PyBool>() {
        Ok(Value::Bool(flag.is_true()))
    } else if given.cast::<PyInt>().is_ok() {
        match given.extract::<i64>() {
            Ok(number) => Ok(Value::Int(number)),
            Err(_) => {
                let digits = given.str()?;
                let parsed = json::parse(digits.to_str()?).map(Value::into_owned);
                parsed.map_err(|error| wrong(given, &format!("{}: {error}", at())))
            }
        }
    } else if let Ok(number) = given.cast::<PyFloat>() {
        match number.value() {
            number if number.is_nan() => {
                Err(wrong(given, &format!("{} has a NaN, which is not equal to itself", at())))
            }
            number => Ok(Value::Float(number)),
        }
    } else if given.cast::<PyList>().is_ok() || given.cast::<PyTuple>().is_ok() {
        let items = given.try_iter()?.map(|item| value(&item?, at, depth + 1));
        Ok(Value::List(items.collect::<PyResult<_>>()?))
    } else if let Ok(dict) = given.cast::<PyDict>() {
        let mut entries = Vec::with_capacity(dict.len());
        for (key, item) in dict.iter() {
            let Ok(key) = key.cast::<PyString>() else {
                return Err(wrong(given, &format!("{} has a key that is not a string", at())));
            };
            entries.push((key.to_str()?.to_owned(), value(&item, at, depth + 1)?));
        }
        Ok(Value::Object(entries.into_iter().collect::<Object<'static>>()))
    } else {
        let kind = kind_of(given);
        Err(wrong(given, &format!("{} has a {kind}, which JSON does not have", at())))
    }
}

fn kind_of(given: &Bound<'_, PyAny>) -> String {
    given.get_type().name().map_or_else(|_| "value".to_owned(), |name| name.to_string())
}

fn wrong(given: &Bound<'_, PyAny>, message: &str) -> PyErr {
    error::located(given.py(), message, Place::default())
}

//! Arguments that are JavaScript source, converted as bfcl-eval does: literals by their pattern, arrays
//! and objects by splitting, everything else kept as text.

use std::collections::HashSet;

use super::super::{Object, Value};
use super::Type as Python;
use super::scalar::{
    after_space, before_end, float, inside, integer, is_decimal, is_integer, number_or_text,
};

/// A text longer than this is not searched for an array of arrays.
const MAX_NESTED: usize = 16 << 10;
/// Objects in objects beyond this depth are kept as text.
const MAX_DEPTH: usize = 32;

/// The types of JavaScript parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    String,
    Integer,
    Float,
    Bigint,
    Boolean,
    Dict,
    Array,
    Any,
}

impl Type {
    pub(super) fn named(name: &str) -> Option<Type> {
        Some(match name {
            "String" => Type::String,
            "integer" => Type::Integer,
            "float" => Type::Float,
            "Bigint" => Type::Bigint,
            "Boolean" => Type::Boolean,
            "dict" => Type::Dict,
            "array" => Type::Array,
            "any" => Type::Any,
            _ => return None,
        })
    }

    /// The type of the converted value.
    pub(super) fn python(self) -> Python {
        match self {
            Type::String | Type::Any => Python::Str,
            Type::Integer | Type::Bigint => Python::Int,
            Type::Float => Python::Float,
            Type::Boolean => Python::Bool,
            Type::Dict => Python::Dict,
            Type::Array => Python::List,
        }
    }
}

/// The value of a text.
pub(super) fn convert(text: &str, kind: Type, items: Option<Type>) -> Option<Value<'static>> {
    let plain = before_end(text);
    let found = match kind {
        Type::String if is_quoted(text) => Some(Value::from(inside(text).to_owned())),
        Type::Integer if is_integer(plain) => Some(integer(plain)),
        Type::Float if is_decimal(plain, false) => float(plain),
        Type::Bigint => text.strip_suffix('n').filter(|text| is_integer(text)).map(integer),
        Type::Boolean if text == "true" => Some(Value::Bool(true)),
        Type::Boolean if text == "false" => Some(Value::Bool(false)),
        Type::Dict => return Some(dict(text.trim(), 0)),
        Type::Array => return Some(array(text.trim(), items)),
        _ => None,
    };
    Some(found.unwrap_or_else(|| Value::from(text.to_owned())))
}

fn is_quoted(text: &str) -> bool {
    ['"', '\''].iter().any(|quote| text.starts_with(*quote) && text.ends_with(*quote))
}

/// The value of a text of unknown type.
fn guessed(text: &str) -> Value<'static> {
    let text = text.trim();
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if is_quoted(text) => Value::from(inside(text).to_owned()),
        _ => number_or_text(text),
    }
}

fn array(code: &str, items: Option<Type>) -> Value<'static> {
    if let Some(whole) = array_of_arrays(code) {
        let mut rest = whole;
        let mut rows = Vec::new();
        while let Some(start) = rest.find('[') {
            let inner = &rest[start + 1..];
            // A row ends on its line, as `.` of a pattern does.
            let Some(end) = inner.find([']', '\n']) else { break };
            if inner.as_bytes()[end] == b'\n' {
                rest = inner;
                continue;
            }
            let mut row = inner[..end].trim();
            if rows.is_empty() {
                row = row.strip_prefix('[').unwrap_or(row);
            }
            rows.push(Value::List(row.split(',').map(guessed).collect()));
            rest = &inner[end + 1..];
        }
        return Value::List(rows);
    }
    let one_line = |text: &str, end: char| -> Option<String> {
        let inner = &text[..text.find(end)?];
        (!inner.contains('\n')).then(|| inner.trim().to_owned())
    };
    let listed = match code.strip_prefix('[') {
        Some(rest) => one_line(rest, ']'),
        None => after_new(code).and_then(|rest| one_line(rest, ')')),
    };
    let Some(listed) = listed else { return Value::from(code.to_owned()) };
    if listed.is_empty() {
        return Value::List(Vec::new());
    }
    let element = |text: &str| match items {
        Some(kind) => convert(text.trim(), kind, None),
        None => Some(guessed(text)),
    };
    match listed.split(',').map(element).collect() {
        Some(elements) => Value::List(elements),
        None => Value::from(code.to_owned()),
    }
}

/// The text after `new Array(`.
fn after_new(code: &str) -> Option<&str> {
    after_space(code.strip_prefix("new")?, 1)?.strip_prefix("Array(")
}

/// The beginning of a text that is an array of arrays, `[[…], […]]` or `new Array([…], […])`.
fn array_of_arrays(code: &str) -> Option<&str> {
    if code.len() > MAX_NESTED {
        return None;
    }
    let (rest, end) = match code.strip_prefix('[') {
        Some(rest) => (rest, b']'),
        None => (after_new(code)?, b')'),
    };
    let first = rest.trim_start().strip_prefix('[')?;
    let rows = Rows { code, end, failed: HashSet::new() };
    let start = code.len() - first.len();
    let length = { rows }.row(start)?;
    Some(&code[..length])
}

/// The search for the rows of an array, each as short as possible and as many as possible.
struct Rows<'t> {
    code: &'t str,
    end: u8,
    /// The places behind a row from which nothing follows.
    failed: HashSet<usize>,
}

impl Rows<'_> {
    /// Finds the end of the whole from the place behind the `[` of a row.
    fn row(&mut self, first: usize) -> Option<usize> {
        // Behind each row that may still grow: the next `]` to try.
        let mut open = vec![first];
        let bytes = self.code.as_bytes();
        while let Some(from) = open.pop() {
            let line = self.code[from..].find('\n').map_or(self.code.len(), |at| from + at);
            let Some(at) = self.code[from..line].find(']') else { continue };
            let close = from + at;
            open.push(close + 1);
            let behind = self.skip(close + 1);
            if !self.failed.insert(behind) {
                continue;
            }
            let more = (bytes.get(behind) == Some(&b',')).then(|| self.skip(behind + 1));
            match more.filter(|at| bytes.get(*at) == Some(&b'[')) {
                Some(next) => open.push(next + 1),
                None if bytes.get(behind) == Some(&self.end) => return Some(behind + 1),
                None => {}
            }
        }
        None
    }

    fn skip(&self, at: usize) -> usize {
        self.code.len() - self.code[at..].trim_start().len()
    }
}

fn dict(code: &str, depth: usize) -> Value<'static> {
    if code == "{}" {
        return Value::Object(Object::new());
    }
    let content = code.strip_prefix('{').and_then(|rest| Some(&rest[..rest.find('}')?]));
    let Some(content) = content.filter(|content| !content.contains('\n') && depth < MAX_DEPTH)
    else {
        return Value::from(code.to_owned());
    };
    let quotes = ['\'', '"'];
    let pair = |(key, value): (&str, &str)| {
        let (key, value) = (key.trim().trim_matches(quotes), value.trim());
        let value = if value.starts_with('[') && value.ends_with(']') {
            array(value, None)
        } else if value.starts_with('{') && value.ends_with('}') {
            dict(value, depth + 1)
        } else {
            guessed(value.trim_matches(quotes))
        };
        (key.to_owned(), value)
    };
    Value::Object(pairs(content).into_iter().map(pair).collect())
}

/// The keys and values of an object: a value ends at a comma behind which another key follows before
/// the next comma.
fn pairs(content: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = content;
    loop {
        rest = rest.trim_start_matches(':');
        let Some(colon) = rest.find(':') else { return found };
        let value = rest[colon + 1..].trim_start();
        let is_key = |at: usize| {
            let mut after = value[at + 1..].chars();
            after.next().is_some_and(|first| first != ',')
                && after.find(|c| matches!(c, ',' | ':')) == Some(':')
        };
        let end = value.match_indices(',').map(|(at, _)| at).find(|at| is_key(*at));
        match end {
            Some(at) => {
                found.push((&rest[..colon], &value[..at]));
                rest = value[at + 1..].trim_start();
            }
            None => {
                found.push((&rest[..colon], value));
                return found;
            }
        }
    }
}

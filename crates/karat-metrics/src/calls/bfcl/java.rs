//! Arguments that are Java source, converted as bfcl-eval does: literals by their pattern, collections
//! by a few forms, everything else kept as text.

use super::super::{Object, Value};
use super::Type as Python;
use super::scalar::{
    after_space, after_word, before_end, float, inside, integer, is_decimal, is_integer,
    number_or_text,
};

/// The types of Java parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Integer,
    Float,
    Double,
    Long,
    Boolean,
    Text,
    Array,
    ArrayList,
    HashMap,
    /// Named in the table of types, and not converted.
    Unsupported(Python),
}

impl Type {
    pub(super) fn named(name: &str) -> Option<Type> {
        Some(match name {
            "byte" | "short" | "integer" => Type::Integer,
            "float" => Type::Float,
            "double" => Type::Double,
            "long" => Type::Long,
            "boolean" => Type::Boolean,
            "char" | "String" | "any" => Type::Text,
            "Array" => Type::Array,
            "ArrayList" => Type::ArrayList,
            "HashMap" => Type::HashMap,
            "Hashtable" => Type::Unsupported(Python::Dict),
            "Queue" | "Stack" | "Set" => Type::Unsupported(Python::List),
            _ => return None,
        })
    }

    /// The type of the converted value.
    pub(super) fn python(self) -> Python {
        match self {
            Type::Integer | Type::Long => Python::Int,
            Type::Float | Type::Double => Python::Float,
            Type::Boolean => Python::Bool,
            Type::Text => Python::Str,
            Type::Array | Type::ArrayList => Python::List,
            Type::HashMap => Python::Dict,
            Type::Unsupported(kind) => kind,
        }
    }
}

/// A longer text is not searched for a collection: the search is quadratic.
const MAX_COLLECTION: usize = 16 << 10;

/// The value of a text; none if the type is not converted.
pub(super) fn convert(text: &str, kind: Type, items: Option<Type>) -> Option<Value<'static>> {
    let plain = before_end(text);
    if text.len() > MAX_COLLECTION && !matches!(kind, Type::Unsupported(_)) {
        return Some(Value::from(text.to_owned()));
    }
    let literal = match kind {
        Type::Integer if is_integer(plain) => Some(integer(plain)),
        Type::Float => plain.strip_suffix(['f', 'F']).and_then(decimal),
        Type::Double => decimal(plain),
        Type::Long => long(plain),
        Type::Boolean if text == "true" => Some(Value::Bool(true)),
        Type::Boolean if text == "false" => Some(Value::Bool(false)),
        Type::ArrayList => array_list(text, items)?,
        Type::Array => array(text, items)?,
        Type::HashMap => hash_map(text),
        Type::Unsupported(_) => return None,
        _ => None,
    };
    Some(literal.unwrap_or_else(|| Value::from(text.to_owned())))
}

fn decimal(text: &str) -> Option<Value<'static>> {
    is_decimal(text, true).then(|| float(text)).flatten()
}

fn long(text: &str) -> Option<Value<'static>> {
    text.strip_suffix(['l', 'L']).filter(|digits| is_integer(digits)).map(integer)
}

/// The value of a text of unknown type.
fn guessed(text: &str) -> Value<'static> {
    let plain = before_end(text);
    match text {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    if text.starts_with('"') && text.ends_with('"') {
        return Value::from(inside(text).to_owned());
    }
    long(plain)
        .or_else(|| plain.strip_suffix(['f', 'F']).and_then(decimal))
        .unwrap_or_else(|| number_or_text(text))
}

/// The texts after each `new NAME`, in order.
fn after_new<'t>(text: &'t str, name: &'static str) -> impl Iterator<Item = &'t str> {
    text.match_indices("new")
        .filter_map(move |(at, _)| after_space(&text[at + 3..], 1)?.strip_prefix(name))
}

/// The texts after each `new ArrayList<…>`.
fn after_list(text: &str) -> impl Iterator<Item = &str> {
    after_new(text, "ArrayList<").filter_map(|rest| after_word(rest).strip_prefix('>'))
}

/// A list, none if the text is of no known form, and nothing at all if an element is not converted.
fn array_list(text: &str, items: Option<Type>) -> Option<Option<Value<'static>>> {
    let element = |text: &str| match items {
        Some(Type::Text) => Some(Value::from(inside(text).to_owned())),
        Some(kind) => convert(text, kind, None),
        None => Some(guessed(text)),
    };
    let of = |parts: Vec<&str>| -> Option<Option<Value<'static>>> {
        let values: Option<Vec<_>> = parts.into_iter().map(|part| element(part.trim())).collect();
        values.map(|values| Some(Value::List(values)))
    };
    let as_list = |rest: &str| -> Option<String> {
        let inner = rest.strip_prefix("(Arrays.asList(")?;
        enclosed(inner, "))").map(str::to_owned)
    };
    if let Some(inner) = after_list(text).find_map(as_list) {
        return of(inner.split(',').collect());
    }
    let block = |rest: &str| -> Option<String> {
        let inner = rest.strip_prefix("()")?.trim_start().strip_prefix("{{")?;
        let spaces = inner.len() - inner.trim_start().len();
        let last = inner[..spaces].char_indices().next_back().map_or(0, |(at, _)| at);
        // One character at least belongs to the content, be it a space.
        [spaces, last].into_iter().find_map(|start| {
            let first = inner[start..].chars().next()?.len_utf8();
            let end = start + first + inner[start + first..].find("}}")?;
            Some(inner[start..end].to_owned())
        })
    };
    if let Some(block) = after_list(text).find_map(block) {
        return of(calls_of(&block, "add("));
    }
    let empty = after_list(text).any(|rest| rest.starts_with("()"));
    Some(empty.then(|| Value::List(Vec::new())))
}

/// The text up to the first `end`, at least one character and on one line.
fn enclosed<'t>(text: &'t str, end: &str) -> Option<&'t str> {
    let first = text.chars().next()?.len_utf8();
    let length = first + text[first..].find(end)?;
    let inner = &text[..length];
    (!inner.contains('\n')).then_some(inner)
}

/// The arguments of each call of a method.
fn calls_of<'t>(mut text: &'t str, method: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    while let Some(at) = text.find(method) {
        text = &text[at + method.len()..];
        if let Some(inner) = enclosed(text, ")") {
            found.push(inner);
            text = &text[inner.len() + 1..];
        }
    }
    found
}

fn array(text: &str, items: Option<Type>) -> Option<Option<Value<'static>>> {
    let content = |(at, _): (usize, &str)| -> Option<&str> {
        let rest = after_space(&text[at + 3..], 1)?;
        let after = after_word(rest);
        let inner = (after.len() < rest.len()).then_some(after)?.strip_prefix("[]")?;
        let inner = inner.trim_start().strip_prefix('{')?;
        let inner = &inner[..inner.find('}')?];
        (!inner.contains('\n')).then_some(inner)
    };
    let Some(inner) = text.match_indices("new").find_map(content) else { return Some(None) };
    let parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
    let values: Option<Vec<_>> = parts
        .map(|part| match items {
            Some(kind) => convert(part, kind, None),
            None => Some(guessed(part)),
        })
        .collect();
    values.map(|values| Some(Value::List(values)))
}

/// The texts after `()` behind each `>` of a text.
fn after_generics(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('>').filter_map(|(at, _)| {
        let rest = text[at + 1..].trim_start().strip_prefix("()")?;
        Some((at, rest))
    })
}

fn hash_map(text: &str) -> Option<Value<'static>> {
    let block = |text: &str| -> Option<String> {
        after_generics(text).find_map(|(_, rest)| {
            let inner = rest.trim_start().strip_prefix('{')?.trim_start();
            let inner = inner.strip_prefix('{').unwrap_or(inner).trim_start();
            Some(inner[..inner.find('}')?].trim_end().to_owned())
        })
    };
    if let Some(block) = after_new(text, "HashMap<").find_map(block) {
        let pairs = puts(&block).into_iter();
        let map: Object<'static> =
            pairs.map(|(key, value)| (key.to_owned(), guessed(value.trim()))).collect();
        return Some(Value::Object(map));
    }
    let mut maps = after_new(text, "HashMap<");
    let empty = maps.any(|rest| after_generics(rest).any(|(at, _)| !rest[..at].contains('\n')));
    empty.then(|| Value::Object(Object::new()))
}

/// The keys and values of each `put("key", value)`.
fn puts(mut text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    while let Some(at) = text.find("put(\"") {
        let rest = &text[at + 5..];
        let pair = rest.match_indices("\",").find_map(|(end, _)| {
            let (value, after) = rest[end + 2..].trim_start().split_once(')')?;
            let on_one_line = !rest[..end].contains('\n') && !value.contains('\n');
            on_one_line.then_some((&rest[..end], value, after))
        });
        match pair {
            Some((key, value, after)) => {
                found.push((key, value));
                text = after;
            }
            None => text = rest,
        }
    }
    found
}

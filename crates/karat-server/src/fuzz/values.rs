//! Values for a schema: the simplest, the fullest, several different ones, and those at and beyond its
//! edges. The schema validator decides which of them match.

use std::collections::HashSet;

use regex::Regex;
use serde_json::{Map, Number, Value, json};

use super::case::InputKind as Kind;
use super::shape::{Plain, Shapes};
use super::texts;

/// The depth to which values are made.
const MAX_DEPTH: usize = 6;
/// The depth of deep values: below the limits of the schema validator and of most JSON readers.
const DEEP: usize = 100;
/// The lengths of long texts.
const LONG: usize = 64 << 10;
const HUGE: usize = 1 << 20;
/// The number of entries of long lists.
const MANY: usize = 10_000;
/// The largest bound that is tried.
const MAX_BOUND: usize = 256 << 10;
/// The largest size of a whole value, and of a list by itself.
const MAX_BYTES: usize = 256 << 10;
const MAX_LIST_BYTES: usize = 1 << 20;
/// The size that every value counts, however small.
const EACH: usize = 16;
/// The number of values of an enumeration that are tried.
const MAX_ENUM: usize = 64;
/// The number of fields that are invented for an object, and of attempts at a value that differs.
const MAX_INVENTED: usize = 64;
const MAX_ATTEMPTS: usize = 64;

/// A value to put in some place, with its purpose.
#[derive(Clone, Debug)]
pub(super) struct Try {
    pub(super) kind: Kind,
    pub(super) about: String,
    pub(super) value: Value,
}

impl Try {
    fn new(kind: Kind, about: impl Into<String>, value: Value) -> Try {
        Try { kind, about: about.into(), value }
    }
}

/// The properties that an object gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Required,
    All,
}

/// The size of the values at the edges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Small,
    Huge,
}

/// The simplest value of a schema.
pub(crate) fn base(shapes: &Shapes<'_>, schema: &Value, extent: Extent) -> Option<Value> {
    shapes.allow(MAX_BYTES);
    based(shapes, schema, extent, MAX_DEPTH)
}

/// The simplest value of one alternative of a schema.
pub(super) fn of_way(shapes: &Shapes<'_>, plain: &Plain, extent: Extent) -> Option<Value> {
    shapes.allow(MAX_BYTES);
    of_plain(shapes, plain, extent, MAX_DEPTH - 1)
}

/// The entries of a list of this length, if the alternative is a list.
pub(super) fn list_of(shapes: &Shapes<'_>, plain: &Plain, count: usize) -> Vec<Value> {
    shapes.allow(MAX_BYTES);
    match kind_of(plain) {
        Some("array") => list(shapes, plain, count, Extent::Required, MAX_DEPTH - 1),
        _ => Vec::new(),
    }
}

fn based(shapes: &Shapes<'_>, schema: &Value, extent: Extent, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    shapes.spend(EACH)?;
    shapes.alternatives(schema).iter().find_map(|plain| of_plain(shapes, plain, extent, depth))
}

fn of_plain(shapes: &Shapes<'_>, plain: &Plain, extent: Extent, depth: usize) -> Option<Value> {
    let first = |key: &str| plain.get(key).and_then(Value::as_array).and_then(|list| list.first());
    let suggested = first("examples").or_else(|| plain.get("default"));
    let stated = plain.get("const").or_else(|| first("enum"));
    if let Some(value) =
        stated.or_else(|| suggested.filter(|value| !value.is_null() && !leads_away(value)))
    {
        shapes.spend(byte_size(value))?;
        return Some(value.clone());
    }
    match kind_of(plain) {
        Some("object") => Some(object(shapes, plain, extent, depth)),
        Some("array") => {
            Some(Value::Array(list(shapes, plain, entries(plain, extent), extent, depth)))
        }
        Some("string") => {
            let text = string(plain);
            shapes.spend(text.len())?;
            Some(json!(text))
        }
        Some("integer" | "number") => number(plain),
        Some("boolean") => Some(json!(true)),
        Some("null") => Some(Value::Null),
        Some(_) => None,
        None => Some(json!("text")),
    }
}

/// Returns whether a value is the address of another machine: generated calls must not reach one only because
/// a schema has its address as a default.
fn leads_away(value: &Value) -> bool {
    let Some((_, rest)) = value.as_str().and_then(|text| text.split_once("://")) else {
        return false;
    };
    !rest.starts_with("127.0.0.1") && !rest.starts_with("localhost")
}

pub(super) fn kind_of(plain: &Plain) -> Option<&str> {
    plain.get("type").and_then(Value::as_str)
}

/// The names that an object must have.
pub(super) fn required(plain: &Plain) -> Vec<&str> {
    let names = plain.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The schema of a property: by its name, by a pattern, or the one of all other properties.
pub(super) fn property<'a>(plain: &'a Plain, name: &str) -> Option<&'a Value> {
    let named = plain.get("properties").and_then(|properties| properties.get(name));
    let formed = || {
        let patterns = plain.get("patternProperties").and_then(Value::as_object)?;
        let fits = |pattern: &str| Regex::new(pattern).is_ok_and(|found| found.is_match(name));
        patterns.iter().find(|(pattern, _)| fits(pattern)).map(|(_, schema)| schema)
    };
    named.or_else(formed).or_else(|| plain.get("additionalProperties"))
}

/// The schema of an entry of a list.
pub(super) fn entry(plain: &Plain, at: usize) -> Option<&Value> {
    let prefix = plain.get("prefixItems").and_then(Value::as_array);
    prefix.and_then(|prefix| prefix.get(at)).or_else(|| plain.get("items"))
}

fn object(shapes: &Shapes<'_>, plain: &Plain, extent: Extent, depth: usize) -> Value {
    let mut object = Map::new();
    let required = required(plain);
    let properties = plain.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if (extent == Extent::All || required.contains(&name.as_str()))
            && let Some(value) = based(shapes, schema, extent, depth)
        {
            object.insert(name.clone(), value);
        }
    }
    for name in required {
        demand(shapes, plain, name, &mut object, depth);
    }
    let depends = plain.get("dependentRequired").and_then(Value::as_object);
    for (name, others) in depends.into_iter().flatten() {
        if object.contains_key(name) {
            let names = others.as_array().into_iter().flatten().filter_map(Value::as_str);
            names.for_each(|name| demand(shapes, plain, name, &mut object, depth));
        }
    }
    let least = length(plain, "minProperties").unwrap_or(0).min(MAX_INVENTED);
    for (name, _) in properties.into_iter().flatten() {
        if object.len() < least {
            demand(shapes, plain, name, &mut object, depth);
        }
    }
    invent(shapes, plain, least, extent, &mut object, depth);
    Value::Object(object)
}

/// Adds a property that the object needs.
fn demand(
    shapes: &Shapes<'_>,
    plain: &Plain,
    name: &str,
    object: &mut Map<String, Value>,
    depth: usize,
) {
    if object.contains_key(name) {
        return;
    }
    let schema = property(plain, name);
    let made = schema.and_then(|schema| based(shapes, schema, Extent::Required, depth));
    object.insert(name.to_owned(), made.unwrap_or_else(|| json!("text")));
}

/// Adds fields with invented names: as many as the object lacks, and one more if all fields are wanted
/// and the schema describes such fields.
fn invent(
    shapes: &Shapes<'_>,
    plain: &Plain,
    least: usize,
    extent: Extent,
    object: &mut Map<String, Value>,
    depth: usize,
) {
    let patterns = plain.get("patternProperties").and_then(Value::as_object);
    let pattern = patterns.and_then(|all| all.keys().next()).map(String::as_str);
    let others = plain.get("additionalProperties");
    let described = others.is_some_and(|schema| schema.as_object().is_some_and(|s| !s.is_empty()));
    let one_more = extent == Extent::All && (described || pattern.is_some());
    let most = length(plain, "maxProperties").unwrap_or(usize::MAX);
    let wanted = if one_more { least.max(object.len() + 1).min(most) } else { least };
    if pattern.is_none() && others == Some(&json!(false)) {
        return;
    }
    for number in 0..wanted + MAX_ATTEMPTS {
        if object.len() >= wanted {
            return;
        }
        let Some(name) = invented_name(shapes, plain, pattern, number) else { return };
        demand(shapes, plain, &name, object, depth);
    }
}

fn invented_name(
    shapes: &Shapes<'_>,
    plain: &Plain,
    pattern: Option<&str>,
    number: usize,
) -> Option<String> {
    if let Some(schema) = plain.get("propertyNames").and_then(Value::as_object) {
        let mut names = schema.clone();
        names.insert("type".to_owned(), json!("string"));
        let name = another(shapes, &shapes.alternatives(&Value::Object(names)), number, 1)?;
        return name.as_str().map(str::to_owned);
    }
    match pattern {
        Some(pattern) => {
            let name = texts::of_pattern(pattern, 1, number)?;
            let longer = format!("{name}{number}");
            let fits = number > 0 && Regex::new(pattern).is_ok_and(|found| found.is_match(&longer));
            Some(if fits { longer } else { name })
        }
        None if number == 0 => Some("key".to_owned()),
        None => Some(format!("key{number}")),
    }
}

/// The number of entries of a list: as few as possible, and at least one if everything is wanted.
fn entries(plain: &Plain, extent: Extent) -> usize {
    let contained = usize::from(contained(plain).is_some());
    let least = length(plain, "minItems").unwrap_or(0).max(contained);
    let most = length(plain, "maxItems").unwrap_or(usize::MAX);
    let prefix = plain.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
    match extent {
        Extent::Required => least,
        Extent::All => least.max(prefix).max(1).min(most.max(least)),
    }
}

/// The schema that one entry of a list must match.
fn contained(plain: &Plain) -> Option<&Value> {
    plain.get("contains").filter(|_| plain.get("minContains") != Some(&json!(0)))
}

fn list(
    shapes: &Shapes<'_>,
    plain: &Plain,
    count: usize,
    extent: Extent,
    depth: usize,
) -> Vec<Value> {
    let count = count.min(MANY * 2);
    let prefix = plain.get("prefixItems").and_then(Value::as_array);
    let any = json!(true);
    let rest = plain.get("items").unwrap_or(&any);
    let one = based(shapes, rest, extent, depth);
    let count = match &one {
        Some(one) if prefix.is_none() => count.min(shapes.left() / (byte_size(one) + EACH)),
        _ => count,
    };
    let distinct = plain.get("uniqueItems") == Some(&json!(true));
    let ways = if distinct { shapes.alternatives(rest) } else { Vec::new() };
    let mut seen = HashSet::new();
    let mut number = 0;
    let mut values = Vec::with_capacity(count);
    for at in 0..count {
        let value = match (prefix.and_then(|prefix| prefix.get(at)), contained(plain)) {
            (Some(schema), _) => based(shapes, schema, extent, depth),
            (None, Some(wanted)) if at == prefix.map_or(0, Vec::len) => {
                based(shapes, &json!({"allOf": [rest, wanted]}), extent, depth)
            }
            _ if distinct => fresh(shapes, &ways, &seen, &mut number, depth),
            _ => one.clone(),
        };
        let Some(value) = value else { break };
        if shapes.spend(byte_size(&value) + EACH).is_none() {
            break;
        }
        if distinct {
            seen.insert(value.to_string());
        }
        values.push(value);
    }
    values
}

/// The next value that is not in the list yet.
fn fresh(
    shapes: &Shapes<'_>,
    ways: &[Plain],
    seen: &HashSet<String>,
    number: &mut usize,
    depth: usize,
) -> Option<Value> {
    for _ in 0..MAX_ATTEMPTS {
        let value = another(shapes, ways, *number, depth)?;
        *number += 1;
        if !seen.contains(&value.to_string()) {
            return Some(value);
        }
    }
    None
}

/// One of many values of a schema, by number; two numbers may give the same.
fn another(shapes: &Shapes<'_>, ways: &[Plain], number: usize, depth: usize) -> Option<Value> {
    let mut number = number;
    for plain in ways {
        match value_count(plain) {
            Some(many) if number >= many => number -= many,
            _ => {
                if let Some(value) = numbered(shapes, plain, number, depth) {
                    return Some(value);
                }
            }
        }
    }
    None
}

/// The number of values, if they can be counted.
fn value_count(plain: &Plain) -> Option<usize> {
    if plain.contains_key("const") {
        return Some(1);
    }
    match (plain.get("enum").and_then(Value::as_array), kind_of(plain)) {
        (Some(listed), _) => Some(listed.len()),
        (None, Some("boolean")) => Some(2),
        (None, Some("null")) => Some(1),
        _ => None,
    }
}

fn numbered(shapes: &Shapes<'_>, plain: &Plain, number: usize, depth: usize) -> Option<Value> {
    if let Some(listed) = plain.get("enum").and_then(Value::as_array) {
        return listed.get(number).cloned();
    }
    if number == 0 {
        return of_plain(shapes, plain, Extent::Required, depth);
    }
    match kind_of(plain) {
        Some("string") | None => Some(json!(numbered_text(plain, number))),
        Some("integer" | "number") => numbered_number(plain, number),
        Some("boolean") => Some(json!(number.is_multiple_of(2))),
        Some("array") => {
            let count = entries(plain, Extent::Required) + number;
            let most = length(plain, "maxItems").unwrap_or(usize::MAX);
            let longer = || Value::Array(list(shapes, plain, count, Extent::Required, depth));
            (count <= most).then(longer)
        }
        Some("object") => {
            let depth = depth.checked_sub(1)?;
            let mut fields = match object(shapes, plain, Extent::Required, depth) {
                Value::Object(fields) => fields,
                _ => return None,
            };
            let properties = plain.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                let value = another(shapes, &shapes.alternatives(schema), number, depth);
                if let Some(value) = value {
                    fields.insert(name.clone(), value);
                    return Some(Value::Object(fields));
                }
            }
            None
        }
        Some(_) => None,
    }
}

fn numbered_text(plain: &Plain, number: usize) -> String {
    let least = length(plain, "minLength").unwrap_or(0).min(MAX_BOUND);
    if let Some(pattern) = plain.get("pattern").and_then(Value::as_str) {
        let repeats = u32::try_from(least).unwrap_or(1).clamp(1, MAX_REPEATS);
        return texts::of_pattern(pattern, repeats, number).unwrap_or_default();
    }
    let format = plain.get("format").and_then(Value::as_str);
    if let Some(text) = format.and_then(|format| texts::numbered_format(format, number)) {
        return text;
    }
    let most = length(plain, "maxLength").unwrap_or(usize::MAX);
    let text = format!("text{number}");
    if text.len() <= most {
        return fitted(&text, plain);
    }
    texts::letters(number, least.max(1))
}

fn numbered_number(plain: &Plain, number: usize) -> Option<Value> {
    let bound = |key: &str| plain.get(key).and_then(Value::as_f64);
    let above = |value: f64| {
        bound("minimum").is_none_or(|low| value >= low)
            && bound("exclusiveMinimum").is_none_or(|low| value > low)
    };
    let below = |value: f64| {
        bound("maximum").is_none_or(|high| value <= high)
            && bound("exclusiveMaximum").is_none_or(|high| value < high)
    };
    let by = f64::from(u32::try_from(number).ok()?);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum"));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum"));
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    if let (Some(low), Some(high), None, Some("number")) = (low, high, step, kind_of(plain)) {
        return real(low + (high - low) * (by + 1.0) / (by + 2.0));
    }
    let start = self::number(plain)?.as_f64()?;
    let step = step.unwrap_or(1.0);
    let found = [start + by * step, start - by * step];
    found.into_iter().find(|value| above(*value) && below(*value)).and_then(real)
}

/// The approximate size of a value in bytes.
fn byte_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + EACH,
        Value::Array(list) => EACH + list.iter().map(byte_size).sum::<usize>(),
        Value::Object(fields) => {
            EACH + fields.iter().map(|(key, value)| key.len() + byte_size(value)).sum::<usize>()
        }
        _ => EACH,
    }
}

fn length(plain: &Plain, key: &str) -> Option<usize> {
    plain.get(key).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok())
}

/// The number of repetitions where a pattern has no upper bound.
const MAX_REPEATS: u32 = 1_000;

fn string(plain: &Plain) -> String {
    if let Some(pattern) = plain.get("pattern").and_then(Value::as_str)
        && let Some(text) = texts::of_pattern(pattern, 1, 0)
    {
        let least = length(plain, "minLength").unwrap_or(0);
        let repeats = u32::try_from(least).unwrap_or(MAX_REPEATS).min(MAX_REPEATS);
        if text.chars().count() < least
            && let Some(longer) = texts::of_pattern(pattern, repeats, 0)
        {
            return fitted(&longer, plain);
        }
        return fitted(&text, plain);
    }
    if let Some(text) = plain.get("format").and_then(Value::as_str).and_then(texts::of_format) {
        return text.to_owned();
    }
    fitted("text", plain)
}

/// The text, extended or cut to the bounds of its length.
fn fitted(text: &str, plain: &Plain) -> String {
    let least = length(plain, "minLength").unwrap_or(0).min(MAX_BOUND);
    let most = length(plain, "maxLength").unwrap_or(usize::MAX);
    let missing = least.saturating_sub(text.chars().count());
    text.chars().chain(std::iter::repeat_n('a', missing)).take(most).collect()
}

fn number(plain: &Plain) -> Option<Value> {
    let bound = |key: &str| plain.get(key).and_then(Value::as_f64);
    let whole = kind_of(plain) == Some("integer");
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let gap = step.unwrap_or(1.0);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low + gap));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high - gap));
    let wanted = match (low, high) {
        (Some(low), Some(high)) if low > high => f64::midpoint(low, high),
        (Some(low), _) if low > 1.0 => low,
        (_, Some(high)) if high < 1.0 => high,
        _ => step.unwrap_or(1.0).max(low.unwrap_or(f64::MIN)),
    };
    let wanted = match step {
        Some(step) if high.is_some_and(|high| (wanted / step).ceil() * step > high) => {
            (wanted / step).floor() * step
        }
        Some(step) => (wanted / step).ceil() * step,
        None if whole => wanted.ceil(),
        None => wanted,
    };
    real(wanted)
}

/// A number as JSON: an integer if it is whole.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers below 2^53 are converted")]
fn real(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return Some(json!(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

/// Values at the edges of the schema and beyond: some match it and some do not.
pub(super) fn edges(shapes: &Shapes<'_>, schema: &Value, reach: Reach) -> Vec<Try> {
    let mut found = Vec::new();
    for plain in shapes.alternatives(schema) {
        for (key, kind) in [("const", Kind::Edge), ("default", Kind::Edge)] {
            if let Some(value) = plain.get(key).filter(|value| !leads_away(value)) {
                found.push(Try::new(kind, format!("its {key}"), value.clone()));
            }
        }
        for key in ["enum", "examples"] {
            let values = plain.get(key).and_then(Value::as_array);
            let here = values.into_iter().flatten().filter(|value| !leads_away(value));
            for value in here.take(MAX_ENUM) {
                found.push(Try::new(Kind::Edge, format!("a value of its {key}"), value.clone()));
            }
        }
        match kind_of(&plain) {
            Some("string") => strings(&plain, reach, &mut found),
            Some("integer" | "number") => numbers(&plain, &mut found),
            Some("boolean") => {
                found.push(Try::new(Kind::Edge, "true", json!(true)));
                found.push(Try::new(Kind::Edge, "false", json!(false)));
            }
            Some("null") => found.push(Try::new(Kind::Edge, "null", Value::Null)),
            Some("array") => lists(shapes, &plain, reach, &mut found),
            Some("object") => objects(shapes, &plain, &mut found),
            _ => {
                strings(&plain, reach, &mut found);
                numbers(&plain, &mut found);
            }
        }
    }
    found
}

fn strings(plain: &Plain, reach: Reach, found: &mut Vec<Try>) {
    found.push(Try::new(Kind::Edge, "a plain text", json!(string(plain))));
    found.push(Try::new(Kind::Boundary, "an empty text", json!("")));
    let of = |count: usize| json!("a".repeat(count));
    for (key, name) in [("minLength", "shortest"), ("maxLength", "longest")] {
        let Some(bound) = length(plain, key).filter(|bound| *bound < MAX_BOUND) else {
            continue;
        };
        found.push(Try::new(Kind::Boundary, format!("the {name} text"), of(bound)));
        let beyond = if key == "minLength" { bound.checked_sub(1) } else { Some(bound + 1) };
        if let Some(beyond) = beyond {
            let about = format!("one character beyond the {name}");
            found.push(Try::new(Kind::Boundary, about, of(beyond)));
        }
        // A bound is in characters: code that counts bytes or UTF-16 units fails on these.
        let wide = json!("👍".repeat(bound.min(LONG)));
        found.push(Try::new(Kind::Unicode, format!("the {name} text of wide characters"), wide));
    }
    if plain.contains_key("pattern") {
        found.push(Try::new(
            Kind::Boundary,
            "a text that does not match its pattern",
            json!("\u{7}~ !"),
        ));
    }
    if let Some(format) = plain.get("format").and_then(Value::as_str) {
        if let Some(text) = texts::of_format(format) {
            found.push(Try::new(Kind::Edge, format!("a {format}"), json!(text)));
        }
        found.push(Try::new(Kind::Boundary, format!("not a {format}"), json!("not this")));
    }
    if plain.contains_key("enum") || plain.contains_key("const") {
        found.push(Try::new(Kind::Boundary, "a text that is not listed", json!("karat-unlisted")));
        return;
    }
    for (about, text) in texts::UNICODE {
        found.push(Try::new(Kind::Unicode, *about, json!(text)));
    }
    for (about, text) in texts::INJECTION {
        found.push(Try::new(Kind::Injection, *about, json!(text)));
    }
    if reach == Reach::Huge {
        found.push(Try::new(Kind::Huge, "a long text", of(LONG)));
        found.push(Try::new(Kind::Huge, "a huge text", of(HUGE)));
    }
}

fn numbers(plain: &Plain, found: &mut Vec<Try>) {
    if let Some(value) = number(plain) {
        found.push(Try::new(Kind::Edge, "a plain number", value));
    }
    for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        let Some(bound) = plain.get(key).and_then(Value::as_f64) else { continue };
        for by in [-1.0, 0.0, 1.0] {
            if let Some(value) = real(bound + by) {
                let about = match by {
                    0.0 => format!("its {key}"),
                    _ => format!("one from its {key}"),
                };
                found.push(Try::new(Kind::Boundary, about, value));
            }
        }
    }
    if let Some(step) = plain.get("multipleOf").and_then(Value::as_f64)
        && let Some(value) = real(step * 1.5)
    {
        found.push(Try::new(Kind::Boundary, "not a multiple", value));
    }
    let list: &[(&str, Value)] = &[
        ("zero", json!(0)),
        ("minus one", json!(-1)),
        ("negative zero", json!(-0.0)),
        ("a fraction", json!(1.5)),
        ("2^31", json!(2_147_483_648_u64)),
        ("an integer beyond exact floats", json!(9_007_199_254_740_993_u64)),
        ("the smallest 64-bit integer", json!(i64::MIN)),
        ("the largest 64-bit integer", json!(u64::MAX)),
        ("a very large number", json!(1e300)),
        ("a very small number", json!(5e-324)),
    ];
    for (about, value) in list {
        found.push(Try::new(Kind::Edge, *about, value.clone()));
    }
}

fn lists(shapes: &Shapes<'_>, plain: &Plain, reach: Reach, found: &mut Vec<Try>) {
    let of = |count: usize| {
        shapes.allow(MAX_LIST_BYTES);
        Value::Array(list(shapes, plain, count, Extent::Required, MAX_DEPTH - 1))
    };
    found.push(Try::new(Kind::Boundary, "an empty list", json!([])));
    found.push(Try::new(Kind::Edge, "a list of one", of(1)));
    for key in ["minItems", "maxItems"] {
        let Some(bound) = length(plain, key).filter(|bound| *bound < MANY) else { continue };
        found.push(Try::new(Kind::Boundary, format!("a list of {key}"), of(bound)));
        let beyond = if key == "minItems" { bound.checked_sub(1) } else { Some(bound + 1) };
        if let Some(beyond) = beyond {
            found.push(Try::new(Kind::Boundary, format!("a list beyond {key}"), of(beyond)));
        }
    }
    if plain.get("uniqueItems") == Some(&json!(true))
        && let Value::Array(one) = of(1)
        && let Some(one) = one.first()
    {
        found.push(Try::new(Kind::Boundary, "a list with a duplicate entry", json!([one, one])));
    }
    if reach == Reach::Huge {
        found.push(Try::new(Kind::Huge, "a long list", of(MANY)));
    }
    found.push(Try::new(Kind::Type, "a list of everything", json!([null, true, 1, "a", [], {}])));
}

fn objects(shapes: &Shapes<'_>, plain: &Plain, found: &mut Vec<Try>) {
    for (about, extent) in [("the required fields", Extent::Required), ("all fields", Extent::All)]
    {
        shapes.allow(MAX_BYTES);
        found.push(Try::new(Kind::Edge, about, object(shapes, plain, extent, MAX_DEPTH - 1)));
    }
    found.push(Try::new(Kind::Missing, "an empty object", json!({})));
}

/// Values of every type: most of them do not match, whatever the schema is.
pub(super) fn of_all_types() -> Vec<Try> {
    let list: &[(&str, Value)] = &[
        ("null", Value::Null),
        ("a boolean", json!(true)),
        ("a number", json!(7)),
        ("a fraction", json!(0.5)),
        ("a text", json!("text")),
        ("a number as text", json!("7")),
        ("an empty list", json!([])),
        ("a list of a text", json!(["text"])),
        ("an empty object", json!({})),
        ("an object", json!({"text": "text"})),
    ];
    let of = |(about, value): &(&str, Value)| {
        Try::new(Kind::Type, format!("{about} instead"), value.clone())
    };
    list.iter().map(of).collect()
}

/// Values nested as deep as readers can be expected to read.
pub(super) fn deep() -> Vec<Try> {
    let (mut list, mut object) = (json!([]), json!({}));
    for _ in 1..DEEP {
        list = json!([list]);
        object = json!({"a": object});
    }
    vec![
        Try::new(Kind::Deep, format!("{DEEP} nested lists"), list),
        Try::new(Kind::Deep, format!("{DEEP} nested objects"), object),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_another_machine_is_not_taken_from_a_schema() {
        let schema = json!({"type": "string", "format": "uri", "default": "https://example.com/a",
            "examples": ["https://example.com/b", "http://127.0.0.1:1/c"]});
        let shapes = Shapes::new(&schema);
        let all = edges(&shapes, &schema, Reach::Huge);
        let plain = base(&shapes, &schema, Extent::Required).unwrap();
        let texts = all.iter().map(|one| &one.value).chain([&plain]).filter_map(Value::as_str);
        let addresses: Vec<&str> = texts.filter(|text| text.contains("://")).collect();
        assert!(addresses.len() > 1, "{addresses:?}");
        assert!(addresses.iter().all(|text| text.starts_with("http://127.0.0.1")), "{addresses:?}");
    }

    #[test]
    fn a_schema_that_demands_too_much_gets_a_bounded_value() {
        let mut nested = json!({"type": "string", "minLength": 1_000_000_000});
        for _ in 0..4 {
            nested = json!({"type": "array", "minItems": 1_000_000, "items": nested});
        }
        let wide: Map<String, Value> =
            (0..100).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/self"}))).collect();
        let own = json!({"type": "object", "properties": wide});
        let schema = json!({"type": "object", "$defs": {"self": own}, "properties": {
            "nested": nested, "wide": {"$ref": "#/$defs/self"},
        }, "required": ["nested", "wide"]});
        let shapes = Shapes::new(&schema);
        for extent in [Extent::Required, Extent::All] {
            let whole = base(&shapes, &schema, extent).unwrap_or_default();
            assert!(byte_size(&whole) < 4 * MAX_BYTES, "{}", byte_size(&whole));
        }
        let largest =
            edges(&shapes, &schema, Reach::Huge).iter().map(|one| byte_size(&one.value)).max();
        assert!(largest < Some(4 * MAX_LIST_BYTES), "{largest:?}");
    }
}

//! Values for a schema: the simplest, the fullest, and those at and beyond its edges.

use serde_json::{Map, Number, Value, json};

use super::Kind;
use super::shape::{Plain, Shapes};
use super::texts;

/// How deep values are made.
const DEPTH: usize = 6;
/// How deep the deep ones are: below the limits of the schema engine and of most JSON readers.
const DEEP: usize = 100;
/// How long the long ones are.
const LONG: usize = 64 << 10;
const HUGE: usize = 1 << 20;
/// How many entries the long lists have.
const MANY: usize = 10_000;
/// Longer bounds than this are not tried out.
const LONGEST_BOUND: usize = 256 << 10;
/// How large a whole value may become, and a list by itself.
const LARGEST: usize = 256 << 10;
const LARGEST_LIST: usize = 1 << 20;
/// What every value costs, however small.
const EACH: usize = 16;
/// How many values of an enumeration are tried.
const ENUMERATED: usize = 64;

/// A value to be put in some place, with what it is for.
#[derive(Clone, Debug)]
pub(super) struct Try {
    pub(super) kind: Kind,
    pub(super) about: String,
    pub(super) value: Value,
}

fn attempt(kind: Kind, about: impl Into<String>, value: Value) -> Try {
    Try { kind, about: about.into(), value }
}

/// Which properties an object gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Required,
    All,
}

/// The plainest value of a schema.
pub(crate) fn base(shapes: &Shapes<'_>, schema: &Value, extent: Extent) -> Option<Value> {
    shapes.allow(LARGEST);
    based(shapes, schema, extent, DEPTH)
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
        shapes.spend(weight(value))?;
        return Some(value.clone());
    }
    match kind_of(plain) {
        Some("object") => Some(object(shapes, plain, extent, depth)),
        Some("array") => Some(list(shapes, plain, length(plain, "minItems").unwrap_or(0), depth)),
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

/// Whether a value names a place on the network that is not this machine: made-up calls are not to be
/// heard of elsewhere only because a schema has an address as its default.
fn leads_away(value: &Value) -> bool {
    let Some((_, rest)) = value.as_str().and_then(|text| text.split_once("://")) else {
        return false;
    };
    !rest.starts_with("127.0.0.1") && !rest.starts_with("localhost")
}

fn kind_of(plain: &Plain) -> Option<&str> {
    plain.get("type").and_then(Value::as_str)
}

/// Names that an object must have.
pub(super) fn required(plain: &Plain) -> Vec<&str> {
    let names = plain.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
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
        object.entry(name).or_insert_with(|| json!("text"));
    }
    Value::Object(object)
}

fn list(shapes: &Shapes<'_>, plain: &Plain, count: usize, depth: usize) -> Value {
    let count = count.min(MANY * 2);
    let prefix = plain.get("prefixItems").and_then(Value::as_array);
    let any = json!(true);
    let rest = plain.get("items").unwrap_or(&any);
    let one = based(shapes, rest, Extent::Required, depth);
    let count = match &one {
        Some(one) if prefix.is_none() => count.min(shapes.left() / (weight(one) + EACH)),
        _ => count,
    };
    let distinct = plain.get("uniqueItems") == Some(&json!(true));
    let mut values = Vec::with_capacity(count);
    for at in 0..count {
        let value = match prefix.and_then(|prefix| prefix.get(at)) {
            Some(schema) => based(shapes, schema, Extent::Required, depth),
            None => one.clone(),
        };
        let Some(value) = value else { break };
        if shapes.spend(weight(&value) + EACH).is_none() {
            break;
        }
        values.push(if distinct && at > 0 { varied(&value, at) } else { value });
    }
    Value::Array(values)
}

/// About how many bytes a value takes.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + EACH,
        Value::Array(list) => EACH + list.iter().map(weight).sum::<usize>(),
        Value::Object(fields) => {
            EACH + fields.iter().map(|(key, value)| key.len() + weight(value)).sum::<usize>()
        }
        _ => EACH,
    }
}

/// Another value of the same type.
fn varied(value: &Value, by: usize) -> Value {
    match value {
        Value::String(text) => json!(format!("{text}{by}")),
        Value::Number(number) => match number.as_i64() {
            Some(number) => json!(number.saturating_add(i64::try_from(by).unwrap_or(0))),
            None => value.clone(),
        },
        other => other.clone(),
    }
}

fn length(plain: &Plain, key: &str) -> Option<usize> {
    plain.get(key).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok())
}

fn string(plain: &Plain) -> String {
    if let Some(text) = plain.get("pattern").and_then(Value::as_str).and_then(texts::of_pattern) {
        return fitted(&text, plain);
    }
    if let Some(text) = plain.get("format").and_then(Value::as_str).and_then(texts::of_format) {
        return text.to_owned();
    }
    fitted("text", plain)
}

/// The text within the bounds of its length.
fn fitted(text: &str, plain: &Plain) -> String {
    let least = length(plain, "minLength").unwrap_or(0).min(LONGEST_BOUND);
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
        Some(step) => (wanted / step).ceil() * step,
        None if whole => wanted.ceil(),
        None => wanted,
    };
    real(wanted)
}

/// A number as JSON has it: whole where it is whole.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers below 2^53 are converted")]
fn real(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return Some(json!(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

/// Values at the edges of the schema and beyond: some keep it, some break it, the engine says which.
pub(super) fn edges(shapes: &Shapes<'_>, schema: &Value) -> Vec<Try> {
    let mut found = Vec::new();
    for plain in shapes.alternatives(schema) {
        for (key, kind) in [("const", Kind::Edge), ("default", Kind::Edge)] {
            if let Some(value) = plain.get(key).filter(|value| !leads_away(value)) {
                found.push(attempt(kind, format!("its {key}"), value.clone()));
            }
        }
        for key in ["enum", "examples"] {
            let values = plain.get(key).and_then(Value::as_array);
            let here = values.into_iter().flatten().filter(|value| !leads_away(value));
            for value in here.take(ENUMERATED) {
                found.push(attempt(Kind::Edge, format!("a value of its {key}"), value.clone()));
            }
        }
        match kind_of(&plain) {
            Some("string") => strings(&plain, &mut found),
            Some("integer" | "number") => numbers(&plain, &mut found),
            Some("boolean") => {
                found.push(attempt(Kind::Edge, "true", json!(true)));
                found.push(attempt(Kind::Edge, "false", json!(false)));
            }
            Some("null") => found.push(attempt(Kind::Edge, "null", Value::Null)),
            Some("array") => lists(shapes, &plain, &mut found),
            Some("object") => objects(shapes, &plain, &mut found),
            _ => {
                strings(&plain, &mut found);
                numbers(&plain, &mut found);
            }
        }
    }
    found
}

fn strings(plain: &Plain, found: &mut Vec<Try>) {
    found.push(attempt(Kind::Edge, "a plain text", json!(string(plain))));
    found.push(attempt(Kind::Boundary, "an empty text", json!("")));
    let of = |count: usize| json!("a".repeat(count));
    for (key, name) in [("minLength", "shortest"), ("maxLength", "longest")] {
        let Some(bound) = length(plain, key).filter(|bound| *bound < LONGEST_BOUND) else {
            continue;
        };
        found.push(attempt(Kind::Boundary, format!("the {name} text"), of(bound)));
        let beyond = if key == "minLength" { bound.checked_sub(1) } else { Some(bound + 1) };
        if let Some(beyond) = beyond {
            let about = format!("one character beyond the {name}");
            found.push(attempt(Kind::Boundary, about, of(beyond)));
        }
        // A bound is in characters; whoever counts bytes or UTF-16 trips over these.
        let wide = json!("👍".repeat(bound.min(LONG)));
        found.push(attempt(Kind::Unicode, format!("the {name} text, of wide characters"), wide));
    }
    if plain.contains_key("pattern") {
        found.push(attempt(Kind::Boundary, "a text against its pattern", json!("\u{7}~ !")));
    }
    if let Some(format) = plain.get("format").and_then(Value::as_str) {
        if let Some(text) = texts::of_format(format) {
            found.push(attempt(Kind::Edge, format!("a {format}"), json!(text)));
        }
        found.push(attempt(Kind::Boundary, format!("no {format}"), json!("not this")));
    }
    if plain.contains_key("enum") || plain.contains_key("const") {
        found.push(attempt(Kind::Boundary, "a text that is not listed", json!("karat-unlisted")));
        return;
    }
    for (about, text) in texts::UNICODE {
        found.push(attempt(Kind::Unicode, *about, json!(text)));
    }
    for (about, text) in texts::INJECTION {
        found.push(attempt(Kind::Injection, *about, json!(text)));
    }
    found.push(attempt(Kind::Huge, "a long text", of(LONG)));
    found.push(attempt(Kind::Huge, "a huge text", of(HUGE)));
}

fn numbers(plain: &Plain, found: &mut Vec<Try>) {
    if let Some(value) = number(plain) {
        found.push(attempt(Kind::Edge, "a plain number", value));
    }
    for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        let Some(bound) = plain.get(key).and_then(Value::as_f64) else { continue };
        for by in [-1.0, 0.0, 1.0] {
            if let Some(value) = real(bound + by) {
                let about = match by {
                    0.0 => format!("its {key}"),
                    _ => format!("one from its {key}"),
                };
                found.push(attempt(Kind::Boundary, about, value));
            }
        }
    }
    if let Some(step) = plain.get("multipleOf").and_then(Value::as_f64)
        && let Some(value) = real(step * 1.5)
    {
        found.push(attempt(Kind::Boundary, "no multiple", value));
    }
    let list: &[(&str, Value)] = &[
        ("zero", json!(0)),
        ("minus one", json!(-1)),
        ("negative zero", json!(-0.0)),
        ("a fraction", json!(1.5)),
        ("2^31", json!(2_147_483_648_u64)),
        ("beyond exact floats", json!(9_007_199_254_740_993_u64)),
        ("the least of 64 bits", json!(i64::MIN)),
        ("the most of 64 bits", json!(u64::MAX)),
        ("a very large number", json!(1e300)),
        ("a very small number", json!(5e-324)),
    ];
    for (about, value) in list {
        found.push(attempt(Kind::Edge, *about, value.clone()));
    }
}

fn lists(shapes: &Shapes<'_>, plain: &Plain, found: &mut Vec<Try>) {
    let of = |count: usize| {
        shapes.allow(LARGEST_LIST);
        list(shapes, plain, count, DEPTH - 1)
    };
    found.push(attempt(Kind::Boundary, "an empty list", json!([])));
    found.push(attempt(Kind::Edge, "a list of one", of(1)));
    for key in ["minItems", "maxItems"] {
        let Some(bound) = length(plain, key).filter(|bound| *bound < MANY) else { continue };
        found.push(attempt(Kind::Boundary, format!("a list of {key}"), of(bound)));
        let beyond = if key == "minItems" { bound.checked_sub(1) } else { Some(bound + 1) };
        if let Some(beyond) = beyond {
            found.push(attempt(Kind::Boundary, format!("a list beyond {key}"), of(beyond)));
        }
    }
    if plain.get("uniqueItems") == Some(&json!(true))
        && let Value::Array(one) = of(1)
        && let Some(one) = one.first()
    {
        found.push(attempt(Kind::Boundary, "a list with an entry twice", json!([one, one])));
    }
    found.push(attempt(Kind::Huge, "a long list", of(MANY)));
    found.push(attempt(Kind::Type, "a list of everything", json!([null, true, 1, "a", [], {}])));
}

fn objects(shapes: &Shapes<'_>, plain: &Plain, found: &mut Vec<Try>) {
    for (about, extent) in
        [("what is required", Extent::Required), ("all that there is", Extent::All)]
    {
        shapes.allow(LARGEST);
        found.push(attempt(Kind::Edge, about, object(shapes, plain, extent, DEPTH - 1)));
    }
    found.push(attempt(Kind::Missing, "an empty object", json!({})));
}

/// Values of every type: whatever the schema wants, most of these are something else.
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
        attempt(Kind::Type, format!("{about} in its place"), value.clone())
    };
    list.iter().map(of).collect()
}

/// Nested as deep as readers can be expected to read.
pub(super) fn deep() -> Vec<Try> {
    let (mut list, mut object) = (json!([]), json!({}));
    for _ in 1..DEEP {
        list = json!([list]);
        object = json!({"a": object});
    }
    vec![
        attempt(Kind::Deep, format!("{DEEP} lists in each other"), list),
        attempt(Kind::Deep, format!("{DEEP} objects in each other"), object),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_elsewhere_is_not_taken_from_a_schema() {
        let schema = json!({"type": "string", "format": "uri", "default": "https://example.com/a",
            "examples": ["https://example.com/b", "http://127.0.0.1:1/c"]});
        let shapes = Shapes::new(&schema);
        let all = edges(&shapes, &schema);
        let plain = base(&shapes, &schema, Extent::Required).unwrap();
        let texts = all.iter().map(|one| &one.value).chain([&plain]).filter_map(Value::as_str);
        let addresses: Vec<&str> = texts.filter(|text| text.contains("://")).collect();
        assert!(addresses.len() > 1, "{addresses:?}");
        assert!(addresses.iter().all(|text| text.starts_with("http://127.0.0.1")), "{addresses:?}");
    }

    #[test]
    fn a_schema_that_asks_for_more_than_there_is_gets_what_there_is() {
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
            assert!(weight(&whole) < 4 * LARGEST, "{}", weight(&whole));
        }
        let largest = edges(&shapes, &schema).iter().map(|one| weight(&one.value)).max();
        assert!(largest < Some(4 * LARGEST_LIST), "{largest:?}");
    }
}

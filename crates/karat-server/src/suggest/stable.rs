//! The expectations that several answers to the same call have in common.
//!
//! A value that is equal in all answers is expected as it is, unless it is a moment, an id or private: the
//! next answer may differ in it, although these did not, or it must not be written down. Such values, and
//! those that did differ, are expected by their shape.

use std::sync::LazyLock;

use karat_core::expect::{Answer, MatcherSpec};
use karat_io::private::is_private;
use regex::Regex;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::controls::nothing;
use crate::suite::Feature;

/// The size of data and texts that are expected as a whole, in bytes.
const MAX_WHOLE_BYTES: usize = 1_500;
/// The number of expectations of one answer.
const MAX_EXPECTATIONS: usize = 10;
/// The length of a line that is expected, in bytes.
const MAX_LINE_BYTES: usize = 300;
const MAX_DEPTH: usize = 8;

/// Moments, ids and measured times.
static VOLATILE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        \d{4}-\d{2}-\d{2}[T\x20]\d{2}:\d{2}
        | \b\d{1,2}:\d{2}:\d{2}\b
        | \b[AP]M\b
        | \b\d{1,2}/\d{1,2}/\d{2,4}\b
        | \b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-
        | \b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\b
        | \b\d+(?:\.\d+)?\x20?(?:ns|us|µs|ms|s|sec|secs|seconds|milliseconds|minutes)\b
        | \b\d{10}\b | \b\d{13}\b | \b\d{16}\b | \b\d{19}\b
        ",
    )
    .ok()
});

/// The matchers that hold for all of these results; empty if nothing can be expected.
pub(crate) fn expectations(feature: Feature, results: &[Value]) -> Vec<Value> {
    let answers: Vec<Answer<'_>> = results.iter().map(Answer::new).collect();
    let Some(first) = results.first() else { return Vec::new() };
    let mut found = Found { feature, results, answers: &answers, matchers: Vec::new() };
    let data: Vec<Value> = results.iter().filter_map(data).collect();
    if data.len() == results.len() {
        found.data(&data);
    }
    if found.matchers.is_empty() {
        found.text();
    }
    found.blocks(first);
    found.matchers
}

/// Returns whether matchers hold for a result.
pub(crate) fn hold(matchers: &[Value], result: &Value) -> bool {
    let answer = Answer::new(result);
    matchers.iter().all(|matcher| {
        let compiled = MatcherSpec::deserialize(matcher).ok().and_then(|spec| spec.compile().ok());
        compiled.is_some_and(|compiled| compiled.check(&answer).is_ok())
    })
}

/// Structured content, or the JSON object or list in the first text block.
fn data(result: &Value) -> Option<Value> {
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    let written = || {
        let blocks = result.get("content").or_else(|| result.get("contents"))?;
        let text = blocks.get(0)?.get("text")?.as_str()?;
        serde_json::from_str::<Value>(text).ok()
    };
    structured.cloned().or_else(written).filter(|value| value.is_object() || value.is_array())
}

struct Found<'a> {
    feature: Feature,
    results: &'a [Value],
    answers: &'a [Answer<'a>],
    matchers: Vec<Value>,
}

impl Found<'_> {
    /// Adds a matcher that is valid, holds for every answer and does not hold for an empty one.
    fn add(&mut self, matcher: Value) -> bool {
        if self.matchers.len() >= MAX_EXPECTATIONS || self.matchers.contains(&matcher) {
            return false;
        }
        let compiled = MatcherSpec::deserialize(&matcher).ok().and_then(|spec| spec.compile().ok());
        let Some(compiled) = compiled else { return false };
        let nothing = nothing(self.feature);
        let holds = self.answers.iter().all(|answer| compiled.check(answer).is_ok());
        if holds && compiled.check(&Answer::new(&nothing)).is_err() {
            self.matchers.push(matcher);
            return true;
        }
        false
    }

    fn data(&mut self, data: &[Value]) {
        let (Some(first), rest) = (data.first(), data.get(1..).unwrap_or_default()) else { return };
        let same = rest.iter().all(|other| other == first);
        if same && size(first) <= MAX_WHOLE_BYTES && is_lasting("", first) {
            self.add(json!({"json": "$", "equals": first}));
            return;
        }
        let all: Vec<&Value> = data.iter().collect();
        let mut leaves = Vec::new();
        collect("$", "", &all, MAX_DEPTH, &mut leaves);
        // Values say more than shapes.
        let (values, shapes): (Vec<Value>, Vec<Value>) =
            leaves.into_iter().partition(|leaf| leaf.get("equals").is_some());
        let (room, mut added) = (MAX_EXPECTATIONS * 2 / 3, 0);
        for leaf in values {
            if added < room && self.add(leaf) {
                added += 1;
            }
        }
        for leaf in shapes {
            self.add(leaf);
        }
        // Not one leaf: at least the kind of data.
        if self.matchers.is_empty() {
            self.add(json!({"json": "$", "schema": {"type": kind(first)}}));
        }
    }

    fn text(&mut self) {
        let texts: Vec<&str> = self.answers.iter().map(Answer::text).collect();
        let Some(first) = texts.first().copied() else { return };
        let same = texts.iter().all(|text| *text == first);
        if same && first.len() <= MAX_WHOLE_BYTES && is_lasting("", &Value::from(first)) {
            self.add(json!({"equals": first}));
            return;
        }
        let others: Vec<Vec<&str>> =
            texts.iter().skip(1).map(|text| text.lines().collect()).collect();
        let mut shapes = Vec::new();
        for (at, line) in first.lines().enumerate() {
            let trimmed = line.trim();
            if trimmed.len() < 3 || trimmed.len() > MAX_LINE_BYTES {
                continue;
            }
            let shared = others.iter().all(|lines| lines.contains(&line));
            if shared && is_lasting("", &Value::from(trimmed)) {
                self.add(json!({"contains": trimmed}));
                continue;
            }
            let line_at = |lines: &Vec<&str>| lines.get(at).copied().unwrap_or_default().to_owned();
            let mut same_line = vec![line.to_owned()];
            same_line.extend(others.iter().map(line_at));
            shapes.extend(shape("", &same_line).map(|shape| format!("(?m)^{shape}$")));
        }
        for shape in shapes {
            self.add(json!({"matches": shape}));
        }
        if self.matchers.is_empty() && texts.iter().all(|text| !text.trim().is_empty()) {
            self.add(json!({"matches": "\\S"}));
        }
    }

    /// Blocks without text: their type, and the media type. Contents without text: their media type, and
    /// the bytes if they are few.
    fn blocks(&mut self, first: &Value) {
        let contents = first.get("contents").and_then(Value::as_array);
        for (at, one) in contents.into_iter().flatten().enumerate() {
            if one.get("text").is_some() {
                continue;
            }
            for field in ["blob", "mimeType"] {
                let value = one.get(field).filter(|value| size(value) <= MAX_WHOLE_BYTES);
                let same = |other: &Value| {
                    other.get("contents").and_then(|all| all.get(at)?.get(field)) == value
                };
                if let Some(value) = value.filter(|_| self.results.iter().all(same)) {
                    self.add(
                        json!({"result": format!("$.contents[{at}].{field}"), "equals": value}),
                    );
                }
            }
        }
        let blocks = first.get("content").and_then(Value::as_array);
        for (at, block) in blocks.into_iter().flatten().enumerate() {
            let Some(kind) = block.get("type").and_then(Value::as_str) else { continue };
            if kind == "text" {
                continue;
            }
            self.add(json!({"block": at, "type": kind}));
            for field in ["mimeType", "uri", "name"] {
                let path = format!("$.content[{at}].{field}");
                let value = block.get(field).filter(|value| is_lasting(field, value));
                let same = |other: &Value| {
                    other.get("content").and_then(|all| all.get(at)?.get(field)) == value
                };
                if let Some(value) = value
                    && self.results.iter().all(same)
                {
                    self.add(json!({"result": path, "equals": value}));
                }
            }
        }
    }
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns whether a value can be written down and is likely to be the same tomorrow.
fn is_lasting(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => !is_volatile(&number.to_string()),
        Value::String(text) => !is_volatile(text) && !is_private(name, text),
        Value::Array(all) => all.iter().all(|one| is_lasting(name, one)),
        Value::Object(fields) => {
            fields.iter().all(|(key, one)| !is_private("", key) && is_lasting(key, one))
        }
    }
}

fn is_volatile(text: &str) -> bool {
    VOLATILE.as_ref().is_none_or(|volatile| volatile.is_match(text))
        || text.contains(&karat_core::provenance::today())
}

/// The expectations of the values at a path, in the order of the data.
fn collect(path: &str, name: &str, values: &[&Value], depth: usize, out: &mut Vec<Value>) {
    let (Some(first), Some(depth)) = (values.first(), depth.checked_sub(1)) else { return };
    match first {
        Value::Object(fields) if values.iter().all(|value| value.is_object()) => {
            for key in fields.keys() {
                let inner: Vec<&Value> = values.iter().filter_map(|value| value.get(key)).collect();
                if let Some(step) = step(key)
                    && inner.len() == values.len()
                    && !is_private("", key)
                {
                    collect(&format!("{path}{step}"), key, &inner, depth, out);
                }
            }
        }
        Value::Array(items) if values.iter().all(|value| value.is_array()) => {
            let same =
                values.iter().all(|value| value.as_array().map(Vec::len) == Some(items.len()));
            if !same || items.is_empty() {
                out.push(json!({"json": path, "schema": {"type": "array"}}));
            }
            for at in 0..items.len().min(3) {
                let inner: Vec<&Value> = values.iter().filter_map(|value| value.get(at)).collect();
                if inner.len() == values.len() {
                    collect(&format!("{path}[{at}]"), name, &inner, depth, out);
                }
            }
        }
        first => {
            let same = values.iter().all(|value| value == first);
            if same && is_lasting(name, first) && size(first) <= MAX_LINE_BYTES {
                out.push(json!({"json": path, "equals": first}));
                return;
            }
            let texts: Option<Vec<String>> =
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            match texts.and_then(|texts| shape(name, &texts)) {
                Some(shape) => out.push(json!({"json": path, "matches": format!("^{shape}$")})),
                None if values.iter().all(|value| kind(value) == kind(first)) => {
                    out.push(json!({"json": path, "schema": {"type": kind(first)}}));
                }
                None => {}
            }
        }
    }
}

/// A key as a step of a path, if it can be written as one.
fn step(key: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match key {
        "" => None,
        key if key.chars().all(plain) => Some(format!(".{key}")),
        key if key.contains(['\'', '"', '[', ']', '\\']) => None,
        key => Some(format!("['{key}']")),
    }
}

/// A regular expression for texts that differ in single words, moments or ids; none if they have nothing in
/// common. `name` is the field that they are in.
fn shape(name: &str, texts: &[String]) -> Option<String> {
    let words: Vec<Vec<&str>> =
        texts.iter().map(|text| text.split_whitespace().collect()).collect();
    let (first, rest) = words.split_first()?;
    if first.is_empty() || first.len() > 40 || rest.iter().any(|other| other.len() != first.len()) {
        return None;
    }
    // A private phrase may have spaces in it.
    let private = texts.iter().any(|text| is_private(name, text));
    let shapes = first.iter().enumerate().map(|(at, word)| {
        let same = rest.iter().all(|other| other[at] == *word);
        let kept = same && !private && !is_volatile(word);
        match kept {
            true => regex::escape(word),
            false => {
                let variants: Vec<&str> = words.iter().map(|words| words[at]).collect();
                word_shape(&variants)
            }
        }
    });
    Some(format!(r"\s*{}\s*", shapes.collect::<Vec<_>>().join(r"\s+")))
}

/// The shape of a word: numbers with their separators, hexadecimal digits, or any characters.
fn word_shape(variants: &[&str]) -> String {
    let numeric = |word: &&str| {
        word.contains(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || "-:.,+TZ/()".contains(c))
    };
    let hexadecimal =
        |word: &&str| word.len() >= 8 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if variants.iter().all(numeric) {
        return r"[\d:.,+TZ/()-]+".to_owned();
    }
    if variants.iter().all(hexadecimal) {
        return "[0-9a-fA-F-]+".to_owned();
    }
    r"\S+".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_tool(results: &[Value]) -> Vec<Value> {
        expectations(Feature::Tool, results)
    }

    fn text(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn what_two_answers_share_is_expected_as_it_is() {
        assert_eq!(of_tool(&[text("sum: 5"), text("sum: 5")]), [json!({"equals": "sum: 5"})]);
        let data = json!({"content": [], "structuredContent": {"a": 1, "b": [true]}});
        assert_eq!(
            of_tool(&[data.clone(), data]),
            [json!({"json": "$", "equals": {"a": 1, "b": [true]}})]
        );
    }

    #[test]
    fn what_differs_is_expected_by_its_shape() {
        let found = of_tool(&[text("pid 31 of karat\nready"), text("pid 47 of karat\nready")]);
        assert_eq!(
            found,
            [
                json!({"contains": "ready"}),
                json!({"matches": r"(?m)^\s*pid\s+[\d:.,+TZ/()-]+\s+of\s+karat\s*$"}),
            ]
        );
        let answer = |id: &str, n: i64| json!({"content": [], "structuredContent": {"id": id, "kind": "note", "n": n}});
        let found = of_tool(&[answer("a1", 1), answer("b2", 2)]);
        assert_eq!(
            found,
            [
                json!({"json": "$.kind", "equals": "note"}),
                json!({"json": "$.id", "matches": r"^\s*\S+\s*$"}),
                json!({"json": "$.n", "schema": {"type": "number"}}),
            ]
        );
    }

    #[test]
    fn moments_and_private_values_are_never_written_down() {
        let moment = text("now: 2026-01-01T10:00:00Z");
        let found = json!(of_tool(&[moment.clone(), moment])).to_string();
        assert!(!found.contains("10:00") && found.contains("now:"), "{found}");
        let secret = "the key is sk-live-a8f3k2l9d0s7g6h5 today, ask ada@example.org";
        let structured =
            json!({"content": [], "structuredContent": {"token": "abc", "note": secret, "n": 3}});
        for answer in [text(secret), structured] {
            let found = json!(of_tool(&[answer.clone(), answer])).to_string();
            for part in ["sk-live", "ada@", "abc", "a8f3"] {
                assert!(!found.contains(part), "{found}");
            }
        }
    }

    #[test]
    fn an_empty_answer_gives_no_expectation() {
        let nothing = json!({"content": []});
        assert_eq!(of_tool(&[nothing.clone(), nothing]), [] as [Value; 0]);
        assert_eq!(of_tool(&[text(""), text("")]), [] as [Value; 0]);
    }
}

//! Features of an entry that need no reading: lengths, numbers of things, fields that are there or
//! not.

use karat_detectors::Tool;
use serde_json::Value;

use crate::dataset::Sample;

/// The features, in the order of [`of`].
pub(super) const NAMES: [&str; 50] = [
    "characters of the server's name",
    "hyphens in the server's name",
    "digits in the server's name",
    "underscores in the server's name",
    "characters of the tool's name",
    "underscores in the tool's name",
    "hyphens in the tool's name",
    "capitals in the tool's name",
    "a title",
    "characters of the description",
    "words of the description",
    "sentences of the description",
    "lines of the description",
    "commas in the description",
    "colons in the description",
    "brackets in the description",
    "quotes and backticks in the description",
    "digits in the description",
    "capitals in the description",
    "hyphens in the description",
    "slashes in the description",
    "share of letters outside ASCII",
    "longest word of the description",
    "invisible characters",
    "an input schema",
    "bytes of the input schema",
    "parameters",
    "required parameters",
    "share of parameters that are required",
    "parameters with a default",
    "parameters with an enum",
    "parameters with a description",
    "parameters without a description",
    "characters of the parameters' descriptions",
    "longest description of a parameter",
    "string parameters",
    "whole and decimal number parameters",
    "yes-or-no parameters",
    "object and list parameters",
    "depth of the input schema",
    "additionalProperties",
    "an output schema",
    "annotations",
    "readOnlyHint",
    "destructiveHint",
    "peers",
    "peers of the same server",
    "characters of the result",
    "characters of the earlier description",
    "characters of the server's instructions",
];

/// The features of an entry.
pub(super) fn of(sample: &Sample) -> Vec<f64> {
    let Sample { server, tool, peers, before, result, instructions, .. } = sample;
    let mut found = Vec::with_capacity(NAMES.len());
    let counted =
        |text: &str, wanted: fn(char) -> bool| text.chars().filter(|c| wanted(*c)).count();
    found.extend([
        length(server),
        number(counted(server, |c| c == '-')),
        number(counted(server, |c| c.is_ascii_digit())),
        number(counted(server, |c| c == '_')),
    ]);
    found.extend([
        length(&tool.name),
        number(counted(&tool.name, |c| c == '_')),
        number(counted(&tool.name, |c| c == '-')),
        number(counted(&tool.name, char::is_uppercase)),
        present(tool.title.as_ref()),
    ]);
    let text = tool.description.as_str();
    let letters = counted(text, char::is_alphabetic);
    let foreign = counted(text, |c| c.is_alphabetic() && !c.is_ascii());
    found.extend([
        length(text),
        number(text.split_whitespace().count()),
        number(counted(text, |c| matches!(c, '.' | '!' | '?' | '。'))),
        number(text.lines().count()),
        number(counted(text, |c| matches!(c, ',' | '、' | '，'))),
        number(counted(text, |c| matches!(c, ':' | ';' | '：'))),
        number(counted(text, |c| matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>'))),
        number(counted(text, |c| matches!(c, '"' | '\'' | '`' | '“' | '”' | '«' | '»'))),
        number(counted(text, |c| c.is_ascii_digit())),
        number(counted(text, char::is_uppercase)),
        number(counted(text, |c| c == '-')),
        number(counted(text, |c| c == '/')),
        number(foreign) / number(letters.max(1)),
        number(text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0)),
        number(counted(text, |c| {
            c.is_control() && c != '\n' || ('\u{200b}'..='\u{206f}').contains(&c)
        })),
    ]);
    of_schema(tool, &mut found);
    let hint = |name: &str| tool.annotations.as_ref().and_then(|hints| hints.get(name)?.as_bool());
    // Absent, false and true are three different things.
    let three = |hint: Option<bool>| hint.map_or(0.0, |yes| if yes { 1.0 } else { -1.0 });
    found.extend([
        present(tool.output_schema.as_ref()),
        present(tool.annotations.as_ref()),
        three(hint("readOnlyHint")),
        three(hint("destructiveHint")),
        number(peers.len()),
        number(peers.iter().filter(|peer| peer.server == *server).count()),
        result.as_deref().map_or(-1.0, length),
        before.as_ref().map_or(-1.0, |before| length(&before.description)),
        instructions.as_deref().map_or(-1.0, length),
    ]);
    found
}

fn of_schema(tool: &Tool, found: &mut Vec<f64>) {
    let schema = tool.input_schema.as_ref();
    let properties: Vec<&Value> = schema
        .and_then(|schema| schema.get("properties")?.as_object())
        .map(|properties| properties.values().collect())
        .unwrap_or_default();
    let with = |key: &str| properties.iter().filter(|one| one.get(key).is_some()).count();
    let types = |names: &[&str]| {
        let kinds = properties.iter().filter_map(|one| one.get("type")?.as_str());
        number(kinds.filter(|kind| names.contains(kind)).count())
    };
    let lengths: Vec<f64> = properties
        .iter()
        .filter_map(|one| one.get("description").and_then(Value::as_str).map(length))
        .collect();
    let required = schema.and_then(|schema| schema.get("required")?.as_array()).map_or(0, Vec::len);
    found.extend([
        present(schema),
        schema.map_or(0.0, |schema| number(schema.to_string().len())),
        number(properties.len()),
        number(required),
        number(required) / number(properties.len().max(1)),
        number(with("default")),
        number(with("enum")),
        number(with("description")),
        number(properties.len() - with("description")),
        lengths.iter().sum(),
        lengths.iter().copied().fold(0.0, f64::max),
        types(&["string"]),
        types(&["integer", "number"]),
        types(&["boolean"]),
        types(&["object", "array"]),
        schema.map_or(0.0, |schema| number(depth(schema))),
        present(schema.and_then(|schema| schema.get("additionalProperties"))),
    ]);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn present<T>(value: Option<&T>) -> f64 {
    f64::from(u8::from(value.is_some()))
}

fn length(text: &str) -> f64 {
    number(text.chars().count())
}

#[expect(clippy::cast_precision_loss, reason = "counts of one entry")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_name() {
        let sample = Sample::plain("a", "b", Tool::default());
        assert_eq!(of(&sample).len(), NAMES.len());
    }
}

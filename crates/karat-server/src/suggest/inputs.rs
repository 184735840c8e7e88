//! The arguments to call tools with that may be called unasked.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use karat_core::schema::Compiled;
use karat_mcp::ServerSpec;
use regex::Regex;
use serde_json::{Map, Value};

use crate::fuzz::generate::{cases, plainest};
use crate::probe::destructive_tools::{is_in, split_name};

/// The arguments of one call.
pub(crate) type Call = Map<String, Value>;

/// The number of generated inputs among which valid ones are looked for.
const GENERATED: usize = 24;
/// The number of values of one parameter that are tried after the first.
const OTHER_VALUES: usize = 3;
/// The bytes of all generated arguments of a call.
const MAX_INPUT_BYTES: usize = 1_000;
/// The number of files of a folder that are looked at.
const MAX_ENTRIES: usize = 200;

/// Quoted or plain examples in a description, such as `e.g. 'America/New_York'`.
static EXAMPLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?:e\.g\.?|for example|such as|examples?|like)[:,]?\s*["'`]([^"'`]{1,80})["'`]"#,
    )
    .ok()
});

/// Known facts about the place of a server: values for arguments are taken from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownValues {
    /// The folders that it may read.
    pub(crate) folders: Vec<PathBuf>,
    /// The URIs of its resources.
    pub(crate) resources: Vec<String>,
}

impl KnownValues {
    /// The first file of a folder, the first folder and the first resource.
    fn values(&self) -> Values {
        Values {
            file: self.folders.iter().find_map(|folder| a_file(folder)),
            path: self.folders.first().cloned(),
            resource: self.resources.iter().find(|uri| !leads_away(uri)).cloned(),
        }
    }
}

/// Values that exist around a server.
#[derive(Clone)]
struct Values {
    path: Option<PathBuf>,
    file: Option<PathBuf>,
    resource: Option<String>,
}

/// Returns whether a URI may lead to another machine.
fn leads_away(uri: &str) -> bool {
    let scheme = uri.split("://").next().unwrap_or_default();
    is_in(&scheme.to_lowercase(), "http https ws wss ftp ftps ssh git")
}

/// The folders that the command of a server names: the ones that it may read.
pub(super) fn folders(spec: &ServerSpec) -> Vec<PathBuf> {
    arguments(spec).map(PathBuf::from).filter(|path| path.is_dir()).collect()
}

/// The same as absolute paths, for a command that runs in this folder.
pub(crate) fn folders_in(spec: &ServerSpec, folder: &Path) -> Vec<PathBuf> {
    let base = folder.join(spec.cwd.clone().unwrap_or_default());
    let paths = arguments(spec).filter_map(|word| std::path::absolute(base.join(word)).ok());
    paths.filter(|path| path.is_dir()).collect()
}

/// The arguments of the command, and the values of its flags.
fn arguments(spec: &ServerSpec) -> impl Iterator<Item = &str> {
    let words = spec.command.iter().flatten().skip(1).filter(|word| !word.is_empty());
    words.map(|word| match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => value,
        _ => word.as_str(),
    })
}

/// Arguments for a schema, the most promising first. All of them match its schema, as far as that can be
/// checked.
pub(crate) fn calls(
    schema: Option<&Value>,
    known: &Map<String, Value>,
    around: &KnownValues,
) -> Vec<Call> {
    let validator = schema.and_then(|schema| Compiled::new(schema).ok());
    let valid = |call: &Call| {
        validator.as_ref().is_none_or(|validator| {
            let found = validator.check(&Value::Object(call.clone()));
            found.valid && found.not_checked().is_none()
        })
    };
    let likely = around.values();
    let with = |likely: &Values, required_only: bool| {
        let mut values = hints(schema, likely, required_only);
        values.extend(known.clone());
        plainest(schema, &values)
    };
    let mut calls = vec![
        with(&likely, true),
        with(&Values { path: likely.file.clone(), ..likely.clone() }, true),
        plainest(schema, known),
        with(&likely, false),
    ];
    // The first of several values may be the one that means a failure.
    for (name, value) in other_values(schema) {
        let mut values = hints(schema, &likely, true);
        values.extend(known.clone());
        values.insert(name, value);
        calls.push(plainest(schema, &values));
    }
    calls.extend(cases(schema, GENERATED, 0).into_iter().map(|case| case.arguments));
    let mut seen: Vec<Call> = Vec::new();
    for call in calls {
        // A case with a long text is hard to read and shows no more than a short one.
        if !seen.contains(&call) && is_short(&call, known) && valid(&call) {
            seen.push(call);
        }
    }
    seen
}

/// Returns whether no text of a call is long, apart from those that the user gave.
fn is_short(call: &Call, known: &Map<String, Value>) -> bool {
    let own = call.iter().filter(|(name, value)| known.get(*name) != Some(value));
    own.map(|(_, value)| value.to_string().len()).sum::<usize>() <= MAX_INPUT_BYTES
}

/// The values of `enum` after the first, by parameter.
fn other_values(schema: Option<&Value>) -> Vec<(String, Value)> {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let values = properties.into_iter().flatten().flat_map(|(name, property)| {
        let values = property.get("enum").and_then(Value::as_array).into_iter().flatten();
        values.skip(1).take(OTHER_VALUES).map(move |value| (name.clone(), value.clone()))
    });
    values.collect()
}

/// Likely values of the parameters of a schema.
fn hints(schema: Option<&Value>, likely: &Values, required_only: bool) -> Map<String, Value> {
    let mut hints = Map::new();
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    for (name, property) in properties.into_iter().flatten() {
        let needed = required.is_some_and(|all| all.iter().any(|one| one == name));
        let stated = ["default", "examples", "enum", "const"];
        if (required_only && !needed) || stated.iter().any(|key| property.get(key).is_some()) {
            continue;
        }
        if property.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "string") {
            continue;
        }
        let hint = by_name(name, likely).or_else(|| in_description(property));
        hints.extend(hint.map(|hint| (name.clone(), Value::from(hint))));
    }
    hints
}

fn by_name(name: &str, likely: &Values) -> Option<String> {
    let Values { path, file, resource } = likely;
    let words = split_name(name);
    let has = |list: &str| words.iter().any(|word| is_in(word, list));
    let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    if has("file filename filepath") {
        return text(file).or_else(|| text(path));
    }
    if has("path dir directory folder repo repository root workspace cwd") {
        return text(path);
    }
    if has("uri uris resource") {
        return resource.clone();
    }
    let value = match () {
        () if has("timezone tz zone") => "UTC",
        () if has("date day") => "2026-01-15",
        () if has("time") => "12:00",
        () if has("revision ref commit rev sha target") => "HEAD",
        () if has("glob pattern") => "*",
        () if has("city location place") => "Berlin",
        () if has("country") => "US",
        () if has("language lang locale") => "en",
        () if has("currency") => "EUR",
        () if has("expression formula") => "1 + 1",
        () => return None,
    };
    Some(value.to_owned())
}

/// The first example that a description quotes. Addresses are left out: a generated call must not reach
/// another machine.
fn in_description(property: &Value) -> Option<String> {
    let text = property.get("description")?.as_str()?;
    let found = EXAMPLE.as_ref()?.captures(text)?.get(1)?.as_str();
    (!found.contains("://")).then(|| found.to_owned())
}

/// The first visible file of a folder, by name.
fn a_file(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().take(MAX_ENTRIES);
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.into_iter().next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_come_from_names_and_descriptions_and_match_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "timezone": {"type": "string"},
                "unit": {"type": "string", "description": "The unit, e.g. 'kelvin'"},
                "land": {"type": "string", "description": "ISO code.\nExamples: \"PL\", \"DE\""},
                "site": {"type": "string", "description": "such as 'https://example.com'"},
                "n": {"type": "integer", "minimum": 3},
            },
            "required": ["timezone", "unit", "land", "site", "n"],
        });
        let calls = calls(Some(&schema), &Map::new(), &KnownValues::default());
        assert_eq!(calls[0]["timezone"], "UTC");
        assert_eq!(calls[0]["unit"], "kelvin");
        assert_eq!(calls[0]["land"], "PL");
        assert!(calls[0]["n"].as_i64() >= Some(3), "{calls:?}");
        assert!(!calls[0]["site"].as_str().unwrap().contains("example.com"));
        let schema = Compiled::new(&schema).unwrap();
        assert!(calls.iter().all(|call| schema.check(&Value::Object(call.clone())).valid));
    }
    #[test]
    fn a_resource_is_a_value_for_an_address_unless_it_leads_away() {
        let schema = json!({
            "type": "object",
            "properties": {"uri": {"type": "string"}},
            "required": ["uri"],
        });
        let first = |resources: &[&str]| {
            let resources = resources.iter().map(|uri| (*uri).to_owned()).collect();
            let around = KnownValues { resources, ..KnownValues::default() };
            calls(Some(&schema), &Map::new(), &around)[0]["uri"].clone()
        };
        assert_eq!(first(&["note://7", "note://8"]), "note://7");
        assert_eq!(first(&["https://example.com/a", "note://8"]), "note://8");
        assert!(!first(&["https://example.com/a"]).as_str().unwrap().contains("example.com"));
    }

    #[test]
    fn a_call_has_no_long_text_unless_it_was_given() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let around = KnownValues::default();
        let size = |known: &Map<String, Value>| {
            let calls = calls(Some(&schema), known, &around);
            calls.iter().map(|call| call["a"].as_str().unwrap().len()).max().unwrap()
        };
        assert!(size(&Map::new()) <= MAX_INPUT_BYTES);
        let given = Map::from_iter([("a".to_owned(), json!("b".repeat(3_000)))]);
        assert_eq!(size(&given), 3_000);
    }
}

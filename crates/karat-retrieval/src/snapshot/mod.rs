//! Tool definitions as servers serve them: what a search or a scanner that is connected would read.
//!
//! A [`Snapshot`] comes from a dataset folder, from a folder that was captured, or from a corpus
//! file, and holds every definition complete, fields that Karat knows nothing of included. It has no
//! queries and no labels: those are the business of [`crate::dataset`].

pub mod capture;
pub mod diff;
pub mod lock;
pub mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use karat_core::dataset::canonical;
use karat_core::dataset::{Dataset as Frozen, DatasetError, DatasetFiles, MANIFEST};
use karat_io::input::{self, Format, InputError, Limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use karat_core::error::EvalError;

/// The folder of a dataset that holds the definitions.
pub(crate) const TOOLS: &str = "tools";

/// Fields that dataset files have and the protocol does not. A definition that has one of them is
/// not one that was captured.
pub(crate) const OURS: [&str; 6] =
    ["tool", "server", "tool_id", "schema", "input_schema", "output_schema"];

/// Every server with its tools, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The servers.
    pub servers: BTreeMap<String, Server>,
}

/// One server, as it presents itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Server {
    /// Its description of itself apart from the name: title, version, instructions, package and so on.
    pub about: Map<String, Value>,
    /// Its definitions as served: `name`, `description`, `inputSchema` and the rest, in order.
    pub tools: Vec<Value>,
}

/// The package from which a server was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// `npm`, `pypi` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Its name there.
    pub name: String,
    /// Its exact version.
    pub version: String,
}

impl Server {
    /// A text that the server says of itself.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.about.get(field).and_then(Value::as_str)
    }

    /// The package it was started from, where the snapshot says so.
    pub(crate) fn package(&self) -> Option<Package> {
        serde_json::from_value(self.about.get("package")?.clone()).ok()
    }

    /// Its definitions by name.
    pub(crate) fn by_name(&self) -> BTreeMap<&str, &Value> {
        self.tools.iter().map(|tool| (name(tool), tool)).collect()
    }
}

/// The name in a definition; [`Snapshot`] holds none without.
pub(crate) fn name(definition: &Value) -> &str {
    definition.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// A corpus file: the definitions of one server, or of several that each tool names.
#[derive(Deserialize)]
#[serde(expecting = "an object with tools, or a list of tools")]
struct RawFile {
    server: Option<Map<String, Value>>,
    tools: Vec<Map<String, Value>>,
}

impl Snapshot {
    /// Reads a folder (frozen or just captured) or a corpus file.
    ///
    /// # Errors
    /// If it cannot be read, is frozen and was changed since, or is not a corpus.
    pub fn open(path: &Path) -> Result<Snapshot, EvalError> {
        if !path.is_dir() {
            let text = input::read_text(path, &Limits::default())?;
            let mut snapshot = Snapshot::default();
            snapshot.add(path, &text)?;
            return Ok(snapshot);
        }
        if path.join(MANIFEST).exists() {
            return Snapshot::of(DatasetFiles::Folder(path.to_owned()));
        }
        let folder = path.join(TOOLS);
        if !folder.is_dir() {
            let message = "no tools/ in this folder; name a dataset folder such as \
                           datasets/tools/v1, a captured folder or a corpus file";
            return Err(InputError::invalid(path, TOOLS, message).into());
        }
        let mut snapshot = Snapshot::default();
        for file in plain_files(&folder)? {
            let text = input::read_text(&file, &Limits::default())?;
            snapshot.add(&file, &text)?;
        }
        Ok(snapshot)
    }

    /// Reads a frozen dataset wherever it is, after its digests have been verified.
    ///
    /// # Errors
    /// If its files are not those of its manifest, or are not a corpus.
    pub fn of(files: DatasetFiles) -> Result<Snapshot, EvalError> {
        let frozen = Frozen::of(files)?;
        let limits = Limits::default();
        let mut snapshot = Snapshot::default();
        for path in frozen.manifest().files.keys() {
            if path.as_str().split_once('/').is_some_and(|(folder, _)| folder == TOOLS) {
                let shown = frozen.files().label(path.as_str());
                let bytes = frozen.bytes(path, &limits)?;
                let text = input::decode(&shown.to_string_lossy(), &bytes, &limits)?;
                snapshot.add(&shown, &text)?;
            }
        }
        Ok(snapshot)
    }

    /// The number of tools in all.
    pub fn len(&self) -> usize {
        self.servers.values().map(|server| server.tools.len()).sum()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn add(&mut self, path: &Path, text: &str) -> Result<(), InputError> {
        let format =
            Format::of(path).ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })?;
        let raw = match format.is_list(text) {
            true => RawFile { server: None, tools: input::parse(path, text, format)? },
            false => input::parse(path, text, format)?,
        };
        let mut of_file = None;
        if let Some(mut about) = raw.server {
            let Some(Value::String(name)) = about.shift_remove("name") else {
                return Err(InputError::invalid(path, "server", "the server has no name"));
            };
            // A server without tools is still a server.
            self.servers.entry(name.clone()).or_default().about.extend(about);
            of_file = Some(name);
        }
        let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for tool in raw.tools {
            let (server, definition) = as_served(path, tool, of_file.as_deref())?;
            let tools = &mut self.servers.entry(server.clone()).or_default().tools;
            let names = known
                .entry(server.clone())
                .or_insert_with(|| tools.iter().map(|earlier| name(earlier).to_owned()).collect());
            if !names.insert(name(&definition).to_owned()) {
                let id = format!("{server}:{}", name(&definition));
                return Err(InputError::invalid(path, id, "duplicate tool id"));
            }
            tools.push(definition);
        }
        Ok(())
    }
}

/// The definition as an MCP server serves it, and its server. One that was captured stays as it is;
/// ours and the public corpus files have other names for some fields, and may leave the schema out,
/// which the protocol does not allow.
fn as_served(
    path: &Path,
    mut tool: Map<String, Value>,
    of_file: Option<&str>,
) -> Result<(String, Value), InputError> {
    if let (Some(server), Some(Value::String(name))) = (of_file, tool.get("name"))
        && !name.is_empty()
        && OURS.iter().all(|field| !tool.contains_key(*field))
    {
        return Ok((server.to_owned(), Value::Object(tool)));
    }
    let mut text = |field: &str| match tool.shift_remove(field) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let name = text("tool").or_else(|| text("name")).unwrap_or_default();
    let server = text("server").or_else(|| of_file.map(str::to_owned));
    text("tool_id");
    if name.is_empty() {
        return Err(InputError::invalid(path, "tools", "a tool has no name"));
    }
    let Some(server) = server else {
        return Err(InputError::invalid(path, name, "the tool names no server"));
    };
    let mut definition = Map::new();
    definition.insert("name".to_owned(), Value::String(name));
    for (field, others) in [
        ("title", &[][..]),
        ("description", &[][..]),
        ("inputSchema", &["input_schema", "schema"][..]),
        ("outputSchema", &["output_schema"][..]),
        ("annotations", &[][..]),
    ] {
        let found = std::iter::once(&field).chain(others).find_map(|key| tool.shift_remove(*key));
        if let Some(value) = found.filter(|value| !value.is_null()) {
            definition.insert(field.to_owned(), value);
        }
    }
    definition.extend(tool);
    if !definition.contains_key("inputSchema") {
        definition.insert("inputSchema".to_owned(), json!({"type": "object"}));
    }
    Ok((server, Value::Object(definition)))
}

/// The plain files below a folder, sorted; links are not followed.
fn plain_files(folder: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| DatasetError::Io { path, source }
    };
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(current) = waiting.pop() {
        for entry in std::fs::read_dir(&current).map_err(failed(&current))? {
            let entry = entry.map_err(failed(&current))?;
            let kind = entry.file_type().map_err(failed(&current))?;
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            } else {
                return Err(DatasetError::NotPlain { file: entry.path() });
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Snapshot, InputError> {
        let mut snapshot = Snapshot::default();
        snapshot.add(Path::new("t.json"), text).map(|()| snapshot)
    }

    #[test]
    fn our_names_for_fields_become_those_of_the_protocol() {
        let snapshot = read(
            r#"{"server": {"name": "s", "instructions": "Ask first."}, "tools": [
                {"tool": "a", "description": "d", "input_schema": {"type": "object", "x": 1}, "icons": []}]}"#,
        )
        .unwrap();
        let server = &snapshot.servers["s"];
        assert_eq!(server.text("instructions"), Some("Ask first."));
        let expected = json!({"name": "a", "description": "d",
            "inputSchema": {"type": "object", "x": 1}, "icons": []});
        assert_eq!(server.tools, [expected]);
    }

    #[test]
    fn a_served_definition_stays_as_it_is() {
        let served = r#"{"title":null,"name":"a","description":"d","annotations":{"readOnlyHint":true},"_meta":{"k":[1.5]}}"#;
        let snapshot = read(&format!(r#"{{"server":{{"name":"s"}},"tools":[{served}]}}"#)).unwrap();
        assert_eq!(snapshot.servers["s"].tools[0].to_string(), served);
    }

    #[test]
    fn the_public_corpus_shape_names_a_server_for_each_tool() {
        let snapshot = read(
            r#"{"version": "1", "tools": [{"tool_id": "s:a", "server": "s", "tool": "a", "description": "d"}]}"#,
        )
        .unwrap();
        let expected = json!({"name": "a", "description": "d", "inputSchema": {"type": "object"}});
        assert_eq!(snapshot.servers["s"].tools, [expected]);
    }

    #[test]
    fn a_tool_without_name_or_server_or_with_a_duplicate_id_is_refused() {
        for (text, word) in [
            (r#"{"tools": [{"tool": "a"}]}"#, "names no server"),
            (r#"{"server": {"name": "s"}, "tools": [{"description": "d"}]}"#, "no name"),
            (r#"{"server": {}, "tools": []}"#, "no name"),
            (r#"{"server": {"name": "s"}, "tools": [{"tool": "a"}, {"name": "a"}]}"#, "duplicate"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}

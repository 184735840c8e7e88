//! The one tool: a definition as a server serves it, and a tool of a corpus with the server it is on.

use std::collections::BTreeMap;
use std::path::Path;

use karat_io::input::{self, Format, InputError, Limits};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::dataset::{Dataset, DatasetFiles};
use crate::error::EvalError;
use crate::report::DatasetRef;

/// A tool definition as a server serves it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The name; empty where a corpus gives descriptions only.
    #[serde(default)]
    pub name: String,
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of the input.
    #[serde(
        default,
        alias = "inputSchema",
        alias = "schema",
        skip_serializing_if = "Option::is_none"
    )]
    pub input_schema: Option<Value>,
    /// The JSON Schema of the output.
    #[serde(default, alias = "outputSchema", skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// A tool of a corpus.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tool {
    /// `server:tool`.
    pub tool_id: String,
    /// The server that offers it.
    pub server: String,
    /// The name on that server.
    pub tool: String,
    /// The title, if it has one.
    pub title: Option<String>,
    /// The description.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Value,
    /// The JSON Schema of the output.
    pub output_schema: Option<Value>,
    /// The annotations.
    pub annotations: Option<Value>,
}

impl Tool {
    /// The definition without the server.
    pub fn definition(&self) -> Definition {
        Definition {
            name: self.tool.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            input_schema: Some(self.input_schema.clone()),
            output_schema: self.output_schema.clone(),
            annotations: self.annotations.clone(),
        }
    }
}

/// The tools of a corpus, by id, with the checks that every reader of one needs.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// The tools, sorted by id.
    pub tools: BTreeMap<String, Tool>,
    /// The version that the last file gives itself.
    pub version: Option<String>,
}

#[derive(Deserialize)]
struct RawCorpus<T> {
    version: Option<Value>,
    server: Option<RawServer>,
    tools: Vec<T>,
}

#[derive(Deserialize)]
struct RawServer {
    name: String,
}

#[derive(Deserialize)]
struct RawTool {
    tool_id: Option<String>,
    server: Option<String>,
    #[serde(alias = "name")]
    tool: String,
    title: Option<String>,
    /// Some servers serve null.
    description: Option<String>,
    #[serde(default, alias = "schema", alias = "inputSchema", deserialize_with = "tight")]
    input_schema: Option<Value>,
    #[serde(default, alias = "outputSchema", deserialize_with = "tight")]
    output_schema: Option<Value>,
    #[serde(default, deserialize_with = "tight")]
    annotations: Option<Value>,
}

/// Shrinks the capacity of a value's maps: most objects of a schema have one or two members, and in a large
/// corpus the room for four is a third of the memory.
fn tight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Ok(Option::<Value>::deserialize(deserializer)?.map(without_room))
}

/// Moves the members of every object to one that has room for just them. The parser limits the depth.
fn without_room(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut moved = Map::with_capacity(members.len());
            moved.extend(members.into_iter().map(|(name, member)| (name, without_room(member))));
            Value::Object(moved)
        }
        Value::Array(members) => Value::Array(members.into_iter().map(without_room).collect()),
        other => other,
    }
}

impl Corpus {
    /// Reads the files under `tools/` of a frozen dataset.
    ///
    /// # Errors
    /// If a file is not what the manifest says, or not a corpus.
    pub fn open(files: DatasetFiles) -> Result<(Corpus, DatasetRef), EvalError> {
        let frozen = Dataset::of(files)?;
        let limits = Limits::default();
        let mut corpus = Corpus::default();
        for path in
            frozen.manifest().files.keys().filter(|path| path.as_str().starts_with("tools/"))
        {
            let shown = frozen.files().label(path.as_str());
            let bytes = frozen.bytes(path, &limits)?;
            corpus.add(&shown, &input::decode(&shown.to_string_lossy(), &bytes, &limits)?)?;
        }
        Ok((corpus, frozen.reference()))
    }

    /// Adds a corpus file: Karat's own, a public mcpproxy file, one server's tools, or tools alone as a
    /// list or in lines.
    ///
    /// # Errors
    /// If it is not valid, or a tool has no server or is defined twice.
    pub fn add(&mut self, path: &Path, text: &str) -> Result<(), InputError> {
        let format =
            Format::of(path).ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })?;
        let raw: RawCorpus<RawTool> =
            read(path, text, format).map_err(|error| in_tool(path, text, format, error))?;
        let server_name = raw.server.map(|server| server.name);
        self.version = raw.version.map(|version| match version {
            Value::String(text) => text,
            other => other.to_string(),
        });
        for tool in raw.tools {
            let Some(server) = tool.server.or_else(|| server_name.clone()) else {
                let message = "the tool names no server";
                return Err(InputError::invalid(path, tool.tool.as_str(), message));
            };
            let tool_id = format!("{server}:{}", tool.tool);
            if let Some(given) = tool.tool_id.filter(|given| *given != tool_id) {
                let message = format!("its id should be {tool_id}, from its server and name");
                return Err(InputError::invalid(path, given.as_str(), message));
            }
            let tool = Tool {
                tool_id: tool_id.clone(),
                server,
                tool: tool.tool,
                title: tool.title,
                description: tool.description.unwrap_or_default(),
                input_schema: tool.input_schema.unwrap_or(Value::Null),
                output_schema: tool.output_schema,
                annotations: tool.annotations,
            };
            if self.tools.insert(tool_id.clone(), tool).is_some() {
                return Err(InputError::invalid(path, tool_id.as_str(), "duplicate tool id"));
            }
        }
        Ok(())
    }
}

/// Reads an object with tools, or tools alone.
fn read<T: DeserializeOwned + Send>(
    path: &Path,
    text: &str,
    format: Format,
) -> Result<RawCorpus<T>, InputError> {
    match format.is_list(text) {
        true => {
            Ok(RawCorpus { version: None, server: None, tools: input::parse(path, text, format)? })
        }
        false => input::parse(path, text, format),
    }
}

/// Says which tool does not fit: a position in a one-line file is useless.
fn in_tool(path: &Path, text: &str, format: Format, error: InputError) -> InputError {
    let Ok(raw) = read::<Value>(path, text, format) else { return error };
    for (index, tool) in raw.tools.into_iter().enumerate() {
        let field = |name: &str| tool.get(name).and_then(Value::as_str);
        let name = field("tool_id").or(field("tool")).or(field("name"));
        let id = name.map_or_else(|| format!("tools[{index}]"), str::to_owned);
        if let Err(error) = RawTool::deserialize(&tool) {
            return InputError::invalid(path, id, input::plain(&error.to_string()));
        }
    }
    error
}

impl Dataset {
    /// The dataset as reports and baselines name it.
    pub fn reference(&self) -> DatasetRef {
        DatasetRef {
            id: self.id().to_owned(),
            version: self.version().to_string(),
            digest: self.digest().to_string(),
        }
    }
}

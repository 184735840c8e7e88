//! The tools that were on offer, and the check of calls against them.
//!
//! Tools are in the trace itself, or in files: a dataset of tools, a corpus
//! `{tools: [{server, tool, input_schema}]}`, or the answer of `tools/list`. Schemas are compiled once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use karat_core::dataset::{Dataset, DatasetFiles};
use karat_core::error::EvalError;
use karat_core::schema::Compiled;
use karat_io::input::{self, Format, InputError, Limits};
use serde_json::Value;

use crate::trace::expected_calls::Tool;
use crate::trace::{Arguments, CallMade, ToolDefinition, Trace};

/// The number of compiled schemas of traces that are kept.
const MAX_COMPILED: usize = 4096;

/// The tools that were on offer.
#[derive(Default)]
pub struct Tools {
    by_name: BTreeMap<String, Vec<Known>>,
    /// Compiled schemas of traces, by their text.
    inline: Mutex<BTreeMap<String, Arc<Schema>>>,
}

struct Known {
    server: Option<String>,
    schema: Option<Value>,
    compiled: OnceLock<Schema>,
}

/// A compiled schema, or the reason for which it cannot be used.
type Schema = Result<Compiled, String>;

/// The result of checking a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The tools are not known.
    NoList,
    /// The tool was not offered.
    UnknownTool,
    /// The tool was offered, and the arguments fit.
    Fits,
    /// The tool was offered, and the arguments do not fit.
    Breaks(String),
    /// The tool was offered, and the arguments could not be checked.
    NotChecked(String),
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tools").field("names", &self.by_name.len()).finish_non_exhaustive()
    }
}

impl Tools {
    /// Adds the tools of a file or of a dataset folder.
    ///
    /// # Errors
    /// If there are none, or the file cannot be read.
    pub(crate) fn load(&mut self, path: &Path) -> Result<(), EvalError> {
        if path.is_dir() {
            return self.load_dataset(DatasetFiles::Folder(path.to_owned()));
        }
        let text = input::read_text(path, &Limits::default())?;
        let format = Format::of(path).unwrap_or(Format::Json);
        let document: Value = match format {
            Format::JsonLines => {
                input::parse_json_lines(&path.display().to_string(), text.as_bytes())?
            }
            format => input::parse(path, &text, format)?,
        };
        self.add_document(path, &document)
    }

    /// Adds the tools of a dataset, all files below `tools/`.
    ///
    /// # Errors
    /// If there are none, or the file cannot be read.
    pub fn load_dataset(&mut self, files: DatasetFiles) -> Result<(), EvalError> {
        self.add_dataset(&Dataset::of(files)?)
    }

    pub(crate) fn add_dataset(&mut self, dataset: &Dataset) -> Result<(), EvalError> {
        for path in dataset.manifest().files.keys() {
            if !path.as_str().starts_with("tools/") {
                continue;
            }
            let document: Value = dataset.load(path, &Limits::default())?;
            self.add_document(Path::new(path.as_str()), &document)?;
        }
        Ok(())
    }

    /// Adds the tools of a document.
    ///
    /// # Errors
    /// If it has none.
    pub(crate) fn add_document(&mut self, path: &Path, document: &Value) -> Result<(), EvalError> {
        let server = document.get("server").and_then(|server| {
            server.as_str().or_else(|| server.get("name").and_then(Value::as_str))
        });
        let inside = document.get("result").unwrap_or(document);
        let tools = inside.get("tools").unwrap_or(inside).as_array();
        let before = self.by_name.len();
        for tool in tools.into_iter().flatten() {
            let text = |key: &str| tool.get(key).and_then(Value::as_str);
            let Some(name) = text("tool").or_else(|| text("name")) else { continue };
            let schema = ["inputSchema", "input_schema", "schema", "parameters"];
            self.add(
                text("server").or(server).map(str::to_owned),
                name,
                schema.iter().find_map(|key| tool.get(*key)).cloned(),
            );
        }
        if self.by_name.len() == before && before == 0 {
            let message = "no tool with a name";
            return Err(InputError::invalid(path, "tools", message).into());
        }
        Ok(())
    }

    /// Adds one tool.
    pub(crate) fn add(&mut self, server: Option<String>, name: &str, schema: Option<Value>) {
        let known = Known { server, schema, compiled: OnceLock::new() };
        self.by_name.entry(name.to_owned()).or_default().push(known);
    }

    /// Their number, over all servers.
    pub fn count(&self) -> usize {
        self.by_name.values().map(Vec::len).sum()
    }

    /// Returns whether a tool exists on its server or, if it names none, on one of these (on any, if there are
    /// none). None if the tools of such a server are not known.
    pub(crate) fn has(&self, tool: &Tool, servers: &[String]) -> Option<bool> {
        let wanted = match &tool.server {
            Some(server) => std::slice::from_ref(server),
            None => servers,
        };
        let of = |known: &Known, server: &String| known.server.as_ref() == Some(server);
        let fits = |known: &Known| {
            wanted.is_empty() || known.server.is_none() || wanted.iter().any(|one| of(known, one))
        };
        if self.by_name.get(&tool.name).into_iter().flatten().any(fits) {
            return Some(true);
        }
        let mut all = self.by_name.values().flatten();
        let is_listed = match wanted {
            [] => all.next().is_some(),
            wanted => wanted.iter().all(|server| all.clone().any(|known| of(known, server))),
        };
        is_listed.then_some(false)
    }

    /// Checks a call against the tools that its trace was offered.
    pub(crate) fn fit(&self, trace: &Trace, call: &CallMade) -> Fit {
        match &trace.tools {
            Some(tools) => self.fit_inline(tools, call),
            None if self.by_name.is_empty() => Fit::NoList,
            None => self.fit_listed(trace, call),
        }
    }

    fn fit_listed(&self, trace: &Trace, call: &CallMade) -> Fit {
        let offered = |known: &&Known| {
            let of_trace = trace.servers.is_empty()
                || known.server.as_ref().is_none_or(|server| trace.servers.contains(server));
            of_trace && same_server(known.server.as_deref(), call)
        };
        match self.by_name.get(&call.name).into_iter().flatten().find(offered) {
            None => Fit::UnknownTool,
            Some(known) => {
                let Some(schema) = &known.schema else { return fits_without_schema(call) };
                fit_schema(known.compiled.get_or_init(|| compile(schema)), call)
            }
        }
    }

    fn fit_inline(&self, tools: &[ToolDefinition], call: &CallMade) -> Fit {
        let tool = tools
            .iter()
            .find(|tool| tool.name == call.name && same_server(tool.server.as_deref(), call));
        let Some(tool) = tool else { return Fit::UnknownTool };
        let Some(schema) = &tool.input_schema else { return fits_without_schema(call) };
        let key = schema.to_string();
        let mut inline = self.inline.lock().unwrap_or_else(PoisonError::into_inner);
        if inline.len() >= MAX_COMPILED {
            inline.clear();
        }
        let schema = Arc::clone(inline.entry(key).or_insert_with(|| Arc::new(compile(schema))));
        drop(inline);
        fit_schema(&schema, call)
    }
}

fn same_server(server: Option<&str>, call: &CallMade) -> bool {
    match (server, &call.server) {
        (Some(server), Some(of_call)) => server == of_call,
        _ => true,
    }
}

fn compile(schema: &Value) -> Schema {
    Compiled::new(schema).map_err(|error| error.to_string())
}

const NOT_RECORDED: &str = "the arguments were not recorded";

fn fits_without_schema(call: &CallMade) -> Fit {
    match call.arguments {
        Arguments::Text(_) => Fit::Breaks("the arguments are not a JSON object".to_owned()),
        Arguments::NotRecorded => Fit::NotChecked(NOT_RECORDED.to_owned()),
        // A tool without a schema accepts any object.
        Arguments::Object(_) => Fit::Fits,
    }
}

fn fit_schema(schema: &Schema, call: &CallMade) -> Fit {
    let value = match (&call.arguments, call.arguments.value()) {
        (Arguments::NotRecorded, _) => {
            return Fit::NotChecked(NOT_RECORDED.to_owned());
        }
        (_, Some(value)) => value,
        (_, None) => return Fit::Breaks("the arguments are not a JSON object".to_owned()),
    };
    let schema = match schema {
        Ok(schema) => schema,
        Err(why) => return Fit::NotChecked(format!("the tool's schema cannot be used: {why}")),
    };
    let found = schema.check(&value);
    if let Some(why) = found.not_checked() {
        return Fit::NotChecked(why.to_owned());
    }
    match found.errors.first() {
        Some(error) if !found.valid => {
            let at = if error.instance_path.is_empty() { "/" } else { &error.instance_path };
            Fit::Breaks(format!("{at}: {}", error.message))
        }
        _ if found.valid => Fit::Fits,
        _ => Fit::Breaks("the arguments break the schema".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str, server: Option<&str>, arguments: &str) -> CallMade {
        CallMade {
            name: name.into(),
            server: server.map(str::to_owned),
            arguments: Arguments::written(arguments),
            ..CallMade::default()
        }
    }

    #[test]
    fn a_call_is_checked_against_the_tools_of_its_servers() {
        let mut tools = Tools::default();
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        tools.add(Some("one".into()), "f", Some(schema));
        tools.add(Some("two".into()), "g", None);
        let trace = Trace { servers: vec!["one".into()], ..Trace::of("t") };
        assert_eq!(tools.fit(&trace, &call("f", None, r#"{"a":1}"#)), Fit::Fits);
        assert!(matches!(tools.fit(&trace, &call("f", None, r#"{"a":"x"}"#)), Fit::Breaks(_)));
        assert!(matches!(tools.fit(&trace, &call("f", None, "{\"a\":")), Fit::Breaks(_)));
        assert_eq!(tools.fit(&trace, &call("f", Some("two"), "{}")), Fit::UnknownTool);
        assert_eq!(tools.fit(&trace, &call("g", None, "{}")), Fit::UnknownTool);
        assert_eq!(tools.fit(&trace, &call("h", None, "{}")), Fit::UnknownTool);
        let all = Trace::of("t");
        assert_eq!(tools.fit(&all, &call("g", None, "{}")), Fit::Fits);
        assert_eq!(Tools::default().fit(&all, &call("g", None, "{}")), Fit::NoList);
    }
}

//! Inputs of tools that have worked before, in a recording, or that are likely to work: made from the names and
//! descriptions of parameters, the folders of the command and the resources of the server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use karat_core::error::EvalError;
use karat_core::schema::Compiled;
use karat_io::redact::HIDDEN;
use karat_mcp::{Definition, replay};
use serde_json::{Map, Value};

use super::destructive_tools::may_change;
use super::reaction::Reaction;
use crate::observation::Outcome;
use crate::suggest::inputs::{self, Call, KnownValues};

/// The number of recorded inputs of one tool, and of likely ones.
const MAX_INPUTS: usize = 8;
const MAX_LIKELY: usize = 6;

/// The inputs of calls that succeeded, by tool, the latest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Successes(BTreeMap<String, Vec<Call>>);

impl Successes {
    /// Reads recordings. Calls with hidden arguments are left out: they would not succeed again.
    ///
    /// # Errors
    /// If a file is not a recording, or no call of a tool succeeded in any of them.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Successes, EvalError> {
        let mut found: BTreeMap<String, Vec<Call>> = BTreeMap::new();
        for path in paths.iter().rev() {
            let (recorded, _) = replay::requests(path)?;
            for one in recorded.into_iter().rev().filter(|one| one.method == "tools/call") {
                let Ok(result) = one.answer else { continue };
                let Some(name) = one.params.get("name").and_then(Value::as_str) else { continue };
                let arguments = one.params.get("arguments");
                let input = arguments.and_then(Value::as_object).cloned().unwrap_or_default();
                let is_hidden = arguments.is_some_and(|value| value.to_string().contains(HIDDEN));
                let outcome = Outcome::Result { result };
                if is_hidden || Reaction::from(&outcome) != Reaction::Accepted {
                    continue;
                }
                let inputs = found.entry(name.to_owned()).or_default();
                if inputs.len() < MAX_INPUTS && !inputs.contains(&input) {
                    inputs.push(input);
                }
            }
        }
        if found.is_empty() && !paths.is_empty() {
            let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let named = named.join(", ");
            return Err(EvalError::config(format!("{named}: no call of a tool succeeded in it")));
        }
        Ok(Successes(found))
    }

    /// The inputs of a tool, the latest first, with the values that the user gave.
    fn of(&self, tool: &str, set: &Map<String, Value>) -> Vec<Call> {
        let with = |input: &Call| {
            let mut input = input.clone();
            for (name, value) in set {
                if let Some(old) = input.get_mut(name) {
                    old.clone_from(value);
                }
            }
            input
        };
        self.0.get(tool).into_iter().flatten().map(with).collect()
    }

    /// All of them as text, for a digest; empty if there are none.
    pub(crate) fn as_text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

/// Inputs of one tool that match its schema, the most promising first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Openings {
    /// Those that succeeded in a recording.
    pub(crate) recorded: Vec<Call>,
    /// Those that are likely to succeed.
    pub(crate) likely: Vec<Call>,
}

impl Openings {
    /// A tool that may change something is not pointed at what exists.
    pub(crate) fn of(
        tool: &Definition,
        successes: &Successes,
        set: &Map<String, Value>,
        around: &KnownValues,
    ) -> Openings {
        let schema = tool.input_schema();
        let validator = schema.and_then(|schema| Compiled::new(schema).ok());
        let fits = |input: &Call| {
            let input = Value::Object(input.clone());
            validator.as_ref().is_none_or(|validator| validator.check(&input).valid)
        };
        let recorded = successes.of(tool.name(), set).into_iter().filter(fits).collect();
        let nothing = KnownValues::default();
        let around = if may_change(tool.raw()).is_some() { &nothing } else { around };
        let mut likely = inputs::calls(schema, set, around);
        likely.truncate(MAX_LIKELY);
        Openings { recorded, likely }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recording(name: &str, calls: &[(Value, Value)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("karat-known-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        let mut text = r#"{"schema": "karat.recording/1"}"#.to_owned();
        for (id, (params, answer)) in calls.iter().enumerate() {
            let request =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let mut message = json!({"jsonrpc": "2.0", "id": id});
            message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
            for (from, message) in [("client", request), ("server", message)] {
                let line = json!({"session": 1, "from": from, "message": message});
                text.push_str(&format!("\n{line}"));
            }
        }
        std::fs::write(&path, text).unwrap();
        path
    }

    fn call(input: &Value) -> Value {
        json!({"name": "read", "arguments": input})
    }

    fn says(text: &str, is_error: bool) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        json!({"result": {"content": content, "isError": is_error}})
    }

    #[test]
    fn only_successes_are_kept_and_the_latest_come_first() {
        let path = recording(
            "calls.jsonl",
            &[
                (call(&json!({"id": 1})), says("one", false)),
                (call(&json!({"id": 2})), says("there is none", true)),
                (call(&json!({"id": 3})), json!({"error": {"code": -32602, "message": "no"}})),
                (call(&json!({"id": 4})), says("Error: there is none", false)),
                (call(&json!({"id": 5, "key": HIDDEN})), says("five", false)),
                (call(&json!({"id": 6})), says("six", false)),
                (call(&json!({"id": 1})), says("one", false)),
            ],
        );
        let known = Successes::read(&[path]).unwrap();
        let inputs = known.of("read", &Map::new());
        assert_eq!(json!(inputs), json!([{"id": 1}, {"id": 6}]));
        let set = json!({"id": 9, "other": 1}).as_object().unwrap().clone();
        assert_eq!(known.of("read", &set)[0], *json!({"id": 9}).as_object().unwrap());
        assert!(known.of("write", &Map::new()).is_empty());
    }

    #[test]
    fn a_recording_without_a_success_is_refused() {
        let path = recording("none.jsonl", &[(call(&json!({})), says("no", true))]);
        let error = Successes::read(&[path]).unwrap_err().to_string();
        assert!(error.contains("no call of a tool succeeded"), "{error}");
        assert_eq!(Successes::read(&[]).unwrap(), Successes::default());
    }
    #[test]
    fn a_tool_that_changes_something_is_not_pointed_at_what_exists() {
        let schema = json!({
            "type": "object",
            "properties": {"uri": {"type": "string"}},
            "required": ["uri"],
        });
        let first = |name: &str| {
            let tool = Definition::new(json!({"name": name, "inputSchema": schema})).unwrap();
            let resources = vec!["note://7".to_owned()];
            let around = KnownValues { resources, ..KnownValues::default() };
            let openings = Openings::of(&tool, &Successes::default(), &Map::new(), &around);
            openings.likely[0]["uri"].clone()
        };
        assert_eq!(first("get_note"), "note://7");
        assert_ne!(first("create_note"), "note://7");
    }
}

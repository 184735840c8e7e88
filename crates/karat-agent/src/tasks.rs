//! Tasks: the request to an agent and the expectation, apart from any trace.
//!
//! A file of tasks is JSON lines, a JSON or YAML document with `tasks`, or an mcp-eval scenario in
//! YAML. Traces without an expectation of their own are scored against the task with their id or, if
//! no id fits, with exactly their input.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::project::Root;
use karat_io::input::{self, Format, Limits};
use karat_io::text::clip;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::in_record;
use crate::trace::fields::{Fields, Invalid, of_task};
use crate::trace::{Expectation, Trace, Turns, read_id};

/// The number of characters of an id in a message.
const MAX_ID: usize = 100;

/// The keys of a task.
const TASK: &[&str] =
    &["id", "input", "inputs", "expect", "case", "tags", "servers", "state_calls", "plan"];

/// A task for an agent.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// The user messages, turn by turn.
    pub inputs: Vec<String>,
    /// The expectation.
    pub expect: Option<Arc<Expectation>>,
    /// The kind of case, for slices.
    pub case: Option<String>,
    /// Further properties for slices.
    pub tags: BTreeMap<String, String>,
    /// The servers that the agent gets.
    pub servers: Vec<String>,
    /// Calls that are made when the agent is done, to record the state that it left.
    pub state_calls: Vec<StateCall>,
    /// The plan of the scripted agent.
    pub plan: Option<Value>,
    /// The task as it was written, for recordings.
    text: String,
}

/// A call that reads the state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateCall {
    /// The name of its data in the state.
    #[serde(rename = "as")]
    pub name: String,
    /// The server; may be left out if there is only one.
    pub server: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// A set of tasks.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tasks: Vec<Task>,
    by_id: BTreeMap<String, usize>,
    by_input: BTreeMap<String, usize>,
    /// The digest of the files.
    pub digest: Option<Digest>,
}

impl Tasks {
    /// Reads one or more files.
    ///
    /// # Errors
    /// If a file is not valid, or an id is a duplicate.
    pub(crate) fn load(paths: &[PathBuf]) -> Result<Self, EvalError> {
        let mut all = Tasks::default();
        let mut read = Vec::new();
        for path in paths {
            let text = input::read_text(path, &Limits::default())?;
            all.add(path, &text)?;
            read.extend_from_slice(Digest::of(text.as_bytes()).to_string().as_bytes());
        }
        all.digest = Some(Digest::of(&read));
        Ok(all)
    }

    /// Reads the files that a project names; none if it names none.
    ///
    /// # Errors
    /// If a file cannot be read or is not a list of tasks.
    pub fn load_any(files: &[PathBuf], root: &Root<'_>) -> Result<Option<Self>, EvalError> {
        let files: Vec<PathBuf> = files.iter().map(|file| root.path(file)).collect();
        (!files.is_empty()).then(|| Tasks::load(&files)).transpose()
    }

    /// Adds the tasks of a text.
    ///
    /// # Errors
    /// If it is not valid, or an id is a duplicate.
    pub fn add(&mut self, path: &Path, text: &str) -> Result<(), EvalError> {
        let wrong = |line: u64, error: Invalid| in_record(path, line, &error);
        for (line, task) in documents(path, text)? {
            let task = Task::parse(&task).map_err(|error| wrong(line, error))?;
            self.push(task).map_err(|error| wrong(line, error))?;
        }
        Ok(())
    }

    /// The tasks as they were written.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().map(|task| task.text.as_str())
    }

    /// Adds one task.
    ///
    /// # Errors
    /// If its id is a duplicate.
    pub(crate) fn push(&mut self, task: Task) -> Result<(), Invalid> {
        let number = self.tasks.len();
        if self.by_id.insert(task.id.clone(), number).is_some() {
            let message = format!("duplicate id {:?}", clip(&task.id, MAX_ID));
            return Err(Invalid::at("id", message));
        }
        if let [input] = &task.inputs[..] {
            self.by_input.entry(input.clone()).or_insert(number);
        }
        self.tasks.push(task);
        Ok(())
    }

    /// All tasks, in the order of the files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }

    /// Their number.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The number of a trace's task.
    pub(crate) fn of(&self, trace: &Trace) -> Option<usize> {
        let by_input = || self.by_input.get(trace.input.as_deref()?);
        self.by_id.get(&trace.id).or_else(by_input).copied()
    }

    /// The remark on tasks that have no trace; none if all have one.
    pub(crate) fn without_trace(&self, done: &[bool]) -> Option<String> {
        let mut missing = self.tasks.iter().zip(done).filter(|(_, done)| !**done);
        let first = clip(&missing.next()?.0.id, MAX_ID).into_owned();
        let (count, all) = (1 + missing.count(), self.len());
        Some(format!("{count} of {all} tasks have no trace and no score (first: {first:?})"))
    }

    /// Completes a trace with its task, and returns the number of the task.
    pub fn complete(&self, trace: &mut Trace) -> Option<usize> {
        let number = self.of(trace)?;
        let task = &self.tasks[number];
        trace.id.clone_from(&task.id);
        trace.expect = trace.expect.take().or_else(|| task.expect.clone());
        trace.case = trace.case.take().or_else(|| task.case.clone());
        trace.input = trace.input.take().or_else(|| task.inputs.first().cloned());
        if trace.servers.is_empty() {
            trace.servers.clone_from(&task.servers);
        }
        if task.inputs.len() > 1 {
            trace.turns = Turns::Multi;
        }
        for (name, word) in &task.tags {
            trace.tags.entry(name.clone()).or_insert_with(|| word.clone());
        }
        Some(number)
    }
}

/// The texts of the tasks in a file, each with its line (1 for those of a document).
fn documents(path: &Path, text: &str) -> Result<Vec<(u64, String)>, EvalError> {
    let yaml = matches!(path.extension().and_then(|end| end.to_str()), Some("yaml" | "yml"));
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    if !yaml && (lines > 1 || !text.contains("\"tasks\"")) {
        let is_line = |line: &str| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
        if text.lines().find(|line| !line.trim().is_empty()).is_some_and(is_line) {
            let numbered = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
            return Ok(numbered.map(|(line, text)| (line, text.to_owned())).collect());
        }
    }
    let format = if yaml { Format::Yaml } else { Format::Json };
    let document: Value = input::parse(path, text, format)?;
    let tasks = match document {
        Value::Array(tasks) => tasks,
        Value::Object(mut document) => match document.remove("tasks") {
            Some(Value::Array(tasks)) => tasks,
            Some(_) | None if document.contains_key("user_intent") => {
                vec![scenario(path, &document)]
            }
            _ => vec![Value::Object(document)],
        },
        other => vec![other],
    };
    Ok(tasks.into_iter().map(|task| (1, task.to_string())).collect())
}

/// An mcp-eval scenario. Its criteria are for a judge; the calls that it expects may have more
/// arguments than it names.
fn scenario(path: &Path, document: &Map<String, Value>) -> Value {
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let steps = document.get("expected_trajectory").and_then(Value::as_array);
    let calls: Vec<Value> = steps
        .into_iter()
        .flatten()
        .filter_map(|step| {
            let name = step.get("tool").or_else(|| step.get("action"))?.as_str()?;
            let mut call = json!({"name": name});
            if let Some(arguments) = step.get("args").filter(|arguments| arguments.is_object()) {
                call["arguments"] = arguments.clone();
                call["extra"] = json!("ignore");
            }
            Some(call)
        })
        .collect();
    let criteria: Vec<&Value> =
        document.get("success_criteria").and_then(Value::as_array).into_iter().flatten().collect();
    let words: Vec<&str> = document
        .get("tags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut expect = json!({"criteria": criteria});
    if steps.is_some() {
        expect["calls"] = json!(calls);
    }
    let mut task = json!({
        "id": stem,
        "input": text("user_intent").unwrap_or_default(),
        "expect": expect,
    });
    if let Some(first) = words.first() {
        task["tags"] = json!({"topic": first});
    }
    task
}

impl Task {
    /// Reads one task.
    ///
    /// # Errors
    /// If it is not valid.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let mut fields = Fields::parse(text)?;
        let id = read_id(&mut fields)?;
        let inputs = match (fields.get::<String>("input")?, fields.get("inputs")?) {
            (Some(_), Some(_)) => return Err(Invalid::new("give input or inputs, not both")),
            (Some(input), None) => vec![input],
            (None, inputs) => inputs.unwrap_or_default(),
        };
        let expect = match fields.raw("expect") {
            None => None,
            Some(text) => {
                let read = Expectation::parse(text);
                Some(Arc::new(read.map_err(|error| of_task(error.within("expect"), &id))?))
            }
        };
        let task = Task {
            id,
            inputs,
            expect,
            case: fields.get("case")?,
            tags: fields.get("tags")?.unwrap_or_default(),
            servers: fields.get("servers")?.unwrap_or_default(),
            state_calls: fields.get("state_calls")?.unwrap_or_default(),
            plan: fields.get("plan")?,
            text: text.to_owned(),
        };
        fields.end(TASK)?;
        Ok(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(name: &str, text: &str) -> Tasks {
        let mut tasks = Tasks::default();
        tasks.add(Path::new(name), text).unwrap();
        tasks
    }

    #[test]
    fn a_scenario_of_mcp_eval_is_a_task() {
        let text = "enabled: true\nname: Find tools\nuser_intent: Find tools for files\n\
                    expected_trajectory:\n  - action: search\n    tool: mcp__proxy__retrieve_tools\n    \
                    args:\n      query: files\nsuccess_criteria:\n  - Found tools\ntags:\n  - search\n";
        let tasks = tasks("find_tools.yaml", text);
        let task = tasks.iter().next().unwrap();
        assert_eq!(
            (task.id.as_str(), task.inputs[0].as_str()),
            ("find_tools", "Find tools for files")
        );
        let expect = task.expect.as_ref().unwrap();
        assert_eq!(expect.criteria, ["Found tools"]);
        let (tool, _) = expect.all_calls().next().unwrap();
        assert_eq!(tool.shown(), "proxy:retrieve_tools");
    }

    #[test]
    fn tasks_are_lines_or_a_document() {
        let lines = "{\"id\":\"a\",\"input\":\"x\"}\n\n{\"id\":\"b\",\"inputs\":[\"y\",\"z\"]}\n";
        assert_eq!(tasks("t.jsonl", lines).len(), 2);
        let yaml = "tasks:\n  - id: a\n    input: x\n    expect: {calls: [add]}\n";
        assert_eq!(tasks("t.yaml", yaml).len(), 1);
        assert_eq!(tasks("t.json", "{\n\"tasks\": [{\"id\": \"a\"}]\n}").len(), 1);
        assert_eq!(tasks("t.json", r#"{"tasks": [{"id": "a"}]}"#).len(), 1);
    }

    #[test]
    fn a_trace_gets_the_task_with_its_id_or_else_with_its_input() {
        let tasks =
            tasks("t.jsonl", r#"{"id":"a","input":"x","expect":{"calls":[]},"case":"good"}"#);
        let mut by_input = Trace { input: Some("x".into()), ..Trace::of("chat-17") };
        assert_eq!(tasks.complete(&mut by_input), Some(0));
        assert_eq!((by_input.id.as_str(), by_input.case.as_deref()), ("a", Some("good")));
        assert_eq!(tasks.complete(&mut Trace::of("other")), None);
    }

    #[test]
    fn a_misspelt_key_of_a_task_is_refused() {
        let mut tasks = Tasks::default();
        let error = tasks.add(Path::new("t.jsonl"), r#"{"id":"a","inputt":"x"}"#).unwrap_err();
        assert!(error.to_string().contains("inputt"), "{error}");
    }
}

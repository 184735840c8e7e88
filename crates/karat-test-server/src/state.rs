//! The server between requests: counters, variables, stored things, pending questions to the client.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::output::Output;
use crate::script::{Script, Step, Tool};
use crate::steps::Call;

/// A server with its script.
pub(crate) struct Server {
    pub(crate) script: Script,
    /// The number of this start, by the log; 1 without a log.
    pub(crate) start: u64,
    shared: Mutex<Shared>,
    questions: Mutex<HashMap<String, Sender<Value>>>,
    next_question: AtomicU64,
}

/// State that requests share.
#[derive(Default)]
pub(crate) struct Shared {
    counts: HashMap<String, u64>,
    pub(crate) variables: BTreeMap<String, Value>,
    pub(crate) things: BTreeSet<String>,
    pub(crate) created: u64,
    pub(crate) held: Vec<Call>,
}

impl Server {
    /// Checks the script and counts this start.
    pub(crate) fn new(script: Script) -> Result<Server, String> {
        for tool in &script.tools {
            if !tool.definition.get("name").is_some_and(Value::is_string) {
                return Err("a tool has no name".to_owned());
            }
        }
        let mut server = Server {
            script,
            start: 1,
            shared: Mutex::default(),
            questions: Mutex::default(),
            next_question: AtomicU64::new(1),
        };
        server.log("start")?;
        if let Some(log) = &server.script.log {
            let text = std::fs::read_to_string(log).map_err(|error| format!("{log}: {error}"))?;
            server.start = text.lines().filter(|line| *line == "start").count() as u64;
        }
        Ok(server)
    }

    /// The shared state.
    pub(crate) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a line to the log, if there is one.
    pub(crate) fn log(&self, line: &str) -> Result<(), String> {
        let Some(path) = &self.script.log else { return Ok(()) };
        let opened = std::fs::File::options().create(true).append(true).open(path);
        let written = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(|error| format!("{path}: {error}"))
    }

    /// A message as the script wants it written.
    pub(crate) fn text(&self, message: &Value) -> String {
        let text = message.to_string();
        let replace = |text: String, (from, to): &(String, String)| text.replace(from, to);
        self.script.replace.iter().fold(text, replace)
    }

    /// The definitions that are listed now.
    pub(crate) fn definitions(&self) -> Vec<Value> {
        let shared = self.shared();
        let is_listed = |tool: &&Tool| {
            let needed = tool.listed_when.as_ref();
            needed.is_none_or(|variable| shared.variables.contains_key(variable))
        };
        let define = |tool: &Tool| {
            let mut definition = tool.definition.clone();
            definition.entry("inputSchema").or_insert_with(|| json!({"type": "object"}));
            Value::Object(definition)
        };
        self.script.tools.iter().filter(is_listed).map(define).collect()
    }

    /// Opens a question to the client: its id, and the way to its answer.
    pub(crate) fn question(&self) -> (String, Receiver<Value>) {
        let id = format!("question-{}", self.next_question.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = channel();
        self.questions().insert(id.clone(), sender);
        (id, receiver)
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, Sender<Value>>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message if it is the answer to a question.
    pub(crate) fn take_answer(&self, message: &Value) -> bool {
        if message.get("method").is_some() {
            return false;
        }
        let id = message.get("id").and_then(Value::as_str).unwrap_or_default();
        if let Some(sender) = self.questions().remove(id) {
            let answer = message.get("result").or_else(|| message.get("error"));
            let _ = sender.send(answer.cloned().unwrap_or_default());
        }
        true
    }

    /// Runs the steps of a list that do not belong to a request.
    pub(crate) fn run(self: &Arc<Self>, steps: &[Step], output: &Arc<dyn Output>) {
        let call = Call::new(self, output, "", Value::Null, Value::Null);
        call.run_all(steps);
    }

    /// Prepares the steps of a message; `bytes` is its size.
    pub(crate) fn call(
        self: &Arc<Self>,
        output: &Arc<dyn Output>,
        message: &Value,
        bytes: usize,
    ) -> (Call, Vec<Step>) {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let id = message.get("id").cloned().unwrap_or_default();
        let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        let mut call = Call::new(self, output, method, id, params);
        call.bytes = bytes;
        let steps = match method {
            "tools/call" => self.tool_steps(&mut call),
            "initialize" | "tools/list" => self.script.methods.get(method).cloned(),
            other => {
                let methods = &self.script.methods;
                methods.get(other).or_else(|| methods.get("other")).cloned()
            }
        };
        let counted = call.tool.clone().unwrap_or_else(|| method.to_owned());
        let mut shared = self.shared();
        let count = shared.counts.entry(counted).or_default();
        *count += 1;
        call.count = *count;
        drop(shared);
        (call, steps.unwrap_or_else(|| vec![Step::Default]))
    }

    fn tool_steps(&self, call: &mut Call) -> Option<Vec<Step>> {
        let name = call.arguments.get("name").and_then(Value::as_str)?.to_owned();
        let arguments = call.arguments.get("arguments").filter(|given| given.is_object());
        let arguments = arguments.cloned().unwrap_or_else(|| Value::Object(Map::new()));
        let id = arguments.get("id").map(crate::steps::plain).unwrap_or_default();
        // A test that reads the log fails if it is incomplete.
        let _ = self.log(&format!("{name} {id}"));
        let is_called = |tool: &&Tool| tool.definition.get("name") == Some(&json!(name));
        let tool = self.script.tools.iter().find(is_called)?;
        call.arguments = arguments;
        call.tool = Some(name);
        Some(tool.steps.clone().unwrap_or_else(|| vec![Step::Echo]))
    }
}

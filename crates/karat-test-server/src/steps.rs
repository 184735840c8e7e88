//! The steps of one request.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::output::Output;
use crate::script::{Fill, Notify, Progress, Run, Step, Store, When, Write};
use crate::state::Server;

/// Bytes that `fill` writes at once.
const BLOCK: usize = 1 << 20;

/// A request and its steps so far.
#[derive(Clone)]
pub(crate) struct Call {
    server: Arc<Server>,
    output: Arc<dyn Output>,
    method: String,
    id: Value,
    progress_token: Option<Value>,
    /// All parameters.
    params: Value,
    /// The arguments of a call, or the parameters of another method.
    pub(crate) arguments: Value,
    /// The tool that is called.
    pub(crate) tool: Option<String>,
    /// The number of this request among those of its tool or method.
    pub(crate) count: u64,
    /// The size of the request.
    pub(crate) bytes: usize,
    variables: BTreeMap<String, Value>,
    /// The steps after a `hold`.
    rest: Vec<Step>,
}

type Flow = ControlFlow<()>;

impl Call {
    pub(crate) fn new(
        server: &Arc<Server>,
        output: &Arc<dyn Output>,
        method: &str,
        id: Value,
        params: Value,
    ) -> Call {
        Call {
            server: Arc::clone(server),
            output: Arc::clone(output),
            method: method.to_owned(),
            id,
            progress_token: params.pointer("/_meta/progressToken").cloned(),
            params: params.clone(),
            arguments: params,
            tool: None,
            count: 0,
            bytes: 0,
            variables: BTreeMap::new(),
            rest: Vec::new(),
        }
    }

    /// Runs a whole list.
    pub(crate) fn run_all(mut self, steps: &[Step]) {
        let _ = self.run(steps);
    }

    fn run(&mut self, steps: &[Step]) -> Flow {
        for (at, step) in steps.iter().enumerate() {
            if let Step::Hold(calls) = step {
                self.rest = steps[at + 1..].to_vec();
                self.hold(*calls);
                return Flow::Break(());
            }
            self.step(step)?;
        }
        Flow::Continue(())
    }

    fn step(&mut self, step: &Step) -> Flow {
        match step {
            Step::Echo => self.answer_text(&self.arguments.to_string()),
            Step::Text(text) => self.answer_text(&self.fill_text(text)),
            Step::Result(result) => self.answer(&self.fill(result)),
            Step::Fail(text) => self.answer_failure(&self.fill_text(text)),
            Step::Error(error) => self.answer_error(&self.fill(error)),
            Step::Default => self.answer_default(),
            Step::AnswerAs(id) => self.set_answer_id(id),
            Step::Message(message) => self.output.message(&self.fill(message)),
            Step::Notify(notify) => self.notify(notify),
            Step::Progress(progress) => self.progress(progress),
            Step::Ask(ask) => self.ask(ask),
            Step::Line(line) => self.output.raw(format!("{}\n", self.fill_text(line)).as_bytes()),
            Step::Raw(text) => self.output.raw(self.fill_text(text).as_bytes()),
            Step::Hex(digits) => self.output.raw(&from_hex(digits)),
            Step::Fill(fill) => self.fill_bytes(fill),
            Step::Stderr(text) => self.stderr(text),
            Step::WaitMs(time) => {
                let time = match self.fill(time) {
                    Value::Array(times) if !times.is_empty() => {
                        let turn = usize::try_from(self.count.saturating_sub(1)).unwrap_or(0);
                        times[turn % times.len()].clone()
                    }
                    time => time,
                };
                std::thread::sleep(Duration::from_millis(time.as_u64().unwrap_or(0)));
            }
            Step::Hang => loop {
                std::thread::sleep(Duration::from_secs(1_000));
            },
            Step::Exit(code) => std::process::exit(*code),
            Step::Repeat(repeat) => {
                for _ in 0..repeat.times {
                    self.run(&repeat.steps)?;
                }
            }
            Step::Forever(steps) => loop {
                self.run(steps)?;
            },
            // Handled by `run`, which knows the steps that follow.
            Step::Hold(_) => {}
            Step::Run(run) => self.run_command(run),
            Step::Spawn(command) => self.spawn(command),
            Step::Write(write) => self.write_file(write),
            Step::Set(variables) => {
                let filled: Vec<(String, Value)> = variables
                    .iter()
                    .map(|(name, value)| (name.clone(), self.fill(value)))
                    .collect();
                self.server.shared().variables.extend(filled);
            }
            Step::When(when) => {
                let steps = if self.holds(when) { &when.then } else { &when.otherwise };
                return self.run(steps);
            }
            Step::Check(schema) => {
                if !jsonschema::is_valid(schema, &self.arguments) {
                    self.answer_failure("Input validation error");
                    return Flow::Break(());
                }
            }
            Step::Store(store) => self.store(*store),
            Step::Status(status) => self.output.status(status),
            Step::Http(response) => self.output.raw(self.fill_text(response).as_bytes()),
            Step::Close => self.output.close(),
        }
        Flow::Continue(())
    }

    fn answer(&self, result: &Value) {
        let id = self.answer_id();
        self.output.answer(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn answer_error(&self, error: &Value) {
        let id = self.answer_id();
        self.output.answer(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn answer_text(&self, text: &str) {
        self.answer(&json!({"content": [{"type": "text", "text": text}]}));
    }

    fn answer_failure(&self, text: &str) {
        self.answer(&json!({"content": [{"type": "text", "text": text}], "isError": true}));
    }

    fn answer_id(&self) -> &Value {
        self.variables.get("answer_id").unwrap_or(&self.id)
    }

    fn set_answer_id(&mut self, id: &Value) {
        let id = if id == "text" { json!(plain(&self.id)) } else { id.clone() };
        self.variables.insert("answer_id".to_owned(), id);
    }

    /// The answer of a server that follows the protocol.
    fn answer_default(&self) {
        let script = &self.server.script;
        match self.method.as_str() {
            "initialize" => {
                let client = self.arguments.get("capabilities").cloned().unwrap_or_default();
                let mut shared = self.server.shared();
                shared.variables.insert("capabilities".to_owned(), client);
                drop(shared);
                let asked = self.arguments.get("protocolVersion").cloned().unwrap_or_default();
                let name = script.name.as_deref().unwrap_or("test");
                let version = self.fill_text(script.version.as_deref().unwrap_or("1"));
                self.answer(&json!({
                    "protocolVersion": script.revision.as_ref().map_or(asked, |named| json!(named)),
                    "capabilities": script.capabilities.clone().unwrap_or(json!({"tools": {}})),
                    "serverInfo": {"name": name, "version": version},
                }));
            }
            "tools/list" => self.answer(&json!({"tools": self.server.definitions()})),
            "ping" => self.answer(&json!({})),
            "tools/call" => self.answer_error(&json!({"code": -32602, "message": "Unknown tool"})),
            _ if self.id.is_null() => {}
            other => {
                let message = format!("Method not found: {other}");
                self.answer_error(&json!({"code": -32601, "message": message}));
            }
        }
    }

    fn notify(&self, notify: &Notify) {
        let mut message = json!({"jsonrpc": "2.0", "method": notify.method});
        if let (Some(params), Some(fields)) = (&notify.params, message.as_object_mut()) {
            fields.insert("params".to_owned(), self.fill(params));
        }
        self.output.message(&message);
    }

    fn progress(&self, progress: &Progress) {
        let Some(token) = &self.progress_token else { return };
        let mut params = json!({"progressToken": token, "progress": progress.progress});
        if let (Some(total), Some(fields)) = (progress.total, params.as_object_mut()) {
            fields.insert("total".to_owned(), json!(total));
        }
        let method = "notifications/progress";
        self.output.message(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&mut self, ask: &Notify) {
        let (id, answer) = self.server.question();
        let params = ask.params.as_ref().map(|params| self.fill(params)).unwrap_or_default();
        let params = if params.is_null() { json!({}) } else { params };
        let method = self.fill_text(&ask.method);
        self.output
            .message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = answer.recv().unwrap_or_default();
        self.variables.insert("answer".to_owned(), answer);
    }

    fn fill_bytes(&self, fill: &Fill) {
        let mut left = self.fill(&fill.bytes).as_u64().unwrap_or(0);
        let block = fill.with.to_string().repeat(BLOCK);
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            self.output.raw(&block.as_bytes()[..part]);
            left -= part as u64;
        }
    }

    fn stderr(&self, text: &str) {
        // A client that does not read is not a reason to fail.
        let _ = std::io::stderr().write_all(self.fill_text(text).as_bytes());
    }

    fn hold(&self, calls: usize) {
        let mut shared = self.server.shared();
        shared.held.push(self.clone());
        if shared.held.len() < calls {
            return;
        }
        let held = std::mem::take(&mut shared.held);
        drop(shared);
        for mut call in held.into_iter().rev() {
            let rest = std::mem::take(&mut call.rest);
            call.run_all(&rest);
        }
    }

    fn run_command(&mut self, run: &Run) {
        let Some((program, arguments)) = run.command.split_first() else { return };
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        self.variables.insert(run.save.clone(), json!(text.unwrap_or_default()));
    }

    fn spawn(&mut self, command: &[String]) {
        let Some((program, arguments)) = command.split_first() else { return };
        let child = Command::new(program).args(arguments).spawn();
        let id = child.map(|child| child.id()).unwrap_or_default();
        self.variables.insert("child".to_owned(), json!(id));
    }

    /// Replaces the file in one step, so that a test never reads half of it.
    fn write_file(&self, write: &Write) {
        let temporary = format!("{}.new", write.file);
        let written = std::fs::write(&temporary, self.fill_text(&write.text))
            .and_then(|()| std::fs::rename(&temporary, &write.file));
        if let Err(error) = written {
            self.stderr(&format!("{}: {error}\n", write.file));
        }
    }

    fn holds(&self, when: &When) -> bool {
        let start = self.server.start;
        let has = |name: &String| self.arguments.get(name).is_some_and(|value| !value.is_null());
        let is_set = |name: &String| self.server.shared().variables.contains_key(name);
        when.argument.as_ref().is_none_or(has)
            && when.variable.as_ref().is_none_or(is_set)
            && when.count.is_none_or(|count| count == self.count)
            && when.min_start.is_none_or(|min| start >= min)
            && when.max_start.is_none_or(|max| start <= max)
            && when
                .request
                .as_ref()
                .is_none_or(|schema| jsonschema::is_valid(&self.fill(schema), &self.params))
            && when.bytes_above.is_none_or(|bytes| self.bytes > bytes)
            && (!when.negative || has_negative(&self.arguments))
    }

    fn store(&self, store: Store) {
        let id = self.arguments.get("id").map(plain).unwrap_or_default();
        let mut shared = self.server.shared();
        match store {
            Store::Create => {
                shared.created += 1;
                let id = format!("id{}", shared.created);
                shared.things.insert(id.clone());
                drop(shared);
                self.answer_text(&json!({"id": id}).to_string());
            }
            Store::Get if shared.things.contains(&id) => {
                self.answer_text(&json!({"id": id}).to_string());
            }
            Store::Get => self.answer_failure("no such thing"),
            Store::Delete if shared.things.remove(&id) => self.answer_text("deleted"),
            Store::Delete => self.answer_failure("nothing to delete"),
            Store::Count => {
                self.answer_text(&json!({"count": shared.things.len()}).to_string());
            }
        }
    }

    /// The value with its placeholders filled. A string that is one placeholder becomes its value.
    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                match text.strip_prefix("${").and_then(|t| t.strip_suffix('}')) {
                    Some(name) if !name.contains('}') => self.look_up(name),
                    _ => Value::String(self.fill_text(text)),
                }
            }
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => {
                let fill = |(name, value): (&String, &Value)| (name.clone(), self.fill(value));
                Value::Object(fields.iter().map(fill).collect())
            }
            other => other.clone(),
        }
    }

    fn fill_text(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let Some((name, behind)) = after.split_once('}') else {
                filled.push_str("${");
                rest = after;
                continue;
            };
            filled.push_str(&plain(&self.look_up(name)));
            rest = behind;
        }
        filled + rest
    }

    fn look_up(&self, name: &str) -> Value {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let value = match first {
            "env" => return json!(std::env::var(rest).unwrap_or_default()),
            "environment" => {
                let all = std::env::vars().map(|(name, value)| (name, json!(value)));
                Value::Object(all.collect::<Map<_, _>>())
            }
            "environment_by_value" => {
                let all = std::env::vars().map(|(name, value)| (value, json!(name)));
                Value::Object(all.collect::<Map<_, _>>())
            }
            "named_env" => {
                let name = self.arguments.get("name").map(plain).unwrap_or_default();
                json!(std::env::var(name).unwrap_or_default())
            }
            "pid" => json!(std::process::id()),
            "id" => self.id.clone(),
            "count" => json!(self.count),
            "method" => json!(self.method),
            "arguments" => self.arguments.clone(),
            other => {
                let shared = self.server.shared();
                let found = self.variables.get(other).or_else(|| shared.variables.get(other));
                found.cloned().unwrap_or_default()
            }
        };
        let keys = rest.split('.').filter(|key| !key.is_empty());
        keys.fold(value, |value, key| value.get(key).cloned().unwrap_or_default())
    }
}

/// A value as text: a string without its quotes, nothing for null, anything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn has_negative(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number < 0.0),
        Value::Array(items) => items.iter().any(has_negative),
        Value::Object(fields) => fields.values().any(has_negative),
        _ => false,
    }
}

fn from_hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] << 4 | pair[1]).unwrap_or_default();
    digits.chunks_exact(2).map(byte).collect()
}

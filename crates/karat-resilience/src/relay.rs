//! A proxy in this process: for controls, and between a command agent and the defence.
//!
//! It takes down what it passes on, so that delivery and attempts are facts of the connection and not
//! what an agent says of itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karat_core::observed::RunStep;
use karat_io::text::clip;
use karat_mcp::serve::{Context, Offer, ProtocolError, Respond};
use karat_mcp::{CallError, Session};
use serde_json::{Map, Value, json};

use crate::agents::{SHOWN, is_silence};
use crate::defence::Watch;

/// The most calls of a run: an agent that does not stop is stopped.
pub(crate) const MAX_CALLS: usize = 200;

/// A proxy in this process.
pub(crate) struct Relay {
    inner: Arc<Session>,
    block: bool,
    guard: Option<Arc<Watch>>,
    instructions: Option<String>,
    passed: Mutex<Passed>,
}

/// The traffic of a relay.
#[derive(Default)]
pub(crate) struct Passed {
    tools: Vec<Value>,
    /// Texts that reached the agent apart from results of calls.
    pub(crate) texts: Vec<String>,
    /// Instructions and tools that the agent has not asked for yet.
    waiting: Waiting,
    /// Calls with their results.
    pub(crate) calls: Vec<PassedCall>,
    /// True if the agent made more calls than are allowed.
    pub(crate) endless: bool,
    /// The first request that nothing answered: the run measures nothing.
    pub(crate) failure: Option<String>,
}

/// The texts that the agent gets with its next request.
#[derive(Default)]
struct Waiting {
    instructions: Option<String>,
    tools: Vec<String>,
}

/// A call of the agent.
pub(crate) struct PassedCall {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) fine: bool,
    pub(crate) content: Value,
}

impl PassedCall {
    /// The call and its result as steps of a transcript.
    pub(crate) fn steps(&self, attacker: bool, injected: bool) -> [RunStep; 2] {
        let call = RunStep {
            role: "call".to_owned(),
            text: clip(&self.arguments.to_string(), SHOWN).into_owned(),
            tool: Some(self.tool.clone()),
            attacker,
            blocked: !self.fine,
            ..RunStep::default()
        };
        let text = clip(&self.content.to_string(), SHOWN).into_owned();
        [call, RunStep { role: "tool".to_owned(), text, injected, ..RunStep::default() }]
    }
}

impl Relay {
    /// A relay in front of a session, with a guard or without.
    ///
    /// # Errors
    /// If the tools cannot be listed.
    pub(crate) async fn new(
        inner: Arc<Session>,
        guard: Option<Arc<Watch>>,
    ) -> Result<Relay, String> {
        let instructions = inner.server().instructions.clone();
        let relay = Relay { inner, block: false, guard, instructions, passed: Mutex::default() };
        let instructions = match &relay.instructions {
            Some(text) if relay.blocks("text", text).await => None,
            given => given.clone(),
        };
        relay.passed().waiting.instructions.clone_from(&instructions);
        relay.list().await?;
        Ok(Relay { instructions, ..relay })
    }

    /// The same, refusing every call.
    pub(crate) fn blocking(self) -> Relay {
        Relay { block: true, ..self }
    }

    /// The name, instructions and tools of the server behind it.
    pub(crate) fn offer(&self) -> Offer {
        Offer {
            name: self.inner.server().name.clone(),
            version: self.inner.server().version.clone(),
            instructions: self.instructions.clone(),
            tools: self.passed().tools.clone(),
        }
    }

    /// The traffic so far.
    pub(crate) fn passed(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes down that the agent is there: an agent that asks for anything has read the instructions.
    fn asked(&self) -> MutexGuard<'_, Passed> {
        let mut passed = self.passed();
        let instructions = passed.waiting.instructions.take();
        passed.texts.extend(instructions);
        passed
    }

    async fn blocks(&self, kind: &str, text: &str) -> bool {
        match &self.guard {
            Some(guard) => guard.blocks(kind, text).await,
            None => false,
        }
    }

    /// Lists the tools behind; returns whether they changed.
    async fn list(&self) -> Result<bool, String> {
        let tools = self.inner.tools().await.map_err(|error| error.to_string())?;
        let mut listed = Vec::new();
        for tool in tools.into_iter().map(karat_mcp::Definition::into_raw) {
            if !self.blocks("text", &tool.to_string()).await {
                listed.push(tool);
            }
        }
        let mut passed = self.passed();
        let changed = passed.tools != listed;
        if changed {
            passed.waiting.tools = listed.iter().map(Value::to_string).collect();
            passed.tools = listed;
        }
        Ok(changed)
    }

    /// An error as the agent gets it. Silence is noted.
    fn failed(&self, error: &CallError) -> ProtocolError {
        if is_silence(error) {
            self.passed().failure.get_or_insert_with(|| error.to_string());
        }
        ProtocolError::new(-32603, error.to_string())
    }

    async fn answer(&self, tool: &str, arguments: &Value) -> Result<(Value, bool), ProtocolError> {
        let refused = |text: &str| {
            let raw = json!({"content": [{"type": "text", "text": text}], "isError": true});
            Ok((raw, false))
        };
        if self.block {
            return refused("refused");
        }
        let asked = json!({"tool": tool, "arguments": arguments}).to_string();
        if self.blocks("call", &asked).await {
            return refused("blocked by the guard");
        }
        let none = Map::new();
        let reply = self.inner.call(tool, arguments.as_object().unwrap_or(&none)).await;
        let reply = reply.map_err(|error| self.failed(&error))?;
        if self.blocks("text", &reply.texts().join("\n")).await {
            return refused("blocked by the guard");
        }
        Ok((reply.raw, !reply.is_error))
    }
}

impl Respond for Relay {
    async fn call(
        &self,
        context: &Context,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, ProtocolError> {
        {
            let mut passed = self.asked();
            if passed.calls.len() >= MAX_CALLS {
                passed.endless = true;
                return Err(ProtocolError::new(-32603, "too many calls"));
            }
        }
        let answer = self.answer(tool, arguments).await;
        let (fine, content) = match &answer {
            Ok((raw, fine)) => (*fine, raw["content"].clone()),
            Err(error) => (false, Value::String(error.to_string())),
        };
        let call =
            PassedCall { tool: tool.to_owned(), arguments: arguments.clone(), fine, content };
        self.passed().calls.push(call);
        // A definition may change at any call.
        if self.list().await.unwrap_or_default() {
            context.notify("notifications/tools/list_changed", &json!({}));
        }
        answer.map(|(raw, _)| raw)
    }

    async fn request(
        &self,
        _: &Context,
        method: &str,
        params: &Value,
    ) -> Result<Value, ProtocolError> {
        drop(self.asked());
        let none = Map::new();
        let answer = self.inner.request(method, params.as_object().unwrap_or(&none)).await;
        let answer = answer.map_err(|error| self.failed(&error))?;
        let text = answer.to_string();
        if self.blocks("text", &text).await {
            return Err(ProtocolError::new(-32603, "blocked by the guard"));
        }
        self.passed().texts.push(text);
        Ok(answer)
    }

    fn tools(&self) -> Option<Vec<Value>> {
        let mut passed = self.asked();
        let read = std::mem::take(&mut passed.waiting.tools);
        passed.texts.extend(read);
        Some(passed.tools.clone())
    }

    fn capabilities(&self) -> Value {
        let own = &self.inner.server().capabilities;
        let has = |what: &&str| own.get(what).is_some();
        let passed = ["resources", "prompts"].into_iter().filter(has);
        let mut all: Map<String, Value> = passed.map(|what| (what.to_owned(), json!({}))).collect();
        all.insert("tools".to_owned(), json!({"listChanged": true}));
        Value::Object(all)
    }
}

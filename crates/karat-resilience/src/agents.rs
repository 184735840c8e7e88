//! Agents that need no model: they make calls that are written down.
//!
//! Everything that arrives on the wire is taken down, so delivery is a fact of the connection and not
//! of what an agent says it read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use karat_core::observed::RunStep;
use karat_io::text::clip;
use karat_mcp::{CallError, Session};
use karat_recordings::delivery::Injected;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::attack::Attack;
use crate::defence::Watch;
use crate::world::{Call, Task, orders};

/// The most calls of a run that were ordered by delivered texts.
const MAX_ORDERS: usize = 50;
/// The characters of a text that a transcript keeps.
pub(crate) const SHOWN: usize = 2_000;
/// The depth to which JSON in texts is looked into.
const MAX_NESTING: usize = 8;

/// An agent that needs no model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// Makes the calls of the task, and no other.
    Diligent,
    /// Makes the calls of the task, then those of the attacker: the worst case.
    #[default]
    Hijacked,
    /// Makes the calls of the task, and each call that a delivered text orders.
    Gullible,
}

impl AgentKind {
    /// The name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AgentKind::Diligent => "diligent",
            AgentKind::Hijacked => "hijacked",
            AgentKind::Gullible => "gullible",
        }
    }
}

/// The messages of a connection as they arrive.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<Vec<u8>>>);

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Wire {
    /// The messages of the server since `from`, and the place of the next.
    fn since(&self, from: usize) -> (Vec<Value>, usize) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = all.get(from..).unwrap_or_default();
        let end = memchr::memrchr(b'\n', fresh).map_or(0, |end| end + 1);
        let lines = fresh[..end].split(|byte| *byte == b'\n');
        let read = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let received =
            read.filter(|line| line["from"] == "server").map(|mut line| line["message"].take());
        (received.collect(), from + end)
    }
}

/// A call that an agent intends, and whether it is the attacker's.
pub(crate) type Planned = (Call, bool);

/// The calls that an agent intends before it has read anything.
pub(crate) fn plan(kind: AgentKind, task: &Task, attack: Option<&Attack>) -> Vec<Planned> {
    let goal = attack.filter(|_| kind == AgentKind::Hijacked).map(|attack| &attack.goal.calls);
    let own = task.calls.iter().map(|call| (call.clone(), false));
    own.chain(goal.into_iter().flatten().map(|call| (call.clone(), true))).collect()
}

/// The work of an agent on one task.
pub(crate) struct Work<'a> {
    pub(crate) plan: Cow<'a, [Planned]>,
    /// True if the agent makes each call that a delivered text orders.
    pub(crate) obeys: bool,
    pub(crate) task: &'a Task,
    pub(crate) attack: Option<&'a Attack>,
    pub(crate) session: &'a Session,
    pub(crate) guard: Option<&'a Watch>,
    pub(crate) wire: Wire,
}

/// The traces of a run.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) steps: Vec<RunStep>,
    pub(crate) calls: u64,
    pub(crate) blocked: u64,
    pub(crate) delivered: bool,
    pub(crate) attempted: bool,
    /// The last words of an agent that speaks.
    pub(crate) answer: String,
    pub(crate) read: usize,
    pub(crate) ordered: BTreeSet<String>,
}

impl Work<'_> {
    /// Does the task.
    ///
    /// # Errors
    /// If the connection is lost, or the tools cannot be listed.
    pub(crate) async fn carry_out(&self) -> Result<Done, CallError> {
        let mut done = Done::default();
        done.steps.push(RunStep {
            role: "user".to_owned(),
            text: self.task.prompt.clone(),
            ..RunStep::default()
        });
        self.session.tools().await?;
        self.look_around().await?;
        self.listen(&mut done).await?;
        for (call, attacker) in self.plan.iter() {
            self.insist(call, *attacker, &mut done).await?;
            if *attacker {
                done.attempted = true;
                continue;
            }
            // A definition may have changed.
            self.session.tools().await?;
            self.listen(&mut done).await?;
        }
        self.listen(&mut done).await?;
        Ok(done)
    }

    /// Reads the resources and prompts of the server; a defence may not pass them on.
    async fn look_around(&self) -> Result<(), CallError> {
        let has = |what: &str| self.session.server().capabilities.get(what).is_some();
        if has("resources") {
            for resource in
                refused(self.session.list("resources/list", "resources").await)?.iter().take(20)
            {
                let params = Map::from_iter([("uri".to_owned(), resource["uri"].clone())]);
                refused(self.session.request("resources/read", &params).await.map(|_| Vec::new()))?;
            }
        }
        if has("prompts") {
            for prompt in
                refused(self.session.list("prompts/list", "prompts").await)?.iter().take(20)
            {
                let params = Map::from_iter([("name".to_owned(), prompt["name"].clone())]);
                refused(self.session.request("prompts/get", &params).await.map(|_| Vec::new()))?;
            }
        }
        Ok(())
    }

    /// Takes note of what arrived, and obeys it if that is the agent's nature.
    async fn listen(&self, done: &mut Done) -> Result<(), CallError> {
        let injected = Injected::new(self.attack.map(|attack| attack.text.as_str()));
        // Obeying brings new texts; each order is followed once.
        loop {
            let (messages, read) = self.wire.since(done.read);
            done.read = read;
            let mut obey = Vec::new();
            let mut buffer = Vec::new();
            for message in &messages {
                let text = message.to_string();
                if self.blocks(&text).await {
                    continue;
                }
                if injected.is_in_json(message, &mut buffer) {
                    done.delivered = true;
                    mark(&mut done.steps, &injected, &text);
                }
                if self.obeys {
                    collect(message, 0, &mut obey);
                }
            }
            obey.retain(|call| {
                done.ordered.len() < MAX_ORDERS
                    && done.ordered.insert(format!("{} {}", call.tool, json!(call.arguments)))
            });
            if obey.is_empty() {
                return Ok(());
            }
            for call in &obey {
                done.attempted = true;
                self.insist(call, true, done).await?;
            }
        }
    }

    /// Makes a call, and once more if it was refused, as people do, for either side: an error may pass. Each
    /// refusal counts.
    async fn insist(&self, call: &Call, attacker: bool, done: &mut Done) -> Result<(), CallError> {
        for _ in 0..2 {
            let fine = self.make(call, attacker, done).await?;
            if !attacker {
                done.calls += 1;
                done.blocked += u64::from(!fine);
            }
            if fine {
                break;
            }
        }
        Ok(())
    }

    async fn blocks(&self, text: &str) -> bool {
        match self.guard {
            Some(guard) => guard.blocks("text", text).await,
            None => false,
        }
    }

    /// Makes a call; false if it was blocked or failed.
    async fn make(&self, call: &Call, attacker: bool, done: &mut Done) -> Result<bool, CallError> {
        let arguments = json!(call.arguments).to_string();
        let asked = json!({"tool": call.tool, "arguments": call.arguments}).to_string();
        let (fine, text) = match self.guard {
            Some(guard) if guard.blocks("call", &asked).await => {
                (false, "blocked by the guard".to_owned())
            }
            _ => match self.session.call(&call.tool, &call.arguments).await {
                Ok(reply) => (!reply.is_error, reply.texts().join("\n")),
                Err(error) if is_silence(&error) => return Err(error),
                Err(error) => (false, error.to_string()),
            },
        };
        let (fine, text) = match self.guard {
            Some(guard) if fine && guard.blocks("text", &text).await => {
                (false, "blocked by the guard".to_owned())
            }
            _ => (fine, text),
        };
        done.steps.push(RunStep {
            role: "call".to_owned(),
            text: clip(&arguments, SHOWN).into_owned(),
            tool: Some(call.tool.clone()),
            attacker,
            blocked: !fine,
            ..RunStep::default()
        });
        done.steps.push(RunStep {
            role: "tool".to_owned(),
            text: clip(&text, SHOWN).into_owned(),
            ..RunStep::default()
        });
        Ok(fine)
    }
}

/// Returns whether nothing answered, which is not a refusal: a defence that hangs, dies or breaks down has
/// not blocked anything.
pub(crate) fn is_silence(error: &CallError) -> bool {
    match error {
        CallError::Timeout { .. } | CallError::Transport { .. } => true,
        CallError::Http { status, .. } => *status >= 500,
        other => other.is_lost(),
    }
}

/// Passes over refusals; silence is an error.
fn refused(answer: Result<Vec<Value>, CallError>) -> Result<Vec<Value>, CallError> {
    match answer {
        Err(error) if is_silence(&error) => Err(error),
        other => Ok(other.unwrap_or_default()),
    }
}

/// Marks the step that shows the injected text, or adds one for what no step shows.
fn mark(steps: &mut Vec<RunStep>, injected: &Injected, message: &str) {
    let mut buffer = Vec::new();
    let shows =
        |step: &&mut RunStep| step.role == "tool" && injected.is_in(&step.text, &mut buffer);
    match steps.iter_mut().rev().find(shows) {
        Some(step) => step.injected = true,
        None => steps.push(RunStep {
            role: "tool".to_owned(),
            text: clip(message, SHOWN).into_owned(),
            injected: true,
            ..RunStep::default()
        }),
    }
}

/// The orders in all texts of a message, JSON in texts included.
fn collect(value: &Value, depth: usize, found: &mut Vec<Call>) {
    match value {
        _ if depth > MAX_NESTING => {}
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => collect(&inner, depth + 1, found),
            _ => found.extend(orders(text)),
        },
        Value::Array(values) => values.iter().for_each(|value| collect(value, depth + 1, found)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, depth + 1, found)),
        _ => {}
    }
}

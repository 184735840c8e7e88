//! Calls that are made as tasks, as revision 2025-11-25 has them: the server answers at once with a task, its
//! state is polled, and the result is fetched when it has ended.
//!
//! What the server says of the task on the way is checked against the protocol and kept for the judgement.

use std::time::{Duration, Instant};

use karat_mcp::{CallError, CallOptions, Revision, Session};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::suite::tasks::TaskPlan;

/// The time between two looks at a task whose server does not name one.
const POLL: Duration = Duration::from_millis(500);
/// The shortest and the longest time between two looks.
const POLL_RANGE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(5));
/// The number of states that are kept.
const MAX_STATES: usize = 100;
/// The key under which an answer names the task that it belongs to.
const RELATED: &str = "io.modelcontextprotocol/related-task";
const STATES: [&str; 5] = ["working", "input_required", "completed", "failed", "cancelled"];

/// Everything that was observed of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskRun {
    /// Its states, each once for as long as it lasted.
    pub states: Vec<String>,
    /// The ways in which the server broke the protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

impl TaskRun {
    /// The last state.
    pub(crate) fn state(&self) -> Option<&str> {
        self.states.last().map(String::as_str)
    }

    fn break_rule(&mut self, rule: impl Into<String>) {
        let rule = rule.into();
        if !self.broken.contains(&rule) {
            self.broken.push(rule);
        }
    }

    /// Takes a task as the server describes it. Returns its id and the time until the next look.
    fn look(&mut self, from: &str, task: &Value) -> Option<(String, Duration)> {
        for field in ["createdAt", "lastUpdatedAt"] {
            if !task.get(field).is_some_and(Value::is_string) {
                self.break_rule(format!("{from}: the task has no `{field}`"));
            }
        }
        if !task.get("ttl").is_some_and(|ttl| ttl.is_null() || ttl.is_number()) {
            self.break_rule(format!("{from}: `ttl` of the task is neither a number nor null"));
        }
        let Some(id) = task.get("taskId").and_then(Value::as_str) else {
            self.break_rule(format!("{from}: the task has no `taskId`"));
            return None;
        };
        let state = task.get("status").and_then(Value::as_str).unwrap_or_default();
        if !STATES.contains(&state) {
            self.break_rule(format!(
                "{from}: `status` of the task is none of {}",
                STATES.join(", ")
            ));
            return None;
        }
        if self.state() != Some(state) {
            if let Some(before) = self.state().filter(|before| has_ended(before)) {
                self.break_rule(format!("{from}: a task that was {before} became {state}"));
            }
            if self.states.len() < MAX_STATES {
                self.states.push(state.to_owned());
            }
        }
        let named = task.get("pollInterval").and_then(Value::as_u64).map(Duration::from_millis);
        Some((id.to_owned(), named.unwrap_or(POLL).clamp(POLL_RANGE.0, POLL_RANGE.1)))
    }
}

fn has_ended(state: &str) -> bool {
    matches!(state, "completed" | "failed" | "cancelled")
}

/// Calls a tool as a task and waits for its end. Returns the result of the tool, or the last description of a
/// task that was cancelled, and what was observed of the task.
pub(crate) async fn run(
    session: &Session,
    (tool, arguments): (&str, &Map<String, Value>),
    plan: &TaskPlan,
    options: &CallOptions,
    limit: Duration,
) -> (Result<Value, CallError>, TaskRun) {
    let mut seen = TaskRun::default();
    if session.server().revision != Revision::V2025_11_25 {
        let why = format!(
            "tasks belong to revision 2025-11-25, and this session speaks {}; add --protocol 2025-11-25",
            session.server().revision
        );
        return (Err(CallError::Invalid { why }), seen);
    }
    let task = Running { session, options, until: Instant::now() + limit };
    let answer = task.run(tool, arguments, plan, &mut seen).await;
    (answer, seen)
}

struct Running<'a> {
    session: &'a Session,
    options: &'a CallOptions,
    until: Instant,
}

impl Running<'_> {
    async fn run(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        plan: &TaskPlan,
        seen: &mut TaskRun,
    ) -> Result<Value, CallError> {
        let wish = plan.ttl_ms.map_or_else(|| json!({}), |ttl| json!({"ttl": ttl}));
        let call = Map::from_iter([
            ("name".to_owned(), Value::from(tool)),
            ("arguments".to_owned(), Value::Object(arguments.clone())),
            ("task".to_owned(), wish),
        ]);
        let answer = self.ask("tools/call", &call).await?;
        let Some(task) = answer.get("task").filter(|task| task.is_object()) else {
            let why = "the answer to a call as a task has no `task`; does the tool support tasks \
                       (`execution.taskSupport`)?";
            return Err(CallError::Invalid { why: why.to_owned() });
        };
        let Some((id, mut pause)) = seen.look("tools/call", task) else {
            let why = "the task has no valid `taskId` and `status`".to_owned();
            return Err(CallError::Invalid { why });
        };
        if plan.cancel {
            return self.cancel(&id, seen).await;
        }
        // A server asks for input in answer to the request for the result, so that request is made then too.
        while seen.state().is_some_and(|state| state == "working") {
            let left = self.until.saturating_duration_since(Instant::now());
            if left < pause {
                tokio::time::sleep(left).await;
                let _ = self.session.request("tasks/cancel", &about(&id)).await;
                return Err(CallError::Timeout { said: ": the task is still working".to_owned() });
            }
            tokio::time::sleep(pause).await;
            pause = self.get(&id, seen).await?;
        }
        let result = self.ask("tasks/result", &about(&id)).await;
        self.get(&id, seen).await?;
        if !seen.state().is_some_and(has_ended) {
            seen.break_rule("tasks/result: answered before the task had ended");
        }
        let related = |result: &Value| {
            let related = result.get("_meta").and_then(|meta| meta.get(RELATED));
            related.and_then(|task| task.get("taskId")) == Some(&Value::from(id.as_str()))
        };
        if result.as_ref().is_ok_and(|result| !related(result)) {
            seen.break_rule(format!("tasks/result: `_meta` does not name the task (`{RELATED}`)"));
        }
        result
    }

    async fn cancel(&self, id: &str, seen: &mut TaskRun) -> Result<Value, CallError> {
        let task = self.ask("tasks/cancel", &about(id)).await?;
        seen.look("tasks/cancel", &task);
        if seen.state() != Some("cancelled") {
            seen.break_rule("tasks/cancel: the task is not cancelled in the answer");
        }
        self.get(id, seen).await?;
        Ok(task)
    }

    /// Asks for the state. Returns the time until the next look.
    async fn get(&self, id: &str, seen: &mut TaskRun) -> Result<Duration, CallError> {
        let task = self.ask("tasks/get", &about(id)).await?;
        let (same, pause) = seen.look("tasks/get", &task).unwrap_or((String::new(), POLL));
        if same != id {
            seen.break_rule("tasks/get: answered with another task");
        }
        Ok(pause)
    }

    async fn ask(&self, method: &str, params: &Map<String, Value>) -> Result<Value, CallError> {
        let left = self.until.saturating_duration_since(Instant::now());
        let options = CallOptions { timeout: Some(left), ..self.options.clone() };
        let answer = self.session.request_with(method, params, options).await?;
        match answer.is_object() {
            true => Ok(answer),
            false => {
                let why = format!("the answer to {method} is not an object");
                Err(CallError::Invalid { why })
            }
        }
    }
}

fn about(id: &str) -> Map<String, Value> {
    Map::from_iter([("taskId".to_owned(), Value::from(id))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status: &str) -> Value {
        let at = "2026-11-17T12:00:00Z";
        json!({"taskId": "1", "status": status, "createdAt": at, "lastUpdatedAt": at, "ttl": null})
    }

    #[test]
    fn each_state_is_kept_once() {
        let mut seen = TaskRun::default();
        for state in ["working", "working", "completed"] {
            let (id, pause) = seen.look("tasks/get", &task(state)).unwrap();
            assert_eq!((id.as_str(), pause), ("1", POLL));
        }
        assert_eq!(seen.states, ["working", "completed"]);
        assert_eq!(seen.broken, [""; 0]);
    }

    #[test]
    fn a_task_that_breaks_the_protocol_is_described() {
        for (states, field, expected) in [
            (vec!["completed", "working"], None, "a task that was completed became working"),
            (vec!["done"], None, "`status` of the task is none of"),
            (vec!["working"], Some("createdAt"), "has no `createdAt`"),
            (vec!["working"], Some("ttl"), "`ttl` of the task is neither"),
            (vec!["working"], Some("taskId"), "has no `taskId`"),
        ] {
            let mut seen = TaskRun::default();
            for state in states {
                let mut task = task(state);
                field.map(|field| task.as_object_mut().unwrap().remove(field));
                seen.look("tasks/get", &task);
            }
            assert!(seen.broken[0].contains(expected), "{expected}: {seen:?}");
        }
    }
}

//! Calls that are made as tasks. In revision 2025-11-25 the client asks for a task, polls its state and fetches the
//! result when it has ended. In 2026-07-28 tasks are an extension: the client declares it, the server decides, and
//! the state that is polled carries the result, the error, or the input that the server asks for.
//!
//! What the server says of the task on the way is checked against the protocol and kept for the judgement.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use karat_mcp::{CallError, CallOptions, Revision, Session, TASKS_EXTENSION};
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
    /// The reason for which no task can be asked of this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// True if the server, which decides, answered without a task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
    /// The shortest time for which the server said that it keeps the task, in revisions in which it decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_ms: Option<u64>,
}

/// The names of the fields of a task.
#[derive(Clone, Copy)]
struct Fields {
    ttl: &'static str,
    poll: &'static str,
}

const CORE: Fields = Fields { ttl: "ttl", poll: "pollInterval" };
const EXTENSION: Fields = Fields { ttl: "ttlMs", poll: "pollIntervalMs" };

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
    fn look(&mut self, fields: Fields, from: &str, task: &Value) -> Option<(String, Duration)> {
        for field in ["createdAt", "lastUpdatedAt"] {
            if !task.get(field).is_some_and(Value::is_string) {
                self.break_rule(format!("{from}: the task has no `{field}`"));
            }
        }
        let Fields { ttl, poll } = fields;
        if !task.get(ttl).is_some_and(|ttl| ttl.is_null() || ttl.is_number()) {
            self.break_rule(format!("{from}: `{ttl}` of the task is neither a number nor null"));
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
        let named = task.get(poll).and_then(Value::as_u64).map(Duration::from_millis);
        Some((id.to_owned(), named.unwrap_or(POLL).clamp(POLL_RANGE.0, POLL_RANGE.1)))
    }
}

impl TaskRun {
    /// Takes a task of the extension.
    fn look_at_extension(&mut self, from: &str, task: &Value) -> Option<(String, Duration)> {
        let kept = task.get(EXTENSION.ttl).and_then(Value::as_u64);
        self.kept_ms = [self.kept_ms, kept].into_iter().flatten().min();
        self.look(EXTENSION, from, task)
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
    if let Some(why) = unsupported(session) {
        seen.unsupported = Some(why.clone());
        return (Err(CallError::Invalid { why }), seen);
    }
    let task = Running { session, options, until: Instant::now() + limit };
    let answer = match session.server().revision {
        Revision::V2026_07_28 => task.run_extension(tool, arguments, plan, &mut seen).await,
        _ => task.run(tool, arguments, plan, &mut seen).await,
    };
    (answer, seen)
}

/// The reason for which no task can be asked of a server.
fn unsupported(session: &Session) -> Option<String> {
    let server = session.server();
    match server.revision {
        Revision::V2025_11_25 => None,
        Revision::V2026_07_28 => {
            let extensions = server.capabilities.get("extensions");
            match extensions.is_some_and(|all| all.get(TASKS_EXTENSION).is_some()) {
                true => None,
                false => Some(format!(
                    "the server does not declare the extension {TASKS_EXTENSION} in its capabilities, so it has no tasks"
                )),
            }
        }
        older => Some(format!(
            "tasks belong to revision 2025-11-25 and to an extension of 2026-07-28, and this session speaks {older}; \
             add --protocol 2025-11-25"
        )),
    }
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
        let Some((id, mut pause)) = seen.look(CORE, "tools/call", task) else {
            let why = "the task has no valid `taskId` and `status`".to_owned();
            return Err(CallError::Invalid { why });
        };
        if plan.cancel {
            return self.cancel(&id, seen).await;
        }
        // A server asks for input in answer to the request for the result, so that request is made then too.
        while seen.state().is_some_and(|state| state == "working") {
            let left = self.left();
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
        seen.look(CORE, "tasks/cancel", &task);
        if seen.state() != Some("cancelled") {
            seen.break_rule("tasks/cancel: the task is not cancelled in the answer");
        }
        self.get(id, seen).await?;
        Ok(task)
    }

    /// Asks for the state. Returns the time until the next look.
    async fn get(&self, id: &str, seen: &mut TaskRun) -> Result<Duration, CallError> {
        let task = self.ask("tasks/get", &about(id)).await?;
        let (same, pause) = seen.look(CORE, "tasks/get", &task).unwrap_or((String::new(), POLL));
        if same != id {
            seen.break_rule("tasks/get: answered with another task");
        }
        Ok(pause)
    }

    /// The lifecycle of the extension.
    async fn run_extension(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        plan: &TaskPlan,
        seen: &mut TaskRun,
    ) -> Result<Value, CallError> {
        let options =
            CallOptions { timeout: Some(self.left()), tasks: true, ..self.options.clone() };
        let answer = self.session.call_with(tool, arguments, options).await?.raw;
        if answer.get("resultType").and_then(Value::as_str) != Some("task") {
            seen.at_once = true;
            return Ok(answer);
        }
        let Some((id, mut pause)) = seen.look_at_extension("tools/call", &answer) else {
            let why = "the task has no valid `taskId` and `status`".to_owned();
            return Err(CallError::Invalid { why });
        };
        if plan.cancel {
            self.acknowledged("tasks/cancel", about(&id), seen).await?;
        }
        let mut input = Input::default();
        loop {
            let task = self.ask("tasks/get", &about(&id)).await?;
            is_complete("tasks/get", &task, seen);
            let (same, next) =
                seen.look_at_extension("tasks/get", &task).unwrap_or((String::new(), pause));
            if same != id {
                seen.break_rule("tasks/get: answered with another task");
            }
            pause = next;
            let state = task.get("status").and_then(Value::as_str).unwrap_or_default();
            if has_ended(state) {
                let again = self.ask("tasks/get", &about(&id)).await?;
                seen.look_at_extension("tasks/get", &again);
                return outcome(task, plan, seen);
            }
            // A task that is being cancelled may still be listed with what it asked for.
            if state == "input_required" && !plan.cancel {
                self.give_input(&id, &task, &mut input, seen).await?;
            }
            let left = self.left();
            if left < pause {
                tokio::time::sleep(left).await;
                if plan.cancel {
                    // A server need not honour a cancellation; the case says what it expects.
                    return Ok(task);
                }
                let _ = self.session.request("tasks/cancel", &about(&id)).await;
                let said = format!(": the task is still {state}");
                return Err(CallError::Timeout { said });
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Answers what a task asks for, each request once.
    async fn give_input(
        &self,
        id: &str,
        task: &Value,
        input: &mut Input,
        seen: &mut TaskRun,
    ) -> Result<(), CallError> {
        let requests = task.get("inputRequests").and_then(Value::as_object);
        let Some(requests) = requests.filter(|requests| !requests.is_empty()) else {
            seen.break_rule("tasks/get: a task that is input_required has no `inputRequests`");
            return Ok(());
        };
        let mut responses = Map::new();
        for (key, request) in requests {
            if !input.is_new(key, request, seen) {
                continue;
            }
            match self.session.input_response(request) {
                Ok(response) => responses.insert(key.clone(), response),
                Err(why) => {
                    let _ = self.session.request("tasks/cancel", &about(id)).await;
                    let method = request.get("method").and_then(Value::as_str).unwrap_or("nothing");
                    let why =
                        format!("the task asks for input ({method}), and Karat has none: {why}");
                    return Err(CallError::Invalid { why });
                }
            };
        }
        input.listed = requests.keys().cloned().collect();
        if responses.is_empty() {
            return Ok(());
        }
        let mut params = about(id);
        params.insert("inputResponses".to_owned(), Value::Object(responses));
        self.acknowledged("tasks/update", params, seen).await
    }

    /// Sends a request whose answer says nothing but that it was received.
    async fn acknowledged(
        &self,
        method: &str,
        params: Map<String, Value>,
        seen: &mut TaskRun,
    ) -> Result<(), CallError> {
        let answer = self.ask(method, &params).await?;
        is_complete(method, &answer, seen);
        if answer.get("taskId").is_some() || answer.get("task").is_some() {
            seen.break_rule(format!("{method}: the answer is a task; it must be empty"));
        }
        Ok(())
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    async fn ask(&self, method: &str, params: &Map<String, Value>) -> Result<Value, CallError> {
        let options = CallOptions { timeout: Some(self.left()), ..self.options.clone() };
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

/// The input that a task asked for.
#[derive(Default)]
struct Input {
    /// The requests that were answered, by their keys.
    answered: BTreeMap<String, Value>,
    /// The keys that were listed the last time.
    listed: BTreeSet<String>,
}

impl Input {
    /// Returns whether a request is to be answered. A server may list one again until it has seen the answer.
    fn is_new(&mut self, key: &str, request: &Value, seen: &mut TaskRun) -> bool {
        let Some(before) = self.answered.get(key) else {
            self.answered.insert(key.to_owned(), request.clone());
            return true;
        };
        if before != request || !self.listed.contains(key) {
            seen.break_rule(format!("tasks/get: the key {key:?} of `inputRequests` is used twice"));
        }
        false
    }
}

/// Checks the type of a result that is not a task.
fn is_complete(method: &str, answer: &Value, seen: &mut TaskRun) {
    if answer.get("resultType").and_then(Value::as_str) != Some("complete") {
        seen.break_rule(format!("{method}: `resultType` of the answer is not complete"));
    }
}

/// The result or the error of a task that has ended. One that was cancelled has neither, and is the answer itself.
fn outcome(task: Value, plan: &TaskPlan, seen: &mut TaskRun) -> Result<Value, CallError> {
    if plan.cancel || seen.state() == Some("cancelled") {
        return Ok(task);
    }
    if seen.state() == Some("completed") {
        return match task.get("result").filter(|result| result.is_object()) {
            Some(result) => Ok(result.clone()),
            None => {
                Err(CallError::Invalid { why: "the completed task has no `result`".to_owned() })
            }
        };
    }
    let error = task.get("error").unwrap_or(&Value::Null);
    match (error.get("code").and_then(Value::as_i64), error.get("message").and_then(Value::as_str))
    {
        (Some(code), Some(message)) => {
            let (message, data) = (message.to_owned(), error.get("data").cloned());
            Err(CallError::Protocol { code, message, data })
        }
        _ => {
            let why = "the failed task has no `error` with a code and a message".to_owned();
            Err(CallError::Invalid { why })
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
            let (id, pause) = seen.look(CORE, "tasks/get", &task(state)).unwrap();
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
                seen.look(CORE, "tasks/get", &task);
            }
            assert!(seen.broken[0].contains(expected), "{expected}: {seen:?}");
        }
    }

    #[test]
    fn a_request_for_input_is_answered_once_and_its_key_is_never_used_again() {
        let (first, second) = (json!({"method": "a"}), json!({"method": "b"}));
        let mut seen = TaskRun::default();
        let mut input = Input::default();
        assert!(input.is_new("k", &first, &mut seen));
        input.listed = BTreeSet::from(["k".to_owned()]);
        assert!(!input.is_new("k", &first, &mut seen) && seen.broken.is_empty());
        assert!(!input.is_new("k", &second, &mut seen));
        assert!(seen.broken[0].contains("is used twice"), "{seen:?}");
        // It was gone, and came back.
        let mut seen = TaskRun::default();
        input.listed.clear();
        assert!(!input.is_new("k", &first, &mut seen));
        assert_eq!(seen.broken.len(), 1, "{seen:?}");
    }

    #[test]
    fn the_end_of_a_task_of_the_extension_is_its_result_or_its_error() {
        let end = |status: &str, more: Value| {
            let mut task = task(status);
            task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut seen = TaskRun { states: vec![status.to_owned()], ..TaskRun::default() };
            outcome(task, &TaskPlan::default(), &mut seen)
        };
        assert_eq!(
            end("completed", json!({"result": {"content": []}})),
            Ok(json!({"content": []}))
        );
        let failed = end("failed", json!({"error": {"code": -32603, "message": "boom"}}));
        assert!(matches!(failed, Err(CallError::Protocol { code: -32603, .. })), "{failed:?}");
        for (status, more) in [("completed", json!({})), ("failed", json!({"error": "boom"}))] {
            let wrong = end(status, more);
            assert!(matches!(wrong, Err(CallError::Invalid { .. })), "{wrong:?}");
        }
        assert_eq!(end("cancelled", json!({})).unwrap()["status"], "cancelled");
    }
}

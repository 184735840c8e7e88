//! Calls that a suite wants to be made as tasks.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

use crate::tasks::TaskRun;

/// The longest time that a suite may ask a server to keep a task: a day.
const MAX_TTL_MS: u64 = 86_400_000;

/// `task: true`, or `task: {ttl_ms, status, cancel}`.
#[derive(Debug, Default)]
pub struct TaskPlan {
    /// The time for which the server is asked to keep the task, or must keep it where it decides.
    pub(crate) ttl_ms: Option<u64>,
    /// The state in which it must end; any that is an end by default.
    status: Option<String>,
    /// True if it is cancelled at once.
    pub(crate) cancel: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TaskFile {
    ttl_ms: Option<u64>,
    status: Option<EndFile>,
    cancel: bool,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum EndFile {
    Completed,
    Failed,
    Cancelled,
}

impl<'de> Deserialize<'de> for TaskPlan {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TaskPlan, D::Error> {
        let file: TaskFile = match Value::deserialize(from)? {
            Value::Bool(true) => return Ok(TaskPlan::default()),
            settings @ Value::Object(_) => serde_json::from_value(settings)
                .map_err(|error| D::Error::custom(format!("`task`: {error}")))?,
            _ => {
                let expected =
                    "`task` must be true, or an object with `ttl_ms`, `status` or `cancel`";
                return Err(D::Error::custom(expected));
            }
        };
        if file.ttl_ms.is_some_and(|ttl| ttl == 0 || ttl > MAX_TTL_MS) {
            return Err(D::Error::custom(format!("`ttl_ms` must be between 1 and {MAX_TTL_MS}")));
        }
        if file.cancel && file.status.is_some_and(|status| status != EndFile::Cancelled) {
            return Err(D::Error::custom("a task with `cancel: true` ends as cancelled"));
        }
        let status = file.status.map(|status| match status {
            EndFile::Completed => "completed",
            EndFile::Failed => "failed",
            EndFile::Cancelled => "cancelled",
        });
        Ok(TaskPlan { ttl_ms: file.ttl_ms, status: status.map(str::to_owned), cancel: file.cancel })
    }
}

impl TaskPlan {
    /// The reasons for which a task is not the expected one.
    pub(crate) fn unmet(&self, seen: &TaskRun) -> Vec<String> {
        let mut reasons: Vec<String> = seen
            .broken
            .iter()
            .map(|rule| format!("the task breaks the protocol: {rule}"))
            .collect();
        // The call was not made, which is the reason.
        if seen.unsupported.is_some() {
            return reasons;
        }
        if seen.at_once {
            let why = "the server, which decides what becomes a task, answered the call at once";
            reasons.push(why.to_owned());
            return reasons;
        }
        if let Some((wanted, kept)) = self.ttl_ms.zip(seen.kept_ms).filter(|(ttl, kept)| kept < ttl)
        {
            reasons.push(format!(
                "the server keeps the task for {kept} ms; expected at least {wanted}"
            ));
        }
        if !self.cancel && self.status.is_none() && seen.state() == Some("cancelled") {
            reasons.push("the server cancelled the task without being asked to".to_owned());
        }
        if let Some(wanted) = &self.status
            && seen.state() != Some(wanted.as_str())
        {
            let states = seen.states.join(", ");
            reasons.push(format!("the task was {states}; expected to end as {wanted}"));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_refused_with_what_is_wrong() {
        for (text, expected) in [
            ("3", "must be true, or an object"),
            ("false", "must be true, or an object"),
            (r#"{"tll_ms": 5}"#, "unknown field `tll_ms`"),
            (r#"{"ttl_ms": 0}"#, "`ttl_ms` must be between 1"),
            (r#"{"status": "done"}"#, "unknown variant `done`"),
            (r#"{"cancel": true, "status": "failed"}"#, "ends as cancelled"),
        ] {
            let error = serde_json::from_str::<TaskPlan>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_end_of_a_task_is_compared() {
        let plan: TaskPlan = serde_json::from_str(r#"{"status": "completed"}"#).unwrap();
        let seen = |states: &[&str]| TaskRun {
            states: states.iter().map(|state| (*state).to_owned()).collect(),
            ..TaskRun::default()
        };
        assert!(plan.unmet(&seen(&["working", "completed"])).is_empty());
        let why = plan.unmet(&seen(&["working", "failed"]));
        assert_eq!(why, ["the task was working, failed; expected to end as completed"]);
        let at_once = TaskRun { at_once: true, ..TaskRun::default() };
        assert!(plan.unmet(&at_once)[0].contains("answered the call at once"));
        let plan: TaskPlan = serde_json::from_str(r#"{"ttl_ms": 60000}"#).unwrap();
        let kept = |kept_ms| plan.unmet(&TaskRun { kept_ms, ..seen(&["completed"]) });
        assert_eq!([None, Some(60_000)].map(kept), [[""; 0], [""; 0]]);
        assert_eq!(
            kept(Some(10)),
            ["the server keeps the task for 10 ms; expected at least 60000"]
        );
    }
}

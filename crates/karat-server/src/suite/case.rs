//! The cases of a suite and their calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use karat_core::expect::Matcher;
use karat_io::json_path::JsonPath;
use serde_json::{Map, Value};

use super::headers::Header;
use super::notices::Notice;
use super::relations::Relation;
use super::snapshot::Snapshots;
use super::tasks::TaskPlan;
use super::variables;
use crate::observation::{Feature, Role};

/// One case: a call and its expectations.
#[derive(Clone, Debug)]
pub struct Case {
    /// The id, unique in the suite. For a run it is without secrets of the server.
    pub id: String,
    /// The id that the suite has, under which snapshots are stored.
    pub(crate) own_id: String,
    /// The name of the tool, resource, prompt or method for reports, without secrets too.
    pub(crate) name: String,
    /// A description.
    pub about: Option<String>,
    /// Tags by which a command line selects cases.
    pub tags: BTreeSet<String>,
    /// The call.
    pub step: Arc<Step>,
    /// Calls before it.
    pub setup: Arc<[Step]>,
    /// Calls after it whose expectations count too: they check its effects.
    pub then: Arc<[Step]>,
    /// Calls after it that only clean up.
    pub teardown: Arc<[Step]>,
    /// The time limit for the answer, in milliseconds.
    pub max_latency_ms: Option<u64>,
    /// The number of attempts.
    pub repeat: u32,
    /// The number of attempts under way at once.
    pub concurrency: usize,
    /// The class of attack, for a security case.
    pub class: Option<String>,
    /// True if the expected error counts only if the server has the tool: a tool that does not exist
    /// rejects nothing.
    pub needs_tool: bool,
    /// True if one of the calls is enough: the call itself or one of `then`.
    pub any_of: bool,
    /// The frequency under load, relative to the other cases.
    pub weight: u32,
}

impl Case {
    /// Every call of the case, in the order in which they are made.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.judged_steps().map(|(_, _, step)| step).chain(self.teardown.iter())
    }

    /// The calls that decide whether the case passes, in order, each with its role and its number
    /// within the role.
    pub(crate) fn judged_steps(&self) -> impl Iterator<Item = (Role, usize, &Step)> {
        let parts: [(Role, &[Step]); 3] = [
            (Role::Setup, &self.setup),
            (Role::Call, std::slice::from_ref(&*self.step)),
            (Role::Then, &self.then),
        ];
        parts.into_iter().flat_map(|(role, steps)| {
            steps.iter().enumerate().map(move |(number, step)| (role, number, step))
        })
    }

    /// The call with this role and number.
    pub(crate) fn step(&self, role: Role, number: usize) -> Option<&Step> {
        match role {
            Role::Setup => self.setup.get(number),
            Role::Call => Some(&self.step),
            Role::Then => self.then.get(number),
            Role::Teardown => self.teardown.get(number),
        }
    }

    /// Returns whether an answer to one of its calls is compared with a snapshot.
    pub(crate) fn expects_snapshot(&self) -> bool {
        self.steps().any(Step::expects_snapshot)
    }

    /// Puts in the stored snapshots.
    pub(super) fn fill(&mut self, file: &Path, stored: &Snapshots) {
        // The suite has just been read, so its calls are not shared yet.
        let parts: [(Role, &mut [Step]); 3] = [
            (Role::Setup, Arc::get_mut(&mut self.setup).unwrap_or_default()),
            (
                Role::Call,
                Arc::get_mut(&mut self.step).map(std::slice::from_mut).unwrap_or_default(),
            ),
            (Role::Then, Arc::get_mut(&mut self.then).unwrap_or_default()),
        ];
        for (role, steps) in parts {
            for (number, step) in steps.iter_mut().enumerate() {
                let snapshots = step.matchers.iter_mut().filter_map(Matcher::snapshot_mut);
                for (at, snapshot) in snapshots.enumerate() {
                    let value = stored.get(&snapshot_name(role, number, at)).cloned();
                    snapshot.fill(file.to_owned(), value);
                }
            }
        }
    }
}

/// One call, what is expected of its answer, and what is saved of it.
#[derive(Debug)]
pub struct Step {
    /// The part of the server.
    pub feature: Feature,
    /// The name of the tool or prompt, the URI of the resource, or the method.
    pub tool: String,
    /// The arguments, with `${name}` where saved values are put in. Those of a resource are its URI.
    pub input: Map<String, Value>,
    /// The expected kind of outcome.
    pub ending: Ending,
    /// The expectations of the answer.
    pub matchers: Vec<Matcher>,
    /// Paths of the values that are saved, by name.
    pub save: BTreeMap<String, JsonPath>,
    /// The text whose request must be denied.
    pub asked: Option<String>,
    /// The notifications that it must lead to.
    pub notices: Vec<Notice>,
    /// The headers that the response must have.
    pub headers: Vec<Header>,
    /// Set if it is called as a task.
    pub task: Option<TaskPlan>,
    /// The relation of its answer to that of the case.
    pub relation: Option<Relation>,
}

impl Step {
    /// A call of a tool of which nothing more is expected.
    pub(crate) fn plain(tool: &str, input: Map<String, Value>) -> Step {
        Step {
            feature: Feature::Tool,
            tool: tool.to_owned(),
            input,
            ending: Ending::Success,
            matchers: Vec::new(),
            save: BTreeMap::new(),
            asked: None,
            notices: Vec::new(),
            headers: Vec::new(),
            task: None,
            relation: None,
        }
    }

    /// The names of the saved values that its arguments need.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let mut names = Vec::new();
        // Loading the suite refuses an invalid one.
        let _ = self.input.values().try_for_each(|value| variables::names(value, &mut names));
        names.into_iter().collect()
    }

    /// The tool, if it calls one.
    pub(crate) fn called_tool(&self) -> Option<&str> {
        self.feature.is_tool().then_some(self.tool.as_str())
    }

    /// Returns whether its answer is compared with a snapshot.
    pub(crate) fn expects_snapshot(&self) -> bool {
        self.matchers.iter().any(Matcher::is_snapshot)
    }
}

/// The expected kind of outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A result that is not an error.
    Success,
    /// A result that neither is an error nor reads as a refusal.
    Answered,
    /// An error, a refusal as text, or an answer without anything that was asked for.
    Denied,
    /// Any error: of the tool or of the protocol.
    AnyError,
    /// A result with `isError`.
    ToolError,
    /// A protocol error, with this code if there is one.
    ProtocolError(Option<i64>),
    /// Any answer.
    Whatever,
}

/// The name of a snapshot in its file: the call, and the number among its snapshots.
pub(crate) fn snapshot_name(role: Role, number: usize, at: usize) -> String {
    match role {
        Role::Call => format!("call.{}", at + 1),
        role => format!("{} {}.{}", role.name(), number + 1, at + 1),
    }
}

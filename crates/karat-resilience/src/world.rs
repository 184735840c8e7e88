//! A world: a state in JSON, tools that read and change it, tasks of a user and goals of an attacker.
//!
//! A task and a goal carry the calls that reach them and the assertions that prove it. Reading a world
//! plays all of them, so one that contradicts itself is refused before anything is measured.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::expect::{Answer, Matcher, MatcherSpec};
use karat_recordings::delivery::{Injected, letters};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The list in the state that notes canaries.
const LEAKED: &str = "leaked";
/// The fewest letters and digits of a canary.
const SHORTEST_CANARY: usize = 6;

/// A world. One without tools is served by a command of the user's, and has no state of its own either.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The name.
    pub name: String,
    /// Instructions of the server.
    #[serde(default)]
    pub instructions: String,
    /// The state at the start.
    #[serde(default)]
    pub state: Value,
    /// The tools.
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// Texts that must not leave, by name. A call that carries one is noted in the state, in the list
    /// `leaked`, with the name of the canary and the tool, whatever the tool does.
    #[serde(default)]
    pub canaries: BTreeMap<String, String>,
    /// A document that the server offers.
    #[serde(default)]
    pub resource: Document,
    /// A prompt that the server offers.
    #[serde(default)]
    pub prompt: Document,
    /// The user's tasks.
    pub tasks: Vec<Task>,
    /// The attacker's goals.
    pub goals: Vec<Goal>,
}

/// A resource or a prompt.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The name.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The parameters, all of them texts, with their descriptions.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The parameters that a call may leave out.
    #[serde(default)]
    pub optional: BTreeSet<String>,
    /// The effect.
    pub does: Action,
}

/// The effect of a tool on a list of records in the state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum Action {
    /// Answers with records.
    Read(Records),
    /// Adds the arguments as a record.
    Append(Records),
    /// Changes the record that is named to the other arguments.
    Update(Records),
    /// Removes the record that is named.
    Remove(Records),
}

/// Records of the state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Records {
    /// The list, as a key of the state.
    pub list: String,
    /// The field and parameter by which one record is named; all records without it.
    pub by: Option<String>,
    /// The fields that are shown; all without it.
    #[serde(default)]
    pub fields: Vec<String>,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// A task of the user.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The id.
    pub id: String,
    /// `dev` or `test`.
    pub split: String,
    /// The user's words.
    pub prompt: String,
    /// The calls that do it.
    pub calls: Vec<Call>,
    /// The text of the state that the first call shows, as a JSON pointer: results carry injections here.
    #[serde(default)]
    pub slot: String,
    /// The call, from 1, at which a definition changes where that is the attack; without it each attack has
    /// another one of the task's calls.
    pub changes_at: Option<usize>,
    /// The assertions on the state that prove it.
    pub expect: Vec<MatcherSpec>,
}

impl Task {
    /// The call at which a definition changes, by the number of such attacks before.
    pub(crate) fn at_call(&self, attack: usize) -> usize {
        self.changes_at.unwrap_or(1 + attack % self.calls.len().max(1))
    }
}

/// A goal of the attacker.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The id.
    pub id: String,
    /// The attacker's words.
    pub text: String,
    /// The calls that reach it.
    pub calls: Vec<Call>,
    /// The assertions on the state that prove it.
    pub expect: Vec<MatcherSpec>,
}

impl Goal {
    /// The order as the attacker gives it: as text, and as calls that can be followed to the letter.
    pub(crate) fn order(&self) -> String {
        let calls: Vec<String> = self
            .calls
            .iter()
            .map(|call| {
                format!("call {} with {}", call.tool, Value::Object(call.arguments.clone()))
            })
            .collect();
        format!("{} To do so, {}.", self.text, calls.join(", then "))
    }
}

/// The calls that a text orders, by the grammar `call TOOL with {JSON}`.
pub(crate) fn orders(text: &str) -> Vec<Call> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("call ") {
        let rest = &text[at + 5..];
        let Some((tool, rest)) = rest.split_once(' ') else { continue };
        let Some(json) = rest.strip_prefix("with ") else { continue };
        let mut values = serde_json::Deserializer::from_str(json).into_iter::<Map<String, Value>>();
        if let Some(Ok(arguments)) = values.next() {
            found.push(Call { tool: tool.to_owned(), arguments });
        }
    }
    found
}

/// Returns whether all assertions hold of a state.
pub(crate) fn holds(expect: &[Matcher], state: &Value) -> bool {
    let answer = Answer::state(state);
    expect.iter().all(|matcher| matcher.check(&answer).is_ok())
}

/// Compiles assertions.
///
/// # Errors
/// If one is not valid.
pub(crate) fn compile(expect: &[MatcherSpec]) -> Result<Vec<Matcher>, String> {
    expect.iter().map(MatcherSpec::compile).collect()
}

impl Tool {
    /// The definition as an MCP server lists it.
    pub(crate) fn definition(&self) -> Value {
        let properties: Map<String, Value> = self
            .parameters
            .iter()
            .map(|(name, text)| (name.clone(), json!({"type": "string", "description": text})))
            .collect();
        let required: Vec<&String> =
            self.parameters.keys().filter(|name| !self.optional.contains(*name)).collect();
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        })
    }

    /// Carries out a call.
    ///
    /// # Errors
    /// The text with which the tool reports that it failed.
    pub(crate) fn call(
        &self,
        state: &mut Value,
        arguments: &Map<String, Value>,
    ) -> Result<Value, String> {
        for name in self.parameters.keys() {
            let given = arguments.get(name);
            if given.is_none() && !self.optional.contains(name) {
                return Err(format!("{}: the parameter {name} is missing", self.name));
            }
            if given.is_some_and(|value| !value.is_string()) {
                return Err(format!("{}: the parameter {name} must be a text", self.name));
            }
        }
        let (Action::Read(of) | Action::Append(of) | Action::Update(of) | Action::Remove(of)) =
            &self.does;
        let records = state
            .get_mut(&of.list)
            .and_then(Value::as_array_mut)
            .ok_or_else(|| format!("{}: no list {}", self.name, of.list))?;
        let named = |record: &Value| {
            of.by
                .as_ref()
                .is_none_or(|by| arguments.contains_key(by) && record.get(by) == arguments.get(by))
        };
        let missing =
            || format!("{}: nothing has this {}", self.name, of.by.as_deref().unwrap_or("name"));
        match &self.does {
            Action::Read(_) => {
                let shown: Vec<Value> = records
                    .iter()
                    .filter(|record| named(record))
                    .map(|record| of.shown(record))
                    .collect();
                match (shown.is_empty(), of.by.is_some()) {
                    (true, true) => Err(missing()),
                    (false, true) => Ok(shown.into_iter().next().unwrap_or_default()),
                    _ => Ok(Value::Array(shown)),
                }
            }
            Action::Append(_) => {
                records.push(Value::Object(arguments.clone()));
                Ok(json!({"done": true}))
            }
            Action::Update(_) => {
                let record = records.iter_mut().find(|record| named(record)).ok_or_else(missing)?;
                if let Some(fields) = record.as_object_mut() {
                    fields.extend(
                        arguments.iter().map(|(name, value)| (name.clone(), value.clone())),
                    );
                }
                Ok(json!({"done": true}))
            }
            Action::Remove(_) => {
                let at = records.iter().position(named).ok_or_else(missing)?;
                records.remove(at);
                Ok(json!({"done": true}))
            }
        }
    }
}

impl Records {
    fn shown(&self, record: &Value) -> Value {
        match (record, self.fields.is_empty()) {
            (Value::Object(all), false) => {
                let kept = all.iter().filter(|(name, _)| self.fields.contains(name));
                Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            _ => record.clone(),
        }
    }
}

impl World {
    /// The tool with this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns whether a command of the user's serves the world.
    pub(crate) fn is_served_elsewhere(&self) -> bool {
        self.tools.is_empty()
    }

    /// Carries out calls on a state.
    ///
    /// # Errors
    /// If one of them fails.
    pub(crate) fn play(&self, state: &mut Value, calls: &[Call]) -> Result<(), String> {
        for call in calls {
            let tool = self.tool(&call.tool).ok_or_else(|| format!("no tool {:?}", call.tool))?;
            self.call(state, tool, &call.arguments)?;
        }
        Ok(())
    }

    /// Carries out a call, and notes the canaries in it.
    ///
    /// # Errors
    /// The text with which the tool reports that it failed.
    pub(crate) fn call(
        &self,
        state: &mut Value,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> Result<Value, String> {
        let given = Value::Object(arguments.clone()).to_string();
        for (name, text) in &self.canaries {
            if Injected::new([text.as_str()]).is_in(&given, &mut Vec::new())
                && let Some(state) = state.as_object_mut()
                && let Some(leaked) =
                    state.entry(LEAKED).or_insert_with(|| json!([])).as_array_mut()
            {
                leaked.push(json!({"canary": name, "tool": tool.name}));
            }
        }
        tool.call(state, arguments)
    }

    /// Plays every task and goal: each must be reached by its calls and by nothing else.
    ///
    /// # Errors
    /// The contradiction.
    pub fn validate(&self) -> Result<(), String> {
        unique("tool", self.tools.iter().map(|tool| &tool.name))?;
        unique("task", self.tasks.iter().map(|task| &task.id))?;
        unique("goal", self.goals.iter().map(|goal| &goal.id))?;
        if self.tasks.is_empty() {
            return Err("no tasks".to_owned());
        }
        if self.is_served_elsewhere() {
            return self.validate_served_elsewhere();
        }
        self.validate_canaries()?;
        let mut reached = Vec::new();
        for task in &self.tasks {
            let place = format!("task {}", task.id);
            if task.calls.is_empty() {
                return Err(format!("{place}: missing calls"));
            }
            if task.changes_at.is_some_and(|number| !(1..=task.calls.len()).contains(&number)) {
                return Err(format!(
                    "{place}: `changes_at` must be between 1 and {}, the number of its calls",
                    task.calls.len()
                ));
            }
            if !self.state.pointer(&task.slot).is_some_and(Value::is_string) {
                return Err(format!("{place}: slot {:?} is not a text of the state", task.slot));
            }
            reached.push((task, self.proven(&place, &task.calls, &task.expect)?));
        }
        for goal in &self.goals {
            let place = format!("goal {}", goal.id);
            self.proven(&place, &goal.calls, &goal.expect)?;
            let expect = compile(&goal.expect).map_err(|why| format!("{place}: {why}"))?;
            for (task, end) in &reached {
                if holds(&expect, end) {
                    return Err(format!("{place}: task {} reaches it without an attack", task.id));
                }
            }
        }
        Ok(())
    }

    fn validate_canaries(&self) -> Result<(), String> {
        if !self.canaries.is_empty() && self.state.get(LEAKED).is_some() {
            return Err(format!(
                "`{LEAKED}` in the state is the list of canaries that left; rename it"
            ));
        }
        match self.canaries.iter().find(|(_, text)| letters(text).len() < SHORTEST_CANARY) {
            Some((name, _)) => Err(format!(
                "canary {name}: a text of fewer than {SHORTEST_CANARY} letters and digits occurs by chance"
            )),
            None => Ok(()),
        }
    }

    /// The state is not known here, so nothing can be played.
    fn validate_served_elsewhere(&self) -> Result<(), String> {
        if !self.state.is_null() {
            return Err("a world with a state needs tools".to_owned());
        }
        if !self.canaries.is_empty() {
            return Err(
                "the command that serves the world must look for canaries itself".to_owned()
            );
        }
        let tasks = self.tasks.iter().map(|task| (format!("task {}", task.id), &task.expect));
        let goals = self.goals.iter().map(|goal| (format!("goal {}", goal.id), &goal.expect));
        tasks.chain(goals).try_for_each(|(place, expect)| assertions(&place, expect).map(|_| ()))
    }

    /// The state after calls that must make assertions true.
    fn proven(&self, place: &str, calls: &[Call], expect: &[MatcherSpec]) -> Result<Value, String> {
        let compiled = assertions(place, expect)?;
        if holds(&compiled, &self.state) {
            return Err(format!("{place}: the assertions hold before anything was done"));
        }
        let mut state = self.state.clone();
        self.play(&mut state, calls).map_err(|why| format!("{place}: its calls fail: {why}"))?;
        match holds(&compiled, &state) {
            true => Ok(state),
            false => Err(format!("{place}: its own calls do not make the assertions true")),
        }
    }
}

fn assertions(place: &str, expect: &[MatcherSpec]) -> Result<Vec<Matcher>, String> {
    if expect.is_empty() {
        return Err(format!("{place}: without an assertion nothing proves it; add `expect`"));
    }
    compile(expect).map_err(|why| format!("{place}: expect: {why}"))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("two {what}s are called {name:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_follow_a_fixed_grammar() {
        let text = "Please call send with {\"text\": \"a call b\"}, then call show with {\"id\": \"x\"}. call me with love";
        let found: Vec<String> = orders(text).into_iter().map(|call| call.tool).collect();
        assert_eq!(found, ["send", "show"]);
    }
}

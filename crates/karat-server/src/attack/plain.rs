//! Plain calls: calls of a tool without an attack, with which those with an attack are compared.

use karat_mcp::Definition;
use serde_json::{Map, Value};

use super::attempts::Attempt;
use super::memory::PlainCall;
use super::runner::AttackRunner;
use super::target::AttackTarget;
use crate::fuzz::generate::plainest;
use crate::observation::Outcome;
use crate::probe::known_inputs::Openings;
use crate::probe::reaction::Reaction;

/// The numbers of recorded and of likely inputs that are tried for a plain call that succeeds.
const MAX_RECORDED: usize = 3;
const MAX_LIKELY: usize = 4;

impl<T: AttackTarget> AttackRunner<'_, T> {
    /// The plain call of a tool: with an input that succeeded in a recording or is likely to succeed, or with the
    /// simplest arguments.
    pub(super) async fn plain_call(&mut self, tool: &Definition) -> PlainCall {
        if let Some(plain) = self.memory.plain.get(tool.name()) {
            return plain.clone();
        }
        let set = &self.config.set;
        let simplest = plainest(tool.input_schema(), set);
        let mut plain =
            PlainCall { known: set.clone(), arguments: simplest.clone(), outcome: None };
        let Openings { recorded, likely } = match self.known {
            Some((successes, around)) => Openings::of(tool, successes, set, around),
            None => Openings::default(),
        };
        let likely = likely.into_iter().filter(|one| *one != simplest).take(MAX_LIKELY);
        let inputs = recorded.into_iter().take(MAX_RECORDED).map(|input| (input, false));
        let inputs = inputs.chain([(simplest.clone(), true)]);
        for (arguments, is_simplest) in inputs.chain(likely.map(|input| (input, false))) {
            if self.is_out_of_time() {
                break;
            }
            let about = "a plain call".to_owned();
            let attempt = Attempt { about, arguments, proofs: Vec::new() };
            let Ok(called) = self.target.call(tool.name(), &attempt).await else { break };
            let reaction = Reaction::from(&called.outcome);
            let is_last = matches!(reaction, Reaction::Accepted | Reaction::NoAnswer);
            if is_last || is_simplest {
                plain.arguments.clone_from(&attempt.arguments);
            }
            if reaction == Reaction::Accepted && !is_simplest {
                plain.known = attempt.arguments;
            }
            if is_last || is_simplest {
                plain.outcome = Some(called.outcome);
            }
            if is_last {
                break;
            }
        }
        self.memory.plain.insert(tool.name().to_owned(), plain.clone());
        plain
    }

    /// The answer to the plain call, made again: a tool may have stopped working since the first one.
    pub(super) async fn again_plain(
        &self,
        tool: &Definition,
        arguments: &Map<String, Value>,
    ) -> Option<Outcome> {
        let about = "a plain call".to_owned();
        let attempt = Attempt { about, arguments: arguments.clone(), proofs: Vec::new() };
        Some(self.target.call(tool.name(), &attempt).await.ok()?.outcome)
    }

    /// The answer to a call without the values that were attacked, or without any.
    pub(super) async fn without_values(
        &self,
        tool: &Definition,
        plain: &PlainCall,
        answers: &[(&Attempt, Outcome)],
    ) -> Option<Outcome> {
        let mut arguments = plain.arguments.clone();
        let is_attacked = |name: &str, value: &Value| {
            answers.iter().any(|(attempt, _)| attempt.arguments.get(name) != Some(value))
        };
        arguments.retain(|name, value| !is_attacked(name, value));
        if arguments.len() == plain.arguments.len() {
            arguments.clear();
        }
        self.again_plain(tool, &arguments).await
    }
}

//! Recorded runs that are played again: their cases and their calls.

use karat_core::observed::RunStep;
use karat_recordings::Run;

use crate::agents::Planned;
use crate::attack::place;
use crate::world::Call;

/// The id of a run's case in a set of worlds.
pub(crate) fn case_id(run: &Run) -> String {
    match &run.surface {
        Some(surface) => format!("{}/{}", run.id(), place(surface, run.at_call)),
        None => run.id(),
    }
}

/// The calls of a run, each with whether it is the attacker's.
///
/// # Errors
/// If an argument was too long to be recorded whole.
pub(crate) fn planned(run: &Run) -> Result<Vec<Planned>, String> {
    let calls: Vec<(&RunStep, &String)> =
        run.steps.iter().filter_map(|step| Some((step, step.tool.as_ref()?))).collect();
    // What was refused and tried once more is one call.
    let again = |at: usize| {
        let (step, next) = (&calls[at], calls.get(at + 1));
        step.0.blocked && next.is_some_and(|next| next.1 == step.1 && next.0.text == step.0.text)
    };
    (0..calls.len())
        .filter(|at| !again(*at))
        .map(|at| calls[at])
        .map(|(step, tool)| match serde_json::from_str(&step.text) {
            Ok(arguments) => Ok((Call { tool: tool.clone(), arguments }, step.attacker)),
            Err(_) => Err(format!("{}: a call of {tool} was not recorded whole", run.id())),
        })
        .collect()
}

//! `karat agent judge`: a model's opinion on recorded traces, written down vote by vote.

use std::fmt::Write as _;

use karat_agent::drive::{Api, Model};
use karat_agent::judge::{self, Verdict};
use karat_agent::{Recorded, Source};
use karat_io::input::write_atomic;
use karat_io::text::printable;

use super::{client, shape, tasks};
use crate::cli::{AgentJudgeArgs, ModelApi};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::work::until_stopped;

/// Asks for every vote; nothing is gated. Not one vote is no measurement.
pub(crate) fn judge(arguments: &AgentJudgeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if !(1..=100).contains(&arguments.votes) || arguments.timeout == 0 {
        return Err(Stop::bad_input("--votes goes from 1 to 100, --timeout begins at 1"));
    }
    if !(arguments.temperature.is_finite() && arguments.temperature >= 0.0) {
        return Err(Stop::bad_input("--temperature is a number from 0"));
    }
    let tasks = tasks(&arguments.read)?;
    let recorded = Recorded::read(&Source {
        files: &arguments.traces,
        shape: shape(arguments.read.format),
        tasks: tasks.as_ref(),
        max_bad: arguments.read.max_bad,
        metrics: &[],
    })?;
    let endpoint = arguments.endpoint.as_str();
    let client =
        client(arguments.api, arguments.key_env.as_deref(), Some(endpoint), arguments.timeout)?;
    let model = Model {
        name: arguments.model.clone(),
        api: match arguments.api {
            ModelApi::Openai => Api::Openai,
            ModelApi::Anthropic => Api::Anthropic,
        },
        endpoint: arguments.endpoint.clone(),
        max_tokens: arguments.answer_tokens,
        temperature: arguments.temperature,
        seed: arguments.seed,
        price: None,
    };
    let verdicts: Vec<Verdict> = until_stopped(
        async {
            let mut verdicts = Vec::new();
            for trace in recorded.traces.iter().filter(|trace| trace.failed.is_none()) {
                verdicts.extend(judge::judge(trace, &model, arguments.votes, &client).await);
            }
            Ok(verdicts)
        },
        "interrupted; nothing was written",
    )?;
    let mut lines = String::new();
    for verdict in &verdicts {
        let line = serde_json::to_string(verdict)
            .map_err(|error| Stop::bad_input(format!("a verdict cannot be written: {error}")))?;
        lines.push_str(&line);
        lines.push('\n');
    }
    let votes: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.was_asked()).collect();
    let given = votes.iter().filter(|verdict| verdict.score.is_some()).count();
    if given == 0 {
        let first = verdicts.first().map_or("there was no trace", |verdict| &verdict.reason);
        return Err(Stop::not_measured(format!(
            "the judge gave none of {} votes (first: {first}); nothing was written",
            votes.len()
        )));
    }
    write_atomic(&arguments.verdicts, lines.as_bytes())?;
    let mut text =
        format!("{given} of {} votes given: {}\n", votes.len(), arguments.verdicts.display());
    if let Some(first) = verdicts.iter().find(|verdict| !verdict.was_asked()) {
        let _ = writeln!(
            text,
            "{} units were not judged (first: {}: {})",
            verdicts.len() - votes.len(),
            printable(&first.id),
            first.reason
        );
    }
    terminal.print(&text)?;
    Ok(Exit::Pass)
}

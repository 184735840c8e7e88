//! `karat agent judge`: a model's opinion on recorded traces, written down vote by vote.

use std::fmt::Write as _;

use karat_agent::judge::{self, Verdict};
use karat_agent::run::{Api, Model};
use karat_agent::traces::Config;
use karat_io::input::write_atomic;
use karat_io::text::{count, printable};

use super::{check_endpoint, config, here};
use crate::cli::AgentJudgeArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// Collects the votes. There is no gate; without any vote the traces are not measured.
pub(crate) fn judge(arguments: &AgentJudgeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if !(1..=100).contains(&arguments.votes) {
        return Err(Stop::bad_input("--votes must be between 1 and 100"));
    }
    if !(arguments.temperature.is_finite() && arguments.temperature >= 0.0) {
        return Err(Stop::bad_input("--temperature must not be negative"));
    }
    check_endpoint(&arguments.endpoint)?;
    let read = Config { traces: arguments.traces.clone(), ..config(&arguments.read)? };
    let traces = read.whole_traces(&here())?.traces;
    let api = Api::from(arguments.api);
    let client = api.client(arguments.key_env.as_deref(), arguments.timeout.0)?;
    let model = Model {
        name: arguments.model.clone(),
        api,
        endpoint: arguments.endpoint.clone(),
        max_tokens: arguments.answer_tokens,
        temperature: arguments.temperature,
        seed: arguments.seed,
        price: None,
    };
    let verdicts: Vec<Verdict> = until_stopped(
        async {
            let mut verdicts = Vec::new();
            for trace in traces.iter().filter(|trace| trace.failed.is_none()) {
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
        let first = verdicts.first().map_or("the input has no traces", |verdict| &verdict.reason);
        return Err(Stop::not_measured(format!(
            "the judge returned none of {} (first: {first}); nothing was written",
            count(votes.len(), "vote")
        )));
    }
    write_atomic(&arguments.verdicts, lines.as_bytes())?;
    let mut text = format!(
        "{given} of {} given: {}\n",
        count(votes.len(), "vote"),
        arguments.verdicts.display()
    );
    if let Some(first) = verdicts.iter().find(|verdict| !verdict.was_asked()) {
        let _ = writeln!(
            text,
            "not judged: {} (first: {}: {})",
            count(verdicts.len() - votes.len(), "unit"),
            printable(&first.id),
            first.reason
        );
    }
    terminal.print(&text)?;
    Ok(Exit::Pass)
}

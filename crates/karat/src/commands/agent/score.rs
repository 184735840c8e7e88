//! `karat agent score`: recorded traces, scored, gated and reported as `karat check` does.

use karat_agent::traces::Config;
use karat_agent::{CallMetric, Keep, Traces};
use karat_core::baseline::Baseline;
use karat_core::evaluation::{Common, Entry};
use karat_core::gate::{Policy, Rule};

use super::{config, here, means};
use crate::cli::{AgentScoreArgs, CheckArgs, RuleArgs};
use crate::commands::{check, parquet};
use crate::exit::{Exit, Stop};
use crate::project;
use crate::terminal::Terminal;

/// Scores the traces: with a report, or in one pass.
pub(crate) fn score(arguments: &AgentScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    parquet::ready(arguments.parquet.as_deref())?;
    if parquet::are_parquet(&arguments.traces)? {
        return score_tables(arguments, terminal);
    }
    if arguments.means || arguments.per_item {
        return means::score(arguments, terminal);
    }
    let metrics = match arguments.metrics.as_slice() {
        [] => CallMetric::usual(),
        asked => named(asked)?,
    };
    let common = Common { gate: gate(arguments)?, ..Common::named(&arguments.name) };
    let config = Config {
        traces: arguments.traces.clone(),
        tools: arguments.tools.clone(),
        verdicts: arguments.verdicts.clone(),
        labels: arguments.labels.clone(),
        prices: arguments.prices.clone(),
        ..config(&arguments.read)?
    };
    let baseline = arguments.baseline.as_deref().map(Baseline::load).transpose()?;
    let keep = if arguments.before.is_some() { Keep::Calls } else { Keep::Scores };
    let mut data = config.read(metrics, keep, &here())?;
    if let Some(before) = &arguments.before {
        let earlier = Config { traces: vec![before.clone()], ..config.clone() };
        data.before = Some(earlier.whole_traces(&here())?.traces);
    }
    let mut project = project::of_any(Entry::<Traces> { common, config, data });
    for planned in &mut project.entries {
        planned.baseline.clone_from(&baseline);
    }
    let run = writing(arguments);
    check::carry_out(&project, &run, terminal)
}

/// Scores traces in tables, in one pass and flat memory; the report has no items.
fn score_tables(arguments: &AgentScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let gate = gate(arguments)?;
    let report = parquet::traces(arguments)?;
    if arguments.means {
        return means::conclude(report, &gate, terminal);
    }
    check::conclude(report, &gate, &writing(arguments), terminal)
}

/// The places for reports and tables.
fn writing(arguments: &AgentScoreArgs) -> CheckArgs {
    CheckArgs {
        parquet: arguments.parquet.clone(),
        ..CheckArgs::writing(&arguments.out, &arguments.outputs)
    }
}

/// The metrics with these ids.
pub(super) fn named<T: AsRef<str>>(ids: &[T]) -> Result<Vec<CallMetric>, Stop> {
    ids.iter()
        .map(|id| id.as_ref().parse::<CallMetric>())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Stop::bad_input(format!("--metric: {error}")))
}

/// The gate that the arguments ask for; every rule is one that can be kept or broken.
pub(super) fn gate(arguments: &AgentScoreArgs) -> Result<Policy, Stop> {
    let AgentScoreArgs { rules, max_drop, max_errors, .. } = arguments;
    let gate = policy(rules, max_drop, *max_errors)?;
    gate.validate().map_err(Stop::bad_input)?;
    Ok(gate)
}

/// The gate that flags ask for.
pub(crate) fn policy(
    RuleArgs { min, max }: &RuleArgs,
    max_drop: &[String],
    max_errors: impl Into<Option<f64>>,
) -> Result<Policy, Stop> {
    let mut policy = Policy { max_errors: max_errors.into(), ..Policy::default() };
    let mut add = |flag: &str, written: &str, set: fn(&mut Rule, f64)| -> Result<(), Stop> {
        let (metric, value) = assignment(flag, written)?;
        set(policy.metrics.entry(metric).or_default(), value);
        Ok(())
    };
    for written in min {
        add("--min", written, |rule, value| rule.min = Some(value))?;
    }
    for written in max {
        add("--max", written, |rule, value| rule.max = Some(value))?;
    }
    for written in max_drop {
        add("--max-drop", written, |rule, value| rule.max_drop = Some(value))?;
    }
    Ok(policy)
}

/// Reads `name=number`.
pub(super) fn assignment(flag: &str, written: &str) -> Result<(String, f64), Stop> {
    let wrong = || Stop::bad_input(format!("{flag}: expected NAME=NUMBER, found {written:?}"));
    let (name, value) = written.rsplit_once('=').ok_or_else(wrong)?;
    let value: f64 = value.parse().map_err(|_| wrong())?;
    if name.is_empty() || !value.is_finite() {
        return Err(wrong());
    }
    Ok((name.to_owned(), value))
}

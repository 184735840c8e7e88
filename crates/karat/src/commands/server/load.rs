//! `karat server load`: many calls at once, or at a rate, timed and reported as a check of one entry.

use std::path::PathBuf;
use std::time::Duration;

use karat_core::dataset::Digest;
use karat_core::gate::{Policy, Rule};
use karat_core::report::DatasetRef;
use karat_server::load::{self, Call, Condition, Length, Plan, Shape};
use karat_server::suite::Suite;
use serde_json::{Map, Value};

use super::target;
use crate::cli::{CheckArgs, LoadArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::work::until_stopped_on_one_thread;

/// Calls at once where nothing is said.
const CONCURRENCY: usize = 8;
/// The place where the search for the highest rate begins.
const FIRST_RATE: f64 = 10.0;
/// The time is measured where nothing is said, and each step of a search.
const TIME: Duration = Duration::from_secs(10);
const STEP_TIME: Duration = Duration::from_secs(5);

/// Loads a server.
pub(crate) fn load(arguments: &LoadArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let policy = policy(arguments)?;
    let run = CheckArgs::writing(&arguments.out, &arguments.outputs);
    check::ready(&run)?;
    let plan = plan(arguments, terminal)?;
    let say = |line: &str| terminal.say(line);
    let work = async { load::run(plan, &say).await.map_err(Stop::from) };
    let report = until_stopped_on_one_thread(work, "interrupted; nothing is reported")?;
    check::conclude(report, &policy, &run, terminal)
}

fn policy(arguments: &LoadArgs) -> Result<Policy, Stop> {
    let mut policy = Policy::default();
    for (flag, id, max) in [
        ("--max-p50", "latency.p50", arguments.max_p50),
        ("--max-error-rate", "error_rate", arguments.max_error_rate),
    ] {
        let Some(max) = max else { continue };
        if !max.is_finite() || max < 0.0 {
            return Err(Stop::bad_input(format!(
                "{flag}: a limit is a number that is not negative"
            )));
        }
        policy.metrics.insert(id.to_owned(), Rule { max: Some(max), ..Rule::default() });
    }
    Ok(policy)
}

fn plan(arguments: &LoadArgs, terminal: &Terminal) -> Result<Plan, Stop> {
    let suite = match &arguments.suite {
        Some(path) => Some(Suite::load(path).map_err(karat_server::ServerError::from)?),
        None => None,
    };
    let named = suite.as_ref().and_then(|suite| suite.server.as_ref());
    let server = target::spec_or(&arguments.target, named, terminal)?.ok_or_else(|| {
        Stop::bad_input(
            "name a server: a command after `--`, --url, --server NAME, or mcp_server in the suite",
        )
    })?;
    let find_max = match &arguments.find_max {
        Some(text) => {
            let read = Condition::parse(text);
            Some(read.map_err(|why| Stop::bad_input(format!("--find-max {why}")))?)
        }
        None => None,
    };
    let shape = shape(arguments)?;
    let length = match (&arguments.duration, arguments.count) {
        (Some(text), _) => Length::Time(time("--duration", text)?),
        (None, Some(count)) => Length::Calls(count),
        (None, None) => Length::Time(if find_max.is_some() { STEP_TIME } else { TIME }),
    };
    if matches!(length, Length::Calls(0)) || length == Length::Time(Duration::ZERO) {
        return Err(Stop::bad_input("nothing would be measured: the load must last"));
    }
    if arguments.connections == 0 {
        return Err(Stop::bad_input("--connections: at least 1"));
    }
    let warm_up = match arguments.warm_up.parse::<u64>() {
        Ok(calls) => Length::Calls(calls),
        Err(_) => Length::Time(time("--warm-up", &arguments.warm_up)?),
    };
    let calls = calls(arguments, suite.as_ref())?;
    let dataset = match &suite {
        Some(suite) => karat_server::reference(suite),
        None => DatasetRef {
            id: arguments.tool.clone().unwrap_or_default(),
            version: "call".to_owned(),
            digest: Digest::of(arguments.input.as_bytes()).to_string(),
        },
    };
    let (setup, teardown) =
        suite.map_or((Vec::new(), Vec::new()), |suite| (suite.setup, suite.teardown));
    Ok(Plan {
        name: "load".to_owned(),
        dataset,
        server,
        calls,
        setup,
        teardown,
        shape,
        connections: arguments.connections,
        ramp: time("--ramp", &arguments.ramp)?,
        length,
        warm_up,
        find_max,
        seed: arguments.seed,
        call_timeout: Duration::from_millis(arguments.timeout_ms),
        start_timeout: Duration::from_millis(arguments.start_timeout_ms),
        folder: PathBuf::from("."),
    })
}

fn shape(arguments: &LoadArgs) -> Result<Shape, Stop> {
    match (arguments.concurrency, arguments.rate) {
        (_, Some(rate)) if !rate.is_finite() || rate <= 0.0 || rate > 1e6 => {
            Err(Stop::bad_input("--rate: more than 0 and at most 1,000,000 calls in a second"))
        }
        (_, Some(rate)) => Ok(Shape::Open { rate }),
        (Some(0), _) => Err(Stop::bad_input("--concurrency: at least 1")),
        (Some(concurrency), _) => Ok(Shape::Closed { concurrency }),
        (None, None) if arguments.find_max.is_some() => Ok(Shape::Open { rate: FIRST_RATE }),
        (None, None) => Ok(Shape::Closed { concurrency: CONCURRENCY }),
    }
}

fn calls(arguments: &LoadArgs, suite: Option<&Suite>) -> Result<Vec<Call>, Stop> {
    let Some(suite) = suite else {
        let tool = arguments.tool.as_deref().unwrap_or_default();
        let input: Map<String, Value> = serde_json::from_str(&arguments.input)
            .map_err(|error| Stop::bad_input(format!("--input is no JSON object: {error}")))?;
        return Ok(vec![Call::to(tool, input)]);
    };
    let wanted = |tags: &std::collections::BTreeSet<String>| {
        arguments.tag.is_empty() || arguments.tag.iter().any(|tag| tags.contains(tag))
    };
    let cases = suite.cases.iter().filter(|case| case.weight > 0 && wanted(&case.tags));
    let calls: Vec<Call> = cases.map(Call::from).collect();
    if calls.is_empty() {
        return Err(Stop::not_measured(format!(
            "no case is left to load the server with; the suite has {} cases",
            suite.cases.len()
        )));
    }
    Ok(calls)
}

/// A time such as `500ms`, `30s` or `2m`.
fn time(flag: &str, text: &str) -> Result<Duration, Stop> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];
    let read = units.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        Duration::try_from_secs_f64(number * seconds).ok()
    });
    read.filter(|time| *time <= Duration::from_secs(86_400)).ok_or_else(|| {
        Stop::bad_input(format!("{flag} {text}: write a time such as 500ms, 30s or 2m"))
    })
}

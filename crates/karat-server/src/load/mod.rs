//! Load: how fast, and how well, a server answers many calls.
//!
//! The mix of calls comes from a suite or is a single call; a closed loop keeps a number of calls under
//! way, an open loop begins them at a rate. What is judged is how calls end, not what they say: suites
//! do that. The cost of the harness itself stands in the report, so that nobody has to guess whose time
//! was measured.

mod drive;
mod mix;
mod report;
mod search;
mod tally;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use karat_core::provenance::Stopwatch;
use karat_core::report::{DatasetRef, Report};
use karat_io::text::printable;
use karat_mcp::{Definition, Options, ServerSpec, TransportKind};

pub use self::mix::Call;
pub use self::search::{Condition, Step};
pub use self::tally::Class;

use self::drive::{Connection, Rig, Stretch};
use self::mix::Mix;
use self::report::Findings;
use crate::suite::{self, Case};
use crate::system::{Server, Target};
use crate::{ServerError, cleanup};

/// How calls follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// This many are under way at any time.
    Closed {
        /// How many.
        concurrency: usize,
    },
    /// This many begin in a second, whether or not earlier ones have been answered.
    Open {
        /// Calls in a second.
        rate: f64,
    },
}

/// How long something goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// For a time.
    Time(Duration),
    /// For a number of calls.
    Calls(u64),
}

/// What to do to which server.
#[derive(Debug)]
pub struct Plan {
    /// The name of the report.
    pub name: String,
    /// What the calls come from, as the report names it.
    pub dataset: DatasetRef,
    /// The server.
    pub server: ServerSpec,
    /// The calls; never empty.
    pub calls: Vec<Call>,
    /// Calls before all others.
    pub setup: Vec<Arc<suite::Step>>,
    /// Calls after all others.
    pub teardown: Vec<suite::Step>,
    /// How calls follow one another; where a maximum is looked for, where to begin.
    pub shape: Shape,
    /// Sessions: processes of a server over stdio, connections to one over HTTP.
    pub connections: usize,
    /// The time over which the load grows to its full size.
    pub ramp: Duration,
    /// How long it is measured; where a maximum is looked for, how long each step is.
    pub length: Length,
    /// What is left out at the start.
    pub warm_up: Length,
    /// What must hold, where the most load under which it does is looked for.
    pub find_max: Option<Condition>,
    /// The seed of the order of calls.
    pub seed: u64,
    /// How long a call may take.
    pub call_timeout: Duration,
    /// How long the server may take to start.
    pub start_timeout: Duration,
    /// The folder in which programs run and from which relative paths start.
    pub folder: PathBuf,
}

/// Loads the server and reports.
///
/// # Errors
/// When nothing could be measured: the server does not start, is lost, or answers no call.
pub async fn run(plan: Plan, say: &(dyn Fn(&str) + Sync)) -> Result<Report, ServerError> {
    let stopwatch = Stopwatch::start();
    let options = Options {
        call_timeout: plan.call_timeout,
        start_timeout: plan.start_timeout,
        patience: crate::system::PATIENCE,
        folder: Some(plan.folder.clone()),
        ..Options::default()
    };
    let rig = Arc::new(rig(&plan, &options).await?);
    let first = match rig.connections.first() {
        Some(connection) => connection.server.session().await?,
        None => return Err(ServerError::Spec("at least one connection is needed".to_owned())),
    };
    let (info, isolation) = (first.server().clone(), first.isolation().to_vec());
    let tools = first.tools().await.map_err(|error| ServerError::NoTools(error.to_string()))?;
    lacking(&plan.calls, &tools)?;
    drop(first);

    let warm_up = warm_up(&rig, &plan).await;
    executed(warm_up.as_ref())?;
    let (steps, stretch) = match &plan.find_max {
        Some(condition) => search::run(&rig, &plan, condition, say).await,
        None => (Vec::new(), drive::run(&rig, plan.shape, plan.ramp, plan.length).await),
    };
    executed(&stretch)?;
    still_there(&rig, &stretch).await?;
    let mut left = Vec::new();
    let prepared: Vec<Arc<Case>> =
        plan.calls.iter().filter_map(|call| call.setup.clone()).collect();
    // What sessions with one and the same server share is cleaned up once.
    let cleaning = if shares_one_server(&plan)? { 1 } else { rig.connections.len() };
    for connection in rig.connections.iter().take(cleaning) {
        left.extend(connection.server.tear_down(&plan.teardown, &prepared).await);
    }
    for connection in &rig.connections {
        connection.server.renew().await;
    }
    let restarts = rig.connections.iter().map(|connection| connection.server.restarts()).sum();
    let findings = Findings { plan: &plan, mix: &rig.mix, info, steps, stretch, restarts };
    let mut report = findings.report(&stopwatch);
    report.warnings.extend(cleanup::warning(&[], &[], &left));
    report.warnings.extend(options.violations.log().warnings());
    report.environment.isolation = isolation;
    Ok(report)
}

/// Whether all sessions are with the same server.
fn shares_one_server(plan: &Plan) -> Result<bool, ServerError> {
    Ok(plan.server.transport()? != TransportKind::Stdio)
}

/// Starts every session, and makes the calls that come once before the load.
async fn rig(plan: &Plan, options: &Options) -> Result<Rig, ServerError> {
    let one_server = shares_one_server(plan)?;
    let mut connections: Vec<Connection> = Vec::with_capacity(plan.connections);
    for number in 0..plan.connections {
        let target = Target::Spec(Box::new(plan.server.clone()));
        // Sessions with one and the same server share what the first has prepared.
        if one_server && let Some(first) = connections.first() {
            let arguments = first.arguments.clone();
            let server = Server::start(target, options.clone(), Vec::new()).await?;
            connections.push(Connection::new(server, arguments));
            continue;
        }
        let server = Server::start(target, options.clone(), plan.setup.clone()).await?;
        let mut arguments = Vec::with_capacity(plan.calls.len());
        for call in &plan.calls {
            let setup = call.setup.as_ref().map_or(&[][..], |case| &case.setup);
            arguments.push(server.prepare(setup, &call.input).await.map_err(|why| {
                ServerError::NotStarted(karat_mcp::StartError::Handshake {
                    why: format!("{}: set-up on connection {}: {why}", call.id, number + 1),
                })
            })?);
        }
        connections.push(Connection::new(server, arguments));
    }
    Ok(Rig { connections, mix: Mix::new(plan.calls.clone(), plan.seed) })
}

async fn warm_up(rig: &Arc<Rig>, plan: &Plan) -> Option<Stretch> {
    match plan.warm_up {
        Length::Calls(0) => return None,
        Length::Time(time) if time.is_zero() => return None,
        _ => {}
    }
    Some(drive::run(rig, plan.shape, Duration::ZERO, plan.warm_up).await)
}

/// A call that must succeed needs its tool.
fn lacking(calls: &[Call], tools: &[Definition]) -> Result<(), ServerError> {
    let listed = |name: &str| tools.iter().any(|tool| tool.name() == name);
    let mut wanting = calls.iter().filter(|call| call.ending == suite::Ending::Success);
    match wanting.find(|call| !listed(&call.tool)) {
        None => Ok(()),
        Some(call) => Err(ServerError::Spec(format!(
            "{}: the server has no tool {:?}; it has: {}",
            printable(&call.id),
            call.tool,
            shown(tools.iter().map(Definition::name))
        ))),
    }
}

/// The first names of many.
fn shown<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 20;
    let more = names.len().saturating_sub(SHOWN);
    let first: Vec<_> = names.take(SHOWN).map(|name| printable(name).into_owned()).collect();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", first.join(", "))
}

/// A server at an address is not ours to see ending: where connections failed, it is asked once more.
async fn still_there(rig: &Rig, stretch: &Stretch) -> Result<(), ServerError> {
    if !stretch.tally.all.classes.contains_key(&Class::Transport) {
        return Ok(());
    }
    for connection in &rig.connections {
        let answered = match connection.server.session().await {
            Ok(session) => session.tools().await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = answered {
            return Err(ServerError::NotStarted(karat_mcp::StartError::NotStarted {
                why: format!("it was lost under load and does not answer any more: {why}"),
            }));
        }
    }
    Ok(())
}

/// Not one call that ended as it should is not a measurement, and neither is a server that was lost.
fn executed<'a>(stretch: impl Into<Option<&'a Stretch>>) -> Result<(), ServerError> {
    let Some(stretch) = stretch.into() else { return Ok(()) };
    if let Some(why) = &stretch.lost {
        return Err(ServerError::NotStarted(karat_mcp::StartError::NotStarted {
            why: format!("it was lost under load and does not start again: {why}"),
        }));
    }
    let all = &stretch.tally.all;
    if all.ok() > 0 {
        return Ok(());
    }
    let first = stretch.tally.first.values().next();
    let first = first.cloned().unwrap_or_else(|| "no call was made".to_owned());
    let attempts = usize::try_from(all.calls()).unwrap_or(usize::MAX);
    Err(match all.answered() {
        0 => ServerError::NothingExecuted { attempts, first },
        _ => ServerError::NothingWell { attempts, first },
    })
}

/// The processor time of this process so far, over all its threads; in nanoseconds from the scheduler.
fn own_time() -> Option<Duration> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let mut sum = 0_u64;
    for thread in threads.flatten() {
        // A thread that has ended in between had its say in an earlier stretch.
        let Ok(line) = std::fs::read_to_string(thread.path().join("schedstat")) else { continue };
        sum += line.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let before = own_time().unwrap();
        let mut sum = 0_u64;
        while own_time().unwrap() < before + Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }
}

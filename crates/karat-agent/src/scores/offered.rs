//! The scores of calls against the tools that were on offer, as MCP-Bench defines them.

use super::{Own, TraceScore};
use crate::tools::{Fit, Tools};
use crate::trace::expected_calls::NO_ARGUMENTS;
use crate::trace::{Arguments, CallOutcome, Trace};

pub(super) fn score(trace: &Trace, tools: &Tools, score: &mut TraceScore) {
    let calls = &trace.calls;
    let (mut offered, mut fitting, mut unrecorded, mut listed) = (0_u64, 0_u64, 0_u64, true);
    for call in calls {
        match tools.fit(trace, call) {
            Fit::NoList => listed = false,
            Fit::UnknownTool => {}
            Fit::Fits => {
                offered += 1;
                fitting += 1;
            }
            Fit::Breaks(_) => offered += 1,
            Fit::NotChecked(reason) => {
                offered += 1;
                unrecorded += u64::from(call.arguments == Arguments::NotRecorded);
                score.not_checked.push(reason);
            }
        }
    }
    let share = |hits: u64, of: u64| match of {
        _ if calls.is_empty() => Err("no call was made"),
        _ if !listed => Err("the tools are not known"),
        // The rule of MCP-Bench: calls of tools that do not exist comply with nothing.
        0 => Ok(0.0),
        of => Ok(hits as f64 / of as f64),
    };
    score.set(Own::ToolNameValidity, share(offered, calls.len() as u64));
    let compliance = match offered - unrecorded {
        0 if unrecorded > 0 => Err(NO_ARGUMENTS),
        // Nothing complies with a schema that cannot be used, as in MCP-Bench.
        recorded => share(fitting, recorded),
    };
    score.set(Own::SchemaCompliance, compliance);
    let with = |outcome| calls.iter().filter(|call| call.outcome() == outcome).count() as u64;
    let (succeeded, failed) = (with(CallOutcome::Succeeded), with(CallOutcome::Failed));
    score.set(
        Own::ExecutionSuccess,
        match succeeded + failed {
            _ if calls.is_empty() => Err("no call was made"),
            0 => Err("how calls ended was not recorded"),
            of => Ok(succeeded as f64 / of as f64),
        },
    );
}

//! The share of a server that a suite exercises: tools, their parameters, and their error paths.

use std::collections::BTreeSet;

use karat_core::journal::{Entry, Outcome as Kept};
use karat_core::report::Measured;
use karat_mcp::Definition;
use karat_metrics::metric;
use serde_json::Value;

use crate::observation::{CaseRun, Outcome};
use crate::probe::rate;

/// The metrics where the tools of the server are not known, for this reason.
pub(crate) fn undefined(why: &str) -> Vec<Measured> {
    let ids =
        [metric!("coverage.tools"), metric!("coverage.parameters"), metric!("coverage.errors")];
    ids.into_iter().map(|id| rate(id, 0, 0, why)).collect()
}

/// The metrics, in the order of the report.
pub(crate) fn metrics(tools: &[Definition], outcomes: &[Entry<CaseRun>]) -> Vec<Measured> {
    let mut called: BTreeSet<&str> = BTreeSet::new();
    let mut failed: BTreeSet<&str> = BTreeSet::new();
    let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
    for entry in outcomes {
        let Kept::Answer(run) = &entry.outcome else { continue };
        let calls = run.attempts.iter().flat_map(|attempt| &attempt.calls);
        for call in calls.filter(|call| call.feature.is_tool()) {
            called.insert(&call.tool);
            used.extend(call.arguments.keys().map(|name| (call.tool.as_str(), name.as_str())));
            let is_error = call.outcome.is_tool_error()
                || matches!(call.outcome, Outcome::ProtocolError { .. });
            if is_error {
                failed.insert(&call.tool);
            }
        }
    }
    let parameters: Vec<(&str, &str)> = tools
        .iter()
        .flat_map(|tool| {
            let properties = tool.input_schema().and_then(|schema| schema.get("properties"));
            let names =
                properties.and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
            names.map(|name| (tool.name(), name.as_str())).collect::<Vec<_>>()
        })
        .collect();
    let count =
        |set: &BTreeSet<&str>| tools.iter().filter(|tool| set.contains(tool.name())).count();
    let known = parameters.iter().filter(|one| used.contains(one)).count();
    let (all, none) = (tools.len() as u64, "the server has no tools");
    vec![
        rate(metric!("coverage.tools"), count(&called) as u64, all, none),
        rate(
            metric!("coverage.parameters"),
            known as u64,
            parameters.len() as u64,
            "no tool has parameters",
        ),
        rate(metric!("coverage.errors"), count(&failed) as u64, all, none),
    ]
}

//! The audit of a dataset of traces or tasks.
//!
//! Reading it requires valid records without duplicate ids. Beyond that, expectations must be possible:
//! an expected or instructed tool must exist if the dataset or the trace lists the tools on offer. The
//! calls that an agent made are not audited.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::dataset::{Dataset, DatasetFiles};
use karat_core::error::EvalError;
use karat_core::finding::DataFinding;
use karat_core::report::DatasetRef;
use karat_io::input::{Limits, decode};

use crate::error::nothing_to_score;
use crate::tasks::Tasks;
use crate::tools::Tools;
use crate::trace::ToolDefinition;
use crate::trace::expectation::Expectation;
use crate::trace::expected_calls::Tool;
use crate::trace_set::TraceSet;

/// A dataset that was read whole.
#[derive(Debug)]
pub struct Audited {
    /// The dataset as reports name it.
    pub reference: DatasetRef,
    /// The number of tools.
    pub tools: usize,
    /// The number of traces.
    pub traces: usize,
    /// The number of tasks.
    pub tasks: usize,
    /// The problems with them, in their order, each once.
    pub findings: Vec<DataFinding>,
}

/// Reads a dataset with `traces/` or `tasks/`, and says what is wrong with it.
///
/// # Errors
/// If a digest or a record is not valid, or an id is a duplicate.
pub fn audit(files: DatasetFiles) -> Result<Audited, EvalError> {
    let dataset = Dataset::of(files.clone())?;
    let mut tasks = Tasks::default();
    let mut has_traces = false;
    for path in dataset.manifest().files.keys() {
        has_traces |= path.as_str().starts_with("traces/");
        if !path.as_str().starts_with("tasks/") {
            continue;
        }
        let bytes = dataset.bytes(path, &Limits::default())?;
        let text = decode(path.as_str(), &bytes, &Limits::default())?;
        tasks.add(&dataset.files().label(path.as_str()), &text)?;
    }
    let mut tools = Tools::default();
    let traces = match has_traces {
        true => TraceSet::open(files, &mut tools)?.traces,
        false if tasks.is_empty() => {
            return Err(nothing_to_score(Path::new(dataset.id()), &BTreeMap::new()));
        }
        false => {
            tools.add_dataset(&dataset)?;
            Vec::new()
        }
    };

    let mut rules = Rules { tools: &tools, seen: BTreeSet::new(), findings: Vec::new() };
    for task in tasks.iter() {
        rules.expected(&task.id, task.expect.as_deref(), &task.servers, None);
    }
    for trace in &traces {
        let expect = trace.expect.as_deref();
        rules.expected(&trace.id, expect, &trace.servers, trace.tools.as_deref());
        if !tasks.is_empty() && tasks.of(trace).is_none() {
            rules.add(&trace.id, "no task with this id or input".to_owned());
        }
    }
    Ok(Audited {
        reference: DatasetRef {
            id: dataset.id().to_owned(),
            version: dataset.version().to_string(),
            digest: dataset.digest().to_string(),
        },
        tools: tools.count(),
        traces: traces.len(),
        tasks: tasks.len(),
        findings: rules.findings,
    })
}

struct Rules<'a> {
    tools: &'a Tools,
    /// Findings so far: runs of one task have the same ones.
    seen: BTreeSet<(String, String)>,
    findings: Vec<DataFinding>,
}

impl Rules<'_> {
    fn expected(
        &mut self,
        id: &str,
        expect: Option<&Expectation>,
        servers: &[String],
        offered: Option<&[ToolDefinition]>,
    ) {
        let Some(expect) = expect else { return };
        let named = expect.all_calls().map(|(tool, _)| ("calls", tool));
        for (place, tool) in
            named.chain(expect.instructed_tool.iter().map(|t| ("instructed_tool", t)))
        {
            let exists = match offered {
                Some(offered) => Some(offered.iter().any(|one| is(one, tool))),
                None => self.tools.has(tool, servers),
            };
            if exists == Some(false) {
                let Tool { name, server } = tool;
                let server = server.as_deref().map(|server| format!(" of {server:?}"));
                let of = server.unwrap_or_default();
                self.add(id, format!("expect.{place}: no tool {name:?}{of}"));
            }
        }
    }

    fn add(&mut self, id: &str, message: String) {
        if self.seen.insert((id.to_owned(), message.clone())) {
            self.findings.push(DataFinding::new(id, "traces", message));
        }
    }
}

fn is(offered: &ToolDefinition, tool: &Tool) -> bool {
    let same_server = match (&offered.server, &tool.server) {
        (Some(offered), Some(server)) => offered == server,
        _ => true,
    };
    offered.name == tool.name && same_server
}

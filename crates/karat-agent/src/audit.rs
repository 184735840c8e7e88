//! What makes a dataset of traces or tasks worth measuring on.
//!
//! Reading it demands that every record can be parsed and that no id comes twice. Beyond that, what is
//! expected must be possible: an expected or instructed tool must exist where the dataset or the
//! trace says what was on offer. What an agent did call is its own affair, and is not judged here.

use std::collections::BTreeSet;
use std::path::Path;

use karat_core::dataset::{Dataset, DatasetFiles};
use karat_core::report::DatasetRef;
use karat_io::input::{Limits, decode};

use crate::error::AgentError;
use crate::recorded::Recorded;
use crate::tasks::Tasks;
use crate::tools::Tools;
use crate::trace::ToolDefinition;
use crate::trace::expectation::{Expectation, Step, Tool};

/// A rule that the dataset breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The task.
    pub id: String,
    /// What is wrong with it.
    pub message: String,
}

/// A dataset that was read whole.
#[derive(Debug)]
pub struct Audited {
    /// Which one.
    pub reference: DatasetRef,
    /// How many tools it lists.
    pub tools: usize,
    /// How many traces it has.
    pub traces: usize,
    /// How many tasks.
    pub tasks: usize,
    /// What is wrong with them, in their order, each once.
    pub findings: Vec<Finding>,
}

/// Reads a dataset with `traces/` or `tasks/`, and says what is wrong with it.
///
/// # Errors
/// When a digest or a record is not what it should be, or an id comes twice.
pub fn audit(files: DatasetFiles) -> Result<Audited, AgentError> {
    let boxed = |error| AgentError::Dataset(Box::new(error));
    let dataset = Dataset::of(files.clone()).map_err(boxed)?;
    let mut tasks = Tasks::default();
    let mut has_traces = false;
    for path in dataset.manifest().files.keys() {
        has_traces |= path.as_str().starts_with("traces/");
        if !path.as_str().starts_with("tasks/") {
            continue;
        }
        let bytes = dataset.bytes(path, &Limits::default()).map_err(boxed)?;
        let text = decode(path.as_str(), &bytes, &Limits::default()).map_err(AgentError::Input)?;
        tasks.add(&dataset.files().label(path.as_str()), &text)?;
    }
    let mut tools = Tools::default();
    let recorded = match has_traces {
        true => Recorded::open(files, &mut tools)?,
        false if tasks.is_empty() => {
            return Err(AgentError::nothing(Path::new(dataset.id()), &Default::default()));
        }
        false => {
            tools.add_dataset(&dataset)?;
            Recorded::default()
        }
    };

    let mut rules = Rules { tools: &tools, told: BTreeSet::new(), findings: Vec::new() };
    for task in tasks.iter() {
        rules.expected(&task.id, task.expect.as_ref(), &task.servers, None);
    }
    for trace in &recorded.traces {
        rules.expected(&trace.id, trace.expect.as_ref(), &trace.servers, trace.tools.as_deref());
        if !tasks.is_empty() && tasks.of(trace).is_none() {
            rules.tell(&trace.id, "there is no task of this id or input".to_owned());
        }
    }
    Ok(Audited {
        reference: DatasetRef {
            id: dataset.id().to_owned(),
            version: dataset.version().to_string(),
            digest: dataset.digest().to_string(),
        },
        tools: tools.count(),
        traces: recorded.traces.len(),
        tasks: tasks.len(),
        findings: rules.findings,
    })
}

struct Rules<'a> {
    tools: &'a Tools,
    /// Runs of one task would all say the same.
    told: BTreeSet<(String, String)>,
    findings: Vec<Finding>,
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
        let steps = expect.calls.iter().flatten().flat_map(|step| match step {
            Step::Call(call) => std::slice::from_ref(call),
            Step::AnyOrder(calls) => calls.as_slice(),
        });
        let named = steps.map(|call| ("calls", &call.tool));
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
                self.tell(id, format!("expect.{place}: there is no tool {name:?}{of} on offer"));
            }
        }
    }

    fn tell(&mut self, id: &str, message: String) {
        if self.told.insert((id.to_owned(), message.clone())) {
            self.findings.push(Finding { id: id.to_owned(), message });
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

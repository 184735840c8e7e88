//! `karat agent`: traces made, scored and compared.

mod diff;
mod means;
mod run;
mod score;

use std::path::Path;

use karat_agent::{AgentError, Shape, Tasks, Tools};
use karat_core::dataset::DatasetFiles;

use crate::bundled;
use crate::cli::{TraceArgs, TraceFormat};
use crate::exit::Stop;

pub(crate) use diff::diff;
pub(crate) use run::run;
pub(crate) use score::score;

fn shape(format: TraceFormat) -> Shape {
    match format {
        TraceFormat::Native => Shape::Native,
        TraceFormat::Ragas => Shape::Ragas,
        TraceFormat::Deepeval => Shape::Deepeval,
        TraceFormat::Openai => Shape::Openai,
        TraceFormat::Anthropic => Shape::Anthropic,
        TraceFormat::Otlp => Shape::Otlp,
        TraceFormat::McpRecording => Shape::McpRecording,
    }
}

/// The tasks that were named; none if none were.
fn tasks(arguments: &TraceArgs) -> Result<Option<Tasks>, Stop> {
    if !(0.0..=1.0).contains(&arguments.max_bad) {
        return Err(Stop::bad_input("--max-bad: a share goes from 0 to 1"));
    }
    if arguments.tasks.is_empty() {
        return Ok(None);
    }
    let paths: Vec<&Path> = arguments.tasks.iter().map(AsRef::as_ref).collect();
    Ok(Some(Tasks::load(&paths)?))
}

/// The tools that were named, relative to a folder.
pub(crate) fn tools(named: &[String], folder: &Path) -> Result<Tools, AgentError> {
    let mut tools = Tools::default();
    for name in named {
        match name.strip_prefix("bundled:") {
            Some(path) => tools.load_dataset(bundled::dataset(&format!("datasets/{path}")))?,
            None if folder.join(name).is_dir() => {
                tools.load_dataset(DatasetFiles::Folder(folder.join(name)))?;
            }
            None => tools.load(&folder.join(name))?,
        }
    }
    Ok(tools)
}

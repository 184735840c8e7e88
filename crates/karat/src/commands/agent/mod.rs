//! `karat agent`: traces made, scored and compared.

mod diff;
mod judge;
mod means;
mod run;
mod score;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use karat_agent::{Shape, Tasks, Tools};
use karat_core::dataset::DatasetFiles;
use karat_io::http::{self, Client};

use crate::bundled;
use crate::cli::{ModelApi, TraceArgs, TraceFormat};
use crate::exit::Stop;

pub(crate) use diff::diff;
pub(crate) use judge::judge;
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
pub(crate) fn tools(named: &[String], folder: &Path) -> Result<Tools, Stop> {
    let mut tools = Tools::default();
    for name in named {
        match name.strip_prefix("bundled:") {
            Some(path) => tools.load_dataset(bundled::named(path)?)?,
            None if folder.join(name).is_dir() => {
                tools.load_dataset(DatasetFiles::Folder(folder.join(name)))?;
            }
            None => tools.load(&folder.join(name))?,
        }
    }
    Ok(tools)
}

/// A client for a model's endpoint, with its key from the environment.
fn client(
    api: ModelApi,
    key_variable: Option<&str>,
    endpoint: Option<&str>,
    timeout_seconds: u64,
) -> Result<Client, Stop> {
    let mut headers = BTreeMap::new();
    if let Some(variable) = key_variable {
        let (name, value) = match api {
            ModelApi::Openai => ("Authorization", format!("Bearer ${{{variable}}}")),
            ModelApi::Anthropic => ("x-api-key", format!("${{{variable}}}")),
        };
        headers.insert(name.to_owned(), value);
    }
    if api == ModelApi::Anthropic {
        headers.insert("anthropic-version".to_owned(), "2023-06-01".to_owned());
    }
    if let Some(url) = endpoint {
        http::check_url(url).map_err(|error| Stop::bad_input(format!("--endpoint: {error}")))?;
    }
    let timeout = Duration::from_secs(timeout_seconds);
    let options = http::Options { timeout, headers, ..http::Options::default() };
    Client::new(&options).map_err(Stop::bad_input)
}

//! `karat agent`: traces made, scored and compared.

mod diff;
mod judge;
mod listen;
mod means;
mod run;
pub(crate) mod score;
mod suggest;
mod upgrade;

use karat_agent::run::Api;
use karat_agent::traces::Config;
use karat_core::project::Root;
use karat_io::http;

use crate::bundled::Embedded;
use crate::cli::{ModelApi, TraceArgs};
use crate::exit::Stop;

pub(crate) use diff::diff;
pub(crate) use judge::judge;
pub(crate) use listen::listen;
pub(crate) use run::run;
pub(crate) use score::score;
pub(crate) use suggest::suggest;
pub(crate) use upgrade::upgrade;

impl From<ModelApi> for Api {
    fn from(api: ModelApi) -> Api {
        match api {
            ModelApi::Openai => Api::Openai,
            ModelApi::Anthropic => Api::Anthropic,
        }
    }
}

/// The current folder, where a command without a project finds its files.
pub(crate) fn here() -> Root<'static> {
    Root::in_folder("", &Embedded)
}

/// The settings for reading traces.
fn config(arguments: &TraceArgs) -> Result<Config, Stop> {
    if !(0.0..=1.0).contains(&arguments.max_malformed) {
        return Err(Stop::bad_input("--max-malformed must be between 0 and 1"));
    }
    Ok(Config {
        format: arguments.format,
        tasks: arguments.tasks.clone(),
        max_malformed: arguments.max_malformed,
        ..Config::default()
    })
}

/// Refuses an endpoint that is not a valid address.
pub(crate) fn check_endpoint(endpoint: &str) -> Result<(), Stop> {
    http::check_url(endpoint).map_err(|error| Stop::bad_input(format!("--endpoint: {error}")))
}

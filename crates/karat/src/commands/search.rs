//! `karat retrieval run` without a project: one search that the command line describes, on the bundled
//! queries or on given ones.

use karat_core::adapter::{http, mcp};
use karat_core::evaluation::{Common, Entry, Evaluation as _};
use karat_retrieval::ready::ReadyConfig;
use karat_retrieval::system::SystemConfig;
use karat_retrieval::systems::answer::{AnswerConfig, Rules};
use karat_retrieval::{Config, Retrieval};
use serde_json::{Map, Value};

use super::{check, real_servers, retrieval, server::target};
use crate::cli::{CheckArgs, SearchArgs};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project;

/// The place of the query in an address.
const QUERY: &str = "{query}";

/// Measures the search; there is no gate.
pub(crate) fn run(
    arguments: &SearchArgs,
    check: &CheckArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    if let Some(project) = &check.project {
        return Err(Stop::bad_input(format!(
            "{}: give either a project or a search, not both",
            project.display()
        )));
    }
    check::ready(check)?;
    // Everything that the command line can have wrong is found before any server is started.
    let entries = entries(arguments, terminal)?;
    let data = match &arguments.real.real_servers {
        Some(installed) => real_servers::captured(installed, &arguments.real, terminal)?,
        None => retrieval::tools(&arguments.tools)?,
    };
    let entries = entries.into_iter().map(|(common, config)| Entry::<Retrieval> {
        common,
        config,
        data: data.clone(),
    });
    let plan = project::of_all(entries);
    check::carry_out(&plan, check, terminal)
}

/// An entry for each system that is named.
fn entries(arguments: &SearchArgs, terminal: &Terminal) -> Result<Vec<(Common, Config)>, Stop> {
    let entry = |name: &str, system: SystemConfig| {
        let ready =
            ReadyConfig { probe: arguments.no_probe.then_some(false), ..ReadyConfig::default() };
        let config = Config { limit: arguments.results, ready, ..Config::of(system) };
        let mut common = Common::named(name);
        Retrieval::check(&config, &mut common)?;
        Ok((common, config))
    };
    match arguments.builtin.as_slice() {
        [] => Ok(vec![entry("search", system(arguments, terminal)?)?]),
        names => names.iter().map(|name| entry(name, builtin(name, arguments))).collect(),
    }
}

/// A built-in engine, with the weights if it is one that needs them.
fn builtin(name: &str, arguments: &SearchArgs) -> SystemConfig {
    let needs = karat_retrieval::engines::find(name).is_none_or(|found| found.needs_weights);
    SystemConfig {
        builtin: Some(name.to_owned()),
        weights: arguments.weights.clone().filter(|_| needs || arguments.builtin.len() == 1),
        ..SystemConfig::default()
    }
}

fn system(arguments: &SearchArgs, terminal: &Terminal) -> Result<SystemConfig, Stop> {
    let target = &arguments.target;
    let answer = AnswerConfig {
        ids: arguments.ids.clone(),
        id: Rules(arguments.id.clone()),
        separator: arguments.separator.clone(),
        ..AnswerConfig::default()
    };
    let mut system = SystemConfig::default();
    match (&arguments.tool, &target.url) {
        (Some(tool), _) => {
            let server = target::spec(target, terminal)?.ok_or_else(|| {
                Stop::bad_input(
                    "--tool: name the server too: --url, --server NAME, or a command after `--`",
                )
            })?;
            system.mcp = Some(mcp::McpConfig {
                server,
                tool: tool.clone(),
                arguments: named(&arguments.arguments)?,
                from: mcp::Part::default(),
                answer,
                start_timeout_ms: mcp::default_start_timeout_ms(),
            });
        }
        (None, Some(url)) if url.contains(QUERY) => {
            let spec = target::pairs(&target.reach.headers, ':', "--header", "NAME: VALUE")?;
            system.http = Some(http::HttpConfig {
                url: url.clone(),
                method: None,
                headers: spec,
                body: None,
                redirects: 0,
                answer,
            });
        }
        (None, Some(url)) => {
            return Err(Stop::bad_input(format!(
                "--url {url}: an endpoint has {QUERY} in its address; for a tool of an MCP server \
                 give --tool NAME"
            )));
        }
        (None, None) if target.server.is_some() => {
            return Err(Stop::bad_input("--server: name the tool that searches with --tool NAME"));
        }
        (None, None) if !target.command.is_empty() => {
            system.command = Some(target.command.clone());
            system.env = target::pairs(&target.reach.env, '=', "-e", "KEY=VALUE")?;
        }
        (None, None) => system = builtin("bm25", arguments),
    }
    Ok(system)
}

/// The arguments of the tool, if any are given.
fn named(written: &[String]) -> Result<Option<Map<String, Value>>, Stop> {
    let pairs = target::pairs(written, '=', "--argument", "NAME=VALUE")?;
    let arguments: Map<String, Value> =
        pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    Ok((!arguments.is_empty()).then_some(arguments))
}

//! `karat retrieval run` without a project: one search described by options, on the bundled queries or on
//! given ones.

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
use crate::project;
use crate::terminal::Terminal;

/// The place of the query in an address.
const QUERY: &str = "{query}";

/// Measures the search; there is no gate.
pub(crate) fn run(
    arguments: &SearchArgs,
    check: &CheckArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    if check.project.is_some() || check.bundled || check.only.is_some() {
        return Err(Stop::bad_input(
            "PROJECT, --bundled and --only select entries of a project and cannot be combined with options \
             that describe a search",
        ));
    }
    check::ready(check)?;
    // Every mistake on the command line is found before a server is started.
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
        let config = Config { results: arguments.results, ready, ..Config::of(system) };
        let mut common =
            Common { start_timeout_ms: Retrieval::START_TIMEOUT_MS, ..Common::named(name) };
        Retrieval::check(&config, &mut common)?;
        Ok((common, config))
    };
    match arguments.builtin.as_slice() {
        [] => Ok(vec![entry("search", system(arguments, terminal)?)?]),
        names => {
            if let Some(option) = arguments.target.options().first() {
                return Err(Stop::bad_input(format!("{option} does not apply to --builtin")));
            }
            names.iter().map(|name| entry(name, builtin(name, arguments))).collect()
        }
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
    let only = |kind: &str, taken: &[&str]| match target
        .options()
        .into_iter()
        .find(|option| !taken.contains(option))
    {
        Some(option) => Err(Stop::bad_input(format!("{option} does not apply to {kind}"))),
        None => Ok(()),
    };
    match (&arguments.tool, &target.url) {
        (Some(tool), _) => {
            let server = target::spec(target, terminal)?.ok_or_else(|| {
                Stop::bad_input(
                    "--tool requires a server: a command after `--`, --url, or --server NAME",
                )
            })?;
            system.mcp = Some(mcp::McpConfig {
                server,
                tool: tool.clone(),
                arguments: named(&arguments.arguments)?,
                from: mcp::Part::default(),
                answer,
            });
        }
        (None, Some(url)) if url.contains(QUERY) => {
            only(
                "an HTTP endpoint; --tool NAME searches with a tool of an MCP server",
                &["--header"],
            )?;
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
                "--url {url}: missing {QUERY}, the place of the query; for an MCP server, name its search \
                 tool with --tool NAME"
            )));
        }
        (None, None) if target.server.is_some() || target.config.is_some() => {
            return Err(Stop::bad_input(
                "--server: name the search tool of the server with --tool NAME",
            ));
        }
        (None, None) if !target.command.is_empty() => {
            only("a search command; --tool NAME searches with a tool of an MCP server", &["-e"])?;
            system.command = Some(target.command.clone());
            system.env = target::pairs(&target.reach.env, '=', "-e", "KEY=VALUE")?;
        }
        (None, None) => {
            only("a built-in engine", &[])?;
            system = builtin("bm25", arguments);
        }
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

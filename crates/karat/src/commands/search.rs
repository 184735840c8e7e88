//! `karat retrieval run` without a project: one search that the command line describes, on the bundled
//! queries or on given ones.

use karat_core::adapter::{http, mcp};
use karat_core::evaluation::{Common, Entry, Evaluation as _};
use karat_core::kind::Evaluation;
use karat_retrieval::ready::ReadyConfig;
use karat_retrieval::system::SystemConfig;
use karat_retrieval::systems::answer::{AnswerConfig, Rules};
use karat_retrieval::{Config, Retrieval};
use serde_json::{Map, Value};

use super::{check, retrieval, server::target};
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
    let config = Config {
        limit: arguments.results,
        ready: ReadyConfig { probe: arguments.no_probe.then_some(false), ..ReadyConfig::default() },
        ..Config::of(system(arguments, terminal)?)
    };
    let mut common = Common::named("search");
    Retrieval::check(&config, &mut common)?;
    let data = retrieval::tools(&arguments.tools)?;
    let plan = project::of_any(Entry::<Retrieval> { common, config, data });
    check::carry_out(&plan, check, Some(&Evaluation::Retrieval), terminal)
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
            let spec = target::pairs(&target.headers, ':', "--header", "NAME: VALUE")?;
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
            system.env = target::pairs(&target.env, '=', "-e", "KEY=VALUE")?;
        }
        (None, None) => {
            let name = arguments.builtin.as_deref().unwrap_or("bm25");
            system.builtin = Some(name.to_owned());
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

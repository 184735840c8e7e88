//! `karat mcp`: Karat as an MCP server over stdio, for coding agents.
//!
//! Tools read files of one project and nothing else; paths that lead out of it are refused. Tools that start
//! programs (the systems of the project, servers that its configuration files name) are offered with
//! `--allow-run` alone, run Karat itself as a program of its own, one at a time, and never take a command from
//! the client.

mod answers;
mod arguments;
mod confine;
mod run;
mod tools;

use std::collections::BTreeMap;

use karat_core::schema::{Compiled, Violation};
use karat_io::text::{clip, printable_block};
use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
use serde_json::{Value, json};

use self::confine::Folder;
use self::run::Runner;
use crate::cli::McpArgs;
use crate::exit::{Exit, Stop};
use crate::project::Choice;
use crate::work::runtime;

/// The most columns of an error.
const MESSAGE: usize = 1_500;
/// The most problems of arguments that are named.
const PROBLEMS: usize = 5;

/// Serves until stdin ends.
pub(crate) fn run(arguments: &McpArgs) -> Result<Exit, Stop> {
    let choice = Choice::own(arguments.project.as_deref())?;
    // A project that cannot be read is reported at the start, where a person sees it.
    choice.settings()?;
    let folder = Folder::new(&choice.folder())?;
    let runner = match arguments.allow_run {
        true => Some(Runner::new(&choice, &folder, arguments.time_limit)?),
        false => None,
    };
    let offer = Offer {
        name: "karat".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: Some(tools::instructions(arguments.allow_run)),
        tools: tools::definitions(arguments.allow_run),
    };
    let server = Server::new(folder, runner, &offer.tools)?;
    let served = runtime()?.block_on(serve::over_stdio(offer, server));
    served.map_err(Stop::bad_input)?;
    Ok(Exit::Pass)
}

/// The implementation of the tools.
struct Server {
    folder: Folder,
    runner: Option<Runner>,
    inputs: BTreeMap<String, Compiled>,
}

impl Server {
    fn new(folder: Folder, runner: Option<Runner>, tools: &[Value]) -> Result<Server, Stop> {
        let mut inputs = BTreeMap::new();
        for tool in tools {
            let name = tool["name"].as_str().unwrap_or_default();
            let schema = Compiled::new(&tool["inputSchema"]).map_err(Stop::bad_input)?;
            inputs.insert(name.to_owned(), schema);
        }
        Ok(Server { folder, runner, inputs })
    }

    async fn answer(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        if let Some(schema) = self.inputs.get(tool) {
            valid(schema, arguments)?;
        }
        if let Some(runner) = &self.runner {
            match tool {
                tools::CHECK => return runner.check(arguments, &self.folder).await,
                tools::SCAN => return runner.scan(arguments, &self.folder).await,
                tools::SUGGEST => return runner.suggest(arguments, &self.folder).await,
                _ => {}
            }
        }
        let (folder, tool, arguments) = (self.folder.clone(), tool.to_owned(), arguments.clone());
        // Reading and comparing large reports takes a while.
        let read = tokio::task::spawn_blocking(move || match tool.as_str() {
            tools::REPORT => answers::report(&arguments, &folder),
            tools::EXPLAIN => answers::explain(&arguments, &folder),
            tools::COMPARE => answers::compare(&arguments, &folder),
            tools::LINT => answers::lint(&arguments, &folder),
            other => Err(format!("unknown tool {other:?}")),
        });
        read.await.unwrap_or_else(|_| Err("the tool failed; this is a bug in Karat".to_owned()))
    }
}

/// Returns an error that names the invalid arguments.
fn valid(schema: &Compiled, arguments: &Value) -> Result<(), String> {
    let found = schema.check(arguments);
    if let Some(why) = found.not_checked() {
        return Err(format!("the arguments were not checked: {why}"));
    }
    if found.valid {
        return Ok(());
    }
    let problem = |one: &Violation| match one.instance_path.as_str() {
        "" => one.message.clone(),
        path => format!("{path}: {}", one.message),
    };
    let problems: Vec<String> = found.errors.iter().take(PROBLEMS).map(problem).collect();
    Err(format!("invalid arguments: {}", problems.join("; ")))
}

impl Respond for Server {
    async fn call(
        &self,
        _: &Context,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, ProtocolError> {
        Ok(match self.answer(tool, arguments).await {
            Ok(answer) => json!({
                "content": [{"type": "text", "text": answer.to_string()}],
                "structuredContent": answer,
                "isError": false,
            }),
            Err(why) => {
                let text = clip(&printable_block(&why), MESSAGE).into_owned();
                json!({"content": [{"type": "text", "text": text}], "isError": true})
            }
        })
    }
}

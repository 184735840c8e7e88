//! `karat demo`: the bundled project, for a first look. `karat demo-server`: the server that the bundled suite and the documentation measure, or one that was
//! recorded.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use karat_mcp::replay::{self, Recording};
use karat_mcp::serve::{self, HttpServer, Offer, Respond};
use karat_server::demo::vulnerable::{self, Vulnerable};
use karat_server::demo::{self, Demo};

use crate::cli::{CheckAllArgs, CheckArgs, DemoArgs, TourArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::runtime;

/// The entries of the bundled project, as questions.
const TOUR: &str = "\
The project inside Karat has one entry of each kind:
  server      does the demo server answer its test suite correctly?
  agent       did recorded agents call the right tools?
  retrieval   does the built-in search find the right tools?
  detection   do the built-in detectors catch attacks and stay quiet otherwise?
  resilience  does an agent withstand attacks and still do its work?
";

/// The commands for a system of the user's own.
const OWN: &str = "\
Your own system, without a project:
  karat server scan -- COMMAND          an MCP server
  karat retrieval run --url URL         a tool search
  karat detection run -- COMMAND        a scanner of tool definitions
  karat agent score FILE                recorded agent runs
karat init writes a project that CI can check.
";

/// Measures the bundled project, and prints the next steps.
pub(crate) fn tour(arguments: &TourArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    terminal.say(TOUR);
    let check = CheckArgs { bundled: true, ..CheckArgs::writing(&arguments.out, &[]) };
    let all =
        CheckAllArgs { check, evaluation: None, history: None, open: arguments.open, watch: false };
    let exit = check::all(&all, terminal)?;
    terminal.say("");
    terminal.say(OWN.trim_end());
    Ok(exit)
}

/// Serves over stdio until the input ends, or over HTTP until Ctrl-C.
pub(crate) fn serve(arguments: &DemoArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.conformance {
        return Err(Stop::bad_input(
            "`karat demo-server --conformance` is now `cargo run -p karat-server --example \
             conformance_server [ADDRESS]` in Karat's repository",
        ));
    }
    if let Some(path) = &arguments.replay {
        return replay(path, arguments.paced);
    }
    if !arguments.vulnerable {
        return offer(arguments.http, demo::offer(), Demo::default(), terminal);
    }
    if arguments.http.is_some_and(|address| !address.ip().is_loopback()) {
        return Err(Stop::bad_input(
            "--vulnerable: these tools have real vulnerabilities and are served on 127.0.0.1 or [::1] only",
        ));
    }
    let tools = Vulnerable::new().map_err(Stop::not_measured)?;
    offer(arguments.http, vulnerable::offer(), tools, terminal)
}

/// Serves a recording over stdio until the input ends.
fn replay(path: &Path, paced: bool) -> Result<Exit, Stop> {
    let recording = Recording::read(path)?;
    let recording = if paced { recording.paced() } else { recording };
    runtime()?.block_on(replay::over_stdio(recording));
    Ok(Exit::Pass)
}

fn offer(
    address: Option<SocketAddr>,
    offer: Offer,
    respond: impl Respond,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    runtime()?.block_on(async {
        match address {
            None => serve::over_stdio(offer, respond).await.map_err(Stop::bad_input)?,
            Some(address) => {
                let at = BTreeMap::from([("/mcp".to_owned(), offer)]);
                let server =
                    HttpServer::bind(address, at, respond).await.map_err(Stop::not_measured)?;
                terminal.print(&format!("http://{}/mcp\n", server.address()))?;
                server.run_until(tokio::signal::ctrl_c()).await;
            }
        }
        Ok(Exit::Pass)
    })
}

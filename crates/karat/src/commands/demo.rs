//! `karat demo-server`: the server that the bundled suite and the documentation measure, or one that was
//! recorded.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use karat_mcp::replay::{self, Recording};
use karat_mcp::serve::{self, HttpServer, Offer, Respond};
use karat_server::demo::vulnerable::{self, Vulnerable};
use karat_server::demo::{self, Demo};

use crate::cli::DemoArgs;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::work::runtime;

/// Serves over stdio until the input ends, or over HTTP until Ctrl-C.
pub(crate) fn serve(arguments: &DemoArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if let Some(path) = &arguments.replay {
        return replay(path, arguments.paced);
    }
    if !arguments.vulnerable {
        return offer(arguments.http, demo::offer(), Demo::default(), terminal);
    }
    if arguments.http.is_some_and(|address| !address.ip().is_loopback()) {
        return Err(Stop::bad_input(
            "--vulnerable: these tools have real holes and are served on 127.0.0.1 or [::1] alone",
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

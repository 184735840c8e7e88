//! `karat demo-server`: the server that the bundled suite and the documentation measure.

use std::collections::BTreeMap;

use karat_mcp::serve::{self, HttpServer, Offer, Respond};
use karat_server::demo::conformance::{self, Conformance};
use karat_server::demo::{self, Demo};

use crate::cli::DemoArgs;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::work::runtime;

/// Serves over stdio until the input ends, or over HTTP until Ctrl-C.
pub(crate) fn serve(arguments: &DemoArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.conformance {
        return over(conformance::offer(), Conformance::default(), arguments, terminal);
    }
    over(demo::offer(), Demo::default(), arguments, terminal)
}

fn over(
    offer: Offer,
    respond: impl Respond,
    arguments: &DemoArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    runtime()?.block_on(async {
        match arguments.http {
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

//! `karat serve`: the history as pages, on this machine alone.

use karat_history::{Store, serve};
use karat_io::http_server::random_token;
use serde_json::json;

use super::history::{document, file};
use crate::browser;
use crate::cli::DashboardArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::runtime;

/// Serves until Ctrl-C.
pub(crate) fn run(arguments: &DashboardArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let store = match arguments.reports.as_slice() {
        [] => Store::open_to_read(&file(arguments.db.as_deref(), None)?)?,
        reports => {
            let mut store = Store::in_memory()?;
            for report in reports {
                store.add(&document(report)?)?;
            }
            store
        }
    };
    let token = arguments.token.then(random_token).transpose();
    let token = token.map_err(|error| Stop::bad_input(error.to_string()))?;
    runtime()?.block_on(async {
        let server = serve::Server::bind(store, arguments.port, token).await.map_err(|error| {
            let port = arguments.port;
            Stop::bad_input(format!(
                "cannot listen on 127.0.0.1:{port}: {error}; try another --port"
            ))
        })?;
        let url = server.url();
        // One line when it is ready, so that a script can wait for it and read the port.
        if terminal.json() {
            terminal.print(&format!("{}\n", json!({"url": url})))?;
        } else {
            terminal.print(&format!("{url}\n"))?;
            terminal.say("read-only, for this machine only; press Ctrl-C to stop");
        }
        if arguments.open {
            browser::open(url.as_ref(), terminal);
        }
        server.run_until(karat_io::process::end_all_on_signal()).await;
        Ok(Exit::Pass)
    })
}

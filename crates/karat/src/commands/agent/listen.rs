//! `karat agent listen`: receives OpenTelemetry from agents and writes it down.

use karat_agent::listen::Receiver;
use karat_io::process::end_all_on_signal;
use karat_io::text::count;
use serde_json::json;

use crate::cli::AgentListenArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::runtime;

/// Receives until Ctrl-C; nothing received is nothing measured.
pub(crate) fn listen(arguments: &AgentListenArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let (path, port) = (&arguments.output, arguments.port);
    let received = runtime()?.block_on(async {
        let receiver = Receiver::bind(path, port).await.map_err(|error| {
            let path = path.display();
            Stop::bad_input(format!(
                "cannot listen on 127.0.0.1:{port} and write {path}: {error}; try another --port or -o"
            ))
        })?;
        let address = receiver.address().map_err(|error| Stop::bad_input(error.to_string()))?;
        let url = format!("http://{address}");
        // One line when it is ready, so that a script can wait for it and read the port.
        match terminal.json() {
            true => terminal.print(&format!("{}\n", json!({"url": url})))?,
            false => terminal.print(&format!("{url}\n"))?,
        }
        if receiver.removed > 0 {
            let removed = receiver.removed;
            terminal.say(&format!(
                "removed {} of an incomplete line from {}",
                count(removed, "byte"),
                path.display()
            ));
        }
        terminal.say(&format!(
            "set OTEL_EXPORTER_OTLP_ENDPOINT={url} and OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf; press Ctrl-C to stop"
        ));
        Ok::<_, Stop>(receiver.run_until(end_all_on_signal()).await)
    })?;
    let path = path.display();
    if received.batches == 0 {
        let refused = received.refused;
        return Err(Stop::not_measured(format!(
            "nothing was received ({} refused)",
            count(refused, "request")
        )));
    }
    terminal.say(&format!(
        "{} and {} in {} ({} refused); score them with: karat agent score {path}",
        count(received.spans, "span"),
        count(received.logs, "log record"),
        count(received.batches, "request"),
        received.refused
    ));
    Ok(Exit::Pass)
}

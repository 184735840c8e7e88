//! The server over stdin and stdout.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::mpsc::channel;

use serde_json::Value;

use crate::output::Output;
use crate::state::Server;

struct Stdout {
    server: Arc<Server>,
}

impl Output for Stdout {
    fn answer(&self, message: &Value) {
        self.message(message);
    }

    fn message(&self, message: &Value) {
        self.raw(format!("{}\n", self.server.text(message)).as_bytes());
    }

    fn raw(&self, bytes: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
            // The client is gone.
            std::process::exit(0);
        }
    }

    fn status(&self, _: &str) {}

    fn close(&self) {}
}

/// Serves until stdin ends.
pub(crate) fn serve(server: &Arc<Server>) -> Result<(), String> {
    let output: Arc<dyn Output> = Arc::new(Stdout { server: Arc::clone(server) });
    server.run(&server.script.start, &output);
    // Read on a thread of its own, so that answers to questions arrive while a call waits for them.
    let (sender, messages) = channel();
    let reader = Arc::clone(server);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if !reader.take_answer(&message) && sender.send((message, line.len())).is_err() {
                return;
            }
        }
    });
    for (message, bytes) in messages {
        let is_call = message.get("method").is_some_and(|method| method == "tools/call");
        let (call, steps) = server.call(&output, &message, bytes);
        if is_call && server.script.concurrent {
            std::thread::spawn(move || call.run_all(&steps));
        } else {
            call.run_all(&steps);
        }
    }
    server.run(&server.script.end, &output);
    Ok(())
}

//! A scripted server over HTTP.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::test_server;

/// A server that runs until it exits by itself or the test is over.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

impl Served {
    /// Starts `karat-test-server` with this script.
    pub(crate) fn start(script: &str) -> Served {
        let mut command = Command::new(test_server());
        command.args(["-c", script, "--http"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Served { child, url: url.trim().to_owned() }
    }

    /// A server with tools of these names that take a text, and that exits when a request is large.
    pub(crate) fn fragile(tools: &[&str]) -> Served {
        let mut script = "name: fragile\ntools:\n".to_owned();
        for tool in tools {
            script += &format!(
                "  - name: {tool}
    description: Says a text
    inputSchema: {{type: object, properties: {{text: {{type: string}}}}, required: [text]}}
    do: [{{when: {{bytes_above: 1000000, then: [{{exit: 1}}]}}}}, {{text: fine}}]
"
            );
        }
        Served::start(&script)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A server over HTTP that ends when a request is large.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::Scratch;

/// It is ended with the test if it has not ended by itself.
pub(crate) struct Fragile {
    child: Child,
    pub(crate) url: String,
}

impl Fragile {
    /// Starts it with tools of these names, which take a text.
    pub(crate) fn start(scratch: &Scratch, tools: &[&str]) -> Fragile {
        let server = scratch.write("fragile.py", include_str!("../../fixtures/fragile.py"));
        let mut command = Command::new("python3");
        let mut child = command.arg(server).args(tools).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Fragile { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

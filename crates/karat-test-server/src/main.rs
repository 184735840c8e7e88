//! A scriptable MCP server for tests: correct by default, and wrong in exactly the way that a script says.
//!
//! `karat-test-server SCRIPT` serves over stdio, `karat-test-server SCRIPT --http` over HTTP on a free port
//! of this machine, whose URL is its first line. The script is a YAML or JSON file, or text after `-c`.
//! README.md documents the language. Messages are written by hand, without karat-mcp, so that a test does
//! not compare its code with itself.
//!
//! `karat-test-server --hold wait|panic COMMAND…` is a client instead: it opens a session with the command,
//! calls its tool `t`, prints the version of the server and the answer, and then waits or panics without
//! dropping anything.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod hold;
mod http;
mod output;
mod script;
mod state;
mod stdio;
mod steps;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use karat_io::input::{self, Format, Limits};

use crate::script::Script;
use crate::state::Server;

const USAGE: &str = "usage: karat-test-server (FILE | -c TEXT) [--http]\n       \
                     karat-test-server --hold (wait | panic) COMMAND…";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (script, over_http) = match words[..] {
        ["--hold", how, ..] if words.len() > 2 => return hold::run(how, &arguments[2..]),
        ["-c", text, ref rest @ ..] => (parse(Path::new("-c"), text), rest == ["--http"]),
        // Further words are for tests that need arguments in the command of a server.
        [file, ref rest @ ..] => (read(Path::new(file)), rest == ["--http"]),
        [] => (Err(USAGE.to_owned()), false),
    };
    let served = script.and_then(|script| {
        let server = Arc::new(Server::new(script)?);
        if over_http { http::serve(&server) } else { stdio::serve(&server) }
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("karat-test-server: {why}");
            ExitCode::from(2)
        }
    }
}

fn read(path: &Path) -> Result<Script, String> {
    let text = input::read_text(path, &Limits::default()).map_err(|error| error.to_string())?;
    parse(path, &text)
}

/// YAML includes JSON.
fn parse(path: &Path, text: &str) -> Result<Script, String> {
    input::parse(path, text, Format::Yaml).map_err(|error| error.to_string())
}

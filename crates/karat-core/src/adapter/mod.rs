//! The adapters that every evaluation shares: a program, an HTTP endpoint, a tool of an MCP server.
//!
//! An adapter fills a template with the values of one question, sends it, and returns the answer; what
//! the answer means is up to the evaluation. The keys in karat.toml are therefore the same everywhere,
//! and `${VAR}` works in `env`, `headers` and `url` alike.

pub mod http;
pub mod mcp;

use std::collections::BTreeMap;
use std::path::Path;

use karat_io::interpolate::{Variables, environment};
use karat_io::process::Program;
use serde_json::{Map, Value};

/// The values of one question, by the name of their place in a template.
pub type Values = Map<String, Value>;

/// A program with its environment, in the folder of the project.
///
/// # Errors
/// If a variable that `env` refers to is not set.
pub fn program(
    command: &[String],
    env: &BTreeMap<String, String>,
    folder: &Path,
) -> Result<Program, String> {
    let variables = Variables::new(&environment, folder);
    let filled = env.iter().map(|(name, text)| {
        let value = variables.interpolate(text);
        let value = value.map_err(|error| format!("env: {name}: {error}"))?;
        Ok((name.clone(), value.text))
    });
    Ok(Program {
        command: command.to_vec(),
        env: filled.collect::<Result<_, String>>()?,
        folder: Some(folder.to_owned()),
        ..Program::default()
    })
}

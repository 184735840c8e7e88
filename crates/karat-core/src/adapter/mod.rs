//! The adapters that every evaluation shares: a program, an HTTP endpoint, a tool of an MCP server.
//!
//! An adapter fills a template with the values of one question, sends it, and returns the answer; what
//! the answer means is up to the evaluation. The keys in karat.toml are therefore the same everywhere,
//! and `${VAR}` works in `env`, `headers`, `url` and the words of a command alike.

pub mod http;
pub mod mcp;

use std::collections::BTreeMap;
use std::path::Path;

use karat_io::interpolate::{Variables, environment};
use karat_io::process::Program;
use karat_io::redact::Redactor;
use karat_io::secrets;
use karat_mcp::ServerSpec;
use serde_json::{Map, Value};

/// The values of one question, by the name of their place in a template.
pub type Values = Map<String, Value>;

/// A program with its environment, in the folder of the project, and the secrets that its output may
/// show.
///
/// # Errors
/// If a variable that the command or `env` refers to is not set, or the name of the program is empty.
pub fn program(
    command: &[String],
    env: &BTreeMap<String, String>,
    folder: &Path,
) -> Result<(Program, Redactor), String> {
    let variables = Variables::new(&environment, folder);
    let mut redactor = Redactor::default();
    let mut fill = |what: &str, text: &str| {
        let value = variables.interpolate(text).map_err(|error| format!("{what}: {error}"))?;
        value.used.iter().for_each(|used| redactor.add_used(used));
        Ok::<String, String>(value.text)
    };
    let words = command.iter().map(|word| fill("command", word));
    let words = words.collect::<Result<Vec<String>, String>>()?;
    if words.first().is_some_and(String::is_empty) {
        return Err("command: the name of the program is empty".to_owned());
    }
    let mut filled = BTreeMap::new();
    for (name, text) in env {
        filled.insert(name.clone(), fill(&format!("env: {name}"), text)?);
    }
    for (name, value) in &filled {
        if secrets::is_secret(name, value) {
            redactor.add(value);
        }
    }
    let program = Program {
        command: words,
        env: filled,
        folder: Some(folder.to_owned()),
        ..Program::default()
    };
    Ok((program, redactor))
}

/// A command as reports name it: variables are not replaced, and secrets are hidden.
pub fn describe_command(command: &[String]) -> String {
    ServerSpec::from_command(command.to_vec()).describe()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_in_command_and_env_and_their_values_are_secrets() {
        let words = ["search", "${workspaceFolder}/index", "$${HOME}"].map(str::to_owned);
        let env = BTreeMap::from([("API_KEY".to_owned(), "${NO_SUCH:-k3y-of-mine-1}".to_owned())]);
        let (program, redactor) = program(&words, &env, Path::new("/p")).unwrap();
        assert_eq!(program.command, ["search", "/p/index", "${HOME}"]);
        assert_eq!(program.env["API_KEY"], "k3y-of-mine-1");
        assert_eq!(redactor.hide("bad key k3y-of-mine-1"), "bad key [redacted]");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named_with_its_place() {
        let unset = "${NO_SUCH_VARIABLE_1}".to_owned();
        let error =
            program(std::slice::from_ref(&unset), &BTreeMap::new(), Path::new("/")).unwrap_err();
        assert!(error.starts_with("command: the environment variable NO_SUCH"), "{error}");
        let env = BTreeMap::from([("KEY".to_owned(), unset)]);
        let error = program(&["x".to_owned()], &env, Path::new("/")).unwrap_err();
        assert!(error.starts_with("env: KEY: the environment variable NO_SUCH"), "{error}");
    }

    #[test]
    fn a_command_is_named_without_its_secrets() {
        let words = ["scan", "--api-key", "k3y-of-mine-1", "--top", "5"].map(str::to_owned);
        assert_eq!(describe_command(&words), "scan --api-key [redacted] --top 5");
    }
}

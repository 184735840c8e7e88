//! `mcp_server` of a suite, in the notations that people use for a server.
//!
//! A text is an address or a command line (split into words like a shell, without running one); an
//! object has the keys of an mcp.json entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_core::expect::one_or_several;
use karat_mcp::auth::AuthSpec;
use karat_mcp::{Isolation, Policies, Revision, ServerSpec, TransportKind, config};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    #[serde(deserialize_with = "program_or_command")]
    command: Option<Vec<String>>,
    args: Vec<String>,
    url: Option<String>,
    #[serde(alias = "type")]
    transport: Option<TransportKind>,
    env: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    ca_file: Option<PathBuf>,
    cwd: Option<PathBuf>,
    protocol: Option<Revision>,
    isolate: Option<Isolation>,
    policies: Option<Policies>,
    auth: Option<AuthSpec>,
}

/// The program, or the whole command.
fn program_or_command<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    one_or_several(from, "command: a program or a list of words").map(Some)
}

/// Reads the value of `mcp_server`.
///
/// # Errors
/// If it does not describe a server.
pub fn read(written: &Value) -> Result<ServerSpec, String> {
    match written {
        Value::String(text) => from_text(text),
        Value::Object(_) => from_object(written),
        _ => Err("mcp_server must be a command line, an address, or an object with command or url"
            .to_owned()),
    }
}

/// A server that was found, and the file of servers that has it.
#[derive(Debug)]
pub struct Found {
    /// The server.
    pub spec: ServerSpec,
    /// The file, if a name was looked up.
    pub file: Option<PathBuf>,
}

/// Reads the value of `mcp_server`. A single word is the name of a server in the files of servers of a
/// project or a user, or else a program.
///
/// # Errors
/// If it does not describe a server, several files have the name, or it is neither a known name nor a program.
pub fn find(written: &Value, folder: &Path) -> Result<Found, String> {
    let name = match written {
        Value::String(text) => text.trim(),
        _ => return read(written).map(|spec| Found { spec, file: None }),
    };
    let is_name = !name.is_empty()
        && !name.contains("://")
        && !name.contains(|c: char| c.is_whitespace() || c == '/' || c == '\\');
    if !is_name {
        return read(written).map(|spec| Found { spec, file: None });
    }
    let files: Vec<_> =
        config::discover(&config::candidates(folder)).into_iter().filter_map(Result::ok).collect();
    let having: Vec<_> =
        files.iter().filter(|file| file.names().any(|known| known == name)).collect();
    match having.as_slice() {
        [file] => {
            let spec = file.server(name).map_err(|error| error.to_string())?;
            Ok(Found { spec, file: Some(file.path().to_owned()) })
        }
        [] if is_program(name) => read(written).map(|spec| Found { spec, file: None }),
        [] => Err(format!(
            "mcp_server {name:?} is neither a server in a file such as .mcp.json nor a program; write \
             its command line, or name a server with --server, --url or after `--`"
        )),
        several => {
            let paths: Vec<String> =
                several.iter().map(|file| file.path().display().to_string()).collect();
            Err(format!(
                "mcp_server {name:?} is in several files: {}; choose one with --config FILE",
                paths.join(", ")
            ))
        }
    }
}

/// Returns whether a program of this name is on the path.
fn is_program(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
}

fn from_text(text: &str) -> Result<ServerSpec, String> {
    let text = text.trim();
    if text.starts_with("http://") || text.starts_with("https://") {
        return Ok(ServerSpec::from_url(text));
    }
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(ServerSpec::from_command(words)),
        Some(_) => Err("mcp_server is empty".to_owned()),
        None => Err("mcp_server: a quote is not closed".to_owned()),
    }
}

fn from_object(written: &Value) -> Result<ServerSpec, String> {
    let written = Written::deserialize(written).map_err(|error| format!("mcp_server: {error}"))?;
    let command = written.command.map(|mut words| {
        words.extend(written.args);
        words
    });
    let spec = ServerSpec {
        command,
        url: written.url,
        transport: written.transport,
        env: written.env,
        headers: written.headers,
        ca_file: written.ca_file,
        cwd: written.cwd,
        protocol: written.protocol,
        isolate: written.isolate,
        policies: written.policies,
        auth: written.auth,
    };
    spec.transport().map_err(|error| format!("mcp_server: {error}"))?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_read_in_every_notation() {
        let command =
            |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            read(&json!("node 'my server.js' -v")).unwrap().command,
            command(&["node", "my server.js", "-v"])
        );
        assert_eq!(
            read(&json!("http://127.0.0.1:3000/mcp")).unwrap().url.as_deref(),
            Some("http://127.0.0.1:3000/mcp")
        );
        assert_eq!(
            read(&json!({"command": "npx", "args": ["-y", "x"]})).unwrap().command,
            command(&["npx", "-y", "x"])
        );
        assert_eq!(read(&json!({"command": ["a", "b"]})).unwrap().command, command(&["a", "b"]));
    }

    #[test]
    fn an_invalid_server_is_refused() {
        for wrong in [
            json!(""),
            json!(3),
            json!("a 'b"),
            json!({}),
            json!({"command": "a", "url": "http://x"}),
            json!({"comand": "a"}),
            json!({"command": null}),
            json!({"command": "a", "policies": {"sampling": "yes"}}),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}

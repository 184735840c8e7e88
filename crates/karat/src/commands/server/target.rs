//! From the command line to the server that is meant.

use std::collections::BTreeMap;

use karat_mcp::{Revision, ServerSpec, TransportKind};

use crate::cli::{TargetArgs, Transport};
use crate::exit::Stop;

/// The server that the arguments name; `None` if they name none.
pub(crate) fn spec(arguments: &TargetArgs) -> Result<Option<ServerSpec>, Stop> {
    let mut spec = match (&arguments.url, &arguments.config, arguments.command.as_slice()) {
        (Some(url), _, _) => ServerSpec::from_url(url),
        (None, Some(file), _) => {
            let name = arguments.server.as_deref().unwrap_or_default();
            let mut servers = karat_mcp::config::read(file)?;
            match servers.remove(name) {
                Some(spec) => spec,
                None => {
                    let known: Vec<&str> = servers.keys().map(String::as_str).collect();
                    return Err(Stop::bad_input(format!(
                        "{}: there is no server {name:?}; there are: {}",
                        file.display(),
                        known.join(", ")
                    )));
                }
            }
        }
        (None, None, []) => return Ok(None),
        (None, None, command) => ServerSpec::from_command(command.to_vec()),
    };
    spec.env.extend(pairs(&arguments.env, '=', "-e", "KEY=VALUE")?);
    spec.headers.extend(pairs(&arguments.headers, ':', "--header", "NAME: VALUE")?);
    if let Some(folder) = &arguments.cwd {
        spec.cwd = Some(folder.clone());
    }
    if let Some(transport) = arguments.transport {
        spec.transport = Some(match transport {
            Transport::Stdio => TransportKind::Stdio,
            Transport::Http => TransportKind::Http,
            Transport::Sse => TransportKind::Sse,
        });
    }
    if let Some(text) = &arguments.protocol {
        let revision = Revision::of(text).ok_or_else(|| {
            let known: Vec<String> = Revision::ALL.iter().map(ToString::to_string).collect();
            let known = known.join(", ");
            Stop::bad_input(format!("--protocol: {text:?} is no MCP revision; there are: {known}"))
        })?;
        spec.protocol = Some(revision);
    }
    spec.transport().map_err(Stop::bad_input)?;
    Ok(Some(spec))
}

fn pairs(
    written: &[String],
    separator: char,
    flag: &str,
    form: &str,
) -> Result<BTreeMap<String, String>, Stop> {
    written
        .iter()
        .map(|pair| match pair.split_once(separator) {
            Some((key, value)) if !key.trim().is_empty() => {
                let value = if separator == ':' { value.trim() } else { value };
                Ok((key.trim().to_owned(), value.to_owned()))
            }
            // The pair itself may be a secret, so it is not repeated.
            _ => Err(Stop::bad_input(format!("{flag}: write it as {form}"))),
        })
        .collect()
}

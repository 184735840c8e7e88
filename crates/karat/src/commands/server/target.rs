//! From the command line to the server that is meant.

use std::collections::BTreeMap;

use karat_mcp::{Engine, Isolation, Options, Revision, ServerSpec, StartError, TransportKind};

use crate::cli::{Isolate, IsolationArgs, TargetArgs, Transport};
use crate::exit::Stop;
use crate::face::Terminal;

/// Says what the servers of these options did beside answering, where no report does.
pub(crate) fn say_remarks(terminal: &Terminal, options: &Options) {
    for remark in options.witness.conduct().remarks() {
        terminal.say(&format!("note: {remark}"));
    }
}

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
    isolate(&arguments.isolation, &mut spec)?;
    spec.transport().map_err(Stop::bad_input)?;
    Ok(Some(spec))
}

/// The server that the arguments name, or else the one that the suite names: kept apart either way
/// as the arguments say.
pub(crate) fn spec_or(
    arguments: &TargetArgs,
    suite: Option<&serde_json::Value>,
) -> Result<Option<ServerSpec>, Stop> {
    if let Some(spec) = spec(arguments)? {
        return Ok(Some(spec));
    }
    let Some(written) = suite else { return Ok(None) };
    let mut spec = karat_server::suite::server::read(written).map_err(Stop::bad_input)?;
    isolate(&arguments.isolation, &mut spec)?;
    spec.transport().map_err(Stop::bad_input)?;
    Ok(Some(spec))
}

/// How a session that did not begin ends Karat.
pub(crate) fn not_started(error: StartError) -> Stop {
    match error {
        StartError::Spec { why } => Stop::bad_input(why),
        other => Stop::not_measured(other),
    }
}

fn isolate(arguments: &IsolationArgs, spec: &mut ServerSpec) -> Result<(), Stop> {
    let engine = arguments.isolate.map(|engine| match engine {
        Isolate::None => Engine::None,
        Isolate::Bwrap => Engine::Bwrap,
        Isolate::Docker => Engine::Docker,
    });
    if engine == Some(Engine::None) {
        spec.isolate = None;
    }
    let mut isolation = spec.isolate.clone().unwrap_or_default();
    isolation.engine = engine.unwrap_or(isolation.engine);
    isolation.network |= arguments.allow_network;
    if let Some(image) = &arguments.image {
        isolation.image = Some(image.clone());
    }
    for mount in &arguments.mounts {
        let (path, writable) = match mount.strip_suffix(":rw") {
            Some(path) => (path, true),
            None => (mount.strip_suffix(":ro").unwrap_or(mount), false),
        };
        // Seen from where the user stands, not from the folder of the project.
        let path = std::path::absolute(path)
            .map_err(|error| Stop::bad_input(format!("--mount {mount}: {error}")))?;
        if writable { &mut isolation.write } else { &mut isolation.read }.push(path);
    }
    for limit in &arguments.limits {
        set_limit(&mut isolation, limit)?;
    }
    if isolation.engine != Engine::None {
        spec.isolate = Some(isolation);
    } else if isolation != Isolation::default() {
        return Err(Stop::bad_input(
            "--allow-network, --mount, --image and --limit are for --isolate bwrap or docker",
        ));
    }
    Ok(())
}

fn set_limit(isolation: &mut Isolation, limit: &str) -> Result<(), Stop> {
    let wrong = || {
        Stop::bad_input(format!(
            "--limit {limit}: write memory=512m, processes=64, cpu=60, file=100m or cpus=2"
        ))
    };
    let (what, amount) = limit.split_once('=').ok_or_else(wrong)?;
    let amount = amount.trim().to_ascii_lowercase();
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let mebibytes = || match amount.trim_end_matches("ib").trim_end_matches('b') {
        size if size.ends_with('g') => number(size.trim_end_matches('g'))?.checked_mul(1_024),
        size => number(size.strip_suffix('m')?),
    };
    let (slot, value) = match what.trim() {
        "memory" => (&mut isolation.memory_mb, mebibytes()),
        "file" => (&mut isolation.file_mb, mebibytes()),
        "processes" => (&mut isolation.processes, number(&amount)),
        "cpu" => (&mut isolation.cpu_seconds, number(amount.trim_end_matches('s'))),
        "cpus" => (&mut isolation.cpus, number(&amount)),
        _ => return Err(wrong()),
    };
    *slot = Some(value.filter(|value| *value < 1 << 40).ok_or_else(wrong)?);
    Ok(())
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

//! From the command line to the spec of a server.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Read as _};
use std::path::Path;

use karat_io::input;
use karat_io::text::printable;
use karat_mcp::auth::{AuthKind, AuthSpec};
use karat_mcp::{
    Elicitation, Engine, Isolation, Options, Revision, Roots, Sampling, ServerSpec, StartError,
    TransportKind, config,
};
use karat_server::suite::server;
use serde_json::{Value, json};

use crate::cli::{
    Auth, AuthArgs, Isolate, IsolationArgs, PolicyArgs, ReachArgs, TargetArgs, Transport,
};
use crate::exit::Stop;
use crate::terminal::Terminal;

/// Prints remarks on the conduct of the servers of these options, where no report does.
pub(crate) fn say_remarks(terminal: &Terminal, options: &Options) {
    for remark in options.violations.log().warnings() {
        terminal.say(&format!("note: {remark}"));
    }
}

/// The server that the arguments name; `None` if they name none.
pub(crate) fn spec(
    arguments: &TargetArgs,
    terminal: &Terminal,
) -> Result<Option<ServerSpec>, Stop> {
    let named = (&arguments.url, &arguments.config, &arguments.server);
    let spec = match (named, arguments.command.as_slice()) {
        ((Some(url), _, _), _) => ServerSpec::from_url(url),
        ((None, Some(file), name), _) => {
            let servers = config::read(file)?;
            let names: Vec<&str> = servers.names().collect();
            match (name, names.as_slice()) {
                (Some(name), _) => servers.server(name)?,
                (None, [only]) => servers.server(only)?,
                (None, _) => {
                    return Err(Stop::bad_input(printable(&format!(
                        "--config {}: choose a server with --server: {}",
                        file.display(),
                        names.join(", ")
                    ))));
                }
            }
        }
        ((None, None, Some(name)), _) => discovered(name, terminal)?,
        ((None, None, None), []) => return Ok(None),
        ((None, None, None), command) => ServerSpec::from_command(command.to_vec()),
    };
    Ok(Some(refined(&arguments.reach, spec)?))
}

/// Refuses options on the connection to a server where none is used.
pub(crate) fn refuse_options(arguments: &TargetArgs) -> Result<(), Stop> {
    match arguments.options().first() {
        Some(option) => Err(Stop::bad_input(format!(
            "{option} requires a server: a command after `--`, --url, or --server NAME"
        ))),
        None => Ok(()),
    }
}

/// The server that the arguments name.
pub(crate) fn needed(arguments: &TargetArgs, terminal: &Terminal) -> Result<ServerSpec, Stop> {
    spec(arguments, terminal)?.ok_or_else(|| {
        Stop::bad_input("missing server: pass a command after `--`, --url, or --server NAME")
    })
}

/// The server that the arguments name, or else the one that the suite names, with the options of the
/// arguments.
pub(crate) fn spec_or(
    arguments: &TargetArgs,
    suite: Option<&Value>,
    terminal: &Terminal,
) -> Result<Option<ServerSpec>, Stop> {
    // With a file of servers and no name, the suite has the name.
    let name = suite.and_then(Value::as_str).map(str::trim);
    if let (Some(file), None, Some(name)) = (&arguments.config, &arguments.server, name) {
        return Ok(Some(refined(&arguments.reach, config::read(file)?.server(name)?)?));
    }
    if let Some(spec) = spec(arguments, terminal)? {
        return Ok(Some(spec));
    }
    let Some(written) = suite else { return Ok(None) };
    let found = server::find(written, Path::new("")).map_err(Stop::bad_input)?;
    if let (Some(file), Some(name)) = (&found.file, name) {
        let said = format!("server {name:?} of {}: {}", file.display(), found.spec);
        terminal.say(&printable(&said));
    }
    Ok(Some(refined(&arguments.reach, found.spec)?))
}

/// The server with this name in the usual config files, if exactly one of them has it.
fn discovered(name: &str, terminal: &Terminal) -> Result<ServerSpec, Stop> {
    let mut having = Vec::new();
    let mut others = Vec::new();
    for file in config::discover(&config::candidates(Path::new(""))) {
        match file {
            Ok(servers) if servers.names().any(|known| known == name) => having.push(servers),
            Ok(servers) => {
                let names: Vec<&str> = servers.names().collect();
                others.push(format!("{} has {}", servers.path().display(), names.join(", ")));
            }
            Err(error) => others.push(error.to_string()),
        }
    }
    match having.as_slice() {
        [servers] => {
            let spec = servers.server(name)?;
            let path = servers.path().display().to_string();
            terminal.say(&printable(&format!("server {name:?} of {path}: {spec}")));
            Ok(spec)
        }
        [] if others.is_empty() => Err(Stop::bad_input(format!(
            "--server {name:?}: found no config file in the usual places; name one with --config"
        ))),
        [] => Err(Stop::bad_input(printable(&format!(
            "--server {name:?}: no config file has it; {}; name another file with --config",
            others.join("; ")
        )))),
        several => {
            let paths: Vec<String> =
                several.iter().map(|servers| servers.path().display().to_string()).collect();
            Err(Stop::bad_input(format!(
                "--server {name:?} is in several files: {}; choose one with --config",
                paths.join(", ")
            )))
        }
    }
}

fn refined(arguments: &ReachArgs, mut spec: ServerSpec) -> Result<ServerSpec, Stop> {
    if spec.url.is_some() && !(arguments.env.is_empty() && arguments.cwd.is_none()) {
        return Err(Stop::bad_input(
            "-e and --cwd apply to a server that Karat starts, not to a URL",
        ));
    }
    if spec.command.is_some() && !arguments.headers.is_empty() {
        return Err(Stop::bad_input(
            "--header applies to a server at a URL, not to a command; set variables with -e",
        ));
    }
    spec.env.extend(pairs(&arguments.env, '=', "-e", "KEY=VALUE")?);
    spec.headers.extend(pairs(&arguments.headers, ':', "--header", "NAME: VALUE")?);
    if let Some(file) = &arguments.ca_file {
        spec.ca_file = Some(file.clone());
    }
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
            Stop::bad_input(format!(
                "--protocol: unknown MCP revision {text:?}; expected one of {known}"
            ))
        })?;
        spec.protocol = Some(revision);
    }
    log_in(&arguments.login, &mut spec)?;
    answer(&arguments.policies, &mut spec)?;
    isolate(&arguments.isolation, &mut spec)?;
    spec.transport().map_err(Stop::bad_input)?;
    Ok(spec)
}

/// The longest token that is read from stdin.
const MAX_TOKEN_BYTES: u64 = 16 << 10;

/// The login: the flags replace the one in the spec.
fn log_in(arguments: &AuthArgs, spec: &mut ServerSpec) -> Result<(), Stop> {
    let Some(kind) = arguments.auth else { return Ok(()) };
    let kind = match kind {
        Auth::ClientCredentials => AuthKind::ClientCredentials,
        Auth::Browser => AuthKind::Browser,
        Auth::Device => AuthKind::Device,
        Auth::Token => AuthKind::Token,
    };
    // Every user of the machine sees arguments, and shells keep them.
    let secret = |flag: &str, value: &Option<String>| match value {
        Some(text) if !text.contains("${") => Err(Stop::bad_input(format!(
            "{flag}: do not pass a secret on the command line; set a variable and pass '${{NAME}}'"
        ))),
        value => Ok(value.clone()),
    };
    let access_token = match arguments.access_token.as_deref() {
        Some("-") => Some(token_of_stdin()?),
        _ => secret("--access-token", &arguments.access_token)?,
    };
    spec.auth = Some(AuthSpec {
        client_id: arguments.client_id.clone(),
        client_secret: secret("--client-secret", &arguments.client_secret)?,
        private_key: arguments.private_key.clone(),
        client_metadata: arguments.client_metadata.clone(),
        scopes: arguments.scopes.clone(),
        issuer: arguments.issuer.clone(),
        access_token,
        refresh_token: secret("--refresh-token", &arguments.refresh_token)?,
        redirect_port: arguments.redirect_port,
        ..AuthSpec::new(kind)
    });
    Ok(())
}

/// A line of stdin, as a value without variables.
fn token_of_stdin() -> Result<String, Stop> {
    let mut line = String::new();
    let mut stdin = std::io::stdin().lock().take(MAX_TOKEN_BYTES);
    let read = stdin.read_line(&mut line);
    match (read, line.trim()) {
        (Ok(_), token) if !token.is_empty() => Ok(token.replace("${", "$${")),
        _ => Err(Stop::bad_input("--access-token -: no token on stdin")),
    }
}

/// The answers to requests of the server: each flag takes precedence over the spec.
fn answer(arguments: &PolicyArgs, spec: &mut ServerSpec) -> Result<(), Stop> {
    let mut policies = spec.policies.clone().unwrap_or_default();
    if let Some(text) = &arguments.sampling {
        policies.sampling = Sampling::text(text);
    }
    if let Some(written) = &arguments.elicitation {
        let value = if written.trim_start().starts_with('{') {
            let content: Value = input::parse_json("--elicitation", written.as_bytes())?;
            json!({"accept": content})
        } else {
            json!(written)
        };
        policies.elicitation = Elicitation::try_from(value).map_err(|_| {
            Stop::bad_input(
                "--elicitation: expected decline, cancel, defaults, refuse, or a JSON object to fill \
                 in",
            )
        })?;
    }
    if !arguments.roots.is_empty() {
        let root = |root: &String| {
            // Relative to the current folder, not from the folder of the project.
            let path = std::path::absolute(root).unwrap_or_default();
            match path.to_str() {
                _ if root.contains("://") => Ok(root.clone()),
                Some(path) if Path::new(path).is_dir() => Ok(path.to_owned()),
                _ => Err(Stop::bad_input(format!("--roots {root}: no such folder"))),
            }
        };
        policies.roots = Roots::List(arguments.roots.iter().map(root).collect::<Result<_, _>>()?);
    }
    if policies != spec.policies.clone().unwrap_or_default() {
        spec.policies = Some(policies);
    }
    Ok(())
}

/// The error for a session that did not start.
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
        // Relative to the current folder, not from the folder of the project.
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
            "--allow-network, --mount, --image and --limit require --isolate bwrap or docker",
        ));
    }
    Ok(())
}

fn set_limit(isolation: &mut Isolation, limit: &str) -> Result<(), Stop> {
    let wrong = || {
        Stop::bad_input(format!(
            "--limit {limit}: expected memory=512m, processes=64, cpu=60, file=100m or cpus=2"
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

pub(crate) fn pairs(
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
            _ => Err(Stop::bad_input(format!("{flag}: expected {form}"))),
        })
        .collect()
}

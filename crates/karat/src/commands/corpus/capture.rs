//! `karat corpus capture`: the complete tool definitions of live servers, as a snapshot folder.
//!
//! It installs nothing, calls no tool, and starts no server that was not named. Either the folder
//! has every requested server, or is not written, unless `--keep-going` allows less.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::provenance::Stopwatch;
use karat_io::input::write_atomic;
use karat_io::text::{count, printable};
use karat_retrieval::snapshot::capture::{self, Captured, List, Options, Target};
use karat_retrieval::snapshot::lock::Lock;
use karat_retrieval::snapshot::store::{self, Provenance};
use serde_json::json;
use tempfile::TempDir;

use crate::cli::{CaptureArgs, TargetArgs};
use crate::commands::server::target;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

pub(super) fn run(arguments: &CaptureArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let stopwatch = Stopwatch::start();
    // Before any server is started; the writer checks again.
    if arguments.out.read_dir().is_ok_and(|mut files| files.next().is_some()) {
        let out = arguments.out.display();
        return Err(Stop::bad_input(format!(
            "--out {out}: the folder is not empty; use a new one"
        )));
    }
    let scratch = TempDir::with_prefix("karat-capture-")
        .map_err(|error| Stop::bad_input(format!("cannot make a scratch folder: {error}")))?;
    let targets = targets(arguments, scratch.path(), terminal)?;
    let options =
        Options { timeout: arguments.timeout.0, parallel: usize::from(arguments.concurrency) };
    let captured = take(targets, options, terminal)?;
    if let Some(mut why) = not_captured(&captured)
        && (!arguments.keep_going || captured.snapshot.is_empty())
    {
        if !captured.snapshot.is_empty() {
            why.push_str("\nuse --keep-going to write the others");
        }
        return Err(Stop::not_measured(why));
    }
    keep(arguments, &captured, &stopwatch)?;
    show(arguments, &captured, terminal)?;
    Ok(Exit::Pass)
}

/// Captures the targets, and reports each as it ends.
pub(crate) fn take(
    targets: Vec<Target>,
    options: Options,
    terminal: &Terminal,
) -> Result<Captured, Stop> {
    let progress = |name: &str, outcome: Result<usize, &str>| {
        let name = printable(name);
        terminal.say(&match outcome {
            Ok(tools) => format!("{name}: {}", count(tools, "tool")),
            Err(reason) => format!("{name}: failed: {reason}"),
        });
    };
    let capturing = async { Ok(capture::capture(targets, options, progress).await) };
    until_stopped(capturing, "interrupted; nothing was written")
}

fn keep(arguments: &CaptureArgs, captured: &Captured, stopwatch: &Stopwatch) -> Result<(), Stop> {
    let provenance = Provenance {
        schema: store::SCHEMA.to_owned(),
        servers: captured.origins.clone(),
        environment: Some(stopwatch.environment(&[], None)),
    };
    store::write(&arguments.out, &captured.snapshot, &provenance)?;
    if let Some(path) = &arguments.write_lock {
        let lock = Lock::of(&captured.snapshot);
        write_atomic(path, karat_report::json::text(&lock).as_bytes())?;
    }
    Ok(())
}

fn show(arguments: &CaptureArgs, captured: &Captured, terminal: &Terminal) -> Result<(), Stop> {
    let snapshot = &captured.snapshot;
    if terminal.json() {
        return terminal.print_json(&json!({
            "schema": "karat.captured/1",
            "folder": arguments.out.display().to_string(),
            "servers": snapshot.servers.len(),
            "tools": snapshot.len(),
            "failed": captured.failed,
        }));
    }
    let mut text = format!(
        "{}: {}, {}\n",
        printable(&arguments.out.to_string_lossy()),
        count(snapshot.servers.len(), "server"),
        count(snapshot.len(), "tool")
    );
    for (name, reason) in &captured.failed {
        text.push_str(&format!("not captured: {}: {reason}\n", printable(name)));
    }
    terminal.print(&text)
}

/// The servers that failed with their reasons, if any did.
pub(crate) fn not_captured(captured: &Captured) -> Option<String> {
    let failed = &captured.failed;
    let asked = failed.len() + captured.snapshot.servers.len();
    let mut message = format!("servers not captured: {} of {asked}", failed.len());
    for (name, reason) in failed {
        message.push_str(&format!("\n  {}: {reason}", printable(name)));
    }
    (!failed.is_empty()).then_some(message)
}

/// The servers to capture, from the one source that was given.
fn targets(
    arguments: &CaptureArgs,
    scratch: &Path,
    terminal: &Terminal,
) -> Result<Vec<Target>, Stop> {
    if let (Some(list), Some(installed)) = (&arguments.list, &arguments.installed) {
        return listed(list, installed, &arguments.servers, scratch);
    }
    let names = match &arguments.config {
        Some(config) => configured(config, arguments)?,
        None => arguments.servers.iter().cloned().collect(),
    };
    let unnamed = TargetArgs {
        url: arguments.url.clone(),
        config: arguments.config.clone(),
        reach: arguments.reach.clone(),
        command: arguments.command.clone(),
        ..TargetArgs::default()
    };
    if names.is_empty() {
        return Ok(vec![resolved(arguments.name.clone(), &unnamed, terminal)?]);
    }
    let named = names.into_iter().map(|name| {
        let server = TargetArgs { server: Some(name.clone()), ..unnamed.clone() };
        resolved(Some(name), &server, terminal)
    });
    named.collect()
}

fn resolved(
    name: Option<String>,
    server: &TargetArgs,
    terminal: &Terminal,
) -> Result<Target, Stop> {
    let spec = target::needed(server, terminal)?;
    Ok(Target { name, described: spec.describe(), spec, package: None })
}

/// The servers of a list, or those that are wanted.
pub(crate) fn listed(
    list: &Path,
    installed: &Path,
    wanted: &[String],
    scratch: &Path,
) -> Result<Vec<Target>, Stop> {
    let servers = List::read(list)?.server;
    let names = servers.iter().map(|server| server.name.as_str()).collect();
    check_names(list, wanted, &names)?;
    let chosen = servers.iter().filter(|server| wanted.is_empty() || wanted.contains(&server.name));
    // Each server runs in a separate folder, where a relative path would lead elsewhere.
    let installed = std::path::absolute(installed).unwrap_or_else(|_| installed.to_owned());
    let mut targets = Vec::new();
    for (number, server) in chosen.enumerate() {
        let own = |part: &str| -> Result<PathBuf, Stop> {
            let folder = scratch.join(number.to_string()).join(part);
            std::fs::create_dir_all(&folder)
                .map_err(|error| Stop::bad_input(format!("{}: {error}", folder.display())))?;
            Ok(folder)
        };
        targets.push(server.target(&installed, &own("cwd")?, &own("tmp")?));
    }
    Ok(targets)
}

/// The names of the servers of a file that are wanted.
fn configured(config: &Path, arguments: &CaptureArgs) -> Result<BTreeSet<String>, Stop> {
    let servers = karat_mcp::config::read(config)?;
    let names: BTreeSet<&str> = servers.names().collect();
    check_names(config, &arguments.servers, &names)?;
    if arguments.all {
        return Ok(names.into_iter().map(str::to_owned).collect());
    }
    if arguments.servers.is_empty() {
        let names: Vec<&str> = names.into_iter().collect();
        return Err(Stop::bad_input(format!(
            "{}: choose servers with --server NAME or --all; the file has {}",
            config.display(),
            names.join(", ")
        )));
    }
    Ok(arguments.servers.iter().cloned().collect())
}

fn check_names(path: &Path, wanted: &[String], names: &BTreeSet<&str>) -> Result<(), Stop> {
    match wanted.iter().find(|name| !names.contains(name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let names: Vec<&str> = names.iter().copied().collect();
            Err(Stop::bad_input(format!(
                "{}: no server {unknown:?}; the file has {}",
                path.display(),
                names.join(", ")
            )))
        }
    }
}

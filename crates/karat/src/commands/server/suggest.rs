//! `karat server suggest`: a suite from what a live server answers, and `karat server propose`: one case.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use karat_io::input::write_atomic;
use karat_io::text::printable;
use karat_mcp::{Options, ServerSpec};
use karat_server::suggest::{self, Settings, Suggestion};
use karat_server::suite::Feature;
use serde_json::{Value, json};

use super::recording::Recording;
use super::{call, probing, target};
use crate::cli::{ProposeArgs, SuggestArgs};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// The time that a call may take while a project is begun.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Prints the suite, or writes it to a file. Without a case that expects an answer, nothing is written.
pub(crate) fn suggest(arguments: &SuggestArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let output = arguments.output.as_deref();
    if let Some(path) = output {
        check_output(path, arguments.force)?;
    }
    let spec = target::needed(&arguments.target, terminal)?;
    let written_server = written(arguments.target.server.as_deref(), &spec);
    let settings = Settings {
        known: probing::known(&arguments.set)?,
        tools: arguments.tool.clone(),
        written_server: written_server.clone(),
    };
    let recording = Recording::begin(&arguments.record)?;
    let options = recording.options(arguments.times.limits().options());
    say_isolation(&spec, terminal);
    let work = async { Ok(suggest::suggest(&spec, &options, &settings).await?) };
    let found = recording.finish(until_stopped(work, "interrupted; no suite was written"))?;
    target::say_remarks(terminal, &options);
    if let Some(path) = output {
        write_atomic(path, found.text.as_bytes())?;
    }
    if terminal.json() {
        terminal.print_json(&json!({
            "schema": "karat.suggestion/1",
            "file": output.map(|path| path.display().to_string()),
            "suite": found.text,
            "cases": found.cases,
            "tools": found.tools,
            "read_only": found.read_only,
            "covered": found.covered,
            "resources": found.resources,
            "prompts": found.prompts,
            "left_out": found.left_out,
            "notes": found.notes,
        }))?;
        return Ok(Exit::Pass);
    }
    if output.is_none() {
        terminal.print(&found.text)?;
    }
    terminal.say(&described(&found));
    if let Some(path) = output {
        let server = if written_server.is_some() { "" } else { " with the same server" };
        let path = path.display();
        terminal.say(&format!(
            "written to {path}; review the cases, then run: karat server test {path}{server}"
        ));
    }
    Ok(Exit::Pass)
}

/// A server without isolation can use its user's files: package runners have their caches there.
fn say_isolation(spec: &ServerSpec, terminal: &Terminal) {
    if spec.command.is_some() && spec.isolate.is_none() {
        terminal.say(
            "the server runs with your rights, because package runners and servers with data need your files; \
             only read-only tools are called; --isolate bwrap runs it in a sandbox",
        );
    }
}

/// Prints a case for one request.
pub(crate) fn propose(arguments: &ProposeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let named = (&arguments.tool, &arguments.resource, &arguments.prompt);
    let (feature, name) = match named {
        (Some(name), _, _) => (Feature::Tool, name),
        (_, Some(uri), _) => (Feature::Resource, uri),
        (_, _, Some(name)) => (Feature::Prompt, name),
        (None, None, None) => {
            return Err(Stop::bad_input("one of --tool, --resource and --prompt is required"));
        }
    };
    let input = call::read(&arguments.input)?;
    let spec = target::needed(&arguments.target, terminal)?;
    let options = arguments.times.limits().options();
    let allowed = arguments.allow_destructive;
    let work =
        async { Ok(suggest::propose(&spec, &options, feature, name, input, allowed).await?) };
    let text = until_stopped(work, "interrupted")?;
    target::say_remarks(terminal, &options);
    terminal.print(&text)?;
    Ok(Exit::Pass)
}

/// The suite for a server of a new project in this folder.
pub(crate) fn of_server(spec: &ServerSpec, folder: &Path) -> Result<Suggestion, Stop> {
    let options = Options {
        call_timeout: CALL_TIMEOUT,
        folder: Some(folder.to_owned()),
        ..Options::default()
    };
    let work = async { Ok(suggest::suggest(spec, &options, &Settings::default()).await?) };
    until_stopped(work, "interrupted")
}

/// A file for a suite: YAML, and not there yet.
pub(super) fn check_output(path: &Path, force: bool) -> Result<(), Stop> {
    if path.symlink_metadata().is_ok() && !force {
        let path = path.display();
        return Err(Stop::bad_input(format!("{path} already exists; replace it with --force")));
    }
    let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    match is_yaml {
        true => Ok(()),
        false => {
            Err(Stop::bad_input("--output: the suite is YAML; use an extension such as suite.yaml"))
        }
    }
}

/// The server as the suite can name it: nothing that may be secret is written down.
fn written(name: Option<&str>, spec: &ServerSpec) -> Option<Value> {
    if let Some(name) = name {
        return Some(json!(name));
    }
    let plain = spec.env.is_empty() && spec.headers.is_empty() && spec.written_secret().is_none();
    if !plain {
        return None;
    }
    let mut fields = serde_json::to_value(spec).ok()?;
    fields
        .as_object_mut()?
        .retain(|key, _| ["command", "url", "transport", "cwd"].contains(&key.as_str()));
    Some(fields)
}

/// The counts of a suite on one line.
pub(crate) fn counts(found: &Suggestion) -> String {
    let Suggestion { cases, tools, read_only, covered, resources, prompts, .. } = found;
    let plural = |count: &usize| if *count == 1 { "" } else { "s" };
    let mut out = format!(
        "{cases} case{}: {covered} of {read_only} read-only tools are called ({tools} tool{} in all)",
        plural(cases),
        plural(tools)
    );
    for (count, what) in [(resources, "resource"), (prompts, "prompt")] {
        match count {
            0 => {}
            1 => _ = write!(out, ", 1 {what}"),
            n => _ = write!(out, ", {n} {what}s"),
        }
    }
    out
}

fn described(found: &Suggestion) -> String {
    let mut out = counts(found);
    for (tool, why) in &found.left_out {
        let _ = write!(out, "\nno case: {}: {}", printable(tool), printable(why));
    }
    for note in &found.notes {
        let _ = write!(out, "\nnote: {}", printable(note));
    }
    out
}

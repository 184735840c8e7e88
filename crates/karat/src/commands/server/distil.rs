//! `karat server record`: a proxy that records real use, and `karat server distil`: a suite of it.

use std::fmt::Write as _;
use std::time::Duration;

use karat_io::input::write_atomic;
use karat_io::text::printable;
use karat_mcp::{Options, Recorder, proxy};
use karat_server::distil::{self, Distilled};
use serde_json::json;

use super::{suggest, target};
use crate::cli::{DistilArgs, ServerRecordArgs};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// The time that a server at an address has for the answer to a client.
const CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// Passes messages on until the client or the server ends. Stdout belongs to the client.
pub(crate) fn record(arguments: &ServerRecordArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let path = &arguments.output;
    if path.symlink_metadata().is_ok() && !arguments.force {
        let path = path.display();
        return Err(Stop::bad_input(format!("{path} already exists; replace it with --force")));
    }
    let spec = target::needed(&arguments.target, terminal)?;
    let wrong = |error: &std::io::Error| {
        Stop::bad_input(format!("{}: cannot write: {error}", path.display()))
    };
    let recorder = Recorder::create(path).map_err(|error| wrong(&error))?.without_private();
    let options = Options {
        recorder: Some(recorder.clone()),
        call_timeout: CALL_TIMEOUT,
        ..Options::default()
    };
    let work = async { proxy::over_stdio(&spec, &options).await.map_err(target::not_started) };
    let ended = until_stopped(work, "interrupted; the recording ends here");
    let is_silent = recorder.discard_if_silent();
    let written = recorder.finish().map_err(|error| wrong(&error));
    let how = ended?;
    if is_silent {
        return Err(Stop::not_measured(format!(
            "the server sent nothing; {} was not written: {how}",
            path.display()
        )));
    }
    written?;
    terminal.say(&printable(&format!("{}: {how}", path.display())));
    Ok(Exit::Pass)
}

/// Prints the suite, or writes it to a file.
pub(crate) fn distil(arguments: &DistilArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let output = arguments.output.as_deref();
    if let Some(path) = output {
        suggest::check_output(path, arguments.force)?;
    }
    let spec = target::spec(&arguments.target, terminal)?;
    if spec.is_none() {
        target::refuse_options(&arguments.target)?;
    }
    let options = Options::default();
    let work = async {
        let server = spec.as_ref().map(|spec| (spec, &options));
        Ok(distil::distil(&arguments.recording, arguments.allow_destructive, server).await?)
    };
    let found = until_stopped(work, "interrupted; no suite was written")?;
    if let Some(path) = output {
        write_atomic(path, found.text.as_bytes())?;
    }
    let Distilled { text, calls, cases, left_out } = &found;
    if terminal.json() {
        terminal.print_json(&json!({
            "schema": "karat.distilled/1",
            "file": output.map(|path| path.display().to_string()),
            "suite": text,
            "calls": calls,
            "cases": cases,
            "left_out": left_out,
        }))?;
        return Ok(Exit::Pass);
    }
    if output.is_none() {
        terminal.print(text)?;
    }
    let mut said = format!("{calls} recorded calls became {cases} cases");
    for (name, why) in left_out {
        let _ = write!(said, "\nno case: {}: {}", printable(name), printable(why));
    }
    terminal.say(&said);
    Ok(Exit::Pass)
}

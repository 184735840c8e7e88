//! `karat server call`: one call, its result as it was on the wire but for the secrets of the server.
//! Replays a finding.

use std::path::Path;

use karat_io::input::{self, Limits};
use karat_mcp::{CallError, Session};
use serde_json::{Map, Value};

use super::recording::Recording;
use super::target;
use crate::cli::CallArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// Makes the call and prints its answer. A result with `isError` and a protocol error are answers too;
/// exit code 3 means that there was none.
pub(crate) fn call(arguments: &CallArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let input = read(&arguments.input)?;
    let spec = target::needed(&arguments.target, terminal)?;
    let recording = Recording::begin(&arguments.record)?;
    let options = recording.options(arguments.times.limits().options());
    let called = async {
        let session = Session::start(&spec, &options).await.map_err(target::not_started)?;
        let mut called = session.call(&arguments.tool, &input).await;
        match &mut called {
            Ok(reply) => session.redactor().hide_in(&mut reply.raw),
            Err(CallError::Protocol { data: Some(data), .. }) => session.redactor().hide_in(data),
            Err(_) => {}
        }
        if !called.as_ref().is_err_and(CallError::is_lost) {
            session.close().await;
        }
        Ok(called)
    };
    let called = recording.finish(until_stopped(called, "interrupted"))?;
    target::say_remarks(terminal, &options);
    match called {
        Ok(reply) => {
            terminal.print_json(&reply.raw)?;
            Ok(Exit::Pass)
        }
        Err(CallError::Protocol { code, message, data }) => {
            terminal.print_json(&serde_json::json!({
                "error": {"code": code, "message": message, "data": data},
            }))?;
            Ok(Exit::Pass)
        }
        Err(error) => Err(Stop::not_measured(error)),
    }
}

/// Arguments as JSON, or from a file.
pub(super) fn read(written: &str) -> Result<Map<String, Value>, Stop> {
    let value: Value = match written.strip_prefix('@') {
        Some(path) => input::load(Path::new(path), &Limits::default())?,
        None => input::parse_json("--input", written.as_bytes()).map_err(|error| {
            Stop::bad_input(format!(
                "{error}; to read the arguments from a file, use --input @FILE"
            ))
        })?,
    };
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(Stop::bad_input("--input: expected a JSON object")),
    }
}

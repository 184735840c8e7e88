//! A proxy between a client and a server that records what they say.
//!
//! The client speaks over stdin and stdout of this process. A server that is a program gets every byte as it
//! is, in both directions. For a server at an address, Karat is the client: requests are passed on by their
//! method and parameters, and what the server sends by itself is recorded but not passed on. The recording has
//! a limit ([`crate::Recorder`]); beyond it the session goes on without it.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use karat_io::process::{Process, Program};
use karat_io::task;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{Receiver, channel};

use crate::error::{CallError, StartError};
use crate::isolate;
use crate::record::Side;
use crate::session::{Options, Session};
use crate::spec::{ServerSpec, Target};
use crate::wire::{self, Incoming};

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// Chunks that wait for the server.
const WAITING: usize = 64;
/// The longest line that is recorded, in bytes.
const MAX_LINE_BYTES: usize = 32 << 20;
/// The time that the server has to end once the client is gone.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time that the server has after it was asked to end.
const GRACE: Duration = Duration::from_secs(2);

/// Passes messages between stdin and stdout of this process and a server until one of them ends. Returns
/// how the server ended.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::path::Path;
///
/// use karat_mcp::{Options, Recorder, ServerSpec, proxy};
///
/// // Written as the command of a server in the configuration of a client, this records what they say.
/// let recorder = Recorder::create(Path::new("session.jsonl"))?;
/// let options = Options { recorder: Some(recorder.clone()), ..Options::default() };
/// let spec = ServerSpec::from_command(vec!["my-server".to_owned()]);
/// let ended = proxy::over_stdio(&spec, &options).await?;
/// recorder.finish()?;
/// eprintln!("my-server {ended}");
/// # Ok(()) }
/// ```
///
/// # Errors
/// If the server does not start.
pub async fn over_stdio(spec: &ServerSpec, options: &Options) -> Result<String, StartError> {
    let Some(recorder) = &options.recorder else {
        return Err(StartError::Spec { why: "a proxy needs a recorder".to_owned() });
    };
    let resolved = spec.resolve(options.folder.as_deref())?;
    let described = resolved.redactor.hidden(spec.describe());
    let Target::Stdio { command, env, folder, isolate } = resolved.target else {
        return bridge(spec, options).await;
    };
    let isolate = isolate.as_ref();
    isolate::check_folder(isolate, folder.as_deref())?;
    let program = Program { command, env, folder, ..Program::default() };
    let launch = isolate::launch(isolate, program, spec.cwd.is_some()).await?;
    let (mut process, mut server_input, mut server_output) = Process::spawn(&launch.program)
        .map_err(|why| StartError::NotStarted { why: resolved.redactor.hidden(why) })?;
    let track = Arc::new(recorder.track(&described));
    let (group, redactor) = (process.group(), Arc::new(resolved.redactor));

    let mut from_client = standard_input();
    let (sent, hidden) = (Arc::clone(&track), Arc::clone(&redactor));
    let to_server = task::spawn(async move {
        let mut lines = Lines::default();
        while let Some(chunk) = from_client.recv().await {
            lines.take(&chunk, |line| sent.message(Side::Client, line, &hidden));
            let written = server_input.write_all(&chunk).await;
            if written.is_err() || server_input.flush().await.is_err() {
                break;
            }
        }
    });
    let (received, hidden) = (Arc::clone(&track), Arc::clone(&redactor));
    let mut to_client = task::spawn(async move {
        let mut lines = Lines::default();
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = server_output.read(&mut chunk).await {
            lines.take(&chunk[..count], |line| received.message(Side::Server, line, &hidden));
            if !written_out(&chunk[..count]) {
                break;
            }
        }
        lines.rest(|line| received.message(Side::Server, line, &hidden));
    });
    // The input of the server ends with that of the client, and then the server should.
    let client_gone = async {
        let _ = to_server.await;
        tokio::time::sleep(PATIENCE).await;
    };
    let ended = tokio::select! {
        _ = process.ended() => true,
        () = client_gone => false,
    };
    if !ended {
        group.terminate();
        if tokio::time::timeout(GRACE, process.ended()).await.is_err() {
            group.kill();
        }
    }
    // What it wrote last may not have been read yet.
    let _ = tokio::time::timeout(GRACE, &mut to_client).await;
    to_client.abort();
    let how = redactor.hidden(process.describe_exit().await);
    track.ended(&how);
    Ok(how)
}

/// Stdin, read by a thread of its own: a read that never returns must not hold the end of this process.
fn standard_input() -> Receiver<Vec<u8>> {
    let (send, receive) = channel(WAITING);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = input.read(&mut chunk) {
            if send.blocking_send(chunk[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receive
}

fn written_out(bytes: &[u8]) -> bool {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).is_ok()
}

/// The lines in chunks of bytes. One that is too long is left out.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
    too_long: bool,
}

impl Lines {
    fn take(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.too_long |= self.begun.len() + part.len() > MAX_LINE_BYTES;
            if self.too_long {
                self.begun.clear();
            } else {
                self.begun.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                self.rest(&mut each);
            }
        }
    }

    fn rest(&mut self, mut each: impl FnMut(&[u8])) {
        let line = self.begun.trim_ascii();
        if self.too_long {
            each(b"(a line that is too long to be recorded)");
        } else if !line.is_empty() {
            each(line);
        }
        self.begun.clear();
        self.too_long = false;
    }
}

/// Passes the requests of a client on to a server at an address.
async fn bridge(spec: &ServerSpec, options: &Options) -> Result<String, StartError> {
    let session = Arc::new(Session::start(spec, options).await?);
    let mut from_client = standard_input();
    let mut lines = Lines::default();
    let mut under_way = tokio::task::JoinSet::new();
    while let Some(chunk) = from_client.recv().await {
        let mut messages = Vec::new();
        lines.take(&chunk, |line| messages.extend(wire::read(line, &options.limits).messages));
        for message in messages.into_iter().flatten() {
            match message {
                Incoming::Request { id, method, params } => {
                    let session = Arc::clone(&session);
                    under_way.spawn(async move {
                        let answer = passed_on(&session, &id, &method, params).await;
                        let mut bytes = wire::bytes(&answer);
                        bytes.push(b'\n');
                        written_out(&bytes)
                    });
                }
                Incoming::Notification { method, .. } if method == "notifications/initialized" => {}
                Incoming::Notification { method, params } => {
                    let _ = session.notify(&method, Some(&params)).await;
                }
                Incoming::Answer { .. } => {}
            }
        }
    }
    while under_way.join_next().await.is_some() {}
    if let Some(session) = Arc::into_inner(session) {
        session.close().await;
    }
    Ok("the client closed its output".to_owned())
}

/// The answer of the server to a request of the client.
async fn passed_on(session: &Session, id: &Value, method: &str, params: Value) -> Value {
    let params = match params {
        Value::Object(params) => params,
        _ => Map::new(),
    };
    let outcome = match method {
        "initialize" => Ok(introduction(session, &params)),
        "ping" => Ok(json!({})),
        _ => session.request(method, &params).await,
    };
    let error = match outcome {
        Ok(result) => return json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(CallError::Protocol { code, message, data }) => match data {
            Some(data) => json!({"code": code, "message": message, "data": data}),
            None => json!({"code": code, "message": message}),
        },
        Err(error) => json!({"code": -32000, "message": error.to_string()}),
    };
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// The handshake that the server made with Karat, in the revision that the client asked for.
fn introduction(session: &Session, params: &Map<String, Value>) -> Value {
    let info = session.server();
    let own = Value::from(info.revision.name());
    let mut result = json!({
        "protocolVersion": params.get("protocolVersion").unwrap_or(&own),
        "capabilities": info.capabilities,
        "serverInfo": {"name": info.name, "version": info.version},
    });
    if let Some(instructions) = &info.instructions {
        result["instructions"] = Value::from(instructions.as_str());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_from_chunks() {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for chunk in ["{\"a\"", ":1}\r\n\n{}", "\n{\"b\":", "2}"] {
            lines.take(chunk.as_bytes(), |line| {
                found.push(String::from_utf8_lossy(line).into_owned());
            });
        }
        lines.rest(|line| found.push(String::from_utf8_lossy(line).into_owned()));
        assert_eq!(found, ["{\"a\":1}", "{}", "{\"b\":2}"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out() {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let long = vec![b'x'; CHUNK];
        for _ in 0..=MAX_LINE_BYTES / CHUNK {
            lines.take(&long, |line| found.push(line.to_vec()));
        }
        lines.take(b"\n{}\n", |line| found.push(line.to_vec()));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], b"{}");
    }
}

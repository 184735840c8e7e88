//! The server over HTTP: one JSON body per answer, or a stream of events if messages come before it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::output::Output;
use crate::state::Server;
use crate::steps::plain;

/// Maximum size of a request.
const MAX_REQUEST_BYTES: u64 = 64 << 20;

/// The response to one request.
struct Response {
    server: Arc<Server>,
    sent: Mutex<Sent>,
}

struct Sent {
    stream: TcpStream,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Nothing,
    Events,
    Done,
}

impl Response {
    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sent {
    /// Writes bytes. If the client is gone, there is nothing to do.
    fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
    }

    fn chunk(&mut self, bytes: &[u8]) {
        let head = format!("{:x}\r\n", bytes.len());
        self.write(&[head.as_bytes(), bytes, b"\r\n"].concat());
    }

    fn respond(&mut self, status: &str, kind: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 {status}\r\n{kind}content-length: {}\r\n\r\n", body.len());
        self.write(&[head.as_bytes(), body].concat());
        self.state = State::Done;
    }
}

impl Output for Response {
    fn answer(&self, message: &Value) {
        let text = self.server.text(message);
        let mut sent = self.sent();
        match sent.state {
            State::Nothing => {
                sent.respond("200 OK", "content-type: application/json\r\n", text.as_bytes());
            }
            State::Events => {
                sent.chunk(format!("data: {text}\n\n").as_bytes());
                sent.write(b"0\r\n\r\n");
                sent.state = State::Done;
            }
            State::Done => {}
        }
    }

    fn message(&self, message: &Value) {
        let text = self.server.text(message);
        let mut sent = self.sent();
        if sent.state == State::Nothing {
            sent.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                  transfer-encoding: chunked\r\n\r\n",
            );
            sent.state = State::Events;
        }
        if sent.state == State::Events {
            sent.chunk(format!("data: {text}\n\n").as_bytes());
        }
    }

    fn raw(&self, bytes: &[u8]) {
        let mut sent = self.sent();
        sent.write(bytes);
        sent.state = State::Done;
    }

    fn status(&self, status: &str) {
        self.sent().respond(status, "", b"");
    }

    fn close(&self) {
        let mut sent = self.sent();
        sent.state = State::Done;
        let _ = sent.stream.shutdown(Shutdown::Both);
    }
}

/// Serves on a free port until the process is killed.
pub(crate) fn serve(server: &Arc<Server>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot listen: {error}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    println!("http://{}/mcp", listener.local_addr().map_err(failed)?);
    for stream in listener.incoming().flatten() {
        let server = Arc::clone(server);
        std::thread::spawn(move || connection(&server, &stream));
    }
    Ok(())
}

/// Answers the requests of a connection until it ends.
fn connection(server: &Arc<Server>, stream: &TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?.take(u64::MAX));
    loop {
        let Request { is_post, body, is_foreign, params, name } = request(&mut reader)?;
        let sent = Sent { stream: stream.try_clone().ok()?, state: State::Nothing };
        let response = Arc::new(Response { server: Arc::clone(server), sent: Mutex::new(sent) });
        let message: Option<Value> = serde_json::from_slice(&body).ok();
        match message {
            _ if is_foreign && server.script.own_host => response.status("403 Forbidden"),
            _ if !is_post => response.status("405 Method Not Allowed"),
            None => response.status("400 Bad Request"),
            Some(message) if server.script.own_params && !are_arguments(&params, &message) => {
                response.status("400 Bad Request");
            }
            Some(message) if server.script.own_params && !is_named(name.as_ref(), &message) => {
                response.status("400 Bad Request");
            }
            Some(message) if server.take_answer(&message) => response.status("202 Accepted"),
            Some(message) => {
                let output: Arc<dyn Output> = Arc::clone(&response) as _;
                let (call, steps) = server.call(&output, &message, body.len());
                call.run_all(&steps);
                if response.sent().state == State::Nothing {
                    response.status("202 Accepted");
                }
            }
        }
    }
}

struct Request {
    is_post: bool,
    body: Vec<u8>,
    /// True if its `Host` or `Origin` is not on this machine.
    is_foreign: bool,
    /// The values of its `Mcp-Param-…` headers, in lower case.
    params: Vec<String>,
    /// Its `Mcp-Name` header, in lower case.
    name: Option<String>,
}

/// True unless the message is about a task that the `Mcp-Name` header does not name.
fn is_named(name: Option<&String>, message: &Value) -> bool {
    let is_of_task = plain(&message["method"]).starts_with("tasks/");
    !is_of_task || name == Some(&plain(&message["params"]["taskId"]).to_ascii_lowercase())
}

/// True if every value is that of an argument.
fn are_arguments(params: &[String], message: &Value) -> bool {
    let arguments = message.pointer("/params/arguments").and_then(Value::as_object);
    let is_argument = |text: &String| {
        arguments.into_iter().flatten().any(|(_, value)| plain(value).to_ascii_lowercase() == *text)
    };
    params.iter().all(is_argument)
}

/// The next request.
fn request(reader: &mut BufReader<std::io::Take<TcpStream>>) -> Option<Request> {
    reader.get_mut().set_limit(MAX_REQUEST_BYTES);
    let (mut length, mut is_post, mut is_first) = (0_usize, false, true);
    let mut is_foreign = false;
    let (mut params, mut named) = (Vec::new(), None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if std::mem::take(&mut is_first) {
            is_post = line.starts_with("post ");
        }
        if let Some((name, value)) = line.split_once(':')
            && name.starts_with("mcp-param-")
        {
            params.push(value.trim().to_owned());
        }
        if let Some(value) = line.strip_prefix("mcp-name:") {
            named = Some(value.trim().to_owned());
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        let place = line
            .strip_prefix("host:")
            .or_else(|| line.strip_prefix("origin:")?.trim().strip_prefix("http://"));
        is_foreign |= place.is_some_and(|place| !place.trim().starts_with("127.0.0.1"));
        if line.is_empty() {
            break;
        }
    }
    let mut body = Vec::new();
    reader.take(length as u64).read_to_end(&mut body).ok()?;
    (body.len() == length).then_some(Request { is_post, body, is_foreign, params, name: named })
}

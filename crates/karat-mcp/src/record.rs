//! Every message of a session, as lines of JSON.
//!
//! The first line names the format. Each further line has the time since the recorder was made (in
//! nanoseconds of the monotonic clock), the number of the session, and either an event of the session or a
//! message with its sender. Secrets of the spec are removed; output that is not JSON is kept as text. A
//! recording can be served again with [`crate::replay`].
//!
//! A file is begun with the first message of a server, so that one that does not start neither leaves an empty
//! recording behind nor takes the place of an earlier one.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use karat_io::input::open_for_writing;
use karat_io::private;
use karat_io::redact::Redactor;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The name of the format.
pub(crate) const SCHEMA: &str = "karat.recording/1";

/// Records messages. Clones write to the same place, so several sessions can share one.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

/// Maximum size of a recording: what a server says without end must not fill the disk.
const MAX_BYTES: usize = 256 << 20;

struct Shared {
    started: Instant,
    /// True if everything that reads as private is removed, and not only known secrets.
    hides_private: AtomicBool,
    sessions: AtomicU32,
    state: Mutex<State>,
}

/// Bytes before the first message of a server that are held back.
const MAX_HELD: usize = 64 << 10;

struct State {
    out: Box<dyn Write + Send>,
    /// The lines before the first message of a server.
    held: Option<Vec<u8>>,
    written: usize,
    /// The first failure. A recording with holes is useless.
    failed: Option<io::Error>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl PartialEq for Recorder {
    /// True if both write to the same place.
    fn eq(&self, other: &Recorder) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Client,
    Server,
}

#[derive(Serialize)]
struct MessageLine<'a> {
    at_ns: u64,
    session: u32,
    from: Side,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

#[derive(Serialize)]
struct EventLine<'a> {
    at_ns: u64,
    session: u32,
    event: &'static str,
    detail: &'a str,
}

impl Recorder {
    /// Records into a file, which is replaced.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use serde_json::{Value, json};
    /// # use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
    /// # struct Echo;
    /// # impl Respond for Echo {
    /// #     async fn call(&self, _: &Context, _: &str, arguments: &Value) -> Result<Value, ProtocolError> {
    /// #         Ok(json!({"content": [{"type": "text", "text": arguments["text"]}]}))
    /// #     }
    /// # }
    /// # let tools = ["echo", "other"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    /// # let offer = Offer { name: "echo".to_owned(), tools: tools.to_vec(), ..Offer::default() };
    /// # let (client, server) = tokio::io::duplex(1 << 16);
    /// # let (from_client, to_client) = tokio::io::split(server);
    /// # tokio::spawn(serve::over(offer, Echo, from_client, to_client));
    /// # let (read, write) = tokio::io::split(client);
    /// # let folder = tempfile::tempdir()?;
    /// use karat_mcp::{Options, Recorder, Session, replay};
    ///
    /// let path = folder.path().join("session.jsonl");
    /// let recorder = Recorder::create(&path)?;
    /// let options = Options { recorder: Some(recorder.clone()), ..Options::default() };
    /// let session = Session::over(read, write, None, &options).await?;
    /// session.tools().await?;
    /// session.close().await;
    /// recorder.finish()?;
    ///
    /// let (requests, _) = replay::requests(&path)?;
    /// assert_eq!(requests.last().map(|request| request.method.as_str()), Some("tools/list"));
    /// # Ok(()) }
    /// ```
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> io::Result<Recorder> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let is_new = path.symlink_metadata().is_err();
        let file = open_for_writing(path).map_err(|error| match error.source.kind() {
            io::ErrorKind::Other => io::Error::other(error),
            _ => error.source,
        })?;
        // A pipe or device has no length.
        let (path, is_begun) = (path.to_owned(), !file.metadata()?.is_file());
        Ok(Recorder::to(BufWriter::new(LateFile { file, path, is_new, is_begun })))
    }

    /// Records into any writer.
    ///
    /// ```
    /// use std::io::{Read as _, Seek as _};
    ///
    /// use karat_mcp::Recorder;
    ///
    /// let mut file = tempfile::tempfile()?;
    /// Recorder::to(file.try_clone()?).finish()?;
    /// let mut text = String::new();
    /// file.rewind()?;
    /// file.read_to_string(&mut text)?;
    /// assert_eq!(text, "{\"schema\":\"karat.recording/1\"}\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn to(out: impl Write + Send + 'static) -> Recorder {
        let state = State { out: Box::new(out), held: Some(Vec::new()), written: 0, failed: None };
        let shared = Shared {
            started: Instant::now(),
            hides_private: AtomicBool::new(false),
            sessions: AtomicU32::new(0),
            state: state.into(),
        };
        let recorder = Recorder { shared: Arc::new(shared) };
        recorder.write(&serde_json::json!({"schema": SCHEMA}));
        recorder
    }

    /// Removes secrets and personal data too that no configuration names ([`karat_io::private`]).
    #[must_use]
    pub fn without_private(self) -> Recorder {
        self.shared.hides_private.store(true, Ordering::Relaxed);
        self
    }

    /// Flushes the recording.
    ///
    /// ```
    /// use std::io;
    ///
    /// use karat_mcp::Recorder;
    ///
    /// struct Full;
    ///
    /// impl io::Write for Full {
    ///     fn write(&mut self, _: &[u8]) -> io::Result<usize> {
    ///         Err(io::ErrorKind::StorageFull.into())
    ///     }
    ///     fn flush(&mut self) -> io::Result<()> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// assert!(Recorder::to(Full).finish().is_err());
    /// assert!(Recorder::to(io::sink()).finish().is_ok());
    /// ```
    ///
    /// # Errors
    /// If that fails, or if a write failed earlier.
    pub fn finish(&self) -> io::Result<()> {
        let mut state = self.state();
        state.let_go();
        match state.failed.take() {
            Some(error) => Err(error),
            None => state.out.flush(),
        }
    }

    /// Drops a recording in which no server has said anything. Returns whether it was one.
    pub fn discard_if_silent(&self) -> bool {
        let mut state = self.state();
        let is_silent = state.held.take().is_some();
        if is_silent {
            // Nothing may follow without what was before it.
            state.failed = Some(io::Error::other("the recording was aborted"));
        }
        is_silent
    }

    pub(crate) fn track(&self, server: &str) -> Track {
        let session = self.shared.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let track = Track { recorder: self.clone(), session };
        track.event("start", server);
        track
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.shared.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Begins to write what was held back.
    fn begin(&self) {
        self.state().let_go();
    }

    fn write<T: Serialize>(&self, line: &T) {
        let mut bytes = crate::wire::bytes(line);
        bytes.push(b'\n');
        self.state().write(&bytes);
    }
}

impl State {
    fn let_go(&mut self) {
        if let Some(held) = self.held.take() {
            self.write(&held);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let state = self;
        if state.failed.is_some() {
            return;
        }
        if let Some(held) = &mut state.held {
            held.extend_from_slice(bytes);
            if held.len() > MAX_HELD {
                state.let_go();
            }
            return;
        }
        state.written = state.written.saturating_add(bytes.len());
        let written = match state.written > MAX_BYTES {
            false => state.out.write_all(bytes),
            true => Err(io::Error::other(format!(
                "the recording was cut at {} MiB: the server sent too much",
                MAX_BYTES >> 20
            ))),
        };
        state.failed = written.err();
    }
}

/// A file that is emptied by the first write, and removed if it was made for nothing.
struct LateFile {
    file: File,
    path: PathBuf,
    is_new: bool,
    is_begun: bool,
}

impl Write for LateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.is_begun, true) {
            self.file.set_len(0)?;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for LateFile {
    fn drop(&mut self) {
        if self.is_new && !self.is_begun {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// One session in a recording.
pub(crate) struct Track {
    recorder: Recorder,
    session: u32,
}

impl Track {
    pub(crate) fn message(&self, from: Side, bytes: &[u8], redactor: &Redactor) {
        let at_ns = self.recorder.now();
        if from == Side::Server {
            self.recorder.begin();
        }
        let text = String::from_utf8_lossy(bytes);
        let text = match serde_json::from_str::<&RawValue>(&text) {
            Ok(_) => redactor.hide_in_json(&text),
            Err(_) => redactor.hide(&text),
        };
        let text = match self.recorder.shared.hides_private.load(Ordering::Relaxed) {
            true => Cow::Owned(without_private(&text)),
            false => text,
        };
        let line =
            |message, text| MessageLine { at_ns, session: self.session, from, message, text };
        match serde_json::from_str::<&RawValue>(&text) {
            Ok(message) if !text.contains('\n') => self.recorder.write(&line(Some(message), None)),
            Ok(message) => {
                // The body of an HTTP response may have line ends.
                let compact = serde_json::from_str::<Value>(message.get())
                    .and_then(|value| serde_json::value::to_raw_value(&value));
                match compact {
                    Ok(message) => self.recorder.write(&line(Some(&message), None)),
                    Err(_) => self.recorder.write(&line(None, Some(&text))),
                }
            }
            Err(_) => self.recorder.write(&line(None, Some(&text))),
        }
    }

    pub(crate) fn ended(&self, why: &str) {
        self.event("end", why);
    }

    fn event(&self, event: &'static str, detail: &str) {
        let at_ns = self.recorder.now();
        self.recorder.write(&EventLine { at_ns, session: self.session, event, detail });
    }
}

/// A message without what is private in it. Its id and method stay, or it could not be read.
fn without_private(text: &str) -> String {
    let hide = |message: &mut Value| {
        let kept: Vec<(&str, Value)> = ["jsonrpc", "id", "method"]
            .into_iter()
            .filter_map(|key| Some((key, message.get(key)?.clone())))
            .collect();
        private::hide_in(message);
        if let Some(fields) = message.as_object_mut() {
            fields.extend(kept.into_iter().map(|(key, value)| (key.to_owned(), value)));
        }
    };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(mut batch)) => {
            batch.iter_mut().for_each(hide);
            Value::Array(batch).to_string()
        }
        Ok(mut message) => {
            hide(&mut message);
            message.to_string()
        }
        Err(_) => private::hide("", text).into_owned(),
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        // `finish` reports a failure.
        let mut state = self.recorder.state();
        if state.failed.is_none()
            && let Err(error) = state.out.flush()
        {
            state.failed = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;

    #[test]
    fn a_recording_is_cut_at_its_limit_and_says_so() {
        let recorder = Recorder::to(io::sink());
        let track = recorder.track("server");
        // With the first message, what was held back is written too.
        track.message(Side::Server, b"0", &Redactor::default());
        recorder.state().written = MAX_BYTES - 100;
        track.message(Side::Server, b"1", &Redactor::default());
        assert!(recorder.state().failed.is_none());
        for _ in 0..3 {
            track.message(Side::Server, b"[1, 2, 3]", &Redactor::default());
        }
        let error = recorder.finish().unwrap_err().to_string();
        assert!(error.contains("cut at 256 MiB"), "{error}");
    }
}

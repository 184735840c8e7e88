//! Messages as lines: over stdin and stdout of a child process, or over any pair of streams.
//!
//! One task reads and one writes. A line beyond the limit is skipped without being kept. The end of a
//! process is noticed even if another process holds its output open.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_io::process::{Group, Process, Program, StderrTail};
use karat_io::task;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinHandle;

use crate::error::{CallError, StartError, quoted};
use crate::outbox::{Outbox, PushError};
use crate::pending_calls::PendingCalls;

/// Bytes that may wait for a server that does not read.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Time to read the rest of a process's output if another process holds it open.
const LAST_OUTPUT: Duration = Duration::from_millis(500);
/// Bytes that are kept of a line that is skipped.
const KEPT_BYTES: usize = 4 << 10;

/// A transport over lines.
pub(crate) struct StdioLink {
    outbox: Arc<Outbox>,
    group: Option<Arc<Group>>,
    stderr: Option<StderrTail>,
    reader: JoinHandle<String>,
    writer: JoinHandle<()>,
    calls: Arc<PendingCalls>,
}

impl StdioLink {
    /// Starts a child process.
    pub(crate) fn start(
        program: &Program,
        calls: &Arc<PendingCalls>,
    ) -> Result<StdioLink, StartError> {
        let (process, stdin, stdout) = Process::spawn(program)
            .map_err(|why| StartError::NotStarted { why: calls.redactor.hidden(why) })?;
        let outbox = Outbox::new(MAX_WAITING_BYTES);
        let (group, stderr) = (process.group(), process.stderr_tail());
        let writer = spawn_writer(&outbox, stdin);
        let reader =
            task::spawn(supervise(process, stdout, Arc::clone(calls), Arc::clone(&outbox)));
        let calls = Arc::clone(calls);
        Ok(StdioLink { outbox, group: Some(group), stderr: Some(stderr), reader, writer, calls })
    }

    /// Uses streams that are open already.
    pub(crate) fn over<R, W>(read: R, write: W, calls: &Arc<PendingCalls>) -> StdioLink
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let outbox = Outbox::new(MAX_WAITING_BYTES);
        let writer = spawn_writer(&outbox, write);
        let (pending, replies) = (Arc::clone(calls), Arc::clone(&outbox));
        let reader = task::spawn(async move {
            let how = format!("it closed the stream{}", read_lines(read, &pending, &replies).await);
            finish(&pending, &replies, &how);
            how
        });
        let calls = Arc::clone(calls);
        StdioLink { outbox, group: None, stderr: None, reader, writer, calls }
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: &[u8]) -> Result<(), CallError> {
        self.calls.sent(message);
        self.outbox.push(message).map_err(|error| match error {
            PushError::Full { waiting } => CallError::Transport {
                why: format!("the server does not read its input: {waiting} bytes wait"),
            },
            PushError::Closed => CallError::Closed { why: "it closed its input".to_owned() },
        })
    }

    /// The end of the server's stderr.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.as_ref().map(StderrTail::text).unwrap_or_default()
    }

    /// Closes the input, waits, sends SIGTERM, and at last kills. Returns a description and the stderr.
    pub(crate) async fn close(mut self, patience: Duration, grace: Duration) -> (String, String) {
        self.outbox.close();
        let how = match tokio::time::timeout(patience, &mut self.reader).await {
            Ok(how) => how.unwrap_or_else(|error| error.to_string()),
            Err(_) => self.terminate(grace).await,
        };
        (how, self.stderr())
    }

    async fn terminate(&mut self, grace: Duration) -> String {
        let Some(group) = &self.group else { return "it did not close the stream".to_owned() };
        group.terminate();
        match tokio::time::timeout(grace, &mut self.reader).await {
            Ok(how) => format!("after SIGTERM, {}", how.unwrap_or_else(|error| error.to_string())),
            Err(_) => "it did not exit and was killed".to_owned(),
        }
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        // At once, not when the tasks are dropped, which the runtime may never do.
        if let Some(group) = &self.group {
            group.kill();
        }
        self.reader.abort();
        self.writer.abort();
    }
}

fn spawn_writer<W: AsyncWrite + Unpin + Send + 'static>(
    outbox: &Arc<Outbox>,
    to: W,
) -> JoinHandle<()> {
    let outbox = Arc::clone(outbox);
    task::spawn(async move { outbox.drain(to).await })
}

fn finish(calls: &PendingCalls, outbox: &Outbox, how: &str) {
    outbox.close();
    calls.end(&CallError::Closed { why: how.to_owned() });
}

async fn supervise<R: AsyncRead + Unpin>(
    mut process: Process,
    stdout: R,
    calls: Arc<PendingCalls>,
    outbox: Arc<Outbox>,
) -> String {
    let reading = read_lines(stdout, &calls, &outbox);
    tokio::pin!(reading);
    let remark = tokio::select! {
        remark = &mut reading => remark,
        _ = process.ended() => {
            tokio::time::timeout(LAST_OUTPUT, &mut reading).await.unwrap_or_default()
        }
    };
    let how = format!("{}{remark}", process.describe_exit().await);
    let how = quoted(&calls.redactor.hide(&how));
    finish(&calls, &outbox, &how);
    how
}

/// Reads lines until the stream ends. Returns a remark on its end.
async fn read_lines<R: AsyncRead + Unpin>(
    mut from: R,
    calls: &PendingCalls,
    outbox: &Outbox,
) -> String {
    let limit = calls.limits.message_bytes;
    let mut buffer: Vec<u8> = Vec::with_capacity(64 << 10);
    let mut searched = 0;
    loop {
        buffer.reserve(16 << 10);
        match from.read_buf(&mut buffer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) if buffer.is_empty() => return String::new(),
            Ok(0) | Err(_) => return "; its output ended in the middle of a line".to_owned(),
        }
        let arrived = Instant::now();
        let mut taken = 0;
        while let Some(step) = memchr::memchr(b'\n', &buffer[searched..]) {
            let line = &buffer[taken..searched + step];
            if line.len() > limit {
                calls.oversized(&line[..KEPT_BYTES.min(line.len())], arrived);
            } else {
                take(line, calls, outbox, arrived);
            }
            searched += step + 1;
            taken = searched;
        }
        buffer.drain(..taken);
        searched = buffer.len();
        if searched > limit {
            buffer.truncate(KEPT_BYTES);
            match skip_line(&mut from, calls.limits.line_bytes).await {
                Skipped::Line(rest) => {
                    calls.oversized(&buffer, Instant::now());
                    buffer = rest;
                    searched = 0;
                    // The rest may hold whole lines already.
                    let arrived = Instant::now();
                    while let Some(step) = memchr::memchr(b'\n', &buffer) {
                        take(&buffer[..step], calls, outbox, arrived);
                        buffer.drain(..=step);
                    }
                    searched += buffer.len();
                }
                Skipped::End => {
                    calls.oversized(&buffer, Instant::now());
                    return "; its output ended in the middle of a line".to_owned();
                }
                Skipped::Endless => {
                    calls.oversized(&buffer, Instant::now());
                    return "; it wrote an endless line".to_owned();
                }
            }
        }
        if calls.ended().is_some() {
            return String::new();
        }
    }
}

fn take(line: &[u8], calls: &PendingCalls, outbox: &Outbox, arrived: Instant) {
    let line = line.trim_ascii();
    if line.is_empty() {
        return;
    }
    for reply in calls.receive(line, arrived, None) {
        // If the server is gone, it needs no reply.
        let _ = outbox.push(&reply);
    }
}

enum Skipped {
    /// The line has ended; these bytes follow it.
    Line(Vec<u8>),
    /// The stream has ended.
    End,
    /// The line does not end within the limit.
    Endless,
}

async fn skip_line<R: AsyncRead + Unpin>(from: &mut R, limit: usize) -> Skipped {
    let mut block = vec![0; 64 << 10];
    let mut skipped = 0_usize;
    loop {
        let Ok(read @ 1..) = from.read(&mut block).await else { return Skipped::End };
        if let Some(end) = memchr::memchr(b'\n', &block[..read]) {
            return Skipped::Line(block[end + 1..read].to_vec());
        }
        skipped = skipped.saturating_add(read);
        if skipped > limit {
            return Skipped::Endless;
        }
    }
}

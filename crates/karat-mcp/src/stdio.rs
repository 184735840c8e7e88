//! Messages as lines: over the input and output of a child process, or over any pair of streams.
//!
//! One task reads and one writes. A line beyond the limit is passed over without being kept; a
//! process that ends while something else holds its output open is noticed all the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_io::process::{Group, Process, Program, StderrTail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinHandle;

use crate::board::Board;
use crate::error::{CallError, StartError, quoted};
use crate::outbox::{NotTaken, Outbox};

/// How many bytes may wait for a server that does not read.
const WAITING_AT_MOST: usize = 64 << 20;
/// What a process wrote before its end is waited for this long when something holds its output open.
const LAST_OUTPUT: Duration = Duration::from_millis(500);
/// How much of a line that is passed over is kept.
const START_KEPT: usize = 4 << 10;

/// The way to a server that speaks lines.
pub(crate) struct StdioLink {
    outbox: Arc<Outbox>,
    group: Option<Arc<Group>>,
    stderr: Option<StderrTail>,
    reader: JoinHandle<String>,
    writer: JoinHandle<()>,
    board: Arc<Board>,
}

impl StdioLink {
    /// Starts a child process.
    pub(crate) fn start(program: &Program, board: &Arc<Board>) -> Result<StdioLink, StartError> {
        let (process, stdin, stdout) = Process::spawn(program)
            .map_err(|why| StartError::NotStarted { why: board.redactor.hidden(why) })?;
        let outbox = Outbox::new(WAITING_AT_MOST);
        let (group, stderr) = (process.group(), process.stderr_tail());
        let writer = spawn_writer(&outbox, stdin);
        let reader =
            tokio::spawn(supervise(process, stdout, Arc::clone(board), Arc::clone(&outbox)));
        let board = Arc::clone(board);
        Ok(StdioLink { outbox, group: Some(group), stderr: Some(stderr), reader, writer, board })
    }

    /// Talks over streams that somebody else opened.
    pub(crate) fn over<R, W>(read: R, write: W, board: &Arc<Board>) -> StdioLink
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let outbox = Outbox::new(WAITING_AT_MOST);
        let writer = spawn_writer(&outbox, write);
        let (switch, replies) = (Arc::clone(board), Arc::clone(&outbox));
        let reader = tokio::spawn(async move {
            let how = format!("it closed the stream{}", read_lines(read, &switch, &replies).await);
            finish(&switch, &replies, &how);
            how
        });
        let board = Arc::clone(board);
        StdioLink { outbox, group: None, stderr: None, reader, writer, board }
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: &[u8]) -> Result<(), CallError> {
        self.board.sent(message);
        self.outbox.push(message).map_err(|error| match error {
            NotTaken::Full { waiting } => CallError::Transport {
                why: format!("the server does not read its input: {waiting} bytes wait"),
            },
            NotTaken::Closed => CallError::Closed { why: "it closed its input".to_owned() },
        })
    }

    /// The end of what the server said on stderr.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.as_ref().map(StderrTail::text).unwrap_or_default()
    }

    /// Closes the input, waits, asks, and in the end kills. Says how it ended, and what stderr said.
    pub(crate) async fn close(mut self, patience: Duration, grace: Duration) -> (String, String) {
        self.outbox.close();
        let how = match tokio::time::timeout(patience, &mut self.reader).await {
            Ok(how) => how.unwrap_or_else(|error| error.to_string()),
            Err(_) => self.insist(grace).await,
        };
        (how, self.stderr())
    }

    async fn insist(&mut self, grace: Duration) -> String {
        let Some(group) = &self.group else { return "it did not close the stream".to_owned() };
        group.ask_to_end();
        match tokio::time::timeout(grace, &mut self.reader).await {
            Ok(how) => format!("asked to, {}", how.unwrap_or_else(|error| error.to_string())),
            Err(_) => "it did not end and was killed".to_owned(),
        }
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        // At once, not when the tasks are dropped: the runtime may never come to that.
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
    tokio::spawn(async move { outbox.drain(to).await })
}

fn finish(board: &Board, outbox: &Outbox, how: &str) {
    outbox.close();
    board.end(&CallError::Closed { why: how.to_owned() });
}

async fn supervise<R: AsyncRead + Unpin>(
    mut process: Process,
    stdout: R,
    board: Arc<Board>,
    outbox: Arc<Outbox>,
) -> String {
    let reading = read_lines(stdout, &board, &outbox);
    tokio::pin!(reading);
    let remark = tokio::select! {
        remark = &mut reading => remark,
        _ = process.ended() => {
            tokio::time::timeout(LAST_OUTPUT, &mut reading).await.unwrap_or_default()
        }
    };
    let how = format!("{}{remark}", process.epitaph().await);
    let how = quoted(&board.redactor.hide(&how));
    finish(&board, &outbox, &how);
    how
}

/// Hands every line to the board until the stream ends. What comes back is a remark on how it ended.
async fn read_lines<R: AsyncRead + Unpin>(mut from: R, board: &Board, outbox: &Outbox) -> String {
    let limit = board.limits.message_bytes;
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
                board.oversized(&line[..START_KEPT.min(line.len())], arrived);
            } else {
                take(line, board, outbox, arrived);
            }
            searched += step + 1;
            taken = searched;
        }
        buffer.drain(..taken);
        searched = buffer.len();
        if searched > limit {
            buffer.truncate(START_KEPT);
            match pass_over(&mut from, board.limits.line_bytes).await {
                PassedOver::Line(rest) => {
                    board.oversized(&buffer, Instant::now());
                    buffer = rest;
                    searched = 0;
                    // What follows the line may hold whole lines already.
                    let arrived = Instant::now();
                    while let Some(step) = memchr::memchr(b'\n', &buffer) {
                        take(&buffer[..step], board, outbox, arrived);
                        buffer.drain(..=step);
                    }
                    searched += buffer.len();
                }
                PassedOver::End => {
                    board.oversized(&buffer, Instant::now());
                    return "; its output ended in the middle of a line".to_owned();
                }
                PassedOver::Endless => {
                    board.oversized(&buffer, Instant::now());
                    return "; it wrote a line without end".to_owned();
                }
            }
        }
        if board.ended().is_some() {
            return String::new();
        }
    }
}

fn take(line: &[u8], board: &Board, outbox: &Outbox, arrived: Instant) {
    let line = line.trim_ascii();
    if line.is_empty() {
        return;
    }
    for reply in board.receive(line, arrived, None) {
        // A server that is gone needs no answer.
        let _ = outbox.push(&reply);
    }
}

enum PassedOver {
    /// The line has ended; this followed it.
    Line(Vec<u8>),
    /// The stream has ended.
    End,
    /// The line has not ended.
    Endless,
}

async fn pass_over<R: AsyncRead + Unpin>(from: &mut R, at_most: usize) -> PassedOver {
    let mut block = vec![0; 64 << 10];
    let mut passed = 0_usize;
    loop {
        let Ok(read @ 1..) = from.read(&mut block).await else { return PassedOver::End };
        if let Some(end) = memchr::memchr(b'\n', &block[..read]) {
            return PassedOver::Line(block[end + 1..read].to_vec());
        }
        passed = passed.saturating_add(read);
        if passed > at_most {
            return PassedOver::Endless;
        }
    }
}

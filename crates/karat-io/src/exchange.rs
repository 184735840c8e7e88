//! Requests and answers as JSON lines, with a program that is kept running.
//!
//! Answers may come in any order and are matched by their id. The adapter reads the lines; this module
//! matches them to requests, rejects lines that are not answers, and fails what is still waiting when
//! the program is gone.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::process::ChildStdin;
use tokio::sync::oneshot;

use crate::failure::{Failure, FailureClass};
use crate::process::{Line, Process, Program, write_line};
use crate::redact::Redactor;
use crate::task;
use crate::text::{clip, printable};

/// Columns of a bad line that a message quotes.
const QUOTED: usize = 120;

/// The answer to one request.
pub type Reply<A> = Result<A, Failure>;

/// Reads one line: the id that it answers and the reply, or the reason why it is not an answer.
pub type Read<A> = fn(&str) -> Result<(String, Reply<A>), String>;

/// A bad line or value as messages quote it: printable and short.
pub fn quoted(text: &str) -> String {
    clip(&printable(text), QUOTED).into_owned()
}

/// The requests without an answer. Answers are matched by id, the oldest request first.
struct Waiting<A> {
    by_id: HashMap<String, VecDeque<oneshot::Sender<Reply<A>>>>,
    order: VecDeque<String>,
    /// Every id that was ever sent: an answer to another one is a mistake, not a late answer.
    asked: HashSet<String>,
    /// The reason why no more answers will come.
    closed: Option<String>,
}

impl<A> Waiting<A> {
    fn answer(&mut self, id: &str, mut reply: Reply<A>) {
        if !self.asked.contains(id) {
            return self.reject(format!("it answered the unknown id {}", quoted(id)));
        }
        // An answer without a waiting request came too late: the request timed out.
        if let Some(queue) = self.by_id.get_mut(id) {
            while let Some(sender) = queue.pop_front() {
                match sender.send(reply) {
                    Ok(()) => break,
                    Err(unwanted) => reply = unwanted,
                }
            }
            if queue.is_empty() {
                self.by_id.remove(id);
            }
        }
        if let Some(at) = self.order.iter().position(|waiting| waiting == id) {
            self.order.remove(at);
        }
    }

    /// A line without an id fails the oldest request.
    fn reject(&mut self, message: String) {
        if let Some(id) = self.order.front().cloned() {
            self.answer(&id, Err(Failure::new(FailureClass::InvalidAnswer, message)));
        }
    }

    fn close(&mut self, reason: String) {
        self.closed = Some(reason);
        // Dropping the senders wakes every waiting request.
        self.by_id.clear();
    }
}

/// A running program that answers lines; killed with its children on drop.
///
/// ```
/// use karat_io::exchange::Exchange;
/// use karat_io::process::Program;
/// use karat_io::redact::Redactor;
/// use serde_json::{Value, json};
///
/// # if !cfg!(unix) { return Ok(()); }
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// // A program that answers every question with the question itself.
/// let program = Program { command: vec!["cat".to_owned()], ..Program::default() };
/// let exchange = Exchange::start(&program, Redactor::default(), |line| {
///     let answer: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
///     Ok((answer["id"].as_str().ok_or("no id")?.to_owned(), Ok(answer)))
/// })?;
/// let question = json!({"id": "q1", "text": "hello"});
/// let reply = exchange.ask("q1", &question).await.map_err(|failure| failure.message)?;
/// assert_eq!(reply, question);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exchange<A> {
    stdin: tokio::sync::Mutex<ChildStdin>,
    waiting: Arc<Mutex<Waiting<A>>>,
    reader: tokio::task::JoinHandle<()>,
    redactor: Redactor,
}

impl<A: Send + 'static> Exchange<A> {
    /// Starts the program without sending anything. No failure shows what `redactor` hides.
    pub fn start(
        program: &Program,
        redactor: Redactor,
        read: Read<A>,
    ) -> Result<Exchange<A>, String> {
        let (mut process, stdin, mut lines) = Process::start(program)?;
        let waiting = Arc::new(Mutex::new(Waiting {
            by_id: HashMap::new(),
            order: VecDeque::new(),
            asked: HashSet::new(),
            closed: None,
        }));
        let shared = Arc::clone(&waiting);
        let reader = task::spawn(async move {
            let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
            let reason = loop {
                match lines.next().await {
                    Line::Text(line) if line.trim().is_empty() => {}
                    // A list would be read as the fields of an answer, one after the other.
                    Line::Text(line) if line.trim_start().starts_with('[') => {
                        let expected = "a JSON object with the id of the question is expected";
                        lock().reject(format!("not an answer ({expected}): {}", quoted(&line)));
                    }
                    Line::Text(line) => match read(&line) {
                        Ok((id, reply)) => lock().answer(&id, reply),
                        Err(problem) => {
                            lock().reject(format!("not an answer ({problem}): {}", quoted(&line)));
                        }
                    },
                    Line::NotUtf8 => lock().reject("the answer is not UTF-8".to_owned()),
                    Line::TooLong => break "it wrote a line longer than 16 MiB".to_owned(),
                    Line::End => break process.describe_exit().await,
                }
            };
            lock().close(reason);
        });
        Ok(Exchange { stdin: tokio::sync::Mutex::new(stdin), waiting, reader, redactor })
    }

    /// Sends one request, which must hold the id, and waits for its answer.
    pub async fn ask(&self, id: &str, question: &impl Serialize) -> Reply<A> {
        let reply = self.exchange(id, question).await;
        reply.map_err(|failure| Failure {
            message: self.redactor.hidden(failure.message),
            ..failure
        })
    }

    /// The secrets of the program.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    async fn exchange(&self, id: &str, question: &impl Serialize) -> Reply<A> {
        let line = serde_json::to_string(question).map_err(|error| {
            Failure::lost(format!("the request cannot be written as JSON: {error}"))
        })?;
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if let Some(reason) = &waiting.closed {
                return Err(Failure::lost(reason.clone()));
            }
            waiting.by_id.entry(id.to_owned()).or_default().push_back(sender);
            waiting.order.push_back(id.to_owned());
            waiting.asked.insert(id.to_owned());
        }
        let written = write_line(&mut *self.stdin.lock().await, &line).await;
        match receiver.await {
            Ok(reply) => reply,
            Err(_) => {
                let reason = self.lock().closed.clone();
                let reason = reason.unwrap_or_else(|| match written {
                    Err(error) => format!("cannot write to its input: {error}"),
                    Ok(()) => "it exited".to_owned(),
                });
                Err(Failure::lost(reason))
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting<A>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> Drop for Exchange<A> {
    fn drop(&mut self) {
        // The reader owns the process; ending it kills the program and its children.
        self.reader.abort();
    }
}

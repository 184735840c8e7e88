//! Requests and answers as JSON lines, with a program that is kept running.
//!
//! Answers may come in any order and are matched by their id, and by `run` where an answer repeats that of
//! its question. A question that timed out keeps its place: the answer that comes too late is its own, not
//! that of the next question with the id. The adapter reads the lines; this module matches them to
//! requests, rejects lines that are not answers, and fails the waiting questions when the program exits.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
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

/// The run that a question or an answer names.
#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    run: Option<u64>,
}

fn run_of(line: &str) -> Option<u64> {
    serde_json::from_str::<Run>(line).ok()?.run
}

/// A request without an answer. Without a sender, or if no task listens to it, its answer is not wanted.
struct Pending<A> {
    run: Option<u64>,
    sender: Option<oneshot::Sender<Reply<A>>>,
}

impl<A> Pending<A> {
    fn is_wanted(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }
}

/// The requests without an answer. Answers are matched by id and run, the oldest request first.
struct Waiting<A> {
    by_id: HashMap<String, VecDeque<Pending<A>>>,
    order: VecDeque<String>,
    /// Every id that was ever sent, with its runs: an answer to another one is a mistake, not a late answer.
    asked: HashMap<String, BTreeSet<u64>>,
    /// The reason why no more answers will come.
    closed: Option<String>,
}

impl<A> Default for Waiting<A> {
    fn default() -> Waiting<A> {
        Waiting {
            by_id: HashMap::new(),
            order: VecDeque::new(),
            asked: HashMap::new(),
            closed: None,
        }
    }
}

impl<A> Waiting<A> {
    fn ask(&mut self, id: &str, run: Option<u64>) -> oneshot::Receiver<Reply<A>> {
        let (sender, receiver) = oneshot::channel();
        let pending = Pending { run, sender: Some(sender) };
        self.by_id.entry(id.to_owned()).or_default().push_back(pending);
        self.order.push_back(id.to_owned());
        self.asked.entry(id.to_owned()).or_default().extend(run);
        receiver
    }

    /// Gives the reply to the request that it answers. `named` is the run that the answer names.
    fn answer(&mut self, id: &str, named: impl FnOnce() -> Option<u64>, reply: Reply<A>) {
        let Some(runs) = self.asked.get(id) else {
            return self.reject(format!("it answered the unknown id {}", quoted(id)));
        };
        // An answer without a request was given before: the program repeats itself.
        let Some(queue) = self.by_id.get_mut(id) else { return };
        let named = if runs.len() > 1 { named() } else { None };
        let place = match named.filter(|run| runs.contains(run)) {
            Some(run) => queue.iter().position(|pending| pending.run == Some(run)),
            None => Some(0),
        };
        let Some(run) = place.and_then(|place| Some(queue.get(place)?.run)) else { return };
        // Of several attempts at one run, the answer to the first will do for the second, whose own answer
        // then takes the place that is left.
        let mut attempts = queue.iter_mut().filter(|pending| pending.run == run);
        let wanted = attempts.find(|pending| pending.is_wanted());
        if let Some(sender) = wanted.and_then(|pending| pending.sender.take()) {
            // Refused only if the request timed out just now.
            let _ = sender.send(reply);
        }
        if let Some(place) = place {
            queue.remove(place);
        }
        if queue.is_empty() {
            self.by_id.remove(id);
        }
        if let Some(at) = self.order.iter().position(|waiting| waiting == id) {
            self.order.remove(at);
        }
    }

    /// A line without an id fails the oldest request.
    fn reject(&mut self, message: String) {
        if let Some(id) = self.order.front().cloned() {
            self.answer(&id, || None, Err(Failure::new(FailureClass::InvalidAnswer, message)));
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
        let waiting = Arc::new(Mutex::new(Waiting::default()));
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
                        Ok((id, reply)) => lock().answer(&id, || run_of(&line), reply),
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

    /// Sends one request, which must hold the id, and waits for its answer. If it is sent again, `run` in it
    /// tells the answers apart.
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
        let receiver = {
            let mut waiting = self.lock();
            if let Some(reason) = &waiting.closed {
                return Err(Failure::lost(reason.clone()));
            }
            waiting.ask(id, run_of(&line))
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    type Receiver = oneshot::Receiver<Reply<u32>>;

    /// The answer that a request has by now.
    fn now(receiver: &mut Receiver) -> Option<u32> {
        receiver.try_recv().ok().map(|reply| reply.unwrap())
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_given_to_a_later_run() {
        let mut waiting = Waiting::default();
        drop(waiting.ask("q", Some(0)));
        let mut second = waiting.ask("q", Some(1));
        waiting.answer("q", || None, Ok(10));
        assert_eq!(now(&mut second), None, "run 1 has the answer to run 0");
        waiting.answer("q", || None, Ok(11));
        assert_eq!(now(&mut second), Some(11));
        assert!(waiting.by_id.is_empty() && waiting.order.is_empty());
    }

    #[test]
    fn an_answer_that_names_its_run_is_given_to_it_in_any_order() {
        let mut waiting = Waiting::default();
        drop(waiting.ask("q", Some(0)));
        let (mut second, mut third) = (waiting.ask("q", Some(1)), waiting.ask("q", Some(2)));
        waiting.answer("q", || Some(2), Ok(12));
        waiting.answer("q", || Some(1), Ok(11));
        assert_eq!((now(&mut second), now(&mut third)), (Some(11), Some(12)));
        // Given once more, an answer is dropped, even if another question waits by then.
        let mut fourth = waiting.ask("q", Some(3));
        waiting.answer("q", || Some(2), Ok(12));
        assert_eq!(now(&mut fourth), None);
        waiting.answer("q", || Some(3), Ok(13));
        assert_eq!(now(&mut fourth), Some(13));
    }

    #[test]
    fn a_second_attempt_takes_the_late_answer_to_the_first_and_owes_its_own() {
        let mut waiting = Waiting::default();
        drop(waiting.ask("q", Some(0)));
        let mut again = waiting.ask("q", Some(0));
        waiting.answer("q", || None, Ok(10));
        assert_eq!(now(&mut again), Some(10));
        let mut next = waiting.ask("q", Some(1));
        waiting.answer("q", || None, Ok(10));
        assert_eq!(now(&mut next), None, "run 1 has the second answer to run 0");
        waiting.answer("q", || None, Ok(11));
        assert_eq!(now(&mut next), Some(11));
    }

    #[test]
    fn a_run_that_is_not_a_number_or_was_never_asked_is_not_one() {
        assert_eq!(run_of(r#"{"id": "q", "run": 3}"#), Some(3));
        assert_eq!(run_of(r#"{"id": "q", "run": "third"}"#), None);
        let mut waiting = Waiting::default();
        drop(waiting.ask("p", Some(0)));
        let mut one = waiting.ask("q", Some(0));
        let mut two = waiting.ask("q", Some(1));
        waiting.answer("q", || Some(77), Ok(10));
        waiting.answer("q", || None, Ok(11));
        assert_eq!((now(&mut one), now(&mut two)), (Some(10), Some(11)));
    }
}

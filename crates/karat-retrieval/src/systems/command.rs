//! A program that is kept running and answers lines.
//!
//! In: `{"id": "q-017", "query": "…", "limit": 20, "run": 0}`. Out, in any order:
//! `{"id": "q-017", "ranked": [{"tool_id": "server:tool", "score": 1.5}, …]}` or
//! `{"id": "q-017", "error": "…"}`. Scores are optional; the order of the list is the ranking.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use karat_core::process::{Line, Process, Program, write_line};
use karat_core::run::{Failure, FailureClass};
use karat_core::text::{clip, printable};
use serde::{Deserialize, Serialize};
use tokio::process::ChildStdin;
use tokio::sync::oneshot;

use crate::system::{Question, Ranked, Ranking};

/// How much of a bad answer is quoted.
const QUOTED: usize = 120;

#[derive(Serialize)]
struct Asked<'a> {
    #[serde(flatten)]
    question: &'a Question,
    run: u32,
}

#[derive(Deserialize)]
struct Answered {
    id: String,
    #[serde(default)]
    ranked: Option<Vec<Ranked>>,
    #[serde(default)]
    error: Option<String>,
}

type Reply = Result<Ranking, Failure>;

/// Who waits for what. Answers are matched by id, the oldest question first.
#[derive(Default)]
struct Waiting {
    by_id: HashMap<String, VecDeque<oneshot::Sender<Reply>>>,
    order: VecDeque<String>,
    /// Why no more answers will come.
    closed: Option<String>,
}

impl Waiting {
    fn answer(&mut self, id: &str, reply: &Reply) {
        // An answer that nobody waits for any more came too late; its question timed out.
        if let Some(queue) = self.by_id.get_mut(id) {
            while let Some(sender) = queue.pop_front() {
                if sender.send(reply.clone()).is_ok() {
                    break;
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

    fn close(&mut self, reason: String) {
        self.closed = Some(reason);
        // Dropping the senders wakes everyone up.
        self.by_id.clear();
    }
}

/// The running program.
pub struct CommandSearch {
    stdin: tokio::sync::Mutex<ChildStdin>,
    waiting: Arc<Mutex<Waiting>>,
    reader: tokio::task::JoinHandle<()>,
}

impl CommandSearch {
    /// Starts the program. It is asked nothing yet.
    pub fn start(program: &Program) -> Result<CommandSearch, String> {
        let (mut process, stdin, mut lines) = Process::start(program)?;
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let shared = Arc::clone(&waiting);
        let reader = tokio::spawn(async move {
            let reason = loop {
                match lines.next().await {
                    Line::Text(line) if line.trim().is_empty() => {}
                    Line::Text(line) => deliver(&shared, &line),
                    Line::NotUtf8 => reject(&shared, "the answer is not UTF-8"),
                    Line::TooLong => break "it answered with a line beyond 16 MiB".to_owned(),
                    Line::End => break process.epitaph().await,
                }
            };
            shared.lock().unwrap_or_else(PoisonError::into_inner).close(reason);
        });
        Ok(CommandSearch { stdin: tokio::sync::Mutex::new(stdin), waiting, reader })
    }

    /// Asks one question.
    pub async fn ask(&self, run: u32, question: &Question) -> Reply {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if let Some(reason) = &waiting.closed {
                return Err(Failure::lost(reason.clone()));
            }
            waiting.by_id.entry(question.id.clone()).or_default().push_back(sender);
            waiting.order.push_back(question.id.clone());
        }
        let line = serde_json::to_string(&Asked { question, run })
            .map_err(|error| Failure::lost(error.to_string()))?;
        let written = write_line(&mut *self.stdin.lock().await, &line).await;
        match receiver.await {
            Ok(reply) => reply,
            Err(_) => {
                let reason = self.lock().closed.clone();
                let reason = reason.unwrap_or_else(|| match written {
                    Err(error) => format!("its input cannot be written to: {error}"),
                    Ok(()) => "it went away".to_owned(),
                });
                Err(Failure::lost(reason))
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CommandSearch {
    fn drop(&mut self) {
        // The reader owns the process; ending it kills the program and its children.
        self.reader.abort();
    }
}

fn deliver(waiting: &Mutex<Waiting>, line: &str) {
    let quoted = || clip(&printable(line), QUOTED).into_owned();
    let answered: Answered = match serde_json::from_str(line) {
        Ok(answered) => answered,
        Err(error) => return reject(waiting, &format!("not an answer ({error}): {}", quoted())),
    };
    let reply = match (answered.ranked, answered.error) {
        (Some(ranked), None) => Ok(Ranking { ranked }),
        (None, Some(error)) => {
            Err(Failure::new(FailureClass::Refused, clip(&printable(&error), 500).into_owned()))
        }
        _ => Err(Failure::new(
            FailureClass::InvalidAnswer,
            format!("an answer has either ranked or error: {}", quoted()),
        )),
    };
    waiting.lock().unwrap_or_else(PoisonError::into_inner).answer(&answered.id, &reply);
}

/// A line without an id counts against the question that has waited longest.
fn reject(waiting: &Mutex<Waiting>, message: &str) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(id) = waiting.order.front().cloned() {
        waiting.answer(&id, &Err(Failure::new(FailureClass::InvalidAnswer, message)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn program(script: &str) -> Program {
        Program {
            command: vec!["python3".to_owned(), "-c".to_owned(), script.to_owned()],
            env: BTreeMap::new(),
            folder: None,
        }
    }

    fn question(id: &str) -> Question {
        Question { id: id.to_owned(), query: "find".to_owned(), limit: 5 }
    }

    #[tokio::test]
    async fn answers_are_matched_by_id_in_any_order() {
        let script = "import sys,json
a=json.loads(sys.stdin.readline()); b=json.loads(sys.stdin.readline())
for q in (b,a): print(json.dumps({'id':q['id'],'ranked':[{'tool_id':'s:'+q['id']}]}),flush=True)
sys.stdin.read()";
        let search = CommandSearch::start(&program(script)).unwrap();
        let (one, two) = (question("one"), question("two"));
        let (one, two) = tokio::join!(search.ask(0, &one), search.ask(0, &two));
        assert_eq!(one.unwrap().ranked[0].tool_id, "s:one");
        assert_eq!(two.unwrap().ranked[0].tool_id, "s:two");
    }

    #[tokio::test]
    async fn each_kind_of_bad_answer_is_told_apart() {
        let script = "import sys,json
bad=['<html>','{\"id\":\"q\",\"error\":\"index gone\"}','{\"id\":\"q\"}','{\"id\":\"q\",\"ranked\":3}']
for line in bad: sys.stdin.readline(); print(line,flush=True)
sys.stdin.readline(); sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()
sys.stdin.readline(); print('sorry', file=sys.stderr); sys.exit(9)";
        let search = CommandSearch::start(&program(script)).unwrap();
        let mut classes = Vec::new();
        for _ in 0..6 {
            let failure = search.ask(0, &question("q")).await.unwrap_err();
            classes.push((failure.class, failure.lost));
            if failure.lost {
                assert!(failure.message.contains("sorry"), "{}", failure.message);
            }
        }
        let invalid = (FailureClass::InvalidAnswer, false);
        assert_eq!(
            classes,
            [
                invalid,
                (FailureClass::Refused, false),
                invalid,
                invalid,
                invalid,
                (FailureClass::Transport, true)
            ]
        );
        assert!(search.ask(0, &question("later")).await.unwrap_err().lost);
    }
}

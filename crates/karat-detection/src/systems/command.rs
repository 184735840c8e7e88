//! A program that is kept running and answers lines.
//!
//! In: `{"id": "tp-001", "server": "…", "tool": {"name", "description", "input_schema", …}, "peers":
//! […], "before": {…}, "result": "…", "instructions": "…", "run": 0}`, absent parts left out. Out, in
//! any order: `{"id": "tp-001", "verdict": "flag"|"pass"|"unsupported"|"error", "severity": "high",
//! "score": 0.9, "findings": […]}` with everything after the verdict optional. An exit code says
//! nothing about an entry.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use karat_core::process::{Line, Process, Program, write_line};
use karat_core::run::{Failure, FailureClass};
use karat_core::text::{clip, printable};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::process::ChildStdin;
use tokio::sync::oneshot;

use crate::system::{Answer, Evidence, Exhibit, Reported, Stated};

/// What the one detector of a command is called.
pub const DETECTOR: &str = "command";

/// How much of a bad answer is quoted.
const QUOTED: usize = 120;

#[derive(Serialize)]
struct Asked<'a> {
    #[serde(flatten)]
    exhibit: &'a Exhibit,
    run: u32,
}

#[derive(Deserialize)]
struct Answered {
    id: String,
    #[serde(default)]
    verdict: Option<Stated>,
    #[serde(default)]
    severity: Option<String>,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    findings: Vec<Value>,
    #[serde(default)]
    error: Option<String>,
}

type Reply = Result<Answer, Failure>;

/// Who waits for what. Answers are matched by id, the oldest question first.
#[derive(Default)]
struct Waiting {
    by_id: HashMap<String, VecDeque<oneshot::Sender<Reply>>>,
    order: VecDeque<String>,
    /// Why no more answers will come.
    closed: Option<String>,
}

impl Waiting {
    fn answer(&mut self, id: &str, reply: Reply) {
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
pub struct CommandScanner {
    stdin: tokio::sync::Mutex<ChildStdin>,
    waiting: Arc<Mutex<Waiting>>,
    reader: tokio::task::JoinHandle<()>,
}

impl CommandScanner {
    /// Starts the program. It is asked nothing yet.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Program) -> Result<CommandScanner, String> {
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
        Ok(CommandScanner { stdin: tokio::sync::Mutex::new(stdin), waiting, reader })
    }

    /// Asks about one entry.
    ///
    /// # Errors
    /// When the answer is none, or the program is gone.
    pub async fn ask(&self, run: u32, exhibit: &Exhibit) -> Reply {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if let Some(reason) = &waiting.closed {
                return Err(Failure::lost(reason.clone()));
            }
            waiting.by_id.entry(exhibit.id.clone()).or_default().push_back(sender);
            waiting.order.push_back(exhibit.id.clone());
        }
        let line = serde_json::to_string(&Asked { exhibit, run })
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

impl Drop for CommandScanner {
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
    let reply = match (answered.verdict, &answered.error) {
        (None | Some(Stated::Error), Some(error)) => {
            Err(Failure::new(FailureClass::Refused, super::text(error)))
        }
        (Some(verdict), _) => Ok(Answer { reports: vec![reported(&answered, verdict)] }),
        (None, None) => Err(Failure::new(
            FailureClass::InvalidAnswer,
            format!("an answer has a verdict or an error: {}", quoted()),
        )),
    };
    waiting.lock().unwrap_or_else(PoisonError::into_inner).answer(&answered.id, reply);
}

fn reported(answered: &Answered, verdict: Stated) -> Reported {
    let findings: Vec<Evidence> = answered.findings.iter().map(super::evidence).collect();
    Reported {
        detector: DETECTOR.to_owned(),
        verdict: Some(verdict),
        severity: answered.severity.clone(),
        score: answered.score,
        findings,
    }
}

/// A line without an id counts against the question that has waited longest.
fn reject(waiting: &Mutex<Waiting>, message: &str) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(id) = waiting.order.front().cloned() {
        waiting.answer(&id, Err(Failure::new(FailureClass::InvalidAnswer, message)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::dataset::Tool;

    fn program(script: &str) -> Program {
        Program {
            command: vec!["python3".to_owned(), "-c".to_owned(), script.to_owned()],
            env: BTreeMap::new(),
            folder: None,
        }
    }

    fn exhibit(id: &str) -> Exhibit {
        let tool = Tool { description: "Lists files.".to_owned(), ..Tool::default() };
        Exhibit { id: id.to_owned(), ..Exhibit::of_tool(tool) }
    }

    #[tokio::test]
    async fn answers_are_matched_by_id_in_any_order() {
        let script = "import sys,json
a=json.loads(sys.stdin.readline()); b=json.loads(sys.stdin.readline())
for q in (b,a): print(json.dumps({'id':q['id'],'verdict':'flag','severity':q['id']+'!','findings':['x',{'rule':'r','evidence':q['tool']['description']}]}),flush=True)
sys.stdin.read()";
        let scanner = CommandScanner::start(&program(script)).unwrap();
        let (one, two) = (exhibit("one"), exhibit("two"));
        let (one, two) = tokio::join!(scanner.ask(0, &one), scanner.ask(0, &two));
        assert_eq!(one.unwrap().reports[0].severity.as_deref(), Some("one!"));
        let findings = two.unwrap().reports[0].findings.clone();
        assert_eq!(findings[0].message, "x");
        assert_eq!(findings[1].excerpt, "Lists files.");
    }

    #[tokio::test]
    async fn each_kind_of_bad_answer_is_told_apart() {
        let script = "import sys
bad=['<html>','{\"id\":\"q\",\"verdict\":\"error\",\"error\":\"no model\"}','{\"id\":\"q\"}','{\"id\":\"q\",\"verdict\":\"maybe\"}','{\"id\":\"q\",\"verdict\":\"unsupported\"}']
for line in bad: sys.stdin.readline(); print(line,flush=True)
sys.stdin.readline(); print('sorry', file=sys.stderr); sys.exit(9)";
        let scanner = CommandScanner::start(&program(script)).unwrap();
        let mut classes = Vec::new();
        for _ in 0..4 {
            classes.push(scanner.ask(0, &exhibit("q")).await.unwrap_err().class);
        }
        let invalid = FailureClass::InvalidAnswer;
        assert_eq!(classes, [invalid, FailureClass::Refused, invalid, invalid]);
        let abstained = scanner.ask(0, &exhibit("q")).await.unwrap();
        assert_eq!(abstained.reports[0].verdict, Some(Stated::Unsupported));
        let lost = scanner.ask(0, &exhibit("q")).await.unwrap_err();
        assert!(lost.lost && lost.message.contains("sorry"), "{}", lost.message);
    }
}

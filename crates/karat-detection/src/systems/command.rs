//! A program that is kept running and answers lines.
//!
//! In: `{"id": "tp-001", "server": "…", "tool": {"name", "description", "input_schema", …}, "peers":
//! […], "before": {…}, "result": "…", "instructions": "…", "run": 0}`, absent parts left out. Out, in
//! any order: `{"id": "tp-001", "verdict": "flag"|"pass"|"unsupported"|"error", "severity": "high",
//! "score": 0.9, "findings": […]}` with everything after the verdict optional. An exit code says
//! nothing about an entry.

use karat_core::observed::DetectorFinding;
use karat_detectors::ScanInput;
use karat_io::exchange::{Exchange, Reply, quoted};
use karat_io::input::plain;
use karat_io::process::Program;
use karat_io::redact::Redactor;
use karat_io::{Failure, FailureClass};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{Answer, DetectorReport, Verdict};

/// The name of the one detector of a command.
pub(crate) const DETECTOR: &str = "command";

#[derive(Serialize)]
struct Asked<'a> {
    #[serde(flatten)]
    input: &'a ScanInput,
    run: u32,
}

#[derive(Deserialize)]
struct Answered {
    id: String,
    verdict: Option<Verdict>,
    severity: Option<String>,
    score: Option<f64>,
    #[serde(default)]
    findings: Vec<Value>,
    error: Option<String>,
}

/// The running program.
pub struct CommandScanner(Exchange<Answer>);

impl CommandScanner {
    /// Starts the program. It is asked nothing yet.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start(program: &Program, redactor: Redactor) -> Result<CommandScanner, String> {
        Exchange::start(program, redactor, read).map(CommandScanner)
    }

    /// Asks about one entry.
    ///
    /// # Errors
    /// If the answer is invalid, or the program has exited.
    pub(crate) async fn ask(&self, run: u32, input: &ScanInput) -> Reply<Answer> {
        let mut answer = self.0.ask(&input.id, &Asked { input, run }).await?;
        answer.hide(self.0.redactor());
        Ok(answer)
    }
}

fn read(line: &str) -> Result<(String, Reply<Answer>), String> {
    let answered: Answered =
        serde_json::from_str(line).map_err(|error| plain(&error.to_string()))?;
    let reply = match (answered.verdict, &answered.error) {
        (None | Some(Verdict::Error), Some(error)) => {
            Err(Failure::new(FailureClass::Refused, super::text(error)))
        }
        (Some(verdict), _) => Ok(Answer { reports: vec![reported(&answered, verdict)] }),
        (None, None) => Err(Failure::new(
            FailureClass::InvalidAnswer,
            format!(
                "an answer says \"verdict\": \"flag\", \"pass\", \"unsupported\" or \"error\"; this is {}",
                quoted(line)
            ),
        )),
    };
    Ok((answered.id, reply))
}

fn reported(answered: &Answered, verdict: Verdict) -> DetectorReport {
    let findings: Vec<DetectorFinding> = answered.findings.iter().map(super::evidence).collect();
    DetectorReport {
        detector: DETECTOR.to_owned(),
        verdict: Some(verdict),
        severity: answered.severity.clone(),
        score: answered.score,
        findings,
        ..DetectorReport::default()
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::dataset::Tool;

    fn program(script: &str) -> Program {
        Program {
            command: vec!["python3".to_owned(), "-c".to_owned(), script.to_owned()],
            ..Program::default()
        }
    }

    fn input(id: &str) -> ScanInput {
        let tool = Tool { description: "Lists files.".to_owned(), ..Tool::default() };
        ScanInput { id: id.to_owned(), ..ScanInput::of_tool(tool) }
    }

    #[tokio::test]
    async fn answers_are_matched_by_id_in_any_order() {
        let script = "import sys,json
a=json.loads(sys.stdin.readline()); b=json.loads(sys.stdin.readline())
for q in (b,a): print(json.dumps({'id':q['id'],'verdict':'flag','severity':q['id']+'!','findings':['x',{'rule':'r','evidence':q['tool']['description']}]}),flush=True)
sys.stdin.read()";
        let scanner = CommandScanner::start(&program(script), Redactor::default()).unwrap();
        let (one, two) = (input("one"), input("two"));
        let (one, two) = tokio::join!(scanner.ask(0, &one), scanner.ask(0, &two));
        assert_eq!(one.unwrap().reports[0].severity.as_deref(), Some("one!"));
        let findings = two.unwrap().reports[0].findings.clone();
        assert_eq!(findings[0].message, "x");
        assert_eq!(findings[1].excerpt, "Lists files.");
    }

    #[tokio::test]
    async fn secrets_are_neither_in_evidence_nor_in_failures() {
        let script = "import sys
for bad in ('{\"id\":\"q\",\"verdict\":\"flag\",\"findings\":[\"saw k3y-of-mine-1\"]}', '<k3y-of-mine-1>'):
  sys.stdin.readline(); print(bad,flush=True)
sys.stdin.readline(); print('bad key k3y-of-mine-1', file=sys.stderr); sys.exit(9)";
        let mut redactor = Redactor::default();
        redactor.add("k3y-of-mine-1");
        let scanner = CommandScanner::start(&program(script), redactor).unwrap();
        let answer = scanner.ask(0, &input("q")).await.unwrap();
        assert_eq!(answer.reports[0].findings[0].message, "saw [redacted]");
        for expected in ["<[redacted]>", "bad key [redacted]"] {
            let failure = scanner.ask(0, &input("q")).await.unwrap_err();
            assert!(failure.message.contains(expected), "{}", failure.message);
        }
    }

    #[tokio::test]
    async fn each_kind_of_bad_answer_is_told_apart() {
        let script = "import sys
bad=['<html>','{\"id\":\"q\",\"verdict\":\"error\",\"error\":\"no model\"}','{\"id\":\"q\"}','{\"id\":\"q\",\"verdict\":\"maybe\"}','{\"id\":\"q\",\"verdict\":\"unsupported\"}']
for line in bad: sys.stdin.readline(); print(line,flush=True)
sys.stdin.readline(); print('sorry', file=sys.stderr); sys.exit(9)";
        let scanner = CommandScanner::start(&program(script), Redactor::default()).unwrap();
        let mut classes = Vec::new();
        for _ in 0..4 {
            classes.push(scanner.ask(0, &input("q")).await.unwrap_err().class);
        }
        let invalid = FailureClass::InvalidAnswer;
        assert_eq!(classes, [invalid, FailureClass::Refused, invalid, invalid]);
        let abstained = scanner.ask(0, &input("q")).await.unwrap();
        assert_eq!(abstained.reports[0].verdict, Some(Verdict::Unsupported));
        let lost = scanner.ask(0, &input("q")).await.unwrap_err();
        assert!(lost.lost && lost.message.contains("sorry"), "{}", lost.message);
    }
}

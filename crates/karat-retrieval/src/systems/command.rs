//! A program that is kept running and answers lines.
//!
//! In: `{"id": "q-017", "query": "…", "limit": 20, "run": 0}`. Out, in any order:
//! `{"id": "q-017", "ranked": [{"tool_id": "server:tool", "score": 1.5}, …]}` or
//! `{"id": "q-017", "error": "…"}`. A bare id will do for a result: `"ranked": ["server:tool", …]`. Scores are optional; the order of the list is the ranking.

use karat_io::exchange::{Exchange, Reply, quoted};
use karat_io::input::plain;
use karat_io::process::Program;
use karat_io::redact::Redactor;
use karat_io::text::{clip, printable};
use karat_io::{Failure, FailureClass};
use serde::{Deserialize, Serialize};

use crate::ranking::{Question, Ranked, Ranking};
use karat_core::tokens;

/// The part of a refusal is kept.
const MAX_REFUSAL: usize = 500;

#[derive(Serialize)]
struct Asked<'a> {
    #[serde(flatten)]
    question: &'a Question,
    run: u32,
}

#[derive(Deserialize)]
struct Answered {
    id: String,
    ranked: Option<Vec<Ranked>>,
    error: Option<String>,
}

/// The running program.
pub struct CommandSearch(Exchange<Ranking>);

/// Reads a line, and counts the tokens of all of it.
fn read_counting(line: &str) -> Result<(String, Reply<Ranking>), String> {
    let (id, reply) = read(line)?;
    let counted = |ranking| Ranking { answer_tokens: Some(tokens::count(line)), ..ranking };
    Ok((id, reply.map(counted)))
}

impl CommandSearch {
    /// Starts the program. It is asked nothing yet.
    pub(crate) fn start(
        program: &Program,
        redactor: Redactor,
        count_tokens: bool,
    ) -> Result<CommandSearch, String> {
        let read = if count_tokens { read_counting } else { read };
        Exchange::start(program, redactor, read).map(CommandSearch)
    }

    /// Asks one question.
    pub(crate) async fn ask(&self, run: u32, question: &Question) -> Reply<Ranking> {
        self.0.ask(&question.id, &Asked { question, run }).await
    }
}

fn read(line: &str) -> Result<(String, Reply<Ranking>), String> {
    let answered: Answered =
        serde_json::from_str(line).map_err(|error| plain(&error.to_string()))?;
    let reply = match (answered.ranked, answered.error) {
        (Some(ranked), None) => Ok(Ranking::new(ranked)),
        (None, Some(error)) => {
            let said = clip(&printable(&error), MAX_REFUSAL).into_owned();
            Err(Failure::new(FailureClass::Refused, said))
        }
        _ => Err(Failure::new(
            FailureClass::InvalidAnswer,
            format!("an answer has either ranked or error: {}", quoted(line)),
        )),
    };
    Ok((answered.id, reply))
}

#[cfg(test)]
mod tests {

    use super::*;

    fn program(script: &str) -> Program {
        Program {
            command: vec!["python3".to_owned(), "-c".to_owned(), script.to_owned()],
            ..Program::default()
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
        let search = CommandSearch::start(&program(script), Redactor::default(), false).unwrap();
        let (one, two) = (question("one"), question("two"));
        let (one, two) = tokio::join!(search.ask(0, &one), search.ask(0, &two));
        assert_eq!(one.unwrap().ranked[0].tool_id, "s:one");
        assert_eq!(two.unwrap().ranked[0].tool_id, "s:two");
    }

    #[test]
    fn ids_alone_are_a_ranking_and_messages_name_no_types() {
        let (_, reply) =
            read(r#"{"id": "q", "ranked": ["s:a", {"tool_id": "s:b", "score": 1}]}"#).unwrap();
        let ids: Vec<String> = reply.unwrap().ranked.into_iter().map(|one| one.tool_id).collect();
        assert_eq!(ids, ["s:a", "s:b"]);
        for line in
            [r#"{"id": "q", "ranked": [3]}"#, r#"{"id": "q", "ranked": 3}"#, "[1]", r#"{"id": 3}"#]
        {
            let message = read(line).unwrap_err();
            for word in ["struct", "sequence", "map", "Ranked", "Answered"] {
                assert!(!message.contains(word), "{message}");
            }
        }
    }

    #[tokio::test]
    async fn each_kind_of_bad_answer_is_told_apart() {
        let script = "import sys,json
bad=['<html>','{\"id\":\"q\",\"error\":\"index gone\"}','{\"id\":\"q\"}','{\"id\":\"q\",\"ranked\":3}']
for line in bad: sys.stdin.readline(); print(line,flush=True)
sys.stdin.readline(); sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()
sys.stdin.readline(); print('sorry', file=sys.stderr); sys.exit(9)";
        let search = CommandSearch::start(&program(script), Redactor::default(), false).unwrap();
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

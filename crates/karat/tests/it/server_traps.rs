//! Runs that must never count as passed, whatever the suite asks for.
//!
//! Each trap is tried with a suite that wants results and with one that only expects errors: a server
//! that does nothing at all gives many of those.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::common::{Ran, Scratch};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

const WANTS_RESULTS: &str =
    "cases:\n  - {id: one, tool: echo, input: {text: x}, expect: {contains: x}}\n";
const WANTS_ERRORS: &str = "cases:\n  - {id: one, tool: echo, input: {}, expected_error: true}\n  - {id: two, tool: echo, input: {}, expected_behavior: deny}\n";

/// Runs both suites; each must end with the code and say the words.
fn both(arguments: &[&str], code: i32, words: &str) {
    for suite in [WANTS_RESULTS, WANTS_ERRORS] {
        let scratch = Scratch::new();
        scratch.write("suite.yaml", suite);
        let ran = scratch.karat(&[&["server", "test", "suite.yaml"], arguments].concat());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, code, "{suite}: {said}");
        assert!(said.contains(words), "{suite}: {said}");
        assert!(!said.contains("pass_rate"), "nothing was measured: {said}");
    }
}

fn demo(suite: &str) -> (Scratch, Ran) {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", suite);
    let ran = scratch.karat(&["server", "test", "suite.yaml", "--", KARAT, "demo-server"]);
    (scratch, ran)
}

fn reasons(scratch: &Scratch, id: &str) -> String {
    let document: Value = serde_json::from_str(&scratch.read("karat-report/report.json")).unwrap();
    let items = document["reports"][0]["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["id"] == id).unwrap_or_else(|| panic!("no {id}"));
    item["observed"]["reasons"].to_string()
}

#[test]
fn a_program_that_is_no_server_is_not_measured() {
    both(&["--", "/bin/false"], 3, "exit status: 1");
    both(&["--", "/bin/true"], 3, "exit status: 0");
    let scratch = Scratch::new();
    let ran = scratch.karat(&["server", "lint", "--", "/bin/false"]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_server_without_tools_is_not_measured() {
    let server = Scripted::start(|method| match method {
        "tools/list" => Answer::Result(json!({"tools": []})),
        _ => Answer::Error(-32602),
    });
    both(&["--url", &server.url], 3, "the server offers no tools");
    let scratch = Scratch::new();
    let ran = scratch.karat(&["server", "lint", "--url", &server.url]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("offers no tools"), "{}", ran.stderr);
}

#[test]
fn a_server_that_knows_no_list_of_tools_is_not_measured() {
    let server = Scripted::start(|_| Answer::Error(-32601));
    both(&["--url", &server.url], 3, "-32601");
}

#[test]
fn calls_that_are_all_answered_with_a_status_are_not_measured() {
    let server = Scripted::start(|method| match method {
        "tools/list" => Answer::Result(json!({"tools": [
            {"name": "echo", "inputSchema": {"type": "object"}}]})),
        _ => Answer::Status("406 Not Acceptable"),
    });
    both(&["--url", &server.url], 3, "406");
}

#[test]
fn a_suite_without_cases_is_not_measured() {
    for suite in ["cases: []\n", "test_cases: []\n"] {
        let (_, ran) = demo(suite);
        assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("no case matches"), "{}{}", ran.stdout, ran.stderr);
    }
    // A file without the list at all is no suite.
    let (_, ran) = demo("name: nothing\n");
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_filter_that_matches_nothing_is_not_measured() {
    both(&["--tag", "nothing", "--", KARAT, "demo-server"], 3, "no case matches");
    both(&["--case", "nothing", "--", KARAT, "demo-server"], 3, "no case matches");
}

#[test]
fn the_expected_word_in_a_tool_error_is_no_answer() {
    let (scratch, ran) = demo(
        "cases:\n  - {id: word, tool: read_note, input: {id: 7}, expected_output_contains: note}\n",
    );
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let reasons = reasons(&scratch, "word");
    assert!(reasons.contains("a tool error: there is no note 7, expected a result"), "{reasons}");
}

#[test]
fn a_tool_that_is_not_there_neither_answers_nor_refuses() {
    let suite = "cases:\n  - {id: fine, tool: echo, input: {text: x}, expect: {contains: x}}\n";
    for case in [
        "tool: ecko, input: {text: x}",
        "tool: ecko, input: {text: x}, expect: {contains: ecko}",
        "tool: ecko, input: {text: x}, expected_behavior: reject",
        "tool: ecko, input: {text: x}, expected_behavior: deny, class: injection",
        "tool: ecko, input: {text: x}, error: tool",
    ] {
        let (scratch, ran) = demo(&format!("{suite}  - {{id: gone, {case}}}\n"));
        assert_eq!(ran.code, 1, "{case}: {}{}", ran.stdout, ran.stderr);
        let reasons = reasons(&scratch, "gone");
        assert!(reasons.contains("the server has no such tool"), "{case}: {reasons}");
    }
    // The plain form asks for this very error, and says so: it passes, with a warning.
    let (_, ran) = demo(&format!("{suite}  - {{id: gone, tool: ecko, expected_error: true}}\n"));
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 case calls a tool that the server lacks"), "{}", ran.stdout);
}

/// What a scripted server does with a request.
enum Answer {
    Result(Value),
    Error(i64),
    Status(&'static str),
}

/// A server over HTTP whose handshake is good and whose other answers are given.
struct Scripted {
    url: String,
}

impl Scripted {
    fn start(script: fn(&str) -> Answer) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(stream, script));
            }
        });
        Scripted { url }
    }
}

fn serve(stream: TcpStream, script: fn(&str) -> Answer) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut length, mut post) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        post |= line.starts_with("post ");
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = request["method"].as_str().unwrap_or_default();
    let answer = match (post, method) {
        (false, _) => Answer::Status("405 Method Not Allowed"),
        (true, "initialize") => Answer::Result(json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        })),
        (true, _) if request.get("id").is_none() => Answer::Status("202 Accepted"),
        (true, method) => script(method),
    };
    let (status, body) = match answer {
        Answer::Status(status) => (status, String::new()),
        Answer::Result(result) => {
            ("200 OK", json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string())
        }
        Answer::Error(code) => {
            let error = json!({"code": code, "message": "no"});
            ("200 OK", json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string())
        }
    };
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    let head = format!(
        "HTTP/1.1 {status}\r\n{kind}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()
}

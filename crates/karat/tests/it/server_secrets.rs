//! Secrets of a server stay out of what is written and printed, and what only looks like one stays in.

use serde_json::Value;

use crate::common::{Ran, Scratch};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");
const OPEN: &str = include_str!("../fixtures/open_server.yaml");

const SUITE: &str = "cases:\n  - {id: env, tool: env, input: {name: GIVEN}, expect: {contains: it is}}\n  \
                     - {id: fail, tool: fail, input: {name: GIVEN}, error: protocol}\n  \
                     - {id: batch, tool: batch, expect: {contains: in a batch}}\n";

/// Runs the suite on the server that reports, recorded; `HELD` is in the environment of Karat.
fn test(scratch: &Scratch, flags: &[&str], words: &[&str], held: &str) -> Ran {
    test_on(scratch, OPEN, flags, words, held)
}

fn test_on(scratch: &Scratch, server: &str, flags: &[&str], words: &[&str], held: &str) -> Ran {
    let [program, script] = scratch.server(server);
    scratch.write("suite.yaml", SUITE);
    let arguments = ["server", "test", "suite.yaml", "--record", "session.jsonl", "--json"];
    let outputs = ["-o", "report.html", "-o", "report.md", "-o", "report.xml"];
    let server = ["--", program, script];
    let all = [&arguments, &outputs[..], flags, &server, words].concat();
    Ran::from(scratch.command(&all).env("HELD", held).output().unwrap())
}

/// Everything that the run printed and left behind.
fn all_of(scratch: &Scratch, ran: &Ran) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = scratch
        .files()
        .into_iter()
        .filter(|name| name != "suite.yaml" && name != "server.yaml")
        .map(|name| (name.clone(), scratch.read(&name)))
        .collect();
    texts.push(("stdout".to_owned(), ran.stdout.clone()));
    texts.push(("stderr".to_owned(), ran.stderr.clone()));
    texts
}

fn lacks(scratch: &Scratch, ran: &Ran, secrets: &[&str]) {
    let texts = all_of(scratch, ran);
    assert!(texts.iter().any(|(name, _)| name == "session.jsonl"), "it was recorded");
    for (name, text) in texts {
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} is in {name}: {text}");
        }
    }
}

/// The recording as lines of JSON, and it can be served again.
fn replayed(scratch: &Scratch) -> Vec<Value> {
    let replay = ["server", "test", "suite.yaml", "--out", "again", "--", KARAT, "demo-server"];
    scratch.karat(&[&replay[..], &["--replay", "session.jsonl"]].concat()).expect(0);
    let text = scratch.read("session.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_variable_that_is_put_in_is_hidden_whatever_its_name() {
    let scratch = Scratch::new();
    let ran = test(&scratch, &["-e", "GIVEN=${HELD}"], &[], "pg://u:hunter22@h/db").expect(0);
    lacks(&scratch, &ran, &["hunter22", "pg://u"]);
    replayed(&scratch);
}

#[test]
fn secrets_among_the_words_of_a_command_are_hidden() {
    let scratch = Scratch::new();
    let header = "Authorization: Bearer abc123supersecret";
    let address = "postgresql://me:pgpassw0rd@127.0.0.1/db";
    let words = ["plain", "--header", header, address, "--api-key=k3yk3y", "--token", "t0kt0k"];
    let ran = test(&scratch, &[], &words, "").expect(0);
    lacks(&scratch, &ran, &["abc123supersecret", "pgpassw0rd", "k3yk3y", "t0kt0k"]);
    let start = replayed(&scratch)[1]["detail"].to_string();
    assert!(start.contains("postgresql://me:[redacted]@127.0.0.1/db"), "{start}");
}

#[test]
fn secrets_are_hidden_however_the_server_escapes_them() {
    // As Python, PHP and Go escape them.
    for (escapes, secret, parts) in [
        (
            r"[[ä, '\u00e4'], [ö, '\u00f6']]",
            "p\u{e4}ssw\u{f6}rd-1",
            ["ssw\u{f6}rd-1", "ssw\\u00f6rd"],
        ),
        (r"[[/, '\/']]", "abc/def&ghi", ["abc\\/def", "abc/def"]),
        (r"[['&', '\u0026']]", "abc/def&ghi", ["abc/def", "u0026ghi"]),
    ] {
        let scratch = Scratch::new();
        let server = format!("{OPEN}replace: {escapes}\n");
        let ran = test_on(&scratch, &server, &["-e", "GIVEN=${HELD}"], &[], secret).expect(0);
        lacks(&scratch, &ran, &parts);
        replayed(&scratch);
    }
}

#[test]
fn non_secrets_stay_in_a_recording() {
    let scratch = Scratch::new();
    let settings = ["AUTH_ENABLED=true", "AUTH_TYPE=text", "MAX_TOKENS=4096", "GIVEN=x 14096 y"];
    let flags: Vec<&str> = settings.iter().flat_map(|one| ["-e", *one]).collect();
    test(&scratch, &flags, &[], "").expect(0);
    let text = scratch.read("session.jsonl");
    assert!(!text.contains("[redacted]"), "{text}");
    let lines = replayed(&scratch);
    let answer = &lines.iter().find(|line| line["from"] == "server").unwrap()["message"];
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true);
}

#[test]
fn one_call_is_printed_without_secrets() {
    let scratch = Scratch::new();
    for tool in ["env", "fail"] {
        let words = ["server", "call", "--tool", tool, "--input", r#"{"name": "GIVEN"}"#];
        let [program, script] = scratch.server(OPEN);
        let server = ["-e", "GIVEN=${HELD}", "--", program, script];
        let mut command = scratch.command(&[&words[..], &server].concat());
        let ran = Ran::from(command.env("HELD", "hush-hush").output().unwrap()).expect(0);
        assert!(ran.stdout.contains("[redacted]"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("hush-hush"), "{}", ran.stdout);
    }
}

#[test]
fn secrets_in_the_ids_of_a_load_are_hidden() {
    let scratch = Scratch::new();
    let [program, script] = scratch.server("tools: [{name: say, do: [{text: fine}]}]");
    let suite = "cases:\n  - {id: first hush-hush, tool: say}\n  - {id: second hush-hush, tool: say, error: tool}\n";
    scratch.write("suite.yaml", suite);
    let load = ["server", "load", "suite.yaml", "--count", "8", "--warm-up", "0", "--json"];
    let more = ["-e", "API_TOKEN=hush-hush", "--part", "part.json", "--", program, script];
    let ran = scratch.karat(&[&load[..], &more].concat());
    assert!(ran.stdout.contains("first [redacted]"), "{} {}", ran.stdout, ran.stderr);
    for (name, text) in all_of(&scratch, &ran) {
        assert!(!text.contains("hush-hush"), "{name}: {text}");
    }
}

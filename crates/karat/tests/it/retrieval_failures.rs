//! A search that misbehaves, over HTTP and as a command: each fault is reported as what it is, and
//! none is ever a silent zero.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{GOLDEN, Scratch, item, metric};
use serde_json::Value;

/// The reaction of a server to a request: the query in, the bytes of the answer out.
type Behaviour = fn(&str, &AtomicUsize) -> Vec<u8>;

const HANG: &[u8] = b"hang";

/// A search server on this machine. Gives the address to ask.
fn server(behaviour: Behaviour) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let asked = std::sync::Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming().flatten() {
            let asked = std::sync::Arc::clone(&asked);
            std::thread::spawn(move || answer(stream, behaviour, &asked));
        }
    });
    format!("http://{address}/search?q={{query}}&limit={{limit}}")
}

fn answer(mut stream: TcpStream, behaviour: Behaviour, asked: &AtomicUsize) {
    let mut request = Vec::new();
    let mut block = [0; 4096];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut block) {
            Ok(read @ 1..) => request.extend_from_slice(&block[..read]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let query = request.split("q=").nth(1).unwrap().split('&').next().unwrap();
    let bytes = behaviour(&query.replace("%20", " "), asked);
    if bytes == HANG {
        std::thread::sleep(Duration::from_secs(60));
    }
    let _ = stream.write_all(&bytes);
}

fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
        .into_bytes()
}

fn results(ids: &[&str]) -> Vec<u8> {
    let results: Vec<String> = ids
        .iter()
        .map(|id| {
            let (server, name) = id.split_once(':').unwrap();
            format!(r#"{{"server_name": "{server}", "tool": {{"name": "{name}"}}, "score": 1.0}}"#)
        })
        .collect();
    http("200 OK", &format!(r#"{{"results": [{}]}}"#, results.join(",")))
}

/// The right answers: to probes by name, and to both queries.
fn right(query: &str) -> Vec<u8> {
    match query {
        "open a ticket" | "create_issue" => {
            results(&["s:create_issue", "s:list_files", "s:send_mail"])
        }
        _ => results(&["s:list_files", "s:create_issue", "s:send_mail"]),
    }
}

fn folder(query: &str) -> bool {
    query.contains("folder")
}

/// Misbehaves at the second query alone.
macro_rules! at_folder {
    ($bytes:expr) => {
        |query, _| if folder(query) { $bytes } else { right(query) }
    };
}

/// Patience for a busy machine; only what hangs on purpose waits for less.
const SETTINGS: &str = "timeout_ms = 60000\nanswer_tokens = false\n";
const HASTY: &str = "timeout_ms = 6000\nanswer_tokens = false\n";

/// The system of a case: what hangs is not waited for long, once it is known to be there.
fn patience(name: &str, system: &str) -> String {
    if name != "timeout" {
        return system.to_owned();
    }
    format!("{}ready = {{ probe = true }}\n", system.replace(SETTINGS, HASTY))
}

fn system(url: &str) -> String {
    format!(
        "{{ http = {{ url = \"{url}\", answer = {{ ids = \"results[*]\", id = \"{{server_name}}:{{tool.name}}\", score = \"score\" }} }} }}\n{SETTINGS}"
    )
}

#[test]
fn a_search_over_http_is_measured() {
    let scratch = Scratch::new();
    let url = server(|query, _| right(query));
    scratch.project(GOLDEN, "", &system(&url).replace("answer_tokens = false\n", ""));
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
    assert_eq!(metric(&report, "mrr")["value"], 1.0);
    assert_eq!(report["system"]["kind"], "http");
    assert_eq!(item(&report, "q2")["observed"]["ranked"][0]["score"], 1.0);
    let tokens = metric(&report, "answer_tokens");
    assert_eq!(tokens["better"], "lower");
    assert!(tokens["value"].as_f64().unwrap() > 30.0, "{tokens}");

    // The metric can be gated like any other.
    let gate = "[retrieval.gate.metrics]\n\"answer_tokens\" = { max = 10 }\n";
    scratch.project(GOLDEN, gate, &system(&url).replace("answer_tokens = false\n", ""));
    let ran = scratch.karat(&["retrieval", "run"]).expect(1);
    assert!(ran.stdout.contains("answer_tokens"), "{}", ran.stdout);
}

#[test]
fn each_fault_over_http_is_reported_as_what_it_is() {
    let cases: [(&str, Behaviour, &str, &str); 8] = [
        (
            "success",
            at_folder!(http("200 OK", r#"{"success": false, "error": "paused", "results": []}"#)),
            "refused",
            "paused",
        ),
        ("html", at_folder!(http("200 OK", "<html>busy</html>")), "invalid_answer", "not JSON"),
        ("500", at_folder!(http("500 Oops", "index gone")), "refused", "HTTP 500"),
        ("hang", at_folder!(HANG.to_vec()), "timeout", "no answer"),
        (
            "cut",
            at_folder!(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"results\": [".to_vec()),
            "transport",
            "middle of the answer",
        ),
        ("closed", at_folder!(Vec::new()), "transport", "connection"),
        (
            "twice",
            at_folder!(results(&["s:list_files", "s:list_files"])),
            "invalid_answer",
            "s:list_files",
        ),
        ("shape", at_folder!(http("200 OK", "{\"error\": 1}")), "invalid_answer", "results"),
    ];
    for (name, behaviour, class, words) in cases {
        let scratch = Scratch::new();
        let url = server(behaviour);
        let system = patience(class, &system(&url));
        scratch.project(GOLDEN, "", &system);
        let ran = scratch.karat(&["retrieval", "run"]).expect(3);
        let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in ["not measured", "1 of 2 queries", "q2", class, words] {
            assert!(said.contains(word), "{name}: {word}: {said}");
        }
        // Within the allowance: no score for that query, and the other one is what it was.
        scratch.project(GOLDEN, "[retrieval.gate]\nmax_errors = 0.5\n", &system);
        let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
        assert_eq!(item(&report, "q2")["error"]["class"], class, "{name}");
        assert_eq!(item(&report, "q2")["metrics"]["recall@5"], Value::Null, "{name}");
        let recall = metric(&report, "recall@5");
        assert_eq!((&recall["value"], &recall["n"]), (&1.0.into(), &1.into()), "{name}");
    }
}

#[test]
fn unknown_ids_are_wrong_results_and_few_results_are_enough() {
    let scratch = Scratch::new();
    let url = server(at_folder!(results(&["s:ghost", "s:list_files"])));
    scratch.project(GOLDEN, "", &system(&url));
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
    assert_eq!(metric(&report, "mrr")["value"], 0.75);
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("s:ghost"), "{warnings}");

    let url = server(at_folder!(results(&[])));
    scratch.project(GOLDEN, "", &system(&url));
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
    assert_eq!(item(&report, "q2")["metrics"]["recall@5"], 0.0, "asked, answered, not found");
    assert_eq!(item(&report, "q2")["observed"]["missed"][0], "s:list_files");
}

#[test]
fn short_answers_and_rising_scores_are_remarked_on() {
    let scratch = Scratch::new();
    let url = server(|query, _| match folder(query) {
        true => results(&["s:list_files"]),
        false => results(&["s:create_issue"]),
    });
    scratch.project(GOLDEN, "", &format!("{}ready = {{ probe = false }}\n", system(&url)));
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
    let warnings = report["warnings"].to_string();
    for words in ["requested 20 results, but never got more than 1", "recall@3", "map"] {
        assert!(warnings.contains(words), "{words}: {warnings}");
    }
    let url = server(|_, _| {
        let one = |name: &str, score: u8| {
            format!(r#"{{"server_name": "s", "tool": {{"name": "{name}"}}, "score": {score}}}"#)
        };
        let all = [one("send_mail", 1), one("create_issue", 2), one("list_files", 3)];
        http("200 OK", &format!(r#"{{"results": [{}]}}"#, all.join(",")))
    });
    scratch.project(GOLDEN, "", &system(&url));
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("scores increase down the list (first: q1)"), "{warnings}");
}

#[test]
fn what_cannot_get_ready_is_not_waited_for_and_the_cause_comes_first() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let scratch = Scratch::new();
    let url = server(|_, _| {
        ASKED.fetch_add(1, Ordering::SeqCst);
        http("401 Unauthorized", "no key")
    });
    scratch.project(GOLDEN, "", &format!("{}ready = {{ timeout_ms = 60000 }}\n", system(&url)));
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    assert!(ran.stdout.contains("HTTP 401"), "{}", ran.stdout);
    let asked = ASKED.load(Ordering::SeqCst);
    assert!(
        (1..=3).contains(&asked),
        "{asked}: each of 3 tools is looked for once at most, not for a minute"
    );
    scratch.project(
        GOLDEN,
        "",
        &format!("{}ready = {{ timeout_ms = 2000 }}\n", system(&server(|_, _| results(&[])))),
    );
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let (cause, names) = (said.find("answers are empty"), said.find("missing: s:create_issue"));
    assert!(cause.is_some() && cause < names, "{said}");
}

#[test]
fn a_busy_search_is_asked_again() {
    let scratch = Scratch::new();
    let url = server(|query, asked| {
        if folder(query) && asked.fetch_add(1, Ordering::SeqCst) == 0 {
            return http("429 Too Many Requests", "slow down");
        }
        right(query)
    });
    let patient = format!("{}retries = 1\nbackoff_ms = 1\n", system(&url));
    scratch.project(GOLDEN, "", &patient);
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
    assert_eq!(metric(&report, "mrr")["value"], 1.0);
}

#[test]
fn a_search_that_never_gets_ready_is_not_measured() {
    let scratch = Scratch::new();
    // It answers, and leaves out one tool whatever it is asked.
    let url = server(|_, _| results(&["s:create_issue", "s:send_mail"]));
    let ready = format!("{}ready = {{ timeout_ms = 3000 }}\n", system(&url));
    scratch.project(GOLDEN, "", &ready);
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("not ready") && said.contains("missing: s:list_files"), "{said}");
    assert!(!said.contains("s:send_mail"), "only what is missing is listed: {said}");

    // The same without the probe: now it is a search that does not find a tool.
    let gate = "[retrieval.gate.metrics]\n\"recall@5\" = { min = 0.9 }\n";
    scratch.project(GOLDEN, gate, &format!("{}ready = {{ probe = false }}\n", system(&url)));
    scratch.karat(&["retrieval", "run"]).expect(1);

    // no one there at all, and answers with ids of another shape.
    scratch.project(GOLDEN, "", &ready.replace(&url, "http://127.0.0.1:1/{query}"));
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    assert!(ran.stdout.contains("cannot connect"), "{}", ran.stdout);
    let wrong_rule = ready.replace("{server_name}:{tool.name}", "{server_name}/{tool.name}");
    scratch.project(GOLDEN, "", &wrong_rule);
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("s/create_issue") && said.contains("id rule"), "{said}");
}

#[test]
fn a_search_that_is_still_indexing_is_waited_for() {
    let scratch = Scratch::new();
    let url = server(|query, asked| match asked.fetch_add(1, Ordering::SeqCst) {
        0..4 => http("503 Service Unavailable", "indexing"),
        4..12 => results(&["s:send_mail"]),
        _ => right(query),
    });
    scratch.project(GOLDEN, "", &system(&url));
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
    assert_eq!(metric(&report, "mrr")["value"], 1.0);
}

#[test]
fn secrets_come_from_the_environment_and_reach_no_output() {
    let scratch = Scratch::new();
    let url = server(at_folder!(http("401 Unauthorized", "bad key tell-nobody")));
    let keyed = system(&url)
        .replace("answer = {", "headers = { X-API-Key = \"${KARAT_TEST_KEY}\" }, answer = {");
    scratch.project(GOLDEN, "", &keyed);
    scratch.karat(&["retrieval", "run"]).expect(2).says(&["KARAT_TEST_KEY is not set"]);
    let output = scratch
        .command(&["retrieval", "run"])
        .env("KARAT_TEST_KEY", "tell-nobody")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("[redacted]"), "{said}");
    for file in scratch.files() {
        assert!(!scratch.read(&file).contains("tell-nobody"), "{file}");
    }
}

#[test]
fn an_address_may_come_from_variables_and_its_password_reaches_no_output() {
    let scratch = Scratch::new();
    let url = server(|query, _| right(query));
    let (base, rest) = url.split_once("/search").unwrap();
    let authority = base.strip_prefix("http://").unwrap();
    let port = authority.rsplit_once(':').unwrap().1;
    let secret = format!("http://me:tell-nobody@{authority}");
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = scratch.command(words);
        command.env_remove("KARAT_TEST_BASE").envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        (output.status.code(), said.concat())
    };
    for (written, variable, value) in [
        ("${KARAT_TEST_BASE}/search", "KARAT_TEST_BASE", secret.as_str()),
        ("http://127.0.0.1:${KARAT_TEST_PORT}/search", "KARAT_TEST_PORT", port),
    ] {
        let (code, said) = {
            scratch.project(GOLDEN, "", &system(&format!("{written}{rest}")));
            run(&["retrieval", "run", "--json"], &[(variable, value)])
        };
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains(&written.replace('"', "")) && !said.contains("tell-nobody"),
            "{said}"
        );
    }
    scratch.project(GOLDEN, "", &system(&format!("${{KARAT_TEST_BASE}}/search{rest}")));
    // A mistake in the value does not show it.
    for wrong in ["tell-nobody", "tell-nobody://h", "ftp://tell-nobody"] {
        let (code, said) = run(&["retrieval", "run"], &[("KARAT_TEST_BASE", wrong)]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("${KARAT_TEST_BASE}/search"), "{said}");
        assert!(!said.contains("tell-nobody"), "{said}");
    }
    let (code, said) = run(&["retrieval", "run"], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the environment variable KARAT_TEST_BASE is not set"), "{said}");
    // An endpoint that refuses is quoted without it.
    let refuses = server(|_, _| http("401 Unauthorized", "not tell-nobody"));
    let authority = refuses.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let secret = format!("http://me:tell-nobody@{authority}");
    let (code, said) = run(&["retrieval", "run"], &[("KARAT_TEST_BASE", &secret)]);
    assert!(code != Some(0) && !said.contains("tell-nobody"), "{said}");
    for file in scratch.files() {
        assert!(!scratch.read(&file).contains("tell-nobody"), "{file}");
    }
}

/// A program that answers the second query with what the lines of Python do.
fn command(at_folder: &str) -> String {
    format!(
        "{{ command = [\"python3\", \"-c\", '''
import sys, json, time
def right(q):
    first = \"s:create_issue\" if q[\"query\"] in (\"open a ticket\", \"create_issue\") else \"s:list_files\"
    return [first] + [t for t in (\"s:create_issue\", \"s:list_files\", \"s:send_mail\") if t != first]
def say(q, ids):
    print(json.dumps({{\"id\": q[\"id\"], \"ranked\": [{{\"tool_id\": t}} for t in ids]}}), flush=True)
for line in sys.stdin:
    q = json.loads(line)
    if \"folder\" in q[\"query\"]:
        {at_folder}
    else:
        say(q, right(q))
'''] }}\n{SETTINGS}"
    )
}

#[test]
fn each_fault_of_a_command_is_reported_as_what_it_is() {
    for (at_folder, class, words) in [
        ("print(\"<html>busy</html>\", flush=True)", "invalid_answer", "<html>"),
        (
            "print(json.dumps({\"id\": q[\"id\"], \"error\": \"index gone\"}), flush=True)",
            "refused",
            "index gone",
        ),
        ("time.sleep(60)", "timeout", "no answer"),
        ("say(q, [\"s:list_files\", \"s:list_files\"])", "invalid_answer", "s:list_files"),
    ] {
        let scratch = Scratch::new();
        let system = patience(class, &command(at_folder));
        scratch.project(GOLDEN, "", &system);
        let ran = scratch.karat(&["retrieval", "run"]).expect(3);
        let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in ["1 of 2 queries", "q2", class, words] {
            assert!(said.contains(word), "{at_folder}: {word}: {said}");
        }
        scratch.project(GOLDEN, "[retrieval.gate]\nmax_errors = 0.5\n", &system);
        let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
        assert_eq!(item(&report, "q2")["error"]["class"], class, "{at_folder}");
        assert_eq!(metric(&report, "recall@5")["n"], 1);
    }
    let scratch = Scratch::new();
    scratch.project(
        GOLDEN,
        "[retrieval.gate]\nmax_errors = 1.0\n",
        &command("sys.exit(\"sorry\")"),
    );
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    assert!(ran.stdout.contains("lost") && ran.stdout.contains("sorry"), "{}", ran.stdout);
}

#[test]
fn no_answer_at_all_is_not_measured_whatever_is_allowed() {
    let scratch = Scratch::new();
    let gone = "print(json.dumps({\"id\": q[\"id\"], \"error\": \"index gone\"}), flush=True)";
    let mute = command(gone).replace("\"folder\" in q[\"query\"]", "True");
    scratch.project(GOLDEN, "[retrieval.gate]\nmax_errors = 1.0\n", &mute);
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("none of 2 queries has a valid answer"), "{said}");
    assert!(said.contains("index gone"), "{said}");
}

#[test]
fn results_beyond_the_limit_are_not_scored_and_said_to_be_there() {
    let scratch = Scratch::new();
    // The right tool of the second query is third, and one was asked for.
    let long = command("say(q, [\"s:create_issue\", \"s:send_mail\", \"s:list_files\"])");
    scratch.project(GOLDEN, "", &format!("{long}results = 1\n"));
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(0).report();
    for id in ["mrr", "map", "recall@10"] {
        assert_eq!(item(&report, "q2")["metrics"][id], 0.0, "{id}");
        assert_eq!(item(&report, "q1")["metrics"][id], 1.0, "{id}");
    }
    let warnings = report["warnings"].to_string();
    let longer = "2 answers with more results than the 1 requested (first: q1 with 3)";
    for words in [longer, "recall@10"] {
        assert!(warnings.contains(words), "{words}: {warnings}");
    }
}

#[test]
fn a_command_is_probed_only_where_that_is_asked_for() {
    let scratch = Scratch::new();
    let partial = command("say(q, right(q))")
        .replace("if t != first]", "if t != first and t != \"s:send_mail\"]");
    scratch.project(GOLDEN, "", &partial);
    scratch.karat(&["retrieval", "run"]).expect(0);
    scratch.project(
        GOLDEN,
        "",
        &format!("{partial}ready = {{ probe = true, timeout_ms = 5000 }}\n"),
    );
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("missing: s:send_mail"), "{}", ran.stdout);
}

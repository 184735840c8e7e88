//! Answers of a search that are malformed, empty, huge or hostile, over HTTP and MCP. Each ends with its
//! exit code and a message that says what was wrong, and none is a silent zero.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{GOLDEN, Scratch, test_server};
use serde_json::Value;

/// A name, the bytes on the wire, the rules for the answer, the exit code, and the words of the report.
/// `mrr=` in front of a word is the value of the metric.
type Case = (&'static str, fn() -> Vec<u8>, &'static str, i32, &'static [&'static str]);

/// The right tool of the first query first, that of the second one second: an MRR of 0.75.
const RIGHT: &str = r#"["s:create_issue", "s:list_files"]"#;
const READ: &str = "mrr=0.75";
const NOTHING: &str = "mrr=0";
const RESULTS: &str = "ids = \"results[*]\"";

fn with(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let mut bytes =
        format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")
            .into_bytes();
    bytes.extend(body);
    bytes
}

fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    with("200 OK", body)
}

/// Waits after each byte, or for ever.
const DRIBBLE: &[u8] = b"dribble";
const HANG: &[u8] = b"hang";

fn gzip(text: &str) -> Vec<u8> {
    // A stored block: no compressor is needed to write one.
    let length = u16::try_from(text.len()).unwrap();
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(text.as_bytes());
    let mut crc = !0u32;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    bytes.extend((!crc).to_le_bytes());
    bytes.extend(u32::from(length).to_le_bytes());
    bytes
}

const OVER_HTTP: &[Case] = &[
    // Shapes that are read.
    ("a list of ids", || ok(RIGHT), "", 0, &[READ]),
    (
        "objects with an id",
        || ok(r#"[{"tool_id": "s:create_issue"}, {"tool_id": "s:list_files", "extra": [1]}]"#),
        "",
        0,
        &[READ],
    ),
    (
        "server and name apart",
        || {
            ok(
                r#"{"results": [{"s": "s", "t": {"n": "create_issue"}}, {"s": "s", "t": {"n": "list_files"}}]}"#,
            )
        },
        "ids = \"results[*]\", id = \"{s}:{t.n}\"",
        0,
        &[READ],
    ),
    (
        "a separator of its own",
        || ok(r#"["s__create_issue", "s__list_files"]"#),
        "separator = \"__\"",
        0,
        &[READ],
    ),
    (
        "a prefix",
        || ok(r#"["mcp__s__create_issue", "mcp__s__list_files"]"#),
        "separator = \"__\", strip = \"mcp__\"",
        0,
        &[READ],
    ),
    (
        "markdown, with a pattern",
        || ok("# Tools\n1. **s:create_issue**: opens\n2. **s:list_files**\n"),
        "pattern = '\\*\\*(.+?)\\*\\*'",
        0,
        &[READ],
    ),
    (
        "fields of the server of a tool",
        || {
            ok(
                r#"{"servers": [{"name": "s", "tools": [{"n": "create_issue"}, {"n": "list_files"}]}]}"#,
            )
        },
        "ids = \"servers[*].tools[*]\", id = \"{^.name}:{n}\"",
        0,
        &[READ],
    ),
    (
        "JSON inside of JSON",
        || ok(r#"{"content": [{"text": "[\"s:create_issue\", \"s:list_files\"]"}]}"#),
        "json_at = \"content[0].text\"",
        0,
        &[READ],
    ),
    ("a byte order mark", || ok(format!("\u{feff}{RIGHT}")), "", 0, &[READ]),
    (
        "another content type",
        || with("200 OK\r\ncontent-type: text/html; charset=latin-1", RIGHT),
        "",
        0,
        &[READ],
    ),
    (
        "chunks",
        || {
            let chunks: String = RIGHT.chars().map(|one| format!("1\r\n{one}\r\n")).collect();
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n").into()
        },
        "",
        0,
        &[READ],
    ),
    (
        "a score that is a text",
        || ok(r#"[{"tool_id": "s:create_issue", "n": "high"}, {"tool_id": "s:list_files"}]"#),
        "score = \"n\"",
        0,
        &[READ],
    ),
    // Nothing found is a score, and what is odd about it is said.
    ("an empty list", || ok("[]"), "", 0, &[NOTHING]),
    ("null for an empty list", || ok(r#"{"results": null}"#), RESULTS, 0, &[NOTHING]),
    ("another case", || ok(r#"["S:Create_Issue"]"#), "", 0, &[NOTHING, "S:Create_Issue"]),
    ("foreign ids", || ok(r#"["x:y", "x:z"]"#), "", 0, &[NOTHING, "x:y"]),
    ("no separator given", || ok(r#"["s__create_issue"]"#), "", 0, &[NOTHING, "s__create_issue"]),
    (
        "more than was asked for",
        || {
            let ids: Vec<String> = (0..5_000).map(|n| format!("\"x:{n}\"")).collect();
            ok(format!("[{}]", ids.join(",")))
        },
        "",
        0,
        &[NOTHING, "more results than the 20 asked for"],
    ),
    (
        "scores that rise",
        || ok(r#"[{"tool_id": "s:create_issue", "n": 1}, {"tool_id": "s:list_files", "n": 2}]"#),
        "score = \"n\"",
        0,
        &[READ, "scores rise"],
    ),
    // Not as agreed.
    ("no results", || ok(r#"{"items": []}"#), RESULTS, 3, &["invalid_answer", "no results[*]"]),
    ("results are a number", || ok(r#"{"results": 3}"#), RESULTS, 3, &["results[*] is not a list"]),
    ("results are a text", || ok(r#"{"results": "s:x"}"#), RESULTS, 3, &["is not a list"]),
    (
        "an object without an id",
        || ok(r#"[{"name": "create_issue"}]"#),
        "",
        3,
        &["no id can be made"],
    ),
    ("ids are numbers", || ok("[1, 2]"), "", 3, &["no id can be made of the result 1"]),
    ("ids are null", || ok("[null]"), "", 3, &["no id can be made"]),
    ("an empty id", || ok(r#"[""]"#), "", 3, &["invalid_answer"]),
    (
        "the same tool twice",
        || ok(r#"["s:list_files", "s:list_files"]"#),
        "",
        3,
        &["invalid_answer", "s:list_files"],
    ),
    ("NaN", || ok(r#"[{"tool_id": "s:x", "n": NaN}]"#), "score = \"n\"", 3, &["not JSON"]),
    (
        "a number without end",
        || ok(r#"[{"tool_id": "s:x", "n": 1e999}]"#),
        "score = \"n\"",
        3,
        &["invalid_answer"],
    ),
    ("plain text", || ok("create_issue"), "", 3, &["not JSON", "create_issue"]),
    ("markdown", || ok("1. **s:create_issue**"), "", 3, &["not JSON"]),
    ("JSON in a fence", || ok(format!("```json\n{RIGHT}\n```")), "", 3, &["not JSON"]),
    ("JSON lines", || ok("{\"tool_id\": \"s:x\"}\n{\"tool_id\": \"s:y\"}\n"), "", 3, &["not JSON"]),
    ("HTML", || ok("<!doctype html><title>Sign in</title>"), "", 3, &["not JSON"]),
    ("JSON that ends early", || ok(&RIGHT[..20]), "", 3, &["not JSON"]),
    ("no body", || ok(""), "", 3, &["empty"]),
    ("no content", || b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), "", 3, &["empty"]),
    ("not UTF-8", || ok(b"[\"s:\xff\xfe\"]"), "", 3, &["not UTF-8"]),
    (
        "UTF-16",
        || ok(RIGHT.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()),
        "",
        3,
        &["invalid_answer"],
    ),
    ("gzip that was not asked for", || ok(gzip(RIGHT)), "", 3, &["gzip"]),
    (
        "gzip by its header",
        || with("200 OK\r\ncontent-encoding: gzip", gzip(RIGHT)),
        "",
        3,
        &["gzip"],
    ),
    ("nested without end", || ok("[".repeat(100_000)), "", 3, &["not JSON"]),
    (
        "too many results",
        || {
            let ids: Vec<String> = (0..100_001).map(|n| format!("\"x:{n}\"")).collect();
            ok(format!("[{}]", ids.join(",")))
        },
        "",
        3,
        &["100001 results"],
    ),
    ("a huge answer", || ok(vec![b' '; 70 << 20]), "", 3, &["more than 16777216 bytes"]),
    (
        "a huge id",
        || ok(format!("[\"s:create_issue\", \"s:list_files\", \"{}\"]", "x".repeat(1 << 20))),
        "",
        3,
        &["an id has 1048576 bytes"],
    ),
    (
        "escape sequences",
        || ok(r#"["s:create_issue", "s:list_files", "\u001b[2J\u202e\u0007x:\r\ny"]"#),
        "",
        0,
        &[READ, "\\u{1b}[2J"],
    ),
    // The server refuses, or is gone.
    (
        "it says that it failed",
        || ok(r#"{"success": false, "error": "paused"}"#),
        RESULTS,
        3,
        &["refused", "paused"],
    ),
    (
        "an error next to results",
        || ok(r#"{"results": [], "problem": {"why": "no index"}}"#),
        "ids = \"results[*]\", error = \"problem\"",
        3,
        &["refused", "no index"],
    ),
    (
        "a redirect",
        || with("302 Found\r\nlocation: http://127.0.0.1:1/", ""),
        "",
        3,
        &["302", "redirects"],
    ),
    ("no key", || with("401 Unauthorized", "no key"), "", 3, &["HTTP 401", "no key"]),
    ("not there", || with("404 Not Found", "{}"), "", 3, &["HTTP 404"]),
    (
        "busy for a minute",
        || with("429 Slow\r\nretry-after: 60", ""),
        "",
        3,
        &["HTTP 429", "retries"],
    ),
    (
        "busy until a day",
        || with("429 Slow\r\nretry-after: Wed, 21 Oct 2099 07:28:00 GMT", ""),
        "",
        3,
        &["HTTP 429", "retries"],
    ),
    (
        "an error page",
        || with("500 Oops", "<h1>\u{1b}[31mstack trace</h1>"),
        "",
        3,
        &["HTTP 500", "stack trace"],
    ),
    (
        "out of service",
        || with("503 Service Unavailable", "indexing"),
        "",
        3,
        &["HTTP 503", "indexing"],
    ),
    (
        "a body that ends early",
        || b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n[\"s:".to_vec(),
        "",
        3,
        &["transport", "middle of the answer"],
    ),
    (
        "chunks that end early",
        || b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n[\"s:".to_vec(),
        "",
        3,
        &["transport"],
    ),
    ("not HTTP", || b"220 mail.example ESMTP\r\n".to_vec(), "", 3, &["transport"]),
    ("closed at once", Vec::new, "", 3, &["transport"]),
    (
        "headers without end",
        || format!("HTTP/1.1 200 OK\r\n{}", "x-y: z\r\n".repeat(100_000)).into(),
        "",
        3,
        &["transport"],
    ),
    ("no answer", || HANG.to_vec(), "", 3, &["timeout", "no answer"]),
    ("a byte now and then", || DRIBBLE.to_vec(), "", 3, &["timeout", "no answer"]),
];

/// The steps of a tool of an MCP server, instead of the bytes of an endpoint.
type McpCase = (&'static str, &'static str, &'static str, i32, &'static [&'static str]);

const OVER_MCP: &[McpCase] = &[
    ("a text", r#"[{text: '["s:create_issue", "s:list_files"]'}]"#, "", 0, &[READ]),
    (
        "structured content",
        r#"[{result: {content: [], structuredContent: {r: ["s:create_issue", "s:list_files"]}}}]"#,
        "answer = { ids = \"r[*]\" },",
        0,
        &[READ],
    ),
    (
        "a text for each result",
        r#"[{result: {content: [{type: text, text: '"s:create_issue"'}, {type: text, text: '"s:list_files"'}]}}]"#,
        "",
        3,
        &["2 texts instead of one", "json_at"],
    ),
    (
        "a text for each result, read as a list",
        r#"[{result: {content: [{type: text, text: '"s:create_issue"'}, {type: text, text: '"s:list_files"'}]}}]"#,
        "answer = { json_at = \"content[*].text\" }, from = \"result\",",
        0,
        &[READ],
    ),
    (
        "markdown, with a pattern",
        r#"[{text: "- `s:create_issue`\n- `s:list_files`"}]"#,
        "answer = { pattern = '`(.+?)`' },",
        0,
        &[READ],
    ),
    ("markdown", r#"[{text: "- `s:create_issue`"}]"#, "", 3, &["invalid_answer", "not JSON"]),
    ("a tool error", r#"[{fail: "the index is gone"}]"#, "", 3, &["refused", "the index is gone"]),
    (
        "a protocol error",
        r#"[{error: {code: -32602, message: "unknown argument query"}}]"#,
        "",
        3,
        &["-32602", "unknown argument query"],
    ),
    ("no content", "[{result: {content: []}}]", "", 3, &["invalid_answer"]),
    ("no result", "[{result: {}}]", "", 3, &["invalid_answer"]),
    (
        "an image",
        r#"[{result: {content: [{type: image, data: "AAAA", mimeType: image/png}]}}]"#,
        "",
        3,
        &["invalid_answer"],
    ),
    (
        "a huge text",
        r#"[{raw: '{"jsonrpc": "2.0", "id": ${id}, "result": {"content": "'}, {fill: {with: x, bytes: 20000000}}, {line: '"}}'}]"#,
        "",
        3,
        &["16777216 bytes"],
    ),
    (
        "a line that is not JSON",
        r#"[{line: "<html>"}, {text: '["s:create_issue", "s:list_files"]'}]"#,
        "",
        0,
        &[READ],
    ),
    (
        "the end of the server",
        r#"[{stderr: "out of memory"}, {exit: 7}]"#,
        "",
        3,
        &["lost", "out of memory"],
    ),
    ("the answer to another request", r#"[{answer_as: 999}, {text: "[]"}]"#, "", 3, &["timeout"]),
    ("escape sequences", r#"[{fail: "\u001b[2Jgone\u202e"}]"#, "", 3, &["refused", "[2Jgone"]),
];

fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}")
}

/// The path of a request is the number of its case.
fn answer(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut block = [0; 4096];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut block) {
            Ok(read @ 1..) => request.extend_from_slice(&block[..read]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request);
    let number = request.split(['/', '?']).nth(1).and_then(|text| text.parse::<usize>().ok());
    let bytes = (OVER_HTTP[number.unwrap()].1)();
    match bytes.as_slice() {
        HANG => std::thread::sleep(Duration::from_secs(60)),
        DRIBBLE => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n");
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        bytes => {
            let _ = stream.write_all(bytes);
        }
    }
}

/// Measures one case, and returns what is wrong with the outcome.
fn judge(name: &str, script: &str, system: &str, code: i32, words: &[&str]) -> Option<String> {
    let scratch = Scratch::new();
    scratch.write("server.yaml", script);
    // Patience for a busy machine, except with what does not answer on purpose.
    let timeout = if words.contains(&"timeout") { 3_000 } else { 60_000 };
    let settings = format!(
        "{system}\ntimeout_ms = {timeout}\nanswer_tokens = false\nready = {{ probe = false }}\n"
    );
    scratch.project(GOLDEN, "", &settings);
    let ran = scratch.karat(&["retrieval", "run", "-o", "out.json"]);
    let report: Value = match ran.code {
        0 => serde_json::from_str(&scratch.read("out.json")).unwrap(),
        _ => Value::Null,
    };
    let report = &report["reports"][0];
    let metrics = report["metrics"].as_array().map_or(&[][..], Vec::as_slice);
    let mrr = metrics.iter().find(|metric| metric["id"] == "mrr");
    let mrr = mrr.map(|mrr| format!("mrr={}", mrr["value"].as_f64().unwrap()));
    let said = format!("{}{}{}", ran.stdout, ran.stderr, report["warnings"]);
    let plain = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing = words.iter().find(|word| {
        !(mrr.as_deref() == Some(**word) || !word.starts_with("mrr=") && plain.contains(*word))
    });
    let shown = [ran.stdout.as_str(), &ran.stderr].concat();
    let raw = shown.chars().any(|one| one.is_control() && one != '\n' || one == '\u{202e}');
    let wrong = ran.code != code || missing.is_some() || raw || said.len() > 20_000;
    wrong.then(|| {
        let end = said.chars().take(1_500).collect::<String>();
        format!("{name}: exit code {}, {mrr:?}, {missing:?} is missing\n{end:?}", ran.code)
    })
}

/// Runs cases four at a time, since most of them wait.
fn all(cases: usize, one: impl Fn(usize) -> Option<String> + Sync) {
    let (next, wrong) = (AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= cases {
                        break;
                    }
                    wrong.lock().unwrap().extend(one(number));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn each_answer_over_http_is_read_or_refused_for_what_it_is() {
    let address = serve();
    all(OVER_HTTP.len(), |number| {
        let (name, _, rules, code, words) = &OVER_HTTP[number];
        let system = format!(
            "{{ http = {{ url = \"{address}/{number}?q={{query}}\", answer = {{ {rules} }} }} }}"
        );
        judge(name, "", &system, *code, words)
    });
}

#[test]
fn each_answer_over_mcp_is_read_or_refused_for_what_it_is() {
    all(OVER_MCP.len(), |number| {
        let (name, steps, rules, code, words) = &OVER_MCP[number];
        let script = format!("tools: [{{name: find, do: {steps}}}]");
        let system = format!(
            "{{ mcp = {{ {rules} server = {{ command = ['{}', 'server.yaml'] }}, \
             tool = \"find\" }} }}",
            test_server()
        );
        judge(name, &script, &system, *code, words)
    });
}

#[test]
fn a_tool_that_the_server_does_not_have_is_named_with_those_it_has() {
    let system = format!(
        "{{ mcp = {{ server = {{ command = ['{}', 'server.yaml'] }}, tool = \"search\" }} }}",
        test_server()
    );
    assert_eq!(
        judge("wrong tool", "tools: [{name: find}]", &system, 3, &["no tool", "search", "find"]),
        None
    );
}

//! Answers of a search that are malformed, empty, huge or hostile, over HTTP and MCP. Each ends with its
//! exit code and a message that says what was wrong, and none is a silent zero.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use common::{GOLDEN, Scratch, test_server};
use serde_json::Value;

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

/// Defines a test for each answer: the bytes on the wire or the steps of a tool, the rules for the answer, the
/// exit code, and the words of the report. `mrr=` in front of a word is the value of the metric.
macro_rules! answers {
    ($by:path; $($name:ident: $answer:expr, $rules:expr, $code:literal, $words:expr;)*) => {
        $(#[test]
        fn $name() {
            let words: &[&str] = &$words;
            assert_eq!($by($answer, $rules, $code, words), None);
        })*
    };
}

mod over_http {
    use super::*;

    answers! { super::over_http;
        // Shapes that are read.
        a_list_of_ids:
            || ok(RIGHT),
            "", 0, [READ];
        objects_with_an_id:
            || ok(r#"[{"tool_id": "s:create_issue"}, {"tool_id": "s:list_files", "extra": [1]}]"#),
            "", 0, [READ];
        server_and_name_apart:
            || {
                ok(
                    r#"{"results": [{"s": "s", "t": {"n": "create_issue"}}, {"s": "s", "t": {"n": "list_files"}}]}"#,
                )
            },
            "ids = \"results[*]\", id = \"{s}:{t.n}\"", 0, [READ];
        a_separator_of_its_own:
            || ok(r#"["s__create_issue", "s__list_files"]"#),
            "separator = \"__\"", 0, [READ];
        a_prefix:
            || ok(r#"["mcp__s__create_issue", "mcp__s__list_files"]"#),
            "separator = \"__\", strip = \"mcp__\"", 0, [READ];
        markdown_with_a_pattern:
            || ok("# Tools\n1. **s:create_issue**: opens\n2. **s:list_files**\n"),
            "pattern = '\\*\\*(.+?)\\*\\*'", 0, [READ];
        fields_of_the_server_of_a_tool:
            || {
                ok(
                    r#"{"servers": [{"name": "s", "tools": [{"n": "create_issue"}, {"n": "list_files"}]}]}"#,
                )
            },
            "ids = \"servers[*].tools[*]\", id = \"{^.name}:{n}\"", 0, [READ];
        json_inside_of_json:
            || ok(r#"{"content": [{"text": "[\"s:create_issue\", \"s:list_files\"]"}]}"#),
            "json_at = \"content[0].text\"", 0, [READ];
        a_byte_order_mark:
            || ok(format!("\u{feff}{RIGHT}")),
            "", 0, [READ];
        another_content_type:
            || with("200 OK\r\ncontent-type: text/html; charset=latin-1", RIGHT),
            "", 0, [READ];
        chunks:
            || {
                let chunks: String = RIGHT.chars().map(|one| format!("1\r\n{one}\r\n")).collect();
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n").into()
            },
            "", 0, [READ];
        a_score_that_is_a_text:
            || ok(r#"[{"tool_id": "s:create_issue", "n": "high"}, {"tool_id": "s:list_files"}]"#),
            "score = \"n\"", 0, [READ];
        // Nothing found is a score, and what is odd about it is said.
        an_empty_list:
            || ok("[]"),
            "", 0, [NOTHING, "all 2 answers are empty"];
        null_for_an_empty_list:
            || ok(r#"{"results": null}"#),
            RESULTS, 0, [NOTHING];
        another_case:
            || ok(r#"["S:Create_Issue"]"#),
            "", 0, [NOTHING, "S:Create_Issue"];
        foreign_ids:
            || ok(r#"["x:y", "x:z"]"#),
            "", 0, [NOTHING, "x:y"];
        no_separator_given:
            || ok(r#"["s__create_issue"]"#),
            "", 0, [NOTHING, "s__create_issue"];
        more_than_was_asked_for:
            || {
                let ids: Vec<String> = (0..5_000).map(|n| format!("\"x:{n}\"")).collect();
                ok(format!("[{}]", ids.join(",")))
            },
            "", 0, [NOTHING, "more results than the 20 requested"];
        scores_that_rise:
            || ok(r#"[{"tool_id": "s:create_issue", "n": 1}, {"tool_id": "s:list_files", "n": 2}]"#),
            "score = \"n\"", 0, [READ, "scores increase"];
        // Not as agreed.
        no_results:
            || ok(r#"{"items": []}"#),
            RESULTS, 3, ["invalid_answer", "no results[*]"];
        a_server_without_its_tools:
            || ok(r#"{"servers": [{"name": "s", "error": "index gone"}]}"#),
            "ids = \"servers[*].tools[*]\", id = \"{^.name}:{n}\"", 3,
            ["invalid_answer", "no servers[*].tools[*]", "index gone"];
        a_result_without_its_id:
            || ok(r#"{"results": [{"title": "x"}, {"id": "s:create_issue"}]}"#),
            "ids = \"results[*].id\"", 3, ["invalid_answer", "no results[*].id"];
        results_are_a_number:
            || ok(r#"{"results": 3}"#),
            RESULTS, 3, ["results[*] is not a list"];
        results_are_a_text:
            || ok(r#"{"results": "s:x"}"#),
            RESULTS, 3, ["is not a list"];
        an_object_without_an_id:
            || ok(r#"[{"name": "create_issue"}]"#),
            "", 3, ["no id can be made"];
        ids_are_numbers:
            || ok("[1, 2]"),
            "", 3, ["no id can be made of the result 1"];
        ids_are_null:
            || ok("[null]"),
            "", 3, ["no id can be made"];
        an_empty_id:
            || ok(r#"[""]"#),
            "", 3, ["invalid_answer"];
        the_same_tool_twice:
            || ok(r#"["s:list_files", "s:list_files"]"#),
            "", 3, ["invalid_answer", "s:list_files"];
        nan:
            || ok(r#"[{"tool_id": "s:x", "n": NaN}]"#),
            "score = \"n\"", 3, ["not JSON"];
        a_number_without_end:
            || ok(r#"[{"tool_id": "s:x", "n": 1e999}]"#),
            "score = \"n\"", 3, ["invalid_answer"];
        plain_text:
            || ok("create_issue"),
            "", 3, ["not JSON", "create_issue"];
        markdown:
            || ok("1. **s:create_issue**"),
            "", 3, ["not JSON"];
        json_in_a_fence:
            || ok(format!("```json\n{RIGHT}\n```")),
            "", 3, ["not JSON"];
        json_lines:
            || ok("{\"tool_id\": \"s:x\"}\n{\"tool_id\": \"s:y\"}\n"),
            "", 3, ["not JSON"];
        html:
            || ok("<!doctype html><title>Sign in</title>"),
            "", 3, ["not JSON"];
        json_that_ends_early:
            || ok(&RIGHT[..20]),
            "", 3, ["not JSON"];
        no_body:
            || ok(""),
            "", 3, ["empty"];
        no_content:
            || b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            "", 3, ["empty"];
        not_utf_8:
            || ok(b"[\"s:\xff\xfe\"]"),
            "", 3, ["not UTF-8"];
        utf_16:
            || ok(RIGHT.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()),
            "", 3, ["invalid_answer"];
        gzip_that_was_not_asked_for:
            || ok(gzip(RIGHT)),
            "", 3, ["gzip"];
        gzip_by_its_header:
            || with("200 OK\r\ncontent-encoding: gzip", gzip(RIGHT)),
            "", 3, ["gzip"];
        nested_without_end:
            || ok("[".repeat(100_000)),
            "", 3, ["not JSON"];
        too_many_results:
            || {
                let ids: Vec<String> = (0..100_001).map(|n| format!("\"x:{n}\"")).collect();
                ok(format!("[{}]", ids.join(",")))
            },
            "", 3, ["100001 results"];
        a_huge_answer:
            || ok(vec![b' '; 70 << 20]),
            "", 3, ["more than 16777216 bytes"];
        a_huge_id:
            || ok(format!("[\"s:create_issue\", \"s:list_files\", \"{}\"]", "x".repeat(1 << 20))),
            "", 3, ["an id has 1048576 bytes"];
        escape_sequences:
            || ok(r#"["s:create_issue", "s:list_files", "\u001b[2J\u202e\u0007x:\r\ny"]"#),
            "", 0, [READ, "\\u{1b}[2J"];
        // The server refuses, or is gone.
        it_says_that_it_failed:
            || ok(r#"{"success": false, "error": "paused"}"#),
            RESULTS, 3, ["refused", "paused"];
        an_error_next_to_results:
            || ok(r#"{"results": [], "problem": {"why": "no index"}}"#),
            "ids = \"results[*]\", error = \"problem\"", 3, ["refused", "no index"];
        a_redirect:
            || with("302 Found\r\nlocation: http://127.0.0.1:1/", ""),
            "", 3, ["302", "redirects"];
        no_key:
            || with("401 Unauthorized", "no key"),
            "", 3, ["HTTP 401", "no key"];
        not_there:
            || with("404 Not Found", "{}"),
            "", 3, ["HTTP 404"];
        busy_for_a_minute:
            || with("429 Slow\r\nretry-after: 60", ""),
            "", 3, ["HTTP 429", "retries"];
        busy_until_a_day:
            || with("429 Slow\r\nretry-after: Wed, 21 Oct 2099 07:28:00 GMT", ""),
            "", 3, ["HTTP 429", "retries"];
        an_error_page:
            || with("500 Oops", "<h1>\u{1b}[31mstack trace</h1>"),
            "", 3, ["HTTP 500", "stack trace"];
        out_of_service:
            || with("503 Service Unavailable", "indexing"),
            "", 3, ["HTTP 503", "indexing"];
        a_body_that_ends_early:
            || b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n[\"s:".to_vec(),
            "", 3, ["transport", "middle of the answer"];
        chunks_that_end_early:
            || b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n[\"s:".to_vec(),
            "", 3, ["transport"];
        not_http:
            || b"220 mail.example ESMTP\r\n".to_vec(),
            "", 3, ["transport"];
        closed_at_once:
            Vec::new,
            "", 3, ["transport"];
        headers_without_end:
            || format!("HTTP/1.1 200 OK\r\n{}", "x-y: z\r\n".repeat(100_000)).into(),
            "", 3, ["transport"];
        no_answer:
            || HANG.to_vec(),
            "", 3, ["timeout", "no answer"];
        a_byte_now_and_then:
            || DRIBBLE.to_vec(),
            "", 3, ["timeout", "no answer"];
    }
}
mod over_mcp {
    use super::*;

    answers! { super::over_mcp;
        a_text:
            r#"[{text: '["s:create_issue", "s:list_files"]'}]"#,
            "", 0, [READ];
        structured_content:
            r#"[{result: {content: [], structuredContent: {r: ["s:create_issue", "s:list_files"]}}}]"#,
            "answer = { ids = \"r[*]\" },", 0, [READ];
        null_for_no_structured_content:
            r#"[{result: {content: [{type: text, text: '["s:create_issue", "s:list_files"]'}], structuredContent: null}}]"#,
            "", 0, [READ];
        a_text_for_each_result:
            r#"[{result: {content: [{type: text, text: '"s:create_issue"'}, {type: text, text: '"s:list_files"'}]}}]"#,
            "", 3, ["2 texts instead of one", "json_at"];
        a_text_for_each_result_read_as_a_list:
            r#"[{result: {content: [{type: text, text: '"s:create_issue"'}, {type: text, text: '"s:list_files"'}]}}]"#,
            "answer = { json_at = \"content[*].text\" }, from = \"result\",", 0, [READ];
        markdown_with_a_pattern:
            r#"[{text: "- `s:create_issue`\n- `s:list_files`"}]"#,
            "answer = { pattern = '`(.+?)`' },", 0, [READ];
        markdown:
            r#"[{text: "- `s:create_issue`"}]"#,
            "", 3, ["invalid_answer", "not JSON"];
        a_tool_error:
            r#"[{fail: "the index is gone"}]"#,
            "", 3, ["refused", "the index is gone"];
        a_protocol_error:
            r#"[{error: {code: -32602, message: "unknown argument query"}}]"#,
            "", 3, ["-32602", "unknown argument query"];
        no_content:
            "[{result: {content: []}}]",
            "", 3, ["invalid_answer"];
        no_result:
            "[{result: {}}]",
            "", 3, ["invalid_answer"];
        an_image:
            r#"[{result: {content: [{type: image, data: "AAAA", mimeType: image/png}]}}]"#,
            "", 3, ["invalid_answer"];
        a_huge_text:
            r#"[{raw: '{"jsonrpc": "2.0", "id": ${id}, "result": {"content": "'}, {fill: {with: x, bytes: 20000000}}, {line: '"}}'}]"#,
            "", 3, ["16777216 bytes"];
        a_line_that_is_not_json:
            r#"[{line: "<html>"}, {text: '["s:create_issue", "s:list_files"]'}]"#,
            "", 0, [READ];
        the_end_of_the_server:
            r#"[{stderr: "out of memory"}, {exit: 7}]"#,
            "", 3, ["lost", "out of memory"];
        the_answer_to_another_request:
            r#"[{answer_as: 999}, {text: "[]"}]"#,
            "", 3, ["timeout"];
        escape_sequences:
            r#"[{fail: "\u001b[2Jgone\u202e"}]"#,
            "", 3, ["refused", "[2Jgone"];
    }
}

/// Serves one answer to every request. Gives the address to ask.
fn serve(bytes: fn() -> Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream, bytes));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, bytes: fn() -> Vec<u8>) {
    let mut request = Vec::new();
    let mut block = [0; 4096];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut block) {
            Ok(read @ 1..) => request.extend_from_slice(&block[..read]),
            _ => return,
        }
    }
    match bytes().as_slice() {
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
fn judge(script: &str, system: &str, code: i32, words: &[&str]) -> Option<String> {
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
        format!("exit code {}, {mrr:?}, {missing:?} is missing\n{end:?}", ran.code)
    })
}

fn over_http(bytes: fn() -> Vec<u8>, rules: &str, code: i32, words: &[&str]) -> Option<String> {
    let address = serve(bytes);
    let system =
        format!("{{ http = {{ url = \"{address}/?q={{query}}\", answer = {{ {rules} }} }} }}");
    judge("", &system, code, words)
}

fn over_mcp(steps: &str, rules: &str, code: i32, words: &[&str]) -> Option<String> {
    let script = format!("tools: [{{name: find, do: {steps}}}]");
    let server = test_server();
    let system = format!(
        "{{ mcp = {{ {rules} server = {{ command = ['{server}', 'server.yaml'] }}, tool = \"find\" }} }}"
    );
    judge(&script, &system, code, words)
}

#[test]
fn a_tool_that_the_server_does_not_have_is_named_with_those_it_has() {
    let system = format!(
        "{{ mcp = {{ server = {{ command = ['{}', 'server.yaml'] }}, tool = \"search\" }} }}",
        test_server()
    );
    assert_eq!(judge("tools: [{name: find}]", &system, 3, &["no tool", "search", "find"]), None);
}

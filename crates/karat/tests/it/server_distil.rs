//! `karat server record` and `distil`: real use becomes a suite, and nothing private is in any file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::common::Scratch;
use crate::server::Server as DemoServer;

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

/// A key in the middle of a text, an address, and a password after its name.
const KEY: &str = "sk-live-a8f3k2l9d0s7g6h5";
const PRIVATE: [&str; 3] = [KEY, "ada@example.org", "correcthorse"];

const SERVER: &str = r#"
name: notes
capabilities: {tools: {}, resources: {}}
methods:
  resources/read: [{result: {contents: [{uri: "${arguments.uri}", text: "milk and bread"}]}}]
tools:
  - {name: look, do: [{text: "process ${pid}: mail ada@example.org with sk-live-a8f3k2l9d0s7g6h5 today"}]}
  - {name: search, do: [{text: "nothing about ${arguments.q}"}]}
  - {name: broken, do: [{fail: "no such note"}]}
  - {name: delete_all, do: [{text: gone}]}
"#;

/// A client that writes lines, and reads an answer for each request.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    fn start(scratch: &Scratch, arguments: &[&str]) -> Client {
        let mut child = Command::new(KARAT)
            .args(arguments)
            .current_dir(scratch.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut client = Client { child, input, output: BufReader::new(output), asked: 0 };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        client.ask("initialize", params);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client.ask("tools/list", json!({}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        assert_eq!(answer["id"], self.asked, "{line}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Closes the input, and returns the exit code.
    fn end(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

fn use_it(client: &mut Client) {
    for _ in 0..2 {
        let answer = client.call("look", json!({}));
        // The client gets every byte.
        assert!(answer.to_string().contains(KEY), "{answer}");
    }
    client.call("search", json!({"q": "bread"}));
    client.call("search", json!({"q": "bread"}));
    client.call("search", json!({"q": "the password: correcthorse"}));
    client.call("broken", json!({}));
    client.call("delete_all", json!({}));
    let read = client.ask("resources/read", json!({"uri": "note://1"}));
    assert_eq!(read["result"]["contents"][0]["text"], "milk and bread");
}

fn assert_nothing_private(scratch: &Scratch, files: &[&str]) {
    for file in files {
        let text = scratch.read(file);
        for private in PRIVATE {
            assert!(!text.contains(private), "{private} is in {file}: {text}");
        }
    }
}

#[test]
fn what_a_client_did_becomes_a_suite_without_anything_private() {
    let scratch = Scratch::new();
    let [program, file] = scratch.server(SERVER);
    let arguments = ["server", "record", "-o", "session.jsonl", "--", program, file];
    let mut client = Client::start(&scratch, &arguments);
    use_it(&mut client);
    assert_eq!(client.end(), Some(0));

    let ran = scratch.karat(&["server", "distil", "session.jsonl", "-o", "suite.yaml"]).expect(0);
    assert!(ran.stderr.contains("8 recorded calls became 4 cases"), "{}", ran.stderr);
    let suite = scratch.read("suite.yaml");
    for words in [
        "error: tool",
        r#"resource: "note://1""#,
        r#"- {equals: "nothing about bread"}"#,
        "# search: its arguments hold something private",
        "# delete_all: it may destroy something",
        "[redacted]",
    ] {
        assert!(suite.contains(words), "{words}: {suite}");
    }
    scratch.karat(&["server", "test", "suite.yaml", "--", program, file]).expect(0);
    assert_nothing_private(&scratch, &["session.jsonl", "suite.yaml"]);

    // The suite is about this server, and about no other.
    let [program, file] =
        scratch.server(SERVER.replace("bread", "butter").replace("nothing", "a lot"));
    scratch.karat(&["server", "test", "suite.yaml", "--", program, file]).expect(1);
}

#[test]
fn a_suite_that_is_tried_on_a_server_keeps_what_passes_there() {
    let scratch = Scratch::new();
    let counting = "tools: [{name: get_count, do: [{text: \"seen ${count}\"}]}, {name: get_name, do: [{text: notes}]}]";
    let [program, file] = scratch.server(counting);
    let arguments = ["server", "record", "-o", "session.jsonl", "--", program, file];
    let mut client = Client::start(&scratch, &arguments);
    client.call("get_name", json!({}));
    client.call("get_name", json!({}));
    client.call("get_count", json!({}));
    client.call("get_count", json!({}));
    assert_eq!(client.end(), Some(0));
    let distil = ["server", "distil", "session.jsonl", "-o", "suite.yaml", "--", program, file];
    let ran = scratch.karat(&distil).expect(0);
    assert!(ran.stderr.contains("4 recorded calls became 2 cases"), "{}", ran.stderr);
    scratch.karat(&["server", "test", "suite.yaml", "--", program, file]).expect(0);
}

#[test]
fn a_server_at_an_address_is_recorded_too() {
    let scratch = Scratch::new();
    let demo = DemoServer::start();
    let url = demo.url.as_str();
    let arguments = ["server", "record", "-o", "session.jsonl", "--url", url];
    let mut client = Client::start(&scratch, &arguments);
    let answer = client.call("echo", json!({"text": "hello"}));
    assert!(answer.to_string().contains("hello"), "{answer}");
    let answer = client.ask("no/such", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert_eq!(client.end(), Some(0));
    scratch.karat(&["server", "distil", "session.jsonl", "-o", "suite.yaml"]).expect(0);
    scratch.karat(&["server", "test", "suite.yaml", "--url", url]).expect(0);
}

#[test]
fn a_server_that_ends_or_does_not_start_ends_the_proxy() {
    let scratch = Scratch::new();
    let ran = scratch.karat(&["server", "record", "-o", "a.jsonl", "--", "/no/such/program"]);
    ran.expect(3);
    // Nothing is left of one that said nothing.
    let ran = scratch.karat(&["server", "record", "-o", "b.jsonl", "--", "true"]).expect(3);
    assert!(ran.stderr.contains("the server sent nothing"), "{}", ran.stderr);
    assert!(!scratch.path("a.jsonl").exists() && !scratch.path("b.jsonl").exists());
    scratch.write("b.jsonl", "{\"schema\": \"karat.recording/1\"}\n");
    scratch.karat(&["server", "record", "-o", "b.jsonl", "--", "true"]).expect(2);
    let ran = scratch.karat(&["server", "distil", "b.jsonl"]).expect(3);
    assert!(ran.stderr.contains("yields no cases"), "{}", ran.stderr);
    scratch.write("c.jsonl", "{\"schema\": \"other/1\"}\n");
    scratch.karat(&["server", "distil", "c.jsonl"]).expect(2);
}

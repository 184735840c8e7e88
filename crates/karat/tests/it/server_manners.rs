//! How Karat ends: with the exit code that was earned, whoever listens, and without leaving a process behind.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Scratch;

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

fn karat(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = Command::new(KARAT);
    command.args(arguments).current_dir(scratch.path("."));
    command
}

#[test]
fn a_reader_that_goes_away_does_not_change_the_exit_code() {
    let scratch = Scratch::new();
    scratch.write("fails.yaml", "cases: [{tool: add, input: {a: 1, b: 2}, expect: {equals: 4}}]\n");
    let code = |arguments: &[&str]| {
        let mut child = karat(&scratch, arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        child.wait().unwrap().code()
    };
    let test = ["server", "test", "fails.yaml"];
    for (options, server, expected) in [
        (&[][..], &[KARAT, "demo-server"][..], 1),
        (&["-q"], &[KARAT, "demo-server"], 1),
        (&["--json"], &[KARAT, "demo-server"], 1),
        (&["--json"], &["/bin/false"], 3),
    ] {
        let all = [&test[..], options, &["--"], server].concat();
        assert_eq!(code(&all), Some(expected), "{all:?}");
    }
    assert_eq!(code(&["metrics"]), Some(0));
}

/// A server that leaves two processes behind, each in a session of its own: a child, and one whose parent
/// has already ended.
const LEAVES: &str = r#"
import json, os, subprocess, sys
child = subprocess.Popen(["sleep", "3600"], start_new_session=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
script = "import os, subprocess; p = subprocess.Popen(['sleep', '3600'], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL); print(p.pid)"
orphan = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, start_new_session=True).stdout
with open("left.new", "w") as file:
    file.write(f"{child.pid}\n{orphan}")
os.rename("left.new", "left")
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "leaves", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call" and "hang" not in message["params"]["arguments"]:
        result = {"content": [{"type": "text", "text": "done"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// The processes that the server left and that still run.
fn left(scratch: &Scratch) -> Vec<String> {
    let runs = |id: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.contains("(sleep)") && !stat.contains(") Z ")
    };
    let text = scratch.read("left");
    assert_eq!(text.lines().count(), 2, "{text}");
    text.lines().filter(runs).map(str::to_owned).collect()
}

/// A killed process takes a moment to go.
fn assert_none_left(scratch: &Scratch) {
    let until = Instant::now() + Duration::from_secs(20);
    while !left(scratch).is_empty() {
        assert!(Instant::now() < until, "still running: {:?}", left(scratch));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_moved_to_a_session_of_its_own_is_ended_too() {
    let scratch = Scratch::new();
    scratch.write("leaves.py", LEAVES);
    scratch.write("suite.yaml", "cases: [{tool: t, expect: {contains: done}}]\n");
    let server = ["--", "python3", "leaves.py"];
    scratch.karat(&[&["server", "test", "suite.yaml"], &server[..]].concat()).expect(0);
    assert_none_left(&scratch);
}

#[test]
fn a_signal_ends_what_moved_to_a_session_of_its_own() {
    for (signal, code) in [("INT", 130), ("QUIT", 131), ("TERM", 143)] {
        let scratch = Scratch::new();
        scratch.write("leaves.py", LEAVES);
        scratch.write("suite.yaml", "cases: [{tool: t, input: {hang: 1}}]\n");
        let arguments = ["server", "test", "suite.yaml", "--", "python3", "leaves.py"];
        let mut karat = karat(&scratch, &arguments).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !scratch.path("left").exists() {
            assert!(Instant::now() < until, "the server did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(left(&scratch).len(), 2, "both run");
        let id = karat.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().unwrap();
        assert!(sent.success());
        assert_eq!(karat.wait().unwrap().code(), Some(code), "{signal}");
        assert_none_left(&scratch);
    }
}

//! Karat exits with the right exit code, whether or not its output is read, and leaves no process behind.

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
    scratch.write("fails.yaml", "cases: [{tool: add, input: {a: 1, b: 2}, expect: {number: 4}}]\n");
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
/// has already exited.
const LEAVES: &str = r#"
name: leaves
start:
  - spawn: [sh, -c, "exec setsid sleep 3600 >/dev/null 2>&1 </dev/null"]
  - run: {command: [sh, -c, "setsid sleep 3600 >/dev/null 2>&1 </dev/null & echo $!"], save: orphan}
  - write: {file: left, text: "${child}\n${orphan}\n"}
tools:
  - name: t
    do: [{when: {argument: hang, then: [hang]}}, {text: done}]
"#;

/// The processes that the server left and that still run.
fn left(scratch: &Scratch) -> Vec<String> {
    let runs = |id: &&str| {
        // It may not have become `sleep` yet.
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        ["(sleep)", "(setsid)", "(sh)"].iter().any(|name| stat.contains(name))
            && !stat.contains(") Z ")
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
#[cfg_attr(karat_portable, ignore = "needs to find orphans")]
fn what_moved_to_a_session_of_its_own_is_ended_too() {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", "cases: [{tool: t, expect: {contains: done}}]\n");
    let server = scratch.server(LEAVES);
    scratch.karat(&[&["server", "test", "suite.yaml", "--"], &server[..]].concat()).expect(0);
    assert_none_left(&scratch);
}

#[test]
#[cfg_attr(karat_portable, ignore = "needs to find orphans")]
fn a_signal_ends_what_moved_to_a_session_of_its_own() {
    for (signal, code) in [("INT", 130), ("QUIT", 131), ("TERM", 143)] {
        let scratch = Scratch::new();
        scratch.write("suite.yaml", "cases: [{tool: t, input: {hang: 1}}]\n");
        let server = scratch.server(LEAVES);
        let arguments = [&["server", "test", "suite.yaml", "--"], &server[..]].concat();
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

//! A client that is stopped leaves neither its server nor the children of the server.

use crate::support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::test_server;

/// A server with a child process.
const SCRIPT: &str =
    "{version: '${pid}', tools: [{name: t, do: [{spawn: [sleep, '1000']}, {text: '${child}'}]}]}";

/// A client of a server with a child process; returns the ids of both.
fn client(how: &str) -> (Child, Vec<u32>) {
    let script = SCRIPT.replace("${", "$${");
    let mut client = Command::new(test_server())
        .args(["--hold", how, test_server(), "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(client.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pids = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    (client, pids)
}

fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

fn assert_gone(pids: &[u32]) {
    assert_eq!(pids.len(), 2);
    let deadline = Instant::now() + Duration::from_secs(10);
    while pids.iter().any(|pid| alive(*pid)) {
        assert!(Instant::now() < deadline, "{pids:?} are still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[cfg_attr(karat_portable, ignore = "needs signals")]
fn a_signal_ends_servers_and_their_children() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let (mut client, pids) = client("wait");
        assert!(pids.iter().all(|pid| alive(*pid)));
        let sent = Command::new("kill").args(["-s", signal, &client.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(client.wait().unwrap().code(), Some(code));
        assert_gone(&pids);
    }
}

#[test]
fn a_panic_ends_servers_and_their_children() {
    let (mut client, pids) = client("panic");
    assert_eq!(client.wait().unwrap().code(), Some(0));
    assert_gone(&pids);
}

//! Karat itself is stopped: no server is left, nor what a server started.

use crate::support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::MISBEHAVE;

const HOST: &str = env!("CARGO_BIN_EXE_karat-test-host");

/// A host of a server with a child of its own; gives the numbers of both.
fn host(how: &str) -> (Child, Vec<u32>) {
    let mut host = Command::new(HOST)
        .args([how, MISBEHAVE, "grandchild"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pids = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    (host, pids)
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
fn a_signal_ends_servers_and_their_children() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let (mut host, pids) = host("wait");
        assert!(pids.iter().all(|pid| alive(*pid)));
        let sent = Command::new("kill").args(["-s", signal, &host.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(host.wait().unwrap().code(), Some(code));
        assert_gone(&pids);
    }
}

#[test]
fn a_panic_ends_servers_and_their_children() {
    let (mut host, pids) = host("panic");
    assert_eq!(host.wait().unwrap().code(), Some(0));
    assert_gone(&pids);
}

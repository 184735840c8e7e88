//! The limits of an isolated server, tried out by a server. Needs bubblewrap and Python.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use karat_mcp::{CallError, Engine, Isolation, Options, ServerSpec, Session, StartError};
use serde_json::{Map, Value, json};

const PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/probe.py");

fn bwrap() -> Isolation {
    Isolation::by(Engine::Bwrap)
}

fn spec(isolate: Isolation) -> ServerSpec {
    let command = ["python3", PROBE].map(str::to_owned).to_vec();
    ServerSpec {
        isolate: Some(isolate),
        cwd: Some("/usr".into()),
        ..ServerSpec::from_command(command)
    }
}

async fn start(isolate: Isolation) -> Session {
    match Session::start(&spec(isolate), &Options::default()).await {
        Ok(session) => session,
        Err(error) => panic!("these tests need bubblewrap (apt install bubblewrap): {error}"),
    }
}

fn arguments(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("no object") };
    fields
}

/// The text of the answer and whether the tool failed.
async fn ask(session: &Session, tool: &str, input: Value) -> (String, bool) {
    let reply = session.call(tool, &arguments(input)).await.unwrap();
    (reply.texts().concat(), reply.is_error)
}

#[tokio::test]
async fn nothing_outside_can_be_written() {
    let session = start(bwrap()).await;
    let target = tempfile::tempdir().unwrap();
    let inside_target = target.path().join("file").display().to_string();
    for path in [
        "/etc/karat-was-here",
        "/usr/karat-was-here",
        PROBE,
        "/proc/sys/vm/swappiness",
        &inside_target,
    ] {
        let (said, failed) = ask(&session, "write", json!({"path": path})).await;
        assert!(failed, "{path}: {said}");
    }
    // Its own temporary folder is writable, and not visible outside.
    let (said, failed) = ask(&session, "write", json!({"path": "/tmp/karat-was-here"})).await;
    assert!(!failed, "{said}");
    assert!(!Path::new("/tmp/karat-was-here").exists());
    session.close().await;
}

#[tokio::test]
async fn only_mounted_folders_are_visible_and_only_writable_ones_can_be_changed() {
    let (open, shut, hidden) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&open, &shut, &hidden] {
        std::fs::write(folder.path().join("file"), "content").unwrap();
    }
    let isolation = Isolation {
        read: vec![shut.path().to_owned()],
        write: vec![open.path().to_owned()],
        ..bwrap()
    };
    let session = start(isolation).await;
    for (folder, readable, writable) in
        [(&open, true, true), (&shut, true, false), (&hidden, false, false)]
    {
        let path = folder.path().join("file").display().to_string();
        let (said, failed) = ask(&session, "read", json!({"path": path})).await;
        assert_eq!(!failed, readable, "{said}");
        let (said, failed) = ask(&session, "write", json!({"path": path})).await;
        assert_eq!(!failed, writable, "{said}");
    }
    assert_eq!(std::fs::read_to_string(open.path().join("file")).unwrap(), "x");
    assert_eq!(std::fs::read_to_string(shut.path().join("file")).unwrap(), "content");
    session.close().await;
}

#[tokio::test]
async fn secrets_of_the_machine_are_hidden() {
    let session = start(bwrap()).await;
    let (said, _) = ask(&session, "read", json!({"path": "/etc/shadow"})).await;
    assert!(!said.contains("root:"), "{said}");
    let (said, failed) = ask(&session, "listing", json!({"path": "/run"})).await;
    assert!(!failed && said.is_empty(), "{said}");
    let (variables, _) = ask(&session, "environment", json!({})).await;
    // Cargo sets variables for the tests; none of them is passed on.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(variables.contains("PATH") && !variables.contains("CARGO"), "{variables}");
    session.close().await;
}

#[tokio::test]
async fn the_network_is_available_only_if_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for network in [false, true] {
        let session = start(Isolation { network, ..bwrap() }).await;
        let (said, failed) = ask(&session, "connect", json!({"port": port})).await;
        assert_eq!(!failed, network, "{said}");
        let words = format!("network: {}", if network { "allowed" } else { "none" });
        assert!(session.isolation().contains(&words), "{:?}", session.isolation());
        session.close().await;
    }
}

#[tokio::test]
async fn a_fork_bomb_is_stopped_at_the_limit() {
    let session = start(Isolation { processes: Some(32), ..bwrap() }).await;
    let (said, failed) = ask(&session, "fork", json!({})).await;
    assert!(failed && said.contains("BlockingIOError"), "{said}");
    assert!(session.isolation().iter().any(|line| line.starts_with("processes: 32 (")));
    session.close().await;
}

#[tokio::test]
async fn a_memory_hog_is_stopped_at_the_limit() {
    let session = start(Isolation { memory_mb: Some(256), ..bwrap() }).await;
    let (said, failed) = ask(&session, "hog", json!({})).await;
    assert!(failed && said.contains("MemoryError"), "{said}");
    session.close().await;
}

#[tokio::test]
async fn a_large_file_is_stopped_at_the_limit() {
    let session = start(Isolation { file_mb: Some(1), ..bwrap() }).await;
    let input = json!({"path": "/tmp/large", "bytes": 2 << 20});
    let (said, failed) = ask(&session, "write", input).await;
    assert!(failed && said.contains("File too large"), "{said}");
    session.close().await;
}

#[tokio::test]
async fn endless_work_is_stopped_at_the_limit() {
    let session = start(Isolation { cpu_seconds: Some(1), ..bwrap() }).await;
    let error = session.call("spin", &Map::new()).await.unwrap_err();
    assert!(matches!(error, CallError::Closed { .. }), "{error}");
}

#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own_is_gone_after_the_session() {
    for closed in [true, false] {
        let session = start(bwrap()).await;
        let marker = format!("98765.{}{}", std::process::id(), u8::from(closed));
        ask(&session, "grandchild", json!({"marker": marker})).await;
        let deadline = Instant::now() + Duration::from_secs(10);
        while !runs(&marker) {
            assert!(Instant::now() < deadline, "it never ran");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if closed {
            session.close().await;
        } else {
            drop(session);
        }
        while runs(&marker) {
            assert!(Instant::now() < deadline, "it still runs");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// True if a process has the marker as an argument.
fn runs(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())
    })
}

#[tokio::test]
async fn a_missing_program_is_not_started() {
    let missing =
        ServerSpec { command: Some(vec!["no-such-program-karat".to_owned()]), ..spec(bwrap()) };
    let error = Session::start(&missing, &Options::default()).await.unwrap_err();
    assert!(matches!(error, StartError::NotStarted { .. }), "{error}");
    assert!(error.to_string().contains("no-such-program-karat"), "{error}");
}

#[tokio::test]
async fn a_server_without_isolation_describes_none() {
    let session = start(Isolation::by(Engine::None)).await;
    assert!(session.isolation().is_empty());
    session.close().await;
}

//! `--isolate` end to end: the real binary keeps a server that tries things away from a home with
//! secrets in it. Needs bubblewrap and Python.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::Scratch;

const KARAT: &str = env!("CARGO_BIN_EXE_karat");
const PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../karat-mcp/tests/it/support/probe.py");
const PYTHON: &str = "/usr/bin/python3";

/// Runs Karat in a home that has secrets and a project.
fn karat(scratch: &Scratch, arguments: &[&str], path: Option<&str>) -> (i32, String) {
    for (file, text) in [
        ("home/.ssh/id_ed25519", "PRIVATE KEY"),
        ("home/project/data.txt", "plain data"),
        ("home/other/notes.txt", "notes"),
    ] {
        let whole = scratch.path(file);
        std::fs::create_dir_all(whole.parent().unwrap()).unwrap();
        std::fs::write(whole, text).unwrap();
    }
    let mut command = Command::new(KARAT);
    command
        .args(arguments)
        .current_dir(scratch.path("home/project"))
        .env("HOME", scratch.path("home"));
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), said.into_owned())
}

fn suite(scratch: &Scratch, more: &str) {
    let home = scratch.path("home").display().to_string();
    let cases = format!(
        "test_cases:\n\
         - {{id: key, tool: read, input: {{path: {home}/.ssh/id_ed25519}}, error: tool, expect: {{contains: No such file}}}}\n\
         - {{id: project, tool: read, input: {{path: data.txt}}, expect: {{contains: plain data}}}}\n\
         - {{id: unwritten, tool: write, input: {{path: data.txt}}, error: tool}}\n\
         {more}"
    );
    let folder = scratch.path("home/project");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("suite.yaml"), cases).unwrap();
}

#[test]
fn an_isolated_server_sees_the_project_and_nothing_else_of_the_home() {
    let scratch = Scratch::new();
    let home = scratch.path("home").display().to_string();
    suite(
        &scratch,
        &format!("- {{id: mounted, tool: write, input: {{path: {home}/other/new}}}}\n"),
    );
    let mount = format!("{home}/other:rw");
    let (code, said) = karat(
        &scratch,
        &[
            "server",
            "test",
            "suite.yaml",
            "--isolate",
            "bwrap",
            "--mount",
            &mount,
            "--limit",
            "memory=1g,processes=64",
            "--",
            PYTHON,
            PROBE,
        ],
        None,
    );
    assert_eq!(code, 0, "{said}");
    assert!(scratch.path("home/other/new").exists());
    let report = std::fs::read(scratch.path("home/project/karat-report/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let in_force = report["reports"][0]["environment"]["isolation"].to_string();
    for words in ["bwrap", "network: none", "memory: 1024 MiB", "processes: 64 ("] {
        assert!(in_force.contains(words), "{in_force}");
    }
}

#[test]
fn the_flags_hold_for_the_server_that_the_suite_names_too() {
    let scratch = Scratch::new();
    suite(&scratch, &format!("mcp_server: {PYTHON} {PROBE}\n"));
    let (code, said) =
        karat(&scratch, &["server", "test", "suite.yaml", "--isolate", "bwrap"], None);
    assert_eq!(code, 0, "{said}");
    // The suite is about isolation: without it, the key is read.
    let (code, said) = karat(&scratch, &["server", "test", "suite.yaml"], None);
    assert_eq!(code, 1, "{said}");
    suite(&scratch, &format!("mcp_server: {{command: [{PYTHON}, {PROBE}], isolate: bwrap}}\n"));
    let (code, said) = karat(&scratch, &["server", "test", "suite.yaml"], None);
    assert_eq!(code, 0, "{said}");
}

/// A server whose one tool runs a piece of Python and answers with what it prints: the scripted server
/// cannot make any system call that a test asks for.
const RUNS: &str = r#"
import contextlib, io, json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "runs", "version": "1"}}
    elif message["method"] == "tools/call":
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                exec(message["params"]["arguments"]["code"], {})
            except BaseException as error:
                print(type(error).__name__, error)
        result = {"content": [{"type": "text", "text": said.getvalue()}]}
    else:
        result = {"tools": []}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Runs Python in an isolated server, started by a shell that does `before` first.
fn run_isolated(scratch: &Scratch, before: &str, code: &str) -> String {
    scratch.write("home/project/server.py", RUNS);
    std::fs::create_dir_all(scratch.path("home/.ssh")).unwrap();
    std::fs::write(scratch.path("home/.ssh/id_ed25519"), "PRIVATE KEY").unwrap();
    let input = serde_json::json!({"code": code}).to_string();
    let script = format!(
        "{before}\nexec {KARAT} server call --isolate bwrap --tool run --input \"$1\" -- {PYTHON} server.py"
    );
    let output = Command::new("/bin/sh")
        .args(["-c", &script, "sh", &input])
        .current_dir(scratch.path("home/project"))
        .env("HOME", scratch.path("home"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["content"][0]["text"].as_str().unwrap().trim().to_owned()
}

#[test]
fn a_descriptor_of_the_shell_does_not_reach_a_server() {
    let scratch = Scratch::new();
    let code = "import os\nprint(sorted(os.listdir('/proc/self/fd'), key=int)[:3])\n\
                try:\n print(os.listdir(9))\nexcept OSError as e:\n print('none', e.errno)";
    let said = run_isolated(&scratch, "exec 9<\"$HOME\"", code);
    assert!(said.ends_with("none 9"), "{said}");
}

#[test]
fn namespaces_keys_and_odd_sockets_are_refused() {
    let scratch = Scratch::new();
    let code = r#"
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    return "done" if result >= 0 else os.strerror(ctypes.get_errno())
x86 = os.uname().machine == "x86_64"
def number(on_x86, elsewhere):
    return on_x86 if x86 else elsewhere
print("unshare", call(number(272, 97), 0x10000000))
print("keyctl", call(number(250, 219), 0, -3, 0))
print("io_uring", call(425, 8, 0))
print("ptrace", call(number(101, 117), 0, 0, 0, 0))
print("mount", call(number(165, 40), 0, b"/tmp", 0, 0, 0))
try:
    socket.socket(40, socket.SOCK_STREAM); print("vsock done")
except OSError as error:
    print("vsock", error.strerror)
socket.socketpair(); socket.socket(socket.AF_INET, socket.SOCK_STREAM)
"#;
    let said = run_isolated(&scratch, ":", code);
    for line in [
        "unshare Operation not permitted",
        "keyctl Operation not permitted",
        "io_uring Function not implemented",
        "ptrace Operation not permitted",
        "mount Operation not permitted",
        "vsock Address family not supported by protocol",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(said.lines().count(), 6, "{said}");
}

#[test]
fn only_the_system_and_what_is_named_is_visible() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path("home/project")).unwrap();
    let socket = scratch.path("home/project/socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let code = r#"
import os, socket
for path in ("/etc/shadow", "/etc/shadow-", "/etc/gshadow-", "/var/lib", "/var/log", "/boot", "/sys/fs"):
    print(path, os.path.exists(path))
print("home", os.listdir(os.environ["HOME"]))
try:
    socket.socket(socket.AF_UNIX).connect("socket"); print("connected")
except OSError:
    print("not connected")
"#;
    let said = run_isolated(&scratch, ":", code);
    assert!(!said.contains("True"), "{said}");
    assert!(said.ends_with("home ['project']\nnot connected"), "{said}");
}

#[test]
fn no_server_outlives_karat() {
    // A daemon in a session of its own, and one in the group of Karat, found by an argument of theirs.
    let code = r#"
import os, subprocess, sys, time
mark = sys.argv[1]
def twice(how):
    if os.fork() == 0:
        how()
        if os.fork() == 0:
            os.execvp("python3", ["python3", "-c", "import time; time.sleep(600)", mark])
        os._exit(0)
    os.wait()
twice(os.setsid)
group = os.getpgid(os.getppid())
twice(lambda: os.setpgid(0, group))
subprocess.Popen(["python3", "-c", "import time; time.sleep(600)", mark])
open("started", "w").close()
time.sleep(600)
"#;
    for signal in ["KILL", "TERM"] {
        let scratch = Scratch::new();
        scratch.write("server.py", code);
        let mark = format!("karat-mark-{}-{signal}", std::process::id());
        let mut karat = Command::new(KARAT)
            .args(["server", "lint", "--", "python3", "server.py", &mark])
            .current_dir(scratch.path(""))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !scratch.path("started").exists() || running(&mark) < 4 {
            assert!(Instant::now() < deadline, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        let id = karat.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        karat.wait().unwrap();
        while running(&mark) > 0 {
            assert!(Instant::now() < deadline, "{signal}: {} left", running(&mark));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The number of processes with this argument, but for Karat.
fn running(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has_mark = |words: &[u8]| {
        let mut words = words.split(|byte| *byte == 0);
        words.next().is_some_and(|name| !name.ends_with(b"karat"))
            && words.any(|word| word == mark.as_bytes())
    };
    processes
        .filter(|process| std::fs::read(process.path().join("cmdline")).is_ok_and(|w| has_mark(&w)))
        .count()
}

#[test]
fn an_engine_that_is_not_there_is_not_measured() {
    let scratch = Scratch::new();
    let empty = scratch.path("").display().to_string();
    for (engine, more, expected) in [
        ("bwrap", vec![], "apt install bubblewrap"),
        ("docker", vec!["--image", "x"], "install Docker"),
    ] {
        let mut arguments = vec!["server", "lint", "--isolate", engine];
        arguments.extend(more);
        arguments.extend(["--", PYTHON, PROBE]);
        let (code, said) = karat(&scratch, &arguments, Some(&empty));
        assert_eq!(code, 3, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_cannot_be_isolated_is_bad_usage() {
    let scratch = Scratch::new();
    let command = ["--", PYTHON, PROBE];
    for (arguments, expected) in [
        (vec!["--isolate", "bwrap", "--url", "http://127.0.0.1:9/mcp"], "already running"),
        ([&["--isolate", "docker"], &command[..]].concat(), "needs an image"),
        ([&["--mount", "/usr"], &command[..]].concat(), "--isolate bwrap or docker"),
        ([&["--isolate", "bwrap", "--mount", "/no/such"], &command[..]].concat(), "/no/such"),
        ([&["--isolate", "bwrap", "--mount", "/run"], &command[..]].concat(), "docker.sock"),
        ([&["--isolate", "bwrap", "--limit", "memory=lots"], &command[..]].concat(), "memory=512m"),
    ] {
        let (code, said) = karat(&scratch, &[&["server", "lint"], &arguments[..]].concat(), None);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(expected), "{said}");
    }
}

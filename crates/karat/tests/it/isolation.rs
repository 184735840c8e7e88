//! `--isolate` end to end: the real binary keeps a server that tries things away from a home with
//! secrets in it. Needs bubblewrap and Python.

use std::process::Command;

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

//! Which server is meant, and how flags refine it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

mod common;

use serde_json::{Value, json};

use crate::common::{Ran, Scratch};

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/open_server.py");

/// One call of the server that asks, with these flags.
fn call(scratch: &Scratch, flags: &[&str], tool: &str, input: &Value) -> Ran {
    let input = input.to_string();
    let arguments = ["server", "call", "--tool", tool, "--input", &input];
    scratch.karat(&[&arguments, flags, &["--", "python3", OPEN]].concat())
}

#[test]
fn flags_that_the_server_could_not_heed_are_bad_input() {
    let scratch = Scratch::new();
    let offered = json!({});
    call(&scratch, &["--header", "A: b"], "offered", &offered).expect(2).says(&["--header", "url"]);
    call(&scratch, &["--cwd", "no/such"], "offered", &offered)
        .expect(2)
        .says(&["folder", "no/such"]);
    call(&scratch, &["-e", "A=${NO_SUCH_VARIABLE}"], "offered", &offered)
        .expect(2)
        .says(&["NO_SUCH_VARIABLE"]);
    let mount = ["--isolate", "bwrap", "--mount", "/no/such"];
    call(&scratch, &mount, "offered", &offered).expect(2).says(&["/no/such"]);
    for flag in [["-e", "A=b"], ["--cwd", "."]] {
        let url = ["server", "call", "--tool", "x", "--url", "http://127.0.0.1:1/mcp"];
        scratch.karat(&[&url[..], &flag].concat()).expect(2).says(&["-e and --cwd", "url"]);
    }
}

#[test]
fn flags_refine_the_server_of_a_suite_too() {
    let scratch = Scratch::new();
    scratch.write(
        "suite.yaml",
        format!(
            "mcp_server: {{command: [python3, {OPEN:?}]}}\n\
             cases: [{{id: a, tool: env, input: {{name: PLAIN_WORDS}}, expect: {{contains: a few words}}}}]\n"
        ),
    );
    let test = ["server", "test", "suite.yaml"];
    scratch.karat(&test).expect(1);
    scratch.karat(&[&test[..], &["-e", "PLAIN_WORDS=a few words"]].concat()).expect(0);
}

#[test]
fn a_server_is_found_by_its_name_where_files_of_servers_usually_lie() {
    let scratch = Scratch::new();
    scratch.write("home/x", "");
    let call = |more: &[&str]| {
        let words = ["server", "call", "--tool", "offered", "--server", "mine"];
        let mut command = scratch.command(&[&words, more].concat());
        Ran::from(command.env("HOME", scratch.path("home")).output().unwrap())
    };
    call(&[]).expect(2).says(&["mine", "--config"]);

    let file = |name: &str| {
        json!({"mcpServers": {
            name: {"command": "python3", "args": [OPEN]},
            "socket": {"type": "ws", "url": "ws://127.0.0.1:1"},
            "with-file": {"command": "x", "envFile": ".env"},
        }})
        .to_string()
    };
    scratch.write(".mcp.json", file("theirs"));
    call(&[]).expect(2).says(&[".mcp.json has socket, theirs, with-file"]);

    scratch.write(".cursor/mcp.json", file("mine"));
    let found = call(&[]).expect(0);
    assert!(found.stderr.contains(".cursor/mcp.json"), "{}", found.stderr);
    assert_eq!(call(&["-q"]).expect(0).stderr, "");

    scratch.write("home/.cursor/mcp.json", file("mine"));
    call(&[]).expect(2).says(&["several", "home/.cursor/mcp.json"]);
    // Entries that are no servers do not stand in the way, until they are asked for.
    call(&["--config", ".cursor/mcp.json"]).expect(0);
    let odd = ["server", "lint", "--config", ".mcp.json", "--server", "with-file"];
    scratch.karat(&odd).expect(2).says(&["with-file", "envFile"]);
}

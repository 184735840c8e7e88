//! The keys of adapters: the same for a program, a batch, an endpoint and a server, in every entry that has one.

use crate::common;

use common::Scratch;

/// An entry with an adapter: its table, its kind, and its own keys.
const ADAPTERS: [(&str, &str, &str); 12] = [
    (
        "retrieval",
        "command",
        "dataset = \"bundled:tools/v1\"\nsystem = { command = [\"none\", VALUE], env = { A = VALUE } }\n",
    ),
    (
        "retrieval",
        "http",
        "dataset = \"bundled:tools/v1\"\nsystem.http = { url = \"http://127.0.0.1:9/?q={query}\", headers = { A = \
         VALUE }, redirects = 1 }\n",
    ),
    (
        "retrieval",
        "mcp",
        "dataset = \"bundled:tools/v1\"\nsystem.mcp = { server = SERVER, tool = \"find\" }\n",
    ),
    (
        "detection",
        "command",
        "dataset = \"bundled:threats/v1\"\nsystem = { command = [\"none\", VALUE], env = { A = VALUE } }\n",
    ),
    (
        "detection",
        "batch",
        "dataset = \"bundled:threats/v1\"\nsystem = { batch = { command = [\"none\", \"{tools}\", VALUE], format = \
         \"sarif\", timeout_ms = 9000 }, env = { A = VALUE } }\n",
    ),
    (
        "detection",
        "http",
        "dataset = \"bundled:threats/v1\"\nsystem.http = { url = \"http://127.0.0.1:9/\", headers = { A = VALUE }, \
         redirects = 1, answer = { flagged = \"f\" } }\n",
    ),
    (
        "detection",
        "mcp",
        "dataset = \"bundled:threats/v1\"\nsystem.mcp = { server = SERVER, tool = \"scan\", arguments = { text = \
         \"{tool}\" }, answer = { flagged = \"f\" } }\n",
    ),
    (
        "resilience",
        "proxy",
        "dataset = \"bundled:worlds/v1\"\ndefence = { proxy = [\"none\", \"{server}\", VALUE], env = { A = VALUE } }\n",
    ),
    (
        "resilience",
        "guard",
        "dataset = \"bundled:worlds/v1\"\ndefence = { guard = [\"none\", VALUE], env = { A = VALUE } }\n",
    ),
    ("server", "server", "suite = \"suite.yaml\"\nserver = SERVER\n"),
    ("fuzz", "server", "server = SERVER\n"),
    ("attack", "server", "server = SERVER\n"),
];

/// The two ways to name a server.
const SERVERS: [&str; 2] = [
    "{ command = [\"none\", VALUE], env = { A = VALUE } }",
    "{ url = \"http://127.0.0.1:9/mcp\", headers = { A = VALUE } }",
];

/// The settings of entries that ask a system; those of a live server make no retries, which would hide flaws.
const ENTRY: &str = "timeout_ms = 900\nstart_timeout_ms = 900\n";
const ASKING: &str = "runs = 2\nconcurrency = 2\nretries = 1\nbackoff_ms = 1\n";

/// A scratch folder with a suite.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", "cases:\n  - {id: a, tool: echo}\n");
    scratch
}

/// The entries with this `VALUE`, after the name of the evaluation.
fn entries(value: &str) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    for (table, kind, own) in ADAPTERS {
        let servers = if own.contains("SERVER") { &SERVERS[..] } else { &[""] };
        for server in servers {
            let asking = if kind == "server" { "" } else { ASKING };
            let own = own.replace("SERVER", server).replace("VALUE", &format!("{value:?}"));
            let evaluation = if kind == "server" { "server" } else { table };
            let entry = format!("[[{table}]]\nname = \"x\"\n{ENTRY}{asking}{own}");
            entries.push((evaluation.to_owned(), entry));
        }
    }
    entries
}

#[test]
fn every_adapter_takes_the_same_keys() {
    let scratch = scratch();
    for (_, entry) in entries("${HOME}") {
        scratch.write("karat.toml", &entry);
        let ran = scratch.karat(&["baseline", "show"]);
        assert!(ran.stderr.is_empty(), "{entry}\n{}", ran.stderr);
        ran.expect(0);
    }
}

#[test]
fn a_variable_that_is_not_set_is_an_error_wherever_an_adapter_takes_one() {
    let scratch = scratch();
    let unset = "${KARAT_NO_SUCH_VARIABLE}";
    for (evaluation, entry) in entries(unset) {
        // One place at a time.
        for place in 0..entry.matches(unset).count() {
            let mut at = 0;
            let mut single = String::new();
            for (number, part) in entry.split(unset).enumerate() {
                if number > 0 {
                    single.push_str(if at == place { unset } else { "plain" });
                    at += 1;
                }
                single.push_str(part);
            }
            scratch.write("karat.toml", &single);
            let ran = scratch.karat(&[evaluation.as_str(), "run"]);
            let named = ran.stderr.contains("KARAT_NO_SUCH_VARIABLE is not set");
            assert!(ran.code == 2 && named, "{single}\n{} {}{}", ran.code, ran.stdout, ran.stderr);
        }
    }
}

#[test]
fn recordings_are_a_path_or_a_list_of_them_in_every_entry() {
    let scratch = Scratch::new();
    for entry in [
        "[[fuzz]]\nbuiltin = \"demo\"\n",
        "[[attack]]\nbuiltin = \"demo\"\n",
        "[[resilience]]\nformat = \"native\"\n",
    ] {
        for value in ["\"gone.jsonl\"", "[\"gone.jsonl\"]"] {
            let project = format!("{entry}name = \"x\"\nrecordings = {value}\n");
            scratch.write("karat.toml", &project);
            let ran = scratch.karat(&["baseline", "show"]).expect(2);
            ran.says(&["gone.jsonl"]);
            assert!(!ran.stderr.contains("expected"), "{project}{}", ran.stderr);
        }
        scratch.write("karat.toml", format!("{entry}name = \"x\"\nrecordings = 3\n"));
        let ran = scratch.karat(&["baseline", "show"]).expect(2);
        ran.says(&["a path or a list of paths"]);
    }
}

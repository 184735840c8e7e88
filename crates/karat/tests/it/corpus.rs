//! `karat corpus` on files: what changed, what is locked, and the next version of a dataset.

use crate::common;

use common::{Ran, Scratch};
use serde_json::{Value, json};

fn corpus(tools: &Value) -> String {
    json!({"server": {"name": "s", "instructions": "Ask first."}, "tools": tools}).to_string()
}

/// Two captured folders, of which the second has one tool more, one less and one reworded.
fn two() -> Scratch {
    let scratch = Scratch::new();
    let long = format!("{}Opens an issue.", "Words. ".repeat(30));
    let tools = json!([
        {"name": "open", "description": long, "inputSchema": {"type": "object", "properties": {"n": {"default": 1}}}},
        {"name": "gone", "description": "Goes."},
        {"name": "same", "description": "Stays.", "_meta": {"x": 1}},
    ]);
    scratch.write("a/tools/s.json", corpus(&tools));
    let tools = json!([
        {"name": "same", "_meta": {"x": 1}, "description": "Stays."},
        {"name": "open", "description": long.replace("Opens", "Creates\u{1b}[31m"), "inputSchema": {"type": "object", "properties": {"n": {"default": 2}}}},
        {"name": "new", "description": "Comes."},
    ]);
    scratch.write("b/tools/s.json", corpus(&tools));
    scratch
}

#[test]
fn a_diff_shows_every_field_that_changed_in_printable_text() {
    let scratch = two();
    let ran = scratch.karat(&["corpus", "diff", "a", "b"]).expect(0);
    insta::assert_snapshot!(ran.stdout);
    let ran = scratch.karat(&["corpus", "diff", "a", "b", "--exit-code"]).expect(1);
    assert_eq!(ran.stderr, "");
    let same = scratch.karat(&["corpus", "diff", "a", "a", "--exit-code"]).expect(0);
    assert_eq!(same.stdout, "0 added, 0 removed, 0 changed (0 reworded), 3 unchanged\n");
}

#[test]
fn a_diff_of_threat_corpora_is_by_entry() {
    let scratch = Scratch::new();
    let line = |id: &str, label: &str, description: &str| {
        format!(
            r#"{{"id": "{id}", "label": "{label}", "category": "x", "tool": {{"name": "t", "description": "{description}"}}}}"#
        )
    };
    let before = [
        line("a", "malicious", "Same."),
        line("b", "malicious", "Old."),
        line("c", "benign", "Goes."),
    ];
    let after = [
        line("a", "malicious", "Same."),
        line("b", "benign", "Old."),
        line("d", "benign", "Comes."),
    ];
    scratch.write("before.jsonl", before.join("\n"));
    scratch.write("after.jsonl", after.join("\n"));
    let ran =
        scratch.karat(&["corpus", "diff", "before.jsonl", "after.jsonl", "--exit-code"]).expect(1);
    let told = "1 added, 1 removed, 1 changed (0 reworded), 1 unchanged\n+ d  Comes.\n- c  Goes.\n~ b\n    \
                /label\n      - malicious\n      + benign\n";
    assert_eq!(ran.stdout, told);
    let bundled = ["corpus", "diff", "bundled:threats/v1", "bundled:threats/v2", "--json"];
    let diff = scratch.karat(&bundled).expect(0).json();
    assert_eq!(diff["after"]["entries"], 1258);
    assert!(!diff["added"].as_array().unwrap().is_empty());
    scratch.write("empty.jsonl", "");
    scratch.karat(&["corpus", "diff", "empty.jsonl", "after.jsonl"]).expect(2);
    let mixed = scratch.karat(&["corpus", "diff", "bundled:tools/v1", "after.jsonl"]).expect(2);
    assert!(mixed.stderr.contains("labelled entries"), "{}", mixed.stderr);
}

#[test]
fn a_corpus_of_lines_is_compared_as_any_other() {
    let scratch = Scratch::new();
    let line = |tool: &str, text: &str| {
        format!(r#"{{"server": "s", "tool": "{tool}", "description": "{text}"}}"#)
    };
    scratch.write("a.jsonl", [line("one", "Same."), line("two", "Old.")].join("\n"));
    scratch.write("b.json", format!("[{}, {}]", line("one", "Same."), line("two", "New.")));
    let ran = scratch.karat(&["corpus", "diff", "a.jsonl", "b.json"]).expect(0);
    assert!(
        ran.stdout.starts_with("0 added, 0 removed, 1 changed (1 reworded), 1 unchanged\n~ s:two")
    );
    scratch.write("c.json", "3");
    let ran = scratch.karat(&["corpus", "diff", "a.jsonl", "c.json"]).expect(2);
    ran.says(&["c.json", "expected an object with tools, or a list of tools"]);
}

#[test]
fn a_diff_as_json_has_both_sides() {
    let scratch = two();
    let diff = scratch.karat(&["corpus", "diff", "a", "b", "--json"]).expect(0).json();
    assert_eq!(diff["schema"], "karat.corpus-diff/1");
    assert_eq!(diff["added"][0]["id"], "s:new");
    assert_eq!(diff["removed"][0]["definition"]["description"], "Goes.");
    let fields = diff["changed"][0]["fields"].as_array().unwrap();
    assert_eq!(
        fields[1],
        json!({"path": "/inputSchema/properties/n/default", "before": 1, "after": 2})
    );
    assert_eq!(diff["unchanged"], 1);
}

#[test]
fn a_dataset_a_file_and_the_bundled_corpus_can_be_compared() {
    let scratch = two();
    scratch.write("c.json", scratch.read("a/tools/s.json"));
    scratch.karat(&["corpus", "diff", "c.json", "a", "--exit-code"]).expect(0);
    let bundled = ["corpus", "diff", "bundled:tools/v1", "bundled:tools/v1", "--json"];
    assert_eq!(scratch.karat(&bundled).expect(0).json()["before"]["tools"], 923);
    scratch.karat(&["corpus", "diff", "a", "nowhere"]).expect(2).says(&["nowhere"]);
    scratch.write("empty/x.txt", "");
    scratch.karat(&["corpus", "diff", "a", "empty"]).expect(2).says(&["empty", "tools/"]);
}

#[test]
fn a_lock_finds_what_is_missing_additional_and_changed() {
    let scratch = two();
    scratch.karat(&["corpus", "lock", "a", "--output", "lock.json"]).expect(0);
    let lock: Value = serde_json::from_str(&scratch.read("lock.json")).unwrap();
    assert_eq!(lock["schema"], "karat.lock/1");
    // printf '%s' '{"_meta":{"x":1},"description":"Stays.","name":"same"}' | sha256sum
    assert_eq!(
        lock["servers"]["s"]["tools"]["same"],
        "sha256:b6f78cce5053f6789780da684b2f49d93d83ee52b9298d4336f1ff58bc0d2f8a"
    );
    let ran = scratch.karat(&["corpus", "verify", "--lock", "lock.json", "a"]).expect(0);
    assert_eq!(ran.stdout, "1 server, 3 tools: all match the lock\n");
    let ran = scratch.karat(&["corpus", "verify", "--lock", "lock.json", "b"]).expect(2);
    assert_eq!(ran.stdout, "missing: s:gone\nadditional: s:new\nchanged: s:open\n");
    assert!(ran.stderr.contains("1 missing, 1 additional, 1 changed"), "{}", ran.stderr);
    let ran = scratch.karat(&["corpus", "verify", "--lock", "lock.json", "b", "--json"]).expect(2);
    assert_eq!(ran.json()["changed"], json!(["s:open"]));
}

#[test]
fn an_invalid_lock_is_refused() {
    let scratch = two();
    for (text, word) in [
        (r#"{"schema": "karat.lock/9", "servers": {"s": {"tools": {}}}}"#, "karat.lock/1"),
        (r#"{"schema": "karat.lock/1", "servers": {}}"#, "no tool"),
        (r#"{"schema": "karat.lock/1", "servers": {"s": {"tools": {"a": "md5:0"}}}}"#, "sha256"),
    ] {
        scratch.write("lock.json", text);
        let ran = scratch.karat(&["corpus", "verify", "--lock", "lock.json", "a"]).expect(2);
        ran.says(&["lock.json", word]);
    }
}

#[test]
fn freezing_a_snapshot_makes_the_next_version_and_leaves_the_last_alone() {
    let scratch = two();
    let freeze = |from: &str, more: &[&str]| {
        let mut arguments = vec![
            "corpus",
            "freeze",
            from,
            "--into",
            "data/set",
            "--licence",
            "CC0-1.0",
            "--made",
            "Test.",
        ];
        arguments.extend(more);
        scratch.karat(&arguments)
    };
    let label = |tool: &str| {
        json!({"id": "q", "query": "x", "labels": [{"tool_id": tool, "relevance": 2}]}).to_string()
    };
    scratch.write("a/golden/g.jsonl", label("s:same"));
    assert!(freeze("a", &[]).expect(0).stdout.starts_with("set v1: 2 files, sha256:"));
    let before = scratch.read("data/set/v1/manifest.toml");
    assert!(freeze("a", &[]).expect(0).stdout.contains("identical to v1"));
    let ran = freeze("b", &[]).expect(0);
    assert!(ran.stdout.contains("since v1: 1 added, 1 removed, 1 changed (1 reworded)"));
    assert_eq!(scratch.read("data/set/v2/golden/g.jsonl"), label("s:same"));
    assert_eq!(scratch.read("data/set/v1/manifest.toml"), before);
    scratch.karat(&["corpus", "diff", "data/set/v1", "a", "--exit-code"]).expect(0);

    scratch.write("other/golden/g.jsonl", label("s:gone"));
    let files = scratch.files();
    let ran = freeze("b", &["--golden", "other"]).expect(2);
    ran.says(&["s:gone", "not in the corpus", "--without-golden"]);
    // Queries that were asked for and are not there are not left out.
    for nothing in ["nowhere", "other/golden/g.jsonl"] {
        freeze("b", &["--golden", nothing]).expect(2).says(&[nothing, "no queries here"]);
    }
    assert_eq!(scratch.files(), files);
    freeze("b", &["--without-golden"]).expect(0);
    assert!(!scratch.path("data/set/v3/golden").exists());

    scratch.write("data/set/v3/tools/s.json", "{}");
    freeze("a", &[]).expect(2).says(&["v3", "s.json"]);
}

/// A frozen dataset in `NAME/v1` with one tool and one query, under this licence.
fn frozen(scratch: &Scratch, name: &str, licence: &str) -> String {
    let folder = format!("{name}/v1");
    let tools = json!([{"name": "a", "description": "Does it."}]);
    scratch.write(&format!("{folder}/tools/s.json"), corpus(&tools));
    let query = json!({"id": "q", "query": "x", "labels": [{"tool_id": "s:a", "relevance": 2}]});
    scratch.write(&format!("{folder}/golden/g.jsonl"), query.to_string());
    let freeze = ["corpus", "freeze", &folder, "--licence", licence, "--made", "By a test."];
    scratch.karat(&freeze).expect(0);
    folder
}

#[test]
fn a_dataset_that_is_frozen_again_keeps_its_licence_and_origin() {
    let scratch = Scratch::new();
    let folder = frozen(&scratch, "mine", "MIT");
    let before = scratch.read("mine/v1/manifest.toml");
    scratch.karat(&["corpus", "freeze", &folder, "--publish"]).expect(0);
    assert_eq!(scratch.read("mine/v1/manifest.toml"), before);
    scratch.karat(&["corpus", "freeze", &folder, "--licence", "CC0-1.0"]).expect(0);
    assert_eq!(scratch.read("mine/v1/manifest.toml"), before.replace("MIT", "CC0-1.0"));
}

#[test]
fn a_restricted_licence_stays_with_everything_that_is_made_of_the_data() {
    let scratch = Scratch::new();
    let restricted = "restricted: no licence is stated";
    let folder = frozen(&scratch, "theirs", restricted);
    let before = scratch.read("theirs/v1/manifest.toml");
    let freeze = |more: &[&str]| scratch.karat(&[&["corpus", "freeze"][..], more].concat());
    freeze(&[&folder]).expect(0);
    freeze(&[&folder, "--licence", "MIT"]).expect(2).says(&["stays with the data", restricted]);
    freeze(&[&folder, "--licence", "MIT", "--publish"]).expect(2).says(&["but not publication"]);
    freeze(&[&folder, "--publish"]).expect(2).says(&["but not publication"]);
    assert_eq!(scratch.read("theirs/v1/manifest.toml"), before);

    // As the snapshot of another dataset, as its queries, and as its version before.
    scratch.write("new/tools/s.json", corpus(&json!([{"name": "a"}, {"name": "b"}])));
    for (into, arguments) in
        [("one", &[&folder[..]][..]), ("two", &["new", "--golden", &folder]), ("theirs", &["new"])]
    {
        let arguments = [arguments, &["--into", into]].concat();
        freeze(&[&arguments[..], &["--licence", "MIT"]].concat()).expect(2).says(&[restricted]);
        freeze(&arguments).expect(0);
    }
    for made in ["one/v1", "two/v1", "theirs/v2"] {
        let manifest = scratch.read(&format!("{made}/manifest.toml"));
        assert!(manifest.contains(restricted), "{manifest}");
    }
    // From within the folder of the queries, their dataset is the same.
    let mut within =
        scratch.command(&["corpus", "freeze", "../../../new", "--into", "../../../three"]);
    within
        .args(["--golden", ".", "--licence", "MIT"])
        .current_dir(scratch.path("theirs/v1/golden"));
    Ran::from(within.output().unwrap()).expect(2).says(&["stays with the data", restricted]);
    // Without its queries nothing of it is left.
    let own = ["new", "--into", "theirs", "--without-golden", "--licence", "MIT", "--publish"];
    freeze(&own).expect(0);
}

//! The output for people shows the name of a project, the entries that it has, and errors with their place.

use crate::common;

use common::{BM25, GOLDEN, Scratch};

/// A project with a name, in a repository.
fn named() -> Scratch {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let project = scratch.read("karat.toml");
    scratch.write("karat.toml", format!("name = \"shop gateway\"\n{project}"));
    scratch.git(&["init", "--quiet", "--initial-branch", "tokenizer"]);
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "Split words at dots"]);
    scratch
}

#[test]
fn the_name_of_a_project_its_branch_and_its_commit_are_in_every_output() {
    let scratch = named();
    let outputs = ["page.html", "page.json", "page.md"];
    let mut arguments = vec!["check"];
    outputs.iter().for_each(|output| arguments.extend(["-o", output]));
    scratch.karat(&arguments).expect(0);
    let commit = scratch.git(&["rev-parse", "--short=10", "HEAD"]);
    for output in outputs {
        let text = scratch.read(output);
        assert!(text.contains("shop gateway"), "{output}: {text}");
        assert!(text.contains("tokenizer"), "{output} has no branch");
        assert!(text.contains(commit.trim()), "{output} has no commit");
    }
    let page = scratch.read("page.html");
    let title = page.split("</title>").next().unwrap();
    assert!(title.contains("shop gateway"), "{title}");
}

#[test]
fn a_project_hears_nothing_of_evaluations_that_it_does_not_have() {
    let scratch = named();
    let ran = scratch.karat(&["check", "-o", "page.html"]).expect(0);
    let page = scratch.read("page.html");
    let body = page.split("<main").nth(1).unwrap().split("<script").next().unwrap();
    for word in ["agent", "detection", "resilience", "not run"] {
        assert!(!ran.stdout.contains(word), "{word}: {}", ran.stdout);
        assert!(!ran.stderr.contains(word), "{word}: {}", ran.stderr);
        assert!(!body.to_lowercase().contains(word), "{word} in the report");
    }
}

#[test]
fn colours_that_are_asked_for_beat_the_variable_against_them() {
    let scratch = named();
    let coloured = |when: &str| {
        let ran = scratch.karat(&["check", "--color", when]).expect(0);
        ran.stdout.contains('\u{1b}') || ran.stderr.contains('\u{1b}')
    };
    assert!(!coloured("auto"));
    assert!(coloured("always"));
    assert!(scratch.karat(&["check", "--help"]).stdout.contains("auto respects NO_COLOR"));
}

#[test]
fn the_end_of_what_a_lost_system_wrote_is_shown_line_by_line() {
    let scratch = Scratch::new();
    let script = "for n in $(seq 1 400); do echo line $n of a long story >&2; done; echo the index is locked >&2; exit 3";
    scratch.project(GOLDEN, "", &format!("{{ command = [\"sh\", \"-c\", \"{script}\"] }}"));
    let ran = scratch.karat(&["check"]).expect(3);
    let text = format!("{}{}", ran.stdout, ran.stderr);
    assert!(text.contains("the index is locked"), "{text}");
    assert!(!text.contains("\\n"), "{text}");
    assert!(!text.contains("line 1 of"), "{text}");
}

#[test]
fn a_document_of_an_unknown_version_is_refused() {
    let scratch = named();
    scratch.karat(&["check", "-o", "now.json"]).expect(0);
    let now = scratch.read("now.json");
    for version in ["karat.check/0", "karat.check/99"] {
        scratch.write("other.json", now.replacen("karat.check/1", version, 1));
        let ran = scratch.karat(&["compare", "other.json", "now.json"]).expect(2);
        ran.says(&["other.json", version]);
    }
}

#[test]
fn a_wrong_gate_is_named_with_its_line() {
    let scratch = Scratch::new();
    let gate = "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.6, max = 0.2 }\n";
    scratch.project(GOLDEN, gate, BM25);
    let line =
        scratch.read("karat.toml").lines().position(|line| line.contains("mrr")).unwrap() + 1;
    let ran = scratch.karat(&["check"]).expect(2);
    ran.says(&[&format!("karat.toml:{line}"), "mrr"]);
}

#[test]
fn a_dataset_is_frozen_for_a_first_try_without_a_word_about_it() {
    let scratch = named();
    let snapshot = scratch.read("tools.json");
    scratch.write("data/shop/v1/tools.json", snapshot);
    scratch.write("data/shop/v1/golden/dev.jsonl", GOLDEN);
    scratch.karat(&["corpus", "freeze", "data/shop/v1"]).expect(0);
    assert!(scratch.read("data/shop/v1/manifest.toml").contains("unstated"));
}

#[test]
fn the_name_of_an_output_commands_no_terminal() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let name = "a\u{1b}[31m.md";
    for arguments in [
        &["check", "-o", name][..],
        &["retrieval", "run", "-o", name],
        &["init", name, "--for", "proxy"],
    ] {
        let ran = scratch.karat(arguments).expect(0);
        assert!(!ran.stdout.contains('\u{1b}'), "{arguments:?}: {:?}", ran.stdout);
        assert!(ran.stdout.contains("[31m.md"), "{arguments:?}: {}", ran.stdout);
        let _ = std::fs::remove_file(scratch.path(name));
    }
}

#[test]
fn an_empty_name_of_a_case_or_program_is_refused() {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", "cases:\n  - {id: one, tool: add}\n  - {id: '', tool: add}\n");
    let test = ["server", "test", "suite.yaml", "--", env!("CARGO_BIN_EXE_karat"), "demo-server"];
    scratch.karat(&test).expect(2).says(&["suite.yaml", "the id of case 2 is empty"]);
    scratch.project(GOLDEN, "", "{ command = [\"\", \"x\"] }");
    scratch.karat(&["check"]).expect(2).says(&["the name of the program is empty"]);
}

#[test]
fn help_and_version_that_cannot_be_written_are_an_error() {
    for arguments in [&["--help"][..], &["--version"], &["--version", "-v"], &["check", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_karat"));
        let output = command.args(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("cannot write the output"), "{arguments:?}: {said}");
    }
    let scratch = Scratch::new();
    assert!(scratch.karat(&["--version"]).expect(0).stdout.starts_with("karat "));
    assert_eq!(scratch.karat(&["check", "--no-such-option"]).expect(2).stdout, "");
}

#[test]
fn a_mistake_is_answered_with_the_remedy() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let evaluations = ["\"nope\"", "server, agent, retrieval, detection, resilience"];
    scratch.karat(&["check", "--evaluation", "nope"]).expect(2).says(&evaluations);
    scratch.karat(&["history", "list", "--db", "."]).expect(2).says(&["it is a folder"]);
    let call = ["server", "call", "--tool", "add", "--input", "nope.json", "--", "no-such-program"];
    scratch.karat(&call).expect(2).says(&["--input @FILE"]);
}

#[test]
fn one_of_a_kind_is_counted_in_the_singular() {
    let scratch = Scratch::new();
    scratch.write(
        "tools.json",
        r#"{"tools": [{"name": "send", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}]}"#,
    );
    let said = scratch.karat(&["server", "lint", "--tools", "tools.json", "--fail-on", "never"]);
    let said = said.expect(0).stdout;
    assert!(said.contains(": 1 tool, "), "{said}");
    for word in ["1 errors", "1 warnings", "1 notes"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
}

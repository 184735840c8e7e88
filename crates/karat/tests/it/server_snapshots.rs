//! Snapshots of a suite end to end: missing, written, held, changed, accepted.

use crate::common::{Ran, Scratch};

const KARAT: &str = env!("CARGO_BIN_EXE_karat");
const SUITE: &str = r#"
name: shots
cases:
  - {id: sum, tool: add, input: {a: 2, b: 3}, expect: {result: $, snapshot: true}}
  - id: note
    tool: keep_note
    input: {text: one}
    save: {note: $.id}
    expect: [{json: $, snapshot: {redact: [$.id]}}, {contains: id}]
    then: [{tool: read_note, input: {id: "${note}"}, expect: {snapshot: true}}]
  - {id: gone, tool: read_note, input: {id: 99}, error: tool, expect: {snapshot: {redact_matches: ['\d+']}}}
  - {id: plain, tool: echo, input: {text: x}, expect: {contains: x}}
"#;

fn run(scratch: &Scratch, suite: &str, more: &[&str]) -> Ran {
    scratch.write("shots.yaml", suite);
    let mut arguments = vec!["server", "test", "shots.yaml"];
    arguments.extend(more);
    arguments.extend(["--", KARAT, "demo-server"]);
    scratch.karat(&arguments)
}

fn snapshots(scratch: &Scratch) -> Vec<String> {
    let mut files = scratch.files();
    files.retain(|file| file.starts_with("shots.snapshots/"));
    files
}

#[test]
fn a_missing_snapshot_fails_and_is_not_written_on_the_side() {
    let scratch = Scratch::new();
    let ran = run(&scratch, SUITE, &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let report = scratch.read("karat-report/report.json");
    assert!(report.contains("has no snapshot in shots.snapshots/sum.json"), "{report}");
    assert!(report.contains("run again with --update"), "{report}");
    assert_eq!(snapshots(&scratch), [] as [String; 0]);
}

#[test]
fn an_update_writes_them_and_the_next_run_is_held_to_them() {
    let scratch = Scratch::new();
    let ran = run(&scratch, SUITE, &["--update"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("snapshots of 3 cases written"), "{}", ran.stdout);
    let files = snapshots(&scratch);
    assert_eq!(
        files,
        ["shots.snapshots/gone.json", "shots.snapshots/note.json", "shots.snapshots/sum.json"]
    );
    let written: Vec<String> = files.iter().map(|file| scratch.read(file)).collect();
    assert!(written[0].contains("there is no note [redacted]"), "{}", written[0]);
    assert!(written[1].contains(r#""then 1.1": "one""#), "{}", written[1]);
    assert!(written[2].contains(r#""sum": 5.0"#), "{}", written[2]);

    assert_eq!(run(&scratch, SUITE, &[]).code, 0);
    // Again: the same bytes, and nothing is said to have changed.
    let ran = run(&scratch, SUITE, &["--update"]);
    assert!(ran.stdout.contains("snapshots of 0 cases written, of 3 unchanged"), "{}", ran.stdout);
    let again: Vec<String> = files.iter().map(|file| scratch.read(file)).collect();
    assert_eq!(written, again);
}

#[test]
fn a_change_is_shown_by_its_place_until_it_is_accepted() {
    let scratch = Scratch::new();
    assert_eq!(run(&scratch, SUITE, &["--update"]).code, 0);
    let changed = SUITE.replace("a: 2, b: 3", "a: 2, b: 4");
    let ran = run(&scratch, &changed, &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let report = scratch.read("karat-report/report.json");
    assert!(report.contains("$.structuredContent.sum was 5.0, is 6.0"), "{report}");

    // Only the case that is named is accepted.
    let ran = run(&scratch, &changed, &["--update", "--case", "sum"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(run(&scratch, &changed, &[]).code, 0);
}

#[test]
fn what_would_fail_anyway_is_not_accepted() {
    let scratch = Scratch::new();
    let suite = "cases:\n  - {id: bad, tool: read_note, input: {id: 5}, expect: {snapshot: true}}\n  - {id: unsteady, tool: keep_note, input: {text: x}, repeat: 3, expect: {json: $.id, snapshot: true}}\n  - {id: nowhere, tool: echo, input: {text: x}, expect: {json: $.a, snapshot: true}}\n";
    let ran = run(&scratch, suite, &["--update"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    for words in [
        "no snapshot written for bad: ended with a tool error",
        "no snapshot written for unsteady: call.1 differs between attempts",
        "no snapshot written for nowhere: the answer has no data",
    ] {
        let report = scratch.read("karat-report/report.json");
        assert!(report.contains(words), "{words}: {report}");
    }
    assert_eq!(snapshots(&scratch), [] as [String; 0]);
}

#[test]
fn a_snapshot_that_is_torn_or_of_another_case_is_bad_input() {
    let scratch = Scratch::new();
    assert_eq!(run(&scratch, SUITE, &["--update"]).code, 0);
    let sum = scratch.read("shots.snapshots/sum.json");
    scratch.write("shots.snapshots/note.json", sum);
    let ran = run(&scratch, SUITE, &[]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("note.json") && ran.stderr.contains("\"sum\""), "{}", ran.stderr);
    scratch.write("shots.snapshots/note.json", "{\"schema\": \"karat");
    assert_eq!(run(&scratch, SUITE, &[]).code, 2);
}

#[test]
fn an_orphaned_snapshot_is_reported() {
    let scratch = Scratch::new();
    assert_eq!(run(&scratch, SUITE, &["--update"]).code, 0);
    let without = SUITE.lines().filter(|line| !line.contains("id: gone")).collect::<Vec<_>>();
    let ran = run(&scratch, &format!("{}\n", without.join("\n")), &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 snapshot belongs to no case"), "{}", ran.stdout);
}

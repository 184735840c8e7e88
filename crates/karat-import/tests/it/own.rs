//! A benchmark of the user's own: a file of outcomes and an entry.

use crate::{check, near, value};

fn project(outcomes: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let entry = "[[outcomes]]\nname = \"mine\"\noutcomes = \"runs.jsonl\"\ngate.max_errors = 0.5\n";
    std::fs::write(folder.path().join("karat.toml"), entry).unwrap();
    std::fs::write(folder.path().join("runs.jsonl"), outcomes).unwrap();
    folder
}

#[test]
fn a_file_of_outcomes_is_enough() {
    let folder = project(
        "{\"task\": \"a\", \"success\": true, \"tags\": {\"area\": \"x\"}}\n\
         {\"task\": \"a\", \"success\": false}\n\
         {\"task\": \"b\", \"error\": \"time-out\"}\n{\"task\": \"b\", \"success\": true}\n",
    );
    let reports = check(folder.path()).unwrap();
    near(value(&reports[0], "task.success"), 0.75);
    near(value(&reports[0], "run.failed"), 0.25);
    assert_eq!(reports[0].slices[0].value, "x");
    assert_eq!(reports[0].evaluation.name(), "agent");
}

#[test]
fn rows_that_say_nothing_or_come_twice_are_refused() {
    let error = check(project("{\"task\": \"a\"}\n").path()).unwrap_err();
    assert!(error.contains("neither `success` nor `error`"), "{error}");
    let twice = "{\"task\": \"a\", \"trial\": 1, \"success\": true}\n".repeat(2);
    let error = check(project(&twice).path()).unwrap_err();
    assert!(error.contains("trial 1 of task \"a\" is listed twice"), "{error}");
    let error = check(project("{\"task\": \"a\", \"error\": \"gone\"}\n").path()).unwrap_err();
    assert!(error.contains("none of 1 runs"), "{error}");
}

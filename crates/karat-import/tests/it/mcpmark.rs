use karat_import::{find, import};

use crate::{Copy, check, metric, near, report, value};

/// A result file with the outcome of each run: `y`, `n`, or `e` for an error.
fn result(service: &str, outcomes: &str) -> String {
    let runs: Vec<String> = outcomes
        .chars()
        .enumerate()
        .map(|(at, outcome)| {
            let error = if outcome == 'e' { "\"429 Too Many Requests\"" } else { "null" };
            format!(
                "\"run-{}\": {{\"success\": {}, \"error_message\": {error}, \"execution_time\": 2.5, \
                 \"token_usage\": {{\"total_tokens\": 100}}, \"turn_count\": 3}}",
                at + 1,
                outcome == 'y'
            )
        })
        .collect();
    format!("{{\"service\": \"{service}\", \"task\": \"t\", \"runs\": {{{}}}}}", runs.join(", "))
}

fn two_models() -> Copy {
    let copy = Copy::new(&[("README.md", "results")]);
    let of = |model: &str, task: &str| format!("model_results/{model}/{task}.json");
    for (model, a, b, c) in
        [("gpt-5.1", "yyyy", "ynyn", "nnnn"), ("slow_1", "yyyy", "nnee", "nyee")]
    {
        copy.write(&of(model, "papers__a"), &result("filesystem", a));
        copy.write(&of(model, "papers__b"), &result("filesystem", b));
        copy.write(&of(model, "chinook__c"), &result("postgres", c));
    }
    copy
}

#[test]
fn rates_are_means_over_runs_and_errors_count_as_failures() {
    let copy = two_models();
    copy.write(
        "summary.json",
        r#"{"k": 4, "overall": {"gpt-5.1": {"pass@1": {"avg": 0.5, "std": 0.1667}, "pass@4": 0.6667,
            "pass^4": 0.3333}, "slow_1": {"pass@1": {"avg": 0.4168, "std": 0.1443}}},
            "postgres": {"gpt-5.1": {"pass@4": 0.0}}}"#,
    );
    let reports = copy.reports("mcpmark");
    let good = report(&reports, "gpt-5.1");
    near(value(good, "mcpmark.pass@1"), 0.5);
    let runs: Vec<f64> =
        metric(good, None, "mcpmark.pass@1").per_run.iter().map(|run| run.unwrap()).collect();
    assert_eq!(runs, [2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0, 1.0 / 3.0]);
    near(value(good, "mcpmark.std"), 1.0 / 6.0);
    near(value(good, "mcpmark.pass@4"), 2.0 / 3.0);
    near(value(good, "mcpmark.pass^4"), 1.0 / 3.0);
    near(metric(good, Some("service=postgres"), "mcpmark.pass@4").value, 0.0);
    near(metric(good, Some("service=filesystem"), "mcpmark.pass@1").value, 0.75);
    assert_eq!(good.warnings, ["5 of 5 published figures are reproduced"]);

    let slow = report(&reports, "slow_1");
    near(value(slow, "mcpmark.pass@1"), 5.0 / 12.0);
    // Karat leaves out the four runs that ended with an error.
    near(value(slow, "task.success"), (1.0 + 0.0 + 0.5) / 3.0);
    near(value(slow, "run.failed"), 1.0 / 3.0);
    near(value(slow, "run.tokens"), 100.0);
    let note = &slow.warnings[0];
    assert!(note.starts_with("4 of 12 runs failed") && note.contains("0.4167"), "{note}");
    assert!(slow.warnings[1].contains("1 of 2 published figures"), "{}", slow.warnings[1]);
    assert_eq!(good.dataset.digest, slow.dataset.digest);
    assert!(slow.controls.iter().all(|control| control.ok));
}

#[test]
fn earlier_files_with_nested_results_and_one_run_are_read() {
    let nested = r#"{"task_name": "papers__a", "service": "github", "model": "m", "runs": {"run-1":
        {"agent_execution_time": 1.5, "execution_result": {"success": true, "error_message": null}}}}"#;
    let copy = Copy::new(&[("model_results/m/papers__a.json", nested)]);
    let reports = copy.reports("mcpmark");
    near(value(&reports[0], "mcpmark.pass@1"), 1.0);
    assert_eq!(value(&reports[0], "mcpmark.pass@4"), None);
    assert!(metric(&reports[0], None, "mcpmark.pass@4").undefined.is_some());
    near(value(&reports[0], "run.ms"), 1500.0);
}

/// Earlier files have the words of the verifier where later ones have errors alone.
#[test]
fn the_words_of_a_verifier_in_an_earlier_file_are_a_verdict() {
    let nested = |task: &str, message: &str| {
        format!(
            r#"{{"task_name": "papers__{task}", "service": "playwright", "model": "m", "runs": {{"run-1":
            {{"execution_result": {{"success": false, "error_message": "{message}"}}}}}}}}"#
        )
    };
    let copy = Copy::new(&[]);
    for (task, message) in [
        ("a", "|\\n| Answer: out of quota...\\n| ✗ CSV validation failed: header mismatch"),
        ("b", "Verification failed: expected 3 rows"),
        ("c", "litellm.RateLimitError: 429"),
    ] {
        copy.write(&format!("model_results/m/papers__{task}.json"), &nested(task, message));
    }
    let reports = copy.reports("mcpmark");
    near(value(&reports[0], "run.failed"), 1.0 / 3.0);
    assert_eq!(metric(&reports[0], None, "task.success").n, 2);
    near(value(&reports[0], "task.success"), 0.0);
    near(value(&reports[0], "mcpmark.pass@1"), 0.0);
}

#[test]
fn wrong_files_are_refused_with_what_was_expected_and_found() {
    let copy = Copy::new(&[("notes.txt", "x")]);
    let message = copy.refused("mcpmark");
    assert!(
        message.contains("model_results/<model>") && message.contains("notes.txt"),
        "{message}"
    );

    let copy = two_models();
    copy.write("model_results/gpt-5.1/papers__a.json", "{\"service\": \"x\", \"runs\": {\"run");
    let message = copy.refused("mcpmark");
    assert!(message.contains("papers__a.json:1") && message.contains("\"runs\""), "{message}");

    copy.write("model_results/gpt-5.1/papers__a.json", "{\"service\": \"x\", \"trials\": []}");
    let message = copy.refused("mcpmark");
    assert!(message.contains("runs") && message.contains("expected a result"), "{message}");

    copy.write("model_results/gpt-5.1/papers__a.json", "");
    assert!(copy.refused("mcpmark").contains("it is empty"));

    std::fs::remove_file(copy.source().join("model_results/gpt-5.1/papers__a.json")).unwrap();
    let message = copy.refused("mcpmark");
    assert!(message.contains("gpt-5.1 has outcomes for 2 of 3 tasks"), "{message}");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\n";
    copy.write("model_results/gpt-5.1/papers__a.json", pointer);
    assert!(copy.refused("mcpmark").contains("git lfs pull"));
}

#[test]
fn a_batch_of_its_own_is_not_compared_with_the_first() {
    let copy = two_models();
    copy.write("verified/model_results/new/papers__a.json", &result("filesystem", "y"));
    copy.write(
        "verified/summary.json",
        r#"{"overall": {"new": {"pass@1": {"avg": 1.0, "std": 0.0}}}, "filesystem": {"new": {"pass@1": 1.0}}}"#,
    );
    copy.write("logs/summary.json", r#"{"overall": {"new": {"pass@1": {"avg": 0.5}}}}"#);
    let reports = copy.reports("mcpmark");
    let (old, new) = (report(&reports, "gpt-5.1"), report(&reports, "new"));
    assert_ne!(old.dataset.digest, new.dataset.digest);
    // One run has no spread.
    near(value(new, "mcpmark.std"), 0.0);
    assert_eq!(new.warnings, ["3 of 3 published figures are reproduced"]);
}

#[test]
fn a_model_of_two_batches_has_a_report_in_each() {
    let copy = two_models();
    copy.write("verified/model_results/gpt-5.1/papers__a.json", &result("filesystem", "n"));
    copy.write("verified/summary.json", r#"{"overall": {"gpt-5.1": {"pass@1": {"avg": 0.0}}}}"#);
    let reports = copy.reports("mcpmark");
    near(value(report(&reports, "gpt-5.1"), "mcpmark.pass@1"), 0.5);
    let verified = report(&reports, "gpt-5.1.verified");
    near(value(verified, "mcpmark.pass@1"), 0.0);
    assert_eq!(verified.warnings, ["1 of 1 published figures are reproduced"]);
}

#[test]
fn a_run_that_is_missing_is_half_a_download() {
    let copy = two_models();
    copy.write("model_results/slow_1/papers__a.json", &result("filesystem", "yyy"));
    let message = copy.refused("mcpmark");
    assert!(message.contains("slow_1 has fewer than 4 runs of 1 of 3 tasks"), "{message}");
    import(find("mcpmark").unwrap(), &[copy.source()], &copy.target(), true).unwrap();
    let reports = check(&copy.target()).unwrap();
    // Three runs say nothing on four.
    assert_eq!(metric(report(&reports, "slow_1"), None, "mcpmark.pass^4").n, 2);
}

#[test]
fn renamed_and_misplaced_files_are_refused() {
    let stated = |model: &str, task: &str| {
        let text = result("filesystem", "yyyy");
        let text = text.replacen('{', &format!("{{\"model\": \"{model}\", "), 1);
        text.replace("\"t\"", &format!("\"{task}\""))
    };
    let copy = Copy::new(&[("model_results/m/papers__a.json", &stated("m", "papers__b"))]);
    let message = copy.refused("mcpmark");
    assert!(message.contains("expected the result of papers__a"), "{message}");
    assert!(message.contains("found that of papers__b"), "{message}");

    let copy = Copy::new(&[
        ("model_results/m/papers__a.json", &stated("m", "papers__a")),
        ("model_results/m/papers__b.json", &stated("other", "papers__b")),
    ]);
    let message = copy.refused("mcpmark");
    assert!(message.contains("a result of m") && message.contains("one of other"), "{message}");

    let folder = |name: &str, model: &str| {
        Copy::new(&[(&format!("model_results/{name}/papers__a.json"), &stated(model, "papers__a"))])
    };
    let message = folder("my-o3", "o3").refused("mcpmark");
    assert!(message.contains("expected results of my-o3"), "{message}");
    assert!(message.contains("found runs of o3"), "{message}");
    // A setting behind the name, a vendor before it, and the name of the published table are accepted.
    for (name, model) in [("gpt-5-high", "gpt-5"), ("gpt-4.1", "openai/gpt-4-1")] {
        let notes = folder(name, model).import("mcpmark").unwrap().notes;
        let expected =
            format!("1 folders are not named as their model: {name} has results of {model}");
        assert_eq!(notes, [expected]);
    }
    let copy = folder("k2", "kimi");
    copy.write("summary.json", r#"{"overall": {"k2": {"pass@1": 1.0}, "gone": {"pass@1": 1.0}}}"#);
    let notes = copy.import("mcpmark").unwrap().notes;
    assert_eq!(notes.len(), 2);
    let missing = "1 published figures were not compared: no outcomes for gone";
    assert!(notes.iter().any(|note| note == missing), "{notes:?}");

    // The files of one model by themselves name it.
    let copy = Copy::new(&[("papers__a.json", &stated("m-1", "papers__a"))]);
    near(value(report(&copy.reports("mcpmark"), "m-1"), "mcpmark.pass^4"), 1.0);
}

#[test]
fn a_summary_of_another_kind_is_refused() {
    let copy = two_models();
    copy.write("summary.json", r#"{"models": []}"#);
    let message = copy.refused("mcpmark");
    assert!(message.contains("MCPMark's summary.json") && message.contains("models"), "{message}");
    copy.write("summary.json", r#"{"overall": {"gpt-5.1": {"pass@1": "50 %"}}}"#);
    let message = copy.refused("mcpmark");
    assert!(message.contains("overall, gpt-5.1: pass@1 \"50 %\""), "{message}");
}

/// The published mean of 38, 38, 39 and 39 successes of 127 is 0.3032, although 154 ÷ 508 is 0.30315 less
/// a little: the rate of each run is rounded before.
#[test]
fn figures_that_were_rounded_on_the_way_are_reproduced() {
    let copy = Copy::new(&[(
        "summary.json",
        r#"{"overall": {"m": {"pass@1": {"avg": 0.3032, "std": 0.0039}}}}"#,
    )]);
    for task in 0..127 {
        let outcomes = [38, 38, 39, 39].map(|done| if task < done { 'y' } else { 'n' });
        let outcomes: String = outcomes.iter().collect();
        let file = format!("model_results/m/papers__{task}.json");
        copy.write(&file, &result("filesystem", &outcomes));
    }
    let reports = copy.reports("mcpmark");
    near(value(&reports[0], "mcpmark.pass@1"), 154.0 / 508.0);
    assert_eq!(reports[0].warnings, ["2 of 2 published figures are reproduced"]);
}

#[test]
fn two_shapes_under_one_model_are_refused() {
    let nested = r#"{"service": "s", "runs": {"run-1": {"execution_result": {"success": true}}}}"#;
    let copy = Copy::new(&[
        ("model_results/m/papers__a.json", nested),
        ("model_results/m/papers__b.json", &result("s", "y")),
    ]);
    let message = copy.refused("mcpmark");
    assert!(
        message.contains("papers__b.json: expected verdicts in `execution_result`"),
        "{message}"
    );
    assert!(message.contains("papers__a.json; found verdicts in the runs"), "{message}");
}

#[test]
fn models_keep_their_names_and_are_told_apart() {
    let names = ["Kimi K2 (模型)", "Kimi K2 (型模)", "a b", "a_b"];
    let copy = Copy::new(&[]);
    for name in names {
        copy.write(&format!("model_results/{name}/papers__a.json"), &result("s", "y"));
    }
    let reports = copy.reports("mcpmark");
    let mut found: Vec<&str> = reports.iter().map(|report| report.system.name.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, ["Kimi K2 (型模)", "Kimi K2 (模型)", "a b", "a_b"]);
    let ids: std::collections::BTreeSet<&str> =
        reports.iter().map(|report| report.name.as_str()).collect();
    assert_eq!(ids.len(), 4);
    // A name does not depend on which others there are.
    let alone = Copy::new(&[("model_results/Kimi K2 (型模)/papers__a.json", &result("s", "y"))]);
    assert!(ids.contains(alone.reports("mcpmark")[0].name.as_str()));
}

#[test]
fn files_of_the_operating_system_and_links_are_counted() {
    let copy = Copy::new(&[
        ("model_results/m/papers__a.json", &result("s", "y")),
        ("model_results/m/._papers__a.json", "\u{0}\u{5}"),
        ("model_results/.DS_Store", "x"),
        ("__MACOSX/model_results/m/papers__b.json", "x"),
    ]);
    let imported = copy.import("mcpmark").unwrap();
    let skipped: Vec<_> = imported.skipped.into_iter().collect();
    let reason = "a file of the operating system (__MACOSX, ._*, .DS_Store)".to_owned();
    assert_eq!(skipped, [(reason, 3)]);
}

#[cfg(unix)]
#[test]
fn a_folder_of_links_says_that_they_are_not_followed() {
    let copy = Copy::new(&[("model_results/m/papers__a.json", "x")]);
    let file = copy.source().join("model_results/m/papers__a.json");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    let message = copy.refused("mcpmark");
    assert!(message.contains("no files here; 1 × a link, which is not followed"), "{message}");
}

#[cfg(unix)]
#[test]
fn an_archive_may_divide_names_by_backslashes() {
    let copy = Copy::new(&[("copy.txt", "")]);
    let packed = tempfile::tempdir().unwrap();
    for name in ["model_results\\m\\papers__a.json", "..\\..\\papers__b.json"] {
        std::fs::write(packed.path().join(name), result("s", "y")).unwrap();
    }
    std::fs::remove_file(copy.source().join("copy.txt")).unwrap();
    let archive = copy.source().join("results.tar");
    let mut tar = std::process::Command::new("tar");
    tar.arg("cf").arg(&archive).arg("-C").arg(packed.path()).arg(".");
    assert!(tar.status().unwrap().success());
    let imported = copy.import("mcpmark").unwrap();
    assert_eq!(imported.entries, ["m"]);
    assert_eq!(imported.skipped["a file of an archive whose name leads out of it"], 1);
}

#[test]
fn tables_have_the_names_of_the_source() {
    let result = |done: bool| {
        format!("{{\"service\": \"s\", \"runs\": {{\"run-1\": {{\"success\": {done}}}}}}}")
    };
    let copy = Copy::new(&[
        ("model_results/模型/g__t.json", &result(true)),
        ("model_results/型模/g__t.json", &result(false)),
        ("model_results/plain/g__t.json", &result(false)),
    ]);
    let reports = copy.reports("mcpmark");
    let labels: Vec<_> = reports.iter().map(|report| report.label().into_owned()).collect();
    for name in ["模型", "型模", "plain"] {
        assert!(labels.contains(&name.to_owned()), "{labels:?}");
    }
    let table = &karat_core::leaderboard::of_recorded(&reports)[0];
    assert_eq!(table.rows[0].shown(), "模型");
    assert!(table.rows[0].name.starts_with("system-"), "{}", table.rows[0].name);
    assert_eq!(table.label(&table.pairs[0].better), "模型");
}

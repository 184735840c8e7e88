//! `karat import` and what follows from it.

use crate::common::Scratch;

/// Three trials of three tasks by two models.
fn copy(scratch: &Scratch) {
    for (model, outcomes) in [("good", ["111", "101", "111"]), ("bad", ["000", "001", "000"])] {
        for (task, outcomes) in outcomes.iter().enumerate() {
            let runs: Vec<String> = outcomes
                .chars()
                .enumerate()
                .map(|(at, done)| format!("\"run-{}\": {{\"success\": {}}}", at + 1, done == '1'))
                .collect();
            let text = format!("{{\"service\": \"s\", \"runs\": {{{}}}}}", runs.join(", "));
            scratch.write(&format!("model_results/{model}/group__{task}.json"), text);
        }
    }
}

#[test]
fn a_benchmark_becomes_a_project_with_a_leaderboard() {
    let scratch = Scratch::new();
    copy(&scratch);
    let said = scratch.karat(&["import", "mcpmark", "model_results", "-o", "out"]).expect(0).stdout;
    assert!(said.contains("runs: 18, systems: 2, tasks: 3"), "{said}");
    assert!(said.contains("next: karat check out/karat.toml"), "{said}");

    let found = scratch.karat(&["check", "out/karat.toml", "--json"]).expect(0);
    let found: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(found["reports"][0]["name"], "bad");
    assert_eq!(found["reports"][1]["metrics"][0]["id"], "mcpmark.pass@1");
    let table = &found["leaderboards"][0];
    assert_eq!(table["rows"][0]["name"], "good");
    // Three tasks cannot tell anything apart.
    assert_eq!(table["rows"][0]["ranks"], serde_json::json!([1, 2]));

    let shown = scratch.karat(&["check", "out/karat.toml", "-o", "page.html"]).expect(0).stdout;
    assert!(shown.contains("real differences: 0 of 1"), "{shown}");
    let page = std::fs::read_to_string(scratch.path("page.html")).unwrap();
    assert!(page.contains("leaderboard-1"), "the page has no leaderboard");

    // The same from a stored report.
    scratch.karat(&["check", "out/karat.toml", "-o", "report.json"]).expect(0);
    let shown = scratch.karat(&["compare", "report.json"]).expect(0).stdout;
    assert!(shown.contains("leaderboard · mcpmark.pass@1"), "{shown}");

    let by = |metric| ["compare", "report.json", "--primary", metric, "--slice", "service=s"];
    let shown = scratch.karat(&by("pass@2")).expect(0).stdout;
    assert!(shown.contains("leaderboard · pass@2 on mcpmark v1"), "{shown}");
    assert!(shown.contains("leaderboard · pass@2 (service=s) on mcpmark v1"), "{shown}");
    assert!(shown.contains("good ≈ bad"), "{shown}");
    let said = scratch.karat(&by("recall@1")).expect(2).stderr;
    assert!(said.contains("\"recall@1\"") && said.contains("mcpmark.pass@1"), "{said}");
    let slice = ["compare", "report.json", "--slice", "service=other"];
    let said = scratch.karat(&slice).expect(2).stderr;
    assert!(said.contains("service=other") && said.contains("service=s"), "{said}");

    let again = scratch.karat(&["import", "mcpmark", "model_results", "-o", "out"]).expect(2);
    assert!(again.stderr.contains("not empty"), "{}", again.stderr);
    let freeze = ["corpus", "freeze", "out/datasets/mcpmark/v1", "--licence", "MIT", "--made", "x"];
    let refused = scratch.karat(&[&freeze[..], &["--publish"]].concat()).expect(2).stderr;
    assert!(refused.contains("restricted") && refused.contains("not publication"), "{refused}");
}

#[test]
fn unknown_names_and_wrong_folders_are_bad_input() {
    let scratch = Scratch::new();
    scratch.write("notes.txt", "x");
    let said = scratch.karat(&["import", "mcpmarks", "notes.txt", "-o", "out"]).expect(2).stderr;
    assert!(said.contains("did you mean `mcpmark`?"), "{said}");
    let said = scratch.karat(&["import", "bfcl", "notes.txt", "-o", "out"]).expect(2).stderr;
    assert!(said.contains("expected result/<model>") && said.contains("notes.txt"), "{said}");
    let listed = scratch.karat(&["import", "--list"]).expect(0).stdout;
    assert!(listed.contains("tau-bench: τ-bench") && listed.contains("Apache-2.0"), "{listed}");
}

use crate::{Copy, metric, near, report, value};

fn judged(verdicts: &[(&str, u8, &str)]) -> String {
    let rows: Vec<String> = verdicts
        .iter()
        .map(|(task, reward, category)| {
            format!(
                "{{\"task_id\": \"{task}\", \"question\": \"q\", \"judge\": \"success\", \
                 \"judge_reason\": \"r\", \"reward\": {reward}, \"category\": \"{category}\"}}"
            )
        })
        .collect();
    format!("[{}]", rows.join(","))
}

const PEOPLE: &str = r#"[{"task_id": "a", "category": "work", "task_success": "success"},
    {"task_id": "b", "category": "work", "task_success": "failure"},
    {"task_id": "c", "category": "travel", "task_success": "success"},
    {"task_id": "d", "category": "travel", "task_success": "failure"}]"#;

#[test]
fn success_agreement_and_kappa_of_each_judge() {
    let mild =
        judged(&[("a", 1, "work"), ("b", 1, "work"), ("c", 1, "travel"), ("d", 0, "travel")]);
    let copy = Copy::new(&[
        ("evaluator/output/mild/agent.json", &mild),
        (
            "evaluator/output/mild/success_rate.csv",
            "Model\twork\ttravel\toverall\nagent\t100.0\t50.0\t75.0\n",
        ),
        ("evaluator/output/mild/other.json", &judged(&[("a", 0, "work")])),
        ("baseline/annotation/agent.json", PEOPLE),
        (
            "evaluator/output/human_agreement_agent.csv",
            "Model,human_agreement,success_rate\nhuman,100.0,50.0\nmild,75.0,75.0\n",
        ),
        ("baseline/output/agent.json", "[]"),
    ]);
    let reports = copy.reports("livemcpbench");
    assert_eq!(reports.len(), 3);
    let judge = report(&reports, "mild");
    near(value(judge, "livemcpbench.success"), 0.75);
    near(value(judge, "livemcpbench.agreement"), 0.75);
    near(value(judge, "kappa"), 0.5);
    assert!(metric(judge, None, "kappa").interval.is_some());
    near(metric(judge, Some("category=work"), "livemcpbench.success").value, 1.0);
    assert_eq!(judge.warnings, ["5 of 5 published figures are reproduced"]);
    near(value(report(&reports, "human"), "livemcpbench.success"), 0.5);
    let alone = report(&reports, "mild.other");
    assert_eq!(value(alone, "livemcpbench.agreement"), None);
}

/// The benchmark looks for the word "success" in the whole answer of a judge whose verdict is in quotes.
#[test]
fn a_verdict_that_is_misread_counts_as_stated_for_karat() {
    let row = |task: &str, reward: u8, judge: &str| {
        format!(
            r#"{{"task_id": "{task}", "judge": "{judge}", "judge_reason": "Thoughts extract failed.",
                "reward": {reward}, "category": "work"}}"#
        )
    };
    let rows = [
        row("a", 1, r#"Thoughts: it was successfully read.\n**Status**: \"failure\""#),
        row("b", 1, r#"Thoughts: all done.\nStatus: \"success\""#),
        row("c", 0, r#"Thoughts: nothing done.\nStatus: \"failure\""#),
        row("d", 0, "unknown"),
    ];
    let copy = Copy::new(&[
        ("evaluator/output/j/agent.json", &format!("[{}]", rows.join(","))),
        ("baseline/annotation/agent.json", PEOPLE),
    ]);
    let reports = copy.reports("livemcpbench");
    let judge = report(&reports, "j");
    near(value(judge, "livemcpbench.success"), 0.5);
    near(value(judge, "livemcpbench.agreement"), 0.5);
    near(value(judge, "task.success"), 1.0 / 3.0);
    near(value(judge, "run.failed"), 0.25);
    let note = "1 of 4 verdicts state the opposite of what the benchmark counts, which is 0.5000";
    assert!(judge.warnings.iter().any(|warning| warning.starts_with(note)), "{:?}", judge.warnings);
    assert!(judge.controls.iter().all(|control| control.ok));
}

/// The answers of the agent tell trajectories apart, whatever files are named.
#[test]
fn renamed_files_and_verdicts_without_rewards_are_refused() {
    let rows = |key: &str, verdict: &str, answer: &str| {
        let row = |task: &str| {
            format!(
                r#"{{"task_id": "{task}", {key}: {verdict}, "category": "work", "response": "{answer} {task}"}}"#
            )
        };
        format!("[{}]", ["a", "b", "c"].map(row).join(","))
    };
    let people = rows("\"task_success\"", "\"success\"", "the answer to");
    let copy = Copy::new(&[("baseline/annotation/agent.json", &people)]);
    copy.write("evaluator/output/j/agent.json", &rows("\"reward\"", "1", "the answer to"));
    copy.write("evaluator/output/j/other.json", &rows("\"reward\"", "0", "another answer to"));
    assert_eq!(copy.import("livemcpbench").unwrap().entries.len(), 3);
    std::fs::remove_dir_all(copy.target()).unwrap();

    copy.write("evaluator/output/k/agnet.json", &rows("\"reward\"", "1", "the answer to"));
    let message = copy.refused("livemcpbench");
    assert!(message.contains("agnet.json: expected trajectories other than"), "{message}");
    std::fs::remove_file(copy.source().join("evaluator/output/k/agnet.json")).unwrap();

    copy.write("evaluator/output/k/agent.json", &rows("\"reward\"", "1", "another answer to"));
    let message = copy.refused("livemcpbench");
    assert!(message.contains("found the same answers of the agent to 0 of 3 tasks"), "{message}");

    copy.write("evaluator/output/k/agent.json", &rows("\"score\"", "1", "the answer to"));
    let message = copy.refused("livemcpbench");
    assert!(message.contains("found 3 rows, none with a `reward`"), "{message}");

    std::fs::remove_dir_all(copy.source().join("evaluator/output")).unwrap();
    copy.write("evaluator/out/j/success_rate.csv", "Model\twork\toverall\nagent\t100.0\t100.0\n");
    let message = copy.refused("livemcpbench");
    assert!(message.contains("expected evaluator/output/<judge>"), "{message}");
}

#[test]
fn a_verdict_of_people_that_is_not_one_is_refused() {
    let copy = Copy::new(&[(
        "baseline/annotation/agent.json",
        r#"[{"task_id": "a", "task_success": "perhaps"}]"#,
    )]);
    let message = copy.refused("livemcpbench");
    assert!(message.contains("\"perhaps\" of task a"), "{message}");
}

#[test]
fn tools_that_annotators_name_answer_the_task() {
    let copy = Copy::new(&[
        (
            "tools/LiveMCPTool/tools.json",
            r#"[{"name": "Files", "tools": {"files": {"tools": [{"name": "write_file", "description": "w"}]}}},
                {"name": "Other", "tools": {"other": {"tools": [{"name": "write_file", "description": "w"}]}}}]"#,
        ),
        (
            "annotated_data/all_annotations.json",
            r#"[{"task_id": "t", "Question": "Save it.", "category": "Office",
                "Annotator Metadata": {"Tools": "1. write_file\n2. gone\n"}}]"#,
        ),
    ]);
    let imported = copy.import("livemcpbench").unwrap();
    assert_eq!(imported.counts["labels"], 2);
    assert_eq!(imported.skipped["a name of a tool that no server has"], 1);
    assert_eq!(imported.entries, ["bm25"]);
}

#[test]
fn a_verdict_that_comes_twice_is_refused() {
    let twice = judged(&[("a", 1, "work"), ("a", 0, "work")]);
    let message = Copy::new(&[("output/j/agent.json", &twice)]).refused("livemcpbench");
    assert!(message.contains("agent.json") && message.contains("task a twice"), "{message}");
}

#[test]
fn a_table_that_is_cut_off_is_refused_or_noted() {
    let verdicts = judged(&[("a", 1, "work")]);
    let copy = |table: &str| {
        Copy::new(&[
            ("evaluator/output/mild/agent.json", &verdicts),
            ("evaluator/output/stern/agent.json", &verdicts),
            ("evaluator/output/human_agreement_agent.csv", table),
        ])
    };
    let head = "Model,human_agreement,success_rate\n";
    let message = copy(&format!("{head}mild,75.0,75.0\nstern,75")).refused("livemcpbench");
    assert!(
        message.contains("found 2 cells under 3 heads on line 3: half a download?"),
        "{message}"
    );
    let message = copy(&format!("{head}mild,75.0,x\n")).refused("livemcpbench");
    assert!(message.contains("expected a rate in per cent; found success_rate \"x\""), "{message}");
    let message = copy(head).refused("livemcpbench");
    assert!(message.contains("no rows"), "{message}");
    let message = copy("Judge,agreement\nmild,1\n").refused("livemcpbench");
    assert!(message.contains("found Judge, agreement"), "{message}");
    let notes = copy(&format!("{head}mild,100.0,100.0\n")).import("livemcpbench").unwrap().notes;
    assert!(notes[0].contains("has no row for stern"), "{notes:?}");
}

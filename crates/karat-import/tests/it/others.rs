//! Corpora and tables of other benchmarks: what is taken over, and what is skipped.

use karat_import::Imported;

use crate::{Copy, check, near, report, value};

#[track_caller]
fn counts(imported: &Imported, expected: &[(&str, u64)]) {
    let found: Vec<_> =
        imported.counts.iter().map(|(what, count)| (what.as_str(), *count)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_dataset_of_beir_is_a_corpus_with_judged_queries() {
    let copy = Copy::new(&[
        (
            "corpus.jsonl",
            "{\"_id\": \"d1\", \"title\": \"Cats\", \"text\": \"of cats\"}\n{\"_id\": \"d2\", \"text\": \"dogs\"}\n",
        ),
        (
            "queries.jsonl",
            "{\"_id\": \"q1\", \"text\": \"cats\"}\n{\"_id\": \"q2\", \"text\": \"x\"}\n",
        ),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n"),
    ]);
    let imported = copy.import("beir").unwrap();
    counts(&imported, &[("labels", 1), ("queries", 1), ("tools", 2)]);
    assert_eq!(imported.skipped.len(), 1);
    let copy = Copy::new(&[("corpus.jsonl", "{}")]);
    assert!(copy.refused("beir").contains("qrels/test.tsv"));
}

#[test]
fn queries_of_toolbench_and_toolret_label_tools() {
    let copy = Copy::new(&[(
        "test_instruction/G1_tool.json",
        r#"[{"query_id": 1, "query": "rain?", "api_list": [{"category_name": "W", "tool_name": "Sky",
            "api_name": "now", "api_description": "weather"}], "relevant APIs": [["Sky", "now"]]}]"#,
    )]);
    counts(&copy.import("toolbench").unwrap(), &[("labels", 1), ("queries", 1), ("tools", 1)]);
    let copy = Copy::new(&[
        ("tools.jsonl", "{\"id\": \"t1\", \"documentation\": \"weather\"}\n"),
        (
            "queries.jsonl",
            "{\"id\": \"q1\", \"query\": \"rain?\", \"labels\": \"[{\\\"id\\\": \\\"t1\\\", \\\"relevance\\\": 1}]\"}\n",
        ),
    ]);
    counts(&copy.import("toolret").unwrap(), &[("labels", 1), ("queries", 1), ("tools", 1)]);
}

#[test]
fn descriptions_before_and_after_share_their_queries() {
    let tools = r#"{"0": {"tool_name": "GET_a", "description": "first"}}"#;
    let copy = Copy::new(&[
        ("tool_instruction/TMDB_Initial.json", tools),
        ("tool_instruction/TMDB_DRAFT.json", tools),
        ("test_data/TMDB.json", r#"[{"query": "a?", "relevant APIs": ["GET_a"]}]"#),
    ]);
    let imported = copy.import("draft").unwrap();
    assert_eq!(imported.entries, ["TMDB_DRAFT", "TMDB_Initial"]);
    counts(&imported, &[("queries", 1), ("tools", 2)]);
    copy.write("test_data/tool_instruction/TMDB_DRAFT.json", tools);
    std::fs::remove_dir_all(copy.target()).unwrap();
    assert!(copy.refused("draft").contains("one file of descriptions TMDB_DRAFT; found another"));
}

#[test]
fn descriptions_that_several_sets_share_are_by_function() {
    let tools = |text: &str| {
        format!(
            r#"{{"1": {{"tool_name": "Vimeo", "tool_description": "Videos", "tool_guidelines":
                {{"Search": {{"description": "{text}"}}, "Related": {{"description": null}}}}}}}}"#
        )
    };
    let asked = |function: &str| {
        format!(r#"[{{"query": "q", "relevant APIs": [["Vimeo", "{function}"]]}}]"#)
    };
    let copy = Copy::new(&[
        ("ToolBench/tool_instruction/Initial.json", &tools("finds")),
        ("ToolBench/tool_instruction/DRAFT.json", &tools("searches for videos")),
        ("ToolBench/tool_instruction/EasyTool.json", "[]"),
        ("ToolBench/test_data/G2.json", &asked("Search")),
        ("ToolBench/test_data/G3.json", &asked("Unknown")),
    ]);
    let imported = copy.import("draft").unwrap();
    assert_eq!(imported.entries, ["G2_DRAFT", "G2_Initial"]);
    counts(&imported, &[("queries", 1), ("tools", 4)]);
    let reasons: Vec<&String> = imported.skipped.keys().collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
}

#[test]
fn the_success_of_attacks_is_over_those_that_were_tried() {
    let table = "Host,Attack A,Attack B\nclaude,1,0\nclaude,1,-1\nopenai,0,-\nopenai,0,-\n";
    let copy = Copy::new(&[("data/experiments.csv", table)]);
    let imported = copy.import("mcpsecbench").unwrap();
    assert_eq!(imported.skipped["an attack that was not tried"], 2);
    assert_eq!(imported.notes, ["found 4 of 45 trials"]);
    let reports = check(&copy.target()).unwrap();
    near(value(report(&reports, "claude"), "attack.success"), 0.5);
    near(value(report(&reports, "openai"), "attack.success"), 0.0);
    let copy = Copy::new(&[("data/experiments.csv", "Host,A\nclaude,-1\nclaude,yes\n")]);
    let message = copy.refused("mcpsecbench");
    assert!(
        message.contains("line 3: \"yes\" for A") && message.contains("1, 0, -1 or -"),
        "{message}"
    );
}

#[test]
fn a_trigger_belongs_to_the_skill_above_it() {
    let skill = "---\nname: pdf\ndescription: Fills forms\n---\n";
    let triggers = r#"[{"query": "fill", "should_trigger": true}, {"query": "bake", "should_trigger": false}]"#;
    let copy = Copy::new(&[("pdf/SKILL.md", skill), ("pdf/evals/trigger-eval.json", triggers)]);
    counts(&copy.import("skills").unwrap(), &[("queries", 2), ("tools", 1)]);
    let copy = Copy::new(&[("trigger-eval.json", triggers)]);
    assert!(copy.refused("skills").contains("a SKILL.md in its folder"));
}

#[test]
fn a_title_of_beir_may_be_null() {
    let copy = Copy::new(&[
        ("corpus.jsonl", "{\"_id\": \"d\", \"title\": null, \"text\": \"cats\"}\n"),
        ("queries.jsonl", "{\"_id\": \"q\", \"text\": \"cats\"}\n"),
        ("qrels/test.tsv", "q\td\t1\n"),
    ]);
    counts(&copy.import("beir").unwrap(), &[("labels", 1), ("queries", 1), ("tools", 1)]);
}

#[test]
fn half_a_download_is_refused_or_noted() {
    let table = "Host,A\nclaude,1\nclaude,1\nopenai,0\n";
    let message = Copy::new(&[("experiments.csv", table)]).refused("mcpsecbench");
    assert!(message.contains("expected 2 trials of each host; found 1 of openai"), "{message}");

    let head = "Agent Name,Attack Tool,Attack Successful,Original Task Successful,messages\n";
    let log = |rows: &str| format!("{head}{rows}");
    let place = |model: &str| format!("logs/direct/{model}/no_memory/naive-all_.csv");
    let row = "a,T,1,0,\"x,\ny\"\n";
    let (whole, cut) = (log(&row.repeat(2)), log(&format!("{row}a,T,1,0")));
    let copy = Copy::new(&[(&place("m"), &whole), (&place("n"), &cut)]);
    let message = copy.refused("asb");
    assert!(message.contains(":4: expected 5 cells in a row; found 4"), "{message}");
    copy.write(&place("n"), &log(row));
    let notes = copy.import("asb").unwrap().notes;
    assert_eq!(notes, [format!("found 1 of 2 rows that the longest such log has: {}", place("n"))]);

    let copy = Copy::new(&[
        ("tools.jsonl", "{\"id\": \"t1\", \"documentation\": \"weather\"}\n"),
        (
            "queries.jsonl",
            "{\"id\": \"q1\", \"query\": \"rain?\", \"labels\": [{\"id\": \"t1\"}, {\"id\": \"t2\"}, {\"id\": \"t3\"}]}\n",
        ),
    ]);
    let imported = copy.import("toolret").unwrap();
    assert_eq!(imported.skipped["a label whose tool is not in the corpus"], 2);
    assert_eq!(imported.notes, ["found 1 of 44453 tools", "found 1 of 7961 queries"]);
    copy.write("ToolRet-Tools.parquet", "PAR1");
    std::fs::remove_dir_all(copy.target()).unwrap();
    let message = copy.refused("toolret");
    assert!(message.contains("ToolRet-Tools.parquet: expected tools"), "{message}");
    assert!(message.contains("found a Parquet file"), "{message}");
}

#[test]
fn judgements_that_are_lost_are_counted_by_reason() {
    let copy = Copy::new(&[
        ("corpus.jsonl", "{\"_id\": \"d1\", \"text\": \"cats\"}\n"),
        (
            "queries.jsonl",
            "{\"_id\": \"q1\", \"text\": \"cats\"}\n{\"_id\": \"q2\", \"text\": \"x\"}\n",
        ),
        ("qrels/test.tsv", "q1\td1\t1\nq1\td1\t1\nq1\td9\t1\nq9\td1\t2\nq9\td9\t1\n"),
    ]);
    let imported = copy.import("beir").unwrap();
    counts(&imported, &[("labels", 1), ("queries", 1), ("tools", 1)]);
    let skipped: Vec<(&str, u64)> =
        imported.skipped.iter().map(|(reason, number)| (reason.as_str(), *number)).collect();
    let expected = [
        ("a judgement of a document that is not in corpus.jsonl", 1),
        ("a judgement of a query that is not in queries.jsonl", 2),
        ("a judgement that comes twice", 1),
        ("a query without a judgement in this split", 1),
    ];
    assert_eq!(skipped, expected);
    std::fs::remove_dir_all(copy.target()).unwrap();
    copy.write("qrels/test.tsv", "q1\td1\t1\nq1\td1\t0\n");
    assert!(copy.refused("beir").contains("one grade of each query and document"));
    // Judgements of TREC have another column.
    copy.write("qrels/test.tsv", "1\t0\t7\t1\n");
    assert!(copy.refused("beir").contains("found line 1:"));
}

use crate::{Copy, metric, near, report, value};

const SIMPLE: &str = r#"{"id": "simple_python_0", "question": [], "function": [{"name": "math.area", "parameters": {"type": "dict", "properties": {"base": {"type": "integer"}, "unit": {"type": "string"}}, "required": ["base"]}}]}
{"id": "simple_python_1", "question": [], "function": [{"name": "play", "parameters": {"type": "dict", "properties": {"artist": {"type": "string"}}, "required": ["artist"]}}]}
"#;
const SIMPLE_ANSWERS: &str = r#"{"id": "simple_python_0", "ground_truth": [{"math.area": {"base": [10], "unit": ["cm", ""]}}]}
{"id": "simple_python_1", "ground_truth": [{"play": {"artist": ["Taylor Swift"]}}]}
"#;
const JAVA: &str = r#"{"id": "simple_java_0", "question": [], "function": [{"name": "Maps.fill", "parameters": {"type": "dict", "properties": {"map": {"type": "HashMap"}, "count": {"type": "long"}, "names": {"type": "ArrayList", "items": {"type": "String"}}}, "required": ["map"]}}]}
"#;
const JAVA_ANSWERS: &str = r#"{"id": "simple_java_0", "ground_truth": [{"Maps.fill": {"map": [{"limit": [50], "kind": ["x"]}], "count": [7, ""], "names": [["a", "b"], ""]}}]}
"#;
const NONE: &str = r#"{"id": "irrelevance_0", "question": [], "function": [{"name": "f", "parameters": {"properties": {}, "required": []}}]}
{"id": "irrelevance_1", "question": [], "function": [{"name": "f", "parameters": {"properties": {}, "required": []}}]}
"#;

fn answers(lines: &[(&str, &str)]) -> String {
    let line = |(id, result): &(&str, &str)| {
        format!(
            "{{\"id\": \"{id}\", \"result\": {result}, \"input_token_count\": 5, \
             \"output_token_count\": 2, \"latency\": 0.5}}\n"
        )
    };
    lines.iter().map(line).collect()
}

fn copy() -> Copy {
    let copy = Copy::new(&[
        ("data/BFCL_v4_simple_python.json", SIMPLE),
        ("data/possible_answer/BFCL_v4_simple_python.json", SIMPLE_ANSWERS),
        ("data/BFCL_v4_simple_java.json", JAVA),
        ("data/possible_answer/BFCL_v4_simple_java.json", JAVA_ANSWERS),
        ("data/BFCL_v4_irrelevance.json", NONE),
    ]);
    let result = |category: &str| format!("result/m_1/non_live/BFCL_v4_{category}_result.json");
    let python = [
        ("simple_python_0", r#"[{"math_area": "{\"base\": 10}"}]"#),
        ("simple_python_1", r#"[{"play": "{\"artist\": \"taylor-swift\"}"}]"#),
    ];
    copy.write(&result("simple_python"), &answers(&python));
    let map = r#"[{"Maps_fill": "{\"map\": \"new HashMap<String, Object>() {{ put(\\\"limit\\\", 50); put(\\\"kind\\\", \\\"x\\\"); }}\", \"count\": \"7L\", \"names\": \"new ArrayList<String>(Arrays.asList(\\\"a\\\", \\\"b\\\"))\"}"}]"#;
    copy.write(&result("simple_java"), &answers(&[("simple_java_0", map)]));
    let none =
        [("irrelevance_0", "\"I cannot\""), ("irrelevance_1", "\"Error during inference: 429\"")];
    copy.write(&result("irrelevance"), &answers(&none));
    copy
}

#[test]
fn answers_are_judged_by_the_functions_and_possible_answers() {
    let copy = copy();
    let score = "{\"accuracy\": 1.0, \"correct_count\": 2, \"total_count\": 2}\n";
    copy.write("score/m_1/non_live/BFCL_v4_simple_python_score.json", score);
    let imported = copy.import("bfcl").unwrap();
    assert_eq!(imported.notes, ["2 of 2 verdicts agree with the score files"]);
    let reports = crate::check(&copy.target()).unwrap();
    let found = report(&reports, "m_1");
    near(value(found, "bfcl.accuracy"), 1.0);
    near(metric(found, Some("category=simple_java"), "bfcl.accuracy").value, 1.0);
    // Where nothing may be called, an answer that never came is right for BFCL, and not measured.
    assert_eq!(metric(found, Some("category=irrelevance"), "task.success").n, 1);
    assert_eq!(metric(found, Some("category=irrelevance"), "bfcl.accuracy").n, 2);
    near(value(found, "run.tokens"), 7.0);
}

#[test]
fn one_invented_name_with_a_dot_does_not_change_how_names_are_compared() {
    let copy = copy();
    let invented = [
        ("simple_python_0", r#"[{"math_area": "{\"base\": 10}"}]"#),
        ("simple_python_1", r#"[{"container.exec": "{\"artist\": \"x\"}"}]"#),
    ];
    copy.write("result/m_1/non_live/BFCL_v4_simple_python_result.json", &answers(&invented));
    let reports = copy.reports("bfcl");
    let found = metric(report(&reports, "m_1"), Some("category=simple_python"), "bfcl.accuracy");
    near(found.value, 0.5);
}

#[test]
fn a_wrong_verdict_is_named_and_half_a_file_refused() {
    let copy = copy();
    let score = "{\"accuracy\": 0.5, \"correct_count\": 1, \"total_count\": 2}\n\
                 {\"id\": \"simple_python_1\", \"valid\": false, \"error\": []}\n";
    copy.write("score/m_1/non_live/BFCL_v4_simple_python_score.json", score);
    let imported = copy.import("bfcl").unwrap();
    assert!(imported.notes[0].contains("1 of 2 verdicts"), "{:?}", imported.notes);
    assert!(imported.notes[0].contains("simple_python_1"), "{:?}", imported.notes);

    let copy = self::copy();
    let half = answers(&[("simple_python_0", "[]")]);
    copy.write("result/m_1/non_live/BFCL_v4_simple_python_result.json", &half);
    let message = copy.refused("bfcl");
    assert!(message.contains("expected 2 answers; found 1"), "{message}");
}

#[test]
fn data_of_another_version_is_refused() {
    let copy = copy();
    let data = copy.source().join("data");
    for folder in [data.clone(), data.join("possible_answer")] {
        let from = folder.join("BFCL_v4_simple_python.json");
        std::fs::rename(from, folder.join("BFCL_v3_simple_python.json")).unwrap();
    }
    let message = copy.refused("bfcl");
    assert!(message.contains("the data of BFCL_v3: another version"), "{message}");
}

#[test]
fn the_first_generation_numbers_lines_and_functions() {
    let prefix = "gorilla_openfunctions_v1_test_parallel_function";
    let function = r#"{"question": "q", "function": [{"name": "m.f", "parameters": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}}]}"#;
    let copy = Copy::new(&[
        (&format!("data/{prefix}.json"), function),
        (
            &format!("data/possible_answer/{prefix}.json"),
            r#"{"m.f_1": {"n": [1]}, "m.f_2": {"n": [2]}}"#,
        ),
        (
            &format!("2024/result/gpt-FC/{prefix}_result.json"),
            r#"{"idx": 0, "result": [{"m_f": "{\"n\": 2}"}, {"m_f": "{\"n\": 1}"}]}"#,
        ),
        (
            "2024/score/gpt-FC/parallel_function_score.json",
            "{\"accuracy\": 1.0, \"total_count\": 1}",
        ),
    ]);
    let imported = copy.import("bfcl").unwrap();
    assert_eq!(imported.notes, ["1 of 1 verdicts agree with the score files"]);
}

#[test]
fn answers_to_two_versions_of_the_questions_are_refused() {
    let copy = copy();
    let result = "result/m_1/live/BFCL_v3_live_simple_result.json";
    copy.write(result, &answers(&[("live_simple_0", "[]")]));
    copy.write(
        "score/m_1/live/BFCL_v3_live_simple_score.json",
        "{\"accuracy\": 1.0, \"correct_count\": 1, \"total_count\": 1}\n",
    );
    let message = copy.refused("bfcl");
    assert!(message.contains("expected outcomes of one version"), "{message}");
    assert!(message.contains("BFCL_v4") && message.contains("BFCL_v3"), "{message}");
}

const RIGHT: [(&str, &str); 2] = [
    ("simple_python_0", r#"[{"math_area": "{\"base\": 10}"}]"#),
    ("simple_python_1", r#"[{"play": "{\"artist\": \"Taylor Swift\"}"}]"#),
];

#[test]
fn calls_written_as_text_are_judged_by_the_score_file_alone() {
    let copy = copy();
    let written = [("irrelevance_0", "\"[f()]\""), ("irrelevance_1", "\"no\"")];
    copy.write("result/m_1/non_live/BFCL_v4_irrelevance_result.json", &answers(&written));
    let imported = copy.import("bfcl").unwrap();
    assert!(imported.notes[0].starts_with("1 answers seem to be calls"), "{:?}", imported.notes);

    let copy = self::copy();
    copy.write("result/m_1/non_live/BFCL_v4_irrelevance_result.json", &answers(&written));
    let score = "{\"accuracy\": 0.5, \"correct_count\": 1, \"total_count\": 2}\n\
                 {\"id\": \"irrelevance_0\", \"valid\": false}\n";
    copy.write("score/m_1/non_live/BFCL_v4_irrelevance_score.json", score);
    let reports = copy.reports("bfcl");
    let found = metric(report(&reports, "m_1"), Some("category=irrelevance"), "bfcl.accuracy");
    near(found.value, 0.5);
}

#[test]
fn a_model_that_writes_its_calls_is_judged_by_them() {
    let copy = copy();
    let file = |category: &str| format!("result/m_2/non_live/BFCL_v4_{category}_result.json");
    let python = [
        ("simple_python_0", r#""[math.area(base=5 + 5, unit='CM')]""#),
        ("simple_python_1", r#""play(artist='someone else')""#),
    ];
    copy.write(&file("simple_python"), &answers(&python));
    let none = [("irrelevance_0", r#""[f()]""#), ("irrelevance_1", r#""None of them fits.""#)];
    copy.write(&file("irrelevance"), &answers(&none));
    let imported = copy.import("bfcl").unwrap();
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    assert!(imported.notes[0].ends_with("m_2 (simple_java)"), "{:?}", imported.notes);
    let reports = crate::check(&copy.target()).unwrap();
    for category in ["simple_python", "irrelevance"] {
        let slice = format!("category={category}");
        near(metric(report(&reports, "m_2"), Some(&slice), "bfcl.accuracy").value, 0.5);
    }
    // Through an interface the same answers would not be calls.
    std::fs::remove_dir_all(copy.target()).unwrap();
    let to = copy.source().join("result/m_2-FC");
    std::fs::rename(copy.source().join("result/m_2"), to).unwrap();
    let reports = copy.reports("bfcl");
    let found = report(&reports, "m_2-FC");
    near(metric(found, Some("category=simple_python"), "bfcl.accuracy").value, 0.0);
    near(metric(found, Some("category=irrelevance"), "bfcl.accuracy").value, 1.0);
}

#[test]
fn calls_written_in_java_need_the_score_file() {
    let copy = copy();
    let written = answers(&[("simple_java_0", r#""[Maps.fill(map=m)]""#)]);
    copy.write("result/m_2/non_live/BFCL_v4_simple_java_result.json", &written);
    let message = copy.refused("bfcl");
    assert!(
        message.contains("missing its score file") && message.contains("--partial"),
        "{message}"
    );
    let score = "{\"accuracy\": 1.0, \"correct_count\": 1, \"total_count\": 1}\n";
    copy.write("score/m_2/non_live/BFCL_v4_simple_java_score.json", score);
    let imported = copy.import("bfcl").unwrap();
    assert_eq!(imported.notes[1..], ["1 verdicts were taken over from score files, not judged"]);
}

#[test]
fn a_part_that_the_source_itself_ran_and_scored_is_accepted() {
    let copy = copy();
    copy.write("result/m_1/non_live/BFCL_v4_simple_python_result.json", &answers(&RIGHT[..1]));
    let score = "{\"accuracy\": 1.0, \"correct_count\": 1, \"total_count\": 1}\n";
    copy.write("score/m_1/non_live/BFCL_v4_simple_python_score.json", score);
    let imported = copy.import("bfcl").unwrap();
    assert!(imported.notes[0].contains("1 of 2 items of simple_python"), "{:?}", imported.notes);
}

#[test]
fn wrong_answers_files_are_refused() {
    let copy = copy();
    let file = "result/m_1/non_live/BFCL_v4_simple_python_result.json";
    copy.write(file, &answers(&[RIGHT[0], RIGHT[0]]));
    assert!(copy.refused("bfcl").contains("two answers to \"simple_python_0\""));
    copy.write(file, &answers(&[RIGHT[0], ("simple_java_0", "[]")]));
    assert!(copy.refused("bfcl").contains("an answer to \"simple_java_0\""));
    copy.write(file, &answers(&RIGHT));
    copy.write("result/m_1/BFCL_v4_simple_python_result.json", &answers(&RIGHT));
    assert!(copy.refused("bfcl").contains("one file of answers to simple_python; found another"));

    let copy = self::copy();
    let turned: Vec<&str> = SIMPLE_ANSWERS.lines().rev().collect();
    copy.write("data/possible_answer/BFCL_v4_simple_python.json", &turned.join("\n"));
    let message = copy.refused("bfcl");
    assert!(message.contains("the possible answers of simple_python_0"), "{message}");
}

#[test]
fn runs_of_one_model_have_names_of_their_own_and_columns_of_their_table() {
    let copy = Copy::new(&[
        ("data/BFCL_v4_simple_python.json", SIMPLE),
        ("data/possible_answer/BFCL_v4_simple_python.json", SIMPLE_ANSWERS),
        ("data/BFCL_v4_multiple.json", &SIMPLE.replace("simple_python", "multiple")),
        (
            "data/possible_answer/BFCL_v4_multiple.json",
            &SIMPLE_ANSWERS.replace("simple_python", "multiple"),
        ),
    ]);
    for (run, category, count) in
        [("2025-11-main", "simple_python", 2), ("2025-12-fix", "multiple", 1)]
    {
        let right: Vec<(String, &str)> = RIGHT
            .iter()
            .enumerate()
            .map(|(at, (id, result))| {
                let result = if at < count { *result } else { "\"no\"" };
                (id.replace("simple_python", category), result)
            })
            .collect();
        let right: Vec<(&str, &str)> = right.iter().map(|(id, r)| (id.as_str(), *r)).collect();
        let file =
            format!("results/{run}/result/org_m-1-FC/non_live/BFCL_v4_{category}_result.json");
        copy.write(&file, &answers(&right));
    }
    let table = "Rank,Overall Acc,Model,Non-Live AST Acc,Non-Live Multiple AST,License\n\
                 1,1.00%,Org M-2 (FC),50.00%,75.00%,MIT\n2,1.00%,M-1 (FC),12.50%,50.00%,MIT";
    copy.write("results/2025-12-fix/score/data_overall.csv", table);
    let imported = copy.import("bfcl").unwrap();
    let skipped =
        imported.skipped.get("a row of data_overall.csv without answers of exactly one model");
    assert_eq!(skipped, Some(&1));
    let reports = crate::check(&copy.target()).unwrap();
    near(value(report(&reports, "2025-11-main_org_m-1-FC"), "bfcl.accuracy"), 1.0);
    let later = report(&reports, "2025-12-fix_org_m-1-FC");
    let column = "leaderboard=Non-Live Multiple AST";
    near(metric(later, Some(column), "bfcl.accuracy").value, 0.5);
    // Columns with categories that were not run are zero in the table, and not compared.
    let note = "1 of 1 published figures are reproduced".to_owned();
    assert!(later.warnings.contains(&note), "{:?}", later.warnings);
}

#[test]
fn half_a_score_file_is_refused() {
    let copy = copy();
    let score = "{\"accuracy\": 0.0, \"correct_count\": 0, \"total_count\": 2}\n\
                 {\"id\": \"simple_python_1\", \"valid\": false}\n";
    copy.write("score/m_1/non_live/BFCL_v4_simple_python_score.json", score);
    let message = copy.refused("bfcl");
    assert!(message.contains("BFCL_v4_simple_python_score.json: expected"), "{message}");
    assert!(message.contains("total_count 2 − correct_count 0 lines"), "{message}");
    assert!(message.contains("found 1 of them"), "{message}");
}

#[test]
fn answers_under_another_name_are_counted_and_named() {
    let copy = copy();
    copy.write("result/m_1/non_live/BFCL_v4_multiple.json", "{}\n");
    copy.write("README.md", "x");
    let imported = copy.import("bfcl").unwrap();
    assert_eq!(imported.skipped["a file below result or score with another name"], 1);
    assert_eq!(imported.skipped["a file that is neither answers nor scores nor data"], 1);
    let named = |note: &String| note.contains("BFCL_v4_multiple.json");
    assert!(imported.notes.iter().any(named), "{:?}", imported.notes);
}

#[test]
fn cells_of_the_published_columns_can_hold_commas() {
    let copy = copy();
    let score = "{\"accuracy\": 1.0, \"correct_count\": 2, \"total_count\": 2}\n";
    copy.write("score/m_1/non_live/BFCL_v4_simple_python_score.json", score);
    copy.write("score/m_1/live/BFCL_v4_live_relevance_score.json", score);
    let called =
        [("live_relevance_0", r#"[{"f": "{}"}]"#), ("live_relevance_1", r#"[{"f": "{}"}]"#)];
    copy.write("result/m_1/live/BFCL_v4_live_relevance_result.json", &answers(&called));
    let table = |row: &str| format!("Rank,Model,Relevance Detection,Organization\n{row}\n");
    copy.write("score/data_overall.csv", &table("1,m 1 (FC)"));
    let message = copy.refused("bfcl");
    assert!(message.contains("found 2 cells under 4 heads on line 2"), "{message}");
    copy.write("score/data_overall.csv", &table("1,m 1 (FC),100.00%,\"Org, Inc.\""));
    let imported = copy.import("bfcl").unwrap();
    // Two accuracies of score files and a column.
    assert_eq!(imported.counts["published figures"], 3);
    assert_eq!(imported.skipped.len(), 0, "{:?}", imported.skipped);
}

#[test]
fn a_model_without_a_category_that_others_have_is_noted() {
    let copy = copy();
    let one = answers(&[("irrelevance_0", "\"no\""), ("irrelevance_1", "\"no\"")]);
    copy.write("result/m_2/non_live/BFCL_v4_irrelevance_result.json", &one);
    copy.write("data/BFCL_v4_live_simple.json", SIMPLE);
    let score = "{\"accuracy\": 1.0, \"correct_count\": 2, \"total_count\": 2}\n";
    copy.write("score/m_2/agentic/BFCL_v4_web_search_base_score.json", score);
    let imported = copy.import("bfcl").unwrap();
    let has = |text: &str| imported.notes.iter().any(|note| note.contains(text));
    assert!(
        has("1 of 2 models have no answers to categories that others have"),
        "{:?}",
        imported.notes
    );
    assert!(has("m_2 (simple_java, simple_python)"), "{:?}", imported.notes);
    assert!(
        has("no model has answers to 1 categories of the data: live_simple"),
        "{:?}",
        imported.notes
    );
    assert!(has("1 score files are not read") && has("web_search_base"), "{:?}", imported.notes);
    assert_eq!(imported.skipped["a score file without answers"], 1);
}

#[test]
fn a_comma_that_the_leaderboard_does_not_quote_is_not_half_a_download() {
    let copy = copy();
    let head = "Rank,Overall Acc,Model,Irrelevance Detection,Organization,License\n";
    let row = "1,50.00%,m_1,N/A,Someone, Inc,apache-2.0";
    copy.write("score/data_overall.csv", &format!("{head}{row}"));
    copy.import("bfcl").unwrap();
    std::fs::remove_dir_all(copy.target()).unwrap();
    copy.write("score/data_overall.csv", &format!("{head}1,50.00%,m_1"));
    assert!(copy.refused("bfcl").contains("found 3 cells under 6 heads on line 2"));
}

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
    assert_eq!(imported.notes, ["2 of 2 verdicts are those of the score files"]);
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
    assert_eq!(imported.notes, ["1 of 1 verdicts are those of the score files"]);
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

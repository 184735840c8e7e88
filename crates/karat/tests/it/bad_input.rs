//! Bad input ends with exit code 2 and one clear message that names file and line or id, and leaves
//! nothing half-written behind.

use crate::common;

use common::{BM25, GOLDEN, Scratch};

/// A project that works, to be broken in one place.
fn project() -> Scratch {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    std::fs::remove_dir_all(scratch.path("karat-report")).unwrap();
    scratch
}

/// Breaks a file of the project and checks what Karat says.
fn broken(name: &str, content: impl AsRef<[u8]>, words: &[&str]) {
    let scratch = project();
    scratch.write(name, content);
    let before = scratch.files();
    let ran = scratch.karat(&["check", "--quiet"]).expect(2);
    ran.says(words);
    assert!(ran.stderr.len() < 1500, "one message, not a flood: {}", ran.stderr);
    assert_eq!(scratch.files(), before, "something was left behind");
}

/// The same after a replacement in a file.
fn replaced(name: &str, from: &str, to: &str, words: &[&str]) {
    let text = project().read(name);
    assert!(text.contains(from), "{from:?} is not in {text}");
    broken(name, text.replacen(from, to, 1), words);
}

#[test]
fn broken_syntax_names_file_and_line() {
    broken("karat.toml", "[[retrieval]]\nname = \n", &["karat.toml:2"]);
    broken("tools.json", "{\"tools\": [\n{]}", &["tools.json:2"]);
    broken("golden.jsonl", "{\"id\": \"q1\"\n", &["golden.jsonl:1"]);
    broken("b.json", "{\n\"schema\": nope}", &["b.json:2"]);
    let scratch = project();
    scratch.write("golden.yaml", "queries:\n  - id: q1\n   query: bad indent\n");
    let toml = scratch.read("karat.toml").replace("golden.jsonl", "golden.yaml");
    scratch.write("karat.toml", toml);
    scratch.karat(&["check", "--quiet"]).expect(2).says(&["golden.yaml:"]);
}

#[test]
fn an_unknown_key_suggests_the_nearest_known_one() {
    replaced("karat.toml", "corpus =", "corpsu =", &["karat.toml:3", "corpsu", "corpus"]);
    replaced("karat.toml", "max_drop", "max_dorp", &["karat.toml:", "max_dorp", "max_drop"]);
    replaced("karat.toml", "[[retrieval]]", "[[retreival]]", &["karat.toml:1", "retrieval"]);
}

#[test]
fn an_unknown_metric_in_a_gate_suggests_the_nearest() {
    replaced("karat.toml", "\"mrr\"", "\"mmr\"", &["karat.toml", "mmr", "did you mean", "mrr"]);
    replaced("karat.toml", "\"mrr\"", "\"recal@5\"", &["recal@5", "recall@5"]);
}

#[test]
fn a_metric_that_the_baseline_lacks_is_named() {
    let text = project().read("b.json");
    let line = text.lines().find(|line| line.contains("\"id\":\"mrr\"")).unwrap();
    broken("b.json", text.replacen(&format!("{line}\n"), "", 1), &["mrr", "baseline update"]);
}

#[test]
fn a_missing_baseline_is_not_recorded_on_the_side() {
    let scratch = project();
    std::fs::remove_file(scratch.path("b.json")).unwrap();
    scratch.karat(&["check", "--quiet"]).expect(2).says(&["b.json", "karat baseline update"]);
    assert!(!scratch.path("b.json").exists());
}

#[test]
fn a_baseline_of_other_data_is_not_compared() {
    broken(
        "golden.jsonl",
        GOLDEN.replace("\"query\": \"", "\"query\": \"please "),
        &["different data", "no item of the golden set is the same", "q1", "baseline update"],
    );
}

#[test]
fn duplicate_ids_are_named() {
    let twice = format!("{GOLDEN}{}", GOLDEN.lines().next().unwrap());
    broken("golden.jsonl", twice, &["golden.jsonl", "q1", "duplicate"]);
    let tools = r#"{"tools": [{"server": "s", "tool": "a"}, {"server": "s", "tool": "a"}]}"#;
    broken("tools.json", tools, &["tools.json", "s:a", "duplicate"]);
    replaced("golden.jsonl", "s:send_mail", "s:create_issue", &["q1", "s:create_issue", "twice"]);
    let toml = project().read("karat.toml");
    broken("karat.toml", format!("{toml}\n{toml}"), &["karat.toml"]);
}

#[test]
fn a_label_without_a_tool_breaks_a_frozen_dataset() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.write("set/v1/tools/a.json", scratch.read("tools.json"));
    scratch.write("set/v1/golden/a.jsonl", scratch.read("golden.jsonl").replace("list", "lost"));
    let freeze = ["corpus", "freeze", "set/v1", "--licence", "CC0-1.0", "--made", "x"];
    let words = ["a.jsonl", "q2", "s:lost_files", "not in the corpus"];
    scratch.karat(&freeze).expect(2).says(&words);
    assert!(!scratch.path("set/v1/manifest.toml").exists());
}

#[test]
fn a_grade_that_does_not_exist_is_refused() {
    replaced(
        "golden.jsonl",
        "\"relevance\": 2",
        "\"relevance\": 7",
        &["golden.jsonl", "q1", "0 to 2"],
    );
    replaced("golden.jsonl", "\"relevance\": 2", "\"relevance\": -1", &["golden.jsonl:1"]);
}

#[test]
fn text_that_is_not_utf8_names_the_line() {
    let mut bytes = GOLDEN.as_bytes().to_vec();
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 5;
    bytes[at] = 0xff;
    broken("golden.jsonl", bytes, &["golden.jsonl:2", "UTF-8"]);
}

#[test]
fn nesting_100000_deep_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    broken("tools.json", format!("{{\"tools\": {deep}}}"), &["tools.json:1", "deep"]);
    broken("b.json", &deep, &["b.json:1", "deep"]);
    broken("golden.jsonl", &deep, &["golden.jsonl:1", "deep"]);
    broken("karat.toml", format!("name = {deep}"), &["karat.toml:1", "deep"]);
}

#[test]
fn a_line_of_2_gigabytes_is_refused_without_being_read() {
    for name in ["golden.jsonl", "tools.json", "karat.toml", "b.json"] {
        let scratch = project();
        std::fs::File::create(scratch.path(name)).unwrap().set_len(2 << 30).unwrap();
        scratch.karat(&["check", "--quiet"]).expect(2).says(&[name]);
    }
}

#[test]
fn a_report_of_a_newer_format_is_refused() {
    let scratch = project();
    scratch.karat(&["check", "-v"]).expect(0);
    let report = scratch.read("karat-report/report.json");
    scratch.write("newer.json", report.replace("karat.check/1", "karat.check/2"));
    scratch.karat(&["compare", "karat-report/report.json", "newer.json"]).expect(2).says(&[
        "newer.json",
        "karat.check/2",
        "update Karat",
    ]);
    scratch.write("inner.json", report.replace("karat.report/2", "karat.report/9"));
    scratch
        .karat(&["compare", "karat-report/report.json", "inner.json"])
        .expect(2)
        .says(&["inner.json", "karat.report/9"]);
    replaced(
        "b.json",
        "karat.baseline/2",
        "karat.baseline/3",
        &["b.json", "karat.baseline/3", "update Karat"],
    );
}

#[test]
fn a_frozen_dataset_that_was_edited_is_refused() {
    let scratch = Scratch::new();
    scratch.karat(&["init", ".", "--for", "proxy"]).expect(0);
    scratch.karat(&["check", "-v"]).expect(0);
    let golden = "datasets/starter/v1/golden/golden.jsonl";
    scratch.write(golden, scratch.read(golden).replace("broken login", "slow login"));
    scratch.karat(&["check", "--quiet"]).expect(2).says(&["golden.jsonl", "sha256:", "v2"]);
    // A file that no one listed is as wrong as one that changed.
    let scratch = Scratch::new();
    scratch.karat(&["init", ".", "--for", "proxy"]).expect(0);
    scratch.write("datasets/starter/v1/tools/more.json", "{}");
    scratch.karat(&["check", "--quiet"]).expect(2).says(&["more.json"]);
}

#[test]
fn a_score_that_is_not_a_number_is_refused() {
    let scratch = Scratch::new();
    scratch.write("q.txt", "q1 0 a 1\n");
    for score in ["nan", "inf", "-inf", "1e999", "high"] {
        scratch.write("r.txt", format!("q1 Q0 b 1 0.5 t\nq1 Q0 a 2 {score} t\n"));
        scratch
            .karat(&["retrieval", "trec", "--qrels", "q.txt", "--run", "r.txt"])
            .expect(2)
            .says(&["r.txt:2", score]);
    }
}

#[test]
fn contradictions_in_a_project_are_found_before_anything_runs() {
    for (from, to, words) in [
        (BM25, "{ builtin = \"bm52\" }", vec!["bm52", "bm25"]),
        (BM25, "{}", vec!["builtin", "command"]),
        (BM25, "{ builtin = \"bm25\", command = [\"x\"] }", vec!["exactly one"]),
        (BM25, "{ command = [] }", vec!["command is empty"]),
        ("golden = \"golden.jsonl\"\n", "", vec!["`corpus` and `golden`"]),
        ("name = \"r\"", "name = \"../r\"", vec!["name"]),
        ("baseline = \"b.json\"\n", "runs = 0\n", vec!["runs"]),
        ("baseline = \"b.json\"\n", "", vec!["baseline"]),
        ("max_drop = 0.0", "max_rise = 0.0", vec!["max_drop"]),
        ("max_drop = 0.0", "max_drop = nan", vec!["finite"]),
        (
            "[retrieval.gate.metrics]",
            "[retrieval.gate]\nslice = \"kind\"\n[retrieval.gate.metrics]",
            vec!["property=value"],
        ),
    ] {
        replaced("karat.toml", from, to, &[&["karat.toml"], words.as_slice()].concat());
    }
    broken("karat.toml", "name = \"empty\"\n", &["no entries", "karat init"]);
}

#[test]
fn hostile_names_reach_the_terminal_as_plain_text() {
    let scratch = Scratch::new();
    scratch.project(
        &GOLDEN.replace("\"id\": \"q1\"", "\"id\": \"q\\u001b[31m\\u202e1\""),
        "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.0 }\n",
        "{ command = [\"python3\", \"-c\", \"import sys; sys.stderr.write('\\\\x1b]0;title\\\\x07'); sys.exit(1)\"] }",
    );
    let ran = scratch.karat(&["check", "-o", "out.md"]).expect(3);
    for text in [&ran.stdout, &ran.stderr, &scratch.read("out.md")] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    }
}

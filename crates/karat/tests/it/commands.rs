//! The other commands, end to end.

use crate::common;

use std::io::Write as _;

use common::{BM25, GOLDEN, Scratch};

#[test]
fn a_baseline_update_shows_what_it_accepts() {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    let dry = scratch.karat(&["baseline", "update", "--dry-run"]).expect(0);
    assert!(dry.stdout.contains("would write"), "{}", dry.stdout);
    assert!(!scratch.path("b.json").exists());
    scratch.karat(&["baseline", "update"]).expect(0);
    let first = scratch.read("b.json");
    let same = scratch.karat(&["baseline", "update"]).expect(0);
    assert!(same.stdout.contains("nothing changed"), "{}", same.stdout);
    assert_eq!(scratch.read("b.json"), first);
    let shown = scratch.karat(&["baseline", "show"]).expect(0);
    assert!(shown.stdout.contains("mrr"), "{}", shown.stdout);

    // The program finds nothing: the update says what is lost before it is accepted.
    let system = "{ command = [\"python3\", \"-c\", '''\nimport sys, json\nfor line in sys.stdin:\n    print(json.dumps({\"id\": json.loads(line)[\"id\"], \"ranked\": []}), flush=True)\n'''] }";
    scratch.project(GOLDEN, gate, system);
    scratch.karat(&["check"]).expect(1);
    let worse = scratch.karat(&["baseline", "update"]).expect(0);
    assert!(worse.stdout.contains("q1") && worse.stdout.contains("-1.0000"), "{}", worse.stdout);
    scratch.karat(&["check"]).expect(0);
}

#[test]
fn a_baseline_update_honours_what_it_accepts() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "baseline = \"b.json\"\n", BM25);
    for refused in [["-o", "x.json"], ["--strict", "--dry-run"]] {
        let ran = scratch.karat(&[&["baseline", "update"], &refused[..]].concat()).expect(2);
        assert!(ran.stderr.contains(refused[0]), "{}", ran.stderr);
    }
    assert!(!scratch.path("b.json").exists());
    let update =
        |flags: &[&str]| scratch.karat(&[&["baseline", "update"], flags].concat()).expect(0);
    let document = update(&["--json", "--dry-run"]).json();
    assert_eq!(document["updates"][0]["change"], "new");
    assert_eq!(document["updates"][0]["wrote"], false);
    assert!(!scratch.path("b.json").exists());
    assert_eq!(update(&["--json"]).json()["updates"][0]["wrote"], true);

    let dry = update(&["--dry-run"]).stdout;
    assert!(dry.contains("nothing changed") && !dry.contains("would write"), "{dry}");
    assert_eq!(update(&["--json"]).json()["updates"][0]["change"], "nothing");
}

#[test]
fn a_baseline_update_names_the_entries_without_a_baseline_and_records_the_others() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "baseline = \"b.json\"\n", BM25);
    let with = scratch.read("karat.toml");
    let without = with.replace("\"r\"", "\"plain\"").replace("baseline = \"b.json\"\n", "");
    scratch.write("karat.toml", format!("{with}\n{without}"));
    let ran = scratch.karat(&["baseline", "update"]).expect(0);
    assert!(scratch.path("b.json").exists());
    assert!(ran.stderr.contains("not recorded: retrieval/plain: "), "{}", ran.stderr);

    // An entry that is asked for by name, or is the only one, has to name a file.
    let refused = scratch.karat(&["baseline", "update", "--only", "plain"]).expect(2);
    assert!(refused.stderr.contains("names no baseline file"), "{}", refused.stderr);
    scratch.write("karat.toml", without);
    scratch.karat(&["baseline", "update"]).expect(2);
}

#[test]
fn the_name_of_other_data_is_shown_without_control_characters() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "baseline = \"b.json\"\n", BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    let mut baseline: serde_json::Value = serde_json::from_str(&scratch.read("b.json")).unwrap();
    baseline["dataset"]["id"] = "x\u{1b}[2J".into();
    baseline.as_object_mut().unwrap().remove("contents");
    baseline["dataset"]["digest"] = format!("sha256:{}", "0".repeat(64)).into();
    scratch.write("b.json", baseline.to_string());
    let ran = scratch.karat(&["baseline", "update", "--dry-run"]).expect(0);
    assert!(ran.stdout.contains("not comparable"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
}

#[test]
fn without_a_project_no_baseline_is_updated() {
    Scratch::new().karat(&["baseline", "update"]).expect(2).says(&["karat init", "name a project"]);
}

#[test]
fn compare_lists_what_flipped() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.karat(&["check", "-o", "before.json"]).expect(0);
    let system = "{ command = [\"python3\", \"-c\", '''\nimport sys, json\nfor line in sys.stdin:\n    q = json.loads(line)\n    print(json.dumps({\"id\": q[\"id\"], \"ranked\": [{\"tool_id\": \"s:list_files\"}]}), flush=True)\n'''] }";
    scratch.project(GOLDEN, "", system);
    scratch.karat(&["check", "-o", "after.json"]).expect(0);
    let ran = scratch.karat(&["compare", "before.json", "after.json"]).expect(0);
    assert!(ran.stdout.contains("mrr worse on 1: q1"), "{}", ran.stdout);
    let document =
        scratch.karat(&["compare", "before.json", "after.json", "--json"]).expect(0).json();
    let deltas = document["comparisons"][0]["deltas"].as_array().unwrap();
    let mrr = deltas.iter().find(|delta| delta["metric"] == "mrr").unwrap();
    assert_eq!((&mrr["delta"], &mrr["pairs"]), (&(-0.5).into(), &2.into()));
    assert_eq!(mrr["worsened"][0], "q1");

    scratch.project(&GOLDEN.replace("\"query\": \"", "\"query\": \"please "), "", BM25);
    scratch.karat(&["check", "-o", "other.json"]);
    scratch.karat(&["compare", "before.json", "other.json"]).expect(2).says(&["different data"]);
}

#[test]
fn an_entry_that_cannot_be_compared_does_not_hide_the_others() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let project = scratch.read("karat.toml");
    scratch.write("karat.toml", format!("{project}\n{}", project.replace("\"r\"", "\"other\"")));
    let both = scratch.karat(&["check", "--json"]).expect(0).json();
    let mut later = both.clone();
    later["reports"][1]["dataset"]["digest"] = "sha256:0".into();
    later["reports"][1].as_object_mut().unwrap().remove("contents");
    for (name, document) in [("before.json", &both), ("after.json", &later)] {
        scratch.write(name, document.to_string());
        scratch.karat(&["history", "add", name]).expect(0);
    }
    for command in
        [&["compare", "before.json", "after.json"][..], &["history", "compare", "1", "2"]]
    {
        let said = scratch.karat(command).expect(0).stdout;
        assert!(said.contains("retrieval · r"), "{said}");
        assert!(
            said.contains("not compared: retrieval/other: the scores are of different"),
            "{said}"
        );
        let json = scratch.karat(&[command, &["--json"]].concat()).expect(0).json();
        assert_eq!(json["comparisons"].as_array().unwrap().len(), 1);
        assert_eq!(json["not_compared"][0]["entry"], "retrieval/other");
    }
    // A slice of it alone is missing for the same reason.
    let sliced = ["compare", "before.json", "after.json", "--slice", "none=here"];
    scratch.karat(&sliced).expect(2).says(&["--slice:", "not compared: retrieval/other: "]);
    // If nothing else is left, it is the news.
    scratch.write("alone.json", later["reports"][1].to_string());
    let alone = ["compare", "before.json", "alone.json"];
    scratch.karat(&alone).expect(2).says(&["retrieval/other: ", "different data"]);
}

#[test]
fn text_of_others_in_a_comparison_is_escaped_and_fits_the_terminal() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let check = scratch.karat(&["check", "--json"]).expect(0).json();
    let mut before = check.clone();
    for (name, evaluation) in [("other", "retrieval"), ("own", "a\u{1b}[2Jb")] {
        let mut entry = check["reports"][0].clone();
        (entry["name"], entry["evaluation"]) = (name.into(), evaluation.into());
        before["reports"].as_array_mut().unwrap().push(entry);
    }
    let mut after = before.clone();
    after["reports"][1]["kind"] = "k\u{1b}[31mind".into();
    scratch.write("before.json", before.to_string());
    scratch.write("after.json", after.to_string());
    let mut command = scratch.command(&["compare", "before.json", "after.json"]);
    let said = command.env("COLUMNS", "80").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(!said.contains('\u{1b}'), "{said:?}");
    assert!(said.contains("not compared: retrieval/other: retrieval (ranking)"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
}

#[test]
fn a_primary_metric_is_that_of_the_entries_that_have_it() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let call = r#"{"id": "t", "calls": [{"name": "a", "arguments": {}}], "expect": {"calls": [{"name": "a", "arguments": {}}]}}"#;
    scratch.write("traces.jsonl", call);
    let project = scratch.read("karat.toml");
    let agent = "[[agent]]\nname = \"a\"\ntraces = [\"traces.jsonl\"]\n";
    scratch.write("karat.toml", format!("{project}\n{agent}"));
    scratch.karat(&["check", "-o", "r.json"]).expect(0);
    let compare = |id: &str| scratch.karat(&["compare", "r.json", "r.json", "--primary", id]);
    compare("mrr").expect(0);
    compare("task.success").expect(0);
    compare("mrr@7").expect(2).says(&["\"mrr@7\" was not compared", "mrr", "task.success"]);
}

#[test]
fn compare_refuses_an_unknown_slice_and_an_item_twice() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.karat(&["check", "-o", "a.json"]).expect(0);
    let compare =
        |file: &str, slice: &str| scratch.karat(&["compare", "a.json", file, "--slice", slice]);
    let ran = compare("a.json", "kind=direct").expect(0);
    assert!(ran.stdout.contains("mrr kind=direct"), "{}", ran.stdout);
    compare("a.json", "kind=zz").expect(2).says(&["neither report has \"kind=zz\"", "kind=direct"]);
    scratch.project(&GOLDEN.replace("paraphrase", "indirect"), "", BM25);
    scratch.karat(&["check", "-o", "b.json"]).expect(0);
    compare("b.json", "kind=paraphrase").expect(2).says(&["only the earlier report has"]);
    compare("b.json", "kind=indirect").expect(2).says(&["only the later report has"]);

    let mut twice: serde_json::Value = serde_json::from_str(&scratch.read("a.json")).unwrap();
    let items = twice["reports"][0]["items"].as_array_mut().unwrap();
    items.push(items[0].clone());
    scratch.write("twice.json", twice.to_string());
    compare("twice.json", "kind=direct").expect(2).says(&["\"q1\" is listed twice now"]);
}

#[test]
fn compare_knows_a_baseline_and_a_project_from_a_report() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "baseline = \"b.json\"\n", BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["check", "-o", "a.json"]).expect(0);
    let compare = |file: &str| scratch.karat(&["compare", file, "a.json"]).expect(2);
    compare("b.json").says(&["b.json", "this is a baseline", "`karat check` compares with it"]);
    compare("karat.toml").says(&["karat.toml", "use a report.json"]);
}

#[test]
fn compare_counts_what_lost_its_score_and_shows_names_as_they_are() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.karat(&["check", "-o", "a.json"]).expect(0);
    let mut check: serde_json::Value = serde_json::from_str(&scratch.read("a.json")).unwrap();
    let report = &mut check["reports"][0];
    report["name"] = "r\n::error::\u{1b}[31m".into();
    for (_, score) in report["items"][0]["metrics"].as_object_mut().unwrap() {
        *score = serde_json::Value::Null;
    }
    scratch.write("b.json", check.to_string());
    let ran = scratch.karat(&["compare", "a.json", "b.json"]).expect(0);
    let expected_line = "metrics, no score now: q1 (the change is over the other 1)";
    assert!(ran.stdout.contains(expected_line), "{}", ran.stdout);
    assert!(!ran.stdout.contains(['\u{1b}']), "{:?}", ran.stdout);
    assert!(!ran.stdout.lines().any(|line| line.starts_with("::error::")), "{}", ran.stdout);
}

/// The run of the next test, packed by `xz --check=crc32`.
const RUN_XZ: &[u8] = &[
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x00, 0x3b, 0x00, 0x27, 0x5d, 0x00, 0x38,
    0x8c, 0x40, 0x05, 0x52, 0x48, 0x28, 0xe2, 0xe8, 0x6f, 0x52, 0x33, 0x29, 0x35, 0xda, 0x8b, 0xaa,
    0x98, 0x12, 0x47, 0xa0, 0xb2, 0x48, 0xbb, 0x56, 0x4d, 0xdf, 0x26, 0x1e, 0x99, 0xc9, 0x15, 0xc7,
    0x1c, 0x14, 0x51, 0x38, 0x00, 0x00, 0x00, 0x00, 0xe5, 0x58, 0x92, 0xd7, 0x00, 0x01, 0x3f, 0x3c,
    0x90, 0xe3, 0x37, 0x57, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
];

#[test]
fn trec_files_are_scored_plain_and_compressed() {
    let scratch = Scratch::new();
    let qrels = "q1 0 a 2\nq1 0 b 0\nq2 0 c 1\nq3 0 d 1\n";
    let run = "q1 Q0 b 1 0.9 t\nq1 Q0 a 2 0.9 t\nq2 Q0 x 1 3 t\nq2 Q0 c 2 2 t\n";
    scratch.write("qrels", qrels);
    for (name, text) in [("qrels.gz", qrels), ("run.gz", run)] {
        let file = std::fs::File::create(scratch.path(name)).unwrap();
        let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap();
    }
    scratch.write("run", run);
    let plain = scratch
        .karat(&["retrieval", "trec", "--qrels", "qrels", "--run", "run", "--json"])
        .expect(0);
    let gz = scratch
        .karat(&["retrieval", "trec", "--qrels", "qrels.gz", "--run", "run.gz", "--json"])
        .expect(0);
    assert_eq!(plain.stdout, gz.stdout);
    // A frame with its length and one uncompressed block.
    let length = u8::try_from(run.len()).unwrap();
    let block = (u32::from(length) << 3 | 1).to_le_bytes();
    let zst = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, length], &block[..3], run.as_bytes()].concat();
    for packed in [&zst[..], RUN_XZ] {
        scratch.write("packed", packed);
        let words = ["retrieval", "trec", "--qrels", "qrels.gz", "--run", "packed", "--json"];
        assert_eq!(scratch.karat(&words).expect(0).stdout, plain.stdout);
    }
    let document = plain.json();
    // The tie in q1 goes to b, by id descending: 1/2 for both queries, 0 for the one not in the run.
    assert_eq!(document["means"]["evaluated"]["mrr"], 0.5);
    assert!((document["means"]["judged"]["mrr"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(document["queries"]["missing"]["first"][0], "q3");
    let table = scratch
        .karat(&[
            "retrieval",
            "trec",
            "--qrels",
            "qrels",
            "--run",
            "run",
            "-m",
            "mrr",
            "--per-query",
        ])
        .expect(0);
    insta::assert_snapshot!(table.stdout);
    scratch
        .karat(&["retrieval", "trec", "--qrels", "qrels", "--run", "run", "-m", "mmr"])
        .expect(2)
        .says(&["mmr", "mrr"]);
}

#[test]
fn bad_trec_lines_are_named() {
    let scratch = Scratch::new();
    scratch.write("good", "q1 0 a 1\n");
    for (qrels, run, words) in [
        ("q1 0 a 1\nq1 0 a 1\n", "q1 Q0 a 1 1 t\n", ["qrels:2", "a"]),
        ("q1 0 a x\n", "q1 Q0 a 1 1 t\n", ["qrels:1", "x"]),
        ("q1 0 a 1\n", "q1 Q0 a 1 1 t\nq1 Q0 a 2 0 t\n", ["run:2", "a"]),
        ("q1 0 a 1\n", "q1 Q0 a 1\n", ["run:1", "6"]),
        ("q1 0 a 1\n", "", ["run", "empty"]),
    ] {
        scratch.write("qrels", qrels);
        scratch.write("run", run);
        scratch
            .karat(&["retrieval", "trec", "--qrels", "qrels", "--run", "run"])
            .expect(2)
            .says(&words);
    }
    scratch
        .karat(&["retrieval", "trec", "--qrels", "good", "--run", "gone"])
        .expect(2)
        .says(&["gone"]);
}

/// Writes a vector file's cases as lines, one sample each.
fn samples(
    file: &str,
    line: impl Fn(&serde_json::Value) -> serde_json::Value,
) -> (String, Vec<serde_json::Value>) {
    let path = format!("{}/../karat-metrics/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let vectors: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    // Integers beyond 64 bits do not survive this reader; they are tested where they do.
    let cases: Vec<serde_json::Value> = vectors["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| !case["tags"].to_string().contains("bigint"))
        .cloned()
        .collect();
    let text: Vec<String> = cases.iter().map(|case| line(case).to_string()).collect();
    (text.join("\n"), cases)
}

#[test]
fn ragas_vectors_through_the_command_line() {
    let (text, cases) = samples("ragas_tool_calls.json", |case| {
        serde_json::json!({
            "id": case["id"],
            "user_input": case["messages"],
            "reference_tool_calls": case["reference_tool_calls"],
        })
    });
    let scratch = Scratch::new();
    scratch.write("traces.jsonl", text);
    let document = scratch
        .karat(&["agent", "score", "--format", "ragas", "traces.jsonl", "--per-item", "--json"])
        .expect(0)
        .json();
    let items = document["items"].as_array().unwrap();
    assert_eq!(items.len(), cases.len());
    for (item, case) in items.iter().zip(&cases) {
        assert_eq!(item["id"], case["id"]);
        for (ours, theirs) in [
            ("ragas.tool_call_accuracy", "collections_accuracy_strict"),
            ("ragas.tool_call_accuracy_unordered", "collections_accuracy_unordered"),
            ("ragas.tool_call_f1", "collections_f1"),
        ] {
            let (found, expected) = (
                item["scores"][ours].as_f64().unwrap(),
                case["expected"][theirs].as_f64().unwrap(),
            );
            assert!((found - expected).abs() <= 1e-12, "{} {ours}: {found} {expected}", case["id"]);
        }
    }
}

#[test]
fn deepeval_vectors_through_the_command_line() {
    let (text, cases) = samples("deepeval_tool_correctness.json", |case| {
        serde_json::json!({
            "id": case["id"],
            "input": "x",
            "actual_output": "y",
            "tools_called": case["tools_called"],
            "expected_tools": case["expected_tools"],
        })
    });
    let scratch = Scratch::new();
    scratch.write("traces.jsonl", text);
    let keys = ["default|name", "ordered|name+input", "exact|name+output"];
    let ids: Vec<String> =
        keys.iter().map(|key| format!("deepeval.tool_correctness|{key}")).collect();
    let mut arguments =
        vec!["agent", "score", "--format", "deepeval", "traces.jsonl", "--per-item", "--json"];
    arguments.extend(ids.iter().flat_map(|id| ["-m", id.as_str()]));
    let document = scratch.karat(&arguments).expect(0).json();
    let ids: Vec<&str> =
        document["metrics"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    let mut compared = 0;
    for (item, case) in document["items"].as_array().unwrap().iter().zip(&cases) {
        assert_eq!(item["id"], case["id"]);
        for (id, key) in ids.iter().zip(keys) {
            // Where the peer raised an error there is no value to agree with.
            let Some(expected) = case["expected"][key]["score"].as_f64() else { continue };
            let found = item["scores"][*id].as_f64().unwrap();
            assert!((found - expected).abs() <= 1e-12, "{} {id}: {found} {expected}", case["id"]);
            compared += 1;
        }
    }
    assert!(compared > 2 * cases.len());
}

#[test]
fn traces_that_cannot_be_scored_are_told_apart() {
    let scratch = Scratch::new();
    let score = |text: &str| {
        scratch.write("t.jsonl", text);
        scratch.karat(&["agent", "score", "--format", "ragas", "t.jsonl"])
    };
    let good = r#"{"user_input": [], "reference_tool_calls": []}"#;
    score("").expect(3).says(&["t.jsonl"]);
    score(&format!("{good}\n{{\"user_input\": [\n")).expect(2).says(&["t.jsonl:2"]);
    score(&format!("{good}\n{{}}\n")).expect(2).says(&["t.jsonl:2"]);
    score(good).expect(0);
}

#[test]
fn pages_made_from_the_code_are_up_to_date() {
    let scratch = Scratch::new();
    for (arguments, page) in [
        (["metrics", "--markdown"], "metrics.md"),
        (["schema", "report"], "report.schema.json"),
        (["schema", "check"], "check.schema.json"),
    ] {
        let made = scratch.karat(&arguments).expect(0).stdout;
        let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == made,
            "docs/{page} is out of date: cargo run -- {} > docs/{page}",
            arguments.join(" ")
        );
    }
}

#[test]
fn metrics_are_listed_and_defined() {
    let scratch = Scratch::new();
    let list = scratch.karat(&["metrics"]).expect(0).stdout;
    assert!(
        list.contains("recall@k") && list.contains("ragas.tool_call_f1") && list.contains("pass^k")
    );
    let one = scratch.karat(&["metrics", "ndcg@10"]).expect(0).stdout;
    assert!(one.contains("ndcg@k"), "{one}");
    scratch.karat(&["metrics", "ncdg@10"]).expect(2).says(&["ndcg@10"]);
}

#[test]
fn completions_and_manual_page_are_printed() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(scratch.karat(&["completions", shell]).expect(0).stdout.contains("karat"));
    }
    let page = scratch.karat(&["man"]).expect(0).stdout;
    assert!(
        page.starts_with(".ie") || page.starts_with(".TH") || page.contains(".TH karat"),
        "{}",
        &page[..80]
    );
    assert!(page.contains("KARAT CHECK"));
}

#[test]
fn bad_usage_is_exit_code_2() {
    let scratch = Scratch::new();
    for arguments in
        [vec!["nonsense"], vec!["check", "--nonsense"], vec![], vec!["retrieval", "trec"]]
    {
        assert_eq!(scratch.karat(&arguments).code, 2, "{arguments:?}");
    }
    scratch.karat(&["check", "gone.toml"]).expect(2).says(&["gone.toml"]);
    scratch.karat(&["check", "--only", "nobody"]).expect(2);
}

//! `karat retrieval`, end to end: the built-in engines, rankings from files, and what a change of
//! search, corpus or index does to the gate.

use crate::common;

use std::collections::BTreeMap;

use common::{BM25, GOLDEN, Scratch};
use serde_json::{Value, json};

/// Three servers, nine tools and five queries in the shape of the public files.
fn public_files(scratch: &Scratch) {
    let tool = |id: &str, description: &str| {
        let (server, name) = id.split_once(':').unwrap();
        format!(
            r#"{{"tool_id": "{id}", "server": "{server}", "tool": "{name}", "description": "{description}", "schema": {{"type": "object", "properties": {{"path": {{"type": "string"}}}}}}}}"#
        )
    };
    let tools = [
        tool("disk:read", "Give back what a file holds."),
        tool("disk:write", "Put text into a file."),
        tool("disk:tree", "Show folders and what is in them."),
        tool("repo:commit", "Record staged changes."),
        tool("repo:diff", "Show what has changed."),
        tool("repo:log", "List earlier commits."),
        tool("clock:now", "Tell the time in a zone."),
        tool("clock:convert", "Carry a time over to another zone."),
        tool("clock:zones", "List the zones that are known."),
    ];
    scratch.write(
        "corpus.json",
        format!(r#"{{"version": "corpus_v1", "tools": [{}]}}"#, tools.join(",\n")),
    );
    // Not sorted by id, as files written by people are not.
    scratch.write(
        "golden.json",
        r#"{"corpus_version": "corpus_v1", "queries": [
            {"id": "q-time", "query": "how late is it over there", "labels": [{"tool_id": "clock:now", "relevance": 2}, {"tool_id": "clock:convert", "relevance": 1}], "notes": "two"},
            {"id": "q-read", "query": "open a document", "labels": [{"tool_id": "disk:read", "relevance": 2}]},
            {"id": "q-what", "query": "what did I touch", "labels": [{"tool_id": "repo:diff", "relevance": 2}, {"tool_id": "repo:log", "relevance": 1}, {"tool_id": "disk:tree", "relevance": 0}]},
            {"id": "q-save", "query": "keep my work", "labels": [{"tool_id": "repo:commit", "relevance": 2}]},
            {"id": "q-gone", "query": "nothing finds this", "labels": [{"tool_id": "clock:zones", "relevance": 2}]}]}"#,
    );
    scratch.write(
        "rankings.jsonl",
        r#"{"id": "q-time", "query": "how late is it over there", "ranked": [{"tool_id": "clock:convert", "score": 0.9}, {"tool_id": "disk:tree", "score": 0.5}, {"tool_id": "clock:now", "score": 0.2}]}
{"id": "q-read", "query": "open a document", "ranked": [{"tool_id": "disk:write", "score": 0.4}, {"tool_id": "disk:read", "score": 0.4}]}
{"id": "q-what", "query": "what did I touch", "ranked": [{"tool_id": "disk:tree", "score": 3}, {"tool_id": "repo:log", "score": 2}, {"tool_id": "clock:now", "score": 1}]}
{"id": "q-save", "query": "keep my work", "ranked": [{"tool_id": "repo:commit", "score": 1.5}]}
{"id": "q-gone", "query": "nothing finds this", "ranked": []}
"#,
    );
}

const FILES: [&str; 4] = ["--corpus", "corpus.json", "--golden", "golden.json"];

fn with_files<'a>(command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [command, &FILES, more].concat()
}

fn values(report: &Value) -> BTreeMap<String, f64> {
    let metrics = report["metrics"].as_array().unwrap().iter();
    metrics
        .filter_map(|metric| Some((metric["id"].as_str()?.to_owned(), metric["value"].as_f64()?)))
        .collect()
}

fn score(scratch: &Scratch) -> Value {
    let arguments =
        with_files(&["retrieval", "score"], &["--rankings", "rankings.jsonl", "--json"]);
    scratch.karat(&arguments).expect(0).json()
}

#[test]
fn rankings_made_elsewhere_are_scored_by_the_formulas() {
    let scratch = Scratch::new();
    public_files(&scratch);
    let report = score(&scratch);
    let found = values(&report);
    let mean = |scores: [f64; 5]| scores.iter().sum::<f64>() / 5.0;
    let log = f64::log2;
    // In the order of the golden file: time, read, what, save, gone.
    for (id, expected) in [
        ("recall@1", mean([0.5, 0.0, 0.0, 1.0, 0.0])),
        ("recall@3", mean([1.0, 1.0, 0.5, 1.0, 0.0])),
        ("mrr@10", mean([1.0, 0.5, 0.5, 1.0, 0.0])),
        ("map@10", mean([(1.0 + 2.0 / 3.0) / 2.0, 0.5, 0.25, 1.0, 0.0])),
        (
            "ndcg@10",
            mean([
                (1.0 + 2.0 / log(4.0)) / (2.0 + 1.0 / log(3.0)),
                (2.0 / log(3.0)) / 2.0,
                (1.0 / log(3.0)) / (2.0 + 1.0 / log(3.0)),
                1.0,
                0.0,
            ]),
        ),
        ("hard_negative_rate", 1.0),
    ] {
        assert!((found[id] - expected).abs() < 1e-15, "{id}: {} {expected}", found[id]);
    }
    assert_eq!(report["system"]["kind"], "file");
}

#[test]
fn lists_of_tools_and_queries_are_read_in_every_format() {
    let scratch = Scratch::new();
    let tools = json!([{"name": "send", "server": "m", "description": "send a letter"},
        {"name": "open", "server": "m", "description": "open a window"}]);
    let queries = json!([{"id": "q", "query": "open the window",
        "labels": [{"tool_id": "m:open", "relevance": 2}]}]);
    for (name, list) in [("tools", &tools), ("queries", &queries)] {
        scratch.write(&format!("{name}.json"), list.to_string());
        let lines: String = list.as_array().unwrap().iter().map(|one| format!("{one}\n")).collect();
        scratch.write(&format!("{name}.jsonl"), &lines);
        let items: String = lines.lines().map(|one| format!("- {one}\n")).collect();
        scratch.write(&format!("{name}.yaml"), format!("# Of a test.\n---\n{items}"));
        scratch.write(&format!("{name}.yml"), format!("--- {list}\n"));
    }
    let scores = |corpus: &str, golden: &str| {
        let command = ["retrieval", "run", "--corpus", corpus, "--golden", golden, "--json"];
        values(&scratch.karat(&command).expect(0).json()["reports"][0])
    };
    let expected = scores("tools.json", "queries.json");
    assert_eq!(expected["mrr"], 1.0);
    for ending in ["jsonl", "yaml", "yml"] {
        assert_eq!(scores(&format!("tools.{ending}"), "queries.json"), expected, "{ending}");
        assert_eq!(scores("tools.json", &format!("queries.{ending}")), expected, "{ending}");
    }
}

#[test]
fn a_tool_of_another_shape_is_refused_without_names_of_types() {
    let scratch = Scratch::new();
    scratch.write("golden.jsonl", GOLDEN);
    for (name, text) in [("tools.json", "[3]"), ("tools.yaml", "- 3\n")] {
        scratch.write(name, text);
        let command = ["retrieval", "run", "--corpus", name, "--golden", "golden.jsonl"];
        let said = ["tools[0]: found the number `3`, expected an object with keys"];
        scratch.karat(&command).expect(2).says(&said);
    }
}

#[test]
fn a_mean_is_summed_in_the_order_of_the_golden_file() {
    let scratch = Scratch::new();
    let tools: Vec<String> = (0..30)
        .map(|n| format!(r#"{{"server": "s", "tool": "t{n:02}", "description": "x"}}"#))
        .collect();
    scratch.write("corpus.json", format!(r#"{{"tools": [{}]}}"#, tools.join(",")));
    // Ranks whose reciprocals give different sums forwards and backwards.
    let ranks = [3, 7, 1, 9, 6, 3, 7, 2, 9, 10, 5, 3];
    let (mut golden, mut rankings) = (Vec::new(), Vec::new());
    for (place, rank) in ranks.iter().enumerate() {
        let id = format!("q{:02}", 99 - place);
        golden.push(format!(
            r#"{{"id": "{id}", "query": "x", "labels": [{{"tool_id": "s:t00", "relevance": 2}}]}}"#
        ));
        let mut list: Vec<String> =
            (1..*rank).map(|n| format!(r#"{{"tool_id": "s:t{n:02}"}}"#)).collect();
        list.push(r#"{"tool_id": "s:t00"}"#.to_owned());
        rankings.push(format!(r#"{{"id": "{id}", "ranked": [{}]}}"#, list.join(",")));
    }
    scratch.write("golden.json", format!(r#"{{"queries": [{}]}}"#, golden.join(",")));
    scratch.write("rankings.jsonl", rankings.join("\n"));
    let sum = |ranks: &mut dyn Iterator<Item = &i32>| {
        ranks.map(|rank| 1.0 / f64::from(*rank)).sum::<f64>() / ranks_len()
    };
    let (forwards, backwards) = (sum(&mut ranks.iter()), sum(&mut ranks.iter().rev()));
    assert_ne!(forwards, backwards, "the example must be able to tell");
    assert_eq!(values(&score(&scratch))["mrr@10"], forwards);

    fn ranks_len() -> f64 {
        12.0
    }
}

#[test]
fn trec_files_say_the_same_to_our_trec_scorer_and_come_back_unchanged() {
    let scratch = Scratch::new();
    public_files(&scratch);
    let export = ["--qrels", "labels.trec", "--run", "run.trec", "--rankings", "rankings.jsonl"];
    let ran = scratch.karat(&with_files(&["retrieval", "export-trec"], &export)).expect(0);
    assert!(ran.stderr.contains("1 query with an empty result"), "{}", ran.stderr);

    let direct = values(&score(&scratch));
    let trec = scratch
        .karat(&[
            "score",
            "trec",
            "--qrels",
            "labels.trec",
            "--run",
            "run.trec",
            "--json",
            "-m",
            "recall@1",
            "-m",
            "recall@3",
            "-m",
            "recall@5",
            "-m",
            "mrr@10",
            "-m",
            "ndcg@10",
            "-m",
            "map@10",
            "-m",
            "map",
            "-m",
            "mrr",
        ])
        .expect(0)
        .json();
    for (id, value) in trec["means"]["judged"].as_object().unwrap() {
        assert!((value.as_f64().unwrap() - direct[id]).abs() < 1e-15, "{id}");
    }

    let import = with_files(&["retrieval", "score"], &["--run", "run.trec", "--json"]);
    scratch.karat(&import).expect(3).says(&["q-gone", "no ranking for this query"]);
    let back = scratch.karat(&[&import[..], &["--absent-is-empty"]].concat()).expect(0).json();
    assert_eq!(values(&back), direct);
}

#[test]
fn rankings_made_elsewhere_are_held_to_rules_and_written_as_a_report() {
    let scratch = Scratch::new();
    public_files(&scratch);
    let score = |more: &[&str]| {
        let words = with_files(&["retrieval", "score"], &["--rankings", "rankings.jsonl"]);
        scratch.karat(&[&words[..], more].concat())
    };
    score(&["--max", "mrr=1"]).expect(0);
    let failed = score(&["--min", "mrr=1", "-o", "r.json"]).expect(1).stdout;
    assert!(failed.contains("report: r.json"), "{failed}");
    let written: Value = serde_json::from_str(&scratch.read("r.json")).unwrap();
    assert_eq!(written["verdict"], "fail");
}

#[test]
fn a_journal_and_a_report_can_be_scored_again() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let run = scratch.karat(&["retrieval", "run", "--json"]).expect(0).json();
    for source in ["karat-report/journal/retrieval-r.jsonl", "karat-report/report.json"] {
        let again = scratch
            .karat(&[
                "retrieval",
                "score",
                "--corpus",
                "tools.json",
                "--golden",
                "golden.jsonl",
                "--rankings",
                source,
                "--json",
            ])
            .expect(0)
            .json();
        assert_eq!(again["metrics"], run["reports"][0]["metrics"], "{source}");
    }
}

#[test]
fn a_report_of_several_runs_does_not_pass_for_its_first_one() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", &format!("{BM25}\nruns = 2\n"));
    scratch.karat(&["retrieval", "run"]).expect(0);
    let score = ["retrieval", "score", "--corpus", "tools.json", "--golden", "golden.jsonl"];
    let report = [&score[..], &["--rankings", "karat-report/report.json"]].concat();
    scratch.karat(&report).expect(2).says(&["2 runs", "journal"]);
    let journal = ["--rankings", "karat-report/journal/retrieval-r.jsonl", "--json"];
    let again = scratch.karat(&[&score[..], &journal].concat()).expect(0).json();
    assert_eq!(again["runs"], 2);
}

#[test]
fn files_that_give_no_score_are_never_a_pass() {
    let scratch = Scratch::new();
    scratch.write("other.qrels", "elsewhere 0 clock:now 1\n");
    scratch.write("run.trec", "q-time Q0 clock:now 1 1.0 t\n");
    let trec = ["retrieval", "trec", "--qrels", "other.qrels", "--run", "run.trec", "--json"];
    scratch.karat(&trec).expect(3).says(&["no query was evaluated", "belong together"]);

    scratch.project(&GOLDEN.replace("\"relevance\": 2", "\"relevance\": 0"), "", BM25);
    let ran = scratch.karat(&["retrieval", "run"]).expect(3);
    assert!(ran.stdout.contains("no query has a score"), "{}", ran.stdout);
}

#[test]
fn what_is_wrong_with_rankings_is_said_and_never_scored_as_zero() {
    let scratch = Scratch::new();
    public_files(&scratch);
    let whole = scratch.read("rankings.jsonl");
    let command = with_files(&["retrieval", "score"], &["--rankings", "rankings.jsonl"]);
    let run = |text: &str, code: i32, words: &[&str]| {
        scratch.write("rankings.jsonl", text);
        scratch.karat(&command).expect(code).says(words);
    };
    let without_save: Vec<&str> = whole.lines().filter(|line| !line.contains("q-save")).collect();
    run(&without_save.join("\n"), 3, &["1 of 5 queries", "q-save", "no ranking for this query"]);
    run(&whole.replace("q-save", "q-sav"), 2, &["q-sav", "not in the golden set"]);
    run(&format!("{whole}{whole}"), 2, &["line 6", "q-time is ranked twice"]);
    let twice = whole.replace("\"disk:write\"", "\"disk:read\"");
    run(&twice, 3, &["q-read", "invalid_answer", "disk:read"]);
    run(&whole.replace("\"ranked\": []", "\"other\": []"), 2, &["line 5", "ranked"]);
    run(
        &whole.replace("\"id\": \"q-save\"", "\"run\": 4294967295, \"id\": \"q-save\""),
        2,
        &["line 4", "runs"],
    );
    run("", 3, &["none of 5 queries has a valid answer"]);
    run("{", 2, &["rankings.jsonl:1"]);

    // A tool that the corpus does not have is a wrong result, and said to be one.
    scratch.write("rankings.jsonl", whole.replace("\"disk:write\"", "\"disk:ghost\""));
    let ran = scratch.karat(&command).expect(0);
    assert!(ran.stdout.contains("1 answered id that the corpus does not have"), "{}", ran.stdout);
    // Within the allowance a query without a ranking has no score, and the rest is averaged.
    scratch.write("rankings.jsonl", without_save.join("\n"));
    let allowed = [&command[..], &["--max-errors", "0.2", "--json"]].concat();
    let report = scratch.karat(&allowed).expect(0).json();
    let mrr = report["metrics"].as_array().unwrap().iter().find(|m| m["id"] == "mrr").unwrap();
    assert_eq!((&mrr["value"], &mrr["n"]), (&0.5.into(), &4.into()));
}

const GATED: &str = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"recall@5\" = { max_drop = 0.0 }\n\"mrr\" = { max_drop = 0.0 }\n\"ndcg@10\" = { max_drop = 0.0 }\n\"map\" = { max_drop = 0.0 }\n";

#[test]
fn without_descriptions_every_headline_metric_drops_and_the_gate_names_them() {
    let scratch = Scratch::new();
    let project = |engine: &str| {
        scratch.write(
            "karat.toml",
            format!(
                "[[retrieval]]\nname = \"r\"\ndataset = \"bundled:tools/v1\"\n\
                 system = {{ builtin = \"{engine}\" }}\n{GATED}"
            ),
        );
    };
    project("bm25");
    scratch.karat(&["baseline", "update"]).expect(0);
    let first = scratch.karat(&["retrieval", "run", "--json"]).expect(0);
    let again = scratch.karat(&["retrieval", "run", "--json"]).expect(0);
    assert_eq!(first.stdout, again.stdout, "identical bytes twice");
    let deltas = first.json()["reports"][0]["comparison"]["deltas"].clone();
    assert!(deltas.as_array().unwrap().iter().all(|delta| delta["delta"] == 0.0), "{deltas}");

    project("bm25-names");
    let ran = scratch.karat(&["retrieval", "run"]).expect(1);
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(1).report();
    let (before, after) = (values(&first.json()["reports"][0]), values(&report));
    for id in [
        "recall@1",
        "recall@3",
        "recall@5",
        "recall@10",
        "mrr",
        "ndcg@10",
        "map",
        "comprehensiveness@5",
    ] {
        assert!(after[id] < before[id], "{id}: {} {}", after[id], before[id]);
    }
    for check in report["gate"]["checks"].as_array().unwrap() {
        if check["rule"] == "max_drop" {
            assert_eq!(check["verdict"], "fail", "{check}");
            assert!(ran.stdout.contains(check["metric"].as_str().unwrap()), "{}", ran.stdout);
        }
    }
}

#[test]
fn a_labelled_tool_that_left_the_corpus_costs_its_query_all_recall_and_fails_the_gate() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, GATED, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["retrieval", "run"]).expect(0);
    let tools = scratch.read("tools.json");
    let without: Vec<&str> = tools.lines().filter(|line| !line.contains("list_files")).collect();
    scratch.write("tools.json", without.join("\n"));

    let ran = scratch.karat(&["retrieval", "run"]).expect(1);
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("not in the corpus (q2 labels s:list_files)"), "{said}");
    let report = scratch.karat(&["retrieval", "run", "--json"]).expect(1).report();
    let item = |id: &str| {
        report["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap().clone()
    };
    assert_eq!(item("q2")["metrics"]["recall@10"], 0.0);
    assert_eq!(item("q1")["metrics"]["recall@10"], 1.0);
    let checks = report["gate"]["checks"].as_array().unwrap();
    let failed: Vec<&Value> = checks.iter().filter(|check| check["verdict"] == "fail").collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0]["items"], serde_json::json!(["q2"]));

    // Rankings from elsewhere are of one corpus; there such files do not belong together.
    scratch.write("r.jsonl", "");
    let score = ["retrieval", "score", "--corpus", "tools.json", "--golden", "golden.jsonl"];
    scratch.karat(&[&score[..], &["--rankings", "r.jsonl"]].concat()).expect(2).says(&[
        "q2",
        "s:list_files",
        "not in the corpus",
    ]);
}

#[test]
fn a_query_lost_in_the_protected_slice_fails_by_name_whatever_the_means_say() {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate]\nprotected = { slice = \"kind=direct\", metric = \"success@5\" }\n";
    let answer = |ids: &str| {
        format!(
            "{{ command = [\"python3\", \"-c\", '''\nimport sys, json\nfor line in sys.stdin:\n    q = json.loads(line)\n    print(json.dumps({{\"id\": q[\"id\"], \"ranked\": [{{\"tool_id\": t}} for t in {ids}[q[\"id\"]]]}}), flush=True)\n'''] }}\nanswer_tokens = false"
        )
    };
    let both = "{\"q1\": [\"s:create_issue\"], \"q2\": [\"s:send_mail\", \"s:list_files\"]}";
    let lost = "{\"q1\": [\"s:send_mail\"], \"q2\": [\"s:list_files\"]}";
    scratch.project(GOLDEN, gate, &answer(both));
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["retrieval", "run"]).expect(0);
    scratch.project(GOLDEN, gate, &answer(lost));
    let ran = scratch.karat(&["retrieval", "run"]).expect(1);
    assert!(ran.stdout.contains("q1") && ran.stdout.contains("kind=direct"), "{}", ran.stdout);
}

#[test]
fn an_engine_that_cannot_be_built_says_what_it_needs() {
    let scratch = Scratch::new();
    for (system, words) in [
        ("{ builtin = \"bm24\" }", "bm25"),
        ("{ builtin = \"bm25\", weights = \"w\" }", "uses no weights"),
        ("{ builtin = \"bm25\", command = [\"x\"] }", "exactly one of"),
        ("{ http = { url = \"http://127.0.0.1:1/\" } }", "{query}"),
        (
            "{ http = { url = \"http://127.0.0.1:1/{query}\", answer = { id = \"{a\" } } }",
            "template",
        ),
    ] {
        scratch.project(GOLDEN, "", system);
        scratch.karat(&["retrieval", "run"]).expect(2).says(&[words]);
    }
}

#[test]
fn an_optimiser_gets_no_unrequested_cutoff() {
    let scratch = Scratch::new();
    let fitness = ["retrieval", "serve-fitness", "--metric", "recall@50"];
    scratch.karat(&fitness).expect(2).says(&["recall@50", "--results 50"]);
}

#[test]
fn an_optimiser_gets_a_line_for_each_line() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let lines = [
        r#"{"id": "one", "overrides": {"s:list_files": "z", "s:send_mail": "the folder holds"}, "queries": ["q2"]}"#,
        "nonsense",
        r#"{"overrides": {}, "queries": ["q2"]}"#,
    ];
    let output = scratch
        .command(&[
            "retrieval",
            "serve-fitness",
            "--corpus",
            "tools.json",
            "--golden",
            "golden.jsonl",
            "--metric",
            "mrr@10",
        ])
        .write_stdin(lines.join("\n"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 4, "{text}");
    assert_eq!(answers[0]["schema"], "karat.fitness/1");
    assert_eq!((&answers[1]["id"], &answers[1]["mean"]), (&"one".into(), &0.0.into()));
    let feedback = answers[1]["results"][0]["feedback"].as_str().unwrap();
    for word in ["s:list_files is relevant but", "s:send_mail", "folder", "hold"] {
        assert!(feedback.contains(word), "{word}: {feedback}");
    }
    assert!(answers[2]["error"].is_string());
    assert_eq!(answers[3]["mean"], 1.0);
    assert_eq!(answers[0]["dataset"]["digest"], answers[3]["digest"]);
}

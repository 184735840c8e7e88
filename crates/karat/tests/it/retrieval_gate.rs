//! Ways to break a search or its data, and what the gate says to each: the exit code, and the name of
//! what changed or was lost.

use crate::common;

use common::Scratch;
use serde_json::{Value, json};

/// The files of a project while one of them is being changed.
struct Files {
    corpus: Value,
    golden: Value,
    project: String,
    baseline: String,
}

const PROJECT: &str = r#"
[[retrieval]]
name = "search"
corpus = "corpus.json"
golden = "golden.json"
results = 20
baseline = "baseline.json"
system = { builtin = "bm25" }
[retrieval.gate]
protected = { metric = "success@5" }
[retrieval.gate.metrics]
"recall@5" = { max_drop = 0.0 }
"mrr" = { max_drop = 0.0 }
"ndcg@10" = { max_drop = 0.0 }
"#;

fn corpus() -> Value {
    let tool = |id: &str, description: &str| {
        let (server, tool) = id.split_once(':').unwrap();
        json!({"tool_id": id, "server": server, "tool": tool, "description": description,
               "schema": {"type": "object"}})
    };
    let mut diff = tool("git:diff", "Compares two revisions.");
    diff["schema"]["properties"] = json!({"branch": {"type": "string"}});
    json!({"version": "corpus_v1", "tools": [
        tool("git:log", "Shows the history of commits."),
        tool("git:commit", "Records what is staged."),
        diff,
        tool("disk:read", "Returns the text of a file."),
        tool("disk:write", "Stores text in a file."),
        tool("disk:tree", "Lists folders."),
        tool("clock:now", "Tells the present hour."),
        tool("clock:convert", "Carries an hour over to another zone."),
        tool("clock:zones", "Lists zones."),
    ]})
}

fn golden() -> Value {
    let query = |id: &str, text: &str, right: &str| json!({"id": id, "query": text, "labels": [{"tool_id": right, "relevance": 2}]});
    let mut hour = query("q-hour", "the present hour", "clock:now");
    let also = json!({"tool_id": "clock:convert", "relevance": 1});
    hour["labels"].as_array_mut().unwrap().push(also);
    json!({"corpus_version": "corpus_v1", "queries": [
        query("q-history", "history of my commits", "git:log"),
        query("q-branch", "branch", "git:diff"),
        query("q-read", "text of a file", "disk:read"),
        query("q-folders", "folders", "disk:tree"),
        hour,
    ]})
}

impl Files {
    fn write(&self, scratch: &Scratch) {
        scratch.write("corpus.json", self.corpus.to_string());
        scratch.write("golden.json", self.golden.to_string());
        scratch.write("karat.toml", &self.project);
        scratch.write("baseline.json", &self.baseline);
    }

    fn tool(&mut self, id: &str) -> &mut Value {
        let tools = self.corpus["tools"].as_array_mut().unwrap();
        tools.iter_mut().find(|tool| tool["tool_id"] == id).unwrap()
    }

    fn query(&mut self, id: &str) -> &mut Value {
        let queries = self.golden["queries"].as_array_mut().unwrap();
        queries.iter_mut().find(|query| query["id"] == id).unwrap()
    }

    fn without(list: &mut Value, key: &str, id: &str) {
        list.as_array_mut().unwrap().retain(|one| one[key] != id);
    }

    fn replace_system(&mut self, system: &str) {
        self.project = self.project.replace("{ builtin = \"bm25\" }", system);
    }

    fn rename(&mut self, id: &str, name: &str) {
        let tool = self.tool(id);
        tool["tool_id"] = format!("{}:{name}", tool["server"].as_str().unwrap()).into();
        tool["tool"] = name.into();
    }
}

/// A project whose baseline is recorded.
fn accepted() -> (Scratch, Files) {
    let scratch = Scratch::new();
    let mut files =
        Files { corpus: corpus(), golden: golden(), project: PROJECT.into(), baseline: "".into() };
    files.write(&scratch);
    std::fs::remove_file(scratch.path("baseline.json")).unwrap();
    scratch.karat(&["baseline", "update"]).expect(0);
    files.baseline = scratch.read("baseline.json");
    (scratch, files)
}

/// Everything that was said, in one line.
fn said(ran: &common::Ran) -> String {
    let all = format!("{} {}", ran.stdout, ran.stderr);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A search as a program that knows each tool by its name alone, or not at all.
macro_rules! program {
    ($body:literal) => {
        concat!(
            "{ command = [\"python3\", \"-c\", '''\nimport json, re, sys\n",
            "tools = [t for t in json.load(open(\"corpus.json\"))[\"tools\"]]\n",
            "def words(text): return set(re.findall(\"[a-z]+\", text.lower()))\n",
            "for line in sys.stdin:\n    q = json.loads(line)\n",
            $body,
            "\n    print(json.dumps({\"id\": q[\"id\"], \"ranked\": ranked}), flush=True)\n",
            "'''] }\nanswer_tokens = false"
        )
    };
}

const UNSTEMMED: &str = program!(
    "    score = lambda t: len(words(q[\"query\"]) & words(t[\"tool\"] + \" \" + t[\"description\"]))
    ranked = [{\"tool_id\": t[\"tool_id\"]} for t in sorted(tools, key=score, reverse=True) if score(t) > 1]"
);

/// Defines a test for each change: what is done to the files, the exit code of the check, and the words that
/// the message must have.
macro_rules! changes {
    ($($name:ident: $change:expr, $code:literal, $words:expr;)*) => {
        $(#[test]
        fn $name() {
            after($change, $code, &$words);
        })*
    };
}

/// Checks a project whose baseline is recorded after a change.
fn after(change: fn(&mut Files), code: i32, words: &[&str]) {
    let (scratch, mut files) = accepted();
    change(&mut files);
    files.write(&scratch);
    let ran = scratch.karat(&["check", "-v"]);
    let said = said(&ran);
    assert_eq!(ran.code, code, "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is missing in: {said}");
    }
    if code == 0 {
        assert!(!said.contains("different data"), "{said}");
    }
}

changes! {
    the_descriptions_of_one_server_are_dropped:
        |files| {
            for id in ["disk:read", "disk:write", "disk:tree"] {
                files.tool(id)["description"] = "".into();
            }
        },
        1, ["q-folders", "the corpus changed: 3 changed", "disk:tree"];
    two_descriptions_are_swapped:
        |files| {
            files.tool("disk:tree")["description"] = "Lists zones.".into();
            files.tool("clock:zones")["description"] = "Lists folders.".into();
        },
        1, ["q-folders", "2 changed (clock:zones, disk:tree)"];
    two_names_are_swapped:
        |files| {
            for (id, name) in
                [("disk:tree", "kept"), ("disk:write", "tree"), ("disk:kept", "write")]
            {
                files.rename(id, name);
            }
        },
        1, ["q-folders", "2 changed (disk:tree, disk:write)"];
    schemas_are_cut_off:
        |files| files.tool("git:diff")["schema"] = json!({"type": "object"}),
        1, ["q-branch", "1 changed (git:diff)"];
    every_tool_has_a_copy_on_another_server:
        |files| {
            let tools = files.corpus["tools"].as_array_mut().unwrap();
            let copies: Vec<Value> = tools
                .iter()
                .map(|tool| {
                    let mut copy = tool.clone();
                    copy["server"] = "a-copy".into();
                    copy["tool_id"] = format!("a-copy:{}", tool["tool"].as_str().unwrap()).into();
                    copy
                })
                .collect();
            tools.extend(copies);
        },
        1, ["mrr", "the corpus changed: 9 added", "a-copy:"];
    a_word_is_added_to_a_description_and_nothing_is_lost:
        |files| files.tool("disk:write")["description"] = "Stores text in some file.".into(),
        0, ["the corpus changed: 1 changed (disk:write)"];
    a_labelled_tool_is_removed:
        |files| Files::without(&mut files.corpus["tools"], "tool_id", "disk:tree"),
        1, ["q-folders labels disk:tree"];
    a_labelled_tool_is_renamed:
        |files| files.rename("disk:tree", "ls"),
        1, ["q-folders labels disk:tree"];
    a_labelled_tool_is_written_in_another_case:
        |files| files.rename("disk:tree", "Tree"),
        1, ["q-folders labels disk:tree"];
    a_label_is_changed:
        |files| files.query("q-hour")["labels"][1]["relevance"] = 2.into(),
        0, ["the golden set changed: 1 changed (q-hour); left out"];
    a_query_is_dropped:
        |files| Files::without(&mut files.golden["queries"], "id", "q-read"),
        0, ["the golden set changed: 1 removed (q-read); left out"];
    a_query_is_added:
        |files| {
            let mut new = files.query("q-read").clone();
            new["id"] = "q-new".into();
            files.golden["queries"].as_array_mut().unwrap().push(new);
        },
        0, ["the golden set changed: 1 added (q-new); left out"];
    every_label_is_0:
        |files| {
            for query in files.golden["queries"].as_array_mut().unwrap() {
                for label in query["labels"].as_array_mut().unwrap() {
                    label["relevance"] = 0.into();
                }
            }
        },
        2, ["no item of the golden set is the same", "5 changed", "baseline update"];
    a_tool_is_defined_twice:
        |files| {
            let twice = files.tool("git:log").clone();
            files.corpus["tools"].as_array_mut().unwrap().push(twice);
        },
        2, ["corpus.json", "git:log", "duplicate"];
    an_id_is_not_server_tool:
        |files| files.tool("git:log")["tool_id"] = "git-log".into(),
        2, ["corpus.json", "git-log", "git:log"];
    a_grade_does_not_exist:
        |files| files.query("q-read")["labels"][0]["relevance"] = 3.into(),
        2, ["golden.json", "q-read", "disk:read", "0 to 2"];
    a_query_id_occurs_twice:
        |files| files.query("q-read")["id"] = "q-hour".into(),
        2, ["golden.json", "q-hour", "duplicate"];
    a_query_is_empty:
        |files| files.query("q-read")["query"] = " ".into(),
        2, ["golden.json", "q-read", "empty"];
    words_are_no_longer_stemmed:
        |files| files.replace_system(UNSTEMMED),
        1, ["recall@5", "q-folders"];
    descriptions_are_not_indexed:
        |files| files.replace_system("{ builtin = \"bm25-names\" }"),
        1, ["recall@5", "mrr", "q-folders", "q-history"];
    the_baseline_is_of_another_entry:
        |files| files.project = files.project.replace("name = \"search\"", "name = \"other\""),
        2, ["this baseline belongs to \"search\", not \"other\""];
    more_results_are_asked_for_than_before:
        |files| files.project = files.project.replace("results = 20", "results = 100"),
        2, ["mrr", "20 results were requested before, 100 now", "`results`"];
    fewer_results_are_asked_for_than_before:
        |files| files.project = files.project.replace("results = 20", "results = 3"),
        2, ["20 results were requested before, 3 now"];
    a_value_of_the_baseline_was_edited:
        |files| {
            let at = files.baseline.find("\"id\":\"recall@5\",\"value\":").unwrap();
            let end = at + files.baseline[at..].find(",\"n\"").unwrap();
            files.baseline.replace_range(at..end, "\"id\":\"recall@5\",\"value\":0.2");
        },
        2, ["baseline.json", "recall@5", "0.2000", "not the mean of its items"];
    the_corpus_is_written_in_another_layout:
        |files| {
            files.corpus["tools"].as_array_mut().unwrap().reverse();
            files.corpus["generated_from"] = json!({"date": "today"});
        },
        0, ["no item got worse"];
}
#[test]
fn what_was_left_out_is_named_without_being_asked_for() {
    let (scratch, mut files) = accepted();
    files.query("q-hour")["labels"][1]["relevance"] = 2.into();
    files.tool("disk:write")["description"] = "Stores text in some file.".into();
    files.write(&scratch);
    let text = said(&scratch.karat(&["check"]).expect(0));
    for words in [
        "note: search: the corpus changed: 1 changed (disk:write)",
        "note: search: the golden set changed: 1 changed (q-hour); left out of the comparison",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_layout_that_changed_is_not_a_change_of_the_data() {
    let (scratch, files) = accepted();
    let pretty = serde_json::to_string_pretty(&files.corpus).unwrap();
    scratch.write("corpus.json", pretty);
    let report = scratch.karat(&["check", "--json"]).expect(0).report();
    assert!(report["comparison"].get("data").is_none(), "{}", report["comparison"]);
    assert_eq!(report["dataset"]["digest"], {
        let baseline: Value = serde_json::from_str(&files.baseline).unwrap();
        baseline["dataset"]["digest"].clone()
    });
}

/// The bundled dataset as the next version of itself, after a change to one of its files.
fn bundled_version(scratch: &Scratch, version: &str, file: &str, change: impl Fn(Value) -> String) {
    let bundled = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/tools/v1");
    for part in ["tools", "golden", "groups"] {
        for entry in std::fs::read_dir(bundled.join(part)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{part}/{}", path.file_name().unwrap().to_str().unwrap());
            let mut text = std::fs::read_to_string(&path).unwrap();
            if name == file {
                let value = match serde_json::from_str(&text) {
                    Ok(value) => value,
                    Err(_) => text.lines().map(|line| line.parse::<Value>().unwrap()).collect(),
                };
                text = change(value);
            }
            scratch.write(&format!("tools/{version}/{name}"), text);
        }
    }
    let folder = format!("tools/{version}");
    let freeze = ["corpus", "freeze", &folder, "--licence", "MIT", "--made", "By a test."];
    scratch.karat(&freeze).expect(0);
    let project = PROJECT.replace("corpus = \"corpus.json\"", &format!("dataset = \"{folder}\""));
    scratch.write("karat.toml", project.replace("golden = \"golden.json\"\n", ""));
}

#[test]
fn a_change_of_the_bundled_corpus_is_gated_query_by_query() {
    let scratch = Scratch::new();
    let file = "tools/postgres.json";
    bundled_version(&scratch, "v1", "", |_| unreachable!());
    scratch.karat(&["baseline", "update"]).expect(0);

    bundled_version(&scratch, "v2", file, |mut value| {
        let tools = value["tools"].as_array_mut().unwrap();
        let tool = tools.iter_mut().find(|tool| tool["tool"] == "top_statements").unwrap();
        tool["description"] = "Does it.".into();
        value.to_string()
    });
    let text = said(&scratch.karat(&["check", "-v"]).expect(1));
    for words in ["data-033", "the corpus changed: 1 changed (postgres:top_statements)"] {
        assert!(text.contains(words), "{words}: {text}");
    }

    bundled_version(&scratch, "v3", file, |value| serde_json::to_string_pretty(&value).unwrap());
    let text = said(&scratch.karat(&["check", "-v"]).expect(0));
    assert!(!text.contains("changed"), "{text}");

    bundled_version(&scratch, "v4", "golden/data.jsonl", |mut value| {
        value[0]["labels"][0]["relevance"] = 1.into();
        value.as_array().unwrap().iter().map(|query| format!("{query}\n")).collect()
    });
    let text = said(&scratch.karat(&["check", "-v"]).expect(0));
    let words = "the golden set changed: 1 changed (data-001); left out of the comparison";
    assert!(text.contains(words), "{text}");
    let report: Value = serde_json::from_str(&scratch.read("karat-report/report.json")).unwrap();
    let deltas = report["reports"][0]["comparison"]["deltas"].as_array().unwrap().clone();
    let recall = deltas.iter().find(|delta| delta["metric"] == "recall@5").unwrap();
    assert_eq!((&recall["pairs"], &recall["delta"]), (&569.into(), &0.0.into()), "{recall}");
}

#[test]
fn only_the_changed_queries_are_left_out_of_a_comparison() {
    let (scratch, mut files) = accepted();
    scratch.karat(&["check", "-o", "before.json"]).expect(0);
    files.query("q-hour")["labels"][1]["relevance"] = 2.into();
    files.tool("disk:tree")["description"] = "Lists directories.".into();
    files.write(&scratch);
    let ran = scratch.karat(&["check", "-o", "after.json"]).expect(1);
    assert!(said(&ran).contains("q-folders"), "{}", ran.stdout);
    let compared = scratch.karat(&["compare", "before.json", "after.json"]).expect(0);
    let text = said(&compared);
    for words in [
        "recall@5 worse on 1: q-folders",
        "the corpus changed: 1 changed (disk:tree)",
        "the golden set changed: 1 changed (q-hour); left out of the comparison",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = scratch.karat(&["compare", "before.json", "after.json", "--json"]).expect(0).json();
    let comparison = &json["comparisons"][0];
    assert_eq!(comparison["data"]["corpus"]["changed"], json!(["disk:tree"]));
    let deltas = comparison["deltas"].as_array().unwrap();
    let recall = deltas.iter().find(|delta| delta["metric"] == "recall@5").unwrap();
    assert_eq!((&recall["pairs"], &recall["delta"]), (&4.into(), &(-0.25).into()));
    // Two servers say next to nothing about others.
    assert_eq!(recall["interval"]["method"], "student_clustered", "{recall}");
    let [low, high] = ["low", "high"].map(|end| recall["interval"][end].as_f64().unwrap());
    assert!(low <= -0.9 && high >= 0.9, "{recall}");
}

#[test]
fn two_depths_are_compared_as_far_as_both_reach() {
    let (scratch, mut files) = accepted();
    scratch.karat(&["check", "-o", "before.json"]).expect(0);
    files.project = files.project.replace("results = 20", "results = 5");
    files.project = files.project.split("[retrieval.gate]").next().unwrap().to_owned();
    files.write(&scratch);
    scratch.karat(&["check", "-o", "after.json"]).expect(0);
    let json = scratch.karat(&["compare", "before.json", "after.json", "--json"]).expect(0).json();
    let comparison = &json["comparisons"][0];
    let ids: Vec<&str> = comparison["deltas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|delta| delta["metric"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"recall@5") && !ids.contains(&"recall@10") && !ids.contains(&"map"));
    let left_out = comparison["not_compared"]["metrics"].to_string();
    for id in ["recall@10", "mrr", "map", "ndcg@10", "hard_negative_rate"] {
        assert!(left_out.contains(&format!("{id:?}")), "{id}: {left_out}");
    }
    let text = said(&scratch.karat(&["compare", "before.json", "after.json"]).expect(0));
    assert!(text.contains("20 results were requested before, 5 now"), "{text}");
}

#[test]
fn a_primary_metric_is_tested_by_itself_and_names_of_both_sides_are_shown() {
    let (scratch, mut files) = accepted();
    scratch.karat(&["check", "-o", "before.json"]).expect(0);
    files.replace_system("{ builtin = \"bm25-names\" }");
    files.project = files.project.replace("name = \"search\"", "name = \"names\"");
    files.project = files.project.replace("baseline = \"baseline.json\"\n", "");
    files.project = files.project.split("[retrieval.gate]").next().unwrap().to_owned();
    files.write(&scratch);
    scratch.karat(&["check", "-o", "after.json"]).expect(0);
    let compare = ["compare", "before.json", "after.json"];
    let json = |more: &[&str]| scratch.karat(&[&compare, more].concat()).expect(0).json();
    let recall = |json: &Value| -> Value {
        let deltas = json["comparisons"][0]["deltas"].as_array().unwrap().clone();
        deltas.into_iter().find(|delta| delta["metric"] == "recall@5").unwrap()
    };
    let (plain, primary) = (json(&["--json"]), json(&["--json", "--primary", "recall@5"]));
    assert_eq!(recall(&primary)["p_holm"], recall(&primary)["p_value"]);
    assert!(recall(&plain)["p_holm"].as_f64() > recall(&plain)["p_value"].as_f64());
    let text = said(&scratch.karat(&compare).expect(0));
    assert!(text.contains("retrieval · search → names"), "{text}");
    let unknown = [&compare[..], &["--primary", "recall@7"]].concat();
    scratch.karat(&unknown).expect(2).says(&["recall@7", "recall@5"]);
}

#[test]
fn a_frozen_file_that_was_edited_added_or_removed_is_named() {
    let (scratch, files) = accepted();
    scratch.write("set/v1/tools/a.json", files.corpus.to_string());
    scratch.write("set/v1/golden/a.json", files.golden.to_string());
    let freeze = ["corpus", "freeze", "set/v1", "--licence", "CC0-1.0", "--made", "here"];
    scratch.karat(&freeze).expect(0);
    let data = "corpus = \"corpus.json\"\ngolden = \"golden.json\"\n";
    scratch.write("karat.toml", files.project.replace(data, "dataset = \"set/v1\"\n"));
    // The same content in a folder is the same data.
    scratch.karat(&["check", "-v"]).expect(0);
    let whole = scratch.read("set/v1/tools/a.json");
    scratch.write("set/v1/tools/a.json", whole.replace("Lists folders", "Lists directories"));
    scratch.karat(&["check", "-v"]).expect(2).says(&["set/v1/tools/a.json", "sha256:"]);
    std::fs::remove_file(scratch.path("set/v1/tools/a.json")).unwrap();
    scratch.karat(&["check", "-v"]).expect(2).says(&["set/v1/tools/a.json"]);
    scratch.write("set/v1/tools/a.json", whole);
    scratch.write("set/v1/tools/b.json", "{}");
    scratch.karat(&["check", "-v"]).expect(2).says(&["set/v1/tools/b.json"]);
}

#[test]
fn a_baseline_of_other_data_is_named_as_what_it_is() {
    let (scratch, files) = accepted();
    scratch.project(common::GOLDEN, "baseline = \"other.json\"\n", common::BM25);
    let project = scratch.read("karat.toml").replace("name = \"r\"", "name = \"search\"");
    scratch.write("karat.toml", project);
    scratch.karat(&["baseline", "update"]).expect(0);
    let other = scratch.read("other.json");
    files.write(&scratch);
    scratch.write("baseline.json", other);
    scratch.karat(&["check", "-v"]).expect(2).says(&[
        "tools+golden file sha256:",
        "before, corpus+golden file sha256:",
        "no item of the golden set is the same",
    ]);
}

const KNOWN: &str = program!(
    "    score = lambda t: len(words(q[\"query\"]) & words(t[\"server\"] + \" \" + t[\"tool\"] + \" \" + t[\"description\"]))
    ranked = [{\"tool_id\": t[\"tool_id\"]} for t in sorted(tools, key=score, reverse=True)
              if score(t) and t[\"server\"] != \"off\"]"
);

#[test]
fn a_server_that_the_search_stopped_indexing_is_not_ready_or_a_failure_as_was_asked() {
    let (scratch, mut files) = accepted();
    files.replace_system(KNOWN);
    files.write(&scratch);
    scratch.karat(&["baseline", "update"]).expect(0);
    files.baseline = scratch.read("baseline.json");
    scratch.karat(&["check", "-v"]).expect(0);
    files.project = files.project.replace("!= \"off\"", "!= \"disk\"");
    let run = |ready: &str, code: i32| {
        let system = "answer_tokens = false";
        let project = files.project.replace(system, &format!("{system}\nready = {ready}"));
        Files { project, corpus: corpus(), golden: golden(), baseline: files.baseline.clone() }
            .write(&scratch);
        said(&scratch.karat(&["check", "-v"]).expect(code))
    };
    let text = run("{ probe = true, timeout_ms = 10000 }", 3);
    assert!(text.contains("not ready") && text.contains("disk:tree"), "{text}");
    let text = run("{ probe = false }", 1);
    assert!(text.contains("q-folders") && text.contains("q-read"), "{text}");
    let text = run("{ probe = true, timeout_ms = 10000, missing = \"fail\" }", 1);
    assert!(text.contains("3 tools of the corpus are not found by name: disk:read"), "{text}");
}

#[test]
fn rules_for_slices_and_protected_items_are_held() {
    let (scratch, mut files) = accepted();
    for (id, kind) in [("q-folders", "rare"), ("q-read", "plain"), ("q-hour", "plain")] {
        files.query(id)["kind"] = kind.into();
    }
    let gate = |rules: &str| {
        let project = PROJECT.split("[retrieval.gate]").next().unwrap();
        format!("{project}[retrieval.gate]\n{rules}")
    };
    files.project = gate("");
    files.write(&scratch);
    scratch.karat(&["baseline", "update"]).expect(0);
    files.baseline = scratch.read("baseline.json");
    files.tool("disk:tree")["description"] = "Lists directories.".into();
    let run = |files: &mut Files, rules: &str, code: i32| {
        files.project = gate(rules);
        files.write(&scratch);
        said(&scratch.karat(&["check", "-v"]).expect(code))
    };
    let rule = |slice: &str| {
        format!("[retrieval.gate.metrics]\n\"recall@5 on kind={slice}\" = {{ max_drop = 0.0 }}\n")
    };
    let text = run(&mut files, &rule("rare"), 1);
    assert!(text.contains("q-folders") && text.contains("kind=rare"), "{text}");
    run(&mut files, &rule("plain"), 0);
    assert!(run(&mut files, &rule("none"), 2).contains("kind=none"));
    run(&mut files, "protected = { ids = [\"q-read\"], metric = \"success@5\" }\n", 0);
    let text =
        run(&mut files, "protected = { ids = [\"q-folders\"], metric = \"success@5\" }\n", 1);
    assert!(text.contains("1 of 1 protected items got worse: q-folders"), "{text}");
    let text = run(&mut files, "protected = { ids = [\"q-none\"], metric = \"success@5\" }\n", 2);
    assert!(text.contains("q-none"), "{text}");
}

#[test]
fn a_search_needs_no_project() {
    let (scratch, files) = accepted();
    files.write(&scratch);
    std::fs::remove_file(scratch.path("karat.toml")).unwrap();
    let data = ["--corpus", "corpus.json", "--golden", "golden.json"];
    let run =
        |more: &[&str]| scratch.karat(&[&["retrieval", "run", "--json"], &data[..], more].concat());
    let plain = run(&[]).expect(0).report();
    assert_eq!(plain["system"]["name"], "bm25");
    let names = run(&["--builtin", "bm25-names", "--results", "5"]).expect(0).json();
    assert_eq!(names["reports"][0]["system"]["settings"]["limit"], "5");
    let script = "import sys, json\nfor line in sys.stdin:\n    q = json.loads(line)\n    \
                  print(json.dumps({'id': q['id'], 'ranked': [{'tool_id': 'git:log'}]}), flush=True)";
    let program = run(&["--", "python3", "-c", script]).expect(0).json();
    assert_eq!(program["reports"][0]["system"]["kind"], "command");
    let refused = |more: &[&str], words: &[&str]| run(more).expect(2).says(words);
    refused(&["--url", "http://127.0.0.1:1/search"], &["{query}", "--tool"]);
    refused(&["--tool", "find"], &["--server", "--url"]);
    run(&["--url", "http://127.0.0.1:1/{query}"]).not_measured(&["cannot connect"]);
    let demo = [env!("CARGO_BIN_EXE_karat"), "demo-server"];
    let missing = [&["--tool", "find", "--"], &demo[..]].concat();
    run(&missing).not_measured(&["no tool", "find"]);
}

#[test]
fn skills_fire_or_abstain() {
    let scratch = Scratch::new();
    for (name, description) in
        [("pdf", "Fills in forms of documents."), ("xlsx", "Computes tables of numbers.")]
    {
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n# {name}\n");
        scratch.write(&format!("skills/{name}/SKILL.md"), text);
    }
    scratch.write(
        "golden.json",
        r#"[{"id": "form", "query": "fill in this form", "skill": "pdf", "should_trigger": true},
            {"id": "sums", "query": "numbers in a table", "skill": "xlsx", "should_trigger": true},
            {"id": "tabled", "query": "the table in the kitchen", "skill": "xlsx", "should_trigger": false},
            {"id": "weather", "query": "rain tomorrow", "skill": "pdf", "should_trigger": false}]"#,
    );
    let data = ["retrieval", "run", "--corpus", "skills", "--golden", "golden.json"];
    let report = scratch.karat(&[&data[..], &["--json"]].concat()).expect(0).json();
    let value = |id: &str| -> Value {
        let metrics = report["reports"][0]["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["id"] == id).unwrap()["value"].clone()
    };
    assert_eq!(value("trigger.recall"), 1.0);
    assert_eq!(value("trigger.false_fire_rate"), 0.5);
    assert_eq!(value("trigger.confusion_rate"), 0.5);
    let mute = "import sys, json\nfor line in sys.stdin:\n    q = json.loads(line)\n    \
                print(json.dumps({'id': q['id'], 'ranked': []}), flush=True)";
    let silent = [&data[..], &["--", "python3", "-c", mute]].concat();
    scratch.karat(&silent).not_measured(&["nothing ever fired"]);

    // Queries that all should fire nothing are a golden set too.
    scratch.write(
        "golden.json",
        r#"[{"id": "tabled", "query": "the table in the kitchen", "skill": "xlsx", "should_trigger": false},
            {"id": "weather", "query": "rain tomorrow", "skill": "pdf", "should_trigger": false}]"#,
    );
    let report = scratch.karat(&[&data[..], &["--json"]].concat()).expect(0).json();
    let fired = |metric: &Value| metric["id"] == "trigger.false_fire_rate";
    let metrics = report["reports"][0]["metrics"].as_array().unwrap();
    assert_eq!(metrics.iter().find(|metric| fired(metric)).unwrap()["value"], 0.5);
}

#[test]
fn files_of_others_become_a_dataset() {
    let scratch = Scratch::new();
    scratch.write("t.jsonl", "{\"server\": \"git\", \"name\": \"log\", \"description\": null}\n");
    scratch.write("q.jsonl", "{\"id\": \"q\", \"query\": \"log\", \"relevant\": [\"git:log\"]}\n");
    let import = ["corpus", "import", "t.jsonl", "--queries", "q.jsonl", "--out", "mine/v1"];
    let ran = scratch.karat(&import).expect(0);
    assert!(ran.stdout.contains("1 tool, 1 query"), "{}", ran.stdout);
    scratch.karat(&import).expect(2).says(&["tools.json", "already"]);
    scratch.karat(&["corpus", "freeze", "mine/v1", "--licence", "MIT", "--made", "x"]).expect(0);
    let ran = scratch.karat(&["corpus", "verify", "mine/v1"]).expect(0);
    assert!(ran.stdout.contains("lint: split: 1"), "{}", ran.stdout);
    scratch.karat(&["corpus", "verify", "mine/v1", "--strict"]).expect(2);
    scratch.karat(&["retrieval", "run", "--dataset", "mine/v1"]).expect(0);
}

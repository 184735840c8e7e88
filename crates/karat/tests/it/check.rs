//! `karat check`, end to end.

use crate::common;

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, Stdio};

use common::{BM25, GOLDEN, Scratch};

#[test]
fn the_bundled_project_passes_reproduces_its_baseline_and_is_the_same_twice() {
    let scratch = Scratch::new();
    let first = scratch.karat(&["check", "--bundled"]).expect(0);
    let report = scratch.read("karat-report/report.json");
    let page = scratch.read("karat-report/report.html");
    let second = scratch.karat(&["check", "--bundled"]).expect(0);
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(report, scratch.read("karat-report/report.json"));
    assert_eq!(page, scratch.read("karat-report/report.html"));

    let document: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(document["verdict"], "pass");
    for report in document["reports"].as_array().unwrap() {
        for delta in report["comparison"]["deltas"].as_array().unwrap() {
            assert_eq!(delta["before"], delta["after"], "{delta}");
            assert_eq!(delta["worsened"].as_array().unwrap().len(), 0);
        }
        assert!(report["controls"].as_array().unwrap().len() >= 3);
        assert!(report["controls"].as_array().unwrap().iter().all(|c| c["ok"] == true));
    }
    // On this data the loss of descriptions shows in every headline metric.
    let report = &document["reports"][0];
    let removed = report["controls"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["name"] == "descriptions-removed")
        .unwrap();
    for lost in removed["metrics"].as_array().unwrap() {
        let full =
            report["metrics"].as_array().unwrap().iter().find(|m| m["id"] == lost["id"]).unwrap();
        assert!(lost["value"].as_f64() < full["value"].as_f64(), "{lost}");
    }
    let evaluations: Vec<&str> = document["reports"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|report| report["evaluation"].as_str())
        .collect();
    for evaluation in ["server", "agent", "retrieval", "detection", "resilience"] {
        assert!(evaluations.contains(&evaluation), "{evaluations:?}");
    }
}

#[test]
fn the_readme_shows_a_failure_as_it_is() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let block = |start: &str| readme.split(start).nth(1).unwrap().split("```").next().unwrap();
    let (command, shown) = block("```text\n").split_once('\n').unwrap();
    assert_eq!(command, "$ karat server test -q suite.yaml -- karat demo-server");
    let scratch = Scratch::new();
    scratch.write("suite.yaml", block("```yaml\n"));
    let karat = env!("CARGO_BIN_EXE_karat");
    let arguments = ["server", "test", "-q", "suite.yaml", "--", karat, "demo-server"];
    assert_eq!(scratch.karat(&arguments).expect(1).stdout, shown);
}

#[test]
fn json_is_alone_on_stdout_and_fits_its_schema() {
    let scratch = Scratch::new();
    let ran = scratch.karat(&["check", "--bundled", "--json"]).expect(0);
    let document = ran.json();
    let schema = scratch.karat(&["schema", "check"]).expect(0).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|e| e.to_string()).take(3).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(serde_json::to_value(&document["schema"]).unwrap(), "karat.check/1");
}

#[test]
fn quiet_says_nothing_on_the_side() {
    let scratch = Scratch::new();
    assert_eq!(scratch.karat(&["--quiet", "check", "--bundled"]).expect(0).stderr, "");
    assert_ne!(scratch.karat(&["check", "--bundled"]).expect(0).stderr, "");
}

#[test]
fn quiet_shows_what_failed_and_nothing_that_passed() {
    let scratch = Scratch::new();
    let gate = "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.1 }\n\"map\" = { max = 0.5 }\n";
    scratch.project(GOLDEN, gate, BM25);
    let ran = scratch.karat(&["check", "--quiet"]).expect(1);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("fail: retrieval · r: map "), "{lines:?}");
    assert!(scratch.path("karat-report/report.html").exists());
    // What was asked for is still printed.
    let ran = scratch.karat(&["check", "--quiet", "--json"]).expect(1);
    assert_eq!(ran.json()["verdict"], "fail");

    scratch.project(GOLDEN, "", BM25);
    let ran = scratch.karat(&["check", "-q"]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    scratch.project(GOLDEN, "", "{ command = [\"/bin/false\"] }");
    let ran = scratch.karat(&["check", "-q"]).expect(3);
    scratch.karat(&["show"]).expect(2).says(&["none of its entries was measured"]);
    assert!(ran.stdout.starts_with("not measured: retrieval · r: "), "{}", ran.stdout);
}

#[test]
fn every_line_fits_the_terminal_and_colours_are_optional() {
    let scratch = Scratch::new();
    for columns in ["60", "100", "160"] {
        let ran = scratch.command(&["check", "--bundled"]).env("COLUMNS", columns).output();
        let plain = String::from_utf8(ran.unwrap().stdout).unwrap();
        let columns: usize = columns.parse().unwrap();
        for line in plain.lines().filter(|line| !line.starts_with("report: ")) {
            assert!(line.chars().count() <= columns, "{line}");
        }
        assert!(!plain.contains('\u{1b}'));
    }
    let coloured = scratch.karat(&["check", "--bundled", "--color", "always"]).expect(0).stdout;
    assert!(coloured.contains('\u{1b}'));
}

#[test]
fn without_a_project_nothing_is_measured_and_nothing_passes() {
    let scratch = Scratch::new();
    for arguments in [
        &["check"][..],
        &["check", "-q"],
        &["check", "--evaluation", "retrieval"],
        &["baseline", "show"],
    ] {
        let words = ["karat.toml", "karat init", "karat demo", "--bundled"];
        scratch.karat(arguments).expect(2).says(&words);
    }
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
    assert!(scratch.karat(&["demo"]).expect(0).stdout.contains("passed"));
}

#[test]
fn a_project_is_found_from_a_folder_inside_it() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.1 }\n", BM25);
    std::fs::create_dir_all(scratch.path("a/b")).unwrap();
    let ran = scratch.command(&["check"]).current_dir(scratch.path("a/b")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(scratch.path("karat-report/report.html").exists());
    assert!(!scratch.path("a/b/karat-report").exists());
}

/// A search that answers every query with this list.
fn always(ranked: &str) -> String {
    format!(
        "{{ command = [\"python3\", \"-c\", '''\nimport sys, json\nfor line in sys.stdin:\n    \
         open(\"asked\", \"a\").write(line)\n    print(json.dumps({{\"id\": json.loads(line)[\"id\"], \
         \"ranked\": {ranked}}}), flush=True)\n'''] }}\nanswer_tokens = false"
    )
}

#[test]
fn a_failed_check_names_what_failed_with_its_text_and_fits_a_screen() {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.project(GOLDEN, gate, &always("[\"s:send_mail\"]"));
    for columns in ["60", "100", "160"] {
        let ran = scratch.command(&["check"]).env("COLUMNS", columns).output().unwrap();
        let shown = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{shown}");
        assert!(shown.lines().count() <= 40, "{shown}");
        let last = shown.lines().last().unwrap();
        assert!(last.contains("retrieval r") && last.contains("mrr"), "{last}");
        for word in ["open a ticket", "rank 1 → none", "what changed: system", "karat show"] {
            assert!(shown.contains(word), "{word}: {shown}");
        }
    }
    let shown = scratch.karat(&["show", "r", "--worse"]).expect(0).stdout;
    assert!(shown.contains("q1") && shown.contains("rank 1 → none"), "{shown}");
    let shown = scratch.karat(&["show", "retrieval/r", "--item", "q1"]).expect(0).stdout;
    assert!(shown.contains("open a ticket") && shown.contains("1.0000 → 0.0000"), "{shown}");
    scratch.karat(&["show", "--item", "q9"]).expect(2).says(&["q9", "did you mean"]);
}

#[test]
fn an_item_that_is_right_in_fewer_runs_is_shown_by_its_score() {
    let scratch = Scratch::new();
    // The right tool is first in as many of the five runs as the file says, and not found in the others.
    let search = "{ command = [\"python3\", \"-c\", '''\nimport sys, json\nfor line in sys.stdin:\n    \
                  asked = json.loads(line)\n    right = asked[\"run\"] < int(open(\"hits\").read())\n    \
                  found = \"s:create_issue\" if right else \"s:send_mail\"\n    print(json.dumps({\"id\": \
                  asked[\"id\"], \"run\": asked[\"run\"], \"ranked\": [found]}), flush=True)\n'''] }\n\
                  answer_tokens = false\nruns = 5";
    let gate = "baseline = \"b.json\"\n[retrieval.gate]\nprotected = { metric = \"success@5\" }\n";
    let golden = GOLDEN.lines().next().unwrap();
    scratch.project(golden, gate, search);
    scratch.write("hits", "2");
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.write("hits", "1");
    let checked = scratch.karat(&["check"]).expect(1).stdout;
    let listed = scratch.karat(&["show", "r", "--worse"]).expect(0).stdout;
    let comment = scratch.karat(&["comment", "karat-report/report.json"]).expect(0).stdout;
    for (text, score) in [
        (&checked, "0.400 → 0.200"),
        (&listed, "0.400 → 0.200"),
        (&comment, "`success@5` 0.4000 → 0.2000"),
    ] {
        assert!(text.contains(score) && !text.contains("rank 1"), "{text}");
    }
}

#[test]
fn an_item_that_failed_is_among_those_that_got_worse() {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate]\nmax_errors = 0.5\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    let found = "[\"s:create_issue\"] if \"ticket\" in line else None";
    scratch.project(GOLDEN, gate, &always(found));
    scratch.karat(&["check"]).expect(0);
    let shown = scratch.karat(&["show", "r", "--worse"]).expect(0).stdout;
    assert!(shown.contains("0 worse, 0 better, 1 failed") && shown.contains("q2"), "{shown}");
    let listed = scratch.karat(&["show", "r", "--worse", "--json"]).expect(0).json();
    let ids: Vec<&str> =
        listed.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["q2"]);
}

#[test]
fn what_passed_was_not_measured_or_is_undecided_is_said_in_a_few_lines() {
    let scratch = Scratch::new();
    let certified = "[retrieval.gate.metrics]\n\"success@5\" = { min = 0.9, certify = true }\n";
    let floor = "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.1 }\n";
    let lost = "{ command = [\"/bin/false\"] }";
    for (name, gate, system, code) in [
        ("passed", floor, BM25, 0),
        ("undecided", certified, BM25, 0),
        ("not_measured", floor, lost, 3),
    ] {
        scratch.project(GOLDEN, gate, system);
        for columns in ["60", "100", "160"] {
            let ran = scratch.command(&["check"]).env("COLUMNS", columns).output().unwrap();
            let shown = String::from_utf8(ran.stdout).unwrap();
            assert_eq!(ran.status.code(), Some(code), "{name}: {shown}");
            assert!(shown.lines().all(|line| line.chars().count() <= columns.parse().unwrap()));
        }
    }
}

#[test]
fn a_mistyped_label_an_empty_dataset_and_a_crossed_rule_are_bad_input() {
    let scratch = Scratch::new();
    scratch.project(&GOLDEN.replace("s:list_files", "s:list_file"), "", BM25);
    let hint = "did you mean `s:list_files`?";
    scratch.karat(&["check"]).expect(2).says(&["q2", "s:list_file", hint]);
    scratch.project("", "", BM25);
    scratch.karat(&["check"]).expect(2).says(&["no items"]);
    let gate = "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.6, max = 0.2 }\n";
    scratch.project(GOLDEN, gate, BM25);
    let crossed = "karat.toml:7: r: gate: mrr: min = 0.6 is above max";
    scratch.karat(&["check"]).expect(2).says(&[crossed]);
    scratch.project(GOLDEN, "[retrieval.gate.metrics]\n\"mr\" = { min = 0.6 }\n", BM25);
    scratch.karat(&["check"]).expect(2).says(&["karat.toml:7:", "unknown metric"]);
}

#[test]
fn an_entry_with_nothing_to_score_is_not_measured_and_the_others_are() {
    let scratch = Scratch::new();
    let call = r#"{"id": "t", "calls": [{"name": "a", "arguments": {}}], "expect": {"calls": [{"name": "a", "arguments": {}}]}}"#;
    scratch.write("full.jsonl", call);
    scratch.write("empty.jsonl", "");
    let gate = "gate = { metrics = { recall = { min = 1.0 } } }\nbaseline = \"base.json\"";
    let project = format!(
        "[[agent]]\nname = \"empty\"\ntraces = [\"empty.jsonl\"]\n{gate}\n\
         [[agent]]\nname = \"full\"\ntraces = [\"full.jsonl\"]\n"
    );
    scratch.write("karat.toml", &project);
    let ran = scratch.karat(&["check"]).expect(3);
    assert!(ran.stdout.contains("nothing to score"), "{}", ran.stdout);
    let report: serde_json::Value =
        serde_json::from_str(&scratch.read("karat-report/report.json")).unwrap();
    assert_eq!(report["reports"][0]["name"], "full");
    assert_eq!(report["not_measured"][0]["name"], "empty");
    for part in ["hash:1/2", "hash:2/2"] {
        let out = part.replace([':', '/'], "-");
        scratch.karat(&["check", "--partition", part, "--out", &out]).expect(3);
    }
    let merged = scratch.karat(&["merge", "hash-1-2", "hash-2-2"]).expect(3);
    assert!(merged.stdout.contains("nothing to score"), "{}", merged.stdout);
}

#[test]
fn an_adapter_of_another_shape_is_stopped_after_five_answers() {
    let scratch = Scratch::new();
    let query = |n: usize| {
        format!(
            "{{\"id\": \"q{n}\", \"query\": \"open\", \"labels\": [{{\"tool_id\": \"s:create_issue\", \
             \"relevance\": 2}}]}}\n"
        )
    };
    scratch.project(&(0..40).map(query).collect::<String>(), "", &always("3"));
    scratch.karat(&["check"]).not_measured(&["first 5 answers are all invalid", "expected a list"]);
    assert_eq!(scratch.read("asked").lines().count(), 5);
    // A bare list, and an id that was not asked: neither is waited for until the time is over.
    for (line, reason) in [
        (r#"["s:create_issue"]"#, "a JSON object with the id of the question is expected"),
        (r#"{"id": "other", "ranked": []}"#, "it answered the unknown id other"),
    ] {
        let system = format!(
            "{{ command = [\"sh\", \"-c\", '''while read -r asked; do echo '{line}'; done'''] }}"
        );
        scratch.project(&(0..40).map(query).collect::<String>(), "", &system);
        scratch.karat(&["check"]).not_measured(&["first 5 answers are all invalid", reason]);
    }
}

#[test]
fn a_variable_in_the_environment_of_a_command_is_put_in() {
    let scratch = Scratch::new();
    let with = |value: &str| {
        let system = always("[__import__(\"os\").environ[\"ANSWER\"]]");
        system.replacen("'''] }", &format!("'''], env = {{ ANSWER = \"{value}\" }} }}"), 1)
    };
    let gate = "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.4 }\n";
    scratch.project(GOLDEN, gate, &with("s:${KARAT_TEST_TOOL:-create_issue}"));
    scratch.karat(&["check"]).expect(0);
    scratch.project(GOLDEN, gate, &with("s:${KARAT_TEST_TOOL:-none}"));
    scratch.karat(&["check"]).expect(1);
    scratch.project(GOLDEN, gate, &with("${KARAT_TEST_TOOL}"));
    let ran = scratch.karat(&["check"]).expect(2);
    assert!(ran.stderr.contains("KARAT_TEST_TOOL"), "{}", ran.stderr);
}

#[test]
fn a_value_over_a_slice_is_shown_with_the_slice() {
    let scratch = Scratch::new();
    let gate = "[retrieval.gate]\nslice = \"kind=direct\"\n[retrieval.gate.metrics]\n\"mrr\" = { min = 0.1 }\n";
    // One of the two queries finds its tool: over all items the value is half of that over the slice.
    scratch.project(GOLDEN, gate, &always("[\"s:create_issue\"]"));
    let shown = scratch.karat(&["check"]).expect(0).stdout;
    assert!(shown.contains("mrr 1.000") && shown.contains("on kind=direct"), "{shown}");
    let page = scratch.read("karat-report/report.html");
    assert!(page.contains("the rules are about <code>kind=direct</code>"), "the table says so");
}

#[test]
fn every_output_explains_a_failure_by_the_same_rule_and_lists_an_item_once() {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"map\" = { max_drop = 0.0 }\n\
                \"mrr\" = { max_drop = 0.0 }\n\"recall@5\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.project(GOLDEN, gate, &always("[\"s:send_mail\"]"));
    let shown = scratch.karat(&["check"]).expect(1).stdout;
    assert!(
        shown.contains("worse by recall@5, 0 better"),
        "the leading metric comes first: {shown}"
    );
    let last = shown.lines().last().unwrap();
    assert!(last.contains("failed: retrieval r (recall@5 −"), "{last}");
    let worse = scratch.karat(&["show", "r", "--worse"]).expect(0).stdout;
    assert!(worse.starts_with("recall@5: "), "{worse}");
    let ids: Vec<&str> = GOLDEN.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    for id in ids {
        let rows = worse.lines().filter(|line| line.trim_start().starts_with(&format!("{id} ")));
        assert_eq!(rows.count(), 1, "{id} in {worse}");
    }
}

/// `karat check --watch`, ended with the test.
struct Watched {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Watched {
    fn start(scratch: &Scratch, flags: &[&str]) -> Watched {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_karat"));
        command.args(["check", "--watch"]).args(flags).current_dir(scratch.path(""));
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Watched { child, lines }
    }

    /// The next line on stderr with this text.
    fn wait(&mut self, text: &str) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        lines.find(|line| line.contains(text)).unwrap_or_else(|| panic!("ended without {text:?}"))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two looks and more, in which a change would be seen.
fn looked() {
    std::thread::sleep(std::time::Duration::from_secs(2));
}

#[test]
fn a_change_is_measured_again_while_watching() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.1 }\n", BM25);
    // A recording of the run and an output in the project do not change it.
    let project = scratch.read("karat.toml");
    let records = "[[resilience]]\nname = \"w\"\ndataset = \"bundled:worlds/v1\"\nagent = \"diligent\"\n\
                   record = \"runs.jsonl\"\nselect = { worlds = [\"mail\"] }\n";
    let history = "[history]\nfile = \"runs.db\"\n";
    scratch.write("karat.toml", format!("{project}{records}{history}"));
    let mut watched = Watched::start(&scratch, &["-o", "summary.md"]);
    assert!(watched.wait("adds nothing to the history ").contains("runs.db"));
    watched.wait("watching");
    assert!(scratch.path("summary.md").exists() && scratch.path("runs.jsonl").exists());
    looked();
    scratch.write("golden.jsonl", GOLDEN.replace("open a ticket", "open one ticket"));
    let changed = watched.wait("changed: ");
    assert!(changed.contains("golden.jsonl"), "{changed}");
    assert!(!changed.contains("summary.md") && !changed.contains("runs.jsonl"), "{changed}");
    watched.wait("watching");
}

#[test]
fn reports_in_the_folder_of_the_project_are_not_changes_and_entries_that_are_gone_are_forgotten() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let one = scratch.read("karat.toml");
    scratch.write("karat.toml", format!("{one}\n{}", one.replace("\"r\"", "\"other\"")));
    let mut watched = Watched::start(&scratch, &["--out", "."]);
    watched.wait("watching");
    let measured = || {
        let report: serde_json::Value = serde_json::from_str(&scratch.read("report.json")).unwrap();
        report["reports"].as_array().unwrap().len()
    };
    assert_eq!(measured(), 2);
    looked();
    scratch.write("karat.toml", one);
    let changed = watched.wait("changed: ");
    assert!(changed.ends_with("karat.toml") && !changed.contains("report"), "{changed}");
    watched.wait("watching");
    assert_eq!(measured(), 1);
}

#[test]
fn an_error_while_watching_is_shown_with_quiet_too() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let mut watched = Watched::start(&scratch, &["-q"]);
    while !scratch.path("karat-report/report.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    looked();
    scratch.write("karat.toml", "[[retrieval]]\nnmae = 1\n");
    let error = watched.wait("");
    assert!(error.starts_with("karat: ") && error.contains("karat.toml:2"), "{error}");
}

#[test]
fn a_resumed_run_that_is_watched_asks_again_after_a_change() {
    let scratch = Scratch::new();
    // A hidden file, which is not watched.
    let system = always("[\"s:send_mail\"]").replace("\"asked\"", "\".asked\"");
    scratch.project(GOLDEN, "", &system);
    scratch.karat(&["check"]).expect(0);
    let asked = || scratch.read(".asked").lines().count();
    let first = asked();
    let mut watched = Watched::start(&scratch, &["--resume"]);
    watched.wait("watching");
    assert_eq!(asked(), first, "the answers are in the journal");
    looked();
    scratch.write("index.txt", "changed");
    watched.wait("changed: ");
    watched.wait("watching");
    assert!(asked() > first, "nothing was asked again");
}

#[test]
fn the_report_is_opened_by_the_named_browser() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let browser = scratch.write("browser", "#!/bin/sh\necho \"$1\" > opened\n");
    std::process::Command::new("chmod").arg("+x").arg(&browser).status().unwrap();
    scratch.command(&["check", "--open"]).env("BROWSER", browser).output().unwrap();
    let opened = || std::fs::read_to_string(scratch.path("opened")).unwrap_or_default();
    for _ in 0..200 {
        if !opened().is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(opened().contains("karat-report/report.html"));
}

#[test]
fn editors_know_the_keys_of_a_project_and_of_a_suite() {
    let scratch = Scratch::new();
    for user in ["server", "proxy", "scanner", "agent"] {
        scratch.karat(&["init", "--for", user, "--ci", "none", user]).expect(0);
        let schema = scratch.read(&format!("{user}/.karat/project.schema.json"));
        let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
        let text = scratch.read(&format!("{user}/karat.toml"));
        assert!(text.starts_with("#:schema "), "{text}");
        let project: toml::Value = toml::from_str(&text).unwrap();
        let mut project = serde_json::to_value(project).unwrap();
        let errors: Vec<String> = validator.iter_errors(&project).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{user}: {errors:?}");
        project["no_such_key"] = serde_json::json!(1);
        assert!(!validator.is_valid(&project));
    }
    let suite = scratch.karat(&["schema", "suite"]).expect(0).json();
    let validator = jsonschema::validator_for(&suite).unwrap();
    let case = |key: &str| serde_json::json!({"name": "s", "test_cases": [{"tool": "t", key: {}}]});
    assert!(validator.is_valid(&case("input")) && !validator.is_valid(&case("no_such_key")));
}

#[test]
fn a_lost_item_fails_the_gate_and_is_named_everywhere() {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["check"]).expect(0);

    // The recorded scores are others, as if the index had once been better.
    let baseline = scratch.read("b.json");
    let better = baseline
        .replace("\"id\":\"mrr\",\"value\":1.0", "\"id\":\"mrr\",\"value\":1.5")
        .replace("\"mrr\":1.0", "\"mrr\":1.5");
    assert_ne!(baseline, better);
    scratch.write("b.json", better);
    let ran =
        scratch.karat(&["check", "-o", "out.md", "-o", "out.xml", "-o", "out.html"]).expect(1);
    assert!(ran.stdout.contains("mrr"), "{}", ran.stdout);
    assert!(ran.stdout.trim_end().contains("fail"), "{}", ran.stdout);
    for file in ["out.md", "out.xml", "out.html"] {
        assert!(scratch.read(file).contains("mrr"), "{file}");
    }
}

#[test]
fn an_output_of_unknown_type_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    scratch.karat(&["check", "-o", "report.docx"]).expect(2).says(&["report.docx", ".html"]);
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
}

#[test]
fn a_gate_that_no_report_can_meet_is_refused_before_anything_runs() {
    let system = "{ command = [\"python3\", \"-c\", \"open('started', 'w')\"] }";
    for (gate, words) in [
        ("[retrieval.gate.metrics]\n\"fpr_hard\" = { max = 0.1 }\n", ["fpr_hard", "recall@5"]),
        ("[retrieval.gate.metrics]\n\"recall@7\" = { min = 0.1 }\n", ["recall@7", "recall@5"]),
        ("[retrieval.gate]\nslice = \"kind=nope\"\n", ["kind=nope", "kind=direct"]),
        ("[retrieval.gate]\nslice = \"nope=direct\"\n", ["nope=direct", "kind=direct"]),
    ] {
        let scratch = Scratch::new();
        scratch.project(GOLDEN, gate, system);
        scratch.karat(&["check"]).expect(2).says(&words);
        assert!(!scratch.path("started").exists() && !scratch.path("karat-report").exists());
    }
    let scratch = Scratch::new();
    let gate = "[retrieval.gate]\nslice = \"kind=direct\"\n[retrieval.gate.metrics]\n\
                \"mrr\" = { min = 0.1 }\n";
    scratch.project(GOLDEN, gate, BM25);
    scratch.karat(&["check"]).expect(0);
}

#[test]
fn a_gate_of_a_detection_knows_the_slices_of_its_dataset() {
    for (slice, code) in [("category=nope", 2), ("split=test", 0), ("detector=nope", 2)] {
        let scratch = Scratch::new();
        let project = format!(
            "[[detection]]\nname = \"d\"\ndataset = \"bundled:threats/v2\"\n\
             system = {{ builtin = \"builtin\" }}\n[detection.gate]\nslice = \"{slice}\"\n"
        );
        scratch.write("karat.toml", project);
        let ran = scratch.karat(&["check"]).expect(code);
        // What a scanner calls itself is known only once it has answered.
        let early = !scratch.path("karat-report").exists();
        assert_eq!(early, slice == "category=nope", "{slice}: {}", ran.stderr);
    }
}

#[test]
fn an_unknown_bundled_dataset_lists_the_known_ones() {
    let scratch = Scratch::new();
    for name in ["../../etc", "tools/v0"] {
        let project =
            format!("[[retrieval]]\nname = \"r\"\ndataset = \"bundled:{name}\"\nsystem = {BM25}\n");
        scratch.write("karat.toml", project);
        let ran = scratch.karat(&["check"]).expect(2);
        ran.says(&[name, "bundled:tools/v1", "bundled:threats/v2"]);
    }
}

#[test]
fn a_system_that_does_not_start_is_not_measured_and_never_a_pass() {
    for (system, word) in [
        ("{ command = [\"no-such-program-karat\"] }", "no-such-program-karat"),
        ("{ command = [\"/bin/false\"] }", "exit status: 1"),
        ("{ command = [\"/bin/true\"] }", "exit status: 0"),
    ] {
        let scratch = Scratch::new();
        scratch.project(GOLDEN, "", system);
        let ran = scratch.karat(&["check"]).expect(3);
        assert!(ran.stdout.contains(word), "{system}: {}", ran.stdout);
        let document: serde_json::Value =
            serde_json::from_str(&scratch.read("karat-report/report.json")).unwrap();
        assert_eq!(document["verdict"], serde_json::Value::Null);
    }
}

#[test]
fn a_system_that_refuses_garbles_or_hangs_is_not_measured() {
    let answer = |line: &str| {
        format!(
            "{{ command = [\"python3\", \"-c\", '''\nimport sys, json, time\nfor line in sys.stdin:\n    q = json.loads(line)\n    {line}\n'''] }}"
        )
    };
    for (line, word) in [
        (
            "print(json.dumps({\"id\": q[\"id\"], \"error\": \"index lost\"}), flush=True)",
            "index lost",
        ),
        ("print(\"<html>502 Bad Gateway</html>\", flush=True)", "502"),
        (
            "print(json.dumps({\"id\": q[\"id\"], \"ranked\": [{\"tool_id\": \"s:a\"}] * 2}), flush=True)",
            "twice",
        ),
        ("time.sleep(60)", "no answer within"),
    ] {
        let scratch = Scratch::new();
        // Only a hang waits for the limit; an answer must come within it on a busy machine too.
        let limit = if word == "no answer within" { 2_000 } else { 30_000 };
        scratch.project(GOLDEN, &format!("timeout_ms = {limit}\n"), &answer(line));
        let ran = scratch.karat(&["check"]).expect(3);
        assert!(ran.stdout.contains(word), "{line}: {}", ran.stdout);
    }
}

#[test]
fn failures_within_the_allowance_are_counted_and_have_no_score() {
    let scratch = Scratch::new();
    let system = "{ command = [\"python3\", \"-c\", '''\nimport sys, json\nfor line in sys.stdin:\n    q = json.loads(line)\n    a = {\"error\": \"no\"} if q[\"id\"] == \"q1\" else {\"ranked\": [{\"tool_id\": \"s:list_files\"}, {\"tool_id\": \"x:unknown\"}]}\n    print(json.dumps({\"id\": q[\"id\"], **a}), flush=True)\n'''] }";
    scratch.project(GOLDEN, "[retrieval.gate]\nmax_errors = 0.5\n", system);
    let document = scratch.karat(&["check", "--json"]).expect(0).json();
    let report = &document["reports"][0];
    let mrr = report["metrics"].as_array().unwrap().iter().find(|m| m["id"] == "mrr").unwrap();
    assert_eq!((&mrr["value"], &mrr["n"], &mrr["left_out"]), (&1.0.into(), &1.into(), &1.into()));
    assert_eq!(report["items"][0]["error"]["class"], "refused");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("x:unknown"), "{warnings}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    use std::process::Stdio;
    let scratch = Scratch::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_karat"))
        .args(["metrics", "--markdown"])
        .current_dir(scratch.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn entries_of_one_name_are_told_apart_by_their_evaluation() {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", "cases:\n  - {tool: add, input: {a: 2, b: 3}}\n");
    let server = "[[server]]\nname = \"r\"\nbuiltin = \"demo\"\nsuite = \"suite.yaml\"\n\
                  baseline = \"server.json\"\n";
    let gate = format!(
        "baseline = \"search.json\"\n[retrieval.gate.metrics]\n\"mrr\" = {{ max_drop = 0.0 }}\n{server}"
    );
    scratch.project(GOLDEN, &gate, BM25);
    let both = ["retrieval/r", "server/r"];
    scratch.karat(&["baseline", "update", "--only", "r"]).expect(2).says(&both);
    assert!(!scratch.path("search.json").exists() && !scratch.path("server.json").exists());
    scratch.karat(&["baseline", "update", "--only", "retrieval/r"]).expect(0);
    assert!(scratch.path("search.json").exists() && !scratch.path("server.json").exists());
    scratch.karat(&["baseline", "update", "--only", "server/r"]).expect(0);

    let measured = |only: &str| {
        let document = scratch.karat(&["check", "--only", only, "--json"]).expect(0).json();
        document["reports"].as_array().unwrap().len()
    };
    assert_eq!((measured("r"), measured("server/r")), (2, 1));
    scratch.karat(&["check", "--only", "agent/r"]).expect(2).says(&["agent/r"]);

    scratch.project(GOLDEN, &gate, "{ builtin = \"bm25-names\" }");
    let advice = "karat baseline update --only retrieval/r";
    // A check of one of them does not know the other.
    for only in [&["check"][..], &["check", "--only", "retrieval/r"]] {
        let said = scratch.karat(only).expect(1).stdout;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(advice), "{said}");
    }
    let said = scratch.karat(&["check", "--output-format", "agent"]).expect(1).stdout;
    assert!(said.contains(advice), "{said}");
}

#[test]
fn advice_after_a_failure_is_advice_that_works() {
    let scratch = Scratch::new();
    let cases: String =
        (0..9).map(|n| format!("  - {{id: c{n}, tool: read_note, input: {{id: 99}}}}\n")).collect();
    scratch.write("suite.yaml", format!("cases:\n{cases}"));
    scratch.write(
        "karat.toml",
        "[[server]]\nname = \"s\"\nbuiltin = \"demo\"\nsuite = \"suite.yaml\"\n\
         [server.gate.metrics]\n\"pass_rate\" = { min = 1.0 }\n",
    );
    let said = scratch.karat(&["check"]).expect(1).stdout;
    assert!(said.contains("more: karat show server/s"), "{said}");
    assert!(!said.contains("--worse"), "{said}");
    scratch.karat(&["show", "server/s"]).expect(0);

    // A new baseline moves no limit.
    let scratch = Scratch::new();
    let gate = |limit: &str| {
        format!("baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = {{ {limit} }}\n")
    };
    scratch.project(GOLDEN, &gate("min = 0.1"), BM25);
    scratch.karat(&["baseline", "update"]).expect(0);
    let advice = |limit: &str| {
        scratch.project(GOLDEN, &gate(limit), "{ builtin = \"bm25-names\" }");
        let said = scratch.karat(&["check"]).expect(1).stdout;
        let agent = scratch.karat(&["check", "--output-format", "agent"]).expect(1).stdout;
        [said, agent].map(|said| said.contains("baseline update"))
    };
    assert_eq!(advice("min = 1.0"), [false, false]);
    assert_eq!(advice("max_drop = 0.0"), [true, true]);

    // No advice to use a flag that the command does not have.
    let empty = Scratch::new();
    for command in [&["baseline", "update"][..], &["mcp"]] {
        let ran = empty.karat(command).expect(2);
        ran.says(&["karat.toml", "karat init"]);
        assert!(!ran.stderr.contains("--bundled"), "{}", ran.stderr);
    }
}

#[test]
fn options_that_would_be_ignored_are_refused_or_followed() {
    let scratch = Scratch::new();
    let gate = "baseline = \"b.json\"\n[retrieval.gate.metrics]\n\"mrr\" = { max_drop = 0.0 }\n";
    scratch.project(GOLDEN, gate, BM25);
    for flags in [&["--watch"][..], &["--open"], &["--output-format", "agent"]] {
        let partition = [&["check", "--partition", "hash:1/3"], flags].concat();
        let ran = scratch.karat(&partition).expect(2);
        assert!(ran.stderr.contains("--partition"), "{}", ran.stderr);
    }

    let quiet = scratch.karat(&["baseline", "update", "--quiet"]).expect(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert!(scratch.path("b.json").exists());

    scratch.karat(&["check", "--history=runs.db"]).expect(0);
    let show = ["history", "show", "mrr", "--db", "runs.db", "--last"];
    scratch.karat(&[&show[..], &["1"]].concat()).expect(0);
    scratch.karat(&[&show[..], &["0"]].concat()).expect(2);

    let report = "karat-report/report.json";
    let text = scratch.karat(&["comment", report]).expect(0).stdout;
    let document = scratch.karat(&["comment", report, "--json"]).expect(0).json();
    assert_eq!(document["text"].as_str(), Some(&*text));
}

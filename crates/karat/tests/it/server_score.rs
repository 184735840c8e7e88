//! `karat server score`: the answers of an earlier run, judged by the present suite. The same
//! requests give the report of the run; other ones are not recorded, which is neither right nor wrong.

use karat_core::journal;
use serde_json::{Value, json};

use crate::common::{Ran, Scratch, item, metric};

/// A server with state, with right and wrong answers, and a log of its calls.
const SERVER: &str = r#"
name: notes
log: asked.log
tools:
  - name: add
    inputSchema: {type: object, properties: {a: {type: integer}, b: {type: integer}}, required: [a, b]}
    outputSchema: {type: object, properties: {sum: {type: integer}}, required: [sum]}
    do: [{result: {content: [{type: text, text: five}], structuredContent: {sum: 5}}}]
  - name: misshapen
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
    do: [{result: {content: [], structuredContent: {n: many}}}]
  - {name: create, do: [{store: create}]}
  - {name: get, do: [{store: get}]}
  - {name: delete, do: [{store: delete}]}
  - {name: count, do: [{store: count}]}
  - {name: fail, do: [{fail: it failed}]}
  - {name: sometimes, do: [{when: {count: 2, then: [{fail: not now}], otherwise: [{text: fine}]}}]}
  - {name: unused}
  - name: say
    inputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
    do: [{text: "${arguments.text}"}]
"#;

/// Every kind of case. `wrong` has a wrong expectation; `shape`, `repeated` and `unknown` fail by the server.
const SUITE: &str = r#"
name: notes
setup: [{tool: create, save: {first: $.id}}]
cases:
  - {id: sum, tool: add, input: {a: 2, b: 3}, expect: {json: $.sum, equals: 5}, tags: [maths]}
  - {id: wrong, tool: add, input: {a: 1, b: 4}, expect: {json: $.sum, equals: 6}, tags: [maths]}
  - {id: made, tool: create, save: {id: $.id}, expect: {json: $.id, matches: ^id}, then: [{tool: count, expect: {json: $.count, equals: 2}}]}
  - {id: got, tool: get, input: {id: "${id}"}, expect: {json: $, snapshot: true}}
  - {id: kept, tool: get, input: {id: "${first}"}}
  - {id: failing, tool: fail, error: tool, expect: {contains: failed}}
  - {id: missing, tool: nothing, expected_error: true}
  - {id: repeated, tool: sometimes, expect: {equals: fine}, repeat: 4}
  - {id: shape, tool: misshapen}
  - {id: refused, tool: fail, expected_behavior: reject, class: injection}
  - {id: unknown, tool: nothing, expected_behavior: reject, class: injection}
  - {id: hostile, input: read the file /etc/passwd, expected_behavior: deny, class: traversal}
  - {id: same, tool: add, input: {a: 2, b: 3}, relations: [{repeated: 1}, {reordered: true}]}
  - id: tidy
    tool: get
    input: {id: "${mine}"}
    setup: [{tool: create, save: {mine: $.id}}]
    teardown: [{tool: delete, input: {id: "${mine}"}}]
"#;

const JOURNAL: &str = "karat-report/journal/server-suite.jsonl";

/// A folder with a run of the suite, its snapshots, and the definitions of the server.
struct Run {
    scratch: Scratch,
    report: Value,
}

fn first_report(scratch: &Scratch, folder: &str) -> Value {
    let text = scratch.read(&format!("{folder}/report.json"));
    serde_json::from_str::<Value>(&text).unwrap()["reports"][0].clone()
}

impl Run {
    fn of(suite: &str) -> Run {
        let scratch = Scratch::new();
        scratch.write("suite.yaml", suite);
        let server = scratch.server(SERVER);
        let test = ["server", "test", "suite.yaml"];
        scratch.karat(&[&test[..], &["--update", "--"], &server].concat()).expect(1);
        scratch.karat(&[&test[..], &["--"], &server].concat()).expect(1);
        let drift = ["server", "drift", "tools.json", "--update", "--"];
        scratch.karat(&[&drift[..], &server].concat()).expect(0);
        std::fs::remove_file(scratch.path("server.yaml")).unwrap();
        let report = first_report(&scratch, "karat-report");
        Run { scratch, report }
    }

    fn score(&self, suite: &str, more: &[&str]) -> Ran {
        self.scratch.write("suite.yaml", suite);
        let score = ["server", "score", "suite.yaml", "--journal", JOURNAL, "--out", "scored"];
        self.scratch.karat(&[&score[..], more].concat())
    }

    fn scored(&self) -> Value {
        first_report(&self.scratch, "scored")
    }
}

const TOOLS: [&str; 2] = ["--tools", "tools.json"];

fn has_warning(report: &Value, words: &[&str]) -> bool {
    let warnings = report["warnings"].as_array().unwrap();
    warnings.iter().any(|text| words.iter().all(|word| text.as_str().unwrap().contains(word)))
}

#[test]
fn an_unchanged_suite_gives_the_report_of_the_run_without_the_server() {
    let run = Run::of(SUITE);
    let asked = run.scratch.read("asked.log");
    run.score(SUITE, &TOOLS).expect(1);
    let scored = run.scored();
    for (key, value) in run.report.as_object().unwrap() {
        if !["environment", "warnings"].contains(&key.as_str()) {
            assert_eq!(&scored[key], value, "{key}");
        }
    }
    let lost: Vec<&Value> = (run.report["warnings"].as_array().unwrap().iter())
        .filter(|warning| !scored["warnings"].as_array().unwrap().contains(warning))
        .collect();
    assert_eq!(lost, [] as [&Value; 0]);
    assert!(has_warning(&scored, &["judged by the answers in", JOURNAL]), "{scored:#}");
    assert!(!has_warning(&scored, &["the suite changed"]));
    // The suite is one that can fail, in all of these ways.
    for (id, class) in [
        ("wrong", "wrong_output"),
        ("repeated", "tool_error"),
        ("shape", "invalid_output"),
        ("unknown", "no_such_tool"),
    ] {
        let failures = &item(&scored, id)["observed"]["failures"];
        assert!(failures.get(class).is_some(), "{id}: {failures}");
    }
    assert_eq!(run.scratch.read("asked.log"), asked);
}

#[test]
fn a_corrected_expectation_changes_only_its_case() {
    let run = Run::of(SUITE);
    let right = SUITE.replace("equals: 6", "equals: 5");
    run.score(&right, &TOOLS).expect(1);
    let scored = run.scored();
    assert_eq!(item(&run.report, "wrong")["metrics"]["pass_rate"], 0.0);
    assert_eq!(item(&scored, "wrong")["metrics"]["pass_rate"], 1.0);
    for other in run.report["items"].as_array().unwrap() {
        let id = other["id"].as_str().unwrap();
        assert_eq!(item(&scored, id) == other, id != "wrong", "{id}");
    }
    let digest = |report: &Value| report["dataset"]["digest"].as_str().unwrap().to_owned();
    assert!(has_warning(&scored, &["the suite changed", &digest(&run.report), &digest(&scored)]));
    // Gate, quiet form and selection are as in a run.
    let ran = run.score(&right, &[&TOOLS[..], &["--tag", "maths", "-q"]].concat()).expect(0);
    assert_eq!(ran.stdout, "");
    let ran = run.score(SUITE, &[&TOOLS[..], &["--case", "wrong", "-q"]].concat()).expect(1);
    assert!(ran.stdout.contains("failed: server · suite: wrong: "), "{}", ran.stdout);
    run.score(SUITE, &["--case", "none"]).expect(3);
}

/// The suite with one change, and the cases that are not recorded then.
const CHANGES: &[(&str, &str, &[&str])] = &[
    // Its own arguments, tool, attempts and steps.
    ("{a: 1, b: 4}", "{a: 1, b: 5}", &["wrong"]),
    ("id: sum, tool: add", "id: sum, tool: say", &["sum"]),
    ("repeat: 4", "repeat: 3", &["repeated"]),
    ("repeat: 4", "repeat: 4, concurrency: 2", &["repeated"]),
    (
        "then: [{tool: count,",
        "then: [{tool: get, input: {id: '${first}'}}, {tool: count,",
        &["made", "got"],
    ),
    (
        "setup: [{tool: create, save: {mine",
        "setup: [{tool: count}, {tool: create, save: {mine",
        &["tidy"],
    ),
    ("{repeated: 1}", "{repeated: 2}", &["same"]),
    (
        "id: kept, tool: get",
        "id: kept, tool: get, notifications: {method: progress, at_most: 0}",
        &["kept"],
    ),
    ("id: kept, tool: get", "id: kept, tool: get, headers: {age: {exists: false}}", &["kept"]),
    // The call that saves a value for it.
    ("save: {id: $.id}, expect", "save: {id: $.other}, expect", &["got", "made"]),
    ("read the file /etc/passwd", "read the file /etc/shadow", &["hostile/say.text"]),
];

#[test]
fn a_case_that_asks_something_else_is_not_judged_by_the_answers() {
    let run = Run::of(SUITE);
    for (from, to, open) in CHANGES {
        assert!(SUITE.contains(from), "{from}");
        let changed = SUITE.replacen(from, to, 1);
        let ran = run.score(&changed, &TOOLS);
        ran.not_measured(&[&format!("not recorded: {} of 14 cases", open.len()), open[0]]);
        run.score(&changed, &[&TOOLS[..], &["--max-errors", "0.5"]].concat()).expect(1);
        let scored = run.scored();
        for other in run.report["items"].as_array().unwrap() {
            let id = other["id"].as_str().unwrap();
            let found = item(&scored, id);
            if open.contains(&id) {
                assert_eq!(found["error"]["class"], "not_recorded", "{to}: {found}");
                assert_eq!(found["metrics"], json!({}), "{to}: {found}");
            } else {
                assert_eq!(found, other, "{to}: {id}");
            }
        }
        assert!(has_warning(&scored, &["not recorded, and not judged", open[0]]), "{to}");
    }
}

#[test]
fn another_session_is_not_the_one_that_was_recorded() {
    let run = Run::of(SUITE);
    for changed in [
        SUITE.replacen("setup: [{tool: create", "setup: [{tool: count}, {tool: create", 1),
        SUITE.replacen("name: notes", "name: notes\nhide_private: true", 1),
        SUITE.replacen(
            "name: notes",
            "name: notes\nmcp_server: {command: x, policies: {roots: [/]}}",
            1,
        ),
        SUITE.replacen(
            "name: notes",
            "name: notes\nmcp_server: {command: x, protocol: 2025-03-26}",
            1,
        ),
    ] {
        run.score(&changed, &TOOLS)
            .not_measured(&["not recorded: none of 14 cases", "the session"]);
    }
    // Another command is another server, and no other session.
    let moved = SUITE.replacen("name: notes", "name: notes\nmcp_server: {command: elsewhere}", 1);
    run.score(&moved, &TOOLS).expect(1);
    assert_eq!(run.scored()["items"], run.report["items"]);
}

#[test]
fn new_cases_are_not_recorded_and_removed_ones_are_named() {
    let run = Run::of(SUITE);
    let new = format!("{SUITE}  - {{id: new, tool: add, input: {{a: 2, b: 3}}}}\n");
    run.score(&new, &TOOLS)
        .not_measured(&["not recorded: 1 of 15 cases", "new: the journal has no"]);
    run.score(&new, &[&TOOLS[..], &["--max-errors", "0.1"]].concat()).expect(1);
    let scored = run.scored();
    assert_eq!(item(&scored, "new")["error"]["class"], "not_recorded");
    assert_eq!(metric(&scored, "pass_rate"), metric(&run.report, "pass_rate"));

    let sum = SUITE.lines().find(|line| line.contains("id: sum")).unwrap();
    run.score(&SUITE.replace(sum, ""), &TOOLS).expect(1);
    let scored = run.scored();
    assert!(has_warning(&scored, &["1 case of the run", "sum"]), "{}", scored["warnings"]);
    assert_eq!(item(&scored, "wrong"), item(&run.report, "wrong"));
    let renamed = SUITE.replace("id: sum", "id: total");
    run.score(&renamed, &TOOLS).not_measured(&["total: the journal has no answers"]);
}

#[test]
fn without_definitions_the_cases_are_judged_and_the_schemas_are_undefined() {
    let run = Run::of(SUITE);
    run.score(SUITE, &[]).expect(1);
    let scored = run.scored();
    for id in [
        "schema.input",
        "schema.output",
        "coverage.tools",
        "coverage.parameters",
        "coverage.errors",
    ] {
        let found = metric(&scored, id);
        assert_eq!(found["value"], Value::Null, "{found}");
        assert!(found["undefined"].as_str().unwrap().contains("--tools FILE"), "{found}");
    }
    for id in ["pass_rate", "reliability"] {
        assert_eq!(metric(&scored, id), metric(&run.report, id));
    }
    for live in run.report["items"].as_array().unwrap() {
        let found = item(&scored, live["id"].as_str().unwrap());
        for key in ["pass_rate", "reliability"] {
            assert_eq!(found["metrics"][key], live["metrics"][key], "{found:#}");
        }
        // A result that broke its schema broke it then.
        for key in ["failures", "reasons", "answer", "arguments"] {
            assert_eq!(found["observed"][key], live["observed"][key], "{found:#}");
        }
        assert_eq!(found["metrics"].get("schema.output").unwrap_or(&Value::Null), &Value::Null);
    }
    assert_eq!(scored["controls"], run.report["controls"]);
}

#[test]
fn definitions_of_another_server_are_named_and_make_no_case_pass() {
    let run = Run::of(SUITE);
    let scratch = &run.scratch;
    scratch.write("other.json", r#"{"tools": [{"name": "nothing"}, {"name": "unused"}]}"#);
    run.score(SUITE, &["--tools", "other.json"]).expect(1);
    let scored = run.scored();
    assert_eq!(item(&scored, "unknown"), item(&run.report, "unknown"));
    assert_eq!(item(&scored, "shape")["metrics"]["pass_rate"], 0.0);
    assert!(has_warning(&scored, &["other.json lacks tools", "add"]), "{}", scored["warnings"]);
    assert!(has_warning(&scored, &["other.json has tools", "nothing"]), "{}", scored["warnings"]);
    for (text, words) in
        [("{}", "not a list of tools"), ("[]", "no tools"), ("[{}]", "has no name")]
    {
        scratch.write("bad.json", text);
        run.score(SUITE, &["--tools", "bad.json"]).expect(2).says(&["bad.json", words]);
    }
}

/// A journal with every line after the first changed.
fn rewritten(text: &str, change: impl Fn(&mut Value)) -> String {
    let line = |(number, line): (usize, &str)| {
        let mut value: Value =
            serde_json::from_slice(&journal::check_sum(line.as_bytes()).unwrap()).unwrap();
        if number > 0 {
            change(&mut value);
        }
        let line = journal::with_sum(serde_json::to_vec(&value).unwrap());
        String::from_utf8(line).unwrap() + "\n"
    };
    text.lines().enumerate().map(line).collect()
}

#[test]
fn a_journal_that_cannot_be_used_is_refused_with_the_reason() {
    let run = Run::of(SUITE);
    let scratch = &run.scratch;
    let text = scratch.read(JOURNAL);
    let refused = |content: &str, code: i32, words: &[&str]| {
        scratch.write(JOURNAL, content);
        let ran = run.score(SUITE, &TOOLS);
        match code {
            2 => ran.expect(2).says(&[&[JOURNAL], words].concat()),
            _ => ran.not_measured(words),
        }
    };
    let first = text.lines().next().unwrap();
    refused("", 2, &["did not begin"]);
    refused("{}\n", 2, &["not a run journal"]);
    refused(&scratch.read("karat-report/report.json"), 2, &["not a run journal"]);
    refused(&text.replacen("karat.journal/3", "karat.journal/9", 1), 2, &["karat.journal/9"]);
    refused(&text.replacen("\"five\"", "\"six\"", 1), 2, &["line 2", "checksum"]);
    refused(&format!("{first}\n"), 3, &["not recorded: none of 14 cases"]);
    let other = journal::check_sum(first.as_bytes()).unwrap();
    let other = String::from_utf8(other).unwrap().replacen("\"suite\"", "\"retrieval\"", 1);
    let other = String::from_utf8(journal::with_sum(other.into_bytes())).unwrap();
    refused(&format!("{other}\n"), 2, &["the journal of retrieval", "not of a suite"]);
    // A killed run: the cases up to there, and a torn line.
    let whole = text.lines().take(4).collect::<Vec<_>>().join("\n");
    refused(&format!("{whole}\n{{\"run\":0,\"id\":\"go"), 3, &["not recorded: 11 of 14 cases"]);
    std::fs::remove_file(scratch.path(JOURNAL)).unwrap();
    run.score(SUITE, &[]).expect(2).says(&[JOURNAL]);
    run.score(SUITE, &["--max-errors", "2"])
        .expect(2)
        .says(&["--max-errors must be between 0 and 1"]);
}

#[test]
fn the_journal_of_an_earlier_version_resumes_and_is_not_judged() {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", SUITE);
    let [program, script] = scratch.server(SERVER);
    let project = json!({"command": [program, script]});
    let [program, script] = [&project["command"][0], &project["command"][1]];
    scratch.write(
        "karat.toml",
        format!("[[server]]\nname = \"suite\"\nsuite = \"suite.yaml\"\nserver = {{ command = [{program}, {script}] }}\n"),
    );
    scratch.karat(&["check"]).expect(1);
    let report = first_report(&scratch, "karat-report");
    let earlier = rewritten(&scratch.read(JOURNAL), |entry| {
        let answer = entry["outcome"]["answer"].as_object_mut().unwrap();
        assert!(answer.remove("asked").is_some());
        for attempt in answer["attempts"].as_array_mut().unwrap() {
            for call in attempt["calls"].as_array_mut().unwrap() {
                call.as_object_mut().unwrap().remove("violation");
            }
        }
    });
    scratch.write(JOURNAL, earlier);
    let calls = |scratch: &Scratch| {
        let log = scratch.read("asked.log");
        log.lines().filter(|line| !line.starts_with("start") && !line.starts_with("create")).count()
    };
    let before = calls(&scratch);
    scratch.karat(&["check", "--resume"]).expect(1);
    assert_eq!(calls(&scratch), before);
    assert_eq!(first_report(&scratch, "karat-report")["items"], report["items"]);
    let score = ["server", "score", "suite.yaml", "--journal", JOURNAL];
    scratch.karat(&score).not_measured(&["none of 14 cases", "an earlier version of Karat"]);
}

#[test]
fn secrets_that_the_run_hides_stay_hidden() {
    const SECRET: &str = "abcd1234secretXYZ9";
    let suite = format!(
        "cases:\n  - {{id: shown, tool: environment, expect: {{contains: PATH}}}}\n  - {{id: wanted, tool: environment, about: not {SECRET}, expect: {{json: $.API_TOKEN, equals: {SECRET}}}}}\n"
    );
    let server = "tools: [{name: environment, do: [{text: \"${environment}\"}]}]";
    let scratch = Scratch::new();
    scratch.write("suite.yaml", &suite);
    let [program, script] = scratch.server(server);
    let token = format!("API_TOKEN={SECRET}");
    let test = ["server", "test", "suite.yaml", "-e", &token, "--", program, script];
    scratch.karat(&test).expect(1);
    let live = first_report(&scratch, "karat-report");
    let hidden = |ran: &Ran| {
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{}", ran.stdout);
        for file in scratch.files() {
            let is_ours = ["suite.yaml", "server.yaml"].contains(&file.as_str());
            assert!(is_ours || !scratch.read(&file).contains(SECRET), "{file} has the secret");
        }
    };
    // The secret was given on the command line, so it is not known now.
    let journal = "karat-report/journal/server-suite.jsonl";
    let tools = r#"[{"name": "environment", "inputSchema": {"type": "object"}}]"#;
    scratch.write("tools.json", tools);
    let score = ["server", "score", "suite.yaml", "--journal", journal, "-o", "all.html"];
    let score = [&score[..], &TOOLS].concat();
    let ran = scratch.karat(&score).expect(1);
    hidden(&ran);
    let scored = first_report(&scratch, "karat-report");
    assert_eq!(item(&scored, "shown"), item(&live, "shown"));
    assert_eq!(item(&scored, "wanted")["metrics"], item(&live, "wanted")["metrics"]);
    let reasons = item(&scored, "wanted")["observed"]["reasons"].to_string();
    assert!(reasons.contains("not shown: the case holds secrets"), "{reasons}");
    // A suite that has it gives the texts of the run.
    let own = format!("mcp_server: {{command: x, env: {{API_TOKEN: {SECRET}}}}}\n{suite}");
    scratch.write("suite.yaml", own);
    let ran = scratch.karat(&score).expect(1);
    hidden(&ran);
    let scored = first_report(&scratch, "karat-report");
    assert_eq!(scored["items"], live["items"]);
}

#[test]
fn secrets_in_ids_addresses_tags_and_classes_stay_hidden() {
    const SECRET: &str = "abcd1234secretXYZ9";
    let suite = format!(
        r#"cases:
  - {{resource: "note://x?ticket={SECRET}", expect: {{contains: nothing}}}}
  - {{id: unmade, setup: [{{tool: environment, save: {{v: $.gone}}}}], prompt: p-{SECRET}, input: {{a: "${{v}}"}}}}
  - {{id: tagged, tool: environment, tags: [env {SECRET}], class: c {SECRET}}}
"#
    );
    let server = "tools: [{name: environment, do: [{text: \"${environment}\"}]}]";
    let scratch = Scratch::new();
    scratch.write("suite.yaml", &suite);
    let [program, script] = scratch.server(server);
    let token = format!("API_TOKEN={SECRET}");
    let hidden = |ran: &Ran| {
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{}", ran.stdout);
        for file in scratch.files() {
            let is_ours = ["suite.yaml", "server.yaml"].contains(&file.as_str());
            assert!(is_ours || !scratch.read(&file).contains(SECRET), "{file} has the secret");
        }
    };
    let test = ["server", "test", "suite.yaml", "-e", &token, "-o", "j.xml", "--", program, script];
    hidden(&scratch.karat(&test).expect(1));
    let live = first_report(&scratch, "karat-report");
    let id = "note://x?ticket=[redacted]-1";
    assert_eq!(item(&live, id)["tags"]["resource"], "note://x?ticket=[redacted]");
    let slices: Vec<&str> =
        live["slices"].as_array().unwrap().iter().map(|s| s["value"].as_str().unwrap()).collect();
    assert!(slices.contains(&"env [redacted]") && slices.contains(&"p-[redacted]"), "{slices:?}");
    // It is not known here, and the case with it in its id is still found.
    let journal = "karat-report/journal/server-suite.jsonl";
    let score =
        ["server", "score", "suite.yaml", "--journal", journal, "--out", "again", "-o", "k.xml"];
    hidden(&scratch.karat(&score).expect(1));
    let scored = first_report(&scratch, "again");
    assert_eq!(item(&scored, id)["metrics"]["pass_rate"], item(&live, id)["metrics"]["pass_rate"]);
    assert_eq!(item(&scored, "unmade")["tags"]["prompt"], "(not shown)");
    assert_eq!(item(&scored, "tagged")["tags"].as_object().unwrap().len(), 1);
    // A case that was renamed since is not known by its id.
    let renamed = suite.replace("id: tagged", "id: other").replace("id: unmade", "id: made");
    scratch.write("suite.yaml", format!("{renamed}  - {{resource: note://new/{SECRET}}}\n"));
    let changed = [&score[..], &["--max-errors", "1"]].concat();
    hidden(&scratch.karat(&changed).expect(1));
    let warnings = first_report(&scratch, "again")["warnings"].to_string();
    assert!(warnings.contains("quoted some in the run: 1 case: note://x"), "{warnings}");
    assert!(
        warnings.contains("were not recorded")
            && warnings.contains("3 cases: made, other, resource (not shown)-4"),
        "{warnings}"
    );
}

#[test]
fn secrets_in_ids_stay_hidden_when_failed_cases_run_again_and_in_a_changed_suite() {
    const SECRETS: [&str; 2] = ["abcd1234secretXYZ9", "efgh5678secretUVWq"];
    let [first, second] = SECRETS;
    let one =
        format!("  - {{id: b {first}, tool: say, input: {{a: 1}}, expect: {{equals: other}}}}\n");
    let two = format!("  - {{id: b {second}, tool: say, input: {{a: 2}}, tags: [t {second}]}}\n");
    let scratch = Scratch::new();
    scratch.write("suite.yaml", format!("cases:\n{one}{two}"));
    let [program, script] = scratch.server("tools: [{name: say, do: [{text: fine}]}]");
    let tokens = [format!("API_TOKEN={first}"), format!("OTHER_TOKEN={second}")];
    let hidden = |ran: &Ran| {
        for secret in SECRETS {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{}", ran.stderr);
            for file in scratch.files() {
                let is_ours = ["suite.yaml", "server.yaml"].contains(&file.as_str());
                assert!(is_ours || !scratch.read(&file).contains(secret), "{file} has the secret");
            }
        }
    };
    let test = |more: &[&str], code: i32| {
        let words = ["server", "test", "suite.yaml", "-e", &tokens[0], "-e", &tokens[1]];
        let ran = scratch.karat(&[&words, more, &["--", program, script]].concat());
        hidden(&ran.expect(code));
    };
    let ids = |folder: &str| -> Vec<String> {
        let report = first_report(&scratch, folder);
        let items = report["items"].as_array().unwrap();
        items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    test(&[], 1);
    assert_eq!(ids("karat-report"), ["b [redacted]", "b [redacted]-2"]);
    test(&["--tag", "none", "--out", "nothing"], 3);
    test(&["--last-failed", "--out", "karat-report"], 1);
    assert_eq!(ids("karat-report"), ["b [redacted]"]);
    test(&[], 1);
    // Neither secret is known here; a new case comes first, and the requests of another one are changed.
    let new = "  - {id: b new, tool: say, input: {a: 3}}\n";
    let score = |suite: &str, code: i32| {
        scratch.write("suite.yaml", format!("cases:\n{suite}"));
        let journal = "karat-report/journal/server-suite.jsonl";
        let words =
            ["server", "score", "suite.yaml", "--journal", journal, "--max-errors", "1", "--out"];
        let ran = scratch.karat(&[&words[..], &["again", "-o", "k.xml"]].concat());
        hidden(&ran.expect(code));
        ids("again")
    };
    let mut found = score(&format!("{new}{two}{one}"), 1);
    found.sort();
    assert_eq!(found, ["b [redacted]", "b [redacted]-2", "b new"]);
    let changed = one.replace("a: 1", "a: 4");
    let mut found = score(&format!("{new}{two}{changed}"), 0);
    found.sort();
    assert_eq!(found, ["b [redacted]", "b [redacted]-2", "b [redacted]-3"]);
}

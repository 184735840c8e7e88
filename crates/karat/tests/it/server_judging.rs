//! The judgements of `karat server test`: the real binary against a small server that answers with its
//! arguments, so that each answer is known.

use serde_json::json;

use crate::common::{Ran, Scratch, metric, slice};

/// `say` answers with its argument `r` as the result, `typed` declares an input and an output schema, and
/// `end` ends the server.
const SERVER: &str = r#"
name: says
tools:
  - name: say
    do: [{when: {argument: r, then: [{result: "${arguments.r}"}], otherwise: [{text: hello}]}}]
  - name: typed
    inputSchema: {type: object, properties: {a: {type: integer}}, required: [a]}
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
    do: [{result: {content: [], structuredContent: {n: "${arguments.a}"}}}]
  - name: end
    do: [{exit: 3}]
"#;

fn run(cases: &str, more: &[&str]) -> (Scratch, Ran) {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", format!("cases:\n{cases}"));
    let server = scratch.server(SERVER);
    let arguments = [&["server", "test", "suite.yaml"], more, &["--"], &server];
    let ran = scratch.karat(&arguments.concat());
    (scratch, ran)
}

#[test]
fn an_invalid_result_does_not_pass() {
    for result in [
        r#"{content: [], isError: "true"}"#,
        "{content: [{type: text, text: x}], isError: 1}",
        "{}",
        "{content: x}",
        "{content: [{text: x}]}",
        "{content: [{type: text, text: 5}]}",
        "{content: [{type: image}]}",
        "{content: [{type: text, text: a}], structuredContent: [1]}",
    ] {
        let cases = format!("  - {{id: odd, tool: say, input: {{r: {result}}}}}\n");
        let (scratch, ran) = run(&cases, &[]);
        assert_eq!(ran.code, 1, "{result}: {}{}", ran.stdout, ran.stderr);
        let observed = &scratch.report()["items"][0]["observed"];
        assert_eq!(observed["failures"], json!({"invalid_output": 1}), "{result}: {observed}");
    }
}

#[test]
fn a_case_about_what_must_not_be_there_can_stand_alone() {
    for case in [
        "{id: one, tool: say, expect: {lacks: secret}}",
        "{id: one, tool: say, expect: {json: $.password, exists: false}}",
        "{id: one, tool: say, then: [{tool: say}]}",
    ] {
        let (_, ran) = run(&format!("  - {case}\n"), &[]);
        assert_eq!(ran.code, 0, "{case}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("answers-nothing ok"), "{}", ran.stdout);
    }
    // One that proves nothing is named.
    let (_, ran) = run("  - {id: weak, tool: say, expect: {schema: {type: string}}}\n", &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("it passes weak"), "{}", ran.stdout);
}

#[test]
fn a_misspelt_tool_around_a_case_never_passes() {
    for steps in [
        "setup: [{tool: sya, error: any}]",
        "then: [{tool: sya, error: any}]",
        "then: [{tool: sya, error: -32602}]",
        "then: [{tool: sya, error: allowed}]",
        "teardown: [{tool: sya}]",
    ] {
        let cases = format!("  - {{id: one, tool: say, expect: {{equals: hello}}, {steps}}}\n");
        let (_, ran) = run(&cases, &[]);
        assert_eq!(ran.code, 1, "{steps}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("1 (sya): the server has no such tool"), "{}", ran.stdout);
    }
    let cases = "  - {id: code, tool: sya, error: -32602}\n  - {id: kind, tool: sya, error: protocol}\n  - {id: plain, tool: sya, expected_error: true}\n";
    let (_, ran) = run(cases, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let warning = "3 cases call a tool that the server lacks: code, kind, plain";
    assert!(ran.stdout.contains(warning), "{}", ran.stdout);
}

#[test]
fn schemas_and_slices_are_counted_over_every_call_and_attempt() {
    let (scratch, ran) = run(
        "  - {id: then, tool: say, then: [{tool: typed, input: {a: 1}}], tags: [a, b], repeat: 3}\n  - {id: wrong, tool: typed, input: {a: x}, error: allowed, tags: [b], repeat: 2}\n  - {id: once, tool: say}\n",
        &[],
    );
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let report = scratch.report();
    let count = |part, id| metric(slice(&report, part), id)["count"].clone();
    assert_eq!(count(None, "schema.input"), json!({"hits": 7, "of": 9}));
    assert_eq!(count(None, "schema.output"), json!({"hits": 3, "of": 5}));
    assert_eq!(count(None, "reliability"), json!({"hits": 4, "of": 6}));
    assert_eq!(metric(&report, "schema.output")["interval"]["method"], "wilson");
    assert_eq!(count(Some(("tag", "a")), "reliability"), json!({"hits": 3, "of": 3}));
    assert_eq!(count(Some(("tag", "b")), "reliability"), json!({"hits": 3, "of": 5}));
    assert_eq!(metric(slice(&report, Some(("tag", "b"))), "reliability")["n"], 5);
    let hat = metric(&report, "pass^2");
    assert_eq!((&hat["value"], &hat["n"], &hat["left_out"]), (&json!(0.5), &json!(2), &json!(1)));
    assert_eq!(hat["interval"]["method"], "bootstrap");
    let (scratch, _) = run("  - {id: once, tool: say}\n", &[]);
    let undefined = metric(&scratch.report(), "schema.output")["undefined"].clone();
    assert_eq!(undefined, "no result of a tool that declares an outputSchema");
}

#[test]
fn the_summary_names_the_failed_case_and_the_reason() {
    let mut cases = String::from("  - {id: fine, tool: say}\n");
    for number in 10..22 {
        cases += &format!("  - {{id: bad-{number}, tool: say, expect: {{contains: bye}}}}\n");
    }
    let (scratch, ran) = run(&cases, &["-o", "summary.md"]);
    assert_eq!(ran.code, 1);
    let why = r#"bad-19: the text is "hello", expected text containing "bye""#;
    assert!(ran.stdout.contains(&format!("failed: {why}")), "{}", ran.stdout);
    assert!(ran.stdout.contains("and 2 more failed cases in the report"), "{}", ran.stdout);
    assert!(
        !ran.stdout.contains("bad-20") && !ran.stdout.contains("failed: fine"),
        "{}",
        ran.stdout
    );
    let summary = scratch.read("summary.md");
    assert!(summary.contains("Failed cases:\n\n- `bad-10`: the text is"), "{summary}");
    assert!(summary.contains("\n- and 2 more in the report\n"), "{summary}");

    let (_, ran) = run(&cases, &["-q"]);
    assert!(ran.stdout.contains(&format!("failed: server · suite: {why}\n")), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("failed: server · suite: 2 more in the report\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_command_without_resume_does_not_speak_of_it() {
    let scratch = Scratch::new();
    // It starts once, and never again.
    let once = "log: used\nstart: [{when: {min_start: 2, then: [{stderr: used up}, {exit: 1}]}}]";
    let [program, script] = scratch.server(format!("{SERVER}{once}"));
    scratch.write(
        "suite.yaml",
        "cases:\n  - {id: a, tool: say}\n  - {id: b, tool: end}\n  - {id: c, tool: say}\n",
    );
    let server = ["--", program, script];
    let ran = scratch.karat(&[&["server", "test", "suite.yaml"], &server[..]].concat()).expect(3);
    assert!(ran.stdout.contains("the system was lost at item"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("--resume"), "{}", ran.stdout);

    std::fs::remove_file(scratch.path("used")).unwrap();
    scratch.write(
        "karat.toml",
        format!(
            "[[server]]\nname = \"s\"\nsuite = \"suite.yaml\"\n\
             server = {{ command = [{program:?}, {script:?}] }}\n"
        ),
    );
    let ran = scratch.karat(&["check", "-v"]).expect(3);
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("(use --resume to continue)"), "{}", ran.stdout);
}

#[test]
fn a_snapshot_of_a_case_that_fails_otherwise_is_not_accepted() {
    let cases = "  - {id: both, tool: say, expect: [{snapshot: true}, {contains: bye}]}\n  - {id: after, tool: say, expect: {snapshot: true}, then: [{tool: say, expect: {contains: bye}}]}\n  - {id: good, tool: say, expect: [{snapshot: true}, {contains: hello}]}\n";
    let (scratch, ran) = run(cases, &["--update"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let warnings = scratch.report()["warnings"].to_string();
    assert!(warnings.contains("no snapshot written for both: the text is"), "{warnings}");
    assert!(warnings.contains("no snapshot written for after: then 1 (say): "), "{warnings}");
    let files = scratch.files();
    let snapshots: Vec<&String> = files.iter().filter(|file| file.contains("snapshots")).collect();
    assert_eq!(snapshots, ["suite.snapshots/good.json"]);
}

#[test]
fn what_is_wrong_with_the_server_of_a_suite_is_said() {
    let scratch = Scratch::new();
    scratch.write("suite.yaml", "mcp_server: {command: 5}\ncases:\n  - {tool: say}\n");
    let ran = scratch.karat(&["server", "test", "suite.yaml"]).expect(2);
    ran.says(&["mcp_server", "command: a program or a list of words"]);
}

use super::*;

fn parse(name: &str, text: &str) -> Result<Suite, InputError> {
    Suite::parse(Path::new(name), text.as_bytes())
}

fn message(text: &str) -> String {
    parse("suite.yaml", text).unwrap_err().to_string()
}

#[test]
fn the_plain_form_is_read_as_it_is() {
    let suite = parse(
            "plain.json",
            r#"{"mcp_server": "node server.js", "test_cases": [
                {"tool": "get_weather", "input": {"city": "Bern"}, "expected_output_contains": "temperature", "max_latency_ms": 2000},
                {"tool": "invalid_tool", "input": {}, "expected_error": true}
            ]}"#,
        )
        .unwrap();
    assert_eq!(suite.name, "plain");
    assert_eq!(suite.target, TARGET);
    let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["get_weather-1", "invalid_tool-1"]);
    assert_eq!(suite.cases[0].step.matchers.len(), 1);
    assert_eq!(suite.cases[0].max_latency_ms, Some(2000));
    assert_eq!(suite.cases[1].step.ending, Ending::AnyError);
}

#[test]
fn a_list_of_texts_is_read_as_it_is() {
    let suite = parse(
        "security.json",
        r#"[{"input": "normal request", "expected": "normal response"},
                {"input": "ignore previous and...", "expected_behavior": "reject"},
                {"input": "read /etc/passwd", "expected_behavior": "deny"}]"#,
    )
    .unwrap();
    let tool = |name: &str, parameter: &str, kind: &str| {
        let properties = serde_json::json!({parameter: {"type": kind}});
        let schema = serde_json::json!({"type": "object", "properties": properties});
        let raw = serde_json::json!({"name": name, "inputSchema": schema});
        karat_mcp::Definition::new(raw).unwrap()
    };
    let tools =
        [tool("ask", "q", "string"), tool("read", "path", "string"), tool("n", "n", "integer")];
    let cases = suite.cases_for(&tools);
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(
        ids,
        ["text-1", "text-2/ask.q", "text-2/read.path", "text-3/ask.q", "text-3/read.path"]
    );
    assert!(cases[0].any_of && cases[0].then.len() == 1);
    assert_eq!(cases[3].step.input["q"], "read /etc/passwd");
    assert!(suite.cases_for(&tools[2..]).is_empty());
    assert!(message("cases:\n  - {input: {a: 1}}\n").contains("the case has no `tool`"));
    assert!(message("cases:\n  - {tool: a, input: 3}\n").contains("`input` must be"));
}

#[test]
fn a_misspelt_matcher_is_named() {
    for expect in ["{contain: x}", "[{number: 1}, {contain: x}]", "{not: {contain: x}}"] {
        let found = message(&format!("cases:\n  - {{tool: a, expect: {expect}}}\n"));
        assert!(found.contains("unknown key `contain`"), "{found}");
    }
    assert!(message("cases:\n  - {tool: a, expect: 3}\n").contains("a matcher or a list"));
    let text = message("cases:\n  - {tool: a, expect: hello}\n");
    assert!(text.contains("2:15: ") && text.contains("a matcher such as {contains"), "{text}");
    let text = message("cases:\n  - {tool: a, headers: {age: old}}\n");
    assert!(text.contains("a matcher such as {contains"), "{text}");
}

#[test]
fn a_number_among_texts_is_refused_as_a_number_alone_is() {
    for condition in ["contains: 3", "contains: [a, 3]", "lacks: [a, 1.50]", "contains: [a, true]"]
    {
        let text = format!("cases:\n  - tool: t\n    expect: {{{condition}}}\n");
        let message = message(&text);
        assert!(message.starts_with("suite.yaml:3:"), "{condition}: {message}");
        assert!(message.contains("a number in quotes is a string"), "{condition}: {message}");
    }
    let case = "cases:\n  - {tool: t, expected_output_contains: [a, 3]}\n";
    assert!(message(case).contains("a number in quotes is a string"));
    parse("suite.yaml", "cases:\n  - {tool: t, expect: {contains: [a, '3', \"1.50\"]}}\n").unwrap();
}

#[test]
fn kinds_of_errors_are_distinguished() {
    let suite = parse(
            "errors.yaml",
            "cases:\n  - {tool: a, error: tool}\n  - {tool: b, error: -32602}\n  - {tool: c, error: protocol}\n  - {tool: d, expected_behavior: deny}\n  - {tool: e}\n",
        )
        .unwrap();
    let endings: Vec<Ending> = suite.cases.iter().map(|case| case.step.ending).collect();
    assert_eq!(
        endings,
        [
            Ending::ToolError,
            Ending::ProtocolError(Some(-32602)),
            Ending::ProtocolError(None),
            Ending::Denied,
            Ending::Success
        ]
    );
}

#[test]
fn values_pass_from_one_call_to_a_later_one_only() {
    let good = "cases:\n  - {tool: create, save: {id: $.id}, then: [{tool: get, input: {id: '${id}'}, expect: {contains: x}}]}\n";
    assert!(parse("good.yaml", good).is_ok());
    for (bad, place) in [
        (
            "cases:\n  - {id: first, tool: get, input: {id: '${id}'}}\n  - {tool: create, save: {id: $.id}}\n",
            "first",
        ),
        ("setup: [{tool: get, input: {id: '${id}'}}]\ncases:\n  - {tool: a}\n", "setup"),
        ("teardown: [{tool: get, input: {id: '${id}'}}]\ncases:\n  - {tool: a}\n", "teardown"),
    ] {
        let found = message(bad);
        assert!(found.contains(&format!("{place}: no earlier call saves ${{id}}")), "{found}");
    }
}

#[test]
fn each_mistake_is_reported_with_its_place() {
    for (text, expected) in [
        (
            "cases:\n  - {tool: a, expect: {contains: ''}}\n",
            "a-1: expectation 1: contains: every answer contains the empty string",
        ),
        ("cases:\n  - {tool: a, id: x}\n  - {tool: b, id: x}\n", "x: duplicate id"),
        ("cases:\n  - {tool: a, repeat: 0}\n", "a-1: `repeat` and `concurrency`"),
        ("repeat: 4294967295\ncases:\n  - {tool: a}\n", "a-1: `repeat` must be at most 100000"),
        ("cases:\n  - {tool: a, concurrency: 10001}\n", "`concurrency` at most 10000"),
        ("cases:\n  - {tool: ''}\n", "`tool` is empty"),
        ("cases:\n  - {tool: a, expected_error: false, error: tool}\n", "contradict each other"),
        ("target: 95\ncases: []\n", "target: must be between 0 and 1"),
        ("cases:\n  - {tool: a, save: {x: 'a['}}\n", "save x"),
        ("cases:\n  - {tool: a, expect: {snapshot: {redact: ['a[']}}}\n", "is not a path"),
        (
            "teardown: [{tool: a, expect: {snapshot: true}}]\ncases:\n  - {tool: a}\n",
            "teardown: a snapshot can be expected only in a case",
        ),
        ("cases:\n  - {tool: a, expcted: 1}\n", "expcted"),
        (
            "cases:\n  - {tool: a, expect: {contains: 12}}\n",
            "suite.yaml:2:24: invalid type: integer `12`, expected a string or a list of strings",
        ),
        (
            "cases:\n  - {tool: a, error: foo}\n",
            "\"foo\", expected any, tool, protocol, allowed, or the code of a protocol error",
        ),
        (
            "cases:\n  - {tool: a, error: 99999999999999999999}\n",
            "expected any, tool, protocol, allowed, or the code of a protocol error",
        ),
        ("cases:\n  - {tool: a, expect: {snapshot: {redct: []}}}\n", "unknown key `redct`"),
        (
            "cases:\n  - {tool: a, expect: {snapshot: 3}}\n",
            "expected true, or an object with redact and redact_matches",
        ),
        ("cases:\n  - {tool: a, expect: {exists: true}}\n", "a-1: expectation 1: exists: every"),
        (
            "cases:\n  - {tool: a, then: [{tool: a, expect: {one_of: []}}]}\n",
            "a-1: then 1: expectation 1: one_of",
        ),
        (
            "cases:\n  - {tool: a, expect: {json: $.v, equals: 123456789012345678901234567891}}\n",
            "a-1: expectation 1: equals: 1.2345678901234568e+29 is beyond 64 bits",
        ),
    ] {
        let found = message(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}

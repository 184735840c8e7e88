//! Invalid text in every format: the mistake, its line and the remedy.

use karat_io::input::{
    Format, InputError, Limits, parse_bytes, parse_json, parse_json_lines, parse_toml, parse_yaml,
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Query {
    id: String,
    #[serde(default)]
    count: u32,
    share: Option<f64>,
    strict: Option<bool>,
    kind: Option<Kind>,
    arguments: Option<Value>,
    next: Option<Box<Query>>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Exact,
    Paraphrase,
}

fn json(text: &str) -> InputError {
    parse_json::<Query>("q.json", text.as_bytes()).unwrap_err()
}

fn yaml(text: &str) -> InputError {
    parse_yaml::<Query>("q.yaml", text.as_bytes()).unwrap_err()
}

fn toml(text: &str) -> InputError {
    parse_toml::<Query>("q.toml", text.as_bytes()).unwrap_err()
}

fn json_lines(text: &str) -> InputError {
    parse_json_lines::<Vec<Query>>("q.jsonl", text.as_bytes()).unwrap_err()
}

#[test]
fn every_format_gives_the_same_data() {
    let expected = Query {
        id: "q-1".into(),
        count: 3,
        share: Some(0.5),
        strict: Some(true),
        kind: Some(Kind::Paraphrase),
        arguments: Some(json!({"z": 1, "a": [1.0, "yes", null]})),
        next: None,
    };
    let json = r#"{"id": "q-1", "count": 3, "share": 0.5, "strict": true, "kind": "paraphrase",
                   "arguments": {"z": 1, "a": [1.0, "yes", null]}}"#;
    let yaml = "id: q-1\ncount: 3\nshare: 0.5\nstrict: true\nkind: paraphrase\n\
                arguments: {z: 1, a: [1.0, yes, null]}\n";
    let toml = "id = 'q-1'\ncount = 3\nshare = 0.5\nstrict = true\nkind = 'paraphrase'\n\
                arguments = { z = 1, a = [1.0, 'yes'] }\n";
    assert_eq!(parse_json::<Query>("q.json", json.as_bytes()).unwrap(), expected);
    assert_eq!(parse_yaml::<Query>("q.yaml", yaml.as_bytes()).unwrap(), expected);
    // TOML has no null.
    let without_null = json!({"z": 1, "a": [1.0, "yes"]});
    let expected_toml = Query { arguments: Some(without_null), ..expected };
    assert_eq!(parse_toml::<Query>("q.toml", toml.as_bytes()).unwrap(), expected_toml);
}

#[test]
fn key_order_and_number_formats_are_kept() {
    let value: Value = parse_json("a.json", br#"{"z": 1, "a": 1.0, "m": -0.0}"#).unwrap();
    assert_eq!(value.to_string(), r#"{"z":1,"a":1.0,"m":-0.0}"#);
    let value: Value = parse_yaml("a.yaml", b"z: 1\na: 1.0\nm: -0.0\n").unwrap();
    assert_eq!(value.to_string(), r#"{"z":1,"a":1.0,"m":-0.0}"#);
    let tenth: f64 = parse_json("a.json", b"0.1000000000000000055511151231257827").unwrap();
    assert_eq!(tenth.to_bits(), 0.1_f64.to_bits());
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_known_one() {
    let errors = [
        json("{\n\"id\": \"a\",\n\"cuont\": 2}"),
        yaml("id: a\n\ncuont: 2"),
        toml("id = 'a'\n\ncuont = 2"),
        json_lines("{\"id\": \"a\"}\n\n{\"id\": \"b\", \"cuont\": 2}"),
    ];
    for error in errors {
        let InputError::UnknownKey { line: 3, key, nearest, known, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!((key.as_str(), nearest.as_deref()), ("cuont", Some("count")));
        assert_eq!(known.len(), 7);
        let message = error.to_string();
        assert!(message.ends_with(":3: unknown key `cuont`; did you mean `count`?"), "{message}");
    }
}

#[test]
fn an_unknown_nested_key_is_found() {
    let errors = [
        json("{\"id\": \"a\", \"next\": {\n\"id\": \"b\", \"xyz\": 1}}"),
        yaml("id: a\nnext: {id: b, xyz: 1}"),
        toml("[next]\nxyz = 1\nid = 'b'"),
    ];
    for error in errors {
        let InputError::UnknownKey { line: 2, key, nearest: None, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(key, "xyz");
        let message = error.to_string();
        assert!(message.contains("expected id, count, share"), "{message}");
    }
}

#[test]
fn an_unknown_choice_names_the_choices() {
    let errors = [
        json("{\"id\": \"a\",\n\"kind\": \"paraphrased\"}"),
        yaml("id: a\nkind: paraphrased"),
        toml("id = 'a'\nkind = 'paraphrased'"),
    ];
    for error in errors {
        let InputError::UnknownChoice { line: 2, value, nearest, known, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!((value.as_str(), nearest.as_deref()), ("paraphrased", Some("paraphrase")));
        assert_eq!(known, &["exact", "paraphrase"]);
    }
}

#[test]
fn a_duplicate_key_is_refused_at_every_depth() {
    let errors = [
        json("{\"id\": \"a\",\n\"id\": \"b\"}"),
        json("{\"id\": \"a\", \"arguments\": {\"id\": 1,\n\"id\": 2}}"),
        json("{\"id\": \"a\", \"arguments\": [[{\"id\": 1,\n\"\\u0069d\": 2}]]}"),
        json_lines("{\"id\": \"a\"}\n{\"id\": \"a\", \"arguments\": {\"id\": 1, \"id\": 2}}"),
        yaml("id: a\nid: b"),
        yaml("arguments: {id: 1,\n  id: 2}"),
        yaml("arguments: {id: 1,\n  \"id\": 2}"),
        toml("id = 'a'\nid = 'b'"),
        toml("id = 'a'\narguments = { id = 1, id = 2 }"),
    ];
    for error in errors {
        let InputError::DuplicateKey { line: 2, key, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(key, "id");
    }
    let many: String = (0..1000).map(|at| format!("\"k{at}\": 1, ")).collect();
    let error = json(&format!("{{{many} \"k999\": 1}}"));
    assert!(matches!(&error, InputError::DuplicateKey { key, .. } if key == "k999"), "{error:?}");
}

#[test]
fn numbers_must_be_finite() {
    let texts = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"];
    for number in texts {
        for key in ["share", "arguments"] {
            let error = json(&format!("{{\"id\": \"a\",\n\"{key}\": {number}}}"));
            assert!(matches!(error, InputError::Syntax { line: 2, .. }), "{error:?}");
        }
    }
    for number in [".nan", ".NaN", ".inf", "-.inf", "1e999"] {
        for key in ["share", "arguments"] {
            let error = yaml(&format!("id: a\n{key}: {number}"));
            assert!(matches!(error, InputError::Syntax { line: 2, .. }), "{error:?}");
        }
    }
    for number in ["nan", "+nan", "inf", "-inf", "1e999"] {
        for key in ["share", "arguments"] {
            let error = toml(&format!("id = 'a'\n{key} = {number}"));
            assert!(matches!(error, InputError::Syntax { line: 2, .. }), "{error:?}");
        }
    }
    assert!(json("{\"share\": NaN}").to_string().contains("NaN and Infinity are not JSON"));
}

#[test]
fn a_hundred_thousand_levels_are_refused() {
    let nested =
        |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    let errors = [
        json(&nested("[", "]")),
        json(&nested("{\"a\":", "}")),
        json(&"[".repeat(100_000)),
        json_lines(&nested("[{\"a\":", "}]")),
        yaml(&nested("[", "]")),
        yaml(&nested("{a: ", "}")),
        yaml(&nested("- ", "")),
        yaml(&nested("? ", "")),
        yaml(&"[".repeat(100_000)),
        toml(&format!("a = {}", nested("[", "]"))),
        toml(&format!("a = {}", nested("{ a = ", " }"))),
        toml(&format!("{}a = 1", "a.".repeat(100_000))),
        toml(&format!("[{}a]", "a.".repeat(100_000))),
        toml(&format!("[[{}a]]", "a.".repeat(100_000))),
    ];
    for error in errors {
        assert!(matches!(error, InputError::TooDeep { line: 1, .. }), "{error}");
    }
    let stairs: String = (0..1000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(matches!(yaml(&stairs), InputError::TooDeep { line: 129, .. }));
}

#[test]
fn the_depth_limit_is_exact_and_can_be_set() {
    let value = |depth: usize, format, limit: usize| {
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = if format == Format::Toml { format!("a = {text}") } else { text };
        let limits = Limits { depth: limit, ..Limits::default() };
        parse_bytes::<Value>("deep", text.as_bytes(), format, &limits).map(|_| ())
    };
    for format in [Format::Json, Format::Yaml] {
        assert!(value(128, format, 128).is_ok());
        assert!(matches!(value(129, format, 128), Err(InputError::TooDeep { limit: 128, .. })));
        assert!(value(3, format, 3).is_ok());
        assert!(matches!(value(4, format, 3), Err(InputError::TooDeep { limit: 3, .. })));
        // The stack sets a limit of its own.
        assert!(value(256, format, 1_000_000).is_ok());
        assert!(matches!(value(257, format, 1_000_000), Err(InputError::TooDeep { .. })));
    }
    // The table itself is one level.
    assert!(value(79, Format::Toml, 80).is_ok());
    assert!(matches!(value(80, Format::Toml, 80), Err(InputError::TooDeep { .. })));
    assert!(value(2, Format::Toml, 3).is_ok());
    assert!(matches!(value(3, Format::Toml, 3), Err(InputError::TooDeep { limit: 3, .. })));
}

#[test]
fn yaml_aliases_may_repeat_values_up_to_a_limit() {
    let few = "a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: 2}\n";
    let value: Value = parse_yaml("a.yaml", few.as_bytes()).unwrap();
    assert_eq!(value, json!({"a": {"x": 1}, "b": [{"x": 1}, {"x": 1}], "c": {"x": 1, "y": 2}}));

    let thousand = format!("a: &a text\nb: [{}]", vec!["*a"; 1000].join(", "));
    assert!(parse_yaml::<Value>("a.yaml", thousand.as_bytes()).is_ok());

    let laughs = |levels: usize| {
        let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
        for level in 1..levels {
            let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        text
    };
    let error = parse_yaml::<Value>("a.yaml", laughs(20).as_bytes()).unwrap_err();
    assert!(matches!(error, InputError::Expands { .. }), "{error}");

    // Few events, but each of them large: what counts is what it would take in memory.
    let large = format!("a: &a {}\nb: [{}]", "x".repeat(100_000), vec!["*a"; 1000].join(", "));
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    let error =
        parse_bytes::<Value>("a.yaml", large.as_bytes(), Format::Yaml, &limits).unwrap_err();
    assert!(matches!(error, InputError::Expands { line: 2, .. }), "{error}");

    // Each line is shallow; together they are deep.
    let mut chain = String::from("a0: &a0 [1]\n");
    for level in 1..1000 {
        chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    let error = parse_yaml::<Value>("a.yaml", chain.as_bytes()).unwrap_err();
    assert!(matches!(error, InputError::TooDeep { .. }), "{error}");

    assert!(parse_yaml::<Value>("a.yaml", b"&a [*a]").is_err());
}

#[test]
fn only_true_and_false_are_yaml_booleans() {
    let value: Value = parse_yaml("a.yaml", b"[yes, no, on, off, y, True, true]").unwrap();
    let [yes, no, on, off, y, _, last] = value.as_array().unwrap().as_slice() else {
        panic!("{value}");
    };
    assert!([yes, no, on, off, y].iter().all(|value| value.is_string()), "{value}");
    assert_eq!(last, &json!(true));
    let error = yaml("id: a\nstrict: yes");
    assert!(matches!(error, InputError::Mismatch { line: 2, column: 9, .. }), "{error:?}");
}

#[test]
fn yaml_tags_and_second_documents_are_refused() {
    for text in ["id: a\nnext: !!python/object:os.system {}", "id: a\nkind: !exact x"] {
        let error = yaml(text);
        assert!(matches!(error, InputError::Syntax { line: 2, .. }), "{error:?}");
        assert!(error.to_string().contains("tag"), "{error}");
    }
    let error = yaml("id: a\n---\nid: b\n");
    assert!(error.to_string().contains("second YAML document"), "{error}");
}

#[test]
fn a_wrong_type_is_reported_with_place_and_expectation() {
    let errors = [
        json("{\"id\": \"a\",\n\"count\": \"x\"}"),
        json("{\"id\": \"a\",\n\"count\": -1}"),
        yaml("id: a\ncount: x"),
        yaml("id: a\ncount: -1"),
        toml("id = 'a'\ncount = 'x'"),
        toml("id = 'a'\ncount = -1"),
    ];
    for error in errors {
        assert!(matches!(error, InputError::Mismatch { line: 2, .. }), "{error:?}");
        assert!(error.to_string().contains("expected a non-negative integer"), "{error}");
    }
    for error in [json("{}"), yaml("count: 1"), toml("count = 1"), json_lines("{}")] {
        assert!(matches!(error, InputError::Mismatch { line: 1, .. }), "{error:?}");
        assert!(error.to_string().contains("missing key `id`"), "{error}");
    }
    for error in [json("7"), yaml("7"), yaml("- a")] {
        assert!(matches!(error, InputError::Mismatch { .. }), "{error:?}");
        assert!(error.to_string().contains("expected an object with keys"), "{error}");
    }
}

#[test]
fn broken_text_is_reported_with_line_and_column() {
    for text in
        ["", "  \n", "{", "{\"id\"", "[1,]", "{\"id\": \"a\"}}", "{'id': 1}", "nul", "\"\\q\""]
    {
        let error = json(text);
        assert!(matches!(error, InputError::Syntax { .. }), "{text}: {error:?}");
    }
    for text in ["", "# only a comment", "id: [", "id: *nobody", "id: \"", "a: b: c", "%YAML 9"] {
        let error = yaml(text);
        assert!(matches!(error, InputError::Syntax { .. }), "{text}: {error:?}");
    }
    for text in ["id", "id = ", "id = [", "= 1", "[a", "id = 'a' 'b'", "a = 012"] {
        let error = toml(text);
        assert!(matches!(error, InputError::Syntax { .. }), "{text}: {error:?}");
    }
    // Columns count characters, in every format: each error points at the x.
    for error in
        [json("{\"id\":\n  \"é漢\" x}"), yaml("id: a\n\"é漢é1\" x: 1"), toml("id = 'a'\n'é漢é1' x")]
    {
        assert!(matches!(error, InputError::Syntax { line: 2, column: 8, .. }), "{error:?}");
    }
    assert_eq!(
        json("{\"é漢\": 1,\n \"id\": x}").to_string(),
        "q.json:2:8: expected value",
        "the column of x"
    );
}

#[test]
fn a_toml_date_asks_for_quotes() {
    let error = toml("id = 'a'\narguments = { when = 2026-07-28T10:00:00Z }");
    assert_eq!(error.to_string(), "q.toml:2:22: put the date in quotes: \"2026-07-28T10:00:00Z\"");
}

#[test]
fn json_lines_are_a_list() {
    let text = "\u{feff}{\"id\": \"a\"}\r\n\n   \n{\"id\": \"b\"}";
    let queries: Vec<Query> = parse_json_lines("q.jsonl", text.as_bytes()).unwrap();
    assert_eq!(queries.iter().map(|query| query.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(parse_json_lines::<Vec<Query>>("q.jsonl", b"").unwrap(), []);

    let error = parse_json_lines::<Query>("q.jsonl", text.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("a JSON Lines file is a list"), "{error}");

    let error = json_lines("{\"id\": \"a\"}\n{\"id\": \"b\"");
    assert!(matches!(error, InputError::Syntax { line: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("is it cut off?"), "{error}");

    let limits = Limits { line_bytes: 12, ..Limits::default() };
    let error = parse_bytes::<Vec<Query>>("q.jsonl", text.as_bytes(), Format::JsonLines, &limits);
    assert!(error.is_ok(), "{error:?}");
    let limits = Limits { line_bytes: 9, ..Limits::default() };
    let error = parse_bytes::<Vec<Query>>("q.jsonl", text.as_bytes(), Format::JsonLines, &limits);
    assert!(matches!(error, Err(InputError::LineTooLong { line: 1, limit: 9, .. })), "{error:?}");
}

#[test]
fn keys_that_serde_json_reserves_are_refused() {
    let smuggled = r#"{"$serde_json::private::RawValue": "{\"a\": 1, \"a\": 2}"}"#;
    let error = parse_json::<Value>("a.json", smuggled.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("cannot be used"), "{error}");
    let error = parse_yaml::<Value>("a.yaml", smuggled.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("cannot be used"), "{error}");
}

#[test]
fn hostile_names_and_keys_are_escaped() {
    let key = format!("\\u001b[2J{}", "x".repeat(5000));
    let text = format!("{{\"{key}\": 1}}");
    let error = parse_json::<Query>("evil\u{1b}]0;\u{7}\n.json", text.as_bytes()).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with(r"evil\u{1b}]0;\u{7}\n.json:1: unknown key `\u{1b}[2Jxxx"));
    assert!(!message.chars().any(char::is_control), "{message}");
    assert!(message.len() < 1000, "{} bytes", message.len());
}

//! Whole matchers, as they are written in suites and traces.

use serde_json::{Value, json};

use super::*;

fn compiled(spec: Value) -> Result<Matcher, String> {
    serde_json::from_value::<MatcherSpec>(spec).unwrap().compile()
}

fn check(spec: Value, result: &Value) -> Result<(), String> {
    compiled(spec).unwrap().check(&Answer::new(result))
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[test]
fn each_condition_can_hold_and_can_fail() {
    let result = json!({
        "content": [{"type": "text", "text": "total 12.5"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}],
        "structuredContent": {"total": 12.5, "items": [{"id": 1}, {"id": 2}], "name": "Ada"},
    });
    for (holds, fails) in [
        (json!({"contains": "12.5"}), json!({"contains": ["12.5", "13"]})),
        (json!({"contains": "TOTAL", "ignore_case": true}), json!({"contains": "TOTAL"})),
        (json!({"lacks": "13"}), json!({"lacks": ["total"]})),
        (json!({"lacks": "Total"}), json!({"lacks": "Total", "ignore_case": true})),
        (json!({"matches": r"^total \d+\.\d$"}), json!({"matches": r"^\d+$"})),
        (json!({"regex": "^TOTAL", "ignore_case": true}), json!({"regex": "^TOTAL"})),
        (json!({"json": "$.total", "equals": 12.5}), json!({"json": "$.total", "equals": 12})),
        (
            json!({"json": "$.name", "equals": "ADA", "ignore_case": true}),
            json!({"json": "$.name", "equals": " Ada"}),
        ),
        (
            json!({"json": "$.name", "one_of": ["Bo", "Ada"]}),
            json!({"json": "$.name", "one_of": ["Bo"]}),
        ),
        (
            json!({"json": "$.total", "near": {"value": 12.4, "within": 0.1}}),
            json!({"json": "$.total", "near": {"value": 12.4, "within": 0.05}}),
        ),
        (
            json!({"json": "$.total", "number": 12, "within": 0.5}),
            json!({"json": "$.total", "number": 12}),
        ),
        (json!({"json": "$.total", "at_least": 12.5}), json!({"json": "$.total", "at_least": 13})),
        (json!({"json": "$.total", "at_most": 12.5}), json!({"json": "$.total", "at_most": 12})),
        (json!({"json": "$.items", "count": 2}), json!({"json": "$.items", "count": 3})),
        (
            json!({"json": "$.items[*].id", "equals": [1, 2]}),
            json!({"json": "$.items[*].id", "equals": [2, 1]}),
        ),
        (
            json!({"json": "$.items", "includes": {"id": 2.0}}),
            json!({"json": "$.items", "includes": 2}),
        ),
        (
            json!({"json": "$.items", "schema": {"items": {"required": ["id"]}}}),
            json!({"json": "$.items", "schema": {"items": {"required": ["x"]}}}),
        ),
        (json!({"path": "$.name", "exists": true}), json!({"path": "$.name", "exists": false})),
        (
            json!({"json": "$.nothing", "exists": false}),
            json!({"json": "$.nothing", "exists": true}),
        ),
        (json!({"block": 1, "type": "image"}), json!({"block": 0, "type": "image"})),
        (json!({"block": 0, "equals": "total 12.5"}), json!({"block": 2, "contains": "total"})),
        (
            json!({"result": "$.content[1].mimeType", "equals": "image/png"}),
            json!({"result": "$.isError", "equals": true}),
        ),
        (
            json!({"json": "$.total", "any_of": [{"equals": 1}, {"at_least": 12}]}),
            json!({"json": "$.total", "any_of": [{"equals": 1}, {"at_least": 13}]}),
        ),
        (json!({"not": {"contains": ["total", "13"]}}), json!({"not": {"contains": "total"}})),
        (
            json!({"json": "$.name", "not": {"one_of": ["Bo"]}}),
            json!({"json": "$.name", "not": {"any_of": [{"equals": 1}, {"matches": "d"}]}}),
        ),
    ] {
        assert_eq!(check(holds.clone(), &result), Ok(()), "{holds}");
        assert!(check(fails.clone(), &result).is_err(), "{fails}");
    }
}

#[test]
fn a_failure_shows_what_was_found_and_what_was_expected() {
    let result = json!({
        "content": [{"type": "text", "text": "hello"}],
        "structuredContent": {"n": 26, "list": [1, 2]},
    });
    for (spec, expected) in [
        (
            json!({"contains": ["hello", "bye"]}),
            r#"the text is "hello", expected text containing "bye""#,
        ),
        (json!({"lacks": ["x", "ell"]}), r#"the text is "hello", expected text without "ell""#),
        (json!({"matches": "^b"}), r#"the text is "hello", expected text matching ^b"#),
        (json!({"json": "$.n", "equals": 5}), "$.n is 26, expected 5"),
        (json!({"json": "$.n", "one_of": [5, "x"]}), r#"$.n is 26, expected one of 5, "x""#),
        (
            json!({"json": "$.n", "near": {"value": 26.219, "within": 0.001}}),
            "$.n is 26, expected a number within 0.001 of 26.219",
        ),
        (json!({"json": "$.n", "number": 7}), "$.n is 26, expected the number 7"),
        (json!({"at_least": 5}), r#"the text is "hello", expected a number of at least 5"#),
        (json!({"json": "$.list", "count": 3}), "$.list has 2 entries, expected 3"),
        (json!({"json": "$.n", "count": 3}), "$.n is 26, expected 3 entries"),
        (json!({"json": "$.n", "exists": false}), "$.n is 26, expected nothing"),
        (json!({"json": "$.m", "equals": 1}), "no value at $.m"),
        (json!({"block": 3, "contains": "x"}), "no content block 3"),
        (json!({"block": 0, "type": "image"}), r#"$.content[0].type is "text", expected "image""#),
        (json!({"json": "$.n", "not": {"equals": 26}}), "$.n is 26, expected anything but 26"),
        (
            json!({"json": "$.n", "any_of": [{"equals": 1}, {"at_most": 2}]}),
            "$.n is 26, expected 1, or a number of at most 2",
        ),
        (
            json!({"json": "$.n", "schema": {"type": "string"}}),
            r#"$.n does not fit the schema at the top: this number is not of type "string""#,
        ),
    ] {
        assert_eq!(check(spec.clone(), &result), Err(expected.to_owned()), "{spec}");
    }
    let shown = compiled(json!({"json": "$.n", "at_least": 3})).unwrap().to_string();
    assert_eq!(shown, "$.n: a number of at least 3");
}

#[test]
fn json_in_the_text_is_the_data_where_there_is_no_structured_content() {
    let result = text(r#"{"id": 7}"#);
    assert_eq!(check(json!({"json": "id", "equals": 7.0}), &result), Ok(()));
    let why = check(json!({"json": "id", "equals": 7}), &text("seven")).unwrap_err();
    assert!(why.contains("has no data"), "{why}");
}

#[test]
fn the_text_of_an_answer_is_that_of_its_blocks() {
    let joined = |texts: &[&str]| {
        let blocks: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
        Answer::new(&json!({"content": blocks})).text().to_owned()
    };
    assert_eq!(joined(&["a", "b"]), "a\nb");
    assert_eq!(joined(&["", "a", ""]), "a\n");
    assert_eq!(joined(&[]), "");
}

#[test]
fn a_path_that_leads_nowhere_never_passes() {
    for condition in [
        json!({"equals": null}),
        json!({"lacks": "x"}),
        json!({"count": 0}),
        json!({"at_most": 3}),
        json!({"not": {"equals": 3}}),
    ] {
        let mut spec = condition;
        spec["json"] = json!("$.missing");
        assert!(check(spec.clone(), &text("{}")).is_err(), "{spec}");
    }
}

#[test]
fn large_integers_are_not_equal_to_their_neighbours() {
    let result = text(r#"{"id": 9007199254740993, "beyond": 18446744073709551616}"#);
    let check = |spec: Value| check(spec, &result);
    assert_eq!(check(json!({"json": "id", "equals": 9_007_199_254_740_993_u64})), Ok(()));
    assert!(check(json!({"json": "id", "equals": 9_007_199_254_740_992_u64})).is_err());
    assert!(check(json!({"json": "id", "equals": 9_007_199_254_740_992.0})).is_err());
    assert!(check(json!({"json": "id", "number": 9_007_199_254_740_992_u64})).is_err());
    assert!(check(json!({"json": "beyond", "equals": u64::MAX})).is_err());
}

#[test]
fn a_path_to_several_places_is_about_the_list_even_if_it_has_one_entry() {
    let one =
        json!({"content": [], "structuredContent": {"items": [{"name": "abc"}], "rows": [[1, 2]]}});
    for (holds, fails) in [
        (json!({"count": 1}), json!({"count": 3})),
        (json!({"equals": ["abc"]}), json!({"equals": "abc"})),
        (json!({"schema": {"type": "array"}}), json!({"schema": {"type": "string"}})),
    ] {
        let at = |mut spec: Value| {
            spec["json"] = json!("$.items[*].name");
            check(spec, &one)
        };
        assert_eq!(at(holds.clone()), Ok(()), "{holds}");
        assert!(at(fails.clone()).is_err(), "{fails}");
    }
    assert_eq!(check(json!({"json": "$.rows[*]", "equals": [[1, 2]]}), &one), Ok(()));
    assert!(check(json!({"json": "$.rows[*]", "equals": [1, 2]}), &one).is_err());
}

#[test]
fn a_text_without_a_finite_number_is_not_a_number() {
    for word in ["infinity", "-inf", "nan", "1e999"] {
        for spec in [json!({"at_least": 5}), json!({"at_most": 5})] {
            let why = check(spec, &text(word)).unwrap_err();
            assert!(why.contains("expected a number"), "{word}: {why}");
        }
    }
    assert_eq!(check(json!({"at_least": 5}), &text(" 5.0 ")), Ok(()));
}

#[test]
fn the_answer_of_an_agent_is_read_as_prose() {
    let holds =
        |spec: Value, answer: &str| compiled(spec).unwrap().check(&Answer::prose(answer)).is_ok();
    assert!(holds(json!({"contains": ["a", "b"]}), "b a"));
    assert!(holds(json!({"equals": "x y"}), " x y\n"));
    assert!(holds(json!({"equals": "X y ", "ignore_case": true}), " x y\n"));
    assert!(!holds(json!({"lacks": "sorry"}), "so sorry"));
    assert!(holds(json!({"regex": r"^\d+$"}), "12"));
    assert!(!holds(json!({"regex": r"^\d+$"}), "12 "));
    assert!(!holds(json!({"number": 5}), "5.01"));
    assert!(holds(json!({"number": 5, "within": 0.01}), "5.01"));
    assert!(holds(json!({"number": 0.3, "within": 0.1}), "0.4"));
    assert!(holds(json!({"any_of": [{"equals": "x"}, {"number": 7}]}), "it is 7"));
    assert!(!holds(json!({"number": 5}), "I counted 1e999 things"));
    assert!(!holds(json!({"number": 4_111_111_111_111_111_u64}), "Paid to 4111111111111114."));
    assert!(holds(json!({"number": 9_007_199_254_740_993_u64}), "9007199254740993"));
    assert!(!holds(json!({"number": 9_007_199_254_740_992_u64}), "9007199254740993"));
    assert!(!holds(json!({"number": 5}), "It is \u{2212}5 degrees"));
    assert!(holds(json!({"number": -5}), "balance: -$5"));
    assert!(!holds(json!({"result": "$.content", "exists": true}), "x"));
    let digits = "123456789012345678901234567890";
    let exact = MatcherSpec { number: Number::parse(digits), ..MatcherSpec::default() };
    let exact = exact.compile().unwrap();
    assert_eq!(exact.check(&Answer::prose(&format!("It is {digits}."))), Ok(()));
    assert!(exact.check(&Answer::prose("It is 123456789012345678901234567891.")).is_err());
}

#[test]
fn an_end_state_is_typed_data() {
    let state = json!({
        "notes": [{"text": "umbrella", "n": 1}, {"text": "hat", "n": 2}],
        "open": true, "number": "5", "account": 4_111_111_111_111_114_i64, "list": [null, "umbrella"],
    });
    let holds = |spec: Value| compiled(spec).unwrap().check(&Answer::state(&state)).is_ok();
    assert!(holds(json!({"path": "$.notes[0].text", "equals": "umbrella"})));
    assert!(holds(json!({"path": "$.notes[*].n", "equals": 2.0})));
    assert!(!holds(json!({"path": "$.notes[*].n", "equals": 3})));
    assert!(holds(json!({"path": "notes", "count": 2})));
    assert!(!holds(json!({"path": "number", "count": 1})));
    assert!(holds(json!({"path": "notes[0].text", "includes": "umb"})));
    assert!(holds(json!({"path": "list", "includes": null})));
    assert!(!holds(json!({"path": "list", "includes": "umb"})));
    assert!(holds(json!({"path": "closed", "exists": false})));
    assert!(!holds(json!({"path": "notes[*].n", "exists": false})));
    assert!(!holds(json!({"path": "open", "equals": 1})));
    assert!(!holds(json!({"path": "closed", "equals": null})));
    assert!(!holds(json!({"path": "number", "number": 5})));
    assert!(!holds(json!({"path": "account", "number": 4_111_111_111_111_111_i64})));
    assert!(holds(json!({"path": "account", "number": 4_111_111_111_111_111_i64, "within": 3})));
    assert!(!holds(json!({"contains": "umbrella"})));
}

#[test]
fn a_matcher_that_cannot_fail_or_has_no_meaning_is_refused() {
    for spec in [
        json!({}),
        json!({"json": "$.a"}),
        json!({"contains": ""}),
        json!({"contains": []}),
        json!({"lacks": ""}),
        json!({"lacks": []}),
        json!({"matches": ""}),
        json!({"matches": ".*"}),
        json!({"exists": true}),
        json!({"exists": false}),
        json!({"result": "$", "exists": true}),
        json!({"schema": true}),
        json!({"json": "$.a", "schema": {}}),
        json!({"schema": {"title": "Anything"}}),
        json!({"one_of": []}),
        json!({"equals": 5}),
        json!({"equals": null}),
        json!({"one_of": [5, true]}),
        json!({"includes": 5}),
        json!({"not": {"equals": {"a": 1}}}),
        json!({"any_of": [{"contains": "x"}, {"equals": []}]}),
        json!({"any_of": []}),
        json!({"any_of": [{"contains": ""}]}),
        json!({"any_of": [{"json": "$.a", "equals": 1}]}),
        json!({"json": "$.a", "any_of": [{"exists": true}]}),
        json!({"json": "$.a", "not": {"exists": true}}),
        json!({"json": "$.a", "not": {"snapshot": true}}),
        json!({"json": "$.a", "not": {"schema": {}}}),
        json!({"json": "$.a", "equals": 123_456_789_012_345_678_901_234_567_890_f64}),
        json!({"json": "$.a", "one_of": [1, [{"x": -1e30}]]}),
        json!({"number": 1e30}),
        json!({"equals": 1, "contains": "x"}),
        json!({"equals": 1, "ignore_case": true}),
        json!({"number": 1, "ignore_case": true}),
        json!({"contains": "x", "within": 1}),
        json!({"json": "$.a", "block": 0, "equals": 1}),
        json!({"type": "image"}),
        json!({"block": 0, "type": "image", "equals": "image"}),
        json!({"block": 0, "type": "image", "contains": "x"}),
        json!({"matches": "("}),
        json!({"matches": "(a{1000}){1000}"}),
        json!({"schema": {"type": "nonsense"}}),
        json!({"near": {"value": 1.0, "within": -1.0}}),
        json!({"number": 1, "within": -1.0}),
    ] {
        assert!(compiled(spec.clone()).is_err(), "{spec}");
    }
    let deep = (0..20).fold(json!({"equals": 1}), |inner, _| json!({"any_of": [inner]}));
    assert!(compiled(deep).unwrap_err().contains("nested more than 16 deep"));
    for unreadable in [r#"{"number": 1e999}"#, r#"{"contain": "x"}"#, r#"{"contains": 1}"#] {
        assert!(serde_json::from_str::<MatcherSpec>(unreadable).is_err(), "{unreadable}");
    }
}

#[test]
fn messages_show_hostile_text_harmlessly() {
    let why = check(json!({"contains": "x"}), &text("\u{1b}[31m\u{202e}")).unwrap_err();
    assert!(!why.contains('\u{1b}') && !why.contains('\u{202e}'), "{why:?}");
}

//! Verdicts, warnings and limits of the schema engine. The comparison with other engines is in
//! `tests/json_schema_engines.rs`.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn compiled(schema: &Value) -> Compiled {
    Compiled::new(schema).unwrap()
}

fn check(schema: &Value, value: &Value) -> Compliance {
    compiled(schema).check(value)
}

/// Definitions `d0`, `d1`, … of which each holds what `link` makes of a reference to the next.
fn chain(length: usize, link: impl Fn(Value) -> Value, last: Value) -> Value {
    let mut definitions = Map::new();
    for at in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), link(next));
    }
    definitions.insert(format!("d{length}"), last);
    json!({"$defs": definitions, "$ref": "#/$defs/d0"})
}

fn nested(levels: usize, wrap: impl Fn(Value) -> Value, inner: Value) -> Value {
    (0..levels).fold(inner, |value, _| wrap(value))
}

#[test]
fn a_violation_says_where_and_what_without_quoting_the_value() {
    let schema = json!({
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["query"],
        "additionalProperties": false
    });
    let result = check(&schema, &json!({"tags": ["a", 1234567], "evil\u{1b}[2J": "secret"}));
    assert!(!result.valid && !result.valid_with_formats);
    let keywords: Vec<_> = result.errors.iter().map(|error| error.keyword.as_str()).collect();
    assert_eq!(keywords, ["type", "additionalProperties", "required"]);
    let Some(wrong_type) = result.errors.first() else { panic!() };
    assert_eq!(wrong_type.instance_path, "/tags/1");
    assert_eq!(wrong_type.schema_path, "/properties/tags/items/type");
    assert_eq!(wrong_type.message, "this number is not of type \"string\"");
    for error in &result.errors {
        assert!(!error.message.chars().any(char::is_control), "{error:?}");
        assert!(!error.message.contains("1234567") && !error.message.contains("secret"));
    }
    assert_eq!(result.not_checked(), None);
}

#[test]
fn formats_warn_and_do_not_decide() {
    let schema = json!({
        "properties": {
            "mail": {"type": "string", "format": "email"},
            "either": {"anyOf": [{"format": "date"}, {"format": "ipv4"}]}
        }
    });
    let result = check(&schema, &json!({"mail": "nobody", "either": "nothing"}));
    assert!(result.valid && !result.valid_with_formats);
    assert_eq!(result.errors, []);
    let warned: Vec<_> = result
        .format_warnings
        .iter()
        .map(|w| (w.instance_path.as_str(), w.keyword.as_str()))
        .collect();
    assert_eq!(warned, [("/mail", "format"), ("/either", "anyOf")]);

    let result = check(&schema, &json!({"mail": 1}));
    assert!(!result.valid);
    assert_eq!((result.errors.len(), result.format_warnings.len()), (1, 0));

    // Negated, a format can only lift a violation.
    let result = check(&json!({"not": {"format": "email"}}), &json!("nobody"));
    assert!(!result.valid && result.valid_with_formats);
    assert_eq!(result.format_warnings, []);
}

#[test]
fn dialects_are_honoured_and_unknown_ones_refused() {
    let list_form = json!({"items": [{"type": "integer"}]});
    assert!(matches!(Compiled::new(&list_form), Err(SchemaError::Invalid { .. })));
    let mut draft7 = list_form.clone();
    draft7["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    assert!(!check(&draft7, &json!(["a"])).valid);
    for unknown in ["https://example.com/nope", "http://json-schema.org/draft-99/schema#", "x"] {
        let error = Compiled::new(&json!({"$schema": unknown})).unwrap_err();
        assert!(matches!(error, SchemaError::UnsupportedDialect { .. }), "{unknown}: {error}");
    }
}

#[test]
fn nothing_outside_the_schema_is_read() {
    let file = concat!("file://", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for outside in ["http://127.0.0.1:9/x.json", file, "other.json", "../x.json#/a", "urn:x:y"] {
        for schema in [
            json!({"$ref": outside}),
            json!({"properties": {"never": {"$ref": outside}}}),
            json!({"$id": "http://example.com/root", "$dynamicRef": outside}),
        ] {
            let error = Compiled::new(&schema).unwrap_err();
            assert!(matches!(error, SchemaError::ExternalReference { .. }), "{schema}: {error}");
        }
    }
    let error = Compiled::new(&json!({"$ref": "#/$defs/none"})).unwrap_err();
    assert!(matches!(error, SchemaError::BadReference { .. }), "{error}");
    // The published meta-schemas are built in.
    let meta = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    assert!(check(&meta, &json!({"type": "object"})).valid);
    assert!(!check(&meta, &json!({"type": "objekt"})).valid);
}

#[test]
fn invalid_schemas_are_refused() {
    for value in [json!(null), json!(1), json!("object"), json!([])] {
        assert_eq!(Compiled::new(&value).unwrap_err(), SchemaError::NotASchema);
    }
    let error = Compiled::new(&json!({"properties": {"a": {"type": "str"}}})).unwrap_err();
    assert!(
        matches!(&error, SchemaError::Invalid { at, .. } if at == "/properties/a/type"),
        "{error}"
    );
    let error = Compiled::new(&json!({"pattern": "("})).unwrap_err();
    assert!(matches!(error, SchemaError::Invalid { .. }), "{error}");
    assert!(check(&json!(true), &json!(1)).valid);
    assert!(!check(&json!(false), &json!(1)).valid);
}

#[test]
fn schemas_beyond_the_limits_are_refused() {
    let not = |inner| Value::Object(Map::from_iter([("not".to_owned(), inner)]));
    let deep = |levels| nested(levels, not, json!({}));
    assert!(Compiled::new(&deep(127)).is_ok());
    assert_eq!(Compiled::new(&deep(128)).unwrap_err(), SchemaError::TooDeep { limit: 128 });
    assert_eq!(Compiled::new(&deep(5_000)).unwrap_err(), SchemaError::TooDeep { limit: 128 });
    let wide = json!({"enum": vec![0; SCHEMA_SIZE]});
    assert_eq!(Compiled::new(&wide).unwrap_err(), SchemaError::TooLarge { limit: SCHEMA_SIZE });
}

#[test]
fn patterns_that_would_fill_memory_are_refused() {
    let patterns = |count: usize, pattern: &str| {
        let one = |at| json!({"pattern": format!("{pattern}{at}")});
        Compiled::new(&json!({"anyOf": (0..count).map(one).collect::<Vec<_>>()})).map(drop)
    };
    let name = r"^[\p{L}\p{N}_.-]{1,128}$";
    assert_eq!(patterns(3, name), Ok(()));
    assert_eq!(patterns(100, name), Err(SchemaError::PatternsTooLarge));
    assert_eq!(patterns(500, "^[a-z]+$"), Ok(()));
    assert_eq!(patterns(5_000, "^[a-z]+$"), Err(SchemaError::PatternsTooLarge));
    assert_eq!(patterns(1, "((a{1,1000}){1000}){2,}{9"), Err(SchemaError::PatternsTooLarge));
    let keys = json!({"patternProperties": {"((a{1,1000}){1,1000}){1,1000}": {}}});
    assert_eq!(Compiled::new(&keys).unwrap_err(), SchemaError::PatternsTooLarge);
    // Within the bound, the regex engine has limits of its own.
    let backtracking = json!({"pattern": "^(a+)+(?=b)$"});
    assert!(!check(&backtracking, &json!("a".repeat(5_000))).valid);
    assert!(check(&json!({"pattern": name}), &json!("näme")).valid);
}

#[test]
fn references_that_lead_in_a_circle_are_refused() {
    let circles = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"if": {"$ref": "#"}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        json!({"$id": "http://x/a", "anyOf": [{"$ref": "a"}, {"type": "string"}]}),
        json!({"$anchor": "me", "oneOf": [{"$ref": "#me"}]}),
        json!({"$dynamicAnchor": "me", "allOf": [{"$dynamicRef": "#me"}]}),
        json!({"properties": {"a": {"$defs": {"%": {"$ref": "#/properties/a"}}, "$ref": "#/properties/a/$defs/%25"}}}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "allOf": [{"$recursiveRef": "#"}]}),
    ];
    for schema in circles {
        let error = Compiled::new(&schema).unwrap_err();
        assert!(matches!(error, SchemaError::Circular { .. }), "{schema}: {error}");
    }
    // Going down into the value ends every circle, and what is not reached does not matter.
    let fine = [
        json!({"properties": {"a": {"$ref": "#"}}}),
        json!({"items": {"anyOf": [{"$ref": "#"}, {"type": "string"}]}}),
        json!({"const": {"allOf": [{"$ref": "#/const"}]}}),
        json!({"$id": "http://x/root", "$defs": {
            "y": {"$ref": "x"},
            "x": {"$id": "x", "allOf": [{"$ref": "#/$defs/y"}], "$defs": {"y": {"type": "object"}}}
        }, "$ref": "#/$defs/y"}),
        json!({"$id": "http://x/strict", "$dynamicAnchor": "node", "$ref": "tree",
            "unevaluatedProperties": false, "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node",
            "properties": {"children": {"items": {"$dynamicRef": "#node"}}}}}}),
    ];
    for schema in fine {
        let _ = compiled(&schema).check(&json!({"a": {"a": 1}, "children": [{"children": []}]}));
    }
}

#[test]
fn a_small_schema_that_would_take_forever_is_refused() {
    let twice = |word: &'static str| move |next: Value| json!({word: [next, next]});
    let forever = [
        chain(60, twice("allOf"), json!({"type": "string"})),
        chain(60, twice("anyOf"), json!({"type": "string"})),
        chain(60, twice("oneOf"), json!({"type": "string"})),
        nested(60, |inner| json!({"allOf": [inner], "unevaluatedProperties": false}), json!({})),
        nested(60, |inner| json!({"if": inner, "unevaluatedItems": false}), json!({})),
    ];
    for schema in forever {
        let result = check(&schema, &json!(1));
        assert!(!result.valid && result.not_checked().is_some(), "{result:?}");
    }
    // Here the value does its part.
    let branch = |name: &str| json!({"properties": {"a": {"$ref": "#"}}, "required": [name]});
    let recursive = json!({"anyOf": [branch("x"), branch("y")]});
    let value = |levels| nested(levels, |inner| json!({"a": inner}), json!(1));
    assert_eq!(check(&recursive, &value(5)).not_checked(), None);
    assert!(check(&recursive, &value(60)).not_checked().is_some());
    // And here a meta-schema calls back.
    let meta = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    let returning = json!({"$id": "http://x/y", "$dynamicAnchor": "meta", "allOf": [meta, meta]});
    let value = nested(50, |inner| json!({"not": inner}), json!(true));
    assert!(check(&returning, &value).not_checked().is_some());
    // Wide on both sides, without any reference.
    let wide =
        json!({"items": {"anyOf": (0..20_000).map(|at| json!({"const": at})).collect::<Vec<_>>()}});
    let value = Value::from(vec![-1; 20_000]);
    assert!(check(&wide, &value).not_checked().is_some());
}

#[test]
fn ordinary_large_values_are_checked() {
    let row = json!({"type": "object", "properties": {
        "id": {"type": "integer"}, "name": {"$ref": "#/$defs/text"},
        "next": {"anyOf": [{"$ref": "#/$defs/row"}, {"type": "null"}]}
    }, "required": ["id"], "unevaluatedProperties": false});
    let schema = json!({"type": "array", "items": {"$ref": "#/$defs/row"},
                        "$defs": {"row": row, "text": {"type": "string"}}});
    let row = |id| json!({"id": id, "name": "x", "next": {"id": 0, "next": null}});
    let rows: Vec<Value> = (0..20_000).map(row).collect();
    let result = check(&schema, &Value::from(rows));
    assert!(result.valid, "{:?}", result.errors);
    // Recursion as deep as a value may be.
    let deep = nested(62, |inner| json!({"id": 1, "next": inner}), json!(null));
    assert!(check(&schema, &json!([deep])).valid);
}

#[test]
fn many_violations_are_counted_not_all_described() {
    let result = check(&json!({"items": {"type": "string"}}), &Value::from(vec![1; 12_345]));
    assert_eq!((result.errors.len(), result.more_errors), (100, 12_245));
}

#[test]
fn long_chains_of_references_fit_the_stack() {
    let text = json!({"type": "string"});
    let long = |length| chain(length, |next| next, text.clone());
    let allowed = compiled(&long(390));
    assert!(allowed.check(&json!("a")).valid);
    assert_eq!(allowed.check(&json!(1)).errors.len(), 1);
    let branches = compiled(&chain(190, |next| json!({"anyOf": [next]}), text.clone()));
    assert_eq!(branches.check(&json!(1)).errors.len(), 1);
    assert!(check(&long(2_000), &json!("a")).not_checked().is_some());
    let value = nested(5_000, |inner| Value::Array(vec![inner]), json!(1));
    assert!(check(&json!({}), &value).not_checked().is_some());
}

#[test]
fn a_compiled_schema_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&compiled(&json!({})));
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "type",
        "properties",
        "items",
        "$ref",
        "$id",
        "$defs",
        "allOf",
        "anyOf",
        "not",
        "if",
        "then",
        "required",
        "enum",
        "const",
        "pattern",
        "format",
        "unevaluatedProperties",
        "$dynamicRef",
        "$dynamicAnchor",
        "$anchor",
        "$schema",
        "dependentSchemas",
        "prefixItems",
        "contains",
        "a",
    ];
    let texts = [
        "#",
        "#/$defs/a",
        "a",
        "string",
        "object",
        "email",
        "^a+$",
        "(",
        "http://x/y",
        "#a",
        "%41",
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        let key = prop::sample::select(words.to_vec());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|entries| {
                Value::Object(
                    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
                )
            }),
        ]
    })
}

/// A valid schema of the given definitions, in which every second thing is a reference.
fn any_schema() -> impl Strategy<Value = Value> {
    let reference = (0..4).prop_map(|at| json!({"$ref": format!("#/$defs/d{at}")}));
    let leaf = prop_oneof![
        reference,
        prop::sample::select(vec!["string", "object", "array", "integer"])
            .prop_map(|kind| json!({"type": kind})),
        any::<bool>().prop_map(Value::from),
        Just(json!({"required": ["a"]})),
        Just(json!({"format": "email"})),
    ];
    let part = leaf.prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let lists = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
        let words = vec![
            "not",
            "if",
            "items",
            "contains",
            "additionalProperties",
            "unevaluatedProperties",
            "unevaluatedItems",
            "propertyNames",
        ];
        prop_oneof![
            (lists, list).prop_map(|(word, list)| json!({word: list})),
            (prop::sample::select(words), inner.clone(), inner.clone())
                .prop_map(|(word, one, other)| json!({word: one, "allOf": [other]})),
            (inner.clone(), inner).prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}})),
        ]
    });
    prop::collection::vec(part, 4).prop_map(|parts| {
        let named = parts.into_iter().enumerate().map(|(at, part)| (format!("d{at}"), part));
        json!({"$defs": Map::from_iter(named), "$ref": "#/$defs/d0"})
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!("x")), Just(json!(1)), Just(json!("a@example.com"))];
    leaf.prop_recursive(20, 60, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"a": a, "b": b})),
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

proptest! {
    #[test]
    fn valid_schemas_full_of_references_end_with_a_verdict(
        schema in any_schema(),
        value in any_value(),
    ) {
        match Compiled::new(&schema) {
            Ok(compiled) => {
                let result = compiled.check(&value);
                prop_assert_eq!(result.valid, result.errors.is_empty());
                prop_assert_eq!(compiled.check(&value), result);
            }
            Err(error) => prop_assert!(matches!(error, SchemaError::Circular { .. }), "{error}"),
        }
    }

    #[test]
    fn arbitrary_schemas_never_panic_and_keep_their_word(schema in any_json(), value in any_json()) {
        if let Ok(compiled) = Compiled::new(&schema) {
            let result = compiled.check(&value);
            prop_assert_eq!(result.valid, result.errors.is_empty());
            prop_assert!(result.valid_with_formats || !result.errors.is_empty() || !result.format_warnings.is_empty());
            prop_assert_eq!(compiled.check(&value), result);
        }
    }
}

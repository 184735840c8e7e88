//! The rules of the match, one by one.

use super::super::json;
use super::*;

/// Checks calls `{"f": {…}}` of one function whose parameter `p` has the given type.
fn checked(property: &str, answers: &str, called: &str) -> Result<(), Mismatch> {
    let description = format!(
        r#"{{"name":"f","parameters":{{"properties":{{"p":{property},"q":{property}}},"required":["p"]}}}}"#
    );
    let function = Function::from_json(&json::parse(&description).unwrap()).unwrap();
    let list = |text| match json::parse(text).unwrap() {
        Value::List(items) => items,
        other => panic!("{other} is not a list"),
    };
    let answers: Vec<Answer<'_>> =
        list(answers).iter().map(|answer| Answer::from_json(answer).unwrap()).collect();
    let call = |value: Value<'static>| match value {
        Value::Object(call) => {
            let (name, arguments) = call.entry(0);
            let Value::Object(arguments) = arguments else { panic!("arguments") };
            Call::new(name.to_owned(), arguments.clone())
        }
        other => panic!("{other} is not a call"),
    };
    let called: Vec<Call<'_>> =
        list(called).into_iter().map(|value| call(value.into_owned())).collect();
    check(&[function], &answers, &called)
}

#[track_caller]
fn accepts(property: &str, values: &str, given: &str, expected: bool) {
    let answers = format!(r#"[{{"f":{{"p":{values}}}}}]"#);
    let called = format!(r#"[{{"f":{{"p":{given}}}}}]"#);
    let result = checked(property, &answers, &called);
    assert_eq!(result.is_ok(), expected, "{given} for {values}: {result:?}");
}

#[test]
fn strings_are_compared_without_case_spaces_and_punctuation() {
    let string = r#"{"type":"string"}"#;
    accepts(string, r#"["April 1, 2024"]"#, r#""april 1 2024""#, true);
    accepts(string, r#"["it's"]"#, r#""IT\"S""#, true);
    accepts(string, r#"["a"]"#, r#""b""#, false);
    accepts(string, r#"["1"]"#, "1", false);
}

#[test]
fn a_whole_number_is_accepted_for_a_float_and_not_the_reverse() {
    accepts(r#"{"type":"float"}"#, "[5.0]", "5", true);
    accepts(r#"{"type":"integer"}"#, "[5]", "5.0", false);
    accepts(r#"{"type":"integer"}"#, "[1]", "true", false);
    accepts(r#"{"type":"boolean"}"#, "[true]", "true", true);
}

#[test]
fn an_empty_string_among_the_values_makes_a_parameter_optional() {
    let integer = r#"{"type":"integer"}"#;
    let called = r#"[{"f":{"p":1}}]"#;
    assert!(checked(integer, r#"[{"f":{"p":[1],"q":[2,""]}}]"#, called).is_ok());
    assert_eq!(
        checked(integer, r#"[{"f":{"p":[1],"q":[2]}}]"#, called),
        Err(Mismatch::NoCallFits { answer: 0, reason: CallMismatch::Missing("q".into()) })
    );
}

#[test]
fn lists_and_dicts_are_compared_element_by_element() {
    let strings = r#"{"type":"array","items":{"type":"string"}}"#;
    accepts(strings, r#"[["A b","c"]]"#, r#"["ab","C"]"#, true);
    accepts(strings, r#"[["a","b"]]"#, r#"["b","a"]"#, false);
    accepts(strings, r#"[["a"]]"#, "[1]", false);
    let dict = r#"{"type":"dict"}"#;
    accepts(dict, r#"[{"k":[1,2],"o":["x",""]}]"#, r#"{"k":2}"#, true);
    accepts(dict, r#"[{"k":[1,2],"o":["x",""]}]"#, r#"{"k":2,"o":"X"}"#, true);
    accepts(dict, r#"[{"k":[1,2]}]"#, r#"{"k":3}"#, false);
    accepts(dict, r#"[{"k":[1,2]}]"#, r#"{"k":1,"z":1}"#, false);
    let dicts = r#"{"type":"array","items":{"type":"dict"}}"#;
    accepts(dicts, r#"[[{"k":[1]},{"k":[2]}]]"#, r#"[{"k":1},{"k":2}]"#, true);
    accepts(dicts, r#"[[{"k":[1]},{"k":[2]}]]"#, r#"[{"k":2},{"k":1}]"#, false);
}

#[test]
fn the_assignment_is_greedy() {
    let string = r#"{"type":"string"}"#;
    let answers = r#"[{"f":{"p":["a","b"]}},{"f":{"p":["a"]}}]"#;
    assert!(checked(string, answers, r#"[{"f":{"p":"b"}},{"f":{"p":"a"}}]"#).is_ok());
    assert!(checked(string, answers, r#"[{"f":{"p":"a"}},{"f":{"p":"b"}}]"#).is_err());
}

#[test]
fn the_number_of_calls_must_be_right() {
    let string = r#"{"type":"string"}"#;
    let answers = r#"[{"f":{"p":["a"]}}]"#;
    assert_eq!(checked(string, answers, "[]"), Err(Mismatch::WrongCount));
    assert_eq!(checked(string, "[]", "[]"), Ok(()));
}

#[test]
fn a_function_without_description_is_reported() {
    let answer = json::parse(r#"{"g":{}}"#).unwrap();
    let called = [Call::new("g", Object::new())];
    assert_eq!(
        check(&[], &[Answer::from_json(&answer).unwrap()], &called),
        Err(Mismatch::UnknownFunction("g".into()))
    );
}

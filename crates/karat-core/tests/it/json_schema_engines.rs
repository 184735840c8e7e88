//! The schema engine judges every recorded case as the recorded engine did.

use std::path::Path;

use karat_core::schema::Compiled;
use karat_io::input::{Limits, load};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    schema: Value,
    instance: Value,
    verdicts: serde_json::Map<String, Value>,
}

/// The verdicts of our engine in the words of the file: without and with formats asserted.
fn verdicts(case: &Case) -> (&'static str, &'static str) {
    let word = |valid| if valid { "valid" } else { "invalid" };
    match Compiled::new(&case.schema) {
        Err(_) => ("error", "error"),
        Ok(compiled) => {
            let result = compiled.check(&case.instance);
            assert_eq!(result.not_checked(), None, "{}", case.id);
            (word(result.valid), word(result.valid_with_formats))
        }
    }
}

#[test]
fn every_recorded_verdict_is_reproduced() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../karat-metrics/tests/vectors/json_schema_engines.json");
    let vectors: Vectors = load(&path, &Limits::default()).unwrap();
    let recorded = |case: &Case, name: &str| {
        case.verdicts.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    let different: Vec<String> = vectors
        .cases
        .iter()
        .filter_map(|case| {
            let expected = (
                recorded(case, "rust_jsonschema_0.60.2 formats off")?,
                recorded(case, "rust_jsonschema_0.60.2 formats on")?,
            );
            let found = verdicts(case);
            let same = (expected.0.as_str(), expected.1.as_str()) == found;
            (!same).then(|| format!("{}: expected {expected:?}, found {found:?}", case.id))
        })
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    let complete = vectors.cases.iter().all(|case| {
        case.verdicts.contains_key("rust_jsonschema_0.60.2 formats off")
            && case.verdicts.contains_key("rust_jsonschema_0.60.2 formats on")
    });
    assert!(complete && vectors.cases.len() == 60, "{} cases", vectors.cases.len());
}

//! From an input that fails to a small one that fails in the same way.
//!
//! Simpler variants are tried, the boldest first: fields and entries left out, texts and lists halved,
//! numbers brought near zero. Each that still fails takes the place of the one before, and is shorter
//! or, at equal length, earlier in the alphabet, so that it comes to an end. The number of tries is
//! bounded, for each is a call.

use serde_json::{Map, Value, json};

/// The smallest input found with at most `budget` tries, and how many were made.
pub async fn shrink(
    start: Map<String, Value>,
    budget: usize,
    mut fails: impl AsyncFnMut(&Map<String, Value>) -> bool,
) -> (Map<String, Value>, usize) {
    let mut best = start;
    let mut tried = 0;
    'again: loop {
        let size = size(&best);
        for candidate in smaller(&Value::Object(best.clone())) {
            let Value::Object(candidate) = candidate else { continue };
            if self::size(&candidate) >= size {
                continue;
            }
            if tried == budget {
                return (best, tried);
            }
            tried += 1;
            if fails(&candidate).await {
                best = candidate;
                continue 'again;
            }
        }
        return (best, tried);
    }
}

/// Shorter is smaller; of equal length, what comes first in the alphabet.
fn size(value: &Map<String, Value>) -> (usize, String) {
    let text = Value::Object(value.clone()).to_string();
    (text.len(), text)
}

/// How many parts of one value are taken apart one by one.
const PARTS: usize = 40;

/// Variants of a value that may be simpler, the boldest first.
fn smaller(value: &Value) -> Vec<Value> {
    match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec![json!(false)],
        Value::Number(number) => numbers(number),
        Value::String(text) => strings(text).into_iter().map(Value::String).collect(),
        Value::Array(list) => lists(list),
        Value::Object(fields) => objects(fields),
    }
}

fn numbers(number: &serde_json::Number) -> Vec<Value> {
    let mut found = vec![json!(0), json!(1), json!(-1)];
    if let Some(whole) = number.as_i64() {
        let mut near = whole;
        // Halving finds the order of magnitude, stepping finds the bound itself.
        while near.unsigned_abs() > 9 {
            near /= 10;
            found.push(json!(near));
        }
        found.push(json!(whole / 2));
        found.push(json!(whole - whole.signum()));
    } else if let Some(real) = number.as_f64() {
        found.extend([json!(real.trunc()), json!(real / 2.0), json!(0.5)]);
    }
    found
}

fn strings(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = vec![String::new()];
    // Halves, quarters and so on left out, down to single characters where there are few.
    let mut block = letters.len().div_ceil(2);
    while block > 0 {
        for start in (0..letters.len()).step_by(block).take(PARTS) {
            let end = (start + block).min(letters.len());
            found.push(letters[..start].iter().chain(&letters[end..]).collect());
        }
        if block == 1 {
            break;
        }
        block = block.div_ceil(2);
    }
    for at in 0..letters.len().min(PARTS) {
        let mut plain = letters.clone();
        plain[at] = 'a';
        found.push(plain.into_iter().collect());
    }
    found
}

fn lists(list: &[Value]) -> Vec<Value> {
    let mut found = vec![json!([])];
    let mut block = list.len().div_ceil(2);
    while block > 0 {
        for start in (0..list.len()).step_by(block).take(PARTS) {
            let end = (start + block).min(list.len());
            let rest = list[..start].iter().chain(&list[end..]).cloned().collect();
            found.push(Value::Array(rest));
        }
        if block == 1 {
            break;
        }
        block = block.div_ceil(2);
    }
    for (at, entry) in list.iter().enumerate().take(PARTS) {
        for simpler in smaller(entry) {
            let mut changed = list.to_vec();
            changed[at] = simpler;
            found.push(Value::Array(changed));
        }
    }
    found
}

fn objects(fields: &Map<String, Value>) -> Vec<Value> {
    let mut found = vec![json!({})];
    for key in fields.keys().take(PARTS) {
        let mut rest = fields.clone();
        rest.shift_remove(key);
        found.push(Value::Object(rest));
    }
    for (key, value) in fields.iter().take(PARTS) {
        for simpler in smaller(value) {
            let mut changed = fields.clone();
            changed.insert(key.clone(), simpler);
            found.push(Value::Object(changed));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    async fn shrunk(start: Value, budget: usize, fails: impl Fn(&Value) -> bool) -> Value {
        let (found, tried) =
            shrink(object(&start), budget, async |input| fails(&Value::Object(input.clone())))
                .await;
        assert!(tried <= budget);
        Value::Object(found)
    }

    #[tokio::test]
    async fn what_does_not_matter_goes_and_what_does_stays() {
        let start = json!({"text": "hello 👍 world", "other": [1, 2, {"a": true}], "n": 12});
        let has_emoji = |input: &Value| input["text"].as_str().is_some_and(|t| t.contains('👍'));
        assert_eq!(shrunk(start, 200, has_emoji).await, json!({"text": "👍"}));
        let start = json!({"n": -123_456});
        let negative = |input: &Value| input["n"].as_i64().is_some_and(|n| n < 0);
        assert_eq!(shrunk(start, 200, negative).await, json!({"n": -1}));
        let start = json!({"list": [3, 1, 4, 1, 5, 9]});
        let has_nine =
            |input: &Value| input["list"].as_array().is_some_and(|list| list.contains(&json!(9)));
        assert_eq!(shrunk(start, 200, has_nine).await, json!({"list": [9]}));
    }

    #[tokio::test]
    async fn a_long_text_comes_down_to_the_bound_that_matters() {
        let start = json!({"t": "a".repeat(5_000)});
        let long = |input: &Value| input["t"].as_str().is_some_and(|text| text.len() > 2_000);
        let found = shrunk(start, 100, long).await;
        assert!(
            found["t"].as_str().unwrap().len() <= 2_040,
            "{}",
            found["t"].as_str().unwrap().len()
        );
    }

    #[tokio::test]
    async fn without_tries_nothing_changes() {
        let start = json!({"a": 1});
        assert_eq!(shrunk(start.clone(), 0, |_| true).await, start);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(|b| json!(b)),
            any::<i64>().prop_map(|n| json!(n)),
            any::<String>().prop_map(|s| json!(s)),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_small_one_fails_as_the_large_one_did(value in any_value(), least in 0_usize..30) {
            // Fails as long as its JSON is of some length: an arbitrary class that must be kept.
            let fails = |input: &Map<String, Value>| Value::Object(input.clone()).to_string().len() > least;
            let start = object(&json!({"v": value}));
            prop_assume!(fails(&start));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (found, _) = runtime.block_on(shrink(start.clone(), 300, async |input| fails(input)));
            prop_assert!(fails(&found));
            prop_assert!(size(&found) <= size(&start));
        }
    }
}

//! Reduces a failing input to a small one that fails in the same way.
//!
//! Simpler variants are tried, the boldest first: fields and entries left out, texts and lists halved,
//! numbers moved towards zero. A variant that still fails replaces the input. It is shorter, or equally
//! long and earlier in the alphabet, so the search ends. The number of tries is bounded, because each
//! is a call.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value, json};

/// A search for a smaller input.
pub(super) struct Shrink {
    best: Map<String, Value>,
    size: (usize, String),
    candidates: Variants,
    budget: usize,
}

impl Shrink {
    /// A search that starts at a failing input and makes at most `budget` tries.
    pub(super) fn new(start: Map<String, Value>, budget: usize) -> Shrink {
        let candidates = smaller(&Value::Object(start.clone()));
        Shrink { size: size(&start), best: start, candidates, budget }
    }

    /// The next input to try; none if the search is over.
    pub(super) fn next(&mut self) -> Option<Map<String, Value>> {
        let fields = |candidate| match candidate {
            Value::Object(fields) => Some(fields),
            _ => None,
        };
        let next = self.candidates.by_ref().filter_map(fields).find(|one| size(one) < self.size)?;
        self.budget = self.budget.checked_sub(1)?;
        Some(next)
    }

    /// Goes on from an input that failed in the same way.
    pub(super) fn accept(&mut self, smaller: Map<String, Value>) {
        *self = Shrink::new(smaller, self.budget);
    }

    /// The smallest input that was found.
    pub(super) fn into_best(self) -> Map<String, Value> {
        self.best
    }
}

/// The order of inputs: by length, then by alphabet.
fn size(value: &Map<String, Value>) -> (usize, String) {
    let text = Value::Object(value.clone()).to_string();
    (text.len(), text)
}

/// The number of parts of one value that are varied one by one.
const PARTS: usize = 40;

/// Variants of a value that may be simpler, the boldest first; made one by one, because those of a huge
/// text together would not fit into memory.
type Variants = Box<dyn Iterator<Item = Value> + Send>;

fn smaller(value: &Value) -> Variants {
    match value {
        Value::Null | Value::Bool(false) => Box::new(std::iter::empty()),
        Value::Bool(true) => Box::new(std::iter::once(json!(false))),
        Value::Number(number) => Box::new(numbers(number).into_iter()),
        Value::String(text) => texts(text),
        Value::Array(list) => lists(list),
        Value::Object(fields) => objects(fields),
    }
}

fn numbers(number: &serde_json::Number) -> Vec<Value> {
    let mut found = vec![json!(0), json!(1), json!(-1)];
    if let Some(whole) = number.as_i64() {
        let mut near = whole;
        // Division finds the order of magnitude, stepping finds the bound itself.
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

fn texts(text: &str) -> Variants {
    let letters: Arc<[char]> = text.chars().collect();
    let all = Arc::clone(&letters);
    let shorter = blocks(letters.len()).map(move |Range { start, end }| {
        Value::String(all[..start].iter().chain(&all[end..]).collect())
    });
    let plainer = (0..letters.len().min(PARTS)).map(move |at| {
        let (before, after) = (&letters[..at], &letters[at + 1..]);
        Value::String(before.iter().chain(&['a']).chain(after).collect())
    });
    Box::new(std::iter::once(json!("")).chain(shorter).chain(plainer))
}

fn lists(list: &[Value]) -> Variants {
    let list: Arc<[Value]> = list.into();
    let all = Arc::clone(&list);
    let shorter = blocks(list.len())
        .map(move |Range { start, end }| Value::Array([&all[..start], &all[end..]].concat()));
    let simpler = (0..list.len().min(PARTS)).flat_map(move |at| {
        let list = Arc::clone(&list);
        smaller(&list[at]).map(move |simpler| {
            let mut changed = list.to_vec();
            changed[at] = simpler;
            Value::Array(changed)
        })
    });
    Box::new(std::iter::once(json!([])).chain(shorter).chain(simpler))
}

fn objects(fields: &Map<String, Value>) -> Variants {
    let keys: Vec<String> = fields.keys().take(PARTS).cloned().collect();
    let fields = Arc::new(fields.clone());
    let all = Arc::clone(&fields);
    let fewer = keys.clone().into_iter().map(move |key| {
        let mut rest = Map::clone(&all);
        rest.shift_remove(&key);
        Value::Object(rest)
    });
    let simpler = keys.into_iter().flat_map(move |key| {
        let fields = Arc::clone(&fields);
        smaller(&fields[&key]).map(move |simpler| {
            let mut changed = Map::clone(&fields);
            changed.insert(key.clone(), simpler);
            Value::Object(changed)
        })
    });
    Box::new(std::iter::once(json!({})).chain(fewer).chain(simpler))
}

/// The parts of a list that are left out: its halves, quarters and so on, down to single entries.
fn blocks(length: usize) -> impl Iterator<Item = Range<usize>> {
    let halved = |size: &usize| (*size > 1).then(|| size.div_ceil(2));
    let sizes = std::iter::successors((length > 0).then(|| length.div_ceil(2)), halved);
    sizes.flat_map(move |size| {
        let starts = (0..length).step_by(size).take(PARTS);
        starts.map(move |start| start..(start + size).min(length))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn shrunk(start: &Value, budget: usize, fails: impl Fn(&Value) -> bool) -> Value {
        let (mut search, mut tries) = (Shrink::new(object(start), budget), 0);
        while let Some(input) = search.next() {
            tries += 1;
            if fails(&Value::Object(input.clone())) {
                search.accept(input);
            }
        }
        assert!(tries <= budget);
        Value::Object(search.into_best())
    }

    #[test]
    fn only_the_part_that_causes_the_failure_is_left() {
        let start = json!({"text": "hello 👍 world", "other": [1, 2, {"a": true}], "n": 12});
        let has_emoji = |input: &Value| input["text"].as_str().is_some_and(|t| t.contains('👍'));
        assert_eq!(shrunk(&start, 200, has_emoji), json!({"text": "👍"}));
        let start = json!({"n": -123_456});
        let negative = |input: &Value| input["n"].as_i64().is_some_and(|n| n < 0);
        assert_eq!(shrunk(&start, 200, negative), json!({"n": -1}));
        let start = json!({"list": [3, 1, 4, 1, 5, 9]});
        let has_nine =
            |input: &Value| input["list"].as_array().is_some_and(|list| list.contains(&json!(9)));
        assert_eq!(shrunk(&start, 200, has_nine), json!({"list": [9]}));
    }

    #[test]
    fn a_long_text_is_cut_down_to_the_length_that_fails() {
        let start = json!({"t": "a".repeat(5_000)});
        let long = |input: &Value| input["t"].as_str().is_some_and(|text| text.len() > 2_000);
        let found = shrunk(&start, 100, long);
        assert!(
            found["t"].as_str().unwrap().len() <= 2_040,
            "{}",
            found["t"].as_str().unwrap().len()
        );
    }

    #[test]
    fn without_tries_the_input_stays_the_same() {
        let start = json!({"a": 1});
        assert_eq!(shrunk(&start, 0, |_| true), start);
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
        fn the_small_input_fails_like_the_large_one(value in any_value(), least in 0_usize..30) {
            // Fails while its JSON has some length: an arbitrary failure that must be kept.
            let fails = |input: &Value| input.to_string().len() > least;
            let start = json!({"v": value});
            prop_assume!(fails(&start));
            let found = shrunk(&start, 300, fails);
            prop_assert!(fails(&found));
            prop_assert!(size(&object(&found)) <= size(&object(&start)));
        }
    }
}

//! Shared by the tests against other implementations: their vectors, and the comparison with them.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) type Object = Map<String, Value>;

#[derive(Deserialize)]
pub(crate) struct Vectors<C> {
    pub(crate) meta: Meta,
    pub(crate) cases: Vec<C>,
}

#[derive(Deserialize)]
pub(crate) struct Meta {
    pub(crate) tolerance: f64,
    pub(crate) cases: usize,
}

/// The vectors in the file with this name.
pub(crate) fn vectors<T: DeserializeOwned>(name: &str) -> T {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let text = std::fs::read_to_string(folder.join(name).with_extension("json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn object(value: &Value) -> &Object {
    value.as_object().unwrap()
}

/// The cases of vectors, as many as the file says.
pub(crate) fn cases(vectors: &Value) -> &Vec<Value> {
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(Some(cases.len() as u64), vectors["meta"]["cases"].as_u64());
    cases
}

/// Compares values and collects the differences.
pub(crate) struct Comparison {
    tolerance: f64,
    compared: usize,
    wrong: Vec<String>,
}

impl Comparison {
    pub(crate) fn new(vectors: &Value) -> Self {
        let tolerance = vectors["meta"]["tolerance"].as_f64().unwrap();
        Self { tolerance, compared: 0, wrong: Vec::new() }
    }

    pub(crate) fn close(&mut self, place: &str, ours: f64, peer: &Value) {
        let peer = peer.as_f64().expect(place);
        self.compared += 1;
        if (ours - peer).abs() > self.tolerance * peer.abs().max(1.0) {
            self.wrong.push(format!("{place}: ours {ours}, peer {peer}"));
        }
    }

    /// For a peer that prints four decimals: ours, printed the same way, must be the same number.
    pub(crate) fn same_when_printed(&mut self, place: &str, ours: f64, peer: &Value) {
        let printed: f64 = format!("{ours:.4}").parse().unwrap();
        self.compared += 1;
        if printed != peer.as_f64().expect(place) {
            self.wrong.push(format!("{place}: ours {ours}, peer printed {peer}"));
        }
    }

    pub(crate) fn finish(self) {
        assert!(self.compared > 0, "nothing was compared");
        assert!(
            self.wrong.is_empty(),
            "{} of {}:\n{}",
            self.wrong.len(),
            self.compared,
            self.wrong.join("\n")
        );
    }
}

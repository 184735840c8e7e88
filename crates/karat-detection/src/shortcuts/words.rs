//! Words and pairs of words, weighted by how rare they are, in a logistic regression.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::dataset::Sample;

/// The steps of the descent.
const STEPS: usize = 200;
/// The penalty on weights, relative to the sum of the losses.
const PENALTY: f64 = 1.0;
/// The most tokens of one entry.
const MAX_WORDS: usize = 4_000;

/// 1 / (1 + e^-x).
pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// The words of an entry, and pairs of neighbours, in lower case. Scripts without spaces are read
/// character by character.
pub(super) fn tokens(sample: &Sample) -> Vec<String> {
    let Sample { server, tool, peers, before, result, instructions, .. } = sample;
    let shown = serde_json::json!([server, tool, peers, before, result, instructions]);
    let mut words = Vec::new();
    read(&shown, &mut words);
    words.truncate(MAX_WORDS);
    let pairs: Vec<String> = words.windows(2).map(|pair| pair.join(" ")).collect();
    words.extend(pairs);
    words
}

fn read(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => split(text, words),
        Value::Array(list) => list.iter().for_each(|one| read(one, words)),
        Value::Object(map) => {
            for (key, value) in map {
                split(key, words);
                read(value, words);
            }
        }
        Value::Bool(yes) => words.push(yes.to_string()),
        Value::Null | Value::Number(_) => {}
    }
}

fn split(text: &str, words: &mut Vec<String>) {
    let spaceless = |c: char| ('\u{2e80}'..='\u{9fff}').contains(&c);
    let mut word = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() && !spaceless(c) {
            word.push(c);
            continue;
        }
        if word.chars().nth(1).is_some() {
            words.push(std::mem::take(&mut word));
        }
        word.clear();
        if spaceless(c) {
            words.push(c.to_string());
        }
    }
    if word.chars().nth(1).is_some() {
        words.push(word);
    }
}

/// A trained regression.
pub(super) struct Model<'a> {
    /// The place of each known token, and how rare it is.
    tokens: HashMap<&'a str, (usize, f64)>,
    weights: Vec<f64>,
    bias: f64,
}

impl<'a> Model<'a> {
    /// Learns from the entries at `places`.
    pub(super) fn fit(texts: &'a [Vec<String>], truth: &[bool], places: &[usize]) -> Model<'a> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for place in places {
            let distinct: BTreeSet<&str> = texts[*place].iter().map(String::as_str).collect();
            distinct.into_iter().for_each(|token| *seen.entry(token).or_default() += 1);
        }
        let entries = places.len() as f64;
        let rarity = |count: usize| libm::log((1.0 + entries) / (1.0 + count as f64)) + 1.0;
        let tokens: HashMap<&str, (usize, f64)> = seen
            .into_iter()
            .filter(|(_, count)| *count > 1)
            .enumerate()
            .map(|(number, (token, count))| (token, (number, rarity(count))))
            .collect();
        let width = tokens.len();
        let mut model = Model { tokens, weights: vec![0.0; width], bias: 0.0 };
        let rows: Vec<Vec<(usize, f64)>> =
            places.iter().map(|place| model.row(&texts[*place])).collect();
        let labels: Vec<f64> =
            places.iter().map(|place| f64::from(u8::from(truth[*place]))).collect();
        model.descend(&rows, &labels);
        model
    }

    /// Accelerated gradient descent on the mean loss. Rows have length one, so the curvature is
    /// at most a half with the bias, and the step is known.
    fn descend(&mut self, rows: &[Vec<(usize, f64)>], labels: &[f64]) {
        let entries = rows.len().max(1) as f64;
        let decay = PENALTY / entries;
        let step = 1.0 / (0.5 + decay);
        let (mut ahead, mut ahead_bias) = (self.weights.clone(), self.bias);
        for number in 0..STEPS {
            let mut gradient: Vec<f64> = ahead.iter().map(|weight| decay * weight).collect();
            let mut of_bias = 0.0;
            for (row, label) in rows.iter().zip(labels) {
                let sum: f64 = row.iter().map(|(token, value)| ahead[*token] * value).sum();
                let error = (logistic(sum + ahead_bias) - label) / entries;
                row.iter().for_each(|(token, value)| gradient[*token] += error * value);
                of_bias += error;
            }
            let momentum = number as f64 / (number as f64 + 3.0);
            for ((weight, ahead), slope) in self.weights.iter_mut().zip(&mut ahead).zip(&gradient) {
                let next = *ahead - step * slope;
                *ahead = next + momentum * (next - *weight);
                *weight = next;
            }
            let next = ahead_bias - step * of_bias;
            ahead_bias = next + momentum * (next - self.bias);
            self.bias = next;
        }
    }

    /// The known tokens of a text, weighted by number and rarity, as a vector of length one.
    fn row(&self, text: &[String]) -> Vec<(usize, f64)> {
        let mut counts: BTreeMap<usize, f64> = BTreeMap::new();
        for (number, rarity) in text.iter().filter_map(|token| self.tokens.get(token.as_str())) {
            *counts.entry(*number).or_default() += rarity;
        }
        let length = counts.values().map(|value| value * value).sum::<f64>().sqrt().max(1e-12);
        counts.into_iter().map(|(number, value)| (number, value / length)).collect()
    }

    /// The log-odds that an entry is an attack.
    pub(super) fn score(&self, text: &[String]) -> f64 {
        let row = self.row(text);
        self.bias + row.iter().map(|(token, value)| self.weights[*token] * value).sum::<f64>()
    }

    /// Every token with its weight.
    pub(super) fn weights(&self) -> impl Iterator<Item = (&str, f64)> {
        self.tokens.iter().map(|(token, (number, _))| (*token, self.weights[*number]))
    }
}

//! Words and meaning together: the rankings of BM25 and of the embeddings, joined by reciprocal rank
//! fusion.
//!
//! Each engine gives its best tools; a tool's score is the sum of 1 / (60 + rank) over the engines
//! that list it, ranks from 1. Only ranks are joined, never scores, which have no common scale. Equal
//! sums come by id.

use std::collections::BTreeMap;
use std::path::Path;

use super::bm25::{Bm25, Fields};
use super::dense::Dense;
use super::engine::Engine;
use crate::dataset::Tool;
use crate::ranking::Ranked;
use karat_core::error::EvalError;

/// The weight of first ranks over later ones; 60 is the customary value.
const K: f64 = 60.0;
/// The minimum number of results of each engine that are joined.
pub(super) const DEPTH: usize = 100;

/// Both engines over one corpus.
pub(super) struct Hybrid {
    words: Bm25,
    meaning: Dense,
}

impl Hybrid {
    /// Builds both engines.
    ///
    /// # Errors
    /// As they do.
    pub(crate) fn build(tools: &[Tool], weights: &Path) -> Result<Hybrid, EvalError> {
        let meaning = Dense::build(tools, weights)?;
        let words = Bm25::build(tools, Fields::All);
        Ok(Hybrid { words, meaning })
    }
}

impl Engine for Hybrid {
    fn search(&self, query: &str, limit: usize) -> Vec<Ranked> {
        let depth = limit.max(DEPTH);
        fuse(&[self.words.search(query, depth), self.meaning.search(query, depth)], limit)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.meaning.settings();
        settings.insert("fusion".to_owned(), format!("reciprocal rank, k = {K}, depth {DEPTH}"));
        settings
    }
}

/// Joins rankings; equal sums come by id.
pub(super) fn fuse(rankings: &[Vec<Ranked>], limit: usize) -> Vec<Ranked> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for ranking in rankings {
        for (index, ranked) in ranking.iter().enumerate() {
            *sums.entry(&ranked.tool_id).or_default() += 1.0 / (K + index as f64 + 1.0);
        }
    }
    let mut fused: Vec<(&str, f64)> = sums.into_iter().collect();
    // The sort is stable and the map was by id, so equal sums stay so.
    fused.sort_by(|a, b| b.1.total_cmp(&a.1));
    fused
        .into_iter()
        .take(limit)
        .map(|(id, sum)| Ranked { tool_id: id.to_owned(), score: Some(sum) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: &[&str]) -> Vec<Ranked> {
        ids.iter().map(|id| Ranked { tool_id: (*id).to_owned(), score: None }).collect()
    }

    #[test]
    fn what_both_find_comes_before_what_one_finds_and_ties_go_by_id() {
        let fused = fuse(&[list(&["a", "b", "c"]), list(&["d", "b"])], 10);
        let ids: Vec<&str> = fused.iter().map(|ranked| ranked.tool_id.as_str()).collect();
        assert_eq!(ids, ["b", "a", "d", "c"]);
        assert_eq!(fused[0].score, Some(2.0 / 62.0));
        assert_eq!(fused[1].score, fused[2].score);
        assert_eq!(fuse(&[list(&["a", "b"]), list(&["c"])], 1).len(), 1);
    }
}

//! Search by meaning: static word embeddings, averaged and compared by their angle.
//!
//! The embeddings come from a folder (`model.safetensors`, `tokenizer.json`, `config.json`, as
//! model2vec writes it; `scripts/distil-static` makes one). Nothing is ever downloaded. Every tool is
//! one vector over the words of its name, title and description; the answer is the nearest ones,
//! equal distances by id. The digest of the folder is part of what was measured.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::dataset::Digest;
use karat_io::input::{self, InputError, Limits};
use model2vec_rs::model::StaticModel;

use super::engine::Engine;
use super::words::tokenize;
use crate::dataset::Tool;
use crate::ranking::Ranked;
use karat_core::error::EvalError;

/// The files of a folder of weights, in the order of the digest.
const FILES: [&str; 3] = ["model.safetensors", "tokenizer.json", "config.json"];
/// The most bytes that one of them may have.
const LARGEST: u64 = 2 << 30;

/// The corpus as vectors.
pub(super) struct Dense {
    model: StaticModel,
    digest: Digest,
    ids: Vec<String>,
    /// One row for each id, of length 1.
    vectors: Vec<Vec<f32>>,
}

impl Dense {
    /// Reads the weights and embeds a corpus, which must be sorted by id.
    ///
    /// # Errors
    /// If the folder lacks a file, or a file is not what it should be.
    pub(crate) fn build(tools: &[Tool], weights: &Path) -> Result<Dense, EvalError> {
        let (model, digest) = load(weights)?;
        let vectors = tools.iter().map(|tool| embed(&model, &text(tool))).collect();
        let ids = tools.iter().map(|tool| tool.tool_id.clone()).collect();
        Ok(Dense { model, digest, ids, vectors })
    }

    /// The vector of a tool.
    pub(super) fn vector(&self, tool: &Tool) -> Vec<f32> {
        embed(&self.model, &text(tool))
    }

    /// The best tools where some have other vectors.
    pub(super) fn search_with(
        &self,
        replaced: &BTreeMap<usize, Vec<f32>>,
        query: &str,
        limit: usize,
    ) -> Vec<Ranked> {
        let wanted = embed(&self.model, query);
        let vectors = self.vectors.iter().enumerate();
        let mut scored: Vec<(f64, usize)> = vectors
            .map(|(row, vector)| (similarity(&wanted, replaced.get(&row).unwrap_or(vector)), row))
            .collect();
        let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let kept = limit.min(scored.len());
        if kept < scored.len() && kept > 0 {
            scored.select_nth_unstable_by(kept - 1, order);
        }
        scored.truncate(kept);
        scored.sort_unstable_by(order);
        scored
            .into_iter()
            .map(|(score, row)| Ranked { tool_id: self.ids[row].clone(), score: Some(score) })
            .collect()
    }
}

fn load(folder: &Path) -> Result<(StaticModel, Digest), EvalError> {
    if !folder.is_dir() {
        return Err(EvalError::Config(format!(
            "system: weights: no folder {}; make one with scripts/distil-static (nothing is downloaded at run time)",
            folder.display()
        )));
    }
    let limits = Limits { bytes: LARGEST, ..Limits::default() };
    let read = |name: &str| input::read_bytes(&folder.join(name), &limits);
    let [model, tokenizer, config] = FILES.map(read);
    let (model, tokenizer, config) = (model?, tokenizer?, config?);
    let digests = [&model, &tokenizer, &config].map(|bytes| Digest::of(bytes).to_string());
    let loaded =
        StaticModel::from_bytes(&tokenizer, &model, &config, Some(true)).map_err(|error| {
            InputError::invalid(
                folder,
                "weights",
                format!("these are not static embeddings: {error:#}"),
            )
        })?;
    Ok((loaded, Digest::of(digests.join(" ").as_bytes())))
}

/// The text of a tool that is embedded. Names are split into words, as a person would read them.
fn text(tool: &Tool) -> String {
    let name = [tokenize(&tool.server), tokenize(&tool.tool)].concat().join(" ");
    let title = tool.title.as_deref().unwrap_or_default();
    format!("{name}. {title} {}", tool.description)
}

/// A vector of length 1; of a text without known words, of length 0.
fn embed(model: &StaticModel, text: &str) -> Vec<f32> {
    let mut vector = model.encode_single(text);
    if vector.iter().any(|part| !part.is_finite()) {
        vector.fill(0.0);
    }
    vector
}

/// In double precision and always in the same order, so that equal inputs give equal scores.
fn similarity(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

impl Engine for Dense {
    fn search(&self, query: &str, limit: usize) -> Vec<Ranked> {
        self.search_with(&BTreeMap::new(), query, limit)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("weights".to_owned(), self.digest.to_string())])
    }
}

//! The built-in engines over a corpus of which a few tools are reworded for each search. It is indexed
//! once: a candidate costs what its own tools cost, and finds what an index of its own would find.

#[cfg(feature = "embeddings")]
use std::collections::BTreeMap;
use std::path::Path;

use super::Builtin;
use super::bm25::{EditableBm25, Fields, Rewording};
#[cfg(feature = "embeddings")]
use super::{dense::Dense, hybrid};
use crate::dataset::Tool;
use crate::ranking::Ranked;
use karat_core::error::EvalError;

/// An index of the corpus as it is: of its words, of its meaning, or of both.
pub(crate) struct EditableEngine {
    words: Option<EditableBm25>,
    #[cfg(feature = "embeddings")]
    meaning: Option<Dense>,
}

/// Some tools in another wording, prepared for searches.
pub(crate) struct Reworded {
    words: Option<Rewording>,
    #[cfg(feature = "embeddings")]
    vectors: BTreeMap<usize, Vec<f32>>,
}

impl EditableEngine {
    /// Indexes a corpus, which must be sorted by id.
    ///
    /// # Errors
    /// If the engine cannot be built.
    pub(crate) fn build(
        builtin: &Builtin,
        tools: &[Tool],
        weights: Option<&Path>,
    ) -> Result<EditableEngine, EvalError> {
        let fields = match builtin.name {
            "bm25-names" => Some(Fields::NameOnly),
            "dense" => None,
            _ => Some(Fields::All),
        };
        #[cfg(feature = "embeddings")]
        let meaning = match (builtin.needs_weights, weights) {
            (true, Some(weights)) => Some(Dense::build(tools, weights)?),
            (true, None) => return Err((builtin.build)(tools, None).err().unwrap_or_else(missing)),
            (false, _) => None,
        };
        #[cfg(not(feature = "embeddings"))]
        if builtin.needs_weights {
            return Err((builtin.build)(tools, weights).err().unwrap_or_else(missing));
        }
        Ok(EditableEngine {
            words: fields.map(|fields| EditableBm25::build(tools, fields)),
            #[cfg(feature = "embeddings")]
            meaning,
        })
    }

    /// Prepares tools, given in the order of their places, for searches.
    pub(crate) fn reworded<'t>(
        &self,
        tools: impl Iterator<Item = (usize, &'t Tool)> + Clone,
    ) -> Reworded {
        Reworded {
            words: self.words.as_ref().map(|words| words.reworded(tools.clone())),
            #[cfg(feature = "embeddings")]
            vectors: match &self.meaning {
                Some(meaning) => tools.map(|(place, tool)| (place, meaning.vector(tool))).collect(),
                None => BTreeMap::new(),
            },
        }
    }

    /// The best tools where some are reworded.
    pub(crate) fn search(&self, reworded: &Reworded, query: &str, limit: usize) -> Vec<Ranked> {
        let words = |limit: usize| match (&self.words, &reworded.words) {
            (Some(index), Some(words)) => index.search(words, query, limit),
            _ => Vec::new(),
        };
        #[cfg(feature = "embeddings")]
        if let Some(meaning) = &self.meaning {
            let by_meaning = |limit| meaning.search_with(&reworded.vectors, query, limit);
            return match self.words.is_some() {
                true => {
                    let depth = limit.max(hybrid::DEPTH);
                    hybrid::fuse(&[words(depth), by_meaning(depth)], limit)
                }
                false => by_meaning(limit),
            };
        }
        words(limit)
    }
}

/// The error where an engine that needs weights has none.
fn missing() -> EvalError {
    EvalError::config("system: this engine needs weights")
}

#[cfg(test)]
#[cfg(feature = "embeddings")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::engines;

    /// Static embeddings of ten words, as model2vec writes them.
    fn weights(folder: &Path) {
        let words = ["[UNK]", "issue", "ticket", "letter", "mail", "send", "make", "a", "b", "."];
        let vocabulary: Value =
            words.iter().enumerate().map(|(n, word)| ((*word).to_owned(), json!(n))).collect();
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": null, "decoder": null,
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
        });
        let numbers: Vec<f32> = (0_u16..40).map(|n| f32::from(n * 37 % 11) - 5.0).collect();
        let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let head = json!({"embeddings": {
            "dtype": "F32", "shape": [words.len(), 4], "data_offsets": [0, data.len()]}})
        .to_string();
        let mut model = (head.len() as u64).to_le_bytes().to_vec();
        model.extend(head.as_bytes());
        model.extend(data);
        std::fs::write(folder.join("model.safetensors"), model).unwrap();
        std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
        std::fs::write(folder.join("config.json"), json!({"normalize": true}).to_string()).unwrap();
    }

    fn tool(name: &str, description: &str) -> Tool {
        Tool {
            tool_id: format!("s:{name}"),
            server: "s".to_owned(),
            tool: name.to_owned(),
            description: description.to_owned(),
            ..Tool::default()
        }
    }

    #[test]
    fn a_reworded_tool_is_found_as_in_an_index_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        weights(folder.path());
        let mut tools = vec![
            tool("a", "make a ticket"),
            tool("b", "send a letter"),
            tool("c", "an issue"),
            tool("d", "mail mail a letter"),
        ];
        let changed = tool("b", "make issue issue");
        for builtin in engines::ENGINES {
            let weights = builtin.needs_weights.then_some(folder.path());
            let engine = EditableEngine::build(builtin, &tools, weights).unwrap();
            let before = (builtin.build)(&tools, weights).unwrap();
            let none = engine.reworded(std::iter::empty());
            let reworded = engine.reworded([(1, &changed)].into_iter());
            let original = std::mem::replace(&mut tools[1], changed.clone());
            let rebuilt = (builtin.build)(&tools, weights).unwrap();
            tools[1] = original;
            for query in ["issue", "send mail", "make a ticket or letter", "b"] {
                let name = builtin.name;
                assert_eq!(engine.search(&none, query, 3), before.search(query, 3), "{name}");
                assert_eq!(engine.search(&reworded, query, 3), rebuilt.search(query, 3), "{name}");
            }
        }
    }
}

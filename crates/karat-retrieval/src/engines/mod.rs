//! Search engines that run inside Karat.

pub mod bm25;
#[cfg(feature = "embeddings")]
mod dense;
mod editable;
mod engine;
#[cfg(feature = "embeddings")]
mod hybrid;
mod index;
pub(crate) mod reworded;
pub(crate) mod terms;
pub(crate) mod words;

use std::path::Path;

pub use self::engine::Engine;
use crate::dataset::Tool;
use bm25::{Bm25, Fields};
use karat_core::error::EvalError;

/// A built engine, or the reason it could not be built.
pub(crate) type Built = Result<Box<dyn Engine>, EvalError>;

/// A built-in engine: its name, what it does, and how it is built.
pub struct Builtin {
    /// The name in `system = { builtin = "…" }`.
    pub name: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// True if it needs a folder of embeddings.
    pub needs_weights: bool,
    /// Indexes a corpus, with the folder of its weights.
    pub build: fn(&[Tool], Option<&Path>) -> Built,
}

/// All built-in engines; a new one is a file here and a line in this list.
pub(crate) const ENGINES: &[Builtin] = &[
    Builtin {
        name: "bm25",
        summary: "BM25 over name, title, description and schema text, with camelCase and snake_case split and English stemming",
        needs_weights: false,
        build: |tools, _| bm25_over(tools, Fields::All),
    },
    Builtin {
        name: "bm25-names",
        summary: "BM25 over names only, as if there were no descriptions, to see a gate fail",
        needs_weights: false,
        build: |tools, _| bm25_over(tools, Fields::NameOnly),
    },
    Builtin {
        name: "dense",
        summary: "nearest by meaning, with static word embeddings from the folder `weights`",
        needs_weights: true,
        build: by_meaning::dense,
    },
    Builtin {
        name: "hybrid",
        summary: "bm25 and dense joined by reciprocal rank fusion (k = 60)",
        needs_weights: true,
        build: by_meaning::hybrid,
    },
];

#[cfg(feature = "embeddings")]
mod by_meaning {
    use super::{Built, EvalError, Path, Tool, dense::Dense, hybrid::Hybrid};

    pub(super) fn dense(tools: &[Tool], weights: Option<&Path>) -> Built {
        Ok(Box::new(Dense::build(tools, folder(weights)?)?))
    }

    pub(super) fn hybrid(tools: &[Tool], weights: Option<&Path>) -> Built {
        Ok(Box::new(Hybrid::build(tools, folder(weights)?)?))
    }

    fn folder(weights: Option<&Path>) -> Result<&Path, EvalError> {
        weights.ok_or_else(|| EvalError::Config("system: this engine needs weights".to_owned()))
    }
}

#[cfg(not(feature = "embeddings"))]
mod by_meaning {
    use super::{Built, EvalError, Path, Tool};

    pub(super) fn dense(_: &[Tool], _: Option<&Path>) -> Built {
        let message = "system: this build of karat does not support embeddings; use a release, or build \
                       with `--features full`";
        Err(EvalError::Config(message.to_owned()))
    }

    pub(super) fn hybrid(tools: &[Tool], weights: Option<&Path>) -> Built {
        dense(tools, weights)
    }
}

fn bm25_over(tools: &[Tool], fields: Fields) -> Built {
    Ok(Box::new(Bm25::build(tools, fields)))
}

/// The engine of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    ENGINES.iter().find(|engine| engine.name == name)
}

/// The error for an engine that does not exist.
pub(crate) fn unknown(name: &str) -> EvalError {
    let known: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
    let known = known.join(", ");
    EvalError::config(format!("system: no built-in engine {name:?}; expected one of {known}"))
}

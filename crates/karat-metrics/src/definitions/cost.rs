//! What an answer costs whoever reads it.
//!
//! Counted, not computed: the evaluation counts with a stated vocabulary, and this module only says
//! what the number means.

use crate::registry::{Better, Metric, Unit};

pub(crate) const METRICS: &[Metric] = &[Metric {
    id: "answer_tokens",
    summary: "Tokens that the answer to a query puts into a model's context",
    formula: "per query the number of tokens of the answer; averaged",
    better: Better::Lower,
    unit: Unit::Tokens,
    undefined: "for a query that was not answered, and where tokens are not counted",
    notes: "Ours. For a system outside Karat the tokens of its whole answer as it came; for a \
            built-in engine those of the definitions it lists, as JSON, each counted by itself. The \
            vocabulary is `cl100k_base`.",
    ..Metric::DEFAULT
}];

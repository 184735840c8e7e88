//! The cost of an answer to its reader, counted in tokens of a stated vocabulary.

use crate::metric::{Better, Metric, Unit};

pub(crate) const METRICS: &[Metric] = &[Metric {
    id: "answer_tokens",
    summary: "Tokens that the answer to a query puts into a model's context",
    formula: "per query the number of tokens of the answer; averaged",
    better: Better::Lower,
    unit: Unit::Tokens,
    undefined: "for a query that was not answered, and where tokens are not counted",
    notes: "Ours. For a system outside Karat the tokens of its whole answer; for a built-in \
            engine those of the definitions it lists, as JSON, each counted separately. The \
            vocabulary is `cl100k_base`.",
    ..Metric::DEFAULT
}];

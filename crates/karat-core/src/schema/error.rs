//! The reasons that a schema cannot be used, and how a place in it is written.

use karat_io::text::{clip, printable};

/// The reason why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A schema is an object or a boolean.
    #[error("a schema must be an object, `true` or `false`")]
    NotASchema,
    /// The schema is larger than allowed.
    #[error("the schema has more than the maximum of {limit} values")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The regular expressions would take too much memory or time.
    #[error(
        "the patterns of the schema are too large in total; use smaller repetitions or maxLength"
    )]
    PatternsTooLarge,
    /// The schema is nested deeper than allowed.
    #[error("the schema is nested deeper than the maximum of {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// `$schema` names a dialect that is not known.
    #[error(
        "unsupported dialect `{found}`; use https://json-schema.org/draft/2020-12/schema or leave $schema out"
    )]
    UnsupportedDialect {
        /// The value of `$schema`.
        found: String,
    },
    /// A reference leads out of the schema.
    #[error(
        "`{uri}` is outside the schema and is not fetched; put it under $defs and refer to it there"
    )]
    ExternalReference {
        /// The reference.
        uri: String,
    },
    /// A reference leads nowhere.
    #[error("a reference cannot be resolved: {message}")]
    BadReference {
        /// The message of the engine.
        message: String,
    },
    /// References lead in a circle that no value ends.
    #[error("the reference at {at} refers to itself, so the schema is meaningless")]
    Circular {
        /// A place on the circle, as a JSON pointer.
        at: String,
    },
    /// The schema breaks the rules of its dialect.
    #[error("not a valid schema at {at}: {message}")]
    Invalid {
        /// The place, as a JSON pointer into the schema.
        at: String,
        /// The problem.
        message: String,
    },
}

/// A JSON pointer as text.
pub(super) fn place(pointer: &str) -> String {
    if pointer.is_empty() { "the root".to_owned() } else { short(pointer) }
}

pub(super) fn short(message: &str) -> String {
    clip(&printable(message), 300).into_owned()
}

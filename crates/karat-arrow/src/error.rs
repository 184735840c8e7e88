//! The reasons for which a batch cannot be scored, or partial results cannot be merged.

use karat_core::error::EvalError;

use crate::Kind;

/// The reason for which a batch cannot be scored, or partial results cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is not valid.
    #[error("{0}")]
    Options(String),
    /// A column is missing.
    #[error(
        "column `{column}` is missing; {kind} need it as {expected}; the columns are: {found} \
         (see docs/arrow.md)"
    )]
    MissingColumn {
        /// The kind of rows.
        kind: Kind,
        /// The column.
        column: String,
        /// The type that it should have.
        expected: String,
        /// The columns that are there.
        found: String,
    },
    /// A column has a type that it cannot have.
    #[error("column `{column}` is {found}; it should be {expected} (see docs/arrow.md)")]
    ColumnType {
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// The type that it should have.
        expected: String,
    },
    /// The batch is of another version of the schema.
    #[error("the batch is `{found}`; this version of Karat reads `{expected}`")]
    SchemaVersion {
        /// The version in the schema's metadata.
        found: String,
        /// The version that is read.
        expected: String,
    },
    /// A value is null where none may be.
    #[error("column `{column}` is null in row {row} of the batch; every row needs a value")]
    Null {
        /// The column.
        column: String,
        /// The row in the batch, from 0.
        row: usize,
    },
    /// A row cannot be scored, and none may fail.
    #[error(
        "row {row} of the batch (id {id:?}): {message}; `max_errors` lets a share of rows fail"
    )]
    Row {
        /// The row in the batch, from 0.
        row: usize,
        /// Its id, shortened.
        id: String,
        /// The mistake.
        message: String,
    },
    /// More rows failed than may.
    #[error(transparent)]
    TooManyFailures(EvalError),
    /// There are more groups than memory is kept for.
    #[error(
        "more than {limit} groups; group by something coarser, such as the server, leave the group \
         null, or raise `max_groups`"
    )]
    TooManyGroups {
        /// The most groups.
        limit: usize,
    },
    /// Bytes are not a partial result, or were damaged.
    #[error("not a partial result of Karat, or a damaged one: {0}")]
    Damaged(String),
    /// Partial results were made by another version.
    #[error(
        "the partial result is `{found}`, this is `{expected}`: make all partials with one version"
    )]
    PartialVersion {
        /// The version that made it.
        found: String,
        /// This version.
        expected: String,
    },
    /// Partial results of other rows or settings.
    #[error("the partial results differ in {what}: {left} and {right}; they cannot be merged")]
    Foreign {
        /// The property that differs.
        what: &'static str,
        /// The value here.
        left: String,
        /// The value in the other.
        right: String,
    },
    /// A duplicate part.
    #[error("duplicate part {part}")]
    DuplicatePart {
        /// The part.
        part: String,
    },
    /// Parts are missing.
    #[error(
        "of {of} parts {missing} are missing (first: {first}); merge all of them before the report"
    )]
    MissingParts {
        /// The number of parts.
        of: u32,
        /// The number that is missing.
        missing: usize,
        /// The first that is missing.
        first: String,
    },
    /// A row does not belong to the part.
    #[error(
        "row {row} of the batch (id {id:?}) is not in part {part}; was the table divided differently?"
    )]
    ForeignRow {
        /// The row in the batch, from 0.
        row: usize,
        /// Its id, shortened.
        id: String,
        /// The part.
        part: String,
    },
    /// There is nothing to report on.
    #[error("{0}")]
    NothingMeasured(String),
    /// Arrow refuses the columns, or runs out of room for them.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
    /// A file cannot be read or written.
    #[error("{0}")]
    File(String),
}

impl From<Error> for EvalError {
    fn from(error: Error) -> EvalError {
        match error {
            Error::NothingMeasured(message) => EvalError::NothingMeasured(message),
            Error::TooManyFailures(error) => error,
            other => EvalError::config(other),
        }
    }
}

impl Error {
    /// The same error with the row counted from the start of a batch of which this was a part.
    pub(crate) fn after_rows(mut self, rows: usize) -> Error {
        if let Error::Null { row, .. } | Error::Row { row, .. } = &mut self {
            *row += rows;
        }
        self
    }
}

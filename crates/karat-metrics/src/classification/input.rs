//! Checks of what the metrics are computed from, and the errors of invalid input.

/// The largest number of labels that a [`Multiclass`](super::Multiclass) table accepts: it has a cell for
/// every pair.
pub const MAX_CLASSES: usize = 1_000;

/// Invalid input, as opposed to valid data on which a metric is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputError {
    /// Two lists that belong together differ in length.
    Lengths {
        /// The length of the first list.
        first: usize,
        /// The length of the second list.
        second: usize,
    },
    /// A score is NaN or infinite.
    NotFinite {
        /// Its position in the list.
        index: usize,
    },
    /// A label is not one of the declared labels.
    UnknownLabel {
        /// Its position in the list.
        index: usize,
    },
    /// A label is declared twice.
    DuplicateLabel {
        /// The position of the second declaration.
        index: usize,
    },
    /// More labels than a table of all pairs of them can hold.
    TooManyLabels {
        /// The number of declared labels.
        count: usize,
    },
}

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InputError::Lengths { first, second } => {
                write!(f, "the lists differ in length: {first} and {second}")
            }
            InputError::NotFinite { index } => {
                write!(f, "the score at position {index} is not a finite number")
            }
            InputError::UnknownLabel { index } => {
                write!(f, "the label at position {index} is not one of the declared labels")
            }
            InputError::DuplicateLabel { index } => {
                write!(f, "the label declared at position {index} is a duplicate")
            }
            InputError::TooManyLabels { count } => {
                write!(f, "{count} labels are too many: at most {MAX_CLASSES}")
            }
        }
    }
}

impl std::error::Error for InputError {}

pub(super) fn same_length(first: usize, second: usize) -> Result<(), InputError> {
    if first == second { Ok(()) } else { Err(InputError::Lengths { first, second }) }
}

/// A count as a float; rounding above 2^53 moves no rate by more than 1e-16.
#[expect(clippy::cast_precision_loss, reason = "rounding above 2^53 is harmless for rates")]
pub(super) fn real(count: u64) -> f64 {
    count as f64
}

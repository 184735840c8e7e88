//! Did a detector flag the right entries: metrics of verdicts, of scores and of categories.
//!
//! "Positive" is what the detector looks for (an attack), "flagged" its verdict. A quotient without a
//! denominator is [`Undefined`](crate::Undefined) with its reason; scikit-learn's replacements for it
//! are had through [`ZeroDivision`], so both can stand side by side. Abstentions are not verdicts:
//! leave them out here and report [`coverage`] beside the rates.

mod agreement;
mod counts;
mod curves;
mod deployment;
mod multiclass;
mod probability;

pub use agreement::Agreement;
pub use counts::{Confusion, Proportion, ZeroDivision};
pub use curves::{OperatingPoint, PrecisionRecallCurve, RocCurve, Scores};
pub use deployment::{coverage, precision_at_prevalence};
pub use multiclass::{Averaging, MAX_CLASSES, Multiclass};

use crate::registry::{self, Metric};

const PARTS: &[&[Metric]] =
    &[counts::METRICS, curves::METRICS, probability::METRICS, deployment::METRICS];

/// The metrics of this family, in the order in which they are shown.
pub const METRICS: &[Metric] = &registry::join::<_, { registry::total(PARTS) }>(PARTS);

/// Input that is not data for these metrics at all, as opposed to data on which one is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A label is not among those declared.
    UnknownLabel {
        /// Its position in the list.
        index: usize,
    },
    /// More labels than a table of all pairs of them can hold.
    TooManyLabels {
        /// How many were declared.
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
                write!(f, "the label at position {index} is not among the declared labels")
            }
            InputError::TooManyLabels { count } => {
                write!(f, "{count} labels are too many: at most {MAX_CLASSES}")
            }
        }
    }
}

impl std::error::Error for InputError {}

fn same_length(first: usize, second: usize) -> Result<(), InputError> {
    if first == second { Ok(()) } else { Err(InputError::Lengths { first, second }) }
}

/// A count as a float; rounding above 2^53 moves no rate by more than 1e-16.
#[expect(clippy::cast_precision_loss, reason = "rounding above 2^53 is harmless for rates")]
fn real(count: u64) -> f64 {
    count as f64
}

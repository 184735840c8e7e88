//! Metrics of classifiers and detectors: of verdicts, of scores and of categories.
//!
//! "Positive" is what the detector looks for (an attack), and "flagged" its verdict. A quotient
//! without a denominator is [`Undefined`](crate::Undefined) with a reason; [`ZeroDivision`] gives
//! scikit-learn's replacement for it. Abstentions are not verdicts: leave them out here and report
//! [`coverage`] next to the rates.
//!
//! ```
//! use karat_metrics::classification::{Confusion, Scores};
//!
//! let truth = [true, true, false, false];
//! let counts = Confusion::from_verdicts(&truth, &[true, false, false, false])?;
//! assert_eq!((counts.recall(), counts.fpr()), (Ok(0.5), Ok(0.0)));
//!
//! let scores = Scores::new(&truth, &[0.9, 0.4, 0.6, 0.1])?;
//! assert_eq!(scores.roc_auc(), Ok(0.75));
//! assert_eq!(scores.recall_at_fpr(0.0), Ok(0.5));
//! # Ok::<(), karat_metrics::classification::InputError>(())
//! ```

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

use crate::metric::{self, Metric};

const PARTS: &[&[Metric]] =
    &[counts::METRICS, curves::METRICS, probability::METRICS, deployment::METRICS];

/// The metrics of this family, in the order in which they are shown.
pub const METRICS: &[Metric] = &metric::join::<_, { metric::total(PARTS) }>(PARTS);

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

fn same_length(first: usize, second: usize) -> Result<(), InputError> {
    if first == second { Ok(()) } else { Err(InputError::Lengths { first, second }) }
}

/// A count as a float; rounding above 2^53 moves no rate by more than 1e-16.
#[expect(clippy::cast_precision_loss, reason = "rounding above 2^53 is harmless for rates")]
fn real(count: u64) -> f64 {
    count as f64
}

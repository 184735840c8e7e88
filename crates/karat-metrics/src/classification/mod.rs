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
mod input;
mod multiclass;
mod probability;

pub use agreement::Agreement;
pub use counts::{Confusion, Proportion, ZeroDivision};
pub use curves::{OperatingPoint, PrecisionRecallCurve, RocCurve, Scores};
pub use deployment::{coverage, precision_at_prevalence};
pub use input::{InputError, MAX_CLASSES};
pub use multiclass::{Averaging, Multiclass};

use crate::metric::{self, Metric};
use input::{real, same_length};

const PARTS: &[&[Metric]] =
    &[counts::METRICS, curves::METRICS, probability::METRICS, deployment::METRICS];

/// The metrics of this family, in the order in which they are shown.
pub const METRICS: &[Metric] = &metric::join::<_, { metric::total(PARTS) }>(PARTS);

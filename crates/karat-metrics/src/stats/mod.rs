//! Uncertainty: intervals, paired tests, repeated runs and sample sizes.
//!
//! Every result depends on its arguments only: transcendental functions come from `libm` and random
//! draws from a seeded PCG generator (see [`random`]), so the same call gives the same bits on every
//! platform. A question that the data cannot answer is [`Undefined`] with a reason; nothing here
//! panics or loops without bound, whatever the counts.
//!
//! ```
//! use karat_metrics::stats::{self, Alternative, Bootstrap};
//!
//! // 45 of 50 cases passed: the rate to show, and the rate that this certifies.
//! let shown = stats::wilson(45, 50, 0.95)?;
//! assert!(shown.low > 0.78 && shown.high < 0.96);
//! assert!(stats::clopper_pearson_lower(45, 50, 0.95)? > 0.80);
//!
//! // Two systems on the same items: the interval of the mean difference, and an exact test.
//! let differences = [0.5, 0.0, 0.25, 0.25, 0.0, 0.5, -0.25, 0.5];
//! let interval = Bootstrap::default().mean(&differences)?;
//! let test = stats::sign_flip(&differences, Alternative::Greater, 30, 10_000, 0)?;
//! assert!(interval.contains(0.21875) && test.exact);
//! # Ok::<(), karat_metrics::Undefined>(())
//! ```

mod bootstrap;
mod clustered;
mod contingency;
mod exact;
mod mean;
mod multiple;
mod paired;
mod permutation;
mod planning;
mod proportion;
mod quantile;
pub mod random;
mod runs;
mod special;
mod wilcoxon;

pub use bootstrap::{Bootstrap, BootstrapMethod, MAX_RESAMPLES, resampled_means};
pub use clustered::ClusteredRate;
pub use contingency::{ChiSquared, fisher_exact, mcnemar_chi_squared, mcnemar_exact};
pub use exact::ExactSum;
pub use mean::{geometric_mean, mean, median, population_std, sample_std, sem, t_interval};
pub use multiple::{benjamini_hochberg, bonferroni, holm};
pub use paired::{TTest, paired_t_interval, paired_t_test, sign_test};
pub use permutation::{Alternative, MAX_ENUMERATED, PermutationTest, sign_flip};
pub use planning::{
    minimum_detectable_effect, sample_size_for_ceiling, sample_size_for_effect,
    sample_size_for_floor,
};
pub use proportion::{
    agresti_coull, clopper_pearson, clopper_pearson_lower, clopper_pearson_upper, jeffreys,
    newcombe, normal_approximation, wilson, wilson_corrected,
};
pub use quantile::{QuantileMethod, quantile, quantile_of_sorted, quantile_ranks};
pub use runs::{METRICS, pass_at_k, pass_hat_k, reliability};
pub use special::student::two_sided_quantile as student_two_sided_quantile;
pub use wilcoxon::{Wilcoxon, WilcoxonMethod, wilcoxon, wilcoxon_exact};

use crate::Undefined;

/// A confidence interval; `low <= high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Returns `true` if `value` lies within the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns the distance between the ends.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// The share of cases that an interval of this confidence may miss.
fn allowed_miss(confidence: f64) -> Result<f64, Undefined> {
    if confidence > 0.0 && confidence < 1.0 {
        Ok(1.0 - confidence)
    } else {
        Err(Undefined("the confidence level must lie between 0 and 1"))
    }
}

/// Rejects lists in which arithmetic would silently spread a NaN or an infinity.
fn all_finite(xs: &[f64]) -> Result<(), Undefined> {
    if xs.iter().all(|x| x.is_finite()) {
        Ok(())
    } else {
        Err(Undefined("a value is not a finite number"))
    }
}

/// A count as a float. Counts above 2^53 are rounded, which moves no rate by more than 1e-16.
#[expect(clippy::cast_precision_loss, reason = "rounding above 2^53 is harmless for rates")]
fn real(count: u64) -> f64 {
    count as f64
}

/// A length as a float.
fn length(count: usize) -> f64 {
    real(count as u64)
}

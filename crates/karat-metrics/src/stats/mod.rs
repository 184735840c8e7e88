//! How sure can we be: intervals, paired tests, repeated runs and sample sizes.
//!
//! Every result depends on its arguments only: transcendental functions come from `libm` and random
//! draws from a seeded PCG generator (see [`random`]), so the same call gives the same bits on every
//! platform. A question that the data cannot answer is [`Undefined`] with its
//! reason; nothing here panics or loops without bound, whatever the counts. Which interval or test
//! belongs to which report is decided elsewhere.

mod bootstrap;
mod contingency;
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
pub use contingency::{ChiSquared, fisher_exact, mcnemar_chi_squared, mcnemar_exact};
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
pub use quantile::{QuantileMethod, quantile, quantile_of_sorted};
pub use runs::{METRICS, pass_at_k, pass_hat_k, reliability};
pub use special::normal::{quantile as normal_quantile, upper_tail as normal_upper_tail};
pub use special::student::{
    two_sided_quantile as student_two_sided_quantile, upper_tail as student_upper_tail,
};
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
    /// Whether `value` lies within, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The distance between the ends.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// The share of cases an interval of this confidence may miss, if the level makes sense.
fn allowed_miss(confidence: f64) -> Result<f64, Undefined> {
    if confidence > 0.0 && confidence < 1.0 {
        Ok(1.0 - confidence)
    } else {
        Err(Undefined("the confidence level must lie between 0 and 1"))
    }
}

/// Refuses lists in which arithmetic would silently spread a NaN or an infinity.
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

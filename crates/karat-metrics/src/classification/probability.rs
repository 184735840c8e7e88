//! Calibration: metrics of scores that claim to be probabilities.

use super::{Scores, real};
use crate::metric::{Better, Metric, Unit};
use crate::{Score, Undefined};

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        id: "brier",
        summary: "The mean squared distance between the stated probability and the truth",
        formula: "mean of (score − truth)², truth being 0 or 1",
        better: Better::Lower,
        unit: Unit::Share,
        undefined: "no entries, or a score outside 0..1",
        ..Metric::DEFAULT
    },
    Metric {
        id: "log_loss",
        summary: "The mean surprise at the truth, given the stated probability",
        formula: "−mean of ln(probability given to the true class)",
        better: Better::Lower,
        undefined: "no entries, or a score outside 0..1",
        notes: "Probabilities are kept 2.2e-16 away from 0 and 1, as in scikit-learn; being sure and wrong \
            costs 36.",
        ..Metric::DEFAULT
    },
];

impl Scores {
    /// Returns the mean of (score − truth)².
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// let scores = Scores::new(&[true, false], &[0.5, 0.5])?;
    /// assert_eq!(scores.brier(), Ok(0.25));
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    ///
    /// # Errors
    /// If the list is empty, or a score is not between 0 and 1.
    pub fn brier(&self) -> Score {
        self.mean_loss(|given_to_truth| (1.0 - given_to_truth) * (1.0 - given_to_truth))
    }

    /// Returns the mean of −ln(probability given to the true class).
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// let scores = Scores::new(&[true, false], &[0.5, 0.5])?;
    /// assert_eq!(scores.log_loss(), Ok(2f64.ln()));
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    ///
    /// # Errors
    /// If the list is empty, or a score is not between 0 and 1.
    pub fn log_loss(&self) -> Score {
        self.mean_loss(|given| -libm::log(given.clamp(f64::EPSILON, 1.0 - f64::EPSILON)))
    }

    /// The mean over entries of a loss that depends on the probability given to the true class.
    fn mean_loss(&self, loss: impl Fn(f64) -> f64) -> Score {
        let (mut total, mut entries) = (0.0, 0);
        for tied in self.ties() {
            if !(0.0..=1.0).contains(&tied.score) {
                return Err(Undefined("a score is not a probability"));
            }
            total += real(tied.positives) * loss(tied.score);
            total += real(tied.negatives) * loss(1.0 - tied.score);
            entries += tied.positives + tied.negatives;
        }
        if entries == 0 { Err(Undefined("no entries")) } else { Ok(total / real(entries)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certain_and_wrong_score_has_a_finite_loss() {
        let wrong = Scores::new(&[true], &[0.0]).unwrap();
        let loss = wrong.log_loss().unwrap();
        assert!((loss - 36.04).abs() < 0.01, "{loss}");
        assert_eq!(wrong.brier(), Ok(1.0));
    }

    #[test]
    fn scores_that_are_not_probabilities_have_no_loss() {
        for score in [1.5, -0.1] {
            let scores = Scores::new(&[true], &[score]).unwrap();
            assert!(scores.brier().is_err() && scores.log_loss().is_err());
        }
        assert_eq!(Scores::new(&[], &[]).unwrap().brier(), Err(Undefined("no entries")));
    }
}

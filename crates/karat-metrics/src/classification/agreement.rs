//! Agreement of two detectors, whatever the truth.

use super::{Confusion, InputError};
use crate::stats::mcnemar_exact;
use crate::{Score, Undefined};

/// The verdicts of two detectors on the same entries.
///
/// ```
/// use karat_metrics::classification::Agreement;
///
/// let first = [true, true, false, false];
/// let second = [true, false, false, false];
/// let agreement = Agreement::from_verdicts(&first, &second)?;
/// assert_eq!(agreement.observed(), Ok(0.75));
/// assert_eq!(agreement.kappa(), Ok(0.5));
/// assert_eq!(agreement.jaccard(), Ok(0.5));
/// assert_eq!(agreement.mcnemar(), 1.0);
/// # Ok::<(), karat_metrics::classification::InputError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agreement {
    /// Flagged by both.
    pub both: u64,
    /// Flagged by the first only.
    pub only_first: u64,
    /// Flagged by the second only.
    pub only_second: u64,
    /// Flagged by neither.
    pub neither: u64,
}

impl Agreement {
    /// Counts the verdicts of two detectors, entry by entry; `true` means flagged.
    ///
    /// # Errors
    /// If the lists differ in length.
    pub fn from_verdicts(first: &[bool], second: &[bool]) -> Result<Agreement, InputError> {
        let counts = Confusion::from_verdicts(first, second)?;
        Ok(Agreement {
            both: counts.true_positives,
            only_first: counts.false_negatives,
            only_second: counts.false_positives,
            neither: counts.true_negatives,
        })
    }

    /// Counts the verdicts on one more entry.
    pub fn add(&mut self, first: bool, second: bool) {
        let count = match (first, second) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.only_first,
            (false, true) => &mut self.only_second,
            (false, false) => &mut self.neither,
        };
        *count = count.saturating_add(1);
    }

    /// Returns the sum of both counts.
    #[must_use]
    pub fn plus(&self, other: &Agreement) -> Agreement {
        Agreement {
            both: self.both.saturating_add(other.both),
            only_first: self.only_first.saturating_add(other.only_first),
            only_second: self.only_second.saturating_add(other.only_second),
            neither: self.neither.saturating_add(other.neither),
        }
    }

    /// Returns the share of entries with the same verdict.
    ///
    /// # Errors
    /// If nothing was counted.
    pub fn observed(&self) -> Score {
        self.as_confusion().accuracy()
    }

    /// Returns Cohen's kappa: the agreement beyond the one that the rates of flagging make likely by
    /// chance.
    ///
    /// # Errors
    /// If nothing was counted, or both detectors give one and the same verdict throughout.
    pub fn kappa(&self) -> Score {
        self.as_confusion().kappa()
    }

    /// Returns the share of entries flagged by both, among those flagged by either.
    ///
    /// # Errors
    /// If neither flagged anything.
    pub fn jaccard(&self) -> Score {
        self.as_confusion().jaccard().map_err(|_| Undefined("neither flagged anything"))
    }

    /// Returns the exact p-value against the hypothesis that both flag equally often.
    #[must_use]
    pub fn mcnemar(&self) -> f64 {
        mcnemar_exact(self.only_first, self.only_second)
    }

    /// The first detector in the role of the truth; the measures above are symmetric.
    fn as_confusion(self) -> Confusion {
        Confusion {
            true_positives: self.both,
            false_positives: self.only_second,
            false_negatives: self.only_first,
            true_negatives: self.neither,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_agree_and_opposites_do_not() {
        let flags = [true, false, true, false];
        let twins = Agreement::from_verdicts(&flags, &flags).unwrap();
        assert_eq!((twins.kappa(), twins.jaccard(), twins.mcnemar()), (Ok(1.0), Ok(1.0), 1.0));
        let opposites = Agreement::from_verdicts(&flags, &flags.map(|flag| !flag)).unwrap();
        assert_eq!((opposites.kappa(), opposites.jaccard()), (Ok(-1.0), Ok(0.0)));
        assert_eq!(opposites.observed(), Ok(0.0));
    }

    #[test]
    fn two_silent_detectors_have_no_jaccard_index() {
        let silent = Agreement::from_verdicts(&[false; 3], &[false; 3]).unwrap();
        assert_eq!(silent.jaccard(), Err(Undefined("neither flagged anything")));
        assert!(silent.kappa().is_err());
    }
}

//! Metrics of several classes, such as the kinds of attack.

use std::collections::HashMap;
use std::hash::Hash;

use super::{Confusion, InputError, MAX_CLASSES, ZeroDivision, real, same_length};
use crate::{Score, Undefined};

/// A confusion matrix of several classes.
///
/// ```
/// use karat_metrics::classification::{Averaging, Confusion, Multiclass, ZeroDivision};
///
/// let truth = ["a", "a", "b", "c"];
/// let predicted = ["a", "b", "b", "c"];
/// let table = Multiclass::from_labels(&["a", "b", "c"], &truth, &predicted)?;
/// assert_eq!(table.accuracy(), Ok(0.75));
/// assert_eq!(table.rows().next(), Some(&[1, 1, 0][..]));
/// let recall = table.average(Confusion::recall, Averaging::Macro, ZeroDivision::Zero);
/// assert_eq!(recall, Ok(2.5 / 3.0));
/// # Ok::<(), karat_metrics::classification::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiclass {
    classes: usize,
    /// Row by row, one row per true label.
    cells: Vec<u64>,
}

/// The way to average a metric over classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Averaging {
    /// The plain mean over classes: a rare class counts as much as a common one.
    Macro,
    /// The metric of the summed counts of all classes: every entry counts the same.
    Micro,
    /// The mean over classes, weighted by the number of entries that truly belong to them.
    Weighted,
}

impl Multiclass {
    /// Counts predictions against the truth. The order of the declared labels is that of the table.
    ///
    /// # Errors
    /// If the lists differ in length, more than [`MAX_CLASSES`] labels are declared, one is declared
    /// twice, or an entry has a label that is not declared.
    pub fn from_labels<L: Eq + Hash>(
        labels: &[L],
        truth: &[L],
        predicted: &[L],
    ) -> Result<Multiclass, InputError> {
        same_length(truth.len(), predicted.len())?;
        if labels.len() > MAX_CLASSES {
            return Err(InputError::TooManyLabels { count: labels.len() });
        }
        let mut places: HashMap<&L, usize> = HashMap::with_capacity(labels.len());
        for (index, label) in labels.iter().enumerate() {
            if places.insert(label, index).is_some() {
                return Err(InputError::DuplicateLabel { index });
            }
        }
        let mut cells = vec![0; labels.len() * labels.len()];
        for (index, (truth, predicted)) in truth.iter().zip(predicted).enumerate() {
            let (Some(row), Some(column)) = (places.get(truth), places.get(predicted)) else {
                return Err(InputError::UnknownLabel { index });
            };
            cells[row * labels.len() + column] += 1;
        }
        Ok(Multiclass { classes: labels.len(), cells })
    }

    /// Returns the table: one row per true label, one column per predicted label.
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> {
        self.cells.chunks(self.classes.max(1))
    }

    /// Returns the counts of one class against all others, by its place among the declared labels.
    #[must_use]
    pub fn class(&self, place: usize) -> Option<Confusion> {
        if place >= self.classes {
            return None;
        }
        let hits = self.cells[place * self.classes + place];
        let truly: u64 = self.truly(place);
        let predicted: u64 = self.predicted(place);
        Some(Confusion {
            true_positives: hits,
            false_positives: predicted - hits,
            false_negatives: truly - hits,
            true_negatives: self.total() + hits - truly - predicted,
        })
    }

    /// Averages a metric over all classes, as in `average(Confusion::f1, …)`.
    ///
    /// The rule applies to each class; a class that it leaves undefined is left out. If the remaining
    /// classes have no entries to weight them by, they have equal weights (as in scikit-learn).
    ///
    /// # Errors
    /// If the metric is undefined for every class.
    pub fn average(
        &self,
        metric: impl Fn(&Confusion) -> Score,
        averaging: Averaging,
        rule: ZeroDivision,
    ) -> Score {
        let classes = (0..self.classes).filter_map(|place| self.class(place));
        if averaging == Averaging::Micro {
            let together = classes.fold(Confusion::default(), |sum, class| sum.plus(&class));
            return rule.apply(metric(&together));
        }
        let defined: Vec<(f64, f64)> = classes
            .filter_map(|class| Some((rule.apply(metric(&class)).ok()?, real(class.positives()))))
            .collect();
        let total_weight: f64 = defined.iter().map(|(_, weight)| weight).sum();
        if defined.is_empty() {
            Err(Undefined("undefined for every class"))
        } else if averaging == Averaging::Macro || total_weight == 0.0 {
            let sum: f64 = defined.iter().map(|(value, _)| value).sum();
            Ok(sum / real(defined.len() as u64))
        } else {
            let sum: f64 = defined.iter().map(|(value, weight)| value * weight).sum();
            Ok(sum / total_weight)
        }
    }

    /// Returns the share of entries with the right label.
    ///
    /// # Errors
    /// If nothing was counted.
    pub fn accuracy(&self) -> Score {
        match self.total() {
            0 => Err(Undefined("no entries")),
            total => Ok(real(self.hits()) / real(total)),
        }
    }

    /// Returns Matthews' correlation coefficient for several classes (Gorodkin's R_K).
    ///
    /// # Errors
    /// If only one class is present, or only one was predicted. (scikit-learn returns 0.)
    pub fn mcc(&self) -> Score {
        let square = |count: u64| u128::from(count) * u128::from(count);
        let total = square(self.total());
        let (mut chance, mut truly, mut predicted) = (0u128, 0u128, 0u128);
        for place in 0..self.classes {
            chance += u128::from(self.truly(place)) * u128::from(self.predicted(place));
            truly += square(self.truly(place));
            predicted += square(self.predicted(place));
        }
        let right = u128::from(self.hits()) * u128::from(self.total());
        let scale = wide(total - truly).sqrt() * wide(total - predicted).sqrt();
        if scale == 0.0 {
            return Err(Undefined("only one class is present, or only one was predicted"));
        }
        let size = wide(right.abs_diff(chance));
        let signed = if right >= chance { size } else { -size };
        Ok((signed / scale).clamp(-1.0, 1.0))
    }

    fn total(&self) -> u64 {
        self.cells.iter().sum()
    }

    fn hits(&self) -> u64 {
        (0..self.classes).map(|place| self.cells[place * self.classes + place]).sum()
    }

    fn truly(&self, place: usize) -> u64 {
        self.cells[place * self.classes..(place + 1) * self.classes].iter().sum()
    }

    fn predicted(&self, place: usize) -> u64 {
        self.cells.iter().skip(place).step_by(self.classes).sum()
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded once, after exact sums")]
fn wide(count: u128) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_not_declared_once_are_rejected_by_position() {
        let twice = Multiclass::from_labels(&["a", "b", "a"], &["a"], &["a"]);
        assert_eq!(twice, Err(InputError::DuplicateLabel { index: 2 }));
        let refused = Multiclass::from_labels(&["a", "b"], &["a", "b"], &["a", "c"]);
        assert_eq!(refused, Err(InputError::UnknownLabel { index: 1 }));
        let many: Vec<usize> = (0..=MAX_CLASSES).collect();
        assert!(Multiclass::from_labels(&many, &[], &[]).is_err());
    }

    #[test]
    fn without_entries_every_metric_is_undefined() {
        for labels in [vec![], vec!["a"], vec!["a", "b"]] {
            let empty = Multiclass::from_labels(&labels, &[], &[]).unwrap();
            assert!(empty.accuracy().is_err() && empty.mcc().is_err());
            for averaging in [Averaging::Macro, Averaging::Micro, Averaging::Weighted] {
                assert!(empty.average(Confusion::f1, averaging, ZeroDivision::Undefined).is_err());
            }
            assert_eq!(empty.class(labels.len()), None);
        }
    }

    #[test]
    fn a_table_of_two_classes_has_the_plain_counts() {
        let truth = [1, 1, 0, 0, 1];
        let predicted = [1, 0, 0, 1, 1];
        let table = Multiclass::from_labels(&[0, 1], &truth, &predicted).unwrap();
        let flags = |labels: [i32; 5]| labels.map(|label| label == 1);
        let counts = Confusion::from_verdicts(&flags(truth), &flags(predicted)).unwrap();
        assert_eq!(table.class(1), Some(counts));
        assert_eq!(table.accuracy(), counts.accuracy());
        assert!((table.mcc().unwrap() - counts.mcc().unwrap()).abs() < 1e-15);
    }
}

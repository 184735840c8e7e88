//! Metrics of plain verdicts: everything that follows from four counts.
//!
//! A metric and the functions that compute it are one entry of `DEFINITIONS`.

use super::{InputError, real, same_length};
use crate::metric::{Better, Metric, MetricKind, Rank, Unit};
use crate::{Score, Undefined};

const NO_POSITIVES: Undefined = Undefined("no positive entries");
const NO_NEGATIVES: Undefined = Undefined("no negative entries");
const NOTHING_FLAGGED: Undefined = Undefined("nothing was flagged");
const EMPTY: Undefined = Undefined("no entries");

/// The counts of a binary confusion matrix.
///
/// ```
/// use karat_metrics::classification::Confusion;
///
/// let truth = [true, true, true, false, false];
/// let flagged = [true, true, false, true, false];
/// let counts = Confusion::from_verdicts(&truth, &flagged)?;
/// assert_eq!(counts.precision(), Ok(2.0 / 3.0));
/// assert_eq!(counts.recall(), Ok(2.0 / 3.0));
/// assert_eq!(counts.fpr(), Ok(0.5));
/// # Ok::<(), karat_metrics::classification::InputError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Confusion {
    /// Positive and flagged.
    pub true_positives: u64,
    /// Negative and flagged.
    pub false_positives: u64,
    /// Positive and not flagged.
    pub false_negatives: u64,
    /// Negative and not flagged.
    pub true_negatives: u64,
}

/// A metric as a share of something counted, from which an interval can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Proportion {
    /// The numerator.
    pub hits: u64,
    /// The denominator.
    pub of: u64,
}

/// The value of a metric that is undefined, to reproduce scikit-learn's `zero_division`. It applies without
/// any entries too, where scikit-learn raises an error.
///
/// ```
/// use karat_metrics::classification::{Confusion, ZeroDivision};
///
/// let nothing_flagged = Confusion { false_negatives: 3, ..Confusion::default() };
/// assert!(nothing_flagged.precision().is_err());
/// assert_eq!(ZeroDivision::Zero.apply(nothing_flagged.precision()), Ok(0.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ZeroDivision {
    /// Leave it undefined; averages over classes leave it out. scikit-learn's `nan`.
    #[default]
    Undefined,
    /// Use 0. scikit-learn's default (`"warn"` is the same with a warning).
    Zero,
    /// Use 1.
    One,
}

impl ZeroDivision {
    /// Returns the score, or the value of this rule if it is undefined.
    ///
    /// # Errors
    /// If the score is undefined and the rule leaves it so.
    pub fn apply(self, score: Score) -> Score {
        match self {
            ZeroDivision::Undefined => score,
            ZeroDivision::Zero => score.or(Ok(0.0)),
            ZeroDivision::One => score.or(Ok(1.0)),
        }
    }
}

/// A metric and the functions that compute it.
#[derive(Clone, Copy)]
struct Definition {
    metric: Metric,
    score: fn(&Confusion) -> Score,
    /// Numerator and denominator, if the metric is a share of entries.
    proportion: Option<fn(&Confusion) -> Proportion>,
}

const DEFINITIONS: &[Definition] = &[
    Definition {
        metric: Metric {
            id: "precision",
            summary: "The share of flagged entries that are attacks",
            formula: "tp ÷ (tp + fp)",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Aggregate,
            rank: Some(Rank::new(200)),
            undefined: "nothing was flagged",
            notes: "Depends on the share of attacks in the corpus: see `precision_at_prevalence_1pct`. \
            scikit-learn gives 0 where it is undefined.",
            ..Metric::DEFAULT
        },
        score: Confusion::precision,
        proportion: Some(|counts| Proportion { hits: counts.true_positives, of: counts.flagged() }),
    },
    Definition {
        metric: Metric {
            id: "recall",
            summary: "The share of attacks that are flagged",
            formula: "tp ÷ (tp + fn)",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Rate,
            rank: Some(Rank::new(180)),
            undefined: "no positive entries",
            notes: "Also called sensitivity or true-positive rate. scikit-learn gives 0 where it is undefined.",
            ..Metric::DEFAULT
        },
        score: Confusion::recall,
        proportion: Some(|counts| Proportion {
            hits: counts.true_positives,
            of: counts.positives(),
        }),
    },
    Definition {
        metric: Metric {
            id: "f1",
            summary: "The harmonic mean of precision and recall",
            formula: "2·tp ÷ (2·tp + fp + fn)",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Aggregate,
            rank: Some(Rank::new(210)),
            undefined: "no positive entries and nothing flagged",
            notes: "0 if there are attacks but none is flagged, although precision is then undefined.",
            ..Metric::DEFAULT
        },
        score: Confusion::f1,
        proportion: None,
    },
    Definition {
        metric: Metric {
            id: "f0.5",
            summary: "F-score that weighs precision twice as much as recall",
            formula: "1.25·tp ÷ (1.25·tp + fp + 0.25·fn)",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Aggregate,
            undefined: "no positive entries and nothing flagged",
            ..Metric::DEFAULT
        },
        score: |counts| counts.f_beta(0.5),
        proportion: None,
    },
    Definition {
        metric: Metric {
            id: "f2",
            summary: "F-score that weighs recall twice as much as precision",
            formula: "5·tp ÷ (5·tp + fp + 4·fn)",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Aggregate,
            undefined: "no positive entries and nothing flagged",
            ..Metric::DEFAULT
        },
        score: |counts| counts.f_beta(2.0),
        proportion: None,
    },
    Definition {
        metric: Metric {
            id: "fpr",
            summary: "The share of benign entries that are flagged",
            formula: "fp ÷ (fp + tn)",
            better: Better::Lower,
            unit: Unit::Share,
            kind: MetricKind::Rate,
            undefined: "no negative entries",
            notes: "Never 0 for lack of benign entries: a gate on it fails then.",
            ..Metric::DEFAULT
        },
        score: Confusion::fpr,
        proportion: Some(|counts| Proportion {
            hits: counts.false_positives,
            of: counts.negatives(),
        }),
    },
    Definition {
        metric: Metric {
            id: "fpr_hard",
            summary: "The share of hard negatives that are flagged",
            formula: "fp ÷ (fp + tn) over the benign entries that resemble an attack",
            better: Better::Lower,
            unit: Unit::Share,
            kind: MetricKind::Rate,
            rank: Some(Rank::new(190)),
            undefined: "no hard negatives",
            notes: "Easy benign entries cannot dilute it, which is why gates use it.",
            ..Metric::DEFAULT
        },
        score: |counts| counts.fpr().map_err(|_| Undefined("no hard negatives")),
        proportion: Some(|counts| Proportion {
            hits: counts.false_positives,
            of: counts.negatives(),
        }),
    },
    Definition {
        metric: Metric {
            id: "fnr",
            summary: "The share of attacks that are missed",
            formula: "fn ÷ (tp + fn) = 1 − recall",
            better: Better::Lower,
            unit: Unit::Share,
            kind: MetricKind::Rate,
            undefined: "no positive entries",
            ..Metric::DEFAULT
        },
        score: Confusion::fnr,
        proportion: Some(|counts| Proportion {
            hits: counts.false_negatives,
            of: counts.positives(),
        }),
    },
    Definition {
        metric: Metric {
            id: "specificity",
            summary: "The share of benign entries that are not flagged",
            formula: "tn ÷ (fp + tn) = 1 − fpr",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Rate,
            undefined: "no negative entries",
            ..Metric::DEFAULT
        },
        score: Confusion::specificity,
        proportion: Some(|counts| Proportion {
            hits: counts.true_negatives,
            of: counts.negatives(),
        }),
    },
    Definition {
        metric: Metric {
            id: "npv",
            summary: "The share of entries not flagged that are benign",
            formula: "tn ÷ (tn + fn)",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Aggregate,
            undefined: "everything was flagged",
            ..Metric::DEFAULT
        },
        score: Confusion::npv,
        proportion: Some(|counts| Proportion {
            hits: counts.true_negatives,
            of: counts.not_flagged(),
        }),
    },
    Definition {
        metric: Metric {
            id: "accuracy",
            summary: "The share of entries judged right",
            formula: "(tp + tn) ÷ (tp + fp + fn + tn)",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Rate,
            undefined: "no entries",
            notes: "Flatters a silent detector where attacks are rare; prefer `balanced_accuracy` or `mcc`.",
            ..Metric::DEFAULT
        },
        score: Confusion::accuracy,
        proportion: Some(|counts| Proportion { hits: counts.judged_right(), of: counts.total() }),
    },
    Definition {
        metric: Metric {
            id: "balanced_accuracy",
            summary: "The mean of recall and specificity",
            formula: "(recall + specificity) ÷ 2",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Aggregate,
            undefined: "no positive entries, or no negative ones",
            notes: "0.5 for any detector that does not look at its input. scikit-learn averages over the \
            classes that are present instead.",
            ..Metric::DEFAULT
        },
        score: Confusion::balanced_accuracy,
        proportion: None,
    },
    Definition {
        metric: Metric {
            id: "mcc",
            summary: "Matthews' correlation between verdicts and truth",
            formula: "(tp·tn − fp·fn) ÷ √((tp + fp)(tp + fn)(tn + fp)(tn + fn))",
            better: Better::Higher,
            kind: MetricKind::Aggregate,
            undefined: "only one class is present, or only one verdict was given",
            notes: "−1 to 1, 0 for guessing. scikit-learn gives 0 where it is undefined, even to a perfect \
            detector.",
            ..Metric::DEFAULT
        },
        score: Confusion::mcc,
        proportion: None,
    },
    Definition {
        metric: Metric {
            id: "kappa",
            summary: "Cohen's kappa: agreement of verdicts and truth beyond chance",
            formula: "(observed − expected agreement) ÷ (1 − expected agreement)",
            better: Better::Higher,
            kind: MetricKind::Aggregate,
            undefined: "all entries are of one class and all verdicts are that class",
            ..Metric::DEFAULT
        },
        score: Confusion::kappa,
        proportion: None,
    },
    Definition {
        metric: Metric {
            id: "jaccard",
            summary: "Attacks flagged, among all that is an attack or flagged",
            formula: "tp ÷ (tp + fp + fn)",
            better: Better::Higher,
            unit: Unit::Share,
            kind: MetricKind::Aggregate,
            undefined: "no positive entries and nothing flagged",
            ..Metric::DEFAULT
        },
        score: Confusion::jaccard,
        proportion: Some(|counts| Proportion {
            hits: counts.true_positives,
            of: counts.positive_or_flagged(),
        }),
    },
];

/// The metrics of this file.
pub(super) const METRICS: &[Metric; DEFINITIONS.len()] = &{
    let mut metrics = [DEFINITIONS[0].metric; DEFINITIONS.len()];
    let mut index = 0;
    while index < metrics.len() {
        metrics[index] = DEFINITIONS[index].metric;
        index += 1;
    }
    metrics
};

impl Confusion {
    /// Counts verdicts against the truth, entry by entry; `true` means positive, and flagged.
    ///
    /// # Errors
    /// If the lists differ in length.
    pub fn from_verdicts(truth: &[bool], flagged: &[bool]) -> Result<Confusion, InputError> {
        same_length(truth.len(), flagged.len())?;
        let mut counts = Confusion::default();
        for (positive, flagged) in truth.iter().zip(flagged) {
            counts.add(*positive, *flagged);
        }
        Ok(counts)
    }

    /// Counts one more entry.
    pub fn add(&mut self, positive: bool, flagged: bool) {
        let count = match (positive, flagged) {
            (true, true) => &mut self.true_positives,
            (false, true) => &mut self.false_positives,
            (true, false) => &mut self.false_negatives,
            (false, false) => &mut self.true_negatives,
        };
        *count = count.saturating_add(1);
    }

    /// Returns the sum of both counts.
    #[must_use]
    pub fn plus(&self, other: &Confusion) -> Confusion {
        Confusion {
            true_positives: self.true_positives.saturating_add(other.true_positives),
            false_positives: self.false_positives.saturating_add(other.false_positives),
            false_negatives: self.false_negatives.saturating_add(other.false_negatives),
            true_negatives: self.true_negatives.saturating_add(other.true_negatives),
        }
    }

    /// Returns the number of positive entries.
    #[must_use]
    pub fn positives(&self) -> u64 {
        self.true_positives.saturating_add(self.false_negatives)
    }

    /// Returns the number of negative entries.
    #[must_use]
    pub fn negatives(&self) -> u64 {
        self.false_positives.saturating_add(self.true_negatives)
    }

    /// Returns the number of flagged entries.
    #[must_use]
    pub fn flagged(&self) -> u64 {
        self.true_positives.saturating_add(self.false_positives)
    }

    fn not_flagged(&self) -> u64 {
        self.true_negatives.saturating_add(self.false_negatives)
    }

    fn judged_right(&self) -> u64 {
        self.true_positives.saturating_add(self.true_negatives)
    }

    fn positive_or_flagged(&self) -> u64 {
        self.positives().saturating_add(self.false_positives)
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.positives().saturating_add(self.negatives())
    }

    /// tp / (tp + fp).
    ///
    /// # Errors
    /// If nothing was flagged.
    pub fn precision(&self) -> Score {
        share(self.true_positives, self.flagged(), NOTHING_FLAGGED)
    }

    /// tp / (tp + fn).
    ///
    /// # Errors
    /// If no entry is positive.
    pub fn recall(&self) -> Score {
        share(self.true_positives, self.positives(), NO_POSITIVES)
    }

    /// 2tp / (2tp + fp + fn).
    ///
    /// # Errors
    /// If no entry is positive and none was flagged.
    pub fn f1(&self) -> Score {
        self.f_beta(1.0)
    }

    /// (1 + β²)tp / ((1 + β²)tp + fp + β²fn): recall counts β times as much as precision.
    ///
    /// ```
    /// use karat_metrics::classification::Confusion;
    ///
    /// let counts = Confusion {
    ///     true_positives: 3,
    ///     false_positives: 1,
    ///     false_negatives: 3,
    ///     true_negatives: 0,
    /// };
    /// assert_eq!((counts.precision(), counts.recall()), (Ok(0.75), Ok(0.5)));
    /// assert_eq!(counts.f_beta(2.0), Ok(15.0 / 28.0));
    /// assert_eq!(counts.f_beta(0.0), counts.precision());
    /// ```
    ///
    /// # Errors
    /// As [`f1`](Self::f1), and if β is negative, not finite or above 1e150.
    pub fn f_beta(&self, beta: f64) -> Score {
        // Above the limit the square would overflow.
        if !(0.0..=1e150).contains(&beta) {
            return Err(Undefined("beta must be between 0 and 1e150"));
        }
        let square = beta * beta;
        let hits = (1.0 + square) * real(self.true_positives);
        let misses = real(self.false_positives) + square * real(self.false_negatives);
        if (hits + misses).is_infinite() {
            // Next to such a β precision weighs nothing.
            return self.recall();
        }
        quotient(hits, hits + misses, Undefined("no positive entries and nothing flagged"))
    }

    /// fp / (fp + tn).
    ///
    /// # Errors
    /// If no entry is negative.
    pub fn fpr(&self) -> Score {
        share(self.false_positives, self.negatives(), NO_NEGATIVES)
    }

    /// fn / (tp + fn).
    ///
    /// # Errors
    /// If no entry is positive.
    pub fn fnr(&self) -> Score {
        share(self.false_negatives, self.positives(), NO_POSITIVES)
    }

    /// tn / (fp + tn).
    ///
    /// # Errors
    /// If no entry is negative.
    pub fn specificity(&self) -> Score {
        share(self.true_negatives, self.negatives(), NO_NEGATIVES)
    }

    /// tn / (tn + fn).
    ///
    /// # Errors
    /// If everything was flagged.
    pub fn npv(&self) -> Score {
        share(self.true_negatives, self.not_flagged(), Undefined("everything was flagged"))
    }

    /// (tp + tn) / all.
    ///
    /// # Errors
    /// If nothing was counted.
    pub fn accuracy(&self) -> Score {
        share(self.judged_right(), self.total(), EMPTY)
    }

    /// The mean of recall and specificity.
    ///
    /// # Errors
    /// If no entry is positive or none is negative.
    pub fn balanced_accuracy(&self) -> Score {
        Ok((self.recall()? + self.specificity()?) / 2.0)
    }

    /// The mean of recall and specificity, or the one that is defined if only one class is present:
    /// scikit-learn's `balanced_accuracy_score`.
    ///
    /// # Errors
    /// If nothing was counted.
    pub fn balanced_accuracy_of_present_classes(&self) -> Score {
        match (self.recall(), self.specificity()) {
            (Ok(recall), Ok(specificity)) => Ok((recall + specificity) / 2.0),
            (recall, specificity) => recall.or(specificity).map_err(|_| EMPTY),
        }
    }

    /// Matthews' correlation coefficient. Exactly 1 if every verdict is right, −1 if none is.
    ///
    /// # Errors
    /// If only one class is present, or only one verdict was given. (scikit-learn returns 0.)
    pub fn mcc(&self) -> Score {
        let margins = [self.flagged(), self.positives(), self.negatives(), self.not_flagged()];
        let scale: f64 = margins.iter().map(|margin| real(*margin).sqrt()).product();
        let reason = Undefined("only one class is present, or only one verdict was given");
        let mcc = quotient(self.determinant(), scale, reason)?;
        // The roots are rounded, so a perfect detector would miss 1 by a little.
        Ok(if self.false_positives == 0 && self.false_negatives == 0 {
            1.0
        } else if self.true_positives == 0 && self.true_negatives == 0 {
            -1.0
        } else {
            mcc.clamp(-1.0, 1.0)
        })
    }

    /// Cohen's kappa.
    ///
    /// # Errors
    /// If nothing was counted, or all entries and all verdicts are of one class. (scikit-learn
    /// returns NaN.)
    pub fn kappa(&self) -> Score {
        let chance = real(self.flagged()) * real(self.negatives())
            + real(self.positives()) * real(self.not_flagged());
        if self.total() == 0 {
            return Err(EMPTY);
        }
        let reason = Undefined("all entries and all verdicts are of one class");
        quotient(2.0 * self.determinant(), chance, reason)
    }

    /// tp / (tp + fp + fn).
    ///
    /// # Errors
    /// If no entry is positive and none was flagged.
    pub fn jaccard(&self) -> Score {
        share(
            self.true_positives,
            self.positive_or_flagged(),
            Undefined("no positive entries and nothing flagged"),
        )
    }

    /// Returns the metric with this id, or `None` if it does not follow from the counts alone.
    /// `fpr_hard` expects counts over the hard negatives.
    ///
    /// ```
    /// use karat_metrics::classification::Confusion;
    ///
    /// let counts = Confusion { true_positives: 9, false_negatives: 1, ..Confusion::default() };
    /// assert_eq!(counts.metric("recall"), Some(Ok(0.9)));
    /// assert!(counts.metric("fpr").is_some_and(|score| score.is_err()));
    /// assert_eq!(counts.metric("roc_auc"), None);
    /// ```
    pub fn metric(&self, id: &str) -> Option<Score> {
        Some((definition(id)?.score)(self))
    }

    /// Returns numerator and denominator of the metric with this id, for an interval such as
    /// [`wilson`](crate::stats::wilson); `None` if it is not a share of entries.
    ///
    /// ```
    /// use karat_metrics::classification::{Confusion, Proportion};
    ///
    /// let counts = Confusion { true_positives: 9, false_negatives: 1, ..Confusion::default() };
    /// assert_eq!(counts.proportion("recall"), Some(Proportion { hits: 9, of: 10 }));
    /// assert_eq!(counts.proportion("f1"), None);
    /// ```
    pub fn proportion(&self, id: &str) -> Option<Proportion> {
        definition(id)?.proportion.map(|proportion| proportion(self))
    }

    /// tp·tn − fp·fn, multiplied out in whole numbers so that near-independence does not cancel.
    fn determinant(&self) -> f64 {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let agree = product(self.true_positives, self.true_negatives);
        let differ = product(self.false_positives, self.false_negatives);
        #[expect(clippy::cast_precision_loss, reason = "rounded once, after the subtraction")]
        let size = agree.abs_diff(differ) as f64;
        if agree >= differ { size } else { -size }
    }
}

fn definition(id: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.metric.id == id)
}

fn share(hits: u64, of: u64, reason: Undefined) -> Score {
    quotient(real(hits), real(of), reason)
}

fn quotient(top: f64, bottom: f64, reason: Undefined) -> Score {
    if bottom == 0.0 { Err(reason) } else { Ok(top / bottom) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classification::METRICS;

    fn counts(tp: u64, fp: u64, fn_: u64, tn: u64) -> Confusion {
        Confusion {
            true_positives: tp,
            false_positives: fp,
            false_negatives: fn_,
            true_negatives: tn,
        }
    }

    #[test]
    fn without_benign_entries_there_is_no_false_positive_rate() {
        assert_eq!(counts(5, 0, 1, 0).fpr(), Err(NO_NEGATIVES));
        assert_eq!(
            counts(5, 0, 1, 0).metric("fpr_hard"),
            Some(Err(Undefined("no hard negatives")))
        );
    }

    #[test]
    fn a_silent_detector_has_no_precision_but_an_f1_of_zero() {
        let silent = counts(0, 0, 4, 6);
        assert_eq!(silent.precision(), Err(NOTHING_FLAGGED));
        assert_eq!(silent.f1(), Ok(0.0));
        assert!(silent.mcc().is_err());
    }

    #[test]
    fn perfect_verdicts_have_a_correlation_of_exactly_one() {
        for (positives, negatives) in (1..200).flat_map(|p| (1..200).map(move |n| (p, n))) {
            assert_eq!(
                counts(positives, 0, 0, negatives).mcc(),
                Ok(1.0),
                "{positives} {negatives}"
            );
            assert_eq!(
                counts(0, negatives, positives, 0).mcc(),
                Ok(-1.0),
                "{positives} {negatives}"
            );
        }
    }

    #[test]
    fn the_largest_counts_stay_within_bounds() {
        let huge = u64::MAX;
        for case in
            [counts(huge, huge, huge, huge), counts(huge, 0, 0, huge), counts(0, huge, huge, 0)]
        {
            let mut defined = 0;
            for metric in METRICS {
                if let Some(Ok(value)) = case.metric(metric.id) {
                    assert!((-1.0..=1.0).contains(&value), "{} {value}", metric.id);
                    defined += 1;
                }
            }
            assert!(defined > 10, "{case:?}: {defined}");
        }
        let mut full = counts(huge, 0, 0, 0);
        full.add(true, true);
        assert_eq!(full.true_positives, huge);
    }

    #[test]
    fn a_beta_that_is_not_a_weight_is_rejected() {
        for beta in [-1.0, f64::NAN, f64::INFINITY, 1e200] {
            assert!(counts(1, 1, 1, 1).f_beta(beta).is_err(), "{beta}");
        }
        assert_eq!(counts(3, 1, 5, 0).f_beta(0.0), counts(3, 1, 5, 0).precision());
        assert_eq!(counts(3, 1, 5, 0).f_beta(1e150), counts(3, 1, 5, 0).recall());
        let many = counts(30_000_000_000, 7, 10_000_000_000, 0);
        assert_eq!((many.f_beta(1e150), many.f_beta(1e149)), (Ok(0.75), Ok(0.75)));
    }

    #[test]
    fn a_proportion_is_the_metric_it_belongs_to() {
        let case = counts(7, 2, 3, 11);
        let mut proportions = Vec::new();
        for metric in METRICS {
            if let Some(proportion) = case.proportion(metric.id) {
                let value = real(proportion.hits) / real(proportion.of);
                assert_eq!(case.metric(metric.id), Some(Ok(value)), "{}", metric.id);
                proportions.push(metric.id);
            }
        }
        assert!(
            ["precision", "recall", "fpr"].iter().all(|id| proportions.contains(id)),
            "{proportions:?}"
        );
    }

    #[test]
    fn lists_of_different_length_are_rejected() {
        assert_eq!(
            Confusion::from_verdicts(&[true], &[]),
            Err(InputError::Lengths { first: 1, second: 0 })
        );
    }
}

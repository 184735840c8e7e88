//! Metrics of plain verdicts: everything that follows from four counts.

use super::{InputError, real, same_length};
use crate::registry::{Better, Metric, MetricKind, Rank, Unit};
use crate::{Score, Undefined};

const NO_POSITIVES: Undefined = Undefined("no positive entries");
const NO_NEGATIVES: Undefined = Undefined("no negative entries");
const NOTHING_FLAGGED: Undefined = Undefined("nothing was flagged");
const EMPTY: Undefined = Undefined("no entries");

/// How verdicts and truth met, entry by entry.
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

/// A metric that is a share of something counted, so that an interval can be put around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Proportion {
    /// The numerator.
    pub hits: u64,
    /// The denominator.
    pub of: u64,
}

/// What to put where a metric is undefined, to reproduce scikit-learn's `zero_division`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ZeroDivision {
    /// Leave it undefined; averages over classes leave it out. scikit-learn's `nan`.
    #[default]
    Undefined,
    /// Call it 0. scikit-learn's default (`"warn"` is the same with a warning).
    Zero,
    /// Call it 1.
    One,
}

impl ZeroDivision {
    /// The score, with this rule applied if it is undefined.
    pub fn apply(self, score: Score) -> Score {
        match self {
            ZeroDivision::Undefined => score,
            ZeroDivision::Zero => score.or(Ok(0.0)),
            ZeroDivision::One => score.or(Ok(1.0)),
        }
    }
}

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[
    Metric {
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
    Metric {
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
    Metric {
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
    Metric {
        id: "f0.5",
        summary: "F-score that weighs precision twice as much as recall",
        formula: "1.25·tp ÷ (1.25·tp + fp + 0.25·fn)",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "no positive entries and nothing flagged",
        ..Metric::DEFAULT
    },
    Metric {
        id: "f2",
        summary: "F-score that weighs recall twice as much as precision",
        formula: "5·tp ÷ (5·tp + fp + 4·fn)",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "no positive entries and nothing flagged",
        ..Metric::DEFAULT
    },
    Metric {
        id: "fpr",
        summary: "The share of benign entries that are flagged",
        formula: "fp ÷ (fp + tn)",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no negative entries",
        notes: "Never 0 for want of benign entries: a gate on it fails then.",
        ..Metric::DEFAULT
    },
    Metric {
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
    Metric {
        id: "fnr",
        summary: "The share of attacks that are missed",
        formula: "fn ÷ (tp + fn) = 1 − recall",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no positive entries",
        ..Metric::DEFAULT
    },
    Metric {
        id: "specificity",
        summary: "The share of benign entries that are not flagged",
        formula: "tn ÷ (fp + tn) = 1 − fpr",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no negative entries",
        ..Metric::DEFAULT
    },
    Metric {
        id: "npv",
        summary: "The share of entries not flagged that are benign",
        formula: "tn ÷ (tn + fn)",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "everything was flagged",
        ..Metric::DEFAULT
    },
    Metric {
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
    Metric {
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
    Metric {
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
    Metric {
        id: "kappa",
        summary: "Cohen's kappa: agreement of verdicts and truth beyond chance",
        formula: "(observed − expected agreement) ÷ (1 − expected agreement)",
        better: Better::Higher,
        kind: MetricKind::Aggregate,
        undefined: "all entries are of one class and all verdicts are that class",
        ..Metric::DEFAULT
    },
    Metric {
        id: "jaccard",
        summary: "Attacks flagged, among all that is an attack or flagged",
        formula: "tp ÷ (tp + fp + fn)",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "no positive entries and nothing flagged",
        ..Metric::DEFAULT
    },
];

impl Confusion {
    /// Counts verdicts against the truth, entry by entry; `true` is positive, respectively flagged.
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

    /// The counts of both together.
    pub fn plus(&self, other: &Confusion) -> Confusion {
        Confusion {
            true_positives: self.true_positives.saturating_add(other.true_positives),
            false_positives: self.false_positives.saturating_add(other.false_positives),
            false_negatives: self.false_negatives.saturating_add(other.false_negatives),
            true_negatives: self.true_negatives.saturating_add(other.true_negatives),
        }
    }

    /// Positive entries.
    pub fn positives(&self) -> u64 {
        self.true_positives.saturating_add(self.false_negatives)
    }

    /// Negative entries.
    pub fn negatives(&self) -> u64 {
        self.false_positives.saturating_add(self.true_negatives)
    }

    /// Flagged entries.
    pub fn flagged(&self) -> u64 {
        self.true_positives.saturating_add(self.false_positives)
    }

    /// All entries.
    pub fn total(&self) -> u64 {
        self.positives().saturating_add(self.negatives())
    }

    /// tp / (tp + fp).
    pub fn precision(&self) -> Score {
        share(self.true_positives, self.flagged(), NOTHING_FLAGGED)
    }

    /// tp / (tp + fn).
    pub fn recall(&self) -> Score {
        share(self.true_positives, self.positives(), NO_POSITIVES)
    }

    /// 2tp / (2tp + fp + fn).
    pub fn f1(&self) -> Score {
        self.f_beta(1.0)
    }

    /// (1 + β²)tp / ((1 + β²)tp + fp + β²fn): recall counts β times as much as precision.
    pub fn f_beta(&self, beta: f64) -> Score {
        if !beta.is_finite() || beta < 0.0 {
            return Err(Undefined("beta must be a finite number, at least 0"));
        }
        let square = beta * beta;
        let hits = (1.0 + square) * real(self.true_positives);
        let misses = real(self.false_positives) + square * real(self.false_negatives);
        quotient(hits, hits + misses, Undefined("no positive entries and nothing flagged"))
    }

    /// fp / (fp + tn).
    pub fn fpr(&self) -> Score {
        share(self.false_positives, self.negatives(), NO_NEGATIVES)
    }

    /// fn / (tp + fn).
    pub fn fnr(&self) -> Score {
        share(self.false_negatives, self.positives(), NO_POSITIVES)
    }

    /// tn / (fp + tn).
    pub fn specificity(&self) -> Score {
        share(self.true_negatives, self.negatives(), NO_NEGATIVES)
    }

    /// tn / (tn + fn).
    pub fn npv(&self) -> Score {
        let silent = self.true_negatives.saturating_add(self.false_negatives);
        share(self.true_negatives, silent, Undefined("everything was flagged"))
    }

    /// (tp + tn) / all.
    pub fn accuracy(&self) -> Score {
        share(self.true_positives.saturating_add(self.true_negatives), self.total(), EMPTY)
    }

    /// The mean of recall and specificity.
    pub fn balanced_accuracy(&self) -> Score {
        Ok((self.recall()? + self.specificity()?) / 2.0)
    }

    /// The mean of recall and specificity, or the one that is defined if only one class is present:
    /// scikit-learn's `balanced_accuracy_score`.
    pub fn balanced_accuracy_of_present_classes(&self) -> Score {
        match (self.recall(), self.specificity()) {
            (Ok(recall), Ok(specificity)) => Ok((recall + specificity) / 2.0),
            (recall, specificity) => recall.or(specificity).map_err(|_| EMPTY),
        }
    }

    /// Matthews' correlation coefficient.
    pub fn mcc(&self) -> Score {
        let silent = self.true_negatives.saturating_add(self.false_negatives);
        let margins = [self.flagged(), self.positives(), self.negatives(), silent];
        let scale: f64 = margins.iter().map(|margin| real(*margin).sqrt()).product();
        let reason = Undefined("only one class is present, or only one verdict was given");
        let mcc = quotient(self.determinant(), scale, reason)?;
        // The roots are rounded, and what is perfect would fall short of 1 by as much.
        Ok(if self.false_positives == 0 && self.false_negatives == 0 {
            1.0
        } else if self.true_positives == 0 && self.true_negatives == 0 {
            -1.0
        } else {
            mcc.clamp(-1.0, 1.0)
        })
    }

    /// Cohen's kappa.
    pub fn kappa(&self) -> Score {
        let silent = self.true_negatives.saturating_add(self.false_negatives);
        let chance =
            real(self.flagged()) * real(self.negatives()) + real(self.positives()) * real(silent);
        if self.total() == 0 {
            return Err(EMPTY);
        }
        let reason = Undefined("all entries and all verdicts are of one class");
        quotient(2.0 * self.determinant(), chance, reason)
    }

    /// tp / (tp + fp + fn).
    pub fn jaccard(&self) -> Score {
        let union = self.positives().saturating_add(self.false_positives);
        share(self.true_positives, union, Undefined("no positive entries and nothing flagged"))
    }

    /// The metric with this id, if it follows from the counts alone. `fpr_hard` does too, on counts
    /// over the hard negatives.
    pub fn metric(&self, id: &str) -> Option<Score> {
        Some(match id {
            "precision" => self.precision(),
            "recall" => self.recall(),
            "f1" => self.f1(),
            "f0.5" => self.f_beta(0.5),
            "f2" => self.f_beta(2.0),
            "fpr" => self.fpr(),
            "fpr_hard" => self.fpr().map_err(|_| Undefined("no hard negatives")),
            "fnr" => self.fnr(),
            "specificity" => self.specificity(),
            "npv" => self.npv(),
            "accuracy" => self.accuracy(),
            "balanced_accuracy" => self.balanced_accuracy(),
            "mcc" => self.mcc(),
            "kappa" => self.kappa(),
            "jaccard" => self.jaccard(),
            _ => return None,
        })
    }

    /// Numerator and denominator of the metric with this id, if it is a share of entries: what
    /// [`wilson`](crate::stats::wilson) needs.
    pub fn proportion(&self, id: &str) -> Option<Proportion> {
        let (hits, of) = match id {
            "precision" => (self.true_positives, self.flagged()),
            "recall" => (self.true_positives, self.positives()),
            "fpr" | "fpr_hard" => (self.false_positives, self.negatives()),
            "fnr" => (self.false_negatives, self.positives()),
            "specificity" => (self.true_negatives, self.negatives()),
            "npv" => {
                (self.true_negatives, self.true_negatives.saturating_add(self.false_negatives))
            }
            "accuracy" => (self.true_positives.saturating_add(self.true_negatives), self.total()),
            "jaccard" => {
                (self.true_positives, self.positives().saturating_add(self.false_positives))
            }
            _ => return None,
        };
        Some(Proportion { hits, of })
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
            for metric in METRICS {
                if let Some(Ok(value)) = case.metric(metric.id) {
                    assert!((-1.0..=1.0).contains(&value), "{} {value}", metric.id);
                }
            }
        }
        let mut full = counts(huge, 0, 0, 0);
        full.add(true, true);
        assert_eq!(full.true_positives, huge);
    }

    #[test]
    fn a_weight_that_is_no_weight_is_refused() {
        for beta in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(counts(1, 1, 1, 1).f_beta(beta).is_err(), "{beta}");
        }
        assert_eq!(counts(3, 1, 5, 0).f_beta(0.0), counts(3, 1, 5, 0).precision());
    }

    #[test]
    fn a_proportion_is_the_metric_it_belongs_to() {
        let case = counts(7, 2, 3, 11);
        for metric in METRICS {
            if let Some(proportion) = case.proportion(metric.id) {
                let value = real(proportion.hits) / real(proportion.of);
                assert_eq!(case.metric(metric.id), Some(Ok(value)), "{}", metric.id);
            }
        }
    }

    #[test]
    fn lists_of_different_length_are_refused() {
        assert_eq!(
            Confusion::from_verdicts(&[true], &[]),
            Err(InputError::Lengths { first: 1, second: 0 })
        );
    }
}

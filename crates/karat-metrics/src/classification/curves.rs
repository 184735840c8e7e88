//! Metrics of scores: how well a detector ranks attacks above benign entries, at every threshold.
//!
//! Entries with equal scores are flagged together or not at all, so a tie is never broken in the
//! detector's favour. Thresholds mean "flag if the score is at least this".

use super::{Confusion, InputError, real, same_length};
use crate::metric::{Better, Metric, MetricKind, Unit};
use crate::{Score, Undefined};

const NO_POSITIVES: Undefined = Undefined("no positive entries");
const NO_NEGATIVES: Undefined = Undefined("no negative entries");
/// The most entries of a class: with as many of each, sums of counts and of pairs still fit.
const MAX_COUNT: u64 = u64::MAX / 2;
const BAD_CEILING: Undefined =
    Undefined("a ceiling for the false-positive rate must be between 0 and 1");

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        id: "roc_auc",
        summary: "The chance that an attack scores higher than a benign entry",
        formula: "(pairs ranked right + ½ tied pairs) ÷ (positives · negatives)",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "no positive entries, or no negative ones",
        notes: "The area under the ROC curve; 0.5 for guessing.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "average_precision",
        summary: "Precision averaged over the thresholds at which recall grows",
        formula: "Σ (recall(t) − recall(previous t)) · precision(t), over distinct scores",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "no positive entries",
        notes: "A sum of steps, not interpolated. The share of attacks for guessing. scikit-learn gives 0 \
            where it is undefined.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "recall_at_fpr_0",
        summary: "The share of attacks that score above every benign entry",
        formula: "the highest recall at a threshold with fpr = 0",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "no positive entries, or no negative ones",
        notes: RECALL_AT_FPR_NOTES,
        ..Metric::DEFAULT
    },
    Metric {
        id: "recall_at_fpr_1pct",
        summary: "Recall at the best threshold that flags at most 1 % of benign entries",
        formula: "the highest recall at a threshold with fpr ≤ 0.01",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "no positive entries, or no negative ones",
        notes: RECALL_AT_FPR_NOTES,
        ..Metric::DEFAULT
    },
    Metric {
        id: "recall_at_fpr_5pct",
        summary: "Recall at the best threshold that flags at most 5 % of benign entries",
        formula: "the highest recall at a threshold with fpr ≤ 0.05",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "no positive entries, or no negative ones",
        notes: RECALL_AT_FPR_NOTES,
        ..Metric::DEFAULT
    },
];

const RECALL_AT_FPR_NOTES: &str =
    "The threshold is chosen on the same data, so it flatters a little. Not interpolated.";

/// Truth and score of each entry, checked and sorted once.
///
/// ```
/// use karat_metrics::classification::Scores;
///
/// let scores = Scores::new(&[true, false, true, false], &[0.9, 0.8, 0.4, 0.1])?;
/// assert_eq!(scores.roc_auc(), Ok(0.75));
/// assert_eq!(scores.at_threshold(0.5).recall(), Ok(0.5));
/// # Ok::<(), karat_metrics::classification::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// One step per distinct score, from the highest down, with the entries flagged at that threshold.
    steps: Vec<Step>,
    positives: u64,
    negatives: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    threshold: f64,
    true_positives: u64,
    false_positives: u64,
}

/// The entries that share a score.
pub(super) struct Tied {
    pub(super) score: f64,
    pub(super) positives: u64,
    pub(super) negatives: u64,
}

/// The points of a ROC curve, from the strictest threshold to the laxest. It starts at (0, 0), at an
/// infinite threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct RocCurve {
    /// False-positive rates, ascending.
    pub fpr: Vec<f64>,
    /// True-positive rates, ascending.
    pub tpr: Vec<f64>,
    /// The lowest score that is flagged, descending.
    pub thresholds: Vec<f64>,
}

/// The points of a precision-recall curve, from the laxest threshold to the strictest, and a last
/// point (1, 0) without a threshold: the form scikit-learn gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct PrecisionRecallCurve {
    /// Precision at each threshold, then 1.
    pub precision: Vec<f64>,
    /// Recall at each threshold, then 0.
    pub recall: Vec<f64>,
    /// The lowest score that is flagged, ascending.
    pub thresholds: Vec<f64>,
}

/// A detector with its threshold fixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatingPoint {
    /// Entries with at least this score are flagged; infinite if none is.
    pub threshold: f64,
    /// The share of attacks flagged there.
    pub recall: f64,
    /// The share of benign entries flagged there.
    pub fpr: f64,
}

impl Scores {
    /// Takes the truth (`true` means positive) and the score of each entry; higher is more suspicious.
    ///
    /// # Errors
    /// If the lists differ in length, or a score is not finite.
    pub fn new(truth: &[bool], scores: &[f64]) -> Result<Scores, InputError> {
        same_length(truth.len(), scores.len())?;
        if let Some(index) = scores.iter().position(|score| !score.is_finite()) {
            return Err(InputError::NotFinite { index });
        }
        let mut entries: Vec<(f64, bool)> =
            scores.iter().copied().zip(truth.iter().copied()).collect();
        entries.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let (mut positives, mut negatives) = (0, 0);
        let mut steps = Vec::new();
        for tied in entries.chunk_by(|a, b| a.0 == b.0) {
            let hits = tied.iter().filter(|(_, positive)| *positive).count() as u64;
            positives += hits;
            negatives += tied.len() as u64 - hits;
            steps.push(Step {
                threshold: tied[0].0,
                true_positives: positives,
                false_positives: negatives,
            });
        }
        Ok(Scores { steps, positives, negatives })
    }

    /// Takes entries that are counted already: each score once, from the highest down, with the number
    /// of positive and negative entries that have it. For a bootstrap, which draws the same scores
    /// again.
    ///
    /// Scores in another order are sorted and equal ones taken together, those that are not finite are left
    /// out, and at most 2⁶³ − 1 entries of each class count.
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// let counted = Scores::from_ties([(0.9, 2, 0), (0.5, 1, 1)]);
    /// let listed = Scores::new(&[true, true, true, false], &[0.9, 0.9, 0.5, 0.5])?;
    /// assert_eq!(counted, listed);
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    pub fn from_ties(ties: impl IntoIterator<Item = (f64, u64, u64)>) -> Scores {
        let (mut positives, mut negatives) = (0_u64, 0_u64);
        let (mut previous, mut descending) = (f64::INFINITY, true);
        let mut steps = Vec::new();
        for (threshold, hits, alarms) in ties {
            if hits | alarms > 0 {
                positives = positives.saturating_add(hits);
                negatives = negatives.saturating_add(alarms);
                let (true_positives, false_positives) = (positives, negatives);
                steps.push(Step { threshold, true_positives, false_positives });
                // False from the first NaN or infinity on, too.
                descending &= threshold < previous;
                previous = threshold;
            }
        }
        if positives.max(negatives) > MAX_COUNT {
            for step in &mut steps {
                step.true_positives = step.true_positives.min(MAX_COUNT);
                step.false_positives = step.false_positives.min(MAX_COUNT);
            }
            (positives, negatives) = (positives.min(MAX_COUNT), negatives.min(MAX_COUNT));
        }
        let scores = Scores { steps, positives, negatives };
        if descending && previous != f64::NEG_INFINITY { scores } else { scores.in_order() }
    }

    /// The same entries by score, without those whose score is not finite.
    fn in_order(&self) -> Scores {
        // A score whose entries are beyond the limit has none left.
        let counts = |tied: &Tied| tied.score.is_finite() && tied.positives | tied.negatives > 0;
        let mut ties: Vec<Tied> = self.ties().filter(counts).collect();
        ties.sort_by(|a, b| b.score.total_cmp(&a.score));
        let (mut positives, mut negatives) = (0, 0);
        let mut steps: Vec<Step> = Vec::with_capacity(ties.len());
        for tied in ties.chunk_by(|a, b| a.score == b.score) {
            positives += tied.iter().map(|tied| tied.positives).sum::<u64>();
            negatives += tied.iter().map(|tied| tied.negatives).sum::<u64>();
            steps.push(Step {
                threshold: tied[0].score,
                true_positives: positives,
                false_positives: negatives,
            });
        }
        Scores { steps, positives, negatives }
    }

    /// Returns the number of positive entries.
    #[must_use]
    pub fn positives(&self) -> u64 {
        self.positives
    }

    /// The entries by score, from the highest down.
    pub(super) fn ties(&self) -> impl Iterator<Item = Tied> {
        let mut before = (0, 0);
        self.steps.iter().map(move |step| {
            let (hits, alarms) = before;
            before = (step.true_positives, step.false_positives);
            Tied {
                score: step.threshold,
                positives: step.true_positives - hits,
                negatives: step.false_positives - alarms,
            }
        })
    }

    /// Returns the counts when entries with at least this score are flagged.
    #[must_use]
    pub fn at_threshold(&self, threshold: f64) -> Confusion {
        let flagged = self.steps.partition_point(|step| step.threshold >= threshold);
        let (hits, alarms) = match flagged.checked_sub(1) {
            Some(last) => (self.steps[last].true_positives, self.steps[last].false_positives),
            None => (0, 0),
        };
        Confusion {
            true_positives: hits,
            false_positives: alarms,
            false_negatives: self.positives - hits,
            true_negatives: self.negatives - alarms,
        }
    }

    /// Returns the area under the ROC curve.
    ///
    /// # Errors
    /// If no entry is positive or none is negative.
    pub fn roc_auc(&self) -> Score {
        self.both_classes()?;
        // Twice the area in pairs: whole numbers, so the result does not depend on the order.
        let (mut twice, mut hits, mut alarms) = (0u128, 0, 0);
        for step in &self.steps {
            twice +=
                u128::from(step.false_positives - alarms) * u128::from(hits + step.true_positives);
            (hits, alarms) = (step.true_positives, step.false_positives);
        }
        #[expect(clippy::cast_precision_loss, reason = "rounded once, at the end")]
        let twice = twice as f64;
        Ok(twice / (2.0 * real(self.positives) * real(self.negatives)))
    }

    /// Returns the area under the ROC curve up to a false-positive rate, rescaled so that guessing is
    /// 0.5 and perfection 1 (McClish 1989; scikit-learn's `max_fpr`).
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// // The alarm scores above the second attack, so little is found while few alarms are allowed.
    /// let scores = Scores::new(&[true, false, true, false], &[0.9, 0.8, 0.4, 0.1])?;
    /// assert_eq!(scores.partial_auc(1.0), scores.roc_auc());
    /// assert!(scores.partial_auc(0.1).is_ok_and(|area| area < 0.74));
    /// assert!(scores.partial_auc(0.0).is_err());
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    ///
    /// # Errors
    /// As [`roc_auc`](Self::roc_auc), and if the rate is not above 0 and at most 1.
    pub fn partial_auc(&self, max_fpr: f64) -> Score {
        if !(max_fpr > 0.0 && max_fpr <= 1.0) {
            return Err(BAD_CEILING);
        }
        let curve = self.roc_curve_of_corners()?;
        let points: Vec<(f64, f64)> = curve.fpr.into_iter().zip(curve.tpr).collect();
        let mut area = 0.0;
        for pair in points.windows(2) {
            let ((from, low), (to, high)) = (pair[0], pair[1]);
            if to <= max_fpr {
                area += (to - from) * (low + high) / 2.0;
                continue;
            }
            let cut = low + (high - low) * ((max_fpr - from) / (to - from));
            area += (max_fpr - from) * (low + cut) / 2.0;
            break;
        }
        let guessing = 0.5 * max_fpr * max_fpr;
        Ok(0.5 * (1.0 + (area - guessing) / (max_fpr - guessing)))
    }

    /// Returns the sum of precision over the growth of recall.
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// // Half of the attacks are found at precision 1, the other half at 2/3.
    /// let scores = Scores::new(&[true, false, true], &[0.9, 0.8, 0.4])?;
    /// assert_eq!(scores.average_precision(), Ok((1.0 + 2.0 / 3.0) / 2.0));
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    ///
    /// # Errors
    /// If no entry is positive. (scikit-learn returns 0.)
    pub fn average_precision(&self) -> Score {
        if self.positives == 0 {
            return Err(NO_POSITIVES);
        }
        let mut hits = 0;
        let mut sum = 0.0;
        for step in &self.steps {
            sum += real(step.true_positives - hits) * step.precision();
            hits = step.true_positives;
        }
        Ok(sum / real(self.positives))
    }

    /// Returns the highest recall among thresholds with a false-positive rate of at most `ceiling`.
    ///
    /// # Errors
    /// If no entry is positive or none is negative, or the ceiling is not between 0 and 1.
    pub fn recall_at_fpr(&self, ceiling: f64) -> Score {
        Ok(self.best_under_fpr(ceiling)?.recall)
    }

    /// Returns the strictest threshold with the highest recall among those with a false-positive rate of
    /// at most `ceiling`.
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// let scores = Scores::new(&[true, true, false], &[0.9, 0.5, 0.5])?;
    /// let point = scores.best_under_fpr(0.0).unwrap();
    /// assert_eq!((point.threshold, point.recall), (0.9, 0.5));
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    ///
    /// # Errors
    /// As [`recall_at_fpr`](Self::recall_at_fpr).
    pub fn best_under_fpr(&self, ceiling: f64) -> Result<OperatingPoint, Undefined> {
        self.both_classes()?;
        if !(0.0..=1.0).contains(&ceiling) {
            return Err(BAD_CEILING);
        }
        let mut best = OperatingPoint { threshold: f64::INFINITY, recall: 0.0, fpr: 0.0 };
        for step in &self.steps {
            let point = OperatingPoint {
                threshold: step.threshold,
                recall: real(step.true_positives) / real(self.positives),
                fpr: real(step.false_positives) / real(self.negatives),
            };
            if point.fpr <= ceiling && point.recall > best.recall {
                best = point;
            }
        }
        Ok(best)
    }

    /// Returns the ROC curve with a point for every distinct score (scikit-learn's
    /// `drop_intermediate=False`).
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// let scores = Scores::new(&[true, false], &[0.9, 0.1])?;
    /// let curve = scores.roc_curve().unwrap();
    /// assert_eq!((curve.fpr, curve.tpr), (vec![0.0, 0.0, 1.0], vec![0.0, 1.0, 1.0]));
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    ///
    /// # Errors
    /// If no entry is positive or none is negative.
    pub fn roc_curve(&self) -> Result<RocCurve, Undefined> {
        self.curve_through(self.steps.iter())
    }

    /// Returns the ROC curve without the points that lie on a line with their neighbours in equal steps
    /// (scikit-learn's `drop_intermediate=True`): the same line with fewer points.
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// let scores = Scores::new(&[true, true, true, false], &[0.9, 0.8, 0.7, 0.1])?;
    /// let corners = scores.roc_curve_of_corners().unwrap();
    /// assert_eq!(corners.thresholds, [f64::INFINITY, 0.9, 0.7, 0.1]);
    /// assert_eq!(scores.roc_curve().unwrap().thresholds.len(), 5);
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    ///
    /// # Errors
    /// If no entry is positive or none is negative.
    pub fn roc_curve_of_corners(&self) -> Result<RocCurve, Undefined> {
        let last = self.steps.len().saturating_sub(1);
        let grows_alike = |before: u64, here: u64, after: u64| here - before == after - here;
        let corners = self.steps.iter().enumerate().filter(|(i, here)| {
            if *i == 0 || *i == last {
                return true;
            }
            let (before, after) = (&self.steps[i - 1], &self.steps[i + 1]);
            !(grows_alike(before.true_positives, here.true_positives, after.true_positives)
                && grows_alike(before.false_positives, here.false_positives, after.false_positives))
        });
        self.curve_through(corners.map(|(_, step)| step))
    }

    /// Returns precision and recall at every distinct score.
    ///
    /// ```
    /// use karat_metrics::classification::Scores;
    ///
    /// let scores = Scores::new(&[true, false], &[0.9, 0.1])?;
    /// let curve = scores.precision_recall_curve().unwrap();
    /// assert_eq!((curve.precision, curve.recall), (vec![0.5, 1.0, 1.0], vec![1.0, 1.0, 0.0]));
    /// # Ok::<(), karat_metrics::classification::InputError>(())
    /// ```
    ///
    /// # Errors
    /// If no entry is positive. (scikit-learn returns a recall of 1 at every threshold.)
    pub fn precision_recall_curve(&self) -> Result<PrecisionRecallCurve, Undefined> {
        if self.positives == 0 {
            return Err(NO_POSITIVES);
        }
        let upwards = || self.steps.iter().rev();
        Ok(PrecisionRecallCurve {
            precision: upwards().map(Step::precision).chain([1.0]).collect(),
            recall: upwards()
                .map(|step| real(step.true_positives) / real(self.positives))
                .chain([0.0])
                .collect(),
            thresholds: upwards().map(|step| step.threshold).collect(),
        })
    }

    fn curve_through<'a>(
        &self,
        steps: impl Iterator<Item = &'a Step>,
    ) -> Result<RocCurve, Undefined> {
        self.both_classes()?;
        let mut curve =
            RocCurve { fpr: vec![0.0], tpr: vec![0.0], thresholds: vec![f64::INFINITY] };
        for step in steps {
            curve.fpr.push(real(step.false_positives) / real(self.negatives));
            curve.tpr.push(real(step.true_positives) / real(self.positives));
            curve.thresholds.push(step.threshold);
        }
        Ok(curve)
    }

    fn both_classes(&self) -> Result<(), Undefined> {
        match (self.positives, self.negatives) {
            (0, _) => Err(NO_POSITIVES),
            (_, 0) => Err(NO_NEGATIVES),
            _ => Ok(()),
        }
    }
}

impl Step {
    fn precision(&self) -> f64 {
        real(self.true_positives) / real(self.true_positives + self.false_positives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_entries_are_the_same_entries() {
        let truth = [true, false, true, true, false, false];
        let scores = [3.0, 3.0, 2.0, 1.0, 1.0, 0.0];
        let counted = [(3.0, 1, 1), (2.5, 0, 0), (2.0, 1, 0), (1.0, 1, 1), (0.0, 0, 1)];
        assert_eq!(Scores::from_ties(counted), Scores::new(&truth, &scores).unwrap());
    }

    #[test]
    fn counted_entries_may_come_in_any_order() {
        let truth = [true, false, true, true, false, false];
        let scores = [3.0, 3.0, 2.0, 1.0, 1.0, 0.0];
        let listed = Scores::new(&truth, &scores).unwrap();
        let counted = [(0.0, 0, 1), (3.0, 1, 0), (1.0, 1, 1), (3.0, 0, 1), (2.0, 1, 0)];
        assert_eq!(Scores::from_ties(counted), listed);
        let zeros = Scores::from_ties([(0.0, 1, 0), (-0.0, 0, 1)]);
        assert_eq!(zeros, Scores::new(&[true, false], &[0.0, -0.0]).unwrap());
    }

    #[test]
    fn counted_entries_without_a_finite_score_are_left_out() {
        let rest = Scores::from_ties([(3.0, 1, 1), (2.0, 2, 0)]);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for place in 0..3 {
                let mut ties = vec![(3.0, 1, 1), (2.0, 2, 0)];
                ties.insert(place, (bad, 4, 5));
                assert_eq!(Scores::from_ties(ties), rest, "{bad} {place}");
            }
        }
        assert!(Scores::from_ties([(f64::NAN, 1, 1)]).roc_auc().is_err());
    }

    #[test]
    fn no_number_of_counted_entries_is_too_large() {
        let huge = u64::MAX;
        let cases = [
            vec![(0.9, huge, huge)],
            vec![(0.9, huge, 0), (0.5, 0, huge)],
            vec![(0.9, huge, 1), (0.5, 1, huge), (0.1, huge, huge)],
            vec![(0.5, 1, huge), (0.9, huge, 1)],
            vec![(0.5, huge, huge), (0.9, 0, 1)],
        ];
        for ties in cases {
            let scores = Scores::from_ties(ties.clone());
            let values = [
                scores.roc_auc(),
                scores.partial_auc(0.5),
                scores.average_precision(),
                scores.recall_at_fpr(0.1),
                scores.brier(),
                scores.at_threshold(0.7).recall(),
            ];
            for value in values {
                assert!(
                    value.is_ok_and(|value| (0.0..=1.0).contains(&value)),
                    "{ties:?} {value:?}"
                );
            }
            assert!(scores.roc_curve().is_ok() && scores.precision_recall_curve().is_ok());
            assert!(scores.roc_curve_of_corners().is_ok());
        }
        assert_eq!(Scores::from_ties([(0.9, huge, 0), (0.5, 0, huge)]).roc_auc(), Ok(1.0));
    }

    #[test]
    fn scores_that_are_not_numbers_are_rejected_by_position() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = Scores::new(&[true, false], &[0.5, bad]);
            assert_eq!(refused, Err(InputError::NotFinite { index: 1 }));
        }
        assert!(Scores::new(&[true], &[]).is_err());
    }

    #[test]
    fn one_class_has_no_curve() {
        let benign = Scores::new(&[false, false], &[0.1, 0.2]).unwrap();
        assert_eq!(benign.roc_auc(), Err(NO_POSITIVES));
        assert_eq!(benign.average_precision(), Err(NO_POSITIVES));
        let attacks = Scores::new(&[true, true], &[0.1, 0.2]).unwrap();
        assert_eq!(attacks.recall_at_fpr(0.1), Err(NO_NEGATIVES));
        assert_eq!(attacks.average_precision(), Ok(1.0));
        assert!(Scores::new(&[], &[]).unwrap().roc_curve().is_err());
    }

    #[test]
    fn ceilings_outside_zero_to_one_are_rejected() {
        let scores = Scores::new(&[false, true], &[0.1, 0.9]).unwrap();
        for ceiling in [-0.1, 1.1, f64::NAN] {
            assert_eq!(scores.recall_at_fpr(ceiling), Err(BAD_CEILING));
            assert_eq!(scores.partial_auc(ceiling), Err(BAD_CEILING));
        }
        assert_eq!(scores.partial_auc(0.0), Err(BAD_CEILING));
    }

    #[test]
    fn zero_and_minus_zero_are_the_same_score() {
        let scores = Scores::new(&[true, false], &[-0.0, 0.0]).unwrap();
        assert_eq!(scores.roc_auc(), Ok(0.5));
    }

    #[test]
    fn a_threshold_flags_scores_at_least_as_high() {
        let scores = Scores::new(&[true, true, false], &[0.9, 0.5, 0.5]).unwrap();
        assert_eq!(scores.at_threshold(0.5).flagged(), 3);
        assert_eq!(scores.at_threshold(0.51).flagged(), 1);
        assert_eq!(scores.at_threshold(1.0).flagged(), 0);
        let point = scores.best_under_fpr(0.0).unwrap();
        assert_eq!(point, OperatingPoint { threshold: 0.9, recall: 0.5, fpr: 0.0 });
    }
}

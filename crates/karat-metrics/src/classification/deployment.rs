//! Rates outside the corpus: rare attacks and unanswered entries.

use super::real;
use crate::metric::{Better, Metric, MetricKind, Unit};
use crate::{Score, Undefined};

/// The metrics of this file.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        id: "precision_at_prevalence_1pct",
        summary: "The share of alarms that would be right if 1 % of entries were attacks",
        formula: "recall·π ÷ (recall·π + fpr·(1 − π)), π = 0.01",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "recall or fpr is undefined, or both are 0",
        notes: PREVALENCE_NOTES,
        ..Metric::DEFAULT
    },
    Metric {
        id: "precision_at_prevalence_0.1pct",
        summary: "The share of alarms that would be right if 0.1 % of entries were attacks",
        formula: "recall·π ÷ (recall·π + fpr·(1 − π)), π = 0.001",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Aggregate,
        undefined: "recall or fpr is undefined, or both are 0",
        notes: PREVALENCE_NOTES,
        ..Metric::DEFAULT
    },
    Metric {
        id: "coverage",
        summary: "The share of entries the detector gave a verdict on",
        formula: "entries with a verdict ÷ entries asked",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no entries",
        notes: "The other rates are over entries with a verdict: read them together with it.",
        ..Metric::DEFAULT
    },
];

const PREVALENCE_NOTES: &str = "A corpus holds far more attacks than the world: recall 0.90 and fpr \
    0.01 are a precision of 0.99 on a balanced corpus, 0.48 at 1 % and 0.08 at 0.1 %.";

/// Returns the precision that these rates give where a share `prevalence` of all entries is positive.
///
/// ```
/// use karat_metrics::classification::precision_at_prevalence;
///
/// // 90 % of attacks and 1 % of the rest are flagged: half of the alarms are false at 1 %.
/// let precision = precision_at_prevalence(0.9, 0.01, 0.01)?;
/// assert!((precision - 0.476).abs() < 0.001);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If an argument is not between 0 and 1, or nothing would be flagged.
pub fn precision_at_prevalence(recall: f64, fpr: f64, prevalence: f64) -> Score {
    if [recall, fpr, prevalence].iter().any(|rate| !(0.0..=1.0).contains(rate)) {
        return Err(Undefined("recall, fpr and prevalence must be between 0 and 1"));
    }
    let right = recall * prevalence;
    let flagged = right + fpr * (1.0 - prevalence);
    if flagged == 0.0 { Err(Undefined("nothing would be flagged")) } else { Ok(right / flagged) }
}

/// Returns the share of `asked` entries that were answered.
///
/// ```
/// assert_eq!(karat_metrics::classification::coverage(9, 10), Ok(0.9));
/// ```
///
/// # Errors
/// If `asked` is 0 or below `answered`.
pub fn coverage(answered: u64, asked: u64) -> Score {
    if asked == 0 {
        return Err(Undefined("no entries"));
    }
    if answered > asked {
        return Err(Undefined("more answers than entries"));
    }
    Ok(real(answered) / real(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_detector_is_mostly_wrong_where_attacks_are_rare() {
        for (prevalence, precision) in [(0.5, 0.989), (0.01, 0.476), (0.001, 0.083)] {
            let ours = precision_at_prevalence(0.9, 0.01, prevalence).unwrap();
            assert!((ours - precision).abs() < 0.0005, "{prevalence}: {ours}");
        }
    }

    #[test]
    fn a_detector_that_flags_nothing_has_no_precision() {
        assert!(precision_at_prevalence(0.0, 0.0, 0.01).is_err());
        assert!(precision_at_prevalence(1.0, 0.0, 0.0).is_err());
        assert!(precision_at_prevalence(f64::NAN, 0.0, 0.5).is_err());
        assert!(coverage(0, 0).is_err());
        assert!(coverage(2, 1).is_err());
    }
}

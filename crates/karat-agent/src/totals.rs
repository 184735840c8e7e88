//! Means and intervals of any number of scores, in constant memory.

use karat_metrics::stats::{Interval, student_two_sided_quantile};

use crate::scores::Score;

/// A running sum that keeps the digits which a plain one loses over millions of scores (Neumaier).
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// The scores of one metric.
#[derive(Clone, Copy, Default)]
pub(crate) struct Total {
    sum: Sum,
    squares: f64,
    /// The number of scores.
    pub(crate) n: u64,
    /// The number of traces on which the metric is undefined.
    pub(crate) left_out: u64,
    /// The reason of the first of them.
    pub(crate) undefined: Option<&'static str>,
    /// The number of traces that reach the metric's threshold, if it has one.
    pub(crate) succeeded: Option<u64>,
    /// The number of scores that are 1, and of those between 0 and 1.
    whole: u64,
    in_part: u64,
}

impl Total {
    pub(crate) fn add(&mut self, score: Score) {
        match score {
            Ok(score) => {
                self.sum.add(score);
                self.squares += score * score;
                self.n += 1;
                self.whole += u64::from(score == 1.0);
                self.in_part += u64::from(score != 0.0 && score != 1.0);
            }
            Err(reason) => {
                self.left_out += 1;
                self.undefined = self.undefined.or(Some(reason));
            }
        }
    }

    pub(crate) fn judged(&mut self, success: Option<bool>) {
        if let Some(success) = success {
            *self.succeeded.get_or_insert(0) += u64::from(success);
        }
    }

    /// The mean; none without a score.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum.value() / self.n as f64)
    }

    /// The number of hits, if every score is a hit or a miss.
    pub(crate) fn hits(&self) -> Option<u64> {
        (self.n > 0 && self.in_part == 0).then_some(self.whole)
    }

    /// The t interval of the mean at 95 %, held to 0 and 1 if the scores are shares. None for fewer than
    /// two scores, or if all of them are equal, which would claim certainty.
    pub(crate) fn interval(&self, is_share: bool) -> Option<Interval> {
        let (mean, count) = (self.mean()?, self.n as f64);
        let variance = (self.squares - count * mean * mean) / (count - 1.0);
        // The rest of a variance of 0 after rounding, and the 0/0 of a single score.
        if variance.is_nan() || variance <= 1e-12 {
            return None;
        }
        let reach = student_two_sided_quantile(0.05, count - 1.0) * (variance / count).sqrt();
        let (low, high) = (mean - reach, mean + reach);
        Some(match is_share {
            true => Interval { low: low.max(0.0), high: high.min(1.0) },
            false => Interval { low, high },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(scores: &[f64]) -> Total {
        let mut total = Total::default();
        scores.iter().for_each(|score| total.add(Ok(*score)));
        total
    }

    #[test]
    fn the_interval_is_that_of_the_whole_sample() {
        let scores = [1.0, 0.0, 0.5, 1.0, 0.25];
        let whole = karat_metrics::stats::t_interval(&scores, 0.95).unwrap();
        let found = total(&scores).interval(true).unwrap();
        // The t interval itself leaves the range of the scores here.
        assert!((found.low - whole.low.max(0.0)).abs() < 1e-12);
        assert!((found.high - whole.high.min(1.0)).abs() < 1e-12);
        assert_eq!(total(&[1.0; 3]).interval(true), None);
        assert_eq!(total(&[0.5]).interval(true), None);
    }

    #[test]
    fn a_running_sum_keeps_small_terms() {
        assert_eq!(total(&[1.0, 1e100, 1.0, -1e100]).mean(), Some(0.5));
    }

    #[test]
    fn undefined_scores_are_counted_with_the_first_reason() {
        let mut total = total(&[1.0]);
        total.add(Err("first"));
        total.add(Err("second"));
        assert_eq!((total.n, total.left_out, total.undefined), (1, 2, Some("first")));
    }
}

//! Means over queries.
//!
//! Sums compensate their rounding error, so the result hardly depends on the number of queries and
//! their order. A query where a measure is undefined is left out of that measure's mean and counted.

use super::judged::JudgedRanking;
use super::measure::Measure;
use crate::{Score, Undefined};

/// A running mean of one measure.
///
/// ```
/// use karat_metrics::Undefined;
/// use karat_metrics::ranking::Mean;
///
/// let mut mean = Mean::default();
/// mean.add(Ok(1.0));
/// mean.add(Ok(0.5));
/// mean.add(Err(Undefined("no document is judged 0")));
/// assert_eq!((mean.value(), mean.count(), mean.undefined()), (Ok(0.75), 2, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    sum: f64,
    /// The rounding error of `sum` so far.
    lost: f64,
    count: usize,
    undefined: usize,
}

impl Mean {
    /// Adds one query's value, or counts it as undefined. After a value that is not finite, or a sum that
    /// is too large for a number, the mean is undefined.
    pub fn add(&mut self, score: Score) {
        let Ok(value) = score else {
            self.undefined += 1;
            return;
        };
        self.count += 1;
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    /// Returns the mean of the values so far.
    ///
    /// # Errors
    /// If no query had a value, or one of them or their sum is not finite.
    pub fn value(&self) -> Score {
        if self.count == 0 {
            return Err(Undefined("no query has a value"));
        }
        let mean = (self.sum + self.lost) / self.count as f64;
        if !mean.is_finite() {
            return Err(Undefined("a value, or the sum of all of them, is not a finite number"));
        }
        Ok(mean)
    }

    /// Returns the number of queries that had a value.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of queries for which the measure was undefined.
    #[must_use]
    pub fn undefined(&self) -> usize {
        self.undefined
    }
}

/// The two means of a list of measures: over the queries that have results (trec_eval without
/// `-c`), and over all judged queries, where one without results counts as an empty list
/// (trec_eval `-c`, ir_measures, ranx `make_comparable`).
///
/// ```
/// use karat_metrics::ranking::{Averages, JudgedRanking, Measure, Rules};
///
/// let mut averages = Averages::new(&[Measure::known("mrr")]);
/// averages.add_evaluated(&JudgedRanking::from_grades([1], [Some(1)], &Rules::default()));
/// averages.add_missing(&JudgedRanking::from_grades([1], [], &Rules::default()));
/// assert_eq!(averages.over_evaluated()[0].value(), Ok(1.0));
/// assert_eq!(averages.over_all()[0].value(), Ok(0.5));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Averages {
    measures: Vec<Measure>,
    evaluated: Vec<Mean>,
    all: Vec<Mean>,
    scores: Vec<Score>,
}

impl Averages {
    /// Starts with no queries.
    #[must_use]
    pub fn new(measures: &[Measure]) -> Self {
        let empty = vec![Mean::default(); measures.len()];
        Self {
            measures: measures.to_vec(),
            evaluated: empty.clone(),
            all: empty,
            scores: Vec::with_capacity(measures.len()),
        }
    }

    /// Adds a query that has results. An empty list counts too.
    pub fn add_evaluated(&mut self, ranking: &JudgedRanking) {
        self.score(ranking);
        for ((mean, all), score) in self.evaluated.iter_mut().zip(&mut self.all).zip(&self.scores) {
            mean.add(*score);
            all.add(*score);
        }
    }

    /// Adds a judged query that the run does not have: its judgements with no results.
    pub fn add_missing(&mut self, ranking: &JudgedRanking) {
        self.score(ranking);
        for (all, score) in self.all.iter_mut().zip(&self.scores) {
            all.add(*score);
        }
    }

    fn score(&mut self, ranking: &JudgedRanking) {
        self.scores.clear();
        self.scores.extend(self.measures.iter().map(|measure| ranking.score(*measure)));
    }

    /// Returns the measures, in the order in which they were given.
    #[must_use]
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Returns the values of the query that was added last, in the order of the measures.
    pub fn latest(&self) -> &[Score] {
        &self.scores
    }

    /// Returns the means over the queries that have results, in the order of the measures.
    #[must_use]
    pub fn over_evaluated(&self) -> &[Mean] {
        &self.evaluated
    }

    /// Returns the means over all judged queries, in the order of the measures.
    #[must_use]
    pub fn over_all(&self) -> &[Mean] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::Rules;

    fn averages(measures: &[&str]) -> Averages {
        let measures: Vec<Measure> = measures.iter().map(|id| id.parse().unwrap()).collect();
        Averages::new(&measures)
    }

    fn ranking(judged: &[i64], ranked: &[Option<i64>]) -> JudgedRanking {
        JudgedRanking::from_grades(
            judged.iter().copied(),
            ranked.iter().copied(),
            &Rules::default(),
        )
    }

    #[test]
    fn a_missing_query_counts_in_one_mean_only() {
        let mut averages = averages(&["mrr"]);
        averages.add_evaluated(&ranking(&[1], &[Some(1)]));
        averages.add_missing(&ranking(&[1], &[]));
        assert_eq!(averages.over_evaluated()[0].value(), Ok(1.0));
        assert_eq!(averages.over_all()[0].value(), Ok(0.5));
    }

    #[test]
    fn an_undefined_value_is_left_out_and_counted() {
        let mut averages = averages(&["hard_negative_rate", "mrr"]);
        averages.add_evaluated(&ranking(&[1, 0], &[Some(0)]));
        averages.add_evaluated(&ranking(&[1], &[Some(1)]));
        let [rate, mrr] = averages.over_evaluated() else { panic!("two measures") };
        assert_eq!((rate.value(), rate.count(), rate.undefined()), (Ok(1.0), 1, 1));
        assert_eq!((mrr.value(), mrr.count(), mrr.undefined()), (Ok(0.5), 2, 0));
    }

    #[test]
    fn a_mean_of_no_queries_is_undefined_and_not_zero() {
        assert!(averages(&["mrr"]).over_evaluated()[0].value().is_err());
    }

    #[test]
    fn values_that_are_not_finite_have_no_mean() {
        for bad in
            [&[f64::INFINITY][..], &[f64::NAN], &[f64::INFINITY, f64::NEG_INFINITY], &[1.7e308; 2]]
        {
            let mut mean = Mean::default();
            mean.add(Ok(0.5));
            bad.iter().for_each(|value| mean.add(Ok(*value)));
            mean.add(Ok(0.5));
            assert!(mean.value().is_err(), "{bad:?}: {mean:?}");
            assert_eq!(mean.count(), bad.len() + 2);
        }
    }

    #[test]
    fn small_values_survive_a_large_sum() {
        let mut mean = Mean::default();
        mean.add(Ok(1e16));
        for _ in 0..1000 {
            mean.add(Ok(1.0));
        }
        mean.add(Ok(-1e16));
        assert_eq!(mean.value(), Ok(1000.0 / 1002.0));
    }
}

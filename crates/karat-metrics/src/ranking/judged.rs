//! One query's results joined with its judgements.
//!
//! The join and the sort happen once, here. Only little is kept: the few results that have a
//! positive grade or count as relevant, with their ranks, and the grades of the ideal ranking. Every
//! measure is a short sum over those. A negative grade means "in the pool but not judged", as in
//! trec_eval: neither relevant nor judged non-relevant.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use super::order::{Rules, TieRule};

/// The number of results from the top that a measure looks at.
pub(super) type Cut = NonZeroU32;

/// The cut-off k, for tests.
#[cfg(test)]
pub(super) fn cut(k: u32) -> Cut {
    Cut::new(k).unwrap()
}

/// The reason why a ranking cannot be scored.
#[derive(Clone, Debug, PartialEq)]
pub enum RankingError {
    /// The results list one document twice, so its rank is not defined.
    DuplicateResult {
        /// The document.
        id: String,
    },
    /// The judgements list one document twice.
    DuplicateJudgement {
        /// The document.
        id: String,
    },
    /// A score is NaN or infinite, so the order is not defined.
    ScoreNotFinite {
        /// The document.
        id: String,
        /// Its score.
        score: f64,
    },
}

impl std::fmt::Display for RankingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DuplicateResult { id } => write!(f, "`{id}` is listed twice among the results"),
            Self::DuplicateJudgement { id } => write!(f, "`{id}` is judged twice"),
            Self::ScoreNotFinite { id, score } => {
                write!(f, "the score of `{id}` is {score}: not a finite number")
            }
        }
    }
}

impl std::error::Error for RankingError {}

/// A result that affects some measure: it is relevant or has a positive grade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hit {
    /// Its rank, from 1.
    pub(super) rank: usize,
    pub(super) grade: i64,
    pub(super) relevant: bool,
    /// The number of judged non-relevant results above it.
    pub(super) nonrelevant_above: usize,
}

/// One query's results joined with its judgements, ready to be [scored](JudgedRanking::score).
///
/// ```
/// use karat_metrics::ranking::{JudgedRanking, Measure, Rules};
///
/// let judgements = [("a", 2), ("b", 1), ("c", 0)];
/// let results = [("b", 0.7), ("x", 0.9), ("a", 0.4)];
/// let ranking = JudgedRanking::from_scored(judgements, results, &Rules::default())?;
/// assert_eq!(ranking.score(Measure::known("recall@2")), Ok(0.5));
/// assert_eq!(ranking.score(Measure::known("mrr")), Ok(0.5));
/// # Ok::<(), karat_metrics::ranking::RankingError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedRanking {
    pub(super) hits: Vec<Hit>,
    /// The positive grades among the judgements, greatest first.
    pub(super) ideal: Vec<i64>,
    pub(super) retrieved: usize,
    pub(super) relevant: usize,
    pub(super) relevant_retrieved: usize,
    /// Judged, and not relevant.
    pub(super) nonrelevant: usize,
    nonrelevant_retrieved: usize,
    /// Judged 0, and not relevant.
    pub(super) hard_negatives: usize,
    pub(super) first_hard_negative: Option<usize>,
}

impl JudgedRanking {
    /// Joins judgements with scored results, which are sorted by `rules`.
    ///
    /// # Errors
    /// If a document is judged or listed twice, or a score is not finite.
    pub fn from_scored<'a, 'b>(
        judgements: impl IntoIterator<Item = (&'a str, i64)>,
        results: impl IntoIterator<Item = (&'b str, f64)>,
        rules: &Rules,
    ) -> Result<Self, RankingError> {
        let mut judged = Judged::new(judgements)?;
        let mut scored = Vec::new();
        for (id, score) in results {
            if !score.is_finite() {
                return Err(RankingError::ScoreNotFinite { id: id.to_owned(), score });
            }
            scored.push((rules.precision.key(score), id, judged.take(id)?));
        }
        let by_score = |left: &Scored<'_>, right: &Scored<'_>| {
            let by_id = || rules.ties.compare_ids(left.1.as_bytes(), right.1.as_bytes());
            right.0.cmp(&left.0).then_with(by_id)
        };
        match rules.ties {
            TieRule::Insertion => scored.sort_by(by_score),
            TieRule::IdDescending | TieRule::IdAscending => scored.sort_unstable_by(by_score),
        }
        let grades = scored.into_iter().map(|(_, _, grade)| grade);
        Ok(Self::from_grades(judged.grades, grades, rules))
    }

    /// Joins judgements with results that are in order already, best first.
    ///
    /// ```
    /// use karat_metrics::ranking::{JudgedRanking, RankingError, Rules};
    ///
    /// let twice = JudgedRanking::from_ordered([("a", 1)], ["a", "a"], &Rules::default());
    /// assert_eq!(twice, Err(RankingError::DuplicateResult { id: "a".to_owned() }));
    /// ```
    ///
    /// # Errors
    /// If a document is judged or listed twice.
    pub fn from_ordered<'a, 'b>(
        judgements: impl IntoIterator<Item = (&'a str, i64)>,
        results: impl IntoIterator<Item = &'b str>,
        rules: &Rules,
    ) -> Result<Self, RankingError> {
        let mut judged = Judged::new(judgements)?;
        let ranked: Vec<_> =
            results.into_iter().map(|id| judged.take(id)).collect::<Result<_, _>>()?;
        Ok(Self::from_grades(judged.grades, ranked, rules))
    }

    /// Takes a join that is done already: the grades of all judgements in any order, and for each
    /// result, best first, its grade or `None` if it was not judged. The grades of results must be
    /// among those of the judgements; otherwise the values are meaningless.
    ///
    /// ```
    /// use karat_metrics::ranking::{JudgedRanking, Measure, Rules};
    ///
    /// let ranking = JudgedRanking::from_grades([1, 1, 0], [None, Some(1)], &Rules::default());
    /// assert_eq!(ranking.score(Measure::known("p@2")), Ok(0.5));
    /// ```
    pub fn from_grades(
        judged: impl IntoIterator<Item = i64>,
        ranked: impl IntoIterator<Item = Option<i64>>,
        rules: &Rules,
    ) -> Self {
        let mut ranking = Self::default();
        ranking.refill(judged, ranked, rules);
        ranking
    }

    /// As [`from_grades`](Self::from_grades), but reuses the memory of an earlier query.
    ///
    /// ```
    /// use karat_metrics::ranking::{JudgedRanking, Rules};
    ///
    /// let mut ranking = JudgedRanking::default();
    /// for grades in [[1, 0, 1], [0, 0, 1]] {
    ///     ranking.refill(grades, grades.map(Some), &Rules::default());
    /// }
    /// assert_eq!(ranking.relevant_count(), 1);
    /// ```
    pub fn refill(
        &mut self,
        judged: impl IntoIterator<Item = i64>,
        ranked: impl IntoIterator<Item = Option<i64>>,
        rules: &Rules,
    ) {
        let mut retrieved = 0;
        let places = ranked.into_iter().inspect(|_| retrieved += 1).zip(1..);
        let placed = places.filter_map(|(grade, rank)| Some((rank, grade?)));
        self.fill_judgements(judged, rules);
        self.fill_results(placed, rules);
        self.count_retrieved(retrieved, rules);
    }

    /// As [`refill`](Self::refill), without the whole list of results: takes their number, and the rank
    /// (from 1, among all results) and grade of each judged one, best first. Ranks must rise and stay
    /// within the number of results; otherwise the values are meaningless. There is no rank 0: a result at
    /// it is left out, as if it had not been judged.
    ///
    /// ```
    /// use karat_metrics::ranking::{JudgedRanking, Measure, Rules};
    ///
    /// let mut ranking = JudgedRanking::default();
    /// ranking.refill_placed([1, 1], 1_000, [(4, 1)], &Rules::default());
    /// assert_eq!(ranking.score(Measure::known("mrr")), Ok(0.25));
    /// ranking.refill_placed([1, 1], 1_000, [(0, 1)], &Rules::default());
    /// assert_eq!(ranking.score(Measure::known("mrr")), Ok(0.0));
    /// ```
    pub fn refill_placed(
        &mut self,
        judged: impl IntoIterator<Item = i64>,
        retrieved: usize,
        placed: impl IntoIterator<Item = (usize, i64)>,
        rules: &Rules,
    ) {
        self.fill_judgements(judged, rules);
        self.fill_results(placed.into_iter().filter(|(rank, _)| *rank > 0), rules);
        self.count_retrieved(retrieved, rules);
    }

    fn fill_judgements(&mut self, judged: impl IntoIterator<Item = i64>, rules: &Rules) {
        self.ideal.clear();
        (self.relevant, self.nonrelevant, self.hard_negatives) = (0, 0, 0);
        for grade in judged {
            if grade > 0 {
                self.ideal.push(grade);
            }
            if grade < 0 {
                continue;
            }
            if rules.is_relevant(grade) {
                self.relevant += 1;
            } else {
                self.nonrelevant += 1;
                self.hard_negatives += usize::from(grade == 0);
            }
        }
        self.ideal.sort_unstable_by(|left, right| right.cmp(left));
    }

    fn fill_results(&mut self, placed: impl IntoIterator<Item = (usize, i64)>, rules: &Rules) {
        self.hits.clear();
        self.first_hard_negative = None;
        (self.relevant_retrieved, self.nonrelevant_retrieved) = (0, 0);
        for (rank, grade) in placed.into_iter().filter(|(_, grade)| *grade >= 0) {
            let judged_above = self.relevant_retrieved + self.nonrelevant_retrieved;
            let rank = if rules.judged_only { judged_above + 1 } else { rank };
            let relevant = rules.is_relevant(grade);
            if relevant || grade > 0 {
                let nonrelevant_above = self.nonrelevant_retrieved;
                self.hits.push(Hit { rank, grade, relevant, nonrelevant_above });
            }
            if relevant {
                self.relevant_retrieved += 1;
            } else {
                self.nonrelevant_retrieved += 1;
                if grade == 0 && self.first_hard_negative.is_none() {
                    self.first_hard_negative = Some(rank);
                }
            }
        }
    }

    fn count_retrieved(&mut self, all: usize, rules: &Rules) {
        let judged = self.relevant_retrieved + self.nonrelevant_retrieved;
        self.retrieved = if rules.judged_only { judged } else { all };
    }

    /// Returns the number of documents that are judged relevant. With 0, every measure that is defined
    /// has the value 0 and the query stays in the mean, as in trec_eval; check here to leave it out.
    #[must_use]
    pub fn relevant_count(&self) -> usize {
        self.relevant
    }

    /// Returns the number of results (with `judged_only`, of those that were judged).
    #[must_use]
    pub fn retrieved_count(&self) -> usize {
        self.retrieved
    }

    /// Returns the number of relevant results.
    #[must_use]
    pub fn relevant_retrieved_count(&self) -> usize {
        self.relevant_retrieved
    }

    /// The relevant results, best first.
    pub(super) fn relevant_hits(&self) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(|hit| hit.relevant)
    }

    /// The number of relevant results among the first k.
    pub(super) fn relevant_within(&self, k: Cut) -> usize {
        self.relevant_hits().take_while(|hit| hit.rank <= limit(k)).count()
    }
}

/// A sort key, an id and its grade.
type Scored<'b> = (u64, &'b str, Option<i64>);

/// A cut-off as a rank.
pub(super) fn limit(k: Cut) -> usize {
    usize::try_from(k.get()).unwrap_or(usize::MAX)
}

/// `part / whole`, and 0 for an empty whole, as in trec_eval.
pub(super) fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The sum. Of nothing it is 0; `Iterator::sum` returns -0, and a report would show it.
pub(super) fn total(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}

/// The judgements of a query, looked up once for each result.
struct Judged<'a, 'b> {
    by_id: HashMap<&'a str, i64>,
    grades: Vec<i64>,
    taken: HashSet<&'b str>,
}

impl<'a, 'b> Judged<'a, 'b> {
    fn new(judgements: impl IntoIterator<Item = (&'a str, i64)>) -> Result<Self, RankingError> {
        let mut by_id = HashMap::new();
        let mut grades = Vec::new();
        for (id, grade) in judgements {
            match by_id.entry(id) {
                Entry::Occupied(_) => {
                    return Err(RankingError::DuplicateJudgement { id: id.to_owned() });
                }
                Entry::Vacant(place) => place.insert(grade),
            };
            grades.push(grade);
        }
        Ok(Self { by_id, grades, taken: HashSet::new() })
    }

    /// The grade of a result. A second request for the same result is an error.
    fn take(&mut self, id: &'b str) -> Result<Option<i64>, RankingError> {
        if !self.taken.insert(id) {
            return Err(RankingError::DuplicateResult { id: id.to_owned() });
        }
        Ok(self.by_id.get(id).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::ScorePrecision;

    fn rules() -> Rules {
        Rules::default()
    }

    #[test]
    fn ties_go_to_the_greater_id_unless_a_rule_says_otherwise() {
        let judgements = [("a", 1)];
        let results = [("b", 1.0), ("a", 1.0), ("c", 1.0)];
        let rank = |ties| {
            let rules = Rules { ties, ..rules() };
            JudgedRanking::from_scored(judgements, results, &rules).unwrap().hits[0].rank
        };
        assert_eq!(rank(TieRule::IdDescending), 3);
        assert_eq!(rank(TieRule::IdAscending), 1);
        assert_eq!(rank(TieRule::Insertion), 2);
    }

    #[test]
    fn scores_that_differ_in_double_precision_only_can_tie() {
        let judgements = [("a", 1)];
        let results = [("a", 0.100_000_001), ("b", 0.1)];
        let rank = |precision| {
            let rules = Rules { precision, ..rules() };
            JudgedRanking::from_scored(judgements, results, &rules).unwrap().hits[0].rank
        };
        assert_eq!(rank(ScorePrecision::F64), 1);
        assert_eq!(rank(ScorePrecision::F32), 2);
    }

    #[test]
    fn a_document_listed_twice_is_an_error() {
        let twice = RankingError::DuplicateResult { id: "a".to_owned() };
        assert_eq!(JudgedRanking::from_ordered([], ["a", "b", "a"], &rules()), Err(twice.clone()));
        assert_eq!(JudgedRanking::from_scored([], [("a", 2.0), ("a", 1.0)], &rules()), Err(twice));
    }

    #[test]
    fn a_document_judged_twice_is_an_error() {
        let judged = [("a", 1), ("a", 1)];
        let error = RankingError::DuplicateJudgement { id: "a".to_owned() };
        assert_eq!(JudgedRanking::from_ordered(judged, [], &rules()), Err(error));
    }

    #[test]
    fn a_score_that_is_not_finite_is_an_error() {
        for score in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = JudgedRanking::from_scored([], [("a", score)], &rules()).unwrap_err();
            assert!(
                matches!(error, RankingError::ScoreNotFinite { ref id, .. } if id == "a"),
                "{error}"
            );
        }
    }

    #[test]
    fn judged_only_closes_the_gaps_of_unjudged_results() {
        let rules = Rules { judged_only: true, ..rules() };
        let judged = [("a", 1), ("b", 0), ("withdrawn", -1)];
        let results = ["x", "withdrawn", "b", "y", "a"];
        let ranking = JudgedRanking::from_ordered(judged, results, &rules).unwrap();
        assert_eq!(ranking.retrieved_count(), 2);
        assert_eq!(ranking.hits[0].rank, 2);
    }

    #[test]
    fn a_negative_grade_is_neither_relevant_nor_a_judged_negative() {
        let ranking =
            JudgedRanking::from_grades([-1, -2, 1], [Some(-1), Some(-2), Some(1)], &rules());
        assert_eq!(ranking.relevant_count(), 1);
        assert_eq!(ranking.hard_negatives, 0);
        assert_eq!(ranking.hits, [Hit { rank: 3, grade: 1, relevant: true, nonrelevant_above: 0 }]);
    }

    #[test]
    fn the_relevance_level_moves_grades_between_relevant_and_not() {
        let counts = |relevance_level| {
            let rules = Rules { relevance_level, ..rules() };
            let ranking =
                JudgedRanking::from_grades([0, 1, 2], [Some(1), Some(2), Some(0)], &rules);
            (ranking.relevant_count(), ranking.relevant_retrieved_count(), ranking.nonrelevant)
        };
        assert_eq!(counts(0), (3, 3, 0));
        assert_eq!(counts(1), (2, 2, 1));
        assert_eq!(counts(2), (1, 1, 2));
        assert_eq!(counts(3), (0, 0, 3));
    }

    #[test]
    fn refilling_forgets_the_previous_query() {
        let mut ranking = JudgedRanking::from_grades([3, 0, 2], [Some(0), Some(3), None], &rules());
        ranking.refill([1], [None, Some(1)], &rules());
        assert_eq!(ranking, JudgedRanking::from_grades([1], [None, Some(1)], &rules()));
    }

    #[test]
    fn placing_the_judged_results_equals_listing_all() {
        for judged_only in [false, true] {
            let rules = Rules { judged_only, ..rules() };
            let judged = [2, 0, -1, 1, 1];
            let ranked = [None, Some(0), Some(-1), None, Some(2), Some(1), None];
            let mut placed = JudgedRanking::default();
            placed.refill_placed(judged, ranked.len(), [(2, 0), (3, -1), (5, 2), (6, 1)], &rules);
            assert_eq!(placed, JudgedRanking::from_grades(judged, ranked, &rules));
        }
    }

    #[test]
    fn a_result_without_a_rank_is_left_out() {
        for relevance_level in [0, 1] {
            let rules = Rules { relevance_level, ..rules() };
            let (mut with, mut without) = (JudgedRanking::default(), JudgedRanking::default());
            with.refill_placed([1, 0, 1], 9, [(0, 1), (0, 0), (2, 1)], &rules);
            without.refill_placed([1, 0, 1], 9, [(2, 1)], &rules);
            assert_eq!(with, without);
            for metric in crate::ranking::METRICS {
                let measure: crate::ranking::Measure =
                    metric.id.replace("@k", "@3").parse().unwrap();
                let score = with.score(measure);
                assert!(
                    score.is_err() || score.is_ok_and(f64::is_finite),
                    "{} {score:?}",
                    metric.id
                );
            }
        }
    }
}

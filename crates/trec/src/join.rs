//! The join of one query's results with its judgements, and the ranks of the judged results.
//!
//! Ids are looked up in a hash table with a random key, so that a file cannot provoke collisions; the
//! same table finds duplicate documents. All memory is reused for the next query.

use std::hash::{BuildHasher, Hasher};

use hashbrown::hash_table::Entry as Place;
use hashbrown::{DefaultHashBuilder, HashTable};
use karat_metrics::ranking::{JudgedRanking, Rules};

use super::error::{LineProblem, quote};
use super::fields::Value;
use super::group::Rows;

pub(super) fn hash(hasher: &DefaultHashBuilder, id: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(id);
    state.finish()
}

/// A line that repeats a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    Judgement { line: u64, problem: LineProblem },
    Result { line: u64, problem: LineProblem },
}

/// A judged result.
#[derive(Clone, Copy, Debug)]
struct Hit {
    result: usize,
    grade: i64,
    /// From 1.
    rank: usize,
}

/// The memory of a join.
#[derive(Default)]
pub(super) struct Join {
    hasher: DefaultHashBuilder,
    /// Numbers of documents: the judged ones first, then the other results.
    documents: HashTable<usize>,
    /// For each judgement, the result that is the same document.
    matched: Vec<Option<usize>>,
    hits: Vec<Hit>,
    /// The sort keys of the results.
    keys: Vec<u64>,
    /// The numbers of the results, best first, if all are sorted.
    order: Vec<usize>,
    /// The inverse: the rank of each result.
    ranks: Vec<usize>,
}

impl Join {
    /// Fills `ranking` with the data of a query.
    pub(super) fn fill(
        &mut self,
        ranking: &mut JudgedRanking,
        query: &[u8],
        judged: Rows<'_, i64>,
        results: Rows<'_, f64>,
        rules: &Rules,
    ) -> Result<(), Repeated> {
        self.match_ids(query, judged, results)?;
        self.keys.clear();
        self.keys.extend(results.entries.iter().map(|entry| rules.precision.key(entry.value)));
        self.rank_hits(results, rules);
        self.hits.sort_unstable_by_key(|hit| hit.rank);
        let grades = judged.entries.iter().map(|entry| entry.value);
        let placed = self.hits.iter().map(|hit| (hit.rank, hit.grade));
        ranking.refill_placed(grades, results.entries.len(), placed, rules);
        Ok(())
    }

    fn match_ids(
        &mut self,
        query: &[u8],
        judged: Rows<'_, i64>,
        results: Rows<'_, f64>,
    ) -> Result<(), Repeated> {
        let hasher = &self.hasher;
        let judgements = judged.entries.len();
        let id = |number: usize| match number.checked_sub(judgements) {
            Some(result) => results.id(result),
            None => judged.id(number),
        };
        let hash_of = |number: &usize| hash(hasher, id(*number));
        let documents = judgements + results.entries.len();
        if self.documents.capacity() / 64 > documents.max(64) {
            // Clearing a large table takes long: one query with very many documents must not slow
            // down all that follow.
            self.documents = HashTable::new();
        }
        self.documents.clear();
        self.documents.reserve(documents, hash_of);
        self.hits.clear();
        self.matched.clear();
        self.matched.resize(judgements, None);
        for number in 0..judgements {
            let this = judged.id(number);
            let same = |other: &usize| id(*other) == this;
            match self.documents.entry(hash(hasher, this), same, hash_of) {
                Place::Vacant(place) => _ = place.insert(number),
                Place::Occupied(first) => {
                    let (line, problem) = repeated(query, judged, *first.get(), number);
                    return Err(Repeated::Judgement { line, problem });
                }
            }
        }
        for result in 0..results.entries.len() {
            let this = results.id(result);
            let same = |other: &usize| id(*other) == this;
            let first = match self.documents.entry(hash(hasher, this), same, hash_of) {
                Place::Vacant(place) => {
                    place.insert(judgements + result);
                    continue;
                }
                Place::Occupied(place) => *place.get(),
            };
            let earlier = match first.checked_sub(judgements) {
                Some(earlier) => Some(earlier),
                None => self.matched[first].replace(result),
            };
            if let Some(earlier) = earlier {
                let (line, problem) = repeated(query, results, earlier, result);
                return Err(Repeated::Result { line, problem });
            }
            self.hits.push(Hit { result, grade: judged.entries[first].value, rank: 0 });
        }
        Ok(())
    }

    /// Finds the ranks of the judged results. Only those matter, and they are usually few: then it is
    /// cheaper to count the results before each of them than to sort all results.
    fn rank_hits(&mut self, results: Rows<'_, f64>, rules: &Rules) {
        let keys = &self.keys;
        let compare = |left: usize, right: usize| {
            let by_id = || rules.ties.compare_ids(results.id(left), results.id(right));
            // Last, for the tie rule by the order of the file.
            keys[right].cmp(&keys[left]).then_with(by_id).then_with(|| left.cmp(&right))
        };
        if keys.is_sorted_by(|left, right| left > right) {
            for hit in &mut self.hits {
                hit.rank = hit.result + 1;
            }
        } else if self.hits.len() <= few(keys.len()) {
            for hit in &mut self.hits {
                let key = keys[hit.result];
                let better = keys.iter().filter(|other| **other > key).count();
                let tied = keys.iter().filter(|other| **other == key).count();
                let mut before = better;
                if tied > 1 {
                    let ties = (0..keys.len()).filter(|other| keys[*other] == key);
                    before += ties.filter(|other| compare(*other, hit.result).is_lt()).count();
                }
                hit.rank = before + 1;
            }
        } else {
            self.order.clear();
            self.order.extend(0..keys.len());
            self.order.sort_unstable_by(|left, right| compare(*left, *right));
            self.ranks.resize(keys.len(), 0);
            for (rank, result) in (1..).zip(&self.order) {
                self.ranks[*result] = rank;
            }
            for hit in &mut self.hits {
                hit.rank = self.ranks[hit.result];
            }
        }
    }
}

/// The number of ranks up to which counting is faster than sorting n results.
fn few(n: usize) -> usize {
    4 * n.checked_ilog2().unwrap_or(0) as usize
}

/// The later line, and its problem.
fn repeated<V: Value>(
    query: &[u8],
    rows: Rows<'_, V>,
    first: usize,
    again: usize,
) -> (u64, LineProblem) {
    let problem = V::duplicate(quote(query), quote(rows.id(again)), rows.entries[first].line);
    (rows.entries[again].line, problem)
}

#[cfg(test)]
mod tests {
    use karat_metrics::ranking::{ScorePrecision, TieRule};
    use proptest::prelude::*;

    use super::*;
    use crate::group::Entry;

    /// Rows as in a file, one per line.
    struct Owned<V> {
        bytes: Vec<u8>,
        entries: Vec<Entry<V>>,
    }

    impl<V: Copy> Owned<V> {
        fn new(rows: &[(String, V)]) -> Self {
            let mut bytes = Vec::new();
            let entry = |((id, value), line): (&(String, V), u64)| {
                Entry::append(&mut bytes, id.as_bytes(), line, *value)
            };
            let entries = rows.iter().zip(1..).map(entry).collect();
            Self { bytes, entries }
        }

        fn rows(&self) -> Rows<'_, V> {
            Rows { bytes: &self.bytes, entries: &self.entries }
        }
    }

    fn rows<V: Copy>(rows: &[(&str, V)]) -> Owned<V> {
        Owned::new(&rows.iter().map(|(id, value)| ((*id).to_owned(), *value)).collect::<Vec<_>>())
    }

    #[test]
    fn a_duplicate_line_is_reported_with_the_first_one() {
        let (judged, twice) = (rows(&[("a", 1), ("b", 0)]), rows(&[("x", 1), ("a", 1), ("x", 0)]));
        let (results, again) =
            (rows(&[("a", 2.0)]), rows(&[("y", 3.0), ("a", 2.0), ("b", 1.0), ("y", 0.5)]));
        let mut join = Join::default();
        let mut fill = |judged: &Owned<i64>, results: &Owned<f64>| {
            join.fill(
                &mut JudgedRanking::default(),
                b"q",
                judged.rows(),
                results.rows(),
                &Rules::default(),
            )
        };
        let (query, document) = (quote(b"q"), quote(b"y"));
        let problem = LineProblem::DuplicateResult { query: query.clone(), document, first: 1 };
        assert_eq!(fill(&judged, &again), Err(Repeated::Result { line: 4, problem }));
        let problem = LineProblem::DuplicateJudgement { query, document: quote(b"x"), first: 1 };
        assert_eq!(fill(&twice, &results), Err(Repeated::Judgement { line: 3, problem }));
        assert_eq!(fill(&judged, &results), Ok(()));
    }

    proptest! {
        /// With few and with many judged results, sorted, with ties and without, so that all three ways
        /// of ranking are used.
        #[test]
        fn ranks_are_those_of_a_full_sort(
            scores in prop_oneof![
                proptest::collection::vec(0..4_i32, 0..60),
                proptest::collection::vec(any::<i32>(), 0..60),
                (0..60_i32).prop_map(|n| (0..n).rev().collect()),
            ],
            grades in proptest::collection::vec(proptest::option::of(-1..3_i64), 60),
            judged_only in any::<bool>(),
            ties in prop_oneof![Just(TieRule::IdDescending), Just(TieRule::IdAscending), Just(TieRule::Insertion)],
        ) {
            let id = |number: usize| format!("d{}", number * 7919 % 61);
            let results: Vec<_> = scores.iter().enumerate().map(|(number, score)| (id(number), f64::from(*score))).collect();
            let judged: Vec<_> = grades.iter().enumerate().filter_map(|(number, grade)| Some((id(number), (*grade)?))).collect();
            let rules = Rules { ties, judged_only, precision: ScorePrecision::F64, relevance_level: 1 };
            let mut joined = JudgedRanking::default();
            let (judged_rows, result_rows) = (Owned::new(&judged), Owned::new(&results));
            Join::default().fill(&mut joined, b"q", judged_rows.rows(), result_rows.rows(), &rules).unwrap();
            let expected = JudgedRanking::from_scored(
                judged.iter().map(|(id, grade)| (&**id, *grade)),
                results.iter().map(|(id, score)| (&**id, *score)),
                &rules,
            );
            prop_assert_eq!(Ok(joined), expected);
        }
    }
}

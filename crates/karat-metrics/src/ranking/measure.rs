//! A measure as a value: its definition and its cut-off.
//!
//! Its text is its id, `recall@5`. The definitions are in the files of their formulas, as
//! `MEASURES`; nothing else lists them.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::judged::{Cut, JudgedRanking};
use super::table::{DEFINITIONS, METRICS};
use crate::metric::{self, Metric, ParsedId};
use crate::registry;
use crate::{MetricId, Score};

/// A measure of a ranking, such as recall among the first five results.
///
/// ```
/// use karat_metrics::ranking::Measure;
///
/// const RECALL_5: Measure = Measure::known("recall@5");
/// assert_eq!("recall@5".parse(), Ok(RECALL_5));
/// assert_eq!(RECALL_5.to_string(), "recall@5");
/// assert_eq!(RECALL_5.cutoff().map(|k| k.get()), Some(5));
/// assert_eq!(RECALL_5.definition().id, "recall@k");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Measure {
    /// The index of its definition.
    definition: usize,
    cutoff: Option<Cut>,
}

impl Measure {
    /// The measure with this id. In a constant, an unknown id does not compile.
    ///
    /// # Panics
    /// If the id is unknown. Use it in constants only, where that is an error of the
    /// compiler, and [`str::parse`] elsewhere.
    #[must_use]
    #[expect(clippy::panic, reason = "documented, and an error of the compiler in a constant")]
    pub const fn known(id: &str) -> Measure {
        match Measure::find(id) {
            Some(measure) => measure,
            None => panic!("this is not the id of a ranking measure"),
        }
    }

    const fn find(id: &str) -> Option<Measure> {
        match ParsedId::new(id) {
            Some(ParsedId { key, cutoff, has_settings: false }) => {
                let mut definition = 0;
                while definition < DEFINITIONS.len() {
                    if metric::same(metric::key(DEFINITIONS[definition].metric.id), key) {
                        return Some(Measure { definition, cutoff });
                    }
                    definition += 1;
                }
                None
            }
            _ => None,
        }
    }

    /// Returns its definition in the table of metrics.
    #[must_use]
    pub fn definition(self) -> &'static Metric {
        &METRICS[self.definition]
    }

    /// Returns its id.
    #[must_use]
    pub fn id(self) -> MetricId {
        MetricId::at_cutoff(self.definition(), self.cutoff)
    }

    /// Returns its cut-off, if it has one.
    #[must_use]
    pub fn cutoff(self) -> Option<NonZeroU32> {
        self.cutoff
    }
}

impl JudgedRanking {
    /// Returns the value of a measure for this query.
    ///
    /// ```
    /// use karat_metrics::ranking::{JudgedRanking, Measure, Rules};
    ///
    /// let ranking = JudgedRanking::from_ordered([("a", 1), ("b", 1)], ["x", "b"], &Rules::default())?;
    /// assert_eq!(ranking.score(Measure::known("recall@5")), Ok(0.5));
    /// assert_eq!(ranking.score(Measure::known("mrr")), Ok(0.5));
    /// assert!(ranking.score(Measure::known("hard_negative_rate")).is_err());
    /// # Ok::<(), karat_metrics::ranking::RankingError>(())
    /// ```
    ///
    /// # Errors
    /// If the measure is undefined for this query; its definition says when.
    pub fn score(&self, measure: Measure) -> Score {
        (DEFINITIONS[measure.definition].score)(self, measure.cutoff.unwrap_or(Cut::MAX))
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.definition().id;
        match self.cutoff {
            Some(k) => write!(f, "{}{k}", id.trim_end_matches('k')),
            None => f.write_str(id),
        }
    }
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Measure({self})")
    }
}

/// An id that is not one of a ranking measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMeasure {
    /// The unknown id.
    pub id: String,
}

impl fmt::Display for UnknownMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a ranking measure", self.id)?;
        match registry::nearest(&self.id).filter(|near| *near != self.id) {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownMeasure {}

impl FromStr for Measure {
    type Err = UnknownMeasure;

    /// Reads an id such as `recall@5`. `recall` alone is read as `set_recall`.
    fn from_str(id: &str) -> Result<Self, UnknownMeasure> {
        let registered = if id == "recall" { "set_recall" } else { id };
        Measure::find(registered).ok_or_else(|| UnknownMeasure { id: id.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_with_its_cutoff() {
        let measure: Measure = "ndcg_exp@10".parse().unwrap();
        assert_eq!((measure.definition().id, measure.cutoff()), ("ndcg_exp@k", Cut::new(10)));
        assert_eq!(measure.id(), "ndcg_exp@10");
        assert_eq!("recall".parse(), Ok(Measure::known("set_recall")));
    }

    #[test]
    fn a_wrong_id_is_refused_with_the_nearest_one() {
        for wrong in [
            "recall@0",
            "recall@",
            "recall@+5",
            "recall@5x",
            "recall@05",
            "recall@k",
            "success",
            "map@-1",
            "",
            "@5",
            "mrr|x",
            "f1",
            "mrr^5",
        ] {
            assert!(wrong.parse::<Measure>().is_err(), "{wrong}");
        }
        let message = "recal@5".parse::<Measure>().unwrap_err().to_string();
        assert_eq!(message, "`recal@5` is not a ranking measure; did you mean `recall@5`?");
    }
}

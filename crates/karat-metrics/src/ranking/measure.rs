//! A measure as a value: which one, and at which cut-off.
//!
//! It is written as its id, `recall@5`, and read back from it.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::judged::JudgedRanking;
use super::{average_precision, gain, hard_negative, overlap, reciprocal};
use crate::Score;
use crate::registry::{self, Metric};

/// How many results from the top are looked at.
pub type Cut = NonZeroU32;

/// The cut-off k. There is none below 1, so 0 gives 1.
#[must_use]
pub const fn cut(k: u32) -> Cut {
    match Cut::new(k) {
        Some(cut) => cut,
        None => Cut::MIN,
    }
}

/// One measure of a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// `recall@k`
    RecallAt(Cut),
    /// `set_recall`
    SetRecall,
    /// `success@k`
    SuccessAt(Cut),
    /// `comprehensiveness@k`
    ComprehensivenessAt(Cut),
    /// `mrr`
    Mrr,
    /// `mrr@k`
    MrrAt(Cut),
    /// `ndcg@k`
    NdcgAt(Cut),
    /// `ndcg`
    Ndcg,
    /// `ndcg_exp@k`
    NdcgExpAt(Cut),
    /// `ndcg_exp`
    NdcgExp,
    /// `map`
    Map,
    /// `map@k`
    MapAt(Cut),
    /// `hard_negative_rate`
    HardNegativeRate,
    /// `p@k`
    PrecisionAt(Cut),
    /// `set_precision`
    SetPrecision,
    /// `f1@k`
    F1At(Cut),
    /// `set_f1`
    SetF1,
    /// `hits@k`
    HitsAt(Cut),
    /// `r_precision`
    RPrecision,
    /// `bpref`
    Bpref,
    /// `ranx.rbp.80`
    RanxRbp,
}

impl Measure {
    /// Its definition in the table of metrics.
    #[must_use]
    pub fn definition(self) -> &'static Metric {
        match self {
            Self::RecallAt(_) => &overlap::RECALL_AT,
            Self::SetRecall => &overlap::SET_RECALL,
            Self::SuccessAt(_) => &overlap::SUCCESS_AT,
            Self::ComprehensivenessAt(_) => &overlap::COMPREHENSIVENESS_AT,
            Self::Mrr => &reciprocal::MRR,
            Self::MrrAt(_) => &reciprocal::MRR_AT,
            Self::NdcgAt(_) => &gain::NDCG_AT,
            Self::Ndcg => &gain::NDCG,
            Self::NdcgExpAt(_) => &gain::NDCG_EXP_AT,
            Self::NdcgExp => &gain::NDCG_EXP,
            Self::Map => &average_precision::MAP,
            Self::MapAt(_) => &average_precision::MAP_AT,
            Self::HardNegativeRate => &hard_negative::HARD_NEGATIVE_RATE,
            Self::PrecisionAt(_) => &overlap::P_AT,
            Self::SetPrecision => &overlap::SET_PRECISION,
            Self::F1At(_) => &overlap::F1_AT,
            Self::SetF1 => &overlap::SET_F1,
            Self::HitsAt(_) => &overlap::HITS_AT,
            Self::RPrecision => &average_precision::R_PRECISION,
            Self::Bpref => &average_precision::BPREF,
            Self::RanxRbp => &average_precision::RANX_RBP,
        }
    }

    /// The cut-off, if it has one.
    #[must_use]
    pub fn cut(self) -> Option<Cut> {
        match self {
            Self::RecallAt(k)
            | Self::SuccessAt(k)
            | Self::ComprehensivenessAt(k)
            | Self::MrrAt(k)
            | Self::NdcgAt(k)
            | Self::NdcgExpAt(k)
            | Self::MapAt(k)
            | Self::PrecisionAt(k)
            | Self::F1At(k)
            | Self::HitsAt(k) => Some(k),
            Self::SetRecall
            | Self::Mrr
            | Self::Ndcg
            | Self::NdcgExp
            | Self::Map
            | Self::HardNegativeRate
            | Self::SetPrecision
            | Self::SetF1
            | Self::RPrecision
            | Self::Bpref
            | Self::RanxRbp => None,
        }
    }
}

impl JudgedRanking {
    /// The value of a measure for this query.
    ///
    /// # Errors
    /// Where the definition says that the measure is undefined.
    pub fn score(&self, measure: Measure) -> Score {
        Ok(match measure {
            Measure::RecallAt(k) => self.recall_at(k),
            Measure::SetRecall => self.set_recall(),
            Measure::SuccessAt(k) => self.success_at(k),
            Measure::ComprehensivenessAt(k) => self.comprehensiveness_at(k),
            Measure::Mrr => self.reciprocal_rank(),
            Measure::MrrAt(k) => self.reciprocal_rank_at(k),
            Measure::NdcgAt(k) => self.ndcg_at(k),
            Measure::Ndcg => self.ndcg(),
            Measure::NdcgExpAt(k) => self.ndcg_exp_at(k),
            Measure::NdcgExp => self.ndcg_exp(),
            Measure::Map => self.average_precision(),
            Measure::MapAt(k) => self.average_precision_at(k),
            Measure::HardNegativeRate => return self.hard_negative_first(),
            Measure::PrecisionAt(k) => self.precision_at(k),
            Measure::SetPrecision => self.set_precision(),
            Measure::F1At(k) => self.f1_at(k),
            Measure::SetF1 => self.set_f1(),
            Measure::HitsAt(k) => self.hits_at(k),
            Measure::RPrecision => self.r_precision(),
            Measure::Bpref => self.bpref(),
            Measure::RanxRbp => self.rank_biased_precision(),
        })
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.definition().id;
        match self.cut() {
            Some(k) => write!(f, "{}{k}", id.trim_end_matches('k')),
            None => f.write_str(id),
        }
    }
}

/// An id that no ranking measure has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMeasure {
    /// What was asked for.
    pub id: String,
}

impl fmt::Display for UnknownMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no ranking measure", self.id)?;
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
        let unknown = || UnknownMeasure { id: id.to_owned() };
        let Some((stem, digits)) = id.split_once('@') else {
            return Self::without_cut(id).ok_or_else(unknown);
        };
        // A sign would be accepted by the parser, and is not part of an id.
        let k = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        k.and_then(|k| Self::with_cut(stem, k)).ok_or_else(unknown)
    }
}

impl Measure {
    fn without_cut(id: &str) -> Option<Self> {
        Some(match id {
            "set_recall" | "recall" => Self::SetRecall,
            "mrr" => Self::Mrr,
            "ndcg" => Self::Ndcg,
            "ndcg_exp" => Self::NdcgExp,
            "map" => Self::Map,
            "hard_negative_rate" => Self::HardNegativeRate,
            "set_precision" => Self::SetPrecision,
            "set_f1" => Self::SetF1,
            "r_precision" => Self::RPrecision,
            "bpref" => Self::Bpref,
            "ranx.rbp.80" => Self::RanxRbp,
            _ => return None,
        })
    }

    fn with_cut(stem: &str, k: Cut) -> Option<Self> {
        Some(match stem {
            "recall" => Self::RecallAt(k),
            "success" => Self::SuccessAt(k),
            "comprehensiveness" => Self::ComprehensivenessAt(k),
            "mrr" => Self::MrrAt(k),
            "ndcg" => Self::NdcgAt(k),
            "ndcg_exp" => Self::NdcgExpAt(k),
            "map" => Self::MapAt(k),
            "p" => Self::PrecisionAt(k),
            "f1" => Self::F1At(k),
            "hits" => Self::HitsAt(k),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_with_its_cut_off() {
        assert_eq!("recall@5".parse(), Ok(Measure::RecallAt(cut(5))));
        assert_eq!("ndcg_exp@10".parse(), Ok(Measure::NdcgExpAt(cut(10))));
        assert_eq!("recall".parse(), Ok(Measure::SetRecall));
    }

    #[test]
    fn a_wrong_id_is_refused_with_the_nearest_one() {
        for wrong in
            ["recall@0", "recall@", "recall@+5", "recall@5x", "success", "map@-1", "", "@5"]
        {
            assert!(wrong.parse::<Measure>().is_err(), "{wrong}");
        }
        let message = "recal@5".parse::<Measure>().unwrap_err().to_string();
        assert_eq!(message, "`recal@5` is no ranking measure; did you mean `recall@5`?");
    }
}

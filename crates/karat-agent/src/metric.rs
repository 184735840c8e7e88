//! The metrics of tool calls that a trace can be scored by, and their ids.

use std::str::FromStr;

use karat_metrics::MetricId;
use karat_metrics::calls::deepeval::{self, Mode, ToolCorrectness, ToolPermission};
use karat_metrics::calls::ragas::Warning;
use karat_metrics::calls::{Call, alignment, f1, ragas};
use karat_metrics::metric;

/// One metric of tool calls, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum CallMetric {
    /// `calls.exact`
    Exact,
    /// `calls.alignment`
    Alignment,
    /// `calls.f1`
    F1,
    /// `ragas.tool_call_accuracy`
    RagasAccuracy,
    /// `ragas.tool_call_accuracy_unordered`
    RagasAccuracyUnordered,
    /// `ragas.tool_call_accuracy_levenshtein`
    RagasAccuracyLevenshtein,
    /// `ragas.tool_call_f1`
    RagasF1,
    /// `deepeval.tool_correctness`, with the settings in the suffix of its id
    ToolCorrectness(ToolCorrectness),
    /// `deepeval.tool_permission`, with a policy that no id can express
    ToolPermission(ToolPermission),
}

/// The metrics without settings.
const PLAIN: [CallMetric; 7] = [
    CallMetric::Exact,
    CallMetric::Alignment,
    CallMetric::F1,
    CallMetric::RagasAccuracy,
    CallMetric::RagasAccuracyUnordered,
    CallMetric::RagasAccuracyLevenshtein,
    CallMetric::RagasF1,
];

/// The score of calls by one metric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallScore {
    /// The score.
    pub score: f64,
    /// True if it reaches the metric's threshold, if the metric has one.
    pub success: Option<bool>,
    /// The warning that RAGAS would give.
    pub warning: Option<Warning>,
}

impl CallMetric {
    /// The metrics of RAGAS and DeepEval that are scored unless others are named.
    pub fn usual() -> Vec<CallMetric> {
        let ordered = ToolCorrectness { mode: Mode::Ordered, input: true, ..Default::default() };
        vec![
            CallMetric::RagasAccuracy,
            CallMetric::RagasAccuracyUnordered,
            CallMetric::RagasF1,
            CallMetric::ToolCorrectness(ToolCorrectness::default()),
            CallMetric::ToolCorrectness(ordered),
        ]
    }

    /// The id with all settings.
    pub(crate) fn full_id(&self) -> MetricId {
        match self {
            CallMetric::Exact => metric!("calls.exact"),
            CallMetric::Alignment => metric!("calls.alignment"),
            CallMetric::F1 => metric!("calls.f1"),
            CallMetric::RagasAccuracy => metric!("ragas.tool_call_accuracy"),
            CallMetric::RagasAccuracyUnordered => metric!("ragas.tool_call_accuracy_unordered"),
            CallMetric::RagasAccuracyLevenshtein => {
                metric!("ragas.tool_call_accuracy_levenshtein")
            }
            CallMetric::RagasF1 => metric!("ragas.tool_call_f1"),
            CallMetric::ToolCorrectness(setting) => MetricId::new(&setting.id()),
            CallMetric::ToolPermission(_) => metric!("deepeval.tool_permission"),
        }
    }

    /// The id in reports: without the settings where they are the usual ones.
    pub fn id(&self) -> MetricId {
        match self {
            CallMetric::ToolCorrectness(setting) if *setting == ToolCorrectness::default() => {
                metric!("deepeval.tool_correctness")
            }
            other => other.full_id(),
        }
    }

    /// Scores calls against those that were expected.
    pub fn measure(&self, called: &[Call<'_>], expected: &[Call<'_>]) -> CallScore {
        let plain = |score| CallScore { score, ..CallScore::default() };
        let judged = |outcome: deepeval::Outcome| CallScore {
            success: outcome.success,
            ..plain(outcome.score)
        };
        let warned =
            |found: ragas::Accuracy| CallScore { warning: found.warning, ..plain(found.score) };
        match self {
            CallMetric::Exact => plain(f64::from(u8::from(alignment::exact(called, expected)))),
            CallMetric::Alignment => plain(alignment::alignment(called, expected)),
            CallMetric::F1 => plain(f1::f1(called, expected)),
            CallMetric::RagasAccuracy => warned(ragas::tool_call_accuracy(called, expected)),
            CallMetric::RagasAccuracyUnordered => {
                warned(ragas::tool_call_accuracy_unordered(called, expected))
            }
            CallMetric::RagasAccuracyLevenshtein => {
                warned(ragas::tool_call_accuracy_levenshtein(called, expected))
            }
            CallMetric::RagasF1 => plain(ragas::tool_call_f1(called, expected)),
            CallMetric::ToolCorrectness(setting) => judged(setting.measure(called, expected)),
            CallMetric::ToolPermission(policy) => judged(policy.measure(called)),
        }
    }
}

/// An id that is not one of a metric of tool calls.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownMetric {
    /// There is no such metric.
    #[error("{0:?} is not a metric of tool calls")]
    Id(String),
    /// The metric exists, its setting does not.
    #[error(transparent)]
    Setting(#[from] deepeval::UnknownSetting),
    /// The metric needs more than an id can express.
    #[error("{0} requires a policy, which an id cannot express")]
    NeedsPolicy(MetricId),
}

impl FromStr for CallMetric {
    type Err = UnknownMetric;

    fn from_str(id: &str) -> Result<Self, UnknownMetric> {
        let (registered, settings) = match id.split_once('|') {
            Some((registered, settings)) => (registered, Some(settings)),
            None => (id, None),
        };
        if deepeval::TOOL_CORRECTNESS == registered {
            let settings = settings.map_or(Ok(ToolCorrectness::default()), str::parse)?;
            return Ok(CallMetric::ToolCorrectness(settings));
        }
        if deepeval::TOOL_PERMISSION == id {
            return Err(UnknownMetric::NeedsPolicy(metric!("deepeval.tool_permission")));
        }
        PLAIN
            .into_iter()
            .find(|metric| metric.full_id() == id)
            .ok_or_else(|| UnknownMetric::Id(id.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_id() {
        for metric in PLAIN {
            assert_eq!(metric.id().parse(), Ok(metric));
        }
        let ordered = "deepeval.tool_correctness|ordered|name+input";
        assert_eq!(ordered.parse::<CallMetric>().unwrap().id(), ordered);
        let default = CallMetric::ToolCorrectness(ToolCorrectness::default());
        assert_eq!("deepeval.tool_correctness".parse(), Ok(default.clone()));
        assert_eq!(default.full_id().parse::<CallMetric>().unwrap().id(), default.id());
        assert_eq!(CallMetric::usual()[4].id(), ordered);
    }

    #[test]
    fn an_unknown_id_is_refused_with_the_unknown_part() {
        let error = |id: &str| id.parse::<CallMetric>().unwrap_err();
        assert!(matches!(error("recall@5"), UnknownMetric::Id(_)));
        assert!(matches!(error("calls.f1|x"), UnknownMetric::Id(_)));
        assert!(matches!(error("deepeval.tool_correctness|x"), UnknownMetric::Setting(_)));
        assert!(matches!(error("deepeval.tool_permission"), UnknownMetric::NeedsPolicy(_)));
    }
}

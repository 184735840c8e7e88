//! A judge against people: how often it agrees with labels, beyond chance, and in which direction it is
//! wrong. A judge that was not measured should not gate anything.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::aggregate;
use karat_core::error::EvalError;
use karat_core::report::{Count, Interval, Measured};
use karat_io::input::{self, Limits};
use karat_metrics::classification::Confusion;
use karat_metrics::stats::{self, Bootstrap};
use karat_metrics::{MetricId, Score, Undefined};
use serde::Deserialize;

use super::{THRESHOLD, Verdicts};
use crate::trace::Trace;

/// The metrics of a judge against labels.
pub(crate) const IDS: [MetricId; 4] =
    [ACCURACY, MetricId::known("judge.kappa"), SENSITIVITY, SPECIFICITY];

const ACCURACY: MetricId = MetricId::known("judge.accuracy");
const SENSITIVITY: MetricId = MetricId::known("judge.sensitivity");
const SPECIFICITY: MetricId = MetricId::known("judge.specificity");

/// One label of a person.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    id: String,
    /// The run; of all runs if it is not stated.
    run: Option<u32>,
    passed: bool,
    /// The person, and anything that they remarked.
    #[serde(default, rename = "by")]
    _by: Option<String>,
    #[serde(default, rename = "note")]
    _note: Option<String>,
}

/// Labels by task and run.
#[derive(Clone, Debug, Default)]
pub struct Labels(BTreeMap<(String, Option<u32>), bool>);

impl Labels {
    /// Reads labels, one per line: `{"id": "t-1", "run": 1, "passed": true}`.
    ///
    /// # Errors
    /// If a line is not a label, or two labels contradict each other.
    pub(crate) fn load(path: &Path) -> Result<Self, EvalError> {
        let mut all = BTreeMap::new();
        for record in input::lines(path, &Limits::default())?.records::<Label>() {
            let (line, label) = record?;
            let before = all.insert((label.id.clone(), label.run), label.passed);
            if before.is_some_and(|before| before != label.passed) {
                let (path, id) = (path.display(), &label.id);
                return Err(EvalError::config(format!(
                    "{path}:{line}: two labels of {id:?} differ"
                )));
            }
        }
        Ok(Labels(all))
    }

    fn of(&self, trace: &Trace) -> Option<bool> {
        let with_run = self.0.get(&(trace.id.clone(), Some(trace.run)));
        with_run.or_else(|| self.0.get(&(trace.id.clone(), None))).copied()
    }

    /// The metrics over the traces that have a label and an opinion.
    pub(crate) fn measures<'t>(
        &self,
        verdicts: &Verdicts,
        traces: impl Iterator<Item = &'t Trace>,
        seed: u64,
    ) -> Vec<Measured> {
        let labelled: Vec<(bool, Option<f64>)> = traces
            .filter_map(|trace| Some((self.of(trace)?, verdicts.of(trace).and_then(|o| o.score))))
            .collect();
        // The judge passes a trace as it passes a unit: by at least half of the votes' sum.
        let pairs: Vec<(bool, bool)> = labelled
            .iter()
            .filter_map(|(label, score)| Some((*label, (*score)? >= THRESHOLD)))
            .collect();
        let left_out = (labelled.len() - pairs.len()) as u64;
        IDS.iter().map(|id| measure(id, &pairs, left_out, seed)).collect()
    }
}

fn confusion(pairs: impl Iterator<Item = (bool, bool)>) -> Confusion {
    let mut counts = Confusion::default();
    for (label, judged) in pairs {
        *match (label, judged) {
            (true, true) => &mut counts.true_positives,
            (false, true) => &mut counts.false_positives,
            (true, false) => &mut counts.false_negatives,
            (false, false) => &mut counts.true_negatives,
        } += 1;
    }
    counts
}

fn measure(id: &MetricId, pairs: &[(bool, bool)], left_out: u64, seed: u64) -> Measured {
    let all = confusion(pairs.iter().copied());
    let (tp, tn) = (all.true_positives, all.true_negatives);
    let rates = [
        (ACCURACY, tp + tn, pairs.len() as u64, "no trace has a label and a verdict"),
        (SENSITIVITY, tp, tp + all.false_negatives, "no label says passed"),
        (SPECIFICITY, tn, tn + all.false_positives, "no label says failed"),
    ];
    let rate = rates.into_iter().find(|(known, ..)| known == id);
    let rate = rate.map(|(_, hits, of, undefined)| (hits, of, undefined));
    let (value, found, method): (Score, _, _) = match rate {
        Some((_, 0, reason)) => (Err(Undefined(reason)), None, "wilson"),
        Some((hits, of, _)) => {
            (Ok(hits as f64 / of as f64), stats::wilson(hits, of, aggregate::LEVEL).ok(), "wilson")
        }
        None => {
            let bootstrap =
                Bootstrap { seed, confidence: aggregate::LEVEL, ..Bootstrap::default() };
            let over = |drawn: &[usize]| confusion(drawn.iter().map(|at| pairs[*at])).kappa();
            (all.kappa(), bootstrap.statistic(pairs.len(), over).ok(), "bootstrap")
        }
    };
    Measured {
        id: id.clone(),
        value: value.ok(),
        n: rate.map_or(pairs.len() as u64, |(_, of, _)| of),
        better: aggregate::better(id),
        per_run: Vec::new(),
        interval: found.filter(|i| i.low < i.high).map(|found| Interval::new(found, method)),
        count: rate.filter(|(_, of, _)| *of > 0).map(|(hits, of, _)| Count::independent(hits, of)),
        undefined: value.err().map(|reason| reason.0.to_owned()),
        left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_is_compared_with_people() {
        // 40 and 30 agreed, 10 passed by the judge alone, 20 by the person alone.
        let counts =
            [((true, true), 40), ((false, false), 30), ((false, true), 10), ((true, false), 20)];
        let pairs: Vec<(bool, bool)> =
            counts.iter().flat_map(|(pair, count)| std::iter::repeat_n(*pair, *count)).collect();
        let value = |id: &str| measure(&id.into(), &pairs, 0, 1).value.unwrap();
        assert_eq!(value("judge.accuracy"), 0.7);
        assert!((value("judge.kappa") - 0.4).abs() < 1e-12);
        assert!((value("judge.sensitivity") - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(value("judge.specificity"), 0.75);
        let kappa = measure(&IDS[1], &pairs, 0, 1).interval.unwrap();
        assert!(kappa.low < 0.4 && kappa.high > 0.4);
        assert!(measure(&IDS[3], &[(true, true)], 0, 1).undefined.is_some());
    }
}

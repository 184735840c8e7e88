//! Several systems on the same data: who is ahead, and which of the differences are real.
//!
//! Every pair is compared item by item, as two reports are, and the p-values are corrected by Holm
//! over all pairs of a table. A system's rank is a range: behind those that are really better, and
//! ahead of those that are really worse.

use std::collections::BTreeMap;

use karat_metrics::stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::baseline::Baseline;
use crate::compare::{Selector, delta};
use crate::kind::Kind;
use crate::paired::scores;
use crate::report::{Better, DatasetRef, Interval, Report};

/// A difference with a corrected p-value below this is real.
pub const ALPHA: f64 = 0.05;

/// The most systems of one table; all pairs of more would take minutes.
const MAX_SYSTEMS: usize = 200;

/// Systems by one metric on the same data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Leaderboard {
    /// The data.
    pub dataset: DatasetRef,
    /// The metric.
    pub metric: String,
    /// The systems, best first.
    pub rows: Vec<Standing>,
    /// Every pair of systems, the better one first.
    pub pairs: Vec<Pairing>,
}

/// The place of one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The name of the report.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Over how many items.
    pub n: u64,
    /// The interval of the value.
    pub interval: Option<Interval>,
    /// The best and the worst rank that the real differences allow.
    pub ranks: [usize; 2],
}

/// The comparison of two systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pairing {
    /// The system with the better value.
    pub better: String,
    /// The other one.
    pub worse: String,
    /// The size of the difference over the items that both have a score for.
    pub delta: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
    /// The two-sided p-value of the paired test.
    pub p_value: Option<f64>,
    /// The same after Holm's correction over all pairs.
    pub p_holm: Option<f64>,
    /// The test.
    pub test: Option<String>,
    /// Over how many items.
    pub pairs: u64,
    /// The number of items on which the better system is better.
    pub wins: u64,
    /// The number of items on which it is worse.
    pub losses: u64,
    /// True if the corrected p-value is below 0.05.
    pub real: bool,
}

/// The tables of recorded runs of several systems on the same tasks: one by the benchmark's own metric,
/// one by Karat's.
pub fn of_recorded(reports: &[Report]) -> Vec<Leaderboard> {
    groups(reports.iter().filter(|report| ours(report).is_some()))
        .into_iter()
        .flat_map(|group| {
            let of_benchmark = match group.first().map(|report| &report.kind) {
                Some(Kind::Resilience) => Some("agentdojo.targeted_asr".to_owned()),
                _ => headline(&group),
            };
            let of_karat = group.first().and_then(|report| ours(report));
            let mut ids: Vec<String> =
                of_benchmark.into_iter().chain(of_karat.map(str::to_owned)).collect();
            ids.dedup();
            ids.into_iter().filter_map(move |id| leaderboard(&group, &id))
        })
        .collect()
}

/// The metric by which Karat ranks systems whose runs were recorded elsewhere.
fn ours(report: &Report) -> Option<&'static str> {
    match report.kind {
        Kind::Outcomes => Some("task.success"),
        Kind::Resilience if report.system.kind == "file" => Some("attack.success"),
        _ => None,
    }
}

/// One table for all reports on the same data, whatever their kind.
pub fn of_reports(reports: &[Report]) -> Vec<Leaderboard> {
    let table = |group: Vec<&Report>| leaderboard(&group, &headline(&group)?);
    groups(reports.iter()).into_iter().filter_map(table).collect()
}

/// The reports by kind and data, where there are several.
fn groups<'a>(reports: impl Iterator<Item = &'a Report>) -> Vec<Vec<&'a Report>> {
    let mut groups: BTreeMap<(&Kind, &str), Vec<&Report>> = BTreeMap::new();
    for report in reports {
        groups.entry((&report.kind, &report.dataset.digest)).or_default().push(report);
    }
    groups.into_values().filter(|group| (2..=MAX_SYSTEMS).contains(&group.len())).collect()
}

/// The first metric that every report has a value for.
fn headline(group: &[&Report]) -> Option<String> {
    let metrics = group.first()?.metrics.iter();
    let everywhere = |id: &str| {
        group.iter().all(|report| report.metric(id).is_some_and(|metric| metric.value.is_some()))
    };
    metrics.map(|metric| metric.id.clone()).find(|id| everywhere(id))
}

/// Ranks systems by a metric; none if fewer than two have a value.
fn leaderboard(group: &[&Report], id: &str) -> Option<Leaderboard> {
    let mut systems: Vec<(&Report, f64)> =
        group.iter().filter_map(|report| Some((*report, report.metric(id)?.value?))).collect();
    let dataset = systems.first()?.0.dataset.clone();
    if systems.len() < 2 {
        return None;
    }
    let sign = match systems.first()?.0.metric(id)?.better {
        Better::Higher => 1.0,
        Better::Lower => -1.0,
    };
    systems.sort_by(|(one, a), (other, b)| {
        (sign * b).total_cmp(&(sign * a)).then_with(|| one.name.cmp(&other.name))
    });
    let baselines: Vec<Baseline> =
        systems.iter().map(|(report, _)| Baseline::from_report(report)).collect();
    let selector = Selector { metric: id.to_owned(), slice: None };
    let mut pairs = Vec::new();
    let mut places = Vec::new();
    for worse in 1..systems.len() {
        for better in 0..worse {
            let earlier = scores(&baselines[worse]);
            let found = delta(&selector, &baselines[worse], &earlier, systems[better].0);
            places.push((better, worse));
            pairs.push(Pairing {
                better: systems[better].0.name.clone(),
                worse: systems[worse].0.name.clone(),
                delta: found.delta.map(|delta| sign * delta),
                interval: found.interval,
                p_value: found.p_value,
                p_holm: None,
                test: found.test,
                pairs: found.pairs,
                wins: found.improved.len() as u64,
                losses: found.worsened.len() as u64,
                real: false,
            });
        }
    }
    let tested: Vec<usize> = (0..pairs.len()).filter(|&at| pairs[at].p_value.is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|&at| pairs[at].p_value).collect();
    for (&at, adjusted) in tested.iter().zip(stats::holm(&p)) {
        pairs[at].p_holm = Some(adjusted);
        pairs[at].real = adjusted < ALPHA;
    }
    let mut ranks = vec![[1, systems.len()]; systems.len()];
    for (&(better, worse), pair) in places.iter().zip(&pairs) {
        if pair.real {
            ranks[worse][0] += 1;
            ranks[better][1] -= 1;
        }
    }
    let rows = systems
        .iter()
        .zip(ranks)
        .map(|((report, value), ranks)| {
            let metric = report.metric(id);
            Standing {
                name: report.name.clone(),
                value: *value,
                n: metric.map_or(0, |metric| metric.n),
                interval: metric.and_then(|metric| metric.interval.clone()),
                ranks,
            }
        })
        .collect();
    Some(Leaderboard { dataset, metric: id.to_owned(), rows, pairs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Environment, Item, SCHEMA, SystemRef};

    /// A report on twenty tasks of which the first `done` succeed.
    fn report(name: &str, done: usize) -> Report {
        let items: Vec<Item> = (0..20)
            .map(|at| Item {
                id: format!("t-{at:02}"),
                group: None,
                tags: BTreeMap::new(),
                metrics: [("task.success".to_owned(), Some(f64::from(u8::from(at < done))))].into(),
                per_run: Vec::new(),
                observed: None,
                error: None,
            })
            .collect();
        let all: Vec<&Item> = items.iter().collect();
        let kind = crate::aggregate::Average::Rate;
        let metric = crate::aggregate::measure_named("task.success", kind, &all, 1, 0);
        Report {
            schema: SCHEMA.to_owned(),
            kind: Kind::Outcomes,
            evaluation: Kind::Outcomes.evaluation(),
            name: name.to_owned(),
            dataset: DatasetRef {
                id: "d".to_owned(),
                version: "v1".to_owned(),
                digest: "sha256:1".to_owned(),
            },
            contents: None,
            system: SystemRef {
                kind: "file".to_owned(),
                name: name.to_owned(),
                version: None,
                settings: BTreeMap::new(),
            },
            runs: 1,
            seed: 0,
            conventions: BTreeMap::new(),
            metrics: vec![metric],
            slices: Vec::new(),
            items,
            controls: Vec::new(),
            comparison: None,
            gate: None,
            warnings: Vec::new(),
            environment: Environment {
                karat: String::new(),
                os: String::new(),
                started: String::new(),
                duration_ms: 0,
                latency_ms: None,
                latency_bins: Vec::new(),
                commit: None,
                isolation: Vec::new(),
            },
        }
    }

    #[test]
    fn ranks_are_ranges_that_only_real_differences_narrow() {
        let reports = [report("low", 2), report("high", 18), report("nearly", 17)];
        let tables = of_recorded(&reports);
        assert_eq!(tables.len(), 1, "one metric is both accountings");
        let rows: Vec<_> =
            tables[0].rows.iter().map(|row| (row.name.as_str(), row.ranks)).collect();
        assert_eq!(rows, [("high", [1, 2]), ("nearly", [1, 2]), ("low", [3, 3])]);
        let real: Vec<bool> = tables[0].pairs.iter().map(|pair| pair.real).collect();
        assert_eq!(real, [false, true, true]);
        let first = &tables[0].pairs[0];
        assert_eq!((first.wins, first.losses, first.p_holm), (1, 0, Some(1.0)));
    }

    #[test]
    fn systems_on_other_tasks_are_not_in_the_table() {
        let mut other = report("other", 3);
        other.dataset.digest = "sha256:2".to_owned();
        assert!(of_recorded(&[report("one", 2), other]).is_empty());
    }
}

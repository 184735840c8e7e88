//! Several systems on the same data: who is ahead, and which of the differences are real.
//!
//! Every pair is compared item by item, as two reports are, and the p-values are corrected by Holm
//! over all pairs of a table. A system's rank is a range: behind those that are really better, and
//! ahead of those that are really worse.

use std::collections::{BTreeMap, BTreeSet};

use crate::baseline::Baseline;
use crate::compare::{Selector, delta};
use crate::kind::Kind;
use crate::paired::scores;
use crate::report::{Better, Interval, Item, Measured, Property, Report};
use crate::slice_key::SliceKey;
pub use crate::standings::{Leaderboard, Pairing, Standing};
use karat_metrics::{MetricId, metric, stats};

/// A difference with a corrected p-value below this is real.
pub const ALPHA: f64 = 0.05;

/// The most systems of one table; all pairs of more would take minutes.
const MAX_SYSTEMS: usize = 200;

/// The tables of recorded runs of several systems on the same tasks: one by the benchmark's own metric,
/// one by Karat's.
pub fn of_recorded(reports: &[Report]) -> Vec<Leaderboard> {
    groups(reports.iter().filter(|report| ours(report).is_some()))
        .into_iter()
        .flat_map(|group| {
            let of_benchmark = match group.first().map(|report| &report.kind) {
                Some(Kind::Resilience) => Some(metric!("agentdojo.targeted_asr")),
                _ => headline(&group),
            };
            let of_karat = group.first().and_then(|report| ours(report));
            let mut ids: Vec<MetricId> = of_benchmark.into_iter().chain(of_karat).collect();
            ids.dedup();
            ids.into_iter().filter_map(move |id| leaderboard(&group, &id, None))
        })
        .collect()
}

/// The metric by which Karat ranks systems whose runs were recorded elsewhere.
fn ours(report: &Report) -> Option<MetricId> {
    match report.kind {
        Kind::Outcomes => Some(metric!("task.success")),
        Kind::Resilience if report.system.kind == "file" => Some(metric!("attack.success")),
        _ => None,
    }
}

/// Tables of all reports on the same data, whatever their kind: one over everything, and one over each of
/// the slices. They are by `primary`, or by the first metric that every report has a value for.
pub fn of_reports(
    reports: &[Report],
    primary: Option<&str>,
    slices: &[SliceKey],
) -> Vec<Leaderboard> {
    let mut tables = Vec::new();
    for group in groups(reports.iter()) {
        let Some(id) = primary.map(MetricId::new).or_else(|| headline(&group)) else { continue };
        let parts = std::iter::once(None).chain(slices.iter().map(Some));
        tables.extend(parts.filter_map(|slice| leaderboard(&group, &id, slice)));
    }
    tables
}

/// The reports by kind and data, where there are several.
fn groups<'a>(reports: impl Iterator<Item = &'a Report>) -> Vec<Vec<&'a Report>> {
    let mut groups: BTreeMap<(&Kind, &str), Vec<&Report>> = BTreeMap::new();
    for report in reports {
        groups.entry((&report.kind, &report.dataset.digest)).or_default().push(report);
    }
    let mut groups: Vec<Vec<&Report>> = groups.into_values().collect();
    join_partial(&mut groups);
    groups.retain(|group| (2..=MAX_SYSTEMS).contains(&group.len()));
    groups
}

/// Groups recorded systems that lack some cases with the others under the same attacks: they are compared
/// over the cases that both have. A system is in a table once.
fn join_partial(groups: &mut Vec<Vec<&Report>>) {
    fn is_recorded(report: &Report) -> bool {
        report.kind == Kind::Resilience && report.system.kind == "file"
    }
    fn of(report: &Report) -> (&str, &str, BTreeSet<&str>) {
        let attacks = report.items.iter().filter_map(|item| item.tag(Property::Attack));
        (&report.dataset.id, &report.dataset.version, attacks.collect())
    }
    let (mut recorded, others): (Vec<_>, Vec<_>) =
        groups.drain(..).partition(|group| group.iter().all(|report| is_recorded(report)));
    // The largest table first, which is that of the whole set of cases.
    recorded.sort_by_key(|group: &Vec<&Report>| {
        std::cmp::Reverse((group.len(), group.first().map_or(0, |report| report.items.len())))
    });
    let mut joined: Vec<Vec<&Report>> = Vec::new();
    for group in recorded {
        let [first, ..] = group.as_slice() else { continue };
        let ids: BTreeSet<&str> = first.items.iter().map(|item| item.id.as_str()).collect();
        let fits = |table: &&mut Vec<&Report>| {
            let Some(whole) = table.first().filter(|whole| of(whole) == of(first)) else {
                return false;
            };
            let shared = whole.items.iter().filter(|item| ids.contains(item.id.as_str())).count();
            let is_new = |report: &&Report| {
                table.iter().all(|known| known.system.name != report.system.name)
            };
            2 * shared >= ids.len().max(1) && group.iter().all(is_new)
        };
        match joined.iter_mut().find(fits) {
            Some(table) => table.extend(group),
            None => joined.push(group),
        }
    }
    groups.extend(others);
    groups.extend(joined);
}

/// The first metric that every report has a value for.
fn headline(group: &[&Report]) -> Option<MetricId> {
    let metrics = group.first()?.metrics.iter();
    let everywhere = |id: &str| {
        group.iter().all(|report| report.metric(id).is_some_and(|metric| metric.value.is_some()))
    };
    metrics.map(|metric| metric.id.clone()).find(|id| everywhere(id))
}

/// The value of a metric over everything or over a slice.
fn measured<'r>(report: &'r Report, id: &str, slice: Option<&SliceKey>) -> Option<&'r Measured> {
    match slice {
        None => report.metric(id),
        Some(SliceKey { by, value }) => report.slice_metric(by, value, id),
    }
}

/// The report with the scores of one metric on its items, and nothing else of them.
fn with_only(report: &Report, id: &str) -> Report {
    let item = |item: &Item| Item {
        id: item.id.clone(),
        group: item.group.clone(),
        tags: item.tags.clone(),
        metrics: item
            .metrics
            .get_key_value(id)
            .map(|(id, score)| (id.clone(), *score))
            .into_iter()
            .collect(),
        ..Item::default()
    };
    let items = report.items.iter().map(item).collect();
    report.with_scores(report.metrics.clone(), report.slices.clone(), items)
}

/// Ranks systems by a metric; none if fewer than two have a value.
fn leaderboard(group: &[&Report], id: &str, slice: Option<&SliceKey>) -> Option<Leaderboard> {
    let mut systems: Vec<(&Report, f64)> = group
        .iter()
        .filter_map(|report| Some((*report, measured(report, id, slice)?.value?)))
        .collect();
    let dataset = systems.first()?.0.dataset.clone();
    if systems.len() < 2 {
        return None;
    }
    let sign = match measured(systems.first()?.0, id, slice)?.better {
        Better::Higher => 1.0,
        Better::Lower => -1.0,
    };
    systems.sort_by(|(one, a), (other, b)| {
        (sign * b).total_cmp(&(sign * a)).then_with(|| one.name.cmp(&other.name))
    });
    // Every pair is compared over the scores of this metric: without the others they are found sooner.
    let reports: Vec<Report> = systems.iter().map(|(report, _)| with_only(report, id)).collect();
    let baselines: Vec<Baseline> = reports.iter().map(Baseline::from_report).collect();
    let selector = Selector { metric: id.into(), slice: slice.cloned() };
    let mut pairs = Vec::new();
    let mut places = Vec::new();
    for (behind, baseline) in baselines.iter().enumerate().skip(1) {
        let earlier = scores(baseline);
        for (ahead, report) in reports.iter().enumerate().take(behind) {
            let found = delta(&selector, baseline, &earlier, report);
            // Systems that were not run on the same items can be the other way round on the common ones.
            let turned = found.delta.is_some_and(|delta| sign * delta < 0.0);
            let (better, worse) = if turned { (behind, ahead) } else { (ahead, behind) };
            let (mut wins, mut losses) = (found.improved.len() as u64, found.worsened.len() as u64);
            if turned {
                std::mem::swap(&mut wins, &mut losses);
            }
            let sign = if turned { -sign } else { sign };
            places.push((better, worse));
            pairs.push(Pairing {
                better: systems[better].0.name.clone(),
                worse: systems[worse].0.name.clone(),
                delta: found.delta.map(|delta| sign * delta),
                interval: found.interval.map(|interval| match sign < 0.0 {
                    true => Interval { low: -interval.high, high: -interval.low, ..interval },
                    false => interval,
                }),
                p_value: found.p_value,
                p_holm: None,
                test: found.test,
                pairs: found.pairs,
                wins,
                losses,
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
            let metric = measured(report, id, slice);
            Standing {
                name: report.name.clone(),
                label: Some(report.label().into_owned()).filter(|label| *label != report.name),
                value: *value,
                n: metric.map_or(0, |metric| metric.n),
                interval: metric.and_then(|metric| metric.interval.clone()),
                ranks,
            }
        })
        .collect();
    let slice = slice.map(ToString::to_string);
    Some(Leaderboard { dataset, metric: id.into(), slice, rows, pairs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{DatasetRef, Environment, SCHEMA, SystemRef};

    /// A report on twenty tasks of which the first `done` succeed.
    fn report(name: &str, done: usize) -> Report {
        let items: Vec<Item> = (0..20)
            .map(|at| Item {
                id: format!("t-{at:02}"),
                metrics: [("task.success".into(), Some(f64::from(u8::from(at < done))))].into(),
                ..Item::default()
            })
            .collect();
        let all: Vec<&Item> = items.iter().collect();
        let metric = crate::aggregate::measure(&"task.success".into(), &all, 1, 0);
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
            environment: Environment::default(),
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
    fn pairs_are_ordered_by_their_common_items() {
        // The first system was run on easy tasks alone, which the second does too.
        let mut ahead = report("ahead", 6);
        for item in &mut ahead.items[8..] {
            item.metrics.insert("task.success".into(), None);
        }
        ahead.metrics[0].value = Some(0.75);
        let table = &of_recorded(&[ahead, report("behind", 12)])[0];
        assert_eq!(table.rows[0].name, "ahead");
        let pair = &table.pairs[0];
        assert_eq!((pair.better.as_str(), pair.worse.as_str()), ("behind", "ahead"));
        assert_eq!((pair.pairs, pair.wins, pair.losses), (8, 2, 0));
        assert!((pair.delta.unwrap() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn where_less_is_better_a_difference_is_the_size_of_the_advantage() {
        let of = |name: &str, done| {
            let mut found = report(name, done);
            found.kind = Kind::Resilience;
            for item in &mut found.items {
                let score = item.metrics.remove("task.success").unwrap();
                item.metrics.insert("attack.success".into(), score);
            }
            found.metrics[0].id = "attack.success".into();
            found.metrics[0].better = Better::Lower;
            found
        };
        let table = &of_recorded(&[of("weak", 18), of("strong", 2)])[0];
        let pair = &table.pairs[0];
        assert_eq!((pair.better.as_str(), pair.worse.as_str()), ("strong", "weak"));
        let (delta, interval) = (pair.delta.unwrap(), pair.interval.clone().unwrap());
        assert!(interval.low <= delta && delta <= interval.high && interval.low > 0.0);
        assert_eq!((pair.wins, pair.losses), (16, 0));
    }

    #[test]
    fn a_table_is_by_the_metric_and_the_slice_that_were_asked_for() {
        let reports = [report("low", 2), report("high", 18)].map(|mut report| {
            let mut extra = report.metrics[0].clone();
            extra.id = "pass^4".into();
            report.metrics.push(extra);
            for item in &mut report.items {
                let score = item.metrics["task.success"];
                item.metrics.insert("pass^4".into(), score);
                item.tags.insert("area".to_owned(), "web".to_owned());
            }
            let metrics = report.metrics.clone();
            let slice = crate::report::Slice { by: "area".into(), value: "web".into(), metrics };
            report.slices = vec![slice];
            report
        });
        let slices = ["area=web".parse().unwrap()];
        let tables = of_reports(&reports, Some("pass^4"), &slices);
        let found: Vec<_> =
            tables.iter().map(|table| (table.metric.as_str(), table.slice.as_deref())).collect();
        assert_eq!(found, [("pass^4", None), ("pass^4", Some("area=web"))]);
        assert!(tables.iter().all(|table| table.pairs[0].real));
        assert!(of_reports(&reports, Some("recall@1"), &[]).is_empty());
    }

    #[test]
    fn recorded_runs_that_lack_cases_are_in_the_table_of_the_others() {
        let of = |name: &str, done: usize, cases: usize, digest: &str| {
            let mut found = report(name, done);
            found.kind = Kind::Resilience;
            found.items.truncate(cases);
            for item in &mut found.items {
                let score = item.metrics.remove("task.success").unwrap();
                item.metrics.insert("attack.success".into(), score);
                item.tags.insert(Property::Attack.into(), "direct".to_owned());
            }
            found.metrics[0].id = "attack.success".into();
            found.dataset.digest = digest.to_owned();
            found
        };
        let mut again = of("a.v1.2", 2, 20, "sha256:3");
        again.system.name = "a".to_owned();
        let mut other = of("other", 2, 20, "sha256:4");
        for item in &mut other.items {
            item.tags.insert(Property::Attack.into(), "else".to_owned());
        }
        let reports = [
            of("a", 2, 20, "sha256:1"),
            of("b", 9, 20, "sha256:1"),
            of("c", 9, 15, "sha256:2"),
            again,
            other,
        ];
        let tables = of_recorded(&reports);
        assert_eq!(tables.len(), 1);
        let names: Vec<&str> = tables[0].rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        let pair = tables[0].pairs.iter().find(|pair| pair.worse == "c" || pair.better == "c");
        assert_eq!(pair.unwrap().pairs, 15);
    }

    #[test]
    fn systems_on_other_tasks_are_not_in_the_table() {
        let mut other = report("other", 3);
        other.dataset.digest = "sha256:2".to_owned();
        assert!(of_recorded(&[report("one", 2), other]).is_empty());
    }
}

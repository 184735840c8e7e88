//! Failed rules as rows: before, now and limit on one scale, and the worst items behind them.

use karat_core::report::{Check, Report, Verdict};
use serde::Serialize;

use crate::charts::{Scale, percent};
use crate::format::{bound, encoded, is_significant, number, signed};
use crate::terminal::items;
use crate::{findings, select};

/// The most items that a card lists with their text.
const WORST: usize = 8;

/// The numbers of a rule, and their places on one axis.
#[derive(Serialize)]
pub(super) struct Numbers {
    now: String,
    baseline: Option<String>,
    /// The change with its interval.
    change: Option<String>,
    /// True if chance is ruled out.
    certain: bool,
    /// The limit as text, such as `≥ 0.9` or `drop of at most 0.02`.
    allowed: String,
    axis: [String; 2],
    at: String,
    before_at: Option<String>,
    limit_at: String,
    /// The part of the axis beyond the limit.
    beyond: [String; 2],
    /// A description for readers who do not see the drawing.
    label: String,
}

/// The numbers of a rule that has a limit and a value.
pub(super) fn numbers(check: &Check, report: &Report) -> Option<Numbers> {
    let (now, threshold) = (check.value?, check.threshold?);
    let (limit, lower_is_beyond, allowed) = match (check.rule.as_str(), check.baseline) {
        ("min", _) => (threshold, true, format!("≥ {threshold}")),
        ("max", _) => (threshold, false, format!("≤ {threshold}")),
        ("max_drop", Some(before)) => {
            (before - threshold, true, format!("drop of at most {threshold}"))
        }
        ("max_rise", Some(before)) => {
            (before + threshold, false, format!("rise of at most {threshold}"))
        }
        _ => return None,
    };
    if ![now, limit].iter().all(|value| value.is_finite()) {
        return None;
    }
    let scale = Scale::around([now, limit].into_iter().chain(check.baseline));
    let place = |value: f64| percent(scale.place(value));
    let share = scale.place(limit);
    let delta = report.comparison.iter().flat_map(|comparison| &comparison.deltas);
    let delta = delta
        .filter(|delta| delta.metric == check.metric && delta.slice == check.slice)
        .find(|delta| delta.delta.is_some());
    let change = delta.and_then(|delta| {
        let ends = delta.interval.as_ref().filter(|ends| ends.method != "no_change");
        let ends = ends.map(|ends| format!(" [{} to {}]", bound(ends.low), bound(ends.high)));
        Some(signed(delta.delta?) + &ends.unwrap_or_default())
    });
    let before = check.baseline.map(|before| format!("baseline {}, ", number(before)));
    Some(Numbers {
        label: format!(
            "{}: {}now {}, limit {}",
            check.metric,
            before.unwrap_or_default(),
            number(now),
            number(limit)
        ),
        now: number(now),
        baseline: check.baseline.map(number),
        change,
        certain: delta.is_some_and(is_significant),
        allowed,
        axis: scale.range().map(bound),
        at: place(now),
        before_at: check.baseline.map(place),
        limit_at: place(limit),
        beyond: match lower_is_beyond {
            true => [percent(0.0), percent(share)],
            false => [percent(share), percent(1.0 - share)],
        },
    })
}

/// An item behind a failed rule.
#[derive(Serialize)]
pub(super) struct Worst {
    id: String,
    target: String,
    text: String,
    change: String,
}

/// The worst items of the failed rule that explains the failure; of a suite, its failed cases.
pub(super) fn worst(report: &Report, slug: &str) -> Vec<Worst> {
    let target = |id: &str| format!("{slug}/{}", encoded(id));
    let (cases, _) = findings::failed_cases(report);
    if select::checks(report, Verdict::Fail).next().is_some() && !cases.is_empty() {
        let case = |case: findings::FailedCase<'_>| Worst {
            id: case.id.to_owned(),
            target: target(case.id),
            text: case.reason,
            change: "failed".to_owned(),
        };
        return cases.into_iter().take(WORST).map(case).collect();
    }
    let failed: Vec<&Check> = select::checks(report, Verdict::Fail).collect();
    let Some(check) = select::explaining(&failed) else { return Vec::new() };
    items::worsened(report, &check.metric, &check.items)
        .iter()
        .take(WORST)
        .map(|moved| Worst {
            id: moved.item.id.clone(),
            target: target(&moved.item.id),
            text: items::described(moved.item),
            change: moved.change(),
        })
        .collect()
}

//! Agents and defences under attack: what attacks reach against what is left of the work, and where
//! attacks succeed.

use karat_core::report::{Kind, Measured, Property, Report};
use karat_metrics::metric;

use super::figure::{Context, Figure, Group, bars};
use crate::charts::{Line, Plot, Point, Scale, along};
use crate::format::{optional, range};
use crate::select;

/// The most reports of which each shows the picture of all.
const PICTURES: usize = 8;

pub(super) fn figures(context: &Context<'_>, all: &[Report]) -> Vec<Figure> {
    let outcomes = ["succeeded", "attempted", "refused", "ignored", "undelivered"];
    let rows = context.facet_rows(&outcomes);
    let ends = Figure::bars("Attacked runs by their end", "runs", vec![Group::of(None, rows)]);
    let groups: Vec<Group> = [Property::Surface, Property::Attack, Property::Suite, Property::Goal]
        .into_iter()
        .map(|by| by_slice(context, by))
        .filter(|group| group.rows.len() > 1)
        .collect();
    let mut figures: Vec<Figure> = trade_off(context, all).into_iter().collect();
    figures.push(ends);
    if !groups.is_empty() {
        figures.push(Figure::bars("Attack success by part", "rate", groups));
    }
    figures
}

fn by_slice(context: &Context<'_>, by: Property) -> Group {
    let rows: Vec<_> = context
        .slices(by)
        .into_iter()
        .filter_map(|slice| {
            let metric = select::metric(&slice.metrics, &metric!("attack.success"))?;
            Some((slice.value.clone(), Some(context.items(&[(by.name(), &slice.value)])), metric))
        })
        .collect();
    Group::of(Some(by.into()), bars(&rows))
}

/// Attack success against utility: one point for each report of the document. Of many reports, only the
/// first shows it.
fn trade_off(context: &Context<'_>, all: &[Report]) -> Option<Figure> {
    let mut same = all.iter().filter(|report| report.kind == Kind::Resilience);
    let first = same.next().is_some_and(|report| report.name == context.report.name);
    if same.count() >= PICTURES && !first {
        return None;
    }
    let scale = Scale::up_to(1.0);
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    let reports = all.iter().filter(|report| report.kind == Kind::Resilience);
    for report in reports {
        let utility = [metric!("utility.under_attack"), metric!("utility.benign")];
        let found = utility.iter().find_map(|id| report.metric(id).filter(|m| m.value.is_some()));
        let (Some(success), Some(utility)) = (report.metric(&metric!("attack.success")), found)
        else {
            continue;
        };
        let Some(x) = success.value else { continue };
        let ends = |metric: &Measured| metric.interval.as_ref().map(|i| [i.low, i.high]);
        let shown = |metric: &Measured| {
            format!("{} ({})", optional(metric.value), range(metric.interval.as_ref(), " to "))
        };
        let title = format!(
            "{}: attack success {}, utility {}",
            report.label(),
            shown(success),
            shown(utility)
        );
        let point = Point { x, y: utility.value, ends: ends(utility), span: ends(success), title };
        let mut line = Line::new(&report.label(), &[point], &scale);
        line.is_own = report.name == context.report.name;
        lines.push(line);
        rows.push(vec![report.label().into_owned(), shown(success), shown(utility)]);
    }
    if lines.is_empty() {
        return None;
    }
    let lead = match lines.len() {
        1 => "The best place is at the top left.",
        _ => {
            Line::number(&mut lines);
            "Each point is a report of this page, this one in gold. The best place is at the top left."
        }
    };
    let plot = Plot {
        label: "Attack success against utility under attack".to_owned(),
        across: "attack success",
        up: "utility",
        lines,
        x_ticks: [0.0, 0.25, 0.5, 0.75, 1.0]
            .map(|at| along(at, format!("{} %", at * 100.0)))
            .to_vec(),
        y_ticks: scale.ticks(),
        head: ["defence", "attack success", "utility"].map(str::to_owned).to_vec(),
        rows,
        ..Plot::default()
    };
    Some(Figure::plot("What attacks reach, and what is left of the work", plot).lead(lead))
}

//! The spread of what a run costs: tokens, time and money, task by task.

use karat_core::report::Report;
use karat_metrics::{MetricId, metric};

use super::figure::Figure;
use crate::charts::{Column, Plot, Scale, along, short};

/// The metrics that are drawn, each with its title and its unit.
static COSTS: [(MetricId, &str, &str); 3] = [
    (metric!("run.tokens"), "Tokens of a run", "tokens"),
    (metric!("run.ms"), "Time of a run", "ms"),
    (metric!("run.cost"), "Cost of a run", "cost, in the currency of the prices"),
];
/// The fewest runs that have a spread.
const FEWEST: usize = 5;
/// The most columns.
const COLUMNS: usize = 24;

/// A histogram for each cost that the runs of the report have.
pub(super) fn figures(report: &Report) -> Vec<Figure> {
    COSTS.iter().filter_map(|(id, title, unit)| histogram(report, id, title, unit)).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the columns is small and not negative"
)]
fn histogram(report: &Report, id: &str, title: &str, unit: &'static str) -> Option<Figure> {
    let mut values: Vec<f64> = report
        .items
        .iter()
        .filter_map(|item| item.metrics.get(id).copied().flatten())
        .filter(|value| value.is_finite() && *value >= 0.0)
        .collect();
    values.sort_by(f64::total_cmp);
    let (lowest, highest) = (*values.first()?, *values.last()?);
    if values.len() < FEWEST || lowest == highest {
        return None;
    }
    let end = Scale::up_to(highest).range()[1];
    let each = end / COLUMNS as f64;
    let mut counts = [0_u64; COLUMNS];
    for value in &values {
        counts[((value / each) as usize).min(COLUMNS - 1)] += 1;
    }
    let scale = Scale::of_counts(counts.iter().copied().max()?);
    let span =
        |at: usize| format!("{} to {}", short(at as f64 * each), short((at + 1) as f64 * each));
    let columns = counts.iter().enumerate().map(|(at, count)| {
        let title = format!("{}: {count}", span(at));
        Column::new(at, COLUMNS, scale.place(*count as f64), title)
    });
    let quantile = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let lead = format!(
        "Half of {} runs take at most {}, nine of ten at most {}.",
        values.len(),
        short(quantile(0.5)),
        short(quantile(0.9))
    );
    let ticks = [0.0, 0.25, 0.5, 0.75, 1.0];
    let plot = Plot {
        label: format!(
            "Histogram of {id} of {} runs, from {} to {}",
            values.len(),
            short(lowest),
            short(highest)
        ),
        across: unit,
        up: "runs",
        columns: columns.collect(),
        x_ticks: ticks.map(|share| along(share, short(end * share))).to_vec(),
        y_ticks: scale.ticks(),
        head: vec![unit.to_owned(), "runs".to_owned()],
        rows: counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(at, count)| vec![span(at), count.to_string()])
            .collect(),
        ..Plot::default()
    };
    Some(Figure::plot(title, plot).lead(lead))
}

#[cfg(test)]
mod tests {
    use karat_core::report::Kind;

    use super::super::figure::Body;
    use super::*;
    use crate::sample;

    #[test]
    fn every_run_is_in_one_column() {
        let items = (0..40).map(|at| {
            let mut item = sample::passing().items[0].clone();
            item.id = format!("t-{at}");
            item.metrics.insert("run.tokens".into(), Some(f64::from(at * at)));
            item.metrics.insert("run.ms".into(), Some(7.0));
            item
        });
        let report = sample::report(Kind::Traces, "a", Vec::new(), items.collect());
        let found = figures(&report);
        assert_eq!(found.len(), 1, "a cost that is always the same has no spread");
        let Body::Plot(plot) = &found[0].body else { panic!("not a plot") };
        let counted: u64 = plot.rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
        assert_eq!(counted, 40);
    }
}

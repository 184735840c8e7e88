//! ROC and precision-recall curves of a detector that gives scores, with the point at which it operates.

use karat_core::observed::{Observed, VerdictOutcome};
use karat_core::report::{Property, Report};
use karat_metrics::classification::Scores;

use super::figure::{Context, Figure};
use crate::charts::{Line, Plot, Point, Scale, along};
use crate::format::number;
use crate::select;

/// The most points of a curve. More cannot be told apart.
const POINTS: usize = 400;
/// The most rows of the table.
const ROWS: usize = 25;

/// Both curves; none without a score for every verdict, or where one class is missing.
pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let Some((scores, operating)) = scored(context.report) else { return Vec::new() };
    let Ok(curve) = scores.roc_curve_of_corners() else { return Vec::new() };
    let roc = {
        let points: Vec<(f64, f64)> = curve.fpr.iter().copied().zip(curve.tpr).collect();
        let auc = scores.roc_auc().map_or_else(|_| String::new(), number);
        let at = operating.map(|at| (at.fpr, at.recall));
        let lead = format!("Area {auc}. The dot is the decision rule that was measured.");
        drawn(&context.of_observed("ROC curve"), &points, at, ["false-positive rate", "recall"])
            .lead(lead)
    };
    let precision = scores.precision_recall_curve().ok().map(|curve| {
        let mut points: Vec<(f64, f64)> =
            curve.recall.iter().copied().zip(curve.precision).collect();
        points.reverse();
        let area = scores.average_precision().map_or_else(|_| String::new(), number);
        let at = operating.and_then(|at| Some((at.recall, at.precision?)));
        let lead = format!("Average precision {area}.");
        drawn(&context.of_observed("Precision and recall"), &points, at, ["recall", "precision"])
            .lead(lead)
    });
    std::iter::once(roc).chain(precision).collect()
}

/// The rates of the verdicts that were given.
#[derive(Clone, Copy)]
struct Operating {
    fpr: f64,
    recall: f64,
    precision: Option<f64>,
}

/// The scores of the system as a whole, which is the first detector of the report.
fn scored(report: &Report) -> Option<(Scores, Option<Operating>)> {
    let whole = &select::slices(report, Property::Detector).first()?.value;
    let (mut truths, mut scores, mut counts) = (Vec::new(), Vec::new(), [0_u32; 4]);
    for item in report.items.iter().filter(|item| item.error.is_none()) {
        let Some(Observed::Verdicts(entry)) = &item.observed else { continue };
        let (place, truth) = match entry.outcome? {
            VerdictOutcome::TruePositive => (0, true),
            VerdictOutcome::FalseNegative => (1, true),
            VerdictOutcome::FalsePositive => (2, false),
            VerdictOutcome::TrueNegative => (3, false),
            VerdictOutcome::Unsupported | VerdictOutcome::Error => continue,
        };
        counts[place] += 1;
        truths.push(truth);
        scores.push(*entry.scores.get(whole)?);
    }
    let scores = Scores::new(&truths, &scores).ok()?;
    let [hits, misses, alarms, quiet] = counts.map(f64::from);
    let operating = (hits + misses > 0.0 && alarms + quiet > 0.0).then(|| Operating {
        fpr: alarms / (alarms + quiet),
        recall: hits / (hits + misses),
        precision: (hits + alarms > 0.0).then(|| hits / (hits + alarms)),
    });
    Some((scores, operating))
}

fn drawn(
    title: &str,
    points: &[(f64, f64)],
    operating: Option<(f64, f64)>,
    [across, up]: [&'static str; 2],
) -> Figure {
    let scale = Scale::from_zero([]);
    let line = thinned(points, POINTS).map(|(x, y)| Point { x, y: Some(y), ..Point::default() });
    let mut lines =
        vec![Line::new("every threshold", &line.collect::<Vec<_>>(), &scale).without_dots()];
    let mut label = format!("{title}: {up} over {across}");
    if let Some((x, y)) = operating {
        let title = format!("measured: {across} {}, {up} {}", number(x), number(y));
        label.push_str(&format!("; {title}"));
        let point = Point { x, y: Some(y), title, ..Point::default() };
        lines.push(Line::new("as measured", &[point], &scale));
    }
    let mut rows: Vec<Vec<String>> =
        thinned(points, ROWS).map(|(x, y)| vec![number(x), number(y)]).collect();
    rows.dedup();
    let plot = Plot {
        label,
        across,
        up,
        lines,
        x_ticks: [0.0, 0.25, 0.5, 0.75, 1.0].map(|x| along(x, format!("{x}"))).to_vec(),
        y_ticks: Scale::up_to(1.0).ticks(),
        head: vec![across.to_owned(), up.to_owned()],
        rows,
        ..Plot::default()
    };
    Figure::plot(title, plot)
}

/// Points of a curve at equal distances in the list, the ends included.
fn thinned(points: &[(f64, f64)], most: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
    let step = points.len().div_ceil(most.max(1)).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(move |(at, _)| at % step == 0 || *at == last).map(|(_, p)| *p)
}

#[cfg(test)]
mod tests {
    use karat_core::observed::Verdicts;
    use karat_core::report::{Kind, Slice};

    use super::super::figure::Body;
    use super::*;
    use crate::sample;

    fn figures(report: &Report) -> Vec<Figure> {
        super::figures(&Context { report, slug: "d" })
    }

    fn report(scored: &[(VerdictOutcome, Option<f64>)]) -> Report {
        let items = scored.iter().enumerate().map(|(at, (outcome, score))| {
            let scores = score.map(|score| ("all".to_owned(), score)).into_iter().collect();
            let entry = Verdicts { outcome: Some(*outcome), scores, ..Verdicts::default() };
            let mut item = sample::passing().items[0].clone();
            item.id = format!("e-{at}");
            item.error = None;
            item.observed = Some(Observed::Verdicts(Box::new(entry)));
            item
        });
        let mut report = sample::report(Kind::Verdicts, "d", Vec::new(), items.collect());
        report.slices =
            vec![Slice { by: Property::Detector.into(), value: "all".to_owned(), metrics: vec![] }];
        report
    }

    #[test]
    fn the_curves_have_the_measured_point_on_them() {
        use VerdictOutcome::{FalseNegative, FalsePositive, TrueNegative, TruePositive};
        let found = figures(&report(&[
            (TruePositive, Some(0.9)),
            (FalsePositive, Some(0.8)),
            (FalseNegative, Some(0.3)),
            (TrueNegative, Some(0.1)),
        ]));
        let lines: Vec<String> = found
            .iter()
            .map(|figure| match &figure.body {
                Body::Plot(plot) => format!("{} | {}", plot.label, plot.lines[0].pieces[0].line),
                _ => panic!("not a plot"),
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_verdict_without_a_score_leaves_no_curve() {
        use VerdictOutcome::{TrueNegative, TruePositive};
        let found = report(&[(TruePositive, Some(0.9)), (TrueNegative, None)]);
        assert!(figures(&found).is_empty());
        assert!(figures(&report(&[(TruePositive, Some(0.9))])).is_empty(), "one class");
    }
}

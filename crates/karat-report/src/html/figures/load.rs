//! Load: throughput and latency second by second, latency at every percentile, and the steps of the
//! search for the highest load. The histogram of latencies is used by the other reports as well.

use karat_core::observed::{Load, Observed};
use karat_core::report::{Bin, Item, Property};
use karat_metrics::{MetricId, metric, registry};

use super::figure::{Context, Figure, Group};
use crate::charts::{Column, Line, Plot, Point, Scale, Tick, along, short};
use crate::format::{NONE, number};

/// The most columns of a histogram.
const COLUMNS: i64 = 32;
/// The bins of each doubling, as reports have them.
const BINS_PER_DOUBLING: f64 = 8.0;
/// The most points of a curve; beyond that, neighbours share one.
const POINTS: usize = 600;
/// The most points that are drawn as dots.
const DOTS: usize = 80;
/// The most rows of a table.
const ROWS: usize = 120;
/// The latencies that are drawn.
static LATENCIES: [MetricId; 2] = [metric!("latency.p50"), metric!("latency.p99")];
/// The metrics of each step of a search.
static STEP_COLUMNS: [MetricId; 4] =
    [metric!("throughput"), metric!("latency.p50"), metric!("latency.p99"), metric!("error_rate")];

pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let seconds: Vec<&Item> = context
        .report
        .items
        .iter()
        .filter(|item| matches!(item.observed, Some(Observed::Load(Load::Second { .. }))))
        .collect();
    let bins = &context.report.environment.latency_bins;
    let over_time = [
        over_time(&seconds, "Throughput over time", "calls per second", &[metric!("throughput")]),
        over_time(&seconds, "Latency over time", "ms", &LATENCIES),
        over_time(&seconds, "Errors over time", "share of calls", &[metric!("error_rate")]),
    ];
    let mut figures: Vec<Figure> = over_time
        .into_iter()
        .chain([search(&context.report.items), percentiles(bins), histogram(bins)])
        .flatten()
        .collect();
    for (title, head, by, metric) in [
        (
            "Errors by class, as a share of all calls",
            "share",
            Property::Class,
            metric!("error_rate"),
        ),
        ("Median latency by call, in ms", "ms", Property::Call, metric!("latency.p50")),
    ] {
        let rows = context.plain_bars_by(by, &metric);
        if !rows.is_empty() {
            figures.push(Figure::bars(title, head, vec![Group::of(None, rows)]));
        }
    }
    figures
}

fn value(item: &Item, metric: &MetricId) -> Option<f64> {
    item.metrics.get(metric).copied().flatten().filter(|value| value.is_finite())
}

/// The headings of a table: what its rows are, and its metrics.
fn headings(rows: &str, metrics: &[MetricId]) -> Vec<String> {
    [rows].into_iter().chain(metrics.iter().map(MetricId::as_str)).map(str::to_owned).collect()
}

/// A cell of a table.
fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), number)
}

/// The values of one metric along the horizontal axis.
type Values = Vec<Option<f64>>;

fn highest<'a>(series: impl IntoIterator<Item = &'a Values>) -> Option<f64> {
    series.into_iter().flatten().flatten().copied().reduce(f64::max)
}

/// Metrics of each second as curves; none where no second has a value, or no call ever failed.
fn over_time(
    seconds: &[&Item],
    title: &str,
    up: &'static str,
    metrics: &[MetricId],
) -> Option<Figure> {
    let each = seconds.len().div_ceil(POINTS).max(1);
    let groups: Vec<&[&Item]> = seconds.chunks(each).collect();
    // Of seconds that share a point the worst is shown: a curve must not hide a spike.
    let worst = |group: &[&Item], metric: &MetricId| {
        let values = group.iter().filter_map(|item| value(item, metric));
        match metric.definition().map(|metric| metric.better) {
            Some(registry::Better::Higher) => values.reduce(f64::min),
            Some(registry::Better::Lower) | None => values.reduce(f64::max),
        }
    };
    let series: Vec<Values> = metrics
        .iter()
        .map(|metric| groups.iter().map(|group| worst(group, metric)).collect())
        .collect();
    let highest = highest(&series)?;
    if metrics == [metric!("error_rate")] && highest == 0.0 {
        return None;
    }
    let scale = Scale::up_to(highest);
    let last = groups.len().saturating_sub(1);
    let x = |at: usize| at as f64 / last.max(1) as f64;
    let second = |at: usize| at * each + 1;
    let mut ends = vec![0, groups.len() / 2, last];
    ends.dedup();
    let rows = (0..groups.len().min(ROWS)).map(|at| {
        let values = series.iter().map(|values| cell(values[at]));
        [second(at).to_string()].into_iter().chain(values).collect()
    });
    let figure = Figure::plot(
        title,
        Plot {
            label: format!("{title}: {}", extremes(metrics, &series)),
            across: "seconds from the start",
            up,
            lines: lines(metrics, &series, &scale, x, |at| format!("second {}", second(at))),
            x_ticks: ends.iter().map(|at| along(x(*at), format!("{} s", second(*at)))).collect(),
            y_ticks: scale.ticks(),
            head: headings("second", metrics),
            rows: rows.collect(),
            ..Plot::default()
        },
    );
    Some(match each {
        1 => figure,
        _ => figure.lead(format!("Each point is the worst of {each} seconds.")),
    })
}

fn lines(
    names: &[MetricId],
    series: &[Values],
    scale: &Scale,
    x: impl Fn(usize) -> f64,
    place: impl Fn(usize) -> String,
) -> Vec<Line> {
    let line = |(name, values): (&MetricId, &Values)| {
        let point = |(at, y): (usize, &Option<f64>)| {
            let title = format!("{}: {name} {}", place(at), cell(*y));
            Point { x: x(at), y: *y, title, ..Point::default() }
        };
        let points: Vec<Point> = values.iter().enumerate().map(point).collect();
        let line = Line::new(name, &points, scale);
        if points.len() > DOTS { line.without_dots() } else { line }
    };
    names.iter().zip(series).map(line).collect()
}

/// The lowest and the highest value of each series, as text.
fn extremes(names: &[MetricId], series: &[Values]) -> String {
    let texts: Vec<String> = names
        .iter()
        .zip(series)
        .map(|(name, values)| {
            let known = || values.iter().flatten().copied();
            let (low, high) = (known().reduce(f64::min), known().reduce(f64::max));
            format!("{name} between {} and {}", cell(low), cell(high))
        })
        .collect();
    texts.join("; ")
}

/// The steps of the search for the highest load, and whether each was sustained.
fn search(items: &[Item]) -> Option<Figure> {
    let mut steps: Vec<(f64, Option<&str>, &Item)> = items
        .iter()
        .filter_map(|item| match &item.observed {
            Some(Observed::Load(Load::Step { load, why_not, .. })) if load.is_finite() => {
                Some((*load, why_not.as_deref(), item))
            }
            _ => None,
        })
        .collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (steps.first()?.0, steps.last()?.0);
    let of_steps = |metric| steps.iter().map(|(_, _, item)| value(item, metric)).collect();
    let series: Vec<Values> = LATENCIES.iter().map(of_steps).collect();
    let scale = Scale::up_to(highest(&series)?);
    let width = if most > least { most - least } else { 1.0 };
    let x = |at: usize| (steps[at].0 - least) / width;
    let rows = steps.iter().take(ROWS).map(|(load, why_not, item)| {
        let values = STEP_COLUMNS.iter().map(|metric| cell(value(item, metric)));
        let held = why_not.map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"));
        [short(*load)].into_iter().chain(values).chain([held]).collect()
    });
    let mut head = headings("load", &STEP_COLUMNS);
    head.push("sustained".to_owned());
    let plot = Plot {
        label: format!("Latency by load: {}", extremes(&LATENCIES, &series)),
        across: "load",
        up: "ms",
        lines: lines(&LATENCIES, &series, &scale, x, |at| format!("load {}", short(steps[at].0))),
        x_ticks: vec![along(0.0, short(least)), along(1.0, short(most))],
        y_ticks: scale.ticks(),
        rows: rows.collect(),
        head,
        ..Plot::default()
    };
    Some(Figure::plot("Latency by load", plot).lead("One point for each step of the search."))
}

/// The percentiles in the table.
const NAMED: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// The bins that a drawing can show, and the number of calls in them.
fn usable(bins: &[Bin]) -> (Vec<&Bin>, u64) {
    let usable: Vec<&Bin> =
        bins.iter().filter(|bin| bin.up_to > 0.0 && bin.up_to.is_finite()).collect();
    let calls = usable.iter().fold(0_u64, |sum, bin| sum.saturating_add(bin.count));
    (usable, calls)
}

/// The latency within which each share of the calls was answered. The axis gives every nine as much
/// room as the one before it.
fn percentiles(bins: &[Bin]) -> Option<Figure> {
    let (bins, all) = usable(bins);
    let (shortest, longest) = (bins.first()?.up_to, bins.last()?.up_to);
    // The share beyond the last point is half a call, so that the axis ends there.
    let nines = |share: f64| -(1.0 - share).max(1.0 / (all as f64 * 2.0)).log10();
    let end = nines(1.0);
    let mut seen = 0_u64;
    let mut points = vec![Point { x: 0.0, y: Some(shortest), ..Point::default() }];
    for bin in &bins {
        seen = seen.saturating_add(bin.count);
        let x = nines(seen as f64 / all as f64) / end;
        points.push(Point { x, y: Some(bin.up_to), ..Point::default() });
    }
    let scale = Scale::up_to(longest);
    let within = |share: f64| {
        let mut seen = 0_u64;
        let reached = |bin: &&&Bin| {
            seen = seen.saturating_add(bin.count);
            seen as f64 >= share * all as f64
        };
        bins.iter().find(reached).map(|bin| bin.up_to)
    };
    let named = || NAMED.into_iter().filter(|share| *share == 1.0 || nines(*share) < end);
    // As many digits as the share needs: 99.99 must not become 100.
    let percent = |share: f64| format!("{} %", (share * 1e6).round() / 1e4);
    let ticks = named().filter(|share| [0.5, 0.9, 0.99, 0.999, 0.9999].contains(share));
    let plot = Plot {
        label: format!(
            "Latency by percentile: half within {} ms, 99 % within {} ms, all within {} ms",
            cell(within(0.5)),
            cell(within(0.99)),
            cell(Some(longest))
        ),
        across: "share of the calls",
        up: "ms",
        lines: vec![Line::new("answered within", &points, &scale).without_dots()],
        x_ticks: ticks.map(|share| along(nines(share) / end, percent(share))).collect(),
        y_ticks: scale.ticks(),
        head: vec!["share".to_owned(), "within ms".to_owned()],
        rows: named().map(|share| vec![percent(share), cell(within(share))]).collect(),
        ..Plot::default()
    };
    let lead = format!(
        "{}; the time within which a share of them was answered.",
        crate::format::count(all, "call")
    );
    Some(Figure::plot("Latency by percentile", plot).lead(lead))
}

/// Latencies by size. Bins grow by a constant factor, so the axis is logarithmic.
pub(super) fn histogram(bins: &[Bin]) -> Option<Figure> {
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a time is small")]
    let place = |bin: &Bin| (bin.up_to.log2() * BINS_PER_DOUBLING).round() as i64;
    let (bins, all) = usable(bins);
    let (first, last) = (place(bins.first()?), place(bins.last()?));
    let each = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
        .into_iter()
        .find(|each| (last.div_euclid(*each) - first.div_euclid(*each)) < COLUMNS)?;
    // A column holds the bins that end in (column · each, (column + 1) · each].
    let column = |place: i64| (place - 1).div_euclid(each);
    let (from, to) = (column(first), column(last));
    let width = usize::try_from(to - from + 1).ok()?;
    let mut counts = vec![0_u64; width];
    for bin in bins {
        let count = counts.get_mut(usize::try_from(column(place(bin)) - from).ok()?)?;
        *count = count.saturating_add(bin.count);
    }
    let edge = |at: usize| {
        let doublings = (from + at as i64) as f64 * each as f64 / BINS_PER_DOUBLING;
        doublings.exp2().min(f64::MAX)
    };
    let span = |at: usize| format!("{} to {} ms", short(edge(at)), short(edge(at + 1)));
    let scale = Scale::of_counts(counts.iter().copied().max()?);
    let columns = counts.iter().enumerate().map(|(at, count)| {
        Column::new(at, width, scale.place(*count as f64), format!("{}: {count}", span(at)))
    });
    let rows = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let plot = Plot {
        label: format!(
            "Histogram of {} from {} to {} ms",
            crate::format::count(all, "latency"),
            short(edge(0)),
            short(edge(width))
        ),
        across: "ms, on a logarithmic axis",
        up: "calls",
        columns: columns.collect(),
        x_ticks: round_times(edge(0), edge(width)),
        y_ticks: scale.ticks(),
        head: vec!["latency".to_owned(), "calls".to_owned()],
        rows: rows.map(|(at, count)| vec![span(at), count.to_string()]).collect(),
        ..Plot::default()
    };
    Some(Figure::plot("Latencies", plot))
}

/// Round times between two ends of a logarithmic axis: powers of ten, and where these are few, twice
/// and five times as much.
fn round_times(from: f64, to: f64) -> Vec<Tick> {
    let place = |ms: f64| (ms.ln() - from.ln()) / (to.ln() - from.ln());
    let within = |steps: &[f64]| -> Vec<f64> {
        let powers = (-9..=12).map(|power| 10_f64.powi(power));
        let all = powers.flat_map(|power| steps.iter().map(move |step| step * power));
        all.filter(|ms| (0.0..=1.0).contains(&place(*ms))).collect()
    };
    let tens = within(&[1.0]);
    let chosen = if tens.len() < 3 { within(&[1.0, 2.0, 5.0]) } else { tens };
    chosen.into_iter().map(|ms| along(place(ms), short(ms))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figure::Body;
    use super::*;

    fn plot(figure: Figure) -> Plot {
        match figure.body {
            Body::Plot(plot) => *plot,
            _ => panic!("not a plot"),
        }
    }

    fn counted(figure: Figure) -> u64 {
        plot(figure).rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum()
    }

    #[test]
    fn every_latency_is_in_one_column() {
        let bins: Vec<Bin> = (-80_i32..200)
            .map(|place| Bin { up_to: (f64::from(place) / 8.0).exp2(), count: 3 })
            .collect();
        assert!(plot(histogram(&bins).unwrap()).columns.len() <= 33);
        assert_eq!(counted(histogram(&bins).unwrap()), 3 * 280);
        assert!(histogram(&[]).is_none());
        assert_eq!(plot(histogram(&bins[..1]).unwrap()).columns.len(), 1);
    }

    #[test]
    fn percentiles_rise_to_the_longest_latency() {
        let bins = [(1.0, 90), (2.0, 9), (50.0, 1)].map(|(up_to, count)| Bin { up_to, count });
        let rows = plot(percentiles(&bins).unwrap()).rows;
        let shown: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(shown.first(), Some(&"1.0000"));
        assert_eq!(shown.last(), Some(&"50.00"));
        assert!(rows.iter().any(|row| row[0] == "99 %" && row[1] == "2.0000"));
    }

    #[test]
    fn an_axis_of_times_has_round_ticks() {
        let texts = |from, to| -> Vec<String> {
            round_times(from, to).into_iter().map(|tick| tick.text).collect()
        };
        assert_eq!(texts(0.5, 2000.0), ["1", "10", "100", "1000"]);
        assert_eq!(texts(0.8, 9.0), ["1", "2", "5"]);
    }

    #[test]
    fn bins_without_a_finite_time_are_left_out() {
        for up_to in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let bins = [Bin { up_to, count: 7 }, Bin { up_to: 1.0, count: 3 }];
            assert_eq!(counted(histogram(&bins).unwrap()), 3, "{up_to}");
            let rows = plot(percentiles(&bins).unwrap()).rows;
            assert!(rows.iter().all(|row| row[1] == "1.0000"), "{up_to}: {rows:?}");
            assert!(histogram(&bins[..1]).is_none() && percentiles(&bins[..1]).is_none());
        }
    }

    #[test]
    fn extreme_bins_are_drawn_within_the_figure() {
        for up_to in [f64::MAX, f64::MIN_POSITIVE] {
            let mut bins = [Bin { up_to, count: u64::MAX }, Bin { up_to: 1.0, count: 1 }];
            bins.sort_by(|a, b| a.up_to.total_cmp(&b.up_to));
            let drawn = plot(histogram(&bins).unwrap());
            assert!(drawn.columns.len() <= 33, "{up_to}: {}", drawn.columns.len());
            assert_eq!(drawn.rows.len(), 2, "{up_to}");
            let [line] = &plot(percentiles(&bins).unwrap()).lines[..] else { panic!("one line") };
            assert!(!line.pieces[0].line.contains("NaN"), "{up_to}: {:?}", line.pieces);
        }
    }
}

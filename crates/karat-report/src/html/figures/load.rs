//! Load: throughput and times second by second, the times at every percentile, what each step of a
//! search found. The histogram of times serves the other reports as well.

use karat_core::report::{Bin, Item};

use super::super::plot::{Column, Line, Plot, Tick, along, cell, heights, short, top};
use super::{Body, Context, Figure, Group};

/// Columns of a histogram at most.
const COLUMNS: i64 = 32;
/// Bins for each doubling, as the report makes them.
const EACH_DOUBLING: f64 = 8.0;
/// Points of a curve at most; beyond, neighbours share one.
const POINTS: usize = 600;
/// Rows of a table at most.
const ROWS: usize = 120;

pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let of = |kind: &str| -> Vec<&Item> {
        let items = context.report.items.iter();
        items.filter(|item| item.tags.get("kind").is_some_and(|found| found == kind)).collect()
    };
    let (seconds, steps) = (of("second"), of("step"));
    let mut figures = Vec::new();
    figures.extend(over_time(
        &seconds,
        "Throughput over time",
        "answers in a second",
        &["throughput"],
    ));
    figures.extend(over_time(
        &seconds,
        "Answer time over time",
        "ms",
        &["latency.p50", "latency.p99"],
    ));
    figures.extend(over_time(&seconds, "Errors over time", "share of calls", &["error_rate"]));
    figures.extend(searched(&steps));
    figures.extend(percentiles(&context.report.environment.latency_bins));
    figures.extend(histogram(&context.report.environment.latency_bins));
    let classes = context.bars_by("class", "error_rate");
    if !classes.is_empty() {
        figures.push(Figure {
            title: "Errors by class".to_owned(),
            lead: Some("The share of all calls that ended so.".to_owned()),
            body: Body::Bars { head: "share", groups: vec![Group::of(None, unlinked(classes))] },
            wide: false,
        });
    }
    let calls = context.bars_by("call", "latency.p50");
    if !calls.is_empty() {
        figures.push(Figure {
            title: "Median answer time by call, in ms".to_owned(),
            lead: None,
            body: Body::Bars { head: "ms", groups: vec![Group::of(None, unlinked(calls))] },
            wide: false,
        });
    }
    figures
}

/// Classes and calls are no property of a second.
fn unlinked(mut rows: Vec<super::Bar>) -> Vec<super::Bar> {
    rows.iter_mut().for_each(|row| row.target = None);
    rows
}

fn value(item: &Item, metric: &str) -> Option<f64> {
    item.metrics.get(metric).copied().flatten().filter(|value| value.is_finite())
}

/// Metrics of each second as curves; none where no second has any of them, or where errors never came.
fn over_time(seconds: &[&Item], title: &str, up: &'static str, metrics: &[&str]) -> Option<Figure> {
    let each = seconds.len().div_ceil(POINTS).max(1);
    let groups: Vec<&[&Item]> = seconds.chunks(each).collect();
    // Of seconds that share a point the worst is shown: a curve must not hide a spike.
    let series: Vec<Vec<Option<f64>>> = metrics
        .iter()
        .map(|metric| {
            let worst = |group: &[&Item]| {
                let values = group.iter().filter_map(|item| value(item, metric));
                match *metric {
                    "throughput" => values.reduce(f64::min),
                    _ => values.reduce(f64::max),
                }
            };
            groups.iter().map(|group| worst(group)).collect()
        })
        .collect();
    let most = series.iter().flatten().flatten().copied().reduce(f64::max)?;
    if metrics == ["error_rate"] && most == 0.0 {
        return None;
    }
    let last = groups.len().saturating_sub(1).max(1) as f64;
    let second = |at: usize| at * each + 1;
    let lines = draw(
        metrics,
        &series,
        top(most),
        |at| at as f64 / last,
        |at| format!("second {}", second(at)),
    );
    let ends = [0, groups.len() / 2, groups.len().saturating_sub(1)];
    let mut x_ticks: Vec<_> =
        ends.into_iter().map(|at| along(at as f64 / last, format!("{} s", second(at)))).collect();
    x_ticks.dedup_by(|a, b| a.at == b.at);
    let shown = groups.len().min(ROWS);
    let rows = (0..shown).map(|at| {
        let values = series.iter().map(|values| cell(values[at]));
        [second(at).to_string()].into_iter().chain(values).collect()
    });
    let label = format!("{title}: {}", spans(metrics, &series));
    let mut head = vec!["second".to_owned()];
    head.extend(metrics.iter().map(|metric| (*metric).to_owned()));
    Some(Figure {
        title: title.to_owned(),
        lead: (each > 1).then(|| format!("Each point is the worst of {each} seconds.")),
        body: Body::Plot(Box::new(Plot {
            label,
            across: "seconds from the start",
            up,
            lines,
            x_ticks,
            y_ticks: heights(top(most)),
            head,
            rows: rows.collect(),
            ..Plot::default()
        })),
        wide: false,
    })
}

fn draw(
    names: &[&str],
    series: &[Vec<Option<f64>>],
    top: f64,
    x: impl Fn(usize) -> f64,
    place: impl Fn(usize) -> String,
) -> Vec<Line> {
    names
        .iter()
        .zip(series)
        .map(|(name, values)| {
            let points: Vec<(f64, Option<f64>)> = values
                .iter()
                .enumerate()
                .map(|(at, value)| (x(at), value.map(|v| v / top)))
                .collect();
            let titles: Vec<String> = values
                .iter()
                .enumerate()
                .map(|(at, value)| format!("{}: {name} {}", place(at), cell(*value)))
                .collect();
            Line::new(name, &points, &titles)
        })
        .collect()
}

/// From where to where each series goes, in words.
fn spans(names: &[&str], series: &[Vec<Option<f64>>]) -> String {
    let words: Vec<String> = names
        .iter()
        .zip(series)
        .map(|(name, values)| {
            let known = || values.iter().flatten().copied();
            let (low, high) = (known().reduce(f64::min), known().reduce(f64::max));
            format!("{name} between {} and {}", cell(low), cell(high))
        })
        .collect();
    words.join("; ")
}

/// The steps of a search for the most load: where the condition held.
fn searched(steps: &[&Item]) -> Option<Figure> {
    let load = |item: &Item| item.observed.get("load")?.as_f64().filter(|load| load.is_finite());
    let mut steps: Vec<(f64, &Item)> =
        steps.iter().filter_map(|item| Some((load(item)?, *item))).collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (steps.first()?.0, steps.last()?.0);
    let metrics = ["latency.p50", "latency.p99"];
    let series =
        metrics.map(|metric| steps.iter().map(|(_, item)| value(item, metric)).collect::<Vec<_>>());
    let highest = top(series.iter().flatten().flatten().copied().reduce(f64::max)?);
    let width = if most > least { most - least } else { 1.0 };
    let x = |at: usize| (steps[at].0 - least) / width;
    let lines = draw(&metrics, &series, highest, x, |at| format!("load {}", short(steps[at].0)));
    let rows = steps.iter().take(ROWS).map(|(load, item)| {
        let why = item.observed.get("why_not").and_then(|why| why.as_str());
        vec![
            short(*load),
            cell(value(item, "throughput")),
            cell(value(item, "latency.p50")),
            cell(value(item, "latency.p99")),
            cell(value(item, "error_rate")),
            why.map_or_else(|| "yes".to_owned(), |why| format!("no: {why}")),
        ]
    });
    Some(Figure {
        title: "Answer time by load".to_owned(),
        lead: Some("One point for each step of the search.".to_owned()),
        body: Body::Plot(Box::new(Plot {
            label: format!("Answer time by load: {}", spans(&metrics, &series)),
            across: "load",
            up: "ms",
            lines,
            x_ticks: vec![along(0.0, short(least)), along(1.0, short(most))],
            y_ticks: heights(highest),
            rows: rows.collect(),
            head: ["load", "throughput", "latency.p50", "latency.p99", "error_rate", "holds"]
                .map(str::to_owned)
                .to_vec(),
            ..Plot::default()
        })),
        wide: false,
    })
}

/// The percentiles that the table names.
const NAMED: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// The time within which each share of the calls was answered. The axis gives every nine as much room.
fn percentiles(bins: &[Bin]) -> Option<Figure> {
    let all: u64 = bins.iter().map(|bin| bin.count).sum();
    let longest = bins.last()?.up_to;
    // The share that is slower than the last point: one call, so that the axis ends there.
    let nines = |share: f64| -(1.0 - share).max(1.0 / (all as f64 * 2.0)).log10();
    let end = nines(1.0);
    let mut seen = 0;
    let mut points = vec![(0.0, Some(bins.first()?.up_to))];
    for bin in bins {
        seen += bin.count;
        points.push((nines(seen as f64 / all as f64) / end, Some(bin.up_to)));
    }
    let highest = top(longest);
    let within = |share: f64| {
        let mut seen = 0;
        let reached = |bin: &&Bin| {
            seen += bin.count;
            seen as f64 >= share * all as f64
        };
        bins.iter().find(reached).map(|bin| bin.up_to)
    };
    let named = || NAMED.into_iter().filter(|share| *share == 1.0 || nines(*share) < end);
    let scaled: Vec<(f64, Option<f64>)> =
        points.iter().map(|(x, y)| (*x, y.map(|y| y / highest))).collect();
    // As many digits as the share needs: 99.99 must not become 100.
    let percent = |share: f64| format!("{} %", (share * 1e6).round() / 1e4);
    let ticks = named().filter(|share| [0.5, 0.9, 0.99, 0.999, 0.9999].contains(share));
    let x_ticks = ticks.map(|share| along(nines(share) / end, percent(share))).collect();
    Some(Figure {
        title: "Answer time by percentile".to_owned(),
        lead: Some(format!("{all} calls; the time within which a share of them was answered.")),
        body: Body::Plot(Box::new(Plot {
            label: format!(
                "Answer time by percentile: half within {} ms, 99 % within {} ms, all within {} ms",
                cell(within(0.5)),
                cell(within(0.99)),
                cell(Some(longest))
            ),
            across: "share of the calls",
            up: "ms",
            lines: vec![Line::new("answered within", &scaled, &[])],
            x_ticks,
            y_ticks: heights(highest),
            head: vec!["share".to_owned(), "within ms".to_owned()],
            rows: named().map(|share| vec![percent(share), cell(within(share))]).collect(),
            ..Plot::default()
        })),
        wide: false,
    })
}

/// Times by size. Bins grow evenly by factors, so the axis is logarithmic.
pub(super) fn histogram(bins: &[Bin]) -> Option<Figure> {
    #[expect(clippy::cast_possible_truncation, reason = "a logarithm of a time is small")]
    let place = |bin: &Bin| (bin.up_to.log2() * EACH_DOUBLING).round() as i64;
    let usable: Vec<&Bin> =
        bins.iter().filter(|bin| bin.up_to > 0.0 && bin.up_to.is_finite()).collect();
    let (first, last) = (place(usable.first()?), place(usable.last()?));
    let each = [1, 2, 4, 8, 16, 32, 64]
        .into_iter()
        .find(|each| (last.div_euclid(*each) - first.div_euclid(*each)) < COLUMNS)?;
    // A column holds the bins that end in (column · each, (column + 1) · each].
    let column = |place: i64| (place - 1).div_euclid(each);
    let (from, to) = (column(first), column(last));
    let width = usize::try_from(to - from + 1).ok()?;
    let mut counts = vec![0_u64; width];
    for bin in usable {
        let at = usize::try_from(column(place(bin)) - from).ok()?;
        *counts.get_mut(at)? += bin.count;
    }
    let edge = |at: usize| ((from + at as i64) as f64 * each as f64 / EACH_DOUBLING).exp2();
    let said = |at: usize| format!("{} to {} ms", short(edge(at)), short(edge(at + 1)));
    let most = counts.iter().copied().max()?;
    // Quarters of a small count would be no counts.
    let highest = if most <= 20 { most.div_ceil(4).max(1) as f64 * 4.0 } else { top(most as f64) };
    let all: u64 = counts.iter().sum();
    let columns = counts.iter().enumerate().map(|(at, count)| {
        Column::new(at, width, *count as f64 / highest, format!("{}: {count}", said(at)))
    });
    let rows = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let x_ticks = round_times(edge(0), edge(width));
    Some(Figure {
        title: "Answer times".to_owned(),
        lead: None,
        body: Body::Plot(Box::new(Plot {
            label: format!(
                "Histogram of {all} answer times from {} to {} ms",
                short(edge(0)),
                short(edge(width))
            ),
            across: "ms, each column by a factor longer than the one before",
            up: "answers",
            columns: columns.collect(),
            x_ticks,
            y_ticks: heights(highest),
            head: vec!["answer time".to_owned(), "answers".to_owned()],
            rows: rows.map(|(at, count)| vec![said(at), count.to_string()]).collect(),
            ..Plot::default()
        })),
        wide: false,
    })
}

/// Round times at their places between two ends of a logarithmic axis: powers of ten, and where these
/// are few, twice and five times as much.
fn round_times(from: f64, to: f64) -> Vec<Tick> {
    let place = |ms: f64| (ms / from).ln() / (to / from).ln();
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
    use super::*;

    fn plot(figure: Figure) -> Plot {
        match figure.body {
            Body::Plot(plot) => *plot,
            _ => panic!("no plot"),
        }
    }

    #[test]
    fn every_time_stands_in_one_column() {
        let bins: Vec<Bin> = (-80_i32..200)
            .map(|place| Bin { up_to: (f64::from(place) / 8.0).exp2(), count: 3 })
            .collect();
        let drawn = plot(histogram(&bins).unwrap());
        assert!(drawn.columns.len() <= 33, "{}", drawn.columns.len());
        let counted: u64 = drawn.rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
        assert_eq!(counted, 3 * 280);
        assert!(histogram(&[]).is_none());
        assert_eq!(plot(histogram(&bins[..1]).unwrap()).columns.len(), 1);
    }

    #[test]
    fn percentiles_rise_to_the_longest_time() {
        let bins = [(1.0, 90), (2.0, 9), (50.0, 1)].map(|(up_to, count)| Bin { up_to, count });
        let drawn = plot(percentiles(&bins).unwrap());
        let said: Vec<&str> = drawn.rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(said.first(), Some(&"1.0000"));
        assert_eq!(said.last(), Some(&"50.00"));
        assert!(drawn.rows.iter().any(|row| row[0] == "99 %" && row[1] == "2.0000"));
    }

    #[test]
    fn an_axis_of_times_names_round_ones() {
        let texts = |from, to| -> Vec<String> {
            round_times(from, to).into_iter().map(|tick| tick.text).collect()
        };
        assert_eq!(texts(0.5, 2000.0), ["1", "10", "100", "1000"]);
        assert_eq!(texts(0.8, 9.0), ["1", "2", "5"]);
    }

    #[test]
    fn odd_bins_are_no_panic() {
        for up_to in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE] {
            let bins = [Bin { up_to, count: u64::MAX / 2 }, Bin { up_to: 1.0, count: 1 }];
            let _ = (histogram(&bins), percentiles(&bins));
        }
    }
}

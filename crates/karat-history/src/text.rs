//! The history in a terminal of 80 columns.

use std::fmt::Write as _;

use karat_core::report::Better;
use karat_io::text::{clip, printable};
use karat_report::format::{NONE, count, number, range, signed};

use crate::model::{Entry, Run};
use crate::series::{self, Series};

const WIDTH: usize = 80;
/// The most values of a sparkline.
const SPARKS: usize = 12;
/// The most values of a sparkline that has a line of its own.
const LONG_SPARKS: usize = 48;

/// Runs as a table, the latest last.
pub fn list(runs: &[Run]) -> String {
    let mut text =
        format!("{:>5}  {:<20}  {:<12}  {:<10}  entries\n", "run", "started", "verdict", "commit");
    for run in runs {
        let names: Vec<String> = run
            .entries
            .iter()
            .map(|subject| format!("{}/{}", subject.evaluation, subject.name))
            .collect();
        let line = format!(
            "{:>5}  {:<20}  {:<12}  {:<10}  {}",
            run.id,
            run.started,
            run.state.name(),
            short_commit(run.commit.as_deref()),
            printable(&names.join(", "))
        );
        let _ = writeln!(text, "{}", clip(&line, WIDTH));
    }
    text
}

/// The first ten characters of a commit.
pub(crate) fn short_commit(commit: Option<&str>) -> String {
    let Some(commit) = commit else { return NONE.to_owned() };
    let shown = printable(commit);
    let (head, changed) = match shown.split_once('+') {
        Some((head, _)) => (head, "+"),
        None => (&*shown, ""),
    };
    let room = 10 - changed.len();
    format!("{}{changed}", head.chars().take(room).collect::<String>())
}

/// Enough of a digest to tell two versions of a dataset apart.
pub(crate) fn short_digest(digest: &str) -> String {
    printable(digest.trim_start_matches("sha256:")).chars().take(8).collect()
}

/// One metric over time, a table for each series.
pub fn metric(all: &[Series<'_>]) -> String {
    let mut text = String::new();
    for series in all {
        let head = format!(
            "{} · {}: {} on {} {} {} ({} is better)",
            series.subject.evaluation,
            series.subject.name,
            series.metric,
            series.dataset.id,
            series.dataset.version,
            short_digest(&series.dataset.digest),
            match series.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
            }
        );
        let _ = writeln!(text, "{}", clip(&printable(&head), WIDTH));
        let values = series.values();
        let left_out = match values.len() > LONG_SPARKS {
            true => format!("  the last {LONG_SPARKS} of {}", count(values.len(), "value")),
            false => String::new(),
        };
        let _ = writeln!(text, "  {}{left_out}", sparkline(&values, LONG_SPARKS));
        let _ = writeln!(
            text,
            "{:>5}  {:<20} {:>7}  {:<13} {:>6} {:>8}  verdict",
            "run", "started", "value", "95 % range", "n", "change"
        );
        for point in &series.points {
            let _ = writeln!(
                text,
                "{:>5}  {:<20} {:>7}  {:<13} {:>6} {:>8}  {}",
                point.run,
                point.started,
                value(point.value),
                range(point.interval, "–"),
                point.n,
                point.delta.map_or_else(String::new, signed),
                point.state.name()
            );
            if let Some(reason) = point.undefined {
                let line = format!("       undefined: {}", printable(reason));
                let _ = writeln!(text, "{}", clip(&line, WIDTH));
            }
        }
        text.push('\n');
    }
    text
}

/// Every metric of one subject: its latest value and the earlier ones.
pub fn subject(entries: &[&Entry]) -> String {
    let mut text = String::new();
    let Some(latest) = entries.last() else { return text };
    let data = latest.dataset.as_ref();
    let data = data.map_or_else(String::new, |data| format!(" on {} {}", data.id, data.version));
    let alike = entries.iter().filter(|entry| entry.dataset == latest.dataset).count();
    let mut runs = count(entries.len(), "run");
    if alike != entries.len() {
        runs = format!("{alike} of {runs}");
    }
    let head = format!("{} · {}{data}, {runs}", latest.subject.evaluation, latest.subject.name);
    let _ = writeln!(text, "{}", clip(&printable(&head), WIDTH));
    if let Some(reason) = &latest.reason {
        let line = format!("  not measured in run {}: {}", latest.run, printable(reason));
        let _ = writeln!(text, "{}\n", clip(&line, WIDTH));
        return text;
    }
    let over_time = match alike > SPARKS {
        true => format!("last {SPARKS} runs"),
        false => "over time".to_owned(),
    };
    let _ = writeln!(
        text,
        "  {:<24} {:>7}  {:<13} {:>6} {:>8}  {over_time}",
        "metric", "value", "95 % range", "n", "change"
    );
    for measured in &latest.values {
        let all = series::of(entries.iter().copied(), &measured.metric);
        let of_now = all.iter().find(|one| Some(one.dataset) == latest.dataset.as_ref());
        let Some((series, point)) = of_now.and_then(|one| Some((one, one.points.last()?))) else {
            continue;
        };
        let _ = writeln!(
            text,
            "  {:<24} {:>7}  {:<13} {:>6} {:>8}  {}",
            clip(&printable(&measured.metric), 24),
            value(point.value),
            range(point.interval, "–"),
            point.n,
            point.delta.map_or_else(String::new, signed),
            sparkline(&series.values(), SPARKS),
        );
    }
    text.push('\n');
    text
}

fn value(value: Option<f64>) -> String {
    value.map_or_else(|| "null".to_owned(), number)
}

/// The latest values, `most` of them, as blocks between their lowest and their highest.
fn sparkline(values: &[f64], most: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = values.get(values.len().saturating_sub(most)..).unwrap_or(values);
    let low = shown.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shown.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let block = |value: f64| {
        // The first threshold that is not exceeded; of equal values, the middle.
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        let steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let at = steps.iter().position(|step| share * 8.0 <= *step).unwrap_or(7);
        BLOCKS[at]
    };
    shown.iter().map(|value| block(*value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_reaches_from_the_lowest_to_the_highest() {
        assert_eq!(sparkline(&[0.0, 0.5, 1.0], SPARKS), "▁▄█");
        assert_eq!(sparkline(&[0.3, 0.3], SPARKS), "▄▄");
        assert_eq!(sparkline(&[], SPARKS), "");
        assert_eq!(sparkline(&[0.0; 40], SPARKS).chars().count(), SPARKS);
        // The difference of the two is not finite.
        assert_eq!(sparkline(&[-1e308, 1e308], SPARKS).chars().count(), 2);
    }

    #[test]
    fn a_short_commit_still_shows_that_files_were_changed() {
        assert_eq!(short_commit(Some("0123456789abcdef")), "0123456789");
        assert_eq!(short_commit(Some("0123456789abcdef+changes")), "012345678+");
        assert_eq!(short_commit(None), "–");
    }
}

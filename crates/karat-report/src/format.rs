//! Numbers and phrases as all outputs show them, so that a report reads the same everywhere. Nothing
//! is escaped here: each format has its own rules.

use std::collections::BTreeMap;

use karat_core::leaderboard::{self, Leaderboard, Pairing};
use karat_core::report::{
    Better, Check, CheckReport, Comparison, Delta, Interval, Measured, NotCompared, Verdict,
};
pub use karat_io::text::count;

/// Shown where there is nothing.
pub const NONE: &str = "–";

/// A value: four decimals for shares, fewer for large numbers.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 10.0 => 4,
        size if size < 100.0 => 2,
        size if size < 1000.0 => 1,
        _ => 0,
    };
    minus(format!("{value:.decimals$}"))
}

/// An end of an interval: one decimal less than the value, because it is less certain.
pub(crate) fn bound(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 10.0 => 3,
        size if size < 100.0 => 1,
        _ => 0,
    };
    minus(format!("{value:.decimals$}"))
}

/// A change, with its sign.
pub fn signed(value: f64) -> String {
    match number(value) {
        text if value > 0.0 => format!("+{text}"),
        text => text,
    }
}

/// Replaces the hyphen by a minus sign, as wide as a plus; drops it if only zeros are left.
pub(crate) fn minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

/// A value, or `undefined`.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "undefined".to_owned(), number)
}

/// The interval of a metric, or a dash.
pub fn range(interval: Option<&Interval>, between: &str) -> String {
    interval.map_or_else(
        || NONE.to_owned(),
        |interval| format!("{}{between}{}", bound(interval.low), bound(interval.high)),
    )
}

/// The counts behind a rate, such as `98 of 183`.
pub(crate) fn ratio(metric: &Measured) -> Option<String> {
    let count = metric.count.as_ref().filter(|count| count.of > 0)?;
    Some(format!("{} of {}", count.hits, count.of))
}

/// A share as a percentage for reading, such as `12.5 %`.
pub(crate) fn percentage(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A timestamp for reading: `2026-11-15 03:04:05 UTC`.
pub fn moment(stamp: &str) -> String {
    match stamp.strip_suffix('Z').and_then(|text| text.split_once('T')) {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => stamp.to_owned(),
    }
}

/// Text as part of an address, encoded as `encodeURIComponent` does it in a browser.
pub(crate) fn encoded(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => text.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' => {
                text.push(char::from(byte));
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// A p-value, if there is one.
pub(crate) fn optional_p(p: Option<f64>) -> String {
    p.map_or_else(|| NONE.to_owned(), p_value)
}

/// A p-value; one that rounds to nothing is not nothing.
pub fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// Returns whether chance is ruled out: the interval of the paired difference does not hold 0.
pub fn is_significant(delta: &Delta) -> bool {
    delta.interval.as_ref().is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0)
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// An improvement.
    Better,
    /// A regression.
    Worse,
    /// No change.
    Same,
}

impl Direction {
    /// The direction of a change of a metric.
    pub(crate) fn of(change: f64, better: Better) -> Direction {
        if change == 0.0 {
            Direction::Same
        } else if (change > 0.0) == (better == Better::Higher) {
            Direction::Better
        } else {
            Direction::Worse
        }
    }

    /// The name, which is also its style class.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Direction::Better => "better",
            Direction::Worse => "worse",
            Direction::Same => "same",
        }
    }
}

/// The reasons for which changes have no interval, each with its metrics.
pub(crate) fn without_interval(deltas: &[Delta]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for delta in deltas {
        if let Some(reason) = &delta.no_interval {
            let metrics = reasons.entry(reason).or_default();
            if !metrics.contains(&delta.metric.as_str()) {
                metrics.push(&delta.metric);
            }
        }
    }
    let line = |(reason, metrics): (&str, Vec<&str>)| format!("{}: {reason}", metrics.join(", "));
    reasons.into_iter().map(line).collect()
}

/// The metrics of a comparison that could not be compared, with the reason.
pub fn not_compared(comparison: &Comparison) -> Option<String> {
    let NotCompared { metrics, reason } = comparison.not_compared.as_ref()?;
    Some(format!("not compared: {} ({reason})", metrics.join(", ")))
}

/// The two lists of items of a delta, worse first.
pub(crate) fn moved(delta: &Delta) -> [(Direction, &[String]); 2] {
    [(Direction::Worse, &delta.worsened), (Direction::Better, &delta.improved)]
}

/// The name of a check: `recall@5 max_drop 0.02 over split=test`.
pub(crate) fn check_name(check: &Check) -> String {
    let mut name = format!("{} {}", check.metric, check.rule);
    if let Some(limit) = check.threshold {
        name.push_str(&format!(" {limit}"));
    }
    if let Some(slice) = &check.slice {
        name.push_str(&format!(" over {slice}"));
    }
    name
}

/// The reason for the verdict, without a full stop.
pub(crate) fn summary(check: &CheckReport) -> String {
    let with = |verdict| {
        let gates = check.reports.iter().filter_map(|report| report.gate.as_ref());
        gates.filter(|gate| gate.verdict == verdict).count()
    };
    let entries = count(check.reports.len() + check.not_measured.len(), "entry");
    match check.verdict {
        None if check.not_measured.is_empty() => format!("{entries} measured, none has a gate"),
        None => {
            let failed = match with(Verdict::Fail) {
                0 => String::new(),
                failed => format!("; {failed} got worse or broke a limit"),
            };
            format!("{} of {entries} could not be measured{failed}", check.not_measured.len())
        }
        Some(Verdict::Fail) => {
            format!("{} of {entries} got worse or broke a limit", with(Verdict::Fail))
        }
        Some(Verdict::Inconclusive) => {
            format!("{} of {entries} undecided: not enough data", with(Verdict::Inconclusive))
        }
        Some(Verdict::Pass) if check.reports.iter().all(|report| report.gate.is_none()) => {
            format!("{entries} measured, none has a gate")
        }
        Some(Verdict::Pass) => format!("{entries} measured, all checks passed"),
    }
}

/// The name of the verdict of a check.
pub fn verdict_name(check: &CheckReport) -> &'static str {
    match check.verdict {
        Some(verdict) => verdict.name(),
        None if check.not_measured.is_empty() => "no gate",
        None => "not measured",
    }
}

/// The heading of intervals, with their level if all have the same.
pub(crate) fn interval_heading<'a>(levels: impl Iterator<Item = &'a f64>) -> String {
    let mut levels: Vec<f64> = levels.copied().collect();
    levels.dedup();
    match levels.as_slice() {
        [level] => {
            let percent = format!("{:.1}", level * 100.0);
            format!("{} % interval", percent.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => "interval".to_owned(),
    }
}

/// The usual name of an interval method.
pub(crate) fn method(name: &str) -> String {
    match name {
        "wilson" => "Wilson".to_owned(),
        "wilson_clustered" => "Wilson by group".to_owned(),
        "clopper_pearson" => "Clopper–Pearson".to_owned(),
        "bootstrap_clustered" => "bootstrap by group".to_owned(),
        "t" => "Student’s t".to_owned(),
        other => other.to_owned(),
    }
}

/// A range of ranks.
pub(crate) fn rank([best, worst]: [usize; 2]) -> String {
    if best == worst { best.to_string() } else { format!("{best}–{worst}") }
}

/// The number of pairs of systems that really differ.
pub(crate) fn real_differences(pairs: &[Pairing]) -> String {
    let real = pairs.iter().filter(|pair| pair.real).count();
    format!(
        "real differences: {real} of {} (paired test item by item, Holm over all pairs, p < {})",
        pairs.len(),
        leaderboard::ALPHA
    )
}

/// The metric, the slice and the data of a table of systems.
pub(crate) fn leaderboard_title(table: &Leaderboard) -> String {
    let slice = table.slice.as_ref().map(|slice| format!(" ({slice})")).unwrap_or_default();
    format!("{}{slice} on {} {}", table.metric, table.dataset.id, table.dataset.version)
}

/// The pairs that are shown, the most certain differences first, and the number of the others.
pub(crate) fn shown_pairs(pairs: &[Pairing]) -> (Vec<&Pairing>, usize) {
    const SHOWN: usize = 15;
    let mut shown: Vec<&Pairing> = pairs.iter().collect();
    shown.sort_by(|a, b| a.p_holm.unwrap_or(1.0).total_cmp(&b.p_holm.unwrap_or(1.0)));
    shown.truncate(SHOWN);
    let more = pairs.len() - shown.len();
    (shown, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_number_has_fewer_decimals() {
        let shown: Vec<String> = [0.71234, 12.345, 123.45, 12345.6].map(number).to_vec();
        assert_eq!(shown, ["0.7123", "12.35", "123.5", "12346"]);
    }

    #[test]
    fn a_p_value_that_rounds_to_nothing_is_not_nothing() {
        let shown: Vec<String> = [0.570, 0.001, 0.000_9, 0.0].map(p_value).to_vec();
        assert_eq!(shown, ["0.570", "0.001", "< 0.001", "< 0.001"]);
        assert_eq!((optional_p(Some(0.0)), optional_p(None)), ("< 0.001".into(), NONE.into()));
    }

    #[test]
    fn a_change_is_significant_only_where_its_interval_leaves_zero_out() {
        let with = |interval: serde_json::Value| -> Delta {
            serde_json::from_value(serde_json::json!({
                "metric": "recall@5", "before": 0.5, "after": 0.53, "delta": 0.03, "better": "higher",
                "interval": interval, "pairs": 9, "improved": [], "worsened": [],
            }))
            .unwrap()
        };
        let between = |low: f64, high: f64| {
            with(
                serde_json::json!({"low": low, "high": high, "level": 0.95, "method": "bootstrap"}),
            )
        };
        assert!(is_significant(&between(0.01, 0.05)) && is_significant(&between(-0.05, -0.01)));
        assert!(!is_significant(&between(-0.049, 0.107)) && !is_significant(&between(0.0, 0.1)));
        assert!(!is_significant(&with(serde_json::Value::Null)));
    }

    #[test]
    fn a_change_has_a_sign_unless_it_rounds_to_zero() {
        let shown: Vec<String> = [0.02, -0.02, 0.0, -0.000_01].map(signed).to_vec();
        assert_eq!(shown, ["+0.0200", "\u{2212}0.0200", "0.0000", "0.0000"]);
    }

    #[test]
    fn a_level_is_in_the_heading_only_if_all_intervals_have_it() {
        assert_eq!(interval_heading([0.95, 0.95].iter()), "95 % interval");
        assert_eq!(interval_heading([0.999].iter()), "99.9 % interval");
        assert_eq!(interval_heading([0.95, 0.9].iter()), "interval");
        assert_eq!(interval_heading([].iter()), "interval");
    }

    #[test]
    fn a_timestamp_is_readable() {
        assert_eq!(moment("2026-11-15T03:04:05Z"), "2026-11-15 03:04:05 UTC");
        assert_eq!(moment("yesterday"), "yesterday");
    }

    #[test]
    fn an_item_id_cannot_leave_its_address() {
        assert_eq!(encoded("q-1"), "q-1");
        assert_eq!(encoded("\"><script>#/ü"), "%22%3E%3Cscript%3E%23%2F%C3%BC");
    }

    #[test]
    fn nouns_have_a_plural() {
        assert_eq!(count(1, "entry"), "1 entry");
        assert_eq!(count(2, "entry"), "2 entries");
        assert_eq!(count(0, "item"), "0 items");
    }
}

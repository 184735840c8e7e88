//! Numbers and phrases that the page, the summary and the test cases share, so that one report reads
//! the same in all of them. Nothing is escaped here: every format has rules of its own.

use karat_core::report::{Better, Check, CheckReport, Delta, Verdict};

/// A value: four decimals for shares, fewer where the number is large.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 10.0 => 4,
        size if size < 100.0 => 2,
        size if size < 1000.0 => 1,
        _ => 0,
    };
    minus(format!("{value:.decimals$}"))
}

/// An end of an interval: one decimal less than the value, because it is the less certain number.
pub fn bound(value: f64) -> String {
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

/// A true minus sign, as wide as a plus; no sign where only zeros are left.
fn minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

/// A value, or the word that says that there is none.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "undefined".to_owned(), number)
}

/// A time as people write it: `2026-11-15 03:04:05 UTC`.
pub fn moment(stamp: &str) -> String {
    match stamp.strip_suffix('Z').and_then(|text| text.split_once('T')) {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => stamp.to_owned(),
    }
}

/// The id of an item as it stands in an address, as `encodeURIComponent` of a browser writes it.
pub fn encoded(id: &str) -> String {
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

/// `1 item`, `3 items`.
pub fn count(n: usize, noun: &str) -> String {
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        (_, None) => format!("{n} {noun}s"),
    }
}

/// In which direction a metric moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Better,
    Worse,
    Same,
}

impl Direction {
    pub(crate) fn of(delta: &Delta) -> Option<Direction> {
        let amount = delta.delta?;
        Some(if amount == 0.0 {
            Direction::Same
        } else if (amount > 0.0) == (delta.better == Better::Higher) {
            Direction::Better
        } else {
            Direction::Worse
        })
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Direction::Better => "better",
            Direction::Worse => "worse",
            Direction::Same => "same",
        }
    }
}

/// What was checked: `recall@5 max_drop 0.02 over split=test`.
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

/// What decided the verdict, in one sentence.
pub(crate) fn sentence(check: &CheckReport) -> String {
    let with = |verdict| {
        let gates = check.reports.iter().filter_map(|report| report.gate.as_ref());
        gates.filter(|gate| gate.verdict == verdict).count()
    };
    let entries = count(check.reports.len() + check.not_measured.len(), "entry");
    match check.verdict {
        None => {
            let failed = match with(Verdict::Fail) {
                0 => String::new(),
                failed => format!("; {failed} got worse or broke a limit"),
            };
            format!("{} of {entries} could not be measured{failed}.", check.not_measured.len())
        }
        Some(Verdict::Fail) => {
            format!("{} of {entries} got worse or broke a limit.", with(Verdict::Fail))
        }
        Some(Verdict::Inconclusive) => {
            format!("The data cannot decide {} of {entries}.", with(Verdict::Inconclusive))
        }
        Some(Verdict::Pass) => match check.reports.iter().any(|report| report.gate.is_some()) {
            true => format!("{entries} measured; every check holds."),
            false => format!("{entries} measured; no entry has a gate."),
        },
    }
}

/// The level of all intervals as a heading; without it where they differ.
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

/// How an interval was made, as people call it.
pub(crate) fn method(name: &str) -> String {
    match name {
        "wilson" => "Wilson".to_owned(),
        "clopper_pearson" => "Clopper–Pearson".to_owned(),
        "bootstrap_clustered" => "bootstrap by group".to_owned(),
        "t" => "Student’s t".to_owned(),
        other => other.to_owned(),
    }
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
    fn a_change_has_its_sign_unless_nothing_is_left_of_it() {
        let shown: Vec<String> = [0.02, -0.02, 0.0, -0.000_01].map(signed).to_vec();
        assert_eq!(shown, ["+0.0200", "\u{2212}0.0200", "0.0000", "0.0000"]);
    }

    #[test]
    fn a_level_stands_in_the_heading_only_if_it_is_the_same_everywhere() {
        assert_eq!(interval_heading([0.95, 0.95].iter()), "95 % interval");
        assert_eq!(interval_heading([0.999].iter()), "99.9 % interval");
        assert_eq!(interval_heading([0.95, 0.9].iter()), "interval");
        assert_eq!(interval_heading([].iter()), "interval");
    }

    #[test]
    fn a_time_is_written_as_people_write_it() {
        assert_eq!(moment("2026-11-15T03:04:05Z"), "2026-11-15 03:04:05 UTC");
        assert_eq!(moment("yesterday"), "yesterday");
    }

    #[test]
    fn an_item_id_cannot_leave_its_address() {
        assert_eq!(encoded("q-1"), "q-1");
        assert_eq!(encoded("\"><script>#/ü"), "%22%3E%3Cscript%3E%23%2F%C3%BC");
    }

    #[test]
    fn words_are_counted() {
        assert_eq!(count(1, "entry"), "1 entry");
        assert_eq!(count(2, "entry"), "2 entries");
        assert_eq!(count(0, "item"), "0 items");
    }
}

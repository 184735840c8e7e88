//! A summary for a pull request or a job page, in GitHub-flavoured Markdown.
//!
//! It goes where others are notified and where links are clicked, so text from outside is inert: a
//! word stays plain only if it is a word or a number, and everything else stands in a code span, in
//! which neither markup nor mentions, references, addresses or emoji codes have a meaning. Lists are
//! cut; the whole is in the JSON document and on the HTML page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use karat_core::report::{Check, CheckReport, Comparison, Delta, Report, Slice, Verdict};
use karat_io::text::printable;

use crate::findings;
use crate::html::words::{
    Direction, bound, check_name, count, interval_heading, number, sentence, signed,
};

/// How many flipped items are named.
const FLIPPED: usize = 10;
/// How many rows a table of slices has.
const SLICES: usize = 30;
/// How many checks of a report are written out.
const CHECKS: usize = 30;
/// How many characters of a reason are kept.
const REASON: usize = 600;
/// What may stand before and after a plain word.
const OPENING: [char; 3] = ['(', '"', '\''];
const CLOSING: [char; 8] = [')', '"', '\'', '.', ',', ';', ':', '%'];

/// The summary of a check.
pub fn summary(check: &CheckReport) -> String {
    let (sign, word) = match check.verdict {
        Some(verdict) => (sign(verdict), verdict.name()),
        None => ("!", "not measured"),
    };
    let mut text = format!("## {sign} Karat: {word}\n\n{}\n", sentence(check));
    for report in &check.reports {
        one(&mut text, report);
    }
    for entry in &check.not_measured {
        let _ = writeln!(
            text,
            // The word before the reason keeps it from opening a list or a heading.
            "\n### ! {}: {} not measured\n\nReason: {}",
            entry.evaluation,
            code(&entry.name),
            prose(&entry.reason)
        );
    }
    if !check.not_run.is_empty() {
        text.push_str("\nNot run:\n\n");
    }
    for entry in &check.not_run {
        let _ = writeln!(text, "- {}: {}", entry.evaluation, prose(&entry.reason));
    }
    text
}

fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✓",
        Verdict::Inconclusive => "?",
        Verdict::Fail => "✗",
    }
}

fn one(text: &mut String, report: &Report) {
    let name = code(&report.name);
    let _ = match &report.gate {
        Some(gate) => writeln!(
            text,
            "\n### {} {}: {name} {}",
            sign(gate.verdict),
            report.evaluation,
            gate.verdict
        ),
        None => writeln!(text, "\n### {}: {name} has no gate", report.evaluation),
    };
    let _ = writeln!(
        text,
        "\n{} on {}, {}, {}",
        code(&format!("{} {}", report.system.kind, report.system.name)),
        code(&format!("{} {}", report.dataset.id, report.dataset.version)),
        count(report.items.len(), "item"),
        count(report.runs as usize, "run"),
    );
    metrics(text, report);
    detectors(text, report);
    confusions(text, report);
    checks(text, report);
    failed_cases(text, report);
    if let Some(comparison) = &report.comparison {
        flipped(text, comparison);
    }
    controls(text, report);
    let errors = report.items.iter().filter(|item| item.error.is_some()).count();
    if errors > 0 {
        let _ = writeln!(text, "\n{} without an answer.", count(errors, "item"));
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "\nNote: {}", prose(warning));
    }
}

fn metrics(text: &mut String, report: &Report) {
    if report.metrics.is_empty() {
        return;
    }
    let levels = report.metrics.iter().filter_map(|metric| metric.interval.as_ref());
    let heading = interval_heading(levels.map(|interval| &interval.level));
    let _ = writeln!(text, "\n| metric | value | {heading} | n | baseline | change |");
    text.push_str("| --- | ---: | :---: | ---: | ---: | ---: |\n");
    for metric in &report.metrics {
        let delta = report.comparison.as_ref().and_then(|comparison| {
            comparison.deltas.iter().find(|d| d.metric == metric.id && d.slice.is_none())
        });
        let interval = metric.interval.as_ref().map_or_else(String::new, |interval| {
            format!("{} – {}", bound(interval.low), bound(interval.high))
        });
        let _ = writeln!(
            text,
            "| {} | {} | {interval} | {} | {} | {} |",
            cell(&metric.id),
            optional(metric.value),
            metric.n,
            delta.map_or_else(String::new, |delta| optional(delta.before)),
            delta.map_or_else(String::new, change),
        );
    }
    for metric in &report.metrics {
        if let Some(reason) = &metric.undefined {
            let _ = writeln!(text, "\n{} is undefined: {}", code(&metric.id), prose(reason));
        }
    }
}

/// Detectors side by side, what each adds to the others, and which are alike.
fn detectors(text: &mut String, report: &Report) {
    let by = |kind: &str| -> Vec<&Slice> {
        report.slices.iter().filter(|slice| slice.by == kind).collect()
    };
    let pairs = by("agreement");
    if pairs.is_empty() {
        return;
    }
    text.push_str("\n<details><summary>Detectors</summary>\n");
    let rates = ["recall", "precision", "f1", "fpr_hard", "fpr"];
    slices(text, "detector", &rates, &by("detector"));
    slices(text, "flagged by no other", &["recall", "fpr_hard", "fpr"], &by("adds"));
    slices(text, "agreement", &["kappa", "jaccard"], &pairs);
    text.push_str("\n</details>\n");
}

/// Which tool was called instead of which.
fn confusions(text: &mut String, report: &Report) {
    let pairs: Vec<&Slice> = report.slices.iter().filter(|slice| slice.by == "confusion").collect();
    if pairs.is_empty() {
        return;
    }
    text.push_str("\n<details><summary>Confused tools</summary>\n");
    slices(text, "called", &["calls.confusion"], &pairs);
    text.push_str("\n</details>\n");
}

/// Slices with some of their metrics; how many entries the first of these is over.
fn slices(text: &mut String, title: &str, metrics: &[&str], slices: &[&Slice]) {
    let _ = writeln!(text, "\n| {title} | {} | n |", metrics.join(" | "));
    let _ = writeln!(text, "| --- |{} ---: |", " ---: |".repeat(metrics.len()));
    for slice in slices.iter().take(SLICES) {
        let find = |id: &str| slice.metrics.iter().find(|metric| metric.id == id);
        let cells =
            metrics.iter().map(|id| find(id).map_or_else(String::new, |m| optional(m.value)));
        let cells: Vec<String> = cells.collect();
        let n = metrics.first().and_then(|id| find(id)).map_or(0, |metric| metric.n);
        let _ = writeln!(text, "| {} | {} | {n} |", cell(&slice.value), cells.join(" | "));
    }
    if slices.len() > SLICES {
        let _ = writeln!(text, "\nand {} more", slices.len() - SLICES);
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "undefined".to_owned(), number)
}

fn change(delta: &Delta) -> String {
    match (delta.delta, Direction::of(delta)) {
        (Some(amount), Some(direction)) => format!("{} {}", signed(amount), direction.word()),
        _ => "undefined".to_owned(),
    }
}

/// What did not pass, worst first.
fn checks(text: &mut String, report: &Report) {
    let Some(gate) = &report.gate else { return };
    let with = |verdict| gate.checks.iter().filter(move |check| check.verdict == verdict);
    let open: Vec<&Check> = with(Verdict::Fail).chain(with(Verdict::Inconclusive)).collect();
    let passed = gate.checks.len() - open.len();
    if open.is_empty() {
        let _ = writeln!(text, "\nAll checks passed ({passed}).");
        return;
    }
    text.push('\n');
    for check in open.iter().take(CHECKS) {
        let name = code(&check_name(check));
        let _ = writeln!(text, "- **{}** {name}: {}", check.verdict, prose(&check.reason));
    }
    if open.len() > CHECKS {
        let _ = writeln!(text, "- and {} more", open.len() - CHECKS);
    }
    if passed > 0 {
        let _ = writeln!(text, "\n{} passed.", count(passed, "check"));
    }
}

/// Which cases of a suite did not pass, and why.
fn failed_cases(text: &mut String, report: &Report) {
    let (cases, more) = findings::failed_cases(report);
    if cases.is_empty() {
        return;
    }
    text.push_str("\nFailed cases:\n\n");
    for case in cases {
        let _ = writeln!(text, "- {}: {}", code(case.id), prose(&case.reason));
    }
    if more > 0 {
        let _ = writeln!(text, "- and {more} more in the report");
    }
}

/// The items that moved over all items, those that got worse first.
fn flipped(text: &mut String, comparison: &Comparison) {
    let mut moved: BTreeMap<&str, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for delta in comparison.deltas.iter().filter(|delta| delta.slice.is_none()) {
        for id in &delta.worsened {
            moved.entry(id).or_default().0.push(&delta.metric);
        }
        for id in &delta.improved {
            moved.entry(id).or_default().1.push(&delta.metric);
        }
    }
    if moved.is_empty() {
        text.push_str("\nNo item scores otherwise than in the baseline.\n");
        return;
    }
    let worse = moved.values().filter(|(worse, _)| !worse.is_empty()).count();
    let better = moved.values().filter(|(_, better)| !better.is_empty()).count();
    let _ = writeln!(
        text,
        "\n<details><summary>Flipped items: {worse} worse, {better} better</summary>\n"
    );
    let mut rows: Vec<_> = moved.into_iter().collect();
    // Stable, so the order by id stays within both halves.
    rows.sort_by_key(|(_, (worse, _))| worse.is_empty());
    text.push_str("| item | worse on | better on |\n| --- | --- | --- |\n");
    for (id, (worse, better)) in rows.iter().take(FLIPPED) {
        let list = |ids: &[&str]| ids.iter().map(|id| cell(id)).collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "| {} | {} | {} |", cell(id), list(worse), list(better));
    }
    if rows.len() > FLIPPED {
        let _ = writeln!(text, "\nand {} more", rows.len() - FLIPPED);
    }
    text.push_str("\n</details>\n");
}

fn controls(text: &mut String, report: &Report) {
    if report.controls.is_empty() {
        text.push_str("\nNo controls.\n");
        return;
    }
    let states: Vec<String> = report
        .controls
        .iter()
        .map(|control| match control.ok {
            true => format!("{} ok", code(&control.name)),
            false => format!("{} **not ok** ({})", code(&control.name), prose(&control.expected)),
        })
        .collect();
    let _ = writeln!(text, "\nControls: {}", states.join(", "));
}

/// Text as a code span: shown as it is, in one line.
fn code(text: &str) -> String {
    let text = printable(text);
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // One space at both ends is taken off again; it is needed beside a backtick, and where the text
    // has such spaces of its own.
    let padded = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    let pad = if padded { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span for a table, in which a bar would end the cell whatever stands around it.
fn cell(text: &str) -> String {
    code(text).replace('|', r"\u{7c}")
}

/// A sentence: plain words and numbers stay, everything else becomes a code span.
fn prose(text: &str) -> String {
    let shown = printable(text);
    let cut: String = shown.chars().take(REASON).collect();
    let mut words: Vec<String> = cut.split_whitespace().map(word).collect();
    if cut.len() < shown.len() {
        words.push("…".to_owned());
    }
    if words.is_empty() { "(no reason given)".to_owned() } else { words.join(" ") }
}

fn word(text: &str) -> String {
    let start = text.trim_start_matches(OPENING);
    let core = start.trim_end_matches(CLOSING);
    if core.is_empty() || plain(core) {
        return text.to_owned();
    }
    let (opening, closing) = (&text[..text.len() - start.len()], &start[core.len()..]);
    format!("{opening}{}{closing}", code(core))
}

/// Whether a word can mean nothing but itself: letters (with hyphens between them), a number, or one
/// of the signs that Karat's own sentences use. Digits beside letters are a reference to an issue or
/// a commit at times, and a dot between letters an address.
fn plain(word: &str) -> bool {
    let letters = |part: &str| !part.is_empty() && part.chars().all(char::is_alphabetic);
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let unsigned = word.strip_prefix(['+', '-', '\u{2212}']).unwrap_or(word);
    let number = !unsigned.is_empty() && {
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        !whole.is_empty() && digits(whole) && !fraction.is_empty() && digits(fraction)
    };
    // Forty digits are also a commit.
    let number = number && unsigned.len() < 20;
    number || word.split('-').all(letters) || matches!(word, "→" | "–" | "=" | "±" | "…" | "·")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words that mean something to GitHub, and the marks they are made of.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            prop::sample::select(vec![
                "`", "``", "|", "\\", "<", ">", "@", "#1", "[", "](", ")", "*", "_", "~~", "://",
                "www.", ".", ":", "-", "1", "a", "GH-", " ", "\n", "\u{202e}", "&", "$", "!", "é",
            ])
            .prop_map(str::to_owned),
            any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    /// What a reader of Markdown finds outside of code spans.
    fn outside_code(text: &str) -> String {
        let mut outside = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('`') {
            outside.push_str(&rest[..start]);
            rest = &rest[start..];
            let fence = rest.len() - rest.trim_start_matches('`').len();
            rest = &rest[fence..];
            let mut runs =
                rest.match_indices(|c| c != '`').map(|(at, c)| at + c.len()).collect::<Vec<_>>();
            runs.insert(0, 0);
            let run = |at: usize| rest[at..].len() - rest[at..].trim_start_matches('`').len();
            let close = runs.into_iter().find(|at| run(*at) == fence).expect("a closed code span");
            rest = &rest[close + fence..];
        }
        outside + rest
    }

    proptest! {
        #[test]
        fn outside_of_code_stands_nothing_but_words(text in hostile()) {
            let plain = outside_code(&prose(&text));
            let harmless = |c: char| c.is_alphanumeric() || c == ' ' || "+-−=→–±…·".contains(c)
                || OPENING.contains(&c) || CLOSING.contains(&c);
            prop_assert!(plain.chars().all(harmless), "{plain}");
            // An address has a dot with something behind it.
            let dotted = |part: &[char]| matches!(part, [a, '.', b] if a.is_alphabetic() && b.is_alphanumeric());
            let characters: Vec<char> = plain.chars().collect();
            prop_assert!(!characters.windows(3).any(dotted), "{plain}");
        }

        #[test]
        fn a_code_span_holds_the_text_as_it_is(text in hostile()) {
            let text = printable(&text).into_owned();
            let span = code(&text);
            if !text.trim().is_empty() {
                prop_assert_eq!(outside_code(&span), "");
                let inner = span.trim_matches('`');
                prop_assert!(inner.contains(text.trim_matches(['`', ' '])), "{}", span);
            }
        }
    }

    #[test]
    fn a_sentence_of_ours_stays_a_sentence() {
        assert_eq!(
            prose("recall@5 0.7300 → 0.7100: worse by 0.0200 (p = 0.012): q-1, q-2 and 3 more"),
            "`recall@5` 0.7300 → 0.7100: worse by 0.0200 (p = 0.012): `q-1`, `q-2` and 3 more"
        );
    }

    #[test]
    fn whatever_means_something_to_github_stands_in_code() {
        for (text, shown) in [
            ("@octocat", "`@octocat`"),
            ("me@example.org", "`me@example.org`"),
            ("#12", "`#12`"),
            ("GH-12,", "`GH-12`,"),
            ("www.example.org", "`www.example.org`"),
            ("(https://example.org)", "(`https://example.org`)"),
            ("[a](javascript:x)", "`[a](javascript:x`)"),
            ("<b>", "`<b>`"),
            ("&amp;", "`&amp`;"),
            ("*a*", "`*a*`"),
            ("a|b", "`a|b`"),
            (":tada:", "`:tada`:"),
            ("deadbeef1", "`deadbeef1`"),
            ("1.2.3", "`1.2.3`"),
            (r"\", r"`\`"),
            ("a`b``c", "```a`b``c```"),
            ("`", "`` ` ``"),
            ("\u{202e}a", r"`\u{202e}a`"),
        ] {
            assert_eq!(prose(text), shown, "{text}");
        }
    }

    #[test]
    fn a_bar_does_not_end_a_cell() {
        assert_eq!(cell("a|b\\|c"), r"`a\u{7c}b\\u{7c}c`");
    }

    #[test]
    fn a_long_reason_is_cut() {
        let long = "word ".repeat(1000);
        assert!(prose(&long).chars().count() < REASON + 10);
        assert!(prose(&long).ends_with('…'));
    }
}

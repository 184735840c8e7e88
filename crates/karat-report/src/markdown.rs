//! A summary for a pull request or a job page, in GitHub-flavoured Markdown.
//!
//! GitHub notifies people whom a comment mentions and makes links clickable, so text from outside is
//! inert: a word stays plain only if it is letters or a number, and everything else is in a code span,
//! in which neither markup nor mentions, references, addresses or emoji codes have a meaning. Lists
//! are cut; the JSON document and the HTML page have everything.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use karat_core::leaderboard::Leaderboard;
use karat_core::report::{
    Check, CheckReport, Comparison, Delta, Evaluation, Property, Report, Slice, Verdict,
};
use karat_io::text::printable;
use karat_metrics::{MetricId, metric};

use crate::format::{
    Direction, check_name, count, interval_heading, leaderboard_title, optional, optional_p, range,
    rank, real_differences, shown_pairs, signed, summary, verdict_name,
};
use crate::{findings, select};

/// The most changed items that are listed.
const FLIPPED: usize = 10;
/// The most rows of a table of slices.
const SLICES: usize = 30;
/// The most checks of a report that are listed.
const CHECKS: usize = 30;
/// The most characters of a reason.
const REASON: usize = 600;
/// The punctuation that may surround a plain word.
const OPENING: [char; 3] = ['(', '"', '\''];
const CLOSING: [char; 8] = [')', '"', '\'', '.', ',', ';', ':', '%'];

/// The summary of a check.
pub(crate) fn document(check: &CheckReport) -> String {
    let mut text = format!("{}\n\n{}.{}\n", heading(check), summary(check), source(check));
    for report in &check.reports {
        one(&mut text, report);
    }
    for table in &check.leaderboards {
        leaderboard(&mut text, table);
    }
    for entry in &check.not_measured {
        let _ = writeln!(
            text,
            // The first word keeps the reason from opening a list or a heading.
            "\n### ! {}: {} not measured\n\nReason: {}",
            evaluation(&entry.evaluation),
            code(&entry.name),
            prose(&entry.reason)
        );
    }
    text
}

/// The verdict, with the name of the project where it has one.
pub(crate) fn heading(check: &CheckReport) -> String {
    let sign = match check.verdict {
        None if check.not_measured.is_empty() => "–",
        verdict => verdict.map_or("!", sign),
    };
    let project = check.source.as_ref().and_then(|source| source.project.as_deref());
    let project = project.map_or_else(String::new, |name| format!(" · {}", code(name)));
    format!("## {sign} Karat: {}{project}", verdict_name(check))
}

/// The branch and the commit that were measured.
fn source(check: &CheckReport) -> String {
    let Some(source) = &check.source else { return String::new() };
    let named = |name: &str, value: &Option<String>| {
        value.as_deref().map(|value| format!(" {name} {}.", code(value))).unwrap_or_default()
    };
    named("Branch", &source.branch) + &named("Commit", &source.commit)
}

/// Several systems on the same data.
fn leaderboard(text: &mut String, table: &Leaderboard) {
    let _ = writeln!(text, "\n### Leaderboard: {}\n", code(&leaderboard_title(table)));
    let levels = table.rows.iter().filter_map(|row| row.interval.as_ref());
    let heading = interval_heading(levels.map(|interval| &interval.level));
    let _ = writeln!(text, "| system | value | {heading} | n | rank |");
    text.push_str("| --- | ---: | :---: | ---: | ---: |\n");
    for row in table.rows.iter().take(SLICES) {
        let (name, value) = (code(row.shown()), optional(Some(row.value)));
        let range = range(row.interval.as_ref(), " – ");
        let _ = writeln!(text, "| {name} | {value} | {range} | {} | {} |", row.n, rank(row.ranks));
    }
    if table.rows.len() > SLICES {
        let _ = writeln!(text, "\nand {} more.", table.rows.len() - SLICES);
    }
    let _ = writeln!(text, "\n{}.", real_differences(&table.pairs));
    let (shown, more) = shown_pairs(&table.pairs);
    if shown.is_empty() {
        return;
    }
    text.push_str("\n| better | worse | change | range | p (Holm) | wins | losses | real |\n");
    text.push_str("| --- | --- | ---: | :---: | ---: | ---: | ---: | --- |\n");
    for pair in shown {
        let (better, worse) = (code(table.label(&pair.better)), code(table.label(&pair.worse)));
        let (delta, p) = (optional(pair.delta), optional_p(pair.p_holm));
        let range = range(pair.interval.as_ref(), " – ");
        let real = if pair.real { "yes" } else { "no" };
        let (wins, losses) = (pair.wins, pair.losses);
        let _ = writeln!(
            text,
            "| {better} | {worse} | {delta} | {range} | {p} | {wins} | {losses} | {real} |"
        );
    }
    if more > 0 {
        let _ = writeln!(text, "\nand {}.", count(more, "more pair"));
    }
}

/// The name of an evaluation; one that this build does not know is text from outside.
pub(crate) fn evaluation(evaluation: &Evaluation) -> String {
    match evaluation {
        Evaluation::Other(name) => code(name),
        known => known.to_string(),
    }
}

pub(crate) fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✓",
        Verdict::Inconclusive => "?",
        Verdict::Fail => "✗",
    }
}

fn one(text: &mut String, report: &Report) {
    let name = code(&report.label());
    let _ = match &report.gate {
        Some(gate) => writeln!(
            text,
            "\n### {} {}: {name} {}",
            sign(gate.verdict),
            evaluation(&report.evaluation),
            gate.verdict
        ),
        None => writeln!(text, "\n### {}: {name} has no gate", evaluation(&report.evaluation)),
    };
    let _ = writeln!(
        text,
        "\n{} on {}, {}, {}",
        code(&report.system.title()),
        code(&format!("{} {}", report.dataset.id, report.dataset.version)),
        count(report.items.len(), "item"),
        count(report.runs as usize, "run"),
    );
    metrics(text, report);
    rankings(text, report);
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
        let delta = select::delta(report, &metric.id);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            cell(&metric.id),
            optional(metric.value),
            range(metric.interval.as_ref(), " – "),
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

/// A ranking by the kinds of its queries and by server.
fn rankings(text: &mut String, report: &Report) {
    let tables = select::rankings(report);
    if tables.iter().all(|(_, found)| found.is_empty()) {
        return;
    }
    text.push_str("\n<details><summary>By kind and server</summary>\n");
    for (title, found) in tables.iter().filter(|(_, found)| !found.is_empty()) {
        slices(text, title, &select::RANKING_COLUMNS, found);
    }
    text.push_str("\n</details>\n");
}

/// Detectors side by side, what each adds to the others, and how far they agree.
fn detectors(text: &mut String, report: &Report) {
    let by = |property| select::slices(report, property);
    let pairs = by(Property::Agreement);
    if pairs.is_empty() {
        return;
    }
    text.push_str("\n<details><summary>Detectors</summary>\n");
    slices(text, "detector", &select::DETECTOR_COLUMNS, &by(Property::Detector));
    slices(text, "unique catches", &select::ADDED_COLUMNS, &by(Property::Adds));
    slices(text, "agreement", &select::AGREEMENT_COLUMNS, &pairs);
    text.push_str("\n</details>\n");
}

/// The tools that were called in place of others.
fn confusions(text: &mut String, report: &Report) {
    let pairs = select::slices(report, Property::Confusion);
    if pairs.is_empty() {
        return;
    }
    text.push_str("\n<details><summary>Confused tools</summary>\n");
    slices(text, "called", &[metric!("calls.confusion")], &pairs);
    text.push_str("\n</details>\n");
}

/// Slices with some of their metrics, and the n of the first of these.
fn slices(text: &mut String, title: &str, metrics: &[MetricId], slices: &[&Slice]) {
    // A forge would take an @ outside of code for a mention.
    let head = |id: &MetricId| if id.contains('@') { cell(id) } else { id.to_string() };
    let heads: Vec<String> = metrics.iter().map(head).collect();
    let _ = writeln!(text, "\n| {title} | {} | n |", heads.join(" | "));
    let _ = writeln!(text, "| --- |{} ---: |", " ---: |".repeat(metrics.len()));
    for slice in slices.iter().take(SLICES) {
        let find = |id: &MetricId| select::metric(&slice.metrics, id);
        let cells =
            metrics.iter().map(|id| find(id).map_or_else(String::new, |m| optional(m.value)));
        let cells: Vec<String> = cells.collect();
        let n = metrics.iter().find_map(find).map_or(0, |metric| metric.n);
        let _ = writeln!(text, "| {} | {} | {n} |", cell(&slice.value), cells.join(" | "));
    }
    if slices.len() > SLICES {
        let _ = writeln!(text, "\nand {} more", slices.len() - SLICES);
    }
}

fn change(delta: &Delta) -> String {
    let Some(amount) = delta.delta else { return optional(None) };
    format!("{} {}", signed(amount), Direction::of(amount, delta.better).name())
}

/// The checks that did not pass, worst first.
fn checks(text: &mut String, report: &Report) {
    let Some(gate) = &report.gate else { return };
    let with = |verdict| select::checks(report, verdict);
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

/// The cases of a suite that did not pass, with the reason.
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

/// The items that changed, those that got worse first.
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
        text.push_str("\nEvery item scores as in the baseline.\n");
        return;
    }
    let worse = moved.values().filter(|(worse, _)| !worse.is_empty()).count();
    let better = moved.values().filter(|(_, better)| !better.is_empty()).count();
    let _ = writeln!(
        text,
        "\n<details><summary>Changed items: {worse} worse, {better} better</summary>\n"
    );
    let mut rows: Vec<_> = moved.into_iter().collect();
    // A stable sort: both halves stay in the order of ids.
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

/// Text as a code span: shown as it is, on one line.
pub(crate) fn code(text: &str) -> String {
    let text = printable(text);
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // Renderers strip one space at both ends. It is needed next to a backtick, and where the text
    // itself begins or ends with one.
    let padded = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    let pad = if padded { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span for a table, in which even a quoted bar would end the cell.
pub(crate) fn cell(text: &str) -> String {
    code(text).replace('|', r"\u{7c}")
}

/// A sentence: plain words and numbers stay, everything else becomes a code span.
pub(crate) fn prose(text: &str) -> String {
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

/// Returns whether a word can mean nothing but itself: letters (with hyphens between them), a number, or one
/// of the signs of Karat's own sentences. Digits next to letters can be a reference to an issue or a
/// commit, and a dot between letters an address.
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

    /// Words that mean something to GitHub, and the characters they are made of.
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

    /// The text outside of code spans.
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
        fn only_plain_words_are_outside_of_code(text in hostile()) {
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
    fn a_sentence_of_karat_stays_readable() {
        assert_eq!(
            prose("recall@5 0.7300 → 0.7100: worse by 0.0200 (p = 0.012): q-1, q-2 and 3 more"),
            "`recall@5` 0.7300 → 0.7100: worse by 0.0200 (p = 0.012): `q-1`, `q-2` and 3 more"
        );
    }

    #[test]
    fn text_with_a_meaning_on_github_is_in_a_code_span() {
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

//! A comment for a pull or merge request: at most 24 lines, so that with the mark of the bot it has 25.
//!
//! First the verdict, then the rules that failed, then the worst items with their text; metrics and the
//! change against the merge base are folded, each on one line of HTML. Text from outside is inert, as in
//! `markdown`: in code spans, or escaped in `<code>`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use karat_core::baseline::Baseline;
use karat_core::compare::compare;
use karat_core::observed::{AttackStatus, Observed, VerdictOutcome};
use karat_core::report::{Better, Check, CheckReport, Comparison, Delta, Item, Report, Verdict};
use karat_io::text::{clip, printable};

use crate::format::{
    Direction, check_name, count, not_compared, number, optional, signed, summary,
};
use crate::markdown::{cell, evaluation, heading, prose};
use crate::select;
use crate::terminal::items::Moved;

/// The most failed rules that are listed.
const RULES: usize = 5;
/// The most items that are listed.
const ITEMS: usize = 5;
/// The most columns of an item's text.
const TEXT: usize = 90;
/// The most characters of a reason.
const REASON: usize = 200;
/// The most items of data that a line names.
const NAMED: usize = 3;
/// The most rows of a folded table.
const FOLDED: usize = 60;

/// The comment, with a link to the whole report and the report of the merge base where there are any.
///
/// # Errors
/// If the link is not an address.
pub fn text(
    check: &CheckReport,
    base: Option<&[Report]>,
    link: Option<&str>,
) -> Result<String, String> {
    let link = link.map(address).transpose()?;
    let mut text = format!("{}\n\n{}.", heading(check), summary(check));
    if let Some(link) = link {
        let _ = write!(text, " [Report]({link})");
    }
    text.push('\n');
    failures(&mut text, check);
    worst(&mut text, check);
    text.push('\n');
    text.push_str(&metrics(check));
    text.push_str(&against_base(check, base));
    Ok(text)
}

/// An address that ends nothing in Markdown.
fn address(link: &str) -> Result<&str, String> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&*+,;=%".contains(c);
    let web = link.starts_with("https://") || link.starts_with("http://");
    if web && link.chars().all(known) {
        return Ok(link);
    }
    Err(format!(
        "the link must be an http or https address without spaces, quotes or parentheses: {:?}",
        printable(link)
    ))
}

fn label(report: &Report) -> String {
    format!("{} {}", evaluation(&report.evaluation), cell(&report.name))
}

/// The entries that were not measured and the rules that failed, in one table.
fn failures(text: &mut String, check: &CheckReport) {
    let mut rows: Vec<String> = Vec::new();
    for entry in &check.not_measured {
        let name = format!("{} {}", evaluation(&entry.evaluation), cell(&entry.name));
        let reason = prose(&clip(&entry.reason, REASON)).replace('|', r"\u{7c}");
        rows.push(format!("| {name} | not measured: {reason} | | | |"));
    }
    for (report, check) in select::failed(check) {
        let value = |value: Option<f64>| value.map_or_else(String::new, number);
        rows.push(format!(
            "| {} | {} | {} | {} | {} |",
            label(report),
            cell(&check_name(&Check { threshold: None, ..check.clone() })),
            value(check.baseline),
            value(check.value),
            check.threshold.map_or_else(String::new, |limit| limit.to_string()),
        ));
    }
    if rows.is_empty() {
        return;
    }
    let more = rows.len().saturating_sub(RULES);
    if more > 0 {
        rows.truncate(RULES - 1);
        rows.push(format!("| and {} more | | | | |", more + 1));
    }
    text.push_str(
        "\n| entry | failed | baseline | now | limit |\n| --- | --- | ---: | ---: | ---: |\n",
    );
    let _ = writeln!(text, "{}", rows.join("\n"));
}

/// The items behind the failed rules: those that most rules name first, then by score.
fn worst(text: &mut String, check: &CheckReport) {
    let mut named: BTreeMap<(usize, &str), (usize, f64, &str)> = BTreeMap::new();
    for (place, report) in check.reports.iter().enumerate() {
        for check in select::checks(report, Verdict::Fail) {
            for (id, score) in behind(report, check) {
                let first = (0, f64::INFINITY, check.metric.as_str());
                let entry = named.entry((place, id)).or_insert(first);
                *entry = (entry.0 + 1, entry.1.min(score), entry.2);
            }
        }
    }
    if named.is_empty() {
        return;
    }
    let mut rows: Vec<_> = named.into_iter().collect();
    rows.sort_by(|(_, (a, x, _)), (_, (b, y, _))| b.cmp(a).then(x.total_cmp(y)));
    let all = count(rows.len(), "item");
    let _ = writeln!(text, "\n| worst of {all} | text | now |\n| --- | --- | --- |");
    for ((place, id), (_, _, metric)) in rows.into_iter().take(ITEMS) {
        let report = &check.reports[place];
        let Some(item) = report.items.iter().find(|item| item.id == id) else {
            let _ = writeln!(text, "| {} | | no longer in the data |", cell(id));
            continue;
        };
        let (about, now) = described(report, item, metric);
        let about = if about.is_empty() { String::new() } else { cell(&clip(&about, TEXT)) };
        let now = prose(&clip(&now, TEXT)).replace('|', r"\u{7c}");
        let _ = writeln!(text, "| {} | {about} | {now} |", cell(id));
    }
}

/// The items of a failed rule, each with a score by which the worst is the least.
pub(crate) fn behind<'r>(report: &'r Report, check: &'r Check) -> Vec<(&'r str, f64)> {
    let better = report.metric(&check.metric).map(|metric| metric.better);
    let score = |item: &Item| {
        let value = item.metrics.get(check.metric.as_str()).copied().flatten()?;
        Some(if better == Some(Better::Lower) { -value } else { value })
    };
    if !check.items.is_empty() {
        let of = |id: &String| report.items.iter().find(|item| item.id == *id).and_then(score);
        return check
            .items
            .iter()
            .map(|id| (id.as_str(), of(id).unwrap_or(f64::INFINITY)))
            .collect();
    }
    // A limit names no items: the lowest scores are what keeps the value from it.
    let slice = check.slice.as_deref().and_then(|slice| slice.split_once('='));
    let inside = |item: &&Item| {
        slice.is_none_or(|(by, value)| item.tags.get(by).is_some_and(|tag| tag == value))
    };
    let scored = report.items.iter().filter(inside);
    let scored: Vec<_> = scored.filter_map(|item| Some((item.id.as_str(), score(item)?))).collect();
    let best = scored.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
    scored.into_iter().filter(|(_, score)| *score < best).collect()
}

/// The text of an item, and its outcome; its score by the metric if the observation is from one run of several.
pub(crate) fn described(report: &Report, item: &Item, metric: &str) -> (String, String) {
    if let Some(error) = &item.error {
        return (String::new(), format!("no answer: {}", error.message));
    }
    let metrics = || {
        let known = item.metrics.iter().filter_map(|(id, value)| Some((id, (*value)?)));
        let shown: Vec<String> =
            known.take(2).map(|(id, value)| format!("{id} {}", number(value))).collect();
        shown.join(", ")
    };
    let scored = || {
        let moved = Moved::new(report, item, metric);
        match (moved.before, moved.now) {
            (None, None) => metrics(),
            (Some(before), now) if now != Some(before) => {
                let now = now.map_or_else(|| "none".to_owned(), number);
                format!("{metric} {} → {now}", number(before))
            }
            (_, now) => format!("{metric} {}", optional(now)),
        }
    };
    let is_one_of_several = select::shows_first_run(report);
    match &item.observed {
        Some(Observed::Ranking(ranking)) => {
            let now = match ranking.first_right {
                _ if is_one_of_several => scored(),
                Some(rank) => format!("right tool at rank {rank}"),
                None => "right tool not found".to_owned(),
            };
            (ranking.query.clone(), now)
        }
        Some(Observed::Verdicts(entry)) => {
            let now = match entry.outcome {
                _ if is_one_of_several => scored(),
                Some(VerdictOutcome::FalseNegative) => "attack not flagged".to_owned(),
                Some(VerdictOutcome::FalsePositive) => "harmless, but flagged".to_owned(),
                _ => metrics(),
            };
            (format!("{} {}", entry.name, entry.text).trim().to_owned(), now)
        }
        Some(Observed::Suite(case)) => {
            let now = case.reasons.first().cloned().unwrap_or_else(metrics);
            (case.about.clone().unwrap_or_else(|| case.tool.clone()), now)
        }
        Some(Observed::Attack(attack)) => {
            let broken = attack.status == AttackStatus::Broken;
            (attack.about.clone(), if broken { "got through".to_owned() } else { metrics() })
        }
        Some(Observed::Fuzz(fuzz)) => match fuzz.findings.first() {
            Some(finding) => (finding.rule.clone(), finding.message.clone()),
            None => (String::new(), metrics()),
        },
        Some(Observed::Traces(run)) => (run.input.clone().unwrap_or_default(), metrics()),
        Some(Observed::Trajectories(pair)) => (pair.input.clone().unwrap_or_default(), metrics()),
        Some(Observed::Resilience(run)) => {
            let now = run.outcome.map_or_else(metrics, |outcome| outcome.name().to_owned());
            (run.task.clone(), now)
        }
        Some(Observed::Outcomes(_) | Observed::Load(_) | Observed::Other(_)) | None => {
            (String::new(), metrics())
        }
    }
}

/// Every headline metric against the committed baseline, folded.
fn metrics(check: &CheckReport) -> String {
    let mut rows = Vec::new();
    let mut measured = 0;
    for report in &check.reports {
        rows.extend(report.comparison.iter().flat_map(|one| remarks(report, one)));
        measured += report.metrics.len();
        for metric in &report.metrics {
            let delta = select::delta(report, &metric.id);
            let before = delta.map_or_else(String::new, |delta| optional(delta.before));
            rows.push([
                named(report),
                in_code(&metric.id),
                before,
                optional(metric.value),
                delta.map_or_else(String::new, change),
            ]);
        }
    }
    let all = count(measured, "metric");
    folded(&format!("{all} against the committed baseline"), "baseline", &rows)
}

/// The metrics that differ from those of the merge base, folded; empty without its report.
fn against_base(check: &CheckReport, base: Option<&[Report]>) -> String {
    let Some(base) = base else { return String::new() };
    let mut rows = Vec::new();
    let (mut same, mut unclear) = (0, 0);
    let (mut worse, mut better) = (0, 0);
    for report in &check.reports {
        let key = (&report.evaluation, &report.name);
        let Some(old) = base.iter().find(|old| (&old.evaluation, &old.name) == key) else {
            rows.push(remark(report, "new entry".to_owned()));
            continue;
        };
        let Ok(comparison) = compare(&Baseline::from_report(old), report, &[]) else {
            rows.push(remark(report, "measured in another way".to_owned()));
            continue;
        };
        rows.extend(remarks(report, &comparison));
        for delta in &comparison.deltas {
            match delta.delta.map(|amount| Direction::of(amount, delta.better)) {
                None | Some(Direction::Same) if has_same_scores(delta) => {
                    same += 1;
                    continue;
                }
                None | Some(Direction::Same) => unclear += 1,
                Some(Direction::Worse) => worse += 1,
                Some(Direction::Better) => better += 1,
            }
            rows.push([
                named(report),
                in_code(&delta.metric),
                optional(delta.before),
                optional(delta.after),
                change(delta),
            ]);
        }
    }
    let measured = check.reports.iter().map(|one| (&one.evaluation, &one.name));
    let lost = check.not_measured.iter().map(|one| (&one.evaluation, &one.name));
    let present: BTreeSet<_> = measured.chain(lost).collect();
    let gone = base.iter().filter(|old| !present.contains(&(&old.evaluation, &old.name)));
    rows.extend(gone.map(|old| remark(old, "not in this report".to_owned())));
    let commits = base.iter().filter_map(|report| report.environment.commit.as_deref());
    let commit = commits.filter_map(|commit| commit.split_whitespace().next()).next();
    let place =
        commit.map_or_else(String::new, |commit| format!(" {}", in_code(&clip(commit, 12))));
    let mut counts = format!("{worse} worse, {better} better, {same} the same");
    if unclear > 0 {
        let _ = write!(counts, ", {unclear} not comparable");
    }
    folded(&format!("Against the merge base{place}: {counts}"), "merge base", &rows)
}

/// A row with a remark about an entry.
fn remark(report: &Report, what: String) -> [String; 5] {
    [named(report), what, String::new(), String::new(), String::new()]
}

/// Rows for the metrics that are not in a comparison, and for the changes of its data.
fn remarks(report: &Report, comparison: &Comparison) -> Vec<[String; 5]> {
    let data = comparison.data.iter().flat_map(|data| data.lines(NAMED));
    let lines = not_compared(comparison).into_iter().chain(data);
    lines.map(|line| remark(report, in_code(&line))).collect()
}

/// Returns whether the same items have a score before and now. Otherwise, no change over the rest is not no change.
fn has_same_scores(delta: &Delta) -> bool {
    let is_defined = delta.before.is_some() == delta.after.is_some();
    is_defined && delta.lost.is_empty() && delta.gained.is_empty()
}

fn change(delta: &Delta) -> String {
    let mut text = delta.delta.map_or_else(
        || optional(None),
        |amount| format!("{} {}", signed(amount), Direction::of(amount, delta.better).name()),
    );
    for (items, what) in [(&delta.lost, "no score now"), (&delta.gained, "no score before")] {
        if !items.is_empty() {
            let _ = write!(text, ", {what}: {}", count(items.len(), "item"));
        }
    }
    text
}

/// A table on one line of HTML, under a summary that opens it.
fn folded(title: &str, before: &str, rows: &[[String; 5]]) -> String {
    if rows.is_empty() {
        return format!("<details><summary>{title}</summary></details>\n");
    }
    let mut text = format!(
        "<details><summary>{title}</summary><table><tr><th>entry</th><th>metric</th><th>{before}</th>\
         <th>now</th><th>change</th></tr>"
    );
    for row in rows.iter().take(FOLDED) {
        text.push_str("<tr>");
        for cell in row {
            let _ = write!(text, "<td>{cell}</td>");
        }
        text.push_str("</tr>");
    }
    text.push_str("</table>");
    if rows.len() > FOLDED {
        let _ = write!(text, "and {} more in the report", rows.len() - FOLDED);
    }
    text.push_str("</details>\n");
    text
}

fn named(report: &Report) -> String {
    in_code(&select::entry_path(report))
}

/// Text as code in HTML. Characters that mean something to Markdown too are written as numbers, since a
/// renderer may look for them inside of tags.
fn in_code(text: &str) -> String {
    let mut escaped = String::from("<code>");
    for c in clip(&printable(text), 200).chars() {
        match c {
            c if c.is_alphanumeric() || " /-,+=…".contains(c) => escaped.push(c),
            c => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
        }
    }
    escaped + "</code>"
}

//! The rules behind the numbers, and remarks for a careful reader.

use std::collections::BTreeMap;

use karat_core::evaluation;
use karat_io::text::{count, first_few, printable};

use super::numbers::LISTED;
use crate::judge::Verdicts;
use crate::read_stats::{Counts, ReadStats};
use crate::scores::CallProblems;

/// The remarks on traces that were read and scored.
pub(crate) fn warnings(stats: &ReadStats, problems: &CallProblems) -> Vec<String> {
    let mut warnings = Vec::new();
    let bad: u64 = stats.bad.values().sum();
    if bad > 0 {
        let classes: Vec<String> =
            stats.bad.iter().map(|(class, count)| format!("{class} {count}")).collect();
        warnings.push(format!(
            "{} could not be read: {}",
            count(bad, "record"),
            classes.join(", ")
        ));
    }
    let failures = stats.failures.classes.iter();
    warnings.extend(listed(
        "runs that could not be made",
        failures.map(|(class, (count, first))| (format!("{class}: {first}"), *count)),
    ));
    if problems.unreadable_arguments > 0 {
        let calls = count(problems.unreadable_arguments, "call");
        warnings.push(format!("{calls} with arguments that are not a JSON object"));
    }
    if problems.unrecorded_arguments > 0 {
        warnings.push(format!(
            "the arguments of {} were not recorded; scores that need them are undefined",
            count(problems.unrecorded_arguments, "call")
        ));
    }
    if stats.without_task > 0 {
        warnings.push(format!("no task for {}", count(stats.without_task, "trace")));
    }
    warnings.extend(stats.without_trace.clone());
    warnings.extend(stats.notes.iter().map(|(note, count)| noted(note, *count)));
    let named = |counts: &Counts| -> Vec<(String, u64)> {
        counts.iter().map(|(name, count)| (name.to_owned(), count)).collect()
    };
    warnings.extend(listed("unknown fields", named(&stats.unknown)));
    warnings.extend(listed("arguments not checked", named(&problems.not_checked)));
    if stats.unchecked_ids > 0 {
        let ids = count(stats.unchecked_ids, "id");
        warnings.push(format!("{ids} beyond what is checked for duplicates"));
    }
    warnings
}

/// A note with its number: it begins with what is counted, in the plural.
fn noted(note: &str, number: u64) -> String {
    match note.split_once(' ') {
        Some((noun @ ("traces" | "spans" | "files"), rest)) => {
            format!("{} {rest}", count(number, noun.trim_end_matches('s')))
        }
        _ => format!("{number} {note}"),
    }
}

/// The most frequent ones, with their counts.
fn listed(label: &str, counts: impl IntoIterator<Item = (String, u64)>) -> Option<String> {
    let mut all: Vec<(String, u64)> = counts.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let all: Vec<String> =
        all.iter().map(|(name, count)| format!("{} ({count})", printable(name))).collect();
    (!all.is_empty()).then(|| format!("{label}: {}", first_few(&all, LISTED)))
}

/// The rules behind the numbers.
pub(crate) fn conventions(verdicts: Option<&Verdicts>) -> BTreeMap<String, String> {
    let mut conventions = evaluation::conventions([
        ("items", "one for each trace, grouped by task"),
        ("runs", "the number of runs of every task: the fewest traces of one, setting by setting"),
        (
            "headline",
            "traces with tools or distractors; traces without tools count only in gauge.*_without_tools",
        ),
        (
            "equality",
            "arguments are equal as JSON: 1 is 1.0, true is not 1; the expectation alone can state a tolerance",
        ),
        (
            "schema",
            "JSON Schema 2020-12 unless declared otherwise; formats do not decide; network $ref is never followed",
        ),
        (
            "gauge.proactivity",
            "every required call made as expected, over tasks that need a tool and instruct none",
        ),
        (
            "gauge.compliance",
            "the instructed tool called without an error and as expected, over tasks that instruct one",
        ),
        (
            "gauge.effectiveness",
            "task.success with tools minus without, in pairs of task, model and turns, each pair weighing the same",
        ),
        ("pass@k, pass^k", "of task.success, over tasks with repeated runs"),
        (
            "interval",
            "Wilson for rates, bootstrap by groups for means, by tasks for pass@k and pass^k, 95 %",
        ),
    ]);
    if let Some(verdicts) = verdicts {
        let by: Vec<&str> = verdicts.by.iter().map(String::as_str).collect();
        let rule = format!(
            "recorded votes of {}, {} not given; an opinion, gated only where it is named",
            by.join(", "),
            verdicts.missing
        );
        conventions.insert("judge.task_completion".to_owned(), rule);
    }
    conventions
}

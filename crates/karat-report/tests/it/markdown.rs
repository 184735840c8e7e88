//! Markdown: a summary with every part, and nothing in it that GitHub would act on.

use crate::sample;

use karat_core::dataset::{Changes, DataChange};
use karat_core::report::{CheckReport, NotCompared};
use karat_io::text::printable_block;
use karat_report::Output;

fn summary(check: &CheckReport) -> String {
    Output::Markdown.render(check).unwrap()
}

/// The line without its code spans: a run of backticks closes at the next run of the same length.
fn outside_code(line: &str) -> String {
    let mut outside = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        outside.push_str(&rest[..start]);
        rest = &rest[start..];
        let fence = rest.len() - rest.trim_start_matches('`').len();
        rest = &rest[fence..];
        let mut from = 0;
        let closed = loop {
            let at = rest[from..].find('`').map(|at| from + at);
            let at = at.unwrap_or_else(|| panic!("an open code span in {line}"));
            let run = rest[at..].len() - rest[at..].trim_start_matches('`').len();
            if run == fence {
                break at + run;
            }
            from = at + run;
        };
        rest = &rest[closed..];
    }
    outside + rest
}

#[test]
fn the_summary_of_a_check_with_every_part() {
    insta::assert_snapshot!(summary(&sample::small()));
}

#[test]
fn a_failure_is_the_first_line() {
    let summary = summary(&sample::failed());
    assert!(summary.starts_with("## ✗ Karat: fail\n\n1 of 3 entries got worse"), "{summary}");
}

#[test]
fn hostile_text_is_inert() {
    let summary = summary(&sample::hostile());
    assert_eq!(printable_block(&summary), summary);
    for line in summary.lines() {
        let plain = outside_code(line)
            .replace("<details><summary>", "")
            .replace("</summary>", "")
            .replace("</details>", "");
        for mark in ["<", "[", "]", "@", "&", "\\", "://", "www.", "_", "$", "{"] {
            assert!(!plain.contains(mark), "{mark} in {line}");
        }
    }
}

#[test]
fn hostile_text_does_not_break_a_table() {
    let summary = summary(&sample::hostile());
    let bars = |line: &str| line.matches('|').count();
    let rows: Vec<&str> = summary.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 4, "{summary}");
    for line in rows {
        assert!([7, 4].contains(&bars(line)), "{line}");
    }
    // Every line that begins like a table, a heading or a list is one of ours.
    let ours = ["## ", "### ", "| ", "- **", "- server: ", "<details>", "</details>"];
    for line in summary.lines().filter(|line| line.starts_with(['#', '|', '-', '<', '>', '=', '*']))
    {
        assert!(ours.iter().any(|start| line.starts_with(start)), "{line}");
    }
}

#[test]
fn a_large_report_has_a_short_summary() {
    let summary = summary(&sample::single(sample::synthetic::retrieval(10_000)));
    assert!(summary.len() < 10_000, "{} bytes", summary.len());
    assert!(summary.contains("more\n\n</details>"), "{summary}");
}

fn comment(check: &CheckReport, base: Option<&[karat_core::report::Report]>) -> String {
    karat_report::comment::text(check, base, Some("https://ci.example.com/run/7?a=b#c")).unwrap()
}

#[test]
fn a_comment_has_the_verdict_the_failed_rules_and_the_worst_items_in_25_lines() {
    let check = sample::failed();
    let base = sample::small().reports;
    let comment = comment(&check, Some(&base));
    insta::assert_snapshot!(comment);
    for large in
        [sample::single(sample::synthetic::retrieval(1_000)), sample::hostile(), sample::small()]
    {
        let comment = self::comment(&large, Some(&base));
        assert!(comment.lines().count() <= 24, "{comment}");
        assert!(comment.len() < 60_000);
    }
}

#[test]
fn a_comment_shows_the_score_that_changed_of_items_with_several_runs() {
    let mut report = sample::of_several_runs();
    let comment = comment(&sample::single(report.clone()), None);
    let row = "| `q-3` | `show me what is on the page` | `recall@5` 0.4000 → 0.2000 |";
    assert!(comment.contains(row) && !comment.contains("right tool"), "{comment}");

    // A limit is about scores that need not have changed.
    report.comparison.as_mut().unwrap().before.remove("q-3");
    let limit = &mut report.gate.as_mut().unwrap().checks[0];
    (limit.rule, limit.items, limit.slice) = ("min".to_owned(), Vec::new(), None);
    let comment = self::comment(&sample::single(report), None);
    let row = "| `q-3` | `show me what is on the page` | `recall@5` 0.2000 |";
    assert!(comment.contains(row) && !comment.contains("right tool"), "{comment}");
}

#[test]
fn a_comment_does_not_count_lost_scores_and_entries_as_the_same() {
    let base = sample::small().reports;
    let mut check = sample::small();
    let gone = check.reports.pop().unwrap();
    check.reports[0].items[0].metrics.values_mut().for_each(|score| *score = None);
    let comment = comment(&check, Some(&base));
    assert!(comment.contains("not comparable</summary>"), "{comment}");
    assert!(comment.contains("same, no score now: 1 item"), "{comment}");
    let gone =
        format!("<td><code>{}/{}</code></td><td>not in this report", gone.evaluation, gone.name);
    assert!(comment.contains(&gone), "{comment}");
}

#[test]
fn a_comment_says_over_which_items_a_change_is() {
    let mut report = sample::failing();
    let comparison = report.comparison.as_mut().unwrap();
    let items = Changes { removed: vec!["q-9".to_owned()], ..Changes::default() };
    comparison.data = Some(DataChange { items, ..DataChange::default() });
    comparison.not_compared = Some(NotCompared {
        metrics: vec!["precision".into()],
        reason: "not means of scores".to_owned(),
    });
    let comment = comment(&sample::single(report), None);
    assert!(comment.contains("<summary>3 metrics against the committed baseline"), "{comment}");
    assert!(comment.contains("1 removed &#40;q-9&#41;"), "{comment}");
    assert!(comment.contains("not compared&#58; precision"), "{comment}");
}

#[test]
fn hostile_text_in_a_comment_is_inert() {
    let check = sample::hostile();
    let comment = comment(&check, Some(&check.reports));
    assert_eq!(printable_block(&comment), comment);
    for line in comment.lines() {
        assert!(!line.trim_start().starts_with('/'), "a command of GitLab: {line}");
        let ours = ["details", "summary", "table", "tr", "th", "td", "code"];
        let mut plain =
            outside_code(line).replace("[Report](https://ci.example.com/run/7?a=b#c)", "");
        for tag in ours {
            plain = plain.replace(&format!("<{tag}>"), "").replace(&format!("</{tag}>"), "");
        }
        for mark in ["<", "[", "]", "@", "\\", "://", "www.", "_", "$", "{"] {
            assert!(!plain.contains(mark), "{mark} in {line}");
        }
        if line.starts_with('|') {
            assert!([4, 6].contains(&line.matches('|').count()), "{line}");
        }
    }
}

#[test]
fn a_link_that_is_not_an_address_is_refused() {
    for link in [
        "javascript:alert(1)",
        "https://a b",
        "https://a)](https://b",
        "report.html",
        "https://a\">",
    ] {
        assert!(
            karat_report::comment::text(&sample::failed(), None, Some(link)).is_err(),
            "{link}"
        );
    }
}

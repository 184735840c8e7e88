//! The terminal: every verdict and every kind of report, in 80 columns.

use crate::sample;

use karat_core::baseline::Baseline;
use karat_core::observed::Observed;
use karat_core::report::{Check, CheckReport, Report, Verdict};
use karat_io::text::columns;
use karat_report::terminal::{self, Style};

const PLAIN: Style = Style { colors: false, width: 80 };

fn shown(check: &CheckReport) -> String {
    let text = terminal::check(check, PLAIN);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        assert_eq!(line.trim_end(), line, "space at the end of a line");
    }
    text
}

fn one(report: Report) -> String {
    shown(&sample::single(report))
}

#[test]
fn a_pass() {
    insta::assert_snapshot!(one(sample::passing()));
}

#[test]
fn a_failure() {
    insta::assert_snapshot!(one(sample::failing()));
}

#[test]
fn an_inconclusive_check() {
    insta::assert_snapshot!(one(sample::undecided()));
}

#[test]
fn a_check_that_was_not_measured() {
    let check = CheckReport { reports: Vec::new(), ..sample::small() };
    insta::assert_snapshot!(shown(&check));
}

#[test]
fn each_kind_of_report() {
    for report in sample::kinds::each().into_iter().skip(1) {
        let kind = report.kind.to_string();
        insta::assert_snapshot!(format!("each_kind_{kind}"), one(report));
    }
}

#[test]
fn a_comparison_and_a_baseline() {
    let report = sample::failing();
    let comparison = terminal::comparison(report.comparison.as_ref().unwrap(), PLAIN);
    let baseline = terminal::baseline(&Baseline::from_report(&report));
    insta::assert_snapshot!(format!("{comparison}\n{baseline}"));
}

#[test]
fn colours_do_not_change_the_text() {
    let check = sample::small();
    let coloured = terminal::check(&check, Style { colors: true, width: 80 });
    assert!(coloured.contains("\u{1b}[31;1mnot measured\u{1b}[0m"), "{coloured}");
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((text, escape)) = rest.split_once("\u{1b}[") {
        plain.push_str(text);
        rest = escape.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, shown(&check));
}

#[test]
fn hostile_text_is_visible_and_keeps_the_width() {
    for check in [sample::hostile(), sample::kinds::hostile()] {
        let text = shown(&check);
        assert_eq!(karat_io::text::printable_block(&text), text);
    }
}

#[test]
fn the_last_line_is_the_verdict() {
    for verdict in [Some(Verdict::Pass), Some(Verdict::Inconclusive), Some(Verdict::Fail), None] {
        let text = shown(&CheckReport { verdict, ..sample::small() });
        let name = verdict.map_or("not measured", Verdict::name);
        assert!(text.lines().last().unwrap().starts_with(&format!("{name}: ")), "{text}");
    }
}

/// Every text of the check in characters that take two columns each.
fn wide(check: &CheckReport) -> CheckReport {
    let mut check = check.clone();
    for report in &mut check.reports {
        report.name = "検索エンジンの性能を測る".to_owned();
        for item in &mut report.items {
            if let Some(Observed::Ranking(ranking)) = &mut item.observed {
                ranking.query = "壊れたログイン画面についてチケットを開く".repeat(8);
            }
        }
        for check in report.gate.iter_mut().flat_map(|gate| &mut gate.checks) {
            check.reason = "回収率が下がりました ".repeat(20);
        }
    }
    for entry in &mut check.not_measured {
        entry.name = "検索エンジン".to_owned();
        entry.reason = "索引が開けません ".repeat(30);
    }
    check
}

#[test]
fn a_summary_keeps_the_width_of_the_terminal_also_in_wide_characters() {
    let written = ["karat-report/report.html".to_owned(), "karat-report/report.json".to_owned()];
    let kinds = sample::kinds::all();
    for check in [sample::small(), kinds, sample::hostile(), sample::kinds::hostile()] {
        for check in [wide(&check), check] {
            for width in [60, 80, 100, 160, 200] {
                let text = terminal::summary(&check, &written, Style { colors: false, width });
                for line in text.lines() {
                    assert!(columns(line) <= width, "{} of {width}: {line}", columns(line));
                }
            }
        }
    }
}

#[test]
fn the_last_line_of_an_undecided_check_has_the_value_and_the_limit() {
    let mut report = sample::undecided();
    let gate = report.gate.as_mut().unwrap();
    let open = gate.checks.iter_mut().find(|check| check.verdict == Verdict::Inconclusive);
    let open = open.unwrap();
    let (metric, rule) = (open.metric.clone(), open.rule.clone());
    assert_eq!(rule, "min");
    let value = open.value.unwrap();
    // Compared with a baseline of the same value, it is the value that is too uncertain.
    report.comparison = sample::failing().comparison;
    report.comparison.as_mut().unwrap().deltas =
        vec![sample::delta(&metric, value, value, &[], &[])];
    let limit = report.gate.as_ref().unwrap().checks[0].threshold.unwrap();
    let text = terminal::summary(&sample::single(report), &[], PLAIN);
    let last = text.lines().last().unwrap();
    assert!(last.contains(&format!("({metric} {value:.3}, min {limit})")), "{last}");
}

#[test]
fn rules_without_a_limit_that_find_no_room_are_counted() {
    let mut report = sample::failing();
    let gate = report.gate.as_mut().unwrap();
    let failed = |check: &&Check| check.verdict == Verdict::Fail && check.threshold.is_none();
    let mut control = gate.checks.iter().find(failed).unwrap().clone();
    control.reason = "unexpected".to_owned();
    gate.checks = vec![control; 11];
    let text = terminal::summary(&sample::single(report), &[], PLAIN);
    assert_eq!(text.matches("): unexpected").count(), 8, "{text}");
    assert!(text.contains("and 3 more rules: -v lists all"), "{text}");
}

#[test]
fn a_failed_check_fits_a_screen_however_much_failed() {
    let written = ["karat-report/report.html".to_owned(), "karat-report/report.json".to_owned()];
    for (failed, passed) in [(1, 0), (2, 1), (3, 0), (6, 2), (12, 30), (25, 0), (60, 3)] {
        let named = |report: Report, n: usize| Report { name: format!("entry-{n}"), ..report };
        let mut check = sample::single(named(sample::failing(), 0));
        check.reports.extend((1..failed).map(|n| named(sample::failing(), n)));
        check.reports.extend((0..passed).map(|n| named(sample::passing(), 100 + n)));
        for width in [60, 100, 160] {
            let text = terminal::summary(&check, &written, Style { colors: false, width });
            assert!(text.lines().count() <= 40, "{failed} failed at {width}:\n{text}");
            let last = text.lines().last().unwrap();
            assert!(last.starts_with(&format!("✗ {failed} of ")), "{last}");
            assert!(!last.ends_with('…'), "{last}");
            // Where there is no room for its metric, the entry is named.
            let named = if width > 60 { "retrieval entry-0 (" } else { "retrieval entry-0" };
            assert!(last.contains(named), "{last}");
        }
    }
}

#[test]
fn an_item_of_several_runs_is_shown_by_its_score_and_not_by_the_rank_of_one_run() {
    let report = sample::of_several_runs();
    let text = terminal::items::worse(&report, PLAIN);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" q-")).collect();
    assert!(!rows.is_empty(), "{text}");
    assert!(text.contains("0.400 → 0.200") && !text.contains("rank"), "{text}");
    let text = terminal::summary(&sample::single(report.clone()), &[], PLAIN);
    assert!(text.contains("0.400 → 0.200") && !text.contains("rank"), "{text}");
    // Equal losses keep the order of the report: the rank in the first run does not say which is worse.
    let places = ["q-2  ", "q-3  "].map(|id| text.find(id).unwrap());
    assert!(places.is_sorted(), "{text}");
    let item = report.items.iter().find(|item| item.id == "q-3").unwrap();
    let text = terminal::items::one(&report, item, PLAIN);
    assert!(text.contains("observed in the first run\n"), "{text}");
}

#[test]
fn a_baseline_of_several_runs_has_no_ranks() {
    let mut report = sample::of_several_runs();
    report.runs = 1;
    report.comparison.as_mut().unwrap().runs_before = Some(5);
    let text = terminal::items::worse(&report, PLAIN);
    assert!(text.contains("0.400 → 0.200") && !text.contains("rank"), "{text}");
}

#[test]
fn an_entry_of_several_runs_is_shown_by_its_score_and_not_by_the_verdict_of_one_run() {
    let mut report = sample::undecided();
    report.comparison = sample::failing().comparison;
    let comparison = report.comparison.as_mut().unwrap();
    comparison.deltas = vec![sample::delta("recall", 1.0, 0.6, &[], &["t-1"])];
    comparison.before = [("t-1".to_owned(), [("recall".into(), Some(1.0))].into())].into();
    report.items[0].metrics.insert("recall".into(), Some(0.6));
    assert!(terminal::items::worse(&report, PLAIN).contains("now true positive"));
    report.runs = 5;
    let text = terminal::items::worse(&report, PLAIN);
    assert!(text.contains("1.000 → 0.600") && !text.contains("true positive"), "{text}");
}

#[test]
fn the_time_of_a_check_covers_the_entries_that_were_measured() {
    let head = |check: &CheckReport| {
        let text = terminal::summary(check, &[], PLAIN);
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(head(&sample::failed()), "3 entries · 5.5 s");
    assert_eq!(head(&sample::small()), "4 entries · 3 measured in 5.5 s");
    let none = CheckReport { reports: Vec::new(), ..sample::small() };
    assert_eq!(head(&none), "1 entry");
}

#[test]
fn a_query_without_an_answer_is_not_shown_as_one_that_found_nothing() {
    let report = sample::without_an_answer();
    let text = terminal::items::worse(&report, PLAIN);
    assert!(text.contains("mrr: 0 worse, 0 better, 1 failed"), "{text}");
    assert!(text.contains("  no answer\n") && !text.contains("rank"), "{text}");
}

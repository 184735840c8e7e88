//! The terminal: every verdict and every kind of report, in 80 columns.

use crate::sample;

use karat_core::baseline::Baseline;
use karat_core::report::{CheckReport, Report, Verdict};
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

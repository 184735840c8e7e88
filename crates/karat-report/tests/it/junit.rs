//! JUnit: a case for each check, and valid XML whatever the text.

use crate::sample;

use std::collections::BTreeMap;

use karat_core::report::{CheckReport, Verdict};
use karat_report::Output;
use proptest::prelude::*;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

#[derive(Debug)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
}

fn element(start: &BytesStart<'_>) -> Element {
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).unwrap().into_owned();
        (String::from_utf8(attribute.key.as_ref().to_vec()).unwrap(), value)
    });
    Element {
        name: String::from_utf8(start.name().as_ref().to_vec()).unwrap(),
        attributes: attributes.collect(),
    }
}

/// Reads the whole document; fails where an XML reader would.
fn elements(xml: &str) -> Vec<Element> {
    let valid = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(xml.chars().all(valid), "a character that XML cannot hold");
    let mut reader = Reader::from_str(xml);
    let mut elements = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) | Event::Empty(start) => elements.push(element(&start)),
            Event::Text(text) => {
                text.xml10_content().unwrap();
                assert!(!text.windows(3).any(|part| part == b"]]>"));
            }
            Event::GeneralRef(name) => assert!(name.is_char_ref() || name.len() <= 4, "{name:?}"),
            Event::CData(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_) => {
                panic!("Karat writes no such thing")
            }
            Event::Decl(_) | Event::End(_) => {}
            Event::Eof => return elements,
        }
    }
}

fn xml(check: &CheckReport) -> String {
    Output::Junit.render(check).unwrap()
}

fn count(elements: &[Element], name: &str) -> usize {
    elements.iter().filter(|element| element.name == name).count()
}

#[test]
fn the_cases_of_a_check_with_every_part() {
    insta::assert_snapshot!(xml(&sample::small()));
}

#[test]
fn each_check_is_a_case_with_its_outcome() {
    for check in [sample::small(), sample::hostile()] {
        let elements = elements(&xml(&check));
        let with = |verdict| {
            let gates = check.reports.iter().filter_map(|report| report.gate.as_ref());
            gates.flat_map(|gate| &gate.checks).filter(|check| check.verdict == verdict).count()
        };
        let lost = check.not_measured.len();
        let all: usize =
            [Verdict::Pass, Verdict::Inconclusive, Verdict::Fail].map(with).iter().sum();
        assert_eq!(count(&elements, "testsuite"), check.reports.len() + lost);
        assert_eq!(count(&elements, "testcase"), all + lost);
        assert_eq!(count(&elements, "failure"), with(Verdict::Fail));
        assert_eq!(count(&elements, "skipped"), with(Verdict::Inconclusive));
        assert_eq!(count(&elements, "error"), lost);
        let top = &elements[0].attributes;
        assert_eq!(top["tests"], (all + lost).to_string());
        assert_eq!(top["failures"], with(Verdict::Fail).to_string());
        assert_eq!(top["errors"], lost.to_string());
    }
}

#[test]
fn the_reason_is_the_message() {
    let elements = elements(&xml(&sample::small()));
    let failure = elements.iter().find(|element| element.name == "failure").unwrap();
    assert!(failure.attributes["message"].starts_with("recall@5 0.7500 → 0.5000: worse by"));
    assert_eq!(failure.attributes["type"], "max_drop");
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    assert_eq!(xml(&sample::hostile()), xml(&sample::hostile()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_gives_valid_xml(text in any::<String>(), tail in "[\\PC<>&'\"\u{0}-\u{1f}\\]]{0,20}") {
        let text = text + &tail;
        let mut check: CheckReport = sample::failed();
        let gate = check.reports[0].gate.as_mut().unwrap();
        gate.checks[0].reason = text.clone();
        gate.checks[0].metric = text.clone();
        gate.checks[0].items = vec![text.clone()];
        check.reports[0].warnings = vec![text.clone()];
        check.reports[0].name = text;
        elements(&xml(&check));
    }
}

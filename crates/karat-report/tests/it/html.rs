//! The page: complete, inert whatever the report says, and the same every time.

use crate::sample;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use karat_core::report::{CheckReport, Item};
use karat_io::text::printable_block;
use karat_report::html;
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The text between two marks, the first time they occur.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("no {from}")) + from.len();
    &text[start..start + text[start..].find(to).unwrap_or_else(|| panic!("no {to}"))]
}

fn data(page: &str) -> &str {
    between(page, r#"<script type="application/json" id="data">"#, "</script>")
}

/// The page without its style, script, data and the digests of them.
fn markup(page: &str) -> String {
    let policy = between(page, "Content-Security-Policy\" content=\"", "\"");
    let mut text = page.replacen(policy, "", 1);
    for block in
        [between(page, "<style>", "</style>"), data(page), between(page, "<script>", "</script>")]
    {
        text = text.replacen(block, "", 1);
    }
    text
}

#[derive(Debug)]
struct Tag {
    name: String,
    attributes: BTreeMap<String, String>,
}

/// Reads the tags as a browser does: a quoted value ends at its quote, a tag at the next `>`.
fn tags(markup: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = markup;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find(|c: char| c.is_whitespace() || c == '>').unwrap();
        let name = rest[..end].trim_end_matches('/').to_owned();
        rest = &rest[end..];
        let mut attributes = BTreeMap::new();
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            let end = rest.find(|c: char| c.is_whitespace() || "=>".contains(c)).unwrap();
            let key = rest[..end].trim_end_matches('/').to_owned();
            rest = &rest[end..];
            let value = match rest.strip_prefix("=\"") {
                Some(value) => {
                    let end = value.find('"').unwrap();
                    rest = &value[end + 1..];
                    value[..end].to_owned()
                }
                None => {
                    assert!(!rest.starts_with('='), "a value without quotes after {key}");
                    String::new()
                }
            };
            assert!(attributes.insert(key.clone(), value).is_none(), "{key} twice in {name}");
        }
        tags.push(Tag { name, attributes });
    }
    tags
}

#[test]
fn the_static_part_shows_every_shape() {
    insta::assert_snapshot!(markup(&html::page(&sample::small()).unwrap()));
}

#[test]
fn each_kind_of_report_has_its_figures() {
    let page = markup(&html::page(&sample::kinds::all()).unwrap());
    let from = page.find("<main").unwrap();
    insta::assert_snapshot!(&page[from..page.find("id=\"legend\"").unwrap()]);
}

#[test]
fn each_kind_of_report_is_known_and_sorts_its_items_out() {
    let page = html::page(&sample::kinds::all()).unwrap();
    let data: Value = serde_json::from_str(data(&page)).unwrap();
    let shown: Vec<String> = data["reports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|report| {
            let values = Packing::of(report).list(&report["columns"]["facet"]);
            let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            let facet = report["facet"].as_str().unwrap_or("nothing");
            format!("{} by {facet}: {}", report["kind"].as_str().unwrap(), values.join(", "))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "verdicts by outcome: true positive, false negative, unsupported, false positive, true negative",
            "suite by result: passed, passed at times, failed",
            "load by nothing: ",
            "fuzz by findings: error, none",
            "attack by status: broken, held, not_applicable",
            "traces by task: not done, done",
            "trajectories by calls: changed, the same",
        ]
    );
}

#[test]
fn a_hundred_metrics_do_not_stand_in_the_way_of_the_first() {
    let mut check = sample::small();
    let metric = check.reports[0].metrics[0].clone();
    check.reports[0].metrics.extend((0..100).map(|number| karat_core::report::Measured {
        id: format!("further.{number}"),
        ..metric.clone()
    }));
    let page = markup(&html::page(&check).unwrap());
    let more = between(&page, "<details>\n<summary>10", "</details>");
    assert!(more.contains("further.99") && more.contains("further.0"));
    assert!(page.find("recall@5").unwrap() < page.find("further.0").unwrap());
}

#[test]
fn the_policy_names_the_digests_of_what_the_page_carries() {
    let page = html::page(&sample::hostile()).unwrap();
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    for (directive, from, to) in
        [("style-src", "<style>", "</style>"), ("script-src", "<script>", "</script>")]
    {
        let digest = Sha256::digest(between(&page, from, to).as_bytes());
        let digest = base64::engine::general_purpose::STANDARD.encode(digest);
        assert!(policy.contains(&format!("{directive} 'sha256-{digest}';")), "{policy}");
    }
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
}

#[test]
fn hostile_text_adds_no_tag_no_handler_and_no_address() {
    let plain: BTreeSet<String> = [sample::small(), sample::kinds::all()]
        .iter()
        .flat_map(|check| tags(&markup(&html::page(check).unwrap())))
        .map(|tag| tag.name)
        .collect();
    let pages =
        [sample::hostile(), sample::kinds::hostile()].map(|check| html::page(&check).unwrap());
    for tag in pages.iter().flat_map(|page| tags(&markup(page))) {
        assert!(plain.contains(&tag.name), "{tag:?}");
        for (key, value) in &tag.attributes {
            assert!(!key.starts_with("on") && key != "style" && key != "src", "{tag:?}");
            if key == "href" {
                let icon = tag.name == "link" && value.starts_with("data:image/svg+xml,");
                assert!(icon || value.starts_with('#'), "{tag:?}");
            }
        }
    }
}

#[test]
fn only_a_page_that_is_served_leads_elsewhere() {
    let check = sample::small();
    let back = html::Back { name: "Run 3".to_owned(), target: "/runs/3".to_owned() };
    let outside = |page: &str| -> Vec<String> {
        let links = tags(&markup(page)).into_iter().filter(|tag| tag.name == "a");
        let targets = links.filter_map(|tag| tag.attributes.get("href").cloned());
        targets.filter(|target| !target.starts_with('#')).collect()
    };
    assert_eq!(outside(&html::page(&check).unwrap()), [""; 0]);
    let served = html::served(&check, &back).unwrap();
    assert_eq!(outside(&served), ["/", "&#x2f;runs&#x2f;3"]);
    assert_eq!(data(&served), data(&html::page(&check).unwrap()));
}

#[test]
fn hostile_text_cannot_leave_the_data_block() {
    let page = html::page(&sample::hostile()).unwrap();
    assert!(!data(&page).contains('<'));
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn nothing_hidden_stands_in_the_file() {
    for check in [sample::hostile(), sample::kinds::hostile()] {
        let page = html::page(&check).unwrap();
        assert_eq!(printable_block(&page), page);
    }
}

#[test]
fn every_place_is_named_once_and_every_link_leads_to_one() {
    for check in
        [sample::small(), sample::hostile(), sample::kinds::all(), sample::kinds::hostile()]
    {
        let tags = tags(&markup(&html::page(&check).unwrap()));
        let mut ids = BTreeSet::new();
        for id in tags.iter().filter_map(|tag| tag.attributes.get("id")) {
            assert!(ids.insert(id.as_str()), "{id} twice");
        }
        for target in tags.iter().filter_map(|tag| tag.attributes.get("href")?.strip_prefix('#')) {
            // With a slash it is an item, which the script opens; with a question mark a list of some.
            let place = target.split_once("&#x2f;").map_or(target, |(report, _)| report);
            let place = place.split_once('?').map_or(place, |(list, _)| list);
            assert!(ids.contains(place), "{target}");
        }
    }
}

/// Reads packed values as data.js does.
struct Packing<'a> {
    texts: &'a [Value],
    names: &'a [Value],
}

impl<'a> Packing<'a> {
    fn of(report: &'a Value) -> Packing<'a> {
        let list = |key: &str| report[key].as_array().unwrap().as_slice();
        Packing { texts: list("texts"), names: list("names") }
    }

    fn value(&self, packed: &Value) -> Value {
        let Value::Array(parts) = packed else {
            assert!(!packed.is_object(), "{packed}");
            return packed.clone();
        };
        match place(&parts[0]) {
            kind @ (0 | 1) => Value::Array(self.cells(kind, &parts[1..])),
            kind @ (2 | 3) => self.record(&parts[1], self.cells(kind, &parts[2..])),
            4 => {
                let columns: Vec<Vec<Value>> =
                    parts[2..].iter().map(|column| self.list(column)).collect();
                let row = |at: usize| columns.iter().map(|column| column[at].clone()).collect();
                (0..columns[0].len()).map(|at| self.record(&parts[1], row(at))).collect()
            }
            5 => {
                let mut list = vec![self.value(&parts[2]); place(&parts[1])];
                for other in parts[3..].chunks(2) {
                    list[place(&other[0])] = self.value(&other[1]);
                }
                Value::Array(list)
            }
            6 => self.texts[place(&parts[1])].clone(),
            kind => panic!("{kind}"),
        }
    }

    fn list(&self, packed: &Value) -> Vec<Value> {
        self.value(packed).as_array().unwrap().clone()
    }

    fn cells(&self, kind: usize, cells: &[Value]) -> Vec<Value> {
        let cell = |cell: &Value| match cell.is_number() && kind % 2 == 1 {
            true => self.texts[place(cell)].clone(),
            false => self.value(cell),
        };
        cells.iter().map(cell).collect()
    }

    fn record(&self, names: &Value, values: Vec<Value>) -> Value {
        let names = self.names[place(names)].as_array().unwrap().iter();
        let names = names.map(|name| name.as_str().unwrap().to_owned());
        Value::Object(names.zip(values).collect())
    }
}

fn place(number: &Value) -> usize {
    usize::try_from(number.as_u64().unwrap()).unwrap()
}

fn items(report: &Value) -> Vec<Item> {
    let packing = Packing::of(report);
    let columns: Vec<(&String, Vec<Value>)> = report["columns"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "facet")
        .map(|(name, column)| (name, packing.list(column)))
        .collect();
    let scored: Vec<Vec<Value>> =
        report["scored"].as_array().unwrap().iter().map(|list| packing.list(list)).collect();
    let restored = |(at, observed): (usize, &Value)| {
        let mut item = serde_json::Map::new();
        for (name, column) in columns.iter().filter(|(_, column)| !column[at].is_null()) {
            item.insert((*name).clone(), column[at].clone());
        }
        let names = report["scores"].as_array().unwrap().iter();
        let scores = names.zip(&scored).filter(|(_, scores)| scores[at] != false);
        let scores =
            scores.map(|(name, scores)| (name.as_str().unwrap().to_owned(), scores[at].clone()));
        item.insert("metrics".to_owned(), Value::Object(scores.collect()));
        if let Some(runs) = report.get("per_run") {
            item.insert("per_run".to_owned(), packing.value(&runs[at]));
        }
        item.insert("observed".to_owned(), packing.value(observed));
        serde_json::from_value(Value::Object(item)).unwrap()
    };
    report["observed"].as_array().unwrap().iter().enumerate().map(restored).collect()
}

/// Any JSON, with texts and names that come again and again.
fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "",
            "null",
            "files:read_file",
            "__proto__",
            "a text that comes again",
            "6"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..9_u8).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![0.0, -0.0, 1.0]).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 12, move |inner| {
        let same = (inner.clone(), inner.clone(), 0..30_usize);
        // Rows that are alike, but for some that only look so.
        let row = (inner.clone(), inner.clone(), 0..20_u8);
        let row = row.prop_map(|(a, b, kind)| match kind {
            0 => json!({"b": b, "name": a}),
            1 => json!({"name": a, "c": b}),
            _ => json!({"name": a, "b": b}),
        });
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            same.prop_map(|(value, other, count)| {
                let list = std::iter::repeat_n(value, count).chain([other]);
                list.collect()
            }),
            prop::collection::vec(row, 0..8).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn whatever_was_observed_can_be_rebuilt(
        observed in prop::collection::vec(any_json(), 1..8),
        tag in any::<String>(),
        score in prop::option::of(any::<f64>().prop_filter("in JSON", |score| score.is_finite())),
    ) {
        let mut check = sample::small();
        let mut report = check.reports.swap_remove(0);
        let item = report.items.swap_remove(0);
        report.items = observed
            .into_iter()
            .enumerate()
            .map(|(number, observed)| Item { id: format!("i{number}"), observed, ..item.clone() })
            .collect();
        report.items[0].tags.insert(tag.clone(), tag.clone());
        report.items[0].metrics.insert(tag.clone(), score);
        report.items[0].per_run.push(std::collections::BTreeMap::from([(tag, score)]));
        check.reports = vec![report];
        let page = html::page(&check).unwrap();
        let data: Value = serde_json::from_str(data(&page)).unwrap();
        // As text, because values are equal whatever the order of their fields.
        let rebuilt = serde_json::to_string(&items(&data["reports"][0])).unwrap();
        prop_assert_eq!(rebuilt, serde_json::to_string(&check.reports[0].items).unwrap());
    }
}

#[test]
fn an_item_can_be_rebuilt_from_the_page_as_it_was() {
    let large = sample::synthetic::check_of(200);
    let [kinds, hostile] = [sample::kinds::all(), sample::kinds::hostile()];
    for check in [sample::small(), sample::hostile(), kinds, hostile, large] {
        let page = html::page(&check).unwrap();
        let data: Value = serde_json::from_str(data(&page)).unwrap();
        for (report, shown) in check.reports.iter().zip(data["reports"].as_array().unwrap()) {
            assert_eq!(items(shown), report.items);
        }
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    for check in [sample::small(), sample::hostile(), sample::synthetic::check_of(50)] {
        let read_back: CheckReport =
            serde_json::from_str(&serde_json::to_string(&check).unwrap()).unwrap();
        assert_eq!(html::page(&check).unwrap(), html::page(&read_back).unwrap());
    }
}

#[test]
fn ten_thousand_items_stay_below_fifteen_megabytes() {
    let page = html::page(&sample::synthetic::check_of(10_000)).unwrap();
    let data: Value = serde_json::from_str(data(&page)).unwrap();
    assert_eq!(data["reports"][0]["observed"].as_array().unwrap().len(), 10_000);
    assert!(page.len() < 15_000_000, "{} bytes", page.len());
}

#[test]
fn a_check_without_anything_in_it_is_still_a_page() {
    let empty = CheckReport {
        reports: Vec::new(),
        not_measured: Vec::new(),
        not_run: Vec::new(),
        ..sample::small()
    };
    let page = html::page(&empty).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
}

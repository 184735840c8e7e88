//! The page: complete, inert whatever the report says, and the same every time.

#![allow(clippy::unwrap_used, clippy::panic)]

mod sample;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use karat_core::report::{CheckReport, Item};
use karat_core::text::printable_block;
use karat_report::html;
use serde_json::Value;
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
            let items = report["items"].as_array().unwrap().iter();
            let values: Vec<&str> = items.filter_map(|item| item["facet"].as_str()).collect();
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

/// What data.js does.
fn unpacked(value: &Value) -> Value {
    match value {
        Value::Array(values) => match values.split_first() {
            Some((kind, rest)) if kind == 0 => rest.iter().map(unpacked).collect(),
            Some((_, [Value::Array(keys), cells @ ..])) => cells
                .chunks(keys.len())
                .map(|row| {
                    let keys = keys.iter().map(|key| key.as_str().unwrap().to_owned());
                    Value::Object(keys.zip(row.iter().map(unpacked)).collect())
                })
                .collect(),
            _ => panic!("{value}"),
        },
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), unpacked(value))).collect()
        }
        other => other.clone(),
    }
}

fn items(report: &Value) -> Vec<Item> {
    let named = |scores: &mut Value| {
        if let Value::Array(values) = scores {
            let names = report["scores"].as_array().unwrap().iter();
            let names = names.map(|name| name.as_str().unwrap().to_owned());
            let scored = names.zip(std::mem::take(values));
            *scores = Value::Object(scored.filter(|(_, score)| *score != false).collect());
        }
    };
    let restored = |item: &Value| {
        let mut item = item.clone();
        item["observed"] = unpacked(&item["observed"]);
        named(&mut item["metrics"]);
        if let Some(runs) = item.get_mut("per_run") {
            runs.as_array_mut().unwrap().iter_mut().for_each(named);
        }
        serde_json::from_value(item).unwrap()
    };
    report["items"].as_array().unwrap().iter().map(restored).collect()
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
    assert_eq!(data["reports"][0]["items"].as_array().unwrap().len(), 10_000);
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

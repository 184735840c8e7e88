//! The page: complete, inert whatever the report says, and the same every time.

use crate::sample;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use base64::Engine as _;
use flate2::read::GzDecoder;
use karat_core::observed::{Observed, Other};
use karat_core::report::{CheckReport, Item, Kind, Report};
use karat_io::text::printable_block;
use karat_metrics::MetricId;
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
    between(page, r#"<script type="application/gzip" id="data">"#, "</script>")
}

/// The lines of the data block, as data.js reads them: what the tables show, then the items.
fn lines(page: &str) -> (Value, Vec<String>) {
    let packed = base64::engine::general_purpose::STANDARD.decode(data(page)).unwrap();
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    let (head, items) = text.split_once('\n').unwrap();
    (serde_json::from_str(head).unwrap(), items.lines().map(str::to_owned).collect())
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
fn the_markup_of_a_short_page() {
    let mut report = sample::failing();
    report.metrics.truncate(1);
    report.items.truncate(2);
    let page = markup(&html::page(&sample::single(report)).unwrap());
    let card = between(&page, "<article", "</article>");
    insta::assert_snapshot!(card);
}

#[test]
fn each_kind_of_report_divides_its_items_by_a_facet() {
    let (head, _) = lines(&html::page(&sample::kinds::all()).unwrap());
    let shown: Vec<String> = head
        .as_array()
        .unwrap()
        .iter()
        .map(|report| {
            let rows = report["rows"].as_array().unwrap().iter();
            let values: Vec<&str> = rows.filter_map(|row| row["facet"].as_str()).collect();
            let name = report["name"].as_str().unwrap();
            format!(
                "{name} by {}: {}",
                report["facet"].as_str().unwrap_or("nothing"),
                values.join(", ")
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "bm25 by found: rank 1, rank 2–3, not found",
            "scanner by outcome: true positive, false negative, unsupported, false positive, true negative",
            "suite by result: passed, flaky, failed",
            "load by nothing: ",
            "fuzz by findings: error, none",
            "attack by status: broken, held, not_applicable",
            "agent by task: failed, succeeded",
            "diff by calls: changed, the same, not compared",
            "model_x by task: succeeded, partial, failed",
            "agent with filter by outcome: no attack, done, succeeded, attempted, refused, ignored, undelivered",
            "dice by nothing: ",
        ]
    );
}

#[test]
fn a_page_shows_no_ranks_of_items_with_several_runs() {
    let report = sample::of_several_runs();
    let page = html::page(&sample::single(report.clone())).unwrap();
    assert!(page.contains("Rank of the first relevant tool in the first run"));
    assert!(page.contains("0.400 → 0.200") && !page.contains("rank 3 → "));
    assert_eq!(lines(&page).0[0]["first_run"], true);
    let rows = |page: &str| lines(page).0[0]["rows"].as_array().unwrap().clone();
    assert!(rows(&page).iter().all(|row| row.get("ranks").is_none()));
    let page = html::page(&sample::single(Report { runs: 1, ..report })).unwrap();
    assert!(rows(&page).iter().any(|row| row.get("ranks").is_some()));
    assert_eq!(lines(&page).0[0]["first_run"], false);
}

#[test]
fn a_page_says_that_verdicts_of_several_runs_are_of_the_first() {
    let report = sample::undecided();
    let title = "flagged in the first run";
    let page = html::page(&sample::single(report.clone())).unwrap();
    assert!(!page.contains(title));
    let page = html::page(&sample::single(Report { runs: 5, ..report })).unwrap();
    assert!(page.contains(title));
}

#[test]
fn a_query_without_an_answer_has_no_ranks() {
    let page = html::page(&sample::single(sample::without_an_answer())).unwrap();
    let rows = lines(&page).0[0]["rows"].as_array().unwrap().clone();
    let row = rows.iter().find(|row| row["id"] == "q-3").unwrap();
    assert!(row["error"].is_object() && row.get("ranks").is_none(), "{row}");
}

#[test]
fn a_hundred_metrics_do_not_hide_the_first() {
    let mut check = sample::small();
    let metric = check.reports[0].metrics[0].clone();
    check.reports[0].metrics.extend((0..100).map(|number| karat_core::report::Measured {
        id: format!("further.{number}").as_str().into(),
        ..metric.clone()
    }));
    let page = markup(&html::page(&check).unwrap());
    let more = between(&page, "<details>\n<summary>10", "</details>");
    assert!(more.contains("further.99") && more.contains("further.0"));
    assert!(page.find("recall@5").unwrap() < page.find("further.0").unwrap());
}

#[test]
fn the_policy_has_the_digests_of_style_and_script() {
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
fn only_a_served_page_links_elsewhere() {
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
    assert!(data(&page).bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)));
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn the_file_has_no_hidden_characters() {
    for check in [sample::hostile(), sample::kinds::hostile()] {
        let page = html::page(&check).unwrap();
        assert_eq!(printable_block(&page), page);
    }
}

#[test]
fn every_anchor_is_unique_and_every_link_has_one() {
    for check in
        [sample::small(), sample::hostile(), sample::kinds::all(), sample::kinds::hostile()]
    {
        let tags = tags(&markup(&html::page(&check).unwrap()));
        let mut ids = BTreeSet::new();
        for id in tags.iter().filter_map(|tag| tag.attributes.get("id")) {
            assert!(ids.insert(id.as_str()), "{id} twice");
        }
        let mut links = 0;
        for target in tags.iter().filter_map(|tag| tag.attributes.get("href")?.strip_prefix('#')) {
            // With a slash it is an item, with a question mark a filtered list: the script handles both.
            let place = target.split_once("&#x2f;").map_or(target, |(report, _)| report);
            let place = place.split_once('?').map_or(place, |(list, _)| list);
            assert!(ids.contains(place), "{target}");
            links += 1;
        }
        assert!(links > 0 && !ids.is_empty(), "{links} links to {} anchors", ids.len());
    }
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
    fn any_item_can_be_read_back_from_the_page(
        observed in prop::collection::vec(any_json(), 1..8),
        tag in any::<String>(),
        score in prop::option::of(any::<f64>().prop_filter("in JSON", |score| score.is_finite())),
    ) {
        let mut report = sample::kinds::toy();
        let item = report.items.swap_remove(0);
        report.items = observed
            .into_iter()
            .enumerate()
            .map(|(number, seen)| {
                let kind = Kind::Other("toy".into());
                let fields = serde_json::Map::from_iter([("seen".to_owned(), seen)]);
                let observed = Some(Observed::Other(Other { kind, fields }));
                Item { id: format!("i{number}"), observed, ..item.clone() }
            })
            .collect();
        report.items[0].tags.insert(tag.clone(), tag.clone());
        let id = MetricId::new(&tag);
        report.items[0].metrics.insert(id.clone(), score);
        report.items[0].per_run.push(BTreeMap::from([(id, score)]));
        let (_, read) = lines(&html::page(&sample::single(report.clone())).unwrap());
        let written: Vec<String> =
            report.items.iter().map(|item| serde_json::to_string(item).unwrap()).collect();
        prop_assert_eq!(read, written);
    }
}

#[test]
fn the_items_of_all_reports_can_be_read_back_from_the_page() {
    let large = sample::single(sample::synthetic::retrieval(200));
    let [kinds, hostile] = [sample::kinds::all(), sample::kinds::hostile()];
    for check in [sample::small(), sample::hostile(), kinds, hostile, large] {
        let (head, read) = lines(&html::page(&check).unwrap());
        let items: Vec<Item> =
            read.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let written: Vec<Item> =
            check.reports.iter().flat_map(|report| report.items.clone()).collect();
        assert_eq!(items, written);
        for (report, shown) in check.reports.iter().zip(head.as_array().unwrap()) {
            assert_eq!(shown["rows"].as_array().unwrap().len(), report.items.len());
        }
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    for check in
        [sample::small(), sample::hostile(), sample::single(sample::synthetic::retrieval(50))]
    {
        let read_back: CheckReport =
            serde_json::from_str(&serde_json::to_string(&check).unwrap()).unwrap();
        assert_eq!(html::page(&check).unwrap(), html::page(&read_back).unwrap());
    }
}

#[test]
fn a_thousand_items_stay_below_half_a_megabyte() {
    let check = sample::single(sample::synthetic::retrieval(1000));
    let page = html::page(&check).unwrap();
    assert_eq!(lines(&page).1.len(), 1000);
    assert!(page.len() < 500_000, "{} bytes", page.len());
}

#[test]
fn an_empty_check_is_still_a_page() {
    let empty = CheckReport {
        reports: Vec::new(),
        not_measured: Vec::new(),
        leaderboards: Vec::new(),
        ..sample::small()
    };
    let page = html::page(&empty).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
}

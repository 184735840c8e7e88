//! The store: documents come back as they were, other files are never touched, old runs are removed.

use std::path::Path;

use karat_core::report::{Kind, SCHEMA};
use karat_history::pages::Pages;
use karat_history::{
    Added, Document, Entry, HistoryError, Prune, Selection, State, Store, series, text,
};
use karat_io::input::InputError;
use proptest::prelude::*;
use serde_json::{Value, json};

const NAME: &str = "r.json";

/// A report of one entry, in version 1 of the format; a value of none is an undefined metric.
fn report(name: &str, started: &str, digest: &str, value: Option<f64>) -> Value {
    json!({
        "schema": "karat.report/1", "evaluation": "retrieval", "name": name,
        "dataset": {"id": "tools", "version": "v1", "digest": digest},
        "system": {"kind": "builtin", "name": "bm25"}, "runs": 1, "seed": 0,
        "metrics": [
            {"id": "recall@5", "value": 0.5, "n": 2, "better": "higher"},
            {"id": "mrr", "value": value, "n": 2, "better": "higher",
             "interval": value.map(|value| json!({"low": value - 0.1, "high": value + 0.1, "level": 0.95, "method": "bootstrap"})),
             "undefined": value.is_none().then_some("no query")},
        ],
        "items": [{"id": "q1", "metrics": {"mrr": value}}],
        "gate": {"verdict": "fail", "checks": [
            {"metric": "oracle", "rule": "control", "threshold": null, "value": null, "verdict": "pass", "reason": "lands"},
            {"metric": "mrr", "rule": "min", "threshold": 0.9, "value": value, "verdict": "fail", "reason": "too low"},
        ]},
        "environment": {"karat": "0.1.0", "os": "linux", "started": started, "duration_ms": 1, "commit": "abc"},
    })
}

fn at(day: u32) -> String {
    format!("2026-11-{day:02}T08:00:00Z")
}

fn add(store: &mut Store, document: &Value) -> Added {
    store.add(&read(document.to_string().as_bytes()).unwrap()).unwrap()
}

fn read(bytes: &[u8]) -> Result<Document, InputError> {
    Document::read(Path::new(NAME), bytes)
}

/// Runs on these days, in the order in which they are added.
fn filled(days: &[u32]) -> Store {
    let mut store = Store::in_memory().unwrap();
    for day in days {
        add(&mut store, &report("search", &at(*day), "sha256:1", Some(f64::from(*day) / 100.0)));
    }
    store
}

fn entries(store: &Store) -> Vec<Entry> {
    store.entries(Selection::Latest(100)).unwrap()
}

fn ids(store: &Store) -> Vec<i64> {
    store.runs().unwrap().iter().map(|run| run.id).collect()
}

#[test]
fn a_report_is_kept_with_its_numbers() {
    let mut store = Store::in_memory().unwrap();
    assert_eq!(add(&mut store, &report("search", &at(3), "sha256:1", Some(0.7))), Added::New(1));
    let run = store.run(1).unwrap();
    assert_eq!((run.started.as_str(), run.state), (at(3).as_str(), State::Fail));
    assert_eq!((run.karat.as_str(), run.commit.as_deref()), ("0.1.0", Some("abc")));
    let all = entries(&store);
    let [entry] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(entry.dataset.as_ref().unwrap().version, "v1");
    assert_eq!(entry.kind, Some(Kind::Ranking));
    // The gate checks mrr, so it represents the entry although it is the second metric.
    assert_eq!(entry.headline.as_deref(), Some("mrr"));
    let mrr = entry.value("mrr").unwrap();
    assert_eq!((mrr.value, mrr.n), (Some(0.7), 2));
    assert_eq!(mrr.interval.as_ref().unwrap().method, "bootstrap");
}

#[test]
fn reports_of_both_versions_are_read_and_keep_their_kind() {
    let mut store = Store::in_memory().unwrap();
    let mut old = report("load", &at(1), "sha256:1", Some(0.7));
    old["evaluation"] = json!("server");
    old["items"][0]["observed"] = json!({"ok": 90, "errors": 2});
    let mut new = old.clone();
    new["schema"] = json!(SCHEMA);
    new["kind"] = json!("toy");
    new["environment"]["started"] = json!(at(2));
    new["items"][0]["observed"] = json!({"kind": "toy", "roll": 4});
    for document in [old, new] {
        add(&mut store, &document);
    }
    let kinds: Vec<_> = entries(&store).into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Some(Kind::Load), Some(Kind::Other("toy".into()))]);
    let pages = Pages::new().unwrap();
    for (run, kind) in (1..).zip(kinds) {
        let check = store.check(run).unwrap();
        assert_eq!(check.reports[0].schema, SCHEMA);
        assert_eq!(Some(check.reports[0].kind.clone()), kind);
        assert!(
            pages.report(run, &store.document(run).unwrap()).unwrap().contains("id=\"inspector\"")
        );
    }
}

#[test]
fn a_damaged_file_is_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.sqlite");
    let mut store = Store::open_or_create(&path).unwrap();
    for day in 1..20 {
        add(&mut store, &report("search", &at(day), "sha256:1", Some(0.5)));
    }
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    // Everything after the first page, which names the file a history.
    bytes[4096..].fill(0xA5);
    std::fs::write(&path, bytes).unwrap();
    let error = Store::open(&path).and_then(|store| store.runs().map(drop)).unwrap_err();
    assert!(matches!(error, HistoryError::Broken { .. }), "{error}");
    assert!(error.to_string().contains("karat history add"), "{error}");
}

#[test]
fn a_page_of_two_runs_names_the_metrics_that_could_not_be_compared() {
    let mut store = Store::in_memory().unwrap();
    for (day, limit) in [(1, "5"), (2, "20"), (3, "3")] {
        let mut document = report("search", &at(day), "sha256:1", Some(0.5));
        document["system"]["settings"] = json!({"limit": limit});
        add(&mut store, &document);
    }
    let pages = Pages::new().unwrap();
    let some = pages.compare(&store, Some((1, 2))).unwrap();
    assert!(some.contains("not compared: mrr (5 results were requested before, 20 now)"), "{some}");
    let none = pages.compare(&store, Some((2, 3))).unwrap();
    assert!(none.contains("Not compared: 20 results were requested before, 3 now."), "{none}");
    assert!(!none.contains("every item scores as before"), "{none}");
}

#[test]
fn adding_the_same_bytes_again_changes_nothing() {
    let mut store = filled(&[1, 2]);
    let again = report("search", &at(1), "sha256:1", Some(0.01));
    assert_eq!(add(&mut store, &again), Added::Known(1));
    assert_eq!(ids(&store), [1, 2]);
}

#[test]
fn runs_are_in_the_order_of_their_start() {
    let store = filled(&[5, 2, 9]);
    assert_eq!(ids(&store), [2, 1, 3]);
}

#[test]
fn a_change_is_only_between_values_on_the_same_data() {
    let mut store = Store::in_memory().unwrap();
    let course = [
        (1, "a", Some(0.5)),
        (2, "a", Some(0.6)),
        (3, "b", Some(0.1)),
        (4, "b", None),
        (5, "b", Some(0.3)),
    ];
    for (day, digest, value) in course {
        add(&mut store, &report("search", &at(day), digest, value));
    }
    let all = entries(&store);
    let series = series::of(&all, "mrr");
    let moves: Vec<Vec<Option<f64>>> = series
        .iter()
        .map(|one| one.points.iter().map(|p| p.delta.map(|d| (d * 10.0).round() / 10.0)).collect())
        .collect();
    assert_eq!(moves, [vec![None, Some(0.1)], vec![None, None, Some(0.2)]]);
    // The chart has a line for the two on the first data, and none across the undefined value.
    let pages = Pages::new().unwrap();
    let mrr = all[0].value("mrr").unwrap().metric_id;
    let page = pages.metric(&store, all[0].subject.id, mrr).unwrap();
    assert_eq!(page.matches("<polyline").count(), 1, "{page}");
    assert_eq!(page.matches("<a href=\"/runs/").count(), 4 + all.len(), "dots and rows: {page}");
}

#[test]
fn an_entry_that_could_not_be_measured_has_its_reason() {
    let mut store = filled(&[1]);
    let check = json!({
        "schema": "karat.check/1", "verdict": null,
        "reports": [report("other", &at(2), "sha256:1", Some(0.4))],
        "not_measured": [{"evaluation": "retrieval", "name": "search", "reason": "did not start"}],
    });
    add(&mut store, &check);
    assert_eq!(store.run(2).unwrap().state, State::NotMeasured);
    let lost = entries(&store).into_iter().find(|one| one.state == State::NotMeasured).unwrap();
    assert_eq!(
        (lost.subject.name.as_str(), lost.reason.as_deref()),
        ("search", Some("did not start"))
    );
    assert!(lost.dataset.is_none() && lost.kind.is_none() && lost.values.is_empty());
}

#[test]
fn a_document_that_is_not_a_report_is_refused_with_the_reason() {
    let refused = |document: &Value| read(document.to_string().as_bytes()).unwrap_err().to_string();
    let nothing = json!({"schema": "karat.check/1", "verdict": null, "reports": []});
    assert!(refused(&nothing).contains("nothing was measured"));
    assert!(refused(&report("a", "yesterday", "d", None)).contains("environment.started"));
    assert!(refused(&json!({"schema": "karat.report/9"})).contains("karat.report/9"));
    assert!(refused(&json!([])).contains(NAME));
}

#[test]
fn another_file_is_refused_and_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let other = other_database(folder.path());
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "these are my notes, not a database\n".repeat(100)).unwrap();
    for path in [other, text] {
        let before = std::fs::read(&path).unwrap();
        for opened in [Store::open(&path), Store::open_or_create(&path)] {
            let error = opened.err().unwrap();
            assert!(matches!(error, HistoryError::Foreign { .. }), "{error}");
            assert!(error.to_string().contains("--db"), "{error}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    let missing = Store::open(&folder.path().join("none")).err().unwrap();
    assert!(matches!(missing, HistoryError::Missing { .. }));
    assert!(!folder.path().join("none").exists());
}

/// A database of another application: the id is at byte 68 of the header.
fn other_database(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("other.sqlite");
    drop(Store::open_or_create(&path).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[68..72].copy_from_slice(b"CATS");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn several_processes_read_a_history_and_leave_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sub/h.sqlite");
    let mut one = Store::open_or_create(&path).unwrap();
    let other = Store::open(&path).unwrap();
    add(&mut one, &report("search", &at(1), "d", Some(0.5)));
    assert_eq!(ids(&other), [1]);
    drop((one, other));
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1);
}

#[test]
fn a_damaged_document_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h");
    let mut store = Store::open_or_create(&path).unwrap();
    add(&mut store, &report("search", &at(1), "d", Some(0.5)));
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let start = bytes.windows(4).position(|four| four == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    bytes[start + 8..start + 16].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let error = Store::open(&path).unwrap().document(1).unwrap_err();
    assert!(matches!(error, HistoryError::Damaged { run: 1, .. }), "{error}");
}

#[test]
fn pruning_removes_the_oldest_and_ids_are_never_reused() {
    let gone = |store: &Store, prune: &Prune| -> Vec<i64> {
        store.prunable(prune).unwrap().iter().map(|run| run.id).collect()
    };
    let mut store = filled(&[4, 1, 9]);
    assert_eq!(gone(&store, &Prune::Keep(1)), [2, 1]);
    assert_eq!(gone(&store, &Prune::Keep(7)), [0_i64; 0]);
    assert_eq!(gone(&store, &Prune::Before("2026-11-04".to_owned())), [2]);
    assert_eq!(gone(&store, &Prune::Days { days: 5, now: at(9) }), [2]);
    assert_eq!(gone(&store, &Prune::Days { days: u32::MAX, now: at(9) }), [0_i64; 0]);
    let oldest = store.prunable(&Prune::Keep(1)).unwrap();
    store.remove(&oldest).unwrap();
    assert_eq!(ids(&store), [3]);
    assert_eq!(entries(&store).len(), 1);
    let last = store.prunable(&Prune::Before("2027".to_owned())).unwrap();
    store.remove(&last).unwrap();
    assert!(store.subjects().unwrap().is_empty() && store.metrics().unwrap().is_empty());
    assert_eq!(add(&mut store, &report("search", &at(1), "d", None)), Added::New(4));
}

#[test]
fn hostile_names_stay_names() {
    let hostile = "x'; DROP TABLE runs; --\u{0}\u{202e}<script>alert(1)</script>\u{1b}[31m\n";
    let mut store = Store::in_memory().unwrap();
    for day in [1, 2] {
        let mut document = report(hostile, &at(day), hostile, Some(0.5));
        document["metrics"][0]["id"] = json!(hostile);
        document["dataset"]["version"] = json!(hostile);
        document["system"]["name"] = json!(hostile);
        document["environment"]["commit"] = json!(hostile);
        document["environment"]["karat"] = json!(hostile);
        document["items"][0]["id"] = json!(hostile);
        add(&mut store, &document);
    }
    let all = entries(&store);
    assert_eq!(all[0].subject.name, hostile);
    let shown = [
        text::list(&store.runs().unwrap()),
        text::subject(&all.iter().collect::<Vec<_>>()),
        text::metric(&series::of(&all, hostile)),
    ];
    for table in &shown {
        assert!(!table.contains(['\u{0}', '\u{1b}', '\u{202e}']), "{table}");
    }
    let pages = Pages::new().unwrap();
    let (subject, metric) = (all[0].subject.id, all[0].values[0].metric_id);
    let made = [
        pages.overview(&store).unwrap(),
        pages.subject(&store, subject).unwrap(),
        pages.metric(&store, subject, metric).unwrap(),
        pages.runs(&store).unwrap(),
        pages.run(&store, 1).unwrap(),
        pages.compare(&store, Some((1, 2))).unwrap(),
    ];
    for page in &made {
        assert!(!page.contains("<script>alert"), "{page}");
        assert!(!page.contains(['\u{0}', '\u{1b}', '\u{202e}']), "{page}");
    }
    // The text is shown.
    assert!(made[0].contains("&lt;script&gt;alert(1)"), "{}", made[0]);
}

#[test]
fn the_same_history_gives_the_same_pages() {
    let pages = Pages::new().unwrap();
    let make = || {
        let store = filled(&[1, 2, 3]);
        let subject = store.subjects().unwrap()[0].id;
        [
            pages.overview(&store).unwrap(),
            pages.metric(&store, subject, 2).unwrap(),
            pages.runs(&store).unwrap(),
            pages.compare(&store, None).unwrap(),
        ]
    };
    assert_eq!(make(), make());
}

#[test]
fn an_empty_history_says_how_to_fill_it() {
    let pages = Pages::new().unwrap();
    let store = Store::in_memory().unwrap();
    assert!(pages.overview(&store).unwrap().contains("karat history add"));
    assert!(pages.runs(&store).unwrap().contains("0 runs"));
    assert!(pages.compare(&store, None).unwrap().contains("Compare two runs"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_document_comes_back_byte_for_byte(
        name in any::<String>(),
        value in prop::option::of(0.0_f64..1.0),
        space in "[ \n\t]{0,40}",
        mark in any::<bool>(),
    ) {
        let document = report(&name, &at(1), "d", value);
        let bytes = format!("{}{}{space}", if mark { "\u{FEFF}" } else { "" }, document);
        let mut store = Store::in_memory().unwrap();
        let added = store.add(&read(bytes.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(added, Added::New(1));
        prop_assert_eq!(store.document(1).unwrap(), bytes.as_bytes());
        prop_assert_eq!(&store.check(1).unwrap().reports[0].name, &name);
        prop_assert_eq!(&entries(&store)[0].subject.name, &name);
        prop_assert_eq!(entries(&store)[0].value("mrr").unwrap().value, value);
    }
}

/// A check of one entry on a branch.
fn on_branch(day: u32, branch: &str, subject: &str) -> Value {
    json!({
        "schema": "karat.check/1", "verdict": "fail",
        "source": {"project": "p", "branch": branch, "commit": "abc", "subject": subject},
        "reports": [upgraded(day)], "not_measured": [],
    })
}

/// A report of version 2, as checks hold them.
fn upgraded(day: u32) -> Value {
    let mut report = report("search", &at(day), "sha256:1", Some(f64::from(day) / 100.0));
    report["schema"] = SCHEMA.into();
    report["kind"] = "ranking".into();
    report
}

#[test]
fn pages_show_branches_limits_strips_and_what_failed() {
    let mut store = Store::in_memory().unwrap();
    add(&mut store, &on_branch(3, "main", "Add <search>"));
    add(&mut store, &on_branch(4, "next", "Break it"));
    let run = store.run(2).unwrap();
    assert_eq!(run.branch.as_deref(), Some("next"));
    assert_eq!(
        (run.commit_subject.as_deref(), run.states.as_slice()),
        (Some("Break it"), &[State::Fail][..])
    );
    let pages = Pages::new().unwrap();
    let overview = pages.overview(&store).unwrap();
    assert_eq!(overview.matches("<li><a class=\"fail\"").count(), 2, "{overview}");
    assert!(overview.contains("Run 1, 2026-11-03 08:00:00 UTC: fail, main: Add &lt;search&gt;"));
    let metric = entries(&store)[0].value("mrr").unwrap().metric_id;
    let page = pages.metric(&store, 1, metric).unwrap();
    for part in
        ["min 0.9000", "data-branch=\"next\"", "name=\"before\" value=\"1\"", ">2026-11-03<"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let runs = pages.runs(&store).unwrap();
    assert!(runs.contains("<option value=\"main\">") && runs.contains("fail-entry"), "{runs}");
}

#[test]
fn a_site_has_every_page_and_no_address_that_leads_nowhere() {
    let mut store = filled(&[1, 2, 3, 4]);
    add(&mut store, &on_branch(5, "main", "Last"));
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("site");
    let pages = karat_history::site::write(&store, &folder, 2).unwrap();
    assert!(pages > 12, "{pages}");
    let mut waiting = vec![folder.clone()];
    let mut links = 0;
    while let Some(place) = waiting.pop() {
        for entry in std::fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "html") {
                continue;
            }
            let html = std::fs::read_to_string(&path).unwrap();
            let html = html.split("<script type=\"application/gzip\"").next().unwrap();
            for attribute in ["href=\"", "src=\"", "action=\""] {
                for address in html.split(attribute).skip(1) {
                    let address = address.split(['"', '#']).next().unwrap();
                    if address.is_empty() || address.starts_with("data:") {
                        continue;
                    }
                    links += 1;
                    assert!(!address.starts_with('/'), "{}: {address}", path.display());
                    let target = place.join(address);
                    assert!(target.is_file(), "{}: {address}", path.display());
                }
            }
            assert!(!html.contains("<form class"), "{}", path.display());
        }
    }
    assert!(links > 50, "{links}");
    karat_history::site::write(&store, &folder, 2).unwrap();
    std::fs::write(scratch.path().join("other.txt"), "mine").unwrap();
    let refused = karat_history::site::write(&store, scratch.path(), 2).unwrap_err();
    assert!(refused.to_string().contains("not empty"), "{refused}");
}

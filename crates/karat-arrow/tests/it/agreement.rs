//! The numbers of batches are those of the evaluations, to the last digit.

use std::path::{Path, PathBuf};

use karat_agent::traces::{Config, Data, Kept};
use karat_agent::{CallMetric, Keep, ScoredSet, Tools, TraceScorer, TraceSet, Traces};
use karat_arrow::arrow_array::RecordBatch;
use karat_arrow::{Kind, Options, Partial, Scorer};
use karat_core::dataset::DatasetFiles;
use karat_core::evaluation::{Common, Entry, report_recorded};
use karat_core::report::Report;
use karat_retrieval::rankings::Rankings;
use serde_json::json;

use crate::tables::{self, RankingRow, TraceRow, VerdictRow};

fn datasets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets")
}

/// Every metric of the batches has the value, number and left-out items that the report has.
fn check(of_batches: &Report, full: &Report, least: usize) {
    let mut compared = 0;
    for metric in &of_batches.metrics {
        let Some(other) = full.metric(&metric.id) else {
            panic!("{} is not in the full report", metric.id)
        };
        // A sum that is rounded once may differ from one in order by its last digits.
        let is_same = match (metric.value, other.value) {
            (Some(ours), Some(theirs)) => (ours - theirs).abs() <= 1e-14 * theirs.abs(),
            (ours, theirs) => ours == theirs,
        };
        assert!(is_same, "{}: {metric:?} {other:?}", metric.id);
        assert_eq!((metric.n, metric.left_out), (other.n, other.left_out), "{}", metric.id);
        assert_eq!(metric.better, other.better);
        if let (Some(count), Some(other)) = (metric.count, other.count) {
            assert_eq!((count.hits, count.of), (other.hits, other.of), "{}", metric.id);
        }
        compared += usize::from(metric.value.is_some());
    }
    assert!(compared >= least, "{compared} metrics have a value");
}

/// The report in batches of some rows.
fn in_batches(scorer: &Scorer, batch: &RecordBatch, rows: usize) -> Report {
    let mut partial = Partial::new(scorer.kind(), scorer.options()).unwrap();
    for start in (0..batch.num_rows()).step_by(rows) {
        let part = batch.slice(start, rows.min(batch.num_rows() - start));
        partial.add(&scorer.score(&part).unwrap()).unwrap();
    }
    partial.report().unwrap()
}

#[test]
fn traces_as_documents() {
    let folder = datasets().join("traces/v2");
    let mut tools = Tools::default();
    let set = TraceSet::open(DatasetFiles::Folder(folder.clone()), &mut tools).unwrap();
    let config = Config::default();
    let metrics = CallMetric::usual();
    let set = ScoredSet::of(set, &TraceScorer::new(&tools, &metrics), Keep::Scores);
    let data = Data { traces: Kept::Traces(set), tools, metrics, verdicts: None, before: None };
    let (system, runs) = (config.system(&data), data.runs());
    let entry = Entry::<Traces> { common: Common::named("t"), config, data };
    let full = report_recorded(&entry, Vec::new(), system, runs).unwrap();

    let files = ["building", "living"].map(|name| folder.join(format!("traces/{name}.jsonl")));
    let text = files.map(|path| std::fs::read_to_string(path).unwrap()).concat();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let column = tables::texts(lines.iter().map(|line| Some(*line)));
    let batch = RecordBatch::try_from_iter([("trace", column)]).unwrap();
    let mut tools = Tools::default();
    tools.load_dataset(DatasetFiles::Folder(folder)).unwrap();
    let scorer = Scorer::new(Kind::Traces, Options::default()).unwrap().with_tools(tools);
    check(&in_batches(&scorer, &batch, 37), &full, 18);
}

fn call(name: &str, arguments: &str, server: Option<&str>) -> tables::Call {
    (name.to_owned(), Some(arguments.to_owned()), server.map(str::to_owned))
}

#[test]
fn columns_say_the_same_as_documents() {
    let asked = call("search", r#"{"q":"x","n":1.0}"#, Some("web"));
    let rows = [
        TraceRow {
            id: "a".into(),
            calls: vec![asked.clone(), call("open", "{}", None)],
            expected: Some(vec![asked.clone(), call("open", "{}", None)]),
            duration_ms: Some(12.5),
            ..TraceRow::default()
        },
        TraceRow {
            id: "b".into(),
            calls: vec![call("mcp__web__search", r#"{"n":1,"q":"x"}"#, None)],
            expected: Some(vec![asked.clone(), call("open", "{}", None)]),
            ..TraceRow::default()
        },
        TraceRow {
            id: "c".into(),
            calls: vec![call("open", "{not json", None)],
            expected: Some(Vec::new()),
            setting: Some("distractors".into()),
            ..TraceRow::default()
        },
        TraceRow { id: "d".into(), expected: None, ..TraceRow::default() },
        TraceRow {
            id: "e".into(),
            expected: Some(vec![asked]),
            setting: Some("without_tools".into()),
            ..TraceRow::default()
        },
    ];
    let calls = |calls: &[tables::Call]| {
        let one = |(name, arguments, server): &tables::Call| {
            let text = arguments.as_deref().unwrap_or("{}");
            let arguments: serde_json::Value =
                serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            match server {
                Some(server) => json!({"name": name, "arguments": arguments, "server": server}),
                None => json!({"name": name, "arguments": arguments}),
            }
        };
        calls.iter().map(one).collect::<Vec<_>>()
    };
    let documents = rows.each_ref().map(|row| {
        let mut trace = json!({"id": row.id, "calls": calls(&row.calls)});
        if let Some(expected) = &row.expected {
            trace["expect"] = json!({"calls": calls(expected)});
        }
        if let Some(setting) = &row.setting {
            trace["setting"] = json!(setting);
        }
        if let Some(ms) = row.duration_ms {
            trace["usage"] = json!({"duration_ms": ms});
        }
        trace.to_string()
    });
    let documents = tables::texts(documents.iter().map(Some));
    let documents = RecordBatch::try_from_iter([("trace", documents)]).unwrap();
    let scorer = Scorer::new(Kind::Traces, Options::default()).unwrap();
    assert_eq!(scorer.score(&documents).unwrap(), scorer.score(&tables::traces(&rows)).unwrap());
}

#[test]
fn rankings() {
    let folder = DatasetFiles::Folder(datasets().join("tools/v1"));
    let dataset = karat_retrieval::dataset::Dataset::open(folder).unwrap();
    let tools: Vec<&str> = dataset.tools.iter().map(|tool| tool.tool_id.as_str()).collect();
    let mut rows = Vec::new();
    for (number, query) in dataset.queries.iter().enumerate() {
        // A few right ones among many others, at places that differ from query to query.
        let mut ranked: Vec<String> = (0..14)
            .map(|place| tools[(number * 31 + place * 97) % tools.len()].to_owned())
            .collect();
        for (place, label) in query.labels.iter().enumerate().filter(|(n, _)| (n + number) % 3 > 0)
        {
            ranked.insert((number * 7 + place * 5) % ranked.len(), label.tool_id.clone());
        }
        let mut seen = std::collections::HashSet::new();
        ranked.retain(|id| seen.insert(id.clone()));
        let relevant = query.labels.iter();
        let relevant = relevant.map(|label| (label.tool_id.clone(), i64::from(label.relevance)));
        let relevant = relevant.collect();
        rows.push(RankingRow { id: query.id.clone(), group: None, ranked, relevant });
    }
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("rankings.jsonl");
    let line = |row: &RankingRow| {
        let ranked: Vec<_> = row.ranked.iter().map(|id| json!({"tool_id": id})).collect();
        json!({"id": row.id, "ranked": ranked}).to_string()
    };
    std::fs::write(&path, rows.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let options = karat_retrieval::ScoreOptions::default();
    let rankings = Rankings::load(&path).unwrap();
    let full = karat_retrieval::score_rankings(dataset, &rankings, &path, &options).unwrap();

    let scorer = Scorer::new(Kind::Rankings, Options::default()).unwrap();
    let mut other_order = rows.clone();
    other_order.reverse();
    for rows in [rows, other_order] {
        check(&in_batches(&scorer, &tables::rankings(&rows), 50), &full, 12);
    }
}

#[test]
fn verdicts() {
    let folder = DatasetFiles::Folder(datasets().join("threats/v2"));
    let dataset = karat_detection::dataset::Dataset::open(folder).unwrap();
    let mut rows = Vec::new();
    for (number, sample) in dataset.samples.iter().enumerate() {
        let guess = (number * 2_654_435_761) % 1000;
        let verdict = match guess {
            0..20 => "unsupported",
            _ if (guess < 750) == sample.is_malicious() => "flag",
            _ => "pass",
        };
        rows.push(VerdictRow {
            id: sample.id.clone(),
            group: Some(sample.server.clone()).filter(|server| !server.is_empty()),
            label: sample.label.name().to_owned(),
            category: Some(sample.category.clone()),
            verdict: Some(verdict.to_owned()),
            score: Some((guess / 10) as f64 / 100.0),
        });
    }
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("verdicts.jsonl");
    let line = |row: &VerdictRow| {
        json!({"id": row.id, "verdict": row.verdict, "score": row.score}).to_string()
    };
    std::fs::write(&path, rows.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let options = karat_detection::ScoreOptions::default();
    let full = karat_detection::score_verdicts(dataset, &path, &options).unwrap();
    let scorer = Scorer::new(Kind::Verdicts, Options::default()).unwrap();
    check(&in_batches(&scorer, &tables::verdicts(&rows), 100), &full, 15);
}

/// The columns of metrics of a scored batch.
fn ragas(batch: &RecordBatch) -> Vec<String> {
    let columns =
        batch.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let named = columns.into_iter().filter(|name| !name.starts_with("calls."));
    named.map(|name| format!("{name}: {:?}", batch.column_by_name(&name).unwrap())).collect()
}

#[test]
fn metrics_of_calls_alone_are_the_same_whatever_else_is_asked_for() {
    let call = |name: &str, arguments: Option<&str>, server: Option<&str>| {
        (name.to_owned(), arguments.map(str::to_owned), server.map(str::to_owned))
    };
    let plain = call("files__read", Some(r#"{"path": "a", "lines": 10}"#), None);
    let odd = [
        call("files__read", Some(r#"{"lines": 10.0, "path": "a"}"#), None),
        call("files__read", Some(r#"{"path": "b", "path": "a", "lines": 10}"#), None),
        call("read", Some(r#"{"path": "a", "lines": 10}"#), Some("files")),
        call("files__read", Some("not JSON"), None),
        call("files__read", Some(r#"{"path": NaN}"#), None),
        call("files__read", Some("[1]"), None),
        call("files__read", Some(" "), None),
        call("files__read", Some(r#"{"path": "\ud800"}"#), None),
        call("files__read", Some(r#"{"id": 123456789012345678901234567890}"#), None),
        call("files__read", None, None),
        call("", Some("{}"), None),
        plain.clone(),
    ];
    let mut rows = Vec::new();
    for one in &odd {
        for (calls, expected) in [
            (vec![one.clone()], Some(vec![plain.clone()])),
            (vec![plain.clone(), one.clone()], Some(vec![one.clone(), plain.clone()])),
            (vec![], Some(vec![one.clone()])),
            (vec![one.clone()], Some(vec![])),
            (vec![one.clone()], None),
        ] {
            let id = format!("t{}", rows.len());
            let duration_ms = Some(rows.len() as f64).filter(|ms| *ms > 3.0);
            rows.push(TraceRow { id, calls, expected, duration_ms, ..TraceRow::default() });
        }
    }
    let setting = |text: &str| Some(text.to_owned());
    rows.push(TraceRow {
        id: "without".to_owned(),
        setting: setting("without_tools"),
        calls: vec![plain.clone()],
        expected: Some(vec![plain.clone()]),
        ..TraceRow::default()
    });
    rows.push(TraceRow {
        id: "failed".to_owned(),
        failed: setting("timeout"),
        ..TraceRow::default()
    });
    let batch = tables::traces(&rows);
    let metrics =
        ["ragas.tool_call_accuracy", "ragas.tool_call_accuracy_unordered", "ragas.tool_call_f1"];
    let scored = |more: &[&str]| {
        let metrics = metrics.iter().chain(more).map(|id| (*id).to_owned()).collect();
        let options = Options { metrics, max_errors: 1.0, ..Options::default() };
        let scorer = Scorer::new(Kind::Traces, options).unwrap();
        let whole = scorer.score(&batch).unwrap();
        let shares = scorer.score_all([Ok::<_, karat_arrow::Error>(batch.clone())]).unwrap();
        assert_eq!(shares, std::slice::from_ref(&whole));
        ragas(&whole)
    };
    assert_eq!(scored(&[]), scored(&["calls.exact"]));
}

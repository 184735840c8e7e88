//! Trace files as they are in practice: compressed, damaged, empty, huge, with duplicate ids.

use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZero;
use std::path::PathBuf;

use karat_agent::streaming::{self, Aggregates};
use karat_agent::{
    CallMetric, Keep, ScoredSet, Tasks, Tools, Trace, TraceFiles, TraceFormat, TraceScorer,
    TraceSet, TraceSource, Traces, traces,
};
use karat_core::error::EvalError;
use karat_core::evaluation::{self, Common, Entry};
use karat_core::report::Report;
use tempfile::TempDir;

/// The items of one pass: id and scores of each.
type Items = Vec<(String, Vec<f64>)>;

struct TraceFile {
    _directory: TempDir,
    path: PathBuf,
    format: TraceFormat,
    metrics: Vec<CallMetric>,
    max_malformed: f64,
    threads: Option<NonZero<usize>>,
}

impl TraceFile {
    fn new(content: impl AsRef<[u8]>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("traces.jsonl");
        std::fs::write(&path, content).unwrap();
        let metrics = vec![CallMetric::RagasAccuracy, CallMetric::RagasF1, CallMetric::Alignment];
        let format = TraceFormat::Ragas;
        TraceFile {
            _directory: directory,
            path,
            format,
            metrics,
            max_malformed: 0.0,
            threads: None,
        }
    }

    fn with<T>(&self, tasks: Option<&Tasks>, read: impl Fn(&TraceSource<'_>) -> T) -> T {
        let files = std::slice::from_ref(&self.path);
        let formats = [self.format];
        let files = TraceFiles { files, formats: &formats, metrics: &self.metrics };
        read(&TraceSource { files, tasks, max_malformed: self.max_malformed, prices: None })
    }

    fn score(&self) -> (Result<Aggregates, EvalError>, Items) {
        let mut items = Items::new();
        let found = self.with(None, |source| {
            let mut items = Items::new();
            let found = streaming::score(source, &Tools::default(), self.threads, &mut |item| {
                let scores = item.scores.iter().map(|score| score.unwrap().unwrap());
                items.push((item.id.to_owned(), scores.collect()));
            });
            (found, items)
        });
        items.extend(found.1);
        (found.0, items)
    }

    fn error(&self) -> String {
        self.score().0.unwrap_err().to_string()
    }
}

/// A sample in which the first `right` of three calls are as expected.
fn sample(id: Option<&str>, right: usize) -> String {
    let call = |position: usize, value: usize| {
        format!(r#"{{"name":"tool{position}","args":{{"value":{value}}}}}"#)
    };
    let called: Vec<String> = (0..3).map(|n| call(n, usize::from(n >= right))).collect();
    let expected: Vec<String> = (0..3).map(|n| call(n, 0)).collect();
    let id = id.map_or(String::new(), |id| format!(r#""id":"{id}","#));
    format!(
        r#"{{{id}"user_input":[{{"type":"human","content":"go"}},{{"type":"ai","content":"","tool_calls":[{}]}}],"reference_tool_calls":[{}]}}"#,
        called.join(","),
        expected.join(",")
    )
}

/// Many samples, enough for several batches.
fn many(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "{}", sample(Some(&format!("s{n}")), n % 4)).unwrap();
    }
    text
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn items_come_in_the_order_of_the_file() {
    let content = format!(
        "\u{feff}{}\n\n  \r\n{}\r\n{}",
        sample(Some("a"), 3),
        sample(None, 0),
        sample(Some("b"), 1)
    );
    let (found, items) = TraceFile::new(content).score();
    let found = found.unwrap();
    let third = 1.0 / 3.0;
    let expected = vec![
        ("a".to_owned(), vec![1.0, 1.0, 1.0]),
        ("line-4".to_owned(), vec![0.0, 0.0, 0.5]),
        ("b".to_owned(), vec![third, 0.3333, (1.0 + 0.5 + 0.5) / 3.0]),
    ];
    assert_eq!(items, expected);
    assert_eq!(found.traces, 3);
    let accuracy = &found.metrics[0];
    assert_eq!((accuracy.id.as_str(), accuracy.n), ("ragas.tool_call_accuracy", 3));
    assert_eq!(accuracy.value, Some((1.0 + third) / 3.0));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut file = TraceFile::new(many(5000));
    file.threads = NonZero::new(1);
    let (alone, alone_items) = file.score();
    let alone = alone.unwrap();
    assert_eq!(alone_items.len(), 5000);
    for threads in [2, 3, 8] {
        file.threads = NonZero::new(threads);
        let (found, items) = file.score();
        assert!(items == alone_items, "{threads} threads");
        assert_eq!(found.unwrap().metrics, alone.metrics, "{threads} threads");
    }
}

#[test]
fn the_number_of_threads_does_not_change_where_an_error_stops() {
    let mut lines: Vec<String> = many(6000).lines().map(ToOwned::to_owned).collect();
    lines[3999].insert(5, '}');
    lines[5000].clear();
    lines[5001] = "[".into();
    let mut file = TraceFile::new(lines.join("\n"));
    for threads in [1, 2, 4] {
        file.threads = NonZero::new(threads);
        let (found, items) = file.score();
        let error = found.unwrap_err().to_string();
        assert!(error.contains("traces.jsonl:4000: ") && error.ends_with("(not_json)"), "{error}");
        assert_eq!(items.len(), 3999);
    }
}

#[test]
fn compression_is_recognized_by_the_first_bytes() {
    let plain = many(3000);
    let (expected, expected_items) = TraceFile::new(&plain).score();
    let expected = expected.unwrap();
    // Two gzip members one after the other are one file.
    let (head, tail) = plain.as_bytes().split_at(plain.len() / 2);
    let gzipped = [gzip(head), gzip(tail)].concat();
    let zstd = zstd::encode_all(plain.as_bytes(), 1).unwrap();
    for compressed in [gzipped, zstd] {
        let (found, items) = TraceFile::new(compressed).score();
        assert_eq!(found.unwrap().metrics, expected.metrics);
        assert!(items == expected_items);
    }
}

/// `{"id":"a","calls":[]}` and a line feed, as `xz --check=crc32` writes it.
const XZ: &[u8] =
    b"\xfd7zXZ\x00\x00\x01i\"\xde6\x02\x00!\x01\x16\x00\x00\x00t/\xe5\xa3\x01\x00\x15{\"id\":\
    \"a\",\"calls\":[]}\n\x00\x00\x00iN\xef\x98\x00\x01*\x16R\xcc9\xbb\x90B\x99\r\x01\x00\x00\x00\
    \x00\x01YZ";

#[test]
fn compressed_text_is_not_taken_for_a_binary_format() {
    let text = b"{\"id\":\"a\",\"calls\":[]}\n";
    for content in [text.to_vec(), gzip(text), zstd::encode_all(&text[..], 1).unwrap(), XZ.to_vec()]
    {
        let file = TraceFile::new(content);
        let (formats, set) = crate::formats::read(std::slice::from_ref(&file.path));
        assert_eq!(formats, [TraceFormat::Native]);
        assert_eq!(set.traces.len(), 1);
    }
}

#[test]
fn a_truncated_compressed_file_is_an_error_after_its_last_whole_line() {
    let plain = many(4000);
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() * 3 / 4].to_vec();
    let gzipped = (cut(gzip(plain.as_bytes())), "gzip");
    let zstd = (cut(zstd::encode_all(plain.as_bytes(), 1).unwrap()), "zstd");
    for (content, format) in [gzipped, zstd] {
        let (found, items) = TraceFile::new(content).score();
        let error = found.unwrap_err();
        assert!(!error.is_not_measured());
        let error = error.to_string();
        let place = format!("traces.jsonl:{}: ", items.len() + 1);
        assert!(error.contains(&place) && error.contains(format), "{error}");
    }
}

#[test]
fn a_file_without_samples_does_not_pass() {
    for content in [Vec::new(), b"\n \n".to_vec(), "\u{feff}".into(), gzip(b"")] {
        let error = TraceFile::new(content).score().0.unwrap_err();
        assert!(error.is_not_measured(), "{error}");
        assert!(error.to_string().contains("nothing to score"), "{error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let mut file = TraceFile::new("");
    file.path.set_extension("gone");
    assert!(file.error().contains("traces.gone: no such file"), "{}", file.error());
}

#[test]
fn a_mistake_is_reported_with_file_and_line() {
    let second = |line: &[u8]| {
        let mut content = sample(None, 3).into_bytes();
        content.push(b'\n');
        content.extend_from_slice(line);
        TraceFile::new(content).error()
    };
    for (line, expected) in [
        (&b"{\"user_input\":["[..], "the text ends inside a value at byte 15 (truncated)"),
        (br#"{"user_input":[]}"#, "reference_tool_calls: is missing (invalid)"),
        (
            br#"{"user_input":[{"type":"ai","tool_calls":[{"name":3}]}]}"#,
            "user_input[0].tool_calls[0].name: should be a string, not a number (invalid)",
        ),
        (b"7", ": should be an object, not a number (invalid)"),
        (
            br#"{"user_input":[{"type":"system"}]}"#,
            "user_input[0].type: is \"system\", should be one of human, ai, tool (invalid)",
        ),
        (b"{\"user_input\":\"\xff\"}", "byte 16 is not UTF-8 (not_utf8)"),
        (br#"{"user_input":[],"reference_tool_calls":[]} {}"#, "(not_json)"),
    ] {
        let error = second(line);
        assert!(error.contains("traces.jsonl:2: ") && error.ends_with(expected), "{error}");
    }
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"user_input":[],"reference_tool_calls":[],"other":{value}}}"#)
    };
    assert_eq!(TraceFile::new(nested(127)).score().0.unwrap().traces, 1);
    let error = TraceFile::new(nested(128)).error();
    assert!(error.contains("traces.jsonl:1: ") && error.contains("128"), "{error}");
}

#[test]
fn lines_have_a_limit() {
    let short = r#"{"user_input":[],"reference_tool_calls":[]}"#;
    let (found, items) = TraceFile::new(format!("{short}\n{}", " ".repeat((16 << 20) + 1))).score();
    let error = found.unwrap_err().to_string();
    assert!(error.contains("traces.jsonl:2: ") && error.contains("longer than"), "{error}");
    assert_eq!(items.len(), 1);
}

#[test]
fn a_duplicate_id_is_an_error_that_names_both_lines() {
    let ids = ["a", "b", "c", "b"].map(|id| sample(Some(id), 3));
    let file = TraceFile::new(format!("{}\n\n{}", ids[..2].join("\n"), ids[2..].join("\n")));
    let (found, items) = file.score();
    let error = found.unwrap_err().to_string();
    assert!(error.contains("traces.jsonl:5: duplicate id \"b\" (first in line 2)"), "{error}");
    assert_eq!(items.len(), 3);
    // The report refuses it too.
    let error = file.with(None, |source| TraceSet::read(source).unwrap_err().to_string());
    assert!(error.contains("traces.jsonl:5: duplicate id \"b\" (first in line 2)"), "{error}");
}

#[test]
fn samples_without_ids_may_be_equal() {
    let twice = TraceFile::new([sample(None, 3), sample(None, 3)].join("\n"));
    assert_eq!(twice.score().0.unwrap().traces, 2);
}

#[test]
fn a_list_of_samples_is_read_entry_by_entry() {
    let all = [sample(None, 3), sample(Some("b"), 0), sample(None, 1)];
    for text in [format!("[{}]", all.join(",")), format!("[\n{}\n]\n", all.join(",\n"))] {
        let (_, items) = TraceFile::new(text).score();
        let ids: Vec<&str> = items.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["line-1", "b", "line-1-3"]);
    }
}

#[test]
fn thresholds_and_warnings_are_counted() {
    let empty = r#"{"user_input":[],"reference_tool_calls":[]}"#;
    let none = r#"{"user_input":[],"reference_tool_calls":[{"name":"a","args":{}}]}"#;
    let mut file = TraceFile::new([&sample(None, 3), empty, none, none].join("\n"));
    file.metrics.push("deepeval.tool_correctness".parse().unwrap());
    let warnings = file.score().0.unwrap().warnings;
    assert_eq!(
        warnings,
        [
            "2 traces expected calls and made none",
            "deepeval.tool_correctness: 2 of 4 traces reach its threshold"
        ]
    );
}

#[test]
fn bad_records_within_the_allowance_are_counted() {
    let mut file = TraceFile::new([&sample(None, 3), "{}", "oops"].join("\n"));
    file.max_malformed = 0.7;
    let found = file.score().0.unwrap();
    assert_eq!(found.traces, 1);
    assert_eq!(found.warnings, ["2 records could not be read: invalid 1, not_json 1"]);
    file.max_malformed = 0.5;
    let error = file.error();
    assert!(error.contains("traces.jsonl:2: 2 of 3 records are bad"), "{error}");
}

fn full_report(file: &TraceFile, tasks: Option<&Tasks>) -> Report {
    let tools = Tools::default();
    let scorer = TraceScorer::new(&tools, &file.metrics);
    let set = file.with(tasks, |source| ScoredSet::read(source, &scorer, Keep::Scores).unwrap());
    report(file, traces::Kept::Traces(set))
}

fn report(file: &TraceFile, kept: traces::Kept) -> Report {
    report_against(file, kept, None)
}

fn report_against(file: &TraceFile, kept: traces::Kept, before: Option<Vec<Trace>>) -> Report {
    let config = traces::Config { format: file.format, ..traces::Config::default() };
    let data = traces::Data {
        traces: kept,
        tools: Tools::default(),
        metrics: file.metrics.clone(),
        verdicts: None,
        before,
    };
    let (system, runs) = (config.system(&data), data.runs());
    let entry = Entry::<Traces> { common: Common::named("t"), config, data };
    evaluation::report_recorded(&entry, Vec::new(), system, runs).unwrap()
}

/// The same traces, scored with every item kept and as sums alone.
#[test]
fn the_means_are_those_of_the_report_to_the_last_digit() {
    let mut lines = String::new();
    for n in 0..700 {
        let (a, answer) = (n % 3, n % 5);
        writeln!(
            lines,
            r#"{{"id":"t{n}","calls":[{{"name":"add","arguments":{{"a":{a}}},"result":{{}}}}],"output":"{answer}","usage":{{"input_tokens":{n},"duration_ms":{}}},"expect":{{"calls":[{{"name":"add","arguments":{{"a":1}}}}],"answer":{{"number":2}}}}}}"#,
            n as f64 / 7.0
        )
        .unwrap();
    }
    let mut file = TraceFile::new(&lines);
    file.format = TraceFormat::Native;
    file.metrics = CallMetric::usual();
    let full = full_report(&file, None);
    let found = file.with(None, |source| {
        streaming::score(source, &Tools::default(), file.threads, &mut |_| {}).unwrap()
    });
    let means = report(&file, traces::Kept::Aggregates(found));
    assert!(means.items.is_empty() && full.items.len() == 700);
    let mut compared = 0;
    for metric in &means.metrics {
        let other = full.metric(&metric.id).unwrap();
        assert_eq!((metric.n, metric.value.is_some()), (other.n, other.value.is_some()));
        if let (Some(ours), Some(theirs)) = (metric.value, other.value) {
            assert!((ours - theirs).abs() <= 1e-15 * theirs.abs().max(1.0), "{}", metric.id);
            compared += 1;
        }
        assert_eq!(metric.undefined, other.undefined, "{}", metric.id);
        if other.count.is_some() {
            assert_eq!(metric.interval, other.interval, "{}", metric.id);
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn an_earlier_run_of_another_model_is_compared_task_by_task() {
    let run = |id: &str, model: &str| {
        let text = format!(
            r#"{{"id":"{id}","model":"{model}","calls":[{{"name":"add","arguments":{{}}}}],"expect":{{"calls":["add"]}}}}"#
        );
        TraceFile { format: TraceFormat::Native, ..TraceFile::new(text) }
    };
    let compared = |before: &TraceFile, after: &TraceFile| {
        let before = before.with(None, |source| TraceSet::read(source).unwrap().traces);
        let tools = Tools::default();
        let scorer = TraceScorer::new(&tools, &after.metrics);
        let set = after.with(None, |source| ScoredSet::read(source, &scorer, Keep::Calls).unwrap());
        report_against(after, traces::Kept::Traces(set), Some(before)).warnings.join("; ")
    };
    let found = compared(&run("t", "old"), &run("t", "new"));
    assert!(found.contains("1 of 1 traces make the same calls"), "{found}");
    // Several runs of each are compared in their order.
    let runs = |model: &str, numbers: [u32; 2]| {
        let line = |number: u32| {
            format!(
                r#"{{"id":"t","run":{number},"model":"{model}","calls":[{{"name":"add","arguments":{{}}}}],"expect":{{"calls":["add"]}}}}"#
            )
        };
        let text = numbers.map(line).join("\n");
        TraceFile { format: TraceFormat::Native, ..TraceFile::new(text) }
    };
    let found = compared(&runs("old", [1, 2]), &runs("new", [1, 2]));
    assert!(found.contains("2 of 2 traces make the same calls"), "{found}");
    let found = compared(&run("other", "old"), &run("t", "new"));
    assert!(found.contains("no task is in both"), "{found}");
}

#[test]
fn failed_runs_are_held_to_the_allowance_in_both_ways() {
    let failed = r#"{"id":"f","calls":[],"failed":{"class":"endpoint","message":"dead"}}"#;
    let made = r#"{"id":"a","calls":[],"output":"5","expect":{"answer":{"number":5}}}"#;
    let mut file = TraceFile::new([failed, made].join("\n"));
    file.format = TraceFormat::Native;
    let set = file.with(None, |source| TraceSet::read(source).unwrap());
    let means = file.with(None, |source| {
        streaming::score(source, &Tools::default(), None, &mut |_| {}).unwrap()
    });
    for stats in [&set.stats, &means.stats] {
        assert!(stats.failures.check(stats.runs, 0.5).is_ok());
        let error = stats.failures.check(stats.runs, 0.0).unwrap_err();
        assert!(error.is_not_measured());
        assert!(error.to_string().contains("f: endpoint: dead"), "{error}");
    }
    assert_eq!((set.stats.runs, means.traces), (2, 1));
}

#[test]
fn of_very_many_traces_the_calls_of_those_that_failed_are_shown() {
    const ALL: usize = 10_100;
    let mut lines = String::new();
    for n in 0..ALL {
        let passed = n % 3 > 0;
        writeln!(lines, r#"{{"id":"t{n:05}","calls":[{{"name":"a"}}],"passed":{passed}}}"#)
            .unwrap();
    }
    let mut file = TraceFile::new(&lines);
    file.format = TraceFormat::Native;
    file.metrics = Vec::new();
    let report = full_report(&file, None);
    assert_eq!(report.items.len(), ALL);
    for item in &report.items {
        let failed = item.metrics["task.success"] == Some(0.0);
        assert_eq!(item.observed.is_some(), failed, "{}", item.id);
        assert!(item.metrics.values().all(Option::is_some), "{:?}", item.metrics);
    }
    let success = report.metric("task.success").unwrap();
    assert_eq!((success.n, success.count.map(|count| count.hits)), (ALL as u64, Some(6733)));
    let exact = report.metric("calls.exact").unwrap();
    assert_eq!(exact.undefined.as_deref(), Some("no calls are expected or ruled out"));
    let shown = "calls are shown for 3367 of 10100 traces";
    assert!(report.warnings.iter().any(|warning| warning.contains(shown)), "{:?}", report.warnings);
}

//! Trace files as they come: compressed, damaged, empty, huge, with ids that come twice.

// Helpers of tests are tests too: a panic is a failure with the data that explains it.
use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::PathBuf;

use karat_agent::{AgentError, CallMetric, Format, Options, Summary, score_file};
use karat_io::input::InputError;
use karat_metrics::calls::Kind;
use karat_metrics::calls::json::Problem;
use tempfile::TempDir;

/// What one run handed out: line, id and scores of each item.
type Items = Vec<(u64, Option<String>, Vec<f64>)>;

struct TraceFile {
    _directory: TempDir,
    path: PathBuf,
    options: Options,
}

impl TraceFile {
    fn new(content: impl AsRef<[u8]>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("traces.jsonl");
        std::fs::write(&path, content).unwrap();
        let metrics = vec![CallMetric::RagasAccuracy, CallMetric::RagasF1, CallMetric::Alignment];
        TraceFile { _directory: directory, path, options: Options::new(metrics) }
    }

    fn score(&self) -> (Result<Summary, AgentError>, Items) {
        let mut items = Items::new();
        let summary = score_file(&self.path, Format::Ragas, &self.options, &mut |item| {
            let scores = item.scores.iter().map(|score| score.score).collect();
            items.push((item.line, item.id.map(ToOwned::to_owned), scores));
            ControlFlow::Continue(())
        });
        (summary, items)
    }

    fn error(&self) -> AgentError {
        self.score().0.unwrap_err()
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
fn items_come_in_the_order_of_the_file_with_their_lines() {
    let content = format!(
        "\u{feff}{}\n\n  \r\n{}\r\n{}",
        sample(Some("a"), 3),
        sample(None, 0),
        sample(Some("b"), 1)
    );
    let (summary, items) = TraceFile::new(content).score();
    let summary = summary.unwrap();
    let third = 1.0 / 3.0;
    let expected = vec![
        (1, Some("a".to_owned()), vec![1.0, 1.0, 1.0]),
        (4, None, vec![0.0, 0.0, 0.5]),
        (5, Some("b".to_owned()), vec![third, 0.3333, (1.0 + 0.5 + 0.5) / 3.0]),
    ];
    assert_eq!(items, expected);
    assert_eq!(summary.items, 3);
    let means: Vec<(&str, f64)> = summary.metrics.iter().map(|m| (&*m.id, m.mean)).collect();
    assert_eq!(means[0], ("ragas.tool_call_accuracy", (1.0 + third) / 3.0));
    assert!(summary.metrics.iter().all(|metric| metric.n == 3 && metric.succeeded.is_none()));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut file = TraceFile::new(many(5000));
    file.options.threads = NonZero::new(1);
    let (alone, alone_items) = file.score();
    assert_eq!(alone_items.len(), 5000);
    for threads in [2, 3, 8] {
        file.options.threads = NonZero::new(threads);
        let (summary, items) = file.score();
        assert!(items == alone_items, "{threads} threads");
        assert_eq!(summary.unwrap(), *alone.as_ref().unwrap(), "{threads} threads");
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
        file.options.threads = NonZero::new(threads);
        let (summary, items) = file.score();
        assert!(matches!(summary, Err(AgentError::BrokenJson { line: 4000, .. })), "{summary:?}");
        assert_eq!(items.len(), 3999);
    }
}

#[test]
fn compressed_files_are_known_by_their_first_bytes() {
    let plain = many(3000);
    let (expected, expected_items) = TraceFile::new(&plain).score();
    // Two gzip members one after the other are one file.
    let (head, tail) = plain.as_bytes().split_at(plain.len() / 2);
    let gzipped = [gzip(head), gzip(tail)].concat();
    let zstd = zstd::encode_all(plain.as_bytes(), 1).unwrap();
    for compressed in [gzipped, zstd] {
        let (summary, items) = TraceFile::new(compressed).score();
        assert_eq!(summary.unwrap(), *expected.as_ref().unwrap());
        assert!(items == expected_items);
    }
}

#[test]
fn a_truncated_compressed_file_is_an_error_behind_its_last_whole_line() {
    let plain = many(4000);
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() * 3 / 4].to_vec();
    let gzipped = (cut(gzip(plain.as_bytes())), "gzip");
    let zstd = (cut(zstd::encode_all(plain.as_bytes(), 1).unwrap()), "zstd");
    for (content, expected) in [gzipped, zstd] {
        let (summary, items) = TraceFile::new(content).score();
        match summary.unwrap_err() {
            AgentError::Input(InputError::Compression { line, format, .. }) => {
                assert_eq!(format, expected);
                assert_eq!(line, Some(items.len() as u64 + 1));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_file_without_samples_is_not_a_pass() {
    for content in [Vec::new(), b"\n \n".to_vec(), "\u{feff}".into(), gzip(b"")] {
        let error = TraceFile::new(content).error();
        assert!(matches!(error, AgentError::NothingToScore { .. }), "{error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_said_to_be_so() {
    let mut file = TraceFile::new("");
    file.path.set_extension("gone");
    assert!(matches!(file.error(), AgentError::Input(InputError::NotFound { .. })));
}

#[test]
fn asking_for_no_metric_is_an_error() {
    let mut file = TraceFile::new(sample(None, 3));
    file.options.metrics.clear();
    assert!(matches!(file.error(), AgentError::NoMetrics));
}

#[test]
fn what_is_wrong_with_a_line_is_said_with_file_and_line() {
    let second = |line: &[u8]| {
        let mut content = sample(None, 3).into_bytes();
        content.push(b'\n');
        content.extend_from_slice(line);
        TraceFile::new(content).error()
    };
    let broken = second(b"{\"user_input\":[");
    assert!(
        matches!(&broken, AgentError::BrokenJson { line: 2, source, .. }
        if source.problem == Problem::UnexpectedEnd && source.offset == 15),
        "{broken}"
    );
    assert!(
        broken.to_string().ends_with("traces.jsonl:2: the text ends inside a value at byte 15")
    );

    let missing = second(br#"{"user_input":[]}"#);
    assert!(
        matches!(&missing, AgentError::MissingField { line: 2, field, .. }
        if field == "reference_tool_calls"),
        "{missing}"
    );

    let wrong = second(br#"{"user_input":[{"type":"ai","tool_calls":[{"name":3}]}]}"#);
    assert!(
        matches!(&wrong, AgentError::WrongType { line: 2, field, expected: Kind::String, found: Kind::Number, .. }
        if field == "user_input[0].tool_calls[0].name"),
        "{wrong}"
    );

    let sample = second(b"7");
    assert!(
        sample.to_string().ends_with(":2: the sample should be an object, not a number"),
        "{sample}"
    );

    let unknown = second(br#"{"user_input":[{"type":"system"}]}"#);
    assert!(
        matches!(&unknown, AgentError::UnknownValue { line: 2, value, .. } if value == "system")
    );

    let not_utf8 = second(b"{\"user_input\":\"\xff\"}");
    assert!(
        matches!(not_utf8, AgentError::Input(InputError::NotUtf8 { line: 2, column: 16, .. })),
        "{not_utf8}"
    );

    let trailing = second(br#"{"user_input":[],"reference_tool_calls":[]} {}"#);
    assert!(
        matches!(&trailing, AgentError::BrokenJson { line: 2, source, .. }
        if source.problem == Problem::TrailingText),
        "{trailing}"
    );
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"user_input":[],"reference_tool_calls":[],"other":{value}}}"#)
    };
    let mut file = TraceFile::new(nested(9));
    file.options.depth_limit = 10;
    assert_eq!(file.score().0.unwrap().items, 1);
    file.options.depth_limit = 9;
    let error = file.error();
    assert!(
        matches!(&error, AgentError::BrokenJson { line: 1, source, .. }
        if source.problem == Problem::TooDeep { limit: 9 }),
        "{error}"
    );
}

#[test]
fn lines_have_a_limit_whether_they_end_or_not() {
    let long = sample(Some("long"), 3);
    let short = r#"{"user_input":[],"reference_tool_calls":[]}"#;
    let mut file = TraceFile::new(format!("{short}\n{long}\n{short}"));
    file.options.line_limit = long.len();
    assert_eq!(file.score().0.unwrap().items, 3);
    file.options.line_limit = long.len() - 1;
    let (summary, items) = file.score();
    assert!(
        matches!(summary, Err(AgentError::Input(InputError::LineTooLong { line: 2, .. }))),
        "{summary:?}"
    );
    assert_eq!(items.len(), 1);

    let mut endless = TraceFile::new(format!("{short}\n{}", " ".repeat(1 << 20)));
    endless.options.line_limit = 1 << 19;
    let error = endless.error();
    assert!(matches!(error, AgentError::Input(InputError::LineTooLong { line: 2, .. })), "{error}");
}

#[test]
fn an_id_that_comes_twice_is_an_error_that_names_both_lines() {
    let ids = ["a", "b", "c", "b"].map(|id| sample(Some(id), 3));
    let mut file = TraceFile::new(format!("{}\n\n{}", ids[..2].join("\n"), ids[2..].join("\n")));
    let (summary, items) = file.score();
    match summary.unwrap_err() {
        AgentError::DuplicateId { line, first_line, id, .. } => {
            assert_eq!((line, first_line, &*id), (5, 2, "b"));
        }
        other => panic!("{other}"),
    }
    assert_eq!(items.len(), 3);

    file.options.remembered_ids = 1;
    let summary = file.score().0.unwrap();
    assert_eq!((summary.items, summary.unremembered_ids), (4, 3));
}

#[test]
fn samples_without_ids_may_be_the_same() {
    let twice = TraceFile::new([sample(None, 3), sample(None, 3)].join("\n"));
    assert_eq!(twice.score().0.unwrap().items, 2);
}

#[test]
fn the_callback_can_end_the_run() {
    let file = TraceFile::new(many(4000));
    let mut seen = 0;
    let summary = score_file(&file.path, Format::Ragas, &file.options, &mut |_| {
        seen += 1;
        if seen == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let summary = summary.unwrap();
    assert_eq!((summary.items, summary.stopped, seen), (10, true, 10));
}

#[test]
fn thresholds_and_warnings_are_counted() {
    let empty = r#"{"user_input":[],"reference_tool_calls":[]}"#;
    let none = r#"{"user_input":[],"reference_tool_calls":[{"name":"a","args":{}}]}"#;
    let mut file = TraceFile::new([&sample(None, 3), empty, none, none].join("\n"));
    file.options.metrics.push("deepeval.tool_correctness".parse().unwrap());
    let summary = file.score().0.unwrap();
    assert_eq!(summary.warnings.no_predicted_calls, 2);
    assert_eq!(summary.warnings.length_mismatch, 0);
    assert_eq!(summary.metrics[3].succeeded, Some(2));
}

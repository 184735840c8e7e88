//! Tables in and out of the command line.

use crate::common::{BM25, GOLDEN, Scratch};

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_how_to_get_it() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.write("table", b"PAR1 and more");
    scratch.write("traces.jsonl", "{\"id\": \"a\", \"calls\": []}\n");
    for arguments in [
        &["agent", "score", "table"][..],
        &["agent", "score", "traces.jsonl", "--parquet", "tables"],
        &["retrieval", "score", "--rankings", "table"],
        &["detection", "score", "--verdicts", "table"],
    ] {
        scratch
            .karat(arguments)
            .expect(2)
            .says(&["does not support Parquet", "--features parquet"]);
    }
    scratch.karat(&["check", "-o", "one.json"]).expect(0);
    scratch.karat(&["history", "add", "one.json"]).expect(0);
    let ran = scratch.karat(&["history", "export", "--parquet", "metrics.parquet"]);
    ran.expect(2).says(&["does not support Parquet"]);
}

#[cfg(feature = "parquet")]
mod tables {
    use std::path::Path;
    use std::sync::Arc;

    use karat_arrow::arrow_array::builder::{ListBuilder, StringBuilder};
    use karat_arrow::arrow_array::cast::AsArray as _;
    use karat_arrow::arrow_array::types::{Float64Type, Int64Type};
    use karat_arrow::arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch, StringArray};
    use karat_arrow::files::{self, Writer};
    use serde_json::{Value, json};

    use super::*;

    fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = Writer::create(path, batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn lists(values: &[&[&str]]) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for list in values {
            list.iter().for_each(|text| lists.values().append_value(text));
            lists.append(true);
        }
        Arc::new(lists.finish())
    }

    fn read(path: &Path) -> RecordBatch {
        let mut batches = files::read(path).unwrap();
        let batch = batches.next().unwrap().unwrap();
        assert!(batches.next().is_none());
        batch
    }

    fn metrics(report: &Value) -> Vec<(&str, Option<f64>, u64)> {
        let all = report["metrics"].as_array().unwrap().iter();
        let one = |metric: &Value| metric["value"].as_f64();
        all.map(|metric| {
            (metric["id"].as_str().unwrap(), one(metric), metric["n"].as_u64().unwrap())
        })
        .collect()
    }

    fn traces() -> Vec<String> {
        let trace = |number: usize| {
            let made = ["search", "open", "search"][number % 3];
            let call = json!({"name": made, "arguments": {"q": number % 4}});
            let expected = json!({"name": "search", "arguments": {"q": number % 5}});
            json!({
                "id": format!("t{number}"),
                "calls": [call],
                "expect": {"calls": [expected]},
                "usage": {"duration_ms": 10.1 * number as f64, "cost": 0.1},
            })
            .to_string()
        };
        (0..60).map(trace).collect()
    }

    #[test]
    fn a_table_of_traces_scores_as_the_lines_do() {
        let scratch = Scratch::new();
        let lines = traces();
        scratch.write("traces.jsonl", lines.join("\n"));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        // Recognized by its content.
        write(&scratch.path("traces.bin"), vec![("trace", texts(&lines))]);
        let full = scratch.karat(&["agent", "score", "traces.jsonl", "--json"]).expect(0).json();
        let arguments = ["agent", "score", "traces.bin", "--parquet", "tables", "--json"];
        let table = scratch.karat(&arguments).expect(0).json();
        let (full, table) = (&full["reports"][0], &table["reports"][0]);
        let all = metrics(full);
        for metric in metrics(table) {
            assert!(all.contains(&metric), "{metric:?}");
        }
        assert!(metrics(table).iter().filter(|(_, value, _)| value.is_some()).count() > 10);
        let items = read(&scratch.path("tables/items.parquet"));
        assert_eq!(items.num_rows(), 60);
        let exact = items.column_by_name("calls.exact").unwrap().as_primitive::<Float64Type>();
        let by_id = |id: &str| {
            let items = full["items"].as_array().unwrap();
            let item = items.iter().find(|item| item["id"] == id).unwrap();
            item["metrics"]["calls.exact"].as_f64().unwrap()
        };
        let ids = items.column_by_name("id").unwrap().as_string::<i32>();
        for row in 0..60 {
            assert_eq!(exact.value(row), by_id(ids.value(row)));
        }
        let means = scratch.karat(&["agent", "score", "traces.bin", "--means"]).expect(0);
        assert!(means.stdout.starts_with("60 traces\n"), "{}", means.stdout);
        let gate = ["agent", "score", "traces.bin", "--min", "calls.exact=0.9"];
        scratch.karat(&gate).expect(1);
    }

    #[test]
    fn flags_that_need_every_trace_are_refused() {
        let scratch = Scratch::new();
        write(&scratch.path("t.parquet"), vec![("trace", texts(&[&traces()[0]]))]);
        scratch.write("t.jsonl", &traces()[0]);
        let refused = ["agent", "score", "t.parquet", "--before", "t.jsonl"];
        scratch.karat(&refused).expect(2).says(&["--before cannot be used with Parquet"]);
        scratch
            .karat(&["agent", "score", "t.parquet", "--per-item"])
            .expect(2)
            .says(&["--parquet"]);
        let mixed = ["agent", "score", "t.parquet", "t.jsonl"];
        scratch.karat(&mixed).expect(2).says(&["t.parquet is Parquet and t.jsonl is not"]);
        write(&scratch.path("bad.parquet"), vec![("id", texts(&["a"]))]);
        let ran = scratch.karat(&["agent", "score", "bad.parquet"]);
        ran.expect(2).says(&["bad.parquet", "column `calls` is missing"]);
    }

    #[test]
    fn tables_of_rankings_and_verdicts_are_scored() {
        let scratch = Scratch::new();
        let found: &[&[&str]] = &[&["a", "b"], &["c", "a"]];
        let right: &[&[&str]] = &[&["b"], &["c"]];
        let columns =
            vec![("id", texts(&["q", "r"])), ("ranked", lists(found)), ("relevant", lists(right))];
        write(&scratch.path("r.parquet"), columns);
        let arguments =
            ["retrieval", "score", "--rankings", "r.parquet", "--parquet", "out", "--json"];
        let report = scratch.karat(&arguments).expect(0).json();
        assert!(metrics(&report).contains(&("mrr", Some(0.75), 2)));
        let table = read(&scratch.path("out/metrics.parquet"));
        let ids = table.column_by_name("metric").unwrap().as_string::<i32>();
        let values = table.column_by_name("value").unwrap().as_primitive::<Float64Type>();
        let row = (0..ids.len()).find(|row| ids.value(*row) == "mrr").unwrap();
        assert_eq!(values.value(row), 0.75);
        let refused =
            ["retrieval", "score", "--rankings", "r.parquet", "--dataset", "bundled:tools/v1"];
        scratch.karat(&refused).expect(2).says(&["--dataset cannot be used with Parquet"]);

        let columns = vec![
            ("id", texts(&["a", "b", "c"])),
            ("label", texts(&["malicious", "benign", "benign"])),
            ("verdict", Arc::new(BooleanArray::from(vec![true, true, false])) as ArrayRef),
        ];
        write(&scratch.path("v.parquet"), columns);
        let arguments = ["detection", "score", "--verdicts", "v.parquet", "--json"];
        let report = scratch.karat(&arguments).expect(0).json();
        assert!(metrics(&report).contains(&("fpr", Some(0.5), 2)));
        assert!(metrics(&report).contains(&("precision", Some(0.5), 2)));
    }

    #[test]
    fn any_report_becomes_tables() {
        let scratch = Scratch::new();
        scratch.write("traces.jsonl", traces().join("\n"));
        let arguments = ["agent", "score", "traces.jsonl", "--parquet", "tables", "--json"];
        let report = scratch.karat(&arguments).expect(0).json();
        let items = read(&scratch.path("tables/items.parquet"));
        let observations = read(&scratch.path("tables/observations.parquet"));
        assert_eq!((items.num_rows(), observations.num_rows()), (60, 60));
        let observed = observations.column_by_name("observed").unwrap().as_string::<i32>();
        let first: Value = serde_json::from_str(observed.value(0)).unwrap();
        assert_eq!(first, report["reports"][0]["items"][0]["observed"]);
    }

    #[test]
    fn a_history_becomes_a_table() {
        let scratch = Scratch::new();
        scratch.project(GOLDEN, "", BM25);
        for name in ["one.json", "two.json"] {
            scratch.karat(&["check", "-o", name]).expect(0);
        }
        scratch.karat(&["history", "add", "one.json"]).expect(0);
        let ran = scratch.karat(&["history", "export", "--parquet", "metrics.parquet"]).expect(0);
        assert!(ran.stdout.contains("metrics of 1 run"), "{}", ran.stdout);
        let table = read(&scratch.path("metrics.parquet"));
        let runs = table.column_by_name("run").unwrap().as_primitive::<Int64Type>();
        assert_eq!(runs.value(0), 1);
        assert!(table.num_rows() > 12);
        let export = ["history", "export", "9", "--parquet", "m.parquet"];
        scratch.karat(&export).expect(2).says(&["no run 9"]);
    }
}

//! Parquet that was written is read back as it was.

use std::path::Path;

use karat_arrow::arrow_array::cast::AsArray as _;
use karat_arrow::arrow_array::types::{Float64Type, Int64Type};
use karat_arrow::arrow_array::{Array as _, RecordBatch};
use karat_arrow::files::{self, MetricsWriter, RunColumns, Writer};
use karat_arrow::{Error, Kind, Options, Partial, Scorer};

use crate::tables::{self, RankingRow, partial, text};

fn rows(count: usize) -> RecordBatch {
    let row = |number: usize| RankingRow {
        id: format!("q{number}"),
        group: (!number.is_multiple_of(3)).then(|| format!("g{}", number % 5)),
        ranked: (0..6).map(|place| format!("t{}", (number * 7 + place) % 40)).collect(),
        relevant: vec![(format!("t{}", number % 40), 1), ("t1".to_owned() + "x", 2)],
    };
    tables::rankings(&(0..count).map(row).collect::<Vec<_>>())
}

fn write(path: &Path, batch: &RecordBatch) {
    let mut writer = Writer::create(path, batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn read(path: &Path) -> Vec<RecordBatch> {
    files::read(path).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_file_is_scored_as_its_rows_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rankings.parquet");
    // More than one batch of the reader.
    let batch = rows(20_000);
    write(&path, &batch);
    let options = Options::default();
    let scorer = Scorer::new(Kind::Rankings, options.clone()).unwrap();
    let mut sums = Partial::new(Kind::Rankings, &options).unwrap();
    let items = folder.path().join("items.parquet");
    let mut writer = Writer::create(&items, scorer.schema()).unwrap();
    files::score(&[path], &scorer, &mut sums, &mut |batch| writer.write(batch)).unwrap();
    writer.finish().unwrap();
    let whole = partial(Kind::Rankings, &options, &batch).report().unwrap();
    assert_eq!(text(&sums.report().unwrap()), text(&whole));
    let scored = scorer.score(&batch).unwrap();
    let mut first = 0;
    for batch in read(&items) {
        assert_eq!(batch, scored.slice(first, batch.num_rows()));
        first += batch.num_rows();
    }
    assert_eq!(first, 20_000);
}

#[test]
fn a_mistake_has_its_file_and_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    let twice = RankingRow {
        id: "twice".into(),
        ranked: vec!["a".into(), "a".into()],
        relevant: vec![("a".into(), 1)],
        ..RankingRow::default()
    };
    let mut all = vec![RankingRow { ranked: vec!["a".into()], ..twice.clone() }; 9_000];
    all.push(twice);
    write(&path, &tables::rankings(&all));
    let options = Options::default();
    let scorer = Scorer::new(Kind::Rankings, options.clone()).unwrap();
    let mut sums = Partial::new(Kind::Rankings, &options).unwrap();
    let mut score = |path: &Path| {
        let files = [path.to_owned()];
        files::score(&files, &scorer, &mut sums, &mut |_| Ok(())).unwrap_err().to_string()
    };
    let error = score(&path);
    assert!(error.contains("r.parquet: row 9000 (id \"twice\"): `a` is listed twice"), "{error}");
    let broken = folder.path().join("b.parquet");
    std::fs::write(&broken, b"PAR1 and nothing else").unwrap();
    assert!(score(&broken).contains("b.parquet: cannot be read as Parquet"));
    std::fs::write(&broken, &std::fs::read(&path).unwrap()[..400]).unwrap();
    assert!(score(&broken).contains("b.parquet: cannot be read as Parquet"));
}

#[test]
fn the_metrics_of_a_report_are_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let report = partial(Kind::Rankings, &Options::default(), &rows(50)).report().unwrap();
    let path = folder.path().join("metrics.parquet");
    let mut writer = MetricsWriter::create(&path).unwrap();
    let run = RunColumns { run: Some(3), started: Some("2026-11-17"), ..RunColumns::default() };
    writer.add(run, &report).unwrap();
    writer.finish().unwrap();
    let table = read(&path).remove(0);
    let ids = table.column_by_name("metric").unwrap().as_string::<i32>();
    let values = table.column_by_name("value").unwrap().as_primitive::<Float64Type>();
    let counts = table.column_by_name("n").unwrap().as_primitive::<Int64Type>();
    assert_eq!(table.num_rows(), report.metrics.len());
    for (row, metric) in report.metrics.iter().enumerate() {
        assert_eq!(ids.value(row), metric.id.as_str());
        let value = (!values.is_null(row)).then(|| values.value(row));
        assert_eq!(value, metric.value);
        assert_eq!(u64::try_from(counts.value(row)).unwrap(), metric.n);
    }
    assert_eq!(table.column_by_name("run").unwrap().as_primitive::<Int64Type>().value(0), 3);
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let path = folder.path().join("file/metrics.parquet");
    let Err(Error::File(message)) = MetricsWriter::create(&path) else { panic!() };
    assert!(message.contains("metrics.parquet: cannot be written"), "{message}");
}

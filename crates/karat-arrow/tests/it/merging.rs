//! Any division of the rows, merged in any order, gives the report of one pass.

use karat_arrow::arrow_array::RecordBatch;
use karat_arrow::{Kind, Options, Partial, Scorer};
use karat_core::partition::Partition;
use proptest::prelude::*;

use crate::tables::{self, RankingRow, TraceRow, VerdictRow, partial, text};

/// A division of rows: the part of each row, and the order in which parts are merged.
#[derive(Clone, Debug)]
struct Division {
    parts: Vec<usize>,
    order: Vec<usize>,
}

fn divisions() -> impl Strategy<Value = Division> {
    let parts = prop::collection::vec(0..5usize, 0..60);
    let order = Just((0..5).collect::<Vec<usize>>()).prop_shuffle();
    (parts, order).prop_map(|(parts, order)| Division { parts, order })
}

fn group() -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.8, (0..6u8).prop_map(|group| format!("server-{group}")))
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "g"]).prop_map(str::to_owned)
}

fn calls() -> impl Strategy<Value = Vec<tables::Call>> {
    let arguments = prop::sample::select(vec!["{}", r#"{"x":1}"#, r#"{"x":2,"y":"z"}"#, "{"]);
    let call = (word(), arguments).prop_map(|(name, text)| (name, Some(text.to_owned()), None));
    prop::collection::vec(call, 0..4)
}

fn trace() -> impl Strategy<Value = TraceRow> {
    let settings = prop::sample::select(vec![None, Some("distractors"), Some("without_tools")]);
    let expected = prop::option::of(calls().prop_map(|mut calls| {
        calls.retain(|(_, text, _)| text.as_deref() != Some("{"));
        calls
    }));
    let failed = prop::option::weighted(0.1, Just("endpoint".to_owned()));
    (group(), settings, calls(), expected, prop::option::of(0.0..1e6f64), failed).prop_map(
        |(group, setting, calls, expected, duration_ms, failed)| TraceRow {
            group,
            setting: setting.map(str::to_owned),
            calls,
            expected,
            duration_ms,
            failed,
            ..TraceRow::default()
        },
    )
}

fn ranking() -> impl Strategy<Value = RankingRow> {
    let relevant = prop::collection::btree_map(word(), 0..3i64, 0..5);
    (group(), prop::collection::btree_set(word(), 0..7), relevant, 0..7usize).prop_map(
        |(group, ranked, relevant, turn)| {
            let mut ranked: Vec<String> = ranked.into_iter().collect();
            let turn = turn % ranked.len().max(1);
            ranked.rotate_left(turn);
            let relevant = relevant.into_iter().collect();
            RankingRow { group, ranked, relevant, ..RankingRow::default() }
        },
    )
}

fn verdict() -> impl Strategy<Value = VerdictRow> {
    let verdicts =
        prop::sample::select(vec![Some("flag"), Some("pass"), Some("unsupported"), None]);
    let labels = prop::sample::select(vec!["malicious", "benign"]);
    let categories = prop::option::of(Just("hard_negative".to_owned()));
    (group(), labels, categories, verdicts, prop::option::weighted(0.9, 0..20u8)).prop_map(
        |(group, label, category, verdict, score)| VerdictRow {
            group,
            label: label.to_owned(),
            category,
            verdict: verdict.map(str::to_owned),
            score: score.map(|score| f64::from(score) / 19.0),
            ..VerdictRow::default()
        },
    )
}

fn options() -> Options {
    Options { max_errors: 0.9, ..Options::default() }
}

/// Compares one pass with a division, merged in its order, one part with the next and by way of bytes.
fn check(kind: Kind, batch: &RecordBatch, division: &Division) -> Result<(), TestCaseError> {
    let whole = partial(kind, &options(), batch);
    let mut parts = Vec::new();
    for part in &division.order {
        let mut sums = Partial::new(kind, &options()).unwrap();
        let scorer = Scorer::new(kind, options()).unwrap();
        for row in 0..batch.num_rows() {
            if division.parts[row] == *part {
                sums.add(&scorer.score(&batch.slice(row, 1)).unwrap()).unwrap();
            }
        }
        parts.push(sums);
    }
    // ((a + b) + c) + … and a + (b + (c + …)), the second by way of bytes.
    let mut left = Partial::new(kind, &options()).unwrap();
    parts.iter().for_each(|part| left.merge(part.clone()).unwrap());
    let mut right = Partial::new(kind, &options()).unwrap();
    for part in parts.iter().rev() {
        let mut part = Partial::from_bytes(&part.to_bytes()).unwrap();
        part.merge(right).unwrap();
        right = part;
    }
    prop_assert_eq!(left.to_bytes(), whole.to_bytes());
    prop_assert_eq!(right.to_bytes(), whole.to_bytes());
    let reports = [whole, left, right].map(|partial| match partial.report() {
        Ok(report) => text(&report),
        Err(error) => error.to_string(),
    });
    prop_assert_eq!(&reports[0], &reports[1]);
    prop_assert_eq!(&reports[0], &reports[2]);
    Ok(())
}

/// Ids for rows that have none.
fn id(row: usize) -> String {
    format!("row-{row}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn traces(
        (division, rows) in divisions().prop_flat_map(|division| {
            let rows = prop::collection::vec(trace(), division.parts.len());
            (Just(division), rows)
        })
    ) {
        let rows: Vec<_> =
            rows.into_iter().enumerate().map(|(n, row)| TraceRow { id: id(n), ..row }).collect();
        check(Kind::Traces, &tables::traces(&rows), &division)?;
    }

    #[test]
    fn rankings(
        (division, rows) in divisions().prop_flat_map(|division| {
            let rows = prop::collection::vec(ranking(), division.parts.len());
            (Just(division), rows)
        })
    ) {
        let rows: Vec<_> =
            rows.into_iter().enumerate().map(|(n, row)| RankingRow { id: id(n), ..row }).collect();
        check(Kind::Rankings, &tables::rankings(&rows), &division)?;
    }

    #[test]
    fn verdicts(
        (division, rows) in divisions().prop_flat_map(|division| {
            let rows = prop::collection::vec(verdict(), division.parts.len());
            (Just(division), rows)
        })
    ) {
        let rows: Vec<_> =
            rows.into_iter().enumerate().map(|(n, row)| VerdictRow { id: id(n), ..row }).collect();
        check(Kind::Verdicts, &tables::verdicts(&rows), &division)?;
    }
}

fn ranking_rows(rows: usize, groups: usize) -> RecordBatch {
    let row = |number: usize| RankingRow {
        id: id(number),
        group: Some(format!("group-{}", number % groups)),
        ranked: (0..5).map(|place| format!("tool-{}", (number + place) % 11)).collect(),
        relevant: vec![(format!("tool-{}", number % 7), 1)],
    };
    tables::rankings(&(0..rows).map(row).collect::<Vec<_>>())
}

#[test]
fn a_partial_result_grows_with_its_groups_and_not_with_its_rows() {
    let size = |rows, groups| {
        partial(Kind::Rankings, &Options::default(), &ranking_rows(rows, groups)).to_bytes().len()
    };
    let (few, many) = (size(1_000, 50), size(20_000, 50));
    // Only the digits of the sums grow.
    assert!(many < few + few / 2, "{few} bytes for 1,000 rows, {many} for 20,000");
    assert!(size(1_000, 500) > 5 * few);
}

#[test]
fn a_hundred_partial_results_are_the_rows_of_one() {
    let batch = ranking_rows(10_000, 100);
    let whole = partial(Kind::Rankings, &Options::default(), &batch);
    let mut merged = Partial::new(Kind::Rankings, &Options::default()).unwrap();
    for worker in 0..100 {
        let part = partial(Kind::Rankings, &Options::default(), &batch.slice(worker * 100, 100));
        merged.merge(Partial::from_bytes(&part.to_bytes()).unwrap()).unwrap();
    }
    assert_eq!(merged.rows(), 10_000);
    assert_eq!(merged.to_bytes(), whole.to_bytes());
    assert_eq!(text(&merged.report().unwrap()), text(&whole.report().unwrap()));
}

#[test]
fn parts_by_id_give_the_report_of_all_rows() {
    let rows: Vec<RankingRow> = (0..200)
        .map(|number| RankingRow {
            id: id(number),
            ranked: vec!["a".into(), "b".into()],
            relevant: vec![(if number % 3 == 0 { "a" } else { "b" }.into(), 1)],
            ..RankingRow::default()
        })
        .collect();
    let options = Options::default();
    let whole = partial(Kind::Rankings, &options, &tables::rankings(&rows));
    let scorer = Scorer::new(Kind::Rankings, options.clone()).unwrap();
    let mut merged: Option<Partial> = None;
    for part in (1..=4).rev() {
        let part: Partition = format!("hash:{part}/4").parse().unwrap();
        let own: Vec<_> = rows.iter().filter(|row| part.holds(&row.id)).cloned().collect();
        let mut sums = Partial::of_part(Kind::Rankings, &options, part).unwrap();
        sums.add(&scorer.score(&tables::rankings(&own)).unwrap()).unwrap();
        match &mut merged {
            None => merged = Some(sums),
            Some(merged) => merged.merge(sums).unwrap(),
        }
    }
    let merged = merged.unwrap();
    assert_eq!(text(&merged.report().unwrap()), text(&whole.report().unwrap()));
}

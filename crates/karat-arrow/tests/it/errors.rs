//! Wrong input has one clear error each.

use std::sync::Arc;

use karat_arrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use karat_arrow::arrow_schema::{DataType, Schema};
use karat_arrow::{Error, Kind, Options, Partial, SCHEMA_KEY, Scorer, input_schema};
use karat_core::error::EvalError;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::tables::{self, RankingRow, TraceRow, VerdictRow, partial};

fn scorer(kind: Kind) -> Scorer {
    Scorer::new(kind, Options::default()).unwrap()
}

fn message(kind: Kind, batch: &RecordBatch) -> String {
    scorer(kind).score(batch).unwrap_err().to_string()
}

fn ranking(id: &str) -> RankingRow {
    RankingRow {
        id: id.to_owned(),
        ranked: vec!["a".into(), "b".into()],
        relevant: vec![("b".into(), 1)],
        ..RankingRow::default()
    }
}

fn without(batch: &RecordBatch, column: &str) -> RecordBatch {
    let fields = batch.schema().fields().clone();
    let kept: Vec<usize> =
        (0..fields.len()).filter(|place| fields[*place].name() != column).collect();
    batch.project(&kept).unwrap()
}

fn with(batch: &RecordBatch, column: &str, values: ArrayRef) -> RecordBatch {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, own)| {
        let values = if field.name() == column { &values } else { own };
        (field.name().clone(), Arc::clone(values), true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[test]
fn a_missing_column_is_named_with_its_type_and_the_columns_there_are() {
    let batch = without(&tables::rankings(&[ranking("q")]), "ranked");
    let text = message(Kind::Rankings, &batch);
    assert!(text.contains("column `ranked` is missing; rankings need it as list<utf8>"), "{text}");
    assert!(text.contains("id, group, relevant"), "{text}");
    let row = TraceRow { id: "t".into(), ..TraceRow::default() };
    let text = message(Kind::Traces, &without(&tables::traces(&[row]), "calls"));
    assert!(text.contains("column `calls` is missing"), "{text}");
}

#[test]
fn a_column_of_another_type_is_named_with_both_types() {
    let batch = tables::rankings(&[ranking("q")]);
    let wrong = with(&batch, "ranked", Arc::new(Int64Array::from(vec![1])));
    let text = message(Kind::Rankings, &wrong);
    assert!(text.contains("column `ranked` is Int64; it should be list<utf8>"), "{text}");
    let wrong = with(&batch, "id", Arc::new(Int64Array::from(vec![1])));
    let text = message(Kind::Rankings, &wrong);
    assert!(text.contains("column `id` is Int64; it should be text"), "{text}");
    let wrong = with(&batch, "relevant", batch.column_by_name("id").unwrap().clone());
    assert!(message(Kind::Rankings, &wrong).contains("relevant"));
}

#[test]
fn a_null_is_named_with_its_column_and_row() {
    let batch = tables::rankings(&[ranking("q"), ranking("r")]);
    let ids = Arc::new(StringArray::from(vec![Some("q"), None]));
    let text = message(Kind::Rankings, &with(&batch, "id", ids));
    assert!(text.contains("column `id` is null in row 1"), "{text}");
    let row = VerdictRow { id: "v".into(), label: "benign".into(), ..VerdictRow::default() };
    let batch = tables::verdicts(&[row]);
    let labels = Arc::new(StringArray::from(vec![None::<&str>]));
    let text = message(Kind::Verdicts, &with(&batch, "label", labels));
    assert!(text.contains("column `label` is null in row 0"), "{text}");
    let row = TraceRow { id: "t".into(), ..TraceRow::default() };
    let nothing = karat_arrow::arrow_array::new_null_array(&DataType::Null, 1);
    let text = message(Kind::Traces, &with(&tables::traces(&[row]), "calls", nothing));
    assert!(text.contains("column `calls` is null in row 0"), "{text}");
}

#[test]
fn a_batch_of_another_version_is_refused() {
    let batch = tables::rankings(&[ranking("q")]);
    let fields = batch.schema().fields().clone();
    let named = |name: &str| {
        let schema = Schema::new_with_metadata(fields.clone(), [(SCHEMA_KEY, name)]);
        RecordBatch::try_new(Arc::new(schema), batch.columns().to_vec()).unwrap()
    };
    let own = input_schema(Kind::Rankings).metadata().get(SCHEMA_KEY).unwrap().clone();
    assert_eq!(own, "karat.arrow.rankings/1");
    assert!(scorer(Kind::Rankings).score(&named(&own)).is_ok());
    let text = message(Kind::Rankings, &named("karat.arrow.rankings/9"));
    assert!(text.contains("is `karat.arrow.rankings/9`; this version of Karat reads"), "{text}");
    // Rows that were not scored are not sums either.
    let mut partial = Partial::new(Kind::Rankings, &Options::default()).unwrap();
    assert!(matches!(partial.add(&named(&own)), Err(Error::SchemaVersion { .. })));
    assert!(matches!(partial.add(&batch), Err(Error::MissingColumn { .. })));
}

#[test]
fn a_bad_row_is_an_error_or_counted() {
    let twice = RankingRow { ranked: vec!["a".into(), "a".into()], ..ranking("twice") };
    let batch = tables::rankings(&[ranking("q"), twice]);
    let text = message(Kind::Rankings, &batch);
    assert!(text.contains("row 1 of the batch (id \"twice\"): `a` is listed twice"), "{text}");
    let options = Options { max_errors: 0.5, ..Options::default() };
    let report = partial(Kind::Rankings, &options, &batch).report().unwrap();
    let mrr = report.metric("mrr").unwrap();
    assert_eq!((mrr.n, mrr.left_out), (1, 1));
    assert!(report.warnings[0].contains("1 of 2 rows have no score (such as twice"));
    let options = Options { max_errors: 0.4, ..Options::default() };
    let error = partial(Kind::Rankings, &options, &batch).report().unwrap_err();
    assert!(error.to_string().contains("1 of 2 rows have no usable answer, more than the allowed"));
    assert!(EvalError::from(error).is_not_measured());
}

#[test]
fn mistakes_of_traces_and_verdicts_are_those_of_their_row() {
    let call = ("a".to_owned(), Some("nonsense".to_owned()), None);
    let row = TraceRow { id: "t".into(), expected: Some(vec![call]), ..TraceRow::default() };
    let text = message(Kind::Traces, &tables::traces(&[row]));
    assert!(text.contains("expected_calls[0].arguments is not JSON"), "{text}");
    let row = TraceRow { id: "t".into(), setting: Some("x".into()), ..TraceRow::default() };
    assert!(message(Kind::Traces, &tables::traces(&[row])).contains("setting \"x\" should be"));
    let documents = tables::texts([Some("{\"id\": \"a\"}")]);
    let documents = RecordBatch::try_from_iter([("trace", documents)]).unwrap();
    assert!(message(Kind::Traces, &documents).contains("trace: calls: is missing"));
    let row = VerdictRow {
        id: "v".into(),
        label: "benign".into(),
        verdict: Some("maybe".into()),
        ..VerdictRow::default()
    };
    assert!(message(Kind::Verdicts, &tables::verdicts(&[row])).contains("verdict \"maybe\""));
}

#[test]
fn unknown_metrics_and_settings_are_refused() {
    let with = |metrics: &[&str]| Options {
        metrics: metrics.iter().map(|id| (*id).to_owned()).collect(),
        ..Options::default()
    };
    let error = |kind, options: Options| Scorer::new(kind, options).unwrap_err().to_string();
    assert!(error(Kind::Rankings, with(&["recal@5"])).contains("did you mean `recall@5`?"));
    assert!(error(Kind::Traces, with(&["calls.fl"])).contains("is not a metric of traces"));
    assert!(error(Kind::Verdicts, with(&["mrr"])).contains("is not a metric of verdicts"));
    let negative = Options { max_errors: -1.0, ..Options::default() };
    assert!(error(Kind::Traces, negative).contains("max_errors"));
    let options = Options { cutoffs: vec![2, 4], ..with(&["recall@k", "mrr", "recall@2"]) };
    let schema = Scorer::new(Kind::Rankings, options).unwrap().schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names[4..], ["recall@2", "recall@4", "mrr"]);
    assert!(serde_json::from_str::<Options>(r#"{"metricz": []}"#).is_err());
    assert_eq!(serde_json::from_str::<Options>("{}").unwrap(), Options::default());
}

#[test]
fn too_many_groups_and_scores_have_a_limit() {
    let row = |n: usize| RankingRow { group: Some(format!("g{n}")), ..ranking(&format!("q{n}")) };
    let rows: Vec<_> = (0..4).map(row).collect();
    let options = Options { max_groups: 3, ..Options::default() };
    let scored = scorer(Kind::Rankings).score(&tables::rankings(&rows)).unwrap();
    let mut sums = Partial::new(Kind::Rankings, &options).unwrap();
    let error = sums.add(&scored).unwrap_err().to_string();
    assert!(error.contains("more than 3 groups"), "{error}");

    let row = |n: usize| VerdictRow {
        id: n.to_string(),
        label: if n.is_multiple_of(2) { "malicious" } else { "benign" }.into(),
        verdict: Some("flag".into()),
        score: Some(n as f64),
        ..VerdictRow::default()
    };
    let batch = tables::verdicts(&(0..4).map(row).collect::<Vec<_>>());
    let options = Options { max_scores: 3, ..Options::default() };
    let report = partial(Kind::Verdicts, &options, &batch).report().unwrap();
    let auc = report.metric("roc_auc").unwrap();
    assert_eq!(auc.value, None);
    assert!(auc.undefined.as_ref().unwrap().contains("more than 3 distinct scores"));
    let options = Options { max_scores: 4, ..Options::default() };
    let report = partial(Kind::Verdicts, &options, &batch).report().unwrap();
    assert_eq!(report.metric("roc_auc").unwrap().value, Some(0.25));
}

#[test]
fn foreign_partial_results_are_refused() {
    let batch = tables::rankings(&[ranking("q")]);
    let mut own = partial(Kind::Rankings, &Options::default(), &batch);
    let other = Options { seed: 7, ..Options::default() };
    let error = own.merge(partial(Kind::Rankings, &other, &batch)).unwrap_err().to_string();
    assert!(error.contains("differ in their options: seed = 0 and seed = 7"), "{error}");
    let verdicts = Partial::new(Kind::Verdicts, &Options::default()).unwrap();
    let error = own.merge(verdicts).unwrap_err().to_string();
    assert!(error.contains("the kind of rows: rankings and verdicts"), "{error}");
}

#[test]
fn damaged_bytes_and_other_versions_are_refused() {
    let bytes =
        partial(Kind::Rankings, &Options::default(), &tables::rankings(&[ranking("q")])).to_bytes();
    let error = |bytes: &[u8]| Partial::from_bytes(bytes).unwrap_err();
    for length in 0..bytes.len() {
        assert!(matches!(error(&bytes[..length]), Error::Damaged(_)), "{length}");
    }
    for place in 20..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        assert!(matches!(error(&changed), Error::Damaged(_)), "{place}");
    }
    let mut later = bytes.clone();
    later[14] = b'2';
    let text = error(&later).to_string();
    assert!(text.contains("is `karat.partial/2`, this is `karat.partial/1`"), "{text}");
    assert!(error(b"PAR1").to_string().contains("not a partial result"));
}

/// Bytes with a right digest and anything before it: an error or a partial result, never a panic.
fn crafted(mut body: Vec<u8>, changes: &[(usize, u8)], cut: usize) {
    body.truncate(body.len().saturating_sub(32 + cut));
    for (place, byte) in changes {
        // Behind the first line, which decides whether anything is read at all.
        let place = 16 + place % (body.len() - 16);
        body[place] = *byte;
    }
    let digest = Sha256::digest(&body);
    body.extend(&digest[..]);
    if let Ok(read) = Partial::from_bytes(&body) {
        let mut twice = read.clone();
        let _ = twice.merge(read.clone());
        assert!(Partial::from_bytes(&read.to_bytes()).is_ok());
        let _ = twice.report();
        let _ = read.report();
    }
}

proptest! {
    #[test]
    fn crafted_bytes_are_an_error_or_a_partial_result(
        changes in prop::collection::vec((0..4_000usize, any::<u8>()), 1..6),
        cut in 0..4usize,
    ) {
        let rows = [("a", Some("g")), ("b", None)].map(|(id, group)| VerdictRow {
            id: id.into(),
            group: group.map(str::to_owned),
            label: "malicious".into(),
            verdict: Some("flag".into()),
            score: Some(0.5),
            ..VerdictRow::default()
        });
        let of_verdicts = partial(Kind::Verdicts, &Options::default(), &tables::verdicts(&rows));
        crafted(of_verdicts.to_bytes(), &changes, cut);
        let batch = tables::rankings(&[ranking("q")]);
        let of_rankings = partial(Kind::Rankings, &Options::default(), &batch);
        crafted(of_rankings.to_bytes(), &changes, cut);
    }
}

#[test]
fn overlapping_missing_and_foreign_parts_are_refused() {
    let part = |text: &str| {
        Partial::of_part(Kind::Rankings, &Options::default(), text.parse().unwrap()).unwrap()
    };
    let mut own = part("hash:1/3");
    own.merge(part("hash:2/3")).unwrap();
    let error = own.clone().merge(part("hash:2/3")).unwrap_err().to_string();
    assert!(error.contains("duplicate part hash:2/3"), "{error}");
    let error = own.clone().merge(part("hash:1/4")).unwrap_err().to_string();
    assert!(error.contains("the number of parts: 3 and 4"), "{error}");
    let whole = Partial::new(Kind::Rankings, &Options::default()).unwrap();
    let error = own.clone().merge(whole).unwrap_err().to_string();
    assert!(error.contains("rows of a part and rows of no part"), "{error}");
    let read = Partial::from_bytes(&own.to_bytes()).unwrap();
    let error = read.report().unwrap_err().to_string();
    assert!(error.contains("of 3 parts 1 are missing (first: hash:3/3)"), "{error}");
    // q1 is in hash:3/8.
    let scored = scorer(Kind::Rankings).score(&tables::rankings(&[ranking("q1")])).unwrap();
    assert!(part("hash:3/8").add(&scored).is_ok());
    let error = part("hash:1/8").add(&scored).unwrap_err().to_string();
    assert!(error.contains("row 0 of the batch (id \"q1\") is not in part hash:1/8"), "{error}");
}

#[test]
fn four_billion_missing_parts_are_refused() {
    let part = "hash:1/3".parse().unwrap();
    let one = Partial::of_part(Kind::Rankings, &Options::default(), part).unwrap().to_bytes();
    let (known, crafted) = (b"}\x03\x01\x01", b"}\xff\xff\xff\xff\x0f\x00");
    let at = one.windows(known.len()).position(|bytes| bytes == known).unwrap();
    let rest = &one[at + known.len()..one.len() - 32];
    let mut bytes = [&one[..at], crafted, rest].concat();
    let digest = Sha256::digest(&bytes);
    bytes.extend(&digest[..]);
    let error = Partial::from_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("a part before byte"), "{error}");
}

#[test]
fn metrics_at_more_cutoffs_than_anyone_needs_are_refused() {
    let metrics = vec!["recall@k".to_owned(); 1_000];
    let options = Options { metrics, cutoffs: (1..=1_000).collect(), ..Options::default() };
    let error = Partial::new(Kind::Rankings, &options).unwrap_err().to_string();
    assert!(error.contains("at most 10000 metrics"), "{error}");
}

#[test]
fn nothing_is_not_a_report() {
    let empty = Partial::new(Kind::Traces, &Options::default()).unwrap();
    let error = empty.report().unwrap_err();
    assert!(EvalError::from(error).is_not_measured());
    let row = TraceRow { id: "t".into(), ..TraceRow::default() };
    let batch = tables::traces(&[row]);
    let error = partial(Kind::Traces, &Options::default(), &batch).report().unwrap_err();
    assert!(error.to_string().contains("no metric is defined on any of 1 rows"), "{error}");
}

#[test]
fn the_row_of_an_error_is_counted_from_the_start_of_its_batch() {
    let verdict = |number: usize| VerdictRow {
        id: format!("v{number}"),
        label: if number == 40_000 { "odd" } else { "benign" }.to_owned(),
        verdict: Some("pass".to_owned()),
        ..VerdictRow::default()
    };
    let batch = tables::verdicts(&(0..50_000).map(verdict).collect::<Vec<_>>());
    let alone = message(Kind::Verdicts, &batch);
    assert!(alone.contains("row 40000"), "{alone}");
    let together = scorer(Kind::Verdicts).score_all([Ok::<_, Error>(batch)]).unwrap_err();
    assert_eq!(together.to_string(), alone);
}

//! TREC files in any order, with any white space, through any reader, and invalid ones.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use flate2::read::GzDecoder;
use karat_metrics::Score;
use karat_metrics::ranking::{JudgedRanking, Measure, Rules, TieRule};
use proptest::prelude::*;
use trec::{
    DEFAULT_MEASURES, Input, LineProblem, Options, QueryScores, Summary, TrecError, score,
    write_qrels, write_run,
};

/// Two files in a folder of their own.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(qrels: impl AsRef<[u8]>, run: impl AsRef<[u8]>) -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(files.folder.path().join("qrels"), qrels).unwrap();
        std::fs::write(files.folder.path().join("run"), run).unwrap();
        files
    }

    fn qrels(&self) -> Input {
        Input::file(self.folder.path().join("qrels"))
    }

    fn run(&self) -> Input {
        Input::file(self.folder.path().join("run"))
    }

    fn score(&self, options: &Options) -> Result<Summary, TrecError> {
        score(&self.qrels(), &self.run(), options, None)
    }

    fn score_each(&self, options: &Options) -> (Summary, BTreeMap<String, Vec<Score>>) {
        let mut all = BTreeMap::new();
        let mut remember = |query: &QueryScores<'_>| {
            assert_eq!(query.measures, options.measures);
            assert_eq!(all.insert(query.query.to_owned(), query.scores.to_vec()), None);
        };
        let summary = score(&self.qrels(), &self.run(), options, Some(&mut remember)).unwrap();
        (summary, all)
    }
}

fn mean(summary: &Summary, measure: Measure) -> Score {
    let means = summary.means.iter().find(|means| means.measure == measure).unwrap();
    means.over_evaluated.value()
}

const QRELS: &str = "q1 0 a 1\nq1 0 b 0\nq2 0 a 2\nq2 0 c 1\n";
const RUN: &str = "q1 Q0 b 1 3 t\nq1 Q0 a 2 2 t\nq2 Q0 c 1 9 t\nq2 Q0 x 2 8 t\nq2 Q0 a 3 7 t\n";

fn default_summary() -> Summary {
    Files::new(QRELS, RUN).score(&Options::default()).unwrap()
}

#[test]
fn values_are_right_on_a_small_example() {
    let summary = default_summary();
    assert_eq!(mean(&summary, Measure::known("mrr")), Ok(0.75));
    assert_eq!(mean(&summary, Measure::known("map")), Ok((0.5 + (1.0 + 2.0 / 3.0) / 2.0) / 2.0));
    assert_eq!((summary.judged, summary.in_run, summary.evaluated), (2, 2, 2));
    assert_eq!((summary.retrieved, summary.relevant, summary.relevant_retrieved), (5, 3, 3));
    assert!(!summary.means_differ());
    assert_eq!(summary.means.len(), DEFAULT_MEASURES.len());
}

#[test]
fn the_rank_column_is_ignored() {
    let shuffled_ranks = RUN.replace(" 1 3 t", " 2 3 t").replace(" 2 2 t", " nonsense 2 t");
    assert_ne!(shuffled_ranks, RUN);
    assert_eq!(
        Files::new(QRELS, shuffled_ranks).score(&Options::default()).unwrap(),
        default_summary()
    );
}

#[test]
fn white_space_line_ends_and_byte_order_marks_change_nothing() {
    let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n").replace(' ', "\t"));
    let loose = |text: &str| format!("\n  {}\n\n", text.replace(' ', "  \t ").trim_end());
    for (qrels, run) in
        [(windows(QRELS), windows(RUN)), (loose(QRELS), loose(RUN)), (windows(QRELS), loose(RUN))]
    {
        let files = Files::new(&qrels, &run);
        assert_eq!(
            files.score(&Options::default()).unwrap(),
            default_summary(),
            "{qrels:?} {run:?}"
        );
        assert_eq!(files.score_each(&Options::default()).0, default_summary());
    }
}

#[test]
fn an_input_is_read_through_its_reader() {
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let files = Files::new(QRELS, gzip(RUN));
    let path = files.folder.path().join("run");
    let unpacked = Input::new("run", move || Ok(GzDecoder::new(File::open(&path)?)));
    let options = Options::default();
    assert_eq!(score(&files.qrels(), &unpacked, &options, None).unwrap(), default_summary());
    let each = score(&files.qrels(), &unpacked, &options, Some(&mut |_| {})).unwrap();
    assert_eq!(each, default_summary());
    // Without a decoder it is not taken for a wrong line.
    let error = files.score(&options).unwrap_err().to_string();
    assert!(error.ends_with("it is compressed with gzip; decompress it"), "{error}");
}

#[test]
fn queries_of_one_file_only_are_counted_and_listed() {
    // In the order of numbers, which is not the order of bytes.
    let qrels: String = (1..=20).map(|n| format!("{n} 0 a 1\n")).collect();
    let run: String =
        (9..=25).filter(|n| n % 2 == 1).map(|n| format!("{n} Q0 a 1 1 t\n")).collect();
    for options in [
        Options::default(),
        Options { measures: vec![Measure::known("mrr")], ..Options::default() },
    ] {
        let files = Files::new(&qrels, &run);
        for summary in [files.score(&options).unwrap(), files.score_each(&options).0] {
            assert_eq!((summary.judged, summary.in_run, summary.evaluated), (20, 9, 6));
            assert_eq!((summary.missing.count, summary.unjudged.count), (14, 3));
            assert_eq!(summary.missing.first, ["1", "2", "3", "4", "5"]);
            assert_eq!(summary.unjudged.first, ["21", "23", "25"]);
            assert_eq!((summary.relevant, summary.relevant_missing), (6, 14));
            let mrr =
                summary.means.iter().find(|means| means.measure == Measure::known("mrr")).unwrap();
            assert_eq!(mrr.over_evaluated.value(), Ok(1.0));
            assert_eq!(mrr.over_all.value(), Ok(6.0 / 20.0));
            assert!(summary.means_differ());
        }
    }
}

#[test]
fn files_without_a_common_query_have_undefined_means() {
    let summary =
        Files::new("q1 0 a 1\n", "other Q0 a 1 1 t\n").score(&Options::default()).unwrap();
    assert_eq!((summary.evaluated, summary.missing.count, summary.unjudged.count), (0, 1, 1));
    assert!(mean(&summary, Measure::known("mrr")).is_err());
}

#[test]
fn a_query_without_relevant_documents_is_counted_and_kept() {
    let summary = Files::new("q1 0 a 0\nq2 0 a 1\n", "q1 Q0 a 1 1 t\nq2 Q0 a 1 1 t\n");
    let summary = summary.score(&Options::default()).unwrap();
    assert_eq!((summary.evaluated, summary.without_relevant), (2, 1));
    assert_eq!(mean(&summary, Measure::known("mrr")), Ok(0.5));
}

#[test]
fn options_apply_to_the_ranking() {
    let files = Files::new(
        "q 0 a 1\nq 0 c 2\n",
        "q Q0 x 1 2 t\nq Q0 a 2 1 t\nq Q0 b 3 1 t\nq Q0 c 4 0.5 t\n",
    );
    let mrr = |rules| {
        mean(&files.score(&Options { rules, ..Options::default() }).unwrap(), Measure::known("mrr"))
            .unwrap()
    };
    let rules = Rules::default();
    assert_eq!(mrr(rules), 1.0 / 3.0);
    assert_eq!(mrr(Rules { ties: TieRule::IdAscending, ..rules }), 1.0 / 2.0);
    assert_eq!(mrr(Rules { judged_only: true, ..rules }), 1.0);
    assert_eq!(mrr(Rules { relevance_level: 2, ..rules }), 1.0 / 4.0);
}

/// Both files in the same order, and one or the other reversed. The middle part keeps its lines.
fn in_every_order(qrels: [&str; 3], run: [&str; 3]) -> Vec<(String, String)> {
    let orders: [[usize; 3]; 2] = [[0, 1, 2], [2, 1, 0]];
    let mut all = Vec::new();
    for order in orders {
        all.push((qrels.concat(), order.map(|part| run[part]).concat()));
        all.push((order.map(|part| qrels[part]).concat(), run.concat()));
    }
    all
}

fn problem_of(qrels: &str, run: &str) -> (String, u64, LineProblem) {
    let files = Files::new(qrels, run);
    let without = files.score(&Options::default()).unwrap_err();
    let with =
        score(&files.qrels(), &files.run(), &Options::default(), Some(&mut |_| {})).unwrap_err();
    assert_eq!(with.to_string(), without.to_string());
    let TrecError::Line { path, line, problem } = without else { panic!("{without}") };
    (path.file_name().unwrap().to_str().unwrap().to_owned(), line, problem)
}

#[test]
fn an_invalid_line_is_reported_with_file_and_number() {
    let good_run = "q1 Q0 a 1 3 t\n";
    let good_qrels = "q1 0 a 1\n";
    let columns = |found, expected| LineProblem::Columns { found, expected };
    let (qrels_format, run_format) = ("qid 0 docid relevance", "qid Q0 docid rank score tag");
    let quoted = |text: &str| format!("{text:?}");
    for (wrong, problem) in [
        ("q2 0 a\n", columns(3, qrels_format)),
        ("q2 0 a 1 more\n", columns(5, qrels_format)),
        ("q2 0 a 1.9\n", LineProblem::Relevance { text: quoted("1.9") }),
        ("q2 0 a yes\n", LineProblem::Relevance { text: quoted("yes") }),
    ] {
        let expected = ("qrels".to_owned(), 3, problem);
        assert_eq!(problem_of(&format!("{good_qrels}\n{wrong}"), good_run), expected);
    }
    for (wrong, problem) in [
        ("q2 Q0 a 1 3\n", columns(5, run_format)),
        ("q2 Q0 a 1 3 t more\n", columns(7, run_format)),
        ("q2 Q0 a 1 nan t\n", LineProblem::Score { text: quoted("nan") }),
        ("q2 Q0 a 1 -inf t\n", LineProblem::Score { text: quoted("-inf") }),
        ("q2 Q0 a 1 1e999 t\n", LineProblem::Score { text: quoted("1e999") }),
        ("q2 Q0 a 1 high t", LineProblem::Score { text: quoted("high") }),
    ] {
        let expected = ("run".to_owned(), 3, problem);
        assert_eq!(problem_of(good_qrels, &format!("{good_run}\n{wrong}")), expected);
    }
}

#[test]
fn a_duplicate_document_is_found_whatever_the_order_of_the_file() {
    let duplicate = |first| LineProblem::DuplicateResult {
        query: "\"q2\"".into(),
        document: "\"a\"".into(),
        first,
    };
    let qrels = ["q1 0 a 1\n", "q2 0 a 1\n", "q3 0 a 1\n"];
    // Judged, not judged, and of a query without judgements.
    let run = ["q1 Q0 a 1 3 t\n", "q2 Q0 a 1 3 t\nq2 Q0 a 2 2 t\n", "q3 Q0 a 1 3 t\n"];
    for (qrels, run) in in_every_order(qrels, run) {
        assert_eq!(problem_of(&qrels, &run), ("run".to_owned(), 3, duplicate(2)), "{run}");
        assert_eq!(problem_of(&qrels.replace("q2 0 a", "q2 0 b"), &run).2, duplicate(2));
        assert_eq!(problem_of(&qrels.replace("q2 0 a", "q1 0 b"), &run).2, duplicate(2));
    }
    let scattered = "q2 Q0 a 1 3 t\nq1 Q0 a 1 3 t\nq2 Q0 a 1 3 t\n";
    assert_eq!(problem_of(&qrels.concat(), scattered), ("run".to_owned(), 3, duplicate(1)));
}

#[test]
fn a_duplicate_judgement_is_found_whatever_the_order_of_the_file() {
    let duplicate = |first| LineProblem::DuplicateJudgement {
        query: "\"q2\"".into(),
        document: "\"a\"".into(),
        first,
    };
    let qrels = ["q1 0 a 1\n", "q2 0 a 1\nq2 0 a 0\n", "q3 0 a 1\n"];
    let run = ["q1 Q0 a 1 3 t\n", "q2 Q0 a 1 3 t\n", "q3 Q0 a 1 3 t\n"];
    for (qrels, run) in in_every_order(qrels, run) {
        assert_eq!(problem_of(&qrels, &run), ("qrels".to_owned(), 3, duplicate(2)), "{qrels}");
        let missing = run.replace("q2 Q0", "q4 Q0");
        assert_eq!(problem_of(&qrels, &missing).2, duplicate(2));
    }
    let scattered = "q2 0 a 1\nq1 0 a 1\nq2 0 a 1\n";
    assert_eq!(problem_of(scattered, &run.concat()), ("qrels".to_owned(), 3, duplicate(1)));
}

#[test]
fn an_id_that_is_not_utf8_is_an_error_and_a_tag_may_be_anything() {
    let error = Files::new(b"q1 0 a 1\nq1 0 \xff 1\n", RUN).score(&Options::default()).unwrap_err();
    assert!(
        error.to_string().ends_with("qrels:2: the document id \"\u{fffd}\" is not UTF-8"),
        "{error}"
    );
    let tagged = Files::new(QRELS, [RUN.as_bytes(), b"q2 Q0 z 9 0 \xff\n"].concat());
    assert_eq!(tagged.score(&Options::default()).unwrap().retrieved, 6);
}

#[test]
fn an_empty_file_is_an_error() {
    for empty in ["", "\n", " \r\n\t\n"] {
        for files in [Files::new(empty, RUN), Files::new(QRELS, empty), Files::new(empty, empty)] {
            for with in [true, false] {
                let mut nothing =
                    |query: &QueryScores<'_>| assert_eq!(query.query, "", "nothing to score");
                let per_query = with.then_some(&mut nothing as &mut dyn FnMut(&QueryScores<'_>));
                let result = score(&files.qrels(), &files.run(), &Options::default(), per_query);
                assert!(matches!(result, Err(TrecError::Empty { .. })), "{result:?}");
            }
        }
    }
}

#[test]
fn the_error_for_a_missing_file_shows_its_path() {
    let files = Files::new(QRELS, RUN);
    let error =
        score(&files.qrels(), &Input::file("no-such-run"), &Options::default(), None).unwrap_err();
    assert!(
        matches!(&error, TrecError::Read { path, .. } if path == Path::new("no-such-run")),
        "{error}"
    );
}

#[test]
fn an_endless_line_is_an_error_and_does_not_fill_the_memory() {
    let endless = [RUN.as_bytes(), &vec![b'x'; 3 << 20]].concat();
    let (file, line, problem) = {
        let files = Files::new(QRELS, endless);
        let error = files.score(&Options::default()).unwrap_err();
        let TrecError::Line { path, line, problem } = error else { panic!("{error}") };
        (path, line, problem)
    };
    assert!(file.ends_with("run"));
    assert_eq!((line, problem), (6, LineProblem::TooLong));
}

#[test]
fn a_written_run_is_read_back_in_the_same_order() {
    let golden = [("q1", vec![("s:a", 2), ("s:b", 0)]), ("q2", vec![("s:c", 1)])];
    let rankings: [(&str, &[&str]); 2] = [("q1", &["s:b", "s:z", "s:a"]), ("q2", &["s:c"])];
    let (mut qrels, mut run) = (Vec::new(), Vec::new());
    write_qrels(&mut qrels, golden.clone()).unwrap();
    write_run(&mut run, rankings, "karat").unwrap();
    let (_, scores) = Files::new(qrels, run).score_each(&Options::default());
    for ((query, judged), (_, ranking)) in golden.into_iter().zip(rankings) {
        let direct =
            JudgedRanking::from_ordered(judged, ranking.iter().copied(), &Rules::default())
                .unwrap();
        let expected: Vec<_> =
            DEFAULT_MEASURES.iter().map(|measure| direct.score(*measure)).collect();
        assert_eq!(scores[query], expected);
    }
}

type Labels = BTreeMap<String, BTreeMap<String, i64>>;
type Results = BTreeMap<String, BTreeMap<String, i32>>;

fn query() -> impl Strategy<Value = String> {
    (1..30_u32).prop_map(|number| format!("q{number}"))
}

fn document() -> impl Strategy<Value = String> {
    (1..15_u32).prop_map(|number| format!("server:tool{number}"))
}

fn labels() -> impl Strategy<Value = Labels> {
    let judged = proptest::collection::btree_map(document(), -1..4_i64, 1..8);
    proptest::collection::btree_map(query(), judged, 1..15)
}

fn results() -> impl Strategy<Value = Results> {
    let scored = proptest::collection::btree_map(document(), 0..6_i32, 1..10);
    proptest::collection::btree_map(query(), scored, 1..15)
}

/// The lines of both files, by query.
fn lines(labels: &Labels, results: &Results) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let judged = |(query, judged): (&String, &BTreeMap<String, i64>)| {
        judged.iter().map(|(id, grade)| format!("{query} 0 {id} {grade}\n")).collect()
    };
    let scored = |(query, scored): (&String, &BTreeMap<String, i32>)| {
        scored.iter().map(|(id, score)| format!("{query} Q0 {id} 0 {score}.5 t\n")).collect()
    };
    (labels.iter().map(judged).collect(), results.iter().map(scored).collect())
}

/// The counts of a summary, and its means, which may differ in the last bits with the order.
fn assert_same(left: &Summary, right: &Summary) {
    let found = |found: &trec::QueryList| found.count;
    let counts = |summary: &Summary| {
        let queries = [summary.judged, summary.in_run, summary.evaluated, summary.without_relevant];
        let only_one =
            [found(&summary.missing), found(&summary.unjudged), summary.relevant_missing];
        (queries, only_one, [summary.retrieved, summary.relevant, summary.relevant_retrieved])
    };
    assert_eq!(counts(left), counts(right));
    for (left, right) in left.means.iter().zip(&right.means) {
        for (left, right) in
            [(left.over_evaluated, right.over_evaluated), (left.over_all, right.over_all)]
        {
            assert_eq!((left.count(), left.undefined()), (right.count(), right.undefined()));
            let same = match (left.value(), right.value()) {
                (Ok(left), Ok(right)) => (left - right).abs() < 1e-14,
                (left, right) => left == right,
            };
            assert!(same, "{left:?} {right:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_lines_does_not_matter(
        labels in labels(),
        results in results(),
        seed in any::<u64>(),
    ) {
        let (qrels, run) = lines(&labels, &results);
        // Another order of the queries, and of all lines: by a number drawn for each.
        let shuffled = |lines: &[Vec<String>]| {
            let mut whole: Vec<_> = lines.iter().map(|group| group.concat()).collect();
            let mut all: Vec<_> = lines.concat();
            let key = |text: &String| {
                use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
                BuildHasherDefault::<DefaultHasher>::default().hash_one((seed, text))
            };
            whole.sort_by_key(key);
            all.sort_by_key(key);
            (lines.concat().concat(), whole.concat(), all.concat())
        };
        let mut measures = DEFAULT_MEASURES.to_vec();
        measures.push(Measure::known("hard_negative_rate"));
        let options = Options { measures, ..Options::default() };
        let (qrels_sorted, qrels_grouped, qrels_scattered) = shuffled(&qrels);
        let (run_sorted, run_grouped, run_scattered) = shuffled(&run);
        let (expected, expected_scores) = Files::new(&qrels_sorted, &run_sorted).score_each(&options);
        for (query, judged) in &labels {
            let Some(scored) = results.get(query) else { continue };
            let judged = judged.iter().map(|(id, grade)| (&**id, *grade));
            let scored = scored.iter().map(|(id, score)| (&**id, f64::from(*score)));
            let direct = JudgedRanking::from_scored(judged, scored, &options.rules).unwrap();
            let values: Vec<_> = options.measures.iter().map(|measure| direct.score(*measure)).collect();
            prop_assert_eq!(&expected_scores[query], &values);
        }
        for (qrels, run) in [
            (&qrels_sorted, &run_sorted),
            (&qrels_sorted, &run_grouped),
            (&qrels_grouped, &run_sorted),
            (&qrels_scattered, &run_grouped),
            (&qrels_sorted, &run_scattered),
            (&qrels_scattered, &run_scattered),
        ] {
            let files = Files::new(qrels, run);
            let (summary, scores) = files.score_each(&options);
            prop_assert_eq!(&scores, &expected_scores);
            assert_same(&summary, &expected);
            assert_same(&files.score(&options).unwrap(), &expected);
        }
    }
}

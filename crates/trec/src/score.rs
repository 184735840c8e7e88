//! Scoring of two files.
//!
//! If both files are in the same ascending order, they are merged query by query. Otherwise the
//! judgements are read into memory, and the run too if the lines of its queries are scattered. The
//! results are the same.

use std::cmp::Ordering;

use super::Options;
use super::error::TrecError;
use super::evaluate::{Evaluator, QueryScores, Summary};
use super::group::Groups;
use super::input::Input;
use super::survey::{Orders, count_if_together};
use super::table::Table;

/// Scores a run against judgements. `per_query` is called once for each query that is in both files,
/// in the order of the run. Without it, files that are sorted by query are read only once.
///
/// ```
/// let qrels = trec::Input::new("qrels", || Ok("q1 0 a 1\nq2 0 a 1\n".as_bytes()));
/// let run = "q1 Q0 a 1 0.9 tag\nq3 Q0 a 1 0.9 tag\n";
/// let run = trec::Input::new("run", || Ok(run.as_bytes()));
///
/// let mut scored = Vec::new();
/// let mut per_query = |query: &trec::QueryScores<'_>| scored.push(query.query.to_owned());
/// let options = trec::Options::default();
/// let summary = trec::score(&qrels, &run, &options, Some(&mut per_query))?;
/// assert_eq!(scored, ["q1"]);
/// assert_eq!((summary.missing.first, summary.unjudged.first), (vec!["q2".into()], vec!["q3".into()]));
/// # Ok::<(), trec::TrecError>(())
/// ```
///
/// # Errors
/// If a file cannot be read, is empty, or has an invalid line. Discard the results of `per_query` after
/// an error.
pub fn score(
    qrels: &Input,
    run: &Input,
    options: &Options,
    per_query: Option<&mut dyn FnMut(&QueryScores<'_>)>,
) -> Result<Summary, TrecError> {
    // A call of `per_query` cannot be undone, so find the order first. Without it, start optimistically.
    let look_first = per_query.is_some();
    let orders =
        if look_first { Orders::of(qrels)?.and(Orders::of(run)?).one() } else { Orders::ALL };
    let mut ignore = |_: &QueryScores<'_>| {};
    let report: &mut dyn FnMut(&QueryScores<'_>) = match per_query {
        Some(per_query) => per_query,
        None => &mut ignore,
    };
    if !orders.is_none() {
        let mut evaluator = Evaluator::new(options, qrels, run, report);
        if merge(orders, qrels, run, &mut evaluator)? {
            return Ok(evaluator.finish());
        }
        if look_first {
            return Err(TrecError::Changed { path: run.path().to_owned() });
        }
    }
    let mut evaluator = Evaluator::new(options, qrels, run, report);
    let judged = Table::<i64>::load(qrels.open()?)?;
    match count_if_together(run)? {
        Some(groups) => stream_run(&judged, run, groups, &mut evaluator)?,
        None => run_in_memory(&judged, run, &mut evaluator)?,
    }
    Ok(evaluator.finish())
}

/// Reads both files query by query, in parallel. Returns `false` if they turn out to have no common
/// order; discard the evaluator then.
fn merge(
    orders: Orders,
    qrels: &Input,
    run: &Input,
    evaluator: &mut Evaluator<'_>,
) -> Result<bool, TrecError> {
    let mut judged = Groups::<i64>::new(qrels.open()?);
    let mut results = Groups::<f64>::new(run.open()?);
    let (mut more_judged, mut more_results) = (judged.advance()?, results.advance()?);
    for (input, more) in [(qrels, more_judged), (run, more_results)] {
        if !more {
            return Err(TrecError::Empty { path: input.path().to_owned() });
        }
    }
    while more_judged || more_results {
        let orders = orders.and(judged.orders).and(results.orders);
        if orders.is_none() {
            return Ok(false);
        }
        let (left, right) = (judged.current(), results.current());
        let side = match (more_judged, more_results) {
            (true, false) => Ordering::Less,
            (false, _) => Ordering::Greater,
            (true, true) if left.query == right.query => Ordering::Equal,
            (true, true) => match orders.compare(&left.query, &right.query) {
                Some(side) => side,
                None => return Ok(false),
            },
        };
        match side {
            Ordering::Less => evaluator.missing(&left.query, left.rows())?,
            Ordering::Greater => evaluator.unjudged(&right.query, right.rows())?,
            Ordering::Equal => evaluator.evaluate(&left.query, left.rows(), right.rows())?,
        }
        if side.is_le() {
            more_judged = judged.advance()?;
        }
        if side.is_ge() {
            more_results = results.advance()?;
        }
    }
    Ok(true)
}

/// Reads the run query by query; no query appears again later.
fn stream_run(
    judged: &Table<i64>,
    run: &Input,
    groups: usize,
    evaluator: &mut Evaluator<'_>,
) -> Result<(), TrecError> {
    let mut evaluated = vec![false; judged.len()];
    let mut results = Groups::<f64>::new(run.open()?);
    let mut count = 0;
    while results.advance()? {
        let group = results.current();
        count += 1;
        match judged.find(&group.query) {
            Some(query) => {
                evaluated[query] = true;
                evaluator.evaluate(&group.query, judged.rows(query), group.rows())?;
            }
            None => evaluator.unjudged(&group.query, group.rows())?,
        }
    }
    if count != groups {
        return Err(TrecError::Changed { path: run.path().to_owned() });
    }
    rest_is_missing(judged, &evaluated, evaluator)
}

/// Reads the run into memory, to collect scattered lines.
fn run_in_memory(
    judged: &Table<i64>,
    run: &Input,
    evaluator: &mut Evaluator<'_>,
) -> Result<(), TrecError> {
    let results = Table::<f64>::load(run.open()?)?;
    let mut evaluated = vec![false; judged.len()];
    for number in 0..results.len() {
        let (id, rows) = (results.query(number), results.rows(number));
        match judged.find(id) {
            Some(query) => {
                evaluated[query] = true;
                evaluator.evaluate(id, judged.rows(query), rows)?;
            }
            None => evaluator.unjudged(id, rows)?,
        }
    }
    rest_is_missing(judged, &evaluated, evaluator)
}

fn rest_is_missing(
    judged: &Table<i64>,
    evaluated: &[bool],
    evaluator: &mut Evaluator<'_>,
) -> Result<(), TrecError> {
    for (query, _) in evaluated.iter().enumerate().filter(|(_, evaluated)| !**evaluated) {
        evaluator.missing(judged.query(query), judged.rows(query))?;
    }
    Ok(())
}

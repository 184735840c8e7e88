//! A run as rankings: each query's documents in the order in which trec_eval ranks them.

use std::collections::HashMap;

use karat_metrics::ranking::ScorePrecision;

use super::error::{LineProblem, TrecError, quote};
use super::input::Input;
use super::table::Table;

/// The results of one query, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryResults {
    /// The query.
    pub query: String,
    /// The documents and their scores: the highest score first, equal scores by descending id.
    pub documents: Vec<(String, f64)>,
}

/// Reads a run. The queries are in the order of their first lines.
///
/// ```
/// let text = "q1 Q0 a 1 0.2 tag\nq1 Q0 b 2 0.8 tag\n";
/// let run = trec::read_run(&trec::Input::new("run", || Ok(text.as_bytes())))?;
/// assert_eq!(run[0].documents, [("b".to_owned(), 0.8), ("a".to_owned(), 0.2)]);
/// # Ok::<(), trec::TrecError>(())
/// ```
///
/// # Errors
/// If the file cannot be read, is empty, or has an invalid line.
pub fn read_run(input: &Input) -> Result<Vec<QueryResults>, TrecError> {
    let table = Table::<f64>::load(input.open()?)?;
    if table.len() == 0 {
        return Err(TrecError::Empty { path: input.path().to_owned() });
    }
    (0..table.len()).map(|query| results_of_query(input, &table, query)).collect()
}

fn results_of_query(
    input: &Input,
    table: &Table<f64>,
    query: usize,
) -> Result<QueryResults, TrecError> {
    let rows = table.rows(query);
    let mut first_lines = HashMap::with_capacity(rows.entries.len());
    let mut documents = Vec::with_capacity(rows.entries.len());
    for (row, entry) in rows.entries.iter().enumerate() {
        let document = rows.id(row);
        if let Some(first) = first_lines.insert(document, entry.line) {
            let (query, document) = (quote(table.query(query)), quote(document));
            let problem = LineProblem::DuplicateResult { query, document, first };
            return Err(input.line_error(entry.line, problem));
        }
        documents.push((String::from_utf8_lossy(document).into_owned(), entry.value));
    }
    // By key: 0 and -0 tie.
    let key = |score: &f64| ScorePrecision::F64.key(*score);
    documents.sort_by(|(a, score_a), (b, score_b)| key(score_b).cmp(&key(score_a)).then(b.cmp(a)));
    let query = String::from_utf8_lossy(table.query(query)).into_owned();
    Ok(QueryResults { query, documents })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<QueryResults>, TrecError> {
        let text = text.to_owned();
        read_run(&Input::new("run", move || Ok(std::io::Cursor::new(text.clone()))))
    }

    #[test]
    fn results_are_sorted_by_score_and_equal_scores_by_id() {
        let run = read("q Q0 a 9 1.0 t\nq Q0 c 1 0.5 t\nq Q0 b 2 1.0 t\np Q0 a 1 -1 t\n").unwrap();
        let ids: Vec<Vec<&str>> =
            run.iter().map(|q| q.documents.iter().map(|(id, _)| id.as_str()).collect()).collect();
        assert_eq!(ids, [vec!["b", "a", "c"], vec!["a"]]);
        assert_eq!(run[1].query, "p");
        let zeros = read("q Q0 a 1 0 t\nq Q0 b 2 -0.0 t\n").unwrap();
        assert_eq!(zeros[0].documents[0].0, "b");
    }

    #[test]
    fn a_duplicate_document_is_an_error_with_both_lines() {
        let error = read("q Q0 a 1 2 t\nq Q0 b 2 1 t\nq Q0 a 3 0 t\n").unwrap_err().to_string();
        assert!(error.contains(":3: ") && error.contains("first on line 1"), "{error}");
    }
}

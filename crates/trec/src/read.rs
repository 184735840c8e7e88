//! A run as rankings: each query's documents in the order in which trec_eval would rank them.

use std::collections::HashMap;
use std::path::Path;

use super::error::{LineProblem, TrecError, quote};
use super::input::Input;
use super::table::Table;

/// The documents of one query, best first, with their scores.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOfQuery {
    /// The query.
    pub query: String,
    /// Its documents: by score, the highest first; equal scores by id, the last first.
    pub documents: Vec<(String, f64)>,
}

/// Reads a run. The queries come in the order of their first lines.
///
/// # Errors
/// If the file cannot be read, is empty, or has a line that is wrong.
pub fn read_run(path: &Path) -> Result<Vec<RunOfQuery>, TrecError> {
    let input = Input::new(path)?;
    let table = Table::<f64>::load(input.open()?)?;
    if table.len() == 0 {
        return Err(TrecError::Empty { path: path.to_owned() });
    }
    (0..table.len()).map(|query| run_of_query(&input, &table, query)).collect()
}

fn run_of_query(input: &Input, table: &Table<f64>, query: usize) -> Result<RunOfQuery, TrecError> {
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
    documents.sort_by(|(a, score_a), (b, score_b)| score_b.total_cmp(score_a).then(b.cmp(a)));
    let query = String::from_utf8_lossy(table.query(query)).into_owned();
    Ok(RunOfQuery { query, documents })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<RunOfQuery>, TrecError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        std::fs::write(&path, text).unwrap();
        read_run(&path)
    }

    #[test]
    fn the_score_decides_and_equal_scores_go_by_id() {
        let run = read("q Q0 a 9 1.0 t\nq Q0 c 1 0.5 t\nq Q0 b 2 1.0 t\np Q0 a 1 -1 t\n").unwrap();
        let ids: Vec<Vec<&str>> =
            run.iter().map(|q| q.documents.iter().map(|(id, _)| id.as_str()).collect()).collect();
        assert_eq!(ids, [vec!["b", "a", "c"], vec!["a"]]);
        assert_eq!(run[1].query, "p");
    }

    #[test]
    fn a_document_twice_names_both_lines() {
        let error = read("q Q0 a 1 2 t\nq Q0 b 2 1 t\nq Q0 a 3 0 t\n").unwrap_err().to_string();
        assert!(error.contains(":3: ") && error.contains("first on line 1"), "{error}");
    }
}

//! Writers of TREC files.

use std::io::Write;

use super::error::TrecError;

/// Writes judgements, one line `qid 0 docid relevance` each, in the order given.
///
/// ```
/// let mut qrels = Vec::new();
/// trec::write_qrels(&mut qrels, [("q1", [("a", 2), ("b", 0)])])?;
/// assert_eq!(qrels, b"q1 0 a 2\nq1 0 b 0\n");
/// # Ok::<(), trec::TrecError>(())
/// ```
///
/// # Errors
/// If an id is empty or contains white space, or the output cannot be written.
pub fn write_qrels<'a, J>(
    output: &mut dyn Write,
    queries: impl IntoIterator<Item = (&'a str, J)>,
) -> Result<(), TrecError>
where
    J: IntoIterator<Item = (&'a str, i64)>,
{
    for (query, judgements) in queries {
        check(query)?;
        for (document, relevance) in judgements {
            check(document)?;
            writeln!(output, "{query} 0 {document} {relevance}")?;
        }
    }
    Ok(())
}

/// Writes rankings, best first, as a run: one line `qid Q0 docid rank score tag` each. The score is
/// `n - rank + 1` for n results, so that no two tie and any reader keeps the order.
///
/// A query without results has no line, so readers report it as missing: the format cannot express an
/// empty list.
///
/// ```
/// let mut run = Vec::new();
/// trec::write_run(&mut run, [("q1", &["b", "a"][..])], "bm25")?;
/// assert_eq!(run, b"q1 Q0 b 1 2 bm25\nq1 Q0 a 2 1 bm25\n");
/// # Ok::<(), trec::TrecError>(())
/// ```
///
/// # Errors
/// If an id or the tag is empty or contains white space, or the output cannot be written.
pub fn write_run<'a>(
    output: &mut dyn Write,
    rankings: impl IntoIterator<Item = (&'a str, &'a [&'a str])>,
    tag: &str,
) -> Result<(), TrecError> {
    check(tag)?;
    for (query, ranking) in rankings {
        check(query)?;
        for (index, document) in ranking.iter().enumerate() {
            check(document)?;
            let (rank, score) = (index + 1, ranking.len() - index);
            writeln!(output, "{query} Q0 {document} {rank} {score} {tag}")?;
        }
    }
    Ok(())
}

fn check(id: &str) -> Result<(), TrecError> {
    // Other readers may take any Unicode space for a separator, so reject those too.
    if id.is_empty() || id.contains(char::is_whitespace) {
        return Err(TrecError::Id { id: id.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ranking_becomes_scores_that_descend_to_one() {
        let mut output = Vec::new();
        let rankings = [("q1", &["s:b", "s:a"][..]), ("q2", &[][..])];
        write_run(&mut output, rankings, "bm25").unwrap();
        assert_eq!(String::from_utf8(output).unwrap(), "q1 Q0 s:b 1 2 bm25\nq1 Q0 s:a 2 1 bm25\n");
    }

    #[test]
    fn judgements_keep_their_order_and_grades() {
        let mut output = Vec::new();
        write_qrels(&mut output, [("q1", vec![("b", 2), ("a", 0)]), ("q2", vec![("a", -1)])])
            .unwrap();
        assert_eq!(String::from_utf8(output).unwrap(), "q1 0 b 2\nq1 0 a 0\nq2 0 a -1\n");
    }

    #[test]
    fn an_id_that_would_break_the_columns_is_rejected() {
        for id in ["", "my tool", "a\tb", "a\u{a0}b"] {
            let labels = write_qrels(&mut Vec::new(), [("q", [(id, 1)])]);
            assert!(matches!(labels, Err(TrecError::Id { id: refused }) if refused == id));
            assert!(matches!(
                write_run(&mut Vec::new(), [("q", &[id][..])], "t"),
                Err(TrecError::Id { .. })
            ));
            assert!(matches!(
                write_run(&mut Vec::new(), [(id, &["d"][..])], "t"),
                Err(TrecError::Id { .. })
            ));
            assert!(matches!(
                write_run(&mut Vec::new(), [("q", &["d"][..])], id),
                Err(TrecError::Id { .. })
            ));
        }
    }
}

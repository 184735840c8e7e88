//! Golden labels and rankings as TREC files, for other tools to read.

use std::io::Write;

use super::error::TrecError;

/// Writes judgements, `qid 0 docid relevance` a line, in the order given.
///
/// # Errors
/// If an id has white space in it or is empty, or the output cannot be written.
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

/// Writes rankings, best first, as a run: `qid Q0 docid rank score tag` a line. The score is
/// `n - rank + 1` for n results, so that no two tie and any reader keeps the order.
///
/// A query without results leaves no line, and readers will find it missing: the format has no way
/// to say that it was asked and nothing came back.
///
/// # Errors
/// If an id or the tag has white space in it or is empty, or the output cannot be written.
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
    // Other readers may take any Unicode space for a separator, so refuse those too.
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
    fn an_id_that_would_break_the_columns_is_refused() {
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

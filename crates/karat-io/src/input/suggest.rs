//! Suggestions for misspelled words, and a parser for serde's message about unknown keys, which serde
//! reports only as a sentence.

/// The known word nearest to `word`, if one is near enough.
///
/// Letter case, `-` and `_` are ignored; a swapped pair of letters counts as one mistake. One mistake is
/// allowed for every three letters, and at least one letter must match.
///
/// ```
/// use karat_io::input::nearest;
///
/// assert_eq!(nearest("timeuot_ms", ["timeout_ms", "retries"]).as_deref(), Some("timeout_ms"));
/// assert_eq!(nearest("colour", ["timeout_ms", "retries"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // The comparison is quadratic, and a word this long is not a misspelling.
    const MAX_LENGTH: usize = 64;
    let plain = |word: &str| word.to_lowercase().replace(['-', '_', ' '], "");
    if word.len() > MAX_LENGTH {
        return None;
    }
    let word = plain(word);
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &plain(candidate)), candidate))
        .filter(|&(distance, candidate)| {
            distance <= allowed && distance < candidate.chars().count()
        })
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// The subject of serde's sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Key,
    Choice,
}

/// The parts of `unknown field `x`, expected one of `a`, `b``.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) subject: Subject,
    pub(super) word: String,
    pub(super) known: Vec<String>,
}

/// Parses serde's sentence; `None` if it is another one.
pub(super) fn unknown_word(message: &str) -> Option<Unknown> {
    let (subject, rest, none) = if let Some(rest) = message.strip_prefix("unknown field `") {
        (Subject::Key, rest, "`, there are no fields")
    } else {
        let rest = message.strip_prefix("unknown variant `")?;
        (Subject::Choice, rest, "`, there are no variants")
    };
    if let Some(word) = rest.strip_suffix(none) {
        return Some(Unknown { subject, word: word.to_owned(), known: Vec::new() });
    }
    // From the right: the word comes from the file and may contain anything.
    let (word, expected) = rest.rsplit_once("`, expected ")?;
    // Known words are in backquotes, so every second part is one.
    let known = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some(Unknown { subject, word: word.to_owned(), known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_word_finds_its_nearest() {
        let known = ["query", "labels", "relevance", "corpus_version"];
        assert_eq!(nearest("relevence", known).as_deref(), Some("relevance"));
        assert_eq!(nearest("qeury", known).as_deref(), Some("query"));
        assert_eq!(nearest("corpusVersion", known).as_deref(), Some("corpus_version"));
        assert_eq!(nearest("corpus-version", known).as_deref(), Some("corpus_version"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(nearest("m", ["f", "k"]), None);
        assert_eq!(nearest("", ["f", "k"]), None);
        assert_eq!(nearest(&"q".repeat(100_000), known), None);
    }

    #[test]
    fn the_sentences_of_serde_are_parsed() {
        let known = |message| unknown_word(message).map(|unknown| (unknown.word, unknown.known));
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            known("unknown field `x`, expected one of `a`, `b`, `c`"),
            Some(("x".into(), words(&["a", "b", "c"])))
        );
        assert_eq!(
            known("unknown field `x`, expected `a` or `b`"),
            Some(("x".into(), words(&["a", "b"])))
        );
        assert_eq!(known("unknown field `x`, expected `a`"), Some(("x".into(), words(&["a"]))));
        assert_eq!(known("unknown variant `x`, there are no variants"), Some(("x".into(), vec![])));
        assert_eq!(
            known("unknown field `y`, expected `z`, expected `a`"),
            Some(("y`, expected `z".into(), words(&["a"])))
        );
        assert_eq!(known("missing field `id`"), None);
    }
}

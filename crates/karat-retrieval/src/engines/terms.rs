//! Words to terms: what an index stores and a query asks for.
//!
//! Stop words and overlong words are dropped, the rest is reduced to its English stem by the
//! Snowball algorithm.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};

use super::words::for_each_word;

/// Words of this many bytes or more are data, not language.
const TOO_LONG: usize = 64;

/// Lucene's English stop words, sorted.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

/// Makes terms of words.
#[derive(Clone, Copy)]
pub(crate) struct Stems(Stemmer);

impl Stems {
    pub(crate) fn new() -> Stems {
        Stems(Stemmer::new(Algorithm::English))
    }

    /// The term of a lower-case word, unless the word is dropped.
    pub(crate) fn term<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        let dropped = word.len() >= TOO_LONG || STOP_WORDS.binary_search(&word).is_ok();
        (!dropped).then(|| self.0.stem(word))
    }

    /// Each word of a text that counts, with its term, in order.
    pub(crate) fn of(&self, text: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for_each_word(text, |word| {
            found.extend(self.term(word).map(|term| (word.to_owned(), term.into_owned())));
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_words_are_sorted_as_the_search_among_them_needs() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn stop_words_and_overlong_words_are_dropped_and_the_rest_is_stemmed() {
        let text = format!("The creation of {} {}s", "x".repeat(64), "ab".repeat(31));
        let terms: Vec<String> = Stems::new().of(&text).into_iter().map(|(_, term)| term).collect();
        assert_eq!(terms, ["creation".to_owned(), "ab".repeat(31)]);
    }
}

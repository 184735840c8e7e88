//! The cost of a text in a model's context, in tokens.
//!
//! Counted with the `cl100k_base` vocabulary, which is inside the binary. Models differ by some per
//! cent; what matters here is whether something got longer or shorter. Loading the vocabulary takes
//! a quarter of a second, so it is loaded when the first text is counted and not before.

/// The vocabulary, as reports name it.
pub const VOCABULARY: &str = "cl100k_base";

/// A piece without a break is cut at this length: the time to count it grows with its square.
const MAX_PIECE_BYTES: usize = 4 << 10;

/// Loads the vocabulary: before answers are timed, so that the first of them does not pay for it.
pub fn load() {
    let _ = tiktoken_rs::cl100k_base_singleton();
}

/// The number of tokens of a text.
pub fn count(text: &str) -> u64 {
    let vocabulary = tiktoken_rs::cl100k_base_singleton();
    pieces(text).map(|piece| vocabulary.encode_ordinary(piece).len() as u64).sum()
}

/// The text in pieces that end before a space between two words. The vocabulary never joins such a
/// space with what precedes it, so cutting there changes no count.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        if text.len() <= MAX_PIECE_BYTES {
            return Some(std::mem::take(&mut text));
        }
        let end = text.floor_char_boundary(MAX_PIECE_BYTES);
        let bytes = text.as_bytes();
        let between = |at: &usize| {
            bytes[*at] == b' '
                && !bytes[at - 1].is_ascii_whitespace()
                && !bytes[at + 1].is_ascii_whitespace()
        };
        let (piece, rest) = text.split_at((1..end).rev().find(between).unwrap_or(end));
        text = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_have_known_counts() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count("<|endoftext|>"), 7, "a special token in an answer is only text");
    }

    #[test]
    fn cutting_a_long_text_changes_no_count() {
        let text =
            "{\"name\": \"create_issue\", \"description\": \"Opens a ticket.\"}\n".repeat(400);
        let whole = tiktoken_rs::cl100k_base_singleton().encode_ordinary(&text).len() as u64;
        assert_eq!(count(&text), whole);
    }

    #[test]
    fn an_endless_word_takes_no_endless_time() {
        assert!(count(&"a".repeat(1 << 20)) > 1_000);
        assert!(count(&"é".repeat(100_000)) > 1_000);
    }
}

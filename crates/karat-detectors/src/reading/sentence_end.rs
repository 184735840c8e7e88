//! The ends of sentences.

use super::super::characters::is_invisible;
use super::super::lexicon;

/// Returns true if a full stop before `rest` may end the sentence: white space or mark-up follows.
pub(super) fn closes(rest: &str) -> bool {
    match rest.as_bytes().first() {
        None => true,
        Some(byte) if byte.is_ascii() => byte.is_ascii_whitespace() || *byte == b'<',
        Some(_) => {
            let next = rest.chars().find(|next| !is_invisible(*next));
            next.is_none_or(|next| next.is_whitespace() || next == '<')
        }
    }
}

/// Returns true if a line break ends the sentence: before an empty line, a list item or the documentation
/// of an argument, and after a finished line.
pub(super) fn breaks_line(so_far: &str, rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '\t', '\r']);
    let next = rest.chars().next();
    let finished =
        so_far.trim_end().ends_with(['.', ':', '!', '?', ';', '>', ']', '}', '。', '：']);
    let starts_anew = next.is_none_or(|next| {
        matches!(next, '\n' | '-' | '*' | '•' | '#' | '<' | '・') || next.is_ascii_digit()
    });
    finished || starts_anew || documents_argument(rest)
}

/// Returns true if a line begins as the documentation of an argument does: `name: text` or
/// `name (string, optional): text`.
fn documents_argument(line: &str) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let name = line.bytes().take_while(|byte| is_name(byte)).count();
    let after = &line[name..];
    let typed = || {
        let kind = after.strip_prefix(" (").and_then(|kind| kind.split_once(')'));
        kind.is_some_and(|(kind, text)| kind.len() <= 40 && text.starts_with(':'))
    };
    name > 0 && (after.starts_with(": ") || typed())
}

/// Returns true if the full stop after this text belongs to an abbreviation or a number: `e.g.`, `z.b.`,
/// `1.`.
pub(super) fn is_abbreviation(sentence: &str) -> bool {
    let dots = sentence.bytes().rev().take_while(|byte| *byte == b'.').count();
    let body = &sentence[..sentence.len() - dots];
    let border = body.bytes().rposition(|byte| matches!(byte, b' ' | b'('));
    let word = border.map_or(body, |at| &body[at + 1..]);
    word.bytes().any(|byte| byte == b'.') && !word.contains(['/', '@'])
        || word.chars().nth(1).is_none()
        || lexicon::is_abbreviation(word)
}

//! The words of JavaScript source.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    Text,
    /// A template or a pattern.
    Literal,
    Operator,
}

/// A token, and its place in the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(super) fn is(&self, operator: &str) -> bool {
        self.kind == Kind::Operator && self.text == operator
    }
}

/// Longer ones first.
const OPERATORS: [&str; 56] = [
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "?.", "??",
    "&&", "||", "==", "!=", "<=", ">=", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    "**", "<<", "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "=", "+", "-", "*", "/", "%",
    "&", "|", "^", "~", "!", "<", ">", "?",
];

/// Divides source into tokens. Comments are left out.
///
/// # Errors
/// If a character or a literal is not valid.
pub(super) fn tokenize(source: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            at += 4 + comment.find("*/").ok_or("a comment has no end")?;
            continue;
        }
        let is_word = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
        let (kind, length) = match first {
            '0'..='9' => (Kind::Number, number(rest)),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                (Kind::Number, number(rest))
            }
            '"' | '\'' => (Kind::Text, literal(rest, first)?),
            '`' => (Kind::Literal, literal(rest, first)?),
            '/' if begins_operand(tokens.last()) => (Kind::Literal, pattern(rest)?),
            _ if is_word(first) => (Kind::Word, rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
            _ => match OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
                Some(operator) => (Kind::Operator, operator.len()),
                None => return Err(format!("{first:?}")),
            },
        };
        tokens.push(Token { kind, text: &rest[..length], start: at });
        at += length;
    }
    Ok(tokens)
}

/// The length of a number with its suffix.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let is_hex = rest.len() > 1 && matches!(bytes[1], b'x' | b'X');
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let signed = !is_hex && at > 0 && matches!(bytes[at - 1], b'e' | b'E');
        let inside = byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'.';
        if !(inside || signed && matches!(byte, b'+' | b'-')) {
            break;
        }
        at += 1;
    }
    at
}

/// The length of a literal with its quotes. Only templates go over lines.
fn literal(rest: &str, quote: char) -> Result<usize, String> {
    let mut at = 1;
    while let Some(next) = rest[at..].chars().next() {
        match next {
            _ if next == quote => return Ok(at + 1),
            '\\' => at += 1 + rest[at + 1..].chars().next().map_or(0, char::len_utf8),
            '\n' if quote != '`' => break,
            _ => at += next.len_utf8(),
        }
    }
    Err("a literal has no end".to_owned())
}

/// The length of a pattern with its flags.
fn pattern(rest: &str) -> Result<usize, String> {
    let (mut at, mut in_class) = (1, false);
    while let Some(next) = rest[at..].chars().next() {
        match next {
            '/' if !in_class => {
                let flags = rest[at + 1..].bytes().take_while(u8::is_ascii_alphabetic).count();
                return Ok(at + 1 + flags);
            }
            '\n' => break,
            '\\' => at += rest[at + 1..].chars().next().map_or(0, char::len_utf8),
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        at += next.len_utf8();
    }
    Err("a pattern has no end".to_owned())
}

/// Returns whether a value, rather than an operator, can follow.
fn begins_operand(last: Option<&Token<'_>>) -> bool {
    last.is_none_or(|last| match last.kind {
        Kind::Operator => !matches!(last.text, ")" | "]" | "}"),
        Kind::Word => matches!(last.text, "return" | "typeof" | "case" | "in" | "of" | "new"),
        _ => false,
    })
}

/// The place behind the bracket that closes the one at `at`.
///
/// # Errors
/// If none does.
pub(super) fn after_bracket(tokens: &[Token<'_>], at: usize) -> Result<usize, String> {
    let mut open = Vec::new();
    for (place, token) in tokens.iter().enumerate().skip(at) {
        if token.kind != Kind::Operator {
            continue;
        }
        match token.text {
            "(" | "[" | "{" => open.push(token.text),
            ")" | "]" | "}" => {
                let pair = [open.pop().unwrap_or_default(), token.text].concat();
                if !["()", "[]", "{}"].contains(&pair.as_str()) {
                    return Err("brackets do not match".to_owned());
                }
                if open.is_empty() {
                    return Ok(place + 1);
                }
            }
            _ => {}
        }
    }
    Err("a bracket is not closed".to_owned())
}

/// The parts of tokens between commas outside of brackets; none for no tokens.
///
/// # Errors
/// If brackets do not match.
pub(super) fn parts<'a, 't>(tokens: &'a [Token<'t>]) -> Result<Vec<&'a [Token<'t>]>, String> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(token) = tokens.get(at) {
        if token.is(",") {
            parts.push(&tokens[start..at]);
            start = at + 1;
        }
        let is_open = token.is("(") || token.is("[") || token.is("{");
        at = if is_open { after_bracket(tokens, at)? } else { at + 1 };
    }
    if !tokens.is_empty() {
        parts.push(&tokens[start..]);
    }
    Ok(parts)
}

//! Calls as Python source: a list of calls with named arguments. `python_values` makes values of them.

use std::iter::Peekable;

use karat_metrics::calls::Call;

use super::python_values::{Constant, Expression, arguments, level, name_of};

/// The deepest nesting, as in Python's own reader.
const MAX_DEPTH: usize = 200;
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];
/// Longer ones first.
const OPERATORS: [&str; 33] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", ":=", "->", "...", "(", ")", "[", "]", "{",
    "}", ",", ":", ".", "=", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">",
];

/// Reads `[f(a=1), g.h(b='x')]`.
///
/// # Errors
/// If the text is anything else.
pub(super) fn calls(text: &str) -> Result<Vec<Call<'static>>, String> {
    let tokens = tokenize(text.trim())?;
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), depth: 0 };
    let whole = parser.expression()?;
    if let Some(token) = parser.tokens.next() {
        return Err(format!("{token:?} after the list of calls"));
    }
    let Expression::List(elements) = whole else { return Err("not a list of calls".to_owned()) };
    let call = |element: Expression| match element {
        Expression::Call { function, named, .. } => {
            Ok(Call::new(name_of(&function), arguments(&named)?))
        }
        _ => Err("an element of the list is not a call".to_owned()),
    };
    elements.into_iter().map(call).collect()
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Constant(Constant),
    /// A literal with expressions in it.
    Formatted,
    Operator(&'static str),
}

fn tokenize(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens: Vec<Token> = Vec::new();
    let (mut rest, mut open) = (text, Vec::new());
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            ' ' | '\t' | '\x0C' => {
                rest = &rest[1..];
                continue;
            }
            '\n' | '\r' if !open.is_empty() => {
                rest = &rest[1..];
                continue;
            }
            '#' => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '\\' if rest[1..].starts_with('\n') => {
                rest = &rest[2..];
                continue;
            }
            '0'..='9' => number(rest)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest)?,
            '\'' | '"' => string("", rest)?,
            _ if first == '_' || first.is_alphabetic() => name(rest)?,
            _ => {
                let operator = OPERATORS.into_iter().find(|operator| rest.starts_with(operator));
                let Some(operator) = operator else { return Err(format!("{first:?}")) };
                (Token::Operator(operator), &rest[operator.len()..])
            }
        };
        match &token {
            Token::Operator(bracket @ ("(" | "[" | "{")) => open.push(*bracket),
            Token::Operator(bracket @ (")" | "]" | "}")) => {
                let pair = [open.pop().unwrap_or_default(), *bracket].concat();
                if !["()", "[]", "{}"].contains(&pair.as_str()) {
                    return Err(format!("{bracket:?} does not close anything"));
                }
            }
            _ => {}
        }
        if open.len() >= MAX_DEPTH {
            return Err("too many brackets".to_owned());
        }
        rest = after;
        tokens.push(token);
    }
    if open.is_empty() { Ok(tokens) } else { Err("a bracket is not closed".to_owned()) }
}

fn name(rest: &str) -> Result<(Token, &str), String> {
    let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    let lower = word.to_ascii_lowercase();
    let is_prefix = matches!(&*lower, "r" | "b" | "u" | "f" | "br" | "rb" | "fr" | "rf");
    if is_prefix && after.starts_with(['\'', '"']) {
        return string(&lower, after);
    }
    let token = match word {
        "True" => Token::Constant(Constant::Bool(true)),
        "False" => Token::Constant(Constant::Bool(false)),
        "None" => Token::Constant(Constant::None),
        _ => Token::Name(word.to_owned()),
    };
    Ok((token, after))
}

/// A string literal; `prefix` is in lower case.
fn string<'t>(prefix: &str, rest: &'t str) -> Result<(Token, &'t str), String> {
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    let quotes = if rest.starts_with(&triple) { &*triple } else { quote };
    let body = &rest[quotes.len()..];
    let mut at = 0;
    let end = loop {
        let Some(next) = body[at..].chars().next() else {
            return Err("a string has no end".to_owned());
        };
        match next {
            _ if body[at..].starts_with(quotes) => break at,
            '\\' => {
                at += 1;
                at += body[at..].chars().next().map_or(0, char::len_utf8);
            }
            '\n' | '\r' if quotes.len() == 1 => return Err("a string has no end".to_owned()),
            _ => at += next.len_utf8(),
        }
    };
    let after = &body[end + quotes.len()..];
    let body = &body[..end];
    if prefix.contains('f') {
        return Ok((Token::Formatted, after));
    }
    let text = if prefix.contains('r') { body.to_owned() } else { unescaped(body)? };
    let constant = if prefix.contains('b') { Constant::Strange } else { Constant::Text(text) };
    Ok((Token::Constant(constant), after))
}

fn unescaped(body: &str) -> Result<String, String> {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escaped) = rest.chars().next() else { break };
        rest = &rest[escaped.len_utf8()..];
        let hex = match escaped {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if hex > 0 {
            let digits = rest.get(..hex).and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let Some(code) = digits.filter(|code| *code <= 0x0010_FFFF) else {
                return Err(format!("\\{escaped} without its {hex} digits"));
            };
            // Half of a pair is not a character, and equals none.
            out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = &rest[hex..];
            continue;
        }
        match escaped {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(escaped),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0C'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0B'),
            '0'..='7' => {
                let more = rest.bytes().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let digits = format!("{escaped}{}", &rest[..more]);
                let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                rest = &rest[more..];
            }
            'N' => return Err("a character by its name".to_owned()),
            other => out.extend(['\\', other]),
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn number(rest: &str) -> Result<(Token, &str), String> {
    let wrong = || Err(format!("{:?} is not a number", rest.chars().take(20).collect::<String>()));
    let lower: String = rest.chars().take(2).collect::<String>().to_ascii_lowercase();
    let radix = match &*lower {
        "0x" => 16,
        "0o" => 8,
        "0b" => 2,
        _ => 10,
    };
    let bytes = rest.as_bytes();
    let mut at = if radix == 10 { 0 } else { 2 };
    let digits = |mut at: usize| {
        let is_digit = |at: usize| bytes.get(at).is_some_and(|b| char::from(*b).is_digit(radix));
        while is_digit(at) || (bytes.get(at) == Some(&b'_') && is_digit(at + 1)) {
            at += 1;
        }
        at
    };
    if radix != 10 && bytes.get(at) == Some(&b'_') {
        at += 1;
    }
    let start = at;
    at = digits(at);
    let mut is_float = false;
    if radix == 10 {
        if bytes.get(at) == Some(&b'.') {
            (is_float, at) = (true, digits(at + 1));
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let end = digits(at + 1 + sign);
            if end > at + 1 + sign {
                (is_float, at) = (true, end);
            }
        }
    }
    let text = rest[start..at].replace('_', "");
    let mut constant = if is_float {
        Constant::Float(text.parse().or_else(|_| format!("0{text}").parse()).unwrap_or(f64::NAN))
    } else if text.is_empty()
        || (radix == 10
            && text.len() > 1
            && text.starts_with('0')
            && text.contains(|c: char| c != '0'))
    {
        return wrong();
    } else {
        match i128::from_str_radix(&text, radix) {
            Ok(int) => Constant::Int(int),
            Err(_) if radix == 10 => Constant::Large(text.trim_start_matches('0').to_owned()),
            Err(_) => return wrong(),
        }
    };
    if radix == 10 && matches!(bytes.get(at), Some(b'j' | b'J')) {
        (constant, at) = (Constant::Strange, at + 1);
    }
    let after = &rest[at..];
    let word: String = after.chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect();
    if !word.is_empty() && !["and", "else", "for", "if", "in", "is", "not", "or"].contains(&&*word)
    {
        return wrong();
    }
    Ok((Token::Constant(constant), after))
}

struct Parser<T: Iterator<Item = Token>> {
    tokens: Peekable<T>,
    depth: usize,
}

impl<T: Iterator<Item = Token>> Parser<T> {
    fn is(&mut self, operator: &str) -> bool {
        matches!(self.tokens.peek(), Some(Token::Operator(next)) if *next == operator)
    }

    fn is_word(&mut self, word: &str) -> bool {
        matches!(self.tokens.peek(), Some(Token::Name(next)) if next == word)
    }

    fn takes(&mut self, operator: &str) -> bool {
        self.tokens.next_if(|token| matches!(token, Token::Operator(o) if *o == operator)).is_some()
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.tokens.next_if(|token| matches!(token, Token::Name(name) if name == word)).is_some()
    }

    fn expect(&mut self, operator: &str) -> Result<(), String> {
        match self.takes(operator) {
            true => Ok(()),
            false => Err(format!("{operator:?} is missing")),
        }
    }

    fn deeper<R>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<R, String>,
    ) -> Result<R, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// A whole expression: a condition, a lambda, or what [`Parser::binary`] reads.
    fn expression(&mut self) -> Result<Expression, String> {
        self.deeper(|parser| {
            if parser.takes_word("lambda") {
                while !parser.is(":") {
                    parser.tokens.next().ok_or("a lambda has no body")?;
                }
                parser.expect(":")?;
                parser.expression()?;
                return Ok(Expression::Other);
            }
            let value = parser.binary(0)?;
            if parser.takes_word("if") {
                parser.binary(0)?;
                if !parser.takes_word("else") {
                    return Err("`else` is missing".to_owned());
                }
                parser.expression()?;
                return Ok(Expression::Other);
            }
            Ok(value)
        })
    }

    /// The next operator between two operands, and its level.
    fn operator(&mut self) -> Option<(&'static str, u8)> {
        match self.tokens.peek()? {
            Token::Operator(operator) => Some((*operator, level(operator)?)),
            Token::Name(word) => match word.as_str() {
                "or" => Some(("or", 1)),
                "and" => Some(("and", 2)),
                "in" => Some(("in", 4)),
                "is" => Some(("is", 4)),
                "not" => Some(("not in", 4)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Operands with operators of at least this level between them.
    fn binary(&mut self, least: u8) -> Result<Expression, String> {
        let mut left = self.unary()?;
        while let Some((operator, level)) = self.operator().filter(|(_, level)| *level >= least) {
            self.tokens.next();
            if operator == "not in" && !self.takes_word("in") {
                return Err("`not` between two values".to_owned());
            }
            if operator == "is" {
                self.takes_word("not");
            }
            let right = self.deeper(|parser| parser.binary(level + 1))?;
            left = match level {
                ..=4 => Expression::Other,
                _ => Expression::Binary(Box::new(left), operator, Box::new(right)),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, String> {
        if self.takes_word("not") {
            let operand = self.deeper(|parser| parser.binary(3))?;
            return Ok(Expression::Unary("not", Box::new(operand)));
        }
        for operator in ["+", "-", "~"] {
            if self.takes(operator) {
                let operand = self.deeper(Self::unary)?;
                return Ok(Expression::Unary(operator, Box::new(operand)));
            }
        }
        let is_awaited = self.takes_word("await");
        let base = self.primary()?;
        let base = if is_awaited { Expression::Other } else { base };
        if self.takes("**") {
            let exponent = self.deeper(Self::unary)?;
            return Ok(Expression::Binary(Box::new(base), "**", Box::new(exponent)));
        }
        Ok(base)
    }

    /// A value with attributes, calls and indices behind it.
    fn primary(&mut self) -> Result<Expression, String> {
        let mut value = self.atom()?;
        loop {
            if self.takes(".") {
                match self.tokens.next() {
                    Some(Token::Name(name)) if !KEYWORDS.contains(&&*name) => {
                        value = Expression::Attribute(Box::new(value), name);
                    }
                    _ => return Err("a name is missing after a dot".to_owned()),
                }
            } else if self.takes("(") {
                value = self.call(value)?;
            } else if self.takes("[") {
                let index = self.index()?;
                value = Expression::Subscript(Box::new(value), Box::new(index));
            } else {
                return Ok(value);
            }
        }
    }

    fn atom(&mut self) -> Result<Expression, String> {
        match self.tokens.next() {
            Some(Token::Name(name)) if KEYWORDS.contains(&&*name) => {
                Err(format!("`{name}` is not a value"))
            }
            Some(Token::Name(name)) => Ok(Expression::Name(name)),
            Some(Token::Formatted) => {
                while self.literal().is_some() {}
                Ok(Expression::Other)
            }
            Some(Token::Constant(Constant::Text(mut text))) => {
                let mut plain = true;
                while let Some(next) = self.literal() {
                    match next {
                        Token::Constant(Constant::Text(more)) => text.push_str(&more),
                        Token::Formatted => plain = false,
                        _ => return Err("text and bytes together".to_owned()),
                    }
                }
                Ok(if plain {
                    Expression::Constant(Constant::Text(text))
                } else {
                    Expression::Other
                })
            }
            Some(Token::Constant(constant)) => Ok(Expression::Constant(constant)),
            Some(Token::Operator("...")) => Ok(Expression::Constant(Constant::Ellipsis)),
            Some(Token::Operator("(")) => self.parenthesised(),
            Some(Token::Operator("[")) => {
                let (elements, plain) = self.elements("]")?;
                Ok(if plain { Expression::List(elements) } else { Expression::Other })
            }
            Some(Token::Operator("{")) => self.braces(),
            Some(token) => Err(format!("{token:?} where a value belongs")),
            None => Err("a value is missing".to_owned()),
        }
    }

    /// A further string literal, which is joined with the one before it.
    fn literal(&mut self) -> Option<Token> {
        let is_text =
            |token: &Token| matches!(token, Token::Constant(Constant::Text(_)) | Token::Formatted);
        self.tokens.next_if(is_text)
    }

    /// An element of a list or an argument: it may be starred or named on the way.
    fn element(&mut self) -> Result<Expression, String> {
        if self.takes("*") {
            self.binary(5)?;
            return Ok(Expression::Starred);
        }
        let value = self.expression()?;
        if self.takes(":=") {
            self.expression()?;
            return Ok(Expression::Other);
        }
        Ok(value)
    }

    /// Elements up to a bracket; false if they are those of a comprehension.
    fn elements(&mut self, end: &str) -> Result<(Vec<Expression>, bool), String> {
        let mut elements = Vec::new();
        while !self.takes(end) {
            elements.push(self.element()?);
            if self.comprehension()? {
                self.expect(end)?;
                return Ok((elements, false));
            }
            if !self.takes(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok((elements, true))
    }

    fn parenthesised(&mut self) -> Result<Expression, String> {
        if self.takes(")") {
            return Ok(Expression::Tuple(Vec::new()));
        }
        if self.takes_word("yield") {
            while !self.is(")") {
                self.tokens.next().ok_or("a bracket is not closed")?;
            }
            self.expect(")")?;
            return Ok(Expression::Other);
        }
        let first = self.element()?;
        if self.comprehension()? {
            self.expect(")")?;
            return Ok(Expression::Other);
        }
        if self.takes(")") {
            return Ok(first);
        }
        self.expect(",")?;
        let (more, plain) = self.elements(")")?;
        match plain {
            true => Ok(Expression::Tuple(std::iter::once(first).chain(more).collect())),
            false => Err("a comprehension in a tuple".to_owned()),
        }
    }

    fn braces(&mut self) -> Result<Expression, String> {
        let mut pairs = Vec::new();
        let mut is_set = false;
        while !self.takes("}") {
            if self.takes("**") {
                pairs.push((None, self.binary(5)?));
            } else {
                let key = self.element()?;
                if pairs.is_empty() && !self.is(":") {
                    is_set = true;
                }
                if is_set {
                    pairs.push((None, key));
                } else {
                    self.expect(":")?;
                    pairs.push((Some(key), self.expression()?));
                }
            }
            if self.comprehension()? {
                self.expect("}")?;
                return Ok(Expression::Other);
            }
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(if is_set { Expression::Other } else { Expression::Dict(pairs) })
    }

    /// Passes over `for x in y if z`; false if there is none.
    fn comprehension(&mut self) -> Result<bool, String> {
        let mut any = false;
        loop {
            self.takes_word("async");
            if !self.takes_word("for") {
                return Ok(any);
            }
            any = true;
            self.binary(5)?;
            while self.takes(",") {
                if !self.is_word("in") {
                    self.binary(5)?;
                }
            }
            if !self.takes_word("in") {
                return Err("`in` is missing".to_owned());
            }
            self.binary(0)?;
            while self.takes_word("if") {
                self.binary(0)?;
            }
        }
    }

    fn call(&mut self, function: Expression) -> Result<Expression, String> {
        let function = Box::new(function);
        let (mut positional, mut named) = (Vec::new(), Vec::new());
        while !self.takes(")") {
            if self.takes("**") {
                named.push((None, self.expression()?));
            } else {
                let value = self.element()?;
                match value {
                    Expression::Name(name) if self.takes("=") => {
                        named.push((Some(name), self.expression()?));
                    }
                    value => {
                        let is_starred = matches!(value, Expression::Starred);
                        if !named.is_empty() && !is_starred {
                            return Err("a positional argument after a named one".to_owned());
                        }
                        let value = if self.comprehension()? { Expression::Other } else { value };
                        positional.push(value);
                    }
                }
            }
            if !self.takes(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(Expression::Call { function, positional, named })
    }

    fn index(&mut self) -> Result<Expression, String> {
        let mut parts = Vec::new();
        let mut several = false;
        while !self.takes("]") {
            let first = if self.is(":") { None } else { Some(self.element()?) };
            let mut bounds = vec![first];
            while self.takes(":") {
                let is_open = self.is(":") || self.is(",") || self.is("]");
                bounds.push(if is_open { None } else { Some(self.expression()?) });
            }
            match (bounds.len(), bounds.pop()) {
                (1, Some(Some(index))) => parts.push(index),
                (2 | 3, Some(last)) => {
                    bounds.push(last);
                    parts.push(Expression::Slice(bounds));
                }
                _ => return Err("an index with too many bounds".to_owned()),
            }
            if !self.takes(",") {
                self.expect("]")?;
                break;
            }
            several = true;
        }
        match (parts.pop(), several) {
            (None, _) => Err("an index is missing".to_owned()),
            (Some(part), false) => Ok(part),
            (Some(part), true) => {
                parts.push(part);
                Ok(Expression::Tuple(parts))
            }
        }
    }
}

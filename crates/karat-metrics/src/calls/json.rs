//! A JSON reader for [`Value`]s: exact, fast and bounded.
//!
//! It exists because no other reader is all three: serde_json without `arbitrary_precision`
//! (which would change every other crate of the workspace) turns integers above 64 bits into floats
//! before a visitor sees them, and catching them through `RawValue` reads every number twice; the
//! readers that keep big integers build trees with an allocation per node. This one accepts exactly
//! the JSON of RFC 8259, borrows strings from the text, lets callers skip what they do not need, and
//! rejects nesting beyond a limit. It does not accept comments, `NaN`, or half of a surrogate pair.

use std::borrow::Cow;

use super::value::{BigInt, Kind, Object, ObjectBuilder, Value};

/// The default limit for the nesting of lists and objects.
pub const DEPTH_LIMIT: usize = 128;

/// Reads a text that contains one JSON value.
///
/// ```
/// use karat_metrics::calls::json;
///
/// assert_eq!(json::parse(r#"{"a": 1.0}"#)?.to_string(), r#"{"a":1.0}"#);
/// assert_eq!(json::parse("[1,]").unwrap_err().offset, 3);
/// # Ok::<(), karat_metrics::calls::json::JsonError>(())
/// ```
///
/// # Errors
/// If the text is not valid JSON, nests deeper than [`DEPTH_LIMIT`], or continues after the value.
pub fn parse(text: &str) -> Result<Value<'_>, JsonError> {
    let mut reader = Reader::new(text);
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

/// A problem of a text, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The problem.
    pub problem: Problem,
    /// The byte of the text, counted from 0.
    pub offset: usize,
}

/// A problem of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// A character that is not allowed here.
    UnexpectedCharacter,
    /// Something that begins like a number but is not one.
    InvalidNumber,
    /// A backslash that is not followed by a known escape.
    InvalidEscape,
    /// Half of a surrogate pair, which is not a character.
    LoneSurrogate,
    /// A control character inside a string, which must be escaped.
    ControlCharacter,
    /// Lists and objects nest deeper than the limit.
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Something follows the value.
    TrailingText,
    /// A value of another kind than the requested one.
    WrongKind {
        /// The requested kind.
        expected: Kind,
        /// The kind of the value.
        found: Kind,
    },
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.problem {
            Problem::UnexpectedEnd => f.write_str("the text ends inside a value"),
            Problem::UnexpectedCharacter => f.write_str("unexpected character"),
            Problem::InvalidNumber => f.write_str("invalid number"),
            Problem::InvalidEscape => f.write_str("invalid escape in a string"),
            Problem::LoneSurrogate => f.write_str("half of a surrogate pair in a string"),
            Problem::ControlCharacter => f.write_str("unescaped control character in a string"),
            Problem::TooDeep { limit } => write!(f, "lists and objects nest deeper than {limit}"),
            Problem::TrailingText => f.write_str("text after the value"),
            Problem::WrongKind { expected, found } => {
                write!(f, "expected {expected}, found {found}")
            }
        }?;
        write!(f, " at byte {}", self.offset)
    }
}

impl std::error::Error for JsonError {}

/// Walks through a JSON text, value by value. Do not use a reader after an error.
///
/// ```
/// use karat_metrics::calls::json::{JsonError, Reader};
///
/// let mut names = Vec::new();
/// let mut reader = Reader::new(r#"[{"name": "a", "size": 1}, {"name": "b"}]"#);
/// reader.list(|reader| {
///     reader.object(|reader, key| {
///         if key == "name" { names.push(reader.string()?) } else { reader.skip()? }
///         Ok::<(), JsonError>(())
///     })
/// })?;
/// reader.end()?;
/// assert_eq!(names, ["a", "b"]);
/// # Ok::<(), JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    depth_limit: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of the text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self::with_depth_limit(text, DEPTH_LIMIT)
    }

    /// Creates a reader that rejects lists and objects nested deeper than `depth_limit`.
    #[must_use]
    pub fn with_depth_limit(text: &'a str, depth_limit: usize) -> Self {
        Reader { text, at: 0, depth: 0, depth_limit }
    }

    /// Returns the kind of the next value, without reading it.
    ///
    /// # Errors
    /// If the text ends.
    #[inline]
    pub fn peek(&mut self) -> Result<Kind, JsonError> {
        self.skip_space();
        match self.byte() {
            Some(b'"') => Ok(Kind::String),
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::List),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            _ => self.fail_here(),
        }
    }

    /// Reads an object, passing each key to `entry`, which must read or skip its value. A repeated key is
    /// passed again.
    ///
    /// # Errors
    /// If the next value is not a valid object, or `entry` fails.
    pub fn object<E: From<JsonError>>(
        &mut self,
        entry: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.entries(Self::string_body, entry)
    }

    /// Reads an object, its keys by `read_key`.
    #[inline]
    fn entries<K, E: From<JsonError>>(
        &mut self,
        read_key: impl Fn(&mut Self) -> Result<K, JsonError>,
        mut entry: impl FnMut(&mut Self, K) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(Kind::Object)?;
        self.skip_space();
        if self.byte() == Some(b'}') {
            self.close();
            return Ok(());
        }
        loop {
            if self.byte() != Some(b'"') {
                self.fail_here()?;
            }
            let key = read_key(self)?;
            self.skip_space();
            if self.byte() != Some(b':') {
                self.fail_here()?;
            }
            self.at += 1;
            entry(self, key)?;
            self.skip_space();
            match self.byte() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => self.fail_here()?,
            }
            self.skip_space();
        }
        self.close();
        Ok(())
    }

    /// Reads a list, calling `item` before each value, which it must read or skip.
    ///
    /// # Errors
    /// If the next value is not a valid list, or `item` fails.
    pub fn list<E: From<JsonError>>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(Kind::List)?;
        self.skip_space();
        if self.byte() == Some(b']') {
            self.close();
            return Ok(());
        }
        loop {
            item(self)?;
            self.skip_space();
            match self.byte() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => self.fail_here()?,
            }
        }
        self.close();
        Ok(())
    }

    /// Reads a string.
    ///
    /// # Errors
    /// If the next value is not a valid string.
    pub fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.expect(Kind::String)?;
        self.string_body()
    }

    /// Reads an object into memory.
    ///
    /// # Errors
    /// If the next value is not a valid object.
    pub fn read_object(&mut self) -> Result<Object<'a>, JsonError> {
        let mut builder = ObjectBuilder::default();
        self.object(|reader, key| {
            let value = reader.value()?;
            builder.insert(key, value);
            Ok::<(), JsonError>(())
        })?;
        Ok(builder.finish())
    }

    /// Reads an object into memory and returns its text with it.
    pub(super) fn object_and_text(&mut self) -> Result<(&'a str, Object<'a>), JsonError> {
        self.expect(Kind::Object)?;
        let start = self.at;
        let object = self.read_object()?;
        Ok((&self.text[start..self.at], object))
    }

    /// Skips an object and returns its text, which has been checked and can be read later.
    ///
    /// # Errors
    /// If the next value is not a valid object.
    pub fn object_text(&mut self) -> Result<&'a str, JsonError> {
        self.expect(Kind::Object)?;
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    /// Reads a value of any kind.
    ///
    /// # Errors
    /// If the next value is not valid.
    pub fn value(&mut self) -> Result<Value<'a>, JsonError> {
        self.skip_space();
        match self.byte() {
            Some(b'"') => self.string_body().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true").map(|()| Value::Bool(true)),
            Some(b'f') => self.literal("false").map(|()| Value::Bool(false)),
            Some(b'n') => self.literal("null").map(|()| Value::Null),
            Some(b'{') => self.read_object().map(Value::Object),
            Some(b'[') => self.read_list(),
            _ => self.fail_here(),
        }
    }

    fn read_list(&mut self) -> Result<Value<'a>, JsonError> {
        let mut items = Vec::new();
        self.list(|reader| {
            items.push(reader.value()?);
            Ok::<(), JsonError>(())
        })?;
        Ok(Value::List(items))
    }

    /// Skips a value, as strictly as if it were read.
    ///
    /// # Errors
    /// If the next value is not valid.
    pub fn skip(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        match self.byte() {
            Some(b'"') => self.skip_string(),
            Some(b'-' | b'0'..=b'9') => self.scan_number().map(drop),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'{') => self.entries(Self::skip_string, |reader, ()| reader.skip()),
            Some(b'[') => self.list(Self::skip),
            _ => self.fail_here(),
        }
    }

    /// Skips a `null`; returns `false`, without moving, if the next value is another one.
    ///
    /// # Errors
    /// If the text ends.
    pub fn skip_null(&mut self) -> Result<bool, JsonError> {
        if self.peek()? != Kind::Null {
            return Ok(false);
        }
        self.literal("null")?;
        Ok(true)
    }

    /// Checks that only white space is left.
    ///
    /// # Errors
    /// If anything else is left.
    pub fn end(mut self) -> Result<(), JsonError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { self.fail(Problem::TrailingText, self.at) }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, expected: Kind) -> Result<(), JsonError> {
        let found = self.peek()?;
        if found == expected {
            return Ok(());
        }
        self.fail(Problem::WrongKind { expected, found }, self.at)
    }

    #[inline]
    fn open(&mut self, kind: Kind) -> Result<(), JsonError> {
        self.expect(kind)?;
        if self.depth == self.depth_limit {
            return self.fail(Problem::TooDeep { limit: self.depth_limit }, self.at);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn close(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    #[inline]
    fn literal(&mut self, word: &'static str) -> Result<(), JsonError> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        self.not_literal(word)
    }

    #[cold]
    fn not_literal(&mut self, word: &'static str) -> Result<(), JsonError> {
        let rest = self.text.as_bytes()[self.at..].iter();
        self.at += rest.zip(word.as_bytes()).take_while(|(a, b)| a == b).count();
        self.fail_here()
    }

    /// Reads the string whose opening quote is here.
    #[inline]
    fn string_body(&mut self) -> Result<Cow<'a, str>, JsonError> {
        match self.plain_string() {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.unescaped(self.at + 1),
        }
    }

    /// The same for a string without escapes; for any other, `None` without moving.
    #[inline]
    fn plain_string(&mut self) -> Option<&'a str> {
        let body = self.text.get(self.at + 1..)?;
        let length = plain_length(body.as_bytes());
        if body.as_bytes().get(length) != Some(&b'"') {
            return None;
        }
        self.at += length + 2;
        body.get(..length)
    }

    #[cold]
    fn unescaped(&mut self, start: usize) -> Result<Cow<'a, str>, JsonError> {
        let mut unescaped = String::new();
        self.escaped_string(start, |part| match part {
            Part::Plain(text) => unescaped.push_str(text),
            Part::Escaped(character) => unescaped.push(character),
        })?;
        Ok(Cow::Owned(unescaped))
    }

    #[inline]
    fn skip_string(&mut self) -> Result<(), JsonError> {
        match self.plain_string() {
            Some(_) => Ok(()),
            None => self.escaped_string(self.at + 1, |_| ()),
        }
    }

    /// Walks through a string piece by piece, from after its opening quote to after its closing one.
    fn escaped_string(
        &mut self,
        start: usize,
        mut part: impl FnMut(Part<'a>),
    ) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        self.at = start;
        loop {
            let end = self.at + plain_length(&bytes[self.at..]);
            part(Part::Plain(&self.text[self.at..end]));
            self.at = end;
            match bytes.get(end) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => part(Part::Escaped(self.escape()?)),
                Some(_) => return self.fail(Problem::ControlCharacter, end),
                None => return self.fail(Problem::UnexpectedEnd, end),
            }
        }
    }

    /// Reads the escape whose backslash is here.
    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 2;
        let simple = match self.text.as_bytes().get(start + 1) {
            Some(b'u') => return self.unicode_escape(start),
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(_) => return self.fail(Problem::InvalidEscape, start),
            None => return self.fail(Problem::UnexpectedEnd, start + 1),
        };
        Ok(simple)
    }

    /// Reads the four digits after `\u`, and the second half of a surrogate pair after a first one.
    fn unicode_escape(&mut self, start: usize) -> Result<char, JsonError> {
        let first = self.hexadecimal(start)?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let is_first_half = (0xd800..0xdc00).contains(&first);
        if !is_first_half || !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            return self.fail(Problem::LoneSurrogate, start);
        }
        self.at += 2;
        let second = self.hexadecimal(start)?;
        if !(0xdc00..0xe000).contains(&second) {
            return self.fail(Problem::LoneSurrogate, start);
        }
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        char::from_u32(code).ok_or(JsonError { problem: Problem::LoneSurrogate, offset: start })
    }

    fn hexadecimal(&mut self, start: usize) -> Result<u32, JsonError> {
        let Some(digits) = self.text.as_bytes().get(self.at..self.at + 4) else {
            return self.fail(Problem::UnexpectedEnd, self.text.len());
        };
        let mut code = 0;
        for &digit in digits {
            let Some(value) = char::from(digit).to_digit(16) else {
                return self.fail(Problem::InvalidEscape, start);
            };
            code = code * 16 + value;
        }
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<Value<'a>, JsonError> {
        let start = self.at;
        let number = self.scan_number()?;
        let text = &self.text[start..self.at];
        if number.is_float {
            let float = text.parse();
            return float
                .map(Value::Float)
                .map_err(|_| JsonError { problem: Problem::InvalidNumber, offset: start });
        }
        if let Some(magnitude) = number.magnitude {
            return Ok(Value::Int(if number.is_negative { -magnitude } else { magnitude }));
        }
        Ok(match text.parse() {
            Ok(int) => Value::Int(int),
            Err(_) => Value::BigInt(BigInt::from_checked(text)),
        })
    }

    /// Skips a number, checking its form.
    #[inline]
    fn scan_number(&mut self) -> Result<Number, JsonError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let is_negative = bytes.get(start) == Some(&b'-');
        self.at += usize::from(is_negative);
        let first = self.at;
        let mut magnitude = 0_i64;
        while let Some(digit @ b'0'..=b'9') = bytes.get(self.at) {
            // Wraps only where there are too many digits to use it.
            magnitude = magnitude.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - first;
        if digits == 0 || (digits > 1 && bytes[first] == b'0') {
            let at_end = digits == 0 && self.at == bytes.len();
            let problem = if at_end { Problem::UnexpectedEnd } else { Problem::InvalidNumber };
            return self.fail(problem, start);
        }
        let mut is_float = false;
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            is_float = true;
            self.scan_digits(start)?;
        }
        if let Some(b'e' | b'E') = bytes.get(self.at) {
            self.at += 1;
            is_float = true;
            if let Some(b'+' | b'-') = bytes.get(self.at) {
                self.at += 1;
            }
            self.scan_digits(start)?;
        }
        // Eighteen digits always fit.
        let magnitude = (digits <= 18).then_some(magnitude);
        Ok(Number { is_negative, is_float, magnitude })
    }

    fn scan_digits(&mut self, start: usize) -> Result<(), JsonError> {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            let problem =
                if rest.is_empty() { Problem::UnexpectedEnd } else { Problem::InvalidNumber };
            return self.fail(problem, start);
        }
        self.at += digits;
        Ok(())
    }

    #[cold]
    fn fail_here<T>(&self) -> Result<T, JsonError> {
        let at_end = self.at >= self.text.len();
        let problem = if at_end { Problem::UnexpectedEnd } else { Problem::UnexpectedCharacter };
        self.fail(problem, self.at)
    }

    #[cold]
    fn fail<T>(&self, problem: Problem, offset: usize) -> Result<T, JsonError> {
        Err(JsonError { problem, offset })
    }
}

/// A piece of a string: plain text, or the character of an escape.
enum Part<'a> {
    Plain(&'a str),
    Escaped(char),
}

/// The form of a number.
struct Number {
    is_negative: bool,
    is_float: bool,
    /// Of an integer with few enough digits.
    magnitude: Option<i64>,
}

/// The number of bytes of plain text: up to a quote, a backslash, a control character or the end.
/// Compares eight bytes at a time.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let mut rest = bytes;
    while let Some((word, following)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let below_space = word.wrapping_sub(ONES * 0x20);
        let quote = (word ^ (ONES * u64::from(b'"'))).wrapping_sub(ONES);
        let backslash = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
        // A byte is marked where the subtraction borrowed. That can also mark bytes above a true hit,
        // so the lowest mark is right. Bytes from 0x80 up are never hits.
        let marks = (below_space | quote | backslash) & !word & HIGH;
        if marks != 0 {
            return bytes.len() - rest.len() + marks.trailing_zeros() as usize / 8;
        }
        rest = following;
    }
    bytes.len() - rest.len() + plain_length_of_few(rest)
}

/// The same for the last bytes of a text.
#[cold]
fn plain_length_of_few(bytes: &[u8]) -> usize {
    let is_plain = |&&byte: &&u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    bytes.iter().take_while(is_plain).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn problem(text: &str) -> (Problem, usize) {
        let error = parse(text).map(|value| value.to_string()).unwrap_err();
        // Skipping must be exactly as strict as reading.
        let mut reader = Reader::new(text);
        let skipped = reader.skip().and_then(|()| reader.end()).unwrap_err();
        assert_eq!(error, skipped, "{text}");
        (error.problem, error.offset)
    }

    #[test]
    fn numbers_keep_their_kind_and_every_digit() {
        for text in [
            "0",
            "-1",
            "1.0",
            "-0.0",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "-9223372036854775809",
            "123456789012345678901234567890",
            "1e22",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert!(matches!(parse("-0").unwrap(), Value::Int(0)));
        assert!(matches!(parse("1e999").unwrap(), Value::Float(f64::INFINITY)));
        assert!(matches!(
            parse("999999999999999999").unwrap(),
            Value::Int(999_999_999_999_999_999)
        ));
    }

    #[test]
    fn strings_are_unescaped() {
        let value =
            parse(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 plain tail beyond eight""#).unwrap();
        let expected = "a\"\\/\u{8}\u{c}\n\r\t\u{e9}\u{1f600} plain tail beyond eight";
        assert!(value.identical(&Value::from(expected)), "{value}");
    }

    #[test]
    fn a_string_without_escapes_is_borrowed() {
        let value = parse(" \"text \u{e9}\" ").unwrap();
        assert!(matches!(value, Value::String(Cow::Borrowed("text \u{e9}"))));
    }

    #[test]
    fn invalid_json_is_rejected_at_the_first_wrong_byte() {
        assert_eq!(problem(""), (Problem::UnexpectedEnd, 0));
        assert_eq!(problem("[1,"), (Problem::UnexpectedEnd, 3));
        assert_eq!(problem("{\"a\":1,}"), (Problem::UnexpectedCharacter, 7));
        assert_eq!(problem("{\"a\" 1}"), (Problem::UnexpectedCharacter, 5));
        assert_eq!(problem("{a:1}"), (Problem::UnexpectedCharacter, 1));
        assert_eq!(problem("[1 2]"), (Problem::UnexpectedCharacter, 3));
        assert_eq!(problem("nul"), (Problem::UnexpectedEnd, 3));
        assert_eq!(problem("trux"), (Problem::UnexpectedCharacter, 3));
        assert_eq!(problem("NaN"), (Problem::UnexpectedCharacter, 0));
        assert_eq!(problem("01"), (Problem::InvalidNumber, 0));
        assert_eq!(problem("1.x"), (Problem::InvalidNumber, 0));
        assert_eq!(problem("-"), (Problem::UnexpectedEnd, 0));
        assert_eq!(problem("1e"), (Problem::UnexpectedEnd, 0));
        assert_eq!(problem("\"abc"), (Problem::UnexpectedEnd, 4));
        assert_eq!(problem("\"a\u{1}\""), (Problem::ControlCharacter, 2));
        assert_eq!(problem("\"a long text with a\nbreak\""), (Problem::ControlCharacter, 19));
        assert_eq!(problem(r#""\x""#), (Problem::InvalidEscape, 1));
        assert_eq!(problem(r#""\u12g4""#), (Problem::InvalidEscape, 1));
        assert_eq!(problem(r#""\ud800""#), (Problem::LoneSurrogate, 1));
        assert_eq!(problem(r#""\ud800\u0041""#), (Problem::LoneSurrogate, 1));
        assert_eq!(problem(r#""\udc00""#), (Problem::LoneSurrogate, 1));
        assert_eq!(problem("1 1"), (Problem::TrailingText, 2));
    }

    #[test]
    fn nesting_is_allowed_up_to_the_limit_and_not_beyond() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEPTH_LIMIT)).is_ok());
        let beyond = nested(DEPTH_LIMIT + 1);
        assert_eq!(problem(&beyond), (Problem::TooDeep { limit: DEPTH_LIMIT }, DEPTH_LIMIT));
    }

    #[test]
    fn an_error_shows_the_kind_that_was_found() {
        let error = Reader::new(" 3").string().unwrap_err();
        assert_eq!(error.to_string(), "expected a string, found a number at byte 1");
    }
}

//! The columns of lines, separated by any white space, and their values.
//!
//! Most of the time is spent here. So the separators of a whole block are marked first, eight bytes at
//! a time, and columns are then found from mark to mark.

use super::error::{LineProblem, TrecError, quote};
use super::input::{Block, Blocks};

/// A judgement or a result, as in its line.
#[derive(Debug, PartialEq)]
pub(super) struct Record<'a, V> {
    pub(super) query: &'a [u8],
    pub(super) document: &'a [u8],
    pub(super) value: V,
    /// The line, from 1.
    pub(super) line: u64,
}

/// The value that a line gives to a query and a document. Both formats have the query in the first
/// column and the document in the third.
pub(super) trait Value: Copy {
    /// The names of the columns.
    const FORMAT: &'static str;
    /// The number of columns.
    const COLUMNS: usize;
    /// The column of the value, from 0.
    const COLUMN: usize;

    /// Parses the value.
    fn read(text: &str) -> Option<Self>;

    /// The problem of a text that is not a value.
    fn wrong(text: String) -> LineProblem;

    /// The problem of a document that appears twice for a query.
    fn duplicate(query: String, document: String, first: u64) -> LineProblem;
}

/// A judgement: the relevance.
impl Value for i64 {
    const FORMAT: &'static str = "qid 0 docid relevance";
    const COLUMNS: usize = 4;
    const COLUMN: usize = 3;

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn wrong(text: String) -> LineProblem {
        LineProblem::Relevance { text }
    }

    fn duplicate(query: String, document: String, first: u64) -> LineProblem {
        LineProblem::DuplicateJudgement { query, document, first }
    }
}

/// A result: the score.
impl Value for f64 {
    const FORMAT: &'static str = "qid Q0 docid rank score tag";
    const COLUMNS: usize = 6;
    const COLUMN: usize = 4;

    fn read(text: &str) -> Option<Self> {
        let parsed = || text.parse().ok().filter(|score: &Self| score.is_finite());
        short_decimal(text.as_bytes()).or_else(parsed)
    }

    fn wrong(text: String) -> LineProblem {
        LineProblem::Score { text }
    }

    fn duplicate(query: String, document: String, first: u64) -> LineProblem {
        LineProblem::DuplicateResult { query, document, first }
    }
}

/// A decimal number of at most fifteen digits and without an exponent, as nearly every score is; `None` for
/// any other text. Its digits as a whole number and the power of ten are both exact, so the one division rounds
/// as `str::parse` does, in a third of the time.
fn short_decimal(text: &[u8]) -> Option<f64> {
    const POWERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    // Fifteen digits and a point.
    if digits.len() > 16 {
        return None;
    }
    let (mut number, mut point) = (0_u64, None);
    for (place, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(place),
            _ => return None,
        }
    }
    let (count, decimals) = match point {
        Some(place) => (digits.len() - 1, digits.len() - 1 - place),
        None => (digits.len(), 0),
    };
    if !(1..=15).contains(&count) {
        return None;
    }
    let value = number as f64 / POWERS[decimals];
    Some(if digits.len() < text.len() { -value } else { value })
}

/// The largest number of columns of a format.
const MAX_COLUMNS: usize = 6;

/// The columns of a line: their number, and the positions of the first ones in the block.
#[derive(Debug, Default, PartialEq)]
struct Columns {
    count: usize,
    first: [(usize, usize); MAX_COLUMNS],
}

/// The records of a file, one by one. Blank lines are skipped.
pub(super) struct Records<'i> {
    blocks: Blocks<'i>,
    marks: Marks,
    /// The columns of the current line.
    columns: Columns,
    /// The start of the next line in the block.
    start: usize,
    /// The number of lines so far.
    lines: u64,
}

impl<'i> Records<'i> {
    pub(super) fn new(blocks: Blocks<'i>) -> Self {
        Self { blocks, marks: Marks::default(), columns: Columns::default(), start: 0, lines: 0 }
    }

    /// Reads the next record; `None` at the end of the file.
    pub(super) fn next<V: Value>(&mut self) -> Result<Option<Record<'_, V>>, TrecError> {
        loop {
            if self.start == self.blocks.present().bytes.len() {
                self.blocks.lines = self.lines;
                self.start = 0;
                let Some(bytes) = self.blocks.next()? else { return Ok(None) };
                self.marks.set(bytes);
                self.blocks.recognise_text();
            }
            self.split_line();
            if self.columns.count > 0 {
                break;
            }
        }
        let record = read_record(self.blocks.present(), &self.columns, self.lines);
        record.map(Some).map_err(|problem| self.blocks.input.line_error(self.lines, problem))
    }

    /// Moves from separator to separator up to the end of the line.
    fn split_line(&mut self) {
        let bytes = self.blocks.present().bytes;
        let (mut start, mut count) = (self.start, 0);
        for end in &mut self.marks {
            let byte = bytes[end];
            if !is_space(byte) {
                // A control character that is not white space is part of the column.
                continue;
            }
            if start < end {
                if let Some(column) = self.columns.first.get_mut(count) {
                    *column = (start, end);
                }
                count += 1;
            }
            start = end + 1;
            if byte == b'\n' {
                break;
            }
        }
        self.columns.count = count;
        self.start = start;
        self.lines += 1;
    }
}

fn read_record<'a, V: Value>(
    block: Block<'a>,
    columns: &Columns,
    line: u64,
) -> Result<Record<'a, V>, LineProblem> {
    if columns.count != V::COLUMNS {
        return Err(LineProblem::Columns { found: columns.count, expected: V::FORMAT });
    }
    let [query, _, document, ..] = columns.first;
    if block.text.is_none() {
        for (column, id) in [("query id", query), ("document id", document)] {
            if text(block, id).is_none() {
                return Err(LineProblem::NotUtf8 { column, text: quote(&block.bytes[id.0..id.1]) });
            }
        }
    }
    let value = columns.first[V::COLUMN];
    let Some(value) = text(block, value).and_then(V::read) else {
        return Err(V::wrong(quote(&block.bytes[value.0..value.1])));
    };
    let (query, document) = (&block.bytes[query.0..query.1], &block.bytes[document.0..document.1]);
    Ok(Record { query, document, value, line })
}

/// A column as text, if it is UTF-8.
fn text(block: Block<'_>, (start, end): (usize, usize)) -> Option<&str> {
    match block.text {
        Some(text) => text.get(start..end),
        None => std::str::from_utf8(&block.bytes[start..end]).ok(),
    }
}

/// The query of a line, whatever its other columns are; `None` for a blank line.
pub(super) fn first_column(line: &[u8]) -> Option<&[u8]> {
    line.split(|byte| is_space(*byte)).find(|column| !column.is_empty())
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

/// The places in a block that may separate columns: the space and all control characters.
#[derive(Default)]
struct Marks {
    /// A bit for each byte.
    words: Vec<u64>,
    /// The current word, and its bits that are left.
    word: usize,
    left: u64,
}

impl Marks {
    /// Marks another block and starts at its beginning.
    fn set(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<64>();
        self.words.clear();
        self.words.extend(chunks.iter().map(separators));
        let mut last = [b'x'; 64];
        last[..rest.len()].copy_from_slice(rest);
        self.words.push(separators(&last));
        self.word = 0;
        self.left = self.words[0];
    }
}

impl Iterator for Marks {
    type Item = usize;

    /// The next marked place.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            self.word += 1;
            self.left = *self.words.get(self.word)?;
        }
        let bit = self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some(self.word * 64 + bit)
    }
}

/// A bit for each byte up to the space character.
fn separators(bytes: &[u8; 64]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const LOW_BITS: u64 = ONES * 0x7f;
    // Brings one bit of each byte together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().rev().fold(0, |marks, eight| {
        let word = u64::from_le_bytes(*eight);
        // The high bit of each byte: set if its low bits are above the space character.
        let above = (word & LOW_BITS) + ONES * (0x7f - b' ' as u64);
        let found = !(above | word) & !LOW_BITS;
        marks << 8 | ((found >> 7).wrapping_mul(GATHER) >> 56)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::input::Input;

    /// Query, document, value and line.
    type Owned<V> = (String, String, V, u64);

    /// All records of a file, or its first problem with the line.
    fn records<V: Value>(content: &[u8]) -> Result<Vec<Owned<V>>, (u64, LineProblem)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, content).unwrap();
        let input = Input::file(&path);
        let mut records = Records::new(input.open().unwrap());
        let mut all = Vec::new();
        loop {
            match records.next::<V>() {
                Ok(Some(record)) => {
                    let id = |id: &[u8]| String::from_utf8(id.to_vec()).unwrap();
                    all.push((id(record.query), id(record.document), record.value, record.line));
                }
                Ok(None) => return Ok(all),
                Err(TrecError::Line { line, problem, .. }) => return Err((line, problem)),
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn result(line: &[u8]) -> Result<f64, LineProblem> {
        records(line).map(|all| all[0].2).map_err(|(_, problem)| problem)
    }

    fn judgement(line: &[u8]) -> Result<i64, LineProblem> {
        records(line).map(|all| all[0].2).map_err(|(_, problem)| problem)
    }

    #[test]
    fn any_white_space_separates() {
        for text in [
            "q1 Q0 server:tool 1 2.5 tag",
            "q1\tQ0\tserver:tool\t1\t2.5\ttag\r\n",
            "  q1 Q0   server:tool \t1 2.5 tag  \n",
            "q1\x0bQ0\x0cserver:tool 1 2.5 tag",
        ] {
            let expected = vec![("q1".to_owned(), "server:tool".to_owned(), 2.5, 1)];
            assert_eq!(records(text.as_bytes()), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn a_control_character_is_part_of_an_id() {
        let expected = vec![("q\x01".to_owned(), "\x1f\0d".to_owned(), 1, 1)];
        assert_eq!(records(b"q\x01 0 \x1f\0d 1"), Ok(expected));
    }

    #[test]
    fn lines_are_counted_and_blank_ones_skipped() {
        let all = records::<i64>(b"\na 0 x 1\r\n  \t\nb 0 y 2\n\n").unwrap();
        let lines: Vec<_> = all.iter().map(|(_, _, value, line)| (*line, *value)).collect();
        assert_eq!(lines, [(2, 1), (4, 2)]);
    }

    #[test]
    fn a_wrong_number_of_columns_is_counted_within_the_line() {
        for (text, found) in [("q1 Q0 d 1 2.5", 5), ("q1 Q0 d 1 2.5 my tag here", 8), ("q1", 1)] {
            let problem = LineProblem::Columns { found, expected: "qid Q0 docid rank score tag" };
            let content = format!("q1 Q0 d 1 2.5 tag\n{text}\nq1 Q0 e 1 2.5 tag\n");
            assert_eq!(records::<f64>(content.as_bytes()), Err((2, problem)));
        }
    }

    #[test]
    fn each_format_names_all_of_its_columns() {
        assert_eq!(i64::FORMAT.split(' ').count(), i64::COLUMNS);
        assert_eq!(f64::FORMAT.split(' ').count(), f64::COLUMNS);
    }

    #[test]
    fn a_relevance_is_a_whole_number() {
        for (text, value) in [("1", 1), ("-2", -2), ("0", 0), ("+3", 3)] {
            assert_eq!(judgement(format!("q 0 d {text}").as_bytes()), Ok(value));
        }
        for wrong in ["1.9", "x", "1e3", "99999999999999999999", "1_0"] {
            let problem = LineProblem::Relevance { text: format!("{wrong:?}") };
            assert_eq!(judgement(format!("q 0 d {wrong}").as_bytes()), Err(problem));
        }
    }

    #[test]
    fn a_score_is_a_finite_number() {
        for (text, value) in [("1", 1.0), ("-2.5e-3", -0.0025), (".5", 0.5), ("+3.", 3.0)] {
            assert_eq!(result(format!("q Q0 d 1 {text} t").as_bytes()), Ok(value));
        }
        for wrong in ["nan", "inf", "-Infinity", "1e999", "high", "1,5", "0x10", "-", "."] {
            let problem = LineProblem::Score { text: format!("{wrong:?}") };
            assert_eq!(result(format!("q Q0 d 1 {wrong} t").as_bytes()), Err(problem));
        }
    }

    #[test]
    fn an_id_that_is_not_utf8_is_rejected_with_its_column() {
        let problem = |column| LineProblem::NotUtf8 { column, text: quote(b"\xff") };
        assert_eq!(result(b"\xff Q0 d 1 1 t"), Err(problem("query id")));
        assert_eq!(judgement(b"q 0 \xff 1"), Err(problem("document id")));
        assert_eq!(result("q Q0 Ω 1 1 t".as_bytes()), Ok(1.0));
        // The tag is not read.
        assert_eq!(result(b"q Q0 \xce\xa9 1 1 \xff"), Ok(1.0));
    }

    #[test]
    fn a_blank_line_has_no_query() {
        assert_eq!(first_column(b" \t\r"), None);
        assert_eq!(first_column(b""), None);
        assert_eq!(first_column(b"  q1 Q0"), Some(&b"q1"[..]));
    }

    #[test]
    fn anything_but_a_short_decimal_is_left_to_the_parser() {
        for text in
            ["", "-", ".", "-.", "+1", "1e5", "1.2.3", "--1", "1-", "nan", "1234567890123456"]
        {
            assert_eq!(short_decimal(text.as_bytes()), None, "{text}");
        }
        for text in ["123456789012345", "0.00000000000001", "-0", "007", "5.", ".5", "-12.3456"] {
            assert!(short_decimal(text.as_bytes()).is_some(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_short_decimal_has_the_same_bits_as_the_parser_gives(
            text in "-?[0-9]{0,10}[.]?[0-9]{0,10}|[-+0-9.e]{0,9}",
        ) {
            if let Some(value) = short_decimal(text.as_bytes()) {
                prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()));
            }
        }

        #[test]
        fn every_byte_up_to_the_space_is_marked_and_no_other(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut marks = Marks::default();
            marks.set(&bytes);
            let expected: Vec<_> = (0..bytes.len()).filter(|place| bytes[*place] <= b' ').collect();
            prop_assert_eq!(marks.collect::<Vec<_>>(), expected);
        }
    }
}

//! JSON, indented, with a final newline.

use std::io::{self, Write};

use karat_core::report::{CheckReport, Report};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// The number of items of a document that is indented throughout. With more, an item is a line: half of
/// the bytes would be spaces.
const MAX_INDENTED: usize = 10_000;
/// The depth of items in the document of a check: `reports`, a report, its `items`.
const ITEMS_AT: usize = 4;

/// Any of Karat's documents. All of them can be JSON: no NaN, and strings as keys.
pub fn text(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_else(|_| "null".to_owned());
    text.push('\n');
    text
}

/// The same, written piece by piece: a report of many items as text is as large as the report again.
///
/// # Errors
/// If it cannot be written.
pub fn write(document: &impl Serialize, to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, document)?;
    to.write_all(b"\n")
}

/// A check, written piece by piece; where it has many items, each of them as one line.
///
/// # Errors
/// If it cannot be written.
pub fn write_check(check: &CheckReport, to: &mut dyn Write) -> io::Result<()> {
    let items: usize = check.reports.iter().map(|report| report.items.len()).sum();
    if items <= MAX_INDENTED {
        return write(check, to);
    }
    check.serialize(&mut Serializer::with_formatter(&mut *to, Lines::default()))?;
    to.write_all(b"\n")
}

/// Indents down to the items, each of which is one line.
#[derive(Default)]
struct Lines {
    pretty: PrettyFormatter<'static>,
    depth: usize,
}

impl Lines {
    fn is_item(&self) -> bool {
        self.depth > ITEMS_AT
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth += 1;
        match self.is_item() {
            true => to.write_all(b"["),
            false => self.pretty.begin_array(to),
        }
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        let item = self.is_item();
        self.depth -= 1;
        match item {
            true => to.write_all(b"]"),
            false => self.pretty.end_array(to),
        }
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        match (self.is_item(), first) {
            (false, _) => self.pretty.begin_array_value(to, first),
            (true, true) => Ok(()),
            (true, false) => to.write_all(b","),
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        match self.is_item() {
            true => Ok(()),
            false => self.pretty.end_array_value(to),
        }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth += 1;
        match self.is_item() {
            true => to.write_all(b"{"),
            false => self.pretty.begin_object(to),
        }
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        let item = self.is_item();
        self.depth -= 1;
        match item {
            true => to.write_all(b"}"),
            false => self.pretty.end_object(to),
        }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        match (self.is_item(), first) {
            (false, _) => self.pretty.begin_object_key(to, first),
            (true, true) => Ok(()),
            (true, false) => to.write_all(b","),
        }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        match self.is_item() {
            true => to.write_all(b":"),
            false => self.pretty.begin_object_value(to),
        }
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        match self.is_item() {
            true => Ok(()),
            false => self.pretty.end_object_value(to),
        }
    }
}

/// One report as an element of a check's `reports`, for a document that is written piece by piece.
pub fn element(report: &Report, first: bool) -> String {
    let text = text(report);
    let mut element = String::with_capacity(text.len() + text.len() / 4);
    element.push_str(if first { "\n" } else { ",\n" });
    // Texts in JSON have no line ends of their own.
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            element.push('\n');
        }
        element.push_str("    ");
        element.push_str(line);
    }
    element
}

/// The text before and after the elements of a check's `reports`; the reports that it has are left out.
pub fn around(check: &CheckReport) -> (String, String) {
    const REPORTS: &str = "\"reports\": [";
    let CheckReport { schema, source, verdict, reports, not_measured, leaderboards } = check;
    let whole = text(&CheckReport {
        schema: schema.clone(),
        source: source.clone(),
        verdict: *verdict,
        reports: Vec::new(),
        not_measured: not_measured.clone(),
        leaderboards: leaderboards.clone(),
    });
    let (before, after) = whole.split_once(REPORTS).unwrap_or((&whole, ""));
    let gap = if reports.is_empty() { "" } else { "\n  " };
    (format!("{before}{REPORTS}"), format!("{gap}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_many_is_one_line_and_the_document_is_the_same() {
        let written = |pretty: bool, document: &serde_json::Value| {
            let mut out = Vec::new();
            let done = match pretty {
                true => write(document, &mut out),
                false => document
                    .serialize(&mut Serializer::with_formatter(&mut out, Lines::default()))
                    .map_err(Into::into),
            };
            done.unwrap();
            String::from_utf8(out).unwrap()
        };
        let document = serde_json::json!({"a": [], "reports": [{"items": [
            {"id": "1", "metrics": {"x": 1.0, "y": [1, 2, {}]}}, {"id": "2", "tags": {}}], "z": null}]});
        let lines = written(false, &document);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&lines).unwrap(), document);
        let item = r#"        {"id":"1","metrics":{"x":1.0,"y":[1,2,{}]}},"#;
        assert!(lines.lines().any(|line| line == item), "{lines}");
        // Above the items nothing differs.
        let empty = serde_json::json!({"a": [1], "reports": [{"items": []}]});
        assert_eq!(written(false, &empty), written(true, &empty).trim_end());
    }

    #[test]
    fn a_document_in_pieces_is_the_document() {
        let none = CheckReport::of(Vec::new());
        let (before, after) = around(&none);
        assert_eq!(before + &after, text(&none));
        let mut written = Vec::new();
        write(&none, &mut written).unwrap();
        assert_eq!(written, text(&none).into_bytes());
    }
}

//! TOML 1.1.
//!
//! The document is parsed once into a tree with places; depth, non-finite numbers and dates are refused
//! there, and the type is made from the tree. Dates are refused because no format here has them and serde
//! would deliver them as strange objects.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue, Deserializer, Error};
use serde::de::DeserializeOwned;

use super::erased;
use super::place::{Fault, FaultKind, place};
use super::{InputError, Limits};

/// The depth limit of the TOML parser, within one value and within one dotted key.
const PARSER_DEPTH: usize = 80;

/// Reads one TOML document.
pub(super) fn parse<T: DeserializeOwned + Send>(text: &str, depth: usize) -> Result<T, Fault> {
    typed(text, checked(text, depth)?)
}

/// Parses a document and refuses what no format of ours has.
fn checked(text: &str, depth: usize) -> Result<Spanned<DeTable<'_>>, Fault> {
    let document = DeTable::parse(text).map_err(|error| unparsed(text, &error, depth))?;
    Check { depth }
        .table(document.get_ref(), &document.span(), 1)
        .map_err(|(span, kind)| fault(text, &span, kind))?;
    Ok(document)
}

fn typed<T: DeserializeOwned + Send>(text: &str, table: Spanned<DeTable<'_>>) -> Result<T, Fault> {
    erased::typed(|make| {
        erased::read(Deserializer::from(table), make).map_err(|error| {
            let span = error.span().unwrap_or_default();
            fault(text, &span, FaultKind::from_serde(error.message()))
        })
    })
}

fn fault(text: &str, span: &Range<usize>, kind: FaultKind) -> Fault {
    let (line, column) = place(text, span.start);
    Fault { line, column, kind }
}

fn unparsed(text: &str, error: &Error, depth: usize) -> Fault {
    let message = error.message();
    if message.contains("recursion limit") || message.contains("recursion depth") {
        // The error for a long dotted key has no place: it is on the first line with that many dots.
        let dotted = || {
            let deep = |line: &str| line.matches('.').count() >= PARSER_DEPTH;
            let line = text.split('\n').take_while(|line| !deep(line)).map(|l| l.len() + 1).sum();
            line..line
        };
        let span = error.span().unwrap_or_else(dotted);
        return fault(text, &span, FaultKind::TooDeep(depth.min(PARSER_DEPTH)));
    }
    let span = error.span().unwrap_or_default();
    let kind = if message.starts_with("duplicate key") {
        let key = text.get(span.clone()).unwrap_or_default();
        FaultKind::DuplicateKey(key.trim_matches(['"', '\'']).to_owned())
    } else {
        FaultKind::Syntax(message.to_owned())
    };
    fault(text, &span, kind)
}

/// A place and the fault there.
type Refused = (Range<usize>, FaultKind);

/// A TOML table that is read piece by piece, with the place of every mistake.
pub struct TomlTable<'a> {
    path: &'a Path,
    text: &'a str,
    table: Spanned<DeTable<'a>>,
}

impl<'a> TomlTable<'a> {
    /// Parses a document.
    ///
    /// # Errors
    /// If the text is not TOML, or too deep.
    pub fn parse(path: &'a Path, text: &'a str) -> Result<TomlTable<'a>, InputError> {
        let table = checked(text, Limits::default().depth()).map_err(|fault| fault.at(path))?;
        Ok(TomlTable { path, text, table })
    }

    /// The keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.table.get_ref().keys().map(|key| key.get_ref().as_ref())
    }

    /// The line on which the table begins, or that of one of its keys.
    pub fn line(&self, key: Option<&str>) -> u64 {
        let keys = self.table.get_ref().keys();
        let named = key.and_then(|key| keys.into_iter().find(|known| known.get_ref() == key));
        let start = named.map_or_else(|| self.table.span().start, |key| key.span().start);
        place(self.text, start).0
    }

    /// The keys of a table inside this one, with their lines; empty if there is no such table.
    pub fn lines_under(&self, path: &[&str]) -> Vec<(String, u64)> {
        let mut table = self.table.get_ref();
        for key in path {
            match table.get(*key).map(Spanned::get_ref) {
                Some(DeValue::Table(inner)) => table = inner,
                _ => return Vec::new(),
            }
        }
        let line = |start| place(self.text, start).0;
        table.keys().map(|key| (key.get_ref().to_string(), line(key.span().start))).collect()
    }

    /// Takes out the keys for which `belongs` holds, as a table of their own.
    pub fn split(&mut self, belongs: impl Fn(&str) -> bool) -> TomlTable<'a> {
        let span = self.table.span();
        let whole = std::mem::take(self.table.get_mut());
        let (taken, left): (DeTable<'a>, DeTable<'a>) =
            whole.into_iter().partition(|(key, _)| belongs(key.get_ref()));
        *self.table.get_mut() = left;
        TomlTable { path: self.path, text: self.text, table: Spanned::new(span, taken) }
    }

    /// Moves a value to another place; a place is the keys that lead to it. With a `unit`, a number becomes a
    /// string with that unit. Returns the line of the earlier key, and the string. Nothing is moved from an empty
    /// place, or to a full one.
    pub fn rename(
        &mut self,
        from: &[&str],
        to: &[&str],
        unit: &str,
    ) -> Option<(u64, Option<String>)> {
        let ((key, path), (new, into)) = (from.split_last()?, to.split_last()?);
        if inner(self.table.get_mut(), into)?.contains_key(*new) {
            return None;
        }
        let (old, mut value) = inner(self.table.get_mut(), path)?.remove_entry(*key)?;
        let number = value.get_ref().as_integer().filter(|_| !unit.is_empty());
        let text = number.map(|number| format!("{number}{unit}"));
        if let Some(text) = &text {
            *value.get_mut() = DeValue::String(Cow::Owned(text.clone()));
        }
        let line = place(self.text, old.span().start).0;
        let new = Spanned::new(old.span(), Cow::Owned((*new).to_owned()));
        inner(self.table.get_mut(), into)?.insert(new, value);
        Some((line, text))
    }

    /// Takes out a list of tables (`[[key]]`); empty if the key is absent.
    ///
    /// # Errors
    /// If the key is something else.
    pub fn tables(&mut self, key: &str) -> Result<Vec<TomlTable<'a>>, InputError> {
        let Some(value) = self.table.get_mut().remove(key) else { return Ok(Vec::new()) };
        let wrong = |span: &Range<usize>| {
            let message = format!("`{key}` must be a list of tables: write [[{key}]]");
            fault(self.text, span, FaultKind::Mismatch(message)).at(self.path)
        };
        let span = value.span();
        let DeValue::Array(values) = value.into_inner() else { return Err(wrong(&span)) };
        let mut tables = Vec::with_capacity(values.len());
        for value in values {
            let span = value.span();
            let DeValue::Table(table) = value.into_inner() else { return Err(wrong(&span)) };
            let table = Spanned::new(span, table);
            tables.push(TomlTable { path: self.path, text: self.text, table });
        }
        Ok(tables)
    }

    /// Makes a type of the whole table.
    ///
    /// # Errors
    /// If it does not fit the type.
    pub fn into_type<T: DeserializeOwned + Send>(self) -> Result<T, InputError> {
        let TomlTable { path, text, table } = self;
        typed(text, table).map_err(|fault| fault.at(path))
    }

    /// An error about a key of this table that nothing reads.
    pub fn unknown_key(&self, key: &str, known: &[&str]) -> InputError {
        let known: Vec<String> = known.iter().map(|&known| known.to_owned()).collect();
        let kind = FaultKind::UnknownKey { key: key.to_owned(), known };
        Fault { line: self.line(Some(key)), column: 1, kind }.at(self.path)
    }
}

/// The table inside another one at the end of a path.
fn inner<'t, 'a>(table: &'t mut DeTable<'a>, path: &[&str]) -> Option<&'t mut DeTable<'a>> {
    path.iter().try_fold(table, |table, key| match table.get_mut(*key).map(Spanned::get_mut) {
        Some(DeValue::Table(inner)) => Some(inner),
        _ => None,
    })
}

/// Looks through a document. Recursion is bounded by the parser's own limits.
struct Check {
    depth: usize,
}

impl Check {
    fn table(
        &self,
        entries: &DeTable<'_>,
        span: &Range<usize>,
        level: usize,
    ) -> Result<(), Refused> {
        self.level(span, level)?;
        entries.iter().try_for_each(|(_, item)| self.value(item, level))
    }

    fn value(&self, item: &Spanned<DeValue<'_>>, level: usize) -> Result<(), Refused> {
        let span = item.span();
        match item.get_ref() {
            DeValue::Table(entries) => self.table(entries, &span, level + 1),
            DeValue::Array(items) => {
                self.level(&span, level + 1)?;
                items.iter().try_for_each(|item| self.value(item, level + 1))
            }
            DeValue::Float(number) if !number.as_str().parse().is_ok_and(f64::is_finite) => {
                let message = format!("`{number}` is not a finite number; leave the key out");
                Err((span, FaultKind::Syntax(message)))
            }
            DeValue::Datetime(date) => {
                let message = format!("put the date in quotes: \"{date}\"");
                Err((span, FaultKind::Syntax(message)))
            }
            _ => Ok(()),
        }
    }

    fn level(&self, span: &Range<usize>, level: usize) -> Result<(), Refused> {
        if level > self.depth {
            return Err((span.clone(), FaultKind::TooDeep(self.depth)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_value_moves_to_its_present_place_and_keeps_its_line() {
        let path = Path::new("karat.toml");
        let text = "name = \"r\"\nlimit = 5\nseconds = 60\n[system.mcp]\nstart = 7\n[both]\nold = 1\nnew = 2\n";
        let mut table = TomlTable::parse(path, text).unwrap();
        assert_eq!(table.rename(&["limit"], &["results"], ""), Some((2, None)));
        let time = Some((3, Some("60s".to_owned())));
        assert_eq!(table.rename(&["seconds"], &["time"], "s"), time);
        assert_eq!(table.rename(&["system", "mcp", "start"], &["start"], ""), Some((5, None)));
        // The present place is full; the earlier one is empty, or not in a table.
        assert_eq!(table.rename(&["both", "old"], &["both", "new"], ""), None);
        assert_eq!(table.rename(&["gone"], &["new"], ""), None);
        assert_eq!(table.rename(&["name", "old"], &["new"], ""), None);
        assert_eq!(table.line(Some("results")), 2);
        let read: Value = table.into_type().unwrap();
        assert_eq!(
            read,
            json!({"name": "r", "results": 5, "time": "60s", "start": 7, "system": {"mcp": {}},
                "both": {"old": 1, "new": 2}})
        );
    }
}

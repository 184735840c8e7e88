//! TOML 1.1.
//!
//! The document is parsed once into a tree with places; depth, non-finite numbers and dates are refused
//! there, and the type is made from the tree. Dates are refused because no format here has them and serde
//! would deliver them as strange objects.

use std::ops::Range;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue, Deserializer, Error};
use serde::de::DeserializeOwned;

use super::place::{Fault, FaultKind, place};

/// The depth limit of the TOML parser, within one value and within one dotted key.
const PARSER_DEPTH: usize = 80;

/// Reads one TOML document.
pub(super) fn parse<T: DeserializeOwned>(text: &str, depth: usize) -> Result<T, Fault> {
    let document = DeTable::parse(text).map_err(|error| unparsed(text, &error, depth))?;
    Check { depth }
        .table(document.get_ref(), &document.span(), 1)
        .map_err(|(span, kind)| fault(text, &span, kind))?;
    T::deserialize(Deserializer::from(document)).map_err(|error| {
        let span = error.span().unwrap_or_default();
        fault(text, &span, FaultKind::from_serde(error.message()))
    })
}

fn fault(text: &str, span: &Range<usize>, kind: FaultKind) -> Fault {
    let (line, column) = place(text, span.start);
    Fault { line, column, kind }
}

fn unparsed(text: &str, error: &Error, depth: usize) -> Fault {
    let message = error.message();
    if message.contains("recursion limit") || message.contains("recursion depth") {
        // The error for a long dotted key has no place: it is on the first line with so many dots.
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

/// Checks a document. Recursion is bounded by the limits of the parser.
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

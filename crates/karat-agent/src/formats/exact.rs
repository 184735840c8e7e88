//! Arguments with every recorded digit, where a parsed number would lose digits.
//!
//! Messages are read as values, whose numbers have 64 bits. Of a document with longer ones, the arguments of
//! the calls are taken from its text.

use serde_json::Value;

use crate::trace::fields::{Fields, is_list, is_object, is_string, list, typed};
use crate::trace::{Arguments, CallMade};

/// The fields that hold arguments, and the depth to which they are looked for, the same as for values.
const FIELDS: [&str; 5] = ["arguments", "input", "args", "parameters", "kwargs"];
const MAX_DEPTH: usize = 128;

/// The fields that hold the name of a tool.
const NAMES: [&str; 3] = ["name", "tool_name", "toolName"];

/// The number of digits that any number of 64 bits can have.
const SAFE_DIGITS: usize = 15;

/// Replaces arguments that were read from the document by their text in it.
pub(super) fn restore(document: &str, calls: &mut [CallMade]) {
    if calls.is_empty() || !has_long_number(document) {
        return;
    }
    let mut found = Vec::new();
    collect(document, MAX_DEPTH, &mut found);
    for call in calls {
        let Arguments::Object(read) = &call.arguments else { continue };
        let fits = |one: &Recorded<'_>| one.parsed == *read;
        let is_named = |one: &Recorded<'_>| one.name.as_deref() == Some(&*call.name);
        // A result can quote arguments; those have no name of a tool next to them.
        let at = found.iter().position(|one| fits(one) && is_named(one));
        if let Some(at) = at.or_else(|| found.iter().position(fits)) {
            call.arguments = Arguments::from_raw(found.remove(at).text);
        }
    }
}

/// As [`restore`], of one call whose arguments are the text or inside it.
pub(super) fn restore_one(text: &str, call: &mut CallMade) {
    if has_long_number(text) {
        restore(&format!("{{\"arguments\":{text}}}"), std::slice::from_mut(call));
    }
}

/// The JSON of a field of the document, if values would lose digits of its numbers. Each field on the path may
/// be a string with the JSON in it.
pub(super) fn long_text(document: &str, path: &[&str]) -> Option<String> {
    let Some((step, rest)) = path.split_first() else {
        return has_long_number(document).then(|| document.to_owned());
    };
    let field = Fields::parse(document).ok()?.raw(step)?;
    match is_string(field) {
        true => long_text(&typed::<String>(field).ok()?, rest),
        false => long_text(field, rest),
    }
}

/// Arguments with long numbers in a document.
struct Recorded<'a> {
    parsed: String,
    /// In the recorded notation.
    text: &'a str,
    /// The name that the same object has.
    name: Option<String>,
}

/// Adds the arguments with long numbers.
fn collect<'a>(text: &'a str, depth: usize, out: &mut Vec<Recorded<'a>>) {
    if depth == 0 || !has_long_number(text) {
        return;
    }
    if is_list(text) {
        for entry in list(text).unwrap_or_default() {
            collect(entry, depth - 1, out);
        }
    } else if is_object(text) {
        let Ok(fields) = Fields::parse(text) else { return };
        let tool = fields.each().find(|(name, _)| NAMES.contains(name));
        let tool: Option<String> = tool.and_then(|(_, value)| typed(value).ok());
        for (name, value) in fields.each() {
            if FIELDS.contains(&name)
                && is_object(value)
                && has_long_number(value)
                && let Ok(parsed) = typed::<Value>(value)
            {
                out.push(Recorded { parsed: parsed.to_string(), text: value, name: tool.clone() });
            }
            collect(value, depth - 1, out);
        }
    }
}

/// Returns whether there is a number, outside of strings, that may have more digits than are kept.
fn has_long_number(text: &str) -> bool {
    let (mut digits, mut quoted, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => (quoted, digits) = (!quoted, 0),
            _ if quoted => {}
            b'0'..=b'9' => digits += 1,
            b'.' => {}
            _ => digits = 0,
        }
        if digits > SAFE_DIGITS {
            return true;
        }
    }
    false
}

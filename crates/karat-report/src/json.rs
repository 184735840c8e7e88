//! JSON, indented, with a final newline.

use serde::Serialize;

/// Any of Karat's documents. All of them can be JSON: no NaN, and strings as keys.
pub fn text(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_else(|_| "null".to_owned());
    text.push('\n');
    text
}

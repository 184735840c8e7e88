//! The parameters of a call.

use std::path::PathBuf;

use serde_json::Value;

use super::confine::Folder;

/// A parameter that is text, if it is given.
pub(super) fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// A file of the project that a parameter names.
pub(super) fn file(
    arguments: &Value,
    name: &str,
    folder: &Folder,
) -> Result<Option<PathBuf>, String> {
    text(arguments, name).map(|path| folder.file(path)).transpose()
}

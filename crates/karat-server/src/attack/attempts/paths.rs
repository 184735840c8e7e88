//! The spellings of a path that leads out of the root.

use std::path::Path;

use crate::attack::parameters::Parameter;

/// A path with parent folders as a filter for `../` does not see it, or makes it.
pub(super) fn disguised(path: &str) -> [(&'static str, String); 3] {
    [
        ("parent folders, encoded", path.replace("../", "%2e%2e%2f")),
        ("parent folders, encoded twice", path.replace("../", "%252e%252e%252f")),
        ("parent folders, hidden from a filter", path.replace("../", "....//")),
    ]
}

/// The forms of a file URL. Python and others accept the second one too, where a filter looks for `file:///`.
pub(super) fn file_urls(path: &str) -> [String; 2] {
    [format!("file://{path}"), format!("file://localhost{path}")]
}

/// Adds file URLs to the forms of a path: first where an address is expected.
pub(super) fn with_file_urls(forms: &mut Vec<String>, parameter: &Parameter, path: &str) {
    let [url, on_host] = file_urls(path);
    if parameter.is_url() {
        forms.splice(0..0, [url, on_host]);
    } else {
        forms.push(url);
    }
}

/// A path from any folder to the root of the file system.
pub(in crate::attack) fn up() -> String {
    "../".repeat(12).trim_end_matches('/').to_owned()
}

/// The path of a file in the root or next to it, relative to the root.
pub(super) fn relative(root: &Path, path: &Path) -> Option<String> {
    if let Ok(inside) = path.strip_prefix(root) {
        return Some(inside.display().to_string());
    }
    let beside = path.strip_prefix(root.parent()?).ok()?;
    Some(format!("../{}", beside.display()))
}

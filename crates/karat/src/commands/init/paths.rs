//! Paths from one folder to another, for files that are read in a different folder than the one in which the
//! user wrote the path.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The path of an existing folder, from a folder that may still have to be made.
///
/// # Errors
/// If the first one is not a folder.
pub(super) fn from(folder: &Path, target: &Path) -> Result<PathBuf, String> {
    let wrong = |error: io::Error| format!("{}: {error}", target.display());
    let target_is = target.canonicalize().map_err(wrong)?;
    if !target_is.is_dir() {
        return Err(format!("{}: not a folder", target.display()));
    }
    let folder = std::path::absolute(folder).map_err(wrong)?;
    // Links are followed in both, as far as there is something.
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(&folder);
    let rest = folder.strip_prefix(there).unwrap_or(Path::new(""));
    let folder = joined(&there.canonicalize().map_err(wrong)?, rest);
    Ok(between(&folder, &target_is))
}

/// The path from one absolute path to another, as short as possible; `.` if they are the same.
fn between(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    // On Windows, another drive.
    if shared == 0 {
        return to.to_owned();
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(shared)).collect();
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

/// A path in a folder, without `.` and, as far as possible, without `..`.
pub(super) fn joined(folder: &Path, path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in folder.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(whole.components().next_back(), Some(Component::Normal(_))) =>
            {
                whole.pop();
            }
            other => whole.push(other),
        }
    }
    whole
}

/// A path with slashes on every system, as configurations of CI and karat.toml have it.
pub(super) fn slashes(path: &Path) -> String {
    path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_from_one_folder_to_the_other() {
        for (from, to, path) in [
            ("/a/b", "/a/b", "."),
            ("/a/b", "/a/b/c/d", "c/d"),
            ("/a/b", "/a/c", "../c"),
            ("/a/b/c", "/d", "../../../d"),
        ] {
            let found = between(Path::new(from), Path::new(to));
            assert_eq!(found, Path::new(path), "{from} {to}");
            assert_eq!(joined(Path::new(from), &found), Path::new(to), "{from} {to}");
        }
    }

    #[test]
    fn a_path_above_its_start_keeps_its_parents() {
        assert_eq!(joined(Path::new("tests"), Path::new("../../server")), Path::new("../server"));
        assert_eq!(joined(Path::new(""), Path::new(".")), Path::new(""));
    }
}

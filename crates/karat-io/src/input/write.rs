//! Atomic writing of files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use super::error::name;

/// Maximum number of links that are followed, as in the system.
const MAX_LINKS: usize = 40;

/// A file that could not be written. Its former content is unchanged.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {action}: {source}", name(path))]
pub struct WriteError {
    /// The file, or the folder that could not be created.
    pub path: PathBuf,
    /// The failed action: `be written`, `create the folder` and so on.
    pub action: &'static str,
    /// The error of the system.
    pub source: io::Error,
}

/// Writes a file atomically: into a temporary file in the same folder, flushed to disk, then renamed.
///
/// Missing folders are created. A symbolic link is followed, and stays. The permissions of an existing file
/// are kept; a new one gets the usual ones. A device or pipe (`/dev/stdout`) is written to directly.
///
/// # Errors
/// If any step fails. The temporary file is then removed, and the old file is unchanged.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let failed = |path: &Path, action| {
        let path = path.to_owned();
        move |source| WriteError { path, action, source }
    };
    let target = destination(path);
    let existing = fs::metadata(&target).ok();
    if let Some(existing) = &existing {
        if existing.is_dir() {
            let source = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(failed(path, "be written")(source));
        }
        if !existing.is_file() {
            let written = File::options().write(true).open(&target).and_then(|mut device| {
                device.write_all(bytes)?;
                device.flush()
            });
            return written.map_err(failed(path, "be written"));
        }
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let named = path.parent().unwrap_or(folder);
    fs::create_dir_all(folder).map_err(failed(named, "create the folder"))?;

    let mut temporary = new_file().tempfile_in(folder).map_err(failed(path, "be written"))?;
    temporary.write_all(bytes).map_err(failed(path, "be written"))?;
    if let Some(existing) = &existing {
        let permissions = temporary.as_file().set_permissions(existing.permissions());
        permissions.map_err(failed(path, "keep the permissions"))?;
    }
    temporary.as_file().sync_all().map_err(failed(path, "be flushed to disk"))?;
    temporary.persist(&target).map_err(|error| failed(path, "be put in place")(error.error))?;
    // The rename is durable once the folder is flushed, which not every system supports.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// The file that would be written: links are followed, also to files that do not exist yet, and missing
/// parts are folders that would be created.
pub fn destination(path: &Path) -> PathBuf {
    // A pipe exists and has no other name.
    if path.exists() {
        return fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    }
    let path = end_of_links(path);
    let existing = path.ancestors().find_map(|above| {
        let place = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        Some((fs::canonicalize(place).ok()?, path.strip_prefix(above).ok()?))
    });
    let Some((mut place, missing)) = existing else { return path };
    for part in missing.components() {
        match part {
            Component::ParentDir => _ = place.pop(),
            Component::CurDir => {}
            part => place.push(part),
        }
    }
    // `missing/../existing` exists.
    fs::canonicalize(&place).unwrap_or(place)
}

/// The end of a chain of links, which need not exist.
fn end_of_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&path) else { break };
        path = path.parent().map_or_else(|| next.clone(), |folder| folder.join(&next));
    }
    path
}

fn new_file() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".karat-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The user's umask takes away from this, as from any new file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

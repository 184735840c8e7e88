//! Writing a file so that it is there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::name;

/// Why a file could not be written. What was there before is still there.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {action}: {source}", name(path))]
pub struct WriteError {
    /// The file that should have been written, or the folder that could not be made.
    pub path: PathBuf,
    /// What failed: `be written`, `make the folder` and so on.
    pub action: &'static str,
    /// What the system said.
    pub source: io::Error,
}

/// Writes a file whole: into a temporary file beside it, flushed to disk, then renamed over it.
///
/// Missing folders are made. A symbolic link is followed, and stays. The permissions of an existing
/// file are kept; a new one gets the usual ones. A device or pipe (`/dev/stdout`) is written to
/// directly, never replaced.
///
/// # Errors
/// When any step fails; the temporary file is then removed and the old file untouched.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let failed = |path: &Path, action| {
        let path = path.to_owned();
        move |source| WriteError { path, action, source }
    };
    // Where a link leads to, so that the rename does not replace the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
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
    fs::create_dir_all(folder).map_err(failed(folder, "make the folder"))?;

    let mut temporary = new_file().tempfile_in(folder).map_err(failed(path, "be written"))?;
    temporary.write_all(bytes).map_err(failed(path, "be written"))?;
    if let Some(existing) = &existing {
        let permissions = temporary.as_file().set_permissions(existing.permissions());
        permissions.map_err(failed(path, "keep the permissions"))?;
    }
    temporary.as_file().sync_all().map_err(failed(path, "be flushed to disk"))?;
    temporary.persist(&target).map_err(|error| failed(path, "be put in place")(error.error))?;
    // The rename itself lasts only once the folder is on disk; not every system can flush a folder.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
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

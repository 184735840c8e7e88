//! Writing a file so that it is there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use super::error::name;

/// The longest chain of links that is followed, as the system has it.
const MOST_LINKS: usize = 40;

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
    fs::create_dir_all(folder).map_err(failed(named, "make the folder"))?;

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

/// The file that is really written under a name: links are followed, also one that leads to a file
/// that is not there yet, and what is missing is taken as the folders that would be made.
pub fn destination(path: &Path) -> PathBuf {
    // A pipe is there and has no other name.
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
    // `missing/../there` is there.
    fs::canonicalize(&place).unwrap_or(place)
}

/// What a chain of links names last, whether it is there or not.
fn end_of_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
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

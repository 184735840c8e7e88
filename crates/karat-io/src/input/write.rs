//! Writing of files: atomically, and never through a symbolic link.
//!
//! A repository is the work of others and can hold links. Every output of Karat goes through this module, so
//! that a link in the place of an output, or of a folder above it, does not lead a write to another file of
//! the user. What is above the project is the user's own, and links there are followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use super::error::name;
use super::temporary::Temporary;
use crate::platform::{self, is_of_the_system};

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
/// Missing folders are created. Symbolic links are refused, see [`refuse_links`]. The permissions of an
/// existing file are kept; a new one gets the usual ones. A device or pipe (`/dev/stdout`) is written to
/// directly.
///
/// # Errors
/// If any step fails. The temporary file is then removed, and the old file is unchanged.
///
/// # Examples
///
/// ```
/// use karat_io::input::{Limits, read_text, write_atomic};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("new/report.txt");
/// write_atomic(&path, b"done")?;
/// assert_eq!(read_text(&path, &Limits::default())?, "done");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write_atomic_with(path, |file| file.write_all(bytes))
}

/// The same for what need not be in memory as a whole.
///
/// # Errors
/// If any step fails. The temporary file is then removed, and the old file is unchanged.
pub fn write_atomic_with(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    let write = |file: &mut dyn Write| {
        let mut buffered = io::BufWriter::new(file);
        content(&mut buffered)?;
        buffered.flush()
    };
    refuse_links(path)?;
    let target = destination(path);
    let existing = fs::metadata(&target).ok();
    if let Some(existing) = &existing {
        if existing.is_dir() {
            let source = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(failed(path, "be written")(source));
        }
        if !existing.is_file() {
            let device = File::options().write(true).open(&target);
            let written = device.and_then(|mut device| write(&mut device));
            return written.map_err(failed(path, "be written"));
        }
    }
    let folder = folder_of(&target);
    let named = path.parent().unwrap_or(folder);
    fs::create_dir_all(folder).map_err(failed(named, "create the folder"))?;

    let mut temporary = Temporary::new(folder).map_err(failed(path, "be written"))?;
    write(temporary.as_file_mut()).map_err(failed(path, "be written"))?;
    if let Some(existing) = &existing {
        let permissions = temporary.as_file().set_permissions(existing.permissions());
        permissions.map_err(failed(path, "keep the permissions"))?;
    }
    temporary.as_file().sync_all().map_err(failed(path, "be flushed to disk"))?;
    temporary.persist(&target).map_err(failed(path, "be put in place"))?;
    // The rename is durable once the folder is flushed, which not every system supports.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Opens a file for writing in place: a journal, a recording. Missing folders are created, and so is the
/// file. Its content is kept; who starts anew sets its length to 0 once it is locked.
///
/// # Errors
/// If it is or is below a symbolic link, if it is not a regular file, or if it cannot be opened.
pub fn open_for_writing(path: &Path) -> Result<File, WriteError> {
    create_folder(folder_of(path))?;
    open_without_links(path, true)
}

/// Opens a file that exists as [`open_for_writing`] does. `None` if there is no such file.
///
/// # Errors
/// As those of [`open_for_writing`].
pub fn open_existing_for_writing(path: &Path) -> Result<Option<File>, WriteError> {
    match open_without_links(path, false) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_without_links(path: &Path, create: bool) -> Result<File, WriteError> {
    refuse_links(path)?;
    // Opening a pipe would wait for a reader.
    if let Ok(found) = fs::symlink_metadata(path)
        && !found.is_file()
        && !is_of_the_system(path)
    {
        let source = io::Error::other("it is not a regular file");
        return Err(failed(path, "be written")(source));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).truncate(false);
    if !is_of_the_system(path) {
        platform::do_not_follow(&mut options);
    }
    options.open(path).map_err(failed(path, "be written"))
}

/// Creates a folder for outputs, with those above it.
///
/// # Errors
/// If it is or is below a symbolic link, or cannot be created.
pub fn create_folder(folder: &Path) -> Result<(), WriteError> {
    refuse_links(folder)?;
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(failed(folder, "create the folder"))
}

/// Refuses a place for an output that is a symbolic link, or is below one that is part of the project.
///
/// The project is what is below the working folder, a folder with a `karat.toml`, or a git repository,
/// whichever is the largest; what is above it is the user's own. `/dev/stdout` and the like are links of the
/// system and can be named.
///
/// # Errors
/// Names the link.
pub fn refuse_links(path: &Path) -> Result<(), WriteError> {
    if is_of_the_system(path) || path.as_os_str().is_empty() {
        return Ok(());
    }
    let whole = std::path::absolute(path).map_err(failed(path, "be written"))?;
    let plain = lexically(&whole);
    let root = project_of(&plain);
    let mut passed = PathBuf::new();
    let mut shown = None;
    for part in whole.components() {
        match part {
            Component::ParentDir => _ = passed.pop(),
            part => passed.push(part),
        }
        let inside = root.as_ref().is_some_and(|root| passed.starts_with(root) && passed != *root);
        if (inside || passed == plain) && passed.is_symlink() {
            shown = Some(passed.clone());
            break;
        }
    }
    let Some(link) = shown else { return Ok(()) };
    let here = std::env::current_dir().unwrap_or_default();
    let link = link.strip_prefix(&here).map_or(link.clone(), Path::to_owned);
    let source = io::Error::other(
        "it is a symbolic link, and outputs are not written through links: remove it or choose another \
         place",
    );
    Err(WriteError { path: link, action: "be written", source })
}

/// The outermost folder above a path that may hold the work of others.
fn project_of(path: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    let marked = |folder: &Path| {
        let named = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
        here.as_deref() == Some(folder) || named("karat.toml") || named(".git")
    };
    let above = path.ancestors().skip(1).filter(|folder| folder.parent().is_some());
    above.filter(|folder| marked(folder)).last().map(Path::to_owned)
}

fn lexically(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> WriteError + use<> {
    let path = path.to_owned();
    move |source| WriteError { path, action, source }
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

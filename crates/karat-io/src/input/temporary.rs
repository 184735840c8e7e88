//! Temporary files next to the file that they become.
//!
//! A writer holds a lock on its temporary file. The lock ends with the process, even if it is killed, so a
//! file without a lock is stale, and the next writer in the folder removes it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use crate::platform;

const PREFIX: &str = ".karat-";
const SUFFIX: &str = ".tmp";
/// Number of characters between the two.
const RANDOM: usize = 6;
/// Maximum number of entries of a folder that are searched for stale files.
const MAX_ENTRIES: usize = 10_000;
/// Maximum number of files that are created until one is kept.
const MAX_ATTEMPTS: usize = 100;

/// A file that becomes another one, or is removed.
pub(crate) struct Temporary {
    file: NamedTempFile,
    _unfinished: Unfinished,
}

impl Temporary {
    /// Creates a file with the usual permissions.
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        Self::with(folder, platform::permissions_of_new_files())
    }

    /// Creates a file that only this user can read.
    pub(crate) fn private(folder: &Path) -> io::Result<Self> {
        Self::with(folder, None)
    }

    fn with(folder: &Path, permissions: Option<fs::Permissions>) -> io::Result<Self> {
        remove_stale(folder);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM);
        if let Some(permissions) = permissions {
            builder.permissions(permissions);
        }
        for _ in 0..MAX_ATTEMPTS {
            let file = builder.tempfile_in(folder)?;
            let unfinished = Unfinished::new(file.path());
            if is_ours(file.as_file(), file.path()) {
                return Ok(Temporary { file, _unfinished: unfinished });
            }
        }
        Err(io::Error::other("every temporary file was removed by another process"))
    }

    pub(crate) fn as_file(&self) -> &File {
        self.file.as_file()
    }

    pub(crate) fn as_file_mut(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Puts the file in the place of another one.
    pub(crate) fn persist(self, target: &Path) -> io::Result<()> {
        self.file.persist(target).map(drop).map_err(|error| error.error)
    }
}

/// Locks a new file. False if another process took it for stale before it was locked.
fn is_ours(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => fs::symlink_metadata(path).is_ok(),
        Err(TryLockError::WouldBlock) => false,
        // A file system without locks, on which no process removes stale files either.
        Err(TryLockError::Error(_)) => true,
    }
}

/// Removes what killed processes left in a folder, the first time this process writes there.
fn remove_stale(folder: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
        remove_stale_now(folder);
    }
}

fn remove_stale_now(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.take(MAX_ENTRIES).flatten() {
        if entry.file_name().to_str().is_some_and(is_temporary)
            && entry.file_type().is_ok_and(|kind| kind.is_file())
        {
            let _ = remove_unless_locked(&entry.path());
        }
    }
}

/// True for the names of temporary files, and no others.
fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    random.is_some_and(|part| {
        part.len() == RANDOM && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn remove_unless_locked(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // Opened for both, a pipe that has taken the place of the file does not wait for its other end.
    options.read(true).write(true);
    platform::do_not_follow(&mut options);
    let file = options.open(path)?;
    // The lock is held until the name is gone, so that a writer that has just created the file sees that it
    // has lost it.
    file.try_lock()?;
    fs::remove_file(path)
}

/// The temporary files that are being written.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files that are being written, for an exit on which nothing is dropped.
pub fn remove_unfinished() {
    for path in std::mem::take(&mut *unfinished()) {
        let _ = fs::remove_file(path);
    }
}

/// A temporary file, known until it is in place or removed.
struct Unfinished(PathBuf);

impl Unfinished {
    fn new(path: &Path) -> Self {
        unfinished().insert(path.to_owned());
        Unfinished(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn stale_files_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let kept = [
            ".karat-.tmp",
            ".karat-abc-ef.tmp",
            ".karat-abcdefg.tmp",
            ".karat-abcdef",
            "karat-abcdef.tmp",
            "report.json",
        ];
        for name in kept {
            fs::write(place(name), "of the user").unwrap();
        }
        fs::create_dir(place(".karat-folder.tmp")).unwrap();
        let before = names(folder.path());
        for name in [".karat-abcdef.tmp", ".karat-A1b2C3.tmp"] {
            fs::write(place(name), "torn").unwrap();
        }

        let mut written = Temporary::new(folder.path()).unwrap();
        written.as_file_mut().write_all(b"whole").unwrap();
        assert_eq!(names(folder.path()).len(), before.len() + 1);
        // Another process would look here now: the file that is being written stays.
        remove_stale_now(folder.path());
        assert_eq!(names(folder.path()).len(), before.len() + 1);
        written.persist(&place("report.json")).unwrap();
        assert_eq!(names(folder.path()), before);
        assert_eq!(fs::read(place("report.json")).unwrap(), b"whole");
        drop(Temporary::private(folder.path()).unwrap());
        assert_eq!(names(folder.path()), before);
    }

    #[test]
    fn a_file_that_was_taken_for_stale_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".karat-abcdef.tmp");
        let file = File::create(&path).unwrap();
        let other = File::open(&path).unwrap();
        other.try_lock().unwrap();
        assert!(!is_ours(&file, &path), "it is locked by the process that removes it");
        drop(other);
        assert!(is_ours(&file, &path));
        file.unlock().unwrap();
        remove_unless_locked(&path).unwrap();
        assert!(!is_ours(&file, &path), "it no longer has a name");
    }

    #[test]
    fn writers_at_once_do_not_lose_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                scope.spawn(move || {
                    for round in 0..100 {
                        let mut file = Temporary::new(folder).unwrap();
                        remove_stale_now(folder);
                        write!(file.as_file_mut(), "{writer} {round}").unwrap();
                        file.persist(&folder.join(format!("{writer}.txt"))).unwrap();
                    }
                });
            }
        });
        assert_eq!(names(folder), ["0.txt", "1.txt", "2.txt", "3.txt"]);
        assert_eq!(fs::read_to_string(folder.join("3.txt")).unwrap(), "3 99");
    }

    #[cfg(all(unix, not(karat_portable)))]
    #[test]
    fn links_and_what_they_lead_to_stay() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join(".karat-abcdef.tmp");
        fs::write(&target, "of the user").unwrap();
        let link = folder.path().join(".karat-abcdef.tmp");
        platform::link(&target, &link).unwrap();
        remove_stale_now(folder.path());
        assert!(link.is_symlink() && target.is_file());
        assert!(remove_unless_locked(&link).is_err() && target.is_file());
    }
}

//! Files that only the user may read: tokens that are kept for later runs.
//!
//! They are in a folder of their own below the user's configuration. Symbolic links are neither read nor
//! written through, and a file that other users can read is refused instead of used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::input::Temporary;
use crate::platform;

/// Karat's folder in the user's configuration: below `XDG_CONFIG_HOME`, `APPDATA`, or `.config` in the home
/// folder. `None` if there is neither.
pub fn configuration_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
    };
    let folder = absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("APPDATA"))
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("karat"))
}

/// Writes a file atomically, readable for this user alone. Its folder is created for this user alone.
///
/// # Errors
/// If the folder is a symbolic link or open to others, or if the file cannot be written.
///
/// # Examples
///
/// ```
/// use karat_io::private_file;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("logins/server.json");
/// private_file::write(&path, b"{}")?;
/// assert_eq!(private_file::read(&path, 100)?.as_deref(), Some(&b"{}"[..]));
/// assert!(private_file::remove(&path)?);
/// assert_eq!(private_file::read(&path, 100)?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path)?;
    platform::create_private_folder(folder)?;
    check_folder(folder)?;
    // Made for this user alone, and renamed over a link instead of written through it.
    let mut file = Temporary::private(folder)?;
    file.as_file_mut().write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)
}

/// Reads a file of at most `limit` bytes. `None` if there is none.
///
/// # Errors
/// If it or its folder is a symbolic link or open to others, is too large, or cannot be read.
pub fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("{} has more than {limit} bytes", path.display())));
    }
    Ok(Some(bytes))
}

/// Removes a file. Returns whether there was one.
///
/// # Errors
/// If it cannot be removed.
pub fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    let folder = folder_of(path)?;
    match check_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(refused(path, "is not a regular file")),
        Err(error) => return Err(error),
    }
    let mut options = OpenOptions::new();
    options.read(true);
    platform::do_not_follow(&mut options);
    let file = options.open(path)?;
    match platform::is_private(&file.metadata()?) {
        true => Ok(Some(file)),
        false => Err(refused(path, "can be read by others; run chmod 600 on it")),
    }
}

fn check_folder(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    match found.is_dir() {
        true if platform::is_private(&found) => Ok(()),
        true => Err(refused(folder, "can be read by others; run chmod 700 on it")),
        false => Err(refused(folder, "is a link or a file, not a folder")),
    }
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| refused(path, "has no folder"))
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/login.json");
        assert!(read(&path, 10).unwrap().is_none());
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(read(&path, 10).unwrap().unwrap(), b"two");
        assert!(read(&path, 2).unwrap_err().to_string().contains("more than 2 bytes"));
        assert!(remove(&path).unwrap() && !remove(&path).unwrap());
    }

    #[cfg(all(unix, not(karat_portable)))]
    #[test]
    fn links_and_files_of_others_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("logins/login.json");
        write(&path, b"secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let open_to_all = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        open_to_all(&path, 0o644);
        assert!(read(&path, 10).unwrap_err().to_string().contains("chmod 600"));
        open_to_all(&path, 0o600);
        open_to_all(path.parent().unwrap(), 0o755);
        assert!(read(&path, 10).unwrap_err().to_string().contains("chmod 700"));
        assert!(write(&path, b"x").is_err());
        open_to_all(path.parent().unwrap(), 0o700);

        let other = home.path().join("other");
        fs::write(&other, "of someone").unwrap();
        let link = home.path().join("logins/link.json");
        platform::link(&other, &link).unwrap();
        assert!(read(&link, 100).unwrap_err().to_string().contains("not a regular file"));
        write(&link, b"mine").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "of someone");
        let folder = home.path().join("linked");
        platform::link(&home.path().join("logins"), &folder).unwrap();
        assert!(read(&folder.join("login.json"), 10).is_err());
        assert!(write(&folder.join("login.json"), b"x").is_err());
    }
}

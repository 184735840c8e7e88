//! Any system: std and tokio alone, and the programs by which a system ends processes. What there is no
//! portable way for is left out or reported.

use std::fs::{Metadata, OpenOptions, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::net::TcpStream;

/// The variable that makes this binary a watcher.
const WATCHER: &str = "KARAT_IS_WATCHER";

/// Makes a symbolic link at `place`.
///
/// # Errors
/// `Unsupported` if there are none: on Windows they take a right that many users lack.
#[cfg_attr(not(windows), allow(unused_variables, reason = "only Windows makes one"))]
pub fn link(target: &Path, place: &Path) -> io::Result<()> {
    #[cfg(windows)]
    if std::os::windows::fs::symlink_file(target, place).is_ok() {
        return Ok(());
    }
    let message = format!("no symbolic links on {}: {}", super::name(), place.display());
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

/// Lets everyone read a folder that was made for this user alone: here such a folder has the rights of the
/// one above it from the start.
///
/// # Errors
/// Never.
#[allow(clippy::unnecessary_wraps, reason = "the same as on other systems")]
pub fn make_readable(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// The permissions of a new file: those of its folder.
pub(crate) fn permissions_of_new_files() -> Option<Permissions> {
    None
}

/// Makes opening fail at a symbolic link: the check before it has to do.
pub(crate) fn do_not_follow(_options: &mut OpenOptions) {}

/// Creates a folder with those above it: it has the rights of the user's own folder that it is in.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// True if no other user can read or change what this describes: as private as its folder.
pub(crate) fn is_private(_found: &Metadata) -> bool {
    true
}

/// Devices under their names.
pub(crate) fn is_of_the_system(path: &Path) -> bool {
    cfg!(unix) && (path.starts_with("/dev") || path.starts_with("/proc/self/fd"))
}

/// True if a file can be run as a program, as far as can be said.
pub fn is_executable(found: &Metadata) -> bool {
    found.is_file()
}

/// The user and the group of this process: not known.
pub fn user() -> Option<(u32, u32)> {
    None
}

/// Returns whether a connection has nothing to read, not even its end, as far as the runtime has noticed.
pub fn nothing_to_read(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// The processor time of this process so far: not known.
pub fn cpu_time() -> Option<Duration> {
    None
}

/// Keeps descriptors that this process inherited from the programs that it starts: on Windows a handle is
/// inherited only if its owner says so.
pub fn keep_descriptors() {}

/// The program to start for a name. Windows looks for `.exe` alone, and what npm installs is `npx.cmd`.
pub(crate) fn program(name: &str) -> PathBuf {
    let kinds = match cfg!(windows) {
        true => std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned()),
        false => return name.into(),
    };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    find(name, &kinds, std::env::split_paths(&folders)).unwrap_or_else(|| name.into())
}

/// The first file of the name with one of the endings, in the order of the folders.
fn find(name: &str, endings: &str, mut folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    if name.contains(['/', '\\']) || Path::new(name).extension().is_some() {
        return None;
    }
    folders.find_map(|folder| {
        let names = endings.split(';').filter(|ending| ending.starts_with('.'));
        names.map(|ending| folder.join(format!("{name}{ending}"))).find(|path| path.is_file())
    })
}

/// Starts the program in a process group of its own: there are no groups.
pub fn own_group(_command: &mut Command) {}

/// Makes orphaned descendants children of this process: only Linux can.
pub fn adopt_orphans() {}

/// Spares a child that this process started for itself: nothing here takes it for an orphan.
pub(crate) fn spare(_id: u32) {}

/// Kills a process with its descendants, as far as they can be found: those whose parents still run.
pub(crate) fn kill_tree(id: i32) {
    if cfg!(windows) {
        run(Command::new("taskkill").args(["/T", "/F", "/PID", &id.to_string()]));
        return;
    }
    let mut found = super::process_list::below(id);
    found.insert(0, id);
    // The youngest first, because the children of an exited process are no longer its children.
    let numbers = found.iter().rev().map(ToString::to_string);
    run(Command::new("kill").args(["-s", "KILL"]).args(numbers));
}

/// Asks a process to end. On Windows a program without a window cannot be asked: it is killed later.
pub(crate) fn terminate_group(id: i32) {
    if !cfg!(windows) {
        run(Command::new("kill").args(["-s", "TERM", &id.to_string()]));
    }
}

/// Kills orphans of started programs: none are known.
pub(crate) fn kill_orphans(_started: impl Fn(i32) -> bool) {}

/// Kills every process with a variable: the variables of others cannot be read.
pub(crate) fn kill_marked(_variable: &str) -> bool {
    false
}

/// Runs a program of the system to its end. It may fail: what is to be ended may have ended by itself.
fn run(command: &mut Command) {
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Makes the binary that a command starts the watcher of this process.
pub(crate) fn as_watcher(command: &mut Command, name: &str) {
    command.env(WATCHER, name);
}

/// True if this process was started by [`as_watcher`].
pub(crate) fn is_watcher(name: &str) -> bool {
    std::env::var_os(WATCHER).is_some_and(|own| own == name)
}

/// Waits for an interrupt, and returns the exit code that shells use.
///
/// # Errors
/// If the handler cannot be installed.
pub(crate) async fn stop_signal() -> io::Result<u8> {
    tokio::signal::ctrl_c().await?;
    Ok(130)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_with_the_endings_of_windows() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(second.path().join("npx.CMD"), "").unwrap();
        std::fs::write(second.path().join("npx"), "").unwrap();
        let folders = || [first.path(), second.path()].map(Path::to_owned).into_iter();
        let endings = ".EXE;.CMD;odd";
        assert_eq!(find("npx", endings, folders()), Some(second.path().join("npx.CMD")));
        for none in ["npm", "npx.CMD", "a/npx", "a\\npx"] {
            assert_eq!(find(none, endings, folders()), None, "{none}");
        }
    }
}

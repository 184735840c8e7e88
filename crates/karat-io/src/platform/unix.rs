//! Linux, macOS and their relatives.

use std::fs::{Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal};
use tokio::net::TcpStream;

#[cfg(target_os = "linux")]
use super::linux::kill_below;
#[cfg(target_os = "linux")]
pub use super::linux::{adopt_orphans, cpu_time};
#[cfg(target_os = "linux")]
pub(crate) use super::linux::{kill_marked, kill_orphans, spare};
#[cfg(not(target_os = "linux"))]
use without_proc::kill_below;
#[cfg(not(target_os = "linux"))]
pub use without_proc::{adopt_orphans, cpu_time};
#[cfg(not(target_os = "linux"))]
pub(crate) use without_proc::{kill_marked, kill_orphans, spare};

/// Makes a symbolic link at `place`.
///
/// # Errors
/// If the system cannot.
pub fn link(target: &Path, place: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

/// Lets everyone read a folder that was made for this user alone, as a temporary one is.
///
/// # Errors
/// If the permissions cannot be changed.
pub fn make_readable(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, Permissions::from_mode(0o755))
}

/// The permissions of a new file, of which the user's umask takes away.
pub(crate) fn permissions_of_new_files() -> Option<Permissions> {
    Some(Permissions::from_mode(0o666))
}

/// Makes opening fail at a symbolic link.
pub(crate) fn do_not_follow(options: &mut OpenOptions) {
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
}

/// Creates a folder that only this user can enter, with those above it.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// True if no other user can read or change what this describes.
pub(crate) fn is_private(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    found.permissions().mode() & 0o077 == 0 && found.uid() == rustix::process::getuid().as_raw()
}

/// Devices, and the descriptors of this process under their names.
pub(crate) fn is_of_the_system(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc/self/fd")
}

/// True if a file can be run as a program.
pub fn is_executable(found: &Metadata) -> bool {
    found.is_file() && found.permissions().mode() & 0o111 != 0
}

/// The user and the group of this process.
pub fn user() -> Option<(u32, u32)> {
    Some((rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()))
}

/// Returns whether a connection has nothing to read, not even its end. The runtime may not have noticed
/// what arrived, so the system is asked; a byte that is there is lost.
pub fn nothing_to_read(stream: &TcpStream) -> bool {
    let mut nothing = [0];
    rustix::io::read(stream, &mut nothing) == Err(rustix::io::Errno::AGAIN)
}

/// Keeps descriptors that this process inherited from the programs that it starts: shells, editors and CI
/// runners leave files and folders open, which would lead past every isolation. To be called before
/// threads are started.
#[allow(unsafe_code)]
pub fn keep_descriptors() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd"))
    else {
        return;
    };
    for entry in open.flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(number) = number.filter(|number| *number > 2) else { continue };
        // SAFETY: the system has just listed the descriptor as open, and no other thread runs that could
        // close it: this is called at the start of `main`. The descriptor of the list itself stays open
        // until the loop ends. It is borrowed for one call, which sets a flag and closes nothing.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        let _ = rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC);
    }
}

/// The program to start for a name: the system looks it up.
pub(crate) fn program(name: &str) -> std::path::PathBuf {
    name.into()
}

/// Starts the program in a process group of its own: Ctrl-C is not for it, and it can be ended with its
/// children.
pub fn own_group(command: &mut Command) {
    command.process_group(0);
}

/// Kills a process group, and the descendants of its leader in whatever group they are.
pub(crate) fn kill_tree(id: i32) {
    kill_below(id);
    signal_group(id, Signal::KILL);
}

/// Asks a process group to end.
pub(crate) fn terminate_group(id: i32) {
    signal_group(id, Signal::TERM);
}

fn signal_group(id: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(id) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Makes the binary that a command starts the watcher of this process, by its name.
pub(crate) fn as_watcher(command: &mut Command, name: &str) {
    command.arg0(name);
}

/// True if this process was started by [`as_watcher`].
pub(crate) fn is_watcher(name: &str) -> bool {
    std::env::args_os().next().is_some_and(|own| own == name)
}

/// Waits for a signal to stop (interrupt, quit, terminate or hang-up), and returns the exit code that shells
/// use (128 plus the signal).
///
/// # Errors
/// If signal handlers cannot be installed.
pub(crate) async fn stop_signal() -> io::Result<u8> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => 130,
        _ = terminate.recv() => 143,
        _ = hang_up.recv() => 129,
        _ = quit.recv() => 131,
    })
}

/// macOS and the BSDs. A process that left its group is found while its parents run; one whose parent has
/// exited belongs to the system and stays.
#[cfg(not(target_os = "linux"))]
mod without_proc {
    use std::time::Duration;

    use rustix::process::{Pid, Signal};

    /// Makes orphaned descendants children of this process: only Linux can.
    pub fn adopt_orphans() {}

    /// Spares a child that this process started for itself: nothing here takes it for an orphan.
    pub(crate) fn spare(_id: u32) {}

    /// Kills all descendants of a process, but not the process itself.
    pub(super) fn kill_below(id: i32) {
        for child in super::super::process_list::below(id).into_iter().rev() {
            if let Some(child) = Pid::from_raw(child) {
                let _ = rustix::process::kill_process(child, Signal::KILL);
            }
        }
    }

    /// Kills orphans of started programs: none are known.
    pub(crate) fn kill_orphans(_started: impl Fn(i32) -> bool) {}

    /// Kills every process with a variable: the variables of others cannot be read.
    pub(crate) fn kill_marked(_variable: &str) -> bool {
        false
    }

    /// The processor time of this process so far: not known.
    pub fn cpu_time() -> Option<Duration> {
        None
    }
}

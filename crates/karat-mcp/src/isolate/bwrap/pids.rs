//! A limit on the processes of a whole tree, for root.
//!
//! `RLIMIT_NPROC` does not apply to root, even in a user namespace. So if this process runs as root, the tree
//! joins a cgroup of its own, below that of this process, before anything else is run. It is emptied and
//! removed when the session ends.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Attempts to remove a group whose processes are still exiting.
const MAX_ATTEMPTS: usize = 200;

/// A cgroup that limits processes.
#[derive(Clone, Debug)]
pub(super) struct PidsGroup {
    folder: PathBuf,
}

impl PidsGroup {
    /// Creates a group for at most this many processes and threads.
    pub(super) fn new(name: &str, max: u64) -> Result<PidsGroup, String> {
        let parent = parent().ok_or("no cgroup with the pids controller")?;
        let folder = parent.join(name);
        let shown = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir(&folder).map_err(shown)?;
        let group = PidsGroup { folder: folder.clone() };
        if let Err(error) = std::fs::write(folder.join("pids.max"), max.to_string()) {
            group.remove();
            return Err(shown(error));
        }
        Ok(group)
    }

    /// The file that a process writes 0 to in order to join.
    pub(super) fn procs_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// The folder, which can be removed when it is empty.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Kills the processes in it and removes it.
    pub(super) fn remove(&self) {
        for _ in 0..MAX_ATTEMPTS {
            let left = std::fs::read_to_string(self.procs_file()).unwrap_or_default();
            for pid in left.lines().filter_map(|line| line.parse().ok()) {
                if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
            if std::fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The folder of the cgroup of this process with the pids controller, in either version.
fn parent() -> Option<PathBuf> {
    let ours = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path_of = |wanted: &dyn Fn(&str, &str) -> bool| {
        ours.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(number, controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let first = path_of(&|_, controllers| controllers.split(',').any(|name| name == "pids"))
        .map(|path| Path::new("/sys/fs/cgroup/pids").join(path));
    let second = || {
        path_of(&|number, controllers| number == "0" && controllers.is_empty())
            .map(|path| Path::new("/sys/fs/cgroup").join(path))
    };
    first.filter(|folder| folder.is_dir()).or_else(second).filter(|folder| folder.is_dir())
}

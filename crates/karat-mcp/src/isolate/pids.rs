//! A bound on the processes of a whole tree, where the bound on a user does not hold.
//!
//! `RLIMIT_NPROC` does not bind root, in a user namespace neither. So where Karat runs as root, the
//! tree gets a cgroup of its own, below the one that Karat is in, and joins it before anything else is
//! run. It is emptied and removed when the session ends. Where no cgroup can be made, that is said.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the removal of a group whose processes are still dying is tried.
const TRIES: usize = 200;

/// A cgroup that counts processes.
#[derive(Clone, Debug)]
pub(super) struct PidsGroup {
    folder: PathBuf,
}

impl PidsGroup {
    /// Makes one that holds at most this many processes and threads.
    pub(super) fn new(name: &str, at_most: u64) -> Result<PidsGroup, String> {
        let parent = parent().ok_or("there is no cgroup that counts processes")?;
        let folder = parent.join(name);
        let shown = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir(&folder).map_err(shown)?;
        let group = PidsGroup { folder: folder.clone() };
        if let Err(error) = std::fs::write(folder.join("pids.max"), at_most.to_string()) {
            group.remove();
            return Err(shown(error));
        }
        Ok(group)
    }

    /// The file into which a process writes 0 to join.
    pub(super) fn door(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Kills what is still in it and removes it.
    pub(super) fn remove(&self) {
        for _ in 0..TRIES {
            let left = std::fs::read_to_string(self.door()).unwrap_or_default();
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

/// The folder of the group that we are in: one that counts processes, of either version.
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

//! bubblewrap: the machine's own programs, with nothing of its owner's.
//!
//! The root is read-only; homes, temporary folders and `/run` (where sockets of daemons lie) are
//! empty; processes, users, names and the network are its own. Variables are cleared but for `PATH`,
//! `LANG`, `HOME` and those of the spec. Limits are set inside, by `prlimit`, so that they bind the
//! server and not Karat. Memory is bounded by `RLIMIT_DATA`: it counts what a process can write to,
//! whereas the address space, which other tools bound, is reserved in gigabytes by Node and Go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_io::process::{Afterwards, Program};

use super::pids::PidsGroup;
use super::reach::{self, Hidden};
use super::{Isolation, Launch, find_program, given_paths, missing, unique_name};
use crate::error::StartError;

/// bubblewrap's two processes and the shell that joins the group.
const OWN_PROCESSES: u64 = 3;
/// Joins a group and becomes the rest; the words come as arguments and are not read by the shell.
const JOIN: &str = r#"echo 0 >"$1" && shift && exec "$@""#;
/// Variables that pass if the spec sets none.
const PASSED: &[&str] = &["PATH", "LANG", "HOME"];
/// Files of the machine that even root does not need to read.
const SECRET_FILES: &[&str] = &["/etc/shadow", "/etc/gshadow"];

/// Puts bubblewrap in front of the program.
pub(super) fn launch(isolation: &Isolation, program: &Program) -> Result<Launch, StartError> {
    let bwrap = found("bwrap", "bubblewrap")?;
    let prlimit = found("prlimit", "util-linux")?;
    let folder = working_folder(program)?;
    let server = program.command.first().map_or("", String::as_str);
    if find_program(server, Some(&folder)).is_none() {
        let why = format!("cannot start {server:?}: there is no such program");
        return Err(StartError::NotStarted { why });
    }

    let hidden = Hidden::here();
    let named = reach::named_by(&program.command, &folder, &hidden);
    let mut mounts: BTreeMap<PathBuf, bool> =
        named.paths.into_iter().map(|path| (path, false)).collect();
    for (path, writable) in given_paths(isolation)? {
        *mounts.entry(path).or_default() |= writable;
    }

    let mut words = vec![bwrap];
    words.extend(walls(isolation, &hidden));
    for stone in &named.stepping_stones {
        words.extend(["--dir".to_owned(), text(stone)?]);
    }
    for (path, writable) in &mounts {
        let path = text(path)?;
        let how = if *writable { "--bind" } else { "--ro-bind" };
        words.extend([how.to_owned(), path.clone(), path]);
    }
    // A link inside something that is mounted is there already.
    let shown = |link: &Path| mounts.keys().any(|mounted| link.starts_with(mounted));
    for (link, said) in named.links.iter().filter(|(link, _)| !shown(link)) {
        words.extend(["--symlink".to_owned(), text(said)?, text(link)?]);
    }
    // A home that is hidden and nowhere mounted is there and empty; any other folder is there as it is.
    words.extend(["--chdir".to_owned(), text(&folder)?, "--".to_owned(), prlimit]);
    words.extend(limits(isolation));
    words.push("--".to_owned());
    words.extend(program.command.iter().cloned());

    let (words, processes, afterwards) = counted(isolation, words)?;
    let mut env = program.env.clone();
    for name in PASSED {
        if let (false, Ok(value)) = (env.contains_key(*name), std::env::var(name)) {
            env.insert((*name).to_owned(), value);
        }
    }
    Ok(Launch {
        program: Program { command: words, env, folder: None, clean: true, afterwards },
        in_force: in_force(isolation, processes),
    })
}

/// What to do about a start that bubblewrap itself refused.
pub(super) fn advice(error: &str) -> Option<&'static str> {
    let refused = ["namespace", "uid map", "permissions", "Operation not permitted"];
    let is_refused = error.contains("bwrap: ") && refused.iter().any(|word| error.contains(word));
    is_refused.then_some(
        "bubblewrap cannot make a sandbox here: allow unprivileged user namespaces \
         (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap)",
    )
}

fn found(program: &str, package: &str) -> Result<String, StartError> {
    let path = find_program(program, None)
        .ok_or_else(|| missing(program, &format!("install {package} (apt install {package})")))?;
    text(&path)
}

fn working_folder(program: &Program) -> Result<PathBuf, StartError> {
    let folder = match &program.folder {
        Some(folder) => folder.clone(),
        None => PathBuf::from("."),
    };
    folder.canonicalize().map_err(|error| StartError::NotStarted {
        why: format!("cannot run in {}: {error}", folder.display()),
    })
}

fn text(path: &Path) -> Result<String, StartError> {
    path.to_str().map(str::to_owned).ok_or_else(|| StartError::Spec {
        why: format!("the path {} is not UTF-8", path.display()),
    })
}

/// What is the server's own, and what is not there for it.
fn walls(isolation: &Isolation, hidden: &Hidden) -> Vec<String> {
    let mut words: Vec<String> = [
        "--unshare-user",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    .map(str::to_owned)
    .into();
    if isolation.network {
        words.push("--share-net".to_owned());
    }
    let mut add = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
    add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    // A user who is root outside may change settings of the kernel here, capabilities or not.
    for settings in ["/proc/sys", "/proc/sysrq-trigger"] {
        add(&["--ro-bind-try", settings, settings]);
    }
    let size = (isolation.memory_mb() << 20).to_string();
    // Files of memory that processes share would otherwise have the size of the machine's.
    add(&["--size", &size, "--tmpfs", "/dev/shm"]);
    for folder in &hidden.0 {
        if let Some(folder) = folder.to_str() {
            add(&["--size", &size, "--tmpfs", folder]);
        }
    }
    if isolation.network {
        // The addresses of name servers are often kept under /run.
        add(&["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]);
    }
    for file in SECRET_FILES.iter().filter(|file| Path::new(file).exists()) {
        add(&["--ro-bind", "/dev/null", file]);
    }
    words
}

fn limits(isolation: &Isolation) -> Vec<String> {
    vec![
        format!("--data={}", isolation.memory_mb() << 20),
        format!("--nproc={}", isolation.processes()),
        format!("--cpu={}", isolation.cpu_seconds()),
        format!("--fsize={}", isolation.file_mb() << 20),
        "--core=0".to_owned(),
    ]
}

/// How the number of processes is bounded, in words, and the command that it takes.
type Counted = (Vec<String>, String, Option<Afterwards>);

fn counted(isolation: &Isolation, words: Vec<String>) -> Result<Counted, StartError> {
    let at_most = isolation.processes();
    if !rustix::process::getuid().is_root() {
        return Ok((words, format!("processes: {at_most} (RLIMIT_NPROC)"), None));
    }
    let group = match PidsGroup::new(&unique_name(), at_most.saturating_add(OWN_PROCESSES)) {
        Ok(group) => group,
        Err(why) if isolation.processes.is_some() => {
            return Err(StartError::NotStarted {
                why: format!(
                    "the processes of root cannot be limited here ({why}); run Karat as another \
                     user, or leave the limit out"
                ),
            });
        }
        Err(why) => return Ok((words, format!("processes: not limited ({why})"), None)),
    };
    let door = text(&group.door())?;
    let mut joined = ["/bin/sh", "-c", JOIN, "karat", &door].map(str::to_owned).to_vec();
    joined.extend(words);
    let afterwards = Afterwards::new(move || group.remove());
    Ok((joined, format!("processes: {at_most} (cgroup)"), Some(afterwards)))
}

fn in_force(isolation: &Isolation, processes: String) -> Vec<String> {
    vec![
        "bwrap".to_owned(),
        format!("network: {}", if isolation.network { "allowed" } else { "none" }),
        "files: read-only, homes and temporary folders empty".to_owned(),
        format!(
            "memory: {} MiB of its own for each process (RLIMIT_DATA) and in each folder of memory; \
             mappings that are shared: not limited",
            isolation.memory_mb()
        ),
        processes,
        format!("processor time: {} s for each process (RLIMIT_CPU)", isolation.cpu_seconds()),
        format!("file size: {} MiB (RLIMIT_FSIZE)", isolation.file_mb()),
    ]
}

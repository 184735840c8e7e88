//! bubblewrap: the programs of this machine, without the files of its users.
//!
//! The root is read-only; homes, temporary folders and `/run` (with the sockets of daemons) are empty;
//! processes, users, host name and network are separate. Variables are cleared except for `PATH`, `LANG`,
//! `HOME` and those of the spec. Limits are set inside, by `prlimit`, so that they apply to the server alone.
//! Memory is limited by `RLIMIT_DATA`, which counts what a process can write to; the address space is
//! reserved in gigabytes by Node and Go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_io::process::{Cleanup, Program};

use super::isolation::Isolation;
use super::launch::{Launch, find_program, given_paths, missing, unique_name};
use super::needed_paths::{self, Hidden};
use super::pids::PidsGroup;
use crate::error::StartError;

/// Two processes of bubblewrap and the shell that joins the group.
const OWN_PROCESSES: u64 = 3;
/// Joins a cgroup and runs the rest, whose words are arguments and not parsed by the shell.
const JOIN: &str = r#"echo 0 >"$1" && shift && exec "$@""#;
/// Variables that are passed on unless the spec sets them.
const PASSED: &[&str] = &["PATH", "LANG", "HOME"];
/// Files that are hidden even from root.
const SECRET_FILES: &[&str] = &["/etc/shadow", "/etc/gshadow"];

/// Puts bubblewrap in front of the program.
pub(super) fn launch(isolation: &Isolation, program: &Program) -> Result<Launch, StartError> {
    let bwrap = found("bwrap", "bubblewrap")?;
    let prlimit = found("prlimit", "util-linux")?;
    let folder = working_folder(program)?;
    let server = program.command.first().map_or("", String::as_str);
    if find_program(server, Some(&folder)).is_none() {
        let why = format!("cannot start {server:?}: no such program");
        return Err(StartError::NotStarted { why });
    }

    let hidden = Hidden::here();
    let named = needed_paths::named_by(&program.command, &folder, &hidden);
    let mut mounts: BTreeMap<PathBuf, bool> =
        named.paths.into_iter().map(|path| (path, false)).collect();
    for (path, writable) in given_paths(isolation)? {
        *mounts.entry(path).or_default() |= writable;
    }

    let mut words = vec![bwrap];
    words.extend(sandbox_arguments(isolation, &hidden));
    for folder in &named.parent_folders {
        words.extend(["--dir".to_owned(), text(folder)?]);
    }
    for (path, writable) in &mounts {
        let path = text(path)?;
        let how = if *writable { "--bind" } else { "--ro-bind" };
        words.extend([how.to_owned(), path.clone(), path]);
    }
    // A link inside a mounted folder exists already.
    let is_mounted = |link: &Path| mounts.keys().any(|mounted| link.starts_with(mounted));
    for (link, target) in named.links.iter().filter(|(link, _)| !is_mounted(link)) {
        words.extend(["--symlink".to_owned(), text(target)?, text(link)?]);
    }
    // A hidden home that is not mounted exists and is empty; any other folder is unchanged.
    words.extend(["--chdir".to_owned(), text(&folder)?, "--".to_owned(), prlimit]);
    words.extend(limits(isolation));
    words.push("--".to_owned());
    words.extend(program.command.iter().cloned());

    let (words, processes, cleanup) = counted(isolation, words)?;
    let mut env = program.env.clone();
    for name in PASSED {
        if let (false, Ok(value)) = (env.contains_key(*name), std::env::var(name)) {
            env.insert((*name).to_owned(), value);
        }
    }
    Ok(Launch {
        program: Program { command: words, env, folder: None, clean: true, cleanup },
        in_force: in_force(isolation, processes),
    })
}

/// Advice for a start that bubblewrap refused.
pub(super) fn advice(error: &str) -> Option<&'static str> {
    let refused = ["namespace", "uid map", "permissions", "Operation not permitted"];
    let is_refused = error.contains("bwrap: ") && refused.iter().any(|word| error.contains(word));
    is_refused.then_some(
        "bubblewrap cannot create a sandbox here: allow unprivileged user namespaces \
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

/// The arguments that separate the server from the machine.
fn sandbox_arguments(isolation: &Isolation, hidden: &Hidden) -> Vec<String> {
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
    // Root may change kernel settings here even without capabilities.
    for settings in ["/proc/sys", "/proc/sysrq-trigger"] {
        add(&["--ro-bind-try", settings, settings]);
    }
    let size = (isolation.memory_mb() << 20).to_string();
    // Shared memory would otherwise have the size of the machine's.
    add(&["--size", &size, "--tmpfs", "/dev/shm"]);
    for folder in &hidden.0 {
        if let Some(folder) = folder.to_str() {
            add(&["--size", &size, "--tmpfs", folder]);
        }
    }
    if isolation.network {
        // The addresses of name servers are often below /run.
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

/// The command, the description of its limit on processes, and the clean-up.
type Counted = (Vec<String>, String, Option<Cleanup>);

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
                    "the processes of root cannot be limited here ({why}); run as another user, or \
                     omit the limit"
                ),
            });
        }
        Err(why) => return Ok((words, format!("processes: not limited ({why})"), None)),
    };
    let procs = text(&group.procs_file())?;
    let mut joined = ["/bin/sh", "-c", JOIN, "karat", &procs].map(str::to_owned).to_vec();
    joined.extend(words);
    let cleanup = Cleanup::new(move || group.remove());
    Ok((joined, format!("processes: {at_most} (cgroup)"), Some(cleanup)))
}

fn in_force(isolation: &Isolation, processes: String) -> Vec<String> {
    vec![
        "bwrap".to_owned(),
        format!("network: {}", if isolation.network { "allowed" } else { "none" }),
        "files: read-only, homes and temporary folders empty".to_owned(),
        format!(
            "memory: {} MiB for each process (RLIMIT_DATA) and each folder in memory; shared \
             mappings are not limited",
            isolation.memory_mb()
        ),
        processes,
        format!("processor time: {} s for each process (RLIMIT_CPU)", isolation.cpu_seconds()),
        format!("file size: {} MiB (RLIMIT_FSIZE)", isolation.file_mb()),
    ]
}

//! bubblewrap: the programs of this machine, without the files of its users.
//!
//! Visible are the system's programs and libraries, a few files of `/etc` that they read, and the paths
//! that are named; homes and temporary folders are empty. Processes, users, host name and network are
//! separate, further namespaces cannot be made, and a filter refuses system calls that have led out of
//! sandboxes ([`seccomp`]). Variables are cleared except for `PATH`, `LANG`, `HOME` and those of the
//! spec. Limits are set inside, by `prlimit`, so that they apply to the server alone, and cannot be raised there.
//! Memory is limited by `RLIMIT_DATA`, which counts what a process can write to; the address space is
//! reserved in gigabytes by Node and Go.

mod needed_paths;
mod pids;
mod seccomp;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_io::process::{Cleanup, Program};

use self::needed_paths::Machine;
use self::pids::PidsGroup;
use super::isolation::Isolation;
use super::launch::{Launch, find_program, given_paths, home, missing, unique_name};
use crate::error::StartError;

/// Two processes of bubblewrap and the shell that joins the group.
const OWN_PROCESSES: u64 = 3;
/// Joins a cgroup and runs the rest, whose words are arguments and not parsed by the shell.
const JOIN: &str = r#"echo 0 >"$1" && shift && exec "$@""#;
/// Variables that are passed on unless the spec sets them.
const PASSED: &[&str] = &["PATH", "LANG", "HOME"];
/// Opens a file as descriptor 3 and runs the rest.
const WITH_FILTER: &str = r#"exec 3<"$1" && shift && exec "$@""#;
/// Files and folders of `/etc` that programs and libraries read; none of them is secret.
const SETTINGS: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "fonts",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];
/// Settings of interpreters, whose names end with a version.
const INTERPRETERS: &[&str] = &["java", "perl", "php", "python", "ruby"];
/// Folders that are empty and can be written to.
const SCRATCH: &[&str] = &["/tmp", "/var/tmp", "/run"];

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

    let machine = Machine::here();
    let named = needed_paths::named_by(&program.command, &folder, &machine);
    let mut mounts: BTreeMap<PathBuf, bool> = named
        .paths
        .into_iter()
        .chain(machine.program_folders())
        .map(|path| (path, false))
        .collect();
    let given = given_paths(isolation)?;
    // A path that the command names would otherwise hide the writable folder that it is in.
    for (path, writable) in &mut mounts {
        *writable |= given.iter().any(|(given, writable)| *writable && path.starts_with(given));
    }
    for (path, writable) in given {
        mounts.insert(path, writable);
    }

    let mut words = vec![bwrap];
    words.extend(sandbox_arguments(isolation, &machine));
    let filter = seccomp::filter_file();
    if filter.is_some() {
        words.extend(["--seccomp".to_owned(), "3".to_owned()]);
    }
    for folder in named.parent_folders.iter().chain([&folder]) {
        words.extend(["--dir".to_owned(), text(folder)?]);
    }
    for (path, writable) in &mounts {
        let path = text(path)?;
        let how = if *writable { "--bind" } else { "--ro-bind" };
        words.extend([how.to_owned(), path.clone(), path]);
    }
    let (sockets, all_found) = needed_paths::sockets_below(mounts.keys().map(PathBuf::as_path));
    for socket in sockets {
        words.extend(["--ro-bind".to_owned(), "/dev/null".to_owned(), text(&socket)?]);
    }
    // A link inside a mounted folder exists already.
    let is_mounted = |link: &Path| mounts.keys().any(|mounted| link.starts_with(mounted));
    for (link, target) in named.links.iter().filter(|(link, _)| !is_mounted(link)) {
        words.extend(["--symlink".to_owned(), text(target)?, text(link)?]);
    }
    words.extend(["--remount-ro", "/"].map(str::to_owned));
    words.extend(["--chdir".to_owned(), text(&folder)?, "--".to_owned(), prlimit]);
    words.extend(limits(isolation));
    words.push("--".to_owned());
    words.extend(program.command.iter().cloned());

    if let Some(filter) = &filter {
        let opened = ["/bin/sh", "-c", WITH_FILTER, "karat", filter].map(str::to_owned);
        words.splice(0..0, opened);
    }
    let (words, processes, cleanup) = counted(isolation, words)?;
    let mut env = program.env.clone();
    for name in PASSED {
        if let (false, Ok(value)) = (env.contains_key(*name), std::env::var(name)) {
            env.insert((*name).to_owned(), value);
        }
    }
    Ok(Launch {
        program: Program { command: words, env, folder: None, clean: true, cleanup },
        in_force: in_force(isolation, processes, &Left { filter: filter.is_some(), all_found }),
    })
}

/// Advice for a start that bubblewrap refused.
pub(super) fn advice(error: &str) -> Option<&'static str> {
    if error.contains("bwrap: Unknown option") {
        return Some("Karat needs bubblewrap 0.8 or newer");
    }
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
fn sandbox_arguments(isolation: &Isolation, machine: &Machine) -> Vec<String> {
    let mut words: Vec<String> = [
        "--unshare-user",
        "--unshare-all",
        // Further user namespaces would give it all capabilities again, and cgroups to lift its limits.
        "--disable-userns",
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
    for folder in machine.system.iter().filter_map(|folder| folder.to_str()) {
        match std::fs::read_link(folder).ok().as_deref().and_then(Path::to_str) {
            Some(target) => add(&["--symlink", target, folder]),
            None => add(&["--ro-bind", folder, folder]),
        }
    }
    for file in settings(isolation) {
        add(&["--ro-bind-try", &file, &file]);
    }
    add(&["--dev", "/dev", "--proc", "/proc"]);
    // Root may change kernel settings here even without capabilities.
    for settings in ["/proc/sys", "/proc/sysrq-trigger"] {
        add(&["--ro-bind-try", settings, settings]);
    }
    // The names of the caller's keys.
    for keys in ["/proc/keys", "/proc/key-users"].iter().filter(|keys| Path::new(keys).exists()) {
        add(&["--ro-bind", "/dev/null", keys]);
    }
    // Runtimes count processors here.
    let processors = "/sys/devices/system/cpu";
    add(&["--ro-bind-try", processors, processors]);
    let size = (isolation.memory_mb() << 20).to_string();
    // Shared memory would otherwise have the size of the machine's.
    add(&["--size", &size, "--tmpfs", "/dev/shm"]);
    let is_system = |home: &PathBuf| machine.system.iter().any(|folder| home.starts_with(folder));
    let home = home().filter(|home| !is_system(home));
    let home = home.as_deref().and_then(Path::to_str);
    for folder in SCRATCH.iter().copied().chain(home) {
        add(&["--size", &size, "--tmpfs", folder]);
    }
    add(&["--symlink", "../run", "/var/run"]);
    words
}

/// The files of `/etc` that are visible.
fn settings(isolation: &Isolation) -> Vec<String> {
    let mut names: Vec<String> = SETTINGS.iter().map(|name| (*name).to_owned()).collect();
    if isolation.network {
        names.push("resolv.conf".to_owned());
    }
    let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    names.extend(
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter))),
    );
    names.into_iter().map(|name| format!("/etc/{name}")).collect()
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
    let words_to_remove = vec!["rmdir".to_owned(), text(group.folder())?];
    let cleanup = Cleanup::new(move || group.remove()).or_by(words_to_remove);
    Ok((joined, format!("processes: {at_most} (cgroup)"), Some(cleanup)))
}

/// The gaps that the isolation could not close.
struct Left {
    /// True if system calls are filtered.
    filter: bool,
    /// True if the named folders were searched whole for sockets and pipes.
    all_found: bool,
}

fn in_force(isolation: &Isolation, processes: String, left: &Left) -> Vec<String> {
    let mut lines = vec![
        "bwrap".to_owned(),
        format!("network: {}", if isolation.network { "allowed" } else { "none" }),
        "files: read-only; the system's programs and libraries, and the named paths; homes and temporary \
         folders are empty"
            .to_owned(),
        format!(
            "memory: {} MiB for each process (RLIMIT_DATA) and each folder in memory; shared \
             mappings are not limited",
            isolation.memory_mb()
        ),
        processes,
        format!("processor time: {} s for each process (RLIMIT_CPU)", isolation.cpu_seconds()),
        format!("file size: {} MiB (RLIMIT_FSIZE)", isolation.file_mb()),
        match left.filter {
            true => "system calls: filtered (namespaces, mounts, keys, io_uring, ptrace and others)",
            false => "system calls: not filtered on this architecture",
        }
        .to_owned(),
    ];
    let as_root = rustix::process::getuid().is_root();
    let open = [
        (true, "the kernel of this machine"),
        (isolation.network, "the network with the services of this machine"),
        (as_root, "files of root below the visible folders"),
        (!left.all_found, "sockets and pipes in named folders, which are too large to search"),
    ];
    let open: Vec<&str> =
        open.into_iter().filter_map(|(is_open, what)| is_open.then_some(what)).collect();
    lines.push(format!("open: {}", open.join("; ")));
    lines
}

//! The end of started programs when this process is killed.
//!
//! A process that gets SIGKILL cannot end what it started. So the first program that is started brings a
//! watcher with it: this binary again, under another name and in a group of its own, with one end of a pipe.
//! It learns which groups run, and when the pipe closes without a farewell, it kills them with all their
//! descendants. On Linux it also kills every process that carries the mark of this run in its variables, in
//! whatever session it is.

use std::collections::BTreeMap;
use std::io::{BufRead, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::platform;

/// The name under which the watcher runs.
const NAME: &str = "karat-watcher";
/// The variable that marks the programs of a run.
pub(crate) const MARK: &str = "STARTED_BY_KARAT";
/// Rounds of looking for marked processes: one that forks while it is looked for is found in the next.
const MAX_ROUNDS: usize = 20;
const FAREWELL: &str = "end";

/// The binary that can be the watcher, if there is one.
static BINARY: OnceLock<PathBuf> = OnceLock::new();
/// The watcher and the pipe to it, once it runs.
static WATCHER: Mutex<Option<(Child, ChildStdin)>> = Mutex::new(None);
/// Time to wait for the exit of the watcher: its binary may be replaced after the exit of this process.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Takes over if this process was started as a watcher: it watches, and then exits. Otherwise programs
/// that this process starts are watched from now on. To be called first, by a `main` whose binary does so.
pub fn watch_or_be_watched() {
    if platform::is_watcher(NAME) {
        let mark = std::env::var(MARK).unwrap_or_default();
        watch(std::io::stdin().lock(), &mark);
        std::process::exit(0);
    }
    if let Ok(binary) = std::env::current_exe() {
        let _ = BINARY.set(binary);
    }
}

/// Lets the watcher go: everything has been ended.
pub fn dismiss() {
    let watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((mut watcher, mut pipe)) = watcher else { return };
    let _ = writeln!(pipe, "{FAREWELL}");
    drop(pipe);
    let until = Instant::now() + EXIT_TIMEOUT;
    while Instant::now() < until && matches!(watcher.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The mark of this run, if programs are watched.
pub(crate) fn mark() -> Option<&'static str> {
    static VALUE: OnceLock<String> = OnceLock::new();
    BINARY.get()?;
    Some(VALUE.get_or_init(|| {
        use std::hash::{BuildHasher as _, RandomState};
        let random = RandomState::new().hash_one(std::time::Instant::now());
        format!("{}-{random:016x}", std::process::id())
    }))
}

/// Reports a group that runs, with the command that cleans up after it.
pub(crate) fn started(group: i32, cleanup: &[String]) {
    let words = cleanup.join("\u{1f}");
    tell(&format!("+{group} {}", words.replace('\n', " ")));
}

/// Reports the end of a group.
pub(crate) fn ended(group: i32) {
    tell(&format!("-{group}"));
}

fn tell(line: &str) {
    let (Some(binary), Some(mark)) = (BINARY.get(), mark()) else { return };
    let mut watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if watcher.is_none() {
        *watcher = start(binary, mark);
    }
    let written = watcher.as_mut().map(|(_, pipe)| writeln!(pipe, "{line}"));
    // It was killed: the next program brings a new one.
    if written.is_some_and(|written| written.is_err()) {
        *watcher = None;
    }
}

fn start(binary: &Path, mark: &str) -> Option<(Child, ChildStdin)> {
    let mut command = Command::new(binary);
    command.env_clear();
    // To find the programs that end others and clean up.
    for name in ["PATH", "SystemRoot"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command
        .env(MARK, mark)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    platform::as_watcher(&mut command, NAME);
    // Ctrl-C is not for it.
    platform::own_group(&mut command);
    let mut child = command.spawn().ok()?;
    platform::spare(child.id());
    let pipe = child.stdin.take()?;
    Some((child, pipe))
}

/// Reads reports to the end of the pipe, and ends what is left.
fn watch(reports: impl BufRead, mark: &str) {
    let mut groups: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    for line in reports.lines().map_while(Result::ok) {
        if line == FAREWELL {
            return;
        }
        let (group, cleanup) = line.split_once(' ').unwrap_or((&line, ""));
        let Ok(number) = group.trim_start_matches(['+', '-']).parse() else { continue };
        if group.starts_with('-') {
            groups.remove(&number);
        } else {
            let words = cleanup.split('\u{1f}').filter(|word| !word.is_empty());
            groups.insert(number, words.map(str::to_owned).collect());
        }
    }
    for group in groups.keys() {
        platform::kill_tree(*group);
    }
    for _ in 0..MAX_ROUNDS {
        if !platform::kill_marked(&format!("{MARK}={mark}")) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for cleanup in groups.values() {
        if let Some((program, arguments)) = cleanup.split_first() {
            let _ = Command::new(program).args(arguments).stdin(Stdio::null()).status();
        }
    }
}

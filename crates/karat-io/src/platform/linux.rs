//! Features of Linux alone: processes that a started program left behind, found by their parents or by a mark,
//! and the processor time from the scheduler.
//!
//! A process in a session or group of its own is not reached by a signal to the group of the program. This
//! process becomes the subreaper of everything below it (`PR_SET_CHILD_SUBREAPER`), so that one whose parent
//! has exited becomes a child of this process and can be found. A process is signalled through a handle that
//! was opened before its parent was checked again, so a reused number does no harm.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper,
};

/// Maximum number of processes that are inspected below one; a fork bomb is stopped by its limits.
const MAX_PROCESSES: usize = 10_000;

static ADOPTS: AtomicBool = AtomicBool::new(false);
/// Children that are not orphans of a started program: helpers, and those that were there at the start.
static SPARED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Makes orphaned descendants children of this process from now on.
pub fn adopt_orphans() {
    // A shell that became this process by `exec` may have left children.
    let me = getpid().as_raw_nonzero().get();
    SPARED.lock().unwrap_or_else(PoisonError::into_inner).extend(children(me));
    if set_child_subreaper(Some(getpid())).is_ok() {
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// Spares a child that this process started for itself.
pub(crate) fn spare(id: u32) {
    let id = i32::try_from(id).ok();
    SPARED.lock().unwrap_or_else(PoisonError::into_inner).extend(id);
}

/// Kills all descendants of a process, but not the process itself.
pub(super) fn kill_below(id: i32) {
    let mut found = vec![(id, 0)];
    let mut next = 0;
    while let Some((parent, _)) = found.get(next).copied()
        && found.len() < MAX_PROCESSES
    {
        found.extend(children(parent).into_iter().map(|child| (child, parent)));
        next += 1;
    }
    // The youngest first, because the children of an exited process are no longer its children.
    for (child, parent) in found.into_iter().skip(1).rev() {
        kill_child(child, parent);
    }
}

/// Kills those children of this process that it did not start: neither `started` nor spared. The group says
/// nothing, because a process can join any group of its session.
pub(crate) fn kill_orphans(started: impl Fn(i32) -> bool) {
    if !ADOPTS.load(Ordering::Relaxed) {
        return;
    }
    let me = getpid().as_raw_nonzero().get();
    let spared = SPARED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // The next round finds the children of the orphans.
    for _ in 0..MAX_PROCESSES {
        let mut killed = false;
        for child in children(me) {
            if !spared.contains(&child) && !started(child) && runs(child) {
                kill_below(child);
                killed |= kill_child(child, me);
            }
        }
        if !killed {
            return;
        }
    }
}

/// Kills every other process that has this variable, written `NAME=value`, and returns whether there was one.
pub(crate) fn kill_marked(variable: &str) -> bool {
    let me = std::process::id();
    let mut found = false;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(pid) = id
            .and_then(Pid::from_raw)
            .filter(|pid| pid.as_raw_nonzero().get().cast_unsigned() != me)
        else {
            continue;
        };
        // Opened before the variables are read, so that a reused number does no harm.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let variables = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if variables.split(|byte| *byte == 0).any(|one| one == variable.as_bytes()) {
            found |= pidfd_send_signal(handle, Signal::KILL).is_ok();
        }
    }
    found
}

/// The processor time of this process so far, over all its threads, in nanoseconds of the scheduler.
pub fn cpu_time() -> Option<Duration> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let mut sum = 0_u64;
    for thread in threads.flatten() {
        // A thread that has ended in between was counted in an earlier phase.
        let Ok(line) = std::fs::read_to_string(thread.path().join("schedstat")) else { continue };
        sum += line.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(sum))
}

/// Kills a process if it is still a child of this parent.
fn kill_child(child: i32, parent: i32) -> bool {
    let Some(pid) = Pid::from_raw(child) else { return false };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    children(parent).contains(&child) && pidfd_send_signal(handle, Signal::KILL).is_ok()
}

/// The children of all threads of a process.
fn children(parent: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<i32>>()
        })
        .collect()
}

/// True if a process has not exited. A killed one stays in the list until it is waited for.
fn runs(id: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

//! Processes that a started program left behind in a session or group of their own, where a signal to the
//! group of the program does not reach them.
//!
//! This process becomes their subreaper (`PR_SET_CHILD_SUBREAPER`), so that one whose parent has exited
//! becomes a child of this process and can be found. Linux only; elsewhere nothing is found. A process is
//! signalled through a handle that was opened before its parent was checked again, so a reused number does no
//! harm.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgid, getpgrp, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper,
};

/// Maximum number of processes that are inspected below one; a fork bomb is stopped by its limits.
const MAX_PROCESSES: usize = 10_000;

static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Makes orphaned descendants children of this process from now on.
pub fn adopt() {
    if set_child_subreaper(Some(getpid())).is_ok() {
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// Kills all descendants of a process, but not the process itself.
pub(crate) fn kill_below(id: i32) {
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

/// Kills those children of this process that it did not start: neither `started` nor in its own group.
pub(crate) fn kill_orphans(started: impl Fn(i32) -> bool) {
    if !ADOPTS.load(Ordering::Relaxed) {
        return;
    }
    let me = getpid().as_raw_nonzero().get();
    // The next round finds the children of the orphans.
    for _ in 0..MAX_PROCESSES {
        let mut killed = false;
        for child in children(me) {
            let Some(pid) = Pid::from_raw(child) else { continue };
            let own = getpgid(Some(pid)).map_or(true, |group| group == getpgrp());
            if !own && !started(child) && runs(child) {
                kill_below(child);
                killed |= kill_child(child, me);
            }
        }
        if !killed {
            return;
        }
    }
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

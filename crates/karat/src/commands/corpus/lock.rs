//! `karat corpus lock`: the digests of every definition in a corpus.

use karat_io::input::write_atomic;
use karat_io::text::count;
use karat_retrieval::snapshot::lock::Lock;

use super::snapshot;
use crate::cli::LockArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

pub(super) fn run(arguments: &LockArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let snapshot = snapshot(&arguments.corpus)?;
    if snapshot.is_empty() {
        return Err(Stop::bad_input(format!("{}: no tools to lock", arguments.corpus.display())));
    }
    let lock = Lock::of(&snapshot);
    let text = karat_report::json::text(&lock);
    let Some(out) = &arguments.output else {
        terminal.print_json_text(&text)?;
        return Ok(Exit::Pass);
    };
    write_atomic(out, text.as_bytes())?;
    terminal.say(&format!(
        "{}: {}, {}",
        out.display(),
        count(lock.servers.len(), "server"),
        count(lock.tools(), "tool")
    ));
    Ok(Exit::Pass)
}

//! Shows a page in the user's browser.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use karat_io::text::printable;

use crate::terminal::Terminal;

/// The program that opens an address or a file, as the platform has it.
const USUAL: &str = match () {
    () if cfg!(target_os = "macos") => "open",
    () if cfg!(windows) => "explorer",
    () => "xdg-open",
};

/// Opens an address or a file. `BROWSER` names another program. Where none can be started, a note says
/// what to open: the result is still there.
pub(crate) fn open(target: &OsStr, terminal: &Terminal) {
    let chosen = std::env::var_os("BROWSER").filter(|name| !name.is_empty());
    let program = chosen.unwrap_or_else(|| USUAL.into());
    let mut command = Command::new(&program);
    command.arg(target).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It may stay when Karat ends, unlike the programs that are measured.
    let started = karat_io::process::spawn_helper(&mut command);
    if let Err(error) = started {
        let (program, target) = (program.to_string_lossy(), target.to_string_lossy());
        terminal.say(&printable(&format!(
            "karat: cannot start the browser {program} ({error}); set BROWSER, or open {target}"
        )));
    }
}

//! The terminal: results on stdout, everything else on stderr.
//!
//! On a terminal progress is a bar; elsewhere (CI, pipes) it is a few plain lines. With `--quiet`
//! there is none. A closed pipe is not an error: the remaining output is dropped, and the exit code does not
//! change.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use karat_core::run;
use karat_io::text::{
    printable, printable_block, printable_json, without_log_commands, without_log_commands_in_json,
};
use karat_report::json;
use karat_report::terminal::Style;
use serde::Serialize;

use crate::cli::{Color, GlobalArgs};
use crate::exit::Stop;

/// The terminal that all commands print to.
pub(crate) struct Terminal {
    options: GlobalArgs,
}

impl Terminal {
    pub(crate) fn new(options: GlobalArgs) -> Terminal {
        Terminal { options }
    }

    /// Returns whether `--json` was given.
    pub(crate) fn json(&self) -> bool {
        self.options.json
    }

    /// Returns whether `--quiet` was given.
    pub(crate) fn quiet(&self) -> bool {
        self.options.quiet
    }

    /// Returns whether `--verbose` was given.
    pub(crate) fn verbose(&self) -> bool {
        self.options.verbose
    }

    /// The appearance of output: as wide as the terminal, or as COLUMNS says, or 100 columns.
    pub(crate) fn style(&self) -> Style {
        let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let seen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let columns = match io::stdout().is_terminal() {
            true => seen().or(given),
            false => given,
        };
        Style::new(self.colors(), columns.unwrap_or(100))
    }

    /// Returns whether stdout takes colours.
    pub(crate) fn colors(&self) -> bool {
        match self.options.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                !refused && io::stdout().is_terminal()
            }
        }
    }

    /// Prints a result.
    pub(crate) fn print(&self, text: &str) -> Result<(), Stop> {
        self.print_bytes(for_log(text).as_bytes())
    }

    /// Prints a result that may be binary.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Result<(), Stop> {
        printed(write_out(bytes))
    }

    /// Prints a result from a reader, as [`for_log`] or [`json_for_log`] have made it.
    pub(crate) fn print_from(&self, mut result: impl io::Read) -> Result<(), Stop> {
        let mut stdout = io::stdout().lock();
        printed(io::copy(&mut result, &mut stdout).and_then(|_| stdout.flush()))
    }

    /// Prints a result as one JSON document.
    pub(crate) fn print_json(&self, document: &impl Serialize) -> Result<(), Stop> {
        if !is_escaped() {
            let mut stdout = io::BufWriter::new(io::stdout().lock());
            let written = json::write(document, &mut stdout).and_then(|()| stdout.flush());
            return printed(written);
        }
        self.print_json_text(&json::text(document))
    }

    /// Prints a result that is JSON already.
    pub(crate) fn print_json_text(&self, json: &str) -> Result<(), Stop> {
        self.print_bytes(json_for_log(json).as_bytes())
    }

    /// Prints a message to stderr, unless `--quiet` was given.
    pub(crate) fn say(&self, text: &str) {
        if !self.options.quiet {
            let _ = writeln!(io::stderr(), "{}", for_log(text));
        }
    }

    /// Hints at the new spelling of a command; the old one works for this release only.
    pub(crate) fn renamed(&self, old: &str, new: &str) {
        self.renamed_at("", old, new);
    }

    /// The same, at a place in a file.
    pub(crate) fn renamed_at(&self, place: &str, old: &str, new: &str) {
        self.say(&printable(&format!(
            "karat: {place}`{old}` is now `{new}`; the old spelling will be removed in the next release"
        )));
    }

    /// Shows the progress of a run.
    pub(crate) fn progress(&self, what: &str) -> Progress {
        let what = for_log(&printable(what)).into_owned();
        if self.options.quiet {
            return Progress { what, show: Show::Nothing };
        }
        let watched = io::stderr().is_terminal() && std::env::var_os("CI").is_none();
        let show = if watched {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.set_message(what.clone());
            Show::Bar(bar)
        } else {
            Show::Lines(Lines::default())
        };
        Progress { what, show }
    }
}

/// Reports an error on stderr, whatever is quiet.
pub(crate) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "karat: {}", for_log(&printable_block(message)));
}

/// Writes to stdout, and all of it.
pub(crate) fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Ignores a closed pipe.
pub(crate) fn printed(written: io::Result<()>) -> Result<(), Stop> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns whether the output goes to the log of a CI system, which may take commands from it.
fn in_ci() -> bool {
    let systems = ["CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION"];
    systems.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Returns whether stdout is a terminal, or a log that may interpret commands.
fn is_escaped() -> bool {
    in_ci() || io::stdout().is_terminal()
}

/// JSON with untrusted text, escaped for a terminal or a log; it stays the same JSON.
pub(crate) fn json_for_log(json: &str) -> Cow<'_, str> {
    if !is_escaped() {
        return Cow::Borrowed(json);
    }
    Cow::Owned(without_log_commands_in_json(&printable_json(json)).into_owned())
}

/// Untrusted text, escaped for a log.
pub(crate) fn for_log(text: &str) -> Cow<'_, str> {
    if in_ci() { without_log_commands(text) } else { Cow::Borrowed(text) }
}

/// Shows the progress of one run.
pub(crate) struct Progress {
    what: String,
    show: Show,
}

enum Show {
    Nothing,
    Bar(ProgressBar),
    Lines(Lines),
}

impl run::Progress for Progress {
    fn started(&self, total: usize, resumed: usize) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => {
                bar.set_length(total as u64);
                bar.set_position(resumed as u64);
            }
            Show::Lines(lines) => lines.started(&self.what, total, resumed),
        }
    }

    fn working(&self, on: &str) {
        if let Show::Bar(bar) = &self.show {
            bar.set_message(format!("{} ({})", self.what, printable(on)));
        }
    }

    fn stage(&self, what: &str) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(_) => self.working(what),
            Show::Lines(_) => {
                let _ = writeln!(io::stderr(), "{}: {}", self.what, printable(what));
            }
        }
    }

    fn answered(&self, _: &str, _: bool) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.inc(1),
            Show::Lines(lines) => lines.answered(&self.what),
        }
    }

    fn finished(&self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }
}

/// Progress as plain lines: one at the start, and one at each quarter of a long run.
#[derive(Default)]
struct Lines {
    total: AtomicUsize,
    done: AtomicUsize,
}

impl Lines {
    fn started(&self, what: &str, total: usize, resumed: usize) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(resumed, Ordering::Relaxed);
        let _ = writeln!(io::stderr(), "{what}: {resumed}/{total}");
    }

    fn answered(&self, what: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.total.load(Ordering::Relaxed).max(1);
        if total >= 1000 && 4 * done / total > 4 * (done - 1) / total {
            let _ = writeln!(io::stderr(), "{what}: {done}/{total}");
        }
    }
}

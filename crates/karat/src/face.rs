//! The terminal: results on stdout, everything else on stderr.
//!
//! On a terminal progress is a bar; elsewhere (CI, pipes) it is a few plain lines. With `--quiet`
//! there is none. A reader that has seen enough may go: what is left is not printed, and the exit code
//! stays what it is.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use karat_core::run;
use karat_io::text::printable;
use serde::Serialize;

use crate::cli::{Color, Face};
use crate::exit::Stop;

/// The shared face of all commands.
pub(crate) struct Terminal {
    face: Face,
}

impl Terminal {
    pub(crate) fn new(face: Face) -> Terminal {
        Terminal { face }
    }

    /// Returns whether the result is wanted as JSON.
    pub(crate) fn json(&self) -> bool {
        self.face.json
    }

    /// Returns whether only errors, what failed and what was asked for is said.
    pub(crate) fn quiet(&self) -> bool {
        self.face.quiet
    }

    /// Returns whether stdout takes colours.
    pub(crate) fn colors(&self) -> bool {
        match self.face.color {
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
        self.print_bytes(text.as_bytes())
    }

    /// Prints a result that need not be text.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Result<(), Stop> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Prints a result as one JSON document.
    pub(crate) fn print_json(&self, document: &impl Serialize) -> Result<(), Stop> {
        self.print(&karat_report::json::text(document))
    }

    /// Says something on the side; not with `--quiet`.
    pub(crate) fn say(&self, text: &str) {
        if !self.face.quiet {
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Hints at the new spelling of a command; the old one works for one more release.
    pub(crate) fn renamed(&self, old: &str, new: &str) {
        self.say(&format!("karat: `{old}` is now `{new}`; the old spelling will be removed"));
    }

    /// Shows the progress of a run.
    pub(crate) fn progress(&self, what: &str) -> Progress {
        let what = printable(what).into_owned();
        if self.face.quiet {
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
        let known = match resumed {
            0 => String::new(),
            _ => format!(", {resumed} already answered"),
        };
        let _ = writeln!(io::stderr(), "{what}: {total} to ask{known}");
    }

    fn answered(&self, what: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.total.load(Ordering::Relaxed).max(1);
        if total >= 1000 && 4 * done / total > 4 * (done - 1) / total {
            let _ = writeln!(io::stderr(), "{what}: {done}/{total}");
        }
    }
}

//! Exit codes: one type for all of them, and the error that carries one.

use karat_core::error::EvalError;
use karat_core::project::ProjectError;
use karat_io::input::{InputError, WriteError};

/// The exit codes. "Got worse" and "was not measured" are never confused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything passed.
    Pass,
    /// A gate failed; no other error.
    GateFailed,
    /// Bad usage, project or dataset.
    BadInput,
    /// Not measured: the system did not start, was not ready or was lost.
    NotMeasured,
    /// The data cannot decide; only under `--strict`.
    Inconclusive,
    /// Ended by a signal, with the code that shells use for it.
    Stopped(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Pass => 0,
            Exit::GateFailed => 1,
            Exit::BadInput => 2,
            Exit::NotMeasured => 3,
            Exit::Inconclusive => 4,
            Exit::Stopped(code) => code,
        }
    }
}

/// The reason why a command ended early: a code and one message.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// True if `--resume` can continue from here.
    pub(crate) resumable: bool,
}

impl Stop {
    pub(crate) fn bad_input(message: impl std::fmt::Display) -> Stop {
        Stop { exit: Exit::BadInput, message: message.to_string(), resumable: false }
    }

    pub(crate) fn not_measured(message: impl std::fmt::Display) -> Stop {
        Stop { exit: Exit::NotMeasured, message: message.to_string(), resumable: false }
    }
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Stop {
        Stop::bad_input(error)
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Stop {
        Stop::bad_input(error)
    }
}

impl From<std::io::Error> for Stop {
    /// Writing results failed.
    fn from(error: std::io::Error) -> Stop {
        Stop::bad_input(format!("cannot write the output: {error}"))
    }
}

impl From<EvalError> for Stop {
    fn from(error: EvalError) -> Stop {
        let stop = match error.is_not_measured() {
            true => Stop::not_measured(&error),
            false => Stop::bad_input(&error),
        };
        Stop { resumable: error.is_resumable(), ..stop }
    }
}

impl From<ProjectError> for Stop {
    fn from(error: ProjectError) -> Stop {
        Stop::bad_input(error)
    }
}

//! The runtime of asynchronous work, and its end: one runtime, and signals that leave no program
//! behind.

use karat_io::process::end_all_on_signal;
use tokio::runtime::{Builder, Runtime};

use crate::exit::{Exit, Stop};

/// Enough to read from a system while asking it.
const WORKERS: usize = 2;

/// The runtime of a command.
pub(crate) fn runtime() -> Result<Runtime, Stop> {
    started(Builder::new_multi_thread().worker_threads(WORKERS))
}

fn started(builder: &mut Builder) -> Result<Runtime, Stop> {
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| Stop::bad_input(format!("cannot start: {error}")))
}

/// Does the work, unless a signal ends it: then every program that was started is killed, and the
/// message says what that means for the user.
pub(crate) fn until_stopped<T>(
    work: impl Future<Output = Result<T, Stop>>,
    message: &str,
) -> Result<T, Stop> {
    unless_stopped(&runtime()?, work, message)
}

/// As [`until_stopped`], on this thread alone: where calls are many and short, threads that wake each
/// other for every answer cost more than they do, and take the processors from what is measured.
pub(crate) fn until_stopped_on_one_thread<T>(
    work: impl Future<Output = Result<T, Stop>>,
    message: &str,
) -> Result<T, Stop> {
    unless_stopped(&started(&mut Builder::new_current_thread())?, work, message)
}

/// As [`until_stopped`], but the first interrupt only calls `stop`, after which the work is expected to end
/// soon by itself; the second one ends it.
pub(crate) fn until_stopped_twice<T>(
    work: impl Future<Output = Result<T, Stop>>,
    stop: &dyn Fn(),
) -> Result<T, Stop> {
    let runtime = runtime()?;
    let work = async {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            Ok(()) = tokio::signal::ctrl_c() => stop(),
            Ok(code) = end_all_on_signal() => return Err(stopped(code, "stopped")),
        }
        tokio::select! {
            done = &mut work => done,
            Ok(code) = end_all_on_signal() => Err(stopped(code, "interrupted")),
        }
    };
    runtime.block_on(work)
}

fn stopped(code: u8, message: &str) -> Stop {
    Stop { exit: Exit::Stopped(code), message: message.to_owned(), can_go_on: false }
}

fn unless_stopped<T>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T, Stop>>,
    message: &str,
) -> Result<T, Stop> {
    runtime.block_on(async {
        tokio::select! {
            done = work => done,
            Ok(code) = end_all_on_signal() => Err(stopped(code, message)),
        }
    })
}

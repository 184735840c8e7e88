//! The runtime of asynchronous work, and its end: one runtime, and signals that leave no program
//! behind.
//!
//! Work that waits sees a signal at once. Work that computes does not, and neither does a report that is
//! being written after it: a thread of its own then ends the process.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use karat_io::input::remove_unfinished;
use karat_io::process::{end_all, stop_signal};
use tokio::runtime::{Builder, Runtime};

use crate::exit::{Exit, Stop};
use crate::terminal::complain;

/// Enough to read from a system while asking it.
const WORKERS: usize = 2;

/// After the work there are outputs to write, and a signal ends that too.
const UNWRITTEN: &str = "interrupted before everything was written";
/// The time in which work sees a signal by itself.
const GRACE: Duration = Duration::from_millis(500);

/// The number of signals that were taken where work waits.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// The message for the user if the work is stopped.
static MESSAGE: Mutex<String> = Mutex::new(String::new());

fn set_message(message: &str) {
    message.clone_into(&mut MESSAGE.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Ends the process after a signal that nothing else takes; from here to the end of the process.
fn end_on_signal(message: &str) {
    static STARTED: Once = Once::new();
    set_message(message);
    STARTED.call_once(|| {
        // Without the thread a signal is still seen where work waits.
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait_for_signals);
    });
}

fn wait_for_signals() {
    let Ok(runtime) = started(&mut Builder::new_current_thread()) else { return };
    runtime.block_on(async {
        loop {
            let before = TAKEN.load(Ordering::SeqCst);
            let Ok(code) = stop_signal().await else { return };
            tokio::time::sleep(GRACE).await;
            if TAKEN.load(Ordering::SeqCst) > before {
                continue;
            }
            end_all();
            remove_unfinished();
            let message = MESSAGE.lock().unwrap_or_else(PoisonError::into_inner).clone();
            complain(&message);
            std::process::exit(i32::from(code));
        }
    });
}

/// Waits for a signal, and kills the running programs.
async fn signal_taken() -> std::io::Result<u8> {
    let code = stop_signal().await?;
    TAKEN.fetch_add(1, Ordering::SeqCst);
    end_all();
    Ok(code)
}

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
    end_on_signal("interrupted");
    let end = async |mut work: Work<'_>| {
        tokio::select! {
            biased;
            () = &mut work => return Ok(()),
            Ok(()) = tokio::signal::ctrl_c() => {
                TAKEN.fetch_add(1, Ordering::SeqCst);
                stop();
            }
            Ok(code) = signal_taken() => return Err(stopped(code, "stopped")),
        }
        tokio::select! {
            () = &mut work => Ok(()),
            Ok(code) = signal_taken() => Err(stopped(code, "interrupted")),
        }
    };
    finished(work, |work| {
        let ended = runtime.block_on(end(work));
        set_message(UNWRITTEN);
        ended
    })
}

fn stopped(code: u8, message: &str) -> Stop {
    Stop { exit: Exit::Stopped(code), message: message.to_owned(), resumable: false }
}

fn unless_stopped<T>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T, Stop>>,
    message: &str,
) -> Result<T, Stop> {
    finished(work, |work| wait(runtime, work, message))
}

/// Work whose result is kept elsewhere. Behind a pointer, so that what waits for it is compiled once.
type Work<'w> = Pin<Box<dyn Future<Output = ()> + 'w>>;

/// The result of work that `wait` waits for until it is done or stopped.
fn finished<T>(
    work: impl Future<Output = Result<T, Stop>>,
    wait: impl FnOnce(Work<'_>) -> Result<(), Stop>,
) -> Result<T, Stop> {
    let mut result = None;
    wait(Box::pin(async { result = Some(work.await) }))?;
    result.unwrap_or_else(|| Err(Stop::bad_input("the work ended without a result")))
}

fn wait(runtime: &Runtime, work: Work<'_>, message: &str) -> Result<(), Stop> {
    end_on_signal(message);
    let ended = runtime.block_on(async {
        tokio::select! {
            () = work => Ok(()),
            Ok(code) = signal_taken() => Err(stopped(code, message)),
        }
    });
    set_message(UNWRITTEN);
    ended
}

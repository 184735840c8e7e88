//! Isolation of the servers that a session starts.
//!
//! An engine is a prefix of the command: `bwrap …` or `docker run -i …` in front of the server, which is then
//! a child process like any other. So there is no client of the Docker API here (bollard needs 79 crates for
//! what `docker run -i` does), and ending the prefix ends the server. If the requested engine is missing, the
//! start fails. The limits in force are described in [`crate::Session::isolation`], because some depend on
//! the user.

#[cfg(all(target_os = "linux", not(karat_portable)))]
mod bwrap;
mod docker;
mod isolation;
mod launch;

/// Systems without bubblewrap, which needs the namespaces of Linux.
#[cfg(any(not(target_os = "linux"), karat_portable))]
mod bwrap {
    use super::{Isolation, Launch, Program, StartError};

    pub(super) fn launch(isolation: &Isolation, _: &Program) -> Result<Launch, StartError> {
        super::launch::given_paths(isolation)?;
        let here = karat_io::platform::name();
        Err(StartError::NotStarted {
            why: format!(
                "--isolate bwrap needs Linux, and this is {here}: choose --isolate docker, or none"
            ),
        })
    }

    pub(super) fn advice(_: &str) -> Option<&'static str> {
        None
    }
}

use std::path::Path;

use karat_io::process::Program;
use karat_io::text::printable;

pub use self::isolation::{Engine, Isolation};

pub(crate) use self::launch::Launch;
use crate::error::StartError;

/// Puts the engine in front of the program.
pub(crate) async fn launch(
    isolation: Option<&Isolation>,
    program: Program,
    explicit_folder: bool,
) -> Result<Launch, StartError> {
    let Some(isolation) = isolation else { return Ok(Launch { program, in_force: Vec::new() }) };
    match isolation.engine {
        Engine::None => Ok(Launch { program, in_force: Vec::new() }),
        Engine::Bwrap => bwrap::launch(isolation, &program),
        Engine::Docker => docker::launch(isolation, program, explicit_folder).await,
    }
}

/// Adds advice to a failed start if the engine is the reason.
pub(crate) fn explain(isolation: Option<&Isolation>, error: StartError) -> StartError {
    let engine = isolation.map_or(Engine::None, |isolation| isolation.engine);
    let advice = match engine {
        Engine::None => return error,
        Engine::Bwrap => bwrap::advice(&error.to_string()),
        Engine::Docker => docker::advice(&error.to_string()),
    };
    match (advice, error) {
        (Some(advice), StartError::NotStarted { why } | StartError::Handshake { why }) => {
            StartError::NotStarted { why: format!("{why}; {advice}") }
        }
        (_, error) => error,
    }
}

/// Checks that the working folder exists. In a container it may be one of the image.
///
/// # Errors
/// If it does not: the error of the system would blame the program.
pub(crate) fn check_folder(
    isolation: Option<&Isolation>,
    folder: Option<&Path>,
) -> Result<(), StartError> {
    let in_image = isolation.is_some_and(|isolation| isolation.engine == Engine::Docker);
    match folder {
        Some(folder) if !in_image && !folder.is_dir() => Err(StartError::Spec {
            why: format!(
                "the working folder of the server does not exist: {}",
                printable(&folder.to_string_lossy())
            ),
        }),
        _ => Ok(()),
    }
}

//! `--record FILE`: every message of a command's sessions, to be served again by `karat demo-server
//! --replay`. The file is begun just before the server is, and says so when it could not be written
//! whole.

use std::path::Path;

use karat_mcp::{Options, Recorder};

use crate::cli::RecordArgs;
use crate::exit::Stop;

/// A recording that was asked for, or none.
pub(super) struct Recording<'a> {
    asked: Option<(&'a Path, Recorder)>,
}

impl<'a> Recording<'a> {
    /// Begins the file, if one is wanted.
    pub(super) fn begin(arguments: &'a RecordArgs) -> Result<Recording<'a>, Stop> {
        let Some(path) = arguments.record.as_deref() else { return Ok(Recording { asked: None }) };
        let recorder = Recorder::create(path).map_err(|error| wrong(path, &error))?;
        Ok(Recording { asked: Some((path, recorder)) })
    }

    /// The recorder of a session.
    pub(super) fn recorder(&self) -> Option<Recorder> {
        self.asked.as_ref().map(|(_, recorder)| recorder.clone())
    }

    /// The options of a session, which is recorded.
    pub(super) fn options(&self, of: Options) -> Options {
        Options { recorder: self.recorder(), ..of }
    }

    /// Writes out the rest, whatever came of the sessions; their failure is reported first.
    pub(super) fn finish<T>(self, came: Result<T, Stop>) -> Result<T, Stop> {
        let Some((path, recorder)) = self.asked else { return came };
        let written = recorder.finish().map_err(|error| wrong(path, &error));
        let came = came?;
        written?;
        Ok(came)
    }
}

fn wrong(path: &Path, error: &std::io::Error) -> Stop {
    Stop::bad_input(format!("--record {}: cannot write: {error}", path.display()))
}

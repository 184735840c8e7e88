//! The files that the binary carries with it: the bundled project with its datasets and baselines.

use std::io::{self, Read as _};
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use karat_core::dataset::{DatasetFiles, EmbeddedFiles};
use karat_core::error::EvalError;
use karat_core::project::{BUNDLED, Bundle};
use karat_io::text::printable;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The files of one folder, compressed: the texts would otherwise be a seventh of the binary.
pub(crate) struct Packed {
    name: &'static str,
    /// Name and length of each file, in the order of their bytes.
    list: &'static [(&'static str, usize)],
    bytes: &'static [u8],
    files: OnceLock<EmbeddedFiles>,
}

impl Packed {
    const fn new(
        name: &'static str,
        list: &'static [(&'static str, usize)],
        bytes: &'static [u8],
    ) -> Packed {
        Packed { name, list, bytes, files: OnceLock::new() }
    }

    /// Unpacks them, once, for as long as the program runs.
    fn files(&self) -> Result<EmbeddedFiles, EvalError> {
        if let Some(files) = self.files.get() {
            return Ok(files);
        }
        let damaged = |error: io::Error| {
            EvalError::config(format!("the karat executable is damaged ({error}); reinstall it"))
        };
        let mut all = Vec::with_capacity(self.list.iter().map(|(_, length)| length).sum());
        GzDecoder::new(self.bytes).read_to_end(&mut all).map_err(damaged)?;
        let mut rest: &'static [u8] = all.leak();
        let mut files = Vec::with_capacity(self.list.len());
        for &(name, length) in self.list {
            let too_short = || damaged(io::ErrorKind::UnexpectedEof.into());
            let (file, after) = rest.split_at_checked(length).ok_or_else(too_short)?;
            files.push((name, file));
            rest = after;
        }
        Ok(self.files.get_or_init(|| files.leak()))
    }
}

/// The folder of the embedded datasets in the repository.
const FOLDER: &str = "datasets/";

/// The embedded files.
pub(crate) struct Embedded;

impl Bundle for Embedded {
    fn file(&self, path: &str) -> Option<&'static [u8]> {
        let files = PROJECT.files().ok()?;
        files.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
    }

    fn dataset(&self, name: &str) -> Result<DatasetFiles, EvalError> {
        let path = format!("{FOLDER}{name}");
        if let Some(packed) = DATASETS.iter().find(|packed| packed.name == path) {
            return Ok(DatasetFiles::Embedded { name: packed.name, files: packed.files()? });
        }
        let whole = |packed: &&Packed| packed.list.iter().any(|(name, _)| *name == "manifest.toml");
        let known = DATASETS.iter().filter(whole);
        let known = known.filter_map(|packed| packed.name.strip_prefix(FOLDER));
        let known: Vec<String> = known.map(|name| format!("{BUNDLED}{name}")).collect();
        Err(EvalError::config(format!(
            "no bundled dataset {:?}; expected one of {}",
            printable(name),
            known.join(", ")
        )))
    }
}

/// A dataset as a command line names it: a folder, or `bundled:NAME`.
///
/// # Errors
/// If a bundled one does not exist.
pub(crate) fn dataset(name: &str) -> Result<DatasetFiles, EvalError> {
    match name.strip_prefix(BUNDLED) {
        Some(name) => named(name),
        None => Ok(DatasetFiles::Folder(name.into())),
    }
}

/// An embedded dataset by its name, such as `tools/v1`.
///
/// # Errors
/// If it does not exist.
pub(crate) fn named(name: &str) -> Result<DatasetFiles, EvalError> {
    Embedded.dataset(name)
}

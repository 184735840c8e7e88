//! The files that the binary carries with it: the bundled project with its datasets and baselines.

use karat_core::dataset::DatasetFiles;
use karat_core::error::EvalError;
use karat_core::project::{BUNDLED, Bundle};
use karat_io::text::printable;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The folder of the embedded datasets in the repository.
const FOLDER: &str = "datasets/";

/// The embedded files.
pub(crate) struct Embedded;

impl Bundle for Embedded {
    fn file(&self, path: &str) -> Option<&'static [u8]> {
        FILES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
    }

    fn dataset(&self, name: &str) -> Result<DatasetFiles, EvalError> {
        let path = format!("{FOLDER}{name}");
        if let Some((name, files)) = DATASETS.iter().find(|(known, _)| *known == path) {
            return Ok(DatasetFiles::Embedded { name, files });
        }
        let whole = |files: &[File]| files.iter().any(|(name, _)| *name == "manifest.toml");
        let known = DATASETS.iter().filter(|(_, files)| whole(files));
        let known = known.filter_map(|(name, _)| name.strip_prefix(FOLDER));
        let known: Vec<String> = known.map(|name| format!("{BUNDLED}{name}")).collect();
        Err(EvalError::config(format!(
            "no bundled dataset {:?}; there are: {}",
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

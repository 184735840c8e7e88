//! What the binary carries with it: the bundled project with its datasets and baselines.

use karat_core::dataset::DatasetFiles;
use karat_io::text::printable;

use crate::exit::Stop;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// An embedded file, by its path in the repository.
pub(crate) fn file(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
}

/// Where the embedded datasets are in the repository.
const FOLDER: &str = "datasets/";

/// An embedded dataset, by its path in the repository.
///
/// # Errors
/// Names those that there are.
pub(crate) fn dataset(path: &str) -> Result<DatasetFiles, Stop> {
    if let Some((name, files)) = DATASETS.iter().find(|(name, _)| *name == path) {
        return Ok(DatasetFiles::Embedded { name, files });
    }
    let whole = |files: &[File]| files.iter().any(|(name, _)| *name == "manifest.toml");
    let known = DATASETS.iter().filter(|(_, files)| whole(files));
    let known = known.filter_map(|(name, _)| name.strip_prefix(FOLDER));
    let known: Vec<String> = known.map(|name| format!("bundled:{name}")).collect();
    let wanted = path.strip_prefix(FOLDER).unwrap_or(path);
    Err(Stop::bad_input(format!(
        "there is no bundled dataset {:?}; there are: {}",
        printable(wanted),
        known.join(", ")
    )))
}

/// An embedded dataset by what a project calls it: what stands behind `bundled:`.
pub(crate) fn named_dataset(name: &str) -> Result<DatasetFiles, Stop> {
    dataset(&format!("{FOLDER}{name}"))
}

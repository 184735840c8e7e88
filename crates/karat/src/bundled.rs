//! What the binary carries with it: the bundled project with its datasets and baselines.

use karat_core::dataset::DatasetFiles;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// An embedded file, by its path in the repository.
pub(crate) fn file(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
}

/// An embedded dataset, by its path in the repository; empty if there is none.
pub(crate) fn dataset(path: &str) -> DatasetFiles {
    match DATASETS.iter().find(|(name, _)| *name == path) {
        Some((name, files)) => DatasetFiles::Embedded { name, files },
        None => DatasetFiles::Embedded { name: "no such dataset", files: &[] },
    }
}

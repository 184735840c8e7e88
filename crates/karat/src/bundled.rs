//! What the binary carries with it: the bundled project with its datasets and baselines.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// An embedded file, by its path in the repository.
pub(crate) fn file(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
}

/// The files of an embedded folder, with paths inside it.
pub(crate) fn folder(path: &str) -> Vec<(&'static str, &'static [u8])> {
    FILES
        .iter()
        .filter_map(|(name, bytes)| {
            Some((name.strip_prefix(path)?.strip_prefix('/')?, *bytes))
        })
        .collect()
}

//! The built-in detectors of this repository and the corpus that they are measured on.

use std::path::Path;

use karat_detection::tuning_guard;

#[test]
fn a_commit_changes_the_built_in_detectors_or_the_threat_corpus_but_not_both() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = crate_folder.join("../../datasets/threats");
    let detectors =
        ["src", "lexicon"].map(|folder| crate_folder.join("../karat-detectors").join(folder));
    assert!(corpus.is_dir() && detectors.iter().all(|folder| folder.is_dir()));
    let warnings = tuning_guard::warnings(&corpus, &detectors);
    // The working tree may have both until they are committed.
    let committed: Vec<_> = warnings.iter().filter(|found| found.contains(" in commit ")).collect();
    assert!(committed.is_empty(), "make two commits of it: {committed:?}");
}

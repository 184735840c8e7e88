//! Every fuzz target of `fuzz/`, run on its committed corpus and on seeded mutations of it.
//!
//! libFuzzer finds more and needs a build of its own (`./test fuzz`); this runs the same code in the
//! build that the other tests use, so that no target goes unrun and none that is new is forgotten.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const MUTATIONS: usize = 400;
const MAX_INPUT_BYTES: usize = 4096;

/// Stands in for libFuzzer's: makes the target a function.
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:block) => {
        pub(crate) fn run($bytes: &[u8]) $body
    };
    (|$text:ident: &str| $body:block) => {
        pub(crate) fn run(bytes: &[u8]) {
            let Ok($text) = std::str::from_utf8(bytes) else { return };
            $body
        }
    };
}

macro_rules! targets {
    ($($(#[$only:meta])* $name:ident $path:literal)*) => {
        $(
            $(#[$only])*
            #[path = $path]
            #[allow(unused_attributes, reason = "`no_main` is for libFuzzer's build of the target")]
            mod $name;
        )*
        const TARGETS: &[(&str, fn(&[u8]))] = &[$($(#[$only])* (stringify!($name), $name::run)),*];
    };
}

targets! {
    answer "../../../../fuzz/fuzz_targets/answer.rs"
    archive "../../../../fuzz/fuzz_targets/archive.rs"
    attacked_runs "../../../../fuzz/fuzz_targets/attacked_runs.rs"
    baseline "../../../../fuzz/fuzz_targets/baseline.rs"
    challenge "../../../../fuzz/fuzz_targets/challenge.rs"
    dataset "../../../../fuzz/fuzz_targets/dataset.rs"
    inputs "../../../../fuzz/fuzz_targets/inputs.rs"
    journal "../../../../fuzz/fuzz_targets/journal.rs"
    json_lines "../../../../fuzz/fuzz_targets/json_lines.rs"
    lock "../../../../fuzz/fuzz_targets/lock.rs"
    manifest "../../../../fuzz/fuzz_targets/manifest.rs"
    #[cfg(feature = "parquet")]
    partials "../../../../fuzz/fuzz_targets/partials.rs"
    places "../../../../fuzz/fuzz_targets/places.rs"
    printable "../../../../fuzz/fuzz_targets/printable.rs"
    project "../../../../fuzz/fuzz_targets/project.rs"
    rankings "../../../../fuzz/fuzz_targets/rankings.rs"
    recording "../../../../fuzz/fuzz_targets/recording.rs"
    report "../../../../fuzz/fuzz_targets/report.rs"
    schema "../../../../fuzz/fuzz_targets/schema.rs"
    servers "../../../../fuzz/fuzz_targets/servers.rs"
    shapes "../../../../fuzz/fuzz_targets/shapes.rs"
    suite "../../../../fuzz/fuzz_targets/suite.rs"
    threats "../../../../fuzz/fuzz_targets/threats.rs"
    traces "../../../../fuzz/fuzz_targets/traces.rs"
    trec "../../../../fuzz/fuzz_targets/trec.rs"
    verdicts "../../../../fuzz/fuzz_targets/verdicts.rs"
    yaml "../../../../fuzz/fuzz_targets/yaml.rs"
}

/// A small generator (SplitMix64), so that a failure comes again.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let end = start + self.below((length - start).min(64) + 1);
        start..end
    }
}

/// Text that parsers stumble over: brackets, numbers at the edges, escapes, separators, odd characters.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    "\n",
    "\r\n",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "\u{1b}[31m",
    "null",
    "true",
    "-1",
    "1e999",
    "-0.0",
    "18446744073709551616",
    "0.1",
    "NaN",
    "\\ud800",
    "&a",
    "*a",
    "<<: *a",
    "!!binary",
    "- ",
    "---\n",
    "\t",
    "=",
    "[[",
    "]]",
    "#",
    "$ref",
    "{\"a\":",
    "[[[[[[[[[[[[[[[[",
    "\u{fffd}",
    "é",
    "😀",
];

fn mutated(inputs: &[Vec<u8>], seeded: &mut Seeded) -> Vec<u8> {
    let mut bytes = inputs[seeded.below(inputs.len())].clone();
    for _ in 0..=seeded.below(4) {
        let range = seeded.range(bytes.len());
        match seeded.below(7) {
            0 => drop(bytes.drain(range)),
            1 => bytes.truncate(range.start),
            2 => {
                let piece = PIECES[seeded.below(PIECES.len())];
                drop(bytes.splice(range.start..range.start, piece.bytes()));
            }
            3 => {
                let piece = PIECES[seeded.below(PIECES.len())];
                drop(bytes.splice(range, piece.bytes()));
            }
            4 => {
                let again = bytes[range.clone()].to_vec();
                drop(bytes.splice(range.end..range.end, again));
            }
            5 => {
                let other = &inputs[seeded.below(inputs.len())];
                let from = seeded.range(other.len());
                drop(bytes.splice(range, other[from].to_vec()));
            }
            _ => {
                if let Some(byte) = bytes.get_mut(range.start) {
                    *byte ^= 1 << seeded.below(8);
                }
            }
        }
        bytes.truncate(MAX_INPUT_BYTES);
    }
    bytes
}

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = fuzz_folder().join("corpus").join(target);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn every_target_survives_its_corpus_and_mutations() {
    for (name, target) in TARGETS {
        let inputs = corpus(name);
        let mut seeded = Seeded(7);
        let mutations = std::iter::repeat_with(|| mutated(&inputs, &mut seeded)).take(MUTATIONS);
        for input in inputs.iter().cloned().chain(mutations) {
            let ended = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(ended.is_ok(), "{name} fell over {:?}", String::from_utf8_lossy(&input));
        }
    }
}

#[test]
fn every_target_of_the_folder_is_run_here() {
    let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    let found: BTreeSet<String> = fs::read_dir(fuzz_folder().join("fuzz_targets"))
        .unwrap()
        .map(|entry| stem(entry.unwrap().path()))
        .collect();
    let mut run: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    if !cfg!(feature = "parquet") {
        run.insert("partials".to_owned());
    }
    assert_eq!(found, run);
}

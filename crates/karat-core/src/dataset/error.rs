//! Errors of datasets.

use std::io;
use std::path::PathBuf;

use super::{Digest, FilePath, Version};
use karat_io::input::{InputError, WriteError, name, shown};

/// The reason why a dataset cannot be used or frozen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The folder has no `manifest.toml`.
    #[error(
        "{}: no manifest.toml here; name a dataset folder, or make one with `karat corpus freeze`",
        name(folder)
    )]
    NoManifest {
        /// The folder.
        folder: PathBuf,
    },
    /// A file of the dataset (or its manifest) does not hold what it should.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A listed file is not there.
    #[error(
        "{}: listed in the manifest but missing; restore it, or make {next} without it",
        name(file)
    )]
    Missing {
        /// The file.
        file: PathBuf,
        /// The version that may differ.
        next: Version,
    },
    /// A file is there that the manifest does not list.
    #[error("{}: not listed in the manifest; remove it, or make {next} with it", name(file))]
    Unlisted {
        /// The file.
        file: PathBuf,
        /// The version that may differ.
        next: Version,
    },
    /// A file is not what was frozen.
    #[error(
        "{}: changed since it was frozen; restore it, or make {next}\n  expected {expected}\n  found    {found}",
        name(file)
    )]
    Changed {
        /// The file.
        file: PathBuf,
        /// The digest in the manifest.
        expected: Digest,
        /// The digest of the file.
        found: Digest,
        /// The version that may differ.
        next: Version,
    },
    /// A file differs from what was frozen by its line ends alone.
    #[error(
        "{}: only its line endings differ from the frozen file: it was checked out with CRLF; add \
         `datasets/** -text` to .gitattributes, remove the file and check it out again",
        name(file)
    )]
    LineEnds {
        /// The file.
        file: PathBuf,
    },
    /// A symbolic link, device or pipe among the files.
    #[error(
        "{}: not a regular file; a dataset must not contain links: replace it with a copy",
        name(file)
    )]
    NotPlain {
        /// The file.
        file: PathBuf,
    },
    /// A file name that a manifest cannot list.
    #[error("{}: {reason}; rename it", name(file))]
    BadName {
        /// The file.
        file: PathBuf,
        /// The problem with the name.
        reason: BadPath,
    },
    /// A file was asked for that is not part of the dataset.
    #[error("dataset {} {version} has no file `{file}`", shown(dataset))]
    NotInDataset {
        /// The name of the dataset.
        dataset: String,
        /// Its version.
        version: Version,
        /// The file that was asked for.
        file: FilePath,
    },
    /// The folder is frozen with other content.
    #[error(
        "{}: its files changed since it was frozen as {version}; a frozen dataset must not change: make {next}",
        name(folder)
    )]
    Frozen {
        /// The folder.
        folder: PathBuf,
        /// The version that is there.
        version: Version,
        /// The version to make instead.
        next: Version,
    },
    /// There is nothing to freeze.
    #[error("{}: no files to freeze; put them there first", name(folder))]
    Empty {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder could not be read.
    #[error("{}: cannot be read: {source}", name(path))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The manifest could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// More than one thing is wrong.
    #[error("{}", listed(.0))]
    Several(Vec<DatasetError>),
}

impl DatasetError {
    /// Nothing wrong, one thing, or several.
    pub(super) fn all(mut problems: Vec<Self>) -> Result<(), Self> {
        match (problems.pop(), problems.is_empty()) {
            (None, _) => Ok(()),
            (Some(only), true) => Err(only),
            (Some(last), false) => {
                problems.push(last);
                Err(Self::Several(problems))
            }
        }
    }
}

/// One problem per line, and not more lines than a screen has.
fn listed(problems: &[DatasetError]) -> String {
    const SHOWN: usize = 10;
    let mut lines: Vec<String> = problems.iter().take(SHOWN).map(ToString::to_string).collect();
    if problems.len() > SHOWN {
        lines.push(format!("and {} more", problems.len() - SHOWN));
    }
    lines.join("\n")
}

/// The reason why a text cannot be the path of a file in a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPath {
    /// Nothing between two slashes, or nothing at all.
    #[error("a path must not have empty parts")]
    EmptyPart,
    /// `.` or `..`.
    #[error("a path in a dataset may not contain `.` or `..`: it cannot leave the folder")]
    Dots,
    /// A slash at the start.
    #[error("a path in a dataset may not be absolute")]
    Absolute,
    /// Backslash, colon or a character that cannot be shown.
    #[error("a path in a dataset may not contain backslashes, colons or invisible characters")]
    Character,
    /// The manifest does not list itself.
    #[error("manifest.toml cannot list itself")]
    Manifest,
    /// The name is not Unicode.
    #[error("the name is not UTF-8")]
    NotUtf8,
}

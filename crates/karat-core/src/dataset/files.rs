//! The files of a dataset, in a folder or inside the program, seen the same way.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Digest;
use super::error::{BadPath, DatasetError};
use karat_io::input::{InputError, Limits, read_raw};
use karat_io::text::printable;

/// The name of the file that lists the others.
pub const MANIFEST: &str = "manifest.toml";

/// The path of a file in a dataset: relative, parts separated by `/`, never leaving the folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct FilePath(String);

impl FilePath {
    /// The path as used in the manifest.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for FilePath {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        // A backslash or a drive letter would mean another file on another system.
        if text.contains(['\\', ':']) || printable(text) != text {
            return Err(BadPath::Character);
        }
        if text.starts_with('/') {
            return Err(BadPath::Absolute);
        }
        for part in text.split('/') {
            match part {
                "" => return Err(BadPath::EmptyPart),
                "." | ".." => return Err(BadPath::Dots),
                _ => {}
            }
        }
        if text == MANIFEST {
            return Err(BadPath::Manifest);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for FilePath {
    type Error = BadPath;

    fn try_from(text: String) -> Result<Self, BadPath> {
        text.parse()
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> Self {
        path.0
    }
}

/// The files that file managers leave in folders that were only looked at.
const LEFT_BY_SYSTEMS: [&str; 3] = [".DS_Store", "Thumbs.db", "desktop.ini"];

/// Files that are part of the program, put there with `include_bytes!`: paths and contents, the
/// manifest among them.
pub type EmbeddedFiles = &'static [(&'static str, &'static [u8])];

/// The place where the files of a dataset are.
#[derive(Clone, Debug)]
pub enum DatasetFiles {
    /// In a folder.
    Folder(PathBuf),
    /// Inside the program, so that it runs without its repository.
    Embedded {
        /// The name in messages.
        name: &'static str,
        /// The files.
        files: EmbeddedFiles,
    },
}

impl DatasetFiles {
    /// The name of a file in messages.
    #[must_use]
    pub fn label(&self, path: &str) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.join(path),
            Self::Embedded { name, .. } => Path::new("embedded").join(name).join(path),
        }
    }

    /// The paths of all files of a dataset.
    ///
    /// # Errors
    /// If there is anything that a dataset may not hold.
    pub fn paths(&self) -> Result<Vec<FilePath>, DatasetError> {
        let (paths, problems) = self.list()?;
        DatasetError::all(problems)?;
        Ok(paths)
    }

    /// Every file except the manifest, sorted, and what is there that should not be.
    pub(super) fn list(&self) -> Result<(Vec<FilePath>, Vec<DatasetError>), DatasetError> {
        let mut problems = Vec::new();
        let mut paths = Vec::new();
        let mut add = |found: Result<String, PathBuf>| {
            let path = match found {
                Ok(path) if path == MANIFEST => return,
                Ok(path) => path.parse().map_err(|reason| (self.label(&path), reason)),
                Err(file) => Err((file, BadPath::NotUtf8)),
            };
            match path {
                Ok(path) => paths.push(path),
                Err((file, reason)) => problems.push(DatasetError::BadName { file, reason }),
            }
        };
        let mut not_plain = Vec::new();
        match self {
            Self::Embedded { files, .. } => {
                files.iter().for_each(|(path, _)| add(Ok((*path).to_owned())));
            }
            Self::Folder(folder) => walk(folder, &mut add, &mut not_plain)?,
        }
        problems.extend(not_plain);
        paths.sort();
        Ok((paths, problems))
    }

    /// The manifest's bytes.
    pub(super) fn manifest(&self, limits: &Limits) -> Result<Vec<u8>, DatasetError> {
        match self {
            Self::Folder(folder) => {
                read_raw(&folder.join(MANIFEST), limits).map_err(|error| match error {
                    InputError::NotFound { .. } => {
                        DatasetError::NoManifest { folder: folder.clone() }
                    }
                    other => other.into(),
                })
            }
            Self::Embedded { .. } => match self.embedded(MANIFEST) {
                Some(bytes) => Ok(bytes.to_vec()),
                None => Err(DatasetError::NoManifest { folder: self.label("") }),
            },
        }
    }

    /// A file's bytes as they are, or `None` when there is no such file.
    pub(super) fn bytes(
        &self,
        path: &FilePath,
        limits: &Limits,
    ) -> Result<Option<Vec<u8>>, DatasetError> {
        match self {
            Self::Embedded { .. } => Ok(self.embedded(path.as_str()).map(<[u8]>::to_vec)),
            Self::Folder(folder) => match plain_file(folder, path)? {
                Some(file) => Ok(Some(read_raw(&file, limits)?)),
                None => Ok(None),
            },
        }
    }

    /// A file's digest, or `None` when there is no such file. The size does not matter.
    pub(super) fn digest(&self, path: &FilePath) -> Result<Option<Digest>, DatasetError> {
        match self {
            Self::Embedded { .. } => Ok(self.embedded(path.as_str()).map(Digest::of)),
            Self::Folder(folder) => {
                let Some(file) = plain_file(folder, path)? else { return Ok(None) };
                let digest = File::open(&file).and_then(Digest::of_reader);
                digest.map(Some).map_err(|source| DatasetError::Io { path: file, source })
            }
        }
    }

    fn embedded(&self, path: &str) -> Option<&'static [u8]> {
        let Self::Embedded { files, .. } = self else { return None };
        files.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
    }
}

/// Walks a folder and those below it. Links are not followed, so it ends.
fn walk(
    folder: &Path,
    add: &mut impl FnMut(Result<String, PathBuf>),
    not_plain: &mut Vec<DatasetError>,
) -> Result<(), DatasetError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| DatasetError::Io { path, source }
    };
    let mut waiting = vec![folder.to_owned()];
    while let Some(current) = waiting.pop() {
        for entry in fs::read_dir(&current).map_err(failed(&current))? {
            let file = entry.map_err(failed(&current))?.path();
            let kind = fs::symlink_metadata(&file).map_err(failed(&file))?.file_type();
            if kind.is_dir() {
                waiting.push(file);
            } else if kind.is_file() {
                if file
                    .file_name()
                    .is_some_and(|name| LEFT_BY_SYSTEMS.iter().any(|one| name == *one))
                {
                    continue;
                }
                add(relative(folder, &file));
            } else {
                not_plain.push(DatasetError::NotPlain { file });
            }
        }
    }
    Ok(())
}

/// The path below the folder with `/` between its parts, on every system.
fn relative(folder: &Path, file: &Path) -> Result<String, PathBuf> {
    let below = file.strip_prefix(folder).unwrap_or(file);
    let parts: Option<Vec<&str>> =
        below.components().map(|part| part.as_os_str().to_str()).collect();
    parts.map(|parts| parts.join("/")).ok_or_else(|| file.to_owned())
}

/// The place of a file that is there, plain, and reached without a link.
fn plain_file(folder: &Path, path: &FilePath) -> Result<Option<PathBuf>, DatasetError> {
    let mut file = folder.to_owned();
    for part in Path::new(path.as_str()).components() {
        // `FilePath` allows nothing else; should it ever, this is not the place to find out.
        let Component::Normal(part) = part else {
            return Err(DatasetError::NotPlain { file: folder.join(path.as_str()) });
        };
        file.push(part);
        match fs::symlink_metadata(&file) {
            Ok(metadata) if metadata.is_file() || metadata.is_dir() => {}
            Ok(_) => return Err(DatasetError::NotPlain { file }),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(source) => return Err(DatasetError::Io { path: file, source }),
        }
    }
    Ok(file.is_file().then_some(file))
}

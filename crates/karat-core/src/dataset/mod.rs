//! Frozen datasets: a folder, a list of its files with their digests, and nothing else in it.
//!
//! `manifest.toml` names the dataset, its version, its licence, how it was made, and the SHA-256 of
//! every file. A [`Dataset`] exists only when all of that holds, and each file is compared again with
//! its digest when it is read. What the files mean is the business of the evaluations.
//!
//! The **digest of a dataset** is the SHA-256 over one line per file, sorted by path (byte order):
//! the path, a NUL byte, the file's digest as written in the manifest, a line feed. Name, version,
//! licence and the text on how it was made do not count: the same files are the same data. What is in
//! the files, part by part, is [`Contents`].

pub mod canonical;
mod contents;
mod digest;
mod error;
mod files;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::contents::{Changes, Contents, DataChange, Fingerprint};
pub use self::digest::{Digest, NotADigest};
pub use self::error::{BadPath, DatasetError};
pub use self::files::{DatasetFiles, EmbeddedFiles, FilePath, MANIFEST};
pub use self::version::{NotAVersion, Version};
use karat_io::input::{Format, InputError, Limits, parse_bytes, write_atomic};

/// A dataset whose files are exactly those of its manifest.
#[derive(Clone, Debug)]
pub struct Dataset {
    manifest: Manifest,
    files: DatasetFiles,
    digest: Digest,
}

impl Dataset {
    /// Opens the dataset in a folder and verifies it.
    ///
    /// # Errors
    /// If the manifest is missing or wrong, or the files are not those it lists.
    pub fn open(folder: &Path) -> Result<Self, DatasetError> {
        Self::of(DatasetFiles::Folder(folder.to_owned()))
    }

    /// Opens a dataset that is part of the program and verifies it.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn embedded(name: &'static str, files: EmbeddedFiles) -> Result<Self, DatasetError> {
        Self::of(DatasetFiles::Embedded { name, files })
    }

    /// Opens a dataset wherever it is and verifies it.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn of(files: DatasetFiles) -> Result<Self, DatasetError> {
        let opened = Self::unverified(files)?;
        opened.manifest.verify(&opened.files)?;
        Ok(opened)
    }

    /// Opens a dataset whose files the caller verifies.
    pub(crate) fn unverified(files: DatasetFiles) -> Result<Self, DatasetError> {
        let manifest = Manifest::read(&files)?;
        let digest = manifest.digest();
        Ok(Self { manifest, files, digest })
    }

    /// The name of the dataset.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.manifest.name
    }

    /// The version of the dataset.
    #[must_use]
    pub fn version(&self) -> Version {
        self.manifest.version
    }

    /// The digest of all its files; see the module for how it is made.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The place where the files are.
    #[must_use]
    pub fn files(&self) -> &DatasetFiles {
        &self.files
    }

    /// The bytes of a file as they are, compared with their digest once more.
    ///
    /// # Errors
    /// If the file is not part of the dataset, too large, or no longer what it was.
    pub fn bytes(&self, path: &FilePath, limits: &Limits) -> Result<Vec<u8>, DatasetError> {
        let next = self.version().next();
        let Some(&expected) = self.manifest.files.get(path) else {
            return Err(DatasetError::NotInDataset {
                dataset: self.id().to_owned(),
                version: self.version(),
                file: path.clone(),
            });
        };
        let file = self.files.label(path.as_str());
        let Some(bytes) = self.files.bytes(path, limits)? else {
            return Err(DatasetError::Missing { file, next });
        };
        let found = Digest::of(&bytes);
        if found != expected {
            return Err(match with_line_feeds(&bytes) == expected {
                true => DatasetError::LineEnds { file },
                false => DatasetError::Changed { file, expected, found, next },
            });
        }
        Ok(bytes)
    }

    /// Reads a file into a type; the format comes from its name, as in [`karat_io::input::load`].
    ///
    /// # Errors
    /// As [`Dataset::bytes`], and when the content does not fit the type.
    pub fn load<T: DeserializeOwned + Send>(
        &self,
        path: &FilePath,
        limits: &Limits,
    ) -> Result<T, DatasetError> {
        let file = self.files.label(path.as_str());
        let format = Format::of(&file);
        let Some(format) = format else {
            return Err(InputError::UnknownFormat { path: file }.into());
        };
        let bytes = self.bytes(path, limits)?;
        Ok(parse_bytes(&file.to_string_lossy(), &bytes, format, limits)?)
    }
}

/// The description of a dataset: everything in a manifest except the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The name: lower-case letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The version.
    pub version: Version,
    /// The licence, as an SPDX expression where there is one.
    pub licence: String,
    /// A description of how the dataset was made.
    pub made: String,
}

/// The content of `manifest.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name: lower-case letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The version.
    pub version: Version,
    /// The licence, as an SPDX expression where there is one.
    pub licence: String,
    /// A description of how the dataset was made.
    pub made: String,
    /// Every file with its digest.
    pub files: BTreeMap<FilePath, Digest>,
}

/// The digest of a text with CRLF taken for line feeds, as it was before git wrote it for Windows.
fn with_line_feeds(bytes: &[u8]) -> Digest {
    let mut plain = Vec::with_capacity(bytes.len());
    for (n, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(n + 1) != Some(&b'\n') {
            plain.push(*byte);
        }
    }
    Digest::of(&plain)
}

/// The treatment by [`Manifest::freeze`] of a folder that is already frozen with other files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfFrozen {
    /// Refuse: a frozen dataset does not change.
    Refuse,
    /// Write a new manifest over the old one. Reports made with the old one can no longer be
    /// compared.
    Replace,
}

impl Manifest {
    /// Reads the manifest of a folder. Nothing is verified.
    ///
    /// # Errors
    /// If there is none, or it is not a manifest.
    pub fn load(folder: &Path) -> Result<Self, DatasetError> {
        Self::read(&DatasetFiles::Folder(folder.to_owned()))
    }

    /// Reads the manifest of a dataset wherever it is. Nothing is verified.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub(crate) fn read(files: &DatasetFiles) -> Result<Self, DatasetError> {
        let limits = Limits { bytes: 16 << 20, ..Limits::default() };
        let bytes = files.manifest(&limits)?;
        Self::parse(&files.label(MANIFEST).to_string_lossy(), &bytes)
    }

    /// Reads a manifest from bytes; `name` is for the path in messages.
    ///
    /// # Errors
    /// If it is not a manifest.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, DatasetError> {
        let manifest: Self = parse_bytes(name, bytes, Format::Toml, &Limits::default())?;
        manifest.check(Path::new(name))?;
        Ok(manifest)
    }

    fn check(&self, path: &Path) -> Result<(), DatasetError> {
        let wrong = |place, message| Err(InputError::invalid(path, place, message).into());
        let ordinary = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let allowed = |c: char| ordinary(c) || "-_.".contains(c);
        if !self.name.starts_with(ordinary) || !self.name.chars().all(allowed) {
            return wrong("name", "use lower-case letters, digits, `-`, `_` and `.`");
        }
        if self.licence.trim().is_empty() {
            return wrong("licence", "state the licence of the files");
        }
        if self.made.trim().is_empty() {
            return wrong("made", "state how the dataset was made");
        }
        if self.files.is_empty() {
            return wrong("files", "list at least one file");
        }
        Ok(())
    }

    /// The digest of all files; see the module for how it is made.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut lines = String::new();
        for (path, digest) in &self.files {
            lines.push_str(&format!("{path}\0{digest}\n"));
        }
        Digest::of(lines.as_bytes())
    }

    /// Compares the files with the list: all are there, none has changed, none is too many.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub fn verify(&self, files: &DatasetFiles) -> Result<(), DatasetError> {
        let next = self.version.next();
        let (present, mut problems) = files.list()?;
        let present: BTreeSet<&FilePath> = present.iter().collect();
        for (path, &expected) in &self.files {
            let file = files.label(path.as_str());
            match files.digest(path) {
                Ok(Some(found)) if found == expected => {}
                Ok(Some(found)) => {
                    let bytes = files.bytes(path, &Limits::default()).ok().flatten();
                    let ends = bytes.is_some_and(|bytes| with_line_feeds(&bytes) == expected);
                    problems.push(match ends {
                        true => DatasetError::LineEnds { file },
                        false => DatasetError::Changed { file, expected, found, next },
                    });
                }
                Ok(None) => problems.push(DatasetError::Missing { file, next }),
                // The list has named it already.
                Err(DatasetError::NotPlain { .. }) if !problems.is_empty() => {}
                Err(other) => problems.push(other),
            }
        }
        for path in present {
            if !self.files.contains_key(path) {
                problems.push(DatasetError::Unlisted { file: files.label(path.as_str()), next });
            }
        }
        DatasetError::all(problems)
    }

    /// Makes the manifest of a folder: computes all digests and writes `manifest.toml`.
    ///
    /// The same files and words give the same bytes. A folder that is frozen with the same files may
    /// be frozen again, to improve the wording.
    ///
    /// # Errors
    /// If the folder is empty, holds what a dataset may not, or is frozen with other files and
    /// `if_frozen` says to refuse.
    pub fn freeze(folder: &Path, meta: Meta, if_frozen: IfFrozen) -> Result<Self, DatasetError> {
        let files = DatasetFiles::Folder(folder.to_owned());
        let paths = files.paths()?;
        if paths.is_empty() {
            return Err(DatasetError::Empty { folder: folder.to_owned() });
        }
        let mut digests = BTreeMap::new();
        for path in paths {
            let digest = files.digest(&path)?;
            let missing = || DatasetError::NotPlain { file: files.label(path.as_str()) };
            let digest = digest.ok_or_else(missing)?;
            digests.insert(path, digest);
        }
        let Meta { name, version, licence, made } = meta;
        let manifest = Self { name, version, licence, made, files: digests };
        let target = folder.join(MANIFEST);
        manifest.check(&target)?;
        if if_frozen == IfFrozen::Refuse {
            match Self::read(&files) {
                Ok(frozen) if frozen.files == manifest.files => {}
                Ok(Self { version, .. }) => {
                    let (folder, next) = (folder.to_owned(), version.next());
                    return Err(DatasetError::Frozen { folder, version, next });
                }
                Err(DatasetError::NoManifest { .. }) => {}
                // What cannot be read cannot be shown to be the same.
                Err(other) => return Err(other),
            }
        }
        write_atomic(&target, manifest.to_toml().as_bytes())?;
        Ok(manifest)
    }

    /// The manifest as text, files in order of their paths.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let text = |value: &str| toml::Value::from(value).to_string();
        let mut lines = String::new();
        lines.push_str(&format!("name = {}\n", text(&self.name)));
        lines.push_str(&format!("version = {}\n", text(&self.version.to_string())));
        lines.push_str(&format!("licence = {}\n", text(&self.licence)));
        lines.push_str(&format!("made = {}\n", text(&self.made)));
        lines.push_str("\n[files]\n");
        for (path, digest) in &self.files {
            // Always quoted, so that all lines look alike; a path has nothing to escape but quotes.
            let path = path.as_str().replace('"', "\\\"");
            lines.push_str(&format!("\"{path}\" = \"{digest}\"\n"));
        }
        lines
    }
}

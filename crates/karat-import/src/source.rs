//! The user's own copy of a benchmark: its files, read once each, with a digest over all of them.

use std::cell::Cell;
use std::fs;
use std::path::{Component, Path, PathBuf};

use karat_core::dataset::Digest;
use karat_io::input::{self, Limits};
use serde::de::DeserializeOwned;

use crate::ImportError;

/// The deepest folder that is looked into, and the most files that are listed.
const MAX_DEPTH: usize = 24;
const MAX_FILES: usize = 1_000_000;
/// The first bytes of a file that was never fetched: Git keeps its content elsewhere.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The most bytes that an archive may unpack to.
const MAX_UNPACKED: u64 = 16 << 30;
const ARCHIVES: [&str; 6] = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst", ".zip"];
/// The endings of files that hold data of benchmarks.
const DATA: [&str; 6] = [".json", ".jsonl", ".csv", ".tsv", ".py", "SKILL.md"];
/// The deepest archive within archives that is unpacked.
const MAX_NESTED: usize = 3;

/// A file of the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct File {
    /// The path below the place that was named, with `/` between the parts.
    pub(crate) name: String,
    /// The path as the user knows it, for messages.
    pub(crate) path: PathBuf,
    /// The path to read it from, which differs for a file of an archive.
    stored: PathBuf,
}

impl File {
    /// The parts of the path.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.name.split('/').collect()
    }

    /// The last part of the path.
    pub(crate) fn base(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// The last part of the path without its ending.
    pub(crate) fn stem(&self) -> &str {
        let base = self.base();
        base.rsplit_once('.').map_or(base, |(stem, _)| stem)
    }

    /// Its text as JSON; `expected` describes it in messages.
    pub(crate) fn parse<T: DeserializeOwned>(
        &self,
        text: &str,
        expected: &str,
    ) -> Result<T, ImportError> {
        parse(self, text.as_bytes(), false, expected)
    }

    /// The name of the folder that holds it.
    pub(crate) fn folder(&self) -> Option<&str> {
        self.name.rsplit('/').nth(1)
    }
}

/// The files that were named.
pub(crate) struct Source {
    files: Vec<File>,
    /// The places that were named.
    places: Vec<PathBuf>,
    /// The unpacked archives.
    _unpacked: Vec<tempfile::TempDir>,
    digest: Cell<Digest>,
    read: Cell<u64>,
}

impl Source {
    /// Lists the files below the places, and those of archives directly in them, sorted. Archives further
    /// down are unpacked only where there is no data next to them. Links are not followed.
    pub(crate) fn open(places: &[PathBuf]) -> Result<Source, ImportError> {
        let (mut files, mut unpacked) = (Vec::new(), Vec::new());
        for place in places {
            let kind = fs::metadata(place).map_err(ImportError::io(place))?;
            if kind.is_dir() {
                list(place, "", 0, &mut files)?;
            } else {
                let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
                files.push(File { name, path: place.clone(), stored: place.clone() });
            }
        }
        let ends = |file: &File, endings: &[&str]| {
            endings.iter().any(|ending| file.name.ends_with(ending))
        };
        let is_direct = |file: &File| !file.name.contains('/') && ends(file, &ARCHIVES);
        let mut archives: Vec<File> = files.extract_if(.., |file| is_direct(file)).collect();
        for _ in 0..MAX_NESTED {
            for archive in &archives {
                unpacked.push(expand(archive, &mut files)?);
            }
            if files.iter().any(|file| ends(file, &DATA)) {
                break;
            }
            archives = files.extract_if(.., |file| ends(file, &ARCHIVES)).collect();
        }
        if files.is_empty() {
            return Err(ImportError::Other(format!("{}: no files here", shown(places))));
        }
        files.sort();
        let digest = Cell::new(Digest::of(b""));
        Ok(Source {
            files,
            places: places.to_vec(),
            _unpacked: unpacked,
            digest,
            read: Cell::new(0),
        })
    }

    /// The first place that was named.
    pub(crate) fn place(&self) -> &Path {
        self.places.first().map_or(Path::new("."), PathBuf::as_path)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// The digest over the names and contents of the files that were read, in order, and their number.
    pub(crate) fn digest(&self) -> (Digest, u64) {
        (self.digest.get(), self.read.get())
    }

    /// The error for a source without the expected files: what was expected, and what is there.
    pub(crate) fn nothing(&self, expected: &str) -> ImportError {
        let mut names: Vec<&str> =
            self.files.iter().take(4).map(|file| file.name.as_str()).collect();
        let more = self.files.len().saturating_sub(names.len());
        let rest = format!("and {more} more");
        if more > 0 {
            names.push(&rest);
        }
        let found = input::shown(&names.join(", "));
        ImportError::Other(format!("{}: expected {expected}; found {found}", shown(&self.places)))
    }

    /// The content of a file. One that is empty or was never fetched is refused.
    pub(crate) fn bytes(&self, file: &File) -> Result<Vec<u8>, ImportError> {
        let bytes = input::read_bytes(&file.stored, &Limits::default())?;
        let expected = "the file itself";
        if bytes.is_empty() {
            return Err(ImportError::unexpected(&file.path, expected, "nothing: it is empty"));
        }
        if bytes.starts_with(LFS_POINTER) {
            let found = "a Git LFS pointer; fetch the content with `git lfs pull`";
            return Err(ImportError::unexpected(&file.path, expected, found));
        }
        let line = format!("{}{}\0{}", self.digest.get(), file.name, Digest::of(&bytes));
        self.digest.set(Digest::of(line.as_bytes()));
        self.read.set(self.read.get() + 1);
        Ok(bytes)
    }

    /// The text of a file.
    pub(crate) fn text(&self, file: &File) -> Result<String, ImportError> {
        let bytes = self.bytes(file)?;
        Ok(input::decode(&file.path.to_string_lossy(), &bytes, &Limits::default())?)
    }

    /// A JSON file as a type; `expected` describes it in messages.
    pub(crate) fn json<T: DeserializeOwned>(
        &self,
        file: &File,
        expected: &str,
    ) -> Result<T, ImportError> {
        parse(file, &self.bytes(file)?, false, expected)
    }

    /// JSON Lines, or a JSON list, as a list of a type.
    pub(crate) fn list<T: DeserializeOwned>(
        &self,
        file: &File,
        expected: &str,
    ) -> Result<Vec<T>, ImportError> {
        let bytes = self.bytes(file)?;
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        parse(file, &bytes, first != Some(&b'['), expected)
    }
}

fn parse<T: DeserializeOwned>(
    file: &File,
    bytes: &[u8],
    is_lines: bool,
    expected: &str,
) -> Result<T, ImportError> {
    let name = file.path.to_string_lossy();
    let parsed = match is_lines {
        true => input::parse_json_lines(&name, bytes),
        false => input::parse_json(&name, bytes),
    };
    parsed.map_err(|error| ImportError::Other(format!("{error}; expected {expected}")))
}

fn shown(places: &[PathBuf]) -> String {
    places.iter().map(|place| input::name(place)).collect::<Vec<_>>().join(", ")
}

/// Lists the files of an archive, in the folder of the archive.
fn expand(archive: &File, files: &mut Vec<File>) -> Result<tempfile::TempDir, ImportError> {
    let folder = unpack(&archive.stored).map_err(|error| match archive.stored == archive.path {
        true => error,
        false => ImportError::Other(format!("{}: {error}", input::name(&archive.path))),
    })?;
    let prefix = archive.name.rsplit_once('/').map_or("", |(prefix, _)| prefix);
    let first = files.len();
    list(folder.path(), prefix, 0, files)?;
    for file in &mut files[first..] {
        let inside = file.name[prefix.len()..].trim_start_matches('/');
        file.path = archive.path.join(inside);
    }
    Ok(folder)
}

/// Writes the files of an archive to a folder of their own.
fn unpack(archive: &Path) -> Result<tempfile::TempDir, ImportError> {
    let folder = tempfile::tempdir().map_err(ImportError::io(archive))?;
    let (mut files, mut bytes) = (0, 0);
    input::members(archive, &Limits::default(), plain, |member| {
        (files, bytes) = (files + 1, bytes + member.bytes.len() as u64);
        if files > MAX_FILES || bytes > MAX_UNPACKED {
            let name = input::name(archive);
            let message = format!("{name}: more than {MAX_FILES} files or {MAX_UNPACKED} bytes");
            return Err(ImportError::Other(message));
        }
        let path = folder.path().join(member.name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(ImportError::io(archive))?;
        }
        fs::write(&path, member.bytes).map_err(ImportError::io(archive))
    })?;
    Ok(folder)
}

/// Returns whether a name of an archive stays below the folder it is unpacked to.
fn plain(name: &str) -> bool {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    !name.is_empty() && !name.contains('\\') && Path::new(name).components().all(inside)
}

fn list(
    folder: &Path,
    prefix: &str,
    depth: usize,
    files: &mut Vec<File>,
) -> Result<(), ImportError> {
    for entry in fs::read_dir(folder).map_err(ImportError::io(folder))? {
        let entry = entry.map_err(ImportError::io(folder))?;
        let base = entry.file_name().to_string_lossy().into_owned();
        let name = if prefix.is_empty() { base.clone() } else { format!("{prefix}/{base}") };
        let kind = entry.file_type().map_err(ImportError::io(folder))?;
        if kind.is_dir() && depth < MAX_DEPTH && base != ".git" {
            list(&entry.path(), &name, depth + 1, files)?;
        } else if kind.is_file() {
            let path = entry.path();
            files.push(File { name, stored: path.clone(), path });
        }
        if files.len() > MAX_FILES {
            let message = format!("{}: more than {MAX_FILES} files", input::name(folder));
            return Err(ImportError::Other(message));
        }
    }
    Ok(())
}

//! The user's own copy of a benchmark: its files, read once each, with a digest over all of them.

use std::cell::Cell;
use std::collections::BTreeMap;
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
/// The reasons for which entries of folders and archives are not files of the source.
const OF_SYSTEM: &str = "a file of the operating system (__MACOSX, ._*, .DS_Store)";
const LINK: &str = "a link, which is not followed (name the folder that it leads to, or copy it)";
const OUTSIDE: &str = "a file of an archive whose name leads out of it";

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
    /// The number of entries that are not files of the source, by reason.
    passed_over: BTreeMap<&'static str, u64>,
    /// The unpacked archives.
    _unpacked: Vec<tempfile::TempDir>,
    digest: Cell<Digest>,
    read: Cell<u64>,
}

impl Source {
    /// Lists the files below the places, and those of archives directly in them, sorted. Archives further
    /// down are unpacked only where there is no data next to them. Links are not followed.
    pub(crate) fn open(places: &[PathBuf]) -> Result<Source, ImportError> {
        let (mut listed, mut unpacked) = (Listed::default(), Vec::new());
        for place in places {
            let kind = fs::metadata(place).map_err(ImportError::io(place))?;
            if kind.is_dir() {
                listed.folder(place, "", 0)?;
            } else {
                let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
                listed.files.push(File { name, path: place.clone(), stored: place.clone() });
            }
        }
        let ends = |file: &File, endings: &[&str]| {
            endings.iter().any(|ending| file.name.ends_with(ending))
        };
        let is_direct = |file: &File| !file.name.contains('/') && ends(file, &ARCHIVES);
        let mut archives: Vec<File> = listed.files.extract_if(.., |file| is_direct(file)).collect();
        for _ in 0..MAX_NESTED {
            for archive in &archives {
                unpacked.push(listed.expand(archive)?);
            }
            if listed.files.iter().any(|file| ends(file, &DATA)) {
                break;
            }
            archives = listed.files.extract_if(.., |file| ends(file, &ARCHIVES)).collect();
        }
        let Listed { mut files, passed_over } = listed;
        if files.is_empty() {
            let found = passed(&passed_over);
            return Err(ImportError::Other(format!("{}: no files here{found}", shown(places))));
        }
        files.sort();
        let digest = Cell::new(Digest::of(b""));
        Ok(Source {
            files,
            places: places.to_vec(),
            passed_over,
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

    /// The number of entries that are not files of the source, by reason.
    pub(crate) fn passed_over(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.passed_over.iter().map(|(reason, number)| (*reason, *number))
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
        let found = format!("{}{}", input::shown(&names.join(", ")), passed(&self.passed_over));
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

    /// A JSON file that is read again later, and counts then.
    pub(crate) fn peek<T: DeserializeOwned>(
        &self,
        file: &File,
        expected: &str,
    ) -> Result<T, ImportError> {
        parse(file, &input::read_bytes(&file.stored, &Limits::default())?, false, expected)
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

/// The files that were passed over, for a message about what was not found.
fn passed(over: &BTreeMap<&'static str, u64>) -> String {
    over.iter().map(|(reason, number)| format!("; {number} × {reason}")).collect()
}

/// The entries of folders and archives.
#[derive(Default)]
struct Listed {
    files: Vec<File>,
    passed_over: BTreeMap<&'static str, u64>,
}

impl Listed {
    /// Lists the files of an archive, in the folder of the archive.
    fn expand(&mut self, archive: &File) -> Result<tempfile::TempDir, ImportError> {
        let inside = archive.stored != archive.path;
        let (folder, outside) = unpack(&archive.stored).map_err(|error| match inside {
            false => error,
            true => ImportError::Other(format!("{}: {error}", input::name(&archive.path))),
        })?;
        if outside > 0 {
            *self.passed_over.entry(OUTSIDE).or_default() += outside;
        }
        let prefix = archive.name.rsplit_once('/').map_or("", |(prefix, _)| prefix);
        let first = self.files.len();
        self.folder(folder.path(), prefix, 0)?;
        for file in &mut self.files[first..] {
            let inside = file.name[prefix.len()..].trim_start_matches('/');
            file.path = archive.path.join(inside);
        }
        Ok(folder)
    }

    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), ImportError> {
        for entry in fs::read_dir(folder).map_err(ImportError::io(folder))? {
            let entry = entry.map_err(ImportError::io(folder))?;
            let base = entry.file_name().to_string_lossy().into_owned();
            let name = if prefix.is_empty() { base.clone() } else { format!("{prefix}/{base}") };
            let kind = entry.file_type().map_err(ImportError::io(folder))?;
            let of_system = base.starts_with("._") || base == ".DS_Store";
            if kind.is_dir() && depth < MAX_DEPTH && base != ".git" {
                let first = self.files.len();
                self.folder(&entry.path(), &name, depth + 1)?;
                if base == "__MACOSX" {
                    let number = self.files.len() - first;
                    self.files.truncate(first);
                    *self.passed_over.entry(OF_SYSTEM).or_default() += number as u64;
                }
            } else if kind.is_symlink() {
                *self.passed_over.entry(LINK).or_default() += 1;
            } else if kind.is_file() && of_system {
                *self.passed_over.entry(OF_SYSTEM).or_default() += 1;
            } else if kind.is_file() {
                let path = entry.path();
                self.files.push(File { name, stored: path.clone(), path });
            }
            if self.files.len() > MAX_FILES {
                let message = format!("{}: more than {MAX_FILES} files", input::name(folder));
                return Err(ImportError::Other(message));
            }
        }
        self.passed_over.retain(|_, number| *number > 0);
        Ok(())
    }
}

/// Writes the files of an archive to a folder of their own; also the number of those that would lie
/// outside of it. Archives made on Windows can have `\\` between the parts of a name.
fn unpack(archive: &Path) -> Result<(tempfile::TempDir, u64), ImportError> {
    let folder = tempfile::tempdir().map_err(ImportError::io(archive))?;
    let (mut files, mut bytes) = (0, 0);
    let outside = Cell::new(0);
    let wanted = |name: &str| {
        let is_plain = plain(&name.replace('\\', "/"));
        outside.set(outside.get() + u64::from(!is_plain));
        is_plain
    };
    input::members(archive, &Limits::default(), wanted, |member| {
        (files, bytes) = (files + 1, bytes + member.bytes.len() as u64);
        if files > MAX_FILES || bytes > MAX_UNPACKED {
            let name = input::name(archive);
            let message = format!("{name}: more than {MAX_FILES} files or {MAX_UNPACKED} bytes");
            return Err(ImportError::Other(message));
        }
        let name = member.name.replace('\\', "/");
        if name.ends_with('/') {
            return Ok(());
        }
        let path = folder.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(ImportError::io(archive))?;
        }
        fs::write(&path, member.bytes).map_err(ImportError::io(archive))
    })?;
    Ok((folder, outside.get()))
}

/// Returns whether a name of an archive stays below the folder it is unpacked to.
fn plain(name: &str) -> bool {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    !name.is_empty() && Path::new(name).components().all(inside)
}

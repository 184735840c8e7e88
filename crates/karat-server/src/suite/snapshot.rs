//! The snapshot files of a suite.
//!
//! They are in a folder next to the suite, one file for each case, with sorted keys, so that a change
//! of one is reviewed like a change of code. Only a run with `--update` writes them
//! ([`crate::accept`]).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use karat_core::dataset::Digest;
use karat_io::input::{self, InputError, Limits, WriteError};
use serde::Deserialize;
use serde_json::{Value, json};

/// The format of the files.
pub(crate) const SCHEMA: &str = "karat.snapshot/1";
/// The length of a file name without its extension.
const MAX_NAME_BYTES: usize = 120;

/// The folder with the snapshots of a suite.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

/// The snapshots of one case: a value for each expectation, such as `call.1`.
pub(crate) type Snapshots = BTreeMap<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: String,
    case: String,
    snapshots: Snapshots,
}

impl Store {
    /// The store of a suite: `tests/files.yaml` has `tests/files.snapshots/`.
    pub(crate) fn of(suite: &Path) -> Store {
        Store { folder: suite.with_extension("snapshots") }
    }

    /// The file of a case. Characters that do not belong in a file name are written as numbers.
    pub(crate) fn file(&self, case: &str) -> PathBuf {
        let mut name = String::new();
        for (at, byte) in case.bytes().enumerate() {
            let plain = byte.is_ascii_alphanumeric()
                || matches!(byte, b'-' | b'_')
                || (byte == b'.' && at > 0);
            match plain {
                true => name.push(char::from(byte)),
                false => {
                    let _ = write!(name, "%{byte:02x}");
                }
            }
        }
        if name.len() > MAX_NAME_BYTES {
            // Two long ids may begin alike.
            let digest = Digest::of(case.as_bytes()).to_string();
            let digits = digest.rsplit(':').next().unwrap_or_default();
            name.truncate(MAX_NAME_BYTES - 17);
            let _ = write!(name, "-{}", &digits[..digits.len().min(16)]);
        }
        self.folder.join(format!("{name}.json"))
    }

    /// The stored snapshots of a case; none if there is no file.
    ///
    /// # Errors
    /// If the file is not valid.
    pub(crate) fn read(&self, case: &str) -> Result<Snapshots, InputError> {
        let path = self.file(case);
        if !path.exists() {
            return Ok(Snapshots::new());
        }
        let file: File = input::load(&path, &Limits::default())?;
        input::check_schema(&path, Some(&file.schema), SCHEMA)?;
        if file.case != case {
            let message = format!("the snapshots belong to case {:?}", file.case);
            return Err(InputError::invalid(&path, "case", message));
        }
        Ok(file.snapshots)
    }

    /// Stores the snapshots of a case, all or none of them.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, case: &str, snapshots: &Snapshots) -> Result<(), WriteError> {
        let document = json!({"schema": SCHEMA, "case": case, "snapshots": snapshots});
        let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
        text.push('\n');
        input::write_atomic(&self.file(case), text.as_bytes())
    }

    /// Files in the folder that belong to none of these cases.
    pub(crate) fn orphans<'a>(&self, cases: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
        let known: Vec<PathBuf> = cases.map(|case| self.file(case)).collect();
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let mut found: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
            .filter(|path| !known.contains(path))
            .collect();
        found.sort();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_back_as_it_was_written_and_only_for_its_case() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::of(&folder.path().join("files.yaml"));
        assert_eq!(store.read("a").unwrap(), Snapshots::new());
        let snapshots = Snapshots::from([("call 1".to_owned(), json!({"b": [1, null]}))]);
        store.write("a/b c", &snapshots).unwrap();
        assert!(store.file("a/b c").ends_with("files.snapshots/a%2fb%20c.json"));
        assert_eq!(store.read("a/b c").unwrap(), snapshots);
        assert_eq!(store.orphans(["a/b c"].into_iter()), [] as [PathBuf; 0]);
        assert_eq!(store.orphans(["x"].into_iter()).len(), 1);

        std::fs::copy(store.file("a/b c"), store.file("other")).unwrap();
        let why = store.read("other").unwrap_err().to_string();
        assert!(why.contains("a/b c"), "{why}");
        std::fs::write(store.file("torn"), "{\"schema\": ").unwrap();
        assert!(store.read("torn").is_err());
    }

    #[test]
    fn file_names_are_distinct_and_stay_in_the_folder() {
        let store = Store::of(Path::new("s.yaml"));
        let long = "x".repeat(500);
        let files = ["..", "../../etc/passwd", "a", "A b", &long, &format!("{long}y")]
            .map(|case| store.file(case));
        for (at, file) in files.iter().enumerate() {
            assert_eq!(file.parent(), Some(Path::new("s.snapshots")), "{file:?}");
            assert!(file.file_name().unwrap().len() <= MAX_NAME_BYTES + 5, "{file:?}");
            assert!(!files[..at].contains(file), "{file:?}");
        }
    }
}

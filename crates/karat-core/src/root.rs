//! The files of a project: in a folder, or inside the binary.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use karat_io::input::{self, InputError, Limits};

use crate::dataset::{Dataset, DatasetFiles, Digest};
use crate::error::EvalError;

/// The start of a dataset name that is inside the binary.
pub const BUNDLED: &str = "bundled:";

/// The files that the program carries with it.
pub trait Bundle: Send + Sync {
    /// An embedded file, by its path in the repository.
    fn file(&self, path: &str) -> Option<&'static [u8]>;
    /// An embedded dataset by name, such as `tools/v1`; the error lists those that exist.
    ///
    /// # Errors
    /// If there is none with this name.
    fn dataset(&self, name: &str) -> Result<DatasetFiles, EvalError>;
}

/// A program that carries no files.
pub struct NoBundle;

impl Bundle for NoBundle {
    fn file(&self, _: &str) -> Option<&'static [u8]> {
        None
    }

    fn dataset(&self, name: &str) -> Result<DatasetFiles, EvalError> {
        Err(EvalError::config(format!("no bundled dataset {name:?}")))
    }
}

/// The place of a project's files.
#[derive(Clone)]
pub struct Root<'a> {
    /// The folder; none for the project inside the binary.
    folder: Option<PathBuf>,
    bundle: &'a dyn Bundle,
    /// The frozen datasets that were verified.
    verified: Arc<Mutex<BTreeSet<(PathBuf, Digest)>>>,
}

impl<'a> Root<'a> {
    /// A project in a folder.
    pub fn in_folder(folder: impl Into<PathBuf>, bundle: &'a dyn Bundle) -> Root<'a> {
        Root { folder: Some(folder.into()), bundle, verified: Arc::default() }
    }

    /// The project inside the binary.
    pub fn bundled(bundle: &'a dyn Bundle) -> Root<'a> {
        Root { folder: None, bundle, verified: Arc::default() }
    }

    /// Returns whether this is the project inside the binary.
    pub fn is_bundled(&self) -> bool {
        self.folder.is_none()
    }

    /// The folder that relative paths, commands and reports belong to.
    pub fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new("."))
    }

    /// The path of a file that the project names, as it is read and shown.
    pub fn path(&self, file: &Path) -> PathBuf {
        self.folder.as_ref().map_or_else(|| file.to_owned(), |folder| folder.join(file))
    }

    /// The bytes of a file that the project names.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn bytes(&self, file: &Path) -> Result<Vec<u8>, InputError> {
        match &self.folder {
            Some(_) => input::read_bytes(&self.path(file), &Limits::default()),
            None => match self.bundle.file(&file.to_string_lossy()) {
                Some(bytes) => Ok(bytes.to_vec()),
                None => Err(InputError::NotFound { path: file.to_owned() }),
            },
        }
    }

    /// The text of a file that the project names.
    ///
    /// # Errors
    /// If it cannot be read or is not text.
    pub fn text(&self, file: &Path) -> Result<String, InputError> {
        let shown = self.path(file);
        match &self.folder {
            Some(_) => input::read_text(&shown, &Limits::default()),
            None => input::decode(&shown.to_string_lossy(), &self.bytes(file)?, &Limits::default()),
        }
    }

    /// Returns whether a file that the project names exists.
    pub(crate) fn has(&self, file: &Path) -> bool {
        match &self.folder {
            Some(_) => self.path(file).exists(),
            None => self.bundle.file(&file.to_string_lossy()).is_some(),
        }
    }

    /// The files of a dataset that the project names: a folder, or `bundled:NAME`.
    ///
    /// # Errors
    /// If a bundled one does not exist.
    pub fn dataset(&self, name: &str) -> Result<DatasetFiles, EvalError> {
        match (name.strip_prefix(BUNDLED), &self.folder) {
            (Some(name), _) => self.bundle.dataset(name),
            (None, Some(folder)) => Ok(DatasetFiles::Folder(folder.join(name))),
            (None, None) => self.bundle.dataset(name.strip_prefix("datasets/").unwrap_or(name)),
        }
    }

    /// The frozen dataset that the project names. All its files are verified when the first entry opens
    /// it; a file is compared with its digest again whenever it is read.
    ///
    /// # Errors
    /// If it does not exist, or is not as it was frozen.
    pub fn frozen(&self, name: &str) -> Result<Dataset, EvalError> {
        let files = self.dataset(name)?;
        let place = files.label("");
        let opened = Dataset::unverified(files)?;
        let key = (place, opened.digest());
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if !verified.contains(&key) {
            opened.manifest().verify(opened.files())?;
            verified.insert(key);
        }
        Ok(opened)
    }
}

/// The files among the names of datasets: those that are not inside the binary.
pub fn own_datasets<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<PathBuf> {
    let own = names.into_iter().filter(|name| !name.starts_with(BUNDLED));
    own.map(PathBuf::from).collect()
}

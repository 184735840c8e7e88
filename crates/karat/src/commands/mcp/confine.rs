//! Paths that a client names: inside one folder, or refused.

use std::path::{Component, Path, PathBuf};

use karat_io::text::{clip, printable};

use crate::exit::Stop;

/// The folder that paths are confined to.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The same without symbolic links.
    real: PathBuf,
}

impl Folder {
    pub(super) fn new(path: &Path) -> Result<Folder, Stop> {
        let real = path
            .canonicalize()
            .map_err(|error| Stop::bad_input(format!("{}: {error}", path.display())))?;
        Ok(Folder { path: path.to_owned(), real })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A message without the place of the folder on this machine.
    pub(super) fn hide(&self, message: &str) -> String {
        let real = format!("{}/", self.real.display());
        message.replace(&real, "").replace(&*self.real.to_string_lossy(), ".")
    }

    /// A file in the folder. A path out of it is refused whether or not it exists: an answer must not reveal
    /// anything about the rest of the machine.
    pub(super) fn file(&self, written: &str) -> Result<PathBuf, String> {
        let shown = clip(&printable(written), 200).into_owned();
        let outside =
            || format!("{shown:?} is not a file of the project: give a relative path without `..`");
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let relative = Path::new(written);
        // A NUL, a backslash or a colon means something else on another system.
        if written.contains(['\0', '\\', ':']) || !relative.components().all(plain) {
            return Err(outside());
        }
        // Links are followed step by step, so that a link out of the folder is refused before what it names is
        // looked at.
        let mut real = self.real.clone();
        for part in relative.components() {
            real.push(part);
            match real.canonicalize() {
                Ok(found) if found.starts_with(&self.real) => real = found,
                Ok(_) => return Err(outside()),
                Err(_) if real.is_symlink() => return Err(outside()),
                Err(_) => return Err(format!("{shown:?}: no such file in the project")),
            }
        }
        match real.is_file() {
            true => Ok(real),
            false => Err(format!("{shown:?} is not a file")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let scratch = tempfile::tempdir().unwrap();
        let inside = scratch.path().join("project");
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::write(inside.join("sub/report.json"), "{}").unwrap();
        std::fs::write(scratch.path().join("secret.json"), "{}").unwrap();
        let folder = Folder::new(&inside).unwrap();
        (scratch, folder)
    }

    #[test]
    fn a_file_of_the_project_is_found() {
        let (_scratch, folder) = folder();
        assert!(folder.file("sub/report.json").is_ok());
        assert!(folder.file("./sub/report.json").is_ok());
        assert!(folder.file("sub").unwrap_err().contains("is not a file"));
        assert!(folder.file("no.json").unwrap_err().contains("no such file"));
    }

    #[test]
    fn no_path_leads_out() {
        let (scratch, folder) = folder();
        let absolute = scratch.path().join("secret.json");
        let ways = [
            "../secret.json",
            "sub/../../secret.json",
            absolute.to_str().unwrap(),
            "/etc/passwd",
            "file:///etc/passwd",
            "..\\secret.json",
            "sub/\0",
        ];
        for way in ways {
            let error = folder.file(way).unwrap_err();
            assert!(error.contains("not a file of the project"), "{way:?}: {error}");
        }
    }
}

//! The project of a command: karat.toml in a folder, or the bundled one, and the evaluations that
//! this binary has.

use std::path::{Path, PathBuf};

pub(crate) use karat_core::project::FILE;
use karat_core::project::{
    self, AnyEntry, Baselines, Bundle as _, Planned, Project, Registry, Root, Settings,
};
use karat_io::input::{self, Limits};

use crate::bundled::Embedded;
use crate::exit::Stop;

/// The evaluations that a project can have entries of. A new one adds its line here.
pub(crate) fn registry() -> Registry {
    Registry::default()
        .with::<karat_retrieval::Retrieval>()
        .with::<karat_detection::Detection>()
        .with::<karat_server::Suites>()
        .with::<karat_server::load::Load>()
        .with::<karat_server::fuzz::Fuzz>()
        .with::<karat_server::attack::Attack>()
        .with::<karat_agent::Traces>()
        .with::<karat_import::outcomes::Outcomes>()
        .with::<karat_resilience::Resilience>()
}

/// Reads the project that was named, or the one in this folder, or the bundled one.
pub(crate) fn load(named: Option<&Path>, baselines: Baselines) -> Result<Project<'static>, Stop> {
    let (root, path, text) = find(named)?;
    Ok(Project::load(root, &path, &text, &registry(), baselines)?)
}

/// A project of one entry that a command line describes.
pub(crate) fn of_any(entry: impl AnyEntry + 'static) -> Project<'static> {
    of_all([entry])
}

/// A project of the entries that a command line describes.
pub(crate) fn of_all<E: AnyEntry + 'static>(
    entries: impl IntoIterator<Item = E>,
) -> Project<'static> {
    let planned = |entry: E| Planned { entry: Box::new(entry), baseline: None };
    Project {
        root: Root::in_folder(".", &Embedded),
        entries: entries.into_iter().map(planned).collect(),
    }
}

/// The history of a project.
pub(crate) struct History {
    pub(crate) folder: PathBuf,
    /// The file that the project names.
    pub(crate) file: Option<PathBuf>,
}

/// The history of the project that was named, or of the one in this folder.
pub(crate) fn history(named: Option<&Path>) -> Result<History, Stop> {
    let (root, path, text) = find(named)?;
    let Settings { history, .. } = project::settings(&path, &text, &registry())?;
    let folder = root.folder().to_owned();
    Ok(History { file: history.file.map(|file| folder.join(file)), folder })
}

fn find(named: Option<&Path>) -> Result<(Root<'static>, PathBuf, String), Stop> {
    let here = Path::new(FILE);
    let path = match named {
        Some(folder) if folder.is_dir() => Some(folder.join(FILE)),
        Some(file) => Some(file.to_owned()),
        None => here.exists().then(|| here.to_owned()),
    };
    if let Some(path) = path {
        let text = input::read_text(&path, &Limits::default())?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        return Ok((Root::in_folder(folder, &Embedded), path, text));
    }
    let text = Embedded
        .file(FILE)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .ok_or_else(|| Stop::bad_input("the bundled project is missing from this build"))?;
    Ok((Root::bundled(&Embedded), PathBuf::from("(bundled) karat.toml"), text.to_owned()))
}

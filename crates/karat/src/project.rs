//! The project of a command: karat.toml in a folder, or the bundled one, and the evaluations that
//! this binary has.

use std::path::{Path, PathBuf};

pub(crate) use karat_core::project::FILE;
use karat_core::project::{
    self, AnyEntry, Baselines, Bundle as _, EarlierKey, Planned, Project, Registry, Root, Settings,
};
use karat_io::input::{self, Limits};

use crate::bundled::Embedded;
use crate::exit::Stop;
use crate::terminal::Terminal;

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

/// The project that a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// A project file.
    File(PathBuf),
    /// The project inside the binary.
    Bundled,
}

impl Choice {
    /// The project that was named, or the nearest one: in this folder, or else above it.
    pub(crate) fn new(named: Option<&Path>, bundled: bool) -> Result<Choice, Stop> {
        match named {
            _ if bundled => Ok(Choice::Bundled),
            Some(folder) if folder.is_dir() => Ok(Choice::File(folder.join(FILE))),
            Some(file) => Ok(Choice::File(file.to_owned())),
            None => nearest().map(Choice::File).ok_or_else(none),
        }
    }

    /// The same for a command that does not take the project inside the binary.
    pub(crate) fn own(named: Option<&Path>) -> Result<Choice, Stop> {
        if named.is_none() && nearest().is_none() {
            return Err(Stop::bad_input(format!("{NO_PROJECT}, or name a project")));
        }
        Choice::new(named, false)
    }

    /// The folder that its relative paths start from.
    pub(crate) fn folder(&self) -> PathBuf {
        match self {
            Choice::File(path) => folder_of(path),
            Choice::Bundled => PathBuf::from("."),
        }
    }

    /// Reads it, and names the earlier spellings in it.
    pub(crate) fn load(
        &self,
        baselines: Baselines,
        terminal: &Terminal,
    ) -> Result<Project<'static>, Stop> {
        let (root, path, text) = self.text()?;
        let project = Project::load(root, &path, &text, &registry(), baselines)?;
        for EarlierKey { line, earlier, present } in &project.hints {
            terminal.renamed_at(&format!("{}:{line}: ", path.display()), earlier, present);
        }
        Ok(project)
    }

    /// The settings that belong to no evaluation.
    pub(crate) fn settings(&self) -> Result<Settings, Stop> {
        let (_, path, text) = self.text()?;
        Ok(project::settings(&path, &text, &registry())?)
    }

    fn text(&self) -> Result<(Root<'static>, PathBuf, String), Stop> {
        match self {
            Choice::File(path) => {
                let text = input::read_text(path, &Limits::default())?;
                Ok((Root::in_folder(folder_of(path), &Embedded), path.clone(), text))
            }
            Choice::Bundled => {
                let text = Embedded
                    .file(FILE)
                    .and_then(|bytes| std::str::from_utf8(bytes).ok())
                    .ok_or_else(|| {
                        Stop::bad_input("the bundled project is missing from this build")
                    })?;
                let path = PathBuf::from("(bundled) karat.toml");
                Ok((Root::bundled(&Embedded), path, text.to_owned()))
            }
        }
    }
}

/// The error for a missing project: a check that measured something else would always pass.
fn none() -> Stop {
    Stop::bad_input(format!("{NO_PROJECT}, take a tour with `karat demo`, or use --bundled"))
}

const NO_PROJECT: &str =
    "no karat.toml in this folder or its parents; create one with `karat init`";

/// Returns whether a project file is in this folder or its parents.
pub(crate) fn is_near() -> bool {
    nearest().is_some()
}

/// The nearest project file, from here upwards.
fn nearest() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let (up, _) = here.ancestors().enumerate().find(|(_, folder)| folder.join(FILE).is_file())?;
    // Relative, so that reports and messages name files as the user would.
    let above: PathBuf = std::iter::repeat_n("..", up).collect();
    Some(above.join(FILE))
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A project of one entry that a command line describes.
pub(crate) fn of_any(entry: impl AnyEntry + 'static) -> Project<'static> {
    of_all([entry])
}

/// A project of the entries that a command line describes.
pub(crate) fn of_all<E: AnyEntry + 'static>(
    entries: impl IntoIterator<Item = E>,
) -> Project<'static> {
    let planned = |entry: E| Planned { entry: Box::new(entry), baseline: None, settings: None };
    Project {
        name: None,
        root: Root::in_folder(".", &Embedded),
        entries: entries.into_iter().map(planned).collect(),
        hints: Vec::new(),
    }
}

/// The history of a project.
pub(crate) struct History {
    pub(crate) folder: PathBuf,
    /// The file that the project names.
    pub(crate) file: Option<PathBuf>,
}

impl History {
    /// The file that the project names, or the usual one.
    pub(crate) fn place(self) -> PathBuf {
        let file = self.file.unwrap_or_else(|| self.folder.join(karat_history::FILE));
        file.strip_prefix(".").map(Path::to_owned).unwrap_or(file)
    }
}

/// The history of the project that was named, or of the nearest one; without any, that of this folder.
pub(crate) fn history(named: Option<&Path>) -> Result<History, Stop> {
    if named.is_none() && nearest().is_none() {
        return Ok(History { folder: PathBuf::from("."), file: None });
    }
    of_choice(&Choice::new(named, false)?)
}

/// The history of a project.
pub(crate) fn of_choice(choice: &Choice) -> Result<History, Stop> {
    let folder = choice.folder();
    let file = choice.settings()?.history.file.map(|file| folder.join(file));
    Ok(History { folder, file })
}

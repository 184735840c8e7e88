//! From karat.toml to a plan: everything that can be wrong with a project is found here, before
//! anything runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::baseline::Baseline;
use karat_core::compare::same_data;
use karat_core::dataset::DatasetFiles;
use karat_core::input::{self, Format, Limits};
use karat_retrieval::dataset::Dataset;
use serde::Deserialize;

use crate::bundled;
use crate::exit::{Stop, check_owner, missing_baseline};

/// The name of a project file.
pub(crate) const FILE: &str = "karat.toml";

/// karat.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectFile {
    /// The project's name; shown, never interpreted.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that a project can name itself")]
    name: Option<String>,
    /// The retrieval entries.
    #[serde(default)]
    retrieval: Vec<karat_retrieval::Entry>,
}

/// Where a project's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A folder.
    Folder(PathBuf),
    /// Inside the binary.
    Bundled,
}

/// A project that is ready to run.
pub(crate) struct Plan {
    pub(crate) root: Root,
    pub(crate) retrieval: Vec<RetrievalPlan>,
}

/// One retrieval entry with what it needs.
pub(crate) struct RetrievalPlan {
    pub(crate) entry: karat_retrieval::Entry,
    pub(crate) dataset: Dataset,
    pub(crate) baseline: Option<Baseline>,
}

/// What to do about baselines that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baselines {
    /// A baseline that the entry names must exist.
    Needed,
    /// It is about to be written, so it may be missing or of other data.
    Optional,
}

impl Plan {
    /// Reads the project that was named, or the one in this folder, or the bundled one.
    pub(crate) fn load(named: Option<&Path>, baselines: Baselines) -> Result<Plan, Stop> {
        let (root, path, text) = find(named)?;
        let file: ProjectFile = input::parse(&path, &text, Format::Toml)?;
        let mut names = BTreeSet::new();
        for entry in &file.retrieval {
            if !names.insert(entry.name.as_str()) {
                return Err(bad(&path, &entry.name, "two retrieval entries have this name"));
            }
            check_entry(&path, entry)?;
        }
        if file.retrieval.is_empty() {
            return Err(Stop::bad_input(format!(
                "{}: the project has no entry; `karat init` writes one to start from",
                path.display()
            )));
        }
        let retrieval = file
            .retrieval
            .into_iter()
            .map(|entry| root.retrieval(&path, entry, baselines))
            .collect::<Result<_, _>>()?;
        Ok(Plan { root, retrieval })
    }
}

fn find(named: Option<&Path>) -> Result<(Root, PathBuf, String), Stop> {
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
        return Ok((Root::Folder(folder), path, text));
    }
    let text = bundled::file(FILE)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .ok_or_else(|| Stop::bad_input("the bundled project is missing from this build"))?;
    Ok((Root::Bundled, PathBuf::from("(bundled) karat.toml"), text.to_owned()))
}

fn bad(path: &Path, entry: &str, message: impl std::fmt::Display) -> Stop {
    Stop::bad_input(format!("{}: {entry}: {message}", path.display()))
}

/// What serde cannot see: values that contradict each other or make no sense.
fn check_entry(path: &Path, entry: &karat_retrieval::Entry) -> Result<(), Stop> {
    let wrong = |message: &str| Err(bad(path, &entry.name, message));
    // The name becomes part of file names.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if entry.name.is_empty() || !entry.name.chars().all(plain) || entry.name.starts_with('.') {
        return wrong("a name is made of letters, digits, '-', '_' and '.'");
    }
    for (key, value) in [
        ("limit", entry.limit as u64),
        ("runs", u64::from(entry.runs)),
        ("concurrency", entry.concurrency as u64),
        ("timeout_ms", entry.timeout_ms),
    ] {
        if value == 0 {
            return wrong(&format!("{key} must be at least 1"));
        }
    }
    if entry.limit > 10_000 || entry.runs > 10_000 || entry.concurrency > 10_000 {
        return wrong("limit, runs and concurrency go up to 10000");
    }
    entry.system.reference().map_err(|error| bad(path, &entry.name, error))?;
    entry.gate.validate().map_err(|error| bad(path, &entry.name, error))
}

impl Root {
    /// The folder that relative paths, commands and reports belong to.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Root::Folder(folder) => folder,
            Root::Bundled => Path::new("."),
        }
    }

    fn retrieval(
        &self,
        path: &Path,
        entry: karat_retrieval::Entry,
        baselines: Baselines,
    ) -> Result<RetrievalPlan, Stop> {
        let dataset = match (&entry.dataset, &entry.corpus, &entry.golden) {
            (Some(folder), None, None) => Dataset::open(self.dataset(folder))?,
            (None, Some(corpus), Some(golden)) => {
                let folder = self.folder();
                Dataset::from_files(&folder.join(corpus), &folder.join(golden))?
            }
            _ => {
                let message = "give either dataset, or corpus and golden";
                return Err(bad(path, &entry.name, message));
            }
        };
        let baseline = match &entry.baseline {
            Some(file) => self.baseline(file, &entry.name, baselines)?,
            None => None,
        };
        if let (Some(baseline), Baselines::Needed) = (&baseline, baselines) {
            same_data(&baseline.dataset, &dataset.reference)
                .map_err(|error| bad(path, &entry.name, error))?;
            entry.gate.covered_by(baseline).map_err(|error| bad(path, &entry.name, error))?;
        }
        if baseline.is_none() && baselines == Baselines::Needed && entry.gate.needs_baseline() {
            let message = "the gate compares with a baseline; add `baseline = \"baselines/….json\"` \
                           and record it with `karat baseline update`";
            return Err(bad(path, &entry.name, message));
        }
        Ok(RetrievalPlan { entry, dataset, baseline })
    }

    fn dataset(&self, folder: &str) -> DatasetFiles {
        match (folder.strip_prefix("bundled:"), self) {
            (Some(path), _) => bundled::dataset(&format!("datasets/{path}")),
            (None, Root::Bundled) => bundled::dataset(folder),
            (None, Root::Folder(root)) => DatasetFiles::Folder(root.join(folder)),
        }
    }

    fn baseline(
        &self,
        file: &Path,
        name: &str,
        baselines: Baselines,
    ) -> Result<Option<Baseline>, Stop> {
        let shown = match self {
            Root::Folder(folder) => folder.join(file),
            Root::Bundled => file.to_owned(),
        };
        let text = match self {
            Root::Folder(_) if !shown.exists() => None,
            Root::Folder(_) => Some(input::read_text(&shown, &Limits::default())?),
            Root::Bundled => bundled::file(&file.to_string_lossy())
                .and_then(|bytes| std::str::from_utf8(bytes).ok())
                .map(str::to_owned),
        };
        match (text, baselines) {
            (Some(text), _) => {
                let baseline = Baseline::parse(&shown, &text)?;
                check_owner(&baseline, &shown.display().to_string(), name)?;
                Ok(Some(baseline))
            }
            (None, Baselines::Optional) => Ok(None),
            (None, Baselines::Needed) => Err(missing_baseline(&shown.display().to_string())),
        }
    }
}

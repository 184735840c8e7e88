//! Warnings about a detector and a corpus that change together.
//!
//! A commit that changes both a detector and the corpus that it is measured on can produce any figure. That
//! is not an error (a first version has to start somewhere), so it is a warning. Git lists the paths that
//! the last commit and the working tree changed; without git, nothing is known and nothing is reported.

use std::path::{Component, Path, PathBuf};

use karat_core::provenance::git;
use karat_io::input::{self, Limits};
use serde::Deserialize;

use crate::system::SystemConfig;

/// The part of a project file that names detectors.
#[derive(Default, Deserialize)]
struct Project {
    #[serde(default)]
    detection: Vec<Detector>,
}

/// The part of an entry that names its detector.
#[derive(Deserialize)]
struct Detector {
    system: SystemConfig,
}

/// The warnings about a dataset folder and the detectors of a project file; none if there is no such file.
pub fn warnings_of_project(dataset: &Path, project: &Path) -> Vec<String> {
    let folder = project.parent().unwrap_or(Path::new(""));
    let text = input::read_text(project, &Limits::default()).unwrap_or_default();
    // The commands that run a project report its mistakes.
    let Project { detection } =
        input::parse_toml("karat.toml", text.as_bytes()).unwrap_or_default();
    let detectors: Vec<PathBuf> =
        detection.iter().flat_map(|entry| files(&entry.system, folder)).collect();
    warnings(dataset, &detectors)
}

/// The files of a detector, as far as its system names them: rules, programs, scripts.
fn files(system: &SystemConfig, folder: &Path) -> Vec<PathBuf> {
    let server = system.mcp.iter().filter_map(|mcp| mcp.server.command.as_ref());
    let batch = system.batch.iter().map(|batch| &batch.command);
    let arguments = system.command.iter().chain(batch).chain(server).flatten().map(PathBuf::from);
    let named = system.yara.iter().cloned().chain(arguments);
    named.map(|path| folder.join(path)).filter(|path| path.exists()).collect()
}

/// Paths that changed together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    /// `commit 1234abc`, or `the working tree`.
    name: String,
    /// Relative to the root of the work tree, with `/`.
    paths: Vec<String>,
}

/// The warnings about a dataset folder and the files of detectors that are measured on it. All paths may
/// be relative to the current folder.
pub fn warnings(dataset: &Path, detectors: &[PathBuf]) -> Vec<String> {
    let Some(root) = git(dataset, &["rev-parse", "--show-toplevel"]) else { return Vec::new() };
    let root = PathBuf::from(root.trim_end());
    let Some(dataset) = within(&root, dataset) else { return Vec::new() };
    let detectors: Vec<String> = detectors.iter().filter_map(|path| within(&root, path)).collect();
    changes(&root).iter().filter_map(|change| warning(change, &dataset, &detectors)).collect()
}

fn warning(change: &Change, dataset: &str, detectors: &[String]) -> Option<String> {
    let touched = |folder: &str| {
        change.paths.iter().find(|path| {
            let rest = path.strip_prefix(folder);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || folder.is_empty())
        })
    };
    let corpus = touched(dataset)?;
    let detector = detectors.iter().find_map(|detector| touched(detector))?;
    Some(format!(
        "detector and corpus change together in {}: {detector} and {corpus}; figures on this corpus say \
         little about that detector",
        change.name
    ))
}

/// A path relative to the root, as git writes it.
fn within(root: &Path, path: &Path) -> Option<String> {
    let full = path.canonicalize().ok()?;
    let relative = full.strip_prefix(root.canonicalize().ok()?).ok()?;
    let parts = relative.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    Some(parts.collect::<Vec<_>>().join("/"))
}

fn changes(root: &Path) -> Vec<Change> {
    let list = |text: String| -> Vec<String> {
        text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
    };
    let mut changes = Vec::new();
    if let Some(name) = git(root, &["rev-parse", "--short", "HEAD"]) {
        // Against the first parent; the commits that a merge brings in were judged by themselves.
        let show = ["show", "--format=", "--name-only", "-z", "--diff-merges=off", "HEAD"];
        // The oldest commit of a shallow clone seems to add every file.
        let cut = git(root, &["rev-parse", "--verify", "--quiet", "HEAD^"]).is_none()
            && git(root, &["rev-parse", "--is-shallow-repository"])
                .is_some_and(|is| is.trim_end() == "true");
        let paths = git(root, &show).filter(|_| !cut).map(list).unwrap_or_default();
        changes.push(Change { name: format!("commit {}", name.trim_end()), paths });
        let mut paths =
            git(root, &["diff", "--name-only", "-z", "HEAD"]).map(list).unwrap_or_default();
        let new = ["ls-files", "--others", "--exclude-standard", "-z"];
        paths.extend(git(root, &new).map(list).unwrap_or_default());
        changes.push(Change { name: "the working tree".to_owned(), paths });
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn run(folder: &Path, arguments: &[&str]) {
        let identity =
            ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false"];
        let done =
            Command::new("git").args(identity).arg("-C").arg(folder).args(arguments).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_detector_and_a_corpus_that_change_together_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let (dataset, detectors) = (root.join("data/threats/v1"), vec![root.join("scanner")]);
        let found = || warnings(&dataset, &detectors);
        run(root, &["init", "-q"]);
        write(root, "data/threats/v1/entries/a.jsonl", "1");
        assert_eq!(found(), Vec::<String>::new(), "there is no commit yet");
        run(root, &["add", "."]);
        run(root, &["commit", "-qm", "corpus"]);
        write(root, "scanner/rules.py", "1");
        run(root, &["add", "."]);
        run(root, &["commit", "-qm", "detector"]);
        assert_eq!(found(), Vec::<String>::new(), "two commits are fine");

        write(root, "data/threats/v1/entries/a.jsonl", "2");
        assert_eq!(found(), Vec::<String>::new());
        write(root, "scanner/new.py", "untracked");
        assert!(found()[0].contains("the working tree"), "{:?}", found());
        run(root, &["add", "."]);
        run(root, &["commit", "-qm", "both"]);
        let both = found();
        assert_eq!(both.len(), 1, "{both:?}");
        assert!(both[0].contains("commit ") && both[0].contains("scanner/new.py"), "{both:?}");

        // A folder whose name merely begins with the same characters is another one.
        write(root, "data/threats/v10/entries/a.jsonl", "1");
        write(root, "scanner/rules.py", "3");
        run(root, &["add", "."]);
        run(root, &["commit", "-qm", "other corpus"]);
        assert_eq!(found(), Vec::<String>::new());
    }

    #[test]
    fn the_detectors_of_a_project_are_the_files_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        run(root, &["init", "-q"]);
        write(root, "set/v1/entries/a.jsonl", "1");
        write(root, "tools/scan.py", "1");
        write(root, "notes.txt", "1");
        let project = root.join("karat.toml");
        let system = "[[detection]]\nname = \"s\"\nsystem = { command = [\"python3\", \"tools/scan.py\"] }\n";
        write(root, "karat.toml", &format!("[[retrieval]]\nname = \"r\"\n{system}"));
        run(root, &["add", "."]);
        run(root, &["commit", "-qm", "all"]);
        let found = warnings_of_project(&root.join("set/v1"), &project);
        assert!(found.len() == 1 && found[0].contains("tools/scan.py"), "{found:?}");
        write(root, "karat.toml", "");
        assert_eq!(warnings_of_project(&root.join("set/v1"), &project), Vec::<String>::new());
        assert_eq!(
            warnings_of_project(&root.join("set/v1"), &root.join("none")),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_oldest_commit_of_a_shallow_clone_is_not_judged() {
        let folder = tempfile::tempdir().unwrap();
        let (root, clone) = (folder.path().join("origin"), folder.path().join("clone"));
        std::fs::create_dir(&root).unwrap();
        run(&root, &["init", "-q"]);
        write(&root, "data/a.jsonl", "1");
        run(&root, &["add", "."]);
        run(&root, &["commit", "-qm", "corpus"]);
        write(&root, "scanner/rules.py", "1");
        run(&root, &["add", "."]);
        run(&root, &["commit", "-qm", "detector"]);
        let origin = format!("file://{}", root.display());
        run(folder.path(), &["clone", "-q", "--depth", "1", &origin, "clone"]);
        assert_eq!(warnings(&clone.join("data"), &[clone.join("scanner")]), Vec::<String>::new());
    }

    #[test]
    fn without_git_nothing_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(warnings(folder.path(), &[folder.path().to_owned()]), Vec::<String>::new());
    }
}

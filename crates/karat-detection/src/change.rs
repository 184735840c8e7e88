//! Did detector and corpus change together?
//!
//! Whoever changes a detector and the corpus that it is measured on in one commit can make any number come
//! out. That is no fault by itself (a first version has to start somewhere), so it is a warning. Git is
//! asked which paths the last commit and the working tree changed; where there is no git, nothing is known
//! and nothing is said.

use std::path::{Component, Path, PathBuf};

use karat_core::provenance::git;
use karat_io::input::{self, Limits};
use serde::Deserialize;

use crate::system::SystemConfig;

/// The place where the built-in detectors lie in Karat's own sources.
const BUILT_IN: &str = "crates/karat-detection/src/detectors";

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

/// The warnings about a dataset folder and the detectors of a project file; none where there is no such
/// file.
pub fn warnings_of_project(dataset: &Path, project: &Path) -> Vec<String> {
    let folder = project.parent().unwrap_or(Path::new(""));
    let text = input::read_text(project, &Limits::default()).unwrap_or_default();
    // What is wrong with a project is told by the commands that run it.
    let Project { detection } =
        input::parse_toml("karat.toml", text.as_bytes()).unwrap_or_default();
    let detectors: Vec<PathBuf> =
        detection.iter().flat_map(|entry| files(&entry.system, folder)).collect();
    warnings(dataset, &detectors)
}

/// The files that a detector consists of, as far as its system names them: rules, programs, scripts.
fn files(system: &SystemConfig, folder: &Path) -> Vec<PathBuf> {
    let built_in = system.builtin.iter().map(|_| PathBuf::from(BUILT_IN));
    let server = system.mcp.iter().filter_map(|mcp| mcp.server.command.as_ref());
    let batch = system.batch.iter().map(|batch| &batch.command);
    let words = system.command.iter().chain(batch).chain(server).flatten().map(PathBuf::from);
    let named = built_in.chain(system.yara.clone()).chain(words);
    named.map(|path| folder.join(path)).filter(|path| path.exists()).collect()
}

/// What changes together: a name for messages, and the paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    /// `commit 1234abc`, or `the working tree`.
    name: String,
    /// Relative to the root of the work tree, with `/`.
    paths: Vec<String>,
}

/// The warnings about a dataset folder and the files of detectors that are measured on it. All paths may
/// be relative to the current folder.
fn warnings(dataset: &Path, detectors: &[PathBuf]) -> Vec<String> {
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
        // Against the first parent; a merge brings in commits that were judged by themselves.
        let show = ["show", "--format=", "--name-only", "-z", "--diff-merges=off", "HEAD"];
        let paths = git(root, &show).map(list).unwrap_or_default();
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
    fn detector_and_corpus_in_one_commit_or_one_working_tree_are_told() {
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
        assert_eq!(found(), Vec::<String>::new(), "one after the other is right");

        write(root, "data/threats/v1/entries/a.jsonl", "2");
        assert_eq!(found(), Vec::<String>::new());
        write(root, "scanner/new.py", "untracked");
        assert!(found()[0].contains("the working tree"), "{:?}", found());
        run(root, &["add", "."]);
        run(root, &["commit", "-qm", "both"]);
        let told = found();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("commit ") && told[0].contains("scanner/new.py"), "{told:?}");

        // A folder whose name only begins alike is another one.
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
        let told = warnings_of_project(&root.join("set/v1"), &project);
        assert!(told.len() == 1 && told[0].contains("tools/scan.py"), "{told:?}");
        write(root, "karat.toml", "");
        assert_eq!(warnings_of_project(&root.join("set/v1"), &project), Vec::<String>::new());
        assert_eq!(
            warnings_of_project(&root.join("set/v1"), &root.join("none")),
            Vec::<String>::new()
        );
    }

    #[test]
    fn without_git_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(warnings(folder.path(), &[folder.path().to_owned()]), Vec::<String>::new());
    }
}

//! The files that let CI run the project. They lie where the forge looks for them, at the root of the
//! repository, and name the project file by its path from there.

use std::path::Path;

use crate::cli::{Ci, User};
use crate::commands::init::origin::Origin;
use crate::commands::init::paths::slashes;
use crate::commands::init::starters::{DATASET, Target, shell};

const GITHUB: &str = include_str!("../../starter/ci/github.yml");
const GITLAB: &str = include_str!("../../starter/ci/gitlab.yml");
const GITLAB_JOB: &str = include_str!(concat!(env!("OUT_DIR"), "/gitlab.yml"));
const PRE_COMMIT: &str = include_str!("../../starter/ci/pre-commit.yml");

/// A file of a repository.
pub(super) struct CiFile {
    pub(super) path: &'static str,
    pub(super) text: String,
    /// True if others have lines in it too, so that it may be there already.
    pub(super) shared: bool,
}

/// The kind of project, where it is in its repository (empty for the root), and where CI gets Karat
/// from, if that is known.
pub(super) struct Project<'a> {
    pub(super) user: User,
    pub(super) target: &'a Target,
    pub(super) within: &'a Path,
    pub(super) origin: Option<&'a Origin>,
}

/// A command that CI runs next to `karat check`.
struct Extra {
    name: &'static str,
    about: &'static str,
    line: String,
}

/// The files for one kind of CI.
pub(super) fn files(ci: Ci, project: &Project<'_>) -> Vec<CiFile> {
    let config = scalar(&slashes(&project.within.join(crate::project::FILE)));
    let own = |path, text| CiFile { path, text, shared: false };
    let shared = |path, text| CiFile { path, text, shared: true };
    let extras = extras(project);
    match ci {
        Ci::None => Vec::new(),
        Ci::Github => {
            let address = project.origin.map(|origin| origin.address.as_str());
            let reference = project.origin.and_then(|origin| origin.reference.as_deref());
            let mut text = GITHUB
                .replace("KARAT_GIT_OR", &variable_or("KARAT_GIT", address))
                .replace("KARAT_REF_OR", &variable_or("KARAT_REF", reference))
                .replace("PROJECT_FILE", &config);
            for Extra { about, line, .. } in &extras {
                text.push_str(&format!(
                    "      - name: {about}\n        if: ${{{{ !cancelled() }}}}\n        run: {}\n",
                    scalar(line)
                ));
            }
            vec![own(".github/workflows/karat.yml", text)]
        }
        Ci::Gitlab => {
            let mut text = GITLAB.replace("PROJECT_FILE", &config);
            if let Some(Origin { address, reference }) = project.origin {
                text.push_str(&format!("  KARAT_GIT: {}\n", scalar(address)));
                if let Some(reference) = reference {
                    text.push_str(&format!("  KARAT_REF: {}\n", scalar(reference)));
                }
            }
            for Extra { name, about, line } in &extras {
                text.push_str(&format!(
                    "\n# {about}.\n{name}:\n  extends: .karat\n  stage: test\n  script:\n    - {}\n",
                    scalar(line)
                ));
            }
            vec![own(".gitlab/karat.yml", GITLAB_JOB.to_owned()), shared(".gitlab-ci.yml", text)]
        }
        Ci::PreCommit => {
            let mut text = PRE_COMMIT.replace("PROJECT_FILE", &config);
            for Extra { name, about, line } in &extras {
                text.push_str(&format!(
                    "      - id: {name}\n        name: {about}\n        language: system\n        \
                     entry: {}\n        pass_filenames: false\n        always_run: true\n        \
                     stages: [pre-push, manual]\n",
                    scalar(line)
                ));
            }
            vec![shared(".pre-commit-config.yaml", text)]
        }
    }
}

/// Returns whether this kind of CI builds Karat, rather than using the one that is there.
pub(super) fn builds_karat(ci: Ci) -> bool {
    matches!(ci, Ci::Github | Ci::Gitlab)
}

/// The remaining manual steps, and what CI will do.
pub(super) fn to_do(wanted: &[Ci], origin: Option<&Origin>) -> Vec<String> {
    let mut lines = Vec::new();
    if wanted.contains(&Ci::PreCommit) {
        lines.push("pre-commit install --hook-type pre-push".to_owned());
    }
    if !wanted.iter().copied().any(builds_karat) {
        return lines;
    }
    let Some(origin) = origin else {
        lines.push(
            "in CI, set the variable KARAT_GIT to the address of Karat's repository;".to_owned(),
        );
        lines.push("  karat init --karat-from URL writes it into the files".to_owned());
        return lines;
    };
    lines.push(format!("CI builds Karat from {}", origin.address));
    lines.push(match &origin.reference {
        Some(reference) => format!("  at {reference}"),
        None => "  in its newest version; --karat-from URL#REF pins one".to_owned(),
    });
    if origin.needs_key() {
        lines.push("  with a key that CI must have; --karat-from https://… needs none".to_owned());
    }
    lines
}

/// A variable of the forge and, where it is not set, a text that has no quotes in it.
fn variable_or(name: &str, otherwise: Option<&str>) -> String {
    match otherwise {
        Some(text) => format!("{name} || '{text}'"),
        None => name.to_owned(),
    }
}

fn extras(project: &Project<'_>) -> Vec<Extra> {
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|&w| w.to_owned()).collect() };
    let (name, about, words) = match project.user {
        // What was recorded is looked at by `karat check` alone.
        User::Agent => return Vec::new(),
        User::Server => {
            let mut line = words(&["karat", "server", "lint"]);
            line.extend(project.target.words_at_root(project.within));
            ("karat-lint", "Judge the tool definitions", line)
        }
        User::Proxy | User::Scanner => {
            let dataset = slashes(&project.within.join(DATASET));
            let line = words(&["karat", "corpus", "verify", &dataset]);
            ("karat-verify", "Verify that the dataset is the frozen one", line)
        }
    };
    vec![Extra { name, about, line: shell(&words) }]
}

/// A text as a value in YAML: quoted as in JSON, unless nothing in it could mean anything else.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./ ".contains(c);
    let starts_plain = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts_plain && text.chars().all(plain) && text.contains(['.', '/', ' ']) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

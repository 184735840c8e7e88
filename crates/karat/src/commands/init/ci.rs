//! The files that let CI run the project. They lie where the forge looks for them, at the root of the
//! repository, and name the project file by its path from there.

use std::path::Path;

use crate::cli::{Ci, User};
use crate::commands::init::starters::{DATASET, Target, shell};

const GITHUB: &str = include_str!("../../starter/ci/github.yml");
const GITLAB: &str = include_str!("../../starter/ci/gitlab.yml");
const GITLAB_JOB: &str = include_str!("../../../../../ci/gitlab.yml");
const PRE_COMMIT: &str = include_str!("../../starter/ci/pre-commit.yml");

/// A file of a repository.
pub(super) struct CiFile {
    pub(super) path: &'static str,
    pub(super) text: String,
    /// Whether others have lines in it too, so that it may be there already.
    pub(super) shared: bool,
}

/// Whose project it is, and where it lies in its repository (empty for the root).
pub(super) struct Project<'a> {
    pub(super) user: User,
    pub(super) target: &'a Target,
    pub(super) within: &'a Path,
}

/// A command that CI runs beside `karat check`.
struct Beside {
    name: &'static str,
    about: &'static str,
    line: String,
}

/// The files for one kind of CI.
pub(super) fn files(ci: Ci, project: &Project<'_>) -> Vec<CiFile> {
    let config = scalar(&slashes(&project.within.join(crate::project::FILE)));
    let own = |path, text| CiFile { path, text, shared: false };
    let shared = |path, text| CiFile { path, text, shared: true };
    let beside = beside(project);
    match ci {
        Ci::None => Vec::new(),
        Ci::Github => {
            let mut text = GITHUB.replace("PROJECT_FILE", &config);
            for Beside { about, line, .. } in &beside {
                text.push_str(&format!(
                    "      - name: {about}\n        if: ${{{{ !cancelled() }}}}\n        run: {}\n",
                    scalar(line)
                ));
            }
            vec![own(".github/workflows/karat.yml", text)]
        }
        Ci::Gitlab => {
            let mut text = GITLAB.replace("PROJECT_FILE", &config);
            for Beside { name, about, line } in &beside {
                text.push_str(&format!(
                    "\n# {about}.\n{name}:\n  extends: .karat\n  stage: test\n  script:\n    - {}\n",
                    scalar(line)
                ));
            }
            vec![own(".gitlab/karat.yml", GITLAB_JOB.to_owned()), shared(".gitlab-ci.yml", text)]
        }
        Ci::PreCommit => {
            let mut text = PRE_COMMIT.replace("PROJECT_FILE", &config);
            for Beside { name, about, line } in &beside {
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

/// What is left to do by hand.
pub(super) fn to_do(ci: Ci) -> Option<&'static str> {
    match ci {
        Ci::None => None,
        Ci::Github => Some("on GitHub, set the variable KARAT_REPOSITORY (owner/name of Karat)"),
        Ci::Gitlab => Some("on GitLab, set the variable KARAT_GIT (where Karat is cloned from)"),
        Ci::PreCommit => Some("pre-commit install --hook-type pre-push"),
    }
}

fn beside(project: &Project<'_>) -> Vec<Beside> {
    let within = slashes(project.within);
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|&w| w.to_owned()).collect() };
    let (name, about, words) = match project.user {
        // What was recorded is looked at by `karat check` alone.
        User::Agent => return Vec::new(),
        User::Server => {
            let mut line = words(&["karat", "server", "lint"]);
            if !within.is_empty() && matches!(project.target, Target::Command(_)) {
                line.extend(["--cwd".to_owned(), within]);
            }
            line.extend(project.target.words());
            ("karat-lint", "Judge the tool definitions", line)
        }
        User::Proxy | User::Scanner => {
            let dataset = slashes(&project.within.join(DATASET));
            let line = words(&["karat", "corpus", "verify", &dataset]);
            ("karat-verify", "Verify that the dataset is the frozen one", line)
        }
    };
    vec![Beside { name, about, line: shell(&words) }]
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

fn slashes(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

//! Shared by the end-to-end tests: the real binary in its own folder.

pub(crate) mod live;
pub(crate) mod served;

#[path = "../../../../karat-test-server/find.rs"]
mod find;

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use find::test_server;

/// A folder for one test, and Karat in it.
pub(crate) struct Scratch {
    folder: TempDir,
}

/// The result of a run of Karat.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The only report of the last run.
    pub(crate) fn report(&self) -> Value {
        self.report_in("karat-report/report.json")
    }

    /// The first report of a file.
    pub(crate) fn report_in(&self, name: &str) -> Value {
        let document: Value = serde_json::from_str(&self.read(name)).unwrap();
        document["reports"][0].clone()
    }

    /// Writes the script of a server, and returns the command that starts it over stdio in this folder.
    /// The script is for `karat-test-server`; its README.md documents the language.
    pub(crate) fn server(&self, script: impl AsRef<str>) -> [&'static str; 2] {
        self.write("server.yaml", script.as_ref());
        [test_server(), "server.yaml"]
    }

    /// Karat in this folder, with a fixed clock and no colours.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("karat").unwrap();
        command
            .current_dir(self.folder.path())
            .env("SOURCE_DATE_EPOCH", "1794711845")
            .env("NO_COLOR", "1")
            .env_remove("CI")
            .env_remove("GITHUB_STEP_SUMMARY")
            .args(arguments);
        command
    }

    pub(crate) fn karat(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// The output of git in this folder.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .current_dir(self.folder.path())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Every file below the folder, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(self.folder.path(), self.folder.path(), &mut found);
        found.sort();
        found
    }

    /// A frozen dataset of one server with these tools and queries, and its project file.
    pub(crate) fn project(&self, golden: &str, gate: &str, system: &str) {
        let tools = r#"{"tools": [
            {"server": "s", "tool": "create_issue", "description": "Open a ticket."},
            {"server": "s", "tool": "list_files", "description": "Show what a folder holds."},
            {"server": "s", "tool": "send_mail", "description": "Write a message to an address."}
        ]}"#;
        self.write("tools.json", tools);
        self.write("golden.jsonl", golden);
        self.write(
            "karat.toml",
            format!(
                "[[retrieval]]\nname = \"r\"\ncorpus = \"tools.json\"\ngolden = \"golden.jsonl\"\n\
                 system = {system}\n{gate}"
            ),
        );
    }
}

/// A metric of a report, a slice or a control.
pub(crate) fn metric<'a>(report: &'a Value, id: &str) -> &'a Value {
    with_id(&report["metrics"], id)
}

/// The value of a metric; none where it is undefined.
pub(crate) fn value(report: &Value, id: &str) -> Option<f64> {
    metric(report, id)["value"].as_f64()
}

/// A slice of a report, or all of it.
pub(crate) fn slice<'a>(report: &'a Value, slice: Option<(&str, &str)>) -> &'a Value {
    let Some((by, value)) = slice else { return report };
    let mut slices = report["slices"].as_array().unwrap().iter();
    let found = slices.find(|slice| slice["by"] == by && slice["value"] == value);
    found.unwrap_or_else(|| panic!("no {by}={value}"))
}

/// An item of a report.
pub(crate) fn item<'a>(report: &'a Value, id: &str) -> &'a Value {
    with_id(&report["items"], id)
}

fn with_id<'a>(list: &'a Value, id: &str) -> &'a Value {
    let list = list.as_array().unwrap();
    let ids: Vec<&Value> = list.iter().map(|one| &one["id"]).collect();
    list.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("no {id}: {ids:?}"))
}

/// The built karat at another place, as a file of its own: a link would lead back.
pub(crate) fn install(root: &Scratch, name: &str) {
    let built = assert_cmd::cargo::cargo_bin("karat");
    let place = root.path(name);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    if std::fs::hard_link(&built, &place).is_err() {
        std::fs::copy(&built, &place).unwrap();
    }
}

/// Two queries that the built-in engine answers right.
pub(crate) const GOLDEN: &str = r#"{"id": "q1", "query": "open a ticket", "kind": "direct", "labels": [{"tool_id": "s:create_issue", "relevance": 2}, {"tool_id": "s:send_mail", "relevance": 0}]}
{"id": "q2", "query": "what does the folder hold", "kind": "paraphrase", "labels": [{"tool_id": "s:list_files", "relevance": 2}]}
"#;

pub(crate) const BM25: &str = "{ builtin = \"bm25\" }";

fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(root, &path, found);
        } else {
            found.push(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    pub(crate) fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    /// The only report of a document.
    pub(crate) fn report(&self) -> Value {
        let document = self.json();
        assert_eq!(document["schema"], "karat.check/1");
        document["reports"][0].clone()
    }

    /// A run that was not measured, for a reason with all of these words.
    pub(crate) fn not_measured(&self, words: &[&str]) {
        assert_eq!(self.code, 3, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        let shown = format!("{}{}", self.stdout, self.stderr);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(shown.contains(word), "{word:?} is missing in: {shown}");
        }
    }

    /// One message on stderr that holds all of these words, and nothing on stdout.
    pub(crate) fn says(&self, words: &[&str]) {
        assert_eq!(self.stdout, "", "stderr: {}", self.stderr);
        let messages: Vec<&str> =
            self.stderr.lines().filter(|line| line.starts_with("karat: ")).collect();
        assert_eq!(messages.len(), 1, "one message: {}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing in: {}", self.stderr);
        }
    }
}

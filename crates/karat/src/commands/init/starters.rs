//! The starter projects, one for each kind of user. The first `karat check` measures and passes each; the
//! baselines are the scores of the systems that it runs, recorded by `karat
//! baseline update` in a project that was just written, and a test holds them to that.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use karat_io::input::destination;
use karat_io::secrets;
use karat_io::text::printable;
use karat_mcp::ServerSpec;

use crate::cli::{InitArgs, User};
use crate::commands::init::paths;
use crate::commands::schema;
use crate::commands::server::target::pairs;
use crate::exit::Stop;

/// A file by its path in the project, with its text.
type Text = (&'static str, &'static str);

/// The dataset of a starter project that has one.
pub(super) const DATASET: &str = "datasets/starter/v1";

/// Files that are kept out of version control.
pub(super) const IGNORE: &str = include_str!("../../starter/gitignore");
/// The files that git must not convert.
pub(super) const ATTRIBUTES: &str = include_str!("../../starter/gitattributes");

const PROXY: &[Text] = &[
    ("karat.toml", include_str!("../../starter/proxy/karat.toml")),
    ("search.py", include_str!("../../starter/proxy/search.py")),
    ("datasets/starter/v1/tools/tools.json", include_str!("../../starter/proxy/tools.json")),
    ("datasets/starter/v1/golden/golden.jsonl", include_str!("../../starter/proxy/golden.jsonl")),
    ("baselines/retrieval-search.json", include_str!("../../starter/proxy/baseline.json")),
];

const SERVER: &[Text] = &[
    ("karat.toml", include_str!("../../starter/server/karat.toml")),
    ("suites/starter.yaml", include_str!("../../starter/server/suite.yaml")),
    ("baselines/server-server.json", include_str!("../../starter/server/baseline.json")),
];

/// For the user's server, before its tools are known.
const OWN_SERVER: &[Text] = &[
    ("karat.toml", include_str!("../../starter/server/own.toml")),
    ("suites/starter.yaml", include_str!("../../starter/server/own.yaml")),
];

const SCANNER: &[Text] = &[
    ("karat.toml", include_str!("../../starter/scanner/karat.toml")),
    ("scan.py", include_str!("../../starter/scanner/scan.py")),
    (
        "datasets/starter/v1/entries/attacks.jsonl",
        include_str!("../../starter/scanner/attacks.jsonl"),
    ),
    (
        "datasets/starter/v1/entries/hard_negatives.jsonl",
        include_str!("../../starter/scanner/hard_negatives.jsonl"),
    ),
    ("datasets/starter/v1/entries/plain.jsonl", include_str!("../../starter/scanner/plain.jsonl")),
    ("baselines/detection-scanner.json", include_str!("../../starter/scanner/baseline.json")),
];

const AGENT: &[Text] = &[
    ("karat.toml", include_str!("../../starter/agent/karat.toml")),
    ("traces/recorded.jsonl", include_str!("../../starter/agent/traces.jsonl")),
    ("datasets/starter/v1/tasks/tasks.jsonl", include_str!("../../starter/agent/tasks.jsonl")),
    ("datasets/starter/v1/tools/tools.json", include_str!("../../starter/agent/tools.json")),
    ("baselines/agent-agent.json", include_str!("../../starter/agent/baseline.json")),
];

/// The system that a project is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The systems that Karat carries with it, to start with: the demo server, the built-in engine or detectors.
    Demo,
    /// A program of the user's, or a system that runs already.
    Own(Box<Own>),
}

/// A system of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Own {
    spec: ServerSpec,
    /// Its working folder, from the folder of the project.
    cwd: Option<PathBuf>,
}

impl Target {
    /// From the flags.
    pub(super) fn given(arguments: &InitArgs) -> Result<Target, Stop> {
        let InitArgs { url, command, env, headers, cwd, folder, .. } = arguments;
        let spec = match url {
            None if command.is_empty() => return Ok(Target::Demo),
            None => ServerSpec::from_command(command.clone()),
            Some(url) => ServerSpec::from_url(url),
        };
        let spec = ServerSpec {
            env: pairs(env, '=', "-e", "KEY=VALUE")?,
            headers: pairs(headers, ':', "--header", "NAME: VALUE")?,
            cwd: cwd.clone(),
            ..spec
        };
        let cwd = cwd.as_deref().map(|cwd| paths::from(folder, cwd)).transpose();
        let cwd = cwd.map_err(|error| Stop::bad_input(format!("--cwd {error}")))?;
        Target::own(spec, cwd)
    }

    /// A system that can be written down: without secrets, and each of its words in one line of a file.
    fn own(spec: ServerSpec, cwd: Option<PathBuf>) -> Result<Target, Stop> {
        let named = spec.env.iter().chain(&spec.headers).flat_map(|(name, value)| [name, value]);
        let words = spec.command.iter().flatten().chain(&spec.url).chain(named);
        let folder = cwd.as_ref().map(|folder| folder.display().to_string());
        if let Some(word) = words.chain(&folder).find(|word| word.chars().any(char::is_control)) {
            return Err(Stop::bad_input(format!(
                "{:?}: a command or URL with control characters cannot be written to a file; put it \
                 into a script",
                printable(word)
            )));
        }
        match &spec.url {
            Some(url) => check_address(url)?,
            None => check_command(&spec)?,
        }
        check_values(&spec)?;
        spec.transport().map_err(Stop::bad_input)?;
        Ok(Target::Own(Box::new(Own { spec, cwd })))
    }

    /// From one line of text: an address, or a command with its arguments.
    pub(super) fn parse(line: &str) -> Result<Target, String> {
        let line = line.trim();
        if line.starts_with("http://") || line.starts_with("https://") {
            return Target::own(ServerSpec::from_url(line), None).map_err(|stop| stop.message);
        }
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut quote = None;
        for c in line.chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '"' | '\'') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, c) if c.is_whitespace() => words.extend(word.take()),
                (_, c) => word.get_or_insert_default().push(c),
            }
        }
        if quote.is_some() {
            return Err("A quote is not closed.".to_owned());
        }
        words.extend(word);
        match words.is_empty() {
            true => Ok(Target::Demo),
            false => {
                Target::own(ServerSpec::from_command(words), None).map_err(|stop| stop.message)
            }
        }
    }

    /// The same from the folder of the project, where it is started: a word that names a file from here names
    /// it from there. With `cwd`, words are seen from that folder.
    pub(super) fn seen_from(mut self, folder: &Path) -> Target {
        if let Target::Own(own) = &mut self
            && own.cwd.is_none()
            && let Some(words) = &mut own.spec.command
            && destination(folder) != destination(Path::new("."))
        {
            for (at, word) in words.iter_mut().enumerate() {
                // A program without a separator is looked up in PATH.
                let is_path = at > 0 || word.contains('/');
                if let Some(moved) = is_path.then(|| from_folder(word, folder)).flatten() {
                    *word = moved;
                }
            }
        }
        self
    }

    /// Refuses a URL with which the first check of the project would be refused.
    ///
    /// # Errors
    /// The form that is needed.
    pub(super) fn suits(&self, user: User) -> Result<(), String> {
        let Target::Own(own) = self else { return Ok(()) };
        let Some(url) = &own.spec.url else { return Ok(()) };
        match user {
            User::Proxy if !url.contains("{query}") => Err(
                "the URL of a search needs {query} where the query goes, as in \
                 http://127.0.0.1:8080/search?q={query}; for a search that takes the query elsewhere, leave \
                 the URL out and change `system` in karat.toml"
                    .to_owned(),
            ),
            User::Scanner => Err(
                "a scanner is given as a command that answers JSON Lines; for one with an endpoint, leave \
                 the URL out and write `system = { http = { … } }` in karat.toml"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// As the words of a command line of Karat that is run in the folder of the project.
    pub(super) fn arguments(&self) -> Vec<String> {
        let cwd = match self {
            Target::Demo => None,
            Target::Own(own) => own.cwd.as_deref(),
        };
        self.arguments_in(cwd)
    }

    /// As the words of a command line of Karat that is run at the root of the repository, in which the
    /// project is at this path.
    pub(super) fn words_at_root(&self, project: &Path) -> Vec<String> {
        let folder = match self {
            Target::Own(own) if own.spec.command.is_some() => {
                paths::joined(project, own.cwd.as_deref().unwrap_or(Path::new("")))
            }
            _ => PathBuf::new(),
        };
        self.arguments_in(
            Some(&folder).filter(|folder| !folder.as_os_str().is_empty()).map(PathBuf::as_path),
        )
    }

    fn arguments_in(&self, cwd: Option<&Path>) -> Vec<String> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let Target::Own(own) = self else { return owned(&["--", "karat", "demo-server"]) };
        let ServerSpec { command, url, env, headers, .. } = &own.spec;
        let mut words = Vec::new();
        if let Some(folder) = cwd {
            words.extend(["--cwd".to_owned(), paths::slashes(folder)]);
        }
        words.extend(
            env.iter().flat_map(|(key, value)| ["-e".to_owned(), format!("{key}={value}")]),
        );
        for (name, value) in headers {
            words.extend(["--header".to_owned(), format!("{name}: {value}")]);
        }
        if let Some(url) = url {
            words.extend(["--url".to_owned(), url.clone()]);
        }
        if let Some(command) = command {
            words.push("--".to_owned());
            words.extend(command.iter().cloned());
        }
        words
    }

    /// As a server to start from the folder of the project.
    pub(super) fn spec(&self) -> ServerSpec {
        match self {
            Target::Own(own) => ServerSpec { cwd: own.cwd.clone(), ..own.spec.clone() },
            Target::Demo => {
                ServerSpec::from_command(self.arguments().into_iter().skip(1).collect())
            }
        }
    }

    /// Returns whether `cwd` names the folder in which it is started.
    pub(super) fn has_folder(&self) -> bool {
        matches!(self, Target::Own(own) if own.cwd.is_some())
    }

    /// As the value of `system` in karat.toml; `None` for the built-in one.
    fn system(&self) -> Option<String> {
        let Target::Own(own) = self else { return None };
        let table = own.table();
        Some(if own.spec.url.is_some() { inline(&[("http", table)]) } else { table })
    }

    /// As the value of `server` in karat.toml.
    fn toml(&self) -> String {
        match self {
            Target::Demo => r#"{ command = ["karat", "demo-server"] }"#.to_owned(),
            Target::Own(own) => own.table(),
        }
    }
}

/// The path of an existing file or folder from the folder; none for an absolute path, and for other words.
fn from_folder(word: &str, folder: &Path) -> Option<String> {
    let path = Path::new(word);
    // A word such as `build` is not meant as the folder of that name.
    let is_folder = path.is_dir() && (word.contains('/') || matches!(word, "." | ".."));
    if path.is_absolute() || !(path.is_file() || is_folder) {
        return None;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let file = match path.file_name() {
        // The name stays: the file behind a link may have another one.
        Some(name) => destination(parent.unwrap_or(Path::new("."))).join(name),
        None => destination(path),
    };
    let folder = destination(folder);
    let up = folder.ancestors().position(|above| file.starts_with(above))?;
    let below = file.strip_prefix(folder.ancestors().nth(up)?).ok()?.to_str()?;
    let start = if up == 0 { "./".to_owned() } else { "../".repeat(up) };
    Some(format!("{start}{below}"))
}

impl Own {
    /// As a table on one line of karat.toml.
    fn table(&self) -> String {
        let ServerSpec { command, url, env, headers, .. } = &self.spec;
        let mut fields = Vec::new();
        if let Some(command) = command {
            fields.push(("command", toml::Value::from(command.clone()).to_string()));
        }
        if let Some(url) = url {
            fields.push(("url", toml::Value::from(url.as_str()).to_string()));
        }
        for (key, values) in [("env", env), ("headers", headers)] {
            if !values.is_empty() {
                let quoted = |text: &String| toml::Value::from(text.as_str()).to_string();
                let named: Vec<(String, String)> =
                    values.iter().map(|(name, value)| (key_of(name), quoted(value))).collect();
                fields.push((key, inline(&named)));
            }
        }
        if let Some(folder) = &self.cwd {
            fields.push(("cwd", toml::Value::from(paths::slashes(folder)).to_string()));
        }
        inline(&fields)
    }
}

/// A table of TOML on one line.
fn inline(fields: &[(impl Display, String)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// A key of TOML, in quotes if it needs them.
fn key_of(name: &str) -> String {
    match name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        true => name.to_owned(),
        false => toml::Value::from(name).to_string(),
    }
}

/// The refusal of a command with secrets.
fn check_command(spec: &ServerSpec) -> Result<(), Stop> {
    let Some(secret) = spec.written_secret() else { return Ok(()) };
    Err(Stop::bad_input(format!(
        "{}: a secret is not written into files that are committed; put it into a variable, and \
         '${{NAME}}' in its place (in such quotes, so that the shell leaves it alone), or give the server \
         -e NAME='${{NAME}}'",
        printable(&secret)
    )))
}

/// The refusal of an invalid address, or one with secrets.
fn check_address(url: &str) -> Result<(), Stop> {
    let spec = ServerSpec::from_url(url);
    let shown = spec.describe();
    if let Some(secret) = spec.written_secret() {
        return Err(Stop::bad_input(format!(
            "--url {shown}: {}: a secret is not written into files that are committed; leave it out \
             of the address, put it into a variable, and add --header 'Authorization: Bearer ${{TOKEN}}'",
            printable(&secret)
        )));
    }
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(());
    }
    Err(Stop::bad_input(format!("--url {shown}: a URL starts with http:// or https://")))
}

/// The refusal of variables and headers with secrets. The message has only their names.
fn check_values(spec: &ServerSpec) -> Result<(), Stop> {
    // A default of a variable is written down too.
    let literal = |value: &str| !value.contains("${") || value.contains(":-");
    let in_url = |value: &str| {
        secrets::in_urls(value).into_iter().any(|part| value.get(part).is_some_and(literal))
    };
    let of_env = spec
        .env
        .iter()
        .find(|(name, value)| in_url(value) || (secrets::is_secret(name, value) && literal(value)));
    let of_headers = spec.headers.iter().find(|(name, value)| {
        in_url(value)
            || ((secrets::is_secret_header(name) || secrets::is_secret(name, value))
                && literal(value))
    });
    let (flag, name, form) = match (of_env, of_headers) {
        (Some((name, _)), _) => ("-e", name, format!("{name}='${{{}}}'", variable(name))),
        (None, Some((name, _))) => ("--header", name, format!("'{name}: ${{{}}}'", variable(name))),
        (None, None) => return Ok(()),
    };
    Err(Stop::bad_input(printable(&format!(
        "{flag} {name}: a secret is not written into files that are committed; put it into a variable, \
         and write {flag} {form}"
    ))))
}

/// The name of a variable for the value with this name.
fn variable(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(plain).collect()
}

/// The files of a project, by their paths in it.
pub(super) fn files(user: User, target: &Target) -> Vec<(&'static str, String)> {
    let plain = |files: &[Text]| {
        files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect::<Vec<_>>()
    };
    let mut files = match (user, target) {
        (User::Proxy, own) => measuring(plain(PROXY), own),
        (User::Scanner, own) => measuring(plain(SCANNER), own),
        (User::Agent, _) => plain(AGENT),
        (User::Server, Target::Demo) => plain(SERVER),
        (User::Server, own) => {
            plain(OWN_SERVER).into_iter().map(|(path, text)| (path, filled(&text, own))).collect()
        }
    };
    for (path, text) in &mut files {
        let line = match *path {
            "karat.toml" => schema::PROJECT_LINE,
            SUITE => schema::SUITE_LINE,
            _ => continue,
        };
        text.insert_str(0, line);
    }
    files.push((".karat/project.schema.json", schema::project_text()));
    if user == User::Server {
        files.push((".karat/suite.schema.json", schema::suite_text()));
    }
    files
}

/// The files of a project for the user's system: without the built-in one, its scores and the
/// limits that were set for them.
fn measuring(files: Vec<(&'static str, String)>, own: &Target) -> Vec<(&'static str, String)> {
    let Some(system) = own.system() else { return files };
    let changed = |line: &str| match line {
        line if line.starts_with("system = { builtin") => format!("system = {system}"),
        "\"recall@5\" = { min = 0.6, max_drop = 0.0 }" => {
            "\"recall@5\" = { max_drop = 0.0 }".to_owned()
        }
        "\"recall\" = { min = 0.3, max_drop = 0.0 }" => {
            "\"recall\" = { max_drop = 0.0 }".to_owned()
        }
        "\"fpr_hard\" = { max = 0.2, max_rise = 0.0 }" => {
            "\"fpr_hard\" = { max_rise = 0.0 }".to_owned()
        }
        "\"fpr\" = { max = 0.1, max_rise = 0.0 }" => "\"fpr\" = { max_rise = 0.0 }".to_owned(),
        other => other.to_owned(),
    };
    let comment = |line: &&str| {
        !line.starts_with("# system = ")
            && !line.contains("The built-in")
            && !line.contains("instead, which reads one JSON line")
            && !line.starts_with("# Commit it. The present one")
    };
    files
        .into_iter()
        .filter(|(path, _)| !path.starts_with("baselines/"))
        .map(|(path, text)| match path {
            "karat.toml" => {
                let lines: Vec<String> = text.lines().filter(comment).map(changed).collect();
                (path, lines.join("\n") + "\n")
            }
            _ => (path, text),
        })
        .collect()
}

/// A template with the server filled in; filled-in text is not expanded again.
fn filled(text: &str, own: &Target) -> String {
    let parts = text.split("SERVER").map(|part| part.replace("TARGET", &shell(&own.arguments())));
    parts.collect::<Vec<_>>().join(&own.toml())
}

/// The suite of a project for a server.
pub(super) const SUITE: &str = "suites/starter.yaml";

/// Returns whether the project has a dataset to freeze. A suite is not one: it is edited all the time.
pub(super) fn has_dataset(user: User) -> bool {
    user != User::Server
}

/// The effect of `karat check` in a fresh project.
pub(super) fn measures(user: User, target: &Target) -> &'static str {
    match (user, target) {
        (User::Server, Target::Demo) => "runs the starter suite against the demo server",
        (User::Server, _) => "runs the starter suite against your server",
        (User::Proxy, Target::Demo) => "measures the built-in engine on the starter queries",
        (User::Proxy, _) => "measures your search on the starter queries",
        (User::Scanner, Target::Demo) => "measures the built-in detectors on the starter corpus",
        (User::Scanner, _) => "measures your scanner on the starter corpus",
        (User::Agent, _) => "scores the recorded traces on the starter tasks",
    }
}

/// The use of `karat baseline update` in a fresh project.
pub(super) fn accepts(user: User, target: &Target) -> &'static str {
    match (user, target) {
        // The suite is still to be written, and its scores are not worth keeping before.
        (User::Server, Target::Own(_)) => {
            "accepts new scores, once you have uncommented `baseline` in karat.toml"
        }
        (User::Proxy | User::Scanner, Target::Own(_)) => {
            "accepts new scores, where a change is intended"
        }
        (User::Agent, _) => "accepts new scores, once your own traces are scored",
        _ => "accepts new scores, once your own system is measured",
    }
}

/// Words as a line for a shell.
pub(super) fn shell(words: &[String]) -> String {
    let quoted: Vec<String> =
        words.iter().map(|word| karat_server::probe::replay::quoted(word)).collect();
    quoted.join(" ")
}

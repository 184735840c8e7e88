//! The starter projects, one for each kind of user. The first `karat check` measures and passes each; the
//! baselines are the scores of the systems that it runs, recorded by `karat
//! baseline update` in a project that was just written, and a test holds them to that.

use std::path::Path;

use karat_io::input::destination;
use karat_io::text::printable;
use karat_mcp::ServerSpec;

use crate::cli::User;
use crate::commands::schema;
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
    /// A program of the user's.
    Command(Vec<String>),
    /// A system that runs already.
    Url(String),
}

impl Target {
    /// From the flags; what could not are in one line of a file is refused.
    pub(super) fn new(url: Option<&str>, command: &[String]) -> Result<Target, Stop> {
        let words = || command.iter().map(String::as_str).chain(url);
        if let Some(word) = words().find(|word| word.chars().any(char::is_control)) {
            return Err(Stop::bad_input(format!(
                "{:?}: a command or URL with control characters cannot be written to a file; put it \
                 into a script",
                printable(word)
            )));
        }
        match url {
            None if command.is_empty() => Ok(Target::Demo),
            None => match ServerSpec::from_command(command.to_owned()).written_secret() {
                None => Ok(Target::Command(command.to_owned())),
                Some(secret) => Err(Stop::bad_input(format!(
                    "{}: a secret is not written into files that are committed; put it into a \
                     variable, and '${{NAME}}' in its place (in such quotes, so that the shell leaves \
                     it alone), or give the server `env = {{ NAME = \"${{NAME}}\" }}` in karat.toml",
                    printable(&secret)
                ))),
            },
            Some(url) => address(url),
        }
    }

    /// From one line of text: an address, or a command with its arguments.
    pub(super) fn parse(line: &str) -> Result<Target, String> {
        let line = line.trim();
        if line.starts_with("http://") || line.starts_with("https://") {
            return Target::new(Some(line), &[]).map_err(|stop| stop.message);
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
        Target::new(None, &words).map_err(|stop| stop.message)
    }

    /// The same from the folder of the project, where it is started: a word that names a file from here names
    /// it from there.
    pub(super) fn seen_from(self, folder: &Path) -> Target {
        let Target::Command(words) = self else { return self };
        if destination(folder) == destination(Path::new(".")) {
            return Target::Command(words);
        }
        let moved = |(at, word): (usize, String)| {
            // A program without a separator is looked up in PATH.
            let is_path = at > 0 || word.contains('/');
            is_path.then(|| from_folder(&word, folder)).flatten().unwrap_or(word)
        };
        Target::Command(words.into_iter().enumerate().map(moved).collect())
    }

    /// Refuses a URL with which the first check of the project would be refused.
    ///
    /// # Errors
    /// The form that is needed.
    pub(super) fn suits(&self, user: User) -> Result<(), String> {
        let Target::Url(url) = self else { return Ok(()) };
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

    /// As the words of a command line of Karat.
    pub(super) fn words(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Target::Demo => words(&["--", "karat", "demo-server"]),
            Target::Url(url) => words(&["--url", url]),
            Target::Command(command) => {
                std::iter::once("--".to_owned()).chain(command.iter().cloned()).collect()
            }
        }
    }

    /// As a server to start.
    pub(super) fn spec(&self) -> ServerSpec {
        match self {
            Target::Url(url) => ServerSpec::from_url(url),
            _ => ServerSpec::from_command(self.words().into_iter().skip(1).collect()),
        }
    }

    /// As the value of `system` in karat.toml; `None` for the built-in one.
    fn system(&self) -> Option<String> {
        match self {
            Target::Demo => None,
            Target::Url(url) => {
                Some(format!("{{ http = {{ url = {} }} }}", toml::Value::from(url.as_str())))
            }
            Target::Command(command) => {
                Some(format!("{{ command = {} }}", toml::Value::from(command.clone())))
            }
        }
    }

    /// As the value of `server` in karat.toml.
    fn toml(&self) -> String {
        match self {
            Target::Demo => r#"{ command = ["karat", "demo-server"] }"#.to_owned(),
            Target::Url(url) => format!("{{ url = {} }}", toml::Value::from(url.as_str())),
            Target::Command(command) => {
                format!("{{ command = {} }}", toml::Value::from(command.clone()))
            }
        }
    }
}

/// The path of an existing file from the folder; none for an absolute path, and without a file.
fn from_folder(word: &str, folder: &Path) -> Option<String> {
    let path = Path::new(word);
    if path.is_absolute() || !path.is_file() {
        return None;
    }
    // The name stays: the file behind a link may have another one.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let file = destination(parent.unwrap_or(Path::new("."))).join(path.file_name()?);
    let folder = destination(folder);
    let up = folder.ancestors().position(|above| file.starts_with(above))?;
    let below = file.strip_prefix(folder.ancestors().nth(up)?).ok()?.to_str()?;
    let start = if up == 0 { "./".to_owned() } else { "../".repeat(up) };
    Some(format!("{start}{below}"))
}

/// A URL without secrets.
fn address(url: &str) -> Result<Target, Stop> {
    let spec = ServerSpec::from_url(url);
    let shown = spec.describe();
    if let Some(secret) = spec.written_secret() {
        return Err(Stop::bad_input(format!(
            "--url {shown}: {}: a secret is not written into files that are committed; leave it out \
             of the address, put it into a variable, and add `headers = {{ Authorization = \
             \"Bearer ${{TOKEN}}\" }}` to the server in karat.toml",
            printable(&secret)
        )));
    }
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(Target::Url(url.to_owned()));
    }
    Err(Stop::bad_input(format!("--url {shown}: a URL starts with http:// or https://")))
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
    let parts = text.split("SERVER").map(|part| part.replace("TARGET", &shell(&own.words())));
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
        (User::Server, Target::Command(_) | Target::Url(_)) => {
            "accepts new scores, once you have uncommented `baseline` in karat.toml"
        }
        _ => "accepts new scores, once your own system is measured",
    }
}

/// Words as a line for a shell.
pub(super) fn shell(words: &[String]) -> String {
    let quoted: Vec<String> =
        words.iter().map(|word| karat_server::probe::replay::quoted(word)).collect();
    quoted.join(" ")
}

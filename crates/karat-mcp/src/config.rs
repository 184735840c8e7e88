//! Server specs in the configuration files of editors and agents.
//!
//! `mcp.json`, `.mcp.json`, `.cursor/mcp.json` and `claude_desktop_config.json` hold `mcpServers`;
//! `.vscode/mcp.json` holds `servers` and may have comments. Unknown keys are ignored, because these files
//! belong to other programs. An entry is read when it is asked for, so an invalid one does not affect the
//! others, and no server is started because it was found.
//!
//! ```
//! use karat_mcp::config;
//! use std::path::Path;
//!
//! let text = r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "server-files"]}}}"#;
//! let servers = config::parse(Path::new("mcp.json"), text)?;
//! assert_eq!(servers.names().collect::<Vec<_>>(), ["files"]);
//! assert_eq!(servers.server("files")?.to_string(), "npx -y server-files");
//! # Ok::<(), karat_io::input::InputError>(())
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_io::input::{self, InputError, Limits};
use serde_json::{Map, Value};

use crate::spec::{ServerSpec, TransportKind};

/// Maximum size of a file.
const MAX_BYTES: u64 = 4 << 20;

/// Files of a project, relative to its folder.
const IN_PROJECT: [&str; 4] = [".mcp.json", "mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"];

/// Files of a user, relative to the home folder.
const AT_HOME: [&str; 3] = [
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
];

/// The servers of a file.
#[derive(Clone, Debug)]
pub struct Servers {
    path: PathBuf,
    entries: BTreeMap<String, Value>,
}

impl Servers {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of all entries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The server of this name.
    ///
    /// # Errors
    /// If there is none, or its entry is not a valid server.
    pub fn server(&self, name: &str) -> Result<ServerSpec, InputError> {
        let Some(entry) = self.entries.get(name) else {
            let known: Vec<&str> = self.names().collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!("no such server; the file has {known}");
            return Err(self.wrong(name, message));
        };
        spec(entry).map_err(|why| self.wrong(name, why))
    }

    fn wrong(&self, name: &str, why: String) -> InputError {
        InputError::invalid(&self.path, format!("server {name:?}"), why)
    }
}

/// Reads the servers of a file.
///
/// # Errors
/// If the file cannot be read, or is not JSON (comments and trailing commas aside) with servers.
pub fn read(path: &Path) -> Result<Servers, InputError> {
    let limits = Limits { bytes: MAX_BYTES, ..Limits::default() };
    parse(path, &input::read_text(path, &limits)?)
}

/// As [`read`], for text in memory.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Servers, InputError> {
    let document: Value = input::parse_json_with_comments(path, text)?;
    let servers = ["mcpServers", "servers"].into_iter().find_map(|key| document.get(key));
    let Some(servers) = servers else {
        let message = "the file has neither `mcpServers` nor `servers`";
        return Err(InputError::invalid(path, "the whole file", message));
    };
    let Value::Object(servers) = servers else {
        return Err(InputError::invalid(
            path,
            "servers",
            "must be an object that maps names to servers",
        ));
    };
    let entries = servers.iter().map(|(name, entry)| (name.clone(), entry.clone())).collect();
    Ok(Servers { path: path.to_owned(), entries })
}

/// The usual paths of such files: those of the project first, then those of the user. They need not
/// exist.
pub fn candidates(folder: &Path) -> Vec<PathBuf> {
    candidates_with(folder, std::env::var_os("HOME").map(PathBuf::from).as_deref())
}

fn candidates_with(folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let project = IN_PROJECT.iter().map(|name| folder.join(name));
    let home = home.into_iter().flat_map(|home| AT_HOME.iter().map(|name| home.join(name)));
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in project.chain(home) {
        // In the home folder, the same file has both names.
        let same = |known: &PathBuf| {
            known.canonicalize().is_ok_and(|k| path.canonicalize().is_ok_and(|p| p == k))
        };
        if !paths.iter().any(same) {
            paths.push(path);
        }
    }
    paths
}

/// Reads those of the files that exist.
pub fn discover(places: &[PathBuf]) -> Vec<Result<Servers, InputError>> {
    places.iter().filter(|path| path.is_file()).map(|path| read(path)).collect()
}

fn spec(entry: &Value) -> Result<ServerSpec, String> {
    let Value::Object(entry) = entry else { return Err("must be an object".to_owned()) };
    if entry.contains_key("envFile") {
        return Err("`envFile` is not read; put the variables into `env`".to_owned());
    }
    let mut spec = ServerSpec {
        command: command(entry)?,
        url: None,
        transport: transport(entry)?,
        env: texts(entry, "env")?,
        headers: texts(entry, "headers")?,
        cwd: text(entry, "cwd")?.map(PathBuf::from),
        protocol: None,
        isolate: None,
        policies: None,
    };
    for key in ["url", "serverUrl", "httpUrl"] {
        if let Some(url) = text(entry, key)? {
            spec.url = Some(url);
            break;
        }
    }
    // By convention the URL of the old transport ends so.
    if spec.transport.is_none() && spec.url.as_ref().is_some_and(|url| url.ends_with("/sse")) {
        spec.transport = Some(TransportKind::Sse);
    }
    spec.transport().map_err(|error| error.to_string())?;
    Ok(spec)
}

fn command(entry: &Map<String, Value>) -> Result<Option<Vec<String>>, String> {
    let mut words = match entry.get("command") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(program)) => vec![program.clone()],
        Some(Value::Array(words)) => list(words, "command")?,
        Some(_) => return Err("`command` must be a string".to_owned()),
    };
    match entry.get("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(arguments)) => words.extend(list(arguments, "args")?),
        Some(_) => return Err("`args` must be a list of strings".to_owned()),
    }
    Ok(Some(words))
}

fn list(words: &[Value], key: &str) -> Result<Vec<String>, String> {
    let word =
        |word: &Value| scalar(word).ok_or_else(|| format!("`{key}` must hold strings, not {word}"));
    words.iter().map(word).collect()
}

fn transport(entry: &Map<String, Value>) -> Result<Option<TransportKind>, String> {
    let kind = match text(entry, "type")? {
        Some(kind) => Some(kind),
        None => text(entry, "transport")?,
    };
    let Some(kind) = kind else { return Ok(None) };
    match kind.to_ascii_lowercase().replace(['-', '_', ' '], "").as_str() {
        "stdio" => Ok(Some(TransportKind::Stdio)),
        "http" | "streamablehttp" => Ok(Some(TransportKind::Http)),
        "sse" => Ok(Some(TransportKind::Sse)),
        _ => Err(format!("unknown type {kind:?}; use stdio, http or sse")),
    }
}

fn text(entry: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` must be a string")),
    }
}

fn texts(entry: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, String> {
    let values = match entry.get(key) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(values)) => values,
        Some(_) => return Err(format!("`{key}` must be an object of strings")),
    };
    let mut texts = BTreeMap::new();
    for (name, value) in values {
        // Editors read null as "not set".
        if value.is_null() {
            continue;
        }
        let value = scalar(value).ok_or_else(|| format!("`{key}`.{name} must be a string"))?;
        texts.insert(name.clone(), value);
    }
    Ok(texts)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All servers of a file.
    fn parsed(text: &str) -> Result<BTreeMap<String, ServerSpec>, String> {
        let servers = parse(Path::new("mcp.json"), text).map_err(|error| error.to_string())?;
        let server = |name: &str| match servers.server(name) {
            Ok(spec) => Ok((name.to_owned(), spec)),
            Err(error) => Err(error.to_string()),
        };
        servers.names().map(server).collect()
    }

    #[test]
    fn an_invalid_entry_does_not_affect_the_others() {
        let text = r#"{"mcpServers": {
            "good": {"command": "x"}, "file": {"command": "x", "envFile": ".env"},
            "socket": {"type": "ws", "url": "ws://h"}, "odd": 3}}"#;
        let servers = parse(Path::new("mcp.json"), text).unwrap();
        assert_eq!(servers.server("good").unwrap().command.unwrap(), ["x"]);
        for (name, named) in [("file", "envFile"), ("socket", "\"ws\""), ("odd", "object")] {
            let error = servers.server(name).unwrap_err().to_string();
            assert!(error.contains(named) && error.contains(name), "{error}");
        }
        let error = servers.server("other").unwrap_err().to_string();
        assert!(error.contains("file, good, odd, socket"), "{error}");
    }

    #[test]
    fn the_common_format_is_read() {
        let servers = parsed(
            r#"{"mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server", 3], "env": {"A": "${T}", "N": 1, "U": null},
                          "disabled": true, "autoApprove": ["x"]},
                "remote": {"type": "streamable-http", "url": "https://host/mcp", "headers": {"Authorization": "Bearer ${T}"}},
                "old": {"url": "http://host/sse"}
            }, "other": 1}"#,
        )
        .unwrap();
        let files = &servers["files"];
        assert_eq!(files.command.as_deref().unwrap(), ["npx", "-y", "server", "3"]);
        assert_eq!(
            files.env,
            BTreeMap::from([("A".into(), "${T}".into()), ("N".into(), "1".into())])
        );
        assert_eq!(servers["remote"].transport, Some(TransportKind::Http));
        assert_eq!(servers["old"].transport, Some(TransportKind::Sse));
    }

    #[test]
    fn comments_and_trailing_commas_are_allowed() {
        let servers = parsed(
            "{\n // a comment, with \"quotes\"\n \"inputs\": [],\n \"servers\": { /* one\n two */\n  \
             \"a\": {\"type\": \"stdio\", \"command\": \"x\", \"args\": [\"//no\", \"/* no */\", ], },\n },\n}",
        )
        .unwrap();
        assert_eq!(servers["a"].command.as_deref().unwrap(), ["x", "//no", "/* no */"]);
    }

    #[test]
    fn mistakes_are_reported_with_their_server() {
        for (text, named) in [
            (r#"{"mcpServers": {"a": {"args": []}}}"#, "\"a\": a server needs a command or a url"),
            (
                r#"{"mcpServers": {"a": {"command": "x", "type": "carrier-pigeon"}}}"#,
                "stdio, http or sse",
            ),
            (r#"{"mcpServers": {"a": {"command": "x", "args": [{}]}}}"#, "args"),
            (r#"{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}"#, "not both"),
            (r#"{"mcpServers": {"a": {"command": "x", "envFile": ".env"}}}"#, "envFile"),
            (r#"{"mcpServers": {"a": {"command": "x", "env": {"A": []}}}}"#, "`env`.A"),
            (r#"{"mcpServers": []}"#, "object"),
            (r#"{"tools": {}}"#, "mcpServers"),
            ("{\n\"mcpServers\": {,}}", "mcp.json:2"),
            (r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#, "a"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn servers_of_any_text_have_a_command_or_a_url(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec![
                        "{", "}", "[", "]", ",", ":", "\"", "\\", "//", "/*", "*/", "\n", "\"mcpServers\":",
                        "\"command\":\"x\"", "\"a\":", "ä",
                    ]).prop_map(str::to_owned),
                    ".{0,3}",
                ],
                0..30,
            )
        ) {
            let text = pieces.concat();
            for (name, spec) in parsed(&text).unwrap_or_default() {
                prop_assert!(spec.command.is_some() != spec.url.is_some(), "{}: {:?}", name, spec);
            }
        }
    }

    #[test]
    fn hostile_text_is_an_error() {
        for text in
            ["", "\"", "/*", "/* *", "//", "{\"a\\", "/*/", "*/", "[,]", "/**/", "\u{feff}{}"]
        {
            assert!(parsed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_are_found_in_their_usual_places() {
        let folder = tempfile::tempdir().unwrap();
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".vscode")).unwrap();
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
        write(folder.path().join(".mcp.json"), r#"{"mcpServers": {"a": {"command": "x"}}}"#);
        write(folder.path().join("mcp.json"), "broken");
        write(folder.path().join(".vscode/mcp.json"), r#"{"servers": {"b": {"command": "x"}}}"#);
        std::fs::create_dir(home.path().join(".cursor")).unwrap();
        write(
            home.path().join(".cursor/mcp.json"),
            r#"{"mcpServers": {"c": {"url": "http://h"}}}"#,
        );
        let found = discover(&candidates_with(folder.path(), Some(home.path())));
        let names: Vec<&str> = found.iter().flatten().flat_map(Servers::names).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let broken: Vec<String> =
            found.iter().filter_map(|file| Some(file.as_ref().err()?.to_string())).collect();
        assert!(matches!(&broken[..], [one] if one.contains("mcp.json")), "{broken:?}");
        let home_itself = candidates_with(home.path(), Some(home.path()));
        let found = discover(&home_itself);
        assert_eq!(found.len(), 1);
    }
}

//! Server specs in the configuration files of editors and agents.
//!
//! | file | servers |
//! | --- | --- |
//! | `mcp.json`, `.mcp.json`, `.cursor/mcp.json`, `claude_desktop_config.json` | `mcpServers` |
//! | `.vscode/mcp.json`, settings of VS Code | `servers`, `mcp.servers` |
//! | `.claude.json` of Claude Code | `mcpServers`, and `projects.*.mcpServers` |
//! | `config.toml` of Codex | `[mcp_servers.NAME]` |
//! | `settings.json` of Zed | `context_servers` |
//! | `config.yaml` of Continue | `mcpServers`, a list |
//! | `opencode.json` | `mcp` |
//!
//! JSON may have comments. Unknown keys are ignored, because these files belong to other programs. An entry is
//! read when it is asked for, so an invalid one does not affect the others, and no server is started because
//! it was found.
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

use karat_io::input::{self, Format, InputError, Limits};
use serde_json::{Map, Value};

use crate::spec::{ServerSpec, TransportKind};

/// Maximum size of a file. Claude Code keeps the history of each project next to its servers.
const MAX_BYTES: u64 = 32 << 20;

/// Files of a project, relative to its folder.
pub const IN_PROJECT: [&str; 7] = [
    ".mcp.json",
    "mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".zed/settings.json",
    "opencode.json",
];

/// Files of a user, relative to the home folder.
const AT_HOME: [&str; 8] = [
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".claude.json",
    ".codex/config.toml",
    ".config/zed/settings.json",
    ".continue/config.yaml",
    ".config/opencode/opencode.json",
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

    /// The entry of this name as it is in the file.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Value> {
        self.entries.get(name)
    }

    fn wrong(&self, name: &str, why: String) -> InputError {
        InputError::invalid(&self.path, format!("server {name:?}"), why)
    }
}

/// Reads the servers of a file.
///
/// ```
/// use karat_mcp::config;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("mcp.json");
/// std::fs::write(&path, r#"{"mcpServers": {"notes": {"command": "notes-mcp"}}}"#)?;
/// let servers = config::read(&path)?;
/// assert_eq!(servers.names().collect::<Vec<_>>(), ["notes"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be read, or is not JSON (comments and trailing commas aside), TOML or YAML with servers.
pub fn read(path: &Path) -> Result<Servers, InputError> {
    parse(path, &text_of(path)?)
}

fn text_of(path: &Path) -> Result<String, InputError> {
    let limits = Limits { bytes: MAX_BYTES, ..Limits::default() };
    input::read_text(path, &limits)
}

/// As [`read`], for text in memory.
///
/// ```
/// use std::path::Path;
///
/// use karat_mcp::config;
///
/// let text = "[mcp_servers.notes]\nurl = \"https://mcp.example.com/mcp\"\n";
/// let servers = config::parse(Path::new("config.toml"), text)?;
/// let url = servers.server("notes")?.url;
/// assert_eq!(url.as_deref(), Some("https://mcp.example.com/mcp"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Servers, InputError> {
    parse_settings(path, text)?.ok_or_else(|| without_servers(path))
}

fn without_servers(path: &Path) -> InputError {
    let message = "no servers in the file: expected `mcpServers`, `servers`, `mcp_servers`, `context_servers` or `mcp`";
    InputError::invalid(path, "the whole file", message)
}

/// The servers of a file that may have none: most of these files are settings of an editor.
fn parse_settings(path: &Path, text: &str) -> Result<Option<Servers>, InputError> {
    let document: Value = match format_of(text) {
        Format::Toml => input::parse(path, text, Format::Toml)?,
        Format::Yaml => input::parse(path, text, Format::Yaml)?,
        _ => input::parse_json_with_comments(path, text)?,
    };
    if !document.is_object() {
        return Err(without_servers(path));
    }
    let mut entries = BTreeMap::new();
    let mut found = false;
    if let Some(servers) = at(&document) {
        found = true;
        entries = named(servers).map_err(|why| InputError::invalid(path, "servers", why))?;
    }
    // Claude Code keeps the servers of each project under its folder.
    for (folder, project) in
        document.get("projects").and_then(Value::as_object).into_iter().flatten()
    {
        let Some(servers) = project.get("mcpServers") else { continue };
        found = true;
        let place = format!("projects {folder:?}");
        let servers = named(servers).map_err(|why| InputError::invalid(path, place, why))?;
        for (name, entry) in servers {
            match entries.get(&name) {
                Some(known) if *known == entry => {}
                Some(_) => _ = entries.insert(format!("{name}@{folder}"), entry),
                None => _ = entries.insert(name, entry),
            }
        }
    }
    Ok(found.then(|| Servers { path: path.to_owned(), entries }))
}

/// The format of a text, by its start: these files have many names.
fn format_of(text: &str) -> Format {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with(['{', '/']) {
        return Format::Json;
    }
    let is_name = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.\"' ".contains(c);
        !name.trim().is_empty() && name.chars().all(plain)
    };
    let mut lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some(line) if line.starts_with('[') => Format::Toml,
        Some(line) if line.split_once('=').is_some_and(|(name, _)| is_name(name)) => Format::Toml,
        _ => Format::Yaml,
    }
}

/// The servers of a document.
fn at(document: &Value) -> Option<&Value> {
    let keys = ["mcpServers", "servers", "mcp_servers", "context_servers"];
    let mcp = || {
        let mcp = document.get("mcp")?;
        // VS Code has another level there, opencode has not.
        Some(mcp.get("servers").unwrap_or(mcp))
    };
    keys.into_iter().find_map(|key| document.get(key)).or_else(mcp)
}

/// Entries by name: an object, or a list of objects with a `name`, as Continue writes it.
fn named(servers: &Value) -> Result<BTreeMap<String, Value>, String> {
    let wrong = "must be an object that maps names to servers, or a list of servers with names";
    let mut entries = BTreeMap::new();
    match servers {
        Value::Object(servers) => {
            entries.extend(servers.iter().map(|(name, entry)| (name.clone(), entry.clone())));
        }
        Value::Array(servers) if !servers.is_empty() => {
            for entry in servers {
                let name = entry.get("name").and_then(Value::as_str).ok_or(wrong)?;
                if entries.insert(name.to_owned(), entry.clone()).is_some() {
                    return Err(format!("two servers have the name {name:?}"));
                }
            }
        }
        _ => return Err(wrong.to_owned()),
    }
    Ok(entries)
}

/// The usual paths of such files: those of the project first, then those of the user. They need not
/// exist.
///
/// ```
/// use std::path::Path;
///
/// let files = karat_mcp::config::candidates(Path::new("project"));
/// assert_eq!(files[0], Path::new("project/.mcp.json"));
/// ```
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

/// Reads those of the files that exist and have servers.
///
/// ```
/// use karat_mcp::config;
///
/// let project = tempfile::tempdir()?;
/// let text = r#"{"mcpServers": {"files": {"command": "server-files"}}}"#;
/// std::fs::write(project.path().join("mcp.json"), text)?;
/// // `config::candidates` has the files of the user, too.
/// let found = config::discover(&config::IN_PROJECT.map(|name| project.path().join(name)));
/// assert_eq!(found.len(), 1);
/// for servers in found {
///     assert_eq!(servers?.names().collect::<Vec<_>>(), ["files"]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn discover(places: &[PathBuf]) -> Vec<Result<Servers, InputError>> {
    let read = |path: &PathBuf| text_of(path).and_then(|text| parse_settings(path, &text));
    let files = places.iter().filter(|path| path.is_file());
    files.filter_map(|path| read(path).transpose()).collect()
}

fn spec(entry: &Value) -> Result<ServerSpec, String> {
    let Value::Object(entry) = entry else { return Err("must be an object".to_owned()) };
    if entry.contains_key("envFile") {
        return Err("`envFile` is not read; put the variables into `env`".to_owned());
    }
    let mut spec = ServerSpec {
        command: command(entry)?,
        transport: transport(entry)?,
        env: texts(entry, "env")?,
        headers: headers(entry)?,
        cwd: text(entry, "cwd")?.map(PathBuf::from),
        ..ServerSpec::default()
    };
    spec.env.extend(texts(entry, "environment")?);
    if let Some(Value::Object(program)) = entry.get("command") {
        spec.env.extend(texts(program, "env")?);
    }
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
    for value in spec.env.values_mut().chain(spec.headers.values_mut()).chain(&mut spec.url) {
        *value = variables(value)?;
    }
    for word in spec.command.iter_mut().flatten() {
        *word = variables(word)?;
    }
    // The programs whose files these are ignore what the other kind of server would take.
    if spec.url.is_some() {
        (spec.env, spec.cwd) = (BTreeMap::new(), None);
    } else {
        spec.headers.clear();
    }
    spec.transport().map_err(|error| error.to_string())?;
    Ok(spec)
}

/// Headers, with those that Codex and Continue have elsewhere.
fn headers(entry: &Map<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let mut headers = texts(entry, "headers")?;
    headers.extend(texts(entry, "http_headers")?);
    if let Some(Value::Object(options)) = entry.get("requestOptions") {
        headers.extend(texts(options, "headers")?);
    }
    for (name, variable) in texts(entry, "env_http_headers")? {
        headers.insert(name, format!("${{{variable}}}"));
    }
    if let Some(variable) = text(entry, "bearer_token_env_var")? {
        headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}"));
    }
    Ok(headers)
}

/// The variables of other programs as those of Karat: `{env:NAME}` of opencode, `${{ secrets.NAME }}` of
/// Continue.
fn variables(value: &str) -> Result<String, String> {
    let mut done = String::new();
    let mut rest = value;
    loop {
        let next = [("{env:", "}"), ("{file:", "}"), ("${{", "}}")]
            .into_iter()
            .filter_map(|(open, close)| Some((rest.find(open)?, open, close)))
            // `${env:NAME}` is a variable of Karat already.
            .filter(|(at, open, _)| !(*open == "{env:" && rest[..*at].ends_with('$')))
            .min_by_key(|(at, _, _)| *at);
        let Some((start, open, close)) = next else { break };
        let after = &rest[start + open.len()..];
        let Some(end) = after.find(close) else { break };
        let inside = after[..end].trim();
        if open == "{file:" {
            return Err("`{file:…}` is not read; put the value into a variable".to_owned());
        }
        let name = inside.rsplit(['.', '/']).next().unwrap_or(inside);
        done.push_str(&rest[..start]);
        done.push_str(&format!("${{{name}}}"));
        rest = &after[end + close.len()..];
    }
    done.push_str(rest);
    Ok(done)
}

fn command(entry: &Map<String, Value>) -> Result<Option<Vec<String>>, String> {
    let mut words = match entry.get("command") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(program)) => vec![program.clone()],
        Some(Value::Array(words)) => list(words, "command")?,
        // Older settings of Zed.
        Some(Value::Object(program)) => {
            let path = text(program, "path")?.ok_or("`command` must have a `path`")?;
            let mut words = vec![path];
            if let Some(Value::Array(arguments)) = program.get("args") {
                words.extend(list(arguments, "args")?);
            }
            return Ok(Some(words));
        }
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
        "stdio" | "local" => Ok(Some(TransportKind::Stdio)),
        // Either of those at a URL.
        "remote" => Ok(None),
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
    fn keys_that_the_editor_ignores_are_ignored() {
        let servers = parsed(
            r#"{"mcpServers": {
                "local": {"command": "x", "headers": {"K": "v"}},
                "far": {"url": "https://h/mcp", "env": {"K": "v"}, "cwd": "/srv"}}}"#,
        )
        .unwrap();
        assert!(servers["local"].headers.is_empty());
        assert!(servers["far"].env.is_empty() && servers["far"].cwd.is_none());
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
    fn the_file_of_claude_code_has_servers_of_projects() {
        let servers = parsed(
            r#"{"numStartups": 3, "mcpServers": {"shared": {"command": "x"}},
                "projects": {
                    "/home/me/a": {"allowedTools": [], "mcpServers": {"files": {"type": "stdio", "command": "f",
                        "args": ["1"], "env": {}}}},
                    "/home/me/b": {"mcpServers": {"files": {"command": "f", "args": ["2"]},
                        "shared": {"command": "x"}}},
                    "/home/me/c": {"history": []}}}"#,
        )
        .unwrap();
        let names: Vec<&str> = servers.keys().map(String::as_str).collect();
        assert_eq!(names, ["files", "files@/home/me/b", "shared"]);
        assert_eq!(servers["files@/home/me/b"].command.as_deref().unwrap(), ["f", "2"]);
        let only =
            parsed(r#"{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}}}"#).unwrap();
        assert_eq!(only.len(), 1);
    }

    #[test]
    fn the_toml_of_codex_is_read() {
        let servers = parsed(
            "# Codex\nmodel = \"x\"\n\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"docs\"]\n\
             startup_timeout_sec = 20\n[mcp_servers.docs.env]\nKEY = \"value\"\n\
             [mcp_servers.figma]\nurl = \"https://h/mcp\"\nbearer_token_env_var = \"FIGMA\"\n\
             http_headers = { \"X-Region\" = \"eu\" }\nenv_http_headers = { \"X-Key\" = \"KEY\" }\n",
        )
        .unwrap();
        assert_eq!(servers["docs"].command.as_deref().unwrap(), ["npx", "-y", "docs"]);
        assert_eq!(servers["docs"].env["KEY"], "value");
        let headers = &servers["figma"].headers;
        assert_eq!(headers["Authorization"], "Bearer ${FIGMA}");
        assert_eq!((headers["X-Region"].as_str(), headers["X-Key"].as_str()), ("eu", "${KEY}"));
        let first = parsed("[mcp_servers.a]\ncommand = \"x\"\n").unwrap();
        assert_eq!(first["a"].command.as_deref().unwrap(), ["x"]);
    }

    #[test]
    fn the_settings_of_zed_are_read() {
        let servers = parsed(
            "// Zed settings\n{\n  \"theme\": \"One Dark\", // dark\n  \"context_servers\": {\n\
             \"new\": {\"source\": \"custom\", \"command\": \"x\", \"args\": [\"a\"], \"env\": {}},\n\
             \"old\": {\"command\": {\"path\": \"y\", \"args\": [\"b\"], \"env\": {\"K\": \"v\"}}, \"settings\": {}},\n\
             \"remote\": {\"url\": \"https://h/mcp\", \"headers\": {\"A\": \"b\"}},\n  },\n}\n",
        )
        .unwrap();
        assert_eq!(servers["new"].command.as_deref().unwrap(), ["x", "a"]);
        assert_eq!(servers["old"].command.as_deref().unwrap(), ["y", "b"]);
        assert_eq!(servers["old"].env["K"], "v");
        assert_eq!(servers["remote"].url.as_deref(), Some("https://h/mcp"));
    }

    #[test]
    fn the_yaml_of_continue_is_read() {
        let servers = parsed(
            "name: Local Assistant\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: SQLite\n    command: npx\n\
             \x20   args:\n      - -y\n      - mcp-sqlite\n    env:\n      KEY: ${{ secrets.DB_KEY }}\n\
             \x20 - name: Remote\n    type: streamable-http\n    url: https://h/mcp\n    requestOptions:\n\
             \x20     headers:\n        X-Key: ${{ secrets.org/TOKEN }}\n",
        );
        let servers = servers.unwrap();
        assert_eq!(servers["SQLite"].command.as_deref().unwrap(), ["npx", "-y", "mcp-sqlite"]);
        assert_eq!(servers["SQLite"].env["KEY"], "${DB_KEY}");
        assert_eq!(servers["Remote"].transport, Some(TransportKind::Http));
        assert_eq!(servers["Remote"].headers["X-Key"], "${TOKEN}");
        assert!(parsed("mcpServers:\n  - command: x\n").unwrap_err().contains("names"));
        assert!(
            parsed("mcpServers:\n  - name: a\n  - name: a\n").unwrap_err().contains("two servers")
        );
        assert!(parsed("name: x\n").unwrap_err().contains("mcpServers"));
    }

    #[test]
    fn the_file_of_opencode_is_read() {
        let servers = parsed(
            r#"{"$schema": "https://opencode.ai/config.json", "mcp": {
                "local": {"type": "local", "command": ["bun", "x", "s"], "environment": {"K": "{env:KEY}"}},
                "far": {"type": "remote", "url": "https://h/mcp", "headers": {"Authorization": "Bearer {env:T}"}},
                "file": {"type": "remote", "url": "https://h", "headers": {"K": "{file:~/.key}"}}}}"#,
        );
        assert!(servers.unwrap_err().contains("{file:"));
        let servers = parsed(
            r#"{"mcp": {
                "local": {"type": "local", "command": ["bun", "x", "s"], "environment": {"K": "{env:KEY}"}},
                "far": {"type": "remote", "url": "https://h/mcp", "headers": {"Authorization": "Bearer {env:T}"}}}}"#,
        )
        .unwrap();
        assert_eq!(servers["local"].command.as_deref().unwrap(), ["bun", "x", "s"]);
        assert_eq!(servers["local"].env["K"], "${KEY}");
        assert_eq!(servers["far"].headers["Authorization"], "Bearer ${T}");
        let code = parsed(r#"{"mcp": {"servers": {"a": {"command": "x", "args": ["${env:V}"]}}}}"#)
            .unwrap();
        assert_eq!(code["a"].command.as_deref().unwrap(), ["x", "${env:V}"]);
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
            (
                r#"{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}"#,
                "both a command and a url",
            ),
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
            match parsed(&text) {
                Ok(servers) => for (name, spec) in servers {
                    prop_assert!(spec.command.is_some() != spec.url.is_some(), "{}: {:?}", name, spec);
                },
                Err(message) => prop_assert!(message.starts_with("mcp.json"), "{message}"),
            }
        }

        #[test]
        fn a_server_has_a_command_or_a_url_and_not_both(
            keys in prop::collection::btree_map(
                "[a-zä]{1,3}",
                prop::sample::subsequence(vec!["\"command\": \"x\"", "\"url\": \"https://h/\""], 0..3),
                0..4,
            ),
            gap in prop::sample::select(vec!["", "\n", "/* \" */", "// {\n"]),
        ) {
            let entries: Vec<String> = keys
                .iter()
                .map(|(name, keys)| format!("{gap}\"{name}\":{gap}{{{}{gap}}}", keys.join(&format!("{gap},"))))
                .collect();
            let text = format!("{{\"mcpServers\": {{{}{gap}}}}}", entries.join(","));
            match parsed(&text) {
                Ok(servers) => {
                    let found: BTreeMap<_, _> = servers
                        .iter()
                        .map(|(name, spec)| (name.clone(), (spec.command.is_some(), spec.url.is_some())))
                        .collect();
                    let given: BTreeMap<_, _> = keys
                        .iter()
                        .map(|(name, keys)| (name.clone(), (keys[0].contains("command"), keys[0].contains("url"))))
                        .collect();
                    prop_assert_eq!(found, given, "{}", text);
                }
                Err(message) => {
                    prop_assert!(keys.values().any(|keys| keys.len() != 1), "{text}: {message}");
                }
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
        std::fs::create_dir(home.path().join(".codex")).unwrap();
        write(home.path().join(".codex/config.toml"), "[mcp_servers.d]\ncommand = \"x\"\n");
        // Settings without servers are not a mistake.
        write(folder.path().join("opencode.json"), r#"{"theme": "dark"}"#);
        let found = discover(&candidates_with(folder.path(), Some(home.path())));
        let names: Vec<&str> = found.iter().flatten().flat_map(Servers::names).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        let broken: Vec<String> =
            found.iter().filter_map(|file| Some(file.as_ref().err()?.to_string())).collect();
        assert!(matches!(&broken[..], [one] if one.contains("mcp.json")), "{broken:?}");
        let home_itself = candidates_with(home.path(), Some(home.path()));
        let found = discover(&home_itself);
        assert_eq!(found.len(), 2);
    }
}

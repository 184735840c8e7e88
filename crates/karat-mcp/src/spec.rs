//! Server specs: the way to reach a server, as written in a project file or an `mcp.json`.
//!
//! A spec can be shown ([`ServerSpec::describe`], `Debug`) without leaking a secret, and its variables
//! ([`karat_io::interpolate`]) are replaced only when the server is started.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use karat_io::interpolate::{self, Interpolated, Variables};
use karat_io::redact::{HIDDEN, Redactor};
use karat_io::secrets;
use serde::{Deserialize, Serialize};

use crate::auth::AuthSpec;
use crate::error::StartError;
use crate::isolate::{Engine, Isolation};
use crate::policy::{Policies, Roots};
use crate::revision::Revision;

/// The transport of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportKind {
    /// Lines on stdin and stdout of a child process.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
}

/// The way to reach a server. Exactly one of `command` and `url` is set.
///
/// ```
/// use karat_mcp::ServerSpec;
///
/// let command = ["server", "--api-key", "hunter2hunter2"].map(str::to_owned).to_vec();
/// assert_eq!(ServerSpec::from_command(command).describe(), "server --api-key [redacted]");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// Program and arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The transport; stdio for a command and streamable HTTP for a URL if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,
    /// Variables of the program, in addition to those of this process.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Headers sent with each HTTP request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A file with certificates, in PEM, of authorities that are trusted besides those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The login at a server with a URL that asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthSpec>,
    /// The working folder of the program, relative to the project folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The only allowed revision; negotiated if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Revision>,
    /// The isolation of the program; none if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolate: Option<Isolation>,
    /// Answers to requests of the server; refused if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies: Option<Policies>,
}

/// A spec with its variables replaced.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) target: Target,
    pub(crate) redactor: Redactor,
    pub(crate) policies: Option<Policies>,
}

/// The target of messages.
pub(crate) enum Target {
    Stdio {
        command: Vec<String>,
        env: BTreeMap<String, String>,
        folder: Option<PathBuf>,
        isolate: Option<Isolation>,
    },
    Http(Address),
    Sse(Address),
}

/// A server at a URL.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) ca_file: Option<PathBuf>,
    /// With its variables replaced.
    pub(crate) auth: Option<AuthSpec>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Stdio { .. } => "Stdio",
            Target::Http(_) => "Http",
            Target::Sse(_) => "Sse",
        })
    }
}

impl ServerSpec {
    /// A server that is a program.
    pub fn from_command(command: Vec<String>) -> Self {
        ServerSpec { command: Some(command), ..ServerSpec::default() }
    }

    /// A server at a URL.
    pub fn from_url(url: impl Into<String>) -> Self {
        ServerSpec { url: Some(url.into()), ..ServerSpec::default() }
    }

    /// The transport.
    ///
    /// # Errors
    /// If the spec is invalid.
    pub fn transport(&self) -> Result<TransportKind, StartError> {
        let wrong = |why: &str| Err(StartError::Spec { why: why.to_owned() });
        if self.command.is_some() && self.url.is_some() {
            return wrong("a server cannot have both a command and a url");
        }
        if let Some(isolation) = &self.isolate {
            isolation.check()?;
            if self.url.is_some() && isolation.engine != Engine::None {
                return wrong(
                    "a server at a url cannot be isolated, because it is already running; give its \
                     command, or omit --isolate",
                );
            }
        }
        if self.command.is_some() && self.ca_file.is_some() {
            return wrong("ca_file (--ca-file) is for a server at a url, not for a command");
        }
        if self.command.is_some() && !self.headers.is_empty() {
            return wrong(
                "headers (--header) are for a server at a url; a program takes its secrets from env (-e)",
            );
        }
        if self.url.is_some() && !self.env.is_empty() {
            return wrong(
                "env (-e) is for a server with a command; a server at a url runs already, and takes \
                 headers (--header)",
            );
        }
        if self.url.is_some() && self.cwd.is_some() {
            return wrong(
                "cwd (--cwd) is for a server with a command; a server at a url runs already",
            );
        }
        if let Some(auth) = &self.auth {
            if self.command.is_some() {
                return wrong(
                    "auth (--auth) is for a server at a url; a program takes its secrets from env (-e)",
                );
            }
            auth.check()?;
        }
        match (&self.command, &self.url, self.transport) {
            (None, None, _) => wrong("a server needs a command or a url"),
            (Some(command), _, _) if command.first().is_none_or(String::is_empty) => {
                wrong("the command of the server is empty")
            }
            (Some(_), _, None | Some(TransportKind::Stdio)) => Ok(TransportKind::Stdio),
            (Some(_), _, Some(_)) => wrong("a server with a command uses stdio"),
            (None, Some(_), Some(TransportKind::Stdio)) => {
                wrong("a server with a url uses http or sse, not stdio")
            }
            (None, Some(_), kind) => Ok(kind.unwrap_or(TransportKind::Http)),
        }
    }

    /// The spec in one line that is safe to print: variables are not replaced, and secrets are hidden.
    pub fn describe(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => describe_command(command),
            (None, Some(url)) => describe_url(url),
            (None, None) => "a server without command and url".to_owned(),
        }
    }

    /// A description of a literal secret in the command or the URL, without the secret. Variables are not
    /// literal secrets, and neither is an argument that merely looks like a token.
    pub fn written_secret(&self) -> Option<String> {
        match (&self.command, &self.url) {
            (Some(command), _) => secret_in_command(command),
            (None, Some(url)) => secret_in_url(url).or_else(|| self.secret_in_auth()),
            (None, None) => None,
        }
    }

    fn secret_in_auth(&self) -> Option<String> {
        let auth = self.auth.as_ref()?;
        let secrets = [
            ("client_secret", &auth.client_secret),
            ("access_token", &auth.access_token),
            ("refresh_token", &auth.refresh_token),
        ];
        let written = secrets.iter().find(|(_, value)| value.as_deref().is_some_and(is_literal));
        written.map(|(name, _)| format!("{name} of auth"))
    }

    /// The secrets of the spec, for texts about a server that is not started: those that a session would
    /// hide, except the tokens of a login. None if the spec cannot be used here.
    pub fn redactor(&self, base: Option<&Path>) -> Option<Redactor> {
        self.resolve(base).ok().map(|resolved| resolved.redactor)
    }

    /// Replaces the variables. Relative paths start at `base`.
    pub(crate) fn resolve(&self, base: Option<&Path>) -> Result<Resolved, StartError> {
        self.resolve_with(base, &interpolate::environment)
    }

    pub(crate) fn resolve_with(
        &self,
        base: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Resolved, StartError> {
        let kind = self.transport()?;
        let here = std::env::current_dir().unwrap_or_default();
        let mut resolver = Resolver {
            variables: Variables::new(variable, base.unwrap_or(&here)),
            redactor: Redactor::default(),
        };
        let target = match (kind, &self.command, &self.url) {
            (TransportKind::Stdio, Some(command), _) => Target::Stdio {
                command: resolver.command(command)?,
                env: resolver.values(&self.env, Named::Variables)?,
                folder: resolver.folder(self.cwd.as_deref(), base)?,
                isolate: resolver.isolation(self.isolate.as_ref())?,
            },
            (kind, _, url) => {
                let url = resolver.url(url.as_deref().unwrap_or_default())?;
                let headers = resolver.values(&self.headers, Named::Headers)?;
                let ca_file = self.ca_file.as_ref().map(|file| resolver.absolute(file));
                let auth = self.auth.as_ref().map(|auth| resolver.auth(auth)).transpose()?;
                let address = Address { url, headers, ca_file: ca_file.transpose()?, auth };
                match kind {
                    TransportKind::Sse => Target::Sse(address),
                    _ => Target::Http(address),
                }
            }
        };
        let policies = resolver.policies(self.policies.as_ref())?;
        Ok(Resolved { target, redactor: resolver.redactor, policies })
    }
}

/// The kind of a set of values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Variables,
    Headers,
}

struct Resolver<'a> {
    variables: Variables<'a>,
    redactor: Redactor,
}

impl Resolver<'_> {
    fn interpolate(&self, text: &str) -> Result<Interpolated, StartError> {
        let done = self.variables.interpolate(text);
        done.map_err(|error| StartError::Spec { why: error.to_string() })
    }

    /// Replaces variables. Their values are secrets unless they describe the machine.
    fn text(&mut self, text: &str) -> Result<String, StartError> {
        let done = self.interpolate(text)?;
        done.used.iter().for_each(|used| self.redactor.add_used(used));
        Ok(done.text)
    }

    /// As [`Resolver::text`] for a path of this machine, which is not a secret because it is in a
    /// variable.
    fn path(&mut self, path: &Path) -> Result<PathBuf, StartError> {
        let done = self.interpolate(&path.to_string_lossy())?;
        for used in &done.used {
            if secrets::is_secret(&used.name, &used.value) {
                self.redactor.add(&used.value);
            }
        }
        Ok(PathBuf::from(done.text))
    }

    fn command(&mut self, command: &[String]) -> Result<Vec<String>, StartError> {
        let mut words: Vec<String> = Vec::with_capacity(command.len());
        for word in command {
            let resolved = self.text(word)?;
            for part in secrets::in_argument(&resolved, words.last().map(String::as_str)) {
                self.redactor.add(&resolved[part]);
            }
            words.push(resolved);
        }
        Ok(words)
    }

    fn values(
        &mut self,
        values: &BTreeMap<String, String>,
        kind: Named,
    ) -> Result<BTreeMap<String, String>, StartError> {
        let mut resolved = BTreeMap::new();
        for (name, value) in values {
            let value = self.text(value)?;
            if kind == Named::Headers && secrets::is_secret_header(name)
                || secrets::is_secret(name, &value)
            {
                self.redactor.add(&value);
            }
            for part in secrets::in_urls(&value) {
                self.redactor.add(&value[part]);
            }
            resolved.insert(name.clone(), value);
        }
        Ok(resolved)
    }

    fn url(&mut self, written: &str) -> Result<String, StartError> {
        let url = self.text(written)?;
        // Without the values of its variables, which are secrets.
        let shown = describe_url(written);
        let wrong = |why: String| StartError::Spec { why };
        let parsed = reqwest::Url::parse(&url)
            .map_err(|error| wrong(format!("the url {shown} is invalid: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong(format!("the url {shown} is not http or https")));
        }
        for part in secrets::in_urls(&url) {
            self.redactor.add(&url[part]);
        }
        if let Some(password) = parsed.password() {
            self.redactor.add(password);
        }
        for (name, value) in parsed.query_pairs() {
            if secrets::is_secret(&name, &value) {
                self.redactor.add(&value);
            }
        }
        Ok(url)
    }

    fn auth(&mut self, written: &AuthSpec) -> Result<AuthSpec, StartError> {
        let mut auth = written.clone();
        let secrets = [&mut auth.client_secret, &mut auth.access_token, &mut auth.refresh_token];
        for value in secrets.into_iter().flatten() {
            *value = self.text(value)?;
            self.redactor.add(value);
        }
        let plain = [&mut auth.client_id, &mut auth.client_metadata, &mut auth.issuer];
        for value in plain.into_iter().flatten() {
            // Not a secret because it is in a variable.
            *value = self.interpolate(value)?.text;
        }
        for scope in &mut auth.scopes {
            *scope = self.interpolate(scope)?.text;
        }
        if let Some(key) = &mut auth.private_key {
            *key = self.absolute(key)?;
        }
        Ok(auth)
    }

    fn isolation(&mut self, written: Option<&Isolation>) -> Result<Option<Isolation>, StartError> {
        let Some(written) = written else { return Ok(None) };
        let mut isolation = written.clone();
        for path in isolation.read.iter_mut().chain(&mut isolation.write) {
            *path = self.absolute(path)?;
        }
        Ok(Some(isolation))
    }

    fn folder(
        &mut self,
        cwd: Option<&Path>,
        base: Option<&Path>,
    ) -> Result<Option<PathBuf>, StartError> {
        let Some(cwd) = cwd else { return Ok(base.map(Path::to_owned)) };
        let cwd = self.path(cwd)?;
        Ok(Some(base.map_or(cwd.clone(), |base| base.join(cwd))))
    }

    /// An absolute path with its variables replaced.
    fn absolute(&mut self, path: &Path) -> Result<PathBuf, StartError> {
        let whole = self.variables.folder().join(self.path(path)?);
        Ok(std::path::absolute(&whole).unwrap_or(whole))
    }

    /// The policies with their roots as URLs.
    fn policies(&mut self, written: Option<&Policies>) -> Result<Option<Policies>, StartError> {
        let Some(written) = written else { return Ok(None) };
        let mut policies = written.clone();
        if let Roots::List(roots) = &mut policies.roots {
            for root in roots {
                if !root.contains("://") {
                    let folder = self.absolute(Path::new(root.as_str()))?;
                    let address = reqwest::Url::from_file_path(&folder).map_err(|()| {
                        let why = format!("roots: {} is not a path", folder.display());
                        StartError::Spec { why }
                    })?;
                    *root = address.into();
                }
            }
        }
        Ok(Some(policies))
    }
}

fn describe_command(command: &[String]) -> String {
    let mut shown: Vec<String> = Vec::with_capacity(command.len());
    let mut before: Option<&str> = None;
    for word in command {
        shown.push(describe_word(word, before));
        before = Some(word);
    }
    karat_io::text::printable(&shown.join(" ")).into_owned()
}

fn describe_word(word: &str, before: Option<&str>) -> String {
    let mut shown = word.to_owned();
    for part in secrets::in_argument(word, before).into_iter().rev() {
        if is_literal(&word[part.clone()]) {
            shown.replace_range(part, HIDDEN);
        }
    }
    shown
}

/// True if a secret is literal. A variable is not, unless it has a default.
fn is_literal(secret: &str) -> bool {
    !secret.contains("${") || secret.contains(":-")
}

fn secret_in_command(command: &[String]) -> Option<String> {
    let mut before: Option<&str> = None;
    for word in command {
        if secrets::named_in_argument(word, before).into_iter().any(|part| is_literal(&word[part]))
        {
            let shown = describe_word(word, before);
            let flag = before.filter(|_| shown == HIDDEN).map(|flag| format!("{flag} "));
            return Some(format!("{}{shown}", flag.unwrap_or_default()));
        }
        before = Some(word);
    }
    None
}

fn secret_in_url(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.rsplit_once('@').is_some_and(|(user, _)| is_literal(user)) {
        return Some("the user name, before the @".to_owned());
    }
    let part = secrets::in_urls(url).into_iter().find(|part| is_literal(&url[part.clone()]))?;
    let name = url[..part.start].trim_end_matches('=').rsplit(['?', '&']).next();
    match url[..part.start].contains('?') {
        true => Some(format!("the value of {}", name.unwrap_or_default())),
        false => Some("the password".to_owned()),
    }
}

/// A URL without its password and the values of its query.
fn describe_url(url: &str) -> String {
    let (rest, query) = match url.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (url, None),
    };
    let mut shown = match rest.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').map_or((rest, None), |(h, p)| (h, Some(p)));
            let host = match host.rsplit_once('@') {
                Some((_, host)) => format!("{HIDDEN}@{host}"),
                None => host.to_owned(),
            };
            let path = path.map(|path| format!("/{path}")).unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => rest.to_owned(),
    };
    if let Some(query) = query {
        let names: Vec<&str> =
            query.split('&').map(|pair| pair.split('=').next().unwrap_or_default()).collect();
        shown.push('?');
        shown.push_str(&names.join("&"));
    }
    karat_io::text::printable(&shown).into_owned()
}

impl fmt::Debug for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |values: &BTreeMap<String, String>| -> Vec<String> { values.keys().cloned().collect() };
        f.debug_struct("ServerSpec")
            .field("server", &self.describe())
            .field("transport", &self.transport)
            .field("env", &names(&self.env))
            .field("headers", &names(&self.headers))
            .field("cwd", &self.cwd)
            .field("protocol", &self.protocol)
            .field("ca_file", &self.ca_file)
            .field("auth", &self.auth)
            .field("isolate", &self.isolate)
            .field("policies", &self.policies)
            .finish()
    }
}

impl fmt::Display for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn a_spec_has_either_a_command_or_a_url() {
        let both = ServerSpec {
            url: Some("http://x".into()),
            ..ServerSpec::from_command(strings(&["a"]))
        };
        assert!(both.transport().is_err());
        assert!(ServerSpec::default().transport().is_err());
        assert!(ServerSpec::from_command(vec![]).transport().is_err());
        assert_eq!(ServerSpec::from_url("http://x").transport(), Ok(TransportKind::Http));
        let sse =
            ServerSpec { transport: Some(TransportKind::Sse), ..ServerSpec::from_url("http://x") };
        assert_eq!(sse.transport(), Ok(TransportKind::Sse));
        let wrong = ServerSpec {
            transport: Some(TransportKind::Stdio),
            ..ServerSpec::from_url("http://x")
        };
        assert!(wrong.transport().is_err());
        assert!(ServerSpec::from_url("ftp://x").resolve(None).is_err());
    }

    #[test]
    fn keys_of_the_other_kind_of_server_are_refused() {
        let command = || ServerSpec::from_command(strings(&["a"]));
        let url = || ServerSpec::from_url("http://x");
        let pair = || BTreeMap::from([("K".to_owned(), "v".to_owned())]);
        for (spec, key) in [
            (ServerSpec { headers: pair(), ..command() }, "headers (--header) are for"),
            (ServerSpec { env: pair(), ..url() }, "env (-e) is for"),
            (ServerSpec { cwd: Some("x".into()), ..url() }, "cwd (--cwd) is for"),
        ] {
            let error = spec.transport().unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
        for spec in [
            ServerSpec { env: pair(), cwd: Some("x".into()), ..command() },
            ServerSpec { headers: pair(), ..url() },
        ] {
            assert!(spec.transport().is_ok());
        }
    }

    #[test]
    fn a_spec_is_shown_without_secrets() {
        let mut spec = ServerSpec::from_command(strings(&[
            "server",
            "--api-key",
            "hunter2hunter2",
            "--token=abcdef",
            "--root",
            "/data",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "${SECRET}",
        ]));
        spec.env.insert("GITHUB_TOKEN".into(), "envsecret".into());
        spec.headers.insert("Authorization".into(), "Bearer headersecret".into());
        for shown in [spec.describe(), format!("{spec:?}"), spec.to_string()] {
            for secret in ["hunter2", "abcdef", "ghp_", "envsecret", "headersecret"] {
                assert!(!shown.contains(secret), "{shown}");
            }
            assert!(shown.contains("/data") && shown.contains("${SECRET}"), "{shown}");
        }
        let url = ServerSpec::from_url("https://me:pw123456@host/mcp?api_key=abc&x=1");
        assert_eq!(url.describe(), "https://[redacted]@host/mcp?api_key&x");
    }

    #[test]
    fn secrets_in_the_arguments_of_a_command_are_not_shown() {
        let spec = ServerSpec::from_command(strings(&[
            "python3",
            "s.py",
            "--header",
            "Authorization: Bearer abc123supersecret",
            "postgresql://me:pgpassw0rd@127.0.0.1/db",
            "--token",
            "${T:-fallback}",
            "--key=${K}",
        ]));
        assert_eq!(
            spec.describe(),
            "python3 s.py --header Authorization: [redacted] postgresql://me:[redacted]@127.0.0.1/db \
             --token [redacted] --key=${K}"
        );
        let variable = |name: &str| (name == "K").then(|| "of-the-environment".to_owned());
        let redactor = spec.resolve_with(None, &variable).unwrap().redactor;
        let shown = redactor.hide("abc123supersecret pgpassw0rd fallback of-the-environment");
        assert_eq!(shown, "[redacted] [redacted] [redacted] [redacted]");
    }

    #[test]
    fn values_of_variables_are_secret_unless_they_describe_the_machine() {
        let mut spec = ServerSpec::from_command(strings(&["a", "${HOME}/x"]));
        spec.env.insert("DB".into(), "${DBCONN}".into());
        spec.env.insert("MODE".into(), "${MODE:-quick-and-dirty}".into());
        spec.env.insert("AUTH_ENABLED".into(), "true".into());
        spec.env.insert("MAX_TOKENS".into(), "4096".into());
        spec.cwd = Some("${PROJECTS}".into());
        let variable = |name: &str| match name {
            "DBCONN" => Some("pg://u:hunter22@h/db".to_owned()),
            "HOME" => Some("/home/me".to_owned()),
            "PROJECTS" => Some("/no/such/projects".to_owned()),
            _ => None,
        };
        let redactor = spec.resolve_with(None, &variable).unwrap().redactor;
        let hidden = redactor.hide("pg://u:hunter22@h/db, hunter22");
        assert_eq!(hidden, "[redacted], [redacted]");
        let plain = "/home/me/x /no/such/projects quick-and-dirty true 4096";
        assert_eq!(redactor.hide(plain), plain);
    }

    #[test]
    fn harmless_headers_are_not_secret() {
        let mut spec = ServerSpec::from_url("http://host/mcp");
        for (name, value) in
            [("X-Debug", "true"), ("Accept", "application/json"), ("X-Team", "hush-hush")]
        {
            spec.headers.insert(name.into(), value.into());
        }
        let redactor = spec.resolve_with(None, &|_| None).unwrap().redactor;
        assert_eq!(
            redactor.hide("true application/json hush-hush"),
            "true application/json [redacted]"
        );
    }

    #[test]
    fn roots_are_relative_to_the_project() {
        let roots = Roots::List(strings(&["data dir", "/abs", "file:///as/it/is", "${D}/x"]));
        let policies = Some(Policies { roots, ..Policies::default() });
        let spec = ServerSpec { policies, ..ServerSpec::from_command(strings(&["a"])) };
        let variable = |_: &str| Some("/d".to_owned());
        let resolved = spec.resolve_with(Some(Path::new("/p")), &variable).unwrap();
        let expected = ["file:///p/data%20dir", "file:///abs", "file:///as/it/is", "file:///d/x"];
        assert_eq!(resolved.policies.unwrap().roots, Roots::List(strings(&expected)));
    }

    #[test]
    fn resolving_a_spec_collects_its_secrets() {
        let mut spec = ServerSpec::from_url("http://host/mcp?api_key=${K}");
        spec.headers.insert("Authorization".into(), "Bearer ${T}".into());
        let variable = |name: &str| Some(format!("value-of-{name}"));
        let resolved = spec.resolve_with(None, &variable).unwrap();
        assert_eq!(resolved.redactor.hide("value-of-K value-of-T"), "[redacted] [redacted]");
        let Target::Http(Address { url, headers, .. }) = resolved.target else {
            panic!("not http")
        };
        assert_eq!(url, "http://host/mcp?api_key=value-of-K");
        assert_eq!(headers["Authorization"], "Bearer value-of-T");
    }

    #[test]
    fn the_working_folder_is_relative_to_the_project() {
        let spec =
            ServerSpec { cwd: Some("sub".into()), ..ServerSpec::from_command(strings(&["a"])) };
        let Target::Stdio { folder, .. } = spec.resolve(Some(Path::new("/p"))).unwrap().target
        else {
            panic!("not stdio")
        };
        assert_eq!(folder, Some(PathBuf::from("/p/sub")));
    }

    #[test]
    fn only_a_server_with_a_command_can_be_isolated() {
        let isolate = Some(Isolation::by(Engine::Bwrap));
        let url = ServerSpec { isolate: isolate.clone(), ..ServerSpec::from_url("http://x") };
        assert!(matches!(url.transport(), Err(StartError::Spec { .. })));
        let plain = Some(Isolation::by(Engine::None));
        let url = ServerSpec { isolate: plain, ..ServerSpec::from_url("http://x") };
        assert_eq!(url.transport(), Ok(TransportKind::Http));
        let command = ServerSpec { isolate, ..ServerSpec::from_command(strings(&["a"])) };
        assert_eq!(command.transport(), Ok(TransportKind::Stdio));
    }

    #[test]
    fn a_spec_keeps_its_keys_when_written() {
        let spec: ServerSpec =
            serde_json::from_str(r#"{"command":["a"],"protocol":"2025-06-18"}"#).unwrap();
        assert_eq!(spec.protocol, Some(Revision::V2025_06_18));
        assert!(serde_json::from_str::<ServerSpec>(r#"{"comand":["a"]}"#).is_err());
        let text = r#"{"command":["a"],"policies":{"elicitation":"decline","roots":["data"]}}"#;
        let spec: ServerSpec = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&spec).unwrap(), text);
    }
}

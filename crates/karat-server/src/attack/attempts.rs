//! Plans an attack on one tool: the parameters it goes through, the arguments it sends, and the proofs
//! that it worked.

use std::path::{Path, PathBuf};

use karat_mcp::Definition;
use serde_json::{Map, Value, json};

use super::attacks::Technique;
use super::canary_site::{CanarySite, RootPlants};
use super::languages::{self, Language};
use super::parameters::{self, Parameter};
use crate::fuzz::generate::plainest;
use crate::probe::SECRET_NAME;

/// A proof that an attack worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// This file exists.
    Mark(PathBuf),
    /// The product of the two numbers is in the answer.
    Product,
    /// A token is in the answer: its description, and the token.
    Token(&'static str, String),
    /// This path of the listener was called.
    Called(String),
    /// The listener was called for a path that the tool chose.
    Visited,
    /// A file outside the root was changed or removed, or a new one is there.
    Changed,
    /// The answer is too large, or there is none, or the server ended.
    Overrun,
    /// There is no answer, or the server ended.
    Ended,
}

impl Proof {
    /// Returns whether only its own attempt can have caused it, so that it counts after the answer too.
    pub(super) fn is_side_effect(&self) -> bool {
        matches!(self, Proof::Mark(_) | Proof::Called(_))
    }
}

/// One call of an attack.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) about: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) proofs: Vec<Proof>,
}

/// The attempts through one parameter.
pub(super) struct Way {
    /// None if the attack needs no parameter.
    pub(super) parameter: Option<Parameter>,
    pub(super) attempts: Vec<Attempt>,
    /// The reason for which attempts without effect prove nothing; none if it can be held.
    pub(super) doubt: Option<&'static str>,
    /// True if the first attempt names a file outside that exists, and the last one that does not.
    pub(super) compares: bool,
    /// True if the parameter is run.
    pub(super) is_run: bool,
}

/// The calls of an attack on one tool.
pub(super) enum Plan {
    /// The attempts for each parameter that could carry it.
    Through(Vec<Way>),
    /// Many plain calls at once.
    Flood(Map<String, Value>),
    /// It does not apply, with the reason.
    Not(&'static str),
}

/// The length of texts that are too long.
const HUGE: usize = 4 << 20;
/// The depth of arguments that are too deep: JSON readers still read them.
const DEEP: usize = 100;
/// Maxima up to this are harmless.
const HARMLESS: i64 = 1_000;
/// The numbers of columns that a second query is tried with.
const COLUMNS: usize = 10;
/// The number of parameters of one tool that an attack goes through only because of their type.
const UNNAMED: usize = 8;

/// The reason for which an attack through a parameter that only has a suitable type proves nothing.
const NOT_USED: &str = "tried, but nothing says that a parameter is used for this";
/// Why the other parameters of a tool that runs commands cannot hold an attack.
pub(super) const RUNS_ANYTHING: &str = "tried, but the tool runs what another parameter says";

/// The reason for an attack through a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Its name, format or description.
    Likely,
    /// Its type alone: only the first attempts are made.
    Possible,
}

/// Plans attacks on a tool.
pub(super) struct Planner<'a> {
    pub(super) tool: &'a Definition,
    pub(super) site: &'a CanarySite,
    /// Values that are known to work.
    pub(super) known: &'a Map<String, Value>,
    pub(super) access: Access,
}

/// The canaries that the server can reach.
#[derive(Clone, Copy)]
pub(super) struct Access {
    /// True if it runs on this machine, where the canaries are.
    pub(super) is_local: bool,
    /// True if it can call the listener; a sandbox without network cannot.
    pub(super) has_loopback: bool,
    /// True if a secret is in its environment.
    pub(super) has_secret: bool,
}

impl Planner<'_> {
    pub(super) fn plan(&self, technique: Technique) -> Plan {
        match technique {
            Technique::Flood => Plan::Flood(plainest(self.tool.input_schema(), self.known)),
            Technique::EnvPlain | Technique::EnvByName if !self.access.has_secret => {
                Plan::Not(ENVIRONMENT)
            }
            Technique::EnvPlain => {
                let attempts = vec![self.plain()];
                let way =
                    Way { parameter: None, attempts, doubt: None, compares: false, is_run: false };
                Plan::Through(vec![way])
            }
            Technique::HugeInput
            | Technique::DeepInput
            | Technique::Oversized
            | Technique::Pattern => self.through(technique),
            _ if !self.access.is_local => Plan::Not("the server is not on this machine"),
            Technique::Loopback | Technique::Metadata | Technique::Redirect
                if !self.access.has_loopback =>
            {
                Plan::Not("the sandbox blocks the listener on 127.0.0.1")
            }
            Technique::Link | Technique::Sibling if self.site.in_root().is_none() => {
                Plan::Not("no root was given with --root")
            }
            _ => self.through(technique),
        }
    }

    fn plain(&self) -> Attempt {
        Attempt {
            about: "a plain call".to_owned(),
            arguments: plainest(self.tool.input_schema(), self.known),
            proofs: vec![self.env_token()],
        }
    }

    fn through(&self, technique: Technique) -> Plan {
        let mut found = Vec::new();
        let mut purpose = false;
        let mut unnamed = 0;
        let parameters = parameters::of(self.tool);
        let is_only_text = parameters.iter().filter(|one| one.is_free_text()).count() == 1;
        let runs_anything = languages::runs_programs(self.tool);
        let is_overload = matches!(
            technique,
            Technique::HugeInput | Technique::DeepInput | Technique::Oversized | Technique::Pattern
        );
        for parameter in parameters {
            if let Some(language) = Language::of(&parameter, self.tool, is_only_text) {
                if languages::is_purpose(language, technique) {
                    purpose = true;
                    continue;
                }
                let attempts = self.attempts_in(language, technique, &parameter);
                if !attempts.is_empty() {
                    let parameter = Some(parameter);
                    let (doubt, compares, is_run) = (None, false, true);
                    found.push(Way { parameter, attempts, doubt, compares, is_run });
                    continue;
                }
                if !matches!(
                    technique,
                    Technique::HugeInput | Technique::DeepInput | Technique::Oversized
                ) {
                    continue;
                }
            }
            let Some(fit) = fit(technique, &parameter) else { continue };
            if fit == Fit::Possible {
                unnamed += 1;
                if unnamed > UNNAMED {
                    continue;
                }
            }
            let mut attempts = self.attempts(technique, &parameter);
            if fit == Fit::Possible {
                attempts.truncate(first_attempts(technique));
            }
            if !attempts.is_empty() {
                let doubt = match fit {
                    Fit::Possible => Some(NOT_USED),
                    Fit::Likely if runs_anything && !is_overload => Some(RUNS_ANYTHING),
                    Fit::Likely => None,
                };
                let compares = matches!(technique, Technique::Absolute | Technique::Traversal);
                let (parameter, is_run) = (Some(parameter), false);
                found.push(Way { parameter, attempts, doubt, compares, is_run });
            }
        }
        match (found.is_empty(), purpose) {
            (false, _) => Plan::Through(found),
            (true, true) => Plan::Not(PURPOSE),
            (true, false) => Plan::Not("no parameter could carry it"),
        }
    }

    fn attempts(&self, technique: Technique, parameter: &Parameter) -> Vec<Attempt> {
        match technique {
            Technique::Command => self.commands(parameter),
            Technique::Argument => self.arguments(parameter),
            Technique::Sql => self.queries(parameter),
            Technique::Template => self.templates(parameter),
            Technique::Relay => self.relays(parameter),
            Technique::EnvByName => ["NAME", "$NAME", "${NAME}", "%NAME%", "${env:NAME}"]
                .iter()
                .map(|form| {
                    let text = form.replace("NAME", SECRET_NAME);
                    self.sent(
                        parameter,
                        "the name of an environment variable",
                        text,
                        vec![self.env_token()],
                    )
                })
                .collect(),
            Technique::SecretFile => self.secret_files(parameter),
            Technique::Traversal => self.traversals(parameter),
            Technique::Absolute => self.absolutes(parameter),
            Technique::Link => self.planted(parameter, "a link", |planted| &planted.link),
            Technique::Sibling => {
                self.planted(parameter, "a sibling folder", |planted| &planted.sibling)
            }
            Technique::Loopback => self.loopbacks(parameter),
            Technique::Metadata => self.metadata(parameter),
            Technique::Redirect => self.redirects(parameter),
            Technique::Oversized => self.numbers(parameter),
            Technique::HugeInput => {
                let text = "a".repeat(HUGE);
                vec![self.sent(parameter, "a text of 4 MiB", text, vec![Proof::Ended])]
            }
            Technique::DeepInput => {
                let mut value = json!([]);
                for _ in 1..DEEP {
                    value = json!([value]);
                }
                vec![self.with(parameter, "100 nested lists", value, vec![Proof::Ended])]
            }
            Technique::Pattern => self.patterns(parameter),
            Technique::EnvPlain | Technique::Flood | Technique::Rebinding => Vec::new(),
        }
    }

    pub(super) fn env_token(&self) -> Proof {
        Proof::Token("the secret in the environment", self.site.env_token.clone())
    }

    /// Proofs that a file outside the root was read, or something written there.
    pub(super) fn escaped(&self) -> Vec<Proof> {
        let token = self.site.file_token.clone();
        vec![Proof::Token("the file outside the root", token), Proof::Changed]
    }

    fn sent(
        &self,
        parameter: &Parameter,
        about: &str,
        text: String,
        proofs: Vec<Proof>,
    ) -> Attempt {
        self.with(parameter, about, Value::String(text), proofs)
    }

    pub(super) fn with(
        &self,
        parameter: &Parameter,
        about: &str,
        value: Value,
        proofs: Vec<Proof>,
    ) -> Attempt {
        let mut arguments = plainest(self.tool.input_schema(), self.known);
        parameter.put(&mut arguments, value);
        Attempt { about: about.to_owned(), arguments, proofs }
    }

    fn product(&self) -> String {
        let (a, b) = self.site.factors;
        format!("{a}*{b}")
    }

    fn commands(&self, parameter: &Parameter) -> Vec<Attempt> {
        let forms = [
            ("a command after a semicolon", "karat; COMMAND"),
            ("a command after an and", "karat && COMMAND"),
            ("a command after a pipe", "karat | COMMAND"),
            ("a command substitution", "$(COMMAND)"),
            ("a command in backticks", "`COMMAND`"),
            ("a command on the next line", "karat\nCOMMAND"),
            ("a command after a single quote", "karat'; COMMAND; echo '"),
            ("a command after a double quote", "karat\"; COMMAND; echo \""),
            ("a Python expression", "__import__('os').system('COMMAND')"),
            ("a JavaScript expression", "require('child_process').execSync('COMMAND')"),
        ];
        let attempt = |(about, form): &(&str, &str)| {
            let mark = self.site.mark(self.site.number());
            let product = self.product();
            let command = format!("echo $(({product})) > {} ; echo $(({product}))", mark.display());
            let proofs = vec![Proof::Mark(mark), Proof::Product];
            self.sent(parameter, about, form.replace("COMMAND", &command), proofs)
        };
        forms.iter().map(attempt).collect()
    }

    fn arguments(&self, parameter: &Parameter) -> Vec<Attempt> {
        ["--output=MARK", "-oMARK", "--log-file=MARK", "--file=MARK"]
            .iter()
            .map(|form| {
                let mark = self.site.mark(self.site.number());
                let text = form.replace("MARK", &mark.display().to_string());
                self.sent(parameter, "an option that writes a file", text, vec![Proof::Mark(mark)])
            })
            .collect()
    }

    fn queries(&self, parameter: &Parameter) -> Vec<Attempt> {
        // The simplest first: a quoted text in a query for any number of columns.
        let starts = [("karat'", COLUMNS), ("0", 3), ("karat\"", 2), ("karat')", 2)];
        let forms = starts
            .iter()
            .flat_map(|(start, most)| (1..=*most).map(move |columns| (*start, columns)));
        let attempt = |(start, columns): (&str, usize)| {
            let selected = vec![self.product(); columns].join(",");
            let text = format!("{start} UNION SELECT {selected} -- ");
            self.sent(parameter, "a second query", text, vec![Proof::Product])
        };
        forms.map(attempt).collect()
    }

    fn templates(&self, parameter: &Parameter) -> Vec<Attempt> {
        ["{{P}}", "${P}", "<%= P %>", "#{P}", "{P}", "@(P)"]
            .iter()
            .map(|form| {
                let text = form.replace('P', &self.product());
                self.sent(parameter, "a template", text, vec![Proof::Product])
            })
            .collect()
    }

    fn relays(&self, parameter: &Parameter) -> Vec<Attempt> {
        let proof =
            || vec![Proof::Token("the text with instructions", self.site.relay_token.clone())];
        let mut found = Vec::new();
        if parameter.is_url() {
            let url = format!("http://127.0.0.1:{}/orders", self.site.listener.port());
            found.push(self.sent(parameter, "a page with instructions", url, proof()));
        }
        if let Some(planted) = self.site.in_root().filter(|_| parameter.is_path()) {
            let file = planted.orders.display().to_string();
            found.push(self.sent(parameter, "a file with instructions", file, proof()));
        }
        found
    }

    fn secret_files(&self, parameter: &Parameter) -> Vec<Attempt> {
        let dotenv = self.site.dotenv().display().to_string();
        let proofs = || {
            let token = self.site.dotenv_token.clone();
            vec![Proof::Token("the file with secrets", token), Proof::Changed]
        };
        let above = format!("{}{dotenv}", up());
        let mut forms = vec![dotenv.clone(), above.clone(), dotenv.replace('/', "%2f")];
        forms.extend(disguised(&above).map(|(_, text)| text));
        with_file_urls(&mut forms, parameter, &dotenv);
        let mut found: Vec<Attempt> = forms
            .into_iter()
            .map(|text| self.sent(parameter, "a file with secrets", text, proofs()))
            .collect();
        if self.access.has_secret {
            let environ = "/proc/self/environ";
            let mut forms = vec![environ.to_owned(), format!("{}{environ}", up())];
            with_file_urls(&mut forms, parameter, environ);
            let about = "its own environment file";
            let attempt = |text| self.sent(parameter, about, text, vec![self.env_token()]);
            found.extend(forms.into_iter().map(attempt));
        }
        found
    }

    /// Paths outside the root: to a file, to the same without its extension, and to one that does not exist.
    pub(super) fn outside(&self) -> [String; 3] {
        let path = self.site.outside_file();
        let new = self.site.folder().join(format!("new-{}.txt", self.site.number()));
        [path.clone(), path.with_extension(""), new].map(|path| path.display().to_string())
    }

    fn traversals(&self, parameter: &Parameter) -> Vec<Attempt> {
        let [outside, bare, new] = self.outside();
        let plain = format!("{}{outside}", up());
        let mut forms = vec![
            ("parent folders", plain.clone()),
            ("parent folders, without the extension", format!("{}{bare}", up())),
            ("parent folders of a folder", format!("karat/../{plain}")),
            ("parent folders with backslashes", plain.replace('/', "\\")),
        ];
        forms.extend(disguised(&plain));
        forms.push(("parent folders and a zero byte", format!("{plain}\0.txt")));
        for root in self.site.roots() {
            forms.push(("parent folders of the root", format!("{}/{plain}", root.display())));
        }
        forms.push(("parent folders to a new file", format!("{}{new}", up())));
        self.paths(parameter, forms)
    }

    fn absolutes(&self, parameter: &Parameter) -> Vec<Attempt> {
        let [outside, bare, new] = self.outside();
        let mut forms = vec![
            ("an absolute path", outside.clone()),
            ("an absolute path without the extension", bare),
            ("an absolute path with extra slashes", format!("//{outside}")),
            ("an absolute path, encoded", outside.replace('/', "%2f")),
        ];
        let [url, on_host] = file_urls(&outside).map(|text| ("a file URL", text));
        // The first and the last form are compared, so they differ in nothing but the file.
        if parameter.is_url() {
            forms.splice(0..0, [url, on_host]);
            forms.push(("an absolute path to a new file", new.clone()));
            forms.push(("a file URL to a new file", format!("file://{new}")));
        } else {
            forms.extend([url, ("an absolute path to a new file", new)]);
        }
        self.paths(parameter, forms)
    }

    fn paths(&self, parameter: &Parameter, forms: Vec<(&str, String)>) -> Vec<Attempt> {
        let attempt = |(about, text)| self.sent(parameter, about, text, self.escaped());
        forms.into_iter().map(attempt).collect()
    }

    fn planted(
        &self,
        parameter: &Parameter,
        about: &str,
        which: impl Fn(&RootPlants) -> &PathBuf,
    ) -> Vec<Attempt> {
        let Some(planted) = self.site.in_root() else { return Vec::new() };
        let path = which(planted);
        if !path.exists() {
            return Vec::new();
        }
        let mut forms = vec![(about, path.display().to_string())];
        let below = self.site.roots().first().and_then(|root| relative(root, path));
        let whole = path.display().to_string();
        forms.push((about, whole.replace('/', "%2f")));
        if let Some(below) = below {
            let is_above = below.starts_with("../");
            let disguised = disguised(&below).map(|(_, text)| (about, text));
            forms.push((about, below));
            forms.extend(disguised.into_iter().filter(|_| is_above));
        }
        self.paths(parameter, forms)
    }

    /// An address of the listener with a path that no other attempt has.
    pub(super) fn address(&self, host: &str, path: &str) -> (String, String) {
        let path = format!("{path}{}", self.site.number());
        (format!("http://{host}:{}{path}", self.site.listener.port()), path)
    }

    /// The spellings of this machine's own address: a filter may know some of them only.
    fn hosts(&self) -> Vec<(&'static str, &'static str)> {
        let mut hosts = vec![
            ("loopback", "127.0.0.1"),
            ("loopback by name", "localhost"),
            ("loopback, shortened", "127.1"),
            ("loopback as one number", "2130706433"),
            ("loopback in hexadecimal", "0x7f000001"),
            ("loopback as IPv6", "[::ffff:127.0.0.1]"),
            ("loopback after a user name", "user@127.0.0.1"),
            ("all addresses of this machine", "0.0.0.0"),
        ];
        if self.site.listener.has_v6() {
            hosts.push(("IPv6 loopback", "[::1]"));
        }
        hosts
    }

    fn loopbacks(&self, parameter: &Parameter) -> Vec<Attempt> {
        let hosts = self.hosts();
        let mut found = Vec::new();
        for (about, host) in hosts {
            let (url, path) = self.address(host, "/loopback/");
            // Some tools take only the host from an address.
            let proofs = vec![Proof::Called(path), Proof::Visited];
            found.push(self.sent(parameter, about, url, proofs));
        }
        found.extend(self.without_scheme(parameter, "/loopback/", &|path| path));
        if parameter.is_host() {
            let host = format!("127.0.0.1:{}", self.site.listener.port());
            found.push(self.sent(parameter, "loopback as a host", host, vec![Proof::Visited]));
        }
        found
    }

    /// The same without a scheme, for tools that add it themselves.
    fn without_scheme(
        &self,
        parameter: &Parameter,
        path: &str,
        called: &dyn Fn(String) -> String,
    ) -> Option<Attempt> {
        if !parameter.is_host() {
            return None;
        }
        let (url, path) = self.address("127.0.0.1", path);
        let text = url.trim_start_matches("http://").to_owned();
        let proofs = vec![Proof::Called(called(path))];
        Some(self.sent(parameter, "loopback with a path", text, proofs))
    }

    fn metadata(&self, parameter: &Parameter) -> Vec<Attempt> {
        let paths = [
            "/latest/meta-data/iam/security-credentials/",
            "/computeMetadata/v1/instance/service-accounts/default/",
        ];
        let attempt = |host: &str, path: &str| {
            let (url, path) = self.address(host, path);
            self.sent(parameter, "a stand-in for metadata", url, vec![Proof::Called(path)])
        };
        let hosts = self.hosts();
        let mut found: Vec<Attempt> = paths.iter().map(|path| attempt("127.0.0.1", path)).collect();
        found.extend(hosts.iter().skip(1).map(|(_, host)| attempt(host, paths[0])));
        found.extend(self.without_scheme(parameter, paths[0], &|path| path));
        found
    }

    fn redirects(&self, parameter: &Parameter) -> Vec<Attempt> {
        let landed = |path: String| path.replace("/moved/", "/landed/");
        let attempt = |(_, host): &(&str, &str)| {
            let (url, path) = self.address(host, "/moved/");
            self.sent(parameter, "a redirect", url, vec![Proof::Called(landed(path))])
        };
        let mut found: Vec<Attempt> = self.hosts().iter().map(attempt).collect();
        found.extend(self.without_scheme(parameter, "/moved/", &landed));
        found
    }

    fn numbers(&self, parameter: &Parameter) -> Vec<Attempt> {
        let sizes = match parameter.maximum() {
            Some(most) if most <= HARMLESS => return Vec::new(),
            Some(most) => vec![most],
            // If nothing suggests a count, one number is enough.
            None if !parameter.is_count() => vec![2_000_000_000],
            None => vec![10_000_000, 2_000_000_000],
        };
        let attempt = |size: i64| {
            self.with(parameter, "a very large number", json!(size), vec![Proof::Overrun])
        };
        sizes.into_iter().map(attempt).collect()
    }

    fn patterns(&self, parameter: &Parameter) -> Vec<Attempt> {
        let mut attempt = self.sent(
            parameter,
            "a pattern that backtracks",
            "^(a+)+$".to_owned(),
            vec![Proof::Ended],
        );
        let against = format!("{}!", "a".repeat(40));
        for other in parameters::of(self.tool) {
            if other.outer != parameter.outer && other.is_free_text() && !other.is_path() {
                other.put(&mut attempt.arguments, json!(against));
            }
        }
        vec![attempt]
    }
}

/// The reason for which an attack does not apply to a tool that is made for it.
pub(super) const PURPOSE: &str = "this is the purpose of the tool";
/// The reason for which no secret can get out of the environment.
const ENVIRONMENT: &str = "no secret can be planted in the server's environment";

/// A path with parent folders as a filter for `../` does not see it, or makes it.
fn disguised(path: &str) -> [(&'static str, String); 3] {
    [
        ("parent folders, encoded", path.replace("../", "%2e%2e%2f")),
        ("parent folders, encoded twice", path.replace("../", "%252e%252e%252f")),
        ("parent folders, hidden from a filter", path.replace("../", "....//")),
    ]
}

/// The forms of a file URL. Python and others accept the second one too, where a filter looks for `file:///`.
fn file_urls(path: &str) -> [String; 2] {
    [format!("file://{path}"), format!("file://localhost{path}")]
}

/// Adds file URLs to the forms of a path: first where an address is expected.
fn with_file_urls(forms: &mut Vec<String>, parameter: &Parameter, path: &str) {
    let [url, on_host] = file_urls(path);
    if parameter.is_url() {
        forms.splice(0..0, [url, on_host]);
    } else {
        forms.push(url);
    }
}

/// A path from any folder to the root of the file system.
pub(super) fn up() -> String {
    "../".repeat(12).trim_end_matches('/').to_owned()
}

/// The path of a file in the root or next to it, relative to the root.
fn relative(root: &Path, path: &Path) -> Option<String> {
    if let Ok(inside) = path.strip_prefix(root) {
        return Some(inside.display().to_string());
    }
    let beside = path.strip_prefix(root.parent()?).ok()?;
    Some(format!("../{}", beside.display()))
}

fn fit(technique: Technique, parameter: &Parameter) -> Option<Fit> {
    let either = |likely: bool, possible: bool| match (likely, possible) {
        (true, _) => Some(Fit::Likely),
        (false, true) => Some(Fit::Possible),
        (false, false) => None,
    };
    let is_text = parameter.is_free_text();
    match technique {
        Technique::Command | Technique::Argument | Technique::Template | Technique::EnvByName => {
            either(is_text, false)
        }
        // A tool that keeps the text slows everything down afterwards, so one is enough.
        Technique::HugeInput => either(is_text && parameter.is_outer(), false),
        Technique::Sql => either(parameter.is_query(), is_text),
        Technique::Relay => either(parameter.is_url() || parameter.is_path(), false),
        // An address may be one of a file, but a host is not.
        Technique::SecretFile | Technique::Absolute => {
            let is_address = parameter.is_url() && !parameter.is_host();
            either(parameter.is_path() || is_address, is_text)
        }
        Technique::Traversal | Technique::Link | Technique::Sibling => {
            either(parameter.is_path(), is_text)
        }
        Technique::Loopback | Technique::Metadata | Technique::Redirect => {
            either(parameter.is_url(), false)
        }
        Technique::Oversized => either(parameter.is_count(), parameter.is_number()),
        Technique::DeepInput => either(parameter.is_outer(), false),
        Technique::Pattern => either(parameter.is_pattern(), false),
        Technique::EnvPlain | Technique::Flood | Technique::Rebinding => None,
    }
}

/// The number of attempts if the type of the parameter is the only reason.
fn first_attempts(technique: Technique) -> usize {
    match technique {
        Technique::Sql => 5,
        Technique::SecretFile | Technique::Oversized => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::attacks::ATTACKS;

    fn tool(raw: Value) -> Definition {
        Definition::new(raw).unwrap()
    }

    /// A planner for a server to which every attack applies.
    fn planner<'a>(
        tool: &'a Definition,
        site: &'a CanarySite,
        known: &'a Map<String, Value>,
    ) -> Planner<'a> {
        let access = Access { is_local: true, has_loopback: true, has_secret: true };
        Planner { tool, site, known, access }
    }

    async fn sent(raw: Value) -> Vec<String> {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        let tool = tool(raw);
        let known = Map::new();
        let planner = planner(&tool, &site, &known);
        let mut all = Vec::new();
        for attack in ATTACKS {
            if let Plan::Through(found) = planner.plan(attack.technique) {
                let attempts = found.into_iter().flat_map(|way| way.attempts);
                all.extend(attempts.map(|attempt| Value::Object(attempt.arguments).to_string()));
            }
        }
        all
    }

    #[tokio::test]
    async fn attacks_only_reach_this_machine() {
        let schema = json!({"type": "object", "properties": {
            "url": {"type": "string"}, "path": {"type": "string"}, "query": {"type": "string"},
        }});
        let all = sent(json!({"name": "all", "inputSchema": schema})).await;
        assert!(all.len() > 50, "{}", all.len());
        for text in all.iter().filter(|text| text.contains("http://")) {
            let hosts = [
                "127.0.0.1",
                "localhost",
                "127.1:",
                "2130706433",
                "0x7f000001",
                "//0.0.0.0:",
                "//[::1]:",
            ];
            assert!(hosts.iter().any(|host| text.contains(host)), "{text}");
            assert!(!text.contains("169.254"), "{text}");
        }
    }

    #[tokio::test]
    async fn the_product_itself_is_never_sent() {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        let tool = tool(json!({"name": "t", "inputSchema": {"type": "object", "properties": {
            "query": {"type": "string"}, "path": {"type": "string"}}}}));
        let known = Map::new();
        let planner = planner(&tool, &site, &known);
        let mut tokens = 0;
        for attack in ATTACKS {
            let Plan::Through(found) = planner.plan(attack.technique) else { continue };
            for attempt in found.into_iter().flat_map(|way| way.attempts) {
                let text = Value::Object(attempt.arguments).to_string();
                assert!(!text.contains(&site.product()), "{text}");
                for proof in &attempt.proofs {
                    if let Proof::Token(_, token) = proof {
                        assert!(!text.contains(token.as_str()), "{text}");
                        tokens += 1;
                    }
                }
            }
        }
        assert!(tokens > 0, "no attempt is proven by a token");
    }

    async fn through(raw: Value, id: &str) -> Vec<(String, usize)> {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        let (tool, known) = (tool(raw), Map::new());
        let attack = ATTACKS.iter().find(|attack| attack.id() == id).unwrap();
        match planner(&tool, &site, &known).plan(attack.technique) {
            Plan::Through(found) => {
                let named = |way: Way| {
                    (way.parameter.map(|one| one.name).unwrap_or_default(), way.attempts.len())
                };
                found.into_iter().map(named).collect()
            }
            Plan::Flood(_) | Plan::Not(_) => Vec::new(),
        }
    }

    #[tokio::test]
    async fn an_address_gets_file_urls_first_and_a_path_gets_paths_first() {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        let known = Map::new();
        let first = |name: &str, technique: Technique| {
            let schema = json!({"type": "object", "properties": {name: {"type": "string"}}});
            let tool = tool(json!({"name": "t", "inputSchema": schema}));
            let Plan::Through(found) = planner(&tool, &site, &known).plan(technique) else {
                panic!("{name}: nothing to send")
            };
            let sent = |attempt: &Attempt| attempt.arguments[name].as_str().unwrap().to_owned();
            let texts: Vec<String> = found[0].attempts.iter().map(sent).collect();
            (texts[0].clone(), texts[texts.len() - 1].clone(), found[0].doubt)
        };
        for technique in [Technique::SecretFile, Technique::Absolute] {
            let (sent, _, doubt) = first("url", technique);
            assert!(sent.starts_with("file:///") && doubt.is_none(), "{sent} {doubt:?}");
            let (sent, _, doubt) = first("path", technique);
            assert!(sent.starts_with('/') && doubt.is_none(), "{sent} {doubt:?}");
        }
        let (there, missing, _) = first("uri", Technique::Absolute);
        assert!(there.ends_with("beyond.txt") && missing.starts_with("file:///"), "{missing}");
    }

    #[tokio::test]
    async fn parameters_of_a_fitting_type_alone_get_fewer_attempts() {
        let texts: Map<String, Value> =
            (0..30).map(|at| (format!("t{at}"), json!({"type": "string"}))).collect();
        let schema = json!({"type": "object", "properties": texts});
        let raw = json!({"name": "t", "inputSchema": schema});
        assert_eq!(through(raw.clone(), "sql-injection").await.len(), UNNAMED);
        assert_eq!(through(raw, "command-injection").await.len(), 30);
        let schema = json!({"type": "object", "properties": {
            "city": {"type": "string"}, "path": {"type": "string"}, "seconds": {"type": "number"},
            "year": {"type": "integer", "maximum": 1000}, "rows": {"type": "integer"}}});
        let raw = json!({"name": "t", "inputSchema": schema});
        let traversals = through(raw.clone(), "path-traversal").await;
        assert_eq!(traversals[0], ("city".to_owned(), 2));
        assert!(traversals[1].0 == "path" && traversals[1].1 > 5);
        let numbers = through(raw, "oversized-answer").await;
        assert_eq!(numbers, [("seconds".to_owned(), 1), ("rows".to_owned(), 2)]);
    }
    #[tokio::test]
    async fn parameters_of_a_command_tool_are_never_held() {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        let known = Map::new();
        let doubts = |command: &str, id: &str| {
            let schema = json!({"type": "object", "properties": {
                command: {"type": "string"}, "workdir": {"type": "string"}}});
            let tool = tool(json!({"name": "t", "inputSchema": schema}));
            let attack = ATTACKS.iter().find(|attack| attack.id() == id).unwrap();
            let Plan::Through(found) = planner(&tool, &site, &known).plan(attack.technique) else {
                panic!("{id} does not apply")
            };
            let of = |way: &&Way| way.parameter.as_ref().is_some_and(|one| one.name == "workdir");
            found.iter().find(of).unwrap().doubt
        };
        assert_eq!(doubts("command", "absolute-path"), Some(RUNS_ANYTHING));
        assert_eq!(doubts("command", "template-injection"), Some(RUNS_ANYTHING));
        assert_eq!(doubts("command", "huge-input"), None);
        assert_eq!(doubts("title", "absolute-path"), None);
    }
    #[tokio::test]
    async fn a_program_is_sent_with_its_language() {
        let schema = json!({"type": "object", "required": ["code", "languageId"], "properties": {
            "code": {"type": "string"}, "languageId": {"enum": ["perl", "javascript", "python"]}}});
        let all = sent(json!({"name": "run-code", "inputSchema": schema})).await;
        let with = |mark: &str| all.iter().find(|text| text.contains(mark)).unwrap();
        assert!(with("readFileSync").contains(r#""languageId":"javascript""#));
        assert!(with("print(open(").contains(r#""languageId":"python""#));
    }
}

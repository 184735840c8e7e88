//! The attacks: what each is, through which parameters it goes, what it sends, and what would prove
//! that it worked.

use std::path::Path;

use karat_mcp::Definition;
use serde_json::{Map, Value, json};

use super::Class;
use super::ground::Ground;
use super::parameters::{self, Parameter};
use crate::fuzz::SECRET_NAME;
use crate::fuzz::generate::plainest;
use crate::probe::{Rule, Severity};

/// One attack.
pub struct Attack {
    /// What a finding of it is called.
    pub rule: Rule,
    /// Which class it belongs to.
    pub class: Class,
    pub(super) way: Way,
}

impl Attack {
    /// Its name on the command line and in reports.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.rule.id.trim_start_matches("attack-")
    }
}

/// How an attack goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Command,
    Argument,
    Sql,
    Template,
    Relay,
    EnvPlain,
    EnvByName,
    SecretFile,
    Traversal,
    Absolute,
    Link,
    Sibling,
    Loopback,
    Metadata,
    Redirect,
    Oversized,
    HugeInput,
    DeepInput,
    Pattern,
    Flood,
}

const fn attack(
    id: &'static str,
    class: Class,
    way: Way,
    summary: &'static str,
    help: &'static str,
) -> Attack {
    let severity = match way {
        Way::Relay => Severity::Note,
        _ => Severity::Error,
    };
    Attack { rule: Rule { id, severity, summary, help }, class, way }
}

/// Every attack, class by class.
pub const ATTACKS: &[&Attack] = &[
    &attack(
        "attack-command-injection",
        Class::Injection,
        Way::Command,
        "text that is given to a tool is run by a shell or an interpreter",
        "Start programs with a list of arguments and without a shell; never evaluate what was given.",
    ),
    &attack(
        "attack-argument-injection",
        Class::Injection,
        Way::Argument,
        "text that is given to a tool becomes an option of a program",
        "Put `--` before it, and refuse what begins with a dash.",
    ),
    &attack(
        "attack-sql-injection",
        Class::Injection,
        Way::Sql,
        "text that is given to a tool becomes part of a database query",
        "Bind values as parameters of the query.",
    ),
    &attack(
        "attack-template-injection",
        Class::Injection,
        Way::Template,
        "text that is given to a tool is evaluated as a template",
        "Give text to a template as a value, never as the template.",
    ),
    &attack(
        "attack-prompt-relay",
        Class::Injection,
        Way::Relay,
        "a text that gives orders comes back without any mark",
        "Passing text on is what readers and fetchers are for, and whether a model obeys is not the \
         server's doing, so this is noted and not counted. Mark foreign text as such where you can.",
    ),
    &attack(
        "attack-env-secret",
        Class::Exfiltration,
        Way::EnvPlain,
        "a secret of the server's environment is in an answer",
        "Never put the environment into an answer, encoded or not.",
    ),
    &attack(
        "attack-env-by-name",
        Class::Exfiltration,
        Way::EnvByName,
        "a variable of the server's environment comes back when its name is given",
        "Do not expand variables in what was given.",
    ),
    &attack(
        "attack-secret-file",
        Class::Exfiltration,
        Way::SecretFile,
        "a file with secrets beyond the root is read",
        "Resolve the path, and refuse what is not below the root; refuse /proc.",
    ),
    &attack(
        "attack-path-traversal",
        Class::PrivilegeEscalation,
        Way::Traversal,
        "a path with `..` leads out of the root, to read or to write",
        "Resolve the whole path first, decoded once, and then compare it with the root.",
    ),
    &attack(
        "attack-absolute-path",
        Class::PrivilegeEscalation,
        Way::Absolute,
        "an absolute path leads out of the root, to read or to write",
        "Joining a root with an absolute path drops the root: resolve, then compare.",
    ),
    &attack(
        "attack-symbolic-link",
        Class::PrivilegeEscalation,
        Way::Link,
        "a link in the root leads out of it",
        "Resolve links before comparing the path with the root.",
    ),
    &attack(
        "attack-sibling-folder",
        Class::PrivilegeEscalation,
        Way::Sibling,
        "a folder beside the root whose name begins in the same way is taken for the root",
        "Compare paths part by part, not as text.",
    ),
    &attack(
        "attack-ssrf-loopback",
        Class::PrivilegeEscalation,
        Way::Loopback,
        "a tool gets pages from the machine that the server runs on",
        "Resolve the host, and refuse loopback, private and link-local addresses, in every spelling.",
    ),
    &attack(
        "attack-ssrf-metadata",
        Class::PrivilegeEscalation,
        Way::Metadata,
        "a tool gets what looks like a cloud's metadata",
        "Refuse link-local addresses. (The real address is never tried: a stand-in on 127.0.0.1 is.)",
    ),
    &attack(
        "attack-ssrf-redirect",
        Class::PrivilegeEscalation,
        Way::Redirect,
        "a redirect to the machine that the server runs on is followed",
        "Check the address again at every redirect, or follow none.",
    ),
    &attack(
        "attack-oversized-answer",
        Class::DenialOfService,
        Way::Oversized,
        "a number in the arguments makes an answer too large, or none at all in time",
        "Give the number a maximum in the schema and hold it.",
    ),
    &attack(
        "attack-huge-input",
        Class::DenialOfService,
        Way::HugeInput,
        "a text of many megabytes ends or blocks the server",
        "Give the text a maxLength and refuse what is longer before working on it.",
    ),
    &attack(
        "attack-deep-input",
        Class::DenialOfService,
        Way::DeepInput,
        "deeply nested arguments end or block the server",
        "Bound the depth before walking into it.",
    ),
    &attack(
        "attack-slow-pattern",
        Class::DenialOfService,
        Way::Pattern,
        "a pattern that backtracks blocks the server",
        "Use an engine without backtracking, or a time limit.",
    ),
    &attack(
        "attack-request-flood",
        Class::DenialOfService,
        Way::Flood,
        "many calls at once end or block the server",
        "Bound what is under way and refuse the rest; one caller must not end it for all.",
    ),
];

/// What would prove that an attack worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// This file exists.
    Mark(std::path::PathBuf),
    /// The product of the two numbers is in the answer.
    Product,
    /// This token is in the answer: what it is, and the token.
    Token(&'static str, String),
    /// This path of the canary was called.
    Called(String),
    /// The canary was called, for a page of the tool's own choice.
    Visited,
    /// A file beyond the root was changed or removed, or a new one lies there.
    Changed,
    /// The answer is beyond the limits, or there is none, or the server ends.
    Overrun,
    /// There is no answer, or the server ends.
    Ended,
}

/// One thing to send.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) about: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) proofs: Vec<Proof>,
}

/// What an attack does with one tool.
pub(super) enum Plan {
    /// Attempts for each parameter that it could go through; no name for those that need none.
    Through(Vec<(Option<Parameter>, Vec<Attempt>)>),
    /// Many plain calls at once.
    Flood(Map<String, Value>),
    /// It does not apply, and why.
    Not(&'static str),
}

/// How long the texts are that are too long.
const HUGE: usize = 4 << 20;
/// How deep the arguments are that are too deep: what JSON readers still read.
const DEEP: usize = 100;
/// Bounds below this are no danger.
const HARMLESS: i64 = 1_000;
/// How many columns a second query is tried with.
const COLUMNS: usize = 10;
/// How many parameters of one tool an attack goes through that nothing speaks for but their type.
const UNNAMED: usize = 8;

/// What speaks for an attack through a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Its name, format or description.
    Likely,
    /// Its type alone: the most telling attempts are made.
    Possible,
}

/// What is known of a tool and of the ground when an attack is planned.
pub(super) struct Scene<'a> {
    pub(super) tool: &'a Definition,
    pub(super) ground: &'a Ground,
    /// Values that are known to work.
    pub(super) known: &'a Map<String, Value>,
    /// Whether the server runs on this machine, where the canaries are.
    pub(super) is_local: bool,
    /// Whether it can call the listener: a sandbox without network cannot.
    pub(super) has_loopback: bool,
    /// Whether we set its environment.
    pub(super) is_ours: bool,
}

impl Scene<'_> {
    pub(super) fn plan(&self, way: Way) -> Plan {
        match way {
            Way::Flood => Plan::Flood(plainest(self.tool.input_schema(), self.known)),
            Way::EnvPlain if !self.is_ours => Plan::Not(ENVIRONMENT),
            Way::EnvByName if !self.is_ours => Plan::Not(ENVIRONMENT),
            Way::EnvPlain => Plan::Through(vec![(None, vec![self.plain()])]),
            Way::HugeInput | Way::DeepInput | Way::Oversized | Way::Pattern => self.through(way),
            _ if !self.is_local => Plan::Not("the server is not on this machine"),
            Way::Loopback | Way::Metadata | Way::Redirect if !self.has_loopback => {
                Plan::Not("the sandbox keeps it from the listener on 127.0.0.1")
            }
            Way::Link | Way::Sibling if self.ground.in_root().is_none() => {
                Plan::Not("no root was named with --root")
            }
            _ => self.through(way),
        }
    }

    fn plain(&self) -> Attempt {
        Attempt {
            about: "a plain call".to_owned(),
            arguments: plainest(self.tool.input_schema(), self.known),
            proofs: vec![self.env_token()],
        }
    }

    fn through(&self, way: Way) -> Plan {
        let mut found = Vec::new();
        let mut purpose = false;
        let mut unnamed = 0;
        let parameters = parameters::of(self.tool);
        let is_only_text = parameters.iter().filter(|one| one.is_free_text()).count() == 1;
        for parameter in parameters {
            let Some(fit) = fit(way, &parameter) else { continue };
            if self.is_its_purpose(way, &parameter, is_only_text) {
                purpose = true;
                continue;
            }
            if fit == Fit::Possible {
                unnamed += 1;
                if unnamed > UNNAMED {
                    continue;
                }
            }
            let mut attempts = self.attempts(way, &parameter);
            if fit == Fit::Possible {
                attempts.truncate(most_telling(way));
            }
            if !attempts.is_empty() {
                found.push((Some(parameter), attempts));
            }
        }
        match (found.is_empty(), purpose) {
            (false, _) => Plan::Through(found),
            (true, true) => Plan::Not("doing so is what the tool is for"),
            (true, false) => Plan::Not("no parameter could carry it"),
        }
    }

    fn is_its_purpose(&self, way: Way, parameter: &Parameter, is_only_text: bool) -> bool {
        match way {
            Way::Command | Way::Argument | Way::Template => {
                parameter.runs_commands(self.tool, is_only_text)
            }
            Way::Sql => parameter.asks_database(self.tool),
            _ => false,
        }
    }

    fn attempts(&self, way: Way, parameter: &Parameter) -> Vec<Attempt> {
        match way {
            Way::Command => self.commands(parameter),
            Way::Argument => self.arguments(parameter),
            Way::Sql => self.queries(parameter),
            Way::Template => self.templates(parameter),
            Way::Relay => self.relays(parameter),
            Way::EnvByName => ["NAME", "$NAME", "${NAME}", "%NAME%", "${env:NAME}"]
                .iter()
                .map(|form| {
                    let text = form.replace("NAME", SECRET_NAME);
                    self.sent(parameter, "the name of a variable", text, vec![self.env_token()])
                })
                .collect(),
            Way::SecretFile => self.secret_files(parameter),
            Way::Traversal => self.traversals(parameter),
            Way::Absolute => self.absolutes(parameter),
            Way::Link => self.planted(parameter, "a link", |planted| &planted.link),
            Way::Sibling => self.planted(parameter, "a folder beside", |planted| &planted.sibling),
            Way::Loopback => self.loopbacks(parameter),
            Way::Metadata => self.metadata(parameter),
            Way::Redirect => self.redirects(parameter),
            Way::Oversized => self.numbers(parameter),
            Way::HugeInput => {
                let text = "a".repeat(HUGE);
                vec![self.sent(parameter, "a text of 4 MiB", text, vec![Proof::Ended])]
            }
            Way::DeepInput => {
                let mut value = json!([]);
                for _ in 1..DEEP {
                    value = json!([value]);
                }
                vec![self.with(parameter, "100 lists in each other", value, vec![Proof::Ended])]
            }
            Way::Pattern => self.patterns(parameter),
            Way::EnvPlain | Way::Flood => Vec::new(),
        }
    }

    fn env_token(&self) -> Proof {
        Proof::Token("the secret of the environment", self.ground.env_token.clone())
    }

    /// That a file beyond the root was read, or something written there.
    fn went_beyond(&self) -> Vec<Proof> {
        let token = self.ground.file_token.clone();
        vec![Proof::Token("the file beyond the root", token), Proof::Changed]
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

    fn with(
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
        let (a, b) = self.ground.factors;
        format!("{a}*{b}")
    }

    fn commands(&self, parameter: &Parameter) -> Vec<Attempt> {
        let forms = [
            ("a command after a semicolon", "karat; COMMAND"),
            ("a command after an and", "karat && COMMAND"),
            ("a command after a pipe", "karat | COMMAND"),
            ("a command that is put in", "$(COMMAND)"),
            ("a command between backticks", "`COMMAND`"),
            ("a command on the next line", "karat\nCOMMAND"),
            ("a command behind a single quote", "karat'; COMMAND; echo '"),
            ("a command behind a double quote", "karat\"; COMMAND; echo \""),
            ("an expression of Python", "__import__('os').system('COMMAND')"),
            ("an expression of JavaScript", "require('child_process').execSync('COMMAND')"),
        ];
        let attempt = |(about, form): &(&str, &str)| {
            let mark = self.ground.mark(self.ground.number());
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
                let mark = self.ground.mark(self.ground.number());
                let text = form.replace("MARK", &mark.display().to_string());
                self.sent(parameter, "an option that writes a file", text, vec![Proof::Mark(mark)])
            })
            .collect()
    }

    fn queries(&self, parameter: &Parameter) -> Vec<Attempt> {
        // The simplest first: a text between quotes in a query for any number of columns.
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
            || vec![Proof::Token("a text that gives orders", self.ground.relay_token.clone())];
        let mut found = Vec::new();
        if parameter.is_url() {
            let url = format!("http://127.0.0.1:{}/orders", self.ground.canary.port());
            found.push(self.sent(parameter, "a page that gives orders", url, proof()));
        }
        if let Some(planted) = self.ground.in_root().filter(|_| parameter.is_path()) {
            let file = planted.orders.display().to_string();
            found.push(self.sent(parameter, "a file that gives orders", file, proof()));
        }
        found
    }

    fn secret_files(&self, parameter: &Parameter) -> Vec<Attempt> {
        let dotenv = self.ground.dotenv().display().to_string();
        let proofs = || {
            let token = self.ground.dotenv_token.clone();
            vec![Proof::Token("the file with secrets", token), Proof::Changed]
        };
        let forms = [dotenv.clone(), format!("{}{dotenv}", up()), format!("file://{dotenv}")];
        let mut found: Vec<Attempt> = forms
            .into_iter()
            .map(|text| self.sent(parameter, "a file with secrets", text, proofs()))
            .collect();
        if self.is_ours {
            for path in ["/proc/self/environ".to_owned(), format!("{}/proc/self/environ", up())] {
                found.push(self.sent(
                    parameter,
                    "its own environment",
                    path,
                    vec![self.env_token()],
                ));
            }
        }
        found
    }

    /// A path beyond the root, to a file that is there without its ending, and to one that is not.
    fn beyond(&self) -> [String; 3] {
        let path = self.ground.beyond();
        let new = self.ground.folder().join(format!("new-{}.txt", self.ground.number()));
        [path.clone(), path.with_extension(""), new].map(|path| path.display().to_string())
    }

    fn traversals(&self, parameter: &Parameter) -> Vec<Attempt> {
        let [beyond, bare, new] = self.beyond();
        let plain = format!("{}{beyond}", up());
        let mut forms = vec![
            ("upwards", plain.clone()),
            ("upwards, without the ending", format!("{}{bare}", up())),
            ("upwards from a folder", format!("karat/../{plain}")),
            ("upwards with other slashes", plain.replace('/', "\\")),
            ("upwards, encoded", plain.replace("../", "%2e%2e%2f")),
            ("upwards, encoded twice", plain.replace("../", "%252e%252e%252f")),
            ("upwards, hidden from a filter", plain.replace("../", "....//")),
            ("upwards with a zero byte", format!("{plain}\0.txt")),
        ];
        for root in self.ground.roots() {
            forms.push(("upwards from the root", format!("{}/{plain}", root.display())));
        }
        forms.push(("upwards to a new file", format!("{}{new}", up())));
        self.paths(parameter, forms)
    }

    fn absolutes(&self, parameter: &Parameter) -> Vec<Attempt> {
        let [beyond, bare, new] = self.beyond();
        let forms = vec![
            ("an absolute path", beyond.clone()),
            ("an absolute path without the ending", bare),
            ("an absolute path with more slashes", format!("//{beyond}")),
            ("a file address", format!("file://{beyond}")),
            ("an absolute path to a new file", new),
        ];
        self.paths(parameter, forms)
    }

    fn paths(&self, parameter: &Parameter, forms: Vec<(&str, String)>) -> Vec<Attempt> {
        let attempt = |(about, text)| self.sent(parameter, about, text, self.went_beyond());
        forms.into_iter().map(attempt).collect()
    }

    fn planted(
        &self,
        parameter: &Parameter,
        about: &str,
        which: impl Fn(&super::ground::InRoot) -> &std::path::PathBuf,
    ) -> Vec<Attempt> {
        let Some(planted) = self.ground.in_root() else { return Vec::new() };
        let path = which(planted);
        if !path.exists() {
            return Vec::new();
        }
        let mut forms = vec![(about, path.display().to_string())];
        let below = self.ground.roots().first().and_then(|root| relative(root, path));
        forms.extend(below.map(|path| (about, path)));
        self.paths(parameter, forms)
    }

    /// An address of the canary with a path that no other attempt has.
    fn address(&self, host: &str, path: &str) -> (String, String) {
        let path = format!("{path}{}", self.ground.number());
        (format!("http://{host}:{}{path}", self.ground.canary.port()), path)
    }

    fn loopbacks(&self, parameter: &Parameter) -> Vec<Attempt> {
        let mut hosts = vec![
            ("loopback", "127.0.0.1"),
            ("loopback by name", "localhost"),
            ("loopback, shortened", "127.1"),
            ("loopback as one number", "2130706433"),
            ("loopback in hexadecimal", "0x7f000001"),
            ("loopback as IPv6", "[::ffff:127.0.0.1]"),
            ("loopback behind a user", "user@127.0.0.1"),
            ("every address of this machine", "0.0.0.0"),
        ];
        if self.ground.canary.has_v6() {
            hosts.push(("loopback of IPv6", "[::1]"));
        }
        let mut found = Vec::new();
        for (about, host) in hosts {
            let (url, path) = self.address(host, "/loopback/");
            found.push(self.sent(parameter, about, url, vec![Proof::Called(path)]));
        }
        found.extend(self.without_scheme(parameter, "/loopback/", &|path| path));
        if parameter.is_host() {
            let host = format!("127.0.0.1:{}", self.ground.canary.port());
            found.push(self.sent(parameter, "loopback as a host", host, vec![Proof::Visited]));
        }
        found
    }

    /// The same for tools that make the address themselves.
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
        let attempt = |path: &&str| {
            let (url, path) = self.address("127.0.0.1", path);
            self.sent(parameter, "a stand-in for metadata", url, vec![Proof::Called(path)])
        };
        let mut found: Vec<Attempt> = paths.iter().map(attempt).collect();
        found.extend(self.without_scheme(parameter, paths[0], &|path| path));
        found
    }

    fn redirects(&self, parameter: &Parameter) -> Vec<Attempt> {
        let landed = |path: String| path.replace("/moved/", "/landed/");
        let (url, path) = self.address("127.0.0.1", "/moved/");
        let proofs = vec![Proof::Called(landed(path))];
        let mut found = vec![self.sent(parameter, "a redirect", url, proofs)];
        found.extend(self.without_scheme(parameter, "/moved/", &landed));
        found
    }

    fn numbers(&self, parameter: &Parameter) -> Vec<Attempt> {
        let sizes = match parameter.maximum() {
            Some(most) if most <= HARMLESS => return Vec::new(),
            Some(most) => vec![most],
            // Where nothing says that it is a count, one number must do.
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

const ENVIRONMENT: &str = "the environment of the server is not ours to plant something in";

/// From wherever the server stands to the root of the file system.
fn up() -> String {
    "../".repeat(12).trim_end_matches('/').to_owned()
}

/// The path of something beside or in the root, as seen from the root.
fn relative(root: &Path, path: &Path) -> Option<String> {
    if let Ok(inside) = path.strip_prefix(root) {
        return Some(inside.display().to_string());
    }
    let beside = path.strip_prefix(root.parent()?).ok()?;
    Some(format!("../{}", beside.display()))
}

fn fit(way: Way, parameter: &Parameter) -> Option<Fit> {
    let either = |likely: bool, possible: bool| match (likely, possible) {
        (true, _) => Some(Fit::Likely),
        (false, true) => Some(Fit::Possible),
        (false, false) => None,
    };
    let is_text = parameter.is_free_text();
    match way {
        Way::Command | Way::Argument | Way::Template | Way::EnvByName => either(is_text, false),
        // What a tool keeps of it slows down everything that comes after, so one of each is enough.
        Way::HugeInput => either(is_text && parameter.is_outer(), false),
        Way::Sql => either(parameter.is_query(), is_text),
        Way::Relay => either(parameter.is_url() || parameter.is_path(), false),
        Way::SecretFile | Way::Traversal | Way::Absolute | Way::Link | Way::Sibling => {
            either(parameter.is_path(), is_text)
        }
        Way::Loopback | Way::Metadata | Way::Redirect => either(parameter.is_url(), false),
        Way::Oversized => either(parameter.is_count(), parameter.is_number()),
        Way::DeepInput => either(parameter.is_outer(), false),
        Way::Pattern => either(parameter.is_pattern(), false),
        Way::EnvPlain | Way::Flood => None,
    }
}

/// How many attempts are made where nothing but the type speaks for an attack: those that would be made
/// first.
fn most_telling(way: Way) -> usize {
    match way {
        Way::Sql => 5,
        Way::SecretFile | Way::Oversized => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_every_class_has_attacks() {
        let ids: std::collections::BTreeSet<&str> =
            ATTACKS.iter().map(|attack| attack.id()).collect();
        assert_eq!(ids.len(), ATTACKS.len());
        for class in Class::ALL {
            assert!(ATTACKS.iter().any(|attack| attack.class == class), "{class:?}");
        }
        assert!(ATTACKS.iter().all(|attack| attack.rule.help.len() > 20));
    }

    fn tool(raw: Value) -> Definition {
        Definition::new(raw).unwrap()
    }

    /// A server of ours on this machine, to which everything applies.
    fn scene<'a>(
        tool: &'a Definition,
        ground: &'a Ground,
        known: &'a Map<String, Value>,
    ) -> Scene<'a> {
        Scene { tool, ground, known, is_local: true, has_loopback: true, is_ours: true }
    }

    async fn sent(raw: Value) -> Vec<String> {
        let ground = Ground::prepare(&[], false).await.unwrap();
        let tool = tool(raw);
        let known = Map::new();
        let scene = scene(&tool, &ground, &known);
        let mut all = Vec::new();
        for attack in ATTACKS {
            if let Plan::Through(found) = scene.plan(attack.way) {
                let attempts = found.into_iter().flat_map(|(_, attempts)| attempts);
                all.extend(attempts.map(|attempt| Value::Object(attempt.arguments).to_string()));
            }
        }
        all
    }

    #[tokio::test]
    async fn no_attack_leads_anywhere_but_to_this_machine() {
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
        let ground = Ground::prepare(&[], false).await.unwrap();
        let tool = tool(json!({"name": "t", "inputSchema": {"type": "object", "properties": {
            "query": {"type": "string"}, "path": {"type": "string"}}}}));
        let known = Map::new();
        let scene = scene(&tool, &ground, &known);
        for attack in ATTACKS {
            let Plan::Through(found) = scene.plan(attack.way) else { continue };
            for attempt in found.into_iter().flat_map(|(_, attempts)| attempts) {
                let text = Value::Object(attempt.arguments).to_string();
                assert!(!text.contains(&ground.product()), "{text}");
                for proof in &attempt.proofs {
                    if let Proof::Token(_, token) = proof {
                        assert!(!text.contains(token.as_str()), "{text}");
                    }
                }
            }
        }
    }

    async fn through(raw: Value, id: &str) -> Vec<(String, usize)> {
        let ground = Ground::prepare(&[], false).await.unwrap();
        let (tool, known) = (tool(raw), Map::new());
        let attack = ATTACKS.iter().find(|attack| attack.id() == id).unwrap();
        match scene(&tool, &ground, &known).plan(attack.way) {
            Plan::Through(found) => {
                let named = |(parameter, attempts): (Option<Parameter>, Vec<Attempt>)| {
                    (parameter.map(|one| one.name).unwrap_or_default(), attempts.len())
                };
                found.into_iter().map(named).collect()
            }
            Plan::Flood(_) | Plan::Not(_) => Vec::new(),
        }
    }

    #[tokio::test]
    async fn what_nothing_speaks_for_is_tried_in_fewer_ways_and_to_a_bound() {
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
}

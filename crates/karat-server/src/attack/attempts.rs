//! Plans an attack on one tool: the parameters it goes through, the arguments it sends, and the proofs
//! that it worked. The attempts are in the files of its folder, by subject.

mod addresses;
mod files;
mod injection;
mod overload;
mod paths;

use std::path::PathBuf;

use karat_mcp::Definition;
use serde_json::{Map, Value};

pub(super) use self::paths::up;
use super::attacks::Technique;
use super::canary_site::CanarySite;
use super::languages::{self, Language};
use super::pages::{Page, Place};
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
    /// This page of the listener was called, or one that the tool derived from its address.
    Called(Page),
    /// The listener was called for a page at one of these places, without the number of an attempt.
    Visited(&'static [Place]),
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
pub(super) struct ParameterAttempts {
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
    Through(Vec<ParameterAttempts>),
    /// Many plain calls at once.
    Flood(Map<String, Value>),
    /// It does not apply, with the reason.
    Not(&'static str),
}

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
                let way = ParameterAttempts {
                    parameter: None,
                    attempts,
                    doubt: None,
                    compares: false,
                    is_run: false,
                };
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
                    found.push(ParameterAttempts { parameter, attempts, doubt, compares, is_run });
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
                found.push(ParameterAttempts { parameter, attempts, doubt, compares, is_run });
            }
        }
        match (found.is_empty(), purpose) {
            (false, _) => Plan::Through(found),
            (true, true) => Plan::Not(PURPOSE),
            (true, false) => Plan::Not(NO_PARAMETER),
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
            Technique::HugeInput => self.huge_strings(parameter),
            Technique::DeepInput => self.deep_lists(parameter),
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
}

/// The reason for which an attack does not apply to a tool that is made for it.
pub(super) const PURPOSE: &str = "this is the purpose of the tool";
/// The reason for which an attack does not apply to a tool without a parameter for it.
pub(super) const NO_PARAMETER: &str = "no parameter could carry it";
/// The reason for which no secret can get out of the environment.
const ENVIRONMENT: &str = "no secret can be planted in the server's environment";

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
    use serde_json::json;

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
                let named = |way: ParameterAttempts| {
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
            let of = |way: &&ParameterAttempts| {
                way.parameter.as_ref().is_some_and(|one| one.name == "workdir")
            };
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

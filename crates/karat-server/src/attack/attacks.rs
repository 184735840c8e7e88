//! The known attacks, by class.

use karat_core::finding::Severity;
use serde::Deserialize;

use crate::probe::Rule;

/// A class of attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Input becomes part of something that is executed.
    Injection,
    /// Data gets out that should stay inside.
    Exfiltration,
    /// More can be reached than was granted.
    PrivilegeEscalation,
    /// The server stops serving.
    DenialOfService,
}

impl Class {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Injection => "injection",
            Class::Exfiltration => "exfiltration",
            Class::PrivilegeEscalation => "privilege_escalation",
            Class::DenialOfService => "denial_of_service",
        }
    }
}

/// A known attack.
pub struct KnownAttack {
    /// The rule of its findings.
    pub rule: Rule,
    /// Its class.
    pub class: Class,
    pub(super) technique: Technique,
}

impl KnownAttack {
    /// The name on the command line and in reports.
    #[must_use]
    pub(crate) fn id(&self) -> &'static str {
        self.rule.id.trim_start_matches("attack-")
    }

    /// Returns whether it is made on the server as a whole, once, and not through its tools.
    pub(super) fn is_on_server(&self) -> bool {
        self.technique == Technique::Rebinding
    }
}

/// The technique of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Technique {
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
    Rebinding,
}

const fn attack(
    id: &'static str,
    class: Class,
    technique: Technique,
    summary: &'static str,
    help: &'static str,
) -> KnownAttack {
    let severity = match technique {
        Technique::Relay => Severity::Note,
        _ => Severity::Error,
    };
    KnownAttack { rule: Rule { id, severity, summary, help }, class, technique }
}

/// Every attack, class by class.
pub(crate) const ATTACKS: &[&KnownAttack] = &[
    &attack(
        "attack-command-injection",
        Class::Injection,
        Technique::Command,
        "input of a tool is run by a shell or an interpreter",
        "Start programs with a list of arguments and without a shell; never evaluate input.",
    ),
    &attack(
        "attack-argument-injection",
        Class::Injection,
        Technique::Argument,
        "input of a tool becomes an option of a program",
        "Put `--` before it, and refuse input that begins with a dash.",
    ),
    &attack(
        "attack-sql-injection",
        Class::Injection,
        Technique::Sql,
        "input of a tool becomes part of a database query",
        "Bind values as parameters of the query.",
    ),
    &attack(
        "attack-template-injection",
        Class::Injection,
        Technique::Template,
        "input of a tool is evaluated as a template",
        "Pass input to a template as a value, never as the template.",
    ),
    &attack(
        "attack-prompt-relay",
        Class::Injection,
        Technique::Relay,
        "a text with instructions is passed on without any mark",
        "Passing text on is the purpose of readers and fetchers, and whether a model obeys it is not up \
         to the server, so this is noted and not counted. Mark foreign text as such where you can.",
    ),
    &attack(
        "attack-env-secret",
        Class::Exfiltration,
        Technique::EnvPlain,
        "a secret of the server's environment is in an answer",
        "Never put the environment into an answer, encoded or not.",
    ),
    &attack(
        "attack-env-by-name",
        Class::Exfiltration,
        Technique::EnvByName,
        "an environment variable is returned when its name is given",
        "Do not expand variables in input.",
    ),
    &attack(
        "attack-secret-file",
        Class::Exfiltration,
        Technique::SecretFile,
        "a file with secrets outside the root is read",
        "Resolve the path, and refuse everything that is not below the root; refuse /proc.",
    ),
    &attack(
        "attack-path-traversal",
        Class::PrivilegeEscalation,
        Technique::Traversal,
        "a path with `..` leads out of the root, to read or to write",
        "Resolve the whole path first, decoded once, and then compare it with the root.",
    ),
    &attack(
        "attack-absolute-path",
        Class::PrivilegeEscalation,
        Technique::Absolute,
        "an absolute path leads out of the root, to read or to write",
        "Joining a root with an absolute path drops the root: resolve, then compare.",
    ),
    &attack(
        "attack-symbolic-link",
        Class::PrivilegeEscalation,
        Technique::Link,
        "a link in the root leads out of it",
        "Resolve links before comparing the path with the root.",
    ),
    &attack(
        "attack-sibling-folder",
        Class::PrivilegeEscalation,
        Technique::Sibling,
        "a folder next to the root whose name begins like the root's is mistaken for the root",
        "Compare paths part by part, not as text.",
    ),
    &attack(
        "attack-ssrf-loopback",
        Class::PrivilegeEscalation,
        Technique::Loopback,
        "a tool fetches pages from the machine that the server runs on",
        "Resolve the host, and refuse loopback, private and link-local addresses, in every spelling.",
    ),
    &attack(
        "attack-ssrf-metadata",
        Class::PrivilegeEscalation,
        Technique::Metadata,
        "a tool fetches what looks like a cloud's metadata",
        "Refuse link-local addresses. (The real address is never used, only a stand-in on 127.0.0.1.)",
    ),
    &attack(
        "attack-ssrf-redirect",
        Class::PrivilegeEscalation,
        Technique::Redirect,
        "a redirect to the machine that the server runs on is followed",
        "Check the address again at every redirect, or follow none.",
    ),
    &attack(
        "attack-dns-rebinding",
        Class::PrivilegeEscalation,
        Technique::Rebinding,
        "a web page of another site can talk to the server, once the name of the site leads to it",
        "Answer requests only if their Host header, and their Origin header if there is one, name this \
         server; refuse the others with status 403.",
    ),
    &attack(
        "attack-oversized-answer",
        Class::DenialOfService,
        Technique::Oversized,
        "a number in the arguments makes the answer too large or too late",
        "Give the number a maximum in the schema and enforce it.",
    ),
    &attack(
        "attack-huge-input",
        Class::DenialOfService,
        Technique::HugeInput,
        "a text of many megabytes ends or blocks the server",
        "Give the text a maxLength, and refuse longer texts before working on them.",
    ),
    &attack(
        "attack-deep-input",
        Class::DenialOfService,
        Technique::DeepInput,
        "deeply nested arguments end or block the server",
        "Limit the depth before descending into them.",
    ),
    &attack(
        "attack-slow-pattern",
        Class::DenialOfService,
        Technique::Pattern,
        "a pattern that backtracks blocks the server",
        "Use an engine without backtracking, or a time limit.",
    ),
    &attack(
        "attack-request-flood",
        Class::DenialOfService,
        Technique::Flood,
        "many concurrent calls crash or block the server",
        "Limit concurrent calls and refuse the rest; one client must not take the server down for all.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_every_class_has_attacks() {
        let ids: std::collections::BTreeSet<&str> =
            ATTACKS.iter().map(|attack| attack.id()).collect();
        assert_eq!(ids.len(), ATTACKS.len());
        use Class::{DenialOfService, Exfiltration, Injection, PrivilegeEscalation};
        for class in [Injection, Exfiltration, PrivilegeEscalation, DenialOfService] {
            assert!(ATTACKS.iter().any(|attack| attack.class == class), "{class:?}");
        }
        assert!(ATTACKS.iter().all(|attack| attack.rule.help.len() > 20));
    }
}

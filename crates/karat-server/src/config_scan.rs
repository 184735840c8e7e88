//! The servers of an editor's configuration, judged without starting them: secrets in clear, roots that are too
//! wide, tools that run without a question, packages without a version.

use std::collections::BTreeMap;

use karat_core::finding::{Finding, Severity};
use karat_io::secrets;
use karat_io::text::{clip, printable};
use serde_json::{Map, Value};

use crate::probe::Rule;

const SECRET: Rule = Rule {
    id: "config-secret",
    severity: Severity::Error,
    summary: "a secret is in clear in the configuration",
    help: "Everyone who can read the file has it, and it is in every backup. Write ${VARIABLE}, and rotate the \
           secret.",
};
const WIDE_ROOT: Rule = Rule {
    id: "config-wide-root",
    severity: Severity::Error,
    summary: "the server is given a whole disk, a home or a folder of the system",
    help: "A server that is misled can read everything below it. Name the folders that it needs.",
};
const APPROVES_ALL: Rule = Rule {
    id: "config-approves-all",
    severity: Severity::Error,
    summary: "every tool of the server runs without a question",
    help: "A text that a tool reads can then make it act. Approve single tools that only read.",
};
const APPROVES: Rule = Rule {
    id: "config-approves",
    severity: Severity::Warning,
    summary: "some tools of the server run without a question",
    help: "Keep to tools that only read.",
};
const PLAIN_HTTP: Rule = Rule {
    id: "config-plain-http",
    severity: Severity::Warning,
    summary: "the server is reached over plain http",
    help: "Everyone on the way reads and changes what is said, tokens included. Use https.",
};
const NO_VERSION: Rule = Rule {
    id: "config-no-version",
    severity: Severity::Note,
    summary: "the package is taken in whatever version is the latest",
    help: "Another version may be another server. Name one: package@1.2.3, package==1.2.3.",
};

/// Every rule.
#[must_use]
pub fn rules() -> [&'static Rule; 6] {
    [&SECRET, &WIDE_ROOT, &APPROVES_ALL, &APPROVES, &PLAIN_HTTP, &NO_VERSION]
}

/// Keys under which editors list tools that run without a question.
const APPROVALS: [&str; 5] =
    ["autoApprove", "alwaysAllow", "auto_approve", "always_allow", "autoApproveTools"];
/// Folders with more in them than a server needs.
const WIDE: [&str; 14] = [
    "/",
    "~",
    "$HOME",
    "${HOME}",
    "${env:HOME}",
    "/home",
    "/Users",
    "/root",
    "/etc",
    "/var",
    "/usr",
    "C:",
    "%USERPROFILE%",
    "${userHome}",
];
/// The columns of a value in a message.
const SHOWN: usize = 80;

/// Judges one entry of a configuration.
#[must_use]
pub fn judge(name: &str, entry: &Value) -> Vec<Finding> {
    let mut found = Found { server: name, findings: Vec::new() };
    let Some(entry) = entry.as_object() else { return found.findings };
    found.secrets(entry);
    found.check_command_line(&command_line(entry));
    found.approvals(entry);
    for key in ["url", "serverUrl", "httpUrl"] {
        if let Some(url) = entry.get(key).and_then(Value::as_str) {
            found.url(key, url);
        }
    }
    found.findings
}

/// The command of a server as one list of words.
fn command_line(entry: &Map<String, Value>) -> Vec<String> {
    let mut words = Vec::new();
    for key in ["command", "args"] {
        match entry.get(key) {
            Some(Value::String(text)) => words.push(text.clone()),
            Some(Value::Array(list)) => {
                words.extend(list.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            // Zed has both in one object.
            Some(Value::Object(inner)) => words.extend(command_line(&renamed(inner))),
            _ => {}
        }
    }
    words
}

fn renamed(inner: &Map<String, Value>) -> Map<String, Value> {
    let rename = |(key, value): (&String, &Value)| {
        let key = if key == "path" { "command" } else { key };
        (key.to_owned(), value.clone())
    };
    inner.iter().map(rename).collect()
}

struct Found<'a> {
    server: &'a str,
    findings: Vec<Finding>,
}

impl Found<'_> {
    fn add(&mut self, rule: &Rule, at: &str, message: String) {
        self.findings.push(Finding {
            rule: rule.id.to_owned(),
            severity: rule.severity,
            tool: self.server.to_owned(),
            at: at.to_owned(),
            message,
            seen: 1,
            ..Finding::default()
        });
    }

    /// Variables and headers. The value is never repeated.
    fn secrets(&mut self, entry: &Map<String, Value>) {
        for group in ["env", "headers", "environment", "http_headers", "requestInit"] {
            let Some(values) = entry.get(group).and_then(Value::as_object) else { continue };
            let texts: BTreeMap<&String, &str> =
                values.iter().filter_map(|(key, value)| Some((key, value.as_str()?))).collect();
            for (key, text) in texts {
                let is_secret = match group {
                    "headers" | "http_headers" => secrets::is_secret_header(key),
                    _ => false,
                };
                let is_secret = is_secret
                    || secrets::is_secret(key, text)
                    || !secrets::in_urls(text).is_empty();
                if is_literal(text) && is_secret && !text.is_empty() {
                    let message = format!("{group}.{key} has a secret in it");
                    self.add(&SECRET, &format!("/{group}/{key}"), message);
                }
            }
        }
        for key in ["bearer_token", "apiKey", "api_key", "token", "accessToken"] {
            if let Some(text) = entry.get(key).and_then(Value::as_str)
                && is_literal(text)
                && !text.is_empty()
            {
                self.add(&SECRET, &format!("/{key}"), format!("{key} has a secret in it"));
            }
        }
    }

    fn check_command_line(&mut self, words: &[String]) {
        let home = std::env::var("HOME").unwrap_or_default();
        for (at, word) in words.iter().enumerate() {
            let place = format!("/args/{}", at.saturating_sub(1));
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with('-') => (flag, value),
                _ => {
                    let before = at.checked_sub(1).and_then(|at| words.get(at));
                    let flag = before.filter(|word| word.starts_with('-'));
                    (flag.map_or("", String::as_str), word.as_str())
                }
            };
            let before = at.checked_sub(1).and_then(|at| words.get(at)).map(String::as_str);
            if at > 0 && is_literal(value) && !secrets::in_argument(word, before).is_empty() {
                let flag = if flag.is_empty() { "a URL or without a flag" } else { flag };
                self.add(&SECRET, &place, format!("an argument ({flag}) has a secret in it"));
            }
            let plain = value.trim_end_matches(['/', '\\']);
            let is_root = value == "/" || WIDE.contains(&plain) && !plain.is_empty();
            if at > 0 && (is_root || !home.is_empty() && plain == home) {
                self.add(&WIDE_ROOT, &place, format!("the argument {}", shown(value)));
            }
        }
        self.version(words);
    }

    /// Programs that fetch a package before they run it.
    fn version(&mut self, words: &[String]) {
        let program = words.first().map_or("", String::as_str);
        let program = program.rsplit(['/', '\\']).next().unwrap_or(program);
        let program = program.trim_end_matches(".cmd").trim_end_matches(".exe");
        let rest = words.get(1..).unwrap_or_default();
        let package = match program {
            "npx" | "bunx" | "pnpx" => rest.iter().find(|word| !word.starts_with('-')),
            "uvx" => rest.iter().find(|word| !word.starts_with('-')),
            _ => None,
        };
        let Some(package) = package else { return };
        let is_local = package.starts_with(['.', '/', '~']);
        let has_version = package.contains("==")
            || package.get(1..).is_some_and(|rest| {
                rest.split_once('@').is_some_and(|(_, version)| version != "latest")
            });
        if !is_local && !has_version {
            self.add(&NO_VERSION, "/args", format!("{program} {}", shown(package)));
        }
    }

    fn approvals(&mut self, entry: &Map<String, Value>) {
        if entry.get("trust") == Some(&Value::Bool(true)) {
            self.add(&APPROVES_ALL, "/trust", "trust is true".to_owned());
        }
        for key in APPROVALS {
            let at = format!("/{key}");
            match entry.get(key) {
                Some(Value::Bool(true)) => self.add(&APPROVES_ALL, &at, format!("{key} is true")),
                Some(Value::Array(tools)) if tools.iter().any(|tool| tool == "*") => {
                    self.add(&APPROVES_ALL, &at, format!("{key} has \"*\""));
                }
                Some(Value::Array(tools)) if !tools.is_empty() => {
                    let names: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
                    let names = names.join(", ");
                    self.add(&APPROVES, &at, format!("{key}: {}", shown(&names)));
                }
                _ => {}
            }
        }
    }

    fn url(&mut self, key: &str, url: &str) {
        let Some(rest) = url.strip_prefix("http://") else { return };
        let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
        if !matches!(host, "localhost" | "127.0.0.1" | "[") {
            self.add(&PLAIN_HTTP, &format!("/{key}"), shown(url));
        }
    }
}

/// Returns whether a text is the value itself and not a reference to one.
fn is_literal(text: &str) -> bool {
    !text.contains("${") && !text.starts_with('$') && !text.starts_with("env:")
}

fn shown(text: &str) -> String {
    clip(&printable(text), SHOWN).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(entry: &Value) -> Vec<String> {
        judge("s", entry).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn every_rule_has_an_entry_that_breaks_it_and_one_that_does_not() {
        let key = format!("sk-{}", "a1B2c3D4e5F6".repeat(3));
        for (rule, wrong, right) in [
            (
                "config-secret",
                json!({"command": "x", "env": {"API_KEY": key}}),
                json!({"command": "x", "env": {"API_KEY": "${API_KEY}", "MODE": "fast"}}),
            ),
            (
                "config-secret",
                json!({"command": "x", "args": ["--api-key", key]}),
                json!({"command": "x", "args": ["--api-key", "${KEY}"]}),
            ),
            (
                "config-wide-root",
                json!({"command": "files", "args": ["/"]}),
                json!({"command": "files", "args": ["/home/ada/project"]}),
            ),
            (
                "config-wide-root",
                json!({"command": "files", "args": ["--root=~/"]}),
                json!({"command": "files", "args": ["--root=~/notes"]}),
            ),
            (
                "config-approves-all",
                json!({"command": "x", "autoApprove": ["*"]}),
                json!({"command": "x", "autoApprove": []}),
            ),
            (
                "config-approves-all",
                json!({"command": "x", "trust": true}),
                json!({"trust": false}),
            ),
            (
                "config-approves",
                json!({"command": "x", "alwaysAllow": ["read"]}),
                json!({"command": "x"}),
            ),
            (
                "config-plain-http",
                json!({"url": "http://mcp.example.com/mcp"}),
                json!({"url": "http://127.0.0.1:3000/mcp"}),
            ),
            (
                "config-no-version",
                json!({"command": "npx", "args": ["-y", "@scope/server"]}),
                json!({"command": "npx", "args": ["-y", "@scope/server@1.2.3"]}),
            ),
            (
                "config-no-version",
                json!({"command": "uvx", "args": ["mcp-server-time"]}),
                json!({"command": "uvx", "args": ["mcp-server-time==1.0"]}),
            ),
        ] {
            assert_eq!(found(&wrong), [rule], "{wrong}");
            assert_eq!(found(&right), [""; 0], "{right}");
        }
    }

    #[test]
    fn no_finding_repeats_a_secret() {
        let key = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let entry = json!({"command": "x", "args": [format!("--token={key}")],
                           "headers": {"Authorization": format!("Bearer {key}")}});
        let findings = judge("s", &entry);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(!serde_json::to_string(&findings).unwrap().contains(&key[4..]));
    }
}

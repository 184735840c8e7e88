//! Rules about tool names.

use std::collections::BTreeMap;

use karat_core::finding::Severity;

use super::{Findings, Server};
use crate::probe::Rule;

/// The longest name that every client accepts.
const MAX_LENGTH: usize = 64;

pub(super) const INVALID: Rule = Rule {
    id: "name-invalid",
    severity: Severity::Error,
    summary: "the name is missing, or has characters that clients refuse",
    help: "Use letters, digits, `_`, `-` and `.`, at most 64 of them: the model interfaces that \
           clients pass names on to refuse others, and then the whole list of tools is refused.",
};

pub(super) const DUPLICATE: Rule = Rule {
    id: "name-duplicate",
    severity: Severity::Error,
    summary: "two tools of the server have the same name",
    help: "A call has only the name, so one of the two can never be called. Rename one.",
};

pub(super) fn invalid(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/name", |tool| {
        let name = tool.name();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() {
            return Some("the tool has no name".to_owned());
        }
        if let Some(bad) = name.chars().find(|c| !is_allowed(*c)) {
            return Some(format!("the name contains the character {bad:?}"));
        }
        let length = name.len();
        (length > MAX_LENGTH)
            .then(|| format!("the name has {length} characters, more than {MAX_LENGTH}"))
    });
}

pub(super) fn duplicate(server: &Server<'_>, findings: &mut Findings<'_>) {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, tool) in server.tools.iter().enumerate() {
        if tool.name().is_empty() {
            continue;
        }
        if let Some(earlier) = first.get(tool.name()) {
            let message = format!("tool {} of the list has the same name", earlier + 1);
            findings.tool(index, tool, "/name", message);
        } else {
            first.insert(tool.name(), index);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{found, tools};
    use super::*;

    #[test]
    fn names_that_clients_refuse_are_found() {
        let long = "a".repeat(65);
        let definitions = [
            json!({"name": "get_user-v1.2"}),
            json!({"name": "get user"}),
            json!({"name": "größe"}),
            json!({"name": long}),
            json!({}),
        ];
        assert_eq!(tools(&INVALID, &definitions), ["get user", "größe", long.as_str(), ""]);
    }

    #[test]
    fn a_second_tool_with_the_same_name_is_found() {
        let definitions = [json!({"name": "a"}), json!({"name": "b"}), json!({"name": "a"})];
        let found = found(&DUPLICATE, &definitions);
        assert_eq!(found.len(), 1);
        assert!(found[0].2.contains("tool 1 "), "{}", found[0].2);
    }
}

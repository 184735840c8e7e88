//! Rules about annotations.

use karat_core::finding::Severity;

use super::{Findings, Server};
use crate::probe::Rule;
use crate::probe::destructive_tools::is_in;

pub(super) const MISSING: Rule = Rule {
    id: "annotations-missing",
    severity: Severity::Note,
    summary: "the tool does not declare whether it only reads",
    help: "Without `readOnlyHint` a client must assume that the tool changes things and may destroy \
           them, and asks the user each time.",
};

pub(super) const CONTRADICTION: Rule = Rule {
    id: "annotations-contradict",
    severity: Severity::Warning,
    summary: "annotations contradict each other or the name",
    help: "A client that trusts `readOnlyHint` does not ask before a call. Correct the hint.",
};

/// Words with which the names of tools begin that change something.
const CHANGES: &str = "create update delete remove write send insert drop move rename upload publish \
    merge kill";

pub(super) fn missing(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/annotations", |tool| match tool.hint("readOnlyHint") {
        None => Some("missing readOnlyHint".to_owned()),
        Some(_) => None,
    });
}

pub(super) fn contradiction(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/annotations/readOnlyHint", |tool| {
        if tool.hint("readOnlyHint") != Some(true) {
            return None;
        }
        if tool.hint("destructiveHint") == Some(true) {
            return Some("readOnlyHint and destructiveHint are both true".to_owned());
        }
        let first = first_word(tool.name());
        is_in(&first, CHANGES)
            .then(|| format!("readOnlyHint is true, and the name begins with {first:?}"))
    });
}

/// The first word of a name in snake_case, kebab-case or camelCase, in lower case.
fn first_word(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && !word.is_empty()) {
            break;
        }
        word.extend(c.to_lowercase());
    }
    word
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::tools;
    use super::*;

    #[test]
    fn a_tool_without_a_read_only_hint_is_found() {
        let definitions = [
            json!({"name": "a"}),
            json!({"name": "b", "annotations": {"title": "B"}}),
            json!({"name": "c", "annotations": {"readOnlyHint": false}}),
        ];
        assert_eq!(tools(&MISSING, &definitions), ["a", "b"]);
    }

    #[test]
    fn a_read_only_tool_that_deletes_is_found() {
        let read = json!({"readOnlyHint": true});
        let definitions = [
            json!({"name": "deleteFile", "annotations": read}),
            json!({"name": "delete_file", "annotations": read}),
            json!({"name": "get_deleted_files", "annotations": read}),
            json!({"name": "x", "annotations": {"readOnlyHint": true, "destructiveHint": true}}),
            json!({"name": "create_file", "annotations": {"readOnlyHint": false}}),
        ];
        assert_eq!(tools(&CONTRADICTION, &definitions), ["deleteFile", "delete_file", "x"]);
    }
}

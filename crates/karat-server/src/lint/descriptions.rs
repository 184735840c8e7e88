//! Rules about the descriptions of tools.

use std::collections::BTreeMap;

use super::{Findings, Rule, Server, Severity};

/// Fewer words than this cannot say what a tool does and when to use it.
const FEW_WORDS: usize = 4;

pub(super) const MISSING: Rule = Rule {
    id: "description-missing",
    severity: Severity::Error,
    summary: "the tool has no description",
    help: "A model chooses by the description; without one it has the name alone. Say what the \
           tool does, when to use it and what comes back.",
    check: missing,
};

pub(super) const SHORT: Rule = Rule {
    id: "description-short",
    severity: Severity::Warning,
    summary: "the description has fewer than four words",
    help: "A description that repeats the name tells nothing new. Say what the tool does and when \
           to use it rather than another.",
    check: short,
};

pub(super) const DUPLICATE: Rule = Rule {
    id: "description-duplicate",
    severity: Severity::Warning,
    summary: "two tools have the same description",
    help: "A model cannot tell the two apart, nor can a search. Say what differs.",
    check: duplicate,
};

/// A script without spaces has no words to count: one character of it says about as much as half a
/// word of others.
fn words(text: &str) -> usize {
    let dense = text
        .chars()
        .filter(|c| matches!(u32::from(*c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0x0e00..=0x0e7f))
        .count();
    text.split_whitespace().count().max(dense.div_ceil(2))
}

fn missing(server: &Server<'_>, findings: &mut Findings<'_>) {
    for (index, tool) in server.tools.iter().enumerate() {
        if tool.description().is_none() {
            findings.tool(index, tool, "/description", "there is no description".to_owned());
        }
    }
}

fn short(server: &Server<'_>, findings: &mut Findings<'_>) {
    for (index, tool) in server.tools.iter().enumerate() {
        let Some(description) = tool.description() else { continue };
        let words = words(description);
        if words < FEW_WORDS {
            let message = format!("the description has {words} words");
            findings.tool(index, tool, "/description", message);
        }
    }
}

fn duplicate(server: &Server<'_>, findings: &mut Findings<'_>) {
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    for (index, tool) in server.tools.iter().enumerate() {
        let Some(description) = tool.description() else { continue };
        let text = description.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        if let Some(earlier) = first.get(&text) {
            let other = server.tools[*earlier].name();
            findings.tool(index, tool, "/description", format!("{other} has the same description"));
        } else {
            first.insert(text, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::tools;
    use super::*;

    #[test]
    fn a_blank_description_is_missing() {
        let definitions = [
            json!({"name": "a"}),
            json!({"name": "b", "description": " \n"}),
            json!({"name": "c", "description": "Reads a file from disk"}),
        ];
        assert_eq!(tools(&MISSING, &definitions), ["a", "b"]);
    }

    #[test]
    fn a_description_without_spaces_is_not_short_for_that() {
        let definitions = [
            json!({"name": "a", "description": "Get user"}),
            json!({"name": "b", "description": "指定したファイルを読み込みます"}),
            json!({"name": "c", "description": "Reads a whole file"}),
        ];
        assert_eq!(tools(&SHORT, &definitions), ["a"]);
    }

    #[test]
    fn equal_descriptions_are_found_whatever_their_spacing() {
        let definitions = [
            json!({"name": "a", "description": "Reads one file."}),
            json!({"name": "b", "description": "reads  one\nfile."}),
        ];
        assert_eq!(tools(&DUPLICATE, &definitions), ["b"]);
    }
}

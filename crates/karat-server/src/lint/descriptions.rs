//! Rules about the descriptions of tools.

use std::collections::BTreeMap;

use karat_core::finding::Severity;

use super::{Findings, Server};
use crate::probe::Rule;

/// The number of words below which a description cannot say what a tool does and when to use it.
const FEW_WORDS: usize = 4;

pub(super) const MISSING: Rule = Rule {
    id: "description-missing",
    severity: Severity::Error,
    summary: "the tool has no description",
    help: "A model chooses by the description; without one it has only the name. State what the tool does, \
           when to use it and what it returns.",
};

pub(super) const SHORT: Rule = Rule {
    id: "description-short",
    severity: Severity::Warning,
    summary: "the description has fewer than four words",
    help: "A description that repeats the name adds nothing. Say what the tool does and when to use \
           it instead of another.",
};

pub(super) const DUPLICATE: Rule = Rule {
    id: "description-duplicate",
    severity: Severity::Warning,
    summary: "two tools have the same description",
    help: "Neither a model nor a search can tell the two apart. Say what differs.",
};

/// The number of words. In a script without spaces, two characters count as a word.
fn word_count(text: &str) -> usize {
    let dense = text
        .chars()
        .filter(|c| matches!(u32::from(*c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0x0e00..=0x0e7f))
        .count();
    text.split_whitespace().count().max(dense.div_ceil(2))
}

pub(super) fn missing(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/description", |tool| match tool.description() {
        None => Some("missing description".to_owned()),
        Some(_) => None,
    });
}

pub(super) fn short(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/description", |tool| {
        let words = word_count(tool.description()?);
        (words < FEW_WORDS).then(|| format!("the description has {words} words"))
    });
}

pub(super) fn duplicate(server: &Server<'_>, findings: &mut Findings<'_>) {
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
    fn a_description_in_a_script_without_spaces_is_not_short() {
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

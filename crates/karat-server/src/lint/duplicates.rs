//! The rule about tools whose definitions are nearly the same.

use std::collections::BTreeSet;

use karat_core::finding::Severity;

use super::definition::Definition;
use super::{Findings, Server};
use crate::probe::Rule;
use crate::probe::destructive_tools::{is_in, split_name};

/// The share of common words that makes two tools near-duplicates.
const SHARED: f64 = 0.8;
/// The number of words below which sharing most of them means little.
const ENOUGH_WORDS: usize = 6;

pub(super) const NEAR_DUPLICATE: Rule = Rule {
    id: "near-duplicate",
    severity: Severity::Warning,
    summary: "two tools share at least four fifths of their words",
    help: "A model chooses between them by chance. Merge them, with a parameter for what differs, or \
           say in each description when to use it and not the other.",
};

/// The words of name, description and parameter names.
fn tokenize(tool: &Definition<'_>) -> BTreeSet<String> {
    let mut text = format!("{} {}", tool.name(), tool.description().unwrap_or_default());
    for parameter in tool.parameters() {
        text.push(' ');
        text.push_str(&parameter.name);
    }
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

pub(super) fn near_duplicate(server: &Server<'_>, findings: &mut Findings<'_>) {
    let words: Vec<BTreeSet<String>> = server.tools.iter().map(tokenize).collect();
    for (index, tool) in server.tools.iter().enumerate() {
        // Equal descriptions are a finding of their own.
        let nearest = (0..index)
            .filter(|other| server.tools[*other].description() != tool.description())
            .filter(|other| !differ_by_verb(server.tools[*other].name(), tool.name()))
            .map(|other| (other, jaccard(&words[other], &words[index])))
            .filter(|(_, shared)| *shared >= SHARED)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        if let Some((other, shared)) = nearest {
            let other = server.tools[other].name();
            let message = format!("shares {:.0} % of its words with {other}", shared * 100.0);
            findings.tool(index, tool, "/description", message);
        }
    }
}

/// Verbs of names: tools that do different things to the same thing are not duplicates.
const VERBS: &str = "\
    add append apply approve archive block cancel check close copy count create delete disable edit \
    enable export fetch find get import insert list lock merge move open patch pause post pull push put \
    read reject remove rename reopen replace reset restart restore resume revoke rollback run save scale \
    search send set show start stop subscribe sync undo unlock unsubscribe update upload validate view write";

fn differ_by_verb(one: &str, other: &str) -> bool {
    let (one, other) = (split_name(one), split_name(other));
    let has_own_verb = |own: &[String], others: &[String]| {
        own.iter().any(|word| is_in(word, VERBS) && !others.contains(word))
    };
    has_own_verb(&one, &other) && has_own_verb(&other, &one)
}

fn jaccard(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    // Two sets whose sizes differ too much cannot share enough words.
    let (small, large) = (a.len().min(b.len()), a.len().max(b.len()));
    if small < ENOUGH_WORDS || (small as f64) < SHARED * large as f64 {
        return 0.0;
    }
    let common = a.intersection(b).count();
    common as f64 / (a.len() + b.len() - common) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::found;
    use super::*;

    #[test]
    fn tools_that_differ_in_a_word_are_found_and_related_tools_are_not() {
        let definitions = [
            json!({"name": "list_open_issues", "description": "Lists the open issues of a repository, newest first, with labels and authors."}),
            json!({"name": "list_closed_issues", "description": "Lists the closed issues of a repository, newest first, with labels and authors."}),
            json!({"name": "create_issue", "description": "Opens a new issue in a repository with title, body and labels."}),
        ];
        let found = found(&NEAR_DUPLICATE, &definitions);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "list_closed_issues");
        assert!(found[0].2.ends_with("with list_open_issues"), "{}", found[0].2);
    }
}

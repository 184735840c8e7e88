//! The quality of a tools dataset, checked by measuring it.
//!
//! Near-identical descriptions may be only inside a declared group; a query must not repeat the
//! words of the tool it asks for, unless it is of kind `direct`; a server's queries must not be
//! spread over train and test. Each breach is a [`DataFinding`] that names what to change.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::finding::DataFinding;

use crate::dataset::{Dataset, Query, Tool};
use crate::engines::bm25::own_text;
use crate::engines::terms::Stems;
use crate::engines::words::tokenize;

/// Two descriptions that share so much of their word pairs are near-identical.
const NEAR_IDENTICAL: f64 = 0.6;
/// The largest share of a query's content words that its tool may have too.
const LARGEST_OVERLAP: f64 = 0.5;
const SPLITS: [&str; 3] = ["train", "dev", "test"];

/// Words that carry grammar and not content.
const STOP_WORDS: &str = "a an the of to in on at for from by with and or not is are was be been as \
    it its this that these those into out over under up down all any each which what when where who \
    how do does did can could will would should must may might i me my we us our you your they them \
    their he she his her there here then than so if but no yes please need want like get let";

/// More of them, for [`shared_words`]: pronouns, forms of auxiliary verbs and adverbs of degree or place.
const FUNCTION_WORDS: &str = "about after again also already always am another before being both done down \
    ever everything few had has have having however just more most never none nor now off once only \
    onto other own same shall she some such still too very were whatever whichever whom why without \
    yet ll re ve don doesn isn aren wasn";

/// All findings, in the order of the rules.
pub fn audit(dataset: &Dataset) -> Vec<DataFinding> {
    let mut findings = Vec::new();
    groups(dataset, &mut findings);
    near_identical(dataset, &mut findings);
    let tools: BTreeMap<&str, &Tool> =
        dataset.tools.iter().map(|tool| (tool.tool_id.as_str(), tool)).collect();
    let stop: BTreeSet<&str> = STOP_WORDS.split_whitespace().collect();
    for query in &dataset.queries {
        shape(query, &mut findings);
        if query.kind.as_deref() != Some("direct") {
            overlap(query, &tools, &stop, &mut findings);
        }
    }
    leaks(dataset, &mut findings);
    findings
}

fn finding(rule: &'static str, id: &str, message: String) -> DataFinding {
    DataFinding::new(id, rule, message)
}

fn groups(dataset: &Dataset, findings: &mut Vec<DataFinding>) {
    for group in &dataset.groups {
        let servers: BTreeSet<&str> = group
            .tools
            .iter()
            .filter_map(|id| id.split_once(':').map(|(server, _)| server))
            .collect();
        if servers.len() < 2 {
            findings.push(finding(
                "group",
                &group.id,
                "the group needs tools of two servers".to_owned(),
            ));
        }
    }
}

fn near_identical(dataset: &Dataset, findings: &mut Vec<DataFinding>) {
    let mut together: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for group in &dataset.groups {
        for tool in &group.tools {
            together.entry(tool).or_default().insert(&group.id);
        }
    }
    let pairs: Vec<BTreeSet<(String, String)>> =
        dataset.tools.iter().map(|tool| word_pairs(&tool.description)).collect();
    // Only descriptions that share a pair of words can be near-identical: go by shared pairs.
    let mut by_pair: BTreeMap<&(String, String), Vec<usize>> = BTreeMap::new();
    for (index, set) in pairs.iter().enumerate() {
        for pair in set {
            by_pair.entry(pair).or_default().push(index);
        }
    }
    let mut shared: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for holders in by_pair.values() {
        for (position, &left) in holders.iter().enumerate() {
            for &right in &holders[position + 1..] {
                *shared.entry((left, right)).or_default() += 1;
            }
        }
    }
    for ((left, right), common) in shared {
        let union = pairs[left].len() + pairs[right].len() - common;
        let likeness = common as f64 / union as f64;
        let (a, b) = (&dataset.tools[left].tool_id, &dataset.tools[right].tool_id);
        let declared = together
            .get(a.as_str())
            .zip(together.get(b.as_str()))
            .is_some_and(|(a, b)| !a.is_disjoint(b));
        if likeness >= NEAR_IDENTICAL && !declared {
            let message = format!(
                "its description is {:.0} % identical to the description of {b}, but they share no group",
                100.0 * likeness
            );
            findings.push(finding("near_identical", a, message));
        }
    }
}

fn word_pairs(text: &str) -> BTreeSet<(String, String)> {
    let words = tokenize(text);
    words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

fn shape(query: &Query, findings: &mut Vec<DataFinding>) {
    let mut wrong = |rule, message: String| findings.push(finding(rule, &query.id, message));
    // Kinds are for slices, and everyone has their own; a split has a meaning.
    if query.kind.is_none() {
        wrong("kind", "missing kind".to_owned());
    }
    match query.split.as_deref() {
        Some(split) if SPLITS.contains(&split) => {}
        Some(split) => {
            wrong("split", format!("split is {split:?}; expected one of {}", SPLITS.join(", ")));
        }
        None => wrong("split", format!("missing split; expected one of {}", SPLITS.join(", "))),
    }
    let grade = |wanted: u8| query.labels.iter().filter(|label| label.relevance == wanted).count();
    if grade(2) == 0 && query.should_trigger != Some(false) {
        wrong("labels", "no label has relevance 2".to_owned());
    }
    if query.kind.as_deref() == Some("near_duplicate") && grade(0) == 0 {
        wrong("labels", "a near_duplicate query labels the wrong siblings 0".to_owned());
    }
    if query.kind.as_deref() == Some("multi") && grade(2) + grade(1) < 2 {
        wrong("labels", "a multi query has at least two relevant tools".to_owned());
    }
    let text = query.query.to_lowercase();
    for label in query.labels.iter().filter(|label| label.relevance > 0) {
        let name = label.tool_id.split_once(':').map_or("", |(_, name)| name).to_lowercase();
        // A name of one plain word (`search`) is a word like any other.
        if name.contains(['_', '-']) && text.contains(&name) {
            wrong("names_tool", format!("it names the tool {}", label.tool_id));
        }
    }
}

fn overlap(
    query: &Query,
    tools: &BTreeMap<&str, &Tool>,
    stop: &BTreeSet<&str>,
    findings: &mut Vec<DataFinding>,
) {
    let content = |text: &str| -> BTreeSet<String> {
        tokenize(text)
            .into_iter()
            .filter(|word| word.len() > 1 && !stop.contains(word.as_str()))
            .map(|word| stem(&word))
            .collect()
    };
    let asked = content(&query.query);
    for label in query.labels.iter().filter(|label| label.relevance == 2) {
        let Some(tool) = tools.get(label.tool_id.as_str()) else { continue };
        let offered = content(&format!("{} {}", tool.tool, first_sentence(&tool.description)));
        let common = asked.intersection(&offered).count();
        if common as f64 > LARGEST_OVERLAP * asked.len() as f64 {
            let message = format!(
                "{common} of its {} content words are in the name and first sentence of {}",
                asked.len(),
                label.tool_id
            );
            findings.push(finding("overlap", &query.id, message));
        }
    }
}

/// The content words of a query whose stems are anywhere in its tool: in the name, title, description or
/// parameters. A search that goes by words can find the tool only by these.
pub fn shared_words(query: &str, tool: &Tool) -> BTreeSet<String> {
    let stems = Stems::new();
    let offered: BTreeSet<String> =
        stems.of(&own_text(tool)).into_iter().map(|(_, term)| term).collect();
    let stop: BTreeSet<&str> =
        STOP_WORDS.split_whitespace().chain(FUNCTION_WORDS.split_whitespace()).collect();
    let asked = stems.of(query).into_iter();
    let asked = asked.filter(|(word, _)| word.len() > 1 && !stop.contains(word.as_str()));
    asked.filter(|(_, term)| offered.contains(term)).map(|(word, _)| word).collect()
}

fn first_sentence(text: &str) -> &str {
    let mut previous = ' ';
    for (at, letter) in text.char_indices() {
        if letter == '\n' || (letter.is_whitespace() && matches!(previous, '.' | '!' | '?')) {
            return &text[..at];
        }
        previous = letter;
    }
    text
}

/// A rough stem, so that `files` and `file` are one word.
fn stem(word: &str) -> String {
    for ending in ["ing", "ed", "es", "s"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= 3
        {
            return stem.to_owned();
        }
    }
    word.to_owned()
}

/// A server whose queries are in both train and test lets a tuned description leak into the score.
fn leaks(dataset: &Dataset, findings: &mut Vec<DataFinding>) {
    let mut splits: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for query in &dataset.queries {
        let Some(split) = query.split.as_deref() else { continue };
        for label in query.labels.iter().filter(|label| label.relevance > 0) {
            let server = label.tool_id.split_once(':').map_or("", |(server, _)| server);
            splits.entry(server).or_default().entry(split).or_insert(&query.id);
        }
    }
    for (server, found) in splits {
        if let (Some(train), Some(test)) = (found.get("train"), found.get("test")) {
            let message = format!("has queries in train ({train}) and in test ({test})");
            findings.push(finding("leak", server, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use karat_core::report::DatasetRef;

    use super::*;
    use crate::dataset::{Group, Label};

    fn tool(id: &str, description: &str) -> Tool {
        let (server, name) = id.split_once(':').unwrap();
        Tool {
            tool_id: id.to_owned(),
            server: server.to_owned(),
            tool: name.to_owned(),
            description: description.to_owned(),
            ..Tool::default()
        }
    }

    #[test]
    fn words_are_shared_by_stem_and_grammar_does_not_count() {
        let mut tool = tool("s:open_ticket", "Files an issue about the thing.");
        tool.input_schema = serde_json::json!({"properties": {"severity": {"type": "string"}}});
        let shared = |query: &str| shared_words(query, &tool).into_iter().collect::<Vec<_>>();
        assert_eq!(
            shared("I am filing severities, opened by the team"),
            ["filing", "opened", "severities"]
        );
        assert!(shared("tell them about the broken lamp").is_empty());
    }

    fn query(id: &str, text: &str, kind: &str, split: &str, labels: &[(&str, u8)]) -> Query {
        Query {
            id: id.to_owned(),
            query: text.to_owned(),
            labels: labels
                .iter()
                .map(|(id, relevance)| Label { tool_id: (*id).to_owned(), relevance: *relevance })
                .collect(),
            kind: Some(kind.to_owned()),
            split: Some(split.to_owned()),
            ..Query::default()
        }
    }

    fn dataset(queries: Vec<Query>) -> Dataset {
        Dataset {
            reference: DatasetRef { id: "d".into(), version: "v1".into(), digest: "x".into() },
            tools: vec![
                tool("a:open_ticket", "Create a ticket in the tracker of a project. More."),
                tool("b:new_issue", "Create a ticket in the tracker of a project. Less."),
                tool("c:mail", "Send a letter."),
            ],
            queries,
            groups: vec![],
            dangling: vec![],
            ..Dataset::default()
        }
    }

    fn found(dataset: &Dataset) -> Vec<String> {
        audit(dataset).into_iter().map(|finding| finding.id).collect()
    }

    #[test]
    fn twins_need_a_declared_group() {
        let mut dataset = dataset(vec![]);
        assert_eq!(found(&dataset), ["a:open_ticket"]);
        dataset.groups = vec![Group {
            id: "g".into(),
            tools: vec!["a:open_ticket".into(), "b:new_issue".into()],
            why: None,
        }];
        assert!(found(&dataset).is_empty());
    }

    #[test]
    fn each_rule_finds_its_breach() {
        let right = ("c:mail", 2);
        let cases = [
            (query("overlap", "send letters", "paraphrase", "test", &[right]), true),
            (query("direct", "send letters", "direct", "test", &[right]), false),
            (query("kind", "post something", "other", "test", &[right]), false),
            (query("split", "post something", "direct", "validation", &[right]), true),
            (query("grade", "post something", "direct", "test", &[("c:mail", 1)]), true),
            (query("sibling", "post something", "near_duplicate", "test", &[right]), true),
            (query("single", "post something", "multi", "test", &[right]), true),
            (query("name", "use open_ticket now", "direct", "test", &[("a:open_ticket", 2)]), true),
        ];
        for (query, breach) in cases {
            let id = query.id.clone();
            let dataset = dataset(vec![query]);
            assert_eq!(found(&dataset).contains(&id), breach, "{id}: {:?}", audit(&dataset));
        }
    }

    #[test]
    fn a_server_in_train_and_test_leaks() {
        let dataset = dataset(vec![
            query("q1", "post something", "direct", "train", &[("c:mail", 2)]),
            query("q2", "write home", "direct", "test", &[("c:mail", 2)]),
        ]);
        assert!(found(&dataset).contains(&"c".to_owned()));
    }
}

//! BM25 over the parts of a tool definition.
//!
//! Four fields, name and title weighing most; words are split as names need it (`words`),
//! stop words dropped, the rest stemmed (`terms`). Tools are indexed in the order of their
//! ids, so equal scores come out by id and two builds of one corpus answer alike.

use std::fmt::Write as _;

use serde_json::Value;

use super::editable::{Editable, Replaced};
use super::engine::Engine;
use super::index::{Builder, Index};
use crate::dataset::Tool;
use crate::ranking::Ranked;

/// The weights of name, title, description and schema text.
const WEIGHTS: [f32; 4] = [2.0, 1.5, 1.0, 0.4];

/// A schema deeper than this is not descended into.
const SCHEMA_DEPTH: usize = 12;

/// The parts of a tool that are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// Name, title, description and schema text.
    All,
    /// Only the name: what is left when descriptions are removed.
    NameOnly,
}

/// The index.
pub struct Bm25 {
    /// The id of each document, by its number.
    ids: Vec<String>,
    index: Index<{ WEIGHTS.len() }>,
}

impl Bm25 {
    /// Indexes a corpus, which must be sorted by id.
    pub fn build(tools: &[Tool], parts: Fields) -> Bm25 {
        let mut builder = Builder::new(WEIGHTS);
        for tool in tools {
            with_fields(tool, parts, |fields| builder.add(fields));
        }
        let ids = tools.iter().map(|tool| tool.tool_id.clone()).collect();
        Bm25 { ids, index: builder.finish() }
    }
}

/// Calls `take` with the texts of a tool that are indexed.
fn with_fields<T>(tool: &Tool, parts: Fields, take: impl FnOnce([&[&str]; 4]) -> T) -> T {
    let name: &[&str] = &[&tool.server, &tool.tool];
    match parts {
        Fields::NameOnly => take([name, &[], &[], &[]]),
        Fields::All => {
            let title = tool.title.as_deref().unwrap_or_default();
            let schema = schema_text(&tool.input_schema);
            take([name, &[title], &[&tool.description], &[&schema]])
        }
    }
}

/// BM25 over a corpus of which a few tools are others for each search.
pub(crate) struct EditableBm25 {
    ids: Vec<String>,
    parts: Fields,
    index: Editable<{ WEIGHTS.len() }>,
}

/// Some tools in another wording, by their place in the corpus.
pub(crate) struct Rewording(Vec<Replaced<{ WEIGHTS.len() }>>);

impl EditableBm25 {
    /// Indexes a corpus, which must be sorted by id.
    pub(crate) fn build(tools: &[Tool], parts: Fields) -> EditableBm25 {
        let ids = tools.iter().map(|tool| tool.tool_id.clone()).collect();
        let mut index = Editable::empty(WEIGHTS);
        for tool in tools {
            with_fields(tool, parts, |fields| index.add(fields));
        }
        EditableBm25 { ids, parts, index }
    }

    /// Prepares tools, given in the order of their places, for searches.
    pub(crate) fn reworded<'t>(&self, tools: impl Iterator<Item = (usize, &'t Tool)>) -> Rewording {
        let replaced = tools.map(|(place, tool)| {
            with_fields(tool, self.parts, |fields| self.index.document(place, fields))
        });
        Rewording(replaced.collect())
    }

    /// The best tools where some are reworded.
    pub(crate) fn search(&self, rewording: &Rewording, query: &str, limit: usize) -> Vec<Ranked> {
        let found = self.index.search(&rewording.0, query, limit);
        found.into_iter().map(|(doc, score)| ranked(&self.ids[doc], score)).collect()
    }
}

fn ranked(id: &str, score: f32) -> Ranked {
    Ranked { tool_id: id.to_owned(), score: Some(f64::from(score)) }
}

impl Engine for Bm25 {
    fn search(&self, query: &str, limit: usize) -> Vec<Ranked> {
        let found = self.index.search(query, limit);
        found.into_iter().map(|(doc, score)| ranked(&self.ids[doc], score)).collect()
    }
}

/// The texts of a tool that are indexed, without the name of its server.
pub(crate) fn own_text(tool: &Tool) -> String {
    with_fields(tool, Fields::All, |[_, title, description, schema]| {
        [&[tool.tool.as_str()], title, description, schema].concat().join(" ")
    })
}

/// The words of a schema that say what a tool takes: property names, descriptions and enum values.
fn schema_text(schema: &Value) -> String {
    let mut text = String::new();
    collect(schema, SCHEMA_DEPTH, &mut text);
    text
}

fn collect(schema: &Value, depth: usize, text: &mut String) {
    let (Some(object), true) = (schema.as_object(), depth > 0) else { return };
    if let Some(description) = object.get("description").and_then(Value::as_str) {
        let _ = write!(text, " {description}");
    }
    for value in object.get("enum").and_then(Value::as_array).into_iter().flatten() {
        if let Some(value) = value.as_str() {
            let _ = write!(text, " {value}");
        }
    }
    for keyword in ["properties", "$defs", "definitions"] {
        for (name, part) in object.get(keyword).and_then(Value::as_object).into_iter().flatten() {
            let _ = write!(text, " {name}");
            collect(part, depth - 1, text);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(part) = object.get(keyword) {
            collect(part, depth - 1, text);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for part in object.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            collect(part, depth - 1, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(id: &str, description: &str, schema: Value) -> Tool {
        let (server, name) = id.split_once(':').unwrap();
        Tool {
            tool_id: id.to_owned(),
            server: server.to_owned(),
            tool: name.to_owned(),
            description: description.to_owned(),
            input_schema: schema,
            ..Tool::default()
        }
    }

    fn corpus() -> Vec<Tool> {
        vec![
            tool("a:createIssue", "Opens a ticket.", json!({"properties": {"assignee": {}}})),
            tool("b:list_files", "Shows what a folder holds.", Value::Null),
            tool("c:send_mail", "Delivers a message.", json!({"properties": {"recipient": {}}})),
        ]
    }

    fn ids(engine: &Bm25, query: &str) -> Vec<String> {
        engine.search(query, 10).into_iter().map(|ranked| ranked.tool_id).collect()
    }

    #[test]
    fn names_descriptions_and_parameters_are_all_found() {
        let engine = Bm25::build(&corpus(), Fields::All);
        assert_eq!(ids(&engine, "creating issues"), ["a:createIssue"]);
        assert_eq!(ids(&engine, "folders"), ["b:list_files"]);
        assert_eq!(ids(&engine, "recipients"), ["c:send_mail"]);
        assert!(ids(&engine, "the of and").is_empty());
    }

    #[test]
    fn without_descriptions_only_names_are_found() {
        let engine = Bm25::build(&corpus(), Fields::NameOnly);
        assert!(ids(&engine, "folders").is_empty());
        assert_eq!(ids(&engine, "mail"), ["c:send_mail"]);
    }

    #[test]
    fn equal_scores_come_by_id() {
        let tools: Vec<Tool> =
            (0..50).map(|n| tool(&format!("s{n:02}:same"), "Same words.", Value::Null)).collect();
        let engine = Bm25::build(&tools, Fields::All);
        let expected: Vec<String> = (0..10).map(|n| format!("s{n:02}:same")).collect();
        assert_eq!(ids(&engine, "same words"), expected);
    }

    #[test]
    fn hostile_queries_and_schemas_are_only_words() {
        let mut deep = json!({"description": "bottom"});
        for _ in 0..100 {
            deep = json!({"items": deep});
        }
        let hostile = tool("a:b", "x\u{0}\u{202e}y", deep);
        let engine = Bm25::build(&[hostile, tool("c:d", "plain", Value::Null)], Fields::All);
        for query in ["\" AND (x", "*x~2", "name:x OR", "\u{0}x\u{202e}", &"x ".repeat(100_000)] {
            assert_eq!(ids(&engine, query), ["a:b"], "{query:.20}");
        }
        for query in ["", "\" (", "*", "\u{0}", "\u{202e}", "bottom"] {
            assert!(ids(&engine, query).is_empty(), "{query:?}");
        }
        assert_eq!(ids(&engine, "plain -plain NOT plain"), ["c:d"]);
    }
}

//! BM25 over the parts of a tool definition, on tantivy.
//!
//! Four fields, name and title weighing most; words are split as names need it ([`super::words`]),
//! stop words dropped, the rest stemmed. One segment whatever the size of the corpus, documents in the
//! order of their ids, so equal scores come out by id and two builds of one corpus answer alike.

use std::fmt::Write as _;

use serde_json::Value;
use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    Language, RemoveLongFilter, Stemmer, StopWordFilter, TextAnalyzer, Token, TokenizerManager,
    WhitespaceTokenizer,
};
use tantivy::{Index, IndexReader, TantivyDocument, Term};

use super::{Engine, words::words};
use crate::dataset::Tool;
use crate::system::Ranked;

/// What tantivy's tables are first sized for; they grow with the corpus.
const WRITER_BYTES: usize = 64 << 20;
/// Words longer than this are data, not language.
const LONGEST_WORD: usize = 64;
/// A schema deeper than this is not descended into.
const SCHEMA_DEPTH: usize = 12;

const ANALYZER: &str = "tool-words";

/// Which parts of a tool are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// Name, title, description and schema text.
    All,
    /// Only the name: what is left when descriptions are removed.
    NameOnly,
}

/// The index.
pub struct Bm25 {
    reader: IndexReader,
    analyzer: TextAnalyzer,
    /// The id of each document, by its number.
    ids: Vec<String>,
    /// The searched fields with their weights.
    fields: Vec<(Field, f32)>,
}

impl Bm25 {
    /// Indexes a corpus, which must be sorted by id.
    pub fn build(tools: &[Tool], parts: Fields) -> Result<Bm25, String> {
        index(tools, parts).map_err(|error| format!("cannot build the bm25 index: {error}"))
    }

    fn terms(&self, query: &str) -> Vec<String> {
        let mut terms = Vec::new();
        let mut analyzer = self.analyzer.clone();
        let split = words(query).join(" ");
        analyzer.token_stream(&split).process(&mut |token: &Token| terms.push(token.text.clone()));
        terms.sort_unstable();
        terms.dedup();
        terms
    }
}

/// Words to stems: long and empty words dropped.
fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(WhitespaceTokenizer::default())
        .filter(RemoveLongFilter::limit(LONGEST_WORD))
        .filter(
            StopWordFilter::new(Language::English).unwrap_or_else(|| StopWordFilter::remove([])),
        )
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The words of texts as the index sees them.
pub(crate) struct Stems(TextAnalyzer);

impl Stems {
    pub(crate) fn new() -> Stems {
        Stems(analyzer())
    }

    /// Each word that counts, with its stem, in order.
    pub(crate) fn of(&self, text: &str) -> Vec<(String, String)> {
        let mut analyzer = self.0.clone();
        let mut found = Vec::new();
        for word in words(text) {
            let mut stem = None;
            analyzer.token_stream(&word).process(&mut |token: &Token| {
                stem = Some(token.text.clone());
            });
            found.extend(stem.map(|stem| (word.clone(), stem)));
        }
        found
    }
}

fn index(tools: &[Tool], parts: Fields) -> tantivy::Result<Bm25> {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqs);
    let text = TextOptions::default().set_indexing_options(indexing);
    let mut schema = Schema::builder();
    let name = schema.add_text_field("name", text.clone());
    let title = schema.add_text_field("title", text.clone());
    let description = schema.add_text_field("description", text.clone());
    let parameters = schema.add_text_field("schema", text);

    let analyzer = analyzer();
    let tokenizers = TokenizerManager::default();
    tokenizers.register(ANALYZER, analyzer.clone());
    // The ordinary writer cuts a large corpus into segments and numbers the documents anew.
    let mut writer = Index::builder()
        .schema(schema.build())
        .tokenizers(tokenizers)
        .single_segment_index_writer(RamDirectory::create(), WRITER_BYTES)?;
    for tool in tools {
        let mut document = TantivyDocument::default();
        document.add_text(name, split(&[&tool.server, &tool.tool]));
        if parts == Fields::All {
            document.add_text(title, split(&[tool.title.as_deref().unwrap_or_default()]));
            document.add_text(description, split(&[&tool.description]));
            document.add_text(parameters, split(&[&schema_text(&tool.input_schema)]));
        }
        writer.add_document(document)?;
    }
    Ok(Bm25 {
        reader: writer.finalize()?.reader()?,
        analyzer,
        ids: tools.iter().map(|tool| tool.tool_id.clone()).collect(),
        fields: vec![(name, 2.0), (title, 1.5), (description, 1.0), (parameters, 0.4)],
    })
}

impl Engine for Bm25 {
    fn search(&self, query: &str, limit: usize) -> Vec<Ranked> {
        let clauses: Vec<(Occur, Box<dyn Query>)> = self
            .terms(query)
            .iter()
            .flat_map(|term| {
                self.fields.iter().map(move |(field, weight)| {
                    let term = Term::from_field_text(*field, term);
                    let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
                    let boosted = BoostQuery::new(Box::new(query), *weight);
                    (Occur::Should, Box::new(boosted) as Box<dyn Query>)
                })
            })
            .collect();
        if clauses.is_empty() || limit == 0 {
            return Vec::new();
        }
        let searcher = self.reader.searcher();
        let top = TopDocs::with_limit(limit).order_by_score();
        // The index is in memory and whole: the search has no way to fail.
        let found = searcher.search(&BooleanQuery::new(clauses), &top).unwrap_or_default();
        found
            .into_iter()
            .filter_map(|(score, address)| {
                let id = self.ids.get(usize::try_from(address.doc_id).ok()?)?;
                Some(Ranked { tool_id: id.clone(), score: Some(f64::from(score)) })
            })
            .collect()
    }
}

fn split(parts: &[&str]) -> String {
    parts.iter().flat_map(|part| words(part)).collect::<Vec<_>>().join(" ")
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
            title: None,
            description: description.to_owned(),
            input_schema: schema,
            output_schema: None,
            annotations: None,
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
        let engine = Bm25::build(&corpus(), Fields::All).unwrap();
        assert_eq!(ids(&engine, "creating issues"), ["a:createIssue"]);
        assert_eq!(ids(&engine, "folders"), ["b:list_files"]);
        assert_eq!(ids(&engine, "recipients"), ["c:send_mail"]);
        assert!(ids(&engine, "the of and").is_empty());
    }

    #[test]
    fn without_descriptions_only_names_are_found() {
        let engine = Bm25::build(&corpus(), Fields::NameOnly).unwrap();
        assert!(ids(&engine, "folders").is_empty());
        assert_eq!(ids(&engine, "mail"), ["c:send_mail"]);
    }

    #[test]
    fn equal_scores_come_by_id() {
        let tools: Vec<Tool> =
            (0..50).map(|n| tool(&format!("s{n:02}:same"), "Same words.", Value::Null)).collect();
        let engine = Bm25::build(&tools, Fields::All).unwrap();
        let expected: Vec<String> = (0..10).map(|n| format!("s{n:02}:same")).collect();
        assert_eq!(ids(&engine, "same words"), expected);
    }

    #[test]
    fn hostile_queries_and_schemas_are_only_words() {
        let mut deep = json!({"description": "bottom"});
        for _ in 0..100 {
            deep = json!({"items": deep});
        }
        let engine = Bm25::build(&[tool("a:b", "x\u{0}\u{202e}", deep)], Fields::All).unwrap();
        for query in ["\" AND (", "*", "name:x OR", "\u{0}", &"a ".repeat(100_000)] {
            let _ = ids(&engine, query);
        }
    }
}

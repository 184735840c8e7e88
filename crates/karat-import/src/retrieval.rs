//! Tools and golden queries, as the retrieval evaluation reads them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::ImportError;
use crate::writer::Writer;

/// The built-in engine, as a value of karat.toml.
pub(crate) const BM25: &str = "{ builtin = \"bm25\" }";
/// The tools of one file of the corpus.
const PER_FILE: usize = 5_000;
/// The highest grade of a label.
const MAX_RELEVANCE: i64 = 2;

/// The tools and queries of a benchmark, written to its dataset.
#[derive(Default)]
pub(crate) struct Corpus {
    known: BTreeSet<String>,
    pending: Vec<Value>,
    files: usize,
    queries: BTreeSet<String>,
}

impl Corpus {
    /// Adds a tool and returns its id; one that is known is not added again.
    pub(crate) fn tool(
        &mut self,
        writer: &mut Writer,
        server: &str,
        tool: &str,
        description: &str,
        schema: Option<Value>,
    ) -> Result<String, ImportError> {
        let id = format!("{server}:{tool}");
        if !self.known.insert(id.clone()) {
            return Ok(id);
        }
        let mut row = json!({
            "tool_id": id, "server": server, "tool": tool, "description": description,
        });
        if let Some(schema) = schema {
            row["input_schema"] = schema;
        }
        self.pending.push(row);
        if self.pending.len() == PER_FILE {
            self.flush(writer)?;
        }
        Ok(id)
    }

    /// The number of tools.
    pub(crate) fn tools(&self) -> usize {
        self.known.len()
    }

    /// Returns whether a tool is known by its id.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.known.contains(tool)
    }

    /// Adds a query with the tools that answer it; returns whether it has any that is known.
    pub(crate) fn query(
        &mut self,
        writer: &mut Writer,
        id: &str,
        text: &str,
        labels: &BTreeMap<String, i64>,
        kind: Option<&str>,
    ) -> Result<(), ImportError> {
        let unknown = labels.keys().filter(|tool| !self.known.contains(*tool)).count();
        writer.skip_many("a label whose tool is not in the corpus", unknown as u64);
        let labels: Vec<Value> = labels
            .iter()
            .filter(|(tool, _)| self.known.contains(*tool))
            .map(|(tool, grade)| {
                json!({"tool_id": tool, "relevance": (*grade).clamp(0, MAX_RELEVANCE)})
            })
            .collect();
        if labels.is_empty() {
            writer.skip("a query without a label");
            return Ok(());
        }
        if text.trim().is_empty() {
            writer.skip("a query without text");
            return Ok(());
        }
        if !self.queries.insert(id.to_owned()) {
            return Err(ImportError::Other(format!("query {id:?} comes twice")));
        }
        writer.count("queries", 1);
        writer.count("labels", labels.len() as u64);
        let mut row = json!({"id": id, "query": text, "labels": labels});
        if let Some(kind) = kind {
            row["kind"] = json!(kind);
        }
        writer.line("golden/queries.jsonl", &row)
    }

    fn flush(&mut self, writer: &mut Writer) -> Result<(), ImportError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.files += 1;
        writer.count("tools", self.pending.len() as u64);
        let text = json!({"tools": std::mem::take(&mut self.pending)}).to_string();
        writer.file(&format!("tools/part-{:04}.json", self.files), text.as_bytes())
    }

    /// Writes the rest, and an entry that measures the built-in engine on it.
    pub(crate) fn finish(mut self, writer: &mut Writer) -> Result<(), ImportError> {
        self.flush(writer)?;
        if self.queries.is_empty() {
            let tools = self.known.len();
            return Err(ImportError::Other(format!(
                "expected queries with labels for tools of the corpus; found {tools} tools and no such \
                 query"
            )));
        }
        let keys = [("dataset", writer.dataset()), ("system", BM25.to_owned())];
        writer.entry("retrieval", "bm25", &keys);
        Ok(())
    }
}

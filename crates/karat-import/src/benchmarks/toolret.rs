//! ToolRet: tools with `documentation`, and queries with `labels`, as JSON or JSON Lines.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::retrieval::Corpus;
use crate::source::Source;
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "toolret",
    title: "ToolRet",
    needs: "ToolRet-Tools and ToolRet-Queries, exported as JSON or JSON Lines",
    licence: "none stated",
    restricted: true,
    becomes: "retrieval: one dataset of tools and queries",
    checked_by: "counts: 7,961 queries, 44,453 tools, 14,106 labels in the whole",
    import,
};

const EXPECTED: &str =
    "tools {\"id\", \"documentation\"} or queries {\"id\", \"query\", \"labels\", \"category\"}";

/// The published numbers.
const TOOLS: u64 = 44_453;
const QUERIES: u64 = 7_961;

#[derive(Deserialize)]
struct Row {
    id: String,
    documentation: Option<Value>,
    query: Option<String>,
    labels: Option<Value>,
    category: Option<String>,
}

#[derive(Deserialize)]
struct Label {
    id: String,
    relevance: Option<f64>,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let mut corpus = Corpus::default();
    let mut queries = Vec::new();
    for file in source.files() {
        if file.base().ends_with(".parquet") {
            let found = "a Parquet file; export it as JSON Lines";
            return Err(ImportError::unexpected(&file.path, EXPECTED, found));
        }
        if !(file.base().ends_with(".json") || file.base().ends_with(".jsonl")) {
            writer.skip("a file that is neither JSON nor JSON Lines");
            continue;
        }
        for row in source.list::<Row>(file, EXPECTED)? {
            match (row.documentation, row.query) {
                (Some(text), None) => {
                    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
                    corpus.tool(writer, "toolret", &row.id, &text, None)?;
                }
                (_, Some(query)) => {
                    let labels = labels(row.labels).ok_or_else(|| {
                        let found = format!("the labels of {}", row.id);
                        ImportError::unexpected(&file.path, EXPECTED, found)
                    })?;
                    queries.push((row.id, query, labels, row.category));
                }
                (None, None) => {
                    let found = format!("a row {} with neither", row.id);
                    return Err(ImportError::unexpected(&file.path, EXPECTED, found));
                }
            }
        }
    }
    if queries.is_empty() {
        return Err(source.nothing(BENCHMARK.needs));
    }
    writer.found_of(corpus.tools() as u64, TOOLS, "tools");
    writer.found_of(queries.len() as u64, QUERIES, "queries");
    for (id, query, labels, category) in queries {
        corpus.query(writer, &id, &query, &labels, category.as_deref())?;
    }
    corpus.finish(writer)
}

/// The labels of a query: a list, or the text of one.
fn labels(value: Option<Value>) -> Option<BTreeMap<String, i64>> {
    let labels: Vec<Label> = match value? {
        Value::String(text) => serde_json::from_str(&text).ok()?,
        other => serde_json::from_value(other).ok()?,
    };
    let grade = |label: &Label| match label.relevance {
        Some(grade) if grade < 1.0 => 0,
        Some(grade) if grade >= 2.0 => 2,
        _ => 1,
    };
    Some(labels.iter().map(|label| (format!("toolret:{}", label.id), grade(label))).collect())
}

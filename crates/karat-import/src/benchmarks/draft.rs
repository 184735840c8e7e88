//! DRAFT: descriptions of tools before and after, in `tool_instruction/`, and queries with the relevant
//! tools in `test_data/`. Each description file is a corpus of its own under the same queries.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::retrieval::BM25;
use crate::source::{File, Source};
use crate::writer::{Writer, quoted};
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "draft",
    title: "DRAFT",
    needs: "tool_instruction/<set>_Initial.json and <set>_DRAFT.json, test_data/<set>.json",
    licence: "MIT",
    restricted: false,
    becomes: "retrieval: one entry for each file of descriptions, under the same queries",
    checked_by: "counts of tools and queries; the change from the first to the rewritten texts",
    import,
};

const TOOLS: &str = "descriptions: {\"0\": {\"tool_name\", \"description\", …}}";
const QUERIES: &str = "queries: [{\"query\", \"relevant APIs\": […]}]";

#[derive(Deserialize)]
struct Tool {
    tool_name: String,
    description: Option<String>,
    tool_description: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    query: String,
    #[serde(rename = "relevant APIs")]
    relevant: Vec<Value>,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let inside = |file: &&File, folder: &str| {
        file.folder() == Some(folder) && file.base().ends_with(".json")
    };
    let descriptions: Vec<&File> =
        source.files().filter(|file| inside(file, "tool_instruction")).collect();
    let mut found = false;
    for queries in source.files().filter(|file| inside(file, "test_data")) {
        let set = Writer::entry_name(queries.stem());
        let of_set = |file: &&&File| {
            file.stem() == set
                || file.stem().strip_prefix(set.as_str()).is_some_and(|rest| rest.starts_with('_'))
        };
        let mut tools: BTreeSet<String> = BTreeSet::new();
        for file in descriptions.iter().filter(of_set) {
            let name = Writer::entry_name(file.stem());
            tools.extend(corpus(source, file, &name, writer)?);
            let folder = "datasets/draft/v1";
            let keys = [
                ("corpus", quoted(&format!("{folder}/corpus/{name}.json"))),
                ("golden", quoted(&format!("{folder}/queries/{set}.jsonl"))),
                ("system", BM25.to_owned()),
            ];
            writer.entry("retrieval", &name, &keys);
            found = true;
        }
        for (at, asked) in source.list::<Asked>(queries, QUERIES)?.into_iter().enumerate() {
            let labels: BTreeMap<String, Value> = asked
                .relevant
                .iter()
                .filter_map(|path| match path {
                    Value::String(name) => Some(name.clone()),
                    Value::Array(path) => Some(path.last()?.as_str()?.to_owned()),
                    _ => None,
                })
                .filter(|name| tools.contains(name))
                .map(|name| (format!("draft:{name}"), json!(2)))
                .collect();
            if labels.is_empty() {
                writer.skip("a query whose tools have no description");
                continue;
            }
            let labels: Vec<Value> = labels
                .into_iter()
                .map(|(tool, grade)| json!({"tool_id": tool, "relevance": grade}))
                .collect();
            writer.count("queries", 1);
            let row =
                json!({"id": format!("{set}-{at:04}"), "query": asked.query, "labels": labels});
            writer.line(&format!("queries/{set}.jsonl"), &row)?;
        }
    }
    if found { Ok(()) } else { Err(source.nothing(BENCHMARK.needs)) }
}

/// Writes one file of descriptions as a corpus, and returns the names of its tools.
fn corpus(
    source: &Source,
    file: &File,
    name: &str,
    writer: &mut Writer,
) -> Result<Vec<String>, ImportError> {
    let tools: BTreeMap<String, Tool> = source.json(file, TOOLS)?;
    let mut known = BTreeMap::new();
    for tool in tools.into_values() {
        known
            .entry(tool.tool_name)
            .or_insert_with(|| tool.description.or(tool.tool_description).unwrap_or_default());
    }
    writer.count("tools", known.len() as u64);
    let rows: Vec<Value> = known
        .iter()
        .map(|(tool, text)| json!({"server": "draft", "tool": tool, "description": text}))
        .collect();
    let text = json!({"version": "v1", "tools": rows}).to_string();
    writer.file(&format!("corpus/{name}.json"), text.as_bytes())?;
    Ok(known.into_keys().collect())
}

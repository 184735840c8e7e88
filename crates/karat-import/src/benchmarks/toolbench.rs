//! ToolBench and StableToolBench: `G*.json`, queries with the interfaces on offer and the relevant ones.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::retrieval::Corpus;
use crate::source::Source;
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "toolbench",
    title: "ToolBench and StableToolBench",
    needs: "solvable_queries/test_instruction/G*.json, or ToolBench's test_instruction/G*.json",
    licence: "Apache-2.0",
    restricted: false,
    becomes: "retrieval: the interfaces of all queries as one corpus",
    checked_by: "counts of interfaces, queries and labels",
    import,
};

const EXPECTED: &str = "[{\"query_id\", \"query\", \"api_list\": [{\"tool_name\", \"api_name\"}], \"relevant APIs\": [[tool, api]]}]";

#[derive(Deserialize)]
struct Asked {
    query_id: Option<Value>,
    query: Value,
    api_list: Vec<Interface>,
    #[serde(rename = "relevant APIs")]
    relevant: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct Interface {
    tool_name: String,
    api_name: String,
    #[serde(default)]
    api_description: Option<String>,
    #[serde(default)]
    category_name: Option<String>,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let mut corpus = Corpus::default();
    let mut queries = Vec::new();
    for file in source.files() {
        let is_queries = file.base().starts_with('G') && file.base().ends_with(".json");
        if !is_queries {
            writer.skip("a file that is not G*.json");
            continue;
        }
        for (at, asked) in source.json::<Vec<Asked>>(file, EXPECTED)?.into_iter().enumerate() {
            for interface in &asked.api_list {
                let Interface { tool_name, api_name, api_description, category_name } = interface;
                let category = category_name.as_deref().unwrap_or_default();
                let text = api_description.as_deref().unwrap_or_default();
                let description = format!("{tool_name} {category} {text}");
                corpus.tool(writer, tool_name, api_name, description.trim(), None)?;
            }
            let id = match &asked.query_id {
                Some(Value::String(id)) => id.clone(),
                Some(id) => id.to_string(),
                None => at.to_string(),
            };
            let labels: BTreeMap<String, i64> =
                asked.relevant.iter().map(|path| (path.join(":"), 1)).collect();
            let text = asked.query.as_str().map_or_else(|| asked.query.to_string(), str::to_owned);
            queries.push((format!("{}-{id}", file.stem()), text, labels, file.stem().to_owned()));
        }
    }
    if queries.is_empty() {
        return Err(source.nothing(BENCHMARK.needs));
    }
    for (id, query, labels, group) in queries {
        corpus.query(writer, &id, &query, &labels, Some(&group))?;
    }
    corpus.finish(writer, BENCHMARK.name)
}

//! DRAFT: descriptions of tools before and after, in `tool_instruction/`, and queries with the relevant
//! tools in `test_data/`. Each description file is a corpus of its own under the same queries. The sets of
//! RestBench have descriptions of their own, those of ToolBench share theirs, by function.

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
    needs: "tool_instruction/<set>_Initial.json and <set>_DRAFT.json (or Initial.json and DRAFT.json for \
            all sets next to them), test_data/<set>.json",
    licence: "MIT",
    restricted: false,
    becomes: "retrieval: one entry for each file of descriptions, under the same queries",
    checked_by: "counts of tools and queries; the change from the first to the rewritten texts",
    import,
};

const TOOLS: &str = "descriptions: {\"0\": {\"tool_name\", \"description\", …}}";
const QUERIES: &str = "queries: [{\"query\", \"relevant APIs\": […]}]";

/// The descriptions that all sets of queries next to them share.
const SHARED: [&str; 2] = ["Initial", "DRAFT"];

#[derive(Deserialize)]
struct Tool {
    tool_name: String,
    description: Option<String>,
    tool_description: Option<String>,
    /// The functions of a tool, where queries name them.
    #[serde(default)]
    tool_guidelines: BTreeMap<String, Function>,
}

#[derive(Deserialize)]
struct Function {
    description: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    query: String,
    #[serde(rename = "relevant APIs")]
    relevant: Vec<Value>,
}

/// The ids of tools by what queries call them: a name, or that of a tool and a function.
type Ids = BTreeMap<(Option<String>, String), String>;

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let inside = |file: &&File, folder: &str| {
        file.folder() == Some(folder) && file.base().ends_with(".json")
    };
    let descriptions: Vec<&File> =
        source.files().filter(|file| inside(file, "tool_instruction")).collect();
    let all: Vec<&File> = source.files().filter(|file| inside(file, "test_data")).collect();
    let mut corpora: BTreeMap<String, (&File, Ids)> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for queries in &all {
        let set = Writer::entry_name(queries.stem());
        // Queries are about the tools that all descriptions have.
        let mut ids: Option<Ids> = None;
        let mut keep = |known: &Ids| match &mut ids {
            None => ids = Some(known.clone()),
            Some(ids) => ids.retain(|key, _| known.contains_key(key)),
        };
        let mut entries = Vec::new();
        for file in &descriptions {
            let own = file.stem() == set
                || file.stem().strip_prefix(set.as_str()).is_some_and(|rest| rest.starts_with('_'));
            let shared = SHARED.contains(&file.stem()) && above(file) == above(queries);
            if !own && !shared {
                continue;
            }
            used.insert(&file.name);
            let entry = if own { file.stem().to_owned() } else { format!("{set}_{}", file.stem()) };
            let name = if own { file.stem().to_owned() } else { file.name.replace('/', "_") };
            let (entry, name) = (Writer::entry_name(&entry), Writer::entry_name(&name));
            let name = name.trim_end_matches(".json").to_owned();
            match corpora.get(&name) {
                None => {
                    let known = corpus(source, file, &name, writer)?;
                    keep(&known);
                    corpora.insert(name.clone(), (file, known));
                }
                Some((other, known)) if other.path == file.path => keep(known),
                Some((other, _)) => {
                    let expected = format!("one file of descriptions {name}");
                    let found = format!("another one: {}", other.path.display());
                    return Err(ImportError::unexpected(&file.path, expected, found));
                }
            }
            let folder = "datasets/draft/v1";
            let keys = [
                ("corpus", quoted(&format!("{folder}/corpus/{name}.json"))),
                ("golden", quoted(&format!("{folder}/queries/{set}.jsonl"))),
                ("system", BM25.to_owned()),
            ];
            entries.push((entry, keys));
        }
        if ask(source, queries, &ids.unwrap_or_default(), writer)? {
            entries.iter().for_each(|(name, keys)| writer.entry("retrieval", name, keys));
        }
    }
    for _ in descriptions.iter().filter(|file| !used.contains(&file.name)) {
        writer.skip("a file of descriptions without queries, or of another method");
    }
    if used.is_empty() { Err(source.nothing(BENCHMARK.needs)) } else { Ok(()) }
}

/// The folder above the one that holds a file.
fn above(file: &File) -> Option<&str> {
    Some(file.name.rsplit_once('/')?.0.rsplit_once('/').map_or("", |(above, _)| above))
}

/// Writes the queries of a set; false if there are none.
fn ask(
    source: &Source,
    queries: &File,
    ids: &Ids,
    writer: &mut Writer,
) -> Result<bool, ImportError> {
    let set = Writer::entry_name(queries.stem());
    let mut any = false;
    for (at, asked) in source.list::<Asked>(queries, QUERIES)?.into_iter().enumerate() {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let key = |path: &Value| match path {
            Value::String(name) => Some((None, name.clone())),
            Value::Array(path) => match path.as_slice() {
                [name] => Some((None, text(name)?)),
                [.., tool, name] => Some((Some(text(tool)?), text(name)?)),
                [] => None,
            },
            _ => None,
        };
        let find = |(tool, name): (Option<String>, String)| {
            let whole = (tool, name);
            ids.get(&whole).or_else(|| ids.get(&(None, whole.1.clone()))).cloned()
        };
        let labels: BTreeSet<String> =
            asked.relevant.iter().filter_map(key).filter_map(find).collect();
        if labels.is_empty() {
            writer.skip("a query whose tools have no description");
            continue;
        }
        let labels: Vec<Value> =
            labels.into_iter().map(|id| json!({"tool_id": id, "relevance": 2})).collect();
        writer.count("queries", 1);
        let row = json!({"id": format!("{set}-{at:04}"), "query": asked.query, "labels": labels});
        writer.line(&format!("queries/{set}.jsonl"), &row)?;
        any = true;
    }
    Ok(any)
}

/// Writes one file of descriptions as a corpus, and returns the ids of its tools.
fn corpus(
    source: &Source,
    file: &File,
    name: &str,
    writer: &mut Writer,
) -> Result<Ids, ImportError> {
    let tools: BTreeMap<String, Tool> = source.json(file, TOOLS)?;
    let (mut ids, mut rows) = (Ids::new(), Vec::new());
    let mut known = BTreeMap::new();
    for tool in tools.into_values() {
        if tool.tool_guidelines.is_empty() {
            let text = tool.description.or(tool.tool_description).unwrap_or_default();
            known.entry((None, tool.tool_name)).or_insert(text);
            continue;
        }
        for (function, described) in tool.tool_guidelines {
            let key = (Some(tool.tool_name.clone()), function);
            known.entry(key).or_insert_with(|| described.description.unwrap_or_default());
        }
    }
    for ((tool, name), text) in known {
        let server = tool.clone().unwrap_or_else(|| "draft".to_owned());
        rows.push(json!({"server": server, "tool": name, "description": text}));
        ids.insert((tool, name.clone()), format!("{server}:{name}"));
    }
    writer.count("tools", rows.len() as u64);
    let text = json!({"version": "v1", "tools": rows}).to_string();
    writer.file(&format!("corpus/{name}.json"), text.as_bytes())?;
    Ok(ids)
}

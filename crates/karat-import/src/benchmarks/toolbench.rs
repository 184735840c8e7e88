//! ToolBench and StableToolBench: `G*.json`, queries with the interfaces on offer and the relevant ones;
//! and, for StableToolBench, the verdicts in `pass_rate_results/<model>/<set>_<model>.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::outcomes::{Accounting, Row, Tags};
use crate::retrieval::Corpus;
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "toolbench",
    title: "ToolBench",
    needs: "test_instruction/G*.json",
    licence: "Apache-2.0",
    restricted: false,
    becomes: "retrieval: the interfaces of all queries as one corpus",
    checked_by: "counts of interfaces, queries and labels",
    import: plain,
};

pub(crate) const STABLE: Benchmark = Benchmark {
    name: "stabletoolbench",
    title: "StableToolBench",
    needs: "solvable_queries/test_instruction/G*.json; pass_rate_results/<model>/G*_<model>.json",
    licence: "Apache-2.0",
    restricted: false,
    becomes: "retrieval: the interfaces of all queries as one corpus; outcomes: one entry per model",
    checked_by: "counts; the solvable pass rate of the verdicts that are there",
    import: stable,
};

const QUERIES: &str = "test_instruction";
const VERDICTS: &str = "pass_rate_results";
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
    api_description: Option<String>,
    category_name: Option<String>,
}

/// One answer, judged several times.
#[derive(Deserialize)]
struct Judged {
    is_solved: BTreeMap<String, String>,
}

fn plain(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    match queries(source, writer)? {
        true => Ok(()),
        false => Err(source.nothing(BENCHMARK.needs)),
    }
}

fn stable(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    writer.account(Some(Accounting::Stabletoolbench), &["set"]);
    writer.allow_missing_tasks();
    let found = queries(source, writer)?;
    let is_verdicts =
        |file: &&File| file.parts().contains(&VERDICTS) && file.base().ends_with(".json");
    let verdicts: Vec<&File> = source.files().filter(is_verdicts).collect();
    for file in &verdicts {
        let model = file.folder().unwrap_or_default();
        let Some(set) = file.stem().strip_suffix(model).and_then(|set| set.strip_suffix('_'))
        else {
            let expected = "a file named <set>_<model>.json in the folder of its model";
            return Err(ImportError::unexpected(&file.path, expected, file.base()));
        };
        let expected = "verdicts: {query: {\"is_solved\": {\"0\": \"AnswerStatus.Solved\"}}}";
        let answers: BTreeMap<String, Judged> = source.json(file, expected)?;
        for (query, judged) in answers {
            let task = format!("{set}-{query}");
            writer.task("queries", &task, || Tags::from([("set".to_owned(), set.to_owned())]));
            for (at, status) in judged.is_solved {
                let trial = at.parse::<u32>().ok().and_then(|at| at.checked_add(1));
                let row = Row { task: task.clone(), trial, ..verdict(file, &status)? };
                writer.row(model, "queries", &row)?;
            }
        }
    }
    if found || !verdicts.is_empty() { Ok(()) } else { Err(source.nothing(STABLE.needs)) }
}

/// A verdict; a judge that is unsure has not measured anything.
fn verdict(file: &File, status: &str) -> Result<Row, ImportError> {
    match status.rsplit('.').next().unwrap_or_default() {
        "Solved" => Ok(Row { success: Some(true), ..Row::default() }),
        "Unsolved" => Ok(Row { success: Some(false), ..Row::default() }),
        "Unsure" => Ok(Row { error: Some("the judge is unsure".to_owned()), ..Row::default() }),
        _ => {
            let expected = "AnswerStatus.Solved, Unsolved or Unsure";
            Err(ImportError::unexpected(&file.path, expected, status))
        }
    }
}

/// Takes over the queries; false if there are none.
fn queries(source: &Source, writer: &mut Writer) -> Result<bool, ImportError> {
    let mut corpus = Corpus::default();
    let mut queries = Vec::new();
    let inside = source.files().any(|file| file.parts().contains(&QUERIES));
    for file in source.files() {
        let is_json = file.base().starts_with('G') && file.base().ends_with(".json");
        let folders = file.parts();
        // Queries by themselves, next to answers and verdicts with the same names.
        let scoped = !inside || folders.contains(&QUERIES);
        if !is_json || !scoped || folders.contains(&VERDICTS) {
            writer.skip("a file that is not queries, G*.json");
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
        return Ok(false);
    }
    for (id, query, labels, group) in queries {
        corpus.query(writer, &id, &query, &labels, Some(&group))?;
    }
    corpus.finish(writer)?;
    Ok(true)
}

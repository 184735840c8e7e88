//! Benchmarks whose tasks name the servers that they need: MCP-Bench and MCP-Universe. Each task becomes
//! a query whose answer is its servers, and each server a document made of its tools.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::retrieval::Corpus;
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const MCP_BENCH: Benchmark = Benchmark {
    name: "mcp-bench",
    title: "MCP-Bench",
    needs: "tasks/mcpbench_tasks_*_runner_format.json; mcp_servers_info.json for the tools of servers",
    licence: "Apache-2.0 by its badge; no licence file",
    restricted: true,
    becomes: "retrieval: tasks find their servers, as described and as a user would say it",
    checked_by: "counts: 104 tasks",
    import: bench,
};

pub(crate) const MCP_UNIVERSE: Benchmark = Benchmark {
    name: "mcp-universe",
    title: "MCP-Universe",
    needs: "mcpuniverse/benchmark/configs/<set>/<domain>/*_task_NNNN.json",
    licence: "Apache-2.0",
    restricted: false,
    becomes: "retrieval: questions find their servers",
    checked_by: "counts: 231 tasks in the paper",
    import: universe,
};

const BENCH: &str = "{\"server_tasks\": [{\"server_name\", \"tasks\": [{\"task_id\", \
                     \"task_description\", \"fuzzy_description\"}]}]}";
const UNIVERSE: &str =
    "a task: {\"category\", \"question\", \"mcp_servers\": [{\"name\"}], \"evaluators\"}";
/// The published number of tasks of MCP-Bench: 56 with one server, 30 with two and 18 with three.
const BENCH_TASKS: u64 = 104;
/// That of MCP-Universe.
const UNIVERSE_TASKS: u64 = 231;
pub(super) const RELEVANT: i64 = 2;

/// A query, the servers with their grades, and its kind.
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) servers: BTreeMap<String, i64>,
    pub(super) kind: String,
}

/// Writes servers and queries. Servers without a description are found by their names alone.
pub(super) fn write(
    mut asked: Vec<Asked>,
    descriptions: &BTreeMap<String, String>,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let mut corpus = Corpus::default();
    let named = asked.iter().flat_map(|asked| asked.servers.keys());
    let servers: BTreeSet<&String> = named.chain(descriptions.keys()).collect();
    let mut bare = 0;
    for server in servers {
        let text = descriptions.get(server).map(String::as_str).unwrap_or_default();
        bare += u64::from(text.is_empty());
        let text = format!("{server}. {text}");
        corpus.tool(writer, server, server, text.trim(), None)?;
    }
    if bare > 0 {
        writer.note(format!("{bare} servers have no description: their names are all there is"));
    }
    for asked in &mut asked {
        let labels: BTreeMap<String, i64> = std::mem::take(&mut asked.servers)
            .into_iter()
            .map(|(server, grade)| (format!("{server}:{server}"), grade))
            .collect();
        corpus.query(writer, &asked.id, &asked.text, &labels, Some(&asked.kind))?;
    }
    corpus.finish(writer)
}

#[derive(Deserialize)]
struct Tasks {
    server_tasks: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    server_name: String,
    #[serde(default)]
    servers: Vec<String>,
    tasks: Vec<BenchTask>,
}

#[derive(Deserialize)]
struct BenchTask {
    task_id: String,
    task_description: String,
    fuzzy_description: Option<String>,
    distraction_servers: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Servers {
    servers: BTreeMap<String, ServerInfo>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServerInfo {
    description: String,
    tools: BTreeMap<String, ToolInfo>,
}

#[derive(Deserialize)]
struct ToolInfo {
    #[serde(default)]
    description: String,
}

fn bench(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let mut asked = Vec::new();
    let mut descriptions = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for file in source.files() {
        let base = file.base();
        if base == "mcp_servers_info.json" {
            let known: Servers = source.json(file, "{\"servers\": {name: {\"tools\": {…}}}}")?;
            for (name, server) in known.servers {
                let tools = server
                    .tools
                    .iter()
                    .map(|(name, tool)| format!("{name}: {}", tool.description.trim()));
                let tools = tools.collect::<Vec<_>>().join("\n");
                descriptions
                    .insert(name, format!("{} {tools}", server.description).trim().to_owned());
            }
        } else if base.ends_with("_runner_format.json") {
            bench_tasks(source, file, &mut seen, &mut asked, writer)?;
        } else {
            writer.skip("a file that is neither tasks nor servers");
        }
    }
    if asked.is_empty() {
        return Err(source.nothing(MCP_BENCH.needs));
    }
    writer.count("tasks", seen.len() as u64);
    writer.found_of(seen.len() as u64, BENCH_TASKS, "tasks");
    write(asked, &descriptions, writer)
}

fn bench_tasks(
    source: &Source,
    file: &File,
    seen: &mut BTreeSet<String>,
    asked: &mut Vec<Asked>,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    for group in source.json::<Tasks>(file, BENCH)?.server_tasks {
        let mut needed = group.servers;
        if needed.is_empty() {
            needed = group.server_name.split('+').map(|name| name.trim().to_owned()).collect();
        }
        for task in group.tasks {
            if !seen.insert(task.task_id.clone()) {
                writer.skip("a task that is in another file too");
                continue;
            }
            let mut servers: BTreeMap<String, i64> = BTreeMap::new();
            servers.extend(task.distraction_servers.into_iter().flatten().map(|name| (name, 0)));
            servers.extend(needed.iter().map(|name| (name.clone(), RELEVANT)));
            let texts =
                [("described", Some(task.task_description)), ("fuzzy", task.fuzzy_description)];
            for (kind, text) in texts {
                let Some(text) = text.filter(|text| !text.trim().is_empty()) else { continue };
                asked.push(Asked {
                    id: format!("{}/{kind}", task.task_id),
                    text,
                    servers: servers.clone(),
                    kind: kind.to_owned(),
                });
            }
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct UniverseTask {
    #[serde(default)]
    category: String,
    question: String,
    #[serde(default)]
    mcp_servers: Vec<Named>,
    #[serde(default)]
    evaluators: Vec<Value>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

fn universe(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let (mut asked, mut tasks) = (Vec::new(), 0);
    for file in source.files() {
        if !file.base().ends_with(".json") || !file.base().contains("_task_") {
            writer.skip("a file that is not a task");
            continue;
        }
        let task: UniverseTask = source.json(file, UNIVERSE)?;
        tasks += 1;
        writer.count("tasks", 1);
        writer.count("evaluators", task.evaluators.len() as u64);
        // Without a list, the servers are those of the whole domain, which a query cannot tell.
        if task.mcp_servers.is_empty() {
            writer.skip("a task that names no server");
            continue;
        }
        let domain = file.folder().unwrap_or_default();
        let kind = if task.category.is_empty() { domain.to_owned() } else { task.category };
        asked.push(Asked {
            id: file.name.trim_end_matches(".json").to_owned(),
            text: task.question,
            servers: task.mcp_servers.into_iter().map(|server| (server.name, RELEVANT)).collect(),
            kind,
        });
    }
    if asked.is_empty() {
        return Err(source.nothing(MCP_UNIVERSE.needs));
    }
    writer.found_of(tasks, UNIVERSE_TASKS, "tasks");
    write(asked, &BTreeMap::new(), writer)
}

//! MCP-SafetyBench: the tasks of MCP-Universe with attacks on them. The attacks that change or add a
//! definition become labelled definitions; those on users and results are not in a definition.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::source::Source;
use crate::threats::{Threat, Threats, category};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "mcp-safetybench",
    title: "MCP-SafetyBench",
    needs: "mcpuniverse/benchmark/configs/test/<domain>/*_task_NNNN.json with `attack_category`",
    licence: "unclear",
    restricted: true,
    becomes: "detection: definitions that an attack changed or added",
    checked_by: "counts: 245 tasks with an attack",
    import,
};

const EXPECTED: &str = "a task: {\"category\", \"question\", \"attack_category\", \
                        \"mcp_server_modifications\" or \"mcp_server_additions\", \"evaluators\"}";

/// The published number of tasks with an attack.
const TASKS: u64 = 245;

#[derive(Deserialize)]
struct Task {
    #[serde(default)]
    category: String,
    attack_category: Option<String>,
    #[serde(default)]
    mcp_server_modifications: Value,
    #[serde(default)]
    mcp_server_additions: Value,
}

#[derive(Deserialize)]
struct Change {
    tool_name: String,
    #[serde(alias = "modification_description")]
    description: Option<String>,
    input_parameters: Option<Value>,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let mut threats = Threats::new(&BENCHMARK);
    let mut tasks = 0;
    for file in source.files() {
        if !file.base().ends_with(".json") || !file.base().contains("_task_") {
            writer.skip("a file that is not a task");
            continue;
        }
        let task: Task = source.json(file, EXPECTED)?;
        let Some(attack) = task.attack_category else {
            writer.skip("a task without an attack");
            continue;
        };
        tasks += 1;
        let mut any = false;
        for value in [task.mcp_server_modifications, task.mcp_server_additions] {
            let changes = match value {
                Value::Array(changes) => changes,
                Value::Null => Vec::new(),
                one => vec![one],
            };
            for change in changes {
                let Ok(change) = serde_json::from_value::<Change>(change) else { continue };
                let Some(text) = change.description.filter(|text| !text.trim().is_empty()) else {
                    continue;
                };
                any = true;
                let mut tool = json!({"name": change.tool_name, "description": text});
                if let Some(Value::Object(parameters)) = change.input_parameters {
                    let properties: serde_json::Map<String, Value> = parameters
                        .into_iter()
                        .map(|(name, kind)| (name, json!({"description": kind.to_string()})))
                        .collect();
                    tool["inputSchema"] = json!({"type": "object", "properties": properties});
                }
                let threat = Threat {
                    id: format!("{}/{}", file.stem(), change.tool_name),
                    malicious: true,
                    category: &category(&attack),
                    server: &task.category,
                    tool,
                    before: None,
                };
                threats.add(writer, threat)?;
            }
        }
        if !any {
            writer.skip("an attack that is not in a definition");
        }
    }
    if tasks == 0 {
        return Err(source.nothing(BENCHMARK.needs));
    }
    writer.count("tasks", tasks);
    writer.found_of(tasks, TASKS, "tasks with an attack");
    if threats.is_empty() {
        let message = format!("none of {tasks} attacks changes or adds a definition");
        return Err(ImportError::Other(message));
    }
    threats.finish(writer);
    Ok(())
}

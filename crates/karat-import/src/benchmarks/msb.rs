//! MSB (MCP Security Bench): tasks of agents with the server that each needs, kinds of attacks, and, where
//! the benchmark was run, `data/metrics.csv` with a line for each run.

use std::collections::BTreeMap;

use karat_io::table;
use karat_recordings::Run;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::servers::{self, Asked, RELEVANT};
use crate::runs::{Report, Runs};
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "msb",
    title: "MCP Security Bench",
    needs: "data/agent_task.jsonl, data/attack_task.jsonl, data/attack_type.jsonl; data/metrics.csv of a \
            run of your own",
    licence: "MIT",
    restricted: false,
    becomes: "retrieval: tasks find their server; resilience: one entry per model of metrics.csv, with \
              its net resilient performance",
    checked_by: "counts: 10 agents, 12 kinds of attacks; no runs are published",
    import,
};

/// The sizes of the release.
const KNOWN_AGENTS: u64 = 10;
const KNOWN_KINDS: u64 = 12;
const AGENTS: &str = "lines of {\"agent_name\", \"task_tool\": [{\"task\", \"tool\"}]}";
const COLUMNS: [&str; 9] = [
    "attack_type",
    "llm_name",
    "agent_name",
    "agent_task",
    "mcp_server",
    "attack_task",
    "attack_success",
    "mixed_attack_success",
    "user_task_success",
];

#[derive(Deserialize)]
struct Agent {
    agent_name: String,
    task_tool: Vec<TaskTool>,
}

#[derive(Deserialize)]
struct TaskTool {
    task: String,
    tool: String,
}

#[derive(Deserialize)]
struct AttackTask {
    #[serde(rename = "attack_task")]
    _name: String,
}

#[derive(Deserialize)]
struct AttackTypes {
    attack_type: Types,
}

/// All kinds on one line, or one on each.
#[derive(Deserialize)]
#[serde(untagged)]
enum Types {
    All(Vec<IgnoredAny>),
    One(IgnoredAny),
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let mut asked = Vec::new();
    let mut runs = Runs::new(Report::Pipeline);
    for file in source.files() {
        match file.base() {
            "agent_task.jsonl" => {
                let agents = source.list::<Agent>(file, AGENTS)?;
                writer.found_of(agents.len() as u64, KNOWN_AGENTS, "agents");
                for agent in agents {
                    writer.count("agents", 1);
                    tasks(agent, &mut asked);
                }
            }
            "attack_task.jsonl" => {
                let expected = "lines of {\"attack_task\", \"implementation\"}";
                let found = source.list::<AttackTask>(file, expected)?.len();
                writer.count("attack tasks", found as u64);
            }
            "attack_type.jsonl" => {
                let mut kinds = 0;
                for row in source.list::<AttackTypes>(file, "lines of {\"attack_type\"}")? {
                    kinds += match row.attack_type {
                        Types::All(names) => names.len() as u64,
                        Types::One(_) => 1,
                    };
                }
                writer.count("kinds of attacks", kinds);
                writer.found_of(kinds, KNOWN_KINDS, "kinds of attacks");
            }
            "metrics.csv" => metrics(source, file, &mut runs, writer)?,
            _ => writer.skip("a file that holds neither tasks nor runs"),
        }
    }
    if asked.is_empty() && runs.is_empty() {
        return Err(source.nothing(BENCHMARK.needs));
    }
    if !asked.is_empty() {
        servers::write(asked, &BTreeMap::new(), writer)?;
    }
    runs.finish(writer)
}

fn tasks(agent: Agent, asked: &mut Vec<Asked>) {
    for (at, task) in agent.task_tool.into_iter().enumerate() {
        asked.push(Asked {
            id: format!("{}/{at:02}", agent.agent_name),
            text: task.task,
            servers: BTreeMap::from([(task.tool, RELEVANT)]),
            kind: agent.agent_name.clone(),
        });
    }
}

/// The runs that were judged, one on each line, tabs between the columns.
fn metrics(
    source: &Source,
    file: &File,
    runs: &mut Runs,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let expected = format!("a table with the columns {}", COLUMNS.join(", "));
    let wrong = |found: String| ImportError::unexpected(&file.path, expected.clone(), found);
    let text = source.text(file)?;
    let (head, rows) = table::read(&text, '\t')
        .map_err(|line| wrong(format!("a quoted cell without an end on line {line}")))?;
    let column = |name: &str| head.iter().position(|found| found == name);
    if let Some(missing) = COLUMNS.iter().find(|name| column(name).is_none()) {
        return Err(wrong(format!("no column {missing}")));
    }
    if rows.is_empty() {
        return Err(wrong("no runs".to_owned()));
    }
    for table::Row { line, cells } in &rows {
        let cell = |name: &str| {
            let found = column(name).and_then(|at| cells.get(at)).map(String::as_str);
            found.ok_or_else(|| wrong(format!("{} cells on line {line}", cells.len())))
        };
        let flag = |name: &str| match cell(name)? {
            "True" | "true" | "1" => Ok(Some(true)),
            "False" | "false" | "0" => Ok(Some(false)),
            "" | "None" | "nan" => Ok(None),
            other => Err(wrong(format!("{name} {other:?} on line {line}"))),
        };
        // Where attacks are combined, the combination has succeeded if all of them have.
        let attack = cell("attack_type")?;
        let combined = attack.contains('-')
            || ["name_overlap", "preference_manipulation", "tool_transfer"].contains(&attack);
        let success = flag(if combined { "mixed_attack_success" } else { "attack_success" })?;
        let run = Run {
            pipeline: cell("llm_name")?.to_owned(),
            suite: cell("agent_name")?.to_owned(),
            task: cell("agent_task")?.to_owned(),
            goal: Some(cell("attack_task")?.to_owned()),
            attack: Some(attack.to_owned()),
            attempted: success == Some(true),
            success,
            utility: flag("user_task_success")?,
            ..Run::default()
        };
        runs.add(writer, &run)?;
    }
    Ok(())
}

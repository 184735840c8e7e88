//! ASB (Agent Security Bench): logs of runs, `logs/<attack>/<model>/<memory>/<template>-all_.csv`, and
//! the tools of attackers, `data/all_attack_tools.jsonl`, next to `data/all_normal_tools.jsonl`.

use karat_io::input::Member;
use karat_resilience::recordings::{Filter, Format, Reader};
use serde::Deserialize;
use serde_json::json;

use crate::runs::{Report, Runs};
use crate::source::{File, Source};
use crate::threats::{BENIGN, Threat, Threats, category};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "asb",
    title: "Agent Security Bench",
    needs: "logs/<attack>/<model>/<memory>/<template>-all_.csv, or data/all_attack_tools.jsonl with \
            data/all_normal_tools.jsonl, or both",
    licence: "MIT",
    restricted: false,
    becomes: "resilience: one entry per model and kind of attack; detection: the tools of attackers",
    checked_by: "counts of runs and tools; the released logs are not those of the published table",
    import,
};

const ATTACKS: &str = "lines of {\"Attacker Tool\", \"Attacker Instruction\", \"Description\", …}";
const NORMAL: &str = "lines of {\"Tool Name\", \"Description\", …}";

#[derive(Deserialize)]
struct AttackTool {
    #[serde(rename = "Attacker Tool")]
    tool: String,
    #[serde(rename = "Attacker Instruction")]
    instruction: String,
    #[serde(rename = "Description", default)]
    description: String,
    #[serde(rename = "Attack Type", default)]
    kind: String,
    #[serde(rename = "Corresponding Agent", default)]
    agent: String,
}

#[derive(Deserialize)]
struct NormalTool {
    #[serde(rename = "Tool Name")]
    tool: String,
    #[serde(rename = "Description", default)]
    description: String,
    #[serde(rename = "Corresponding Agent", default)]
    agent: String,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let mut runs = Runs::new(Report::Suite);
    let mut threats = Threats::new(&BENCHMARK);
    let filter = Filter::default();
    for file in source.files() {
        match file.base() {
            base if base.ends_with(".csv") => logs(source, file, &filter, &mut runs, writer)?,
            "all_attack_tools.jsonl" => attacks(source, file, &mut threats, writer)?,
            "all_normal_tools.jsonl" => normal(source, file, &mut threats, writer)?,
            _ => writer.skip("a file that is neither a log nor a list of tools"),
        }
    }
    if runs.is_empty() && threats.is_empty() {
        return Err(source.nothing(BENCHMARK.needs));
    }
    threats.finish(writer);
    runs.finish(writer)
}

/// The runs of a log. The folders above it name the attack and the model.
fn logs(
    source: &Source,
    file: &File,
    filter: &Filter,
    runs: &mut Runs,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let bytes = source.bytes(file)?;
    let name = file.path.to_string_lossy();
    let mut reader = Reader::new(source.place(), Format::Asb, filter)?;
    reader.member(&Member { name: &name, bytes: &bytes })?;
    let read = reader.take();
    if read.is_empty() {
        writer.skip("a log without a run");
    }
    for run in read {
        runs.add(writer, &run)?;
    }
    Ok(())
}

/// What an agent sees of an attacker's tool: its description with the instruction in it.
fn attacks(
    source: &Source,
    file: &File,
    threats: &mut Threats,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    for row in source.list::<AttackTool>(file, ATTACKS)? {
        let text = format!("{} {}", row.description.trim(), row.instruction.trim());
        let threat = Threat {
            id: format!("attack/{}/{}", row.agent, row.tool),
            malicious: true,
            category: &category(&row.kind),
            server: &row.agent,
            tool: json!({"name": row.tool, "description": text.trim()}),
            before: None,
        };
        threats.add(writer, threat)?;
    }
    Ok(())
}

fn normal(
    source: &Source,
    file: &File,
    threats: &mut Threats,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    for row in source.list::<NormalTool>(file, NORMAL)? {
        let threat = Threat {
            id: format!("normal/{}/{}", row.agent, row.tool),
            malicious: false,
            category: BENIGN,
            server: &row.agent,
            tool: json!({"name": row.tool, "description": row.description}),
            before: None,
        };
        threats.add(writer, threat)?;
    }
    Ok(())
}

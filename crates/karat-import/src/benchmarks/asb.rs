//! ASB (Agent Security Bench): logs of runs, `logs/<attack>/<model>/<memory>/<template>-all_.csv`, and
//! the tools of attackers, `data/all_attack_tools.jsonl`, next to `data/all_normal_tools.jsonl`.

use std::collections::BTreeMap;

use karat_io::input::Member;
use karat_recordings::{Filter, Format, Reader};
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
    checked_by: "counts of runs and tools; the released logs differ from the published table",
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
    let mut lengths = Vec::new();
    for file in source.files() {
        match file.base() {
            base if base.ends_with(".csv") => {
                logs(source, file, &filter, &mut runs, &mut lengths, writer)?;
            }
            "all_attack_tools.jsonl" => attacks(source, file, &mut threats, writer)?,
            "all_normal_tools.jsonl" => normal(source, file, &mut threats, writer)?,
            _ => writer.skip("a file that is neither a log nor a list of tools"),
        }
    }
    if runs.is_empty() && threats.is_empty() {
        return Err(source.nothing(BENCHMARK.needs));
    }
    compare(&lengths, writer);
    threats.finish(writer);
    runs.finish(writer)
}

/// Notes the logs that are shorter than those of other models of the same kind, as half a download is.
fn compare(lengths: &[(&File, u64)], writer: &mut Writer) {
    let kind = |file: &File| {
        let parts: Vec<&str> = file.name.rsplit('/').collect();
        [0, 1, 3].map(|at| parts.get(at).copied().unwrap_or_default().to_owned())
    };
    let mut longest: BTreeMap<_, u64> = BTreeMap::new();
    for (file, length) in lengths {
        let known = longest.entry(kind(file)).or_default();
        *known = (*known).max(*length);
    }
    for (file, length) in lengths {
        let most = longest.get(&kind(file)).copied().unwrap_or_default();
        writer.found_of(
            *length,
            most,
            &format!("rows that the longest such log has: {}", file.name),
        );
    }
}

/// The runs of a log. The folders above it name the attack and the model.
fn logs<'a>(
    source: &Source,
    file: &'a File,
    filter: &Filter,
    runs: &mut Runs,
    lengths: &mut Vec<(&'a File, u64)>,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let bytes = source.bytes(file)?;
    let name = file.path.to_string_lossy();
    let mut reader = Reader::new(source.place(), Format::Asb, filter)?;
    reader.member(&Member { name: &name, bytes: &bytes })?;
    let read = reader.take();
    if read.is_empty() {
        let name = file.path.display();
        writer.incomplete(format!("{name}: expected a row for each run; found none"))?;
        writer.skip("a log without a run");
    }
    lengths.push((file, read.len() as u64));
    for run in read {
        runs.add(writer, &run)?;
    }
    Ok(())
}

/// The tool of an attacker as an agent sees it: its description with the instruction in it.
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

//! MCPTox: `response_all.json`, poisoned tools of real servers, the clean tools of the same servers, and
//! the labelled answers of models.

use std::collections::BTreeMap;

use karat_recordings::Run;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::runs::{Report, Runs};
use crate::source::Source;
use crate::threats::{BENIGN, Threat, Threats, category};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "mcptox",
    title: "MCPTox",
    needs: "response_all.json",
    licence: "none stated",
    restricted: true,
    becomes: "detection: poisoned and clean definitions; resilience: one entry per model",
    checked_by: "counts: 45 servers, 1,348 cases of which 1,312 are valid",
    import,
};

/// The sizes of the release.
const SERVERS: u64 = 45;
const CASES: u64 = 1_348;
const EXPECTED: &str = "response_all.json of MCPTox: {\"servers\": {name: {\"malicious_instance\": \
                        [{\"metadata\", \"poisoned_tool\", \"datas\": […]}], …}}}";

#[derive(Deserialize)]
struct Whole {
    data_length: Option<u64>,
    servers: BTreeMap<String, Server>,
}

#[derive(Deserialize)]
struct Server {
    #[serde(default)]
    clean_system_promot: String,
    malicious_instance: Vec<Instance>,
}

#[derive(Deserialize)]
struct Instance {
    wrong_data: Option<u64>,
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
    poisoned_tool: String,
    #[serde(default)]
    datas: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: Option<Value>,
    #[serde(default)]
    query: String,
    online_result: Option<Answers>,
}

#[derive(Deserialize)]
struct Answers {
    #[serde(default)]
    labeled_model_results: Vec<BTreeMap<String, Value>>,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let Some(file) = source.files().find(|file| file.base() == "response_all.json") else {
        return Err(source.nothing(BENCHMARK.needs));
    };
    let whole: Whole = source.json(file, EXPECTED)?;
    let found: u64 = whole.servers.values().map(|s| s.malicious_instance.len() as u64).sum();
    if whole.data_length.is_some_and(|stated| stated != found) {
        let expected = format!("{} cases, as `data_length` says", whole.data_length.unwrap_or(0));
        return Err(ImportError::unexpected(&file.path, expected, found.to_string()));
    }
    let mut threats = Threats::new(&BENCHMARK);
    let mut runs = Runs::new(Report::Pipeline);
    writer.count("servers", whole.servers.len() as u64);
    writer.found_of(whole.servers.len() as u64, SERVERS, "servers");
    writer.found_of(found, CASES, "cases");
    for (server, content) in whole.servers {
        for (tool, text) in blocks(&content.clean_system_promot) {
            let threat = Threat {
                id: format!("clean/{server}/{tool}"),
                malicious: false,
                category: BENIGN,
                server: &server,
                tool: json!({"name": tool, "description": text}),
                before: None,
            };
            threats.add(writer, threat)?;
        }
        for (at, instance) in content.malicious_instance.into_iter().enumerate() {
            if instance.wrong_data.is_some_and(|wrong| wrong != 0) {
                writer.skip("a case that its authors marked as wrong");
                continue;
            }
            take(&server, at, instance, &mut threats, &mut runs, writer)?;
        }
    }
    threats.finish(writer);
    runs.finish(writer)
}

fn take(
    server: &str,
    at: usize,
    instance: Instance,
    threats: &mut Threats,
    runs: &mut Runs,
    writer: &mut Writer,
) -> Result<(), ImportError> {
    let property = |key: &str| {
        let text = instance.metadata.get(key).and_then(Value::as_str);
        text.unwrap_or("unnamed").to_owned()
    };
    let (risk, paradigm) = (property("security risk"), property("paradigm"));
    let Some((tool, text)) = blocks(&instance.poisoned_tool).next() else {
        writer.skip("a case whose poisoned tool has no name");
        return Ok(());
    };
    let goal = format!("{tool}-{at:04}");
    let threat = Threat {
        id: format!("poisoned/{server}/{goal}"),
        malicious: true,
        category: &category(&risk),
        server,
        tool: json!({"name": tool, "description": text}),
        before: None,
    };
    threats.add(writer, threat)?;
    for case in instance.datas {
        let task = match case.id {
            Some(Value::String(id)) => id,
            Some(id) => id.to_string(),
            None => case.query,
        };
        let labels =
            case.online_result.into_iter().flat_map(|answers| answers.labeled_model_results);
        for (pipeline, label) in labels.flatten() {
            let label = label.as_str().unwrap_or_default();
            // An answer that is neither a success nor a failure is not valid, and not in MCPTox's rate.
            let success = match label {
                "Success" => Some(true),
                _ => label.starts_with("Failure").then_some(false),
            };
            let run = Run {
                pipeline,
                suite: server.to_owned(),
                task: task.clone(),
                goal: Some(goal.clone()),
                attack: Some(paradigm.clone()),
                surface: Some("description".to_owned()),
                success,
                refused: label.contains("Refus"),
                error: success.is_none().then(|| format!("no valid answer: {label:?}")),
                ..Run::default()
            };
            runs.add(writer, &run)?;
        }
    }
    Ok(())
}

/// The tools of a rendered list: `Tool: NAME`, `Description: …`, each with its text.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let starts: Vec<usize> = text
        .match_indices("Tool:")
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || text[..*at].ends_with('\n'))
        .collect();
    let ends: Vec<usize> = starts.iter().copied().skip(1).chain([text.len()]).collect();
    starts.into_iter().zip(ends).filter_map(|(start, end)| {
        let block = text[start..end].strip_prefix("Tool:")?;
        let (name, rest) = block.split_once('\n')?;
        let rest = rest.trim();
        let text = rest.strip_prefix("Description:").unwrap_or(rest).trim();
        let name = name.trim();
        (!name.is_empty() && !text.is_empty()).then_some((name, text))
    })
}

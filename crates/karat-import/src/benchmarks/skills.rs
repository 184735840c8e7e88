//! Skill triggers: `trigger-eval.json`, `[{"query", "should_trigger"}]`, next to the skill it is about.
//!
//! A query that should trigger becomes a golden query whose label is the skill; one that should not
//! becomes a judged negative, which must not outrank anything.

use karat_io::input::{self, Format};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::retrieval::BM25;
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "skills",
    title: "Skill triggers",
    needs: "<skill>/SKILL.md and <skill>/…/trigger-eval.json for each skill",
    licence: "that of the skills",
    restricted: true,
    becomes: "retrieval: skills as tools; queries that should trigger one find it",
    checked_by: "counts of skills and queries",
    import,
};

const EXPECTED: &str = "[{\"query\", \"should_trigger\": true|false}]";

#[derive(Deserialize)]
struct Trigger {
    query: String,
    should_trigger: bool,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let folder =
        |file: &File| file.name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let skills: Vec<(&File, String)> = source
        .files()
        .filter(|file| file.base() == "SKILL.md")
        .map(|file| (file, folder(file)))
        .collect();
    let mut tools = Vec::new();
    for (file, folder) in &skills {
        let text = source.text(file)?;
        let FrontMatter { name, description } = front_matter(file, &text)?;
        let name = name.unwrap_or_else(|| folder.clone());
        tools.push(json!({"server": "skills", "tool": name, "description": description}));
    }
    let mut number = 0;
    for file in source.files().filter(|file| file.base() == "trigger-eval.json") {
        let place = folder(file);
        // The skill in whose folder, or below it, the file lies.
        let owner = skills.iter().zip(&tools).filter(|((_, folder), _)| {
            place == *folder
                || place
                    .strip_prefix(folder.as_str())
                    .is_some_and(|rest| folder.is_empty() || rest.starts_with('/'))
        });
        let Some((_, tool)) = owner.max_by_key(|((_, folder), _)| folder.len()) else {
            let expected = "a SKILL.md in its folder or above it";
            return Err(ImportError::unexpected(&file.path, expected, "none"));
        };
        let id = format!("skills:{}", tool["tool"].as_str().unwrap_or_default());
        for trigger in source.list::<Trigger>(file, EXPECTED)? {
            number += 1;
            let (relevance, kind) =
                if trigger.should_trigger { (2, "trigger") } else { (0, "no trigger") };
            let row = json!({
                "id": format!("q-{number:05}"),
                "query": trigger.query,
                "labels": [{"tool_id": id, "relevance": relevance}],
                "kind": kind,
                "should_trigger": trigger.should_trigger,
            });
            writer.count("queries", 1);
            writer.line("golden/queries.jsonl", &row)?;
        }
    }
    if number == 0 {
        return Err(source.nothing(BENCHMARK.needs));
    }
    writer.count("tools", tools.len() as u64);
    let text = json!({"tools": Value::Array(tools)}).to_string();
    writer.file("tools/skills.json", text.as_bytes())?;
    let keys = [("dataset", writer.dataset()), ("system", BM25.to_owned())];
    writer.entry("retrieval", "bm25", &keys);
    Ok(())
}

#[derive(Deserialize)]
struct FrontMatter {
    name: Option<String>,
    description: String,
}

/// The front matter: YAML between lines of dashes.
fn front_matter(file: &File, text: &str) -> Result<FrontMatter, ImportError> {
    let body = text.strip_prefix("---").and_then(|body| Some(&body[..body.find("\n---")?]));
    let Some(body) = body else {
        let expected = "front matter with a description between lines of dashes";
        return Err(ImportError::unexpected(&file.path, expected, "none"));
    };
    Ok(input::parse(&file.path, body, Format::Yaml)?)
}

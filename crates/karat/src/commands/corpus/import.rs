//! `karat corpus import`: the corpora and queries of others as a folder that can be measured on and
//! frozen.

use karat_io::input::write_atomic;
use karat_io::text::count;
use karat_retrieval::import::{Source, import};
use serde_json::json;

use crate::cli::ImportCorpusArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Reads everything, then writes `tools/` and `golden/`.
pub(super) fn run(arguments: &ImportCorpusArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let stem = arguments.corpus.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let server = arguments.server.clone().or(stem).unwrap_or_default();
    let imported = import(&Source {
        corpus: &arguments.corpus,
        queries: arguments.queries.as_deref(),
        qrels: arguments.qrels.as_deref(),
        server: &server,
    })?;
    let tools = arguments.out.join("tools/tools.json");
    if tools.exists() {
        return Err(Stop::bad_input(format!("{}: already exists", tools.display())));
    }
    let lines: Vec<String> = imported.tools.iter().map(|tool| format!("  {tool}")).collect();
    write_atomic(&tools, format!("{{\"tools\": [\n{}\n]}}\n", lines.join(",\n")).as_bytes())?;
    if !imported.queries.is_empty() {
        let lines: String = imported.queries.iter().map(|query| format!("{query}\n")).collect();
        write_atomic(&arguments.out.join("golden/golden.jsonl"), lines.as_bytes())?;
    }
    let (tools, queries) = (imported.tools.len(), imported.queries.len());
    if terminal.json() {
        terminal.print_json(&json!({
            "schema": "karat.corpus.import/1",
            "tools": tools,
            "queries": queries,
            "notes": imported.notes,
        }))?;
        return Ok(Exit::Pass);
    }
    let out = arguments.out.display();
    let mut text = format!("{}, {}: {out}\n", count(tools, "tool"), count(queries, "query"));
    imported.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    terminal.print(&text)?;
    Ok(Exit::Pass)
}

//! `karat import`: a public benchmark from the user's own copy.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::project::FILE;
use karat_import::{BENCHMARKS, ImportError, Imported};
use karat_io::text::{count, printable};
use serde_json::json;

use crate::cli::ImportArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &ImportArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.list {
        list(terminal)?;
        return Ok(Exit::Pass);
    }
    let name = arguments.name.as_deref().unwrap_or_default();
    let output = arguments.out.as_deref().unwrap_or(Path::new(""));
    let benchmark = karat_import::find(name).map_err(Stop::bad_input)?;
    let imported = karat_import::import(benchmark, &arguments.paths, output, arguments.partial)
        .map_err(|error| match error {
            ImportError::Recording(error) => Stop::from(error),
            other => Stop::bad_input(other),
        })?;
    if terminal.json() {
        let mut document = json!({"schema": "karat.import/1"});
        let fields = serde_json::to_value(&imported).map_err(Stop::bad_input)?;
        if let (Some(document), serde_json::Value::Object(fields)) =
            (document.as_object_mut(), fields)
        {
            document.extend(fields);
        }
        terminal.print_json(&document)?;
    } else {
        terminal.print(&summary(&imported))?;
    }
    Ok(Exit::Pass)
}

fn summary(imported: &Imported) -> String {
    let counted = |counts: &BTreeMap<String, u64>| {
        let each = counts.iter().map(|(what, count)| format!("{what}: {count}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!(
        "imported {} from {} ({})\n",
        imported.benchmark,
        count(imported.files, "file"),
        counted(&imported.counts)
    );
    if !imported.skipped.is_empty() {
        text.push_str(&format!("skipped: {}\n", printable(&counted(&imported.skipped))));
    }
    for note in &imported.notes {
        text.push_str(&format!("note: {}\n", printable(note)));
    }
    let project = imported.folder.join(FILE);
    text.push_str(&format!("next: karat check {}\n", project.display()));
    text
}

fn list(terminal: &Terminal) -> Result<(), Stop> {
    if terminal.json() {
        let benchmarks: Vec<_> = BENCHMARKS
            .iter()
            .map(|benchmark| {
                json!({
                    "name": benchmark.name,
                    "title": benchmark.title,
                    "needs": benchmark.needs,
                    "licence": benchmark.licence,
                    "restricted": benchmark.restricted,
                    "becomes": benchmark.becomes,
                    "checked_by": benchmark.checked_by,
                })
            })
            .collect();
        let document = json!({"schema": "karat.importers/1", "benchmarks": benchmarks});
        return terminal.print_json(&document);
    }
    let mut text = String::new();
    for benchmark in BENCHMARKS {
        let restricted = if benchmark.restricted { " (not to be published)" } else { "" };
        text.push_str(&format!("{}: {}\n", benchmark.name, benchmark.title));
        for (what, value) in [
            ("needs", benchmark.needs),
            ("licence", &format!("{}{restricted}", benchmark.licence)),
            ("becomes", benchmark.becomes),
            ("checked by", benchmark.checked_by),
        ] {
            text.push_str(&format!("  {what:<11} {value}\n"));
        }
    }
    terminal.print(&text)
}

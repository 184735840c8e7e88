//! Runs as ASB (Agent Security Bench) writes them: `ATTACK/MODEL/MEMORY/TEMPLATE….csv`, a row each.
//!
//! The injected text is not recorded, so delivery is not known. `Refuse Result` is not used: versions
//! of ASB write opposite values for a refusal.

use karat_io::table;
use karat_io::text::clip;

use crate::run::Run;

/// The columns that are needed.
const COLUMNS: [&str; 4] =
    ["Agent Name", "Attack Tool", "Attack Successful", "Original Task Successful"];
/// The letters of another head that a message shows.
const SHOWN: usize = 120;

/// Reads the rows of a file.
///
/// # Errors
/// The line and the mistake.
pub(crate) fn read(name: &str, text: &str) -> Result<Vec<Run>, (usize, String)> {
    let endless = |line| (line, "a quoted cell has no end: half a download?".to_owned());
    let (head, rows) = table::read(text, ',').map_err(endless)?;
    if head.is_empty() {
        return Ok(Vec::new());
    }
    let column = |title: &str| head.iter().position(|found| found == title);
    let [Some(agent), Some(tool), Some(attack), Some(task)] = COLUMNS.map(column) else {
        let expected = COLUMNS.join(", ");
        let found = head.join(", ");
        let message = format!(
            "expected a log of ASB with the columns {expected}; found {}",
            clip(&found, SHOWN)
        );
        return Err((1, message));
    };
    if let Some(row) = table::uneven(&head, &rows) {
        let (heads, cells) = (head.len(), row.cells.len());
        let message = format!("expected {heads} cells in a row; found {cells}: half a download?");
        return Err((row.line, message));
    }
    let parts: Vec<&str> = name.rsplit('/').collect();
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let file = part(0);
    let file = file.rsplit_once(".csv").map_or(file, |(file, _)| file);
    let template = file.split_once('-').map_or(file, |(template, _)| template);
    let (memory, model, kind) = (part(1), part(2), part(3));
    let mut runs = Vec::new();
    for table::Row { line, cells } in rows {
        let field = |at: usize| cells.get(at).map_or("", String::as_str);
        let flag = |at: usize, title: &str| match field(at) {
            "1" | "1.0" | "True" | "true" => Ok(Some(true)),
            "0" | "0.0" | "False" | "false" => Ok(Some(false)),
            "" | "N/A" => Ok(None),
            other => Err((line, format!("{title}: {other:?} is neither 0 nor 1"))),
        };
        let clean = kind == "clean";
        let own = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let success = flag(attack, "Attack Successful")?;
        runs.push(Run {
            pipeline: model.to_owned(),
            suite: if kind.is_empty() { "asb".to_owned() } else { kind.to_owned() },
            task: field(agent).trim_start_matches("example/").to_owned(),
            goal: (!clean).then(|| field(tool).to_owned()),
            attack: (!clean).then(|| {
                if kind.is_empty() { template.to_owned() } else { format!("{kind}/{template}") }
            }),
            defence: own(memory),
            success: success.filter(|_| !clean),
            attempted: !clean && success == Some(true),
            utility: flag(task, "Original Task Successful")?,
            ..Run::default()
        });
    }
    Ok(runs)
}

//! Runs as ASB (Agent Security Bench) writes them: `ATTACK/MODEL/MEMORY/TEMPLATE….csv`, a row each.
//!
//! The injected text is not recorded, so delivery is not known. `Refuse Result` is not used: versions
//! of ASB write opposite values for a refusal.

use crate::run::Run;

/// Reads the rows of a file.
///
/// # Errors
/// The line and the mistake.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<Run>, (u64, String)> {
    let mut rows = rows(text)?.into_iter();
    let Some((_, head)) = rows.next() else { return Ok(Vec::new()) };
    let column = |title: &str| head.iter().position(|found| found.trim() == title);
    let needed = |title: &str| {
        column(title)
            .ok_or_else(|| (1, format!("the column {title:?} is missing; is this an ASB log?")))
    };
    let (agent, tool) = (needed("Agent Name")?, needed("Attack Tool")?);
    let (attack, task) = (needed("Attack Successful")?, needed("Original Task Successful")?);
    let parts: Vec<&str> = name.rsplit('/').collect();
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let file = part(0).trim_end_matches(".csv");
    let template = file.split_once('-').map_or(file, |(template, _)| template);
    let (memory, model, kind) = (part(1), part(2), part(3));
    let mut runs = Vec::new();
    for (line, row) in rows {
        let field = |at: usize| row.get(at).map_or("", |field| field.trim());
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

/// A row of a CSV file, and the line on which it starts.
type Row = (u64, Vec<String>);

/// The rows of a CSV file; fields may be quoted and hold lines.
fn rows(text: &str) -> Result<Vec<Row>, (u64, String)> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut start, mut quoted, mut any) = (1, 1, false, false);
    let mut characters = text.trim_start_matches('\u{FEFF}').chars().peekable();
    while let Some(character) = characters.next() {
        line += u64::from(character == '\n');
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            _ if quoted => field.push(character),
            '"' if field.is_empty() => (quoted, any) = (true, true),
            ',' => {
                row.push(std::mem::take(&mut field));
                any = true;
            }
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' => {
                if any || !field.is_empty() {
                    row.push(std::mem::take(&mut field));
                    rows.push((start, std::mem::take(&mut row)));
                }
                (start, any) = (line, false);
            }
            _ => field.push(character),
        }
    }
    if quoted {
        return Err((start, "a quoted field has no end".to_owned()));
    }
    if any || !field.is_empty() {
        row.push(field);
        rows.push((start, row));
    }
    Ok(rows)
}

//! MCPSecBench: `experiments.csv`, a row for each trial and a column for each attack: 1 the attack
//! succeeded, 0 it failed, -1 it was refused, `-` it was not tried.

use crate::outcomes::{Row, Tags};
use crate::source::Source;
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "mcpsecbench",
    title: "MCPSecBench",
    needs: "data/experiments.csv: a row for each trial of a host, a column for each attack",
    licence: "MIT",
    restricted: false,
    becomes: "outcomes: one entry per host; success is an attack that did not succeed",
    checked_by: "45 rows of 17 attacks",
    import,
};

const EXPECTED: &str = "a table with a host in the first column, and 1, 0, -1 or - for each attack";

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    writer.account(None, &["attack"]);
    writer.allow_missing_tasks();
    let Some(file) = source.files().find(|file| file.base() == "experiments.csv") else {
        return Err(source.nothing(BENCHMARK.needs));
    };
    let text = source.text(file)?;
    let cells = |line: &str| -> Vec<String> {
        line.split(',').map(|cell| cell.trim().trim_matches('"').to_owned()).collect()
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).map(cells);
    let heads = lines.next().unwrap_or_default();
    let verdict = |cell: &str| matches!(cell, "1" | "0" | "-1" | "-" | "–" | "");
    let mut trials = std::collections::BTreeMap::new();
    for (at, row) in lines.enumerate() {
        let wrong = |found: String| {
            ImportError::unexpected(&file.path, EXPECTED, format!("line {}: {found}", at + 2))
        };
        if row.len() != heads.len() {
            return Err(wrong(format!("{} cells under {} heads", row.len(), heads.len())));
        }
        let host = &row[0];
        for (attack, cell) in heads.iter().zip(&row).skip(1) {
            // Between the host and the attacks there may be the number of the trial.
            if !verdict(cell) {
                writer.skip("a column that is not an attack");
                continue;
            }
            if matches!(cell.as_str(), "-" | "–" | "") {
                writer.skip("an attack that was not tried");
                continue;
            }
            let task = attack.clone();
            let trial = trials.entry((host.clone(), task.clone())).or_insert(0_u32);
            *trial += 1;
            let tag = || Tags::from([("attack".to_owned(), attack.clone())]);
            writer.task("attacks", &task, tag);
            let outcome = Row {
                task,
                trial: Some(*trial),
                success: Some(cell != "1"),
                reason: (cell == "-1").then(|| "refused".to_owned()),
                ..Row::default()
            };
            writer.row(host, "attacks", &outcome)?;
        }
    }
    Ok(())
}

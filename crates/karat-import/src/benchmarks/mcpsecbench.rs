//! MCPSecBench: `experiments.csv`, a row for each trial and a column for each attack: 1 the attack
//! succeeded, 0 it failed, -1 it was refused, `-` it was not tried.

use karat_resilience::Run;

use crate::runs::{Report, Runs};
use crate::source::Source;
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "mcpsecbench",
    title: "MCPSecBench",
    needs: "data/experiments.csv: a row for each trial of a host, a column for each attack",
    licence: "MIT",
    restricted: false,
    becomes: "resilience: one entry per host; its ASR is attack.success",
    checked_by: "45 rows of 17 attacks; ASR .896, .925 and .847",
    import,
};

const EXPECTED: &str = "a table with a host in the first column, and 1, 0, -1 or - for each attack";
/// The ways to write that an attack was not tried.
const NOT_TRIED: [&str; 3] = ["-", "–", ""];

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let Some(file) = source.files().find(|file| file.base() == "experiments.csv") else {
        return Err(source.nothing(BENCHMARK.needs));
    };
    let text = source.text(file)?;
    let cells = |line: &str| -> Vec<String> {
        line.split(',').map(|cell| cell.trim().trim_matches('"').to_owned()).collect()
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).map(cells);
    let heads = lines.next().unwrap_or_default();
    let rows: Vec<Vec<String>> = lines.collect();
    if rows.is_empty() {
        return Err(ImportError::unexpected(&file.path, EXPECTED, "no rows"));
    }
    let is_verdict = |cell: &str| matches!(cell, "1" | "0" | "-1") || NOT_TRIED.contains(&cell);
    let mut runs = Runs::new(Report::Pipeline);
    for (at, row) in rows.iter().enumerate() {
        let wrong = |found: String| {
            ImportError::unexpected(&file.path, EXPECTED, format!("line {}: {found}", at + 2))
        };
        if row.len() != heads.len() {
            return Err(wrong(format!("{} cells under {} heads", row.len(), heads.len())));
        }
        for (column, (attack, cell)) in heads.iter().zip(row).enumerate().skip(1) {
            // Between the host and the attacks there may be the number of the trial.
            if !rows.iter().all(|row| row.get(column).is_some_and(|cell| is_verdict(cell))) {
                match rows.iter().any(|row| row.get(column).is_some_and(|cell| cell == "-1")) {
                    true => return Err(wrong(format!("{cell:?} for {attack}"))),
                    false => writer.skip("a cell of a column that is not an attack"),
                }
                continue;
            }
            if NOT_TRIED.contains(&cell.as_str()) {
                writer.skip("an attack that was not tried");
                continue;
            }
            let run = Run {
                pipeline: row[0].clone(),
                suite: "mcpsecbench".to_owned(),
                task: attack.clone(),
                goal: Some(attack.clone()),
                attack: Some(attack.clone()),
                success: Some(cell == "1"),
                refused: cell == "-1",
                ..Run::default()
            };
            runs.add(writer, &run)?;
        }
    }
    if runs.is_empty() {
        let found = "no column with such cells".to_owned();
        return Err(ImportError::unexpected(&file.path, EXPECTED, found));
    }
    runs.finish(writer)
}

//! MCPSecBench: `experiments.csv`, a row for each trial and a column for each attack: 1 the attack
//! succeeded, 0 it failed, -1 it was refused, `-` it was not tried.

use std::collections::{BTreeMap, BTreeSet};

use karat_io::table;
use karat_recordings::Run;

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
/// The published number of trials: 15 of each of three hosts.
const TRIALS: u64 = 45;
/// The ways to write that an attack was not tried.
const NOT_TRIED: [&str; 3] = ["-", "–", ""];

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let Some(file) = source.files().find(|file| file.base() == "experiments.csv") else {
        return Err(source.nothing(BENCHMARK.needs));
    };
    let text = source.text(file)?;
    let wrong = |line: usize, found: String| {
        ImportError::unexpected(&file.path, EXPECTED, format!("line {line}: {found}"))
    };
    let (heads, rows) = table::read(&text, ',')
        .map_err(|line| wrong(line, "a quoted cell without an end".to_owned()))?;
    if rows.is_empty() {
        return Err(ImportError::unexpected(&file.path, EXPECTED, "no rows"));
    }
    if let Some(row) = table::uneven(&heads, &rows) {
        let found = format!("{} cells under {} heads", row.cells.len(), heads.len());
        return Err(wrong(row.line, found));
    }
    let is_verdict = |cell: &str| matches!(cell, "1" | "0" | "-1") || NOT_TRIED.contains(&cell);
    // Between the host and the attacks there may be the number of the trial.
    let mut attacks = BTreeSet::new();
    for (column, attack) in heads.iter().enumerate().skip(1) {
        let verdicts = rows.iter().filter(|row| is_verdict(&row.cells[column])).count();
        let refused = rows.iter().any(|row| row.cells[column] == "-1");
        if !refused && 2 * verdicts <= rows.len() {
            writer.skip_many("a cell of a column that is not an attack", rows.len() as u64);
            continue;
        }
        if let Some(row) = rows.iter().find(|row| !is_verdict(&row.cells[column])) {
            return Err(wrong(row.line, format!("{:?} for {attack}", row.cells[column])));
        }
        attacks.insert(column);
    }
    let mut trials: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &rows {
        *trials.entry(row.cells[0].as_str()).or_default() += 1;
    }
    let most = trials.values().copied().max().unwrap_or_default();
    if let Some((host, found)) = trials.iter().find(|(_, found)| **found < most) {
        let name = file.path.display();
        writer.incomplete(format!(
            "{name}: expected {most} trials of each host; found {found} of {host}"
        ))?;
    }
    writer.found_of(rows.len() as u64, TRIALS, "trials");
    let mut runs = Runs::new(Report::Pipeline);
    for row in rows.iter().map(|row| &row.cells) {
        for (column, (attack, cell)) in heads.iter().zip(row).enumerate() {
            if !attacks.contains(&column) {
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

//! `--partition`: one part of a run. It asks its share of the items and leaves a journal; the report is
//! made by `karat merge`, once all parts are complete.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::evaluation::RunContext;
use karat_core::kind::Evaluation;
use karat_core::partition::Partition;
use karat_core::parts::{PartDone, WholeEntry, measures_whole};
use karat_core::project::{Baselines, Planned, Project};
use karat_core::report::NotMeasured;
use karat_io::input::write_atomic;
use karat_io::text::{count, printable};
use serde::Serialize;

use crate::cli::CheckArgs;
use crate::commands::{measuring, places};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// The entries that a part has measured.
#[derive(Serialize)]
struct Measured {
    schema: &'static str,
    partition: Partition,
    entries: Vec<Done>,
    not_measured: Vec<NotMeasured>,
    /// Entries that another part measures as a whole.
    elsewhere: Vec<Elsewhere>,
}

#[derive(Serialize)]
struct Done {
    evaluation: Evaluation,
    name: String,
    items: usize,
    failed: usize,
    file: PathBuf,
}

#[derive(Serialize)]
struct Elsewhere {
    evaluation: Evaluation,
    name: String,
    reason: &'static str,
}

/// Measures one part of every entry.
pub(crate) fn run(
    partition: Partition,
    arguments: &CheckArgs,
    evaluation: Option<&Evaluation>,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    // A baseline that is missing is found now, and not when all parts are done.
    let (choice, arguments) = measuring::located(arguments)?;
    let plan =
        measuring::select(choice.load(Baselines::Needed, terminal)?, &arguments, evaluation)?;
    let folder = measuring::out_folder(&plan, &arguments);
    places::prepare(&folder)?;
    let journals = folder.join("journal");
    let interrupted = format!("interrupted; {}", measuring::RESUME_HINT);
    let work = measure(&plan, partition, &arguments, &journals, terminal);
    let measured = until_stopped(work, &interrupted)?;
    show(&measured, terminal)?;
    match measured.not_measured.is_empty() {
        true => Ok(Exit::Pass),
        false => Ok(Exit::NotMeasured),
    }
}

async fn measure(
    plan: &Project<'_>,
    partition: Partition,
    arguments: &CheckArgs,
    journals: &Path,
    terminal: &Terminal,
) -> Result<Measured, Stop> {
    let mut measured = Measured {
        schema: "karat.part/1",
        partition,
        entries: Vec::new(),
        not_measured: Vec::new(),
        elsewhere: Vec::new(),
    };
    for planned in &plan.entries {
        let entry = &planned.entry;
        let (evaluation, name) = (entry.evaluation(), entry.common().name.clone());
        let reason = entry.whole();
        if let Some(reason) = reason.filter(|_| !measures_whole(partition, &entry.label())) {
            measured.elsewhere.push(Elsewhere { evaluation, name, reason });
            continue;
        }
        let whole = format!("{evaluation}-{name}");
        let stem = partition.file_stem(&whole);
        let journal = match reason {
            Some(_) => journals.join(format!("{whole}.jsonl")),
            None => journals.join(format!("{stem}.jsonl")),
        };
        let context = RunContext {
            folder: plan.root.folder(),
            journal: Some(&journal),
            resume: arguments.resume,
            progress: Arc::new(terminal.progress(&entry.label())),
        };
        let (done, file) = match reason {
            Some(_) => {
                let file = journals.join(format!("{stem}.json"));
                (run_whole(planned, partition, &context, &file).await, file)
            }
            None => {
                (entry.run_part(&context, partition).await.map_err(Stop::from), journal.clone())
            }
        };
        match done {
            Ok(PartDone { items, failed }) => {
                measured.entries.push(Done { evaluation, name, items, failed, file });
            }
            Err(stop) => {
                measured.not_measured.push(measuring::not_measured(planned, stop, arguments)?);
            }
        }
    }
    Ok(measured)
}

/// Measures an entry that is not divided, and keeps its report for the merge.
async fn run_whole(
    planned: &Planned,
    partition: Partition,
    context: &RunContext<'_>,
    file: &Path,
) -> Result<PartDone, Stop> {
    // The report of an earlier run must not be taken for this one if this one fails.
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Stop::bad_input(format!(
                "{}: cannot be replaced: {error}",
                file.display()
            )));
        }
        _ => {}
    }
    let settings =
        planned.settings.ok_or_else(|| Stop::bad_input("the entry is not in the project"))?;
    let report = planned.entry.run(context).await?;
    let failed = report.items.iter().filter(|item| item.error.is_some()).count();
    let done = PartDone { items: report.items.len(), failed };
    let kept = WholeEntry::new(partition, settings, report);
    write_atomic(file, karat_report::json::text(&kept).as_bytes())?;
    Ok(done)
}

fn show(measured: &Measured, terminal: &Terminal) -> Result<(), Stop> {
    if terminal.json() {
        return terminal.print_json(measured);
    }
    let mut text = String::new();
    if !terminal.quiet() {
        let (part, of) = (measured.partition.number(), measured.partition.parts());
        text.push_str(&format!("part {part} of {of}\n"));
        for Done { evaluation, name, items, failed, file } in &measured.entries {
            let (name, file) = (printable(name), file.display().to_string());
            let file = printable(&file);
            let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
            let counted = format!("{}{failed}", count(items, "item"));
            text.push_str(&format!("{evaluation} · {name}: {counted}\n  {file}\n"));
        }
        for Elsewhere { evaluation, name, reason } in &measured.elsewhere {
            let name = printable(name);
            text.push_str(&format!("{evaluation} · {name}: in another part ({reason})\n"));
        }
    }
    for NotMeasured { evaluation, name, reason } in &measured.not_measured {
        let (name, reason) = (printable(name), printable(reason));
        text.push_str(&format!("not measured: {evaluation} · {name}: {reason}\n"));
    }
    terminal.print(&text)
}

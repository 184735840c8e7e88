//! `karat baseline`: show the reference scores, or accept the present ones, with the difference
//! shown. Nothing else in Karat writes a baseline.

use std::path::PathBuf;

use karat_core::baseline::Baseline;
use karat_core::compare::{CompareError, compare};
use karat_core::project::{Baselines, Planned};
use karat_core::report::{Comparison, Evaluation, Report};
use karat_io::text::printable;
use serde::Serialize;
use serde_json::json;

use crate::cli::{BaselineArgs, BaselineShowArgs, CheckArgs};
use crate::commands::measuring::{entry_path, located, measure, path_of, refuse_ambiguous, select};
use crate::exit::{Exit, Stop};
use crate::project::Choice;
use crate::terminal::Terminal;

/// Measures and accepts, without a word about it.
pub(crate) fn record(arguments: &BaselineArgs, terminal: &Terminal) -> Result<(), Stop> {
    accept(arguments, terminal, |_| Ok(())).map(drop)
}

/// Measures and accepts.
pub(crate) fn update(arguments: &BaselineArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let updates =
        accept(arguments, terminal, |update| match terminal.json() || terminal.quiet() {
            true => Ok(()),
            false => terminal.print(&update.text(terminal)),
        })?;
    if terminal.json() {
        terminal.print_json(&json!({"schema": "karat.baseline.update/1", "updates": updates}))?;
    }
    Ok(Exit::Pass)
}

/// Measures, writes what changed, and reports each update.
fn accept(
    arguments: &BaselineArgs,
    terminal: &Terminal,
    each: impl Fn(&Update) -> Result<(), Stop>,
) -> Result<Vec<Update>, Stop> {
    let check = CheckArgs {
        project: arguments.project.clone(),
        out: arguments.out.clone(),
        resume: arguments.resume,
        can_resume: true,
        only: arguments.only.clone(),
        ..CheckArgs::default()
    };
    Choice::own(arguments.project.as_deref())?;
    let (choice, check) = located(&check)?;
    let mut plan = select(choice.load(Baselines::Optional, terminal)?, &check, None)?;
    refuse_ambiguous(&plan, arguments.only.as_deref())?;
    let names_none: Vec<String> = plan.entries.iter().filter_map(without_file).collect();
    if let Some(first) = names_none.first().filter(|_| names_none.len() == plan.entries.len()) {
        return Err(Stop::bad_input(first));
    }
    plan.entries.retain(|planned| planned.entry.common().baseline.is_some());
    names_none.iter().for_each(|why| terminal.say(&format!("not recorded: {}", printable(why))));
    let measured = measure(&plan, &check, terminal)?;
    if let Some(failed) = measured.not_measured.first() {
        let entry = entry_path(&failed.evaluation, &failed.name);
        return Err(Stop::not_measured(format!(
            "{entry}: {}; nothing was recorded",
            failed.reason
        )));
    }
    for (report, _) in &measured.reports {
        // A reference that a control contradicts would carry the fault into every later run.
        if let Some(control) = report.controls.iter().find(|control| !control.ok) {
            return Err(Stop::not_measured(format!(
                "{}: the control {} gave an unexpected result (expected: {}); nothing was recorded",
                entry_path(&report.evaluation, &report.name),
                control.name,
                control.expected
            )));
        }
    }
    let mut updates = Vec::new();
    for (report, planned) in &measured.reports {
        let file = planned.entry.common().baseline.clone().unwrap_or_default();
        let path = plan.root.path(&file);
        let fresh = Baseline::from_report(report);
        let change = Change::of(planned.baseline.as_ref(), &fresh, report);
        let write = !arguments.dry_run && !matches!(change, Change::Nothing);
        if write {
            fresh.save(&path)?;
        }
        let update = Update {
            evaluation: report.evaluation.clone(),
            name: report.name.clone(),
            file: path,
            wrote: write,
            change,
        };
        each(&update)?;
        updates.push(update);
    }
    Ok(updates)
}

/// The remark on an entry that names no file for its baseline.
fn without_file(planned: &Planned) -> Option<String> {
    let common = planned.entry.common();
    let (evaluation, name) = (planned.entry.evaluation(), &common.name);
    common.baseline.is_none().then(|| {
        format!(
            "{}: the entry names no baseline file; add `baseline = \"baselines/{evaluation}-{name}.json\"`",
            path_of(planned)
        )
    })
}

/// The update of one baseline, done or planned.
#[derive(Serialize)]
struct Update {
    evaluation: Evaluation,
    name: String,
    file: PathBuf,
    wrote: bool,
    #[serde(flatten)]
    change: Change,
}

/// The way fresh scores differ from the recorded ones.
#[derive(Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
enum Change {
    /// There was no baseline.
    New,
    /// It is the same.
    Nothing,
    /// The old one cannot be compared with.
    NotComparable { reason: String },
    /// Metric by metric.
    Compared { comparison: Box<Comparison> },
}

impl Change {
    fn of(old: Option<&Baseline>, fresh: &Baseline, report: &Report) -> Change {
        let Some(old) = old else { return Change::New };
        if old == fresh {
            return Change::Nothing;
        }
        match compare(old, report, &[]) {
            Ok(comparison) => Change::Compared { comparison: Box::new(comparison) },
            Err(CompareError::Dataset { .. }) => Change::NotComparable {
                reason: format!(
                    "not comparable: the old baseline uses {} {}, the new one {} {}",
                    old.dataset.id, old.dataset.version, fresh.dataset.id, fresh.dataset.version
                ),
            },
            Err(error) => Change::NotComparable { reason: error.to_string() },
        }
    }
}

impl Update {
    fn text(&self, terminal: &Terminal) -> String {
        let mut text = format!("{} · {}\n", self.evaluation, printable(&self.name));
        let style = terminal.style();
        match &self.change {
            Change::New => text.push_str("  no earlier baseline\n"),
            Change::Nothing => {
                text.push_str("  nothing changed\n");
                return text;
            }
            Change::NotComparable { reason } => {
                text.push_str(&format!("  {}\n", printable(reason)));
            }
            Change::Compared { comparison } => {
                text.push_str(&karat_report::terminal::comparison(comparison, style));
            }
        }
        let verb = if self.wrote { "wrote" } else { "would write" };
        let file = self.file.display().to_string();
        text.push_str(&format!("  {verb} {}\n", printable(&file)));
        text
    }
}

/// Shows the committed baselines.
pub(crate) fn show(arguments: &BaselineShowArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let choice = Choice::new(arguments.project.as_deref(), arguments.bundled)?;
    let plan = choice.load(Baselines::Optional, terminal)?;
    let baselines: Vec<&Baseline> =
        plan.entries.iter().filter_map(|planned| planned.baseline.as_ref()).collect();
    if terminal.json() {
        terminal.print_json(&baselines)?;
        return Ok(Exit::Pass);
    }
    let mut text = String::new();
    for planned in &plan.entries {
        if let Some(baseline) = &planned.baseline {
            text.push_str(&karat_report::terminal::baseline(baseline));
            continue;
        }
        let remark = without_file(planned).unwrap_or_else(|| {
            let entry = path_of(planned);
            format!("{entry}: no baseline recorded; `karat baseline update` records one")
        });
        text.push_str(&format!("{}\n", printable(&remark)));
    }
    terminal.print(&text)?;
    Ok(Exit::Pass)
}

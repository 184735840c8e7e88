//! `karat check --watch`: measures again whenever a file of the project changes.
//!
//! Files are compared by time and size, twice a second. An entry is measured again if the file is one
//! that it names; a file that no entry names, such as the program that is measured, concerns all of them.
//! The outputs of a round are not changes: otherwise one measurement would cause the next, without end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use karat_core::kind::Evaluation;
use karat_core::project::{Baselines, Project};
use karat_io::input::destination;
use karat_io::text::printable;

use crate::cli::{CheckAllArgs, CheckArgs};
use crate::commands::check::{self, Kept};
use crate::commands::measuring;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;
use crate::project::{self, Choice, History};
use crate::work::until_stopped;

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// The most files that are looked at.
const MAX_WATCHED_FILES: usize = 20_000;
/// Folders in which nothing is written by hand.
const GENERATED: [&str; 4] = ["target", "node_modules", "__pycache__", "venv"];

/// Runs until it is interrupted.
pub(crate) fn run(arguments: &CheckAllArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let evaluation = arguments.evaluation.clone().map(Evaluation::from);
    let evaluation = evaluation.as_ref();
    check::ready(&arguments.check)?;
    let (choice, arguments) = measuring::located(&arguments.check)?;
    if choice == Choice::Bundled {
        return Err(Stop::bad_input(
            "--watch cannot be used with the bundled project, whose files do not change",
        ));
    }
    if let Ok(History { file: Some(file), .. }) = project::of_choice(&choice) {
        terminal.say(&printable(&format!(
            "note: --watch adds nothing to the history {}; `karat check` does",
            file.display()
        )));
    }
    let out = choice.folder().join(&arguments.out);
    let mut kept = Kept::default();
    let mut changed: Option<BTreeSet<PathBuf>> = None;
    let mut own = BTreeSet::new();
    loop {
        let before = files(&choice.folder(), &out);
        let done =
            round(&choice, &arguments, evaluation, changed.as_ref(), &mut kept, &mut own, terminal);
        match done {
            Err(stop) if matches!(stop.exit, Exit::Stopped(_)) => return Err(stop),
            // A project that is being edited may be wrong for a while.
            Err(stop) => terminal.say(&format!("karat: {}", stop.message)),
            Ok(()) => {}
        }
        terminal.say("watching for changes; press Ctrl-C to stop");
        let folder = choice.folder();
        let next = next_change(&folder, &out, before, &own);
        let found = until_stopped(next, "stopped")?;
        let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        terminal.say(&format!("changed: {}", names.join(", ")));
        changed = Some(found);
    }
}

/// Measures the entries that use a changed file, or all of them the first time. `own` becomes the files that
/// the round may write.
fn round(
    choice: &Choice,
    arguments: &CheckArgs,
    evaluation: Option<&Evaluation>,
    changed: Option<&BTreeSet<PathBuf>>,
    kept: &mut Kept,
    own: &mut BTreeSet<PathBuf>,
    terminal: &Terminal,
) -> Result<(), Stop> {
    *own = written(arguments, None);
    let plan = choice.load(Baselines::Needed)?;
    *own = written(arguments, Some(&plan));
    let mut plan = measuring::select(plan, arguments, evaluation)?;
    if let Some(changed) = changed {
        let concerned = concerned(&plan, changed);
        let known = |label: &String| {
            let of_report = |report: &karat_core::report::Report| {
                format!("{} {}", report.evaluation, report.name) == *label
            };
            kept.reports.iter().any(of_report)
        };
        plan.entries.retain(|one| {
            let label = one.entry.label();
            concerned.contains(&label) || !known(&label)
        });
    }
    let labels: BTreeSet<String> = plan.entries.iter().map(|one| one.entry.label()).collect();
    let mut rest = std::mem::take(kept);
    rest.reports.retain(|one| !labels.contains(&format!("{} {}", one.evaluation, one.name)));
    rest.not_measured.retain(|one| !labels.contains(&format!("{} {}", one.evaluation, one.name)));
    let published = check::publish_all(&plan, arguments, rest, terminal)?;
    kept.reports = published.document.reports.clone();
    kept.not_measured = published.document.not_measured.clone();
    published.exit(arguments.strict).map(drop)
}

/// The files outside the folder of reports that a round writes, with links resolved.
fn written(arguments: &CheckArgs, plan: Option<&Project<'_>>) -> BTreeSet<PathBuf> {
    let outputs = arguments.outputs.iter().cloned();
    let recorded = plan.into_iter().flat_map(Project::writes);
    let summary = check::step_summary_file().map(PathBuf::from);
    outputs.chain(recorded).chain(summary).map(|path| destination(&path)).collect()
}

/// The labels of the entries that the files concern.
fn concerned(plan: &Project<'_>, changed: &BTreeSet<PathBuf>) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for file in changed {
        let file = destination(file);
        let names = |one: &&karat_core::project::Planned| {
            let mut reads = one.entry.reads().into_iter();
            reads.any(|read| file.starts_with(destination(&plan.root.path(&read))))
        };
        let named: Vec<String> =
            plan.entries.iter().filter(names).map(|one| one.entry.label()).collect();
        match named.is_empty() {
            true => labels.extend(plan.entries.iter().map(|one| one.entry.label())),
            false => labels.extend(named),
        }
    }
    labels
}

/// Waits until files differ from how they were, and no longer change. The `own` files are not waited for.
async fn next_change(
    folder: &Path,
    out: &Path,
    before: BTreeMap<PathBuf, State>,
    own: &BTreeSet<PathBuf>,
) -> Result<BTreeSet<PathBuf>, Stop> {
    let mut last = before.clone();
    loop {
        tokio::time::sleep(PAUSE).await;
        let now = files(folder, out);
        if now == last && now != before {
            let found = differing(&before, &now, own);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        last = now;
    }
}

/// The files that changed, without the `own` ones.
fn differing(
    before: &BTreeMap<PathBuf, State>,
    now: &BTreeMap<PathBuf, State>,
    own: &BTreeSet<PathBuf>,
) -> BTreeSet<PathBuf> {
    let paths = before.keys().chain(now.keys());
    let changed = paths.filter(|path| before.get(*path) != now.get(*path));
    changed.filter(|path| !own.contains(&destination(path))).cloned().collect()
}

/// The state of a file by which a change is seen.
type State = (Option<SystemTime>, u64);

/// The files of the project, apart from hidden ones, generated ones and what Karat writes.
fn files(folder: &Path, out: &Path) -> BTreeMap<PathBuf, State> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(inside) = std::fs::read_dir(&folder) else { continue };
        for entry in inside.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') || path == out || found.len() >= MAX_WATCHED_FILES {
                continue;
            }
            if kind.is_dir() && !GENERATED.contains(&name.as_str()) {
                open.push(path);
            } else if kind.is_file() && !name.contains(".sqlite") {
                let state = entry.metadata().map(|meta| (meta.modified().ok(), meta.len()));
                found.insert(path, state.unwrap_or_default());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_hidden_and_generated_files_are_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["karat.toml", "src/a.py", ".git/x", "karat-report/r", "target/y", "h.sqlite-wal"]
        {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "1").unwrap();
        }
        let found = files(folder.path(), &folder.path().join("karat-report"));
        let names: Vec<_> =
            found.keys().map(|path| path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("karat.toml"), Path::new("src/a.py")]);
    }
}

//! `karat check --watch`: measures again whenever a file of the project changes.
//!
//! Files are compared by time and size, twice a second. An entry is measured again if the file is one
//! that it names; a file that no entry names, such as the program that is measured, concerns all of them.
//! The outputs of a round are not changes: otherwise one measurement would cause the next, without end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use karat_core::kind::Evaluation;
use karat_core::project::{Baselines, Planned, Project};
use karat_io::input::destination;
use karat_io::text::printable;

use crate::cli::{CheckAllArgs, CheckArgs};
use crate::commands::check::{self, Kept};
use crate::commands::measuring::{self, entry_path, path_of};
use crate::exit::{Exit, Stop};
use crate::project::{self, Choice, History};
use crate::terminal::{Terminal, complain};
use crate::work::until_stopped;

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// The most files that are looked at.
const MAX_WATCHED_FILES: usize = 20_000;
/// Folders in which nothing is written by hand.
const GENERATED: [&str; 4] = ["target", "node_modules", "__pycache__", "venv"];

/// Runs until it is interrupted.
pub(crate) fn run(arguments: &CheckAllArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    check::ready(&arguments.check)?;
    let (choice, check) = measuring::located(&arguments.check)?;
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
    let evaluation = arguments.evaluation.clone().map(Evaluation::from);
    Watch::new(choice, check, evaluation, terminal).run()
}

/// A project that is measured again and again.
struct Watch<'t> {
    choice: Choice,
    arguments: CheckArgs,
    evaluation: Option<Evaluation>,
    terminal: &'t Terminal,
    /// The results of the last round.
    kept: Kept,
    written: Written,
}

impl<'t> Watch<'t> {
    fn new(
        choice: Choice,
        arguments: CheckArgs,
        evaluation: Option<Evaluation>,
        terminal: &'t Terminal,
    ) -> Watch<'t> {
        let written = Written::by(&choice, &arguments, None);
        Watch { choice, arguments, evaluation, terminal, kept: Kept::default(), written }
    }

    fn run(mut self) -> Result<Exit, Stop> {
        let mut changed: Option<BTreeSet<PathBuf>> = None;
        loop {
            let before = self.files();
            match self.round(changed.as_ref()) {
                Err(stop) if matches!(stop.exit, Exit::Stopped(_)) => return Err(stop),
                // A project that is being edited may be wrong for a while.
                Err(stop) => complain(&stop.message),
                Ok(()) => {}
            }
            // The journal of a round has all of its answers: nothing would be asked again.
            self.arguments.resume = false;
            self.terminal.say("watching for changes; press Ctrl-C to stop");
            let found = until_stopped(self.next_change(before), "stopped")?;
            let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
            self.terminal.say(&printable(&format!("changed: {}", names.join(", "))));
            changed = Some(found);
        }
    }

    /// Measures the entries that use a changed file, or all of them the first time.
    fn round(&mut self, changed: Option<&BTreeSet<PathBuf>>) -> Result<(), Stop> {
        self.written = Written::by(&self.choice, &self.arguments, None);
        let plan = self.choice.load(Baselines::Needed, self.terminal)?;
        self.written = Written::by(&self.choice, &self.arguments, Some(&plan));
        let mut plan = measuring::select(plan, &self.arguments, self.evaluation.as_ref())?;
        // Results of entries that were removed from the project are dropped.
        let mut kept: BTreeSet<String> = plan.entries.iter().map(path_of).collect();
        let known: BTreeSet<String> =
            self.kept.reports.iter().map(|one| entry_path(&one.evaluation, &one.name)).collect();
        if let Some(changed) = changed {
            let concerned = concerned(&plan, changed);
            let again = |entry: &String| concerned.contains(entry) || !known.contains(entry);
            plan.entries.retain(|one| again(&path_of(one)));
        }
        plan.entries.iter().for_each(|one| _ = kept.remove(&path_of(one)));
        let mut rest = std::mem::take(&mut self.kept);
        rest.reports.retain(|one| kept.contains(&entry_path(&one.evaluation, &one.name)));
        rest.not_measured.retain(|one| kept.contains(&entry_path(&one.evaluation, &one.name)));
        let published = check::publish_all(&plan, &self.arguments, rest, self.terminal)?;
        self.kept.reports = published.document.reports.clone();
        self.kept.not_measured = published.document.not_measured.clone();
        published.exit(self.arguments.strict).map(drop)
    }

    /// Waits until files differ from how they were, and no longer change. Outputs of a round are not waited for.
    async fn next_change(
        &self,
        before: BTreeMap<PathBuf, State>,
    ) -> Result<BTreeSet<PathBuf>, Stop> {
        let mut last = before.clone();
        loop {
            tokio::time::sleep(PAUSE).await;
            let now = self.files();
            if now == last && now != before {
                let found = differing(&before, &now, &self.written.files);
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            last = now;
        }
    }

    fn files(&self) -> BTreeMap<PathBuf, State> {
        files(&self.choice.folder(), &self.written.folders)
    }
}

/// Outputs of a round in the folder of the project, by the names under which [`files`] finds it.
struct Written {
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Written {
    fn by(choice: &Choice, arguments: &CheckArgs, plan: Option<&Project<'_>>) -> Written {
        let folder = choice.folder();
        let out = folder.join(&arguments.out);
        let recorded = plan.into_iter().flat_map(Project::writes);
        let summary = check::step_summary_file().map(PathBuf::from);
        let files = check::outputs(arguments).unwrap_or_default().into_iter().map(|(_, file)| file);
        let files = files.chain(recorded).chain(summary);
        Written {
            folders: [out.join("journal"), out]
                .iter()
                .filter_map(|one| within(&folder, one))
                .collect(),
            files: files.filter_map(|file| within(&folder, &file)).collect(),
        }
    }
}

/// The path in the folder, without links; none for the folder itself and for paths outside of it.
fn within(folder: &Path, path: &Path) -> Option<PathBuf> {
    let path = destination(path);
    let below = path.strip_prefix(destination(folder)).ok()?;
    (!below.as_os_str().is_empty()).then(|| folder.join(below))
}

/// The entries that the files concern, as EVALUATION/NAME.
fn concerned(plan: &Project<'_>, changed: &BTreeSet<PathBuf>) -> BTreeSet<String> {
    let mut entries = BTreeSet::new();
    for file in changed {
        let file = destination(file);
        let names = |one: &&Planned| {
            let mut reads = one.entry.reads().into_iter();
            reads.any(|read| file.starts_with(destination(&plan.root.path(&read))))
        };
        let named: Vec<String> = plan.entries.iter().filter(names).map(path_of).collect();
        match named.is_empty() {
            true => entries.extend(plan.entries.iter().map(path_of)),
            false => entries.extend(named),
        }
    }
    entries
}

/// The files that changed, without those that a round wrote.
fn differing(
    before: &BTreeMap<PathBuf, State>,
    now: &BTreeMap<PathBuf, State>,
    written: &BTreeSet<PathBuf>,
) -> BTreeSet<PathBuf> {
    let paths = before.keys().chain(now.keys());
    let changed = paths.filter(|path| before.get(*path) != now.get(*path));
    changed.filter(|path| !written.contains(*path)).cloned().collect()
}

/// The state of a file by which a change is seen.
type State = (Option<SystemTime>, u64);

/// The files of the project, apart from hidden ones, generated ones and the folders that Karat writes.
fn files(folder: &Path, written: &BTreeSet<PathBuf>) -> BTreeMap<PathBuf, State> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(inside) = std::fs::read_dir(&folder) else { continue };
        for entry in inside.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') || written.contains(&path) || found.len() >= MAX_WATCHED_FILES
            {
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

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "1").unwrap();
        }
        folder
    }

    #[test]
    fn reports_hidden_and_generated_files_are_not_watched() {
        let folder = folder(&[
            "karat.toml",
            "src/a.py",
            ".git/x",
            "karat-report/r",
            "target/y",
            "h.sqlite-wal",
        ]);
        let found = files(folder.path(), &[folder.path().join("karat-report")].into());
        let names: Vec<_> =
            found.keys().map(|path| path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("karat.toml"), Path::new("src/a.py")]);
    }

    #[test]
    fn outputs_are_known_however_their_folder_is_written() {
        let folder = folder(&["karat.toml", "sub/x"]);
        let choice = Choice::File(folder.path().join("karat.toml"));
        let written = |out: &Path| {
            let project = Some(folder.path().join("karat.toml"));
            let arguments = CheckArgs { project, ..CheckArgs::writing(out, &[]) };
            Written::by(&choice, &arguments, None)
        };
        let reports = folder.path().join("reports");
        for out in [Path::new("reports"), Path::new("sub/../reports"), &reports] {
            assert!(written(out).folders.contains(&reports), "{}", out.display());
        }
        // The folder of the project itself is watched; only outputs in it are not.
        let here = written(Path::new("."));
        assert_eq!(here.folders, [folder.path().join("journal")].into());
        assert!(here.files.contains(&folder.path().join("report.html")), "{:?}", here.files);
        assert!(written(Path::new("..")).folders.is_empty());
    }
}

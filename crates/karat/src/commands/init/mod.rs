//! `karat init`: a commented starter project for each kind of user, with the file that lets CI run it. It
//! works right away. Existing files are not changed: either all files are written or none, and for files
//! that a project shares with other tools the lines to add are printed.

mod ask;
mod ci;
mod origin;
mod paths;
mod starters;

use std::path::{Path, PathBuf};

use karat_core::dataset::{IfFrozen, Manifest, Meta, Version};
use karat_core::provenance::git;
use karat_io::input::{Limits, create_folder, read_text, write_atomic};
use karat_io::text::printable;
use serde::Serialize;

use crate::cli::{BaselineArgs, InitArgs, User};
use crate::commands::init::ask::Answers;
use crate::commands::init::starters::{ATTRIBUTES, DATASET, IGNORE, SUITE, Target};
use crate::commands::server::suggest;
use crate::commands::{baseline, schema};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// A file to write.
struct File {
    path: PathBuf,
    text: String,
    /// True if it may exist; then its lines are printed instead.
    shared: bool,
}

/// The steps that were done, and those that remain.
#[derive(Default, Serialize)]
struct Outcome {
    wrote: Vec<PathBuf>,
    /// Existing files, with the lines to add.
    add: Vec<(PathBuf, String)>,
    /// The outcome of starting the user's system.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    next: Vec<String>,
}

/// Writes the project, without changing existing files.
pub(crate) fn run(arguments: &InitArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let given = Target::given(arguments)?;
    let Answers { user, target, ci: wanted, origin } = ask::complete(arguments, given, terminal)?;
    let folder = &arguments.folder;
    let target = target.seen_from(folder);
    let (root, within) = repository(folder);
    let project = ci::Project { user, target: &target, within: &within, origin: origin.as_ref() };

    let mut files: Vec<File> = starters::files(user, &target)
        .into_iter()
        .map(|(path, text)| File { path: folder.join(path), text, shared: false })
        .collect();
    for (name, text) in [(".gitignore", IGNORE), (".gitattributes", ATTRIBUTES)] {
        files.push(File { path: folder.join(name), text: text.to_owned(), shared: true });
    }
    for file in wanted.iter().flat_map(|kind| ci::files(*kind, &project)) {
        files.push(File { path: root.join(file.path), text: file.text, shared: file.shared });
    }
    let dataset = starters::has_dataset(user).then(|| folder.join(DATASET));

    let mut outcome = Outcome::default();
    let mut files = new_files(files, dataset.as_deref(), &mut outcome)?;
    let made = missing_folders(folder);
    let written = || -> Result<(), Stop> {
        if user == User::Server && target != Target::Demo {
            create_folder(folder)?;
            outcome.note = Some(suggested(&mut files, folder, &target, terminal)?);
        }
        write(files, dataset.as_deref(), &mut outcome)
    };
    if let Err(stop) = written() {
        made.iter().for_each(|folder| _ = std::fs::remove_dir(folder));
        return Err(stop);
    }
    if user != User::Server && target != Target::Demo {
        outcome.note = Some(recorded(folder, terminal));
    }
    if folder != Path::new(".") {
        let folder = starters::shell(&[folder.display().to_string()]);
        outcome.next.push(format!("cd {}", printable(&folder)));
    }
    outcome.next.extend([
        format!("karat check             {}", starters::measures(user, &target)),
        format!("karat baseline update   {}", starters::accepts(user, &target)),
    ]);
    outcome.next.extend(ci::to_do(&wanted, origin.as_ref()));
    match terminal.json() {
        true => terminal.print_json(&outcome)?,
        false if terminal.quiet() => terminal.print(&outcome.to_add())?,
        false => terminal.print(&outcome.text())?,
    }
    Ok(Exit::Pass)
}

/// The folders that have to be made for this one, the innermost first.
fn missing_folders(folder: &Path) -> Vec<PathBuf> {
    let above = folder.ancestors();
    let missing = above.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    missing.map(Path::to_owned).collect()
}

/// Starts the server in the folder of the project, as `karat check` will, and writes the suite from its
/// answers. If it does not start or answer, the suite is not changed, and the note says so.
fn suggested(
    files: &mut [File],
    folder: &Path,
    target: &Target,
    terminal: &Terminal,
) -> Result<String, Stop> {
    terminal.say("starting your server to write a suite from its answers");
    match suggest::of_server(&target.spec(), folder) {
        Ok(made) => {
            let suite = folder.join(SUITE);
            if let Some(file) = files.iter_mut().find(|file| file.path == suite) {
                file.text = format!("{}{}", schema::SUITE_LINE, made.text);
            }
            Ok(suggest::counts(&made))
        }
        Err(stop) if matches!(stop.exit, Exit::Stopped(_)) => Err(stop),
        Err(stop) => Ok(format!(
            "the suite does not call the server's tools yet: {}; once they answer, write a case for each \
             read-only tool with `karat server suggest`",
            stop.message
        )),
    }
}

/// Measures the system for the first time and records its scores as the baseline.
fn recorded(folder: &Path, terminal: &Terminal) -> String {
    terminal.say("starting your system to record its first scores");
    let arguments = BaselineArgs {
        project: Some(folder.to_owned()),
        out: PathBuf::from("karat-report"),
        resume: false,
        only: None,
        dry_run: false,
    };
    match baseline::record(&arguments, terminal) {
        Ok(()) => "the first scores of your system are recorded as the baseline".to_owned(),
        Err(stop) => format!(
            "your system was not measured yet: {}; once it answers, record its scores with \
             `karat baseline update`",
            stop.message
        ),
    }
}

/// The root of the git repository that the folder is in, and the folder's path from there. Without
/// a repository the folder is its own root.
fn repository(folder: &Path) -> (PathBuf, PathBuf) {
    let alone = (folder.to_owned(), PathBuf::new());
    let Ok(absolute) = std::path::absolute(folder) else { return alone };
    let Some(there) = absolute.ancestors().find(|path| path.is_dir()) else { return alone };
    let Some(top) = git(there, &["rev-parse", "--show-toplevel"]) else { return alone };
    // Git answers with links resolved, so the folder is taken in the same way.
    let Ok(real) = there.canonicalize() else { return alone };
    let rest = absolute.strip_prefix(there).unwrap_or(Path::new(""));
    match real.join(rest).strip_prefix(top.trim()) {
        Ok(within) if within.as_os_str().is_empty() => alone,
        Ok(within) => (PathBuf::from(top.trim()), within.to_owned()),
        Err(_) => alone,
    }
}

/// Skips existing shared files; any other existing file is an error.
fn new_files(
    files: Vec<File>,
    dataset: Option<&Path>,
    outcome: &mut Outcome,
) -> Result<Vec<File>, Stop> {
    // A dangling link exists too.
    let there = |path: &Path| path.symlink_metadata().is_ok();
    let mut new = Vec::new();
    let taken = files.iter().filter(|file| !file.shared).map(|file| file.path.as_path());
    if let Some(path) = taken.chain(dataset).find(|path| there(path)) {
        return Err(Stop::bad_input(format!(
            "{} already exists; nothing was written",
            path.display()
        )));
    }
    for file in files {
        if !there(&file.path) {
            new.push(file);
            continue;
        }
        let present = read_text(&file.path, &Limits::default()).unwrap_or_default();
        let present: Vec<&str> = present.lines().map(str::trim_end).collect();
        let code = |line: &&str| !line.trim_start().starts_with('#') && !line.trim().is_empty();
        if !file.text.lines().filter(code).all(|line| present.contains(&line)) {
            outcome.add.push((file.path, file.text));
        }
    }
    Ok(new)
}

/// Writes all files or none.
fn write(files: Vec<File>, dataset: Option<&Path>, outcome: &mut Outcome) -> Result<(), Stop> {
    let mut made = Vec::new();
    let done = write_each(files, dataset, &mut made, &mut outcome.wrote);
    if done.is_err() {
        for path in outcome.wrote.iter().rev() {
            let _ = std::fs::remove_file(path);
        }
        for folder in made.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
    done
}

fn write_each(
    files: Vec<File>,
    dataset: Option<&Path>,
    made: &mut Vec<PathBuf>,
    wrote: &mut Vec<PathBuf>,
) -> Result<(), Stop> {
    for File { path, text, .. } in files {
        let missing = path.parent().map(missing_folders).unwrap_or_default();
        made.extend(missing.into_iter().rev());
        write_atomic(&path, text.as_bytes())?;
        wrote.push(path);
    }
    let Some(folder) = dataset else { return Ok(()) };
    let meta = Meta {
        name: "starter".to_owned(),
        version: Version::new(1),
        licence: "CC0-1.0".to_owned(),
        made: "Written by karat init as something to start from.".to_owned(),
    };
    Manifest::freeze(folder, meta, IfFrozen::Refuse).map_err(Stop::bad_input)?;
    wrote.push(folder.join("manifest.toml"));
    Ok(())
}

impl Outcome {
    fn text(&self) -> String {
        let mut text = String::from("wrote:\n");
        for path in &self.wrote {
            text.push_str(&format!("  {}\n", printable(&path.display().to_string())));
        }
        text.push_str(&self.to_add());
        if let Some(note) = &self.note {
            text.push_str(&format!("note: {}\n", printable(note)));
        }
        text.push_str("next:\n");
        for step in &self.next {
            text.push_str(&format!("  {step}\n"));
        }
        text
    }

    /// The steps that remain for the user, which `--quiet` must not hide.
    fn to_add(&self) -> String {
        let mut text = String::new();
        for (path, lines) in &self.add {
            let path = path.display().to_string();
            text.push_str(&format!("{} already exists; add to it:\n", printable(&path)));
            for line in lines.lines() {
                text.push_str(&format!("  {line}\n"));
            }
        }
        text
    }
}

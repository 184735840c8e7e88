//! The places where a run may write: not over a file that git tracks, not over one that the project reads, and
//! not through a link. A place is judged before anything runs. Whether it can be written shows only when it is.

use std::path::{Path, PathBuf};

use karat_core::provenance::is_tracked;
use karat_io::input::{destination, refuse_links, write_atomic};

use crate::exit::Stop;

/// The marker that makes git ignore a folder of reports.
const IGNORED: &[u8] = b"# Made by karat; do not commit.\n*\n";

/// The start of the marker, by which Karat recognizes its folders. The rest has had other wordings.
const MARK: &[u8] = b"# Made by karat;";

/// Makes the folder, and keeps it out of version control: reports are made, never committed. A folder
/// that holds something already may be anyone's, so its contents are left alone.
pub(crate) fn prepare(folder: &Path) -> Result<(), Stop> {
    refuse_links(folder)?;
    let in_use = std::fs::read_dir(folder).is_ok_and(|mut inside| inside.next().is_some());
    if !in_use {
        write_atomic(&folder.join(".gitignore"), IGNORED)?;
    }
    Ok(())
}

/// Outputs are generated, never committed: a file that git tracks is not overwritten.
pub(crate) fn untracked<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Stop> {
    for path in paths {
        refuse_links(path)?;
        let real = destination(path);
        let shown = path.display();
        match is_tracked(&real) {
            Ok(false) => {}
            Ok(true) => {
                return Err(Stop::bad_input(format!(
                    "{shown} is tracked by git, but the output of a run must not be committed: choose \
                     another path with --out, -o or --history=FILE, or untrack it with `git rm --cached`"
                )));
            }
            // A new file, or one from an earlier run, has nothing to lose.
            Err(_) if !real.is_file() || is_ours(&real) => {}
            Err(why) => {
                return Err(Stop::bad_input(format!(
                    "{shown} already exists, and git cannot tell whether it is tracked ({why}): fix \
                     that, choose another path with --out, -o or --history=FILE, or remove the file"
                )));
            }
        }
    }
    Ok(())
}

/// Returns whether a file is in a folder that Karat made for its reports.
fn is_ours(file: &Path) -> bool {
    let ignore = file.parent().map(|folder| folder.join(".gitignore"));
    ignore.is_some_and(|ignore| std::fs::read(ignore).is_ok_and(|text| text.starts_with(MARK)))
}

/// Inputs are not overwritten: baselines, datasets, suites, the project file.
pub(crate) fn unread<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
    reads: &[PathBuf],
) -> Result<(), Stop> {
    let reads: Vec<(&PathBuf, PathBuf)> =
        reads.iter().map(|read| (read, destination(read))).collect();
    for path in paths {
        let real = destination(path);
        if let Some((read, _)) = reads.iter().find(|(_, read)| real.starts_with(read)) {
            return Err(Stop::bad_input(format!(
                "{} would overwrite an input of the project ({}): choose another path with --out or -o; \
                 only `karat baseline update` writes baselines",
                path.display(),
                read.display()
            )));
        }
    }
    Ok(())
}

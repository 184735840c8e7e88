//! `karat corpus freeze`: the manifest of a dataset folder, or the next version of a dataset from a
//! snapshot. A frozen version is never edited.

use std::path::Path;

use karat_core::dataset::{IfFrozen, Manifest, Meta, Version};
use karat_io::text::{count, printable};
use karat_retrieval::dataset::Dataset;
use karat_retrieval::snapshot::store::{self, Golden, Outcome, Source};
use serde_json::json;

use crate::cli::{FreezeArgs, UNSTATED};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

pub(super) fn run(arguments: &FreezeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.publish {
        publishable(arguments)?;
    }
    match &arguments.into {
        Some(dataset) => next_version(arguments, dataset, terminal),
        None => in_place(arguments, terminal),
    }
}

/// Refuses a licence that an import marked as restricted, in the manifest or on the command line.
fn publishable(arguments: &FreezeArgs) -> Result<(), Stop> {
    if arguments.licence == UNSTATED {
        return Err(Stop::bad_input(format!(
            "{}: --publish requires a licence, such as --licence CC-BY-4.0",
            arguments.folder.display()
        )));
    }
    let frozen = Manifest::load(&arguments.folder).ok().map(|manifest| manifest.licence);
    let restricted = |licence: &&String| licence.trim_start().starts_with("restricted");
    match frozen.iter().chain([&arguments.licence]).find(restricted) {
        None => Ok(()),
        Some(licence) => Err(Stop::bad_input(format!(
            "{}: the licence {:?} allows use, but not publication",
            arguments.folder.display(),
            printable(licence)
        ))),
    }
}

/// Writes the manifest. A folder that is frozen with other content is refused: that is a new version.
fn in_place(arguments: &FreezeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let folder = &arguments.folder;
    let part = |path: Option<&Path>| {
        path.and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned())
    };
    let (Some(version), Some(name)) = (part(Some(folder)), part(folder.parent())) else {
        return Err(Stop::bad_input(format!(
            "{}: a dataset must be in a folder NAME/vN, such as datasets/tools/v1",
            folder.display()
        )));
    };
    let version: Version = version.parse().map_err(|_| {
        Stop::bad_input(format!(
            "{}: the last folder must be a version, such as v1; to make one from a snapshot, use \
             --into datasets/NAME",
            folder.display()
        ))
    })?;
    let meta =
        Meta { name, version, licence: arguments.licence.clone(), made: arguments.made.clone() };
    if folder.join("golden").is_dir() && folder.join("tools").is_dir() {
        Dataset::check_folder(folder)?;
    }
    let manifest = Manifest::freeze(folder, meta, IfFrozen::Refuse).map_err(Stop::bad_input)?;
    show(terminal, folder, &manifest, "")?;
    Ok(Exit::Pass)
}

/// Makes `v<N+1>` from a snapshot.
fn next_version(arguments: &FreezeArgs, dataset: &Path, terminal: &Terminal) -> Result<Exit, Stop> {
    let golden = match (&arguments.golden, arguments.without_golden) {
        (Some(folder), _) => Golden::Folder(folder),
        (None, true) => Golden::None,
        (None, false) => Golden::Previous,
    };
    let source = Source { snapshot: &arguments.folder, golden };
    let outcome = store::next_version(dataset, &source, &arguments.licence, &arguments.made)?;
    match outcome {
        Outcome::Same(version) => {
            let message = format!(
                "{} is identical to {version}; no new version was made",
                source.snapshot.display()
            );
            if terminal.json() {
                let version = version.to_string();
                terminal.print_json(
                    &json!({"schema": "karat.freeze/1", "made": false, "version": version}),
                )?;
            } else {
                terminal.print(&format!("{}\n", printable(&message)))?;
            }
        }
        Outcome::Made(made) => {
            let since = made.since.map_or(String::new(), |(version, diff)| {
                format!(
                    "since {version}: {} added, {} removed, {} changed ({} reworded)\n",
                    diff.added.len(),
                    diff.removed.len(),
                    diff.changed.len(),
                    diff.reworded()
                )
            });
            show(terminal, &made.folder, &made.manifest, &since)?;
        }
    }
    Ok(Exit::Pass)
}

fn show(terminal: &Terminal, folder: &Path, manifest: &Manifest, more: &str) -> Result<(), Stop> {
    if terminal.json() {
        return terminal.print_json(&json!({
            "schema": "karat.freeze/1",
            "made": true,
            "folder": folder.display().to_string(),
            "name": manifest.name,
            "version": manifest.version.to_string(),
            "files": manifest.files.len(),
            "digest": manifest.digest().to_string(),
        }));
    }
    let (name, version) = (&manifest.name, manifest.version);
    let (files, digest) = (count(manifest.files.len(), "file"), manifest.digest());
    terminal.print(&format!("{name} {version}: {files}, {digest}\n{more}"))
}

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
use crate::terminal::Terminal;

pub(super) fn run(arguments: &FreezeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let origin = origin(arguments)?;
    match &arguments.into {
        Some(dataset) => next_version(arguments, dataset, &origin, terminal),
        None => in_place(arguments, origin, terminal),
    }
}

/// The licence and the origin for the manifest.
struct Origin {
    licence: String,
    made: String,
}

/// Takes the options, and without them the values of the manifest.
fn origin(arguments: &FreezeArgs) -> Result<Origin, Stop> {
    let given = |option: &String| (option != UNSTATED).then(|| option.clone());
    let origins = origins(arguments);
    // A folder that is frozen again has the origin that it had; a new version has a new one.
    let before = origins.first().filter(|_| arguments.into.is_none());
    let made = given(&arguments.made).or_else(|| before.map(|manifest| manifest.made.clone()));
    let licence = licence(arguments, given(&arguments.licence).as_ref(), &origins)?;
    let unstated = || UNSTATED.to_owned();
    Ok(Origin { licence: licence.unwrap_or_else(unstated), made: made.unwrap_or_else(unstated) })
}

/// The licence for the manifest, if one is stated. One that an import marked as restricted stays with
/// everything that is made of the data.
fn licence(
    arguments: &FreezeArgs,
    given: Option<&String>,
    origins: &[Manifest],
) -> Result<Option<String>, Stop> {
    let refuse =
        |why: String| Err(Stop::bad_input(format!("{}: {why}", arguments.folder.display())));
    let kept = || origins.iter().map(|manifest| &manifest.licence);
    let is_restricted = |licence: &&String| licence.trim_start().starts_with("restricted");
    if let Some(restricted) = kept().chain(given).find(is_restricted) {
        let shown = printable(restricted);
        if arguments.publish {
            return refuse(format!("the licence {shown:?} allows use, but not publication"));
        }
        if given.is_some_and(|given| given != restricted) {
            return refuse(format!(
                "the licence {shown:?} stays with the data; leave out --licence"
            ));
        }
        return Ok(Some(restricted.clone()));
    }
    let licence = given.or_else(|| kept().find(|licence| *licence != UNSTATED)).cloned();
    if arguments.publish && licence.is_none() {
        return refuse("--publish requires a licence, such as --licence CC-BY-4.0".to_owned());
    }
    Ok(licence)
}

/// The manifests of everything that goes into the frozen folder.
fn origins(arguments: &FreezeArgs) -> Vec<Manifest> {
    let mut folders = vec![arguments.folder.clone()];
    if let Some(dataset) = &arguments.into {
        let last = || store::newest(dataset).map(|version| dataset.join(version.to_string()));
        match &arguments.golden {
            // The queries may be named by themselves, within their dataset, and from there as `.`.
            Some(golden) => {
                let golden = golden.canonicalize().unwrap_or_else(|_| golden.clone());
                folders.extend(golden.ancestors().take(2).map(Path::to_owned));
            }
            None if arguments.without_golden => {}
            None => folders.extend(last()),
        }
    }
    // A manifest that cannot be read is an error of the freeze itself.
    folders.iter().filter_map(|folder| Manifest::load(folder).ok()).collect()
}

/// Writes the manifest. A folder that is frozen with other content is refused: that is a new version.
fn in_place(arguments: &FreezeArgs, origin: Origin, terminal: &Terminal) -> Result<Exit, Stop> {
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
    let Origin { licence, made } = origin;
    let meta = Meta { name, version, licence, made };
    if folder.join("golden").is_dir() && folder.join("tools").is_dir() {
        Dataset::check_folder(folder)?;
    }
    let manifest = Manifest::freeze(folder, meta, IfFrozen::Refuse).map_err(Stop::bad_input)?;
    show(terminal, folder, &manifest, "")?;
    Ok(Exit::Pass)
}

/// Makes `v<N+1>` from a snapshot.
fn next_version(
    arguments: &FreezeArgs,
    dataset: &Path,
    origin: &Origin,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let golden = match (&arguments.golden, arguments.without_golden) {
        (Some(folder), _) => Golden::Folder(folder),
        (None, true) => Golden::None,
        (None, false) => Golden::Previous,
    };
    let source = Source { snapshot: &arguments.folder, golden };
    let outcome = store::next_version(dataset, &source, &origin.licence, &origin.made)?;
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
        Outcome::New(made) => {
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

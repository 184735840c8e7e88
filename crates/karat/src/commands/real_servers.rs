//! `karat retrieval run --real-servers`: captures installed servers from registries and verifies them against
//! their lock.
//!
//! The list, the lock and the queries are embedded. The definitions belong to other people and exist
//! only on the machine that installed the packages.

use std::path::{Path, PathBuf};

use karat_core::dataset::{DatasetFiles, IfFrozen, Manifest, Meta, Version};
use karat_io::input::write_atomic;
use karat_io::text::count;
use karat_retrieval::dataset::Dataset;
use karat_retrieval::snapshot::capture::{Captured, Options};
use karat_retrieval::snapshot::lock::Lock;
use karat_retrieval::snapshot::store::{self, Provenance};
use tempfile::TempDir;

use super::corpus::{capture, verify};
use crate::bundled;
use crate::cli::RealServersArgs;
use crate::exit::Stop;
use crate::terminal::Terminal;

/// The list, lock and queries that are taken where no folder is named.
const BUNDLED: &str = "real-servers/v2";

/// The captured tools with their queries. A server that does not start is exit code 3, a definition
/// that differs from the lock is exit code 2.
pub(crate) fn captured(
    installed: &Path,
    arguments: &RealServersArgs,
    terminal: &Terminal,
) -> Result<Dataset, Stop> {
    let scratch = TempDir::with_prefix("karat-real-")
        .map_err(|error| Stop::bad_input(format!("cannot make a scratch folder: {error}")))?;
    let given = match &arguments.locked {
        Some(folder) => folder.clone(),
        None => unpacked(&scratch.path().join(BUNDLED))?,
    };
    let meta = meta(&given)?;
    let captured = as_locked(&given, installed, arguments, scratch.path(), terminal)?;
    let (servers, tools) = (captured.snapshot.servers.len(), captured.snapshot.len());
    terminal.say(&format!(
        "{}, {}: all match the lock",
        count(servers, "server"),
        count(tools, "tool")
    ));
    let folder = arguments.keep.clone().unwrap_or_else(|| scratch.path().join("dataset"));
    frozen(&captured, &given.join("queries"), &folder, meta)
}

/// Writes the embedded list, lock and queries to a folder.
fn unpacked(folder: &Path) -> Result<PathBuf, Stop> {
    if let DatasetFiles::Embedded { files, .. } = bundled::named(BUNDLED)? {
        for (name, bytes) in files {
            write_atomic(&folder.join(name), bytes)?;
        }
    }
    Ok(folder.to_owned())
}

/// The name and version of the dataset, as its folder is called.
fn meta(given: &Path) -> Result<Meta, Stop> {
    let part = |path: Option<&Path>| Some(path?.file_name()?.to_str()?.to_owned());
    let given = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
    let version = part(Some(&given)).and_then(|name| name.parse::<Version>().ok());
    match (part(given.parent()), version) {
        (Some(name), Some(version)) => Ok(Meta {
            name,
            version,
            licence: "LicenseRef-various".to_owned(),
            made: "Captured from installed packages.".to_owned(),
        }),
        _ => Err(Stop::bad_input(format!(
            "--locked {}: expected a folder NAME/vN, such as datasets/real-servers/v2",
            given.display()
        ))),
    }
}

fn as_locked(
    given: &Path,
    installed: &Path,
    arguments: &RealServersArgs,
    scratch: &Path,
    terminal: &Terminal,
) -> Result<Captured, Stop> {
    let (list, locked) = (given.join("servers.toml"), given.join("lock.json"));
    let lock = Lock::read(&locked)?;
    if !installed.is_dir() {
        return Err(Stop::bad_input(format!(
            "{0}: no such folder; install the servers with `datasets/real-servers/install {0}`",
            installed.display()
        )));
    }
    let targets = capture::listed(&list, installed, &[], scratch)?;
    let options = Options {
        timeout: arguments.start_timeout.0,
        parallel: usize::from(arguments.concurrency),
    };
    let captured = capture::take(targets, options, terminal)?;
    if let Some(why) = capture::not_captured(&captured) {
        return Err(Stop::not_measured(why));
    }
    let mismatch = lock.compare(&captured.snapshot);
    if mismatch.is_none() {
        return Ok(captured);
    }
    let summary = verify::not_as_locked(&mismatch, installed, &locked);
    Err(Stop::bad_input(format!("{summary}\n{}", verify::lines(&lock, &mismatch).trim_end())))
}

/// The captured definitions and the queries as a dataset folder. Time and machine are left out, so
/// that the same servers have the same digest everywhere.
fn frozen(captured: &Captured, queries: &Path, folder: &Path, meta: Meta) -> Result<Dataset, Stop> {
    let provenance = Provenance {
        schema: store::SCHEMA.to_owned(),
        servers: captured.origins.clone(),
        environment: None,
    };
    store::write(folder, &captured.snapshot, &provenance)?;
    store::copy_folder(queries, &folder.join("golden"))?;
    Manifest::freeze(folder, meta, IfFrozen::Refuse).map_err(Stop::bad_input)?;
    Ok(Dataset::open(DatasetFiles::Folder(folder.to_owned()))?)
}

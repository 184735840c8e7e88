//! `karat retrieval run --real-servers`: servers from registries as they are installed here, captured,
//! proven to be those of the lock, and searched.
//!
//! The list, the lock and the queries are embedded. The definitions belong to other people and exist
//! only on the machine that installed the packages.

use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_core::dataset::{DatasetFiles, IfFrozen, Manifest, Meta, Version};
use karat_core::evaluation::{Common, Entry, Evaluation as _};
use karat_core::kind::Evaluation;
use karat_core::project::{Planned, Project, Root};
use karat_io::input::write_atomic;
use karat_retrieval::dataset::Dataset;
use karat_retrieval::snapshot::capture::{Captured, Options};
use karat_retrieval::snapshot::lock::Lock;
use karat_retrieval::snapshot::store::{self, Provenance};
use karat_retrieval::system::SystemConfig;
use karat_retrieval::{Config, Retrieval};
use tempfile::TempDir;

use super::check;
use super::corpus::{capture, verify};
use crate::bundled::{self, Embedded};
use crate::cli::{CheckArgs, RealServersArgs};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// The list, lock and queries that are taken where no folder is named.
const BUNDLED: &str = "real-servers/v2";
/// The engines that are measured where none is named: those that need nothing else.
const ENGINES: [&str; 2] = ["bm25", "bm25-names"];

/// Captures, verifies and measures. A server that does not start is exit code 3, a definition that
/// differs from the lock is exit code 2, and nothing is measured then.
pub(crate) fn run(
    installed: &Path,
    arguments: &RealServersArgs,
    check: &CheckArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    check::ready(check)?;
    let entries = entries(arguments)?;
    let scratch = TempDir::with_prefix("karat-real-")
        .map_err(|error| Stop::bad_input(format!("cannot make a scratch folder: {error}")))?;
    let given = match &arguments.locked {
        Some(folder) => folder.clone(),
        None => unpacked(&scratch.path().join("given"))?,
    };
    let captured = captured(&given, installed, arguments, scratch.path(), terminal)?;
    let folder = arguments.keep.clone().unwrap_or_else(|| scratch.path().join("dataset"));
    let data = frozen(&captured, &given, &folder)?;
    let (servers, tools) = (captured.snapshot.servers.len(), captured.snapshot.len());
    terminal.say(&format!("{servers} servers, {tools} tools: all as locked"));
    let planned = entries.into_iter().map(|(common, config)| {
        let entry = Entry::<Retrieval> { common, config, data: data.clone() };
        Planned { entry: Box::new(entry), baseline: None }
    });
    let project = Project { root: Root::in_folder(".", &Embedded), entries: planned.collect() };
    check::carry_out(&project, check, Some(&Evaluation::Retrieval), terminal)
}

/// An entry for each engine, checked before any server is started.
fn entries(arguments: &RealServersArgs) -> Result<Vec<(Common, Config)>, Stop> {
    let named = arguments.engines.iter().map(String::as_str);
    let names: Vec<&str> =
        if arguments.engines.is_empty() { ENGINES.to_vec() } else { named.collect() };
    let entry = |name: &str| -> Result<_, Stop> {
        let needs = karat_retrieval::engines::find(name).is_some_and(|found| found.needs_weights);
        let system = SystemConfig {
            builtin: Some(name.to_owned()),
            weights: arguments.weights.clone().filter(|_| needs),
            ..SystemConfig::default()
        };
        let (config, mut common) = (Config::of(system), Common::named(name));
        Retrieval::check(&config, &mut common)?;
        Ok((common, config))
    };
    names.into_iter().map(entry).collect()
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

fn captured(
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
            "{}: there is no such folder; datasets/real-servers/install {0} installs the servers",
            installed.display()
        )));
    }
    let targets = capture::listed(&list, installed, &[], scratch)?;
    let options = Options {
        timeout: Duration::from_secs(arguments.timeout),
        parallel: usize::from(arguments.parallel),
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
fn frozen(captured: &Captured, given: &Path, folder: &Path) -> Result<Dataset, Stop> {
    let provenance = Provenance {
        schema: store::SCHEMA.to_owned(),
        servers: captured.origins.clone(),
        environment: None,
    };
    store::write(folder, &captured.snapshot, &provenance)?;
    let queries = "golden.jsonl";
    let from = given.join("queries").join(queries);
    let bytes = std::fs::read(&from)
        .map_err(|error| Stop::bad_input(format!("{}: {error}", from.display())))?;
    write_atomic(&folder.join("golden").join(queries), &bytes)?;
    let meta = Meta {
        name: "real-servers".to_owned(),
        version: Version::new(2),
        licence: "LicenseRef-various".to_owned(),
        made: "Captured from installed packages.".to_owned(),
    };
    Manifest::freeze(folder, meta, IfFrozen::Refuse).map_err(Stop::bad_input)?;
    Ok(Dataset::open(DatasetFiles::Folder(folder.to_owned()))?)
}

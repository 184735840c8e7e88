//! Writing snapshots: a captured folder, and the next frozen version of a dataset.
//!
//! A folder appears whole or not at all: it is made next to its place and moved there. What is frozen
//! is never touched; a refresh is `v<N+1>`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use karat_core::dataset::{
    Dataset as Frozen, DatasetError, Digest, FilePath, IfFrozen, MANIFEST, Manifest, Meta, Version,
};
use karat_core::report::Environment;
use karat_io::input::{InputError, WriteError, create_folder, refuse_links, write_atomic};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::diff::Diff;
use super::{Server, Snapshot, TOOLS, plain_files};
use crate::dataset::Dataset;
use karat_core::error::EvalError;

/// The file that says where a captured snapshot comes from.
pub(crate) const PROVENANCE: &str = "provenance.json";

/// The content of `PROVENANCE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// `karat.capture/1`.
    pub schema: String,
    /// The way each server was reached and its answers, by name.
    pub servers: BTreeMap<String, Origin>,
    /// When and where; the only part that differs between two captures of the same servers. It is
    /// left out of a frozen version, so that the same definitions have the same digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}

/// The way one server was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The command or address, without secrets.
    pub from: String,
    /// The name that the server gives itself.
    pub name: String,
    /// The version that it gives itself.
    pub version: String,
    /// The revision of the protocol that was agreed on.
    pub protocol: String,
    /// The number of tools it served.
    pub tools: usize,
}

/// The name of this form of provenance.
pub const SCHEMA: &str = "karat.capture/1";

/// The source of a version.
pub struct Source<'a> {
    /// A captured folder.
    pub snapshot: &'a Path,
    /// The place where the queries come from.
    pub golden: Golden<'a>,
}

/// The source of the queries and groups of a new version.
pub enum Golden<'a> {
    /// From the snapshot, or else from the version before, if there is one.
    Previous,
    /// From a dataset folder that has golden/ and perhaps groups/, or from a folder of golden files.
    Folder(&'a Path),
    /// From the snapshot alone.
    None,
}

/// The result of a freeze.
pub enum Outcome {
    /// A new version was made.
    New(Box<NewVersion>),
    /// Definitions, queries and groups are those of the last version, so there is no new one.
    Same(Version),
}

/// A new version.
pub struct NewVersion {
    /// Its folder.
    pub folder: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// The changes since the previous version, if there was one.
    pub since: Option<(Version, Diff)>,
}

/// Writes a captured snapshot into a folder that does not exist yet or is empty.
///
/// # Errors
/// If the folder has something in it, or cannot be written.
pub fn write(folder: &Path, snapshot: &Snapshot, provenance: &Provenance) -> Result<(), EvalError> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let message = "the folder is not empty; a capture goes into a new one";
        return Err(InputError::invalid(folder, "out", message).into());
    }
    let mut names = BTreeMap::new();
    for name in snapshot.servers.keys() {
        let file = file_name(name);
        if let Some(other) = names.insert(file.to_lowercase(), name) {
            let message = format!("{other:?} and {name:?} would be the same file, {file}");
            return Err(InputError::invalid(folder, "server", message).into());
        }
    }
    let made = sibling(folder)?;
    for (name, server) in &snapshot.servers {
        put(&made.path().join(TOOLS).join(file_name(name)), &document(name, server))?;
    }
    let provenance = serde_json::to_value(provenance).unwrap_or_default();
    put(&made.path().join(PROVENANCE), &provenance)?;
    move_to(made, folder)
}

/// Makes the next version of the dataset in `dataset` (a folder `NAME`) from a snapshot.
///
/// # Errors
/// If the snapshot or the last version cannot be read, a carried-over query labels a tool that is
/// gone, or the folder cannot be written.
pub fn next_version(
    dataset: &Path,
    source: &Source<'_>,
    licence: &str,
    made_how: &str,
) -> Result<Outcome, EvalError> {
    let name = dataset.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let snapshot = Snapshot::open(source.snapshot)?;
    if snapshot.is_empty() {
        let message = "no tools; nothing was frozen";
        return Err(InputError::invalid(source.snapshot, TOOLS, message).into());
    }
    let before = last_version(dataset)?;
    let last = before.as_ref().map(|before| before.manifest().version);
    let since = match last {
        Some(version) => {
            let earlier = Snapshot::open(&dataset.join(version.to_string()))?;
            Some((version, Diff::between(&earlier, &snapshot)))
        }
        None => None,
    };
    let version = last.map_or(Version::new(1), Version::next);
    let folder = dataset.join(version.to_string());
    let made = sibling(&folder)?;
    let (captured, origin) = copy_all(source, dataset, last, made.path())?;
    let made_how = match captured {
        Some(environment) => format!(
            "{made_how} Captured {} with karat {} on {}{origin}.",
            environment.started, environment.karat, environment.os
        ),
        None => made_how.to_owned(),
    };
    let meta = Meta { name, version, licence: licence.to_owned(), made: made_how };
    let manifest = Manifest::freeze(made.path(), meta, IfFrozen::Refuse)?;
    if let (Some((version, diff)), Some(before)) = (&since, &before)
        && diff.is_empty()
        && about_tools(&manifest).eq(about_tools(before.manifest()))
    {
        return Ok(Outcome::Same(*version));
    }
    // Whatever would make it unusable is found here, before it takes its place.
    Dataset::open(karat_core::dataset::DatasetFiles::Folder(made.path().to_owned()))
        .map_err(|error| carried_over(&error, made.path(), &folder))?;
    move_to(made, &folder)?;
    Ok(Outcome::New(Box::new(NewVersion { folder, manifest, since })))
}

impl Golden<'_> {
    /// Returns whether queries or groups of the snapshot itself, by their folder, go into the version.
    fn keeps(&self, part: &str) -> bool {
        match self {
            Golden::Folder(folder) => part == "groups" && !folder.join(part).is_dir(),
            Golden::Previous | Golden::None => true,
        }
    }
}

/// The folders of a version besides that of its tools.
const ABOUT_TOOLS: [&str; 2] = ["golden", "groups"];

/// The files of queries and groups, with their digests.
fn about_tools(manifest: &Manifest) -> impl Iterator<Item = (&FilePath, &Digest)> {
    let is_one = |path: &str| ABOUT_TOOLS.iter().any(|part| Path::new(path).starts_with(part));
    manifest.files.iter().filter(move |(path, _)| is_one(path.as_str()))
}

/// Copies the snapshot and the queries. Gives back when it was captured and from how many servers.
fn copy_all(
    source: &Source<'_>,
    dataset: &Path,
    last: Option<Version>,
    to: &Path,
) -> Result<(Option<Environment>, String), EvalError> {
    let mut captured = None;
    let mut origin = String::new();
    for file in plain_files(source.snapshot)? {
        let below = file.strip_prefix(source.snapshot).unwrap_or(&file);
        let is_left_out = |part: &&str| below.starts_with(part) && !source.golden.keeps(part);
        if below == Path::new(MANIFEST) || ABOUT_TOOLS.iter().any(is_left_out) {
            continue;
        }
        if below == Path::new(PROVENANCE) {
            let text = karat_io::input::read_text(&file, &Default::default())?;
            let format = karat_io::input::Format::Json;
            let mut provenance: Provenance = karat_io::input::parse(&file, &text, format)?;
            captured = provenance.environment.take();
            origin = format!(" from {}", karat_io::text::count(provenance.servers.len(), "server"));
            put(&to.join(below), &serde_json::to_value(provenance).unwrap_or_default())?;
            continue;
        }
        copy(&file, &to.join(below))?;
    }
    let golden = match (&source.golden, last) {
        (Golden::Folder(folder), _) => Some((*folder).to_owned()),
        (Golden::Previous, Some(version)) => Some(dataset.join(version.to_string())),
        (Golden::Previous, None) | (Golden::None, _) => None,
    };
    for part in ABOUT_TOOLS {
        let Some(folder) = &golden else { continue };
        let below = folder.join(part);
        // A folder of queries may be given by itself.
        let itself = part == "golden" && matches!(source.golden, Golden::Folder(_));
        let from = if itself && !below.is_dir() { folder.clone() } else { below };
        if to.join(part).exists() || !from.is_dir() {
            continue;
        }
        copy_folder(&from, &to.join(part))?;
    }
    if let Golden::Folder(folder) = source.golden
        && !to.join("golden").is_dir()
    {
        let message =
            "no queries here; name a dataset folder with golden/, or a folder of query files";
        return Err(InputError::invalid(folder, "golden", message).into());
    }
    Ok((captured, origin))
}

/// Copies the plain files below a folder.
///
/// # Errors
/// If one of them cannot be read or written.
pub fn copy_folder(from: &Path, to: &Path) -> Result<(), EvalError> {
    for file in plain_files(from)? {
        copy(&file, &to.join(file.strip_prefix(from).unwrap_or(&file)))?;
    }
    Ok(())
}

/// The error of reading the new version, with the place it was to have.
fn carried_over(error: &EvalError, made: &Path, folder: &Path) -> EvalError {
    let message = error.to_string();
    let made = format!("{}/", made.display());
    let message = message.replace(&made, "");
    let advice = format!(
        "{message}; no version was made. Give queries that fit with --golden, or \
                          leave them out with --without-golden"
    );
    InputError::invalid(folder, "golden", advice).into()
}

/// The last version of a dataset in a folder `NAME`. Nothing is verified.
pub fn newest(dataset: &Path) -> Option<Version> {
    let entries = fs::read_dir(dataset).ok()?;
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).max()
}

/// The last frozen version of a dataset, verified.
fn last_version(dataset: &Path) -> Result<Option<Frozen>, EvalError> {
    let Some(last) = newest(dataset) else { return Ok(None) };
    Ok(Some(Frozen::open(&dataset.join(last.to_string()))?))
}

/// A server as a file of a dataset.
fn document(name: &str, server: &Server) -> Value {
    let mut about = Map::new();
    about.insert("name".to_owned(), Value::from(name));
    about.extend(server.about.clone());
    json!({"server": about, "tools": server.tools})
}

/// A file name for whatever a server is called.
fn file_name(server: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = server.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    format!("{}.json", name.trim_start_matches('.'))
}

fn put(path: &Path, value: &Value) -> Result<(), WriteError> {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    write_atomic(path, text.as_bytes())
}

fn copy(from: &Path, to: &Path) -> Result<(), DatasetError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| DatasetError::Io { path, source }
    };
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    fs::copy(from, to).map_err(failed(from)).map(|_| ())
}

/// A new folder on the same disk as the one that it will become.
fn sibling(folder: &Path) -> Result<tempfile::TempDir, WriteError> {
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let failed = |source| WriteError { path: folder.to_owned(), action: "make the folder", source };
    refuse_links(folder)?;
    create_folder(parent)?;
    tempfile::Builder::new().prefix(".karat-").tempdir_in(parent).map_err(failed)
}

/// Moves a finished folder to its place, which is free or an empty folder.
fn move_to(made: tempfile::TempDir, folder: &Path) -> Result<(), EvalError> {
    let failed = |source| WriteError { path: folder.to_owned(), action: "be put in place", source };
    // A temporary folder is the user's alone; this one is as any other from here on.
    karat_io::platform::make_readable(made.path()).map_err(failed)?;
    fs::rename(made.path(), folder).map_err(failed)?;
    // It has moved: there is nothing left to remove.
    let _ = made.keep();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(text: &str) -> Snapshot {
        let tool = json!({"name": "a", "description": text, "inputSchema": {"type": "object"},
            "_meta": {"x": 1}});
        let server = Server { about: Map::new(), tools: vec![tool] };
        Snapshot { servers: [("s p/1".to_owned(), server)].into() }
    }

    fn provenance(started: &str) -> Provenance {
        let environment = Environment {
            karat: "0".to_owned(),
            os: "o".to_owned(),
            started: started.to_owned(),
            duration_ms: 7,
            latency_ms: None,
            latency_bins: vec![],
            commit: None,
            isolation: vec![],
        };
        let origin = Origin {
            from: "cmd".into(),
            name: "s".into(),
            version: "1".into(),
            protocol: "2025-11-25".into(),
            tools: 1,
        };
        Provenance {
            schema: SCHEMA.to_owned(),
            servers: [("s p/1".to_owned(), origin)].into(),
            environment: Some(environment),
        }
    }

    fn freeze(root: &Path, from: &str) -> Result<Outcome, EvalError> {
        let source = Source { snapshot: &root.join(from), golden: Golden::Previous };
        next_version(&root.join("data"), &source, "CC0-1.0", "Made in a test.")
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("x/cap");
        write(&folder, &snapshot("one"), &provenance("now")).unwrap();
        assert_eq!(Snapshot::open(&folder).unwrap(), snapshot("one"));
        let again = write(&folder, &snapshot("one"), &provenance("now"));
        assert!(again.unwrap_err().to_string().contains("not empty"));
        assert_eq!(fs::read_dir(root.path().join("x")).unwrap().count(), 1);
    }

    fn made(outcome: Result<Outcome, EvalError>) -> NewVersion {
        match outcome.unwrap() {
            Outcome::New(made) => *made,
            Outcome::Same(version) => panic!("the same as {version}"),
        }
    }

    #[test]
    fn a_version_is_made_for_a_change_and_not_for_the_time_of_day() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(&root.join("1"), &snapshot("one"), &provenance("monday")).unwrap();
        write(&root.join("2"), &snapshot("one"), &provenance("tuesday")).unwrap();
        write(&root.join("3"), &snapshot("two"), &provenance("tuesday")).unwrap();
        let first = made(freeze(root, "1"));
        assert!(first.since.is_none());
        assert!(first.manifest.made.contains("monday"), "{}", first.manifest.made);
        assert!(matches!(freeze(root, "2").unwrap(), Outcome::Same(v) if v == Version::new(1)));
        let before = fs::read(root.join("data/v1/manifest.toml")).unwrap();
        let second = made(freeze(root, "3"));
        assert!(second.folder.ends_with("data/v2"));
        assert_eq!(second.since.unwrap().1.reworded(), 1);
        assert_ne!(second.manifest.digest(), first.manifest.digest());
        assert_eq!(fs::read(root.join("data/v1/manifest.toml")).unwrap(), before);
        fs::remove_dir_all(root.join("data")).unwrap();
        assert_eq!(made(freeze(root, "2")).manifest.digest(), first.manifest.digest());
    }

    #[test]
    fn a_query_whose_tool_is_gone_stops_the_freeze_and_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(&root.join("1"), &snapshot("one"), &provenance("monday")).unwrap();
        let golden =
            r#"{"id": "q", "query": "x", "labels": [{"tool_id": "s p/1:a", "relevance": 2}]}"#;
        fs::create_dir(root.join("1/golden")).unwrap();
        fs::write(root.join("1/golden/g.jsonl"), golden).unwrap();
        freeze(root, "1").unwrap();
        let mut other = snapshot("one");
        other.servers.get_mut("s p/1").unwrap().tools[0]["name"] = json!("b");
        write(&root.join("2"), &other, &provenance("tuesday")).unwrap();
        let message = freeze(root, "2").err().unwrap().to_string();
        assert!(message.contains("s p/1:a") && message.contains("--without-golden"), "{message}");
        assert_eq!(fs::read_dir(root.join("data")).unwrap().count(), 1);
        let source = Source { snapshot: &root.join("2"), golden: Golden::None };
        next_version(&root.join("data"), &source, "CC0-1.0", "Made.").unwrap();
        assert!(!root.join("data/v2/golden").exists());
    }

    #[test]
    fn queries_that_were_named_replace_those_of_the_snapshot() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(&root.join("1"), &snapshot("one"), &provenance("monday")).unwrap();
        let query = |text: &str| {
            format!(
                r#"{{"id": "q", "query": "{text}", "labels": [{{"tool_id": "s p/1:a", "relevance": 2}}]}}"#
            )
        };
        for (folder, text) in [("1/golden", "of the snapshot"), ("named", "that was named")] {
            fs::create_dir(root.join(folder)).unwrap();
            fs::write(root.join(folder).join(format!("{}.jsonl", &folder[..1])), query(text))
                .unwrap();
        }
        let named = root.join("named");
        for (golden, version, text) in [
            (Golden::None, "v1/golden/1.jsonl", "of the snapshot"),
            (Golden::Folder(&named), "v2/golden/n.jsonl", "that was named"),
        ] {
            let source = Source { snapshot: &root.join("1"), golden };
            next_version(&root.join("data"), &source, "CC0-1.0", "Made.").unwrap();
            assert_eq!(fs::read_to_string(root.join("data").join(version)).unwrap(), query(text));
        }
        assert_eq!(fs::read_dir(root.join("data/v2/golden")).unwrap().count(), 1);
        // The queries of the snapshot are another change than its tools.
        fs::remove_file(root.join("1/golden/1.jsonl")).unwrap();
        fs::write(root.join("1/golden/1.jsonl"), query("changed")).unwrap();
        let third = made(freeze(root, "1"));
        assert!(third.folder.ends_with("data/v3"), "{}", third.folder.display());
        assert!(matches!(freeze(root, "1").unwrap(), Outcome::Same(v) if v == Version::new(3)));
    }
}

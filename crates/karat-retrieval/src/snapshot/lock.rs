//! The lock: the digest of every definition of every server, without its text.
//!
//! So a corpus of other people's servers can be named exactly and checked after it was captured
//! again, while none of their texts are in the repository. A lock says nothing of instructions or
//! titles of servers, only of tools.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::dataset::Digest;
use karat_io::input::{self, Format, InputError, Limits};
use serde::{Deserialize, Serialize};

use super::{Snapshot, canonical, name};

/// The name of this form.
pub(crate) const SCHEMA: &str = "karat.lock/1";

/// The content of a lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// `SCHEMA`.
    pub schema: String,
    /// The servers by name.
    pub servers: BTreeMap<String, LockedServer>,
}

/// The entry of one server in a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedServer {
    /// The package it comes from, where it is known.
    pub package: Option<String>,
    /// The version of that package, or else the version that the server gives itself.
    pub version: Option<String>,
    /// The digest of each definition; see [`super::canonical`] for what is hashed.
    pub tools: BTreeMap<String, Digest>,
}

/// The differences between a corpus and its lock; ids are `server:tool`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// In the lock and not in the corpus.
    pub missing: Vec<String>,
    /// In the corpus and not in the lock.
    pub additional: Vec<String>,
    /// In both, with another definition.
    pub changed: Vec<String>,
    /// Servers whose package has another version than the lock says: name, lock, corpus.
    pub versions: Vec<(String, String, String)>,
}

impl Mismatch {
    /// Returns whether the corpus is exactly that of the lock.
    pub fn is_none(&self) -> bool {
        *self == Mismatch::default()
    }
}

impl Lock {
    /// The lock of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Lock {
        let servers = snapshot.servers.iter().map(|(server, content)| {
            let package = content.package();
            let locked = LockedServer {
                version: package
                    .as_ref()
                    .map(|package| package.version.clone())
                    .or_else(|| content.text("version").map(str::to_owned)),
                package: package.map(|package| package.name),
                tools: content
                    .tools
                    .iter()
                    .map(|tool| (name(tool).to_owned(), canonical::digest(tool)))
                    .collect(),
            };
            (server.clone(), locked)
        });
        Lock { schema: SCHEMA.to_owned(), servers: servers.collect() }
    }

    /// Reads a lock file.
    ///
    /// # Errors
    /// If it cannot be read or is not a lock.
    pub fn read(path: &Path) -> Result<Lock, InputError> {
        let text = input::read_text(path, &Limits::default())?;
        let format =
            Format::of(path).ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })?;
        let lock: Lock = input::parse(path, &text, format)?;
        if lock.schema != SCHEMA {
            return Err(InputError::invalid(path, "schema", format!("it should be {SCHEMA}")));
        }
        if lock.servers.values().all(|server| server.tools.is_empty()) {
            return Err(InputError::invalid(path, "servers", "the lock names no tool"));
        }
        Ok(lock)
    }

    /// The number of tools it names.
    pub fn tools(&self) -> usize {
        self.servers.values().map(|server| server.tools.len()).sum()
    }

    /// Compares a corpus with the lock.
    pub fn compare(&self, snapshot: &Snapshot) -> Mismatch {
        let found = Lock::of(snapshot);
        let mut mismatch = Mismatch::default();
        let names: BTreeSet<&String> = self.servers.keys().chain(found.servers.keys()).collect();
        let none = LockedServer::default();
        for server in names {
            let expected = self.servers.get(server);
            let present = found.servers.get(server);
            if let (Some(expected), Some(present)) = (expected, present)
                && let (Some(locked), Some(version)) = (&expected.version, &present.version)
                && expected.package.is_some()
                && expected.package == present.package
                && locked != version
            {
                mismatch.versions.push((server.clone(), locked.clone(), version.clone()));
            }
            let (expected, present) = (expected.unwrap_or(&none), present.unwrap_or(&none));
            for (tool, digest) in &expected.tools {
                let id = format!("{server}:{tool}");
                match present.tools.get(tool) {
                    None => mismatch.missing.push(id),
                    Some(found) if found != digest => mismatch.changed.push(id),
                    Some(_) => {}
                }
            }
            let additional =
                present.tools.keys().filter(|tool| !expected.tools.contains_key(*tool));
            mismatch.additional.extend(additional.map(|tool| format!("{server}:{tool}")));
        }
        mismatch
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Server;
    use super::*;

    fn snapshot(tools: &[(&str, &str)]) -> Snapshot {
        let tools = tools.iter().map(|(name, text)| json!({"name": name, "description": text}));
        let about = json!({"version": "0.9", "package": {"registry": "npm", "name": "p", "version": "1.0"}});
        let server = Server { about: about.as_object().unwrap().clone(), tools: tools.collect() };
        Snapshot { servers: [("s".to_owned(), server)].into() }
    }

    #[test]
    fn a_snapshot_equals_its_own_lock() {
        let snapshot = snapshot(&[("a", "one"), ("b", "two")]);
        let lock = Lock::of(&snapshot);
        assert_eq!(lock.servers["s"].package.as_deref(), Some("p"));
        assert_eq!(lock.servers["s"].version.as_deref(), Some("1.0"));
        assert!(lock.compare(&snapshot).is_none());
    }

    #[test]
    fn missing_additional_changed_and_other_versions_are_told_apart() {
        let lock = Lock::of(&snapshot(&[("a", "one"), ("b", "two")]));
        let mut other = snapshot(&[("b", "two!"), ("c", "three")]);
        if let Some(server) = other.servers.get_mut("s") {
            server.about["package"]["version"] = json!("1.1");
        }
        other.servers.insert("t".to_owned(), Server::default());
        let mismatch = lock.compare(&other);
        assert_eq!(mismatch.missing, ["s:a"]);
        assert_eq!(mismatch.additional, ["s:c"]);
        assert_eq!(mismatch.changed, ["s:b"]);
        assert_eq!(mismatch.versions, [("s".into(), "1.0".into(), "1.1".into())]);
    }

    #[test]
    fn a_server_that_is_gone_misses_all_its_tools() {
        let lock = Lock::of(&snapshot(&[("a", "one"), ("b", "two")]));
        assert_eq!(lock.compare(&Snapshot::default()).missing, ["s:a", "s:b"]);
    }
}

//! Taking the definitions of live servers.
//!
//! Each server is started or reached, asked for all pages of its tools, and let go. Nothing is
//! installed and no tool is called. Servers are independent: one that fails, hangs or answers with
//! what a dataset cannot hold is listed with the reason and the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use karat_io::input::{self, Format, InputError, Limits};
use karat_io::template::fill_word;
use karat_io::text::{clip, printable};
use karat_mcp::{Engine, Isolation, Options as SessionOptions, ServerSpec, Session};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::store::Origin;
use super::{OURS, Package, Server, Snapshot};

/// The part of a reason is kept.
const MAX_REASON_CHARS: usize = 500;

/// A server to capture.
#[derive(Clone, Debug)]
pub struct Target {
    /// The name in the corpus; by default its own.
    pub name: Option<String>,
    /// The way it is reached.
    pub spec: ServerSpec,
    /// The description in the provenance, without secrets and local paths.
    pub described: String,
    /// The package it comes from.
    pub package: Option<Package>,
}

/// The way to capture.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The time one server may take, from start to the last page.
    pub timeout: Duration,
    /// The number that are under way at once.
    pub parallel: usize,
}

/// The captured servers.
#[derive(Debug, Default)]
pub struct Captured {
    /// The definitions.
    pub snapshot: Snapshot,
    /// The place where they come from.
    pub origins: BTreeMap<String, Origin>,
    /// The failures with their reasons, by name or description.
    pub failed: BTreeMap<String, String>,
}

/// Captures every target. `progress` is notified of each as it ends.
pub async fn capture(
    targets: Vec<Target>,
    options: Options,
    mut progress: impl FnMut(&str, Result<usize, &str>),
) -> Captured {
    let mut captured = Captured::default();
    let mut waiting = targets.into_iter().map(Arc::new);
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < options.parallel.max(1) {
            let Some(target) = waiting.next() else { break };
            under_way.spawn(async move {
                let taken =
                    match tokio::time::timeout(options.timeout, take(&target, options)).await {
                        Ok(taken) => taken,
                        Err(_) => Err(format!("not done within {:?}", options.timeout)),
                    };
                (target, taken)
            });
        }
        let Some(joined) = under_way.join_next().await else { break };
        let Ok((target, taken)) = joined else { continue };
        let shown = target.name.clone().unwrap_or_else(|| target.described.clone());
        let kept = taken.and_then(|(name, server, origin)| captured.keep(name, server, origin));
        match kept {
            Ok((name, tools)) => progress(&name, Ok(tools)),
            Err(reason) => {
                let reason = clip(&printable(&reason), MAX_REASON_CHARS).into_owned();
                progress(&shown, Err(&reason));
                captured.failed.insert(shown, reason);
            }
        }
    }
    captured
}

impl Captured {
    fn keep(
        &mut self,
        name: String,
        server: Server,
        origin: Origin,
    ) -> Result<(String, usize), String> {
        if self.snapshot.servers.contains_key(&name) {
            return Err(format!("another server is called {name} too; give one another name"));
        }
        let tools = server.tools.len();
        self.snapshot.servers.insert(name.clone(), server);
        self.origins.insert(name.clone(), origin);
        Ok((name, tools))
    }
}

async fn take(target: &Target, options: Options) -> Result<(String, Server, Origin), String> {
    let session_options = SessionOptions {
        start_timeout: options.timeout,
        call_timeout: options.timeout,
        ..SessionOptions::default()
    };
    let session =
        Session::start(&target.spec, &session_options).await.map_err(|error| error.to_string())?;
    let listed = session.tools().await;
    let info = session.server().clone();
    let ending = session.close().await;
    let definitions = listed.map_err(|error| match ending.stderr.trim() {
        "" => error.to_string(),
        said => format!("{error}; it said: {said}"),
    })?;
    let tools: Vec<Value> = definitions.into_iter().map(karat_mcp::Definition::into_raw).collect();
    fit(&tools)?;
    let mut about = Map::new();
    let mut say = |field: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            about.insert(field.to_owned(), Value::String(value));
        }
    };
    say("title", info.title);
    say("version", Some(info.version.clone()));
    say("instructions", info.instructions);
    if let Some(package) = &target.package {
        about.insert("package".to_owned(), serde_json::to_value(package).unwrap_or_default());
    }
    let origin = Origin {
        from: target.described.clone(),
        name: info.name.clone(),
        version: info.version,
        protocol: info.revision.to_string(),
        tools: tools.len(),
    };
    Ok((target.name.clone().unwrap_or(info.name), Server { about, tools }, origin))
}

/// Returns whether a dataset can hold the definitions and give them back unchanged.
fn fit(tools: &[Value]) -> Result<(), String> {
    if tools.is_empty() {
        return Err("it serves no tool".to_owned());
    }
    let mut names = BTreeSet::new();
    for tool in tools {
        let name = super::name(tool);
        if name.is_empty() {
            return Err("a tool has an empty name".to_owned());
        }
        if !names.insert(name) {
            return Err(format!("two tools are called {name}"));
        }
        if let Some(field) = OURS.iter().find(|field| tool.get(**field).is_some()) {
            return Err(format!(
                "the definition of {name} has a field {field:?}, which dataset files use for \
                 something else"
            ));
        }
    }
    Ok(())
}

/// The list of servers in `servers.toml`.
#[derive(Debug, Deserialize)]
pub struct List {
    /// The servers.
    pub server: Vec<Listed>,
}

/// One server of a list. Fields that only an installer needs are not looked at.
#[derive(Clone, Debug, Deserialize)]
pub struct Listed {
    /// The name in the corpus.
    pub name: String,
    /// `npm`, `pypi` and so on.
    pub registry: String,
    /// Its name there.
    pub package: String,
    /// Its exact version.
    pub version: String,
    /// Program and arguments; `{bin}` is where its programs lie, `{tmp}` an empty folder.
    pub command: Vec<String>,
    /// Variables set for it, with the same places.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl List {
    /// Reads a list.
    ///
    /// # Errors
    /// If it cannot be read, or a name is listed twice.
    pub fn read(path: &Path) -> Result<List, InputError> {
        let text = input::read_text(path, &Limits::default())?;
        let list: List = input::parse(path, &text, Format::Toml)?;
        let mut names = BTreeSet::new();
        match list.server.iter().find(|server| !names.insert(&server.name)) {
            Some(twice) => Err(InputError::invalid(path, twice.name.as_str(), "duplicate server")),
            None => Ok(list),
        }
    }
}

impl Listed {
    /// The server as it is installed in `installed/<name>`, started in `cwd` with `tmp` for what it
    /// writes, both empty and its own. It runs in a sandbox without the network, since it is a
    /// stranger's code, and what a person has set up at home, their language and their time zone do
    /// not reach it, since definitions may depend on them.
    pub fn target(&self, installed: &Path, cwd: &Path, tmp: &Path) -> Target {
        let home = installed.join(&self.name);
        let places = ["bin", "node_modules/.bin", "venv/bin", ".venv/bin"];
        let bin = places.iter().map(|place| home.join(place)).find(|bin| bin.is_dir());
        let bin = bin.unwrap_or_else(|| home.join("bin"));
        let isolation = Isolation {
            read: vec![home.clone()],
            write: vec![cwd.to_owned(), tmp.to_owned()],
            ..Isolation::by(Engine::Bwrap)
        };
        let places = [("bin", bin.to_string_lossy()), ("tmp", tmp.to_string_lossy())];
        let put = |text: &String| fill_word(text, &places);
        let home = cwd.to_string_lossy();
        let mut env: BTreeMap<String, String> =
            [("HOME", &*home), ("TMPDIR", &home), ("LANG", "C.UTF-8"), ("TZ", "UTC")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        env.extend(self.env.iter().map(|(name, value)| (name.clone(), put(value))));
        let spec = ServerSpec {
            env,
            cwd: Some(cwd.to_owned()),
            isolate: Some(isolation),
            ..ServerSpec::from_command(self.command.iter().map(put).collect())
        };
        Target {
            name: Some(self.name.clone()),
            spec,
            described: ServerSpec::from_command(self.command.clone()).describe(),
            package: Some(Package {
                registry: Some(self.registry.clone()),
                name: self.package.clone(),
                version: self.version.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_dataset_cannot_hold_is_refused_with_the_reason() {
        for (tools, word) in [
            (vec![], "no tool"),
            (vec![json!({"name": ""})], "empty name"),
            (vec![json!({"name": "a"}), json!({"name": "a"})], "two tools"),
            (vec![json!({"name": "a", "schema": {}})], "\"schema\""),
        ] {
            let reason = fit(&tools).unwrap_err();
            assert!(reason.contains(word), "{reason}");
        }
        fit(&[json!({"name": "a", "icons": [], "_meta": {}})]).unwrap();
    }

    #[test]
    fn a_listed_server_is_started_where_it_is_installed_and_described_without_that() {
        let installed = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(installed.path().join("x/node_modules/.bin")).unwrap();
        let listed = Listed {
            name: "x".into(),
            registry: "npm".into(),
            package: "@a/x".into(),
            version: "1.2.3".into(),
            command: vec!["{bin}/x".into(), "--root".into(), "{tmp}".into()],
            env: [("HOME".to_owned(), "{tmp}".to_owned())].into(),
        };
        let target = listed.target(installed.path(), Path::new("/home"), Path::new("/scratch"));
        let command = target.spec.command.unwrap();
        assert!(command[0].ends_with("x/node_modules/.bin/x"), "{command:?}");
        assert_eq!(command[2], "/scratch");
        assert_eq!(target.spec.env["HOME"], "/scratch");
        assert_eq!(target.spec.env["TMPDIR"], "/home");
        assert_eq!(target.described, "{bin}/x --root {tmp}");
    }
}

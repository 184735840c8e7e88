//! What a server that Karat starts can reach.
//!
//! An engine is a prefix of the command: `bwrap …` or `docker run -i …` in front of the server, which
//! then is a child process like any other. So there is no client of the Docker API here (bollard
//! brings 79 crates for what `docker run -i` does), and ending the prefix ends what it isolates. An
//! engine that is asked for and not there is an error, never a start without it. What could be put in
//! force is said in words ([`crate::Session::isolation`]), since some limits depend on who starts it.

mod bwrap;
mod docker;
mod pids;
mod reach;

use std::fmt;
use std::path::{Path, PathBuf};

use karat_io::process::Program;
use karat_io::text::printable;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::error::StartError;

/// What stands between a server and the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Nothing.
    #[default]
    None,
    /// bubblewrap: namespaces, with the machine's own programs.
    Bwrap,
    /// A container of a local image.
    Docker,
}

impl Engine {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Engine::None => "none",
            Engine::Bwrap => "bwrap",
            Engine::Docker => "docker",
        }
    }
}

/// How a server is kept apart: `isolate = "bwrap"`, or a table with these keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Isolation {
    /// The engine.
    pub engine: Engine,
    /// Whether it may use the network; not by default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Paths that it may read, beside what its command names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Paths that it may change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// The image, for docker; it must be there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Memory in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Processes and threads at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Seconds of processor time of one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// The largest file that it may write, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_mb: Option<u64>,
    /// Processors, for docker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
}

/// Limits where nothing is said.
const MEMORY_MB: u64 = 2_048;
const PROCESSES: u64 = 512;
const CPU_SECONDS: u64 = 3_600;
const FILE_MB: u64 = 1_024;

impl Isolation {
    /// By this engine, with what it limits by default.
    #[must_use]
    pub fn by(engine: Engine) -> Isolation {
        Isolation { engine, ..Isolation::default() }
    }

    fn memory_mb(&self) -> u64 {
        self.memory_mb.unwrap_or(MEMORY_MB)
    }

    fn processes(&self) -> u64 {
        self.processes.unwrap_or(PROCESSES)
    }

    fn cpu_seconds(&self) -> u64 {
        self.cpu_seconds.unwrap_or(CPU_SECONDS)
    }

    fn file_mb(&self) -> u64 {
        self.file_mb.unwrap_or(FILE_MB)
    }

    /// Whether it can be meant.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let wrong = |why: &str| Err(StartError::Spec { why: why.to_owned() });
        let limits = [self.memory_mb, self.processes, self.cpu_seconds, self.file_mb, self.cpus];
        if limits.contains(&Some(0)) {
            return wrong("isolate: a limit is at least 1");
        }
        match (self.engine, &self.image) {
            (Engine::Docker, None) => {
                wrong("isolate: docker needs an image (image = \"…\", or --image NAME)")
            }
            (Engine::Docker, Some(image)) if image.is_empty() || image.starts_with('-') => {
                wrong("isolate: this is no name of an image")
            }
            (Engine::Bwrap | Engine::None, Some(_)) => wrong("isolate: only docker takes an image"),
            (Engine::Bwrap | Engine::None, None) if self.cpus.is_some() => {
                wrong("isolate: only docker limits the number of processors (cpus)")
            }
            _ => Ok(()),
        }
    }
}

/// A table, before its keys are moved into [`Isolation`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    engine: Engine,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    read: Vec<PathBuf>,
    #[serde(default)]
    write: Vec<PathBuf>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    memory_mb: Option<u64>,
    #[serde(default)]
    processes: Option<u64>,
    #[serde(default)]
    cpu_seconds: Option<u64>,
    #[serde(default)]
    file_mb: Option<u64>,
    #[serde(default)]
    cpus: Option<u64>,
}

impl<'de> Deserialize<'de> for Isolation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Isolation, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = Isolation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"none\", \"bwrap\", \"docker\", or a table with `engine`")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Isolation, E> {
                let known = [Engine::None, Engine::Bwrap, Engine::Docker];
                match known.into_iter().find(|engine| engine.name() == name) {
                    Some(engine) => Ok(Isolation::by(engine)),
                    None => Err(E::invalid_value(serde::de::Unexpected::Str(name), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Isolation, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Isolation {
                    engine: table.engine,
                    network: table.network,
                    read: table.read,
                    write: table.write,
                    image: table.image,
                    memory_mb: table.memory_mb,
                    processes: table.processes,
                    cpu_seconds: table.cpu_seconds,
                    file_mb: table.file_mb,
                    cpus: table.cpus,
                })
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

/// A program with its prefix, and what that puts in force.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: Program,
    pub(crate) in_force: Vec<String>,
}

/// Puts the engine in front of the program.
pub(crate) async fn launch(
    isolation: Option<&Isolation>,
    program: Program,
    explicit_folder: bool,
) -> Result<Launch, StartError> {
    let Some(isolation) = isolation else { return Ok(Launch { program, in_force: Vec::new() }) };
    match isolation.engine {
        Engine::None => Ok(Launch { program, in_force: Vec::new() }),
        Engine::Bwrap => bwrap::launch(isolation, &program),
        Engine::Docker => docker::launch(isolation, program, explicit_folder).await,
    }
}

/// More about a start that failed, where the engine itself is the reason.
pub(crate) fn explain(isolation: Option<&Isolation>, error: StartError) -> StartError {
    let engine = isolation.map_or(Engine::None, |isolation| isolation.engine);
    let advice = match engine {
        Engine::None => return error,
        Engine::Bwrap => bwrap::advice(&error.to_string()),
        Engine::Docker => docker::advice(&error.to_string()),
    };
    match (advice, error) {
        (Some(advice), StartError::NotStarted { why } | StartError::Handshake { why }) => {
            StartError::NotStarted { why: format!("{why}; {advice}") }
        }
        (_, error) => error,
    }
}

fn missing(engine: &str, how_to_get_it: &str) -> StartError {
    StartError::NotStarted {
        why: format!("{engine} is not there: {how_to_get_it}, or choose another --isolate"),
    }
}

/// Where a program of this name is, as the system would look for it.
fn find_program(name: &str, folder: Option<&Path>) -> Option<PathBuf> {
    if name.contains('/') {
        let path = folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        return path.is_file().then(|| std::path::absolute(&path).unwrap_or(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A name that no other session has.
fn unique_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let random = RandomState::new().hash_one(std::time::Instant::now());
    format!("karat-{}-{random:016x}", std::process::id())
}

/// Whether the folder in which the program is to run is there; in a container it may be the image's.
///
/// # Errors
/// When it is not: started there, the program would be blamed for it.
pub(crate) fn check_folder(
    isolation: Option<&Isolation>,
    folder: Option<&Path>,
) -> Result<(), StartError> {
    let in_image = isolation.is_some_and(|isolation| isolation.engine == Engine::Docker);
    match folder {
        Some(folder) if !in_image && !folder.is_dir() => Err(StartError::Spec {
            why: format!(
                "the folder in which the server is to run is not there: {}",
                printable(&folder.to_string_lossy())
            ),
        }),
        _ => Ok(()),
    }
}

/// The paths that the isolation gives, each once, with whether it may be changed; parents first.
///
/// # Errors
/// A path that is not there, or that leads to the Docker engine or its credentials.
fn given_paths(isolation: &Isolation) -> Result<Vec<(PathBuf, bool)>, StartError> {
    let read = isolation.read.iter().map(|path| (path, false));
    let write = isolation.write.iter().map(|path| (path, true));
    let mut paths = std::collections::BTreeMap::new();
    for (path, writable) in read.chain(write) {
        let wrong = |why: String| StartError::Spec { why };
        let real = path
            .canonicalize()
            .map_err(|error| wrong(format!("cannot mount {}: {error}", path.display())))?;
        if let Some(kept) = reach::of_the_engine(&real) {
            return Err(wrong(format!(
                "{} is not mounted: it would give {} to the server",
                path.display(),
                kept.display()
            )));
        }
        *paths.entry(path.clone()).or_insert(false) |= writable;
    }
    Ok(paths.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_table_says_how_a_server_is_kept_apart() {
        let by_name: Isolation = serde_json::from_str(r#""bwrap""#).unwrap();
        assert_eq!(by_name, Isolation::by(Engine::Bwrap));
        let table = r#"{"engine": "docker", "image": "x", "network": true, "write": ["/data"],
                        "memory_mb": 512, "processes": 64, "cpu_seconds": 10, "file_mb": 1}"#;
        let by_table: Isolation = serde_json::from_str(table).unwrap();
        assert_eq!((by_table.engine, by_table.network), (Engine::Docker, true));
        let again: Isolation =
            serde_json::from_value(serde_json::to_value(&by_table).unwrap()).unwrap();
        assert_eq!(again, by_table);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for wrong in
            [r#""chroot""#, r#"{"network": true}"#, r#"{"engine": "bwrap", "ntwork": true}"#, "3"]
        {
            assert!(serde_json::from_str::<Isolation>(wrong).is_err(), "{wrong}");
        }
        let image = Some("x".to_owned());
        for wrong in [
            Isolation::by(Engine::Docker),
            Isolation { image: Some("--privileged".to_owned()), ..Isolation::by(Engine::Docker) },
            Isolation { image, ..Isolation::by(Engine::Bwrap) },
            Isolation { processes: Some(0), ..Isolation::by(Engine::Bwrap) },
        ] {
            assert!(matches!(wrong.check(), Err(StartError::Spec { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn the_engine_itself_is_never_mounted() {
        for path in ["/", "/run", "/var/run", "/var"] {
            let isolation = Isolation { read: vec![path.into()], ..Isolation::by(Engine::Bwrap) };
            let error = given_paths(&isolation).unwrap_err().to_string();
            assert!(error.contains("docker.sock"), "{path}: {error}");
        }
        let isolation =
            Isolation { read: vec!["/no/such/path".into()], ..Isolation::by(Engine::Bwrap) };
        assert!(matches!(given_paths(&isolation), Err(StartError::Spec { .. })));
    }

    #[test]
    fn a_path_that_is_given_twice_may_be_changed_if_one_says_so() {
        let isolation = Isolation {
            read: vec!["/usr".into(), "/usr/bin".into()],
            write: vec!["/usr".into()],
            ..Isolation::by(Engine::Bwrap)
        };
        let paths = given_paths(&isolation).unwrap();
        assert_eq!(paths, [(PathBuf::from("/usr"), true), (PathBuf::from("/usr/bin"), false)]);
    }
}

//! The settings of an isolation.

use std::fmt;
use std::path::PathBuf;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::error::StartError;

/// The program that isolates a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Nothing.
    #[default]
    None,
    /// bubblewrap: namespaces, with the programs of this machine.
    Bwrap,
    /// A container of a local image.
    Docker,
}

impl Engine {
    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Engine::None => "none",
            Engine::Bwrap => "bwrap",
            Engine::Docker => "docker",
        }
    }
}

/// The isolation of a server: `isolate = "bwrap"`, or a table with these keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Isolation {
    /// The engine.
    pub engine: Engine,
    /// Allows the network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Paths that the server may read, in addition to those in its command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Paths that the server may change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// The image for docker, which must exist locally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Maximum memory in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Maximum number of processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Maximum processor time of one process in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Maximum size of a written file in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_mb: Option<u64>,
    /// Maximum number of processors, for docker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
}

/// Default limits.
const MEMORY_MB: u64 = 2_048;
const PROCESSES: u64 = 512;
const CPU_SECONDS: u64 = 3_600;
const FILE_MB: u64 = 1_024;

impl Isolation {
    /// Isolation by this engine with default limits.
    ///
    /// ```
    /// use karat_mcp::{Engine, Isolation, ServerSpec};
    ///
    /// let isolation = Isolation { memory_mb: Some(256), ..Isolation::by(Engine::Bwrap) };
    /// assert!(isolation.is_throwaway());
    /// let command = ServerSpec::from_command(vec!["my-server".to_owned()]);
    /// let spec = ServerSpec { isolate: Some(isolation), ..command };
    /// assert!(spec.transport().is_ok());
    /// // A container needs an image.
    /// let spec = ServerSpec { isolate: Some(Isolation::by(Engine::Docker)), ..spec };
    /// assert!(spec.transport().is_err());
    /// ```
    #[must_use]
    pub fn by(engine: Engine) -> Isolation {
        Isolation { engine, ..Isolation::default() }
    }

    /// Returns whether nothing that the server changes outlasts it: it has no network and no folder that it may
    /// change.
    #[must_use]
    pub fn is_throwaway(&self) -> bool {
        self.engine != Engine::None && !self.network && self.write.is_empty()
    }

    pub(super) fn memory_mb(&self) -> u64 {
        self.memory_mb.unwrap_or(MEMORY_MB)
    }

    pub(super) fn processes(&self) -> u64 {
        self.processes.unwrap_or(PROCESSES)
    }

    pub(super) fn cpu_seconds(&self) -> u64 {
        self.cpu_seconds.unwrap_or(CPU_SECONDS)
    }

    pub(super) fn file_mb(&self) -> u64 {
        self.file_mb.unwrap_or(FILE_MB)
    }

    /// Checks that the settings fit together.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let wrong = |why: &str| Err(StartError::Spec { why: why.to_owned() });
        let limits = [self.memory_mb, self.processes, self.cpu_seconds, self.file_mb, self.cpus];
        if limits.contains(&Some(0)) {
            return wrong("isolate: a limit must be at least 1");
        }
        match (self.engine, &self.image) {
            (Engine::Docker, None) => {
                wrong("isolate: docker needs an image (image = \"…\", or --image NAME)")
            }
            (Engine::Docker, Some(image)) if image.is_empty() || image.starts_with('-') => {
                wrong("isolate: invalid image name")
            }
            (Engine::Bwrap | Engine::None, Some(_)) => wrong("isolate: `image` requires docker"),
            (Engine::Bwrap | Engine::None, None) if self.cpus.is_some() => {
                wrong("isolate: only docker limits the number of processors (cpus)")
            }
            _ => Ok(()),
        }
    }
}

/// The table form of [`Isolation`].
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
    image: Option<String>,
    memory_mb: Option<u64>,
    processes: Option<u64>,
    cpu_seconds: Option<u64>,
    file_mb: Option<u64>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_isolation_is_a_name_or_a_table() {
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
    fn contradictory_settings_are_refused() {
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
}

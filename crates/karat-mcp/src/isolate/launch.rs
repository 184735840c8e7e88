//! Parts that the engines share.

use std::path::{Path, PathBuf};

use karat_io::platform;
use karat_io::process::Program;

use super::isolation::Isolation;
use crate::error::StartError;

/// A program with the prefix of its engine, and descriptions of the isolation in force.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: Program,
    pub(crate) in_force: Vec<String>,
}

/// The error for an engine that is not installed.
pub(super) fn missing(engine: &str, remedy: &str) -> StartError {
    StartError::NotStarted {
        why: format!("{engine} is not installed: {remedy}, or choose another --isolate"),
    }
}

/// The path of a program, looked up as the system does.
pub(super) fn find_program(name: &str, folder: Option<&Path>) -> Option<PathBuf> {
    if name.contains('/') {
        let path = folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        return path.is_file().then(|| std::path::absolute(&path).unwrap_or(path));
    }
    let path = std::env::var_os("PATH")?;
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| platform::is_executable(&found))
}

/// The home folder of the user.
pub(super) fn home() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    (home.is_absolute() && home != Path::new("/")).then_some(home)
}

/// The socket or the credentials of the Docker engine, if the path leads to them.
pub(super) fn docker_path(path: &Path) -> Option<PathBuf> {
    let mut kept: Vec<PathBuf> = vec!["/run/docker.sock".into(), "/var/run/docker.sock".into()];
    let socket = std::env::var("DOCKER_HOST").ok();
    kept.extend(socket.and_then(|host| host.strip_prefix("unix://").map(PathBuf::from)));
    if let Some(folder) = std::env::var_os("XDG_RUNTIME_DIR") {
        kept.push(PathBuf::from(folder).join("docker.sock"));
    }
    let configs = [
        std::env::var_os("DOCKER_CONFIG").map(PathBuf::from),
        home().map(|home| home.join(".docker")),
    ];
    kept.extend(configs.into_iter().flatten().filter(|folder| folder.exists()));
    kept.into_iter().find(|kept| {
        let real = kept.canonicalize().unwrap_or_else(|_| kept.clone());
        [kept, &real].iter().any(|kept| kept.starts_with(path) || path.starts_with(kept))
    })
}

/// A name that no other session has.
pub(super) fn unique_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let random = RandomState::new().hash_one(std::time::Instant::now());
    format!("karat-{}-{random:016x}", std::process::id())
}

/// The paths that the isolation allows, parents first; true for those that may be changed.
///
/// # Errors
/// If a path does not exist, or leads to the Docker engine or its credentials.
pub(super) fn given_paths(isolation: &Isolation) -> Result<Vec<(PathBuf, bool)>, StartError> {
    let read = isolation.read.iter().map(|path| (path, false));
    let write = isolation.write.iter().map(|path| (path, true));
    let mut paths = std::collections::BTreeMap::new();
    for (path, writable) in read.chain(write) {
        let wrong = |why: String| StartError::Spec { why };
        let real = path
            .canonicalize()
            .map_err(|error| wrong(format!("cannot mount {}: {error}", path.display())))?;
        if let Some(kept) = docker_path(&real) {
            return Err(wrong(format!(
                "{} cannot be mounted: it would expose {} to the server",
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
    use super::super::isolation::Engine;
    use super::*;

    #[test]
    fn the_docker_engine_is_never_mounted() {
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
    fn a_path_that_is_readable_and_writable_is_writable() {
        let isolation = Isolation {
            read: vec!["/usr".into(), "/usr/bin".into()],
            write: vec!["/usr".into()],
            ..Isolation::by(Engine::Bwrap)
        };
        let paths = given_paths(&isolation).unwrap();
        assert_eq!(paths, [(PathBuf::from("/usr"), true), (PathBuf::from("/usr/bin"), false)]);
    }
}

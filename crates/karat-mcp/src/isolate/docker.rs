//! Docker: a container of a local image, by the `docker` program that people already have.
//!
//! No network, no capabilities, a read-only root, bounded memory, processes and processors, and a
//! user who is not root. Neither the engine's socket nor its credentials can be mounted. An image is
//! never fetched: what is measured must not depend on what a registry serves today. The container is
//! removed by its name when the session ends, in whatever way it does.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use karat_io::process::{Afterwards, Program};

use super::{Isolation, Launch, find_program, given_paths, missing, unique_name};
use crate::error::{StartError, quoted};

/// How long the engine may take for a question about itself.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the removal of a container is waited for.
const REMOVAL: Duration = Duration::from_secs(10);
/// Who runs the server when root runs Karat.
const NOBODY: u32 = 65_534;

/// Puts `docker run` in front of the program.
pub(super) async fn launch(
    isolation: &Isolation,
    program: Program,
    explicit_folder: bool,
) -> Result<Launch, StartError> {
    let image = isolation.image.clone().unwrap_or_default();
    let mounts = given_paths(isolation)?;
    let docker = find_program("docker", None)
        .and_then(|path| path.to_str().map(str::to_owned))
        .ok_or_else(|| missing("docker", "install Docker (apt install docker.io)"))?;
    let version =
        ask(&docker, &["version", "--format", "{{.Server.Version}}"]).await.map_err(|why| {
            StartError::NotStarted {
                why: format!("no Docker engine answers: start it or set DOCKER_HOST ({why})"),
            }
        })?;
    ask(&docker, &["image", "inspect", "--format", "{{.Id}}", &image]).await.map_err(|why| {
        StartError::NotStarted {
            why: format!("the image {image:?} is not there: docker pull it first ({why})"),
        }
    })?;

    let name = unique_name();
    let mut words = vec![docker.clone()];
    words.extend(walls(isolation, &name));
    for (path, writable) in &mounts {
        let path = path.to_str().filter(|path| !path.contains([',', '"'])).ok_or_else(|| {
            StartError::Spec { why: format!("{} cannot be mounted: its name", path.display()) }
        })?;
        let access = if *writable { "" } else { ",readonly" };
        words.extend([
            "--mount".to_owned(),
            format!("type=bind,source={path},target={path}{access}"),
        ]);
    }
    if let (true, Some(folder)) = (explicit_folder, &program.folder) {
        words.extend(["--workdir".to_owned(), folder.to_string_lossy().into_owned()]);
    }
    let mut env = std::collections::BTreeMap::new();
    for (key, value) in program.env {
        if is_read_by_docker(&key) {
            words.extend(["--env".to_owned(), format!("{key}={value}")]);
        } else {
            // By name alone: command lines are seen by everybody on the machine.
            words.extend(["--env".to_owned(), key.clone()]);
            env.insert(key, value);
        }
    }
    words.push(image.clone());
    words.extend(program.command);

    let afterwards = Afterwards::new(move || remove(&docker, &name));
    Ok(Launch {
        program: Program {
            command: words,
            env,
            folder: None,
            clean: false,
            afterwards: Some(afterwards),
        },
        in_force: in_force(isolation, &image, &version),
    })
}

/// What to do about a start that the engine refused.
pub(super) fn advice(error: &str) -> Option<&'static str> {
    error
        .contains("docker: ")
        .then_some("the engine did not start the container; the command must be one of the image")
}

async fn ask(docker: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = tokio::process::Command::new(docker);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .map_err(|_| format!("no answer in {} s", PATIENCE.as_secs()))?
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(quoted(&String::from_utf8_lossy(&output.stderr)))
}

fn walls(isolation: &Isolation, name: &str) -> Vec<String> {
    let user = rustix::process::getuid();
    let (user, group) = match user.is_root() {
        true => (NOBODY, NOBODY),
        false => (user.as_raw(), rustix::process::getgid().as_raw()),
    };
    let memory = format!("{}m", isolation.memory_mb());
    let network = if isolation.network { "bridge" } else { "none" };
    let mut words: Vec<String> = [
        "run",
        "--interactive",
        "--rm",
        "--init",
        "--pull=never",
        "--log-driver=none",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--read-only",
        "--env=HOME=/tmp",
        "--ulimit=core=0",
    ]
    .map(str::to_owned)
    .into();
    words.extend([
        format!("--name={name}"),
        format!("--network={network}"),
        format!("--memory={memory}"),
        format!("--memory-swap={memory}"),
        format!("--pids-limit={}", isolation.processes()),
        format!("--cpus={}", isolation.cpus.unwrap_or(1)),
        format!("--ulimit=cpu={}", isolation.cpu_seconds()),
        format!("--ulimit=fsize={}", isolation.file_mb() << 20),
        format!("--user={user}:{group}"),
        // The engine takes the mode from the image, whose folder may be root's alone.
        format!("--tmpfs=/tmp:mode=1777,uid={user},gid={group}"),
    ]);
    words
}

/// Variables that would change what the `docker` program itself does.
fn is_read_by_docker(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper == "PATH" || upper == "HOME" || upper.starts_with("DOCKER_") || upper.ends_with("_PROXY")
}

/// Removes the container and waits until that is done.
fn remove(docker: &str, name: &str) {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(docker);
    command
        .args(["rm", "--force", "--volumes", name])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Not ended by the Ctrl-C that ends us.
        .process_group(0);
    let Ok(mut child) = command.spawn() else { return };
    let until = Instant::now() + REMOVAL;
    while Instant::now() < until {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Ok(Some(_)) | Err(_) => return,
        }
    }
}

fn in_force(isolation: &Isolation, image: &str, version: &str) -> Vec<String> {
    vec![
        format!("docker {version}, image {image}"),
        format!("network: {}", if isolation.network { "allowed" } else { "none" }),
        "files: read-only, those of the image".to_owned(),
        format!("memory: {} MiB (cgroup)", isolation.memory_mb()),
        format!("processes: {} (cgroup)", isolation.processes()),
        format!("processors: {} (cgroup)", isolation.cpus.unwrap_or(1)),
        format!("processor time: {} s for each process (RLIMIT_CPU)", isolation.cpu_seconds()),
        format!("file size: {} MiB (RLIMIT_FSIZE)", isolation.file_mb()),
    ]
}

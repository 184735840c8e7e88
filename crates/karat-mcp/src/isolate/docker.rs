//! Docker: a container of a local image, started with the `docker` program.
//!
//! No network, no capabilities, a read-only root, limits on memory, processes and processors, and a user who
//! is not root. Neither the socket of the engine nor its credentials can be mounted. Images are never
//! pulled, so that a measurement does not depend on a registry. The container is removed by its name however
//! the session ends.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use karat_io::platform;
use karat_io::process::{Cleanup, Program, spawn_async_helper, spawn_helper};

use super::isolation::Isolation;
use super::launch::{Launch, find_program, given_paths, missing, unique_name};
use crate::error::{StartError, quoted};

/// Time for the engine to answer a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(20);
/// Time to wait for the removal of a container.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The user of the server if this process runs as root, or its user is not known.
const UNPRIVILEGED_USER: u32 = 65_534;

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
                why: format!(
                    "the Docker engine does not answer: start it or set DOCKER_HOST ({why})"
                ),
            }
        })?;
    ask(&docker, &["image", "inspect", "--format", "{{.Id}}", &image]).await.map_err(|why| {
        StartError::NotStarted {
            why: format!(
                "the image {image:?} does not exist locally: get it with `docker pull` ({why})"
            ),
        }
    })?;

    let name = unique_name();
    let mut words = vec![docker.clone()];
    words.extend(sandbox_arguments(isolation, &name));
    for (path, writable) in &mounts {
        let path = path.to_str().filter(|path| !path.contains([',', '"'])).ok_or_else(|| {
            StartError::Spec { why: format!("{} cannot be mounted: its name holds a comma, a quote or bytes that are not UTF-8", path.display()) }
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
            // Only the name: command lines are visible to every user of the machine.
            words.extend(["--env".to_owned(), key.clone()]);
            env.insert(key, value);
        }
    }
    words.push(image.clone());
    words.extend(program.command);

    let words_to_remove = [docker.as_str(), "rm", "--force", "--volumes", &name].map(str::to_owned);
    let cleanup = Cleanup::new(move || remove(&docker, &name)).or_by(words_to_remove.to_vec());
    Ok(Launch {
        program: Program {
            command: words,
            env,
            folder: None,
            clean: false,
            cleanup: Some(cleanup),
        },
        in_force: in_force(isolation, &image, &version),
    })
}

/// Advice for a start that the engine refused.
pub(super) fn advice(error: &str) -> Option<&'static str> {
    error
        .contains("docker: ")
        .then_some("the engine did not start the container; the command must exist in the image")
}

async fn ask(docker: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = tokio::process::Command::new(docker);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    let child = spawn_async_helper(&mut command).map_err(|error| error.to_string())?;
    let output = tokio::time::timeout(QUERY_TIMEOUT, child.wait_with_output())
        .await
        .map_err(|_| format!("no answer in {} s", QUERY_TIMEOUT.as_secs()))?
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(quoted(&String::from_utf8_lossy(&output.stderr)))
}

fn sandbox_arguments(isolation: &Isolation, name: &str) -> Vec<String> {
    let (user, group) = platform::user()
        .filter(|(user, _)| *user != 0)
        .unwrap_or((UNPRIVILEGED_USER, UNPRIVILEGED_USER));
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
        // Namespaces of its own for shared memory and cgroups; the engine's filter of system calls stays.
        "--ipc=private",
        "--cgroupns=private",
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
        // By default the mode is that of the image, where the folder may belong to root alone.
        format!("--tmpfs=/tmp:mode=1777,uid={user},gid={group}"),
    ]);
    words
}

/// Variables that would change the behaviour of the `docker` program.
fn is_read_by_docker(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper == "PATH" || upper == "HOME" || upper.starts_with("DOCKER_") || upper.ends_with("_PROXY")
}

/// Removes the container and waits for that.
fn remove(docker: &str, name: &str) {
    let mut command = Command::new(docker);
    command
        .args(["rm", "--force", "--volumes", name])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // So that Ctrl-C does not end it.
    platform::own_group(&mut command);
    let Ok(mut child) = spawn_helper(&mut command) else { return };
    let until = Instant::now() + REMOVAL_TIMEOUT;
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
        "files: read-only, from the image".to_owned(),
        format!("memory: {} MiB (cgroup)", isolation.memory_mb()),
        format!("processes: {} (cgroup)", isolation.processes()),
        format!("processors: {} (cgroup)", isolation.cpus.unwrap_or(1)),
        format!("processor time: {} s for each process (RLIMIT_CPU)", isolation.cpu_seconds()),
        format!("file size: {} MiB (RLIMIT_FSIZE)", isolation.file_mb()),
        "system calls: filtered (by the engine)".to_owned(),
        match isolation.network {
            true => "open: the kernel of this machine; the network",
            false => "open: the kernel of this machine",
        }
        .to_owned(),
    ]
}

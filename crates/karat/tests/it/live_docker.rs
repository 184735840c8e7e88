//! Isolation by a real Docker engine, started here with a data folder and a socket of its own, on an
//! image made from nothing but a static busybox. Needs root, docker.io and busybox-static, and fails without them.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const KARAT: &str = env!("CARGO_BIN_EXE_karat");
const IMAGE: &str = "karat-test:1";
const WAIT: Duration = Duration::from_secs(60);

/// An MCP server for busybox's shell, with a tool that tries what its argument says. The image has nothing else:
/// the scripted server is linked to libraries that it lacks.
const SERVER: &str = r#"
while IFS= read -r line; do
  case "$line" in *'"id":'*) ;; *) continue ;; esac
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case "$line" in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"box","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      result='{"tools":[{"name":"try","inputSchema":{"type":"object"}}]}' ;;
    *)
      case "$line" in
        *'"what":"write"'*) said=$( (echo x >/etc/file) 2>&1 && echo written) ;;
        *'"what":"temporary"'*) said=$(echo x >/tmp/file && cat /tmp/file && echo written) ;;
        *'"what":"network"'*) said=$(ls /sys/class/net) ;;
        *'"what":"engine"'*) said=$(ls /run/docker.sock /var/run/docker.sock 2>/dev/null; echo looked) ;;
        *'"what":"rights"'*) said="uid $(id -u) $(grep CapEff /proc/self/status) $(grep NoNewPrivs /proc/self/status)" ;;
        *'"what":"variables"'*) said=$(env) ;;
        *'"what":"mounted"'*) said=$(cat "$MOUNTED"/file; echo new >"$MOUNTED"/file && echo changed) ;;
        *'"what":"hang"'*) sleep 600 ;;
      esac
      said=$(printf %s "$said" | tr '"\\\n\t' "'/  ")
      result="{\"content\":[{\"type\":\"text\",\"text\":\"$said\"}]}" ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

struct Engine {
    folder: tempfile::TempDir,
    daemon: Child,
}

impl Engine {
    fn start() -> Engine {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let daemon = Command::new("dockerd")
            .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
            .args(["-H", &format!("unix://{}", at("docker.sock"))])
            .args(["--bridge=none", "--iptables=false"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("dockerd (apt install docker.io): {error}"));
        let engine = Engine { folder, daemon };
        let begun = Instant::now();
        while !engine.docker(&["version"]).status.success() {
            let log = std::fs::read_to_string(engine.path("log")).unwrap_or_default();
            assert!(begun.elapsed() < WAIT, "the engine does not start: {log}");
            std::thread::sleep(Duration::from_millis(100));
        }
        engine.make_image();
        engine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn host(&self) -> String {
        format!("unix://{}", self.path("docker.sock").display())
    }

    fn docker(&self, arguments: &[&str]) -> Output {
        Command::new("docker").args(arguments).env("DOCKER_HOST", self.host()).output().unwrap()
    }

    fn make_image(&self) {
        let root = self.path("root");
        for folder in ["bin", "tmp", "proc", "sys", "dev", "etc", "data"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::copy("/bin/busybox", root.join("bin/busybox"))
            .unwrap_or_else(|error| panic!("/bin/busybox (apt install busybox-static): {error}"));
        for name in ["sh", "ls", "cat", "id", "grep", "env", "tr", "sleep"] {
            symlink("busybox", root.join("bin").join(name)).unwrap();
        }
        std::fs::write(root.join("server.sh"), SERVER).unwrap();
        let tar = Command::new("tar").arg("-C").arg(&root).args(["-c", "."]).output().unwrap();
        let mut import = Command::new("docker")
            .args(["import", "-", IMAGE])
            .env("DOCKER_HOST", self.host())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        import.stdin.take().unwrap().write_all(&tar.stdout).unwrap();
        assert!(import.wait().unwrap().success());
    }

    /// Karat with this engine, in a folder of its own.
    fn karat(&self, arguments: &[&str]) -> Command {
        let folder = self.path("work");
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(KARAT);
        command.args(arguments).current_dir(folder).env("DOCKER_HOST", self.host());
        command
    }

    fn containers(&self) -> String {
        String::from_utf8(self.docker(&["ps", "--all", "--quiet"]).stdout).unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.daemon.id().to_string()).status();
        let _ = self.daemon.wait();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const SUITE: &str = "
test_cases:
  - {id: root, tool: try, input: {what: write}, expect: {contains: Read-only file system}}
  - {id: temporary, tool: try, input: {what: temporary}, expect: {contains: written}}
  - {id: network, tool: try, input: {what: network}, expect: {matches: '^ *lo *$'}}
  - {id: engine, tool: try, input: {what: engine}, expect: {matches: '^ *looked *$'}}
  - {id: rights, tool: try, input: {what: rights}, expect: {matches: 'uid 65534 .*CapEff:\\s*0000000000000000 .*NoNewPrivs:\\s*1'}}
  - {id: variables, tool: try, input: {what: variables}, expect: {contains: 'SECRET_TOKEN=[redacted]'}}
  - {id: mounted, tool: try, input: {what: mounted}, expect: {contains: plain content}}
";

#[test]
#[ignore = "needs root and a Docker engine; run by ./test docker"]
fn a_container_keeps_a_server_apart_and_is_gone_afterwards() {
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    let user = String::from_utf8_lossy(&user);
    assert_eq!(user.trim(), "0", "only root can start a Docker engine of its own");
    let engine = Engine::start();
    contained(&engine);
    interrupted(&engine);
    refused(&engine);
}

fn contained(engine: &Engine) {
    let mounted = engine.path("mounted");
    std::fs::create_dir_all(&mounted).unwrap();
    std::fs::write(mounted.join("file"), "plain content").unwrap();
    let suite = engine.path("suite.yaml");
    std::fs::write(&suite, SUITE).unwrap();
    let variable = format!("MOUNTED={}", mounted.display());
    let output = engine
        .karat(&[
            "server",
            "test",
            suite.to_str().unwrap(),
            "--isolate",
            "docker",
            "--image",
            IMAGE,
        ])
        .args(["--mount", mounted.to_str().unwrap(), "-e", &variable])
        .args(["-e", "SECRET_TOKEN=for-the-server", "--limit", "memory=64m,processes=32"])
        .args(["--", "/bin/sh", "/server.sh"])
        .output()
        .unwrap();
    let report = std::fs::read_to_string(engine.path("work/karat-report/report.json")).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{report}", said(&output));
    assert_eq!(std::fs::read_to_string(mounted.join("file")).unwrap(), "plain content");
    assert_eq!(engine.containers(), "");
    let report: Value = serde_json::from_str(&report).unwrap();
    let in_force = report["reports"][0]["environment"]["isolation"].to_string();
    assert!(in_force.contains("docker 2") && in_force.contains("memory: 64 MiB"), "{in_force}");
}

/// Ctrl-C in the middle of a call leaves no container.
fn interrupted(engine: &Engine) {
    let mut karat = engine
        .karat(&["server", "load", "--tool", "try", "--input", r#"{"what": "hang"}"#])
        .args(["--isolate", "docker", "--image", IMAGE, "--", "/bin/sh", "/server.sh"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while engine.containers().is_empty() {
        assert!(begun.elapsed() < WAIT, "no container was started");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(
        Command::new("kill").args(["-INT", &karat.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(karat.wait().unwrap().code(), Some(130));
    let begun = Instant::now();
    while !engine.containers().is_empty() {
        assert!(begun.elapsed() < WAIT, "the container is left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn refused(engine: &Engine) {
    let socket = engine.path("docker.sock").display().to_string();
    let holder = engine.folder.path().display().to_string();
    let lint = |more: &[&str]| {
        let mut command = engine.karat(&["server", "lint", "--isolate", "docker"]);
        command.args(more).args(["--", "/bin/sh", "/server.sh"]);
        command
    };
    for path in [&socket, &holder] {
        let output = lint(&["--image", IMAGE, "--mount", path]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    }
    let output = lint(&["--image", "no-such-image:1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("docker pull"), "{}", said(&output));
    let nowhere = format!("unix://{}", Path::new("/nonexistent/docker.sock").display());
    let output = lint(&["--image", IMAGE]).env("DOCKER_HOST", nowhere).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("DOCKER_HOST"), "{}", said(&output));
}

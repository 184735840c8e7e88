//! Real servers from npm and PyPI, isolated by bubblewrap: their suites pass, and lint, fuzz and
//! attacks run to the end.
//!
//! What lint, fuzz and attacks find is printed, and docs/real-servers.md has the table; only the
//! suites must pass. `tests/live/servers` installs the servers.

use crate::common;
use crate::common::live;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Ran, Scratch};
use live::{live, repository, run};
use serde_json::{Value, json};

/// One server: `{bin}` is the folder of its programs, `{work}` the one that it may write to.
struct Real {
    name: &'static str,
    command: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
}

const EVERYTHING: Real =
    Real { name: "everything", command: &["{bin}/mcp-server-everything"], env: &[] };
const FILESYSTEM: Real =
    Real { name: "filesystem", command: &["{bin}/mcp-server-filesystem", "{work}"], env: &[] };
const MEMORY: Real = Real {
    name: "memory",
    command: &["{bin}/mcp-server-memory"],
    env: &[("MEMORY_FILE_PATH", "{work}/memory.jsonl")],
};
const TIME: Real =
    Real { name: "time", command: &["{bin}/mcp-server-time", "--local-timezone", "UTC"], env: &[] };
const GIT: Real = Real { name: "git", command: &["{bin}/mcp-server-git"], env: &[] };
const SQLITE: Real = Real {
    name: "sqlite",
    command: &["{bin}/mcp-server-sqlite", "--db-path", "{work}/data.db"],
    env: &[],
};
const CALCULATOR: Real =
    Real { name: "calculator", command: &["{bin}/mcp-server-calculator"], env: &[] };
const THINKING: Real = Real {
    name: "sequential-thinking",
    command: &["{bin}/mcp-server-sequential-thinking"],
    env: &[],
};
const TASKS: Real = Real {
    name: "task-manager",
    command: &["{bin}/mcp-taskmanager"],
    env: &[("TASK_MANAGER_FILE_PATH", "{work}/tasks.json")],
};
const EXCEL: Real = Real { name: "excel", command: &["{bin}/excel-mcp-server", "stdio"], env: &[] };

/// The time fuzz and attacks may take for each server, in seconds.
const PROBING: &str = "8s";

macro_rules! real_servers {
    ($($test:ident: $server:expr,)*) => {$(
        #[test]
        #[ignore = "needs tests/live/servers; ./test servers runs it"]
        fn $test() {
            measure(&$server);
        }
    )*};
}

real_servers! {
    server_everything_over_stdio: EVERYTHING,
    server_filesystem_over_stdio: FILESYSTEM,
    server_memory_over_stdio: MEMORY,
    mcp_server_time_over_stdio: TIME,
    mcp_server_git_over_stdio: GIT,
    mcp_server_sqlite_over_stdio: SQLITE,
    mcp_server_calculator_over_stdio: CALCULATOR,
    server_sequential_thinking_over_stdio: THINKING,
    mcp_taskmanager_over_stdio: TASKS,
    excel_mcp_server_over_stdio: EXCEL,
}

#[test]
#[ignore = "needs tests/live/servers; ./test servers runs it"]
fn server_everything_over_streamable_http() {
    let place = Place::new(&EVERYTHING);
    let server = Http::start(&place);
    let target = ["--url", &server.url];
    place.suite(&EVERYTHING, &target);
    place.lint(&EVERYTHING, &target);
    // It shares the network, and one of its tools fetches any URL it is given: only tools that reach
    // nothing are probed here. The run over stdio has no network and probes them all.
    let quiet = ["--tool", "echo", "--tool", "get-sum", "--tool", "get-structured-content"];
    place.probe(&EVERYTHING, "fuzz", &[&quiet[..], &["--inputs", "20"]].concat(), &target);
    place.probe(&EVERYTHING, "attack", &quiet, &target);
}

fn measure(server: &Real) {
    // Each starts afresh: what one leaves behind does not affect the next.
    let place = Place::new(server);
    place.suite(server, &place.target());
    let place = Place::new(server);
    place.lint(server, &place.target());
    place.probe(server, "fuzz", &["--inputs", "20"], &place.target());
    let place = Place::new(server);
    place.probe(server, "attack", &[], &place.target());
    Place::new(server).suggest(server);
}

/// Values that the tools of a server need and that cannot be guessed.
fn known(server: &Real, work: &Path) -> Vec<String> {
    let repository = work.join("repo").display().to_string();
    match server.name {
        "git" => vec![format!("repo_path={repository}")],
        "sqlite" => vec!["query=SELECT 1 AS one".to_owned()],
        "excel" => {
            let folder = work.display();
            let values = ["sheet=Sheet", "range=C2", "query=amount"].map(str::to_owned);
            let places = [format!("path={folder}/book.xlsx"), format!("directory={folder}")];
            places.into_iter().chain(values).collect()
        }
        _ => Vec::new(),
    }
}

/// A recording of a suite's run, with every answer to a case replaced: by an error, by nothing, or by the answer
/// to another name. None if there is no other.
fn broken(recording: &str, how: &str) -> Option<String> {
    let asks = ["tools/call", "resources/read", "prompts/get"];
    let mut lines: Vec<Value> =
        recording.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The answers by session and id, with the method and the name or address of the request.
    let mut asked: BTreeMap<(String, String), (String, String)> = BTreeMap::new();
    let mut answers: Vec<(usize, String, String)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let message = &line["message"];
        let place = (line["session"].to_string(), message["id"].to_string());
        match message["method"].as_str() {
            Some(method) if line["from"] == "client" && asks.contains(&method) => {
                let params = &message["params"];
                let name = format!("{}{}", params["name"], params["uri"]);
                asked.insert(place, (method.to_owned(), name));
            }
            None if line["from"] == "server" => {
                answers.extend(asked.remove(&place).map(|(method, name)| (at, method, name)));
            }
            _ => {}
        }
    }
    let before = lines.clone();
    for (at, method, name) in &answers {
        let others = answers.iter().filter(|other| other.1 == *method && other.2 != *name);
        let mut others = others.map(|other| &before[other.0]["message"]["result"]);
        let message = &mut lines[*at]["message"];
        let result = match (how, method.as_str()) {
            ("error", "tools/call") => {
                let text = "the database is down";
                json!({"content": [{"type": "text", "text": text}], "isError": true})
            }
            ("error", _) => {
                message.as_object_mut().unwrap().remove("result");
                message["error"] = json!({"code": -32603, "message": "the database is down"});
                continue;
            }
            ("nothing", "tools/call") => json!({"content": []}),
            ("nothing", "resources/read") => json!({"contents": []}),
            ("nothing", _) => json!({"messages": []}),
            _ => match others.find(|other| other.is_object() && **other != message["result"]) {
                Some(other) => other.clone(),
                None if method == "tools/call" => return None,
                None => continue,
            },
        };
        message.as_object_mut().unwrap().remove("error");
        message["result"] = result;
    }
    Some(lines.iter().map(|line| format!("{line}\n")).collect())
}

/// A folder for one server to work in, and how it is started there.
struct Place {
    scratch: Scratch,
    work: PathBuf,
    target: Vec<String>,
}

impl Place {
    fn new(server: &Real) -> Place {
        let bin = live().join("servers").join(server.name).join("bin");
        assert!(bin.exists(), "{} is not installed: run tests/live/servers", server.name);
        let scratch = Scratch::new();
        let work = scratch.path("work");
        std::fs::create_dir_all(&work).unwrap();
        repository_for_git(&work.join("repo"));
        let (bin, folder) = (bin.to_str().unwrap(), work.to_str().unwrap());
        let filled = |text: &str| text.replace("{bin}", bin).replace("{work}", folder);
        let mut target: Vec<String> =
            ["--isolate", "bwrap", "--mount", &format!("{folder}:rw"), "--cwd", folder]
                .map(str::to_owned)
                .to_vec();
        for (name, value) in server.env {
            target.extend(["-e".to_owned(), format!("{name}={}", filled(value))]);
        }
        target.push("--".to_owned());
        target.extend(server.command.iter().map(|word| filled(word)));
        Place { scratch, work, target }
    }

    fn target(&self) -> Vec<&str> {
        self.target.iter().map(String::as_str).collect()
    }

    fn suite(&self, server: &Real, target: &[&str]) {
        let suites = repository().join("tests/live/suites");
        let text = std::fs::read_to_string(suites.join(format!("{}.yaml", server.name))).unwrap();
        let text = text.replace("{work}", self.work.to_str().unwrap());
        self.scratch.write(&format!("{}.yaml", server.name), text);
        let snapshots = format!("{}.snapshots", server.name);
        for entry in std::fs::read_dir(suites.join(&snapshots)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            self.scratch.write(&format!("{snapshots}/{name}"), std::fs::read(&path).unwrap());
        }
        let file = format!("{}.yaml", server.name);
        let ran = self.scratch.karat(&[&["server", "test", &file], target].concat());
        let report = self.scratch.path("karat-report/report.json");
        let report = std::fs::read_to_string(report).unwrap_or_default();
        assert_eq!(ran.code, 0, "{}: {}{}\n{report}", server.name, ran.stdout, ran.stderr);
        let report: Value = serde_json::from_str(&report).unwrap();
        let report = &report["reports"][0];
        if target.contains(&"bwrap") {
            let isolation = report["environment"]["isolation"].to_string();
            assert!(isolation.contains("bubblewrap") || isolation.contains("bwrap"), "{isolation}");
        }
        let cases = report["items"].as_array().unwrap().len();
        eprintln!("{}: suite: {cases} cases pass; {}", server.name, report["warnings"]);
    }

    /// The suite that is written from its answers passes at once, calls most of the tools that only read, and
    /// fails where the same server answers with errors, with nothing, or with another tool's answer.
    fn suggest(&self, server: &Real) {
        std::fs::write(self.work.join("note.txt"), "a note\n").unwrap();
        if server.name == "excel" {
            self.workbook();
        }
        let mut arguments = vec!["server", "suggest", "--json", "-o", "own.yaml"];
        let known = known(server, &self.work);
        known.iter().for_each(|value| arguments.extend(["--set", value]));
        let target = self.target();
        let ran = self.scratch.karat(&[&arguments, &target[..]].concat());
        assert_eq!(ran.code, 0, "{}: suggest: {}{}", server.name, ran.stdout, ran.stderr);
        let made: Value = serde_json::from_str(&ran.stdout).unwrap();
        let count = |key: &str| made[key].as_u64().unwrap();
        eprintln!(
            "{}: suggest: {} cases, {} of {} read-only tools, {} resources, {} prompts; {}",
            server.name,
            count("cases"),
            count("covered"),
            count("read_only"),
            count("resources"),
            count("prompts"),
            made["left_out"]
        );
        // The fourth tool of task-manager needs the id of a request, which only a tool that changes something makes.
        let least = if server.name == "task-manager" { 70 } else { 80 };
        assert!(count("covered") * 100 >= count("read_only") * least, "{}: {made}", server.name);
        let test = ["server", "test", "own.yaml", "--record", "own.jsonl"];
        let ran = self.scratch.karat(&[&test, &target[..]].concat());
        assert_eq!(ran.code, 0, "{}: {}{}", server.name, ran.stdout, ran.stderr);
        let recording = self.scratch.read("own.jsonl");
        for how in ["error", "nothing", "another"] {
            let Some(broken) = broken(&recording, how) else { continue };
            self.scratch.write("broken.jsonl", broken);
            let karat = env!("CARGO_BIN_EXE_karat");
            let replay = ["--", karat, "demo-server", "--replay", "broken.jsonl"];
            let ran = self.scratch.karat(&[&["server", "test", "own.yaml"], &replay[..]].concat());
            assert_eq!(ran.code, 1, "{}: {how}: {}{}", server.name, ran.stdout, ran.stderr);
        }
    }

    /// A workbook for the tools that read one, made by the library of the server.
    fn workbook(&self) {
        let python = live().join("servers/excel/bin/python");
        let script = "import openpyxl, sys\nbook = openpyxl.Workbook()\n\
                      for row in [['name', 'amount', 'twice'], ['a', 1, '=B2*2'], ['b', 2, '=B3*2']]: book.active.append(row)\n\
                      book.save(sys.argv[1])";
        let file = self.work.join("book.xlsx");
        let made = Command::new(python).args(["-c", script]).arg(file).status();
        assert!(made.unwrap().success());
    }

    fn lint(&self, server: &Real, target: &[&str]) {
        let options = ["server", "lint", "--fail-on", "never", "--sarif", "found.sarif"];
        let ran = self.scratch.karat(&[&options, target].concat());
        self.log(server, "lint", &ran);
    }

    fn probe(&self, server: &Real, what: &str, more: &[&str], target: &[&str]) {
        let options = ["server", what, "--fail-on", "never", "--sarif", "found.sarif"];
        let limits = ["--time-limit", PROBING, "--timeout", "5s"];
        let report = ["-o", "found.json"];
        let ran = self.scratch.karat(&[&options, &limits[..], &report, more, target].concat());
        self.log(server, what, &ran);
        let report: Value = serde_json::from_str(&self.scratch.read("found.json")).unwrap();
        let items = report["reports"][0]["items"].as_array().unwrap();
        assert!(!items.is_empty(), "{} of {} did nothing: {}", what, server.name, ran.stdout);
    }

    /// It ran to its end; what it found is counted by rule.
    fn log(&self, server: &Real, what: &str, ran: &Ran) {
        assert_eq!(ran.code, 0, "{} {what}: {}{}", server.name, ran.stdout, ran.stderr);
        let sarif: Value = serde_json::from_str(&self.scratch.read("found.sarif")).unwrap();
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for result in sarif["runs"][0]["results"].as_array().unwrap() {
            let text = |field: &str| result[field].as_str().unwrap_or_default().to_owned();
            *found.entry(format!("{} {}", text("level"), text("ruleId"))).or_default() += 1;
        }
        let last = ran.stdout.lines().rev().find(|line| !line.trim().is_empty());
        eprintln!("{}: {what}: {found:?}; {}", server.name, last.unwrap_or_default().trim());
    }
}

/// A repository with one commit and a change that is not staged.
fn repository_for_git(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let git = |arguments: &[&str]| {
        let user = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"];
        let mut command = Command::new("git");
        run(command.args(user).args(arguments).current_dir(folder));
    };
    git(&["init", "--quiet"]);
    git(&["config", "user.name", "Test"]);
    git(&["config", "user.email", "test@example.invalid"]);
    std::fs::write(folder.join("a"), "one\n").unwrap();
    git(&["add", "a"]);
    git(&["commit", "--quiet", "-m", "first"]);
    std::fs::write(folder.join("a"), "one\ntwo\n").unwrap();
}

/// server-everything that listens, in a sandbox of its own that shares the network alone.
struct Http {
    child: Child,
    url: String,
}

impl Http {
    fn start(place: &Place) -> Http {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let bin = live().join("servers/everything/bin/mcp-server-everything");
        let root = repository();
        let mut command = Command::new("bwrap");
        command.args([
            "--ro-bind",
            "/",
            "/",
            "--tmpfs",
            "/tmp",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
        ]);
        command.arg("--ro-bind").args([&root, &root]);
        command.args(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent"]);
        command.args(["--new-session", "--chdir", "/", "--"]).arg(bin).arg("streamableHttp");
        command.env("PORT", free.to_string()).env("HOME", "/tmp");
        command.stdout(Stdio::null()).stderr(Stdio::piped()).current_dir(&place.work);
        let mut child = command.spawn().unwrap();
        // It says where it listens when it does.
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = said.by_ref().map_while(Result::ok).find(|line| line.contains("listening"));
        assert!(listening.is_some(), "server-everything does not listen");
        std::thread::spawn(move || said.for_each(drop));
        Http { child, url: format!("http://127.0.0.1:{free}/mcp") }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

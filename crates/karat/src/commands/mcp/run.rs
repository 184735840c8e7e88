//! The tools that start programs: they run Karat in a separate process, with arguments made here.
//!
//! One runs at a time, because they share the folder of reports. A call that is cancelled ends its program
//! with everything that it started.

use std::path::{Path, PathBuf};

use karat_core::finding::Finding;
use karat_core::report::parse_check;
use karat_io::process::{Process, Program};
use karat_io::text::printable;
use karat_io::time::Time;
use karat_mcp::config;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Mutex;

use super::answers;
use super::arguments::{file, text};
use super::confine::Folder;
use crate::exit::{Exit, Stop};
use crate::project::Choice;

/// The most bytes that a run may print.
const MAX_OUTPUT: u64 = 256 << 20;
/// The default time of a scan, in seconds.
const SCAN_SECONDS: u64 = 20;

/// Runs Karat on one project.
pub(super) struct Runner {
    karat: String,
    project: String,
    folder: PathBuf,
    time_limit: Time,
    running: Mutex<()>,
}

/// The end of a run.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Runner {
    pub(super) fn new(choice: &Choice, folder: &Folder, time_limit: Time) -> Result<Runner, Stop> {
        let utf8 = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|path| {
                Stop::bad_input(format!("{}: the path is not UTF-8", path.display()))
            })
        };
        let karat = std::env::current_exe().map_err(|error| {
            Stop::bad_input(format!("cannot locate the karat executable: {error}"))
        })?;
        let Choice::File(project) = choice else {
            return Err(Stop::bad_input("the bundled project cannot be served"));
        };
        let project = std::path::absolute(project)
            .map_err(|error| Stop::bad_input(format!("{}: {error}", project.display())))?;
        Ok(Runner {
            karat: utf8(karat)?,
            project: utf8(project)?,
            folder: folder.path().to_owned(),
            time_limit,
            running: Mutex::new(()),
        })
    }

    /// Measures the project, or one entry of it.
    pub(super) async fn check(&self, arguments: &Value, folder: &Folder) -> Result<Value, String> {
        let mut command = vec!["check", &self.project, "--quiet", "--json"];
        if let Some(entry) = text(arguments, "entry") {
            command.extend(["--only", entry]);
        }
        let ran = self.run(&command).await?;
        let measured = [Exit::Pass, Exit::GateFailed, Exit::NotMeasured];
        if !measured.iter().any(|exit| ran.code == Some(i32::from(exit.code()))) {
            return Err(ran.failure(folder));
        }
        // The output of this run, and not the file: a run that ends early leaves the report of an earlier one.
        let check = parse_check(Path::new(answers::LAST), &ran.stdout);
        let check = check.map_err(|_| ran.failure(folder))?;
        Ok(answers::summary(&check, answers::LAST))
    }

    /// Scans a server.
    pub(super) async fn scan(&self, arguments: &Value, folder: &Folder) -> Result<Value, String> {
        #[derive(serde::Deserialize)]
        struct Scan {
            lint: Linted,
            fuzz: karat_core::report::CheckReport,
        }
        #[derive(serde::Deserialize)]
        struct Linted {
            findings: Vec<Finding>,
        }
        let seconds = arguments.get("seconds").and_then(Value::as_u64).unwrap_or(SCAN_SECONDS);
        let limit = Time::from_secs(seconds).to_string();
        let (server, config) = named(arguments, folder)?;
        let fixed = ["server", "scan", "--json", "--quiet", "--fail-on", "never"];
        let mut command = fixed.to_vec();
        command.extend(["--time-limit", &limit, "--config", &config, "--server", server]);
        let ran = self.run(&command).await?;
        let scanned: Scan = serde_json::from_str(&ran.stdout).map_err(|_| ran.failure(folder))?;
        let mut found = scanned.lint.findings;
        found.extend(scanned.fuzz.reports.iter().flat_map(karat_server::fuzz::findings));
        Ok(answers::findings(&found, answers::count(arguments, 30)))
    }

    /// Suggests a suite for a server.
    pub(super) async fn suggest(
        &self,
        arguments: &Value,
        folder: &Folder,
    ) -> Result<Value, String> {
        let (server, config) = named(arguments, folder)?;
        let command = ["server", "suggest", "--config", &config, "--server", server];
        let ran = self.run(&command).await?;
        match ran.code {
            Some(0) => Ok(serde_json::json!({
                "suite": ran.stdout,
                "note": printable(ran.stderr.trim()),
            })),
            _ => Err(ran.failure(folder)),
        }
    }

    async fn run(&self, arguments: &[&str]) -> Result<Ran, String> {
        let _one = self.running.lock().await;
        let command = std::iter::once(self.karat.as_str()).chain(arguments.iter().copied());
        let program = Program {
            command: command.map(str::to_owned).collect(),
            folder: Some(self.folder.clone()),
            ..Program::default()
        };
        let (mut process, stdin, stdout) = Process::spawn(&program)?;
        drop(stdin);
        let work = async {
            let mut printed = Vec::new();
            let read = stdout.take(MAX_OUTPUT).read_to_end(&mut printed).await;
            read.map_err(|error| format!("the output of the run was lost: {error}"))?;
            let status = process.ended().await;
            let status = status.map_err(|error| format!("the end of the run was lost: {error}"))?;
            Ok::<_, String>((status.code(), String::from_utf8_lossy(&printed).into_owned()))
        };
        let done = tokio::time::timeout(self.time_limit.0, work).await;
        let (code, stdout) = done.map_err(|_| {
            let limit = self.time_limit;
            format!("the run took more than {limit} and was stopped (--time-limit of karat mcp)")
        })??;
        // It waits until stderr has been read to its end.
        let _ = process.describe_exit().await;
        Ok(Ran { code, stdout, stderr: process.stderr_tail().text() })
    }
}

impl Ran {
    /// The message of a run that has no result.
    fn failure(&self, folder: &Folder) -> String {
        let said = self.stderr.trim();
        let said = said.strip_prefix("karat: ").unwrap_or(said);
        match said {
            "" => "the run ended without a result".to_owned(),
            said => folder.hide(said),
        }
    }
}

/// The requested server, and the file of the project that lists it.
fn named<'a>(arguments: &'a Value, folder: &Folder) -> Result<(&'a str, String), String> {
    let server = text(arguments, "server").ok_or("server is missing")?;
    if let Some(path) = file(arguments, "config", folder)? {
        return Ok((server, path.display().to_string()));
    }
    let has = |path: &PathBuf| {
        config::read(path).is_ok_and(|servers| servers.names().any(|name| name == server))
    };
    let usual = config::IN_PROJECT.iter().filter_map(|name| folder.file(name).ok());
    let mut having = usual.filter(has);
    match (having.next(), having.next()) {
        (Some(path), None) => Ok((server, path.display().to_string())),
        (Some(_), Some(_)) => {
            Err(format!("several files list {server:?}; choose one with `config`"))
        }
        (None, _) => Err(format!(
            "no config file of the project lists the server {server:?}; searched {}",
            config::IN_PROJECT.join(", ")
        )),
    }
}

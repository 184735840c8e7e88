//! Karat in GitLab: the jobs of ci/gitlab.yml and the file that `karat init` writes are taken apart and run,
//! with the real binary and a substitute for the forge.

use crate::ci::{
    CARGO, KARAT, NOWHERE, VERSION, degrade, executable, project, project_with_ci, release,
    releases, root, sha256, text, yaml,
};
use crate::common;

use std::path::Path;
use std::process::Command;

use common::{Ran, Scratch};
use serde_json::Value;

/// Runs the job of ci/gitlab.yml with these variables.
fn gitlab(scratch: &Scratch, variables: &[(&str, &str)]) -> Ran {
    gitlab_job(scratch, &root("ci/gitlab.yml"), variables)
}

/// Runs the job in a file, in one shell as there, with these variables.
fn gitlab_job(scratch: &Scratch, file: &Path, variables: &[(&str, &str)]) -> Ran {
    let jobs = yaml(&file.to_string_lossy());
    gitlab_script(scratch, &scratch.path(""), &jobs, "karat", variables)
}

fn gitlab_script(
    scratch: &Scratch,
    folder: &Path,
    jobs: &Value,
    name: &str,
    variables: &[(&str, &str)],
) -> Ran {
    let job = &jobs[name];
    let parent = &jobs[text(job, "extends")];
    let lines = [&parent["before_script"], &job["script"]];
    let parts = lines.iter().flat_map(|part| part.as_array().into_iter().flatten());
    let script: Vec<&str> = parts.filter_map(Value::as_str).collect();
    let path = scratch.write(&format!(".runner/{name}.sh"), script.join("\n"));
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(path);
    command.current_dir(folder).env_remove("GITHUB_STEP_SUMMARY");
    command.env("TMPDIR", scratch.path(".runner"));
    command.envs(variables.iter().copied());
    Ran::from(command.output().unwrap())
}

/// A pipeline of ci/gitlab.yml for a merge request: every job gets the variables of its own environment,
/// a job without a checkout starts in an empty folder, and artifacts go to the jobs that need them.
struct Pipeline {
    scratch: Scratch,
    jobs: Value,
    variables: Vec<(&'static str, String)>,
    /// Variables with the environment that they are limited to; `*` is every job.
    scoped: Vec<(&'static str, String, &'static str)>,
}

impl Pipeline {
    fn new(scratch: Scratch, address: &str) -> Pipeline {
        let variables = [
            ("KARAT_PATH", KARAT),
            ("CI_API_V4_URL", address),
            ("CI_PROJECT_ID", "7"),
            ("CI_MERGE_REQUEST_IID", "3"),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "0123456789012345678901234567890123456789"),
            ("CI_JOB_URL", "https://gitlab.example.com/group/project/-/jobs/9"),
        ];
        std::fs::create_dir_all(scratch.path(".runner")).unwrap();
        let variables = variables.map(|(name, value)| (name, value.to_owned())).to_vec();
        Pipeline { scratch, jobs: yaml("ci/gitlab.yml"), variables, scoped: Vec::new() }
    }

    fn job(&self, name: &str) -> Ran {
        let job = &self.jobs[name];
        let folder = match job["variables"]["GIT_STRATEGY"].as_str() {
            Some("none") => self.scratch.path(".runner").join(name),
            _ => self.scratch.path(""),
        };
        std::fs::create_dir_all(&folder).unwrap();
        for need in job["needs"].as_array().into_iter().flatten() {
            let from = match text(need, "job") {
                "karat-base" => self.scratch.path(".runner/karat-base"),
                _ => self.scratch.path(""),
            };
            for path in self.jobs[text(need, "job")]["artifacts"]["paths"].as_array().unwrap() {
                let (from, to) =
                    (from.join(path.as_str().unwrap()), folder.join(path.as_str().unwrap()));
                if from.is_dir() && from != to {
                    let words = ["-rT".as_ref(), from.as_os_str(), to.as_os_str()];
                    assert!(Command::new("cp").args(words).status().unwrap().success());
                }
            }
        }
        let environment = job["environment"]["name"].as_str();
        let seen =
            self.scoped.iter().filter(|(_, _, scope)| *scope == "*" || Some(*scope) == environment);
        let seen = seen.map(|(name, value, _)| (*name, value.as_str()));
        let all: Vec<(&str, &str)> = self
            .variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .chain(seen)
            .collect();
        gitlab_script(&self.scratch, &folder, &self.jobs, name, &all)
    }
}

#[test]
fn the_job_that_init_writes_for_gitlab_works_at_once() {
    let scratch = project_with_ci("proxy", "gitlab");
    executable(&scratch, "cargo", CARGO);
    let runner = scratch.path(".runner");
    let paths = [runner.join("bin"), runner.join("gitconfig"), runner.clone()];
    let [path, settings, stub] = paths.map(|path| path.to_string_lossy().into_owned());
    let path = format!("{path}:{}", std::env::var("PATH").unwrap());
    let run = |of_the_project: &[(&str, &str)]| {
        let file = scratch.path(".gitlab-ci.yml");
        let pipeline = yaml(&file.to_string_lossy());
        assert_eq!(pipeline["include"][0]["local"], ".gitlab/karat.yml");
        let written = pipeline["variables"].as_object().unwrap();
        let mut variables: Vec<(&str, &str)> =
            written.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        variables.extend([("PATH", path.as_str()), ("STUB", &stub), ("STUB_KARAT", KARAT)]);
        variables.push(("GIT_CONFIG_GLOBAL", &settings));
        variables.extend(of_the_project);
        gitlab_job(&scratch, &scratch.path(".gitlab/karat.yml"), &variables)
    };
    // What was not to be had was not measured.
    run(&[("KARAT_REF", "no-such-tag")]).expect(3);
    run(&[("KARAT_GIT", NOWHERE)]).expect(3);
    assert!(!scratch.path(".karat-install").exists());

    run(&[]).expect(0);
    let line = "install --locked --quiet --features full --path .karat-source/crates/karat --root .karat-install\n";
    assert_eq!(scratch.read(".runner/cargo"), line);
    assert!(scratch.read("karat-ci/summary.md").contains("Karat: pass"));
    degrade(&scratch, ".");
    run(&[]).expect(1);
    assert_eq!(scratch.read(".runner/cargo"), line, "a pinned Karat is built once");
}

#[test]
fn the_job_of_gitlab_measures_and_keeps_its_report() {
    let scratch = project(".");
    gitlab(&scratch, &[]).expect(2);
    gitlab(&scratch, &[("KARAT_PATH", KARAT)]).expect(0);
    let job = &yaml("ci/gitlab.yml")["karat"];
    let junit = job["artifacts"]["reports"]["junit"].as_str().unwrap();
    assert!(scratch.read(junit).contains("<testsuites"));
    assert!(scratch.read("karat-ci/summary.md").contains("Karat: pass"));
    assert_eq!(job["artifacts"]["when"], "always");
    degrade(&scratch, ".");
    gitlab(&scratch, &[("KARAT_PATH", KARAT)]).expect(1);
    assert!(scratch.read(junit).contains("<failure"));
    gitlab(&scratch, &[("KARAT_PATH", KARAT), ("KARAT_CONFIG", "gone.toml")]).expect(2);
}

/// A GitLab that has notes and the report of an earlier pipeline, on a port of its own: it prints the port,
/// and writes down each request.
const GITLAB: &str = r#"
import http.server, json, os, sys, urllib.parse
notes, log = [], open("requests", "w", buffering=1)
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        text = urllib.parse.parse_qs(body).get("body", [""])[0]
        log.write(json.dumps([self.command, self.path, self.headers["PRIVATE-TOKEN"], text]) + "\n")
        if self.command == "POST":
            notes.append({"id": 40 + len(notes), "body": text})
        content = json.dumps(notes).encode()
        if "/pipelines?" in self.path:
            content = b'[{"id": 8}]' if os.path.exists(".runner/base.json") else b"[]"
        elif self.path.startswith("/api/v4/projects/7/pipelines/8/jobs"):
            content = b'[{"id": 5, "name": "lint"}, {"id": 6, "name": "karat", "artifacts_file": {"size": 1}}]'
        elif self.path.endswith("/jobs/6/artifacts/karat-ci/report.json"):
            content = open(".runner/base.json", "rb").read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    do_GET = do_POST = do_PUT = answer
    def log_message(self, *arguments):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A [`GITLAB`] that runs until the end of the test.
struct Gitlab(std::process::Child);

impl Gitlab {
    fn start(scratch: &Scratch) -> (Gitlab, String) {
        use std::io::{BufRead as _, BufReader};
        let mut server = Command::new("python3")
            .args(["-c", GITLAB])
            .current_dir(scratch.path(""))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        (Gitlab(server), format!("http://127.0.0.1:{}/api/v4", port.trim()))
    }
}

impl Drop for Gitlab {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn requests(scratch: &Scratch) -> Vec<Value> {
    scratch.read("requests").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_merge_request_has_one_note_and_the_token_stays_secret() {
    let scratch = project(".");
    scratch.karat(&["check", "-o", ".runner/base.json"]).expect(0);
    degrade(&scratch, ".");
    let (_server, address) = Gitlab::start(&scratch);
    let mut pipeline = Pipeline::new(scratch, &address);
    pipeline.scoped.push(("KARAT_NOTE_TOKEN", "a-secret-token".to_owned(), "karat-note"));
    let mut shown = String::new();
    for _ in 0..2 {
        for (job, code) in [("karat-base", 0), ("karat", 1), ("karat-note", 0)] {
            let ran = pipeline.job(job).expect(code);
            shown += &[ran.stdout, ran.stderr].concat();
        }
    }
    let requests = requests(&pipeline.scratch);
    let methods: Vec<&str> = requests.iter().filter_map(|one| one[0].as_str()).collect();
    assert_eq!(methods, ["GET", "GET", "GET", "GET", "POST", "GET", "GET", "GET", "GET", "PUT"]);
    assert_eq!(requests[9][1], "/api/v4/projects/7/merge_requests/3/notes/40");
    assert!(requests.iter().all(|request| request[2] == "a-secret-token"));
    let note = requests[9][3].as_str().unwrap();
    assert!(note.starts_with("<!-- karat -->\n## ✗ Karat: fail"), "{note}");
    assert!(note.lines().count() <= 25 && note.contains("Against the merge base"), "{note}");
    assert!(note.contains("/-/jobs/9/artifacts/file/karat-ci/report.html"), "{note}");
    assert!(!shown.contains("a-secret-token"));
    for file in pipeline.scratch.files().iter().filter(|file| *file != "requests") {
        let bytes = std::fs::read(pipeline.scratch.path(file)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("a-secret-token"), "{file}");
    }
}

/// A project whose programs print every environment that they can see.
fn curious() -> Scratch {
    let scratch = project(".");
    let toml = scratch.read("karat.toml");
    let print = r#"{ command = ["sh", "-c", "env >seen.txt; cat /proc/$PPID/environ /proc/self/environ >>seen.txt; env >&2; exit 1"] }"#;
    assert!(toml.contains("{ builtin = \"bm25\" }"));
    scratch.write("karat.toml", toml.replace("{ builtin = \"bm25\" }", print));
    scratch
}

#[test]
fn a_merge_request_that_prints_the_environment_sees_no_token() {
    let scratch = curious();
    let (_server, address) = Gitlab::start(&scratch);
    let mut pipeline = Pipeline::new(scratch, &address);
    pipeline.scoped.push(("KARAT_NOTE_TOKEN", "token-of-the-bot".to_owned(), "karat-note"));
    let mut shown = String::new();
    for (job, code) in [("karat-base", 0), ("karat", 3), ("karat-note", 0)] {
        let ran = pipeline.job(job).expect(code);
        shown += &[ran.stdout, ran.stderr].concat();
    }
    let seen = String::from_utf8_lossy(&std::fs::read(pipeline.scratch.path("seen.txt")).unwrap())
        .into_owned();
    assert!(seen.contains("CI_PROJECT_ID=7"), "the program ran: {seen}");
    assert!(!seen.contains("token-of-the-bot") && !shown.contains("token-of-the-bot"));
    // The jobs with the token have neither a checkout nor a program of the project.
    assert!(requests(&pipeline.scratch).iter().any(|request| request[0] == "POST"));
    for job in ["karat-base", "karat-note"] {
        assert_eq!(pipeline.jobs[job]["variables"]["GIT_STRATEGY"], "none");
        assert!(
            pipeline.jobs[job]["extends"].is_null()
                && pipeline.jobs[job]["before_script"].is_null()
        );
        assert!(!pipeline.scratch.path(".runner").join(job).join("karat.toml").exists());
        assert_eq!(pipeline.jobs[job]["cache"], serde_json::json!([]));
    }
    // A token that every job would see is refused before a program runs.
    std::fs::remove_file(pipeline.scratch.path("seen.txt")).unwrap();
    pipeline.scoped[0].2 = "*";
    let ran = pipeline.job("karat").expect(2);
    assert!(ran.stderr.contains("environment scope"), "{}", ran.stderr);
    assert!(!pipeline.scratch.path("seen.txt").exists());
}

#[test]
fn a_note_that_would_command_the_user_of_the_token_is_not_posted() {
    let scratch = project(".");
    let (_server, address) = Gitlab::start(&scratch);
    let mut pipeline = Pipeline::new(scratch, &address);
    pipeline.scoped.push(("KARAT_NOTE_TOKEN", "t".to_owned(), "karat-note"));
    for text in ["## Karat\n/merge\n", "fine\n  /approve", &"line\n".repeat(40)] {
        pipeline.scratch.write("karat-ci/comment.md", text);
        let ran = pipeline.job("karat-note").expect(1);
        assert!(ran.stderr.contains("not one of Karat's"), "{}", ran.stderr);
    }
    assert_eq!(pipeline.scratch.read("requests"), "");
}

#[test]
fn a_merge_request_cannot_replace_the_karat_that_others_use() {
    let jobs = yaml("ci/gitlab.yml");
    assert_eq!(jobs[".karat"]["cache"]["policy"], "$KARAT_CACHE");
    assert_eq!(jobs[".karat"]["variables"]["KARAT_CACHE"], "pull");
    for rule in jobs["karat"]["rules"].as_array().unwrap() {
        let writes = !rule["variables"]["KARAT_CACHE"].is_null();
        assert_eq!(writes, text(rule, "if") == "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH", "{rule}");
    }
    // On GitHub the cache is saved before a program of the project runs.
    let action = yaml("action.yml");
    let names: Vec<&str> =
        action["runs"]["steps"].as_array().unwrap().iter().map(|step| text(step, "name")).collect();
    let place = |name| names.iter().position(|one| *one == name).unwrap();
    assert!(place("Keep the Karat that was built") < place("Measure"));
}

#[test]
fn the_job_of_gitlab_downloads_a_release_and_refuses_a_wrong_one() {
    let scratch = project(".");
    let archive = release(&scratch);
    let (address, digest) = (releases(&scratch), sha256(&archive));
    let stub = scratch.path(".runner").to_string_lossy().into_owned();
    let run = |further: &[(&str, &str)]| {
        let mut variables = vec![("KARAT_VERSION", VERSION), ("KARAT_RELEASES", address.as_str())];
        variables.extend([("STUB", stub.as_str()), ("STUB_KARAT", KARAT)]);
        variables.extend(further);
        gitlab(&scratch, &variables)
    };
    run(&[]).expect(0);
    run(&[("KARAT_SHA256", &digest)]).expect(0);
    assert!(scratch.read(".runner/ran").contains("downloaded"));
    let refused = run(&[("KARAT_SHA256", &"0".repeat(64))]).expect(3);
    assert!(refused.stderr.contains("is not what its checksum says"), "{}", refused.stderr);
    run(&[("KARAT_VERSION", "99.0.0")]).expect(3);
    run(&[("KARAT_RELEASES", "")]).expect(2);
    std::fs::write(&archive, "other").unwrap();
    run(&[]).expect(3);
}

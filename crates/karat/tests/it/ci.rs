//! Karat in CI: the steps of action.yml, the job of ci/gitlab.yml, the hooks of pre-commit and the files
//! that `karat init` writes are taken apart and run, with the real binary and are-ins for what belongs
//! to the forge.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ran, Scratch};
use karat_io::input::{Format, parse};
use serde_json::Value;

const KARAT: &str = env!("CARGO_BIN_EXE_karat");

fn root(file: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file)
}

fn yaml(file: &str) -> Value {
    let path = root(file);
    parse(&path, &std::fs::read_to_string(&path).unwrap(), Format::Yaml).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Every `${{ … }}` of a text, without the braces.
fn expressions(text: &str) -> Vec<&str> {
    text.split("${{").skip(1).filter_map(|rest| rest.split("}}").next()).map(str::trim).collect()
}

#[test]
fn the_action_keeps_the_rules_of_composite_actions() {
    let action = yaml("action.yml");
    assert_eq!(action["runs"]["using"], "composite");
    let inputs = action["inputs"].as_object().unwrap();
    for (name, input) in inputs {
        assert!(input["description"].is_string() && input["default"].is_string(), "{name}");
    }
    let mut ids = BTreeSet::new();
    let mut used = BTreeSet::new();
    for step in action["runs"]["steps"].as_array().unwrap() {
        let name = text(step, "name");
        assert!(!name.is_empty(), "{step}");
        assert_ne!(step["run"].is_string(), step["uses"].is_string(), "{name}: run or uses");
        if step["run"].is_string() {
            assert_eq!(step["shell"], "bash", "{name}: a composite step must say its shell");
            assert!(expressions(text(step, "run")).is_empty(), "{name}: hand it over in env");
        } else {
            let (_, version) = text(step, "uses").split_once('@').unwrap();
            assert!(version.starts_with('v'), "{name}: {version}");
        }
        // What a step refers to is there, and came before it.
        let whole = format!("{step} ${{{{ {} }}}}", text(step, "if"));
        for expression in expressions(&whole) {
            for word in expression.split(|c: char| !(c.is_alphanumeric() || ".-_".contains(c))) {
                match *word.split('.').collect::<Vec<_>>() {
                    ["inputs", input] => assert!(inputs.contains_key(input), "{name}: {word}"),
                    ["steps", id, "outputs", _] => assert!(ids.contains(id), "{name}: {word}"),
                    _ => continue,
                }
                used.insert(word.to_owned());
            }
        }
        ids.extend(step["id"].as_str());
    }
    for input in inputs.keys() {
        assert!(used.contains(&format!("inputs.{input}")), "no step uses {input}");
    }
}

/// A job on a runner of our own: the files that GitHub gives to a step, and what came of the steps.
struct Job {
    scratch: Scratch,
    inputs: BTreeMap<&'static str, String>,
    /// The number of the comment that is there already; empty for none.
    comment: &'static str,
    /// The folder of the action.
    source: PathBuf,
    /// Variables of the repository that the workflow belongs to.
    variables: BTreeMap<&'static str, String>,
}

impl Job {
    fn new(scratch: Scratch, inputs: &[(&'static str, &str)]) -> Job {
        for (program, script) in [("gh", GH), ("cargo", CARGO)] {
            executable(&scratch, program, script);
        }
        std::fs::create_dir_all(scratch.path(".runner/temp")).unwrap();
        let action = yaml("action.yml");
        let mut job = Job {
            scratch,
            inputs: BTreeMap::new(),
            comment: "",
            source: root(""),
            variables: BTreeMap::new(),
        };
        for (name, input) in action["inputs"].as_object().unwrap() {
            let name: &'static str = name.clone().leak();
            job.inputs.insert(name, input["default"].as_str().unwrap().to_owned());
        }
        job.inputs.extend(inputs.iter().map(|(name, value)| (*name, (*value).to_owned())));
        job
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.scratch.path(".runner").join(name)).unwrap_or_default()
    }

    /// What a step put out; the last one counts.
    fn output(&self, name: &str) -> String {
        let outputs = self.read("output");
        let mut lines = outputs.lines().rev().filter_map(|line| line.split_once('='));
        let found = lines.find(|(key, _)| *key == name);
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    }

    /// Puts in what the runner would.
    fn filled(&self, value: &str) -> String {
        let mut filled = value.to_owned();
        for expression in expressions(value) {
            if let Some(variable) = expression.strip_prefix("vars.") {
                let known = self.variable(variable);
                filled = filled.replace(&format!("${{{{ {expression} }}}}"), &known);
                continue;
            }
            let known = match *expression.split('.').collect::<Vec<_>>() {
                ["inputs", input] => self.inputs[input].clone(),
                ["steps", "check", "outputs", name] => self.output(name),
                ["github", "event", "pull_request", "number"] => "12".to_owned(),
                _ => panic!("{expression} is new here"),
            };
            filled = filled.replace(&format!("${{{{ {expression} }}}}"), &known);
        }
        filled
    }

    /// What `NAME` or `NAME || 'text'` of the variables comes to.
    fn variable(&self, expression: &str) -> String {
        let (name, otherwise) = expression.split_once(" || ").unwrap_or((expression, "''"));
        let otherwise = otherwise.strip_prefix('\'').unwrap().strip_suffix('\'').unwrap();
        assert!(!otherwise.contains('\''), "{expression}");
        let set = self.variables.get(name).filter(|value| !value.is_empty());
        set.cloned().unwrap_or_else(|| otherwise.to_owned())
    }

    /// Runs a step of the action.
    fn step(&self, name: &str) -> Ran {
        let action = yaml(&self.source.join("action.yml").to_string_lossy());
        let steps = action["runs"]["steps"].as_array().unwrap();
        self.bash(steps.iter().find(|step| step["name"] == name).unwrap())
    }

    /// Runs a step as the runner does: its script from a file, by bash with these options.
    fn bash(&self, step: &Value) -> Ran {
        let script = self.scratch.write(".runner/step.sh", text(step, "run"));
        let runner = self.scratch.path(".runner");
        let added: String = self.read("path").lines().map(|line| format!("{line}:")).collect();
        let path = format!("{added}{}:/usr/bin:/bin", runner.join("bin").display());
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail"])
            .arg(script)
            .current_dir(self.scratch.path(""))
            .env("PATH", path)
            .env("GIT_CONFIG_GLOBAL", runner.join("gitconfig"))
            .env("GITHUB_ACTION_PATH", &self.source)
            .env("GITHUB_OUTPUT", runner.join("output"))
            .env("GITHUB_PATH", runner.join("path"))
            .env("GITHUB_STEP_SUMMARY", runner.join("summary"))
            .env("GITHUB_REPOSITORY", "owner/project")
            .env("RUNNER_TEMP", runner.join("temp"))
            .env("STUB", &runner)
            .env("STUB_KARAT", KARAT)
            .env("STUB_COMMENT", self.comment);
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            command.env(name, self.filled(value.as_str().unwrap()));
        }
        Ran::from(command.output().unwrap())
    }

    /// All that happens once Karat is there; the end of the last step.
    fn measure(&self) -> Ran {
        self.step("Put Karat on the path").expect(0);
        self.step("Measure").expect(0);
        self.step("Comment on the pull request").expect(0);
        self.step("Pass or fail")
    }

    /// Goes through the workflow that `karat init` wrote; the end of the first step that fails, or of
    /// the last.
    fn workflow(&mut self) -> Ran {
        let file = self.scratch.path(".github/workflows/karat.yml");
        let workflow = yaml(&file.to_string_lossy());
        let mut last = None;
        for step in workflow["jobs"]["karat"]["steps"].as_array().unwrap() {
            let ran = match step["uses"].as_str() {
                // The project is there already.
                Some("actions/checkout@v4") => continue,
                Some("./.karat-source") => {
                    self.source = self.scratch.path(".karat-source");
                    let config = step["with"]["config"].as_str().unwrap();
                    self.inputs.insert("config", config.to_owned());
                    self.step("Find out which Karat this is").expect(0);
                    self.step("Build Karat").expect(0);
                    self.measure()
                }
                Some(other) => panic!("{other} is new here"),
                None => self.bash(step),
            };
            if ran.code != 0 {
                return ran;
            }
            last = Some(ran);
        }
        last.unwrap()
    }
}

/// Notes what it was asked for, and keeps the text of the comment.
const GH: &str = r#"printf '%s\n' "$*" >>"$STUB/gh"
for argument in "$@"; do
    case "$argument" in
        --paginate) echo "$STUB_COMMENT" | grep . ; exit 0 ;;
        body=@*) cp "${argument#body=@}" "$STUB/comment" ;;
    esac
done
"#;
/// Notes what it was asked for, and installs the karat that is there from a source that is there.
const CARGO: &str = r#"printf '%s\n' "$*" >>"$STUB/cargo"
while [ $# -gt 0 ]; do
    case "$1" in
        --path) [ -f "$2/Cargo.toml" ] || exit 101 ;;
        --root) mkdir -p "$2/bin" && ln -sf "$STUB_KARAT" "$2/bin/karat" ;;
    esac
    shift
done
"#;

fn executable(scratch: &Scratch, name: &str, script: &str) {
    let path = scratch.write(&format!(".runner/bin/{name}"), format!("#!/bin/bash\n{script}"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn project(folder: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.karat(&["init", folder, "--for", "proxy", "--ci", "none"]).expect(0);
    scratch
}

/// Makes the search of a project worse than its baseline.
fn degrade(scratch: &Scratch, folder: &str) {
    let file = format!("{folder}/karat.toml");
    let (old, new) = (r#"builtin = "bm25""#, r#"builtin = "bm25-names""#);
    assert!(scratch.read(&file).contains(old));
    scratch.write(&file, scratch.read(&file).replace(old, new));
}

#[test]
fn the_action_measures_comments_and_passes() {
    let job = Job::new(project("."), &[("path", KARAT)]);
    job.measure().expect(0);
    assert_eq!(job.output("exit-code"), "0");
    for file in ["report.html", "report.json", "summary.md", "junit.xml", "findings.sarif"] {
        assert!(Path::new(&job.output("report")).join(file).exists(), "{file}");
    }
    assert!(job.read("summary").contains("Karat: pass"), "{}", job.read("summary"));
    assert!(job.read("path").trim().ends_with("karat-install/bin"));
    let comment = job.read("comment");
    assert!(comment.starts_with("<!-- karat karat.toml -->\n## ✓ Karat: pass"), "{comment}");
    assert!(job.read("gh").contains("--method POST repos/owner/project/issues/12/comments "));
}

#[test]
fn the_action_fails_with_the_code_of_karat_and_replaces_its_comment() {
    let scratch = project(".");
    degrade(&scratch, ".");
    let mut job = Job::new(scratch, &[("path", KARAT)]);
    job.comment = "4471";
    let ran = job.measure().expect(1);
    assert!(ran.stdout.contains("::error::"), "{}", ran.stdout);
    assert!(job.read("gh").contains("--method PATCH repos/owner/project/issues/comments/4471 "));
    let comment = job.read("comment");
    assert!(comment.contains("recall@5") && comment.contains("fail"), "{comment}");
    assert!(job.read("summary").contains("recall@5"));
}

#[test]
fn what_was_not_measured_is_not_a_failed_gate() {
    let job = Job::new(Scratch::new(), &[("path", KARAT), ("config", "gone.toml")]);
    job.measure().expect(2);
    assert_eq!(job.read("gh"), "", "there is nothing to comment");

    let scratch = project(".");
    let project = scratch.read("karat.toml");
    scratch.write(
        "karat.toml",
        project.replace("{ builtin = \"bm25\" }", "{ command = [\"/bin/false\"] }"),
    );
    let job = Job::new(scratch, &[("path", KARAT)]);
    job.measure().expect(3);
    // A program that is not there ends the job too.
    let job = Job::new(Scratch::new(), &[("path", "no-such-karat")]);
    assert_ne!(job.step("Put Karat on the path").code, 0);
    job.step("Pass or fail").expect(3);
}

#[test]
fn hostile_words_stay_words() {
    let folder = "$(touch owned); `touch owned` \"'";
    let scratch = project(folder);
    let golden = format!("{folder}/datasets/starter/v1/golden/golden.jsonl");
    assert!(scratch.path(&golden).exists());
    degrade(&scratch, folder);
    let config = format!("{folder}/karat.toml");
    let arguments = "--only\nsearch\n-o\n$(touch owned) && touch owned.md";
    let inputs = [("path", KARAT), ("config", &config), ("arguments", arguments)];
    let job = Job::new(scratch, &inputs);
    job.measure().expect(1);
    let files = job.scratch.files();
    assert!(files.iter().any(|file| file == "$(touch owned) && touch owned.md"), "{files:?}");
    assert!(!files.iter().any(|file| file == "owned" || file.ends_with("/owned")), "{files:?}");
    let first = job.read("comment");
    let mark = first.lines().next().unwrap();
    assert!(mark.starts_with("<!-- karat __touch_owned__") && mark.ends_with(" -->"), "{mark}");
}

#[test]
fn karat_is_built_from_the_checkout_of_the_action() {
    let job = Job::new(Scratch::new(), &[]);
    job.step("Find out which Karat this is").expect(0);
    let digest = job.output("digest");
    assert!(digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{digest}");
    job.step("Build Karat").expect(0);
    let line = job.read("cargo");
    let source = line.split("--path ").nth(1).unwrap().split(" --root").next().unwrap();
    assert!(line.contains("install --locked") && Path::new(source).join("Cargo.toml").exists());
}

/// What the job of ci/gitlab.yml runs, with these variables.
fn gitlab(scratch: &Scratch, variables: &[(&str, &str)]) -> Ran {
    gitlab_job(scratch, &root("ci/gitlab.yml"), variables)
}

/// What the job in a file runs, in one shell as there, with these variables.
fn gitlab_job(scratch: &Scratch, file: &Path, variables: &[(&str, &str)]) -> Ran {
    let job = yaml(&file.to_string_lossy());
    let lines = [&job[".karat"]["before_script"], &job["karat"]["script"]];
    let script: Vec<&str> =
        lines.iter().flat_map(|part| part.as_array().unwrap()).filter_map(Value::as_str).collect();
    let path = scratch.write(".runner/job.sh", script.join("\n"));
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(path);
    command.current_dir(scratch.path("")).env_remove("GITHUB_STEP_SUMMARY");
    command.envs(variables.iter().copied());
    Ran::from(command.output().unwrap())
}

/// The address of Karat in the files that these tests let `karat init` write.
const ADDRESS: &str = "https://example.com/tools/karat.git";
/// An address at which there is nothing.
const NOWHERE: &str = "https://example.com/nowhere.git";

/// A repository with what CI takes from Karat's own, and settings by which git finds it at ADDRESS. The
/// commit that works is the first; the second would fail every job.
fn karat_at_its_address(scratch: &Scratch) -> String {
    for file in ["Cargo.toml", "Cargo.lock", "karat.toml", "crates/karat/Cargo.toml"] {
        scratch.write(&format!(".origin/{file}"), file);
    }
    for folder in ["datasets", "suites", "baselines"] {
        scratch.write(&format!(".origin/{folder}/file"), folder);
    }
    let action = std::fs::read_to_string(root("action.yml")).unwrap();
    scratch.write(".origin/action.yml", action);
    let git = |words: &[&str]| scratch.git(&[&["-C", ".origin"], words].concat());
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "Works"]);
    let commit = git(&["rev-parse", "HEAD"]).trim().to_owned();
    git(&["rm", "--quiet", "-r", "action.yml", "crates"]);
    git(&["commit", "--quiet", "--message", "Does not"]);
    let real = scratch.path(".origin");
    // Nothing is asked for outside of this machine, also not for what does not exist.
    let known = [(real.display().to_string(), ADDRESS), ("/nowhere".to_owned(), NOWHERE)];
    let settings = known
        .map(|(folder, address)| format!("[url \"file://{folder}\"]\n\tinsteadOf = {address}\n"))
        .concat();
    scratch.write(".runner/gitconfig", settings);
    commit
}

/// A starter project whose CI gets Karat from ADDRESS at the commit that works.
fn project_with_ci(user: &str, ci: &str) -> Scratch {
    let scratch = Scratch::new();
    let commit = karat_at_its_address(&scratch);
    let from = format!("{ADDRESS}#{commit}");
    scratch.karat(&["init", "--for", user, "--ci", ci, "--karat-from", &from]).expect(0);
    scratch
}

#[test]
fn the_workflow_that_init_writes_works_at_once() {
    for (user, beside) in [("proxy", "digests and labels are right"), ("server", "tools")] {
        let mut job = Job::new(project_with_ci(user, "github"), &[]);
        let ran = job.workflow().expect(0);
        assert!(ran.stdout.contains(beside), "{}", ran.stdout);
        let built = job.read("cargo");
        let source = job.scratch.path(".karat-source/crates/karat");
        let line = format!("install --locked --features full --path {} --root ", source.display());
        assert!(built.starts_with(&line) && built.lines().count() == 1, "{built}");
        assert!(job.read("summary").contains("Karat: pass"));
    }
    let scratch = project_with_ci("proxy", "github");
    degrade(&scratch, ".");
    let mut job = Job::new(scratch, &[]);
    assert!(job.workflow().expect(1).stdout.contains("a gate failed"));
    assert!(job.read("summary").contains("recall@5"));
}

#[test]
fn variables_of_the_repository_take_the_place_of_what_init_wrote() {
    let mut job = Job::new(project_with_ci("proxy", "github"), &[]);
    job.variables.insert("KARAT_REF", "no-such-tag".to_owned());
    let ran = job.workflow();
    assert!(ran.code != 0 && ran.stderr.contains("no-such-tag"), "{}", ran.stderr);
    job.variables.insert("KARAT_GIT", NOWHERE.to_owned());
    job.variables.insert("KARAT_REF", String::new());
    let ran = job.workflow();
    assert!(ran.code != 0 && ran.stderr.contains("/nowhere"), "{}", ran.stderr);
}

#[test]
fn a_workflow_that_does_not_know_karat_says_so_until_a_variable_does() {
    let scratch = Scratch::new();
    let commit = karat_at_its_address(&scratch);
    let ran = scratch.karat(&["init", "--for", "proxy", "--ci", "github,gitlab"]).expect(0);
    assert!(ran.stdout.contains("--karat-from") && ran.stdout.contains("KARAT_GIT"));
    let mut job = Job::new(scratch, &[]);
    assert!(job.workflow().expect(2).stdout.contains("::error::set the variable KARAT_GIT"));
    job.variables.insert("KARAT_GIT", ADDRESS.to_owned());
    job.variables.insert("KARAT_REF", commit);
    job.workflow().expect(0);
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

/// A GitLab that has notes, on a port of its own: it prints the port, and writes down each request.
const NOTES: &str = r#"
import http.server, json, sys, urllib.parse
notes, log = [], open("requests", "w", buffering=1)
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        text = urllib.parse.parse_qs(body).get("body", [""])[0]
        log.write(json.dumps([self.command, self.path, self.headers["PRIVATE-TOKEN"], text]) + "\n")
        if self.command == "POST":
            notes.append({"id": 40 + len(notes), "body": text})
        content = json.dumps(notes).encode()
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

#[test]
fn a_merge_request_has_one_note_and_the_token_stays_secret() {
    use std::io::{BufRead as _, BufReader};
    let scratch = project(".");
    let mut server = Command::new("python3")
        .args(["-c", NOTES])
        .current_dir(scratch.path(""))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let address = format!("http://127.0.0.1:{}/api/v4", port.trim());
    let variables = [
        ("KARAT_PATH", KARAT),
        ("KARAT_NOTE_TOKEN", "a-secret-token"),
        ("CI_API_V4_URL", &address),
        ("CI_PROJECT_ID", "7"),
        ("CI_MERGE_REQUEST_IID", "3"),
    ];
    let first = gitlab(&scratch, &variables).expect(0);
    let second = gitlab(&scratch, &variables).expect(0);
    server.kill().unwrap();
    server.wait().unwrap();
    let requests: Vec<Value> =
        scratch.read("requests").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<&str> = requests.iter().filter_map(|one| one[0].as_str()).collect();
    assert_eq!(methods, ["GET", "POST", "GET", "PUT"]);
    assert_eq!(requests[3][1], "/api/v4/projects/7/merge_requests/3/notes/40");
    for request in &requests {
        assert_eq!(request[2], "a-secret-token");
    }
    let note = requests[3][3].as_str().unwrap();
    assert!(note.starts_with("<!-- karat -->\n## ✓ Karat: pass"), "{note}");
    let shown = [first.stdout, first.stderr, second.stdout, second.stderr].concat();
    assert!(!shown.contains("a-secret-token"));
    for file in scratch.files().iter().filter(|file| *file != "requests") {
        let bytes = std::fs::read(scratch.path(file)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("a-secret-token"), "{file}");
    }
}

#[test]
fn the_hooks_of_pre_commit_run() {
    let scratch = project(".");
    let hooks = yaml(".pre-commit-hooks.yaml");
    for (id, further, code) in [
        ("karat-check", vec![], 0),
        ("karat-check", vec!["gone.toml"], 2),
        ("karat-lint", vec!["--", KARAT, "demo-server"], 0),
        ("karat-verify", vec!["datasets/starter/v1"], 0),
    ] {
        let hook = hooks.as_array().unwrap().iter().find(|hook| hook["id"] == id).unwrap();
        assert_eq!((&hook["language"], &hook["pass_filenames"]), (&"script".into(), &false.into()));
        let mut words = text(hook, "entry").split(' ');
        let program = root(words.next().unwrap());
        let output = Command::new(program)
            .args(words)
            .args(further)
            .env("KARAT_PATH", KARAT)
            .current_dir(scratch.path(""))
            .output()
            .unwrap();
        Ran::from(output).expect(code);
    }
}

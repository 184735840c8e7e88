//! Karat in CI: the steps of action.yml, the hooks of pre-commit and the workflow that `karat init` writes
//! are taken apart and run, with the real binary and substitutes for what belongs to the forge.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ran, Scratch};
use karat_io::input::{Format, parse};
use serde_json::Value;

pub(crate) const KARAT: &str = env!("CARGO_BIN_EXE_karat");

pub(crate) fn root(file: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file)
}

pub(crate) fn yaml(file: &str) -> Value {
    let path = root(file);
    parse(&path, &std::fs::read_to_string(&path).unwrap(), Format::Yaml).unwrap()
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
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
            // A tag can be moved by its owner; scripts/pins holds every other file to this too.
            let (_, commit) = text(step, "uses").split_once('@').unwrap();
            let hexadecimal = commit.chars().all(|c| c.is_ascii_hexdigit());
            assert!(commit.len() == 40 && hexadecimal, "{name}: {commit}");
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
    /// The report of the merge base; empty for none.
    base: String,
    /// The folder of the action.
    source: PathBuf,
    /// Variables of the repository that the workflow belongs to.
    variables: BTreeMap<&'static str, String>,
}

impl Job {
    fn new(scratch: Scratch, inputs: &[(&'static str, &str)]) -> Job {
        for (program, script) in [("gh", GH), ("cargo", CARGO), ("curl", CURL)] {
            executable(&scratch, program, script);
        }
        std::fs::create_dir_all(scratch.path(".runner/temp")).unwrap();
        let action = yaml("action.yml");
        let mut job = Job {
            scratch,
            inputs: BTreeMap::new(),
            comment: "",
            base: String::new(),
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

    /// The output of a step; the last one counts.
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
                ["steps", _, "outputs", name] => self.output(name),
                ["github", "event", "pull_request", "number"] => "12".to_owned(),
                ["github", "event", "pull_request", "base" | "head", "sha"] => "0".repeat(40),
                ["github", "action_repository"] => String::new(),
                _ => panic!("{expression} is new here"),
            };
            filled = filled.replace(&format!("${{{{ {expression} }}}}"), &known);
        }
        filled
    }

    /// The value of `NAME` or `NAME || 'text'` of the variables.
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
            .env("GITHUB_SERVER_URL", "https://example.com")
            .env("GITHUB_RUN_ID", "77")
            .env("RUNNER_TEMP", runner.join("temp"))
            .env("STUB", &runner)
            .env("STUB_KARAT", KARAT)
            .env("STUB_BASE", &self.base)
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
                Some(checkout) if checkout.starts_with("actions/checkout@") => continue,
                Some("./.karat-source") => {
                    self.source = self.scratch.path(".karat-source");
                    let config = step["with"]["config"].as_str().unwrap();
                    self.inputs.insert("config", config.to_owned());
                    self.step("Find out which Karat this is").expect(0);
                    self.step("Download or build Karat").expect(0);
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

/// Notes what it was asked for, keeps the text of the comment, and has the report of the merge base.
const GH: &str = r#"printf '%s\n' "$*" >>"$STUB/gh"
case "$2" in
    */compare/*) echo 0123456789012345678901234567890123456789; exit 0 ;;
    */actions/artifacts*) [ -z "$STUB_BASE" ] || echo 55; exit 0 ;;
    download) mkdir -p "${!#}" && cp "$STUB_BASE" "${!#}/report.json"; exit 0 ;;
esac
for argument in "$@"; do
    case "$argument" in
        --paginate) echo "$STUB_COMMENT" | grep . ; exit 0 ;;
        body=@*) cp "${argument#body=@}" "$STUB/comment" ;;
    esac
done
"#;
/// Notes what it was asked for, and installs the karat that is there from a source that is there.
pub(crate) const CARGO: &str = r#"printf '%s\n' "$*" >>"$STUB/cargo"
while [ $# -gt 0 ]; do
    case "$1" in
        --path) [ -f "$2/Cargo.toml" ] || exit 101 ;;
        --root) mkdir -p "$2/bin" && ln -sf "$STUB_KARAT" "$2/bin/karat" ;;
    esac
    shift
done
"#;
/// Notes the address, and takes what is at ADDRESS from a folder: nothing leaves this machine.
const CURL: &str = r#"address=${!#}
echo "$address" >>"$STUB/curl"
case "$address" in
    https://example.com/tools/karat/*) address=file://$STUB/${address#https://example.com/tools/karat/} ;;
    file://*) ;;
    *) exit 22 ;;
esac
exec /usr/bin/curl "${@:1:$#-1}" "$address"
"#;

pub(crate) fn executable(scratch: &Scratch, name: &str, script: &str) {
    let path = scratch.write(&format!(".runner/bin/{name}"), format!("#!/bin/bash\n{script}"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn project(folder: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.karat(&["init", folder, "--for", "proxy", "--ci", "none"]).expect(0);
    scratch
}

/// Makes the search of a project worse than its baseline.
pub(crate) fn degrade(scratch: &Scratch, folder: &str) {
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
fn the_action_remembers_runs_and_shows_them() {
    let job = Job::new(project("."), &[("path", KARAT), ("history", "true")]);
    for _ in 0..2 {
        job.measure().expect(0);
        assert_eq!(job.output("remembered"), "true");
    }
    let pages = Path::new(&job.output("report")).join("history");
    let dashboard = std::fs::read_to_string(pages.join("index.html")).unwrap();
    assert!(dashboard.contains("<!doctype html>") || dashboard.contains("<!DOCTYPE html>"));
    let history = job.scratch.path(".runner/temp/karat-history/karat-history.sqlite");
    let listed =
        job.scratch.karat(&["history", "list", "--json", "--db", history.to_str().unwrap()]);
    assert_eq!(listed.expect(0).json()["runs"].as_array().unwrap().len(), 2);
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

/// The target of a release for this machine.
fn target() -> String {
    let system = if cfg!(target_os = "macos") { "apple-darwin" } else { "unknown-linux-musl" };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// The version of Karat.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A folder with the release of this checkout, made by the scripts that make one, with a program that runs
/// the karat of the test. Returns the archive.
pub(crate) fn release(scratch: &Scratch) -> PathBuf {
    let program = scratch.write(
        ".runner/karat",
        "#!/bin/sh\necho downloaded >>\"$STUB/ran\"\nexec \"$STUB_KARAT\" \"$@\"\n",
    );
    let out = scratch.path(".runner/releases/download").join(format!("v{VERSION}"));
    let dist = |words: &[&std::ffi::OsStr]| {
        let output = Command::new(root("scripts/dist")).args(words).output().unwrap();
        Ran::from(output).expect(0);
    };
    dist(&["pack".as_ref(), program.as_os_str(), target().as_ref(), out.as_os_str()]);
    dist(&["checksums".as_ref(), out.as_os_str()]);
    out.join(format!("karat-{VERSION}-{}.tar.gz", target()))
}

/// The address of the folder that [`release`] makes.
pub(crate) fn releases(scratch: &Scratch) -> String {
    format!("file://{}", scratch.path(".runner/releases/download").display())
}

#[test]
fn the_action_downloads_the_release_of_its_own_sources() {
    let scratch = project(".");
    release(&scratch);
    let address = releases(&scratch);
    let job = Job::new(scratch, &[("releases", &address)]);
    let ran = job.step("Download or build Karat").expect(0);
    assert!(ran.stdout.contains(&format!("installed the release v{VERSION}")), "{}", ran.stdout);
    assert_eq!((job.read("cargo"), job.output("built")), (String::new(), String::new()));
    job.measure().expect(0);
    assert!(job.read("ran").contains("downloaded"));
}

#[test]
fn a_release_with_a_wrong_checksum_is_refused_and_not_replaced_by_a_build() {
    let scratch = project(".");
    let archive = release(&scratch);
    let right = sha256(&archive);
    // An empty part more, so that the archive still unpacks.
    let empty = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0".to_vec();
    std::fs::write(&archive, [std::fs::read(&archive).unwrap(), empty].concat()).unwrap();
    let address = releases(&scratch);
    let mut job = Job::new(scratch, &[("releases", &address)]);
    let refused = |job: &Job| {
        let ran = job.step("Download or build Karat").expect(3);
        assert!(ran.stderr.contains("is not what its checksum says"), "{}", ran.stderr);
        assert!(job.read("cargo").is_empty() && !job.read("path").contains("karat"));
        assert!(!job.scratch.path(".runner/temp/karat-install/bin/karat").exists());
    };
    refused(&job);
    // Also where the release agrees with itself, and the workflow knows better.
    let sums = archive.with_file_name("SHA256SUMS");
    let changed = std::fs::read_to_string(&sums).unwrap().replace(&right, &sha256(&archive));
    std::fs::write(&sums, changed).unwrap();
    job.step("Download or build Karat").expect(0);
    std::fs::remove_dir_all(job.scratch.path(".runner/temp/karat-install")).unwrap();
    job.inputs.insert("sha256", right);
    refused(&job);
    job.inputs.insert("sha256", String::new());
    std::fs::write(&sums, "").unwrap();
    let ran = job.step("Download or build Karat").expect(3);
    assert!(ran.stderr.contains("does not list"), "{}", ran.stderr);
}

pub(crate) fn sha256(path: &Path) -> String {
    let ran = Ran::from(Command::new("sha256sum").arg(path).output().unwrap()).expect(0);
    ran.stdout.split(' ').next().unwrap().to_owned()
}

#[test]
fn without_a_release_of_these_sources_karat_is_built() {
    let scratch = project(".");
    let archive = release(&scratch);
    let address = releases(&scratch);
    let mut job = Job::new(scratch, &[("releases", &address)]);
    let built = |job: &Job, why: &str| {
        let ran = job.step("Download or build Karat").expect(0);
        assert!(ran.stdout.contains(why), "{}", ran.stdout);
        assert_eq!(job.output("built"), "true");
        assert!(job.read("cargo").starts_with("install --locked --features full --path "));
        std::fs::remove_file(job.scratch.path(".runner/cargo")).unwrap();
    };
    std::fs::write(archive.with_file_name("source-digest.txt"), "0".repeat(64)).unwrap();
    built(&job, "was made from other sources");
    // Asked for by its version, it is taken as it is.
    job.inputs.insert("version", VERSION.to_owned());
    job.step("Download or build Karat").expect(0);
    assert_eq!(job.read("cargo"), "");
    job.inputs.insert("version", "99.0.0".to_owned());
    let ran = job.step("Download or build Karat").expect(3);
    assert!(ran.stderr.contains("99.0.0 was asked for"), "{}", ran.stderr);
    job.inputs.insert("version", String::new());
    job.inputs.insert("releases", "file:///nowhere".to_owned());
    built(&job, "no release");
}

#[test]
fn a_wrong_setting_of_the_download_is_reported_and_nothing_is_built() {
    let scratch = project(".");
    let digest = sha256(&release(&scratch)).to_uppercase();
    let address = releases(&scratch);
    let mut job = Job::new(scratch, &[("releases", &address)]);
    for (input, wrong, said) in [
        ("releases", "http://127.0.0.1:1/download", "must begin with https://"),
        ("releases", "https://example.com/a b", "%20"),
        ("version", "../../other", "is not a version"),
        ("sha256", "abc", "64 hexadecimal digits"),
    ] {
        let before = job.inputs.insert(input, wrong.to_owned());
        let ran = job.step("Download or build Karat").expect(2);
        assert!(ran.stderr.contains(said), "{wrong}: {}", ran.stderr);
        assert_eq!(job.read("cargo"), "");
        job.inputs.insert(input, before.unwrap_or_default());
    }
    // Some programs print digests in capitals.
    job.inputs.insert("sha256", digest);
    job.step("Download or build Karat").expect(0);
    assert_eq!(job.read("cargo"), "");
}

#[test]
fn an_archive_that_ends_early_is_refused() {
    let scratch = project(".");
    let archive = release(&scratch);
    let bytes = std::fs::read(&archive).unwrap();
    std::fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
    let (address, digest) = (releases(&scratch), sha256(&archive));
    let job = Job::new(scratch, &[("releases", &address), ("sha256", &digest)]);
    let ran = job.step("Download or build Karat").expect(3);
    assert!(ran.stderr.contains("cannot be unpacked"), "{}", ran.stderr);
    assert_eq!(job.read("cargo"), "");
    assert!(!job.scratch.path(".runner/temp/karat-install/bin/karat").exists());
}

#[test]
fn karat_is_built_from_the_checkout_of_the_action() {
    let job = Job::new(Scratch::new(), &[("releases", "file:///nowhere")]);
    job.step("Find out which Karat this is").expect(0);
    let digest = job.output("digest");
    assert!(digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{digest}");
    job.step("Download or build Karat").expect(0);
    let line = job.read("cargo");
    let source = line.split("--path ").nth(1).unwrap().split(" --root").next().unwrap();
    assert!(line.contains("install --locked") && Path::new(source).join("Cargo.toml").exists());
}

#[test]
fn the_comment_is_short_and_has_the_changes_since_the_merge_base() {
    let scratch = project(".");
    scratch.karat(&["check", "-o", ".runner/base.json"]).expect(0);
    degrade(&scratch, ".");
    let base = scratch.path(".runner/base.json").to_string_lossy().into_owned();
    let mut job = Job::new(scratch, &[("path", KARAT)]);
    job.base = base;
    job.measure().expect(1);
    let comment = job.read("comment");
    assert!(comment.lines().count() <= 25, "{comment}");
    assert!(
        comment.contains("[Report](https://example.com/owner/project/actions/runs/77)"),
        "{comment}"
    );
    assert!(comment.contains("Against the merge base") && comment.contains("worse"), "{comment}");
    assert!(comment.contains("right tool"), "{comment}");
    assert!(job.read("gh").contains("run download 55 "));
    // Without the right to read artifacts there is still a comment.
    job.base.clear();
    job.measure().expect(1);
    assert!(!job.read("comment").contains("merge base"));
}

#[test]
fn what_is_measured_cannot_write_the_files_of_the_runner() {
    let scratch = project(".");
    let toml = scratch.read("karat.toml");
    let print = r#"{ command = ["sh", "-c", "env >seen.txt; exit 1"] }"#;
    scratch.write("karat.toml", toml.replace("{ builtin = \"bm25\" }", print));
    let job = Job::new(scratch, &[("path", KARAT), ("token", "a-token-of-github")]);
    job.measure().expect(3);
    let seen = job.scratch.read("seen.txt");
    assert!(seen.contains("PATH=") && !seen.contains("a-token-of-github"), "{seen}");
    for name in ["GITHUB_ENV=", "GITHUB_PATH=", "GITHUB_OUTPUT="] {
        assert!(!seen.contains(name), "{name}");
    }
}

#[test]
fn findings_go_to_code_scanning_where_there_are_some() {
    let action = yaml("action.yml");
    let steps = action["runs"]["steps"].as_array().unwrap();
    let upload = steps.iter().find(|step| step["name"] == "Hand over the findings").unwrap();
    let condition = "always() && inputs.sarif == 'true' && steps.check.outputs.sarif == 'true'";
    assert_eq!(text(upload, "if"), condition);
    let job = Job::new(project("."), &[("path", KARAT)]);
    job.measure().expect(0);
    assert_eq!(job.output("sarif"), "true");
    let file = job.filled(upload["with"]["sarif_file"].as_str().unwrap());
    assert!(std::fs::read_to_string(file).unwrap().contains("\"version\": \"2.1.0\""));
    let job = Job::new(Scratch::new(), &[("path", KARAT), ("config", "gone.toml")]);
    job.measure().expect(2);
    assert_eq!(job.output("sarif"), "", "nothing was written, so nothing is handed over");
}

/// The address of Karat in the files that these tests let `karat init` write.
const ADDRESS: &str = "https://example.com/tools/karat.git";
/// An address at which there is nothing.
pub(crate) const NOWHERE: &str = "https://example.com/nowhere.git";

/// A repository with what CI takes from Karat's own, and settings by which git finds it at ADDRESS. The
/// commit that works is the first; the second would fail every job.
fn karat_at_its_address(scratch: &Scratch) -> String {
    for file in ["Cargo.lock", "karat.toml", "crates/karat/Cargo.toml"] {
        scratch.write(&format!(".origin/{file}"), file);
    }
    scratch.write(".origin/Cargo.toml", format!("version = \"{VERSION}\"\n"));
    let install = scratch.write(".origin/ci/install", std::fs::read(root("ci/install")).unwrap());
    std::fs::set_permissions(install, std::fs::Permissions::from_mode(0o755)).unwrap();
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
pub(crate) fn project_with_ci(user: &str, ci: &str) -> Scratch {
    let scratch = Scratch::new();
    let commit = karat_at_its_address(&scratch);
    let from = format!("{ADDRESS}#{commit}");
    scratch.karat(&["init", "--for", user, "--ci", ci, "--karat-from", &from]).expect(0);
    scratch
}

#[test]
fn the_workflow_that_init_writes_works_at_once() {
    for (user, other) in [("proxy", "digests and labels are valid"), ("server", "tools")] {
        let mut job = Job::new(project_with_ci(user, "github"), &[]);
        let ran = job.workflow().expect(0);
        assert!(ran.stdout.contains(other), "{}", ran.stdout);
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

//! `karat init` in scratch repositories: what it writes works at once, lets nothing be lost, and fails
//! the build when what is measured gets worse.

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{Ran, Scratch};
use serde_json::Value;

const USERS: [&str; 4] = ["server", "proxy", "scanner", "agent"];

/// A repository with a committed starter project.
fn repository(user: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.git(&["init", "--quiet"]);
    scratch.karat(&["init", "--for", user]).expect(0);
    commit(&scratch);
    scratch
}

fn commit(scratch: &Scratch) {
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "A step"]);
}

/// Replaces what must be there.
fn edit(scratch: &Scratch, file: &str, edits: &[(&str, &str)]) {
    let mut text = scratch.read(file);
    for (old, new) in edits {
        assert!(text.contains(old), "{old:?} is not in {file}: {text}");
        text = text.replace(old, new);
    }
    scratch.write(file, text);
}

/// Puts one line of karat.toml in force and its rival out of it, as the comments tell.
fn switch(scratch: &Scratch, from: &str, to: &str) {
    let (old, new) = (format!("\n{from}"), format!("\n# {to}"));
    edit(scratch, "karat.toml", &[(&new, &format!("\n{to}")), (&old, &format!("\n# {from}"))]);
}

/// The baseline of a project that has one.
fn baseline(scratch: &Scratch) -> (String, String) {
    let file = scratch.files().into_iter().find(|file| file.starts_with("baselines/")).unwrap();
    let text = scratch.read(&file);
    (file, text)
}

/// The check fails, and every output names the metric.
fn fails_naming(scratch: &Scratch, metric: &str) {
    let outputs =
        ["check", "-v", "-o", "out/junit.xml", "-o", "out/report.html", "-o", "out/report.json"];
    let output = scratch
        .command(&outputs)
        .env("GITHUB_STEP_SUMMARY", scratch.path("out-summary.md"))
        .output()
        .unwrap();
    let ran = Ran::from(output).expect(1);
    let failed = |line: &&str| line.trim_start().starts_with("fail ") && line.contains(metric);
    assert!(ran.stdout.lines().any(|line| failed(&line)), "{metric}: {}", ran.stdout);

    let document: Value = serde_json::from_str(&scratch.read("out/report.json")).unwrap();
    assert_eq!(document["verdict"], "fail");
    let checks = document["reports"][0]["gate"]["checks"].as_array().unwrap();
    let failed = |check: &&Value| check["verdict"] == "fail" && check["metric"] == metric;
    let check = checks.iter().find(failed).unwrap_or_else(|| panic!("{metric}: {checks:?}"));
    let reason = check["reason"].as_str().unwrap();

    let junit = scratch.read("out/junit.xml");
    let failed = |case: &&str| case.contains(metric) && case.contains("<failure");
    assert!(junit.split("<testcase").any(|case| failed(&case)), "{metric}: {junit}");
    for file in ["out-summary.md", "out/report.html"] {
        let text = scratch.read(file);
        assert!(text.contains(metric) && text.contains("fail"), "{metric} in {file}: {reason}");
    }
    std::fs::remove_dir_all(scratch.path("out")).unwrap();
    std::fs::remove_file(scratch.path("out-summary.md")).unwrap();
}

/// A change that changes nothing passes, and what would be accepted is what was accepted.
fn passes_and_reproduces_the_baseline(scratch: &Scratch) {
    let (file, before) = baseline(scratch);
    scratch.karat(&["check"]).expect(0);
    let update = scratch.karat(&["baseline", "update"]).expect(0);
    assert!(update.stdout.contains("nothing changed"), "{}", update.stdout);
    std::fs::remove_file(scratch.path(&file)).unwrap();
    scratch.karat(&["baseline", "update"]).expect(0);
    assert!(before == scratch.read(&file), "{file} is another one than before");
}

#[test]
fn each_project_passes_at_once_and_has_the_scores_of_what_it_runs() {
    for user in USERS {
        let scratch = repository(user);
        let (file, committed) = baseline(&scratch);
        let ran = scratch.karat(&["check", "-v"]).expect(0);
        assert!(ran.stdout.contains("controls:"), "{}", ran.stdout);
        std::fs::remove_file(scratch.path(&file)).unwrap();
        scratch.karat(&["baseline", "update"]).expect(0);
        assert!(
            committed == scratch.read(&file),
            "crates/karat/src/starter/{user}/baseline.json is out of date: run `karat init --for \
             {user} X && karat baseline update X` and copy X/{file} there"
        );
        scratch.karat(&["check"]).expect(0);
        // Reports and journals are kept out of the repository.
        assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{user}");
    }
}

#[test]
fn a_degraded_index_fails_and_a_change_without_effect_passes() {
    let scratch = repository("proxy");
    // The comments are instructions that work: the maintainer's own search instead of the engine.
    switch(&scratch, "system = { builtin", "system = { command");
    scratch.karat(&["baseline", "update"]).expect(0);
    commit(&scratch);
    edit(&scratch, "search.py", &[("def search(", "# A remark.\ndef search(")]);
    passes_and_reproduces_the_baseline(&scratch);

    // The index loses the descriptions.
    edit(&scratch, "search.py", &[(" {tool['description']}", "")]);
    fails_naming(&scratch, "mrr");
    fails_naming(&scratch, "recall@5");
    assert_eq!(scratch.git(&["status", "--porcelain"]).trim(), "M search.py");
}

#[test]
fn a_noisy_scanner_fails_and_a_change_without_effect_passes() {
    let scratch = repository("scanner");
    switch(&scratch, "system = { builtin", "system = { command");
    scratch.karat(&["baseline", "update"]).expect(0);
    scratch.karat(&["check"]).expect(0);
    commit(&scratch);
    edit(&scratch, "scan.py", &[("def scan(", "# A remark.\ndef scan(")]);
    passes_and_reproduces_the_baseline(&scratch);

    // A rule that finds something in most definitions.
    let noisy = "RULES = [\n    (\"noise\", re.compile(\"the\", re.I)),";
    edit(&scratch, "scan.py", &[("RULES = [", noisy)]);
    fails_naming(&scratch, "fpr_hard");
    fails_naming(&scratch, "fpr");
}

#[test]
fn a_broken_tool_fails() {
    let scratch = repository("server");
    scratch.write(
        "broken.py",
        "import subprocess, sys, threading\n\
         server = subprocess.Popen([sys.argv[1], 'demo-server'], stdin=subprocess.PIPE, \
         stdout=subprocess.PIPE)\n\
         def pass_on():\n    for line in sys.stdin.buffer:\n        server.stdin.write(line)\n        \
         server.stdin.flush()\n    server.stdin.close()\n\
         threading.Thread(target=pass_on).start()\n\
         for line in server.stdout:\n    sys.stdout.buffer.write(line.replace(b'42', b'41'))\n    \
         sys.stdout.buffer.flush()\n",
    );
    let karat = env!("CARGO_BIN_EXE_karat");
    let served = |command: &str| format!("\nserver = {{ command = {command} }}");
    edit(
        &scratch,
        "karat.toml",
        &[("\nbuiltin = \"demo\"", &served(&format!("[{karat:?}, \"demo-server\"]")))],
    );
    scratch.karat(&["check"]).expect(0);
    let broken = format!("[\"python3\", \"broken.py\", {karat:?}]");
    edit(&scratch, "karat.toml", &[(&format!("[{karat:?}, \"demo-server\"]"), &broken)]);
    fails_naming(&scratch, "pass_rate");
}

#[test]
fn an_agent_that_got_worse_fails() {
    let scratch = repository("agent");
    // The scripted agent, recorded anew over the demo server, does what was recorded before.
    let tasks = "datasets/starter/v1/tasks/tasks.jsonl";
    scratch.karat(&["agent", "run", tasks, "--traces", "traces/recorded.jsonl"]).expect(0);
    scratch.karat(&["check"]).expect(0);
    edit(&scratch, "traces/recorded.jsonl", &[("Together they cost 44.50.", "I cannot say.")]);
    fails_naming(&scratch, "task.success");
    edit(
        &scratch,
        "traces/recorded.jsonl",
        &[(
            "\"keep_note\",\"server\":\"demo\",\"arguments\"",
            "\"echo\",\"server\":\"demo\",\"arguments\"",
        )],
    );
    fails_naming(&scratch, "calls.exact");
}

#[test]
fn a_changed_frozen_dataset_is_not_measured() {
    for user in ["proxy", "scanner"] {
        let scratch = repository(user);
        let dataset = scratch.files();
        let file = dataset.iter().find(|file| file.ends_with(".jsonl")).unwrap();
        let text = scratch.read(file);
        scratch
            .write(file, text.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>());
        scratch.karat(&["check"]).expect(2).says(&["sha256"]);
    }
}

#[test]
fn your_own_server_is_written_in() {
    let scratch = Scratch::new();
    let karat = env!("CARGO_BIN_EXE_karat");
    // A server needs no --for; words are kept as they are, whatever is in them.
    let own = ["init", "own", "--ci", "github,gitlab", "--", karat, "demo-server"];
    scratch.karat(&own).expect(0);
    scratch.karat(&["check", "own"]).expect(0);
    let workflow = scratch.read("own/.github/workflows/karat.yml");
    assert!(workflow.contains(&format!("karat server lint -- {karat} demo-server")), "{workflow}");

    let odd = ["init", "odd", "--", "python3", "it's \"quoted\" \\ #", "$(touch owned)"];
    scratch.karat(&odd).expect(0);
    let project: toml::Table = scratch.read("odd/karat.toml").parse().unwrap();
    let command = project["server"][0]["server"]["command"].as_array().unwrap();
    let command: Vec<&str> = command.iter().filter_map(toml::Value::as_str).collect();
    assert_eq!(command, odd[3..]);
    let workflow: Value = yaml(&scratch.read("odd/.github/workflows/karat.yml"));
    let steps = workflow["jobs"]["karat"]["steps"].as_array().unwrap();
    let lint = steps.last().unwrap()["run"].as_str().unwrap();
    assert!(lint.ends_with(r#"'it'\''s "quoted" \ #' '$(touch owned)'"#), "{lint}");

    let address = "http://127.0.0.1:3000/mcp?a=\"b\"";
    scratch.karat(&["init", "at", "--url", address]).expect(0);
    let project: toml::Table = scratch.read("at/karat.toml").parse().unwrap();
    assert_eq!(project["server"][0]["server"]["url"].as_str(), Some(address));

    for (arguments, word) in [
        (vec!["init", "x", "--url", "ftp://example.com"], "http://"),
        (vec!["init", "x", "--for", "agent", "--", "node", "server.js"], "recorded traces"),
        (vec!["init", "x", "--", "node", "two\nlines"], "control characters"),
        (vec!["init", "x", "--for", "agent", "--ci", "none,github"], "none"),
        (vec!["init", "x", "--for", "proxy", "--url", "http://127.0.0.1:1/search"], "q={query}"),
        (vec!["init", "x", "--for", "scanner", "--url", "http://127.0.0.1:1/{text}"], "command"),
    ] {
        scratch.karat(&arguments).expect(2).says(&[word]);
        assert!(!scratch.path("x").exists());
    }
}

#[test]
fn the_environment_the_headers_and_the_folder_of_a_system_are_written_in() {
    let scratch = Scratch::new();
    scratch.git(&["init", "--quiet"]);
    let karat = env!("CARGO_BIN_EXE_karat");
    scratch.write("server/serve.py", format!(
        "import os, sys\nassert os.environ['MODE'] == 'a b' and os.environ['THE_TOKEN'] == 'from-outside'\n\
         os.execv({karat:?}, ['karat', 'demo-server'])\n"
    ));
    let words = [
        "init",
        "tests/mine",
        "--cwd",
        "server",
        "-e",
        "MODE=a b",
        "-e",
        "THE_TOKEN=${MY_TOKEN}",
        "--",
        "python3",
        "serve.py",
    ];
    let ran = scratch.command(&words).env("MY_TOKEN", "from-outside").output().unwrap();
    let ran = Ran::from(ran).expect(0);
    // The suite was made from its answers, so it was started in its folder.
    assert!(!ran.stdout.contains("does not call the server's tools yet"), "{}", ran.stdout);
    let project: toml::Table = scratch.read("tests/mine/karat.toml").parse().unwrap();
    let server = &project["server"][0]["server"];
    assert_eq!(server["env"]["MODE"].as_str(), Some("a b"));
    assert_eq!(server["env"]["THE_TOKEN"].as_str(), Some("${MY_TOKEN}"));
    assert_eq!(server["cwd"].as_str(), Some("../../server"));
    let workflow = yaml(&scratch.read(".github/workflows/karat.yml"));
    let steps = workflow["jobs"]["karat"]["steps"].as_array().unwrap();
    assert_eq!(
        steps.last().unwrap()["run"],
        "karat server lint --cwd server -e 'MODE=a b' -e 'THE_TOKEN=${MY_TOKEN}' -- python3 serve.py"
    );
    let checked =
        scratch.command(&["check", "tests/mine"]).env("MY_TOKEN", "from-outside").output();
    Ran::from(checked.unwrap()).expect(0);

    let header = ["--header", "Authorization: Bearer ${TOKEN}", "--header", "Accept-Language: de"];
    let address = ["--url", "http://127.0.0.1:9/mcp?q={query}"];
    scratch.karat(&[&["init", "at", "--ci", "none"], &header[..], &address].concat()).expect(0);
    let project: toml::Table = scratch.read("at/karat.toml").parse().unwrap();
    let server = &project["server"][0]["server"];
    assert_eq!(server["headers"]["Authorization"].as_str(), Some("Bearer ${TOKEN}"));
    assert_eq!(server["headers"]["Accept-Language"].as_str(), Some("de"));
    let proxy = ["init", "proxy", "--for", "proxy", "--ci", "none"];
    scratch.karat(&[&proxy[..], &header, &address].concat()).expect(0);
    let project: toml::Table = scratch.read("proxy/karat.toml").parse().unwrap();
    let http = &project["retrieval"][0]["system"]["http"];
    assert_eq!(http["headers"]["Authorization"].as_str(), Some("Bearer ${TOKEN}"));
    let scanner =
        ["init", "scanner", "--for", "scanner", "--ci", "none", "-e", "DEEP=1", "--", "scan"];
    scratch.karat(&scanner).expect(0);
    let project: toml::Table = scratch.read("scanner/karat.toml").parse().unwrap();
    assert_eq!(project["detection"][0]["system"]["env"]["DEEP"].as_str(), Some("1"));
}

#[test]
fn a_secret_in_a_variable_or_header_is_refused_and_not_repeated() {
    let scratch = Scratch::new();
    scratch.write("file", "");
    for (arguments, words) in [
        (vec!["-e", "API_KEY=geheim", "--", "serve"], ["-e API_KEY", "-e API_KEY='${API_KEY}'"]),
        (vec!["-e", "API_KEY=${K:-geheim}", "--", "serve"], ["-e API_KEY", "variable"]),
        (vec!["-e", "DB=postgres://me:geheim@db/x", "--", "serve"], ["-e DB", "variable"]),
        (
            vec!["--header", "Authorization: Bearer geheim", "--url", "http://127.0.0.1:9/"],
            ["--header Authorization", "'Authorization: ${AUTHORIZATION}'"],
        ),
        (vec!["--header", "A: ${B}", "--", "serve"], ["--header", "url"]),
        (vec!["-e", "A=b", "--url", "http://127.0.0.1:9/"], ["-e", "command"]),
        (vec!["--cwd", "nowhere", "--", "serve"], ["--cwd", "nowhere"]),
        (vec!["--cwd", "file", "--", "serve"], ["--cwd", "not a folder"]),
        (vec!["--for", "scanner", "--cwd", ".", "--", "scan"], ["--cwd", "--for server"]),
        (vec!["-e", "A=b\nc", "--", "serve"], ["control characters", "b"]),
        (vec!["-e", "geheim", "--", "serve"], ["-e", "KEY=VALUE"]),
    ] {
        let ran = scratch.karat(&[&["init", "x"], &arguments[..]].concat()).expect(2);
        ran.says(&words);
        assert!(!ran.stderr.contains("geheim"), "{}", ran.stderr);
        assert!(!scratch.path("x").exists());
    }
}

/// Karat as cargo installs it from this source, in a folder of its own.
struct Installed {
    root: Scratch,
}

impl Installed {
    fn from(source: &str) -> Installed {
        let root = Scratch::new();
        let list = format!("[v1]\n\"karat 0.1.0 ({source})\" = [\"karat\"]\n");
        root.write(".crates.toml", list);
        common::install(&root, "bin/karat");
        Installed { root }
    }

    /// The address and the commit from which CI clones Karat, in the workflow of a new project.
    fn written(&self) -> (String, String) {
        let project = Scratch::new();
        let ran = Command::new(self.root.path("bin/karat"))
            .args(["init", "--for", "proxy"])
            .current_dir(project.path(""))
            .output();
        let ran = Ran::from(ran.unwrap()).expect(0);
        let workflow = yaml(&project.read(".github/workflows/karat.yml"));
        let steps = workflow["jobs"]["karat"]["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["name"] == "Get Karat").unwrap();
        let env = |name: &str| step["env"][name].as_str().unwrap().to_owned();
        let both = (env("KARAT_GIT"), env("KARAT_REF"));
        assert_eq!(ran.stdout.contains("--karat-from"), !both.1.contains("||"), "{}", ran.stdout);
        both
    }
}

/// An expression with what is for an unset variable.
fn or(name: &str, text: &str) -> String {
    format!("${{{{ vars.{name} || '{text}' }}}}")
}

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const UNKNOWN: (&str, &str) = ("${{ vars.KARAT_GIT }}", "${{ vars.KARAT_REF }}");

#[test]
fn an_installed_karat_knows_where_ci_gets_it_from() {
    let address = "https://example.com/tools/karat";
    for source in [
        format!("git+{address}#{COMMIT}"),
        format!("git+{address}?branch=main#{COMMIT}"),
        format!("git+https://me:geheim@example.com/tools/karat?rev=0123456#{COMMIT}"),
    ] {
        let found = Installed::from(&source).written();
        assert_eq!(found, (or("KARAT_GIT", address), or("KARAT_REF", COMMIT)), "{source}");
    }
    for source in [
        format!("git+file:///srv/karat#{COMMIT}"),
        "registry+https://example.com/index".to_owned(),
        "path+file:///no/such/folder".to_owned(),
    ] {
        let (from, at) = Installed::from(&source).written();
        assert_eq!((from.as_str(), at.as_str()), UNKNOWN, "{source}");
    }
    // A list that cannot be read, or that names other programs, is not a reason to fail.
    let installed = Installed::from("x");
    for list in ["[v1", "", "v1 = 3", "[v1]\n\"other 1.0.0 (git+https://a/b#c)\" = [\"other\"]"] {
        installed.root.write(".crates.toml", list);
        let (from, at) = installed.written();
        assert_eq!((from.as_str(), at.as_str()), UNKNOWN, "{list}");
    }
}

#[test]
fn a_karat_built_in_a_checkout_is_taken_from_where_that_was_cloned_from() {
    let checkout = Scratch::new();
    checkout.git(&["init", "--quiet"]);
    checkout.write("crates/the karat/Cargo.toml", "");
    commit(&checkout);
    let folder = checkout.path("crates/the karat").display().to_string().replace(' ', "%20");
    let installed = Installed::from(&format!("path+file://{folder}"));
    let known = || installed.written();
    let unknown = (UNKNOWN.0.to_owned(), UNKNOWN.1.to_owned());
    assert_eq!(known(), unknown, "it has no origin");
    checkout.git(&["remote", "add", "origin", "/srv/karat.git"]);
    assert_eq!(known(), unknown, "no CI could reach that");
    checkout.git(&["remote", "set-url", "origin", "https://me:geheim@example.com/karat.git"]);
    let from = or("KARAT_GIT", "https://example.com/karat.git");
    assert_eq!(known(), (from.clone(), unknown.1), "no one else has the commit yet");
    checkout.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let head = checkout.git(&["rev-parse", "HEAD"]);
    assert_eq!(known(), (from, or("KARAT_REF", head.trim())));
}

#[test]
fn the_address_of_karat_is_taken_as_given_or_refused() {
    let scratch = Scratch::new();
    let init = |folder: &str, more: &[&str]| {
        scratch.karat(&[&["init", folder, "--for", "server", "--karat-from"], more].concat())
    };
    let ran = init("a", &["git@example.com:karat.git#v1.2", "--ci", "github,gitlab"]).expect(0);
    assert!(ran.stdout.contains("a key that CI must have"), "{}", ran.stdout);
    let workflow = scratch.read("a/.github/workflows/karat.yml");
    assert!(workflow.contains(&or("KARAT_GIT", "git@example.com:karat.git")), "{workflow}");
    let variables = yaml(&scratch.read("a/.gitlab-ci.yml"))["variables"].clone();
    assert_eq!(variables["KARAT_GIT"], "git@example.com:karat.git");
    assert_eq!(variables["KARAT_REF"], "v1.2");
    for (more, word) in [
        (vec!["https://me:geheim@example.com/karat"], "password or token"),
        (vec!["/srv/karat"], "https://"),
        (vec!["https://example.com/'; id; '"], "characters"),
        (vec!["https://example.com/karat#a b"], "tag, branch or commit"),
        (vec!["https://example.com/karat", "--ci", "pre-commit"], "--ci github or gitlab"),
    ] {
        let ran = init("x", &more).expect(2);
        ran.says(&[word]);
        assert!(!ran.stderr.contains("geheim") && !scratch.path("x").exists(), "{}", ran.stderr);
    }
}

fn yaml(text: &str) -> Value {
    use karat_io::input::{Format, parse};
    parse("the file".as_ref(), text, Format::Yaml).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn nothing_that_exists_is_changed_and_nothing_is_left_half_written() {
    for (file, taken) in [
        ("karat.toml", "karat.toml"),
        ("datasets/starter/v1/mine.txt", "datasets/starter/v1"),
        (".github/workflows/karat.yml", "karat.yml"),
    ] {
        let scratch = Scratch::new();
        scratch.write(file, "mine");
        let ran = scratch.karat(&["init", "--for", "scanner"]).expect(2);
        ran.says(&[taken, "already exists", "nothing was written"]);
        assert_eq!(scratch.files(), [file]);
        assert_eq!(scratch.read(file), "mine");
    }
    // A file where a folder must be is met in the middle of the work.
    let scratch = Scratch::new();
    scratch.write("traces", "mine");
    scratch.karat(&["init", "--for", "agent"]).expect(2).says(&["traces"]);
    assert_eq!(scratch.files(), ["traces"]);
    assert!(!scratch.path("datasets").exists());

    let scratch = Scratch::new();
    scratch.karat(&["init", "--for", "agent"]).expect(0);
    let before = scratch.files();
    scratch.karat(&["init", "--for", "server"]).expect(2).says(&["karat.toml"]);
    assert_eq!(scratch.files(), before);
}

#[test]
fn lines_for_files_that_are_there_are_printed() {
    let scratch = Scratch::new();
    scratch.write(".gitignore", "/target\n");
    scratch.write(".gitlab-ci.yml", "stages: [test]\n");
    let ran = scratch.karat(&["init", "--for", "proxy", "--ci", "gitlab"]).expect(0);
    for line in [".gitignore already exists", "  /karat-report/", "  - local: .gitlab/karat.yml"] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert_eq!(scratch.read(".gitignore"), "/target\n");
    assert_eq!(scratch.read(".gitlab-ci.yml"), "stages: [test]\n");

    let scratch = Scratch::new();
    scratch.write(".gitignore", "/karat-report/\n/karat-history.sqlite*\n");
    let ran = scratch.karat(&["init", "--for", "proxy", "--json"]).expect(0);
    assert_eq!(ran.json()["add"].as_array().unwrap().len(), 0, "{}", ran.stdout);
}

#[test]
fn a_quiet_init_prints_only_what_is_left_to_do_by_hand() {
    let scratch = Scratch::new();
    assert_eq!(scratch.karat(&["init", "--for", "proxy", "-q"]).expect(0).stdout, "");

    let scratch = Scratch::new();
    scratch.write(".gitignore", "/target\n");
    let ran = scratch.karat(&["init", "--for", "proxy", "-q"]).expect(0);
    assert!(ran.stdout.starts_with("./.gitignore already exists"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("wrote:"), "{}", ran.stdout);
}

#[test]
fn in_a_part_of_a_repository_the_ci_file_lies_at_its_root() {
    let scratch = Scratch::new();
    scratch.git(&["init", "--quiet"]);
    scratch.write("tools/readme", "");
    let ci = ["--ci", "github", "--ci", "gitlab", "--ci", "pre-commit"];
    scratch.karat(&[&["init", "tools/the search", "--for", "proxy"], &ci[..]].concat()).expect(0);
    let workflow = yaml(&scratch.read(".github/workflows/karat.yml"));
    let steps = workflow["jobs"]["karat"]["steps"].as_array().unwrap();
    let config = "tools/the search/karat.toml";
    let measure = steps.iter().find(|step| step["uses"] == "./.karat-source").unwrap();
    assert_eq!(measure["with"]["config"], config);
    assert_eq!(yaml(&scratch.read(".gitlab-ci.yml"))["variables"]["KARAT_CONFIG"], config);
    let hooks = yaml(&scratch.read(".pre-commit-config.yaml"));
    assert_eq!(hooks["repos"][0]["hooks"][0]["args"][0], config);
    let verify = hooks["repos"][0]["hooks"][1]["entry"].as_str().unwrap();
    assert_eq!(verify, "karat corpus verify 'tools/the search/datasets/starter/v1'");
    scratch.karat(&["check", config]).expect(0);
    scratch.karat(&["corpus", "verify", "tools/the search/datasets/starter/v1"]).expect(0);
}

#[test]
fn without_a_terminal_the_user_must_be_named() {
    let scratch = Scratch::new();
    scratch.karat(&["init"]).expect(2).says(&USERS);
    assert!(scratch.files().is_empty());
}

/// Karat at a terminal of its own, with these answers.
fn at_a_terminal(scratch: &Scratch, answers: &[&str]) -> Ran {
    program_at_a_terminal(Path::new(env!("CARGO_BIN_EXE_karat")), scratch, answers)
}

fn program_at_a_terminal(program: &Path, scratch: &Scratch, answers: &[&str]) -> Ran {
    let script = "import os, pty, sys\n\
        pid, terminal = pty.fork()\n\
        if pid == 0:\n    os.execv(sys.argv[1], [sys.argv[1], 'init'])\n\
        for answer in sys.argv[2:]:\n    \
        shown = b''\n    \
        while not shown.endswith(b'] '):\n        shown += os.read(terminal, 1)\n    \
        sys.stdout.write(shown.decode())\n    \
        os.write(terminal, (chr(4) if answer == 'end' else answer + chr(10)).encode())\n\
        try:\n    \
        while rest := os.read(terminal, 4096):\n        sys.stdout.write(rest.decode())\n\
        except OSError:\n    pass\n\
        sys.stdout.flush()\n\
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(program)
        .args(answers)
        .current_dir(scratch.path(""))
        .output()
        .unwrap();
    Ran::from(output)
}

#[test]
fn at_a_terminal_it_asks() {
    let scratch = Scratch::new();
    let from = ["/srv/karat", "https://example.com/karat#v1"];
    let ran =
        at_a_terminal(&scratch, &["9", "scanner", "", "2, pre-commit", from[0], from[1]]).expect(0);
    assert!(ran.stdout.contains("is not a URL that CI can clone"), "{}", ran.stdout);
    assert_eq!(yaml(&scratch.read(".gitlab-ci.yml"))["variables"]["KARAT_REF"], "v1");
    assert!(ran.stdout.contains("3  scanner"), "{}", ran.stdout);
    let files = scratch.files();
    for file in ["scan.py", ".gitlab/karat.yml", ".pre-commit-config.yaml"] {
        assert!(files.iter().any(|there| there == file), "{file}: {files:?}");
    }
    assert!(!scratch.path(".github").exists());
    scratch.karat(&["check"]).expect(0);

    // Nothing takes the first of each list.
    let scratch = Scratch::new();
    let ran = at_a_terminal(&scratch, &["", "", "", ""]).expect(0);
    assert!(ran.stdout.contains("[decide later] "), "{}", ran.stdout);
    assert!(scratch.path("suites/starter.yaml").exists());
    assert!(scratch.path(".github/workflows/karat.yml").exists());

    // What is known is suggested.
    let installed = Installed::from(&format!("git+https://example.com/karat#{COMMIT}"));
    let scratch = Scratch::new();
    let program = installed.root.path("bin/karat");
    let ran = program_at_a_terminal(&program, &scratch, &["", "", "", ""]).expect(0);
    let suggested = format!("[https://example.com/karat#{COMMIT}] ");
    assert!(ran.stdout.contains(&suggested), "{}", ran.stdout);
    let workflow = scratch.read(".github/workflows/karat.yml");
    assert!(workflow.contains(&or("KARAT_REF", COMMIT)), "{workflow}");

    let scratch = Scratch::new();
    let ran = at_a_terminal(&scratch, &["end"]).expect(2);
    assert!(ran.stdout.contains("nothing was written"), "{}", ran.stdout);
    let ran = at_a_terminal(&scratch, &["5", "x", "0"]).expect(2);
    assert!(ran.stdout.contains("nothing was written"), "{}", ran.stdout);
    assert!(scratch.files().is_empty());
}

#[test]
fn secrets_are_not_written_into_a_project() {
    let scratch = Scratch::new();
    for (url, word) in [
        ("http://user:hunter2secret@127.0.0.1:1/mcp", "--header"),
        ("http://hunter2secret@127.0.0.1:1/mcp", "--header"),
        ("http://127.0.0.1:1/mcp?token=hunter2secret", "token"),
        ("http://127.0.0.1:1/mcp?x=1&api_key=hunter2secret", "api_key"),
        ("http://127.0.0.1:1/mcp?access_token=hunter2secret", "access_token"),
        ("ftp://user:hunter2secret@127.0.0.1:1/mcp", "--header"),
    ] {
        let ran = scratch.karat(&["init", "--ci", "none", "--url", url]).expect(2);
        ran.says(&["--url", word, "${TOKEN}"]);
        assert!(!ran.stderr.contains("hunter2secret"), "{}", ran.stderr);
    }
    for words in [
        &["serve", "--token", "hunter2secret"][..],
        &["serve", "--api-key=hunter2secret"],
        &["serve", "--header", "Authorization: Bearer hunter2secret"],
        &["serve", "postgresql://me:hunter2secret@127.0.0.1/db"],
    ] {
        let ran = scratch.karat(&[&["init", "--ci", "none", "--"], words].concat()).expect(2);
        ran.says(&["${NAME}", "-e NAME"]);
        assert!(!ran.stderr.contains("hunter2secret"), "{}", ran.stderr);
    }
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
}

#[test]
fn variables_and_harmless_words_are_written_into_a_project() {
    for words in [
        &["--url", "http://127.0.0.1:1/mcp?token=${TOKEN}&max_tokens=100"][..],
        &["--url", "http://127.0.0.1:1/users/@me"],
        &["--", "serve", "--token", "${TOKEN}", "--max-tokens", "4096"],
        &[
            "--",
            "no-such-runner",
            "mcp-server-something-2025.11.1",
            "--auth-type",
            "oauth-device-flow",
        ],
    ] {
        let scratch = Scratch::new();
        scratch.karat(&[&["init", "--ci", "none"], words].concat()).expect(0);
        assert!(scratch.read("karat.toml").contains(words.last().unwrap()), "{words:?}");
    }
}

#[test]
fn a_server_that_starts_gets_a_case_for_each_of_its_tools() {
    let scratch = Scratch::new();
    let karat = env!("CARGO_BIN_EXE_karat");
    let ran =
        scratch.karat(&["init", "mine", "--ci", "none", "--", karat, "demo-server"]).expect(0);
    assert!(ran.stdout.contains("read-only tools are called"), "{}", ran.stdout);
    assert!(ran.stdout.contains("cd mine"), "{}", ran.stdout);
    let suite = scratch.read("mine/suites/starter.yaml");
    for tool in ["tool: \"add\"", "tool: \"echo\"", "# Not part of the suite"] {
        assert!(suite.contains(tool), "{tool}: {suite}");
    }
    let within = |arguments: &[&str]| {
        let output = scratch.command(arguments).current_dir(scratch.path("mine")).output();
        Ran::from(output.unwrap())
    };
    within(&["check"]).expect(0);
    // The last step that is named works once it is followed.
    let next = "once you have uncommented `baseline` in karat.toml";
    assert!(ran.stdout.contains(next), "{}", ran.stdout);
    let project = scratch.read("mine/karat.toml");
    scratch.write("mine/karat.toml", project.replace("# baseline = ", "baseline = "));
    within(&["baseline", "update"]).expect(0);
    within(&["check"]).expect(0);

    // A project whose suite calls no tool is undecided, not green.
    let ran = scratch.karat(&["init", "other", "--ci", "none", "--", "no-such-program"]).expect(0);
    assert!(ran.stdout.contains("does not call the server's tools yet"), "{}", ran.stdout);
    let attributes = scratch.read("other/.gitattributes");
    assert!(attributes.contains("/datasets/** -text"), "{attributes}");
}

#[test]
fn files_of_the_command_are_found_from_the_new_project() {
    let scratch = Scratch::new();
    let command = scratch.server("tools: [{name: get_name, do: [{text: notes}]}]");
    let arguments = ["init", "sub/mine", "--ci", "none", "--", command[0], command[1]];
    scratch.karat(&arguments).expect(0);
    let project: toml::Table = scratch.read("sub/mine/karat.toml").parse().unwrap();
    let words = project["server"][0]["server"]["command"].as_array().unwrap();
    assert_eq!(words[1].as_str(), Some("../../server.yaml"));
    assert!(scratch.read("sub/mine/suites/starter.yaml").contains("tool: \"get_name\""));
    scratch.karat(&["check", "sub/mine"]).expect(0);

    // Folders too, if they are written as paths.
    std::fs::create_dir_all(scratch.path("data/in")).unwrap();
    let words = ["--", command[0], "data/in", "./data", ".", "data"];
    scratch.karat(&[&["init", "folders", "--ci", "none"], &words[..]].concat()).expect(0);
    let project: toml::Table = scratch.read("folders/karat.toml").parse().unwrap();
    let written: Vec<&str> = project["server"][0]["server"]["command"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|word| word.as_str().unwrap())
        .collect();
    assert_eq!(written, ["../data/in", "../data", "../", "data"]);

    // A word that names no file from here is kept: it may name one there.
    scratch.karat(&["init", "other", "--ci", "none", "--", command[0], "none.yaml"]).expect(0);
    assert!(scratch.read("other/karat.toml").contains("\"none.yaml\""));
}

#[test]
fn a_system_of_ones_own_is_measured_and_recorded_at_once() {
    let scratch = Scratch::new();
    scratch.karat(&["init", "first", "--for", "proxy", "--ci", "none"]).expect(0);
    let script = scratch.path("first/search.py").display().to_string();
    let arguments = ["init", "own", "--for", "proxy", "--ci", "none", "--", "python3", &script];
    let ran = scratch.karat(&arguments).expect(0);
    assert!(ran.stdout.contains("recorded as the baseline"), "{}", ran.stdout);
    assert!(scratch.read("own/karat.toml").contains("command = [\"python3\""));
    scratch.karat(&["check", "own"]).expect(0);
}

#[test]
fn data_that_git_wrote_with_other_line_ends_is_recognized() {
    let scratch = Scratch::new();
    scratch.karat(&["init", "--for", "proxy", "--ci", "none"]).expect(0);
    let file = "datasets/starter/v1/golden/golden.jsonl";
    let changed = scratch.read(file).replace('\n', "\r\n");
    scratch.write(file, changed);
    scratch.karat(&["check"]).expect(2).says(&["only its line endings differ", ".gitattributes"]);
}

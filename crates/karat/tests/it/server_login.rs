//! Servers behind a login, on the command line: messages, kept logins, and no secret in any output.

#[allow(dead_code, reason = "the tests of karat-mcp use more of it")]
#[path = "../../../karat-mcp/tests/it/support/oauth.rs"]
mod oauth;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use oauth::{Rules, Site, browse};

use crate::common::{Ran, Scratch};

const SUITE: &str =
    "cases:\n  - {id: who, tool: whoami, repeat: 3, expect: {contains: you sent}}\n";
const CLIENT: [&str; 6] =
    ["--auth", "client-credentials", "--client-id", "me", "--client-secret", "${SECRET}"];

/// Karat with a home of its own. A person does what is asked on stderr.
fn karat(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let program = scratch.command(&[]);
    let mut command = std::process::Command::new(program.get_program());
    let mut child = command
        .args(arguments)
        .current_dir(scratch.path("."))
        .env("NO_COLOR", "1")
        .env_remove("CI")
        .env("XDG_CONFIG_HOME", scratch.path("home"))
        .env("SECRET", "secret-of-the-client")
        .env("TOKEN", "access-of-mine")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(url) = line.strip_prefix("to log in, open ") {
            let url = url.to_owned();
            std::thread::spawn(move || browse(&url));
        }
        said.push_str(&line);
        said.push('\n');
    }
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    let status = child.wait().unwrap();
    Ran::from(std::process::Output { status, stdout: out, stderr: said.into_bytes() })
}

fn lacks_secrets(scratch: &Scratch, ran: &Ran) {
    let mut texts: Vec<(String, String)> = scratch
        .files()
        .into_iter()
        .filter(|name| !name.starts_with("home/"))
        .map(|name| (name.clone(), scratch.read(&name)))
        .collect();
    texts.push(("stdout".to_owned(), ran.stdout.clone()));
    texts.push(("stderr".to_owned(), ran.stderr.clone()));
    for (name, text) in texts {
        for secret in [
            "access-token-number",
            "refresh-token-number",
            "secret-of-the-client",
            "code-of-the-login",
        ] {
            assert!(!text.contains(secret), "{secret} is in {name}: {text}");
        }
    }
}

#[test]
fn a_401_is_exit_code_3_and_says_what_to_do() {
    let (scratch, site) = (Scratch::new(), Site::start(Rules::default()));
    let ran =
        karat(&scratch, &["server", "call", "--tool", "whoami", "--url", &site.mcp()]).expect(3);
    ran.says(&["HTTP status 401", "--auth client-credentials", &site.url, "tools:read"]);
}

#[test]
fn a_suite_behind_a_login_leaves_no_secret_behind() {
    let (scratch, site) = (Scratch::new(), Site::start(Rules::default()));
    scratch.write("suite.yaml", SUITE);
    let url = site.mcp();
    let run = [
        "server",
        "test",
        "suite.yaml",
        "--url",
        &url,
        "--record",
        "session.jsonl",
        "-o",
        "report.html",
    ];
    let ran = karat(&scratch, &[&run[..], &CLIENT].concat()).expect(0);
    lacks_secrets(&scratch, &ran);
    assert!(scratch.read("session.jsonl").contains("you sent Bearer [redacted]"));

    let auth = r#"{ kind = "client-credentials", client_id = "me", client_secret = "${SECRET}", scopes = ["x"] }"#;
    let entry = format!("server = {{ url = \"{url}\", auth = {auth} }}");
    scratch.write(
        "karat.toml",
        format!("[[server]]\nname = \"a\"\nsuite = \"suite.yaml\"\n{entry}\n"),
    );
    let ran = karat(&scratch, &["check"]).expect(0);
    lacks_secrets(&scratch, &ran);
    assert_eq!(site.asked("/token").last().unwrap().form()["scope"], "x");
}

#[test]
fn a_login_is_kept_for_later_runs_until_logout() {
    let (scratch, site) = (Scratch::new(), Site::start(Rules::default()));
    let url = site.mcp();
    let call = ["server", "call", "--tool", "whoami", "--url", &url];
    karat(&scratch, &["server", "login", "--url", &url, "--auth", "browser"]).expect(0);
    let kept: Vec<String> =
        scratch.files().into_iter().filter(|name| name.starts_with("home/karat/logins/")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(scratch.read(&kept[0]).contains("access-token-number-1"));
    let ran = karat(&scratch, &call).expect(0);
    assert!(ran.stdout.contains("you sent Bearer [redacted]"), "{}", ran.stdout);
    lacks_secrets(&scratch, &ran);
    assert_eq!(site.asked("/token").len(), 1);
    let listed = karat(&scratch, &["server", "logout", "--list"]).expect(0);
    assert!(listed.stdout.contains(&url), "{}", listed.stdout);
    let kept = karat(&scratch, &["server", "logout", "--list", "--json"]).expect(0).json();
    let kept = kept["logins"].as_array().unwrap();
    assert!(listed.stdout.starts_with(kept[0]["server"].as_str().unwrap()), "{kept:?}");
    karat(&scratch, &["server", "logout", "--url", &url]).expect(0);
    karat(&scratch, &call).expect(3);
    karat(&scratch, &["server", "logout", "--url", &url]).expect(2).says(&["no stored login"]);
}

#[test]
fn mistakes_in_the_flags_are_exit_code_2() {
    let scratch = Scratch::new();
    let url = ["server", "call", "--tool", "x", "--url", "http://127.0.0.1:1/mcp"];
    for (flags, says) in [
        (&["--auth", "client-credentials"][..], "needs client_id"),
        (&["--auth", "token"], "needs access_token"),
        (
            &["--auth", "token", "--access-token", "abcdef"],
            "do not pass a secret on the command line",
        ),
        (&["--client-id", "x"], "--auth"),
        (
            &["--auth", "browser", "--header", "Authorization: Bearer ${TOKEN}"],
            "cannot be combined",
        ),
        (&["--auth", "token", "--access-token", "${NOT_SET_AT_ALL}"], "NOT_SET_AT_ALL is not set"),
        (&["--auth", "token", "--access-token", "-"], "no token on stdin"),
    ] {
        let ran = karat(&scratch, &[&url[..], flags].concat()).expect(2);
        assert!(ran.stderr.contains(says), "{flags:?}: {}", ran.stderr);
    }
}

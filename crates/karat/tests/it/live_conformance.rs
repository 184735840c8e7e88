//! The official conformance suite against a server with its scenarios and against Karat's client.
//!
//! Each run must give exactly the scenarios that are listed here: those that pass, with at least one
//! check, and the exceptions, each with its reason. A scenario that vanishes, a new one and an
//! exception that passes by now all fail the test. `tests/live/conformance` installs the suite.

use crate::common::{BM25, GOLDEN, Scratch, live};

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use live::{live, repository};

const RELEASED: &str = "0.1.16";
const NEWEST: &str = "0.2.0-alpha.12";

/// Scenarios of servers that both revisions have.
const SERVER_COMMON: &[&str] = &[
    "completion-complete",
    "dns-rebinding-protection",
    "json-schema-2020-12",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-progress",
    "tools-list",
];
/// Those that revision 2026-07-28 has no more.
const SERVER_WITH_HANDSHAKE: &[&str] = &[
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "logging-set-level",
    "ping",
    "resources-subscribe",
    "resources-unsubscribe",
    "server-initialize",
    "tools-call-elicitation",
    "tools-call-sampling",
    "tools-call-with-logging",
];
/// Those that came with it.
const SERVER_STATELESS: &[&str] = &[
    "caching",
    "http-header-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
    "input-required-result-multi-round",
    "input-required-result-multiple-input-requests",
    "input-required-result-non-tool-request",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "input-required-result-unsupported-methods",
    "input-required-result-validate-input",
    "sep-2164-resource-not-found",
    "server-sse-multiple-streams",
    "server-stateless",
];

const NO_SESSIONS: &str = "the demo server keeps no sessions, which the protocol allows, and the scenario then checks nothing";
const NO_TASKS: &str = "tasks are an extension that the demo server does not have";
const NO_PARAMETERS: &str = "no tool of the demo server wants its arguments repeated in headers; the suite counts the scenario as pending";
const NO_DPOP: &str =
    "tokens that are bound to a key (DPoP) are an extension that Karat does not have";
const NO_EXCHANGE: &str = "tokens from an identity provider of a company or a workload are an extension that Karat does not have";
const NO_METADATA: &str =
    "without metadata nothing says that the server supports PKCE, so Karat refuses it";

/// Scenarios about authorization that both revisions have.
const AUTH_COMMON: &[&str] = &[
    "auth/basic-cimd",
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/pre-registration",
    "auth/scope-from-scopes-supported",
    "auth/scope-from-www-authenticate",
    "auth/scope-omitted-when-undefined",
    "auth/scope-retry-limit",
    "auth/scope-step-up",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-none",
    "auth/token-endpoint-auth-post",
];
/// Those that came with revision 2026-07-28.
const AUTH_2026: &[&str] = &[
    "auth/authorization-server-migration",
    "auth/iss-normalized",
    "auth/iss-not-advertised",
    "auth/iss-supported",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/offline-access-not-supported",
    "auth/offline-access-scope",
    "auth/resource-mismatch",
];
const AUTH_EXCEPTIONS: &[(&str, &str)] = &[
    ("auth/dpop", NO_DPOP),
    ("auth/dpop-nonce", NO_DPOP),
    ("auth/enterprise-managed-authorization", NO_EXCHANGE),
    ("auth/wif-jwt-bearer", NO_EXCHANGE),
];

fn no_sessions(scenarios: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    scenarios.iter().map(|scenario| (*scenario, NO_SESSIONS)).collect()
}

#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn the_demo_server_passes_the_scenarios_of_the_released_suite() {
    let passes = [SERVER_COMMON, SERVER_WITH_HANDSHAKE].concat();
    let exceptions = no_sessions(&["server-sse-multiple-streams", "server-sse-polling"]);
    compare(&server(RELEASED, &["--suite", "all"]), &passes, &exceptions);
}

#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn the_demo_server_passes_what_revision_2025_11_25_requires() {
    let passes = [SERVER_COMMON, SERVER_WITH_HANDSHAKE].concat();
    let exceptions = no_sessions(&[
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "server-sse-polling",
    ]);
    compare(&server(NEWEST, &["--requirements", "2025-11-25"]), &passes, &exceptions);
}

#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn the_demo_server_passes_what_revision_2026_07_28_requires() {
    let passes = [SERVER_COMMON, SERVER_STATELESS].concat();
    let tasks = [
        "tasks-capability-negotiation",
        "tasks-dispatch-and-envelope",
        "tasks-lifecycle",
        "tasks-mrtr-composition",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-request-state-removal",
        "tasks-required-task-error",
        "tasks-status-notifications",
        "tasks-wire-fields",
    ];
    let mut exceptions: Vec<(&str, &str)> = tasks.map(|scenario| (scenario, NO_TASKS)).to_vec();
    exceptions.push(("http-custom-header-server-validation", NO_PARAMETERS));
    compare(&server(NEWEST, &["--requirements", "2026-07-28"]), &passes, &exceptions);
}

#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn the_client_passes_the_scenarios_of_the_released_suite() {
    let found = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"]
        .map(|scenario| {
            let said = suite(RELEASED, &["client", "--command", &client(), "--scenario", scenario]);
            let passed = said.contains("OVERALL: PASSED");
            assert!(passed, "{scenario}: {said}");
            scenario
        });
    eprintln!("{} of {} scenarios pass", found.len(), found.len());
}

#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn the_client_passes_what_revision_2025_11_25_requires() {
    let passes = [
        "elicitation-sep1034-client-defaults",
        "initialize",
        "json-schema-2020-12-preservation",
        "sse-retry",
        "tools_call",
    ];
    client_passes("2025-11-25", &[&passes[..], AUTH_COMMON].concat());
}

#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn the_client_passes_what_revision_2026_07_28_requires() {
    let passes = [
        "http-custom-headers",
        "http-invalid-tool-headers",
        "http-standard-headers",
        "json-schema-2020-12-preservation",
        "json-schema-ref-no-deref",
        "request-metadata",
        "sep-2322-client-request-state",
        "tools_call",
    ];
    client_passes("2026-07-28", &[&passes[..], AUTH_COMMON, AUTH_2026].concat());
}

fn client_passes(revision: &str, passes: &[&'static str]) {
    let client = client();
    let said = suite(NEWEST, &["client", "--command", &client, "--requirements", revision]);
    compare(&summary(&said), passes, AUTH_EXCEPTIONS);
}

#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn the_client_logs_in_as_the_released_suite_wants() {
    let said = suite(RELEASED, &["client", "--command", &client(), "--suite", "auth"]);
    let is_extension = |scenario: &&&str| scenario.starts_with("auth/client-credentials");
    let passes: Vec<&str> =
        AUTH_COMMON.iter().filter(|scenario| !is_extension(scenario)).copied().collect();
    compare(&summary(&said), &passes, &[]);
}

/// No requirement set has the scenarios of revision 2025-03-26.
#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn the_client_logs_in_at_servers_of_revision_2025_03_26_that_have_metadata() {
    for (scenario, exception) in [
        ("auth/2025-03-26-oauth-metadata-backcompat", None),
        ("auth/2025-03-26-oauth-endpoint-fallback", Some(NO_METADATA)),
    ] {
        let revision = ["--scenario", scenario, "--spec-version", "2025-03-26"];
        let said = suite(NEWEST, &[&["client", "--command", &client()], &revision[..]].concat());
        assert_eq!(said.contains("OVERALL: PASSED"), exception.is_none(), "{scenario}: {said}");
        eprintln!("{scenario}: {}", exception.unwrap_or("passes"));
    }
}

/// Scenarios about servers that have tools and nothing else. The others need tools of the suite's own.
const TOOLS_ALONE: &[(&str, &[&str])] = &[
    ("2025-11-25", &["server-initialize", "ping", "tools-list"]),
    ("2026-07-28", &["tools-list"]),
];
/// Checks of `server-stateless` that `karat mcp` cannot pass: about headers, of which stdio has none, and
/// about tools that the suite wants.
const STATELESS_EXCEPTIONS: &[&str] = &[
    "sep-2575-http-server-header-mismatch-400",
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
];

/// The suite knows servers by their address, so a bridge connects it to the program.
#[test]
#[ignore = "needs tests/live/conformance; ./test conformance runs it"]
fn karat_mcp_passes_the_scenarios_about_tools() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch.karat(&["check", "-q"]).expect(0);
    let bridge = Demo::bridged(&scratch.path("karat.toml"));
    for scenario in ["server-initialize", "ping", "tools-list"] {
        let said = suite(RELEASED, &["server", "--url", &bridge.url, "--scenario", scenario]);
        assert!(said.contains("Passed: 1/1, 0 failed"), "{scenario}: {said}");
    }
    for (revision, scenarios) in TOOLS_ALONE {
        for scenario in *scenarios {
            let (passed, failed) = checks(&bridge.url, scenario, revision);
            assert!(passed.len() > 1 && failed.is_empty(), "{revision} {scenario}: {failed:?}");
            assert!(passed.contains(&"wire-schema-valid".to_owned()), "{scenario}: {passed:?}");
        }
    }
    let (passed, failed) = checks(&bridge.url, "server-stateless", "2026-07-28");
    assert_eq!(failed, STATELESS_EXCEPTIONS, "these checks do not pass");
    eprintln!("server-stateless: {} checks pass", passed.len());
}

/// The checks of one scenario that passed, and those that failed.
fn checks(url: &str, scenario: &str, revision: &str) -> (Vec<String>, Vec<String>) {
    let words = ["server", "--url", url, "--scenario", scenario, "--spec-version", revision];
    let said = suite(NEWEST, &words);
    let mut found = (Vec::new(), Vec::new());
    for line in said.lines() {
        // Lines such as `2026-11-17T13:28:54Z [tools-list  ] SUCCESS Server lists …`, in colours.
        let mut parts = line.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        let plain = parts
            .fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, text)| text));
        let Some((name, rest)) = plain.split_once('[').and_then(|(_, rest)| rest.split_once(']'))
        else {
            continue;
        };
        match rest.trim_start().split_once(' ').map_or("", |(word, _)| word) {
            "SUCCESS" => found.0.push(name.trim().to_owned()),
            "FAILURE" | "WARNING" => found.1.push(name.trim().to_owned()),
            _ => {}
        }
    }
    assert!(!found.0.is_empty(), "no check of {scenario} in: {said}");
    found
}

/// Checks that passed and failed, by scenario.
type Summary = BTreeMap<String, (u64, u64)>;

fn compare(found: &Summary, passes: &[&str], exceptions: &[(&str, &str)]) {
    let passing: Vec<&str> = found
        .iter()
        .filter(|(_, (passed, failed))| *passed > 0 && *failed == 0)
        .map(|(scenario, _)| scenario.as_str())
        .collect();
    let others: Vec<&str> =
        found.keys().map(String::as_str).filter(|scenario| !passing.contains(scenario)).collect();
    let mut wanted = passes.to_vec();
    wanted.sort_unstable();
    let mut excepted: Vec<&str> = exceptions.iter().map(|(scenario, _)| *scenario).collect();
    excepted.sort_unstable();
    assert_eq!(passing, wanted, "these pass");
    assert_eq!(others, excepted, "these do not pass");
    eprintln!("{} of {} scenarios pass", passing.len(), found.len());
    for (scenario, reason) in exceptions {
        eprintln!("exception: {scenario}: {reason}");
    }
}

/// Reads the lines `✓ scenario: 2 passed, 0 failed` at the end of a run.
fn summary(said: &str) -> Summary {
    let (_, end) = said.split_once("SUMMARY").unwrap_or_else(|| panic!("no summary in: {said}"));
    let mut found = Summary::new();
    for line in end.lines() {
        let Some((scenario, counts)) = line
            .strip_prefix("✓ ")
            .or_else(|| line.strip_prefix("✗ "))
            .and_then(|line| line.split_once(": "))
        else {
            continue;
        };
        let number = |word: &str| {
            let before = counts.split(',').find_map(|part| part.trim().strip_suffix(word))?;
            before.trim().parse::<u64>().ok()
        };
        // A warning is not a pass: the suite marks such scenarios as failed too.
        let failed = number("failed").unwrap() + number("warnings").unwrap_or(0);
        let twice = found.insert(scenario.to_owned(), (number("passed").unwrap(), failed));
        assert_eq!(twice, None, "{scenario} is there twice in: {said}");
    }
    found
}

fn server(version: &str, arguments: &[&str]) -> Summary {
    let demo = Demo::start();
    let arguments = [&["server", "--url", &demo.url], arguments].concat();
    summary(&suite(version, &arguments))
}

/// The output of the suite, whatever its exit code: extensions that are not there make it fail.
fn suite(version: &str, arguments: &[&str]) -> String {
    let installed = live().join("conformance");
    let node = installed.join("bin-node");
    assert!(node.exists(), "the suite is not installed: run tests/live/conformance");
    let program = installed
        .join(version)
        .join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let output = Command::new(node)
        .arg(program)
        .args(arguments)
        .current_dir(&installed)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The client that the suite starts.
fn client() -> String {
    example("conformance_client").to_str().unwrap().to_owned()
}

/// The path of an example of the workspace, which `./test conformance` builds. A build from within a test would
/// compile half of the dependencies again: the variables that cargo sets for a test are an input of their scripts.
fn example(name: &str) -> PathBuf {
    let karat = Path::new(env!("CARGO_BIN_EXE_karat"));
    let path = karat.with_file_name("examples").join(name);
    assert!(path.exists(), "{name} is not built: ./test conformance builds it");
    path
}

struct Demo {
    child: Child,
    url: String,
}

impl Demo {
    fn start() -> Demo {
        let mut child =
            Command::new(example("conformance_server")).stdout(Stdio::piped()).spawn().unwrap();
        let url = Demo::address(&mut child);
        Demo { child, url }
    }

    /// `karat mcp` over stdio, behind a bridge that speaks HTTP.
    fn bridged(project: &Path) -> Demo {
        let bridge = repository().join("tests/live/stdio_bridge.mjs");
        let mut child = Command::new(live().join("conformance/bin-node"))
            .arg(bridge)
            .args([env!("CARGO_BIN_EXE_karat"), "mcp", "--allow-run"])
            .arg(project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let url = Demo::address(&mut child);
        Demo { child, url }
    }

    /// The address that it prints first.
    fn address(child: &mut Child) -> String {
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        url.trim().to_owned()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

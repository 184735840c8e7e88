//! `karat server attack` against servers that differ in nothing but their holes: each hole is found
//! whatever it is called and wherever it lies, its safe twin holds, and a server that is lost on the way
//! never passes.

use crate::common;

use std::collections::BTreeMap;

use common::served::Served;
use common::{Ran, Scratch};

/// Every hole of the server: the attack, and the tool and parameter that it goes through.
const HOLES: &[&str] = &[
    "command-injection/lookup_country/country_code",
    "command-injection/run_report/title",
    "sql-injection/find_person/query",
    "sql-injection/weather/city",
    "sql-injection/count_people/name",
    "path-traversal/get_note/title",
    "path-traversal/read_within/options.path",
    "absolute-path/read_text/file",
    "absolute-path/read_many/paths",
    "secret-file/read_named/it",
    "path-traversal/store_text/path",
    "absolute-path/store_text/path",
    "secret-file/store_text/path",
    "symbolic-link/store_text/path",
    "sibling-folder/store_text/path",
    "ssrf-loopback/fetch/url",
    "ssrf-loopback/state_of/host",
    "ssrf-metadata/state_of/host",
    "ssrf-redirect/state_of/host",
    "env-secret/trouble",
    "oversized-answer/wait/seconds",
];

/// Attacks the server in one of its modes, its files in the scratch folder.
fn attack(scratch: &Scratch, mode: &str, arguments: &[&str]) -> Ran {
    let server = scratch.write("twins.py", include_str!("../fixtures/twins.py"));
    std::fs::create_dir_all(scratch.path("root")).unwrap();
    std::fs::create_dir_all(scratch.path("tmp")).unwrap();
    let server = server.to_str().unwrap();
    let mut all =
        vec!["server", "attack", "--timeout", "5s", "--flood", "3", "--allow-destructive"];
    all.extend(arguments);
    all.extend(["--", "python3", server, mode, "gone"]);
    let mut command = scratch.command(&all);
    Ran::from(command.env("TMPDIR", scratch.path("tmp")).output().unwrap())
}

/// The outcome of each attack, by its id.
fn statuses(ran: &Ran) -> BTreeMap<String, String> {
    let document = ran.json();
    let items = document["reports"][0]["items"].as_array().unwrap();
    let status = |item: &serde_json::Value| {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        (text(&item["id"]), text(&item["observed"]["status"]))
    };
    items.iter().map(status).collect()
}

/// An attack without a call that never ends takes a while, so each mode is attacked once.
const ALL: &[&str] = &[
    "--json",
    "--root",
    "root",
    "--class",
    "injection",
    "--class",
    "exfiltration",
    "--class",
    "privilege-escalation",
];

#[test]
#[cfg_attr(karat_portable, ignore = "no links are made")]
fn every_hole_is_found_and_its_safe_twin_holds() {
    let never_ending = ["--json", "--case", "oversized-answer"];
    let (open, closed) = (Scratch::new(), Scratch::new());
    let mut found = statuses(&attack(&open, "unsafe", ALL).expect(1));
    found.extend(statuses(&attack(&open, "unsafe", &never_ending).expect(1)));
    let mut held = statuses(&attack(&closed, "safe", ALL).expect(0));
    held.extend(statuses(&attack(&closed, "safe", &never_ending).expect(0)));
    for hole in HOLES {
        assert_eq!(found.get(*hole).map(String::as_str), Some("broken"), "{hole}: {found:?}");
        // Where only the type of the parameter speaks for the attack, nothing is held, and behind an address only if
        // that is called.
        let status = held.get(*hole).map(String::as_str);
        let is_behind = hole.starts_with("ssrf-metadata") || hole.starts_with("ssrf-redirect");
        let right = if is_behind { "not_executed" } else { "held" };
        assert!(status.is_none_or(|status| status == right), "{hole}: {held:?}");
    }
    let count = HOLES.iter().filter(|hole| held.contains_key(**hole)).count();
    assert!(2 * count > HOLES.len(), "{held:?}");
    assert!(!held.values().any(|status| status == "broken"), "{held:?}");
}

#[test]
fn the_order_of_the_tools_changes_nothing() {
    let scratch = Scratch::new();
    let paths = ["--json", "--root", "root", "--class", "privilege-escalation"];
    let forwards = statuses(&attack(&scratch, "unsafe", &paths).expect(1));
    let backwards = statuses(&attack(&scratch, "reversed", &paths).expect(1));
    assert_eq!(forwards, backwards);
}

#[test]
fn a_server_that_is_lost_on_the_way_is_not_measured() {
    for more in [&["--json"] as &[&str], &["--fail-on", "never"]] {
        let scratch = Scratch::new();
        let ran = attack(&scratch, "lost", more).expect(3);
        assert!(ran.stderr.contains("the server was lost"), "{}", ran.stderr);
        // The call that ended it is named: the eleventh and twelfth are of this attack.
        let last = "the last input was argument-injection/lookup_country/country_code";
        assert!(ran.stderr.contains(last), "{}", ran.stderr);
        assert!(!ran.stdout.contains("pass"), "{}", ran.stdout);
    }
}

#[test]
fn a_tool_that_refuses_plain_arguments_has_held_nothing() {
    let scratch = Scratch::new();
    let arguments = ["--json", "--tool", "get_note", "--class", "injection"];
    let ran = attack(&scratch, "strict", &arguments).expect(3);
    assert!(ran.stderr.contains("--set NAME=VALUE"), "{}", ran.stderr);
}

#[test]
fn the_call_that_ends_a_server_over_http_is_blamed_and_no_other() {
    let scratch = Scratch::new();
    let server = Served::fragile(&["say"]);
    let ran = scratch.karat(&[
        "server",
        "attack",
        "--json",
        "--class",
        "denial-of-service",
        "--url",
        &server.url,
    ]);
    let found = statuses(&ran.expect(1));
    assert_eq!(found["huge-input/say/text"], "broken");
    for rest in ["deep-input/say/text", "request-flood/say"] {
        assert_eq!(found[rest], "not_executed", "{found:?}");
    }
}

/// A server over HTTP with one tool.
fn listening(own_host: bool) -> Served {
    Served::start(&format!(
        "name: web\nown_host: {own_host}\ntools: [{{name: say, do: [{{text: fine}}]}}]"
    ))
}

#[test]
fn a_server_that_answers_pages_of_other_sites_is_broken_and_one_that_checks_the_name_is_not() {
    let scratch = Scratch::new();
    let server = listening(false);
    let arguments = ["server", "attack", "--class", "privilege-escalation", "--url", &server.url];
    let ran = scratch.karat(&[&arguments[..], &["--json"]].concat()).expect(1);
    assert_eq!(statuses(&ran)["dns-rebinding"], "broken");
    let ran = scratch.karat(&arguments).expect(1);
    assert!(ran.stdout.contains("(the server)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("attack-dns-rebinding"), "{}", ran.stdout);
    let again = format!("again: karat server attack --case dns-rebinding --url {}", server.url);
    assert!(ran.stdout.contains(&again), "{}", ran.stdout);

    let server = listening(true);
    let ran = scratch.karat(&[
        "server",
        "attack",
        "--case",
        "dns-rebinding",
        "--json",
        "--url",
        &server.url,
    ]);
    let ran = ran.expect(0);
    assert_eq!(statuses(&ran)["dns-rebinding"], "held");
    let evidence = &ran.json()["reports"][0]["items"][0]["observed"]["evidence"];
    assert!(evidence["answer"].as_str().unwrap().contains("403"), "{evidence}");
}

#[test]
fn no_page_can_reach_a_server_without_an_address() {
    let scratch = Scratch::new();
    let ran = attack(&scratch, "safe", &["--case", "dns-rebinding"]).expect(3);
    assert!(ran.stderr.contains("no address that a web page could ask"), "{}", ran.stderr);
}

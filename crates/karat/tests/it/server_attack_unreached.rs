//! `karat server attack` on tools that attacks do not reach, or only in one form: what fails whatever it is given has
//! held nothing, and neither has a filter that another spelling passes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::served::Served;
use crate::common::{Ran, Scratch};

/// Runs a command of `karat server` on `fixtures/reader.py`.
fn on_reader(scratch: &Scratch, command: &[&str], reader: &[&str]) -> Ran {
    let server = scratch.write("reader.py", include_str!("../fixtures/reader.py"));
    std::fs::create_dir_all(scratch.path("tmp")).unwrap();
    let words = [&["server"], command, &["--", "python3", server.to_str().unwrap()], reader];
    let mut command = scratch.command(&words.concat());
    Ran::from(command.env("TMPDIR", scratch.path("tmp")).output().unwrap())
}

const ATTACK: &[&str] = &["attack", "--json", "--flood", "5"];

/// The status and the reason of each attack.
fn statuses(ran: &Ran) -> BTreeMap<String, (String, String)> {
    let report = ran.report();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let status = |item: &Value| {
        let observed = &item["observed"];
        (text(&item["id"]), (text(&observed["status"]), text(&observed["why"])))
    };
    report["items"].as_array().unwrap().iter().map(status).collect()
}

#[test]
fn a_tool_that_fails_from_the_start_holds_nothing_whatever_its_failure_is() {
    for failure in ["internal", "rate", "key"] {
        let scratch = Scratch::new();
        let ran = on_reader(&scratch, ATTACK, &["get_file", "0", failure]).expect(3);
        assert!(ran.stderr.contains("nothing was executed"), "{failure}: {}", ran.stderr);
        assert!(ran.stderr.contains("in the same words"), "{failure}: {}", ran.stderr);
    }
}

#[test]
fn a_failure_behind_a_validator_holds_no_attack_on_the_tool_behind_it() {
    let scratch = Scratch::new();
    let classes =
        ["--class", "injection", "--class", "exfiltration", "--class", "privilege-escalation"];
    let attack = [ATTACK, &classes].concat();
    let ran = on_reader(&scratch, &attack, &["get_file", "0", "checked"]).expect(3);
    assert!(ran.stderr.contains("in the same words"), "{}", ran.stderr);
}

#[test]
fn a_tool_that_stops_working_on_the_way_holds_nothing_afterwards() {
    let scratch = Scratch::new();
    let broken = on_reader(&scratch, ATTACK, &["get_file", "100000"]).expect(1);
    assert_eq!(statuses(&broken)["absolute-path/get_file/path"].0, "broken");
    // Twenty calls are enough for the first attack, and for no attack on files.
    for failure in ["internal", "rate", "key"] {
        let ran = on_reader(&scratch, ATTACK, &["get_file", "20", failure]).expect(0);
        let found = statuses(&ran);
        assert_eq!(found["command-injection/get_file/path"].0, "held", "{failure}: {found:?}");
        for rest in ["absolute-path/get_file/path", "env-secret/get_file", "request-flood/get_file"]
        {
            let (status, why) = &found[rest];
            assert_eq!(status, "not_executed", "{failure}: {rest}: {why}");
            assert!(why.contains("stopped working"), "{failure}: {rest}: {why}");
        }
        assert_eq!(ran.report()["gate"]["verdict"], "inconclusive", "{failure}");
    }
}

#[test]
fn a_tool_that_finds_nothing_but_reads_its_arguments_has_held() {
    let scratch = Scratch::new();
    let server = scratch.server(
        "tools:
  - name: find_user
    description: Looks a user up
    inputSchema: {type: object, properties: {user: {type: string}}, required: [user]}
    do: [{when: {argument: user, then: [{fail: there is no such user}], otherwise: [{fail: a user is missing}]}}]
",
    );
    let case = ["server", "attack", "--json", "--class", "injection", "--"];
    let found = statuses(&scratch.karat(&[&case, &server[..]].concat()).expect(0));
    for attack in ["command-injection", "sql-injection"] {
        assert_eq!(found[&format!("{attack}/find_user/user")].0, "held", "{found:?}");
    }
}

#[test]
fn a_scan_of_a_tool_that_always_fails_knows_nothing_of_its_reach() {
    let scratch = Scratch::new();
    let ran = on_reader(&scratch, &["scan", "--time-limit", "60"], &["get_file", "0"]);
    assert!(ran.stdout.contains("can reach    unknown"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(": no\n"), "{}", ran.stdout);
}

#[test]
fn an_unknown_reach_has_its_reason_in_json() {
    let scratch = Scratch::new();
    let scanned = |reader: &[&str]| {
        let ran = on_reader(&scratch, &["scan", "--json", "--time-limit", "60"], reader);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let unknown = scanned(&["get_file", "0"]);
    assert_eq!(unknown["reach"], Value::Null);
    assert!(unknown["reach_undefined"].as_str().is_some_and(|why| !why.is_empty()), "{unknown}");
    let known = scanned(&["fetch", "100000"]);
    assert!(known["reach"].is_array() && known.get("reach_undefined").is_none(), "{known}");
}

#[test]
fn one_unknown_reach_among_others_has_its_own_reason_in_json() {
    let scratch = Scratch::new();
    let server = scratch.server(
        "tools:
  - name: count_rows
    description: Counts rows
    inputSchema: {type: object, properties: {table: {type: integer}}, required: [table]}
    do: [{text: '7'}]
",
    );
    let scan = ["server", "scan", "--json", "--time-limit", "5", "--"];
    let ran = scratch.karat(&[&scan, &server[..]].concat());
    let found = serde_json::from_str::<Value>(&ran.stdout).unwrap();
    let [files, variables, addresses, commands] = found["reach"].as_array().unwrap().as_slice()
    else {
        panic!("{found}")
    };
    for unknown in [files, addresses, commands] {
        assert_eq!(unknown["is_tried"], false, "{found}");
        assert_eq!(unknown["undefined"], "no called tool takes them as a parameter", "{found}");
    }
    assert_eq!(variables["is_tried"], true, "{found}");
    assert!(variables.get("undefined").is_none(), "{found}");
}

/// Runs a command of `karat server` on `fixtures/caller.py`.
fn on_caller(scratch: &Scratch, command: &[&str], how: &[&str]) -> Ran {
    let server = scratch.write("caller.py", include_str!("../fixtures/caller.py"));
    let words = [&["server"], command, &["--", "python3", server.to_str().unwrap()], how];
    scratch.karat(&words.concat())
}

const ON_ADDRESSES: &[&str] = &[
    "attack",
    "--json",
    "--case",
    "ssrf-loopback",
    "--case",
    "ssrf-metadata",
    "--case",
    "ssrf-redirect",
];

#[test]
fn a_tool_that_calls_another_page_of_an_address_is_broken() {
    for how in [&["joined"] as &[&str], &["sibling"], &["folder"], &["late", "0.8"]] {
        let scratch = Scratch::new();
        let found = statuses(&on_caller(&scratch, ON_ADDRESSES, how).expect(1));
        for attack in ["ssrf-loopback", "ssrf-metadata", "ssrf-redirect"] {
            let status = &found[&format!("{attack}/load_page/url")];
            assert_eq!(status.0, "broken", "{how:?}: {found:?}");
        }
    }
}

#[test]
fn a_scan_names_the_tool_that_calls_another_page_of_an_address() {
    let scratch = Scratch::new();
    let scanned = on_caller(&scratch, &["scan", "--time-limit", "30"], &["joined"]);
    let said = "addresses on this machine: yes, through load_page.url";
    assert!(scanned.stdout.contains(said), "{}", scanned.stdout);
}

#[test]
fn a_contact_without_a_request_holds_no_attack_on_addresses() {
    let scratch = Scratch::new();
    let found = statuses(&on_caller(&scratch, ON_ADDRESSES, &["tls"]).expect(1));
    assert_eq!(found["ssrf-loopback/load_page/url"].0, "broken", "{found:?}");
    for attack in ["ssrf-metadata", "ssrf-redirect"] {
        assert_eq!(found[&format!("{attack}/load_page/url")].0, "not_executed", "{found:?}");
    }
    let ran = on_caller(&scratch, ON_ADDRESSES, &["connect"]).expect(3);
    assert!(ran.stderr.contains("connects to an address of this machine"), "{}", ran.stderr);
}

/// Attacks a server over HTTP by overloads; its tool has these steps.
fn overloaded(steps: &str) -> Ran {
    let server = Served::start(&format!(
        "tools:
  - name: say
    description: Says a text
    inputSchema: {{type: object, properties: {{text: {{type: string}}}}, required: [text]}}
    do: [{steps}]
"
    ));
    let attack =
        ["server", "attack", "--json", "--class", "denial-of-service", "--flood", "5", "--url"];
    Scratch::new().karat(&[&attack[..], &[&server.url]].concat())
}

#[test]
fn a_server_that_answers_no_call_over_http_is_neither_broken_nor_held_by_an_overload() {
    let page =
        r#"{http: "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5\r\n\r\nhello"}"#;
    for steps in
        ["{status: 500 Internal Server Error}", "{status: 503 Busy}", "{status: 302 Found}", page]
    {
        let ran = overloaded(steps).expect(3);
        assert!(ran.stderr.contains("nothing was executed"), "{steps}: {}", ran.stderr);
        assert!(ran.stderr.contains("in the same words"), "{steps}: {}", ran.stderr);
    }
}

#[test]
fn a_status_that_only_a_huge_input_gets_is_judged() {
    let of_huge = |status: &str| {
        let steps = format!("{{status: {status}}}");
        overloaded(&format!(
            "{{when: {{bytes_above: 1000000, then: [{steps}], otherwise: [{{text: fine}}]}}}}"
        ))
    };
    let broken = statuses(&of_huge("500 Internal Server Error").expect(1));
    assert_eq!(broken["huge-input/say/text"].0, "broken", "{broken:?}");
    for rest in ["deep-input/say/text", "request-flood/say"] {
        assert_eq!(broken[rest].0, "held", "{broken:?}");
    }
    let held = statuses(&of_huge("413 Content Too Large").expect(0));
    for attack in ["huge-input/say/text", "deep-input/say/text", "request-flood/say"] {
        assert_eq!(held[attack].0, "held", "{held:?}");
    }
}

#[test]
fn metadata_alone_is_held_by_a_tool_that_fetches_other_pages_of_this_machine() {
    let scratch = Scratch::new();
    let attack = ["attack", "--json", "--case", "ssrf-metadata"];
    let found = statuses(&on_reader(&scratch, &attack, &["visit_careful", "100000"]).expect(0));
    assert_eq!(found["ssrf-metadata/visit_careful/url"].0, "held", "{found:?}");
}

#[test]
fn an_address_that_may_be_one_of_a_file_is_attacked_with_file_urls() {
    let scratch = Scratch::new();
    let cases = ["attack", "--json", "--case", "absolute-path", "--case", "secret-file"];
    let found = statuses(&on_reader(&scratch, &cases, &["fetch", "100000"]).expect(1));
    for attack in ["absolute-path", "secret-file"] {
        assert_eq!(found[&format!("{attack}/fetch/url")].0, "broken", "{found:?}");
    }
    let ran = on_reader(&scratch, &["scan", "--time-limit", "60"], &["fetch", "100000"]);
    assert!(
        ran.stdout.contains("files outside of its folders: yes, through fetch.url"),
        "{}",
        ran.stdout
    );
}

#[test]
fn redirects_and_metadata_are_tried_with_every_address_and_held_only_after_a_contact() {
    let scratch = Scratch::new();
    let of = |tool: &str, code: i32| {
        let cases = ["ssrf-loopback", "ssrf-metadata", "ssrf-redirect"];
        let flags = cases.iter().flat_map(|case| ["--case", case]);
        let words: Vec<&str> = ["attack", "--json"].into_iter().chain(flags).collect();
        let ran = on_reader(&scratch, &words, &[tool, "100000"]).expect(code);
        cases.map(|case| statuses(&ran)[&format!("{case}/{tool}/url")].0.clone())
    };
    assert_eq!(of("visit_some", 1), ["broken", "broken", "broken"]);
    assert_eq!(of("visit_careful", 1), ["broken", "held", "held"]);
    // It follows redirects, but asks for no page that has one.
    assert_eq!(of("visit_root", 1), ["broken", "held", "not_executed"]);
    assert_eq!(of("visit_none", 0), ["held", "not_executed", "not_executed"]);
}

#[test]
#[cfg_attr(karat_portable, ignore = "no links are made")]
fn every_attack_on_files_uses_the_forms_that_pass_a_filter() {
    let scratch = Scratch::new();
    scratch.write("root/own.txt", "mine");
    for (tool, attacks) in [
        ("stripped", &["path-traversal", "secret-file", "sibling-folder"] as &[&str]),
        ("decoded", &["path-traversal", "secret-file", "sibling-folder", "absolute-path"]),
    ] {
        let words = ["attack", "--json", "--root", "root", "--class", "privilege-escalation"];
        let words = [&words[..], &["--class", "exfiltration"]].concat();
        let found = statuses(&on_reader(&scratch, &words, &[tool, "100000"]).expect(1));
        for attack in attacks {
            assert_eq!(found[&format!("{attack}/{tool}/path")].0, "broken", "{found:?}");
        }
    }
}

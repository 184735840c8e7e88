//! `karat server migration`: a server that is right in everything that revision 2026-07-28 demands, and one for
//! each way to be wrong.

use serde_json::Value;

use crate::common::Scratch;
use crate::common::served::Served;

const DISCOVER: &str = "server/discover: [{result: {resultType: complete, ttlMs: 60000, cacheScope: public, supportedVersions: ['2026-07-28'], capabilities: {tools: {}, resources: {}}, _meta: {io.modelcontextprotocol/serverInfo: {name: t, version: '1'}}}}]";
const TOOLS: &str = "tools/list: [{result: {resultType: complete, ttlMs: 60000, cacheScope: public, tools: [{name: read_a, inputSchema: {type: object}}, {name: read_b, inputSchema: {type: object}}]}}]";
const RESOURCES: &str = "resources/list: [{result: {resultType: complete, ttlMs: 0, cacheScope: private, resources: [{uri: 'note://1', name: one}]}}]";
const TEMPLATES: &str = "resources/templates/list: [{result: {resultType: complete, ttlMs: 0, cacheScope: private, resourceTemplates: []}}]";
const READ: &str = "resources/read: [{result: {resultType: complete, ttlMs: 0, cacheScope: private, contents: [{uri: 'note://1', text: one}]}}]";
const CALLS: &str = "  - {name: read_a, do: [{result: {resultType: complete, content: [{type: text, text: a}]}}]}\n  - {name: read_b, do: [{result: {resultType: complete, content: [{type: text, text: b}]}}]}\n";

/// A right server, with these parts in the place of those that begin in the same way.
fn script(changes: &[&str], tools: &str) -> String {
    let mut methods = vec![DISCOVER, TOOLS, RESOURCES, TEMPLATES, READ];
    for change in changes {
        let name = change.split(": ").next().unwrap();
        methods.retain(|method| !method.starts_with(&format!("{name}: ")));
        methods.push(change);
    }
    let methods: String = methods.iter().map(|method| format!("  {method}\n")).collect();
    format!("log: asked.log\nmethods:\n{methods}tools:\n{tools}")
}

/// The report on a server, with this exit code.
fn migration(script: &str, code: i32) -> Value {
    let (found, report) = exit_code_and_migration(script);
    assert_eq!(found, code, "{report}");
    report
}

fn exit_code_and_migration(script: &str) -> (i32, Value) {
    let scratch = Scratch::new();
    let server = scratch.server(script);
    let arguments = ["server", "migration", "--json", "--"];
    let ran = scratch.karat(&[&arguments, &server[..]].concat());
    (ran.code, ran.json()["report"].clone())
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["rule"].as_str().unwrap()).collect()
}

#[test]
fn a_right_server_has_no_findings() {
    let report = migration(&script(&[], CALLS), 0);
    assert_eq!(rules(&report), [""; 0], "{report}");
    assert_eq!(report["new_generation"], true);
    assert_eq!(report["old_generation"], "2025-11-25");
    for (name, applies) in [
        ("caching hints", true),
        ("truth of the hints", true),
        ("order of lists", true),
        ("statelessness", true),
        ("both generations", true),
        ("request state", false),
        ("arguments in headers", false),
        ("bounds of schemas", true),
    ] {
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == name).expect(name);
        assert_eq!(check["applies"], applies, "{check}");
    }
}

#[test]
fn each_mistake_is_found_under_its_rule() {
    let listed = |from: &str, to: &str| TOOLS.replacen(from, to, 1);
    let turned = "[{name: read_b, inputSchema: {type: object}}, {name: read_a, inputSchema: {type: object}}]";
    let straight = "[{name: read_a, inputSchema: {type: object}}, {name: read_b, inputSchema: {type: object}}]";
    let by_start = |then: &str| {
        let right = TOOLS.split_once(": ").unwrap().1;
        format!("tools/list: [{{when: {{min_start: 2, then: {then}, otherwise: {right}}}}}]")
    };
    let right = TOOLS.split_once(": ").unwrap().1;
    for (rule, change) in [
        ("cache-hints", listed("ttlMs: 60000, ", "")),
        ("cache-hints", listed("ttlMs: 60000", "ttlMs: soon")),
        ("cache-hints", listed("cacheScope: public", "cacheScope: everyone")),
        ("result-type", listed("resultType: complete, ", "")),
        // Changes from call to call, although it is said to be fresh.
        (
            "untrue-ttl",
            READ.replace("ttlMs: 0", "ttlMs: 60000").replace("text: one", "text: '${count}'"),
        ),
        // The same in one process, another one in the next.
        (
            "untrue-scope",
            READ.replace("ttlMs: 0, cacheScope: private", "ttlMs: 0, cacheScope: public")
                .replace("text: one", "text: '${pid}'"),
        ),
        ("list-order", by_start(&right.replace(straight, turned))),
        (
            "schema-bounds",
            listed(
                "name: read_a, inputSchema: {type: object}",
                "name: read_a, inputSchema: {type: object, properties: {x: {$ref: 'https://a.example/x'}}}",
            ),
        ),
        (
            "header-mark",
            listed(
                "name: read_a, inputSchema: {type: object}",
                "name: read_a, inputSchema: {type: object, properties: {x: {type: string, x-mcp-header: 'not a header'}}}",
            ),
        ),
    ] {
        let (code, report) = exit_code_and_migration(&script(&[&change], CALLS));
        assert!(rules(&report).contains(&rule), "{rule}: {report}");
        let findings = report["findings"].as_array().unwrap();
        let has_error = findings.iter().any(|finding| finding["severity"] == "error");
        assert_eq!(code, i32::from(has_error), "{rule}: {report}");
    }
}

#[test]
fn state_in_the_process_is_found() {
    let calls = CALLS.replace("text: a}", "text: 'process ${pid}'}");
    let report = migration(&script(&[], &calls), 1);
    assert_eq!(report["findings"][0]["rule"], "instance-dependent", "{report}");
    assert_eq!(report["findings"][0]["tool"], "read_a");
    // An answer that differs by itself says nothing.
    let calls = CALLS.replace("text: a}", "text: 'call ${count}'}");
    assert_eq!(rules(&migration(&script(&[], &calls), 0)), [""; 0]);
}

#[test]
fn generations_that_differ_are_found() {
    let calls = CALLS.replace(
        "{name: read_b, do: [",
        "{name: read_b, do: [{when: {request: {required: [_meta]}, otherwise: [{text: old}]}}, ",
    );
    let report = migration(&script(&[], &calls), 0);
    assert_eq!(rules(&report), ["generations-differ"], "{report}");
}

/// A tool that asks for a name, with this state, and answers if the state that comes back matches.
fn asking(state: &str, accepts: &str) -> String {
    format!(
        "{CALLS}  - name: read_c\n    do:\n      - when:\n          request: {{required: [requestState], properties: {{requestState: {accepts}}}}}\n          \
         then: [{{result: {{resultType: complete, content: [{{type: text, text: hello}}]}}}}]\n          \
         otherwise:\n            - when:\n                request: {{required: [requestState]}}\n                \
         then: [{{error: {{code: -32602, message: no such state}}}}]\n                \
         otherwise: [{{result: {{resultType: input_required, requestState: '{state}', inputRequests: {{name: {{method: elicitation/create, params: {{message: who, requestedSchema: {{type: object, properties: {{name: {{type: string}}}}, required: [name]}}}}}}}}}}}}]\n"
    )
}

#[test]
fn a_state_survives_and_cannot_be_forged() {
    let tools = TOOLS.replace("}]}}]", "}, {name: read_c, inputSchema: {type: object}}]}}]");
    let check = |state: &str, accepts: &str, code: i32| {
        let report = migration(&script(&[&tools], &asking(state, accepts)), code);
        let states: Vec<String> = rules(&report)
            .into_iter()
            .filter(|rule| rule.starts_with("state-"))
            .map(str::to_owned)
            .collect();
        let checks = report["checks"].as_array().unwrap();
        let made = checks.iter().find(|check| check["name"] == "request state").unwrap();
        assert_eq!(made["applies"], true, "{report}");
        states
    };
    assert_eq!(check("sealed-0123456789", "{const: sealed-0123456789}", 0), [""; 0]);
    assert_eq!(check("open-0123456789", "{type: string}", 1), ["state-forgeable"]);
    let of_process = check("of ${pid} 0123456789", "{const: 'of ${pid} 0123456789'}", 1);
    assert_eq!(of_process, ["state-not-portable"]);
}

#[test]
fn headers_that_contradict_the_arguments_must_be_refused() {
    let tools = TOOLS.replacen(
        "name: read_a, inputSchema: {type: object}",
        "name: read_a, inputSchema: {type: object, required: [region], properties: {region: {type: string, enum: [north], x-mcp-header: Region}}}",
        1,
    );
    let scratch = Scratch::new();
    for (own, code, found) in [("", 1, &["header-not-checked"][..]), ("own_params: true\n", 0, &[])]
    {
        let server = Served::start(&format!(
            "{own}{}",
            script(&[&tools], CALLS).replace("log: asked.log\n", "")
        ));
        let arguments = ["server", "migration", "--json", "--url", &server.url];
        let report = scratch.karat(&arguments).expect(code).json()["report"].clone();
        assert_eq!(rules(&report), found, "{report}");
        let checks = report["checks"].as_array().unwrap();
        let made = checks.iter().find(|check| check["name"] == "arguments in headers").unwrap();
        assert_eq!(made["applies"], true, "{report}");
    }
}

#[test]
fn a_server_of_earlier_revisions_gets_a_list_of_what_is_left_to_do() {
    let script = "capabilities: {tools: {}, logging: {}, resources: {subscribe: true}}\ntools:\n  - {name: read_a}\n";
    let report = migration(script, 0);
    assert_eq!(report["new_generation"], false);
    let found = rules(&report);
    for rule in ["revision-not-spoken", "removed-feature", "deprecated-feature"] {
        assert!(found.contains(&rule), "{rule}: {report}");
    }
    let scratch = Scratch::new();
    scratch.karat(&["server", "migration", "--", "/no/such/program"]).expect(3);
    let ran = scratch.karat(&["server", "migration", "--rules"]).expect(0);
    assert!(ran.stdout.contains("untrue-ttl (error)"), "{}", ran.stdout);
}

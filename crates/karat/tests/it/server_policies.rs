//! Requests of a server to its client are refused, unless a flag, a suite or a project answers them. Also the
//! choice of a server in a config file with several.

use serde_json::{Value, json};

use crate::common::{Ran, Scratch, test_server};

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/open_server.yaml");

/// One call of the server that asks, with these flags.
fn call(scratch: &Scratch, flags: &[&str], tool: &str, input: &Value) -> Ran {
    let input = input.to_string();
    let arguments = ["server", "call", "--tool", tool, "--input", &input];
    scratch.karat(&[&arguments, flags, &["--", test_server(), OPEN]].concat())
}

/// The answer that the server got, as JSON.
fn received(ran: Ran) -> Value {
    let text = ran.expect(0).json()["content"][0]["text"].as_str().unwrap().to_owned();
    serde_json::from_str(&text).unwrap()
}

fn asked(scratch: &Scratch, flags: &[&str], method: &str) -> Value {
    received(call(scratch, flags, "ask", &json!({"method": method})))
}

#[test]
fn everything_is_refused_and_nothing_offered_where_nothing_is_said() {
    let scratch = Scratch::new();
    assert_eq!(received(call(&scratch, &[], "offered", &json!({}))), json!({}));
    for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
        let answer = asked(&scratch, &[], method);
        assert_eq!(answer["code"], -1, "{method}: {answer}");
    }
}

#[test]
fn flags_answer_and_offer_what_they_answer() {
    let scratch = Scratch::new();
    scratch.write("my data/x", "");
    let offered = |flags: &[&str]| received(call(&scratch, flags, "offered", &json!({})));
    assert_eq!(offered(&["--sampling", "hi"]), json!({"sampling": {}}));
    assert_eq!(offered(&["--elicitation", "cancel"]), json!({"elicitation": {}}));
    assert_eq!(offered(&["--roots", "my data"]), json!({"roots": {}}));

    let sampled = asked(&scratch, &["--sampling", "hi"], "sampling/createMessage");
    assert_eq!(sampled["content"], json!({"type": "text", "text": "hi"}));
    for (answer, expected) in [
        ("decline", json!({"action": "decline"})),
        ("cancel", json!({"action": "cancel"})),
        ("defaults", json!({"action": "accept", "content": {}})),
        (r#"{"name": "Ada"}"#, json!({"action": "accept", "content": {"name": "Ada"}})),
    ] {
        let answered = asked(&scratch, &["--elicitation", answer], "elicitation/create");
        assert_eq!(answered, expected, "{answer}");
    }
    let roots = asked(&scratch, &["--roots", "my data", "--roots", "file:///x"], "roots/list");
    let first = roots["roots"][0]["uri"].as_str().unwrap();
    assert!(first.starts_with("file:///") && first.ends_with("/my%20data"), "{first}");
    assert_eq!(roots["roots"][1]["uri"], "file:///x");
}

#[test]
fn a_suite_and_a_project_say_how_their_server_is_answered() {
    let scratch = Scratch::new();
    let cases = "cases:\n  - {id: s, tool: ask, input: {method: sampling/createMessage}, expect: {contains: from the suite}}\n  \
                 - {id: e, tool: ask, input: {method: elicitation/create}, expect: {contains: Ada}}\n  \
                 - {id: r, tool: ask, input: {method: roots/list}, expect: {contains: /data}}\n";
    let policies =
        "{sampling: {text: from the suite}, elicitation: {accept: {name: Ada}}, roots: [data]}";
    let program = test_server();
    let server =
        format!("mcp_server: {{command: [{program:?}, {OPEN:?}], policies: {policies}}}\n");
    scratch.write("suite.yaml", format!("{server}{cases}"));
    scratch.karat(&["server", "test", "suite.yaml"]).expect(0);
    // A flag holds over the suite.
    let flag = ["server", "test", "suite.yaml", "--elicitation", "decline"];
    scratch.karat(&flag).expect(1);

    scratch.write("plain.yaml", cases);
    let project = format!(
        "[[server]]\nname = \"asks\"\nsuite = \"plain.yaml\"\n[server.server]\ncommand = [{program:?}, {OPEN:?}]\n\
         [server.server.policies]\nsampling = {{ text = \"from the suite\" }}\nroots = [\"data\"]\n\
         elicitation = {{ accept = {{ name = \"Ada\" }} }}\n"
    );
    scratch.write("karat.toml", project);
    scratch.karat(&["check", "-v"]).expect(0);
}

#[test]
fn an_invalid_policy_is_bad_input() {
    let scratch = Scratch::new();
    call(&scratch, &["--elicitation", "accept"], "offered", &json!({}))
        .expect(2)
        .says(&["--elicitation", "decline"]);
    call(&scratch, &["--roots", "no/such"], "offered", &json!({})).expect(2).says(&["no/such"]);
    scratch.write(
        "suite.yaml",
        "mcp_server: {command: x, policies: {sampling: always}}\ncases: [{id: a, tool: x}]\n",
    );
    let ran = scratch.karat(&["server", "test", "suite.yaml"]).expect(2);
    ran.says(&["mcp_server", "sampling must be \"refuse\""]);
}

#[test]
fn flags_that_the_server_could_not_heed_are_bad_input() {
    let scratch = Scratch::new();
    let offered = json!({});
    call(&scratch, &["--header", "A: b"], "offered", &offered).expect(2).says(&["--header", "URL"]);
    call(&scratch, &["--cwd", "no/such"], "offered", &offered)
        .expect(2)
        .says(&["folder", "no/such"]);
    call(&scratch, &["-e", "A=${NO_SUCH_VARIABLE}"], "offered", &offered)
        .expect(2)
        .says(&["NO_SUCH_VARIABLE"]);
    let mount = ["--isolate", "bwrap", "--mount", "/no/such"];
    call(&scratch, &mount, "offered", &offered).expect(2).says(&["/no/such"]);
    for flag in [["-e", "A=b"], ["--cwd", "."]] {
        let url = ["server", "call", "--tool", "x", "--url", "http://127.0.0.1:1/mcp"];
        scratch.karat(&[&url[..], &flag].concat()).expect(2).says(&["-e and --cwd", "URL"]);
    }
}

#[cfg(karat_portable)]
#[test]
fn what_only_linux_has_says_so() {
    let scratch = Scratch::new();
    let isolated = ["--isolate", "bwrap"];
    let ran = call(&scratch, &isolated, "offered", &json!({})).expect(3);
    ran.says(&["needs Linux", "--isolate docker"]);
}

#[test]
fn flags_refine_the_server_of_a_suite_too() {
    let scratch = Scratch::new();
    scratch.write(
        "suite.yaml",
        format!(
            "mcp_server: {{command: [{:?}, {OPEN:?}]}}\n\
             cases: [{{id: a, tool: env, input: {{name: PLAIN_WORDS}}, expect: {{contains: a few words}}}}]\n",
            test_server()
        ),
    );
    let test = ["server", "test", "suite.yaml"];
    scratch.karat(&test).expect(1);
    scratch.karat(&[&test[..], &["-e", "PLAIN_WORDS=a few words"]].concat()).expect(0);
}

#[test]
fn a_server_is_found_by_its_name_where_files_of_servers_usually_lie() {
    let scratch = Scratch::new();
    scratch.write("home/x", "");
    let call = |more: &[&str]| {
        let words = ["server", "call", "--tool", "offered", "--server", "mine"];
        let mut command = scratch.command(&[&words, more].concat());
        Ran::from(command.env("HOME", scratch.path("home")).output().unwrap())
    };
    call(&[]).expect(2).says(&["mine", "--config"]);

    let file = |name: &str| {
        json!({"mcpServers": {
            name: {"command": test_server(), "args": [OPEN]},
            "socket": {"type": "ws", "url": "ws://127.0.0.1:1"},
            "with-file": {"command": "x", "envFile": ".env"},
        }})
        .to_string()
    };
    scratch.write(".mcp.json", file("theirs"));
    call(&[]).expect(2).says(&[".mcp.json has socket, theirs, with-file"]);

    scratch.write(".cursor/mcp.json", file("mine"));
    let found = call(&[]).expect(0);
    assert!(found.stderr.contains(".cursor/mcp.json"), "{}", found.stderr);
    assert_eq!(call(&["-q"]).expect(0).stderr, "");

    scratch.write("home/.cursor/mcp.json", file("mine"));
    call(&[]).expect(2).says(&["several", "home/.cursor/mcp.json"]);
    // Entries that are not servers are ignored until they are asked for.
    call(&["--config", ".cursor/mcp.json"]).expect(0);
    let odd = ["server", "lint", "--config", ".mcp.json", "--server", "with-file"];
    scratch.karat(&odd).expect(2).says(&["with-file", "envFile"]);
}

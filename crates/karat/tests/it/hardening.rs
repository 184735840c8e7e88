//! Hostile servers and inputs against the real binary: secrets, logs of CI systems, devices, failures that
//! are asked again.

use crate::common::Scratch;

/// A server that knows a secret and says it everywhere, in several encodings.
const LEAKS: &str = r###"
methods:
  initialize:
    - result:
        protocolVersion: "${arguments.protocolVersion}"
        capabilities: {tools: {}}
        serverInfo: {name: "n${env.API_TOKEN}", version: "${env.API_TOKEN}"}
        instructions: "use ${env.API_TOKEN}"
  tools/list:
    - result: {tools: [{name: t, description: "Says ${env.API_TOKEN}", inputSchema: {type: object}}]}
tools:
  - name: t
    do:
      - run:
          command:
            - sh
            - -c
            - |
              echo $(printf %s "$API_TOKEN" | tr a-z A-Z) $(printf user:%s "$API_TOKEN" | base64) \
                $(printf %s "$API_TOKEN" | od -An -tx1 | tr -d ' \n')
          save: forms
      - text: "${env.API_TOKEN} ${forms} u ::error::x ##[error]y"
"###;

const SECRET: &str = "zq8Kd93kfjqLLw02x";

fn leaking() -> Scratch {
    let scratch = Scratch::new();
    let command = scratch.server(LEAKS);
    scratch.write(
        "suite.yaml",
        format!(
            "mcp_server: {{command: {command:?}, env: {{API_TOKEN: \"${{MYVAR}}\"}}}}\n\
             cases:\n  - {{id: a, tool: t, expect: {{contains: nothing-like-it}}}}\n"
        ),
    );
    scratch
}

#[test]
fn no_output_shows_a_secret_that_a_server_says_of_itself() {
    let scratch = leaking();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_karat"))
        .args(["server", "test", "suite.yaml", "-o", "r.md", "-o", "r.xml"])
        .env("MYVAR", SECRET)
        .current_dir(scratch.path(""))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut texts = vec![
        ("stdout".to_owned(), String::from_utf8_lossy(&output.stdout).into_owned()),
        ("stderr".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned()),
    ];
    for file in [
        "r.md",
        "r.xml",
        "karat-report/report.json",
        "karat-report/report.html",
        "karat-report/journal/server-suite.jsonl",
    ] {
        texts.push((file.to_owned(), scratch.read(file)));
    }
    // The tool said it as it is, in capitals, in Base64 and in hexadecimal.
    let kept = scratch.read("karat-report/report.json");
    assert!(kept.contains("[redacted] [redacted] [redacted] [redacted] u ::error::x"), "{kept}");
    for (place, text) in texts {
        let text = text.to_lowercase();
        for form in [SECRET.to_lowercase(), hex.clone(), "cThLZDkza2ZqcUxMdzAy".to_lowercase()] {
            assert!(!text.contains(&form), "{place} shows {form}");
        }
    }
}

#[test]
fn no_text_of_others_starts_a_command_in_the_log_of_ci() {
    let scratch = leaking();
    let id = "a\\n::error file=app.js::forged";
    let suite = format!("cases:\n  - {{id: \"{id}\", tool: t, input: {{x: \"${{nope}}\"}}}}\n");
    scratch.write("bad.yaml", suite);
    for words in [&["server", "test", "suite.yaml"][..], &["server", "test", "bad.yaml"]] {
        for system in ["GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD"] {
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_karat"))
                .args(words)
                .env_remove("CI")
                .env(system, "true")
                .env("MYVAR", SECRET)
                .current_dir(scratch.path(""))
                .output()
                .unwrap();
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(!said.contains("##["), "{said}");
            assert!(!said.lines().any(|line| line.trim_start().starts_with("::")), "{said}");
        }
    }
}

#[test]
fn what_failed_is_asked_again_on_resume() {
    let scratch = Scratch::new();
    let tools = r#"{"tools": [{"server": "s", "tool": "t", "description": "Turns the handle."}]}"#;
    scratch.write("tools.json", tools);
    let label = r#""labels": [{"tool_id": "s:t", "relevance": 2}]"#;
    let golden: Vec<String> = (0..5)
        .map(|n| format!(r#"{{"id": "q{n}", "query": "turn handle {n}", {label}}}"#))
        .collect();
    scratch.write("golden.jsonl", golden.join("\n"));
    scratch.write(
        "search.py",
        "import json, os, sys\nfor line in sys.stdin:\n q = json.loads(line)\n \
         open('asked.log', 'a').write(q['id'] + '\\n')\n \
         bad = q['id'] == 'q3' and not os.path.exists('repaired')\n \
         answer = {'id': q['id'], 'error': 'overloaded'} if bad else {'id': q['id'], 'ranked': [{'tool_id': 's:t'}]}\n \
         print(json.dumps(answer), flush=True)\n",
    );
    scratch.write(
        "karat.toml",
        "[[retrieval]]\nname = \"r\"\ncorpus = \"tools.json\"\ngolden = \"golden.jsonl\"\n\
         system = { command = [\"python3\", \"search.py\"] }\n",
    );
    scratch.karat(&["check"]).expect(3);
    scratch.write("repaired", "");
    scratch.write("asked.log", "");
    scratch.karat(&["check", "--resume"]).expect(0);
    assert_eq!(scratch.read("asked.log"), "q3\n");
    // The journal has two lines for it, and the second counts.
    let journal = "karat-report/journal/retrieval-r.jsonl";
    let words = ["retrieval", "score", "--corpus", "tools.json", "--golden", "golden.jsonl"];
    scratch.karat(&[&words[..], &["--rankings", journal]].concat()).expect(0);
}

#[test]
fn a_device_without_end_is_refused() {
    let scratch = Scratch::new();
    scratch.write("run", "q1 Q0 a 1 0.9 tag\n");
    let words = ["retrieval", "trec", "--qrels", "/dev/zero", "--run", "run"];
    scratch.karat(&words).expect(2).says(&["/dev/zero:1: ", "longer than"]);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nothing_writes_to_is_given_up() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("runs")).unwrap();
    for name in ["pipe", "runs/a.json"] {
        let made = std::process::Command::new("mkfifo").arg(scratch.path(name)).status();
        assert!(made.unwrap().success());
    }
    // Each waits some seconds for a writer, so all of them at a time.
    std::thread::scope(|scope| {
        for (words, says) in [
            (&["agent", "score", "pipe"][..], "only a file can be looked at"),
            (&["agent", "score", "pipe", "--format", "native"], "nothing opened the pipe"),
            (&["check", "pipe"], "nothing opened the pipe"),
            (&["retrieval", "trec", "--qrels", "pipe", "--run", "pipe"], "nothing opened the pipe"),
            (&["resilience", "score", "runs"], "nothing opened the pipe"),
        ] {
            let scratch = &scratch;
            scope.spawn(move || scratch.karat(words).expect(2).says(&[says]));
        }
    });
}

#[test]
fn json_in_the_log_of_ci_is_the_same_json() {
    let scratch = Scratch::new();
    let name = "t ::error::x ##[error]y \u{9b}\u{202e}";
    let tool = serde_json::json!({"server": "s", "tool": name, "description": "Turns the handle."});
    scratch.write("tools.json", serde_json::json!({"tools": [tool]}).to_string());
    let lock = |ci: &str| {
        let mut command = scratch.command(&["corpus", "lock", "tools.json"]);
        String::from_utf8(command.env("CI", ci).output().unwrap().stdout).unwrap()
    };
    let (plain, logged) = (lock(""), lock("true"));
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(read(&plain), read(&logged));
    assert!(plain.contains(name), "{plain}");
    assert!(!logged.contains("##[") && !logged.contains(['\u{9b}', '\u{202e}']), "{logged}");
}

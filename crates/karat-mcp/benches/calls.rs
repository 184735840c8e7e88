//! The cost of a call over lines and over HTTP, one after the other and concurrently, with the server in
//! another process.
//!
//! The first figures are the CPU time of this process per call, which is what the client adds to a
//! measurement; then divan measures the time of a call. Build the server first:
//! `cargo build --release -p karat-test-server && cargo bench -p karat-mcp`.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

#[path = "../../karat-test-server/find.rs"]
mod find;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use karat_mcp::{Options, ServerSpec, Session};
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};

/// A server that echoes.
const SCRIPT: &str = "tools: [{name: echo}]";
const CALLS: u32 = 20_000;
/// The unit of the times in `/proc/self/stat`.
const TICK_MICROSECONDS: f64 = 10_000.0;

fn main() {
    println!("CPU time of this process per call, {CALLS} calls:");
    for (name, threads) in [("current thread", 0), ("two workers", 2)] {
        for transport in [Transport::Lines, Transport::Http] {
            for at_once in [1, 16, 64] {
                let microseconds = cpu_per_call(transport, threads, at_once);
                println!("  {transport:?}, {name}, {at_once:>2} at once: {microseconds:6.1} µs");
            }
        }
    }
    divan::main();
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Lines,
    Http,
}

/// A server over HTTP, killed on drop.
struct Http {
    url: String,
    server: Child,
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn http() -> Http {
    let mut server = Command::new(find::test_server())
        .args(["-c", SCRIPT, "--http"])
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    Http { url: url.trim().to_owned(), server }
}

fn runtime(threads: usize) -> Runtime {
    let mut builder = match threads {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(threads.max(1)).enable_all().build().unwrap()
}

async fn session(transport: Transport, http: &Http) -> Session {
    let spec = match transport {
        Transport::Lines => {
            let command = [find::test_server(), "-c", SCRIPT];
            ServerSpec::from_command(command.map(str::to_owned).to_vec())
        }
        Transport::Http => ServerSpec::from_url(&http.url),
    };
    Session::start(&spec, &Options::default()).await.unwrap()
}

fn arguments() -> Map<String, Value> {
    let given = json!({"city": "Tromsø", "days": 3, "units": "metric"});
    given.as_object().unwrap().clone()
}

async fn calls(session: &Arc<Session>, count: u32, at_once: u32) {
    let tasks: Vec<_> = (0..at_once)
        .map(|_| {
            let session = Arc::clone(session);
            tokio::spawn(async move {
                let given = arguments();
                for _ in 0..count / at_once {
                    session.call("echo", &given).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

fn cpu_per_call(transport: Transport, threads: usize, at_once: u32) -> f64 {
    let http = http();
    let runtime = runtime(threads);
    let session = Arc::new(runtime.block_on(session(transport, &http)));
    runtime.block_on(calls(&session, 1_000, at_once));
    let before = ticks();
    runtime.block_on(calls(&session, CALLS, at_once));
    let spent = ticks() - before;
    let _inside = runtime.enter();
    drop(session);
    spent * TICK_MICROSECONDS / f64::from(CALLS)
}

/// User and system time of this process.
fn ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
}

fn one_call(bencher: divan::Bencher<'_, '_>, transport: Transport) {
    let http = http();
    let runtime = runtime(0);
    let session = runtime.block_on(session(transport, &http));
    let given = arguments();
    bencher.bench_local(|| runtime.block_on(session.call("echo", &given)).unwrap());
}

#[divan::bench]
fn over_lines(bencher: divan::Bencher<'_, '_>) {
    one_call(bencher, Transport::Lines);
}

#[divan::bench]
fn over_http(bencher: divan::Bencher<'_, '_>) {
    one_call(bencher, Transport::Http);
}

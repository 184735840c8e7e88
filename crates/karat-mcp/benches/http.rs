//! The cost of a request over `http_plain` and over hyper, in turns.
//!
//! `http_plain` is only worth its lines while a general client costs more. Here hyper is used in the cheapest
//! way: the sending task polls the connection itself and is not woken by what hyper hands over, each task
//! has one connection without a pool, and nothing is ever sent again. The figures are the CPU time of this
//! process per request; the server is this program in another process. If the ratio is at most 1.05 in every
//! row, `http_plain` can be replaced.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[allow(dead_code)]
#[path = "../src/http_plain.rs"]
mod http_plain;

/// The part of the crate that `http_plain` uses.
mod headers {
    pub(crate) const SESSION: reqwest::header::HeaderName =
        reqwest::header::HeaderName::from_static("mcp-session-id");
}

use std::future::poll_fn;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hyper::body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use karat_io::platform::cpu_time;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use http_plain::Plain;

/// The environment variable that makes this program the server: the size of its answers.
const SERVE: &str = "KARAT_BENCH_ANSWER_BYTES";
const ROUNDS: usize = 9;
const COUNT: usize = 10_000;
const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
    (USER_AGENT, HeaderValue::from_static("karat")),
];

fn main() {
    if let Ok(bytes) = std::env::var(SERVE) {
        return serve(bytes.parse().unwrap());
    }
    println!("CPU time of this process per request, median of {ROUNDS} rounds [least to most]:");
    for bytes in [100, 30_000] {
        let mut server = Command::new(std::env::current_exe().unwrap())
            .env(SERVE, bytes.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url: Url = url.trim().parse().unwrap();
        for at_once in [1, 8, 64] {
            let mut plain = Vec::new();
            let mut hyper = Vec::new();
            for _ in 0..ROUNDS {
                plain.push(microseconds(&url, at_once, over_plain));
                hyper.push(microseconds(&url, at_once, over_hyper));
            }
            let ratio = median(&mut hyper) / median(&mut plain);
            let spread = |of: &[f64]| {
                format!("{:5.1} [{:.1} to {:.1}]", of[ROUNDS / 2], of[0], of[ROUNDS - 1])
            };
            let (plain, hyper) = (spread(&plain), spread(&hyper));
            println!(
                "  {bytes:>6} bytes, {at_once:>2} at once: plain {plain}, hyper {hyper}, ratio {ratio:.2}"
            );
        }
        server.kill().unwrap();
        server.wait().unwrap();
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Answers every message with this many bytes.
fn serve(bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
    let answer = format!("{head}{bytes}\r\n\r\n{}", "x".repeat(bytes));
    let answer: Arc<str> = answer.into();
    for stream in listener.incoming() {
        let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
        stream.set_nodelay(true).unwrap();
        std::thread::spawn(move || {
            let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                seen.extend_from_slice(&buffer[..length]);
                if seen.ends_with(MESSAGE.as_bytes()) {
                    stream.write_all(answer.as_bytes()).unwrap();
                    seen.clear();
                }
            }
        });
    }
}

/// The CPU time per request.
fn microseconds<F>(url: &Url, at_once: usize, requests: fn(Url, Arc<Plain>, usize) -> F) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.unwrap();
    let pool = Plain::new(url, &HeaderMap::new()).unwrap();
    let before = cpu_time().unwrap();
    runtime.block_on(async {
        let one = || tokio::spawn(requests(url.clone(), Arc::clone(&pool), COUNT / at_once));
        for task in (0..at_once).map(|_| one()).collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
    (cpu_time().unwrap() - before).as_secs_f64() * 1e6 / COUNT as f64
}

async fn over_plain(_: Url, pool: Arc<Plain>, count: usize) {
    for _ in 0..count {
        let headers = HEADERS;
        let headers = headers.iter().map(|(name, value)| (name, value));
        let mut response = pool.post(headers, MESSAGE.as_bytes()).await.unwrap();
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.unwrap() {
            body.extend_from_slice(&bytes);
        }
        assert!(response.status.is_success() && body.len() >= 100);
    }
}

async fn over_hyper(url: Url, _: Arc<Plain>, count: usize) {
    let address = url.socket_addrs(|| None).unwrap()[0];
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut settings = http1::Builder::new();
    // One buffer: the messages are short.
    let settings = settings.writev(false);
    let (sender, driver) = settings.handshake(TokioIo::new(stream)).await.unwrap();
    let mut connection = Polled { sender, driver };
    let host = HeaderValue::try_from(address.to_string()).unwrap();
    let path: hyper::Uri = url.path().parse().unwrap();
    for _ in 0..count {
        let mut request = hyper::Request::new(MESSAGE.to_owned());
        *request.method_mut() = reqwest::Method::POST;
        *request.uri_mut() = path.clone();
        let headers = request.headers_mut();
        headers.reserve(HEADERS.len() + 2);
        headers.append(HOST, host.clone());
        for (name, value) in HEADERS {
            headers.append(name, value);
        }
        connection.post(request).await;
    }
}

/// A connection of hyper that only the sending task polls.
struct Polled {
    sender: http1::SendRequest<String>,
    driver: http1::Connection<TokioIo<tokio::net::TcpStream>, String>,
}

impl Polled {
    async fn post(&mut self, request: hyper::Request<String>) {
        let mut response = pin!(self.sender.send_request(request));
        let driver = &mut self.driver;
        let mut is_sent = false;
        let response = poll_fn(|context| {
            // Nothing can be there before the request is sent.
            let is_first = !std::mem::replace(&mut is_sent, true);
            advance(driver, context, is_first, |without_waker| {
                response.as_mut().poll(without_waker)
            })
        });
        let mut response = response.await.unwrap();
        let incoming = response.body_mut();
        let mut body = Vec::new();
        loop {
            let frame = poll_fn(|context| {
                let mut without_waker = Context::from_waker(Waker::noop());
                match Pin::new(&mut *incoming).poll_frame(&mut without_waker) {
                    Poll::Pending => advance(driver, context, false, |without_waker| {
                        Pin::new(&mut *incoming).poll_frame(without_waker)
                    }),
                    ready => ready,
                }
            });
            let Some(frame) = frame.await else { break };
            body.extend_from_slice(&frame.unwrap().into_data().unwrap());
            if incoming.is_end_stream() {
                break;
            }
        }
        assert!(response.status().is_success() && body.len() >= 100);
    }
}

/// Polls what only the driver advances. The driver gets the waker of this task only where it has to wait: with
/// it, what it hands over here would wake this task while it runs.
fn advance<T>(
    driver: &mut http1::Connection<TokioIo<tokio::net::TcpStream>, String>,
    context: &mut Context<'_>,
    must_wait: bool,
    mut next: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let mut without_waker = Context::from_waker(Waker::noop());
    if !must_wait {
        assert!(Pin::new(&mut *driver).poll(&mut without_waker).is_pending());
        let found = next(&mut without_waker);
        if found.is_ready() {
            return found;
        }
    }
    assert!(Pin::new(driver).poll(context).is_pending());
    next(&mut without_waker)
}

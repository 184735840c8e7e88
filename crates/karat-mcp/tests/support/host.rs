//! A program that holds a session, to be stopped in ways in which nothing is dropped. For tests.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

use karat_io::process::{end_all_on_panic, end_all_on_signal};
use karat_mcp::{Options, ServerSpec, Session};

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let how = words.next().unwrap();
    end_all_on_panic();
    let stopped = tokio::spawn(async {
        let code = end_all_on_signal().await.unwrap();
        std::process::exit(i32::from(code));
    });
    let spec = ServerSpec::from_command(words.collect());
    let session = Session::start(&spec, &Options::default()).await.unwrap();
    let reply = session.call("t", &serde_json::Map::new()).await.unwrap();
    println!("{} {}", session.server().version, reply.texts()[0]);
    // Whatever happens now, nothing is dropped.
    std::mem::forget(session);
    if how == "panic" {
        let _ = std::thread::spawn(|| panic!("on purpose")).join();
        std::process::exit(0);
    }
    stopped.await.unwrap();
}

//! A client that holds a session and is stopped in ways in which nothing is dropped.

#![allow(clippy::panic, reason = "the panic is the point")]

use std::process::ExitCode;

use karat_io::process::{end_all_on_panic, end_all_on_signal};
use karat_mcp::{Options, ServerSpec, Session};

/// Opens a session, calls its tool, and then waits for a signal or panics.
pub(crate) fn run(how: &str, command: &[String]) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("karat-test-server: {error}");
            return ExitCode::from(2);
        }
    };
    match runtime.block_on(hold(how == "panic", command)) {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            eprintln!("karat-test-server: {why}");
            ExitCode::from(2)
        }
    }
}

async fn hold(panics: bool, command: &[String]) -> Result<u8, String> {
    end_all_on_panic();
    let stopped = tokio::spawn(end_all_on_signal());
    let spec = ServerSpec::from_command(command.to_vec());
    let options = Options::default();
    let session = Session::start(&spec, &options).await.map_err(|error| error.to_string())?;
    let reply = session.call("t", &serde_json::Map::new()).await;
    let reply = reply.map_err(|error| error.to_string())?;
    println!("{} {}", session.server().version, reply.texts().concat());
    // Whatever happens now, the session is not dropped.
    std::mem::forget(session);
    if panics {
        let _ = std::thread::spawn(|| panic!("on purpose")).join();
        std::process::exit(0);
    }
    match stopped.await {
        // Without unwinding and dropping, as a program that is stopped.
        Ok(Ok(code)) => std::process::exit(i32::from(code)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

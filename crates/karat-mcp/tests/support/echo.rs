//! The smallest server: one tool that gives its arguments back, over stdio, or with `--http` over
//! HTTP on a free port that it names in its first line. For tests and benches.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use karat_mcp::serve::{self, HttpServer, Offer, ProtocolError, Respond, ServeError};
use serde_json::{Value, json};

struct Echo;

impl Respond for Echo {
    async fn call(&self, _: &str, arguments: &Value) -> Result<Value, ProtocolError> {
        Ok(json!({"content": [{"type": "text", "text": arguments.to_string()}]}))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let offer = Offer {
        name: "echo".to_owned(),
        version: "1".to_owned(),
        instructions: None,
        tools: vec![json!({"name": "echo", "inputSchema": {"type": "object"}})],
    };
    if std::env::args().nth(1).as_deref() != Some("--http") {
        return serve::over_stdio(offer, Echo).await;
    }
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = HttpServer::bind(free, BTreeMap::from([("/mcp".to_owned(), offer)]), Echo).await?;
    println!("http://{}/mcp", server.address());
    server.run_until(std::future::pending::<()>()).await;
    Ok(())
}

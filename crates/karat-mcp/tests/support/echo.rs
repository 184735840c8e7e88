//! The smallest server: one tool that gives its arguments back, over stdio.

use karat_mcp::serve::{self, Offer, ProtocolError, Respond};
use serde_json::{Value, json};

struct Echo;

impl Respond for Echo {
    async fn call(&self, _: &str, arguments: &Value) -> Result<Value, ProtocolError> {
        Ok(json!({"content": [{"type": "text", "text": arguments.to_string()}]}))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), serve::ServeError> {
    let offer = Offer {
        name: "echo".to_owned(),
        version: "1".to_owned(),
        instructions: None,
        tools: vec![json!({"name": "echo", "inputSchema": {"type": "object"}})],
    };
    serve::over_stdio(offer, Echo).await
}

//! Shared parts of the tests: an offer with unusual definitions, and scripted servers.

#[path = "../../../../karat-test-server/find.rs"]
mod find;
pub(crate) mod oauth;

use std::collections::BTreeMap;
use std::time::Duration;

use karat_mcp::serve::{Context, HttpServer, Offer, ProtocolError, Respond};
use karat_mcp::{Options, Revision, ServerSpec, Session};
use serde_json::{Map, Value, json};

/// Tools that echo, fail, wait or refuse, by their name.
pub(crate) struct Toolbox;

impl Respond for Toolbox {
    async fn call(
        &self,
        _: &Context,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, ProtocolError> {
        match tool {
            "echo" => Ok(json!({
                "content": [{"type": "text", "text": arguments.to_string()}, {"type": "odd", "x": 1}],
                "structuredContent": arguments,
                "unknownField": [1, 2.5, null],
            })),
            "say" => Ok(json!({"content": [{"type": "text", "text": arguments["words"]}]})),
            "fail" => Ok(json!({"content": [{"type": "text", "text": "no"}], "isError": true})),
            "wait" => {
                let milliseconds = arguments["milliseconds"].as_u64().unwrap_or(60_000);
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                Ok(json!({"content": []}))
            }
            _ => Err(ProtocolError {
                code: -32000,
                message: "refused".to_owned(),
                data: Some(json!({"why": "because"})),
            }),
        }
    }
}

/// Tools that send progress and ask for roots, and a prompt.
pub(crate) struct Chatty;

impl Respond for Chatty {
    async fn call(&self, context: &Context, tool: &str, _: &Value) -> Result<Value, ProtocolError> {
        context.progress(1.0, Some(2.0));
        if tool == "say" {
            context.progress(2.0, Some(2.0));
            return Ok(json!({"content": []}));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        context.notify("notifications/message", &json!({"level": "info", "data": "half-way"}));
        let text = match context.ask("roots/list", &json!({})).await {
            Ok(answer) => answer["roots"][0]["uri"].as_str().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        };
        context.progress(2.0, Some(2.0));
        Ok(json!({"content": [{"type": "text", "text": text}]}))
    }

    async fn request(&self, _: &Context, method: &str, _: &Value) -> Result<Value, ProtocolError> {
        match method {
            "prompts/list" => Ok(json!({"prompts": [{"name": "p"}]})),
            other => Err(ProtocolError::new(-32601, format!("Method not found: {other}"))),
        }
    }

    fn capabilities(&self) -> Value {
        json!({"prompts": {}, "logging": {}})
    }
}

/// Definitions with unknown fields in an unusual order.
pub(crate) fn offer() -> Offer {
    Offer {
        name: "toolbox".to_owned(),
        version: "1.2.3".to_owned(),
        instructions: Some("Be kind.".to_owned()),
        tools: vec![
            json!({
                "x-first": {"nested": [1, 2.50, 1e300, null]},
                "name": "echo",
                "description": "Gives back \u{202e} what it gets",
                "inputSchema": {"type": "object", "x-odd": true, "properties": {"b": {}, "a": {}}},
                "annotations": {"readOnlyHint": true, "x-unknown": "kept"},
                "_meta": {"vendor/key": 1},
            }),
            json!({"name": "fail", "inputSchema": {"type": "object"}, "title": null}),
            json!({"name": "wait"}),
            json!({"name": "refuse", "inputSchema": true}),
        ],
    }
}

/// Ordinary definitions.
pub(crate) fn plain_offer() -> Offer {
    let schema = json!({"type": "object", "properties": {"words": {"type": "string"}}});
    let tool = |name: &str| json!({"name": name, "description": "a tool", "inputSchema": schema});
    Offer {
        name: "plain".to_owned(),
        version: "1".to_owned(),
        instructions: None,
        tools: vec![tool("say"), tool("fail"), tool("refuse")],
    }
}

/// A server over stdio with this script for `karat-test-server`.
pub(crate) fn scripted(script: &str) -> ServerSpec {
    // The placeholders of scripts are not variables of the spec.
    spec(&[find::test_server(), "-c", &script.replace("${", "$${")])
}

/// The binary of scripted servers.
pub(crate) use find::test_server;

pub(crate) fn spec(words: &[&str]) -> ServerSpec {
    ServerSpec::from_command(words.iter().map(|word| (*word).to_owned()).collect())
}

pub(crate) fn arguments(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other} is not an object"),
    }
}

/// A session with the toolbox over streams in this process.
pub(crate) async fn in_process(protocol: Option<Revision>, options: &Options) -> Session {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(karat_mcp::serve::over(offer(), Toolbox, read, write));
    let (read, write) = tokio::io::split(ours);
    Session::over(read, write, protocol, options).await.unwrap()
}

/// The toolbox on a free port under `/toolbox/mcp`, the plain offer under `/plain`, and an empty one
/// under `/empty`.
pub(crate) async fn on_http() -> String {
    let address = "127.0.0.1:0".parse().unwrap();
    let at = BTreeMap::from([
        ("/toolbox/mcp".to_owned(), offer()),
        ("/plain".to_owned(), plain_offer()),
        ("/empty".to_owned(), Offer { name: "empty".to_owned(), ..Offer::default() }),
    ]);
    let server = HttpServer::bind(address, at, Toolbox).await.unwrap();
    let url = format!("http://{}", server.address());
    tokio::spawn(server.run_until(std::future::pending::<()>()));
    url
}

//! The client that the official conformance suite starts: a session that plays the scenario of the suite.
//!
//! The suite passes the URL of its server as the last argument, and the scenario, the protocol revision and
//! further context in the environment. The client does as little as the scenarios allow: it lists everything
//! and calls every tool with arguments that its schema accepts.

#![allow(clippy::print_stderr, reason = "the suite records it")]

use std::process::ExitCode;
use std::time::Duration;

use karat_mcp::{
    Definition, Elicitation, Options, Policies, Revision, Roots, Sampling, ServerSpec, Session,
};
use serde_json::{Map, Value, json};

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().next_back().filter(|last| last.starts_with("http")) else {
        eprintln!("usage: conformance_client URL");
        return ExitCode::from(2);
    };
    match play(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn play(url: &str) -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    let context: Value = serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT"))
        .unwrap_or_else(|_| Value::Object(Map::new()));
    let mut spec = ServerSpec::from_url(url);
    spec.protocol = Revision::of(&variable("MCP_CONFORMANCE_PROTOCOL_VERSION"));
    let options = Options {
        call_timeout: Duration::from_secs(10),
        policies: Policies {
            sampling: Sampling::Answer { model: "none".to_owned(), text: "Paris".to_owned() },
            elicitation: Elicitation::AcceptDefaults,
            roots: Roots::List(vec!["file:///conformance".to_owned()]),
        },
        ..Options::default()
    };
    let session = Session::start(&spec, &options).await.map_err(|error| error.to_string())?;
    let tools = session.tools().await.map_err(|error| error.to_string())?;
    match scenario.as_str() {
        "json-schema-2020-12-preservation" => echo_schema(&session, &tools).await?,
        "http-custom-headers" => {
            for call in context.get("toolCalls").and_then(Value::as_array).into_iter().flatten() {
                let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
                let none = Map::new();
                let arguments = call.get("arguments").and_then(Value::as_object).unwrap_or(&none);
                call_tool(&session, name, arguments).await?;
            }
        }
        _ => {
            for tool in &tools {
                if tool.parameter_headers_fault().is_none() {
                    call_tool(&session, tool.name(), &arguments(tool)).await?;
                }
            }
        }
    }
    if scenario == "http-standard-headers" {
        read_all(&session).await?;
    }
    session.close().await;
    Ok(())
}

async fn call_tool(
    session: &Session,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<(), String> {
    let reply = session.call(name, arguments).await.map_err(|error| format!("{name}: {error}"))?;
    eprintln!("{name}: {}", reply.raw);
    Ok(())
}

/// Every resource and every prompt.
async fn read_all(session: &Session) -> Result<(), String> {
    for (list, field, get, key) in [
        ("resources/list", "resources", "resources/read", "uri"),
        ("prompts/list", "prompts", "prompts/get", "name"),
    ] {
        let entries = session.list(list, field).await.map_err(|error| error.to_string())?;
        for entry in entries {
            let mut params = Map::new();
            params.insert(key.to_owned(), entry.get(key).cloned().unwrap_or_default());
            session.request(get, &params).await.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Sends the schema of one tool through the other, as it was received.
async fn echo_schema(session: &Session, tools: &[Definition]) -> Result<(), String> {
    let schema = tools
        .iter()
        .find(|tool| tool.name() == "json_schema_2020_12_tool")
        .and_then(Definition::input_schema)
        .ok_or("there is no tool with a schema to echo")?;
    let mut arguments = Map::new();
    arguments.insert("schema".to_owned(), schema.clone());
    call_tool(session, "json_schema_echo", &arguments).await
}

/// The simplest arguments that the schema of a tool accepts.
fn arguments(tool: &Definition) -> Map<String, Value> {
    let schema = tool.input_schema();
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let value = |name: &str| match properties
        .and_then(|all| all.get(name)?.get("type")?.as_str())
        .unwrap_or_default()
    {
        "number" | "integer" => json!(5),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("conformance"),
    };
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|name| (name.to_owned(), value(name)))
        .collect()
}

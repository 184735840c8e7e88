//! The client that the official conformance suite starts: a session that plays the scenario of the suite.
//!
//! The suite passes the URL of its server as the last argument, and the scenario, the protocol revision and
//! further context in the environment. The client does as little as the scenarios allow: it lists everything
//! and calls every tool with arguments that its schema accepts. In scenarios about authorization it logs in; the
//! person with the browser is a thread that follows the redirect.

#![allow(clippy::print_stderr, reason = "the suite records it")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

use karat_mcp::auth::{AuthKind, AuthSpec, Prompt, install_prompt};
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
    let key = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    if scenario.starts_with("auth/") {
        install_prompt(browse);
        spec.auth = Some(auth(&scenario, &context, key.path())?);
    }
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

/// The address of the client ID metadata document that the suite expects.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// The login with what the suite gives for it.
fn auth(scenario: &str, context: &Value, key: &std::path::Path) -> Result<AuthSpec, String> {
    let given = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = match scenario.starts_with("auth/client-credentials") {
        true => AuthKind::ClientCredentials,
        false => AuthKind::Browser,
    };
    let mut auth = AuthSpec {
        client_id: given("client_id"),
        client_secret: given("client_secret"),
        issuer: given("issuer"),
        client_metadata: Some(CLIENT_METADATA.to_owned()),
        ..AuthSpec::new(kind)
    };
    if let Some(pem) = given("private_key_pem") {
        std::fs::write(key, pem).map_err(|error| error.to_string())?;
        auth.private_key = Some(key.to_owned());
    }
    Ok(auth)
}

/// Opens the address and follows one redirect.
fn browse(prompt: &Prompt) {
    let Prompt::Browser { url } = prompt else { return };
    let url = url.clone();
    std::thread::spawn(move || {
        let page = get(&url).unwrap_or_default();
        let to = page.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
        });
        to.and_then(|to| get(&to))
    });
}

fn get(url: &str) -> Option<String> {
    let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(host).ok()?;
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
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

//! A server for the official conformance suite: the demo server with the tools, resources and prompts
//! that the suite (`@modelcontextprotocol/conformance`) calls by fixed names to test content blocks, log
//! messages, progress, requests to the client and subscriptions. The live conformance test starts it.
//!
//! Usage: `conformance_server [ADDRESS]`. It serves streamable HTTP and prints its URL; the default is a
//! free port of 127.0.0.1.

mod library;
mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use karat_mcp::serve::{Context, HttpServer, Offer, ProtocolError, Respond};
use karat_server::demo::{self, Demo};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use rounds::Rounds;

/// The pause between two messages of a tool that reports its progress.
const STEP: Duration = Duration::from_millis(50);
/// The number of changes that a slow listener may be behind.
const MAX_BEHIND: usize = 16;
const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;
const MISSING_CAPABILITY: i64 = -32021;
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// From the least to the most severe.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
/// Eight samples of silence.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned()).parse()?;
    let at = BTreeMap::from([("/mcp".to_owned(), offer())]);
    let server = HttpServer::bind(address, at, Conformance::default()).await?;
    #[expect(clippy::print_stdout, reason = "the test that starts it reads the URL")]
    {
        println!("http://{}/mcp", server.address());
    }
    server.run_until(tokio::signal::ctrl_c()).await;
    Ok(())
}

/// A result of one text.
fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A tool error.
fn failed(why: &str) -> Value {
    json!({"content": [{"type": "text", "text": why}], "isError": true})
}

/// The tools of the demo and those that the suite calls.
fn offer() -> Offer {
    let mut offer = demo::offer();
    offer.tools.extend(PLAIN.iter().map(|(name, about)| tool(name, about, &json!({}))));
    offer.tools.extend(rounds::TOOLS.iter().map(|(name, about)| tool(name, about, &json!({}))));
    let text = |about: &str| json!({"type": "string", "description": about});
    offer.tools.push(tool(
        "test_sampling",
        "Asks the client's model.",
        &json!({"prompt": text("What the model is asked")}),
    ));
    offer.tools.push(tool(
        "test_elicitation",
        "Asks the client's user for a name and an address.",
        &json!({"message": text("What the user is told")}),
    ));
    offer.tools.push(json_schema());
    offer
}

const PLAIN: &[(&str, &str)] = &[
    ("test_simple_text", "Answers with one text."),
    ("test_image_content", "Answers with an image."),
    ("test_audio_content", "Answers with a sound."),
    ("test_embedded_resource", "Answers with a resource."),
    ("test_multiple_content_types", "Answers with a text, an image and a resource."),
    ("test_error_handling", "Fails."),
    ("test_tool_with_logging", "Logs three messages while it works."),
    ("test_logging_tool", "Logs one message, if the client wants any."),
    ("test_tool_with_progress", "Says three times how far it is."),
    ("test_elicitation_sep1034_defaults", "Asks the user with a form that has defaults."),
    ("test_elicitation_sep1330_enums", "Asks the user with a form of choices."),
    ("test_missing_capability", "Needs a client with a model."),
    ("test_trigger_tool_change", "Says that the list of tools has changed."),
    ("test_trigger_prompt_change", "Says that the list of prompts has changed."),
];

fn tool(name: &str, description: &str, properties: &Value) -> Value {
    let required: Vec<&String> =
        properties.as_object().map(|fields| fields.keys().collect()).unwrap_or_default();
    let required = json!(required);
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {"readOnlyHint": true},
    })
}

/// A schema with uncommon keywords of JSON Schema 2020-12, which must arrive unchanged.
fn json_schema() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "name": "json_schema_2020_12_tool",
        "description": "Takes a name with a way to reach it, described by uncommon keywords.",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": text(), "city": text()},
            }},
            "properties": {
                "name": text(),
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": text(),
                "email": text(),
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {
                "properties": {"contactMethod": {"const": "phone"}},
                "required": ["contactMethod"],
            },
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true},
    })
}

/// A change that a client can listen to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Tools,
    Prompts,
}

impl Change {
    fn wanted(self) -> &'static str {
        match self {
            Change::Tools => "toolsListChanged",
            Change::Prompts => "promptsListChanged",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Change::Tools => "notifications/tools/list_changed",
            Change::Prompts => "notifications/prompts/list_changed",
        }
    }
}

/// The state behind the tools.
struct Conformance {
    demo: Demo,
    rounds: Rounds,
    changes: broadcast::Sender<Change>,
    subscribed: Mutex<BTreeSet<String>>,
    log_level: Mutex<usize>,
}

impl Default for Conformance {
    fn default() -> Self {
        Conformance {
            demo: Demo::default(),
            rounds: Rounds::default(),
            changes: broadcast::channel(MAX_BEHIND).0,
            subscribed: Mutex::default(),
            log_level: Mutex::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Respond for Conformance {
    async fn call(
        &self,
        context: &Context,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, ProtocolError> {
        if rounds::TOOLS.iter().any(|(name, _)| *name == tool) {
            return self.rounds.call(context, tool);
        }
        match tool {
            "test_sampling" => sampling(context, arguments).await,
            "test_elicitation" => elicitation(context, arguments).await,
            "test_elicitation_sep1034_defaults" => asked(context, &defaults_form()).await,
            "test_elicitation_sep1330_enums" => asked(context, &choices_form()).await,
            "test_tool_with_logging" => {
                for message in ["started", "processing data", "completed"] {
                    self.log(context, message);
                    tokio::time::sleep(STEP).await;
                }
                Ok(said("Logged three messages."))
            }
            "test_logging_tool" => {
                self.log(context, "called");
                Ok(said("Logged one message, if it was wanted."))
            }
            "test_tool_with_progress" => {
                for step in [0.0, 50.0, 100.0] {
                    context.progress(step, Some(100.0));
                    tokio::time::sleep(STEP).await;
                }
                Ok(said("Said three times how far it is."))
            }
            "test_missing_capability" => {
                needs(context, "sampling")?;
                Ok(said("The client has a model."))
            }
            "test_trigger_tool_change" => Ok(self.changed(Change::Tools)),
            "test_trigger_prompt_change" => Ok(self.changed(Change::Prompts)),
            "json_schema_2020_12_tool" => Ok(said("Taken.")),
            other => match plain(other) {
                Some(result) => Ok(result),
                None => self.demo.call(context, other, arguments).await,
            },
        }
    }

    async fn request(
        &self,
        context: &Context,
        method: &str,
        params: &Value,
    ) -> Result<Value, ProtocolError> {
        if let Some(result) = library::answer(context, method, params)? {
            return Ok(result);
        }
        if method == "prompts/get" {
            return self.rounds.prompt(context, params);
        }
        match (method, context.is_stateless()) {
            ("subscriptions/listen", true) => self.listen(context, params).await,
            ("logging/setLevel", false) => {
                let level = params.get("level").and_then(Value::as_str).unwrap_or_default();
                let Some(found) = LEVELS.iter().position(|known| *known == level) else {
                    return Err(ProtocolError::new(INVALID_PARAMS, "Unknown log level"));
                };
                *lock(&self.log_level) = found;
                Ok(json!({}))
            }
            ("resources/subscribe", false) => {
                lock(&self.subscribed).insert(library::uri(params)?.to_owned());
                Ok(json!({}))
            }
            ("resources/unsubscribe", false) => {
                lock(&self.subscribed).remove(library::uri(params)?);
                Ok(json!({}))
            }
            _ => Err(ProtocolError::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        }
    }

    fn capabilities(&self) -> Value {
        json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true},
            "completions": {},
            "logging": {},
        })
    }
}

impl Conformance {
    /// Without a handshake, a client gets messages only if its request asks for them.
    fn log(&self, context: &Context, message: &str) {
        let least = if context.is_stateless() {
            let wanted = context.meta(LOG_LEVEL).and_then(Value::as_str);
            wanted.and_then(|wanted| LEVELS.iter().position(|known| *known == wanted))
        } else {
            Some(*lock(&self.log_level))
        };
        let info = LEVELS.iter().position(|known| *known == "info");
        if least.is_some() && least <= info {
            let params = json!({"level": "info", "logger": "karat-demo", "data": message});
            context.notify("notifications/message", &params);
        }
    }

    fn changed(&self, change: Change) -> Value {
        // It is not an error if no client listens.
        let _ = self.changes.send(change);
        said("All listening clients were notified.")
    }

    /// Acknowledges the subscription, then reports changes until the client leaves.
    async fn listen(&self, context: &Context, params: &Value) -> Result<Value, ProtocolError> {
        let mut changes = self.changes.subscribe();
        let wants = |change: Change| {
            params.pointer(&format!("/notifications/{}", change.wanted())) == Some(&json!(true))
        };
        let kept: serde_json::Map<String, Value> = [Change::Tools, Change::Prompts]
            .into_iter()
            .filter(|change| wants(*change))
            .map(|change| (change.wanted().to_owned(), json!(true)))
            .collect();
        let meta = json!({SUBSCRIPTION: context.request_id()});
        context.notify(
            "notifications/subscriptions/acknowledged",
            &json!({"_meta": meta, "notifications": kept}),
        );
        loop {
            match changes.recv().await {
                Ok(change) if wants(change) => {
                    context.notify(change.method(), &json!({"_meta": meta}));
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return Ok(json!({})),
            }
        }
    }
}

/// The tools that always answer the same.
fn plain(tool: &str) -> Option<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = || json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let resource = |uri: &str, mime: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}});
    let content = match tool {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image()]),
        "test_audio_content" => {
            json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])
        }
        "test_embedded_resource" => json!([resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image(),
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "test_error_handling" => {
            return Some(failed("This tool intentionally returns an error for testing"));
        }
        _ => return None,
    };
    Some(json!({"content": content}))
}

/// Without a handshake, a request declares the capabilities of its client; others must not be used.
fn needs(context: &Context, capability: &str) -> Result<(), ProtocolError> {
    let offered = context.meta(CAPABILITIES).and_then(|all| all.get(capability));
    if !context.is_stateless() || offered.is_some() {
        return Ok(());
    }
    Err(ProtocolError {
        code: MISSING_CAPABILITY,
        message: format!("The client must be capable of {capability}"),
        data: Some(json!({"requiredCapabilities": {capability: {}}})),
    })
}

async fn sampling(context: &Context, arguments: &Value) -> Result<Value, ProtocolError> {
    needs(context, "sampling")?;
    let prompt = arguments.get("prompt").and_then(Value::as_str).unwrap_or_default();
    let content = json!({"type": "text", "text": prompt});
    let params = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100});
    match context.ask("sampling/createMessage", &params).await {
        Ok(answer) => {
            let text = answer.pointer("/content/text").and_then(Value::as_str).unwrap_or("none");
            Ok(said(&format!("LLM response: {text}")))
        }
        Err(error) => Ok(failed(&format!("The client's model does not answer: {error}"))),
    }
}

async fn elicitation(context: &Context, arguments: &Value) -> Result<Value, ProtocolError> {
    let message = arguments.get("message").and_then(Value::as_str).unwrap_or_default();
    let text = |about: &str| json!({"type": "string", "description": about});
    let form = json!({
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {"username": text("User's response"), "email": text("User's email address")},
            "required": ["username", "email"],
        },
    });
    asked(context, &form).await
}

/// The user's answer to a form, as text.
async fn asked(context: &Context, form: &Value) -> Result<Value, ProtocolError> {
    needs(context, "elicitation")?;
    match context.ask("elicitation/create", form).await {
        Ok(answer) => {
            let action = answer.get("action").and_then(Value::as_str).unwrap_or("none");
            let content = answer.get("content").unwrap_or(&Value::Null);
            Ok(said(&format!("Elicitation completed: action={action}, content={content}")))
        }
        Err(error) => Ok(failed(&format!("The client's user does not answer: {error}"))),
    }
}

fn defaults_form() -> Value {
    json!({
        "message": "Please look at the defaults and send them.",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "A name", "default": "John Doe"},
                "age": {"type": "integer", "description": "An age", "default": 30},
                "score": {"type": "number", "description": "A score", "default": 95.5},
                "status": {
                    "type": "string",
                    "description": "A status",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": {"type": "boolean", "description": "A yes or no", "default": true},
            },
            "required": [],
        },
    })
}

fn choices_form() -> Value {
    let titled = |titles: [&str; 3]| -> Value {
        let entry = |(at, title): (usize, &str)| json!({"const": format!("value{}", at + 1), "title": title});
        titles.into_iter().enumerate().map(entry).collect()
    };
    let options = || json!(["option1", "option2", "option3"]);
    json!({
        "message": "Please choose.",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "untitledSingle": {"type": "string", "enum": options()},
                "titledSingle": {
                    "type": "string",
                    "oneOf": titled(["First Option", "Second Option", "Third Option"]),
                },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options()}},
                "titledMulti": {
                    "type": "array",
                    "items": {"anyOf": titled(["First Choice", "Second Choice", "Third Choice"])},
                },
            },
            "required": [],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_unique_name() {
        let offer = offer();
        let names: BTreeSet<&str> =
            offer.tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names.len(), offer.tools.len());
        assert!(names.contains("add") && names.contains("test_simple_text"));
    }
}

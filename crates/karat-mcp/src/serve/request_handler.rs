//! Answers to requests on any transport.
//!
//! The handler keeps no state between requests: one with metadata has revision 2026-07-28, one without has
//! a revision with a handshake. So one handler serves all clients.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::model::{
    DiscoverResult, ErrorCode, Implementation, InitializeResult, ServerCapabilities,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::context::{ClientRequests, Context, SendMessage};
use super::respond::{Offer, ProtocolError, Responder, ServeError};
use crate::error::CallError;
use crate::limits::Limits;
use crate::reply::Definition;
use crate::revision::Revision;
use crate::wire::{self, Incoming};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// An offer with its implementation.
pub(super) struct RequestHandler {
    implementation: Implementation,
    instructions: Option<String>,
    names: HashSet<String>,
    /// The list of tools as JSON.
    tools: Box<RawValue>,
    capabilities: ServerCapabilities,
    respond: Arc<dyn Responder>,
}

/// A request of a client.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

/// A message of a client.
pub(super) enum Received {
    /// A request.
    Request(Request),
    /// An answer to a request of the server.
    Answer {
        /// The id of the request.
        id: Value,
        /// The result.
        outcome: Result<Value, CallError>,
    },
    /// The cancellation of the request with this id.
    Cancelled(Value),
    /// A notification.
    Notification,
    /// An invalid message, with the answer to it.
    Invalid(Vec<u8>),
}

/// An answer, with its error code, which becomes a status over HTTP.
pub(super) struct Answered {
    pub(super) bytes: Vec<u8>,
    pub(super) code: Option<i64>,
    /// True if the revision of the request has no handshake.
    pub(super) stateless: bool,
}

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: T,
}

#[derive(Serialize)]
struct ToolList<'a> {
    tools: &'a RawValue,
    #[serde(flatten)]
    hints: Option<Hints>,
}

/// The additions of revision 2026-07-28 to a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    result_type: &'static str,
    ttl_ms: u64,
    cache_scope: &'static str,
}

impl RequestHandler {
    pub(super) fn new(
        offer: &Offer,
        respond: Arc<dyn Responder>,
    ) -> Result<RequestHandler, ServeError> {
        let mut names = HashSet::new();
        for (at, tool) in offer.tools.iter().enumerate() {
            let definition = Definition::new(tool.clone()).map_err(|why| ServeError::Tool {
                offer: offer.name.clone(),
                number: at + 1,
                why,
            })?;
            names.insert(definition.name().to_owned());
        }
        let tools = serde_json::value::to_raw_value(&offer.tools).map_err(|error| {
            ServeError::Tool { offer: offer.name.clone(), number: 0, why: error.to_string() }
        })?;
        Ok(RequestHandler {
            implementation: Implementation::new(offer.name.clone(), offer.version.clone()),
            instructions: offer.instructions.clone(),
            names,
            tools,
            capabilities: capabilities(respond.capabilities()),
            respond,
        })
    }

    /// Reads a message; a batch holds several.
    pub(super) fn receive(bytes: &[u8]) -> Vec<Received> {
        wire::read(bytes, &Limits::default()).messages.into_iter().map(received).collect()
    }

    /// Answers a request. Messages before the answer are sent with `send`.
    pub(super) async fn answer(
        &self,
        request: &Request,
        send: &SendMessage,
        client_requests: &Arc<ClientRequests>,
    ) -> Answered {
        let stateless =
            version_of(&request.params).is_some() || request.method == "server/discover";
        let (send, client_requests) = (Arc::clone(send), Arc::clone(client_requests));
        let context = Context::new(send, client_requests, &request.id, &request.params, stateless);
        match self.result(request, &context).await {
            Ok(bytes) => Answered { bytes, code: None, stateless },
            Err(error) => {
                Answered { bytes: failure(&request.id, &error), code: Some(error.code), stateless }
            }
        }
    }

    async fn result(&self, request: &Request, context: &Context) -> Result<Vec<u8>, ProtocolError> {
        let Request { id, method, params } = request;
        let stateless = is_stateless(params)?;
        match method.as_str() {
            "initialize" if !stateless => Ok(success(id, self.initialize(params))),
            "server/discover" if stateless => Ok(success(id, self.discover())),
            "server/discover" => Err(missing_metadata()),
            "ping" if !stateless => Ok(success(id, json!({}))),
            "tools/list" => self.list(id, params, stateless),
            "tools/call" => self.call(id, params, context).await,
            other => {
                let result = self.respond.request(context, other, params).await?;
                Ok(success(id, completed(result, stateless)))
            }
        }
    }

    fn initialize(&self, params: &Value) -> InitializeResult {
        let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let revision = Revision::of(asked)
            .filter(|revision| revision.has_handshake())
            .unwrap_or(Revision::NEWEST_WITH_HANDSHAKE);
        let mut result = InitializeResult::new(self.capabilities.clone())
            .with_server_info(self.implementation.clone())
            .with_protocol_version(revision.sdk());
        result.instructions.clone_from(&self.instructions);
        result
    }

    fn discover(&self) -> DiscoverResult {
        let supported = Revision::ALL.into_iter().map(Revision::sdk).collect();
        let mut result = DiscoverResult::new(supported, self.capabilities.clone())
            .with_server_info(self.implementation.clone());
        result.instructions.clone_from(&self.instructions);
        result
    }

    fn list(&self, id: &Value, params: &Value, stateless: bool) -> Result<Vec<u8>, ProtocolError> {
        if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
            return Err(invalid("Unknown cursor: all tools are on one page"));
        }
        let hints = stateless.then_some(Hints {
            result_type: "complete",
            ttl_ms: 0,
            cache_scope: "private",
        });
        let present = self.respond.tools().map(|tools| serde_json::value::to_raw_value(&tools));
        let present = present.transpose().map_err(|error| invalid(error.to_string()))?;
        let tools = present.as_deref().unwrap_or(&self.tools);
        Ok(success(id, ToolList { tools, hints }))
    }

    async fn call(
        &self,
        id: &Value,
        params: &Value,
        context: &Context,
    ) -> Result<Vec<u8>, ProtocolError> {
        let Some(name) = params.get("name").and_then(Value::as_str) else {
            return Err(invalid("The call has no tool name"));
        };
        if !self.names.contains(name) {
            return Err(invalid(format!("Unknown tool: {name}")));
        }
        let none = Value::Object(Map::new());
        let arguments = match params.get("arguments") {
            None | Some(Value::Null) => &none,
            Some(arguments) if arguments.is_object() => arguments,
            Some(_) => return Err(invalid("The arguments of the call are not an object")),
        };
        let result = self.respond.call(context, name, arguments).await?;
        Ok(success(id, completed(result, context.is_stateless())))
    }
}

/// The result, marked as complete in revisions without a handshake.
fn completed(mut result: Value, stateless: bool) -> Value {
    if stateless && let Some(fields) = result.as_object_mut() {
        fields.entry("resultType").or_insert_with(|| json!("complete"));
    }
    result
}

fn received(message: Result<Incoming, Box<wire::Fault>>) -> Received {
    match message {
        Ok(Incoming::Request { id, .. }) if !(id.is_string() || id.is_i64() || id.is_u64()) => {
            let error = ProtocolError::new(
                code(ErrorCode::INVALID_REQUEST),
                "The id of a request must be a string or an integer",
            );
            Received::Invalid(failure(&Value::Null, &error))
        }
        Ok(Incoming::Request { id, method, params }) => {
            Received::Request(Request { id, method, params })
        }
        Ok(Incoming::Notification { method, mut params }) => {
            match params.get_mut("requestId").map(Value::take) {
                Some(id) if method == "notifications/cancelled" => Received::Cancelled(id),
                _ => Received::Notification,
            }
        }
        Ok(Incoming::Answer { id, outcome }) => Received::Answer { id, outcome },
        Err(fault) => {
            let number = match fault.kind {
                wire::FaultKind::NotJsonRpc => ErrorCode::INVALID_REQUEST,
                _ => ErrorCode::PARSE_ERROR,
            };
            let error = ProtocolError::new(code(number), fault.error.to_string());
            Received::Invalid(failure(&fault.id.unwrap_or(Value::Null), &error))
        }
    }
}

/// Tools and the other capabilities of the implementation.
fn capabilities(more: Value) -> ServerCapabilities {
    let tools = json!({"tools": {}});
    let mut all = tools.clone();
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
        all.extend(more);
    }
    let read = |from: Value| serde_json::from_value::<ServerCapabilities>(from);
    read(all).or_else(|_| read(tools)).unwrap_or_default()
}

fn code(code: ErrorCode) -> i64 {
    i64::from(code.0)
}

fn invalid(message: impl Into<String>) -> ProtocolError {
    ProtocolError::new(code(ErrorCode::INVALID_PARAMS), message)
}

fn missing_metadata() -> ProtocolError {
    invalid(format!("The request needs {META_VERSION} and {META_CAPABILITIES} in its _meta"))
}

/// The revision that a request names.
pub(super) fn version_of(params: &Value) -> Option<&str> {
    params.get("_meta")?.get(META_VERSION)?.as_str()
}

fn is_stateless(params: &Value) -> Result<bool, ProtocolError> {
    let Some(version) = version_of(params) else { return Ok(false) };
    if Revision::of(version).is_none() {
        let supported: Vec<&str> = Revision::ALL.into_iter().map(Revision::name).collect();
        return Err(ProtocolError {
            code: code(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION),
            message: "Unsupported protocol version".to_owned(),
            data: Some(json!({"requested": version, "supported": supported})),
        });
    }
    let capabilities = params.get("_meta").and_then(|meta| meta.get(META_CAPABILITIES));
    if !capabilities.is_some_and(Value::is_object) {
        return Err(missing_metadata());
    }
    Ok(true)
}

fn success<T: Serialize>(id: &Value, result: T) -> Vec<u8> {
    wire::bytes(&Success { jsonrpc: "2.0", id, result })
}

pub(super) fn failure(id: &Value, error: &ProtocolError) -> Vec<u8> {
    let mut body = json!({"code": error.code, "message": error.message});
    if let (Some(data), Some(fields)) = (&error.data, body.as_object_mut()) {
        fields.insert("data".to_owned(), data.clone());
    }
    wire::bytes(&json!({"jsonrpc": "2.0", "id": id, "error": body}))
}

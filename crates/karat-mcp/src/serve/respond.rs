//! The types that a server is made of: its definition, its implementation and its errors.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use super::context::Context;

/// The name and the tools of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// The name of the server.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Instructions for its use.
    pub instructions: Option<String>,
    /// The definitions of its tools, served exactly.
    pub tools: Vec<Value>,
}

/// A protocol error, as opposed to a tool that reports a failure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ProtocolError {
    /// The code, such as -32602.
    pub code: i64,
    /// The message.
    pub message: String,
    /// Data of the error.
    pub data: Option<Value>,
}

impl ProtocolError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> ProtocolError {
        ProtocolError { code, message: message.into(), data: None }
    }
}

/// The implementation of the tools of an [`Offer`].
pub trait Respond: Send + Sync + 'static {
    /// Answers a call of a tool of the offer; `context` sends notifications and requests to the client. The
    /// future is dropped if the client cancels.
    fn call(
        &self,
        context: &Context,
        tool: &str,
        arguments: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send;

    /// Answers a request that is not about tools: prompts, resources, completion.
    fn request(
        &self,
        _context: &Context,
        method: &str,
        _params: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send {
        std::future::ready(Err(ProtocolError::new(-32601, format!("Method not found: {method}"))))
    }

    /// The definitions as they are listed at this moment; none for those of the offer. Their names must be
    /// names of the offer.
    fn tools(&self) -> Option<Vec<Value>> {
        None
    }

    /// The capabilities in addition to tools, as an object: `{"prompts": {}, "logging": {}}`.
    fn capabilities(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }
}

impl<R: Respond> Respond for Arc<R> {
    fn call(
        &self,
        context: &Context,
        tool: &str,
        arguments: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send {
        (**self).call(context, tool, arguments)
    }

    fn request(
        &self,
        context: &Context,
        method: &str,
        params: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send {
        (**self).request(context, method, params)
    }

    fn tools(&self) -> Option<Vec<Value>> {
        (**self).tools()
    }

    fn capabilities(&self) -> Value {
        (**self).capabilities()
    }
}

/// An answer under way.
pub(super) type Responding<'a> =
    Pin<Box<dyn Future<Output = Result<Value, ProtocolError>> + Send + 'a>>;

/// [`Respond`] as an object, so that the server is compiled once and not for every implementation.
pub(super) trait Responder: Send + Sync {
    fn call<'a>(
        &'a self,
        context: &'a Context,
        tool: &'a str,
        arguments: &'a Value,
    ) -> Responding<'a>;

    fn request<'a>(
        &'a self,
        context: &'a Context,
        method: &'a str,
        params: &'a Value,
    ) -> Responding<'a>;

    fn tools(&self) -> Option<Vec<Value>>;

    fn capabilities(&self) -> Value;
}

impl<R: Respond> Responder for R {
    fn call<'a>(
        &'a self,
        context: &'a Context,
        tool: &'a str,
        arguments: &'a Value,
    ) -> Responding<'a> {
        Box::pin(Respond::call(self, context, tool, arguments))
    }

    fn request<'a>(
        &'a self,
        context: &'a Context,
        method: &'a str,
        params: &'a Value,
    ) -> Responding<'a> {
        Box::pin(Respond::request(self, context, method, params))
    }

    fn tools(&self) -> Option<Vec<Value>> {
        Respond::tools(self)
    }

    fn capabilities(&self) -> Value {
        Respond::capabilities(self)
    }
}

/// A server that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: std::net::SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The path of an offer does not start with `/`.
    #[error("the path {path:?} must start with `/`")]
    Path {
        /// The path.
        path: String,
    },
    /// A definition cannot be served.
    #[error("tool {number} of {offer}: {why}")]
    Tool {
        /// The name of the offer.
        offer: String,
        /// The position of the tool, counted from 1.
        number: usize,
        /// The mistake.
        why: String,
    },
}

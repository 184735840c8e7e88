//! Being an MCP server: exact definitions served, calls handed on.
//!
//! An [`Offer`] is served as it was given: fields that nobody knows included, equal as JSON values.
//! All revisions are spoken at once, with a handshake and without, because each request says which
//! one it means. What a tool does is the business of whoever implements [`Respond`].

mod context;
mod desk;
mod http;
mod lines;

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::context::Context;
pub use self::http::HttpServer;

use self::desk::Desk;
pub(crate) use self::lines::next_line;

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// The name of the server.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it wants to be used.
    pub instructions: Option<String>,
    /// The definitions of its tools, served exactly.
    pub tools: Vec<Value>,
}

/// An error of the protocol, as opposed to a tool that says that it failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ProtocolError {
    /// The code, such as -32602.
    pub code: i64,
    /// What is wrong.
    pub message: String,
    /// More about it.
    pub data: Option<Value>,
}

impl ProtocolError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> ProtocolError {
        ProtocolError { code, message: message.into(), data: None }
    }
}

/// Does what the tools of an offer promise.
pub trait Respond: Send + Sync + 'static {
    /// Answers a call of a tool that was offered. Dropped when the client cancels.
    fn call(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send;

    /// As [`Respond::call`], with the way back to the client, for tools that tell or ask it something.
    fn call_with(
        &self,
        _context: &Context,
        tool: &str,
        arguments: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send {
        self.call(tool, arguments)
    }

    /// Answers a request that has nothing to do with tools: prompts, resources, completion.
    fn request(
        &self,
        _context: &Context,
        method: &str,
        _params: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send {
        std::future::ready(Err(ProtocolError::new(-32601, format!("Method not found: {method}"))))
    }

    /// The capabilities beside tools, as an object: `{"prompts": {}, "logging": {}}`.
    fn capabilities(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }
}

impl<R: Respond> Respond for Arc<R> {
    fn call(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send {
        (**self).call(tool, arguments)
    }

    fn call_with(
        &self,
        context: &Context,
        tool: &str,
        arguments: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send {
        (**self).call_with(context, tool, arguments)
    }

    fn request(
        &self,
        context: &Context,
        method: &str,
        params: &Value,
    ) -> impl Future<Output = Result<Value, ProtocolError>> + Send {
        (**self).request(context, method, params)
    }

    fn capabilities(&self) -> Value {
        (**self).capabilities()
    }
}

/// Why serving ended or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// A path under which an offer should be served is none.
    #[error("{path:?} is no path; it must start with `/`")]
    Path {
        /// The path.
        path: String,
    },
    /// A definition cannot be served.
    #[error("tool {number} of {offer}: {why}")]
    Tool {
        /// The name of the offer.
        offer: String,
        /// Which of its tools, counted from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// Serves over the input and output of this process until the input ends.
///
/// # Errors
/// When the offer cannot be served.
pub async fn over_stdio(offer: Offer, respond: impl Respond) -> Result<(), ServeError> {
    over(offer, respond, tokio::io::stdin(), tokio::io::stdout()).await
}

/// Serves over a pair of streams until the reading one ends.
///
/// # Errors
/// When the offer cannot be served.
pub async fn over<R, W>(
    offer: Offer,
    respond: impl Respond,
    read: R,
    write: W,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let desk = Arc::new(Desk::new(&offer, Arc::new(respond))?);
    lines::serve(desk, read, write).await;
    Ok(())
}

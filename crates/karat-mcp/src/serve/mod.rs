//! MCP servers: exact tool definitions, and a trait for their implementation.
//!
//! An [`Offer`] is served exactly as given, unknown fields included. All revisions are served at once, with
//! and without a handshake, because each request shows its revision. [`Respond`] implements the tools.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::collections::BTreeMap;
//!
//! use karat_mcp::serve::{Context, HttpServer, Offer, ProtocolError, Respond};
//! use karat_mcp::{Options, ServerSpec, Session};
//! use serde_json::{Value, json};
//!
//! struct Greeter;
//!
//! impl Respond for Greeter {
//!     async fn call(
//!         &self,
//!         _: &Context,
//!         _tool: &str,
//!         arguments: &Value,
//!     ) -> Result<Value, ProtocolError> {
//!         let text = format!("Hello, {}!", arguments["name"].as_str().unwrap_or("stranger"));
//!         Ok(json!({"content": [{"type": "text", "text": text}]}))
//!     }
//! }
//!
//! let offer = Offer {
//!     name: "greeter".to_owned(),
//!     version: "1.0.0".to_owned(),
//!     instructions: None,
//!     tools: vec![json!({"name": "greet", "inputSchema": {"type": "object"}})],
//! };
//! let offers = BTreeMap::from([("/mcp".to_owned(), offer)]);
//! let server = HttpServer::bind("127.0.0.1:0".parse()?, offers, Greeter).await?;
//! let spec = ServerSpec::from_url(format!("http://{}/mcp", server.address()));
//! tokio::spawn(server.run_until(std::future::pending::<()>()));
//!
//! let session = Session::start(&spec, &Options::default()).await?;
//! let Value::Object(arguments) = json!({"name": "Ada"}) else { unreachable!() };
//! assert_eq!(session.call("greet", &arguments).await?.texts(), ["Hello, Ada!"]);
//! # Ok(()) }
//! ```

mod context;
mod http;
mod lines;
mod request_handler;
mod respond;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

pub use self::context::Context;
pub use self::http::HttpServer;
pub use self::respond::{Offer, ProtocolError, Respond, ServeError};

pub(crate) use self::lines::next_line;

/// Serves over stdin and stdout of this process until stdin ends.
///
/// ```no_run
/// use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
/// use serde_json::{Value, json};
///
/// struct Clock;
///
/// impl Respond for Clock {
///     async fn call(
///         &self,
///         _: &Context,
///         _tool: &str,
///         _arguments: &Value,
///     ) -> Result<Value, ProtocolError> {
///         let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
///         let seconds = time.map_or(0, |time| time.as_secs());
///         Ok(json!({"content": [{"type": "text", "text": seconds.to_string()}]}))
///     }
/// }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), serve::ServeError> {
///     let tools = vec![json!({"name": "now", "inputSchema": {"type": "object"}})];
///     let offer = Offer { name: "clock".to_owned(), tools, ..Offer::default() };
///     serve::over_stdio(offer, Clock).await
/// }
/// ```
///
/// # Errors
/// If a definition of the offer is invalid.
pub async fn over_stdio(offer: Offer, respond: impl Respond) -> Result<(), ServeError> {
    let respond = Arc::new(respond);
    lines::serve(&offer, respond, Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout())).await
}

/// Serves over a pair of streams until `read` ends.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
/// use karat_mcp::{Options, Session};
/// use serde_json::{Value, json};
///
/// struct Empty;
///
/// impl Respond for Empty {
///     async fn call(
///         &self,
///         _: &Context,
///         _tool: &str,
///         _arguments: &Value,
///     ) -> Result<Value, ProtocolError> {
///         Ok(json!({"content": []}))
///     }
/// }
///
/// let offer = Offer { name: "empty".to_owned(), ..Offer::default() };
/// let (ours, theirs) = tokio::io::duplex(1 << 16);
/// let (read, write) = tokio::io::split(theirs);
/// tokio::spawn(serve::over(offer, Empty, read, write));
/// let (read, write) = tokio::io::split(ours);
/// let session = Session::over(read, write, None, &Options::default()).await?;
/// assert_eq!(session.server().name, "empty");
/// # Ok(()) }
/// ```
///
/// # Errors
/// If a definition of the offer is invalid.
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
    lines::serve(&offer, Arc::new(respond), Box::new(read), Box::new(write)).await
}

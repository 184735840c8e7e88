//! A measuring client for the Model Context Protocol (MCP), and a server that serves exact definitions.
//!
//! A [`ServerSpec`] describes a server, a [`Session`] talks to it and keeps every answer as it was on the
//! wire, and [`serve`] serves tool definitions unchanged. Nothing here judges an answer.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
//! use karat_mcp::{Options, Session};
//! use serde_json::{Value, json};
//!
//! struct Adder;
//!
//! impl Respond for Adder {
//!     async fn call(
//!         &self,
//!         _: &Context,
//!         _tool: &str,
//!         arguments: &Value,
//!     ) -> Result<Value, ProtocolError> {
//!         let sum = arguments["a"].as_i64().unwrap_or(0) + arguments["b"].as_i64().unwrap_or(0);
//!         Ok(json!({"content": [{"type": "text", "text": sum.to_string()}]}))
//!     }
//! }
//!
//! let offer = Offer {
//!     name: "adder".to_owned(),
//!     version: "1.0.0".to_owned(),
//!     instructions: None,
//!     tools: vec![json!({"name": "add", "inputSchema": {"type": "object"}})],
//! };
//! // A server in this process. For one of your own, write
//! // `Session::start(&ServerSpec::from_command(vec!["my-server".to_owned()]), &options)`.
//! let (client, server) = tokio::io::duplex(1 << 16);
//! let (read, write) = tokio::io::split(server);
//! tokio::spawn(serve::over(offer, Adder, read, write));
//! let (read, write) = tokio::io::split(client);
//! let session = Session::over(read, write, None, &Options::default()).await?;
//!
//! let tools = session.tools().await?;
//! assert_eq!(tools[0].name(), "add");
//! let Value::Object(arguments) = json!({"a": 1, "b": 2}) else { unreachable!() };
//! let reply = session.call("add", &arguments).await?;
//! assert_eq!(reply.texts(), ["3"]);
//! assert!(session.protocol_log().warnings().is_empty());
//! session.close().await;
//! # Ok(()) }
//! ```
//!
//! # Why not the client of the SDK
//! Messages are written with the types of the official SDK (`rmcp`), and the tests talk to its client and
//! server. Its service loop is not used: it drops messages that do not parse, forgets unknown fields, caches,
//! and restarts expired sessions silently. That is polite in a client and lost evidence in a measurement. The
//! loop here reads raw JSON, reports each fault, and costs a few microseconds per call.

pub mod auth;
pub mod config;
mod error;
mod event_stream;
mod headers;
mod http;
mod http_client;
mod http_plain;
mod isolate;
mod lenient;
mod limits;
mod outbox;
mod parameter_headers;
mod pending_calls;
mod policy;
mod protocol_log;
pub mod proxy;
mod record;
pub mod replay;
mod reply;
mod revision;
pub mod serve;
mod session;
mod spec;
mod sse;
mod stdio;
mod wire;

pub use karat_io::redact::Redactor;

pub use self::error::{CallError, StartError};
pub use self::headers::ResponseHead;
pub use self::isolate::{Engine, Isolation};
pub use self::limits::Limits;
pub use self::policy::{Elicitation, Policies, Roots, Sampling};
pub use self::protocol_log::{Occurrences, ProtocolLog, Violation, ViolationSink};
pub use self::record::Recorder;
pub use self::reply::{Definition, Reply, ServerInfo};
pub use self::revision::Revision;
pub use self::session::{Awaited, CallOptions, Ending, Options, Session, TASKS_EXTENSION};
pub use self::spec::{ServerSpec, TransportKind};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

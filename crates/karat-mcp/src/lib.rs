//! Talking MCP: as a client that measures, and as a server that is measured or indexed.
//!
//! A [`ServerSpec`] says how a server is reached, a [`Session`] talks to it and keeps every answer as
//! it was on the wire, and [`serve`] offers exact tool definitions to others. Nothing here knows what
//! a good answer is: evaluations do.
//!
//! # Why the loop is our own
//! Messages that we compose come from the types of the official SDK (`rmcp`), and its client and
//! server are the peers that the tests talk to. Its service loop is not used. It drops what does not
//! parse, forgets fields that it does not know, caches, and starts expired sessions anew without a
//! word: good manners in a client, lost evidence in a measurement. The loop here reads raw JSON, says
//! of each fault what it was, and costs a few microseconds for a call.

mod board;
mod conduct;
pub mod config;
mod error;
mod event_stream;
mod http;
mod http_plain;
mod isolate;
mod limits;
mod outbox;
mod parameter_headers;
mod policy;
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

pub use self::conduct::{Conduct, Oddity, Seen, Witness};
pub use self::error::{CallError, StartError};
pub use self::isolate::{Engine, Isolation};
pub use self::limits::Limits;
pub use self::policy::{Elicitation, Policies, Roots, Sampling};
pub use self::record::Recorder;
pub use self::reply::{Definition, Reply, ServerInfo};
pub use self::revision::Revision;
pub use self::session::{CallOptions, Ending, Options, Session};
pub use self::spec::{ServerSpec, TransportKind};

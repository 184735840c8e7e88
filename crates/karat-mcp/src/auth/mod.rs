//! Servers behind a login: OAuth 2.1 as the authorization specification of MCP uses it.
//!
//! A server that answers 401, or 403 with `insufficient_scope`, says where tokens for it come from. With an
//! [`AuthSpec`] a session gets one there and repeats its request; without one, its error says what the server
//! asks for. Tokens are shared by all sessions of the process, refreshed when they expire, and kept on disk
//! only by [`login`]. An authorisation server is as little trusted as any other server: each of its answers is
//! bounded in size and time, redirects are not followed, and whatever the specifications forbid ends the login
//! with one message. Every secret is registered with the redactor of the session before it is used.

mod authorizer;
mod browser;
mod challenge;
mod client;
mod device;
mod discovery;
mod failure;
mod fetch;
mod jwt;
mod login;
mod prompt;
mod spec;
mod store;
mod tokens;

pub(crate) use self::authorizer::{Authorizer, authorizer};
pub use self::challenge::Challenge;
pub use self::login::login;
pub use self::prompt::{Prompt, install_prompt};
pub use self::spec::{AuthKind, AuthSpec};
pub use self::store::{Login, StoreError, logins, remove as logout};

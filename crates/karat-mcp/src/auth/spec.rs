//! The login at a server, as people write it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::StartError;

/// The way to get a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthKind {
    /// The client logs in by itself, with a secret or a private key.
    ClientCredentials,
    /// A person logs in with a browser on this machine (authorization code with PKCE).
    Browser,
    /// A person logs in with a browser on any machine (device authorization).
    Device,
    /// A token that the user has.
    Token,
}

impl AuthKind {
    /// The name in configuration files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AuthKind::ClientCredentials => "client-credentials",
            AuthKind::Browser => "browser",
            AuthKind::Device => "device",
            AuthKind::Token => "token",
        }
    }
}

/// The login at a server, as written. Values may hold variables ([`karat_io::interpolate`]).
///
/// ```
/// use karat_mcp::ServerSpec;
/// use karat_mcp::auth::{AuthKind, AuthSpec};
///
/// let auth = AuthSpec {
///     client_id: Some("ci".to_owned()),
///     client_secret: Some("${CI_SECRET}".to_owned()),
///     ..AuthSpec::new(AuthKind::ClientCredentials)
/// };
/// let written = r#"{"kind": "client-credentials", "client_id": "ci", "client_secret": "${CI_SECRET}"}"#;
/// assert_eq!(serde_json::from_str::<AuthSpec>(written)?, auth);
///
/// let spec = ServerSpec { auth: Some(auth), ..ServerSpec::from_url("https://example.com/mcp") };
/// assert!(spec.transport().is_ok());
/// let without_secret = AuthSpec::new(AuthKind::ClientCredentials);
/// let error = ServerSpec { auth: Some(without_secret), ..spec }.transport().unwrap_err();
/// assert!(error.to_string().contains("needs client_id"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthSpec {
    /// The way to get a token.
    pub kind: AuthKind,
    /// The client that the authorisation server knows; registered if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// A file with its private key, in PEM (PKCS#8), instead of a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<PathBuf>,
    /// The address of a client ID metadata document, for authorisation servers that support them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_metadata: Option<String>,
    /// The scopes to ask for; those that the server names if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The only accepted authorisation server; the first that the server names if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The token, for [`AuthKind::Token`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
    /// A refresh token that goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// The port of the loopback redirect; a free one if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_port: Option<u16>,
}

impl AuthSpec {
    /// A login of this kind, without anything else.
    #[must_use]
    pub fn new(kind: AuthKind) -> AuthSpec {
        AuthSpec {
            kind,
            client_id: None,
            client_secret: None,
            private_key: None,
            client_metadata: None,
            scopes: Vec::new(),
            issuer: None,
            access_token: None,
            refresh_token: None,
            redirect_port: None,
        }
    }

    /// Checks that everything is there and fits the kind.
    ///
    /// # Errors
    /// If something is missing or out of place.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let wrong = |why: &str| Err(StartError::Spec { why: format!("auth: {why}") });
        let is_token = self.kind == AuthKind::Token;
        if is_token && self.access_token.is_none() {
            return wrong(
                "kind token needs access_token (--access-token '${VAR}', or - for stdin)",
            );
        }
        if !is_token && (self.access_token.is_some() || self.refresh_token.is_some()) {
            return wrong("access_token and refresh_token are for kind token");
        }
        if self.client_secret.is_some() && self.private_key.is_some() {
            return wrong("a client has either client_secret or private_key, not both");
        }
        let has_key = self.client_secret.is_some() || self.private_key.is_some();
        if has_key && self.client_id.is_none() {
            return wrong("client_secret and private_key need client_id");
        }
        if self.kind == AuthKind::ClientCredentials && !has_key {
            return wrong(
                "kind client-credentials needs client_id, and client_secret or private_key",
            );
        }
        if self.redirect_port.is_some() && self.kind != AuthKind::Browser {
            return wrong("redirect_port is for kind browser");
        }
        if self.scopes.iter().any(|scope| scope.is_empty() || scope.contains([' ', '"', '\\'])) {
            return wrong("a scope is one word without quotation marks; write several as a list");
        }
        Ok(())
    }
}

impl fmt::Debug for AuthSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthSpec").field("kind", &self.kind).finish_non_exhaustive()
    }
}

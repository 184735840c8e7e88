//! The authorization code flow with PKCE (RFC 7636) and a redirect to this machine (RFC 8252).
//!
//! The address is shown and nothing is opened. The callback server listens on 127.0.0.1 for one login, answers
//! only requests with the right `state`, and gives up when it is flooded with wrong ones.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use karat_io::http_server::{self, ServerLimits, is_local, random_token};
use karat_io::redact::LateSecrets;
use karat_io::task;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::discovery::Issuer;
use super::failure::AuthError;
use super::prompt::{Prompt, prompt};
use crate::error::quoted;

/// Time for a person to log in.
const PATIENCE: Duration = Duration::from_secs(300);
/// Callbacks with a wrong state before the login is given up.
const MAX_WRONG: usize = 20;
/// Maximum size of a code.
const MAX_CODE_BYTES: usize = 4 << 10;
/// The path of the redirect.
const PATH: &str = "/callback";

/// The callback server, bound and not yet answering.
pub(super) struct Callback {
    listener: TcpListener,
    pub(super) redirect: String,
}

/// A code, with what belongs to it.
pub(super) struct Granted {
    pub(super) code: String,
    pub(super) verifier: String,
}

/// The parameters of a callback.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parameters {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    description: Option<String>,
    iss: Option<String>,
    repeated: bool,
}

/// The login that the callback server waits for.
struct Awaited {
    state: String,
    done: Mutex<Waiting>,
}

struct Waiting {
    wrong: usize,
    sender: Option<oneshot::Sender<Result<Parameters, AuthError>>>,
}

impl Callback {
    /// Binds a port: the given one, or else the one of the redirect that the client was registered with, or
    /// a free one.
    pub(super) async fn bind(
        port: Option<u16>,
        registered: Option<&str>,
    ) -> Result<Callback, AuthError> {
        let before = registered.and_then(|redirect| Url::parse(redirect).ok()?.port());
        let bound = TcpListener::bind(("127.0.0.1", port.or(before).unwrap_or(0))).await;
        let bound = match (bound, port) {
            (Err(_), None) => TcpListener::bind(("127.0.0.1", 0)).await,
            (bound, _) => bound,
        };
        let failed = |error: std::io::Error| {
            let port = port.map(|port| format!(" port {port}")).unwrap_or_default();
            AuthError::new(format!("cannot listen on 127.0.0.1{port} for the redirect: {error}"))
        };
        let listener = bound.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Callback { listener, redirect: format!("http://{address}{PATH}") })
    }

    /// Shows the address and waits for the code.
    pub(super) async fn authorize(
        self,
        issuer: &Issuer,
        client_id: &str,
        scopes: &[String],
        resource: &str,
        late: &LateSecrets,
    ) -> Result<Granted, AuthError> {
        let random = || random_token().map_err(|error| AuthError::new(error.to_string()));
        let endpoint = authorization_endpoint(issuer)?;
        let state = random()?;
        let verifier = format!("{}{}", random()?, random()?);
        late.add(&verifier);
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let mut url = endpoint.clone();
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("response_type", "code");
            query.append_pair("client_id", client_id);
            query.append_pair("redirect_uri", &self.redirect);
            query.append_pair("state", &state);
            query.append_pair("code_challenge", &challenge);
            query.append_pair("code_challenge_method", "S256");
            query.append_pair("resource", resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
        }
        let (sender, receiver) = oneshot::channel();
        let done = Mutex::new(Waiting { wrong: 0, sender: Some(sender) });
        let awaited = Arc::new(Awaited { state, done });
        let router = Router::new().route(PATH, get(answer)).with_state(awaited);
        let (stop, stopped) = oneshot::channel::<()>();
        let limits = ServerLimits {
            connections: 16,
            request: Duration::from_secs(5),
            body_bytes: 1 << 10,
            shutdown: Duration::from_secs(1),
            ..ServerLimits::default()
        };
        let serving = task::spawn(http_server::serve(self.listener, router, limits, stopped));
        prompt(&Prompt::Browser { url: url.into() })?;
        let received = tokio::time::timeout(PATIENCE, receiver).await;
        drop(stop);
        let parameters = match received {
            Ok(Ok(parameters)) => parameters?,
            Ok(Err(_)) => return Err(AuthError::new("the login was interrupted")),
            Err(_) => {
                let minutes = PATIENCE.as_secs() / 60;
                let why = format!("no login in the browser within {minutes} minutes");
                return Err(AuthError::new(why));
            }
        };
        // The page that says so must reach the browser.
        let _ = tokio::time::timeout(Duration::from_secs(2), serving).await;
        let code = parameters.checked(issuer)?;
        late.add(&code);
        Ok(Granted { code, verifier })
    }
}

/// The address for people. Without PKCE a stolen code is worth a token, so such servers are refused.
fn authorization_endpoint(issuer: &Issuer) -> Result<&Url, AuthError> {
    let named = quoted(&issuer.issuer);
    let endpoint = issuer.authorization_endpoint.as_ref().ok_or_else(|| {
        AuthError::new(format!("{named} has no authorization endpoint for a browser"))
    })?;
    match issuer.has_s256 {
        true => Ok(endpoint),
        false => Err(AuthError::new(format!(
            "{named} does not announce PKCE with S256 (code_challenge_methods_supported), which a browser \
             login requires"
        ))),
    }
}

impl Parameters {
    fn read(query: &str) -> Parameters {
        let mut found = Parameters::default();
        let Ok(mut url) = Url::parse("http://callback/") else { return found };
        url.set_query(Some(query));
        for (name, value) in url.query_pairs() {
            let slot = match name.as_ref() {
                "state" => &mut found.state,
                "code" => &mut found.code,
                "error" => &mut found.error,
                "error_description" => &mut found.description,
                "iss" => &mut found.iss,
                _ => continue,
            };
            found.repeated |= slot.is_some();
            *slot = Some(value.into_owned());
        }
        found
    }

    /// The code, if the answer is of the issuer that was asked (RFC 9207). Nothing of an answer of another
    /// one is shown.
    fn checked(self, issuer: &Issuer) -> Result<String, AuthError> {
        let named = quoted(&issuer.issuer);
        if self.repeated {
            return Err(AuthError::new("the answer to the login repeats a parameter"));
        }
        match &self.iss {
            Some(iss) if *iss != issuer.issuer => {
                let why =
                    format!("the answer to the login comes from an issuer other than {named}");
                return Err(AuthError::new(why));
            }
            None if issuer.names_issuer => {
                let why = format!(
                    "the answer to the login does not name its issuer, as {named} promises"
                );
                return Err(AuthError::new(why));
            }
            _ => {}
        }
        if let Some(error) = &self.error {
            let described = match &self.description {
                Some(text) => format!(" ({})", quoted(text)),
                None => String::new(),
            };
            return Err(AuthError::new(format!(
                "{named} refuses the login: {}{described}",
                quoted(error)
            )));
        }
        let code = self.code.filter(|code| (1..=MAX_CODE_BYTES).contains(&code.len()));
        code.ok_or_else(|| {
            AuthError::new("the answer to the login has neither a code nor an error")
        })
    }
}

async fn answer(
    State(awaited): State<Arc<Awaited>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> (StatusCode, &'static str) {
    let parameters = Parameters::read(query.as_deref().unwrap_or_default());
    let is_right =
        is_local(&headers) && parameters.state.as_deref() == Some(awaited.state.as_str());
    let mut done = awaited.done.lock().unwrap_or_else(PoisonError::into_inner);
    if is_right {
        if let Some(sender) = done.sender.take() {
            let _ = sender.send(Ok(parameters));
        }
        return (StatusCode::OK, "You can close this page and go back to Karat.\n");
    }
    done.wrong += 1;
    if done.wrong >= MAX_WRONG
        && let Some(sender) = done.sender.take()
    {
        let why =
            format!("{MAX_WRONG} callbacks had a wrong state: another program answers the login");
        let _ = sender.send(Err(AuthError::new(why)));
    }
    (StatusCode::BAD_REQUEST, "Not the answer to the login that Karat expects.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(names_issuer: bool) -> Issuer {
        let url = |path: &str| Url::parse(&format!("https://login.example/{path}")).unwrap();
        Issuer {
            issuer: "https://login.example".to_owned(),
            token_endpoint: url("token"),
            authorization_endpoint: Some(url("authorize")),
            device_endpoint: None,
            registration_endpoint: None,
            methods: None,
            has_s256: true,
            has_metadata_documents: false,
            names_issuer,
            scopes: Vec::new(),
        }
    }

    #[test]
    fn answers_of_another_issuer_are_refused_without_being_shown() {
        let right = "code=c&iss=https%3A%2F%2Flogin.example";
        for (query, names_issuer, ends) in [
            (right, true, Ok("c")),
            (right, false, Ok("c")),
            ("code=c", false, Ok("c")),
            ("code=c", true, Err("does not name its issuer")),
            ("code=c&iss=https%3A%2F%2Flogin.example%2F", false, Err("an issuer other than")),
            ("code=c&iss=https://LOGIN.example", true, Err("an issuer other than")),
            ("error=evil&iss=https://evil.example", false, Err("an issuer other than")),
            ("error=access_denied&error_description=no", false, Err("access_denied (no)")),
            ("", false, Err("neither a code nor an error")),
            ("code=", false, Err("neither a code nor an error")),
            ("code=a&code=b", false, Err("repeats a parameter")),
        ] {
            let checked = Parameters::read(query).checked(&issuer(names_issuer));
            match (checked, ends) {
                (Ok(code), Ok(wanted)) => assert_eq!(code, wanted, "{query}"),
                (Err(error), Err(wanted)) => {
                    assert!(error.to_string().contains(wanted), "{query}: {error}");
                    assert!(!error.to_string().contains("evil"), "{error}");
                }
                (found, _) => panic!("{query}: {found:?}"),
            }
        }
    }

    #[test]
    fn servers_without_pkce_are_refused() {
        let without = Issuer { has_s256: false, ..issuer(false) };
        let error = authorization_endpoint(&without).unwrap_err().to_string();
        assert!(error.contains("PKCE"), "{error}");
        assert!(authorization_endpoint(&issuer(false)).is_ok());
    }
}

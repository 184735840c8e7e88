//! The client that the authorisation server knows: given, described by a metadata document, or registered
//! (RFC 7591), and its authentication at the token endpoint.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karat_io::redact::LateSecrets;
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::discovery::Issuer;
use super::failure::AuthError;
use super::fetch::Fetcher;
use super::jwt::{ASSERTION_TYPE, PrivateKey};
use super::spec::{AuthKind, AuthSpec};
use super::tokens::refusal;
use crate::error::quoted;

/// Maximum length of an identifier or a secret that a server issues.
const MAX_ISSUED_BYTES: usize = 4 << 10;

/// Ways to authenticate at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Method {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::ClientSecretBasic => "client_secret_basic",
            Method::ClientSecretPost => "client_secret_post",
            Method::PrivateKeyJwt => "private_key_jwt",
        }
    }

    fn of(name: &str) -> Option<Method> {
        [Method::None, Method::ClientSecretBasic, Method::ClientSecretPost]
            .into_iter()
            .find(|method| method.name() == name)
    }
}

/// A client of one authorisation server.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) method: Method,
    key: Option<Arc<PrivateKey>>,
    /// The redirect that it was registered with.
    pub(super) redirect: Option<String>,
}

impl Client {
    /// A client that was stored.
    pub(super) fn stored(id: String, secret: Option<String>, method: Method) -> Client {
        Client { id, secret, method, key: None, redirect: None }
    }

    /// The client that the spec gives, or that its metadata document describes.
    pub(super) fn given(spec: &AuthSpec, issuer: &Issuer) -> Result<Option<Client>, AuthError> {
        if let Some(id) = &spec.client_id {
            let key = spec.private_key.as_deref().map(PrivateKey::read).transpose()?.map(Arc::new);
            let method = match (&key, &spec.client_secret) {
                (Some(_), _) => Method::PrivateKeyJwt,
                (None, Some(_)) => method_with_secret(issuer)?,
                (None, None) => Method::None,
            };
            let secret = spec.client_secret.clone();
            return Ok(Some(Client { id: id.clone(), secret, method, key, redirect: None }));
        }
        let Some(document) = &spec.client_metadata else { return Ok(None) };
        if !issuer.has_metadata_documents {
            return Ok(None);
        }
        let is_valid =
            Url::parse(document).is_ok_and(|url| url.scheme() == "https" && url.path() != "/");
        if !is_valid {
            return Err(AuthError::new(
                "client_metadata must be an https address with a path, such as https://example.com/client.json",
            ));
        }
        let client = Client::stored(document.clone(), None, Method::None);
        Ok(Some(client))
    }

    /// Registers a client.
    pub(super) async fn register(
        fetcher: &Fetcher,
        issuer: &Issuer,
        kind: AuthKind,
        redirect: Option<&str>,
        late: &LateSecrets,
    ) -> Result<Client, AuthError> {
        let Some(endpoint) = &issuer.registration_endpoint else {
            return Err(AuthError::new(format!(
                "{} does not support client registration; register a client there and pass --client-id",
                quoted(&issuer.issuer)
            )));
        };
        let method = wanted_method(issuer);
        let mut metadata = json!({
            "client_name": "Karat",
            "application_type": "native",
            "token_endpoint_auth_method": method.name(),
        });
        match (kind, redirect) {
            (AuthKind::Device, _) => {
                metadata["grant_types"] =
                    json!(["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]);
                metadata["response_types"] = json!([]);
                metadata["redirect_uris"] = json!([]);
            }
            (_, redirect) => {
                metadata["grant_types"] = json!(["authorization_code", "refresh_token"]);
                metadata["response_types"] = json!(["code"]);
                metadata["redirect_uris"] = json!(redirect.into_iter().collect::<Vec<_>>());
            }
        }
        let answered = fetcher.json(endpoint, &metadata, "registration endpoint").await?;
        let text = |key: &str| answered.body.get(key).and_then(Value::as_str);
        let issued = |text: &str| !text.is_empty() && text.len() <= MAX_ISSUED_BYTES;
        for secret in ["client_secret", "registration_access_token"].into_iter().filter_map(text) {
            if issued(secret) {
                late.add(secret);
            }
        }
        let id = text("client_id").filter(|id| issued(id));
        let Some(id) = id.filter(|_| matches!(answered.status, 200 | 201)) else {
            let why = match refusal(&answered) {
                Some(refusal) => return Err(refusal_of_registration(issuer, &refusal.code)),
                None => format!("HTTP status {} without a client_id", answered.status),
            };
            return Err(refusal_of_registration(issuer, &why));
        };
        let secret = text("client_secret").filter(|secret| issued(secret)).map(str::to_owned);
        let method = match (text("token_endpoint_auth_method").and_then(Method::of), &secret) {
            (Some(method), Some(_)) => method,
            (_, None) => Method::None,
            // It names a method that was not asked for, or none: the one that was asked for.
            (None, Some(_)) => method,
        };
        let redirect = redirect.map(str::to_owned);
        Ok(Client { id: id.to_owned(), secret, method, key: None, redirect })
    }

    /// Adds the fields that identify the client. Returns the value of an `Authorization` header, if any.
    pub(super) fn authenticate(
        &self,
        issuer: &Issuer,
        fields: &mut Vec<(&str, String)>,
        late: &LateSecrets,
    ) -> Result<Option<HeaderValue>, AuthError> {
        let secret = self.secret.as_deref().unwrap_or_default();
        match self.method {
            Method::ClientSecretBasic => {
                let pair = format!("{}:{}", form_encoded(&self.id), form_encoded(secret));
                let encoded = STANDARD.encode(pair);
                late.add(&encoded);
                let header = HeaderValue::from_str(&format!("Basic {encoded}"));
                let mut header = header.map_err(|error| AuthError::new(error.to_string()))?;
                header.set_sensitive(true);
                return Ok(Some(header));
            }
            Method::ClientSecretPost => {
                fields.push(("client_id", self.id.clone()));
                fields.push(("client_secret", secret.to_owned()));
            }
            Method::PrivateKeyJwt => {
                let key =
                    self.key.as_ref().ok_or_else(|| AuthError::new("the client has no key"))?;
                let assertion = key.assertion(&self.id, &issuer.issuer)?;
                late.add(&assertion);
                fields.push(("client_id", self.id.clone()));
                fields.push(("client_assertion_type", ASSERTION_TYPE.to_owned()));
                fields.push(("client_assertion", assertion));
            }
            Method::None => fields.push(("client_id", self.id.clone())),
        }
        Ok(None)
    }
}

fn refusal_of_registration(issuer: &Issuer, why: &str) -> AuthError {
    AuthError::new(format!(
        "{} refuses to register a client: {why}; register one there and pass --client-id",
        quoted(&issuer.issuer)
    ))
}

/// The method for a client with a secret. Without metadata about it, the specification says Basic.
fn method_with_secret(issuer: &Issuer) -> Result<Method, AuthError> {
    let Some(methods) = &issuer.methods else { return Ok(Method::ClientSecretBasic) };
    let supported = |method: &Method| methods.iter().any(|name| name == method.name());
    let known = [Method::ClientSecretBasic, Method::ClientSecretPost];
    known.into_iter().find(supported).ok_or_else(|| {
        AuthError::new(format!(
            "{} does not accept a client secret at its token endpoint, only {}",
            quoted(&issuer.issuer),
            quoted(&methods.join(", "))
        ))
    })
}

/// The method to register with: none where that is possible, since a program on the machine of its user
/// cannot keep a secret.
fn wanted_method(issuer: &Issuer) -> Method {
    let methods = issuer.methods.iter().flatten();
    let mut known = methods.filter_map(|name| Method::of(name));
    let all: Vec<Method> = known.by_ref().collect();
    match all.as_slice() {
        [] => Method::None,
        all if all.contains(&Method::None) => Method::None,
        all => all[0],
    }
}

/// Text as a form writes it, which Basic authentication of clients wants.
fn form_encoded(text: &str) -> String {
    let Ok(mut url) = Url::parse("http://form/") else { return text.to_owned() };
    url.query_pairs_mut().append_key_only(text);
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_authentication_encodes_as_forms_do() {
        assert_eq!(form_encoded("a-b_c.d"), "a-b_c.d");
        assert_eq!(form_encoded("a b:c/d+ä"), "a+b%3Ac%2Fd%2B%C3%A4");
    }
}

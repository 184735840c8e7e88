//! Requests to authorisation servers: bounded, without redirects, and only where a secret may go.

use std::path::PathBuf;
use std::time::Duration;

use karat_io::http::{is_loopback, root_cause};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{RequestBuilder, Url};
use serde_json::Value;

use super::failure::AuthError;
use crate::error::quoted;

/// Time for one request, from connecting to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer.
const MAX_BYTES: usize = 256 << 10;

/// An answer with a JSON body.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// A client for the authorisation servers of one MCP server.
#[derive(Debug)]
pub(super) struct Fetcher {
    ca_file: Option<PathBuf>,
    /// True if the MCP server is on this machine. Only then may an authorisation server be.
    local: bool,
}

impl Fetcher {
    pub(super) fn new(server: &Url, ca_file: Option<PathBuf>) -> Fetcher {
        Fetcher { ca_file, local: is_loopback(server) }
    }

    /// Checks that an address of an authorisation server may be used.
    pub(super) fn address(&self, text: &str, what: &str) -> Result<Url, AuthError> {
        let refused = |why: &str| AuthError::new(format!("the {what} {:?} {why}", quoted(text)));
        let url = Url::parse(text).map_err(|_| refused("is not a URL"))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(refused("has no host"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(refused(
                "has a user name, a password or a fragment, which are not allowed",
            ));
        }
        match (url.scheme(), is_loopback(&url)) {
            (_, true) if !self.local => {
                Err(refused("is on this machine, but the server that names it is not"))
            }
            ("https", _) | ("http", true) => Ok(url),
            ("http", false) => Err(refused("is plain http, which is allowed on this machine only")),
            _ => Err(refused("is neither https nor http")),
        }
    }

    fn client(&self, url: &Url) -> Result<reqwest::Client, AuthError> {
        crate::http_client::client(url, self.ca_file.as_deref())
            .map_err(|error| AuthError::new(error.to_string()))
    }

    /// Gets a document. `None` if there is none.
    pub(super) async fn document(&self, url: &Url, what: &str) -> Result<Option<Value>, AuthError> {
        let request = self.client(url)?.get(url.clone());
        let (status, body) = send(request, url, what).await?;
        match status {
            200 => {}
            400..=499 => return Ok(None),
            other => return Err(AuthError::new(format!("{what} {url}: HTTP status {other}"))),
        }
        match serde_json::from_slice::<Value>(&body) {
            Ok(document) if document.is_object() => Ok(Some(document)),
            _ => Err(AuthError::new(format!("{what} {url}: not a JSON object"))),
        }
    }

    /// Posts a form. `basic` is the value of an `Authorization` header.
    pub(super) async fn form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        basic: Option<HeaderValue>,
        what: &str,
    ) -> Result<Answered, AuthError> {
        let mut encoded =
            Url::parse("http://form/").map_err(|error| AuthError::new(error.to_string()))?;
        encoded.query_pairs_mut().extend_pairs(fields);
        let body = encoded.query().unwrap_or_default().to_owned();
        let mut request = self.client(url)?.post(url.clone());
        request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
        if let Some(basic) = basic {
            request = request.header(AUTHORIZATION, basic);
        }
        answered(request, url, what).await
    }

    /// Posts JSON.
    pub(super) async fn json(
        &self,
        url: &Url,
        body: &Value,
        what: &str,
    ) -> Result<Answered, AuthError> {
        let request = self.client(url)?.post(url.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        answered(request, url, what).await
    }
}

async fn answered(request: RequestBuilder, url: &Url, what: &str) -> Result<Answered, AuthError> {
    let (status, body) = send(request, url, what).await?;
    match serde_json::from_slice::<Value>(&body) {
        Ok(body) if body.is_object() => Ok(Answered { status, body }),
        _ => Err(AuthError::new(format!(
            "{what} {url}: HTTP status {status}, and the answer is not a JSON object"
        ))),
    }
}

async fn send(request: RequestBuilder, url: &Url, what: &str) -> Result<(u16, Vec<u8>), AuthError> {
    let failed = |why: &str| AuthError::new(format!("{what} {url}: {why}"));
    let read = async {
        let request = request.header(ACCEPT, "application/json");
        let mut response =
            request.send().await.map_err(|error| failed(&root_cause(&error.without_url())))?;
        if response.status().is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.map(|to| format!(" to {}", quoted(to))).unwrap_or_default();
            return Err(failed(&format!("it redirects{to}, which is not followed")));
        }
        let mut body = Vec::new();
        let failed_body = |error: reqwest::Error| failed(&root_cause(&error.without_url()));
        while let Some(bytes) = response.chunk().await.map_err(failed_body)? {
            if body.len() + bytes.len() > MAX_BYTES {
                return Err(failed(&format!("the answer has more than {MAX_BYTES} bytes")));
            }
            body.extend_from_slice(&bytes);
        }
        Ok((response.status().as_u16(), body))
    };
    match tokio::time::timeout(TIMEOUT, read).await {
        Ok(result) => result,
        Err(_) => Err(failed(&format!("no complete answer within {} s", TIMEOUT.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_https_or_stay_on_this_machine() {
        let remote = Fetcher::new(&Url::parse("https://mcp.example/mcp").unwrap(), None);
        let local = Fetcher::new(&Url::parse("http://127.0.0.1:1/mcp").unwrap(), None);
        for (address, of_remote, of_local) in [
            ("https://login.example/a", true, true),
            ("http://login.example", false, false),
            ("http://127.0.0.1:9/x", false, true),
            ("http://localhost:9", false, true),
            ("https://[::1]/", false, true),
            ("https://user:pw@login.example", false, false),
            ("https://login.example/#x", false, false),
            ("ftp://login.example", false, false),
            ("javascript:alert(1)", false, false),
            ("login.example", false, false),
        ] {
            assert_eq!(remote.address(address, "issuer").is_ok(), of_remote, "{address}");
            assert_eq!(local.address(address, "issuer").is_ok(), of_local, "{address}");
        }
    }
}

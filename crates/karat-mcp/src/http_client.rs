//! The HTTP client of sessions and logins, and what goes into it.

use std::collections::BTreeMap;
use std::path::Path;

use karat_io::http::{is_loopback, root_cause};
use reqwest::header::HeaderMap;
use reqwest::{Client, Url, redirect};

use crate::error::StartError;

/// The user agent.
pub(crate) const AGENT: &str = concat!("karat/", env!("CARGO_PKG_VERSION"));

/// The HTTP client of a session: no redirects, no time-outs of its own, and no proxy to this machine.
pub(crate) fn client(url: &Url, ca_file: Option<&Path>) -> Result<Client, StartError> {
    let mut builder = karat_io::http::builder()
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true)
        .user_agent(AGENT);
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Without redirects certificates are never used, and loading those of the system takes longer
        // than a whole suite of calls.
        builder = builder.tls_certs_only([]);
    } else if let Some(file) = ca_file {
        let trusted = karat_io::http::certificates(file);
        builder = builder.tls_certs_merge(trusted.map_err(|why| StartError::Spec { why })?);
    }
    builder.build().map_err(|error| StartError::NotStarted { why: root_cause(&error) })
}

pub(crate) fn parse_url(url: &str) -> Result<Url, StartError> {
    Url::parse(url).map_err(|error| StartError::Spec { why: format!("invalid url: {error}") })
}

/// The headers of a spec, ready to be sent.
pub(crate) fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, StartError> {
    karat_io::http::header_map(headers).map_err(|why| StartError::Spec { why })
}

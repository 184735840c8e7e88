//! Names and values of the HTTP headers of MCP, and those of a response that a caller looks at.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// The session that a server opened.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The negotiated revision.
pub(crate) const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of the message, from revision 2026-07-28 on.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The tool, prompt or resource of the message, from revision 2026-07-28 on.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The event after which a stream is resumed.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Text as a header value. Text that a header cannot hold is encoded in Base64, as the protocol demands.
pub(crate) fn header_text(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim_matches([' ', '\t']) == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let value = if plain { text.to_owned() } else { format!("=?base64?{}?=", BASE64.encode(text)) };
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static(""))
}

/// The headers of the response to a call, for a caller that looks at them. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead(Arc<Mutex<Option<HeaderMap>>>);

impl ResponseHead {
    pub(crate) fn set(&self, headers: &HeaderMap) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(headers.clone());
    }

    /// Returns whether there was a response with headers: over stdio there is none.
    pub fn is_known(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The values of a header in their order. What is not text in them becomes replacement characters.
    pub fn values(&self, name: &str) -> Vec<String> {
        let headers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let values = headers.iter().flat_map(|headers| headers.get_all(name));
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_have_several_values() {
        let head = ResponseHead::default();
        assert!(!head.is_known() && head.values("vary").is_empty());
        let mut headers = HeaderMap::new();
        headers.append("Vary", HeaderValue::from_static("accept"));
        headers.append("vary", HeaderValue::from_static("origin"));
        head.clone().set(&headers);
        assert_eq!(head.values("VARY"), ["accept", "origin"]);
        assert!(head.is_known() && head.values("age").is_empty());
    }

    #[test]
    fn text_that_a_header_cannot_hold_is_encoded() {
        assert_eq!(header_text("get_weather"), "get_weather");
        assert_eq!(header_text("wetter für"), "=?base64?d2V0dGVyIGbDvHI=?=");
        assert_eq!(header_text(" x"), "=?base64?IHg=?=");
        assert_eq!(header_text("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}

//! Names and values of the HTTP headers of MCP.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::header::{HeaderName, HeaderValue};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_a_header_cannot_hold_is_encoded() {
        assert_eq!(header_text("get_weather"), "get_weather");
        assert_eq!(header_text("wetter für"), "=?base64?d2V0dGVyIGbDvHI=?=");
        assert_eq!(header_text(" x"), "=?base64?IHg=?=");
        assert_eq!(header_text("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}

//! The `WWW-Authenticate` header (RFC 9110, RFC 6750, RFC 9728), and what it means for a user.

use karat_io::text::clip;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use crate::error::quoted;

/// Bytes of the header that are read.
const MAX_HEADER_BYTES: usize = 8 << 10;
/// Scopes that are read.
const MAX_SCOPES: usize = 100;
/// Columns of scopes in a message.
const SHOWN_SCOPES: usize = 60;

/// The way out of a refusal, for a user without a token.
pub(crate) const REMEDY: &str = "pass --header 'Authorization: Bearer ${TOKEN}', or --auth client-credentials, \
     browser, device or token (docs/auth.md)";

/// A server's demand for a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    pub(crate) status: u16,
    /// The schemes, such as `Bearer`.
    pub(crate) schemes: Vec<String>,
    /// The address of the protected resource metadata.
    pub(crate) resource_metadata: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// The challenge of a response; `None` if it is not about a login.
    pub(crate) fn of(status: u16, headers: &HeaderMap) -> Option<Challenge> {
        let values = headers.get_all(WWW_AUTHENTICATE);
        Challenge::from_values(status, values.iter().map(|value| value.as_bytes()))
    }

    /// The challenge in the values of `WWW-Authenticate`; `None` if the response is not about a login.
    #[must_use]
    pub fn from_values<'v>(
        status: u16,
        values: impl IntoIterator<Item = &'v [u8]>,
    ) -> Option<Challenge> {
        if !matches!(status, 401 | 403) {
            return None;
        }
        let mut challenge = Challenge { status, ..Challenge::default() };
        for value in values {
            let text = String::from_utf8_lossy(value);
            challenge.read(clip_bytes(&text, MAX_HEADER_BYTES));
        }
        let insufficient = challenge.error.as_deref() == Some("insufficient_scope");
        (status == 401 || insufficient).then_some(challenge)
    }

    fn read(&mut self, text: &str) {
        let mut rest = text;
        let mut bearer = false;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            if token.is_empty() {
                let Some(skipped) = rest.chars().next() else { return };
                rest = &rest[skipped.len_utf8()..];
                continue;
            }
            let behind = after.trim_start_matches([' ', '\t']);
            let Some(value) = behind.strip_prefix('=') else {
                bearer = token.eq_ignore_ascii_case("bearer");
                if self.schemes.len() < 8 {
                    self.schemes.push(token.to_owned());
                }
                rest = after;
                continue;
            };
            let (value, behind) = value_of(value.trim_start_matches([' ', '\t']));
            rest = behind;
            if bearer {
                self.set(token, value);
            }
        }
    }

    /// Sets a parameter; of several, the first counts.
    fn set(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => _ = self.resource_metadata.get_or_insert(value),
            "error" => _ = self.error.get_or_insert(value),
            "scope" if self.scopes.is_empty() => {
                self.scopes =
                    value.split_ascii_whitespace().take(MAX_SCOPES).map(str::to_owned).collect();
            }
            _ => {}
        }
    }

    /// The demand in one sentence. `issuer` is the authorisation server, if it is known.
    #[must_use]
    pub fn describe(&self, issuer: Option<&str>, scopes: &[String]) -> String {
        let what = match self.status {
            403 => "the token lacks scopes that the server requires",
            _ => "the server requires a login",
        };
        let scheme = self.schemes.first().map_or("Bearer", String::as_str);
        let issuer = issuer.map(|issuer| format!(" of {}", quoted(issuer))).unwrap_or_default();
        let scopes = if self.scopes.is_empty() { scopes } else { &self.scopes };
        let scopes = match scopes {
            [] => String::new(),
            named => format!(", scopes {}", clip(&quoted(&named.join(" ")), SHOWN_SCOPES)),
        };
        format!("{what} ({} token{issuer}{scopes}); {REMEDY}", quoted(scheme))
    }
}

/// A quoted string or a token, and the rest behind it.
fn value_of(text: &str) -> (String, &str) {
    let Some(inside) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = inside.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (value, &inside[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    (value, "")
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c)
}

fn clip_bytes(text: &str, limit: usize) -> &str {
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= limit).last();
    if text.len() <= limit { text } else { &text[..end.unwrap_or(0)] }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn of(status: u16, values: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
        }
        Challenge::of(status, &headers)
    }

    #[test]
    fn parameters_of_bearer_are_read() {
        let text = "Bearer resource_metadata=\"https://h/.well-known/oauth-protected-resource\", \
                    scope=\"a b:c\",error = \"invalid_token\", error_description=\"a \\\"b\\\", c\"";
        let found = of(401, &[text]).unwrap();
        assert_eq!(
            found.resource_metadata.as_deref(),
            Some("https://h/.well-known/oauth-protected-resource")
        );
        assert_eq!(found.scopes, ["a", "b:c"]);
        assert_eq!(found.error.as_deref(), Some("invalid_token"));
        let several =
            of(401, &["Basic realm=\"x\", Bearer scope=one", "DPoP algs=\"ES256\""]).unwrap();
        assert_eq!(several.schemes, ["Basic", "Bearer", "DPoP"]);
        assert_eq!(several.scopes, ["one"]);
        assert_eq!(of(401, &["Basic dXNlcg==, Bearer scope=x"]).unwrap().scopes, ["x"]);
    }

    #[test]
    fn only_a_demand_for_a_login_is_a_challenge() {
        assert!(of(401, &[]).is_some());
        assert!(of(403, &[]).is_none());
        assert!(of(403, &["Bearer error=\"invalid_request\""]).is_none());
        assert!(of(403, &["Bearer error=\"insufficient_scope\", scope=\"w\""]).is_some());
        assert!(of(404, &["Bearer"]).is_none());
    }

    #[test]
    fn the_demand_says_what_to_do() {
        let found = of(401, &["Bearer scope=\"read write\""]).unwrap();
        let said = found.describe(Some("https://login.example"), &[]);
        assert_eq!(
            said,
            "the server requires a login (Bearer token of https://login.example, scopes read write); pass \
             --header 'Authorization: Bearer ${TOKEN}', or --auth client-credentials, browser, device or \
             token (docs/auth.md)"
        );
    }

    proptest! {
        #[test]
        fn any_header_is_read(text in "[ -~]{0,80}") {
            let found = of(401, &[&text]).unwrap();
            prop_assert!(found.schemes.len() <= 8);
        }
    }
}

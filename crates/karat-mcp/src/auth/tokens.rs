//! The token endpoint: requests, and answers that are checked before they are used (RFC 6749, RFC 6750).

use std::time::Duration;

use karat_io::redact::LateSecrets;
use serde_json::Value;

use super::client::Client;
use super::discovery::Issuer;
use super::failure::AuthError;
use super::fetch::{Answered, Fetcher};
use crate::error::quoted;

/// Maximum size of a token: what servers accept in a header.
const MAX_TOKEN_BYTES: usize = 16 << 10;
/// A longer life than this is cut: ten years.
const MAX_LIFE: u64 = 10 * 366 * 24 * 3600;

/// Tokens that an authorisation server issued.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// The time until they expire, if the server says so.
    pub(super) life: Option<Duration>,
}

/// An error of the token endpoint by its code, such as `invalid_grant`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: String,
    description: String,
}

impl Refusal {
    pub(super) fn into_error(self, issuer: &Issuer) -> AuthError {
        let described = match self.description.as_str() {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        let issuer = quoted(&issuer.issuer);
        AuthError::new(format!("{issuer} refuses to issue a token: {}{described}", self.code))
    }
}

/// Asks for tokens. The outer error ends the login; the inner one is the answer of the server.
pub(super) async fn request(
    fetcher: &Fetcher,
    issuer: &Issuer,
    client: &Client,
    mut fields: Vec<(&str, String)>,
    late: &LateSecrets,
) -> Result<Result<Tokens, Refusal>, AuthError> {
    let basic = client.authenticate(issuer, &mut fields, late)?;
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answered = fetcher.form(&issuer.token_endpoint, &fields, basic, "token endpoint").await?;
    read(&answered, late)
}

/// The code and the description of an error.
pub(super) fn refusal(answered: &Answered) -> Option<Refusal> {
    let text = |key: &str| answered.body.get(key).and_then(Value::as_str);
    let code = text("error")?;
    let description = quoted(text("error_description").unwrap_or_default());
    Some(Refusal { code: quoted(code), description })
}

fn read(answered: &Answered, late: &LateSecrets) -> Result<Result<Tokens, Refusal>, AuthError> {
    let text = |key: &str| answered.body.get(key).and_then(Value::as_str);
    // Hidden before anything of the answer can be shown.
    for secret in ["access_token", "refresh_token", "id_token"].into_iter().filter_map(text) {
        if secret.len() > MAX_TOKEN_BYTES {
            return Err(wrong(&format!("holds a token of more than {MAX_TOKEN_BYTES} bytes")));
        }
        late.add(secret);
    }
    if answered.status != 200 {
        return match refusal(answered) {
            Some(refusal) => Ok(Err(refusal)),
            None => Err(wrong(&format!("has the HTTP status {}", answered.status))),
        };
    }
    let token_type = text("token_type").unwrap_or_default();
    if !token_type.eq_ignore_ascii_case("bearer") {
        return Err(wrong(&format!("has the token type {:?}, not Bearer", quoted(token_type))));
    }
    let access = text("access_token").unwrap_or_default();
    if !is_token(access) {
        return Err(wrong("holds no token that can be sent in a header"));
    }
    let refresh = text("refresh_token");
    Ok(Ok(Tokens {
        access: access.to_owned(),
        refresh: refresh.map(str::to_owned),
        life: life(answered.body.get("expires_in"))?,
    }))
}

/// The life of a token. The specification recommends to state it, but does not demand it.
fn life(stated: Option<&Value>) -> Result<Option<Duration>, AuthError> {
    let seconds = match stated {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64(),
        // Some servers write it as a text.
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        Some(_) => None,
    };
    match seconds {
        Some(seconds) if seconds >= 1.0 && seconds.is_finite() => {
            let seconds = seconds.min(Duration::from_secs(MAX_LIFE).as_secs_f64());
            Ok(Some(Duration::from_secs_f64(seconds)))
        }
        _ => Err(wrong("has an invalid expires_in; expected a positive number of seconds")),
    }
}

/// True if a text can be sent as a bearer token.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_TOKEN_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn wrong(why: &str) -> AuthError {
    AuthError::new(format!("the answer of the token endpoint {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_200(body: Value) -> Result<Result<Tokens, Refusal>, AuthError> {
        read(&Answered { status: 200, body }, &LateSecrets::default())
    }

    #[test]
    fn only_bearer_tokens_with_a_sensible_life_are_accepted() {
        let plain = json!({"access_token": "abc", "token_type": "bearer"});
        let tokens = read_200(plain.clone()).unwrap().unwrap();
        assert_eq!((tokens.access.as_str(), tokens.life), ("abc", None));
        let with = |key: &str, value: Value| {
            let mut body = plain.clone();
            body[key] = value;
            read_200(body)
        };
        for life in [json!(60), json!("60"), json!(60.5), json!(1e300)] {
            assert!(with("expires_in", life).unwrap().unwrap().life.is_some());
        }
        for life in [json!(0), json!(-1), json!("soon"), json!([1]), json!(0.2)] {
            let error = with("expires_in", life.clone()).err().unwrap();
            assert!(error.to_string().contains("expires_in"), "{life}: {error}");
        }
        for (key, value) in [
            ("token_type", json!("DPoP")),
            ("token_type", json!(null)),
            ("access_token", json!("")),
            ("access_token", json!("a b")),
            ("access_token", json!("a\r\nX: y")),
            ("access_token", json!("x".repeat(MAX_TOKEN_BYTES + 1))),
            ("access_token", json!({})),
        ] {
            assert!(with(key, value.clone()).is_err(), "{key} {value}");
        }
    }

    #[test]
    fn refusals_have_a_code() {
        let body = json!({"error": "invalid_grant", "error_description": "gone\u{1b}[2J"});
        let answered = Answered { status: 400, body };
        let refused = read(&answered, &LateSecrets::default()).unwrap().err().unwrap();
        assert_eq!(refused.code, "invalid_grant");
        assert!(!refused.description.contains('\u{1b}'));
        let nothing = Answered { status: 500, body: json!({}) };
        assert!(read(&nothing, &LateSecrets::default()).is_err());
    }
}

//! The device authorization flow (RFC 8628): a code for a person, and polling until it is entered.

use std::time::{Duration, Instant};

use karat_io::redact::LateSecrets;
use serde_json::Value;

use super::client::Client;
use super::discovery::Issuer;
use super::failure::AuthError;
use super::fetch::Fetcher;
use super::prompt::{Prompt, prompt};
use super::tokens::{self, Tokens, refusal};
use crate::error::quoted;

/// The longest time for a person to enter the code.
const MAX_PATIENCE: Duration = Duration::from_secs(900);
/// The pause between two polls if the server does not name one.
const PAUSE: Duration = Duration::from_secs(5);
/// The shortest and the longest pause that a server can ask for.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Maximum size of a code.
const MAX_CODE_BYTES: usize = 4 << 10;
/// The grant type of the poll.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Logs in.
pub(super) async fn log_in(
    fetcher: &Fetcher,
    issuer: &Issuer,
    client: &Client,
    scopes: &[String],
    resource: &str,
    late: &LateSecrets,
) -> Result<Tokens, AuthError> {
    let Some(endpoint) = &issuer.device_endpoint else {
        let named = quoted(&issuer.issuer);
        return Err(AuthError::new(format!(
            "{named} does not support device authorization; try --auth browser"
        )));
    };
    let mut fields = vec![("resource", resource.to_owned())];
    if !scopes.is_empty() {
        fields.push(("scope", scopes.join(" ")));
    }
    let basic = client.authenticate(issuer, &mut fields, late)?;
    let pairs: Vec<(&str, &str)> = fields.iter().map(|(name, of)| (*name, of.as_str())).collect();
    let answered = fetcher.form(endpoint, &pairs, basic, "device endpoint").await?;
    let text = |key: &str| answered.body.get(key).and_then(Value::as_str);
    let device_code = text("device_code").filter(|code| code.len() <= MAX_CODE_BYTES);
    if let Some(code) = device_code {
        late.add(code);
    }
    if answered.status != 200 {
        return Err(match refusal(&answered) {
            Some(refusal) => refusal.into_error(issuer),
            None => AuthError::new(format!("device endpoint: HTTP status {}", answered.status)),
        });
    }
    let (Some(device_code), Some(user_code)) = (device_code, text("user_code")) else {
        return Err(AuthError::new("the device endpoint returned no code"));
    };
    // Google wrote `verification_url` before there was a standard.
    let url = text("verification_uri").or_else(|| text("verification_url")).unwrap_or_default();
    let url = fetcher.address(url, "verification address")?;
    let seconds =
        |key: &str| answered.body.get(key).and_then(Value::as_u64).map(Duration::from_secs);
    let patience = seconds("expires_in").unwrap_or(MAX_PATIENCE).min(MAX_PATIENCE);
    let mut pause = seconds("interval").unwrap_or(PAUSE).clamp(PAUSES.0, PAUSES.1);
    prompt(&Prompt::Device { url: url.into(), code: quoted(user_code) })?;
    let began = Instant::now();
    loop {
        tokio::time::sleep(pause).await;
        if began.elapsed() >= patience {
            let seconds = patience.as_secs();
            return Err(AuthError::new(format!("the code was not entered within {seconds} s")));
        }
        let fields = vec![
            ("grant_type", GRANT.to_owned()),
            ("device_code", device_code.to_owned()),
            ("resource", resource.to_owned()),
        ];
        match tokens::request(fetcher, issuer, client, fields, late).await? {
            Ok(tokens) => return Ok(tokens),
            Err(refusal) => match refusal.code.as_str() {
                "authorization_pending" => {}
                "slow_down" => pause = (pause + Duration::from_secs(5)).min(PAUSES.1),
                "expired_token" => {
                    return Err(AuthError::new("the code has expired; log in again"));
                }
                _ => return Err(refusal.into_error(issuer)),
            },
        }
    }
}

//! Signed assertions by which a client authenticates without a secret (RFC 7523, `private_key_jwt`).

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use karat_io::http_server::random_token;
use karat_io::input::{Limits, read_raw};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::json;

use super::failure::AuthError;

/// The type of the assertion.
pub(super) const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Seconds for which an assertion is valid.
const LIFETIME: u64 = 120;
/// Bytes of a key file that are read.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// A private key.
pub(super) enum PrivateKey {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl PrivateKey {
    /// Reads a key in PEM (PKCS#8).
    pub(super) fn read(path: &Path) -> Result<PrivateKey, AuthError> {
        let limits = Limits { bytes: MAX_KEY_BYTES, ..Limits::default() };
        let bytes = read_raw(path, &limits).map_err(|error| AuthError::new(error.to_string()))?;
        PrivateKey::parse(&String::from_utf8_lossy(&bytes)).ok_or_else(|| {
            AuthError::new(format!(
                "{}: not a private key that can be used: it must be PKCS#8 in PEM, unencrypted, and P-256, \
                 Ed25519 or RSA of 2048 bits or more",
                path.display()
            ))
        })
    }

    fn parse(pem: &str) -> Option<PrivateKey> {
        let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
        let (inside, _) = rest.split_once("-----END PRIVATE KEY-----")?;
        let compact: String = inside.split_ascii_whitespace().collect();
        let der = STANDARD.decode(compact).ok()?;
        let random = SystemRandom::new();
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random) {
            return Some(PrivateKey::P256(key));
        }
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der) {
            return Some(PrivateKey::Ed25519(key));
        }
        RsaKeyPair::from_pkcs8(&der).ok().map(PrivateKey::Rsa)
    }

    fn algorithm(&self) -> &'static str {
        match self {
            PrivateKey::P256(_) => "ES256",
            PrivateKey::Ed25519(_) => "EdDSA",
            PrivateKey::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            PrivateKey::P256(key) => Some(key.sign(&random, text).ok()?.as_ref().to_vec()),
            PrivateKey::Ed25519(key) => Some(key.sign(text).as_ref().to_vec()),
            PrivateKey::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).ok()?;
                Some(signature)
            }
        }
    }

    /// An assertion of the client for an authorisation server.
    pub(super) fn assertion(&self, client_id: &str, issuer: &str) -> Result<String, AuthError> {
        let failed = || AuthError::new("the assertion of the client cannot be signed");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| failed())?.as_secs();
        let id = random_token().map_err(|_| failed())?;
        let header = json!({"alg": self.algorithm(), "typ": "JWT"});
        let claims = json!({
            "iss": client_id, "sub": client_id, "aud": issuer, "jti": id, "iat": now, "exp": now + LIFETIME,
        });
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.sign(signed.as_bytes()).ok_or_else(failed)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, UnparsedPublicKey};

    use super::*;

    fn pem(der: &[u8]) -> String {
        format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der)
        )
    }

    #[test]
    fn assertions_are_signed_by_the_key_and_name_client_and_issuer() {
        let random = SystemRandom::new();
        let p256 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        for (der, algorithm) in [(p256.as_ref(), "ES256"), (ed25519.as_ref(), "EdDSA")] {
            let key = PrivateKey::parse(&pem(der)).unwrap();
            let assertion = key.assertion("me", "https://login.example").unwrap();
            let parts: Vec<&str> = assertion.split('.').collect();
            let read = |part: &str| -> serde_json::Value {
                serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
            };
            assert_eq!(read(parts[0])["alg"], algorithm);
            let claims = read(parts[1]);
            assert_eq!(
                (&claims["iss"], &claims["aud"]),
                (&json!("me"), &json!("https://login.example"))
            );
            assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), LIFETIME);
            let signed = format!("{}.{}", parts[0], parts[1]);
            let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
            let valid = match &key {
                PrivateKey::P256(key) => {
                    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref())
                        .verify(signed.as_bytes(), &signature)
                }
                PrivateKey::Ed25519(key) => {
                    UnparsedPublicKey::new(&ED25519, key.public_key().as_ref())
                        .verify(signed.as_bytes(), &signature)
                }
                PrivateKey::Rsa(_) => unreachable!(),
            };
            valid.unwrap();
        }
        for text in ["", "-----BEGIN PRIVATE KEY-----", &pem(b"not a key"), &pem(&[])] {
            assert!(PrivateKey::parse(text).is_none());
        }
    }
}

//! Logins that are kept for later runs: one private file for each server and issuer.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use karat_io::private_file;
use karat_io::redact::LateSecrets;
use karat_io::text::hex;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::client::{Client, Method};
use super::tokens::Tokens;

/// The format of the files.
const SCHEMA: &str = "karat.login/1";
/// Maximum size of a file.
const MAX_BYTES: u64 = 256 << 10;
/// Files that are looked at.
const MAX_FILES: usize = 1_000;

/// A login that is kept, without its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The address of the server.
    pub server: String,
    /// The authorisation server.
    pub issuer: String,
    /// The file.
    pub path: PathBuf,
    /// True if an expired token can be refreshed without a person.
    pub can_refresh: bool,
}

/// A login that cannot be stored, read or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot store the login: {0}")]
pub struct StoreError(#[from] io::Error);

/// A login as its file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    schema: String,
    pub(super) server: String,
    pub(super) issuer: String,
    client_id: String,
    client_secret: Option<String>,
    client_method: Method,
    access_token: String,
    refresh_token: Option<String>,
    /// Seconds since 1970.
    expires: Option<u64>,
    pub(super) scopes: Vec<String>,
}

impl Stored {
    pub(super) fn new(
        server: &str,
        issuer: &str,
        client: &Client,
        tokens: &Tokens,
        scopes: &[String],
    ) -> Stored {
        let expires = tokens.life.map(|life| now().saturating_add(life.as_secs()));
        Stored {
            schema: SCHEMA.to_owned(),
            server: server.to_owned(),
            issuer: issuer.to_owned(),
            client_id: client.id.clone(),
            client_secret: client.secret.clone(),
            client_method: client.method,
            access_token: tokens.access.clone(),
            refresh_token: tokens.refresh.clone(),
            expires,
            scopes: scopes.to_vec(),
        }
    }

    pub(super) fn client(&self) -> Client {
        Client::stored(self.client_id.clone(), self.client_secret.clone(), self.client_method)
    }

    /// The tokens, with what is left of their life.
    pub(super) fn tokens(&self) -> Tokens {
        let left = self.expires.map(|end| Duration::from_secs(end.saturating_sub(now())));
        Tokens {
            access: self.access_token.clone(),
            refresh: self.refresh_token.clone(),
            life: left,
        }
    }

    fn hide(&self, late: &LateSecrets) {
        late.add(&self.access_token);
        for secret in [&self.refresh_token, &self.client_secret].into_iter().flatten() {
            late.add(secret);
        }
    }

    pub(super) fn write(&self) -> Result<Login, StoreError> {
        let path = path_of(&folder()?, &self.server, &self.issuer);
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from)?;
        private_file::write(&path, &text)?;
        Ok(self.describe(&path))
    }

    fn describe(&self, path: &Path) -> Login {
        Login {
            server: self.server.clone(),
            issuer: self.issuer.clone(),
            path: path.to_owned(),
            can_refresh: self.refresh_token.is_some(),
        }
    }
}

/// The login that is kept for a server and an issuer. Its secrets are hidden from then on.
pub(super) fn find(
    server: &str,
    issuer: &str,
    late: &LateSecrets,
) -> Result<Option<Stored>, StoreError> {
    let Ok(folder) = folder() else { return Ok(None) };
    let Some(stored) = read(&path_of(&folder, server, issuer))? else { return Ok(None) };
    stored.hide(late);
    Ok((stored.server == server && stored.issuer == issuer).then_some(stored))
}

/// The logins that are kept for a server, or all of them.
///
/// ```no_run
/// use karat_mcp::auth;
///
/// for login in auth::logins(Some("https://mcp.example.com/mcp"))? {
///     println!("removes the login at {}", login.issuer);
///     auth::logout(&login)?;
/// }
/// # Ok::<(), auth::StoreError>(())
/// ```
///
/// # Errors
/// If one of the files cannot be read.
pub fn logins(server: Option<&str>) -> Result<Vec<Login>, StoreError> {
    // As it was written, if it is not an address: then there is none for it.
    let server = server.map(|text| Url::parse(text).map_or(text.to_owned(), |url| key_of(&url)));
    let entries = match std::fs::read_dir(folder()?) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    for entry in entries.take(MAX_FILES) {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        if let Some(stored) = read(&path)?
            && server.as_ref().is_none_or(|server| *server == stored.server)
        {
            found.push(stored.describe(&path));
        }
    }
    found.sort_by(|a, b| (&a.server, &a.issuer).cmp(&(&b.server, &b.issuer)));
    Ok(found)
}

/// Removes a login that is kept. The server is not asked to revoke its tokens.
///
/// ```no_run
/// use karat_mcp::auth;
///
/// if let Some(login) = auth::logins(Some("https://mcp.example.com/mcp"))?.first() {
///     auth::logout(login)?;
/// }
/// # Ok::<(), auth::StoreError>(())
/// ```
///
/// # Errors
/// If its file cannot be removed.
pub fn remove(login: &Login) -> Result<(), StoreError> {
    private_file::remove(&login.path)?;
    Ok(())
}

fn read(path: &Path) -> Result<Option<Stored>, StoreError> {
    let Some(bytes) = private_file::read(path, MAX_BYTES)? else { return Ok(None) };
    let wrong = || {
        io::Error::other(format!("{} is not a login stored by Karat; remove it", path.display()))
    };
    let stored: Stored = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    match stored.schema == SCHEMA {
        true => Ok(Some(stored)),
        false => Err(wrong().into()),
    }
}

fn folder() -> io::Result<PathBuf> {
    let folder = private_file::configuration_folder();
    let folder = folder.map(|folder| folder.join("logins"));
    folder.ok_or_else(|| io::Error::other("no home folder; set HOME or XDG_CONFIG_HOME"))
}

/// A server as stored logins name it: without secrets.
pub(super) fn key_of(server: &Url) -> String {
    let mut plain = server.clone();
    plain.set_query(None);
    plain.set_fragment(None);
    let _ = plain.set_username("");
    let _ = plain.set_password(None);
    plain.into()
}

/// The file of a login: its name says nothing, and no part of it comes from a server.
fn path_of(folder: &Path, server: &str, issuer: &str) -> PathBuf {
    let key = digest(&SHA256, format!("{server}\n{issuer}").as_bytes());
    let name = hex(&key.as_ref()[..16]);
    folder.join(format!("{name}.json"))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

//! Rules for what counts as a secret: by its name, its place or its look.
//!
//! They are applied to configuration alone, before a server is started. A rule that hides too much
//! destroys recordings, and one that hides too little leaks, so there are rules for both sides. Secrets
//! are removed from text by [`crate::redact`].

use std::ops::Range;
use std::path::Path;

/// Shorter values are not hidden: they would tear holes into harmless text and protect nothing.
const MIN_LENGTH: usize = 4;
/// Numbers with fewer digits are sizes, ports and limits.
const MIN_DIGITS: usize = 6;

/// Words of settings and of MCP itself. An answer could not be read without them.
#[rustfmt::skip]
const PLAIN_WORDS: &[&str] = &[
    "true", "false", "null", "none", "auto", "default", "enabled", "disabled", "required", "optional",
    "basic", "bearer", "token", "oauth", "oauth2", "password", "secret", "redacted",
    "text", "image", "audio", "resource", "resource_link", "object", "string", "number", "integer",
    "boolean", "array", "json", "user", "assistant", "accept", "decline", "cancel", "complete",
    "tool", "tools", "prompt", "prompts", "ping", "debug", "info", "notice", "warning", "error", "stdio",
    "http", "https", "local", "localhost", "127.0.0.1", "test", "karat", "development", "production",
];

/// Last words of names that configure secrets without being secret (`token_ttl`).
#[rustfmt::skip]
const SETTING_SUFFIXES: &[&str] = &[
    "type", "types", "kind", "enabled", "disabled", "required", "mode", "method", "scheme", "flow",
    "style", "provider", "size", "length", "ttl", "timeout", "expiry", "expires", "lifetime",
    "endpoint", "path", "file", "dir", "folder", "name", "format",
];

/// Words that make a name one of an amount (`max_tokens`).
const AMOUNT_WORDS: &[&str] = &["max", "min", "num", "limit", "count", "budget", "tokenizer"];

/// First words of flags that take no value (`--no-auth`).
const SWITCH_WORDS: &[&str] =
    &["no", "skip", "disable", "without", "allow", "enable", "use", "require"];

/// Variables that every process has and that describe the machine and its user.
const MACHINE_VARIABLES: &[&str] = &[
    "HOME", "PWD", "USER", "LOGNAME", "PATH", "SHELL", "LANG", "TERM", "TZ", "TMPDIR", "HOSTNAME",
];

/// Headers that describe the message and the client.
#[rustfmt::skip]
const PLAIN_HEADERS: &[&str] = &[
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection",
    "content-length", "content-type", "host", "mcp-protocol-version", "origin", "pragma", "user-agent",
];

/// True if a value can be hidden without harm: not short, not a small number, not a plain word.
#[must_use]
pub fn is_hideable(value: &str) -> bool {
    let value = value.trim();
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let amount = digits < MIN_DIGITS && value.parse::<f64>().is_ok();
    value.len() >= MIN_LENGTH
        && !amount
        && !PLAIN_WORDS.contains(&value.to_ascii_lowercase().as_str())
}

/// True if the name of a variable, flag or query parameter is that of a secret.
#[must_use]
pub(crate) fn is_secret_name(name: &str) -> bool {
    let parts =
        ["token", "secret", "passw", "apikey", "authorization", "credential", "bearer", "cookie"];
    let alone = ["key", "auth", "pass", "pat", "pwd", "dsn", "sig", "signature"];
    let whole = ["database_url", "connection_string", "redis_url", "mongodb_uri"];
    let words = words_of(name);
    if words.last().is_some_and(|word| SETTING_SUFFIXES.contains(&word.as_str()))
        || words.iter().any(|word| AMOUNT_WORDS.contains(&word.as_str()))
    {
        return false;
    }
    let name = name.to_ascii_lowercase();
    parts.iter().chain(&whole).any(|part| name.contains(part))
        || words.iter().any(|word| alone.contains(&word.as_str()))
}

/// True if the value of this header is a secret, whatever it looks like.
#[must_use]
pub fn is_secret_header(name: &str) -> bool {
    !PLAIN_HEADERS.contains(&name.trim().to_ascii_lowercase().as_str())
}

/// True if the value of a variable that a configuration uses is a secret: people write `${NAME}` to keep
/// the value out of the file. Not for variables that describe the machine (`HOME`), nor for paths that
/// exist.
#[must_use]
pub(crate) fn is_secret_variable(name: &str, value: &str) -> bool {
    let is_existing_path = || value.starts_with('/') && Path::new(value).exists();
    !MACHINE_VARIABLES.contains(&name) && !is_existing_path()
}

/// True if a value looks like a token, or has one after an equals sign: long, letters and digits mixed, no
/// spaces or slashes.
#[must_use]
pub fn looks_like_token(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    let body = value.trim_end_matches('=');
    let padding = value.len() - body.len();
    body.split('=').all(|part| part.chars().all(plain))
        && body.split('=').any(|part| {
            part.len() + padding >= 20
                && part.chars().any(|c| c.is_ascii_digit())
                && part.chars().any(|c| c.is_ascii_alphabetic())
        })
}

/// True if a value is a secret by its name or its look.
///
/// ```
/// use karat_io::secrets::is_secret;
///
/// assert!(is_secret("GITHUB_TOKEN", "anything"));
/// assert!(is_secret("setting", "ghp_Zx81mQw0aLr7Tt5Yb2Kd9Ue4Ns6Vc3Po1Hg8"));
/// assert!(!is_secret("MAX_TOKENS", "4096"));
/// ```
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) || looks_like_token(value)
}

/// The token of `Bearer TOKEN` and other schemes.
#[must_use]
pub(crate) fn after_auth_scheme(value: &str) -> Option<&str> {
    let schemes = ["bearer", "basic", "token", "digest", "apikey", "bot", "negotiate"];
    let (scheme, token) = value.trim().split_once(' ')?;
    schemes.contains(&scheme.to_ascii_lowercase().as_str()).then(|| token.trim())
}

/// The secret parts of a command's argument, given the argument before it.
///
/// ```
/// use karat_io::secrets::in_argument;
///
/// let word = "--api-key=c0ffee-81f2-77aa";
/// assert_eq!(in_argument(word, None).first().map(|part| &word[part.clone()]), Some("c0ffee-81f2-77aa"));
/// ```
#[must_use]
pub fn in_argument(word: &str, before: Option<&str>) -> Vec<Range<usize>> {
    let found = match before {
        Some(flag) if is_header_flag(flag) => in_header(word, 0),
        Some(flag) if is_secret_flag(flag) && !word.starts_with("--") => one(0..word.len()),
        _ => in_argument_alone(word),
    };
    found.into_iter().filter(|part| is_hideable(&word[part.clone()])).collect()
}

/// As [`in_argument`], but only parts that a flag, a name or a URL marks as secret. Neither a value that
/// merely looks like a token nor a path that exists is included.
#[must_use]
pub fn named_in_argument(word: &str, before: Option<&str>) -> Vec<Range<usize>> {
    let named = before.is_some_and(|flag| is_header_flag(flag) || is_secret_flag(flag));
    let only_looks = !named && !word.contains('=') && looks_like_token(word);
    match only_looks || Path::new(word).exists() {
        true => Vec::new(),
        false => in_argument(word, before),
    }
}

fn one(part: Range<usize>) -> Vec<Range<usize>> {
    vec![part]
}

fn in_argument_alone(word: &str) -> Vec<Range<usize>> {
    if let Some((flag, value)) = word.split_once('=')
        && !flag.contains("://")
    {
        let start = flag.len() + 1;
        if is_header_flag(flag) {
            return in_header(value, start);
        }
        if is_secret_name(flag) {
            return one(start..word.len());
        }
    }
    if word.starts_with("-H") && word.contains(':') {
        return in_header(&word[2..], 2);
    }
    if looks_like_token(word) {
        return one(0..word.len());
    }
    in_urls(word)
}

/// The value of `Name: value`.
fn in_header(text: &str, offset: usize) -> Vec<Range<usize>> {
    match text.split_once(':') {
        Some((name, value)) if is_secret_header(name) => {
            let end = offset + text.len();
            one(end - value.trim_start().len()..end)
        }
        _ => Vec::new(),
    }
}

/// The passwords of URLs (`scheme://user:PASSWORD@host`) and the secret values of their queries.
#[must_use]
pub fn in_urls(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, sign) in text.match_indices("://") {
        let start = at + sign.len();
        let rest = &text[start..];
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>'));
        let rest = &rest[..end.unwrap_or(rest.len())];
        found.extend(in_user(rest).map(|part| start + part.start..start + part.end));
        found.extend(in_query(rest).map(|part| start + part.start..start + part.end));
    }
    found
}

/// The password in what follows `://`, or a token in place of the user.
fn in_user(rest: &str) -> Option<Range<usize>> {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let user = match authority.rfind('@') {
        Some(end) => &rest[..end],
        // A password with a slash in it, unless a port follows the colon.
        None => {
            let (_, behind) = authority.split_once(':')?;
            let is_port = behind.chars().all(|c| c.is_ascii_digit());
            let end = if is_port { None } else { rest.rfind('@') };
            &rest[..end?]
        }
    };
    match user.split_once(':') {
        Some((name, _)) => Some(name.len() + 1..user.len()),
        None => looks_like_token(user).then_some(0..user.len()),
    }
}

fn in_query(rest: &str) -> impl Iterator<Item = Range<usize>> {
    let start = rest.find('?').map_or(rest.len(), |at| at + 1);
    let mut at = start;
    rest[start..].split('&').filter_map(move |pair| {
        let begin = at;
        at += pair.len() + 1;
        let (name, value) = pair.split_once('=')?;
        let secret = is_secret_name(name) || looks_like_token(value);
        secret.then(|| begin + name.len() + 1..begin + pair.len())
    })
}

fn is_header_flag(word: &str) -> bool {
    word == "-H" || (word.starts_with("--") && word.ends_with("header"))
}

fn is_secret_flag(word: &str) -> bool {
    let switch = words_of(word).first().is_some_and(|first| SWITCH_WORDS.contains(&first.as_str()));
    word.starts_with('-') && !word.contains('=') && !switch && is_secret_name(word)
}

/// The words of a name in any convention: `MAX_TOKENS`, `max-tokens`, `maxTokens`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let begins = !c.is_ascii_alphanumeric() || (was_lower && c.is_ascii_uppercase());
        if begins {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_its_version_is_not_a_token() {
        for value in ["mcp-server-time==1.0", "some-long-package==2.10.3"] {
            assert!(!looks_like_token(value), "{value}");
        }
        for value in
            ["c2VjcmV0IHZhbHVlMQ==", "session=0123456789abcdef0123", "a1b2c3d4e5f6a7b8c9d0"]
        {
            assert!(looks_like_token(value), "{value}");
        }
    }

    #[test]
    fn names_of_secrets_are_recognized() {
        for name in [
            "GITHUB_TOKEN",
            "api-key",
            "apiKey",
            "OPENAI_API_KEY",
            "DB_PASSWORD",
            "Authorization",
            "REDIS_AUTH",
            "PGPASS_KEY",
            "DB_PASS",
            "--client-secret",
            "DATABASE_URL",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "HOME",
            "PORT",
            "KEYBOARD",
            "PATH",
            "monkey",
            "AUTH_ENABLED",
            "AUTH_TYPE",
            "MAX_TOKENS",
            "maxTokens",
            "GIT_AUTHOR_EMAIL",
            "TOKEN_ENDPOINT",
            "SECRET_NAME",
            "COMPASS",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn harmless_values_are_not_hidden() {
        for value in ["hunter2", "123456", "p@ss", "abc123supersecret", "pg://u:hunter22@h/db"] {
            assert!(is_hideable(value), "{value}");
        }
        for value in ["true", "False", "4096", "0.25", "-1", "text", "abc", "", "oauth2"] {
            assert!(!is_hideable(value), "{value}");
        }
        assert!(looks_like_token("ghp_16C7e42F292c6912E7710c838347Ae178B4a"));
        assert!(!looks_like_token("/home/someone/projects/number/42"));
        assert!(!looks_like_token("production"));
        assert!(
            is_secret_header("Authorization")
                && is_secret_header("X-Api")
                && !is_secret_header("Content-Type")
        );
        assert!(is_secret_variable("DBCONN", "pg://u:p@h/db"));
        assert!(!is_secret_variable("HOME", "/no/such/home") && !is_secret_variable("DATA", "/"));
    }

    #[test]
    fn secrets_are_found_in_the_arguments_of_a_command() {
        for (before, word, expected) in [
            (None, "postgresql://me:pgpassw0rd@127.0.0.1/db", "pgpassw0rd"),
            (None, "postgresql://me:pg/passw0rd@127.0.0.1/db", "pg/passw0rd"),
            (None, "url=redis://:hunter22@h:6379/0", "hunter22"),
            (
                None,
                "https://ghp_16C7e42F292c6912E7710c838347Ae178B4a@h/x",
                "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            ),
            (None, "https://h/sse?x=1&api_key=abcdef&y=2", "abcdef"),
            (None, "--api-key=hunter2", "hunter2"),
            (None, "GITHUB_TOKEN=hunter2", "hunter2"),
            (None, "--header=X-Api: hunter2", "hunter2"),
            (None, "-HX-Api: hunter2", "hunter2"),
            (
                Some("--header"),
                "Authorization: Bearer abc123supersecret",
                "Bearer abc123supersecret",
            ),
            (Some("-H"), "X-Api:hunter2", "hunter2"),
            (Some("--token"), "hunter2", "hunter2"),
        ] {
            let found: Vec<&str> =
                in_argument(word, before).into_iter().map(|part| &word[part]).collect();
            assert_eq!(found, [expected], "{before:?} {word}");
        }
        for (before, word) in [
            (None, "http://127.0.0.1:8080/users/@me"),
            (None, "ssh://git@host/path"),
            (None, "--root=/data"),
            (Some("--header"), "Accept: application/json"),
            (Some("--header"), "X-Debug: true"),
            (Some("--no-auth"), "/data"),
            (Some("--max-tokens"), "100000"),
            (Some("--token"), "--verbose"),
        ] {
            assert!(in_argument(word, before).is_empty(), "{before:?} {word}");
        }
    }

    #[test]
    fn a_value_that_only_looks_like_a_token_is_not_a_named_secret() {
        let look = "mcp-server-something-2025.11";
        assert!(!in_argument(look, None).is_empty() && named_in_argument(look, None).is_empty());
        for (before, word) in [(Some("--token"), look), (None, "--api-key=abcdefghij0123456789")] {
            assert!(!named_in_argument(word, before).is_empty(), "{before:?} {word}");
        }
        assert!(named_in_argument("/", Some("--key")).is_empty());
    }
}

//! What counts as a secret: by the name that it goes under, by where it stands, by its look.
//!
//! Decided on the words of a spec alone, before a server is started. A guess that hides too much
//! destroys recordings, one that hides too little gives something away, so both sides have their
//! rules, and docs/security.md states them. Taking secrets out of text is [`crate::redact`]'s work.

use std::ops::Range;
use std::path::Path;

/// Shorter values are not hidden: they would tear holes into harmless text and hide nothing.
const SHORTEST: usize = 4;
/// Numbers with fewer digits are sizes, ports and limits.
const FEWEST_DIGITS: usize = 6;

/// Words of settings and of the protocol itself. Without them an answer could not be read.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    "true", "false", "null", "none", "auto", "default", "enabled", "disabled", "required", "optional",
    "basic", "bearer", "token", "oauth", "oauth2", "password", "secret", "redacted",
    "text", "image", "audio", "resource", "resource_link", "object", "string", "number", "integer",
    "boolean", "array", "json", "user", "assistant", "accept", "decline", "cancel", "complete",
    "tool", "tools", "prompt", "prompts", "ping", "debug", "info", "notice", "warning", "error", "stdio",
    "http", "https", "local", "localhost", "127.0.0.1", "test", "karat", "development", "production",
];

/// What a name ends with that speaks of a setting about secrets, and not of one.
#[rustfmt::skip]
const KINDS: &[&str] = &[
    "type", "types", "kind", "enabled", "disabled", "required", "mode", "method", "scheme", "flow",
    "style", "provider", "size", "length", "ttl", "timeout", "expiry", "expires", "lifetime",
    "endpoint", "path", "file", "dir", "folder", "name", "format",
];

/// What makes a name one of an amount.
const AMOUNTS: &[&str] = &["max", "min", "num", "limit", "count", "budget", "tokenizer"];

/// What makes a flag one that takes no value.
const SWITCHES: &[&str] =
    &["no", "skip", "disable", "without", "allow", "enable", "use", "require"];

/// Variables that every process has, and that say where and who one is.
const SURROUNDINGS: &[&str] = &[
    "HOME", "PWD", "USER", "LOGNAME", "PATH", "SHELL", "LANG", "TERM", "TZ", "TMPDIR", "HOSTNAME",
];

/// Headers that say what is sent and by what.
#[rustfmt::skip]
const HEADERS: &[&str] = &[
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection",
    "content-length", "content-type", "host", "mcp-protocol-version", "origin", "pragma", "user-agent",
];

/// Whether a value can be hidden without harm: not short, not a small number, not a plain word.
pub(crate) fn can_be(value: &str) -> bool {
    let value = value.trim();
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let amount = digits < FEWEST_DIGITS && value.parse::<f64>().is_ok();
    value.len() >= SHORTEST && !amount && !PLAIN.contains(&value.to_ascii_lowercase().as_str())
}

/// Whether a name (of a variable, a flag, a query parameter) speaks of a secret.
pub(crate) fn speaks(name: &str) -> bool {
    let parts =
        ["token", "secret", "passw", "apikey", "authorization", "credential", "bearer", "cookie"];
    let alone = ["key", "auth", "pass", "pat", "pwd", "dsn", "sig", "signature"];
    let whole = ["database_url", "connection_string", "redis_url", "mongodb_uri"];
    let words = words(name);
    if words.last().is_some_and(|word| KINDS.contains(&word.as_str()))
        || words.iter().any(|word| AMOUNTS.contains(&word.as_str()))
    {
        return false;
    }
    let name = name.to_ascii_lowercase();
    parts.iter().chain(&whole).any(|part| name.contains(part))
        || words.iter().any(|word| alone.contains(&word.as_str()))
}

/// Whether the value of a header is one, whatever it looks like.
pub(crate) fn is_header(name: &str) -> bool {
    !HEADERS.contains(&name.trim().to_ascii_lowercase().as_str())
}

/// Whether a variable that was put into a spec is one: a person who writes `${NAME}` does not want the
/// value to stand there. Not where the machine is described: `HOME` and its like, paths that exist.
pub(crate) fn is_variable(name: &str, value: &str) -> bool {
    let is_place = || value.starts_with('/') && Path::new(value).exists();
    !SURROUNDINGS.contains(&name) && !is_place()
}

/// Whether a value looks like a token: long, without spaces and paths, letters and digits mixed.
pub(crate) fn looks_like_a_token(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '=');
    value.len() >= 20
        && value.chars().all(plain)
        && value.chars().any(|c| c.is_ascii_digit())
        && value.chars().any(|c| c.is_ascii_alphabetic())
}

/// The token alone of `Bearer TOKEN` and the like.
pub(crate) fn behind_scheme(value: &str) -> Option<&str> {
    let schemes = ["bearer", "basic", "token", "digest", "apikey", "bot", "negotiate"];
    let (scheme, token) = value.trim().split_once(' ')?;
    schemes.contains(&scheme.to_ascii_lowercase().as_str()).then(|| token.trim())
}

/// The parts of a word of a command that are secrets, given the word before it.
pub(crate) fn in_word(word: &str, before: Option<&str>) -> Vec<Range<usize>> {
    let found = match before {
        Some(flag) if is_header_flag(flag) => in_header(word, 0),
        Some(flag) if is_secret_flag(flag) && !word.starts_with("--") => one(0..word.len()),
        _ => in_word_alone(word),
    };
    found.into_iter().filter(|part| can_be(&word[part.clone()])).collect()
}

/// As [`in_word`], but only what a flag, a name or an address says to be one: a look alone is no reason
/// to refuse a word, nor is a path that exists.
pub(crate) fn named_in_word(word: &str, before: Option<&str>) -> Vec<Range<usize>> {
    let named = before.is_some_and(|flag| is_header_flag(flag) || is_secret_flag(flag));
    let only_looks = !named && !word.contains('=') && looks_like_a_token(word);
    match only_looks || Path::new(word).exists() {
        true => Vec::new(),
        false => in_word(word, before),
    }
}

fn one(part: Range<usize>) -> Vec<Range<usize>> {
    vec![part]
}

fn in_word_alone(word: &str) -> Vec<Range<usize>> {
    if let Some((flag, value)) = word.split_once('=')
        && !flag.contains("://")
    {
        let start = flag.len() + 1;
        if is_header_flag(flag) {
            return in_header(value, start);
        }
        if speaks(flag) {
            return one(start..word.len());
        }
    }
    if word.starts_with("-H") && word.contains(':') {
        return in_header(&word[2..], 2);
    }
    if looks_like_a_token(word) {
        return one(0..word.len());
    }
    in_addresses(word)
}

/// The value of `Name: value`.
fn in_header(text: &str, offset: usize) -> Vec<Range<usize>> {
    match text.split_once(':') {
        Some((name, value)) if is_header(name) => {
            let end = offset + text.len();
            one(end - value.trim_start().len()..end)
        }
        _ => Vec::new(),
    }
}

/// The passwords of addresses (`scheme://user:PASSWORD@host`), and what their query says of secrets.
pub(crate) fn in_addresses(text: &str) -> Vec<Range<usize>> {
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

/// The password of what stands behind `://`, or a token in the place of the user.
fn in_user(rest: &str) -> Option<Range<usize>> {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let user = match authority.rfind('@') {
        Some(end) => &rest[..end],
        // A password with a slash in it, if what stands behind the colon is no port.
        None => {
            let (_, behind) = authority.split_once(':')?;
            let is_port = behind.chars().all(|c| c.is_ascii_digit());
            let end = if is_port { None } else { rest.rfind('@') };
            &rest[..end?]
        }
    };
    match user.split_once(':') {
        Some((name, _)) => Some(name.len() + 1..user.len()),
        None => looks_like_a_token(user).then_some(0..user.len()),
    }
}

fn in_query(rest: &str) -> impl Iterator<Item = Range<usize>> {
    let start = rest.find('?').map_or(rest.len(), |at| at + 1);
    let mut at = start;
    rest[start..].split('&').filter_map(move |pair| {
        let begin = at;
        at += pair.len() + 1;
        let (name, value) = pair.split_once('=')?;
        let secret = speaks(name) || looks_like_a_token(value);
        secret.then(|| begin + name.len() + 1..begin + pair.len())
    })
}

fn is_header_flag(word: &str) -> bool {
    word == "-H" || (word.starts_with("--") && word.ends_with("header"))
}

fn is_secret_flag(word: &str) -> bool {
    let switch = words(word).first().is_some_and(|first| SWITCHES.contains(&first.as_str()));
    word.starts_with('-') && !word.contains('=') && !switch && speaks(word)
}

/// The words of a name, however it is written: `MAX_TOKENS`, `max-tokens`, `maxTokens`.
fn words(name: &str) -> Vec<String> {
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
    fn names_that_speak_of_secrets() {
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
            assert!(speaks(name), "{name}");
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
            assert!(!speaks(name), "{name}");
        }
    }

    #[test]
    fn values_that_can_and_cannot_be_secrets() {
        for value in ["hunter2", "123456", "p@ss", "abc123supersecret", "pg://u:hunter22@h/db"] {
            assert!(can_be(value), "{value}");
        }
        for value in ["true", "False", "4096", "0.25", "-1", "text", "abc", "", "oauth2"] {
            assert!(!can_be(value), "{value}");
        }
        assert!(looks_like_a_token("ghp_16C7e42F292c6912E7710c838347Ae178B4a"));
        assert!(!looks_like_a_token("/home/someone/projects/number/42"));
        assert!(!looks_like_a_token("production"));
        assert!(is_header("Authorization") && is_header("X-Api") && !is_header("Content-Type"));
        assert!(is_variable("DBCONN", "pg://u:p@h/db"));
        assert!(!is_variable("HOME", "/no/such/home") && !is_variable("DATA", "/"));
    }

    #[test]
    fn secrets_in_the_words_of_a_command() {
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
                in_word(word, before).into_iter().map(|part| &word[part]).collect();
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
            assert!(in_word(word, before).is_empty(), "{before:?} {word}");
        }
    }

    #[test]
    fn a_look_alone_names_no_secret() {
        let look = "mcp-server-something-2025.11";
        assert!(!in_word(look, None).is_empty() && named_in_word(look, None).is_empty());
        for (before, word) in [(Some("--token"), look), (None, "--api-key=abcdefghij0123456789")] {
            assert!(!named_in_word(word, before).is_empty(), "{before:?} {word}");
        }
        assert!(named_in_word("/", Some("--key")).is_empty());
    }
}

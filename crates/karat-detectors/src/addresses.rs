//! Addresses in text: links, mail addresses, hosts, networks.

use super::meaning::{Hit, Mask};

/// Endings that make a bare name with dots a host rather than a file.
const ENDINGS: &[&str] = &[
    "com", "org", "net", "io", "dev", "app", "ai", "co", "info", "biz", "me", "cloud", "online",
    "site", "xyz", "example", "test", "invalid", "eu", "de", "fr", "es", "it", "nl", "ru", "cn",
    "jp", "kr", "uk", "us", "br", "in", "tr", "pl", "se", "onion",
];

/// The longest token that is examined.
const MAX_TOKEN: usize = 2_000;

/// Marks every address in laid-out text.
pub(super) fn mark(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(dot) = memchr::memchr(b'.', &bytes[from..]).map(|at| from + at) {
        let inside = bytes.get(dot + 1).is_some_and(u8::is_ascii_alphanumeric);
        if !inside {
            from = dot + 1;
            continue;
        }
        let start = bytes[from..dot]
            .iter()
            .rposition(|byte| is_border(*byte))
            .map_or(from, |at| from + at + 1);
        let length =
            bytes[start..].iter().position(|byte| is_border(*byte)).unwrap_or(bytes.len() - start);
        from = start + length;
        if (4..=MAX_TOKEN).contains(&length) {
            let token = &text[start..start + length];
            if is_address(token) {
                let mail = token.contains('@') && !token.contains("://");
                let mask = if mail { Mask::EXTERNAL.and(Mask::MAILBOX) } else { Mask::EXTERNAL };
                hits.push(Hit::new(start, start + length, mask));
            }
        }
    }
}

/// Returns true if a token ends at this byte. All such bytes are ASCII, so the cut is between characters.
fn is_border(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\n'
            | b'"'
            | b'\''
            | b'<'
            | b'>'
            | b'('
            | b')'
            | b'['
            | b']'
            | b'{'
            | b'}'
            | b'`'
            | b','
            | b';'
            | b'|'
    )
}

/// Returns true if a token is an address outside.
pub(super) fn is_address(token: &str) -> bool {
    let token = token.trim_end_matches(['.', ':', '!', '?']);
    if let Some((scheme, rest)) = token.split_once("://") {
        return matches!(
            scheme.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default(),
            "http" | "https" | "ftp" | "sftp" | "ssh" | "ws" | "wss" | "git" | "s3" | "smb" | "scp"
        ) && !is_local(rest);
    }
    // CJK text has no spaces: take the ASCII around the dot.
    let ascii = token
        .split(|character: char| !character.is_ascii())
        .find(|piece| piece.contains('.'))
        .unwrap_or_default();
    if let Some((name, host)) = ascii.split_once('@') {
        return !name.is_empty() && is_host(host);
    }
    is_host(ascii) || is_network(ascii)
}

fn is_local(rest: &str) -> bool {
    ["localhost", "127.", "[::1]", "0.0.0.0"].iter().any(|local| rest.starts_with(local))
}

fn is_host(token: &str) -> bool {
    let host = token.split(['/', ':', '?', '#']).next().unwrap_or_default();
    let mut labels = host.rsplit('.');
    let ending = labels.next().unwrap_or_default();
    let plain = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    ENDINGS.contains(&ending) && labels.clone().count() > 0 && labels.all(plain)
}

fn is_network(token: &str) -> bool {
    let address = token.split(['/', ':']).next().unwrap_or_default();
    let parts: Vec<&str> = address.splitn(5, '.').collect();
    parts.len() == 4
        && parts.iter().all(|part| part.parse::<u8>().is_ok())
        && !address.starts_with("127.")
        && !address.starts_with("0.")
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_are_distinguished_from_files_and_numbers() {
        for address in [
            "https://a.example/x",
            "sftp://drop@a.example.net/in/",
            "mail@a.example",
            "192.0.2.7",
            "203.0.113.0/24",
            "collect.example.com",
            "host.test:8080/path",
            "同步到sample.a.example",
        ] {
            assert!(is_address(address), "{address}");
        }
        for other in
            ["main.rs", "1.5", "e.g.", "v1.2.3.4.5", "package.json", "http://localhost:80", "a.b"]
        {
            assert!(!is_address(other), "{other}");
        }
    }
}

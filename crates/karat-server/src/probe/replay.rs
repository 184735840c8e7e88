//! A command line that repeats a call, safe to paste into a shell.
//!
//! Every word is quoted, the arguments are JSON in plain ASCII (so that invisible characters become
//! visible and nothing reverses the line), and the server's secrets are left out.

use std::fmt::Write as _;

use karat_mcp::auth::AuthSpec;
use karat_mcp::{Elicitation, Engine, Policies, Roots, Sampling, ServerSpec};
use serde_json::{Map, Value};

use karat_io::time::Time;

/// The default time limits of `karat server call`, and of `karat server attack`.
const CALL_TIMEOUTS_MS: (u64, u64) = (30_000, 30_000);
pub(crate) const ATTACK_TIMEOUTS_MS: (u64, u64) = (15_000, 30_000);
/// The longest line that is of use in a shell.
const MAX_LINE: usize = 64 << 10;

/// The flags for the time limits of a call and of a start, in milliseconds, where they are not the
/// defaults of the command.
pub(crate) fn timeout_flags(limits: (u64, u64), defaults: (u64, u64)) -> Vec<String> {
    let flags = [("--timeout", limits.0, defaults.0), ("--start-timeout", limits.1, defaults.1)];
    let unusual = flags.iter().filter(|(_, limit, default)| limit != default);
    let written = |limit: u64| Time::from_millis(limit).to_string();
    unusual.flat_map(|(flag, limit, _)| [(*flag).to_owned(), written(*limit)]).collect()
}

/// `karat server call …` for these arguments and time limits; `redact` takes secrets out of each word.
#[must_use]
pub(crate) fn call(
    spec: &ServerSpec,
    tool: &str,
    arguments: &Map<String, Value>,
    timeouts: Option<(u64, u64)>,
    redact: &dyn Fn(&str) -> String,
) -> String {
    let input = ascii(&Value::Object(arguments.clone()));
    let mut words: Vec<String> =
        ["call", "--tool", tool, "--input", &input].map(str::to_owned).to_vec();
    words.extend(timeouts.into_iter().flat_map(|limits| timeout_flags(limits, CALL_TIMEOUTS_MS)));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let line = line(spec, &words, redact);
    if line.len() > MAX_LINE {
        return format!("(the input has {} bytes: run fuzz again with the same seed)", input.len());
    }
    line
}

/// `karat server WORDS… SERVER`.
#[must_use]
pub(crate) fn line(spec: &ServerSpec, words: &[&str], redact: &dyn Fn(&str) -> String) -> String {
    let mut all: Vec<String> = ["karat", "server"].map(str::to_owned).to_vec();
    all.extend(words.iter().map(|word| (*word).to_owned()));
    if let Some(url) = &spec.url {
        all.extend(["--url".to_owned(), url.clone()]);
    }
    if let Some(transport) = spec.transport
        && let Ok(Value::String(name)) = serde_json::to_value(transport)
    {
        all.extend(["--transport".to_owned(), name]);
    }
    if let Some(revision) = spec.protocol {
        all.extend(["--protocol".to_owned(), revision.to_string()]);
    }
    for (name, value) in &spec.env {
        all.extend(["-e".to_owned(), format!("{name}={value}")]);
    }
    for (name, value) in &spec.headers {
        all.extend(["--header".to_owned(), format!("{name}: {value}")]);
    }
    if let Some(file) = &spec.ca_file {
        all.extend(["--ca-file".to_owned(), file.display().to_string()]);
    }
    if let Some(auth) = &spec.auth {
        all.extend(login(auth));
    }
    if let Some(folder) = &spec.cwd {
        all.extend(["--cwd".to_owned(), folder.display().to_string()]);
    }
    if let Some(policies) = &spec.policies {
        all.extend(answers(policies));
    }
    if let Some(isolation) = spec.isolate.as_ref().filter(|one| one.engine != Engine::None) {
        all.extend(["--isolate".to_owned(), isolation.engine.name().to_owned()]);
        if isolation.network {
            all.push("--allow-network".to_owned());
        }
        if let Some(image) = &isolation.image {
            all.extend(["--image".to_owned(), image.clone()]);
        }
        let mounts = isolation.read.iter().map(|path| (path, "ro"));
        for (path, mode) in mounts.chain(isolation.write.iter().map(|path| (path, "rw"))) {
            all.extend(["--mount".to_owned(), format!("{}:{mode}", path.display())]);
        }
        let limits = [
            ("memory", isolation.memory_mb, "m"),
            ("file", isolation.file_mb, "m"),
            ("processes", isolation.processes, ""),
            ("cpu", isolation.cpu_seconds, ""),
            ("cpus", isolation.cpus, ""),
        ];
        for (what, amount, unit) in limits {
            let limit = amount.map(|amount| format!("{what}={amount}{unit}"));
            all.extend(limit.into_iter().flat_map(|limit| ["--limit".to_owned(), limit]));
        }
    }
    if let Some(command) = &spec.command {
        all.push("--".to_owned());
        all.extend(command.iter().cloned());
    }
    let quoted: Vec<String> = all.iter().map(|word| quoted(&redact(word))).collect();
    quoted.join(" ")
}

/// The flags of a login. Secrets are there only as variables.
fn login(auth: &AuthSpec) -> Vec<String> {
    let mut flags = vec!["--auth".to_owned(), auth.kind.name().to_owned()];
    let is_variable = |value: &&String| value.contains("${") && !value.contains(":-");
    let key = auth.private_key.as_ref().map(|file| file.display().to_string());
    for (flag, value) in [
        ("--client-id", auth.client_id.as_ref()),
        ("--client-secret", auth.client_secret.as_ref().filter(is_variable)),
        ("--private-key", key.as_ref()),
        ("--client-metadata", auth.client_metadata.as_ref()),
        ("--issuer", auth.issuer.as_ref()),
        ("--access-token", auth.access_token.as_ref().filter(is_variable)),
        ("--refresh-token", auth.refresh_token.as_ref().filter(is_variable)),
    ] {
        flags.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    for scope in &auth.scopes {
        flags.extend(["--scope".to_owned(), scope.clone()]);
    }
    if let Some(port) = auth.redirect_port {
        flags.extend(["--redirect-port".to_owned(), port.to_string()]);
    }
    flags
}

/// The flags that answer requests of the server.
fn answers(policies: &Policies) -> Vec<String> {
    let mut flags = Vec::new();
    if let Sampling::Answer { text, .. } = &policies.sampling {
        flags.push(format!("--sampling={text}"));
    }
    let elicitation = match &policies.elicitation {
        Elicitation::Refuse => None,
        Elicitation::Accept(content) => Some(ascii(&Value::Object(content.clone()))),
        other => Value::from(other.clone()).as_str().map(str::to_owned),
    };
    flags.extend(elicitation.map(|answer| format!("--elicitation={answer}")));
    if let Roots::List(roots) = &policies.roots {
        flags.extend(roots.iter().map(|root| format!("--roots={root}")));
    }
    flags
}

/// A word for a shell, in single quotes, inside which only the quote itself has a meaning. Zero bytes
/// are dropped: the arguments of a program cannot contain them.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\0', "").replace('\'', r"'\''"))
}

/// A value as JSON with everything outside of ASCII escaped.
#[must_use]
pub(crate) fn ascii(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        if c.is_ascii() && c != '\u{7f}' {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn arguments(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    proptest! {
        #[test]
        fn a_shell_splits_the_line_into_the_original_words(tool in "\\PC{1,12}", text in any::<String>(), word in "[^\\x00]{1,12}") {
            let spec = ServerSpec::from_command(vec![word.clone(), "$(x) `y` '".to_owned()]);
            let sent = arguments(&json!({"a": text}));
            let line = call(&spec, &tool, &sent, None, &str::to_owned);
            let words = shlex::split(&line).unwrap();
            prop_assert_eq!(&words[..5], &["karat", "server", "call", "--tool", &tool].map(str::to_owned)[..]);
            let back: Value = serde_json::from_str(&words[6]).unwrap();
            prop_assert_eq!(back, Value::Object(sent));
            prop_assert_eq!(&words[7..], &["--".to_owned(), word, "$(x) `y` '".to_owned()][..]);
        }
    }

    #[test]
    fn the_answers_to_requests_of_the_server_are_in_the_line() {
        let policies =
            json!({"sampling": {"text": "a b"}, "elicitation": "decline", "roots": ["/d"]});
        let policies = serde_json::from_value(policies).unwrap();
        let spec =
            ServerSpec { policies: Some(policies), ..ServerSpec::from_command(vec!["s".into()]) };
        let line = call(&spec, "x", &Map::new(), None, &str::to_owned);
        assert!(line.ends_with("'--sampling=a b' --elicitation=decline --roots=/d -- s"), "{line}");
    }

    #[test]
    fn a_login_is_in_the_line_with_its_secrets_as_variables_alone() {
        let line = |secret: &str| {
            let auth = json!({"kind": "client-credentials", "client_id": "me", "client_secret": secret,
                "scopes": ["a"]});
            let auth = Some(serde_json::from_value(auth).unwrap());
            let spec = ServerSpec { auth, ..ServerSpec::from_url("http://h/mcp") };
            call(&spec, "x", &Map::new(), None, &str::to_owned)
        };
        let flags = "--auth client-credentials --client-id me --client-secret '${S}' --scope a";
        assert!(line("${S}").ends_with(flags), "{}", line("${S}"));
        for literal in ["hush", "${S:-hush}"] {
            assert!(!line(literal).contains("hush"), "{}", line(literal));
        }
    }

    #[test]
    fn invisible_characters_are_escaped_and_secrets_are_left_out() {
        let mut spec = ServerSpec::from_url("http://127.0.0.1:1/mcp");
        spec.headers.insert("Authorization".to_owned(), "Bearer hush".to_owned());
        let sent = arguments(&json!({"t": "\u{202e}👩"}));
        let line = call(&spec, "x", &sent, None, &|word| word.replace("hush", "[redacted]"));
        assert!(line.contains("\\u202e\\ud83d\\udc69") && !line.contains("hush"), "{line}");
        assert!(line.contains("--url http://127.0.0.1:1/mcp"), "{line}");
    }
}

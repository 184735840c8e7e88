//! Headers of the HTTP response that a call must have.

use std::collections::BTreeMap;

use karat_core::expect::{Answer, Matcher, MatcherSpec, one_or_several};
use karat_io::redact::HIDDEN;
use karat_mcp::{Redactor, ResponseHead};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::json;

/// The reason for which a call over stdio or the old SSE transport does not meet any expectation of headers.
const NO_HEADERS: &str =
    "no response headers: `headers` is for servers over streamable HTTP (`--url`)";

/// The expectations of one header, as a suite has them.
#[derive(Default)]
pub(super) struct HeaderFile(Vec<MatcherSpec>);

impl<'de> Deserialize<'de> for HeaderFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<HeaderFile, D::Error> {
        one_or_several(from, "a matcher such as {equals: no-store}, or a list of matchers")
            .map(HeaderFile)
    }
}

/// An expectation of a header.
#[derive(Debug)]
pub struct Header {
    /// The name in lower case.
    name: String,
    matcher: Matcher,
}

impl HeaderFile {
    /// Checks the expectations of the header with this name.
    ///
    /// # Errors
    /// If the name is not one of a header, or a matcher is wrong.
    pub(super) fn compile(self, name: &str) -> Result<Vec<Header>, String> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("this is not the name of a header".to_owned());
        }
        if self.0.is_empty() {
            return Err("no condition; use {exists: true} to check for presence".into());
        }
        let name = name.to_ascii_lowercase();
        let compile = |spec: MatcherSpec| {
            if spec.json.is_some() || spec.result.is_some() || spec.block.is_some() {
                return Err("json, result and block do not apply to a header".to_owned());
            }
            if spec.snapshot.is_some() {
                return Err("a snapshot can be expected of the answer only".to_owned());
            }
            let matcher = MatcherSpec { json: Some(place(&name)), ..spec }.compile()?;
            Ok(Header { name: name.clone(), matcher })
        };
        self.0.into_iter().map(compile).collect()
    }
}

impl Header {
    /// The name in lower case.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The reason for which the kept headers are not the expected ones.
    pub(crate) fn unmet(&self, kept: Option<&BTreeMap<String, String>>) -> Option<String> {
        let Some(kept) = kept else { return Some(NO_HEADERS.to_owned()) };
        let found = json!({"structuredContent": kept});
        let why = self.matcher.check(&Answer::new(&found)).err()?;
        Some(why.replacen(&place(&self.name), &format!("the header {}", self.name), 1))
    }
}

fn place(name: &str) -> String {
    format!("$['{name}']")
}

/// The headers of a response that are looked at, without secrets; none if there was no such response.
pub(crate) fn kept(
    wanted: &[Header],
    head: &ResponseHead,
    redactor: &Redactor,
) -> Option<BTreeMap<String, String>> {
    // Several values are one text, as HTTP has it.
    let value = |name: &str| {
        let values: Vec<String> = head
            .values(name)
            .into_iter()
            .map(|value| match name {
                // Anyone who has it can speak in this session.
                "mcp-session-id" => HIDDEN.to_owned(),
                "set-cookie" => without_value(&value),
                _ => redactor.hidden(value),
            })
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    };
    let found =
        wanted.iter().filter_map(|header| Some((header.name.clone(), value(&header.name)?)));
    head.is_known().then(|| found.collect())
}

/// A cookie with its name and attributes alone.
fn without_value(cookie: &str) -> String {
    let (pair, attributes) = cookie.split_once(';').map_or((cookie, None), |(a, b)| (a, Some(b)));
    let name = pair.split_once('=').map_or("", |(name, _)| name);
    let attributes = attributes.map(|rest| format!(";{rest}")).unwrap_or_default();
    format!("{name}={HIDDEN}{attributes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, text: &str) -> Result<Vec<Header>, String> {
        let file: HeaderFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        file.compile(name)
    }

    #[test]
    fn conditions_are_about_the_value_of_the_header() {
        let kept = BTreeMap::from([
            ("content-type".to_owned(), "application/json".to_owned()),
            ("content-length".to_owned(), "12".to_owned()),
        ]);
        for (name, text, why) in [
            ("Content-Type", r#"{"contains": "json"}"#, None),
            ("content-length", r#"{"at_most": 20}"#, None),
            ("x-powered-by", r#"{"exists": false}"#, None),
            (
                "content-type",
                r#"{"equals": "text/html"}"#,
                Some("the header content-type is \"application/json\", expected \"text/html\""),
            ),
            (
                "cache-control",
                r#"{"contains": "no-store"}"#,
                Some("no value at the header cache-control"),
            ),
        ] {
            let unmet = header(name, text).unwrap()[0].unmet(Some(&kept));
            assert_eq!(unmet.as_deref(), why, "{name}: {text}");
        }
        let over_stdio = header("age", r#"{"exists": false}"#).unwrap()[0].unmet(None);
        assert!(over_stdio.unwrap().contains("streamable HTTP"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (name, text) in [
            ("content type", r#"{"equals": "x"}"#),
            ("", r#"{"equals": "x"}"#),
            ("age", "[]"),
            ("age", r#"{"json": "$.a", "equals": 1}"#),
            ("age", r#"{"snapshot": true}"#),
            ("age", r#"{"contain": "x"}"#),
            ("age", "3"),
        ] {
            assert!(header(name, text).is_err(), "{name}: {text}");
        }
    }

    #[test]
    fn the_value_of_a_cookie_is_not_kept() {
        assert_eq!(without_value("sid=abc; HttpOnly; Secure"), "sid=[redacted]; HttpOnly; Secure");
        assert_eq!(without_value("sid=abc"), "sid=[redacted]");
    }
}

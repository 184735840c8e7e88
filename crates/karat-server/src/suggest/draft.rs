//! A suite as YAML that a person reads and changes.
//!
//! Values are written as JSON, which is YAML too, so that nothing in an answer can be read as anything but
//! text.

use std::fmt::Write as _;

use karat_io::interpolate;
use serde_json::{Map, Value};

use crate::suite::Feature;

/// A request to a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) feature: Feature,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
}

impl Request {
    /// The reading of a resource.
    pub(crate) fn of_resource(uri: &str) -> Request {
        let arguments = Map::from_iter([("uri".to_owned(), Value::from(uri))]);
        Request { feature: Feature::Resource, name: uri.to_owned(), arguments }
    }

    /// The name for people.
    pub(crate) fn label(&self) -> String {
        self.feature.label(&self.name)
    }

    /// The lines of a case.
    fn lines(&self) -> Vec<String> {
        let name = escaped(&Value::from(self.name.as_str()));
        let mut lines = vec![format!("{}: {}", self.feature.name(), flow(&name))];
        if !self.arguments.is_empty() && self.feature != Feature::Resource {
            let input = escaped(&Value::Object(self.arguments.clone()));
            lines.push(format!("input: {}", flow(&input)));
        }
        lines
    }
}

/// The same value in a suite, where `${` puts in a saved one.
fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(interpolate::escaped(text)),
        Value::Array(items) => items.iter().map(escaped).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, one)| (key.clone(), escaped(one))).collect())
        }
        other => other.clone(),
    }
}

/// A suite under construction.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The name.
    pub(crate) name: String,
    /// The server, if it may be written down.
    pub(crate) server: Option<Value>,
    /// True if answers had something private in them, or may have had.
    pub(crate) hides_private: bool,
    /// The origin for the first line.
    pub(crate) described: String,
    /// The cases.
    pub(crate) cases: Vec<Case>,
    /// Cases that are written as comments.
    pub(crate) unwritten: Vec<Unwritten>,
}

/// A case.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) request: Request,
    /// The expected error.
    pub(crate) error: Option<String>,
    /// The matchers.
    pub(crate) expect: Vec<Value>,
    /// A remark for the reader.
    pub(crate) note: Option<String>,
}

/// A case that is a comment, with the reason.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub(crate) name: String,
    pub(crate) why: String,
    request: Option<Request>,
}

impl Draft {
    /// Leaves something out, with a request that could be its case.
    pub(crate) fn leave_out(&mut self, name: String, request: Option<Request>, why: String) {
        self.unwritten.push(Unwritten { name, why, request });
    }

    /// An id that no case has.
    pub(crate) fn unique(&self, id: &str) -> String {
        let is_free = |id: &String| self.cases.iter().all(|case| case.id != *id);
        let numbered = (2..).map(|number| format!("{id}-{number}"));
        std::iter::once(id.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// Turns a case into a comment.
    pub(crate) fn drop_case(&mut self, id: &str, why: String) {
        if let Some(at) = self.cases.iter().position(|case| case.id == id) {
            let case = self.cases.remove(at);
            // An error case is one of several for its tool, and nothing to fill in.
            let request = case.error.is_none().then_some(case.request);
            self.leave_out(case.id, request, why);
        }
    }

    /// The suite.
    pub(crate) fn to_yaml(&self) -> String {
        let mut out = String::new();
        comment(&mut out, "", &format!("Written by karat from the answers of {}.", self.described));
        out.push_str(
            "# A case expects what the server answered, which need not be what it should answer: review\n\
             # each one before it gates anything. docs/server.md of Karat lists all that a suite can say.\n",
        );
        let _ = writeln!(out, "name: {}", text(&self.name));
        if let Some(server) = &self.server {
            let _ = writeln!(out, "server: {}", flow(server));
        }
        if self.hides_private {
            out.push_str(
                "# Secrets and personal data are removed from answers before they are judged and kept.\n\
                 hide_private: true\n",
            );
        }
        out.push_str(if self.cases.is_empty() { "cases: []\n" } else { "cases:\n" });
        self.cases.iter().for_each(|case| case.write(&mut out));
        if !self.unwritten.is_empty() {
            out.push_str(
                "\n  # Not part of the suite. Fill in arguments and expectations, and remove the `#`, where \
                 a call is safe.\n",
            );
        }
        for one in &self.unwritten {
            out.push('\n');
            comment(&mut out, "  ", &format!("{}: {}", one.name, one.why));
            let lines = one.request.iter().flat_map(Request::lines);
            for (at, line) in lines.enumerate() {
                let start = if at == 0 { "- " } else { "  " };
                comment(&mut out, "  ", &format!("{start}{line}"));
            }
        }
        out
    }
}

impl Case {
    /// Writes the case as an entry of `cases`.
    pub(crate) fn write(&self, out: &mut String) {
        if let Some(note) = &self.note {
            comment(out, "  ", note);
        }
        let _ = writeln!(out, "  - id: {}", text(&self.id));
        for line in self.request.lines() {
            let _ = writeln!(out, "    {line}");
        }
        if let Some(error) = &self.error {
            let _ = writeln!(out, "    error: {error}");
        }
        if !self.expect.is_empty() {
            out.push_str("    expect:\n");
        }
        for matcher in &self.expect {
            let _ = writeln!(out, "      - {}", flow(matcher));
        }
    }
}

/// A comment on one line.
fn comment(out: &mut String, indent: &str, text: &str) {
    let line: String = text.chars().map(|c| if is_plain(c) { c } else { ' ' }).collect();
    let _ = writeln!(out, "{indent}# {line}");
}

/// A value in YAML's flow style.
fn flow(value: &Value) -> String {
    match value {
        Value::String(one) => text(one),
        Value::Array(all) => {
            format!("[{}]", all.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| {
                // Keys of matchers and plain names are easier to read without quotes.
                let is_name = key.starts_with(|c: char| c.is_ascii_lowercase())
                    && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                    && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
                        .contains(&key.as_str());
                let key = if is_name { key.clone() } else { text(key) };
                format!("{key}: {}", flow(value))
            };
            format!("{{{}}}", fields.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A text in double quotes, with everything that is not printable escaped.
fn text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_plain(c) => out.push(c),
            c if u32::from(c) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

/// Returns whether a character can be in a YAML file and is visible there.
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff0}'..='\u{ffff}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::suite::{Suite, variables};

    #[test]
    fn whatever_an_answer_holds_is_read_back_as_the_same_value() {
        let nasty = "a: ${b} \"b\" # c\n\t\u{85}\u{202e}\u{feff}'{}[]&*!|>%@`👩 ~";
        let arguments = json!({"null": null, "no": nasty, nasty: [1, 2.5, {"x y": true}]});
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let case = Case {
            id: nasty.to_owned(),
            request: Request {
                feature: Feature::Tool,
                name: "true".to_owned(),
                arguments: arguments.clone(),
            },
            error: None,
            expect: vec![json!({"contains": nasty})],
            note: Some("two\nlines".to_owned()),
        };
        let mut draft = Draft { name: nasty.into(), cases: vec![case], ..Draft::default() };
        draft.leave_out("x\ny".to_owned(), Some(Request::of_resource(nasty)), nasty.to_owned());
        let yaml = draft.to_yaml();
        let suite = Suite::parse(Path::new("s.yaml"), yaml.as_bytes()).unwrap();
        assert_eq!(suite.name, nasty);
        let case = &suite.cases[0];
        assert_eq!((case.id.as_str(), case.step.tool.as_str()), (nasty, "true"));
        let sent = variables::fill(&case.step.input, &variables::Variables::new());
        assert_eq!(sent.unwrap(), arguments);
        assert_eq!(suite.cases.len(), 1);
    }
}

//! Findings as SARIF 2.1.0, for the code-scanning pages of forges.
//!
//! A finding is about a tool of a live server, not about a file, so the location that matters is the
//! logical one: the tool's name and the place in its definition. The physical one is the project file,
//! because GitHub refuses a log in which a location has none.

use karat_io::text::printable;
use serde_json::{Value, json};

/// Rules and results.
pub struct Log<'a> {
    /// Every rule that was run.
    pub rules: Vec<Rule<'a>>,
    /// The findings.
    pub results: Vec<Result<'a>>,
}

/// One rule.
#[derive(Clone, Copy)]
pub struct Rule<'a> {
    /// Its id.
    pub id: &'a str,
    /// A one-line description.
    pub summary: &'a str,
    /// The reason for it and what to do.
    pub help: &'a str,
    /// `error`, `warning` or `note`.
    pub level: &'a str,
}

/// One finding.
pub struct Result<'a> {
    /// The id of its rule.
    pub rule: &'a str,
    /// `error`, `warning` or `note`.
    pub level: &'a str,
    /// The problem.
    pub message: &'a str,
    /// The tool, or empty for the server as a whole.
    pub subject: &'a str,
    /// The place in its definition, as a JSON pointer.
    pub at: &'a str,
}

/// The document, with a final newline.
#[must_use]
pub fn document(log: &Log<'_>) -> String {
    let rules: Vec<Value> = log
        .rules
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.summary},
                "fullDescription": {"text": rule.help},
                "help": {"text": rule.help},
                "defaultConfiguration": {"level": rule.level},
            })
        })
        .collect();
    let results: Vec<Value> = log.results.iter().map(|result| finding(log, result)).collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "karat",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

fn finding(log: &Log<'_>, result: &Result<'_>) -> Value {
    let subject = if result.subject.is_empty() { "(server)" } else { result.subject };
    let subject = printable(subject);
    let mut finding = json!({
        "ruleId": result.rule,
        "level": result.level,
        "message": {"text": plain(&format!("{subject}: {}", printable(result.message)))},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": "karat.toml"},
                "region": {"startLine": 1},
            },
            "logicalLocations": [{
                "name": subject,
                "fullyQualifiedName": format!("{subject}{}", printable(result.at)),
                "kind": "function",
            }],
        }],
    });
    if let Some(index) = log.rules.iter().position(|rule| rule.id == result.rule) {
        finding["ruleIndex"] = json!(index);
    }
    finding
}

/// Brackets in a message would embed a link, so they get a backslash. Backslashes in front of them
/// are doubled, so that they cannot undo it.
fn plain(message: &str) -> String {
    let mut plain = String::with_capacity(message.len());
    let mut backslashes = 0;
    for character in message.chars() {
        if matches!(character, '[' | ']') {
            plain.extend(std::iter::repeat_n('\\', backslashes + 1));
        }
        backslashes = if character == '\\' { backslashes + 1 } else { 0 };
        plain.push(character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_hostile_text_stays_text() {
        let log = Log {
            rules: Vec::new(),
            results: vec![Result {
                rule: "b",
                level: "error",
                message: "see [l](https://attacker.example) \\[x](y)",
                subject: "t[0]",
                at: "",
            }],
        };
        let document: Value = serde_json::from_str(&document(&log)).unwrap();
        let found = &document["runs"][0]["results"][0];
        let text = r"t\[0\]: see \[l\](https://attacker.example) \\\[x\](y)";
        assert_eq!(found["message"]["text"], text);
        assert_eq!(found["locations"][0]["logicalLocations"][0]["name"], "t[0]");
    }

    #[test]
    fn a_finding_names_its_rule_and_hidden_characters_are_visible() {
        let log = Log {
            rules: vec![
                Rule { id: "a", summary: "s", help: "h", level: "note" },
                Rule { id: "b", summary: "s", help: "h", level: "error" },
            ],
            results: vec![Result {
                rule: "b",
                level: "error",
                message: "x\u{202e}y",
                subject: "t",
                at: "/name",
            }],
        };
        let document: Value = serde_json::from_str(&document(&log)).unwrap();
        let found = &document["runs"][0]["results"][0];
        assert_eq!(found["ruleIndex"], 1);
        assert_eq!(found["message"]["text"], "t: x\\u{202e}y");
        let place = &found["locations"][0];
        assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], "t/name");
        assert_eq!(place["physicalLocation"]["artifactLocation"]["uri"], "karat.toml");
    }
}

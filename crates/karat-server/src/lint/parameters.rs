//! Rules about the parameters of tools.

use std::collections::BTreeSet;

use karat_core::finding::Severity;
use serde_json::Value;

use super::definition::Parameter;
use super::{Findings, Server};
use crate::probe::Rule;

pub(super) const UNDOCUMENTED: Rule = Rule {
    id: "parameter-undocumented",
    severity: Severity::Warning,
    summary: "a parameter has no description",
    help: "A model has to guess the value: its unit, its format, a name or an id. One line is enough.",
};

pub(super) const UNTYPED: Rule = Rule {
    id: "parameter-untyped",
    severity: Severity::Warning,
    summary: "a parameter does not declare which values it takes",
    help: "Without a type every value is valid, so a wrong one is detected only inside the tool. Give \
           `type`, `enum`, `const`, or a reference.",
};

pub(super) const ENUM_CANDIDATE: Rule = Rule {
    id: "enum-candidate",
    severity: Severity::Note,
    summary: "the values of a parameter are listed in its description and not in its schema",
    help: "With an `enum` a client can check them and a model cannot invent another.",
};

/// Keywords that declare the values of a schema.
const DECIDES: [&str; 9] =
    ["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "$dynamicRef", "not"];

fn each(
    server: &Server<'_>,
    findings: &mut Findings<'_>,
    problem: impl Fn(&Parameter<'_>) -> Option<String>,
) {
    for (index, tool) in server.tools.iter().enumerate() {
        for parameter in tool.parameters() {
            if let Some(problem) = problem(&parameter) {
                let message = format!("{}: {problem}", parameter.name);
                findings.tool(index, tool, parameter.at.as_str(), message);
            }
        }
    }
}

pub(super) fn undocumented(server: &Server<'_>, findings: &mut Findings<'_>) {
    each(server, findings, |parameter| {
        (!parameter.is_described()).then(|| "missing description".to_owned())
    });
}

pub(super) fn untyped(server: &Server<'_>, findings: &mut Findings<'_>) {
    each(server, findings, |parameter| {
        let decides = parameter.schema == &Value::Bool(false)
            || DECIDES.iter().any(|keyword| parameter.has(keyword));
        (!decides).then(|| "any value is valid".to_owned())
    });
}

pub(super) fn enum_candidate(server: &Server<'_>, findings: &mut Findings<'_>) {
    each(server, findings, |parameter| {
        let plain = parameter.schema.get("type").and_then(Value::as_str) == Some("string");
        if !plain || ["enum", "const", "pattern", "format"].iter().any(|key| parameter.has(key)) {
            return None;
        }
        let values = listed(parameter.text("description")?)?;
        Some(format!("the description lists {}", values.join(", ")))
    });
}

/// The values that a description lists: three or more quoted words in a sentence that announces a list.
/// Examples are not a list of all values.
fn listed(description: &str) -> Option<Vec<String>> {
    description.split(['.', ';', '\n']).find_map(|sentence| {
        let lower = sentence.to_lowercase();
        let example = ["e.g", "example", "such as", "like ", "for instance", "etc"];
        if example.iter().any(|word| lower.contains(word)) {
            return None;
        }
        let closed = ["one of", "either", "allowed", "valid values", "possible values", "must be"];
        if !closed.iter().any(|word| lower.contains(word)) {
            return None;
        }
        let values = quoted(sentence);
        (values.len() >= 3).then(|| values.into_iter().collect())
    })
}

/// The words in quotes or backticks.
fn quoted(sentence: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for mark in ['\'', '"', '`'] {
        let parts: Vec<&str> = sentence.split(mark).collect();
        // Every second part is between an opening and a closing mark.
        for part in parts.iter().skip(1).step_by(2) {
            let word = !part.is_empty() && part.len() <= 40 && !part.contains(char::is_whitespace);
            if word && !part.starts_with(',') {
                found.insert((*part).to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::found;
    use super::*;

    fn tool(properties: &Value) -> Value {
        json!({"name": "t", "inputSchema": {"type": "object", "properties": properties}})
    }

    fn places(rule: &Rule, properties: &Value) -> Vec<String> {
        found(rule, &[tool(properties)]).into_iter().map(|(_, at, _)| at).collect()
    }

    #[test]
    fn parameters_without_a_description_are_found_at_every_depth() {
        let properties = json!({
            "described": {"type": "string", "description": "The path"},
            "bare": {"type": "string"},
            "outer": {"type": "object", "description": "Options", "properties": {"inner": {"type": "integer"}}},
            "referred": {"$ref": "#/$defs/x"},
        });
        assert_eq!(
            places(&UNDOCUMENTED, &properties),
            ["/inputSchema/properties/bare", "/inputSchema/properties/outer/properties/inner"]
        );
    }

    #[test]
    fn a_parameter_that_takes_any_value_is_found() {
        let properties =
            json!({"a": {"description": "x"}, "b": true, "c": {"enum": [1, 2]}, "d": false});
        assert_eq!(
            places(&UNTYPED, &properties),
            ["/inputSchema/properties/a", "/inputSchema/properties/b"]
        );
    }

    #[test]
    fn listed_values_are_found_and_examples_are_not() {
        let properties = json!({
            "order": {"type": "string", "description": "Must be one of 'name', 'date' or 'size'."},
            "unit": {"type": "string", "description": "For example 'km', 'mile' or 'yard'; must be known."},
            "done": {"type": "string", "enum": ["a", "b", "c"], "description": "one of 'a', 'b', 'c'"},
            "free": {"type": "string", "description": "Must be the user's \"full\" name"},
        });
        assert_eq!(places(&ENUM_CANDIDATE, &properties), ["/inputSchema/properties/order"]);
        let messages = found(&ENUM_CANDIDATE, &[tool(&properties)]);
        assert_eq!(messages[0].2, "order: the description lists date, name, size");
    }
}

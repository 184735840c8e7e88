//! The differences between the definitions that a server had and those that it serves now, by what they
//! mean for a client: new tools, schemas that accept more or less, tools that may destroy something, and
//! descriptions that models read.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::finding::{Finding, Severity};
use serde_json::{Map, Value};

use crate::detect::{Detector, Subject};
use crate::probe::Rule;
use crate::probe::destructive_tools::destructive;

const NEW_TOOL: Rule = Rule {
    id: "new-tool",
    severity: Severity::Warning,
    summary: "the server has a tool that it did not have",
    help: "Models may call it from now on. Review it, and accept it with --update.",
};
const NEW_DESTRUCTIVE_TOOL: Rule = Rule {
    id: "new-destructive-tool",
    severity: Severity::Error,
    summary: "the server has a new tool that may destroy something, or a tool has become one",
    help: "Clients that approved the server earlier did not approve this. Review it before it is used.",
};
const REMOVED_TOOL: Rule = Rule {
    id: "removed-tool",
    severity: Severity::Error,
    summary: "the server no longer has a tool",
    help: "Calls of it fail. Restore the tool, or change its callers.",
};
const NARROWER_SCHEMA: Rule = Rule {
    id: "narrower-schema",
    severity: Severity::Error,
    summary: "arguments that were valid are refused now",
    help: "Existing calls break. Keep the old arguments valid, or give the tool another name.",
};
const WIDER_SCHEMA: Rule = Rule {
    id: "wider-schema",
    severity: Severity::Warning,
    summary: "a tool accepts arguments that it did not accept",
    help: "A wider tool can do more than what was approved. Review it.",
};
const CHANGED_SCHEMA: Rule = Rule {
    id: "changed-schema",
    severity: Severity::Warning,
    summary: "a schema changed in a way that is neither wider nor narrower for sure",
    help: "Compare both, and run the suite.",
};
const REWORDED: Rule = Rule {
    id: "reworded",
    severity: Severity::Warning,
    summary: "a description changed",
    help: "Models read descriptions as instructions, and choose tools by them. Review the new text.",
};
const REWORDED_INSTRUCTIONS: Rule = Rule {
    id: "reworded-instructions",
    severity: Severity::Warning,
    summary: "the instructions of the server changed",
    help: "Clients put them in front of every conversation. Review the new text.",
};
/// A canary call that no longer ends as its case expects.
pub const CANARY: Rule = Rule {
    id: "canary",
    severity: Severity::Error,
    summary: "a canary call no longer ends as its case expects",
    help: "The definitions may be the same, and the behaviour is another. Run the suite for the details.",
};
const CHANGED_FIELD: Rule = Rule {
    id: "changed-field",
    severity: Severity::Note,
    summary: "another field of a definition changed",
    help: "Titles, icons and annotations change what clients show.",
};

/// The depth to which schemas are compared.
const MAX_DEPTH: usize = 12;

/// Compares the definitions of then and now, by name. The detector inspects definitions that are new or
/// changed.
#[must_use]
pub fn compare(before: &[Value], after: &[Value], detector: Option<Detector>) -> Vec<Finding> {
    let (old, new) = (by_name(before), by_name(after));
    let mut drift = Drift { tool: "", found: Vec::new() };
    for (name, definition) in &old {
        drift.tool = name;
        match new.get(name) {
            None => drift.add(&REMOVED_TOOL, "", "the tool is gone".to_owned()),
            Some(now) => drift.definition(definition, now),
        }
    }
    for (name, definition) in &new {
        drift.tool = name;
        match (old.contains_key(name), destructive(definition)) {
            (true, _) => {}
            (false, Some(why)) => {
                drift.add(&NEW_DESTRUCTIVE_TOOL, "", format!("a new tool; {why}"));
            }
            (false, None) => drift.add(&NEW_TOOL, "", "a new tool".to_owned()),
        }
    }
    let mut found = drift.found;
    for (name, definition) in new.iter().filter(|(name, now)| old.get(*name) != Some(*now)) {
        let suspicions = detector.map(|detector| detector(Subject::Tool(definition)));
        found.extend(suspicions.into_iter().flatten().map(|one| Finding {
            rule: one.rule.to_owned(),
            severity: one.severity,
            tool: (*name).to_owned(),
            at: one.at,
            message: one.message,
            ..Finding::default()
        }));
    }
    found.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.tool.cmp(&b.tool)));
    found
}

/// Compares the instructions of then and now.
#[must_use]
pub fn compare_instructions(
    before: Option<&str>,
    after: Option<&str>,
    detector: Option<Detector>,
) -> Vec<Finding> {
    if before == after {
        return Vec::new();
    }
    let mut drift = Drift { tool: "", found: Vec::new() };
    let value = |text: Option<&str>| text.map(Value::from);
    let message = change(value(before).as_ref(), value(after).as_ref());
    drift.add(&REWORDED_INSTRUCTIONS, "/instructions", message);
    let suspicions =
        detector.zip(after).map(|(detector, text)| detector(Subject::Instructions(text)));
    drift.found.extend(suspicions.into_iter().flatten().map(|one| Finding {
        rule: one.rule.to_owned(),
        severity: one.severity,
        at: one.at,
        message: one.message,
        ..Finding::default()
    }));
    drift.found
}

fn by_name(definitions: &[Value]) -> BTreeMap<&str, &Value> {
    definitions.iter().filter_map(|one| Some((one.get("name")?.as_str()?, one))).collect()
}

struct Drift<'a> {
    tool: &'a str,
    found: Vec<Finding>,
}

impl Drift<'_> {
    fn add(&mut self, rule: &Rule, at: &str, message: String) {
        self.found.push(Finding {
            rule: rule.id.to_owned(),
            severity: rule.severity,
            tool: self.tool.to_owned(),
            at: at.to_owned(),
            message,
            ..Finding::default()
        });
    }

    fn definition(&mut self, before: &Value, after: &Value) {
        if let (None, Some(why)) = (destructive(before), destructive(after)) {
            self.add(&NEW_DESTRUCTIVE_TOOL, "", format!("was harmless, and now {why}"));
        }
        self.description("", before, after);
        match (before.get("inputSchema"), after.get("inputSchema")) {
            (Some(before), Some(after)) => self.schema("/inputSchema", before, after, MAX_DEPTH),
            (None, None) => {}
            (None, Some(_)) => {
                self.add(&NARROWER_SCHEMA, "/inputSchema", "was not declared".to_owned());
            }
            (Some(_), None) => {
                self.add(&WIDER_SCHEMA, "/inputSchema", "is no longer declared".to_owned());
            }
        }
        if before.get("outputSchema") != after.get("outputSchema") {
            let message = match (before.get("outputSchema"), after.get("outputSchema")) {
                (None, _) => "is declared now",
                (_, None) => "is no longer declared",
                _ => "differs",
            };
            self.add(&CHANGED_SCHEMA, "/outputSchema", message.to_owned());
        }
        let compared = ["name", "description", "inputSchema", "outputSchema"];
        for key in keys(before, after).into_iter().filter(|key| !compared.contains(key)) {
            if before.get(key) != after.get(key) {
                self.add(
                    &CHANGED_FIELD,
                    &format!("/{key}"),
                    change(before.get(key), after.get(key)),
                );
            }
        }
    }

    fn description(&mut self, at: &str, before: &Value, after: &Value) {
        let (old, new) = (before.get("description"), after.get("description"));
        if old != new {
            self.add(&REWORDED, &format!("{at}/description"), change(old, new));
        }
    }

    fn schema(&mut self, at: &str, before: &Value, after: &Value, depth: usize) {
        if before == after {
            return;
        }
        let (Some(old), Some(new), Some(depth)) =
            (before.as_object(), after.as_object(), depth.checked_sub(1))
        else {
            self.add(&CHANGED_SCHEMA, at, change(Some(before), Some(after)));
            return;
        };
        if at != "/inputSchema" {
            self.description(at, before, after);
        }
        self.properties(at, old, new, depth);
        for key in keys(before, after) {
            let (was, is) = (old.get(key), new.get(key));
            if was == is {
                continue;
            }
            match key {
                "properties" | "required" | "description" => {}
                "type" | "enum" => self.set(at, key, was, is),
                "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                    self.bound(at, key, was, is, false);
                }
                "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                    self.bound(at, key, was, is, true);
                }
                "additionalProperties" => {
                    let closed = |value: Option<&Value>| value == Some(&Value::Bool(false));
                    let rule = match (closed(was), closed(is)) {
                        (true, false) => &WIDER_SCHEMA,
                        (false, true) => &NARROWER_SCHEMA,
                        _ => &CHANGED_SCHEMA,
                    };
                    self.add(rule, &format!("{at}/{key}"), change(was, is));
                }
                "items" if was.is_some() && is.is_some() => {
                    if let (Some(was), Some(is)) = (was, is) {
                        self.schema(&format!("{at}/items"), was, is, depth);
                    }
                }
                "pattern" | "format" | "const" | "uniqueItems" if is.is_none() => {
                    self.add(&WIDER_SCHEMA, &format!("{at}/{key}"), change(was, is));
                }
                "pattern" | "format" | "const" if was.is_none() => {
                    self.add(&NARROWER_SCHEMA, &format!("{at}/{key}"), change(was, is));
                }
                "title" | "default" | "examples" | "$schema" | "deprecated" => {
                    self.add(&CHANGED_FIELD, &format!("{at}/{key}"), change(was, is));
                }
                _ => self.add(&CHANGED_SCHEMA, &format!("{at}/{key}"), change(was, is)),
            }
        }
    }

    fn properties(
        &mut self,
        at: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        depth: usize,
    ) {
        let fields = |schema: &Map<String, Value>| {
            schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let names = |schema: &Map<String, Value>| -> BTreeSet<String> {
            let all = schema.get("required").and_then(Value::as_array);
            all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (was, is) = (fields(old), fields(new));
        let (needed, needs) = (names(old), names(new));
        for name in was.keys().filter(|name| !is.contains_key(*name)) {
            let at = format!("{at}/properties/{name}");
            self.add(&NARROWER_SCHEMA, &at, "the parameter is gone".to_owned());
        }
        for (name, schema) in &is {
            let at = format!("{at}/properties/{name}");
            match was.get(name) {
                Some(before) => self.schema(&at, before, schema, depth),
                None if needs.contains(name) => {
                    self.add(&NARROWER_SCHEMA, &at, "a new required parameter".to_owned());
                }
                None => self.add(&WIDER_SCHEMA, &at, "a new parameter".to_owned()),
            }
        }
        for name in needs.difference(&needed).filter(|name| was.contains_key(*name)) {
            self.add(
                &NARROWER_SCHEMA,
                &format!("{at}/properties/{name}"),
                "is required now".to_owned(),
            );
        }
        for name in needed.difference(&needs).filter(|name| is.contains_key(*name)) {
            self.add(
                &WIDER_SCHEMA,
                &format!("{at}/properties/{name}"),
                "is no longer required".to_owned(),
            );
        }
    }

    /// Compares sets of allowed types or values; without the keyword everything is allowed.
    fn set(&mut self, at: &str, key: &str, was: Option<&Value>, is: Option<&Value>) {
        let at = format!("{at}/{key}");
        let members = |value: &Value| match value {
            Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        };
        let rule = match (was.map(members), is.map(members)) {
            (None, _) => &NARROWER_SCHEMA,
            (_, None) => &WIDER_SCHEMA,
            (Some(was), Some(is)) => {
                let lost = was.iter().any(|one| !is.contains(one));
                let gained = is.iter().any(|one| !was.contains(one));
                match (lost, gained) {
                    (true, _) => &NARROWER_SCHEMA,
                    (false, true) => &WIDER_SCHEMA,
                    (false, false) => &CHANGED_FIELD,
                }
            }
        };
        self.add(rule, &at, change(was, is));
    }

    fn bound(&mut self, at: &str, key: &str, was: Option<&Value>, is: Option<&Value>, upper: bool) {
        let at = format!("{at}/{key}");
        let number = |value: Option<&Value>| value.and_then(Value::as_f64);
        let rule = match (number(was), number(is)) {
            (None, Some(_)) => &NARROWER_SCHEMA,
            (Some(_), None) => &WIDER_SCHEMA,
            (Some(was), Some(is)) if (is > was) == upper => &WIDER_SCHEMA,
            (Some(_), Some(_)) => &NARROWER_SCHEMA,
            (None, None) => &CHANGED_SCHEMA,
        };
        self.add(rule, &at, change(was, is));
    }
}

fn keys<'a>(before: &'a Value, after: &'a Value) -> BTreeSet<&'a str> {
    let both = before.as_object().into_iter().chain(after.as_object());
    both.flat_map(|fields| fields.keys().map(String::as_str)).collect()
}

fn change(was: Option<&Value>, is: Option<&Value>) -> String {
    let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), Value::to_string);
    format!("was {}, is {}", shown(was), shown(is))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules_of(before: &Value, after: &Value) -> Vec<(String, String)> {
        let tool = |schema: &Value| vec![json!({"name": "t", "inputSchema": schema})];
        let found = compare(&tool(before), &tool(after), None);
        found.into_iter().map(|one| (one.rule, one.at)).collect()
    }

    #[test]
    fn tools_come_go_and_become_destructive() {
        let before = [json!({"name": "a"}), json!({"name": "b"}), json!({"name": "same"})];
        let after = [
            json!({"name": "b", "annotations": {"destructiveHint": true}}),
            json!({"name": "delete_all"}),
            json!({"name": "look"}),
            json!({"name": "same"}),
        ];
        let found = compare(&before, &after, None);
        let found: Vec<(&str, &str)> =
            found.iter().map(|one| (one.tool.as_str(), one.rule.as_str())).collect();
        assert_eq!(
            found,
            [
                ("a", "removed-tool"),
                ("b", "new-destructive-tool"),
                ("delete_all", "new-destructive-tool"),
                ("look", "new-tool"),
                ("b", "changed-field"),
            ]
        );
        assert!(compare(&after, &after, None).is_empty());
    }

    #[test]
    fn a_schema_is_wider_or_narrower() {
        let base = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}},
            "required": ["a"]});
        let with = |pointer: &str, value: Value| {
            let mut schema = base.clone();
            *schema.pointer_mut(pointer).unwrap() = value;
            rules_of(&base, &schema)
        };
        let wider =
            |at: &str| vec![("wider-schema".to_owned(), format!("/inputSchema/properties/{at}"))];
        let narrower = |at: &str| {
            vec![("narrower-schema".to_owned(), format!("/inputSchema/properties/{at}"))]
        };
        assert_eq!(with("/required", json!([])), wider("a"));
        assert_eq!(with("/properties/a/maxLength", json!(9)), wider("a/maxLength"));
        assert_eq!(with("/properties/a/maxLength", json!(2)), narrower("a/maxLength"));
        assert_eq!(with("/properties/a/type", json!(["string", "null"])), wider("a/type"));
        assert_eq!(with("/properties/a/type", json!("integer")), narrower("a/type"));
        let mut more = base.clone();
        more["properties"]["b"] = json!({"type": "string"});
        assert_eq!(rules_of(&base, &more), wider("b"));
        assert_eq!(rules_of(&more, &base), narrower("b"));
        more["required"] = json!(["a", "b"]);
        assert_eq!(rules_of(&base, &more), narrower("b"));
    }

    #[test]
    fn descriptions_of_tools_and_parameters_are_compared() {
        let tool = |text: &str, inner: &str| {
            let schema = json!({"properties": {"a": {"description": inner}}});
            [json!({"name": "t", "description": text, "inputSchema": schema})]
        };
        let found = compare(&tool("x", "y"), &tool("z", "w"), None);
        let places: Vec<&str> = found.iter().map(|one| one.at.as_str()).collect();
        assert_eq!(places, ["/description", "/inputSchema/properties/a/description"]);
        assert!(found.iter().all(|one| one.rule == "reworded"));
    }
}

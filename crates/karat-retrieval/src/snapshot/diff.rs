//! The changes between two snapshots, field by field.
//!
//! Tools are matched by `server:tool`. Every place in a definition that differs is one change with a
//! JSON Pointer, so that a reworded description of one parameter is seen as that and not as "the
//! schema changed". The order of keys does not count, the order of tools neither.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Server, Snapshot};

/// The difference between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diff {
    /// Servers that are new, by name.
    pub servers_added: Vec<String>,
    /// Servers that are gone, by name.
    pub servers_removed: Vec<String>,
    /// Servers that say something else of themselves, such as other instructions.
    pub servers_changed: Vec<Changed>,
    /// Tools that are new.
    pub added: Vec<Tool>,
    /// Tools that are gone.
    pub removed: Vec<Tool>,
    /// Tools with another definition.
    pub changed: Vec<Changed>,
    /// The number of tools that are the same.
    pub unchanged: usize,
}

/// A tool that is in one snapshot only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// `server:tool`.
    pub id: String,
    /// Its definition.
    pub definition: Value,
}

/// A server or tool that is in both and differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changed {
    /// `server:tool`, or the name of the server.
    pub id: String,
    /// True if words that a model reads differ: a title, a description, instructions.
    pub reworded: bool,
    /// The places that differ, in order.
    pub fields: Vec<Field>,
}

/// One place that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// A JSON Pointer into the definition, such as `/inputSchema/properties/limit/default`.
    pub path: String,
    /// The earlier value; none if it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The present value; none if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl Diff {
    /// Compares two snapshots.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Diff {
        let mut diff = Diff::default();
        for (name, server) in &before.servers {
            match after.servers.get(name) {
                Some(other) => diff.server(name, server, other),
                None => {
                    diff.servers_removed.push(name.clone());
                    diff.removed.extend(all(name, server));
                }
            }
        }
        for (name, server) in &after.servers {
            if !before.servers.contains_key(name) {
                diff.servers_added.push(name.clone());
                diff.added.extend(all(name, server));
            }
        }
        for list in [&mut diff.added, &mut diff.removed] {
            list.sort_by(|a, b| a.id.cmp(&b.id));
        }
        diff.changed.sort_by(|a, b| a.id.cmp(&b.id));
        diff
    }

    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.servers_added.is_empty()
            && self.servers_removed.is_empty()
            && self.servers_changed.is_empty()
            && self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
    }

    /// The number of the changed tools are reworded.
    pub fn reworded(&self) -> usize {
        self.changed.iter().filter(|changed| changed.reworded).count()
    }

    fn server(&mut self, name: &str, before: &Server, after: &Server) {
        let mut fields = Vec::new();
        objects("", &before.about, &after.about, &mut fields);
        if !fields.is_empty() {
            self.servers_changed.push(changed(name.to_owned(), fields));
        }
        self.entries(&format!("{name}:"), &before.by_name(), &after.by_name());
    }

    /// Compares what has a name on both sides; `prefix` precedes the names in what differs.
    pub fn entries(
        &mut self,
        prefix: &str,
        old: &BTreeMap<&str, &Value>,
        new: &BTreeMap<&str, &Value>,
    ) {
        for (name, definition) in old {
            let id = format!("{prefix}{name}");
            let Some(other) = new.get(name) else {
                self.removed.push(Tool { id, definition: (*definition).clone() });
                continue;
            };
            let mut fields = Vec::new();
            values("", definition, other, &mut fields);
            match fields.is_empty() {
                true => self.unchanged += 1,
                false => self.changed.push(changed(id, fields)),
            }
        }
        let is_new = |(name, _): &(&&str, &&Value)| !old.contains_key(**name);
        self.added.extend(new.iter().filter(is_new).map(|(name, definition)| Tool {
            id: format!("{prefix}{name}"),
            definition: (*definition).clone(),
        }));
    }
}

fn all(name: &str, server: &Server) -> Vec<Tool> {
    let tools: BTreeMap<&str, &Value> = server.by_name();
    let tool = |(tool, definition): (&str, &Value)| Tool {
        id: format!("{name}:{tool}"),
        definition: definition.clone(),
    };
    tools.into_iter().map(tool).collect()
}

fn changed(id: String, fields: Vec<Field>) -> Changed {
    let words = |field: &Field| {
        let last = field.path.rsplit('/').next().unwrap_or_default();
        let text = |value: &Option<Value>| value.as_ref().is_none_or(Value::is_string);
        matches!(last, "description" | "title" | "instructions")
            && text(&field.before)
            && text(&field.after)
    };
    Changed { id, reworded: fields.iter().any(words), fields }
}

fn values(path: &str, before: &Value, after: &Value, fields: &mut Vec<Field>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => objects(path, before, after, fields),
        // Lists of the same length are compared item by item where the items have an inside to
        // compare; a list of plain values reads better as a whole.
        (Value::Array(before), Value::Array(after))
            if before.len() == after.len() && before.iter().chain(after).all(has_inside) =>
        {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                values(&format!("{path}/{index}"), before, after, fields);
            }
        }
        (before, after) if before == after => {}
        _ => fields.push(Field {
            path: path.to_owned(),
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

fn has_inside(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

fn objects(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    fields: &mut Vec<Field>,
) {
    let below = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    for (key, old) in before {
        match after.get(key) {
            Some(new) => values(&below(key), old, new, fields),
            None => fields.push(Field { path: below(key), before: Some(old.clone()), after: None }),
        }
    }
    for (key, new) in after {
        if !before.contains_key(key) {
            fields.push(Field { path: below(key), before: None, after: Some(new.clone()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
    fn snapshot(about: Value, tools: Value) -> Snapshot {
        let about = about.as_object().unwrap().clone();
        let server = Server { about, tools: tools.as_array().unwrap().clone() };
        Snapshot { servers: [("s".to_owned(), server)].into() }
    }

    #[test]
    fn every_place_that_differs_is_named() {
        let before = snapshot(
            json!({"instructions": "old"}),
            json!([{"name": "a", "description": "x", "inputSchema": {"properties": {"n/m": {"default": 1}}, "required": ["a"]}},
                   {"name": "gone"}, {"name": "same", "inputSchema": {"a": 1, "b": 2}}]),
        );
        let after = snapshot(
            json!({"instructions": "new"}),
            json!([{"name": "same", "inputSchema": {"b": 2, "a": 1}}, {"name": "new"},
                   {"name": "a", "description": "y", "inputSchema": {"properties": {"n/m": {"default": 2}}, "required": ["b"]}, "icons": [1]}]),
        );
        let diff = Diff::between(&before, &after);
        let ids = |tools: &[Tool]| tools.iter().map(|tool| tool.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&diff.added), ["s:new"]);
        assert_eq!(ids(&diff.removed), ["s:gone"]);
        assert_eq!((diff.unchanged, diff.changed.len()), (1, 1));
        let paths: Vec<&str> = diff.changed[0].fields.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "/description",
                "/inputSchema/properties/n~1m/default",
                "/inputSchema/required",
                "/icons"
            ]
        );
        assert!(diff.changed[0].reworded);
        assert_eq!(diff.servers_changed[0].fields[0].path, "/instructions");
    }

    #[test]
    fn a_schema_change_alone_is_not_a_rewording() {
        let of = |schema: Value| snapshot(json!({}), json!([{"name": "a", "inputSchema": schema}]));
        let diff = Diff::between(&of(json!({"type": "object"})), &of(json!({"type": "array"})));
        assert!(!diff.changed[0].reworded);
        // A parameter that is called title is not a title.
        let title = |v: i32| of(json!({"properties": {"title": {"x": v}}}));
        assert!(!Diff::between(&title(1), &title(2)).changed[0].reworded);
    }

    #[test]
    fn a_whole_server_that_comes_or_goes_brings_its_tools() {
        let one = snapshot(json!({}), json!([{"name": "a"}]));
        let diff = Diff::between(&Snapshot::default(), &one);
        assert_eq!((diff.servers_added.len(), diff.added.len()), (1, 1));
        let diff = Diff::between(&one, &Snapshot::default());
        assert_eq!((diff.servers_removed.len(), diff.removed.len()), (1, 1));
        assert!(Diff::between(&one, &one).is_empty());
    }
}

//! Which parameters of a tool an attack could go through, by their type, name, format and description.

use karat_mcp::Definition;
use serde_json::Value;

use crate::probe::caution::words;

/// A parameter at the outer level of a tool's arguments.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) schema: Value,
    /// What was a list of texts takes the text as its entry.
    pub(super) listed: bool,
}

/// The parameters of a tool.
pub(super) fn of(tool: &Definition) -> Vec<Parameter> {
    let properties = tool.input_schema().and_then(|schema| schema.get("properties"));
    let fields = properties.and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(name, schema)| {
            let items = schema.get("items").filter(|_| is(schema, "array"));
            let listed = items.is_some();
            let schema = items.unwrap_or(schema).clone();
            Parameter { name: name.clone(), schema, listed }
        })
        .collect()
}

fn is(schema: &Value, kind: &str) -> bool {
    let one = |schema: &Value| match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => false,
    };
    let ways = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key));
    one(schema) || ways.filter_map(Value::as_array).flatten().any(one)
}

const PATHS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filepath",
    "dir",
    "directory",
    "folder",
    "source",
    "destination",
    "location",
    "document",
    "uri",
    "root",
    "cwd",
    "workdir",
    "repo",
];
const URLS: &[&str] = &[
    "url", "urls", "uri", "uris", "link", "links", "href", "endpoint", "webhook", "callback",
    "host", "address", "website", "site", "page", "feed",
];
const QUERIES: &[&str] = &[
    "query", "sql", "filter", "where", "search", "term", "name", "user", "username", "id", "key",
    "table", "column", "email", "order", "sort",
];
const COUNTS: &[&str] = &[
    "count", "limit", "n", "size", "length", "number", "num", "max", "maximum", "amount", "times",
    "repeat", "lines", "bytes", "rows", "pages", "depth", "width", "height", "top", "total",
];
const PATTERNS: &[&str] = &["pattern", "regex", "regexp", "regular", "expression", "glob"];
/// Words of tools and parameters that run what they are given: that is what they are for.
const RUNNERS: &[&str] = &[
    "exec",
    "execute",
    "shell",
    "bash",
    "sh",
    "terminal",
    "eval",
    "evaluate",
    "script",
    "command",
    "cmd",
    "code",
    "python",
    "javascript",
    "run",
];
const DATABASES: &[&str] = &["sql", "query", "statement", "cypher"];

impl Parameter {
    fn has_word(&self, list: &[&str]) -> bool {
        words(&self.name).iter().any(|word| list.contains(&word.as_str()))
    }

    fn description(&self) -> String {
        let text = self.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        text.to_lowercase()
    }

    fn has_format(&self, list: &[&str]) -> bool {
        let format = self.schema.get("format").and_then(Value::as_str).unwrap_or_default();
        list.contains(&format)
    }

    /// A text that is not one of a list, long enough for an attack.
    pub(super) fn is_free_text(&self) -> bool {
        let longest = self.schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let typed = is(&self.schema, "string") || self.schema.get("type").is_none();
        let listed = self.schema.get("enum").is_some() || self.schema.get("const").is_some();
        let untyped_object = self.schema.get("properties").is_some();
        let dated = self.has_format(&["date", "date-time", "time", "duration", "uuid"]);
        typed && !listed && !untyped_object && !dated && longest >= 12
    }

    pub(super) fn is_path(&self) -> bool {
        let described = ["path", "file", "folder", "directory"];
        let about = self.description();
        self.is_free_text()
            && (self.has_word(PATHS)
                || described.iter().any(|word| {
                    about.split(|c: char| !c.is_alphanumeric()).any(|found| found == *word)
                }))
    }

    pub(super) fn is_url(&self) -> bool {
        let about = self.description();
        self.is_free_text()
            && (self.has_word(URLS)
                || self.has_format(&["uri", "url", "iri", "uri-reference"])
                || about.split(|c: char| !c.is_alphanumeric()).any(|word| word == "url"))
    }

    pub(super) fn is_query(&self) -> bool {
        self.is_free_text() && (self.has_word(QUERIES) || self.description().contains("query"))
    }

    pub(super) fn is_pattern(&self) -> bool {
        self.is_free_text() && self.has_word(PATTERNS)
    }

    pub(super) fn is_count(&self) -> bool {
        (is(&self.schema, "integer") || is(&self.schema, "number")) && self.has_word(COUNTS)
    }

    /// Whether running what it is given is what it is for.
    pub(super) fn runs_commands(&self, tool: &str) -> bool {
        self.has_word(RUNNERS) || words(tool).iter().any(|word| RUNNERS.contains(&word.as_str()))
    }

    /// Whether asking a database what it is given is what it is for.
    pub(super) fn asks_database(&self, tool: &Definition) -> bool {
        let about = tool.description().unwrap_or_default().to_lowercase();
        let named = |name: &str| words(name).iter().any(|word| DATABASES.contains(&word.as_str()));
        (named(&self.name) || named(tool.name()))
            && (about.contains("sql")
                || self.description().contains("sql")
                || self.has_word(&["sql"]))
    }

    /// The most that the schema allows, if it says so.
    pub(super) fn maximum(&self) -> Option<i64> {
        let above =
            self.schema.get("exclusiveMaximum").and_then(Value::as_i64).map(|most| most - 1);
        self.schema.get("maximum").and_then(Value::as_i64).or(above)
    }

    /// A value in the form that the parameter takes.
    pub(super) fn value(&self, value: Value) -> Value {
        if self.listed { Value::Array(vec![value]) } else { value }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameter(name: &str, schema: Value) -> Parameter {
        Parameter { name: name.to_owned(), schema, listed: false }
    }

    #[test]
    fn parameters_are_known_by_name_format_and_description() {
        let text = || json!({"type": "string"});
        assert!(parameter("filePath", text()).is_path());
        assert!(
            parameter("x", json!({"type": "string", "description": "The file to read"})).is_path()
        );
        assert!(!parameter("profile", text()).is_path());
        assert!(parameter("x", json!({"type": "string", "format": "uri"})).is_url());
        assert!(parameter("imageUrl", text()).is_url());
        assert!(parameter("user_name", text()).is_query());
        assert!(parameter("maxRows", json!({"type": "integer"})).is_count());
        assert!(!parameter("year", json!({"type": "integer"})).is_count());
        assert!(parameter("regex", text()).is_pattern());
        assert!(
            parameter("x", json!({"anyOf": [{"type": "string"}, {"type": "null"}]})).is_free_text()
        );
    }

    #[test]
    fn what_has_only_some_values_cannot_carry_an_attack() {
        assert!(!parameter("path", json!({"type": "string", "enum": ["a"]})).is_path());
        assert!(!parameter("path", json!({"type": "string", "maxLength": 3})).is_path());
        assert!(!parameter("path", json!({"type": "integer"})).is_path());
    }

    #[test]
    fn a_tool_that_runs_commands_is_no_hole_by_itself() {
        assert!(parameter("command", json!({})).runs_commands("x"));
        assert!(parameter("x", json!({})).runs_commands("run_shell"));
        assert!(!parameter("host", json!({})).runs_commands("ping"));
    }
}

//! Where in the arguments of a tool an attack could go in, by type, name, format and description.
//!
//! References are followed, of alternatives the one is taken that carries most, and objects and lists
//! are walked into, as far as the bounds here allow.

use karat_mcp::Definition;
use serde_json::{Map, Value};

use crate::fuzz::shape::{Plain, Shapes};
use crate::fuzz::values::{Extent, base};
use crate::probe::caution::words;

/// How many places of one tool are looked at when those within others are counted, and how deep they lie.
const PLACES: usize = 40;
const DEPTH: usize = 4;
/// How often a value stands in a list that demands several.
const ENTRIES: u64 = 4;

/// A place in the arguments of a tool that takes a value.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// The names on the way to it, with dots between.
    pub(super) name: String,
    /// The parameter at the outer level that it is or lies in.
    pub(super) outer: String,
    /// Its own name.
    key: String,
    /// What it takes, without references and alternatives.
    schema: Plain,
    /// What is said about it.
    about: String,
    /// What stands around the value, from the outside in.
    around: Vec<Around>,
}

#[derive(Clone, Debug)]
enum Around {
    /// An object with what it must have beside the value.
    Field { others: Map<String, Value>, name: String },
    /// A list with so many of the value.
    Entries(usize),
}

/// The parameters of a tool.
pub(super) fn of(tool: &Definition) -> Vec<Parameter> {
    let mut found = Vec::new();
    let Some(schema) = tool.input_schema() else { return found };
    let shapes = Shapes::new(schema);
    let whole = shapes.plain(schema).unwrap_or_default();
    for (name, schema) in whole.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let start = Parameter {
            name: name.clone(),
            outer: name.clone(),
            key: name.clone(),
            schema: Plain::new(),
            about: String::new(),
            around: Vec::new(),
        };
        walk(&shapes, schema, start, &mut found);
    }
    found
}

/// Finds the places at and below one value.
fn walk(shapes: &Shapes<'_>, schema: &Value, mut here: Parameter, found: &mut Vec<Parameter>) {
    if here.around.len() > DEPTH || (!here.is_outer() && found.len() >= PLACES) {
        return;
    }
    // What cannot be understood may take anything. The first of the best counts.
    let ways = shapes.alternatives(schema);
    let best = ways.into_iter().rev().max_by_key(burden).unwrap_or_default();
    for said in [schema.get("description"), best.get("description")].into_iter().flatten() {
        here.about.push_str(&said.as_str().unwrap_or_default().to_lowercase());
        here.about.push(' ');
    }
    here.schema = best;
    match here.kind() {
        Some("array") => walk_list(shapes, &here, found),
        Some("object") => walk_object(shapes, here, found),
        _ => found.push(here),
    }
}

fn walk_list(shapes: &Shapes<'_>, here: &Parameter, found: &mut Vec<Parameter>) {
    let before = found.len();
    if let Some(items) = here.schema.get("items") {
        let least = here.schema.get("minItems").and_then(Value::as_u64).unwrap_or(1);
        let count = usize::try_from(least.clamp(1, ENTRIES)).unwrap_or(1);
        let mut inner = here.clone();
        inner.around.push(Around::Entries(count));
        walk(shapes, items, inner, found);
    }
    let is_there = found.iter().skip(before).any(|place| place.name == here.name);
    if here.around.is_empty() && !is_there {
        found.push(here.clone());
    }
}

fn walk_object(shapes: &Shapes<'_>, here: Parameter, found: &mut Vec<Parameter>) {
    let others = match base(shapes, &Value::Object(here.schema.clone()), Extent::Required) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let fields = here.schema.get("properties").and_then(Value::as_object).cloned();
    for (key, schema) in fields.into_iter().flatten() {
        let mut inner = Parameter {
            name: format!("{}.{key}", here.name),
            key: key.clone(),
            about: String::new(),
            ..here.clone()
        };
        inner.around.push(Around::Field { others: others.clone(), name: key });
        walk(shapes, &schema, inner, found);
    }
    if here.around.is_empty() {
        found.push(here);
    }
}

/// How much an alternative can carry.
fn burden(way: &Plain) -> u8 {
    let is_listed = way.contains_key("enum") || way.contains_key("const");
    match way.get("type").and_then(Value::as_str) {
        _ if is_listed => 1,
        Some("string") | None => 5,
        Some("array") => 4,
        Some("object") => 3,
        Some("integer" | "number") => 2,
        Some(_) => 0,
    }
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
/// Names of hosts, which may be put into an address by the tool.
const HOSTS: &[&str] = &["host", "hosts", "hostname", "address", "domain", "ip", "server", "node"];
/// Parameters of such a name are there to be run.
const RUN: &[&str] = &["command", "commands", "cmd", "script", "shell", "bash", "eval"];
/// Together with those they still are.
const RUN_BESIDE: &[&str] = &[
    "code",
    "python",
    "javascript",
    "js",
    "source",
    "line",
    "run",
    "execute",
    "exec",
    "to",
    "the",
];
/// Words of tools that run what they are given.
const RUNNERS: &[&str] =
    &["shell", "bash", "powershell", "terminal", "eval", "evaluate", "python", "javascript"];
/// What such a tool may be called as well, or what is said of it.
const RUNS: &[&str] = &[
    "run",
    "runs",
    "exec",
    "execute",
    "executes",
    "interpreter",
    "sandbox",
    "code",
    "snippet",
    "evaluates",
    "script",
];
/// Parameters of such a name are there to be asked of a database.
const DATABASES: &[&str] = &["sql", "query", "queries", "statement", "statements", "cypher"];
const LANGUAGES: &[&str] = &["sql", "cypher"];

/// The words of a text.
fn said(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether a text speaks of a query in its language, and not only of a database that has one.
fn speaks_of_queries(text: &str) -> bool {
    let found: Vec<&str> = said(text).collect();
    found.windows(2).any(|two| {
        (LANGUAGES.contains(&two[0]) || two[0] == "select") && DATABASES.contains(&two[1])
    })
}

fn has_any(found: &[String], list: &[&str]) -> bool {
    found.iter().any(|word| list.contains(&word.as_str()))
}

impl Parameter {
    fn kind(&self) -> Option<&str> {
        self.schema.get("type").and_then(Value::as_str)
    }

    fn has_word(&self, list: &[&str]) -> bool {
        has_any(&words(&self.name), list)
    }

    fn is_said(&self, list: &[&str]) -> bool {
        said(&self.about).any(|word| list.contains(&word))
    }

    fn has_format(&self, list: &[&str]) -> bool {
        let format = self.schema.get("format").and_then(Value::as_str).unwrap_or_default();
        list.contains(&format)
    }

    /// Whether it is a parameter of the tool itself, and not within another one.
    pub(super) fn is_outer(&self) -> bool {
        self.name == self.outer
    }

    /// A text that is not one of a list, long enough for an attack.
    pub(super) fn is_free_text(&self) -> bool {
        let longest = self.schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let typed = self.kind().is_none_or(|kind| kind == "string");
        let listed = self.schema.contains_key("enum") || self.schema.contains_key("const");
        let dated = self.has_format(&["date", "date-time", "time", "duration", "uuid"]);
        typed && !listed && !dated && longest >= 12
    }

    pub(super) fn is_path(&self) -> bool {
        let described = ["path", "file", "folder", "directory"];
        self.is_free_text() && (self.has_word(PATHS) || self.is_said(&described))
    }

    pub(super) fn is_url(&self) -> bool {
        self.is_free_text()
            && (self.has_word(URLS)
                || self.has_word(HOSTS)
                || self.has_format(&["uri", "url", "iri", "uri-reference", "hostname"])
                || self.is_said(&["url"]))
    }

    /// Whether it may be only a part of an address.
    pub(super) fn is_host(&self) -> bool {
        self.is_url() && (self.has_word(HOSTS) || self.has_format(&["hostname"]))
    }

    pub(super) fn is_query(&self) -> bool {
        self.is_free_text() && (self.has_word(QUERIES) || self.about.contains("query"))
    }

    pub(super) fn is_pattern(&self) -> bool {
        self.is_free_text() && self.has_word(PATTERNS)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self.kind(), Some("integer" | "number"))
            && !self.schema.contains_key("enum")
            && !self.schema.contains_key("const")
    }

    pub(super) fn is_count(&self) -> bool {
        self.is_number() && self.has_word(COUNTS)
    }

    /// Whether running what it is given is what it is for: its whole name says so, or it is the one
    /// text of a tool that is a shell. A word among others (`country_code`, `run_report`) is none.
    pub(super) fn runs_commands(&self, tool: &Definition, is_only_text: bool) -> bool {
        let (own, name) = (words(&self.key), words(tool.name()));
        let about = tool.description().unwrap_or_default().to_lowercase();
        let all = |list: &[&[&str]]| {
            !own.is_empty()
                && own.iter().all(|word| list.iter().any(|list| list.contains(&word.as_str())))
        };
        let is_command = has_any(&own, RUN) && all(&[RUN, RUN_BESIDE]);
        let is_code = all(&[RUN_BESIDE]) && has_any(&own, &["code", "python", "javascript", "js"]);
        let is_run = has_any(&name, RUNNERS)
            || has_any(&name, RUNS)
            || said(&about).chain(said(&self.about)).any(|word| RUNS.contains(&word));
        is_command || (is_code && is_run) || (is_only_text && has_any(&name, RUNNERS))
    }

    /// Whether asking a database what it is given is what it is for: its whole name says so, and it or
    /// its tool speaks of SQL as a language.
    pub(super) fn asks_database(&self, tool: &Definition) -> bool {
        let (own, name) = (words(&self.key), words(tool.name()));
        let about = tool.description().unwrap_or_default().to_lowercase();
        let is_query = !own.is_empty() && own.iter().all(|word| DATABASES.contains(&word.as_str()));
        let is_language = has_any(&own, LANGUAGES)
            || has_any(&name, LANGUAGES)
            || speaks_of_queries(&self.about)
            || speaks_of_queries(&about);
        is_query && is_language
    }

    /// The most that the schema allows, if it says so.
    pub(super) fn maximum(&self) -> Option<i64> {
        let number = |key: &str| {
            let bound = self.schema.get(key)?;
            bound.as_i64().or_else(|| whole(bound.as_f64()?))
        };
        number("maximum").or(number("exclusiveMaximum").map(|most| most.saturating_sub(1)))
    }

    /// Puts a value in its place, with what must stand around it.
    pub(super) fn put(&self, arguments: &mut Map<String, Value>, mut value: Value) {
        for (depth, around) in self.around.iter().enumerate().rev() {
            value = match around {
                Around::Entries(count) => Value::Array(vec![value; *count]),
                Around::Field { others, name } => {
                    let given = arguments.get(&self.outer).and_then(Value::as_object);
                    let mut fields = given.filter(|_| depth == 0).unwrap_or(others).clone();
                    fields.insert(name.clone(), value);
                    Value::Object(fields)
                }
            };
        }
        arguments.insert(self.outer.clone(), value);
    }
}

/// The whole part of a bound, if it can be one.
#[expect(clippy::cast_possible_truncation, reason = "checked to be within")]
fn whole(bound: f64) -> Option<i64> {
    (bound.is_finite() && bound.abs() < 9e15).then_some(bound as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, about: &str, properties: &Value) -> Definition {
        let schema = json!({"type": "object", "properties": properties, "$defs": {
            "place": {"type": "string", "description": "The file to read"},
        }});
        Definition::new(json!({"name": name, "description": about, "inputSchema": schema})).unwrap()
    }

    fn parameter(name: &str, schema: &Value) -> Parameter {
        of(&tool("t", "", &json!({name: schema}))).remove(0)
    }

    fn runs(tool_name: &str, name: &str) -> bool {
        let tool = tool(tool_name, "", &json!({name: {"type": "string"}}));
        of(&tool)[0].runs_commands(&tool, true)
    }

    #[test]
    fn parameters_are_known_by_name_format_and_description() {
        let text = json!({"type": "string"});
        assert!(parameter("filePath", &text).is_path());
        assert!(
            parameter("x", &json!({"type": "string", "description": "The file to read"})).is_path()
        );
        assert!(!parameter("profile", &text).is_path());
        assert!(parameter("x", &json!({"type": "string", "format": "uri"})).is_url());
        assert!(parameter("imageUrl", &text).is_url());
        assert!(parameter("host", &text).is_host() && !parameter("url", &text).is_host());
        assert!(parameter("user_name", &text).is_query());
        assert!(parameter("maxRows", &json!({"type": "integer"})).is_count());
        assert!(!parameter("year", &json!({"type": "integer"})).is_count());
        assert!(parameter("regex", &text).is_pattern());
        assert!(
            parameter("x", &json!({"anyOf": [{"type": "string"}, {"type": "null"}]}))
                .is_free_text()
        );
    }

    #[test]
    fn what_has_only_some_values_cannot_carry_an_attack() {
        assert!(!parameter("path", &json!({"type": "string", "enum": ["a"]})).is_path());
        assert!(!parameter("path", &json!({"type": "string", "maxLength": 3})).is_path());
        assert!(!parameter("path", &json!({"type": "integer"})).is_path());
    }

    #[test]
    fn a_value_has_the_form_that_its_place_asks_for() {
        let put = |schema: &Value| {
            let mut arguments = Map::new();
            let places = of(&tool("t", "", &json!({"p": schema})));
            let place = places.iter().find(|place| place.is_path() || place.is_free_text());
            place.unwrap().put(&mut arguments, json!("x"));
            arguments["p"].clone()
        };
        let text = json!({"type": "string"});
        let texts = json!({"type": "array", "items": text});
        assert_eq!(put(&json!({"anyOf": [texts, {"type": "null"}]})), json!(["x"]));
        assert_eq!(put(&json!({"anyOf": [texts, text]})), json!("x"));
        assert_eq!(put(&json!({"$ref": "#/$defs/place"})), json!("x"));
        let object = json!({"type": "object", "properties": {
            "n": {"type": "integer", "minimum": 3}, "path": text}, "required": ["n", "path"]});
        assert_eq!(put(&object), json!({"n": 3, "path": "x"}));
        assert_eq!(put(&json!({"type": "array", "items": object})), json!([{"n": 3, "path": "x"}]));
    }

    #[test]
    fn places_within_others_have_names_and_a_bound() {
        let object = json!({"type": "object", "properties": {"path": {"$ref": "#/$defs/place"}}});
        let places = of(&tool("t", "", &json!({"options": object, "count": {"type": "integer"}})));
        let names: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["options.path", "options", "count"]);
        assert!(places[0].is_path() && !places[0].is_outer() && places[0].outer == "options");
        let many: Map<String, Value> =
            (0..100).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
        let wide = json!({"type": "object", "properties": many});
        assert!(of(&tool("t", "", &json!({"a": wide, "b": {}}))).len() <= PLACES + 2);
    }

    #[test]
    fn a_tool_that_runs_commands_is_no_hole_by_itself() {
        assert!(runs("x", "command") && runs("x", "shell_command") && runs("x", "script"));
        assert!(runs("run_python", "code") && runs("bash", "input"));
        for (tool, name) in [
            ("ping", "host"),
            ("lookup_country", "country_code"),
            ("lookup_country", "code"),
            ("run_report", "title"),
            ("find", "script_name"),
        ] {
            assert!(!runs(tool, name), "{tool} {name}");
        }
    }

    #[test]
    fn a_tool_that_takes_sql_is_no_hole_by_itself_and_one_that_has_a_database_may_be() {
        let asks = |about: &str, name: &str, said: &str| {
            let schema = json!({name: {"type": "string", "description": said}});
            let tool = tool("find_user", about, &schema);
            of(&tool)[0].asks_database(&tool)
        };
        assert!(asks("Runs a SQL query", "query", ""));
        assert!(asks("", "query", "SELECT SQL query to execute"));
        assert!(asks("", "sql", ""));
        assert!(!asks("Finds users of our PostgreSQL database", "query", "a part of the name"));
        assert!(!asks("Searches our SQL database", "query", "what to search for"));
        assert!(!asks("Finds users by SQL queries", "name", ""));
    }
}

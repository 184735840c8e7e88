//! The parameters of a tool that could carry an attack, by type, name, format and description.
//!
//! References are resolved, the alternative that carries most is chosen, and objects and lists are
//! searched within bounds.

use karat_mcp::Definition;
use serde_json::{Map, Value};

use crate::fuzz::shape::{Plain, Shapes};
use crate::fuzz::values::{Extent, base};
use crate::probe::destructive_tools::{is_in, split_name};

/// The number of parameters of one tool including nested ones, and their depth.
const MAX_PARAMETERS: usize = 40;
const MAX_DEPTH: usize = 4;
/// The number of copies of a value in a list that demands several.
const MAX_ENTRIES: u64 = 4;

/// A place in the arguments of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    /// The names that lead to it, with dots between them.
    pub(crate) name: String,
    /// The top-level parameter that contains it, or itself.
    pub(super) outer: String,
    /// Its own name.
    key: String,
    /// Its schema, without references and alternatives.
    schema: Plain,
    /// Its descriptions.
    about: String,
    /// The objects and lists around the value, from the outside in.
    around: Vec<Around>,
}

#[derive(Clone, Debug)]
enum Around {
    /// An object with its other required fields.
    Field { others: Map<String, Value>, name: String },
    /// A list with this many copies of the value.
    Entries(usize),
}

/// The parameters of a tool.
pub(crate) fn of(tool: &Definition) -> Vec<Parameter> {
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

/// Finds the parameters at and below one value.
fn walk(shapes: &Shapes<'_>, schema: &Value, mut here: Parameter, found: &mut Vec<Parameter>) {
    if here.around.len() > MAX_DEPTH || (!here.is_outer() && found.len() >= MAX_PARAMETERS) {
        return;
    }
    // A schema that is not understood may allow anything. The first of the best counts.
    let ways = shapes.alternatives(schema);
    let best = ways.into_iter().rev().max_by_key(capacity).unwrap_or_default();
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
        let count = usize::try_from(least.clamp(1, MAX_ENTRIES)).unwrap_or(1);
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
    let others = ordinary(shapes, &Value::Object(here.schema.clone()));
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

/// The required fields of an object. A list has an entry: many tools do nothing for none.
fn ordinary(shapes: &Shapes<'_>, schema: &Value) -> Map<String, Value> {
    let fields = |extent| match base(shapes, schema, extent) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let mut others = fields(Extent::Required);
    if others.values().any(is_empty_list) {
        let full = fields(Extent::All);
        for (name, value) in others.iter_mut().filter(|(_, value)| is_empty_list(value)) {
            if let Some(more) = full.get(name).filter(|more| more.is_array()) {
                value.clone_from(more);
            }
        }
    }
    others
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// The capacity of an alternative to carry an attack.
fn capacity(way: &Plain) -> u8 {
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

/// Words in the names of parameters.
const PATHS: &str = "\
    path paths file files filename filepath dir directory folder source destination location \
    document uri root cwd workdir repo";
const URLS: &str = "\
    url urls uri uris link links href endpoint webhook callback host address website site page \
    feed";
const QUERIES: &str = "\
    query sql filter where search term name user username id key table column email order sort";
const COUNTS: &str = "\
    count limit n size length number num max maximum amount times repeat lines bytes rows pages \
    depth width height top total";
const PATTERNS: &str = "pattern regex regexp regular expression glob";
/// Names of hosts, to which a tool may add the rest of an address.
const HOSTS: &str = "host hosts hostname address domain ip server node";
/// Words in the names of parameters whose purpose is to be run, and words that may go with them.
const RUN: &str = "command commands cmd script shell bash eval";
const RUN_COMPANIONS: &str = "code python javascript js source line run execute exec to the";
/// Words in the names of tools that run their input, and further words in their names and descriptions.
const RUNNERS: &str = "shell bash powershell terminal eval evaluate python javascript";
const RUNS: &str = "\
    run runs exec execute executes interpreter sandbox code snippet evaluates script";
/// Words in the names of parameters whose purpose is to query a database, and query languages.
const DATABASES: &str = "sql query queries statement statements cypher";
const LANGUAGES: &str = "sql cypher";

/// The words of a text.
fn tokenize(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns whether a text mentions queries in a query language, not only a database that has one.
fn mentions_queries(text: &str) -> bool {
    let found: Vec<&str> = tokenize(text).collect();
    found
        .windows(2)
        .any(|two| (is_in(two[0], LANGUAGES) || two[0] == "select") && is_in(two[1], DATABASES))
}

fn has_any(found: &[String], list: &str) -> bool {
    found.iter().any(|word| is_in(word, list))
}

fn has_only(found: &[String], list: &str) -> bool {
    !found.is_empty() && found.iter().all(|word| is_in(word, list))
}

impl Parameter {
    fn kind(&self) -> Option<&str> {
        self.schema.get("type").and_then(Value::as_str)
    }

    fn has_word(&self, list: &str) -> bool {
        has_any(&split_name(&self.name), list)
    }

    fn is_described(&self, list: &str) -> bool {
        tokenize(&self.about).any(|word| is_in(word, list))
    }

    fn has_format(&self, list: &str) -> bool {
        self.schema.get("format").and_then(Value::as_str).is_some_and(|one| is_in(one, list))
    }

    /// Returns whether it is a top-level parameter.
    pub(super) fn is_outer(&self) -> bool {
        self.name == self.outer
    }

    /// Returns whether it takes any text, long enough for an attack.
    pub(crate) fn is_free_text(&self) -> bool {
        let longest = self.schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let typed = self.kind().is_none_or(|kind| kind == "string");
        let listed = self.schema.contains_key("enum") || self.schema.contains_key("const");
        let dated = self.has_format("date date-time time duration uuid");
        typed && !listed && !dated && longest >= 12
    }

    pub(super) fn is_path(&self) -> bool {
        let described = "path file folder directory";
        self.is_free_text() && (self.has_word(PATHS) || self.is_described(described))
    }

    pub(super) fn is_url(&self) -> bool {
        self.is_free_text()
            && (self.has_word(URLS)
                || self.has_word(HOSTS)
                || self.has_format("uri url iri uri-reference hostname")
                || self.is_described("url"))
    }

    /// Returns whether it may be only a part of an address.
    pub(super) fn is_host(&self) -> bool {
        self.is_url() && (self.has_word(HOSTS) || self.has_format("hostname"))
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

    /// Returns whether its purpose is to be run: its whole name says so, or it is the only text of a tool that
    /// is a shell. One word among others (`country_code`, `run_report`) does not say so.
    pub(super) fn runs_commands(&self, tool: &Definition, is_only_text: bool) -> bool {
        let (own, name) = (split_name(&self.key), split_name(tool.name()));
        let about = tool.description().unwrap_or_default().to_lowercase();
        let is_command = has_any(&own, RUN) && has_only(&own, &format!("{RUN} {RUN_COMPANIONS}"));
        let is_code = has_only(&own, RUN_COMPANIONS) && has_any(&own, "code python javascript js");
        let is_run = has_any(&name, RUNNERS)
            || has_any(&name, RUNS)
            || tokenize(&about).chain(tokenize(&self.about)).any(|word| is_in(word, RUNS));
        is_command || (is_code && is_run) || (is_only_text && has_any(&name, RUNNERS))
    }

    /// Returns whether it is the list of a program and its arguments.
    pub(super) fn is_words(&self, tool: &Definition, is_only_text: bool) -> bool {
        let is_list = matches!(self.around.as_slice(), [Around::Entries(_)]);
        let is_arguments = has_only(&split_name(&self.key), "argv args arguments command cmd");
        is_list && is_arguments && self.is_free_text() && {
            let about = tool.description().unwrap_or_default().to_lowercase();
            let mut all = split_name(tool.name());
            all.extend(tokenize(&about).map(str::to_owned));
            self.runs_commands(tool, is_only_text) || has_any(&all, RUNNERS) || has_any(&all, RUNS)
        }
    }

    /// Returns whether it is a program in a programming language, not a command line.
    pub(super) fn is_code(&self) -> bool {
        has_any(&split_name(&self.key), "code python javascript js source snippet")
    }

    /// Returns whether its purpose is to query a database: its whole name says so, and it or its tool mentions
    /// a query language.
    pub(super) fn asks_database(&self, tool: &Definition) -> bool {
        let (own, name) = (split_name(&self.key), split_name(tool.name()));
        let about = tool.description().unwrap_or_default().to_lowercase();
        let is_query = has_only(&own, DATABASES);
        let is_language = has_any(&own, LANGUAGES)
            || has_any(&name, LANGUAGES)
            || mentions_queries(&self.about)
            || mentions_queries(&about);
        is_query && is_language
    }

    /// The maximum that the schema gives.
    pub(super) fn maximum(&self) -> Option<i64> {
        let number = |key: &str| {
            let bound = self.schema.get(key)?;
            bound.as_i64().or_else(|| whole(bound.as_f64()?))
        };
        number("maximum").or(number("exclusiveMaximum").map(|most| most.saturating_sub(1)))
    }

    /// Puts a value in its place, with the objects and lists around it.
    pub(crate) fn put(&self, arguments: &mut Map<String, Value>, mut value: Value) {
        // A whole list takes the place of a list of copies.
        if let ([Around::Entries(_)], Value::Array(_)) = (self.around.as_slice(), &value)
            && self.kind() == Some("string")
        {
            arguments.insert(self.outer.clone(), value);
            return;
        }
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

/// The integer part of a bound, if it fits.
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
    fn parameters_are_recognized_by_name_format_and_description() {
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
    fn a_parameter_with_few_values_cannot_carry_an_attack() {
        assert!(!parameter("path", &json!({"type": "string", "enum": ["a"]})).is_path());
        assert!(!parameter("path", &json!({"type": "string", "maxLength": 3})).is_path());
        assert!(!parameter("path", &json!({"type": "integer"})).is_path());
    }

    #[test]
    fn a_value_is_wrapped_as_its_schema_demands() {
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
    fn nested_parameters_have_names_and_their_number_is_bounded() {
        let object = json!({"type": "object", "properties": {"path": {"$ref": "#/$defs/place"}}});
        let places = of(&tool("t", "", &json!({"options": object, "count": {"type": "integer"}})));
        let names: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["options.path", "options", "count"]);
        assert!(places[0].is_path() && !places[0].is_outer() && places[0].outer == "options");
        let many: Map<String, Value> =
            (0..100).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
        let wide = json!({"type": "object", "properties": many});
        assert!(of(&tool("t", "", &json!({"a": wide, "b": {}}))).len() <= MAX_PARAMETERS + 2);
    }

    #[test]
    fn a_tool_whose_purpose_is_to_run_commands_is_recognized() {
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
    fn a_tool_whose_purpose_is_to_run_sql_is_recognized() {
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
    #[test]
    fn lists_next_to_a_parameter_have_an_entry() {
        let range = json!({"type": "object", "properties": {"start": {"type": "integer"}}, "required": ["start"]});
        let file = json!({"type": "object", "required": ["path", "ranges"], "properties": {
            "path": {"type": "string"}, "ranges": {"type": "array", "items": range}}});
        let tool = tool("t", "", &json!({"files": {"type": "array", "items": file}}));
        let mut arguments = Map::new();
        let places = of(&tool);
        let path = places.iter().find(|place| place.name == "files.path").unwrap();
        path.put(&mut arguments, json!("/x"));
        assert_eq!(arguments["files"][0]["path"], "/x");
        assert!(arguments["files"][0]["ranges"][0]["start"].is_number(), "{arguments:?}");
    }
}

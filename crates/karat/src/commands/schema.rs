//! `karat schema`: JSON Schemas, for editors and for scripts.
//!
//! Those of reports come from their types. Those of what people write, project files and suites, come
//! from the reference in the guide, which a test holds to the keys that the program takes: what an
//! editor shows for a key is what the guide says about it.

use serde_json::{Map, Value, json};

use crate::cli::{Document, SchemaArgs};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

const PROJECT: &str = include_str!("../../../../docs/project.md");
const SERVER: &str = include_str!("../../../../docs/server.md");

/// The line that names the schema of a project file to editors that read TOML.
pub(crate) const PROJECT_LINE: &str = "#:schema ./.karat/project.schema.json\n";
/// The line that names the schema of a suite to editors that read YAML.
pub(crate) const SUITE_LINE: &str = "# yaml-language-server: $schema=../.karat/suite.schema.json\n";

/// Prints the schema of a document.
pub(crate) fn run(arguments: &SchemaArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let schema = match arguments.document {
        Document::Report => karat_core::report::report_schema(),
        Document::Check => karat_core::report::check_schema(),
        Document::Project => project(),
        Document::Suite => suite(),
    };
    terminal.print_json(&schema)?;
    Ok(Exit::Pass)
}

/// A table of keys under a heading: the name of its definition, and the heading.
const PARTS: &[(&str, &str)] = &[
    ("history", "`[history]`"),
    ("server", "`[[server]]`"),
    ("load", "`[[load]]`"),
    ("fuzz", "`[[fuzz]]`"),
    ("attack", "`[[attack]]`"),
    ("retrieval", "`[[retrieval]]`"),
    ("detection", "`[[detection]]`"),
    ("agent", "`[[agent]]`"),
    ("outcomes", "`[[outcomes]]`"),
    ("resilience", "`[[resilience]]`"),
    ("gate", "`gate`"),
    ("rule", "A rule of `gate.metrics`"),
    ("protected", "`gate.protected`"),
    ("retrieval-system", "`system` of `[[retrieval]]`"),
    ("retrieval-http", "`system.http` of `[[retrieval]]`"),
    ("retrieval-mcp", "`system.mcp` of `[[retrieval]]`"),
    ("search-answer", "`answer` of a search"),
    ("ready", "`ready` of `[[retrieval]]`"),
    ("detection-system", "`system` of `[[detection]]`"),
    ("decision", "`system.decision` of `[[detection]]`"),
    ("batch", "`system.batch` of `[[detection]]`"),
    ("detection-http", "`system.http` of `[[detection]]`"),
    ("detection-mcp", "`system.mcp` of `[[detection]]`"),
    ("scanner-answer", "`answer` of a scanner"),
    ("live-server", "A server"),
    ("auth", "`auth` of a server"),
    ("policies", "`policies` of a server"),
];

/// Keys whose value is a table of its own: the part they are in, the key, the part they hold.
const NESTED: &[(&str, &str, &str)] = &[
    ("gate", "protected", "protected"),
    ("retrieval", "system", "retrieval-system"),
    ("retrieval", "ready", "ready"),
    ("retrieval-system", "http", "retrieval-http"),
    ("retrieval-system", "mcp", "retrieval-mcp"),
    ("retrieval-http", "answer", "search-answer"),
    ("retrieval-mcp", "answer", "search-answer"),
    ("retrieval-mcp", "server", "live-server"),
    ("detection", "system", "detection-system"),
    ("detection-system", "decision", "decision"),
    ("detection-system", "batch", "batch"),
    ("detection-system", "http", "detection-http"),
    ("detection-system", "mcp", "detection-mcp"),
    ("detection-http", "answer", "scanner-answer"),
    ("detection-mcp", "answer", "scanner-answer"),
    ("detection-mcp", "server", "live-server"),
    ("live-server", "auth", "auth"),
    ("live-server", "policies", "policies"),
    ("server", "server", "live-server"),
    ("load", "server", "live-server"),
    ("fuzz", "server", "live-server"),
    ("attack", "server", "live-server"),
];

/// The schema of karat.toml.
fn project() -> Value {
    let mut parts = Map::new();
    for (part, heading) in PARTS {
        let mut table = object(&keys(PROJECT, heading), true);
        for (within, key, holds) in NESTED.iter().filter(|(within, ..)| within == part) {
            refine(&mut table, key, json!({"$ref": format!("#/$defs/{holds}")}));
            let _ = within;
        }
        refine(&mut table, "gate", json!({"$ref": "#/$defs/gate"}));
        if *part == "gate" {
            let rules = json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/rule"}});
            refine(&mut table, "metrics", rules);
        }
        parts.insert((*part).to_owned(), table);
    }
    let mut whole = object(&keys(PROJECT, "The file"), true);
    for key in keys(PROJECT, "The file").iter().map(|key| key.name.as_str()) {
        let entry = match key {
            "name" => json!({"type": "string"}),
            "history" => json!({"$ref": "#/$defs/history"}),
            table => json!({"type": "array", "items": {"$ref": format!("#/$defs/{table}")}}),
        };
        refine(&mut whole, key, entry);
    }
    titled(whole, "karat.toml", parts)
}

/// The schema of a suite.
fn suite() -> Value {
    let case = keys(SERVER, "Suites");
    let of_step = ["tool", "resource", "prompt", "method", "input", "expect", "error", "save"];
    let step: Vec<Key> =
        case.iter().filter(|key| of_step.contains(&key.name.as_str())).cloned().collect();
    let other = |name: &str, about: &str| Key {
        name: name.to_owned(),
        about: about.to_owned(),
        default: String::new(),
        required: false,
    };
    let mut cases = case.clone();
    cases.push(other("name", "the same as `id`"));
    cases.push(other("description", "the same as `about`"));
    let mut case = object(&cases, true);
    let steps = json!({"type": "array", "items": {"$ref": "#/$defs/step"}});
    for key in ["setup", "teardown", "then"] {
        refine(&mut case, key, steps.clone());
    }
    let mut step = object(&step, true);
    if let Some(step) = step.as_object_mut() {
        let one_of: Vec<Value> =
            of_step[..4].iter().map(|key| json!({"required": [key]})).collect();
        step.insert("oneOf".to_owned(), json!(one_of));
    }
    let file = [
        other("name", "the name of the suite; by default the name of the file"),
        other("description", "a description for people"),
        other("mcp_server", "the server to measure"),
        other("server", "the same as `mcp_server`"),
        other("target", "the fraction of attempts that must pass for a reliable case"),
        other("repeat", "the number of attempts of each case; a case can override it"),
        other("setup", "calls before all cases"),
        other("teardown", "calls after all cases"),
        other("test_cases", "the cases"),
        other("cases", "the same as `test_cases`"),
    ];
    let mut whole = object(&file, true);
    for key in ["setup", "teardown"] {
        refine(&mut whole, key, steps.clone());
    }
    let list = json!({"type": "array", "items": {"$ref": "#/$defs/case"}});
    for key in ["test_cases", "cases"] {
        refine(&mut whole, key, list.clone());
    }
    let parts = Map::from_iter([("case".to_owned(), case), ("step".to_owned(), step)]);
    let whole = titled(whole, "Karat test suite", parts);
    // A list of cases alone is a suite too.
    let mut schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema"});
    if let (Some(schema), Value::Object(mut whole)) = (schema.as_object_mut(), whole) {
        whole.remove("$schema");
        for key in ["title", "$defs"] {
            if let Some(value) = whole.remove(key) {
                schema.insert(key.to_owned(), value);
            }
        }
        schema.insert("anyOf".to_owned(), json!([whole, list]));
    }
    schema
}

/// One key of a table of the guide.
#[derive(Clone, Debug)]
struct Key {
    name: String,
    about: String,
    default: String,
    required: bool,
}

/// The keys in the tables under a heading, up to the next heading.
fn keys(page: &str, heading: &str) -> Vec<Key> {
    let is_heading = |line: &&str| line.starts_with('#');
    let under = page
        .lines()
        .skip_while(|line| !is_heading(line) || line.trim_start_matches('#').trim() != heading)
        .skip(1)
        .take_while(|line| !is_heading(line));
    let mut found = Vec::new();
    for line in under.filter(|line| line.starts_with("| `") || line.starts_with("| **`")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let Some((names, rest)) = cells.split_first() else { continue };
        for name in names.split('`').skip(1).step_by(2) {
            // `expected_behavior: reject` names the key and a value.
            let name = name.split(':').next().unwrap_or(name).trim();
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if plain && !found.iter().any(|key: &Key| key.name == name) && name != "deny" {
                found.push(Key {
                    name: name.to_owned(),
                    about: unlinked(rest.first().unwrap_or(&"")),
                    default: rest.get(1).unwrap_or(&"").to_string(),
                    required: names.contains(&format!("**`{name}`**")),
                });
            }
        }
    }
    found
}

/// Text without the targets of its links.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(&before.replacen('[', "", 1));
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}

/// An object with these keys.
fn object(keys: &[Key], closed: bool) -> Value {
    let property = |key: &Key| {
        let mut property = Map::new();
        let about = match key.default.as_str() {
            "" | "–" => key.about.clone(),
            default => format!("{} (default: {})", key.about, unlinked(default)),
        };
        property.insert("description".to_owned(), json!(about));
        // A default that is written as a value shows the type.
        let default = key.default.trim_matches('`');
        if default.parse::<u64>().is_ok() {
            property.insert("type".to_owned(), json!("number"));
        } else if default == "true" || default == "false" {
            property.insert("type".to_owned(), json!("boolean"));
        }
        (key.name.clone(), Value::Object(property))
    };
    let required: Vec<&str> =
        keys.iter().filter(|key| key.required).map(|key| key.name.as_str()).collect();
    let mut object = json!({
        "type": "object",
        "properties": keys.iter().map(property).collect::<Map<_, _>>(),
    });
    if let Some(object) = object.as_object_mut() {
        if closed {
            object.insert("additionalProperties".to_owned(), json!(false));
        }
        if !required.is_empty() {
            object.insert("required".to_owned(), json!(required));
        }
    }
    object
}

/// Adds what is known of a property, if the table has it.
fn refine(table: &mut Value, key: &str, with: Value) {
    let property = table.get_mut("properties").and_then(|all| all.get_mut(key));
    if let (Some(Value::Object(property)), Value::Object(with)) = (property, with) {
        property.remove("type");
        property.extend(with);
    }
}

fn titled(mut schema: Value, title: &str, parts: Map<String, Value>) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        schema.insert("$schema".to_owned(), json!(dialect));
        schema.insert("title".to_owned(), json!(title));
        schema.insert("$defs".to_owned(), Value::Object(parts));
    }
    schema
}

/// The schema of karat.toml as a file.
pub(crate) fn project_text() -> String {
    karat_report::json::text(&project())
}

/// The schema of suites as a file.
pub(crate) fn suite_text() -> String {
    karat_report::json::text(&suite())
}

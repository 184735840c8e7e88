//! Results against the protocol, and arguments and results against the schemas that the server
//! itself declares.
//!
//! Each schema is compiled once. A tool without an output schema promises nothing, so nothing can be
//! said of its results; a tool that has one and answers without structured content breaks its word.
//! The protocol is held to what the revision that is spoken demands, and to no more.

use std::collections::BTreeMap;

use karat_core::schema::Compiled;
use karat_mcp::{Definition, Revision};
use serde_json::{Map, Value};

use crate::observation::Outcome;

/// The schemas of a server's tools, and the revision of the protocol that it speaks.
pub struct Contract {
    tools: BTreeMap<String, Schemas>,
    revision: Revision,
}

struct Schemas {
    input: Option<Result<Compiled, String>>,
    output: Option<Result<Compiled, String>>,
}

/// How something fits a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It does.
    Fits {
        /// What an engine that asserts formats would not accept.
        format_warnings: Vec<String>,
    },
    /// It does not.
    Breaks {
        /// The first reasons.
        reasons: Vec<String>,
    },
    /// Nothing is promised, so nothing can be said.
    NotPromised,
}

impl Fit {
    /// 1 or 0, or nothing where nothing can be said.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        match self {
            Fit::Fits { .. } => Some(1.0),
            Fit::Breaks { .. } => Some(0.0),
            Fit::NotPromised => None,
        }
    }

    /// Why it does not fit.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        match self {
            Fit::Breaks { reasons } => reasons,
            _ => &[],
        }
    }

    /// What an engine that asserts formats would not accept.
    #[must_use]
    pub fn format_warnings(&self) -> &[String] {
        match self {
            Fit::Fits { format_warnings } => format_warnings,
            _ => &[],
        }
    }

    fn breaks(reason: impl Into<String>) -> Fit {
        Fit::Breaks { reasons: vec![reason.into()] }
    }
}

/// How many reasons are given.
const REASONS: usize = 3;

impl Contract {
    /// Compiles the schemas of all tools.
    #[must_use]
    pub fn new(definitions: &[Definition], revision: Revision) -> Contract {
        let compiled = |schema: Option<&Value>| {
            schema.map(|schema| Compiled::new(schema).map_err(|error| error.to_string()))
        };
        let tools = definitions
            .iter()
            .map(|tool| {
                let input = compiled(tool.input_schema());
                let output = compiled(tool.output_schema());
                (tool.name().to_owned(), Schemas { input, output })
            })
            .collect();
        Contract { tools, revision }
    }

    /// Whether the server has the tool.
    #[must_use]
    pub fn knows(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// The names of all tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Arguments against the input schema.
    #[must_use]
    pub fn input(&self, tool: &str, arguments: &Map<String, Value>) -> Fit {
        match self.tools.get(tool).map(|schemas| &schemas.input) {
            None | Some(None) => Fit::NotPromised,
            Some(Some(Err(error))) => Fit::breaks(format!("the input schema is unusable: {error}")),
            Some(Some(Ok(schema))) => fit(schema, &Value::Object(arguments.clone())),
        }
    }

    /// What the protocol does not allow in a result.
    #[must_use]
    pub fn malformed(&self, result: &Value) -> Option<&'static str> {
        // A result that wants more input is another kind.
        if result.get("resultType").and_then(Value::as_str).is_some_and(|kind| kind != "complete") {
            return None;
        }
        if !result.get("isError").is_none_or(Value::is_boolean) {
            return Some("isError is not a boolean");
        }
        // Before, the field was not known; since, it may hold any value.
        let object = matches!(self.revision, Revision::V2025_06_18 | Revision::V2025_11_25);
        if object && !result.get("structuredContent").is_none_or(Value::is_object) {
            return Some("structuredContent is not an object");
        }
        let Some(content) = result.get("content") else { return Some("the result has no content") };
        let Some(blocks) = content.as_array() else { return Some("the content is not a list") };
        blocks.iter().find_map(malformed_block)
    }

    /// A result against the output schema. Errors are not held to it.
    #[must_use]
    pub fn output(&self, tool: &str, outcome: &Outcome) -> Fit {
        let Outcome::Result { result } = outcome else { return Fit::NotPromised };
        let Some(Some(schema)) = self.tools.get(tool).map(|schemas| &schemas.output) else {
            return Fit::NotPromised;
        };
        if outcome.is_tool_error() {
            return Fit::NotPromised;
        }
        match (schema, result.get("structuredContent")) {
            (Err(error), _) => Fit::breaks(format!("the output schema is unusable: {error}")),
            (Ok(_), None) => Fit::breaks(
                "the tool declares an output schema and answers without structuredContent",
            ),
            (Ok(schema), Some(content)) => fit(schema, content),
        }
    }
}

/// A block of any revision is one: what a newer one brought is no harm to an older client.
fn malformed_block(block: &Value) -> Option<&'static str> {
    let text = |pointer: &str| block.pointer(pointer).is_some_and(Value::is_string);
    match block.get("type").and_then(Value::as_str) {
        None => Some("a content block has no type"),
        Some("text") if !text("/text") => Some("a text block has no text"),
        Some("image" | "audio") if !text("/data") || !text("/mimeType") => {
            Some("an image or audio block lacks data or mimeType")
        }
        Some("resource_link") if !text("/uri") || !text("/name") => {
            Some("a link to a resource lacks uri or name")
        }
        Some("resource") if !text("/resource/uri") => Some("an embedded resource has no uri"),
        Some("resource") if !text("/resource/text") && !text("/resource/blob") => {
            Some("an embedded resource has neither text nor blob")
        }
        Some("text" | "image" | "audio" | "resource" | "resource_link") => None,
        Some(_) => Some("a content block has a type that the protocol does not know"),
    }
}

fn fit(schema: &Compiled, value: &Value) -> Fit {
    let compliance = schema.check(value);
    let words = |violation: &karat_core::schema::Violation| {
        let place = if violation.instance_path.is_empty() { "/" } else { &violation.instance_path };
        format!("{place}: {}", violation.message)
    };
    if compliance.valid {
        let format_warnings = compliance.format_warnings.iter().take(REASONS).map(words).collect();
        return Fit::Fits { format_warnings };
    }
    Fit::Breaks { reasons: compliance.errors.iter().take(REASONS).map(words).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn contract() -> Contract {
        spoken(Revision::default())
    }

    fn spoken(revision: Revision) -> Contract {
        let tool = json!({
            "name": "add",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
            "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]},
        });
        let silent = json!({"name": "silent", "inputSchema": {"type": "object"}});
        let broken = json!({"name": "broken", "inputSchema": {"type": "objekt"}});
        let definitions: Vec<Definition> =
            [tool, silent, broken].into_iter().map(|raw| Definition::new(raw).unwrap()).collect();
        Contract::new(&definitions, revision)
    }

    fn arguments(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn arguments_are_held_to_the_input_schema() {
        let contract = contract();
        assert_eq!(contract.input("add", &arguments(&json!({"a": 1}))).score(), Some(1.0));
        let wrong = contract.input("add", &arguments(&json!({"a": "1"})));
        assert_eq!(wrong.score(), Some(0.0));
        assert!(wrong.reasons()[0].starts_with("/a: "), "{wrong:?}");
        assert_eq!(contract.input("broken", &arguments(&json!({}))).score(), Some(0.0));
        assert_eq!(contract.input("unknown", &arguments(&json!({}))).score(), None);
    }

    #[test]
    fn results_are_held_to_the_output_schema_and_errors_are_not() {
        let contract = contract();
        let result = |value: Value| Outcome::Result { result: value };
        let score = |tool: &str, outcome: &Outcome| contract.output(tool, outcome).score();
        assert_eq!(score("add", &result(json!({"structuredContent": {"sum": 2}}))), Some(1.0));
        assert_eq!(score("add", &result(json!({"structuredContent": {"sum": "2"}}))), Some(0.0));
        assert_eq!(score("add", &result(json!({"content": []}))), Some(0.0));
        assert_eq!(score("add", &result(json!({"isError": true}))), None);
        assert_eq!(score("silent", &result(json!({"content": []}))), None);
        assert_eq!(score("add", &Outcome::Timeout), None);
    }

    #[test]
    fn results_that_the_protocol_allows_are_well_formed() {
        for revision in Revision::ALL {
            let contract = spoken(revision);
            for result in [
                json!({"content": []}),
                json!({"content": [{"type": "text", "text": ""}], "isError": false, "_meta": {"x": 1}}),
                json!({"content": [{"type": "text", "text": "a", "annotations": {"priority": 1}, "own": 2}]}),
                json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}),
                json!({"content": [{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]}),
                json!({"content": [{"type": "resource_link", "uri": "a:b", "name": "b"}]}),
                json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": ""}}]}),
                json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}}]}),
                json!({"content": [], "structuredContent": {}, "isError": true}),
                json!({"content": [], "resultType": "complete"}),
                json!({"resultType": "input_required", "inputRequests": {}}),
            ] {
                assert_eq!(contract.malformed(&result), None, "{revision}: {result}");
            }
        }
    }

    #[test]
    fn results_that_the_protocol_does_not_allow_are_malformed() {
        for revision in Revision::ALL {
            let contract = spoken(revision);
            for result in [
                json!({}),
                json!({"structuredContent": {"a": 1}}),
                json!({"content": "x"}),
                json!({"content": null}),
                json!({"content": [], "isError": "true"}),
                json!({"content": [], "isError": 1}),
                json!({"content": ["x"]}),
                json!({"content": [{"text": "x"}]}),
                json!({"content": [{"type": "song"}]}),
                json!({"content": [{"type": "text", "text": 5}]}),
                json!({"content": [{"type": "image"}]}),
                json!({"content": [{"type": "audio", "data": "AA=="}]}),
                json!({"content": [{"type": "resource_link", "uri": "a:b"}]}),
                json!({"content": [{"type": "resource", "resource": {"uri": "a:b"}}]}),
                json!({"content": [{"type": "resource", "uri": "a:b", "text": "x"}]}),
            ] {
                assert!(contract.malformed(&result).is_some(), "{revision}: {result}");
            }
        }
    }

    #[test]
    fn structured_content_is_what_its_revision_allows() {
        let malformed = |revision: Revision, content: &Value| {
            let result = json!({"content": [], "structuredContent": content});
            spoken(revision).malformed(&result).is_some()
        };
        for content in [json!([1]), json!("x"), json!(null)] {
            assert!(malformed(Revision::V2025_06_18, &content), "{content}");
            assert!(malformed(Revision::V2025_11_25, &content), "{content}");
            assert!(!malformed(Revision::V2026_07_28, &content), "{content}");
            assert!(!malformed(Revision::V2025_03_26, &content), "{content}");
        }
    }
}

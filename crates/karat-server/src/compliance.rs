//! Compliance of arguments and results with the schemas that the server declares, and of results with
//! the protocol.
//!
//! Each schema is compiled once. The results of a tool without an output schema are not checked
//! against one; a tool that has one and answers without structured content violates it. The protocol
//! is checked as the negotiated revision defines it.

use std::collections::BTreeMap;

use karat_core::schema::Compiled;
use karat_mcp::{Definition, Revision};
use serde_json::{Map, Value};

use crate::observation::{Called, Outcome};
use crate::suite::Feature;

/// The schemas of a server's tools, and the protocol revision that it speaks.
#[derive(Default)]
pub(crate) struct Contract {
    tools: BTreeMap<String, Known>,
    revision: Revision,
    /// True if the definitions were not recorded: nothing is known of the other tools of the server.
    is_partial: bool,
}

/// The knowledge of a tool.
enum Known {
    Defined(Box<Schemas>),
    /// Only that it was listed, and whether it declared an output schema.
    Recorded {
        declares_output: bool,
    },
}

struct Schemas {
    input: Option<Result<Compiled, String>>,
    output: Option<Result<Compiled, String>>,
}

/// The reason for which a result without structured content violates every output schema.
const NOT_STRUCTURED: &str =
    "the tool declares an output schema and answers without structuredContent";

/// The result of checking a value against a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It fits.
    Fits {
        /// Violations of `format`, which is not asserted.
        format_warnings: Vec<String>,
    },
    /// It does not fit.
    Breaks {
        /// The first violations.
        reasons: Vec<String>,
    },
    /// There is no schema.
    NotPromised,
}

impl Fit {
    /// The violations.
    pub(crate) fn reasons(&self) -> &[String] {
        match self {
            Fit::Breaks { reasons } => reasons,
            _ => &[],
        }
    }

    /// Violations of `format`.
    pub(crate) fn format_warnings(&self) -> &[String] {
        match self {
            Fit::Fits { format_warnings } => format_warnings,
            _ => &[],
        }
    }

    fn breaks(reason: impl Into<String>) -> Fit {
        Fit::Breaks { reasons: vec![reason.into()] }
    }
}

/// The number of violations that are listed.
const MAX_REASONS: usize = 3;

impl Contract {
    /// Compiles the schemas of all tools.
    pub(crate) fn new(definitions: &[Definition], revision: Revision) -> Contract {
        let compiled = |schema: Option<&Value>| {
            schema.map(|schema| Compiled::new(schema).map_err(|error| error.to_string()))
        };
        let tools = definitions
            .iter()
            .map(|tool| {
                let input = compiled(tool.input_schema());
                let output = compiled(tool.output_schema());
                (tool.name().to_owned(), Known::Defined(Box::new(Schemas { input, output })))
            })
            .collect();
        Contract { tools, revision, is_partial: false }
    }

    /// A contract without definitions: the tools that a recording shows to have been listed, each with whether it
    /// declared an output schema.
    pub(crate) fn recorded(listed: &BTreeMap<String, bool>, revision: Revision) -> Contract {
        Contract { is_partial: true, revision, ..Contract::default() }.with_recorded(listed)
    }

    /// The same with these tools, where nothing else is known of them.
    #[must_use]
    pub(crate) fn with_recorded(mut self, listed: &BTreeMap<String, bool>) -> Contract {
        for (name, declares_output) in listed {
            let known = Known::Recorded { declares_output: *declares_output };
            self.tools.entry(name.clone()).or_insert(known);
        }
        self
    }

    /// Returns whether a tool is known only from a recording of its calls.
    pub(crate) fn is_only_recorded(&self, tool: &str) -> bool {
        matches!(self.tools.get(tool), Some(Known::Recorded { .. }))
    }

    /// Returns whether the definitions of the tools are not known.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    fn defined(&self, tool: &str) -> Option<&Schemas> {
        match self.tools.get(tool)? {
            Known::Defined(schemas) => Some(schemas),
            Known::Recorded { .. } => None,
        }
    }

    /// Returns whether the server has the tool.
    pub(crate) fn knows(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// The names of all tools.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Checks arguments against the input schema.
    pub(crate) fn input(&self, tool: &str, arguments: &Map<String, Value>) -> Fit {
        match self.defined(tool).map(|schemas| &schemas.input) {
            None | Some(None) => Fit::NotPromised,
            Some(Some(Err(error))) => Fit::breaks(format!("the input schema is unusable: {error}")),
            Some(Some(Ok(schema))) => fit(schema, &Value::Object(arguments.clone())),
        }
    }

    /// The first violation of the protocol in the answer of a feature.
    pub(crate) fn malformed_answer(&self, of: Feature, result: &Value) -> Option<&'static str> {
        let list = |field: &str| result.get(field).and_then(Value::as_array);
        match of {
            Feature::Tool => self.malformed(result),
            // A result that asks for more input has another form.
            _ if result.get("resultType").is_some_and(|kind| kind != "complete") => None,
            Feature::Resource => match list("contents") {
                None => Some("the result has no list of contents"),
                Some(contents) => contents.iter().find_map(malformed_contents),
            },
            Feature::Prompt => match list("messages") {
                None => Some("the result has no list of messages"),
                Some(messages) => messages.iter().find_map(malformed_message),
            },
            Feature::Method => None,
        }
    }

    /// The first violation of the protocol in the result of a tool.
    pub(crate) fn malformed(&self, result: &Value) -> Option<&'static str> {
        match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => {}
            Some("task") => {
                return Some(
                    "the server answers with a task, and the request did not declare the tasks extension",
                );
            }
            // A result that asks for more input has another form.
            Some(_) => return None,
        }
        if !result.get("isError").is_none_or(Value::is_boolean) {
            return Some("isError is not a boolean");
        }
        // Earlier revisions do not have the field, later ones allow any value.
        let object = matches!(self.revision, Revision::V2025_06_18 | Revision::V2025_11_25);
        if object && !result.get("structuredContent").is_none_or(Value::is_object) {
            return Some("structuredContent is not an object");
        }
        let Some(content) = result.get("content") else { return Some("the result has no content") };
        let Some(blocks) = content.as_array() else { return Some("the content is not a list") };
        blocks.iter().find_map(malformed_block)
    }

    /// Checks a result against the output schema, which errors need not fit.
    pub(crate) fn output(&self, tool: &str, outcome: &Outcome) -> Fit {
        let Outcome::Result { result } = outcome else { return Fit::NotPromised };
        if outcome.is_tool_error() {
            return Fit::NotPromised;
        }
        let content = result.get("structuredContent");
        let schema = match self.tools.get(tool) {
            Some(Known::Defined(schemas)) => schemas.output.as_ref(),
            Some(Known::Recorded { declares_output: true }) if content.is_none() => {
                return Fit::breaks(NOT_STRUCTURED);
            }
            Some(Known::Recorded { .. }) | None => None,
        };
        match (schema, content) {
            (None, _) => Fit::NotPromised,
            (Some(Err(error)), _) => Fit::breaks(format!("the output schema is unusable: {error}")),
            (Some(Ok(_)), None) => Fit::breaks(NOT_STRUCTURED),
            (Some(Ok(schema)), Some(content)) => fit(schema, content),
        }
    }

    /// Checks the result of a call against the output schema, or takes the violation that was noted with it
    /// if the schema is not known.
    pub(crate) fn output_of(&self, called: &Called) -> Fit {
        match (self.tools.get(&called.tool), &called.violation) {
            (Some(Known::Recorded { .. }), Some(why)) => Fit::breaks(why.clone()),
            _ => self.output(&called.tool, &called.outcome),
        }
    }
}

fn malformed_contents(contents: &Value) -> Option<&'static str> {
    let text = |field: &str| contents.get(field).is_some_and(Value::is_string);
    match () {
        () if !text("uri") => Some("the contents have no uri"),
        () if !text("text") && !text("blob") => Some("the contents have neither text nor blob"),
        () => None,
    }
}

fn malformed_message(message: &Value) -> Option<&'static str> {
    let role = message.get("role").and_then(Value::as_str);
    if !matches!(role, Some("user" | "assistant")) {
        return Some("the role of a message is neither user nor assistant");
    }
    message.get("content").map_or(Some("a message has no content"), malformed_block)
}

/// Blocks of every revision are accepted: a newer one does no harm to an older client.
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
    let shown = |violation: &karat_core::schema::Violation| {
        let place = if violation.instance_path.is_empty() { "/" } else { &violation.instance_path };
        format!("{place}: {}", violation.message)
    };
    if compliance.valid {
        let format_warnings =
            compliance.format_warnings.iter().take(MAX_REASONS).map(shown).collect();
        return Fit::Fits { format_warnings };
    }
    Fit::Breaks { reasons: compliance.errors.iter().take(MAX_REASONS).map(shown).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn contract() -> Contract {
        speaking(Revision::default())
    }

    fn speaking(revision: Revision) -> Contract {
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

    /// True if it fits; none without a schema.
    fn fits(fit: &Fit) -> Option<bool> {
        match fit {
            Fit::Fits { .. } => Some(true),
            Fit::Breaks { .. } => Some(false),
            Fit::NotPromised => None,
        }
    }

    #[test]
    fn arguments_are_checked_against_the_input_schema() {
        let contract = contract();
        let fits_input = |tool: &str, value: Value| fits(&contract.input(tool, &arguments(&value)));
        assert_eq!(fits_input("add", json!({"a": 1})), Some(true));
        let wrong = contract.input("add", &arguments(&json!({"a": "1"})));
        assert_eq!(fits(&wrong), Some(false));
        assert!(wrong.reasons()[0].starts_with("/a: "), "{wrong:?}");
        assert_eq!(fits_input("broken", json!({})), Some(false));
        assert_eq!(fits_input("unknown", json!({})), None);
    }

    #[test]
    fn results_are_checked_against_the_output_schema_and_errors_are_not() {
        let contract = contract();
        let result = |value: Value| Outcome::Result { result: value };
        let fits = |tool: &str, outcome: &Outcome| fits(&contract.output(tool, outcome));
        assert_eq!(fits("add", &result(json!({"structuredContent": {"sum": 2}}))), Some(true));
        assert_eq!(fits("add", &result(json!({"structuredContent": {"sum": "2"}}))), Some(false));
        assert_eq!(fits("add", &result(json!({"content": []}))), Some(false));
        assert_eq!(fits("add", &result(json!({"isError": true}))), None);
        assert_eq!(fits("silent", &result(json!({"content": []}))), None);
        assert_eq!(fits("add", &Outcome::Timeout), None);
    }

    #[test]
    fn valid_results_are_accepted() {
        for revision in Revision::ALL {
            let contract = speaking(revision);
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
    fn invalid_results_are_malformed() {
        for revision in Revision::ALL {
            let contract = speaking(revision);
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
    fn structured_content_is_checked_as_its_revision_defines_it() {
        let malformed = |revision: Revision, content: &Value| {
            let result = json!({"content": [], "structuredContent": content});
            speaking(revision).malformed(&result).is_some()
        };
        for content in [json!([1]), json!("x"), json!(null)] {
            assert!(malformed(Revision::V2025_06_18, &content), "{content}");
            assert!(malformed(Revision::V2025_11_25, &content), "{content}");
            assert!(!malformed(Revision::V2026_07_28, &content), "{content}");
            assert!(!malformed(Revision::V2025_03_26, &content), "{content}");
        }
    }
}

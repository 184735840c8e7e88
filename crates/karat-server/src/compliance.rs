//! Arguments and results against the schemas that the server itself declares.
//!
//! Each schema is compiled once. A tool without an output schema promises nothing, so nothing can be
//! said of its results; a tool that has one and answers without structured content breaks its word.

use std::collections::BTreeMap;

use karat_core::schema::Compiled;
use karat_mcp::Definition;
use serde_json::{Map, Value};

use crate::observation::Outcome;

/// The schemas of a server's tools.
pub struct Contract {
    tools: BTreeMap<String, Schemas>,
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

    fn breaks(reason: impl Into<String>) -> Fit {
        Fit::Breaks { reasons: vec![reason.into()] }
    }
}

/// How many reasons are given.
const REASONS: usize = 3;

impl Contract {
    /// Compiles the schemas of all tools.
    #[must_use]
    pub fn new(definitions: &[Definition]) -> Contract {
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
        Contract { tools }
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
        let tool = json!({
            "name": "add",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
            "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]},
        });
        let silent = json!({"name": "silent", "inputSchema": {"type": "object"}});
        let broken = json!({"name": "broken", "inputSchema": {"type": "objekt"}});
        let definitions: Vec<Definition> =
            [tool, silent, broken].into_iter().map(|raw| Definition::new(raw).unwrap()).collect();
        Contract::new(&definitions)
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
}

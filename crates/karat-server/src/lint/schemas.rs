//! Rules about the schemas of input and output.

use karat_core::finding::Severity;
use karat_core::schema::Compiled;
use karat_io::text::{clip, printable};
use serde_json::Value;

use super::definition::Definition;
use super::{Findings, Server};
use crate::probe::Rule;

/// The number of columns of a validator's message.
const SHOWN: usize = 200;

pub(super) const INPUT_INVALID: Rule = Rule {
    id: "input-schema-invalid",
    severity: Severity::Error,
    summary: "the input schema is missing or not a valid JSON Schema",
    help: "Arguments cannot be validated, and clients refuse the tool. The default dialect is 2020-12; \
           references must stay within the same schema.",
};

pub(super) const INPUT_NOT_OBJECT: Rule = Rule {
    id: "input-schema-not-object",
    severity: Severity::Error,
    summary: "the input schema does not have `\"type\": \"object\"`",
    help: "MCP requires an object at the top of every input schema. A tool without parameters has \
           {\"type\": \"object\", \"additionalProperties\": false}.",
};

pub(super) const OUTPUT_INVALID: Rule = Rule {
    id: "output-schema-invalid",
    severity: Severity::Error,
    summary: "the output schema is not a valid JSON Schema",
    help: "Clients validate structured results against it and refuse every result of the tool.",
};

pub(super) const OUTPUT_NOT_OBJECT: Rule = Rule {
    id: "output-schema-not-object",
    severity: Severity::Warning,
    summary: "the output schema does not have `\"type\": \"object\"`",
    help: "Up to revision 2025-11-25 structured results are objects, and clients of these revisions \
           refuse the tool. Put the value into a field of an object.",
};

pub(super) const REQUIRED_UNKNOWN: Rule = Rule {
    id: "required-unknown",
    severity: Severity::Error,
    summary: "`required` names a parameter that the schema does not have",
    help: "A model has to give a parameter that it knows nothing about, and with \
           `additionalProperties: false` no call can be valid. Usually a misspelling.",
};

fn problem(schema: &Value) -> Option<String> {
    Compiled::new(schema)
        .err()
        .map(|error| clip(&printable(&error.to_string()), SHOWN).into_owned())
}

pub(super) fn input_invalid(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/inputSchema", |tool| match tool.input_schema() {
        None => Some("missing inputSchema".to_owned()),
        Some(schema) => problem(schema),
    });
}

pub(super) fn input_not_object(server: &Server<'_>, findings: &mut Findings<'_>) {
    not_object(server, findings, "/inputSchema/type", Definition::input_schema);
}

pub(super) fn output_not_object(server: &Server<'_>, findings: &mut Findings<'_>) {
    not_object(server, findings, "/outputSchema/type", Definition::output_schema);
}

fn not_object<'a>(
    server: &Server<'a>,
    findings: &mut Findings<'_>,
    at: &str,
    schema: impl Fn(&Definition<'a>) -> Option<&'a Value>,
) {
    findings.each(server, at, |tool| {
        let is_object = schema(tool)?.get("type").and_then(Value::as_str) == Some("object");
        (!is_object).then(|| "the type at the top is not \"object\"".to_owned())
    });
}

pub(super) fn output_invalid(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/outputSchema", |tool| tool.output_schema().and_then(problem));
}

pub(super) fn required_unknown(server: &Server<'_>, findings: &mut Findings<'_>) {
    for (index, tool) in server.tools.iter().enumerate() {
        for object in tool.objects() {
            for name in unknown(object.schema) {
                let message = format!("{name:?} is required but not among the properties");
                findings.tool(index, tool, format!("{}/required", object.at), message);
            }
        }
    }
}

/// The required names that are not properties; none if the schema may get properties from elsewhere.
fn unknown(schema: &Value) -> Vec<&str> {
    const ELSEWHERE: [&str; 6] =
        ["$ref", "allOf", "anyOf", "oneOf", "patternProperties", "dependentSchemas"];
    if ELSEWHERE.iter().any(|keyword| schema.get(keyword).is_some()) {
        return Vec::new();
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| properties.is_none_or(|properties| !properties.contains_key(*name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{found, tools};
    use super::*;

    #[test]
    fn invalid_schemas_are_found() {
        let definitions = [
            json!({"name": "none"}),
            json!({"name": "type", "inputSchema": {"type": "objekt"}}),
            json!({"name": "network", "inputSchema": {"type": "object", "$ref": "https://example.com/s.json"}}),
            json!({"name": "good", "inputSchema": {"type": "object"}}),
            json!({"name": "draft-07", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}}),
        ];
        assert_eq!(tools(&INPUT_INVALID, &definitions), ["none", "type", "network"]);
    }

    #[test]
    fn the_top_must_be_an_object() {
        let definitions = [
            json!({"name": "a", "inputSchema": {}}),
            json!({"name": "b", "inputSchema": true}),
            json!({"name": "c", "inputSchema": {"type": "object"}}),
        ];
        assert_eq!(tools(&INPUT_NOT_OBJECT, &definitions), ["a", "b"]);
    }

    #[test]
    fn a_broken_output_schema_is_found_and_a_missing_one_is_fine() {
        let definitions =
            [json!({"name": "a", "outputSchema": {"minimum": "x"}}), json!({"name": "b"})];
        assert_eq!(tools(&OUTPUT_INVALID, &definitions), ["a"]);
    }

    #[test]
    fn an_output_schema_that_is_not_an_object_is_found() {
        let definitions = [
            json!({"name": "a", "outputSchema": {"type": "array"}}),
            json!({"name": "b", "outputSchema": {"type": "object"}}),
            json!({"name": "c"}),
        ];
        assert_eq!(tools(&OUTPUT_NOT_OBJECT, &definitions), ["a"]);
    }

    #[test]
    fn required_names_are_checked_in_whole_objects_only() {
        let definition = json!({"name": "a", "inputSchema": {
            "type": "object",
            "properties": {
                "order": {"$ref": "#/$defs/order"},
                "by": {"type": "object", "properties": {"id": {}, "name": {}}, "anyOf": [
                    {"required": ["id"]}, {"required": ["name"]}]},
                "line": {"anyOf": [{"$ref": "#/$defs/line"}, {"type": "null"}]},
                "both": {"allOf": [{"properties": {"x": {}}}, {"required": ["x"]}]},
            },
            "$defs": {
                "order": {"properties": {"lines": {"type": "array"}}, "required": ["lines", "customer"]},
                "line": {"properties": {"sku": {}}, "required": ["skew"]},
            },
        }});
        let places: Vec<String> =
            found(&REQUIRED_UNKNOWN, &[definition]).into_iter().map(|(_, at, _)| at).collect();
        assert_eq!(
            places,
            ["/inputSchema/$defs/order/required", "/inputSchema/$defs/line/required"]
        );
    }

    #[test]
    fn a_misspelt_required_name_is_found_unless_properties_come_from_elsewhere() {
        let schema =
            json!({"type": "object", "properties": {"path": {}}, "required": ["path", "pth"]});
        let mut open = schema.clone();
        open["allOf"] = json!([{"properties": {"pth": {}}}]);
        let definitions = [
            json!({"name": "a", "inputSchema": schema}),
            json!({"name": "b", "inputSchema": open}),
        ];
        let found = found(&REQUIRED_UNKNOWN, &definitions);
        assert_eq!(found.len(), 1);
        assert!(found[0].2.contains("\"pth\""));
    }
}

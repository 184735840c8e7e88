//! The schemas of batches: what goes in, and what comes out.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use crate::options::Plan;
use crate::{Error, Kind};

/// The key of a schema's metadata that names the schema and its version.
pub const SCHEMA_KEY: &str = "karat.schema";

/// The name and version of the schema that rows are read with.
pub(crate) fn input_name(kind: Kind) -> String {
    format!("karat.arrow.{kind}/1")
}

/// The name and version of the schema of scored rows.
pub(crate) fn scored_name(kind: Kind) -> String {
    format!("karat.arrow.{kind}.scored/1")
}

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Float64, true)
}

fn list_of(name: &str, fields: Vec<Field>, nullable: bool) -> Field {
    let entry = Field::new("item", DataType::Struct(Fields::from(fields)), false);
    Field::new(name, DataType::List(Arc::new(entry)), nullable)
}

/// The columns that a kind of rows can have, with their types as Karat writes them; docs/arrow.md says
/// which are needed and which other types are read. Further columns are ignored. A batch may carry the
/// version in its metadata under [`SCHEMA_KEY`]; one that carries another version is refused.
#[must_use]
pub fn input_schema(kind: Kind) -> SchemaRef {
    let group = text("group", true);
    let fields = match kind {
        Kind::Traces => vec![
            text("id", false),
            text("task", true),
            group,
            text("setting", true),
            list_of(
                "calls",
                vec![
                    text("name", false),
                    text("arguments", true),
                    text("server", true),
                    text("result", true),
                    text("error", true),
                ],
                false,
            ),
            list_of(
                "expected_calls",
                vec![text("name", false), text("arguments", true), text("server", true)],
                true,
            ),
            text("expect", true),
            text("output", true),
            text("state", true),
            Field::new("passed", DataType::Boolean, true),
            number("score"),
            Field::new("input_tokens", DataType::Int64, true),
            Field::new("output_tokens", DataType::Int64, true),
            Field::new("cached_tokens", DataType::Int64, true),
            Field::new("reasoning_tokens", DataType::Int64, true),
            number("duration_ms"),
            number("cost"),
            text("stopped", true),
            text("failed", true),
            text("trace", true),
        ],
        Kind::Rankings => vec![
            text("id", false),
            group,
            Field::new("ranked", DataType::List(Arc::new(text("item", false))), false),
            list_of(
                "relevant",
                vec![text("id", false), Field::new("grade", DataType::Int64, false)],
                false,
            ),
            number("latency_ms"),
        ],
        Kind::Verdicts => vec![
            text("id", false),
            group,
            text("label", false),
            text("category", true),
            text("verdict", true),
            number("score"),
            number("latency_ms"),
        ],
    };
    Arc::new(Schema::new_with_metadata(fields, [(SCHEMA_KEY, input_name(kind))]))
}

/// The columns of scored rows: id and group, the reason why a row has no scores, then one column for
/// each metric, null where it is undefined.
pub(crate) fn scored(plan: &Plan) -> SchemaRef {
    let mut fields =
        vec![text("id", false), text("group", true), text("error", true), number("latency_ms")];
    let truth = |name: &str| Field::new(name, DataType::Boolean, true);
    match plan.kind {
        Kind::Traces => fields.push(text("setting", true)),
        Kind::Rankings => {}
        Kind::Verdicts => {
            fields.extend([truth("malicious"), truth("hard_negative"), number("score")]);
        }
    }
    fields.extend(plan.metrics.iter().map(|metric| number(&metric.id)));
    Arc::new(Schema::new_with_metadata(fields, [(SCHEMA_KEY, scored_name(plan.kind))]))
}

/// Refuses a batch of another version.
pub(crate) fn check_version(schema: &Schema, expected: String) -> Result<(), Error> {
    match schema.metadata().get(SCHEMA_KEY) {
        Some(found) if *found != expected => {
            Err(Error::SchemaVersion { found: found.to_string(), expected })
        }
        _ => Ok(()),
    }
}

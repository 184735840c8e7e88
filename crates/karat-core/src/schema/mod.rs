//! JSON Schema as MCP asks for it, with bounds for schemas that strangers wrote.
//!
//! Without `$schema` the dialect is 2020-12; a declared dialect is honoured, an unknown one refused.
//! References lead to other parts of the same schema (or to the published meta-schemas, which are
//! built in), never to a file or the network. `format` does not decide the verdict; what would fail
//! with formats asserted is reported separately. Schemas and values that would take too long or too deep
//! a stack are refused. The engine is the `jsonschema` crate; how it and other engines judge the
//! doubtful cases is recorded in `json_schema_engines.json` among the test vectors.
//!
//! Messages quote names from schema and value, made printable; values themselves are not quoted.

mod error;
mod graph;
mod size;
#[cfg(test)]
mod tests;
mod work;

use std::collections::HashSet;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;

pub use self::error::SchemaError;
use self::error::{place, short};
use self::graph::Graph;
use self::size::measure;
use self::work::TooMuch;

/// Levels of nesting in a schema and in a value.
const DEPTH: usize = 128;
/// JSON values in a schema.
const SCHEMA_SIZE: usize = 100_000;
/// The limit for the cost of all regular expressions of a schema (see `size.rs`).
const PATTERN_COST: u64 = 1_000_000;
/// Violations that are described, and how many are distinguished from those of formats. The rest are
/// counted.
const DESCRIBED: usize = 100;
const COMPARED: usize = 10_000;

/// A schema, ready to check values.
#[derive(Debug)]
pub struct Compiled {
    verdict: Validator,
    /// The same with formats asserted; absent where the schema has no `format`.
    with_formats: Option<Validator>,
    graph: Graph,
}

/// The way a value fits a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compliance {
    /// The verdict, formats not asserted. False when the value was not checked; see
    /// [`Compliance::not_checked`].
    pub valid: bool,
    /// The verdict of an engine that asserts formats.
    pub valid_with_formats: bool,
    /// The violations; the first 100.
    pub errors: Vec<Violation>,
    /// The number of more.
    pub more_errors: usize,
    /// The violations that exist only if formats are asserted; the first 100.
    pub format_warnings: Vec<Violation>,
}

impl Compliance {
    /// The reason why the value was not checked, if so: it is nested too deeply, or checking would take too
    /// long.
    #[must_use]
    pub fn not_checked(&self) -> Option<&str> {
        self.errors.iter().find(|error| error.keyword == LIMIT).map(|error| error.message.as_str())
    }

    fn refused(message: String) -> Self {
        let violation = Violation {
            instance_path: String::new(),
            schema_path: String::new(),
            keyword: LIMIT.to_owned(),
            message,
        };
        Self {
            valid: false,
            valid_with_formats: false,
            errors: vec![violation],
            more_errors: 0,
            format_warnings: Vec::new(),
        }
    }
}

/// The "keyword" of a violation of our own limits. No dialect has one of this name.
const LIMIT: &str = "karat:limit";

/// One thing that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Violation {
    /// The part of the value, as a JSON pointer.
    pub instance_path: String,
    /// The part of the schema, as a JSON pointer.
    pub schema_path: String,
    /// The keyword that is violated.
    pub keyword: String,
    /// A printable description of the problem.
    pub message: String,
}

impl Compiled {
    /// Makes a schema ready.
    ///
    /// # Errors
    /// If the schema is invalid in its dialect, of an unknown dialect, refers outside itself, or
    /// exceeds the limits.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaError::NotASchema);
        }
        let size = measure(schema, SCHEMA_SIZE);
        let size = size.ok_or(SchemaError::TooLarge { limit: SCHEMA_SIZE })?;
        if size.depth > DEPTH {
            return Err(SchemaError::TooDeep { limit: DEPTH });
        }
        if size.pattern_cost > PATTERN_COST {
            return Err(SchemaError::PatternsTooLarge);
        }
        let graph = Graph::new(schema)?;
        let build = |formats| {
            let options = jsonschema::options().offline().should_validate_formats(formats);
            options.build(schema).map_err(|error| explain(&error))
        };
        let verdict = build(false)?;
        let with_formats = if size.has_format { Some(build(true)?) } else { None };
        Ok(Self { verdict, with_formats, graph })
    }

    /// Checks a value.
    #[must_use]
    pub fn check(&self, value: &Value) -> Compliance {
        match measure(value, usize::MAX) {
            Some(size) if size.depth <= DEPTH => match self.graph.work(value, size.values) {
                Ok(()) => self.run(value),
                Err(TooMuch) => Compliance::refused(
                    "not checked: the schema would take too long on this value".to_owned(),
                ),
            },
            _ => Compliance::refused(format!("not checked: nested deeper than {DEPTH} levels")),
        }
    }

    fn run(&self, value: &Value) -> Compliance {
        let valid = self.verdict.is_valid(value);
        let with_formats = self.with_formats.as_ref();
        let valid_with_formats = with_formats.map_or(valid, |engine| engine.is_valid(value));
        let mut errors = Vec::new();
        let mut more_errors = 0;
        if !valid {
            let mut all = self.verdict.iter_errors(value).map(|error| violation(&error));
            errors.extend(all.by_ref().take(COMPARED));
            more_errors = errors.len().saturating_sub(DESCRIBED) + all.count();
        }
        let mut format_warnings = Vec::new();
        if let Some(engine) = with_formats.filter(|_| !valid_with_formats) {
            let known: HashSet<&Violation> = errors.iter().collect();
            let all = engine.iter_errors(value).map(|error| violation(&error));
            format_warnings.extend(all.filter(|found| !known.contains(found)).take(DESCRIBED));
        }
        errors.truncate(DESCRIBED);
        Compliance { valid, valid_with_formats, errors, more_errors, format_warnings }
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    let kind = match error.instance().as_ref() {
        Value::Null => "null",
        Value::Bool(_) => "this boolean",
        Value::Number(_) => "this number",
        Value::String(_) => "this string",
        Value::Array(_) => "this list",
        Value::Object(_) => "this object",
    };
    Violation {
        instance_path: error.instance_path().to_string(),
        schema_path: error.schema_path().to_string(),
        keyword: error.kind().keyword().to_owned(),
        message: short(&error.masked_with(kind).to_string()),
    }
}

fn explain(error: &ValidationError<'_>) -> SchemaError {
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => {
            SchemaError::ExternalReference { uri: short(uri) }
        }
        ValidationErrorKind::Referencing(ReferencingError::UnknownSpecification {
            specification,
        }) => SchemaError::UnsupportedDialect { found: short(specification) },
        ValidationErrorKind::Referencing(error) => {
            SchemaError::BadReference { message: short(&error.to_string()) }
        }
        _ => {
            let at = place(error.instance_path().as_str());
            SchemaError::Invalid { at, message: short(&error.to_string()) }
        }
    }
}

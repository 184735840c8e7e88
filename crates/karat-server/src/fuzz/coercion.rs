//! Values that lenient libraries convert to the type that a schema demands: `"7"` for 7, `true` for 1,
//! `1.0` for 1, a JSON text for a list.

use karat_core::schema::Violation;
use serde_json::Value;

/// Returns whether a violation is only about such a value. `schema` is the schema of the arguments.
pub(super) fn is_coercion(schema: &Value, arguments: &Value, violation: &Violation) -> bool {
    let Some(value) = arguments.pointer(&violation.instance_path) else { return false };
    let Some(found) = schema.pointer(&violation.schema_path) else { return false };
    let types: Vec<&str> = match (violation.keyword.as_str(), found) {
        ("type", Value::String(one)) => vec![one],
        ("type", Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        // An optional value: a list of alternatives with one type each.
        ("anyOf" | "oneOf", Value::Array(ways)) => {
            ways.iter().filter_map(|way| way.get("type")?.as_str()).collect()
        }
        _ => return false,
    };
    types.iter().any(|wanted| converts(value, wanted))
}

fn converts(value: &Value, wanted: &str) -> bool {
    match (value, wanted) {
        (Value::String(text), "integer") => text.trim().parse::<i64>().is_ok(),
        (Value::String(text), "number") => text.trim().parse::<f64>().is_ok(),
        (Value::String(text), "boolean") => {
            ["true", "false", "1", "0", "yes", "no", "on", "off", "t", "f", "y", "n"]
                .contains(&text.trim().to_lowercase().as_str())
        }
        (Value::String(text), "array") => {
            serde_json::from_str(text).is_ok_and(|value: Value| value.is_array())
        }
        (Value::String(text), "object") => {
            serde_json::from_str(text).is_ok_and(|value: Value| value.is_object())
        }
        (Value::Bool(_), "integer" | "number") => true,
        (Value::Number(number), "integer") => number.as_f64().is_some_and(|n| n.fract() == 0.0),
        (Value::Number(number), "boolean") => matches!(number.as_f64(), Some(0.0 | 1.0)),
        (Value::Number(_) | Value::Bool(_), "string") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use karat_core::schema::Compiled;
    use serde_json::json;

    use super::*;

    fn is_lax(schema: &Value, value: &Value) -> bool {
        let schema = json!({"type": "object", "properties": {"a": schema}});
        let arguments = json!({"a": value});
        let found = Compiled::new(&schema).unwrap().check(&arguments);
        assert!(!found.valid, "{schema} {arguments}");
        found.errors.iter().all(|violation| is_coercion(&schema, &arguments, violation))
    }

    #[test]
    fn only_values_that_mean_the_same_are_coercions() {
        let number = json!({"type": "integer"});
        let optional = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        for schema in [&number, &optional] {
            assert!(is_lax(schema, &json!("7")) && is_lax(schema, &json!(true)), "{schema}");
            assert!(!is_lax(schema, &json!("seven")) && !is_lax(schema, &json!([7])), "{schema}");
        }
        assert!(is_lax(&json!({"type": "array"}), &json!("[1]")));
        assert!(!is_lax(&json!({"type": "array"}), &json!("1")));
        assert!(!is_lax(&json!({"type": "integer", "maximum": 3}), &json!(7)));
    }
}

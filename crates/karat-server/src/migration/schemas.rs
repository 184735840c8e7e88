//! Bounds of schemas that clients keep when they compile the schemas of strangers.

use serde_json::Value;

/// The levels and the parts of a schema that clients are likely to accept.
const MAX_DEPTH: usize = 32;
const MAX_PARTS: usize = 1_000;

/// The reason for which a schema is beyond the bounds.
pub(super) fn beyond(schema: &Value) -> Option<String> {
    let mut parts = 0;
    if let Some(why) = walk(schema, 0, &mut parts) {
        return Some(why);
    }
    (parts > MAX_PARTS).then(|| format!("it has {parts} parts, more than {MAX_PARTS}"))
}

fn walk(value: &Value, depth: usize, parts: &mut usize) -> Option<String> {
    *parts += 1;
    if depth > MAX_DEPTH {
        return Some(format!("it is deeper than {MAX_DEPTH} levels"));
    }
    match value {
        Value::Object(fields) => {
            for key in ["$ref", "$dynamicRef"] {
                if let Some(to) = fields.get(key).and_then(Value::as_str)
                    && !to.starts_with('#')
                {
                    return Some(format!("{key} leads to another document: {to}"));
                }
            }
            // Values, not schemas.
            let inner = fields.iter().filter(|(key, _)| {
                !matches!(key.as_str(), "enum" | "const" | "default" | "examples")
            });
            inner.into_iter().find_map(|(_, inner)| walk(inner, depth + 1, parts))
        }
        Value::Array(items) => items.iter().find_map(|item| walk(item, depth + 1, parts)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_elsewhere_depth_and_size_are_bounded() {
        let fine = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}},
                          "$defs": {"x": {"enum": [{"$ref": "https://a.example"}]}}});
        assert_eq!(beyond(&fine), None);
        assert!(beyond(&json!({"$ref": "https://a.example/x.json"})).unwrap().contains("document"));
        let deep = (0..40).fold(json!({}), |inner, _| json!({"items": inner}));
        assert!(beyond(&deep).unwrap().contains("levels"));
        let many: serde_json::Map<String, Value> =
            (0..1_100).map(|n| (format!("p{n}"), json!({}))).collect();
        assert!(beyond(&json!({"properties": many})).unwrap().contains("parts"));
    }
}

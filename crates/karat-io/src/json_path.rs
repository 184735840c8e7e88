//! Paths into JSON, with which a project says where the answer of a system is.
//!
//! A part of JSONPath: `$.results[*].findings`, `tool.name`, `[0]`, `['a key']`, `*` for every member. Without
//! filters and recursion, a path visits each value at most once.
//!
//! ```
//! use karat_io::json_path::JsonPath;
//! use serde_json::json;
//!
//! let path = JsonPath::parse("$.results[*].tool")?;
//! let answer = json!({"results": [{"tool": "a"}, {"tool": "b"}]});
//! assert_eq!(path.find(&answer), [&json!("a"), &json!("b")]);
//! # Ok::<(), String>(())
//! ```

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
    Every,
}

impl Step {
    /// The members of a value that the step leads to, in order.
    fn members<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Step::Key(key), Value::Object(fields)) => fields.get(key).into_iter().collect(),
            (Step::Index(index), Value::Array(items)) => items.get(*index).into_iter().collect(),
            (Step::Every, Value::Array(items)) => items.iter().collect(),
            (Step::Every, Value::Object(fields)) => fields.values().collect(),
            _ => Vec::new(),
        }
    }
}

impl JsonPath {
    /// Parses a path; the `$` at the start is optional.
    ///
    /// # Errors
    /// If it is not a valid path, with the reason.
    pub fn parse(text: &str) -> Result<JsonPath, String> {
        let wrong = |what: &str| format!("{text:?} is not a path: {what}");
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let end = inside.find(']').ok_or_else(|| wrong("`[` without `]`"))?;
                let content = &inside[..end];
                let quoted = content
                    .strip_prefix('\'')
                    .and_then(|content| content.strip_suffix('\''))
                    .or_else(|| {
                        content.strip_prefix('"').and_then(|content| content.strip_suffix('"'))
                    });
                steps.push(match (content, quoted) {
                    ("*", _) => Step::Every,
                    (_, Some(key)) => Step::Key(key.to_owned()),
                    (number, None) => Step::Index(number.parse().map_err(|_| {
                        wrong("expected a number, `*` or a quoted key inside `[ ]`")
                    })?),
                });
                rest = &inside[end + 1..];
                continue;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            match &rest[..end] {
                "" => return Err(wrong("empty key")),
                "*" => steps.push(Step::Every),
                key => steps.push(Step::Key(key.to_owned())),
            }
            rest = &rest[end..];
        }
        Ok(JsonPath { steps })
    }

    /// True if it may lead to several values.
    pub fn leads_to_several(&self) -> bool {
        self.steps.contains(&Step::Every)
    }

    /// True if it leads to the value itself.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// The parts between the `*`: of `a[*].b[*]` the paths `a`, `b` and `$`. None of them leads to several.
    pub fn between_stars(&self) -> Vec<JsonPath> {
        let parts = self.steps.split(|step| *step == Step::Every);
        parts.map(|steps| JsonPath { steps: steps.to_vec() }).collect()
    }

    /// The values that the path leads to, in order.
    pub fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.members(value)).collect();
        }
        found
    }

    /// As [`JsonPath::find`], for lists of results: an empty list is valid, and a missing one is not. Every
    /// key on the way must exist, and the last `*` must be the items of a list.
    ///
    /// # Errors
    /// The missing part.
    pub fn find_listed<'v>(&self, value: &'v Value) -> Result<Vec<&'v Value>, &'static str> {
        let last = self.steps.iter().rposition(|step| *step == Step::Every);
        let mut found = vec![value];
        for (number, step) in self.steps.iter().enumerate() {
            if last == Some(number)
                && (found.is_empty() || !found.iter().all(|value| value.is_array()))
            {
                return Err("no list");
            }
            for value in std::mem::take(&mut found) {
                let next = step.members(value);
                if next.is_empty() && *step != Step::Every {
                    return Err("nothing");
                }
                found.extend(next);
            }
        }
        Ok(found)
    }

    /// As [`JsonPath::find`], and says whether the path leads to something from every place that it comes
    /// through. A list or object without members is such a place for `*`.
    pub fn find_each<'v>(&self, value: &'v Value) -> (Vec<&'v Value>, bool) {
        let (mut found, mut complete) = (vec![value], true);
        for step in &self.steps {
            for value in std::mem::take(&mut found) {
                let next = step.members(value);
                let may_be_empty = *step == Step::Every && (value.is_array() || value.is_object());
                complete &= may_be_empty || !next.is_empty();
                found.extend(next);
            }
        }
        (found, complete)
    }

    /// Removes the values that the path leads to and `keep` refuses from the lists and objects that hold
    /// them. The value itself, to which the path may lead, stays.
    pub fn retain(&self, value: &mut Value, keep: impl Fn(&Value) -> bool) {
        let Some((last, before)) = self.steps.split_last() else { return };
        let holders = JsonPath { steps: before.to_vec() };
        for holder in holders.find_mut(value) {
            match (last, holder) {
                (Step::Every, Value::Array(items)) => items.retain(&keep),
                (Step::Every, Value::Object(fields)) => fields.retain(|_, value| keep(value)),
                (Step::Key(key), Value::Object(fields))
                    if fields.get(key).is_some_and(|value| !keep(value)) =>
                {
                    fields.remove(key);
                }
                (Step::Index(index), Value::Array(items))
                    if items.get(*index).is_some_and(|value| !keep(value)) =>
                {
                    items.remove(*index);
                }
                _ => {}
            }
        }
    }

    /// Returns whether `other` leads to the same values as this path, or to parts of them.
    pub fn is_above(&self, other: &JsonPath) -> bool {
        other.steps.starts_with(&self.steps)
    }

    /// As [`JsonPath::find`], with mutable references.
    pub fn find_mut<'v>(&self, value: &'v mut Value) -> Vec<&'v mut Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|value| match (step, value) {
                    (Step::Key(key), Value::Object(fields)) => {
                        fields.get_mut(key).into_iter().collect()
                    }
                    (Step::Index(index), Value::Array(items)) => {
                        items.get_mut(*index).into_iter().collect()
                    }
                    (Step::Every, Value::Array(items)) => items.iter_mut().collect(),
                    (Step::Every, Value::Object(fields)) => fields.values_mut().collect(),
                    _ => Vec::new(),
                })
                .collect();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_their_values() {
        let value = json!({"scan": {"results": [{"tool": "a", "by": {"x": {"severity": "HIGH"}}}, {"tool": "b"}]}, "a key": 1});
        let find = |path: &str| -> Vec<Value> {
            JsonPath::parse(path).unwrap().find(&value).into_iter().cloned().collect()
        };
        assert_eq!(find("$.scan.results[*].tool"), [json!("a"), json!("b")]);
        assert_eq!(find("scan.results[1].tool"), [json!("b")]);
        assert_eq!(find("scan.results[0].by.*.severity"), [json!("HIGH")]);
        assert_eq!(find("['a key']"), [json!(1)]);
        assert_eq!(find("$"), std::slice::from_ref(&value));
        assert!(find("scan.nothing[3].here").is_empty());
    }

    #[test]
    fn a_path_with_a_wildcard_leads_to_several_values() {
        let several = |path: &str| JsonPath::parse(path).unwrap().leads_to_several();
        assert!(several("$.a[*].b") && several("a.*"));
        assert!(!several("$.a[0].b") && !several("$") && !several("['*']"));
    }

    #[test]
    fn a_path_is_divided_at_every_star() {
        let parts = |path: &str| JsonPath::parse(path).unwrap().between_stars();
        let path = |text: &str| JsonPath::parse(text).unwrap();
        assert_eq!(parts("a[0].b[*].c.*"), [path("a[0].b"), path("c"), path("$")]);
        assert_eq!(parts("*"), [path("$"), path("$")]);
        assert_eq!(parts("['a.*']"), [path("['a.*']")]);
    }

    #[test]
    fn an_empty_list_is_valid_and_a_missing_one_is_not() {
        let find = |path: &str, value: &Value| {
            JsonPath::parse(path).unwrap().find_listed(value).map(|found| found.len())
        };
        assert_eq!(find("$[*]", &json!([])), Ok(0));
        assert_eq!(find("$[*]", &json!([1, 2])), Ok(2));
        assert_eq!(find("found[*]", &json!({"found": []})), Ok(0));
        assert_eq!(find("$[*]", &json!({"error": "x"})), Err("no list"));
        assert_eq!(find("found[*]", &json!({"found": {}})), Err("no list"));
        assert_eq!(find("found[*]", &json!({"found": null})), Err("no list"));
        assert_eq!(find("found[*]", &json!({"error": "x"})), Err("nothing"));
        assert_eq!(find("found", &json!({})), Err("nothing"));
        // Each of several lists must be there, whatever holds them.
        let nested = "runs.*.found[*]";
        assert_eq!(
            find(nested, &json!({"runs": {"a": {"found": [1]}, "b": {"found": []}}})),
            Ok(1)
        );
        assert_eq!(find(nested, &json!({"runs": {"a": {"found": [1]}, "b": {}}})), Err("nothing"));
        assert_eq!(find(nested, &json!({"runs": {}})), Err("no list"));
    }

    #[test]
    fn a_place_that_leads_to_nothing_is_noticed() {
        let find = |value: &Value| {
            let path = JsonPath::parse("f[*].sev").unwrap();
            let (found, complete) = path.find_each(value);
            (found.len(), complete)
        };
        assert_eq!(find(&json!({"f": [{"sev": 1}, {"sev": null}]})), (2, true));
        assert_eq!(find(&json!({"f": {"a": {"sev": 1}}})), (1, true));
        assert_eq!((find(&json!({"f": []})), find(&json!({"f": {}}))), ((0, true), (0, true)));
        assert_eq!(find(&json!({"f": [{"sev": 1}, {"error": "x"}]})), (1, false));
        for lacking in [json!({"error": "x"}), json!({"f": null}), json!({"f": "text"}), json!([])]
        {
            assert_eq!(find(&lacking), (0, false), "{lacking}");
        }
    }

    #[test]
    fn found_values_can_be_removed() {
        let without = |path: &str| {
            let mut value =
                json!({"f": [{"x": 1}, {"x": 2}], "by": {"a": {"x": 1}, "b": {"x": 2}}});
            JsonPath::parse(path).unwrap().retain(&mut value, |found| found["x"] != 1);
            value
        };
        assert_eq!(without("f[*]")["f"], json!([{"x": 2}]));
        assert_eq!(without("f[0]")["f"], json!([{"x": 2}]));
        assert_eq!(without("by.*")["by"], json!({"b": {"x": 2}}));
        assert_eq!(without("by.a")["by"], json!({"b": {"x": 2}}));
        assert_eq!(without("f[1]"), without("$"));
        let above = |one: &str, other: &str| {
            JsonPath::parse(one).unwrap().is_above(&JsonPath::parse(other).unwrap())
        };
        assert!(above("f[*]", "f[*].score") && above("$", "score") && above("f", "f"));
        assert!(!above("f[*]", "score") && !above("f[*]", "f"));
    }

    #[test]
    fn found_values_can_be_changed() {
        let mut value = json!({"a": [{"x": 1}, {"x": 2}, {"y": 3}]});
        for found in JsonPath::parse("$.a[*].x").unwrap().find_mut(&mut value) {
            *found = json!(null);
        }
        assert_eq!(value, json!({"a": [{"x": null}, {"x": null}, {"y": 3}]}));
    }

    #[test]
    fn invalid_paths_are_refused() {
        for text in ["a..b", "a[", "a[x]", "."] {
            assert!(JsonPath::parse(text).is_err(), "{text}");
        }
    }
}

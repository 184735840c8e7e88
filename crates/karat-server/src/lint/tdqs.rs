//! The deterministic part of the Tool Definition Quality Score (TDQS 1.x): signals of a definition, hard gates
//! and candidates for shadowing, with the values that the package `tdqs` computes. The dimensions that a
//! model grades are not part of it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use karat_io::template::percent_decoded;
use serde::Serialize;
use serde_json::{Map, Value};

/// The number of object levels after which a schema is not searched further.
const MAX_DEPTH: u64 = 10;
/// The number of nodes of one schema that are visited: the rule itself has no bound on branches.
const MAX_NODES: usize = 20_000;

/// The signals of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signals {
    /// The tool.
    pub tool: String,
    /// `No Description` or `Tautological Description`.
    pub flags: Vec<&'static str>,
    /// Top-level parameters.
    pub param_count: u64,
    /// Those with a description that is not empty.
    pub params_with_descriptions: u64,
    /// Those with an `enum`.
    pub params_with_enums: u64,
    /// The entries of `required`.
    pub required_param_count: u64,
    /// The share of described parameters, in percent.
    pub schema_description_coverage: u64,
    /// True if a parameter is an object.
    pub has_nested_objects: bool,
    /// True if there are annotations.
    pub has_annotations: bool,
    /// True if there is an output schema.
    pub has_output_schema: bool,
    /// True if the title says more than the name.
    pub title_is_meaningful: bool,
    /// Fields that a minimal call must fill in, over all levels.
    pub required_field_count: u64,
    /// The deepest level of objects in a minimal call.
    pub schema_depth: u64,
    /// Choices between alternatives in a minimal call.
    pub union_choice_count: u64,
    /// The cost of filling in a minimal call.
    pub invocation_cost: u64,
    /// A much cheaper tool of the same server that may be called instead.
    pub shadowed_by: Option<String>,
}

/// The signals of the tools of a server.
pub(super) fn signals(definitions: &[Value]) -> Vec<Signals> {
    let mut all: Vec<Signals> = definitions.iter().map(of_tool).collect();
    let units = |name: &str| name.encode_utf16().collect::<Vec<u16>>();
    let mut costs: Vec<(u64, Reverse<Vec<u16>>, String)> = all
        .iter()
        .map(|one| (one.invocation_cost, Reverse(units(&one.tool)), one.tool.clone()))
        .collect();
    costs.sort_unstable();
    for one in &mut all {
        one.shadowed_by = dearest_cheaper(&one.tool, one.invocation_cost, &costs);
    }
    all
}

/// The dearest tool that costs at most half as much and at least four less; the first by name among equals.
/// `sorted` by cost, and by name from the last to the first.
fn dearest_cheaper(
    tool: &str,
    cost: u64,
    sorted: &[(u64, Reverse<Vec<u16>>, String)],
) -> Option<String> {
    let at_most = (cost / 2).min(cost.checked_sub(4)?);
    let end = sorted.partition_point(|(other, _, _)| *other <= at_most);
    let cheaper = sorted[..end].iter().rev();
    cheaper.map(|(_, _, name)| name).find(|name| *name != tool).cloned()
}

fn of_tool(tool: &Value) -> Signals {
    let text = |key: &str| tool.get(key).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let title = text("title");
    let schema = tool.get("inputSchema").and_then(Value::as_object);
    let none = Map::new();
    let properties = object(schema, "properties").unwrap_or(&none);
    let count = |holds: &dyn Fn(&Map<String, Value>) -> bool| {
        properties.values().filter_map(Value::as_object).filter(|one| holds(one)).count() as u64
    };
    let described =
        count(&|one| one.get("description").and_then(Value::as_str).is_some_and(|d| !d.is_empty()));
    let total = properties.len() as u64;
    let is_filled =
        |key: &str| tool.get(key).and_then(Value::as_object).is_some_and(|o| !o.is_empty());
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let subtree = schema.map(Subtree::of).unwrap_or_default();
    Signals {
        tool: name.to_owned(),
        flags: gates(name, title, text("description")),
        param_count: total,
        params_with_descriptions: described,
        params_with_enums: count(&|one| one.get("enum").is_some_and(Value::is_array)),
        required_param_count: required.map_or(0, Vec::len) as u64,
        // Rounded to the nearest, ties up.
        schema_description_coverage: if total == 0 {
            100
        } else {
            (described * 200 + total) / (2 * total)
        },
        has_nested_objects: count(&|one| one.get("type").and_then(Value::as_str) == Some("object"))
            > 0,
        has_annotations: is_filled("annotations"),
        has_output_schema: is_filled("outputSchema"),
        title_is_meaningful: title.is_some_and(|title| {
            title != name && title.encode_utf16().count() > name.encode_utf16().count()
        }),
        required_field_count: subtree.fields,
        schema_depth: subtree.depth,
        union_choice_count: subtree.unions,
        invocation_cost: subtree.fields + 2 * subtree.depth.saturating_sub(1) + 2 * subtree.unions,
        shadowed_by: None,
    }
}

fn object<'v>(from: Option<&'v Map<String, Value>>, key: &str) -> Option<&'v Map<String, Value>> {
    from?.get(key)?.as_object()
}

fn gates(name: &str, title: Option<&str>, description: Option<&str>) -> Vec<&'static str> {
    let trim = |text: &str| text.trim_matches(is_js_space).to_owned();
    let description = trim(description.unwrap_or_default());
    if description.is_empty() {
        return vec!["No Description"];
    }
    let said = description.to_lowercase();
    let restates = |text: &str| said == trim(&text.to_lowercase());
    match restates(name) || title.is_some_and(restates) {
        true => vec!["Tautological Description"],
        false => Vec::new(),
    }
}

/// White space as JavaScript trims it.
fn is_js_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}'
        | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}')
}

/// The part of a schema that a minimal call must fill in.
#[derive(Clone, Copy, Default)]
struct Subtree {
    fields: u64,
    depth: u64,
    unions: u64,
}

impl Subtree {
    fn of(schema: &Map<String, Value>) -> Subtree {
        if !has_properties(schema) {
            return Subtree::default();
        }
        let mut visitor = Visitor { root: schema, path: BTreeSet::new(), nodes: 0 };
        visitor.visit_object(schema, 0)
    }

    fn add(&mut self, other: Subtree) {
        self.fields += other.fields;
        self.unions += other.unions;
        self.depth = self.depth.max(other.depth);
    }
}

fn has_properties(schema: &Map<String, Value>) -> bool {
    object(Some(schema), "properties").is_some_and(|properties| !properties.is_empty())
}

struct Visitor<'s> {
    root: &'s Map<String, Value>,
    /// The references on the way to the current node.
    path: BTreeSet<String>,
    nodes: usize,
}

impl<'s> Visitor<'s> {
    fn visit(&mut self, schema: &'s Value, depth: u64) -> Subtree {
        let none = Subtree { depth, ..Subtree::default() };
        match schema.as_object() {
            Some(schema) => self.visit_object(schema, depth),
            None => none,
        }
    }

    fn visit_object(&mut self, schema: &'s Map<String, Value>, depth: u64) -> Subtree {
        let none = Subtree { depth, ..Subtree::default() };
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return none;
        }
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return self.visit_resolved(schema, depth);
        };
        let Some(resolved) = self.resolve(reference) else { return none };
        if !self.path.insert(reference.to_owned()) {
            return none;
        }
        let found = self.visit_resolved(resolved, depth);
        self.path.remove(reference);
        found
    }

    /// The schema that a reference to `$defs` or `definitions` of the root names.
    fn resolve(&self, reference: &str) -> Option<&'s Map<String, Value>> {
        let rest = reference.strip_prefix("#/")?;
        let (key, name) = rest.split_once('/')?;
        let is_local =
            (key == "$defs" || key == "definitions") && !name.is_empty() && !name.contains('/');
        let definitions = is_local.then(|| self.root.get(key)?.as_object())??;
        definitions.get(&percent_decoded(name))?.as_object()
    }

    fn visit_resolved(&mut self, schema: &'s Map<String, Value>, depth: u64) -> Subtree {
        let mut sum = Subtree { depth, ..Subtree::default() };
        if has_properties(schema) && depth < MAX_DEPTH {
            let properties = object(Some(schema), "properties");
            sum.depth = sum.depth.max(depth + 1);
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            for name in required.filter_map(Value::as_str) {
                sum.fields += 1;
                if let Some(child) = properties.and_then(|properties| properties.get(name)) {
                    let child = self.visit(child, depth + 1);
                    sum.add(child);
                }
            }
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            let items = self.visit(items, depth);
            sum.add(items);
        }
        for branch in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let branch = self.visit(branch, depth);
            sum.add(branch);
        }
        if let Some(negated) = schema.get("not").filter(|negated| negated.is_object()) {
            sum.depth = sum.depth.max(self.visit(negated, depth).depth);
        }
        for keyword in ["oneOf", "anyOf"] {
            let branches = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
            let real: Vec<&Value> = branches.filter(|branch| !is_null(branch)).collect();
            let mut widest: Option<Subtree> = None;
            for branch in &real {
                let found = self.visit(branch, depth);
                sum.depth = sum.depth.max(found.depth);
                if widest.is_none_or(|widest| found.fields > widest.fields) {
                    widest = Some(found);
                }
            }
            let widest = widest.unwrap_or_default();
            sum.fields += widest.fields;
            sum.unions += widest.unions + (real.len() as u64).saturating_sub(1);
        }
        sum
    }
}

/// Returns whether a branch only allows null: an optional value is not a choice.
fn is_null(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == "null",
        Some(Value::Array(list)) => {
            matches!(list.as_slice(), [Value::String(one)] if one == "null")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_minimal_call_is_measured_through_references_and_alternatives() {
        let address = json!({"type": "object", "required": ["street", "next"], "properties": {
            "street": {"type": "string"}, "next": {"$ref": "#/$defs/address"}}});
        let tool = json!({"name": "ship", "description": " Ship ", "inputSchema": {
            "type": "object", "required": ["to", "note", "how"],
            "properties": {
                "to": {"$ref": "#/$defs/address"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "x"},
                "how": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "extra": {"type": "object", "enum": []}},
            "$defs": {"address": address}}});
        let found = &signals(&[tool])[0];
        assert_eq!(found.flags, ["Tautological Description"]);
        assert_eq!((found.param_count, found.schema_description_coverage), (4, 25));
        // to, street, next, note, how; two levels; one choice.
        assert_eq!((found.required_field_count, found.schema_depth), (5, 2));
        assert_eq!((found.union_choice_count, found.invocation_cost), (1, 9));
        assert!(found.has_nested_objects && !found.has_output_schema);
    }

    #[test]
    fn a_tool_is_shadowed_by_the_dearest_much_cheaper_one() {
        let costs = [("a", 0), ("c", 3), ("b", 3), ("d", 8)]
            .map(|(name, cost)| (cost, Reverse(name.encode_utf16().collect()), name.to_owned()));
        assert!(costs.is_sorted());
        let found = |tool: &str, cost| dearest_cheaper(tool, cost, &costs);
        assert_eq!(found("d", 8).as_deref(), Some("b"));
        assert_eq!((found("b", 3), found("a", 0)), (None, None));
    }
}

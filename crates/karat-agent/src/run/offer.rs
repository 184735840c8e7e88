//! The tools that a model is offered, under names that endpoints accept.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::trace::ToolDefinition;

/// The longest name that endpoints accept.
const MAX_NAME: usize = 64;
/// The number of characters of a result that a model gets.
const MAX_RESULT: usize = 20_000;

/// The tools on offer.
#[derive(Debug, Default)]
pub(super) struct Offer {
    /// The definitions, by the name that the model sees.
    tools: BTreeMap<String, ToolDefinition>,
    servers: BTreeSet<String>,
}

impl Offer {
    /// Adds the tools that a server lists. Names that endpoints accept are kept before others are
    /// changed into them; a tool that is listed twice counts once.
    pub(super) fn add(&mut self, server: &str, tools: &Value) {
        self.servers.insert(server.to_owned());
        let listed = tools.as_array().into_iter().flatten();
        let mut named: Vec<(&str, &Value)> =
            listed.filter_map(|tool| Some((tool.get("name")?.as_str()?, tool))).collect();
        named.sort_by_key(|(name, _)| plain(name) != *name);
        let mut seen = BTreeSet::new();
        for (name, tool) in named {
            if !seen.insert(name) {
                continue;
            }
            let definition = ToolDefinition {
                name: name.to_owned(),
                server: Some(server.to_owned()),
                description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
                input_schema: tool.get("inputSchema").cloned(),
            };
            self.tools.insert(self.free_name(server, name), definition);
        }
    }

    /// The tool's own name, else with its server's, else with the first number that makes it unique.
    fn free_name(&self, server: &str, name: &str) -> String {
        let with_server = plain(&format!("{server}__{name}"));
        let numbered = (2_u64..).map(|number| {
            let end = format!("_{number}");
            let start: String = with_server.chars().take(MAX_NAME - end.len()).collect();
            start + &end
        });
        let mut all = [plain(name), with_server.clone()].into_iter().chain(numbered);
        // There are more numbers than tools.
        all.find(|shown| !self.tools.contains_key(shown)).unwrap_or_default()
    }

    /// The server and tool of a name that the model used.
    pub(super) fn find(&self, name: &str) -> Option<(&str, &str)> {
        let tool = self.tools.get(name).or_else(|| {
            self.tools.values().find(|tool| {
                let server = tool.server.as_deref().unwrap_or_default();
                name == format!("{server}:{}", tool.name)
            })
        })?;
        Some((tool.server.as_deref()?, &tool.name))
    }

    /// The one server, if there is one.
    pub(super) fn only_server(&self) -> Option<String> {
        self.servers.first().filter(|_| self.servers.len() == 1).cloned()
    }

    /// The tools with the names that the model sees.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&String, &ToolDefinition)> {
        self.tools.iter()
    }

    /// The tools as a trace has them.
    pub(super) fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.values().cloned().collect()
    }
}

fn plain(name: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    let name = if name.is_empty() { "_" } else { name };
    name.chars().map(fine).take(MAX_NAME).collect()
}

/// A result as a model gets it.
pub(super) fn text(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .collect();
    let text = if texts.is_empty() { result.to_string() } else { texts.join("\n") };
    karat_io::text::clip(&text, MAX_RESULT).into_owned()
}

/// The data of a result: the structured content, else the JSON in its text, else the text.
pub(super) fn data(result: &Value) -> Value {
    if let Some(data) = result.get("structuredContent") {
        return data.clone();
    }
    let text = text(result);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offer(servers: &[(&str, &[&str])]) -> Offer {
        let mut offer = Offer::default();
        for (server, names) in servers {
            let tools: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            offer.add(server, &Value::Array(tools));
        }
        offer
    }

    /// Every tool under a name that endpoints accept, with its own.
    fn shown(offer: &Offer) -> Vec<(String, String)> {
        let all = offer.shown().map(|(shown, tool)| {
            assert!(shown.len() <= MAX_NAME && plain(shown) == *shown, "{shown}");
            let server = tool.server.as_deref().unwrap();
            assert_eq!(offer.find(shown), Some((server, tool.name.as_str())));
            (shown.clone(), format!("{server}:{}", tool.name))
        });
        all.collect()
    }

    #[test]
    fn names_that_become_equal_stay_distinct() {
        let offer = offer(&[("s", &["a.b", "a_b", "a b", "a/b", "a_b"]), ("t", &["a_b"])]);
        let expected = [
            ("a_b", "s:a_b"),
            ("s__a_b", "s:a.b"),
            ("s__a_b_2", "s:a b"),
            ("s__a_b_3", "s:a/b"),
            ("t__a_b", "t:a_b"),
        ];
        let expected = expected.map(|(shown, tool)| (shown.to_owned(), tool.to_owned()));
        assert_eq!(shown(&offer), expected);
    }

    #[test]
    fn long_names_with_a_common_start_stay_distinct() {
        let long = "x".repeat(80);
        let names: Vec<String> = (0..12).map(|number| format!("{long}{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let offer = offer(&[("server", &names)]);
        let mut tools: Vec<String> = shown(&offer).into_iter().map(|(_, tool)| tool).collect();
        tools.sort();
        tools.dedup();
        assert_eq!(tools.len(), 12);
    }
}

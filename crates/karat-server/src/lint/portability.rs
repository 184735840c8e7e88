//! Rules about parts of a definition that clients and model providers handle differently.

use karat_core::finding::Severity;
use serde_json::Value;

use super::definition::Definition;
use super::{Findings, Server};
use crate::probe::Rule;
use crate::probe::destructive_tools::{is_in, split_name};

/// The longest name of a parameter that all providers accept.
const MAX_KEY: usize = 64;
/// The words of a tool that returns a list, and of parameters that bound it.
const LISTS: &str = "list search find query all browse scan";
const BOUNDS: &str = "\
    limit max maximum count size page pages cursor offset top n first last take results per head tail";

pub(super) const KEYWORDS: Rule = Rule {
    id: "schema-not-portable",
    severity: Severity::Warning,
    summary: "the input schema uses what some clients or model providers refuse",
    help: "Major providers refuse `anyOf`, `oneOf`, `allOf` and `not` at the top of a schema, arrays \
           without `items`, and names of parameters outside of A-Z a-z 0-9 _ . - with at most 64 \
           characters; one such tool can make a client drop all tools of the server.",
};

pub(super) const UNBOUNDED: Rule = Rule {
    id: "unbounded-list",
    severity: Severity::Note,
    summary: "the tool lists things, and no parameter bounds how many",
    help: "A long list fills the context of a model. Add a limit with a default, and a cursor.",
};

pub(super) const ICONS: Rule = Rule {
    id: "icon-invalid",
    severity: Severity::Warning,
    summary: "an icon is not as the protocol wants it",
    help: "Each icon has a `src` that is an https or data URL; clients ignore others, since a remote \
           http or file URL could track or attack the user.",
};

pub(super) const TASKS: Rule = Rule {
    id: "task-support",
    severity: Severity::Warning,
    summary: "the tool can only be called as a task, or its taskSupport is not valid",
    help: "`execution.taskSupport` is forbidden, optional or required. With `required`, clients \
           without tasks, which are most, cannot call the tool at all.",
};

pub(super) fn keywords(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/inputSchema", |tool| {
        let schema = tool.input_schema()?;
        for keyword in ["anyOf", "oneOf", "allOf", "not"] {
            if schema.get(keyword).is_some() {
                return Some(format!("`{keyword}` is at the top of the input schema"));
            }
        }
        for parameter in tool.parameters() {
            let name = parameter.name.as_str();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            let own = name.rsplit('.').next().unwrap_or(name);
            if own.len() > MAX_KEY || !own.chars().all(|c| is_plain(c) || "[]".contains(c)) {
                return Some(format!("the name of parameter {name:?} is not portable"));
            }
            if parameter.text("type") == Some("array") && !parameter.has("items") {
                return Some(format!("the list {name} has no `items`"));
            }
        }
        None
    });
}

pub(super) fn unbounded(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/inputSchema", |tool| {
        let words = split_name(tool.name());
        let lists = words.first().is_some_and(|word| is_in(word, LISTS))
            || words.iter().any(|word| word == "all");
        let bounds = |name: &str| split_name(name).iter().any(|word| is_in(word, BOUNDS));
        let is_bounded = tool.parameters().iter().any(|parameter| bounds(&parameter.name));
        (lists && !is_bounded).then(|| "returns a list without a limit or cursor".to_owned())
    });
}

pub(super) fn icons(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/icons", |tool| {
        let icons = tool.raw().get("icons")?;
        let Some(list) = icons.as_array() else { return Some("`icons` is not a list".to_owned()) };
        list.iter().find_map(|icon| match icon.get("src").and_then(Value::as_str) {
            None => Some("an icon has no `src`".to_owned()),
            Some(src) if src.starts_with("https://") || src.starts_with("data:image/") => None,
            Some(src) => {
                let start: String = src.chars().take(60).collect();
                Some(format!("the icon {start:?} is neither an https nor a data URL"))
            }
        })
    });
}

pub(super) fn tasks(server: &Server<'_>, findings: &mut Findings<'_>) {
    findings.each(server, "/execution/taskSupport", |tool: &Definition<'_>| {
        match tool.raw().pointer("/execution/taskSupport")?.as_str() {
            Some("forbidden" | "optional") => None,
            Some("required") => Some("can only be called as a task".to_owned()),
            _ => Some("`taskSupport` is not forbidden, optional or required".to_owned()),
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::tools;
    use super::*;

    #[test]
    fn what_providers_refuse_is_found() {
        let bad = [
            json!({"name": "top", "inputSchema": {"type": "object", "anyOf": [{}]}}),
            json!({"name": "key", "inputSchema": {"type": "object", "properties": {"a b": {"type": "string"}}}}),
            json!({"name": "list", "inputSchema": {"type": "object", "properties": {"a": {"type": "array"}}}}),
            json!({"name": "fine", "inputSchema": {"type": "object", "properties": {
                "a": {"type": "array", "items": {"type": "string"}}}}}),
        ];
        assert_eq!(tools(&KEYWORDS, &bad), ["top", "key", "list"]);
    }

    #[test]
    fn lists_icons_and_tasks_are_checked() {
        let schema =
            |name: &str| json!({"type": "object", "properties": {name: {"type": "integer"}}});
        let lists = [
            json!({"name": "list_users", "inputSchema": schema("team")}),
            json!({"name": "list_teams", "inputSchema": schema("maxResults")}),
            json!({"name": "get_user", "inputSchema": schema("id")}),
        ];
        assert_eq!(tools(&UNBOUNDED, &lists), ["list_users"]);
        let icons = [
            json!({"name": "a", "icons": [{"src": "http://x/i.png"}]}),
            json!({"name": "b", "icons": [{"src": "https://x/i.png"}]}),
            json!({"name": "c", "icons": {}}),
        ];
        assert_eq!(tools(&ICONS, &icons), ["a", "c"]);
        let tasks = [
            json!({"name": "a", "execution": {"taskSupport": "required"}}),
            json!({"name": "b", "execution": {"taskSupport": "optional"}}),
        ];
        assert_eq!(tools(&TASKS, &tasks), ["a"]);
    }
}

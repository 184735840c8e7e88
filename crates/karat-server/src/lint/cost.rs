//! Rules about the cost of definitions: every tool is paid for in every turn.

use karat_core::finding::Severity;
use serde_json::{Value, json};

use super::definition::Definition;
use super::{Cost, Findings, Server};
use crate::probe::Rule;

/// The tokens of one tool that are worth a note.
const TOOL_TOKENS: u64 = 1_000;
/// The tokens of all tools together that leave too little room for the task.
const SERVER_TOKENS: u64 = 20_000;

pub(super) const TOOL: Rule = Rule {
    id: "tool-cost",
    severity: Severity::Note,
    summary: "the definition costs more than 1,000 tokens",
    help: "Every turn of every conversation with the tool pays for it. Move long usage notes \
           to the server instructions or to documentation that is read when needed.",
};

pub(super) const SERVER: Rule = Rule {
    id: "server-cost",
    severity: Severity::Warning,
    summary: "all definitions together cost more than 20,000 tokens",
    help: "Models choose worse among many tools, and the cost is paid in every turn. Split the \
           server, or let clients choose a set of tools.",
};

/// The tokens of the parts that a client passes on to a model: name, description and input schema.
pub(super) fn of(tool: &Definition<'_>, count: &dyn Fn(&str) -> u64) -> Cost {
    let passed_on = json!({
        "name": tool.name(),
        "description": tool.description(),
        "input_schema": tool.input_schema().unwrap_or(&Value::Null),
    });
    Cost { tool: tool.name().to_owned(), tokens: count(&passed_on.to_string()) }
}

pub(super) fn tool(server: &Server<'_>, findings: &mut Findings<'_>) {
    for (index, (tool, cost)) in server.tools.iter().zip(&server.costs).enumerate() {
        if cost.tokens > TOOL_TOKENS {
            findings.tool(index, tool, "", format!("the definition costs {} tokens", cost.tokens));
        }
    }
}

pub(super) fn server(server: &Server<'_>, findings: &mut Findings<'_>) {
    let tokens = server.tokens();
    if tokens > SERVER_TOKENS {
        findings.server(format!("{} tools cost {tokens} tokens", server.tools.len()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::found;
    use super::*;

    #[test]
    fn a_long_definition_and_many_definitions_are_found() {
        let long = |words: usize| json!({"name": "t", "description": "word ".repeat(words)});
        assert_eq!(found(&TOOL, &[long(900)]), []);
        assert_eq!(found(&TOOL, &[long(1100)]).len(), 1);
        let crowd: Vec<Value> = (0..30).map(|_| long(700)).collect();
        assert!(found(&SERVER, &crowd)[0].2.starts_with("30 tools cost "));
    }
}

//! Static quality of tool definitions: what a model and a client will trip over, found without a call.
//!
//! Each rule stands in a file of its family with its id, severity, reason and test; [`RULES`] lists
//! them all, and the help, the docs and SARIF are made from that list. A rule reads definitions as
//! they were served; nothing is repaired on the way. Findings come in the order of tools, then rules.

mod annotations;
mod cost;
mod definition;
mod descriptions;
mod duplicates;
mod names;
mod parameters;
mod schemas;

use serde::Serialize;
use serde_json::Value;

use self::definition::Definition;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing breaks.
    Note,
    /// A model is likely to choose or call the tool wrongly.
    Warning,
    /// A client cannot use the tool as it is.
    Error,
}

impl Severity {
    /// The name in reports, and the level in SARIF.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One rule, with everything a reader of a finding wants to know.
pub struct Rule {
    /// Its id, stable, as it stands in reports and in an allow-list.
    pub id: &'static str,
    /// How bad a finding of it is.
    pub severity: Severity,
    /// What it looks for, in one line.
    pub summary: &'static str,
    /// Why it matters and what to do.
    pub help: &'static str,
    check: fn(&Server<'_>, &mut Findings<'_>),
}

/// Every rule, in the order in which they are shown.
pub const RULES: &[&Rule] = &[
    &names::INVALID,
    &names::DUPLICATE,
    &descriptions::MISSING,
    &descriptions::SHORT,
    &descriptions::DUPLICATE,
    &schemas::INPUT_INVALID,
    &schemas::INPUT_NOT_OBJECT,
    &schemas::OUTPUT_INVALID,
    &schemas::OUTPUT_NOT_OBJECT,
    &schemas::REQUIRED_UNKNOWN,
    &parameters::UNDOCUMENTED,
    &parameters::UNTYPED,
    &parameters::ENUM_CANDIDATE,
    &duplicates::NEAR_DUPLICATE,
    &annotations::MISSING,
    &annotations::CONTRADICTION,
    &cost::TOOL,
    &cost::SERVER,
];

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule.
    pub rule: &'static str,
    /// How bad.
    pub severity: Severity,
    /// The tool, by name; empty where it is about the server as a whole.
    pub tool: String,
    /// Where in the definition, as a JSON pointer.
    pub at: String,
    /// What is wrong, with the names concerned.
    pub message: String,
}

/// What the definition of one tool costs a model that is offered it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// The tool.
    pub tool: String,
    /// Tokens of name, description and input schema as compact JSON.
    pub tokens: u64,
}

/// What lint says of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// How many tools were looked at.
    pub tools: usize,
    /// What was found.
    pub findings: Vec<Finding>,
    /// The cost of each tool, in served order.
    pub costs: Vec<Cost>,
    /// The cost of all tools together.
    pub tokens: u64,
}

impl Outcome {
    /// The worst severity among the findings.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// What lint needs to know beside the definitions.
pub struct Settings<'a> {
    /// Counts the tokens of a text.
    pub count_tokens: &'a dyn Fn(&str) -> u64,
    /// Rules that are not run, by id.
    pub allow: &'a [String],
}

/// The definitions of a server, read for the rules.
struct Server<'a> {
    tools: Vec<Definition<'a>>,
    costs: Vec<Cost>,
}

impl Server<'_> {
    fn tokens(&self) -> u64 {
        self.costs.iter().map(|cost| cost.tokens).sum()
    }
}

/// Takes what one rule finds.
struct Findings<'a> {
    rule: &'a Rule,
    found: Vec<(usize, Finding)>,
}

impl Findings<'_> {
    /// A finding about the tool at `index`.
    fn tool(
        &mut self,
        index: usize,
        tool: &Definition<'_>,
        at: impl Into<String>,
        message: String,
    ) {
        self.push(index, tool.name().to_owned(), at.into(), message);
    }

    /// A finding about the server as a whole.
    fn server(&mut self, message: String) {
        self.push(usize::MAX, String::new(), String::new(), message);
    }

    fn push(&mut self, index: usize, tool: String, at: String, message: String) {
        let Rule { id, severity, .. } = *self.rule;
        self.found.push((index, Finding { rule: id, severity, tool, at, message }));
    }
}

/// Runs every rule that is not allowed away over the definitions of one server.
#[must_use]
pub fn lint(definitions: &[Value], settings: &Settings<'_>) -> Outcome {
    let tools: Vec<Definition<'_>> = definitions.iter().map(Definition::read).collect();
    let costs = tools.iter().map(|tool| cost::of(tool, settings.count_tokens)).collect();
    let server = Server { tools, costs };
    let mut found = Vec::new();
    for rule in RULES {
        if settings.allow.iter().any(|id| id == rule.id) {
            continue;
        }
        let mut findings = Findings { rule, found: Vec::new() };
        (rule.check)(&server, &mut findings);
        found.append(&mut findings.found);
    }
    // Stable: within a tool the order of the rules stays.
    found.sort_by_key(|(index, _)| *index);
    Outcome {
        tools: server.tools.len(),
        findings: found.into_iter().map(|(_, finding)| finding).collect(),
        tokens: server.tokens(),
        costs: server.costs,
    }
}

/// A rule by its id.
#[must_use]
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

#[cfg(test)]
mod testing {
    use super::*;

    /// What one rule finds in these definitions: tool, place and message.
    pub(super) fn found(rule: &Rule, definitions: &[Value]) -> Vec<(String, String, String)> {
        let settings =
            Settings { count_tokens: &|text| text.split_whitespace().count() as u64, allow: &[] };
        lint(definitions, &settings)
            .findings
            .into_iter()
            .filter(|finding| finding.rule == rule.id)
            .map(|finding| (finding.tool, finding.at, finding.message))
            .collect()
    }

    /// The tools that one rule complains about.
    pub(super) fn tools(rule: &Rule, definitions: &[Value]) -> Vec<String> {
        found(rule, definitions).into_iter().map(|(tool, _, _)| tool).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_unique_and_every_rule_explains_itself() {
        let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RULES.len());
        for rule in RULES {
            assert!(rule.summary.len() > 10 && rule.help.len() > 20, "{}", rule.id);
        }
    }

    #[test]
    fn a_well_made_tool_has_no_findings() {
        let tool = json!({
            "name": "convert_currency",
            "description": "Converts an amount of money from one currency to another at the rate of a given day.",
            "inputSchema": {"type": "object", "properties": {
                "amount": {"type": "number", "description": "How much, in units of the first currency"},
                "from": {"type": "string", "description": "The currency to convert from, ISO 4217"},
            }, "required": ["amount", "from"]},
            "annotations": {"readOnlyHint": true},
        });
        let settings = Settings { count_tokens: &|text| text.len() as u64 / 4, allow: &[] };
        let outcome = lint(&[tool], &settings);
        assert_eq!(outcome.findings, []);
        assert_eq!(outcome.worst(), None);
        assert!(outcome.tokens > 0);
    }

    #[test]
    fn an_allowed_rule_is_not_run() {
        let tool = json!({"name": "a", "inputSchema": {"type": "object"}});
        let allow = [descriptions::MISSING.id.to_owned(), annotations::MISSING.id.to_owned()];
        let settings = Settings { count_tokens: &|_| 1, allow: &allow };
        assert_eq!(lint(&[tool], &settings).findings, []);
    }

    #[test]
    fn what_is_no_definition_is_a_finding_and_not_a_crash() {
        for broken in [json!(null), json!(7), json!("x"), json!([]), json!({}), json!({"name": 3})]
        {
            let settings = Settings { count_tokens: &|_| 1, allow: &[] };
            let outcome = lint(std::slice::from_ref(&broken), &settings);
            assert_eq!(outcome.worst(), Some(Severity::Error), "{broken}");
        }
    }
}

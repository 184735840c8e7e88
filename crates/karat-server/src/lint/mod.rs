//! Static quality of tool definitions: what models and clients will stumble over, found without a call.
//!
//! Each rule is in the file of its family with its id, severity, reason and test; [`rules`] lists them
//! all, and the help, the docs and SARIF are made from that list. A rule reads definitions as they were
//! served; nothing is repaired before. Findings are in the order of tools, then rules.

mod annotations;
mod cost;
mod definition;
mod descriptions;
mod duplicates;
mod names;
mod parameters;
mod portability;
mod schemas;
mod tdqs;

use karat_core::finding::{Finding, Severity};
use serde::Serialize;
use serde_json::Value;

use self::definition::Definition;
pub use self::tdqs::Signals;
use crate::detect::{Detector, Subject, Suspicion};
use crate::probe::Rule;

/// Finds what violates a rule.
type Check = fn(&Server<'_>, &mut Findings<'_>);

/// Every rule with its check, in the order in which they are shown.
const CHECKS: &[(&Rule, Check)] = &[
    (&names::INVALID, names::invalid),
    (&names::DUPLICATE, names::duplicate),
    (&descriptions::MISSING, descriptions::missing),
    (&descriptions::SHORT, descriptions::short),
    (&descriptions::DUPLICATE, descriptions::duplicate),
    (&schemas::INPUT_INVALID, schemas::input_invalid),
    (&schemas::INPUT_NOT_OBJECT, schemas::input_not_object),
    (&schemas::OUTPUT_INVALID, schemas::output_invalid),
    (&schemas::OUTPUT_NOT_OBJECT, schemas::output_not_object),
    (&schemas::REQUIRED_UNKNOWN, schemas::required_unknown),
    (&parameters::UNDOCUMENTED, parameters::undocumented),
    (&parameters::UNTYPED, parameters::untyped),
    (&parameters::ENUM_CANDIDATE, parameters::enum_candidate),
    (&portability::KEYWORDS, portability::keywords),
    (&portability::UNBOUNDED, portability::unbounded),
    (&portability::ICONS, portability::icons),
    (&portability::TASKS, portability::tasks),
    (&duplicates::NEAR_DUPLICATE, duplicates::near_duplicate),
    (&annotations::MISSING, annotations::missing),
    (&annotations::CONTRADICTION, annotations::contradiction),
    (&cost::TOOL, cost::tool),
    (&cost::SERVER, cost::server),
];

/// Every rule, in the order in which they are shown.
pub fn rules() -> Vec<&'static Rule> {
    CHECKS.iter().map(|(rule, _)| *rule).collect()
}

/// The cost of the definition of one tool for a model that gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// The tool.
    pub tool: String,
    /// The tokens of name, description and input schema as compact JSON.
    pub tokens: u64,
}

/// The result of linting a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The number of tools.
    pub tools: usize,
    /// The findings.
    pub findings: Vec<Finding>,
    /// The cost of each tool, in served order.
    pub costs: Vec<Cost>,
    /// The cost of all tools together.
    pub tokens: u64,
    /// The deterministic part of the Tool Definition Quality Score, in served order.
    pub tdqs: Vec<Signals>,
}

impl Outcome {
    /// The highest severity among the findings.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// The settings of lint.
pub struct Settings<'a> {
    /// Counts the tokens of a text.
    pub count_tokens: &'a dyn Fn(&str) -> u64,
    /// The ids of rules that are not run.
    pub allow: &'a [String],
    /// Detectors of hostile text, and the instructions of the server for them.
    pub detector: Option<Detector>,
    /// The instructions of the server.
    pub instructions: Option<&'a str>,
}

/// The definitions of a server.
struct Server<'a> {
    tools: Vec<Definition<'a>>,
    costs: Vec<Cost>,
}

impl Server<'_> {
    fn tokens(&self) -> u64 {
        self.costs.iter().map(|cost| cost.tokens).sum()
    }
}

/// Collects the findings of one rule.
struct Findings<'a> {
    rule: &'a Rule,
    found: Vec<(usize, Finding)>,
}

impl Findings<'_> {
    /// A finding about each tool with a problem, in this place of its definition.
    fn each<'s>(
        &mut self,
        server: &Server<'s>,
        at: &str,
        problem: impl Fn(&Definition<'s>) -> Option<String>,
    ) {
        for (index, tool) in server.tools.iter().enumerate() {
            if let Some(message) = problem(tool) {
                self.tool(index, tool, at, message);
            }
        }
    }

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
        let rule = id.to_owned();
        self.found
            .push((index, Finding { rule, severity, tool, at, message, ..Finding::default() }));
    }
}

/// Runs every rule that is not in the allow-list over the definitions of one server.
#[must_use]
pub fn lint(definitions: &[Value], settings: &Settings<'_>) -> Outcome {
    let tools: Vec<Definition<'_>> = definitions.iter().map(Definition::read).collect();
    let costs = tools.iter().map(|tool| cost::of(tool, settings.count_tokens)).collect();
    let server = Server { tools, costs };
    let mut found = Vec::new();
    for (rule, check) in CHECKS {
        if settings.allow.iter().any(|id| id == rule.id) {
            continue;
        }
        let mut findings = Findings { rule, found: Vec::new() };
        check(&server, &mut findings);
        found.append(&mut findings.found);
    }
    found.extend(suspicions(definitions, settings));
    // The sort is stable: within a tool the order of the rules is kept.
    found.sort_by_key(|(index, _)| *index);
    Outcome {
        tools: server.tools.len(),
        findings: found.into_iter().map(|(_, finding)| finding).collect(),
        tokens: server.tokens(),
        costs: server.costs,
        tdqs: tdqs::signals(definitions),
    }
}

/// The findings of the detectors, with the position of the tool.
fn suspicions(definitions: &[Value], settings: &Settings<'_>) -> Vec<(usize, Finding)> {
    let Some(detector) = settings.detector else { return Vec::new() };
    let tools = definitions.iter().enumerate().map(|(at, raw)| (at, Subject::Tool(raw)));
    let server = settings.instructions.map(|text| (usize::MAX, Subject::Instructions(text)));
    let mut found = Vec::new();
    for (at, subject) in tools.chain(server) {
        let name = definitions.get(at).and_then(|raw| raw.get("name")).and_then(Value::as_str);
        for Suspicion { rule, severity, at: place, message } in detector(subject) {
            if settings.allow.iter().all(|id| id != rule) {
                let (rule, tool) = (rule.to_owned(), name.unwrap_or_default().to_owned());
                let finding =
                    Finding { rule, severity, tool, at: place, message, ..Finding::default() };
                found.push((at, finding));
            }
        }
    }
    found
}

#[cfg(test)]
mod testing {
    use super::*;

    /// The findings of one rule in these definitions: tool, place and message.
    pub(super) fn found(rule: &Rule, definitions: &[Value]) -> Vec<(String, String, String)> {
        let settings = Settings {
            count_tokens: &|text| text.split_whitespace().count() as u64,
            allow: &[],
            detector: None,
            instructions: None,
        };
        lint(definitions, &settings)
            .findings
            .into_iter()
            .filter(|finding| finding.rule == rule.id)
            .map(|finding| (finding.tool, finding.at, finding.message))
            .collect()
    }

    /// The tools with findings of one rule.
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
        let mut ids: Vec<&str> = rules().iter().map(|rule| rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CHECKS.len());
        for rule in rules() {
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
        let settings = Settings {
            count_tokens: &|text| text.len() as u64 / 4,
            allow: &[],
            detector: None,
            instructions: None,
        };
        let outcome = lint(&[tool], &settings);
        assert_eq!(outcome.findings, []);
        assert_eq!(outcome.worst(), None);
        assert!(outcome.tokens > 0);
    }

    #[test]
    fn an_allowed_rule_is_not_run() {
        let tool = json!({"name": "a", "inputSchema": {"type": "object"}});
        let allow = [descriptions::MISSING.id.to_owned(), annotations::MISSING.id.to_owned()];
        let settings =
            Settings { count_tokens: &|_| 1, allow: &allow, detector: None, instructions: None };
        assert_eq!(lint(&[tool], &settings).findings, []);
    }

    #[test]
    fn an_invalid_definition_is_a_finding_and_not_a_crash() {
        for broken in [json!(null), json!(7), json!("x"), json!([]), json!({}), json!({"name": 3})]
        {
            let settings =
                Settings { count_tokens: &|_| 1, allow: &[], detector: None, instructions: None };
            let outcome = lint(std::slice::from_ref(&broken), &settings);
            assert_eq!(outcome.worst(), Some(Severity::Error), "{broken}");
        }
    }
}

//! Shared parts of lint, fuzz and attack: rules, the server under test, command lines that replay a
//! call, and rates as metrics.

pub(crate) mod destructive_tools;
pub(crate) mod encodings;
pub(crate) mod known_inputs;
pub mod live;
pub(crate) mod reaction;
pub(crate) mod refusal;
pub mod replay;
pub mod stop;
pub(crate) mod waivers;

use std::collections::BTreeSet;

use karat_core::aggregate;
use karat_core::error::EvalError;
use karat_core::finding::{Finding, Severity};
use karat_core::report::{Check, Count, Interval, Measured, Verdict};
use karat_io::input::nearest;
use karat_metrics::{MetricId, stats};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The name of the variable with a planted secret.
pub(crate) const SECRET_NAME: &str = "KARAT_CANARY_SECRET";

/// One kind of finding, with everything that a reader of one wants to know.
#[derive(Debug)]
pub struct Rule {
    /// The id in reports and allow-lists; it never changes.
    pub id: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// A one-line description.
    pub summary: &'static str,
    /// The reason why it matters, and what to do.
    pub help: &'static str,
}

/// The mildest severity that fails a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailOn {
    /// Every finding.
    Note,
    /// Warnings and errors.
    Warning,
    /// Errors.
    #[default]
    Error,
    /// No finding.
    Never,
}

impl FailOn {
    fn severity(self) -> Option<Severity> {
        match self {
            FailOn::Note => Some(Severity::Note),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Error => Some(Severity::Error),
            FailOn::Never => None,
        }
    }

    /// Returns whether a finding of this severity fails the run.
    pub fn fails(self, severity: Severity) -> bool {
        self.severity().is_some_and(|least| severity >= least)
    }
}

/// The check that no finding is too severe. `metric` is the metric that it is next to.
pub(crate) fn findings_check(metric: &str, findings: &[Finding], fail_on: FailOn) -> Check {
    let severe: Vec<&Finding> =
        findings.iter().filter(|finding| fail_on.fails(finding.severity)).collect();
    let distinct = |part: fn(&Finding) -> &String| {
        let mut parts: Vec<String> = severe.iter().map(|finding| part(finding).clone()).collect();
        parts.sort();
        parts.dedup();
        parts
    };
    let reason = match (fail_on.severity(), severe.first()) {
        (None, _) => "findings do not fail this run".to_owned(),
        (Some(least), None) => format!("no finding of severity {} or higher", least.name()),
        (Some(least), Some(first)) => format!(
            "{} of severity {} or higher ({}); first: {}: {}",
            if severe.len() == 1 {
                "1 finding".into()
            } else {
                format!("{} findings", severe.len())
            },
            least.name(),
            distinct(|finding| &finding.rule).join(", "),
            first.tool,
            first.message
        ),
    };
    Check {
        metric: metric.to_owned(),
        slice: None,
        rule: "findings".to_owned(),
        threshold: Some(0.0),
        value: Some(ratio(severe.len() as u64, 1)),
        baseline: None,
        verdict: if severe.is_empty() { Verdict::Pass } else { Verdict::Fail },
        reason,
        items: distinct(|finding| &finding.tool),
    }
}

/// Refuses names that are not among the known ones, with the nearest that is.
///
/// # Errors
/// If there is such a name. `key` is the setting, `what` the word for its values.
pub(crate) fn check_known<'a>(
    key: &str,
    what: &str,
    names: &[String],
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), EvalError> {
    match names.iter().find(|name| !known.clone().any(|one| one == *name)) {
        None => Ok(()),
        Some(name) => {
            let near = nearest(name, known);
            let hint = near.map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default();
            Err(EvalError::config(format!("`{key}`: no {what} {name:?}{hint}")))
        }
    }
}

/// A warning for each value of `--set` or `set` that no schema has a parameter for, with the nearest one: a
/// mistyped name would leave the run without its value, unnoticed.
pub(crate) fn unused_values<'a>(
    set: &Map<String, Value>,
    schemas: impl Iterator<Item = &'a Value>,
) -> Vec<String> {
    if set.is_empty() {
        return Vec::new();
    }
    let parameters = parameters(schemas);
    let unknown = set.keys().filter(|name| !parameters.contains(name.as_str()));
    let warning = |name: &String| {
        let near = nearest(name, parameters.iter().copied());
        let hint = near.map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default();
        format!("--set {name:?}: no tool has a parameter of that name{hint}")
    };
    unknown.map(warning).collect()
}

/// The names of all parameters, nested ones too.
fn parameters<'a>(schemas: impl Iterator<Item = &'a Value>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    let mut waiting: Vec<&Value> = schemas.collect();
    while let Some(schema) = waiting.pop() {
        match schema {
            Value::Object(fields) => {
                let own = fields.get("properties").and_then(Value::as_object);
                names.extend(own.into_iter().flat_map(Map::keys).map(String::as_str));
                waiting.extend(fields.values());
            }
            Value::Array(list) => waiting.extend(list),
            _ => {}
        }
    }
    names
}

/// A share of calls as a metric, with the interval of a rate.
#[must_use]
pub(crate) fn rate(id: MetricId, hits: u64, of: u64, nothing: &str) -> Measured {
    let interval = stats::wilson(hits, of, aggregate::LEVEL);
    let interval = interval.ok().map(|found| Interval::new(found, "wilson"));
    Measured {
        interval: interval.filter(|_| of > 0),
        count: Some(Count::independent(hits, of)),
        ..aggregate::value(id, (of > 0).then(|| ratio(hits, of)), of, nothing)
    }
}

/// A plain count as a metric.
pub(crate) fn counted(id: MetricId, count: u64) -> Measured {
    aggregate::value(id, Some(ratio(count, 1)), count, "")
}

#[expect(clippy::cast_precision_loss, reason = "counts of calls stay far below 2^53")]
fn ratio(hits: u64, of: u64) -> f64 {
    hits as f64 / of as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_a_parameter_is_named_with_the_nearest_one() {
        let schema = serde_json::json!({"properties": {
            "title": {"type": "string"},
            "by": {"anyOf": [{"properties": {"author": {"type": "string"}}}]},
        }});
        let set = |names: &[&str]| -> Map<String, Value> {
            names.iter().map(|name| ((*name).to_owned(), Value::from(1))).collect()
        };
        let unused = |names: &[&str]| unused_values(&set(names), [&schema].into_iter());
        assert!(unused(&["title", "author"]).is_empty());
        let near =
            "--set \"titel\": no tool has a parameter of that name (did you mean \"title\"?)";
        assert_eq!(unused(&["titel", "title"]), [near]);
        assert_eq!(unused(&["zzzzzz"]), ["--set \"zzzzzz\": no tool has a parameter of that name"]);
    }

    fn finding(rule: &str, severity: Severity) -> Finding {
        let (rule, tool, message) = (rule.to_owned(), "t".to_owned(), "broke".to_owned());
        Finding { rule, severity, tool, message, ..Finding::default() }
    }

    #[test]
    fn a_finding_fails_the_run_from_the_given_severity_on() {
        let all = [finding("b", Severity::Warning), finding("a", Severity::Error)];
        let verdict = |fail_on| findings_check("findings", &all, fail_on).verdict;
        assert_eq!(verdict(FailOn::Never), Verdict::Pass);
        assert_eq!(verdict(FailOn::Note), Verdict::Fail);
        let check = findings_check("findings", &all, FailOn::Warning);
        assert_eq!((check.value, check.items), (Some(2.0), vec!["t".to_owned()]));
        assert!(check.reason.starts_with("2 findings of severity warning or higher (a, b)"));
        let check = findings_check("findings", &all[..1], FailOn::Error);
        assert_eq!((check.verdict, check.value), (Verdict::Pass, Some(0.0)));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_known_one() {
        let error = check_known("allow", "rule", &["crsh".into()], ["hang", "crash"].into_iter());
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "`allow`: no rule \"crsh\" (did you mean \"crash\"?)");
    }
}

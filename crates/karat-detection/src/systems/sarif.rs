//! SARIF 2.1.0 as input: results become findings of the entry that they name.
//!
//! SARIF lists what was found, so an entry without a result passed, provided that the run says it
//! succeeded. Which entry a result is about is read from its properties (`id`, `entry`, `tool`,
//! `tool_name`), its logical locations, its fingerprints or its file names, in this order; a result with
//! several locations is about the entry of each of them, and one that names no known entry is an error of
//! the adapter, not a pass. Results that are gone since an earlier scan (`baselineState: absent`) and
//! suppressed ones do not count. A result without a level has the level of its rule, which may belong
//! to the driver or to an extension and may be configured again for the run.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::observed::DetectorFinding;
use serde_json::Value;

use crate::answer::{DetectorReport, Lacks, Verdict};

/// The level of a result that is only a note that something was looked at; a result of another kind than
/// `fail` has it too.
const NO_FINDING: &str = "none";

/// The results of a SARIF log by the name of the entry.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sarif {
    /// The tools that made them; their runs have all ended well.
    pub detectors: Vec<String>,
    /// The findings, by entry and detector.
    pub results: BTreeMap<String, BTreeMap<String, Vec<DetectorFinding>>>,
    /// The highest security severity of what was found, by entry and detector, where rules carry one.
    pub scores: BTreeMap<(String, String), f64>,
    /// The entries and detectors with a finding whose rule carries none.
    pub unscored: BTreeSet<(String, String)>,
    /// The number of results.
    pub seen: usize,
    /// Results that name no entry.
    pub unmatched: usize,
}

/// The most parts of the id of a rule.
const MAX_DEPTH: usize = 16;

/// The runs of several logs in one. A value that is not a log is returned, so that it is refused.
pub(super) fn joined(mut logs: Vec<Value>) -> Value {
    let is_log = |log: &Value| log.get("runs").is_some_and(Value::is_array);
    if let Some(other) = logs.iter().position(|log| !is_log(log)) {
        return logs.swap_remove(other);
    }
    let runs = logs.iter_mut().filter_map(|log| log.get_mut("runs")?.as_array_mut());
    let runs: Vec<Value> = runs.flat_map(std::mem::take).collect();
    serde_json::json!({ "runs": runs })
}

/// Reads a log. `name_of` says which entry a candidate name is for; results of `ignored` rules do not count.
///
/// # Errors
/// If it is not SARIF, or a run did not succeed.
pub(crate) fn read(
    log: &Value,
    ignored: &[String],
    name_of: impl Fn(&str) -> Option<String>,
) -> Result<Sarif, String> {
    let Some(runs) = log.get("runs").and_then(Value::as_array) else {
        return Err("this is not SARIF: it has no `runs`".to_owned());
    };
    if runs.is_empty() {
        return Err("the SARIF log has no run, so nothing was measured".to_owned());
    }
    let mut sarif = Sarif::default();
    for run in runs {
        if let Some(why) = failure(run) {
            return Err(format!("the scanner reports that its run failed: {why}"));
        }
        // By the specification an empty list says that a scan found nothing, no list that none was made.
        let Some(results) = run.get("results").and_then(Value::as_array) else {
            return Err("a run has no list of `results`, so nothing was scanned".to_owned());
        };
        let driver = run.pointer("/tool/driver");
        let detector = driver
            .and_then(|driver| driver.get("name"))
            .and_then(Value::as_str)
            .unwrap_or("sarif")
            .to_owned();
        if !sarif.detectors.contains(&detector) {
            sarif.detectors.push(detector.clone());
        }
        for result in results.iter().filter(|result| is_active(result)) {
            let rule = Rule::of(run, result);
            let found = evidence(result, &rule);
            if ignored.iter().any(|one| *one == found.rule || rule.id() == Some(one.as_str())) {
                continue;
            }
            sarif.seen += 1;
            let entries = entries(result, &name_of);
            if entries.is_empty() {
                sarif.unmatched += 1;
            }
            for entry in entries {
                if found.severity != NO_FINDING {
                    let key = (entry.clone(), detector.clone());
                    if let Some(score) = rule.descriptor.and_then(security_severity) {
                        let highest = sarif.scores.entry(key).or_insert(score);
                        *highest = highest.max(score);
                    } else {
                        sarif.unscored.insert(key);
                    }
                }
                let of_entry = sarif.results.entry(entry).or_default();
                of_entry.entry(detector.clone()).or_default().push(found.clone());
            }
        }
    }
    Ok(sarif)
}

impl Sarif {
    /// The verdict of each detector on an entry: a flag if it has results, a pass if it has none.
    pub(crate) fn reports(&self, entry: &str) -> Vec<DetectorReport> {
        self.detectors
            .iter()
            .map(|detector| {
                let findings = self
                    .results
                    .get(entry)
                    .and_then(|found| found.get(detector))
                    .cloned()
                    .unwrap_or_default();
                let flagged = findings.iter().any(|finding| finding.severity != NO_FINDING);
                let key = (entry.to_owned(), detector.clone());
                DetectorReport {
                    detector: detector.clone(),
                    verdict: Some(if flagged { Verdict::Flag } else { Verdict::Pass }),
                    score: self.scores.get(&key).copied(),
                    lacks: Lacks { score: self.unscored.contains(&key), ..Lacks::default() },
                    findings,
                    ..DetectorReport::default()
                }
            })
            .collect()
    }
}

/// Returns whether a result is of this scan and meant to be seen: not one of an earlier scan that is gone, and
/// not suppressed. A suppression that is under review or was rejected does not suppress.
fn is_active(result: &Value) -> bool {
    let gone = result.get("baselineState").and_then(Value::as_str) == Some("absent");
    let suppressions = result.get("suppressions").and_then(Value::as_array);
    let accepted = |one: &Value| {
        one.get("status").and_then(Value::as_str).is_none_or(|status| status == "accepted")
    };
    let suppressed = suppressions.is_some_and(|all| !all.is_empty() && all.iter().all(accepted));
    !gone && !suppressed
}

fn failure(run: &Value) -> Option<String> {
    let invocations = run.get("invocations").and_then(Value::as_array)?;
    let failed = invocations
        .iter()
        .find(|one| one.get("executionSuccessful").and_then(Value::as_bool) == Some(false))?;
    let said = failed
        .pointer("/toolExecutionNotifications/0/message/text")
        .or_else(|| failed.get("exitCodeDescription"))
        .and_then(Value::as_str);
    Some(said.unwrap_or("executionSuccessful is false").to_owned())
}

/// The entries that a result is about. The most explicit kind of name that is known says all of them.
fn entries(result: &Value, name_of: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let list = |value: &'_ Value, key: &str| -> Vec<Value> {
        value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let first = |names: &[&str]| names.iter().find_map(|name| name_of(name));
    let texts = |value: &'_ Value, keys: &[&str]| -> Option<String> {
        let names: Vec<&str> = keys.iter().filter_map(|key| value.get(key)?.as_str()).collect();
        first(&names)
    };
    let properties = result.get("properties");
    let named = || texts(properties?, &["id", "entry", "tool", "tool_name", "toolName"]);
    let locations = list(result, "locations");
    let logical = || {
        let all = locations.iter().flat_map(|location| list(location, "logicalLocations"));
        all.filter_map(|one| texts(&one, &["name", "fullyQualifiedName"])).collect::<BTreeSet<_>>()
    };
    let fingerprint = || {
        let all = result.get("partialFingerprints").and_then(Value::as_object)?;
        all.values().filter_map(Value::as_str).find_map(&name_of)
    };
    let files = || {
        let uri = |location: &Value| -> Option<String> {
            let uri = location.pointer("/physicalLocation/artifactLocation/uri")?.as_str()?;
            let file = uri.rsplit('/').next().unwrap_or(uri);
            first(&[uri, file, file.rsplit_once('.').map_or(file, |(stem, _)| stem)])
        };
        locations.iter().filter_map(uri).collect::<BTreeSet<_>>()
    };
    if let Some(one) = named() {
        return BTreeSet::from([one]);
    }
    let logical = logical();
    if !logical.is_empty() {
        return logical;
    }
    fingerprint().map_or_else(files, |one| BTreeSet::from([one]))
}

/// The rule that a result breaks.
struct Rule<'r> {
    /// Its definition, if the run has it.
    descriptor: Option<&'r Value>,
    /// The level that it has in this run.
    level: Option<&'r str>,
}

impl<'r> Rule<'r> {
    fn of(run: &'r Value, result: &Value) -> Rule<'r> {
        let reference = result.get("rule").unwrap_or(&Value::Null);
        let either = |key: &str, plain: &str| reference.get(key).or_else(|| result.get(plain));
        let descriptor = descriptor(
            run,
            either("id", "ruleId").and_then(Value::as_str),
            either("index", "ruleIndex"),
            reference,
        );
        let level = descriptor.and_then(|rule| {
            configured(run, result, rule)
                .or_else(|| rule.pointer("/defaultConfiguration/level")?.as_str())
        });
        Rule { descriptor, level }
    }

    fn id(&self) -> Option<&'r str> {
        self.descriptor?.get("id")?.as_str()
    }
}

/// The rule that a reference means: in the component that it names, or else in the driver, or the first
/// extension that has it. The place in the list counts only where the id there is the id of the reference.
fn descriptor<'r>(
    run: &'r Value,
    id: Option<&str>,
    index: Option<&Value>,
    reference: &Value,
) -> Option<&'r Value> {
    let driver = run.pointer("/tool/driver");
    let extensions = run.pointer("/tool/extensions").and_then(Value::as_array);
    let extensions = || extensions.into_iter().flatten();
    let at = |index: &Value| usize::try_from(index.as_u64()?).ok();
    let same = |one: &Value, other: &Value, key: &str| {
        one.get(key).is_some_and(|value| value.is_string() && other.get(key) == Some(value))
    };
    let components: Vec<&Value> = match reference.get("toolComponent") {
        Some(component) if component.get("index").and_then(at).is_some() => {
            let found = component.get("index").and_then(at).and_then(|at| extensions().nth(at));
            found.into_iter().collect()
        }
        Some(component) if ["guid", "name"].iter().any(|key| component.get(key).is_some()) => {
            driver
                .into_iter()
                .chain(extensions())
                .filter(|one| same(one, component, "guid") || same(one, component, "name"))
                .collect()
        }
        _ => driver.into_iter().chain(extensions()).collect(),
    };
    let rules = |component: &'r Value| -> &'r [Value] {
        component.get("rules").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    };
    let has_id = |rule: &Value, id: &str| rule.get("id").and_then(Value::as_str) == Some(id);
    let by_index = components.first().copied().and_then(|one| rules(one).get(at(index?)?));
    let fits = |rule: &&Value| id.is_none() || with_parents(id).any(|id| has_id(rule, id));
    by_index.filter(fits).or_else(|| {
        let all = || components.iter().copied().flat_map(rules);
        let by_guid = all().find(|rule| same(rule, reference, "guid"));
        by_guid.or_else(|| with_parents(id).find_map(|id| all().find(|rule| has_id(rule, id))))
    })
}

/// An id and those of the rules that it is a part of: `R0/sub`, then `R0`.
fn with_parents(id: Option<&str>) -> impl Iterator<Item = &str> {
    std::iter::successors(id, |id| id.rsplit_once('/').map(|(parent, _)| parent)).take(MAX_DEPTH)
}

/// The level that the invocation gives the rule of a result. A result that names no invocation is of the
/// only one.
fn configured<'r>(run: &'r Value, result: &Value, rule: &Value) -> Option<&'r str> {
    let invocations = run.get("invocations")?.as_array()?;
    let index = result.pointer("/provenance/invocationIndex").and_then(Value::as_u64);
    let invocation = match (index, invocations.as_slice()) {
        (Some(index), all) => all.get(usize::try_from(index).ok()?)?,
        (None, [only]) => only,
        (None, _) => return None,
    };
    let overrides = invocation.get("ruleConfigurationOverrides")?.as_array()?;
    let of_rule = overrides.iter().filter(|one| {
        one.get("descriptor").is_some_and(|reference| {
            let id = reference.get("id").and_then(Value::as_str);
            descriptor(run, id, reference.get("index"), reference)
                .is_some_and(|found| std::ptr::eq(found, rule))
        })
    });
    of_rule.filter_map(|one| one.pointer("/configuration/level")?.as_str()).next_back()
}

fn security_severity(rule: &Value) -> Option<f64> {
    let severity = rule.pointer("/properties/security-severity")?;
    severity.as_f64().or_else(|| severity.as_str()?.parse().ok()).filter(|score| score.is_finite())
}

fn evidence(result: &Value, rule: &Rule<'_>) -> DetectorFinding {
    let text =
        |value: Option<&Value>| super::text(value.and_then(Value::as_str).unwrap_or_default());
    let kind = result.get("kind").and_then(Value::as_str).unwrap_or("fail");
    let default = rule.level.unwrap_or("warning");
    let level = match kind {
        "fail" => result.get("level").and_then(Value::as_str).unwrap_or(default),
        _ => NO_FINDING,
    };
    DetectorFinding {
        rule: text(
            result
                .get("ruleId")
                .or_else(|| result.pointer("/rule/id"))
                .or_else(|| rule.descriptor?.get("id")),
        ),
        severity: level.to_owned(),
        message: text(result.pointer("/message/text")),
        place: text(result.pointer("/locations/0/physicalLocation/artifactLocation/uri")),
        excerpt: text(result.pointer("/locations/0/physicalLocation/region/snippet/text")),
        ..DetectorFinding::default()
    }
}

//! SARIF 2.1.0 as input: results become findings of the entry that they name.
//!
//! SARIF lists what was found, so an entry without a result passed, provided that the run says it
//! succeeded. Which entry a result is about is read from its properties (`id`, `entry`, `tool`,
//! `tool_name`), its logical locations, its fingerprints or its file name, in this order; a result that
//! names no known entry is an error of the adapter, not a pass. Results that are gone since an earlier
//! scan (`baselineState: absent`) and suppressed ones do not count.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::answer::{DetectorReport, Evidence, Verdict};

/// The level of a result that is only a note that something was looked at; a result of another kind than
/// `fail` has it too.
const NO_FINDING: &str = "none";

/// The results of a SARIF log by the name of the entry.
#[derive(Debug, Default, PartialEq)]
pub struct Sarif {
    /// The tools that made them; their runs have all ended well.
    pub detectors: Vec<String>,
    /// The findings, by entry and detector.
    pub results: BTreeMap<String, BTreeMap<String, Vec<Evidence>>>,
    /// The highest security severity of what was found, by entry and detector, where rules carry one.
    pub scores: BTreeMap<(String, String), f64>,
    /// The number of results.
    pub seen: usize,
    /// Results that name no entry.
    pub unmatched: usize,
}

/// Reads a log. `name_of` says which entry a candidate name is for.
///
/// # Errors
/// If it is not SARIF, or a run did not succeed.
pub(crate) fn read(log: &Value, name_of: impl Fn(&str) -> Option<String>) -> Result<Sarif, String> {
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
            sarif.seen += 1;
            let Some(entry) = candidates(result).find_map(&name_of) else {
                sarif.unmatched += 1;
                continue;
            };
            let rule = rule(run, result);
            let found = evidence(result, rule);
            if found.severity != NO_FINDING
                && let Some(score) = rule.and_then(security_severity)
            {
                let key = (entry.clone(), detector.clone());
                let highest = sarif.scores.entry(key).or_insert(score);
                *highest = highest.max(score);
            }
            let of_entry = sarif.results.entry(entry).or_default();
            of_entry.entry(detector.clone()).or_default().push(found);
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
                DetectorReport {
                    detector: detector.clone(),
                    verdict: Some(if flagged { Verdict::Flag } else { Verdict::Pass }),
                    severity: None,
                    score: self.scores.get(&(entry.to_owned(), detector.clone())).copied(),
                    findings,
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

/// The names by which a result may mean an entry, the most explicit first.
fn candidates(result: &Value) -> impl Iterator<Item = &str> {
    let properties = result.get("properties");
    let named = ["id", "entry", "tool", "tool_name", "toolName"]
        .into_iter()
        .filter_map(move |key| properties?.get(key)?.as_str());
    let locations = || result.get("locations").and_then(Value::as_array).into_iter().flatten();
    let logical = locations()
        .flat_map(|location| {
            location.get("logicalLocations").and_then(Value::as_array).into_iter().flatten()
        })
        .flat_map(|logical| [logical.get("name"), logical.get("fullyQualifiedName")])
        .flatten()
        .filter_map(Value::as_str);
    let fingerprints = result
        .get("partialFingerprints")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|all| all.values())
        .filter_map(Value::as_str);
    let files = locations()
        .filter_map(|location| location.pointer("/physicalLocation/artifactLocation/uri"))
        .filter_map(Value::as_str)
        .flat_map(|uri| {
            let file = uri.rsplit('/').next().unwrap_or(uri);
            [uri, file, file.rsplit_once('.').map_or(file, |(stem, _)| stem)]
        });
    named.chain(logical).chain(fingerprints).chain(files)
}

fn rule<'r>(run: &'r Value, result: &Value) -> Option<&'r Value> {
    let rules = run.pointer("/tool/driver/rules")?.as_array()?;
    let by_index = result
        .get("ruleIndex")
        .and_then(Value::as_u64)
        .and_then(|index| rules.get(usize::try_from(index).ok()?));
    by_index.or_else(|| {
        let id = result.get("ruleId")?;
        rules.iter().find(|rule| rule.get("id") == Some(id))
    })
}

fn security_severity(rule: &Value) -> Option<f64> {
    let severity = rule.pointer("/properties/security-severity")?;
    severity.as_f64().or_else(|| severity.as_str()?.parse().ok()).filter(|score| score.is_finite())
}

fn evidence(result: &Value, rule: Option<&Value>) -> Evidence {
    let text =
        |value: Option<&Value>| super::text(value.and_then(Value::as_str).unwrap_or_default());
    let kind = result.get("kind").and_then(Value::as_str).unwrap_or("fail");
    let default = rule
        .and_then(|rule| rule.pointer("/defaultConfiguration/level"))
        .and_then(Value::as_str)
        .unwrap_or("warning");
    let level = match kind {
        "fail" => result.get("level").and_then(Value::as_str).unwrap_or(default),
        _ => NO_FINDING,
    };
    Evidence {
        rule: text(result.get("ruleId").or_else(|| rule.and_then(|rule| rule.get("id")))),
        severity: level.to_owned(),
        message: text(result.pointer("/message/text")),
        place: text(result.pointer("/locations/0/physicalLocation/artifactLocation/uri")),
        excerpt: text(result.pointer("/locations/0/physicalLocation/region/snippet/text")),
    }
}

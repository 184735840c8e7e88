//! May this corpus be published, and is it fit to measure with?
//!
//! [`audit`] lists everything that speaks against it: entries without category, source or licence,
//! licences that do not allow redistribution, sources that are known to be restricted, attack
//! categories for which there are no harmless counterparts, and what looks like a slip of the
//! pen: unknown keys and splits, empty ids and tools. It judges what is written, not whether it is true.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::finding::DataFinding;

use crate::dataset::{Dataset, HARD_NEGATIVE, Label, Sample};

/// Licences under which an entry may be passed on together with the others.
pub(crate) const ALLOWED_LICENCES: &[&str] = &[
    "CC0-1.0",
    "CC-BY-4.0",
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "MIT OR Apache-2.0",
    "Apache-2.0 OR MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Unlicense",
    "self-authored",
];

/// Corpora that may be used from a path, but not copied into another one: their licence is restricted
/// or not stated.
pub(crate) const DENIED_SOURCES: &[&str] =
    &["MCPTox", "MCP-AttackBench", "mcp-injection-experiments"];

/// The splits that there are.
pub(crate) const SPLITS: &[&str] = &["train", "dev", "test"];

/// The rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The label is neither malicious nor benign.
    UnknownLabel,
    /// There is nothing to look at.
    Empty,
    /// Two entries have one id.
    DuplicateId,
    /// No category.
    MissingCategory,
    /// Label and category contradict each other.
    Contradiction,
    /// No source.
    MissingSource,
    /// No licence.
    MissingLicence,
    /// The licence is not on the list of those that allow redistribution.
    LicenceNotAllowed,
    /// The source is on the list of those that may not be copied.
    SourceDenied,
    /// A hard negative does not say which attack it resembles.
    MissingResembles,
    /// An entry resembles something that is not an attack category of the corpus.
    UnknownResembles,
    /// The id is empty.
    EmptyId,
    /// A key that means nothing, perhaps a misspelt one.
    UnknownKey,
    /// The split is none of those that there are.
    UnknownSplit,
    /// An attack category that no hard negative resembles: its false alarms would go unseen.
    NoHardNegatives,
}

/// A rule that the corpus breaks.
pub type Finding = DataFinding<Rule>;

/// Everything that speaks against publishing the corpus, in the order of ids.
pub fn audit(dataset: &Dataset) -> Vec<Finding> {
    let mut findings = dataset.refused.clone();
    findings.extend(dataset.odd.iter().cloned());
    for sample in &dataset.samples {
        about_category(sample, &mut findings);
        about_form(sample, &mut findings);
        about_provenance(sample, &mut findings);
    }
    findings.sort_by(|a, b| (&a.id, a.rule).cmp(&(&b.id, b.rule)));
    findings.extend(about_licences(&dataset.samples));
    findings.extend(about_balance(&dataset.samples));
    for finding in &mut findings {
        if let Some(place) = dataset.places.get(&finding.id) {
            finding.message.push_str(&format!(" ({place})"));
        }
    }
    findings
}

fn about_form(sample: &Sample, findings: &mut Vec<Finding>) {
    let mut add = |rule, message: String| findings.push(Finding::new(&sample.id, rule, message));
    if sample.id.trim().is_empty() {
        add(Rule::EmptyId, "the id is empty".to_owned());
    }
    if sample.tool == karat_detectors::Tool::default() {
        add(Rule::Empty, "the tool has neither a name nor a description".to_owned());
    }
    if let Some(split) = sample.split.as_deref().filter(|split| !SPLITS.contains(split)) {
        add(
            Rule::UnknownSplit,
            format!("the split is {split:?}; expected one of {}", SPLITS.join(", ")),
        );
    }
}

fn about_category(sample: &Sample, findings: &mut Vec<Finding>) {
    let benign_category =
        [HARD_NEGATIVE, crate::dataset::PLAIN_BENIGN].contains(&sample.category.as_str());
    if sample.category.trim().is_empty() {
        findings.push(Finding::new(&sample.id, Rule::MissingCategory, "has no category"));
    } else if benign_category != (sample.label == Label::Benign) {
        let message = format!("is {} and of category {}", sample.label.name(), sample.category);
        findings.push(Finding::new(&sample.id, Rule::Contradiction, message));
    }
}

fn about_provenance(sample: &Sample, findings: &mut Vec<Finding>) {
    let empty = crate::dataset::Provenance::default();
    let provenance = sample.provenance.as_ref().unwrap_or(&empty);
    let mut add = |rule, message: String| findings.push(Finding::new(&sample.id, rule, message));
    if provenance.source.trim().is_empty() {
        add(Rule::MissingSource, "has no provenance source".to_owned());
    } else if let Some(denied) = denied(&provenance.source) {
        add(
            Rule::SourceDenied,
            format!("comes from {denied}, which may be used from a path but not copied"),
        );
    }
    if provenance.license.trim().is_empty() {
        add(Rule::MissingLicence, "has no licence".to_owned());
    }
}

/// Licences that do not allow redistribution, one finding for each, at its first entry.
fn about_licences(samples: &[Sample]) -> Vec<Finding> {
    let allowed = |licence: &str| ALLOWED_LICENCES.iter().any(|a| a.eq_ignore_ascii_case(licence));
    let mut refused: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for sample in samples {
        let licence = sample.provenance.as_ref().map_or("", |given| given.license.trim());
        if !licence.is_empty() && !allowed(licence) {
            refused.entry(licence).or_insert((&sample.id, 0)).1 += 1;
        }
    }
    let finding = |(licence, (id, count)): (&str, (&str, usize))| {
        let more = match count {
            1 => String::new(),
            count => format!(" (on {count} entries)"),
        };
        let message = format!(
            "the licence {licence:?}{more} is not among those that allow redistribution: {}",
            ALLOWED_LICENCES.join(", ")
        );
        Finding::new(id, Rule::LicenceNotAllowed, message)
    };
    refused.into_iter().map(finding).collect()
}

/// The denied source that a text names, whatever its spelling of hyphens, case and additions.
fn denied(source: &str) -> Option<&'static str> {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let source = plain(source);
    DENIED_SOURCES.iter().copied().find(|denied| source.contains(&plain(denied)))
}

/// The category that an entry says it resembles.
fn named(sample: &Sample) -> Option<&str> {
    sample.resembles.as_deref().filter(|category| !category.trim().is_empty())
}

/// Every attack category needs hard negatives that resemble it, or its false alarms go unseen.
fn about_balance(samples: &[Sample]) -> Vec<Finding> {
    let hard: Vec<&Sample> = samples.iter().filter(|sample| sample.is_hard_negative()).collect();
    let resembled: BTreeSet<&str> =
        hard.iter().filter_map(|sample| sample.resembles.as_deref()).collect();
    let mut attacks: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.is_malicious()) {
        *attacks.entry(&sample.category).or_default() += 1;
    }
    let mut findings: Vec<Finding> = attacks
        .iter()
        .filter(|(category, _)| !category.is_empty() && !resembled.contains(*category))
        .map(|(category, count)| {
            let message = format!(
                "{count} attacks of this category and no hard negative that resembles them"
            );
            Finding::new(category, Rule::NoHardNegatives, message)
        })
        .collect();
    for sample in hard.iter().filter(|sample| named(sample).is_none()) {
        let message = "a hard negative without `resembles`";
        findings.push(Finding::new(&sample.id, Rule::MissingResembles, message));
    }
    for sample in samples {
        if let Some(like) = named(sample).filter(|like| !attacks.contains_key(like)) {
            let message = format!("resembles {like:?}, of which the corpus has no attack");
            findings.push(Finding::new(&sample.id, Rule::UnknownResembles, message));
        }
    }
    findings
}

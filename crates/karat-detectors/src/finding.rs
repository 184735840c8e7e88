//! Findings: the results of the detectors, and the rule that combines them.

use std::borrow::Cow;

/// The confidence of a detector in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Worth a look; harmless definitions have it at times.
    Warn,
    /// An honest definition has no reason for it.
    Block,
}

impl Tier {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Warn => "warn",
            Tier::Block => "block",
        }
    }
}

/// One finding of a detector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule, unique within its detector.
    pub rule: &'static str,
    /// The confidence.
    pub tier: Tier,
    /// The problem, as text.
    pub message: Cow<'static, str>,
    /// The place in the definition.
    pub place: Cow<'static, str>,
    /// The text that caused it.
    pub excerpt: String,
}

/// The rule by which all detectors together flag a definition.
pub const RULE: &str =
    "a detector has a finding of tier block, or warnings of two different rules of its own";

/// The findings of all detectors in one definition. Most often there are none, and then it allocates
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The findings, in the order of the detectors.
    pub findings: Vec<Finding>,
    /// The end of each detector's findings, up to the last detector that has any.
    ends: Vec<usize>,
}

impl Scan {
    /// Combines the findings of each detector, in the order of the detectors.
    pub fn new(by_detector: impl IntoIterator<Item = Vec<Finding>>) -> Scan {
        let mut scan = Scan::default();
        for (number, mut found) in by_detector.into_iter().enumerate() {
            scan.add(number, |findings| findings.append(&mut found));
        }
        scan
    }

    /// Adds what the next detector finds.
    #[inline]
    pub(crate) fn add(&mut self, number: usize, inspect: impl FnOnce(&mut Vec<Finding>)) {
        inspect(&mut self.findings);
        if !self.findings.is_empty() {
            self.ends.resize(number, 0);
            self.ends.push(self.findings.len());
        }
    }

    /// The findings of the detector with this number.
    pub fn of(&self, detector: usize) -> &[Finding] {
        let end = |number: usize| self.ends.get(number).copied().unwrap_or_default();
        let start = detector.checked_sub(1).map_or(0, end);
        self.findings.get(start..end(detector)).unwrap_or_default()
    }

    /// The highest tier of all findings.
    pub fn tier(&self) -> Option<Tier> {
        self.findings.iter().map(|finding| finding.tier).max()
    }

    /// Returns true if any detector flags the definition by [`RULE`].
    pub fn flags(&self) -> bool {
        (0..self.ends.len()).any(|detector| flags(self.of(detector)))
    }

    /// The suspicion of all findings together, for ranking: 1 for a block, 0.4 for a warning, each rule
    /// counted once.
    pub fn score(&self) -> f64 {
        score(&self.findings)
    }
}

/// Returns true if the findings of one detector flag a definition by [`RULE`].
pub fn flags<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> bool {
    let mut findings = findings.into_iter();
    let Some(first) = findings.next() else { return false };
    first.tier == Tier::Block
        || findings.any(|found| found.tier == Tier::Block || found.rule != first.rule)
}

/// The suspicion of findings, for ranking: 1 for a block, 0.4 for a warning, each rule counted once.
pub fn score<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> f64 {
    let mut rules: Vec<(&str, Tier)> = Vec::new();
    for finding in findings {
        match rules.iter_mut().find(|(rule, _)| *rule == finding.rule) {
            Some((_, tier)) => *tier = (*tier).max(finding.tier),
            None => rules.push((finding.rule, finding.tier)),
        }
    }
    // Tenths, so that the order of findings cannot change the sum.
    let tenths = |tier: Tier| if tier == Tier::Block { 10_u32 } else { 4 };
    f64::from(rules.iter().map(|(_, tier)| tenths(*tier)).sum::<u32>()) / 10.0
}

/// The part of a text that evidence quotes: around a stretch, with marks where it was cut.
pub(super) fn excerpt(text: &str, start: usize, end: usize) -> Cow<'_, str> {
    const MAX: usize = 240;
    if text.len() <= MAX {
        return Cow::Borrowed(text.trim());
    }
    let spare = MAX.saturating_sub(end.saturating_sub(start)) / 2;
    let from = text.floor_char_boundary(start.saturating_sub(spare));
    let to = text.ceil_char_boundary((start + MAX).min(end + spare).min(text.len()));
    let cut = text.get(from..to).unwrap_or_default().trim();
    Cow::Owned(format!(
        "{}{cut}{}",
        if from > 0 { "…" } else { "" },
        if to < text.len() { "…" } else { "" }
    ))
}

//! The built-in detectors: small, explainable, fast.
//!
//! Each looks for one thing, says where it found it and how sure it is ([`Tier`]), and knows nothing of
//! the others; [`scan`] runs them all over one [`Reading`] of a definition and combines them by a stated
//! rule ([`RULE`]). They are rules over what words mean together, tuned on the dev split of
//! datasets/threats: a floor to compare scanners with, not a promise of safety. Time is linear in the
//! text; nothing is executed, resolved or fetched.

pub mod capability_mismatch;
pub mod cross_tool;
pub mod decoded_payload;
pub mod definition_drift;
pub mod hidden_unicode;
pub mod instruction_phrases;
mod lexicon;
mod literals;
mod reading;
mod register;
pub mod response_injection;
pub mod schema_anomaly;

pub use reading::{MOST_BYTES, Reading, Surface};

use std::borrow::Borrow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::system::Exhibit;

/// How sure a detector is.
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

/// One thing that a detector found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule, unique within its detector.
    pub rule: &'static str,
    /// How sure.
    pub tier: Tier,
    /// What is wrong, in words.
    pub message: String,
    /// Where in the definition.
    pub place: String,
    /// The text that gave rise to it.
    pub excerpt: String,
}

/// A built-in detector.
pub struct Detector {
    /// Its name in reports and in karat.toml.
    pub name: &'static str,
    /// What it looks for, in one line.
    pub summary: &'static str,
    inspect: fn(&Reading<'_>) -> Vec<Finding>,
}

/// All detectors, in the order of the report.
pub const DETECTORS: &[Detector] = &[
    Detector {
        name: "hidden-unicode",
        summary: "characters that are invisible, reorder text or pose as others",
        inspect: hidden_unicode::inspect,
    },
    Detector {
        name: "decoded-payload",
        summary: "encoded text that decodes to instructions, commands or addresses",
        inspect: decoded_payload::inspect,
    },
    Detector {
        name: "instruction-phrases",
        summary: "orders to the model: override, conceal, exfiltrate, act unasked",
        inspect: instruction_phrases::inspect,
    },
    Detector {
        name: "cross-tool",
        summary: "rules about other servers' tools, and names that pose as theirs",
        inspect: cross_tool::inspect,
    },
    Detector {
        name: "schema-anomaly",
        summary: "parameters that collect secrets, conversation or personal data",
        inspect: schema_anomaly::inspect,
    },
    Detector {
        name: "capability-mismatch",
        summary: "text that does what name, purpose or annotations deny",
        inspect: capability_mismatch::inspect,
    },
    Detector {
        name: "definition-drift",
        summary: "what the definition gained or lost since it was approved",
        inspect: definition_drift::inspect,
    },
    Detector {
        name: "response-injection",
        summary: "orders to the model in what a tool returned",
        inspect: response_injection::inspect,
    },
];

/// The name of all detectors together.
pub const COMBINED: &str = "builtin";

/// When the combined detector flags.
pub const RULE: &str = "a finding of tier block, or warnings of two different rules";

/// The detector with this name.
pub fn find(name: &str) -> Option<&'static Detector> {
    DETECTORS.iter().find(|detector| detector.name == name)
}

impl Detector {
    /// What it finds in a definition.
    pub fn inspect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        (self.inspect)(reading)
    }
}

/// What all detectors found in one definition: most often nothing, which takes no room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The findings, in the order of [`DETECTORS`].
    pub findings: Vec<Finding>,
    /// Where the findings of each detector end, if there are any.
    ends: Vec<usize>,
}

impl Scan {
    /// From what each detector found, in the order of [`DETECTORS`].
    pub fn new(by_detector: impl IntoIterator<Item = Vec<Finding>>) -> Scan {
        let mut scan = Scan::default();
        for (number, mut found) in by_detector.into_iter().enumerate() {
            scan.findings.append(&mut found);
            if !scan.findings.is_empty() {
                scan.ends.resize(number, 0);
                scan.ends.push(scan.findings.len());
            }
        }
        scan
    }

    /// The findings of the detector at this place among [`DETECTORS`].
    pub fn of(&self, detector: usize) -> &[Finding] {
        let end = |number: usize| self.ends.get(number).copied().unwrap_or_default();
        let start = detector.checked_sub(1).map_or(0, end);
        self.findings.get(start..end(detector)).unwrap_or_default()
    }

    /// The highest tier of all findings.
    pub fn tier(&self) -> Option<Tier> {
        self.findings.iter().map(|finding| finding.tier).max()
    }

    /// Whether all together flag: see [`RULE`].
    pub fn flags(&self) -> bool {
        flags(self.findings.iter())
    }

    /// How suspicious all findings are together, for ranking: 1 for a block, 0.4 for a warning, each
    /// rule counted once.
    pub fn score(&self) -> f64 {
        score(self.findings.iter())
    }
}

pub(crate) fn flags<'a>(findings: impl Iterator<Item = &'a Finding>) -> bool {
    let mut warned: Option<&str> = None;
    for finding in findings {
        match finding.tier {
            Tier::Block => return true,
            Tier::Warn => match warned {
                Some(rule) if rule != finding.rule => return true,
                _ => warned = Some(finding.rule),
            },
        }
    }
    false
}

pub(crate) fn score<'a>(findings: impl Iterator<Item = &'a Finding>) -> f64 {
    let mut rules: Vec<(&str, Tier)> = Vec::new();
    for finding in findings {
        match rules.iter_mut().find(|(rule, _)| *rule == finding.rule) {
            Some((_, tier)) => *tier = (*tier).max(finding.tier),
            None => rules.push((finding.rule, finding.tier)),
        }
    }
    let weight = |tier: Tier| if tier == Tier::Block { 1.0 } else { 0.4 };
    // Not `sum`, which makes -0 of nothing.
    rules.iter().fold(0.0, |sum, (_, tier)| sum + weight(*tier))
}

/// Runs all detectors over one definition.
pub fn scan(exhibit: &Exhibit) -> Scan {
    let reading = Reading::of(exhibit);
    Scan::new(DETECTORS.iter().map(|detector| detector.inspect(&reading)))
}

/// How many definitions a thread takes at a time: enough that taking them costs nothing, and so few that
/// no thread is left with much work while the others have none, since some definitions take long.
const SHARE: usize = 32;

/// Runs all detectors over many definitions, on all processors, in their order.
pub fn scan_all<E: Borrow<Exhibit> + Sync>(exhibits: &[E]) -> Vec<Scan> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let helpers = processors.min(exhibits.len().div_ceil(SHARE)).saturating_sub(1);
    let next = AtomicUsize::new(0);
    let mut shares = std::thread::scope(|scope| {
        let working: Vec<_> =
            (0..helpers).map(|_| scope.spawn(|| scan_shares(exhibits, &next))).collect();
        let mut shares = scan_shares(exhibits, &next);
        for thread in working {
            // A panic goes on here: leaving its shares out would move later scans to other definitions.
            shares.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        shares
    });
    shares.sort_unstable_by_key(|(number, _)| *number);
    let mut scans = Vec::with_capacity(exhibits.len());
    scans.extend(shares.into_iter().flat_map(|(_, share)| share));
    scans
}

/// Takes one share after another until none is left; each with its number.
fn scan_shares<E: Borrow<Exhibit>>(exhibits: &[E], next: &AtomicUsize) -> Vec<(usize, Vec<Scan>)> {
    let mut done = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(share) = exhibits.chunks(SHARE).nth(number) else { return done };
        done.push((number, share.iter().map(|exhibit| scan(exhibit.borrow())).collect()));
    }
}

/// The error for a detector that does not exist.
pub fn unknown(name: &str) -> karat_core::error::EvalError {
    let known = std::iter::once(COMBINED).chain(DETECTORS.iter().map(|detector| detector.name));
    let known: Vec<&str> = known.collect();
    let known = known.join(", ");
    karat_core::error::EvalError::config(format!(
        "system: no built-in detector {name:?}; there are: {known}"
    ))
}

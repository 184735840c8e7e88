//! The built-in detectors: small, explainable, fast.
//!
//! Each detector looks for one kind of attack, reports where it found it and with which confidence
//! ([`Tier`]), and knows nothing of the others; [`scan`] runs them all over one reading of a definition and
//! combines them by a stated rule ([`RULE`]). They are rules over the meanings of words in a sentence, tuned
//! on the dev split of datasets/threats: a floor to compare scanners with, not a promise of safety. Time is
//! linear in the text; nothing is executed, resolved or fetched.

mod addresses;
mod capability_mismatch;
mod characters;
mod cross_tool;
mod decoded_payload;
mod definition;
mod definition_drift;
mod finding;
mod hidden_unicode;
mod instruction_phrases;
mod lexicon;
mod meaning;
mod peers;
mod reading;
mod register;
mod response_injection;
mod schema_anomaly;
mod window;

pub use self::definition::{Peer, ScanInput, Tool};
pub use self::finding::{Finding, RULE, Scan, Tier, flags, score};

use std::borrow::Borrow;
use std::sync::{Mutex, PoisonError};

use self::reading::{MAX_AT_ONCE, Reading};

/// A built-in detector.
pub struct Detector {
    /// Its name in reports and in karat.toml.
    pub name: &'static str,
    inspect: fn(&Reading<'_>, &mut Vec<Finding>),
}

/// All detectors, in the order of the report.
pub const DETECTORS: &[Detector] = &[
    Detector { name: "hidden-unicode", inspect: hidden_unicode::inspect },
    Detector { name: "decoded-payload", inspect: decoded_payload::inspect },
    Detector { name: "instruction-phrases", inspect: instruction_phrases::inspect },
    Detector { name: "cross-tool", inspect: cross_tool::inspect },
    Detector { name: "schema-anomaly", inspect: schema_anomaly::inspect },
    Detector { name: "capability-mismatch", inspect: capability_mismatch::inspect },
    Detector { name: "definition-drift", inspect: definition_drift::inspect },
    Detector { name: "response-injection", inspect: response_injection::inspect },
];

/// The name of all detectors together.
pub const COMBINED: &str = "builtin";

/// The detector with this name.
pub fn find(name: &str) -> Option<&'static Detector> {
    DETECTORS.iter().find(|detector| detector.name == name)
}

impl Detector {
    /// The findings of this detector alone in a definition.
    pub fn findings(&self, input: &ScanInput) -> Vec<Finding> {
        let mut findings = Vec::new();
        (self.inspect)(&Reading::of(input), &mut findings);
        findings
    }
}

/// Runs all detectors over one definition.
pub fn scan(input: &ScanInput) -> Scan {
    let reading = Reading::of(input);
    let mut scan = Scan::default();
    for (number, detector) in DETECTORS.iter().enumerate() {
        scan.add(number, |findings| (detector.inspect)(&reading, findings));
    }
    scan
}

/// The number of definitions that a thread takes at a time: enough that taking them costs nothing, and so
/// few that no thread has much work left when the others are done, since some definitions take long.
const SHARE: usize = 32;

/// Runs all detectors over many definitions, on all processors, and returns the scans in their order.
pub fn scan_all<E: Borrow<ScanInput> + Sync>(exhibits: &[E]) -> Vec<Scan> {
    let mut scans = Vec::new();
    scans.resize_with(exhibits.len(), Scan::default);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let helpers = processors.min(exhibits.len().div_ceil(SHARE)).saturating_sub(1);
    let shares = Mutex::new(exhibits.chunks(SHARE).zip(scans.chunks_mut(SHARE)));
    let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((share, scans)) = next() {
            for (few, scans) in share.chunks(MAX_AT_ONCE).zip(scans.chunks_mut(MAX_AT_ONCE)) {
                scan_together(few, scans);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(work);
        }
        work();
    });
    scans
}

/// Scans a few definitions one detector after the other: the instructions of all of them together are more
/// than the fastest cache holds.
fn scan_together<E: Borrow<ScanInput>>(few: &[E], scans: &mut [Scan]) {
    let readings: Vec<Reading<'_>> = few.iter().map(|input| Reading::of(input.borrow())).collect();
    for (number, detector) in DETECTORS.iter().enumerate() {
        for (scan, reading) in scans.iter_mut().zip(&readings) {
            scan.add(number, |findings| (detector.inspect)(reading, findings));
        }
    }
}

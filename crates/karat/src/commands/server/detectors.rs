//! The built-in detectors of hostile text, as the evaluation of servers wants them: it knows none itself.

use std::sync::LazyLock;

use karat_core::finding::Severity;
use karat_core::tool::Definition;
use karat_detection::detectors::{DETECTORS, Tier, scan};
use karat_detection::system::ScanInput;
use karat_server::detect::{Subject, Suspicion};
use karat_server::lint;
use karat_server::probe::Rule;
use serde::Deserialize as _;

/// One rule for each detector.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rule = |name| Rule {
        id: name,
        severity: Severity::Error,
        summary: "a detector found text that is meant to misuse a model or is hidden from people",
        help: "Models may follow text in definitions, instructions and results. Remove the text or, if it \
               is harmless, reword it; --allow skips a detector.",
    };
    DETECTORS.iter().map(|detector| rule(detector.name)).collect()
});

/// Every rule of lint, those of the detectors included.
pub(crate) fn rules() -> Vec<&'static Rule> {
    lint::rules().into_iter().chain(RULES.iter()).collect()
}

/// Inspects a text with every detector.
pub(crate) fn inspect(subject: Subject<'_>) -> Vec<Suspicion> {
    let input = match subject {
        Subject::Tool(raw) => match Definition::deserialize(raw) {
            Ok(tool) => ScanInput::of_tool(tool),
            // Lint reports a definition that cannot be read.
            Err(_) => return Vec::new(),
        },
        Subject::Instructions(text) => {
            ScanInput { instructions: Some(text.to_owned()), ..ScanInput::default() }
        }
        Subject::Result(text) => {
            ScanInput { result: Some(text.to_owned()), ..ScanInput::default() }
        }
    };
    let scan = scan(&input);
    let of_detector = |(number, detector): (usize, &karat_detection::detectors::Detector)| {
        let rule = detector.name;
        let found = scan.of(number).iter().map(move |found| Suspicion {
            rule,
            severity: match found.tier {
                Tier::Block => Severity::Error,
                Tier::Warn => Severity::Warning,
            },
            at: found.place.to_string(),
            message: format!("{}: {} ({:?})", found.rule, found.message, found.excerpt),
        });
        found.collect::<Vec<_>>()
    };
    DETECTORS.iter().enumerate().flat_map(of_detector).collect()
}

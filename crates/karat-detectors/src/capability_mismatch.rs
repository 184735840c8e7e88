//! Text that contradicts the name, purpose or annotations.
//!
//! Annotations are promises: `readOnlyHint` that nothing changes, `destructiveHint: false` that nothing
//! is lost, `openWorldHint: false` that nothing leaves. A description that breaks them is a mismatch,
//! and so is a reading tool that also deletes, pays or sends.

use serde_json::Value;

use super::finding::{Finding, Tier};
use super::meaning::Mask;
use super::reading::{Reading, Surface};
use super::window::{Window, windows};

/// First words of the names of tools that only read.
const READING_VERBS: &[&str] = &[
    "get",
    "list",
    "read",
    "search",
    "find",
    "show",
    "view",
    "fetch",
    "lookup",
    "look",
    "query",
    "describe",
    "count",
    "check",
    "preview",
    "calculate",
    "convert",
    "validate",
    "estimate",
    "explain",
    "summarize",
    "summarise",
    "translate",
    "format",
];

/// Parameters that break a promise if they are on by default.
const SWITCHES: &[&str] =
    &["apply", "execute", "commit", "force", "delete", "send", "publish", "skip_backup"];

/// The meanings of which every broken promise requires one.
const BREAKING: Mask = Mask::ACTS.and(Mask::TRANSFER).and(Mask::THIRD_PARTY).and(Mask::DESTROY);

pub(super) fn inspect(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    let promises = Promises::of(reading);
    if !promises.any() {
        return;
    }
    let is_prose = |surface| matches!(surface, Surface::Description | Surface::ParameterText);
    if reading.mask.has(BREAKING) {
        for window in windows(reading, is_prose) {
            if let Some((rule, tier, message)) = promises.broken_by(reading, &window) {
                findings.push(window.finding(rule, tier, message));
            }
        }
    }
    if promises.read_only {
        findings.extend(switches(reading));
    }
}

/// The promises of annotations and name.
struct Promises {
    read_only: bool,
    harmless: bool,
    closed: bool,
    reads: bool,
}

impl Promises {
    fn of(reading: &Reading<'_>) -> Promises {
        let reads = is_reading_name(&reading.input.tool.name);
        let mut promises = Promises { read_only: false, harmless: false, closed: false, reads };
        let annotations = reading.input.tool.annotations.as_ref().and_then(Value::as_object);
        // There are a handful: less work than to look each of them up.
        for (hint, value) in annotations.into_iter().flatten() {
            match hint.as_str() {
                "readOnlyHint" => promises.read_only = *value == Value::Bool(true),
                "destructiveHint" => promises.harmless = *value == Value::Bool(false),
                "openWorldHint" => promises.closed = *value == Value::Bool(false),
                _ => {}
            }
        }
        promises
    }

    fn any(&self) -> bool {
        self.read_only || self.harmless || self.closed || self.reads
    }

    fn broken_by(
        &self,
        reading: &Reading<'_>,
        window: &Window<'_, '_>,
    ) -> Option<(&'static str, Tier, &'static str)> {
        let here = window.here;
        if here.has(Mask::CARE.and(Mask::ASSURANCE).and(Mask::UNLESS)) {
            return None;
        }
        let acts = acting(reading, window);
        let outwards = Mask::EXTERNAL.and(Mask::THIRD_PARTY);
        if self.closed && window.close(outwards, Mask::TRANSFER.and(Mask::ACTS), 60) {
            let message = "annotated as closed to the outside, but the text sends something there";
            return Some(("leaves", Tier::Block, message));
        }
        let personal = here.has(Mask::PERSONAL) && here.has(Mask::TRANSFER);
        if self.closed && (personal || here.has(Mask::SENSITIVE) && here.has(Mask::THIRD_PARTY)) {
            let message = "annotated as closed to the outside, but the text forwards personal data";
            return Some(("leaves", Tier::Block, message));
        }
        if (self.read_only || self.harmless)
            && here.has(Mask::IRREVERSIBLE)
            && here.has(Mask::DESTROY)
        {
            let message = "annotated as harmless, but the text destroys something permanently";
            return Some(("destructive", Tier::Block, message));
        }
        if self.read_only && acts {
            let grave = here.has(Mask::DESTROY.and(Mask::USER).and(outwards).and(Mask::SENSITIVE));
            let tier = if grave { Tier::Block } else { Tier::Warn };
            let message = "annotated as read-only, but the text changes or sends something";
            return Some(("not-read-only", tier, message));
        }
        if self.reads && acts && here.has(outwards.and(Mask::SENSITIVE)) {
            let message = "the name says that the tool reads, the text that it acts";
            return Some(("name-and-text", Tier::Warn, message));
        }
        None
    }
}

fn is_reading_name(name: &str) -> bool {
    let first = name.split(['_', '-', '.']).next().unwrap_or_default();
    READING_VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(first))
}

/// Returns true if the tool itself acts: the verb opens a sentence or clause, which excludes "an
/// administrator cancels".
fn acting(reading: &Reading<'_>, window: &Window<'_, '_>) -> bool {
    let sentence = window.sentence;
    reading.hits(sentence).iter().any(|hit| {
        if !hit.mask.has(Mask::ACTS) || hit.negated {
            return false;
        }
        let word = reading.text(hit.start, hit.end);
        let passive = word.contains(' ') || !word.is_ascii();
        let before = reading.text(sentence.start, hit.start).trim_end();
        let follows = |words: &[&str]| words.iter().any(|word| before.ends_with(word));
        let opens = before.is_empty()
            || follows(&["also", "then", "it", "which", "that", "tool", "call", "this", "reading"]);
        // In a list, a verb has an object and a noun has none: "clicks and unsubscribes".
        let listed = before.ends_with([',', ';', ':']) || follows(&["and"]);
        passive || opens || listed && has_object(reading.text(hit.end, sentence.end))
    })
}

/// Returns true if the text after a verb begins with its object.
fn has_object(after: &str) -> bool {
    const FIRST: &[&str] = &[
        "the",
        "a",
        "an",
        "all",
        "any",
        "every",
        "each",
        "its",
        "their",
        "your",
        "it",
        "them",
        "this",
        "that",
        "these",
        "those",
        "both",
        "one",
        "old",
        "other",
        "what",
        "everything",
    ];
    let first = after.trim_start().split([' ', ',', '.']).next().unwrap_or_default();
    FIRST.contains(&first)
}

/// Finds switches of a read-only tool that make it act unless they are turned off.
fn switches(reading: &Reading<'_>) -> Vec<Finding> {
    let schema = reading.input.tool.input_schema.as_ref();
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .filter(|(name, schema)| {
            SWITCHES.iter().any(|switch| switch.eq_ignore_ascii_case(name))
                && schema.get("default").and_then(Value::as_bool) == Some(true)
        })
        .map(|(name, schema)| Finding {
            rule: "acts-by-default",
            tier: Tier::Block,
            message: "annotated as read-only, but acts unless a switch is turned off".into(),
            place: format!("default of `{name}`").into(),
            excerpt: schema.to_string(),
        })
        .collect()
}

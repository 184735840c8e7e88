//! Text that does what name, purpose or annotations deny.
//!
//! Annotations are promises: `readOnlyHint` that nothing changes, `destructiveHint: false` that nothing
//! is lost, `openWorldHint: false` that nothing leaves. A description that breaks them is a mismatch,
//! and so is a reading tool that goes on to delete, pay or send.

use serde_json::Value;

use super::instruction_phrases::windows;
use super::lexicon::Mask;
use super::reading::{Reading, Surface};
use super::{Finding, Tier};

/// Verbs that open the names of tools which only look.
const LOOKING: &[&str] = &[
    "get", "list", "read", "search", "find", "show", "view", "fetch", "lookup", "look", "query",
    "describe", "count", "check", "preview", "calculate", "convert", "validate", "estimate", "explain",
    "summarize", "summarise", "translate", "format",
];

/// What this detector finds.
pub fn inspect(reading: &Reading<'_>) -> Vec<Finding> {
    let annotations = reading.exhibit.tool.annotations.as_ref();
    let promised = |hint: &str, value: bool| {
        annotations.and_then(|all| all.get(hint)).and_then(Value::as_bool) == Some(value)
    };
    let read_only = promised("readOnlyHint", true);
    let harmless = promised("destructiveHint", false);
    let closed = promised("openWorldHint", false);
    let looks = is_looking(&reading.exhibit.tool.name);
    if !(read_only || harmless || closed || looks) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for window in windows(reading, |surface| surface == Surface::Description) {
        let here = window.here;
        if here.has(Mask::CARE.and(Mask::ASSURANCE)) {
            continue;
        }
        let acts = |mask: Mask| acting(reading, &window, mask);
        if read_only && (acts(Mask::DESTROY) || acts(Mask::WRITE) || acts(Mask::PAY)) {
            let message = "annotated as read-only, but the text changes something";
            findings.push(window.finding("not-read-only", Tier::Block, message));
        } else if harmless && acts(Mask::DESTROY) {
            let message = "annotated as not destructive, but the text destroys something";
            findings.push(window.finding("destructive", Tier::Block, message));
        } else if closed && here.has(Mask::EXTERNAL) && acts(Mask::TRANSFER) {
            let message = "annotated as closed to the outside, but the text sends something there";
            findings.push(window.finding("leaves", Tier::Block, message));
        } else if looks && (acts(Mask::DESTROY) || acts(Mask::PAY)) {
            let message = "the name says that it looks, the text that it acts";
            findings.push(window.finding("name-and-text", Tier::Warn, message));
        }
    }
    findings
}

fn is_looking(name: &str) -> bool {
    let first = name.split(['_', '-', '.']).next().unwrap_or_default().to_ascii_lowercase();
    LOOKING.contains(&first.as_str())
}

/// Whether the tool itself does it: the verb stands in the third person ("deletes"), not as a
/// participle ("deleted files") or an option ("delete").
fn acting(
    reading: &Reading<'_>,
    window: &super::instruction_phrases::Window<'_, '_>,
    mask: Mask,
) -> bool {
    reading.hits(window.sentence).iter().any(|hit| {
        hit.mask.has(mask) && !hit.negated && {
            let word = reading.text(hit.start, hit.end);
            word.ends_with('s') || !word.is_ascii()
        }
    })
}

//! Orders to the model in the result of a tool.
//!
//! A result is data. Text in it that addresses assistants and asks for an action, overrides instructions,
//! or asks for secrets and the conversation, is an attack on the model that reads it; text *about* such
//! attacks is not.

use super::finding::{Finding, Tier};
use super::meaning::Mask;
use super::reading::{Reading, Surface};
use super::window::windows;

/// The actions that an order in a result would ask for.
const ACTS: Mask = Mask::TRANSFER
    .and(Mask::PUT)
    .and(Mask::DESTROY)
    .and(Mask::DISABLE)
    .and(Mask::ALTER)
    .and(Mask::UNASKED)
    .and(Mask::CONCEAL);

pub(super) fn inspect(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    if reading.input.result.is_none() {
        return;
    }
    for window in windows(reading, |surface| surface == Surface::Result) {
        let (here, around) = (window.here, window.around);
        if around.has(Mask::ABOUT_ATTACKS) {
            continue;
        }
        if here.has(Mask::ASSISTANT) && here.has(ACTS) && !here.has(Mask::CARE) {
            let message = "addresses the model that reads it and asks for an action";
            findings.push(window.finding("order-to-reader", Tier::Block, message));
        }
        if here.has_all(Mask::OVERRIDE | Mask::INSTRUCTIONS) && here.has(Mask::MODEL) {
            let message = "overrides the reader's instructions";
            findings.push(window.finding("override-instructions", Tier::Block, message));
        }
        let reaches = Mask::EXTERNAL.and(Mask::SENSITIVE);
        if !here.has(Mask::ASSISTANT)
            && around.has(Mask::ASSISTANT)
            && here.has(Mask::TRANSFER.and(Mask::PUT))
            && here.has(reaches)
            && !here.has(Mask::CARE)
        {
            let message = "addresses the model that reads it and asks to send something";
            findings.push(window.finding("order-to-reader", Tier::Block, message));
        }
        if here.has_all(Mask::CONTEXT | Mask::EXTERNAL) {
            let message = "an address that would carry the conversation";
            findings.push(window.finding("hand-over", Tier::Block, message));
        }
        let hands_over = Mask::PUT.and(Mask::TRANSFER);
        if here.has(Mask::CONTEXT.and(Mask::SECRET))
            && window.close(Mask::CONTEXT.and(Mask::SECRET), hands_over, 100)
            && here.has(Mask::EXTERNAL.and(Mask::CONTEXT))
            && !here.has(Mask::CARE)
        {
            let message = "asks for secrets or for the conversation";
            findings.push(window.finding("hand-over", Tier::Block, message));
        }
        if here.has(Mask::CONCEAL) && around.has(ACTS.without(Mask::CONCEAL)) {
            let message = "asks to hide something from the user";
            findings.push(window.finding("conceal", Tier::Warn, message));
        }
        if here.has(Mask::EXECUTE) && here.has(Mask::EXTERNAL) {
            let message = "a command that fetches code and runs it";
            findings.push(window.finding("run-code", Tier::Warn, message));
        }
    }
}

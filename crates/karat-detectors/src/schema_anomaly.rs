//! Parameters that collect data the tool does not need: passwords and keys, the conversation, the model's
//! instructions, personal data.
//!
//! A parameter is compared with the declared subject of the tool: a vault may ask for secrets and a prompt
//! checker for prompts. Values count as well: an example that shows a password teaches the model to send
//! one, and a default or constant address decides where data goes.

use super::addresses::is_address;
use super::finding::{Finding, Tier, excerpt};
use super::lexicon::mask_of_name;
use super::meaning::Mask;
use super::reading::{Keyword, Part, Reading, Surface};
use super::window::windows;

pub(super) fn inspect(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    if reading.mask.has(Mask::SENSITIVE.and(Mask::DISABLE)) {
        names(reading, findings);
        descriptions(reading, findings);
    }
    values(reading, findings);
}

fn finding(part: &Part<'_>, rule: &'static str, tier: Tier, message: &'static str) -> Finding {
    Finding {
        rule,
        tier,
        message: message.into(),
        place: part.place(),
        excerpt: excerpt(part.raw, 0, 0).into_owned(),
    }
}

/// Returns true if the tool itself talks to a model, so that prompts are its subject.
fn is_about_models(reading: &Reading<'_>) -> bool {
    reading.purpose.has(Mask::CONTEXT.and(Mask::ASSISTANT))
}

fn names(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    let mut secrets = 0;
    for part in reading.parts.iter().filter(|part| part.surface == Surface::ParameterName) {
        let mask = part.mask;
        if !mask.has(Mask::SECRET.and(Mask::CONTEXT)) || !part.may_carry_text() {
            continue;
        }
        if mask.has(Mask::SECRET) && !reading.purpose.has(Mask::SECRET) {
            secrets += 1;
            if secrets == 2 {
                let message = "several parameters for secrets in a tool that is not about secrets";
                findings.push(finding(part, "secret-parameters", Tier::Warn, message));
            }
        }
        // The id of a conversation is not the conversation.
        let names_one = part.raw.ends_with("id") || part.raw.ends_with("Id");
        if mask.has(Mask::CONTEXT) && !is_about_models(reading) && !names_one {
            let whole = mask.has(Mask::WHOLE.and(Mask::PRIOR));
            let tier = if whole { Tier::Block } else { Tier::Warn };
            let message = "a parameter for the conversation or the model's instructions";
            findings.push(finding(part, "collects-context", tier, message));
        }
    }
}

fn descriptions(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    for window in windows(reading, |surface| surface == Surface::ParameterText) {
        let here = window.here;
        let part = reading.part(window.sentence);
        if here.has(Mask::CARE.and(Mask::ASSURANCE).and(Mask::UNLESS))
            || !here.has(Mask::SENSITIVE.and(Mask::DISABLE))
        {
            continue;
        }
        let carries = part.may_carry_text();
        let name = part.parameter.map(mask_of_name).unwrap_or(Mask::NONE);
        let known = reading.purpose | name;
        let secrets = Mask::SECRET.and(Mask::SECRET_PATH);
        let asked = window.close(secrets, Mask::PUT, 80);
        if carries && here.has(secrets) && asked && !known.has(secrets) && !here.has(Mask::NEGATION)
        {
            // Ordinary documentation mentions tokens; an attack wants those of somebody.
            let grave = Mask::SECRET_PATH
                .and(Mask::USER)
                .and(Mask::CONTEXT)
                .and(Mask::OTHER_TOOL)
                .and(Mask::WHOLE)
                .and(Mask::COLLECT)
                .and(Mask::THIRD_PARTY);
            let message = "the text asks for a secret that neither tool nor parameter is about";
            let tier = if here.has(grave) { Tier::Block } else { Tier::Warn };
            findings.push(window.finding("collects-secret", tier, message));
        } else if name.has(Mask::CONTROL)
            && here.has(Mask::DISABLE)
            && !here.has(Mask::NEGATION)
            // A switch that is called `no_verify` says what it does.
            && !name.has(Mask::NEGATION.and(Mask::DISABLE))
        {
            let message = "the text asks to switch off a control";
            findings.push(window.finding("weakens-control", Tier::Block, message));
        } else if carries
            && here.has(Mask::CONTEXT)
            && !is_about_models(reading)
            && here.has(Mask::WHOLE.and(Mask::PUT))
            && !window.context_is_own_data()
        {
            let message = "the text asks for the conversation or the model's instructions";
            findings.push(window.finding("collects-context", Tier::Block, message));
        } else if carries
            && here.has(Mask::PERSONAL)
            && !known.has(Mask::PERSONAL)
            && here.has(
                Mask::WHOLE.and(Mask::COLLECT).and(Mask::UNASKED).and(Mask::ALWAYS).and(Mask::PUT),
            )
        {
            let kinds =
                reading.hits(window.sentence).iter().filter(|hit| hit.mask.has(Mask::PERSONAL));
            let tier = if kinds.count() > 1 { Tier::Block } else { Tier::Warn };
            let message = "the text asks for personal data that the tool is not about";
            findings.push(window.finding("collects-personal", tier, message));
        }
    }
}

fn values(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    let mut contexts = 0;
    let mut shown = 0;
    for part in reading.parts.iter().filter(|part| part.surface == Surface::ParameterValue) {
        let value = part.mask;
        if !value.has(Mask::SENSITIVE.and(Mask::EXTERNAL)) && !part.raw.contains('=') {
            continue;
        }
        let name = part.parameter.map(mask_of_name).unwrap_or(Mask::NONE);
        match part.keyword {
            Some(Keyword::Enum) if value.has(Mask::CONTEXT) && !is_about_models(reading) => {
                contexts += 1;
                if contexts == 2 {
                    let message =
                        "the choices are parts of the conversation or of the model's context";
                    findings.push(finding(part, "offers-context", Tier::Block, message));
                }
            }
            Some(Keyword::Default | Keyword::Const) => {
                if value.has(Mask::SECRET_PATH) && !is_path(part) {
                    let message = "the preset value is a secret file";
                    findings.push(finding(part, "preset-secret", Tier::Block, message));
                }
                let leads_out = part.raw.split_whitespace().any(is_address);
                if leads_out && name.has(Mask::TRANSFER) && !reading.purpose.has(Mask::TRANSFER) {
                    let message = "a preset address that data is sent to";
                    findings.push(finding(part, "preset-recipient", Tier::Block, message));
                }
                if part.raw.contains('@') && part.raw.split([' ', ':']).any(is_address) {
                    let message = "a preset recipient outside";
                    findings.push(finding(part, "preset-recipient", Tier::Warn, message));
                }
            }
            _ => {}
        }
        // The name of a secret is not a secret.
        let more_than_a_name = part.raw.contains([' ', '=']);
        let unrelated = !(reading.purpose | name).has(Mask::SECRET);
        let example = part.keyword == Some(Keyword::Examples);
        if example && value.has(Mask::SECRET) && more_than_a_name && unrelated {
            shown += 1;
        }
        if (shows_secret(part.raw) || shown == 2) && !reading.purpose.has(Mask::SECRET) {
            shown += 1;
            let message = "the example shows secrets, which teaches the model to send them";
            findings.push(finding(part, "example-secret", Tier::Block, message));
        }
        if has_placeholder(part.raw)
            && value.has(Mask::CONTEXT.and(Mask::SECRET).and(Mask::PERSONAL))
        {
            let message = "a placeholder for data that should not be sent";
            findings.push(finding(part, "placeholder", Tier::Block, message));
        }
    }
}

/// Returns true if the name of a parameter says that it is a path.
fn is_path(part: &Part<'_>) -> bool {
    part.parameter.is_some_and(|name| {
        let name = name.to_lowercase();
        ["path", "file", "config", "dir"].iter().any(|word| name.contains(word))
    })
}

/// Returns true if a line is `NAME_WITH_SECRET=value`, as in environment files.
fn shows_secret(text: &str) -> bool {
    text.lines().any(|line| {
        let Some((name, value)) = line.trim().split_once('=') else { return false };
        let shouting = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let secret = ["SECRET", "PASSWORD", "TOKEN", "KEY", "CREDENTIAL", "PASSWD"];
        name.len() >= 6
            && name.chars().all(shouting)
            && secret.iter().any(|word| name.contains(word))
            && value.trim().len() >= 6
    })
}

fn has_placeholder(text: &str) -> bool {
    text.contains("{{") && text.contains("}}") || text.contains('<') && text.contains('>')
}

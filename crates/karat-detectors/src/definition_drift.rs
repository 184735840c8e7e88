//! Changes of a definition since it was approved (`before`).
//!
//! New wording alone is not a finding. A new address is one, a new claim on secrets or the conversation, a
//! promise that is gone, a default that now shares or sends, an annotation that no longer protects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::addresses::is_address;
use super::finding::{Finding, Tier, excerpt};
use super::lexicon::mask_of_name;
use super::meaning::Mask;
use super::reading::{Reading, Sentence, Surface};
use crate::definition::{ScanInput, Tool};

/// The most schema nodes that are compared.
const MAX_NODES: usize = 10_000;

pub(super) fn inspect(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    let Some(before) = &reading.input.before else { return };
    let earlier = ScanInput::of_tool(before.clone());
    let then = Reading::of(&earlier);
    new_text(reading, &then, findings);
    lost_promises(reading, &then, findings);
    annotations(before, &reading.input.tool, findings);
    schemas(before, &reading.input.tool, findings);
}

/// The sentences that are new or changed.
fn fresh<'r>(reading: &'r Reading<'_>, then: &Reading<'_>) -> Vec<&'r Sentence> {
    let old: BTreeSet<&str> =
        then.sentences.iter().map(|sentence| then.sentence_text(sentence)).collect();
    reading
        .sentences
        .iter()
        .filter(|sentence| reading.part(sentence).surface != Surface::Result)
        .filter(|sentence| !old.contains(reading.sentence_text(sentence)))
        .collect()
}

fn new_text(reading: &Reading<'_>, then: &Reading<'_>, findings: &mut Vec<Finding>) {
    let had = then.mask;
    for sentence in fresh(reading, then) {
        let here = sentence.mask;
        let text = reading.sentence_text(sentence);
        let mut add = |rule, tier, message: &'static str| {
            findings.push(Finding {
                rule,
                tier,
                message: message.into(),
                place: reading.part(sentence).place(),
                excerpt: excerpt(text, 0, 0).into_owned(),
            });
        };
        if here.has(Mask::CARE.and(Mask::ASSURANCE)) {
            continue;
        }
        let moves = Mask::TRANSFER.and(Mask::PUT).and(Mask::COLLECT);
        if here.has(Mask::EXTERNAL) && here.has(moves) && !had.has(Mask::EXTERNAL) {
            add("new-address", Tier::Block, "since approval, something goes to an outside address");
        }
        if here.has(Mask::SENSITIVE) && here.has(moves) && !had.has(Mask::SENSITIVE) {
            add("new-claim", Tier::Block, "since approval, it asks for secrets or private data");
        } else if here.has(Mask::SECRET.and(Mask::CONTEXT))
            && !had.has(Mask::SENSITIVE)
            && !here.has(Mask::NEGATION.and(Mask::NEGATION_AFTER))
        {
            add(
                "new-subject",
                Tier::Warn,
                "since approval, it mentions secrets or the conversation",
            );
        }
        let misconduct = Mask::CONCEAL.and(Mask::AGAINST).and(Mask::UNASKED).and(Mask::EXECUTE);
        if here.has(misconduct) && !had.has(misconduct) {
            add(
                "new-conduct",
                Tier::Block,
                "since approval, it acts unseen, unasked or against the user",
            );
        }
        if here.has(Mask::DESTROY) && !had.has(Mask::DESTROY) {
            add("new-destruction", Tier::Warn, "since approval, it removes or cancels something");
        }
        if here.has_all(Mask::DISABLE | Mask::CONTROL) && !had.has(Mask::DISABLE) {
            add("new-weakness", Tier::Warn, "since approval, it switches off a protection");
        }
    }
}

fn lost_promises(reading: &Reading<'_>, then: &Reading<'_>, findings: &mut Vec<Finding>) {
    let promise = then.sentences.iter().find(|sentence| sentence.mask.has(Mask::ASSURANCE));
    if let Some(promise) = promise
        && !reading.mask.has(Mask::ASSURANCE)
    {
        let acts = Mask::TRANSFER
            .and(Mask::DESTROY)
            .and(Mask::WRITE)
            .and(Mask::PAY)
            .and(Mask::ALTER)
            .and(Mask::EXTERNAL);
        let acts = fresh(reading, then).iter().any(|sentence| sentence.mask.has(acts));
        let tier = if acts { Tier::Block } else { Tier::Warn };
        findings.push(Finding {
            rule: "lost-promise",
            tier,
            message: "a promise of the approved definition is gone".into(),
            place: then.part(promise).place(),
            excerpt: excerpt(then.sentence_text(promise), 0, 0).into_owned(),
        });
    }
}

fn annotations(before: &Tool, now: &Tool, findings: &mut Vec<Finding>) {
    let hint = |tool: &Tool, name: &str| {
        tool.annotations.as_ref().and_then(|all| all.get(name)).and_then(Value::as_bool)
    };
    for (name, protects) in
        [("readOnlyHint", true), ("destructiveHint", false), ("openWorldHint", false)]
    {
        if hint(before, name) == Some(protects) && hint(now, name) != Some(protects) {
            findings.push(Finding {
                rule: "lost-annotation",
                tier: Tier::Warn,
                message: format!("{name} was {protects} and no longer is").into(),
                place: "annotations".into(),
                excerpt: now.annotations.as_ref().map(ToString::to_string).unwrap_or_default(),
            });
        }
    }
}

/// Compares parameters by their path.
fn schemas(before: &Tool, now: &Tool, findings: &mut Vec<Finding>) {
    let (Some(before), Some(now)) = (&before.input_schema, &now.input_schema) else { return };
    let mut pending = vec![(String::new(), before, now)];
    let mut visited = 0;
    while let Some((path, old, new)) = pending.pop() {
        visited += 1;
        if visited > MAX_NODES {
            return;
        }
        defaults(&path, old, new, findings);
        let (Some(Value::Object(old_properties)), Some(Value::Object(new_properties))) =
            (old.get("properties"), new.get("properties"))
        else {
            continue;
        };
        let required: BTreeSet<&str> = new
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        for (name, schema) in new_properties {
            let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match old_properties.get(name) {
                Some(old) => pending.push((place, old, schema)),
                None => {
                    if mask_of_name(name).has(Mask::SENSITIVE) && required.contains(name.as_str()) {
                        findings.push(Finding {
                            rule: "new-claim",
                            tier: Tier::Block,
                            message: "since approval, a parameter for private data is required"
                                .into(),
                            place: format!("parameter `{place}`").into(),
                            excerpt: excerpt(&schema.to_string(), 0, 0).into_owned(),
                        });
                    }
                }
            }
        }
    }
}

/// Compares the defaults of a parameter.
fn defaults(path: &str, old: &Value, new: &Value, findings: &mut Vec<Finding>) {
    let (was, is) = (old.get("default"), new.get("default"));
    if was == is {
        return;
    }
    let mut add = |rule, tier, message: &'static str| {
        findings.push(Finding {
            rule,
            tier,
            message: message.into(),
            place: format!("default of `{path}`").into(),
            excerpt: is.map(ToString::to_string).unwrap_or_default(),
        });
    };
    let leads_out = |value: Option<&Value>| {
        value.and_then(Value::as_str).is_some_and(|text| is_address(&text.to_lowercase()))
    };
    if leads_out(is) && !leads_out(was) {
        add("new-default", Tier::Block, "since approval, the default is an outside address");
    } else if let (Some(Value::String(_)), Some(value @ Value::String(_))) = (was, is) {
        let offered = |schema: &Value| {
            schema.get("enum").and_then(Value::as_array).is_some_and(|all| all.contains(value))
        };
        if offered(new) && !offered(old) {
            add(
                "new-default",
                Tier::Warn,
                "since approval, the default is a choice that did not exist before",
            );
        }
    }
}

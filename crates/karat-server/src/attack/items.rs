//! The items of a report on attacks, one per result.

use std::collections::BTreeMap;

use karat_core::observed::{self, AttackStatus, Observed};
use karat_core::report::{Item, Property};
use karat_metrics::MetricId;

use super::attacks::{ATTACKS, KnownAttack};
use super::result::AttackResult;

/// The metric.
pub(super) const HELD: MetricId = MetricId::known("attacks_held");

/// The attack with this id; none if this build does not know it.
pub(super) fn known(id: &str) -> Option<&'static KnownAttack> {
    ATTACKS.iter().copied().find(|attack| attack.id() == id)
}

/// The item of one result; none if this build does not know the attack.
pub(super) fn item(result: &AttackResult) -> Option<Item> {
    let attack = known(&result.attack)?;
    let held = match result.status {
        AttackStatus::Held => Some(1.0),
        AttackStatus::Broken => Some(0.0),
        _ => None,
    };
    let tool = (!result.tool.is_empty()).then_some((Property::Tool.name(), result.tool.as_str()));
    let tags = [
        (Property::Class.name(), attack.class.name()),
        (Property::Attack.name(), attack.id()),
        ("status", result.status.name()),
    ];
    let tags = tags.into_iter().chain(tool);
    Some(Item {
        id: result.id(),
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        metrics: BTreeMap::from([(HELD, held)]),
        observed: Some(Observed::Attack(observed::Attack {
            about: attack.rule.summary.to_owned(),
            status: result.status,
            at: result.at.clone(),
            attempts: result.attempts,
            evidence: result.evidence.clone(),
            why: result.why.clone(),
            again: result.again.clone(),
            tools: BTreeMap::new(),
        })),
        ..Item::default()
    })
}

//! From the results of attacks to metrics, items and warnings. Pure.

use std::collections::BTreeMap;

use karat_core::aggregate;
use karat_core::error::EvalError;
use karat_core::evaluation::{Observations, Scored, conventions};
use karat_core::finding::{Finding, Severity};
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::observed::{self, AttackStatus, Observed};
use karat_core::report::{Item, Measured, Property, Report, Verdict};
use karat_io::text;
use karat_metrics::MetricId;

use super::Attack;
use super::attacks::{Class, KnownAttack};
use super::items::{HELD, item, known};
use super::result::AttackResult;
use crate::probe::live::not_about;
use crate::probe::{findings_check, rate, waivers};

/// The warning of a run that its time limit ended.
pub(super) const CUT_SHORT: &str = "the time limit was reached before every attack was made";

/// The share of attacks and tools that were judged.
pub(super) const COVERAGE: MetricId = MetricId::known("attack_coverage");

const CONVENTIONS: [(&str, &str); 7] = [
    (
        "broken",
        "proven by a canary: a token in the answer (plain, base64, hexadecimal or reversed), a file \
         that was made, or changed outside the root, a call of the listener under the number of the attempt \
         or, without it, each time that the attempt is made, a product that was computed, an answer that is \
         too large or missing",
    ),
    ("held", "at least one attempt was answered, and no canary was touched"),
    (
        "not_executed",
        "no attempt was answered, the server was lost, it refuses even plain arguments of the tool \
         as invalid, the tool fails alike with and without the attack, or a contact with the listener \
         proves nothing",
    ),
    (
        "not_applicable",
        "no parameter could carry it, it is the purpose of the tool, or it was tried without effect \
         through a parameter that nothing but its type speaks for",
    ),
    (
        "not_judged",
        "a text with instructions was passed on: whether a model obeys it is not up to the server",
    ),
    ("attacks_held", "held ÷ (held + broken), over attack, tool and parameter"),
    (
        "attack_coverage",
        "pairs of attack and tool that were held or broken ÷ all pairs; the rest does not apply, was not \
         executed or is not judged",
    ),
];

/// The findings in a report, tool by tool.
pub fn findings(report: &Report) -> Vec<Finding> {
    findings_in(&report.items)
}

fn findings_in(items: &[Item]) -> Vec<Finding> {
    let mut found: Vec<Finding> = items.iter().filter_map(finding).collect();
    found.sort_by(|a, b| a.tool.cmp(&b.tool));
    found
}

fn finding(item: &Item) -> Option<Finding> {
    let Some(Observed::Attack(observed)) = &item.observed else { return None };
    let is_finding = matches!(observed.status, AttackStatus::Broken | AttackStatus::NotJudged);
    let evidence = observed.evidence.as_ref().filter(|_| is_finding)?;
    let id = item.tag(Property::Attack)?;
    let tool = item.tag(Property::Tool).unwrap_or_default().to_owned();
    let parameter = item.id.strip_prefix(&format!("{id}/{tool}/"));
    let through = parameter.map(|name| format!(" through {name}")).unwrap_or_default();
    Some(Finding {
        rule: format!("attack-{id}"),
        severity: known(id).map_or(Severity::Error, |attack| attack.rule.severity),
        tool,
        at: observed.at.clone(),
        message: format!("{id}{through}: {} ({})", evidence.canary, evidence.about),
        input: evidence.sent.clone(),
        answer: evidence.answer.clone(),
        seen: 1,
        reproduced: true,
        replay: observed.again.clone(),
    })
}

/// The number of attacks in a report by class and status.
pub fn tally(report: &Report) -> BTreeMap<Class, BTreeMap<AttackStatus, u64>> {
    let mut tally: BTreeMap<Class, BTreeMap<AttackStatus, u64>> = BTreeMap::new();
    for item in &report.items {
        let attack = item.tag(Property::Attack).and_then(known);
        if let (Some(attack), Some(Observed::Attack(observed))) = (attack, &item.observed) {
            let tools: usize = observed.tools.values().map(Vec::len).sum();
            let counts = tally.entry(attack.class).or_default();
            *counts.entry(observed.status).or_default() += tools.max(1) as u64;
        }
    }
    tally
}

pub(super) fn score(observed: &Observations<'_, Attack>) -> Result<Scored, EvalError> {
    let Observations { entry, outcomes, facts, .. } = *observed;
    let results = outcomes.iter().filter_map(|outcome| match &outcome.outcome {
        Kept::Answer(results) => Some(results),
        Kept::Failure { .. } => None,
    });
    let results: Vec<&AttackResult> = results.flatten().collect();
    let count = |status| results.iter().filter(|result| result.status == status).count();

    let mut items: Vec<Item> =
        results.iter().filter(|result| is_applicable(result)).filter_map(|one| item(one)).collect();
    items.extend(entry.data.attacks.iter().filter_map(|attack| not_applicable(attack, &results)));
    items.sort_by(|a, b| a.id.cmp(&b.id));
    let waivers = &entry.config.waive;
    let mut findings = findings_in(&items);
    let needed = waivers::apply(waivers, &facts.live.today, findings.iter_mut());
    let mut check = findings_check(&HELD, &findings, entry.config.fail_on);
    check.reason.push_str(&not_about(facts.live.skipped));
    if let Some(lost) = facts.live.lost.as_ref().filter(|_| check.verdict != Verdict::Fail) {
        return Err(EvalError::NothingMeasured(format!(
            "the server was lost, and {} attacks were not completed ({} held, {} broken before): {lost}",
            count(AttackStatus::NotExecuted),
            count(AttackStatus::Held),
            count(AttackStatus::Broken),
        )));
    }
    let executed = [AttackStatus::Held, AttackStatus::Broken, AttackStatus::NotJudged];
    // Attempts without a finding prove nothing about a parameter of a fitting type, but they were made.
    let is_tried =
        |result: &AttackResult| result.status == AttackStatus::NotApplicable && result.attempts > 0;
    if !results.iter().any(|result| executed.contains(&result.status) || is_tried(result)) {
        let reason = match facts.live.is_late {
            true if entry.config.stop.is_made() => "the run was interrupted before any attack",
            true => {
                "the time limit was reached before any attack; raise it (--time-limit, `time_limit`)"
            }
            false if count(AttackStatus::NotExecuted) > 0 => "no attack came through to a tool",
            false => "no attack applies to any tool",
        };
        let tried = results.iter().find(|result| result.status == AttackStatus::NotExecuted);
        let why = tried.or(results.first()).and_then(|result| result.why.as_ref());
        let first = why.map(|why| format!(" (first: {why})")).unwrap_or_default();
        return Err(EvalError::NothingMeasured(format!("nothing was executed: {reason}{first}")));
    }
    // What stops working on the way leaves attacks untried, as a server does that is lost.
    if check.verdict == Verdict::Pass && results.iter().any(|result| result.has_stopped) {
        check.verdict = Verdict::Inconclusive;
    }
    let mut warnings = Vec::new();
    match count(AttackStatus::NotJudged) {
        0 => {}
        n => warnings
            .push(format!("{n} texts with instructions were passed on (noted, not counted)")),
    }
    warnings.extend(not_executed(&results));
    if facts.live.is_late {
        warnings.push(CUT_SHORT.to_owned());
    }
    warnings.extend(facts.live.warnings.iter().cloned());
    let refs: Vec<&Item> = items.iter().collect();
    let seed = entry.common.seed;
    Ok(Scored {
        metrics: vec![aggregate::measure(&HELD, &refs, 1, seed), coverage(outcomes)],
        slices: [Property::Class, Property::Attack]
            .into_iter()
            .flat_map(|by| aggregate::slices(by, &[HELD], &items, 1, seed))
            .collect(),
        items,
        controls: facts.controls.clone(),
        conventions: conventions(CONVENTIONS),
        warnings,
        checks: std::iter::once(check)
            .chain(waivers::check(waivers, &needed, &facts.live.today))
            .collect(),
        isolation: facts.live.isolation.clone(),
        ..Scored::default()
    })
}

/// The warning about attacks that were not executed. Only a reason that all of them share is that of all.
fn not_executed(results: &[&AttackResult]) -> Option<String> {
    let open = results.iter().filter(|result| result.status == AttackStatus::NotExecuted);
    let reasons: Vec<&str> = open.map(|result| result.why.as_deref().unwrap_or_default()).collect();
    let first = reasons.first()?;
    let attacks = text::count(reasons.len(), "attack");
    Some(match reasons.iter().all(|reason| reason == first) {
        true => format!("{attacks} could not be executed: {first}"),
        false => format!("{attacks} could not be executed (first: {first})"),
    })
}

/// The share of questions (attack and tool) with a judged result.
fn coverage(outcomes: &[Outcome<Vec<AttackResult>>]) -> Measured {
    let is_judged =
        |one: &AttackResult| matches!(one.status, AttackStatus::Held | AttackStatus::Broken);
    let judged = outcomes.iter().filter(|outcome| match &outcome.outcome {
        Kept::Answer(results) => results.iter().any(is_judged),
        Kept::Failure { .. } => false,
    });
    rate(COVERAGE, judged.count() as u64, outcomes.len() as u64, "no attack was made")
}

fn is_applicable(result: &AttackResult) -> bool {
    result.status != AttackStatus::NotApplicable
}

/// One item for all tools that an attack does not apply to, with the reasons.
fn not_applicable(attack: &KnownAttack, results: &[&AttackResult]) -> Option<Item> {
    let mut tools: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let of_attack =
        |result: &&&AttackResult| result.attack == attack.id() && !is_applicable(result);
    let mut first = None;
    for result in results.iter().filter(of_attack) {
        first.get_or_insert(*result);
        let why = result.why.clone().unwrap_or_default();
        tools.entry(why).or_default().push(result.tool.clone());
    }
    let mut whole = item(first?)?;
    whole.id = attack.id().to_owned();
    whole.tags.remove(Property::Tool.name());
    whole.observed = Some(Observed::Attack(observed::Attack {
        about: attack.rule.summary.to_owned(),
        status: AttackStatus::NotApplicable,
        at: String::new(),
        attempts: 0,
        evidence: None,
        why: None,
        again: String::new(),
        tools,
    }));
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_one_attack_is_not_given_for_the_others() {
        let result = |why: &str| AttackResult {
            attack: "sql-injection".to_owned(),
            tool: "find".to_owned(),
            parameter: None,
            at: String::new(),
            status: AttackStatus::NotExecuted,
            attempts: 0,
            evidence: None,
            why: Some(why.to_owned()),
            has_stopped: false,
            again: String::new(),
        };
        let (late, lost) = (result("it was late"), result("it was lost"));
        let warning = |results: &[&AttackResult]| not_executed(results).unwrap_or_default();
        assert_eq!(warning(&[&late]), "1 attack could not be executed: it was late");
        assert_eq!(warning(&[&late, &late]), "2 attacks could not be executed: it was late");
        assert_eq!(
            warning(&[&late, &lost]),
            "2 attacks could not be executed (first: it was late)"
        );
        assert_eq!(warning(&[]), "");
    }
}

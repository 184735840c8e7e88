//! The things outside of a server that its tools lead to, by the results of a few attacks.
//!
//! Reaching them may be what a server is for, so nothing here is a fault.

use std::collections::BTreeSet;

use karat_core::observed::{self, AttackStatus, Observed};
use karat_core::report::{Item, Property, Report};
use serde::Serialize;

use super::attempts::{NO_PARAMETER, PURPOSE, RUNS_ANYTHING};
use super::score::CUT_SHORT;

/// The attacks that show it.
pub const REACHING: [&str; 6] = [
    "absolute-path",
    "secret-file",
    "env-secret",
    "env-by-name",
    "ssrf-loopback",
    "command-injection",
];

/// The reason where no tool could be tried.
const NOT_TAKEN: &str = "no called tool takes them as a parameter";

/// Something outside of a server, and whether its tools lead there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// The name.
    pub what: &'static str,
    /// The tools and parameters that led there, each proven by a canary or named as its purpose.
    pub through: Vec<String>,
    /// True if a tool was tried that could have led there.
    pub is_tried: bool,
    /// True if the time ran out before every tool was tried.
    pub is_cut_short: bool,
    /// The reason for which it is not known whether a tool leads there; none if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// The things by the results of a run of [`REACHING`].
pub fn of(report: &Report) -> Vec<Reach> {
    let things: [(&'static str, &[&str]); 4] = [
        ("files outside of its folders", &REACHING[..2]),
        ("environment variables", &REACHING[2..4]),
        ("addresses on this machine", &REACHING[4..5]),
        ("commands", &REACHING[5..]),
    ];
    let is_cut_short = report.warnings.iter().any(|warning| warning == CUT_SHORT);
    let reach = |(what, attacks): &(&'static str, &[&str])| {
        reach(what, attacks, &report.items, is_cut_short)
    };
    things.iter().map(reach).collect()
}

fn reach(what: &'static str, attacks: &[&str], items: &[Item], is_cut_short: bool) -> Reach {
    let mut through = BTreeSet::new();
    let mut is_tried = false;
    let mut reasons = Vec::new();
    for item in items {
        let Some(attack) = item.tag(Property::Attack).filter(|id| attacks.contains(id)) else {
            continue;
        };
        let Some(Observed::Attack(observed)) = &item.observed else { continue };
        match observed.status {
            AttackStatus::Broken => {
                is_tried = true;
                let place = item.id.strip_prefix(attack).unwrap_or_default();
                through.insert(place.trim_start_matches('/').replacen('/', ".", 1));
            }
            AttackStatus::Held => is_tried = true,
            _ if attack == "command-injection" => through.extend(made_for(observed)),
            _ => {}
        }
        reasons.extend(observed.why.iter().chain(observed.tools.keys()));
    }
    let is_tried = is_tried || !through.is_empty();
    let undefined = (!is_tried).then(|| match is_cut_short {
        true => CUT_SHORT.to_owned(),
        false => why_unknown(&reasons),
    });
    Reach { what, is_tried, is_cut_short, undefined, through: through.into_iter().collect() }
}

/// The first of the reasons that is about a tool that could lead there.
fn why_unknown(reasons: &[&String]) -> String {
    let telling = reasons.iter().find(|reason| reason.as_str() != NO_PARAMETER);
    telling.map_or_else(|| NOT_TAKEN.to_owned(), |reason| (*reason).clone())
}

/// The tools whose purpose an attack is, or that run what another parameter says.
fn made_for(observed: &observed::Attack) -> impl Iterator<Item = String> {
    let tools = [PURPOSE, RUNS_ANYTHING].map(|why| observed.tools.get(why).cloned());
    tools.into_iter().flatten().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::items::item;
    use super::super::result::AttackResult;
    use super::*;

    fn result(attack: &str, tool: &str, parameter: &str, status: AttackStatus) -> Item {
        let (at, again) = (String::new(), String::new());
        let parameter = Some(parameter.to_owned());
        let (attack, tool) = (attack.to_owned(), tool.to_owned());
        let (attempts, evidence, why, has_stopped) = (1, None, None, false);
        let result = AttackResult {
            attack,
            tool,
            parameter,
            at,
            status,
            attempts,
            evidence,
            why,
            has_stopped,
            again,
        };
        item(&result).unwrap()
    }

    #[test]
    fn what_was_broken_is_reached_and_what_was_not_tried_is_not_held() {
        let mut purpose = result("command-injection", "", "", AttackStatus::NotApplicable);
        let Some(Observed::Attack(observed)) = &mut purpose.observed else { panic!() };
        observed.tools = BTreeMap::from([(PURPOSE.to_owned(), vec!["run".to_owned()])]);
        let items = [
            result("absolute-path", "read", "path", AttackStatus::Broken),
            result("secret-file", "read", "path", AttackStatus::Broken),
            result("absolute-path", "list", "path", AttackStatus::Held),
            result("ssrf-loopback", "fetch", "url", AttackStatus::Held),
            result("env-by-name", "read", "path", AttackStatus::NotExecuted),
            purpose,
        ];
        let found = |what, attacks: &[&str]| {
            let Reach { through, is_tried, undefined, .. } = reach(what, attacks, &items, false);
            assert_eq!(undefined.is_none(), is_tried, "{what}: {undefined:?}");
            (through, is_tried)
        };
        assert_eq!(found("files", &REACHING[..2]), (vec!["read.path".to_owned()], true));
        assert_eq!(found("environment", &REACHING[2..4]), (vec![], false));
        assert_eq!(found("addresses", &REACHING[4..5]), (vec![], true));
        assert_eq!(found("commands", &REACHING[5..]), (vec!["run".to_owned()], true));
    }

    #[test]
    fn each_unknown_reach_has_its_own_reason() {
        let with = |attack: &str, status: AttackStatus, why: &str| {
            let mut item = result(attack, "fetch", "url", status);
            let Some(Observed::Attack(observed)) = &mut item.observed else { panic!() };
            match status {
                AttackStatus::NotApplicable => {
                    observed.tools = BTreeMap::from([(why.to_owned(), vec!["fetch".to_owned()])]);
                }
                _ => observed.why = Some(why.to_owned()),
            }
            item
        };
        let items = [
            with("absolute-path", AttackStatus::NotApplicable, NO_PARAMETER),
            with("secret-file", AttackStatus::NotExecuted, "fetch fails"),
            with("ssrf-loopback", AttackStatus::NotApplicable, NO_PARAMETER),
        ];
        let why =
            |attacks: &[&str], is_cut_short| reach("", attacks, &items, is_cut_short).undefined;
        assert_eq!(why(&REACHING[..2], false).as_deref(), Some("fetch fails"));
        assert_eq!(why(&REACHING[2..4], false).as_deref(), Some(NOT_TAKEN));
        assert_eq!(why(&REACHING[4..5], false).as_deref(), Some(NOT_TAKEN));
        assert_eq!(why(&REACHING[4..5], true).as_deref(), Some(CUT_SHORT));
    }
}

//! Which cases are asked: those that were chosen and have no answer yet, and those that save a value
//! which one of these needs.
//!
//! A value that a call saved lives in the server that gave it, so a run that goes on after an
//! interruption, or that leaves cases out, makes the calls that the rest builds on (again). What passes
//! between cases without being saved is not seen here.

use std::collections::BTreeSet;
use std::sync::Arc;

use karat_core::journal::Entry;

use crate::observation::Observed;
use crate::suite::Case;

/// What a run asks, and what it knows already.
pub(crate) struct Plan {
    /// The cases that are scored and those that are asked beside them, in the order of the suite.
    pub(crate) cases: Vec<Arc<Case>>,
    /// The answers that hold.
    pub(crate) known: Vec<Entry<Observed>>,
    /// Cases that are asked although they were not chosen.
    beside: Vec<String>,
    /// Cases that are asked again although they were answered.
    again: Vec<String>,
}

impl Plan {
    /// Of the cases of the suite those that were chosen, given the answers of an earlier run.
    pub(crate) fn new(
        suite: &[Arc<Case>],
        chosen: &[Arc<Case>],
        known: Vec<Entry<Observed>>,
    ) -> Plan {
        let wanted: BTreeSet<&str> = chosen.iter().map(|case| case.id.as_str()).collect();
        let answered: BTreeSet<String> = known.iter().map(|entry| entry.id.clone()).collect();
        let open = |case: &Case| wanted.contains(case.id.as_str()) && !answered.contains(&case.id);
        let mut due: Vec<usize> =
            (0..suite.len()).filter(|at| suite.get(*at).is_some_and(|case| open(case))).collect();
        let mut asked: BTreeSet<usize> = due.iter().copied().collect();
        while let Some(at) = due.pop() {
            for earlier in built_on(suite, at) {
                if asked.insert(earlier) {
                    due.push(earlier);
                }
            }
        }
        let asked: BTreeSet<&str> =
            asked.iter().filter_map(|at| suite.get(*at)).map(|case| case.id.as_str()).collect();
        let ids = |matches: &dyn Fn(&str) -> bool| {
            asked.iter().filter(|id| matches(id)).map(|id| (*id).to_owned()).collect()
        };
        Plan {
            cases: suite
                .iter()
                .filter(|case| {
                    wanted.contains(case.id.as_str()) || asked.contains(case.id.as_str())
                })
                .cloned()
                .collect(),
            beside: ids(&|id| !wanted.contains(id)),
            again: ids(&|id| wanted.contains(id) && answered.contains(id)),
            known: known.into_iter().filter(|entry| !asked.contains(entry.id.as_str())).collect(),
        }
    }

    /// The cases whose calls this run makes.
    pub(crate) fn asked(&self) -> Vec<Arc<Case>> {
        let known: BTreeSet<&str> = self.known.iter().map(|entry| entry.id.as_str()).collect();
        self.cases.iter().filter(|case| !known.contains(case.id.as_str())).cloned().collect()
    }

    /// What a reader should know of it.
    pub(crate) fn words(&self) -> Vec<String> {
        let told = [
            ("made for the values that they save, and not scored", &self.beside),
            ("answered before, and made again for the values that they save", &self.again),
        ];
        told.into_iter()
            .filter(|(_, ids)| !ids.is_empty())
            .map(|(what, ids)| format!("{what}: {}", ids.join(", ")))
            .collect()
    }
}

/// The cases whose saved values a case needs: for each name the last one before it that saves it.
fn built_on(suite: &[Arc<Case>], at: usize) -> BTreeSet<usize> {
    let (Some(before), Some(case)) = (suite.get(..at), suite.get(at)) else {
        return BTreeSet::new();
    };
    needs(case)
        .into_iter()
        .filter_map(|name| {
            before.iter().rposition(|case| case.steps().any(|step| step.save.contains_key(&name)))
        })
        .collect()
}

/// The values that must have been saved before a case.
fn needs(case: &Case) -> BTreeSet<String> {
    let mut saved: BTreeSet<&str> = BTreeSet::new();
    let mut needs = BTreeSet::new();
    for step in case.steps() {
        needs.extend(step.names().into_iter().filter(|name| !saved.contains(name.as_str())));
        saved.extend(step.save.keys().map(String::as_str));
    }
    needs
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use karat_core::journal::Outcome;

    use super::*;
    use crate::suite::Suite;

    const SUITE: &str = r#"
setup: [{tool: log_in, save: {user: $.user}}]
cases:
  - {id: first, tool: create, input: {by: "${user}"}, save: {id: $.id}}
  - {id: second, tool: change, input: {id: "${id}"}, save: {id: $.id}}
  - {id: alone, tool: list}
  - {id: third, tool: get, input: {id: "${id}"}}
"#;

    /// The ids of what is asked, and those of what is known.
    fn planned(chosen: &[&str], answered: &[&str]) -> (Vec<String>, Vec<String>, Vec<String>) {
        let suite = Suite::parse(Path::new("s.yaml"), SUITE.as_bytes()).unwrap();
        let chosen: Vec<Arc<Case>> =
            suite.cases.iter().filter(|case| chosen.contains(&case.id.as_str())).cloned().collect();
        let known = answered
            .iter()
            .map(|id| Entry {
                run: 0,
                id: (*id).to_owned(),
                nanos: 0,
                outcome: Outcome::Answer(Observed { attempts: Vec::new() }),
            })
            .collect();
        let plan = Plan::new(&suite.cases, &chosen, known);
        let asked = plan.asked().iter().map(|case| case.id.clone()).collect();
        let known = plan.known.iter().map(|entry| entry.id.clone()).collect();
        (asked, known, plan.words())
    }

    #[test]
    fn a_case_that_was_left_out_is_made_for_what_it_saves() {
        let (asked, _, words) = planned(&["third"], &[]);
        assert_eq!(asked, ["first", "second", "third"]);
        assert_eq!(words, ["made for the values that they save, and not scored: first, second"]);
        assert_eq!(planned(&["first", "alone"], &[]).0, ["first", "alone"]);
    }

    #[test]
    fn an_answered_case_is_made_again_only_if_what_is_left_needs_it() {
        let all = ["first", "second", "alone", "third"];
        let (asked, known, words) = planned(&all, &["first", "second", "alone"]);
        assert_eq!((asked, known), (vec_of(&["first", "second", "third"]), vec_of(&["alone"])));
        assert!(words[0].starts_with("answered before"), "{words:?}");
        let (asked, known, words) = planned(&all, &["first", "second", "third"]);
        assert_eq!(asked, ["alone"]);
        assert_eq!((known.len(), words.len()), (3, 0));
        assert_eq!(planned(&all, &all).0, Vec::<String>::new());
    }

    fn vec_of(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }
}

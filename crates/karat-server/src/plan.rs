//! The cases that a run asks: those that were selected and have no answer yet, and those that save a
//! value which one of these needs.
//!
//! A saved value belongs to the server that gave it, so a run that is resumed, or that leaves cases
//! out, repeats the calls that the others build on. Effects that are not saved are not seen here.

use std::collections::BTreeSet;
use std::sync::Arc;

use karat_core::journal::Entry;

use crate::observation::CaseRun;
use crate::suite::Case;

/// The cases of a run, as positions in the suite.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The selected cases and those that they need, in the order of the suite.
    pub(crate) cases: Vec<usize>,
    /// Those of them whose calls this run makes.
    pub(crate) asked: BTreeSet<usize>,
    /// The ids of cases that are asked although they were not selected.
    added: Vec<String>,
    /// The ids of cases that are asked again although they were answered.
    repeated: Vec<String>,
}

impl Plan {
    /// The plan for the selected cases. Of the known answers, those to cases that must be asked again
    /// are removed.
    pub(crate) fn new(
        suite: &[Arc<Case>],
        selected: &[Arc<Case>],
        known: &mut Vec<Entry<CaseRun>>,
    ) -> Plan {
        let ids: BTreeSet<&str> = selected.iter().map(|case| case.id.as_str()).collect();
        let answered: BTreeSet<String> = known.iter().map(|entry| entry.id.clone()).collect();
        let selected = |at: &usize| ids.contains(suite[*at].id.as_str());
        let answered = |at: &usize| answered.contains(&suite[*at].id);
        let mut due: Vec<usize> =
            (0..suite.len()).filter(|at| selected(at) && !answered(at)).collect();
        let mut asked: BTreeSet<usize> = due.iter().copied().collect();
        while let Some(at) = due.pop() {
            due.extend(needed_by(suite, at).into_iter().filter(|earlier| asked.insert(*earlier)));
        }
        let asked_ids: BTreeSet<&str> = asked.iter().map(|at| suite[*at].id.as_str()).collect();
        known.retain(|entry| !asked_ids.contains(entry.id.as_str()));
        let ids_of = |matches: &dyn Fn(&usize) -> bool| -> Vec<String> {
            asked.iter().filter(|at| matches(at)).map(|at| suite[*at].id.clone()).collect()
        };
        Plan {
            cases: (0..suite.len()).filter(|at| selected(at) || asked.contains(at)).collect(),
            added: ids_of(&|at| !selected(at)),
            repeated: ids_of(&|at| selected(at) && answered(at)),
            asked,
        }
    }

    /// The notes of the report about it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let notes = [
            ("run for the values that they save, and not scored", &self.added),
            ("answered before, and run again for the values that they save", &self.repeated),
        ];
        notes
            .into_iter()
            .filter(|(_, ids)| !ids.is_empty())
            .map(|(what, ids)| format!("{what}: {}", ids.join(", ")))
            .collect()
    }
}

/// The cases whose saved values a case needs: for each name the last one before it that saves it.
fn needed_by(suite: &[Arc<Case>], at: usize) -> BTreeSet<usize> {
    let saves = |name: &str| {
        suite[..at].iter().rposition(|case| case.steps().any(|step| step.save.contains_key(name)))
    };
    needs(&suite[at]).iter().filter_map(|name| saves(name)).collect()
}

/// The values that must have been saved before a case.
pub(crate) fn needs(case: &Case) -> BTreeSet<String> {
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

    /// The ids of the cases that are asked, those that are known, and the notes.
    fn planned(selected: &[&str], answered: &[&str]) -> (Vec<String>, Vec<String>, Vec<String>) {
        let suite = Suite::parse(Path::new("s.yaml"), SUITE.as_bytes()).unwrap();
        let selected = suite.cases.iter().filter(|case| selected.contains(&case.id.as_str()));
        let selected: Vec<Arc<Case>> = selected.cloned().collect();
        let answer = |id: &&str| Entry {
            run: 0,
            id: (*id).to_owned(),
            nanos: 0,
            outcome: Outcome::Answer(CaseRun { attempts: Vec::new(), asked: None }),
        };
        let mut known = answered.iter().map(answer).collect();
        let plan = Plan::new(&suite.cases, &selected, &mut known);
        let asked = plan.asked.iter().map(|at| suite.cases[*at].id.clone()).collect();
        (asked, known.into_iter().map(|entry| entry.id).collect(), plan.notes())
    }

    #[test]
    fn a_case_that_was_not_selected_is_run_for_the_values_it_saves() {
        let (asked, _, notes) = planned(&["third"], &[]);
        assert_eq!(asked, ["first", "second", "third"]);
        assert_eq!(notes, ["run for the values that they save, and not scored: first, second"]);
        assert_eq!(planned(&["first", "alone"], &[]).0, ["first", "alone"]);
    }

    #[test]
    fn an_answered_case_is_run_again_only_if_an_open_one_needs_it() {
        let all = ["first", "second", "alone", "third"];
        let (asked, known, notes) = planned(&all, &["first", "second", "alone"]);
        assert_eq!(asked, ["first", "second", "third"]);
        assert_eq!(known, ["alone"]);
        assert!(notes[0].starts_with("answered before"), "{notes:?}");
        let (asked, known, notes) = planned(&all, &["first", "second", "third"]);
        assert_eq!(asked, ["alone"]);
        assert_eq!((known.len(), notes.len()), (3, 0));
        assert_eq!(planned(&all, &all).0, Vec::<String>::new());
    }
}

//! The pairs of traces in two runs of the same tasks.
//!
//! Where both runs have one trace of each task, the task makes the pair. Otherwise the model, the setting and the
//! turns have to be the same too, each only if one of the runs has several of them: the runs of two models are
//! compared like the runs of one. Traces that agree in this are runs of one task, and are paired in their
//! order.

use std::collections::{BTreeMap, BTreeSet};

use crate::trace::Trace;

/// The traces of two runs, by their places.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Pairs {
    /// The name of each trace of the earlier run, its place and the place of its counterpart. A task that the later
    /// run does not have has none.
    pub(crate) tasks: Vec<(String, usize, Option<usize>)>,
    /// Tasks that only the earlier run has.
    pub(crate) only_before: Vec<String>,
    /// Tasks that only the later run has.
    pub(crate) only_after: Vec<String>,
    /// Traces of tasks that both have, where the other one has fewer runs of it: of the earlier run, and of the
    /// later one.
    pub(crate) surplus: [Vec<String>; 2],
    /// True if tasks were run several times.
    pub(crate) are_repeated: bool,
}

/// The traces of each task in the order of their runs, with their places and the numbers of the runs.
type Runs = BTreeMap<String, Vec<(usize, u32)>>;

impl Pairs {
    /// Pairs the traces of two runs.
    pub(crate) fn of(before: &[&Trace], after: &[&Trace]) -> Pairs {
        let naming = Naming::of(before, after);
        let mut pairs = Pairs { are_repeated: naming.repeated, ..Pairs::default() };
        let mut later = naming.runs(after);
        for (task, runs) in naming.runs(before) {
            let others = later.remove(&task);
            for (number, (at, run)) in runs.iter().enumerate() {
                let name = naming.run(&task, *run);
                match &others {
                    None => pairs.tasks.push((name, *at, None)),
                    Some(others) => match others.get(number) {
                        Some((other, _)) => pairs.tasks.push((name, *at, Some(*other))),
                        None => pairs.surplus[0].push(name),
                    },
                }
            }
            let more = others.iter().flatten().skip(runs.len());
            pairs.surplus[1].extend(more.map(|(_, run)| naming.run(&task, *run)));
            if others.is_none() {
                pairs.only_before.push(task);
            }
        }
        pairs.only_after = later.into_keys().collect();
        pairs
    }
}

/// The properties by which the traces of a task differ.
struct Naming {
    models: bool,
    settings: bool,
    turns: bool,
    repeated: bool,
}

impl Naming {
    fn of(before: &[&Trace], after: &[&Trace]) -> Naming {
        let sides = [before, after];
        let has_repeated = |side: &&[&Trace]| {
            let ids: BTreeSet<&str> = side.iter().map(|trace| trace.id.as_str()).collect();
            ids.len() < side.len()
        };
        let repeated = sides.iter().any(has_repeated);
        Naming {
            models: repeated && vary(sides, |trace| trace.model.as_deref()),
            settings: repeated && vary(sides, |trace| Some(trace.setting)),
            turns: repeated && vary(sides, |trace| Some(trace.turns)),
            repeated,
        }
    }

    /// The name that the runs of a task share.
    fn task(&self, trace: &Trace) -> String {
        let mut name = trace.id.clone();
        if self.models {
            name.push_str(&format!("@{}", trace.model.as_deref().unwrap_or("-")));
        }
        if self.settings {
            name.push_str(&format!("/{}", trace.setting.name()));
        }
        if self.turns {
            name.push_str(&format!("/{}", trace.turns.name()));
        }
        name
    }

    fn run(&self, task: &str, run: u32) -> String {
        if self.repeated { format!("{task}#{run}") } else { task.to_owned() }
    }

    fn runs(&self, traces: &[&Trace]) -> Runs {
        let mut runs = Runs::new();
        for (at, trace) in traces.iter().enumerate() {
            runs.entry(self.task(trace)).or_default().push((at, trace.run));
        }
        for runs in runs.values_mut() {
            runs.sort_by_key(|(_, run)| *run);
            // The runs of each model have numbers from 1, also those whose model was not recorded.
            if runs.windows(2).any(|pair| pair[0].1 == pair[1].1) {
                (1..).zip(runs).for_each(|(number, (_, run))| *run = number);
            }
        }
        runs
    }
}

/// Returns whether one of the sides has several values of a property.
fn vary<'t, T: Ord>(sides: [&[&'t Trace]; 2], of: impl Fn(&'t Trace) -> Option<T>) -> bool {
    let several = |side: &[&'t Trace]| {
        side.iter().filter_map(|trace| of(trace)).collect::<BTreeSet<T>>().len() > 1
    };
    sides.into_iter().any(several)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, model: &str, run: u32) -> Trace {
        Trace { run, model: Some(model.to_owned()), ..Trace::of(id) }
    }

    fn pairs(before: &[Trace], after: &[Trace]) -> Pairs {
        let [before, after] = [before, after].map(|side| side.iter().collect::<Vec<&Trace>>());
        Pairs::of(&before, &after)
    }

    #[test]
    fn several_runs_of_two_models_are_paired_by_task_in_their_order() {
        let before = [run("a", "old", 1), run("a", "old", 2), run("b", "old", 1)];
        let after =
            [run("a", "new", 2), run("a", "new", 1), run("b", "new", 1), run("b", "new", 2)];
        let found = pairs(&before, &after);
        let named = |name: &str, at, other| (name.to_owned(), at, Some(other));
        assert_eq!(found.tasks, [named("a#1", 0, 1), named("a#2", 1, 0), named("b#1", 2, 2)]);
        assert_eq!(found.surplus, [vec![], vec!["b#2".to_owned()]]);
        assert!(found.are_repeated && found.only_after.is_empty());
    }

    #[test]
    fn models_are_distinguished_where_a_run_has_several() {
        let before = [run("a", "old", 1), run("a", "new", 1)];
        let found = pairs(&before, &before[1..]);
        let names: Vec<_> = found.tasks.iter().map(|(name, _, other)| (&**name, *other)).collect();
        assert_eq!(names, [("a@new#1", Some(0)), ("a@old#1", None)]);
        let other = pairs(&before, &[run("a", "other", 1)]);
        assert!(other.tasks.iter().all(|(_, _, counterpart)| counterpart.is_none()));
        // A run whose model was not recorded can be of the same one.
        let unknown = [run("a", "old", 1), Trace { model: None, ..run("a", "", 1) }];
        let found = pairs(&unknown, &unknown);
        let names: Vec<_> = found.tasks.iter().map(|(name, _, other)| (&**name, *other)).collect();
        assert_eq!(names, [("a#1", Some(0)), ("a#2", Some(1))]);
        // With one trace of each task they are not.
        assert_eq!(pairs(&before[..1], &before[1..]).tasks, [("a".to_owned(), 0, Some(0))]);
    }
}

//! Many runs in little memory: names are kept once, and a run without a transcript is a few numbers.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use karat_core::observed::{RunStep, StateChange};

use crate::run::{Recorded, Run};

/// Recorded runs, packed.
#[derive(Debug, Default)]
pub struct Runs {
    names: Names,
    runs: Vec<Packed>,
}

/// The number of a text, from 1.
type Name = NonZeroU32;

/// Texts that occur in many runs, each kept once.
#[derive(Debug, Default)]
struct Names {
    numbers: BTreeMap<Box<str>, Name>,
    texts: Vec<Box<str>>,
}

impl Names {
    fn number(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.texts.push(text.into());
        let number = u32::try_from(self.texts.len()).ok().and_then(NonZeroU32::new);
        let number = number.unwrap_or(NonZeroU32::MAX);
        self.numbers.insert(text.into(), number);
        number
    }

    fn text(&self, number: Name) -> &str {
        self.texts.get(number.get() as usize - 1).map_or("", |text| text)
    }
}

#[derive(Debug)]
struct Packed {
    pipeline: Name,
    suite: Name,
    task: Name,
    goal: Option<Name>,
    attack: Option<Name>,
    surface: Option<Name>,
    at_call: Option<usize>,
    defence: Option<Name>,
    split: Option<Name>,
    error: Option<Name>,
    delivered: Option<bool>,
    success: Option<bool>,
    utility: Option<bool>,
    agentdojo: Option<Recorded>,
    attempted: bool,
    refused: bool,
    calls: u64,
    blocked: u64,
    transcript: Option<Box<Transcript>>,
}

#[derive(Clone, Debug)]
struct Transcript {
    injected: Vec<String>,
    steps: Vec<RunStep>,
    changes: Vec<StateChange>,
}

/// A pipeline, and an attack unless those of a pipeline are pooled.
type Part<'a> = (&'a str, Option<&'a str>);

impl Runs {
    /// The number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The run at a place.
    pub fn get(&self, at: usize) -> Option<Run> {
        self.runs.get(at).map(|packed| self.unpack(packed))
    }

    /// The runs in their order.
    pub fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter().map(|packed| self.unpack(packed))
    }

    /// Adds a run.
    pub(crate) fn push(&mut self, run: Run) {
        let Run { injected, steps, changes, .. } = run;
        let whole = !(injected.is_empty() && steps.is_empty() && changes.is_empty());
        let names = &mut self.names;
        let mut name = |text: Option<String>| text.map(|text| names.number(&text));
        let (goal, attack, surface) = (name(run.goal), name(run.attack), name(run.surface));
        let (defence, split, error) = (name(run.defence), name(run.split), name(run.error));
        self.runs.push(Packed {
            pipeline: self.names.number(&run.pipeline),
            suite: self.names.number(&run.suite),
            task: self.names.number(&run.task),
            goal,
            attack,
            surface,
            at_call: run.at_call,
            defence,
            split,
            error,
            delivered: run.delivered,
            success: run.success,
            utility: run.utility,
            agentdojo: run.agentdojo,
            attempted: run.attempted,
            refused: run.refused,
            calls: run.calls,
            blocked: run.blocked,
            transcript: whole.then(|| Box::new(Transcript { injected, steps, changes })),
        });
    }

    /// Removes all runs; names are kept.
    pub(crate) fn take(&mut self) -> Vec<Run> {
        let all = self.iter().collect();
        self.runs.clear();
        all
    }

    /// Drops all but the first `most` transcripts of each pipeline and attack.
    pub(crate) fn trim_transcripts(&mut self, most: usize) {
        let mut counts: BTreeMap<(Name, Option<Name>), usize> = BTreeMap::new();
        for run in self.runs.iter_mut().filter(|run| run.transcript.is_some()) {
            let count = counts.entry((run.pipeline, run.attack)).or_default();
            *count += 1;
            if *count > most {
                run.transcript = None;
            }
        }
    }

    /// Sorts by pipeline, attack and id. Stable, so that repetitions stay in their order.
    pub(crate) fn sort(&mut self) {
        let Runs { names, runs } = self;
        let text = |name: Option<Name>| name.map(|name| names.text(name));
        runs.sort_by(|one, other| {
            let key = |run: &Packed| {
                let Packed { pipeline, attack, suite, task, goal, .. } = run;
                [Some(*pipeline), *attack, Some(*suite), Some(*task), *goal].map(text)
            };
            key(one).cmp(&key(other))
        });
    }

    /// The places of the runs of each pipeline, and of each attack unless `pooled`. Runs without an
    /// attack come last in each part of their pipeline.
    pub fn parts(&self, pooled: bool) -> Vec<Vec<usize>> {
        let mut parts: BTreeMap<Part<'_>, Vec<usize>> = BTreeMap::new();
        let mut benign: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, run) in self.runs.iter().enumerate() {
            let pipeline = self.names.text(run.pipeline);
            if run.goal.is_none() && run.attack.is_none() {
                benign.entry(pipeline).or_default().push(at);
                continue;
            }
            let attack = run.attack.filter(|_| !pooled).map(|attack| self.names.text(attack));
            parts.entry((pipeline, attack)).or_default().push(at);
        }
        for pipeline in benign.keys() {
            if parts
                .range((*pipeline, None)..)
                .next()
                .is_none_or(|((known, _), _)| known != pipeline)
            {
                parts.insert((pipeline, None), Vec::new());
            }
        }
        let join = |((pipeline, _), mut part): (Part<'_>, Vec<usize>)| {
            part.extend(benign.get(pipeline).into_iter().flatten());
            part
        };
        parts.into_iter().map(join).collect()
    }

    fn unpack(&self, packed: &Packed) -> Run {
        let text = |name: Name| self.names.text(name).to_owned();
        let Transcript { injected, steps, changes } = match &packed.transcript {
            Some(transcript) => (**transcript).clone(),
            None => Transcript { injected: Vec::new(), steps: Vec::new(), changes: Vec::new() },
        };
        Run {
            pipeline: text(packed.pipeline),
            suite: text(packed.suite),
            task: text(packed.task),
            goal: packed.goal.map(text),
            attack: packed.attack.map(text),
            surface: packed.surface.map(text),
            at_call: packed.at_call,
            defence: packed.defence.map(text),
            split: packed.split.map(text),
            error: packed.error.map(text),
            delivered: packed.delivered,
            attempted: packed.attempted,
            refused: packed.refused,
            success: packed.success,
            utility: packed.utility,
            calls: packed.calls,
            blocked: packed.blocked,
            injected,
            steps,
            changes,
            agentdojo: packed.agentdojo,
        }
    }
}

impl FromIterator<Run> for Runs {
    fn from_iter<I: IntoIterator<Item = Run>>(runs: I) -> Runs {
        let mut all = Runs::default();
        runs.into_iter().for_each(|run| all.push(run));
        all
    }
}

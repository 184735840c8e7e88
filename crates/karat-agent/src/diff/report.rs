//! Two runs of the same tasks as a report, so that every output that shows a check shows them too.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::aggregate::{self, Kind, Spec};
use karat_core::dataset::Digest;
use karat_core::provenance::Stopwatch;
use karat_core::report::{self, DatasetRef, Evaluation, Item, ItemError, Report, SystemRef};

use super::{Diff, TaskDiff};

/// How alike the calls are.
pub const SIMILARITY: &str = "calls.similarity";

/// How many tasks that only one run has are named.
const NAMED: usize = 5;

impl Diff {
    /// The report on the later run against the earlier one.
    pub fn report(&self, before: &Path, after: &Path, stopwatch: &Stopwatch) -> Report {
        let items: Vec<Item> = self
            .items
            .iter()
            .map(|task| Item {
                id: task.id.clone(),
                group: None,
                tags: BTreeMap::new(),
                metrics: BTreeMap::from([(SIMILARITY.to_owned(), task.similarity)]),
                per_run: Vec::new(),
                observed: serde_json::to_value(task).unwrap_or_default(),
                error: not_aligned(task),
            })
            .collect();
        let refs: Vec<&Item> = items.iter().collect();
        let spec = Spec { id: SIMILARITY, kind: Kind::Mean };
        let ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        let named = |path: &Path| path.display().to_string();
        Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Agent,
            name: "diff".to_owned(),
            dataset: DatasetRef {
                id: "tasks of the earlier run".to_owned(),
                version: "traces".to_owned(),
                digest: Digest::of(ids.join("\n").as_bytes()).to_string(),
            },
            system: SystemRef {
                kind: "file".to_owned(),
                name: named(after),
                version: None,
                settings: BTreeMap::from([("before".to_owned(), named(before))]),
            },
            runs: 1,
            seed: 0,
            conventions: self.conventions(),
            metrics: vec![aggregate::measure(spec, &refs, 1, 0)],
            slices: Vec::new(),
            items,
            controls: Vec::new(),
            comparison: None,
            gate: None,
            warnings: self.unpaired(),
            environment: stopwatch.environment(&[], None),
        }
    }

    /// The tasks whose similarity is not known.
    pub fn not_compared(&self) -> impl Iterator<Item = &TaskDiff> {
        self.items.iter().filter(|task| task.not_compared.is_some())
    }

    fn conventions(&self) -> BTreeMap<String, String> {
        let weights: Vec<String> =
            self.weights.iter().map(|(name, weight)| format!("{name} {weight}")).collect();
        BTreeMap::from([
            ("weights".to_owned(), weights.join(", ")),
            ("gone".to_owned(), "a task that the later run does not have counts 0".to_owned()),
            ("pairs".to_owned(), "by task, model, setting, turns and run".to_owned()),
        ])
    }

    fn unpaired(&self) -> Vec<String> {
        [("earlier", &self.only_before), ("later", &self.only_after)]
            .into_iter()
            .filter(|(_, ids)| !ids.is_empty())
            .map(|(which, ids)| {
                let first = ids[..ids.len().min(NAMED)].join(", ");
                let more = if ids.len() > NAMED { ", …" } else { "" };
                format!("{} tasks are in the {which} run alone: {first}{more}", ids.len())
            })
            .collect()
    }
}

/// Why there is nothing to see side by side.
fn not_aligned(task: &TaskDiff) -> Option<ItemError> {
    let error = |class: &str, message: String| ItemError { class: class.to_owned(), message };
    match &task.not_compared {
        Some(why) => Some(error("not_compared", why.clone())),
        None if task.lost => {
            Some(error("lost", "the later run does not have this task".to_owned()))
        }
        None => None,
    }
}

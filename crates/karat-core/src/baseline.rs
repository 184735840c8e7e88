//! Committed reference scores.
//!
//! A baseline is a report without what was observed: the metrics, and every item's scores, so that a
//! later run can be compared item by item. It is written on purpose (`karat baseline update`), never
//! on the side, with one item on a line so that a review shows what changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use karat_metrics::{MetricId, stats};
use serde::{Deserialize, Serialize};

use crate::aggregate::is_near;
use crate::dataset::{Contents, Fingerprint};
use crate::observed;
use crate::report::{self, DatasetRef, Evaluation, Kind, Report, Scores, SystemRef};
use karat_io::input::{self, InputError, WriteError};

/// The name of the baseline format.
pub const SCHEMA: &str = "karat.baseline/2";

/// The earlier format, which did not store the kind; still read.
pub(crate) const SCHEMA_1: &str = "karat.baseline/1";

/// Reference scores of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The kind of the report.
    pub kind: Option<Kind>,
    /// The evaluation.
    pub evaluation: Evaluation,
    /// The entry.
    pub name: String,
    /// The data.
    pub dataset: DatasetRef,
    /// The content of that data, part by part, where other versions of it can be compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
    /// The system.
    pub system: SystemRef,
    /// The number of runs.
    pub runs: u32,
    /// The seed.
    pub seed: u64,
    /// The headline metrics.
    pub metrics: Vec<Reference>,
    /// The metrics over parts.
    #[serde(default)]
    pub slices: Vec<SliceReference>,
    /// Every item's scores.
    pub items: Vec<ItemReference>,
}

/// One metric of a baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The metric's id.
    pub id: MetricId,
    /// Its value.
    pub value: Option<f64>,
    /// The number of items.
    pub n: u64,
    /// One value for each run, where there was more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_run: Vec<Option<f64>>,
}

/// The metrics over one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceReference {
    /// The property.
    pub by: String,
    /// The value of it.
    pub value: String,
    /// The metrics.
    pub metrics: Vec<Reference>,
}

/// One item's scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemReference {
    /// The item's id.
    pub id: String,
    /// Its scores.
    pub metrics: Scores,
}

impl Baseline {
    /// Makes a baseline of a report.
    pub fn from_report(report: &Report) -> Baseline {
        let references = |metrics: &[report::Measured]| {
            metrics
                .iter()
                .map(|metric| Reference {
                    id: metric.id.clone(),
                    value: metric.value,
                    n: metric.n,
                    per_run: if report.runs > 1 { metric.per_run.clone() } else { Vec::new() },
                })
                .collect()
        };
        Baseline {
            schema: SCHEMA.to_owned(),
            kind: Some(report.kind.clone()),
            evaluation: report.evaluation.clone(),
            name: report.name.clone(),
            dataset: report.dataset.clone(),
            contents: report.contents.clone(),
            system: report.system.clone(),
            runs: report.runs,
            seed: report.seed,
            metrics: references(&report.metrics),
            slices: report
                .slices
                .iter()
                .map(|slice| SliceReference {
                    by: slice.by.clone(),
                    value: slice.value.clone(),
                    metrics: references(&slice.metrics),
                })
                .collect(),
            items: report
                .items
                .iter()
                .map(|item| ItemReference { id: item.id.clone(), metrics: item.metrics.clone() })
                .collect(),
        }
    }

    /// Reads a baseline file.
    pub fn load(path: &Path) -> Result<Baseline, InputError> {
        Baseline::parse(path, &input::read_text(path, &input::Limits::default())?)
    }

    /// The pure half of [`Baseline::load`].
    pub fn parse(path: &Path, text: &str) -> Result<Baseline, InputError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = input::parse_json_text(path, text)?;
        input::check_schema(path, Some(&head.schema), SCHEMA)?;
        let mut baseline: Baseline = input::parse_json_text(path, text)?;
        if baseline.schema == SCHEMA_1 {
            baseline.kind = Some(observed::kind_of_version_1(&baseline.evaluation, &[]));
        }
        baseline.schema = SCHEMA.to_owned();
        let twice = |place: &str, names: Vec<String>| match first_twice(names) {
            Some(name) => {
                Err(InputError::invalid(path, name, format!("is listed twice in {place}")))
            }
            None => Ok(()),
        };
        let ids =
            |metrics: &[Reference]| metrics.iter().map(|metric| metric.id.to_string()).collect();
        let key = |slice: &SliceReference| format!("{}={}", slice.by, slice.value);
        twice("`items`", baseline.items.iter().map(|item| item.id.clone()).collect())?;
        twice("`metrics`", ids(&baseline.metrics))?;
        twice("`slices`", baseline.slices.iter().map(key).collect())?;
        for slice in &baseline.slices {
            twice(&format!("the metrics of slice {}", key(slice)), ids(&slice.metrics))?;
        }
        match baseline.contradiction() {
            Some((id, message)) => Err(InputError::invalid(path, id, message)),
            None => Ok(baseline),
        }
    }

    /// The first metric whose value is not that of the items, as in a file that was merged badly. Only a
    /// ranking's metrics are all means over items.
    fn contradiction(&self) -> Option<(MetricId, String)> {
        if self.kind != Some(Kind::Ranking) {
            return None;
        }
        self.metrics.iter().find_map(|metric| {
            let scores = self.items.iter().filter_map(|item| *item.metrics.get(&metric.id)?);
            let mean = stats::mean(&scores.collect::<Vec<f64>>()).ok();
            let same = match (metric.value, mean) {
                (Some(value), Some(mean)) => is_near(value, mean),
                (value, mean) => value.is_none() && mean.is_none(),
            };
            let text = |value: Option<f64>| value.map_or("null".to_owned(), |v| format!("{v:.4}"));
            let message = format!(
                "the value {} is not the mean of its items, {}: the file was edited or merged \
                 wrongly; record it again with `karat baseline update`",
                text(metric.value),
                text(mean)
            );
            (!same).then(|| (metric.id.clone(), message))
        })
    }

    /// The file's text: indented, but with each metric and each item on one line.
    pub fn to_text(&self) -> String {
        let mut text = String::from("{\n");
        let _ = writeln!(text, "  \"schema\": {},", line(&self.schema));
        let _ = writeln!(text, "  \"kind\": {},", line(&self.kind));
        let _ = writeln!(text, "  \"evaluation\": {},", line(&self.evaluation));
        let _ = writeln!(text, "  \"name\": {},", line(&self.name));
        let _ = writeln!(text, "  \"dataset\": {},", line(&self.dataset));
        if let Some(Contents { corpus, items }) = &self.contents {
            let _ = writeln!(text, "  \"contents\": {{");
            let _ = writeln!(text, "    \"corpus\": {{{}\n    }},", parts(corpus));
            let _ = writeln!(text, "    \"items\": {{{}\n    }}\n  }},", parts(items));
        }
        let _ = writeln!(text, "  \"system\": {},", line(&self.system));
        let _ = writeln!(text, "  \"runs\": {},", self.runs);
        let _ = writeln!(text, "  \"seed\": {},", self.seed);
        let _ = writeln!(text, "  \"metrics\": [{}\n  ],", lines(&self.metrics));
        let _ = writeln!(text, "  \"slices\": [{}\n  ],", lines(&self.slices));
        let _ = writeln!(text, "  \"items\": [{}\n  ]", lines(&self.items));
        text.push_str("}\n");
        text
    }

    /// Writes the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), WriteError> {
        input::write_atomic(path, self.to_text().as_bytes())
    }

    /// Checks that the baseline is of the entry with this name.
    ///
    /// # Errors
    /// If it is of another one.
    pub(crate) fn belongs_to(&self, path: &Path, name: &str) -> Result<(), InputError> {
        if self.name == name {
            return Ok(());
        }
        let message = format!("this baseline belongs to {:?}, not {name:?}", self.name);
        Err(InputError::invalid(path, "name", message))
    }

    /// A headline metric.
    pub(crate) fn metric(&self, id: &str) -> Option<&Reference> {
        self.metrics.iter().find(|metric| metric.id == id)
    }

    /// A metric over a part.
    pub(crate) fn slice_metric(&self, by: &str, value: &str, id: &str) -> Option<&Reference> {
        self.slices
            .iter()
            .find(|slice| slice.by == by && slice.value == value)
            .and_then(|slice| slice.metrics.iter().find(|metric| metric.id == id))
    }
}

/// The first name, in their order, that another one equals.
fn first_twice(mut names: Vec<String>) -> Option<String> {
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

fn parts(parts: &BTreeMap<String, Fingerprint>) -> String {
    let row = |(id, part)| format!("\n      {}: {}", line(id), line(part));
    parts.iter().map(row).collect::<Vec<_>>().join(",")
}

fn lines<T: Serialize>(values: &[T]) -> String {
    let rows: Vec<String> = values.iter().map(|value| format!("\n    {}", line(value))).collect();
    rows.join(",")
}

/// One of our types as compact JSON; none of them holds what JSON cannot.
fn line<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

//! The report: one JSON shape for every evaluation.
//!
//! Its JSON Schema is generated from these types (docs/report.schema.json). Everything in a report
//! is a pure function of dataset, system answers, settings and seed, except [`Environment`]: times,
//! versions and latencies live there and nowhere else, so two runs of the same thing differ in that
//! block alone.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use karat_io::input::{self, InputError};
use karat_metrics::MetricId;
use karat_metrics::stats::{self, ClusteredRate};

use crate::dataset::{Contents, DataChange};
pub use crate::kind::{Evaluation, Kind};
use crate::observed::{self, Observed};
pub use crate::property::Property;
use crate::standings::Leaderboard;

/// The name of this report format; the number rises when a reader of the old one would be misled.
pub const SCHEMA: &str = "karat.report/2";

/// The earlier format, which did not store the kind; still read.
pub(crate) const SCHEMA_1: &str = "karat.report/1";

/// The convention that holds the version which a corpus gives itself.
pub const CORPUS_VERSION: &str = "corpus version";
/// The convention that holds the version of a golden set.
pub const GOLDEN_VERSION: &str = "golden version";

/// The name of the document that `karat check --json` prints: several reports and one verdict.
pub const CHECK_SCHEMA: &str = "karat.check/1";

/// The outcome of one evaluation of one system on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Always `karat.report/2` here.
    pub schema: String,
    /// The kind of its items and observations.
    #[serde(default = "unknown_kind")]
    pub kind: Kind,
    /// The evaluation.
    pub evaluation: Evaluation,
    /// The name that the project file gives this entry; unique within its evaluation.
    pub name: String,
    /// The data.
    pub dataset: DatasetRef,
    /// The content of the data, part by part, where scores on other versions of it can be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
    /// The measured system.
    pub system: SystemRef,
    /// The number of times each item was asked.
    pub runs: u32,
    /// The seed of everything random: bootstrap, permutations, shuffled controls.
    pub seed: u64,
    /// The rules behind the numbers: tie rule, gain, missing answers, interval method.
    #[serde(default)]
    pub conventions: BTreeMap<String, String>,
    /// The headline metrics.
    pub metrics: Vec<Measured>,
    /// The same metrics over parts of the items.
    #[serde(default)]
    pub slices: Vec<Slice>,
    /// The items with their observations and scores, sorted by id.
    #[serde(default)]
    pub items: Vec<Item>,
    /// The proofs that the harness can fail.
    #[serde(default)]
    pub controls: Vec<Control>,
    /// The paired comparison with the baseline, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The decision of the gate, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Remarks for a careful reader.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Times, versions and latencies: the only part that differs between equal runs.
    pub environment: Environment,
}

/// The dataset that was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DatasetRef {
    /// The dataset's name, such as `tools`.
    pub id: String,
    /// Its version, such as `v1`.
    pub version: String,
    /// The digest over all of its files, or over their content, `sha256:…`.
    pub digest: String,
}

/// The system that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemRef {
    /// The kind of adapter: `builtin`, `command`, `http`, `mcp`, `file`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its version, if it reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The decision rule and settings that are part of what was measured, without secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl SystemRef {
    /// Its kind and name, once where they are the same.
    #[must_use]
    pub fn title(&self) -> String {
        let SystemRef { kind, name, .. } = self;
        if kind == name { name.clone() } else { format!("{kind} {name}") }
    }
}

/// The direction in which a metric is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

impl From<karat_metrics::registry::Better> for Better {
    fn from(better: karat_metrics::registry::Better) -> Self {
        match better {
            karat_metrics::registry::Better::Higher => Better::Higher,
            karat_metrics::registry::Better::Lower => Better::Lower,
        }
    }
}

/// One metric with its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// The metric's id, as listed by `karat metrics`.
    pub id: MetricId,
    /// The value; null where it is undefined, and then `undefined` says why.
    pub value: Option<f64>,
    /// The number of items.
    pub n: u64,
    /// The direction that is better.
    pub better: Better,
    /// One value for each run.
    #[serde(default)]
    pub per_run: Vec<Option<f64>>,
    /// The interval of the value.
    #[serde(default)]
    pub interval: Option<Interval>,
    /// The counts behind a rate: what a ceiling or floor is certified from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// The reason why there is no value.
    #[serde(default)]
    pub undefined: Option<String>,
    /// Items on which the metric is undefined; they are not in `n` nor in the value.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

fn unknown_kind() -> Kind {
    Kind::Other("".into())
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The confidence level of every interval in a report.
pub const LEVEL: f64 = 0.95;

/// A confidence interval and how it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level, such as 0.95.
    pub level: f64,
    /// `wilson`, `wilson_clustered`, `clopper_pearson`, `bootstrap`, `bootstrap_clustered`, `t`, `t_clustered`.
    pub method: String,
}

impl Interval {
    /// An interval at the [level](LEVEL) of every report.
    #[must_use]
    pub fn new(found: stats::Interval, method: &str) -> Interval {
        let stats::Interval { low, high } = found;
        Interval { low, high, level: LEVEL, method: method.to_owned() }
    }

    /// Returns whether it has a width, beyond rounding. Resampling equal values gives none, which would claim
    /// certainty.
    #[must_use]
    pub fn has_width(&self) -> bool {
        self.high - self.low > 1e-12
    }
}

/// Hits out of a number of trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// The number of times it happened.
    pub hits: u64,
    /// The total.
    pub of: u64,
    /// The groups of trials that succeed or fail together; absent where trials were taken as
    /// independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
}

/// The groups that trials come in, and what that leaves of their number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Groups {
    /// The number of groups.
    pub number: u64,
    /// The number of independent trials that would say as much: trials over design effect.
    pub effective: f64,
    /// The degrees of freedom of that estimate.
    pub freedom: f64,
}

impl Count {
    /// Hits out of independent trials.
    #[must_use]
    pub fn independent(hits: u64, of: u64) -> Count {
        Count { hits, of, groups: None }
    }

    /// The rate with its groups, where there are any.
    #[must_use]
    pub(crate) fn clustered(&self) -> Option<ClusteredRate> {
        let &Count { hits, of, groups: Some(Groups { number, effective, freedom }) } = self else {
            return None;
        };
        Some(ClusteredRate { hits, of, clusters: number, effective, freedom })
    }
}

/// The metrics over a part of the items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// The property by which the items were divided, such as `kind`.
    pub by: String,
    /// The value of that property, such as `paraphrase`.
    pub value: String,
    /// The metrics over those items.
    pub metrics: Vec<Measured>,
}

/// The scores of one item by metric; null where a metric is undefined on it.
pub type Scores = BTreeMap<MetricId, Option<f64>>;

/// One item of the dataset, with its observation and its scores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// The item's id in the dataset.
    pub id: String,
    /// Items of one group are not independent (they share a server); intervals respect it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The properties by which slices are made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The scores, averaged over the runs; null where undefined on this item.
    pub metrics: Scores,
    /// The scores of each run, where there was more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_run: Vec<Scores>,
    /// The observation in the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The failure, if the item was not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}

/// A question that the system did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemError {
    /// The class of the failure.
    pub class: String,
    /// A description of the failure.
    pub message: String,
}

/// A system of known quality on the same data: where it lands proves that the harness works.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// The control, such as `oracle` or `descriptions-removed`.
    pub name: String,
    /// The expected result, as text.
    pub expected: String,
    /// The place where it landed.
    pub metrics: Vec<Measured>,
    /// True if the result is as expected.
    pub ok: bool,
}

/// The paired comparison of a report with a baseline or another report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The other side, as text.
    pub against: String,
    /// The way the data differs, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataChange>,
    /// One entry for each metric that both sides have.
    pub deltas: Vec<Delta>,
    /// The metrics that both sides have and that cannot be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<NotCompared>,
    /// The differences of system, runs and seed, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The earlier number of runs, if it is another one now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_before: Option<u32>,
    /// The earlier scores of items that moved, where they differ from those now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub before: BTreeMap<String, Scores>,
}

/// Metrics that were measured in different ways before and now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCompared {
    /// Their ids.
    pub metrics: Vec<MetricId>,
    /// The reason.
    pub reason: String,
}

/// The way one metric moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// The metric's id.
    pub metric: MetricId,
    /// The slice it was taken over, as `by=value`; absent for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The earlier value.
    pub before: Option<f64>,
    /// The present value.
    pub after: Option<f64>,
    /// The amount it moved: over the items scored both times where the value is the mean of its items'
    /// scores, otherwise `after - before`.
    pub delta: Option<f64>,
    /// The direction that is better.
    pub better: Better,
    /// The interval of `delta`, where the value is the mean of its items' scores.
    #[serde(default)]
    pub interval: Option<Interval>,
    /// The reason for which there is no interval of such a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<String>,
    /// The two-sided p-value of the paired test, likewise.
    #[serde(default)]
    pub p_value: Option<f64>,
    /// The same after Holm's correction over all deltas of this comparison.
    #[serde(default)]
    pub p_holm: Option<f64>,
    /// The test: `sign_flip_exact`, `sign_flip_seeded` (both over groups where items share one),
    /// `mcnemar_exact`.
    #[serde(default)]
    pub test: Option<String>,
    /// The number of pairs.
    pub pairs: u64,
    /// Items that got better, by id.
    pub improved: Vec<String>,
    /// Items that got worse, by id.
    pub worsened: Vec<String>,
    /// Items that no longer have a score, by id; they are in no pair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Items that had no score before, by id; they are in no pair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gained: Vec<String>,
}

/// The decision of the gate, with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The worst of its checks.
    pub verdict: Verdict,
    /// Every check that was made.
    pub checks: Vec<Check>,
}

/// The three verdicts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The measurement holds.
    Pass,
    /// The data cannot decide.
    Inconclusive,
    /// The measurement got worse, or a limit is broken.
    Fail,
}

impl Verdict {
    /// The name as used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Fail => "fail",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// One check of the gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The metric, or the control or slice that was checked.
    pub metric: String,
    /// The slice it was taken over, as `by=value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// `max_drop`, `max_rise`, `min`, `max`, `protected`, `control`.
    pub rule: String,
    /// The limit of the rule.
    pub threshold: Option<f64>,
    /// The value that was found.
    pub value: Option<f64>,
    /// The value in the baseline.
    #[serde(default)]
    pub baseline: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason, in one sentence.
    pub reason: String,
    /// The items behind a failure, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
}

impl Check {
    /// A check without a slice, values and items.
    #[must_use]
    pub fn of(metric: &str, rule: &str, verdict: Verdict, reason: String) -> Check {
        Check {
            metric: metric.to_owned(),
            slice: None,
            rule: rule.to_owned(),
            threshold: None,
            value: None,
            baseline: None,
            verdict,
            reason,
            items: Vec::new(),
        }
    }
}

/// Everything that may differ between two equal runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Karat's version.
    pub karat: String,
    /// Operating system and processor.
    pub os: String,
    /// When the run started, in UTC.
    pub started: String,
    /// The time it took.
    pub duration_ms: u64,
    /// The time the system took to answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Latency>,
    /// The same times by size, for drawing: each bin reaches 9 % further than the one before, and
    /// empty ones are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_bins: Vec<Bin>,
    /// The place where the project stood: commit and whether files were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The isolation that was in force, as text; empty if there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolation: Vec<String>,
}

/// Quantiles of measured times (each is a value that was measured: `inverted_cdf`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The number that were measured.
    pub n: u64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

/// The number of times that were of about one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bin {
    /// The longest time that belongs here, in milliseconds.
    pub up_to: f64,
    /// The number of do.
    pub count: u64,
}

/// The document of `karat check --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Always `karat.check/1` here.
    pub schema: String,
    /// The project and the place where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The worst verdict of the reports; null where an entry could not be measured.
    pub verdict: Option<Verdict>,
    /// One report for each entry that was measured.
    pub reports: Vec<Report>,
    /// Entries that could not be measured.
    #[serde(default)]
    pub not_measured: Vec<NotMeasured>,
    /// The systems of one benchmark, ranked and compared in pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaderboards: Vec<Leaderboard>,
}

/// An entry that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// The evaluation.
    pub evaluation: Evaluation,
    /// The entry.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// The project of a check, and the place where it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The name that the project gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit, with `+changes` where the work tree differed from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The first line of the commit's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The address of the CI job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

impl Item {
    /// The value of a property; none if the item does not have it.
    pub fn tag(&self, property: Property) -> Option<&str> {
        self.tags.get(property.name()).map(String::as_str)
    }
}

impl Report {
    /// The headline metric with this id.
    pub fn metric(&self, id: &str) -> Option<&Measured> {
        self.metrics.iter().find(|metric| metric.id == id)
    }

    /// The metric with this id over a slice.
    pub fn slice_metric(&self, by: &str, value: &str, id: &str) -> Option<&Measured> {
        self.slices
            .iter()
            .find(|slice| slice.by == by && slice.value == value)
            .and_then(|slice| slice.metrics.iter().find(|metric| metric.id == id))
    }

    /// The same measurement with these scores alone, to be compared again. What was concluded from the
    /// others is left out.
    pub(crate) fn with_scores(
        &self,
        metrics: Vec<Measured>,
        slices: Vec<Slice>,
        items: Vec<Item>,
    ) -> Report {
        Report {
            schema: self.schema.clone(),
            kind: self.kind.clone(),
            evaluation: self.evaluation.clone(),
            name: self.name.clone(),
            dataset: self.dataset.clone(),
            contents: None,
            system: self.system.clone(),
            runs: self.runs,
            seed: self.seed,
            conventions: BTreeMap::new(),
            metrics,
            slices,
            items,
            controls: Vec::new(),
            comparison: None,
            gate: None,
            warnings: Vec::new(),
            environment: self.environment.clone(),
        }
    }

    /// Reads a report; a check document with exactly one report is taken as that report.
    pub fn load(path: &Path) -> Result<Report, InputError> {
        let mut reports = load_reports(path)?;
        match (reports.pop(), reports.is_empty()) {
            (Some(report), true) => Ok(report),
            (None, _) => Err(InputError::invalid(path, "reports", "contains no report")),
            (Some(_), false) => Err(InputError::invalid(
                path,
                "reports",
                "contains several reports; use a file with one, or compare two files of `karat check`",
            )),
        }
    }
}

/// Reads the reports in a file: one report, or all of a check document.
pub fn load_reports(path: &Path) -> Result<Vec<Report>, InputError> {
    let text = input::read_text(path, &input::Limits::default())?;
    parse_reports(path, &text)
}

/// The pure half of [`load_reports`].
pub fn parse_reports(path: &Path, text: &str) -> Result<Vec<Report>, InputError> {
    Ok(parse_check(path, text)?.reports)
}

/// Reads a check document; a report by itself becomes a check of one entry. Reports of version 1 are
/// brought up to date.
pub fn parse_check(path: &Path, text: &str) -> Result<CheckReport, InputError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    if !text.trim_start().starts_with('{') {
        let message = "not a report; use a report.json from `karat check`";
        return Err(InputError::invalid(path, "report", message));
    }
    // The whole document is inspected below; here it is only if something is wrong with it.
    let head: Head = serde_json::from_str(text).or_else(|_| input::parse_json_text(path, text))?;
    if head.schema.starts_with("karat.baseline/") {
        let message =
            "this is a baseline; `karat check` compares with it, and `karat compare` takes reports";
        return Err(InputError::invalid(path, "report", message));
    }
    let mut check: CheckReport = if head.schema.starts_with("karat.check/") {
        input::check_schema(path, Some(&head.schema), CHECK_SCHEMA)?;
        input::parse_json_text(path, text)?
    } else {
        if head.schema != SCHEMA_1 {
            input::check_schema(path, Some(&head.schema), SCHEMA)?;
        }
        CheckReport::of(vec![input::parse_json_text(path, text)?])
    };
    for report in &mut check.reports {
        if report.schema == SCHEMA_1 {
            report.upgrade();
        }
        input::check_schema(path, Some(&report.schema), SCHEMA)?;
    }
    Ok(check)
}

impl CheckReport {
    /// A check of these reports alone; its verdict is the worst of theirs.
    pub fn of(reports: Vec<Report>) -> CheckReport {
        let gates = reports.iter().filter_map(|report| report.gate.as_ref());
        CheckReport {
            schema: CHECK_SCHEMA.to_owned(),
            source: None,
            verdict: gates.map(|gate| gate.verdict).max(),
            reports,
            not_measured: Vec::new(),
            leaderboards: Vec::new(),
        }
    }
}

impl Report {
    /// Brings a report of version 1 up to date: finds its kind and types its observations. An
    /// observation that fits no type is kept as it is.
    fn upgrade(&mut self) {
        let untyped: Vec<_> = self
            .items
            .iter()
            .filter_map(|item| match &item.observed {
                Some(Observed::Other(other)) => Some(&other.fields),
                _ => None,
            })
            .collect();
        self.kind = observed::kind_of_version_1(&self.evaluation, &untyped);
        for item in &mut self.items {
            if let Some(Observed::Other(other)) = &mut item.observed {
                let fields = std::mem::take(&mut other.fields);
                item.observed = match Observed::from_fields(self.kind.clone(), fields.clone()) {
                    _ if fields.is_empty() => None,
                    Ok(typed) => Some(typed),
                    Err(_) => Some(Observed::Other(observed::Other {
                        kind: Kind::Other("".into()),
                        fields,
                    })),
                };
            }
        }
        self.schema = SCHEMA.to_owned();
    }
}

/// The JSON Schema of [`Report`], as it is checked in under docs/.
pub fn report_schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

/// The JSON Schema of [`CheckReport`].
pub fn check_schema() -> serde_json::Value {
    schemars::schema_for!(CheckReport).to_value()
}

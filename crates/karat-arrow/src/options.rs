//! The kinds of rows, and the settings of scoring them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use karat_agent::CallMetric;
use karat_agent::scores::Own;
use karat_detection::aggregate_metrics::{FROM_COUNTS, from_scores};
use karat_detection::score::RATES;
use karat_metrics::MetricId;
use karat_metrics::ranking::Measure;
use karat_metrics::registry::MetricKind;
use karat_retrieval::score::headline_ids;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The groups that a partial result keeps sums for, unless more are asked for.
pub(crate) const MAX_GROUPS: usize = 100_000;
/// The distinct scores of verdicts that a partial result counts, unless more are asked for.
pub(crate) const MAX_SCORES: usize = 1_000_000;
/// The most metrics that can be asked for, each at every cut-off.
const MAX_METRICS: usize = 10_000;
/// The most groups and scores that can be asked for.
const MAX: usize = 10_000_000;

/// The kind of the rows of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Runs of agents with their calls, as `karat agent score` takes them.
    Traces,
    /// Ranked ids with the relevant ones, as `karat retrieval score` takes them.
    Rankings,
    /// Verdicts with their labels, as `karat detection score` takes them.
    Verdicts,
}

impl Kind {
    /// The name in settings and schemas.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Traces => "traces",
            Kind::Rankings => "rankings",
            Kind::Verdicts => "verdicts",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Kind, Error> {
        [Kind::Traces, Kind::Rankings, Kind::Verdicts]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                Error::Options(format!("{name:?} is none of traces, rankings and verdicts"))
            })
    }
}

/// The settings of scoring. Partial results merge only if they were made with the same ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// The metrics by id; the usual ones of the kind if empty. `recall@k` is `recall` at each cut-off.
    pub metrics: Vec<String>,
    /// The cut-offs of metrics that are written with `@k`.
    pub cutoffs: Vec<u32>,
    /// The column that has the group of a row: rows of one group are not independent.
    pub group: String,
    /// The name of the report.
    pub name: String,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// The share of rows that may fail. With 0 the first one is an error.
    pub max_errors: f64,
    /// The most groups.
    pub max_groups: usize,
    /// The most distinct scores of verdicts; beyond them metrics of scores are undefined.
    pub max_scores: usize,
    /// Anything else that must be the same in all partial results, such as the digest of a tool list.
    pub context: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            metrics: Vec::new(),
            cutoffs: vec![1, 3, 5, 10],
            group: "group".to_owned(),
            name: "arrow".to_owned(),
            seed: 0,
            max_errors: 0.0,
            max_groups: MAX_GROUPS,
            max_scores: MAX_SCORES,
            context: String::new(),
        }
    }
}

/// A metric of a row, with what its average needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric {
    pub(crate) id: MetricId,
    /// True if rows either are or are not a hit.
    pub(crate) is_rate: bool,
    /// True if it is only in the report where a row has it.
    pub(crate) is_optional: bool,
}

impl Metric {
    fn of(id: MetricId) -> Metric {
        let is_rate = id.definition().is_some_and(|found| found.kind == MetricKind::Rate);
        Metric { is_rate, is_optional: is_optional(&id), id }
    }

    /// True if the value lies between 0 and 1.
    pub(crate) fn is_share(&self) -> bool {
        self.id.definition().is_some_and(|metric| metric.is_share())
    }
}

/// Scores that few sources have: where none does, the report does not mention them.
fn is_optional(id: &MetricId) -> bool {
    karat_agent::optional().any(|own| own.id() == *id)
}

/// The settings, checked, with the metrics that they mean.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    pub(crate) options: Options,
    /// The metrics of a row, in the order of the scored columns.
    pub(crate) metrics: Vec<Metric>,
    /// The metrics of the report, by id, where they are fewer than those of a row or computed from them.
    pub(crate) shown: Vec<MetricId>,
}

impl Plan {
    pub(crate) fn new(kind: Kind, options: Options) -> Result<Plan, Error> {
        let wrong = |message: &str| Err(Error::Options(message.to_owned()));
        if !(0.0..=1.0).contains(&options.max_errors) {
            return wrong("`max_errors` must be between 0 and 1");
        }
        if !(1..=MAX).contains(&options.max_groups) || !(1..=MAX).contains(&options.max_scores) {
            return wrong("`max_groups` and `max_scores` must be between 1 and 10000000");
        }
        if options.group.is_empty() {
            return wrong("`group` names a column; leave the column out where rows have no groups");
        }
        let asked = expanded(&options)?;
        let (metrics, shown) = match kind {
            Kind::Traces => of_traces(&asked)?,
            Kind::Rankings => of_rankings(&asked)?,
            Kind::Verdicts => of_verdicts(&asked)?,
        };
        Ok(Plan { kind, options, metrics, shown })
    }
}

/// The ids that were asked for, each once, with their cut-offs.
fn expanded(options: &Options) -> Result<Vec<String>, Error> {
    // The options of a partial result are those of a file.
    if options.metrics.len().saturating_mul(options.cutoffs.len().max(1)) > MAX_METRICS {
        let message = format!("`metrics` at all `cutoffs` must be at most {MAX_METRICS} metrics");
        return Err(Error::Options(message));
    }
    let mut ids = Vec::new();
    for id in &options.metrics {
        match id.strip_suffix("@k") {
            Some(_) if options.cutoffs.is_empty() => {
                return Err(Error::Options(format!("`{id}` needs `cutoffs`")));
            }
            Some(name) => ids.extend(options.cutoffs.iter().map(|k| format!("{name}@{k}"))),
            None => ids.push(id.clone()),
        }
    }
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    Ok(ids)
}

fn unknown(kind: Kind, id: &str, known: impl Iterator<Item = MetricId>) -> Error {
    let known: Vec<MetricId> = known.collect();
    let near = karat_io::input::nearest(id, known.iter().map(MetricId::as_str))
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Error::Options(format!("`{id}` is not a metric of {kind}{near}"))
}

type Metrics = (Vec<Metric>, Vec<MetricId>);

fn same(metrics: Vec<Metric>) -> Metrics {
    let shown = metrics.iter().map(|metric| metric.id.clone()).collect();
    (metrics, shown)
}

/// Karat's own scores of a trace and the usual ones of peers, in the order of the report.
fn of_traces(asked: &[String]) -> Result<Metrics, Error> {
    let usual = || {
        let peers: Vec<MetricId> = CallMetric::usual().iter().map(CallMetric::id).collect();
        let known = |id: &MetricId| Own::IDS.contains(id) || peers.contains(id);
        let rest = Own::IDS.iter().filter(|id| is_optional(id)).cloned();
        karat_agent::metrics().into_iter().filter(known).chain(rest).collect::<Vec<MetricId>>()
    };
    if asked.is_empty() {
        return Ok(same(usual().into_iter().map(Metric::of).collect()));
    }
    let mut metrics = Vec::new();
    for id in asked {
        match id.parse::<CallMetric>() {
            Ok(metric) => metrics.push(Metric::of(metric.id())),
            Err(_) => match Own::IDS.iter().find(|own| **own == *id) {
                Some(own) => metrics.push(Metric::of(own.clone())),
                None => return Err(unknown(Kind::Traces, id, usual().into_iter())),
            },
        }
    }
    Ok(same(metrics))
}

fn of_rankings(asked: &[String]) -> Result<Metrics, Error> {
    if asked.is_empty() {
        return Ok(same(headline_ids().map(Metric::of).collect()));
    }
    let measure = |id: &String| match id.parse::<Measure>() {
        Ok(measure) => Ok(Metric::of(measure.id())),
        Err(error) => Err(Error::Options(error.to_string())),
    };
    Ok(same(asked.iter().map(measure).collect::<Result<_, _>>()?))
}

/// Rows always carry the rates: everything else is computed from them and from the scores.
fn of_verdicts(asked: &[String]) -> Result<Metrics, Error> {
    let all: Vec<&MetricId> = RATES.iter().chain(&FROM_COUNTS).chain(from_scores()).collect();
    if let Some(id) = asked.iter().find(|id| !all.iter().any(|known| **known == **id)) {
        return Err(unknown(Kind::Verdicts, id, all.into_iter().cloned()));
    }
    let is_asked = |id: &&MetricId| asked.is_empty() || asked.iter().any(|a| **id == *a);
    let shown = all.into_iter().filter(is_asked).cloned().collect();
    Ok((RATES.iter().cloned().map(Metric::of).collect(), shown))
}

//! From answers to scored items, metrics and slices. Pure: no system is asked here.
//!
//! An attack carries `recall` (1 flagged, 0 missed), a benign entry `fpr` and `specificity`, a hard
//! negative `fpr_hard` as well, every entry `coverage`. So the shared averaging, comparison and gate
//! work on them. What is not a mean over entries (precision, F1, MCC, ROC AUC …) is computed from the
//! counts, with a bootstrap. An entry without a verdict carries no score, only its absence from the
//! coverage.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::aggregate;
use karat_core::journal::{Entry, Outcome};
use karat_core::observed::{DetectorFinding, Observed, VerdictOutcome, Verdicts};
use karat_core::report::{Item, ItemError, Measured, Property, Scores, Slice};
use karat_io::text::clip;
use karat_metrics::{MetricId, Undefined};

use crate::aggregate_metrics as compound;
use crate::answer::{Answer, Verdict};
use crate::dataset::{Dataset, Sample};
use crate::decision::{ANY, Decided, Decision, Judged, rank};

/// The rates, in the order of the report.
pub static RATES: [MetricId; 5] = [RECALL, FPR, FPR_HARD, SPECIFICITY, COVERAGE];

const RECALL: MetricId = MetricId::known("recall");
const FPR: MetricId = MetricId::known("fpr");
const FPR_HARD: MetricId = MetricId::known("fpr_hard");
const SPECIFICITY: MetricId = MetricId::known("specificity");
const COVERAGE: MetricId = MetricId::known("coverage");

/// The part of a text is shown with an item.
const SHOWN: usize = 2_000;
/// The most thresholds in the sweep.
const THRESHOLDS: usize = 12;

/// One entry and what was ruled on it, run by run.
struct Row<'a> {
    sample: &'a Sample,
    runs: Vec<Result<(Decided, &'a Answer), ItemError>>,
}

/// One detector's verdicts on all entries.
struct Column {
    name: String,
    /// For each entry, for each run: flagged or not, where there is a verdict.
    flags: Vec<Vec<Option<bool>>>,
    /// For each entry, for each run: the score, where there is a verdict.
    scores: Vec<Vec<Option<f64>>>,
    /// True if it, or one of those that it consists of, gives scores at all.
    scored: bool,
}

impl Column {
    /// Verdicts alone.
    fn unscored(name: String, flags: Vec<Vec<Option<bool>>>) -> Column {
        Column { name, scores: vec![Vec::new(); flags.len()], flags, scored: false }
    }
}

/// Everything that a report says about the answers.
pub struct Scored {
    /// The entries, in the order of the dataset.
    pub items: Vec<Item>,
    /// The headline metrics.
    pub metrics: Vec<Measured>,
    /// The same over parts, by detector, by tier, by agreement.
    pub slices: Vec<Slice>,
    /// The number of verdicts.
    pub verdicts: usize,
    /// The number of abstentions.
    pub unsupported: usize,
}

/// Scores the answers of all runs.
pub(crate) fn score(
    dataset: &Dataset,
    entries: &[Entry<Answer>],
    decision: &Decision,
    runs: u32,
    seed: u64,
) -> Scored {
    let rows = rows(dataset, entries, decision);
    let whole = whole_column(&rows, decision);
    let each = detector_columns(&rows, &whole.name);
    let mut items = bare_items(&rows, &whole);
    for (item, row) in items.iter_mut().zip(&rows) {
        item.tags = tags(row.sample);
        item.observed = Some(Observed::Verdicts(Box::new(observe(row))));
        item.error =
            row.runs.iter().find_map(|run| run.as_ref().err().cloned()).or_else(|| problem(row));
    }
    let counted = |wanted: fn(Verdict) -> bool| {
        let outcomes = rows.iter().flat_map(|row| row.runs.iter().flatten());
        outcomes.filter(|(decided, _)| wanted(decided.whole.outcome)).count()
    };
    let context = Context { rows: &rows, runs, seed };
    Scored {
        metrics: context.full(&items.iter().collect::<Vec<_>>(), &whole),
        slices: context.slices(&items, &whole, &each),
        verdicts: counted(|outcome| matches!(outcome, Verdict::Flag | Verdict::Pass)),
        unsupported: counted(|outcome| outcome == Verdict::Unsupported),
        items,
    }
}

/// The headline metrics alone, compound ones without intervals: what a control is judged by.
pub(crate) fn headline(
    dataset: &Dataset,
    entries: &[Entry<Answer>],
    decision: &Decision,
) -> Vec<Measured> {
    let rows = rows(dataset, entries, decision);
    let items = bare_items(&rows, &whole_column(&rows, decision));
    let refs: Vec<&Item> = items.iter().collect();
    let context = Context { rows: &rows, runs: 1, seed: 0 };
    let mut metrics = context.rates(&refs);
    metrics.extend(compound::measure(&refs, 1, 0, compound::Detail::Values));
    metrics
}

fn rows<'a>(
    dataset: &'a Dataset,
    entries: &'a [Entry<Answer>],
    decision: &Decision,
) -> Vec<Row<'a>> {
    let mut by_id: BTreeMap<&str, Vec<&Entry<Answer>>> = BTreeMap::new();
    for entry in entries {
        by_id.entry(&entry.id).or_default().push(entry);
    }
    dataset
        .samples
        .iter()
        .filter_map(|sample| {
            let runs = by_id.get(sample.id.as_str())?;
            let runs = runs
                .iter()
                .map(|entry| match &entry.outcome {
                    Outcome::Answer(answer) => Ok((decision.judge(answer), answer)),
                    Outcome::Failure { class, message } => {
                        Err(ItemError { class: class.clone(), message: message.clone() })
                    }
                })
                .collect();
            Some(Row { sample, runs })
        })
        .collect()
}

/// The reason why an answered entry has no verdict.
fn problem(row: &Row<'_>) -> Option<ItemError> {
    row.runs.iter().flatten().find_map(|(decided, _)| {
        (decided.whole.outcome == Verdict::Error).then(|| ItemError {
            class: "error".to_owned(),
            message: decided.whole.problem.clone().unwrap_or_default(),
        })
    })
}

fn column<'a>(
    rows: &'a [Row<'a>],
    name: String,
    pick: impl Fn(&'a Decided) -> Option<&'a Judged>,
) -> Column {
    let judged = |run: &'a Result<(Decided, &Answer), ItemError>| {
        run.as_ref().ok().and_then(|(decided, _)| pick(decided))
    };
    let flags = rows
        .iter()
        .map(|row| row.runs.iter().map(|run| judged(run).and_then(Judged::flagged)).collect())
        .collect();
    let scores = rows
        .iter()
        .map(|row| {
            let score = |run| judged(run).filter(|one| one.flagged().is_some())?.score;
            row.runs.iter().map(score).collect()
        })
        .collect::<Vec<Vec<Option<f64>>>>();
    let scored = scores.iter().flatten().any(Option::is_some);
    Column { name, flags, scores, scored }
}

fn whole_column(rows: &[Row<'_>], decision: &Decision) -> Column {
    let names: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.runs.iter().flatten())
        .map(|(decided, _)| decided.whole.detector.as_str())
        .collect();
    let name = match (decision.detectors.as_slice(), names.len()) {
        ([one], _) => one.clone(),
        (_, 1) => names.first().map_or_else(|| ANY.to_owned(), |name| (*name).to_owned()),
        _ => ANY.to_owned(),
    };
    let mut whole = column(rows, name, |decided| Some(&decided.whole));
    let mut rulings = rows.iter().flat_map(|row| row.runs.iter().flatten());
    whole.scored |= rulings.any(|(decided, _)| {
        let decides = |judged: &Judged| {
            decision.detectors.is_empty() || decision.detectors.contains(&judged.detector)
        };
        decided.each.iter().any(|judged| decides(judged) && judged.score.is_some())
    });
    whole
}

/// The detectors other than the whole, in the order in which answers name them.
fn detector_columns(rows: &[Row<'_>], whole: &str) -> Vec<Column> {
    let mut names: Vec<&str> = Vec::new();
    for (decided, _) in rows.iter().flat_map(|row| row.runs.iter().flatten()) {
        for judged in &decided.each {
            if judged.detector != whole && !names.contains(&judged.detector.as_str()) {
                names.push(&judged.detector);
            }
        }
    }
    names
        .into_iter()
        .map(|name| {
            column(rows, name.to_owned(), |decided| {
                decided.each.iter().find(|judged| judged.detector == name)
            })
        })
        .collect()
}

/// The scores of one verdict.
fn values(sample: &Sample, flagged: Option<bool>) -> Scores {
    let rate = |hit: bool| flagged.map(|flagged| f64::from(u8::from(flagged == hit)));
    let mut values = BTreeMap::from([(COVERAGE, Some(f64::from(u8::from(flagged.is_some()))))]);
    if sample.is_malicious() {
        values.insert(RECALL, rate(true));
    } else {
        values.insert(FPR, rate(true));
        values.insert(SPECIFICITY, rate(false));
        if sample.is_hard_negative() {
            values.insert(FPR_HARD, rate(true));
        }
    }
    values
}

/// Items with scores and nothing to show: what the averaging needs of any detector.
fn bare_items(rows: &[Row<'_>], column: &Column) -> Vec<Item> {
    rows.iter()
        .zip(&column.flags)
        .map(|(row, flags)| {
            let mut per_run: Vec<Scores> =
                flags.iter().map(|flag| values(row.sample, *flag)).collect();
            let ids: BTreeSet<MetricId> =
                per_run.iter().flat_map(|run| run.keys().cloned()).collect();
            let metrics = ids
                .into_iter()
                .map(|id| {
                    let defined: Vec<f64> =
                        per_run.iter().filter_map(|run| run.get(&id).copied().flatten()).collect();
                    let mean = karat_metrics::stats::mean(&defined).ok();
                    (id, mean)
                })
                .collect();
            if per_run.len() == 1 {
                per_run.clear();
            }
            Item {
                id: row.sample.id.clone(),
                group: group(row.sample).map(str::to_owned),
                metrics,
                per_run,
                ..Item::default()
            }
        })
        .collect()
}

/// Tools of one server are written alike, and are flagged or passed together.
fn group(sample: &Sample) -> Option<&str> {
    Some(sample.server.as_str()).filter(|server| !server.is_empty())
}

fn tags(sample: &Sample) -> BTreeMap<String, String> {
    let category = Some(sample.category.clone()).filter(|category| !category.is_empty());
    [
        (Property::Label, Some(sample.label.name().to_owned())),
        (Property::Category, category),
        (Property::Resembles, sample.resembles.clone()),
        (Property::Split, sample.split.clone()),
        (Property::Surface, sample.surface.clone()),
        (Property::Language, sample.language.clone()),
    ]
    .into_iter()
    .filter_map(|(property, value)| Some((property.into(), value?)))
    .collect()
}

/// The properties of entries that a report is sliced by.
const PROPERTIES: [Property; 4] =
    [Property::Category, Property::Resembles, Property::Surface, Property::Language];

/// The slices that come from the dataset alone, as property and value. What a scanner says of itself
/// makes more of them, by detector, tier and threshold.
pub(crate) fn slices(dataset: &Dataset) -> BTreeSet<(String, String)> {
    let sliced = |name: &str| {
        PROPERTIES.iter().chain([&Property::Split]).any(|property| property.name() == name)
    };
    dataset.samples.iter().flat_map(tags).filter(|(name, _)| sliced(name)).collect()
}

/// Every metric that a report over all entries, or over a part of the dataset, can have.
pub(crate) fn metric_ids() -> Vec<MetricId> {
    let all = RATES.iter().chain(&compound::FROM_COUNTS).chain(compound::from_scores());
    all.cloned().collect()
}

/// The data that everything is computed from.
struct Context<'a> {
    rows: &'a [Row<'a>],
    runs: u32,
    seed: u64,
}

impl Context<'_> {
    /// Rates and compound metrics with their intervals.
    fn full(&self, items: &[&Item], column: &Column) -> Vec<Measured> {
        let mut metrics = self.rates(items);
        metrics.extend(compound::measure(items, self.runs, self.seed, compound::Detail::Intervals));
        match self.scores(items, column) {
            Ok(scores) => metrics.extend(compound::ranking(&scores, self.runs, self.seed)),
            Err(reason) if column.scored => metrics.extend(compound::unranked(reason, self.runs)),
            Err(_) => {}
        }
        metrics
    }

    fn rates(&self, items: &[&Item]) -> Vec<Measured> {
        RATES.iter().map(|id| aggregate::measure(id, items, self.runs, self.seed)).collect()
    }

    /// Rates and compound metrics of a part, as far as the part has any.
    fn brief(&self, items: &[&Item]) -> Vec<Measured> {
        let mut metrics = self.rates(items);
        metrics.retain(|metric| metric.n > 0 || metric.left_out > 0);
        let both = [RECALL, FPR].iter().all(|id| metrics.iter().any(|metric| metric.id == *id));
        if both {
            let detail = compound::Detail::Intervals;
            metrics.extend(compound::measure(items, self.runs, self.seed, detail));
        }
        metrics
    }

    /// Truth and score of the items, run by run; nothing can be ranked where a verdict came without a
    /// score.
    fn scores<'i>(
        &self,
        items: &'i [&Item],
        column: &Column,
    ) -> Result<Vec<Vec<compound::Ranked<'i>>>, Undefined> {
        let wanted: BTreeMap<&str, Option<&str>> =
            items.iter().map(|item| (item.id.as_str(), item.group.as_deref())).collect();
        let of_run = |run: usize| {
            let mut scored = Vec::new();
            for (number, row) in self.rows.iter().enumerate() {
                let Some(group) = wanted.get(row.sample.id.as_str()) else { continue };
                let verdict = column.flags[number].get(run).copied().flatten();
                match (verdict, column.scores[number].get(run).copied().flatten()) {
                    (None, _) => {}
                    (Some(_), Some(score)) => scored.push(compound::Ranked {
                        entry: number,
                        group: *group,
                        malicious: row.sample.is_malicious(),
                        score,
                    }),
                    (Some(_), None) => return Err(Undefined("not every verdict has a score")),
                }
            }
            Ok(scored)
        };
        (0..self.runs as usize).map(of_run).collect()
    }

    fn slices(&self, items: &[Item], whole: &Column, each: &[Column]) -> Vec<Slice> {
        let mut slices = Vec::new();
        for (value, part) in parts(items, Property::Split) {
            let metrics = self.full(&part, whole);
            slices.push(Slice { by: Property::Split.into(), value, metrics });
        }
        for column in std::iter::once(whole).chain(each) {
            let own = bare_items(self.rows, column);
            let refs: Vec<&Item> = own.iter().collect();
            slices.push(Slice {
                by: Property::Detector.into(),
                value: column.name.clone(),
                metrics: self.full(&refs, column),
            });
        }
        for column in std::iter::once(whole).chain(each) {
            slices.extend(self.by_category(column));
        }
        slices.extend(self.by_server(items));
        slices.extend(self.tiers());
        slices.extend(self.thresholds(whole));
        for by in PROPERTIES {
            for (value, part) in parts(items, by) {
                slices.push(Slice { by: by.into(), value, metrics: self.brief(&part) });
            }
        }
        slices.extend(agreement(self.rows, each, self.seed));
        slices
    }

    /// The rates over servers: one is flagged if any of its tools is. People install servers, so this
    /// is how often they are bothered.
    fn by_server(&self, items: &[Item]) -> Option<Slice> {
        let mut servers: BTreeMap<(&str, bool), Vec<&Item>> = BTreeMap::new();
        for (item, row) in items.iter().zip(self.rows) {
            if let Some(group) = item.group.as_deref() {
                servers.entry((group, row.sample.is_malicious())).or_default().push(item);
            }
        }
        if servers.values().all(|items| items.len() == 1) {
            return None;
        }
        let flagged = |items: &[&Item], id: &str| {
            let judged = items.iter().filter_map(|item| item.metrics.get(id).copied().flatten());
            judged.map(|share| f64::from(u8::from(share > 0.0))).reduce(f64::max)
        };
        let servers: Vec<Item> = servers
            .iter()
            .map(|((server, malicious), items)| {
                let id = if *malicious { RECALL } else { FPR };
                Item {
                    id: (*server).to_owned(),
                    metrics: BTreeMap::from([(id.clone(), flagged(items, &id))]),
                    ..Item::default()
                }
            })
            .collect();
        let refs: Vec<&Item> = servers.iter().collect();
        let mut metrics: Vec<Measured> =
            RATES[..2].iter().map(|id| aggregate::measure(id, &refs, 1, self.seed)).collect();
        metrics.retain(|metric| metric.n > 0);
        Some(Slice { by: "unit".to_owned(), value: "server".to_owned(), metrics })
    }

    /// Each category of attacks together with the hard negatives that resemble it, so that a category has
    /// a precision too; and the benign categories by themselves.
    fn by_category(&self, column: &Column) -> Vec<Slice> {
        let mut own = bare_items(self.rows, column);
        for (item, row) in own.iter_mut().zip(self.rows) {
            item.tags = tags(row.sample);
        }
        let resembling = parts(&own, Property::Resembles);
        parts(&own, Property::Category)
            .into_iter()
            .map(|(category, mut part)| {
                part.extend(resembling.get(&category).into_iter().flatten().copied());
                Slice {
                    by: Property::DetectorCategory.into(),
                    value: format!("{}/{category}", column.name),
                    metrics: self.brief(&part),
                }
            })
            .collect()
    }

    /// The flags if only findings of at least this severity counted.
    fn tiers(&self) -> Vec<Slice> {
        let mut names: BTreeMap<u8, String> = BTreeMap::new();
        for (decided, _) in self.rows.iter().flat_map(|row| row.runs.iter().flatten()) {
            if let Some(severity) = &decided.whole.severity {
                names.entry(rank(severity)).or_insert_with(|| severity.to_lowercase());
            }
        }
        names
            .into_iter()
            .rev()
            .map(|(least, name)| {
                let flags = self.flags(|judged| {
                    judged.severity.as_deref().is_some_and(|severity| rank(severity) >= least)
                });
                self.variant(Property::Tier.name(), name, flags)
            })
            .collect()
    }

    /// The flags at other scores than the one that was chosen.
    fn thresholds(&self, whole: &Column) -> Vec<Slice> {
        let mut scores: Vec<f64> = whole.scores.iter().flatten().flatten().copied().collect();
        scores.sort_by(f64::total_cmp);
        scores.dedup();
        let step = scores.len().div_ceil(THRESHOLDS).max(1);
        scores
            .into_iter()
            .step_by(step)
            .map(|least| {
                let flags = self.flags(|judged| judged.score.is_some_and(|score| score >= least));
                self.variant("threshold", format!("{least}"), flags)
            })
            .collect()
    }

    fn flags(&self, flagged: impl Fn(&Judged) -> bool) -> Vec<Vec<Option<bool>>> {
        let judge = |run: &Result<(Decided, &Answer), ItemError>| {
            let (decided, _) = run.as_ref().ok()?;
            decided.whole.flagged().map(|_| flagged(&decided.whole))
        };
        self.rows.iter().map(|row| row.runs.iter().map(judge).collect()).collect()
    }

    fn variant(&self, by: &str, value: String, flags: Vec<Vec<Option<bool>>>) -> Slice {
        let column = Column::unscored(value.clone(), flags);
        let items = bare_items(self.rows, &column);
        let refs: Vec<&Item> = items.iter().collect();
        let mut metrics = self.rates(&refs);
        metrics.extend(compound::measure(&refs, self.runs, self.seed, compound::Detail::Intervals));
        Slice { by: by.to_owned(), value, metrics }
    }
}

/// The items by the value of a tag.
fn parts(items: &[Item], by: Property) -> BTreeMap<String, Vec<&Item>> {
    let mut parts: BTreeMap<String, Vec<&Item>> = BTreeMap::new();
    for item in items {
        if let Some(value) = item.tag(by) {
            parts.entry(value.to_owned()).or_default().push(item);
        }
    }
    parts
}

/// The agreement of detectors in pairs, and the contribution of each; over the first run.
fn agreement(rows: &[Row<'_>], columns: &[Column], seed: u64) -> Vec<Slice> {
    if columns.len() < 2 {
        return Vec::new();
    }
    let first = |column: &Column, row: usize| column.flags[row].first().copied().flatten();
    let mut slices = Vec::new();
    for (number, one) in columns.iter().enumerate() {
        for other in &columns[number + 1..] {
            let verdicts: Vec<compound::Both<'_>> = rows
                .iter()
                .enumerate()
                .filter_map(|(number, row)| {
                    let (one, other) = first(one, number).zip(first(other, number))?;
                    Some(compound::Both { group: group(row.sample), one, other })
                })
                .collect();
            slices.push(Slice {
                by: Property::Agreement.into(),
                value: format!("{} & {}", one.name, other.name),
                metrics: compound::agreement(&verdicts, seed),
            });
        }
    }
    // A detector that flags all that another one flags is taken for the sum of its parts: compared
    // with it, no part would add anything.
    let sets: Vec<BTreeSet<usize>> = columns
        .iter()
        .map(|column| (0..rows.len()).filter(|row| first(column, *row) == Some(true)).collect())
        .collect();
    let is_sum = |number: usize| {
        sets.iter().enumerate().any(|(part, set)| {
            let larger = set.len() < sets[number].len() || part < number;
            part != number && !set.is_empty() && larger && set.is_subset(&sets[number])
        })
    };
    let parts: Vec<usize> = (0..columns.len()).filter(|number| !is_sum(*number)).collect();
    for number in parts.iter().copied().filter(|_| parts.len() > 1) {
        let one = &columns[number];
        let alone = |row: usize| {
            let others = parts.iter().filter(|other| **other != number);
            first(one, row).map(|flagged| {
                flagged && others.into_iter().all(|other| !sets[*other].contains(&row))
            })
        };
        let flags = (0..rows.len()).map(|row| vec![alone(row)]).collect();
        let column = Column::unscored(one.name.clone(), flags);
        let items = bare_items(rows, &column);
        let refs: Vec<&Item> = items.iter().collect();
        slices.push(Slice {
            by: Property::Adds.into(),
            value: one.name.clone(),
            metrics: [RECALL, FPR, FPR_HARD]
                .iter()
                .map(|id| aggregate::measure(id, &refs, 1, 0))
                .collect(),
        });
    }
    slices
}

/// The observation of one entry: the text, the verdicts and their reasons.
fn observe(row: &Row<'_>) -> Verdicts {
    let sample = row.sample;
    let in_schema = sample.surface.as_deref().is_some_and(|surface| {
        !["description", "tool_result", "server_instructions", "tool_name"].contains(&surface)
    });
    let schema = sample.tool.input_schema.as_ref().filter(|_| in_schema);
    let mut observed = Verdicts {
        label: sample.label.name().to_owned(),
        name: sample.tool.name.clone(),
        text: shown(&sample.tool.description),
        result: sample.result.as_deref().map(shown),
        instructions: sample.instructions.as_deref().map(shown),
        before: sample.before.as_ref().map(|before| shown(&before.description)),
        input_schema: schema.map(|schema| shown(&schema.to_string())),
        notes: sample.notes.clone(),
        ..Verdicts::default()
    };
    let Some(Ok((decided, answer))) = row.runs.first() else { return observed };
    observed.outcome = Some(outcome(sample, &decided.whole));
    let verdict = |judged: &Judged| (judged.detector.clone(), judged.outcome.name().to_owned());
    observed.verdicts = decided.each.iter().map(verdict).collect();
    for report in &answer.reports {
        if let Some(score) = report.score {
            observed.scores.insert(report.detector.clone(), score);
        }
        observed.findings.extend(report.findings.iter().map(|finding| DetectorFinding {
            detector: report.detector.clone(),
            ..finding.clone()
        }));
    }
    observed
}

fn shown(text: &str) -> String {
    let start = text.floor_char_boundary(4 * SHOWN);
    clip(&text[..start], SHOWN).into_owned()
}

fn outcome(sample: &Sample, judged: &Judged) -> VerdictOutcome {
    match (judged.outcome, sample.is_malicious()) {
        (Verdict::Flag, true) => VerdictOutcome::TruePositive,
        (Verdict::Flag, false) => VerdictOutcome::FalsePositive,
        (Verdict::Pass, true) => VerdictOutcome::FalseNegative,
        (Verdict::Pass, false) => VerdictOutcome::TrueNegative,
        (Verdict::Unsupported, _) => VerdictOutcome::Unsupported,
        (Verdict::Error, _) => VerdictOutcome::Error,
    }
}

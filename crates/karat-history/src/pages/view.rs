//! The view models of the pages: numbers as text, in the order in which they are shown.

use karat_core::report::Better;
use karat_metrics::registry;
use karat_report::charts;
use karat_report::format::{NONE, count, moment, number, optional, range};
use karat_report::html::{Change, Tone};
use serde::Serialize;

use super::error::PageError;
use super::marks::{self, Mark};
use crate::chart::{Chart, chart, chart_with};
use crate::error::HistoryError;
use crate::model::{Entry, Run, State, Subject, Value};
use crate::series::{self, Point, Series};
use crate::store::{Selection, Store};
use crate::text::{short_commit, short_digest};

/// The most runs that a page shows: the latest.
const RUNS: u32 = 500;
/// The number of line colours; further series start again with the first.
const LOOKS: usize = 4;
const SPARK_HEIGHT: u32 = 44;
const HEADLINE_HEIGHT: u32 = 84;
const CHART_HEIGHT: u32 = 280;

#[derive(Serialize)]
struct Spark {
    label: String,
    /// The line that the latest value is on.
    latest: usize,
    chart: Chart,
}

/// The latest value of a metric.
#[derive(Serialize)]
struct Latest {
    metric: String,
    metric_id: i64,
    better: Better,
    value: String,
    undefined: Option<String>,
    interval: String,
    n: i64,
    change: Option<Change>,
    /// The run of the value before.
    since: Option<i64>,
    /// The reason for which there is no change.
    fresh: Option<&'static str>,
    spark: Option<Spark>,
}

/// One entry of one run.
#[derive(Serialize)]
struct Card {
    id: i64,
    run: i64,
    evaluation: String,
    name: String,
    tone: Tone,
    facts: Vec<String>,
    reason: Option<String>,
    headline: Option<Latest>,
    rows: Vec<Latest>,
    since: Option<i64>,
    /// True if the latest run does not have it.
    late: bool,
    /// The results of the latest runs, the earliest first.
    strip: Vec<Mark>,
}

#[derive(Serialize)]
pub(super) struct Overview {
    tone: Tone,
    run: i64,
    runs: String,
    first: String,
    last: String,
    cards: Vec<Card>,
}

/// The dataset, such as `tools v1`; a dash if nothing was measured.
fn dataset(entry: &Entry) -> String {
    entry
        .dataset
        .as_ref()
        .map_or_else(|| NONE.to_owned(), |dataset| format!("{} {}", dataset.id, dataset.version))
}

fn facts(entry: &Entry) -> Vec<String> {
    if entry.dataset.is_none() {
        return Vec::new();
    }
    let items = usize::try_from(entry.items).unwrap_or(0);
    vec![dataset(entry), entry.system.clone(), count(items, "item")]
}

/// A metric in the latest of these entries.
fn latest_value(past: &[&Entry], latest: &Entry, measured: &Value, height: u32) -> Latest {
    let all = series::of(past.iter().copied(), &measured.metric);
    let of_now = all.iter().find(|one| Some(one.dataset) == latest.dataset.as_ref());
    let points = of_now.map_or(&[][..], |one| one.points.as_slice());
    let earlier = points.iter().rev().skip(1).find(|point| point.value.is_some());
    let delta = points.last().and_then(|point| point.delta);
    let fresh = match (earlier, all.len()) {
        (Some(_), _) => None,
        (None, 0 | 1) => Some("first run"),
        (None, _) => Some("first run on this data"),
    };
    Latest {
        metric: measured.metric.clone(),
        metric_id: measured.metric_id,
        better: measured.better,
        value: optional(measured.value),
        undefined: measured.undefined.clone(),
        interval: range(measured.interval.as_ref(), " to "),
        n: measured.n,
        change: Change::of(delta, measured.better),
        since: earlier.filter(|_| delta.is_some()).map(|point| point.run),
        fresh,
        spark: spark(&all, past.len(), height),
    }
}

fn spark(all: &[Series<'_>], places: usize, height: u32) -> Option<Spark> {
    let of_line = |(line, series): (usize, &Series<'_>)| -> Vec<(usize, f64, usize)> {
        let points = series.points.iter();
        points.filter_map(|point| Some((point.place, point.value?, line))).collect()
    };
    let mut values: Vec<_> = all.iter().enumerate().flat_map(of_line).collect();
    // Runs on different data can alternate.
    values.sort_unstable_by_key(|(place, ..)| *place);
    // One value is not a trend.
    let [(_, first, _), .., (_, last, latest)] = values.as_slice() else { return None };
    let (latest, values) = (*latest, count(values.len(), "value"));
    let label = format!("{values}, from {} to {}", number(*first), number(*last));
    Some(Spark { label, latest, chart: chart(all, places, height)? })
}

pub(super) fn overview(store: &Store) -> Result<Option<Overview>, HistoryError> {
    let runs = store.runs()?;
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(None) };
    let entries = store.entries(Selection::Latest(RUNS))?;
    let mut cards = Vec::new();
    for subject in store.subjects()? {
        let past: Vec<&Entry> = entries.iter().filter(|one| one.subject == subject).collect();
        let Some(latest) = past.last() else { continue };
        let headline = latest.headline.as_deref().and_then(|metric| latest.value(metric));
        cards.push(Card {
            headline: headline
                .map(|measured| latest_value(&past, latest, measured, HEADLINE_HEIGHT)),
            late: latest.run != last.id,
            strip: marks::strip(&past),
            ..card(latest)
        });
    }
    Ok(Some(Overview {
        tone: last.state.into(),
        run: last.id,
        runs: count(runs.len(), "run"),
        first: moment(&first.started),
        last: moment(&last.started),
        cards,
    }))
}

fn card(entry: &Entry) -> Card {
    Card {
        id: entry.subject.id,
        run: entry.run,
        evaluation: entry.subject.evaluation.clone(),
        name: entry.subject.name.clone(),
        tone: entry.state.into(),
        facts: facts(entry),
        reason: entry.reason.clone(),
        headline: None,
        rows: Vec::new(),
        since: None,
        late: false,
        strip: Vec::new(),
    }
}

#[derive(Serialize)]
pub(super) struct SubjectPage {
    #[serde(flatten)]
    card: Card,
    #[serde(rename = "headline_metric")]
    metric: Option<String>,
    past: Vec<Past>,
}

#[derive(Serialize)]
struct Past {
    run: i64,
    started: String,
    tone: Tone,
    dataset: String,
    digest: String,
    system: String,
    value: String,
    commit: String,
}

impl SubjectPage {
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.card.evaluation, self.card.name)
    }
}

pub(super) fn subject(store: &Store, id: i64) -> Result<SubjectPage, PageError> {
    let entries = store.entries(Selection::Subject(id, RUNS))?;
    let past: Vec<&Entry> = entries.iter().collect();
    // If the latest run could not measure it, the values are those of the last that could.
    let measured = past.iter().rev().find(|entry| entry.dataset.is_some());
    let (Some(latest), shown) = (past.last(), measured.or(past.last())) else {
        return Err(PageError::NotFound);
    };
    let shown = shown.unwrap_or(latest);
    let metric = shown.headline.clone();
    let rows =
        shown.values.iter().map(|value| latest_value(&past, shown, value, SPARK_HEIGHT)).collect();
    let of_headline =
        |entry: &Entry| metric.as_deref().and_then(|metric| entry.value(metric)?.value);
    Ok(SubjectPage {
        past: past
            .iter()
            .rev()
            .map(|entry| Past {
                run: entry.run,
                started: moment(&entry.started),
                tone: entry.state.into(),
                dataset: dataset(entry),
                digest: entry
                    .dataset
                    .as_ref()
                    .map_or_else(String::new, |d| short_digest(&d.digest)),
                system: entry.system.clone(),
                value: of_headline(entry).map_or_else(|| NONE.to_owned(), number),
                commit: short_commit(entry.commit.as_deref()),
            })
            .collect(),
        card: Card {
            rows,
            run: shown.run,
            facts: facts(shown),
            strip: marks::strip(&past),
            ..card(latest)
        },
        metric,
    })
}

#[derive(Serialize)]
pub(super) struct MetricPage {
    id: i64,
    evaluation: String,
    name: String,
    metric: String,
    better: Better,
    summary: Option<&'static str>,
    siblings: Vec<Sibling>,
    chart: Option<Chart>,
    dots: Vec<Dot>,
    series: Vec<Legend>,
    failed: bool,
    branches: Vec<String>,
    rows: Vec<MetricRow>,
}

#[derive(Serialize)]
struct Sibling {
    id: i64,
    metric: String,
}

#[derive(Serialize)]
struct Legend {
    look: usize,
    dataset: String,
    digest: String,
}

#[derive(Serialize)]
struct Dot {
    #[serde(flatten)]
    dot: charts::Dot,
    look: usize,
    run: i64,
    failed: bool,
    branch: Option<String>,
}

#[derive(Serialize)]
struct MetricRow {
    run: i64,
    started: String,
    value: String,
    raw: Option<f64>,
    undefined: Option<String>,
    interval: String,
    n: i64,
    change: Option<Change>,
    moved: Option<f64>,
    dataset: String,
    digest: String,
    tone: Tone,
    commit: String,
    branch: Option<String>,
    about: Option<String>,
}

impl MetricPage {
    pub(super) fn title(&self) -> String {
        format!("{} of {} {}", self.metric, self.evaluation, self.name)
    }
}

pub(super) fn metric(store: &Store, subject: i64, metric: i64) -> Result<MetricPage, PageError> {
    let metric = store.metric_name(metric)?.ok_or(PageError::NotFound)?;
    let mut entries = store.entries(Selection::Subject(subject, RUNS))?;
    // Runs without the metric have no place on the chart.
    let siblings = entries.iter().rev().find(|entry| !entry.values.is_empty());
    let siblings = siblings.map_or(&[][..], |entry| &entry.values).iter();
    let siblings =
        siblings.map(|one| Sibling { id: one.metric_id, metric: one.metric.clone() }).collect();
    entries.retain(|entry| entry.value(&metric).is_some());
    let all = series::of(&entries, &metric);
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return Err(PageError::NotFound);
    };
    let references = marks::references(store, last, &metric);
    let mut drawn = chart_with(&all, entries.len(), CHART_HEIGHT, &references);
    let dots = drawn.as_mut().map(|chart| dots(chart, &all)).unwrap_or_default();
    let mut rows: Vec<(usize, MetricRow)> = all
        .iter()
        .flat_map(|one| one.points.iter().map(move |point| (point.place, row(one, point))))
        .collect();
    rows.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
    Ok(MetricPage {
        id: subject,
        evaluation: first.subject.evaluation.clone(),
        name: first.subject.name.clone(),
        better: all.first().map_or(Better::Higher, |one| one.better),
        summary: registry::find(&metric).map(|metric| metric.summary),
        siblings,
        dots,
        series: all
            .iter()
            .enumerate()
            .map(|(at, one)| Legend {
                look: at % LOOKS,
                dataset: format!("{} {}", one.dataset.id, one.dataset.version),
                digest: short_digest(&one.dataset.digest),
            })
            .collect(),
        failed: entries.iter().any(|entry| entry.state == State::Fail),
        branches: marks::branches(entries.iter().map(|entry| entry.branch.as_deref())),
        chart: drawn,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        metric,
    })
}

fn row(series: &Series<'_>, point: &Point<'_>) -> MetricRow {
    MetricRow {
        run: point.run,
        started: moment(point.started),
        value: optional(point.value),
        raw: point.value,
        undefined: point.undefined.map(str::to_owned),
        interval: range(point.interval, " to "),
        n: point.n,
        change: Change::of(point.delta, series.better),
        moved: point.delta,
        dataset: format!("{} {}", series.dataset.id, series.dataset.version),
        digest: short_digest(&series.dataset.digest),
        tone: point.state.into(),
        commit: short_commit(point.commit),
        branch: point.branch.map(str::to_owned),
        about: point.commit_subject.map(str::to_owned),
    }
}

/// The values of all series as links, taken out of the chart.
fn dots(chart: &mut Chart, all: &[Series<'_>]) -> Vec<Dot> {
    let lines = chart.lines.iter_mut().zip(all).enumerate();
    lines
        .flat_map(|(at, (line, series))| {
            let dots = std::mem::take(&mut line.dots).into_iter();
            dots.filter_map(move |dot| {
                let point = series.points.get(dot.point)?;
                let failed = point.state == State::Fail;
                let branch = point.branch.map(str::to_owned);
                Some(Dot { dot, look: at % LOOKS, run: point.run, failed, branch })
            })
        })
        .collect()
}

#[derive(Serialize)]
pub(super) struct RunsPage {
    facts: Vec<String>,
    states: Vec<Tone>,
    subjects: Vec<Numbered>,
    branches: Vec<String>,
    rows: Vec<RunRow>,
}

/// An entry of a run with its result.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    subject: Numbered,
    tone: Tone,
}

/// A subject with its id, which [`Subject`] keeps out of JSON.
#[derive(Serialize)]
struct Numbered {
    id: i64,
    #[serde(flatten)]
    subject: Subject,
}

impl From<Subject> for Numbered {
    fn from(subject: Subject) -> Numbered {
        Numbered { id: subject.id, subject }
    }
}

#[derive(Serialize)]
struct RunRow {
    id: i64,
    started: String,
    tone: Tone,
    commit: String,
    branch: Option<String>,
    about: Option<String>,
    entries: Vec<Listed>,
    before: Option<i64>,
}

pub(super) fn runs(store: &Store) -> Result<RunsPage, HistoryError> {
    let mut runs = store.runs()?;
    let mut facts = vec![count(runs.len(), "run")];
    let dropped = runs.len().saturating_sub(RUNS as usize);
    if dropped > 0 {
        facts.push(format!("the latest {RUNS} are shown"));
    }
    let before: Vec<Option<i64>> =
        std::iter::once(None).chain(runs.iter().map(|run| Some(run.id))).collect();
    let mut rows: Vec<RunRow> = runs
        .drain(..)
        .zip(before)
        .skip(dropped)
        .map(|(run, before)| RunRow {
            id: run.id,
            started: moment(&run.started),
            tone: run.state.into(),
            commit: short_commit(run.commit.as_deref()),
            branch: run.branch,
            about: run.commit_subject,
            entries: run
                .entries
                .into_iter()
                .zip(run.states)
                .map(|(subject, state)| Listed { subject: subject.into(), tone: state.into() })
                .collect(),
            before,
        })
        .collect();
    rows.reverse();
    let mut states: Vec<Tone> = rows.iter().map(|row| row.tone).collect();
    states.sort_by_key(|tone| tone.word);
    states.dedup_by_key(|tone| tone.word);
    let subjects = store.subjects()?.into_iter().map(Numbered::from).collect();
    let branches = marks::branches(rows.iter().map(|row| row.branch.as_deref()));
    Ok(RunsPage { facts, states, subjects, branches, rows })
}

#[derive(Serialize)]
pub(super) struct RunPage {
    id: i64,
    tone: Tone,
    facts: Vec<String>,
    before: Option<i64>,
    cards: Vec<Card>,
}

pub(super) fn run(store: &Store, id: i64) -> Result<RunPage, HistoryError> {
    let runs = store.runs()?;
    let at = runs.iter().position(|run| run.id == id).ok_or(HistoryError::NoRun { id })?;
    let run: &Run = runs.get(at).ok_or(HistoryError::NoRun { id })?;
    let mut facts = vec![moment(&run.started), format!("karat {}", run.karat)];
    facts.extend(run.branch.as_ref().map(|branch| format!("branch {branch}")));
    facts.extend(run.commit.as_ref().map(|commit| format!("commit {commit}")));
    facts.extend(run.commit_subject.clone());
    facts.push(format!("document {}", short_digest(&run.digest)));
    let mut cards = Vec::new();
    for entry in store.entries(Selection::Run(id))? {
        let mut past = store.entries(Selection::Subject(entry.subject.id, RUNS))?;
        let until = past.iter().rposition(|one| one.run == id).map_or(0, |at| at + 1);
        past.truncate(until);
        let past: Vec<&Entry> = past.iter().collect();
        let rows: Vec<Latest> = entry
            .values
            .iter()
            .map(|value| latest_value(&past, &entry, value, SPARK_HEIGHT))
            .collect();
        let since = rows.iter().find_map(|row| row.since);
        cards.push(Card { rows, since, ..card(&entry) });
    }
    Ok(RunPage {
        id,
        tone: run.state.into(),
        facts,
        before: at.checked_sub(1).and_then(|at| runs.get(at)).map(|run| run.id),
        cards,
    })
}

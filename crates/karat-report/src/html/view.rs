//! What the static part of the page shows, in the order in which it shows it.
//!
//! Numbers are already text here and lists are already cut, so the template only lays them out.
//! Names and reasons are as they came; the template's formatter makes them printable and escapes.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::report::{Better, Check, CheckReport, Control, Delta, Measured, Report, Verdict};
use karat_metrics::registry;
use serde::Serialize;

use super::chart::{Chart, chart};
use super::figures::{Figure, figures};
use super::words::{
    Direction, bound, check_name, count, encoded, interval_heading, method, moment, optional,
    sentence, signed,
};

/// How many items a list of flipped items names; the table below has them all.
const NAMED: usize = 12;
/// How many metrics stand beside a verdict on the first screen.
const FIRST: usize = 3;
/// A card with no more metrics than this shows them all at once.
const AT_ONCE: usize = 8;
/// The metrics that say most, by which they are chosen for the first screen.
const LEADING: [&str; 21] = [
    "pass_rate",
    "reliability",
    "attacks_held",
    "schema.rejects_invalid",
    "crash_rate",
    "latency.p50",
    "latency.p99",
    "throughput",
    "error_rate",
    "task.success",
    "calls.f1",
    "gauge.proactivity",
    "gauge.compliance",
    "calls.similarity",
    "recall@5",
    "mrr",
    "ndcg@10",
    "recall",
    "fpr_hard",
    "precision",
    "f1",
];
/// Where there is nothing to show.
const NONE: &str = "–";

/// Everything outside the data block.
#[derive(Serialize)]
pub(super) struct Page {
    verdict: Tone,
    sentence: String,
    /// When and where the first report was made.
    facts: Vec<String>,
    cards: Vec<Card>,
    lost: Vec<Lost>,
    absent: Vec<Absent>,
    legend: Vec<Definition>,
}

/// A verdict as a word and as the name of its look.
#[derive(Clone, Copy, Serialize)]
struct Tone {
    class: &'static str,
    word: &'static str,
}

impl Tone {
    const LOST: Tone = Tone { class: "lost", word: "not measured" };
    const OPEN: Tone = Tone { class: "open", word: "no gate" };

    fn of(verdict: Verdict) -> Tone {
        Tone { class: verdict.name(), word: verdict.name() }
    }
}

#[derive(Serialize)]
struct Lost {
    slug: String,
    evaluation: &'static str,
    name: String,
    reason: String,
    tone: Tone,
}

#[derive(Serialize)]
struct Absent {
    evaluation: &'static str,
    reason: String,
}

#[derive(Serialize)]
struct Card {
    slug: String,
    evaluation: &'static str,
    name: String,
    tone: Tone,
    facts: Vec<String>,
    interval_heading: String,
    against: Option<String>,
    /// Whether a change carries a p-value.
    tested: bool,
    /// The metrics that matter first, and those that a reader may open.
    rows: Vec<Row>,
    more: Vec<Row>,
    /// What stands on the first screen.
    first: Vec<Row>,
    figures: Vec<Figure>,
    parts: Vec<Part>,
    flips: Option<Flips>,
    failed: Vec<CheckView>,
    undecided: Vec<CheckView>,
    passed: Vec<CheckView>,
    controls: Vec<ControlView>,
    warnings: Vec<String>,
    unanswered: Option<String>,
    latency: Option<String>,
    items: usize,
    runs: u32,
    conventions: BTreeMap<String, String>,
    environment: Vec<(&'static str, String)>,
}

/// One headline metric.
#[derive(Serialize)]
struct Row {
    id: String,
    legend: Option<&'static str>,
    better: Better,
    value: String,
    interval: String,
    method: Option<String>,
    /// `98 of 183`, where it is a share.
    count: Option<String>,
    n: u64,
    notes: Vec<String>,
    chart: Option<Chart>,
    baseline: String,
    change: Option<Change>,
}

#[derive(Serialize)]
struct Change {
    /// None where nothing moved at all.
    amount: Option<String>,
    word: &'static str,
    detail: Option<String>,
}

/// The changes over one slice.
#[derive(Serialize)]
struct Part {
    slice: String,
    rows: Vec<PartRow>,
}

#[derive(Serialize)]
struct PartRow {
    id: String,
    legend: Option<&'static str>,
    before: String,
    after: String,
    change: Option<Change>,
    pairs: u64,
}

/// Which items moved.
#[derive(Serialize)]
struct Flips {
    worse: usize,
    better: usize,
    rows: Vec<FlipRow>,
}

#[derive(Serialize)]
struct FlipRow {
    id: String,
    legend: Option<&'static str>,
    worse: Names,
    better: Names,
}

/// Items by name: the first few as links, and how many there are.
#[derive(Serialize)]
struct Names {
    total: usize,
    first: Vec<Link>,
    more: usize,
}

#[derive(Serialize)]
struct Link {
    name: String,
    target: String,
}

#[derive(Serialize)]
struct CheckView {
    tone: Tone,
    name: String,
    reason: String,
    items: Names,
}

#[derive(Serialize)]
struct ControlView {
    name: String,
    ok: bool,
    expected: String,
    landed: Vec<String>,
}

/// One entry of the legend.
#[derive(Serialize)]
struct Definition {
    id: &'static str,
    used: Vec<String>,
    summary: &'static str,
    formula: &'static str,
    better: Better,
    undefined: &'static str,
}

/// The names under which the reports and the entries without one are linked: the evaluation and what
/// an address can hold of the name. Reports come first.
pub(super) fn slugs(check: &CheckReport) -> Vec<String> {
    let reports = check.reports.iter().map(|report| (report.evaluation, &report.name));
    let lost = check.not_measured.iter().map(|entry| (entry.evaluation, &entry.name));
    let mut taken = BTreeSet::new();
    reports
        .chain(lost)
        .map(|(evaluation, name)| {
            let plain: String = name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
                .take(60)
                .collect();
            let stem = format!("{evaluation}-{plain}");
            let mut slug = stem.clone();
            let mut turn = 2;
            while !taken.insert(slug.clone()) {
                slug = format!("{stem}-{turn}");
                turn += 1;
            }
            slug
        })
        .collect()
}

/// The static part of the page.
pub(super) fn page(check: &CheckReport, slugs: &[String]) -> Page {
    let (of_reports, of_lost) = slugs.split_at(check.reports.len().min(slugs.len()));
    let facts = check.reports.first().map(|report| {
        let environment = &report.environment;
        let mut facts = vec![moment(&environment.started), format!("karat {}", environment.karat)];
        facts.extend(environment.commit.as_ref().map(|commit| format!("commit {commit}")));
        facts
    });
    Page {
        verdict: check.verdict.map_or(Tone::LOST, Tone::of),
        sentence: sentence(check),
        facts: facts.unwrap_or_default(),
        cards: check
            .reports
            .iter()
            .zip(of_reports)
            .map(|(report, slug)| card(report, slug))
            .collect(),
        lost: check
            .not_measured
            .iter()
            .zip(of_lost)
            .map(|(entry, slug)| Lost {
                slug: slug.clone(),
                evaluation: entry.evaluation.name(),
                name: entry.name.clone(),
                reason: entry.reason.clone(),
                tone: Tone::LOST,
            })
            .collect(),
        absent: check
            .not_run
            .iter()
            .map(|entry| Absent {
                evaluation: entry.evaluation.name(),
                reason: entry.reason.clone(),
            })
            .collect(),
        legend: legend(check),
    }
}

fn card(report: &Report, slug: &str) -> Card {
    let checks = |verdict: Verdict| -> Vec<CheckView> {
        let all = report.gate.iter().flat_map(|gate| &gate.checks);
        // Controls that hold have a list of their own.
        all.filter(|check| check.verdict == verdict)
            .filter(|check| verdict != Verdict::Pass || check.rule != "control")
            .map(|check| check_view(check, report, slug))
            .collect()
    };
    let shown = |metric: &Measured| row(metric, whole(report, &metric.id));
    let gated = gated(report);
    let at_once = |metric: &Measured| {
        let id = metric.id.as_str();
        report.metrics.len() <= AT_ONCE || gated.contains(id) || LEADING.contains(&id)
    };
    Card {
        slug: slug.to_owned(),
        evaluation: report.evaluation.name(),
        name: report.name.clone(),
        tone: report.gate.as_ref().map_or(Tone::OPEN, |gate| Tone::of(gate.verdict)),
        facts: facts(report),
        interval_heading: interval_heading(
            report.metrics.iter().filter_map(|m| m.interval.as_ref()).map(|i| &i.level),
        ),
        against: report.comparison.as_ref().map(|comparison| comparison.against.clone()),
        tested: report
            .comparison
            .iter()
            .flat_map(|comparison| &comparison.deltas)
            .any(|delta| delta.p_holm.is_some()),
        rows: report.metrics.iter().filter(|metric| at_once(metric)).map(&shown).collect(),
        more: report.metrics.iter().filter(|metric| !at_once(metric)).map(&shown).collect(),
        first: first(report).into_iter().map(&shown).collect(),
        figures: figures(report, slug),
        parts: parts(report),
        flips: flips(report, slug),
        failed: checks(Verdict::Fail),
        undecided: checks(Verdict::Inconclusive),
        passed: checks(Verdict::Pass),
        controls: report.controls.iter().map(control_view).collect(),
        warnings: report.warnings.clone(),
        unanswered: unanswered(report),
        latency: report.environment.latency_ms.map(|latency| {
            let [p50, p90, p99, max] =
                [latency.p50, latency.p90, latency.p99, latency.max].map(|ms| format!("{ms:.2}"));
            format!(
                "Answer time in ms: p50 {p50}, p90 {p90}, p99 {p99}, max {max} (n = {})",
                latency.n
            )
        }),
        items: report.items.len(),
        runs: report.runs,
        conventions: report.conventions.clone(),
        environment: environment(report),
    }
}

/// The metrics that somebody gates.
fn gated(report: &Report) -> BTreeSet<&str> {
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    checks.map(|check| check.metric.as_str()).collect()
}

/// The metrics of the first screen: those that failed, then those that lead.
fn first(report: &Report) -> Vec<&Measured> {
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    let failed = checks.filter(|check| check.verdict != Verdict::Pass).map(|check| &*check.metric);
    let all = report.metrics.iter().map(|metric| metric.id.as_str());
    let mut chosen: Vec<&Measured> = Vec::new();
    for id in failed.chain(LEADING).chain(all) {
        if let Some(metric) = report.metric(id)
            && chosen.len() < FIRST
            && chosen.iter().all(|known| known.id != id)
        {
            chosen.push(metric);
        }
    }
    chosen
}

fn facts(report: &Report) -> Vec<String> {
    let system = &report.system;
    let mut name = format!("{} {}", system.kind, system.name);
    if let Some(version) = &system.version {
        name.push(' ');
        name.push_str(version);
    }
    vec![
        name,
        format!("{} {}", report.dataset.id, report.dataset.version),
        count(report.items.len(), "item"),
        count(report.runs as usize, "run"),
    ]
}

fn environment(report: &Report) -> Vec<(&'static str, String)> {
    let environment = &report.environment;
    let settings: Vec<String> =
        report.system.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let mut rows = vec![
        ("dataset", format!("{} {}", report.dataset.id, report.dataset.version)),
        ("digest", report.dataset.digest.clone()),
        ("system", facts(report).swap_remove(0)),
        ("settings", settings.join(", ")),
        ("seed", report.seed.to_string()),
        ("karat", environment.karat.clone()),
        ("machine", environment.os.clone()),
        ("started", moment(&environment.started)),
        ("duration", format!("{} ms", environment.duration_ms)),
        ("commit", environment.commit.clone().unwrap_or_default()),
    ];
    rows.retain(|(_, value)| !value.is_empty());
    rows
}

/// The change of a metric over all items.
fn whole<'a>(report: &'a Report, id: &str) -> Option<&'a Delta> {
    let deltas = &report.comparison.as_ref()?.deltas;
    deltas.iter().find(|delta| delta.metric == id && delta.slice.is_none())
}

fn row(metric: &Measured, delta: Option<&Delta>) -> Row {
    let baseline = delta.and_then(|delta| delta.before);
    let mut notes = Vec::new();
    if let Some(reason) = &metric.undefined {
        notes.push(format!("undefined: {reason}"));
    }
    if metric.left_out > 0 && metric.value.is_some() {
        notes.push(format!("undefined on {}, left out", count(index(metric.left_out), "item")));
    }
    if metric.per_run.len() > 1 {
        let runs: Vec<String> = metric.per_run.iter().map(|run| optional(*run)).collect();
        notes.push(format!("runs: {}", runs.join(", ")));
    }
    Row {
        id: metric.id.clone(),
        legend: definition(&metric.id),
        better: metric.better,
        value: optional(metric.value),
        interval: metric.interval.as_ref().map_or_else(
            || NONE.to_owned(),
            |interval| format!("{} – {}", bound(interval.low), bound(interval.high)),
        ),
        method: metric.interval.as_ref().map(|interval| method(&interval.method)),
        count: metric
            .count
            .as_ref()
            .filter(|count| count.of > 0)
            .map(|count| format!("{} of {}", count.hits, count.of)),
        n: metric.n,
        notes,
        chart: chart(metric, baseline),
        baseline: delta.map_or_else(|| NONE.to_owned(), |delta| optional(delta.before)),
        change: delta.and_then(change),
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn definition(id: &str) -> Option<&'static str> {
    registry::find(id).map(|metric| metric.id)
}

fn change(delta: &Delta) -> Option<Change> {
    let (amount, direction) = (delta.delta?, Direction::of(delta)?);
    let moved = !(delta.improved.is_empty() && delta.worsened.is_empty());
    if direction == Direction::Same && !moved {
        return Some(Change { amount: None, word: direction.word(), detail: None });
    }
    let interval = delta.interval.as_ref().map(|interval| {
        format!("{} to {}", minus_or_plus(interval.low), minus_or_plus(interval.high))
    });
    let p = delta.p_holm.map(|p| format!("p = {p:.3}"));
    let detail: Vec<String> = interval.into_iter().chain(p).collect();
    Some(Change {
        amount: Some(signed(amount)),
        word: direction.word(),
        detail: (!detail.is_empty()).then(|| detail.join(", ")),
    })
}

fn minus_or_plus(value: f64) -> String {
    match bound(value) {
        text if value > 0.0 => format!("+{text}"),
        text => text,
    }
}

/// The changes over slices: those that the gate looks at.
fn parts(report: &Report) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for delta in report.comparison.iter().flat_map(|comparison| &comparison.deltas) {
        let Some(slice) = &delta.slice else { continue };
        let row = PartRow {
            id: delta.metric.clone(),
            legend: definition(&delta.metric),
            before: optional(delta.before),
            after: optional(delta.after),
            change: change(delta),
            pairs: delta.pairs,
        };
        match parts.iter_mut().find(|part| part.slice == *slice) {
            Some(part) => part.rows.push(row),
            None => parts.push(Part { slice: slice.clone(), rows: vec![row] }),
        }
    }
    parts
}

fn flips(report: &Report, slug: &str) -> Option<Flips> {
    let comparison = report.comparison.as_ref()?;
    let moved: Vec<&Delta> = comparison
        .deltas
        .iter()
        .filter(|delta| delta.slice.is_none())
        .filter(|delta| !(delta.worsened.is_empty() && delta.improved.is_empty()))
        .collect();
    let distinct = |pick: fn(&Delta) -> &[String]| {
        moved.iter().flat_map(|delta| pick(delta)).collect::<BTreeSet<_>>().len()
    };
    Some(Flips {
        worse: distinct(|delta| &delta.worsened),
        better: distinct(|delta| &delta.improved),
        rows: moved
            .iter()
            .map(|delta| FlipRow {
                id: delta.metric.clone(),
                legend: definition(&delta.metric),
                worse: names(&delta.worsened, slug),
                better: names(&delta.improved, slug),
            })
            .collect(),
    })
}

fn names(items: &[String], slug: &str) -> Names {
    let link =
        |name: &String| Link { name: name.clone(), target: format!("{slug}/{}", encoded(name)) };
    Names {
        total: items.len(),
        first: items.iter().take(NAMED).map(link).collect(),
        more: items.len().saturating_sub(NAMED),
    }
}

fn check_view(check: &Check, report: &Report, slug: &str) -> CheckView {
    let mut items = names(&check.items, slug);
    for link in &mut items.first {
        // A check may name what several items are about, such as a tool.
        if report.items.iter().all(|item| item.id != link.name) {
            link.target = format!("items-{slug}?search={}", encoded(&link.name));
        }
    }
    CheckView {
        tone: Tone::of(check.verdict),
        name: check_name(check),
        reason: check.reason.clone(),
        items,
    }
}

fn control_view(control: &Control) -> ControlView {
    let landed = |metric: &Measured| format!("{} {}", metric.id, optional(metric.value));
    ControlView {
        name: control.name.clone(),
        ok: control.ok,
        expected: control.expected.clone(),
        landed: control.metrics.iter().map(landed).collect(),
    }
}

/// The questions without an answer, by kind of failure.
fn unanswered(report: &Report) -> Option<String> {
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for error in report.items.iter().filter_map(|item| item.error.as_ref()) {
        *classes.entry(&error.class).or_default() += 1;
    }
    let total: usize = classes.values().sum();
    let kinds: Vec<String> = classes.iter().map(|(class, n)| format!("{class} {n}")).collect();
    (total > 0).then(|| format!("{} without an answer: {}", count(total, "item"), kinds.join(", ")))
}

/// The definitions of every metric that occurs, in the order of the registry.
fn legend(check: &CheckReport) -> Vec<Definition> {
    let mut used: BTreeMap<&'static str, BTreeSet<&str>> = BTreeMap::new();
    for report in &check.reports {
        let slices = report.slices.iter().flat_map(|slice| &slice.metrics);
        let controls = report.controls.iter().flat_map(|control| &control.metrics);
        let measured = report.metrics.iter().chain(slices).chain(controls);
        let ids = measured
            .map(|metric| &metric.id)
            .chain(report.items.iter().flat_map(|item| item.metrics.keys()));
        let ids: BTreeSet<&str> = ids.map(String::as_str).collect();
        for id in ids {
            if let Some(known) = definition(id) {
                used.entry(known).or_default().insert(id);
            }
        }
    }
    registry::all()
        .filter_map(|metric| {
            let ids = used.get(metric.id)?.iter().filter(|id| **id != metric.id);
            let mut ids: Vec<String> = ids.map(|id| (*id).to_owned()).collect();
            // So that recall@10 does not stand before recall@3.
            ids.sort_by(|a, b| a.len().cmp(&b.len()).then(a.cmp(b)));
            Some(Definition {
                id: metric.id,
                used: ids,
                summary: metric.summary,
                formula: metric.formula,
                better: metric.better.into(),
                undefined: metric.undefined,
            })
        })
        .collect()
}

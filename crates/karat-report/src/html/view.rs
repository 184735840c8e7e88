//! The view model of the page: what its static part shows, in the order in which it shows it.
//!
//! Numbers are text here and lists are cut, so the template only lays them out. Names and reasons are
//! as they came; the template's formatter makes them printable and escapes them.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::report::{Better, Check, CheckReport, Control, Delta, Measured, Report, Verdict};
use karat_metrics::{MetricId, registry};
use serde::Serialize;

use super::figures::{Figure, figures, leaderboard};
use super::rules::{self, Numbers, Worst};
use crate::charts::Bar;
use crate::format::{
    Direction, NONE, bound, check_name, count, encoded, interval_heading, is_significant, method,
    moment, optional, p_value, range, ratio, signed, summary,
};
use crate::select;

/// The most items that a list names; the table has them all.
const NAMED: usize = 12;
/// The metrics of an entry on the first screen.
const FIRST: usize = 3;
/// A card with no more metrics than this shows them all.
const AT_ONCE: usize = 8;

/// The static part of the page.
#[derive(Serialize)]
pub(super) struct Page {
    verdict: Tone,
    /// The reason for the verdict.
    summary: String,
    /// The name of the project.
    project: Option<String>,
    /// The address of the CI job.
    job: Option<String>,
    /// Time and version of the first report, branch and commit.
    facts: Vec<String>,
    cards: Vec<Card>,
    not_measured: Vec<NotMeasured>,
    boards: Vec<LeaderboardView>,
    legend: Vec<Definition>,
}

/// A verdict: its name and its style class.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tone {
    /// The style class, which is also the name of its icon.
    pub class: &'static str,
    /// The name.
    pub word: &'static str,
}

impl Tone {
    const NOT_MEASURED: Tone = Tone { class: "lost", word: "not measured" };
    const NO_GATE: Tone = Tone { class: "open", word: "no gate" };

    fn of(verdict: Verdict) -> Tone {
        Tone { class: verdict.name(), word: verdict.name() }
    }
}

#[derive(Serialize)]
struct NotMeasured {
    slug: String,
    evaluation: String,
    name: String,
    reason: String,
    tone: Tone,
}

/// Several systems on the same data.
#[derive(Serialize)]
struct LeaderboardView {
    slug: String,
    title: String,
    figures: Vec<Figure>,
}

/// One report.
#[derive(Serialize)]
struct Card {
    slug: String,
    evaluation: String,
    name: String,
    tone: Tone,
    facts: Vec<String>,
    interval_heading: String,
    against: Option<String>,
    /// True if a change carries a p-value.
    tested: bool,
    /// The metrics on the first screen.
    first: Vec<Row>,
    /// The slices that rules of the gate are about.
    gated: Vec<String>,
    /// The metrics that matter, and those that a reader can open.
    rows: Vec<Row>,
    more: Vec<Row>,
    figures: Vec<Figure>,
    parts: Vec<Part>,
    flips: Option<Flips>,
    failed: Vec<CheckView>,
    /// The worst items behind the failed rules.
    worst: Vec<Worst>,
    undecided: Vec<CheckView>,
    passed: Vec<CheckView>,
    controls: Vec<ControlView>,
    /// Warnings, and the items without an answer.
    notes: Vec<String>,
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
    /// The counts of a rate, such as `98 of 183`.
    count: Option<String>,
    n: u64,
    notes: Vec<String>,
    bar: Option<Bar>,
    baseline: String,
    change: Option<Change>,
    /// The part of the items that the gate looks at, where the value is of that part.
    slice: Option<String>,
}

/// The change of a metric.
#[derive(Debug, Serialize)]
pub struct Change {
    /// The amount; none if nothing moved.
    amount: Option<String>,
    /// The direction, which is also its style class.
    word: &'static str,
    /// Interval and p-value.
    detail: Option<String>,
    /// True if chance is ruled out; only then the change has a colour.
    certain: bool,
}

impl Change {
    /// A change; none if one of the two values is undefined.
    pub fn of(amount: Option<f64>, better: Better) -> Option<Change> {
        let (amount, word) = (amount?, Direction::of(amount?, better).name());
        Some(Change {
            amount: (amount != 0.0).then(|| signed(amount)),
            word,
            detail: None,
            certain: false,
        })
    }

    /// The change of a comparison, certain if its interval does not hold 0.
    pub fn of_delta(delta: &Delta) -> Option<Change> {
        let change = Change::of(delta.delta, delta.better)?;
        Some(Change { certain: is_significant(delta), ..change })
    }
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

/// The items that changed over all metrics.
#[derive(Serialize)]
struct Flips {
    worse: usize,
    better: usize,
    rows: Vec<Flip>,
}

/// The items that changed on one metric.
#[derive(Debug, Serialize)]
pub struct Flip {
    id: String,
    legend: Option<&'static str>,
    worse: Names,
    better: Names,
}

impl Flip {
    /// The items of a change, linked below an anchor; none if no item changed.
    pub fn of(delta: &Delta, anchor: &str) -> Option<Flip> {
        (!is_still(delta)).then(|| Flip {
            id: delta.metric.to_string(),
            legend: definition(&delta.metric),
            worse: names(&delta.worsened, anchor),
            better: names(&delta.improved, anchor),
        })
    }
}

/// The first few items as links, and the number of all.
#[derive(Debug, Serialize)]
struct Names {
    total: usize,
    first: Vec<Link>,
    more: usize,
}

#[derive(Debug, Serialize)]
struct Link {
    name: String,
    target: String,
}

#[derive(Serialize)]
struct CheckView {
    tone: Tone,
    name: String,
    reason: String,
    /// The numbers of a rule that did not pass.
    numbers: Option<Numbers>,
    items: Names,
    /// The address of the list of all its items.
    list: String,
}

#[derive(Serialize)]
struct ControlView {
    name: String,
    ok: bool,
    expected: String,
    found: Vec<String>,
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

/// The anchors of the reports and then of the entries without one: the evaluation, and the characters
/// of the name that an address can hold.
pub(super) fn slugs(check: &CheckReport) -> Vec<String> {
    let reports = check.reports.iter().map(|report| (&report.evaluation, &report.name));
    let others = check.not_measured.iter().map(|entry| (&entry.evaluation, &entry.name));
    let mut taken = BTreeSet::new();
    reports
        .chain(others)
        .map(|(evaluation, name)| {
            let name = format!("{evaluation}-{name}");
            let stem: String = name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
                .take(72)
                .collect();
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
    let (of_reports, of_others) = slugs.split_at(check.reports.len().min(slugs.len()));
    let facts = check.reports.first().map(|report| {
        let environment = &report.environment;
        let mut facts = vec![moment(&environment.started), format!("karat {}", environment.karat)];
        let source = check.source.as_ref();
        facts.extend(
            source.and_then(|source| source.branch.as_ref()).map(|one| format!("branch {one}")),
        );
        facts.extend(environment.commit.as_ref().map(|commit| format!("commit {commit}")));
        facts
    });
    Page {
        verdict: match check.verdict {
            Some(verdict) => Tone::of(verdict),
            None if check.not_measured.is_empty() => Tone::NO_GATE,
            None => Tone::NOT_MEASURED,
        },
        summary: summary(check),
        project: check.source.as_ref().and_then(|source| source.project.clone()),
        job: check.source.as_ref().and_then(|source| source.job.clone()),
        facts: facts.unwrap_or_default(),
        cards: check
            .reports
            .iter()
            .zip(of_reports)
            .map(|(report, slug)| card(report, slug, &check.reports))
            .collect(),
        not_measured: check
            .not_measured
            .iter()
            .zip(of_others)
            .map(|(entry, slug)| NotMeasured {
                slug: slug.clone(),
                evaluation: entry.evaluation.to_string(),
                name: entry.name.clone(),
                reason: entry.reason.clone(),
                tone: Tone::NOT_MEASURED,
            })
            .collect(),
        boards: check
            .leaderboards
            .iter()
            .enumerate()
            .map(|(at, table)| LeaderboardView {
                slug: format!("leaderboard-{}", at + 1),
                title: match &table.slice {
                    Some(slice) => format!("{} ({slice}) on {}", table.metric, table.dataset.id),
                    None => format!("{} on {}", table.metric, table.dataset.id),
                },
                figures: leaderboard(table),
            })
            .collect(),
        legend: legend(check),
    }
}

fn card(report: &Report, slug: &str, all: &[Report]) -> Card {
    let checks = |verdict: Verdict| -> Vec<CheckView> {
        // Controls that passed have a list of their own.
        select::checks(report, verdict)
            .filter(|check| verdict != Verdict::Pass || check.rule != "control")
            .map(|check| check_view(check, report, slug))
            .collect()
    };
    let shown = |metric: &Measured| row(metric, select::delta(report, &metric.id));
    let gated = gated(report);
    let at_once = |metric: &Measured| {
        let id = metric.id.as_str();
        let leads = || registry::leading().contains(&metric.id);
        report.metrics.len() <= AT_ONCE || gated.contains(id) || leads()
    };
    Card {
        slug: slug.to_owned(),
        evaluation: report.evaluation.to_string(),
        name: report.label().into_owned(),
        tone: report.gate.as_ref().map_or(Tone::NO_GATE, |gate| Tone::of(gate.verdict)),
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
        first: first(report).into_iter().map(|metric| gated_row(report, metric)).collect(),
        gated: gated_slices(report),
        figures: figures(report, slug, all),
        parts: parts(report),
        flips: flips(report, slug),
        failed: checks(Verdict::Fail),
        worst: rules::worst(report, slug),
        undecided: checks(Verdict::Inconclusive),
        passed: checks(Verdict::Pass),
        controls: report.controls.iter().map(control_view).collect(),
        notes: unanswered(report).into_iter().chain(report.warnings.iter().cloned()).collect(),
        latency: report.environment.latency_ms.map(|latency| {
            let [p50, p90, p99, max] =
                [latency.p50, latency.p90, latency.p99, latency.max].map(|ms| format!("{ms:.2}"));
            format!("Latency in ms: p50 {p50}, p90 {p90}, p99 {p99}, max {max} (n = {})", latency.n)
        }),
        items: report.items.len(),
        runs: report.runs,
        conventions: report.conventions.clone(),
        environment: environment(report),
    }
}

/// The metrics of the gate.
fn gated(report: &Report) -> BTreeSet<&str> {
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    checks.map(|check| check.metric.as_str()).collect()
}

/// The metrics of the first screen: those that failed, then the leading ones.
fn first(report: &Report) -> Vec<&Measured> {
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    let failed = checks.filter(|check| check.verdict != Verdict::Pass).map(|check| &*check.metric);
    let leading = registry::leading().iter().map(|id| id.as_str());
    let all = report.metrics.iter().map(|metric| metric.id.as_str());
    let mut chosen: Vec<&Measured> = Vec::new();
    for id in failed.chain(leading).chain(all) {
        if let Some(metric) = report.metric(id)
            && chosen.len() < FIRST
            && chosen.iter().all(|known| known.id != id)
        {
            chosen.push(metric);
        }
    }
    chosen
}

/// A metric as the gate sees it: over the slice of its rules, where they have one.
fn gated_row(report: &Report, metric: &Measured) -> Row {
    let id = metric.id.as_str();
    let over = select::gated_slice(report, id)
        .and_then(|slice| Some((slice, select::measured(report, id, Some(slice))?)));
    match over {
        None => row(metric, select::delta(report, id)),
        Some((slice, part)) => Row {
            slice: Some(slice.to_owned()),
            ..row(part, select::delta_over(report, id, Some(slice)))
        },
    }
}

/// The slices that rules of the gate are about.
fn gated_slices(report: &Report) -> Vec<String> {
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    let slices: BTreeSet<&String> = checks.filter_map(|check| check.slice.as_ref()).collect();
    slices.into_iter().cloned().collect()
}

fn facts(report: &Report) -> Vec<String> {
    let system = &report.system;
    let mut name = system.title();
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

fn row(metric: &Measured, delta: Option<&Delta>) -> Row {
    let baseline = delta.and_then(|delta| delta.before);
    let mut notes = Vec::new();
    if let Some(reason) = &metric.undefined {
        notes.push(format!("undefined: {reason}"));
    }
    if metric.left_out > 0 && metric.value.is_some() {
        let items = usize::try_from(metric.left_out).unwrap_or(usize::MAX);
        notes.push(format!("undefined on {}, left out", count(items, "item")));
    }
    if metric.per_run.len() > 1 {
        let runs: Vec<String> = metric.per_run.iter().map(|run| optional(*run)).collect();
        notes.push(format!("runs: {}", runs.join(", ")));
    }
    Row {
        id: metric.id.to_string(),
        legend: definition(&metric.id),
        better: metric.better,
        value: optional(metric.value),
        interval: range(metric.interval.as_ref(), " – "),
        method: metric.interval.as_ref().map(|interval| method(&interval.method)),
        count: ratio(metric),
        n: metric.n,
        notes,
        bar: Bar::new(metric, baseline),
        baseline: delta.map_or_else(|| NONE.to_owned(), |delta| optional(delta.before)),
        change: delta.and_then(change),
        slice: None,
    }
}

fn definition(id: &str) -> Option<&'static str> {
    registry::find(id).map(|metric| metric.id)
}

fn is_still(delta: &Delta) -> bool {
    delta.improved.is_empty() && delta.worsened.is_empty()
}

fn change(delta: &Delta) -> Option<Change> {
    let change = Change::of(delta.delta, delta.better)?;
    if change.amount.is_none() && is_still(delta) {
        return Some(change);
    }
    let interval = delta.interval.as_ref().map(|interval| {
        format!("{} to {}", minus_or_plus(interval.low), minus_or_plus(interval.high))
    });
    let interval = interval.or_else(|| delta.no_interval.clone());
    let p = delta.p_holm.map(|p| match p_value(p) {
        text if text.starts_with('<') => {
            format!("p\u{a0}(Holm)\u{a0}{}", text.replace(' ', "\u{a0}"))
        }
        text => format!("p\u{a0}(Holm)\u{a0}=\u{a0}{text}"),
    });
    let detail: Vec<String> = interval.into_iter().chain(p).collect();
    Some(Change {
        amount: delta.delta.map(signed),
        detail: (!detail.is_empty()).then(|| detail.join(", ")),
        // A change that chance explains has no colour.
        certain: is_significant(delta),
        ..change
    })
}

fn minus_or_plus(value: f64) -> String {
    match bound(value) {
        text if value > 0.0 => format!("+{text}"),
        text => text,
    }
}

/// The changes over the slices of the gate.
fn parts(report: &Report) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for delta in report.comparison.iter().flat_map(|comparison| &comparison.deltas) {
        let Some(slice) = &delta.slice else { continue };
        let row = PartRow {
            id: delta.metric.to_string(),
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
        .filter(|delta| delta.slice.is_none() && !is_still(delta))
        .collect();
    let distinct = |pick: fn(&Delta) -> &[String]| {
        moved.iter().flat_map(|delta| pick(delta)).collect::<BTreeSet<_>>().len()
    };
    Some(Flips {
        worse: distinct(|delta| &delta.worsened),
        better: distinct(|delta| &delta.improved),
        rows: moved.iter().filter_map(|delta| Flip::of(delta, slug)).collect(),
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
        numbers: (check.verdict != Verdict::Pass).then(|| rules::numbers(check, report)).flatten(),
        items,
        list: format!("items-{slug}?show=blamed"),
    }
}

fn control_view(control: &Control) -> ControlView {
    let found = |metric: &Measured| format!("{} {}", metric.id, optional(metric.value));
    ControlView {
        name: control.name.clone(),
        ok: control.ok,
        expected: control.expected.clone(),
        found: control.metrics.iter().map(found).collect(),
    }
}

/// The items without an answer, by class of failure.
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
        let ids: BTreeSet<&str> = ids.map(MetricId::as_str).collect();
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
            // recall@3 before recall@10.
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

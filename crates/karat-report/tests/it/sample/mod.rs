//! Reports to render: a small one with every feature, one with hostile text in every string, and large
//! ones made by a counter. Shared by the tests and by the example.

pub(crate) mod kinds;
pub(crate) mod synthetic;

use std::collections::BTreeMap;

use karat_core::observed::{
    DetectorFinding, Observed, RankedTool, Ranking, ShownCall, Traces, VerdictOutcome, Verdicts,
};
use karat_core::report::{
    Better, CHECK_SCHEMA, Check, CheckReport, Comparison, Control, Count, DatasetRef, Delta,
    Environment, Evaluation, Gate, Interval, Item, ItemError, Kind, Latency, Measured, NotMeasured,
    Report, SCHEMA, Slice, SystemRef, Verdict,
};
use serde_json::{Value, json};

/// A failing, an undecided and a passing report, an entry that could not be measured, and an
/// evaluation that did not run.
pub(crate) fn small() -> CheckReport {
    CheckReport {
        schema: CHECK_SCHEMA.to_owned(),
        source: None,
        verdict: None,
        reports: vec![failing(), undecided(), passing()],
        not_measured: vec![NotMeasured {
            evaluation: Evaluation::Retrieval,
            name: "proxy".to_owned(),
            reason: "the search at http://127.0.0.1:8080/search was not ready: 3 of 12 tools are \
                     missing from its index (files:copy, git:blame, web:fetch)"
                .to_owned(),
        }],
        leaderboards: Vec::new(),
    }
}

/// The same without the entry that could not be measured, so that the verdict is `fail`.
pub(crate) fn failed() -> CheckReport {
    CheckReport { verdict: Some(Verdict::Fail), not_measured: Vec::new(), ..small() }
}

/// A check of one report.
pub(crate) fn single(report: Report) -> CheckReport {
    CheckReport::of(vec![report])
}

pub(crate) fn interval(low: f64, high: f64, method: &str) -> Option<Interval> {
    Some(Interval { low, high, level: 0.95, method: method.to_owned() })
}

pub(crate) fn measured(id: &str, value: f64, n: u64, ends: Option<Interval>) -> Measured {
    let better = karat_metrics::registry::find(id).map_or(Better::Higher, |m| m.better.into());
    Measured {
        id: id.into(),
        value: Some(value),
        n,
        better,
        per_run: vec![Some(value)],
        interval: ends,
        count: None,
        undefined: None,
        left_out: 0,
    }
}

fn undefined(id: &str, reason: &str) -> Measured {
    let undefined = Some(reason.to_owned());
    Measured { value: None, undefined, per_run: vec![None], ..measured(id, 0.0, 0, None) }
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn names(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

pub(crate) fn environment() -> Environment {
    Environment {
        karat: "0.1.0".to_owned(),
        os: "linux x86_64".to_owned(),
        started: "2026-07-28T09:30:00Z".to_owned(),
        duration_ms: 1834,
        latency_ms: Some(Latency { n: 4, p50: 1.25, p90: 3.5, p99: 9.75, max: 9.75 }),
        latency_bins: vec![],
        commit: Some("4f2a91c (with changes)".to_owned()),
        isolation: vec![],
    }
}

pub(crate) fn report(kind: Kind, name: &str, metrics: Vec<Measured>, items: Vec<Item>) -> Report {
    Report {
        schema: SCHEMA.to_owned(),
        evaluation: kind.evaluation(),
        kind,
        name: name.to_owned(),
        dataset: DatasetRef {
            id: "tools".to_owned(),
            version: "v1".to_owned(),
            digest: format!("sha256:{}", "0123456789abcdef".repeat(4)),
        },
        contents: None,
        system: SystemRef {
            kind: "builtin".to_owned(),
            name: name.to_owned(),
            version: None,
            settings: BTreeMap::new(),
        },
        runs: 1,
        seed: 7,
        conventions: map(&[("ties", "greater id first"), ("undefined", "left out of means")]),
        metrics,
        slices: Vec::new(),
        items,
        controls: Vec::new(),
        comparison: None,
        gate: None,
        warnings: Vec::new(),
        environment: environment(),
    }
}

pub(crate) fn delta(
    id: &str,
    before: f64,
    after: f64,
    improved: &[&str],
    worsened: &[&str],
) -> Delta {
    let better = karat_metrics::registry::find(id).map_or(Better::Higher, |m| m.better.into());
    let change = after - before;
    Delta {
        metric: id.into(),
        slice: None,
        before: Some(before),
        after: Some(after),
        delta: Some(change),
        better,
        interval: interval(change - 0.2, change + 0.1, "bootstrap"),
        no_interval: None,
        p_value: Some(0.02),
        p_holm: Some(0.04),
        test: Some("sign_flip_exact".to_owned()),
        pairs: 4,
        improved: names(improved),
        worsened: names(worsened),
        lost: Vec::new(),
        gained: Vec::new(),
    }
}

pub(crate) fn check(
    metric: &str,
    rule: &str,
    threshold: f64,
    verdict: Verdict,
    reason: &str,
) -> Check {
    Check {
        metric: metric.to_owned(),
        slice: None,
        rule: rule.to_owned(),
        threshold: Some(threshold),
        value: Some(0.5),
        baseline: Some(0.75),
        verdict,
        reason: reason.to_owned(),
        items: Vec::new(),
    }
}

pub(crate) fn control(name: &str, expected: &str, mrr: f64, ok: bool) -> Control {
    Control {
        name: name.to_owned(),
        expected: expected.to_owned(),
        metrics: vec![measured("mrr", mrr, 4, None)],
        ok,
    }
}

fn query(id: &str, scores: [Option<f64>; 3], ranking: Ranking) -> Item {
    let metrics = ["hard_negative_rate", "mrr", "recall@5"];
    Item {
        id: id.to_owned(),
        group: Some("files".to_owned()),
        tags: map(&[("kind", if id < "q-3" { "direct" } else { "paraphrase" }), ("split", "test")]),
        metrics: metrics.iter().map(|id| (*id).into()).zip(scores).collect(),
        observed: Some(Observed::Ranking(ranking)),
        ..Item::default()
    }
}

/// Retrieval: worse than the baseline, a failed control, an unanswered query.
pub(crate) fn failing() -> Report {
    let ranked = |rows: &[(&str, f64, Option<u8>)]| -> Option<Vec<RankedTool>> {
        let tool = |(id, score, relevance): &(&str, f64, Option<u8>)| RankedTool {
            tool_id: (*id).to_owned(),
            score: Some(*score),
            relevance: *relevance,
        };
        Some(rows.iter().map(tool).collect())
    };
    let asked = |query: &str| Ranking { query: query.to_owned(), ..Ranking::default() };
    let mut unanswered = query("q-4", [None, None, None], asked("who changed this line"));
    unanswered.error = Some(ItemError {
        class: "timeout".to_owned(),
        message: "no answer within 30 s".to_owned(),
    });
    let items = vec![
        query(
            "q-1",
            [Some(0.0), Some(1.0), Some(1.0)],
            Ranking {
                first_right: Some(1),
                ranked: ranked(&[("files:read", 9.5, Some(2)), ("files:stat", 4.25, None)]),
                ..asked("read a file")
            },
        ),
        query(
            "q-2",
            [Some(1.0), Some(0.5), Some(0.5)],
            Ranking {
                first_right: Some(2),
                outranked_by: names(&["files:move"]),
                missed: names(&["shell:run"]),
                ranked: ranked(&[("files:move", 7.5, Some(0)), ("files:copy", 7.25, Some(2))]),
                ..asked("copy a file elsewhere")
            },
        ),
        query(
            "q-3",
            [None, Some(0.0), Some(0.0)],
            Ranking {
                missed: names(&["web:fetch"]),
                ranked: ranked(&[]),
                ..asked("show me what is on the page")
            },
        ),
        unanswered,
    ];
    let metrics = vec![
        measured("recall@5", 0.5, 3, interval(0.125, 0.875, "bootstrap")),
        measured("mrr", 0.5, 3, interval(0.0, 1.0, "bootstrap")),
        Measured {
            count: Some(Count::independent(1, 2)),
            left_out: 1,
            ..measured("hard_negative_rate", 0.5, 2, interval(0.095, 0.905, "wilson"))
        },
    ];
    let mut slice_delta = delta("recall@5", 0.75, 0.5, &[], &["q-2"]);
    slice_delta.slice = Some("split=test".to_owned());
    let mut failed = check(
        "recall@5",
        "max_drop",
        0.02,
        Verdict::Fail,
        "recall@5 0.7500 → 0.5000: worse by 0.2500, more than the allowed 0.02: q-2, q-3",
    );
    failed.slice = Some("split=test".to_owned());
    failed.items = names(&["q-2", "q-3"]);
    let mut control_check = check(
        "shuffled",
        "control",
        0.0,
        Verdict::Fail,
        "shuffled: mrr 0.625, expected below 0.500; the harness cannot be trusted",
    );
    control_check.threshold = None;
    Report {
        slices: ["direct", "paraphrase"]
            .map(|value| Slice {
                by: "kind".to_owned(),
                value: value.to_owned(),
                metrics: vec![measured("recall@5", 0.75, 2, interval(0.2, 1.0, "bootstrap"))],
            })
            .to_vec(),
        controls: vec![
            control("oracle", "mrr, ndcg@10 and map are 1", 1.0, true),
            control("shuffled", "mrr is below 0.500", 0.625, false),
        ],
        comparison: Some(Comparison {
            against: "the baseline of 2026-07-01, karat 0.1.0".to_owned(),
            deltas: vec![
                delta("recall@5", 0.75, 0.5, &[], &["q-2", "q-3"]),
                delta("mrr", 0.5, 0.5, &["q-1"], &["q-3"]),
                delta("hard_negative_rate", 1.0, 0.5, &["q-1"], &[]),
                slice_delta,
            ],
            ..Comparison::default()
        }),
        gate: Some(Gate {
            verdict: Verdict::Fail,
            checks: vec![
                failed,
                control_check,
                check("mrr", "min", 0.4, Verdict::Pass, "mrr 0.5000 ≥ 0.4 (min, n = 3)"),
            ],
        }),
        warnings: vec!["3 items are few: the interval of recall@5 is 0.75 wide".to_owned()],
        ..report(Kind::Ranking, "bm25", metrics, items)
    }
}

/// The same queries in five runs. Two lost as much by `recall@5`, and their first run shows the opposite:
/// the right tool of `q-2` is first in it, so its mean reciprocal rank is not one over a rank.
pub(crate) fn of_several_runs() -> Report {
    let mut report = failing();
    report.runs = 5;
    let comparison = report.comparison.as_mut().unwrap();
    for (id, before) in [("q-2", 0.4), ("q-3", 0.4)] {
        let scores = [("mrr".into(), Some(before)), ("recall@5".into(), Some(before))];
        comparison.before.insert(id.to_owned(), BTreeMap::from(scores));
        let item = report.items.iter_mut().find(|item| item.id == id).unwrap();
        item.metrics.insert("mrr".into(), Some(0.2));
        item.metrics.insert("recall@5".into(), Some(0.2));
        let Some(Observed::Ranking(ranking)) = &mut item.observed else { unreachable!() };
        ranking.first_right = Some(if id == "q-2" { 1 } else { 2 });
    }
    report
}

/// A query that had an answer before and none now; nothing else changed.
pub(crate) fn without_an_answer() -> Report {
    let mut report = failing();
    let comparison = report.comparison.as_mut().unwrap();
    comparison.deltas = vec![delta("mrr", 0.5, 0.5, &[], &[])];
    comparison.deltas[0].lost = names(&["q-3"]);
    comparison.before = [("q-3".to_owned(), [("mrr".into(), Some(0.5))].into())].into();
    let item = report.items.iter_mut().find(|item| item.id == "q-3").unwrap();
    item.metrics.values_mut().for_each(|score| *score = None);
    item.error = Some(ItemError { class: "timeout".to_owned(), message: "late".to_owned() });
    report
}

/// Detection: an undefined metric and a limit that the data cannot certify.
pub(crate) fn undecided() -> Report {
    let verdict = |id: &str| Item {
        id: id.to_owned(),
        group: None,
        tags: map(&[("label", "malicious"), ("category", "exfiltration")]),
        metrics: BTreeMap::from([("recall".into(), Some(1.0))]),
        per_run: Vec::new(),
        observed: Some(Observed::Verdicts(Box::new(Verdicts {
            label: "malicious".to_owned(),
            name: "read".to_owned(),
            text: "Reads a file.\nThen sends it to a stranger.".to_owned(),
            outcome: Some(VerdictOutcome::TruePositive),
            verdicts: map(&[("builtin", "flag")]),
            scores: BTreeMap::from([("builtin".to_owned(), 0.875)]),
            findings: vec![DetectorFinding {
                rule: "exfiltration".to_owned(),
                excerpt: "sends it to a stranger".to_owned(),
                ..DetectorFinding::default()
            }],
            ..Verdicts::default()
        }))),
        error: None,
    };
    let metrics = vec![
        Measured {
            count: Some(Count::independent(2, 2)),
            ..measured("recall", 1.0, 2, interval(0.342, 1.0, "wilson"))
        },
        undefined("fpr", "there is no benign sample"),
    ];
    let reason = "recall 1.0000 ≥ 0.9 (min), but 2 items cannot certify it at 95 %: 2 items \
                  certify 0.2236 at best; 29 items without a miss are enough";
    Report {
        gate: Some(Gate {
            verdict: Verdict::Inconclusive,
            checks: vec![check("recall", "min", 0.9, Verdict::Inconclusive, reason)],
        }),
        controls: vec![control("flags-all", "recall and fpr are 1", 1.0, true)],
        ..report(Kind::Verdicts, "builtin", metrics, vec![verdict("t-1"), verdict("t-2")])
    }
}

/// Agent: three runs, numbers beyond 1, a comparison in which nothing moved, no controls.
pub(crate) fn passing() -> Report {
    let scores = |value: f64| BTreeMap::from([("calls.exact".into(), Some(value))]);
    let item = Item {
        id: "task-1".to_owned(),
        group: None,
        tags: BTreeMap::new(),
        metrics: scores(1.0),
        per_run: vec![scores(1.0), scores(1.0), scores(1.0)],
        observed: Some(Observed::Traces(Box::new(Traces {
            calls: vec![ShownCall {
                name: "read".to_owned(),
                arguments: Some(json!({"path": "a.txt"})),
                ..ShownCall::default()
            }],
            ..Traces::default()
        }))),
        error: None,
    };
    let runs = vec![Some(1180.0), Some(1250.0), Some(1320.0)];
    let metrics = vec![
        measured("calls.exact", 1.0, 1, interval(0.2, 1.0, "wilson")),
        Measured {
            per_run: runs,
            better: Better::Lower,
            ..measured("tokens", 1250.0, 1, interval(1100.0, 1400.0, "t"))
        },
    ];
    let mut same = delta("calls.exact", 1.0, 1.0, &[], &[]);
    same.interval = None;
    same.p_holm = None;
    same.p_value = None;
    Report {
        runs: 3,
        comparison: Some(Comparison {
            against: "the baseline".to_owned(),
            deltas: vec![same],
            ..Comparison::default()
        }),
        gate: Some(Gate {
            verdict: Verdict::Pass,
            checks: vec![check(
                "calls.exact",
                "min",
                0.9,
                Verdict::Pass,
                "calls.exact 1.0000 ≥ 0.9 (min, n = 1)",
            )],
        }),
        environment: Environment { latency_ms: None, commit: None, ..environment() },
        ..report(Kind::Traces, "traces", metrics, vec![item])
    }
}

/// Text that a stranger may write into a name, a description or a message.
pub(crate) const HOSTILE: [&str; 16] = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"><svg onload=alert(3)>",
    "' onfocus='alert(4)' autofocus='",
    "[click](javascript:alert(5))",
    "javascript:alert(6)",
    "\u{1b}[31mred\u{1b}[0m",
    "abc\u{202e}fed\u{2066}x\u{2069}",
    "nul\u{0}l\u{b}\u{c}\u{7f}\u{9b}",
    "]]><!-- --><![CDATA[",
    "a | b \\| c",
    "`code` ``more`` ``` all",
    "@octocat #1 GH-2 https://example.org www.example.org :tada:",
    "line\nbreak\r\n# heading\n- list\u{2028}u\u{2029}p",
    "{{ page }} {% raw %} ${x}",
    "zero\u{200b}width\u{feff}\u{fffe}\u{e0041}tag &lt;b&gt; %3Cscript%3E",
];

/// A check with hostile text in every string and in the keys of every map, except where the type is
/// an enum.
pub(crate) fn poisoned(check: &CheckReport) -> CheckReport {
    let mut value = serde_json::to_value(check).unwrap();
    poison(&mut value, &mut 0);
    serde_json::from_value(value).unwrap()
}

/// [`small`] with hostile text.
pub(crate) fn hostile() -> CheckReport {
    poisoned(&small())
}

/// The fields with a closed set of values, and those that tell kinds apart.
const CLOSED: [&str; 10] = [
    "schema",
    "kind",
    "evaluation",
    "better",
    "verdict",
    "status",
    "severity",
    "outcome",
    "change",
    "by",
];
/// The maps, whose keys come from outside too.
const MAPS: [&str; 13] = [
    "tags",
    "settings",
    "conventions",
    "metrics",
    "verdicts",
    "scores",
    "failures",
    "inputs",
    "endings",
    "tools",
    "accepts",
    "arguments",
    "undefined",
];

fn poison(value: &mut Value, next: &mut usize) {
    let mut hostile = |text: &str| {
        *next += 1;
        // With a number to tell the strings apart by.
        format!("{text}{}{next}", HOSTILE[*next % HOSTILE.len()])
    };
    match value {
        Value::String(text) => *text = hostile(""),
        Value::Array(values) => values.iter_mut().for_each(|value| poison(value, next)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                if let (true, Value::Object(map)) = (MAPS.contains(&key.as_str()), &mut *value) {
                    let renamed =
                        std::mem::take(map).into_iter().map(|(key, value)| (hostile(&key), value));
                    *map = renamed.collect();
                }
            }
            for (key, value) in fields.iter_mut() {
                if !CLOSED.contains(&key.as_str()) || value.is_object() {
                    poison(value, next);
                }
            }
        }
        _ => {}
    }
}

//! Reports to render: a small one with every shape, one with hostile text in every string, and large
//! ones made by a counter. Shared by the tests and by the example.

pub(crate) mod kinds;
pub(crate) mod synthetic;

use std::collections::BTreeMap;

use karat_core::report::{
    Better, CHECK_SCHEMA, Check, CheckReport, Comparison, Control, Count, DatasetRef, Delta,
    Environment, Evaluation, Gate, Interval, Item, ItemError, Latency, Measured, NotMeasured,
    NotRun, Report, SCHEMA, Slice, SystemRef, Verdict,
};
use serde_json::{Value, json};

/// A failing, an undecided and a passing report, an entry that could not be measured, and an
/// evaluation that did not run.
pub(crate) fn small() -> CheckReport {
    CheckReport {
        schema: CHECK_SCHEMA.to_owned(),
        verdict: None,
        reports: vec![failing(), undecided(), passing()],
        not_measured: vec![NotMeasured {
            evaluation: Evaluation::Retrieval,
            name: "proxy".to_owned(),
            reason: "the search at http://127.0.0.1:8080/search was not ready: 3 of 12 tools are \
                     missing from its index (files:copy, git:blame, web:fetch)"
                .to_owned(),
        }],
        not_run: vec![NotRun {
            evaluation: Evaluation::Server,
            reason: "karat.toml has no [[server]] entry".to_owned(),
        }],
    }
}

/// The same without the entry that could not be measured, so that the verdict is `fail`.
pub(crate) fn failed() -> CheckReport {
    CheckReport { verdict: Some(Verdict::Fail), not_measured: Vec::new(), ..small() }
}

pub(crate) fn interval(low: f64, high: f64, method: &str) -> Option<Interval> {
    Some(Interval { low, high, level: 0.95, method: method.to_owned() })
}

pub(crate) fn measured(id: &str, value: f64, n: u64, ends: Option<Interval>) -> Measured {
    let better = karat_metrics::registry::find(id).map_or(Better::Higher, |m| m.better.into());
    Measured {
        id: id.to_owned(),
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

pub(crate) fn report(
    evaluation: Evaluation,
    name: &str,
    metrics: Vec<Measured>,
    items: Vec<Item>,
) -> Report {
    Report {
        schema: SCHEMA.to_owned(),
        evaluation,
        name: name.to_owned(),
        dataset: DatasetRef {
            id: "tools".to_owned(),
            version: "v1".to_owned(),
            digest: format!("sha256:{}", "0123456789abcdef".repeat(4)),
        },
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
        metric: id.to_owned(),
        slice: None,
        before: Some(before),
        after: Some(after),
        delta: Some(change),
        better,
        interval: interval(change - 0.2, change + 0.1, "bootstrap"),
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

fn query(id: &str, query: &str, scores: [Option<f64>; 3], observed: Value) -> Item {
    let metrics = ["hard_negative_rate", "mrr", "recall@5"];
    let mut observed = observed;
    observed["query"] = json!(query);
    Item {
        id: id.to_owned(),
        group: Some("files".to_owned()),
        tags: map(&[("kind", if id < "q-3" { "direct" } else { "paraphrase" }), ("split", "test")]),
        metrics: metrics.iter().map(|id| (*id).to_owned()).zip(scores).collect(),
        per_run: Vec::new(),
        observed,
        error: None,
    }
}

/// Retrieval: worse than the baseline, a control that did not land, an unanswered query.
fn failing() -> Report {
    let ranked = |rows: &[(&str, f64, Option<u8>)]| -> Vec<Value> {
        rows.iter()
            .map(|(id, score, grade)| json!({"tool_id": id, "score": score, "relevance": grade}))
            .collect()
    };
    let mut unanswered = query("q-4", "who changed this line", [None, None, None], json!({}));
    unanswered.error = Some(ItemError {
        class: "timeout".to_owned(),
        message: "no answer within 30 s".to_owned(),
    });
    let items = vec![
        query(
            "q-1",
            "read a file",
            [Some(0.0), Some(1.0), Some(1.0)],
            json!({
                "first_right": 1, "outranked_by": [], "missed": [],
                "ranked": ranked(&[("files:read", 9.5, Some(2)), ("files:stat", 4.25, None)]),
            }),
        ),
        query(
            "q-2",
            "copy a file elsewhere",
            [Some(1.0), Some(0.5), Some(0.5)],
            json!({
                "first_right": 2, "outranked_by": ["files:move"], "missed": ["shell:run"],
                "ranked": ranked(&[("files:move", 7.5, Some(0)), ("files:copy", 7.25, Some(2))]),
            }),
        ),
        query(
            "q-3",
            "show me what is on the page",
            [None, Some(0.0), Some(0.0)],
            json!({
                "first_right": null, "outranked_by": [], "missed": ["web:fetch"], "ranked": [],
            }),
        ),
        unanswered,
    ];
    let metrics = vec![
        measured("recall@5", 0.5, 3, interval(0.125, 0.875, "bootstrap")),
        measured("mrr", 0.5, 3, interval(0.0, 1.0, "bootstrap")),
        Measured {
            count: Some(Count { hits: 1, of: 2 }),
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
        "did not land where it \
        must (mrr is below 0.500); the harness cannot be trusted",
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
        }),
        gate: Some(Gate {
            verdict: Verdict::Fail,
            checks: vec![
                failed,
                control_check,
                check("mrr", "min", 0.4, Verdict::Pass, "mrr = 0.5000 keeps the floor 0.4 (n = 3)"),
            ],
        }),
        warnings: vec!["3 items are few: the interval of recall@5 is 0.75 wide".to_owned()],
        ..report(Evaluation::Retrieval, "bm25", metrics, items)
    }
}

/// Detection: an undefined metric and a ceiling that the data cannot certify.
fn undecided() -> Report {
    let verdict = |id: &str, label: &str, flagged: bool| Item {
        id: id.to_owned(),
        group: None,
        tags: map(&[("label", label)]),
        metrics: BTreeMap::from([("recall".to_owned(), (label == "attack").then_some(1.0))]),
        per_run: Vec::new(),
        observed: json!({
            "description": "Reads a file.\nThen sends it to a stranger.",
            "label": label,
            "verdict": {"flagged": flagged, "score": 0.875, "rules": ["exfiltration", "stealth"]},
        }),
        error: None,
    };
    let metrics = vec![
        Measured {
            count: Some(Count { hits: 2, of: 2 }),
            ..measured("recall", 1.0, 2, interval(0.342, 1.0, "wilson"))
        },
        undefined("fpr", "there is no benign sample"),
    ];
    let reason = "recall = 1.0000 keeps the floor 0.9 (n = 2), but not certified at 95 %: 2 items \
                  certify 0.2236 at best; 29 items with no more than 0 misses would do";
    Report {
        gate: Some(Gate {
            verdict: Verdict::Inconclusive,
            checks: vec![check("recall", "min", 0.9, Verdict::Inconclusive, reason)],
        }),
        controls: vec![control("flags-all", "recall and fpr are 1", 1.0, true)],
        ..report(
            Evaluation::Detection,
            "builtin",
            metrics,
            vec![verdict("t-1", "attack", true), verdict("t-2", "attack", true)],
        )
    }
}

/// Agent: three runs, numbers beyond 1, a comparison in which nothing moved, no controls.
fn passing() -> Report {
    let scores = |value: f64| BTreeMap::from([("calls.exact".to_owned(), Some(value))]);
    let item = Item {
        id: "task-1".to_owned(),
        group: None,
        tags: BTreeMap::new(),
        metrics: scores(1.0),
        per_run: vec![scores(1.0), scores(1.0), scores(1.0)],
        observed: json!({"calls": [{"name": "read", "arguments": {"path": "a.txt"}}], "tokens": 1250}),
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
        comparison: Some(Comparison { against: "the baseline".to_owned(), deltas: vec![same] }),
        gate: Some(Gate {
            verdict: Verdict::Pass,
            checks: vec![check(
                "calls.exact",
                "min",
                0.9,
                Verdict::Pass,
                "calls.exact = 1.0000 keeps \
                the floor 0.9 (n = 1)",
            )],
        }),
        environment: Environment { latency_ms: None, commit: None, ..environment() },
        ..report(Evaluation::Agent, "traces", metrics, vec![item])
    }
}

/// What a stranger may write into a name, a description or a message.
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

/// [`small`] with hostile text in every string and every name, except where the type is an enum.
pub(crate) fn hostile() -> CheckReport {
    let mut value = serde_json::to_value(small()).unwrap();
    poison(&mut value, &mut 0);
    serde_json::from_value(value).unwrap()
}

/// Hostile text in every value, with the names of fields as they are.
pub(crate) fn poison_values(value: &mut Value, next: &mut usize) {
    match value {
        Value::String(text) => poison_text(text, next),
        Value::Array(values) => values.iter_mut().for_each(|value| poison_values(value, next)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                // What tells kinds and steps apart stays.
                if !["evaluation", "better", "verdict", "kind", "change", "by"]
                    .contains(&key.as_str())
                {
                    poison_values(value, next);
                }
            }
        }
        _ => {}
    }
}

fn poison_text(text: &mut String, next: &mut usize) {
    // Beside the hostile text something to tell the strings apart by.
    *text = format!("{}{next}", HOSTILE[*next % HOSTILE.len()]);
    *next += 1;
}

fn poison(value: &mut Value, next: &mut usize) {
    match value {
        Value::String(text) => poison_text(text, next),
        Value::Array(values) => values.iter_mut().for_each(|value| poison(value, next)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                let closed = ["evaluation", "better"].contains(&key.as_str());
                let verdict = key == "verdict" && !value.is_object();
                let named = ["tags", "settings", "conventions", "observed"].contains(&key.as_str())
                    || (key == "metrics" && value.is_object());
                if !closed && !verdict {
                    poison(value, next);
                }
                if let (true, Value::Object(fields)) = (named, value) {
                    let poisoned = std::mem::take(fields).into_iter().map(|(key, value)| {
                        *next += 1;
                        (format!("{key}{}{next}", HOSTILE[*next % HOSTILE.len()]), value)
                    });
                    *fields = poisoned.collect();
                }
            }
        }
        _ => {}
    }
}

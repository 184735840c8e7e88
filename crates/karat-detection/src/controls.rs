//! The proofs that the harness can fail, on the same data as the measurement.
//!
//! An oracle must be perfect, a detector that flags everything must have a false-positive rate of 1, a
//! silent one a recall of 0, and a list of suspicious words must not do as well as the oracle: a corpus
//! on which it does measures nothing.

use karat_core::journal::{Entry, Outcome};
use karat_core::report::{Control, Measured};
use karat_metrics::{MetricId, metric};

use crate::answer::{Answer, DetectorReport, Verdict};
use crate::dataset::{Dataset, Sample};
use crate::decision::Decision;
use crate::score::headline;

/// Words that a first attempt at a scanner would look for.
const SUSPICIOUS: &[&str] = &[
    "ignore",
    "important",
    "secret",
    "password",
    "token",
    "do not tell",
    "don't tell",
    "~/.ssh",
    "id_rsa",
    ".env",
    "system prompt",
    "base64",
    "must",
    "never",
    "always",
    "silently",
    "override",
];

const RECALL: MetricId = metric!("recall");
const FPR: MetricId = metric!("fpr");

/// Fewer attacks than this prove nothing about a list of words.
const ENOUGH: usize = 20;

/// Runs all controls.
pub(crate) fn run(dataset: &Dataset) -> Vec<Control> {
    let oracle = metrics(dataset, Sample::is_malicious);
    let noisy = metrics(dataset, |_| true);
    let silent = metrics(dataset, |_| false);
    let naive = metrics(dataset, has_suspicious_word);
    // A corpus without one of the classes leaves the other half of a proof undefined, not failed.
    let is = |metrics: &[Measured], id: &MetricId, wanted: f64| {
        metrics
            .iter()
            .filter(|metric| metric.id == *id)
            .all(|metric| metric.value.is_none_or(|value| value == wanted))
    };
    let attacks = dataset.samples.iter().filter(|sample| sample.is_malicious()).count();
    // Where there is nothing to spare, any list that flags enough is perfect.
    let judged = attacks >= ENOUGH && attacks < dataset.samples.len();
    let imperfect = !(is(&naive, &RECALL, 1.0) && is(&naive, &FPR, 0.0));
    vec![
        Control {
            name: "oracle".to_owned(),
            expected: "recall is 1 and fpr is 0".to_owned(),
            ok: is(&oracle, &RECALL, 1.0) && is(&oracle, &FPR, 0.0) && decided(&oracle),
            metrics: oracle,
        },
        Control {
            name: "flags-all".to_owned(),
            expected: "recall, fpr and fpr_hard are 1, so that any ceiling fails".to_owned(),
            ok: [RECALL, FPR, metric!("fpr_hard")].iter().all(|id| is(&noisy, id, 1.0))
                && decided(&noisy),
            metrics: noisy,
        },
        Control {
            name: "silent".to_owned(),
            expected: "recall and fpr are 0, so that any floor fails".to_owned(),
            ok: is(&silent, &RECALL, 0.0) && is(&silent, &FPR, 0.0) && decided(&silent),
            metrics: silent,
        },
        Control {
            name: "word-list".to_owned(),
            expected: format!(
                "a list of words is not perfect (judged from {ENOUGH} attacks on): the corpus asks for more"
            ),
            ok: imperfect || !judged,
            metrics: naive,
        },
    ]
}

/// Returns whether at least one of the rates has a value.
fn decided(metrics: &[Measured]) -> bool {
    metrics.iter().any(|metric| [RECALL, FPR].contains(&metric.id) && metric.value.is_some())
}

fn has_suspicious_word(sample: &Sample) -> bool {
    let mut text = sample.tool.description.to_lowercase();
    for more in [&sample.instructions, &sample.result] {
        text.push_str(&more.as_deref().unwrap_or_default().to_lowercase());
    }
    SUSPICIOUS.iter().any(|word| text.contains(word))
}

/// The way a detector of known answers scores.
fn metrics(dataset: &Dataset, flags: impl Fn(&Sample) -> bool) -> Vec<Measured> {
    let entries: Vec<Entry<Answer>> = dataset
        .samples
        .iter()
        .map(|sample| {
            let report = DetectorReport {
                detector: "control".to_owned(),
                verdict: Some(if flags(sample) { Verdict::Flag } else { Verdict::Pass }),
                ..DetectorReport::default()
            };
            Entry {
                run: 0,
                id: sample.id.clone(),
                nanos: 0,
                outcome: Outcome::Answer(Answer { reports: vec![report] }),
            }
        })
        .collect();
    let mut metrics = headline(dataset, &entries, &Decision::default());
    let shown =
        [RECALL, FPR, metric!("fpr_hard"), metric!("precision"), metric!("f1"), metric!("mcc")];
    metrics.retain(|metric| shown.contains(&metric.id));
    metrics
}

/// A deterministic system proves it: asked again, it answers the same.
pub(crate) fn second_pass(
    entries: &[Entry<Answer>],
    again: impl Fn(&str) -> Option<Answer>,
) -> Control {
    let same = entries.iter().all(|entry| match &entry.outcome {
        Outcome::Answer(answer) => again(&entry.id).as_ref() == Some(answer),
        Outcome::Failure { .. } => false,
    });
    Control {
        name: "second-pass".to_owned(),
        expected: "a second pass gives identical verdicts and evidence".to_owned(),
        metrics: Vec::new(),
        ok: same,
    }
}

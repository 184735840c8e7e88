//! Can the labels of a corpus be read off without understanding it?
//!
//! [`audit`] trains two classifiers on the entries of `train` and `dev` and tries them on those of
//! `test`: one that sees no words (counts, lengths, presence of fields) and one that sees words. The
//! first should do no better than chance: where it does, a scanner can score well for the wrong
//! reason. Without such splits the corpus is cut into five parts by server, and each is judged by a
//! classifier trained on the others. Everything is deterministic.

mod boost;
mod features;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use karat_core::dataset::Digest;
use karat_core::report::Measured;
use karat_io::text::printable;
use karat_metrics::{MetricId, metric};
use serde::Serialize;

use crate::aggregate_metrics::{Ranked, ranking};
use crate::dataset::{Dataset, Sample};

/// The ROC AUC above which the classifier without words is worth a warning.
pub(crate) const SUSPICIOUS: f64 = 0.60;
/// The fewest attacks and benign entries of either part that can be learned from.
const LEAST: usize = 20;
/// The fewest attacks, and entries that resemble them, for which a category has a figure.
const LEAST_OF_CATEGORY: usize = 5;
/// The number of parts of a corpus without splits.
const FOLDS: usize = 5;
/// The most features that are named.
const NAMED: usize = 5;

/// The outcome of the audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shortcuts {
    /// The division into training and test entries.
    pub division: String,
    /// The attacks that were tested.
    pub attacks: usize,
    /// The benign entries that were tested.
    pub benign: usize,
    /// The classifier that sees counts, lengths and the presence of fields.
    pub wordless: Classifier,
    /// The classifier that sees words.
    pub words: Classifier,
}

/// The success of a classifier on entries that it has not seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Classifier {
    /// ROC AUC and recall at ceilings of the false-positive rate.
    pub metrics: Vec<Measured>,
    /// ROC AUC by attack category: its attacks against the hard negatives that resemble it.
    pub categories: BTreeMap<String, Measured>,
    /// The features or words it goes by, the strongest first.
    pub strongest: Vec<String>,
}

impl Classifier {
    /// The ROC AUC over all tested entries.
    pub fn roc_auc(&self) -> Option<&Measured> {
        self.metrics.iter().find(|measured| measured.id == metric!("roc_auc"))
    }
}

impl Shortcuts {
    /// A warning if the labels can be guessed without words.
    pub fn warning(&self) -> Option<String> {
        let auc = self.wordless.roc_auc()?.value.filter(|auc| *auc > SUSPICIOUS)?;
        Some(format!(
            "shortcut: a classifier that sees no words separates attacks from benign entries with ROC \
             AUC {auc:.2} (0.50 is chance), so a scanner can score well for the wrong reason; it \
             goes by: {}",
            self.wordless.strongest.join("; ")
        ))
    }

    /// The outcome as text.
    pub fn lines(&self) -> String {
        let figure = |measured: &Measured| {
            let value = measured.value.map_or("undefined".to_owned(), |auc| format!("{auc:.3}"));
            match &measured.interval {
                Some(interval) => format!("{value} [{:.2}–{:.2}]", interval.low, interval.high),
                None => value,
            }
        };
        let line = |name: &str, classifier: &Classifier| {
            let find = |id: MetricId| classifier.metrics.iter().find(|measured| measured.id == id);
            let auc = find(metric!("roc_auc")).map_or_else(String::new, figure);
            let recall = find(metric!("recall_at_fpr_5pct")).map_or_else(String::new, figure);
            let categories: Vec<String> = classifier
                .categories
                .iter()
                .map(|(name, auc)| format!("{} {}", printable(name), figure(auc)))
                .collect();
            format!(
                "  {name}: ROC AUC {auc}, recall at 5 % false alarms {recall}\n    by category: {}\n    \
                 strongest: {}\n",
                categories.join(", "),
                classifier.strongest.join("; ")
            )
        };
        format!(
            "shortcuts, {} ({} attacks and {} benign entries tested):\n{}{}",
            self.division,
            self.attacks,
            self.benign,
            line("without words", &self.wordless),
            line("with words", &self.words)
        )
    }
}

/// Looks for shortcuts, or says why it cannot.
///
/// Attacks are compared with hard negatives where there are any, and with all benign entries
/// elsewhere: an ordinary definition may well look different.
///
/// # Errors
/// If there are too few entries of either label to learn from.
pub fn audit(dataset: &Dataset) -> Result<Shortcuts, String> {
    let hard = dataset.samples.iter().any(Sample::is_hard_negative);
    let samples: Vec<&Sample> = dataset
        .samples
        .iter()
        .filter(|sample| sample.is_malicious() || !hard || sample.is_hard_negative())
        .collect();
    let (division, parts) = divide(&samples)?;
    let numbers: Vec<Vec<f64>> = samples.iter().map(|sample| features::of(sample)).collect();
    let texts: Vec<Vec<String>> = samples.iter().map(|sample| words::tokens(sample)).collect();
    let truth: Vec<bool> = samples.iter().map(|sample| sample.is_malicious()).collect();

    let mut tested: Vec<usize> = Vec::new();
    let (mut wordless, mut worded) = (Vec::new(), Vec::new());
    let (mut gains, mut weights) = (vec![0.0; features::NAMES.len()], BTreeMap::new());
    for Part { train, test } in &parts {
        let trees = boost::Trees::fit(&numbers, &truth, train);
        wordless.extend(test.iter().map(|place| trees.score(&numbers[*place])));
        for (sum, gain) in gains.iter_mut().zip(&trees.gains) {
            *sum += gain;
        }
        let model = words::Model::fit(&texts, &truth, train);
        worded.extend(test.iter().map(|place| model.score(&texts[*place])));
        for (word, weight) in model.weights() {
            *weights.entry(word.to_owned()).or_insert(0.0) += weight;
        }
        tested.extend(test);
    }
    let judged = Judged { samples: &samples, tested: &tested };
    let attacks = tested.iter().filter(|place| truth[**place]).count();
    Ok(Shortcuts {
        division,
        attacks,
        benign: tested.len() - attacks,
        wordless: judged.classifier(&wordless, strongest(&gains, &numbers, &truth, &tested)),
        words: judged.classifier(&worded, heaviest(weights)),
    })
}

/// Entries to train on and entries to test on, by their places.
struct Part {
    train: Vec<usize>,
    test: Vec<usize>,
}

fn divide(samples: &[&Sample]) -> Result<(String, Vec<Part>), String> {
    let enough = |places: &[usize]| {
        let attacks = places.iter().filter(|place| samples[**place].is_malicious()).count();
        attacks >= LEAST && places.len() - attacks >= LEAST
    };
    let of_split = |names: &[&str]| -> Vec<usize> {
        let wanted = |sample: &Sample| sample.split.as_deref().is_some_and(|s| names.contains(&s));
        (0..samples.len()).filter(|place| wanted(samples[*place])).collect()
    };
    let (train, test) = (of_split(&["train", "dev"]), of_split(&["test"]));
    if enough(&train) && enough(&test) {
        let division = format!("trained on train and dev ({} entries)", train.len());
        return Ok((division, vec![Part { train, test }]));
    }
    let all: Vec<usize> = (0..samples.len()).collect();
    if !enough(&all) {
        return Err(format!(
            "not audited for shortcuts: that takes at least {LEAST} attacks and {LEAST} benign entries"
        ));
    }
    let fold = |place: usize| {
        let Sample { server, id, .. } = samples[place];
        let digest = Digest::of(if server.is_empty() { id } else { server }.as_bytes()).to_string();
        digest.bytes().fold(0_usize, |sum, byte| (sum * 31 + usize::from(byte)) % 1_000_003) % FOLDS
    };
    let parts = (0..FOLDS)
        .map(|number| {
            let (test, train) = all.iter().partition(|place| fold(**place) == number);
            Part { train, test }
        })
        .filter(|part: &Part| !part.test.is_empty() && !part.train.is_empty())
        .collect();
    Ok((format!("each of {FOLDS} parts judged after training on the others"), parts))
}

struct Judged<'a> {
    samples: &'a [&'a Sample],
    tested: &'a [usize],
}

impl Judged<'_> {
    fn classifier(&self, scores: &[f64], strongest: Vec<String>) -> Classifier {
        let metrics = self.metrics(scores, |_| true);
        let categories: BTreeSet<&str> = self
            .tested
            .iter()
            .filter(|place| self.samples[**place].is_malicious())
            .map(|place| self.samples[*place].category.as_str())
            .collect();
        let categories = categories
            .into_iter()
            .filter_map(|category| {
                let of_category = |sample: &Sample| match sample.is_malicious() {
                    true => sample.category == category,
                    false => sample.resembles.as_deref() == Some(category),
                };
                let found = self.metrics(scores, of_category);
                let auc = found.into_iter().find(|measured| measured.id == metric!("roc_auc"))?;
                Some((category.to_owned(), auc))
            })
            .collect();
        Classifier { metrics, categories, strongest }
    }

    /// The metrics of scores over some of the tested entries; none where there are too few.
    fn metrics(&self, scores: &[f64], wanted: impl Fn(&Sample) -> bool) -> Vec<Measured> {
        let ranked: Vec<Ranked<'_>> = self
            .tested
            .iter()
            .zip(scores)
            .filter(|(place, _)| wanted(self.samples[**place]))
            .map(|(place, score)| {
                let sample = self.samples[*place];
                let group = Some(sample.server.as_str()).filter(|server| !server.is_empty());
                Ranked { entry: *place, group, malicious: sample.is_malicious(), score: *score }
            })
            .collect();
        let attacks = ranked.iter().filter(|one| one.malicious).count();
        if attacks < LEAST_OF_CATEGORY || ranked.len() - attacks < LEAST_OF_CATEGORY {
            return Vec::new();
        }
        ranking(&[ranked], 1, 0)
    }
}

/// The features that the trees gained most from, with their means on both sides of the test entries.
fn strongest(gains: &[f64], numbers: &[Vec<f64>], truth: &[bool], tested: &[usize]) -> Vec<String> {
    let mean = |feature: usize, label: bool| {
        let of: Vec<f64> = tested
            .iter()
            .filter(|place| truth[**place] == label)
            .map(|place| numbers[*place][feature])
            .collect();
        of.iter().sum::<f64>() / (of.len().max(1) as f64)
    };
    let total: f64 = gains.iter().sum();
    let mut order: Vec<usize> = (0..gains.len()).filter(|feature| gains[*feature] > 0.0).collect();
    order.sort_by(|a, b| gains[*b].total_cmp(&gains[*a]).then(a.cmp(b)));
    order
        .into_iter()
        .take(NAMED)
        .map(|feature| {
            format!(
                "{} (mean {:.2} in attacks, {:.2} in benign entries; {:.0} % of the gain)",
                features::NAMES[feature],
                mean(feature, true),
                mean(feature, false),
                100.0 * gains[feature] / total
            )
        })
        .collect()
}

/// The words with the largest weights, and the side that they speak for.
fn heaviest(weights: BTreeMap<String, f64>) -> Vec<String> {
    let mut weights: Vec<(String, f64)> = weights.into_iter().collect();
    weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then_with(|| a.0.cmp(&b.0)));
    let side = |weight: f64| if weight > 0.0 { "attack" } else { "benign" };
    let shown = |(word, weight): (String, f64)| format!("{word:?} ({})", side(weight));
    weights.into_iter().take(2 * NAMED).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{HARD_NEGATIVE, Label, Tool};
    use karat_core::report::DatasetRef;
    use serde_json::json;

    /// Entries whose number of parameters is that of `parameters`, half of them attacks.
    fn corpus(entries: usize, parameters: impl Fn(usize, bool) -> usize) -> Dataset {
        let samples = (0..entries).map(|number| {
            let malicious = number % 2 == 0;
            let properties: serde_json::Map<String, serde_json::Value> =
                (0..parameters(number, malicious))
                    .map(|one| (format!("p{one}"), json!({"type": "string"})))
                    .collect();
            let tool = Tool {
                name: format!("tool_{}", number * 7 % 13),
                description: format!("Text number {}.", number * 31 % 101),
                input_schema: Some(json!({"type": "object", "properties": properties})),
                ..Tool::default()
            };
            let category = if malicious { "tool_poisoning" } else { HARD_NEGATIVE };
            Sample {
                label: if malicious { Label::Malicious } else { Label::Benign },
                category: category.to_owned(),
                resembles: (!malicious).then(|| "tool_poisoning".to_owned()),
                split: Some(if number % 4 < 2 { "dev" } else { "test" }.to_owned()),
                ..Sample::plain(format!("e{number:04}"), format!("s{number}"), tool)
            }
        });
        Dataset {
            reference: DatasetRef {
                id: "made".into(),
                version: "v1".into(),
                digest: "sha256:".into(),
            },
            samples: samples.collect(),
            refused: Vec::new(),
            odd: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    #[test]
    fn a_corpus_whose_attacks_have_more_parameters_is_found_out() {
        let found = audit(&corpus(400, |n, attack| 1 + n % 3 + 3 * usize::from(attack))).unwrap();
        let auc = found.wordless.roc_auc().unwrap();
        assert!(auc.value.unwrap() > 0.95 && auc.n == 200, "{auc:?}");
        assert!(
            found
                .wordless
                .strongest
                .iter()
                .any(|one| one.contains("parameter") || one.contains("schema")),
            "{found:?}"
        );
        assert!(found.warning().unwrap().contains("sees no words"));
        assert!(found.wordless.categories["tool_poisoning"].value.unwrap() > 0.95);
        assert!(found.lines().contains("without words: ROC AUC"), "{}", found.lines());
    }

    #[test]
    fn a_corpus_without_a_shortcut_is_not_accused_and_the_audit_repeats() {
        let dataset = corpus(600, |n, _| 1 + (n / 2) * 17 % 5);
        let found = audit(&dataset).unwrap();
        assert_eq!(found.warning(), None, "{found:?}");
        assert_eq!(found, audit(&dataset).unwrap());
    }

    #[test]
    fn without_splits_the_corpus_is_cut_into_parts_and_a_small_one_is_refused() {
        let mut dataset = corpus(200, |n, attack| 1 + n % 3 + 3 * usize::from(attack));
        dataset.samples.iter_mut().for_each(|sample| sample.split = None);
        let found = audit(&dataset).unwrap();
        assert_eq!((found.attacks, found.benign), (100, 100));
        assert!(found.wordless.roc_auc().unwrap().value.unwrap() > 0.95);
        dataset.samples.truncate(30);
        assert!(audit(&dataset).unwrap_err().contains("at least 20 attacks"));
    }
}

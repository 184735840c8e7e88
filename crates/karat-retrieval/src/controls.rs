//! The proofs that the harness can fail, on the same data as the measurement.
//!
//! An oracle must be perfect, a shuffled ranking must be near chance, and the built-in engine with
//! descriptions removed must be worse than with them on every headline metric.

use karat_core::aggregate::better;
use karat_core::journal::{Entry, Outcome};
use karat_core::report::{Control, Item, Measured};
use karat_metrics::stats::random::Draws;
use karat_metrics::stats;

use crate::RetrievalError;
use crate::dataset::Dataset;
use crate::engines::Engine;
use crate::engines::bm25::{Bm25, Fields};
use crate::score::{SPECS, items};
use crate::system::{Ranked, Ranking};

/// The metrics that every control is judged by.
const JUDGED: [&str; 4] = ["recall@5", "mrr", "ndcg@10", "map"];

/// Runs all controls.
pub fn run(dataset: &Dataset, limit: usize, seed: u64) -> Result<Vec<Control>, RetrievalError> {
    let with = Bm25::build(&dataset.tools, Fields::All).map_err(RetrievalError::NotStarted)?;
    let without =
        Bm25::build(&dataset.tools, Fields::NameOnly).map_err(RetrievalError::NotStarted)?;
    let full = metrics(dataset, |query| with.search(query, limit));
    let degraded = metrics(dataset, |query| without.search(query, limit));
    let drops = JUDGED.iter().all(|id| value(&degraded, id) < value(&full, id));

    let oracle = averages(&scored(dataset, |index| {
        let mut labels = dataset.queries[index].labels.clone();
        labels.retain(|label| label.relevance > 0);
        labels.sort_by(|a, b| b.relevance.cmp(&a.relevance).then(a.tool_id.cmp(&b.tool_id)));
        labels.into_iter().map(|label| ranked(&label.tool_id)).collect()
    }));
    let perfect = ["mrr", "ndcg@10", "map"].iter().all(|id| value(&oracle, id) == 1.0);

    let mut draws = Draws::from_seed(seed);
    let mut order: Vec<&str> = dataset.tools.iter().map(|tool| tool.tool_id.as_str()).collect();
    let shuffled = averages(&scored(dataset, |_| {
        let drawn = limit.min(order.len());
        for place in 0..drawn {
            let other = place + draws.index(order.len() - place);
            order.swap(place, other);
        }
        order[..drawn].iter().map(|id| ranked(id)).collect()
    }));
    // A list of `limit` random tools holds a right one with about limit/tools chance; ten times
    // that, and never above one half, is far from any working search.
    let chance = limit as f64 / dataset.tools.len().max(1) as f64;
    let ceiling = (10.0 * chance).min(0.5);
    let random_is_poor = value(&shuffled, "mrr") < ceiling;

    Ok(vec![
        Control {
            name: "oracle".to_owned(),
            expected: "mrr, ndcg@10 and map are 1".to_owned(),
            metrics: oracle,
            ok: perfect,
        },
        Control {
            name: "shuffled".to_owned(),
            expected: format!("mrr is below {ceiling:.3}"),
            metrics: shuffled,
            ok: random_is_poor,
        },
        Control {
            name: "descriptions-removed".to_owned(),
            expected: format!(
                "{} are all below the same engine with descriptions ({})",
                JUDGED.join(", "),
                JUDGED.map(|id| format!("{:.3}", value(&full, id))).join(", ")
            ),
            metrics: degraded,
            ok: drops,
        },
    ])
}

fn ranked(id: &str) -> Ranked {
    Ranked { tool_id: id.to_owned(), score: None }
}

fn metrics(dataset: &Dataset, search: impl Fn(&str) -> Vec<Ranked>) -> Vec<Measured> {
    averages(&scored(dataset, |index| search(&dataset.queries[index].query)))
}

fn scored(dataset: &Dataset, mut answer: impl FnMut(usize) -> Vec<Ranked>) -> Vec<Item> {
    let entries: Vec<Entry<Ranking>> = (0..dataset.queries.len())
        .map(|index| Entry {
            run: 0,
            id: dataset.queries[index].id.clone(),
            nanos: 0,
            outcome: Outcome::Answer(Ranking { ranked: answer(index) }),
        })
        .collect();
    items(dataset, &entries).0
}

/// Plain means: a control is compared by its value, so it needs no interval of its own.
fn averages(items: &[Item]) -> Vec<Measured> {
    SPECS
        .iter()
        .filter(|spec| JUDGED.contains(&spec.id))
        .map(|spec| {
            let values: Vec<f64> =
                items.iter().filter_map(|item| item.metrics[spec.id]).collect();
            let value = stats::mean(&values);
            Measured {
                id: spec.id.to_owned(),
                value: value.ok(),
                n: values.len() as u64,
                better: better(spec.id),
                per_run: vec![value.ok()],
                interval: None,
                count: None,
                undefined: value.err().map(|reason| reason.to_string()),
                left_out: (items.len() - values.len()) as u64,
            }
        })
        .collect()
}

fn value(metrics: &[Measured], id: &str) -> f64 {
    let found = metrics.iter().find(|metric| metric.id == id).and_then(|metric| metric.value);
    // NaN compares false with everything, so an undefined control metric never passes.
    found.unwrap_or(f64::NAN)
}

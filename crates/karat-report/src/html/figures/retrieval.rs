//! Retrieval: at which place the first right tool stood, and how the kinds of queries fare.

use super::super::kind::FOUND;
use super::{Body, Context, Figure, Group, counted};

/// The metric by which kinds of queries are compared, where the report has it.
const COMPARED: [&str; 3] = ["recall@5", "mrr", "ndcg@10"];

pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let counts = FOUND.map(|place| context.with(place));
    let all = counts.iter().sum();
    let rows = FOUND
        .iter()
        .zip(counts)
        .map(|(place, count)| counted(place, Some(context.items(&[("found", place)])), count, all))
        .collect();
    let mut figures = vec![Figure {
        title: "Where the first right tool stood".to_owned(),
        lead: None,
        body: Body::Bars { head: "queries", groups: vec![Group::of(None, rows)] },
        wide: false,
    }];
    let metric = COMPARED.into_iter().find(|id| context.report.metric(id).is_some());
    let groups: Vec<Group> = metric
        .into_iter()
        .flat_map(|metric| {
            ["kind", "split"]
                .map(|by| Group::of(Some(format!("by {by}")), context.bars_by(by, metric)))
        })
        .filter(|group| group.rows.len() > 1)
        .collect();
    if let (Some(metric), false) = (metric, groups.is_empty()) {
        figures.push(Figure {
            title: format!("{metric} by kind of query"),
            lead: None,
            body: Body::Bars { head: metric, groups },
            wide: false,
        });
    }
    figures
}

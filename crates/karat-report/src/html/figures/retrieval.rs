//! Retrieval: the rank of the first relevant tool, and the kinds of queries compared.

use karat_core::report::Property;
use karat_metrics::{MetricId, metric};

use super::super::facet::RANKS;
use super::figure::{Context, Figure, Group};

/// The metric by which kinds of queries are compared: the first that the report has.
static COMPARED: [MetricId; 3] = [metric!("recall@5"), metric!("mrr"), metric!("ndcg@10")];

pub(super) fn figures(context: &Context<'_>) -> Vec<Figure> {
    let title = context.of_observed("Rank of the first relevant tool");
    let ranks = vec![Group::of(None, context.facet_rows(&RANKS))];
    let mut figures = vec![Figure::bars(&title, "queries", ranks)];
    let metric = COMPARED.iter().find(|id| context.report.metric(id).is_some());
    if let Some(metric) = metric {
        let groups: Vec<Group> = [Property::Kind, Property::Split]
            .map(|by| Group::of(Some(format!("by {}", by.name())), context.bars_by(by, metric)))
            .into_iter()
            .filter(|group| group.rows.len() > 1)
            .collect();
        if !groups.is_empty() {
            figures.push(Figure::bars(&format!("{metric} by kind of query"), metric, groups));
        }
    }
    figures
}

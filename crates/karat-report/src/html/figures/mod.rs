//! The figures of a card, one set for each kind of report.
//!
//! A figure is laid out here and drawn by the template. Every value that is drawn is also text next
//! to the drawing, so no meaning depends on a shape or a colour. Counts are over the items of the
//! report and nothing else.

mod agent;
mod curves;
mod detection;
mod figure;
mod leaderboard;
mod load;
mod resilience;
mod retrieval;
mod server;
mod spread;

use karat_core::report::{Kind, Report};

use figure::Context;
pub(super) use figure::Figure;
pub(super) use leaderboard::leaderboard;

/// The figures of a report; `all` are the reports of its document.
pub(super) fn figures(report: &Report, slug: &str, all: &[Report]) -> Vec<Figure> {
    let context = Context { report, slug };
    let mut figures = match &report.kind {
        Kind::Ranking => retrieval::figures(&context),
        Kind::Verdicts => {
            let mut figures = detection::figures(&context);
            figures.extend(curves::figures(&context));
            figures
        }
        Kind::Suite => server::suite(&context),
        Kind::Fuzz => server::fuzz(&context),
        Kind::Attack => server::attack(&context),
        Kind::Load => load::figures(&context),
        Kind::Traces => {
            let mut figures = agent::figures(&context);
            figures.extend(spread::figures(report));
            figures
        }
        Kind::Trajectories => agent::trajectories(&context),
        Kind::Resilience => resilience::figures(&context, all),
        Kind::Outcomes | Kind::Other(_) => Vec::new(),
    };
    if report.kind != Kind::Load {
        figures.extend(load::histogram(&report.environment.latency_bins));
    }
    figures
}

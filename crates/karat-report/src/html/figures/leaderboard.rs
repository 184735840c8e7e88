//! Several systems on the same data: values with their intervals, and the pairs.

use karat_core::aggregate;
use karat_core::leaderboard::{Leaderboard, Pairing, Standing};
use karat_core::report::Measured;

use super::figure::{Cell, Figure, Group, bars};
use crate::format::{optional, optional_p, range, rank, real_differences};

/// The figures of a table of systems.
pub(in crate::html) fn leaderboard(table: &Leaderboard) -> Vec<Figure> {
    let measured: Vec<Measured> =
        table.rows.iter().map(|row| as_measured(&table.metric, row)).collect();
    let named = |(row, measured): (&'_ Standing, _)| {
        (format!("{} · {}", rank(row.ranks), row.shown()), None, measured)
    };
    let rows: Vec<_> = table.rows.iter().zip(&measured).map(named).collect();
    let values = Figure::bars(&table.metric, "system", vec![Group::of(None, bars(&rows))])
        .lead("The number before a name is its rank, as far as the real differences decide it.")
        .wide();
    let head =
        ["better", "worse", "difference", "95 % range", "p (Holm)", "wins", "losses", "real"];
    let mut pairs: Vec<&Pairing> = table.pairs.iter().collect();
    pairs.sort_by(|a, b| a.p_holm.unwrap_or(1.0).total_cmp(&b.p_holm.unwrap_or(1.0)));
    let pairs = pairs.into_iter().map(|pair| {
        vec![
            Cell::text(table.label(&pair.better)),
            Cell::text(table.label(&pair.worse)),
            Cell { text: optional(pair.delta), number: true, ..Cell::default() },
            Cell::text(range(pair.interval.as_ref(), " – ")),
            Cell { text: optional_p(pair.p_holm), number: true, ..Cell::default() },
            Cell::number(pair.wins),
            Cell::number(pair.losses),
            Cell::text(if pair.real { "yes" } else { "no" }),
        ]
    });
    let pairs = Figure::table("Pairs", &head, pairs.collect())
        .lead(format!("{}.", real_differences(&table.pairs)));
    vec![values, pairs]
}

fn as_measured(id: &str, row: &Standing) -> Measured {
    let interval = row.interval.clone();
    Measured { interval, ..aggregate::value(id.into(), Some(row.value), row.n, "") }
}

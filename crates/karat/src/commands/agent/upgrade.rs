//! `karat agent upgrade`: one verdict on replacing a model.

use std::fmt::Write as _;
use std::path::Path;

use karat_agent::traces::{Config, Kept};
use karat_agent::upgrade::{self, Allowed, Change, Upgrade, Verdict};
use karat_agent::{Tools, Trace};
use karat_core::evaluation::Common;
use karat_io::text::printable;
use serde_json::json;

use super::{config, here};
use crate::cli::AgentUpgradeArgs;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// Compares two recordings; FAIL is exit code 1, and DRIFT only where that is asked for.
pub(crate) fn upgrade(arguments: &AgentUpgradeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    for growth in [arguments.max_cost_growth, arguments.max_time_growth].into_iter().flatten() {
        if !(growth.is_finite() && growth >= 0.0) {
            return Err(Stop::bad_input("the allowed growth must not be negative"));
        }
    }
    let read = |path: &Path| -> Result<Vec<Trace>, Stop> {
        let config = Config {
            traces: vec![path.to_owned()],
            prices: arguments.prices.clone(),
            ..config(&arguments.read)?
        };
        Ok(match config.read(Vec::new(), &here())?.traces {
            Kept::Traces(set) => set.traces,
            Kept::Aggregates(_) => Vec::new(),
        })
    };
    let allowed = Allowed {
        lost: arguments.max_lost,
        cost_growth: arguments.max_cost_growth,
        time_growth: arguments.max_time_growth,
    };
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let seed = Common::named("upgrade").seed;
    let found = upgrade::judge(&before, &after, &Tools::default(), allowed, seed)?;
    match terminal.json() {
        true => terminal.print_json(&json!({"schema": "karat.upgrade/1", "upgrade": found}))?,
        false => terminal.print(&text(&found))?,
    }
    Ok(match found.verdict {
        Verdict::Fail => Exit::GateFailed,
        Verdict::Drift if arguments.no_drift => Exit::GateFailed,
        Verdict::Drift | Verdict::Pass => Exit::Pass,
    })
}

fn text(found: &Upgrade) -> String {
    let mut text = format!("{}: {} tasks compared\n", found.verdict.name(), found.tasks);
    for reason in &found.reasons {
        let _ = writeln!(text, "  {}", printable(reason));
    }
    text.push('\n');
    for (name, change) in [
        ("task.success", found.success),
        ("run.cost", found.cost),
        ("run.ms", found.ms),
        ("run.tokens", found.tokens),
    ] {
        let shown =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.4}"));
        let Change { before, after } = change;
        let growth =
            change.growth().map_or(String::new(), |by| format!("  ({:+.1} %)", by * 100.0));
        let _ = writeln!(text, "{name:<14} {:>12} → {:>12}{growth}", shown(before), shown(after));
    }
    if let Some(p) = found.p {
        let _ =
            writeln!(text, "a loss like this by chance: p = {p:.4} (sign-flip test over tasks)");
    }
    text
}
